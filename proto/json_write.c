/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The writer: values appended one after the other, commas by one flag. */
#include "digits.h"
#include "ids.h"
#include "json.h"
#include "json_plain.h"
#include "units.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void write_text (json_writer_t *self, const char *text)
{
    bytes_append_text (self->out, text);
}

static void begin_value (json_writer_t *self)
{
    if (self->comma)
        bytes_append_byte (self->out, ',');
    self->comma = true;
}

void json_write_object_begin (json_writer_t *self)
{
    begin_value (self);
    bytes_append_byte (self->out, '{');
    self->comma = false;
}

void json_write_object_end (json_writer_t *self)
{
    bytes_append_byte (self->out, '}');
    self->comma = true;
}

void json_write_array_begin (json_writer_t *self)
{
    begin_value (self);
    bytes_append_byte (self->out, '[');
    self->comma = false;
}

void json_write_array_end (json_writer_t *self)
{
    bytes_append_byte (self->out, ']');
    self->comma = true;
}

void json_write_null (json_writer_t *self)
{
    begin_value (self);
    bytes_append (self->out, "null", 4);
}

void json_write_bool (json_writer_t *self, bool value)
{
    begin_value (self);
    write_text (self, value ? "true" : "false");
}

static void write_number (json_writer_t *self, uint64_t magnitude, bool negative)
{
    char *room = (char *) bytes_reserve (self->out, DIGITS_MAX + 2);
    if (room == NULL)
        return;
    char *at = room;
    if (self->comma)
        *at++ = ',';
    if (negative)
        *at++ = '-';
    self->comma = true;
    self->out->length += (size_t) (digits_put (at, magnitude) - room);
}

void json_write_uint (json_writer_t *self, uint64_t value)
{
    write_number (self, value, false);
}

void json_write_int (json_writer_t *self, int64_t value)
{
    write_number (self, value < 0 ? 0 - (uint64_t) value : (uint64_t) value, value < 0);
}

void json_write_double (json_writer_t *self, double value)
{
    char text[UNITS_TEXT_SIZE];
    if (!isfinite (value)) {
        json_write_null (self);
        return;
    }
    begin_value (self);
    write_text (self, number_format (text, value, NUMBER_DIGITS_MAX));
}

/* Strings. */

static void write_escape (json_writer_t *self, unsigned code)
{
    char text[8];
    const char *known = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (; *known != '\0'; known += 2) {
        if ((unsigned char) known[0] == code) {
            const uint8_t pair[2] = {'\\', (uint8_t) known[1]};
            bytes_append (self->out, pair, sizeof pair);
            return;
        }
    }
    snprintf (text, sizeof text, "\\u%04x", code & 0xffff);
    write_text (self, text);
}

bool json_text_is_hidden (uint32_t character)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } hidden[] = {{0xad, 0xad},     {0x34f, 0x34f},    {0x61c, 0x61c},   {0x115f, 0x1160},
                  {0x17b4, 0x17b5}, {0x180b, 0x180f},  {0x200b, 0x200f}, {0x2028, 0x202e},
                  {0x2060, 0x206f}, {0x3164, 0x3164},  {0xfeff, 0xfeff}, {0xffa0, 0xffa0},
                  {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (character <= hidden[i].last)
            return character >= hidden[i].first;
    }
    return false;
}

/* Writes one character that is not plain ASCII; returns its length, at least 1. */
static size_t write_character (json_writer_t *self, const uint8_t *at, size_t length)
{
    size_t size = utf8_character (at, length);
    if (size == 0) {
        write_text (self, "\xef\xbf\xbd");
        return 1;
    }
    uint32_t code = utf8_code (at, size);
    if (code >= 0xa0 && !json_text_is_hidden (code)) {
        bytes_append (self->out, at, size);
    } else if (code <= 0xffff) {
        write_escape (self, code);
    } else {
        write_escape (self, 0xd800 + ((code - 0x10000) >> 10));
        write_escape (self, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
    return size;
}

/* Without quotes. Nearly always the first step takes all of it. */
static void write_characters (json_writer_t *self, const uint8_t *at, size_t length)
{
    while (length > 0) {
        uint8_t *room = bytes_reserve (self->out, length);
        if (room == NULL)
            return;
        size_t size = json_plain_copy (room, at, length);
        self->out->length += size;
        at += size;
        length -= size;
        if (length == 0)
            return;
        size = write_character (self, at, length);
        at += size;
        length -= size;
    }
}

void json_write_string (json_writer_t *self, const void *text, size_t length)
{
    uint8_t *room = bytes_reserve (self->out, length + 3);
    if (room == NULL)
        return;
    uint8_t *at = room;
    if (self->comma)
        *at++ = ',';
    *at++ = '"';
    self->comma = true;
    size_t plain = json_plain_copy (at, text, length);
    self->out->length += (size_t) (at - room) + plain;
    if (plain < length)
        write_characters (self, (const uint8_t *) text + plain, length - plain);
    bytes_append_byte (self->out, '"');
}

void json_write_foreign_key (json_writer_t *self, const char *key)
{
    json_write_string (self, key, strlen (key));
    bytes_append_byte (self->out, ':');
    self->comma = false;
}

void json_write_plain (json_writer_t *self, const char *text, size_t length)
{
    begin_value (self);
    uint8_t *room = bytes_reserve (self->out, length + 2);
    if (room == NULL)
        return;
    room[0] = '"';
    memcpy (room + 1, text, length);
    room[length + 1] = '"';
    self->out->length += length + 2;
}

void json_write_text (json_writer_t *self, const char *text)
{
    if (text == NULL || *text == '\0')
        json_write_null (self);
    else
        json_write_string (self, text, strlen (text));
}

void json_write_time (json_writer_t *self, int64_t ms)
{
    char *room = (char *) bytes_reserve (self->out, TIME_TEXT_SIZE + 2);
    if (room == NULL)
        return;
    char *at = room;
    if (self->comma)
        *at++ = ',';
    if (ms == 0 || !time_format (at + 1, ms)) {
        json_write_null (self);
        return;
    }
    *at = '"';
    at[TIME_TEXT_SIZE] = '"'; /* in place of its NUL */
    self->comma = true;
    self->out->length += (size_t) (at + TIME_TEXT_SIZE + 1 - room);
}

/* Whole texts and bodies. */

/* Copies one string of a valid JSON text, from quote to quote; returns its length. Escapes stay as
 * they are, controls that JSON allows but a terminal obeys are escaped. */
static size_t write_raw_string (json_writer_t *self, const uint8_t *at, size_t length)
{
    size_t done = 1;
    bytes_append_byte (self->out, '"');
    while (done < length && at[done] != '"') {
        uint8_t *room = bytes_reserve (self->out, length - done);
        if (room == NULL)
            return length;
        size_t plain = json_plain_copy (room, at + done, length - done);
        self->out->length += plain;
        done += plain;
        if (done + 1 < length && at[done] == '\\') {
            bytes_append (self->out, at + done, 2);
            done += 2;
        } else if (done < length && at[done] != '"') {
            done += write_character (self, at + done, length - done);
        }
    }
    bytes_append_byte (self->out, '"');
    return done < length ? done + 1 : length;
}

void json_write_raw (json_writer_t *self, const void *text, size_t length)
{
    const uint8_t *at = text;
    begin_value (self);
    for (size_t i = 0; i < length;) {
        if (at[i] == '"') {
            i += write_raw_string (self, at + i, length - i);
            continue;
        }
        uint8_t *room = bytes_reserve (self->out, length - i);
        if (room == NULL)
            return;
        size_t size = 0;
        for (; i < length && at[i] != '"'; i++)
            if (at[i] > ' ')
                room[size++] = at[i];
        self->out->length += size;
    }
}

/* Every two digits of base64, by the twelve bits that they stand for. */
#define ROW(d)                                                                                     \
    d "A" d "B" d "C" d "D" d "E" d "F" d "G" d "H" d "I" d "J" d "K" d "L" d "M" d "N" d "O" d    \
      "P" d "Q" d "R" d "S" d "T" d "U" d "V" d "W" d "X" d "Y" d "Z" d "a" d "b" d "c" d "d" d    \
      "e" d "f" d "g" d "h" d "i" d "j" d "k" d "l" d "m" d "n" d "o" d "p" d "q" d "r" d "s" d    \
      "t" d "u" d "v" d "w" d "x" d "y" d "z" d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d    \
      "8" d "9" d "+" d "/"
static const char BASE64_PAIRS[64][128] = {
    ROW ("A"), ROW ("B"), ROW ("C"), ROW ("D"), ROW ("E"), ROW ("F"), ROW ("G"), ROW ("H"),
    ROW ("I"), ROW ("J"), ROW ("K"), ROW ("L"), ROW ("M"), ROW ("N"), ROW ("O"), ROW ("P"),
    ROW ("Q"), ROW ("R"), ROW ("S"), ROW ("T"), ROW ("U"), ROW ("V"), ROW ("W"), ROW ("X"),
    ROW ("Y"), ROW ("Z"), ROW ("a"), ROW ("b"), ROW ("c"), ROW ("d"), ROW ("e"), ROW ("f"),
    ROW ("g"), ROW ("h"), ROW ("i"), ROW ("j"), ROW ("k"), ROW ("l"), ROW ("m"), ROW ("n"),
    ROW ("o"), ROW ("p"), ROW ("q"), ROW ("r"), ROW ("s"), ROW ("t"), ROW ("u"), ROW ("v"),
    ROW ("w"), ROW ("x"), ROW ("y"), ROW ("z"), ROW ("0"), ROW ("1"), ROW ("2"), ROW ("3"),
    ROW ("4"), ROW ("5"), ROW ("6"), ROW ("7"), ROW ("8"), ROW ("9"), ROW ("+"), ROW ("/")};
#undef ROW

static inline void put_base64_pair (uint8_t *to, uint64_t bits)
{
    memcpy (to, &BASE64_PAIRS[0][0] + 2 * (bits & 4095), 2);
}

/* The digits of the first six of eight bytes. */
static inline void put_base64_six (uint8_t to[8], const uint8_t eight[8])
{
    uint64_t word;
    memcpy (&word, eight, sizeof (word));
    word = be64toh (word);
    put_base64_pair (to, word >> 52);
    put_base64_pair (to + 2, word >> 40);
    put_base64_pair (to + 4, word >> 28);
    put_base64_pair (to + 6, word >> 16);
}

/* By hand, because libsodium's takes the same time for every secret, and eight times as long: the
 * export writes each payload that is no text. */
static void write_base64 (json_writer_t *self, const uint8_t *at, size_t length)
{
    uint8_t *room = bytes_reserve (self->out, (length + 2) / 3 * 4);
    if (room == NULL)
        return;
    self->out->length += (length + 2) / 3 * 4;
    for (; length >= 8; length -= 6, at += 6, room += 8)
        put_base64_six (room, at);
    while (length > 0) {
        uint8_t last[8] = {0};
        uint8_t digits[8];
        size_t taken = length < 6 ? length : 6;
        size_t known = (8 * taken + 5) / 6;
        memcpy (last, at, taken);
        put_base64_six (digits, last);
        memset (digits + known, '=', sizeof (digits) - known);
        memcpy (room, digits, (taken + 2) / 3 * 4);
        length -= taken;
        at += taken;
        room += 8;
    }
}

void json_write_base64 (json_writer_t *self, const void *bytes, size_t length)
{
    begin_value (self);
    bytes_append_byte (self->out, '"');
    write_base64 (self, bytes, length);
    bytes_append_byte (self->out, '"');
}

/* True if type without its parameters is wanted. */
static bool is_type (const char *type, const char *wanted)
{
    size_t length = strcspn (type, "; \t");
    return length == strlen (wanted) && strncasecmp (type, wanted, length) == 0;
}

void json_write_body (json_writer_t *self, const char *content_type, const void *bytes,
                      size_t length)
{
    const char *type = content_type != NULL ? content_type : "";
    if (is_type (type, "application/json") && json_text_is_valid (bytes, length))
        json_write_raw (self, bytes, length);
    else if ((type[0] == '\0' || strncasecmp (type, "text/", 5) == 0) &&
             utf8_is_valid (bytes, length))
        json_write_string (self, bytes, length);
    else {
        json_write_object_begin (self);
        json_write_key (self, "base64");
        json_write_base64 (self, bytes, length);
        json_write_object_end (self);
    }
}

void json_write_newline (json_writer_t *self)
{
    bytes_append_byte (self->out, '\n');
    self->comma = false;
}
