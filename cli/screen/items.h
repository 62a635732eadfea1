/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* JSON on stdout, by the one renderer of proto/json.h. */
#ifndef TASKCTL_ITEMS_H
#define TASKCTL_ITEMS_H

#include "json.h"
#include "line/app.h"

/* A stream of JSON objects: one alone, {"items":[…],"next":…}, or one a line, by the format. */
typedef struct items {
    const app_t *app;
    bytes_t bytes;
    json_writer_t writer;
    const char *fields; /* --fields; NULL: all */
    bool alone;         /* FORMAT_JSON: the one object is the document */
    size_t count;
} items_t;

void items_begin (items_t *self, const app_t *app, bool alone);
/* Between the two calls one value is written; the second sends it off. */
json_writer_t *items_open (items_t *self);
void items_close (items_t *self);
/* next: the cursor to go on with; NULL or empty: none. */
void items_end (items_t *self, const char *next);
/* True if the format is one of the JSON ones. */
bool app_wants_json (const app_t *app);

/* with_result: its body was asked for. */
void items_add_task (items_t *self, const tmq_task_t *task, bool with_result);
/* An item of a subscription, with its cursor. other_history: it is a gap, and what was before it
 * belongs to another history. */
void items_add_event (items_t *self, const tmq_event_t *event, bool other_history);
/* An event of a task's history as a value of what is being written. */
void write_event (json_writer_t *writer, const tmq_event_t *event);
/* A task as members of an object that is open. */
void write_task_members (json_writer_t *writer, const tmq_task_t *task, bool with_result);

#endif
