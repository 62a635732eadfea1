/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/door.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/effort.h"
#include "log/log.h"
#include "rest/answer.h"
#include "rest/download.h"
#include "rest/handlers.h"
#include "rest/metrics.h"
#include "rest/query.h"
#include "rest/routes.h"
#include "rest/session.h"
#include "rest/trace.h"
#include "rest/upload.h"
#include "timestamp.h"

enum { WARNING_MS = 1000 };

static const char WANTS_TOKEN[] = "say 'Authorization: Bearer TOKEN'";

/* A step of the way in; false: it has been answered. */
typedef bool gate_fn (service_t *self, exchange_t *exchange);

/* The client's own name for its request, if it is a decent one. */
static void name_request (exchange_t *exchange)
{
    const char *given = http_request_field (exchange->request, "x-request-id");
    bool good = given != NULL && given[0] != '\0' && strlen (given) < EXCHANGE_ID_SIZE;
    for (const char *at = given; good && *at != '\0'; at++)
        good = (unsigned char) *at > ' ' && (unsigned char) *at < 0x7f;
    if (good) {
        snprintf (exchange->id, sizeof exchange->id, "%s", given);
        return;
    }
    tmq_id_t id;
    tmq_id_make (&id);
    tmq_id_format (&id, exchange->id);
}

static void refuse (service_t *self, exchange_t *exchange, const problem_t *problem)
{
    self->numbers.refused[problem->kind]++;
    answer_problem (exchange, problem);
}

static bool gate_target (service_t *self, exchange_t *exchange)
{
    const char *flaw = http_target_parse (&exchange->target, exchange->request->target);
    if (flaw != NULL)
        refuse (self, exchange, &(problem_t){.kind = PROBLEM_MALFORMED, .detail = flaw});
    return flaw == NULL;
}

/* Nobody's browser can be made to open a socket file. */
static bool gate_origin (service_t *self, exchange_t *exchange)
{
    const http_request_t *request = exchange->request;
    const char *host = http_request_field (request, "host");
    const char *origin = http_request_field (request, "origin");
    const bool is_file = strcmp (exchange->peer, "unix") == 0;
    problem_t problem = {.kind = PROBLEM_FOREIGN_ORIGIN};
    if (!is_file && (host == NULL || !origin_host_is_good (host, &self->hosts)))
        problem.detail = "Host is neither a loopback address nor one of the key 'host'";
    else if (http_request_count (request, "origin") > 1 ||
             (origin != NULL && !origin_is_good (origin, host != NULL ? host : "", &self->origins)))
        problem.detail = "Origin is neither ours nor one of the key 'origin'";
    if (problem.detail != NULL)
        refuse (self, exchange, &problem);
    return problem.detail == NULL;
}

/* A browser asks before it lets a page of another origin use us. */
static bool gate_preflight (service_t *self, exchange_t *exchange)
{
    const http_request_t *request = exchange->request;
    const char *origin = http_request_field (request, "origin");
    response_t response;
    if (request->method != HTTP_METHOD_OPTIONS || origin == NULL ||
        !names_have (&self->origins, origin))
        return true;
    response_init (&response, 204);
    response_field (&response, "Access-Control-Allow-Methods", "GET, POST, DELETE");
    response_field (&response, "Access-Control-Allow-Headers",
                    "Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, "
                    "Prefer, Range, Taskmq-Namespace, X-Request-Id, traceparent, tracestate");
    response_field (&response, "Access-Control-Max-Age", "600");
    answer (exchange, &response);
    return false;
}

static bool gate_route (service_t *self, exchange_t *exchange)
{
    unsigned allowed = 0;
    char methods[64] = "";
    char detail[sizeof methods + sizeof "this path takes "];
    response_t response;
    exchange->route = routes_find (exchange, &allowed);
    if (exchange->route != NULL)
        return true;
    self->numbers.refused[allowed != 0 ? PROBLEM_METHOD : PROBLEM_NOT_FOUND]++;
    response_init (&response, 404);
    for (size_t i = 0; i < HTTP_METHODS_COUNT; i++)
        if ((allowed & 1U << i) != 0)
            snprintf (methods + strlen (methods), sizeof methods - strlen (methods), "%s%s",
                      methods[0] != '\0' ? ", " : "", http_method_text ((http_method_t) i));
    if (allowed != 0)
        response_field (&response, "Allow", methods);
    snprintf (detail, sizeof detail, "this path takes %s", methods);
    problem_write (&response,
                   &(problem_t){.kind = allowed != 0 ? PROBLEM_METHOD : PROBLEM_NOT_FOUND,
                                .detail = allowed != 0 ? detail : "there is no such path"},
                   exchange->id);
    answer (exchange, &response);
    return false;
}

static bool is_proxied (const service_t *self, const exchange_t *exchange)
{
    return self->proxied.on && http_request_count (exchange->request, "taskmq-principal") > 0;
}

/* Whom the proxy names. A browser may have been made to ask, as with a cookie. */
static principal_t *identify_proxied (service_t *self, exchange_t *exchange, const char **flaw)
{
    const http_request_t *request = exchange->request;
    const char *named = http_request_field (request, "taskmq-principal");
    *flaw = "the proxy does not show its secret by Taskmq-Proxy-Secret";
    if (!proxied_knows (&self->proxied, http_request_field (request, "taskmq-proxy-secret")))
        return NULL;
    *flaw = "Taskmq-Principal is given more than once";
    if (named == NULL)
        return NULL;
    *flaw =
        "a browser's request is taken from our own page alone, which says 'X-Taskmq-Request: 1'";
    return session_is_ours (exchange) ? proxied_find (&self->proxied, named, flaw) : NULL;
}

/* Whose token is it? *flaw says why it is nobody's. */
static principal_t *identify (service_t *self, exchange_t *exchange, const char **flaw)
{
    static const char bearer[] = "Bearer ";
    if (is_proxied (self, exchange))
        return identify_proxied (self, exchange, flaw);
    *flaw = "the token is not known, or its time is over";
    const char *given = http_request_field (exchange->request, "authorization");
    if (given == NULL && http_request_count (exchange->request, "authorization") > 0)
        return NULL;
    if (given == NULL)
        return self->anybody != NULL ? self->anybody : session_identify (exchange);
    if (strncasecmp (given, bearer, sizeof bearer - 1) != 0) {
        *flaw = WANTS_TOKEN;
        return NULL;
    }
    if (exchange->route->run == session_begin && session_ticket (exchange) != NULL)
        return session_find (&self->sessions, &self->tokens, SEAL_TICKET, session_ticket (exchange),
                             clock_ms (CLOCK_REALTIME));
    return tokens_find (&self->tokens, given + sizeof bearer - 1, clock_ms (CLOCK_REALTIME));
}

/* It is nobody's request: why, and until when its address is to wait. Who has a good token does not
 * wait for the faults of others at the same address. */
static void refuse_stranger (service_t *self, exchange_t *exchange, bool tries, const char *flaw)
{
    const uint64_t *numbers = self->settings.numbers;
    const int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    const int64_t wait_ms = failures_wait_ms (&self->failures, exchange->peer, now_ms);
    problem_t problem = {.kind = PROBLEM_NOT_AUTHENTICATED, .detail = flaw};
    if (flaw == NULL) {
        problem = (problem_t){.kind = PROBLEM_BUSY,
                              .detail = "as many people as may be (1000) have requests under way"};
    } else if (wait_ms > 0) {
        problem = (problem_t){.kind = PROBLEM_RATE_LIMITED,
                              .detail = "too many wrong tokens from this address",
                              .retry_after_ms = (uint32_t) wait_ms};
    } else {
        self->numbers.auth_failures++;
        if (tries)
            failures_add (&self->failures, exchange->peer, numbers[SETTING_FAILURES_MAX],
                          numbers[SETTING_FAILURES_PAUSE], now_ms);
        else
            problem.detail = http_request_count (exchange->request, "cookie") > 0
                                 ? session_flaw (exchange)
                                 : WANTS_TOKEN;
    }
    refuse (self, exchange, &problem);
}

static bool gate_token (service_t *self, exchange_t *exchange)
{
    const bool tries =
        http_request_count (exchange->request, "authorization") > 0 || is_proxied (self, exchange);
    const char *flaw;
    if (exchange->route->access == ACCESS_PUBLIC)
        return true;
    principal_t *principal = identify (self, exchange, &flaw);
    if (principal == NULL) {
        refuse_stranger (self, exchange, tries, flaw);
        return false;
    }
    if (tries)
        failures_clear (&self->failures, exchange->peer);
    principal->references++;
    principal->requests++;
    exchange->principal = principal;
    exchange->account = principal->account;
    return true;
}

static bool gate_rate (service_t *self, exchange_t *exchange)
{
    principal_t *principal = exchange->principal;
    uint64_t left, wait_ms;
    problem_t problem = {.kind = PROBLEM_RATE_LIMITED};
    if (principal == NULL)
        return true;
    service_note (self, principal);
    const uint64_t *numbers = self->settings.numbers;
    if (!rate_take (&principal->rate, numbers[SETTING_RATE], numbers[SETTING_RATE_BURST],
                    exchange->began_us, &left, &wait_ms)) {
        problem.detail = "more requests in a second than the key 'rate' allows";
        problem.retry_after_ms = (uint32_t) wait_ms;
    } else if (principal->requests > numbers[SETTING_PRINCIPAL_REQUESTS_MAX]) {
        problem.detail = "more requests at a time than 'principal_requests_max' allows";
    } else if ((wait_ms = service_wait_ms (self, principal)) > 0) {
        problem.detail = "its requests take more of the loop's time than 'principal_time' allows";
        problem.retry_after_ms = (uint32_t) wait_ms;
    }
    if (problem.detail == NULL) {
        exchange->advance_us = principal->mean_us;
        service_spend (self, principal, (double) exchange->advance_us);
        return true;
    }
    self->numbers.rate_limited++;
    refuse (self, exchange, &problem);
    return false;
}

/* The parameter is for those who cannot say a field: EventSource, links. */
static const char *wanted_namespace (const exchange_t *exchange)
{
    const char *field = http_request_field (exchange->request, "taskmq-namespace");
    return field != NULL ? field : http_target_parameter (&exchange->target, "namespace");
}

static bool gate_policy (service_t *self, exchange_t *exchange)
{
    const principal_t *principal = exchange->principal;
    const char *ns = wanted_namespace (exchange);
    problem_t problem = {.kind = PROBLEM_DENIED};
    if (principal == NULL)
        return true;
    if (!policy_allows (principal->roles, exchange->route->access)) {
        problem.detail = "the token has not the role for this";
    } else if (http_request_count (exchange->request, "taskmq-namespace") > 1 ||
               http_target_count (&exchange->target, "namespace") > 1) {
        problem = (problem_t){.kind = PROBLEM_INVALID, .detail = "the namespace is told twice"};
    } else if (ns != NULL && !principal_has (principal, ns)) {
        problem.detail = "the token is not for this namespace";
    } else if (ns == NULL && principal->namespaces_count > 1 &&
               exchange->route->access != ACCESS_SCRAPE &&
               exchange->route->access != ACCESS_KNOWN) {
        problem = (problem_t){.kind = PROBLEM_INVALID,
                              .detail = "the token is for several namespaces: say "
                                        "'Taskmq-Namespace: NAME', or ?namespace=NAME"};
    } else {
        exchange->link = service_link (self, ns != NULL ? ns : principal->namespaces[0]);
        if (exchange->link == NULL)
            problem =
                (problem_t){.kind = PROBLEM_BUSY, .detail = "there is no way to this namespace"};
    }
    if (problem.detail != NULL)
        refuse (self, exchange, &problem);
    return problem.detail == NULL;
}

/* True if the value is that media type, whatever its parameters. */
static bool is_type (const char *value, const char *type)
{
    const size_t length = strlen (type);
    return value != NULL && strncasecmp (value, type, length) == 0 &&
           (value[length] == '\0' || strchr ("; \t", value[length]) != NULL);
}

/* Whoever misspells a parameter is not to get another answer than he asked for. */
static bool gate_query (service_t *self, exchange_t *exchange)
{
    if (exchange->route->query == QUERY_OWN || known_parameters (exchange, NULL, 0))
        return true;
    self->numbers.refused[PROBLEM_INVALID]++;
    return false;
}

/* How much of a body is taken, and what is said to who sends more. */
static void limit_body (const service_t *self, exchange_t *exchange)
{
    static const struct {
        setting_t setting;
        const char *key;
    } limits[] = {[BODY_JSON] = {SETTING_JSON_BYTES_MAX, "json_bytes_max"},
                  [BODY_RAW] = {SETTING_RAW_BYTES_MAX, "raw_bytes_max"}};
    const body_kind_t kind = exchange->route->body;
    const bool submits =
        exchange->route->run == submit_json || exchange->route->run == submit_batch;
    if (kind == BODY_NONE)
        return;
    exchange->body_bytes_max = self->settings.numbers[limits[kind].setting];
    snprintf (exchange->body_limit, sizeof exchange->body_limit,
              "the body has more bytes than '%s' allows, %" PRIu64 "%s", limits[kind].key,
              exchange->body_bytes_max,
              submits ? "; a larger payload is the body of POST /v1/queues/{queue}/tasks" : "");
}

static bool gate_body (service_t *self, exchange_t *exchange)
{
    const http_request_t *request = exchange->request;
    const body_kind_t kind = exchange->route->body;
    const bool has_body = request->chunked || request->content_length > 0;
    const char *type = http_request_field (request, "content-type");
    if (kind == BODY_JSON && has_body && !is_type (type, "application/json")) {
        refuse (self, exchange,
                &(problem_t){.kind = PROBLEM_MEDIA_TYPE,
                             .detail = "the body is JSON: say 'Content-Type: application/json'"});
        return false;
    }
    if (kind == BODY_NONE && has_body) {
        self->numbers.refused[PROBLEM_INVALID]++;
        answer_invalid (exchange, "", "this takes no body");
        return false;
    }
    limit_body (self, exchange);
    return kind != BODY_RAW || submit_raw_begin (exchange);
}

static void handle_head (void *context, exchange_t *exchange)
{
    static gate_fn *const gates[] = {gate_target, gate_origin, gate_preflight,
                                     gate_route,  gate_token,  gate_rate,
                                     gate_policy, gate_query,  gate_body};
    exchange->service = context;
    name_request (exchange);
    trace_begin (exchange);
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        if (!gates[i](context, exchange))
            return;
}

/* The exchange may have ended when its function returns, its principal may not. */
static void handle_whole (void *context, exchange_t *exchange)
{
    principal_t *principal = exchange->principal;
    if (principal != NULL)
        principal->references++;
    exchange->route->run (exchange);
    if (principal != NULL)
        service_spend (context, principal, (double) effort_take ());
    principal_release (principal);
}

void door_check (void *context, exchange_t *exchange)
{
    const service_t *service = context;
    const principal_t *principal = exchange->principal;
    if (principal == NULL || principal == service->anybody || principal->proxied ||
        tokens_stand_by (&service->tokens, principal, clock_ms (CLOCK_REALTIME)))
        return;
    if (exchange->stream_status != 0)
        exchange->finish (exchange);
    else
        answer_problem (exchange,
                        &(problem_t){.kind = PROBLEM_NOT_AUTHENTICATED,
                                     .detail = "the token was changed, or its time is over"});
}

/* What clients can bring about as often as they like is told once in WARNING_MS. */
static bool is_warning (service_t *self, int status)
{
    const int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    if (status != 500 && status != 504)
        return false;
    if (self->warned_ms != 0 && now_ms - self->warned_ms < WARNING_MS) {
        self->unwarned++;
        return false;
    }
    self->warned_ms = now_ms;
    return true;
}

static void log_end (service_t *self, const exchange_t *exchange, int status)
{
    char id[TRACE_ID_SIZE];
    const bool warns = is_warning (self, status);
    const uint64_t others = warns ? self->unwarned : 0;
    self->unwarned -= others;
    log_write (
        warns ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "GATEWAY-REQUEST", "answered",
        LOG_FIELDS (LOG_TEXT ("method", http_method_text (exchange->request->method)),
                    LOG_TEXT ("route", exchange->route ? exchange->route->path : "-"),
                    LOG_NUMBER ("status", status),
                    LOG_NUMBER ("us", clock_us (CLOCK_MONOTONIC) - exchange->began_us),
                    LOG_TEXT ("principal", exchange->principal ? exchange->principal->name : "-"),
                    LOG_TEXT ("request_id", exchange->id),
                    LOG_TEXT ("trace_id", trace_id (exchange, id)), LOG_NUMBER ("others", others)));
}

static void count_answer (service_t *self, const exchange_t *exchange, int status)
{
    service_numbers_t *numbers = &self->numbers;
    const uint64_t us = (uint64_t) (clock_us (CLOCK_MONOTONIC) - exchange->began_us);
    const size_t row =
        exchange->route != NULL ? routes_index (exchange->route) : SERVICE_ROUTES_MAX - 1;
    size_t bucket = 0;
    if (status <= 0 || status >= SERVICE_STATUSES) {
        numbers->left++;
        return;
    }
    while (bucket < SERVICE_TIMES && us > metrics_bucket_us (bucket))
        bucket++;
    numbers->answers[row][status]++;
    if (exchange->stream_status != 0)
        return; /* it took as long as its client wished */
    numbers->times[bucket]++;
    numbers->times_us += us;
}

/* What it took in place of what was expected, which is what the last ones took. */
static void settle (const service_t *self, const exchange_t *exchange)
{
    principal_t *principal = exchange->principal;
    const uint64_t us = effort_take ();
    service_spend (self, principal, (double) us - (double) exchange->advance_us);
    principal->mean_us = (principal->mean_us * 7 + us) / 8;
}

static void handle_end (void *context, exchange_t *exchange, int status)
{
    service_t *self = context;
    count_answer (self, exchange, status);
    log_end (self, exchange, status);
    if (exchange->link != NULL)
        link_forget (exchange->link, &exchange->ticket);
    seat_leave (&exchange->seat);
    download_free (&exchange->download);
    upload_free (&exchange->upload);
    if (exchange->state_free != NULL)
        exchange->state_free (exchange->state);
    http_target_clear (&exchange->target);
    if (exchange->principal != NULL) {
        settle (self, exchange);
        exchange->principal->requests--;
        principal_release (exchange->principal);
    }
}

static void handle_refusal (void *context, const exchange_t *exchange, response_t *response,
                            int status, const char *reason)
{
    service_t *self = context;
    const problem_kind_t kind = problem_of_status (status);
    self->numbers.refused[kind]++;
    problem_write (response, &(problem_t){.kind = kind, .detail = reason},
                   exchange != NULL ? exchange->id : NULL);
    if (exchange != NULL)
        response_field (response, "X-Request-Id", exchange->id);
    response_field (response, "Cache-Control", "no-store");
    response->status = status;
}

exchange_handler_t door_handler (service_t *service)
{
    return (exchange_handler_t){service, handle_head, handle_whole, handle_end, handle_refusal};
}
