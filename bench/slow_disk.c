/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A slower disk: preloaded into a server, it adds SLOW_DISK_US microseconds to each fsync and
 * fdatasync, and to each write that is one as well (RWF_DSYNC), after the real one.
 *
 * msync and sync_file_range are left alone: no system measured here acknowledges on them
 * (PostgreSQL uses the latter as a hint). A program that makes its system calls itself, as NATS in
 * Go, is not slowed down. */

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

typedef int sync_function_t (int fd);
typedef ssize_t write_function_t (int fd, const struct iovec *pieces, int count, off_t at,
                                  int flags);

static struct timespec added;

/* At the start, because programs write over their environment to show a title. */
static void __attribute__ ((constructor)) read_environment (void)
{
    const char *text = getenv ("SLOW_DISK_US");
    long us = text ? strtol (text, NULL, 10) : 0;
    added = (struct timespec){us / 1000000, us % 1000000 * 1000};
}

/* Waits on when a signal interrupts; keeps errno, which belongs to the sync. */
static void delay (void)
{
    struct timespec left = added;
    int before = errno;
    while (clock_nanosleep (CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
    errno = before;
}

static int slowly (const char *name, int fd)
{
    sync_function_t *real = (sync_function_t *) (uintptr_t) dlsym (RTLD_NEXT, name);
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    int result = real (fd);
    delay ();
    return result;
}

int fsync (int fd)
{
    return slowly ("fsync", fd);
}

int fdatasync (int fd)
{
    return slowly ("fdatasync", fd);
}

static ssize_t write_slowly (const char *name, int fd, const struct iovec *pieces, int count,
                             off_t at, int flags)
{
    write_function_t *real = (write_function_t *) (uintptr_t) dlsym (RTLD_NEXT, name);
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    ssize_t result = real (fd, pieces, count, at, flags);
    if (flags & (RWF_DSYNC | RWF_SYNC))
        delay ();
    return result;
}

ssize_t pwritev2 (int fd, const struct iovec *pieces, int count, off_t at, int flags)
{
    return write_slowly ("pwritev2", fd, pieces, count, at, flags);
}

ssize_t pwritev64v2 (int fd, const struct iovec *pieces, int count, off_t at, int flags)
{
    return write_slowly ("pwritev64v2", fd, pieces, count, at, flags);
}
