/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Look-ups walk lists of a few thousand entries: this state is rare, and bounded by the limit on
 * what may be dirty. */
#include "store/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "ids.h"
#include "store/images.h"

typedef struct overlay_space {
    char *name;
    uint64_t last_seq;
} overlay_space_t;

struct overlay {
    uint64_t upto;
    number_map_t numbers;
    record_t **records;
    size_t records_count;
    removal_t *removals; /* ns is a copy */
    size_t removals_count;
    size_t removals_capacity;
    attempt_t *attempts;
    size_t attempts_count;
    size_t attempts_capacity;
    row_list_t rows;
    overlay_space_t *spaces;
    size_t spaces_count;
    size_t spaces_capacity;
};

static void add_removal (overlay_t *self, const removal_t *removal)
{
    self->removals = memory_grow (self->removals, &self->removals_capacity, self->removals_count,
                                  sizeof (removal_t));
    self->removals[self->removals_count] = *removal;
    removal_t *copy = &self->removals[self->removals_count++];
    copy->ns = memory_text (removal->ns);
    copy->owner = memory_text (removal->owner);
    copy->queue = memory_text (removal->queue);
}

static void add_block (overlay_t *self, const event_block_t *block)
{
    size_t i = 0;
    while (i < self->spaces_count && strcmp (self->spaces[i].name, block->ns) != 0)
        i++;
    if (i == self->spaces_count) {
        self->spaces = memory_grow (self->spaces, &self->spaces_capacity, self->spaces_count,
                                    sizeof (overlay_space_t));
        self->spaces[self->spaces_count++].name = memory_text (block->ns);
    }
    self->spaces[i].last_seq = block->first_seq + block->count - 1;
}

static void add_batch (overlay_t *self, const batch_t *batch)
{
    self->upto = batch->no;
    row_list_add (&self->rows, batch);
    for (size_t i = 0; i < batch->removals_count; i++)
        add_removal (self, &batch->removals[i]);
    for (size_t i = 0; i < batch->blocks_count; i++)
        add_block (self, &batch->blocks[i]);
    for (size_t i = 0; i < batch->attempts_count; i++) {
        self->attempts = memory_grow (self->attempts, &self->attempts_capacity,
                                      self->attempts_count, sizeof (attempt_t));
        self->attempts[self->attempts_count++] = batch->attempts[i];
    }
}

overlay_t *overlay_new (batch_t *const *batches, size_t count)
{
    overlay_t *self = memory_zero (1, sizeof (*self));
    images_t images = {0};
    for (size_t i = 0; i < count; i++)
        images_add (&images, batches[i]);
    images_sort (&images);
    self->records = memory_zero (images.count, sizeof (record_t *));
    for (size_t i = 0; i < images.count; i++) {
        record_t whole = *images.list[i].record;
        whole.payload = images.list[i].payload;
        whole.result = images.list[i].result;
        self->records[self->records_count++] = record_new (&whole);
    }
    self->numbers = images.by_number;
    images.by_number = (number_map_t){NULL, 0, 0};
    images_free (&images);
    for (size_t i = 0; i < count; i++)
        add_batch (self, batches[i]);
    row_list_sort (&self->rows);
    return self;
}

void overlay_free (overlay_t *self)
{
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->records_count; i++)
        record_free (self->records[i]);
    free (self->records);
    for (size_t i = 0; i < self->removals_count; i++)
        removal_clear (&self->removals[i]);
    free (self->removals);
    free (self->attempts);
    row_list_free (&self->rows);
    for (size_t i = 0; i < self->spaces_count; i++)
        free (self->spaces[i].name);
    free (self->spaces);
    number_map_clear (&self->numbers);
    free (self);
}

uint64_t overlay_upto (const overlay_t *self)
{
    return self->upto;
}

size_t overlay_count (const overlay_t *self)
{
    return self->records_count;
}

const record_t *overlay_record (const overlay_t *self, size_t position)
{
    return self->records[position];
}

bool overlay_has (const overlay_t *self, int64_t number)
{
    return number_map_get (&self->numbers, (uint64_t) number) != NULL;
}

uint64_t overlay_last_seq (const overlay_t *self, const char *ns)
{
    for (size_t i = 0; i < self->spaces_count; i++)
        if (strcmp (self->spaces[i].name, ns) == 0)
            return self->spaces[i].last_seq;
    return 0;
}

const char *overlay_ns (const overlay_t *self, size_t position)
{
    return position < self->spaces_count ? self->spaces[position].name : NULL;
}

const row_list_t *overlay_rows (const overlay_t *self)
{
    return &self->rows;
}

/* Look-ups. */

static const record_t *find_record (const overlay_t *self, const lookup_t *key)
{
    for (size_t i = 0; i < self->records_count; i++) {
        const record_t *record = self->records[i];
        if (strcmp (record->ns, key->ns) != 0)
            continue;
        if (key->kind == LOOKUP_DEDUP ? strcmp (record->owner, key->owner) == 0 &&
                                            strcmp (record->dedup_key, key->dedup_key) == 0
                                      : id_equal (&record->id, &key->id))
            return record;
    }
    return NULL;
}

/* The image has the bodies that were given since the last write-back; older ones are in the row. */
static void take_image (lookup_t *key, const record_t *image)
{
    record_t whole = *image;
    const record_t *row = key->record;
    if (!key->bodies)
        whole.payload = whole.result = NULL;
    if (key->bodies && row != NULL && whole.payload == NULL && whole.payload_bytes > 0)
        whole.payload = row->payload;
    if (key->bodies && row != NULL && whole.result == NULL && whole.result_bytes > 0)
        whole.result = row->result;
    record_t *answer = record_new (&whole);
    record_free (key->record);
    key->record = answer;
}

static void correct_removal (const overlay_t *self, lookup_t *key)
{
    for (size_t i = 0; i < self->removals_count; i++) {
        const removal_t *removal = &self->removals[i];
        bool is_it = key->record != NULL
                         ? removal->number == key->record->number
                         : key->kind != LOOKUP_DEDUP && id_equal (&removal->id, &key->id) &&
                               strcmp (removal->ns, key->ns) == 0;
        if (!is_it)
            continue;
        record_free (key->record);
        key->record = NULL;
        free (key->attempt_row);
        key->attempt_row = NULL;
        if (key->kind == LOOKUP_ID)
            lookup_take_tombstone (key, removal);
        return;
    }
}

static void correct_attempt (const overlay_t *self, lookup_t *key)
{
    const record_t *record = find_record (self, key);
    for (size_t i = 0; record != NULL && i < self->attempts_count; i++)
        if (self->attempts[i].number == record->number &&
            self->attempts[i].attempt == key->attempt) {
            free (key->attempt_row);
            key->attempt_row = attempt_new (&self->attempts[i]);
        }
}

static void correct_row (const overlay_t *self, lookup_t *key)
{
    const row_t *row = row_list_find (&self->rows, key->row_kind, key->row_key);
    if (row == NULL)
        return;
    buf_drop (key->row_body);
    key->row_found = !row->gone;
    key->row_body = buf_keep (row->body);
    key->row_expires_at = row->expires_at;
}

void overlay_correct (const overlay_t *self, lookup_t *key)
{
    if (key->kind == LOOKUP_ROW) {
        correct_row (self, key);
        return;
    }
    correct_removal (self, key);
    if (key->kind == LOOKUP_ATTEMPT) {
        correct_attempt (self, key);
        return;
    }
    const record_t *image = find_record (self, key);
    if (image != NULL)
        take_image (key, image);
}
