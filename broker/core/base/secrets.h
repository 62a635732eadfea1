/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the engine needs of chance and secrecy, all of it derived from the one secret seed that it
 * was given: tokens, lease secrets, jitter, and the key of its hash tables. The same seed and the
 * same inputs give the same engine, which is what the simulation lives on. */
#ifndef TASKMQ_CORE_SECRETS_H
#define TASKMQ_CORE_SECRETS_H

#include <stddef.h>
#include <stdint.h>

typedef struct secrets {
    uint8_t stream_key[32];
    uint8_t hash_key[16];
    uint64_t id_keys[7];
    uint64_t block; /* number of the next block of the stream */
    size_t used;    /* bytes of pool that were given away */
    uint8_t pool[1024];
} secrets_t;

void secrets_init (secrets_t *self, const uint8_t seed[32]);
/* The next bytes of the stream: never the same ones twice. */
void secrets_take (secrets_t *self, void *out, size_t length);
/* Evenly distributed over 0..bound-1; bound > 0. */
uint64_t secrets_below (secrets_t *self, uint64_t bound);
/* Keyed hash for tables, so that a peer cannot choose keys that collide. */
uint32_t secrets_hash (const secrets_t *self, const void *bytes, size_t length);
/* The same for 16 bytes and a number beside them, at a tenth of the cost: tasks and workers are
 * looked up several times a request. */
uint32_t secrets_hash_id (const secrets_t *self, uint32_t number, const uint8_t id[16]);

#endif
