/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A broker made by hand around the library's core: time is a number, the wire is a function call.
 *
 * Every message that the core sends is checked by the broker's own validator, so the library is
 * proven to say only what a broker takes. */
#ifndef TASKMQ_TEST_LIB_RIG_H
#define TASKMQ_TEST_LIB_RIG_H

#include "support/cmocka_all.h"

#include "codec.h"
#include "core.h"
#include "taskmq.pb-c.h"

typedef struct rig {
    core_t *core;
    int64_t now_ms;
    arena_t *arena; /* of the message taken last */
    const Taskmq__ClientMessage *message;
    uint8_t body[TMQ_FRAME_BYTES_MAX];
    size_t body_bytes;
    uint8_t token;         /* every byte of the link's token */
    uint32_t heartbeat_ms; /* told by the welcome */
} rig_t;

core_config_t rig_config (void);
rig_t *rig_new (const core_config_t *config); /* not linked; config NULL: rig_config () */
void rig_free (rig_t *rig);
/* Lets time pass in steps of what the core asks for. */
void rig_pass (rig_t *rig, int64_t ms);
/* Says welcome to the hello, which has to be the next message. */
void rig_welcome (rig_t *rig);
rig_t *rig_linked (const core_config_t *config);
/* The connection ends. */
void rig_cut (rig_t *rig);

/* The next message of the core, in rig->message; false if there is none. */
bool rig_take (rig_t *rig);
/* The only request of the next message, of that kind. Heartbeats are answered on the way. */
const Taskmq__Request *rig_request (rig_t *rig, Taskmq__Request__OpCase op);
/* The first request of that kind among all that are to be sent, or NULL. */
const Taskmq__Request *rig_find_request (rig_t *rig, Taskmq__Request__OpCase op);

void rig_send (rig_t *rig, const Taskmq__BrokerMessage *message, const void *body,
               size_t body_bytes);
void rig_reply (rig_t *rig, Taskmq__Reply *reply, const void *body, size_t body_bytes);
/* A reply without a body: ok or a refusal. */
void rig_refuse (rig_t *rig, uint64_t request, int code, uint32_t retry_after_ms);
void rig_ok (rig_t *rig, uint64_t request);

/* The next answer with this code, to be freed by core_answer_free. */
core_answer_t *rig_answer (rig_t *rig, tmq_op_t op, int code);
/* The same, freed at once. */
void rig_answered (rig_t *rig, tmq_op_t op, int code);
void rig_no_answer (rig_t *rig);

/* An id that can be told apart: a UUIDv7 whose end is number. */
tmq_id_t rig_id (uint32_t number);
ProtobufCBinaryData rig_bytes (const tmq_id_t *id);

/* A submit to queue "q", started without a waiter. */
void rig_submit (rig_t *rig, uint32_t number, int64_t timeout_ms);
/* Answers a submit request as accepted. */
void rig_accept (rig_t *rig, uint64_t request, const tmq_id_t *id);

#endif
