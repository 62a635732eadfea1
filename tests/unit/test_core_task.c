/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The state machine, every pair of status and input; and how a task keeps its texts. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/task.h"
#include "support/cmocka_all.h"

/* What each input leads to, written down a second time: a letter per status in the order none,
 * queued, working, input_required, completed, failed, cancelled. Capitals are the new status, a dot
 * is a refusal, R a removal, K cancelled. */
static const char *const EXPECTED[INPUT_COUNT] = {
    [INPUT_SUBMIT] = "Q......",
    [INPUT_CLAIM] = ".W.....",
    [INPUT_COMPLETE] = "..CC...",
    [INPUT_FAIL] = "..QI...",
    [INPUT_FAIL_FINALLY] = "..FF...",
    [INPUT_RELEASE] = ".QQI..K",
    [INPUT_LOSE] = ".QQI..K",
    [INPUT_LOSE_FINALLY] = "..F....",
    [INPUT_EXPIRE] = ".F.....",
    [INPUT_CANCEL] = ".KKK...",
    [INPUT_CANCEL_ACK] = ".Q....K",
    [INPUT_CHANGE] = "..WI...",
    [INPUT_REMOVE] = "....RRR",
    [INPUT_DEPENDENCY] = ".F.....",
    [INPUT_UNBLOCK] = ".Q.....",
    [INPUT_ASK] = "..II...",
    [INPUT_ANSWER_SOME] = "...I...",
    [INPUT_ANSWER] = "...W...",
    [INPUT_ANSWER_FREE] = "...Q...",
    [INPUT_MISS_START] = ".F.....",
    [INPUT_RETRY] = ".....QQ",
    [INPUT_RESUME] = ".....QQ",
    [INPUT_SET] = ".QWICFK",
    [INPUT_PURGE] = "....RRR",
    [INPUT_LATE] = ".QWI.F.",
    [INPUT_ADOPT] = ".CCC.C.",
    [INPUT_TURN] = "..WI...",
    [INPUT_ARTIFACT] = "..WI...",
    [INPUT_IMPORT] = "Q......",
    [INPUT_IMPORT_ASKING] = "I......",
    [INPUT_IMPORT_COMPLETED] = "C......",
    [INPUT_IMPORT_FAILED] = "F......",
    [INPUT_IMPORT_CANCELLED] = "K......",
};

static const tmq_event_kind_t EVENTS[INPUT_COUNT] = {
    [INPUT_SUBMIT] = TMQ_EVENT_SUBMITTED,
    [INPUT_CLAIM] = TMQ_EVENT_CLAIMED,
    [INPUT_COMPLETE] = TMQ_EVENT_COMPLETED,
    [INPUT_FAIL] = TMQ_EVENT_ATTEMPT_FAILED,
    [INPUT_FAIL_FINALLY] = TMQ_EVENT_FAILED,
    [INPUT_RELEASE] = TMQ_EVENT_RELEASED,
    [INPUT_LOSE] = TMQ_EVENT_LEASE_LOST,
    [INPUT_LOSE_FINALLY] = TMQ_EVENT_FAILED,
    [INPUT_EXPIRE] = TMQ_EVENT_FAILED,
    [INPUT_CANCEL] = TMQ_EVENT_CANCELLED,
    [INPUT_CANCEL_ACK] = TMQ_EVENT_CANCEL_ACKNOWLEDGED,
    [INPUT_CHANGE] = TMQ_EVENT_CHANGED,
    [INPUT_REMOVE] = TMQ_EVENT_EXPIRED,
    [INPUT_DEPENDENCY] = TMQ_EVENT_FAILED,
    [INPUT_UNBLOCK] = TMQ_EVENT_CHANGED,
    [INPUT_ASK] = TMQ_EVENT_ASKED,
    [INPUT_ANSWER_SOME] = TMQ_EVENT_ANSWERED,
    [INPUT_ANSWER] = TMQ_EVENT_ANSWERED,
    [INPUT_ANSWER_FREE] = TMQ_EVENT_ANSWERED,
    [INPUT_MISS_START] = TMQ_EVENT_FAILED,
    [INPUT_RETRY] = TMQ_EVENT_RETRIED,
    [INPUT_RESUME] = TMQ_EVENT_RESUMED,
    [INPUT_SET] = TMQ_EVENT_CHANGED,
    [INPUT_PURGE] = TMQ_EVENT_PURGED,
    [INPUT_LATE] = TMQ_EVENT_LATE,
    [INPUT_TURN] = TMQ_EVENT_TURN,
    [INPUT_ARTIFACT] = TMQ_EVENT_ARTIFACT,
    [INPUT_IMPORT] = TMQ_EVENT_IMPORTED,
    [INPUT_IMPORT_ASKING] = TMQ_EVENT_IMPORTED,
    [INPUT_IMPORT_COMPLETED] = TMQ_EVENT_IMPORTED,
    [INPUT_IMPORT_FAILED] = TMQ_EVENT_IMPORTED,
    [INPUT_IMPORT_CANCELLED] = TMQ_EVENT_IMPORTED,
    [INPUT_ADOPT] = TMQ_EVENT_ADOPTED,
};

static char letter_of (const transition_t *row)
{
    return row == NULL ? '.' : "RQWICFK"[row->to];
}

static void every_pair_leads_where_it_should (void **state)
{
    (void) state;
    for (unsigned input = 0; input < INPUT_COUNT; input++) {
        assert_int_equal (strlen (EXPECTED[input]), 7);
        for (unsigned from = 0; from < 7; from++) {
            const transition_t *row = transition_find (from, input);
            if (letter_of (row) != EXPECTED[input][from])
                fail_msg ("input %u in status %u leads to %c", input, from, letter_of (row));
            if (row != NULL)
                assert_int_equal (row->event, EVENTS[input]);
        }
    }
}

static void only_by_hand_does_an_end_end (void **state)
{
    (void) state;
    for (unsigned from = TMQ_STATUS_COMPLETED; from <= TMQ_STATUS_CANCELLED; from++) {
        for (unsigned input = 0; input < INPUT_COUNT; input++) {
            const transition_t *row = transition_find (from, input);
            bool by_hand = input == INPUT_RETRY || input == INPUT_RESUME || input == INPUT_ADOPT;
            if (row != NULL && !by_hand)
                assert_true (row->to == TMQ_STATUS_NONE || row->to == from);
        }
    }
}

static void texts_are_packed_and_taken_apart (void **state)
{
    (void) state;
    task_t task = {0};
    task_texts_t in = {"tools/call", "text/plain", "key", "{}", {{"colour", "blue"}, {"n", ""}}};
    task_texts_t out;
    task_set_texts (&task, &in, 2);
    task_texts (&task, &out);
    assert_string_equal (out.method, "tools/call");
    assert_string_equal (out.content_type, "text/plain");
    assert_string_equal (out.dedup_key, "key");
    assert_string_equal (out.meta, "{}");
    assert_string_equal (out.labels[0].key, "colour");
    assert_string_equal (out.labels[0].value, "blue");
    assert_string_equal (out.labels[1].key, "n");
    assert_string_equal (out.labels[1].value, "");
    assert_string_equal (task_dedup_key (&task), "key");
    slab_t slab;
    slab_init (&slab);
    task_clear (&slab, &task);
    slab_free (&slab);
}

static void a_task_without_texts_has_no_memory_for_them (void **state)
{
    (void) state;
    task_t task = {0};
    task_texts_t in = {"", "", "", "", {{0}}};
    task_texts_t out;
    task_set_texts (&task, &in, 0);
    assert_null (task.texts);
    task_texts (&task, &out);
    assert_string_equal (out.method, "");
    assert_string_equal (task_dedup_key (&task), "");
    assert_true (sizeof (task_t) <= 300); /* the target is 400 bytes a task with everything */
}

static void the_slab_hands_out_each_place_once (void **state)
{
    (void) state;
    enum { MANY = 3000 };
    slab_t slab;
    slab_init (&slab);
    task_t **tasks = memory_zero (MANY, sizeof (*tasks));
    for (size_t i = 0; i < MANY; i++) {
        tasks[i] = slab_take (&slab);
        assert_int_equal (tasks[i]->number, 0);
        tasks[i]->number = (int64_t) i + 1;
    }
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal (tasks[i]->number, i + 1);
    assert_int_equal (slab.used, MANY);
    slab_give (&slab, tasks[5]);
    assert_ptr_equal (slab_take (&slab), tasks[5]);
    free (tasks);
    slab_free (&slab);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (every_pair_leads_where_it_should),
        cmocka_unit_test (only_by_hand_does_an_end_end),
        cmocka_unit_test (texts_are_packed_and_taken_apart),
        cmocka_unit_test (a_task_without_texts_has_no_memory_for_them),
        cmocka_unit_test (the_slab_hands_out_each_place_once),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
