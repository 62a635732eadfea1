/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Schedules. */
#include "base/check.h"
#include "base/errors.h"
#include "client/client.h"
#include "codec/encode.h"
#include "codec/schedules.h"

static int call (tmq_schedule_report_t **out, tmq_client_t *client, tmq_op_t op,
                 const ProtobufCMessage *message, uint32_t timeout_ms, tmq_error_t *error)
{
    return client_ask (out, CLIENT_MEMBER (completion.schedules), client, op, message, timeout_ms,
                       error);
}

static int call_by_name (tmq_schedule_report_t **out, tmq_client_t *client, tmq_op_t op,
                         const char *name, uint32_t coming, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__ScheduleName message = TASKMQ__SCHEDULE_NAME__INIT;
    message.name = client_text (name);
    message.coming = coming;
    int code = core_check_name (name, "name", true, error);
    return code != TMQ_OK ? code : call (out, client, op, &message.base, timeout_ms, error);
}

int tmq_schedule_put (tmq_schedule_report_t **out, tmq_client_t *client,
                      const tmq_schedule_spec_t *spec, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_schedule (&request, spec, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.schedules), client, request,
                                         timeout_ms, error);
}

int tmq_schedule_show (tmq_schedule_report_t **out, tmq_client_t *client, const char *name,
                       uint32_t coming, uint32_t timeout_ms, tmq_error_t *error)
{
    return call_by_name (out, client, TMQ_OP_SCHEDULE_SHOW, name, coming, timeout_ms, error);
}

int tmq_schedule_list (tmq_schedule_report_t **out, tmq_client_t *client, const char *after,
                       uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__ScheduleList message = TASKMQ__SCHEDULE_LIST__INIT;
    message.after = client_text (after);
    message.limit = limit;
    return call (out, client, TMQ_OP_SCHEDULE_LIST, &message.base, timeout_ms, error);
}

int tmq_schedule_pause (tmq_schedule_report_t **out, tmq_client_t *client, const char *name,
                        uint32_t timeout_ms, tmq_error_t *error)
{
    return call_by_name (out, client, TMQ_OP_SCHEDULE_PAUSE, name, 0, timeout_ms, error);
}

int tmq_schedule_resume (tmq_schedule_report_t **out, tmq_client_t *client, const char *name,
                         uint32_t timeout_ms, tmq_error_t *error)
{
    return call_by_name (out, client, TMQ_OP_SCHEDULE_RESUME, name, 0, timeout_ms, error);
}

int tmq_schedule_remove (tmq_client_t *client, const char *name, uint32_t timeout_ms,
                         tmq_error_t *error)
{
    return call_by_name (NULL, client, TMQ_OP_SCHEDULE_REMOVE, name, 0, timeout_ms, error);
}
