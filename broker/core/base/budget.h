/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The allowance of a round: what the engine may do before everybody else has their turn again. What
 * does not fit waits for the next round. */
#ifndef TASKMQ_CORE_BUDGET_H
#define TASKMQ_CORE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

/* X (name, default, meaning). An allowance is used up by what goes beyond it, so that the largest
 * single piece of work always gets its turn. */
#define BUDGET_MAP(X)                                                                              \
    X (requests, 2048, "requests and items of submits, by their cost")                             \
    X (lookups, 4096, "keys looked up in the tables")                                              \
    X (bodies, 16, "payloads and results read from the tables, of up to 1 MiB")                    \
    X (answer_bytes, 4194304, "bytes of answers, with their bodies")                               \
    X (alarms, 4096, "tasks, links, waits and streams whose time has come")                        \
    X (assignments, 2048, "tasks given to workers")                                                \
    X (seats, 4096, "places of waiting workers that a task is looked for")                         \
    X (debts, 2048, "leases of workers that left")                                                 \
    X (queues, 4096, "queues looked at for stats")                                                 \
    X (waits, 4096, "answers to those who wait for tasks that ended")                              \
    X (notices, 8192, "subscriptions looked at for notices of progress, and these")                \
    X (endings, 4096, "what ended subscriptions and waits held: names, tasks")                     \
    X (dependents, 1000, "tasks told of the end of one that they depend on")                       \
    X (leftovers, 1000, "turns and artifacts of tasks that were removed")                          \
    X (lanes, 1000, "ready tasks that go to other lanes, and lanes with another weight")

typedef struct budget {
#define X(name, amount, meaning) size_t name;
    BUDGET_MAP (X)
#undef X
} budget_t;
#define BUDGET_DEFAULT(name, amount, meaning) .name = (amount),
#define BUDGET_INIT                                                                                \
    {                                                                                              \
        BUDGET_MAP (BUDGET_DEFAULT)                                                                \
    }

/* Takes so much of an allowance; it may end in debt, which is forgotten with the round. */
static inline void budget_take (size_t *left, size_t amount)
{
    *left = *left > amount ? *left - amount : 0;
}

#endif
