/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One table of requests; behind it one check for each (checks.h). */
#include "validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "ids.h"
#include "json.h"
#include "request_kinds.h"
#include "types.h"

/* The link. */

enum { CLIENT_TEXT_BYTES_MAX = 64 };

static bool check_nothing (check_t *check, const Taskmq__Request *request)
{
    (void) check;
    (void) request;
    return true;
}

static bool check_hello (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Hello *hello = request->hello;
    if (!check_range (check, "version_max", hello->version_max, 1, UINT32_MAX) ||
        !check_range (check, "version_min", hello->version_min, 1, hello->version_max))
        return false;
    if (hello->version_min > TMQ_PROTOCOL_VERSION || hello->version_max < TMQ_PROTOCOL_VERSION)
        return check_refuse (check, TMQ_UNSUPPORTED,
                             "the broker speaks version %d of the protocol only",
                             TMQ_PROTOCOL_VERSION);
    return check_name_or_empty (check, "namespace", hello->namespace_) &&
           check_text (check, "client", hello->client, CLIENT_TEXT_BYTES_MAX);
}

/* The table. */

typedef bool (*check_kind_t) (check_t *check, const Taskmq__Request *request);

/* By the number of the operation; every kind of request_kinds.h has one. */
#define OP(NAME) TASKMQ__REQUEST__OP_##NAME
static const check_kind_t checks[] = {
    [OP (HELLO)] = check_hello,
    [OP (GOODBYE)] = check_nothing,
    [OP (HEARTBEAT)] = check_nothing,
    [OP (SUBMIT)] = check_submit,
    [OP (IMPORT)] = check_import,
    [OP (GET)] = check_get,
    [OP (RESOLVE)] = check_resolve,
    [OP (LIST)] = check_list,
    [OP (COUNT)] = check_filter_of_count,
    [OP (SEARCH)] = check_search,
    [OP (REINDEX)] = check_nothing,
    [OP (TASK_EVENTS)] = check_task_events,
    [OP (RESULT)] = check_result,
    [OP (PAYLOAD)] = check_payload,
    [OP (CANCEL)] = check_cancel,
    [OP (LOG)] = check_log,
    [OP (READ_LOG)] = check_read_log,
    [OP (BLOB_BEGIN)] = check_blob_begin,
    [OP (BLOB_CHUNK)] = check_blob_chunk,
    [OP (BLOB_READ)] = check_blob_read,
    [OP (BLOB_DROP)] = check_blob_drop,
    [OP (CHECKPOINT)] = check_checkpoint,
    [OP (CHECKPOINT_READ)] = check_checkpoint_read,
    [OP (RETRY)] = check_retry,
    [OP (RESUME)] = check_resume,
    [OP (SET)] = check_set,
    [OP (PURGE)] = check_purge,
    [OP (ADOPT)] = check_adopt,
    [OP (ATTEMPTS)] = check_attempts,
    [OP (ARTIFACT)] = check_artifact,
    [OP (ARTIFACTS)] = check_artifacts,
    [OP (TURN)] = check_turn,
    [OP (TURNS)] = check_turns,
    [OP (WHY)] = check_why,
    [OP (WAIT)] = check_wait,
    [OP (STATS)] = check_nothing,
    [OP (ANSWER)] = check_answer,
    [OP (INBOX)] = check_inbox,
    [OP (SUBSCRIBE)] = check_subscribe,
    [OP (CREDIT)] = check_credit,
    [OP (UNSUBSCRIBE)] = check_unsubscribe,
    [OP (REGISTER)] = check_register,
    [OP (WORKER_CREDIT)] = check_worker_credit,
    [OP (STARTED)] = check_started,
    [OP (RENEW)] = check_renew,
    [OP (PUSH)] = check_push,
    [OP (CANCEL_ACK)] = check_cancel_ack,
    [OP (COMPLETE)] = check_complete,
    [OP (FAIL)] = check_fail,
    [OP (RELEASE)] = check_release,
    [OP (LEAVE)] = check_leave,
    [OP (ASK)] = check_ask,
    [OP (TAKE_ANSWERS)] = check_take_answers,
    [OP (ENROLL)] = check_enroll,
    [OP (KEY_LIST)] = check_nothing,
    [OP (KEY_TRUST)] = check_key_trust,
    [OP (KEY_REVOKE)] = check_key_revoke,
    [OP (INVITE)] = check_invite,
    [OP (INVITE_LIST)] = check_nothing,
    [OP (INVITE_REVOKE)] = check_invite_revoke,
    [OP (SERVER_KEY_ROTATE)] = check_rotate,
    [OP (RELOAD)] = check_nothing,
    [OP (ACCESS_READ)] = check_nothing,
    [OP (AUDIT)] = check_audit,
    [OP (AUDIT_HEAD)] = check_nothing,
    [OP (BACKUP)] = check_backup,
    [OP (VACUUM)] = check_nothing,
    [OP (CLEANUP)] = check_cleanup,
    [OP (QUEUE_LIST)] = check_queue_list,
    [OP (QUEUE_SET)] = check_queue_set,
    [OP (QUEUE_SHOW)] = check_queue_show,
    [OP (QUEUE_PAUSE)] = check_queue_pause,
    [OP (QUEUE_RESUME)] = check_queue_resume,
    [OP (SESSION_SET)] = check_session_set,
    [OP (SESSION_SHOW)] = check_session_show,
    [OP (SESSION_LIST)] = check_session_list,
    [OP (SESSION_STATUS)] = check_session_status,
    [OP (SESSION_REMOVE)] = check_session_remove,
    [OP (SCHEDULE_PUT)] = check_schedule_put,
    [OP (SCHEDULE_SHOW)] = check_schedule_show,
    [OP (SCHEDULE_LIST)] = check_schedule_list,
    [OP (SCHEDULE_PAUSE)] = check_schedule_pause,
    [OP (SCHEDULE_RESUME)] = check_schedule_resume,
    [OP (SCHEDULE_REMOVE)] = check_schedule_remove,
    [OP (VALUE_PUT)] = check_value_put,
    [OP (VALUE_GET)] = check_value_get,
    [OP (VALUE_LIST)] = check_value_list,
    [OP (VALUE_REMOVE)] = check_value_remove,
    [OP (WORKER_LIST)] = check_worker_list,
    [OP (WORKER_SHOW)] = check_worker_show,
    [OP (WORKER_DRAIN)] = check_worker_drain,
    [OP (ITEM_PUT)] = check_item_put,
    [OP (ITEM_READ)] = check_item_read,
    [OP (ITEM_ACK)] = check_item_ack,
};
#undef OP

/* Requests and messages. */

/* What is declared larger than a frame cannot be in one. */
static size_t body_in_frame (size_t bytes)
{
    return bytes <= TMQ_FRAME_BYTES_MAX ? bytes : 0;
}

size_t validate_payload_bytes (const Taskmq__TaskSpec *spec)
{
    return body_in_frame (spec->payload_bytes);
}

size_t validate_turn_bytes (const Taskmq__Turn *turn)
{
    return (size_t) turn->content_bytes + turn->tool_calls_bytes + turn->tool_log_bytes +
           turn->files_bytes;
}

/* Length of all bodies that a request has in the second frame. */
static size_t request_bodies (const Taskmq__Request *request)
{
    size_t total = 0;
    switch (request->op_case) {
    case TASKMQ__REQUEST__OP_SUBMIT:
        for (size_t i = 0; i < request->submit->n_tasks; i++)
            total += validate_payload_bytes (request->submit->tasks[i]);
        return total;
    case TASKMQ__REQUEST__OP_COMPLETE: return body_in_frame (request->complete->result_bytes);
    case TASKMQ__REQUEST__OP_CHECKPOINT: return body_in_frame (request->checkpoint->state_bytes);
    case TASKMQ__REQUEST__OP_TURN: return body_in_frame (validate_turn_bytes (request->turn));
    case TASKMQ__REQUEST__OP_ARTIFACT: return body_in_frame (request->artifact->bytes);
    case TASKMQ__REQUEST__OP_IMPORT: return body_in_frame (request->import->bytes);
    case TASKMQ__REQUEST__OP_BLOB_CHUNK: return body_in_frame (request->blob_chunk->chunk_bytes);
    case TASKMQ__REQUEST__OP_LOG: return body_in_frame (request->log->log_bytes);
    case TASKMQ__REQUEST__OP_FAIL:
        return body_in_frame ((size_t) request->fail->result_bytes + request->fail->data_bytes);
    case TASKMQ__REQUEST__OP_VALUE_PUT: return body_in_frame (request->value_put->body_bytes);
    case TASKMQ__REQUEST__OP_ITEM_PUT: return body_in_frame (request->item_put->body_bytes);
    case TASKMQ__REQUEST__OP_ANSWER:
        for (size_t i = 0; i < request->answer->n_items; i++)
            total += body_in_frame (request->answer->items[i]->bytes);
        return total;
    case TASKMQ__REQUEST__OP_SCHEDULE_PUT: {
        const Taskmq__Schedule *schedule = request->schedule_put->schedule;
        return schedule == NULL || schedule->task == NULL ? 0
                                                          : validate_payload_bytes (schedule->task);
    }
    default: return 0;
    }
}

static bool check_request_id (check_t *check, const Taskmq__Request *request,
                              const request_kind_t *kind)
{
    bool needed = (kind->flags & REQUEST_NEEDS_ID) != 0;
    if (request->request_id.len == 0 && !needed)
        return true;
    if (request->request_id.len == 0)
        return check_refuse (check, TMQ_INVALID, "request_id: %s needs one", kind->name);
    return check_16_bytes (check, "request_id", &request->request_id);
}

/* A name, and short enough to stand behind that of whoever acts for him. */
static bool check_owner (check_t *check, const char *owner, const request_kind_t *kind)
{
    if (*owner == '\0')
        return true;
    if ((kind->flags & REQUEST_OWNED) == 0)
        return check_refuse (check, TMQ_INVALID, "owner: %s is not made for others", kind->name);
    return check_name (check, "owner", owner) &&
           check_text (check, "owner", owner, TMQ_BEHALF_BYTES_MAX);
}

static bool check_request (check_t *check, const Taskmq__Request *request, bool alone)
{
    const request_kind_t *kind = request_kind (request);
    if (kind == NULL)
        return check_refuse (check, TMQ_UNSUPPORTED, "the kind of the request is not known");
    if (!check_request_id (check, request, kind) || !check_owner (check, request->owner, kind))
        return false;
    bool by_item = request->op_case == TASKMQ__REQUEST__OP_SUBMIT;
    if (check->flaws != NULL && !by_item)
        return check_refuse (check, TMQ_INVALID, "%s: %s", check->flaws->field, check->flaws->text);
    if (request->op_case == TASKMQ__REQUEST__OP_HELLO && !alone)
        return check_refuse (check, TMQ_INVALID, "hello: must be alone in its message");
    return checks[request->op_case](check, request);
}

/* With wrong lengths nobody knows which byte belongs to whom: whoever has a body is refused. */
static void refuse_bodies (verdicts_t *out, arena_t *arena, const Taskmq__ClientMessage *message,
                           request_verdict_t *requests, size_t mentioned, size_t body_bytes)
{
    check_t whole = {arena, &out->message, NULL, NULL};
    if (mentioned == 0) {
        check_refuse (&whole, TMQ_INVALID,
                      "the second frame has %zu bytes that no request mentions", body_bytes);
        return;
    }
    for (size_t i = 0; i < message->n_requests; i++) {
        if (requests[i].verdict.code != TMQ_OK || request_bodies (message->requests[i]) == 0)
            continue;
        check_t check = {arena, &requests[i].verdict, NULL, NULL};
        check_refuse (&check, TMQ_INVALID,
                      "the requests mention %zu bytes, the second frame has %zu", mentioned,
                      body_bytes);
        out->refused++;
    }
}

/* Judges every request; returns how many bytes of bodies they mention. */
static size_t judge_requests (verdicts_t *out, arena_t *arena, const Taskmq__ClientMessage *message,
                              const codec_flaw_t *flaw, request_verdict_t *requests)
{
    size_t offset = 0;
    for (size_t i = 0; i < message->n_requests; i++) {
        request_verdict_t *verdict = &requests[i];
        bool flawed = flaw != NULL && flaw->request == i;
        check_t check = {arena, &verdict->verdict, NULL, flawed ? flaw : NULL};
        if (!check_request (&check, message->requests[i], message->n_requests == 1))
            out->refused++;
        while (flaw != NULL && flaw->request == i)
            flaw = flaw->next;
        verdict->items = check.items;
        verdict->body_offset = offset;
        offset += request_bodies (message->requests[i]);
    }
    return offset;
}

static int compare_ids (const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *) left;
    uint64_t b = *(const uint64_t *) right;
    return (a > b) - (a < b);
}

/* An answer names its request by the id, so each has one of its own. Clients count upwards: only
 * ids that do not rise are sorted. */
static bool check_ids_of_requests (check_t *check, const Taskmq__ClientMessage *message)
{
    size_t count = message->n_requests;
    bool rising = true;
    for (size_t i = 0; i < count; i++) {
        if (message->requests[i]->id == 0)
            return check_refuse (check, TMQ_INVALID, "id: must not be 0");
        rising = rising && (i == 0 || message->requests[i]->id > message->requests[i - 1]->id);
    }
    if (rising)
        return true;
    uint64_t *ids = arena_zalloc (check->arena, count, sizeof *ids);
    if (ids == NULL)
        return check_refuse (check, TMQ_TOO_LARGE, "the message needs too much memory to judge");
    for (size_t i = 0; i < count; i++)
        ids[i] = message->requests[i]->id;
    qsort (ids, count, sizeof *ids, compare_ids);
    for (size_t i = 1; i < count; i++) {
        if (ids[i] == ids[i - 1])
            return check_refuse (check, TMQ_INVALID, "id: %llu stands twice in one message",
                                 (unsigned long long) ids[i]);
    }
    return true;
}

static bool check_envelope (check_t *check, const Taskmq__ClientMessage *message)
{
    if (message->token.len != 0 && !check_16_bytes (check, "token", &message->token))
        return false;
    return check_count (check, "requests", message->n_requests, 1, TMQ_REQUESTS_MAX) &&
           check_ids_of_requests (check, message);
}

void validate_client_message (verdicts_t *out, arena_t *arena, const Taskmq__ClientMessage *message,
                              const codec_flaw_t *flaws, size_t body_bytes)
{
    *out = (verdicts_t){{TMQ_OK, NULL}, NULL, 0, 0};
    check_t whole = {arena, &out->message, NULL, NULL};
    if (!check_envelope (&whole, message))
        return;
    request_verdict_t *requests = arena_zalloc (arena, message->n_requests, sizeof *requests);
    if (requests == NULL) {
        check_refuse (&whole, TMQ_TOO_LARGE, "the message needs too much memory to judge");
        return;
    }
    size_t mentioned = judge_requests (out, arena, message, flaws, requests);
    if (mentioned != body_bytes)
        refuse_bodies (out, arena, message, requests, mentioned, body_bytes);
    if (out->message.code != TMQ_OK)
        return;
    out->requests = requests;
    out->requests_count = message->n_requests;
}

const Taskmq__ClientMessage *validate_frames (verdicts_t *out, arena_t *arena, size_t frames,
                                              const void *envelope, size_t envelope_bytes,
                                              size_t body_bytes)
{
    *out = (verdicts_t){{TMQ_OK, NULL}, NULL, 0, 0};
    check_t whole = {arena, &out->message, NULL, NULL};
    if (frames < 1 || frames > 2) {
        check_refuse (&whole, TMQ_INVALID, "a message has one or two frames, not %zu", frames);
        return NULL;
    }
    if (body_bytes > TMQ_FRAME_BYTES_MAX) {
        check_refuse (&whole, TMQ_TOO_LARGE, "the second frame has %zu bytes, at most %d",
                      body_bytes, TMQ_FRAME_BYTES_MAX);
        return NULL;
    }
    codec_report_t report;
    const Taskmq__ClientMessage *message =
        codec_client_message (&report, arena, envelope, envelope_bytes);
    if (message == NULL) {
        out->message = (verdict_t){report.code, report.text};
        return NULL;
    }
    validate_client_message (out, arena, message, report.flaws, body_bytes);
    return out->message.code == TMQ_OK ? message : NULL;
}
