/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/sessions/leaving.h"

#include <string.h>

#include "core/reads/jobs.h"
#include "core/sessions/items.h"
#include "core/sessions/values.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"

static const char ACTOR[] = "taskmqd";

/* What goes, in this order. */
static const row_kind_t KINDS[] = {ROW_KIND_VALUE, ROW_KIND_ITEM, ROW_KIND_BOX};
enum { KINDS_COUNT = sizeof (KINDS) / sizeof (KINDS[0]) };

/* The body of a row as it is now; NULL: it is gone already. */
static const buf_t *newest (const sessions_t *self, const row_t *row)
{
    const row_t *note =
        rows_find (self->tasks, row->kind, buf_bytes (row->key), buf_length (row->key));
    if (note == NULL)
        return row->body;
    return note->gone ? NULL : note->body;
}

static void drop_value (sessions_t *self, const row_t *row, const buf_t *body)
{
    char key[TMQ_ENTRY_NAME_BYTES_MAX + 1];
    size_t length;
    const char *begin = value_key_of (row->key, &length);
    value_t value;
    if (length >= sizeof (key) || !value_unpack (&value, body))
        return;
    memcpy (key, begin, length);
    key[length] = '\0';
    const value_name_t name = {self->emptied->space, session_text (self->emptied), key};
    value_remove (self, &name, ACTOR, &value);
}

static void drop_item (sessions_t *self, const row_t *row, const buf_t *body)
{
    const char *session = (const char *) buf_bytes (row->key);
    session += strlen (session) + 1; /* behind the namespace */
    const box_name_t name = {self->emptied->space, session, session + strlen (session) + 1};
    item_entry_t item;
    if (item_unpack (&item, body))
        item_drop (self, &name, &item, ACTOR);
}

static void drop (sessions_t *self, const row_t *row)
{
    const buf_t *body = newest (self, row);
    if (body == NULL)
        return;
    if (row->kind == ROW_KIND_VALUE)
        drop_value (self, row, body);
    else if (row->kind == ROW_KIND_ITEM)
        drop_item (self, row, body);
    else
        rows_put (self->tasks,
                  row_make_gone (row->kind, buf_bytes (row->key), buf_length (row->key)));
    self->tasks->open.inputs++;
    journal_close_full (self->tasks);
}

static void go_on_behind (sessions_t *self, buf_t *key)
{
    buf_drop (self->after);
    self->after = key == NULL ? NULL : buf_keep (key);
}

/* The next kind; behind the last one the session itself. */
static void next_kind (sessions_t *self)
{
    go_on_behind (self, NULL);
    if (++self->emptying < KINDS_COUNT)
        return;
    self->tasks->open.inputs++;
    session_remove (self->tasks, self->emptied, "removed");
    journal_close_full (self->tasks);
    self->emptied = NULL;
}

void leaving_swept (sessions_t *self, const read_job_t *job)
{
    const read_t *read = &job->read;
    self->reading = false;
    for (size_t i = 0; i < read->rows_count; i++)
        drop (self, &read->rows[i]);
    if (read->rows_count > 0)
        go_on_behind (self, read->rows[read->rows_count - 1].key);
    if (!read->more || read->error != 0) /* what cannot be read can be found by nobody */
        next_kind (self);
}

static void begin (sessions_t *self, session_t *session)
{
    self->emptied = session;
    self->emptying = 0;
    self->need = journal_batch (self->tasks);
    go_on_behind (self, NULL);
}

void leaving_run (sessions_t *self)
{
    const node_t *leaving = &self->tasks->sessions_leaving;
    if (self->reading || self->base->stopping || journal_is_overloaded (self->tasks))
        return;
    if (self->emptied == NULL && list_is_empty (leaving))
        return;
    if (self->emptied == NULL)
        begin (self, LIST_ITEM (list_first (leaving), session_t, of_tasks));
    row_key_t prefix;
    const char *ns = self->emptied->space->name;
    read_job_t *job = job_for_engine (self->reads, ns, READ_ROWS, self->need);
    value_row_key (&prefix, ns, session_text (self->emptied), NULL); /* all three begin so */
    job->prefix = buf_new (prefix.bytes, prefix.length);
    job->after = self->after == NULL ? NULL : buf_keep (self->after);
    job->read.row_kind = KINDS[self->emptying];
    job->read.prefix = job->prefix;
    job->read.after = job->after;
    job->read.limit = TMQ_SWEEP_ITEMS_MAX;
    self->reading = true;
}
