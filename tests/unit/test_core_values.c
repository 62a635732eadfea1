/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Values: versions, repeats, limits, and what a restart finds. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

enum { WITH_ANY = 0, WITH_NONE = 1 }; /* if_version_plus_1 */

static uint8_t next_id[16];

static Taskmq__Request request_of (Taskmq__Request__OpCase op)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = op;
    request.request_id = (ProtobufCBinaryData){sizeof (next_id), next_id};
    return request;
}

static uint64_t send_put (rig_t *rig, size_t peer, const char *key, const char *bytes,
                          uint64_t if_version_plus_1)
{
    Taskmq__ValuePut put = TASKMQ__VALUE_PUT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_VALUE_PUT);
    put.key = (char *) key;
    put.body_bytes = (uint32_t) strlen (bytes);
    put.if_version_plus_1 = if_version_plus_1;
    request.value_put = &put;
    return rig_send (rig, peer, &request, bytes, strlen (bytes));
}

/* A put with a new request id; the version, or 0 with *code. */
static uint64_t put_as (rig_t *rig, size_t peer, const char *key, const char *bytes,
                        uint64_t if_version_plus_1, unsigned *code)
{
    next_id[0]++;
    uint64_t request = send_put (rig, peer, key, bytes, if_version_plus_1);
    rig_settle (rig);
    *code = rig_code (rig, peer, request);
    return *code == TMQ_OK ? rig_reply (rig, peer, request)->reply->value->version : 0;
}

static uint64_t put (rig_t *rig, const char *key, const char *bytes, uint64_t if_version_plus_1)
{
    unsigned code;
    uint64_t version = put_as (rig, 0, key, bytes, if_version_plus_1, &code);
    assert_int_equal (code, TMQ_OK);
    return version;
}

static unsigned code_of_put (rig_t *rig, const char *key, const char *bytes,
                             uint64_t if_version_plus_1)
{
    unsigned code;
    put_as (rig, 0, key, bytes, if_version_plus_1, &code);
    return code;
}

static const rig_item_t *get (rig_t *rig, size_t peer, const char *key)
{
    Taskmq__ValueGet message = TASKMQ__VALUE_GET__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_VALUE_GET);
    message.key = (char *) key;
    request.value_get = &message;
    uint64_t sent = rig_send (rig, peer, &request, NULL, 0);
    rig_settle (rig);
    return rig_reply (rig, peer, sent);
}

static void assert_value (rig_t *rig, const char *key, const char *bytes, uint64_t version)
{
    const rig_item_t *item = get (rig, 0, key);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->value->version, version);
    assert_int_equal (item->reply->value->body, strlen (bytes));
    assert_int_equal (item->body_bytes, strlen (bytes));
    assert_memory_equal (item->body, bytes, strlen (bytes));
}

static unsigned code_of_remove (rig_t *rig, const char *key, uint64_t if_version_plus_1)
{
    Taskmq__ValueRemove message = TASKMQ__VALUE_REMOVE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_VALUE_REMOVE);
    message.key = (char *) key;
    message.if_version_plus_1 = if_version_plus_1;
    request.value_remove = &message;
    uint64_t sent = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    return rig_code (rig, 0, sent);
}

static const Taskmq__ValuePage *list (rig_t *rig, size_t peer, const char *prefix,
                                      const char *after, uint32_t limit)
{
    Taskmq__ValueList message = TASKMQ__VALUE_LIST__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_VALUE_LIST);
    message.prefix = (char *) prefix;
    message.after = (char *) after;
    message.limit = limit;
    request.value_list = &message;
    uint64_t sent = rig_send (rig, peer, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, peer, sent), TMQ_OK);
    return rig_reply (rig, peer, sent)->reply->value_page;
}

static void a_put_counts_only_for_the_version_that_it_names (void **state)
{
    rig_t *rig = *state;
    uint64_t first = put (rig, "plan", "one", WITH_NONE);
    assert_int_equal (code_of_put (rig, "plan", "no", WITH_NONE), TMQ_CONFLICT);
    uint64_t second = put (rig, "plan", "two", first + 1);
    assert_true (second > first);
    assert_int_equal (code_of_put (rig, "plan", "no", first + 1), TMQ_CONFLICT);
    assert_value (rig, "plan", "two", second);
    uint64_t third = put (rig, "plan", "", WITH_ANY);
    assert_value (rig, "plan", "", third);
    assert_int_equal (code_of_remove (rig, "plan", second + 1), TMQ_CONFLICT);
    assert_int_equal (code_of_remove (rig, "plan", third + 1), TMQ_OK);
    next_id[0]++;
    assert_int_equal (code_of_remove (rig, "plan", WITH_ANY), TMQ_NOT_FOUND);
    assert_int_equal (get (rig, 0, "plan")->reply->code, TMQ_NOT_FOUND);
    assert_int_equal (code_of_put (rig, "plan", "no", third + 1), TMQ_CONFLICT);
    assert_true (put (rig, "plan", "four", WITH_NONE) > third + 1); /* never the same again */
}

static void a_repeated_remove_gets_its_first_answer (void **state)
{
    rig_t *rig = *state;
    put (rig, "plan", "one", WITH_NONE);
    assert_int_equal (code_of_remove (rig, "plan", WITH_ANY), TMQ_OK);
    assert_int_equal (code_of_remove (rig, "plan", WITH_ANY), TMQ_OK); /* the same request */
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (code_of_remove (rig, "plan", WITH_ANY), TMQ_OK);
    next_id[0]++;
    assert_int_equal (code_of_remove (rig, "plan", WITH_ANY), TMQ_NOT_FOUND);
}

static void a_repeated_put_gets_its_first_answer (void **state)
{
    rig_t *rig = *state;
    uint8_t repeated[16];
    uint64_t version = put (rig, "k", "mine", WITH_ANY);
    memcpy (repeated, next_id, sizeof (repeated));
    uint64_t newest = put (rig, "k", "another", WITH_ANY);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    memcpy (next_id, repeated, sizeof (next_id));
    uint64_t request = send_put (rig, 0, "k", "mine", WITH_ANY);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, request)->reply->value->version, version);
    assert_value (rig, "k", "another", newest);
    next_id[0] += 10;
}

static void values_are_listed_by_their_keys (void **state)
{
    rig_t *rig = *state;
    put (rig, "b/2", "x", WITH_ANY);
    put (rig, "a", "x", WITH_ANY);
    put (rig, "b/1", "xy", WITH_ANY);
    put (rig, "b", "x", WITH_ANY);
    const Taskmq__ValuePage *page = list (rig, 0, "b", "", 2);
    assert_int_equal (page->n_values, 2);
    assert_string_equal (page->values[0]->key, "b");
    assert_string_equal (page->values[1]->key, "b/1");
    assert_int_equal (page->values[1]->bytes, 2);
    assert_string_equal (page->next, "b/1");
    page = list (rig, 0, "b", "b/1", 2);
    assert_int_equal (page->n_values, 1);
    assert_string_equal (page->values[0]->key, "b/2");
    assert_string_equal (page->next, "");
    rig_link (rig, 1, "other"); /* sees nothing of it */
    assert_int_equal (list (rig, 1, "", "", 0)->n_values, 0);
}

static void a_watcher_is_told_and_others_are_not (void **state)
{
    rig_t *rig = *state;
    uint32_t subjects[] = {TMQ_SUBJECT_VALUE};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SUBSCRIBE);
    request.subscribe = &subscribe;
    subscribe.subscription = 1;
    rig_send (rig, 1, &request, NULL, 0); /* tasks only */
    filter.subjects = subjects;
    filter.n_subjects = 1;
    subscribe.filter = &filter;
    subscribe.subscription = 2;
    rig_send (rig, 1, &request, NULL, 0);
    uint64_t version = put (rig, "plan", "x", WITH_ANY);
    rig_submit (rig, 0, 1, "q", "");
    assert_int_equal (code_of_remove (rig, "plan", WITH_ANY), TMQ_OK);
    rig_settle (rig);
    size_t tasks = 0;
    size_t values = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++) {
        const rig_item_t *item = &rig->peers[1].items[i];
        for (size_t k = 0; item->list != NULL && k < item->list->n_events; k++) {
            const Taskmq__Event *event = item->list->events[k];
            bool of_value = item->events->subscription == 2;
            assert_int_equal (event->subject, of_value ? TMQ_SUBJECT_VALUE : 0);
            if (!of_value) {
                tasks++;
                continue;
            }
            assert_string_equal (event->name, "plan");
            assert_int_equal (event->kind, values == 0 ? TMQ_EVENT_CHANGED : TMQ_EVENT_REMOVED);
            if (values++ == 0)
                assert_int_equal (event->seq, version);
        }
    }
    assert_int_equal (tasks, 1);
    assert_int_equal (values, 2);
}

static void there_are_only_so_many_also_after_a_restart (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_values_max = 2;
    config.space_bytes_max = 10;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    put (rig, "a", "12345", WITH_ANY);
    put (rig, "b", "1", WITH_ANY);
    assert_int_equal (code_of_put (rig, "c", "", WITH_ANY), TMQ_LIMIT);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (code_of_put (rig, "c", "", WITH_ANY), TMQ_LIMIT);
    assert_int_equal (code_of_put (rig, "b", "123456", WITH_ANY), TMQ_LIMIT);
    put (rig, "b", "12345", WITH_ANY);
    assert_int_equal (code_of_remove (rig, "a", WITH_ANY), TMQ_OK);
    put (rig, "c", "12345", WITH_ANY);
    rig_free (rig);
}

static void a_failed_commit_takes_it_back (void **state)
{
    rig_t *rig = *state;
    uint64_t version = put (rig, "k", "kept", WITH_ANY);
    next_id[0]++;
    send_put (rig, 0, "k", "lost", WITH_ANY);
    rig_fail_commit (rig);
    rig_link (rig, 0, "default");
    assert_value (rig, "k", "kept", version);
}

/* What is there may be removed. */
static void nothing_is_put_on_a_full_disk (void **state)
{
    rig_t *rig = *state;
    put (rig, "k", "kept", WITH_ANY);
    engine_set_full (rig->engine, true);
    assert_int_equal (code_of_put (rig, "k", "more", WITH_ANY), TMQ_STORE_FULL);
    assert_int_equal (code_of_put (rig, "new", "", WITH_ANY), TMQ_STORE_FULL);
    next_id[0]++;
    assert_int_equal (code_of_remove (rig, "k", WITH_ANY), TMQ_OK);
    engine_set_full (rig->engine, false);
    put (rig, "k", "again", WITH_ANY);
}

static void one_sees_and_changes_what_is_its_own (void **state)
{
    rig_t *rig = *state;
    unsigned code;
    rig_access (rig, "ann uid:1 client(default)\nbob uid:2 client(default)\n"
                     "cat uid:3 admin(default)\n");
    static const char *const NAMES[] = {"ann", "bob", "cat"};
    for (size_t i = 0; i < 3; i++) {
        rig->peers[i].identity = NAMES[i];
        rig_link (rig, i, "default");
    }
    uint64_t version = put (rig, "mine", "x", WITH_ANY);
    assert_int_equal (get (rig, 1, "mine")->reply->code, TMQ_NOT_FOUND);
    assert_int_equal (get (rig, 2, "mine")->reply->code, TMQ_OK);
    assert_int_equal (list (rig, 1, "", "", 0)->n_values, 0);
    assert_int_equal (list (rig, 2, "", "", 0)->n_values, 1);
    put_as (rig, 1, "mine", "y", WITH_ANY, &code);
    assert_int_equal (code, TMQ_CONFLICT);
    assert_true (put_as (rig, 2, "mine", "y", version + 1, &code) > version);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

/* A cursor names no key that the link does not see, and a page of such keys alone is no end. */
static void a_page_ends_with_what_is_seen (void **state)
{
    rig_t *rig = *state;
    unsigned code;
    char key[16];
    rig_access (rig, "ann uid:1 client(default)\nbob uid:2 client(default)\n");
    rig->peers[0].identity = "ann";
    rig->peers[1].identity = "bob";
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned i = 10; i < 40; i++) {
        snprintf (key, sizeof (key), "key%u", i);
        put_as (rig, i == 12 || i == 35 ? 1 : 0, key, "x", WITH_ANY, &code);
        assert_int_equal (code, TMQ_OK);
    }
    const Taskmq__ValuePage *page = list (rig, 1, "", "", 5);
    assert_int_equal (page->n_values, 1);
    assert_string_equal (page->next, "key12");
    page = list (rig, 1, "", page->next, 5);
    assert_int_equal (page->n_values, 1);
    assert_string_equal (page->values[0]->key, "key35");
    page = list (rig, 1, "", "key35", 5);
    assert_int_equal (page->n_values, 0);
    assert_string_equal (page->next, "");
}

/* The value of the session "trip" is seen by this peer. */
static bool sees_trip (rig_t *rig, size_t peer)
{
    Taskmq__ValueList message = TASKMQ__VALUE_LIST__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_VALUE_LIST);
    message.session = "trip";
    request.value_list = &message;
    uint64_t sent = rig_send (rig, peer, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, peer, sent), TMQ_OK);
    return rig_reply (rig, peer, sent)->reply->value_page->n_values == 1;
}

static void submit_trip (rig_t *rig, unsigned n)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.session = "trip";
    spec.queue = "q";
    rig_submit_spec (rig, 0, n, &spec, "");
    rig_settle (rig);
}

/* Nobody else has rights over it, so it is the lease that shows it. */
static void a_worker_sees_what_its_sessions_have (void **state)
{
    enum { WIL = 1, WIL_ANEW = 3 };
    rig_t *rig = *state;
    Taskmq__ValuePut body = TASKMQ__VALUE_PUT__INIT;
    rig_access (rig, "ann uid:1 client(default)\nwil uid:2 worker(default)\n");
    rig->peers[0].identity = "ann";
    rig->peers[WIL].identity = rig->peers[WIL_ANEW].identity = "wil";
    rig_link (rig, 0, "default");
    rig_link (rig, WIL, "default");
    next_id[0]++;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_VALUE_PUT);
    body.session = "trip";
    body.key = "plan";
    body.body_bytes = 1;
    request.value_put = &body;
    rig_send (rig, 0, &request, "x", 1);
    rig_register (rig, WIL, 7, "q", 8);
    assert_false (sees_trip (rig, WIL));
    submit_trip (rig, 1);
    submit_trip (rig, 2);
    assert_true (sees_trip (rig, WIL));
    rig_complete (rig, WIL, rig_assignment (rig, WIL, 0)->assignment, "");
    assert_true (sees_trip (rig, WIL)); /* one is left */
    rig_complete (rig, WIL, rig_assignment (rig, WIL, 1)->assignment, "");
    assert_false (sees_trip (rig, WIL));
    submit_trip (rig, 3);
    submit_trip (rig, 4);
    rig_link (rig, WIL_ANEW, "default");
    const Taskmq__Assignment *held = rig_assignment (rig, WIL, 2)->assignment;
    rig_register_with (rig, WIL_ANEW, 7, "q", 1, held); /* moves, with one of its leases */
    rig_settle (rig);
    assert_false (sees_trip (rig, WIL));
    assert_true (sees_trip (rig, WIL_ANEW));
    rig_complete (rig, WIL_ANEW, held, "");
    rig_settle (rig);
    assert_true (sees_trip (rig, WIL_ANEW)); /* the other one came again */
    rig_leave (rig, WIL_ANEW, 7);
    assert_false (sees_trip (rig, WIL_ANEW));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_put_counts_only_for_the_version_that_it_names),
        TEST (a_repeated_remove_gets_its_first_answer),
        TEST (a_repeated_put_gets_its_first_answer),
        TEST (values_are_listed_by_their_keys),
        TEST (a_page_ends_with_what_is_seen),
        TEST (a_watcher_is_told_and_others_are_not),
        TEST (a_failed_commit_takes_it_back),
        TEST (nothing_is_put_on_a_full_disk),
        TEST (one_sees_and_changes_what_is_its_own),
        TEST (a_worker_sees_what_its_sessions_have),
        cmocka_unit_test (there_are_only_so_many_also_after_a_restart),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
