/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tests of the validator share: requests go through the wire's form, as a client sends
 * them, and come back as verdicts. */
#ifndef TASKMQ_TEST_PROTO_JUDGE_H
#define TASKMQ_TEST_PROTO_JUDGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "validate.h"

extern arena_t *arena;      /* of the messages; reset by each judgement */
extern bytes_t wire;        /* the first frame that was judged last */
extern uint8_t sixteen[17]; /* its first 16 bytes are a UUIDv7 */

int judge_setup (void **state);
int judge_teardown (void **state);

/* Generated messages have members without const. */
char *text_of (const char *text);
/* The first length bytes of sixteen. */
ProtobufCBinaryData bytes_of (size_t length);
/* A text of length times c; valid until eight more were made. */
char *repeated (char c, size_t length);

/* With an id of its own and a request id, its operation to be set. */
Taskmq__Request request_of (Taskmq__Request__OpCase op);
Taskmq__Lease good_lease (void);

/* NULL when the message as a whole was refused. */
const Taskmq__ClientMessage *judge_many (verdicts_t *out, Taskmq__Request **requests, size_t count,
                                         size_t body_bytes);
/* The verdict on a request that is alone in its message. */
verdict_t judge (Taskmq__Request *request, size_t body_bytes);
void assert_good (Taskmq__Request *request);
void assert_bad (Taskmq__Request *request, tmq_code_t code, const char *text);
/* text: a part of the verdict's. */
void assert_verdict (verdict_t verdict, tmq_code_t code, const char *text);

#endif
