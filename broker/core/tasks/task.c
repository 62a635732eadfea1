/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of transitions, and the storage of live tasks. */
#include "core/tasks/task.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/flow.h"

/* THE table. */

enum { STATUS_COUNT = TMQ_STATUS_CANCELLED + 1 };

/* Rows are statuses, columns inputs; what does not stand here is refused (S1, S2). */
#define TO(STATUS, EVENT)                                                                          \
    {                                                                                              \
        TMQ_STATUS_##STATUS, TMQ_EVENT_##EVENT                                                     \
    }
static const transition_t TRANSITIONS[STATUS_COUNT][INPUT_COUNT] =
    {
        [TMQ_STATUS_NONE] =
            {
                [INPUT_SUBMIT] = TO (QUEUED, SUBMITTED),
                [INPUT_IMPORT] = TO (QUEUED, IMPORTED),
                [INPUT_IMPORT_ASKING] = TO (INPUT_REQUIRED, IMPORTED),
                [INPUT_IMPORT_COMPLETED] = TO (COMPLETED, IMPORTED),
                [INPUT_IMPORT_FAILED] = TO (FAILED, IMPORTED),
                [INPUT_IMPORT_CANCELLED] = TO (CANCELLED, IMPORTED),
            },
        [TMQ_STATUS_QUEUED] =
            {
                [INPUT_CLAIM] = TO (WORKING, CLAIMED),
                [INPUT_EXPIRE] = TO (FAILED, FAILED),
                [INPUT_DEPENDENCY] = TO (FAILED, FAILED),
                [INPUT_UNBLOCK] = TO (QUEUED, CHANGED),
                [INPUT_CANCEL] = TO (CANCELLED, CANCELLED),
                [INPUT_MISS_START] = TO (FAILED, FAILED),
                [INPUT_SET] = TO (QUEUED, CHANGED),
                [INPUT_LATE] = TO (QUEUED, LATE),
                [INPUT_ADOPT] = TO (COMPLETED, ADOPTED),
                /* The lease of the time before its cancel may still stand beside it. */
                [INPUT_CANCEL_ACK] = TO (QUEUED, CANCEL_ACKNOWLEDGED),
                [INPUT_RELEASE] = TO (QUEUED, RELEASED),
                [INPUT_LOSE] = TO (QUEUED, LEASE_LOST),
            },
        [TMQ_STATUS_WORKING] =
            {
                [INPUT_COMPLETE] = TO (COMPLETED, COMPLETED),
                [INPUT_FAIL] = TO (QUEUED, ATTEMPT_FAILED),
                [INPUT_FAIL_FINALLY] = TO (FAILED, FAILED),
                [INPUT_RELEASE] = TO (QUEUED, RELEASED),
                [INPUT_LOSE] = TO (QUEUED, LEASE_LOST),
                [INPUT_LOSE_FINALLY] = TO (FAILED, FAILED),
                [INPUT_CANCEL] = TO (CANCELLED, CANCELLED),
                [INPUT_CHANGE] = TO (WORKING, CHANGED),
                [INPUT_TURN] = TO (WORKING, TURN),
                [INPUT_ARTIFACT] = TO (WORKING, ARTIFACT),
                [INPUT_ASK] = TO (INPUT_REQUIRED, ASKED),
                [INPUT_SET] = TO (WORKING, CHANGED),
                [INPUT_LATE] = TO (WORKING, LATE),
                [INPUT_ADOPT] = TO (COMPLETED, ADOPTED),
            },
        [TMQ_STATUS_INPUT_REQUIRED] =
            {
                [INPUT_COMPLETE] = TO (COMPLETED, COMPLETED),
                /* The end of an attempt leaves the questions open (S22). */
                [INPUT_FAIL] = TO (INPUT_REQUIRED, ATTEMPT_FAILED),
                [INPUT_FAIL_FINALLY] = TO (FAILED, FAILED),
                [INPUT_RELEASE] = TO (INPUT_REQUIRED, RELEASED),
                [INPUT_LOSE] = TO (INPUT_REQUIRED, LEASE_LOST),
                [INPUT_CANCEL] = TO (CANCELLED, CANCELLED),
                [INPUT_CHANGE] = TO (INPUT_REQUIRED, CHANGED),
                [INPUT_TURN] = TO (INPUT_REQUIRED, TURN),
                [INPUT_ARTIFACT] = TO (INPUT_REQUIRED, ARTIFACT),
                [INPUT_ASK] = TO (INPUT_REQUIRED, ASKED),
                [INPUT_ANSWER_SOME] = TO (INPUT_REQUIRED, ANSWERED),
                [INPUT_ANSWER] = TO (WORKING, ANSWERED),
                [INPUT_ANSWER_FREE] = TO (QUEUED, ANSWERED),
                [INPUT_SET] = TO (INPUT_REQUIRED, CHANGED),
                [INPUT_LATE] = TO (INPUT_REQUIRED, LATE),
                [INPUT_ADOPT] = TO (COMPLETED, ADOPTED),
            },
        [TMQ_STATUS_COMPLETED] =
            {
                [INPUT_REMOVE] = TO (NONE, EXPIRED),
                [INPUT_PURGE] = TO (NONE, PURGED),
                [INPUT_SET] = TO (COMPLETED, CHANGED),
            },
        [TMQ_STATUS_FAILED] =
            {
                [INPUT_REMOVE] = TO (NONE, EXPIRED),
                [INPUT_PURGE] = TO (NONE, PURGED),
                [INPUT_SET] = TO (FAILED, CHANGED),
                [INPUT_LATE] = TO (FAILED, LATE),
                [INPUT_ADOPT] = TO (COMPLETED, ADOPTED),
                [INPUT_RETRY] = TO (QUEUED, RETRIED),
                [INPUT_RESUME] = TO (QUEUED, RESUMED),
            },
        [TMQ_STATUS_CANCELLED] =
            {
                /* The lease that may stand beside it (S5): its end is an event, not a change. */
                [INPUT_CANCEL_ACK] = TO (CANCELLED, CANCEL_ACKNOWLEDGED),
                [INPUT_RELEASE] = TO (CANCELLED, RELEASED),
                [INPUT_LOSE] = TO (CANCELLED, LEASE_LOST),
                [INPUT_REMOVE] = TO (NONE, EXPIRED),
                [INPUT_PURGE] = TO (NONE, PURGED),
                [INPUT_SET] = TO (CANCELLED, CHANGED),
                [INPUT_RETRY] = TO (QUEUED, RETRIED),
                [INPUT_RESUME] = TO (QUEUED, RESUMED),
            },
};
#undef TO

const transition_t *transition_find (tmq_status_t from, task_input_t input)
{
    assert ((unsigned) from < STATUS_COUNT && (unsigned) input < INPUT_COUNT);
    const transition_t *row = &TRANSITIONS[from][input];
    return row->event == TMQ_EVENT_NONE ? NULL : row;
}

/* What a million of them take matters (docs/ARCHITECTURE.md, A32). */
_Static_assert(sizeof (task_t) <= 256, "a queued task takes at most four cache lines");

/* Texts. */

static const char *text_next (const char **at)
{
    const char *text = *at;
    *at += strlen (text) + 1;
    return text;
}

void task_texts (const task_t *self, task_texts_t *out)
{
    if (self->texts == NULL) {
        out->method = out->content_type = out->dedup_key = out->meta = "";
        return;
    }
    const char *at = self->texts + sizeof (uint32_t);
    out->method = text_next (&at);
    out->content_type = text_next (&at);
    out->dedup_key = text_next (&at);
    out->meta = text_next (&at);
    for (size_t i = 0; i < self->labels_count; i++) {
        out->labels[i].key = text_next (&at);
        out->labels[i].value = text_next (&at);
    }
}

uint32_t task_texts_length (const task_t *self)
{
    uint32_t length = 0;
    if (self->texts != NULL)
        memcpy (&length, self->texts, sizeof (length));
    return length;
}

const char *task_dedup_key (const task_t *self)
{
    if (!self->has_dedup_key)
        return "";
    const char *at = self->texts + sizeof (uint32_t);
    text_next (&at);
    text_next (&at);
    return at;
}

static char *text_put (char *at, const char *text)
{
    size_t room = strlen (text) + 1;
    memcpy (at, text, room);
    return at + room;
}

size_t task_texts_bytes (const task_texts_t *texts, size_t labels_count)
{
    size_t room = strlen (texts->method) + strlen (texts->content_type) +
                  strlen (texts->dedup_key) + strlen (texts->meta);
    if (room == 0 && labels_count == 0)
        return 0;
    room += 4;
    for (size_t i = 0; i < labels_count; i++)
        room += strlen (texts->labels[i].key) + strlen (texts->labels[i].value) + 2;
    return room;
}

void task_set_texts (task_t *self, const task_texts_t *texts, size_t labels_count)
{
    assert (self->texts == NULL && labels_count <= TMQ_LABELS_MAX);
    size_t room = task_texts_bytes (texts, labels_count);
    if (room == 0)
        return;
    uint32_t length = (uint32_t) room;
    self->texts = memory_alloc (sizeof (length) + room);
    memcpy (self->texts, &length, sizeof (length));
    self->labels_count = (uint8_t) labels_count;
    self->has_dedup_key = texts->dedup_key[0] != '\0';
    char *at = self->texts + sizeof (length);
    at = text_put (at, texts->method);
    at = text_put (at, texts->content_type);
    at = text_put (at, texts->dedup_key);
    at = text_put (at, texts->meta);
    for (size_t i = 0; i < labels_count; i++) {
        at = text_put (at, texts->labels[i].key);
        at = text_put (at, texts->labels[i].value);
    }
}

void task_replace_texts (task_t *self, const task_texts_t *texts, size_t labels_count)
{
    char *old = self->texts;
    self->texts = NULL;
    self->labels_count = 0;
    task_set_texts (self, texts, labels_count);
    free (old);
}

/* Detail. */

void detail_set_text (char **place, const char *text)
{
    free (*place);
    *place = text == NULL || text[0] == '\0' ? NULL : memory_text (text);
}

/* Slab. */

enum {
    SLAB_CHUNK_TASKS = 1024,
    SPARE_DETAILS_MAX = 4096 /* kept for use again: 1.4 MiB */
};

void slab_init (slab_t *self)
{
    *self = (slab_t){0};
    list_init (&self->free);
    list_init (&self->details);
}

task_t *slab_take (slab_t *self)
{
    if (list_is_empty (&self->free)) {
        task_t *chunk = memory_alloc (SLAB_CHUNK_TASKS * sizeof (*chunk));
        self->chunks = memory_grow (self->chunks, &self->chunks_capacity, self->chunks_count,
                                    sizeof (task_t *));
        self->chunks[self->chunks_count++] = chunk;
        for (size_t i = 0; i < SLAB_CHUNK_TASKS; i++)
            list_push_back (&self->free, &chunk[i].place);
    }
    task_t *task = LIST_ITEM (list_pop_front (&self->free), task_t, place);
    *task = (task_t){0};
    self->used++;
    return task;
}

void slab_give (slab_t *self, task_t *task)
{
    list_push_front (&self->free, &task->place);
    self->used--;
}

void slab_free (slab_t *self)
{
    for (size_t i = 0; i < self->chunks_count; i++)
        free (self->chunks[i]);
    free (self->chunks);
    for (node_t *node = list_pop_front (&self->details); node != NULL;
         node = list_pop_front (&self->details))
        free (LIST_ITEM (node, detail_t, lazy));
    slab_init (self);
}

detail_t *task_detail (slab_t *slab, task_t *self)
{
    if (self->detail != NULL)
        return self->detail;
    node_t *node = list_pop_front (&slab->details);
    if (node == NULL) {
        self->detail = memory_alloc (sizeof (*self->detail));
    } else {
        self->detail = LIST_ITEM (node, detail_t, lazy);
        slab->details_count--;
    }
    *self->detail = (detail_t){.task = self};
    return self->detail;
}

static void detail_give (slab_t *slab, detail_t *detail)
{
    list_remove (&detail->noticed);
    flow_free (detail->flow);
    free (detail->pushed);
    free (detail->status_message);
    free (detail->progress_unit);
    free (detail->progress_message);
    free (detail->error_message);
    free (detail->error_data);
    buf_drop (detail->result);
    if (slab->details_count == SPARE_DETAILS_MAX) {
        free (detail);
        return;
    }
    list_push_front (&slab->details, &detail->lazy);
    slab->details_count++;
}

void task_clear (slab_t *slab, task_t *self)
{
    free (self->texts);
    self->texts = NULL;
    buf_drop (self->payload);
    self->payload = NULL;
    extra_free (self->extra);
    self->extra = NULL;
    if (self->detail != NULL)
        detail_give (slab, self->detail);
    self->detail = NULL;
}
