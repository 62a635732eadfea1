/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "ids.h"

#include <endian.h>
#include <string.h>

/* Task ids. */

void id_make (tmq_id_t *out, int64_t wall_ms, const uint8_t random[ID_RANDOM_BYTES])
{
    uint64_t time = (uint64_t) wall_ms;
    for (int i = 0; i < 6; i++)
        out->bytes[i] = (uint8_t) (time >> (40 - 8 * i));
    memcpy (out->bytes + 6, random, ID_RANDOM_BYTES);
    out->bytes[6] = (uint8_t) (0x70 | (out->bytes[6] & 0x0f));
    out->bytes[8] = (uint8_t) (0x80 | (out->bytes[8] & 0x3f));
}

bool id_is_v7 (const tmq_id_t *id)
{
    return (id->bytes[6] & 0xf0) == 0x70 && (id->bytes[8] & 0xc0) == 0x80;
}

int64_t id_time_ms (const tmq_id_t *id)
{
    int64_t time = 0;
    for (int i = 0; i < 6; i++)
        time = time << 8 | id->bytes[i];
    return time;
}

bool id_is_zero (const tmq_id_t *id)
{
    static const tmq_id_t zero;
    return id_equal (id, &zero);
}

bool id_equal (const tmq_id_t *a, const tmq_id_t *b)
{
    return memcmp (a->bytes, b->bytes, ID_BYTES) == 0;
}

int id_compare (const tmq_id_t *a, const tmq_id_t *b)
{
    return memcmp (a->bytes, b->bytes, ID_BYTES);
}

bool id_from_bytes (tmq_id_t *out, const void *bytes, size_t length)
{
    if (length != ID_BYTES)
        return false;
    memcpy (out->bytes, bytes, ID_BYTES);
    return true;
}

/* True where a UUID's text has a dash. */
static bool is_dash_place (size_t position)
{
    return position == 8 || position == 13 || position == 18 || position == 23;
}

void id_format (const tmq_id_t *id, char text[ID_TEXT_SIZE])
{
    char digits[ID_SUFFIX_SIZE];
    hex_encode (digits, id->bytes, ID_BYTES);
    memcpy (text, digits, 8);
    memcpy (text + 9, digits + 8, 4);
    memcpy (text + 14, digits + 12, 4);
    memcpy (text + 19, digits + 16, 4);
    memcpy (text + 24, digits + 20, 12);
    text[8] = text[13] = text[18] = text[23] = '-';
    text[ID_TEXT_LENGTH] = '\0';
}

bool id_parse (tmq_id_t *out, const char *text)
{
    char digits[ID_SUFFIX_SIZE];
    size_t count = 0;
    for (size_t i = 0; i < ID_TEXT_LENGTH; i++) {
        if (text[i] == '\0' || (text[i] == '-') != is_dash_place (i))
            return false;
        if (text[i] != '-')
            digits[count++] = text[i];
    }
    digits[count] = '\0';
    tmq_id_t id = {{0}};
    if (text[ID_TEXT_LENGTH] != '\0' || !hex_decode (id.bytes, ID_BYTES, digits))
        return false;
    *out = id;
    return true;
}

bool id_suffix_parse (char out[ID_SUFFIX_SIZE], const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) {
        if (*text == '-')
            continue;
        if (count == ID_SUFFIX_LENGTH_MAX)
            return false;
        bool upper = *text >= 'A' && *text <= 'F';
        out[count++] = upper ? (char) (*text - 'A' + 'a') : *text;
    }
    out[count] = '\0';
    return id_suffix_is_valid (out);
}

bool id_suffix_is_valid (const char *suffix)
{
    size_t length = strspn (suffix, "0123456789abcdef");
    return suffix[length] == '\0' && length >= TMQ_SUFFIX_LENGTH_MIN &&
           length <= ID_SUFFIX_LENGTH_MAX;
}

bool id_ends_with (const tmq_id_t *id, const char *suffix)
{
    char digits[ID_SUFFIX_SIZE];
    hex_encode (digits, id->bytes, ID_BYTES);
    size_t length = strlen (suffix);
    return length <= ID_SUFFIX_LENGTH_MAX &&
           memcmp (digits + ID_SUFFIX_LENGTH_MAX - length, suffix, length) == 0;
}

/* Hexadecimal. */

/* The digits of four bytes, all at once: each takes a byte of a word. */
static void hex_encode_four (char out[8], const uint8_t in[4])
{
    const uint64_t ones = UINT64_C (0x0101010101010101);
    const uint64_t low = UINT64_C (0x000f000f000f000f);
    uint64_t word =
        (uint64_t) in[0] | (uint64_t) in[1] << 16 | (uint64_t) in[2] << 32 | (uint64_t) in[3] << 48;
    word = (word >> 4 & low) | (word & low) << 8;
    uint64_t letters = (word + 6 * ones) >> 4 & ones;
    word = htole64 (word + '0' * ones + ('a' - '0' - 10) * letters);
    memcpy (out, &word, sizeof (word));
}

void hex_encode (char *out, const void *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *byte = bytes;
    for (; length >= 4; length -= 4, byte += 4, out += 8)
        hex_encode_four (out, byte);
    for (size_t i = 0; i < length; i++) {
        *out++ = digits[byte[i] >> 4];
        *out++ = digits[byte[i] & 0x0f];
    }
    *out = '\0';
}

/* Value of a hexadecimal digit, or -1. */
static int hex_value (char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

bool hex_decode (void *out, size_t length, const char *text)
{
    uint8_t *byte = out;
    for (size_t i = 0; i < length; i++) {
        int high = hex_value (text[0]);
        int low = high < 0 ? -1 : hex_value (text[1]);
        if (low < 0)
            return false;
        byte[i] = (uint8_t) (high << 4 | low);
        text += 2;
    }
    return *text == '\0';
}

/* Text. */

static bool is_name_character (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool name_is_valid (const char *text)
{
    size_t length = 0;
    while (is_name_character (text[length])) {
        if (++length > TMQ_NAME_LENGTH_MAX)
            return false;
    }
    return length > 0 && text[length] == '\0';
}

size_t utf8_character (const uint8_t *bytes, size_t length)
{
    if (length == 0)
        return 0;
    uint8_t first = bytes[0];
    if (first < 0x80)
        return 1;
    size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length < count)
        return 0;
    /* The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF. */
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (bytes[1] < low || bytes[1] > high)
        return 0;
    for (size_t i = 2; i < count; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    }
    return count;
}

uint32_t utf8_code (const uint8_t *character, size_t length)
{
    uint32_t code = length == 1 ? character[0] : character[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (character[i] & 0x3f);
    return code;
}

/* True if all eight bytes are in 0x01..0x7f. */
static bool is_ascii_word (const uint8_t *bytes)
{
    uint64_t word;
    memcpy (&word, bytes, sizeof word);
    const uint64_t ones = UINT64_C (0x0101010101010101);
    const uint64_t tops = UINT64_C (0x8080808080808080);
    /* With no top bit set, subtracting one sets a top bit exactly if some byte is zero. */
    return (word & tops) == 0 && ((word - ones) & tops) == 0;
}

bool utf8_is_valid (const void *bytes, size_t length)
{
    const uint8_t *next = bytes;
    while (length > 0) {
        if (length >= sizeof (uint64_t) && is_ascii_word (next)) {
            next += sizeof (uint64_t);
            length -= sizeof (uint64_t);
            continue;
        }
        size_t count = *next == 0 ? 0 : utf8_character (next, length);
        if (count == 0)
            return false;
        next += count;
        length -= count;
    }
    return true;
}

size_t utf8_whole (const char *text, size_t length, size_t max)
{
    if (length <= max)
        return length;
    while (max > 0 && ((unsigned char) text[max] & 0xc0) == 0x80)
        max--;
    return max;
}
