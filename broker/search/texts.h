/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What of a task, and of a turn, is found by its text. */
#ifndef TASKMQ_SEARCH_TEXTS_H
#define TASKMQ_SEARCH_TEXTS_H

#include "core/data/turn.h"
#include "store/search.h"

/* A document with copies of its texts, made fit for an index. */
typedef struct texts {
    search_doc_t doc;
    char *owned[SEARCH_TEXTS];
} texts_t;

/* Payload and result, as far as they are text, method, messages of status and error. */
void texts_of_task (texts_t *out, const record_t *record);
/* Content, tool calls, tool log, agent and status. */
void texts_of_turn (texts_t *out, const record_t *record, const turn_t *turn);
void texts_clear (texts_t *self);

#endif
