/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Counters of `stats`, each with its meaning. */
#ifndef TASKMQ_CORE_COUNTS_H
#define TASKMQ_CORE_COUNTS_H

#include <stdint.h>

#define ENGINE_COUNTER_MAP(X)                                                                      \
    X (submitted, "tasks accepted")                                                                \
    X (existing, "submits answered with a task that was there already")                            \
    X (claimed, "assignments made")                                                                \
    X (completed, "tasks completed")                                                               \
    X (failed, "tasks failed, for whichever reason")                                               \
    X (dead, "tasks failed because their attempts were used up")                                   \
    X (cancelled, "tasks cancelled")                                                               \
    X (expired, "queued tasks whose time to live ended")                                           \
    X (removed, "terminal tasks removed after their time to live")                                 \
    X (attempts_failed, "attempts that failed and will be repeated")                               \
    X (released, "tasks given back, not counted")                                                  \
    X (leases_lost, "leases that ended before their worker reported")                              \
    X (stale_leases, "reports refused because another attempt took over")                          \
    X (requests, "requests taken")                                                                 \
    X (refused, "requests answered with an error")                                                 \
    X (overloads, "submissions refused because too much was pending")                              \
    X (full, "submissions refused because the disk was full")                                      \
    X (no_links, "requests without a link")                                                        \
    X (events, "events stored")                                                                    \
    X (notices, "progress notices sent")                                                           \
    X (gaps, "gaps told to subscribers")                                                           \
    X (outputs, "messages sent")                                                                   \
    X (outputs_failed, "messages that the transport refused")                                      \
    X (batches, "commit batches closed")                                                           \
    X (lookups, "keys looked up in the tables")                                                    \
    X (reads, "page reads given to readers")                                                       \
    X (clock_leaps, "forward leaps of wall time over an hour")                                     \
    X (resets, "restarts of the engine after a failed commit")

typedef struct counts {
#define X(name, meaning) uint64_t name;
    ENGINE_COUNTER_MAP (X)
#undef X
} counts_t;

/* A number of the server or the store, shown by `stats` after the engine's. */
typedef struct counter {
    const char *name;
    uint64_t value;
} counter_t;

#endif
