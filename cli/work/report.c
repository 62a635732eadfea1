/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Exit statuses and outcomes. 0 completes, 100 fails for good, 75 (EX_TEMPFAIL) gives back,
 * anything else fails the attempt (S17: code is the exit status, or 128 + the signal). */
#include "work/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "screen/output.h"
#include "work/job.h"

enum { STATUS_FINAL = 100, STATUS_GIVE_BACK = 75 };

/* What was there may be shown; what is not UTF-8 the broker would refuse. */
static void repair_text (char *text)
{
    json_t *probe = json_string (text);
    for (unsigned char *at = (unsigned char *) text; !probe && *at; at++)
        *at = *at < 0x80 ? *at : '?';
    json_decref (probe);
}

/* There was a result, and it does not count: the one thing that nobody must overlook. */
static void tell_late (const report_plan_t *plan, tmq_op_t op, const tmq_error_t *error,
                       const char *id)
{
    const bool kept = error && strstr (error->text, "was kept"); /* only a remark rests on it */
    plan->sum->late += !kept;
    plan->sum->kept += kept;
    note (plan->app, "taskctl: %s: the %s came too late%s%s%s", id,
          op == TMQ_OP_COMPLETE ? "result" : "outcome", kept ? "" : " and was thrown away",
          error ? ": " : "", error ? error->text : "");
}

static size_t sent (const report_plan_t *plan, const tmq_assignment_t *task, tmq_op_t op, int code,
                    const tmq_error_t *error)
{
    char id[37];
    if (code == TMQ_OK)
        return 1;
    tmq_id_format (&task->task_id, id);
    if (code == TMQ_STALE_LEASE)
        tell_late (plan, op, error, id);
    else
        library_error (plan->app, error, id);
    return 0;
}

static size_t fail (const report_plan_t *plan, const work_job_t *job, const tmq_outcome_t *outcome)
{
    tmq_error_t error = {0};
    error.code =
        tmq_worker_fail_start (plan->worker, job->assignment, outcome, TMQ_FOREVER, NULL, &error);
    return sent (plan, job->assignment, TMQ_OP_FAIL, error.code, &error);
}

static size_t report_failure (const report_plan_t *plan, work_job_t *job)
{
    char message[TMQ_ERROR_MESSAGE_BYTES_MAX + 1];
    if (*job->last_line)
        snprintf (message, sizeof message, "%s", job->last_line);
    else if (job->signal)
        snprintf (message, sizeof message, "ended by signal %d (%s)", job->signal,
                  strsignal (job->signal));
    else
        snprintf (message, sizeof message, "exit status %d", job->status);
    repair_text (message);
    const tmq_outcome_t outcome = {.error_code = job->status,
                                   .error_message = message,
                                   .error_data = job->talk.failure,
                                   .final = !job->signal && job->status == STATUS_FINAL};
    return fail (plan, job, &outcome);
}

static size_t report_too_large (const report_plan_t *plan, const work_job_t *job)
{
    char message[128];
    char data[64];
    char id[37];
    snprintf (message, sizeof message, "the result is larger than the limit of %" PRIu64 " bytes",
              job->large_max);
    tmq_id_format (&job->assignment->task_id, id);
    note (plan->app, "taskctl: %s: %s: failed for good", id, message);
    snprintf (data, sizeof data, "{\"limit_bytes\":%" PRIu64 "}", job->large_max);
    const tmq_outcome_t outcome = {.error_code = TMQ_TASK_ERROR_TOO_LARGE,
                                   .error_message = message,
                                   .error_data = data,
                                   .final = true};
    return fail (plan, job, &outcome);
}

/* There is a result, and it cannot be brought to the broker now. */
static size_t report_unsaved (const report_plan_t *plan, const work_job_t *job, const char *what,
                              const char *why)
{
    char message[384];
    char id[37];
    snprintf (message, sizeof message, "the result cannot be %s: %s", what, why);
    repair_text (message);
    tmq_id_format (&job->assignment->task_id, id);
    note (plan->app, "taskctl: %s: %s", id, message);
    const tmq_outcome_t outcome = {.error_code = 1, .error_message = message};
    return fail (plan, job, &outcome);
}

/* As a rule the broker has ended the attempt, and said so. If it is away, it is told later. */
static size_t report_overrun (const report_plan_t *plan, const work_job_t *job)
{
    if (tmq_worker_state (plan->worker, job->assignment) == TMQ_ATTEMPT_LOST) {
        plan->sum->overran++;
        return 0;
    }
    const tmq_outcome_t outcome = {.error_code = job->status,
                                   .error_message = "it ran longer than its max_runtime"};
    return fail (plan, job, &outcome);
}

static size_t complete (const report_plan_t *plan, const work_job_t *job,
                        const tmq_outcome_t *outcome, void *user)
{
    tmq_error_t error = {0};
    error.code = tmq_worker_complete_start (plan->worker, job->assignment, outcome, TMQ_FOREVER,
                                            user, &error);
    return sent (plan, job->assignment, TMQ_OP_COMPLETE, error.code, &error);
}

/* One that is larger than a frame comes here only when it could not be uploaded. */
static size_t report_success (const report_plan_t *plan, const work_job_t *job)
{
    const upload_t *upload = &job->upload;
    const tmq_outcome_t outcome = {
        .result = job->out, .result_bytes = job->out_bytes, .result_type = plan->result_type};
    if (job->large.fd < 0)
        return complete (plan, job, &outcome, NULL);
    return upload->code == TMQ_TOO_LARGE ? report_too_large (plan, job)
                                         : report_unsaved (plan, job, "uploaded", upload->why);
}

size_t report_give_back (const report_plan_t *plan, const tmq_assignment_t *task, uint32_t delay_ms)
{
    tmq_error_t error = {0};
    error.code = tmq_worker_release_start (plan->worker, task, delay_ms, TMQ_FOREVER, NULL, &error);
    return sent (plan, task, TMQ_OP_RELEASE, error.code, &error);
}

size_t report_damaged (const report_plan_t *plan, const tmq_assignment_t *task, const char *why)
{
    char text[512];
    tmq_error_t error = {0};
    snprintf (text, sizeof text, "the payload cannot be read: %s", why);
    const tmq_outcome_t outcome = {.error_code = 1, .error_message = text};
    error.code = tmq_worker_fail_start (plan->worker, task, &outcome, TMQ_FOREVER, NULL, &error);
    return sent (plan, task, TMQ_OP_FAIL, error.code, &error);
}

size_t report_cancelled (const report_plan_t *plan, const tmq_assignment_t *task)
{
    tmq_error_t error = {0};
    error.code = tmq_worker_cancelled_start (plan->worker, task, TMQ_FOREVER, NULL, &error);
    return sent (plan, task, TMQ_OP_CANCELLED, error.code, &error);
}

static void tell_end (const report_plan_t *plan, const work_job_t *job)
{
    static const char *const why[] = {
        [STOP_CANCELLED] = ", was cancelled",
        [STOP_LOST] = ", another attempt took over",
        [STOP_RUNTIME] = ", ran longer than allowed",
        [STOP_GIVE_BACK] = ", is given back",
        [STOP_TOO_LARGE] = ", its result is too large",
        [STOP_NO_ROOM] = ", its result finds no room",
    };
    char id[37];
    tmq_id_format (&job->assignment->task_id, id);
    detail (plan->app, "%s attempt %" PRIu32 " ended with %d after %" PRIu64 " ms%s", id,
            job->assignment->attempt, job->status, mono_ms () - job->started_at_ms,
            why[job->stop] ? why[job->stop] : "");
}

size_t report_end (const report_plan_t *plan, work_job_t *job)
{
    tell_end (plan, job);
    /* One that had done its work all the same says so: the broker may keep it. */
    const bool over = job->stop == STOP_LOST || job->stop == STOP_RUNTIME;
    if (over && !job->signal && job->status == 0 && report_success (plan, job) > 0)
        return 1;
    switch (job->stop) {
    case STOP_CANCELLED: return report_cancelled (plan, job->assignment);
    case STOP_LOST: plan->sum->lost++; return 0;
    case STOP_RUNTIME: return report_overrun (plan, job);
    case STOP_GIVE_BACK: return report_give_back (plan, job->assignment, 0);
    case STOP_TOO_LARGE: return report_too_large (plan, job);
    case STOP_NO_ROOM: return report_unsaved (plan, job, "kept", strerror (job->large_errno));
    case STOP_NONE: break;
    }
    if (!job->signal && job->status == 0)
        return report_success (plan, job);
    if (!job->signal && job->status == STATUS_GIVE_BACK)
        return report_give_back (plan, job->assignment, plan->release_delay_ms);
    return report_failure (plan, job);
}

size_t report_uploaded (const report_plan_t *plan, work_job_t *job, void *user)
{
    const tmq_outcome_t outcome = {.result_blob = job->upload.blob,
                                   .result_type = plan->result_type};
    tell_end (plan, job);
    return complete (plan, job, &outcome, user);
}

bool report_is_answer (const tmq_completion_t *answer)
{
    return answer->op == TMQ_OP_COMPLETE || answer->op == TMQ_OP_FAIL ||
           answer->op == TMQ_OP_RELEASE || answer->op == TMQ_OP_CANCELLED;
}

static void count_end (report_sum_t *sum, tmq_op_t op)
{
    sum->done += op == TMQ_OP_COMPLETE;
    sum->failed += op == TMQ_OP_FAIL;
    sum->given_back += op == TMQ_OP_RELEASE;
    sum->cancelled += op == TMQ_OP_CANCELLED;
}

/* A lost lease and a cancelled task are no failures of this worker: they are only worth a
 * remark. */
size_t report_take (const report_plan_t *plan, const tmq_completion_t *answer)
{
    char id[37];
    tmq_id_format (&answer->task_id, id);
    switch (answer->code) {
    case TMQ_OK: count_end (plan->sum, answer->op); break;
    case TMQ_STALE_LEASE:
    case TMQ_WRONG_STATUS:
    case TMQ_NOT_FOUND:
    case TMQ_EXPIRED:
    case TMQ_PURGED: tell_late (plan, answer->op, answer->error, id); break;
    default:
        if (answer->error)
            library_error (plan->app, answer->error, id);
        break;
    }
    return 1;
}

void report_sum_text (char *out, size_t size, const report_sum_t *sum)
{
    const struct {
        uint64_t count;
        const char *what;
    } parts[] = {{sum->failed, "failed"},
                 {sum->given_back, "given back"},
                 {sum->cancelled, "cancelled"},
                 {sum->lost, "lost to another attempt"},
                 {sum->overran, "stopped after their max_runtime"},
                 {sum->kept, "too late and kept"},
                 {sum->late, "too late and thrown away"}};
    size_t used = (size_t) snprintf (out, size, "%" PRIu64 " done", sum->done);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < size; i++) {
        if (parts[i].count)
            used += (size_t) snprintf (out + used, size - used, ", %" PRIu64 " %s", parts[i].count,
                                       parts[i].what);
    }
}
