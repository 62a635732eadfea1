/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How often it is told that something is gone and there again. A thing that comes and goes many
 * times a second must neither fill the log nor be passed over in silence: what was not told is
 * counted, news apart from absences, and told with the next line. Any thread may ask; one at a
 * time. */
#ifndef TASKMQ_STORE_TOLD_H
#define TASKMQ_STORE_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bucket.h"

enum {
    TOLD_BURST = 10,      /* times that it is told at once, and … */
    TOLD_EACH_MS = 10000, /* … one more in so long */
    TOLD_REASONS_MAX = 8  /* that are told of one absence */
};

/* What was not told since the last line. */
typedef struct told_left {
    uint64_t absences;
    uint64_t news;
} told_left_t;

/* Zeroed memory is one of a thing that is there. */
typedef struct told {
    bucket_t bucket;
    bool gone;        /* it is gone … */
    bool said;        /* … and that was told, */
    uint64_t reason;  /* … for this one last, … */
    unsigned reasons; /* … after so many others */
    told_left_t left;
} told_t;

/* It is gone, or still is, for a reason: any number that differs from those of others. True: tell
 * it now, and *left besides. */
bool told_gone (told_t *self, uint64_t reason, int64_t mono_ms, told_left_t *left);
/* It is there, as far as was seen just now. news: there is something else to tell about it. True:
 * tell it now, and *left besides. */
bool told_there (told_t *self, bool news, int64_t mono_ms, told_left_t *left);

#endif
