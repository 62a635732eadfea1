/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the checker of the stress runs takes for a possible story of one task, and what not. */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/checker.h"
#include "support/cmocka_all.h"

/* One event; its number is its place. */
typedef struct step {
    tmq_event_kind_t kind;
    tmq_status_t previous;
    tmq_status_t status;
    uint32_t attempt;
} step_t;

enum { STEPS_MAX = 8 };

#define SUBMITTED                                                                                  \
    {                                                                                              \
        TMQ_EVENT_SUBMITTED, TMQ_STATUS_NONE, TMQ_STATUS_QUEUED, 0                                 \
    }
#define CLAIMED(n)                                                                                 \
    {                                                                                              \
        TMQ_EVENT_CLAIMED, TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING, n                                \
    }
#define LOST(n)                                                                                    \
    {                                                                                              \
        TMQ_EVENT_LEASE_LOST, TMQ_STATUS_WORKING, TMQ_STATUS_QUEUED, n                             \
    }
#define LATE(n, status)                                                                            \
    {                                                                                              \
        TMQ_EVENT_LATE, status, status, n                                                          \
    }
#define COMPLETED(n)                                                                               \
    {                                                                                              \
        TMQ_EVENT_COMPLETED, TMQ_STATUS_WORKING, TMQ_STATUS_COMPLETED, n                           \
    }

static const step_t *told; /* of the story that is judged; ended by the kind 0 */

static void judge (void **state)
{
    (void) state;
    history_t history;
    tmq_id_t id;
    char payload[CHECKER_TEXT_MAX];
    history_init (&history);
    size_t number = history_new_task (&history, &id, payload);
    uint64_t seq = 0;
    for (const step_t *step = told; step->kind != 0; step++) {
        seq++;
        tmq_event_t event = {.item = TMQ_ITEM_EVENT,
                             .seq = seq,
                             .generation = 1,
                             .task_id = id,
                             .kind = step->kind,
                             .previous = step->previous,
                             .status = step->status,
                             .attempt = step->attempt};
        history_event (&history, 0, &event);
        history.facts[number].seq = seq;
        history.facts[number].status = step->status;
    }
    checker_events (&history, 1, seq);
    history_clear (&history);
}

/* In a child, and without its words: a story that is refused fails its test. */
static bool is_refused (const step_t *steps)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (judge)};
    int status = 0;
    told = steps;
    pid_t child = fork ();
    if (child == 0) {
        int nowhere = open ("/dev/null", O_WRONLY);
        dup2 (nowhere, STDOUT_FILENO);
        dup2 (nowhere, STDERR_FILENO);
        _exit (cmocka_run_group_tests (tests, NULL, NULL));
    }
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFEXITED (status));
    return WEXITSTATUS (status) != 0;
}

/* S35: it names its own attempt, whatever began since, and changes nothing. */
static void test_a_success_may_be_late (void **state)
{
    (void) state;
    static const step_t stories[][STEPS_MAX] = {
        {SUBMITTED, CLAIMED (1), LOST (1), CLAIMED (2), LATE (1, TMQ_STATUS_WORKING),
         COMPLETED (2)},
        {SUBMITTED, CLAIMED (1), LOST (1), LATE (1, TMQ_STATUS_QUEUED), CLAIMED (2), COMPLETED (2)},
    };
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        assert_false (is_refused (stories[i]));
    }
}

static void test_nothing_goes_back (void **state)
{
    (void) state;
    static const step_t stories[][STEPS_MAX] = {
        /* a late success is no newer attempt, and the attempt behind it is the one before it */
        {SUBMITTED, CLAIMED (1), LATE (2, TMQ_STATUS_WORKING), COMPLETED (1)},
        {SUBMITTED, CLAIMED (1), LOST (1), CLAIMED (2), LATE (1, TMQ_STATUS_WORKING),
         COMPLETED (1)},
        /* none changes a task, or comes to one that was completed */
        {SUBMITTED,
         CLAIMED (1),
         LOST (1),
         {TMQ_EVENT_LATE, TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING, 1},
         COMPLETED (1)},
        {SUBMITTED, CLAIMED (1), COMPLETED (1), LATE (1, TMQ_STATUS_COMPLETED)},
        {SUBMITTED, CLAIMED (2), LOST (2), CLAIMED (1), COMPLETED (1)},
        {SUBMITTED, CLAIMED (1), LOST (1), CLAIMED (1), COMPLETED (1)},
        {LATE (1, TMQ_STATUS_QUEUED)},
    };
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        if (!is_refused (stories[i])) {
            fail_msg ("story %zu passes", i);
        }
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_success_may_be_late),
        cmocka_unit_test (test_nothing_goes_back),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
