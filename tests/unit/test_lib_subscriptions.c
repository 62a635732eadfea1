/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscriptions in the library's core: in order, once, resumable, bounded. */
#include "lib_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATION = 5 };

static core_subscription_t *subscription_new (rig_t *rig, const tmq_subscription_options_t *options)
{
    core_subscription_t *subscription = NULL;
    assert_int_equal (core_subscription_new (&subscription, rig->core, options, NULL, NULL),
                      TMQ_OK);
    return subscription;
}

/* Answers the subscribe that has to be next; returns the number the client chose. */
static uint64_t confirm (rig_t *rig, uint64_t seq)
{
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_SUBSCRIBE);
    uint64_t number = request->subscribe->subscription;
    Taskmq__Subscribed subscribed = TASKMQ__SUBSCRIBED__INIT;
    subscribed.generation = GENERATION;
    subscribed.seq = seq;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = request->id;
    reply.body_case = TASKMQ__REPLY__BODY_SUBSCRIBED;
    reply.subscribed = &subscribed;
    rig_reply (rig, &reply, NULL, 0);
    return number;
}

/* Events first..last (none when last < first), everything up to upto told. */
static void send_events (rig_t *rig, uint64_t number, uint64_t first, uint64_t last, uint64_t upto,
                         bool replay)
{
    static char message[] = "a message";
    Taskmq__Event events[100];
    Taskmq__Event *pointers[100];
    size_t count = last < first ? 0 : (size_t) (last - first + 1);
    tmq_id_t ids[100];
    for (size_t i = 0; i < count; i++) {
        taskmq__event__init (&events[i]);
        pointers[i] = &events[i];
        ids[i] = rig_id ((uint32_t) (first + i));
        events[i].seq = first + i;
        events[i].kind = TMQ_EVENT_SUBMITTED;
        events[i].task_id = rig_bytes (&ids[i]);
        events[i].message = message;
        events[i].status = TMQ_STATUS_QUEUED;
    }
    Taskmq__EventList list = TASKMQ__EVENT_LIST__INIT;
    list.n_events = count;
    list.events = pointers;
    uint8_t body[100 * 64];
    size_t bytes = count > 0 ? taskmq__event_list__pack (&list, body) : 0;
    Taskmq__EventBatch batch = TASKMQ__EVENT_BATCH__INIT;
    batch.subscription = number;
    batch.generation = GENERATION;
    batch.upto = upto;
    batch.count = (uint32_t) count;
    batch.replay = replay;
    batch.list_bytes = (uint32_t) bytes;
    Taskmq__EventBatch *batches[] = {&batch};
    Taskmq__BrokerMessage envelope = TASKMQ__BROKER_MESSAGE__INIT;
    envelope.n_events = 1;
    envelope.events = batches;
    rig_send (rig, &envelope, bytes > 0 ? body : NULL, bytes);
}

static void expect (core_subscription_t *subscription, tmq_item_kind_t item, uint64_t seq)
{
    tmq_event_t *event = NULL;
    char cursor[48];
    assert_int_equal (core_subscription_next (&event, subscription, NULL), TMQ_OK);
    assert_int_equal (event->item, item);
    if (item == TMQ_ITEM_EVENT) {
        assert_int_equal (event->seq, seq);
        snprintf (cursor, sizeof cursor, "%d-%llu", GENERATION, (unsigned long long) seq);
        assert_string_equal (event->cursor, cursor);
        assert_string_equal (event->ns, "default");
    }
    tmq_event_free (event);
}

static void expect_nothing (core_subscription_t *subscription)
{
    tmq_event_t *event = NULL;
    assert_int_equal (core_subscription_next (&event, subscription, NULL), TMQ_TIMEOUT);
}

static void assert_cursor (const core_subscription_t *subscription, const char *expected)
{
    char cursor[48];
    assert_int_equal (core_subscription_cursor (cursor, subscription), TMQ_OK);
    assert_string_equal (cursor, expected);
}

static void replay_then_live_in_order (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.cursor = "5-10";
    core_subscription_t *subscription = subscription_new (rig, &options);
    assert_int_equal (core_subscription_state (subscription, NULL), TMQ_TIMEOUT);
    uint64_t number = confirm (rig, 10);
    assert_int_equal (rig->message->requests[0]->subscribe->generation, 5);
    assert_int_equal (rig->message->requests[0]->subscribe->after_seq, 10);
    assert_int_equal (core_subscription_state (subscription, NULL), TMQ_OK);
    send_events (rig, number, 11, 12, 20, true);
    send_events (rig, number, 21, 20, 20, false); /* empty: the replay is over */
    send_events (rig, number, 21, 21, 25, false);
    expect (subscription, TMQ_ITEM_EVENT, 11);
    assert_cursor (subscription, "5-11");
    expect (subscription, TMQ_ITEM_EVENT, 12);
    expect (subscription, TMQ_ITEM_LIVE, 0);
    expect (subscription, TMQ_ITEM_EVENT, 21);
    assert_cursor (subscription, "5-25"); /* behind everything, also what did not match */
    send_events (rig, number, 26, 25, 30, false);
    expect_nothing (subscription);
    assert_cursor (subscription, "5-30");
    rig_free (rig);
}

static void a_lost_link_neither_loses_nor_repeats (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    core_subscription_t *subscription = subscription_new (rig, &options);
    uint64_t number = confirm (rig, 100);
    assert_true (rig->message->requests[0]->subscribe->from_now);
    send_events (rig, number, 101, 110, 110, false);
    expect (subscription, TMQ_ITEM_EVENT, 101);
    rig_cut (rig);
    send_events (rig, number, 111, 112, 112, false); /* of the old link: not heard */
    rig_pass (rig, 200);
    rig_welcome (rig);
    uint64_t again = confirm (rig, 110);
    assert_int_equal (rig->message->requests[0]->subscribe->after_seq, 110);
    assert_int_equal (rig->message->requests[0]->subscribe->generation, GENERATION);
    assert_false (rig->message->requests[0]->subscribe->from_now);
    send_events (rig, again, 105, 115, 115, true); /* what overlaps is dropped */
    for (uint64_t seq = 102; seq <= 110; seq++)
        expect (subscription, TMQ_ITEM_EVENT, seq);
    expect (subscription, TMQ_ITEM_LIVE, 0);
    for (uint64_t seq = 111; seq <= 115; seq++)
        expect (subscription, TMQ_ITEM_EVENT, seq);
    expect_nothing (subscription);
    rig_free (rig);
}

static void options_are_copied (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    char queue[] = "films", session[] = "s1", key[] = "part", value[] = "two", cursor[] = "5-10";
    const char *queues[] = {queue}, *sessions[] = {session};
    tmq_label_t labels[] = {{key, value}};
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.filter.queues = queues;
    options.filter.queues_count = 1;
    options.filter.sessions = sessions;
    options.filter.sessions_count = 1;
    options.filter.labels = labels;
    options.filter.labels_count = 1;
    options.cursor = cursor;
    subscription_new (rig, &options);
    queue[0] = session[0] = key[0] = value[0] = cursor[0] = 'x';
    queues[0] = sessions[0] = NULL;
    memset (labels, 0, sizeof labels);
    memset (&options, 0, sizeof options);
    for (int i = 0; i < 2; i++) { /* with the first link, and with a later one */
        rig_welcome (rig);
        const Taskmq__Subscribe *asked =
            rig_request (rig, TASKMQ__REQUEST__OP_SUBSCRIBE)->subscribe;
        assert_string_equal (asked->filter->queues[0], "films");
        assert_string_equal (asked->filter->sessions[0], "s1");
        assert_string_equal (asked->filter->labels[0]->key, "part");
        assert_string_equal (asked->filter->labels[0]->value, "two");
        assert_int_equal (asked->generation, 5);
        assert_int_equal (asked->after_seq, 10);
        rig_cut (rig);
        rig_pass (rig, 500);
    }
    rig_free (rig);
}

static void before_the_confirmation_it_is_asked_as_it_was (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.since_time = 12345;
    subscription_new (rig, &options);
    rig_request (rig, TASKMQ__REQUEST__OP_SUBSCRIBE);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    confirm (rig, 3);
    assert_int_equal (rig->message->requests[0]->subscribe->since_time, 12345);
    rig_free (rig);
}

static void a_gap_is_told (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.cursor = "4-7"; /* of another generation */
    core_subscription_t *subscription = subscription_new (rig, &options);
    uint64_t number = confirm (rig, 50);
    Taskmq__Gap gap = TASKMQ__GAP__INIT;
    gap.subscription = number;
    gap.generation = GENERATION;
    gap.from = 8;
    gap.to = 50;
    Taskmq__BrokerMessage envelope = TASKMQ__BROKER_MESSAGE__INIT;
    envelope.gap = &gap;
    rig_send (rig, &envelope, NULL, 0);
    send_events (rig, number, 51, 51, 51, false);
    tmq_event_t *event = NULL;
    assert_int_equal (core_subscription_next (&event, subscription, NULL), TMQ_OK);
    assert_int_equal (event->item, TMQ_ITEM_GAP);
    assert_int_equal (event->gap_from, 8);
    assert_int_equal (event->gap_to, 50);
    assert_string_equal (event->cursor, "5-50");
    tmq_event_free (event);
    assert_cursor (subscription, "5-50");
    expect (subscription, TMQ_ITEM_EVENT, 51);
    rig_free (rig);
}

static void send_gap (rig_t *rig, uint64_t number, uint64_t from, uint64_t to)
{
    Taskmq__Gap gap = TASKMQ__GAP__INIT;
    gap.subscription = number;
    gap.generation = GENERATION;
    gap.from = from;
    gap.to = to;
    Taskmq__BrokerMessage envelope = TASKMQ__BROKER_MESSAGE__INIT;
    envelope.gap = &gap;
    rig_send (rig, &envelope, NULL, 0);
}

/* A broker whose window was full goes on behind the cursor that was acknowledged. */
static void what_is_sent_again_is_dropped (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    core_subscription_t *subscription = subscription_new (rig, &options);
    uint64_t number = confirm (rig, 7);
    tmq_event_t *event = NULL;
    send_events (rig, number, 8, 20, 20, false);
    send_events (rig, number, 10, 22, 22, true); /* again from 10 on */
    for (uint64_t seq = 8; seq <= 20; seq++)
        expect (subscription, TMQ_ITEM_EVENT, seq);
    expect (subscription, TMQ_ITEM_LIVE, 0);
    expect (subscription, TMQ_ITEM_EVENT, 21);
    expect (subscription, TMQ_ITEM_EVENT, 22);
    expect_nothing (subscription);
    send_gap (rig, number, 10, 22); /* no gap for us: all of it was received */
    expect_nothing (subscription);
    send_gap (rig, number, 10, 30);
    assert_int_equal (core_subscription_next (&event, subscription, NULL), TMQ_OK);
    assert_int_equal (event->item, TMQ_ITEM_GAP);
    assert_int_equal (event->gap_from, 23);
    assert_int_equal (event->gap_to, 30);
    tmq_event_free (event);
    send_events (rig, number, 29, 31, 31, true);
    expect (subscription, TMQ_ITEM_EVENT, 31);
    expect_nothing (subscription);
    rig_free (rig);
}

static void bad_cursors_are_refused (void **state)
{
    (void) state;
    static const char *const bad[] = {"x", "5-", "-5", "5-6-7", "5 6", "99999999999999999999999-1"};
    rig_t *rig = rig_linked (NULL);
    core_subscription_t *subscription = NULL;
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.cursor = bad[i];
        assert_int_equal (core_subscription_new (&subscription, rig->core, &options, NULL, NULL),
                          TMQ_BAD_CURSOR);
    }
    options.cursor = "4711"; /* a sequence of the current generation */
    subscription = subscription_new (rig, &options);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_SUBSCRIBE);
    assert_int_equal (request->subscribe->generation, 0);
    assert_int_equal (request->subscribe->after_seq, 4711);
    rig_refuse (rig, request->id, TMQ_BAD_CURSOR, 0);
    assert_int_equal (core_subscription_state (subscription, NULL), TMQ_BAD_CURSOR);
    tmq_event_t *event = NULL;
    assert_int_equal (core_subscription_next (&event, subscription, NULL), TMQ_BAD_CURSOR);
    rig_free (rig);
}

static void send_snapshot (rig_t *rig, uint64_t number, uint32_t task, uint64_t seq, bool last)
{
    tmq_id_t id = rig_id (task);
    Taskmq__Task record = TASKMQ__TASK__INIT;
    Taskmq__Task *records[] = {&record};
    record.task_id = rig_bytes (&id);
    record.status = TMQ_STATUS_WORKING;
    record.seq = seq;
    Taskmq__Snapshot snapshot = TASKMQ__SNAPSHOT__INIT;
    snapshot.subscription = number;
    snapshot.n_tasks = 1;
    snapshot.tasks = records;
    snapshot.last = last;
    Taskmq__BrokerMessage envelope = TASKMQ__BROKER_MESSAGE__INIT;
    envelope.snapshot = &snapshot;
    rig_send (rig, &envelope, NULL, 0);
}

static void a_snapshot_contains_older_events (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.snapshot = true;
    core_subscription_t *subscription = subscription_new (rig, &options);
    uint64_t number = confirm (rig, 100);
    send_snapshot (rig, number, 101, 103, false); /* its event 101 is contained */
    send_snapshot (rig, number, 102, 90, true);
    send_events (rig, number, 101, 102, 102, false);
    expect (subscription, TMQ_ITEM_SNAPSHOT, 0);
    assert_cursor (subscription, "5-100");
    expect (subscription, TMQ_ITEM_SNAPSHOT, 0);
    expect (subscription, TMQ_ITEM_SNAPSHOT_END, 0);
    expect (subscription, TMQ_ITEM_EVENT, 102);
    expect (subscription, TMQ_ITEM_LIVE, 0);
    expect_nothing (subscription);
    rig_free (rig);
}

static void a_broken_snapshot_begins_anew (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.snapshot = true;
    core_subscription_t *subscription = subscription_new (rig, &options);
    uint64_t number = confirm (rig, 100);
    send_snapshot (rig, number, 1, 90, false);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    number = confirm (rig, 100);
    assert_true (rig->message->requests[0]->subscribe->snapshot);
    assert_int_equal (rig->message->requests[0]->subscribe->after_seq, 100);
    send_snapshot (rig, number, 1, 90, false);
    send_snapshot (rig, number, 2, 91, true);
    expect (subscription, TMQ_ITEM_SNAPSHOT, 0);
    expect (subscription, TMQ_ITEM_SNAPSHOT, 0);
    expect (subscription, TMQ_ITEM_SNAPSHOT_END, 0);
    rig_cut (rig);
    rig_pass (rig, 500);
    rig_welcome (rig);
    confirm (rig, 100);
    assert_false (rig->message->requests[0]->subscribe->snapshot); /* it was complete */
    rig_free (rig);
}

/* The newest credit among the requests that are to be sent, 0 for none. */
static uint64_t credit (rig_t *rig)
{
    uint64_t upto = 0;
    while (rig_take (rig))
        for (size_t i = 0; i < rig->message->n_requests; i++)
            if (rig->message->requests[i]->op_case == TASKMQ__REQUEST__OP_CREDIT)
                upto = rig->message->requests[i]->credit->received_upto;
    return upto;
}

static void credit_follows_what_was_received (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    subscription_new (rig, &options);
    uint64_t number = confirm (rig, 0);
    uint64_t seq = 0;
    uint64_t credited = 0;
    for (int i = 0; i < 20; i++) {
        send_events (rig, number, seq + 1, seq + 50, seq + 50, false);
        seq += 50;
        uint64_t told = credit (rig);
        credited = told != 0 ? told : credited;
        assert_true (told == 0 || told == seq);
        assert_true (seq - credited <
                     400); /* a quarter of the window is 8 KiB, 40 bytes an event */
    }
    assert_true (credited > 0);
    rig_free (rig);
}

static void a_slow_application_stops_the_broker_not_the_memory (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.buffer_bytes_max = 64 * 1024;
    core_subscription_t *subscription = subscription_new (rig, &options);
    uint64_t number = confirm (rig, 0);
    uint64_t seq = 0;
    uint64_t credited = 0;
    size_t unacknowledged = 0;
    while (unacknowledged < TMQ_SUBSCRIPTION_WINDOW_BYTES) { /* the broker stops at its window */
        send_events (rig, number, seq + 1, seq + 50, seq + 50, false);
        seq += 50;
        uint64_t told = credit (rig);
        credited = told != 0 ? told : credited;
        unacknowledged = (size_t) (seq - credited) * 40;
        assert_true (seq < 100000);
    }
    assert_true (seq < 3000); /* each takes some 300 bytes of memory */
    uint64_t taken = 0;
    tmq_event_t *event = NULL;
    while (core_subscription_next (&event, subscription, NULL) == TMQ_OK) {
        if (event->item == TMQ_ITEM_EVENT)
            assert_int_equal (event->seq, ++taken);
        tmq_event_free (event);
    }
    assert_int_equal (taken, seq);
    assert_int_equal (credit (rig), seq); /* now it may go on */
    rig_free (rig);
}

static void send_notice (rig_t *rig, uint64_t number, uint32_t task, unsigned done)
{
    tmq_id_t id = rig_id (task);
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    progress.done = done;
    Taskmq__Notice notice = TASKMQ__NOTICE__INIT;
    Taskmq__Notice *notices[] = {&notice};
    notice.subscription = number;
    notice.task_id = rig_bytes (&id);
    notice.progress = &progress;
    Taskmq__BrokerMessage envelope = TASKMQ__BROKER_MESSAGE__INIT;
    envelope.n_notices = 1;
    envelope.notices = notices;
    rig_send (rig, &envelope, NULL, 0);
}

static void of_notices_the_latest_wins (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    core_subscription_t *subscription = subscription_new (rig, &options);
    uint64_t number = confirm (rig, 100);
    for (unsigned done = 1; done <= 1000; done++) {
        send_notice (rig, number, 1, done);
        send_notice (rig, number, 2, done * 2);
    }
    tmq_event_t *event = NULL;
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal (core_subscription_next (&event, subscription, NULL), TMQ_OK);
        assert_int_equal (event->item, TMQ_ITEM_NOTICE);
        assert_int_equal ((uint64_t) event->progress_done, 1000 * i);
        assert_int_equal (event->seq, 0);
        tmq_event_free (event);
    }
    expect_nothing (subscription);
    for (uint32_t task = 0; task < 1000; task++)
        send_notice (rig, number, task, 1);
    size_t kept = 0;
    while (core_subscription_next (&event, subscription, NULL) == TMQ_OK) {
        kept++;
        tmq_event_free (event);
    }
    assert_in_range (kept, 1, 64);
    rig_free (rig);
}

static void ready_is_told_once_until_it_is_taken (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.notify = true;
    options.user = rig;
    core_subscription_new (&(core_subscription_t *){NULL}, rig->core, &options, NULL, NULL);
    uint64_t number = confirm (rig, 100);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_SUBSCRIPTION_READY, TMQ_OK);
    assert_ptr_equal (answer->completion.user, rig);
    send_events (rig, number, 101, 101, 101, false);
    rig_no_answer (rig); /* the application has not taken the first one */
    answer->queued = false;
    send_events (rig, number, 102, 102, 102, false);
    rig_answer (rig, TMQ_OP_SUBSCRIPTION_READY, TMQ_OK);
    rig_free (rig);
}

static void a_refused_credit_subscribes_again (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    subscription_new (rig, &options);
    uint64_t number = confirm (rig, 0);
    uint64_t request = 0;
    for (uint64_t seq = 0; request == 0; seq += 50) {
        send_events (rig, number, seq + 1, seq + 50, seq + 50, false);
        if (rig_take (rig))
            request = rig->message->requests[0]->id;
        assert_true (seq < 1000);
    }
    rig_refuse (rig, request, TMQ_NOT_FOUND, 0);
    const Taskmq__Request *again = rig_request (rig, TASKMQ__REQUEST__OP_SUBSCRIBE);
    assert_true (again->subscribe->after_seq > 0);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (replay_then_live_in_order),
        cmocka_unit_test (a_lost_link_neither_loses_nor_repeats),
        cmocka_unit_test (options_are_copied),
        cmocka_unit_test (before_the_confirmation_it_is_asked_as_it_was),
        cmocka_unit_test (a_gap_is_told),
        cmocka_unit_test (what_is_sent_again_is_dropped),
        cmocka_unit_test (bad_cursors_are_refused),
        cmocka_unit_test (a_snapshot_contains_older_events),
        cmocka_unit_test (a_broken_snapshot_begins_anew),
        cmocka_unit_test (credit_follows_what_was_received),
        cmocka_unit_test (a_slow_application_stops_the_broker_not_the_memory),
        cmocka_unit_test (of_notices_the_latest_wins),
        cmocka_unit_test (ready_is_told_once_until_it_is_taken),
        cmocka_unit_test (a_refused_credit_subscribes_again),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
