/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/session.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "auth/policy.h"
#include "rest/handlers.h"
#include "timestamp.h"

static bool is_from_our_page (const exchange_t *exchange)
{
    const http_request_t *request = exchange->request;
    const char *site = http_request_field (request, "sec-fetch-site");
    const char *mark = http_request_field (request, "x-taskmq-request");
    const bool same = site != NULL && strcmp (site, "same-origin") == 0;
    if (request->method == HTTP_METHOD_GET || request->method == HTTP_METHOD_HEAD)
        return same || site == NULL || strcmp (site, "none") == 0;
    return same && mark != NULL && strcmp (mark, "1") == 0;
}

bool session_is_ours (const exchange_t *exchange)
{
    return http_request_count (exchange->request, "sec-fetch-site") == 0 ||
           is_from_our_page (exchange);
}

principal_t *session_identify (exchange_t *exchange)
{
    service_t *service = service_of (exchange);
    const char *field = http_request_field (exchange->request, "cookie");
    char text[SEAL_TEXT_MAX + 1];
    if (!is_from_our_page (exchange) || !session_cookie (&service->sessions, field, text))
        return NULL;
    exchange->by_cookie = true;
    return session_find (&service->sessions, &service->tokens, SEAL_COOKIE, text,
                         clock_ms (CLOCK_REALTIME));
}

const char *session_flaw (const exchange_t *exchange)
{
    if (!is_from_our_page (exchange))
        return "a cookie is taken from our own page alone, which says 'X-Taskmq-Request: 1' and "
               "'Sec-Fetch-Site: same-origin'; programs use a token";
    return exchange->by_cookie ? "the session is over: log in again"
                               : "say 'Authorization: Bearer TOKEN'";
}

const char *session_ticket (const exchange_t *exchange)
{
    static const char before[] = "Bearer " SESSION_TICKET_PREFIX;
    const char *given = http_request_field (exchange->request, "authorization");
    if (given == NULL || strncasecmp (given, before, sizeof before - 1) != 0)
        return NULL;
    return given + sizeof before - 1;
}

/* Routes. */

static void write_session (response_t *response, const exchange_t *exchange, int64_t expires_ms)
{
    const principal_t *principal = exchange->principal;
    const service_t *service = service_of (exchange);
    json_writer_t writer = answer_json (response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "principal");
    json_write_text (&writer, principal->name);
    json_write_key (&writer, "roles");
    json_write_array_begin (&writer);
    for (unsigned role = 1; role <= ROLE_METRICS; role <<= 1) {
        char text[16];
        if ((principal->roles & role) == 0)
            continue;
        roles_format (text, sizeof text, role);
        json_write_text (&writer, text);
    }
    json_write_array_end (&writer);
    json_write_key (&writer, "namespaces");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < principal->namespaces_count; i++)
        json_write_text (&writer, principal->namespaces[i]);
    json_write_array_end (&writer);
    json_write_key (&writer, "by");
    json_write_text (&writer, principal == service->anybody ? "nothing"
                              : principal->proxied          ? "proxy"
                              : exchange->by_cookie         ? "cookie"
                                                            : "token");
    json_write_key (&writer, "expires");
    json_write_time (&writer, expires_ms);
    json_write_object_end (&writer);
    json_write_newline (&writer);
}

static void set_cookie (response_t *response, const service_t *service, const char *text,
                        int64_t age_ms)
{
    bytes_t field = BYTES_INIT;
    session_set_cookie (&service->sessions, &field, text, age_ms);
    const char *value = bytes_text (&field);
    if (value != NULL)
        response_field (response, "Set-Cookie", value);
    bytes_free (&field);
}

/* A cookie begets no cookie: who has only that is known until its end. */
void session_begin (exchange_t *exchange)
{
    service_t *service = service_of (exchange);
    const principal_t *principal = exchange->principal;
    const int64_t now_ms = clock_ms (CLOCK_REALTIME);
    const int64_t age_ms = (int64_t) service->settings.numbers[SETTING_SESSION_TIMEOUT];
    const char *ticket = session_ticket (exchange);
    response_t response;
    bytes_t text = BYTES_INIT;
    if (exchange->by_cookie ||
        (ticket != NULL && session_find (&service->sessions, &service->tokens, SEAL_TICKET, ticket,
                                         now_ms) != principal)) {
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_NOT_AUTHENTICATED,
                                               .detail = "a session begins with a token, or with a "
                                                         "link that was not used"});
        return;
    }
    if (ticket != NULL)
        session_end (&service->sessions, SEAL_TICKET, ticket, now_ms);
    const int64_t end_ms = principal->expires_ms != 0 && principal->expires_ms < now_ms + age_ms
                               ? principal->expires_ms
                               : now_ms + age_ms;
    write_session (&response, exchange, end_ms);
    if (principal != service->anybody && !principal->proxied)
        session_make (&service->sessions, &text, SEAL_COOKIE, principal->hash, end_ms);
    const char *value = bytes_text (&text);
    if (value != NULL && *value != '\0')
        set_cookie (&response, service, value, end_ms - now_ms);
    bytes_free (&text);
    answer (exchange, &response);
}

void session_show (exchange_t *exchange)
{
    response_t response;
    write_session (&response, exchange, exchange->principal->expires_ms);
    answer (exchange, &response);
}

void session_leave (exchange_t *exchange)
{
    service_t *service = service_of (exchange);
    char text[SEAL_TEXT_MAX + 1];
    response_t response;
    if (session_cookie (&service->sessions, http_request_field (exchange->request, "cookie"), text))
        session_end (&service->sessions, SEAL_COOKIE, text, clock_ms (CLOCK_REALTIME));
    response_init (&response, 204);
    set_cookie (&response, service, "", 0);
    answer (exchange, &response);
}
