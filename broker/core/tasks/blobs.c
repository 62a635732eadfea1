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
#include "core/tasks/account.h"
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

/* What the tasks of an owner have of it. */
typedef struct share {
    blob_t *blob;
    name_t *owner;
    uint64_t tasks; /* above 0 */
} share_t;

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

/* Nobody needs it any more, for so long, or somebody does again. */
static void rest (tasks_t *self, blob_t *blob, int64_t rested_ms)
{
    self->blobs.resting_count -= node_is_linked (&blob->resting);
    list_remove (&blob->resting);
    if (blob->tasks > 0 || blob->claims > 0)
        return;
    blob->rests_ms = self->base->clocks.mono_ms - rested_ms;
    blob->rests_batch = journal_batch (self);
    if (rested_ms > 0)
        list_push_front (&self->blobs.resting, &blob->resting);
    else
        list_push_back (&self->blobs.resting, &blob->resting);
    self->blobs.resting_count++;
}

/* One that is in no list. */
static void claim_free (tasks_t *self, claim_t *claim, int64_t rested_ms)
{
    claim->blob->claims--;
    self->blobs.claims_count--;
    names_drop (&self->base->names, claim->identity);
    rest (self, claim->blob, rested_ms);
    free (claim);
}

static bool is_limited (const name_t *identity)
{
    return identity != NULL && identity->account != NULL && identity->account->limited;
}

/* What has rested for long enough: a crash would not bring back a task that names it. Of who has a
 * quota a claim that is over stays as long as its file, which counts to him. */
static void settle (tasks_t *self)
{
    const engine_config_t *config = &self->base->config;
    int64_t now_ms = self->base->clocks.mono_ms;
    node_t *claims = &self->blobs.claims;
    node_t *resting = &self->blobs.resting;
    node_t *node;
    while ((node = list_pop_front (claims)) != NULL) {
        claim_t *claim = LIST_ITEM (node, claim_t, node);
        int64_t rest_ms = is_limited (claim->identity) ? config->blob_rest_ms : 0;
        if (now_ms - claim->since_ms < config->blob_claim_ms + rest_ms) {
            list_push_front (claims, node);
            break;
        }
        claim_free (self, claim, rest_ms);
    }
    while ((node = list_pop_front (resting)) != NULL) {
        blob_t *blob = LIST_ITEM (node, blob_t, resting);
        bool stands = blob->rests_batch <= self->durable ||
                      self->base->config.planted_bug == ENGINE_BUG_BLOB_GONE_EARLY;
        bool rests = now_ms - blob->rests_ms < config->blob_rest_ms &&
                     self->blobs.resting_count <= config->blobs_rest_max;
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

typedef struct claims_look {
    size_t count;
    size_t unnamed;  /* whose blobs no task names */
    claim_t *oldest; /* of them, … */
    claim_t *named;  /* … and the oldest of the others; NULL: none */
} claims_look_t;

/* Claims of the identity; NULL: of all. */
static claims_look_t look_at (const tasks_t *self, const char *identity)
{
    claims_look_t look = {0};
    const node_t *all = &self->blobs.claims;
    for (node_t *node = all->next; node != all; node = node->next) {
        claim_t *claim = LIST_ITEM (node, claim_t, node);
        claim_t **oldest = claim->blob->tasks > 0 ? &look.named : &look.oldest;
        if (identity != NULL && strcmp (name_text (claim->identity), identity) != 0)
            continue;
        *oldest = *oldest == NULL ? claim : *oldest;
        look.count++;
        look.unnamed += claim->blob->tasks == 0;
    }
    return look;
}

/* The claim to what a task names goes first: it counts to the owner of that task. What no task
 * names would count to nobody without its claim, so who has a quota keeps it. */
static void make_room (tasks_t *self, const name_t *identity)
{
    claims_look_t look = look_at (self, name_text (identity));
    claim_t *going = look.named != NULL || is_limited (identity) ? look.named : look.oldest;
    if (look.count < BLOB_CLAIMS_OF_ONE_MAX)
        going = NULL;
    if (going == NULL && self->blobs.claims_count >= BLOB_CLAIMS_MAX) {
        look = look_at (self, NULL);
        going = look.named != NULL ? look.named : look.oldest;
    }
    if (going == NULL)
        return;
    list_unlink (&going->node);
    claim_free (self, going, 0);
}

bool blob_claims_are_full (tasks_t *self, const char *identity)
{
    settle (self);
    return look_at (self, identity).unnamed >= BLOB_CLAIMS_OF_ONE_MAX;
}

uint64_t blobs_claimed (tasks_t *self, const char *identity, const uint8_t *without)
{
    uint64_t bytes = 0;
    settle (self);
    const node_t *all = &self->blobs.claims;
    for (node_t *node = all->next; node != all; node = node->next) {
        const claim_t *claim = LIST_ITEM (node, const claim_t, node);
        if (claim->blob->tasks == 0 && memcmp (claim->blob->hash, without, HASH_BYTES) != 0 &&
            strcmp (name_text (claim->identity), identity) == 0)
            bytes += claim->blob->bytes;
    }
    return bytes;
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
        rest (self, claim->blob, 0);
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

/* Shares. */

static uint32_t share_hash (const tasks_t *self, const uint8_t *hash, const char *owner)
{
    return hash_of (self, hash) ^
           secrets_hash (&self->base->secrets, (const uint8_t *) owner, strlen (owner));
}

static share_t *share_find (const tasks_t *self, const char *owner, const uint8_t *hash)
{
    size_t cursor = MAP_START;
    uint32_t key = share_hash (self, hash, owner);
    share_t *share = map_next (&self->blobs.shares, key, &cursor);
    while (share != NULL && (memcmp (share->blob->hash, hash, HASH_BYTES) != 0 ||
                             strcmp (name_text (share->owner), owner) != 0))
        share = map_next (&self->blobs.shares, key, &cursor);
    return share;
}

static share_t *share_make (tasks_t *self, const char *owner, blob_t *blob)
{
    share_t *share = memory_zero (1, sizeof (*share));
    share->blob = blob;
    share->owner = names_keep (&self->base->names, owner);
    map_insert (&self->blobs.shares, share_hash (self, blob->hash, owner), share);
    account_add_blob (self, share->owner, blob->bytes);
    return share;
}

static void share_free (tasks_t *self, share_t *share)
{
    const char *owner = name_text (share->owner);
    map_remove (&self->blobs.shares, share_hash (self, share->blob->hash, owner), share);
    account_end_blob (self, share->owner, share->blob->bytes);
    names_drop (&self->base->names, share->owner);
    free (share);
}

static void share_put (tasks_t *self, const share_t *share)
{
    rows_put (self, blob_share_make (share->blob->hash, name_text (share->owner), share->tasks));
}

static void share_take (tasks_t *self, const char *owner, blob_t *blob)
{
    if (owner[0] == '\0')
        return;
    share_t *share = share_find (self, owner, blob->hash);
    if (share == NULL)
        share = share_make (self, owner, blob);
    share->tasks++;
    share_put (self, share);
}

/* There is none of what was named before there were shares. */
static void share_give (tasks_t *self, const char *owner, const blob_t *blob)
{
    share_t *share = share_find (self, owner, blob->hash);
    if (share == NULL)
        return;
    share->tasks--;
    share_put (self, share);
    if (share->tasks == 0)
        share_free (self, share);
}

void blobs_charge (tasks_t *self)
{
    size_t cursor = 0;
    for (share_t *share = map_each (&self->blobs.shares, &cursor); share != NULL;
         share = map_each (&self->blobs.shares, &cursor))
        account_add_blob (self, share->owner, share->blob->bytes);
}

/* Tasks. */

uint64_t blob_bytes_of (const tasks_t *self, const char *owner, const uint8_t *hash)
{
    const share_t *share = share_find (self, owner, hash);
    return share == NULL ? 0 : share->blob->bytes;
}

bool blobs_have_room (const tasks_t *self, const char *owner, const Taskmq__Blob *blob)
{
    return (self->blobs.named < BLOBS_MAX && self->blobs.shares.count < BLOBS_MAX) ||
           share_find (self, owner, blob->hash.data) != NULL;
}

static void put (tasks_t *self, const blob_t *blob)
{
    rows_put (self, blob_row_make (blob->hash, blob->bytes, blob->tasks));
}

void blob_take (tasks_t *self, const char *owner, const Taskmq__Blob *named)
{
    blob_t *blob = blob_make (self, named->hash.data, named->bytes);
    self->blobs.named += blob->tasks == 0;
    blob->tasks++;
    rest (self, blob, 0);
    put (self, blob);
    share_take (self, owner, blob);
}

void blob_give (tasks_t *self, const char *owner, const Taskmq__Blob *named)
{
    blob_t *blob = blob_find (self, named->hash.data);
    if (blob == NULL || blob->tasks == 0)
        return;
    share_give (self, owner, blob);
    blob->tasks--;
    self->blobs.named -= blob->tasks == 0;
    put (self, blob);
    rest (self, blob, 0);
}

void blobs_remove (tasks_t *self, const char *owner, const Taskmq__Extra *fields)
{
    if (self->base->config.planted_bug == ENGINE_BUG_BLOB_LEFT_COUNTED)
        return;
    if (fields->payload_blob != NULL)
        blob_give (self, owner, fields->payload_blob);
    if (fields->result_blob != NULL)
        blob_give (self, owner, fields->result_blob);
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

void blobs_load_share (tasks_t *self, const row_t *row)
{
    const uint8_t *hash;
    const char *owner;
    uint64_t tasks;
    blob_t *blob = blob_share_read (row, &hash, &owner, &tasks) ? blob_find (self, hash) : NULL;
    if (blob != NULL && tasks > 0 && share_find (self, owner, hash) == NULL)
        share_make (self, owner, blob)->tasks = tasks;
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
        claim_free (self, LIST_ITEM (node, claim_t, node), 0);
    size_t cursor = 0;
    for (share_t *share = map_each (&self->blobs.shares, &cursor); share != NULL;
         share = map_each (&self->blobs.shares, &cursor)) {
        names_drop (&self->base->names, share->owner);
        free (share);
    }
    map_free (&self->blobs.shares);
    cursor = 0;
    for (blob_t *blob = map_each (&self->blobs.by_hash, &cursor); blob != NULL;
         blob = map_each (&self->blobs.by_hash, &cursor)) {
        list_remove (&blob->resting);
        free (blob);
    }
    map_free (&self->blobs.by_hash);
    self->blobs.named = self->blobs.resting_count = 0;
}
