/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The questions of a task that nobody has answered yet, as they are shown beside it. */
#ifndef TASKMQ_EXPORT_OPEN_QUESTIONS_H
#define TASKMQ_EXPORT_OPEN_QUESTIONS_H

#include "core/data/lookup.h"
#include "json.h"
#include "store/store.h"
#include "taskmq.pb-c.h"

typedef struct open_questions {
    question_view_t *views; /* in the order of asking; they borrow from the record, too */
    size_t count;
    Taskmq__QuestionRow **rows; /* NULL: the task waits for none, and nothing was read */
    read_t read;
} open_questions_t;

/* Reads those of the record's task, if it waits for input: those among the first 4 MiB of its
 * questions, by their keys. False: the read failed, which is in
 * out->read. Either way it is to be cleared. */
bool open_questions_read (open_questions_t *out, store_reader_t *reader, const record_t *record);
void open_questions_clear (open_questions_t *self);

#endif
