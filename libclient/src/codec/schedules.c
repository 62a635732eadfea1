/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec/schedules.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/errors.h"
#include "base/sized.h"
#include "codec/encode.h"
#include "codec/tail.h"

/* Requests. */

/* Field numbers of Schedule and of SchedulePut in taskmq.proto. */
enum {
    SCHEDULE_NAME = 1,
    SCHEDULE_CALENDAR = 2,
    SCHEDULE_ZONE = 3,
    SCHEDULE_TASK = 4,
    SCHEDULE_OVERLAP = 5,
    SCHEDULE_MISSED = 6,
    SCHEDULE_UNTIL = 7,
    SCHEDULE_PAUSED = 8
};
enum { PUT_SCHEDULE = 1, PUT_REPLACE = 2 };

void (tmq_schedule_spec_init) (tmq_schedule_spec_t *spec, size_t size)
{
    static const tmq_schedule_spec_t defaults = {0};
    core_sized_init (spec, size, &defaults, sizeof defaults);
}

static int check (const tmq_schedule_spec_t *spec, tmq_error_t *error)
{
    int code = core_check_name (spec->name, "name", true, error);
    if (code == TMQ_OK)
        code = core_check_text (spec->calendar, "calendar", TMQ_CALENDAR_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (spec->zone, "zone", TMQ_ZONE_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    if (spec->task->payload_bytes > TMQ_SCHEDULE_PAYLOAD_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "payload: %zu bytes, at most %d of a schedule",
                           spec->task->payload_bytes, TMQ_SCHEDULE_PAYLOAD_BYTES_MAX);
    return TMQ_OK;
}

int core_request_schedule (core_request_t **out, const tmq_schedule_spec_t *given,
                           tmq_error_t *error)
{
    tmq_schedule_spec_t taken = {0};
    const tmq_schedule_spec_t *spec = &taken;
    if (given != NULL && !core_sized_take (&taken, sizeof taken, given, sizeof taken.size))
        return core_error (error, TMQ_INVALID, "tmq_schedule_spec_init was not called");
    if (spec->task == NULL)
        return core_error (error, TMQ_INVALID, "tmq_schedule_spec_init was not called");
    int code = check (spec, error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_SCHEDULE_PUT);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_t *fields = &request->fields;
    bytes_mark_t mark = core_request_begin (request);
    bytes_mark_t schedule = bytes_open (fields, PUT_SCHEDULE);
    bytes_append_string (fields, SCHEDULE_NAME, spec->name);
    bytes_append_string (fields, SCHEDULE_CALENDAR, spec->calendar);
    bytes_append_string (fields, SCHEDULE_ZONE, spec->zone);
    bytes_mark_t task = bytes_open (fields, SCHEDULE_TASK);
    code = core_encode_spec (fields, spec->task, error);
    bytes_close (fields, task);
    bytes_append_uint (fields, SCHEDULE_OVERLAP, (uint64_t) spec->overlap);
    bytes_append_uint (fields, SCHEDULE_MISSED, (uint64_t) spec->missed);
    bytes_append_uint (fields, SCHEDULE_UNTIL, spec->until);
    bytes_append_uint (fields, SCHEDULE_PAUSED, spec->paused);
    bytes_close (fields, schedule);
    bytes_append_uint (fields, PUT_REPLACE, spec->replace);
    bytes_close (fields, mark);
    bytes_append (&request->body, spec->task->payload, spec->task->payload_bytes);
    if (code == TMQ_OK && fields->length > CORE_FIELDS_BYTES_MAX)
        code = core_error (error, TMQ_TOO_LARGE,
                           "the schedule without its payload: more than an envelope of %d bytes",
                           TMQ_ENVELOPE_BYTES_MAX);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    return core_request_finish (out, request, error);
}

/* Records. */

static void fill (tmq_schedule_t *out, tail_t *tail, const Taskmq__Schedule *in,
                  const uint8_t *body)
{
    static const Taskmq__TaskSpec nothing = TASKMQ__TASK_SPEC__INIT;
    const Taskmq__TaskSpec *task = in->task != NULL ? in->task : &nothing;
    *out = (tmq_schedule_t){0};
    out->coming = tail_bytes (tail, in->coming, in->n_coming * sizeof *in->coming); /* aligned */
    out->coming_count = in->n_coming;
    out->name = tail_text (tail, in->name);
    out->calendar = tail_text (tail, in->calendar);
    out->zone = tail_text (tail, in->zone);
    out->overlap = (tmq_overlap_t) in->overlap;
    out->missed = (tmq_missed_t) in->missed;
    out->until = in->until;
    out->paused = in->paused;
    out->owner = tail_text (tail, in->owner);
    out->created_at = in->created_at;
    out->updated_at = in->updated_at;
    out->version = in->version;
    out->last_at = in->last_at;
    if (in->last_task.len == sizeof out->last_task)
        memcpy (&out->last_task, in->last_task.data, sizeof out->last_task);
    out->fired = in->fired;
    out->skipped = in->skipped;
    out->last_error = tail_text (tail, in->last_error);
    out->queue = tail_text (tail, task->queue);
    out->session = tail_text (tail, task->session);
    out->method = tail_text (tail, task->method);
    out->content_type = tail_text (tail, task->content_type);
    out->payload_bytes = task->payload_bytes;
    if (in->body > 0 && body != NULL)
        out->payload = tail_body (tail, body, in->body);
    while (tail->used % sizeof *in->coming != 0)
        tail_bytes (tail, "", 1);
}

tmq_schedule_report_t *core_schedules_record (const Taskmq__SchedulePage *page, const uint8_t *body)
{
    tail_t tail = {NULL, 0};
    tmq_schedule_t measured;
    for (size_t i = 0; i < page->n_schedules; i++)
        fill (&measured, &tail, page->schedules[i], body);
    size_t size = page->n_schedules * sizeof (tmq_schedule_t);
    tmq_schedule_report_t *out = calloc (1, sizeof *out + size + tail.used);
    if (out == NULL)
        return NULL;
    tmq_schedule_t *schedules = (tmq_schedule_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (schedules + page->n_schedules), 0};
    for (size_t i = 0; i < page->n_schedules; i++)
        fill (&schedules[i], &tail, page->schedules[i], body);
    out->schedules = schedules;
    out->count = page->n_schedules;
    out->more = page->more;
    return out;
}
