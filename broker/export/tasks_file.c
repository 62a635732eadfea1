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

/* Cuts off a torn last line and reads the one before it. *foreign: it is none of ours. */
static bool read_end (tasks_file_t *self, tasks_file_end_t *end, bool *foreign, char *error)
{
    char *line;
    size_t length;
    off_t torn;
    memset (end, 0, sizeof (*end));
    *foreign = false;
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
    *foreign = good && !tasks_line_parse (line, length, &last);
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
