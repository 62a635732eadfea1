/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* attempts: those of a task in pages, with what is kept of them.
 *
 * An attempt that ended without completing its task has a row. The newest one may have none: it
 * goes on, or it completed the task. */
#include "core/requests/attempts.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/requests/answer.h"
#include "core/requests/get.h"
#include "core/requests/pages.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/space.h"

/* Numbers of fields in taskmq.proto. */
enum { PAGE_ATTEMPTS = 1, PAGE_NEXT = 2 };
enum {
    INFO_ATTEMPT = 1,
    INFO_WORKER = 2,
    INFO_STARTED_AT = 3,
    INFO_ENDED_AT = 4,
    INFO_HOW = 5,
    INFO_ERROR = 6,
    INFO_KEPT = 7,
    INFO_KEPT_BYTES = 8,
    INFO_KEPT_TYPE = 9,
    INFO_KEPT_AT = 10,
    INFO_KEPT_UNTIL = 11,
    INFO_KEPT_HASH = 12
};
enum { ERROR_CODE = 1, ERROR_MESSAGE = 2 };

static attempt_t *newest_of_task (const task_t *task)
{
    const detail_t *detail = task->detail;
    bool completed = task->status == TMQ_STATUS_COMPLETED;
    if (detail == NULL || !(completed || (task->leased && !task_is_withdrawn (task))))
        return NULL;
    attempt_t newest = {.attempt = task->attempt,
                        .started_at = detail->started_at,
                        .ended_at = completed ? detail->finished_at : 0,
                        .how = completed ? TMQ_EVENT_COMPLETED : TMQ_EVENT_NONE};
    strncpy (newest.worker, name_text (detail->worker), sizeof (newest.worker) - 1);
    return attempt_new (&newest);
}

static attempt_t *newest_of_record (const record_t *record)
{
    if (record->status != TMQ_STATUS_COMPLETED)
        return NULL;
    attempt_t newest = {.attempt = record->attempt,
                        .started_at = record->started_at,
                        .ended_at = record->finished_at,
                        .how = TMQ_EVENT_COMPLETED};
    strncpy (newest.worker, record->worker, sizeof (newest.worker) - 1);
    return attempt_new (&newest);
}

void on_attempts (call_t *call)
{
    const Taskmq__Attempts *request = call->request->attempts;
    found_t found;
    if (!get_find (call, &request->task_id, RIGHT_READ | RIGHT_OBSERVE, &found) ||
        page_refused (call))
        return;
    read_job_t *job = page_job (call, READ_ATTEMPTS);
    job->bodies = call->bodies;
    if (found.task != NULL && found.task->changed > job->need)
        job->need = found.task->changed;
    job->newest =
        found.task != NULL ? newest_of_task (found.task) : newest_of_record (found.record);
    memcpy (job->read.id.bytes, request->task_id.data, sizeof (job->read.id));
    job->read.task_number = found.task != NULL ? found.task->number : found.record->number;
    job->read.after_attempt = request->after;
    job->read.limit = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
}

/* A hash tells whether a body is one that he knows. */
static void pack_kept (bytes_t *out, const kept_t *kept, bool bodies)
{
    bytes_append_uint (out, INFO_KEPT, true);
    bytes_append_uint (out, INFO_KEPT_BYTES, kept->bytes);
    bytes_append_string (out, INFO_KEPT_TYPE, name_text (kept->type));
    bytes_append_uint (out, INFO_KEPT_AT, (uint64_t) kept->at);
    bytes_append_uint (out, INFO_KEPT_UNTIL, (uint64_t) kept->expires_at);
    if (kept->is_blob && bodies)
        bytes_append_blob (out, INFO_KEPT_HASH, kept->hash_of_blob, sizeof (kept->hash_of_blob));
}

static void pack_attempt (bytes_t *out, const attempt_t *attempt, const kept_t *kept, bool bodies)
{
    bytes_mark_t mark = bytes_open (out, PAGE_ATTEMPTS);
    bytes_append_uint (out, INFO_ATTEMPT, attempt->attempt);
    bytes_append_string (out, INFO_WORKER, attempt->worker);
    bytes_append_uint (out, INFO_STARTED_AT, (uint64_t) attempt->started_at);
    bytes_append_uint (out, INFO_ENDED_AT, (uint64_t) attempt->ended_at);
    bytes_append_uint (out, INFO_HOW, attempt->how);
    if (attempt->error_code != 0 || attempt->error_message[0] != '\0') {
        bytes_mark_t error = bytes_open (out, INFO_ERROR);
        bytes_append_sint (out, ERROR_CODE, attempt->error_code);
        bytes_append_string (out, ERROR_MESSAGE, attempt->error_message);
        bytes_close (out, error);
    }
    if (kept != NULL)
        pack_kept (out, kept, bodies);
    bytes_close (out, mark);
}

static const kept_t *kept_of (const requests_t *self, const read_job_t *job, uint32_t attempt)
{
    const space_t *space = space_find (self->tasks, job->ns);
    return space == NULL ? NULL : kept_find (self->tasks, space, job->read.id.bytes, attempt);
}

void attempts_answer (requests_t *self, read_job_t *job)
{
    const read_t *read = &job->read;
    const attempt_t *newest = job->newest;
    uint32_t last = read->after_attempt;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_ATTEMPT_PAGE);
    bool more = read->more;
    for (size_t i = 0; i < read->attempts_count; i++) {
        const attempt_t *attempt = &read->attempts[i];
        size_t before = out->length;
        pack_attempt (out, attempt, kept_of (self, job, attempt->attempt), job->bodies);
        if (out->length > ENVELOPE_FILL_BYTES && i > 0) {
            out->length = before;
            more = true;
            break;
        }
        last = attempt->attempt;
    }
    /* Unless it has ended since, and has a row. */
    if (!more && newest != NULL && newest->attempt > last)
        pack_attempt (out, newest, NULL, false);
    bytes_append_uint (out, PAGE_NEXT, more ? last : 0);
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}
