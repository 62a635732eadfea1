/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "search_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "support/timing.h"

static void store_failed (const store_error_t *error)
{
    fail_msg ("%s", error->text);
}

void search_stage_start (search_stage_t *self)
{
    indexer_options_t options = {.store = self->f->store,
                                 .directory = self->directory,
                                 .generation = self->f->boot.generation,
                                 .last_pos = self->f->pos,
                                 .free_bytes_min = &self->free_bytes_min,
                                 .failed = store_failed};
    self->indexer = indexer_new (&options);
    self->finder = finder_new (self->f->store, self->indexer, self->directory);
    assert_non_null (self->indexer);
    assert_non_null (self->finder);
}

void search_stage_stop (search_stage_t *self)
{
    finder_free (&self->finder);
    indexer_free (&self->indexer);
}

int search_stage_setup (void **state)
{
    search_stage_t *self = memory_zero (1, sizeof (*self));
    if (fixture_setup (state) != 0)
        return -1;
    self->f = *state;
    snprintf (self->directory, sizeof (self->directory), "search-XXXXXX");
    assert_non_null (mkdtemp (self->directory));
    search_stage_start (self);
    *state = self;
    return 0;
}

void search_stage_path (char out[128], const search_stage_t *self, const char *name)
{
    snprintf (out, 128, "%s/%s", self->directory, name);
}

void search_stage_remove (const search_stage_t *self)
{
    static const char *const names[] = {"search.db", "search.db-wal", "search.db-shm"};
    char path[128];
    for (size_t i = 0; i < 3; i++) {
        search_stage_path (path, self, names[i]);
        unlink (path);
    }
}

int search_stage_teardown (void **state)
{
    search_stage_t *self = *state;
    void *fixture = self->f;
    search_stage_stop (self);
    search_stage_remove (self);
    rmdir (self->directory);
    free (self);
    return fixture_teardown (&fixture);
}

record_t search_stage_put (search_stage_t *self, int64_t number, const char *ns,
                           const char *payload)
{
    record_t record = test_record (number);
    record.ns = ns;
    record.payload = buf_new (payload, strlen (payload));
    record.payload_bytes = (uint32_t) strlen (payload);
    batch_t *batch = fixture_batch (self->f);
    fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (self->f, batch);
    buf_drop (record.payload);
    record.payload = NULL;
    return record;
}

int64_t search_stage_mono_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

read_t search_stage_page (const char *ns, const char *text, int64_t below, size_t limit,
                          bool ranked)
{
    char error[SEARCH_ERROR_SIZE];
    search_t *wanted = search_new ();
    assert_int_equal (search_query_parse (&wanted->query, text, error), TMQ_OK);
    wanted->ranked = ranked;
    read_t read = {.kind = READ_SEARCH,
                   .filter = {.ns = ns},
                   .before_number = below,
                   .limit = limit,
                   .vain_max = 20000,
                   .search = wanted};
    return read;
}

void search_stage_settle (search_stage_t *self)
{
    fixture_settle (self->f);
    /* The machine may be slow. */
    search_t wait = {.behind = true};
    WAIT_FOR ((indexer_wait (self->indexer, search_stage_mono_ms () + TIMING_PATIENCE_MS, &wait),
               !wait.behind && !wait.building),
              TIMING_PATIENCE_MS);
}

void search_stage_ask (search_stage_t *self, read_t *read)
{
    read_t *back = NULL;
    finder_submit (self->finder, read);
    WAIT_FOR ((back = finder_done (self->finder)) != NULL, TIMING_PATIENCE_MS);
    assert_ptr_equal (back, read);
}

void search_stage_run (search_stage_t *self, read_t *read)
{
    search_stage_settle (self);
    search_stage_ask (self, read);
}

void search_stage_done (read_t *read)
{
    read_clear (read);
    search_free (read->search);
}

size_t search_stage_found (search_stage_t *self, const char *ns, const char *text)
{
    read_t read = search_stage_page (ns, text, 0, 100, false);
    search_stage_run (self, &read);
    if (read.error != 0)
        fail_msg ("%s", read.error_text);
    size_t count = read.records_count;
    search_stage_done (&read);
    return count;
}
