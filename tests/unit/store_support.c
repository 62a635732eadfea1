/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "record_fields.h"
#include "store/events.h"
#include "support/timing.h"
#include "taskmq.pb-c.h"

enum { FIELD_EVENTS = 1 }; /* of taskmq.EventList */

/* Batches. */

tmq_id_t test_id (uint64_t number)
{
    tmq_id_t id = {{1, 2, 3, 4, 5, 6, 0x70, 0, 0x80}};
    for (unsigned i = 0; i < 4; i++) /* in the order of numbers, as UUIDv7 are */
        id.bytes[9 + i] = (uint8_t) (number >> (8 * (3 - i)));
    for (unsigned i = 0; i < 3; i++)
        id.bytes[13 + i] = (uint8_t) ((number * 2654435761u) >> (8 * i));
    return id;
}

record_t test_record (int64_t number)
{
    record_t record = {
        .number = number,
        .id = test_id ((uint64_t) number),
        .ns = "default",
        .owner = "uid:7",
        .queue = "mail",
        .session = "",
        .method = "",
        .content_type = "text/plain",
        .dedup_key = "",
        .meta = "",
        .status = TMQ_STATUS_QUEUED,
        .status_message = "",
        .priority = TMQ_PRIORITY_DEFAULT,
        .created_at = 1000 + number,
        .updated_at = 1000 + number,
        .expires_at = 100000 + number,
        .ttl_ms = 99000,
        .poll_interval_ms = 1000,
        .lease_ms = 30000,
        .backoff_ms = 1000,
        .max_attempts = 3,
        .version = 1,
        .worker = "",
        .holder = "",
        .progress_unit = "",
        .progress_message = "",
        .result_type = "",
        .error_message = "",
        .error_data = "",
    };
    memset (record.digest, (int) (number % 251) + 1, sizeof (record.digest));
    return record;
}

batch_t *batch_make (uint64_t no, int64_t wall_ms)
{
    batch_t *batch = memory_zero (1, sizeof (*batch));
    batch->no = no;
    batch->wall_ms = batch->expiry_ms = wall_ms;
    batch->inputs = 1;
    batch->bytes = 1000;
    return batch;
}

void batch_add_record (batch_t *batch, const record_t *record)
{
    batch->records = memory_resize (batch->records, batch->records_count + 1, sizeof (record_t *));
    batch->records[batch->records_count++] = record_new (record);
}

void batch_add_attempt (batch_t *batch, const attempt_t *attempt)
{
    batch->attempts =
        memory_resize (batch->attempts, batch->attempts_count + 1, sizeof (attempt_t));
    batch->attempts[batch->attempts_count++] = *attempt;
}

void batch_add_removal (batch_t *batch, const record_t *record, tmq_code_t code, int64_t at)
{
    batch->removals =
        memory_resize (batch->removals, batch->removals_count + 1, sizeof (removal_t));
    batch->removals[batch->removals_count++] = (removal_t){record->number,
                                                           record->id,
                                                           memory_text (record->ns),
                                                           code,
                                                           at,
                                                           memory_text (record->owner),
                                                           memory_text (record->queue),
                                                           0};
}

void batch_add_row (batch_t *batch, row_kind_t kind, const char *key, const char *body)
{
    batch->rows = memory_resize (batch->rows, batch->rows_count + 1, sizeof (row_t));
    batch->rows[batch->rows_count++] =
        body == NULL ? row_make_gone (kind, key, strlen (key))
                     : row_make (kind, key, strlen (key), body, strlen (body));
}

static event_block_t *batch_block (batch_t *batch, const char *ns, uint64_t seq, uint64_t pos)
{
    for (size_t i = 0; i < batch->blocks_count; i++)
        if (strcmp (batch->blocks[i].ns, ns) == 0)
            return &batch->blocks[i];
    batch->blocks = memory_resize (batch->blocks, batch->blocks_count + 1, sizeof (event_block_t));
    event_block_t *block = &batch->blocks[batch->blocks_count++];
    *block = (event_block_t){memory_text (ns), seq, pos, 0, false, buf_new ("", 0)};
    return block;
}

void batch_add_event (batch_t *batch, const char *ns, uint64_t seq, uint64_t pos, int64_t at,
                      const tmq_id_t *task, tmq_event_kind_t kind, uint64_t previous_seq)
{
    event_block_t *block = batch_block (batch, ns, seq, pos);
    assert_int_equal (block->first_seq + block->count, seq);
    assert_int_equal (block->first_pos + block->count, pos);
    Taskmq__Event event = TASKMQ__EVENT__INIT;
    event.seq = seq;
    event.at = (uint64_t) at;
    event.kind = kind;
    event.task_id = (ProtobufCBinaryData){sizeof (task->bytes), (uint8_t *) task->bytes};
    event.queue = "mail";
    event.previous_seq = previous_seq;
    bytes_t packed = BYTES_INIT;
    bytes_append (&packed, buf_bytes (block->list), buf_length (block->list));
    bytes_append_message (&packed, FIELD_EVENTS, &event.base);
    buf_drop (block->list);
    block->list = buf_new (packed.data, packed.length);
    block->count++;
    bytes_free (&packed);
}

/* Directories. */

void directory_make (char path[64])
{
    snprintf (path, 64, "store-XXXXXX");
    assert_non_null (mkdtemp (path));
}

void directory_remove (const char *path)
{
    DIR *directory = opendir (path);
    if (directory == NULL)
        return;
    for (struct dirent *entry = readdir (directory); entry != NULL; entry = readdir (directory)) {
        char file[512];
        snprintf (file, sizeof (file), "%s/%s", path, entry->d_name);
        unlink (file);
    }
    closedir (directory);
    rmdir (path);
}

/* A store under test. */

const device_t *fixture_device;
const fixture_needs_t *fixture_needs;

static bool has_needs (const fixture_t *self)
{
    return fixture_needs != NULL && strcmp (fixture_needs->uri, self->uri) == 0;
}

fixture_t *fixture_new (const char *uri)
{
    fixture_t *self = memory_zero (1, sizeof (*self));
    self->uri = uri;
    self->options = (store_options_t) STORE_OPTIONS_INIT;
    self->options.journal_bytes = 1 << 20;
    self->options.journal_device = fixture_device;
    if (strcmp (uri, "memory") != 0)
        directory_make (self->directory);
    self->options.directory = self->directory;
    if (has_needs (self))
        fixture_needs->begin (self);
    return self;
}

void fixture_open (fixture_t *self)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = store_open (&self->store, self->uri, &self->options, &self->boot, &error);
    if (code == STORE_OK)
        code = store_own (self->store, -1, &self->boot, &error);
    if (code != STORE_OK)
        fail_msg ("store_open: %d %s", code, error.text);
    assert_int_equal (store_reader_open (&self->reader, self->store, &error), STORE_OK);
    self->batch = 0; /* numbers of batches begin anew with each start */
}

void fixture_close (fixture_t *self)
{
    store_error_t error = {STORE_OK, ""};
    store_reader_close (&self->reader);
    store_code_t code = store_close (&self->store, &error);
    if (code != STORE_OK)
        fail_msg ("store_close: %d %s", code, error.text);
}

int fixture_setup (void **state)
{
    fixture_t *self = fixture_new (*state);
    fixture_open (self);
    *state = self;
    return 0;
}

int fixture_teardown (void **state)
{
    fixture_t *self = *state;
    if (self->store != NULL)
        fixture_close (self);
    if (has_needs (self))
        fixture_needs->end (self);
    if (self->directory[0] != '\0')
        directory_remove (self->directory);
    free (self);
    return 0;
}

batch_t *fixture_batch (fixture_t *self)
{
    self->batch++;
    return batch_make (self->batch, 5000 + (int64_t) self->batch);
}

void fixture_commit (fixture_t *self, batch_t *batch)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = store_commit (self->store, &batch, 1, &error);
    if (code != STORE_OK)
        fail_msg ("store_commit: %d %s", code, error.text);
}

void fixture_change (fixture_t *self, batch_t *batch, record_t *record, tmq_event_kind_t kind)
{
    self->seq++;
    self->pos++;
    batch_add_event (batch, record->ns, self->seq, self->pos, batch->wall_ms, &record->id, kind,
                     record->last_seq);
    record->last_seq = self->seq;
    record->version++;
    batch_add_record (batch, record);
}

void fixture_submit (fixture_t *self, int64_t from, int64_t to)
{
    batch_t *batch = fixture_batch (self);
    for (int64_t number = from; number <= to; number++) {
        record_t record = test_record (number);
        fixture_change (self, batch, &record, TMQ_EVENT_SUBMITTED);
    }
    fixture_commit (self, batch);
}

void fixture_settle (fixture_t *self)
{
    store_flush (self->store);
    WAIT_FOR (store_written (self->store) >= self->batch, TIMING_PATIENCE_MS);
}

record_t *fixture_load (fixture_t *self, const char *ns, const tmq_id_t *id)
{
    store_error_t error = {STORE_OK, ""};
    lookup_t key = {.kind = LOOKUP_ID, .bodies = true, .ns = ns, .id = *id};
    store_code_t code = store_load (self->store, &key, 1, &error);
    if (code != STORE_OK)
        fail_msg ("store_load: %d %s", code, error.text);
    return key.record;
}

void fixture_read (fixture_t *self, read_t *read)
{
    if (store_reader_run (self->reader, read) != STORE_OK)
        fail_msg ("store_reader_run: %d %s", read->error, read->error_text);
}

/* Comparing. */

void assert_body (const buf_t *body, const char *bytes, size_t length)
{
    assert_int_equal (buf_length (body), length);
    assert_memory_equal (buf_bytes (body), bytes, length);
}

void assert_same_record (const record_t *a, const record_t *b, bool bodies)
{
    assert_record_kept (a, b, bodies, "in the store");
}

size_t list_seqs (const buf_t *list, uint64_t *seqs, size_t max)
{
    event_walk_t walk = event_walk (buf_bytes (list), buf_length (list));
    packed_event_t event;
    size_t count = 0;
    while (event_walk_next (&walk, &event) && count < max)
        seqs[count++] = event.seq;
    assert_false (walk.damaged);
    return count;
}
