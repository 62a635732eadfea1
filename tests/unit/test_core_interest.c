/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Many subscriptions with filters of all kinds see exactly what a look at every event says they
 * should: whatever the grouping into batches, while subscriptions come and go, the transport
 * refuses messages and credit comes late. And what many of them are sent shares messages. */
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"

enum { WATCHERS = 80, TASKS = 150, STEPS = 150, NAMES = 5, VALUES_MAX = 3, REFERENCE = 1000 };

typedef struct watcher {
    Taskmq__Filter filter;
    char *queues[VALUES_MAX];
    char *sessions[VALUES_MAX];
    uint32_t statuses[1];
    tmq_id_t ids[VALUES_MAX];
    ProtobufCBinaryData id_bytes[VALUES_MAX];
    uint64_t request;
    bool there;
} watcher_t;

static char names[NAMES][4] = {"n0", "n1", "n2", "n3", "n4"};
static uint64_t chance_state;

static unsigned chance (unsigned bound)
{
    chance_state = chance_state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (unsigned) (chance_state >> 33) % bound;
}

static void choose_names (char **out, size_t *count, char ***list)
{
    *count = 1 + chance (VALUES_MAX);
    *list = out;
    for (size_t i = 0; i < *count; i++)
        out[i] = names[chance (NAMES)];
}

static void choose_filter (watcher_t *self)
{
    taskmq__filter__init (&self->filter);
    if (chance (3) == 0)
        choose_names (self->queues, &self->filter.n_queues, &self->filter.queues);
    if (chance (3) == 0)
        choose_names (self->sessions, &self->filter.n_sessions, &self->filter.sessions);
    if (chance (4) == 0) {
        self->statuses[0] = chance (2) == 0 ? TMQ_STATUS_QUEUED : TMQ_STATUS_CANCELLED;
        self->filter.n_statuses = 1;
        self->filter.statuses = self->statuses;
    }
    if (chance (2) == 0) {
        self->filter.n_task_ids = 1 + chance (VALUES_MAX);
        self->filter.task_ids = self->id_bytes;
        for (size_t i = 0; i < self->filter.n_task_ids; i++) {
            self->ids[i] = rig_id (1 + chance (TASKS));
            self->id_bytes[i] = (ProtobufCBinaryData){16, self->ids[i].bytes};
        }
    }
}

static bool named (char **list, size_t count, const char *name)
{
    bool any = count == 0;
    for (size_t i = 0; i < count; i++)
        any = any || strcmp (list[i], name) == 0;
    return any;
}

static bool takes (const watcher_t *self, const Taskmq__Event *event)
{
    const Taskmq__Filter *filter = &self->filter;
    bool any = filter->n_task_ids == 0;
    for (size_t i = 0; i < filter->n_task_ids; i++)
        any = any || memcmp (filter->task_ids[i].data, event->task_id.data, 16) == 0;
    return any && named (filter->queues, filter->n_queues, event->queue) &&
           named (filter->sessions, filter->n_sessions, event->session) &&
           (filter->n_statuses == 0 || filter->statuses[0] == event->status);
}

static void subscribe (rig_t *rig, watcher_t *self, uint64_t number, uint64_t newest)
{
    Taskmq__Subscribe request = TASKMQ__SUBSCRIBE__INIT;
    choose_filter (self);
    request.subscription = number;
    request.filter = &self->filter;
    request.from_now = chance (2) == 0;
    request.after_seq = newest > 0 ? chance ((unsigned) newest) : 0;
    self->request = rig_subscribe_as (rig, 1, &request);
    self->there = true;
}

/* The newest event that the peer received for the subscription. */
static uint64_t newest_of (const rig_t *rig, size_t peer, uint64_t number)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < rig->peers[peer].count; i++) {
        const Taskmq__EventBatch *batch = rig->peers[peer].items[i].events;
        if (batch != NULL && batch->subscription == number && batch->upto > newest)
            newest = batch->upto;
    }
    return newest;
}

/* One of the items' events of the subscription behind *seq; *seq becomes its number. What the
 * refused transport made come twice is skipped. */
static const Taskmq__Event *next_event (const rig_t *rig, size_t peer, uint64_t number,
                                        size_t *item, size_t *at, uint64_t *seq)
{
    for (; *item < rig->peers[peer].count; (*item)++, *at = 0) {
        const rig_item_t *it = &rig->peers[peer].items[*item];
        if (it->list == NULL || it->events->subscription != number)
            continue;
        for (; *at < it->list->n_events; (*at)++)
            if (it->list->events[*at]->seq > *seq) {
                *seq = it->list->events[*at]->seq;
                return it->list->events[(*at)++];
            }
    }
    return NULL;
}

/* Everything that matches behind its start came, in order, and nothing else. */
static void check (const rig_t *rig, const watcher_t *self, uint64_t number)
{
    size_t items[2] = {0};
    size_t ats[2] = {0};
    uint64_t start = rig_reply (rig, 1, self->request)->reply->subscribed->seq;
    uint64_t seq = start;
    uint64_t all = 0;
    const Taskmq__Event *truth;
    while ((truth = next_event (rig, 0, REFERENCE, &items[0], &ats[0], &all)) != NULL) {
        if (truth->seq <= start || !takes (self, truth))
            continue;
        const Taskmq__Event *event = next_event (rig, 1, number, &items[1], &ats[1], &seq);
        assert_non_null (event);
        assert_int_equal (event->seq, truth->seq);
    }
    assert_null (next_event (rig, 1, number, &items[1], &ats[1], &seq));
}

static void change_something (rig_t *rig, unsigned *submitted)
{
    for (unsigned i = chance (8); i > 0; i--) {
        rig_use_request_id (chance (1000000000));
        if (*submitted < TASKS && chance (2) == 0) {
            Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
            spec.queue = names[chance (NAMES)];
            spec.session = chance (2) == 0 ? names[chance (NAMES)] : spec.session;
            rig_submit_spec (rig, 0, ++*submitted, &spec, "");
        } else if (*submitted > 0) {
            rig_cancel (rig, 0, 1 + chance (*submitted));
        }
    }
}

/* Only events are refused: a reply that is lost would end the link. */
static void refuse_for_a_while (rig_t *rig, unsigned *submitted)
{
    rig_settle (rig);
    rig_refuse_after (rig, 1, chance (3));
    change_something (rig, submitted);
    rig_run (rig);
    change_something (rig, submitted);
    rig_run (rig);
    rig_heed (rig, 1);
    rig_credit (rig, 1, 1 + chance (WATCHERS), 0); /* it is heard again */
}

static void exactly_what_matches (void **state)
{
    static watcher_t watchers[WATCHERS];
    rig_t *rig = *state;
    unsigned submitted = 0;
    memset (watchers, 0, sizeof watchers);
    rig_subscribe (rig, 0, REFERENCE, 0);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned n = chance (WATCHERS);
        if (!watchers[n].there)
            subscribe (rig, &watchers[n], n + 1, newest_of (rig, 0, REFERENCE));
        change_something (rig, &submitted);
        if (chance (3) == 0)
            rig_run (rig);
        if (chance (8) == 0)
            refuse_for_a_while (rig, &submitted);
        if (chance (5) == 0)
            rig_credit (rig, 1, n + 1, newest_of (rig, 1, n + 1));
        if (chance (20) == 0)
            rig_advance (rig, 1000);
        rig_credit (rig, 0, REFERENCE, newest_of (rig, 0, REFERENCE));
    }
    rig_settle (rig);
    for (unsigned n = 0; n < WATCHERS; n++)
        if (watchers[n].there)
            check (rig, &watchers[n], n + 1);
    assert_true (rig->refused > 0);
}

static void subscribe_to_task (rig_t *rig, size_t peer, unsigned n)
{
    tmq_id_t id = rig_id (n);
    ProtobufCBinaryData ids[] = {{16, id.bytes}};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe request = TASKMQ__SUBSCRIBE__INIT;
    filter.n_task_ids = 1;
    filter.task_ids = ids;
    request.subscription = n;
    request.filter = &filter;
    rig_subscribe_as (rig, peer, &request);
}

static void what_many_are_sent_shares_messages (void **state)
{
    enum { SUBSCRIPTIONS = 300 };
    rig_t *rig = *state;
    for (unsigned n = 1; n <= SUBSCRIPTIONS; n++)
        subscribe_to_task (rig, 1, n);
    rig_settle (rig);
    for (unsigned n = 1; n <= SUBSCRIPTIONS; n++)
        rig_submit (rig, 0, n, "q", "");
    size_t before = rig->messages;
    rig_run (rig);
    assert_true (rig->messages - before <= 10);
    for (unsigned n = 1; n <= SUBSCRIPTIONS; n++) {
        size_t item = 0;
        size_t at = 0;
        uint64_t seq = 0;
        assert_non_null (next_event (rig, 1, n, &item, &at, &seq));
        assert_int_equal (seq, n);
        assert_null (next_event (rig, 1, n, &item, &at, &seq));
    }
}

/* Each of many that come back looks at all events since its cursor. Others are answered between. */
static void looks_of_many_are_taken_in_turns (void **state)
{
    enum { EVENTS = 50, SUBSCRIPTIONS = 50 };
    engine_config_t config = ENGINE_CONFIG_INIT;
    (void) state;
    config.looks_max = EVENTS;
    rig_t *rig = rig_new_with (&config);
    for (size_t peer = 0; peer < 3; peer++)
        rig_link (rig, peer, "default");
    for (unsigned n = 1; n <= EVENTS; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_settle (rig);
    for (unsigned n = 1; n <= SUBSCRIPTIONS; n++)
        subscribe_to_task (rig, 1 + n % 2, n);
    rig_commit (rig);
    size_t rounds = 1;
    for (; rig_outputs_round (rig); rounds++) {
        uint64_t get = rig_get (rig, 0, 1);
        rig_outputs_round (rig);
        rounds++;
        assert_int_equal (rig_code (rig, 0, get), TMQ_OK);
    }
    assert_in_range (rounds, SUBSCRIPTIONS / 2, 2 * SUBSCRIPTIONS);
    for (unsigned n = 1; n <= SUBSCRIPTIONS; n++) {
        size_t item = 0;
        size_t at = 0;
        uint64_t seq = 0;
        assert_non_null (next_event (rig, 1 + n % 2, n, &item, &at, &seq));
        assert_int_equal (seq, n);
    }
    rig_free (rig);
}

static int setup_with (void **state, size_t ring_bytes)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    if (ring_bytes > 0)
        config.ring_bytes = ring_bytes;
    rig_t *rig = rig_new_with (&config);
    *state = rig;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    chance_state++;
    return 0;
}

static int setup (void **state)
{
    return setup_with (state, 0);
}

static int setup_small_ring (void **state)
{
    return setup_with (state, 1000);
}

static int teardown (void **state)
{
    rig_free (*state);
    return 0;
}

enum { WIDE = 25, NOTICES = 10 };

static rig_t *new_rig_with_notices (void)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.notices = NOTICES;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    return rig;
}

static size_t notices_of (const rig_t *rig, uint64_t subscription)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->peers[0].count; i++) {
        const Taskmq__Notice *notice = rig->peers[0].items[i].notice;
        count += notice != NULL && (subscription == 0 || notice->subscription == subscription);
    }
    return count;
}

static void a_notice_reaches_so_many_and_the_others_come_first_the_next_time (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_notices ();
    for (unsigned i = 1; i <= WIDE; i++)
        rig_subscribe (rig, 0, i, 0);
    rig_submit (rig, 0, 1, "q", "");
    rig_register (rig, 1, 100, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    for (unsigned i = 1; i <= 3; i++) {
        rig_use_request_id (i + 10);
        rig_push (rig, 1, assignment, "", i);
        rig_settle (rig);
        assert_int_equal (notices_of (rig, 0), i * NOTICES);
    }
    for (unsigned i = 1; i <= WIDE; i++)
        assert_in_range (notices_of (rig, i), 1, 2);
    rig_free (rig);
}

static void progress_of_many_tasks_is_told_in_several_rounds (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_notices ();
    rig_subscribe (rig, 0, 1, 0);
    for (unsigned n = 1; n <= WIDE; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_register (rig, 1, 100, "q", WIDE);
    rig_settle (rig);
    for (unsigned n = 1; n <= WIDE; n++)
        rig_push (rig, 1, rig_assignment (rig, 1, n - 1)->assignment, "", n);
    rig_complete (rig, 1, rig_assignment (rig, 1, WIDE - 1)->assignment, "");
    rig_commit (rig);
    rig_write (rig); /* the last one leaves memory before it was its turn */
    rig_outputs (rig);
    assert_int_equal (notices_of (rig, 0), NOTICES / 2); /* a task costs one, a look another */
    engine_round (rig->engine);
    assert_true (engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0) <= rig->now.mono_ms);
    for (size_t i = 0; i < WIDE; i++)
        rig_run (rig);
    assert_int_equal (notices_of (rig, 0), WIDE - 1);
    rig_free (rig);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
#define TEST_SMALL_RING(name) cmocka_unit_test_setup_teardown (name, setup_small_ring, teardown)

int main (int argc, char **argv)
{
    chance_state = argc > 1 ? strtoull (argv[1], NULL, 10) : 1;
    const struct CMUnitTest tests[] = {
        TEST (exactly_what_matches),
        TEST (exactly_what_matches),
        TEST (exactly_what_matches),
        TEST_SMALL_RING (exactly_what_matches),
        TEST_SMALL_RING (exactly_what_matches),
        TEST (what_many_are_sent_shares_messages),
        cmocka_unit_test (a_notice_reaches_so_many_and_the_others_come_first_the_next_time),
        cmocka_unit_test (progress_of_many_tasks_is_told_in_several_rounds),
        cmocka_unit_test (looks_of_many_are_taken_in_turns),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
