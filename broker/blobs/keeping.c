/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blobs/keeping.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void keeping_begin (keeping_t *self, const uint8_t *hash, uint64_t bytes)
{
    *self = (keeping_t){.bytes = bytes, .stage = KEEPING_LOOKS};
    memcpy (self->hash, hash, sizeof (self->hash));
}

static void look_again (keeping_t *self)
{
    self->stage = KEEPING_LOOKS;
    self->at = 0;
    self->number = 0;
}

static keeping_turn_t look (keeping_t *self, const vault_t *vault, tmq_code_t *code,
                            vault_word_t *word)
{
    bool good;
    *code = vault->look (vault->context, self->hash, self->bytes, &self->at, &good, word);
    if (*code != TMQ_OK)
        return KEEPING_FAILED;
    if (good)
        return self->at == self->bytes ? KEEPING_DONE : KEEPING_MORE;
    self->stage = KEEPING_PUTS;
    self->at = 0;
    return KEEPING_MORE;
}

static keeping_turn_t begin (keeping_t *self, const vault_t *vault, tmq_code_t *code,
                             vault_word_t *word)
{
    crypto_generichash_init (&self->sum, NULL, 0, sizeof (self->hash));
    *code = vault->begin (vault->context, self->hash, self->bytes, &self->number, word);
    return *code == TMQ_OK ? KEEPING_MORE : KEEPING_FAILED;
}

/* What was put is not there. */
static keeping_turn_t try_again (keeping_t *self, tmq_code_t *code, vault_word_t *word)
{
    look_again (self);
    if (++self->tries < KEEPING_TRIES_MAX)
        return KEEPING_MORE;
    snprintf (word->text, sizeof (word->text), "it is not whole after it was put");
    *code = TMQ_INTERNAL;
    self->tries = 0;
    return KEEPING_FAILED;
}

static bool read_all (int fd, uint8_t *to, size_t length, uint64_t at)
{
    size_t got = 0;
    while (got < length) {
        ssize_t some = pread (fd, to + got, length - got, (off_t) (at + got));
        if (some <= 0)
            return false;
        got += (size_t) some;
    }
    return true;
}

static keeping_turn_t put (keeping_t *self, const vault_t *vault, int fd, uint8_t *room,
                           tmq_code_t *code, vault_word_t *word)
{
    uint64_t left = self->bytes - self->at;
    size_t length = left < VAULT_PUT_BYTES ? (size_t) left : VAULT_PUT_BYTES;
    if (!read_all (fd, room, length, self->at))
        return KEEPING_DAMAGED;
    bool there = false;
    *code =
        vault->put (vault->context, self->number, self->hash, self->at, room, length, &there, word);
    if (*code != TMQ_OK)
        return KEEPING_FAILED;
    if (!there)
        return try_again (self, code, word);
    crypto_generichash_update (&self->sum, room, length);
    self->at += length;
    return KEEPING_MORE;
}

/* Whether it took effect is not known after an error: then it is looked at. */
static keeping_turn_t end (keeping_t *self, const vault_t *vault, tmq_code_t *code,
                           vault_word_t *word)
{
    uint8_t got[TMQ_BLOB_HASH_BYTES];
    bool done = false;
    crypto_generichash_state sum = self->sum; /* the end changes it */
    crypto_generichash_final (&sum, got, sizeof (got));
    if (memcmp (got, self->hash, sizeof (got)) != 0)
        return KEEPING_DAMAGED;
    self->right = true;
    *code = vault->end (vault->context, self->number, self->hash, &done, word);
    look_again (self);
    if (*code != TMQ_OK)
        return KEEPING_FAILED;
    return done ? KEEPING_DONE : try_again (self, code, word);
}

keeping_turn_t keeping_on (keeping_t *self, const vault_t *vault, int fd, uint8_t *room,
                           tmq_code_t *code, vault_word_t *word)
{
    *code = TMQ_OK;
    if (self->stage == KEEPING_LOOKS)
        return look (self, vault, code, word);
    if (self->number == 0)
        return begin (self, vault, code, word);
    return self->at < self->bytes ? put (self, vault, fd, room, code, word)
                                  : end (self, vault, code, word);
}
