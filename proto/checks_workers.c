/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests of subscribers and workers. */
#include "checks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "request_kinds.h"
#include "types.h"

/* Subscriptions. */

static bool check_subscription (check_t *check, uint64_t subscription)
{
    return subscription != 0 || check_refuse (check, TMQ_INVALID, "subscription: must not be 0");
}

static bool check_subjects (check_t *check, const Taskmq__Filter *filter)
{
    if (!check_count (check, "subjects", filter->n_subjects, 0, TMQ_FILTER_VALUES_MAX) ||
        !check_text (check, "name_prefix", filter->name_prefix, TMQ_ENTRY_NAME_BYTES_MAX))
        return false;
    for (size_t i = 0; i < filter->n_subjects; i++) {
        if (strcmp (subject_text (filter->subjects[i]), "?") == 0)
            return check_refuse (check, TMQ_INVALID, "subjects: %u is no subject",
                                 filter->subjects[i]);
    }
    return true;
}

static bool check_live_filter (check_t *check, const Taskmq__Filter *filter)
{
    if (filter == NULL)
        return true;
    if (filter->created_since != 0 || filter->created_until != 0)
        return check_refuse (check, TMQ_INVALID,
                             "created_since, created_until: not in a subscription");
    if (filter->n_parents > 0)
        return check_refuse (check, TMQ_UNSUPPORTED, "parents: not in a subscription");
    if (filter->n_agents + filter->n_files > 0)
        return check_refuse (check, TMQ_UNSUPPORTED, "agents, files: not in a subscription");
    if (filter->n_owners > 0)
        return check_refuse (check, TMQ_UNSUPPORTED, "owners: not in a subscription");
    return check_subjects (check, filter) &&
           check_count (check, "task_ids", filter->n_task_ids, 0, TMQ_FILTER_VALUES_MAX) &&
           check_ids (check, "task_ids", filter->task_ids, filter->n_task_ids) &&
           check_labels (check, filter->labels, filter->n_labels) && check_filter (check, filter);
}

bool check_subscribe (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Subscribe *subscribe = request->subscribe;
    if (!check_subscription (check, subscribe->subscription) ||
        !check_range (check, "since_time", subscribe->since_time, 0, INT64_MAX))
        return false;
    if (subscribe->since_time != 0 && subscribe->after_seq != 0)
        return check_refuse (check, TMQ_INVALID, "since_time: must be 0 beside after_seq");
    return check_live_filter (check, subscribe->filter);
}

bool check_credit (check_t *check, const Taskmq__Request *request)
{
    return check_subscription (check, request->credit->subscription);
}

bool check_unsubscribe (check_t *check, const Taskmq__Request *request)
{
    return check_subscription (check, request->unsubscribe->subscription);
}

/* Workers. */

static bool check_about (check_t *check, const Taskmq__Register *worker)
{
    return check_name_or_empty (check, "role", worker->role) &&
           check_labels (check, worker->labels, worker->n_labels) &&
           check_text (check, "host", worker->host, TMQ_WORKER_TEXT_BYTES_MAX) &&
           check_text (check, "version", worker->version, TMQ_WORKER_TEXT_BYTES_MAX) &&
           check_json (check, "config", worker->config, TMQ_WORKER_CONFIG_BYTES_MAX, true) &&
           check_count (check, "depends_on", worker->n_depends_on, 0, TMQ_WORKER_DEPENDS_MAX) &&
           check_names (check, "depends_on", worker->depends_on, worker->n_depends_on);
}

bool check_register (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Register *worker = request->register_;
    return check_16_bytes (check, "worker_id", &worker->worker_id) &&
           check_name (check, "name", worker->name) &&
           check_count (check, "queues", worker->n_queues, 1, TMQ_WORKER_QUEUES_MAX) &&
           check_names (check, "queues", worker->queues, worker->n_queues) &&
           check_range (check, "capacity", worker->capacity, 0, TMQ_CREDIT_MAX) &&
           check_about (check, worker) && check_leases (check, worker->leases, worker->n_leases, 0);
}

bool check_worker_credit (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "worker_id", &request->worker_credit->worker_id) &&
           check_range (check, "capacity", request->worker_credit->capacity, 0, TMQ_CREDIT_MAX);
}

bool check_started (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->started->lease);
}

bool check_renew (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "worker_id", &request->renew->worker_id) &&
           check_leases (check, request->renew->leases, request->renew->n_leases, 1);
}

bool check_push (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Push *push = request->push;
    if (!check_lease (check, push->lease) ||
        !check_text (check, "status_message", push->status_message, TMQ_MESSAGE_BYTES_MAX))
        return false;
    if (push->progress != NULL)
        return check_amount (check, "progress.done", push->progress->done) &&
               check_amount (check, "progress.total", push->progress->total) &&
               check_text (check, "progress.unit", push->progress->unit, TMQ_UNIT_BYTES_MAX) &&
               check_text (check, "progress.message", push->progress->message,
                           TMQ_MESSAGE_BYTES_MAX);
    return *push->status_message != '\0' ||
           check_refuse (check, TMQ_INVALID, "status_message or progress: one must be given");
}

bool check_cancel_ack (check_t *check, const Taskmq__Request *request)
{
    return check_lease (check, request->cancel_ack->lease);
}

bool check_complete (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Complete *complete = request->complete;
    if (complete->result_blob != NULL && complete->result_bytes > 0)
        return check_refuse (check, TMQ_INVALID, "result_blob: must not stand beside a result");
    return check_lease (check, complete->lease) &&
           check_body (check, "result_bytes", complete->result_bytes) &&
           (complete->result_blob == NULL ||
            check_blob (check, "result_blob", complete->result_blob)) &&
           check_text (check, "result_type", complete->result_type, TMQ_CONTENT_TYPE_BYTES_MAX);
}

bool check_fail (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Fail *fail = request->fail;
    if (!check_lease (check, fail->lease))
        return false;
    if (task_error_is_reserved (fail->code))
        return check_refuse (check, TMQ_INVALID, "code: %d..%d are the broker's own",
                             TMQ_TASK_ERROR_RESERVED_FIRST, TMQ_TASK_ERROR_RESERVED_LAST);
    if (fail->data[0] != '\0' && fail->data_bytes > 0)
        return check_refuse (check, TMQ_INVALID, "data_bytes: beside data");
    if (fail->data_bytes > TMQ_ERROR_DATA_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE, "data_bytes: %" PRIu32 ", at most %d",
                             fail->data_bytes, TMQ_ERROR_DATA_BYTES_MAX);
    return check_text (check, "message", fail->message, TMQ_ERROR_MESSAGE_BYTES_MAX) &&
           check_json (check, "data", fail->data, TMQ_ERROR_DATA_INLINE_MAX, false) &&
           check_body (check, "result_bytes", fail->result_bytes) &&
           check_body (check, "result_bytes and data_bytes",
                       fail->result_bytes + fail->data_bytes) &&
           check_text (check, "result_type", fail->result_type, TMQ_CONTENT_TYPE_BYTES_MAX);
}

bool check_release (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Release *release = request->release;
    if (!check_lease (check, release->lease))
        return false;
    if (release->no_delay && release->delay_ms != 0)
        return check_refuse (check, TMQ_INVALID, "delay_ms: must be 0 beside no_delay");
    return check_range (check, "delay_ms", release->delay_ms, 0, TMQ_RELEASE_DELAY_MS_MAX);
}

bool check_leave (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "worker_id", &request->leave->worker_id);
}

/* Who works here. */

bool check_worker_list (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "limit", request->worker_list->limit, 0, TMQ_WORKER_LIST_MAX);
}

static bool check_worker (check_t *check, const ProtobufCBinaryData *id, const char *name)
{
    if (id->len > 0 && *name != '\0')
        return check_refuse (check, TMQ_INVALID, "name: beside worker_id");
    return id->len > 0 ? check_16_bytes (check, "worker_id", id) : check_name (check, "name", name);
}

bool check_worker_show (check_t *check, const Taskmq__Request *request)
{
    return check_worker (check, &request->worker_show->worker_id, request->worker_show->name);
}

bool check_worker_drain (check_t *check, const Taskmq__Request *request)
{
    return check_worker (check, &request->worker_drain->worker_id, request->worker_drain->name);
}
