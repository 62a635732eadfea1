/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "export/open_questions.h"

#include <stdlib.h>

#include "core/base/memory.h"

enum { QUESTIONS_MAX = 1000 }; /* more than a task may ask in its life */

/* The key of a row is namespace, task, key of the question: without a NUL behind the last. */
static char *key_of (const row_t *row, size_t prefix)
{
    size_t length = buf_length (row->key) - prefix;
    char *key = memory_alloc (length + 1);
    memcpy (key, buf_bytes (row->key) + prefix, length);
    key[length] = '\0';
    return key;
}

static void take (open_questions_t *self, const record_t *record, const row_t *row, size_t prefix)
{
    Taskmq__QuestionRow *stored =
        taskmq__question_row__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
    if (stored == NULL || stored->answer_number > 0) {
        if (stored != NULL)
            taskmq__question_row__free_unpacked (stored, NULL);
        return;
    }
    self->rows[self->count] = stored;
    self->views[self->count++] = (question_view_t){.task_id = record->id,
                                                   .key = key_of (row, prefix),
                                                   .queue = record->queue,
                                                   .session = record->session,
                                                   .worker = stored->worker,
                                                   .number = stored->number,
                                                   .attempt = stored->attempt,
                                                   .asked_at = (int64_t) stored->asked_at,
                                                   .deadline = (int64_t) stored->deadline,
                                                   .request = stored->request,
                                                   .has_default = stored->has_default,
                                                   .default_is_text = stored->default_text,
                                                   .default_answer = stored->default_answer};
}

static int by_number (const void *a, const void *b)
{
    uint64_t left = ((const question_view_t *) a)->number;
    uint64_t right = ((const question_view_t *) b)->number;
    return (left > right) - (left < right);
}

bool open_questions_read (open_questions_t *out, store_reader_t *reader, const record_t *record)
{
    out->views = NULL;
    out->count = 0;
    out->rows = NULL;
    if (record->status != TMQ_STATUS_INPUT_REQUIRED)
        return true;
    row_key_t key = ROW_KEY_INIT;
    out->read = (read_t){0};
    row_key_text (&key, record->ns);
    row_key_bytes (&key, record->id.bytes, sizeof (record->id.bytes));
    buf_t *prefix = buf_new (key.bytes, key.length);
    read_t *read = &out->read;
    read->kind = READ_ROWS;
    read->row_kind = ROW_KIND_QUESTION;
    read->prefix = prefix;
    read->limit = QUESTIONS_MAX;
    bool good = store_reader_run (reader, read) == STORE_OK;
    buf_drop (prefix);
    out->views = memory_zero (read->rows_count, sizeof (*out->views));
    out->rows = memory_zero (read->rows_count, sizeof (*out->rows));
    if (!good)
        return false;
    for (size_t i = 0; i < read->rows_count; i++)
        take (out, record, &read->rows[i], key.length);
    qsort (out->views, out->count, sizeof (*out->views), by_number);
    return true;
}

void open_questions_clear (open_questions_t *self)
{
    if (self->rows == NULL)
        return;
    for (size_t i = 0; i < self->count; i++) {
        free ((char *) (uintptr_t) self->views[i].key);
        taskmq__question_row__free_unpacked (self->rows[i], NULL);
    }
    free (self->views);
    free (self->rows);
    read_clear (&self->read);
}
