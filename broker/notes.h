/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the server notes in the record of deeds: what the engine tells of requests, what a new
 * access file changes, and whose time has ended. The server's thread. */
#ifndef TASKMQ_BROKER_NOTES_H
#define TASKMQ_BROKER_NOTES_H

#include "alike.h"
#include "audit/audit.h"
#include "core/access/policy.h"
#include "core/data/deed.h"
#include "core/data/lookup.h"
#include "core/data/row.h"

typedef struct notes {
    audit_t *audit;   /* borrowed; may be NULL */
    const char *path; /* of the access file, borrowed */
    policy_t *policy; /* kept; NULL: there is none */
    bool begun;       /* what comes now is a change */
    policy_ends_t ends;

    /* Where the record stands is kept in the store too: there it outlives the files. */
    uint64_t generation; /* of the store: after a restore it is another record */
    row_key_t key;       /* of this broker's record … */
    bool in_turn;        /* … beside those of others that own the data in turn */
    chain_head_t kept;
    alike_t alike;

    uint64_t turns;  /* of the file when it was kept */
    int64_t keep_at; /* monotonic */
} notes_t;

/* key: of the server, borrowed; NULL if it has none. */
void notes_init (notes_t *self, audit_t *audit, const char *path, const boot_t *boot,
                 const key_public_t *key);
void notes_free (notes_t *self);
/* From now on this policy counts. */
void notes_policy (notes_t *self, policy_t *policy, int64_t wall_ms);
/* Whose time has ended since the last time; to be called in each round. */
void notes_ends (notes_t *self, int64_t wall_ms);
void notes_deed (notes_t *self, const deed_t *deed, const char *address);

/* A row that the store has kept, before the first look; false: it is none of ours. */
bool notes_restore (notes_t *self, const row_t *row);
/* The record still is what it was then, and what should be alike is; once, at the start. */
void notes_expect (notes_t *self);
/* True: this row, the caller's, is to be kept: hourly, when the file was turned, and `now` at the
 * stop. */
bool notes_head (notes_t *self, int64_t mono_ms, bool at_once, row_t *out);

/* How two policies differ, line by line: what was added, changed, removed. What does not fit is
 * counted. NULL is a policy without lines. False, and no text: they do not differ. */
bool notes_difference (char *out, size_t size, const policy_t *before, const policy_t *after);

#endif
