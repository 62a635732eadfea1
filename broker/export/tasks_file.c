/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "export/tasks_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "export/line_file.h"
#include "ids.h"

enum { FIRST_BYTES = 512 }; /* of a line: more than tells that it is ours */

struct tasks_file {
    line_file_t lines;
};

bool tasks_line_parse (const char *line, size_t length, tasks_line_t *out)
{
    json_t *object = json_loadb (line, length, 0, NULL);
    json_int_t pos = json_integer_value (json_object_get (object, "pos"));
    const char *id = json_string_value (json_object_get (object, "task_id"));
    const char *ns = json_string_value (json_object_get (object, "namespace"));
    bool ours = pos > 0 && id != NULL && id_parse (&out->id, id);
    out->pos = ours ? (uint64_t) pos : 0;
    out->seq = (uint64_t) json_integer_value (json_object_get (object, "seq"));
    snprintf (out->ns, sizeof (out->ns), "%s", ns == NULL ? "" : ns);
    json_decref (object);
    return ours;
}

/* What is left of a line that is read from its beginning. */
typedef struct left {
    const char *at;
    const char *end;
} left_t;

static bool take_text (left_t *left, const char *text)
{
    size_t length = strlen (text);
    if ((size_t) (left->end - left->at) < length || memcmp (left->at, text, length) != 0)
        return false;
    left->at += length;
    return true;
}

/* Up to 18 digits: no overflow, and more than a broker ever counts. */
static bool take_number (left_t *left, uint64_t *out)
{
    const char *first = left->at;
    for (*out = 0; left->at < left->end && *left->at >= '0' && *left->at <= '9'; left->at++)
        *out = *out * 10 + (uint64_t) (*left->at - '0');
    return left->at > first && left->at - first <= 18;
}

/* A text without escapes, of less than `size` bytes, and the quote behind it. */
static bool take_string (left_t *left, char *out, size_t size)
{
    const char *quote = memchr (left->at, '"', (size_t) (left->end - left->at));
    if (quote == NULL || (size_t) (quote - left->at) >= size)
        return false;
    size_t length = (size_t) (quote - left->at);
    memcpy (out, left->at, length);
    out[length] = '\0';
    left->at = quote + 1;
    return memchr (out, '\\', length) == NULL;
}

bool tasks_line_place (const char *line, size_t length, tasks_line_t *out)
{
    left_t left = {line, line + length};
    char id[ID_TEXT_SIZE];
    if (take_text (&left, "{\"task_id\":\"") && take_string (&left, id, sizeof (id)) &&
        take_text (&left, ",\"namespace\":\"") && take_string (&left, out->ns, sizeof (out->ns)) &&
        take_text (&left, ",\"seq\":") && take_number (&left, &out->seq) &&
        take_text (&left, ",\"pos\":") && take_number (&left, &out->pos) &&
        take_text (&left, ",") && out->pos > 0 && id_parse (&out->id, id))
        return true;
    return tasks_line_parse (line, length, out);
}

/* Payloads and results are JSON that the parser may refuse, as it does numbers without an end: of
 * a line that begins as the exporter writes it the beginning counts, and that it has its end. */
static bool is_ours (const char *line, size_t length, tasks_line_t *out)
{
    return length > 0 && line[length - 1] == '}' && memchr (line, '\0', length) == NULL &&
           tasks_line_place (line, length, out);
}

/* The file's first line is one of ours. */
static bool begins_as_ours (const tasks_file_t *self)
{
    char begin[FIRST_BYTES];
    tasks_line_t first;
    ssize_t got = pread (self->lines.fd, begin, sizeof (begin), 0);
    const char *newline = got > 0 ? memchr (begin, '\n', (size_t) got) : NULL;
    return got > 0 &&
           tasks_line_place (begin, newline == NULL ? (size_t) got : (size_t) (newline - begin),
                             &first);
}

/* What a loss of power left behind a hole is written again, from the line before it. A file that
 * begins with a hole is *foreign, as anything that is not ours. */
static bool cut_hole (tasks_file_t *self, tasks_file_end_t *end, bool *foreign, char *error)
{
    off_t at;
    off_t length = self->lines.length;
    if (!line_file_find_hole (&self->lines, &at, error))
        return false;
    *foreign = at >= 0 && !begins_as_ours (self);
    if (at < 0 || *foreign)
        return true;
    end->hole_bytes = (uint64_t) (length - at);
    return line_file_cut_at (&self->lines, at, error);
}

/* Cuts off a torn last line and reads the one before it. *foreign: it is none of ours. */
static bool read_end (tasks_file_t *self, tasks_file_end_t *end, bool *foreign, char *error)
{
    char *line;
    size_t length;
    off_t torn;
    memset (end, 0, sizeof (*end));
    if (!cut_hole (self, end, foreign, error))
        return false;
    if (*foreign)
        return true;
    if (!line_file_read_last (&self->lines, &line, &length, &torn, error))
        return false;
    if (line == NULL) {
        /* Not one whole line: the beginning of our first one, or something else altogether. */
        char first = '{';
        *foreign = torn > 0 && (pread (self->lines.fd, &first, 1, 0) != 1 || first != '{');
        return *foreign || torn == 0 || line_file_cut (&self->lines, error);
    }
    bool good = torn == 0 || line_file_cut (&self->lines, error);
    tasks_line_t last = {0};
    *foreign = good && !is_ours (line, length, &last);
    end->pos = last.pos;
    end->id = last.id;
    free (line);
    return good;
}

bool tasks_file_set_aside (tasks_file_t *self, char error[TASKS_FILE_ERROR_SIZE])
{
    return line_file_set_aside (&self->lines, "foreign", error);
}

tasks_file_t *tasks_file_open (const char *path, uint64_t last_pos, tasks_file_end_t *end,
                               bool *set_aside, char error[TASKS_FILE_ERROR_SIZE])
{
    tasks_file_t *self = memory_zero (1, sizeof (*self));
    bool good =
        line_file_open (&self->lines, path, error) && read_end (self, end, set_aside, error);
    *set_aside = good && (*set_aside || end->pos > last_pos);
    if (*set_aside) {
        memset (end, 0, sizeof (*end));
        good = tasks_file_set_aside (self, error);
    }
    if (!good)
        tasks_file_close (&self);
    return self;
}

void tasks_file_close (tasks_file_t **self_p)
{
    tasks_file_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    line_file_close (&self->lines);
    free (self);
}

bool tasks_file_append (tasks_file_t *self, const void *lines, size_t length,
                        char error[TASKS_FILE_ERROR_SIZE])
{
    return line_file_append (&self->lines, lines, length, error);
}

bool tasks_file_is_changed (const tasks_file_t *self)
{
    return line_file_is_changed (&self->lines);
}

line_file_t *tasks_file_lines (tasks_file_t *self)
{
    return &self->lines;
}
