/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns: read, and gone back to. Workers tell of them in api_worker.c. */
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/sized.h"
#include "client/client.h"
#include "codec/encode.h"
#include "turn_files.h"

void (tmq_turn_init) (tmq_turn_t *turn, size_t size)
{
    static const tmq_turn_t defaults = {0};
    core_sized_init (turn, size, &defaults, sizeof defaults);
}

const char *tmq_file_op_text (tmq_file_op_t op)
{
    const char *text = file_op_text ((unsigned) op);
    return text == NULL ? "?" : text;
}

void tmq_turn_list_free (tmq_turn_list_t *list)
{
    free (list);
}

static ProtobufCBinaryData bytes_of (const tmq_id_t *id)
{
    return (ProtobufCBinaryData){sizeof id->bytes, (uint8_t *) (uintptr_t) id->bytes};
}

int tmq_turns (tmq_turn_list_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
               uint32_t after, uint32_t limit, unsigned parts, uint32_t timeout_ms,
               tmq_error_t *error)
{
    Taskmq__Turns message = TASKMQ__TURNS__INIT;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    message.task_id = bytes_of (id);
    message.attempt = attempt;
    message.after = after;
    message.limit = limit;
    message.parts = parts;
    return client_ask (out, CLIENT_MEMBER (shared), client, TMQ_OP_TURNS, &message.base, timeout_ms,
                       error);
}

int tmq_resume_from (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *id, uint32_t turn,
                     const uint8_t *request_id, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__Retry message = TASKMQ__RETRY__INIT;
    core_request_t *request = NULL;
    core_answer_t *answer = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    if (turn == UINT32_MAX)
        return core_error (error, TMQ_INVALID, "turn: out of range");
    ProtobufCBinaryData ids = bytes_of (id);
    message.task_ids = &ids;
    message.n_task_ids = 1;
    message.from_turn_plus_1 = turn + 1;
    int code = core_request_message (&request, TMQ_OP_RESUME, &message.base, error);
    if (code == TMQ_OK && request_id != NULL)
        memcpy (request->request_id, request_id, sizeof request->request_id);
    if (code == TMQ_OK)
        code = client_call (&answer, client, request, timeout_ms, error);
    if (code == TMQ_OK && answer->completion.changed_count != 1)
        code = core_error (error, TMQ_PROTOCOL, NULL);
    if (code == TMQ_OK)
        *out = answer->completion.changed[0];
    else
        *out = (tmq_changed_t){.id = *id, .code = code};
    core_answer_free (answer);
    return code;
}
