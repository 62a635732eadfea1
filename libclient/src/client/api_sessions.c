/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tasks of a session, or of a namespace, share. */
#include <stdlib.h>

#include "base/check.h"
#include "base/errors.h"
#include "base/sized.h"
#include "client/client.h"
#include "codec/encode.h"
#include "codec/sessions.h"

/* body: NULL, or length bytes. */
static int call_with (void *out, client_member_t member, tmq_client_t *client, tmq_op_t op,
                      const ProtobufCMessage *message, const void *body, size_t length,
                      uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_message (&request, op, message, error);
    if (code != TMQ_OK)
        return code;
    if (body != NULL)
        bytes_append (&request->body, body, length);
    if (request->body.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    return client_take (out, member, client, request, timeout_ms, error);
}

static int call (void *out, tmq_client_t *client, tmq_op_t op, const ProtobufCMessage *message,
                 uint32_t timeout_ms, tmq_error_t *error)
{
    return client_ask (out, CLIENT_MEMBER (shared), client, op, message, timeout_ms, error);
}

static int check_key (const char *session, const char *key, tmq_error_t *error)
{
    int code = core_check_name (session, "session", false, error);
    if (code == TMQ_OK && (key == NULL || key[0] == '\0'))
        return core_error (error, TMQ_INVALID, "key: it must not be empty");
    return code == TMQ_OK ? core_check_text (key, "key", TMQ_ENTRY_NAME_BYTES_MAX, error) : code;
}

/* Sessions. */

void tmq_session_report_free (tmq_session_report_t *report)
{
    free (report);
}

void tmq_session_spec_init (tmq_session_spec_t *out)
{
    *out = (tmq_session_spec_t){.size = sizeof *out};
}

static int call_sessions (tmq_session_report_t **out, tmq_client_t *client, tmq_op_t op,
                          const ProtobufCMessage *message, uint32_t timeout_ms, tmq_error_t *error)
{
    return client_ask (out, CLIENT_MEMBER (shared), client, op, message, timeout_ms, error);
}

int tmq_session_set (tmq_session_report_t **out, tmq_client_t *client, const tmq_session_spec_t *in,
                     uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_session (&request, in, error);
    return code != TMQ_OK
               ? code
               : client_take (out, CLIENT_MEMBER (shared), client, request, timeout_ms, error);
}

int tmq_session_show (tmq_session_report_t **out, tmq_client_t *client, const char *name,
                      uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__SessionName message = TASKMQ__SESSION_NAME__INIT;
    int code = core_check_name (name, "session", true, error);
    message.name = client_text (name);
    return code != TMQ_OK
               ? code
               : call_sessions (out, client, TMQ_OP_SESSION_SHOW, &message.base, timeout_ms, error);
}

int tmq_session_list (tmq_session_report_t **out, tmq_client_t *client, const char *after,
                      uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__SessionList message = TASKMQ__SESSION_LIST__INIT;
    message.after = client_text (after);
    message.limit = limit;
    return call_sessions (out, client, TMQ_OP_SESSION_LIST, &message.base, timeout_ms, error);
}

int tmq_session_status (tmq_session_report_t **out, tmq_client_t *client, const char *name,
                        tmq_session_status_t status, const char *why, uint32_t timeout_ms,
                        tmq_error_t *error)
{
    Taskmq__SessionStatus message = TASKMQ__SESSION_STATUS__INIT;
    int code = core_check_name (name, "session", true, error);
    if (code == TMQ_OK)
        code = core_check_text (why, "why", TMQ_SESSION_WHY_BYTES_MAX, error);
    message.name = client_text (name);
    message.status = (uint32_t) status;
    message.why = client_text (why);
    return code != TMQ_OK ? code
                          : call_sessions (out, client, TMQ_OP_SESSION_STATUS, &message.base,
                                           timeout_ms, error);
}

int tmq_session_remove (tmq_client_t *client, const char *name, uint32_t timeout_ms,
                        tmq_error_t *error)
{
    Taskmq__SessionName message = TASKMQ__SESSION_NAME__INIT;
    int code = core_check_name (name, "session", true, error);
    message.name = client_text (name);
    return code != TMQ_OK ? code
                          : call_sessions (NULL, client, TMQ_OP_SESSION_REMOVE, &message.base,
                                           timeout_ms, error);
}

/* Values. */

void tmq_value_free (tmq_value_t *value)
{
    free (value);
}

int tmq_value_put (tmq_value_t **out, tmq_client_t *client, const char *session, const char *key,
                   const void *bytes, size_t length, uint64_t if_version, uint32_t timeout_ms,
                   tmq_error_t *error)
{
    Taskmq__ValuePut message = TASKMQ__VALUE_PUT__INIT;
    int code = check_key (session, key, error);
    if (code != TMQ_OK)
        return code;
    if (length > TMQ_VALUE_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "the value has %zu bytes, at most %d are allowed",
                           length, TMQ_VALUE_BYTES_MAX);
    if (bytes == NULL && length > 0)
        return core_error (error, TMQ_INVALID, "the bytes are NULL");
    message.session = client_text (session);
    message.key = client_text (key);
    message.body_bytes = (uint32_t) length;
    message.if_version_plus_1 = if_version == TMQ_ANY_VERSION ? 0 : if_version + 1;
    return call_with (out, CLIENT_MEMBER (shared), client, TMQ_OP_VALUE_PUT, &message.base, bytes,
                      length, timeout_ms, error);
}

int tmq_value_get (tmq_value_t **out, tmq_client_t *client, const char *session, const char *key,
                   uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__ValueGet message = TASKMQ__VALUE_GET__INIT;
    int code = check_key (session, key, error);
    if (code != TMQ_OK)
        return code;
    message.session = client_text (session);
    message.key = client_text (key);
    return call (out, client, TMQ_OP_VALUE_GET, &message.base, timeout_ms, error);
}

int tmq_value_remove (tmq_client_t *client, const char *session, const char *key,
                      uint64_t if_version, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__ValueRemove message = TASKMQ__VALUE_REMOVE__INIT;
    int code = check_key (session, key, error);
    if (code == TMQ_OK && if_version == 0)
        code = core_error (error, TMQ_INVALID, "if_version: 0 is what does not exist");
    if (code != TMQ_OK)
        return code;
    message.session = client_text (session);
    message.key = client_text (key);
    message.if_version_plus_1 = if_version == TMQ_ANY_VERSION ? 0 : if_version + 1;
    return call (NULL, client, TMQ_OP_VALUE_REMOVE, &message.base, timeout_ms, error);
}

void (tmq_value_query_init) (tmq_value_query_t *out, size_t size)
{
    static const tmq_value_query_t defaults = {0};
    core_sized_init (out, size, &defaults, sizeof defaults);
}

void tmq_value_list_free (tmq_value_list_t *list)
{
    free (list);
}

int tmq_value_list (tmq_value_list_t **out, tmq_client_t *client, const tmq_value_query_t *in,
                    uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__ValueList message = TASKMQ__VALUE_LIST__INIT;
    tmq_value_query_t query = {0};
    if (in != NULL && !core_sized_take (&query, sizeof query, in, sizeof query.size))
        return core_error (error, TMQ_INVALID, "the query was not initialised");
    int code = core_check_name (query.session, "session", false, error);
    if (code == TMQ_OK)
        code = core_check_text (query.prefix, "prefix", TMQ_ENTRY_NAME_BYTES_MAX, error);
    if (code == TMQ_OK && query.limit > TMQ_LIST_LIMIT_MAX)
        code = core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_LIST_LIMIT_MAX);
    if (code != TMQ_OK)
        return code;
    message.session = client_text (query.session);
    message.prefix = client_text (query.prefix);
    message.after = client_text (query.after);
    message.limit = query.limit;
    return call (out, client, TMQ_OP_VALUE_LIST, &message.base, timeout_ms, error);
}

/* Items. */

void (tmq_item_request_init) (tmq_item_request_t *out, size_t size)
{
    static const tmq_item_request_t defaults = {0};
    core_sized_init (out, size, &defaults, sizeof defaults);
}

static int check_box (const char *session, const char *box, tmq_error_t *error)
{
    int code = core_check_name (session, "session", false, error);
    return code == TMQ_OK ? core_check_name (box, "box", true, error) : code;
}

int tmq_item_put (uint64_t *number, tmq_client_t *client, const tmq_item_request_t *given,
                  uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__ItemPut message = TASKMQ__ITEM_PUT__INIT;
    tmq_item_request_t item = {0};
    const tmq_item_request_t *in = &item;
    if (given == NULL || !core_sized_take (&item, sizeof item, given, sizeof item.size))
        return core_error (error, TMQ_INVALID, "the item was not initialised");
    int code = check_box (in->session, in->box, error);
    if (code == TMQ_OK)
        code = core_check_text (in->source, "source", TMQ_ENTRY_NAME_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (in->type, "type", TMQ_ENTRY_NAME_BYTES_MAX, error);
    if (code == TMQ_OK && in->length > TMQ_ITEM_BYTES_MAX)
        code = core_error (error, TMQ_TOO_LARGE, "the item has %zu bytes, at most %d are allowed",
                           in->length, TMQ_ITEM_BYTES_MAX);
    if (code == TMQ_OK && !(in->intensity >= 0 && in->intensity <= 1))
        code = core_error (error, TMQ_INVALID, "intensity: must be 0 to 1");
    if (code == TMQ_OK && in->bytes == NULL && in->length > 0)
        code = core_error (error, TMQ_INVALID, "the bytes are NULL");
    if (code != TMQ_OK)
        return code;
    message.session = client_text (in->session);
    message.box = client_text (in->box);
    message.source = client_text (in->source);
    message.type = client_text (in->type);
    message.intensity = (uint32_t) (in->intensity * TMQ_INTENSITY_ONE + 0.5);
    message.body_bytes = (uint32_t) in->length;
    return call_with (number, CLIENT_MEMBER (completion.count), client, TMQ_OP_ITEM_PUT,
                      &message.base, in->bytes, in->length, timeout_ms, error);
}

void tmq_item_list_free (tmq_item_list_t *list)
{
    free (list);
}

int tmq_item_read (tmq_item_list_t **out, tmq_client_t *client, const char *session,
                   const char *box, uint64_t after, uint32_t limit, uint32_t timeout_ms,
                   tmq_error_t *error)
{
    Taskmq__ItemRead message = TASKMQ__ITEM_READ__INIT;
    int code = check_box (session, box, error);
    if (code == TMQ_OK && limit > TMQ_ITEM_NUMBERS_MAX)
        code = core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_ITEM_NUMBERS_MAX);
    if (code != TMQ_OK)
        return code;
    message.session = client_text (session);
    message.box = client_text (box);
    message.after = after;
    message.limit = limit;
    return call (out, client, TMQ_OP_ITEM_READ, &message.base, timeout_ms, error);
}

int tmq_item_ack (uint64_t *acknowledged, tmq_client_t *client, const char *session,
                  const char *box, const uint64_t *numbers, size_t count, uint32_t timeout_ms,
                  tmq_error_t *error)
{
    Taskmq__ItemAck message = TASKMQ__ITEM_ACK__INIT;
    int code = check_box (session, box, error);
    if (code == TMQ_OK && (numbers == NULL || count == 0 || count > TMQ_ITEM_NUMBERS_MAX))
        code = core_error (error, TMQ_INVALID, "numbers: 1 to %d", TMQ_ITEM_NUMBERS_MAX);
    if (code != TMQ_OK)
        return code;
    message.session = client_text (session);
    message.box = client_text (box);
    message.numbers = (uint64_t *) (uintptr_t) numbers;
    message.n_numbers = count;
    return client_ask (acknowledged, CLIENT_MEMBER (completion.count), client, TMQ_OP_ITEM_ACK,
                       &message.base, timeout_ms, error);
}
