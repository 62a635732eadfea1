/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The handler of ZAP without connections: what is a request, who is let in, and who has to wait. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "net/buckets.h"
#include "net/guests.h"
#include "net/zap.h"

enum { SILENT_MS = 5000, ANSWER_MS = 1000 };

static const uint8_t a_key[KEY_BYTES + 1] = {7};

/* Buckets. */

static buckets_t *buckets_of (size_t names, uint32_t burst, uint32_t per_second)
{
    buckets_options_t options = {names, burst, per_second, {1, 2, 3}};
    return buckets_new (&options);
}

static void test_a_bucket_fills_again (void **state)
{
    (void) state;
    buckets_t *buckets = buckets_of (10, 3, 2);
    for (int i = 0; i < 3; i++)
        assert_true (buckets_take (buckets, "one", 3, 1000));
    assert_false (buckets_take (buckets, "one", 3, 1000));
    assert_true (buckets_take (buckets, "two", 3, 1000)); /* somebody else's */
    assert_true (buckets_take (buckets, "one", 3, 1500));
    assert_false (buckets_take (buckets, "one", 3, 1999));
    assert_true (buckets_take (buckets, "one", 3, 2000));
    /* Never more than its burst, however long nobody came. */
    for (int i = 0; i < 3; i++)
        assert_true (buckets_take (buckets, "one", 3, 1000000));
    assert_false (buckets_take (buckets, "one", 3, 1000000));
    buckets_free (&buckets);
    assert_null (buckets);
}

static void test_the_name_used_longest_ago_is_forgotten (void **state)
{
    (void) state;
    buckets_t *buckets = buckets_of (2, 1, 1);
    assert_true (buckets_take (buckets, "a", 1, 0));
    assert_true (buckets_take (buckets, "b", 1, 0));
    assert_false (buckets_take (buckets, "a", 1, 0));
    assert_true (buckets_take (buckets, "c", 1, 0)); /* b is forgotten */
    assert_int_equal (buckets_count (buckets), 2);
    assert_false (buckets_take (buckets, "a", 1, 0));
    assert_true (buckets_take (buckets, "b", 1, 0));
    buckets_free (&buckets);
}

/* Requests. */

typedef struct request {
    zap_frame_t frames[ZAP_FRAMES_MAX + 2];
    size_t count;
} request_t;

static zap_frame_t text (const char *bytes)
{
    return (zap_frame_t){bytes, strlen (bytes)};
}

static request_t null_request (const char *domain, const char *address)
{
    return (request_t){{text (""), text ("1.0"), text ("1"), text (domain), text (address),
                        text (""), text ("NULL")},
                       7};
}

static request_t curve_request (const char *domain, const char *address)
{
    request_t request = null_request (domain, address);
    request.frames[6] = text ("CURVE");
    request.frames[7] = (zap_frame_t){a_key, KEY_BYTES};
    request.count = 8;
    return request;
}

static bool parse (const request_t *request, zap_request_t *out)
{
    return zap_parse (request->frames, request->count, out);
}

static void test_requests_are_read (void **state)
{
    (void) state;
    zap_request_t out;
    request_t request = null_request ("ipc", "localhost:1000:100:42");
    assert_true (parse (&request, &out));
    assert_string_equal (out.domain, "ipc");
    assert_int_equal (out.mechanism, ZAP_NULL);
    assert_string_equal (out.address, "localhost:1000:100:42");
    request = curve_request ("curve", "10.0.0.9");
    assert_true (parse (&request, &out));
    assert_int_equal (out.mechanism, ZAP_CURVE);
    assert_memory_equal (out.key.bytes, a_key, KEY_BYTES);
}

static void test_a_knock_tells_its_key (void **state)
{
    (void) state;
    char knock[200];
    key_public_t key;
    snprintf (knock, sizeof (knock), "curve %s01 10.0.0.7",
              "00000000000000000000000000000000000000000000000000000000000000");
    assert_true (zap_knock_key (knock, &key));
    assert_int_equal (key.bytes[KEY_BYTES - 1], 1);
    assert_false (zap_knock_key ("ipc - localhost:1000:100:42", &key));
    assert_false (zap_knock_key ("curve", &key));
    assert_false (zap_knock_key (NULL, &key));
}

static void test_odd_requests_are_none (void **state)
{
    (void) state;
    zap_request_t out;
    static char long_text[400];
    memset (long_text, 'x', sizeof (long_text) - 1);
    request_t good = curve_request ("curve", "10.0.0.9");
    for (size_t count = 0; count < good.count; count++)
        assert_false (zap_parse (good.frames, count, &out));
    assert_false (zap_parse (good.frames, good.count + 1, &out));
    const struct {
        size_t at;
        zap_frame_t frame;
    } odd[] = {{0, text ("x")},       {1, text ("2.0")},   {1, text ("")},
               {3, text (long_text)}, {3, text ("a\nb")},  {4, text (long_text)},
               {4, text ("\x1b[0m")}, {6, text ("PLAIN")}, {6, text ("NULL")},
               {6, text ("")},        {7, {a_key, 31}},    {7, {a_key, 33}},
               {7, {NULL, 0}},        {6, text ("GSSAPI")}};
    for (size_t i = 0; i < sizeof (odd) / sizeof (odd[0]); i++) {
        request_t request = good;
        request.frames[odd[i].at] = odd[i].frame;
        assert_false (parse (&request, &out));
    }
}

/* Answers. */

typedef struct fixture {
    void *context;
    zap_t *zap;
    void *asker; /* as a connection inside ZeroMQ asks */
} fixture_t;

static void fixture_open (fixture_t *self)
{
    char error[256];
    int patience = ANSWER_MS;
    self->context = zmq_ctx_new ();
    zap_options_t options = {.context = self->context, .silent_ms = SILENT_MS};
    self->zap = zap_new (&options, error, sizeof (error));
    assert_non_null (self->zap);
    self->asker = zmq_socket (self->context, ZMQ_DEALER);
    zmq_setsockopt (self->asker, ZMQ_RCVTIMEO, &patience, sizeof (patience));
    assert_int_equal (zmq_connect (self->asker, "inproc://zeromq.zap.01"), 0);
}

static void fixture_close (fixture_t *self)
{
    zap_free (&self->zap);
    assert_null (self->zap);
    zmq_close (self->asker);
    zmq_ctx_term (self->context);
}

/* The status of the answer, 0: there is none. Everything of inproc has arrived when it was sent. */
static int ask (fixture_t *self, const request_t *request, int64_t now_ms, char identity[128])
{
    for (size_t i = 0; i < request->count; i++)
        zmq_send (self->asker, request->frames[i].bytes, request->frames[i].length,
                  i + 1 < request->count ? ZMQ_SNDMORE : 0);
    assert_true (zap_answer (self->zap, (now_t){now_ms, now_ms}));
    char frame[128];
    int status = 0;
    for (int i = 0; i < 7; i++) {
        int length = zmq_recv (self->asker, frame, sizeof (frame) - 1, ZMQ_DONTWAIT);
        if (length < 0)
            return 0;
        frame[length] = '\0';
        if (i == 3)
            status = atoi (frame);
        if (i == 5)
            memcpy (identity, frame, sizeof (frame));
    }
    return status;
}

static void test_who_is_let_in (void **state)
{
    (void) state;
    fixture_t fixture;
    char identity[128];
    fixture_open (&fixture);
    request_t ipc = null_request ("ipc", "localhost:1000:100:42");
    assert_int_equal (ask (&fixture, &ipc, 0, identity), 200);
    assert_string_equal (identity, "uid:1000");
    request_t loopback = null_request ("loopback", "127.0.0.1");
    assert_int_equal (ask (&fixture, &loopback, 0, identity), 200);
    assert_string_equal (identity, "local");
    request_t plain = null_request ("plain", "10.0.0.7");
    assert_int_equal (ask (&fixture, &plain, 0, identity), 200);
    assert_string_equal (identity, "addr:10.0.0.7");
    request_t keyless = null_request ("curve", "10.0.0.7");
    assert_int_equal (ask (&fixture, &keyless, 0, identity), 400);
    request_t nobody = null_request ("ipc", "localhost:x");
    assert_int_equal (ask (&fixture, &nobody, 0, identity), 400);
    request_t unknown = curve_request ("curve", "10.0.0.9");
    assert_int_equal (ask (&fixture, &unknown, 0, identity), 400);
    assert_string_equal (identity, "");
    request_t odd = null_request ("ipc", "localhost:1000:100:42");
    odd.frames[6] = text ("PLAIN");
    assert_int_equal (ask (&fixture, &odd, 0, identity), 500);
    zap_stop (fixture.zap);
    assert_int_equal (ask (&fixture, &ipc, 0, identity), 300);
    zap_stats_t stats;
    zap_stats (fixture.zap, &stats);
    assert_int_equal (stats.accepted, 3);
    assert_int_equal (stats.refused, 5);
    fixture_close (&fixture);
}

static void test_who_tries_often_has_to_wait (void **state)
{
    (void) state;
    fixture_t fixture;
    char identity[128];
    fixture_open (&fixture);
    request_t guess = curve_request ("curve", "10.0.0.9");
    request_t other = curve_request ("curve", "10.0.0.10");
    request_t good = null_request ("loopback", "10.0.0.9");
    for (int i = 0; i < ZAP_REFUSALS_BURST; i++)
        assert_int_equal (ask (&fixture, &guess, 0, identity), 400);
    assert_int_equal (ask (&fixture, &guess, 0, identity), 0);
    assert_int_equal (ask (&fixture, &other, 0, identity), 400);
    assert_int_equal (ask (&fixture, &good, 0, identity), 200); /* the same address, a right key */
    assert_int_equal (ask (&fixture, &guess, 1000, identity), 400);
    assert_int_equal (ask (&fixture, &guess, 1000, identity), 0);
    /* Only so many wait at a time; their places come back when ZeroMQ has ended them. */
    for (int i = 2; i < ZAP_SILENT_MAX; i++)
        assert_int_equal (ask (&fixture, &guess, 1000, identity), 0);
    assert_int_equal (ask (&fixture, &guess, 1000, identity), 400);
    assert_int_equal (ask (&fixture, &guess, SILENT_MS, identity), 400); /* one has come back */
    assert_int_equal (ask (&fixture, &guess, SILENT_MS - 1, identity), 400);
    zap_stats_t stats;
    zap_stats (fixture.zap, &stats);
    assert_int_equal (stats.silent, ZAP_SILENT_MAX);
    fixture_close (&fixture);
}

static policy_t *policy_of (const char *text)
{
    policy_error_t error;
    policy_names_t names = {.own_uid = 7};
    policy_t *policy = policy_parse (text, strlen (text), &names, &error);
    if (policy == NULL)
        fail_msg ("%s", error.text);
    return policy;
}

static void test_a_policy_says_who_comes_in (void **state)
{
    (void) state;
    fixture_t fixture;
    char identity[128];
    char text[256];
    char key[KEY_TEXT_SIZE];
    key_public_t public_key;
    memcpy (public_key.bytes, a_key, KEY_BYTES);
    key_text_public (key, &public_key);
    snprintf (text, sizeof (text), "ci key:%s client(build) until=2001-01-01\n", key);
    policy_t *ended = policy_of (text);
    snprintf (text, sizeof (text), "ci key:%s client(build)\nsee uid:1000 observer(build)\n", key);
    policy_t *policy = policy_of (text);
    fixture_open (&fixture);
    request_t curve = curve_request ("curve", "10.0.0.9");
    assert_int_equal (ask (&fixture, &curve, 0, identity), 400);
    zap_policy (fixture.zap, policy);
    policy_drop (policy);
    assert_int_equal (ask (&fixture, &curve, 0, identity), 200);
    assert_string_equal (identity, "ci");
    /* The feed of a namespace is for those who may observe all of it. */
    request_t feed = curve_request ("feed/build", "10.0.0.9");
    assert_int_equal (ask (&fixture, &feed, 0, identity), 400);
    request_t seer = null_request ("feed/build", "localhost:1000:1:1");
    assert_int_equal (ask (&fixture, &seer, 0, identity), 200);
    seer = null_request ("feed/other", "localhost:1000:1:1");
    assert_int_equal (ask (&fixture, &seer, 0, identity), 400);
    zap_policy (fixture.zap, ended);
    policy_drop (ended);
    assert_int_equal (ask (&fixture, &curve, INT64_C (1) << 41, identity), 400);
    fixture_close (&fixture);
}

/* A subscriber on ipc that starts often has another pid each time, and stays one. */
static void test_a_user_is_one_guest_of_a_feed (void **state)
{
    (void) state;
    fixture_t fixture;
    char identity[128];
    fixture_open (&fixture);
    for (int i = 0; i < 2 * GUESTS_MAX; i++) {
        char address[64];
        snprintf (address, sizeof (address), "localhost:1000:1:%d", i + 1);
        request_t request = null_request ("feed/build", address);
        assert_int_equal (ask (&fixture, &request, 0, identity), 200);
    }
    assert_true (zap_is_feed_current (fixture.zap, "feed/build"));
    policy_t *policy = policy_of ("other uid:5 reader(*)\nsee uid:1000 client(*)\n");
    zap_policy (fixture.zap, policy);
    policy_drop (policy);
    assert_false (zap_is_feed_current (fixture.zap, "feed/build"));
    fixture_close (&fixture);
}

static void test_who_connects_often_comes_again_later (void **state)
{
    (void) state;
    fixture_t fixture;
    char identity[128];
    fixture_open (&fixture);
    policy_t *policy = policy_of ("a uid:1000 client(x)\n");
    request_t often = null_request ("ipc", "localhost:1000:1:1");
    request_t other = null_request ("ipc", "localhost:1001:1:1");
    request_t own = null_request ("ipc", "localhost:7:1:1");
    /* Without a policy everybody may do everything; nobody is counted. */
    for (int i = 0; i < 2 * ZAP_CONNECTS_BURST; i++)
        assert_int_equal (ask (&fixture, &often, 0, identity), 200);
    zap_policy (fixture.zap, policy);
    policy_drop (policy);
    for (int i = 0; i < ZAP_CONNECTS_BURST; i++)
        assert_int_equal (ask (&fixture, &often, 0, identity), 200);
    assert_int_equal (ask (&fixture, &often, 0, identity), 300);
    assert_int_equal (ask (&fixture, &other, 0, identity), 200);
    for (int i = 0; i < 2 * ZAP_CONNECTS_BURST; i++)
        assert_int_equal (ask (&fixture, &own, 0, identity), 200);
    for (int i = 0; i < ZAP_CONNECTS_PER_SECOND; i++)
        assert_int_equal (ask (&fixture, &often, 1000, identity), 200);
    assert_int_equal (ask (&fixture, &often, 1000, identity), 300);
    zap_stats_t stats;
    zap_stats (fixture.zap, &stats);
    assert_int_equal (stats.rated, 2);
    fixture_close (&fixture);
}

static void test_networks_of_ipv6_are_one_address (void **state)
{
    (void) state;
    fixture_t fixture;
    char identity[128];
    fixture_open (&fixture);
    for (int i = 0; i < ZAP_REFUSALS_BURST; i++) {
        char address[64];
        snprintf (address, sizeof (address), "2001:db8::%x", i + 1);
        request_t guess = curve_request ("curve", address);
        assert_int_equal (ask (&fixture, &guess, 0, identity), 400);
    }
    request_t same = curve_request ("curve", "2001:db8:0:0:ffff::1");
    assert_int_equal (ask (&fixture, &same, 0, identity), 0);
    request_t other = curve_request ("curve", "2001:db8:0:1::1");
    assert_int_equal (ask (&fixture, &other, 0, identity), 400);
    /* On a listener of both families an address of IPv4 is still one. */
    for (int i = 0; i < ZAP_REFUSALS_BURST; i++) {
        char address[64];
        snprintf (address, sizeof (address), "::ffff:10.0.0.%d", i + 1);
        request_t guess = curve_request ("curve", address);
        assert_int_equal (ask (&fixture, &guess, 0, identity), 400);
    }
    request_t mapped = curve_request ("curve", "::ffff:10.0.1.1");
    assert_int_equal (ask (&fixture, &mapped, 0, identity), 400);
    fixture_close (&fixture);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_bucket_fills_again),
        cmocka_unit_test (test_the_name_used_longest_ago_is_forgotten),
        cmocka_unit_test (test_requests_are_read),
        cmocka_unit_test (test_a_knock_tells_its_key),
        cmocka_unit_test (test_odd_requests_are_none),
        cmocka_unit_test (test_who_is_let_in),
        cmocka_unit_test (test_who_tries_often_has_to_wait),
        cmocka_unit_test (test_a_policy_says_who_comes_in),
        cmocka_unit_test (test_a_user_is_one_guest_of_a_feed),
        cmocka_unit_test (test_who_connects_often_comes_again_later),
        cmocka_unit_test (test_networks_of_ipv6_are_one_address),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
