/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What leaves and when: the release rule, grouping, subscriptions with ring, replay, gap, credit,
 * snapshot and notices; and the reads that the tables answer. */
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"

static int setup_with_ring (void **state, size_t ring_bytes)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.ring_bytes = ring_bytes;
    rig_t *rig = rig_new_with (&config);
    *state = rig;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    return 0;
}

/* An engine whose ring holds next to nothing: whoever is behind is served from the tables. */
static int setup_small_ring (void **state)
{
    return setup_with_ring (state, 300);
}

/* … or a little more than the window of a subscription. */
static int setup_medium_ring (void **state)
{
    return setup_with_ring (state, 2 * TMQ_SUBSCRIPTION_WINDOW_BYTES);
}

/* What a subscriber saw. */

typedef struct seen {
    uint64_t first; /* sequence of the first event */
    uint64_t last;
    size_t events;
    size_t batches;
    uint64_t upto;
    bool live;
    size_t gaps;
    size_t snapshots; /* tasks */
    bool snapshot_ended;
} seen_t;

/* Checks that sequences rise by one, or just rise when filtered. */
static seen_t seen_by (const rig_t *rig, size_t peer, uint64_t subscription, bool gapless)
{
    seen_t seen = {0};
    for (size_t i = 0; i < rig->peers[peer].count; i++) {
        const rig_item_t *item = &rig->peers[peer].items[i];
        if (item->gap != NULL && item->gap->subscription == subscription) {
            seen.gaps++;
            seen.last = item->gap->to;
        }
        if (item->snapshot != NULL && item->snapshot->subscription == subscription) {
            assert_false (seen.snapshot_ended);
            seen.snapshots += item->snapshot->n_tasks;
            seen.snapshot_ended = item->snapshot->last;
        }
        if (item->events == NULL || item->events->subscription != subscription)
            continue;
        assert_true (item->body_bytes <= TMQ_SUBSCRIPTION_WINDOW_BYTES);
        seen.batches++;
        seen.live = !item->events->replay;
        for (size_t k = 0; item->list != NULL && k < item->list->n_events; k++) {
            uint64_t seq = item->list->events[k]->seq;
            assert_true (seq > seen.last);
            if (gapless && seen.events > 0)
                assert_int_equal (seq, seen.last + 1);
            if (seen.events++ == 0)
                seen.first = seq;
            seen.last = seq;
        }
        assert_true (item->events->upto >= seen.last && item->events->upto >= seen.upto);
        seen.upto = item->events->upto;
    }
    return seen;
}

/* Submits and cancels: two events a task. */
static void make_events (rig_t *rig, unsigned first, unsigned tasks)
{
    for (unsigned n = first; n < first + tasks; n++) {
        rig_submit (rig, 0, n, "q", "");
        rig_settle (rig);
        rig_cancel (rig, 0, n);
        rig_settle (rig);
    }
}

/* Takes everything: gives credit until nothing more comes. */
static seen_t drain (rig_t *rig, size_t peer, uint64_t subscription, bool gapless)
{
    uint64_t before = UINT64_MAX;
    seen_t seen = seen_by (rig, peer, subscription, gapless);
    while (seen.upto != before) {
        before = seen.upto;
        rig_credit (rig, peer, subscription, seen.upto);
        rig_settle (rig);
        seen = seen_by (rig, peer, subscription, gapless);
    }
    return seen;
}

/* Release. */

static void nothing_leaves_before_its_batch_is_durable (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 1, 1, 0);
    rig_settle (rig);
    size_t before = rig->messages;
    rig_submit (rig, 0, 1, "q", "p");
    rig_take (rig); /* in flight */
    uint64_t get = rig_get (rig, 0, 1);
    uint64_t unknown = rig_get (rig, 0, 99);
    uint64_t existing = rig_submit (rig, 0, 1, "q", "p");
    rig_outputs (rig);
    assert_int_equal (rig->messages, before);
    rig_durable (rig);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, unknown), TMQ_NOT_FOUND);
    assert_true (rig_reply (rig, 0, existing)->reply->submitted->items[0]->existing);
    assert_int_equal (seen_by (rig, 1, 1, true).events, 1);
}

static void what_was_computed_later_waits_for_the_later_batch (void **state)
{
    rig_t *rig = *state;
    uint64_t first = rig_submit (rig, 0, 1, "q", "");
    rig_take (rig);
    uint64_t second = rig_submit (rig, 0, 2, "q", "");
    rig_durable (rig); /* only the first batch */
    rig_outputs (rig);
    assert_non_null (rig_reply (rig, 0, first));
    assert_null (rig_reply (rig, 0, second));
    rig_commit (rig);
    rig_outputs (rig);
    assert_non_null (rig_reply (rig, 0, second));
}

static void answers_of_one_release_share_messages (void **state)
{
    rig_t *rig = *state;
    uint64_t requests[500];
    for (unsigned n = 0; n < 500; n++)
        requests[n] = rig_submit (rig, 0, n + 1, "q", "");
    size_t before = rig->messages;
    rig_commit (rig);
    rig_outputs (rig);
    assert_true (rig->messages - before <= 2);
    for (unsigned n = 0; n < 500; n++)
        assert_int_equal (rig_code (rig, 0, requests[n]), TMQ_OK);
}

static void large_bodies_are_spread_over_messages (void **state)
{
    rig_t *rig = *state;
    static char payload[100 * 1024 + 1];
    memset (payload, 'x', sizeof (payload) - 1);
    for (unsigned n = 1; n <= 7; n++)
        rig_submit (rig, 0, n, "q", payload);
    rig_settle (rig);
    rig_register (rig, 1, 100, "q", 7);
    size_t before = rig->messages;
    rig_commit (rig);
    rig_outputs (rig);
    assert_int_equal (rig_assignments (rig, 1), 7);
    assert_int_equal (rig->messages - before, 4); /* two payloads a frame of 256 KiB */
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal (rig_assignment (rig, 1, i)->body_bytes, sizeof (payload) - 1);
}

static void a_refused_reply_is_sent_when_the_peer_reads (void **state)
{
    rig_t *rig = *state;
    uint64_t submit = rig_submit (rig, 0, 1, "q", "");
    rig->peers[0].refuse = true;
    rig_settle (rig);
    size_t refused = rig->refused;
    assert_true (refused > 0);
    rig_settle (rig); /* it is not tried again at once … */
    assert_int_equal (rig->refused, refused);
    rig->peers[0].refuse = false;
    rig_advance (rig, 200); /* … but after a while, … */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_OK);
    rig->peers[0].refuse = true;
    uint64_t get = rig_get (rig, 0, 1);
    rig_settle (rig);
    rig->peers[0].refuse = false;
    uint64_t other = rig_get (rig, 0, 1); /* … and when the peer is heard */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, other), TMQ_OK);
    assert_int_equal (rig_replies (rig, 0, submit), 1);
}

static void a_link_that_leaves_too_much_unread_ends (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.unsent_bytes_max = 10;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_submit (rig, 0, 1, "q", "");
    rig->peers[0].refuse = true;
    rig_settle (rig);
    for (int64_t ms = 0; ms <= config.unsent_ms_max; ms += 1000) {
        rig_advance (rig, 1000);
        rig_settle (rig);
    }
    rig->peers[0].refuse = false;
    uint64_t get = rig_get (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_NO_LINK);
    rig_link (rig, 0, "default");
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    rig_free (rig);
}

static void a_peer_without_a_link_is_told_so (void **state)
{
    rig_t *rig = *state;
    uint64_t get = rig_get (rig, 5, 1);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 5, get), TMQ_NO_LINK);
    engine_refuse (rig->engine, rig->peers[6].id, 0, TMQ_INVALID, "three frames", 0);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 6, 0), TMQ_INVALID);
    assert_string_equal (rig_reply (rig, 6, 0)->reply->text, "three frames");
}

static void a_token_belongs_to_its_connection (void **state)
{
    rig_t *rig = *state;
    memcpy (rig->peers[2].token, rig->peers[0].token, 16);
    uint64_t stolen = rig_get (rig, 2, 1);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 2, stolen), TMQ_NO_LINK);
    rig->peers[0].token[3] ^= 1;
    uint64_t wrong = rig_get (rig, 0, 1);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, wrong), TMQ_NO_LINK);
}

/* Subscriptions. */

static void a_live_subscriber_sees_each_event_once (void **state)
{
    rig_t *rig = *state;
    uint64_t request = rig_subscribe (rig, 1, 7, 0);
    rig_settle (rig);
    const Taskmq__Subscribed *subscribed = rig_reply (rig, 1, request)->reply->subscribed;
    assert_int_equal (subscribed->generation, 77);
    assert_int_equal (subscribed->seq, 0);
    assert_true (seen_by (rig, 1, 7, true).live); /* nothing to replay: said at once */
    make_events (rig, 1, 20);
    seen_t seen = drain (rig, 1, 7, true);
    assert_int_equal (seen.first, 1);
    assert_int_equal (seen.last, 40);
    assert_int_equal (seen.events, 40);
    assert_int_equal (seen.upto, 40);
}

static void a_start_that_is_not_durable_yet_is_not_forgotten (void **state)
{
    rig_t *rig = *state;
    rig_link (rig, 2, "other");
    rig_submit (rig, 0, 1, "q", "");
    uint64_t request = rig_subscribe (rig, 2, 7, 0); /* nothing happens in its own namespace */
    rig_outputs (rig);
    assert_null (rig_reply (rig, 2, request));
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 2, request), TMQ_OK);
    assert_true (seen_by (rig, 2, 7, true).live);
}

static void an_event_says_what_happened (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 1, 7, 0);
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    const Taskmq__Event *event = NULL;
    for (size_t i = 0; i < rig->peers[1].count; i++)
        if (rig->peers[1].items[i].list != NULL)
            event = rig->peers[1].items[i].list->events[0];
    assert_non_null (event);
    assert_int_equal (event->seq, 2);
    assert_int_equal (event->kind, TMQ_EVENT_CANCELLED);
    assert_int_equal (event->status, TMQ_STATUS_CANCELLED);
    assert_int_equal (event->previous, TMQ_STATUS_QUEUED);
    assert_int_equal (event->previous_seq, 1);
    assert_int_equal (event->at, rig->now.wall_ms);
    assert_string_equal (event->queue, "q");
    assert_string_equal (event->actor, "uid:0");
    assert_string_equal (event->message, "enough");
    tmq_id_t id = rig_id (1);
    assert_memory_equal (event->task_id.data, id.bytes, 16);
}

static void a_late_subscriber_is_served_from_the_ring (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 20);
    rig_subscribe (rig, 1, 7, 10);
    rig_settle (rig);
    seen_t seen = drain (rig, 1, 7, true);
    assert_int_equal (seen.first, 11);
    assert_int_equal (seen.last, 40);
    assert_true (seen.live);
    assert_int_equal (rig->reads, 0);
}

static void one_before_the_ring_is_served_from_the_tables (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 50);
    rig_subscribe (rig, 1, 7, 3);
    rig_settle (rig);
    assert_true (rig->reads > 0);
    seen_t seen = drain (rig, 1, 7, true);
    assert_int_equal (seen.first, 4);
    assert_int_equal (seen.last, 100);
    assert_int_equal (seen.gaps, 0);
    make_events (rig, 51, 5);
    seen = drain (rig, 1, 7, true);
    assert_int_equal (seen.last, 110);
    assert_true (seen.live);
}

static void events_that_are_gone_are_an_explicit_gap (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 50);
    rig->events_from = 41; /* the prefix was removed */
    rig_subscribe (rig, 1, 7, 3);
    rig_settle (rig);
    const Taskmq__Gap *gap = NULL;
    for (size_t i = 0; i < rig->peers[1].count; i++)
        if (rig->peers[1].items[i].gap != NULL)
            gap = rig->peers[1].items[i].gap;
    assert_non_null (gap);
    assert_int_equal (gap->from, 4);
    assert_int_equal (gap->to, 40);
    seen_t seen = drain (rig, 1, 7, true);
    assert_int_equal (seen.first, 41);
    assert_int_equal (seen.last, 100);
}

static void a_cursor_of_another_history_gets_all_of_this_one (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 5);
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 7;
    subscribe.generation = 5;
    subscribe.after_seq = 1000;
    uint64_t request = rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    /* Who is cut off before the gap comes asks with the same cursor again. */
    const Taskmq__Subscribed *subscribed = rig_reply (rig, 1, request)->reply->subscribed;
    assert_int_equal (subscribed->generation, 5);
    assert_int_equal (subscribed->seq, 1000);
    seen_t seen = seen_by (rig, 1, 7, true);
    assert_int_equal (seen.gaps, 1);
    assert_int_equal (seen.first, 1);
    assert_int_equal (seen.last, 10);
    assert_int_equal (seen.batches, 2); /* the replay, and that it is over */
}

static void what_was_there_is_replayed_and_what_comes_is_live (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 5);
    rig_submit (rig, 0, 20, "q", ""); /* in the batch of the one behind the subscribe */
    rig_subscribe (rig, 1, 7, 0);
    rig_submit (rig, 0, 21, "q", "");
    rig_settle (rig);
    make_events (rig, 30, 1);
    uint64_t replayed = 0;
    bool live = false;
    for (size_t i = 0; i < rig->peers[1].count; i++) {
        const rig_item_t *item = &rig->peers[1].items[i];
        if (item->events == NULL)
            continue;
        live = live || !item->events->replay;
        assert_true (live != item->events->replay);
        if (item->events->replay)
            replayed = item->events->upto;
        for (size_t k = 0; item->list != NULL && k < item->list->n_events; k++)
            assert_int_equal (item->list->events[k]->seq <= 11, item->events->replay);
    }
    assert_int_equal (replayed, 11);
    assert_true (live);
    assert_int_equal (seen_by (rig, 1, 7, true).last, 14);
}

static void a_cursor_beyond_the_end_is_refused (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 5);
    uint64_t request = rig_subscribe (rig, 1, 7, 11);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_BAD_CURSOR);
}

static void a_slow_subscriber_costs_one_window (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 1, 7, 0);
    rig_settle (rig);
    make_events (rig, 1, 400);
    size_t bytes = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++)
        if (rig->peers[1].items[i].events != NULL)
            bytes += rig->peers[1].items[i].body_bytes;
    assert_in_range (bytes, TMQ_SUBSCRIPTION_WINDOW_BYTES - 200, TMQ_SUBSCRIPTION_WINDOW_BYTES);
    seen_t seen = drain (rig, 1, 7, true);
    assert_int_equal (seen.events, 800);
}

static void a_stalled_subscriber_is_left_alone_until_it_gives_credit (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 1, 7, 0);
    rig_settle (rig);
    make_events (rig, 1, 400); /* more than its window and less than the ring */
    size_t reads = rig->reads;
    make_events (rig, 401, 1000); /* the ring has passed it: a look at it would ask for a page */
    assert_int_equal (rig->reads, reads);
    seen_t seen = drain (rig, 1, 7, true);
    assert_int_equal (seen.events, 2800);
    assert_true (rig->reads > reads);
}

static void a_refused_stream_falls_back_to_what_was_acknowledged (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 1, 7, 0);
    rig_settle (rig);
    make_events (rig, 1, 5);
    drain (rig, 1, 7, true);
    rig->peers[1].refuse = true;
    make_events (rig, 6, 5);
    rig->peers[1].refuse = false;
    assert_int_equal (seen_by (rig, 1, 7, true).last, 10);
    rig_credit (rig, 1, 7, 10); /* it is heard again */
    rig_settle (rig);
    assert_int_equal (drain (rig, 1, 7, true).last, 20);
}

static void filters_choose_events (void **state)
{
    rig_t *rig = *state;
    char *queues[] = {(char *) "a"};
    uint32_t statuses[] = {TMQ_STATUS_CANCELLED};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    filter.n_queues = 1;
    filter.queues = queues;
    filter.n_statuses = 1;
    filter.statuses = statuses;
    subscribe.subscription = 7;
    subscribe.filter = &filter;
    rig_subscribe_as (rig, 1, &subscribe);
    for (unsigned n = 1; n <= 10; n++)
        rig_submit (rig, 0, n, n % 2 == 0 ? "a" : "b", "");
    rig_settle (rig);
    assert_int_equal (seen_by (rig, 1, 7, false).events, 0);
    for (unsigned n = 1; n <= 10; n++)
        rig_cancel (rig, 0, n);
    rig_settle (rig);
    assert_int_equal (seen_by (rig, 1, 7, false).events, 5);
}

static void filters_by_id_session_and_label (void **state)
{
    rig_t *rig = *state;
    tmq_id_t id = rig_id (2);
    ProtobufCBinaryData ids[] = {{16, id.bytes}};
    char *sessions[] = {(char *) "s2"};
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    Taskmq__Filter filters[3] = {TASKMQ__FILTER__INIT, TASKMQ__FILTER__INIT, TASKMQ__FILTER__INIT};
    label.key = (char *) "n";
    label.value = (char *) "2";
    filters[0].n_task_ids = 1;
    filters[0].task_ids = ids;
    filters[1].n_sessions = 1;
    filters[1].sessions = sessions;
    filters[2].n_labels = 1;
    filters[2].labels = labels;
    for (unsigned i = 0; i < 3; i++) {
        Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
        subscribe.subscription = i + 1;
        subscribe.filter = &filters[i];
        rig_subscribe_as (rig, 1, &subscribe);
    }
    for (unsigned n = 1; n <= 3; n++) {
        char text[2] = {(char) ('0' + n), '\0'};
        char session[3] = {'s', (char) ('0' + n), '\0'};
        Taskmq__Label own = TASKMQ__LABEL__INIT;
        Taskmq__Label *own_labels[] = {&own};
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        own.key = (char *) "n";
        own.value = text;
        spec.session = session;
        spec.n_labels = 1;
        spec.labels = own_labels;
        rig_submit_spec (rig, 0, n, &spec, "");
    }
    rig_settle (rig);
    for (unsigned i = 1; i <= 3; i++) {
        seen_t seen = seen_by (rig, 1, i, false);
        assert_int_equal (seen.events, 1);
        assert_int_equal (seen.first, 4); /* a session is an event before its task */
    }
}

static void upto_follows_where_nothing_matches (void **state)
{
    rig_t *rig = *state;
    char *queues[] = {(char *) "none"};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    filter.n_queues = 1;
    filter.queues = queues;
    subscribe.subscription = 7;
    subscribe.filter = &filter;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    make_events (rig, 1, 5);
    size_t before = seen_by (rig, 1, 7, false).batches;
    assert_int_equal (seen_by (rig, 1, 7, false).upto, 0);
    rig_advance (rig, 5100);
    assert_int_equal (seen_by (rig, 1, 7, false).upto, 10);
    rig_advance (rig, 20000); /* it did not move: nothing more */
    assert_int_equal (seen_by (rig, 1, 7, false).batches, before + 1);
}

static void a_snapshot_shows_the_present (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 450; n++) /* more than one read and more than one message */
        rig_submit (rig, 0, n, "q", "payload");
    rig_settle (rig);
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 7;
    subscribe.snapshot = true;
    subscribe.from_now = true;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    seen_t seen = seen_by (rig, 1, 7, true);
    assert_false (seen.snapshot_ended); /* two messages, then credit is wanted */
    size_t before = seen.snapshots;
    rig_settle (rig);
    assert_int_equal (seen_by (rig, 1, 7, true).snapshots, before);
    for (unsigned i = 0; i < 4; i++) {
        rig_credit (rig, 1, 7, 0);
        rig_settle (rig);
    }
    seen = seen_by (rig, 1, 7, true);
    assert_int_equal (seen.snapshots, 450);
    assert_true (seen.snapshot_ended);
    assert_int_equal (seen.events, 0);
    assert_true (seen.live);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (seen_by (rig, 1, 7, true).first, 451);
}

static void an_empty_snapshot_ends_at_once (void **state)
{
    rig_t *rig = *state;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 7;
    subscribe.snapshot = true;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    assert_true (seen_by (rig, 1, 7, true).snapshot_ended);
    assert_int_equal (rig->reads, 1);
}

static void a_snapshot_by_id_shows_those_tasks (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 1); /* terminal, in the tables */
    rig_submit (rig, 0, 2, "q", "");
    rig_submit (rig, 0, 3, "q", "");
    rig_settle (rig);
    tmq_id_t ids[3] = {rig_id (1), rig_id (2), rig_id (9)};
    ProtobufCBinaryData bytes[3];
    for (size_t i = 0; i < 3; i++)
        bytes[i] = (ProtobufCBinaryData){16, ids[i].bytes};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    filter.n_task_ids = 3;
    filter.task_ids = bytes;
    subscribe.subscription = 7;
    subscribe.filter = &filter;
    subscribe.snapshot = true;
    subscribe.from_now = true;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    seen_t seen = seen_by (rig, 1, 7, false);
    assert_int_equal (seen.snapshots, 2);
    assert_true (seen.snapshot_ended);
}

static void a_time_is_turned_into_a_cursor (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 5);
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 7;
    subscribe.since_time = 6; /* the rig answers with the same number as sequence */
    uint64_t request = rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 1, request)->reply->subscribed->seq, 6);
    assert_int_equal (drain (rig, 1, 7, true).first, 7);
}

static void subscriptions_have_numbers_and_an_end (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 1, 7, 0);
    uint64_t twice = rig_subscribe (rig, 1, 7, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, twice), TMQ_CONFLICT);
    uint64_t credit = rig_credit (rig, 1, 8, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, credit), TMQ_NOT_FOUND);
    rig_unsubscribe (rig, 1, 7);
    rig_settle (rig);
    make_events (rig, 1, 3);
    assert_int_equal (seen_by (rig, 1, 7, true).events, 0);
    for (unsigned i = 1; i <= TMQ_LINK_SUBSCRIPTIONS_MAX; i++)
        rig_subscribe (rig, 1, i, 0);
    uint64_t many = rig_subscribe (rig, 1, TMQ_LINK_SUBSCRIPTIONS_MAX + 1, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, many), TMQ_LIMIT);
}

static void a_subscription_may_end_while_it_is_read_for (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 50);
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 8;
    subscribe.since_time = 6;
    rig_subscribe (rig, 1, 7, 1); /* outside of the ring */
    uint64_t since = rig_subscribe_as (rig, 1, &subscribe);
    rig_commit (rig);
    rig_outputs (rig); /* asks for its page */
    rig_unsubscribe (rig, 1, 7);
    rig_unsubscribe (rig, 1, 8);
    rig_settle (rig);
    assert_int_equal (rig->reads, 1); /* the page is not wanted any more */
    assert_int_equal (rig_replies (rig, 1, 0), 0);
    assert_int_equal (rig_code (rig, 1, since), TMQ_NOT_FOUND);
    assert_int_equal (seen_by (rig, 1, 7, true).events, 0);
}

static void progress_is_a_notice_and_the_latest_wins (void **state)
{
    rig_t *rig = *state;
    rig_subscribe (rig, 0, 7, 0);
    rig_submit (rig, 0, 1, "q", "");
    rig_register (rig, 1, 100, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    for (unsigned i = 1; i <= 5; i++) {
        rig_use_request_id (i + 10);
        rig_push (rig, 1, assignment, "", i);
    }
    rig_settle (rig);
    size_t notices = 0;
    for (size_t i = 0; i < rig->peers[0].count; i++) {
        const Taskmq__Notice *notice = rig->peers[0].items[i].notice;
        if (notice == NULL)
            continue;
        notices++;
        assert_int_equal (notice->progress->done, 5);
        assert_int_equal (notice->subscription, 7);
    }
    assert_int_equal (notices, 1);
    uint64_t committed = rig->committed;
    for (unsigned i = 0; i < 6; i++)
        rig_advance (rig, 1000);
    assert_true (rig->committed > committed); /* stored within 5 s */
    assert_int_equal (rig->rows[1]->progress_done, 5);
}

/* Reads. */

static void a_list_is_paged_newest_first (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 7; n++)
        rig_submit (rig, 0, n, n == 4 ? "other" : "q", "");
    rig_settle (rig);
    char *queues[] = {(char *) "q"};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    filter.n_queues = 1;
    filter.queues = queues;
    static const unsigned PAGES[2][4] = {{7, 6, 5, 3}, {2, 1}};
    ProtobufCBinaryData cursor = {0, NULL};
    for (size_t page = 0; page < 2; page++) {
        uint64_t request = rig_list (rig, 0, &filter, cursor, 4);
        rig_settle (rig);
        const Taskmq__TaskPage *answer = rig_reply (rig, 0, request)->reply->page;
        assert_int_equal (answer->n_tasks, page == 0 ? 4 : 2);
        for (size_t i = 0; i < answer->n_tasks; i++) {
            tmq_id_t id = rig_id (PAGES[page][i]);
            assert_memory_equal (answer->tasks[i]->task_id.data, id.bytes, 16);
        }
        cursor = answer->next;
        assert_int_equal (cursor.len > 0, page == 0);
        if (page > 0)
            break;
        uint64_t foreign = rig_list (rig, 0, NULL, cursor, 4);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, 0, foreign), TMQ_BAD_CURSOR);
    }
}

static void a_list_page_ends_when_the_envelope_is_full (void **state)
{
    rig_t *rig = *state;
    static char meta[16 * 1024];
    memset (meta, ' ', sizeof (meta) - 1);
    meta[0] = '{';
    meta[sizeof (meta) - 2] = '}';
    for (unsigned n = 1; n <= 9; n++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        spec.meta = meta;
        rig_submit_spec (rig, 0, n, &spec, "");
    }
    rig_settle (rig);
    size_t tasks = 0;
    ProtobufCBinaryData cursor = {0, NULL};
    for (unsigned page = 0; page < 3; page++) {
        uint64_t request = rig_list (rig, 0, NULL, cursor, 1000);
        rig_settle (rig);
        const Taskmq__TaskPage *answer = rig_reply (rig, 0, request)->reply->page;
        tasks += answer->n_tasks;
        cursor = answer->next;
        assert_int_equal (cursor.len == 0, page == 2);
    }
    assert_int_equal (tasks, 9);
}

static void reads_wait_until_what_was_durable_is_written (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_run (rig); /* acknowledged, not in the tables */
    uint64_t count = rig_count (rig, 0);
    rig_run (rig);
    assert_null (rig_reply (rig, 0, count));
    assert_true (engine_wants_flush (rig->engine));
    rig_settle (rig);
    assert_false (engine_wants_flush (rig->engine));
    assert_int_equal (rig_reply (rig, 0, count)->reply->counted->count, 1);
}

static void a_short_id_is_resolved (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_submit (rig, 0, 2, "q", "");
    rig_settle (rig);
    uint64_t one = rig_resolve (rig, 0, "010000000000");
    uint64_t none = rig_resolve (rig, 0, "ffffff");
    uint64_t both = rig_resolve (rig, 0, "00000000");
    rig_settle (rig);
    tmq_id_t id = rig_id (1);
    assert_memory_equal (rig_reply (rig, 0, one)->reply->resolved.data, id.bytes, 16);
    assert_int_equal (rig_code (rig, 0, none), TMQ_NOT_FOUND);
    assert_int_equal (rig_code (rig, 0, both), TMQ_AMBIGUOUS);
}

static void the_history_of_a_task_is_read (void **state)
{
    rig_t *rig = *state;
    make_events (rig, 1, 3);
    uint64_t request = rig_history (rig, 0, 2);
    rig_settle (rig);
    const Taskmq__EventPage *page = rig_reply (rig, 0, request)->reply->event_page;
    assert_int_equal (page->list->n_events, 2);
    assert_int_equal (page->list->events[0]->seq, 3);
    assert_int_equal (page->list->events[1]->seq, 4);
}

static void stats_count (void **state)
{
    rig_t *rig = *state;
    counter_t foreign = {"commits", 42};
    make_events (rig, 1, 3);
    rig_submit (rig, 0, 9, "q", "");
    rig_settle (rig);
    engine_set_counters (rig->engine, &foreign, 1);
    uint64_t request = rig_stats (rig, 0);
    rig_settle (rig);
    const Taskmq__StatsReport *stats = rig_reply (rig, 0, request)->reply->stats;
    uint64_t submitted = 0;
    uint64_t commits = 0;
    for (size_t i = 0; i < stats->n_counters; i++) {
        if (strcmp (stats->counters[i]->name, "submitted") == 0)
            submitted = stats->counters[i]->value;
        if (strcmp (stats->counters[i]->name, "commits") == 0)
            commits = stats->counters[i]->value;
    }
    assert_int_equal (submitted, 4);
    assert_int_equal (commits, 42);
    assert_int_equal (stats->n_queues, 1);
    assert_string_equal (stats->queues[0]->queue, "q");
    assert_int_equal (stats->queues[0]->ready, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
#define TEST_SMALL_RING(name) cmocka_unit_test_setup_teardown (name, setup_small_ring, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (nothing_leaves_before_its_batch_is_durable),
        TEST (what_was_computed_later_waits_for_the_later_batch),
        TEST (answers_of_one_release_share_messages),
        TEST (large_bodies_are_spread_over_messages),
        TEST (a_refused_reply_is_sent_when_the_peer_reads),
        cmocka_unit_test (a_link_that_leaves_too_much_unread_ends),
        TEST (a_peer_without_a_link_is_told_so),
        TEST (a_token_belongs_to_its_connection),
        TEST (a_live_subscriber_sees_each_event_once),
        TEST (a_start_that_is_not_durable_yet_is_not_forgotten),
        TEST (an_event_says_what_happened),
        TEST (a_late_subscriber_is_served_from_the_ring),
        TEST_SMALL_RING (one_before_the_ring_is_served_from_the_tables),
        TEST_SMALL_RING (events_that_are_gone_are_an_explicit_gap),
        TEST (a_cursor_of_another_history_gets_all_of_this_one),
        TEST (what_was_there_is_replayed_and_what_comes_is_live),
        TEST (a_cursor_beyond_the_end_is_refused),
        TEST (a_slow_subscriber_costs_one_window),
        TEST_SMALL_RING (a_slow_subscriber_costs_one_window),
        cmocka_unit_test_setup_teardown (a_stalled_subscriber_is_left_alone_until_it_gives_credit,
                                         setup_medium_ring, rig_teardown),
        TEST (a_refused_stream_falls_back_to_what_was_acknowledged),
        TEST_SMALL_RING (a_refused_stream_falls_back_to_what_was_acknowledged),
        TEST (filters_choose_events),
        TEST (filters_by_id_session_and_label),
        TEST (upto_follows_where_nothing_matches),
        TEST (a_snapshot_shows_the_present),
        TEST (an_empty_snapshot_ends_at_once),
        TEST (a_snapshot_by_id_shows_those_tasks),
        TEST (a_time_is_turned_into_a_cursor),
        TEST (subscriptions_have_numbers_and_an_end),
        TEST_SMALL_RING (a_subscription_may_end_while_it_is_read_for),
        TEST (progress_is_a_notice_and_the_latest_wins),
        TEST (a_list_is_paged_newest_first),
        TEST (a_list_page_ends_when_the_envelope_is_full),
        TEST (reads_wait_until_what_was_durable_is_written),
        TEST (a_short_id_is_resolved),
        TEST (the_history_of_a_task_is_read),
        TEST (stats_count),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
