/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Owning by beats, seen from both sides (A119).
 *
 * The owner counts up a number where others can read it, about four times in a lease. Who waits for
 * his place looks at it, and measures on his own clock for how long it stood still. Only durations
 * are compared, each on one clock, so it does not matter what time any host believes it is. All
 * that is asked of two clocks is that they run within a tenth of each other.
 *
 * This alone makes nothing safe: who takes over does so on condition that epoch and beat are still
 * those he saw, in the transaction that begins the next epoch. It says when to try, and until when
 * an owner may tell what it has in memory.
 *
 * Pure: times are arguments, in ms of one monotonic clock. */
#ifndef TASKMQ_CORE_BEATS_H
#define TASKMQ_CORE_BEATS_H

#include <stdbool.h>
#include <stdint.h>

/* The owner beats every quarter of a lease, and gives up an eighth of it before anybody else may
 * take over: that is more than a tenth. */
enum { BEATS_IN_LEASE = 4, BEATS_MARGIN_PART = 8 };

/* The owner. */
typedef struct beats {
    int64_t lease_ms;
    int64_t valid_until; /* nobody else can own it before; INT64_MIN: it was never owned */
} beats_t;

void beats_init (beats_t *self, int64_t lease_ms);
/* Between the sending of two beats. */
int64_t beats_every_ms (const beats_t *self);
/* A beat was acknowledged, and sent at sent_ms: the time before it was given away, not that of its
 * answer, for whoever looks may have seen it at once. Nothing but a beat prolongs: others see no
 * commits. */
void beats_acknowledged (beats_t *self, int64_t sent_ms);

/* Who waits. */
typedef struct beat_watch {
    unsigned planted_bug; /* of the simulation; 0: none */
    int64_t lease_ms;
    uint64_t epoch;
    uint64_t beat;
    int64_t since_ms; /* when this beat of this epoch was seen first */
    bool sees;        /* it was seen at all, and each look since then had an answer */
} beat_watch_t;

void beat_watch_init (beat_watch_t *self, int64_t lease_ms);
/* A look was answered at now_ms. True: this beat stood still for a lease, and one may try to take
 * over from exactly it. */
bool beat_watch_saw (beat_watch_t *self, uint64_t epoch, uint64_t beat, int64_t now_ms);
/* How long to wait until the next look: as usual, but not beyond the end of the silence. */
int64_t beat_watch_pause_ms (const beat_watch_t *self, int64_t usual_ms, int64_t now_ms);
/* A look had no answer: whatever kept it may have kept the owner's beats, too, so the measurement
 * begins anew. */
void beat_watch_missed (beat_watch_t *self);

#endif
