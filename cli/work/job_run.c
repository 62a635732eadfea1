/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A child that runs: feeding it, reading what it says, stopping it, taking note of its end. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ids.h"
#include "screen/status.h"
#include "work/guard.h"
#include "work/job.h"

enum {
    GRACE_MS = 10 * 1000, /* between SIGTERM and SIGKILL */
    READ_BYTES = 64 * 1024,
    ID_END = 24 /* where the part of an id's text begins that tasks are known by */
};

static void close_end (work_job_t *job, job_fd_t which)
{
    if (job->fds[which] >= 0)
        close (job->fds[which]);
    job->fds[which] = -1;
}

/* stdin and stdout. */

static void feed (work_job_t *job)
{
    const tmq_assignment_t *task = job->assignment;
    while (job->fed < task->payload_bytes) {
        const ssize_t n = write (job->fds[JOB_IN], (const char *) task->payload + job->fed,
                                 task->payload_bytes - job->fed);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break; /* it does not want to read all of it, which is its own affair */
        job->fed += (size_t) n;
    }
    close_end (job, JOB_IN);
}

/* What is larger than a frame goes on in a file. */
static bool add_large (work_job_t *job, const char *data, size_t bytes)
{
    if (job->large.fd < 0 && !body_add (&job->large, job->out, job->out_bytes))
        return false;
    job->out_bytes = 0;
    return body_add (&job->large, data, bytes);
}

/* Bytes over the limit are read and dropped, so that the child does not hang on its way out. */
static void take_out (work_job_t *job, const char *data, size_t bytes)
{
    const uint64_t length = job->large.bytes + job->out_bytes + bytes;
    if (job->stop == STOP_TOO_LARGE || job->stop == STOP_NO_ROOM)
        return;
    if (length <= TMQ_FRAME_BYTES_MAX) {
        job->out = must_grow (job->out, job->out_bytes + bytes, 1);
        memcpy (job->out + job->out_bytes, data, bytes);
        job->out_bytes += bytes;
        return;
    }
    if (job->large_max == 0) {
        tmq_whoami_t who = {.size = sizeof who};
        tmq_client_whoami (&who, job->plan->app->client);
        job->large_max =
            who.blob_bytes_max > TMQ_FRAME_BYTES_MAX ? who.blob_bytes_max : TMQ_FRAME_BYTES_MAX;
    }
    if (length > job->large_max) {
        job_stop (job, STOP_TOO_LARGE, mono_ms ());
    } else if (!add_large (job, data, bytes)) {
        job->large_errno = errno;
        job_stop (job, STOP_NO_ROOM, mono_ms ());
    }
}

/* stderr. */

static void keep_last_line (work_job_t *job)
{
    size_t length = job->err_line.length;
    while (length > 0 && strchr (" \t\r\n", job->err_line.text[length - 1]))
        length--;
    if (length == 0)
        return;
    length = utf8_whole (job->err_line.text, length, TMQ_ERROR_MESSAGE_BYTES_MAX);
    memcpy (job->last_line, job->err_line.text, length);
    job->last_line[length] = '\0';
}

/* Whole lines, so that those of several jobs do not mix; then each begins with the end of its
 * task's id. The last line of a program is ended, because others follow it. */
static void flush_err (work_job_t *job, bool last)
{
    const app_t *app = job->plan->app;
    const line_t *line = &job->err_line;
    char id[37];
    if (line->length == 0)
        return;
    keep_last_line (job);
    status_hide (app);
    tmq_id_format (&job->assignment->task_id, id);
    if (job->plan->names_lines)
        fprintf (stderr, "%s: ", id + ID_END);
    fwrite (line->text, 1, line->length, stderr);
    if (line->text[line->length - 1] != '\n' && (last || job->plan->names_lines))
        fputc ('\n', stderr);
    job->err_line.length = 0;
}

static void take_err (work_job_t *job, const char *data, size_t bytes)
{
    line_t *line = &job->err_line;
    for (size_t i = 0; i < bytes; i++) {
        line->text[line->length++] = data[i];
        if (data[i] == '\n' || line->length == sizeof line->text)
            flush_err (job, false);
    }
}

/* Polling. */

/* What it writes to stdout and stderr goes into the task's log, too, as far as it can be had. */
static void take_bytes (work_job_t *job, job_fd_t which,
                        void (*take) (work_job_t *, const char *, size_t), const char *data,
                        size_t bytes)
{
    if (which != JOB_TALK)
        tmq_worker_log (job->worker, job->assignment, which == JOB_OUT ? TMQ_LOG_OUT : TMQ_LOG_ERR,
                        data, bytes, NULL);
    take (job, data, bytes);
}

/* Reads what is there. A job that writes without end must not keep us from the others. */
static void take_from (work_job_t *job, job_fd_t which,
                       void (*take) (work_job_t *, const char *, size_t))
{
    char data[READ_BYTES];
    if (job->fds[which] < 0)
        return;
    const ssize_t n = read (job->fds[which], data, sizeof data);
    if (n > 0)
        take_bytes (job, which, take, data, (size_t) n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_end (job, which);
}

/* All that the program wrote before its end; a grandchild that keeps writing is not waited for. */
static void take_rest (work_job_t *job, job_fd_t which,
                       void (*take) (work_job_t *, const char *, size_t))
{
    enum { PIPE_BYTES_MAX = 1024 * 1024 };
    for (int rounds = PIPE_BYTES_MAX / READ_BYTES; rounds > 0 && job->fds[which] >= 0; rounds--) {
        char data[READ_BYTES];
        const ssize_t n = read (job->fds[which], data, sizeof data);
        if (n > 0)
            take_bytes (job, which, take, data, (size_t) n);
        else if (n == 0 || errno != EINTR)
            close_end (job, which);
    }
    close_end (job, which);
}

static void bury (work_job_t *job)
{
    guard_end_t end;
    /* Without a word the guard was killed, and the program with it. */
    if (recv (job->fds[JOB_GUARD], &end, sizeof end, MSG_DONTWAIT) != (ssize_t) sizeof end) {
        end = (guard_end_t){128 + SIGKILL, SIGKILL, false};
        job_tidy (job);
    }
    take_rest (job, JOB_OUT, take_out);
    take_rest (job, JOB_TALK, talk_take);
    take_rest (job, JOB_ERR, take_err);
    flush_err (job, true);
    job->has_kept = end.kept;
    while (!end.kept && waitpid (job->guard, NULL, 0) < 0 && errno == EINTR)
        continue;
    job->status = end.status;
    job->signal = end.signal;
    job->exited = true;
    if (!end.kept)
        close_end (job, JOB_GUARD);
}

void job_poll_fill (const work_job_t *job, struct pollfd out[JOB_FDS])
{
    for (int i = 0; i < JOB_FDS; i++) {
        short events = i == JOB_IN ? POLLOUT : POLLIN;
        if (i == JOB_TALK && talk_waits (job))
            events |= POLLOUT;
        const bool silent = i == JOB_GUARD && job->exited;
        out[i] = (struct pollfd){silent ? -1 : job->fds[i], events, 0};
    }
}

bool job_poll_take (work_job_t *job, const struct pollfd in[JOB_FDS])
{
    if (in[JOB_IN].revents && job->fds[JOB_IN] >= 0)
        feed (job);
    if (in[JOB_OUT].revents)
        take_from (job, JOB_OUT, take_out);
    if (in[JOB_ERR].revents)
        take_from (job, JOB_ERR, take_err);
    if (in[JOB_TALK].revents & POLLOUT)
        talk_flush (job);
    if (in[JOB_TALK].revents & ~POLLOUT)
        take_from (job, JOB_TALK, talk_take);
    if (in[JOB_GUARD].revents && !job->exited)
        bury (job);
    return job->exited;
}

/* Stopping. */

/* What the program can read of it on TASKMQ_FD; the manual lists them. */
static const char *const reasons[] = {
    [STOP_CANCELLED] = "cancel\n",    [STOP_LOST] = "lost\n",
    [STOP_RUNTIME] = "max_runtime\n", [STOP_GIVE_BACK] = "leave\n",
    [STOP_TOO_LARGE] = "too_large\n", [STOP_NO_ROOM] = "too_large\n",
};

static void wish (work_job_t *job, guard_wish_t what)
{
    const char byte = (char) what;
    send (job->fds[JOB_GUARD], &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void job_stop (work_job_t *job, job_stop_t why, uint64_t now_ms)
{
    if (job->stop != STOP_NONE || job->exited)
        return;
    job->stop = why;
    job->kill_at_ms = now_ms + GRACE_MS;
    talk_tell (job, reasons[why]);
    wish (job, GUARD_STOP);
}

void job_kill (work_job_t *job)
{
    if (!job->exited)
        wish (job, GUARD_KILL);
}
