/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The lines of TASKMQ_FD that tell of turns and of files.
 *
 * Turns are told one after the other. One that is refused for now, because they come too fast, is
 * told again after the time that the broker names; those behind it wait, for they have the next
 * numbers. Files are collected and go with the next turn. What is left of them at the end of the
 * program, or when there are as many as a turn may have, becomes a turn of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/memory.h"
#include "json.h"
#include "screen/fields.h"
#include "screen/foreign.h"
#include "units.h"
#include "work/talk.h"

enum { TRIES_MAX = 3 }; /* the broker knows how long a rate has to wait, and not when room comes */

/* A turn from its line: its texts point into the JSON. */
typedef struct turn_line {
    struct turn_line *next;
    word_t *word; /* it was taken; once it is on its way the word belongs to the answer */
    bool is_sent;
    tmq_turn_t turn;
    json_t *json;
    bytes_t text; /* without white space: of what is passed on as it is */
    char *tool_calls;
    tmq_turn_file_t *files;
    size_t own_files; /* the first of them, whose paths go with it */
    char wrong[192];
} turn_line_t;

/* A string without NUL. */
static bool is_text (const json_t *value)
{
    return json_is_string (value) &&
           !memchr (json_string_value (value), '\0', json_string_length (value));
}

static bool take_text (turn_line_t *self, const char **out, const char *key, const json_t *value)
{
    if (is_text (value)) {
        *out = json_string_value (value);
        return true;
    }
    snprintf (self->wrong, sizeof self->wrong, "%s must be a string without NUL", key);
    return false;
}

static bool take_number (turn_line_t *self, uint64_t *out, const char *key, const json_t *value)
{
    if (json_is_integer (value) && json_integer_value (value) >= 0) {
        *out = (uint64_t) json_integer_value (value);
        return true;
    }
    snprintf (self->wrong, sizeof self->wrong, "%s must be a whole number from 0 up", key);
    return false;
}

/* Milliseconds, or a text as 2026-11-21T05:00:00Z. */
static bool take_time (turn_line_t *self, uint64_t *out, const char *key, const json_t *value)
{
    char why[UNITS_ERROR_SIZE];
    int64_t ms;
    if (!json_is_string (value))
        return take_number (self, out, key, value);
    if (time_parse (&ms, json_string_value (value), why) && ms >= 0) {
        *out = (uint64_t) ms;
        return true;
    }
    snprintf (self->wrong, sizeof self->wrong, "%s must be a time, as 2026-11-21T05:00:00Z", key);
    return false;
}

static tmq_file_op_t op_of (const char *text, size_t length)
{
    for (tmq_file_op_t op = TMQ_FILE_OP_READ; op <= TMQ_FILE_OP_DELETE; op++)
        if (strlen (tmq_file_op_text (op)) == length &&
            strncmp (tmq_file_op_text (op), text, length) == 0)
            return op;
    return TMQ_FILE_OP_NONE;
}

static bool is_file (const json_t *value)
{
    const char *op = json_string_value (json_object_get (value, "op"));
    return json_object_size (value) == 2 && op && op_of (op, strlen (op)) &&
           is_text (json_object_get (value, "path"));
}

/* Behind those that were collected. */
static bool take_files (turn_line_t *self, const char *key, const json_t *value)
{
    const size_t count = json_is_array (value) ? json_array_size (value) : SIZE_MAX;
    bool good = count <= TMQ_TURN_FILES_MAX;
    if (good)
        self->files =
            must_grow (self->files, self->turn.files_count + count + 1, sizeof *self->files);
    for (size_t i = 0; good && i < count; i++) {
        const json_t *file = json_array_get (value, i);
        good = is_file (file);
        if (!good)
            break;
        const char *op = json_string_value (json_object_get (file, "op"));
        self->files[self->turn.files_count++] = (tmq_turn_file_t){
            op_of (op, strlen (op)), json_string_value (json_object_get (file, "path"))};
    }
    if (!good)
        snprintf (self->wrong, sizeof self->wrong,
                  "%s must be an array of at most %d {\"op\":\"read|write|delete\",\"path\":...}",
                  key, TMQ_TURN_FILES_MAX);
    return good;
}

static bool take_member (turn_line_t *self, const char *key, const json_t *value)
{
    tmq_turn_t *turn = &self->turn;
    if (json_is_null (value))
        return true;
    if (strcmp (key, "agent") == 0)
        return take_text (self, &turn->agent, key, value);
    if (strcmp (key, "status") == 0)
        return take_text (self, &turn->status, key, value);
    if (strcmp (key, "content") == 0)
        return take_text (self, &turn->content, key, value);
    if (strcmp (key, "tool_log") == 0)
        return take_text (self, &turn->tool_log, key, value);
    if (strcmp (key, "started_at") == 0)
        return take_time (self, &turn->started_at, key, value);
    if (strcmp (key, "duration_ms") == 0)
        return take_number (self, &turn->duration_ms, key, value);
    if (strcmp (key, "files") == 0)
        return take_files (self, key, value);
    if (strcmp (key, "tool_calls") == 0) {
        free (self->tool_calls);
        self->tool_calls = fields_value (&self->text, key);
        if (!self->tool_calls) /* the key stands there with escapes */
            self->tool_calls = json_dumps (value, JSON_ENCODE_ANY | JSON_COMPACT);
        turn->tool_calls = self->tool_calls;
        return true;
    }
    snprintf (self->wrong, sizeof self->wrong,
              "does not know the key '%.48s'; it knows agent, status, content, tool_calls, "
              "tool_log, files, started_at and duration_ms",
              key);
    return false;
}

static bool read_line (turn_line_t *self, const char *text)
{
    const char *key;
    json_t *value;
    const size_t length = strlen (text);
    json_writer_t writer = {&self->text, false};
    if (!json_text_is_object (text, length)) {
        snprintf (self->wrong, sizeof self->wrong, "needs a JSON object");
        return false;
    }
    json_write_raw (&writer, text, length);
    self->json = foreign_read (&self->text, JSON_REJECT_DUPLICATES);
    if (!self->json) {
        snprintf (self->wrong, sizeof self->wrong, "has a key twice");
        return false;
    }
    json_object_foreach (self->json, key, value) if (!take_member (self, key, value)) return false;
    return true;
}

/* Files that were told on lines of their own come first. */
static turn_line_t *line_new (const talk_t *talk)
{
    turn_line_t *self = must_alloc (sizeof *self);
    *self = (turn_line_t){0};
    tmq_turn_init (&self->turn);
    self->files = must_grow (NULL, talk->files_count + 1, sizeof *self->files);
    for (size_t i = 0; i < talk->files_count; i++)
        self->files[i] = (tmq_turn_file_t){talk->files[i].op, talk->files[i].path};
    self->turn.files_count = talk->files_count;
    return self;
}

static void line_free (turn_line_t *self)
{
    for (size_t i = 0; i < self->own_files; i++)
        free ((char *) (uintptr_t) self->files[i].path);
    json_decref (self->json);
    bytes_free (&self->text);
    free (self->tool_calls);
    free (self->files);
    free (self);
}

static void drop_first (talk_t *talk)
{
    turn_line_t *first = talk->turns;
    talk->turns = first->next;
    talk->turn_at_ms = 0;
    talk->turn_tries = 0;
    line_free (first);
}

/* NULL, or what was wrong: then it is not told. */
static const char *send_line (work_job_t *job, turn_line_t *self)
{
    tmq_error_t error = {0};
    self->turn.files = self->files;
    error.code = tmq_worker_turn_start (job->worker, job->assignment, &self->turn, TMQ_FOREVER,
                                        self->word, &error);
    self->is_sent = error.code == TMQ_OK;
    return word_sent (job, self->word, &error);
}

static void tell_wrong (work_job_t *job, const char *wrong)
{
    char line[TMQ_MESSAGE_BYTES_MAX];
    snprintf (line, sizeof line, "error turn: %s\n", wrong);
    talk_tell (job, line);
}

/* The first one, unless it is on its way; those that cannot be told are answered and dropped. */
static void send_first (work_job_t *job)
{
    talk_t *talk = &job->talk;
    talk->turn_at_ms = 0;
    while (talk->turns && !talk->turns->is_sent) {
        const char *wrong = send_line (job, talk->turns);
        if (!wrong)
            return;
        tell_wrong (job, wrong);
        drop_first (talk);
    }
}

/* Takes the line. What was collected stays when the turn is refused at once. */
static const char *tell (work_job_t *job, turn_line_t *self)
{
    talk_t *talk = &job->talk;
    const char *wrong = NULL;
    turn_line_t **at = &talk->turns;
    self->word = word_new (job, "");
    if (!self->word)
        wrong = word_too_many;
    else if (!talk->turns)
        wrong = send_line (job, self);
    if (wrong) {
        line_free (self);
        return wrong;
    }
    self->own_files = talk->files_count;
    talk->files_count = 0;
    while (*at)
        at = &(*at)->next;
    *at = self;
    return NULL;
}

const char *talk_take_turn (work_job_t *job, const char *text)
{
    static char wrong[sizeof ((turn_line_t *) NULL)->wrong];
    turn_line_t *line = line_new (&job->talk);
    if (read_line (line, text))
        return tell (job, line);
    snprintf (wrong, sizeof wrong, "%s", line->wrong);
    line_free (line);
    return wrong;
}

/* The files that wait for a turn become one. */
static const char *tell_files (work_job_t *job)
{
    return tell (job, line_new (&job->talk));
}

bool talk_turn_answered (work_job_t *job, const tmq_completion_t *answer)
{
    talk_t *talk = &job->talk;
    turn_line_t *first = talk->turns;
    if (!first || first->word != answer->user)
        return true; /* it was one of the last, which nobody waits for */
    const uint32_t wait_ms =
        answer->code == TMQ_LIMIT && answer->error ? answer->error->retry_after_ms : 0;
    if (wait_ms == 0 || ++talk->turn_tries > TRIES_MAX) {
        drop_first (talk);
        return true;
    }
    first->is_sent = false;
    talk->turn_at_ms = mono_ms () + wait_ms;
    return false;
}

void talk_go_on (work_job_t *job)
{
    send_first (job);
}

void talk_repeat (work_job_t *job, uint64_t now_ms)
{
    if (job->talk.turn_at_ms && job->talk.turn_at_ms <= now_ms)
        send_first (job);
}

bool talk_has_turns (const work_job_t *job)
{
    return job->talk.turns != NULL;
}

const char *talk_take_file (work_job_t *job, const char *text)
{
    talk_t *talk = &job->talk;
    const size_t length = strcspn (text, " ");
    const char *path = text + length + strspn (text + length, " ");
    const tmq_file_op_t op = op_of (text, length);
    if (!op || !*path)
        return "needs read|write|delete PATH";
    if (strlen (path) > TMQ_TURN_PATH_BYTES_MAX)
        return "has a path of more than 1024 bytes";
    const char *wrong = talk->files_count == TMQ_TURN_FILES_MAX ? tell_files (job) : NULL;
    if (wrong)
        return wrong;
    if (!talk->files)
        talk->files = must_alloc (TMQ_TURN_FILES_MAX * sizeof *talk->files);
    talk->files[talk->files_count++] = (talk_file_t){op, must_copy (path)};
    return NULL;
}

void talk_end (work_job_t *job)
{
    if (job->talk.files_count > 0)
        tell_files (job);
}

void talk_hurry (work_job_t *job)
{
    talk_t *talk = &job->talk;
    while (talk->turns) {
        if (!talk->turns->is_sent)
            send_line (job, talk->turns);
        drop_first (talk);
    }
}

void talk_forget_turns (work_job_t *job)
{
    talk_t *talk = &job->talk;
    while (talk->turns) {
        if (!talk->turns->is_sent)
            free (talk->turns->word);
        drop_first (talk);
    }
    for (size_t i = 0; i < talk->files_count; i++)
        free (talk->files[i].path);
    free (talk->files);
    talk->files = NULL;
    talk->files_count = 0;
}
