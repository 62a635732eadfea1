/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/members.h"

#include "units.h"

void member_text (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_text (writer, text && *text ? text : NULL);
}

void member_texts (json_writer_t *writer, const char *key, const char *const *texts, size_t count)
{
    json_write_key (writer, key);
    json_write_array_begin (writer);
    for (size_t i = 0; i < count; i++)
        json_write_text (writer, texts[i]);
    json_write_array_end (writer);
}

void member_uint (json_writer_t *writer, const char *key, uint64_t value)
{
    json_write_key (writer, key);
    json_write_uint (writer, value);
}

void member_time (json_writer_t *writer, const char *key, uint64_t ms)
{
    char text[TIME_TEXT_SIZE] = "";
    if (ms != 0)
        time_format (text, (int64_t) ms);
    member_text (writer, key, text);
}
