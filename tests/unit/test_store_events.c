/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A history follows the chain of a task's events (store/events.h). */
#include <string.h>

#include "store/events.h"
#include "store_support.h"

enum { EVENTS = 400, PAGE = 10 };

/* Each event of the task in a block of its own, with events of another task between them. */
typedef struct chain {
    batch_t *blocks[2 * EVENTS + 1]; /* by sequence, from 1 */
    size_t looks;
} chain_t;

static void chain_make (chain_t *self)
{
    *self = (chain_t){.looks = 0};
    for (uint64_t seq = 1; seq <= 2 * EVENTS; seq++) {
        tmq_id_t task = test_id (seq % 2 + 1);
        self->blocks[seq] = batch_make (seq, 1);
        batch_add_event (self->blocks[seq], "default", seq, seq, 1, &task, TMQ_EVENT_CHANGED,
                         seq > 2 ? seq - 2 : 0);
    }
}

static void chain_free (chain_t *self)
{
    for (size_t seq = 1; seq <= 2 * EVENTS; seq++)
        batch_free (self->blocks[seq]);
}

static bool find (void *context, uint64_t seq, const uint8_t **list, size_t *list_bytes)
{
    chain_t *self = context;
    self->looks++;
    if (seq < 1 || seq > 2 * EVENTS)
        return false;
    *list = buf_bytes (self->blocks[seq]->blocks[0].list);
    *list_bytes = buf_length (self->blocks[seq]->blocks[0].list);
    return true;
}

/* Reads one page that ends before before_seq and compares its newest event. */
static uint64_t read_page (chain_t *chain, const tmq_id_t *id, uint64_t before_seq,
                           uint64_t newest_wanted)
{
    event_source_t source = {find, NULL, chain};
    read_t read = {.kind = READ_HISTORY,
                   .id = *id,
                   .last_seq = 2 * EVENTS,
                   .before_seq = before_seq,
                   .limit = PAGE};
    event_chain_t history;
    uint64_t seqs[PAGE];
    event_chain_start (&history, &read);
    assert_true (event_chain_follow (&history, &source));
    event_chain_finish (&history, &read);
    assert_int_equal (list_seqs (read.list, seqs, PAGE), PAGE);
    assert_int_equal (seqs[PAGE - 1], newest_wanted);
    assert_int_equal (seqs[0], newest_wanted - 2 * (PAGE - 1));
    uint64_t next = read.before_seq;
    read_clear (&read);
    return next;
}

/* All pages together look at each event once, and once more where a page begins. */
static void pages_do_not_begin_at_the_newest_event (void **state)
{
    (void) state;
    chain_t chain;
    chain_make (&chain);
    tmq_id_t id = test_id (1); /* has the even sequences */
    uint64_t before = 0;
    size_t pages = 0;
    do
        before = read_page (&chain, &id, before, 2 * EVENTS - 2 * PAGE * pages++);
    while (before != 0);
    assert_int_equal (pages, EVENTS / PAGE);
    assert_in_range (chain.looks, EVENTS, EVENTS + pages);
    chain_free (&chain);
}

/* A sequence that is none of the task's, or a task that is not known: the chain is walked. */
static void a_foreign_sequence_is_no_shortcut (void **state)
{
    (void) state;
    chain_t chain;
    chain_make (&chain);
    tmq_id_t id = test_id (1);
    tmq_id_t unknown = {{0}};
    read_page (&chain, &id, 400, 398); /* 399 is of the other task */
    read_page (&chain, &unknown, 401, 400);
    read_page (&chain, &id, 401, 400);
    read_page (&chain, &id, 2 * EVENTS + 1, 2 * EVENTS);
    read_page (&chain, &id, UINT64_MAX, 2 * EVENTS);
    chain_free (&chain);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (pages_do_not_begin_at_the_newest_event),
        cmocka_unit_test (a_foreign_sequence_is_no_shortcut),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
