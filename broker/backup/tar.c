/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/tar.h"

#include <stdio.h>
#include <string.h>

/* Offsets and sizes of the fields. */
enum {
    NAME = 0,
    NAME_SIZE = 100,
    MODE = 100,
    OWNER = 108,
    GROUP = 116,
    SIZE = 124,
    SIZE_SIZE = 12,
    TIME = 136,
    SUM = 148,
    SUM_SIZE = 8,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345
};
#define OCTAL_MAX UINT64_C (077777777777)

/* As if its own field were spaces. */
static unsigned sum_of (const uint8_t *block)
{
    unsigned sum = 0;
    for (int i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += i >= SUM && i < SUM + SUM_SIZE ? ' ' : block[i];
    return sum;
}

static void put_octal (uint8_t *field, int digits, uint64_t value)
{
    char text[32];
    snprintf (text, sizeof (text), "%0*llo", digits, (unsigned long long) value);
    memcpy (field, text, (size_t) digits);
}

/* What eleven octal digits cannot say is written as a number of eight bytes, as GNU tar does. */
static void put_size (uint8_t *field, uint64_t value)
{
    if (value <= OCTAL_MAX) {
        put_octal (field, SIZE_SIZE - 1, value);
        return;
    }
    field[0] = 0x80;
    for (int i = SIZE_SIZE - 1; i > SIZE_SIZE - 9; i--, value >>= 8)
        field[i] = (uint8_t) value;
}

void tar_write (uint8_t block[TAR_BLOCK_BYTES], const tar_member_t *member, int64_t made_s)
{
    memset (block, 0, TAR_BLOCK_BYTES);
    memcpy (block + NAME, member->name, strnlen (member->name, NAME_SIZE));
    put_octal (block + MODE, 7, 0600);
    put_octal (block + OWNER, 7, 0);
    put_octal (block + GROUP, 7, 0);
    put_size (block + SIZE, member->bytes);
    put_octal (block + TIME, SIZE_SIZE - 1, (uint64_t) made_s);
    block[TYPE] = '0';
    memcpy (block + MAGIC, "ustar\00000", 8);
    put_octal (block + SUM, 6, sum_of (block));
    block[SUM + 7] = ' ';
}

uint32_t tar_rest (uint64_t bytes)
{
    return (uint32_t) ((TAR_BLOCK_BYTES - bytes % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES);
}

static bool get_octal (const uint8_t *field, int size, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < size && field[i] != '\0' && field[i] != ' '; i++) {
        if (field[i] < '0' || field[i] > '7')
            return false;
        *out = *out * 8 + (uint64_t) (field[i] - '0');
    }
    return true;
}

static bool get_size (const uint8_t *field, uint64_t *out)
{
    if (field[0] != 0x80)
        return get_octal (field, SIZE_SIZE, out);
    *out = 0;
    for (int i = SIZE_SIZE - 8; i < SIZE_SIZE; i++)
        *out = *out << 8 | field[i];
    return field[1] == 0 && field[2] == 0 && field[3] == 0 && *out <= INT64_MAX;
}

tar_found_t tar_read (const uint8_t block[TAR_BLOCK_BYTES], tar_member_t *out, const char **why)
{
    static const uint8_t zeroes[TAR_BLOCK_BYTES];
    uint64_t sum = 0;
    *why = NULL;
    if (memcmp (block, zeroes, TAR_BLOCK_BYTES) == 0)
        return TAR_END;
    if (memcmp (block + MAGIC, "ustar", 5) != 0 || !get_octal (block + SUM, SUM_SIZE, &sum) ||
        sum != sum_of (block))
        *why = "is no tar archive, or a damaged one";
    else if (block[TYPE] != '0' && block[TYPE] != '\0')
        *why = "holds something that is no plain file";
    else if (!get_size (block + SIZE, &out->bytes))
        *why = "holds a file of no size";
    memcpy (out->name, block + NAME, NAME_SIZE);
    out->name[NAME_SIZE] = '\0';
    if (*why == NULL &&
        (out->name[0] == '\0' || block[PREFIX] != '\0' || strchr (out->name, '/') != NULL))
        *why = "holds a file with a path in its name";
    return *why == NULL ? TAR_MEMBER : TAR_REFUSED;
}
