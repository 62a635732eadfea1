/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/routes.h"

#include <string.h>

#include "rest/handlers.h"

static const route_t routes[] = {
    {HTTP_METHOD_POST, "/v1/tasks", ACCESS_SUBMIT, BODY_JSON, QUERY_NONE, submit_json},
    {HTTP_METHOD_POST, "/v1/queues/{queue}/tasks", ACCESS_SUBMIT, BODY_RAW, QUERY_OWN, submit_raw},
    {HTTP_METHOD_POST, "/v1/tasks:batch", ACCESS_SUBMIT, BODY_JSON, QUERY_NONE, submit_batch},
    {HTTP_METHOD_GET, "/v1/tasks", ACCESS_READ, BODY_NONE, QUERY_OWN, task_list},
    {HTTP_METHOD_GET, "/v1/tasks:count", ACCESS_READ, BODY_NONE, QUERY_OWN, task_count},
    {HTTP_METHOD_POST, "/v1/tasks:wait", ACCESS_READ, BODY_JSON, QUERY_NONE, task_wait},
    {HTTP_METHOD_GET, "/v1/tasks/{id}", ACCESS_READ, BODY_NONE, QUERY_NONE, task_show},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/result", ACCESS_READ, BODY_NONE, QUERY_NONE, task_result},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/payload", ACCESS_READ, BODY_NONE, QUERY_NONE, task_payload},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/artifacts", ACCESS_READ, BODY_NONE, QUERY_NONE,
     task_artifacts},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/artifacts/{name}", ACCESS_READ, BODY_NONE, QUERY_NONE,
     task_artifact},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/events", ACCESS_READ, BODY_NONE, QUERY_OWN, task_events},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/attempts", ACCESS_READ, BODY_NONE, QUERY_OWN, task_attempts},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/logs", ACCESS_READ, BODY_NONE, QUERY_OWN, task_logs},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/stream", ACCESS_READ, BODY_NONE, QUERY_OWN, task_stream},
    {HTTP_METHOD_POST, "/v1/tasks/{id}/cancel", ACCESS_CHANGE, BODY_JSON, QUERY_NONE, task_cancel},
    {HTTP_METHOD_GET, "/v1/tasks/{id}/why", ACCESS_READ, BODY_NONE, QUERY_NONE, task_why},
    {HTTP_METHOD_POST, "/v1/tasks/{id}/retry", ACCESS_CHANGE, BODY_NONE, QUERY_NONE, task_retry},
    {HTTP_METHOD_POST, "/v1/tasks/{id}/resume", ACCESS_CHANGE, BODY_NONE, QUERY_NONE, task_resume},
    {HTTP_METHOD_POST, "/v1/tasks/{id}/adopt", ACCESS_OPERATE, BODY_JSON, QUERY_NONE, task_adopt},
    {HTTP_METHOD_POST, "/v1/tasks/{id}/answer", ACCESS_CHANGE, BODY_JSON, QUERY_NONE, task_answer},
    {HTTP_METHOD_DELETE, "/v1/tasks/{id}", ACCESS_OPERATE, BODY_NONE, QUERY_NONE, task_purge},
    {HTTP_METHOD_GET, "/v1/events", ACCESS_READ, BODY_NONE, QUERY_OWN, event_stream},
    {HTTP_METHOD_GET, "/v1/inbox", ACCESS_OVERVIEW, BODY_NONE, QUERY_OWN, inbox_show},
    {HTTP_METHOD_GET, "/v1/resolve/{suffix}", ACCESS_READ, BODY_NONE, QUERY_NONE, task_resolve},
    {HTTP_METHOD_GET, "/v1/queues", ACCESS_OVERVIEW, BODY_NONE, QUERY_OWN, queue_list},
    {HTTP_METHOD_GET, "/v1/queues/{queue}", ACCESS_OVERVIEW, BODY_NONE, QUERY_NONE, queue_show},
    {HTTP_METHOD_POST, "/v1/queues/{queue}/pause", ACCESS_OPERATE, BODY_JSON, QUERY_NONE,
     queue_pause},
    {HTTP_METHOD_POST, "/v1/queues/{queue}/resume", ACCESS_OPERATE, BODY_NONE, QUERY_NONE,
     queue_resume},
    {HTTP_METHOD_GET, "/v1/workers", ACCESS_OVERVIEW, BODY_NONE, QUERY_OWN, worker_list},
    {HTTP_METHOD_GET, "/v1/stats", ACCESS_OVERVIEW, BODY_NONE, QUERY_NONE, stats_show},
    {HTTP_METHOD_POST, "/v1/session", ACCESS_KNOWN, BODY_NONE, QUERY_NONE, session_begin},
    {HTTP_METHOD_GET, "/v1/session", ACCESS_KNOWN, BODY_NONE, QUERY_NONE, session_show},
    {HTTP_METHOD_DELETE, "/v1/session", ACCESS_KNOWN, BODY_NONE, QUERY_NONE, session_leave},
    {HTTP_METHOD_GET, "/", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, page_root},
    {HTTP_METHOD_GET, "/ui", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, page_show},
    {HTTP_METHOD_GET, "/ui/{file}", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, page_file},
    {HTTP_METHOD_POST, "/mcp", ACCESS_SUBMIT, BODY_JSON, QUERY_NONE, mcp_serve},
    {HTTP_METHOD_GET, "/mcp", ACCESS_SUBMIT, BODY_NONE, QUERY_NONE, mcp_serve},
    {HTTP_METHOD_DELETE, "/mcp", ACCESS_SUBMIT, BODY_NONE, QUERY_NONE, mcp_serve},
    {HTTP_METHOD_GET, RESOURCE_PATH, ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, resource_show},
    {HTTP_METHOD_GET, RESOURCE_PATH "/mcp", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, resource_show},
    {HTTP_METHOD_GET, "/problems/{type}", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, problem_show},
    {HTTP_METHOD_GET, "/metrics", ACCESS_SCRAPE, BODY_NONE, QUERY_NONE, metrics_show},
    {HTTP_METHOD_GET, "/openapi.json", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, openapi_show},
    {HTTP_METHOD_GET, "/healthz", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, health_show},
    {HTTP_METHOD_GET, "/readyz", ACCESS_PUBLIC, BODY_NONE, QUERY_NONE, ready_show},
};

enum { ROUTES = sizeof routes / sizeof *routes };
_Static_assert((int) ROUTES < (int) SERVICE_ROUTES_MAX, "one row of numbers is of no route");

size_t routes_index (const route_t *route)
{
    return (size_t) (route - routes);
}

const route_t *routes_at (size_t index)
{
    return index < ROUTES ? &routes[index] : NULL;
}

/* True if the path is that of the target; its parameters are laid into the exchange. */
static bool matches (exchange_t *exchange, const char *path)
{
    const http_target_t *target = &exchange->target;
    size_t parameters = 0;
    for (size_t i = 0; i < target->segments_count; i++) {
        if (*path++ != '/')
            return false;
        const size_t length = strcspn (path, "/");
        const char *segment = target->segments[i];
        if (*path == '{')
            exchange->parameters[parameters++] = segment;
        else if (strlen (segment) != length || memcmp (segment, path, length) != 0)
            return false;
        path += length;
    }
    return *path == '\0' || (target->segments_count == 0 && strcmp (path, "/") == 0);
}

const route_t *routes_find (exchange_t *exchange, unsigned *allowed)
{
    const http_method_t asked = exchange->request->method;
    const http_method_t wanted = asked == HTTP_METHOD_HEAD ? HTTP_METHOD_GET : asked;
    *allowed = 0;
    for (size_t i = 0; i < ROUTES; i++) {
        if (!matches (exchange, routes[i].path))
            continue;
        if (routes[i].method == wanted)
            return &routes[i];
        *allowed |= 1U << routes[i].method;
        if (routes[i].method == HTTP_METHOD_GET)
            *allowed |= 1U << HTTP_METHOD_HEAD;
    }
    return NULL;
}

void routes_print (FILE *out)
{
    for (size_t i = 0; i < ROUTES; i++)
        fprintf (out, "%-6s %-28s %s\n", http_method_text (routes[i].method), routes[i].path,
                 policy_who (routes[i].access));
}
