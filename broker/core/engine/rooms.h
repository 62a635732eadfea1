/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The engine: all rooms of the core, and what belongs to the conductor. Only engine/ includes
 * it. */
#ifndef TASKMQ_CORE_ROOMS_H
#define TASKMQ_CORE_ROOMS_H

#include "core/engine/engine.h"
#include "core/requests/requests.h"

struct engine {
    base_t base;
    history_t history;
    tasks_t tasks;
    sessions_t sessions;
    links_t peers;
    reads_t reads;
    streams_t streams;
    match_t match;
    requests_t requests;

    /* The message that is leaving (output.c). */
    link_t *leaving;     /* to whom; NULL: nothing left yet */
    node_t left;         /* its items, until the next output */
    node_t left_streams; /* … or the subscriptions */
    buf_t *left_body;
    bool left_kept; /* it did not leave, and comes again */
    node_t
        denied; /* links that have more in the next round: the looks of this one were used up … */
    node_t spent; /* … by these, which come last */
};

/* follow.c: what every input begins and ends with. */
void input_begin (engine_t *self, now_t now);
void input_end (engine_t *self);
/* … and what follows from the transitions of one. */
void follow_facts (engine_t *self);

/* restore.c: removes a row that is gone by its time. */
void engine_end_row (engine_t *self, const row_t *row);

/* output.c. */
void output_forget_left (engine_t *self);
void output_notices (engine_t *self); /* tells of progress */
void output_clear (engine_t *self);

#endif
