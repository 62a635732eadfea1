/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a worker tells of its work, turn by turn. */
#include "codec/turns.h"

#include <string.h>

#include "base/errors.h"
#include "link/link.h"
#include "link/requests.h"
#include "parts/attempts.h"
#include "parts/workers.h"

static bool is_zero (const uint8_t *id, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (id[i] != 0)
            return false;
    return true;
}

int core_worker_turn (core_worker_t *self, const tmq_assignment_t *of, const tmq_turn_t *given,
                      core_target_t target, int64_t deadline_ms, int64_t now_ms, tmq_error_t *error)
{
    tmq_turn_t turn;
    bytes_mark_t mark = 0;
    core_link_hear_time (self->all->link, now_ms);
    tmq_turn_init (&turn);
    int code = core_take_turn (&turn, given, error);
    if (code != TMQ_OK)
        return code;
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (attempt == NULL)
        return core_attempt_stale (error);
    attempt->started = true; /* what tells of a turn is at work */
    if (turn.number == 0)
        turn.number = attempt->turns + 1;
    core_request_t *request = core_attempt_about (core_request_new (TMQ_OP_TURN), attempt, &mark);
    if (request != NULL) {
        core_encode_turn (&request->fields, &request->body, &turn);
        bytes_close (&request->fields, mark);
        request->answer.completion.count = turn.number;
        if (!is_zero (turn.request_id, sizeof turn.request_id))
            memcpy (request->request_id, turn.request_id, sizeof request->request_id);
    }
    if (request == NULL || request->fields.failed || request->body.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    uint32_t before = attempt->turns;
    attempt->turns = turn.number; /* it may be answered already */
    code = core_request_start (self->all->requests, request, target, deadline_ms, error);
    if (code != TMQ_OK)
        attempt->turns = before;
    return code;
}
