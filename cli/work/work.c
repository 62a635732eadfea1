/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl work: any program as a worker.
 *
 * One loop polls the client's descriptor, a signalfd and the descriptors of every job; the
 * library's own thread renews the leases meanwhile, so nothing here can lose one by being slow.
 * What a job's end means is reported without a deadline: the library repeats it until the
 * broker, however often it was restarted, has answered.
 *
 * Failure policy: a task that cannot be started for lack of something (a process, disk space) is
 * kept and tried again, because giving it back again and again would count in the end. A program
 * that cannot be executed ends the worker. */
#include "work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "base/program.h"
#include "ids.h"
#include "line/labels.h"
#include "link/connect.h"
#include "link/state.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/status.h"
#include "work/body.h"
#include "work/drain.h"
#include "work/job.h"
#include "work/report.h"

enum {
    BATCH = 64,
    FLUSH_MS =
        1000, /* the outcome waits so long for a log that the broker does not take faster, … */
    TURNS_MS = 60000, /* … and so long for turns that come faster than the broker takes them */
    FLUSH_LOOK_MS = 20,
    FLUSH_BYTES = 32 * 1024, /* … if there is so much of it */
    RETRY_MS = 1000,         /* before a program that could not be started is tried again */
    /* Open files of the worker itself, and those of a start on top of what a job keeps. */
    FILES_BASE = 64,
    FILES_START = 12
};

/* How far the end has come. */
typedef enum stage {
    STAGE_OPEN = 0,
    STAGE_DRAINING, /* takes no more, what runs is finished */
    STAGE_GIVING_BACK,
    STAGE_KILLING
} stage_t;

typedef struct work {
    app_t *app;
    tmq_worker_t *worker;
    job_plan_t plan;
    report_plan_t report;
    report_sum_t sum;
    link_state_t link;
    drain_t drain;
    int signals;
    size_t jobs_max;
    work_job_t **jobs;
    size_t jobs_count;
    struct pollfd *fds;        /* the client's, the signals', then JOB_FDS of each job */
    tmq_assignment_t *waiting; /* taken, not started yet */
    body_t payload;            /* … and its payload, if that is larger than a frame */
    uintptr_t fetch;           /* which read of its checkpoint or payload is on its way; 0: none */
    uintptr_t fetches;         /* given out, and to uploads */
    uint64_t retry_at_ms;
    uint64_t taken;
    uint64_t taken_max; /* --max-tasks */
    size_t reports;     /* on their way to the broker */
    stage_t stage;
    bool told_to_end; /* by a signal */
    int exit_code;
    uint64_t idle_wall_ms; /* since when nothing runs */
} work_t;

/* The end. */

static void begin_drain (work_t *self)
{
    if (self->stage != STAGE_OPEN)
        return;
    self->stage = STAGE_DRAINING;
    tmq_worker_drain (self->worker, NULL);
}

static void forget_waiting (work_t *self)
{
    tmq_assignment_free (self->waiting);
    self->waiting = NULL;
    self->fetch = 0;
    body_drop (&self->payload);
}

static void give_back_all (work_t *self)
{
    if (self->waiting) {
        self->reports += report_give_back (&self->report, self->waiting, 0);
        forget_waiting (self);
    }
    for (size_t i = 0; i < self->jobs_count; i++)
        job_stop (self->jobs[i], STOP_GIVE_BACK, mono_ms ());
}

/* Each signal goes one step further: finish, give back, kill. */
static void take_signal (work_t *self)
{
    struct signalfd_siginfo info;
    if (read (self->signals, &info, sizeof info) != (ssize_t) sizeof info)
        return;
    self->told_to_end = true;
    if (self->stage == STAGE_OPEN) {
        begin_drain (self);
        if (self->jobs_count)
            note (self->app, "taskctl: finishing %zu %s; again to give %s back", self->jobs_count,
                  self->jobs_count == 1 ? "task" : "tasks", self->jobs_count == 1 ? "it" : "them");
        return;
    }
    self->exit_code = info.ssi_signo == SIGINT ? EXIT_INTERRUPTED : EXIT_TERMINATED;
    if (self->stage == STAGE_DRAINING) {
        self->stage = STAGE_GIVING_BACK;
        give_back_all (self);
        return;
    }
    self->stage = STAGE_KILLING;
    for (size_t i = 0; i < self->jobs_count; i++)
        job_kill (self->jobs[i]);
}

static bool is_over (const work_t *self)
{
    if (self->jobs_count > 0 || self->waiting)
        return false;
    /* Whoever gives back does not wait for a broker that may be gone: leaving says it too. */
    return self->stage >= STAGE_GIVING_BACK ||
           (self->stage == STAGE_DRAINING && self->reports == 0);
}

/* Jobs. */

/* What a program says last is often why it ended. */
static bool is_flushing (const work_t *self, work_job_t *job)
{
    const size_t left = tmq_worker_log_pending (self->worker, job->assignment);
    if (self->stage >= STAGE_GIVING_BACK)
        return false;
    talk_end (job);
    if (job->turns_until_ms == 0)
        job->turns_until_ms = mono_ms () + TURNS_MS;
    if (talk_has_turns (job) && mono_ms () < job->turns_until_ms)
        return true;
    if (job->flush_until_ms)
        return left > 0 && mono_ms () < job->flush_until_ms;
    job->flush_until_ms = mono_ms () + FLUSH_MS;
    return left > FLUSH_BYTES;
}

static attach_of_t attach_of (const work_job_t *job)
{
    return (attach_of_t){.app = job->plan->app,
                         .worker = job->worker,
                         .assignment = job->assignment,
                         .kept = job->kept};
}

/* Its artifacts are attached before its outcome is told. */
static bool is_attaching (work_t *self, work_job_t *job)
{
    if (!job->has_kept || job->attach.done || job->stop != STOP_NONE)
        return false;
    attach_of_t of = attach_of (job);
    of.hurry = self->told_to_end;
    if (self->stage >= STAGE_GIVING_BACK) {
        attach_give_up (&job->attach, &of);
        return false;
    }
    void *user = job->attach.begun ? NULL : (void *) ++self->fetches;
    const attach_state_t state = attach_run (&job->attach, &of, user);
    if (state == ATTACH_CANCELLED)
        job->stop = STOP_CANCELLED;
    return state == ATTACH_RUNS;
}

/* Once for a task: nobody is to wonder why it does not end. */
static void tell_result_waits (const work_t *self, work_job_t *job)
{
    char id[37];
    if (job->result_waited || !upload_stands (&job->upload))
        return;
    job->result_waited = true;
    tmq_id_format (&job->assignment->task_id, id);
    note (self->app, "taskctl: %s: its result is not taken yet, and the task waits for that: %s",
          id, job->upload.why);
}

/* A result that is larger than a frame, of a program that ended well, is uploaded before its
 * attempt ends. True: it is not there yet. */
static bool is_uploading (work_t *self, work_job_t *job)
{
    upload_t *upload = &job->upload;
    const bool counts =
        job->large.fd >= 0 && !job->signal && job->status == 0 &&
        (job->stop == STOP_NONE || job->stop == STOP_LOST || job->stop == STOP_RUNTIME);
    if (!counts || upload->code != TMQ_OK || upload->done)
        return false;
    if (self->stage >= STAGE_GIVING_BACK) {
        if (!upload->told)
            job->stop = STOP_GIVE_BACK;
        return false;
    }
    if (!upload->told &&
        tmq_worker_state (self->worker, job->assignment) == TMQ_ATTEMPT_CANCELLED) {
        job->stop = STOP_CANCELLED;
        return false;
    }
    if (!upload->user)
        upload_begin (upload, self->app->client, &job->large, (void *) ++self->fetches);
    tell_result_waits (self, job);
    upload_go_on (upload, self->app->client);
    if (upload->whole && !upload->told) {
        upload->told = true;
        talk_end (job);
        talk_hurry (job);
        const size_t sent = report_uploaded (&self->report, job, upload->user);
        self->reports += sent;
        upload->done = sent == 0;
    }
    return upload->code == TMQ_OK && !upload->done;
}

static work_job_t *find_upload (const work_t *self, const void *user)
{
    for (size_t i = 0; user && i < self->jobs_count; i++)
        if (self->jobs[i]->upload.user == user)
            return self->jobs[i];
    return NULL;
}

static work_job_t *find_attaching (const work_t *self, const void *user)
{
    for (size_t i = 0; user && i < self->jobs_count; i++)
        if (self->jobs[i]->attach.user == user)
            return self->jobs[i];
    return NULL;
}

static void take_piece (work_t *self, const tmq_completion_t *answer)
{
    work_job_t *job = find_attaching (self, answer->user);
    if (job) {
        const attach_of_t of = attach_of (job);
        attach_take (&job->attach, &of, answer);
        return;
    }
    job = find_upload (self, answer->user);
    if (job)
        upload_take (&job->upload, self->app->client, &job->large, answer);
}

static void take_report (work_t *self, const tmq_completion_t *answer)
{
    work_job_t *job = find_upload (self, answer->user);
    if (job && answer->op == TMQ_OP_COMPLETE && answer->code == TMQ_NO_BLOB) {
        self->reports--; /* a broker that was started again wants to hear of the upload again */
        upload_begin (&job->upload, self->app->client, &job->large, answer->user);
        return;
    }
    if (job)
        job->upload.done = true;
    self->reports -= report_take (&self->report, answer);
}

static void end_job (work_t *self, size_t i)
{
    work_job_t *job = self->jobs[i];
    self->jobs[i] = self->jobs[--self->jobs_count];
    if (!job->upload.told) {
        talk_end (job);
        talk_hurry (job);
        self->reports += report_end (&self->report, job);
    }
    upload_end (&job->upload, self->app->client);
    upload_end (&job->attach.upload, self->app->client);
    job_free (job);
    if (self->jobs_count == 0)
        self->idle_wall_ms = wall_ms ();
}

/* The program itself cannot be executed: no task can be worked on here. */
static void take_unrunnable (work_t *self, tmq_assignment_t *assignment, int reason)
{
    self->reports += report_give_back (&self->report, assignment, 0);
    tmq_assignment_free (assignment);
    usage_error (self->app, NULL, "cannot execute %s: %s", self->plan.path, strerror (reason));
    self->exit_code = EXIT_USAGE;
    begin_drain (self);
}

static void start_job (work_t *self, tmq_assignment_t *assignment, const tmq_part_t *checkpoint)
{
    bool unrunnable;
    char id[37];
    tmq_id_format (&assignment->task_id, id);
    detail (self->app, "%s attempt %" PRIu32 " begins", id, assignment->attempt);
    work_job_t *job = job_start (&self->plan, self->worker, &assignment, checkpoint,
                                 self->payload.fd, &unrunnable);
    const int reason = errno;
    if (job || unrunnable)
        body_drop (&self->payload);
    if (job) {
        tmq_worker_started (self->worker, job->assignment, NULL);
        self->jobs[self->jobs_count++] = job;
        talk_flush (job); /* answers to questions of earlier attempts */
    } else if (unrunnable) {
        take_unrunnable (self, assignment, reason);
    } else {
        code_error (self->app, TMQ_SYSTEM, NULL, "%s: cannot be started yet: %s", id,
                    strerror (reason));
        self->waiting = assignment;
        self->retry_at_ms = mono_ms () + RETRY_MS;
    }
}

/* A payload that is larger than a frame, and what an earlier attempt kept, are fetched first. */
static void take_up (work_t *self, tmq_assignment_t *assignment)
{
    const tmq_blob_t *blob = &assignment->payload_blob;
    const bool wants_payload = blob->bytes > 0 && !body_is (&self->payload, blob);
    int code;
    if (!wants_payload && assignment->checkpoint_bytes == 0) {
        start_job (self, assignment, NULL);
        return;
    }
    self->waiting = assignment;
    self->fetch = ++self->fetches;
    if (wants_payload)
        code = tmq_payload_read_start (self->app->client, &assignment->task_id, self->payload.bytes,
                                       0, TMQ_FOREVER, (void *) self->fetch, NULL);
    else
        code = tmq_worker_checkpoint_read_start (self->worker, assignment, TMQ_FOREVER,
                                                 (void *) self->fetch, NULL);
    if (code != TMQ_OK) {
        self->fetch = 0;
        self->retry_at_ms = mono_ms () + RETRY_MS;
    }
}

/* The one that waits, if it is still to be worked on. */
static tmq_assignment_t *wanted_still (work_t *self)
{
    tmq_assignment_t *assignment = self->waiting;
    const tmq_attempt_state_t state = tmq_worker_state (self->worker, assignment);
    if (state == TMQ_ATTEMPT_HELD || state == TMQ_ATTEMPT_ENDING || state == TMQ_ATTEMPT_HURRY) {
        self->waiting = NULL;
        return assignment;
    }
    if (state == TMQ_ATTEMPT_CANCELLED)
        self->reports += report_cancelled (&self->report, assignment);
    forget_waiting (self);
    return NULL;
}

static void retry_waiting (work_t *self)
{
    if (!self->waiting || self->fetch || mono_ms () < self->retry_at_ms)
        return;
    tmq_assignment_t *assignment = wanted_still (self);
    if (assignment)
        take_up (self, assignment);
}

/* The assignment that what was fetched is for; NULL: nobody wants it any more. */
static tmq_assignment_t *fetched (work_t *self, const tmq_completion_t *answer)
{
    if (!self->waiting || (uintptr_t) answer->user != self->fetch)
        return NULL;
    self->fetch = 0;
    return wanted_still (self);
}

static void wait_longer (work_t *self, tmq_assignment_t *assignment, int code, const char *what,
                         const char *why)
{
    code_error (self->app, code, NULL, "its %s cannot be read yet: %s", what, why);
    self->waiting = assignment;
    self->retry_at_ms = mono_ms () + RETRY_MS;
}

static void take_checkpoint (work_t *self, const tmq_completion_t *answer)
{
    tmq_assignment_t *assignment = fetched (self, answer);
    if (assignment && answer->code == TMQ_OK)
        start_job (self, assignment, answer->part);
    else if (assignment)
        wait_longer (self, assignment, answer->code, "checkpoint",
                     answer->error ? answer->error->text : "refused");
}

/* A payload that is missing or damaged is a failure of the attempt. */
static void take_payload (work_t *self, const tmq_completion_t *answer)
{
    tmq_assignment_t *assignment = fetched (self, answer);
    const tmq_part_t *part = answer->code == TMQ_OK ? answer->part : NULL;
    if (!assignment)
        return;
    const tmq_blob_t *blob = &assignment->payload_blob;
    if (part && !body_add (&self->payload, part->bytes, part->length)) {
        wait_longer (self, assignment, TMQ_SYSTEM, "payload", strerror (errno));
    } else if (part && (part->more || body_is (&self->payload, blob))) {
        take_up (self, assignment);
    } else if (part || answer->code == TMQ_NO_BLOB) {
        const char *why =
            answer->error ? answer->error->text : "its bytes are not those of its hash";
        self->reports += report_damaged (&self->report, assignment, why);
        body_drop (&self->payload);
        tmq_assignment_free (assignment);
    } else {
        wait_longer (self, assignment, answer->code, "payload",
                     answer->error ? answer->error->text : "refused");
    }
}

/* The broker does not take us as a worker of these queues. That the connection was refused is told
 * by the link (take_refusal). */
static void take_end (work_t *self, const tmq_error_t *error)
{
    if (error->code == TMQ_CLOSED && self->stage == STAGE_OPEN) {
        note (self->app, "taskctl: drained by an operator: finishes what runs and ends");
        begin_drain (self);
        return;
    }
    const bool refused = error->code == TMQ_DENIED || error->code == TMQ_LIMIT ||
                         error->code == TMQ_INVALID || error->code == TMQ_UNSUPPORTED;
    if (!refused || self->stage != STAGE_OPEN)
        return;
    self->exit_code = library_error (self->app, error, NULL);
    begin_drain (self);
}

static void take_tasks (work_t *self)
{
    while (self->jobs_count < self->jobs_max && !self->waiting && self->stage < STAGE_GIVING_BACK) {
        tmq_assignment_t *assignment;
        tmq_error_t error = {0};
        if (tmq_worker_next (&assignment, self->worker, 0, &error) != TMQ_OK) {
            take_end (self, &error);
            return;
        }
        self->taken++;
        self->drain.empty_seen = 0;
        take_up (self, assignment);
        if (self->taken == self->taken_max)
            begin_drain (self);
    }
}

static work_job_t *find_job (const work_t *self, const tmq_id_t *id, unsigned attempt)
{
    for (size_t i = 0; i < self->jobs_count; i++) {
        const tmq_assignment_t *task = self->jobs[i]->assignment;
        if (task->attempt == attempt && memcmp (&task->task_id, id, sizeof task->task_id) == 0)
            return self->jobs[i];
    }
    return NULL;
}

static void take_changes (work_t *self)
{
    tmq_attempt_change_t change;
    while (tmq_worker_changed (&change, self->worker, 0) == TMQ_OK) {
        char line[48];
        work_job_t *job = find_job (self, &change.task_id, change.attempt);
        if (!job)
            continue;
        if (change.state == TMQ_ATTEMPT_ANSWERED) {
            talk_flush (job);
        } else if (change.state == TMQ_ATTEMPT_CANCELLED) {
            job_stop (job, STOP_CANCELLED, mono_ms ());
        } else if (change.state == TMQ_ATTEMPT_LOST) {
            /* Why is said of an attempt that the broker ended itself. */
            const bool overran = *change.message && job->assignment->max_runtime_ms;
            job_stop (job, overran ? STOP_RUNTIME : STOP_LOST, mono_ms ());
        } else if (change.state == TMQ_ATTEMPT_HURRY) {
            snprintf (line, sizeof line, "hurry %" PRIu64 "\n",
                      job->assignment->max_runtime_ms / 2000);
            talk_tell (job, line);
        } else if (change.state == TMQ_ATTEMPT_ENDING) {
            snprintf (line, sizeof line, "deadline %" PRIu32 "\n",
                      job->assignment->lease_ms / 2000);
            talk_tell (job, line);
        }
    }
}

static bool is_busy (const work_t *self)
{
    return self->jobs_count > 0 || self->reports > 0 || self->waiting;
}

static void take_drain (work_t *self, const tmq_completion_t *answer)
{
    if (drain_take (&self->drain, answer, is_busy (self)))
        begin_drain (self);
}

/* The broker wants no more of us, and our tasks are others' now: what runs here could not tell its
 * outcome. */
static void take_refusal (work_t *self)
{
    self->exit_code = exit_of_code (self->link.refused);
    begin_drain (self);
    if (self->stage == STAGE_DRAINING)
        self->stage = STAGE_GIVING_BACK;
    forget_waiting (self);
    for (size_t i = 0; i < self->jobs_count; i++)
        job_stop (self->jobs[i], STOP_LOST, mono_ms ());
}

/* The status line. */

static void show_status (const work_t *self)
{
    const report_sum_t *sum = &self->sum;
    char clock[CLOCK_TEXT_SIZE];
    char link[40];
    char idle[40] = "";
    if (self->drain.on && self->stage == STAGE_OPEN && !self->link.lost_at_ms) {
        const uint64_t ended = sum->done + sum->failed;
        status_show_bar (self->app, ended, ended + self->jobs_count + self->drain.left,
                         "%zu running  %" PRIu64 " done  %" PRIu64 " failed  %" PRIu64 " left",
                         self->jobs_count, sum->done, sum->failed, self->drain.left);
        return;
    }
    if (self->jobs_count == 0)
        snprintf (idle, sizeof idle, "  waiting since %s", clock_text (clock, self->idle_wall_ms));
    status_show (self->app, "%s  %zu running  %" PRIu64 " done  %" PRIu64 " failed%s",
                 link_state_text (link, &self->link), self->jobs_count, sum->done, sum->failed,
                 idle);
}

/* The loop. */

static void take_answers (work_t *self)
{
    tmq_completion_t *answers[BATCH];
    size_t count = 0;
    if (tmq_client_poll (answers, BATCH, &count, self->app->client, 0) != TMQ_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        const tmq_completion_t *answer = answers[i];
        if (drain_is_answer (answer))
            take_drain (self, answer);
        else if (report_is_answer (answer))
            take_report (self, answer);
        else if (answer->op == TMQ_OP_BLOB_BEGIN || answer->op == TMQ_OP_BLOB_CHUNK ||
                 answer->op == TMQ_OP_ARTIFACT)
            take_piece (self, answer);
        else if (answer->op == TMQ_OP_CHECKPOINT_READ)
            take_checkpoint (self, answer);
        else if (answer->op == TMQ_OP_BLOB_READ)
            take_payload (self, answer);
        else if (talk_is_answer (answer))
            talk_answered (find_job (self, &answer->task_id, talk_attempt (answer)), answer);
        else if (link_state_take (&self->link, answer) && self->link.refused)
            take_refusal (self);
        tmq_completion_free (answers[i]);
    }
}

static int pause_ms (const work_t *self)
{
    const uint64_t now_ms = mono_ms ();
    uint64_t wake_ms = UINT64_MAX;
    for (size_t i = 0; i < self->jobs_count; i++) {
        const work_job_t *job = self->jobs[i];
        if (job->exited && now_ms + FLUSH_LOOK_MS < wake_ms)
            wake_ms = now_ms + FLUSH_LOOK_MS;
        if (job->kill_at_ms && job->kill_at_ms < wake_ms)
            wake_ms = job->kill_at_ms;
        if (job->talk.turn_at_ms && job->talk.turn_at_ms < wake_ms)
            wake_ms = job->talk.turn_at_ms;
        if (job->overrun_at_ms && job->stop == STOP_NONE && job->overrun_at_ms < wake_ms)
            wake_ms = job->overrun_at_ms;
    }
    if (self->stage == STAGE_OPEN && drain_wakes_ms (&self->drain, is_busy (self)) < wake_ms)
        wake_ms = drain_wakes_ms (&self->drain, is_busy (self));
    if (self->waiting && !self->fetch && self->retry_at_ms < wake_ms)
        wake_ms = self->retry_at_ms;
    if (wake_ms == UINT64_MAX)
        return -1;
    return wake_ms <= now_ms ? 0 : (int) (wake_ms - now_ms);
}

/* False if there is no waiting any more, for lack of memory. */
static bool poll_once (work_t *self)
{
    nfds_t count = 2;
    self->fds[0] = (struct pollfd){tmq_client_fd (self->app->client), POLLIN, 0};
    self->fds[1] = (struct pollfd){self->signals, POLLIN, 0};
    for (size_t i = 0; i < self->jobs_count; i++, count += JOB_FDS)
        job_poll_fill (self->jobs[i], self->fds + count);
    if (poll (self->fds, count, pause_ms (self)) < 0)
        return errno == EINTR;
    /* Backwards, because the end of a job moves the last one into its place. */
    for (size_t i = self->jobs_count; i-- > 0;) {
        if (job_poll_take (self->jobs[i], self->fds + 2 + i * JOB_FDS) &&
            !is_flushing (self, self->jobs[i]) && !is_attaching (self, self->jobs[i]) &&
            !is_uploading (self, self->jobs[i]))
            end_job (self, i);
    }
    if (self->fds[1].revents)
        take_signal (self);
    return true;
}

static void stop_overdue (work_t *self)
{
    const uint64_t now_ms = mono_ms ();
    for (size_t i = 0; i < self->jobs_count; i++) {
        work_job_t *job = self->jobs[i];
        talk_repeat (job, now_ms);
        if (job->overrun_at_ms && job->overrun_at_ms <= now_ms && !job->exited)
            job_stop (job, STOP_RUNTIME, now_ms);
        if (job->kill_at_ms && job->kill_at_ms <= now_ms) {
            job_kill (job);
            job->kill_at_ms = 0;
        }
    }
}

/* Leaving gives the tasks back; their programs must not run on. */
static void abandon_all (work_t *self)
{
    for (size_t i = 0; i < self->jobs_count; i++) {
        job_kill (self->jobs[i]);
        job_free (self->jobs[i]);
    }
    self->jobs_count = 0;
}

static void work_loop (work_t *self)
{
    for (;;) {
        take_answers (self);
        take_changes (self);
        retry_waiting (self);
        take_tasks (self);
        if (self->stage == STAGE_OPEN)
            drain_look (&self->drain, is_busy (self));
        stop_overdue (self);
        if (is_over (self))
            return;
        show_status (self);
        if (!poll_once (self)) {
            self->exit_code =
                code_error (self->app, TMQ_SYSTEM, NULL, "poll: %s", strerror (errno));
            abandon_all (self);
            return;
        }
    }
}

/* Beginning. */

/* SIGPIPE is ignored: a job that does not read its payload is no reason to end. */
static bool catch_signals (work_t *self)
{
    sigset_t signals;
    sigemptyset (&signals);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGTERM);
    sigaddset (&signals, SIGHUP);
    sigprocmask (SIG_BLOCK, &signals, NULL);
    signal (SIGPIPE, SIG_IGN);
    self->signals = signalfd (-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return self->signals >= 0;
}

/* Many jobs need many descriptors; the programs get the limit that we were given. */
static int raise_files (work_t *self)
{
    const rlim_t needed = FILES_BASE + FILES_START + self->jobs_max * JOB_FDS;
    struct rlimit more;
    char hint[64];
    if (getrlimit (RLIMIT_NOFILE, &self->plan.files) != 0)
        return code_error (self->app, TMQ_SYSTEM, NULL, "getrlimit: %s", strerror (errno));
    more = self->plan.files;
    more.rlim_cur = more.rlim_max;
    if (setrlimit (RLIMIT_NOFILE, &more) == 0 && more.rlim_cur >= needed)
        return 0;
    snprintf (hint, sizeof hint, "ulimit -n %ju", (uintmax_t) needed);
    return usage_error (self->app, hint, "-j %zu needs more open files than the limit of %ju",
                        self->jobs_max, (uintmax_t) more.rlim_max);
}

static int start_worker (work_t *self)
{
    const args_t *args = &self->app->args;
    char version[32];
    labels_t labels;
    tmq_worker_options_t options;
    tmq_error_t error = {0};
    tmq_worker_options_init (&options);
    options.queues = args->operands;
    options.queues_count = args->operands_count;
    options.capacity = (uint32_t) self->jobs_max;
    options.notify = true;
    options.name = args_text (args, OPT_WORKER_NAME);
    options.role = args_text (args, OPT_WORK_ROLE);
    snprintf (version, sizeof version, "taskctl %d.%d.%d", TMQ_VERSION_MAJOR, TMQ_VERSION_MINOR,
              TMQ_VERSION_PATCH);
    options.version = version;
    if (!labels_from_args (&labels, args, OPT_LABEL))
        return usage_error (self->app, NULL, "--label is given more than %d times", TMQ_LABELS_MAX);
    options.labels = labels.list;
    options.labels_count = labels.count;
    error.code = tmq_worker_new (&self->worker, self->app->client, &options, &error);
    return error.code == TMQ_OK ? 0 : library_error (self->app, &error, NULL);
}

static void tell_beginning (const work_t *self)
{
    const args_t *args = &self->app->args;
    char queues[4 * (TMQ_NAME_LENGTH_MAX + 2) + 1] = "";
    if (args->operands_count > 4)
        snprintf (queues, sizeof queues, "%zu queues", args->operands_count);
    for (size_t i = 0; args->operands_count <= 4 && i < args->operands_count; i++) {
        const size_t used = strlen (queues);
        snprintf (queues + used, sizeof queues - used, "%s%s", i ? ", " : "", args->operands[i]);
    }
    note (self->app, "taskctl: working on %s, %zu %s at a time", queues, self->jobs_max,
          self->jobs_max == 1 ? "task" : "tasks");
}

static void tell_end (const work_t *self)
{
    char text[160];
    report_sum_text (text, sizeof text, &self->sum);
    note (self->app, "taskctl: %s", text);
}

static int run_worker (work_t *self)
{
    status_line_t status;
    app_t *app = self->app;
    app->tells_link = true;
    int code = raise_files (self);
    if (code || (code = app_connect_patiently (app)))
        return code;
    self->plan.endpoint = app->endpoint;
    self->plan.ns = app->ns;
    self->plan.key_file = app->key_file;
    if (!catch_signals (self))
        return code_error (app, TMQ_SYSTEM, NULL, "signalfd: %s", strerror (errno));
    if ((code = start_worker (self)))
        return code;
    self->report = (report_plan_t){
        .app = app,
        .worker = self->worker,
        .result_type = args_text (&app->args, OPT_RESULT_TYPE),
        .release_delay_ms = (uint32_t) args_number (&app->args, OPT_RELEASE_DELAY, UINT32_MAX),
        .sum = &self->sum,
    };
    self->jobs = must_alloc (self->jobs_max * sizeof (void *));
    self->fds = must_alloc ((2 + self->jobs_max * JOB_FDS) * sizeof *self->fds);
    tell_beginning (self);
    status_begin (&status, app);
    work_loop (self);
    status_end (app);
    tell_end (self);
    tmq_worker_exit (self->worker, self->exit_code, 0, NULL);
    tmq_worker_free (&self->worker);
    free (self->jobs);
    free (self->fds);
    close (self->signals);
    return self->exit_code;
}

static int check_operands (const app_t *app)
{
    const args_t *args = &app->args;
    for (size_t i = 0; i < args->operands_count; i++) {
        if (!name_is_valid (args->operands[i]))
            return usage_error (app, "the command to run stands behind '--'",
                                "queue '%.80s' must be 1 to 64 of A-Z a-z 0-9 . _ -",
                                args->operands[i]);
    }
    if (!args->rest || !args->rest[0])
        return usage_error (app, "taskctl work QUEUE -- COMMAND...",
                            "work needs a command behind '--'");
    return 0;
}

int run_work (app_t *app)
{
    const args_t *args = &app->args;
    work_t self = {
        .app = app,
        .jobs_max = (size_t) args_number (args, OPT_JOBS, 1),
        .taken_max = args_number (args, OPT_MAX_TASKS, UINT64_MAX),
        .drain = {.app = app, .on = args_has (args, OPT_DRAIN)},
        .link = {.app = app, .meanwhile = "what runs goes on"},
        .idle_wall_ms = wall_ms (),
        .payload = {.fd = -1},
    };
    int code = check_operands (app);
    if (code)
        return code;
    char *path = program_find (args->rest[0]);
    if (!path)
        return usage_error (app, NULL, "cannot execute %s: %s", args->rest[0], strerror (errno));
    if (self.taken_max < self.jobs_max)
        self.jobs_max = (size_t) self.taken_max;
    self.plan.app = app;
    self.plan.names_lines = self.jobs_max > 1;
    self.plan.path = path;
    self.plan.command = args->rest;
    self.plan.payload_file = args_has (args, OPT_PAYLOAD_FILE);
    code = run_worker (&self);
    free (path);
    return code;
}
