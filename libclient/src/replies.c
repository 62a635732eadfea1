/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From the fields of a reply to an answer: one small function per kind of request, in a table.
 *
 * A reply to nobody is ignored: its request was answered or given up before. A reply that cannot
 * be what it should be ends the link; whatever was open is asked for again on the next one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_internal.h"
#include "ids.h"
#include "types.h"

const uint8_t *core_bodies_take (core_bodies_t *self, size_t bytes, bool *good)
{
    if (bytes > self->bytes - self->used) {
        *good = false;
        return NULL;
    }
    const uint8_t *at = bytes > 0 ? self->data + self->used : NULL;
    self->used += bytes;
    return at;
}

/* "Not now": the library tries again until the deadline. */
static bool is_for_now (uint32_t code)
{
    return code == TMQ_OVERLOADED || code == TMQ_STOPPING;
}

/* Each handler gets a reply with code 0. False: the reply is not what it should be. body: the bytes
 * that belong to the reply's task. */
typedef bool handler_t (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body);

/* Submit. */

static bool receipt_fill (tmq_receipt_t *receipt, const Taskmq__SubmittedItem *item)
{
    if (item->task_id.len != 0 &&
        !id_from_bytes (&receipt->id, item->task_id.data, item->task_id.len))
        return false;
    receipt->code = (int) item->code;
    receipt->existing = item->existing;
    receipt->status = (tmq_status_t) item->status;
    const char *text = item->text[0] != '\0' ? item->text : code_text ((int) item->code);
    snprintf (receipt->text, sizeof receipt->text, "%s", item->code == TMQ_OK ? "" : text);
    return true;
}

static bool on_submit (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_SUBMITTED || reply->submitted->n_items != 1)
        return false;
    const Taskmq__SubmittedItem *item = reply->submitted->items[0];
    if (is_for_now (item->code)) {
        core_request_delay (self, request, (int) item->code, item->text, item->retry_after_ms);
        return true;
    }
    if (!receipt_fill (request->answer.completion.receipts, item))
        return false;
    const char *text = item->text[0] != '\0' ? item->text : NULL;
    core_request_end (self, request, (int) item->code, text, item->retry_after_ms);
    return true;
}

/* Keeps only the items whose places are marked, with their fields and bodies. */
static void items_keep (core_request_t *request, const bool *kept)
{
    size_t fields_from = 0, fields_to = 0, body_from = 0, body_to = 0, count = 0;
    for (size_t i = 0; i < request->items_count; i++) {
        core_item_t item = request->items[i];
        if (kept[i]) {
            memmove (request->fields.data + fields_to, request->fields.data + fields_from,
                     item.fields_bytes);
            if (item.body_bytes > 0)
                memmove (request->body.data + body_to, request->body.data + body_from,
                         item.body_bytes);
            fields_to += item.fields_bytes;
            body_to += item.body_bytes;
            request->items[count++] = item;
        }
        fields_from += item.fields_bytes;
        body_from += item.body_bytes;
    }
    request->fields.length = fields_to;
    request->body.length = body_to;
    request->items_count = count;
}

static bool on_submit_batch (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                             const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_SUBMITTED ||
        reply->submitted->n_items != request->items_count)
        return false;
    bool kept[TMQ_SUBMIT_ITEMS_MAX];
    const Taskmq__SubmittedItem *later = NULL;
    tmq_receipt_t *receipts = request->group->answer.completion.receipts;
    for (size_t i = 0; i < request->items_count; i++) {
        const Taskmq__SubmittedItem *item = reply->submitted->items[i];
        kept[i] = is_for_now (item->code);
        if (kept[i])
            later = item;
        else if (!receipt_fill (&receipts[request->items[i].receipt], item))
            return false;
    }
    if (later == NULL) {
        core_request_end (self, request, TMQ_OK, NULL, 0);
        return true;
    }
    /* The rest is a request of its own: it was refused, so nothing of it was done. */
    size_t before = request->fields.length + request->body.length;
    items_keep (request, kept);
    self->open_bytes -= before - request->fields.length - request->body.length;
    core_request_id_make (self, request->request_id);
    request->maybe_before = false;
    core_request_delay (self, request, (int) later->code, later->text, later->retry_after_ms);
    return true;
}

/* Tasks. */

/* Ends the request with what was made for it, or with the lack of memory for it. */
static bool end_made (core_t *self, core_request_t *request, const void *made)
{
    core_request_end (self, request, made != NULL ? TMQ_OK : TMQ_NO_MEMORY, NULL, 0);
    return true;
}

static bool on_task (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                     const uint8_t *body)
{
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_TASK || reply->task->task_id.len != ID_BYTES)
        return false;
    completion->task = core_task_record (reply->task, body, reply->task->body);
    return end_made (self, request, completion->task);
}

static bool on_cancel (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    if (reply->body_case == TASKMQ__REPLY__BODY_TASK)
        return on_task (self, request, reply, body);
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

static bool on_list (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                     const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_PAGE)
        return false;
    completion->list = core_task_list_record (reply->page);
    return end_made (self, request, completion->list);
}

static bool on_count (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_COUNTED)
        return false;
    request->answer.completion.count = reply->counted->count;
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

static bool on_resolve (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_RESOLVED ||
        !id_from_bytes (&request->answer.completion.task_id, reply->resolved.data,
                        reply->resolved.len))
        return false;
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

static bool on_events (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_EVENT_PAGE)
        return false;
    completion->events =
        core_event_list_record (reply->event_page, self->ns, self->info.generation);
    return end_made (self, request, completion->events);
}

static bool on_stats (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_STATS)
        return false;
    completion->stats = core_stats_record (reply->stats);
    return end_made (self, request, completion->stats);
}

static bool on_done (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                     const uint8_t *body)
{
    (void) reply;
    (void) body;
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

static handler_t *const handlers[] = {
    [TMQ_OP_SUBMIT] = on_submit,  [TMQ_OP_SUBMIT_BATCH] = on_submit_batch,
    [TMQ_OP_GET] = on_task,       [TMQ_OP_RESULT] = on_task,
    [TMQ_OP_PAYLOAD] = on_task,   [TMQ_OP_LIST] = on_list,
    [TMQ_OP_COUNT] = on_count,    [TMQ_OP_RESOLVE] = on_resolve,
    [TMQ_OP_EVENTS] = on_events,  [TMQ_OP_CANCEL] = on_cancel,
    [TMQ_OP_STATS] = on_stats,    [TMQ_OP_PING] = on_done,
    [TMQ_OP_PUSH] = on_done,      [TMQ_OP_COMPLETE] = on_done,
    [TMQ_OP_FAIL] = on_done,      [TMQ_OP_RELEASE] = on_done,
    [TMQ_OP_CANCELLED] = on_done,
};

/* Dispatch. */

static bool internal_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply)
{
    if (is_for_now (reply->code)) {
        core_request_delay (self, request, (int) reply->code, reply->text, reply->retry_after_ms);
        return true;
    }
    switch (request->op) {
    case CORE_OP_WAIT: core_waits_reply (self, request, reply); break;
    case CORE_OP_SUBSCRIBE: core_subscriptions_reply (self, request, reply); break;
    case CORE_OP_REGISTER:
    case CORE_OP_RENEW:
    case CORE_OP_STARTED:
    case CORE_OP_PROGRESS: core_workers_reply (self, request, reply); break;
    default: break; /* nobody depends on the answer */
    }
    if (!reply->more && self->stage == CORE_LINK_UP)
        core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

/* The bodies of a reply are passed over even if nobody waits for it. */
static bool reply_body (const Taskmq__Reply *reply, core_bodies_t *bodies, const uint8_t **body)
{
    bool good = true;
    *body = NULL;
    if (reply->body_case == TASKMQ__REPLY__BODY_TASK)
        *body = core_bodies_take (bodies, reply->task->body, &good);
    return good;
}

/* An outcome is not lost to a full disk: the lease goes on, and so does the attempt to say it. */
static bool ends_attempt (const core_request_t *request)
{
    return request->op == TMQ_OP_COMPLETE || request->op == TMQ_OP_FAIL ||
           request->op == TMQ_OP_RELEASE || request->op == TMQ_OP_CANCELLED;
}

bool core_reply (core_t *self, const Taskmq__Reply *reply, core_bodies_t *bodies)
{
    const uint8_t *body;
    if (!reply_body (reply, bodies, &body))
        return false;
    core_request_t *request = core_slots_get (&self->requests, reply->id);
    if (request == NULL) {
        if (reply->code == TMQ_NOT_FOUND) { /* credit is answered only when it is refused */
            core_subscriptions_refused (self, reply->id);
            core_workers_refused (self, reply->id);
        }
        return true;
    }
    if (request->internal)
        return internal_reply (self, request, reply);
    if (reply->code == TMQ_OK)
        return handlers[request->op](self, request, reply, body);
    if (is_for_now (reply->code) || (reply->code == TMQ_STORE_FULL && ends_attempt (request))) {
        core_request_delay (self, request, (int) reply->code, reply->text, reply->retry_after_ms);
        return true;
    }
    const char *text = reply->text[0] != '\0' ? reply->text : NULL;
    core_request_end (self, request, (int) reply->code, text, reply->retry_after_ms);
    return true;
}
