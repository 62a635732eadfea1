/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One attempt as a program under its guard (guard.h): started, fed, listened to, stopped, buried.
 * `taskctl work` polls the descriptors and decides what its end means. Nothing here talks to the
 * broker, except that progress lines go to the worker.
 *
 * Rule of fork: the client library owns threads, so a child does only what a signal handler may do;
 * every descriptor of ours is close-on-exec. */
#ifndef TASKCTL_JOB_H
#define TASKCTL_JOB_H

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "line/app.h"
#include "work/attach.h"
#include "work/body.h"
#include "work/upload.h"

/* Descriptors of a job, in the order in which job_poll_fill puts them. */
typedef enum job_fd { JOB_GUARD, JOB_IN, JOB_OUT, JOB_ERR, JOB_TALK, JOB_FDS } job_fd_t;

/* Why it is being stopped. */
typedef enum job_stop {
    STOP_NONE = 0,
    STOP_CANCELLED,
    STOP_LOST,      /* another attempt took over */
    STOP_RUNTIME,   /* its max_runtime is over */
    STOP_GIVE_BACK, /* second SIGTERM */
    STOP_TOO_LARGE, /* its stdout is over the limit */
    STOP_NO_ROOM    /* its stdout finds no place on our disk */
} job_stop_t;

/* A line that is not complete yet. */
typedef struct line {
    char text[4096];
    size_t length;
} line_t;

/* TASKMQ_FD: lines from and to the program. What is for it waits in a buffer that has a bound, so
 * one that never reads costs no more than that and loses what came last. */
enum { TALK_LINE_BYTES_MAX = 6 * TMQ_CHECKPOINT_BYTES_MAX + 64 }; /* each byte as an escape */

/* A file that the program has told of. */
typedef struct talk_file {
    tmq_file_op_t op;
    char *path;
} talk_file_t;

typedef struct talk {
    char *line; /* that is not complete yet */
    size_t line_bytes;
    size_t line_room;
    bool skipping; /* the rest of a line that was too long */
    char *out;     /* for the program */
    size_t out_bytes;
    size_t out_sent;
    size_t words; /* status messages, checkpoints, turns and questions that have no answer yet */
    talk_file_t *files; /* TMQ_TURN_FILES_MAX, that wait for a turn; NULL: none so far */
    size_t files_count;
    /* Turns that are not told yet. The first is on its way, or was refused and waits, … */
    struct turn_line *turns;
    uint64_t turn_at_ms; /* … until then; 0: it does not */
    unsigned turn_tries; /* how often it was refused */
    char *failure;       /* JSON: data of the error, should the attempt fail; NULL: none */
} talk_t;

/* What every job of a run has in common. */
typedef struct job_plan {
    const char *path; /* of the program */
    char **command;
    bool payload_file;
    const app_t *app;
    bool names_lines;     /* of stderr: several tasks write at a time */
    const char *endpoint; /* the broker's and the namespace, for commands of the program */
    const char *ns;
    const char *key_file; /* of the worker, for the same; NULL: none */
    struct rlimit files;  /* the limit we were started with */
} job_plan_t;

typedef struct job {
    const job_plan_t *plan; /* borrowed */
    tmq_assignment_t *assignment;
    tmq_worker_t *worker; /* borrowed */
    pid_t guard;          /* the process that looks after the program */
    int fds[JOB_FDS];     /* -1: closed */
    size_t fed;           /* bytes of the payload already in the pipe */
    char *out;
    size_t out_bytes;
    body_t large;       /* its stdout, when that is larger than a frame: then out is empty */
    uint64_t large_max; /* bytes of it that the broker takes */
    int large_errno;    /* STOP_NO_ROOM: why */
    upload_t upload;
    bool result_waited; /* it was told that its result waits for room */
    line_t err_line;
    talk_t talk;
    char last_line[TMQ_ERROR_MESSAGE_BYTES_MAX + 1]; /* of stderr */
    char *place; /* its private directory (workplace.h), which the guard removes */
    char *kept;  /* what it left to be attached, which the guard removes when this job goes */
    bool has_kept;
    attach_t attach;
    job_stop_t stop;
    uint64_t kill_at_ms; /* SIGKILL then; 0: not being stopped */
    uint64_t started_at_ms;
    uint64_t
        overrun_at_ms; /* stopped then, if the broker says nothing; 0: its runtime has no end */
    uint64_t flush_until_ms; /* it exited, and its outcome waits for its log until then at most */
    uint64_t turns_until_ms; /* … and for its turns until then; 0: not yet */
    bool exited;
    int status; /* exit status, or 128 + the signal */
    int signal; /* that ended it; 0: none */
} work_job_t;

/* Takes the assignment, and nulls it, on success only. checkpoint: what an earlier attempt kept,
 * NULL: nothing. payload: a file that has the payload, which stays the caller's; -1: the assignment
 * has it. NULL with errno; *unrunnable tells that the program itself cannot be executed. */
work_job_t *job_start (const job_plan_t *plan, tmq_worker_t *worker, tmq_assignment_t **assignment,
                       const tmq_part_t *checkpoint, int payload, bool *unrunnable);
void job_free (work_job_t *job);
/* Removes its directory in place of a guard that is not there any more. */
void job_tidy (const work_job_t *job);

void job_poll_fill (const work_job_t *job, struct pollfd out[JOB_FDS]);
/* Does what the answer of poll allows. True when the process has ended and its output is read. */
bool job_poll_take (work_job_t *job, const struct pollfd in[JOB_FDS]);

/* A line that says why, on TASKMQ_FD, and SIGTERM to its process group; SIGKILL after the grace.
 * Only the first reason counts. */
void job_stop (work_job_t *job, job_stop_t why, uint64_t now_ms);
/* SIGKILL to all that it has started. */
void job_kill (work_job_t *job);

/* TASKMQ_FD. */

/* What the program wrote. */
void talk_take (work_job_t *job, const char *data, size_t bytes);
/* A line for it. */
void talk_tell (work_job_t *job, const char *line);
/* Sends what waits, and fetches answers to its questions as far as there is room. */
void talk_flush (work_job_t *job);
bool talk_waits (const work_job_t *job);
/* The program has ended: files that wait for a turn become one. */
void talk_end (work_job_t *job);
/* Some turns are not told yet. */
bool talk_has_turns (const work_job_t *job);
/* A turn that was refused for now is told again, when its time has come. */
void talk_repeat (work_job_t *job, uint64_t now_ms);
/* All turns are told at once, whatever becomes of them: the outcome comes next. */
void talk_hurry (work_job_t *job);
void talk_free (work_job_t *job);

/* Of an answer to a status message, a checkpoint, a turn or a question: whose it was. False for any
 * other answer. */
bool talk_is_answer (const tmq_completion_t *answer);
unsigned talk_attempt (const tmq_completion_t *answer);
/* job NULL: it has ended. */
void talk_answered (work_job_t *job, const tmq_completion_t *answer);

#endif
