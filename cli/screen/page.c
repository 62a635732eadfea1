/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/page.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "screen/plain.h"

enum {
    FACT_COLUMN = 18,
    HEADING_COLUMNS = 72,
    BODY_INDENT = 4,
    LINE_INDENT = 2,
    DETAIL_INDENT = 5
};

/* Text whose further lines begin at that column. */
static void put_lines (FILE *stream, const char *text, size_t length, int column)
{
    while (length > 0) {
        const char *end = memchr (text, '\n', length);
        const size_t size = end ? (size_t) (end - text) : length;
        plain_text (stream, text, size);
        text += end ? size + 1 : size;
        length -= end ? size + 1 : size;
        if (length > 0)
            fprintf (stream, "\n%*s", *text == '\n' ? 0 : column, "");
    }
    fputc ('\n', stream);
}

/* Facts. */

static void put_fact (FILE *stream, const char *name, const json_t *value)
{
    size_t length;
    char *text = plain_value (value, &length);
    fprintf (stream, "%-*s", FACT_COLUMN, name);
    put_lines (stream, text, length, FACT_COLUMN);
    free (text);
}

static void put_labels (FILE *stream, const char *name, const json_t *labels)
{
    const char *key;
    json_t *value;
    const char *before = name;
    json_object_foreach ((json_t *) labels, key, value)
    {
        fprintf (stream, "%-*s", FACT_COLUMN, before);
        plain_text (stream, key, strlen (key));
        fputc ('=', stream);
        put_lines (stream, json_string_value (value), json_string_length (value), FACT_COLUMN);
        before = "";
    }
}

/* "3 completed, 1 failed" */
static void put_parts (FILE *stream, const json_t *parts)
{
    const char *key;
    json_t *value;
    const char *before = "";
    fprintf (stream, "%-*s", FACT_COLUMN, "parts");
    json_object_foreach ((json_t *) parts, key, value)
    {
        if (strcmp (key, "total") == 0 || json_integer_value (value) == 0)
            continue;
        fprintf (stream, "%s%" JSON_INTEGER_FORMAT " %s", before, json_integer_value (value), key);
        before = ", ";
    }
    fputc ('\n', stream);
}

/* Members that have a section, and those that say nothing to a reader of what was. */
static bool is_no_fact (const char *key)
{
    static const char *const names[] = {
        "payload", "payload_bytes", "content_type", "result",       "result_type", "result_bytes",
        "error",   "attempts",      "events",       "questions",    "version",     "turns",
        "files",   "turn_count",    "artifacts",    "payload_hash", "result_hash"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp (key, names[i]) == 0)
            return true;
    return false;
}

static bool is_empty (const json_t *value)
{
    return json_is_null (value) || json_is_false (value) ||
           (json_is_array (value) && json_array_size (value) == 0) ||
           (json_is_object (value) && json_object_size (value) == 0);
}

static void put_facts (FILE *stream, const json_t *record)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *) record, key, value)
    {
        if (is_no_fact (key) || is_empty (value))
            continue;
        if (strcmp (key, "labels") == 0 || strcmp (key, "require") == 0) {
            put_labels (stream, key, value);
        } else if (strcmp (key, "parts") == 0) {
            put_parts (stream, value);
        } else if (json_is_array (value)) {
            for (size_t i = 0; i < json_array_size (value); i++)
                put_fact (stream, i == 0 ? key : "", json_array_get (value, i));
        } else {
            put_fact (stream, key, value);
        }
    }
}

/* Sections. */

static void put_heading (FILE *stream, const char *name)
{
    fprintf (stream, "\n== %s ", name);
    for (int column = (int) strlen (name) + 4; column < HEADING_COLUMNS; column++)
        fputc ('=', stream);
    fputc ('\n', stream);
}

/* A body: text as it is, JSON with its structure. */
static void put_body (FILE *stream, const json_t *body)
{
    size_t length = json_string_length (body);
    char *text = NULL;
    if (!json_is_string (body)) {
        text = json_dumps (body, JSON_INDENT (2) | JSON_ENCODE_ANY);
        length = text ? strlen (text) : 0;
    }
    if (length > 0) {
        fprintf (stream, "%*s", BODY_INDENT, "");
        put_lines (stream, text ? text : json_string_value (body), length, BODY_INDENT);
    }
    free (text);
}

/* "3 bytes, text/plain" */
static void put_size (FILE *stream, const json_t *bytes, const json_t *type)
{
    const json_int_t count = json_integer_value (bytes);
    fprintf (stream, "%" JSON_INTEGER_FORMAT " byte%s", count, count == 1 ? "" : "s");
    if (json_is_string (type)) {
        fputs (", ", stream);
        plain_text (stream, json_string_value (type), json_string_length (type));
    }
}

/* names: the keys of the body, its type, its size, its hash if it is too large to be here, and the
 * command that fetches it. */
static void put_section (FILE *stream, const char *heading, const json_t *record,
                         const char *const names[5])
{
    const json_t *body = json_object_get (record, names[0]);
    const json_int_t bytes = json_integer_value (json_object_get (record, names[2]));
    if (!body || (json_is_null (body) && bytes == 0))
        return;
    put_heading (stream, heading);
    fputs ("  ", stream);
    put_size (stream, json_object_get (record, names[2]), json_object_get (record, names[1]));
    fputc ('\n', stream);
    if (json_object_get (record, names[3]))
        fprintf (stream, "  not here: taskctl %s ID -o FILE fetches it\n", names[4]);
    else if (bytes > 0 && json_is_string (json_object_get (body, "base64")) &&
             json_object_size (body) == 1)
        fputs ("  not a text: --format jsonl has it\n", stream);
    else if (bytes > 0)
        put_body (stream, body);
}

static void put_error (FILE *stream, const json_t *error)
{
    const json_t *data = json_object_get (error, "data");
    if (!json_is_object (error))
        return;
    put_heading (stream, "error");
    fprintf (stream, "  code %" JSON_INTEGER_FORMAT "\n",
             json_integer_value (json_object_get (error, "code")));
    put_body (stream, json_object_get (error, "message"));
    if (!json_is_null (data))
        put_body (stream, data);
}

/* What a number alone would not say. */
static const char *word_before (const char *key)
{
    return strcmp (key, "attempt") == 0 ? "attempt " : strcmp (key, "turn") == 0 ? "turn " : "";
}

static const char *word_after (const char *key)
{
    return strcmp (key, "bytes") == 0 ? " bytes" : "";
}

/* The texts of an object's members in one line; what is null or 0 is left out. */
static void put_line (FILE *stream, int indent, const json_t *object, const char *const *keys)
{
    const char *before = "";
    fprintf (stream, "%*s", indent, "");
    for (; *keys; keys++) {
        const json_t *value = json_object_get (object, *keys);
        size_t length;
        if (!value || is_empty (value) || (json_is_integer (value) && !json_integer_value (value)))
            continue;
        char *text = plain_value (value, &length);
        for (char *at = text; (at = memchr (at, '\n', length - (size_t) (at - text)));)
            *at = ' ';
        fprintf (stream, "%s%s", before, word_before (*keys));
        plain_text (stream, text, length);
        fputs (word_after (*keys), stream);
        free (text);
        before = "  ";
    }
    fputc ('\n', stream);
}

static void put_rows (FILE *stream, const char *heading, const json_t *rows,
                      const char *const *keys)
{
    if (json_array_size (rows) == 0)
        return;
    put_heading (stream, heading);
    for (size_t i = 0; i < json_array_size (rows); i++)
        put_line (stream, LINE_INDENT, json_array_get (rows, i), keys);
}

/* Where and when it came. */
static void put_when (FILE *stream, const json_t *value)
{
    fputs ("  ", stream);
    plain_text (stream, json_string_value (value), json_string_length (value));
}

static void put_attempts (FILE *stream, const json_t *attempts)
{
    static const char *const keys[] = {"attempt", "worker", "started_at", "ended_at", "end", NULL};
    if (json_array_size (attempts) == 0)
        return;
    put_heading (stream, "attempts");
    for (size_t i = 0; i < json_array_size (attempts); i++) {
        const json_t *attempt = json_array_get (attempts, i);
        const json_t *error = json_object_get (attempt, "error");
        const json_t *kept = json_object_get (attempt, "kept");
        put_line (stream, LINE_INDENT, attempt, keys);
        if (json_is_object (error))
            put_line (stream, DETAIL_INDENT, error, (const char *const[]){"code", "message", NULL});
        if (!json_is_object (kept))
            continue;
        fprintf (stream, "%*sa late success is kept: ", DETAIL_INDENT, "");
        put_size (stream, json_object_get (kept, "bytes"), json_object_get (kept, "content_type"));
        put_when (stream, json_object_get (kept, "at"));
        fputs (", until", stream);
        put_when (stream, json_object_get (kept, "until"));
        fputc ('\n', stream);
    }
}

static void put_artifacts (FILE *stream, const json_t *artifacts)
{
    if (json_array_size (artifacts) == 0)
        return;
    put_heading (stream, "artifacts");
    for (size_t i = 0; i < json_array_size (artifacts); i++) {
        const json_t *artifact = json_array_get (artifacts, i);
        const json_t *name = json_object_get (artifact, "name");
        fprintf (stream, "%*s", LINE_INDENT, "");
        plain_text (stream, json_string_value (name), json_string_length (name));
        fputs ("  ", stream);
        put_size (stream, json_object_get (artifact, "bytes"), json_object_get (artifact, "type"));
        fprintf (stream, "  attempt %" JSON_INTEGER_FORMAT,
                 json_integer_value (json_object_get (artifact, "attempt")));
        put_when (stream, json_object_get (artifact, "attached_at"));
        fputc ('\n', stream);
    }
}

static void put_turns (FILE *stream, const json_t *turns)
{
    static const char *const head[] = {"turn", "agent", "status", "attempt", "told_at", NULL};
    static const char *const bodies[] = {"content", "tool_calls", "tool_log"};
    if (json_array_size (turns) == 0)
        return;
    put_heading (stream, "turns");
    for (size_t i = 0; i < json_array_size (turns); i++) {
        const json_t *turn = json_array_get (turns, i);
        put_line (stream, LINE_INDENT, turn, head);
        if (json_is_true (json_object_get (turn, "superseded")))
            fprintf (stream, "%*ssuperseded\n", DETAIL_INDENT, "");
        for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
            const json_t *body = json_object_get (turn, bodies[k]);
            if (body && !json_is_null (body))
                put_body (stream, body);
        }
    }
}

void page_write (FILE *stream, const json_t *record)
{
    static const char *const request[] = {"payload", "content_type", "payload_bytes",
                                          "payload_hash", "payload"};
    static const char *const result[] = {"result", "result_type", "result_bytes", "result_hash",
                                         "result"};
    static const char *const event[] = {"at",    "kind",     "turn",  "attempt", "worker",
                                        "actor", "artifact", "bytes", "message", NULL};
    static const char *const file[] = {"op", "turn", "path", NULL};
    static const char *const question[] = {"key", "question", NULL};
    put_facts (stream, record);
    put_section (stream, "request", record, request);
    put_turns (stream, json_object_get (record, "turns"));
    put_section (stream, "result", record, result);
    put_error (stream, json_object_get (record, "error"));
    put_artifacts (stream, json_object_get (record, "artifacts"));
    put_rows (stream, "files", json_object_get (record, "files"), file);
    put_rows (stream, "open questions", json_object_get (record, "questions"), question);
    put_attempts (stream, json_object_get (record, "attempts"));
    put_rows (stream, "events", json_object_get (record, "events"), event);
}
