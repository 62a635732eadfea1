/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the end of a job means, told to the broker. */
#ifndef TASKCTL_REPORT_H
#define TASKCTL_REPORT_H

#include "work/job.h"

/* What became of the attempts, as the broker has acknowledged it. */
typedef struct report_sum {
    uint64_t done;
    uint64_t failed;
    uint64_t given_back;
    uint64_t cancelled;
    uint64_t kept;    /* the result came too late and is kept by the broker */
    uint64_t late;    /* the outcome came too late and was thrown away */
    uint64_t lost;    /* stopped, because another attempt took over */
    uint64_t overran; /* … because their max_runtime was over */
} report_sum_t;

typedef struct report_plan {
    const app_t *app;
    tmq_worker_t *worker;
    const char *result_type;   /* NULL: the library decides */
    uint32_t release_delay_ms; /* UINT32_MAX: the default */
    report_sum_t *sum;
} report_plan_t;

/* These return how many answers are to be expected. */

/* Of a job that has ended. */
size_t report_end (const report_plan_t *plan, work_job_t *job);
/* Of a job whose result was uploaded; its answer has this user. */
size_t report_uploaded (const report_plan_t *plan, work_job_t *job, void *user);
/* Of a task whose cancellation was noticed. */
size_t report_cancelled (const report_plan_t *plan, const tmq_assignment_t *task);
/* Of a task whose payload cannot be had. */
size_t report_damaged (const report_plan_t *plan, const tmq_assignment_t *task, const char *why);
/* Of a task that could not be started. */
size_t report_give_back (const report_plan_t *plan, const tmq_assignment_t *task,
                         uint32_t delay_ms);

bool report_is_answer (const tmq_completion_t *answer);
/* Returns how many of the expected answers this was. */
size_t report_take (const report_plan_t *plan, const tmq_completion_t *answer);
/* "12 done, 1 failed": what there is of them. */
void report_sum_text (char *out, size_t size, const report_sum_t *sum);

#endif
