/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Queues and what is set for them. */
#include <string.h>

#include "base/check.h"
#include "base/errors.h"
#include "client/client.h"
#include "codec/encode.h"
#include "ids.h"

/* Who is to be told: the caller, who waits, or a completion. */
typedef struct asked {
    tmq_queue_report_t **out;
    bool waits;
    void *user;
} asked_t;

static int call (const asked_t *asked, tmq_client_t *client, tmq_op_t op,
                 const ProtobufCMessage *message, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (asked->waits)
        return client_ask (asked->out, CLIENT_MEMBER (completion.queues), client, op, message,
                           timeout_ms, error);
    const int code = core_request_message (&request, op, message, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, asked->user, error) : code;
}

static int list (const asked_t *asked, tmq_client_t *client, const char *cursor, uint32_t limit,
                 uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__QueueList message = TASKMQ__QUEUE_LIST__INIT;
    uint8_t bytes[2 * TMQ_NAME_LENGTH_MAX];
    size_t length = cursor == NULL ? 0 : strlen (cursor);
    if (length % 2 != 0 || length / 2 > sizeof bytes ||
        (length > 0 && !hex_decode (bytes, length / 2, cursor)))
        return core_error (error, TMQ_BAD_CURSOR, "cursor: not one that a list gave");
    message.cursor = (ProtobufCBinaryData){length / 2, bytes};
    message.limit = limit;
    return call (asked, client, TMQ_OP_QUEUE_LIST, &message.base, timeout_ms, error);
}

int tmq_queue_list (tmq_queue_report_t **out, tmq_client_t *client, const char *cursor,
                    uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    return list (&(asked_t){out, true, NULL}, client, cursor, limit, timeout_ms, error);
}

int tmq_queue_list_start (tmq_client_t *client, const char *cursor, uint32_t limit,
                          uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    return list (&(asked_t){NULL, false, user}, client, cursor, limit, timeout_ms, error);
}

static int show (const asked_t *asked, tmq_client_t *client, const char *queue, uint32_t timeout_ms,
                 tmq_error_t *error)
{
    Taskmq__QueueShow message = TASKMQ__QUEUE_SHOW__INIT;
    message.queue = client_text (queue);
    int code = core_check_name (queue, "queue", true, error);
    return code != TMQ_OK
               ? code
               : call (asked, client, TMQ_OP_QUEUE_SHOW, &message.base, timeout_ms, error);
}

int tmq_queue_show (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                    uint32_t timeout_ms, tmq_error_t *error)
{
    return show (&(asked_t){out, true, NULL}, client, queue, timeout_ms, error);
}

int tmq_queue_show_start (tmq_client_t *client, const char *queue, uint32_t timeout_ms, void *user,
                          tmq_error_t *error)
{
    return show (&(asked_t){NULL, false, user}, client, queue, timeout_ms, error);
}

/* The wire has less room than the struct: what does not fit is out of range. */
static int take_settings (Taskmq__QueueSettings *out, const tmq_queue_settings_t *in,
                          tmq_error_t *error)
{
#define X(number, NAME, member)                                                                    \
    out->member = (__typeof__ (out->member)) in->member;                                           \
    if ((uint64_t) out->member != in->member)                                                      \
        return core_error (error, TMQ_INVALID, #member ": out of range");
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
    return TMQ_OK;
}

int tmq_queue_set (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                   const tmq_queue_settings_t *settings, const tmq_queue_field_t *fields,
                   size_t fields_count, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__QueueSet message = TASKMQ__QUEUE_SET__INIT;
    Taskmq__QueueSettings wanted = TASKMQ__QUEUE_SETTINGS__INIT;
    uint32_t numbers[TMQ_QUEUE_FIELDS_MAX];
    int code = core_check_name (queue, "queue", true, error);
    if (code != TMQ_OK)
        return code;
    if (settings == NULL || fields == NULL || fields_count == 0 ||
        fields_count > TMQ_QUEUE_FIELDS_MAX)
        return core_error (error, TMQ_INVALID, "settings, and 1..%d fields, are needed",
                           TMQ_QUEUE_FIELDS_MAX);
    for (size_t i = 0; i < fields_count; i++)
        numbers[i] = (uint32_t) fields[i];
    code = take_settings (&wanted, settings, error);
    if (code != TMQ_OK)
        return code;
    message.queue = client_text (queue);
    message.settings = &wanted;
    message.fields = numbers;
    message.n_fields = fields_count;
    return call (&(asked_t){out, true, NULL}, client, TMQ_OP_QUEUE_SET, &message.base, timeout_ms,
                 error);
}

static int pause_queue (const asked_t *asked, tmq_client_t *client, const char *queue,
                        const char *why, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__QueuePause message = TASKMQ__QUEUE_PAUSE__INIT;
    message.queue = client_text (queue);
    message.why = client_text (why);
    int code = core_check_name (queue, "queue", true, error);
    if (code == TMQ_OK)
        code = core_check_text (why, "why", TMQ_QUEUE_WHY_BYTES_MAX, error);
    return code != TMQ_OK
               ? code
               : call (asked, client, TMQ_OP_QUEUE_PAUSE, &message.base, timeout_ms, error);
}

int tmq_queue_pause (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                     const char *why, uint32_t timeout_ms, tmq_error_t *error)
{
    return pause_queue (&(asked_t){out, true, NULL}, client, queue, why, timeout_ms, error);
}

int tmq_queue_pause_start (tmq_client_t *client, const char *queue, const char *why,
                           uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    return pause_queue (&(asked_t){NULL, false, user}, client, queue, why, timeout_ms, error);
}

static int resume (const asked_t *asked, tmq_client_t *client, const char *queue,
                   uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__QueueResume message = TASKMQ__QUEUE_RESUME__INIT;
    message.queue = client_text (queue);
    int code = core_check_name (queue, "queue", true, error);
    return code != TMQ_OK
               ? code
               : call (asked, client, TMQ_OP_QUEUE_RESUME, &message.base, timeout_ms, error);
}

int tmq_queue_resume (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                      uint32_t timeout_ms, tmq_error_t *error)
{
    return resume (&(asked_t){out, true, NULL}, client, queue, timeout_ms, error);
}

int tmq_queue_resume_start (tmq_client_t *client, const char *queue, uint32_t timeout_ms,
                            void *user, tmq_error_t *error)
{
    return resume (&(asked_t){NULL, false, user}, client, queue, timeout_ms, error);
}
