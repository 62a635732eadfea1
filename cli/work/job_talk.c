/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The lines of TASKMQ_FD. Each verb is a row of one table; what is not understood is answered. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "base/memory.h"
#include "json.h"
#include "units.h"
#include "work/talk.h"

enum {
    OUT_BYTES_MAX = 1024 * 1024, /* an answer of 64 KiB may be six times as long, as a string */
    WORDS_MAX = 64
};

/* Out. */

static void queue_bytes (talk_t *talk, const char *data, size_t bytes)
{
    if (talk->out_sent == talk->out_bytes)
        talk->out_sent = talk->out_bytes = 0;
    if (talk->out_bytes + bytes > OUT_BYTES_MAX)
        return;
    talk->out = must_grow (talk->out, talk->out_bytes + bytes, 1);
    memcpy (talk->out + talk->out_bytes, data, bytes);
    talk->out_bytes += bytes;
}

static void send_some (work_job_t *job)
{
    talk_t *talk = &job->talk;
    while (talk->out_sent < talk->out_bytes && job->fds[JOB_TALK] >= 0) {
        const ssize_t n = send (job->fds[JOB_TALK], talk->out + talk->out_sent,
                                talk->out_bytes - talk->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n < 0) { /* it has closed its end, which is its own affair */
            talk->out_sent = talk->out_bytes = 0;
            return;
        }
        talk->out_sent += (size_t) n;
    }
}

void talk_tell (work_job_t *job, const char *line)
{
    if (job->fds[JOB_TALK] < 0)
        return;
    queue_bytes (&job->talk, line, strlen (line));
    send_some (job);
}

bool talk_waits (const work_job_t *job)
{
    return job->talk.out_sent < job->talk.out_bytes;
}

/* A key as a word: one with blanks as a JSON string. */
static void append_key (bytes_t *out, const char *key)
{
    json_writer_t writer = {out, false};
    bool word = *key != '\0' && *key != '"';
    for (const char *at = key; *at; at++)
        word = word && (unsigned char) *at > ' ';
    if (word)
        bytes_append_text (out, key);
    else
        json_write_string (&writer, key, strlen (key));
}

/* One line: blanks between JSON values may be anything. */
static void append_json (bytes_t *out, const tmq_given_t *given)
{
    json_writer_t writer = {out, false};
    if (given->is_text) {
        json_write_string (&writer, given->answer, given->answer_bytes);
        return;
    }
    const size_t from = out->length;
    bytes_append (out, given->answer, given->answer_bytes);
    for (size_t i = from; i < out->length; i++)
        if (out->data[i] < ' ')
            out->data[i] = ' ';
}

static void tell_given (work_job_t *job, const tmq_given_t *given)
{
    bytes_t line = BYTES_INIT;
    bytes_append_text (&line, "answer ");
    append_key (&line, given->key);
    bytes_append_text (&line, " ");
    append_json (&line, given);
    bytes_append_text (&line, "\n");
    queue_bytes (&job->talk, (const char *) line.data, line.length);
    bytes_free (&line);
}

void talk_flush (work_job_t *job)
{
    tmq_given_t *given;
    send_some (job);
    while (!talk_waits (job) && job->fds[JOB_TALK] >= 0 &&
           tmq_worker_answer (&given, job->worker, job->assignment, NULL, 0, NULL) == TMQ_OK) {
        tell_given (job, given);
        tmq_given_free (given);
        send_some (job);
    }
}

void talk_free (work_job_t *job)
{
    talk_forget_turns (job);
    free (job->talk.out);
    free (job->talk.line);
    free (job->talk.failure);
    job->talk.failure = NULL;
    job->talk.out = NULL;
    job->talk.line = NULL;
}

/* Verbs: each returns what was wrong, NULL for nothing. */

const char word_too_many[] = "is one too many: 64 are on their way";

/* "progress DONE/TOTAL [text]"; TOTAL 0 is unknown. */
static const char *take_progress (work_job_t *job, const char *text)
{
    static const char usage[] = "needs DONE/TOTAL [text], two numbers from 0 up";
    tmq_progress_t progress = {0};
    char numbers[2 * NUMBER_TEXT_MAX + 2];
    const size_t length = strcspn (text, " ");
    if (length >= sizeof numbers)
        return usage;
    snprintf (numbers, sizeof numbers, "%.*s", (int) length, text);
    char *total = strchr (numbers, '/');
    if (!total)
        return usage;
    *total++ = '\0';
    if (!number_parse (&progress.done, numbers, NULL) ||
        !number_parse (&progress.total, total, NULL))
        return usage;
    char message[TMQ_MESSAGE_BYTES_MAX + 1];
    snprintf (message, sizeof message, "%s", text + length + strspn (text + length, " "));
    progress.message = message;
    return tmq_worker_progress (job->worker, job->assignment, &progress, NULL) == TMQ_INVALID
               ? usage
               : NULL;
}

word_t *word_new (work_job_t *job, const char *key)
{
    if (job->talk.words >= WORDS_MAX)
        return NULL;
    word_t *word = must_alloc (sizeof *word);
    word->attempt = job->assignment->attempt;
    snprintf (word->key, sizeof word->key, "%s", key);
    job->talk.words++;
    return word;
}

const char *word_sent (work_job_t *job, word_t *word, const tmq_error_t *error)
{
    static char text[sizeof error->text];
    if (error->code == TMQ_OK)
        return NULL;
    snprintf (text, sizeof text, "%s", error->text);
    job->talk.words--;
    free (word);
    return text;
}

/* "status TEXT". */
static const char *take_status (work_job_t *job, const char *text)
{
    tmq_error_t error = {0};
    if (!*text)
        return "needs a text";
    word_t *word = word_new (job, "");
    if (!word)
        return word_too_many;
    error.code =
        tmq_worker_message_start (job->worker, job->assignment, text, TMQ_FOREVER, word, &error);
    return word_sent (job, word, &error);
}

/* A JSON string is the text of the question, anything else the request as it is. */
static char *request_of (const char *json)
{
    if (*json != '"')
        return must_copy (json);
    char *request = must_alloc (strlen (json) + sizeof "{\"text\":}");
    sprintf (request, "{\"text\":%s}", json);
    return request;
}

/* "ask KEY JSON". */
static const char *take_ask (work_job_t *job, const char *text)
{
    char key[TMQ_QUESTION_KEY_BYTES_MAX + 1];
    tmq_error_t error = {0};
    tmq_ask_t ask;
    const size_t length = strcspn (text, " ");
    const char *json = text + length + strspn (text + length, " ");
    if (length == 0 || length >= sizeof key || !json_text_is_valid (json, strlen (json)))
        return "needs KEY JSON, a word and a JSON value";
    snprintf (key, sizeof key, "%.*s", (int) length, text);
    word_t *word = word_new (job, key);
    if (!word)
        return word_too_many;
    char *request = request_of (json);
    tmq_ask_init (&ask);
    ask.key = key;
    ask.request = request;
    error.code =
        tmq_worker_ask_start (job->worker, job->assignment, &ask, TMQ_FOREVER, word, &error);
    free (request);
    return word_sent (job, word, &error);
}

/* "checkpoint JSON": a JSON string is what is kept, of anything else the text. */
static const char *take_checkpoint (work_job_t *job, const char *text)
{
    tmq_error_t error = {0};
    if (!json_text_is_valid (text, strlen (text)))
        return "needs a JSON value";
    word_t *word = word_new (job, "");
    if (!word)
        return word_too_many;
    json_t *string =
        *text == '"' ? json_loads (text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    const char *state = string ? json_string_value (string) : text;
    word->bytes = string ? json_string_length (string) : strlen (text);
    error.code = tmq_worker_checkpoint_start (job->worker, job->assignment, state, word->bytes,
                                              TMQ_FOREVER, word, &error);
    json_decref (string);
    return word_sent (job, word, &error);
}

/* "failure JSON": the newest counts, should the attempt fail. */
static const char *take_failure (work_job_t *job, const char *text)
{
    if (!json_text_is_valid (text, strlen (text)))
        return "needs a JSON value";
    if (strlen (text) > TMQ_ERROR_DATA_BYTES_MAX)
        return "may have 65536 bytes";
    free (job->talk.failure);
    job->talk.failure = must_copy (text);
    return NULL;
}

static const struct {
    const char *name;
    const char *(*take) (work_job_t *job, const char *text);
} verbs[] = {{"progress", take_progress},     {"status", take_status},  {"ask", take_ask},
             {"checkpoint", take_checkpoint}, {"turn", talk_take_turn}, {"file", talk_take_file},
             {"failure", take_failure}};

static void take_verb (work_job_t *job, const char *line)
{
    char answer[TMQ_MESSAGE_BYTES_MAX];
    const size_t length = strcspn (line, " ");
    if (length == 0)
        return;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strlen (verbs[i].name) != length || strncmp (line, verbs[i].name, length) != 0)
            continue;
        const char *wrong = verbs[i].take (job, line + length + strspn (line + length, " "));
        if (wrong) {
            snprintf (answer, sizeof answer, "error %s %s\n", verbs[i].name, wrong);
            talk_tell (job, answer);
        }
        return;
    }
    snprintf (answer, sizeof answer, "error unknown verb '%.*s'\n", length < 64 ? (int) length : 64,
              line);
    talk_tell (job, answer);
}

/* In. */

/* For a line with these bytes behind what is there of it; a program that says little costs little.
 */
static void make_room (talk_t *talk, size_t bytes)
{
    const size_t needed = talk->line_bytes + bytes;
    const size_t room = needed < TALK_LINE_BYTES_MAX ? needed : TALK_LINE_BYTES_MAX;
    if (room <= talk->line_room)
        return;
    talk->line_room = 2 * room < TALK_LINE_BYTES_MAX ? 2 * room : TALK_LINE_BYTES_MAX;
    talk->line = must_grow (talk->line, talk->line_room + 1, 1);
}

void talk_take (work_job_t *job, const char *data, size_t bytes)
{
    talk_t *talk = &job->talk;
    char answer[64];
    make_room (talk, bytes);
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\n') {
            talk->line[talk->line_bytes] = '\0';
            if (!talk->skipping)
                take_verb (job, talk->line);
            talk->line_bytes = 0;
            talk->skipping = false;
        } else if (talk->line_bytes < TALK_LINE_BYTES_MAX) {
            talk->line[talk->line_bytes++] = data[i];
        } else if (!talk->skipping) {
            talk->skipping = true;
            snprintf (answer, sizeof answer, "error the line is longer than %d bytes\n",
                      TALK_LINE_BYTES_MAX);
            talk_tell (job, answer);
        }
    }
}

/* Answers. */

bool talk_is_answer (const tmq_completion_t *answer)
{
    return answer->op == TMQ_OP_PUSH || answer->op == TMQ_OP_ASK ||
           answer->op == TMQ_OP_CHECKPOINT || answer->op == TMQ_OP_TURN;
}

unsigned talk_attempt (const tmq_completion_t *answer)
{
    const word_t *word = answer->user;
    return word->attempt;
}

static const char *verb_of (const tmq_completion_t *answer)
{
    return answer->op == TMQ_OP_ASK          ? "ask "
           : answer->op == TMQ_OP_CHECKPOINT ? "checkpoint"
           : answer->op == TMQ_OP_TURN       ? "turn"
                                             : "status";
}

void talk_answered (work_job_t *job, const tmq_completion_t *answer)
{
    word_t *word = answer->user;
    char line[TMQ_MESSAGE_BYTES_MAX + TMQ_QUESTION_KEY_BYTES_MAX];
    if (job && answer->op == TMQ_OP_TURN && !talk_turn_answered (job, answer))
        return;
    if (job) {
        job->talk.words--;
        if (answer->code != TMQ_OK) {
            snprintf (line, sizeof line, "error %s%s: %s\n", verb_of (answer), word->key,
                      answer->error ? answer->error->text : "refused");
            talk_tell (job, line);
        } else if (answer->op == TMQ_OP_CHECKPOINT) {
            snprintf (line, sizeof line, "kept %zu\n", word->bytes);
            talk_tell (job, line);
        } else if (answer->op == TMQ_OP_TURN) {
            snprintf (line, sizeof line, "told %" PRIu64 "\n", answer->count);
            talk_tell (job, line);
        }
        if (answer->op == TMQ_OP_TURN)
            talk_go_on (job);
    }
    free (word);
}
