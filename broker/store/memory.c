/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The memory backend: what was committed is written at once and gone with the process. For tests
 * and for tasks that need not survive; nothing is ever forgotten except by a removal, so it grows
 * with every event. One mutex guards everything; no call can fail. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/memory.h"
#include "core/data/row_list.h"
#include "core/data/turn.h"
#include "ids.h"
#include "store/events.h"
#include "store/number_map.h"
#include "store/select.h"
#include "store/store_backend.h"

/* A task, or after its removal its tombstone. */
typedef struct entry {
    int64_t number;
    tmq_id_t id;
    char *ns;
    record_t *record;  /* with bodies; NULL: removed */
    removal_t removal; /* its texts are the entry's */
    attempt_t *attempts;
    size_t attempts_count;
    size_t attempts_capacity;
    struct entry *same_id_hash;
    struct entry *same_key_hash;
} entry_t;

typedef struct ns {
    char *name;
    size_t *blocks; /* positions in the store's list */
    size_t blocks_count;
    size_t blocks_capacity;
    uint64_t last_seq;
} ns_t;

typedef struct memory_store {
    store_t base;
    void (*notify) (void *context);
    void *notify_context;
    pthread_mutex_t lock; /* guards what follows */
    entry_t **entries;    /* by number */
    size_t entries_count;
    size_t entries_capacity;
    number_map_t by_id;    /* hash of (ns, id) to the first entry */
    number_map_t by_key;   /* hash of (ns, owner, dedup key) to the first entry */
    event_block_t *blocks; /* in order of position */
    size_t blocks_count;
    size_t blocks_capacity;
    row_list_t rows;
    ns_t *spaces;
    size_t spaces_count;
    size_t spaces_capacity;
    uint64_t written;
    store_stats_t stats;
} memory_store_t;

typedef struct memory_reader {
    store_reader_t base;
} memory_reader_t;

/* Finding. */

/* FNV-1a, made odd because a number_map has no key 0: equal parts give equal hashes, and every user
 * compares the parts themselves. */
static uint64_t hash_more (uint64_t hash, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const uint8_t *) bytes)[i]) * UINT64_C (0x100000001b3);
    return hash;
}

static uint64_t hash_text (uint64_t hash, const char *text)
{
    return hash_more (hash, text, strlen (text) + 1);
}

static const uint64_t HASH_START = UINT64_C (0xcbf29ce484222325);

static uint64_t hash_id (const char *ns, const tmq_id_t *id)
{
    return hash_more (hash_text (HASH_START, ns), id->bytes, sizeof (id->bytes)) | 1;
}

static uint64_t hash_key (const char *ns, const char *owner, const char *key)
{
    return hash_text (hash_text (hash_text (HASH_START, ns), owner), key) | 1;
}

static entry_t *first_of (const number_map_t *map, uint64_t hash)
{
    const uint64_t *value = number_map_get (map, hash);
    return value == NULL ? NULL : (entry_t *) (uintptr_t) *value;
}

static entry_t *find_id (const memory_store_t *self, const char *ns, const tmq_id_t *id)
{
    entry_t *entry = first_of (&self->by_id, hash_id (ns, id));
    while (entry != NULL && (!id_equal (&entry->id, id) || strcmp (entry->ns, ns) != 0))
        entry = entry->same_id_hash;
    return entry;
}

static entry_t *find_key (const memory_store_t *self, const lookup_t *key)
{
    entry_t *entry = first_of (&self->by_key, hash_key (key->ns, key->owner, key->dedup_key));
    for (; entry != NULL; entry = entry->same_key_hash)
        if (entry->record != NULL && strcmp (entry->record->ns, key->ns) == 0 &&
            strcmp (entry->record->owner, key->owner) == 0 &&
            strcmp (entry->record->dedup_key, key->dedup_key) == 0)
            return entry;
    return NULL;
}

/* Position of the first entry whose number is at least number. */
static size_t entries_from (const memory_store_t *self, int64_t number)
{
    size_t low = 0;
    size_t high = self->entries_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (self->entries[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static entry_t *find_number (const memory_store_t *self, int64_t number)
{
    size_t at = entries_from (self, number);
    return at < self->entries_count && self->entries[at]->number == number ? self->entries[at]
                                                                           : NULL;
}

static ns_t *find_ns (memory_store_t *self, const char *name)
{
    for (size_t i = 0; i < self->spaces_count; i++)
        if (strcmp (self->spaces[i].name, name) == 0)
            return &self->spaces[i];
    return NULL;
}

/* Committing. */

static void entry_index (number_map_t *map, uint64_t hash, entry_t *entry, entry_t **next)
{
    uint64_t *first = number_map_put (map, hash, NULL);
    *next = (entry_t *) (uintptr_t) *first;
    *first = (uint64_t) (uintptr_t) entry;
}

static entry_t *entry_add (memory_store_t *self, const record_t *record)
{
    entry_t *entry = memory_zero (1, sizeof (*entry));
    entry->number = record->number;
    entry->id = record->id;
    entry->ns = memory_text (record->ns);
    size_t at = entries_from (self, record->number);
    self->entries = memory_grow (self->entries, &self->entries_capacity, self->entries_count,
                                 sizeof (entry_t *));
    memmove (&self->entries[at + 1], &self->entries[at],
             (self->entries_count - at) * sizeof (entry_t *));
    self->entries[at] = entry;
    self->entries_count++;
    entry_index (&self->by_id, hash_id (record->ns, &record->id), entry, &entry->same_id_hash);
    if (record->dedup_key[0] != '\0')
        entry_index (&self->by_key, hash_key (record->ns, record->owner, record->dedup_key), entry,
                     &entry->same_key_hash);
    self->stats.tasks++;
    return entry;
}

/* Takes the record. Bodies that the image leaves out were stored earlier. */
/* A copy, because the images of a batch may live in memory of the batch. */
static void apply_record (memory_store_t *self, const record_t *image)
{
    record_t *record = record_new (image);
    entry_t *entry = find_number (self, record->number);
    if (entry == NULL)
        entry = entry_add (self, record);
    const record_t *old = entry->record;
    if (old != NULL && record->payload == NULL && record->payload_bytes > 0)
        record->payload = buf_keep (old->payload);
    if (old != NULL && record->result == NULL && record->result_bytes > 0)
        record->result = buf_keep (old->result);
    record_free (entry->record);
    entry->record = record;
}

static void apply_attempt (memory_store_t *self, const attempt_t *attempt)
{
    entry_t *entry = find_number (self, attempt->number);
    if (entry == NULL || entry->record == NULL)
        return; /* removed in the same batch */
    entry->attempts = memory_grow (entry->attempts, &entry->attempts_capacity,
                                   entry->attempts_count, sizeof (attempt_t));
    entry->attempts[entry->attempts_count++] = *attempt;
}

static void apply_removal (memory_store_t *self, const removal_t *removal)
{
    entry_t *entry = find_id (self, removal->ns, &removal->id);
    if (entry == NULL || entry->record == NULL)
        return;
    record_free (entry->record);
    entry->record = NULL;
    free (entry->attempts);
    entry->attempts = NULL;
    entry->attempts_count = entry->attempts_capacity = 0;
    entry->removal = *removal;
    entry->removal.ns = NULL;
    entry->removal.owner = memory_text (removal->owner);
    entry->removal.queue = memory_text (removal->queue);
    self->stats.tasks--;
    self->stats.tombstones++;
    self->stats.removals++;
}

static void apply_block (memory_store_t *self, const event_block_t *block)
{
    ns_t *ns = find_ns (self, block->ns);
    if (ns == NULL) {
        self->spaces =
            memory_grow (self->spaces, &self->spaces_capacity, self->spaces_count, sizeof (ns_t));
        ns = &self->spaces[self->spaces_count++];
        *ns = (ns_t){.name = memory_text (block->ns)};
    }
    ns->blocks = memory_grow (ns->blocks, &ns->blocks_capacity, ns->blocks_count, sizeof (size_t));
    ns->blocks[ns->blocks_count++] = self->blocks_count;
    ns->last_seq = block->first_seq + block->count - 1;
    self->blocks = memory_grow (self->blocks, &self->blocks_capacity, self->blocks_count,
                                sizeof (event_block_t));
    event_block_t *copy = &self->blocks[self->blocks_count++];
    *copy = *block;
    copy->ns = memory_text (block->ns);
    copy->list = buf_keep (block->list);
}

static void apply_batch (memory_store_t *self, const batch_t *batch)
{
    for (size_t i = 0; i < batch->records_count; i++)
        apply_record (self, batch->records[i]);
    for (size_t i = 0; i < batch->attempts_count; i++)
        apply_attempt (self, &batch->attempts[i]);
    for (size_t i = 0; i < batch->removals_count; i++)
        apply_removal (self, &batch->removals[i]);
    for (size_t i = 0; i < batch->blocks_count; i++)
        apply_block (self, &batch->blocks[i]);
    for (size_t i = 0; i < batch->rows_count; i++)
        row_list_put (&self->rows, &batch->rows[i]);
    self->written = batch->no;
    self->stats.commits++;
}

static store_code_t memory_commit (store_t *base, batch_t *const *batches, size_t count,
                                   store_error_t *error)
{
    (void) error;
    memory_store_t *self = (memory_store_t *) base;
    pthread_mutex_lock (&self->lock);
    for (size_t i = 0; i < count; i++)
        apply_batch (self, batches[i]);
    pthread_mutex_unlock (&self->lock);
    for (size_t i = 0; i < count; i++)
        batch_free (batches[i]);
    if (self->notify != NULL)
        self->notify (self->notify_context);
    return STORE_OK;
}

static uint64_t memory_written (store_t *base)
{
    memory_store_t *self = (memory_store_t *) base;
    pthread_mutex_lock (&self->lock);
    uint64_t written = self->written;
    pthread_mutex_unlock (&self->lock);
    return written;
}

static void memory_flush (store_t *base)
{
    (void) base; /* durable and written are the same here */
}

/* Point reads and the live tasks. */

static void memory_exported (store_t *base, uint64_t pos)
{
    (void) base;
    (void) pos; /* nothing is forgotten here */
}

static void load_attempt (const entry_t *entry, lookup_t *key)
{
    for (size_t i = entry->attempts_count; i > 0 && key->attempt_row == NULL; i--)
        if (entry->attempts[i - 1].attempt == key->attempt)
            key->attempt_row = attempt_new (&entry->attempts[i - 1]);
}

static void load_one (const memory_store_t *self, lookup_t *key)
{
    key->record = NULL;
    key->tombstone = TMQ_OK;
    key->attempt_row = NULL;
    if (key->kind == LOOKUP_ROW) {
        row_list_answer (&self->rows, key);
        return;
    }
    const entry_t *entry =
        key->kind == LOOKUP_DEDUP ? find_key (self, key) : find_id (self, key->ns, &key->id);
    if (entry == NULL)
        return;
    if (key->kind == LOOKUP_ATTEMPT) {
        load_attempt (entry, key);
    } else if (entry->record == NULL) {
        lookup_take_tombstone (key, &entry->removal);
    } else {
        key->record = key->bodies ? record_new (entry->record) : select_copy_bare (entry->record);
    }
}

static store_code_t memory_load (store_t *base, lookup_t *keys, size_t count, store_error_t *error)
{
    (void) error;
    memory_store_t *self = (memory_store_t *) base;
    pthread_mutex_lock (&self->lock);
    for (size_t i = 0; i < count; i++)
        load_one (self, &keys[i]);
    pthread_mutex_unlock (&self->lock);
    return STORE_OK;
}

static store_code_t memory_live (store_t *base, const store_live_visitor_t *visitor,
                                 store_error_t *error)
{
    (void) error;
    memory_store_t *self = (memory_store_t *) base;
    pthread_mutex_lock (&self->lock);
    for (size_t i = 0; visitor->row != NULL && i < self->rows.count; i++)
        if (row_kind_home (self->rows.rows[i].kind) == ROW_HOME_LIVE)
            visitor->row (visitor->context, &self->rows.rows[i]);
    for (size_t i = 0; i < self->entries_count; i++) {
        const record_t *record = self->entries[i]->record;
        if (record != NULL && select_is_live (record))
            visitor->task (visitor->context, select_copy_bare (record));
    }
    for (size_t i = 0; i < self->spaces_count; i++)
        visitor->ns (visitor->context, self->spaces[i].name, self->spaces[i].last_seq);
    pthread_mutex_unlock (&self->lock);
    return STORE_OK;
}

/* They are ordered by kind and key. */
static bool find_due_rows (const memory_store_t *self, store_sweep_t *sweep)
{
    due_t *found = &sweep->found;
    row_t place = {.kind = sweep->row_kind,
                   .key = buf_new (sweep->row_key.bytes, sweep->row_key.length)};
    size_t i = row_list_from (&self->rows, &place);
    if (i < self->rows.count && row_compare (&self->rows.rows[i], &place) == 0)
        i++;
    buf_drop (place.key);
    i = row_list_due (&self->rows, i, sweep->wall_ms, sweep->limit, found);
    if (found->rows_count > 0) {
        const row_t *last = &found->rows[found->rows_count - 1];
        sweep->row_kind = last->kind;
        sweep->row_key.length = 0;
        row_key_bytes (&sweep->row_key, buf_bytes (last->key), buf_length (last->key));
    }
    return i < self->rows.count;
}

static store_code_t memory_due (store_t *base, store_sweep_t *sweep, store_error_t *error)
{
    (void) error;
    memory_store_t *self = (memory_store_t *) base;
    size_t capacity = 0;
    pthread_mutex_lock (&self->lock);
    due_t *found = &sweep->found;
    size_t i = entries_from (self, sweep->number + 1);
    for (; i < self->entries_count && found->count < sweep->limit; i++) {
        const record_t *record = self->entries[i]->record;
        if (record == NULL || select_is_live (record) || record->expires_at <= 0 ||
            record->expires_at > sweep->wall_ms)
            continue;
        found->records = memory_grow (found->records, &capacity, found->count, sizeof (record_t *));
        found->records[found->count++] = select_copy_bare (record);
        sweep->number = record->number;
    }
    sweep->more = find_due_rows (self, sweep) || i < self->entries_count;
    pthread_mutex_unlock (&self->lock);
    return STORE_OK;
}

/* Reads in pages. */

/* The entries that a list or a count is about are those in front of this place. */
static size_t entries_before (const memory_store_t *self, const read_t *read)
{
    return read->before_number > 0 ? entries_from (self, read->before_number) : self->entries_count;
}

/* So many were looked at: the read ends, and goes on with the entry in front of this place. */
static bool looked_enough (const memory_store_t *self, read_t *read, size_t place, size_t looks)
{
    if (read->vain_max == 0 || looks < read->vain_max || place == 0)
        return false;
    read->more = true;
    read->next_number = self->entries[place]->number;
    return true;
}

/* A turn of the task has it. */
static bool has_mark (const memory_store_t *self, const record_t *record, const label_t *mark)
{
    row_key_t key;
    turn_key (&key, record->ns, record->id.bytes, 0);
    row_t first = row_make (ROW_KIND_TURN, key.bytes, key.length, NULL, 0);
    bool found = false;
    for (size_t i = row_list_from (&self->rows, &first); !found && i < self->rows.count; i++) {
        const row_t *row = &self->rows.rows[i];
        turn_t turn;
        if (row->kind != ROW_KIND_TURN || !row_key_begins_with (row->key, first.key))
            break;
        found = turn_unpack (&turn, row->body) && turn_has_mark (&turn, mark);
    }
    row_drop (&first);
    return found;
}

static bool matches (const memory_store_t *self, const filter_t *filter, const record_t *record)
{
    bool fits = record != NULL && select_matches (filter, record);
    for (size_t i = 0; fits && i < filter->labels_count; i++)
        fits = !label_is_mark (&filter->labels[i]) || has_mark (self, record, &filter->labels[i]);
    return fits;
}

static void read_list (const memory_store_t *self, read_t *read)
{
    size_t capacity = 0;
    size_t looks = 0;
    for (size_t i = entries_before (self, read); i > 0; i--) {
        const record_t *record = self->entries[i - 1]->record;
        if (!matches (self, &read->filter, record)) {
            if (looked_enough (self, read, i - 1, ++looks))
                break;
            continue;
        }
        if (read->records_count == read->limit) {
            read->more = true;
            break;
        }
        read->records =
            memory_grow (read->records, &capacity, read->records_count, sizeof (record_t *));
        read->records[read->records_count++] = select_copy_bare (record);
    }
}

static void read_count (const memory_store_t *self, read_t *read)
{
    size_t looks = 0;
    read->next_number = 0;
    read->more = false;
    for (size_t i = entries_before (self, read); i > 0; i--) {
        const record_t *record = self->entries[i - 1]->record;
        read->count += matches (self, &read->filter, record);
        if (looked_enough (self, read, i - 1, ++looks))
            break;
    }
}

static void read_resolve (const memory_store_t *self, read_t *read)
{
    size_t seen = 0;
    for (size_t i = self->entries_count; i > 0; i--) {
        const record_t *record = self->entries[i - 1]->record;
        if (record == NULL || strcmp (record->ns, read->filter.ns) != 0)
            continue;
        if (seen++ >= TMQ_SUFFIX_TASKS_MAX && !select_is_live (record))
            continue;
        if (!filter_sees (&read->filter, record->queue, record->owner))
            continue;
        if (id_ends_with (&record->id, read->suffix) && !select_resolved (read, &record->id))
            break;
    }
}

/* Position in ns->blocks of the first block that ends at or after seq. */
static size_t blocks_from (const memory_store_t *self, const ns_t *ns, uint64_t seq)
{
    size_t low = 0;
    size_t high = ns->blocks_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const event_block_t *block = &self->blocks[ns->blocks[middle]];
        if (block->first_seq + block->count - 1 < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct block_finder {
    const memory_store_t *store;
    const ns_t *ns;
} block_finder_t;

static bool find_block (void *context, uint64_t seq, const uint8_t **list, size_t *list_bytes)
{
    const block_finder_t *finder = context;
    size_t at = blocks_from (finder->store, finder->ns, seq);
    if (at == finder->ns->blocks_count)
        return false;
    const buf_t *packed = finder->store->blocks[finder->ns->blocks[at]].list;
    *list = buf_bytes (packed);
    *list_bytes = buf_length (packed);
    return true;
}

static void read_history (memory_store_t *self, read_t *read)
{
    block_finder_t finder = {self, find_ns (self, read->filter.ns)};
    event_source_t source = {find_block, NULL, &finder};
    event_chain_t history;
    event_chain_start (&history, read);
    if (finder.ns == NULL)
        history.next_seq = 0;
    event_chain_follow (&history, &source);
    event_chain_finish (&history, read);
}

static void take_block (read_t *read, size_t *capacity, const event_block_t *block)
{
    read->blocks = memory_grow (read->blocks, capacity, read->blocks_count, sizeof (event_block_t));
    event_block_t *copy = &read->blocks[read->blocks_count++];
    *copy = *block;
    copy->ns = memory_text (block->ns);
    copy->list = buf_keep (block->list);
    copy->mixed = event_list_is_mixed (block->list);
}

static void read_blocks (const memory_store_t *self, read_t *read)
{
    size_t capacity = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < self->blocks_count && !read->more; i++) {
        const event_block_t *block = &self->blocks[i];
        if (block->first_pos + block->count - 1 <= read->after_pos)
            continue;
        read->more = bytes > 0 && bytes >= read->limit;
        if (!read->more)
            take_block (read, &capacity, block);
        bytes += buf_length (block->list);
    }
}

static void read_events (memory_store_t *self, read_t *read)
{
    const ns_t *ns = find_ns (self, read->filter.ns);
    if (ns == NULL)
        return;
    size_t capacity = 0;
    size_t bytes = 0;
    size_t at = blocks_from (self, ns, read->after_seq + 1);
    for (; at < ns->blocks_count && (bytes == 0 || bytes < read->limit); at++) {
        const event_block_t *block = &self->blocks[ns->blocks[at]];
        take_block (read, &capacity, block);
        bytes += buf_length (block->list);
    }
    read->more = at < ns->blocks_count;
    read->first_seq = self->blocks[ns->blocks[0]].first_seq;
    read->last_seq_seen = ns->last_seq;
}

static void export_event (memory_store_t *self, read_t *read, const event_block_t *block,
                          const packed_event_t *event, size_t *capacity)
{
    tmq_id_t id;
    if (event->task_id == NULL)
        return;
    memcpy (id.bytes, event->task_id, sizeof (id.bytes));
    const entry_t *entry = find_id (self, block->ns, &id);
    if (entry == NULL || entry->record == NULL || entry->record->last_seq != event->seq)
        return;
    read->items = memory_grow (read->items, capacity, read->items_count, sizeof (export_item_t));
    read->items[read->items_count++] = (export_item_t){
        block->first_pos + (event->seq - block->first_seq), event->seq, record_new (entry->record)};
}

static void read_export (memory_store_t *self, read_t *read)
{
    size_t capacity = 0;
    read->upto_pos = read->after_pos;
    for (size_t i = 0; i < self->blocks_count; i++) {
        const event_block_t *block = &self->blocks[i];
        if (block->first_pos + block->count - 1 <= read->after_pos)
            continue;
        event_walk_t walk = event_walk (buf_bytes (block->list), buf_length (block->list));
        packed_event_t event;
        while (event_walk_next (&walk, &event)) {
            uint64_t pos = block->first_pos + (event.seq - block->first_seq);
            if (pos <= read->after_pos)
                continue;
            if (read->items_count == read->limit) {
                read->more = true;
                return;
            }
            export_event (self, read, block, &event, &capacity);
            read->upto_pos = pos;
        }
    }
}

static void read_since (memory_store_t *self, read_t *read)
{
    const ns_t *ns = find_ns (self, read->filter.ns);
    if (ns == NULL)
        return;
    for (size_t i = 0; i < ns->blocks_count; i++) {
        const event_block_t *block = &self->blocks[ns->blocks[i]];
        uint64_t seq =
            event_first_since (buf_bytes (block->list), buf_length (block->list), read->since_ms);
        if (seq != 0) {
            read->seq = seq - 1;
            return;
        }
    }
    read->seq = ns->last_seq;
}

static void read_standing (const memory_store_t *self, read_t *read)
{
    for (size_t i = 0; i < read->standing_count; i++) {
        standing_t *standing = &read->standing[i];
        const entry_t *entry = find_id (self, standing->ns, &standing->id);
        standing->stands =
            entry != NULL && entry->record != NULL && entry->record->last_seq == standing->seq;
    }
}

/* An attempt begins behind the end of the one before it, so they stand in their order. */
static void read_attempts (memory_store_t *self, read_t *read)
{
    const entry_t *entry = find_number (self, read->task_number);
    size_t capacity = 0;
    for (size_t i = 0; entry != NULL && i < entry->attempts_count && !read->more; i++) {
        const attempt_t *attempt = &entry->attempts[i];
        if (attempt->attempt <= read->after_attempt)
            continue;
        read->more = read->attempts_count == read->limit;
        if (read->more)
            return;
        read->attempts =
            memory_grow (read->attempts, &capacity, read->attempts_count, sizeof (attempt_t));
        read->attempts[read->attempts_count++] = *attempt;
    }
}

static void read_pick (const memory_store_t *self, read_t *read)
{
    read->records = memory_alloc (read->numbers_count * sizeof (record_t *));
    for (size_t i = 0; i < read->numbers_count; i++) {
        const entry_t *entry = find_number (self, read->numbers[i]);
        if (entry != NULL && matches (self, &read->filter, entry->record))
            read->records[read->records_count++] = select_copy_bare (entry->record);
    }
}

static void read_whole (const memory_store_t *self, read_t *read)
{
    size_t capacity = 0;
    for (size_t i = entries_from (self, read->after_number + 1); i < self->entries_count; i++) {
        const record_t *record = self->entries[i]->record;
        read->more = record != NULL && read->records_count == read->limit;
        if (read->more)
            return;
        if (record == NULL)
            continue;
        read->records =
            memory_grow (read->records, &capacity, read->records_count, sizeof (record_t *));
        read->records[read->records_count++] = record_new (record);
    }
}

static void read_lasting (const memory_store_t *self, read_t *read)
{
    size_t capacity = 0;
    size_t end =
        read->before_number == 0 ? self->entries_count : entries_from (self, read->before_number);
    for (size_t i = end; i > 0; i--) {
        const record_t *record = self->entries[i - 1]->record;
        if (record == NULL || !record_is_lasting (record) ||
            strcmp (record->ns, read->filter.ns) != 0)
            continue;
        read->more = read->records_count == read->limit;
        if (read->more)
            return;
        read->records =
            memory_grow (read->records, &capacity, read->records_count, sizeof (record_t *));
        read->records[read->records_count++] = select_copy_bare (record);
    }
}

static store_code_t memory_reader_run (store_reader_t *reader, read_t *read, store_error_t *error)
{
    (void) error;
    memory_store_t *self = (memory_store_t *) reader->store;
    pthread_mutex_lock (&self->lock);
    switch (read->kind) {
    case READ_LIST: read_list (self, read); break;
    case READ_COUNT: read_count (self, read); break;
    case READ_RESOLVE: read_resolve (self, read); break;
    case READ_HISTORY: read_history (self, read); break;
    case READ_EVENTS: read_events (self, read); break;
    case READ_EXPORT: read_export (self, read); break;
    case READ_BLOCKS: read_blocks (self, read); break;
    case READ_SINCE: read_since (self, read); break;
    case READ_ROWS: row_list_page (&self->rows, read); break;
    case READ_STANDING: read_standing (self, read); break;
    case READ_ATTEMPTS: read_attempts (self, read); break;
    case READ_PICK: read_pick (self, read); break;
    case READ_WHOLE: read_whole (self, read); break;
    case READ_LASTING: read_lasting (self, read); break;
    case READ_SEARCH: break; /* never a store's */
    }
    pthread_mutex_unlock (&self->lock);
    return STORE_OK;
}

static store_code_t memory_reader_open (store_reader_t **out, store_t *base, store_error_t *error)
{
    (void) error;
    memory_reader_t *reader = memory_zero (1, sizeof (*reader));
    reader->base.store = base;
    *out = &reader->base;
    return STORE_OK;
}

static void memory_reader_close (store_reader_t *reader)
{
    free (reader);
}

/* Life. */

static void memory_stats (store_t *base, store_stats_t *out)
{
    memory_store_t *self = (memory_store_t *) base;
    pthread_mutex_lock (&self->lock);
    *out = self->stats;
    out->free_bytes = UINT64_MAX;
    pthread_mutex_unlock (&self->lock);
}

static store_code_t memory_close (store_t *base, store_error_t *error)
{
    (void) error;
    memory_store_t *self = (memory_store_t *) base;
    for (size_t i = 0; i < self->entries_count; i++) {
        entry_t *entry = self->entries[i];
        record_free (entry->record);
        free (entry->attempts);
        removal_clear (&entry->removal);
        free (entry->ns);
        free (entry);
    }
    free (self->entries);
    for (size_t i = 0; i < self->blocks_count; i++) {
        free ((char *) self->blocks[i].ns);
        buf_drop (self->blocks[i].list);
    }
    free (self->blocks);
    row_list_free (&self->rows);
    for (size_t i = 0; i < self->spaces_count; i++) {
        free (self->spaces[i].name);
        free (self->spaces[i].blocks);
    }
    free (self->spaces);
    number_map_clear (&self->by_id);
    number_map_clear (&self->by_key);
    pthread_mutex_destroy (&self->lock);
    free (self);
    return STORE_OK;
}

static store_code_t memory_open (store_t **out, const store_options_t *options, boot_t *boot,
                                 store_error_t *error)
{
    *boot = (boot_t){.epoch = 1, .newest_id_ms = 1}; /* it begins without any */
    if (getrandom (&boot->generation, sizeof (boot->generation), 0) !=
        (ssize_t) sizeof (boot->generation))
        return store_fail (error, STORE_ERROR_IO, "the system gives no random bytes");
    boot->generation >>= 1; /* as everywhere: fits int64, not 0 */
    boot->generation |= 1;
    memory_store_t *self = memory_zero (1, sizeof (*self));
    self->base.backend = &store_backend_memory;
    self->notify = options->notify;
    self->notify_context = options->notify_context;
    pthread_mutex_init (&self->lock, NULL);
    *out = &self->base;
    return STORE_OK;
}

const store_backend_t store_backend_memory = {
    .uri = "memory",
    .open = memory_open,
    .close = memory_close,
    .inline_inputs = STORE_INLINE_INPUTS,
    .live = memory_live,
    .commit = memory_commit,
    .written = memory_written,
    .flush = memory_flush,
    .exported = memory_exported,
    .load = memory_load,
    .reader_open = memory_reader_open,
    .reader_close = memory_reader_close,
    .reader_run = memory_reader_run,
    .due = memory_due,
    .stats = memory_stats,
};
