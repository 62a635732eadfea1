/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "screen/output.h"
#include "screen/pieces.h"

enum { NAME_SIZE = 128 };

/* A field by its name: a member, "label:KEY", or a member of a member. */
static bool find_field (piece_t *out, piece_t object, const char *name, size_t length)
{
    const char *dot = memchr (name, '.', length);
    piece_t inner;
    if (length > 6 && strncmp (name, "label:", 6) == 0)
        return piece_member (&inner, object, "labels", 6) &&
               piece_member (out, inner, name + 6, length - 6);
    if (piece_member (out, object, name, length))
        return true;
    return dot && piece_member (&inner, object, name, (size_t) (dot - name)) &&
           find_field (out, inner, dot + 1, length - (size_t) (dot + 1 - name));
}

void fields_pick (bytes_t *bytes, const char *fields)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = {&out, false};
    const piece_t object = {(const char *) bytes->data, bytes->length};
    json_write_object_begin (&writer);
    while (fields) {
        const size_t length = strcspn (fields, ",");
        char name[NAME_SIZE];
        piece_t value;
        snprintf (name, sizeof name, "%.*s", (int) length, fields);
        json_write_key (&writer, name);
        if (find_field (&value, object, fields, length))
            json_write_raw (&writer, value.at, value.length);
        else
            json_write_null (&writer);
        fields = fields[length] ? fields + length + 1 : NULL;
    }
    json_write_object_end (&writer);
    bytes_free (bytes);
    *bytes = out;
}

char *fields_value (const bytes_t *object, const char *key)
{
    piece_t value;
    if (!piece_member (&value, (piece_t){(const char *) object->data, object->length}, key,
                       strlen (key)))
        return NULL;
    char *text = must_alloc (value.length + 1);
    memcpy (text, value.at, value.length);
    text[value.length] = '\0';
    return text;
}

/* Checking. */

/* What the one renderer makes of a task and of an event, empty ones. */
static void write_samples (bytes_t *task, bytes_t *event)
{
    static const task_extras_t extras = {.payload = true};
    const task_view_t no_task = {.queue = ""};
    const event_view_t no_event = {.queue = "", .cursor = ""};
    json_write_task (&(json_writer_t){task, false}, &no_task, &extras);
    json_write_event (&(json_writer_t){event, false}, &no_event);
    bytes_append_byte (task, '\0');
    bytes_append_byte (event, '\0');
}

/* What get and export add to the keys of a task. */
static bool is_part (const char *name, size_t length)
{
    static const char *const parts[] = {
        "adopted_from", "after",     "artifacts",   "attempts",    "backoff_ms", "dedup_key",
        "events",       "files",     "found",       "lease_ms",    "parts",      "payload_hash",
        "payload_text", "questions", "result_hash", "result_text", "turns"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen (parts[i]) == length && strncmp (parts[i], name, length) == 0)
            return true;
    return false;
}

static bool is_known (piece_t task, piece_t event, const char *name, size_t length)
{
    const size_t first = strcspn (name, ".,");
    piece_t ignored;
    if (length == 0 || length >= NAME_SIZE || strcspn (name, "\"\\") < length)
        return false;
    if (strncmp (name, "label:", 6) == 0)
        return length > 6;
    return is_part (name, first) || piece_member (&ignored, task, name, first) ||
           piece_member (&ignored, event, name, first);
}

/* A list, and a table of it, has no bodies and nothing that is kept beside a task. */
static bool is_of_list (const app_t *app)
{
    const char *command = app->args.command->name;
    const char *format = args_text (&app->args, OPT_FORMAT);
    return strcmp (command, "list") == 0 ||
           (strcmp (command, "export") == 0 && format && strcmp (format, "csv") == 0);
}

static bool is_in_list (const char *name, size_t length)
{
    static const char *const bodies[] = {"payload", "result"};
    static const char found[] = "found";
    if (length == sizeof found - 1 && memcmp (name, found, length) == 0)
        return true;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (strlen (bodies[i]) == length && memcmp (name, bodies[i], length) == 0)
            return false;
    return !is_part (name, length);
}

int fields_check (const app_t *app)
{
    const char *fields = args_text (&app->args, OPT_FIELDS);
    bytes_t task = BYTES_INIT;
    bytes_t event = BYTES_INIT;
    int code = 0;
    if (!fields)
        return 0;
    if (app->format != FORMAT_JSON && app->format != FORMAT_JSONL && !app->args.command->forms)
        return usage_error (app, "list --columns chooses what a table shows",
                            "--fields goes with -o json or -o jsonl");
    write_samples (&task, &event);
    const piece_t task_text = {(const char *) task.data, task.length};
    const piece_t event_text = {(const char *) event.data, event.length};
    while (!code && fields) {
        const size_t length = strcspn (fields, ",");
        if (!is_known (task_text, event_text, fields, length))
            code =
                usage_error (app, "the keys of the JSON without --fields, or label:NAME",
                             "there is no field '%.*s'", (int) (length < 64 ? length : 64), fields);
        else if (is_of_list (app) && !is_in_list (fields, strcspn (fields, ".,")))
            code = usage_error (app, "taskctl export --format jsonl has it, and get of some tasks",
                                "a list has no %.*s", (int) strcspn (fields, ".,"), fields);
        fields = fields[length] ? fields + length + 1 : NULL;
    }
    bytes_free (&task);
    bytes_free (&event);
    return code;
}
