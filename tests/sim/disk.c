/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The log on its device: the broker's own journal over a disk in memory. A crash may come before
 * each operation of a commit or of a start and behind it, and may take the power with it: then what
 * was not synced is there, or not, or torn. So the disk decides what of the commit under way is
 * left, and what the next start reads is compared with what was acknowledged. */
#include <errno.h>
#include <stdlib.h>

#include "bytes.h"
#include "power_disk.h"
#include "sim.h"
#include "store/journal/journal.h"
#include "store/journal/journal_codec.h"

enum {
    LOG_BYTES = 64 * 1024, /* the least: segments are used again soon */
    COMMIT_OPERATIONS = 4, /* of a commit mostly, … */
    START_OPERATIONS = 30, /* … and of a start */
    START_CRASH = 30
};

struct disk {
    power_disk_t disk;
    journal_options_t options;
    journal_tables_t tables;
    journal_t *journal;
    batch_t *doubtful; /* a crash met its commit: it is there afterwards, or not */
    uint64_t random;   /* for what is lost */
    /* What a start has read. */
    batch_t **read;
    size_t read_count;
};

static disk_t *disk_of (world_t *world)
{
    if (world->broker->disk == NULL) {
        disk_t *self = calloc (1, sizeof *self);
        world->broker->disk = self;
        power_disk_init (&self->disk);
        self->disk.refuses_direct = world->options.seed % 3 == 1;
        self->options = (journal_options_t){.directory = "x",
                                            .bytes = LOG_BYTES,
                                            .device = &self->disk.device,
                                            .planted_bug = world->options.planted_bug};
        self->tables = (journal_tables_t){world->model->generation, 0, 0, true};
        self->random = world->options.seed;
    }
    return world->broker->disk;
}

static void forget_read (disk_t *self)
{
    for (size_t i = 0; i < self->read_count; i++) {
        batch_free (self->read[i]);
    }
    free (self->read);
    self->read = NULL;
    self->read_count = 0;
}

void disk_free (world_t *world)
{
    disk_t *self = disk_of (world);
    journal_free (&self->journal);
    power_disk_destroy (&self->disk);
    batch_free (self->doubtful);
    forget_read (self);
    free (self);
    world->broker->disk = NULL;
}

/* Faults. */

/* From the operation behind so many others on. */
static void fail_from (disk_t *self, uint32_t operations, int with, bool after_it)
{
    self->disk.fails_from = self->disk.operations + operations;
    self->disk.fails_with = with;
    self->disk.fails_after_it = after_it;
}

static void fail_no_more (disk_t *self)
{
    self->disk.fails_from = self->disk.fails_until = UINT64_MAX;
}

/* The process is gone, and the power perhaps. */
static void lose (world_t *world)
{
    disk_t *self = disk_of (world);
    power_disk_t left;
    power_loss_t loss = (power_loss_t) rng_below (&world->rng, POWER_LOSSES);
    journal_free (&self->journal);
    power_disk_lose (&left, &self->disk, loss, &self->random);
    power_disk_destroy (&self->disk);
    self->disk = left;
}

/* Commits. */

bool disk_commit (world_t *world, batch_t *batch)
{
    disk_t *self = disk_of (world);
    store_error_t error;
    if (sim_fault (world, world->options.commit_full)) {
        fail_from (self, 0, ENOSPC, rng_chance (&world->rng, 500));
        self->disk.fails_until = self->disk.fails_from + 1;
    }
    store_code_t code = journal_append (self->journal, &batch, 1, &error);
    fail_no_more (self);
    if (code != STORE_OK && code != STORE_ERROR_FULL) {
        sim_fail (world, "A22: a commit fails: %s", error.text);
    }
    return code == STORE_OK;
}

bool disk_crash (world_t *world, batch_t *batch)
{
    disk_t *self = disk_of (world);
    bool committed = false;
    if (batch != NULL) {
        store_error_t error;
        fail_from (self, rng_below (&world->rng, COMMIT_OPERATIONS), EIO,
                   rng_chance (&world->rng, 500));
        committed = journal_append (self->journal, &batch, 1, &error) == STORE_OK;
        self->doubtful = committed ? NULL : batch;
    }
    lose (world);
    return committed;
}

void disk_written (world_t *world)
{
    disk_t *self = disk_of (world);
    store_error_t error;
    self->tables.written = world->model->written;
    journal_written (self->journal, self->tables.written);
    if (rng_chance (&world->rng, 300) && journal_make_room (self->journal, &error) != STORE_OK) {
        sim_fail (world, "A10: the journal cannot grow: %s", error.text);
    }
    if (journal_can_rest (self->journal) && rng_chance (&world->rng, 200) &&
        journal_rest (self->journal, &error) != STORE_OK) {
        sim_fail (world, "A10: the journal cannot rest: %s", error.text);
    }
}

/* A start. */

static store_code_t take_read (void *context, batch_t *batch, store_error_t *error)
{
    disk_t *self = context;
    (void) error;
    self->read = realloc (self->read, (self->read_count + 1) * sizeof *self->read);
    self->read[self->read_count++] = batch;
    return STORE_OK;
}

static bool is_same (const batch_t *a, const batch_t *b)
{
    static const journal_head_t HEAD = {0};
    bytes_t left = BYTES_INIT;
    bytes_t right = BYTES_INIT;
    journal_encode (&left, &HEAD, a);
    journal_encode (&right, &HEAD, b);
    bool same = left.length == right.length && memcmp (left.data, right.data, left.length) == 0;
    bytes_free (&left);
    bytes_free (&right);
    return same;
}

/* What was acknowledged and is not in the tables is there, in order, and nothing else but the
 * commit under way. The tables get what was read. */
static void judge (world_t *world)
{
    disk_t *self = disk_of (world);
    model_t *model = world->model;
    for (size_t i = 0; i < model->journal_count; i++) {
        if (i >= self->read_count || !is_same (model->journal[i], self->read[i])) {
            sim_fail (world, "A9: commit %llu was acknowledged, and the start does not read it",
                      (unsigned long long) model->journal[i]->no);
            return;
        }
        batch_free (model->journal[i]);
        model->journal[i] = self->read[i];
        self->read[i] = NULL;
    }
    size_t behind = self->read_count - model->journal_count;
    batch_t *last = behind == 1 ? self->read[self->read_count - 1] : NULL;
    if (behind > 1 ||
        (last != NULL && (self->doubtful == NULL || !is_same (last, self->doubtful)))) {
        sim_fail (world, "A13: the start reads %zu commits that nobody made", behind);
    } else if (last != NULL) {
        self->read[--self->read_count] = NULL;
        broker_commit (world, last);
    }
}

static store_code_t read_log (disk_t *self, bool *cut, store_error_t *error)
{
    forget_read (self);
    store_code_t code =
        journal_open (&self->journal, &self->options, &self->tables, !self->tables.clean, error);
    return code == STORE_OK ? journal_replay (self->journal, take_read, self, cut, error) : code;
}

/* The tables take what the journal has, and begin an epoch; then the journal does. */
static store_code_t begin (world_t *world, boot_t *boot, store_error_t *error)
{
    disk_t *self = disk_of (world);
    judge (world);
    if (world->failed) {
        return STORE_OK;
    }
    batch_free (self->doubtful);
    self->doubtful = NULL;
    ledger_start (world);
    model_recover (world->model, boot);
    self->tables.epoch = world->model->epoch;
    self->tables.written = 0;
    self->tables.clean = true; /* until the journal is of their epoch */
    store_code_t code =
        journal_begin (self->journal, self->tables.generation, self->tables.epoch, error);
    self->tables.clean = code != STORE_OK;
    return code;
}

bool disk_start (world_t *world, boot_t *boot)
{
    disk_t *self = disk_of (world);
    store_error_t error;
    bool cut = false;
    bool crashes = sim_fault (world, START_CRASH);
    if (crashes) {
        fail_from (self, rng_below (&world->rng, START_OPERATIONS), EIO,
                   rng_chance (&world->rng, 500));
    }
    store_code_t code = read_log (self, &cut, &error);
    if (code == STORE_OK && !cut) {
        code = begin (world, boot, &error);
    }
    fail_no_more (self);
    if (cut || (code != STORE_OK && !crashes)) {
        sim_fail (world, "A13: the start refuses its journal: %s",
                  cut ? "commits that were synced are lost" : error.text);
    } else if (code != STORE_OK) {
        sim_log (world, "the start loses power");
        lose (world);
        ledger_crash (world);
    }
    forget_read (self);
    return code == STORE_OK && !world->failed;
}
