/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Workers as the application sees them: the core's, and a way to wait for it. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors.h"
#include "client/client.h"
#include "client/options.h"
#include "codec/artifacts.h"
#include "parts/asked.h"
#include "parts/logs.h"

struct tmq_worker {
    client_object_t object; /* first */
    core_worker_t *core;
};

/* Called locked; out of the client's list already. */
static void worker_free (client_object_t *object)
{
    tmq_worker_t *self = (tmq_worker_t *) object;
    client_unready (object->client, core_worker_answer (self->core));
    core_worker_free (self->core);
    pthread_cond_destroy (&object->changed);
    free (self);
}

/* HOST-PID-N, with everything that a name may not contain turned into a dash. */
static void default_name (char out[TMQ_NAME_LENGTH_MAX + 1], const tmq_client_t *client)
{
    char host[40] = "";
    size_t number = 1;
    for (const client_object_t *at = client->objects; at != NULL; at = at->next)
        number++;
    if (gethostname (host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf (host, sizeof host, "host");
    snprintf (out, TMQ_NAME_LENGTH_MAX + 1, "%s-%ld-%zu", host, (long) getpid (), number);
    for (char *at = out; *at != '\0'; at++)
        if (!isalnum ((unsigned char) *at) && strchr ("._-", *at) == NULL)
            *at = '-';
}

int tmq_worker_new (tmq_worker_t **out, tmq_client_t *client, const tmq_worker_options_t *in,
                    tmq_error_t *error)
{
    char name[TMQ_NAME_LENGTH_MAX + 1];
    tmq_worker_options_t options;
    options_worker (&options, in);
    if (client_owner (client) != NULL)
        return core_error (error, TMQ_INVALID, "a worker does not act on behalf of an owner");
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    tmq_worker_t *self = calloc (1, sizeof *self);
    if (self == NULL || client_cond_init (&self->object.changed) != TMQ_OK) {
        free (self);
        client_leave (client);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    self->object.free = worker_free;
    if (options.name == NULL || options.name[0] == '\0') {
        default_name (name, client);
        options.name = name;
    }
    code = core_worker_new (&self->core, client->core, &options, &self->object, error);
    if (code == TMQ_OK) {
        client_object_add (client, &self->object);
        *out = self;
    } else {
        pthread_cond_destroy (&self->object.changed);
        free (self);
    }
    client_leave (client);
    return code;
}

void tmq_worker_free (tmq_worker_t **pointer)
{
    if (pointer == NULL || *pointer == NULL)
        return;
    tmq_worker_t *self = *pointer;
    tmq_client_t *client = self->object.client;
    *pointer = NULL;
    if (client_enter (client, NULL) != TMQ_OK)
        return;
    client_object_remove (&self->object);
    worker_free (&self->object);
    client_leave (client);
}

static int enter (tmq_worker_t *self, tmq_error_t *error)
{
    if (self == NULL)
        return core_error (error, TMQ_INVALID, "the worker is NULL");
    return client_enter (self->object.client, error);
}

int tmq_worker_next (tmq_assignment_t **out, tmq_worker_t *self, uint32_t timeout_ms,
                     tmq_error_t *error)
{
    int64_t deadline_ms = timeout_ms == 0 ? 0 : client_deadline (timeout_ms);
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    tmq_client_t *client = self->object.client;
    while ((code = core_worker_next (out, self->core, error)) == TMQ_TIMEOUT && timeout_ms != 0) {
        client_flush (client);
        if (!client_wait (client, &self->object.changed, deadline_ms))
            break;
    }
    if (timeout_ms == 0 && code == TMQ_TIMEOUT && client_io_is_free (client)) {
        client_io_drive (client, 0); /* nobody has looked lately */
        code = core_worker_next (out, self->core, error);
    }
    client_leave (client);
    return code;
}

int tmq_worker_drain (tmq_worker_t *self, tmq_error_t *error)
{
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    code = core_worker_drain (self->core, error);
    client_leave (self->object.client);
    return code;
}

int tmq_worker_exit (tmq_worker_t *self, int status, int signal, tmq_error_t *error)
{
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    core_worker_exit (self->core, status, signal);
    client_leave (self->object.client);
    return core_error (error, TMQ_OK, NULL);
}

size_t tmq_worker_held (tmq_worker_t *self)
{
    if (enter (self, NULL) != TMQ_OK)
        return 0;
    size_t held = core_worker_held (self->core);
    client_leave (self->object.client);
    return held;
}

tmq_attempt_state_t tmq_worker_state (tmq_worker_t *self, const tmq_assignment_t *of)
{
    if (enter (self, NULL) != TMQ_OK)
        return TMQ_ATTEMPT_LOST;
    tmq_attempt_state_t state = core_worker_state (self->core, of);
    client_leave (self->object.client);
    return state;
}

int tmq_worker_changed (tmq_attempt_change_t *out, tmq_worker_t *self, uint32_t timeout_ms)
{
    int64_t deadline_ms = timeout_ms == 0 ? 0 : client_deadline (timeout_ms);
    int code = enter (self, NULL);
    if (code != TMQ_OK)
        return code;
    tmq_client_t *client = self->object.client;
    while ((code = core_worker_changed (out, self->core)) == TMQ_TIMEOUT && timeout_ms != 0) {
        client_flush (client);
        if (!client_wait (client, &self->object.changed, deadline_ms))
            break;
    }
    client_leave (client);
    return code;
}

int tmq_worker_started (tmq_worker_t *self, const tmq_assignment_t *of, tmq_error_t *error)
{
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    code = core_worker_started (self->core, of, error);
    client_leave (self->object.client);
    return code;
}

int tmq_worker_progress (tmq_worker_t *self, const tmq_assignment_t *of,
                         const tmq_progress_t *progress, tmq_error_t *error)
{
    if (progress == NULL)
        return core_error (error, TMQ_INVALID, "progress is NULL");
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    code = core_worker_progress (self->core, of, progress, client_now_ms (), error);
    client_leave (self->object.client);
    return code;
}

int tmq_worker_log (tmq_worker_t *self, const tmq_assignment_t *of, tmq_log_stream_t stream,
                    const void *bytes, size_t length, tmq_error_t *error)
{
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    code = core_worker_log (self->core, of, stream, bytes, length, client_now_ms (), error);
    client_leave (self->object.client);
    return code;
}

size_t tmq_worker_log_pending (tmq_worker_t *self, const tmq_assignment_t *of)
{
    if (enter (self, NULL) != TMQ_OK)
        return 0;
    size_t bytes = core_worker_log_pending (self->core, of);
    client_leave (self->object.client);
    return bytes;
}

void client_worker_returned (tmq_worker_t *self, const tmq_assignment_t *of)
{
    if (enter (self, NULL) != TMQ_OK)
        return;
    core_worker_returned (self->core, of);
    client_leave (self->object.client);
}

/* What waits for an answer. */

/* One word about an attempt: a status message (op PUSH), a question (ASK) or its end. */
typedef struct word {
    tmq_op_t op;
    const tmq_assignment_t *of;
    const char *message;
    const tmq_ask_t *ask;
    const tmq_turn_t *turn;
    const tmq_artifact_t *artifact;
    const tmq_outcome_t *outcome;
    uint32_t delay_ms;
    const void *state; /* CHECKPOINT */
    size_t bytes;
} word_t;

static int start (tmq_worker_t *self, const word_t *word, core_target_t target, int64_t deadline_ms,
                  tmq_error_t *error)
{
    int64_t now_ms = client_now_ms ();
    if (word->op == TMQ_OP_PUSH)
        return core_worker_message (self->core, word->of, word->message, target, deadline_ms,
                                    now_ms, error);
    if (word->op == TMQ_OP_ASK)
        return core_worker_ask (self->core, word->of, word->ask, target, deadline_ms, now_ms,
                                error);
    if (word->op == TMQ_OP_TURN)
        return core_worker_turn (self->core, word->of, word->turn, target, deadline_ms, now_ms,
                                 error);
    if (word->op == TMQ_OP_ARTIFACT)
        return core_worker_artifact (self->core, word->of, word->artifact, target, deadline_ms,
                                     now_ms, error);
    if (word->op == TMQ_OP_CHECKPOINT || word->op == TMQ_OP_CHECKPOINT_READ)
        return core_worker_checkpoint (self->core, word->op, word->of, word->state, word->bytes,
                                       target, deadline_ms, now_ms, error);
    return core_worker_end (self->core, word->op, word->of, word->outcome, word->delay_ms, target,
                            deadline_ms, now_ms, error);
}

/* *part (may be NULL): what came with the answer. */
static int say_for (tmq_part_t **part, tmq_worker_t *self, word_t word, uint32_t timeout_ms,
                    tmq_error_t *error)
{
    client_waiter_t waiter = {.answer = NULL};
    core_answer_t *answer = NULL;
    int64_t deadline_ms = client_deadline (timeout_ms);
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    if (client_cond_init (&waiter.cond) != TMQ_OK) {
        client_leave (self->object.client);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    code = start (self, &word, (core_target_t){&waiter, NULL, NULL}, deadline_ms, error);
    if (code != TMQ_OK) {
        client_leave (self->object.client);
        pthread_cond_destroy (&waiter.cond);
        return code;
    }
    code = client_await (&answer, self->object.client, &waiter, error);
    if (part != NULL && code == TMQ_OK) {
        *part = answer->completion.part;
        answer->completion.part = NULL;
    }
    core_answer_free (answer);
    return code;
}

static int say (tmq_worker_t *self, word_t word, uint32_t timeout_ms, tmq_error_t *error)
{
    return say_for (NULL, self, word, timeout_ms, error);
}

static int say_start (tmq_worker_t *self, word_t word, uint32_t timeout_ms, void *user,
                      tmq_error_t *error)
{
    int64_t deadline_ms = client_deadline (timeout_ms);
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    code = start (self, &word, (core_target_t){NULL, user, NULL}, deadline_ms, error);
    client_leave (self->object.client);
    return code;
}

int tmq_worker_message (tmq_worker_t *self, const tmq_assignment_t *of, const char *message,
                        uint32_t timeout_ms, tmq_error_t *error)
{
    return say (self, (word_t){.op = TMQ_OP_PUSH, .of = of, .message = message}, timeout_ms, error);
}

int tmq_worker_message_start (tmq_worker_t *self, const tmq_assignment_t *of, const char *message,
                              uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_PUSH, .of = of, .message = message}, timeout_ms,
                      user, error);
}

int tmq_worker_ask (tmq_worker_t *self, const tmq_assignment_t *of, const tmq_ask_t *ask,
                    uint32_t timeout_ms, tmq_error_t *error)
{
    return say (self, (word_t){.op = TMQ_OP_ASK, .of = of, .ask = ask}, timeout_ms, error);
}

int tmq_worker_ask_start (tmq_worker_t *self, const tmq_assignment_t *of, const tmq_ask_t *ask,
                          uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_ASK, .of = of, .ask = ask}, timeout_ms, user,
                      error);
}

int tmq_worker_answer (tmq_given_t **out, tmq_worker_t *self, const tmq_assignment_t *of,
                       const char *key, uint32_t timeout_ms, tmq_error_t *error)
{
    int64_t deadline_ms = timeout_ms == 0 ? 0 : client_deadline (timeout_ms);
    int code = enter (self, error);
    if (code != TMQ_OK)
        return code;
    tmq_client_t *client = self->object.client;
    while ((code = core_worker_given (out, self->core, of, key, error)) == TMQ_TIMEOUT &&
           timeout_ms != 0) {
        client_flush (client);
        if (!client_wait (client, &self->object.changed, deadline_ms))
            break;
    }
    client_leave (client);
    return code;
}

int tmq_worker_turn (tmq_worker_t *self, const tmq_assignment_t *of, const tmq_turn_t *turn,
                     uint32_t timeout_ms, tmq_error_t *error)
{
    return say (self, (word_t){.op = TMQ_OP_TURN, .of = of, .turn = turn}, timeout_ms, error);
}

int tmq_worker_turn_start (tmq_worker_t *self, const tmq_assignment_t *of, const tmq_turn_t *turn,
                           uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_TURN, .of = of, .turn = turn}, timeout_ms, user,
                      error);
}

int tmq_worker_checkpoint (tmq_worker_t *self, const tmq_assignment_t *of, const void *state,
                           size_t bytes, uint32_t timeout_ms, tmq_error_t *error)
{
    word_t word = {.op = TMQ_OP_CHECKPOINT, .of = of, .state = state, .bytes = bytes};
    return say (self, word, timeout_ms, error);
}

int tmq_worker_checkpoint_start (tmq_worker_t *self, const tmq_assignment_t *of, const void *state,
                                 size_t bytes, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    word_t word = {.op = TMQ_OP_CHECKPOINT, .of = of, .state = state, .bytes = bytes};
    return say_start (self, word, timeout_ms, user, error);
}

int tmq_worker_checkpoint_read (tmq_part_t **out, tmq_worker_t *self, const tmq_assignment_t *of,
                                uint32_t timeout_ms, tmq_error_t *error)
{
    return say_for (out, self, (word_t){.op = TMQ_OP_CHECKPOINT_READ, .of = of}, timeout_ms, error);
}

int tmq_worker_checkpoint_read_start (tmq_worker_t *self, const tmq_assignment_t *of,
                                      uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_CHECKPOINT_READ, .of = of}, timeout_ms, user,
                      error);
}

enum { PUTS_MAX = 4 }; /* of one result: a broker that restarts has forgotten who may name it */

/* A body that is too large for a frame: in a file, or with fd -1 in memory. */
typedef struct large {
    int fd;
    const void *bytes;
    size_t length;
} large_t;

/* Puts the body, and says the word, which names it by what is put into *named. */
static int say_large (tmq_worker_t *self, word_t word, tmq_blob_t *named, const large_t *body,
                      uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_client_t *client = self->object.client;
    int code = TMQ_NO_BLOB;
    for (unsigned i = 0; i < PUTS_MAX && code == TMQ_NO_BLOB; i++) {
        code = body->fd >= 0
                   ? tmq_blob_put_file (named, client, body->fd, timeout_ms, error)
                   : tmq_blob_put (named, client, body->bytes, body->length, timeout_ms, error);
        if (code == TMQ_OK)
            code = say (self, word, timeout_ms, error);
    }
    return code;
}

/* fd: of the file that has the result; -1: it is in memory. */
static int complete_large (tmq_worker_t *self, const tmq_assignment_t *of,
                           const tmq_outcome_t *outcome, int fd, uint32_t timeout_ms,
                           tmq_error_t *error)
{
    tmq_outcome_t named = *outcome;
    const large_t body = {fd, outcome->result, outcome->result_bytes};
    const word_t word = {.op = TMQ_OP_COMPLETE, .of = of, .outcome = &named};
    named.result = NULL;
    named.result_bytes = 0;
    return say_large (self, word, &named.result_blob, &body, timeout_ms, error);
}

int tmq_worker_complete (tmq_worker_t *self, const tmq_assignment_t *of,
                         const tmq_outcome_t *outcome, uint32_t timeout_ms, tmq_error_t *error)
{
    if (self != NULL && outcome != NULL && outcome->result_bytes > TMQ_FRAME_BYTES_MAX)
        return complete_large (self, of, outcome, -1, timeout_ms, error);
    return say (self, (word_t){.op = TMQ_OP_COMPLETE, .of = of, .outcome = outcome}, timeout_ms,
                error);
}

/* All of a file that fits a frame. *out is to be freed. */
static int read_small (char **out, int fd, size_t length, tmq_error_t *error)
{
    char *bytes = malloc (length + 1);
    *out = NULL;
    if (bytes == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    ssize_t got = pread (fd, bytes, length + 1, 0);
    if (got == (ssize_t) length) {
        *out = bytes;
        return TMQ_OK;
    }
    free (bytes);
    return got < 0 ? core_error (error, TMQ_SYSTEM, "the file cannot be read: %s", strerror (errno))
                   : core_error (error, TMQ_CONFLICT, "the file changed while it was read");
}

static int complete_small (tmq_worker_t *self, const tmq_assignment_t *of,
                           const tmq_outcome_t *outcome, int fd, size_t length, uint32_t timeout_ms,
                           tmq_error_t *error)
{
    tmq_outcome_t small = *outcome;
    char *bytes = NULL;
    int code = read_small (&bytes, fd, length, error);
    small.result = bytes;
    small.result_bytes = length;
    if (code == TMQ_OK)
        code = tmq_worker_complete (self, of, &small, timeout_ms, error);
    free (bytes);
    return code;
}

/* The length of a regular file. */
static int measure (size_t *out, int fd, tmq_error_t *error)
{
    struct stat info;
    if (fstat (fd, &info) != 0)
        return core_error (error, TMQ_SYSTEM, "the file cannot be read: %s", strerror (errno));
    if (!S_ISREG (info.st_mode))
        return core_error (error, TMQ_INVALID, "only a regular file can be put");
    *out = (size_t) info.st_size;
    return TMQ_OK;
}

int tmq_worker_complete_file (tmq_worker_t *self, const tmq_assignment_t *of,
                              const tmq_outcome_t *given, int fd, uint32_t timeout_ms,
                              tmq_error_t *error)
{
    size_t length = 0;
    tmq_outcome_t outcome = {0};
    if (self == NULL)
        return core_error (error, TMQ_INVALID, "the worker is NULL");
    if (given != NULL)
        outcome = *given;
    int code = measure (&length, fd, error);
    if (code != TMQ_OK)
        return code;
    return length > TMQ_FRAME_BYTES_MAX
               ? complete_large (self, of, &outcome, fd, timeout_ms, error)
               : complete_small (self, of, &outcome, fd, length, timeout_ms, error);
}

int tmq_worker_complete_start (tmq_worker_t *self, const tmq_assignment_t *of,
                               const tmq_outcome_t *outcome, uint32_t timeout_ms, void *user,
                               tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_COMPLETE, .of = of, .outcome = outcome},
                      timeout_ms, user, error);
}

int tmq_worker_fail (tmq_worker_t *self, const tmq_assignment_t *of, const tmq_outcome_t *outcome,
                     uint32_t timeout_ms, tmq_error_t *error)
{
    return say (self, (word_t){.op = TMQ_OP_FAIL, .of = of, .outcome = outcome}, timeout_ms, error);
}

int tmq_worker_fail_start (tmq_worker_t *self, const tmq_assignment_t *of,
                           const tmq_outcome_t *outcome, uint32_t timeout_ms, void *user,
                           tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_FAIL, .of = of, .outcome = outcome}, timeout_ms,
                      user, error);
}

int tmq_worker_release (tmq_worker_t *self, const tmq_assignment_t *of, uint32_t delay_ms,
                        uint32_t timeout_ms, tmq_error_t *error)
{
    return say (self, (word_t){.op = TMQ_OP_RELEASE, .of = of, .delay_ms = delay_ms}, timeout_ms,
                error);
}

int tmq_worker_release_start (tmq_worker_t *self, const tmq_assignment_t *of, uint32_t delay_ms,
                              uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_RELEASE, .of = of, .delay_ms = delay_ms},
                      timeout_ms, user, error);
}

int tmq_worker_cancelled (tmq_worker_t *self, const tmq_assignment_t *of, uint32_t timeout_ms,
                          tmq_error_t *error)
{
    return say (self, (word_t){.op = TMQ_OP_CANCELLED, .of = of}, timeout_ms, error);
}

int tmq_worker_cancelled_start (tmq_worker_t *self, const tmq_assignment_t *of, uint32_t timeout_ms,
                                void *user, tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_CANCELLED, .of = of}, timeout_ms, user, error);
}

/* Artifacts. fd: of the file that has it; -1: it is in memory. */
static int attach_large (tmq_worker_t *self, const tmq_assignment_t *of,
                         const tmq_artifact_t *artifact, int fd, uint32_t timeout_ms,
                         tmq_error_t *error)
{
    tmq_artifact_t named = *artifact;
    const large_t body = {fd, artifact->bytes, artifact->length};
    const word_t word = {.op = TMQ_OP_ARTIFACT, .of = of, .artifact = &named};
    named.bytes = NULL;
    named.length = 0;
    return say_large (self, word, &named.blob, &body, timeout_ms, error);
}

/* What is wrong is told before anything is uploaded. */
static int take_artifact (tmq_artifact_t *out, tmq_worker_t *self, const tmq_artifact_t *given,
                          tmq_error_t *error)
{
    if (self == NULL)
        return core_error (error, TMQ_INVALID, "the worker is NULL");
    tmq_artifact_init (out);
    return core_take_artifact (out, given, error);
}

int tmq_worker_artifact (tmq_worker_t *self, const tmq_assignment_t *of,
                         const tmq_artifact_t *given, uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_artifact_t artifact = {0};
    int code = take_artifact (&artifact, self, given, error);
    if (code != TMQ_OK)
        return code;
    return artifact.length > TMQ_FRAME_BYTES_MAX
               ? attach_large (self, of, &artifact, -1, timeout_ms, error)
               : say (self, (word_t){.op = TMQ_OP_ARTIFACT, .of = of, .artifact = &artifact},
                      timeout_ms, error);
}

int tmq_worker_artifact_file (tmq_worker_t *self, const tmq_assignment_t *of,
                              const tmq_artifact_t *given, int fd, uint32_t timeout_ms,
                              tmq_error_t *error)
{
    tmq_artifact_t artifact;
    size_t length = 0;
    char *bytes = NULL;
    int code = take_artifact (&artifact, self, given, error);
    if (code == TMQ_OK)
        code = measure (&length, fd, error);
    if (code != TMQ_OK)
        return code;
    if (length > TMQ_FRAME_BYTES_MAX)
        return attach_large (self, of, &artifact, fd, timeout_ms, error);
    code = read_small (&bytes, fd, length, error);
    artifact.bytes = bytes;
    artifact.length = length;
    if (code == TMQ_OK)
        code = say (self, (word_t){.op = TMQ_OP_ARTIFACT, .of = of, .artifact = &artifact},
                    timeout_ms, error);
    free (bytes);
    return code;
}

int tmq_worker_artifact_start (tmq_worker_t *self, const tmq_assignment_t *of,
                               const tmq_artifact_t *artifact, uint32_t timeout_ms, void *user,
                               tmq_error_t *error)
{
    return say_start (self, (word_t){.op = TMQ_OP_ARTIFACT, .of = of, .artifact = artifact},
                      timeout_ms, user, error);
}
