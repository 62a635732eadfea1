/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The state that the store keeps, and the commits of what was applied. */
#include "server_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "log/log.h"
#include "news.h"
#include "start_stop.h"
#include "timestamp.h"

enum {
    /* A small commit is the server's own if the last one took no longer: who needs none shall not
     * wait (A16). */
    INLINE_US_MAX = 10000
};

static void restore_task (void *context, record_t *record)
{
    const server_t *self = context;
    engine_restore (self->engine, record);
}

static void restore_row (void *context, const row_t *row)
{
    server_t *self = context;
    if (!notes_restore (&self->notes, row))
        engine_restore_row (self->engine, row);
}

static void restore_ns (void *context, const char *name, uint64_t last_seq)
{
    const server_t *self = context;
    engine_restore_ns (self->engine, name, last_seq);
}

void server_take_forgotten (server_t *self)
{
    forgotten_t forgotten;
    store_forgotten (self->options.store, &forgotten);
    engine_forgotten (self->engine, &forgotten);
    free (forgotten.list);
}

store_code_t server_stream_in (server_t *self, store_error_t *error)
{
    store_live_visitor_t visitor = {restore_task, restore_ns, self, restore_row};
    engine_boot (self->engine, &self->boot, self->now);
    store_code_t code = store_live (self->options.store, &visitor, error);
    if (code == STORE_OK) {
        server_take_forgotten (self);
        engine_ready (self->engine, self->now);
        news_schedules (self->engine);
    }
    return code;
}

/* One that waits for a database hears of a stop, as a start does. */
static store_code_t stream_in_again (server_t *self, store_error_t *error)
{
    start_stop_t stop = {.text = "stopped while the state was read from the store again, which "
                                 "did not hear of it in time",
                         .told = self->stopping};
    if (tenure_has_end (&self->tenure))
        (void) start_stop_begin (&stop);
    store_code_t code = server_stream_in (self, error);
    start_stop_end (&stop);
    return code;
}

/* The batch found no space and nothing of it was kept: what was applied never happened (A21). */
static void start_over (server_t *self, const char *text)
{
    store_error_t error = {STORE_OK, ""};
    log_write (LOG_LEVEL_ERROR, "COMMIT-FULL",
               "no space for a commit: unanswered requests are dropped, the durable state is kept",
               LOG_FIELDS (LOG_TEXT ("error", text)));
    self->counts.commits_failed++;
    self->boot.last_pos = self->pos_before; /* nothing of it was told: no events are missing */
    disk_commit_failed (&self->disk, self->now.mono_ms);
    self->commit_at = self->now.mono_ms + FULL_RETRY_MS;
    engine_reset (self->engine);
    engine_set_full (self->engine, true);
    if (stream_in_again (self, &error) != STORE_OK)
        exits_store_failed (&error);
    sweeper_reset (self->sweeper);
    self->sweep_open = false;
}

void server_commit_done (server_t *self, const commit_result_t *result)
{
    self->commit_us = result->ended_us - result->begun_us;
    peak_add (&self->stall, self->now.mono_ms, self->commit_us);
    if (result->code == STORE_OK) {
        self->durable_batch = result->batch;
        feed_publish (self->options.feed);
        engine_durable (self->engine, result->batch, self->now);
        log_desk_durable (self->logs, result->batch);
        trace_committed (self->trace, result);
        return;
    }
    feed_drop (self->options.feed);
    log_desk_drop (self->logs);
    if (result->code == STORE_ERROR_FULL) {
        start_over (self, result->text);
        return;
    }
    store_error_t error;
    error.code = result->code;
    memcpy (error.text, result->text, sizeof (error.text));
    exits_store_failed (&error);
}

/* Takes the batches that wait, as many as go into one commit. */
static size_t take_batches (server_t *self, batch_t *batches[STORE_COMMIT_BATCHES_MAX],
                            size_t *inputs)
{
    size_t count = 0;
    size_t bytes = 0;
    *inputs = 0;
    self->pos_before = self->boot.last_pos;
    while (count < STORE_COMMIT_BATCHES_MAX && bytes < STORE_COMMIT_BYTES_MAX) {
        batch_t *batch = engine_batch_take (self->engine, self->now);
        if (batch == NULL)
            return count;
        boot_raise (&self->boot, batch);
        feed_hold (self->options.feed, batch);
        log_desk_hold (self->logs, batch);
        texts_note (&self->texts, batch);
        bytes += batch->bytes;
        *inputs += batch->inputs;
        batches[count++] = batch;
    }
    self->busy = true; /* others may wait */
    return count;
}

void server_commit (server_t *self)
{
    if (!committer_idle (self->committer) || self->now.mono_ms < self->commit_at)
        return;
    batch_t *batches[STORE_COMMIT_BATCHES_MAX];
    size_t inputs;
    size_t count = take_batches (self, batches, &inputs);
    self->committing = count > 0;
    if (count == 0)
        return;
    if (self->sweep_open)
        sweeper_decided (self->sweeper, self->sweep_removed, batches[count - 1]->no);
    self->sweep_open = false;
    bool alone = self->inline_inputs > 0 && inputs <= self->inline_inputs &&
                 self->last_inputs <= self->inline_inputs && self->commit_us <= INLINE_US_MAX;
    self->last_inputs = inputs;
    if (!alone) {
        self->committed_us = clock_us (CLOCK_MONOTONIC);
        committer_submit (self->committer, batches, count);
        return;
    }
    commit_result_t result;
    committer_commit (self->committer, batches, count, &result);
    self->counts.commits_inline++;
    server_commit_done (self, &result);
}
