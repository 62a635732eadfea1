/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/answer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/sse.h"
#include "rest/route.h"
#include "rest/trace.h"

enum { NO_STREAM_RETRY_MS = 5000 };

static void common_fields (const exchange_t *exchange, response_t *response)
{
    const service_t *service = service_of (exchange);
    const principal_t *principal = exchange->principal;
    const char *origin = http_request_field (exchange->request, "origin");
    char text[96];
    char trace[EXCHANGE_TRACE_SIZE];
    response_field (response, "X-Request-Id", exchange->id);
    response_field (response, "Taskmq-Version", TASKMQ_VERSION);
    response_field (response, "X-Content-Type-Options", "nosniff");
    if (origin != NULL && names_have (&service->origins, origin)) {
        response_field (response, "Access-Control-Allow-Origin", origin);
        response_field (response, "Access-Control-Expose-Headers",
                        "Accept-Ranges, Content-Disposition, Content-Range, ETag, Location, "
                        "Retry-After, X-Request-Id, traceresponse");
        response_field (response, "Vary", "Origin");
    }
    if (principal == NULL)
        return;
    trace_response (exchange, trace);
    response_field (response, "traceresponse", trace);
    const uint64_t burst = service->settings.numbers[SETTING_RATE_BURST];
    const uint64_t rate = service->settings.numbers[SETTING_RATE];
    const uint64_t used = (uint64_t) principal->rate.used;
    snprintf (text, sizeof text, "\"principal\";q=%" PRIu64 ";w=%" PRIu64, burst,
              (burst + rate - 1) / rate);
    response_field (response, "RateLimit-Policy", text);
    snprintf (text, sizeof text, "\"principal\";r=%" PRIu64 ";t=%" PRIu64,
              used < burst ? burst - used : 0, (used + rate - 1) / rate);
    response_field (response, "RateLimit", text);
}

void answer (exchange_t *exchange, response_t *response)
{
    response_field (response, "Cache-Control", "no-store");
    common_fields (exchange, response);
    exchange->reply (exchange, response);
}

void answer_kept (exchange_t *exchange, response_t *response)
{
    response_field (response, "Cache-Control", "no-cache");
    common_fields (exchange, response);
    exchange->reply (exchange, response);
}

/* Streams: each has a seat. */

static bool has_own_stream (const exchange_t *exchange)
{
    return exchange->account->held[HOLD_STREAMS] <
           service_of (exchange)->settings.numbers[SETTING_PRINCIPAL_STREAMS_MAX];
}

static bool has_seat (const exchange_t *exchange)
{
    const service_t *service = service_of (exchange);
    return service->stream_seats.count < service->settings.numbers[SETTING_STREAMS_MAX];
}

bool answer_has_stream (const exchange_t *exchange)
{
    return has_own_stream (exchange) &&
           (has_seat (exchange) || seats_find (&service_of (exchange)->stream_seats, HOLD_STREAMS,
                                               exchange->account, 1) != NULL);
}

/* Nothing is lost by it: bytes are asked for from where they end, events from their cursor. What
 * stands behind it goes, too: else a stream there would take the seat before whom it is for. */
static void give_way (void *context, const char *why)
{
    exchange_t *exchange = context;
    exchange->is_last = true;
    (void) why; /* its answer has begun: there is no field left to tell it in */
    if (exchange->stream_kind == STREAM_BYTES) {
        service_of (exchange)->numbers.cut++;
        exchange->cut (exchange);
    } else if (exchange->on_stop != NULL) {
        exchange->on_stop (exchange);
    } else {
        exchange->finish (exchange);
    }
}

static void answer_no_stream (exchange_t *exchange, problem_kind_t kind, const char *detail)
{
    answer_problem (
        exchange,
        &(problem_t){.kind = kind, .detail = detail, .retry_after_ms = NO_STREAM_RETRY_MS});
}

bool answer_in_pieces (exchange_t *exchange, response_t *response)
{
    seats_t *seats = &service_of (exchange)->stream_seats;
    if (!has_own_stream (exchange)) {
        response_clear (response);
        answer_no_stream (exchange, PROBLEM_RATE_LIMITED,
                          "more streams at a time than 'principal_streams_max' allows");
        return false;
    }
    if (!has_seat (exchange) &&
        !seats_make_room (seats, HOLD_STREAMS, exchange->account, 1, NULL)) {
        response_clear (response);
        answer_no_stream (exchange, PROBLEM_BUSY,
                          "as many streams are open as 'streams_max' allows");
        return false;
    }
    seat_take (&exchange->seat, seats, exchange->account, give_way, exchange);
    response_field (response, "Cache-Control", "no-store");
    common_fields (exchange, response);
    exchange->stream (exchange, response);
    return true;
}

bool answer_stream (exchange_t *exchange, response_t *response)
{
    sse_fields (response);
    exchange->ping = SSE_PING;
    if (exchange->stream_kind == STREAM_BYTES)
        exchange->stream_kind = STREAM_EVENTS;
    return answer_in_pieces (exchange, response);
}

/* Whoever is not known learns where people get what they are known by (RFC 9728). */
static void challenge (const exchange_t *exchange, response_t *response)
{
    const service_t *service = service_of (exchange);
    const char *host = http_request_field (exchange->request, "host");
    char text[400];
    const bool is_mcp = strcmp (exchange->request->target, "/mcp") == 0;
    if (service->authorization_servers.count == 0 || host == NULL || strlen (host) > 255)
        snprintf (text, sizeof text, "Bearer realm=\"taskmq\"");
    else
        snprintf (text, sizeof text,
                  "Bearer realm=\"taskmq\", resource_metadata=\"%s://%s" RESOURCE_PATH "%s\"",
                  service->sessions.secure ? "https" : "http", host, is_mcp ? "/mcp" : "");
    response_field (response, "WWW-Authenticate", text);
}

void answer_problem (exchange_t *exchange, const problem_t *problem)
{
    response_t response;
    response_init (&response, 500);
    problem_write (&response, problem, exchange->id);
    if (response.status == 401)
        challenge (exchange, &response);
    answer (exchange, &response);
}

void answer_invalid (exchange_t *exchange, const char *pointer, const char *format, ...)
{
    char detail[300];
    va_list list;
    va_start (list, format);
    vsnprintf (detail, sizeof detail, format, list);
    va_end (list);
    answer_problem (exchange,
                    &(problem_t){.kind = PROBLEM_INVALID, .detail = detail, .pointer = pointer});
}

void answer_code (exchange_t *exchange, int code, const tmq_error_t *error, const tmq_id_t *id)
{
    char text[37];
    problem_t problem = {.kind = problem_of_code (code),
                         .code = code,
                         .detail = error != NULL && error->text[0] != '\0' ? error->text
                                                                           : tmq_code_text (code),
                         .retry_after_ms = error != NULL ? error->retry_after_ms : 0};
    if (id != NULL) {
        tmq_id_format (id, text);
        problem.task_id = text;
    }
    answer_problem (exchange, &problem);
}

json_writer_t answer_json (response_t *response)
{
    response_init (response, 200);
    response_field (response, "Content-Type", "application/json");
    return (json_writer_t){&response->body, false};
}

void answer_object (exchange_t *exchange, const tmq_completion_t *completion,
                    void (*write) (json_writer_t *writer, const tmq_completion_t *completion))
{
    response_t response;
    if (!came_well (exchange, completion, NULL))
        return;
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    write (&writer, completion);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

void answer_next (json_writer_t *writer, uint64_t next, bool more)
{
    json_write_key (writer, "next");
    if (more)
        json_write_uint (writer, next);
    else
        json_write_null (writer);
}

const char *owner_of (const exchange_t *exchange)
{
    const principal_t *principal = exchange->principal;
    const access_t access = exchange->route->access;
    if (principal == NULL)
        return NULL;
    /* What is to be found as one's own is submitted as such. */
    return policy_own_only (principal->roles, access == ACCESS_SUBMIT ? ACCESS_CHANGE : access)
               ? principal->name
               : NULL;
}

void sign (char *out, size_t size, const exchange_t *exchange, const char *text)
{
    const principal_t *principal = exchange->principal;
    const bool known = principal == NULL || owner_of (exchange) != NULL;
    const int length =
        known ? (int) size
              : snprintf (out, size, "%s%sby %s through the gateway%s", text,
                          text[0] != '\0' ? " (" : "", principal->name, text[0] != '\0' ? ")" : "");
    if ((size_t) length >= size)
        snprintf (out, size, "%s", text);
}

link_call_t call_of (exchange_t *exchange, link_fn *fn)
{
    return (link_call_t){fn, exchange, &exchange->ticket, owner_of (exchange)};
}

int answer_wait (exchange_t *exchange, link_call_t call, const tmq_id_t *ids, size_t count,
                 uint32_t timeout_ms, tmq_error_t *error)
{
    int code = link_wait (exchange->link, call, ids, count, timeout_ms, error);
    while (code == TMQ_OVERLOADED && seats_make_room (link_polls (exchange->link), HOLD_WAITED,
                                                      exchange->account, count, NULL))
        code = link_wait (exchange->link, call, ids, count, timeout_ms, error);
    return code;
}

void started (exchange_t *exchange, int code, const tmq_error_t *error)
{
    if (code != TMQ_OK)
        answer_code (exchange, code, error, NULL);
}

bool came_well (exchange_t *exchange, const tmq_completion_t *completion, const tmq_id_t *id)
{
    if (completion->code == TMQ_OK)
        return true;
    answer_code (exchange, completion->code, completion->error, id);
    return false;
}

void *keep_state (exchange_t *exchange, size_t size, void (*clear) (void *state))
{
    exchange->state = calloc (1, size);
    exchange->state_free = clear;
    if (exchange->state == NULL)
        answer_code (exchange, TMQ_NO_MEMORY, NULL, NULL);
    return exchange->state;
}

bool path_id (exchange_t *exchange, tmq_id_t *out)
{
    if (tmq_id_parse (out, exchange->parameters[0]) == TMQ_OK)
        return true;
    answer_invalid (exchange, "id",
                    "an id is a UUID of 36 characters; /v1/resolve finds short ones");
    return false;
}

bool owns (const exchange_t *exchange, const tmq_task_t *task)
{
    if (!policy_own_only (exchange->principal->roles, exchange->route->access))
        return true;
    for (size_t i = 0; i < task->labels_count; i++)
        if (strcmp (task->labels[i].key, PRINCIPAL_LABEL) == 0)
            return strcmp (task->labels[i].value, exchange->principal->name) == 0;
    return false;
}

uint32_t wait_wanted_ms (const exchange_t *exchange)
{
    const char *prefer = http_request_field (exchange->request, "prefer");
    const uint64_t most = service_of (exchange)->settings.numbers[SETTING_WAIT_MAX];
    const char *wait = prefer != NULL ? strstr (prefer, "wait=") : NULL;
    if (wait == NULL || (wait > prefer && strchr (" ,;", wait[-1]) == NULL))
        return 0;
    wait += strlen ("wait=");
    const size_t digits = strspn (wait, "0123456789");
    if (digits == 0 || (wait[digits] != '\0' && strchr (" \t,;", wait[digits]) == NULL))
        return 0; /* RFC 7240: a preference that is not understood is passed over */
    const unsigned long long seconds = strtoull (wait, NULL, 10);
    return seconds < most / 1000 ? (uint32_t) seconds * 1000 : (uint32_t) most;
}

void entity_tag (char out[ENTITY_TAG_SIZE], const exchange_t *exchange, const tmq_task_t *task)
{
    snprintf (out, ENTITY_TAG_SIZE, "\"%" PRIu64 "-%" PRIu64 "\"", link_generation (exchange->link),
              task->version);
}

bool tag_matches (const exchange_t *exchange, const char *tag)
{
    const char *given = http_request_field (exchange->request, "if-none-match");
    if (given == NULL)
        return false;
    return strcmp (given, "*") == 0 || strstr (given, tag) != NULL;
}
