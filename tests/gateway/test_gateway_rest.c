/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The way in and the routes, with a way to the broker that the test completes. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/policy.h"
#include "base/effort.h"
#include "exposition.h"
#include "fake_link.h"
#include "rest/answer.h"
#include "rest/door.h"
#include "rest/routes.h"

#define ID "01a2007e-d6c2-7f5e-8f1f-c21cce16b92e"

/* One request at a time, and what came of it. */
typedef struct stage {
    service_t service;
    exchange_handler_t handler;
    principal_t principal;
    account_t account;
    codec_t *codec;
    exchange_t exchange;
    bool open;
    int status; /* 0: not answered yet */
    char fields[2048];
    char body[4096];
} stage_t;

static stage_t stage;

static void drop_body (exchange_t *exchange)
{
    bytes_free (&exchange->body);
}

static void take_reply (exchange_t *exchange, response_t *response)
{
    assert_ptr_equal (exchange, &stage.exchange);
    assert_true (stage.open);
    stage.status = response->status;
    snprintf (stage.fields, sizeof stage.fields, "%.*s", (int) response->fields.length,
              (const char *) response->fields.data);
    snprintf (stage.body, sizeof stage.body, "%.*s", (int) response->body.length,
              (const char *) response->body.data);
    stage.open = false;
    stage.handler.end (stage.handler.context, exchange, response->status);
    bytes_free (&exchange->body);
    response_clear (response);
}

static int set_up (void **state)
{
    (void) state;
    memset (&stage, 0, sizeof stage);
    memset (&fake_link, 0, sizeof fake_link);
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        stage.service.settings.numbers[i] = 1000000;
    stage.principal = (principal_t){.name = "ann",
                                    .roles = ROLE_OPERATOR,
                                    .namespaces = {"default"},
                                    .namespaces_count = 1,
                                    .account = account_retain (&stage.account),
                                    .references = 1};
    stage.service.anybody = &stage.principal;
    stage.service.links[0] = (link_t *) &stage; /* never looked into */
    stage.service.links_count = 1;
    stage.handler = door_handler (&stage.service);
    effort_begin (); /* as the loop does: what a slow start took is nobody's */
    return 0;
}

static void leave (void)
{
    if (stage.open) {
        stage.open = false;
        stage.handler.end (stage.handler.context, &stage.exchange, 0);
        bytes_free (&stage.exchange.body);
    }
    codec_free (stage.codec);
    stage.codec = NULL;
}

static int tear_down (void **state)
{
    (void) state;
    leave ();
    assert_int_equal (stage.principal.requests, 0);
    assert_int_equal (stage.principal.references, 1);
    assert_int_equal (stage.account.references, 1);
    for (size_t i = 0; i < HOLDS; i++)
        assert_int_equal (stage.account.held[i], 0);
    return 0;
}

/* head: request line and fields, each with its end, but for Host and the length. */
static void ask (const char *head, const char *body)
{
    static const codec_limits_t limits = {16384, 100, 8192};
    char text[8192];
    size_t used, body_length;
    const uint8_t *piece;
    leave ();
    const size_t length = (size_t) snprintf (
        text, sizeof text, "%sHost: localhost\r\nContent-Length: %zu\r\n\r\n", head, strlen (body));
    stage.status = 0;
    stage.codec = codec_new (&limits);
    assert_int_equal (codec_feed (stage.codec, text, length, &used, &piece, &body_length),
                      CODEC_HEAD);
    memset (&stage.exchange, 0, sizeof stage.exchange);
    stage.exchange.request = codec_request (stage.codec);
    stage.exchange.reply = take_reply;
    stage.exchange.drop_body = drop_body;
    snprintf (stage.exchange.peer, sizeof stage.exchange.peer, "127.0.0.1");
    stage.open = true;
    stage.handler.head (stage.handler.context, &stage.exchange);
    if (!stage.open)
        return;
    bytes_append_text (&stage.exchange.body, body);
    stage.handler.whole (stage.handler.context, &stage.exchange);
}

static void assert_answer (int status, const char *text)
{
    if (stage.status != status || strstr (stage.body, text) == NULL)
        fail_msg ("status %d, not %d: %s", stage.status, status, stage.body);
}

#define JSON "Content-Type: application/json\r\n"
#define SUBMIT "POST /v1/tasks HTTP/1.1\r\n" JSON

static void complete_submit (int code, bool existing)
{
    tmq_receipt_t receipt = {.code = code, .existing = existing, .status = TMQ_STATUS_QUEUED};
    tmq_error_t error = {.code = code, .retry_after_ms = 1500};
    tmq_completion_t completion = {.op = TMQ_OP_SUBMIT,
                                   .code = code,
                                   .error = code != TMQ_OK ? &error : NULL,
                                   .receipts = &receipt,
                                   .receipts_count = 1};
    tmq_id_parse (&receipt.id, ID);
    assert_string_equal (fake_link.started, "submit");
    fake_link_complete (&completion);
}

static void test_a_submit_goes_through (void **state)
{
    (void) state;
    ask (SUBMIT "Idempotency-Key: k\r\n",
         "{\"data\": [1.10, \"}\"] ,\"ttl_ms\":60000,\"queue\":\"q\"}");
    assert_int_equal (stage.status, 0);
    assert_string_equal (fake_link.queue, "q");
    assert_string_equal (fake_link.payload, "[1.10, \"}\"]");
    assert_string_equal (fake_link.principal, "ann");
    assert_int_equal (strncmp (fake_link.dedup_key, "ik:", 3), 0);
    assert_int_equal (fake_link.ttl_ms, 60000);
    complete_submit (TMQ_OK, false);
    /* The task is looked up; where that fails, the receipt is the answer: it was taken. */
    assert_int_equal (stage.status, 0);
    assert_string_equal (fake_link.started, "get");
    fake_link_complete (&(tmq_completion_t){.op = TMQ_OP_GET, .code = TMQ_UNREACHABLE});
    assert_answer (201, ID);
    assert_non_null (strstr (stage.fields, "Location: /v1/tasks/" ID "\r\n"));
    ask (SUBMIT "Prefer: return=minimal\r\n", "{\"queue\":\"q\"}");
    assert_string_equal (fake_link.dedup_key, "");
    complete_submit (TMQ_OK, true);
    assert_answer (200, "\"existing\":true");
}

/* A wait is cut to what the gateway grants; what is no number of seconds is passed over. */
static void test_waits_that_are_preferred (void **state)
{
    static const struct {
        const char *prefer;
        uint32_t ms;
    } waits[] = {{"wait=30", 30000},
                 {"wait=60", 60000},
                 {"wait=61", 60000},
                 {"wait=99999999999999999999", 60000},
                 {"return=minimal, wait=5", 5000},
                 {"wait=5;why, return=minimal", 5000},
                 {"wait=0", 0},
                 {"wait=", 0},
                 {"wait=x", 0},
                 {"wait=5x", 0},
                 {"wait=-5", 0},
                 {"await=5", 0},
                 {"return=minimal", 0}};
    (void) state;
    stage.service.settings.numbers[SETTING_WAIT_MAX] = 60000;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        char head[160];
        snprintf (head, sizeof head, "GET /v1/tasks/" ID " HTTP/1.1\r\nPrefer: %s\r\n",
                  waits[i].prefer);
        ask (head, "");
        if (wait_wanted_ms (&stage.exchange) != waits[i].ms)
            fail_msg ("%s: %u ms", waits[i].prefer, wait_wanted_ms (&stage.exchange));
    }
}

/* What was done is not told as not done, because it could not be looked at. */
static void test_what_was_done_was_done (void **state)
{
    tmq_changed_t changed = {.code = TMQ_OK};
    (void) state;
    for (int refusal = 0; refusal < 2; refusal++) {
        ask ("POST /v1/tasks/" ID "/retry HTTP/1.1\r\n", "");
        assert_string_equal (fake_link.started, "retry");
        fake_link.refusal = refusal == 1 ? TMQ_UNREACHABLE : TMQ_OK;
        fake_link_complete (&(tmq_completion_t){
            .op = TMQ_OP_RETRY, .code = TMQ_OK, .changed = &changed, .changed_count = 1});
        fake_link.refusal = TMQ_OK;
        if (refusal == 0) {
            assert_string_equal (fake_link.started, "get");
            fake_link_complete (&(tmq_completion_t){.op = TMQ_OP_GET, .code = TMQ_UNREACHABLE});
        }
        assert_answer (504, "it was done");
    }
}

/* What the library tells, as HTTP tells it. */
static void test_every_code_has_a_status (void **state)
{
    static const struct {
        int code;
        int status;
        const char *type;
    } rows[] = {{TMQ_INVALID, 400, "invalid"},
                {TMQ_UNSUPPORTED, 400, "unsupported"},
                {TMQ_BAD_CURSOR, 400, "bad-cursor"},
                {TMQ_DENIED, 403, "denied"},
                {TMQ_NOT_FOUND, 404, "not-found"},
                {TMQ_EXPIRED, 410, "expired"},
                {TMQ_PURGED, 410, "purged"},
                {TMQ_CONFLICT, 409, "conflict"},
                {TMQ_WRONG_STATUS, 409, "wrong-status"},
                {TMQ_AMBIGUOUS, 409, "ambiguous"},
                {TMQ_TOO_LARGE, 413, "too-large"},
                {TMQ_OVERLOADED, 503, "overloaded"},
                {TMQ_STOPPING, 503, "stopping"},
                {TMQ_UNAVAILABLE, 503, "unavailable"},
                {TMQ_UNREACHABLE, 503, "unreachable"},
                {TMQ_OUTBOX_FULL, 503, "outbox-full"},
                {TMQ_STORE_FULL, 507, "store-full"},
                {TMQ_UNKNOWN, 504, "unknown"},
                {TMQ_LIMIT, 429, "limit"},
                {TMQ_INTERNAL, 500, "internal"},
                {TMQ_NO_MEMORY, 500, "no-memory"},
                {TMQ_PROTOCOL, 500, "internal"}};
    char type[64];
    (void) state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ask (SUBMIT, "{\"queue\":\"q\"}");
        complete_submit (rows[i].code, false);
        snprintf (type, sizeof type, "\"type\":\"/problems/%s\"", rows[i].type);
        assert_answer (rows[i].status, type);
        const bool advice = strstr (stage.fields, "Retry-After: 2\r\n") != NULL;
        assert_int_equal (advice, tmq_code_retriable (rows[i].code));
    }
    ask (SUBMIT, "{\"queue\":\"q\"}");
    complete_submit (TMQ_UNKNOWN, false);
    assert_answer (504, "\"task_id\":\"" ID "\"");
    ask (SUBMIT "Idempotency-Key: k\r\n", "{\"queue\":\"q\"}");
    complete_submit (TMQ_CONFLICT, false);
    assert_answer (422, "idempotency-key-reused");
    fake_link.refusal = TMQ_OUTBOX_FULL;
    ask (SUBMIT, "{\"queue\":\"q\"}");
    assert_answer (503, "OUTBOX_FULL");
}

static void test_who_leaves_is_forgotten (void **state)
{
    (void) state;
    ask (SUBMIT, "{\"queue\":\"q\"}");
    assert_true (stage.open);
    leave ();
    assert_int_equal (fake_link.forgotten, 42);
    assert_int_equal (stage.service.numbers.left, 1);
}

/* Every role at every route: in, or 403. */
static void test_roles (void **state)
{
    static const unsigned roles[] = {ROLE_OBSERVER, ROLE_CLIENT, ROLE_OPERATOR, ROLE_METRICS,
                                     ROLE_CLIENT | ROLE_METRICS};
    char head[200];
    (void) state;
    for (size_t i = 0; routes_at (i) != NULL; i++) {
        const route_t *route = routes_at (i);
        for (size_t j = 0; j < sizeof roles / sizeof *roles; j++) {
            stage.principal.roles = roles[j];
            snprintf (head, sizeof head, "%s %s HTTP/1.1\r\n", http_method_text (route->method),
                      route->path);
            for (char *at = head; *at != '\0'; at++)
                if (*at == '{' || *at == '}')
                    *at = 'x';
            ask (head, "");
            if ((stage.status == 403) == policy_allows (roles[j], route->access))
                fail_msg ("%s %s, roles %u: %d", http_method_text (route->method), route->path,
                          roles[j], stage.status);
        }
    }
}

static void complete_get (const char *owner)
{
    tmq_label_t label = {"gw.principal", owner};
    tmq_task_t task = {.ns = "default", .queue = "q", .labels = &label, .labels_count = 1};
    tmq_completion_t completion = {.op = TMQ_OP_GET, .task = &task};
    tmq_id_parse (&task.id, ID);
    task.version = 3;
    fake_link_complete (&completion);
}

/* A foreign task is as one that is not there, but for what names the request. */
static void test_foreign_is_as_absent (void **state)
{
    static const char *const heads[] = {
        "GET /v1/tasks/" ID " HTTP/1.1\r\n",         "GET /v1/tasks/" ID "/events HTTP/1.1\r\n",
        "GET /v1/tasks/" ID "/result HTTP/1.1\r\n",  "GET /v1/tasks/" ID "/why HTTP/1.1\r\n",
        "POST /v1/tasks/" ID "/cancel HTTP/1.1\r\n", "POST /v1/tasks/" ID "/retry HTTP/1.1\r\n",
        "POST /v1/tasks/" ID "/resume HTTP/1.1\r\n"};
    static const char name[] = "X-Request-Id: same\r\n";
    char head[200];
    char absent[4096];
    (void) state;
    stage.principal.roles = ROLE_CLIENT;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        snprintf (head, sizeof head, "%s%s", heads[i], name);
        ask (head, "");
        assert_string_equal (fake_link.started, "get");
        fake_link_complete (&(tmq_completion_t){.op = TMQ_OP_GET, .code = TMQ_NOT_FOUND});
        assert_answer (404, "not-found");
        memcpy (absent, stage.body, sizeof absent);
        ask (head, "");
        complete_get ("bob");
        assert_int_equal (stage.status, 404);
        assert_string_equal (stage.body, absent);
    }
    ask (heads[0], "");
    complete_get ("ann");
    assert_int_equal (stage.status, 200);
    assert_non_null (strstr (stage.fields, "ETag: \"7-3\"\r\n"));
    ask ("GET /v1/tasks/" ID " HTTP/1.1\r\nIf-None-Match: \"7-2\", \"7-3\"\r\n", "");
    complete_get ("ann");
    assert_int_equal (stage.status, 304);
}

static void test_the_way_in (void **state)
{
    (void) state;
    ask ("GET /v1/tasks/../x HTTP/1.1\r\n", "");
    assert_answer (400, "malformed");
    ask ("GET /v1/none HTTP/1.1\r\n", "");
    assert_answer (404, "not-found");
    ask ("PUT /v1/tasks HTTP/1.1\r\n", "");
    assert_answer (405, "method-not-allowed");
    assert_non_null (strstr (stage.fields, "Allow: GET, HEAD, POST\r\n"));
    ask ("POST /v1/tasks HTTP/1.1\r\nContent-Type: text/plain\r\n", "x");
    assert_answer (415, "unsupported-media-type");
    ask ("GET /healthz HTTP/1.1\r\nOrigin: http://evil.example\r\n", "");
    assert_answer (403, "foreign-origin");
    ask ("GET /healthz HTTP/1.1\r\nX-Request-Id: a b\r\n", "");
    assert_answer (200, "ok");
    assert_null (strstr (stage.fields, "a b"));
    stage.service.settings.numbers[SETTING_RATE] = 1;
    stage.service.settings.numbers[SETTING_RATE_BURST] = 2;
    stage.principal.rate = (rate_t){0, 0};
    for (int i = 0; i < 2; i++) {
        ask ("GET /v1/stats HTTP/1.1\r\n", "");
        assert_int_equal (stage.status, 0);
    }
    ask ("GET /v1/stats HTTP/1.1\r\n", "");
    assert_answer (429, "rate-limited");
    stage.service.anybody = NULL;
    ask ("GET /v1/stats HTTP/1.1\r\n", "");
    assert_answer (401, "not-authenticated");
    assert_non_null (strstr (stage.fields, "WWW-Authenticate: Bearer"));
}

/* Who took too much of the processor waits, but only where somebody else asks. */
static void test_time (void **state)
{
    principal_t other = {.name = "bob"};
    (void) state;
    stage.service.settings.numbers[SETTING_PRINCIPAL_TIME] = 500;
    service_spend (&stage.service, &stage.principal, 60e6);
    ask ("GET /v1/session HTTP/1.1\r\n", "");
    assert_int_equal (stage.status, 200);
    service_note (&stage.service, &other);
    assert_int_equal (service_wait_ms (&stage.service, &other), 0);
    const uint64_t wait_ms = service_wait_ms (&stage.service, &stage.principal);
    assert_in_range (wait_ms, 1, 3 * 60000); /* what the test itself took counts, too */
    ask ("GET /v1/session HTTP/1.1\r\n", "");
    assert_answer (429, "'principal_time'");
    assert_non_null (strstr (stage.fields, "Retry-After: "));
    service_spend (&stage.service, &stage.principal, -60e6); /* it had been expected, and was not */
    ask ("GET /v1/session HTTP/1.1\r\n", "");
    assert_int_equal (stage.status, 200);
}

/* More queues than a scrape can have lines for: the others are one, and none is told twice. */
static void test_many_queues (void **state)
{
    enum { EXTRA = 5, QUEUES = EXPOSITION_QUEUES_MAX + EXTRA };
    static tmq_queue_depth_t queues[QUEUES];
    static char names[QUEUES][16];
    tmq_stats_t stats = {.queues = queues, .queues_count = QUEUES};
    const exposition_space_t space = {.ns = "default", .stats = &stats};
    bytes_t text = BYTES_INIT;
    (void) state;
    for (size_t i = 0; i < QUEUES; i++) {
        snprintf (names[i], sizeof names[i], "q%04zu", i);
        queues[i] = (tmq_queue_depth_t){
            .queue = names[i], .ready = 1, .completed = 2, .oldest_ready_ms = i * 1000};
    }
    queues[3].queue = "_other"; /* somebody's name */
    exposition_queues (&text, &space, 1);
    const char *told = bytes_text (&text);
    assert_non_null (strstr (told, "queue=\"q1000\",state=\"ready\"} 1\n"));
    assert_null (strstr (told, "queue=\"q1001\""));
    const char *others = strstr (told, "queue=\"_other\",state=\"ready\"} 5\n");
    assert_non_null (others);
    assert_null (strstr (others + 1, "queue=\"_other\",state=\"ready\""));
    assert_non_null (
        strstr (told, "queue_completed_total{namespace=\"default\",queue=\"_other\"} 10\n"));
    assert_non_null (
        strstr (told, "queue_oldest_ready_seconds{namespace=\"default\",queue=\"_other\"} 1004\n"));
    bytes_clear (&text);
    stats.queues_count = EXPOSITION_QUEUES_MAX;
    exposition_queues (&text, &space, 1);
    assert_non_null (strstr (bytes_text (&text), "queue=\"_other\",state=\"ready\"} 1\n"));
    bytes_free (&text);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST (test_time),
        TEST (test_a_submit_goes_through),
        TEST (test_every_code_has_a_status),
        TEST (test_who_leaves_is_forgotten),
        TEST (test_roles),
        TEST (test_foreign_is_as_absent),
        TEST (test_the_way_in),
        TEST (test_waits_that_are_preferred),
        TEST (test_what_was_done_was_done),
        TEST (test_many_queues),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
