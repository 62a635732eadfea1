/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What every room of the engine stands on: its configuration, the two clocks with their wheels,
 * chance, interned names, counters, and how far the store has come. */
#ifndef TASKMQ_CORE_BASE_H
#define TASKMQ_CORE_BASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clocks.h"
#include "core/base/config.h"
#include "core/base/counts.h"
#include "core/base/names.h"
#include "core/base/planted.h"
#include "core/base/secrets.h"
#include "core/base/wheel.h"
#include "keys.h"

enum {
    FINE_MS = 16,    /* granularity of leases, delays and links: a turn of 65 s */
    COARSE_MS = 1000 /* … of expiry: a turn of 68 min */
};

/* What the alarms are members of. */
enum {
    ALARM_TASK = 1,
    ALARM_WAIT,
    ALARM_LINK,
    ALARM_STREAM,
    ALARM_READ,
    ALARM_WORKER,
    ALARM_ASKING,
    ALARM_QUEUE,
    ALARM_SCHEDULE,
    ALARM_INSTANTS,
    ALARM_ROSTER,
    ALARM_SESSION
};

typedef struct base {
    engine_config_t config;
    secrets_t secrets;
    names_t names;
    counts_t counts;
    clocks_t clocks;
    budget_t round;          /* what is left of this round's allowance */
    budget_t floor;          /* … when the share that was begun last is used up */
    wheel_t fine;            /* mono: leases, delays, links, deadlines */
    wheel_t coarse;          /* the time of expiry: queued tasks */
    int64_t coarse_ahead_ms; /* its clock before that of expiry: all ways back of the wall clock */
    uint64_t durable;        /* newest commit batch that is durable, … */
    uint64_t written;        /* … that is written back */
    uint64_t kept;        /* newest that was durable before the last reset: those after it, … */
    uint64_t refused;     /* … up to this one, were not kept and will never be written */
    bool stopping;        /* a clean stop is under way: nothing changes any more */
    bool full;            /* the disk is full: submissions are refused */
    bool away;            /* the store is out of reach: nothing is looked up, nothing new taken */
    bool unread;          /* … and what was to be looked up in this round was not */
    bool shut;            /* somebody else may own the store: nobody is told anything */
    bool submits_refused; /* in this round */
    bool has_next_key;    /* the broker will have another key, for the welcome */
    key_public_t next_key;
    int64_t moved_until; /* mono: connections that end before did not end by themselves */
} base_t;

void base_init (base_t *self, const engine_config_t *config);
/* Names and wheels as at the start: a reset begins with it. The clocks go on. */
void base_reset (base_t *self);
/* How long the workers of a connection that ends now may be away. */
int64_t base_gone_grace_ms (const base_t *self);
/* Arms for a time of expiry; it may fire early after a way back of the wall clock. */
void base_arm_expiry (base_t *self, alarm_t *alarm, int64_t expires_at);
/* The clock of the coarse wheel, which never goes back. */
int64_t base_expiry_turn_ms (const base_t *self);
/* Batches up to this one were applied and are not kept (A21): they count as durable, so that
 * nothing waits for them, and as written once everything is written that was kept. */
void base_refuse (base_t *self, uint64_t upto);
/* The store says that it has written up to this batch. */
void base_written (base_t *self, uint64_t batch);
void base_free (base_t *self);

#endif
