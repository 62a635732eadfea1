/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What requests cost that look at much, or move much: the round's allowance pays for it, so that
 * nobody else waits for longer than a round. */
#include <stdio.h>

#include "core_rig.h"
#include "ids.h"

enum { REQUESTS = 64 };

/* So many of the message's requests are handled in one round. */
static size_t handled (rig_t *rig, const message_t *message)
{
    key_list_t keys = {0};
    engine_round (rig->engine);
    size_t upto = engine_want (rig->engine, message, 0, &keys);
    engine_loaded (rig->engine, &keys);
    engine_message (rig->engine, message, 0, upto, rig->now);
    return upto;
}

static void instants_that_are_computed_are_paid_for (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    Taskmq__ScheduleName show = TASKMQ__SCHEDULE_NAME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    config.round.requests = 1000;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    show.name = (char *) "nightly";
    show.coming = TMQ_SCHEDULE_COMING_MAX;
    request.op_case = TASKMQ__REQUEST__OP_SCHEDULE_SHOW;
    request.schedule_show = &show;
    message_t message = rig_message_of (rig, 0, &request, REQUESTS);
    assert_in_range (handled (rig, &message), 1, 1000 / TMQ_SCHEDULE_COMING_MAX);
    rig_free (rig);
}

/* A worker of peer 1 with this label. */
static void register_with_label (rig_t *rig, unsigned worker, const char *label)
{
    Taskmq__Register body = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Label one = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&one};
    char *queues[] = {(char *) "q"};
    tmq_id_t id = rig_id (worker);
    one.key = one.value = (char *) label;
    body.worker_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    body.name = (char *) label;
    body.queues = queues;
    body.n_queues = 1;
    body.labels = labels;
    body.n_labels = 1;
    body.capacity = 1;
    request.op_case = TASKMQ__REQUEST__OP_REGISTER;
    request.register_ = &body;
    rig_send (rig, 1, &request, NULL, 0);
}

static void submit_for (rig_t *rig, unsigned n, const char *label)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Label one = TASKMQ__LABEL__INIT;
    Taskmq__Label *needs[] = {&one};
    one.key = one.value = (char *) label;
    extra.needs = needs;
    extra.n_needs = 1;
    spec.queue = (char *) "q";
    spec.extra = &extra;
    rig_submit_spec (rig, 0, n, &spec, "");
}

/* The one who is right stands at the end. The queue changes in each round, which begins no walk
 * anew before the last one has come to its end. */
static void waiting_workers_are_looked_at_some_in_each_round (void **state)
{
    enum { WORKERS = 200, SEATS = 10 };
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.seats = SEATS;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= WORKERS; n++)
        rig_register (rig, 1, 1000 + n, "q", 1);
    register_with_label (rig, 2000, "gpu");
    rig_settle (rig);
    unsigned rounds = 0;
    submit_for (rig, 1, "gpu");
    for (; rig_assignments (rig, 1) == 0 && rounds < WORKERS; rounds++) {
        submit_for (rig, 10 + rounds, "nobody");
        rig_settle (rig);
    }
    assert_in_range (rounds, WORKERS / SEATS / 4, WORKERS / SEATS);
    for (unsigned i = 0; i < 2 * WORKERS / SEATS; i++) /* what is left of the walks */
        rig_settle (rig);
    submit_for (rig, 2, "gpu"); /* he has no room */
    for (unsigned i = 0; i < 2 * WORKERS / SEATS; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    rig_leave (rig, 1, 1003); /* before the walk, and where it stands */
    rig_leave (rig, 1, 1001 + SEATS);
    register_with_label (rig, 2001, "gpu");
    for (unsigned i = 0; i < 2 * WORKERS / SEATS; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    rig_free (rig);
}

/* So many inboxes with a filter that nothing meets. */
static size_t inboxes_in_a_round (rig_t *rig)
{
    char *queues[] = {(char *) "elsewhere"};
    Taskmq__Inbox inbox = TASKMQ__INBOX__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    inbox.queues = queues;
    inbox.n_queues = 1;
    request.op_case = TASKMQ__REQUEST__OP_INBOX;
    request.inbox = &inbox;
    message_t message = rig_message_of (rig, 0, &request, REQUESTS);
    return handled (rig, &message);
}

static void questions_that_are_looked_at_are_paid_for (void **state)
{
    enum { QUESTIONS = TMQ_QUESTIONS_OPEN_MAX };
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.requests = QUESTIONS;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    size_t before = inboxes_in_a_round (rig);
    rig_submit (rig, 0, 1, "q", "p");
    rig_register (rig, 1, 1000, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    rig_started (rig, 1, assignment);
    for (unsigned i = 0; i < QUESTIONS; i++) {
        char key[16];
        snprintf (key, sizeof (key), "k%u", i);
        rig_ask (rig, 1, assignment, key, "1");
        rig_settle (rig);
    }
    assert_in_range (inboxes_in_a_round (rig), 1, before / 2);
    rig_free (rig);
}

static void make_session (rig_t *rig, unsigned n)
{
    char name[16];
    Taskmq__SessionSet set = TASKMQ__SESSION_SET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t id[16] = {(uint8_t) n, 1};
    snprintf (name, sizeof (name), "s%u", n);
    set.name = name;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_SET;
    request.session_set = &set;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
}

static void sessions_that_are_looked_at_are_paid_for (void **state)
{
    enum { SESSIONS = 160 };
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    Taskmq__SessionList list = TASKMQ__SESSION_LIST__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    config.round.requests = 800;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    for (unsigned n = 0; n < SESSIONS; n++)
        make_session (rig, n);
    request.op_case = TASKMQ__REQUEST__OP_SESSION_LIST;
    request.session_list = &list;
    list.limit = SESSIONS;
    message_t message = rig_message_of (rig, 0, &request, REQUESTS);
    size_t whole = handled (rig, &message);
    list.limit = 1;
    message = rig_message_of (rig, 0, &request, REQUESTS);
    size_t each = 64 + SESSIONS / 8 + SESSIONS; /* each is looked at, and shown */
    assert_in_range (whole, 800 / each, 800 / each + 1);
    assert_true (handled (rig, &message) > whole);
    rig_free (rig);
}

static uint64_t put_item (rig_t *rig, uint8_t n)
{
    Taskmq__ItemPut put = TASKMQ__ITEM_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t id[16] = {n, 2};
    put.box = (char *) "inputs";
    put.body_bytes = 1;
    request.op_case = TASKMQ__REQUEST__OP_ITEM_PUT;
    request.item_put = &put;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    uint64_t sent = rig_send (rig, 0, &request, "1", 1);
    rig_run (rig);
    return rig_reply (rig, 0, sent)->reply->item_done->number;
}

static void items_that_are_acknowledged_are_paid_for (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    Taskmq__ItemAck ack = TASKMQ__ITEM_ACK__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint64_t numbers[100];
    uint8_t id[16] = {1};
    config.round.requests = 1000;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    for (uint8_t i = 0; i < 100; i++) /* they are in memory until they are written back */
        numbers[i] = put_item (rig, i);
    ack.box = (char *) "inputs";
    ack.numbers = numbers;
    ack.n_numbers = 100;
    request.op_case = TASKMQ__REQUEST__OP_ITEM_ACK;
    request.item_ack = &ack;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    message_t message = rig_message_of (rig, 0, &request, REQUESTS);
    assert_in_range (handled (rig, &message), 9, 10);
    rig_free (rig);
}

/* So many requests of this kind for pages of up to `limit` entries. */
static size_t pages_in_a_round (rig_t *rig, Taskmq__Request__OpCase op, uint32_t limit)
{
    Taskmq__SessionList sessions = TASKMQ__SESSION_LIST__INIT;
    Taskmq__ScheduleList schedules = TASKMQ__SCHEDULE_LIST__INIT;
    Taskmq__WorkerList workers = TASKMQ__WORKER_LIST__INIT;
    Taskmq__Inbox inbox = TASKMQ__INBOX__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    sessions.limit = schedules.limit = workers.limit = inbox.limit = limit;
    request.op_case = op;
    switch ((int) op) {
    case TASKMQ__REQUEST__OP_SESSION_LIST: request.session_list = &sessions; break;
    case TASKMQ__REQUEST__OP_SCHEDULE_LIST: request.schedule_list = &schedules; break;
    case TASKMQ__REQUEST__OP_WORKER_LIST: request.worker_list = &workers; break;
    default: request.inbox = &inbox; break;
    }
    message_t message = rig_message_of (rig, 0, &request, REQUESTS);
    return handled (rig, &message);
}

/* Each in one of its own. */
static void submit_in_session (rig_t *rig, size_t peer, unsigned n)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    char name[16];
    snprintf (name, sizeof (name), "n%u", n);
    spec.queue = (char *) "q";
    spec.session = name;
    rig_submit_spec (rig, peer, n, &spec, "");
}

static void put_schedule (rig_t *rig, unsigned n)
{
    Taskmq__TaskSpec task = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Schedule schedule = TASKMQ__SCHEDULE__INIT;
    Taskmq__SchedulePut put = TASKMQ__SCHEDULE_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (5000 + n);
    char name[16];
    snprintf (name, sizeof (name), "s%u", n);
    task.queue = (char *) "q";
    schedule.name = name;
    schedule.calendar = (char *) "@daily";
    schedule.task = &task;
    put.schedule = &schedule;
    request.op_case = TASKMQ__REQUEST__OP_SCHEDULE_PUT;
    request.schedule_put = &put;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    rig_send (rig, 0, &request, NULL, 0);
}

/* What a page shows costs as much as small requests. */
static void entries_of_pages_are_paid_for (void **state)
{
    static const Taskmq__Request__OpCase PAGES[] = {
        TASKMQ__REQUEST__OP_SESSION_LIST, TASKMQ__REQUEST__OP_SCHEDULE_LIST,
        TASKMQ__REQUEST__OP_WORKER_LIST, TASKMQ__REQUEST__OP_INBOX};
    enum { KINDS = sizeof (PAGES) / sizeof (PAGES[0]), ENTRIES = TMQ_QUESTIONS_OPEN_MAX };
    size_t before[KINDS];
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.requests = 16 * ENTRIES;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned i = 0; i < KINDS; i++)
        before[i] = pages_in_a_round (rig, PAGES[i], ENTRIES);
    for (unsigned n = 0; n < ENTRIES; n++) {
        submit_in_session (rig, 0, 1 + n);
        put_schedule (rig, n);
        rig_register (rig, 1, 1000 + n, "elsewhere", 1);
    }
    rig_register (rig, 1, 3000, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    rig_started (rig, 1, assignment);
    for (unsigned n = 0; n < ENTRIES; n++) {
        char key[16];
        snprintf (key, sizeof (key), "k%u", n);
        rig_ask (rig, 1, assignment, key, "1");
        rig_settle (rig);
    }
    for (unsigned i = 0; i < KINDS; i++)
        assert_in_range (pages_in_a_round (rig, PAGES[i], ENTRIES), 1, before[i] / 2);
    rig_free (rig);
}

/* One who sees none of them has looked at all of them. */
static void entries_that_are_looked_at_in_vain_are_paid_for (void **state)
{
    enum { SESSIONS = 512 };
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.requests = 1024;
    rig_t *rig = rig_new_with (&config);
    rig->peers[0].identity = "me";
    rig->peers[1].identity = "somebody";
    rig_access (rig, "me uid:1 client(default/z)\nsomebody uid:2 operator\n");
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    size_t before = pages_in_a_round (rig, TASKMQ__REQUEST__OP_SESSION_LIST, 1);
    for (unsigned n = 0; n < SESSIONS; n++)
        submit_in_session (rig, 1, 1 + n);
    rig_settle (rig);
    assert_in_range (pages_in_a_round (rig, TASKMQ__REQUEST__OP_SESSION_LIST, 1), 1, before / 2);
    rig_free (rig);
}

static unsigned code_of_resolve (rig_t *rig, unsigned n)
{
    tmq_id_t id = rig_id (n);
    char suffix[2 * sizeof (id) + 1];
    hex_encode (suffix, id.bytes, sizeof (id));
    uint64_t request = rig_resolve (rig, 0, suffix);
    rig_settle (rig);
    return rig_code (rig, 0, request);
}

/* A worker sees foreign tasks while it holds them. Of so many the newest are looked at. */
static void leases_are_looked_through_as_far_as_a_page_of_tasks (void **state)
{
    enum { HELD = 30, LOOKS = 10 };
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.read_looks_max = LOOKS;
    rig_t *rig = rig_new_with (&config);
    rig->peers[0].identity = "me";
    rig->peers[1].identity = "somebody";
    rig_access (rig, "me uid:1 worker(*)\nsomebody uid:2 operator\n");
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= HELD; n++)
        rig_submit (rig, 1, n, "q", "");
    rig_settle (rig);
    rig_register (rig, 0, 100, "q", HELD);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 0), HELD);
    for (unsigned n = 1; n <= HELD; n++)
        assert_int_equal (code_of_resolve (rig, n), n > HELD - LOOKS ? TMQ_OK : TMQ_NOT_FOUND);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (leases_are_looked_through_as_far_as_a_page_of_tasks),
        cmocka_unit_test (instants_that_are_computed_are_paid_for),
        cmocka_unit_test (waiting_workers_are_looked_at_some_in_each_round),
        cmocka_unit_test (questions_that_are_looked_at_are_paid_for),
        cmocka_unit_test (sessions_that_are_looked_at_are_paid_for),
        cmocka_unit_test (items_that_are_acknowledged_are_paid_for),
        cmocka_unit_test (entries_of_pages_are_paid_for),
        cmocka_unit_test (entries_that_are_looked_at_in_vain_are_paid_for),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
