/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the broker keeps of one task, with as many of its parts as are asked for. */
#ifndef TASKCTL_RECORD_H
#define TASKCTL_RECORD_H

#include "json.h"
#include "line/app.h"
#include "screen/attempts.h"
#include "screen/turns.h"
#include "verbs/tree.h"

/* What is asked for beside the task and its result; several are added. */
typedef enum record_part {
    RECORD_PAYLOAD = 1,
    RECORD_EVENTS = 2,
    RECORD_ATTEMPTS = 4,
    RECORD_TURNS = 8,
    RECORD_FILES = 16, /* that the turns touched */
    RECORD_EXACT = 32, /* what an import needs beside the rest */
    RECORD_ARTIFACTS = 64,
    RECORD_BODIES = 128 /* of artifacts and late successes, as far as a line takes them */
} record_part_t;

typedef struct record {
    unsigned wants; /* of record_part_t */
    tmq_task_t *task;
    tmq_task_t *payload;
    tmq_event_t **events; /* oldest first; they live in event_pages */
    size_t events_count;
    tmq_event_list_t **event_pages;
    size_t event_pages_count;
    parts_t parts;
    attempts_view_t attempts;
    turns_view_t turns;
    tmq_artifact_list_t *artifacts; /* NULL: none, or not asked for */
    shown_body_t *artifact_bodies;  /* one each; NULL: not asked for */
    size_t bodies_missing;          /* of them, that the broker does not have any more */
} record_t;

/* Asks for them, one after the other. Returns TMQ_OK or the code in error. To be cleared in any
 * case. */
int record_load (record_t *out, app_t *app, const tmq_id_t *id, unsigned wants, tmq_error_t *error);
void record_clear (record_t *self);

/* One object, as a value of what is being written; a part that was not asked for is absent. */
void record_write (json_writer_t *writer, app_t *app, const record_t *self);

#endif
