/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Gives memory that was freed after a peak back to the system. malloc keeps it, and giving it back
 * takes milliseconds, in which nobody else gets any. So it is done at most once a minute, and while
 * nothing grows. */
#ifndef TASKMQ_PROTO_TRIM_H
#define TASKMQ_PROTO_TRIM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TRIM_BYTES_MIN = 64 * 1024 * 1024, /* resident; below it nothing is worth a look */
    TRIM_MS_MIN = 60 * 1000            /* between two times */
};

/* All zero at first. Used by one thread. */
typedef struct trim {
    int64_t look_at;         /* mono */
    int64_t next_at;         /* mono */
    uint64_t resident_bytes; /* at the last look */
} trim_t;

/* What the next look decides; it remembers that. */
bool trim_is_due (trim_t *self, int64_t mono_ms, uint64_t resident_bytes);
/* Looks once a second, whoever calls more often, and trims when it is due. */
void trim_sometimes (trim_t *self, int64_t mono_ms);

#endif
