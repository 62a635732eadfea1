/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Events as they are made: their numbers, and the block of the open batch. */
#ifndef TASKMQ_CORE_HISTORY_H
#define TASKMQ_CORE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "core/base/base.h"
#include "core/base/list.h"
#include "core/data/batch.h"
#include "core/data/lookup.h"
#include "core/wire/pack.h"

/* The events of one namespace. */
typedef struct event_log {
    const char *name;     /* of the namespace; its own */
    uint64_t base_seq;    /* the history begins behind it: nothing up to it is kept anywhere */
    uint64_t last_seq;    /* provisional ones included */
    uint64_t durable_seq; /* what subscribers may see */
    node_t opened;        /* in the list of those with events in the open batch */
    bytes_t open;         /* packed EventList of the open batch */
    uint32_t open_count;
    bool open_mixed;           /* some of them are of no task */
    node_t blocks;             /* the ring's, oldest first */
    struct audience *audience; /* who listens (streams/); NULL: nobody */
} event_log_t;

typedef struct history {
    base_t *base;
    uint64_t generation;
    uint64_t epoch;
    uint64_t last_pos;  /* broker-wide number of the newest event in a closed batch */
    uint32_t logs_used; /* with events */
    uint64_t
        floor_seq; /* no namespace that was forgotten had a later one: new logs begin behind it */
    node_t opened; /* logs with events in the open batch */
    node_t ring;   /* blocks of all namespaces, oldest first */
    size_t ring_bytes;
} history_t;

void history_init (history_t *self, base_t *base);
/* After a reset, too: what is durable by then has its places, and what was dropped has none. */
void history_boot (history_t *self, const boot_t *boot);
void history_reset (history_t *self); /* forgets the ring and the open events */

/* A new one, behind all that may have had its name. */
void event_log_init (event_log_t *self, const char *name, uint64_t floor_seq);
void event_log_clear (event_log_t *self);
/* The log goes on behind last_seq. */
void history_restore (history_t *self, event_log_t *log, uint64_t last_seq);

/* There are, or may be, events of it. */
bool event_log_is_used (const event_log_t *self);
/* The store has forgotten all up to upto_seq, and nobody needs it. */
void history_forget (history_t *self, event_log_t *log, uint64_t upto_seq);
/* Numbers up to this one were given in namespaces that are forgotten. */
void history_raise_floor (history_t *self, uint64_t seq);

/* Numbers the event, dates it and adds it to the open batch. */
void history_add (history_t *self, event_log_t *log, event_t *event);
/* Closes the open events: hands them to the batch and to the ring. */
void history_close (history_t *self, batch_t *batch);

#endif
