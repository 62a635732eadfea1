/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The operations on tasks: make the request, start it, wait for its answer or not, hand it over. */
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/sized.h"
#include "client/client.h"
#include "ids.h"

/* Submit. */

static int submit_request (core_request_t **out, const tmq_submit_t *in, tmq_error_t *error)
{
    tmq_id_t made;
    if (in == NULL)
        return core_error (error, TMQ_INVALID, "the task is NULL");
    if (id_is_zero (&in->id))
        tmq_id_make (&made);
    return core_request_submit (out, in, &made, error);
}

int tmq_submit (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    core_answer_t *answer = NULL;
    tmq_submit_t taken = {0};
    memset (out, 0, sizeof *out);
    if (in != NULL && in->size > offsetof (tmq_submit_t, payload_bytes) &&
        in->payload_bytes > TMQ_FRAME_BYTES_MAX) {
        out->code = core_submit_take (&taken, in, error);
        return out->code != TMQ_OK ? out->code
                                   : client_submit_large (out, client, &taken, timeout_ms, error);
    }
    int code = submit_request (&request, in, error);
    if (code == TMQ_OK)
        code = client_call (&answer, client, request, timeout_ms, error);
    else
        answer = NULL;
    out->code = code;
    if (answer != NULL) {
        *out = answer->completion.receipts[0];
        core_answer_free (answer);
    }
    return code;
}

int tmq_submit_start (tmq_client_t *client, const tmq_submit_t *in, uint32_t timeout_ms, void *user,
                      tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = submit_request (&request, in, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

static int batch_request (core_request_t **out, const tmq_submit_t *in, size_t count,
                          tmq_error_t *error)
{
    if (in == NULL || count == 0)
        return core_error (error, TMQ_INVALID, "a batch needs at least one task");
    tmq_id_t *ids = calloc (count, sizeof *ids);
    if (ids == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    for (size_t i = 0; i < count; i++)
        tmq_id_make (&ids[i]);
    int code = core_request_submit_batch (out, in, ids, count, error);
    free (ids);
    return code;
}

int tmq_submit_batch (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                      size_t count, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    core_answer_t *answer = NULL;
    int code = batch_request (&request, in, count, error);
    if (code == TMQ_OK)
        code = client_call (&answer, client, request, timeout_ms, error);
    if (answer != NULL) {
        memcpy (out, answer->completion.receipts, count * sizeof *out);
        core_answer_free (answer);
        return code;
    }
    memset (out, 0, count * sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i].code = code;
    return code;
}

int tmq_submit_batch_start (tmq_client_t *client, const tmq_submit_t *in, size_t count,
                            uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = batch_request (&request, in, count, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

/* One task. */

static int call_for_task (tmq_task_t **out, tmq_client_t *client, core_request_t *request,
                          uint32_t timeout_ms, tmq_error_t *error)
{
    return client_take (out, CLIENT_MEMBER (completion.task), client, request, timeout_ms, error);
}

static int get_request (core_request_t **out, tmq_op_t op, const tmq_id_t *id, tmq_error_t *error)
{
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    return core_request_get (out, op, id, error);
}

static int get (tmq_task_t **out, tmq_client_t *client, tmq_op_t op, const tmq_id_t *id,
                uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = get_request (&request, op, id, error);
    return code == TMQ_OK ? call_for_task (out, client, request, timeout_ms, error) : code;
}

static int get_start (tmq_client_t *client, tmq_op_t op, const tmq_id_t *id, uint32_t timeout_ms,
                      void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = get_request (&request, op, id, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_get (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
             tmq_error_t *error)
{
    return get (out, client, TMQ_OP_GET, id, timeout_ms, error);
}

int tmq_get_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms, void *user,
                   tmq_error_t *error)
{
    return get_start (client, TMQ_OP_GET, id, timeout_ms, user, error);
}

int tmq_get_record (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                    tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    int code = core_request_get_record (&request, id, error);
    return code == TMQ_OK ? call_for_task (out, client, request, timeout_ms, error) : code;
}

int tmq_get_record_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms, void *user,
                          tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    int code = core_request_get_record (&request, id, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_result (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                tmq_error_t *error)
{
    return get (out, client, TMQ_OP_RESULT, id, timeout_ms, error);
}

int tmq_result_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms, void *user,
                      tmq_error_t *error)
{
    return get_start (client, TMQ_OP_RESULT, id, timeout_ms, user, error);
}

int tmq_payload (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                 tmq_error_t *error)
{
    return get (out, client, TMQ_OP_PAYLOAD, id, timeout_ms, error);
}

int tmq_payload_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms, void *user,
                       tmq_error_t *error)
{
    return get_start (client, TMQ_OP_PAYLOAD, id, timeout_ms, user, error);
}

int tmq_cancel (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id, const char *message,
                uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    int code = core_request_cancel (&request, id, message, error);
    return code == TMQ_OK ? call_for_task (out, client, request, timeout_ms, error) : code;
}

int tmq_cancel_start (tmq_client_t *client, const tmq_id_t *id, const char *message,
                      uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    int code = core_request_cancel (&request, id, message, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_resolve (tmq_id_t *out, tmq_client_t *client, const char *suffix, uint32_t timeout_ms,
                 tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_resolve (&request, suffix, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.task_id), client, request,
                                         timeout_ms, error);
}

int tmq_resolve_start (tmq_client_t *client, const char *suffix, uint32_t timeout_ms, void *user,
                       tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_resolve (&request, suffix, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

/* Many tasks. */

int tmq_list (tmq_task_list_t **out, tmq_client_t *client, const tmq_list_query_t *in,
              uint32_t timeout_ms, tmq_error_t *error)
{
    static const tmq_list_query_t everything = {0};
    core_request_t *request = NULL;
    int code = core_request_list (&request, in != NULL ? in : &everything, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.list), client, request,
                                         timeout_ms, error);
}

int tmq_list_start (tmq_client_t *client, const tmq_list_query_t *in, uint32_t timeout_ms,
                    void *user, tmq_error_t *error)
{
    static const tmq_list_query_t everything = {0};
    core_request_t *request = NULL;
    int code = core_request_list (&request, in != NULL ? in : &everything, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_count (uint64_t *out, tmq_client_t *client, const tmq_filter_t *in, uint32_t timeout_ms,
               tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_count (&request, in, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.count), client, request,
                                         timeout_ms, error);
}

int tmq_count_start (tmq_client_t *client, const tmq_filter_t *in, uint32_t timeout_ms, void *user,
                     tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_count (&request, in, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_events (tmq_event_list_t **out, tmq_client_t *client, const tmq_id_t *id,
                uint64_t before_seq, uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    int code = core_request_events (&request, id, before_seq, limit, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.events), client, request,
                                         timeout_ms, error);
}

int tmq_events_start (tmq_client_t *client, const tmq_id_t *id, uint64_t before_seq, uint32_t limit,
                      uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    int code = core_request_events (&request, id, before_seq, limit, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

/* The broker. */

int tmq_ping (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_plain (&request, TMQ_OP_PING, error);
    return code != TMQ_OK ? code
                          : client_take (NULL, CLIENT_MEMBER (completion.code), client, request,
                                         timeout_ms, error);
}

int tmq_ping_start (tmq_client_t *client, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_plain (&request, TMQ_OP_PING, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_stats (tmq_stats_t **out, tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_plain (&request, TMQ_OP_STATS, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.stats), client, request,
                                         timeout_ms, error);
}

int tmq_stats_start (tmq_client_t *client, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_plain (&request, TMQ_OP_STATS, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

/* The record of deeds, and backups. */

static int call_for_part (tmq_part_t **out, tmq_client_t *client, core_request_t *request,
                          uint32_t timeout_ms, tmq_error_t *error)
{
    return client_take (out, CLIENT_MEMBER (completion.part), client, request, timeout_ms, error);
}

void (tmq_audit_query_init) (tmq_audit_query_t *out, size_t size)
{
    static const tmq_audit_query_t defaults = {0};
    core_sized_init (out, size, &defaults, sizeof defaults);
}

int tmq_audit (tmq_part_t **out, tmq_client_t *client, const tmq_audit_query_t *given,
               uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    tmq_audit_query_t query = {0};
    const tmq_audit_query_t *in = &query;
    if (given == NULL || !core_sized_take (&query, sizeof query, given, sizeof query.size))
        return core_error (error, TMQ_INVALID, "the query was not initialised");
    if (in->limit > TMQ_AUDIT_LINES_MAX)
        return core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_AUDIT_LINES_MAX);
    Taskmq__Audit message = TASKMQ__AUDIT__INIT;
    message.file = in->file;
    message.offset = in->offset;
    message.kind = client_text (in->kind);
    message.actor = client_text (in->actor);
    message.since = (uint64_t) in->since;
    message.limit = in->limit;
    int code = core_request_message (&request, TMQ_OP_AUDIT, &message.base, error);
    return code == TMQ_OK ? call_for_part (out, client, request, timeout_ms, error) : code;
}

int tmq_audit_head (tmq_part_t **out, tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_plain (&request, TMQ_OP_AUDIT_HEAD, error);
    return code == TMQ_OK ? call_for_part (out, client, request, timeout_ms, error) : code;
}

int tmq_backup (tmq_part_t **out, tmq_client_t *client, const uint8_t id[16], uint64_t offset,
                bool with_keys, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    Taskmq__Backup message = TASKMQ__BACKUP__INIT;
    message.id = (ProtobufCBinaryData){16, (uint8_t *) (uintptr_t) id};
    message.offset = offset;
    message.with_keys = with_keys;
    int code = core_request_message (&request, TMQ_OP_BACKUP, &message.base, error);
    return code == TMQ_OK ? call_for_part (out, client, request, timeout_ms, error) : code;
}

int tmq_vacuum (tmq_vacuum_state_t **out, tmq_client_t *client, bool begin, uint32_t timeout_ms,
                tmq_error_t *error)
{
    core_request_t *request = NULL;
    Taskmq__Vacuum message = TASKMQ__VACUUM__INIT;
    message.begin = begin;
    int code = core_request_message (&request, TMQ_OP_VACUUM, &message.base, error);
    return code == TMQ_OK ? client_take (out, CLIENT_MEMBER (completion.vacuum), client, request,
                                         timeout_ms, error)
                          : code;
}

static int ask_cleanup (tmq_cleanup_state_t **out, tmq_client_t *client,
                        const Taskmq__Cleanup *message, uint32_t timeout_ms, tmq_error_t *error)
{
    return client_ask (out, CLIENT_MEMBER (shared), client, TMQ_OP_CLEANUP, &message->base,
                       timeout_ms, error);
}

int tmq_cleanup (tmq_cleanup_state_t **out, tmq_client_t *client, uint64_t pass,
                 uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__Cleanup message = TASKMQ__CLEANUP__INIT;
    message.pass = pass;
    return ask_cleanup (out, client, &message, timeout_ms, error);
}

int tmq_cleanup_look (tmq_cleanup_state_t **out, tmq_client_t *client, const char *cursor,
                      uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__Cleanup message = TASKMQ__CLEANUP__INIT;
    uint8_t bytes[TMQ_CURSOR_BYTES_MAX];
    size_t length = cursor == NULL ? 0 : strlen (cursor);
    if (length % 2 != 0 || length / 2 > sizeof bytes ||
        (length > 0 && !hex_decode (bytes, length / 2, cursor)))
        return core_error (error, TMQ_BAD_CURSOR, "cursor: not one that a look gave");
    message.dry_run = true;
    message.cursor = (ProtobufCBinaryData){length / 2, bytes};
    message.limit = limit;
    return ask_cleanup (out, client, &message, timeout_ms, error);
}

/* Wait. */

int tmq_wait (tmq_status_t *out, tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
              tmq_error_t *error)
{
    core_answer_t *answer = NULL;
    client_waiter_t waiter = {.answer = NULL};
    int64_t deadline_ms = client_deadline (timeout_ms);
    const char *owner = client_owner (client);
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    client = client_base (client);
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    code = client_cond_init (&waiter.cond);
    if (code == TMQ_OK) {
        code = core_wait (client->core, id, 1, (core_target_t){&waiter, NULL, owner}, deadline_ms,
                          client_now_ms (), error);
        if (code == TMQ_OK) {
            code = client_await (&answer, client, &waiter, error);
            if (code == TMQ_OK && out != NULL)
                *out = answer->completion.status;
            core_answer_free (answer);
            return code;
        }
        pthread_cond_destroy (&waiter.cond);
    }
    client_leave (client);
    return code;
}

int tmq_wait_start (tmq_client_t *client, const tmq_id_t *ids, size_t count, uint32_t timeout_ms,
                    void *user, tmq_error_t *error)
{
    int64_t deadline_ms = client_deadline (timeout_ms);
    if (ids == NULL || count == 0)
        return core_error (error, TMQ_INVALID, "at least one id is needed");
    const char *owner = client_owner (client);
    client = client_base (client);
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    code = core_wait (client->core, ids, count, (core_target_t){NULL, user, owner}, deadline_ms,
                      client_now_ms (), error);
    client_leave (client);
    return code;
}
