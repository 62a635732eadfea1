/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Answers to requests. */
#include "core/requests/answer.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/peers/outbox.h"
#include "core/tasks/journal.h"
#include "core/wire/pack.h"
#include "request_kinds.h"
#include "types.h"
#include "units.h"

/* Numbers of the fields of Reply in taskmq.proto. */
enum { REPLY_ID = 1, REPLY_CODE = 2, REPLY_TEXT = 3, REPLY_RETRY = 4, REPLY_MORE = 5 };

bytes_t *reply_open (requests_t *self, uint64_t request, tmq_code_t code, const char *text,
                     uint32_t retry_after_ms, bool more, bytes_mark_t *mark)
{
    bytes_t *out = &self->peers->scratch;
    bytes_clear (out);
    *mark = bytes_open (out, BROKER_REPLIES);
    bytes_append_uint (out, REPLY_ID, request);
    if (code != TMQ_OK) {
        self->base->counts.refused++;
        bytes_append_uint (out, REPLY_CODE, code);
        bytes_append_string (out, REPLY_TEXT, text == NULL ? code_text ((int) code) : text);
        bytes_append_uint (out, REPLY_RETRY, retry_after_ms);
    }
    bytes_append_uint (out, REPLY_MORE, more);
    return out;
}

void reply_close (requests_t *self, link_t *link, bytes_mark_t mark, uint64_t batch, buf_t *body)
{
    bytes_close (&self->peers->scratch, mark);
    budget_take (&self->base->round.answer_bytes, self->peers->scratch.length + buf_length (body));
    outbox_add (self->peers, link, ITEM_REPLY, batch, &self->peers->scratch, body);
}

void reply_to (requests_t *self, link_t *link, uint64_t request, tmq_code_t code, const char *text,
               uint64_t batch)
{
    bytes_mark_t mark;
    reply_open (self, request, code, text, 0, false, &mark);
    reply_close (self, link, mark, batch, NULL);
}

bool reply_page_add (bytes_t *out, const ProtobufCMessage *message, size_t *left)
{
    enum { PAGE_LIST = 1, PAGE_MORE = 2, WRAPPING_BYTES = 64 };
    size_t bytes = protobuf_c_message_get_packed_size (message) + WRAPPING_BYTES;
    bool fits = *left > 0 && out->length + bytes <= ENVELOPE_FILL_BYTES;
    if (fits) {
        bytes_append_message (out, PAGE_LIST, message);
        --*left;
    } else {
        bytes_append_uint (out, PAGE_MORE, 1);
    }
    return fits;
}

void reply_code (call_t *call, tmq_code_t code, const char *text)
{
    reply_to (call->requests, call->link, call->request->id, code, text,
              journal_batch (call->requests->tasks));
}

void limit_text (char out[LIMIT_TEXT_SIZE], const char *what, size_t limit)
{
    snprintf (out, LIMIT_TEXT_SIZE, "%s: %zu, as many as there may be", what, limit);
}

void reply_limit (call_t *call, const char *what, size_t limit)
{
    char text[LIMIT_TEXT_SIZE];
    limit_text (text, what, limit);
    bytes_mark_t mark;
    reply_open (call->requests, call->request->id, TMQ_LIMIT, text, LIMIT_RETRY_MS, false, &mark);
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}

void policy_say (char *out, size_t size, uint8_t why)
{
    snprintf (out, size, "%s of the %s", policy_text ((tmq_policy_t) (why & RETENTION_POLICY)),
              (why & RETENTION_OF_SPACE) != 0 ? "namespace" : "queue");
}

void gone_text (char out[GONE_TEXT_SIZE], const found_t *found)
{
    char at[TIME_TEXT_SIZE];
    const char *what = NULL;
    if (found->gone == TMQ_EXPIRED)
        what = found->removed ? "the task was removed after its time to live, at"
                              : "the task's time to live ended at";
    else if (found->gone == TMQ_PURGED)
        what = "the task was removed at";
    if (what == NULL || found->gone_at == 0 || !time_format (at, found->gone_at))
        snprintf (out, GONE_TEXT_SIZE, "%s", code_text ((int) found->gone));
    else
        snprintf (out, GONE_TEXT_SIZE, "%s %s", what, at);
    if (found->gone == TMQ_PURGED && found->why != 0) {
        char policy[64];
        policy_say (policy, sizeof (policy), found->why);
        size_t length = strlen (out);
        snprintf (out + length, GONE_TEXT_SIZE - length, ", by %s", policy);
    }
}

void reply_gone (call_t *call, const found_t *found)
{
    char text[GONE_TEXT_SIZE];
    gone_text (text, found);
    reply_code (call, found->gone, text);
}

static uint32_t attempt_of (const found_t *found)
{
    return found->task != NULL ? found->task->attempt : found->record->attempt;
}

void reply_stale (call_t *call, const found_t *found, const Taskmq__Lease *lease, bool kept)
{
    char text[STALE_TEXT_SIZE];
    tmq_status_t status = found_status (found);
    call->requests->base->counts.stale_leases++;
    if (!found_is_seen (call->link, found)) { /* nor whether it exists */
        reply_code (call, TMQ_STALE_LEASE,
                    kept ? "the lease is over; the success was kept" : "the lease is over");
        return;
    }
    if (status == TMQ_STATUS_NONE && found->gone != TMQ_NOT_FOUND)
        reply_gone (call, found);
    else if (status == TMQ_STATUS_NONE)
        reply_code (call, TMQ_STALE_LEASE, "the lease is over: there is no such task");
    else {
        snprintf (text, sizeof (text),
                  "the lease of attempt %" PRIu32 " is over: the task is %s, its newest attempt is "
                  "%" PRIu32 "%s",
                  lease->attempt, status_text (status), attempt_of (found),
                  kept ? "; the success was kept" : "");
        reply_code (call, TMQ_STALE_LEASE, text);
    }
}

void reply_code_at_once (call_t *call, tmq_code_t code, const char *text, uint32_t retry_ms)
{
    bytes_mark_t mark;
    reply_open (call->requests, call->request->id, code, text, retry_ms, false, &mark);
    reply_close (call->requests, call->link, mark, 0, NULL);
}
