/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/debts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"

typedef struct debt {
    node_t node;
    row_kind_t kind; /* of the rows that are left, … */
    row_kind_t note; /* … and of the row that says so */
    uint64_t left;
    size_t key_bytes;
    uint8_t key[TMQ_NAME_LENGTH_MAX + 1 + sizeof (tmq_id_t)]; /* what keys of them begin with */
} debt_t;

static row_kind_t note_of (row_kind_t kind)
{
    return kind == ROW_KIND_TURN ? ROW_KIND_TURNS_LEFT : ROW_KIND_ARTIFACTS_LEFT;
}

void debt_key (row_key_t *out, const char *ns, const uint8_t *id)
{
    out->length = 0;
    row_key_text (out, ns);
    row_key_bytes (out, id, sizeof (tmq_id_t));
}

static void owe (tasks_t *self, row_kind_t kind, const uint8_t *key, size_t key_bytes,
                 uint64_t count)
{
    debt_t *debt = memory_zero (1, sizeof (*debt));
    memcpy (debt->key, key, key_bytes);
    debt->key_bytes = key_bytes;
    debt->kind = kind;
    debt->note = note_of (kind);
    debt->left = count;
    list_push_back (&self->debts, &debt->node);
}

void debt_owe (tasks_t *self, row_kind_t kind, const record_t *record, uint64_t count)
{
    row_key_t key;
    row_key_t body = ROW_KEY_INIT;
    debt_key (&key, record->ns, record->id.bytes);
    row_key_number (&body, count);
    rows_put (self, row_make (note_of (kind), key.bytes, key.length, body.bytes, body.length));
    owe (self, kind, key.bytes, key.length, count);
}

bool debts_are_owed (const tasks_t *self)
{
    return !list_is_empty (&self->debts) && !self->base->stopping && !journal_is_overloaded (self);
}

void debts_run (tasks_t *self)
{
    size_t *left = &self->base->round.leftovers;
    while (*left > 0 && debts_are_owed (self)) {
        debt_t *debt = LIST_ITEM (list_first (&self->debts), debt_t, node);
        row_key_t key = ROW_KEY_INIT;
        row_key_bytes (&key, debt->key, debt->key_bytes);
        if (debt->left > 0) {
            row_key_number (&key, debt->left--);
            rows_put (self, row_make_gone (debt->kind, key.bytes, key.length));
        } else {
            rows_put (self, row_make_gone (debt->note, key.bytes, key.length));
            list_unlink (&debt->node);
            free (debt);
        }
        budget_take (left, 1);
        self->open.inputs++;
        journal_close_full (self);
    }
}

void debts_load (tasks_t *self, const row_t *row)
{
    row_kind_t kind = row->kind == ROW_KIND_TURNS_LEFT ? ROW_KIND_TURN : ROW_KIND_ARTIFACT;
    if (!row->gone && buf_length (row->key) <= sizeof (((debt_t *) NULL)->key))
        owe (self, kind, buf_bytes (row->key), buf_length (row->key), row_number (row->body));
}

void debts_clear (tasks_t *self)
{
    for (node_t *node = list_pop_front (&self->debts); node != NULL;
         node = list_pop_front (&self->debts))
        free (LIST_ITEM (node, debt_t, node));
}
