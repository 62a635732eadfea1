/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A client's message as it comes in: decoder and validator. The first byte is the number of frames,
 * the next three are the length of the second frame. */
#include <math.h>

#include "codec.h"
#include "fuzz.h"
#include "validate.h"

static void look_at_submit (const Taskmq__Submit *submit, const request_verdict_t *verdict)
{
    uint8_t digest[CODEC_DIGEST_BYTES];
    for (size_t i = 0; i < submit->n_tasks; i++) {
        if (verdict->items == NULL || verdict->items[i].code == TMQ_OK)
            codec_submit_digest (digest, submit->tasks[i], "", 0);
        else
            HOLDS (verdict->items[i].text != NULL);
    }
}

static void look_at_push (const Taskmq__Push *push)
{
    if (push->progress == NULL)
        return;
    HOLDS (isfinite (push->progress->done) && push->progress->done >= 0);
    HOLDS (isfinite (push->progress->total) && push->progress->total >= 0);
}

static void look_at (const Taskmq__ClientMessage *message, const verdicts_t *verdicts)
{
    size_t refused = 0;
    HOLDS (verdicts->requests_count == message->n_requests);
    for (size_t i = 0; i < verdicts->requests_count; i++) {
        const request_verdict_t *verdict = &verdicts->requests[i];
        refused += verdict->verdict.code != TMQ_OK;
        HOLDS ((verdict->verdict.code == TMQ_OK) == (verdict->verdict.text == NULL));
        if (verdict->verdict.code == TMQ_OK &&
            message->requests[i]->op_case == TASKMQ__REQUEST__OP_SUBMIT)
            look_at_submit (message->requests[i]->submit, verdict);
        if (verdict->verdict.code == TMQ_OK &&
            message->requests[i]->op_case == TASKMQ__REQUEST__OP_PUSH)
            look_at_push (message->requests[i]->push);
    }
    HOLDS (refused == verdicts->refused);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static arena_t *arena;
    if (arena == NULL)
        arena = arena_new (CODEC_CLIENT_ARENA_BYTES);
    if (size < 4)
        return 0;
    size_t frames = data[0] % 4;
    size_t body = (size_t) data[1] << 16 | (size_t) data[2] << 8 | data[3];
    uint8_t *envelope = fuzz_copy (data + 4, size - 4);
    verdicts_t verdicts;
    arena_reset (arena);
    const Taskmq__ClientMessage *message =
        validate_frames (&verdicts, arena, frames, envelope, size - 4, frames > 1 ? body : 0);
    HOLDS (message != NULL || verdicts.message.code != TMQ_OK);
    if (verdicts.message.code == TMQ_OK)
        look_at (message, &verdicts);
    else
        HOLDS (verdicts.message.text != NULL);
    HOLDS (arena_used (arena) <= CODEC_CLIENT_ARENA_BYTES);
    free (envelope);
    return 0;
}
