/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The two clocks of the engine: the monotonic one for leases, links and delays, and the wall clock
 * for what is stored. A forward leap of the wall clock is not believed for a while. One that goes
 * back a little stands still until the time has come up with it; one that goes back by more than an
 * hour was wrong before and is followed, so that a blip of the future freezes nothing (S20). Pure:
 * the caller says what time it is. */
#ifndef TASKMQ_CORE_CLOCKS_H
#define TASKMQ_CORE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct now {
    int64_t mono_ms; /* monotonic: leases, links */
    int64_t wall_ms; /* since the epoch, UTC: times that are stored */
} now_t;

enum {
    CLOCKS_LEAP_MS = 60 * 60 * 1000, /* a forward leap of wall time that is held, or a way back … */
    CLOCKS_HOLD_MS = 10 * 60 * 1000, /* … for so long */
    CLOCKS_HEARD_MS = 16,            /* so long until silence that is due is judged again */
    CLOCKS_NOTICED_MS = 1000         /* a smaller one is nobody's business */
};

/* What the newest step of the wall clock was. */
typedef enum clocks_step {
    CLOCKS_STEADY = 0,
    CLOCKS_MOVED, /* forward, beside the monotonic clock: waits counted on that are judged anew */
    CLOCKS_LEAPT, /* … by more than an hour: expiry does not count it yet */
    CLOCKS_BACK   /* by more than an hour: what is counted on the wall clock is judged anew */
} clocks_step_t;

typedef struct clocks {
    int64_t mono_ms;
    int64_t wall_ms;
    int64_t leap_ms;       /* of wall time that expiry does not count yet */
    int64_t hold_until_ms; /* mono; the leap counts from then on */
    int64_t heard_ms; /* mono; what had arrived by then has been applied: silence is judged by it */
    int64_t paused_ms;  /* so much of mono the broker stood still and heard nobody */
    clocks_step_t news; /* LEAPT or BACK, for the log, until somebody takes it */
    int64_t news_ms;    /* how far */
} clocks_t;

/* Sets both clocks at a start. newest_ms: the wall time of the newest commit, 0 for none; more than
 * an hour since then is a leap, because nobody can tell it from one. */
clocks_step_t clocks_boot (clocks_t *self, int64_t newest_ms, now_t now);
clocks_step_t clocks_advance (clocks_t *self, now_t now);
/* The wall time, but never below another time of the same record. */
int64_t clocks_wall_ms (const clocks_t *self, int64_t at_least_ms);
/* The monotonic clock without the pauses: what silence ends is counted on it. */
int64_t clocks_awake_ms (const clocks_t *self);
/* When that clock will say so, if the broker does not stand still again (mono). */
int64_t clocks_awake_due_ms (const clocks_t *self, int64_t awake_ms);
/* When what silence ends is to be judged again: at due_ms, or soon when that has passed unheard. */
int64_t clocks_look_again_ms (const clocks_t *self, int64_t due_ms);
/* The time by which expiry is judged: wall time without a leap that is still held. */
int64_t clocks_expiry_ms (const clocks_t *self);
/* A leap is being held. */
bool clocks_are_held (const clocks_t *self);

#endif
