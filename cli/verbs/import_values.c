/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/import_values.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ids.h"
#include "units.h"

/* Memory, and what is wrong. */

static void *keep (import_line_t *self, void *memory)
{
    self->owned = must_grow (self->owned, self->owned_count + 1, sizeof *self->owned);
    self->owned[self->owned_count++] = memory;
    return memory;
}

void *line_room (import_line_t *self, size_t count, size_t size)
{
    void *memory = keep (self, must_alloc ((count + 1) * size));
    memset (memory, 0, (count + 1) * size);
    return memory;
}

bool line_wrong (import_line_t *self, const char *format, ...)
{
    va_list list;
    va_start (list, format);
    vsnprintf (self->why, sizeof self->why, format, list);
    va_end (list);
    return false;
}

bool line_wrong_in (import_line_t *self, const char *key, size_t nth)
{
    char why[IMPORT_WHY_SIZE];
    char place[24] = "";
    memcpy (why, self->why, sizeof why);
    if (nth > 0)
        snprintf (place, sizeof place, "[%zu]", nth);
    return line_wrong (self, "%s%s: %.200s", key, place, why);
}

/* Values. */

static bool is_null (piece_t piece)
{
    return piece.length == 4 && memcmp (piece.at, "null", 4) == 0;
}

bool line_find (piece_t *out, piece_t object, const char *key)
{
    return piece_member (out, object, key, strlen (key)) && !is_null (*out);
}

char *line_decode (import_line_t *self, piece_t piece, size_t *length)
{
    json_t *value = *piece.at == '"' ? json_loadb (piece.at, piece.length,
                                                   JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                                     : NULL;
    if (!json_is_string (value)) {
        json_decref (value);
        return NULL;
    }
    *length = json_string_length (value);
    char *text = keep (self, must_alloc (*length + 1));
    memcpy (text, json_string_value (value), *length + 1);
    json_decref (value);
    return text;
}

bool line_text (import_line_t *self, const char **out, piece_t object, const char *key)
{
    piece_t piece;
    size_t length;
    if (!line_find (&piece, object, key))
        return true;
    *out = line_decode (self, piece, &length);
    return (*out && strlen (*out) == length) || line_wrong (self, "%s must be a string", key);
}

bool line_raw (import_line_t *self, const char **out, piece_t object, const char *key)
{
    piece_t piece;
    if (!line_find (&piece, object, key))
        return true;
    char *text = line_room (self, piece.length, 1);
    memcpy (text, piece.at, piece.length);
    *out = text;
    return true;
}

bool line_number (import_line_t *self, uint64_t *out, piece_t object, const char *key, uint64_t max)
{
    piece_t piece;
    char text[24] = "";
    char *end = text;
    if (!line_find (&piece, object, key))
        return true;
    if (piece.length < sizeof text && *piece.at >= '0' && *piece.at <= '9') {
        memcpy (text, piece.at, piece.length);
        *out = strtoull (text, &end, 10);
    }
    return (end > text && !*end && *out <= max) ||
           line_wrong (self, "%s must be a whole number of at most %" PRIu64, key, max);
}

bool line_number_32 (import_line_t *self, uint32_t *out, piece_t object, const char *key)
{
    uint64_t number = *out;
    if (!line_number (self, &number, object, key, UINT32_MAX))
        return false;
    *out = (uint32_t) number;
    return true;
}

bool line_code (import_line_t *self, int32_t *out, piece_t object)
{
    piece_t piece;
    char text[16] = "";
    char *end = text;
    long long code = 0;
    if (!line_find (&piece, object, "code"))
        return true;
    if (piece.length < sizeof text) {
        memcpy (text, piece.at, piece.length);
        code = strtoll (text, &end, 10);
    }
    *out = (int32_t) code;
    return (end > text && !*end && code >= INT32_MIN && code <= INT32_MAX) ||
           line_wrong (self, "code must be a whole number of 32 bits");
}

bool line_amount (import_line_t *self, double *out, piece_t object, const char *key)
{
    piece_t piece;
    char text[64] = "";
    char *end = text;
    if (!line_find (&piece, object, key))
        return true;
    if (piece.length < sizeof text) {
        memcpy (text, piece.at, piece.length);
        *out = strtod (text, &end);
    }
    return (end > text && !*end) || line_wrong (self, "%s must be a number", key);
}

bool line_bool (import_line_t *self, bool *out, piece_t object, const char *key)
{
    piece_t piece;
    if (!line_find (&piece, object, key))
        return true;
    *out = *piece.at == 't';
    return *piece.at == 't' || *piece.at == 'f' ||
           line_wrong (self, "%s must be true or false", key);
}

bool line_time (import_line_t *self, uint64_t *out, piece_t object, const char *key)
{
    const char *text = NULL;
    char error[UNITS_ERROR_SIZE];
    int64_t ms = 0;
    if (!line_text (self, &text, object, key))
        return false;
    if (text && !time_parse (&ms, text, error))
        return line_wrong (self, "%s %s", key, error);
    *out = (uint64_t) ms;
    return !text || ms > 0 ||
           line_wrong (self, "%s must be later than 1970-01-01T00:00:00.000Z", key);
}

bool line_id (import_line_t *self, tmq_id_t *out, piece_t object, const char *key)
{
    const char *text = NULL;
    if (!line_text (self, &text, object, key))
        return false;
    return !text || tmq_id_parse (out, text) == TMQ_OK ||
           line_wrong (self, "%s must be the id of a task", key);
}

bool line_pairs (import_line_t *self, const tmq_label_t **out, size_t *count, piece_t object,
                 const char *key, size_t max)
{
    piece_t pairs, name, value;
    const char *at = NULL;
    size_t key_length, value_length;
    if (!line_find (&pairs, object, key))
        return true;
    if (*pairs.at != '{')
        return line_wrong (self, "%s must be an object of strings", key);
    tmq_label_t *labels = line_room (self, max, sizeof *labels);
    while (piece_next_member (&name, &value, pairs, &at)) {
        if (*count == max)
            return line_wrong (self, "%s: more than %zu", key, max);
        labels[*count] = (tmq_label_t){line_decode (self, name, &key_length),
                                       line_decode (self, value, &value_length)};
        if (!labels[*count].key || !labels[*count].value)
            return line_wrong (self, "%s must be an object of strings", key);
        if (strlen (labels[*count].key) != key_length ||
            strlen (labels[*count].value) != value_length)
            return line_wrong (self, "%s: a NUL in '%.64s'", key, labels[*count].key);
        ++*count;
    }
    *out = labels;
    return true;
}

bool line_object (import_line_t *self, piece_t *out, piece_t object, const char *key)
{
    if (!line_find (out, object, key))
        *out = (piece_t){NULL, 0};
    return !out->at || *out->at == '{' || line_wrong (self, "%s must be an object", key);
}

bool line_array (import_line_t *self, piece_t *out, size_t *count, piece_t object, const char *key)
{
    piece_t one;
    const char *at = NULL;
    *count = 0;
    if (!line_find (out, object, key)) {
        *out = (piece_t){NULL, 0};
        return true;
    }
    if (*out->at != '[')
        return line_wrong (self, "%s must be an array", key);
    while (piece_next (&one, *out, &at)) {
        ++*count;
        if (*one.at != '{')
            return line_wrong (self, "%s[%zu] must be an object", key, *count);
    }
    return true;
}

bool line_hash (import_line_t *self, uint8_t hash[TMQ_BLOB_HASH_BYTES], piece_t object,
                const char *key)
{
    const char *hex = NULL;
    size_t bytes = 0;
    if (!line_text (self, &hex, object, key))
        return false;
    return (hex && strlen (hex) == 2 * TMQ_BLOB_HASH_BYTES &&
            sodium_hex2bin (hash, TMQ_BLOB_HASH_BYTES, hex, strlen (hex), NULL, &bytes, NULL) ==
                0 &&
            bytes == TMQ_BLOB_HASH_BYTES) ||
           line_wrong (self, "%s must be %d hexadecimal digits", key, 2 * TMQ_BLOB_HASH_BYTES);
}
