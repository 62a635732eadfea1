/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Pages that are read for streams: few at a time, and none for who takes none. */
#include "core_rig.h"

enum {
    TASKS = 450,    /* more than what leaves without credit */
    STREAMS = 100,  /* subscriptions of a link */
    LINK_PAGES = 16 /* that are read for the streams of one link, and not sent */
};

/* Tasks of its snapshot that the subscription was sent. */
static size_t shown (const rig_t *rig, size_t peer, uint64_t subscription)
{
    size_t tasks = 0;
    for (size_t i = 0; i < rig->peers[peer].count; i++) {
        const Taskmq__Snapshot *snapshot = rig->peers[peer].items[i].snapshot;
        if (snapshot != NULL && snapshot->subscription == subscription)
            tasks += snapshot->n_tasks;
    }
    return tasks;
}

/* A snapshot for each of so many subscriptions of the peer, asked for in one message. */
static void subscribe_many (rig_t *rig, size_t peer, unsigned count)
{
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.snapshot = true;
    subscribe.from_now = true;
    rig_gather (rig);
    for (unsigned n = 1; n <= count; n++) {
        subscribe.subscription = n;
        rig_subscribe_as (rig, peer, &subscribe);
    }
    rig_send_gathered (rig, peer);
}

static void submit_for_snapshots (rig_t *rig)
{
    for (unsigned n = 1; n <= TASKS; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_settle (rig);
}

static void nothing_is_read_ahead_for_who_takes_nothing (void **state)
{
    rig_t *rig = *state;
    submit_for_snapshots (rig);
    rig_refuse_after (rig, 1, 1); /* the replies leave, the snapshots do not */
    size_t before = rig->reads;
    subscribe_many (rig, 1, STREAMS);
    rig_settle (rig);
    assert_in_range (rig->reads - before, 1, LINK_PAGES);
    rig_heed (rig, 1);
    size_t ended = 0;
    for (unsigned turn = 0; turn < 20 && ended < STREAMS; turn++) {
        ended = 0;
        for (unsigned n = 1; n <= STREAMS; n++) {
            ended += shown (rig, 1, n) == TASKS;
            rig_credit (rig, 1, n, 0);
        }
        rig_settle (rig);
    }
    for (unsigned n = 1; n <= STREAMS; n++)
        assert_int_equal (shown (rig, 1, n), TASKS);
}

static void a_stream_without_credit_holds_up_no_other_of_its_link (void **state)
{
    rig_t *rig = *state;
    submit_for_snapshots (rig);
    subscribe_many (rig, 1, STREAMS);
    rig_settle (rig);
    for (unsigned n = 1; n <= STREAMS; n++)
        assert_in_range (shown (rig, 1, n), 1, TASKS - 1);
    for (unsigned i = 0; i < 4; i++) {
        rig_credit (rig, 1, STREAMS / 2, 0);
        rig_settle (rig);
    }
    assert_int_equal (shown (rig, 1, STREAMS / 2), TASKS);
}

static void links_that_take_nothing_hold_up_no_other (void **state)
{
    rig_t *rig = *state;
    submit_for_snapshots (rig);
    for (size_t peer = 2; peer < RIG_PEERS; peer++) {
        rig_link (rig, peer, "default");
        rig_refuse_after (rig, peer, 1);
        subscribe_many (rig, peer, STREAMS);
        rig_settle (rig);
    }
    subscribe_many (rig, 1, 1);
    rig_settle (rig);
    assert_in_range (shown (rig, 1, 1), 1, TASKS);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (nothing_is_read_ahead_for_who_takes_nothing),
        TEST (a_stream_without_credit_holds_up_no_other_of_its_link),
        TEST (links_that_take_nothing_hold_up_no_other),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
