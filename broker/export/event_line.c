/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
#include "export/event_line.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "digits.h"
#include "ids.h"
#include "units.h"

enum { GENERATION_SIZE = 17 };

static void write_pos (json_writer_t *writer, uint64_t pos)
{
    json_write_key (writer, "pos");
    json_write_uint (writer, pos);
}

/* Takes the braces off the object that was written behind "from". */
static void strip (bytes_t *out, size_t from)
{
    if (out->failed)
        return;
    memmove (out->data + from, out->data + from + 1, out->length - from - 2);
    out->length -= 2;
}

void event_line_event (bytes_t *out, event_view_t *event, uint64_t pos, uint64_t generation)
{
    char cursor[2 * DIGITS_MAX + 2];
    json_writer_t writer = {out, false};
    char *at = digits_put (cursor, generation);
    *at++ = '-';
    *digits_put (at, event->seq) = '\0';
    write_pos (&writer, pos);
    event->cursor = cursor;
    json_write_event_members (&writer, event);
    event->cursor = NULL;
}

void event_line_gap (bytes_t *out, uint64_t from, uint64_t to)
{
    const gap_view_t gap = {.from = from, .to = to};
    write_pos (&(json_writer_t){out, false}, to);
    bytes_append_byte (out, ',');
    size_t at = out->length;
    json_write_gap (&(json_writer_t){out, false}, &gap);
    strip (out, at);
}

/* A number of 64 bits is no number of JSON. */
static void write_generation (json_writer_t *writer, const char *key, uint64_t generation)
{
    char text[GENERATION_SIZE];
    json_write_key (writer, key);
    snprintf (text, sizeof (text), "%016" PRIx64, generation);
    if (generation == 0)
        json_write_null (writer);
    else
        json_write_text (writer, text);
}

void event_line_anchor (bytes_t *out, const event_anchor_t *anchor)
{
    static const char *const reasons[] = {"begun", "turned", "changed", "other_history",
                                          "rollback"};
    json_writer_t writer = {out, false};
    write_pos (&writer, anchor->pos);
    json_write_key (&writer, "kind");
    json_write_text (&writer, "anchor");
    json_write_key (&writer, "format");
    json_write_uint (&writer, EVENT_LINE_FORMAT);
    write_generation (&writer, "generation", anchor->generation);
    json_write_key (&writer, "first_pos");
    json_write_uint (&writer, anchor->pos + 1);
    json_write_key (&writer, "at");
    json_write_time (&writer, anchor->at);
    json_write_key (&writer, "why");
    json_write_text (&writer, reasons[anchor->why]);
    write_generation (&writer, "before_generation", anchor->before_generation);
    json_write_key (&writer, "before_pos");
    if (anchor->before_generation == 0)
        json_write_null (&writer);
    else
        json_write_uint (&writer, anchor->before_pos);
}

static bool parse_generation (uint64_t *out, const char *text)
{
    char end;
    return text != NULL && strlen (text) == GENERATION_SIZE - 1 &&
           sscanf (text, "%16" SCNx64 "%c", out, &end) == 1 && *out != 0;
}

bool event_line_parse (event_place_t *out, const char *line, size_t length)
{
    char error[UNITS_ERROR_SIZE];
    *out = (event_place_t){0};
    json_t *object = json_loadb (line, length, 0, NULL);
    const json_t *pos = json_object_get (object, "pos");
    const char *kind = json_string_value (json_object_get (object, "kind"));
    const char *ns = json_string_value (json_object_get (object, "namespace"));
    const char *id = json_string_value (json_object_get (object, "task_id"));
    bool good = json_is_integer (pos) && json_integer_value (pos) >= 0 && kind != NULL;
    out->pos = good ? (uint64_t) json_integer_value (pos) : 0;
    if (good && strcmp (kind, "anchor") == 0) {
        const char *at = json_string_value (json_object_get (object, "at"));
        good = json_integer_value (json_object_get (object, "format")) == EVENT_LINE_FORMAT &&
               parse_generation (&out->generation,
                                 json_string_value (json_object_get (object, "generation"))) &&
               at != NULL && time_parse (&out->at, at, error);
    } else if (good && strcmp (kind, "gap") != 0) {
        out->seq = (uint64_t) json_integer_value (json_object_get (object, "seq"));
        good =
            out->pos > 0 && out->seq > 0 && ns != NULL && (id == NULL || id_parse (&out->id, id));
        snprintf (out->ns, sizeof (out->ns), "%s", ns == NULL ? "" : ns);
    }
    json_decref (object);
    return good;
}
