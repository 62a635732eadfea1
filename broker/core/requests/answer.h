/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Answers to requests. */
#ifndef TASKMQ_CORE_ANSWER_H
#define TASKMQ_CORE_ANSWER_H

#include "core/reads/find.h"
#include "core/requests/requests.h"

enum {
    OVERLOAD_RETRY_MS = 100, /* the write-back's own interval */
    LIMIT_RETRY_MS = 1000,   /* tasks end, links close: nobody knows when */
    LIMIT_TEXT_SIZE = 96,
    GONE_TEXT_SIZE = 128,
    STALE_TEXT_SIZE = 192
};

/* Starts the answer to a request in scratch and sends it. text NULL: the code's own. */
bytes_t *reply_open (requests_t *self, uint64_t request, tmq_code_t code, const char *text,
                     uint32_t retry_after_ms, bool more, bytes_mark_t *mark);
void reply_close (requests_t *self, link_t *link, bytes_mark_t mark, uint64_t batch, buf_t *body);
void reply_code (call_t *call, tmq_code_t code, const char *text); /* waits (A7) */
void reply_code_at_once (call_t *call, tmq_code_t code, const char *text, uint32_t retry_ms);
/* LIMIT: of what there are as many as there may be, and how many that is. */
void limit_text (char out[LIMIT_TEXT_SIZE], const char *what, size_t limit);
void reply_limit (call_t *call, const char *what, size_t limit);
/* Which policy removed a task (removal_t.why), and whose it is. */
void policy_say (char *out, size_t size, uint8_t why);
/* Why the task is not there, and since when. */
void gone_text (char out[GONE_TEXT_SIZE], const found_t *found);
void reply_gone (call_t *call, const found_t *found);
/* The lease is over, and what became of the task: STALE_LEASE, or the code of one that is gone.
 * kept: of what it brought. */
void reply_stale (call_t *call, const found_t *found, const Taskmq__Lease *lease, bool kept);
/* Adds one message to the list (field 1) of the page that is open. False: it has its *left, or is
 * full, and says that there is more (field 2). */
bool reply_page_add (bytes_t *out, const ProtobufCMessage *message, size_t *left);
void reply_to (requests_t *self, link_t *link, uint64_t request, tmq_code_t code, const char *text,
               uint64_t batch);

#endif
