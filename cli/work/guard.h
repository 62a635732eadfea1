/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The guard: a process between the worker and the program of one attempt.
 *
 * A worker that is killed cannot stop its programs, and the task is soon given to another one. The
 * guard sees that the worker is gone, and ends the program with everything that the program has
 * started, also what left its process group: orphans come to the guard, which is their subreaper.
 *
 * The two talk over a socket pair. The worker sends one byte per wish (guard_wish_t); its end of
 * the pair closes when it dies. The guard sends one guard_end_t when the program has ended and its
 * private directory is removed; one that takes long goes on being removed behind that. What the
 * program left to be attached stays until the worker closes its end.
 *
 * Failure policy: the program is killed with its guard, but then nobody looks for what the program
 * has started. A guard holds nothing and does little, so hardly anything but a deliberate SIGKILL
 * ends one. */
#ifndef TASKCTL_GUARD_H
#define TASKCTL_GUARD_H

#include <stdbool.h>
#include <sys/resource.h>

typedef enum guard_wish {
    GUARD_STOP =
        'T',         /* SIGTERM to the program's process group; once it ends, SIGKILL to the rest */
    GUARD_KILL = 'K' /* SIGKILL to all that the program has started */
} guard_wish_t;

/* How the program ended. */
typedef struct guard_end {
    int status; /* exit status, or 128 + the signal */
    int signal; /* that ended it; 0: none */
    bool kept;  /* it left something to be attached (workplace_kept) */
} guard_end_t;

/* What the program gets. */
typedef struct guard_plan {
    const char *path;
    char **command;
    char **environment;
    const struct rlimit *files;
    int in, out, err, talk; /* become its 0, 1, 2 and GUARD_TALK_FD */
    int failure;            /* gets the errno if it cannot be executed; closed when it can */
    const char *place;      /* removed when it has ended (workplace.h) … */
    const char *artifacts;  /* … but for this, … */
    const char *kept;       /* … which is moved to here */
} guard_plan_t;

/* The program's end of TASKMQ_FD: one digit, because dash reads no more behind >&. */
enum { GUARD_TALK_FD = 3 };

/* In a new child of the worker, which may have had threads: does only what a signal handler may do.
 * `channel` is the guard's end of the socket pair. */
_Noreturn void guard_run (const guard_plan_t *plan, int channel);

#endif
