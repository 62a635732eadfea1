/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line is built in memory and written at once; a value is quoted and escaped when it is not a
 * plain word, because texts of peers may stand in it. */
#include "log/log.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "timestamp.h"
#include "units.h"

static struct {
    atomic_int least;
    atomic_bool json;
} settings = {LOG_LEVEL_INFO, false};

/* A line under way keeps the form that it began in. */
typedef struct line {
    json_writer_t writer;
    bool json;
} line_t;

static const char *const level_texts[] = {"debug", "info", "warning", "error"};

static bool is_plain (const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if ((unsigned char) *text <= ' ' || strchr ("\"=\\\x7f", *text) != NULL)
            return false;
    }
    return true;
}

static void write_key (line_t *line, const char *key)
{
    if (line->json) {
        json_write_key (&line->writer, key);
        return;
    }
    if (line->writer.out->length > 0)
        bytes_append_byte (line->writer.out, ' ');
    bytes_append_text (line->writer.out, key);
    bytes_append_byte (line->writer.out, '=');
    line->writer.comma = false;
}

static void write_text (line_t *line, const char *key, const char *text)
{
    write_key (line, key);
    if (line->json || !is_plain (text))
        json_write_string (&line->writer, text, strlen (text));
    else
        bytes_append_text (line->writer.out, text);
}

static void write_time (line_t *line)
{
    char text[TIME_TEXT_SIZE] = "";
    time_format (text, clock_ms (CLOCK_REALTIME));
    if (line->json)
        write_text (line, "at", text);
    else
        bytes_append_text (line->writer.out, text);
}

void log_configure (log_level_t least, bool json)
{
    atomic_store (&settings.least, (int) least);
    atomic_store (&settings.json, json);
}

bool log_level_parse (log_level_t *out, const char *text)
{
    for (size_t i = 0; i < sizeof (level_texts) / sizeof (level_texts[0]); i++) {
        if (strcmp (text, level_texts[i]) == 0) {
            *out = (log_level_t) i;
            return true;
        }
    }
    return false;
}

void log_write (log_level_t level, const char *id, const char *message, const log_field_t *fields)
{
    if ((int) level < atomic_load (&settings.least))
        return;
    bytes_t bytes = BYTES_INIT;
    line_t line = {{&bytes, false}, atomic_load (&settings.json)};
    if (line.json)
        json_write_object_begin (&line.writer);
    write_time (&line);
    write_text (&line, "level", level_texts[level]);
    write_text (&line, "id", id);
    write_text (&line, "msg", message);
    for (; fields != NULL && fields->key != NULL; fields++) {
        if (fields->text != NULL) {
            write_text (&line, fields->key, fields->text);
        } else {
            write_key (&line, fields->key);
            json_write_int (&line.writer, fields->number);
        }
    }
    if (line.json)
        json_write_object_end (&line.writer);
    bytes_append_byte (&bytes, '\n');
    if (!bytes.failed) {
        ssize_t written = write (STDERR_FILENO, bytes.data, bytes.length);
        (void) written;
    }
    bytes_free (&bytes);
}
