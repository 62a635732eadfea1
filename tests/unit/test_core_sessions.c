/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions: what a frozen one refuses, shares, limits, rights, and what goes with one that is
 * removed. */
#include <stdio.h>
#include <string.h>

#include "session_stage.h"

static size_t list_count (rig_t *rig, size_t peer, const char *after, uint32_t limit, bool *more)
{
    Taskmq__SessionList body = TASKMQ__SESSION_LIST__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.after = (char *) after;
    body.limit = limit;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_LIST;
    request.session_list = &body;
    const Taskmq__Reply *reply = rig_reply (rig, peer, stage_send (rig, peer, &request))->reply;
    assert_int_equal (reply->code, TMQ_OK);
    *more = reply->session_page->more;
    return reply->session_page->n_sessions;
}

/* Made by a task. */

static void the_first_task_makes_its_session (void **state)
{
    rig_t *rig = *state;
    bool more;
    stage_submit (rig, 1, "");
    assert_int_equal (list_count (rig, 0, "", 0, &more), 0);
    stage_submit (rig, 2, "trip");
    stage_submit (rig, 3, "trip");
    const Taskmq__Session *session = stage_show (rig, 0, "trip")->session;
    assert_int_equal (session->status, TMQ_SESSION_STATUS_ACTIVE);
    assert_int_equal (session->salience, TMQ_SALIENCE_DEFAULT);
    assert_int_equal (session->tasks, 2);
    assert_string_equal (session->owner, "uid:0");
    assert_int_equal (stage_show (rig, 0, "other")->code, TMQ_NOT_FOUND);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (stage_show (rig, 0, "trip")->session->tasks, 2);
}

static void what_is_set_survives_a_restart (void **state)
{
    rig_t *rig = *state;
    uint32_t fields[] = {TMQ_SESSION_FIELD_GOAL, TMQ_SESSION_FIELD_SALIENCE,
                         TMQ_SESSION_FIELD_CONTEXT};
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    Taskmq__SessionSet body = TASKMQ__SESSION_SET__INIT;
    body.name = (char *) "trip";
    body.goal = (char *) "Lisbon";
    body.salience = 300;
    body.context = (char *) "{\"a\":1}";
    body.fields = fields;
    body.n_fields = 3;
    label.key = (char *) "who";
    label.value = (char *) "us";
    body.labels = labels;
    body.n_labels = 1;
    stage_next_request ();
    uint64_t first = stage_send_set (rig, 0, &body);
    assert_int_equal (rig_code (rig, 0, first), TMQ_OK);
    uint64_t version = rig_reply (rig, 0, first)->reply->session->version;
    rig_restart (rig);
    rig_link (rig, 0, "default");
    const Taskmq__Reply *again = rig_reply (rig, 0, stage_send_set (rig, 0, &body))->reply;
    assert_int_equal (again->session->version, version); /* it is known by its request id */
    const Taskmq__Session *session = stage_show (rig, 0, "trip")->session;
    assert_string_equal (session->goal, "Lisbon");
    assert_int_equal (session->salience, 300);
    assert_string_equal (session->context, "{\"a\":1}");
    assert_string_equal (session->labels[0]->value, "us");
    char *dropped[] = {(char *) "who"};
    Taskmq__SessionSet next = TASKMQ__SESSION_SET__INIT;
    next.name = (char *) "trip";
    next.drop_labels = dropped;
    next.n_drop_labels = 1;
    stage_next_request ();
    assert_int_equal (rig_reply (rig, 0, stage_send_set (rig, 0, &next))->reply->session->n_labels,
                      0);
    assert_string_equal (stage_show (rig, 0, "trip")->session->goal, "Lisbon");
}

/* Frozen and complete ones. */

static void a_frozen_session_takes_nothing (void **state)
{
    rig_t *rig = *state;
    stage_submit (rig, 1, "trip");
    stage_next_request ();
    assert_int_equal (
        rig_code (rig, 0,
                  stage_send_status (rig, 0, "trip", TMQ_SESSION_STATUS_FROZEN, "no more money")),
        TMQ_OK);
    for (unsigned i = 0; i < 2; i++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        uint64_t sent = stage_submit_spec (rig, 2, "trip", &spec);
        const Taskmq__SubmittedItem *item = rig_reply (rig, 0, sent)->reply->submitted->items[0];
        assert_int_equal (item->code, TMQ_LIMIT);
        assert_true (item->retry_after_ms > 0);
        assert_non_null (strstr (item->text, "frozen"));
        assert_non_null (strstr (item->text, "no more money"));
        rig_restart (rig);
        rig_link (rig, 0, "default");
        rig_link (rig, 1, "default");
    }
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    stage_assert_held (rig, 1);
    assert_int_equal (stage_code_of_submit (rig, 1, "trip"), TMQ_OK); /* it is there already */
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (stage_code_of_submit (rig, 2, "trip"), TMQ_OK);
}

/* A pause is taken: it may be what helps. */
static void nothing_is_set_on_a_full_disk (void **state)
{
    rig_t *rig = *state;
    assert_int_equal (stage_set_goal (rig, 0, "trip", "Rome"), TMQ_OK);
    engine_set_full (rig->engine, true);
    stage_next_request ();
    assert_int_equal (stage_set_goal (rig, 0, "trip", "Paris"), TMQ_STORE_FULL);
    assert_int_equal (stage_set_goal (rig, 0, "other", "Paris"), TMQ_STORE_FULL);
    stage_set_status (rig, "trip", TMQ_SESSION_STATUS_PAUSED);
    engine_set_full (rig->engine, false);
    stage_next_request ();
    assert_int_equal (stage_set_goal (rig, 0, "trip", "Paris"), TMQ_OK);
}

static void a_complete_session_lets_its_tasks_end (void **state)
{
    rig_t *rig = *state;
    stage_submit (rig, 1, "trip");
    stage_set_status (rig, "trip", TMQ_SESSION_STATUS_COMPLETE);
    assert_int_equal (stage_code_of_submit (rig, 2, "trip"), TMQ_WRONG_STATUS);
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, true);
    rig_settle (rig);
    rig_use_request_id (78);
    uint64_t retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_WRONG_STATUS);
    stage_resume (rig);
    rig_use_request_id (79);
    retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_OK);
}

/* Shares. */

static unsigned served (rig_t *rig, unsigned first, unsigned last)
{
    unsigned count = 0;
    for (unsigned n = first; n <= last; n++)
        count += rig_status (rig, 0, n) == TMQ_STATUS_WORKING;
    return count;
}

static void salience_is_the_share_of_a_session (void **state)
{
    enum { EACH = 40 };
    rig_t *rig = *state;
    stage_set_queue (rig, TMQ_QUEUE_FIELD_WEIGHT_OF, TMQ_WEIGHT_OF_SESSION);
    stage_set_salience (rig, "big", 300);
    for (unsigned n = 1; n <= EACH; n++) {
        stage_submit (rig, n, "big");
        stage_submit (rig, EACH + n, "small");
    }
    for (unsigned i = 0; i < 2; i++) { /* the same after a restart */
        rig_register (rig, 1, 90, "q", 20);
        rig_settle (rig);
        unsigned big = served (rig, 1, EACH);
        assert_int_equal (served (rig, 1, 2 * EACH), 20);
        assert_in_range (big, 14, 16);
        rig_restart (rig);
        rig_link (rig, 0, "default");
        rig_link (rig, 1, "default");
        rig_register (rig, 1, 91, "q", 0);
        rig_advance (rig, 60000);
    }
}

/* One whose turn was far away has it as soon as the others of its new share. */
static void a_salience_counts_from_its_change_on (void **state)
{
    enum { EACH = 40 };
    rig_t *rig = *state;
    stage_set_queue (rig, TMQ_QUEUE_FIELD_WEIGHT_OF, TMQ_WEIGHT_OF_SESSION);
    stage_set_salience (rig, "late", 1);
    for (unsigned n = 1; n <= EACH; n++) {
        stage_submit (rig, n, "late");
        stage_submit (rig, EACH + n, "other");
    }
    rig_register (rig, 1, 90, "q", 10);
    rig_settle (rig);
    assert_int_equal (served (rig, 1, EACH), 0); /* once in a hundred */
    stage_set_salience (rig, "late", 100);
    rig_worker_credit (rig, 1, 90, 10, 20);
    rig_settle (rig);
    assert_in_range (served (rig, 1, EACH), 4, 6);
    stage_set_salience (rig, "late", 1);
    unsigned before = served (rig, 1, EACH);
    rig_worker_credit (rig, 1, 90, 20, 30);
    rig_settle (rig);
    assert_in_range (served (rig, 1, EACH), before, before + 1);
}

/* Removal. */

static void put_value (rig_t *rig, const char *session, unsigned n)
{
    char key[16];
    Taskmq__ValuePut put = TASKMQ__VALUE_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    snprintf (key, sizeof (key), "key%u", n);
    put.session = (char *) session;
    put.key = key;
    put.body_bytes = 3;
    request.op_case = TASKMQ__REQUEST__OP_VALUE_PUT;
    request.value_put = &put;
    stage_next_request ();
    request.request_id = (ProtobufCBinaryData){sizeof (stage_request_id), stage_request_id};
    rig_send (rig, 0, &request, "abc", 3);
}

static void put_item (rig_t *rig, const char *session)
{
    Taskmq__ItemPut put = TASKMQ__ITEM_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    put.session = (char *) session;
    put.box = (char *) "inputs";
    put.body_bytes = 3;
    request.op_case = TASKMQ__REQUEST__OP_ITEM_PUT;
    request.item_put = &put;
    stage_next_request ();
    request.request_id = (ProtobufCBinaryData){sizeof (stage_request_id), stage_request_id};
    rig_send (rig, 0, &request, "abc", 3);
}

static size_t rows_of (const rig_t *rig, row_kind_t kind)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        count += rig->kind_rows.rows[i].kind == kind;
    return count;
}

static void fill_session (rig_t *rig, const char *session, unsigned values, unsigned items)
{
    for (unsigned i = 0; i < values; i++)
        put_value (rig, session, i);
    for (unsigned i = 0; i < items; i++)
        put_item (rig, session);
    rig_settle (rig);
}

static void what_belongs_to_a_session_goes_with_it (void **state)
{
    enum { VALUES = TMQ_SWEEP_ITEMS_MAX + 10, ITEMS = 20 }; /* more than a page */
    rig_t *rig = *state;
    assert_int_equal (stage_set_goal (rig, 0, "trip", "Lisbon"), TMQ_OK);
    fill_session (rig, "trip", VALUES, ITEMS);
    fill_session (rig, "trip2", 3, 2);
    fill_session (rig, "", 3, 2);
    stage_next_request ();
    assert_int_equal (stage_remove (rig, 0, "trip"), TMQ_OK);
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_VALUE), 6);
    assert_int_equal (rows_of (rig, ROW_KIND_ITEM), 4);
    assert_int_equal (rows_of (rig, ROW_KIND_BOX), 2);
    assert_int_equal (rows_of (rig, ROW_KIND_SESSION), 0);
    assert_int_equal (stage_show (rig, 0, "trip")->code, TMQ_NOT_FOUND);
    /* The same request gets the first answer, also after a restart; another one does not. */
    assert_int_equal (stage_remove (rig, 0, "trip"), TMQ_OK);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (stage_remove (rig, 0, "trip"), TMQ_OK);
    stage_next_request ();
    assert_int_equal (stage_remove (rig, 0, "trip"), TMQ_NOT_FOUND);
    assert_int_equal (stage_code_of_submit (rig, 1, "trip"), TMQ_OK); /* a new one */
    assert_string_equal (stage_show (rig, 0, "trip")->session->goal, "");
}

/* It is killed in the middle, and goes on. */
static void a_removal_goes_on_after_a_restart (void **state)
{
    rig_t *rig = *state;
    assert_int_equal (stage_set_goal (rig, 0, "trip", "Lisbon"), TMQ_OK);
    fill_session (rig, "trip", 10, 10);
    Taskmq__SessionName body = TASKMQ__SESSION_NAME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.name = (char *) "trip";
    request.op_case = TASKMQ__REQUEST__OP_SESSION_REMOVE;
    request.session_remove = &body;
    stage_next_request ();
    request.request_id = (ProtobufCBinaryData){sizeof (stage_request_id), stage_request_id};
    rig_send (rig, 0, &request, NULL, 0);
    rig_commit (rig); /* no page is read yet */
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_advance (rig, 2000);
    assert_int_equal (rows_of (rig, ROW_KIND_VALUE), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_ITEM), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_BOX), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_SESSION), 0);
}

static void a_session_with_live_tasks_stays (void **state)
{
    rig_t *rig = *state;
    stage_submit (rig, 1, "trip");
    stage_next_request ();
    assert_int_equal (stage_remove (rig, 0, "trip"), TMQ_CONFLICT);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (stage_remove (rig, 0, "trip"), TMQ_OK);
    rig_settle (rig);
    rig_use_request_id (80);
    uint64_t retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1); /* makes it anew */
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_OK);
    assert_int_equal (stage_show (rig, 0, "trip")->session->tasks, 1);
}

static void sessions_go_by_themselves (void **state)
{
    const int64_t DAY_MS = 24 * 60 * 60 * 1000;
    rig_t *rig = *state;
    bool more;
    stage_submit (rig, 1, "implicit");
    stage_submit (rig, 2, "kept");
    stage_submit (rig, 3, "complete");
    fill_session (rig, "complete", 1, 0);
    fill_session (rig, "implicit", 1, 0);
    for (unsigned n = 1; n <= 3; n++)
        rig_cancel (rig, 0, n);
    rig_settle (rig);
    assert_int_equal (stage_set_goal (rig, 0, "kept", "stay"), TMQ_OK);
    stage_set_status (rig, "complete", TMQ_SESSION_STATUS_COMPLETE);
    rig->now.mono_ms += 29 * DAY_MS;
    rig->now.wall_ms += 29 * DAY_MS;
    rig_advance (rig, 5000);
    assert_int_equal (list_count (rig, 0, "", 0, &more), 3);
    rig->now.mono_ms += 3 * DAY_MS;
    rig->now.wall_ms += 3 * DAY_MS;
    rig_advance (rig, 5000);
    rig_link (rig, 0, "default");
    assert_int_equal (list_count (rig, 0, "", 0, &more), 1);
    assert_int_equal (stage_show (rig, 0, "kept")->code, TMQ_OK);
    assert_int_equal (rows_of (rig, ROW_KIND_VALUE), 1); /* of the one that was only forgotten */
}

/* Limits, lists, rights. */

static void there_is_a_limit (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    bool more;
    config.space_sessions_max = 2;
    (void) state;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    stage_submit (rig, 1, "a");
    assert_int_equal (stage_set_goal (rig, 0, "b", "x"), TMQ_OK);
    assert_int_equal (stage_set_goal (rig, 0, "c", "x"), TMQ_LIMIT);
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    const Taskmq__SubmittedItem *item =
        rig_reply (rig, 0, stage_submit_spec (rig, 2, "c", &spec))->reply->submitted->items[0];
    assert_int_equal (item->code, TMQ_LIMIT);
    assert_non_null (strstr (item->text, "sessions of the namespace"));
    assert_int_equal (stage_code_of_submit (rig, 3, "a"), TMQ_OK);
    assert_int_equal (stage_code_of_submit (rig, 4, ""), TMQ_OK);
    assert_int_equal (stage_set_goal (rig, 0, "b", "y"), TMQ_OK);
    assert_int_equal (list_count (rig, 0, "", 0, &more), 2);
    rig_free (rig);
}

static void lists_are_pages_by_name (void **state)
{
    rig_t *rig = *state;
    char name[16];
    bool more;
    for (unsigned i = 0; i < 60; i++) {
        snprintf (name, sizeof (name), "s%02u", (i * 7) % 60);
        assert_int_equal (stage_set_goal (rig, 0, name, "x"), TMQ_OK);
    }
    assert_int_equal (list_count (rig, 0, "", 0, &more), 50);
    assert_true (more);
    assert_int_equal (list_count (rig, 0, "s49", 0, &more), 10);
    assert_false (more);
    assert_int_equal (list_count (rig, 0, "s40x", 5, &more), 5);
    assert_true (more);
}

static void a_session_belongs_to_who_made_it (void **state)
{
    rig_t *rig = *state;
    bool more;
    rig_access (
        rig, "alice uid:1 client(default)\nbob uid:2 client(default)\nboss uid:3 admin(default)\n"
             "eve uid:4 reader(default)\n");
    for (size_t i = 1; i <= 4; i++) {
        static const char *const IDENTITIES[] = {"", "alice", "bob", "boss", "eve"};
        rig->peers[i].identity = IDENTITIES[i];
        rig_link (rig, i, "default");
    }
    assert_int_equal (stage_set_goal (rig, 1, "trip", "alice's"), TMQ_OK);
    assert_int_equal (stage_show (rig, 2, "trip")->code, TMQ_NOT_FOUND);
    assert_int_equal (stage_set_goal (rig, 2, "trip", "bob's"), TMQ_CONFLICT);
    stage_next_request ();
    assert_int_equal (
        rig_code (rig, 2, stage_send_status (rig, 2, "trip", TMQ_SESSION_STATUS_PAUSED, "")),
        TMQ_NOT_FOUND);
    assert_int_equal (stage_remove (rig, 2, "trip"), TMQ_NOT_FOUND);
    assert_int_equal (list_count (rig, 2, "", 0, &more), 0);
    assert_int_equal (list_count (rig, 4, "", 0, &more), 1);
    assert_int_equal (stage_set_goal (rig, 4, "trip", "eve's"), TMQ_DENIED);
    assert_int_equal (stage_set_goal (rig, 4, "other", "eve's"), TMQ_DENIED);
    assert_int_equal (stage_set_goal (rig, 3, "trip", "the boss's"), TMQ_OK);
    assert_string_equal (stage_show (rig, 1, "trip")->session->owner, "alice");
    assert_string_equal (stage_show (rig, 1, "trip")->session->goal, "the boss's");
    stage_next_request ();
    assert_int_equal (stage_remove (rig, 3, "trip"), TMQ_OK);
}

/* That a session takes nothing is told to everybody; the reason to who may see the session. */
static void a_reason_is_for_who_sees_the_session (void **state)
{
    rig_t *rig = *state;
    rig_access (rig, "alice uid:1 client(default)\nbob uid:2 client(default)\n");
    for (size_t i = 1; i <= 2; i++) {
        rig->peers[i].identity = i == 1 ? "alice" : "bob";
        rig_link (rig, i, "default");
    }
    assert_int_equal (stage_set_goal (rig, 1, "trip", "alice's"), TMQ_OK);
    for (unsigned n = 1; n <= 4; n++) {
        if (n == 3) {
            stage_next_request ();
            stage_send_status (rig, 1, "trip", TMQ_SESSION_STATUS_FROZEN, "the bank said no");
        }
        size_t who = n % 2 == 0 ? 2 : 1;
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        spec.queue = (char *) "q";
        spec.session = (char *) "trip";
        uint64_t sent = rig_submit_spec (rig, who, n, &spec, "payload");
        rig_settle (rig);
        const Taskmq__SubmittedItem *item = rig_reply (rig, who, sent)->reply->submitted->items[0];
        assert_int_equal (item->code, n < 3 ? TMQ_OK : TMQ_LIMIT);
        assert_true (n < 3 || strstr (item->text, "is frozen") != NULL);
        assert_true (n < 3 || (strstr (item->text, "the bank") != NULL) == (who == 1));
    }
    for (unsigned n = 1; n <= 2; n++) {
        uint64_t why = rig_why (rig, n, n);
        rig_settle (rig);
        const Taskmq__Explanation *told = rig_reply (rig, n, why)->reply->explanation;
        assert_string_equal (told->reason, "session_frozen");
        assert_true ((strstr (told->sentence, "by alice") != NULL) == (n == 1));
        assert_true ((strstr (told->sentence, "the bank") != NULL) == (n == 1));
        for (size_t i = 0; n == 2 && i < told->n_facts; i++) {
            assert_string_not_equal (told->facts[i]->name, "by");
            assert_string_not_equal (told->facts[i]->name, "why");
        }
    }
}

static void there_is_nothing_to_pause (void **state)
{
    rig_t *rig = *state;
    stage_next_request ();
    assert_int_equal (
        rig_code (rig, 0, stage_send_status (rig, 0, "nope", TMQ_SESSION_STATUS_PAUSED, "")),
        TMQ_NOT_FOUND);
}

static void why_names_the_session (void **state)
{
    rig_t *rig = *state;
    stage_submit (rig, 1, "trip");
    stage_next_request ();
    stage_send_status (rig, 0, "trip", TMQ_SESSION_STATUS_PAUSED, "the user thinks");
    uint64_t why = rig_why (rig, 0, 1);
    rig_settle (rig);
    const Taskmq__Explanation *told = rig_reply (rig, 0, why)->reply->explanation;
    assert_string_equal (told->reason, "session_paused");
    assert_non_null (strstr (told->sentence, "its session 'trip' was paused by uid:0"));
    assert_non_null (strstr (told->sentence, "the user thinks"));
    stage_send_queue (rig, true);
    why = rig_why (rig, 0, 1);
    rig_settle (rig);
    assert_string_equal (rig_reply (rig, 0, why)->reply->explanation->reason, "queue_paused");
}

static void changes_are_events (void **state)
{
    rig_t *rig = *state;
    static const char *const MESSAGES[] = {"made", "paused: tea", "set", "removed"};
    uint32_t subjects[] = {TMQ_SUBJECT_SESSION};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    filter.subjects = subjects;
    filter.n_subjects = 1;
    subscribe.subscription = 5;
    subscribe.filter = &filter;
    subscribe.from_now = true;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    stage_submit (rig, 1, "trip");
    stage_next_request ();
    stage_send_status (rig, 0, "trip", TMQ_SESSION_STATUS_PAUSED, "tea");
    stage_set_goal (rig, 0, "trip", "Lisbon");
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    stage_next_request ();
    stage_remove (rig, 0, "trip");
    rig_settle (rig);
    size_t count = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++) {
        const Taskmq__EventList *list = rig->peers[1].items[i].list;
        for (size_t k = 0; list != NULL && k < list->n_events; k++) {
            assert_int_equal (list->events[k]->subject, TMQ_SUBJECT_SESSION);
            assert_string_equal (list->events[k]->name, "trip");
            assert_true (count < 4);
            assert_string_equal (list->events[k]->message, MESSAGES[count++]);
        }
    }
    assert_int_equal (count, 4);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (the_first_task_makes_its_session),
        TEST (what_is_set_survives_a_restart),
        TEST (a_frozen_session_takes_nothing),
        TEST (nothing_is_set_on_a_full_disk),
        TEST (a_complete_session_lets_its_tasks_end),
        TEST (salience_is_the_share_of_a_session),
        TEST (a_salience_counts_from_its_change_on),
        TEST (what_belongs_to_a_session_goes_with_it),
        TEST (a_removal_goes_on_after_a_restart),
        TEST (a_session_with_live_tasks_stays),
        TEST (sessions_go_by_themselves),
        cmocka_unit_test (there_is_a_limit),
        TEST (lists_are_pages_by_name),
        TEST (a_session_belongs_to_who_made_it),
        TEST (a_reason_is_for_who_sees_the_session),
        TEST (there_is_nothing_to_pause),
        TEST (why_names_the_session),
        TEST (changes_are_events),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
