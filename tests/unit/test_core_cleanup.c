/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Retention: when it is applied, what it may remove, and what is said of it. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS };

static uint64_t send (rig_t *rig, size_t peer, Taskmq__Request *request)
{
    static unsigned count = 5000; /* each is another request */
    uint8_t id[16] = {0};
    count++;
    memcpy (id, &count, sizeof (count));
    request->request_id = (ProtobufCBinaryData){sizeof (id), id};
    uint64_t sent = rig_send (rig, peer, request, NULL, 0);
    rig_settle (rig);
    return sent;
}

static uint64_t clean (rig_t *rig, size_t peer, bool dry_run, ProtobufCBinaryData cursor,
                       uint32_t limit, uint64_t pass)
{
    Taskmq__Cleanup body = TASKMQ__CLEANUP__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.dry_run = dry_run;
    body.cursor = cursor;
    body.limit = limit;
    body.pass = pass;
    request.op_case = TASKMQ__REQUEST__OP_CLEANUP;
    request.cleanup = &body;
    return send (rig, peer, &request);
}

static const Taskmq__CleanupPage *page_of (rig_t *rig, uint64_t request)
{
    const rig_item_t *item = rig_reply (rig, 0, request);
    assert_int_equal (item->reply->code, TMQ_OK);
    return item->reply->cleanup_page;
}

/* A pass, to its end. */
static const Taskmq__CleanupPage *clean_now (rig_t *rig)
{
    const ProtobufCBinaryData none = {0};
    uint64_t pass = page_of (rig, clean (rig, 0, false, none, 0, 0))->pass;
    const Taskmq__CleanupPage *page = page_of (rig, clean (rig, 0, false, none, 0, pass));
    assert_int_equal (page->pass, pass);
    assert_false (page->more);
    return page;
}

static const Taskmq__CleanupPage *look (rig_t *rig, uint32_t limit, ProtobufCBinaryData cursor)
{
    return page_of (rig, clean (rig, 0, true, cursor, limit, 0));
}

static unsigned rule (rig_t *rig, const char *queue, const retention_t *rule)
{
    static uint32_t fields[] = {TMQ_QUEUE_FIELD_MAX_AGE_MS, TMQ_QUEUE_FIELD_MAX_COUNT,
                                TMQ_QUEUE_FIELD_MAX_ENDED_BYTES, TMQ_QUEUE_FIELD_KEEP_FAILED_MS,
                                TMQ_QUEUE_FIELD_MIN_KEEP};
    Taskmq__QueueSet body = TASKMQ__QUEUE_SET__INIT;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    settings.max_age_ms = (uint64_t) rule->max_age_ms;
    settings.max_count = rule->max_count;
    settings.max_ended_bytes = rule->max_bytes;
    settings.keep_failed_ms = (uint64_t) rule->keep_failed_ms;
    settings.min_keep = rule->min_keep;
    body.queue = (char *) queue;
    body.settings = &settings;
    body.fields = fields;
    body.n_fields = sizeof (fields) / sizeof (fields[0]);
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &body;
    return rig_code (rig, 0, send (rig, 0, &request));
}

static void submit_lasting (rig_t *rig, unsigned n, const char *queue)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) queue;
    spec.ttl_never = true;
    rig_submit_spec (rig, 0, n, &spec, "payload");
}

/* Tasks that were cancelled; a task with a time to live has another number. */
static void end_lasting (rig_t *rig, unsigned first, unsigned count, const char *queue)
{
    for (unsigned i = 0; i < count; i++)
        submit_lasting (rig, first + i, queue);
    rig_settle (rig);
    for (unsigned i = 0; i < count; i++)
        rig_cancel (rig, 0, first + i);
    rig_settle (rig);
}

static void fail_lasting (rig_t *rig, unsigned n, const char *queue)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) queue;
    spec.ttl_never = true;
    spec.max_attempts = 1;
    size_t before = rig_assignments (rig, 1);
    rig_register (rig, 1, 90, queue, 1);
    rig_submit_spec (rig, 0, n, &spec, "payload");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), before + 1);
    rig_fail (rig, 1, rig_assignment (rig, 1, before)->assignment, 1, true);
    rig_settle (rig);
    rig_leave (rig, 1, 90);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, n), TMQ_STATUS_FAILED);
}

static unsigned gone (rig_t *rig, unsigned n)
{
    uint64_t request = rig_get (rig, 0, n);
    rig_settle (rig);
    return rig_code (rig, 0, request);
}

/* Who comes first, and how many of so many are there. */
static size_t there (rig_t *rig, unsigned first, unsigned count)
{
    size_t found = 0;
    for (unsigned i = 0; i < count; i++)
        found += gone (rig, first + i) == TMQ_OK;
    return found;
}

static void what_a_rule_lets_go_says_so (void **state)
{
    rig_t *rig = *state;
    end_lasting (rig, 1, 5, "q");
    assert_int_equal (rule (rig, "q", &(retention_t){.max_count = 2}), TMQ_OK);
    const Taskmq__CleanupPage *page = clean_now (rig);
    assert_int_equal (page->looked, 5);
    assert_int_equal (page->removed, 3);
    assert_int_equal (page->removed_bytes, 3 * strlen ("payload"));
    assert_int_equal (there (rig, 1, 3), 0);
    assert_int_equal (there (rig, 4, 2), 2);
    uint64_t request = rig_get (rig, 0, 1);
    rig_settle (rig);
    const Taskmq__Reply *reply = rig_reply (rig, 0, request)->reply;
    assert_int_equal (reply->code, TMQ_PURGED);
    assert_non_null (strstr (reply->text, "by max_count of the queue"));
    request = rig_history (rig, 0, 4);
    rig_restart (rig); /* the tombstone knows it */
    rig_link (rig, 0, "default");
    request = rig_get (rig, 0, 1);
    rig_settle (rig);
    reply = rig_reply (rig, 0, request)->reply;
    assert_int_equal (reply->code, TMQ_PURGED);
    assert_non_null (strstr (reply->text, "by max_count of the queue"));
}

/* A time to live is a promise: no policy takes any of it away, and none adds to it. */
static void what_has_a_time_to_live_goes_by_it (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "payload");
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    submit_lasting (rig, 2, "q"); /* has not ended */
    end_lasting (rig, 3, 1, "q");
    assert_int_equal (rule (rig, "q", &(retention_t){.max_age_ms = 1}), TMQ_OK);
    rig_advance (rig, 10);
    assert_int_equal (clean_now (rig)->looked, 1);
    assert_int_equal (gone (rig, 1), TMQ_OK);
    assert_int_equal (gone (rig, 2), TMQ_OK);
    assert_int_equal (gone (rig, 3), TMQ_PURGED);
    assert_int_equal (rule (rig, "q", &(retention_t){.min_keep = 5}), TMQ_OK);
    rig_advance (rig, 2 * DAY_MS);
    clean_now (rig);
    assert_int_equal (gone (rig, 1), TMQ_EXPIRED);
}

static void a_look_tells_all_in_pages_and_removes_nothing (void **state)
{
    rig_t *rig = *state;
    ProtobufCBinaryData cursor = {0};
    uint8_t place[8];
    end_lasting (rig, 1, 20, "q");
    rule (rig, "q", &(retention_t){.max_count = 4});
    size_t told = 0;
    do {
        const Taskmq__CleanupPage *page = look (rig, 6, cursor);
        for (size_t i = 0; i < page->n_items; i++, told++) {
            const Taskmq__CleanupItem *item = page->items[i];
            tmq_id_t expected = rig_id ((unsigned) (16 - told));
            assert_memory_equal (item->task_id.data, expected.bytes, sizeof (expected));
            assert_string_equal (item->queue, "q");
            assert_int_equal (item->policy, TMQ_POLICY_MAX_COUNT);
            assert_false (item->of_namespace);
            assert_int_equal (item->bytes, strlen ("payload"));
            assert_int_equal (item->status, TMQ_STATUS_CANCELLED);
        }
        cursor.len = page->next.len;
        assert_true (cursor.len <= sizeof (place));
        if (cursor.len > 0)
            memcpy (place, page->next.data, cursor.len);
        cursor.data = place;
    } while (cursor.len > 0);
    assert_int_equal (told, 16);
    assert_int_equal (there (rig, 1, 20), 20);
    cursor = (ProtobufCBinaryData){3, place};
    assert_int_equal (rig_code (rig, 0, clean (rig, 0, true, cursor, 5, 0)), TMQ_BAD_CURSOR);
}

/* A page goes on where the one before it ended, and who asks late or again hears the same. */
static void a_look_goes_through_everything_once (void **state)
{
    enum { MANY = 3000, STAY = 5, PAGE = 100 };
    rig_t *rig = *state;
    uint8_t place[8];
    uint8_t first[8];
    ProtobufCBinaryData cursor = {0};
    end_lasting (rig, 1, MANY, "q");
    rule (rig, "q", &(retention_t){.max_count = STAY});
    rig_settle (rig);
    size_t told = 0;
    size_t reads = rig->lasting_read;
    do {
        const Taskmq__CleanupPage *page = look (rig, PAGE, cursor);
        told += page->n_items;
        assert_true (page->looked >= told);
        cursor.len = page->next.len;
        if (cursor.len > 0)
            memcpy (place, page->next.data, cursor.len);
        if (told == PAGE)
            memcpy (first, place, sizeof (first));
        cursor.data = place;
    } while (cursor.len > 0);
    assert_int_equal (told, MANY - STAY);
    /* Each page reads some records in vain, and none reads those before it. */
    assert_true (rig->lasting_read - reads < MANY + MANY / PAGE * TMQ_SWEEP_ITEMS_MAX);
    cursor = (ProtobufCBinaryData){sizeof (first), first};
    const Taskmq__CleanupPage *again = look (rig, PAGE, cursor);
    assert_int_equal (again->n_items, PAGE);
    tmq_id_t expected = rig_id (MANY - STAY - PAGE);
    assert_memory_equal (again->items[0]->task_id.data, expected.bytes, sizeof (expected));
    /* The one that is kept for the next page is forgotten after a minute. */
    memcpy (place, again->next.data, again->next.len);
    rig_advance (rig, 61 * 1000);
    cursor = (ProtobufCBinaryData){sizeof (place), place};
    again = look (rig, PAGE, cursor);
    expected = rig_id (MANY - STAY - 2 * PAGE);
    assert_memory_equal (again->items[0]->task_id.data, expected.bytes, sizeof (expected));
}

/* The store loses a commit in the middle of a pass: what it had removed is there again, and goes.
 */
static void a_slice_that_is_rolled_back_goes_again (void **state)
{
    rig_t *rig = *state;
    enum { MANY = 1300, STAY = 4 };
    Taskmq__Cleanup body = TASKMQ__CLEANUP__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    end_lasting (rig, 1, MANY, "q");
    assert_int_equal (rule (rig, "q", &(retention_t){.max_count = STAY}), TMQ_OK);
    rig_settle (rig);
    request.op_case = TASKMQ__REQUEST__OP_CLEANUP;
    request.cleanup = &body;
    uint8_t id[16] = {7, 7};
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    rig_send (rig, 0, &request, NULL, 0);
    rig_run (rig); /* the first page is read, and its removals stand in the open batch */
    rig_fail_commit_stalled (rig);
    rig_link (rig, 0, "default");
    rig_settle (rig);
    clean_now (rig);
    assert_int_equal (there (rig, MANY - STAY + 1, STAY), STAY);
    assert_int_equal (there (rig, 1, MANY - STAY), 0);
    assert_int_equal (clean_now (rig)->removed, 0);
}

static void rules_are_applied_at_a_start_and_daily (void **state)
{
    rig_t *rig = *state;
    end_lasting (rig, 1, 3, "q");
    rule (rig, "q", &(retention_t){.max_age_ms = HOUR_MS});
    rig_advance (rig, 2 * HOUR_MS);
    assert_int_equal (there (rig, 1, 3), 3); /* not before its time */
    rig_restart_at (rig, rig->now.wall_ms);
    rig_link (rig, 0, "default");
    rig_advance (rig, 1000);
    assert_int_equal (there (rig, 1, 3), 0);
    end_lasting (rig, 4, 3, "q");
    rig_advance (rig, DAY_MS - HOUR_MS);
    assert_int_equal (there (rig, 4, 3), 3);
    rig_advance (rig, HOUR_MS);
    assert_int_equal (there (rig, 4, 3), 0);
}

/* A start that finds the clock far ahead does not believe it for ten minutes (S20). */
static void a_leap_of_the_clock_removes_nothing (void **state)
{
    rig_t *rig = *state;
    end_lasting (rig, 1, 3, "q");
    rule (rig, "q", &(retention_t){.max_age_ms = HOUR_MS});
    rig->now.wall_ms += 3 * HOUR_MS;
    rig_restart_at (rig, rig->now.wall_ms - 3 * HOUR_MS);
    rig_link (rig, 0, "default");
    rig_advance (rig, 9 * 60000);
    assert_int_equal (there (rig, 1, 3), 3);
    /* It sleeps meanwhile. */
    assert_true (engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0) > rig->now.mono_ms);
    rig_advance (rig, 2 * 60000);
    assert_int_equal (there (rig, 1, 3), 0);
}

/* The rule of the namespace, and those of two queues. */
static void what_one_rule_keeps_no_other_lets_go (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    (void) state;
    config.retention = (retention_t){.max_age_ms = HOUR_MS};
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rule (rig, "keeps", &(retention_t){.min_keep = 2});
    rule (rig, "failed", &(retention_t){.keep_failed_ms = 3 * HOUR_MS});
    end_lasting (rig, 1, 4, "keeps");
    end_lasting (rig, 11, 2, "failed");
    fail_lasting (rig, 13, "failed");
    end_lasting (rig, 21, 2, "plain");
    rig_advance (rig, 2 * HOUR_MS);
    const Taskmq__CleanupPage *page = look (rig, 100, (ProtobufCBinaryData){0});
    assert_int_equal (page->n_items, 6);
    assert_true (page->items[0]->of_namespace);
    clean_now (rig);
    assert_int_equal (there (rig, 1, 2), 0);
    assert_int_equal (there (rig, 3, 2), 2);
    assert_int_equal (there (rig, 11, 2), 0);
    assert_int_equal (gone (rig, 13), TMQ_OK);
    assert_int_equal (there (rig, 21, 2), 0);
    rig_advance (rig, 2 * HOUR_MS);
    clean_now (rig);
    assert_int_equal (gone (rig, 13), TMQ_PURGED);
    rig_free (rig);
}

/* Its own rule stands in place of what is said of all; one that says nothing keeps everything. */
static void a_namespace_may_have_its_own_rule (void **state)
{
    static const char *const spaces[] = {"strict", "spared", "default"};
    static const size_t left[] = {1, 4, 2};
    engine_config_t config = ENGINE_CONFIG_INIT;
    (void) state;
    config.retention = (retention_t){.max_count = 2};
    config.retentions[0] = (retention_of_t){"strict", {.max_count = 1}};
    config.retentions[1] = (retention_of_t){"spared", {.max_count = 0}};
    config.retentions_count = 2;
    rig_t *rig = rig_new_with (&config);
    for (unsigned i = 0; i < 3; i++) {
        rig_link (rig, 0, spaces[i]);
        end_lasting (rig, 1 + 10 * i, 4, "q");
        assert_int_equal (clean_now (rig)->removed, 4 - left[i]);
        assert_int_equal (there (rig, 1 + 10 * i, 4), left[i]);
    }
    /* A queue of it may keep more, or fewer. */
    rig_link (rig, 0, "strict");
    rule (rig, "keeps", &(retention_t){.min_keep = 3});
    end_lasting (rig, 41, 4, "keeps");
    clean_now (rig);
    assert_int_equal (there (rig, 41, 4), 3);
    rig_free (rig);
}

/* A start and each day see to a namespace's own rule although nothing is said of all. */
static void own_rules_alone_are_applied_daily (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    (void) state;
    config.retentions[0] = (retention_of_t){"default", {.max_age_ms = HOUR_MS}};
    config.retentions_count = 1;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    end_lasting (rig, 1, 3, "q");
    rig_advance (rig, 2 * DAY_MS);
    assert_int_equal (there (rig, 1, 3), 0);
    rig_free (rig);
}

/* What its workers told of a task counts as its payload does. */
static void turns_count_as_bytes (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) "q";
    spec.ttl_never = true;
    rig_submit_spec (rig, 0, 1, &spec, "payload");
    rig_register (rig, 1, 90, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    rig_turn (rig, 1, assignment, 1, "twelve bytes");
    rig_settle (rig);
    rig_complete (rig, 1, assignment, "r");
    rig_settle (rig);
    rule (rig, "q", &(retention_t){.max_bytes = strlen ("payload") + 12});
    const Taskmq__CleanupPage *page = look (rig, 10, (ProtobufCBinaryData){0});
    assert_int_equal (page->n_items, 1);
    assert_int_equal (page->items[0]->bytes, strlen ("payload") + 12 + 1);
    assert_int_equal (page->items[0]->policy, TMQ_POLICY_MAX_BYTES);
    rule (rig, "q", &(retention_t){.max_bytes = strlen ("payload") + 12 + 1});
    assert_int_equal (clean_now (rig)->removed, 0);
}

/* Brought back while a pass has them on its list: they live. */
static void what_is_retried_meanwhile_lives (void **state)
{
    rig_t *rig = *state;
    end_lasting (rig, 1, 2, "q");
    rule (rig, "q", &(retention_t){.max_age_ms = 1});
    rig_advance (rig, 100);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    clean_now (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    assert_int_equal (gone (rig, 2), TMQ_PURGED);
}

static void a_whole_that_goes_leaves_its_parts (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    tmq_id_t parent = rig_id (1);
    submit_lasting (rig, 1, "q");
    rig_settle (rig);
    spec.queue = (char *) "q";
    extra.parent = (ProtobufCBinaryData){sizeof (parent.bytes), parent.bytes};
    spec.extra = &extra;
    rig_submit_spec (rig, 0, 2, &spec, "part");
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    rule (rig, "q", &(retention_t){.max_age_ms = 1});
    rig_advance (rig, 100);
    clean_now (rig);
    assert_int_equal (gone (rig, 1), TMQ_PURGED);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_QUEUED);
}

static void a_rule_that_contradicts_itself_is_refused (void **state)
{
    rig_t *rig = *state;
    assert_int_equal (rule (rig, "q", &(retention_t){.max_count = 2, .min_keep = 3}), TMQ_INVALID);
    assert_int_equal (rule (rig, "q", &(retention_t){.max_age_ms = 2, .keep_failed_ms = 1}),
                      TMQ_INVALID);
    assert_int_equal (rule (rig, "q", &(retention_t){.max_count = 3, .min_keep = 3}), TMQ_OK);
}

static void many_pages_are_gone_through (void **state)
{
    enum { MANY = 1300 };
    rig_t *rig = *state;
    end_lasting (rig, 1, MANY, "q");
    rule (rig, "q", &(retention_t){.max_count = 10, .min_keep = 5});
    rig_settle (rig);
    const Taskmq__CleanupPage *page = clean_now (rig);
    assert_int_equal (page->looked, MANY);
    assert_int_equal (page->removed, MANY - 10);
    assert_int_equal (there (rig, MANY - 9, 10), 10);
    assert_int_equal (clean_now (rig)->removed, 0);
}

/* Nobody is told that all was looked at when it was not; the next pass tries again. */
static void a_pass_that_could_not_read_says_so (void **state)
{
    const ProtobufCBinaryData none = {0};
    rig_t *rig = *state;
    end_lasting (rig, 1, 4, "q");
    rule (rig, "q", &(retention_t){.max_count = 3, .min_keep = 1});
    rig_settle (rig);
    rig->damaged = true;
    uint64_t pass = page_of (rig, clean (rig, 0, false, none, 0, 0))->pass;
    assert_int_equal (rig_code (rig, 0, clean (rig, 0, false, none, 0, pass)), TMQ_INTERNAL);
    rig->damaged = false;
    assert_int_equal (clean_now (rig)->removed, 1);
}

static void only_an_operator_cleans_up (void **state)
{
    static const char *const roles[] = {"client(default)", "worker(default)", "admin(default)",
                                        "operator"};
    rig_t *rig = *state;
    for (size_t i = 0; i < sizeof (roles) / sizeof (roles[0]); i++) {
        char text[256];
        snprintf (text, sizeof (text), "me uid:0 %s\n", roles[i]);
        rig->peers[0].identity = "me";
        rig_access (rig, text);
        rig_link (rig, 0, "default");
        unsigned expected = strcmp (roles[i], "operator") == 0 ? TMQ_OK : TMQ_DENIED;
        const ProtobufCBinaryData none = {0};
        assert_int_equal (rig_code (rig, 0, clean (rig, 0, false, none, 0, 0)), expected);
        assert_int_equal (rig_code (rig, 0, clean (rig, 0, true, none, 0, 0)), expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (what_a_rule_lets_go_says_so),
        TEST (what_has_a_time_to_live_goes_by_it),
        TEST (a_look_tells_all_in_pages_and_removes_nothing),
        TEST (a_look_goes_through_everything_once),
        TEST (a_slice_that_is_rolled_back_goes_again),
        TEST (rules_are_applied_at_a_start_and_daily),
        TEST (a_leap_of_the_clock_removes_nothing),
        cmocka_unit_test (what_one_rule_keeps_no_other_lets_go),
        cmocka_unit_test (a_namespace_may_have_its_own_rule),
        cmocka_unit_test (own_rules_alone_are_applied_daily),
        TEST (turns_count_as_bytes),
        TEST (what_is_retried_meanwhile_lives),
        TEST (a_whole_that_goes_leaves_its_parts),
        TEST (a_rule_that_contradicts_itself_is_refused),
        TEST (many_pages_are_gone_through),
        TEST (a_pass_that_could_not_read_says_so),
        TEST (only_an_operator_cleans_up),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
