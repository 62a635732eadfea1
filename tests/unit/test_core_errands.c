/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests that need a file: the engine gives them away as errands and answers when they are
 * done. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

enum { ERRAND_PEERS = 16 }; /* as many links as fill the table */

static uint64_t send_reload (rig_t *rig, size_t peer)
{
    Taskmq__Reload reload = TASKMQ__RELOAD__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_RELOAD;
    request.reload = &reload;
    return rig_send (rig, peer, &request, NULL, 0);
}

static uint64_t send_enroll (rig_t *rig, size_t peer)
{
    Taskmq__Enroll enroll = TASKMQ__ENROLL__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t key[32] = {1};
    uint8_t id[16] = {1};
    enroll.public_key = (ProtobufCBinaryData){sizeof (key), key};
    request.op_case = TASKMQ__REQUEST__OP_ENROLL;
    request.enroll = &enroll;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    return rig_send (rig, peer, &request, NULL, 0);
}

static void done (rig_t *rig, errand_t *errand)
{
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
}

static void an_errand_becomes_the_answer (void **state)
{
    rig_t *rig = *state;
    uint64_t request = send_reload (rig, 0);
    rig_settle (rig);
    assert_null (rig_reply (rig, 0, request));
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    assert_null (engine_errand_next (rig->engine));
    assert_int_equal (errand->op, TASKMQ__REQUEST__OP_RELOAD);
    assert_int_equal (errand->peer, rig->peers[0].id);
    assert_string_equal (errand->identity, rig->peers[0].identity);
    Taskmq__Request *asked =
        taskmq__request__unpack (NULL, buf_length (errand->request), buf_bytes (errand->request));
    assert_non_null (asked);
    assert_int_equal (asked->id, request);
    taskmq__request__free_unpacked (asked, NULL);
    static const uint8_t fields[] = {1 << 3, 1, 2 << 3, 7}; /* changed, 7 principals */
    errand->member = TASKMQ__REPLY__BODY_RELOADED;
    errand->fields = buf_new (fields, sizeof (fields));
    done (rig, errand);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    const Taskmq__Reply *reply = rig_reply (rig, 0, request)->reply;
    assert_int_equal (reply->body_case, TASKMQ__REPLY__BODY_RELOADED);
    assert_true (reply->reloaded->changed);
    assert_int_equal (reply->reloaded->principals, 7);
}

static void an_errand_may_be_refused (void **state)
{
    rig_t *rig = *state;
    uint64_t request = send_reload (rig, 0);
    errand_t *errand = engine_errand_next (rig->engine);
    errand_refuse (errand, TMQ_INVALID, "access:%d: what is this", 7);
    done (rig, errand);
    assert_int_equal (rig_code (rig, 0, request), TMQ_INVALID);
    assert_string_equal (rig_reply (rig, 0, request)->reply->text, "access:7: what is this");
}

/* What it needed was out of reach. A client that does not know the code hears another one. */
static void an_errand_may_be_out_of_reach (void **state)
{
    rig_t *rig = *state;
    rig->features = TMQ_FEATURE_UNAVAILABLE;
    rig_link (rig, 2, "default");
    for (size_t peer = 0; peer <= 2; peer += 2) {
        uint64_t request = send_reload (rig, peer);
        errand_t *errand = engine_errand_next (rig->engine);
        errand_refuse (errand, TMQ_UNAVAILABLE, "out of reach");
        errand->retry_after_ms = 1000;
        done (rig, errand);
        assert_int_equal (rig_code (rig, peer, request),
                          peer == 2 ? TMQ_UNAVAILABLE : TMQ_OVERLOADED);
        assert_int_equal (rig_reply (rig, peer, request)->reply->retry_after_ms, 1000);
    }
}

/* What one link asks for leaves room for the others, and there is an end for all. */
static void errands_have_limits (void **state)
{
    rig_t *rig = *state;
    for (size_t i = 0; i < 4; i++)
        send_reload (rig, 0);
    uint64_t fifth = send_reload (rig, 0);
    uint64_t other = send_reload (rig, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, fifth), TMQ_LIMIT);
    assert_true (rig_reply (rig, 0, fifth)->reply->retry_after_ms > 0);
    assert_non_null (strstr (rig_reply (rig, 0, fifth)->reply->text, "4"));
    assert_null (rig_reply (rig, 1, other));
    done (rig, engine_errand_next (rig->engine)); /* makes room */
    uint64_t sixth = send_reload (rig, 0);
    rig_settle (rig);
    assert_null (rig_reply (rig, 0, sixth));
    size_t given = 0;
    for (errand_t *errand = engine_errand_next (rig->engine); errand != NULL;
         errand = engine_errand_next (rig->engine), given++)
        engine_errand_done (rig->engine, errand, rig->now);
    assert_int_equal (given, 5);
}

static void all_links_together_have_a_limit (void **state)
{
    rig_t *rig = *state;
    uint64_t newest[ERRAND_PEERS] = {0};
    size_t refused = 0;
    for (size_t peer = 2; peer < ERRAND_PEERS; peer++)
        rig_link (rig, peer, "default");
    for (size_t peer = 0; peer < ERRAND_PEERS; peer++)
        for (size_t i = 0; i < 4; i++)
            newest[peer] = send_reload (rig, peer);
    rig_settle (rig);
    for (size_t peer = 0; peer < ERRAND_PEERS; peer++)
        refused += rig_reply (rig, peer, newest[peer]) != NULL;
    assert_int_equal (refused, 0); /* 16 links of 4: as many as there may be */
    rig_goodbye (rig, 0);          /* … whose errands are nobody's any more */
    rig_settle (rig);
    size_t given = 0;
    errand_t *held[64];
    for (errand_t *errand = engine_errand_next (rig->engine); errand != NULL;
         errand = engine_errand_next (rig->engine))
        held[given++] = errand;
    assert_int_equal (given, 60);
    rig_link (rig, 0, "default");
    for (size_t i = 0; i < 4; i++)
        newest[0] = send_reload (rig, 0);
    rig_goodbye (rig, 1); /* those of it are under way and still take their room */
    rig_link (rig, 1, "default");
    uint64_t more = send_reload (rig, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, more), TMQ_OVERLOADED);
    assert_true (rig_reply (rig, 1, more)->reply->retry_after_ms > 0);
    for (size_t i = 0; i < given; i++)
        engine_errand_done (rig->engine, held[i], rig->now);
}

/* However much of it there is that everybody may ask for. */
static void operators_have_room_of_their_own (void **state)
{
    rig_t *rig = *state;
    size_t given = 0;
    errand_t *held[64];
    for (size_t peer = 2; peer < ERRAND_PEERS; peer++)
        rig_link (rig, peer, "default");
    for (size_t peer = 0; peer < ERRAND_PEERS; peer++)
        for (size_t i = 0; i < 4; i++)
            send_enroll (rig, peer);
    rig_settle (rig);
    for (errand_t *errand = engine_errand_next (rig->engine); errand != NULL;
         errand = engine_errand_next (rig->engine))
        held[given++] = errand;
    assert_int_equal (given, 64);
    rig_goodbye (rig, 0); /* its errands are under way, and take their room */
    rig_link (rig, 0, "default");
    uint64_t one_more = send_enroll (rig, 0);
    uint64_t reload = send_reload (rig, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, one_more), TMQ_OVERLOADED);
    assert_null (rig_reply (rig, 0, reload));
    done (rig, engine_errand_next (rig->engine));
    assert_int_equal (rig_code (rig, 0, reload), TMQ_OK);
    for (size_t i = 0; i < given; i++)
        engine_errand_done (rig->engine, held[i], rig->now);
    rig_settle (rig);
    send_enroll (rig, 0);
    rig_settle (rig);
    done (rig, engine_errand_next (rig->engine)); /* there is room again */
}

/* Those who asked are gone: the errand comes back to nobody. */
static void an_errand_outlives_its_link (void **state)
{
    rig_t *rig = *state;
    uint64_t request = send_reload (rig, 0);
    errand_t *errand = engine_errand_next (rig->engine);
    rig_goodbye (rig, 0);
    rig_settle (rig);
    done (rig, errand);
    assert_null (rig_reply (rig, 0, request));
    send_reload (rig, 1);
    errand = engine_errand_next (rig->engine);
    rig_fail_commit (rig); /* the engine begins anew */
    engine_errand_done (rig->engine, errand, rig->now);
    rig_link (rig, 1, "default");
    send_reload (rig, 1);
    assert_non_null (engine_errand_next (rig->engine)); /* left with the server at the end */
}

static bool join_owns (rig_t *rig, size_t peer, const char *host)
{
    key_public_t key = {{2}};
    Taskmq__Enroll enroll = TASKMQ__ENROLL__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    enroll.public_key = (ProtobufCBinaryData){sizeof (key.bytes), key.bytes};
    enroll.host = (char *) (uintptr_t) host;
    request.op_case = TASKMQ__REQUEST__OP_ENROLL;
    request.enroll = &enroll;
    rig_send (rig, peer, &request, NULL, 0);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    bool owns = errand->owns;
    done (rig, errand);
    return owns;
}

/* The name that an invitation gives may be one that had tasks, and has no line any more. */
static void who_joins_is_told_from_who_had_the_name (void **state)
{
    rig_t *rig = *state;
    char text[256];
    char key[KEY_TEXT_SIZE];
    const key_public_t public_key = {{1}};
    rig->peers[2].identity = "render-old";
    rig_link (rig, 2, "default");
    rig_submit (rig, 2, 1, "q", "");
    rig_settle (rig);
    key_text_public (key, &public_key);
    snprintf (text, sizeof (text), "invite-1 invite:%s client(*) as=render-%%h\n", key);
    rig_access (rig, text);
    rig->peers[3].identity = "invite:invite-1";
    rig_link (rig, 3, "default");
    assert_true (join_owns (rig, 3, "old"));
    assert_false (join_owns (rig, 3, "new"));
    assert_false (join_owns (rig, 3, ""));
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (an_errand_becomes_the_answer),    TEST (an_errand_may_be_refused),
        TEST (an_errand_may_be_out_of_reach),   TEST (errands_have_limits),
        TEST (all_links_together_have_a_limit), TEST (operators_have_room_of_their_own),
        TEST (an_errand_outlives_its_link),     TEST (who_joins_is_told_from_who_had_the_name),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
