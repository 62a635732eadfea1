/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Secrets, chance and hash keys from one seed: BLAKE2b derives the keys, ChaCha20 gives the stream,
 * SipHash hashes texts, a universal hash ids. */
#include "core/base/secrets.h"

#include <sodium.h>
#include <string.h>

static void derive (uint8_t *out, size_t length, const uint8_t seed[32], const char *purpose)
{
    crypto_generichash (out, length, (const uint8_t *) purpose, strlen (purpose), seed, 32);
}

void secrets_init (secrets_t *self, const uint8_t seed[32])
{
    *self = (secrets_t){0};
    derive (self->stream_key, sizeof (self->stream_key), seed, "taskmq stream");
    derive (self->hash_key, sizeof (self->hash_key), seed, "taskmq hash");
    derive ((uint8_t *) self->id_keys, sizeof (self->id_keys), seed, "taskmq id hash");
    self->used = sizeof (self->pool);
}

static void refill (secrets_t *self)
{
    uint8_t nonce[crypto_stream_chacha20_NONCEBYTES] = {0};
    memcpy (nonce, &self->block, sizeof (self->block));
    crypto_stream_chacha20 (self->pool, sizeof (self->pool), nonce, self->stream_key);
    self->block++;
    self->used = 0;
}

void secrets_take (secrets_t *self, void *out, size_t length)
{
    uint8_t *to = out;
    while (length > 0) {
        if (self->used == sizeof (self->pool))
            refill (self);
        size_t share = sizeof (self->pool) - self->used;
        if (share > length)
            share = length;
        memcpy (to, self->pool + self->used, share);
        sodium_memzero (self->pool + self->used, share);
        self->used += share;
        to += share;
        length -= share;
    }
}

uint64_t secrets_below (secrets_t *self, uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value;
    do
        secrets_take (self, &value, sizeof (value));
    while (value >= limit);
    return value % bound;
}

uint32_t secrets_hash (const secrets_t *self, const void *bytes, size_t length)
{
    uint64_t hash;
    crypto_shorthash ((uint8_t *) &hash, bytes, length, self->hash_key);
    return (uint32_t) (hash ^ (hash >> 32));
}

/* A multilinear sum: whatever two ids a peer chooses, they collide under one in 2^32 keys, and the
 * keys are secret. What follows the sum spreads ids that are evenly spaced, which a sum alone
 * leaves so. */
uint32_t secrets_hash_id (const secrets_t *self, uint32_t number, const uint8_t id[16])
{
    uint32_t words[4];
    memcpy (words, id, sizeof (words));
    const uint64_t *keys = self->id_keys;
    uint64_t sum = keys[0] + keys[1] * number;
    for (size_t i = 0; i < 4; i++)
        sum += keys[2 + i] * words[i];
    sum = (sum ^ sum >> 32) * (keys[6] | 1);
    return (uint32_t) (sum >> 32);
}
