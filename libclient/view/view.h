/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks and events of the library as the views that proto's JSON shows: what taskctl and the
 * gateway share. Not a part of the library. Nothing is copied; nothing allocates. */
#ifndef TASKMQ_VIEW_VIEW_H
#define TASKMQ_VIEW_VIEW_H

#include "json.h"
#include "taskmq.h"

/* The arrays that a view points to. */
typedef struct view_room {
    label_view_t labels[TMQ_LABELS_MAX];
    label_view_t needs[TMQ_NEEDS_MAX];
    tmq_id_t depends_on[TMQ_AFTER_MAX];
} view_room_t;

void view_task (task_view_t *out, view_room_t *room, const tmq_task_t *task);
/* Of an item that is an event or a notice. cursor may be NULL. */
void view_event (event_view_t *out, view_room_t *room, const tmq_event_t *event,
                 const char *cursor);

void view_write_why (json_writer_t *writer, const tmq_explanation_t *why);
void view_write_question (json_writer_t *writer, const tmq_question_t *question);
void view_write_worker (json_writer_t *writer, const tmq_worker_info_t *worker);
/* What is to be said about it in a word: idle, working, draining, away or ended. */
const char *view_worker_state (const tmq_worker_info_t *worker);
/* beside: writes further members of a late success that is kept; NULL: there are none. */
typedef void view_beside_t (json_writer_t *writer, const tmq_attempt_info_t *attempt,
                            const void *context);
void view_write_attempt (json_writer_t *writer, const tmq_attempt_info_t *attempt,
                         view_beside_t *beside, const void *context);
/* ended: how many of its tasks that have ended are kept; NULL: it was not asked. */
void view_write_queue (json_writer_t *writer, const tmq_queue_t *queue, const uint64_t *ended);
/* What holds it back, "paused cap"; "open" for nothing: out. */
const char *view_queue_state (char *out, size_t size, const tmq_queue_t *queue);
/* What a queue's fair key is: a word of TMQ_WEIGHT_OF_MAP. */
const char *view_weight_text (uint64_t number);

#endif
