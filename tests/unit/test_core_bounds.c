/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bounds of the engine: what one batch holds, what one round may cost, and what one link may have
 * open at a time. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/match/match.h"
#include "core_rig.h"

enum {
    BATCH_MAX = 1000, /* changes in a commit batch */
    TASKS = 3500,
    LINK_READS = 64
};

static int setup (void **state)
{
    *state = rig_new ();
    for (size_t peer = 0; peer < 3; peer++)
        rig_link (*state, peer, "default");
    rig_use_request_id (1);
    return 0;
}

static int teardown (void **state)
{
    rig_free (*state);
    return 0;
}

static void submit_many (rig_t *rig, uint64_t ttl_ms)
{
    for (unsigned n = 1; n <= TASKS; n++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        spec.queue = (char *) "q";
        spec.ttl_ms = ttl_ms;
        rig_submit_spec (rig, 0, n, &spec, "");
        if (n % 500 == 0)
            rig_settle (rig);
    }
    rig_settle (rig);
}

/* No batch since `from` holds more than it may; returns how many changes they have. */
static size_t changes_since (const rig_t *rig, uint64_t from)
{
    size_t changes = 0;
    for (uint64_t no = from + 1; no <= rig->committed; no++) {
        const batch_t *batch = rig->batches[no];
        if (batch == NULL)
            continue;
        assert_in_range (batch->records_count + batch->removals_count, 0, BATCH_MAX);
        changes += batch->records_count + batch->removals_count;
    }
    return changes;
}

static void what_expires_at_once_is_committed_in_pieces (void **state)
{
    rig_t *rig = *state;
    submit_many (rig, 60000);
    uint64_t before = rig->committed;
    rig_advance (rig, 65000);
    rig_settle (rig);
    rig_settle (rig);
    assert_int_equal (changes_since (rig, before), TASKS);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
}

static void a_round_fires_no_more_alarms_than_it_may (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.alarms = 100;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    submit_many (rig, 60000);
    rig->now.mono_ms += 65000;
    rig->now.wall_ms += 65000;
    size_t rounds = 0;
    uint64_t before = rig->committed;
    while (changes_since (rig, before) < TASKS) {
        engine_round (rig->engine);
        int64_t next = engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
        rig_take (rig);
        assert_in_range (changes_since (rig, before), 0, 100 * ++rounds);
        if (changes_since (rig, before) < TASKS)
            assert_true (next <= rig->now.mono_ms); /* the next round follows at once */
    }
    assert_true (rounds >= TASKS / 100);
    rig_free (rig);
}

static void leases_of_a_worker_that_leaves_are_returned_in_pieces (void **state)
{
    rig_t *rig = *state;
    submit_many (rig, 0);
    rig_register (rig, 1, 100, "q", TASKS);
    for (int i = 0; i < 4; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), TASKS);
    uint64_t before = rig->committed;
    rig_leave (rig, 1, 100);
    for (int i = 0; i < 4; i++)
        rig_settle (rig);
    assert_int_equal (changes_since (rig, before), TASKS);
}

/* One round, committed; whether the next one is wanted at once. */
static bool round_leaves_more (rig_t *rig)
{
    engine_round (rig->engine);
    int64_t next = engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
    rig_take (rig);
    rig_durable (rig);
    return next <= rig->now.mono_ms;
}

enum { DEBTS = 100, HELD = 450 };

/* Worker 100 on peer 1 holds HELD tasks, and a round gives back DEBTS of them. */
static rig_t *new_rig_with_debts (void)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.debts = DEBTS;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_use_request_id (1);
    for (unsigned n = 1; n <= HELD; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_register (rig, 1, 100, "q", HELD);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), HELD);
    return rig;
}

static void a_round_gives_back_no_more_leases_than_it_may (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_debts ();
    uint64_t before = rig->committed;
    rig_goodbye (rig, 1);
    rig_commit (rig);
    assert_int_equal (changes_since (rig, before), DEBTS);
    for (size_t given = DEBTS; given < HELD; given += DEBTS) {
        assert_int_equal (changes_since (rig, before), given);
        assert_true (round_leaves_more (rig) == (given + DEBTS < HELD));
    }
    assert_int_equal (changes_since (rig, before), HELD);
    rig_free (rig);
}

static void a_round_loses_no_more_leases_than_it_may (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_debts ();
    uint64_t before = rig->committed;
    engine_peer_gone (rig->engine, rig->peers[1].id, rig->now);
    rig->now.mono_ms += 10000; /* the grace is over, the leases are not */
    rig->now.wall_ms += 10000;
    rig->heard_ms = rig->now.mono_ms;
    size_t rounds = 1;
    while (round_leaves_more (rig)) {
        assert_in_range (changes_since (rig, before), 1, rounds * DEBTS);
        rounds++;
    }
    assert_int_equal (changes_since (rig, before), HELD);
    assert_int_equal (rounds, (HELD + DEBTS - 1) / DEBTS);
    rig_free (rig);
}

static void a_worker_that_comes_back_has_what_was_not_given_back (void **state)
{
    (void) state;
    rig_t *rig = new_rig_with_debts ();
    const Taskmq__Assignment *last = rig_assignment (rig, 1, HELD - 1)->assignment;
    rig_leave (rig, 1, 100);
    rig_commit (rig);
    uint64_t before = rig->committed;
    rig_register_with (rig, 1, 100, "other", 1, last);
    rig_settle (rig);
    /* What it did not list goes on being given back, what it listed stays. */
    assert_int_equal (changes_since (rig, before), HELD - DEBTS - 1);
    uint64_t completed = rig_complete (rig, 1, last, "done");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, completed), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, HELD), TMQ_STATUS_COMPLETED);
    assert_int_equal (rig_status (rig, 0, HELD - 1), TMQ_STATUS_QUEUED);
    rig_free (rig);
}

static void a_round_judges_no_more_delays_than_it_may (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.alarms = DEBTS;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= HELD; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_register (rig, 1, 100, "q", HELD);
    rig_settle (rig);
    for (size_t n = 0; n < HELD; n++)
        rig_release (rig, 1, rig_assignment (rig, 1, n)->assignment, false); /* 1 s */
    rig_settle (rig);
    rig->now.wall_ms += 10000;
    for (size_t ready = DEBTS; ready < HELD; ready += DEBTS) {
        assert_true (round_leaves_more (rig));
        rig_outputs (rig);
        assert_int_equal (rig_assignments (rig, 1), HELD + ready);
    }
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2 * HELD);
    rig_free (rig);
}

static rig_t *new_rig_of (const engine_config_t *config)
{
    rig_t *rig = rig_new_with (config);
    rig_link (rig, 0, "default");
    rig_use_request_id (1);
    return rig;
}

/* Submits with 10,000 bytes of meta. Whether it was refused, with the number in the text. */
static bool meta_is_refused (rig_t *rig, unsigned n, const char *limit)
{
    static char meta[10001];
    memset (meta, 'x', sizeof (meta) - 1);
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) "q";
    spec.meta = meta;
    uint64_t request = rig_submit_spec (rig, 0, n, &spec, "");
    rig_settle (rig);
    const Taskmq__SubmittedItem *item = rig_reply (rig, 0, request)->reply->submitted->items[0];
    if (item->code == TMQ_OK)
        return false;
    assert_int_equal (item->code, TMQ_LIMIT);
    assert_true (item->retry_after_ms > 0);
    assert_non_null (strstr (item->text, limit));
    return true;
}

static void live_tasks_have_only_so_many_bytes_of_texts (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_bytes_max = 25000;
    rig_t *rig = new_rig_of (&config);
    assert_false (meta_is_refused (rig, 1, "25000"));
    assert_false (meta_is_refused (rig, 2, "25000"));
    assert_true (meta_is_refused (rig, 3, "25000"));
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_true (meta_is_refused (rig, 3, "25000"));
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_false (meta_is_refused (rig, 3, "25000"));
    rig_free (rig);
}

/* With the snapshots of the tasks from 1 to ids; 0: none. The code of the answer. */
static unsigned subscribe_to (rig_t *rig, uint64_t subscription, size_t ids, size_t queues)
{
    enum { MOST = 64 };
    tmq_id_t id[MOST];
    ProtobufCBinaryData list[MOST];
    char *names[MOST];
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    for (size_t i = 0; i < ids; i++) {
        id[i] = rig_id ((unsigned) i + 1);
        list[i] = (ProtobufCBinaryData){sizeof (id[i].bytes), id[i].bytes};
    }
    for (size_t i = 0; i < queues; i++)
        names[i] = (char *) "a-queue-with-a-name-of-some-length-so-that-it-counts";
    filter.n_task_ids = ids;
    filter.task_ids = list;
    filter.n_queues = queues;
    filter.queues = names;
    subscribe.subscription = subscription;
    subscribe.filter = &filter;
    subscribe.snapshot = ids > 0;
    uint64_t request = rig_subscribe_as (rig, 0, &subscribe);
    rig_commit (rig);
    rig_outputs (rig);
    return rig_code (rig, 0, request);
}

/* Submits tasks that have a queue, a fair key or a requirement of their own until there is no room;
 * how many there were. */
static unsigned fill_with_own (rig_t *rig, bool queue, bool key, bool need)
{
    char name[16];
    for (unsigned n = 1;; n++) {
        static Taskmq__Label label = TASKMQ__LABEL__INIT;
        Taskmq__Label *labels[] = {&label};
        Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        snprintf (name, sizeof (name), "own%u", n);
        spec.queue = queue ? name : (char *) "q";
        spec.extra = key || need ? &extra : NULL;
        extra.fair_key = key ? name : extra.fair_key;
        label.key = label.value = name;
        extra.needs = labels;
        extra.n_needs = need;
        uint64_t request = rig_submit_spec (rig, 0, n, &spec, "");
        rig_settle (rig);
        unsigned code = rig_reply (rig, 0, request)->reply->submitted->items[0]->code;
        if (code != TMQ_OK) {
            assert_int_equal (code, TMQ_LIMIT);
            return n - 1;
        }
    }
}

static void queues_and_lanes_are_counted_with_the_texts (void **state)
{
    enum { BYTES = 96 * 1024, QUEUE = 500, KEY = 300, ALL = 3000, LESS = 3 };
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_bytes_max = BYTES;
    for (unsigned kind = 0; kind < 3; kind++) {
        rig_t *rig = rig_new_with (&config);
        rig_link (rig, 0, "default");
        unsigned room = fill_with_own (rig, kind != 1, kind != 0, kind == 2);
        unsigned each = kind == 0 ? QUEUE : kind == 1 ? KEY : ALL;
        assert_in_range (room, BYTES / each / LESS, BYTES / each);
        rig_free (rig);
    }
}

/* What they took is free again, to the byte. */
static void queues_and_lanes_give_back_what_they_took (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_bytes_max = 8192;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    for (unsigned n = 1; n <= 300; n++) {
        Taskmq__Label label = {PROTOBUF_C_MESSAGE_INIT (&taskmq__label__descriptor), "k", "v"};
        Taskmq__Label *labels[] = {&label};
        Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        char name[16];
        snprintf (name, sizeof (name), "own%u", n);
        spec.queue = name;
        spec.priority_plus_1 = n % 256 + 1;
        spec.extra = &extra;
        extra.fair_key = name;
        extra.needs = labels;
        extra.n_needs = 1;
        uint64_t request = rig_submit_spec (rig, 0, n, &spec, "");
        rig_settle (rig);
        assert_int_equal (rig_reply (rig, 0, request)->reply->submitted->items[0]->code, TMQ_OK);
        rig_cancel (rig, 0, n);
        rig_settle (rig);
    }
    rig_free (rig);
}

static void subscriptions_have_only_so_many_bytes (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.stream_bytes_max = 30000;
    rig_t *rig = new_rig_of (&config);
    uint64_t n = 1;
    while (subscribe_to (rig, n, 0, 64) == TMQ_OK)
        assert_true (n++ < 10);
    assert_true (n > 2);
    assert_int_equal (subscribe_to (rig, n, 0, 64), TMQ_LIMIT);
    rig_unsubscribe (rig, 0, 1); /* makes room, and what was refused took none */
    assert_int_equal (subscribe_to (rig, n, 0, 64), TMQ_OK);
    rig_free (rig);
}

static void snapshots_by_id_are_counted (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.stream_bytes_max = 30000;
    rig_t *rig = new_rig_of (&config);
    for (unsigned i = 1; i <= 3; i++)
        assert_false (meta_is_refused (rig, i, ""));
    assert_int_equal (subscribe_to (rig, 1, 3, 0), TMQ_LIMIT);
    assert_int_equal (subscribe_to (rig, 1, 1, 0), TMQ_OK);
    rig_settle (rig); /* it was sent: its bytes are free again */
    assert_int_equal (subscribe_to (rig, 2, 2, 0), TMQ_OK);
    rig_free (rig);
}

static void workers_have_only_so_many_bytes_of_queues (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.worker_bytes_max = 10000;
    rig_t *rig = new_rig_of (&config);
    unsigned worker = 100;
    uint64_t request;
    do {
        request = rig_register (rig, 0, worker++, "q", 1);
        rig_settle (rig);
        assert_in_range (worker, 100, 200);
    } while (rig_code (rig, 0, request) == TMQ_OK);
    assert_int_equal (rig_code (rig, 0, request), TMQ_LIMIT);
    size_t each = sizeof (worker_t) + sizeof (seat_t) + sizeof (queue_t); /* of one queue */
    assert_in_range ((worker - 101) * each, 1, config.worker_bytes_max);
    request = rig_register (rig, 0, 100, "other", 1); /* one that is there may change its mind */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    rig_leave (rig, 0, 100);
    request = rig_register (rig, 0, worker, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    rig_free (rig);
}

/* A message of many requests; handled as far as one round goes. */
static size_t handle_round (rig_t *rig, const message_t *message, size_t from)
{
    key_list_t keys = {0};
    engine_round (rig->engine);
    size_t upto = engine_want (rig->engine, message, from, &keys);
    engine_loaded (rig->engine, &keys);
    engine_message (rig->engine, message, from, upto, rig->now);
    return upto;
}

enum { REQUESTS = RIG_REQUESTS_MAX };

static message_t heartbeats_of (rig_t *rig, size_t peer)
{
    static Taskmq__Heartbeat heartbeat;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    heartbeat = (Taskmq__Heartbeat) TASKMQ__HEARTBEAT__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &heartbeat;
    return rig_message_of (rig, peer, &request, REQUESTS);
}

static message_t counts_of (rig_t *rig, size_t peer)
{
    static Taskmq__Count count;
    static Taskmq__Filter filter;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    count = (Taskmq__Count) TASKMQ__COUNT__INIT;
    filter = (Taskmq__Filter) TASKMQ__FILTER__INIT;
    count.filter = &filter;
    request.op_case = TASKMQ__REQUEST__OP_COUNT;
    request.count = &count;
    return rig_message_of (rig, peer, &request, REQUESTS);
}

static void a_message_is_handled_in_as_many_rounds_as_it_takes (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.requests = 30;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    message_t message = heartbeats_of (rig, 0);
    size_t rounds = 0;
    for (size_t done = 0; done < REQUESTS; rounds++) {
        size_t upto = handle_round (rig, &message, done);
        assert_in_range (upto, done + 1, done + 30);
        done = upto;
    }
    assert_int_equal (rounds, 4);
    rig_outputs (rig);
    for (size_t i = 0; i < REQUESTS; i++)
        assert_int_equal (rig_replies (rig, 0, 1000 + i), 1);
    rig_free (rig);
}

static void a_share_is_a_part_of_the_round (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.requests = 40;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    message_t message = heartbeats_of (rig, 0);
    key_list_t keys = {0};
    engine_round (rig->engine);
    engine_share (rig->engine, 4, true);
    assert_int_equal (engine_want (rig->engine, &message, 0, &keys), 10);
    assert_int_equal (engine_want (rig->engine, &message, 10, &keys), 10);
    engine_share (rig->engine, 4, true);
    assert_int_equal (engine_want (rig->engine, &message, 10, &keys), 20);
    engine_share (rig->engine, 4, true); /* the first half is used up … */
    assert_int_equal (engine_want (rig->engine, &message, 20, &keys), 20);
    assert_false (engine_round_is_over (rig->engine));
    engine_share (rig->engine, 4, false); /* … but there is more of it */
    assert_int_equal (engine_want (rig->engine, &message, 20, &keys), 30);
    engine_share (rig->engine, 1, false);
    assert_int_equal (engine_want (rig->engine, &message, 30, &keys), 40);
    assert_true (engine_round_is_over (rig->engine));
    engine_loaded (rig->engine, &keys);
    rig_free (rig);
}

static void reads_of_one_who_is_gone_are_passed_over (void **state)
{
    rig_t *rig = *state;
    message_t message = counts_of (rig, 0);
    message.gone = true;
    assert_int_equal (handle_round (rig, &message, 0), REQUESTS);
    assert_null (engine_read_next (rig->engine));
    message = heartbeats_of (rig, 0);
    message.gone = true;
    handle_round (rig, &message, 0);
    rig_outputs (rig);
    assert_int_equal (rig_replies (rig, 0, 1000), 1); /* the heartbeat was answered */
}

/* It is told to wait while it does not read; whoever goes on asking then loses its link. */
static void a_peer_that_does_not_read_is_clogged (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.unsent_bytes_max = 200;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    message_t message = heartbeats_of (rig, 0);
    rig->peers[0].refuse = true;
    assert_false (engine_is_clogged (rig->engine, message.peer));
    handle_round (rig, &message, 0);
    rig_outputs (rig);
    assert_true (engine_is_clogged (rig->engine, message.peer));
    assert_false (engine_is_clogged (rig->engine, rig->peers[1].id));
    for (uint64_t i = 1; i <= REQUESTS; i++)
        engine_refuse (rig->engine, message.peer, i, TMQ_OVERLOADED, "too much", 100);
    assert_false (engine_is_linked (rig->engine, message.peer));
    assert_false (engine_is_clogged (rig->engine, message.peer));
    rig_free (rig);
}

static void a_link_has_only_so_many_reads_open (void **state)
{
    rig_t *rig = *state;
    uint64_t requests[LINK_READS + 1];
    for (size_t i = 0; i <= LINK_READS; i++)
        requests[i] = rig_count (rig, 0);
    rig_outputs (rig);
    assert_null (rig_reply (rig, 0, requests[0]));
    assert_int_equal (rig_code (rig, 0, requests[LINK_READS]), TMQ_LIMIT);
    const Taskmq__Reply *reply = rig_reply (rig, 0, requests[LINK_READS])->reply;
    assert_true (reply->retry_after_ms > 0);
    assert_non_null (strstr (reply->text, "64"));
    uint64_t other = rig_count (rig, 1); /* others have theirs */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, other), TMQ_OK);
    for (size_t i = 0; i < LINK_READS; i++)
        assert_int_equal (rig_code (rig, 0, requests[i]), TMQ_OK);
    uint64_t again = rig_count (rig, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, again), TMQ_OK);
}

static void all_links_have_only_so_many_reads_open (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.reads_max = 70;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (size_t i = 0; i < LINK_READS; i++)
        rig_count (rig, 0);
    for (size_t i = LINK_READS; i < 70; i++)
        rig_count (rig, 1);
    uint64_t refused = rig_count (rig, 1);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 1, refused), TMQ_LIMIT);
    rig_free (rig);
}

static void links_take_turns_to_read (void **state)
{
    rig_t *rig = *state;
    for (size_t i = 0; i < 20; i++)
        rig_count (rig, 0);
    uint64_t other = rig_count (rig, 1);
    read_t *first = engine_read_next (rig->engine);
    read_t *second = engine_read_next (rig->engine);
    assert_non_null (first);
    assert_non_null (second);
    engine_read_done (rig->engine, second, rig->now);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 1, other), TMQ_OK); /* not behind the other's twenty */
    engine_read_done (rig->engine, first, rig->now);
}

static void readers_are_given_only_so_many (void **state)
{
    rig_t *rig = *state;
    read_t *given[4];
    for (size_t i = 0; i < 20; i++)
        rig_count (rig, 0);
    for (size_t i = 0; i < 4; i++)
        assert_non_null (given[i] = engine_read_next (rig->engine));
    assert_null (engine_read_next (rig->engine));
    engine_read_done (rig->engine, given[0], rig->now);
    assert_non_null (given[0] = engine_read_next (rig->engine));
    for (size_t i = 0; i < 4; i++)
        engine_read_done (rig->engine, given[i], rig->now);
}

static void reads_end_with_their_link (void **state)
{
    rig_t *rig = *state;
    for (size_t i = 0; i < 20; i++)
        rig_count (rig, 0);
    read_t *given = engine_read_next (rig->engine);
    assert_non_null (given);
    assert_false (atomic_load (&given->cancelled));
    rig_goodbye (rig, 0);
    assert_true (atomic_load (&given->cancelled)); /* the reader may stop */
    assert_null (engine_read_next (rig->engine));
    engine_read_done (rig->engine, given, rig->now);
}

static void a_read_ends_with_its_deadline (void **state)
{
    rig_t *rig = *state;
    Taskmq__Count count = TASKMQ__COUNT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_COUNT;
    request.count = &count;
    request.deadline_ms = 500;
    rig_send (rig, 0, &request, NULL, 0);
    rig->now.mono_ms += 600;
    engine_round (rig->engine);
    engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
    assert_null (engine_read_next (rig->engine));
}

/* Keys that the engine wants for payloads right now; they are answered as lost. */
static size_t payloads_wanted (rig_t *rig)
{
    key_list_t keys = {0};
    engine_round (rig->engine);
    engine_want_payloads (rig->engine, &keys);
    size_t count = keys.count;
    engine_loaded (rig->engine, &keys);
    return count;
}

static void payloads_are_read_for_the_room_that_workers_have (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.payload_cache_bytes = 0; /* the tables have every payload */
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= 300; n++)
        rig_submit (rig, 0, n, "q", "a payload");
    rig_settle (rig);
    assert_int_equal (payloads_wanted (rig), 0);
    rig_register (rig, 1, 100, "q", 3);
    assert_int_equal (payloads_wanted (rig), 3);
    rig_free (rig);
}

static void payloads_read_ahead_are_bounded_in_bytes (void **state)
{
    (void) state;
    char payload[1001];
    memset (payload, 'x', sizeof (payload) - 1);
    payload[sizeof (payload) - 1] = '\0';
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.payload_cache_bytes = 0;
    config.fetched_bytes_max = 20000; /* half of it a round */
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= 100; n++)
        rig_submit (rig, 0, n, "q", payload);
    rig_settle (rig);
    rig_register (rig, 1, 100, "q", 100);
    assert_int_equal (payloads_wanted (rig), 10); /* not answered: these are lost */
    for (int i = 0; i < 20; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 90); /* the others come, bit by bit */
    rig_free (rig);
}

static void stats_of_many_queues_take_several_rounds (void **state)
{
    (void) state;
    enum { QUEUES = 1000 };
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.queues = 300;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    for (unsigned n = 1; n <= QUEUES; n++) {
        char queue[16];
        snprintf (queue, sizeof (queue), "q%u", n);
        rig_submit (rig, 0, n, queue, "");
    }
    rig_settle (rig);
    uint64_t stats = rig_stats (rig, 0);
    rig_commit (rig);
    rig_outputs (rig);
    assert_int_equal (rig_replies (rig, 0, stats), 1);
    assert_true (rig_reply (rig, 0, stats)->reply->more);
    rig_cancel (rig, 0, 999); /* its queue goes while the answer is under way */
    for (int i = 0; i < 8; i++)
        rig_settle (rig);
    size_t queues = 0;
    size_t parts = 0;
    for (size_t i = 0; i < rig->peers[0].count; i++) {
        const Taskmq__Reply *reply = rig->peers[0].items[i].reply;
        if (reply == NULL || reply->id != stats)
            continue;
        parts++;
        queues += reply->stats->n_queues;
        assert_int_equal (reply->more, parts < 4);
    }
    assert_int_equal (parts, 4);
    assert_in_range (queues, QUEUES - 1, QUEUES);
    rig_free (rig);
}

static void only_so_many_stats_are_answered_at_a_time (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.queues = 1;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    for (unsigned n = 1; n <= 20; n++) {
        char queue[16];
        snprintf (queue, sizeof (queue), "q%u", n);
        rig_submit (rig, 0, n, queue, "");
    }
    rig_settle (rig);
    uint64_t refused = 0;
    for (int i = 0; i < 5; i++)
        refused = rig_stats (rig, 0);
    rig_commit (rig);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, refused), TMQ_LIMIT);
    assert_true (rig_reply (rig, 0, refused)->reply->retry_after_ms > 0);
    rig_goodbye (rig, 0); /* the others end with the link */
    for (int i = 0; i < 3; i++)
        rig_settle (rig);
    rig_free (rig);
}

static void what_subscriptions_held_is_freed_in_rounds (void **state)
{
    (void) state;
    enum { SUBSCRIPTIONS = 100, ROUND = 20 };
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.endings = ROUND;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned i = 1; i <= SUBSCRIPTIONS; i++)
        rig_subscribe (rig, 1, i, 0);
    rig_settle (rig);
    rig_goodbye (rig, 1);
    size_t rounds = 0;
    int64_t next = rig->now.mono_ms;
    for (; next <= rig->now.mono_ms; rounds++) {
        engine_round (rig->engine);
        next = engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
        rig_submit (rig, 0, (unsigned) rounds + 1, "q", ""); /* concerns nobody any more */
        rig_commit (rig);
    }
    assert_in_range (rounds, SUBSCRIPTIONS / ROUND, SUBSCRIPTIONS);
    size_t before = rig->peers[1].count;
    rig_settle (rig);
    assert_in_range (rig->peers[1].count - before, 0, 1); /* the answer to its goodbye */
    rig_free (rig);
}

static void time_goes_on_while_the_socket_is_never_empty (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) "q";
    spec.ttl_ms = 60000;
    rig_submit_spec (rig, 0, 1, &spec, "");
    rig_register (rig, 1, 100, "other", 1);
    rig_settle (rig);
    int64_t heard_ms = rig->now.mono_ms; /* nothing that came later has been read */
    rig->now.mono_ms += 120000;
    rig->now.wall_ms += 120000;
    engine_round (rig->engine);
    engine_tick (rig->engine, rig->now, heard_ms, 0);
    rig_commit (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED); /* it expired … */
    rig_submit (rig, 0, 2, "other", "");
    rig_commit (rig);
    rig_outputs (rig);
    assert_int_equal (rig_assignments (rig, 1), 1); /* … and the worker is not silent */
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (what_expires_at_once_is_committed_in_pieces),
        cmocka_unit_test (a_round_fires_no_more_alarms_than_it_may),
        TEST (leases_of_a_worker_that_leaves_are_returned_in_pieces),
        cmocka_unit_test (a_round_gives_back_no_more_leases_than_it_may),
        cmocka_unit_test (a_round_loses_no_more_leases_than_it_may),
        cmocka_unit_test (a_worker_that_comes_back_has_what_was_not_given_back),
        cmocka_unit_test (a_round_judges_no_more_delays_than_it_may),
        cmocka_unit_test (live_tasks_have_only_so_many_bytes_of_texts),
        cmocka_unit_test (queues_and_lanes_are_counted_with_the_texts),
        cmocka_unit_test (queues_and_lanes_give_back_what_they_took),
        cmocka_unit_test (subscriptions_have_only_so_many_bytes),
        cmocka_unit_test (snapshots_by_id_are_counted),
        cmocka_unit_test (workers_have_only_so_many_bytes_of_queues),
        cmocka_unit_test (a_message_is_handled_in_as_many_rounds_as_it_takes),
        cmocka_unit_test (a_share_is_a_part_of_the_round),
        TEST (reads_of_one_who_is_gone_are_passed_over),
        cmocka_unit_test (a_peer_that_does_not_read_is_clogged),
        TEST (a_link_has_only_so_many_reads_open),
        cmocka_unit_test (all_links_have_only_so_many_reads_open),
        TEST (links_take_turns_to_read),
        TEST (readers_are_given_only_so_many),
        TEST (reads_end_with_their_link),
        TEST (a_read_ends_with_its_deadline),
        cmocka_unit_test (payloads_are_read_for_the_room_that_workers_have),
        cmocka_unit_test (payloads_read_ahead_are_bounded_in_bytes),
        cmocka_unit_test (stats_of_many_queues_take_several_rounds),
        cmocka_unit_test (only_so_many_stats_are_answered_at_a_time),
        cmocka_unit_test (what_subscriptions_held_is_freed_in_rounds),
        TEST (time_goes_on_while_the_socket_is_never_empty),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
