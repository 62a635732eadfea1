/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From the fields of a reply to an answer: one small function per kind of request, in a table.
 *
 * A reply to nobody is ignored: its request was answered or given up before. A reply that cannot
 * be what it should be ends the link; whatever was open is asked for again on the next one. */
#include "link/replies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/access.h"
#include "codec/artifacts.h"
#include "codec/questions.h"
#include "codec/records.h"
#include "codec/roster.h"
#include "codec/schedules.h"
#include "codec/search.h"
#include "codec/sessions.h"
#include "codec/turns.h"
#include "ids.h"
#include "types.h"

enum { STATS_BYTES_MAX = 128 * 1024 * 1024 }; /* a million queues, with their names */

bool core_reply_is_for_now (uint32_t code)
{
    return code == TMQ_OVERLOADED || code == TMQ_STOPPING || code == TMQ_UNAVAILABLE;
}

const Taskmq__Part *core_part_of (const Taskmq__Reply *reply)
{
    if (reply->body_case == TASKMQ__REPLY__BODY_AUDIT_PAGE)
        return reply->audit_page;
    if (reply->body_case == TASKMQ__REPLY__BODY_LOG_PAGE)
        return reply->log_page;
    if (reply->body_case == TASKMQ__REPLY__BODY_CHECKPOINT_STATE)
        return reply->checkpoint_state;
    if (reply->body_case == TASKMQ__REPLY__BODY_BLOB_PART)
        return reply->blob_part;
    return reply->body_case == TASKMQ__REPLY__BODY_BACKUP_PART ? reply->backup_part : NULL;
}

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

bool core_reply_submit (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_SUBMITTED || reply->submitted->n_items != 1)
        return false;
    const Taskmq__SubmittedItem *item = reply->submitted->items[0];
    if (core_reply_is_for_now (item->code)) {
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

bool core_reply_submit_batch (core_requests_t *self, core_request_t *request,
                              const Taskmq__Reply *reply, const uint8_t *body)
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
        kept[i] = core_reply_is_for_now (item->code);
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

bool core_reply_import (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    (void) body;
    if (reply->body_case == TASKMQ__REPLY__BODY_SUBMITTED) {
        tmq_receipt_t *receipts = request->group->answer.completion.receipts;
        if (reply->submitted->n_items != 1 ||
            !receipt_fill (&receipts[request->items[0].receipt], reply->submitted->items[0]))
            return false;
    } else if (reply->body_case != TASKMQ__REPLY__BODY__NOT_SET) {
        return false;
    }
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

/* Tasks. */

/* Ends the request with what was made for it, or with the lack of memory for it. */
static bool end_made (core_requests_t *self, core_request_t *request, const void *made)
{
    core_request_end (self, request, made != NULL ? TMQ_OK : TMQ_NO_MEMORY, NULL, 0);
    return true;
}

bool core_reply_task (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_TASK || reply->task->task_id.len != ID_BYTES)
        return false;
    completion->task = core_task_record (reply->task, body);
    return end_made (self, request, completion->task);
}

bool core_reply_cancel (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    if (reply->body_case == TASKMQ__REPLY__BODY_TASK)
        return core_reply_task (self, request, reply, body);
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

/* Copies one item; false if there is none such. */
static bool changed_fill (tmq_changed_t *out, const Taskmq__ChangedItem *item)
{
    if (!id_from_bytes (&out->id, item->task_id.data, item->task_id.len))
        return false;
    out->code = (int) item->code;
    out->status = (tmq_status_t) item->status;
    const char *text =
        *item->text != '\0' || item->code == TMQ_OK ? item->text : code_text (out->code);
    snprintf (out->text, sizeof out->text, "%s", text);
    return true;
}

bool core_reply_changed (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                         const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_CHANGED)
        return false;
    const Taskmq__Changed *changed = reply->changed;
    completion->changed = calloc (changed->n_items + 1, sizeof *completion->changed);
    for (size_t i = 0; completion->changed != NULL && i < changed->n_items; i++)
        if (!changed_fill (&completion->changed[i], changed->items[i]))
            return false;
    completion->changed_count = changed->n_items;
    return end_made (self, request, completion->changed);
}

bool core_reply_attempts (core_requests_t *self, core_request_t *request,
                          const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_ATTEMPT_PAGE)
        return false;
    completion->attempts = core_attempts_record (reply->attempt_page);
    return end_made (self, request, completion->attempts);
}

bool core_reply_list (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_PAGE)
        return false;
    completion->list = core_task_list_record (reply->page);
    return end_made (self, request, completion->list);
}

bool core_reply_count (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_COUNTED)
        return false;
    request->answer.completion.count = reply->counted->count;
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

bool core_reply_resolve (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
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

bool core_reply_events (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_EVENT_PAGE)
        return false;
    completion->events =
        core_event_list_record (reply->event_page, self->link->ns, self->link->info.generation);
    return end_made (self, request, completion->events);
}

bool core_reply_stats (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_STATS)
        return false;
    bytes_t *parts = &request->parts;
    bytes_append_packed (parts, &reply->stats->base);
    if (!parts->failed && parts->length > STATS_BYTES_MAX) {
        core_request_end (self, request, TMQ_LIMIT, "the answer is longer than 128 MiB", 0);
        return true;
    }
    if (reply->more && !parts->failed)
        return true;
    /* Packed messages one behind the other are one message with the members of all. */
    Taskmq__StatsReport *whole =
        parts->failed ? NULL : taskmq__stats_report__unpack (NULL, parts->length, parts->data);
    if (whole != NULL) {
        completion->stats = core_stats_record (whole);
        taskmq__stats_report__free_unpacked (whole, NULL);
    }
    return end_made (self, request, completion->stats);
}

bool core_reply_access (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (!core_reply_is_about_access (reply))
        return false;
    completion->access = core_access_record (reply);
    return end_made (self, request, completion->access);
}

bool core_reply_schedules (core_requests_t *self, core_request_t *request,
                           const Taskmq__Reply *reply, const uint8_t *body)
{
    Taskmq__SchedulePage one = TASKMQ__SCHEDULE_PAGE__INIT;
    const Taskmq__SchedulePage *page = &one;
    if (reply->body_case == TASKMQ__REPLY__BODY_SCHEDULE_PAGE)
        page = reply->schedule_page;
    else if (reply->body_case != TASKMQ__REPLY__BODY_SCHEDULE)
        return false;
    else {
        one.schedules = (Taskmq__Schedule **) (uintptr_t) &reply->schedule;
        one.n_schedules = 1;
    }
    request->answer.completion.schedules = core_schedules_record (page, page == &one ? body : NULL);
    return end_made (self, request, request->answer.completion.schedules);
}

bool core_reply_sessions (core_requests_t *self, core_request_t *request,
                          const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    Taskmq__SessionPage one = TASKMQ__SESSION_PAGE__INIT;
    const Taskmq__SessionPage *page = &one;
    if (reply->body_case == TASKMQ__REPLY__BODY_SESSION_PAGE)
        page = reply->session_page;
    else if (reply->body_case != TASKMQ__REPLY__BODY_SESSION)
        return false;
    else {
        one.sessions = (Taskmq__Session **) (uintptr_t) &reply->session;
        one.n_sessions = 1;
    }
    request->answer.shared = core_sessions_record (page);
    return end_made (self, request, request->answer.shared);
}

bool core_reply_queues (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    Taskmq__QueuePage one = TASKMQ__QUEUE_PAGE__INIT;
    const Taskmq__QueuePage *page = &one;
    if (reply->body_case == TASKMQ__REPLY__BODY_QUEUE_PAGE)
        page = reply->queue_page;
    else if (reply->body_case != TASKMQ__REPLY__BODY_QUEUE)
        return false;
    else {
        one.queues = (Taskmq__QueueInfo **) (uintptr_t) &reply->queue;
        one.n_queues = 1;
    }
    if (page->next.len > TMQ_CURSOR_BYTES_MAX)
        return false;
    completion->queues = core_queues_record (page);
    return end_made (self, request, completion->queues);
}

bool core_reply_workers (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                         const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_WORKER_PAGE &&
        reply->body_case != TASKMQ__REPLY__BODY_WORKER_INFO)
        return false;
    tmq_completion_t *completion = &request->answer.completion;
    completion->workers = core_workers_record (reply);
    return end_made (self, request, completion->workers);
}

bool core_reply_part (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    tmq_completion_t *completion = &request->answer.completion;
    const Taskmq__Part *part = core_part_of (reply);
    if (part == NULL)
        return false;
    completion->part = core_part_record (part, body);
    return end_made (self, request, completion->part);
}

bool core_reply_blob_at (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                         const uint8_t *body)
{
    (void) body;
    Taskmq__Part at = TASKMQ__PART__INIT;
    if (reply->body_case != TASKMQ__REPLY__BODY_BLOB_AT)
        return false;
    at.offset = reply->blob_at->offset;
    at.more = !reply->blob_at->whole;
    request->answer.completion.part = core_part_record (&at, (const uint8_t *) "");
    return end_made (self, request, request->answer.completion.part);
}

bool core_reply_head (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_AUDIT_AT ||
        reply->audit_at->hash.len != sizeof completion->part->hash)
        return false;
    completion->part = core_head_record (reply->audit_at);
    return end_made (self, request, completion->part);
}

bool core_reply_vacuumed (core_requests_t *self, core_request_t *request,
                          const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_VACUUMED)
        return false;
    completion->vacuum = core_vacuum_record (reply->vacuumed);
    return end_made (self, request, completion->vacuum);
}

bool core_reply_cleanup (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                         const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_CLEANUP_PAGE ||
        reply->cleanup_page->next.len > TMQ_CURSOR_BYTES_MAX)
        return false;
    request->answer.shared = core_cleanup_record (reply->cleanup_page);
    return end_made (self, request, request->answer.shared);
}

bool core_reply_answered (core_requests_t *self, core_request_t *request,
                          const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_ANSWERED)
        return false;
    completion->answered = core_answered_record (reply->answered);
    completion->answered_count = reply->answered->n_items;
    return end_made (self, request, completion->answered);
}

bool core_reply_why (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                     const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_EXPLANATION)
        return false;
    completion->why = core_explanation_record (reply->explanation);
    return end_made (self, request, completion->why);
}

bool core_reply_inbox (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    (void) body;
    tmq_completion_t *completion = &request->answer.completion;
    if (reply->body_case != TASKMQ__REPLY__BODY_INBOX_PAGE)
        return false;
    completion->inbox = core_inbox_record (reply->inbox_page);
    return end_made (self, request, completion->inbox);
}

bool core_reply_value (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    if (reply->body_case != TASKMQ__REPLY__BODY_VALUE)
        return false;
    request->answer.shared = core_value_record (reply->value, body);
    return end_made (self, request, request->answer.shared);
}

bool core_reply_value_page (core_requests_t *self, core_request_t *request,
                            const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_VALUE_PAGE)
        return false;
    request->answer.shared = core_value_list_record (reply->value_page);
    return end_made (self, request, request->answer.shared);
}

bool core_reply_item_page (core_requests_t *self, core_request_t *request,
                           const Taskmq__Reply *reply, const uint8_t *body)
{
    if (reply->body_case != TASKMQ__REPLY__BODY_ITEM_PAGE)
        return false;
    request->answer.shared = core_item_list_record (reply->item_page, body);
    return end_made (self, request, request->answer.shared);
}

bool core_reply_turns (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                       const uint8_t *body)
{
    if (reply->body_case != TASKMQ__REPLY__BODY_TURN_PAGE)
        return false;
    request->answer.shared = core_turn_list_record (reply->turn_page, body);
    return end_made (self, request, request->answer.shared);
}

bool core_reply_artifacts (core_requests_t *self, core_request_t *request,
                           const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_ARTIFACT_PAGE)
        return false;
    tmq_completion_t *completion = &request->answer.completion;
    completion->artifacts = core_artifact_list_record (reply->artifact_page);
    return end_made (self, request, completion->artifacts);
}

bool core_reply_search (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                        const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_FOUND_PAGE)
        return false;
    request->answer.shared = core_found_list_record (reply->found_page);
    if (request->answer.shared != NULL)
        request->answer.completion.list = core_found_tasks_record (reply->found_page);
    return end_made (self, request, request->answer.completion.list);
}

bool core_reply_item_done (core_requests_t *self, core_request_t *request,
                           const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    if (reply->body_case != TASKMQ__REPLY__BODY_ITEM_DONE)
        return false;
    request->answer.completion.count =
        request->op == TMQ_OP_ITEM_PUT ? reply->item_done->number : reply->item_done->count;
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}

bool core_reply_done (core_requests_t *self, core_request_t *request, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    (void) reply;
    (void) body;
    core_request_end (self, request, TMQ_OK, NULL, 0);
    return true;
}
