/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The rig of the engine's tests. */
#include "core_rig.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "ids.h"

/* The store. */

static void apply_batch (rig_t *self, const batch_t *batch)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        const record_t *record = batch->records[i];
        record_t *old = self->rows[record->number];
        record_t merged = *record;
        if (merged.payload == NULL && old != NULL)
            merged.payload = old->payload;
        if (merged.result == NULL && old != NULL && merged.result_bytes > 0)
            merged.result = old->result;
        assert_int_equal (buf_length (merged.payload), merged.payload_bytes);
        assert_int_equal (buf_length (merged.result), merged.result_bytes);
        self->rows[record->number] = record_new (&merged);
        if (self->rows_end <= (size_t) record->number)
            self->rows_end = (size_t) record->number + 1;
        record_free (old);
    }
    for (size_t i = 0; i < batch->removals_count; i++) {
        int64_t number = batch->removals[i].number;
        record_free (self->rows[number]);
        self->rows[number] = NULL;
        removal_t *tombstone = &self->tombstones[number];
        *tombstone = batch->removals[i];
        tombstone->ns = memory_text (tombstone->ns);
        tombstone->owner = memory_text (tombstone->owner);
        tombstone->queue = memory_text (tombstone->queue);
    }
    for (size_t i = 0; i < batch->rows_count; i++)
        row_list_put (&self->kind_rows, &batch->rows[i]);
}

static record_t *row_by_id (const rig_t *self, const char *ns, const tmq_id_t *id)
{
    for (size_t i = 1; i < self->rows_end; i++)
        if (self->rows[i] != NULL && id_equal (&self->rows[i]->id, id) &&
            strcmp (self->rows[i]->ns, ns) == 0)
            return self->rows[i];
    return NULL;
}

static record_t *row_by_key (const rig_t *self, const lookup_t *key)
{
    for (size_t i = 1; i < self->rows_end; i++) {
        record_t *row = self->rows[i];
        if (row != NULL && strcmp (row->ns, key->ns) == 0 && strcmp (row->owner, key->owner) == 0 &&
            strcmp (row->dedup_key, key->dedup_key) == 0)
            return row;
    }
    return NULL;
}

static void load_attempt (const rig_t *self, lookup_t *key)
{
    for (uint64_t no = 1; no <= self->written; no++) {
        const batch_t *batch = self->batches[no];
        for (size_t i = 0; batch != NULL && i < batch->attempts_count; i++) {
            const attempt_t *row = &batch->attempts[i];
            if (id_equal (&row->id, &key->id) && row->attempt == key->attempt) {
                free (key->attempt_row);
                key->attempt_row = attempt_new (row);
            }
        }
    }
}

static void load_key (rig_t *self, lookup_t *key)
{
    self->loads++;
    const record_t *row = NULL;
    if (key->kind == LOOKUP_ROW)
        row_list_answer (&self->kind_rows, key);
    else if (key->kind == LOOKUP_ATTEMPT)
        load_attempt (self, key);
    else
        row = key->kind == LOOKUP_ID ? row_by_id (self, key->ns, &key->id) : row_by_key (self, key);
    key->damaged = row != NULL && self->damaged;
    if (row != NULL && !key->damaged) {
        record_t copy = *row;
        if (!key->bodies)
            copy.payload = copy.result = NULL;
        key->record = record_new (&copy);
    }
    for (size_t i = 1; i < self->rows_end && key->kind == LOOKUP_ID; i++)
        if (self->tombstones[i].code != TMQ_OK && id_equal (&self->tombstones[i].id, &key->id) &&
            strcmp (self->tombstones[i].ns, key->ns) == 0)
            lookup_take_tombstone (key, &self->tombstones[i]);
}

static void load (rig_t *self, key_list_t *keys)
{
    if (self->away && keys->count > 0) {
        engine_unread (self->engine, keys);
        return;
    }
    for (size_t i = 0; i < keys->count; i++)
        load_key (self, &keys->keys[i]);
    engine_loaded (self->engine, keys);
    free (keys->keys);
}

static bool takes (const filter_t *filter, const record_t *row)
{
    bool queue = filter->queues_count == 0;
    for (size_t i = 0; i < filter->queues_count; i++)
        queue = queue || strcmp (filter->queues[i], row->queue) == 0;
    bool status = filter->statuses_count == 0;
    for (size_t i = 0; i < filter->statuses_count; i++)
        status = status || filter->statuses[i] == row->status;
    tmq_id_t parent;
    bool part = filter->parents_count == 0;
    for (size_t i = 0; i < filter->parents_count; i++)
        part = part || (row->extra != NULL && extra_parent (row->extra, &parent) &&
                        memcmp (&parent, &filter->parents[i], sizeof (parent)) == 0);
    bool owner = filter->owners_count == 0;
    for (size_t i = 0; i < filter->owners_count; i++)
        owner = owner || strcmp (filter->owners[i], row->owner) == 0;
    return queue && status && part && owner && strcmp (filter->ns, row->ns) == 0 &&
           filter_sees (filter, row->queue, row->owner);
}

/* It may end after so many looks. */
static bool looked_enough (read_t *read, int64_t number, size_t looks)
{
    if (looks < read->vain_max || number == 1)
        return false;
    read->more = true;
    read->next_number = number;
    return true;
}

static void read_list (const rig_t *self, read_t *read)
{
    int64_t from = read->before_number == 0 ? (int64_t) self->rows_end : read->before_number;
    size_t looks = 0;
    read->more = false;
    read->next_number = 0;
    for (int64_t i = from - 1; i > 0; i--) {
        bool wanted = self->rows[i] != NULL && takes (&read->filter, self->rows[i]);
        looks += !wanted || read->kind == READ_COUNT;
        if (!wanted || read->kind == READ_COUNT) {
            read->count += wanted;
            if (looked_enough (read, i, looks))
                return;
            continue;
        }
        if (read->records_count == read->limit) {
            read->more = true;
            return;
        }
        read->records = memory_resize (read->records, read->records_count + 1, sizeof (record_t *));
        record_t copy = *self->rows[i];
        copy.payload = copy.result = NULL;
        read->records[read->records_count++] = record_new (&copy);
    }
}

static void read_lasting (const rig_t *self, read_t *read)
{
    int64_t from = read->before_number == 0 ? (int64_t) self->rows_end : read->before_number;
    read->written = self->written;
    read->more = false;
    for (int64_t i = from - 1; i > 0 && !read->more; i--) {
        const record_t *row = self->rows[i];
        if (row == NULL || !record_is_lasting (row) || strcmp (row->ns, read->filter.ns) != 0)
            continue;
        read->more = read->records_count == read->limit;
        if (read->more)
            return;
        read->records = memory_resize (read->records, read->records_count + 1, sizeof (record_t *));
        record_t copy = *row;
        copy.payload = copy.result = NULL;
        read->records[read->records_count++] = record_new (&copy);
    }
}

static void read_resolve (const rig_t *self, read_t *read)
{
    for (size_t i = 1; i < self->rows_end; i++) {
        if (self->rows[i] != NULL && id_ends_with (&self->rows[i]->id, read->suffix) &&
            strcmp (self->rows[i]->ns, read->filter.ns) == 0 &&
            filter_sees (&read->filter, self->rows[i]->queue, self->rows[i]->owner)) {
            read->id = self->rows[i]->id;
            read->count++;
        }
    }
}

static void read_events (const rig_t *self, read_t *read)
{
    size_t bytes = 0;
    read->first_seq = self->events_from;
    for (uint64_t no = 1; no <= self->written && !read->more; no++) {
        const batch_t *batch = self->batches[no];
        for (size_t i = 0; batch != NULL && i < batch->blocks_count; i++) {
            const event_block_t *block = &batch->blocks[i];
            bool wanted = strcmp (block->ns, read->filter.ns) == 0 &&
                          block->first_seq + block->count - 1 > read->after_seq &&
                          block->first_seq >= self->events_from;
            if (!wanted)
                continue;
            if (bytes >= read->limit) {
                read->more = true;
                break;
            }
            read->blocks =
                memory_resize (read->blocks, read->blocks_count + 1, sizeof (*read->blocks));
            event_block_t *copy = &read->blocks[read->blocks_count++];
            *copy = *block;
            copy->ns = memory_text (block->ns);
            copy->list = buf_keep (block->list);
            bytes += buf_length (block->list);
        }
    }
}

/* The chain of a task's events, oldest first, all of them. */
static void read_history (const rig_t *self, read_t *read)
{
    bytes_t out = BYTES_INIT;
    for (uint64_t no = 1; no <= self->written; no++) {
        const batch_t *batch = self->batches[no];
        for (size_t i = 0; batch != NULL && i < batch->blocks_count; i++) {
            Taskmq__EventList *list = taskmq__event_list__unpack (
                NULL, buf_length (batch->blocks[i].list), buf_bytes (batch->blocks[i].list));
            for (size_t k = 0; k < list->n_events; k++)
                if (memcmp (list->events[k]->task_id.data, read->id.bytes, 16) == 0)
                    bytes_append_message (&out, 1, &list->events[k]->base);
            taskmq__event_list__free_unpacked (list, NULL);
        }
    }
    read->list = buf_new (out.data, out.length);
    read->before_seq = 0;
    bytes_free (&out);
}

static void read_attempts (const rig_t *self, read_t *read)
{
    read->attempts = memory_zero (read->limit, sizeof (attempt_t));
    for (uint64_t no = 1; no <= self->written; no++) {
        const batch_t *batch = self->batches[no];
        for (size_t i = 0; batch != NULL && i < batch->attempts_count; i++) {
            const attempt_t *row = &batch->attempts[i];
            if (row->number != read->task_number || row->attempt <= read->after_attempt)
                continue;
            read->more = read->attempts_count == read->limit;
            if (read->more)
                return;
            read->attempts[read->attempts_count++] = *row;
        }
    }
}

static bool run_read (rig_t *self)
{
    read_t *read = engine_read_next (self->engine);
    if (read == NULL)
        return false;
    self->reads++;
    read->away = self->away;
    switch (self->away ? READ_SEARCH : read->kind) {
    case READ_LIST:
    case READ_COUNT: read_list (self, read); break;
    case READ_RESOLVE: read_resolve (self, read); break;
    case READ_EVENTS: read_events (self, read); break;
    case READ_HISTORY: read_history (self, read); break;
    case READ_ROWS: row_list_page (&self->kind_rows, read); break;
    case READ_ATTEMPTS: read_attempts (self, read); break;
    case READ_LASTING:
        read->error = self->damaged; /* the store says why; here it counts that there is one */
        if (!self->damaged)
            read_lasting (self, read);
        self->lasting_read += read->records_count;
        break;
    case READ_SEARCH: break; /* the test fills it in, or nothing is found */
    case READ_SINCE: read->seq = (uint64_t) read->since_ms; break; /* as the test wants it */
    default: fail_msg ("a read that the rig does not know");
    }
    if (self->away)
        engine_set_away (self->engine, true, self->now);
    engine_read_done (self->engine, read, self->now);
    return true;
}

/* Life. */

rig_t *rig_new_with (const engine_config_t *config)
{
    rig_t *self = memory_zero (1, sizeof (*self));
    self->config = *config;
    memset (self->config.seed, 7, sizeof (self->config.seed));
    self->now = (now_t){1000000, 1700000000000};
    self->boot = (boot_t){.generation = 77, .epoch = 1, .newest_id_ms = 1};
    for (size_t i = 0; i < RIG_PEERS; i++)
        self->peers[i] = (rig_peer_t){.id = i + 1, .identity = "uid:0", .next_request = 1};
    self->engine = engine_new (&self->config);
    engine_boot (self->engine, &self->boot, self->now);
    engine_ready (self->engine, self->now);
    return self;
}

rig_t *rig_new (void)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    return rig_new_with (&config);
}

void rig_free (rig_t *self)
{
    engine_free (self->engine);
    for (size_t i = 0; i < RIG_TABLE_MAX; i++) {
        batch_free (self->batches[i]);
        record_free (self->rows[i]);
        removal_clear (&self->tombstones[i]);
    }
    row_list_free (&self->kind_rows);
    policy_drop (self->policy);
    for (size_t i = 0; i < self->kept_count; i++)
        taskmq__broker_message__free_unpacked (self->kept[i], NULL);
    for (size_t i = 0; i < self->lists_count; i++)
        taskmq__event_list__free_unpacked (self->lists[i], NULL);
    for (size_t i = 0; i < self->bodies_count; i++)
        buf_drop (self->bodies[i]);
    for (size_t i = 0; i < RIG_PEERS; i++)
        free (self->peers[i].items);
    free (self->kept);
    free (self->lists);
    free (self->bodies);
    free (self);
}

int rig_setup (void **state)
{
    rig_t *rig = rig_new ();
    *state = rig;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_use_request_id (1);
    return 0;
}

int rig_teardown (void **state)
{
    rig_free (*state);
    return 0;
}

/* Batches. */

void rig_take (rig_t *self)
{
    for (batch_t *batch = engine_batch_take (self->engine, self->now); batch != NULL;
         batch = engine_batch_take (self->engine, self->now)) {
        assert_true (batch->no < RIG_TABLE_MAX);
        self->batches[batch->no] = batch;
        self->committed = batch->no;
    }
}

void rig_durable (rig_t *self)
{
    for (uint64_t no = self->durable + 1; self->keep != NULL && no <= self->committed; no++)
        self->keep (self->keep_context, self->batches[no]);
    self->durable = self->committed;
    engine_durable (self->engine, self->durable, self->now);
}

void rig_commit (rig_t *self)
{
    rig_take (self);
    rig_durable (self);
}

static void apply_durable (rig_t *self)
{
    while (self->written < self->durable)
        if (self->batches[++self->written] != NULL) {
            apply_batch (self, self->batches[self->written]);
            boot_raise (&self->boot, self->batches[self->written]);
        }
}

void rig_write (rig_t *self)
{
    apply_durable (self);
    engine_written (self->engine, self->written);
}

/* What leaves. */

static rig_item_t *add_item (rig_peer_t *peer)
{
    peer->items = memory_grow (peer->items, &peer->capacity, peer->count, sizeof (rig_item_t));
    rig_item_t *item = &peer->items[peer->count++];
    *item = (rig_item_t){0};
    return item;
}

static const uint8_t *take_body (rig_item_t *item, const uint8_t *at, size_t bytes)
{
    item->body = at;
    item->body_bytes = bytes;
    return at + bytes;
}

static void keep_batch (rig_t *self, rig_peer_t *peer, const Taskmq__EventBatch *batch,
                        const uint8_t *bytes)
{
    rig_item_t *item = add_item (peer);
    item->events = batch;
    item->body_bytes = batch->list_bytes;
    assert_int_equal (batch->count == 0, batch->list_bytes == 0);
    if (batch->count == 0)
        return;
    Taskmq__EventList *list = taskmq__event_list__unpack (NULL, batch->list_bytes, bytes);
    assert_non_null (list);
    assert_int_equal (list->n_events, batch->count);
    self->lists = memory_grow (self->lists, &self->lists_capacity, self->lists_count,
                               sizeof (Taskmq__EventList *));
    self->lists[self->lists_count++] = list;
    item->list = list;
}

static void keep_events (rig_t *self, rig_peer_t *peer, const Taskmq__BrokerMessage *message,
                         buf_t *body)
{
    size_t used = 0;
    for (size_t i = 0; i < message->n_events; i++) {
        assert_true (used + message->events[i]->list_bytes <= buf_length (body));
        keep_batch (self, peer, message->events[i], buf_bytes (body) + used);
        used += message->events[i]->list_bytes;
    }
    assert_int_equal (used, buf_length (body));
}

static size_t task_bodies (const Taskmq__Task *task)
{
    return task->body + (task->error != NULL ? task->error->body : 0);
}

static void keep_lists (rig_peer_t *peer, const Taskmq__BrokerMessage *message, buf_t *body)
{
    const uint8_t *at = buf_bytes (body);
    for (size_t i = 0; i < message->n_replies; i++) {
        rig_item_t *item = add_item (peer);
        item->reply = message->replies[i];
        if (item->reply->body_case == TASKMQ__REPLY__BODY_TASK)
            at = take_body (item, at, task_bodies (item->reply->task));
        else if (item->reply->body_case == TASKMQ__REPLY__BODY_ANSWER_PAGE)
            at = take_body (item, at, item->reply->answer_page->body);
        if (item->reply->body_case == TASKMQ__REPLY__BODY_SCHEDULE)
            at = take_body (item, at, item->reply->schedule->body);
        else if (item->reply->body_case == TASKMQ__REPLY__BODY_VALUE)
            at = take_body (item, at, item->reply->value->body);
        else if (item->reply->body_case == TASKMQ__REPLY__BODY_ITEM_PAGE)
            at = take_body (item, at, item->reply->item_page->body);
        else if (item->reply->body_case == TASKMQ__REPLY__BODY_TURN_PAGE)
            at = take_body (item, at, item->reply->turn_page->body);
        else if (item->reply->body_case == TASKMQ__REPLY__BODY_BLOB_PART)
            at = take_body (item, at, item->reply->blob_part->body);
        else if (item->reply->body_case == TASKMQ__REPLY__BODY_CHECKPOINT_STATE)
            at = take_body (item, at, item->reply->checkpoint_state->body);
    }
    for (size_t i = 0; i < message->n_assignments; i++) {
        rig_item_t *item = add_item (peer);
        item->assignment = message->assignments[i];
        at = take_body (item, at, item->assignment->payload_bytes);
    }
    for (size_t i = 0; i < message->n_cancels; i++)
        add_item (peer)->cancel = message->cancels[i];
    for (size_t i = 0; i < message->n_drains; i++)
        add_item (peer)->drain = message->drains[i];
    for (size_t i = 0; i < message->n_notices; i++)
        add_item (peer)->notice = message->notices[i];
    for (size_t i = 0; i < message->n_answers; i++)
        add_item (peer)->answers = message->answers[i];
    assert_ptr_equal (at, buf_bytes (body) + buf_length (body));
}

static void keep_message (rig_t *self, rig_peer_t *peer, const output_t *output)
{
    assert_true (output->envelope_bytes > 0 && output->envelope_bytes <= TMQ_ENVELOPE_BYTES_MAX);
    assert_true (buf_length (output->body) <= TMQ_FRAME_BYTES_MAX);
    Taskmq__BrokerMessage *message =
        taskmq__broker_message__unpack (NULL, output->envelope_bytes, output->envelope);
    assert_non_null (message);
    self->kept = memory_grow (self->kept, &self->kept_capacity, self->kept_count,
                              sizeof (Taskmq__BrokerMessage *));
    self->kept[self->kept_count++] = message;
    self->bodies =
        memory_grow (self->bodies, &self->bodies_capacity, self->bodies_count, sizeof (buf_t *));
    self->bodies[self->bodies_count++] = buf_keep (output->body);
    self->messages++;
    if (message->n_events > 0)
        keep_events (self, peer, message, output->body);
    else if (message->snapshot != NULL)
        add_item (peer)->snapshot = message->snapshot;
    else if (message->gap != NULL)
        add_item (peer)->gap = message->gap;
    else
        keep_lists (peer, message, output->body);
}

bool rig_outputs_round (rig_t *self)
{
    output_t output;
    while (engine_output_next (self->engine, &output)) {
        assert_true (output.peer >= 1 && output.peer <= RIG_PEERS);
        rig_peer_t *peer = &self->peers[output.peer - 1];
        if (peer->refuse && peer->allow > 0) {
            peer->allow--;
            keep_message (self, peer, &output);
        } else if (peer->refuse) {
            self->refused++;
            engine_output_failed (self->engine, &output, self->now);
        } else {
            keep_message (self, peer, &output);
        }
    }
    return engine_has_output (self->engine);
}

void rig_outputs (rig_t *self)
{
    while (rig_outputs_round (self))
        continue;
}

/* One round of the server's loop; false when nothing moved. */
static bool settle_once (rig_t *self, bool write)
{
    size_t moved = self->loads + self->messages + self->reads + self->refused;
    uint64_t committed = self->committed;
    uint64_t written = self->written;
    key_list_t keys = {0};
    engine_want_payloads (self->engine, &keys);
    load (self, &keys);
    engine_round (self->engine);
    engine_tick (self->engine, self->now, self->heard_ms != 0 ? self->heard_ms : self->now.mono_ms,
                 0);
    rig_commit (self);
    if (write)
        rig_write (self);
    rig_outputs (self);
    while (run_read (self))
        rig_outputs (self);
    return self->loads + self->messages + self->reads + self->refused != moved ||
           self->committed != committed || self->written != written;
}

static void settle (rig_t *self, bool write)
{
    while (settle_once (self, write))
        continue;
}

void rig_settle (rig_t *self)
{
    settle (self, true);
}

void rig_run (rig_t *self)
{
    settle (self, false);
}

void rig_advance (rig_t *self, int64_t ms)
{
    while (ms > 0) {
        int64_t step = ms < 1000 ? ms : 1000;
        self->now.mono_ms += step;
        self->now.wall_ms += step;
        ms -= step;
        settle (self, true);
    }
}

/* Restarts. */

static void fill (rig_t *self)
{
    uint64_t last_seq[2] = {0};
    static const char *const SPACES[] = {"default", "other"};
    for (size_t i = 0; i < self->kind_rows.count; i++)
        if (row_kind_home (self->kind_rows.rows[i].kind) == ROW_HOME_LIVE)
            engine_restore_row (self->engine, &self->kind_rows.rows[i]);
    for (uint64_t no = 1; no <= self->durable; no++) {
        const batch_t *batch = self->batches[no];
        for (size_t i = 0; batch != NULL && i < batch->blocks_count; i++)
            for (size_t k = 0; k < 2; k++)
                if (strcmp (batch->blocks[i].ns, SPACES[k]) == 0)
                    last_seq[k] = batch->blocks[i].first_seq + batch->blocks[i].count - 1;
    }
    for (size_t i = 1; i < self->rows_end; i++) {
        if (self->rows[i] == NULL)
            continue;
        if (self->boot.last_number < (int64_t) i)
            self->boot.last_number = (int64_t) i;
        record_t copy = *self->rows[i];
        copy.payload = copy.result = NULL;
        if (copy.status < TMQ_STATUS_COMPLETED || copy.leased)
            engine_restore (self->engine, record_new (&copy));
    }
    for (size_t k = 0; k < 2; k++)
        if (last_seq[k] > 0)
            engine_restore_ns (self->engine, SPACES[k], last_seq[k]);
    engine_ready (self->engine, self->now);
}

static void lose_batches (rig_t *self)
{
    for (uint64_t no = self->durable + 1; no <= self->committed; no++) {
        batch_free (self->batches[no]);
        self->batches[no] = NULL;
    }
}

void rig_restart (rig_t *self)
{
    rig_restart_at (self, self->now.wall_ms);
}

void rig_restart_at (rig_t *self, int64_t newest_ms)
{
    rig_write (self);
    engine_free (self->engine);
    lose_batches (self);
    for (uint64_t no = 1; no <= self->committed; no++) { /* batch numbers begin anew */
        batch_free (self->batches[no]);
        self->batches[no] = NULL;
    }
    self->committed = self->durable = self->written = 0;
    self->boot.epoch++;
    self->boot.newest_ms = newest_ms;
    self->engine = engine_new (&self->config);
    for (size_t i = 1; i < self->rows_end; i++)
        if (self->rows[i] != NULL && self->boot.last_number < (int64_t) i)
            self->boot.last_number = (int64_t) i;
    if (self->rows_end > 1)
        self->boot.newest_id_ms = RIG_IDS_MADE_MS;
    engine_access (self->engine, self->policy, self->now);
    engine_boot (self->engine, &self->boot, self->now);
    fill (self);
}

void rig_fail_commit (rig_t *self)
{
    rig_take (self);
    rig_write (self);
    rig_fail_commit_stalled (self);
}

uint64_t rig_fail_commit_stalled (rig_t *self)
{
    uint64_t kept = self->durable;
    rig_take (self);
    apply_durable (self); /* so that the engine finds it, as the store sees to */
    lose_batches (self);
    engine_reset (self->engine);
    self->durable = self->written = self->committed;
    engine_boot (self->engine, &self->boot, self->now);
    fill (self);
    return kept;
}

/* Peers. */

uint64_t rig_send (rig_t *self, size_t peer, Taskmq__Request *request, const void *body,
                   size_t body_bytes)
{
    return rig_send_judged (self, peer, request, NULL, body, body_bytes);
}

void rig_access (rig_t *self, const char *text)
{
    policy_error_t error;
    policy_t *policy = text == NULL ? NULL : policy_parse (text, strlen (text), NULL, &error);
    if (text != NULL && policy == NULL)
        fail_msg ("line %u: %s", error.line, error.text);
    engine_access (self->engine, policy, self->now);
    policy_drop (self->policy);
    self->policy = policy;
}

void rig_gather (rig_t *self)
{
    self->gathers = true;
    self->gathered = memory_alloc (TMQ_REQUESTS_MAX * sizeof (*self->gathered));
}

static void gather (rig_t *self, const Taskmq__Request *request, size_t body_bytes)
{
    assert_true (body_bytes == 0 && self->gathered_count < TMQ_REQUESTS_MAX);
    size_t bytes = taskmq__request__get_packed_size (request);
    uint8_t *packed = memory_alloc (bytes);
    taskmq__request__pack (request, packed);
    self->gathered[self->gathered_count++] = taskmq__request__unpack (NULL, bytes, packed);
    free (packed);
}

void rig_send_gathered (rig_t *self, size_t peer)
{
    rig_peer_t *from = &self->peers[peer];
    Taskmq__ClientMessage envelope = TASKMQ__CLIENT_MESSAGE__INIT;
    envelope.token = (ProtobufCBinaryData){sizeof (from->token), from->token};
    envelope.n_requests = self->gathered_count;
    envelope.requests = self->gathered;
    message_t message = {.peer = from->id, .identity = from->identity, .envelope = &envelope};
    for (size_t at = 0, upto = 0; at < self->gathered_count; at = upto) {
        key_list_t keys = {0};
        engine_round (self->engine);
        upto = engine_want (self->engine, &message, at, &keys);
        load (self, &keys);
        engine_message (self->engine, &message, at, upto, self->now);
    }
    for (size_t i = 0; i < self->gathered_count; i++)
        taskmq__request__free_unpacked (self->gathered[i], NULL);
    free (self->gathered);
    self->gathered = NULL;
    self->gathered_count = 0;
    self->gathers = false;
}

uint64_t rig_send_judged (rig_t *self, size_t peer, Taskmq__Request *request,
                          const verdict_t *items, const void *body, size_t body_bytes)
{
    request_verdict_t judged = {{TMQ_OK, NULL}, items, 0};
    verdicts_t verdicts = {{TMQ_OK, NULL}, &judged, 1, 0};
    rig_peer_t *from = &self->peers[peer];
    request->id = from->next_request++;
    if (self->owner != NULL && peer == 0 && request->op_case != TASKMQ__REQUEST__OP_HELLO)
        request->owner = (char *) self->owner;
    if (self->gathers) {
        gather (self, request, body_bytes);
        return request->id;
    }
    Taskmq__ClientMessage envelope = TASKMQ__CLIENT_MESSAGE__INIT;
    envelope.token = (ProtobufCBinaryData){sizeof (from->token), from->token};
    envelope.n_requests = 1;
    envelope.requests = &request;
    message_t message = {.peer = from->id,
                         .identity = from->identity,
                         .envelope = &envelope,
                         .body = body,
                         .body_bytes = body_bytes,
                         .verdicts = items == NULL ? NULL : &verdicts};
    key_list_t keys = {0};
    engine_round (self->engine);
    assert_int_equal (engine_want (self->engine, &message, 0, &keys), 1);
    load (self, &keys);
    engine_message (self->engine, &message, 0, 1, self->now);
    return request->id;
}

void rig_link (rig_t *self, size_t peer, const char *ns)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.namespace_ = (char *) ns;
    hello.features = self->features;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    uint64_t id = rig_send (self, peer, &request, NULL, 0);
    rig_outputs (self);
    const rig_item_t *item = rig_reply (self, peer, id);
    assert_non_null (item);
    assert_int_equal (item->reply->body_case, TASKMQ__REPLY__BODY_WELCOME);
    memcpy (self->peers[peer].token, item->reply->welcome->token.data, 16);
}

void rig_refuse_after (rig_t *self, size_t peer, size_t messages)
{
    self->peers[peer].refuse = true;
    self->peers[peer].allow = messages;
}

void rig_heed (rig_t *self, size_t peer)
{
    self->peers[peer].refuse = false;
}

void rig_forget (rig_t *self, size_t peer)
{
    self->peers[peer].count = 0;
}

const rig_item_t *rig_reply (const rig_t *self, size_t peer, uint64_t request)
{
    const rig_peer_t *to = &self->peers[peer];
    for (size_t i = to->count; i > 0; i--)
        if (to->items[i - 1].reply != NULL && to->items[i - 1].reply->id == request)
            return &to->items[i - 1];
    return NULL;
}

unsigned rig_code (const rig_t *self, size_t peer, uint64_t request)
{
    const rig_item_t *item = rig_reply (self, peer, request);
    if (item == NULL)
        fail_msg ("request %d has no reply", (int) request);
    return item->reply->code;
}

size_t rig_replies (const rig_t *self, size_t peer, uint64_t request)
{
    size_t count = 0;
    for (size_t i = 0; i < self->peers[peer].count; i++) {
        const Taskmq__Reply *reply = self->peers[peer].items[i].reply;
        count += reply != NULL && reply->id == request;
    }
    return count;
}

const rig_item_t *rig_assignment (const rig_t *self, size_t peer, size_t n)
{
    for (size_t i = 0; i < self->peers[peer].count; i++)
        if (self->peers[peer].items[i].assignment != NULL && n-- == 0)
            return &self->peers[peer].items[i];
    return NULL;
}

size_t rig_assignments (const rig_t *self, size_t peer)
{
    size_t count = 0;
    while (rig_assignment (self, peer, count) != NULL)
        count++;
    return count;
}
