/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who works here. */
#include <string.h>

#include "base/errors.h"
#include "client/client.h"
#include "ids.h"

static int call (tmq_worker_list_t **out, tmq_client_t *client, tmq_op_t op,
                 const ProtobufCMessage *message, uint32_t timeout_ms, tmq_error_t *error)
{
    return client_ask (out, CLIENT_MEMBER (completion.workers), client, op, message, timeout_ms,
                       error);
}

int tmq_workers (tmq_worker_list_t **out, tmq_client_t *client, uint64_t before, uint32_t limit,
                 bool all, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__WorkerList message = TASKMQ__WORKER_LIST__INIT;
    message.before = before;
    message.limit = limit;
    message.all = all;
    return call (out, client, TMQ_OP_WORKER_LIST, &message.base, timeout_ms, error);
}

int tmq_workers_start (tmq_client_t *client, uint64_t before, uint32_t limit, bool all,
                       uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    Taskmq__WorkerList message = TASKMQ__WORKER_LIST__INIT;
    core_request_t *request = NULL;
    message.before = before;
    message.limit = limit;
    message.all = all;
    const int code = core_request_message (&request, TMQ_OP_WORKER_LIST, &message.base, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

/* An id, or else a name. */
typedef struct who {
    uint8_t bytes[16];
    ProtobufCBinaryData id;
    char *name;
} who_t;

static int find_who (who_t *out, const char *worker, tmq_error_t *error)
{
    *out = (who_t){.name = (char *) ""};
    if (worker == NULL)
        return core_error (error, TMQ_INVALID, "the worker is NULL");
    if (strlen (worker) == 2 * sizeof out->bytes &&
        hex_decode (out->bytes, sizeof out->bytes, worker))
        out->id = (ProtobufCBinaryData){sizeof out->bytes, out->bytes};
    else
        out->name = (char *) (uintptr_t) worker;
    return TMQ_OK;
}

int tmq_worker_show (tmq_worker_list_t **out, tmq_client_t *client, const char *worker,
                     uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__WorkerShow message = TASKMQ__WORKER_SHOW__INIT;
    who_t who;
    int code = find_who (&who, worker, error);
    if (code != TMQ_OK)
        return code;
    message.worker_id = who.id;
    message.name = who.name;
    return call (out, client, TMQ_OP_WORKER_SHOW, &message.base, timeout_ms, error);
}

int tmq_workers_drain (tmq_worker_list_t **out, tmq_client_t *client, const char *worker,
                       uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__WorkerDrain message = TASKMQ__WORKER_DRAIN__INIT;
    who_t who;
    int code = find_who (&who, worker, error);
    if (code != TMQ_OK)
        return code;
    message.worker_id = who.id;
    message.name = who.name;
    return call (out, client, TMQ_OP_WORKER_DRAIN, &message.base, timeout_ms, error);
}
