/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The simulated store's answers. Everything is read from the lagging tables, but look-ups behind a
 * start for want of space. */
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "core/data/turn.h"
#include "ids.h"
#include "model.h"

/* Point look-ups. */

static void load_dedup (const model_side_t *seen, lookup_t *key)
{
    MODEL_EACH_ROW (i, seen)
    {
        const record_t *record = seen->rows[i].record;
        if (record != NULL && strcmp (record->dedup_key, key->dedup_key) == 0 &&
            strcmp (record->ns, key->ns) == 0 && strcmp (record->owner, key->owner) == 0) {
            key->record = model_copy (record, key->bodies);
            return;
        }
    }
}

static void load_one (const model_side_t *seen, lookup_t *key)
{
    key->record = NULL;
    key->tombstone = TMQ_OK;
    key->attempt_row = NULL;
    if (key->kind == LOOKUP_DEDUP) {
        load_dedup (seen, key);
        return;
    }
    if (key->kind == LOOKUP_ROW) {
        row_list_answer (&seen->kind_rows, key);
        return;
    }
    uint32_t index = model_index (key->id.bytes);
    if (index >= MODEL_ROWS_MAX) {
        return;
    }
    const model_row_t *row = &seen->rows[index];
    if (key->kind == LOOKUP_ATTEMPT) {
        for (size_t i = 0; i < row->attempts_count; i++) {
            if (row->attempts[i].attempt == key->attempt) {
                free (key->attempt_row);
                key->attempt_row = attempt_new (&row->attempts[i]);
            }
        }
    } else if (row->record != NULL) {
        if (strcmp (row->record->ns, key->ns) == 0) {
            key->record = model_copy (row->record, key->bodies);
        }
    } else if (row->tombstone != TMQ_OK && strcmp (row->ns, key->ns) == 0) {
        lookup_take_tombstone (key, &(removal_t){.code = row->tombstone,
                                                 .at = row->tombstone_at,
                                                 .why = row->tombstone_why,
                                                 .owner = row->owner,
                                                 .queue = row->queue});
    }
}

void model_load (const model_t *self, lookup_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        load_one (model_seen (self), &keys[i]);
    }
}

void model_due (const model_t *self, int64_t wall_ms, size_t limit, due_t *out)
{
    out->records = calloc (limit, sizeof (record_t *));
    for (size_t i = 0; i < MODEL_ROWS_MAX && out->count < limit; i++) {
        const record_t *record = self->tables.rows[i].record;
        if (record != NULL && record->expires_at > 0 && record->expires_at <= wall_ms &&
            record->status >= TMQ_STATUS_COMPLETED && !record->leased) {
            out->records[out->count++] = model_copy (record, false);
        }
    }
    row_list_due (&self->tables.kind_rows, 0, wall_ms, limit, out);
}

/* Reads in pages. */

static bool is_part (const filter_t *filter, const record_t *record)
{
    extra_t *extra = record->extra == NULL ? NULL : extra_new (record->extra);
    bool found = filter->parents_count == 0;
    for (size_t i = 0; extra != NULL && i < filter->parents_count; i++) {
        found = found || (extra->fields->parent.len == sizeof (tmq_id_t) &&
                          memcmp (extra->fields->parent.data, filter->parents[i].bytes,
                                  sizeof (tmq_id_t)) == 0);
    }
    extra_free (extra);
    return found;
}

/* What some turn of the task told. */
static bool has_mark (const model_side_t *side, const record_t *record, const label_t *mark)
{
    row_key_t key;
    turn_t turn;
    turn_key (&key, record->ns, record->id.bytes, 0);
    for (size_t i = 0; i < side->kind_rows.count; i++) {
        const row_t *row = &side->kind_rows.rows[i];
        if (row->kind == ROW_KIND_TURN && !row->gone && buf_length (row->key) > key.length &&
            memcmp (buf_bytes (row->key), key.bytes, key.length) == 0 &&
            turn_unpack (&turn, row->body) && turn_has_mark (&turn, mark)) {
            return true;
        }
    }
    return false;
}

static bool has_labels (const model_side_t *side, const filter_t *filter, const record_t *record)
{
    for (size_t i = 0; i < filter->labels_count; i++) {
        const label_t *label = &filter->labels[i];
        if (label_is_mark (label) ? !has_mark (side, record, label)
                                  : !record_has_label (record, label)) {
            return false;
        }
    }
    return true;
}

bool model_matches (const model_side_t *side, const filter_t *filter, const record_t *record)
{
    bool owner = filter->owners_count == 0;
    for (size_t i = 0; i < filter->owners_count; i++) {
        owner = owner || strcmp (filter->owners[i], record->owner) == 0;
    }
    bool queue = filter->queues_count == 0;
    for (size_t i = 0; i < filter->queues_count; i++) {
        queue = queue || strcmp (filter->queues[i], record->queue) == 0;
    }
    bool status = filter->statuses_count == 0;
    for (size_t i = 0; i < filter->statuses_count; i++) {
        status = status || filter->statuses[i] == record->status;
    }
    bool session = filter->sessions_count == 0;
    for (size_t i = 0; i < filter->sessions_count; i++) {
        session = session || strcmp (filter->sessions[i], record->session) == 0;
    }
    return owner && queue && status && session && strcmp (filter->ns, record->ns) == 0 &&
           (filter->created_since == 0 || record->created_at >= filter->created_since) &&
           (filter->created_until == 0 || record->created_at < filter->created_until) &&
           filter_sees (filter, record->queue, record->owner) && is_part (filter, record) &&
           has_labels (side, filter, record);
}

bool model_has_number (const model_side_t *side, const char *ns, int64_t number)
{
    MODEL_EACH_ROW (i, side)
    {
        const record_t *record = side->rows[i].record;
        if (record != NULL && record->number == number && strcmp (record->ns, ns) == 0) {
            return true;
        }
    }
    return false;
}

static int newest_first (const void *a, const void *b)
{
    const record_t *const *left = a;
    const record_t *const *right = b;
    return ((*left)->number < (*right)->number) - ((*left)->number > (*right)->number);
}

/* The newest of what was found, as many as a page has. */
static void give_newest (read_t *read, const record_t **found, size_t count)
{
    qsort (found, count, sizeof *found, newest_first);
    read->more = count > read->limit;
    count = read->more ? read->limit : count;
    read->records = calloc (count + 1, sizeof *read->records);
    read->records_count = count;
    for (size_t i = 0; i < count; i++) {
        read->records[i] = model_copy (found[i], false);
    }
}

static void read_lasting (const model_t *self, read_t *read)
{
    const record_t **found = calloc (MODEL_ROWS_MAX, sizeof *found);
    size_t count = 0;
    MODEL_EACH_ROW (i, &self->tables)
    {
        const record_t *record = self->tables.rows[i].record;
        if (record != NULL && record_is_lasting (record) &&
            strcmp (record->ns, read->filter.ns) == 0 &&
            (read->before_number == 0 || record->number < read->before_number)) {
            found[count++] = record;
        }
    }
    give_newest (read, found, count);
    free (found);
}

static void read_list (const model_t *self, read_t *read)
{
    const record_t **found = calloc (MODEL_ROWS_MAX, sizeof *found);
    size_t count = 0;
    MODEL_EACH_ROW (i, &self->tables)
    {
        const record_t *record = self->tables.rows[i].record;
        if (record != NULL && model_matches (&self->tables, &read->filter, record) &&
            (read->before_number == 0 || record->number < read->before_number)) {
            found[count++] = record;
        }
    }
    if (read->kind == READ_COUNT) {
        read->count = count;
    } else {
        give_newest (read, found, count);
    }
    free (found);
}

static void read_resolve (const model_t *self, read_t *read)
{
    MODEL_EACH_ROW (i, &self->tables)
    {
        const record_t *record = self->tables.rows[i].record;
        if (record != NULL && strcmp (record->ns, read->filter.ns) == 0 &&
            id_ends_with (&record->id, read->suffix) && read->count < 2 &&
            filter_sees (&read->filter, record->queue, record->owner)) {
            read->id = record->id;
            read->count++;
        }
    }
}

static void read_events (const model_log_t *log, read_t *read)
{
    read->first_seq = log->events_count > 0 ? 1 : 0;
    read->last_seq_seen = log->events_count;
    read->blocks = calloc (log->blocks_count + 1, sizeof *read->blocks);
    size_t bytes = 0;
    for (size_t i = 0; i < log->blocks_count; i++) {
        const event_block_t *block = &log->blocks[i];
        if (block->first_seq + block->count - 1 <= read->after_seq) {
            continue;
        }
        if (read->blocks_count > 0 && bytes + buf_length (block->list) > read->limit) {
            read->more = true;
            return;
        }
        bytes += buf_length (block->list);
        event_block_t *copy = &read->blocks[read->blocks_count++];
        *copy = *block;
        copy->ns = strdup (block->ns);
        copy->list = buf_keep (block->list);
    }
}

static void read_history (const model_log_t *log, read_t *read)
{
    Taskmq__Event **chain = calloc (read->limit + 1, sizeof *chain);
    size_t count = 0;
    uint64_t seq = read->last_seq;
    while (read->before_seq > 0 && seq >= read->before_seq && seq <= log->events_count) {
        seq = log->events[seq - 1]->previous_seq;
    }
    while (seq > 0 && seq <= log->events_count && count < read->limit) {
        Taskmq__Event event = *log->events[seq - 1];
        chain[count] = malloc (sizeof event);
        *chain[count++] = event;
        seq = event.previous_seq;
    }
    Taskmq__EventList list = TASKMQ__EVENT_LIST__INIT;
    for (size_t i = 0; i < count / 2; i++) {
        Taskmq__Event *other = chain[i];
        chain[i] = chain[count - 1 - i];
        chain[count - 1 - i] = other;
    }
    list.events = chain;
    list.n_events = count;
    read->before_seq = seq > 0 ? seq + 1 : 0;
    read->list = buf_new_uninitialised (taskmq__event_list__get_packed_size (&list));
    taskmq__event_list__pack (&list, buf_mutable (read->list));
    for (size_t i = 0; i < count; i++) {
        free (chain[i]);
    }
    free (chain);
}

static void read_since (const model_log_t *log, read_t *read)
{
    read->seq = log->events_count;
    for (size_t i = 0; i < log->events_count; i++) {
        if ((int64_t) log->events[i]->at >= read->since_ms) {
            read->seq = i;
            return;
        }
    }
}

static void read_attempts (const model_t *self, read_t *read)
{
    const model_row_t *row = &self->tables.rows[model_index (read->id.bytes)];
    read->attempts = calloc (row->attempts_count + 1, sizeof *read->attempts);
    for (size_t i = 0; i < row->attempts_count; i++) {
        if (row->attempts[i].attempt <= read->after_attempt) {
            continue;
        }
        if (read->attempts_count == read->limit) {
            read->more = true;
            return;
        }
        read->attempts[read->attempts_count++] = row->attempts[i];
    }
}

void model_read (const model_t *self, read_t *read)
{
    const model_log_t *log = model_log (&self->tables, read->filter.ns);
    read->written = self->written;
    switch (read->kind) {
    case READ_LIST:
    case READ_COUNT: read_list (self, read); break;
    case READ_RESOLVE: read_resolve (self, read); break;
    case READ_EVENTS: read_events (log, read); break;
    case READ_HISTORY: read_history (log, read); break;
    case READ_SINCE: read_since (log, read); break;
    case READ_EXPORT:
    case READ_BLOCKS:
    case READ_STANDING:
    case READ_PICK:
    case READ_WHOLE: break; /* the exporter's and the index's; the engine never asks for them */
    case READ_LASTING: read_lasting (self, read); break;
    case READ_SEARCH: break; /* here is no index, so nothing is found */
    case READ_ROWS: row_list_page (&self->tables.kind_rows, read); break;
    case READ_ATTEMPTS: read_attempts (self, read); break;
    }
}
