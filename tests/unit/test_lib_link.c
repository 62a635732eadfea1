/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The link of the library's core: it comes, goes, and is told of. */
#include "lib_rig.h"

#include <stdlib.h>
#include <string.h>

static void hello_comes_first_and_alone (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig_submit (rig, 1, 5000);
    rig_welcome (rig);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    assert_int_equal (rig->message->token.len, 16);
    assert_int_equal (rig->message->token.data[3], rig->token);
    assert_int_equal (request->request_id.len, 16);
    assert_in_range (request->deadline_ms, 1, 5000);
    assert_int_equal (rig->body_bytes, 3);
    rig_free (rig);
}

static void what_is_pending_leaves_in_one_message (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    for (uint32_t i = 0; i < 1000; i++)
        rig_submit (rig, i, 5000);
    size_t messages = 0;
    size_t requests = 0;
    while (rig_take (rig)) {
        messages++;
        requests += rig->message->n_requests;
    }
    assert_int_equal (requests, 1000);
    assert_in_range (messages, 1, 2);
    rig_free (rig);
}

static void a_lost_link_repeats_with_the_same_request_id (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint8_t first[16];
    rig_submit (rig, 1, 5000);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    memcpy (first, request->request_id.data, 16);
    rig_cut (rig);
    assert_int_equal (core_link_wanted (rig->core).connection, 0);
    rig_pass (rig, 200);
    assert_int_equal (core_link_wanted (rig->core).connection, 2);
    rig->token = 8;
    rig_welcome (rig);
    request = rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    assert_memory_equal (request->request_id.data, first, 16);
    assert_int_equal (rig->message->token.data[0], 8);
    assert_in_range (request->deadline_ms, 1, 4900);
    tmq_id_t id = rig_id (1);
    rig_accept (rig, request->id, &id);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT, TMQ_OK);
    assert_memory_equal (answer->completion.receipts[0].id.bytes, id.bytes, 16);
    core_answer_free (answer);
    tmq_client_counters_t counters;
    core_counters (rig->core, &counters);
    assert_int_equal (counters.resent, 1);
    assert_int_equal (counters.outbox_requests, 0);
    assert_int_equal (counters.outbox_bytes, 0);
    rig_free (rig);
}

static void the_configuration_is_copied (void **state)
{
    (void) state;
    char ns[] = "films";
    char name[] = "studio";
    core_config_t config = rig_config ();
    config.ns = ns;
    config.name = name;
    rig_t *rig = rig_new (&config);
    memset (ns, 'x', sizeof ns - 1);
    memset (name, 'x', sizeof name - 1);
    const Taskmq__Hello *hello = rig_request (rig, TASKMQ__REQUEST__OP_HELLO)->hello;
    assert_string_equal (hello->namespace_, "films");
    assert_string_equal (hello->client, "studio");
    assert_int_equal (hello->features, TMQ_FEATURE_UNAVAILABLE);
    rig_free (rig);
}

static void no_link_says_hello_on_the_same_connection (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint64_t connection = core_link_wanted (rig->core).connection;
    rig_submit (rig, 1, 5000);
    uint64_t number = rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->id;
    rig_refuse (rig, number, TMQ_NO_LINK, 0);
    rig_refuse (rig, number, TMQ_NO_LINK, 0); /* the same said again changes nothing */
    rig_no_answer (rig);
    assert_int_equal (core_link_wanted (rig->core).connection, connection);
    rig_welcome (rig);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    rig_free (rig);
}

static void silence_of_three_heartbeats_is_death (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint64_t connection = core_link_wanted (rig->core).connection;
    for (int i = 0; i < 10; i++) { /* an answered heartbeat every two seconds keeps it up */
        rig_pass (rig, TMQ_HEARTBEAT_MS);
        while (rig_take (rig))
            rig_ok (rig, rig->message->requests[0]->id);
    }
    assert_int_equal (core_link_wanted (rig->core).connection, connection);
    rig_pass (rig, TMQ_HEARTBEAT_MS);
    const Taskmq__Request *last = rig_take (rig) ? rig->message->requests[0] : NULL;
    assert_non_null (last);
    rig->now_ms += 700; /* the last word does not come in step with the heartbeats */
    rig_ok (rig, last->id);
    int64_t silent_ms = 0;
    while (core_link_wanted (rig->core).connection == connection && silent_ms < 60000) {
        rig_pass (rig, 100);
        silent_ms += 100;
        while (rig_take (rig)) {
        }
    }
    assert_in_range (silent_ms, 3 * TMQ_HEARTBEAT_MS, 3 * TMQ_HEARTBEAT_MS + 100);
    rig_free (rig);
}

static void a_pause_of_the_process_is_not_silence (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint64_t connection = core_link_wanted (rig->core).connection;
    rig->now_ms += 40000; /* stopped and continued: one tick, whatever the clock says */
    core_tick (rig->core, rig->now_ms);
    assert_int_equal (core_link_wanted (rig->core).connection, connection);
    assert_int_equal (rig_request (rig, TASKMQ__REQUEST__OP_HEARTBEAT)->op_case,
                      TASKMQ__REQUEST__OP_HEARTBEAT);
    rig_free (rig);
}

static void until_wanted (rig_t *rig)
{
    while (core_link_wanted (rig->core).connection == 0)
        rig_pass (rig, 10);
}

static core_config_t pair_config (void)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:1", "tcp://127.0.0.1:2"};
    core_config_t config = rig_config ();
    config.endpoints = endpoints;
    config.endpoints_count = 2;
    return config;
}

/* A pause follows on each endpoint's try, not on each try. */
static void pauses_grow_and_endpoints_take_turns (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    rig_t *rig = rig_new (&config);
    int64_t previous_ms = 0;
    size_t alike = 0;
    for (size_t i = 0; i < 30; i++) {
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal (core_link_wanted (rig->core).endpoint, k);
            rig_cut (rig);
            core_tick (rig->core, rig->now_ms);
        }
        assert_int_equal (core_link_wanted (rig->core).connection, 0);
        int64_t pause_ms = core_next_due (rig->core) - rig->now_ms;
        assert_in_range (pause_ms, 100, 5000);
        if (i < 1)
            assert_in_range (pause_ms, 100, 125);
        if (i >= 6) { /* 100 ms were doubled six times: the longest, still with jitter */
            assert_in_range (pause_ms, 3750, 5000);
            alike += pause_ms == previous_ms ? 1 : 0;
        }
        previous_ms = pause_ms;
        rig_pass (rig, pause_ms);
    }
    assert_in_range (alike, 0, 2);
    rig_free (rig);
}

/* Also behind a link that was good: one that took over is found without a pause for each endpoint
 * before it. */
static void behind_a_lost_link_a_round_has_one_pause (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    rig_t *rig = rig_linked (&config);
    uint64_t first = core_link_wanted (rig->core).connection;
    rig_cut (rig);
    assert_int_equal (core_link_wanted (rig->core).connection, 0);
    rig_pass (rig, 125);
    assert_int_equal (core_link_wanted (rig->core).endpoint, 0);
    rig_cut (rig);
    core_tick (rig->core, rig->now_ms);
    assert_int_equal (core_link_wanted (rig->core).endpoint, 1);
    rig_welcome (rig);
    assert_int_equal (core_link_wanted (rig->core).connection, first + 2);
    rig_free (rig);
}

/* Brokers that refuse at once are not hammered: each is tried once in a pause. */
static void the_tries_in_a_second_are_bounded (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    config.reconnect_ms_max = 1000;
    rig_t *rig = rig_new (&config);
    uint64_t tries = 0;
    for (int64_t ms = 0; ms < 60000; ms++) {
        while (core_link_wanted (rig->core).connection != 0) {
            rig_cut (rig);
            core_tick (rig->core, rig->now_ms);
            tries++;
        }
        rig_pass (rig, 1);
    }
    assert_in_range (tries, 2 * 60, 2 * (60 * 4 / 3 + 4));
    rig_free (rig);
}

static void one_that_stands_still_is_tried_last (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    rig_t *rig = rig_linked (&config);
    rig_pass (rig, 4 * TMQ_HEARTBEAT_MS);
    until_wanted (rig);
    assert_int_equal (core_link_wanted (rig->core).endpoint, 1);
    rig_free (rig);
}

/* The connection to it is given up after so long. */
static int64_t silence_ms (rig_t *rig, size_t endpoint)
{
    until_wanted (rig);
    assert_int_equal (core_link_wanted (rig->core).endpoint, endpoint);
    assert_true (rig_take (rig)); /* a hello that nobody answers */
    const uint64_t connection = core_link_wanted (rig->core).connection;
    const int64_t begin_ms = rig->now_ms;
    while (core_link_wanted (rig->core).connection == connection)
        rig_pass (rig, 10);
    return rig->now_ms - begin_ms;
}

static void a_silent_one_gives_way_to_the_next (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    rig_t *rig = rig_new (&config);
    for (int i = 0; i < CORE_LINK_PATIENT_EACH - 1; i++)
        for (size_t k = 0; k < 2; k++)
            assert_int_equal (silence_ms (rig, k), CORE_LINK_SILENT_MS);
    for (size_t k = 0; k < 2; k++) /* a slow one is not given up for ever */
        assert_int_equal (silence_ms (rig, k), 3 * TMQ_HEARTBEAT_MS);
    assert_int_equal (silence_ms (rig, 0), CORE_LINK_SILENT_MS);
    until_wanted (rig);
    assert_int_equal (core_link_wanted (rig->core).endpoint, 1);
    rig_welcome (rig);
    for (int i = 0; i < 3; i++) { /* the good one comes first again */
        rig_pass (rig, config.reconnect_ms_max);
        rig_cut (rig);
        until_wanted (rig);
        assert_int_equal (core_link_wanted (rig->core).endpoint, 1);
        rig_welcome (rig);
    }
    rig_free (rig);
}

static void the_only_one_and_one_that_shook_hands_have_their_time (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    rig_t *rig = rig_new (NULL);
    for (int i = 0; i < 6; i++)
        assert_int_equal (silence_ms (rig, 0), 3 * TMQ_HEARTBEAT_MS);
    rig_free (rig);
    rig = rig_new (&config);
    for (size_t k = 0; k < 2; k++) {
        until_wanted (rig);
        if (k == 1) /* before or after the hello left */
            assert_true (rig_take (rig));
        core_link_greeted (rig->core, core_link_wanted (rig->core).connection, rig->now_ms);
        core_link_greeted (rig->core, 99, rig->now_ms); /* another connection */
        if (k == 0)
            assert_int_equal (silence_ms (rig, k), 3 * TMQ_HEARTBEAT_MS);
    }
    rig_pass (rig, 3 * TMQ_HEARTBEAT_MS - 1);
    assert_int_equal (core_link_wanted (rig->core).endpoint, 1);
    rig_pass (rig, 1);
    assert_int_equal (core_link_wanted (rig->core).connection, 0);
    assert_int_equal (silence_ms (rig, 0),
                      CORE_LINK_SILENT_MS); /* a new connection is a stranger */
    rig_free (rig);
}

/* Who is far away is slow in each step of a handshake, and who stands still is not. */
static void one_far_away_has_more_time (void **state)
{
    static const int64_t reach_ms[] = {0, 1, 100, 500, 1000};
    static const int64_t patience_ms[] = {1500, 1508, 2300, 5500, 6000};
    (void) state;
    core_config_t config = pair_config ();
    for (size_t i = 0; i < sizeof reach_ms / sizeof *reach_ms; i++) {
        rig_t *rig = rig_new (&config);
        until_wanted (rig);
        const uint64_t connection = core_link_wanted (rig->core).connection;
        assert_true (rig_take (rig));
        rig_pass (rig, reach_ms[i]);
        core_link_reached (rig->core, connection, rig->now_ms);
        core_link_reached (rig->core, connection + 1, rig->now_ms + 1); /* another one */
        assert_int_equal (core_next_due (rig->core) - rig->now_ms, patience_ms[i] - reach_ms[i]);
        rig_free (rig);
    }
}

static void assert_reason (rig_t *rig, const char *text)
{
    tmq_error_t error;
    bool final = false;
    assert_int_equal (core_link_state (rig->core, &error, &final), TMQ_UNREACHABLE);
    assert_false (final);
    assert_string_equal (error.text, text);
}

static void fail_with (rig_t *rig, const char *text)
{
    core_link_failed (rig->core, core_link_wanted (rig->core).connection, TMQ_UNREACHABLE, text,
                      rig->now_ms);
    core_tick (rig->core, rig->now_ms);
}

static void each_endpoint_is_named_with_its_reason (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    rig_t *rig = rig_new (&config);
    assert_reason (rig, "cannot reach tcp://127.0.0.1:1: no answer yet; tcp://127.0.0.1:2: not "
                        "tried yet");
    fail_with (rig, "no connection");
    assert_reason (rig, "cannot reach tcp://127.0.0.1:1: no connection; tcp://127.0.0.1:2: no "
                        "answer yet");
    fail_with (rig, "nobody listens there");
    assert_reason (rig, "cannot reach tcp://127.0.0.1:1: no connection; tcp://127.0.0.1:2: nobody "
                        "listens there");
    until_wanted (rig);
    silence_ms (rig, 0);
    assert_reason (rig, "cannot reach tcp://127.0.0.1:1: silent for 1.5 s; tcp://127.0.0.1:2: "
                        "nobody listens there");
    rig_welcome (rig);
    rig_cut (rig); /* what was wrong before the welcome is past */
    assert_reason (rig, "cannot reach tcp://127.0.0.1:2: the connection ended");
    rig_free (rig);
}

static void refuse_hello (rig_t *rig, int code)
{
    until_wanted (rig);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_HELLO)->id, code, 0);
}

static void assert_hint (rig_t *rig, const char *part)
{
    tmq_error_t error;
    bool final;
    core_link_state (rig->core, &error, &final);
    if (part != NULL)
        assert_non_null (strstr (error.hint, part));
    else
        assert_string_equal (error.hint, "");
}

/* More time is no help then; as long as one of them said so last, and no longer. */
static void a_store_out_of_reach_is_told_beside_what_is_not_known (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    rig_t *rig = rig_new (&config);
    rig_welcome (rig);
    rig_submit (rig, 1, 30000);
    assert_true (rig_take (rig)); /* it may have been done */
    rig_cut (rig);
    refuse_hello (rig, TMQ_UNAVAILABLE);
    assert_hint (rig, NULL);
    until_wanted (rig);
    fail_with (rig, "nobody listens there");
    assert_reason (rig, "cannot reach tcp://127.0.0.1:1: the broker's store is out of reach; "
                        "tcp://127.0.0.1:2: nobody listens there");
    assert_hint (rig, NULL);
    until_wanted (rig);
    fail_with (rig, "nobody listens there");
    assert_hint (rig, "a take-over may last longer");
    until_wanted (rig);
    fail_with (rig, "nobody listens there");
    for (int i = 0; i < 60; i++) { /* until the deadline, with pauses */
        refuse_hello (rig, TMQ_UNAVAILABLE);
        until_wanted (rig);
        fail_with (rig, "nobody listens there");
    }
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT, TMQ_UNKNOWN);
    assert_string_equal (answer->completion.error->text,
                         "the deadline passed; the request may have been done; the broker's store "
                         "is out of reach");
    core_answer_free (answer);
    rig_free (rig);
}

static void a_text_of_many_long_endpoints_is_bounded (void **state)
{
    (void) state;
    char uri[256];
    char reason[300];
    const char *endpoints[10];
    core_config_t config = rig_config ();
    memset (uri, 'u', sizeof uri);
    memset (reason, 'r', sizeof reason);
    memcpy (uri, "tcp://", 6);
    strcpy (uri + sizeof uri - 6, ":5560");
    reason[sizeof reason - 1] = '\0';
    for (size_t i = 0; i < 10; i++)
        endpoints[i] = uri;
    config.endpoints = endpoints;
    config.endpoints_count = 10;
    rig_t *rig = rig_new (&config);
    for (size_t i = 0; i < 10; i++)
        fail_with (rig, reason);
    tmq_error_t error;
    bool final;
    core_link_state (rig->core, &error, &final);
    size_t named = 0;
    for (const char *at = error.text; (at = strstr (at, ":5560: rrrr")) != NULL; at++)
        named++;
    assert_int_equal (named, CORE_LINK_REASONS_MAX);
    assert_non_null (strstr (error.text, "cannot reach ...u"));
    assert_string_equal (error.text + strlen (error.text) - strlen ("; and 2 more"),
                         "; and 2 more");
    rig_free (rig);
}

static void a_connection_that_takes_nothing_is_given_up (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig_pass (rig, 2000);
    assert_int_equal (core_link_wanted (rig->core).connection, 0);
    rig_pass (rig, 200);
    assert_true (rig_take (rig)); /* a hello that nobody answers */
    uint64_t connection = core_link_wanted (rig->core).connection;
    rig_pass (rig, 3 * TMQ_HEARTBEAT_MS + 1);
    assert_int_not_equal (core_link_wanted (rig->core).connection, connection);
    rig_free (rig);
}

static void authentication_errors_are_final (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig_submit (rig, 1, 5000);
    core_link_failed (rig->core, 1, TMQ_NOT_AUTHENTICATED, "authentication failed", rig->now_ms);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_NOT_AUTHENTICATED);
    tmq_error_t error;
    bool final = false;
    assert_int_equal (core_link_state (rig->core, &error, &final), TMQ_NOT_AUTHENTICATED);
    assert_true (final);
    assert_non_null (strstr (error.text, "tcp://127.0.0.1:1"));
    rig_pass (rig, 60000);
    assert_int_equal (core_link_wanted (rig->core).connection, 0);
    rig_free (rig);
}

static void a_refused_hello_is_final_or_not (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_HELLO)->id, TMQ_STOPPING, 0);
    rig_pass (rig, 500);
    rig_submit (rig, 1, 5000);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_HELLO)->id, TMQ_UNSUPPORTED, 0);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_UNSUPPORTED);
    rig_free (rig);
}

static void smaller_limits_are_unsupported (void **state)
{
    (void) state;
    static uint8_t token[16] = {1};
    rig_t *rig = rig_new (NULL);
    rig_submit (rig, 1, 5000);
    Taskmq__Welcome welcome = TASKMQ__WELCOME__INIT;
    welcome.version = TMQ_PROTOCOL_VERSION;
    welcome.token = (ProtobufCBinaryData){16, token};
    welcome.frame_bytes_max = TMQ_FRAME_BYTES_MAX / 2;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = rig_request (rig, TASKMQ__REQUEST__OP_HELLO)->id;
    reply.body_case = TASKMQ__REPLY__BODY_WELCOME;
    reply.welcome = &welcome;
    rig_reply (rig, &reply, NULL, 0);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_UNSUPPORTED);
    assert_false (rig_take (rig));
    rig_free (rig);
}

static void garbage_ends_the_link_not_the_request (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 5000);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    core_receive (rig->core, "\xff\xff\xff", 3, NULL, 0, rig->now_ms);
    assert_int_equal (core_link_wanted (rig->core).connection, 0);
    rig_no_answer (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    rig_free (rig);
}

static void goodbye_is_the_last_word (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 5000);
    core_goodbye (rig->core);
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 2);
    assert_int_equal (rig->message->requests[0]->op_case, TASKMQ__REQUEST__OP_SUBMIT);
    assert_int_equal (rig->message->requests[1]->op_case, TASKMQ__REQUEST__OP_GOODBYE);
    assert_false (core_goodbye_done (rig->core));
    rig_ok (rig, rig->message->requests[1]->id);
    assert_true (core_goodbye_done (rig->core));
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_UNKNOWN); /* it was handed over, and nobody answered */
    rig_free (rig);
}

/* As completions. */

static void assert_link (rig_t *rig, tmq_link_state_t state, int code, const char *text)
{
    core_answer_t *answer = rig_answer (rig, TMQ_OP_LINK, code);
    answer->queued = false; /* as when it is polled */
    assert_int_equal (answer->completion.link, state);
    if (text != NULL)
        assert_non_null (strstr (answer->completion.error->text, text));
    core_answer_free (answer);
    rig_no_answer (rig);
}

static void the_link_tells_when_it_comes_and_goes (void **state)
{
    (void) state;
    core_config_t config = rig_config ();
    config.link = true;
    rig_t *rig = rig_new (&config);
    rig_no_answer (rig);
    rig_cut (rig); /* never there */
    assert_link (rig, TMQ_LINK_LOST, TMQ_UNREACHABLE, "the connection ended");
    until_wanted (rig);
    rig_cut (rig);
    rig_no_answer (rig); /* nothing new */
    until_wanted (rig);
    rig_welcome (rig);
    assert_link (rig, TMQ_LINK_UP, TMQ_OK, NULL);
    rig_cut (rig);
    until_wanted (rig);
    rig_welcome (rig);
    assert_link (rig, TMQ_LINK_BACK, TMQ_OK, NULL); /* only the newest, if nobody looked */
    rig_cut (rig);
    assert_link (rig, TMQ_LINK_LOST, TMQ_UNREACHABLE, NULL);
    until_wanted (rig);
    core_link_failed (rig->core, core_link_wanted (rig->core).connection, TMQ_NOT_AUTHENTICATED,
                      "who are you", rig->now_ms);
    assert_link (rig, TMQ_LINK_REFUSED, TMQ_NOT_AUTHENTICATED, "who are you");
    rig_free (rig);
}

static void nobody_there (rig_t *rig)
{
    core_link_absent_at (rig->core, core_link_wanted (rig->core).connection, "nobody listens there",
                         "start it", rig->now_ms);
}

static void fail_fast_ends_what_nobody_can_serve (void **state)
{
    (void) state;
    core_config_t config = rig_config ();
    config.fail_fast = true;
    rig_t *rig = rig_new (&config);
    rig_submit (rig, 1, CORE_NEVER);
    nobody_there (rig);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBMIT, TMQ_UNREACHABLE);
    assert_non_null (strstr (answer->completion.error->text, "nobody listens there"));
    assert_string_equal (answer->completion.error->hint, "start it");
    core_answer_free (answer);
    rig_submit (rig, 2, CORE_NEVER); /* tries again, at once */
    core_tick (rig->core, rig->now_ms);
    rig_welcome (rig);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    rig_cut (rig); /* it was there once: from here on it is waited for */
    until_wanted (rig);
    nobody_there (rig);
    until_wanted (rig);
    nobody_there (rig);
    rig_no_answer (rig);
    rig_free (rig);
}

/* One of them may be a standby's that takes over. */
static void with_several_endpoints_nothing_is_certain (void **state)
{
    (void) state;
    core_config_t config = pair_config ();
    config.fail_fast = true;
    rig_t *rig = rig_new (&config);
    rig_submit (rig, 1, CORE_NEVER);
    nobody_there (rig);
    core_tick (rig->core, rig->now_ms); /* the other one is tried without a pause … */
    assert_int_equal (core_link_wanted (rig->core).endpoint, 1);
    nobody_there (rig);
    core_tick (rig->core, rig->now_ms); /* … and then both again, with one */
    assert_int_equal (core_link_wanted (rig->core).connection, 0);
    rig_no_answer (rig);
    until_wanted (rig);
    assert_int_equal (core_link_wanted (rig->core).endpoint, 0);
    rig_welcome (rig);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    rig_free (rig);
}

static void without_fail_fast_it_is_waited (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig_submit (rig, 1, CORE_NEVER);
    nobody_there (rig);
    rig_no_answer (rig);
    until_wanted (rig);
    rig_welcome (rig);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (hello_comes_first_and_alone),
        cmocka_unit_test (what_is_pending_leaves_in_one_message),
        cmocka_unit_test (a_lost_link_repeats_with_the_same_request_id),
        cmocka_unit_test (the_configuration_is_copied),
        cmocka_unit_test (no_link_says_hello_on_the_same_connection),
        cmocka_unit_test (silence_of_three_heartbeats_is_death),
        cmocka_unit_test (a_pause_of_the_process_is_not_silence),
        cmocka_unit_test (pauses_grow_and_endpoints_take_turns),
        cmocka_unit_test (a_silent_one_gives_way_to_the_next),
        cmocka_unit_test (one_far_away_has_more_time),
        cmocka_unit_test (the_only_one_and_one_that_shook_hands_have_their_time),
        cmocka_unit_test (behind_a_lost_link_a_round_has_one_pause),
        cmocka_unit_test (the_tries_in_a_second_are_bounded),
        cmocka_unit_test (one_that_stands_still_is_tried_last),
        cmocka_unit_test (each_endpoint_is_named_with_its_reason),
        cmocka_unit_test (a_store_out_of_reach_is_told_beside_what_is_not_known),
        cmocka_unit_test (a_text_of_many_long_endpoints_is_bounded),
        cmocka_unit_test (a_connection_that_takes_nothing_is_given_up),
        cmocka_unit_test (authentication_errors_are_final),
        cmocka_unit_test (a_refused_hello_is_final_or_not),
        cmocka_unit_test (smaller_limits_are_unsupported),
        cmocka_unit_test (garbage_ends_the_link_not_the_request),
        cmocka_unit_test (goodbye_is_the_last_word),
        cmocka_unit_test (the_link_tells_when_it_comes_and_goes),
        cmocka_unit_test (fail_fast_ends_what_nobody_can_serve),
        cmocka_unit_test (with_several_endpoints_nothing_is_certain),
        cmocka_unit_test (without_fail_fast_it_is_waited),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
