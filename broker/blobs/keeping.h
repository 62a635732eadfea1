/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Putting one file of the depot into the vault, in turns. What is there already is looked through,
 * so what was damaged is put anew; else it is put from the first byte. The file is hashed while
 * it is put, and gets its name in the vault only if its bytes are the hash's. Not thread-safe. */
#ifndef TASKMQ_BLOBS_KEEPING_H
#define TASKMQ_BLOBS_KEEPING_H

#include <sodium.h>

#include "core/data/vault.h"

enum { KEEPING_TRIES_MAX = 3 /* to put it, that end without its being there */ };

typedef enum keeping_stage { KEEPING_LOOKS, KEEPING_PUTS } keeping_stage_t;

typedef struct keeping {
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    uint64_t bytes;
    keeping_stage_t stage;
    uint64_t at;                  /* looked at, or put, up to there */
    int64_t number;               /* under which it is put; 0: none yet */
    unsigned tries;               /* that ended without it */
    bool right;                   /* the file had the bytes of the hash when they were put */
    crypto_generichash_state sum; /* of what was put */
} keeping_t;

/* What a turn came to. */
typedef enum keeping_turn {
    KEEPING_MORE,
    KEEPING_DONE,    /* it is in the vault */
    KEEPING_DAMAGED, /* the file has other bytes */
    KEEPING_FAILED   /* *code and the word say why; it goes on with the next turn */
} keeping_turn_t;

void keeping_begin (keeping_t *self, const uint8_t *hash, uint64_t bytes);
/* room: VAULT_PUT_BYTES. A file that cannot be read is damaged. */
keeping_turn_t keeping_on (keeping_t *self, const vault_t *vault, int fd, uint8_t *room,
                           tmq_code_t *code, vault_word_t *word);

#endif
