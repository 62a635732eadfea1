/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A place behind the files of blobs, which another broker reaches, too: a store whose data is in no
 * directory has one (store_vault), and the depot puts there what it has. Plain data and calls, so
 * that neither has to know the other.
 *
 * What is put has a number of its own and is seen by nobody before its end, so one that was given
 * up leaves pieces without a name, which the sweep removes. Every change holds the fence of its
 * owner: one that has lost the data changes nothing.
 *
 * Each call answers a code. UNAVAILABLE: it is out of reach, or no longer ours; whether the change
 * took effect is not known, and it may be made again. STORE_FULL: there is no room. NO_BLOB: it is
 * missing or damaged. INTERNAL: anything else. The word has the text. Calls wait for a network;
 * one thread makes them. */
#ifndef TASKMQ_CORE_VAULT_H
#define TASKMQ_CORE_VAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

enum {
    VAULT_PIECE_BYTES =
        TMQ_PART_BYTES_MAX, /* of a row: what is read then is one; the last is less */
    VAULT_PUT_BYTES = 16 * VAULT_PIECE_BYTES, /* of one transaction, at most: 3 MiB */
    VAULT_LOOK_BYTES = 4 * VAULT_PUT_BYTES,   /* that one call looks through, … */
    VAULT_SWEEP_BYTES = 8 * VAULT_PUT_BYTES,  /* … or removes */
    VAULT_SLICE_MAX = 256,                    /* blobs that one call names */
    VAULT_TEXT_SIZE = 256
};

typedef struct vault_word {
    char text[VAULT_TEXT_SIZE]; /* of another code than OK */
} vault_word_t;

/* A blob that is there. */
typedef struct vault_item {
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    int64_t at; /* when it was touched last, in a time of its own */
    bool still; /* … which is as long ago as was asked for */
} vault_item_t;

typedef struct vault_stats {
    uint64_t blobs;
    uint64_t bytes;
} vault_stats_t;

typedef struct vault {
    void *context;
    /* Looks through what is there of the blob from *at on, and moves that on. *good: all that was
     * looked at is as it was put. At the end *at is its length, and what is good was touched. */
    tmq_code_t (*look) (void *context, const uint8_t *hash, uint64_t bytes, uint64_t *at,
                        bool *good, vault_word_t *word);
    /* Begins to put one; *number is never 0. */
    tmq_code_t (*begin) (void *context, const uint8_t *hash, uint64_t bytes, int64_t *number,
                         vault_word_t *word);
    /* Bytes of it, at most VAULT_PUT_BYTES, at a multiple of that. Again: nothing changes. *there
     * false: nothing was begun under this number for this hash (any more); begin anew. */
    tmq_code_t (*put) (void *context, int64_t number, const uint8_t *hash, uint64_t offset,
                       const uint8_t *data, size_t length, bool *there, vault_word_t *word);
    /* All of it was put: it takes the place of what was there under this hash. *done false: it is
     * not whole, or not there any more, and is to be begun anew. */
    tmq_code_t (*end) (void *context, int64_t number, const uint8_t *hash, bool *done,
                       vault_word_t *word);
    /* At most limit bytes, which are as they were put. */
    tmq_code_t (*read) (void *context, const uint8_t *hash, uint64_t bytes, uint64_t offset,
                        uint8_t *to, size_t limit, size_t *length, vault_word_t *word);
    /* Which of these, at most VAULT_SLICE_MAX, are not there. */
    tmq_code_t (*lacks) (void *context, const uint8_t (*hashes)[TMQ_BLOB_HASH_BYTES], size_t count,
                         bool *lacks, vault_word_t *word);
    /* The next ones behind this hash, by their hashes; NULL: the first. At most VAULT_SLICE_MAX. */
    tmq_code_t (*list) (void *context, const uint8_t *behind, int64_t still_ms, vault_item_t *out,
                        size_t *count, vault_word_t *word);
    /* Unless it was touched since. Nobody finds it any more; *done: it was there. */
    tmq_code_t (*remove) (void *context, const vault_item_t *item, bool *done, vault_word_t *word);
    /* Removes some of what has no name, but for these numbers, which are being put. *more: there is
     * more. */
    tmq_code_t (*sweep) (void *context, const int64_t *numbers, size_t count, bool *more,
                         vault_word_t *word);
    /* What it has, as far as is known: without waiting. */
    vault_stats_t (*stats) (void *context);
} vault_t;

#endif
