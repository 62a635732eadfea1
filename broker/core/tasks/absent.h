/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which ids surely are not in the tables, so that the submit of a new task needs no look-up.
 *
 * Ids begin with the time at which they were made. The store says at the start up to which time it
 * knows any; what was accepted since is in memory, and when it leaves, its id goes into a Bloom
 * filter. An id that is made after the boundary and is not in the filter was never seen. The filter
 * has two generations: when the newer one is full the older one is forgotten, and the boundary
 * rises to the newest time in it. A wrong "perhaps" costs a look-up; there is no wrong "surely". */
#ifndef TASKMQ_CORE_ABSENT_H
#define TASKMQ_CORE_ABSENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

enum {
    GONE_BITS = 1 << 24,    /* 2 MiB a generation */
    GONE_IDS_MAX = 1 << 20, /* 16 bits an id: with 4 probes one wrong "perhaps" in 300 */
    GONE_PROBES = 4
};

/* Ids that left memory. */
typedef struct left_id {
    uint64_t *bits; /* NULL: none yet */
    size_t count;
    int64_t newest_ms; /* time at which the newest of them was made */
} left_id_t;

typedef struct absent {
    int64_t boundary_ms; /* an id made at it or before may be in the tables */
    int64_t accepted_ms; /* time of the newest id that was accepted */
    left_id_t newer;
    left_id_t older;
} absent_t; /* zeroed memory is one before its first boot */

/* newest_id_ms: of all ids in the tables; 0: not known, nothing is surely absent. To be called at
 * the start, and after a reset, when some of what was accepted is in the tables only. */
void absent_boot (absent_t *self, int64_t newest_id_ms);
void absent_free (absent_t *self);
void absent_accepted (absent_t *self, const tmq_id_t *id);
/* The id leaves memory. hash: keyed, of the namespace and the id. */
void absent_left (absent_t *self, uint32_t hash, const tmq_id_t *id);
/* Neither in the tables nor among their tombstones, if it is not in memory. */
bool absent_surely (const absent_t *self, uint32_t hash, const tmq_id_t *id);

#endif
