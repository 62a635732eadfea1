/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/exit.h"
#include "base/memory.h"
#include "json.h"
#include "screen/status.h"

static bool is_command (const app_t *app, const char *name)
{
    return app->args.command && strcmp (app->args.command->name, name) == 0;
}

/* A connection that a broker refuses because of its store is UNREACHABLE, a request that it refused
 * last may be UNKNOWN, and the text has why. */
const char *hint_of_store (const tmq_error_t *error)
{
    return strstr (error->text, "the broker's store is out of reach")
               ? "the broker runs: see to its database; its log says why (DATABASE-LOST)"
               : NULL;
}

/* What can be done about it, where there is something general to say. */
static const char *hint_of_code (const app_t *app, const tmq_error_t *error)
{
    switch (error->code) {
    case TMQ_AMBIGUOUS: return "give more of the id's characters";
    case TMQ_CONFLICT:
        return is_command (app, "submit")
                   ? "the same id or key was used with other content, or by someone else"
                   : NULL;
    case TMQ_DENIED:
        return is_command (app, "purge") || is_command (app, "adopt")
                   ? "it needs the role admin; taskctl whoami shows yours"
                   : "taskctl whoami shows who you are, and what that one may do";
    case TMQ_STORE_FULL:
        return "free some space where the broker keeps its data: its disk, or its database's";
    case TMQ_BAD_CURSOR:
        return is_command (app, "list") ? "a cursor goes with the filters it was made with"
                                        : "--since 0 begins with the first event that is kept";
    case TMQ_NO_LINK:
    case TMQ_STOPPING:
    case TMQ_UNREACHABLE:
        if (hint_of_store (error))
            return hint_of_store (error);
        return strstr (error->text, "tcp://")
                   ? "is taskmqd running there? look at host, port and firewall"
                   : "is taskmqd still running?";
    case TMQ_TIMEOUT: return "--timeout gives the broker more time to answer";
    case TMQ_UNAVAILABLE: return hint_of_store (error) ? hint_of_store (error) : "try again later";
    case TMQ_OVERLOADED:
    case TMQ_LIMIT: return "try again later";
    case TMQ_NO_BLOB:
        return strstr (error->text, "is damaged") || strstr (error->text, "is missing")
                   ? "the RUNBOOK says under BLOB-DAMAGED how to get it back"
                   : NULL;
    default: return NULL;
    }
}

/* Errors. */

/* One error as it is shown. Members may be NULL. */
typedef struct shown_error {
    const char *code; /* its name */
    bool retriable;
    const char *hint;
    const char *task_id;
} shown_error_t;

static void put_json_error (const shown_error_t *error, const char *message)
{
    bytes_t bytes = BYTES_INIT;
    json_writer_t writer = {&bytes, false};
    json_write_object_begin (&writer);
    json_write_key (&writer, "error");
    json_write_object_begin (&writer);
    json_write_key (&writer, "code");
    json_write_text (&writer, error->code);
    json_write_key (&writer, "message");
    json_write_text (&writer, message);
    json_write_key (&writer, "retriable");
    json_write_bool (&writer, error->retriable);
    json_write_key (&writer, "hint");
    json_write_text (&writer, error->hint);
    json_write_key (&writer, "task_id");
    json_write_text (&writer, error->task_id);
    json_write_object_end (&writer);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    fwrite (bytes.data, 1, bytes.length, stderr);
    bytes_free (&bytes);
}

static void put_error (const app_t *app, const shown_error_t *error, const char *format,
                       va_list list)
{
    char message[2048];
    vsnprintf (message, sizeof message, format, list);
    status_hide (app);
    fflush (stdout); /* what was printed before the mistake is seen before it */
    if (app->format == FORMAT_JSON || app->format == FORMAT_JSONL) {
        put_json_error (error, message);
        return;
    }
    fputs ("taskctl: ", stderr);
    print_text (app, stderr, message);
    fputc ('\n', stderr);
    if (error->hint && *error->hint) {
        fputs ("hint: ", stderr);
        print_text (app, stderr, error->hint);
        fputc ('\n', stderr);
    }
}

int usage_error (const app_t *app, const char *hint, const char *format, ...)
{
    const shown_error_t error = {.code = "USAGE", .hint = hint};
    va_list list;
    va_start (list, format);
    put_error (app, &error, format, list);
    va_end (list);
    return EXIT_USAGE;
}

int code_error (const app_t *app, int code, const char *hint, const char *format, ...)
{
    const shown_error_t error = {tmq_code_name (code), tmq_code_retriable (code), hint, NULL};
    va_list list;
    va_start (list, format);
    put_error (app, &error, format, list);
    va_end (list);
    return exit_of_code (code);
}

int id_error (const app_t *app, int code, const char *id, const char *hint, const char *format, ...)
{
    const shown_error_t error = {tmq_code_name (code), tmq_code_retriable (code), hint, id};
    va_list list;
    va_start (list, format);
    put_error (app, &error, format, list);
    va_end (list);
    return exit_of_code (code);
}

int unknown_error (const app_t *app, const tmq_error_t *error, const char *id, const char *hint,
                   const char *format, ...)
{
    char text[512];
    char both[512];
    const char *store = hint_of_store (error);
    va_list list;
    va_start (list, format);
    vsnprintf (text, sizeof text, format, list);
    va_end (list);
    if (!store)
        return id_error (app, TMQ_UNKNOWN, id, hint, "%s", text);
    snprintf (both, sizeof both, "%s%s%s", store, hint ? "; then " : "", hint ? hint : "");
    return id_error (app, TMQ_UNKNOWN, id, both, "%s; the broker's store is out of reach", text);
}

int task_error (const app_t *app, const char *name, const char *id, const char *format, ...)
{
    const shown_error_t error = {.code = name, .task_id = id};
    va_list list;
    va_start (list, format);
    put_error (app, &error, format, list);
    va_end (list);
    return EXIT_TASK;
}

int library_error (const app_t *app, const tmq_error_t *error, const char *what)
{
    const char *text = error->text[0] ? error->text : tmq_code_text (error->code);
    tmq_id_t id;
    return id_error (app, error->code, what && tmq_id_parse (&id, what) == TMQ_OK ? what : NULL,
                     error->hint[0] ? error->hint : hint_of_code (app, error), "%s%s%s",
                     what ? what : "", what ? ": " : "", text);
}

/* What comes from a broker stands in notes, too, so that they are escaped as a whole. */
static void print_safe_list (const app_t *app, FILE *stream, const char *format, va_list list)
{
    char *text = NULL;
    if (vasprintf (&text, format, list) < 0)
        text = must_grow (NULL, SIZE_MAX, 2);
    print_text (app, stream, text);
    free (text);
}

void note (const app_t *app, const char *format, ...)
{
    va_list list;
    if (app->quiet)
        return;
    status_hide (app);
    fflush (stdout);
    va_start (list, format);
    print_safe_list (app, stderr, format, list);
    va_end (list);
    fputc ('\n', stderr);
}

void note_last (app_t *app, const char *format, ...)
{
    va_list list;
    size_t used = strlen (app->last_note);
    if (used > 0 && used + 1 < sizeof app->last_note)
        app->last_note[used++] = '\n';
    va_start (list, format);
    vsnprintf (app->last_note + used, sizeof app->last_note - used, format, list);
    va_end (list);
}

void detail (const app_t *app, const char *format, ...)
{
    va_list list;
    if (!app->verbose)
        return;
    status_hide (app);
    va_start (list, format);
    fputs ("taskctl: ", stderr);
    print_safe_list (app, stderr, format, list);
    va_end (list);
    fputc ('\n', stderr);
}

/* Text. */

void print_safe (const app_t *app, FILE *stream, const char *format, ...)
{
    va_list list;
    va_start (list, format);
    print_safe_list (app, stream, format, list);
    va_end (list);
}

char *safe_text (const app_t *app, const char *text)
{
    char *out = NULL;
    size_t bytes;
    FILE *stream = open_memstream (&out, &bytes);
    if (stream) {
        print_text (app, stream, text);
        fclose (stream);
    }
    return out ? out : must_grow (NULL, SIZE_MAX, 2);
}

void print_text (const app_t *app, FILE *stream, const char *text)
{
    const char *end = text + strlen (text);
    mbstate_t state = {0};
    while (text < end) {
        wchar_t wide;
        const size_t length = mbrtowc (&wide, text, (size_t) (end - text), &state);
        const bool known = length != 0 && length != (size_t) -1 && length != (size_t) -2;
        const unsigned char byte = (unsigned char) *text;
        if (known && (app->utf8 || byte < 0x80) && iswprint ((wint_t) wide) &&
            !json_text_is_hidden ((uint32_t) wide)) {
            fwrite (text, 1, length, stream);
            text += length;
        } else {
            fprintf (stream, "\\x%02x", byte);
            memset (&state, 0, sizeof state);
            text++;
        }
    }
}
