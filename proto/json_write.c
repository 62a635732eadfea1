/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The writer: values appended one after the other, commas by one flag. */
#include "ids.h"
#include "json.h"
#include "units.h"

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
    char digits[24];
    char *at = digits + sizeof digits;
    do {
        *--at = (char) ('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (negative)
        *--at = '-';
    begin_value (self);
    bytes_append (self->out, at, (size_t) (digits + sizeof digits - at));
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

/* What may stand in a JSON string as it is. DEL and the C1 controls move cursors on terminals. */
static bool is_plain (uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

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

static void write_characters (json_writer_t *self, const uint8_t *at, size_t length)
{
    while (length > 0) {
        size_t plain = 0;
        while (plain < length && is_plain (at[plain]))
            plain++;
        bytes_append (self->out, at, plain);
        at += plain;
        length -= plain;
        if (length == 0)
            return;
        size_t size = write_character (self, at, length);
        at += size;
        length -= size;
    }
}

void json_write_string (json_writer_t *self, const void *text, size_t length)
{
    begin_value (self);
    bytes_append_byte (self->out, '"');
    write_characters (self, text, length);
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
    char text[TIME_TEXT_SIZE];
    if (ms == 0 || !time_format (text, ms))
        json_write_null (self);
    else
        json_write_plain (self, text, strlen (text));
}

/* Whole texts and bodies. */

/* Copies one string of a valid JSON text, from quote to quote; returns its length. Escapes stay as
 * they are, controls that JSON allows but a terminal obeys are escaped. */
static size_t write_raw_string (json_writer_t *self, const uint8_t *at, size_t length)
{
    size_t done = 1;
    bytes_append_byte (self->out, '"');
    while (done < length && at[done] != '"') {
        size_t plain = done;
        while (plain < length && is_plain (at[plain]))
            plain++;
        bytes_append (self->out, at + done, plain - done);
        done = plain;
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
        if (at[i] > ' ')
            bytes_append_byte (self->out, at[i]);
        i++;
    }
}

/* By hand, because libsodium's takes the same time for every secret, and eight times as long: the
 * export writes each payload that is no text. */
static void write_base64 (json_writer_t *self, const uint8_t *at, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t *room = bytes_reserve (self->out, (length + 2) / 3 * 4);
    if (room == NULL)
        return;
    self->out->length += (length + 2) / 3 * 4;
    for (; length >= 3; length -= 3, at += 3, room += 4) {
        unsigned long group = (unsigned long) at[0] << 16 | (unsigned long) at[1] << 8 | at[2];
        room[0] = (uint8_t) digits[group >> 18];
        room[1] = (uint8_t) digits[group >> 12 & 63];
        room[2] = (uint8_t) digits[group >> 6 & 63];
        room[3] = (uint8_t) digits[group & 63];
    }
    if (length == 0)
        return;
    unsigned long group = (unsigned long) at[0] << 16;
    group |= length > 1 ? (unsigned long) at[1] << 8 : 0;
    room[0] = (uint8_t) digits[group >> 18];
    room[1] = (uint8_t) digits[group >> 12 & 63];
    room[2] = (uint8_t) (length > 1 ? digits[group >> 6 & 63] : '=');
    room[3] = '=';
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
