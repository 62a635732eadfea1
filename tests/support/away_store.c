/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "support/away_store.h"

#include <stdlib.h>
#include <time.h>

#include "core/base/memory.h"
#include "store/store_backend.h"
#include "timestamp.h"

enum { LOOK_MS = 2 /* of a commit that waits */ };

typedef struct away_store {
    store_t base;
    store_t *inner;
    away_switch_t *control;
} away_store_t;

typedef struct away_reader {
    store_reader_t base;
    store_reader_t *inner;
} away_reader_t;

static store_t *inner_of (store_t *base)
{
    return ((away_store_t *) base)->inner;
}

static away_switch_t *control_of (store_t *base)
{
    return ((away_store_t *) base)->control;
}

static int64_t away_for_ms (store_t *base)
{
    int64_t since = atomic_load (&control_of (base)->since);
    return since == 0 ? 0 : clock_ms (CLOCK_MONOTONIC) - since + 1;
}

static int64_t valid_until (store_t *base)
{
    const away_switch_t *control = control_of (base);
    int64_t lease_ms = atomic_load (&control->lease_ms);
    int64_t since = atomic_load (&control->since);
    if (lease_ms == 0)
        return INT64_MAX;
    return (since == 0 ? clock_ms (CLOCK_MONOTONIC) : since) + lease_ms;
}

static store_code_t miss (store_t *base, store_error_t *error)
{
    atomic_fetch_add (&control_of (base)->missed, 1);
    return store_fail (error, STORE_ERROR_AWAY, "the test has taken the store away");
}

static void wait_until_back (store_t *base)
{
    atomic_fetch_add (&control_of (base)->waiting, 1);
    while (away_for_ms (base) > 0)
        nanosleep (&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    atomic_fetch_sub (&control_of (base)->waiting, 1);
}

/* One whose answer is lost has landed, and that is found out when the store is back. */
static store_code_t commit (store_t *base, batch_t *const *batches, size_t count,
                            store_error_t *error)
{
    away_switch_t *control = control_of (base);
    bool away = away_for_ms (base) > 0;
    if (away && atomic_load (&control->lands) != 0) {
        store_code_t code = store_commit (inner_of (base), batches, count, error);
        atomic_fetch_add (&control->unknown, 1);
        wait_until_back (base);
        return code;
    }
    if (away)
        wait_until_back (base);
    return store_commit (inner_of (base), batches, count, error);
}

static store_code_t load (store_t *base, lookup_t *keys, size_t count, store_error_t *error)
{
    if (away_for_ms (base) > 0)
        return miss (base, error);
    return store_load (inner_of (base), keys, count, error);
}

static store_code_t due (store_t *base, store_sweep_t *sweep, store_error_t *error)
{
    if (away_for_ms (base) > 0)
        return miss (base, error);
    return store_due (inner_of (base), sweep, error);
}

static store_code_t live (store_t *base, const store_live_visitor_t *visitor, store_error_t *error)
{
    return store_live (inner_of (base), visitor, error);
}

static uint64_t written (store_t *base)
{
    return store_written (inner_of (base));
}

static void flush (store_t *base)
{
    store_flush (inner_of (base));
}

static void exported (store_t *base, uint64_t pos)
{
    store_exported (inner_of (base), pos);
}

static store_code_t reader_open (store_reader_t **out, store_t *base, store_error_t *error)
{
    away_reader_t *self = memory_zero (1, sizeof (*self));
    self->base.store = base;
    store_code_t code = store_reader_open (&self->inner, inner_of (base), error);
    if (code == STORE_OK)
        *out = &self->base;
    else
        free (self);
    return code;
}

static void reader_close (store_reader_t *base)
{
    store_reader_close (&((away_reader_t *) base)->inner);
    free (base);
}

static store_code_t reader_run (store_reader_t *base, read_t *read, store_error_t *error)
{
    if (away_for_ms (base->store) > 0)
        return miss (base->store, error);
    store_code_t code = store_reader_run (((away_reader_t *) base)->inner, read);
    return code == STORE_OK ? code : store_fail (error, code, "%s", read->error_text);
}

static store_code_t backup (store_t *base, store_backup_t *backup, store_error_t *error)
{
    return store_backup (inner_of (base), backup, error);
}

static store_code_t vacuum (store_t *base, bool begin, store_vacuum_t *out, store_error_t *error)
{
    return store_vacuum (inner_of (base), begin, out, error);
}

static void forgotten (store_t *base, forgotten_t *out)
{
    store_forgotten (inner_of (base), out);
}

static store_code_t check (store_t *base, store_error_t *error)
{
    return store_check (inner_of (base), error);
}

static void stats (store_t *base, store_stats_t *out)
{
    store_stats (inner_of (base), out);
}

static store_code_t close_both (store_t *base, store_error_t *error)
{
    store_t *inner = inner_of (base);
    free (base);
    return store_close (&inner, error);
}

/* inline_inputs is 0: a commit here may take long. */
static const store_backend_t BACKEND = {
    .uri = "away",
    .close = close_both,
    .valid_until = valid_until,
    .away_ms = away_for_ms,
    .live = live,
    .commit = commit,
    .written = written,
    .flush = flush,
    .exported = exported,
    .load = load,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .reader_run = reader_run,
    .backup = backup,
    .vacuum = vacuum,
    .due = due,
    .forgotten = forgotten,
    .check = check,
    .stats = stats,
};

/* Mapped before the broker confines itself to its own files. */
static away_switch_t *control_of_process;

static void __attribute__ ((constructor)) map_control (void)
{
    const char *path = getenv (AWAY_STORE_FILE);
    if (path != NULL)
        control_of_process = away_switch_map (path);
}

/* The linker puts this in place of store_open (--wrap). */
store_code_t __real_store_open (store_t **out, const char *uri, const store_options_t *options,
                                boot_t *boot, store_error_t *error);
store_code_t __wrap_store_open (store_t **out, const char *uri, const store_options_t *options,
                                boot_t *boot, store_error_t *error);

store_code_t __wrap_store_open (store_t **out, const char *uri, const store_options_t *options,
                                boot_t *boot, store_error_t *error)
{
    store_code_t code = __real_store_open (out, uri, options, boot, error);
    if (code != STORE_OK || control_of_process == NULL)
        return code;
    away_store_t *self = memory_zero (1, sizeof (*self));
    self->base.backend = &BACKEND;
    self->inner = *out;
    self->control = control_of_process;
    *out = &self->base;
    return STORE_OK;
}
