/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions and answers: from public structs to requests, and from messages to records. */
#ifndef TASKMQ_CLIENT_QUESTIONS_H
#define TASKMQ_CLIENT_QUESTIONS_H

#include "codec/request.h"

/* Takes what the application's struct has, and judges it; what is NULL in it may be. */
int core_take_ask (tmq_ask_t *out, const tmq_ask_t *given, tmq_error_t *error);
/* Its fields behind the lease. */
void core_encode_ask (bytes_t *out, const tmq_ask_t *in);
int core_request_answer (core_request_t **out, const tmq_id_t *id, const tmq_answer_t *in,
                         size_t count, tmq_error_t *error);
int core_request_inbox (core_request_t **out, const tmq_inbox_query_t *in, tmq_error_t *error);

/* Each is one piece of memory; NULL when it is exhausted. body: in->bytes bytes. */
tmq_given_t *core_given_record (const Taskmq__GivenAnswer *in, const void *body);
tmq_given_t *core_given_copy (const tmq_given_t *in);
tmq_inbox_t *core_inbox_record (const Taskmq__InboxPage *page); /* ids have 16 bytes */
tmq_answered_t *core_answered_record (const Taskmq__Answered *answered);

#endif
