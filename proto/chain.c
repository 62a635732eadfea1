/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "chain.h"

#include <sodium.h>
#include <string.h>

#include "digits.h"
#include "ids.h"

#define BEGIN "{\"n\":"
#define END ",\"prev\":\""
enum {
    BEGIN_LENGTH = sizeof (BEGIN) - 1,
    END_LENGTH = sizeof (END) - 1 + CHAIN_HASH_TEXT_SIZE - 1 + 2, /* the hash and "} behind it */
    NUMBER_LENGTH_MAX = 19
};

void chain_hash_format (char out[CHAIN_HASH_TEXT_SIZE], const uint8_t hash[CHAIN_HASH_BYTES])
{
    hex_encode (out, hash, CHAIN_HASH_BYTES);
}

bool chain_hash_parse (uint8_t out[CHAIN_HASH_BYTES], const char *text, size_t length)
{
    size_t got = 0;
    return length == CHAIN_HASH_TEXT_SIZE - 1 &&
           sodium_hex2bin (out, CHAIN_HASH_BYTES, text, length, NULL, &got, NULL) == 0 &&
           got == CHAIN_HASH_BYTES;
}

static void head_move (chain_head_t *head, const void *line, size_t length)
{
    crypto_generichash_state state;
    crypto_generichash_init (&state, NULL, 0, CHAIN_HASH_BYTES);
    crypto_generichash_update (&state, head->hash, CHAIN_HASH_BYTES);
    crypto_generichash_update (&state, line, length);
    crypto_generichash_final (&state, head->hash, CHAIN_HASH_BYTES);
    head->n++;
}

size_t chain_line_begin (bytes_t *out, const chain_head_t *head)
{
    char text[BEGIN_LENGTH + DIGITS_MAX + 1] = BEGIN;
    char *at = digits_put (text + BEGIN_LENGTH, head->n + 1);
    size_t from = out->length;
    *at++ = ',';
    bytes_append (out, text, (size_t) (at - text));
    return from;
}

void chain_line_end (bytes_t *out, chain_head_t *head, size_t from)
{
    char text[END_LENGTH + 1] = END;
    chain_hash_format (text + sizeof (END) - 1, head->hash);
    memcpy (text + END_LENGTH - 2, "\"}", 2);
    bytes_append (out, text, END_LENGTH);
    if (out->failed)
        return;
    head_move (head, out->data + from, out->length - from);
    bytes_append_byte (out, '\n');
}

void chain_link (bytes_t *out, chain_head_t *head, const void *members, size_t length)
{
    size_t from = chain_line_begin (out, head);
    bytes_append (out, members, length);
    chain_line_end (out, head, from);
}

/* The number and the prev of a line. False: it is no line of a chain. */
static bool chain_read (const void *line, size_t length, uint64_t *n,
                        uint8_t prev[CHAIN_HASH_BYTES])
{
    const char *text = line;
    if (length < BEGIN_LENGTH + END_LENGTH || length > CHAIN_LINE_BYTES_MAX ||
        memcmp (text, BEGIN, BEGIN_LENGTH) != 0)
        return false;
    const char *digit = text + BEGIN_LENGTH;
    const char *end = text + length - END_LENGTH;
    uint64_t number = 0;
    if (*digit == '0')
        return false;
    for (int i = 0; i < NUMBER_LENGTH_MAX && digit < end && *digit >= '0' && *digit <= '9'; i++)
        number = number * 10 + (uint64_t) (*digit++ - '0');
    if (number == 0 || *digit != ',' || memcmp (end, END, sizeof (END) - 1) != 0 ||
        memcmp (text + length - 2, "\"}", 2) != 0)
        return false;
    *n = number;
    return chain_hash_parse (prev, end + sizeof (END) - 1, CHAIN_HASH_TEXT_SIZE - 1);
}

bool chain_follow (chain_head_t *out, const void *line, size_t length)
{
    if (!chain_read (line, length, &out->n, out->hash))
        return false;
    out->n--;
    head_move (out, line, length);
    return true;
}

/* Checking. After a number that is not the next one all others are looked at for where the next one
 * went; after a hash that does not fit one more line is. */

static void found (chain_check_t *self, chain_fault_t fault, uint64_t n, uint64_t place)
{
    self->fault = fault;
    self->fault_n = n;
    self->fault_place = place;
    self->doubtful = false;
}

/* The line before did not fit the one before it. What fits this one is as it was. */
static void settle (chain_check_t *self, uint64_t n, const uint8_t *prev)
{
    bool fits = n == self->head.n + 1 && memcmp (prev, self->head.hash, CHAIN_HASH_BYTES) == 0;
    uint64_t back = fits ? 1 : 0;
    found (self, CHAIN_CHANGED, self->head.n - back, self->place - 1 - back);
}

static bool is_first (const uint8_t *prev)
{
    return sodium_is_zero (prev, CHAIN_HASH_BYTES);
}

static void take (chain_check_t *self, const void *line, size_t length, uint64_t n,
                  const uint8_t *prev)
{
    chain_head_t *head = &self->head;
    bool begins = self->place == 1 || self->anew;
    uint64_t expected = begins && n > head->n ? n : head->n + 1;
    if (self->place == 1)
        self->first_n = n;
    self->anew = false;
    if (n != expected) {
        bool back = n < expected && n >= self->first_n;
        found (self, back ? CHAIN_REPEATED : CHAIN_MISSING, back ? n : expected, self->place);
        return;
    }
    if (begins) {
        memcpy (head->hash, prev, CHAIN_HASH_BYTES);
        if (n == 1 && !is_first (prev)) {
            found (self, CHAIN_CHANGED, n, self->place);
            return;
        }
    } else if (memcmp (prev, head->hash, CHAIN_HASH_BYTES) != 0) {
        self->doubtful = true;
        memcpy (head->hash, prev, CHAIN_HASH_BYTES);
    }
    head->n = n - 1;
    head_move (head, line, length);
    if (self->known != NULL && !self->doubtful && self->known_n == 0 &&
        memcmp (head->hash, self->known, CHAIN_HASH_BYTES) == 0)
        self->known_n = n;
}

void chain_check_line (chain_check_t *self, const void *line, size_t length)
{
    uint64_t n = 0;
    uint8_t prev[CHAIN_HASH_BYTES];
    self->place++;
    bool good = chain_read (line, length, &n, prev);
    if (self->fault == CHAIN_MISSING && good && n == self->fault_n) {
        self->fault = CHAIN_MOVED;
        self->moved_to = self->place;
    }
    if (self->fault != CHAIN_GOOD)
        return;
    if (self->doubtful)
        settle (self, good ? n : 0, prev);
    else if (!good)
        found (self, CHAIN_CHANGED, self->head.n + 1, self->place);
    else
        take (self, line, length, n, prev);
    self->alien = self->fault == CHAIN_CHANGED && !good && self->fault_place == self->place;
}

void chain_check_anew (chain_check_t *self)
{
    if (self->fault == CHAIN_GOOD && self->doubtful)
        found (self, CHAIN_CHANGED, self->head.n - 1, self->place - 1);
    self->anew = self->fault == CHAIN_GOOD;
}

void chain_check_end (chain_check_t *self)
{
    if (self->fault == CHAIN_GOOD && self->doubtful)
        found (self, CHAIN_CHANGED, self->head.n - 1, self->place - 1);
    if (self->fault == CHAIN_GOOD && self->known != NULL && self->known_n == 0)
        found (self, CHAIN_HEADLESS, self->head.n, 0);
}
