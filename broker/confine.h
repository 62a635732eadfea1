/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the broker gives up at its start, so that a mistake in it is worth little to whoever finds
 * it: files that are not its own, other programs, a look into other processes.
 *
 * All of this holds for the calling thread and for the threads that it starts from then on, and
 * nothing takes it back. So it comes before the first thread. */
#ifndef TASKMQ_BROKER_CONFINE_H
#define TASKMQ_BROKER_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

enum { CONFINE_TEXT_SIZE = 128 };

/* A directory with all below it, or one file. One that does not exist is passed over. */
typedef struct confine_path {
    const char *path;
    bool write; /* else it is read only */
} confine_path_t;

typedef struct confine_report {
    int landlock;                 /* version of the kernel's interface; 0: files stay reachable */
    bool filter;                  /* the calls that a broker never makes are refused */
    char text[CONFINE_TEXT_SIZE]; /* why one of both is missing; empty if none is */
} confine_report_t;

/* No new privileges; files only below `paths` and a few of the system, and none of them run as a
 * program; none of the calls that start programs, look into other processes, mount, or load code
 * into the kernel: those fail with EPERM. A kernel that lacks a part leaves it out, as `out` says:
 * the broker goes on without. */
void confine_process (confine_report_t *out, const confine_path_t *paths, size_t count);

/* For a process that holds a secret key: leaves no core, and no other process of the same user may
 * look into its memory. False: the kernel refused. */
bool confine_memory (void);

#endif
