/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Starting a program: pipes, payload, its guard. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "work/environment.h"
#include "work/guard.h"
#include "work/job.h"
#include "work/workplace.h"

enum {
    FD_HIGH_MIN = 10,       /* ours are above the program's 0..3, so that dup2 cannot clash */
    TIDY_MS = 1000,         /* for a directory that no guard removes */
    OVERRUN_GRACE_MS = 1000 /* the broker's word comes first, as a rule */
};

/* The ends of the program and its guard, and the pipe that tells why exec failed. */
typedef struct child_ends {
    int in, out, err, talk;
    int channel;
    int failure;
} child_ends_t;

/* Descriptors. */

static void close_fd (int *fd)
{
    if (*fd >= 0)
        close (*fd);
    *fd = -1;
}

/* Moves both ends out of the way of the child's 0..3. */
static bool move_up (int pair[2])
{
    bool good = true;
    for (int i = 0; i < 2; i++) {
        const int high = fcntl (pair[i], F_DUPFD_CLOEXEC, FD_HIGH_MIN);
        good = good && high >= 0;
        close_fd (&pair[i]);
        pair[i] = high;
    }
    return good;
}

static bool make_pipe (int *reader, int *writer)
{
    int pair[2] = {-1, -1};
    const bool good = pipe2 (pair, O_CLOEXEC) == 0 && move_up (pair);
    *reader = pair[0];
    *writer = pair[1];
    return good;
}

static bool make_sockets (int *ours, int *theirs)
{
    int pair[2] = {-1, -1};
    const bool good =
        socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 && move_up (pair);
    *ours = pair[0];
    *theirs = pair[1];
    return good;
}

/* The child's own, at the beginning. */
static int open_again (int payload)
{
    return lseek (payload, 0, SEEK_SET) == 0 ? fcntl (payload, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                             : -1;
}

/* payload: the file that is to be its stdin; -1: none is. */
static bool make_ends (work_job_t *job, child_ends_t *ends, int *failure, bool feed, int payload)
{
    bool good = make_pipe (&job->fds[JOB_OUT], &ends->out) &&
                make_pipe (&job->fds[JOB_ERR], &ends->err) && make_pipe (failure, &ends->failure);
    if (good && feed && payload >= 0)
        good = (ends->in = open_again (payload)) >= 0;
    else if (good && feed)
        good = make_pipe (&ends->in, &job->fds[JOB_IN]);
    else if (good)
        good = (ends->in = open ("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
    good = good && make_sockets (&job->fds[JOB_TALK], &ends->talk) &&
           make_sockets (&job->fds[JOB_GUARD], &ends->channel);
    for (int i = 0; good && i < JOB_FDS; i++) {
        if (job->fds[i] >= 0)
            good = fcntl (job->fds[i], F_SETFL, fcntl (job->fds[i], F_GETFL) | O_NONBLOCK) == 0;
    }
    return good;
}

static void close_ends (child_ends_t *ends)
{
    close_fd (&ends->in);
    close_fd (&ends->out);
    close_fd (&ends->err);
    close_fd (&ends->talk);
    close_fd (&ends->channel);
    close_fd (&ends->failure);
}

/* What the child is given. */

static bool write_payload (const work_job_t *job, int payload)
{
    const tmq_assignment_t *task = job->assignment;
    return payload >= 0 ? workplace_copy (job->place, WORKPLACE_PAYLOAD, payload)
                        : workplace_write (job->place, WORKPLACE_PAYLOAD, task->payload,
                                           task->payload_bytes);
}

static bool make_place (work_job_t *job, const tmq_part_t *checkpoint, int payload)
{
    job->place = workplace_make ();
    job->kept = job->place ? workplace_kept (job->place) : NULL;
    return job->place &&
           workplace_write (job->place, WORKPLACE_CHECKPOINT, checkpoint ? checkpoint->bytes : NULL,
                            checkpoint ? checkpoint->length : 0) &&
           workplace_write (job->place, WORKPLACE_META, job->assignment->meta,
                            strlen (job->assignment->meta)) &&
           (!job->plan->payload_file || write_payload (job, payload));
}

/* Waits until exec has happened (the pipe closes) or failed (it tells why). */
static bool exec_succeeded (int failure, pid_t guard)
{
    int reason = 0;
    ssize_t n;
    do
        n = read (failure, &reason, sizeof reason);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t) sizeof reason)
        return true;
    waitpid (guard, NULL, 0);
    errno = reason;
    return false;
}

static bool launch (work_job_t *job, const job_plan_t *plan, child_ends_t *ends, int failure,
                    bool *unrunnable)
{
    char *artifacts = workplace_path (job->place, WORKPLACE_ARTIFACTS);
    const guard_plan_t guard = {
        .path = plan->path,
        .command = plan->command,
        .environment = environment_make (plan, job),
        .files = &plan->files,
        .in = ends->in,
        .out = ends->out,
        .err = ends->err,
        .talk = ends->talk,
        .failure = ends->failure,
        .place = job->place,
        .artifacts = artifacts,
        .kept = job->kept,
    };
    job->guard = fork ();
    if (job->guard == 0)
        guard_run (&guard, ends->channel);
    const int reason = errno;
    environment_free (guard.environment);
    free (artifacts);
    close_ends (ends);
    errno = reason;
    if (job->guard < 0)
        return false;
    if (exec_succeeded (failure, job->guard))
        return true;
    *unrunnable = errno == ENOENT || errno == EACCES || errno == ENOEXEC || errno == ENOTDIR;
    return false;
}

work_job_t *job_start (const job_plan_t *plan, tmq_worker_t *worker, tmq_assignment_t **assignment,
                       const tmq_part_t *checkpoint, int payload, bool *unrunnable)
{
    work_job_t *job = must_alloc (sizeof *job);
    child_ends_t ends = {-1, -1, -1, -1, -1, -1};
    int failure = -1;
    *unrunnable = false;
    job->plan = plan;
    job->assignment = *assignment;
    job->worker = worker;
    body_init (&job->large);
    attach_init (&job->attach);
    job->started_at_ms = mono_ms ();
    if (job->assignment->max_runtime_ms)
        job->overrun_at_ms =
            job->started_at_ms + job->assignment->max_runtime_ms + OVERRUN_GRACE_MS;
    for (int i = 0; i < JOB_FDS; i++)
        job->fds[i] = -1;
    const bool good = make_place (job, checkpoint, payload) &&
                      make_ends (job, &ends, &failure, !plan->payload_file, payload) &&
                      launch (job, plan, &ends, failure, unrunnable);
    const int reason = errno;
    close_ends (&ends);
    close_fd (&failure);
    if (good) {
        *assignment = NULL;
        return job;
    }
    job->assignment = NULL;
    job_tidy (job);
    job_free (job);
    errno = reason;
    return NULL;
}

void job_tidy (const work_job_t *job)
{
    bool slow;
    if (job->place)
        workplace_remove (job->place, TIDY_MS, &slow);
    if (job->kept)
        workplace_remove (job->kept, TIDY_MS, &slow);
}

void job_free (work_job_t *job)
{
    if (!job)
        return;
    for (int i = 0; i < JOB_FDS; i++)
        close_fd (&job->fds[i]);
    if (job->has_kept) /* it was told of the end of its guard's work by the end of the channel */
        waitpid (job->guard, NULL, 0);
    attach_free (&job->attach);
    free (job->place);
    free (job->kept);
    free (job->out);
    body_drop (&job->large);
    talk_free (job);
    tmq_assignment_free (job->assignment);
    free (job);
}
