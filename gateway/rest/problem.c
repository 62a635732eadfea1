/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/problem.h"

#include <stdio.h>
#include <string.h>

#include "json.h"

static const struct {
    const char *name;
    int status;
    const char *title;
} kinds[] = {
#define X(NAME, name, status, title) [PROBLEM_##NAME] = {name, status, title},
    PROBLEMS_MAP (X)
#undef X
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct {
    int code;
    problem_kind_t kind;
} codes[] = {{TMQ_INVALID, PROBLEM_INVALID},
             {TMQ_UNSUPPORTED, PROBLEM_UNSUPPORTED},
             {TMQ_TOO_LARGE, PROBLEM_TOO_LARGE},
             {TMQ_NO_LINK, PROBLEM_UNREACHABLE},
             {TMQ_NOT_FOUND, PROBLEM_NOT_FOUND},
             {TMQ_EXPIRED, PROBLEM_EXPIRED},
             {TMQ_PURGED, PROBLEM_PURGED},
             {TMQ_CONFLICT, PROBLEM_CONFLICT},
             {TMQ_WRONG_STATUS, PROBLEM_WRONG_STATUS},
             {TMQ_AMBIGUOUS, PROBLEM_AMBIGUOUS},
             {TMQ_OVERLOADED, PROBLEM_OVERLOADED},
             {TMQ_STORE_FULL, PROBLEM_STORE_FULL},
             {TMQ_LIMIT, PROBLEM_LIMIT},
             {TMQ_NO_BLOB, PROBLEM_NO_BLOB},
             {TMQ_DENIED, PROBLEM_DENIED},
             {TMQ_NOT_AUTHENTICATED, PROBLEM_UNREACHABLE},
             {TMQ_BAD_CURSOR, PROBLEM_BAD_CURSOR},
             {TMQ_STOPPING, PROBLEM_STOPPING},
             {TMQ_UNAVAILABLE, PROBLEM_UNAVAILABLE},
             {TMQ_UNREACHABLE, PROBLEM_UNREACHABLE},
             {TMQ_UNKNOWN, PROBLEM_UNKNOWN},
             {TMQ_CLOSED, PROBLEM_UNREACHABLE},
             {TMQ_NO_MEMORY, PROBLEM_NO_MEMORY},
             {TMQ_OUTBOX_FULL, PROBLEM_OUTBOX_FULL}};

const char *problem_name (problem_kind_t kind)
{
    return kinds[kind].name;
}

problem_kind_t problem_of_code (int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].kind;
    return PROBLEM_INTERNAL;
}

problem_kind_t problem_of_status (int status)
{
    if (status == 503)
        return PROBLEM_BUSY;
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].status == status)
            return (problem_kind_t) i;
    return PROBLEM_INTERNAL;
}

static bool is_retriable (const problem_t *problem)
{
    const int status = kinds[problem->kind].status;
    return problem->code != 0 ? tmq_code_retriable (problem->code)
                              : status == 503 || status == 429 || status == 408;
}

static void write_text (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_text (writer, text);
}

static void write_errors (json_writer_t *writer, const problem_t *problem)
{
    json_write_key (writer, "errors");
    json_write_array_begin (writer);
    json_write_object_begin (writer);
    write_text (writer, "pointer", problem->pointer);
    write_text (writer, "detail", problem->detail);
    json_write_object_end (writer);
    json_write_array_end (writer);
}

void problem_write (response_t *out, const problem_t *problem, const char *id)
{
    char type[80];
    json_writer_t writer = {&out->body, false};
    const bool retriable = is_retriable (problem);
    const uint32_t wait_ms = problem->retry_after_ms > 0 ? problem->retry_after_ms : 1000;
    out->status = kinds[problem->kind].status;
    snprintf (type, sizeof type, "/problems/%s", kinds[problem->kind].name);
    json_write_object_begin (&writer);
    write_text (&writer, "type", type);
    write_text (&writer, "title", kinds[problem->kind].title);
    json_write_key (&writer, "status");
    json_write_int (&writer, out->status);
    write_text (&writer, "detail", problem->detail);
    write_text (&writer, "instance", id);
    write_text (&writer, "code", problem->code != 0 ? tmq_code_name (problem->code) : NULL);
    json_write_key (&writer, "retriable");
    json_write_bool (&writer, retriable);
    json_write_key (&writer, "retry_after_ms");
    if (retriable)
        json_write_uint (&writer, wait_ms);
    else
        json_write_null (&writer);
    if (problem->task_id != NULL)
        write_text (&writer, "task_id", problem->task_id);
    if (problem->pointer != NULL)
        write_errors (&writer, problem);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    response_field (out, "Content-Type", "application/problem+json");
    if (retriable)
        response_number (out, "Retry-After", (wait_ms + 999) / 1000);
}

bool problem_page (response_t *out, const char *name)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp (kinds[i].name, name) != 0)
            continue;
        response_field (out, "Content-Type", "text/plain; charset=utf-8");
        bytes_append_text (&out->body, kinds[i].title);
        bytes_append_text (&out->body, ". Status ");
        json_writer_t writer = {&out->body, false};
        json_write_int (&writer, kinds[i].status);
        bytes_append_text (&out->body, ", type /problems/");
        bytes_append_text (&out->body, name);
        bytes_append_text (&out->body, "\n");
        return true;
    }
    return false;
}
