/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/blobs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/blob_row.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"

enum { HASH_BYTES = TMQ_BLOB_HASH_BYTES };

typedef struct blob {
    uint8_t hash[HASH_BYTES];
    uint64_t bytes;
    uint64_t tasks;       /* that name it */
    size_t claims;        /* to it */
    node_t resting;       /* without either, by the time since when */
    int64_t rests_ms;     /* mono */
    uint64_t rests_batch; /* in which its last task went */
} blob_t;

typedef struct claim {
    node_t node; /* the oldest first */
    blob_t *blob;
    name_t *identity;
    int64_t since_ms; /* mono */
    char ns[TMQ_NAME_LENGTH_MAX + 1];
} claim_t;

static uint32_t hash_of (const tasks_t *self, const uint8_t *hash)
{
    return secrets_hash (&self->base->secrets, hash, HASH_BYTES);
}

static blob_t *blob_find (const tasks_t *self, const uint8_t *hash)
{
    size_t cursor = MAP_START;
    uint32_t key = hash_of (self, hash);
    blob_t *blob = map_next (&self->blobs.by_hash, key, &cursor);
    while (blob != NULL && memcmp (blob->hash, hash, HASH_BYTES) != 0)
        blob = map_next (&self->blobs.by_hash, key, &cursor);
    return blob;
}

static blob_t *blob_make (tasks_t *self, const uint8_t *hash, uint64_t bytes)
{
    blob_t *blob = blob_find (self, hash);
    if (blob != NULL)
        return blob;
    blob = memory_zero (1, sizeof (*blob));
    memcpy (blob->hash, hash, HASH_BYTES);
    blob->bytes = bytes;
    map_insert (&self->blobs.by_hash, hash_of (self, hash), blob);
    return blob;
}

/* One that is in no list. */
static void blob_free (tasks_t *self, blob_t *blob)
{
    map_remove (&self->blobs.by_hash, hash_of (self, blob->hash), blob);
    free (blob);
}

/* Nobody needs it any more, or somebody does again. */
static void rest (tasks_t *self, blob_t *blob)
{
    self->blobs.resting_count -= node_is_linked (&blob->resting);
    list_remove (&blob->resting);
    if (blob->tasks > 0 || blob->claims > 0)
        return;
    blob->rests_ms = self->base->clocks.mono_ms;
    blob->rests_batch = journal_batch (self);
    list_push_back (&self->blobs.resting, &blob->resting);
    self->blobs.resting_count++;
}

/* One that is in no list. */
static void claim_free (tasks_t *self, claim_t *claim)
{
    claim->blob->claims--;
    self->blobs.claims_count--;
    names_drop (&self->base->names, claim->identity);
    rest (self, claim->blob);
    free (claim);
}

/* What has rested for long enough: a crash would not bring back a task that names it. */
static void settle (tasks_t *self)
{
    int64_t now_ms = self->base->clocks.mono_ms;
    node_t *claims = &self->blobs.claims;
    node_t *resting = &self->blobs.resting;
    node_t *node;
    while ((node = list_pop_front (claims)) != NULL) {
        claim_t *claim = LIST_ITEM (node, claim_t, node);
        if (now_ms - claim->since_ms < self->base->config.blob_claim_ms) {
            list_push_front (claims, node);
            break;
        }
        claim_free (self, claim);
    }
    while ((node = list_pop_front (resting)) != NULL) {
        blob_t *blob = LIST_ITEM (node, blob_t, resting);
        bool stands = blob->rests_batch <= self->durable ||
                      self->base->config.planted_bug == ENGINE_BUG_BLOB_GONE_EARLY;
        bool rests = now_ms - blob->rests_ms < self->base->config.blob_rest_ms &&
                     self->blobs.resting_count <= self->base->config.blobs_rest_max;
        if (rests || !stands) {
            list_push_front (resting, node);
            break;
        }
        self->blobs.resting_count--;
        blob_free (self, blob);
    }
}

/* Claims. */

static claim_t *claim_find (const tasks_t *self, const char *ns, const char *identity,
                            const uint8_t *hash)
{
    const node_t *all = &self->blobs.claims;
    for (node_t *node = all->next; node != all; node = node->next) {
        claim_t *claim = LIST_ITEM (node, claim_t, node);
        if (memcmp (claim->blob->hash, hash, HASH_BYTES) == 0 && strcmp (claim->ns, ns) == 0 &&
            strcmp (name_text (claim->identity), identity) == 0)
            return claim;
    }
    return NULL;
}

static void make_room (tasks_t *self, const name_t *identity)
{
    size_t count = 0;
    claim_t *oldest = NULL;
    const node_t *all = &self->blobs.claims;
    for (node_t *node = all->next; node != all; node = node->next) {
        claim_t *claim = LIST_ITEM (node, claim_t, node);
        if (claim->identity != identity)
            continue;
        oldest = oldest == NULL ? claim : oldest;
        count++;
    }
    if (count < BLOB_CLAIMS_OF_ONE_MAX && self->blobs.claims_count < BLOB_CLAIMS_MAX)
        return;
    if (count < BLOB_CLAIMS_OF_ONE_MAX)
        oldest = LIST_ITEM (list_first (all), claim_t, node);
    list_unlink (&oldest->node);
    claim_free (self, oldest);
}

void blob_claim (tasks_t *self, const char *ns, const char *identity, const uint8_t *hash,
                 uint64_t bytes)
{
    settle (self);
    claim_t *claim = claim_find (self, ns, identity, hash);
    if (claim != NULL) {
        list_remove (&claim->node);
    } else {
        name_t *name = names_keep (&self->base->names, identity);
        make_room (self, name);
        claim = memory_zero (1, sizeof (*claim));
        claim->identity = name;
        claim->blob = blob_make (self, hash, bytes);
        claim->blob->claims++;
        snprintf (claim->ns, sizeof (claim->ns), "%s", ns);
        rest (self, claim->blob);
        self->blobs.claims_count++;
    }
    claim->since_ms = self->base->clocks.mono_ms;
    list_push_back (&self->blobs.claims, &claim->node);
}

bool blob_is_claimed (const tasks_t *self, const char *ns, const char *identity,
                      const Taskmq__Blob *blob)
{
    const claim_t *claim = claim_find (self, ns, identity, blob->hash.data);
    return claim != NULL && claim->blob->bytes == blob->bytes &&
           self->base->clocks.mono_ms - claim->since_ms < self->base->config.blob_claim_ms;
}

/* Tasks. */

bool blobs_have_room (const tasks_t *self, const Taskmq__Blob *blob)
{
    const blob_t *known = blob_find (self, blob->hash.data);
    return self->blobs.named < BLOBS_MAX || (known != NULL && known->tasks > 0);
}

tmq_code_t blob_may_be_named (const tasks_t *self, const char *ns, const char *identity,
                              const Taskmq__Blob *blob)
{
    if (!blob_is_claimed (self, ns, identity, blob) &&
        self->base->config.planted_bug != ENGINE_BUG_BLOB_UNCLAIMED)
        return TMQ_NO_BLOB;
    return blobs_have_room (self, blob) ? TMQ_OK : TMQ_LIMIT;
}

static void put (tasks_t *self, const blob_t *blob)
{
    rows_put (self, blob_row_make (blob->hash, blob->bytes, blob->tasks));
}

void blob_take (tasks_t *self, const Taskmq__Blob *named)
{
    blob_t *blob = blob_make (self, named->hash.data, named->bytes);
    self->blobs.named += blob->tasks == 0;
    blob->tasks++;
    rest (self, blob);
    put (self, blob);
}

void blob_give (tasks_t *self, const Taskmq__Blob *named)
{
    blob_t *blob = blob_find (self, named->hash.data);
    if (blob == NULL || blob->tasks == 0)
        return;
    blob->tasks--;
    self->blobs.named -= blob->tasks == 0;
    put (self, blob);
    rest (self, blob);
}

void blobs_remove (tasks_t *self, const Taskmq__Extra *fields)
{
    if (self->base->config.planted_bug == ENGINE_BUG_BLOB_LEFT_COUNTED)
        return;
    if (fields->payload_blob != NULL)
        blob_give (self, fields->payload_blob);
    if (fields->result_blob != NULL)
        blob_give (self, fields->result_blob);
}

bool blob_is_needed (tasks_t *self, const uint8_t *hash)
{
    settle (self);
    const blob_t *blob = blob_find (self, hash);
    if (self->base->config.planted_bug == ENGINE_BUG_BLOB_CLAIM_UNHEARD)
        return blob != NULL && blob->tasks > 0;
    return blob != NULL;
}

size_t blobs_count (const tasks_t *self)
{
    return self->blobs.named;
}

/* Life. */

void blobs_load (tasks_t *self, const row_t *row)
{
    uint64_t bytes;
    uint64_t tasks;
    if (!blob_row_read (row, &bytes, &tasks) || tasks == 0 ||
        self->base->config.planted_bug == ENGINE_BUG_BLOBS_NOT_LOADED)
        return;
    blob_t *blob = blob_make (self, buf_bytes (row->key), bytes);
    blob->tasks = tasks;
    self->blobs.named++;
}

void blobs_init (tasks_t *self)
{
    list_init (&self->blobs.claims);
    list_init (&self->blobs.resting);
}

void blobs_clear (tasks_t *self)
{
    node_t *claims = &self->blobs.claims;
    for (node_t *node = list_pop_front (claims); node != NULL; node = list_pop_front (claims))
        claim_free (self, LIST_ITEM (node, claim_t, node));
    size_t cursor = 0;
    for (blob_t *blob = map_each (&self->blobs.by_hash, &cursor); blob != NULL;
         blob = map_each (&self->blobs.by_hash, &cursor)) {
        list_remove (&blob->resting);
        free (blob);
    }
    map_free (&self->blobs.by_hash);
    self->blobs.named = self->blobs.resting_count = 0;
}
