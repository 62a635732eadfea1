/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who works here and who did: one entry for each worker that registered, kept as a row until a week
 * after its end. What a worker says of itself is told to people and decides nothing, but for this:
 * one that was drained gets no task any more, wherever it registers again. */
#ifndef TASKMQ_CORE_ROSTER_H
#define TASKMQ_CORE_ROSTER_H

#include "core/data/row.h"
#include "core/match/match.h"
#include "taskmq.pb-c.h"

enum {
    ROSTER_WRITE_MS = 60000, /* from one row of a worker that works to the next */
    /* Workers that have ended; beyond it the first of them are forgotten, drained ones last. */
    ROSTER_GONE_MAX = 10000,
    ROSTER_GONE_MS = 7 * 24 * 3600 * 1000
};

typedef struct roster_entry {
    node_t node; /* in the roster, the newest first */
    node_t gone; /* in the list of those that have ended, in their order */
    uint32_t hash;
    uint64_t no; /* a cursor of lists; of this start alone */
    uint8_t id[16];
    name_t *ns;
    name_t *name;
    name_t *identity; /* whose it is */
    buf_t *about;     /* a packed WorkerAbout: what its registration said */
    int64_t started_at;
    int64_t heard_at; /* of one that is not connected; wall, as the others */
    int64_t ended_at; /* 0: it has not */
    int64_t drained_at;
    name_t *drained_by;
    worker_tally_t tally;
    uint64_t told; /* sum of the tally in the newest row */
    bool has_exit;
    int32_t exit_status;
    uint32_t exit_signal;
    alarm_t alarm;
} roster_entry_t;

/* The entry of a worker; NULL: it never registered, or is forgotten. */
roster_entry_t *roster_find (const match_t *self, const char *ns, const uint8_t *id);
/* What it says of itself finds a place; those that have ended give it. */
bool roster_has_room (match_t *self, const char *ns, const Taskmq__Register *said);
/* A worker that a lease tells of: its outcomes are counted. */
void roster_know (match_t *self, worker_t *worker);
/* It registered, and says this of itself. */
void roster_register (match_t *self, worker_t *worker, const Taskmq__Register *said);
/* How its program ended, if leave told. */
void roster_leave (match_t *self, const worker_t *worker, const Taskmq__Leave *said);
/* Its connection ended just now. */
void roster_part (match_t *self, const worker_t *worker);
/* No task is given to it any more. False: that was so before. */
bool roster_drain (match_t *self, roster_entry_t *entry, const char *by);
/* The worker is freed if it has neither a link nor a lease; then that was its end. */
void roster_release (match_t *self, worker_t *worker);
void roster_alarm (match_t *self, roster_entry_t *entry);
/* A row of a start, or that one is gone. */
void roster_load (match_t *self, const row_t *row);
void roster_clear (match_t *self);

/* A WorkerInfo as this field of an enclosing message. */
void roster_pack (const match_t *self, bytes_t *out, uint32_t field, const roster_entry_t *entry);
/* Of a drained worker. Lasts as long as it registers on a link. */
void roster_tell_drained (match_t *self, const worker_t *worker, const char *by);

#endif
