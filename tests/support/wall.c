/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Preloaded into a program: its wall clock is TASKMQ_WALL_S seconds ahead of the machine's, in each
 * way to ask for it. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__ ((visibility ("default")))

static long ahead_s (void)
{
    const char *ahead = getenv ("TASKMQ_WALL_S");
    return ahead == NULL ? 0 : atol (ahead);
}

EXPORTED int clock_gettime (clockid_t id, struct timespec *out)
{
    long result = syscall (SYS_clock_gettime, id, out);
    if (result == 0 && id == CLOCK_REALTIME)
        out->tv_sec += ahead_s ();
    return (int) result;
}

EXPORTED int gettimeofday (struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    int result = clock_gettime (CLOCK_REALTIME, &now);
    (void) zone;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return result;
}

EXPORTED time_t time (time_t *out)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
