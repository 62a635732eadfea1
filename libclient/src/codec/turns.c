/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec/turns.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/errors.h"
#include "base/sized.h"
#include "codec/tail.h"
#include "json.h"
#include "turn_files.h"

/* Requests. */

/* Field numbers of Turn in taskmq.proto. */
enum {
    TURN_NUMBER = 2,
    TURN_AGENT = 3,
    TURN_STATUS = 4,
    TURN_STARTED_AT = 5,
    TURN_DURATION_MS = 6,
    TURN_CONTENT_BYTES = 7,
    TURN_TOOL_CALLS_BYTES = 8,
    TURN_TOOL_LOG_BYTES = 9,
    TURN_FILES_BYTES = 10
};
enum { FILE_OVERHEAD = 8 }; /* of one, packed, at most */

static size_t length_of (const char *text)
{
    return text == NULL ? 0 : strlen (text);
}

static int check_files (const tmq_turn_t *turn, size_t bytes, tmq_error_t *error)
{
    int code = TMQ_OK;
    if (turn->files_count > TMQ_TURN_FILES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "files: %zu, at most %d", turn->files_count,
                           TMQ_TURN_FILES_MAX);
    if (turn->files == NULL && turn->files_count > 0)
        return core_error (error, TMQ_INVALID, "the files are NULL");
    for (size_t i = 0; code == TMQ_OK && i < turn->files_count; i++) {
        const tmq_turn_file_t *file = &turn->files[i];
        if (file_op_text (file->op) == NULL)
            code = core_error (error, TMQ_INVALID, "files: %d is no operation", (int) file->op);
        else if (length_of (file->path) == 0)
            code = core_error (error, TMQ_INVALID, "files: a path is empty");
        else
            code = core_check_text (file->path, "files", TMQ_TURN_PATH_BYTES_MAX, error);
        bytes += FILE_OVERHEAD + length_of (file->path);
    }
    if (code == TMQ_OK && bytes > TMQ_FRAME_BYTES_MAX)
        code =
            core_error (error, TMQ_TOO_LARGE, "the turn has %zu bytes with its files, at most %d",
                        bytes, TMQ_FRAME_BYTES_MAX);
    return code;
}

int core_take_turn (tmq_turn_t *out, const tmq_turn_t *given, tmq_error_t *error)
{
    if (given == NULL || !core_sized_take (out, sizeof *out, given, sizeof out->size))
        return core_error (error, TMQ_INVALID, "the turn was not initialised by tmq_turn_init");
    int code = core_check_text (out->agent, "agent", TMQ_TURN_AGENT_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (out->status, "status", TMQ_TURN_STATUS_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (out->content, "content", TMQ_TURN_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (out->tool_calls, "tool_calls", TMQ_TURN_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (out->tool_log, "tool_log", TMQ_TURN_BYTES_MAX, error);
    if (code == TMQ_OK && length_of (out->tool_calls) > 0 &&
        !json_text_is_valid (out->tool_calls, strlen (out->tool_calls)))
        code = core_error (error, TMQ_INVALID, "tool_calls: must be JSON");
    if (code == TMQ_OK && (out->started_at > TMQ_TIME_MS_MAX || out->duration_ms > TMQ_TTL_MS_MAX))
        code = core_error (error, TMQ_INVALID, "started_at, duration_ms: out of range");
    if (code != TMQ_OK)
        return code;
    return check_files (
        out, length_of (out->content) + length_of (out->tool_calls) + length_of (out->tool_log),
        error);
}

void core_encode_turn (bytes_t *fields, bytes_t *body, const tmq_turn_t *in)
{
    bytes_append_uint (fields, TURN_NUMBER, in->number);
    bytes_append_string (fields, TURN_AGENT, in->agent == NULL ? "" : in->agent);
    bytes_append_string (fields, TURN_STATUS, in->status == NULL ? "" : in->status);
    bytes_append_uint (fields, TURN_STARTED_AT, in->started_at);
    bytes_append_uint (fields, TURN_DURATION_MS, in->duration_ms);
    bytes_append_uint (fields, TURN_CONTENT_BYTES, length_of (in->content));
    bytes_append_uint (fields, TURN_TOOL_CALLS_BYTES, length_of (in->tool_calls));
    bytes_append_uint (fields, TURN_TOOL_LOG_BYTES, length_of (in->tool_log));
    bytes_append (body, in->content, length_of (in->content));
    bytes_append (body, in->tool_calls, length_of (in->tool_calls));
    bytes_append (body, in->tool_log, length_of (in->tool_log));
    const size_t before = body->length;
    for (size_t i = 0; i < in->files_count; i++)
        turn_file_append (body, in->files[i].op, in->files[i].path);
    bytes_append_uint (fields, TURN_FILES_BYTES, body->length - before);
}

/* Records. */

static const char *text_of (tail_t *tail, const uint8_t **at, bool there, size_t length)
{
    if (!there)
        return NULL;
    const char *text = tail_body (tail, *at, length);
    *at += length;
    return text;
}

static void files_fill (tmq_turn_info_t *out, tail_t *tail, const uint8_t *at, size_t length)
{
    const uint8_t *end = at + length;
    turn_file_t file;
    if (turn_files_flaw (at, length, &out->files_count) != NULL) {
        out->files_count = 0;
        return;
    }
    tail_align (tail);
    tmq_turn_file_t *files = tail->base == NULL ? NULL : (void *) (tail->base + tail->used);
    tail->used += out->files_count * sizeof *files;
    for (size_t i = 0; i < out->files_count && turn_file_read (&file, &at, end); i++) {
        const char *path = tail_body (tail, file.path, file.path_bytes);
        if (files != NULL)
            files[i] = (tmq_turn_file_t){file.op, path};
    }
    out->files = files;
}

/* Moves *at behind its parts. */
static void fill (tmq_turn_info_t *out, tail_t *tail, const Taskmq__TurnInfo *in,
                  const uint8_t **at)
{
    *out = (tmq_turn_info_t){.turn = in->turn,
                             .attempt = in->attempt,
                             .number = in->number,
                             .worker = tail_text (tail, in->worker),
                             .agent = tail_text (tail, in->agent),
                             .status = tail_text (tail, in->status),
                             .started_at = in->started_at,
                             .duration_ms = in->duration_ms,
                             .told_at = in->told_at,
                             .superseded = in->superseded,
                             .content_bytes = in->content_bytes,
                             .tool_calls_bytes = in->tool_calls_bytes,
                             .tool_log_bytes = in->tool_log_bytes};
    out->content = text_of (tail, at, in->parts & TMQ_TURN_CONTENT, in->content_bytes);
    out->tool_calls = text_of (tail, at, in->parts & TMQ_TURN_TOOL_CALLS, in->tool_calls_bytes);
    out->tool_log = text_of (tail, at, in->parts & TMQ_TURN_TOOL_LOG, in->tool_log_bytes);
    if ((in->parts & TMQ_TURN_FILES) != 0) {
        files_fill (out, tail, *at, in->files_bytes);
        *at += in->files_bytes;
    }
    tail_align (tail);
}

/* Bytes of its parts in the second frame. */
static size_t parts_of (const Taskmq__TurnInfo *in)
{
    return ((in->parts & TMQ_TURN_CONTENT) != 0 ? (size_t) in->content_bytes : 0) +
           ((in->parts & TMQ_TURN_TOOL_CALLS) != 0 ? in->tool_calls_bytes : 0) +
           ((in->parts & TMQ_TURN_TOOL_LOG) != 0 ? in->tool_log_bytes : 0) +
           ((in->parts & TMQ_TURN_FILES) != 0 ? in->files_bytes : 0);
}

tmq_turn_list_t *core_turn_list_record (const Taskmq__TurnPage *page, const uint8_t *body)
{
    const uint8_t *at = body;
    tail_t tail = {NULL, 0};
    tmq_turn_info_t measured;
    size_t total = 0;
    for (size_t i = 0; i < page->n_turns; i++)
        total += parts_of (page->turns[i]);
    if (total != page->body)
        return NULL;
    for (size_t i = 0; i < page->n_turns; i++)
        fill (&measured, &tail, page->turns[i], &at);
    const size_t list = page->n_turns * sizeof (tmq_turn_info_t);
    tmq_turn_list_t *out = calloc (1, sizeof *out + list + tail.used);
    if (out == NULL)
        return NULL;
    tmq_turn_info_t *turns = (tmq_turn_info_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (turns + page->n_turns), 0};
    at = body;
    for (size_t i = 0; i < page->n_turns; i++)
        fill (&turns[i], &tail, page->turns[i], &at);
    out->turns = turns;
    out->count = page->n_turns;
    out->next = page->next;
    return out;
}
