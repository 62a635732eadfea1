/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* The lines of events.jsonl. Each is one of a chain (chain.h) and says how far the events are told:
 *
 *     {"n":7,"pos":41,"kind":"submitted",…,"cursor":"GEN-SEQ","prev":…}   an event, as of watch
 *     {"n":8,"pos":60,"kind":"gap","from":42,"to":60,…,"prev":…}
 *     {"n":1,"pos":40,"kind":"anchor",…,"prev":…}                         first of each file
 *
 * pos is the broker-wide number of an event; of a gap the last one that is not there; of an anchor
 * the last one before the file. */
#ifndef TASKMQ_EXPORT_EVENT_LINE_H
#define TASKMQ_EXPORT_EVENT_LINE_H

#include "bytes.h"
#include "json.h"
#include "taskmq_types.h"

enum { EVENT_LINE_FORMAT = 1 };

/* Why a file begins. */
typedef enum event_anchor_why {
    EVENT_ANCHOR_BEGUN,    /* there was none before */
    EVENT_ANCHOR_TURNED,   /* the one before was full, or of another day */
    EVENT_ANCHOR_CHANGED,  /* … was taken away, damaged, or changed by hand */
    EVENT_ANCHOR_HISTORY,  /* the database has another history: a restore, another database */
    EVENT_ANCHOR_ROLLBACK, /* … since it had lost events, which an operator accepted */
} event_anchor_why_t;

typedef struct event_anchor {
    uint64_t generation; /* of the history whose events follow */
    uint64_t pos;
    event_anchor_why_t why;
    int64_t at;
    uint64_t before_generation; /* of the lines before; 0: there were none */
    uint64_t before_pos;
} event_anchor_t;

/* Members of a line, to be linked into the chain. */
void event_line_event (bytes_t *out, event_view_t *event, uint64_t pos, uint64_t generation);
void event_line_gap (bytes_t *out, uint64_t from, uint64_t to);
void event_line_anchor (bytes_t *out, const event_anchor_t *anchor);

/* What a line says of its place. */
typedef struct event_place {
    uint64_t pos;
    uint64_t generation; /* of an anchor; 0: it is none */
    int64_t at;          /* … and when it was written */
    uint64_t seq;        /* of an event; 0: it is none */
    tmq_id_t id;         /* of its task; zero: it has none */
    char ns[TMQ_NAME_LENGTH_MAX + 1];
} event_place_t;

/* False: it is none of ours. */
bool event_line_parse (event_place_t *out, const char *line, size_t length);

#endif
