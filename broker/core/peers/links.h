/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who is at the other end: links, and what waits to leave for them. */
#ifndef TASKMQ_CORE_LINKS_H
#define TASKMQ_CORE_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "core/access/access.h"
#include "core/base/base.h"
#include "core/base/gate.h"
#include "core/base/list.h"
#include "core/base/map.h"
#include "core/data/buf.h"
#include "core/data/peer.h"
#include "taskmq_types.h"

/* What other rooms hang on a link is in lists of nodes here, or behind a pointer, so that it needs
 * none of their types. */
typedef struct link link_t;
typedef struct waiter waiter_t;

typedef enum item_kind {
    ITEM_REPLY = 1,
    ITEM_ASSIGNMENT,
    ITEM_CANCEL,
    ITEM_ANSWERS,
    ITEM_NOTICE
} item_kind_t;

/* A packed field of a BrokerMessage that waits for its batch, then for its turn. */
typedef struct item {
    node_t node; /* in the engine's held list, then in the link's ready list */
    link_t *link;
    uint64_t batch;
    item_kind_t kind;
    uint32_t attempt; /* of an assignment, with id */
    tmq_id_t id;
    buf_t *body;
    size_t bytes;
    uint8_t packed[];
} item_t;

/* A task that is imported in pieces. */
typedef struct import {
    node_t node;
    link_t *link;
    name_t *identity; /* who began it */
    tmq_id_t id;
    int64_t moved_ms; /* mono, of its newest piece */
    bytes_t bytes;    /* of the pieces so far */
} import_t;

struct link {
    peer_t peer;
    bool established;
    bool dead;              /* out of the table; kept while items or reads refer to it */
    bool silenced;          /* dead, and what is held for it is dropped too (not after a goodbye) */
    bool behind;            /* messages of it wait to be applied */
    bool knows_unavailable; /* it said so in its hello */
    gate_t gate;     /* why its workers get nothing new, and of some reasons its streams neither */
    uint64_t serial; /* counts hellos: a worker moves to newer links only */
    uint8_t token[16];
    struct space *space;
    name_t *identity;
    access_t access;         /* what it may do in its namespace */
    struct account *account; /* of its identity (tasks/account.h), or NULL */
    struct account *charged; /* … of whom it acts for just now (requests/behalf.h), or NULL */
    node_t of_account;
    int64_t heard_ms;    /* clocks_awake_ms, of its newest message */
    int64_t gone_due_ms; /* clocks_awake_ms, end of the grace after the hint (GATE_GONE) */
    alarm_t alarm;
    size_t references;   /* held items and reads */
    item_t *held_reply;  /* newest held item of answers, if any; further ones may join it */
    node_t ready;        /* items that may leave */
    size_t notices;      /* … of them */
    size_t unsent_bytes; /* of them, with their bodies */
    int64_t refused_ms;  /* mono: since then the transport refuses its messages; 0: it does not */
    node_t refused;      /* in the list of those whose messages the transport refused */
    node_t output;       /* in the engine's list of links that have something to send */
    node_t subscriptions;
    map_t subscriptions_by_id;
    node_t streams; /* subscriptions that have something to send */
    node_t workers;
    size_t workers_count;
    node_t stats;          /* requests for stats that are being answered */
    node_t errands;        /* requests that need a file */
    node_t reads;          /* page reads that wait for a reader, in their order */
    node_t page_reads;     /* … of its streams, that wait until fewer of their pages are held */
    node_t page_turn;      /* in the list of links that may have one more page */
    size_t pages;          /* of its streams: held, with readers, or among the reads */
    node_t paged;          /* subscriptions that hold one */
    node_t reading;        /* in the list of links whose turn it is to read */
    size_t reads_count;    /* of its requests, waiting or with readers, … */
    size_t searches_count; /* … of which these are searches */
    waiter_t *waiter;      /* its waits, or NULL */
    import_t *import;      /* the task that it imports in pieces; NULL: none */
};

typedef struct links {
    base_t *base;
    map_t by_peer;
    uint64_t hellos;
    size_t established;
    node_t held;         /* items, by batch */
    node_t outputs;      /* links that have something to send */
    node_t refused;      /* links whose messages the transport refused … */
    int64_t retry_at_ms; /* … that are tried again then (mono) */
    node_t spare_items;  /* places of items that left */
    size_t spare_items_count;
    node_t imports;   /* tasks that come in pieces, of all links: the one that stood still longest
                         is the first */
    bytes_t scratch;  /* one item while it is packed */
    bytes_t envelope; /* the message that is leaving */
} links_t;

void links_init (links_t *self, base_t *base);
void links_reset (links_t *self); /* every link is closed already */
void links_free (links_t *self);

#endif
