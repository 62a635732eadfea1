/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The simulated store. A batch that breaks the contract (a gap in the numbers, an unknown task) is
 * remembered in `broken` and reported by the checker; the model itself goes on. */
#include "model.h"
#include "ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const model_namespaces[MODEL_NAMESPACES] = {"default", "other", "shared"};

/* Ids of tasks that schedules made in this run: there is one world at a time. */
static uint8_t fired[MODEL_FIRED_MAX][16];
static uint32_t fired_count;

static uint32_t fired_index (const uint8_t id[16])
{
    uint32_t place = 0;
    while (place < fired_count && memcmp (fired[place], id, 16) != 0) {
        place++;
    }
    if (place == fired_count && place < MODEL_FIRED_MAX) {
        memcpy (fired[fired_count++], id, 16);
    }
    return MODEL_TASKS_MAX + place;
}

uint32_t model_index (const uint8_t id[16])
{
    uint32_t index =
        (uint32_t) id[12] << 24 | (uint32_t) id[13] << 16 | (uint32_t) id[14] << 8 | id[15];
    return index < MODEL_TASKS_MAX ? index : fired_index (id);
}

static void broken (model_t *self, const char *what, const char *detail, uint64_t a, uint64_t b)
{
    if (self->broken[0] == '\0') {
        snprintf (self->broken, sizeof self->broken, "batch: %s %s (%llu, %llu)", what, detail,
                  (unsigned long long) a, (unsigned long long) b);
    }
}

/* One side. */

static void side_init (model_side_t *side)
{
    for (size_t i = 0; i < MODEL_NAMESPACES; i++) {
        side->logs[i].ns = model_namespaces[i];
    }
}

static void side_clear (model_side_t *side)
{
    for (size_t i = 0; i < MODEL_ROWS_MAX; i++) {
        record_free (side->rows[i].record);
        free (side->rows[i].attempts);
    }
    row_list_free (&side->kind_rows);
    for (size_t i = 0; i < MODEL_NAMESPACES; i++) {
        model_log_t *log = &side->logs[i];
        for (size_t k = 0; k < log->blocks_count; k++) {
            buf_drop (log->blocks[k].list);
            taskmq__event_list__free_unpacked (log->lists[k], NULL);
        }
        free (log->blocks);
        free (log->lists);
        free (log->events);
        free (log->positions);
    }
}

const model_log_t *model_log (const model_side_t *side, const char *ns)
{
    for (size_t i = 0; i < MODEL_NAMESPACES; i++) {
        if (strcmp (side->logs[i].ns, ns) == 0) {
            return &side->logs[i];
        }
    }
    return NULL;
}

record_t *model_copy (const record_t *record, bool bodies)
{
    record_t shallow = *record;
    if (!bodies) {
        shallow.payload = NULL;
        shallow.result = NULL;
    }
    return record_new (&shallow);
}

static void apply_record (model_t *self, model_side_t *side, const record_t *record)
{
    uint32_t index = model_index (record->id.bytes);
    if (index >= MODEL_ROWS_MAX) {
        broken (self, "record of an unknown task", "", index, 0);
        return;
    }
    model_row_t *row = &side->rows[index];
    size_t *end = index < MODEL_TASKS_MAX ? &side->tasks_end : &side->fired_end;
    *end = index < *end ? *end : index + 1;
    record_t shallow = *record;
    if (row->record != NULL) {
        if (row->record->number != record->number) {
            broken (self, "number changed", "", (uint64_t) row->record->number,
                    (uint64_t) record->number);
        }
        /* A body that is absent from an image was stored earlier. */
        if (shallow.payload == NULL) {
            shallow.payload = row->record->payload;
        }
        if (shallow.result == NULL && shallow.result_bytes > 0) {
            shallow.result = row->record->result;
        }
    }
    record_t *stored = record_new (&shallow);
    record_free (row->record);
    row->record = stored;
    row->tombstone = TMQ_OK;
    if (buf_length (stored->payload) != stored->payload_bytes) {
        broken (self, "payload is missing", "", buf_length (stored->payload),
                stored->payload_bytes);
    }
    if (buf_length (stored->result) != stored->result_bytes) {
        broken (self, "result is missing", "", buf_length (stored->result), stored->result_bytes);
    }
    int64_t made_ms = id_time_ms (&record->id);
    side->newest_id_ms = made_ms > side->newest_id_ms ? made_ms : side->newest_id_ms;
    side->last_number = record->number > side->last_number ? record->number : side->last_number;
}

static void apply_attempt (model_t *self, model_side_t *side, const attempt_t *attempt)
{
    uint32_t index = model_index (attempt->id.bytes);
    if (index >= MODEL_ROWS_MAX) {
        broken (self, "attempt of an unknown task", "", index, 0);
        return;
    }
    model_row_t *row = &side->rows[index];
    for (size_t i = 0; i < row->attempts_count; i++) {
        if (row->attempts[i].attempt == attempt->attempt) {
            row->attempts[i] = *attempt;
            return;
        }
    }
    row->attempts = realloc (row->attempts, (row->attempts_count + 1) * sizeof *row->attempts);
    row->attempts[row->attempts_count++] = *attempt;
}

static void apply_removal (model_t *self, model_side_t *side, const removal_t *removal)
{
    uint32_t index = model_index (removal->id.bytes);
    if (index >= MODEL_ROWS_MAX) {
        broken (self, "removal of an unknown task", "", index, 0);
        return;
    }
    model_row_t *row = &side->rows[index];
    record_free (row->record);
    row->record = NULL;
    free (row->attempts);
    row->attempts = NULL;
    row->attempts_count = 0;
    row->tombstone = removal->code;
    row->tombstone_at = removal->at;
    row->tombstone_why = removal->why;
    snprintf (row->ns, sizeof row->ns, "%s", removal->ns);
    snprintf (row->owner, sizeof row->owner, "%s", removal->owner);
    snprintf (row->queue, sizeof row->queue, "%s", removal->queue);
}

static void apply_block (model_t *self, model_side_t *side, const event_block_t *block)
{
    model_log_t *log = NULL;
    for (size_t i = 0; i < MODEL_NAMESPACES; i++) {
        if (strcmp (side->logs[i].ns, block->ns) == 0) {
            log = &side->logs[i];
        }
    }
    Taskmq__EventList *list =
        taskmq__event_list__unpack (NULL, buf_length (block->list), buf_bytes (block->list));
    if (log == NULL || list == NULL || list->n_events != block->count || block->count == 0) {
        broken (self, "events do not fit their block", block->ns, block->first_seq, block->count);
        taskmq__event_list__free_unpacked (list, NULL);
        return;
    }
    if (block->first_seq != log->events_count + 1) {
        broken (self, "sequence has a gap in", block->ns, log->events_count, block->first_seq);
    }
    /* A failed commit leaves a gap: positions rise, they do not count. */
    if (block->first_pos <= side->last_pos) {
        broken (self, "position does not rise in", block->ns, side->last_pos, block->first_pos);
    }
    log->blocks = realloc (log->blocks, (log->blocks_count + 1) * sizeof *log->blocks);
    log->lists = realloc (log->lists, (log->blocks_count + 1) * sizeof *log->lists);
    size_t events_count = log->events_count + list->n_events;
    bool mixed = false; /* not stored */
    log->events = realloc (log->events, events_count * sizeof *log->events);
    log->positions = realloc (log->positions, events_count * sizeof *log->positions);
    for (size_t i = 0; i < list->n_events; i++) {
        const Taskmq__Event *event = list->events[i];
        bool named =
            event->subject == TMQ_SUBJECT_NONE ? event->task_id.len == 16 : event->name[0] != '\0';
        if (event->seq != log->events_count + 1 || !named) {
            broken (self, "event is out of order in", block->ns, log->events_count, event->seq);
        }
        mixed = mixed || event->subject != TMQ_SUBJECT_NONE;
        log->positions[log->events_count] = block->first_pos + i;
        log->events[log->events_count++] = event;
    }
    log->lists[log->blocks_count] = list;
    log->blocks[log->blocks_count] = *block;
    log->blocks[log->blocks_count].ns = log->ns;
    log->blocks[log->blocks_count].mixed = mixed;
    log->blocks[log->blocks_count].list = buf_keep (block->list);
    log->blocks_count++;
    side->last_pos = block->first_pos + block->count - 1;
}

static void apply (model_t *self, model_side_t *side, const batch_t *batch)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        apply_record (self, side, batch->records[i]);
    }
    for (size_t i = 0; i < batch->attempts_count; i++) {
        apply_attempt (self, side, &batch->attempts[i]);
    }
    for (size_t i = 0; i < batch->removals_count; i++) {
        apply_removal (self, side, &batch->removals[i]);
    }
    for (size_t i = 0; i < batch->blocks_count; i++) {
        apply_block (self, side, &batch->blocks[i]);
    }
    for (size_t i = 0; i < batch->rows_count; i++) {
        row_list_put (&side->kind_rows, &batch->rows[i]);
    }
    side->newest_ms = batch->expiry_ms;
}

/* Life. */

model_t *model_new (uint64_t generation)
{
    model_t *self = calloc (1, sizeof *self);
    fired_count = 0;
    self->generation = generation;
    side_init (&self->durable);
    side_init (&self->tables);
    return self;
}

void model_free (model_t *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->journal_count; i++) {
        batch_free (self->journal[i]);
    }
    free (self->journal);
    side_clear (&self->durable);
    side_clear (&self->tables);
    free (self);
}

void model_commit (model_t *self, batch_t *batch)
{
    if (batch->no <= self->committed) {
        broken (self, "number does not rise", "", self->committed, batch->no);
    }
    self->committed = batch->no;
    apply (self, &self->durable, batch);
    self->journal = realloc (self->journal, (self->journal_count + 1) * sizeof (batch_t *));
    self->journal[self->journal_count++] = batch;
}

void model_commit_unseen (model_t *self, const batch_t *batch)
{
    apply (self, &self->durable, batch);
}

void model_write (model_t *self, const batch_t *batch)
{
    apply (self, &self->tables, batch);
}

void model_clear (model_t *self)
{
    side_clear (&self->durable);
    side_clear (&self->tables);
    memset (&self->durable, 0, sizeof self->durable);
    memset (&self->tables, 0, sizeof self->tables);
    side_init (&self->durable);
    side_init (&self->tables);
}

void model_write_back (model_t *self, uint64_t batch)
{
    size_t done = 0;
    while (done < self->journal_count && self->journal[done]->no <= batch) {
        apply (self, &self->tables, self->journal[done]);
        self->written = self->journal[done]->no;
        batch_free (self->journal[done]);
        done++;
    }
    if (done > 0) {
        memmove (self->journal, self->journal + done,
                 (self->journal_count - done) * sizeof (batch_t *));
        self->journal_count -= done;
    }
}

const model_side_t *model_seen (const model_t *self)
{
    return self->overlaid ? &self->durable : &self->tables;
}

void model_boot (const model_t *self, boot_t *boot)
{
    const model_side_t *seen = model_seen (self);
    uint64_t tasks = 0;
    for (size_t i = 0; i < MODEL_ROWS_MAX; i++) {
        tasks += seen->rows[i].record != NULL;
    }
    *boot = (boot_t){.generation = self->generation,
                     .epoch = self->epoch,
                     .last_number = seen->last_number,
                     .last_pos = seen->last_pos,
                     .newest_id_ms = seen->newest_id_ms + 1,
                     .newest_ms = seen->newest_ms,
                     .tasks = tasks};
}

void model_recover (model_t *self, boot_t *boot)
{
    uint64_t recovered = self->journal_count;
    model_write_back (self, self->committed);
    self->committed = 0;
    self->written = 0;
    self->epoch++;
    model_boot (self, boot);
    boot->recovered_batches = recovered;
}

void model_reset (model_t *self, boot_t *boot)
{
    model_write_back (self, self->committed);
    model_boot (self, boot);
}

bool model_differs (const model_t *self, const char **what)
{
    const model_side_t *durable = &self->durable;
    const model_side_t *tables = &self->tables;
    bool same = durable->last_pos == tables->last_pos;
    *what = "events";
    if (same && durable->kind_rows.count != tables->kind_rows.count) {
        *what = "rows";
        return true;
    }
    MODEL_EACH_ROW (i, durable)
    {
        const record_t *left = durable->rows[i].record;
        const record_t *right = tables->rows[i].record;
        if (same &&
            (left == NULL ? right != NULL : right == NULL || left->version != right->version)) {
            *what = "tasks";
            return true;
        }
    }
    return !same;
}
