/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Blobs in the database that several brokers share, as store/postgresql/pg_blobs.c keeps them. What
 * is put has a number, hangs its pieces on that, and gets its name at the end. What has no name is
 * swept. A failover takes nothing of this. */
#include <stdlib.h>

#include "cluster.h"

static uint64_t all_of (uint32_t blob)
{
    return ((uint64_t) 1 << blobs_units (blob)) - 1;
}

static vault_row_t *find_name (const database_t *self, uint32_t blob)
{
    for (size_t i = 0; i < self->vault.count; i++) {
        vault_row_t *row = &self->vault.rows[i];
        if (row->whole && row->blob == blob) {
            return row;
        }
    }
    return NULL;
}

static vault_row_t *find_number (const database_t *self, uint64_t number)
{
    for (size_t i = 0; i < self->vault.count; i++) {
        if (self->vault.rows[i].number == number) {
            return &self->vault.rows[i];
        }
    }
    return NULL;
}

const vault_row_t *vault_find (const world_t *world, uint32_t blob)
{
    const vault_row_t *row = find_name (world->database, blob);
    return row != NULL && row->pieces == all_of (blob) ? row : NULL;
}

void vault_free (database_t *database)
{
    free (database->vault.rows);
}

/* Looks. */

static bool is_in_hand (const vault_ask_t *ask, uint64_t number)
{
    bool found = false;
    for (size_t i = 0; i < SIM_BLOBS; i++) {
        found = found || ask->in_hand[i] == number;
    }
    return found;
}

static uint64_t find_torn (const world_t *world, const vault_ask_t *ask)
{
    const vault_t *vault = &world->database->vault;
    bool all = world->options.planted_bug == ENGINE_BUG_BLOB_SWEPT_IN_HAND;
    uint64_t found = 0;
    for (size_t i = 0; i < vault->count; i++) {
        const vault_row_t *row = &vault->rows[i];
        if (!row->whole && (all || !is_in_hand (ask, row->number))) {
            found = row->number;
        }
    }
    return found;
}

void vault_look (const world_t *world, backend_t *self)
{
    const vault_ask_t *ask = &self->ask.vault;
    if (self->ask.kind == ASK_BLOB_FIND) {
        self->answer.number = find_torn (world, ask);
    } else {
        self->answer.good = vault_find (world, ask->blob) != NULL;
    }
}

/* Changes. */

static void begin (world_t *world, const vault_ask_t *ask, answer_t *answer)
{
    vault_t *vault = &world->database->vault;
    if (vault->count == vault->capacity) {
        vault->capacity = vault->capacity == 0 ? 32 : 2 * vault->capacity;
        vault->rows = realloc (vault->rows, vault->capacity * sizeof *vault->rows);
    }
    answer->number = ++vault->newest;
    vault->rows[vault->count++] = (vault_row_t){.number = answer->number, .blob = ask->blob};
}

static void put (world_t *world, const vault_ask_t *ask)
{
    vault_row_t *row = find_number (world->database, ask->number);
    if (row != NULL) {
        row->pieces |= (((uint64_t) 1 << ask->units) - 1) << ask->from;
    }
}

/* It takes the place of what has the name. */
static void end (world_t *world, const vault_ask_t *ask, answer_t *answer)
{
    database_t *database = world->database;
    vault_row_t *row = find_number (database, ask->number);
    vault_row_t *before = find_name (database, ask->blob);
    bool torn = row == NULL || row->pieces != all_of (ask->blob);
    if (row == NULL || (torn && world->options.planted_bug != ENGINE_BUG_BLOB_SWEPT_IN_HAND)) {
        return;
    }
    if (before != NULL) {
        before->whole = false;
    }
    row->whole = true;
    row->touched_ms = world->mono_ms;
    answer->good = true;
}

static void keep (world_t *world, const vault_ask_t *ask, answer_t *answer)
{
    answer->good = vault_find (world, ask->blob) != NULL;
    if (answer->good) {
        find_name (world->database, ask->blob)->touched_ms = world->mono_ms;
    }
}

static void take_name (world_t *world, const vault_ask_t *ask)
{
    vault_row_t *row = find_name (world->database, ask->blob);
    bool touched = row != NULL && row->touched_ms != ask->touched_ms &&
                   world->options.planted_bug != ENGINE_BUG_BLOB_TOUCH_IGNORED;
    if (row == NULL || touched) {
        return;
    }
    if (row->touched_ms != ask->touched_ms) {
        sim_fail (world, "R8: blob %u is removed, and was touched %lld ms ago", ask->blob,
                  (long long) (world->mono_ms - row->touched_ms));
    }
    depot_check_collected (world, ask->blob);
    row->whole = false;
}

/* Its pieces, and then the row; behind the lock, for the session before may have given it its name
 * just now. */
static void sweep (world_t *world, const vault_ask_t *ask)
{
    vault_t *vault = &world->database->vault;
    vault_row_t *row = find_number (world->database, ask->number);
    if (row == NULL || (row->whole && world->options.planted_bug != ENGINE_BUG_BLOB_SWEPT_NAMED)) {
        return;
    }
    if (row->whole) {
        sim_fail (world, "A120: put %llu of blob %u is swept, and has its name",
                  (unsigned long long) row->number, row->blob);
    }
    if (world->options.planted_bug == ENGINE_BUG_BLOB_SWEPT_IN_HAND) {
        row->pieces = 0;
    } else {
        *row = vault->rows[--vault->count];
    }
}

/* "One that has lost the data changes nothing." */
static void check_owner (world_t *world, const backend_t *self)
{
    const shard_t *shard = &world->database->shard;
    bool own = shard->owner == (int32_t) self->host || shard->owner == SIM_NOBODY; /* any more */
    if (self->ask.epoch != shard->epoch || !own) {
        sim_fail (world, "A120: host %u changes a blob in epoch %llu, and host %d owns epoch %llu",
                  self->host, (unsigned long long) self->ask.epoch, (int) shard->owner,
                  (unsigned long long) shard->epoch);
    }
}

void vault_commit (world_t *world, backend_t *self)
{
    const vault_ask_t *ask = &self->ask.vault;
    check_owner (world, self);
    switch (self->ask.kind) {
    case ASK_BLOB_KEEP: keep (world, ask, &self->answer); break;
    case ASK_BLOB_BEGIN: begin (world, ask, &self->answer); break;
    case ASK_BLOB_PUT: put (world, ask); break;
    case ASK_BLOB_END: end (world, ask, &self->answer); break;
    case ASK_BLOB_REMOVE: take_name (world, ask); break;
    default: sweep (world, ask); break;
    }
}
