/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of functions that a backend fills. A backend is one row in store.c; its object begins
 * with a store_t, its readers with a store_reader_t. The rules are those of store.h. */
#ifndef TASKMQ_STORE_BACKEND_H
#define TASKMQ_STORE_BACKEND_H

#include <stdatomic.h>

#include "store/store.h"

typedef struct store_backend {
    const char *uri;
    store_code_t (*open) (store_t **out, const store_options_t *options, boot_t *boot,
                          store_error_t *error);
    store_code_t (*close) (store_t *self, store_error_t *error); /* frees self in every case */
    /* NULL: it is owned since it was opened, for good, and never out of reach */
    store_code_t (*own) (store_t *self, int stop_fd, boot_t *boot, store_error_t *error);
    int64_t (*valid_until) (store_t *self);
    int64_t (*away_ms) (store_t *self);
    size_t inline_inputs;
    store_code_t (*live) (store_t *self, const store_live_visitor_t *visitor, store_error_t *error);
    store_code_t (*commit) (store_t *self, batch_t *const *batches, size_t count,
                            store_error_t *error);
    uint64_t (*written) (store_t *self);
    void (*flush) (store_t *self);
    void (*exported) (store_t *self, uint64_t pos);
    store_code_t (*load) (store_t *self, lookup_t *keys, size_t count, store_error_t *error);
    store_code_t (*reader_open) (store_reader_t **out, store_t *self, store_error_t *error);
    void (*reader_close) (store_reader_t *reader);
    store_code_t (*reader_run) (store_reader_t *reader, read_t *read, store_error_t *error);
    /* NULL: nothing is kept that could be copied */
    store_code_t (*backup) (store_t *self, store_backup_t *backup, store_error_t *error);
    /* NULL: there is no file */
    store_code_t (*vacuum) (store_t *self, bool begin, store_vacuum_t *out, store_error_t *error);
    const struct vault *(*vault) (store_t *self); /* NULL: large bodies are files alone */
    store_code_t (*due) (store_t *self, store_sweep_t *sweep, store_error_t *error);
    void (*forgotten) (store_t *self, forgotten_t *out); /* NULL: nothing is ever forgotten */
    store_code_t (*check) (store_t *self, store_error_t *error); /* NULL: there are no files */
    void (*stats) (store_t *self, store_stats_t *out);
} store_backend_t;

/* Of a backend that commits to a disk of this machine: at idle the hand-over would cost more than
 * it gains. */
enum { STORE_INLINE_INPUTS = 16 };

struct store {
    const store_backend_t *backend;
    atomic_bool hurries; /* store_end_patience */
};

struct store_reader {
    store_t *store;
    bool patient; /* store_reader_be_patient */
};

extern const store_backend_t store_backend_memory;
extern const store_backend_t store_backend_sqlite;
extern const store_backend_t store_backend_postgresql; /* a build without libpq says so */

#endif
