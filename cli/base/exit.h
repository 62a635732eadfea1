/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Exit codes, also of several things done at once. */
#ifndef TASKCTL_EXIT_H
#define TASKCTL_EXIT_H

#include <stddef.h>

/* A stable interface: scripts are written against these numbers. */
typedef enum exit_code {
    EXIT_OK = 0,
    EXIT_OTHER = 1,
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,
    EXIT_DENIED = 4,
    EXIT_NOT_FOUND = 5,
    EXIT_CONFLICT = 6,
    EXIT_DEADLINE = 7,
    EXIT_TASK = 8,
    EXIT_SOME = 9,
    EXIT_OVERLOADED = 10,
    EXIT_UNKNOWN = 11,
    EXIT_INTERRUPTED = 130,
    EXIT_TERMINATED = 143
} exit_code_t;

/* Of a code of taskmq_types.h. */
int exit_of_code (int code);

/* Several things were to be done and some failed: which exit code that makes. */
typedef struct tally {
    size_t done;
    size_t failed;
    int code; /* of the failures, if they all had the same, else EXIT_SOME */
} tally_t;
void tally_add (tally_t *tally, int exit_code);
int tally_exit (const tally_t *tally);

#endif
