/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks done again, changed and removed by hand; their attempts. */
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/sized.h"
#include "client/client.h"
#include "codec/encode.h"

/* The operations of this file, all of which name tasks. */
typedef struct change {
    tmq_op_t op;
    const tmq_id_t *ids;
    size_t count;
    const uint8_t *request_id;
    Taskmq__Set set; /* SET: what; the ids are filled in */
} change_t;

static void fill (ProtobufCBinaryData *out, const tmq_id_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (ProtobufCBinaryData){sizeof ids[i].bytes, (uint8_t *) (uintptr_t) ids[i].bytes};
}

/* A request about count ids from number `from` on. */
static int change_request (core_request_t **out, change_t *change, size_t from, size_t count,
                           tmq_error_t *error)
{
    ProtobufCBinaryData ids[TMQ_CHANGE_IDS_MAX];
    Taskmq__Retry retry = TASKMQ__RETRY__INIT;
    Taskmq__Purge purge = TASKMQ__PURGE__INIT;
    Taskmq__Set set = change->set;
    fill (ids, change->ids + from, count);
    retry.task_ids = purge.task_ids = set.task_ids = ids;
    retry.n_task_ids = purge.n_task_ids = set.n_task_ids = count;
    const ProtobufCMessage *message = change->op == TMQ_OP_PURGE ? &purge.base
                                      : change->op == TMQ_OP_SET ? &set.base
                                                                 : &retry.base;
    int code = core_request_message (out, change->op, message, error);
    if (code == TMQ_OK && change->request_id != NULL)
        memcpy ((*out)->request_id, change->request_id, sizeof (*out)->request_id);
    return code;
}

static int check (const change_t *change, tmq_error_t *error)
{
    if (change->ids == NULL || change->count == 0)
        return core_error (error, TMQ_INVALID, "at least one id is needed");
    return TMQ_OK;
}

static int call_some (tmq_changed_t *out, tmq_client_t *client, change_t *change, size_t from,
                      size_t count, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    core_answer_t *answer = NULL;
    int code = change_request (&request, change, from, count, error);
    if (code == TMQ_OK)
        code = client_call (&answer, client, request, timeout_ms, error);
    if (code == TMQ_OK && answer->completion.changed_count != count)
        code = core_error (error, TMQ_PROTOCOL, NULL);
    if (code == TMQ_OK)
        memcpy (out + from, answer->completion.changed, count * sizeof *out);
    core_answer_free (answer);
    return code;
}

static int call (tmq_changed_t *out, tmq_client_t *client, change_t *change, uint32_t timeout_ms,
                 tmq_error_t *error)
{
    int code = check (change, error);
    size_t done = 0;
    while (code == TMQ_OK && done < change->count) {
        size_t left = change->count - done;
        size_t count = left < TMQ_CHANGE_IDS_MAX ? left : TMQ_CHANGE_IDS_MAX;
        code = call_some (out, client, change, done, count, timeout_ms, error);
        done += code == TMQ_OK ? count : 0;
    }
    for (size_t i = done; change->ids != NULL && i < change->count; i++)
        out[i] = (tmq_changed_t){.id = change->ids[i], .code = code};
    return code;
}

static int start (tmq_client_t *client, change_t *change, uint32_t timeout_ms, void *user,
                  tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = check (change, error);
    if (code == TMQ_OK && change->count > TMQ_CHANGE_IDS_MAX)
        code = core_error (error, TMQ_TOO_LARGE, "at most %d ids at a time", TMQ_CHANGE_IDS_MAX);
    if (code == TMQ_OK)
        code = change_request (&request, change, 0, change->count, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

/* The functions that need nothing but ids. */
#define BY_IDS(NAME, OP)                                                                           \
    int tmq_##NAME (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *ids, size_t count,   \
                    const uint8_t *request_id, uint32_t timeout_ms, tmq_error_t *error)            \
    {                                                                                              \
        change_t change = {.op = TMQ_OP_##OP, .ids = ids, count, request_id};                      \
        return call (out, client, &change, timeout_ms, error);                                     \
    }                                                                                              \
    int tmq_##NAME##_start (tmq_client_t *client, const tmq_id_t *ids, size_t count,               \
                            const uint8_t *request_id, uint32_t timeout_ms, void *user,            \
                            tmq_error_t *error)                                                    \
    {                                                                                              \
        change_t change = {.op = TMQ_OP_##OP, .ids = ids, count, request_id};                      \
        return start (client, &change, timeout_ms, user, error);                                   \
    }
BY_IDS (retry, RETRY)
BY_IDS (resume, RESUME)
BY_IDS (purge, PURGE)
#undef BY_IDS

/* set. */

void (tmq_set_init) (tmq_set_t *set, size_t size)
{
    static const tmq_set_t defaults = {.priority = -1, .not_before = -1};
    core_sized_init (set, size, &defaults, sizeof defaults);
}

typedef struct labels {
    Taskmq__Label list[TMQ_LABELS_MAX];
    Taskmq__Label *pointers[TMQ_LABELS_MAX];
} labels_t;

static int take_labels (Taskmq__Set *out, labels_t *labels, const tmq_set_t *set,
                        tmq_error_t *error)
{
    if (set->labels_count > TMQ_LABELS_MAX || set->drop_labels_count > TMQ_LABELS_MAX)
        return core_error (error, TMQ_TOO_LARGE, "at most %d labels", TMQ_LABELS_MAX);
    if ((set->labels == NULL && set->labels_count > 0) ||
        (set->drop_labels == NULL && set->drop_labels_count > 0))
        return core_error (error, TMQ_INVALID, "the labels are NULL");
    for (size_t i = 0; i < set->labels_count; i++) {
        labels->list[i] = (Taskmq__Label) TASKMQ__LABEL__INIT;
        labels->list[i].key = client_text (set->labels[i].key);
        labels->list[i].value = client_text (set->labels[i].value);
        labels->pointers[i] = &labels->list[i];
    }
    out->labels = labels->pointers;
    out->n_labels = set->labels_count;
    out->drop_labels = (char **) (uintptr_t) set->drop_labels;
    out->n_drop_labels = set->drop_labels_count;
    return TMQ_OK;
}

static int take_set (Taskmq__Set *out, labels_t *labels, const tmq_set_t *given, tmq_error_t *error)
{
    tmq_set_t taken;
    const tmq_set_t *set = &taken;
    *out = (Taskmq__Set) TASKMQ__SET__INIT;
    tmq_set_init (&taken);
    if (given == NULL || !core_sized_take (&taken, sizeof taken, given, sizeof taken.size))
        return core_error (error, TMQ_INVALID, "the set was not initialised by tmq_set_init");
    if (set->priority < -1 || set->priority > 255)
        return core_error (error, TMQ_INVALID, "priority: must be 0..255, or -1");
    out->ttl_ms = set->ttl ? set->ttl_ms : 0;
    out->ttl_never = set->ttl && set->ttl_ms == 0;
    out->priority_plus_1 = (uint32_t) (set->priority + 1);
    out->max_attempts = set->max_attempts;
    out->not_before = set->not_before > 0 ? (uint64_t) set->not_before : 0;
    out->at_once = set->not_before == 0;
    return take_labels (out, labels, set, error);
}

int tmq_set (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *ids, size_t count,
             const tmq_set_t *set, const uint8_t *request_id, uint32_t timeout_ms,
             tmq_error_t *error)
{
    labels_t labels;
    change_t change = {.op = TMQ_OP_SET, .ids = ids, .count = count, .request_id = request_id};
    int code = take_set (&change.set, &labels, set, error);
    if (code == TMQ_OK)
        return call (out, client, &change, timeout_ms, error);
    for (size_t i = 0; ids != NULL && i < count; i++)
        out[i] = (tmq_changed_t){.id = ids[i], .code = code};
    return code;
}

int tmq_set_start (tmq_client_t *client, const tmq_id_t *ids, size_t count, const tmq_set_t *set,
                   const uint8_t *request_id, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    labels_t labels;
    change_t change = {.op = TMQ_OP_SET, .ids = ids, .count = count, .request_id = request_id};
    int code = take_set (&change.set, &labels, set, error);
    return code == TMQ_OK ? start (client, &change, timeout_ms, user, error) : code;
}

/* Attempts. */

static ProtobufCBinaryData bytes_of (const tmq_id_t *id)
{
    return (ProtobufCBinaryData){sizeof id->bytes, (uint8_t *) (uintptr_t) id->bytes};
}

static int attempts_request (core_request_t **out, const tmq_id_t *id, uint32_t after,
                             uint32_t limit, tmq_error_t *error)
{
    Taskmq__Attempts message = TASKMQ__ATTEMPTS__INIT;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    message.task_id = bytes_of (id);
    message.after = after;
    message.limit = limit;
    return core_request_message (out, TMQ_OP_ATTEMPTS, &message.base, error);
}

int tmq_attempts (tmq_attempt_list_t **out, tmq_client_t *client, const tmq_id_t *id,
                  uint32_t after, uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    const int code = attempts_request (&request, id, after, limit, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.attempts), client, request,
                                         timeout_ms, error);
}

int tmq_attempts_start (tmq_client_t *client, const tmq_id_t *id, uint32_t after, uint32_t limit,
                        uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    const int code = attempts_request (&request, id, after, limit, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

static int adopt_request (core_request_t **out, const tmq_id_t *id, uint32_t attempt,
                          const uint8_t *request_id, tmq_error_t *error)
{
    Taskmq__Adopt message = TASKMQ__ADOPT__INIT;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    if (attempt == 0)
        return core_error (error, TMQ_INVALID, "attempt: they are counted from 1");
    message.task_id = bytes_of (id);
    message.attempt = attempt;
    int code = core_request_message (out, TMQ_OP_ADOPT, &message.base, error);
    if (code != TMQ_OK)
        return code;
    (*out)->task_id = *id;
    (*out)->answer.completion.task_id = *id;
    if (request_id != NULL)
        memcpy ((*out)->request_id, request_id, sizeof (*out)->request_id);
    return TMQ_OK;
}

int tmq_adopt (tmq_task_t **task, tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
               const uint8_t *request_id, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = adopt_request (&request, id, attempt, request_id, error);
    if (code != TMQ_OK)
        return code;
    return client_take (task, CLIENT_MEMBER (completion.task), client, request, timeout_ms, error);
}

int tmq_adopt_start (tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
                     const uint8_t *request_id, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = adopt_request (&request, id, attempt, request_id, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}
