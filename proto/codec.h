/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From bytes on the wire to messages in memory.
 *
 * protobuf-c limits neither depth nor memory, merges repeated submessages in quadratic time, and
 * cuts strings at a NUL without a word. So messages are decoded by decode.c, led by protobuf-c's
 * descriptors: structure, depth, repeated singular members and the bytes of every string are
 * checked in the same pass, in an arena with a budget.
 *
 * Failure: what cannot be decoded gives NULL and a report; nothing is allocated outside of the
 * arena. A string that is not UTF-8 without NUL, or a value of the wrong type inside of a request,
 * is a flaw: in a client's message it is the validator's to judge (it spoils one request, not its
 * neighbours), in a broker's it is an error.
 *
 * Pure. Any thread, one arena per thread. The messages live until the arena is reset and are never
 * freed one by one. Unknown fields are skipped and not kept. */
#ifndef TASKMQ_PROTO_CODEC_H
#define TASKMQ_PROTO_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "bytes.h"
#include "taskmq.pb-c.h"
#include "taskmq_types.h"

enum {
    /* Messages of ours are at most five deep (message, request, submit, task, label). */
    CODEC_DEPTH_MAX = 8,
    /* The largest honest envelope, 256 tasks with 16 labels each, takes 690 KiB; the worst that a
     * hostile one of 64 KiB asks for is about 9 MiB. */
    CODEC_CLIENT_ARENA_BYTES = 1024 * 1024,
    /* 256 KiB of events are about 4,000, each under 500 bytes with its texts. */
    CODEC_BROKER_ARENA_BYTES = 8 * 1024 * 1024
};

/* What is wrong with one value. Indexes count from 0. */
typedef struct codec_flaw {
    const struct codec_flaw *next;
    size_t request;    /* index in ClientMessage.requests */
    size_t item;       /* index in Submit.tasks, when the request is a submit */
    const char *field; /* its name in taskmq.proto */
    const char *text;  /* what it must be */
} codec_flaw_t;

/* What came out beside the message. */
typedef struct codec_report {
    tmq_code_t code;           /* TMQ_OK, INVALID or TOO_LARGE (the envelope or its memory) */
    const char *text;          /* why; static or in the arena; NULL for TMQ_OK */
    const codec_flaw_t *flaws; /* in order; in the arena */
} codec_report_t;

/* The first frame of a client's message; NULL if report->code is not TMQ_OK. */
const Taskmq__ClientMessage *codec_client_message (codec_report_t *report, arena_t *arena,
                                                   const void *bytes, size_t length);
/* The first frame of a broker's message. Flaws are an error. */
const Taskmq__BrokerMessage *codec_broker_message (codec_report_t *report, arena_t *arena,
                                                   const void *bytes, size_t length);
/* The second frame of a message with `events`, or what a store keeps. Flaws are an error. */
const Taskmq__EventList *codec_event_list (codec_report_t *report, arena_t *arena,
                                           const void *bytes, size_t length);

/* The digest by which a repeated submit is told from another one (S13): BLAKE2b-256 over the
 * fields as PROTOCOL.md writes them down. */
#define CODEC_DIGEST_BYTES 32
void codec_submit_digest (uint8_t out[CODEC_DIGEST_BYTES], const Taskmq__TaskSpec *spec,
                          const void *payload, size_t payload_bytes);

#endif
