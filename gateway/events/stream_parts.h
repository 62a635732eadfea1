/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A stream as its files see it: what it costs and writes, and its exchange (stream_open.c), the hub
 * that it reads (hub.c), and the flow of its own that it catches up by (catch_up.c). */
#ifndef TASKMQ_GATEWAY_EVENTS_STREAM_PARTS_H
#define TASKMQ_GATEWAY_EVENTS_STREAM_PARTS_H

#include "events/ring.h"
#include "events/stream.h"

enum { CURSOR_SIZE = 48 };

typedef enum stage {
    STAGE_WAITING, /* for its turn to catch up */
    STAGE_OWN,     /* with a flow of its own */
    STAGE_JOINED   /* a reader of a hub */
} stage_t;

struct stream {
    stream_t *next; /* in the hub's list, or of those that wait */
    stream_t *previous;
    streams_t *all;
    exchange_t *exchange;
    stream_options_t options;
    void *kept; /* what the options point to */
    void (*kept_free) (void *kept);
    char *key;
    filter_use_t *filter;
    link_t *link;
    stage_t stage;
    bool began;     /* the answer */
    bool catching;  /* it has a turn to catch up */
    bool paused;    /* it gave its turn up until its client reads */
    bool caught_up; /* its flow has told so */
    bool blocked;   /* its client is owed as much as may be */
    bool held;      /* its principal has spent what may be */
    flow_t *flow;
    uint64_t generation; /* of what was sent last, or of the cursor to begin with */
    uint64_t seq;
    bool has_cursor;
    bool ends;     /* the snapshot showed a task that has ended */
    bytes_t piece; /* of its flow, and not sent yet */
    ring_piece_t about;
    hub_t *hub;
    uint64_t at; /* in the hub's ring */
    uint64_t live_at;
    bool told_live;
};

struct hub {
    hub_t *next;
    streams_t *all;
    char *key;
    link_t *link;
    flow_t *flow;
    ring_t ring;
    stream_t *readers;
    stream_t *walk; /* the next one of a round through them; it may end meanwhile */
    bool busy;      /* with its readers: it is freed behind that */
    bool held;      /* all its readers have spent what may be */
};

typedef enum step { STEP_MORE, STEP_WAIT, STEP_GONE } step_t;

/* What it costs: each reader of a hub pays a part of what the hub computes. Who has spent what may
 * be waits by himself, and the others go on. */

bool stream_may_go_on (const stream_t *self);
void stream_pay (const stream_t *self);

/* What it writes. */

/* False: it has ended. */
bool stream_begin (stream_t *self);
/* Frees the text. False: there is no room. */
bool stream_write (const stream_t *self, bytes_t *text);
/* The broker has refused it, or its flow: it ends. */
void stream_fail (stream_t *self, int code, const tmq_error_t *error);
/* Sends "live", once. False: there is no room. */
bool stream_tell_live (stream_t *self);
/* That piece was written. */
void stream_went_out (stream_t *self, const ring_piece_t *piece);
/* Is it the last one? */
bool stream_is_end (const stream_t *self, const ring_piece_t *piece);

/* Hubs. */

/* NULL: its filter has none. */
hub_t *hub_find (const streams_t *all, const stream_t *stream);
/* Of the flow of a stream. NULL: there are too many, or memory is exhausted. */
hub_t *hub_make (stream_t *self);
void hub_join (hub_t *self, stream_t *stream, uint64_t at);
/* Frees a hub without readers. */
void hub_leave (hub_t *hub, stream_t *self);
/* Sends a reader what the hub has for it. */
void hub_serve (stream_t *reader);

/* Flows of one stream. */

/* Opens one, or waits for a turn to. May end the stream. */
void stream_catch_up (stream_t *self);
void stream_own_ready (void *context);
/* Its client has read: it takes up the turn that it gave up. */
void stream_catch_on (stream_t *self);
void stream_end_catching (stream_t *self);
void stream_leave_waiting (stream_t *self);
/* Those whose turn it is now. */
void streams_wake (streams_t *all);

#endif
