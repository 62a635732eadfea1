/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The validator: what a client's message must be before the engine sees it.
 *
 * protobuf-c checks neither UTF-8 nor NUL, ranges nor presence, so everything that needs no state
 * is checked here, once, for every request. What is wrong with one request is that request's own
 * verdict, and the good ones beside it go on; the same holds for the items of a submit batch.
 * The answer to everything that is refused here is exempt from waiting for a commit (A8).
 *
 * Pure: no state, no clock. Any thread, one arena per thread. */
#ifndef TASKMQ_VALIDATE_H
#define TASKMQ_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "codec.h"
#include "taskmq.pb-c.h"
#include "taskmq_types.h"

/* What is wrong with one item of a submit batch. */
typedef struct verdict {
    tmq_code_t code;  /* TMQ_OK: nothing. Else INVALID, UNSUPPORTED or TOO_LARGE */
    const char *text; /* "queue: must match [A-Za-z0-9._-]{1,64}"; NULL for TMQ_OK */
} verdict_t;

/* What is wrong with one request. */
typedef struct request_verdict {
    verdict_t verdict;      /* not OK: the request as a whole is refused */
    const verdict_t *items; /* of a submit: one for each task; NULL when all are good */
    size_t body_offset;     /* where the request's first body begins in the second frame */
} request_verdict_t;

/* Lives in the arena that was given to the validator. */
typedef struct verdicts {
    verdict_t message; /* not OK: nothing of it may be applied; one refusal, to request id 0 */
    const request_verdict_t *requests; /* one for each request; NULL when the message is refused */
    size_t requests_count;
    size_t refused; /* requests that are refused as a whole */
} verdicts_t;

/* Frames to verdicts: decodes the first frame and judges everything. frames: how many came (1 or 2
 * are good). body_bytes: length of the second frame, 0 if there is none. Returns the message, or
 * NULL when out->message tells why there is none. Message, verdicts and texts live in arena. */
const Taskmq__ClientMessage *validate_frames (verdicts_t *out, arena_t *arena, size_t frames,
                                              const void *envelope, size_t envelope_bytes,
                                              size_t body_bytes);

/* The same for a message that is decoded already; flaws as codec_client_message reported them. */
void validate_client_message (verdicts_t *out, arena_t *arena, const Taskmq__ClientMessage *message,
                              const codec_flaw_t *flaws, size_t body_bytes);

/* The length of the body that an item of a submit has in the second frame. A payload that is
 * declared larger than a frame is refused and cannot be there: 0. */
size_t validate_payload_bytes (const Taskmq__TaskSpec *spec);
/* The length of all parts of a turn. One that is longer than a frame is refused. */
size_t validate_turn_bytes (const Taskmq__Turn *turn);

#endif
