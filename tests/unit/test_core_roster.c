/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who works here: what a worker says of itself, what becomes of it, and how it is drained. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/rooms.h"
#include "core/match/roster.h"
#include "core_rig.h"

enum { BOSS = 0, ME = 1, OTHER = 2, WORKER = 50 };

static Taskmq__Label a_label = {PROTOBUF_C_MESSAGE_INIT (&taskmq__label__descriptor), "gpu",
                                "a100"};

static void fill_id (ProtobufCBinaryData *out, uint8_t bytes[16], unsigned n)
{
    tmq_id_t id = rig_id (n);
    memcpy (bytes, id.bytes, 16);
    *out = (ProtobufCBinaryData){16, bytes};
}

/* A worker that says all of itself. */
static uint64_t enrol (rig_t *rig, size_t peer, unsigned n, const char *name)
{
    uint8_t id[16];
    Taskmq__Register said = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Label *labels[] = {&a_label};
    char *queues[] = {"q"};
    char *depends_on[] = {"database"};
    fill_id (&said.worker_id, id, n);
    said.name = (char *) (uintptr_t) name;
    said.queues = queues;
    said.n_queues = 1;
    said.capacity = 5;
    said.role = "renderer";
    said.labels = labels;
    said.n_labels = 1;
    said.pid = 4711;
    said.host = "box";
    said.version = "2.1";
    said.config = "{\"threads\":4}";
    said.depends_on = depends_on;
    said.n_depends_on = 1;
    request.op_case = TASKMQ__REQUEST__OP_REGISTER;
    request.register_ = &said;
    return rig_send (rig, peer, &request, NULL, 0);
}

static const Taskmq__WorkerPage *list (rig_t *rig, size_t peer, bool all, uint32_t limit,
                                       uint64_t before)
{
    Taskmq__WorkerList wanted = TASKMQ__WORKER_LIST__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    wanted.all = all;
    wanted.limit = limit;
    wanted.before = before;
    request.op_case = TASKMQ__REQUEST__OP_WORKER_LIST;
    request.worker_list = &wanted;
    uint64_t id = rig_send (rig, peer, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, peer, id), TMQ_OK);
    return rig_reply (rig, peer, id)->reply->worker_page;
}

static const Taskmq__WorkerInfo *only (rig_t *rig, bool all)
{
    const Taskmq__WorkerPage *page = list (rig, BOSS, all, 0, 0);
    assert_int_equal (page->n_workers, 1);
    return page->workers[0];
}

static uint64_t drain (rig_t *rig, size_t peer, const char *name)
{
    Taskmq__WorkerDrain wanted = TASKMQ__WORKER_DRAIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    wanted.name = (char *) (uintptr_t) name;
    request.op_case = TASKMQ__REQUEST__OP_WORKER_DRAIN;
    request.worker_drain = &wanted;
    uint64_t id = rig_send (rig, peer, &request, NULL, 0);
    rig_settle (rig);
    return id;
}

static size_t drains (const rig_t *rig, size_t peer)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->peers[peer].count; i++)
        count += rig->peers[peer].items[i].drain != NULL;
    return count;
}

static uint64_t leave_with (rig_t *rig, size_t peer, unsigned n, int status)
{
    uint8_t id[16];
    Taskmq__Leave said = TASKMQ__LEAVE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    fill_id (&said.worker_id, id, n);
    said.has_exit = true;
    said.exit_status = status;
    request.op_case = TASKMQ__REQUEST__OP_LEAVE;
    request.leave = &said;
    return rig_send (rig, peer, &request, NULL, 0);
}

static int setup (void **state)
{
    rig_t *rig = rig_new ();
    rig_link (rig, BOSS, "default");
    rig_link (rig, ME, "default");
    rig_settle (rig);
    *state = rig;
    return 0;
}

static void a_worker_says_who_it_is (void **state)
{
    rig_t *rig = *state;
    enrol (rig, ME, WORKER, "render-7");
    rig_settle (rig);
    const Taskmq__WorkerPage *page = list (rig, BOSS, false, 0, 0);
    assert_non_null (page->broker);
    assert_int_equal (page->n_workers, 1);
    const Taskmq__WorkerInfo *info = page->workers[0];
    assert_true (info->connected);
    assert_string_equal (info->about->name, "render-7");
    assert_string_equal (info->about->queues[0], "q");
    assert_string_equal (info->about->role, "renderer");
    assert_string_equal (info->about->labels[0]->value, "a100");
    assert_int_equal (info->about->pid, 4711);
    assert_string_equal (info->about->host, "box");
    assert_string_equal (info->about->version, "2.1");
    assert_string_equal (info->about->config, "{\"threads\":4}");
    assert_string_equal (info->about->depends_on[0], "database");
    assert_true (info->started_at > 0 && info->ended_at == 0);
}

static void its_outcomes_are_counted (void **state)
{
    rig_t *rig = *state;
    enrol (rig, ME, WORKER, "w");
    for (unsigned n = 1; n <= 4; n++)
        rig_submit (rig, BOSS, n, "q", "");
    rig_settle (rig);
    assert_int_equal (only (rig, false)->running, 4);
    rig_use_request_id (1);
    rig_complete (rig, ME, rig_assignment (rig, ME, 0)->assignment, "");
    rig_use_request_id (2);
    rig_fail (rig, ME, rig_assignment (rig, ME, 1)->assignment, 1, true);
    rig_use_request_id (3);
    rig_release (rig, ME, rig_assignment (rig, ME, 2)->assignment, false);
    rig_settle (rig);
    rig_advance (rig, 30500); /* the last lease runs out; the task given back has a new one */
    const Taskmq__WorkerInfo *info = only (rig, false);
    assert_int_equal (info->completed, 1);
    assert_int_equal (info->failed, 1);
    assert_int_equal (info->released, 1);
    assert_int_equal (info->lost, 1);
}

/* What it did stands in its row after a minute, and at its end at the latest. */
static void what_it_did_survives_a_crash (void **state)
{
    rig_t *rig = *state;
    enrol (rig, ME, WORKER, "w");
    rig_submit (rig, BOSS, 1, "q", "");
    rig_settle (rig);
    rig_complete (rig, ME, rig_assignment (rig, ME, 0)->assignment, "");
    rig_settle (rig);
    rig_advance (rig, 61000);
    rig_restart (rig);
    rig_link (rig, BOSS, "default");
    const Taskmq__WorkerInfo *info = only (rig, false);
    assert_int_equal (info->completed, 1);
    assert_false (info->connected);
    uint64_t started_at = info->started_at;
    rig_link (rig, ME, "default");
    enrol (rig, ME, WORKER, "w");
    rig_settle (rig);
    info = only (rig, false);
    assert_true (info->connected && info->started_at == started_at && info->completed == 1);
}

/* One that never comes back after a start has ended. */
static void who_does_not_come_back_has_ended (void **state)
{
    rig_t *rig = *state;
    enrol (rig, ME, WORKER, "w");
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, BOSS, "default");
    assert_int_equal (only (rig, false)->ended_at, 0);
    rig_advance (rig, 61000);
    assert_int_equal (list (rig, BOSS, false, 0, 0)->n_workers, 0);
    assert_true (only (rig, true)->ended_at > 0);
}

static void an_end_is_told_and_kept_for_a_week (void **state)
{
    rig_t *rig = *state;
    enrol (rig, ME, WORKER, "w");
    rig_settle (rig);
    leave_with (rig, ME, WORKER, -3);
    rig_settle (rig);
    assert_int_equal (list (rig, BOSS, false, 0, 0)->n_workers, 0);
    const Taskmq__WorkerInfo *info = only (rig, true);
    assert_true (info->ended_at > 0 && info->has_exit && !info->connected);
    assert_int_equal (info->exit_status, -3);
    rig_restart (rig);
    rig_link (rig, BOSS, "default");
    info = only (rig, true);
    assert_int_equal (info->exit_status, -3);
    row_t row = rig->kind_rows.rows[0];
    assert_int_equal (row.expires_at, (int64_t) info->ended_at + INT64_C (7) * 24 * 3600 * 1000);
    rig->now.wall_ms = row.expires_at + 1;
    rig_restart (rig);
    rig_link (rig, BOSS, "default");
    rig_advance (rig, 11 * 60 * 1000); /* a leap of the clock holds removals for ten minutes */
    due_t due = {.written = rig->written, .rows = calloc (1, sizeof (row_t)), .rows_count = 1};
    due.rows[0] = row_keep_bare (&row);
    due.rows[0].expires_at = row.expires_at;
    assert_int_equal (engine_due (rig->engine, &due, rig->now), 1);
    rig_settle (rig);
    assert_int_equal (list (rig, BOSS, true, 0, 0)->n_workers, 0);
}

static void a_drained_worker_gets_nothing_new (void **state)
{
    rig_t *rig = *state;
    enrol (rig, ME, WORKER, "w");
    rig_submit (rig, BOSS, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 1);
    assert_int_equal (rig_code (rig, BOSS, drain (rig, BOSS, "w")), TMQ_OK);
    assert_int_equal (drains (rig, ME), 1);
    rig_submit (rig, BOSS, 2, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 1);
    uint64_t complete = rig_complete (rig, ME, rig_assignment (rig, ME, 0)->assignment, "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, complete), TMQ_OK); /* what it holds it finishes */
    assert_int_equal (rig_assignments (rig, ME), 1);
    assert_int_equal (rig_code (rig, BOSS, drain (rig, BOSS, "w")), TMQ_OK); /* a repeat */
    assert_int_equal (drains (rig, ME), 1);
    enrol (rig, ME, WORKER + 1, "v"); /* another one does */
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 2);
    assert_int_equal (rig_code (rig, BOSS, drain (rig, BOSS, "nobody")), TMQ_NOT_FOUND);
}

static void it_stays_drained_over_a_restart (void **state)
{
    rig_t *rig = *state;
    enrol (rig, ME, WORKER, "w");
    rig_settle (rig);
    drain (rig, BOSS, "w");
    rig_restart (rig);
    rig_link (rig, BOSS, "default");
    rig_link (rig, ME, "default");
    rig_forget (rig, ME);
    enrol (rig, ME, WORKER, "w");
    rig_submit (rig, BOSS, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 0);
    assert_int_equal (drains (rig, ME), 1); /* it is told again */
    const Taskmq__WorkerInfo *info = only (rig, false);
    assert_true (info->drained_at > 0 && info->drained_by[0] != '\0');
}

/* Workers that come and go are forgotten before it, when there is no room for all. */
static void it_stays_drained_whoever_comes_and_goes (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.worker_bytes_max = 3000;
    (void) state;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, BOSS, "default");
    rig_link (rig, ME, "default");
    enrol (rig, ME, WORKER, "w");
    rig_settle (rig);
    drain (rig, BOSS, "w");
    rig_leave (rig, ME, WORKER);
    for (unsigned i = 1; i <= 200; i++) {
        uint64_t passing = enrol (rig, BOSS, WORKER + i, "passing");
        rig_settle (rig);
        assert_int_equal (rig_code (rig, BOSS, passing), TMQ_OK);
        rig_leave (rig, BOSS, WORKER + i);
        rig_settle (rig);
    }
    size_t known = list (rig, BOSS, true, 0, 0)->n_workers;
    assert_in_range (known * sizeof (roster_entry_t), 1, config.worker_bytes_max);
    uint64_t again = enrol (rig, ME, WORKER, "w");
    rig_submit (rig, BOSS, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, again), TMQ_OK);
    assert_int_equal (rig_assignments (rig, ME), 0);
    rig_free (rig);
}

/* One that had ended says more of itself than before, and nothing is free. */
static void one_that_comes_back_makes_room (void **state)
{
    enum { MANY = 200, BACK = 5 };
    static const char NAME[] = "a-worker-with-a-name-that-is-much-longer-than-the-one-it-had";
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.worker_bytes_max = 3000;
    (void) state;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, BOSS, "default");
    for (unsigned i = 1; i <= MANY + BACK; i++) {
        unsigned n = i <= MANY ? WORKER + i : WORKER + 2 * MANY + 1 - i;
        uint64_t request = enrol (rig, BOSS, n, i <= MANY ? "w" : NAME);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, BOSS, request), TMQ_OK);
        rig_leave (rig, BOSS, n);
        rig_settle (rig);
    }
    rig_free (rig);
}

static void lists_come_in_pages (void **state)
{
    rig_t *rig = *state;
    char name[16];
    for (unsigned i = 0; i < 25; i++) {
        snprintf (name, sizeof (name), "w-%u", i);
        enrol (rig, ME, WORKER + i, name);
    }
    rig_settle (rig);
    size_t count = 0;
    uint64_t before = 0;
    do {
        const Taskmq__WorkerPage *page = list (rig, BOSS, false, 10, before);
        assert_true ((page->broker != NULL) == (before == 0));
        for (size_t i = 0; i < page->n_workers; i++, count++) {
            snprintf (name, sizeof (name), "w-%u", 24 - (unsigned) count);
            assert_string_equal (page->workers[i]->about->name, name);
        }
        before = page->next;
    } while (before != 0);
    assert_int_equal (count, 25);
}

/* As many come and go. */
static void come_and_go (rig_t *rig, unsigned from, unsigned count)
{
    for (unsigned n = from; n < from + count; n++) {
        rig_register (rig, ME, n, "q", 1);
        rig_leave (rig, ME, n);
        if (n % 100 == 0) {
            rig_settle (rig);
            rig_forget (rig, ME);
        }
    }
    rig_settle (rig);
    rig_forget (rig, ME);
}

static void what_a_full_disk_kept_goes_afterwards (void **state)
{
    enum { OVER = 30 };
    rig_t *rig = *state;
    const match_t *match = &rig->engine->match;
    come_and_go (rig, 1000, ROSTER_GONE_MAX);
    engine_set_full (rig->engine, true); /* nothing is removed */
    come_and_go (rig, 1000 + ROSTER_GONE_MAX, OVER);
    assert_int_equal (match->roster_gone_count, ROSTER_GONE_MAX + OVER);
    engine_set_full (rig->engine, false);
    come_and_go (rig, 1000 + ROSTER_GONE_MAX + OVER, OVER);
    assert_int_equal (match->roster_gone_count, ROSTER_GONE_MAX);
}

static void workers_are_seen_by_who_may (void **state)
{
    rig_t *rig = *state;
    rig->peers[OTHER].identity = "other";
    rig->peers[ME].identity = "me";
    rig->peers[BOSS].identity = "boss";
    rig_access (rig, "boss uid:10 admin(default)\nme uid:11 worker(default)\n"
                     "other uid:12 worker(default)\n");
    rig_link (rig, BOSS, "default");
    rig_link (rig, ME, "default");
    rig_link (rig, OTHER, "default");
    enrol (rig, ME, WORKER, "w");
    enrol (rig, OTHER, WORKER + 1, "v");
    rig_settle (rig);
    assert_int_equal (list (rig, BOSS, false, 0, 0)->n_workers, 2);
    const Taskmq__WorkerPage *own = list (rig, ME, false, 0, 0);
    assert_int_equal (own->n_workers, 1);
    assert_string_equal (own->workers[0]->about->name, "w");
    assert_string_equal (own->workers[0]->principal, "me");
    assert_int_equal (rig_code (rig, ME, drain (rig, ME, "w")), TMQ_DENIED);
    assert_int_equal (rig_code (rig, BOSS, drain (rig, BOSS, "v")), TMQ_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, rig_teardown)

/* A policy of a broker that runs as uid 7 itself. */
static void access_of_7 (rig_t *rig, const char *text)
{
    policy_error_t error;
    const policy_names_t names = {.own_uid = 7};
    policy_t *policy = policy_parse (text, strlen (text), &names, &error);
    assert_non_null (policy);
    engine_access (rig->engine, policy, rig->now);
    policy_drop (rig->policy);
    rig->policy = policy;
    rig_settle (rig);
}

/* An id belongs to a name. Whoever runs the broker may be there without one, so his link stays when
 * a file gives him one; with its next message it is another's. */
static void a_worker_whose_user_gets_a_name (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig->peers[ME].identity = "uid:7";
    rig_link (rig, BOSS, "default");
    rig_link (rig, ME, "default");
    rig_submit (rig, BOSS, 1, "q", "");
    rig_register (rig, ME, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 1);
    access_of_7 (rig, "alice uid:7 worker(*)\n");
    rig->peers[ME].identity = "alice";
    rig_link (rig, ME, "default");
    uint64_t asked = rig_register (rig, ME, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, asked), TMQ_DENIED);
    const char *text = rig_reply (rig, ME, asked)->reply->text;
    assert_non_null (strstr (text, "another name than alice"));
    assert_non_null (strstr (text, "start the worker again"));
    assert_non_null (strstr (text, "owns= of the line"));
    access_of_7 (rig, "alice uid:7 worker(*) owns=uid:7\n");
    rig_link (rig, ME, "default");
    asked = rig_register (rig, ME, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, asked), TMQ_OK);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_worker_says_who_it_is),
        TEST (its_outcomes_are_counted),
        TEST (what_it_did_survives_a_crash),
        TEST (who_does_not_come_back_has_ended),
        TEST (an_end_is_told_and_kept_for_a_week),
        TEST (a_drained_worker_gets_nothing_new),
        TEST (it_stays_drained_over_a_restart),
        TEST (it_stays_drained_whoever_comes_and_goes),
        cmocka_unit_test (one_that_comes_back_makes_room),
        TEST (lists_come_in_pages),
        TEST (what_a_full_disk_kept_goes_afterwards),
        TEST (workers_are_seen_by_who_may),
        cmocka_unit_test (a_worker_whose_user_gets_a_name),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
