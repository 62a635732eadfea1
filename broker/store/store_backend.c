/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The contract's functions: each hands over to the backend that the URI named. */
#include "store/store_backend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/patience.h"

enum { AWAY_LOOK_MS = 50 /* between two tries of a patient reader */ };

static const store_backend_t *const BACKENDS[] = {
    &store_backend_sqlite,
    &store_backend_memory,
    &store_backend_postgresql,
};

store_code_t store_open (store_t **out, const char *uri, const store_options_t *options,
                         boot_t *boot, store_error_t *error)
{
    for (size_t i = 0; i < sizeof (BACKENDS) / sizeof (BACKENDS[0]); i++)
        if (strcmp (uri, BACKENDS[i]->uri) == 0)
            return BACKENDS[i]->open (out, options, boot, error);
    return store_fail (error, STORE_ERROR_ACCESS, "'%s' is no store: sqlite, memory or postgresql",
                       uri);
}

store_code_t store_close (store_t **self_p, store_error_t *error)
{
    store_t *self = *self_p;
    *self_p = NULL;
    return self->backend->close (self, error);
}

store_code_t store_own (store_t *self, int stop_fd, boot_t *boot, store_error_t *error)
{
    return self->backend->own == NULL ? STORE_OK : self->backend->own (self, stop_fd, boot, error);
}

int64_t store_valid_until (store_t *self)
{
    return self->backend->valid_until == NULL ? INT64_MAX : self->backend->valid_until (self);
}

int64_t store_away_ms (store_t *self)
{
    return self->backend->away_ms == NULL ? 0 : self->backend->away_ms (self);
}

size_t store_inline_inputs (store_t *self)
{
    return self->backend->inline_inputs;
}

store_code_t store_live (store_t *self, const store_live_visitor_t *visitor, store_error_t *error)
{
    return self->backend->live (self, visitor, error);
}

store_code_t store_commit (store_t *self, batch_t *const *batches, size_t count,
                           store_error_t *error)
{
    assert (count > 0 && count <= STORE_COMMIT_BATCHES_MAX);
    return self->backend->commit (self, batches, count, error);
}

uint64_t store_written (store_t *self)
{
    return self->backend->written (self);
}

void store_flush (store_t *self)
{
    self->backend->flush (self);
}

void store_exported (store_t *self, uint64_t pos)
{
    self->backend->exported (self, pos);
}

store_code_t store_load (store_t *self, lookup_t *keys, size_t count, store_error_t *error)
{
    return self->backend->load (self, keys, count, error);
}

store_code_t store_reader_open (store_reader_t **out, store_t *store, store_error_t *error)
{
    return store->backend->reader_open (out, store, error);
}

void store_reader_close (store_reader_t **self_p)
{
    store_reader_t *self = *self_p;
    *self_p = NULL;
    if (self != NULL)
        self->store->backend->reader_close (self);
}

void store_reader_be_patient (store_reader_t *self)
{
    self->patient = true;
}

void store_end_patience (store_t *self)
{
    atomic_store (&self->hurries, true);
}

store_code_t store_reader_run (store_reader_t *self, read_t *read)
{
    assert (read->kind == READ_EXPORT || read->kind == READ_ROWS || read->kind == READ_STANDING ||
            read->kind == READ_ATTEMPTS || read->kind == READ_WHOLE || read->kind == READ_BLOCKS ||
            read->filter.ns != NULL);
    store_error_t error = {STORE_OK, ""};
    read->written = store_written (self->store);
    store_code_t code = self->store->backend->reader_run (self, read, &error);
    while (code == STORE_ERROR_AWAY && self->patient && !atomic_load (&self->store->hurries)) {
        read_clear (read);
        nanosleep (&(struct timespec){.tv_nsec = AWAY_LOOK_MS * 1000000}, NULL);
        read->written = store_written (self->store);
        code = self->store->backend->reader_run (self, read, &error);
    }
    read->error = (int) code;
    read->away = code == STORE_ERROR_AWAY;
    if (code != STORE_OK) {
        read_clear (read);
        snprintf (read->error_text, sizeof (read->error_text), "%.250s", error.text);
    }
    return code;
}

store_code_t store_backup (store_t *self, store_backup_t *backup, store_error_t *error)
{
    if (self->backend->backup == NULL)
        return store_fail (error, STORE_ERROR_FOREIGN,
                           "store %s keeps nothing that could be copied", self->backend->uri);
    return self->backend->backup (self, backup, error);
}

store_code_t store_vacuum (store_t *self, bool begin, store_vacuum_t *out, store_error_t *error)
{
    *out = (store_vacuum_t){0};
    if (self->backend->vacuum == NULL)
        return store_fail (error, STORE_ERROR_FOREIGN, "store %s has no file", self->backend->uri);
    return self->backend->vacuum (self, begin, out, error);
}

const vault_t *store_vault (store_t *self)
{
    return self->backend->vault == NULL ? NULL : self->backend->vault (self);
}

store_code_t store_due (store_t *self, store_sweep_t *sweep, store_error_t *error)
{
    sweep->found = (due_t){.written = store_written (self)};
    sweep->more = false;
    store_code_t code = self->backend->due (self, sweep, error);
    if (code != STORE_OK)
        due_clear (&sweep->found);
    return code;
}

void store_forgotten (store_t *self, forgotten_t *out)
{
    *out = (forgotten_t){0};
    if (self->backend->forgotten != NULL)
        self->backend->forgotten (self, out);
}

store_code_t store_check (store_t *self, store_error_t *error)
{
    return self->backend->check != NULL ? self->backend->check (self, error) : STORE_OK;
}

void store_stats (store_t *self, store_stats_t *out)
{
    self->backend->stats (self, out);
}
