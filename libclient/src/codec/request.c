/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "request_kinds.h"

static const uint8_t kinds[CORE_OP_END] = {
#define X(OP, KIND) [OP] = TASKMQ__REQUEST__OP_##KIND,
    CORE_OP_MAP (X)
#undef X
};

core_request_t *core_request_new (unsigned op)
{
    core_request_t *request = calloc (1, sizeof *request);
    if (request == NULL)
        return NULL;
    const Taskmq__Request named = {.op_case = (Taskmq__Request__OpCase) kinds[op]};
    unsigned flags = request_kind (&named)->flags;
    request->op = op;
    request->internal = op >= CORE_OP_HELLO;
    request->large = (flags & REQUEST_LARGE) != 0 || op == TMQ_OP_COUNT;
    request->changes = (flags & REQUEST_NEEDS_ID) != 0;
    request->quiet = (flags & REQUEST_QUIET) != 0;
    request->owned = (flags & REQUEST_OWNED) != 0;
    request->deadline_ms = CORE_NEVER;
    request->timer.kind = CORE_TIMER_REQUEST;
    request->timer.item = request;
    request->answer.completion.op = (tmq_op_t) op;
    return request;
}

void core_request_shed (core_request_t *request)
{
    bytes_free (&request->fields);
    bytes_free (&request->body);
    bytes_free (&request->parts);
    free (request->items);
    request->items = NULL;
    free (request->refused_text);
    request->refused_text = NULL;
    free (request->owner);
    request->owner = NULL;
}

int core_request_for (core_request_t *request, const char *owner, tmq_error_t *error)
{
    for (; request != NULL; request = request->next) {
        if (!request->owned)
            return core_error (error, TMQ_INVALID, "this cannot be done on behalf of an owner");
        if (request->fields.length + CORE_OWNER_BYTES > CORE_FIELDS_BYTES_MAX)
            return core_error (error, TMQ_TOO_LARGE,
                               "%zu bytes beside payloads, at most %d for an owner",
                               request->fields.length, CORE_FIELDS_BYTES_MAX - CORE_OWNER_BYTES);
        request->owner = strdup (owner);
        if (request->owner == NULL)
            return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    return TMQ_OK;
}

void core_request_free_one (core_request_t *request)
{
    core_request_shed (request);
    core_answer_free (&request->answer);
}

void core_request_free (core_request_t *request)
{
    if (request == NULL)
        return;
    core_group_t *group = request->group;
    if (group == NULL) {
        core_request_free_one (request);
        return;
    }
    for (core_request_t *member = group->first; member != NULL;) {
        core_request_t *next = member->next;
        core_request_free_one (member);
        member = next;
    }
    core_answer_free (&group->answer);
}

size_t core_request_bytes (const core_request_t *request)
{
    return sizeof *request + request->fields.length + request->body.length;
}

bytes_mark_t core_request_begin (core_request_t *request)
{
    return bytes_open (&request->fields, kinds[request->op]);
}

bool core_op_ends_attempt (unsigned op)
{
    return op == TMQ_OP_COMPLETE || op == TMQ_OP_FAIL || op == TMQ_OP_RELEASE ||
           op == TMQ_OP_CANCELLED;
}
