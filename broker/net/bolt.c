/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The system gives the lowest descriptor that is free, so one at the limit says that all below are
 * in use. */
#include "net/bolt.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int limit = INT_MAX;

void bolt_set (int value)
{
    atomic_store (&limit, value);
}

/* Visible, so that they stand before those of libc for every library of the process. Their header
 * is left out: it names the address by a type that no definition can have. */
__attribute__ ((visibility ("default"))) int accept4 (int fd, void *address, void *length,
                                                      int flags);
__attribute__ ((visibility ("default"))) int accept (int fd, void *address, void *length);

int accept4 (int fd, void *address, void *length, int flags)
{
    int taken = (int) syscall (SYS_accept4, fd, address, length, flags);
    if (taken < atomic_load_explicit (&limit, memory_order_relaxed))
        return taken;
    close (taken);
    errno = ECONNABORTED; /* as if the other side had been faster */
    return -1;
}

int accept (int fd, void *address, void *length)
{
    return accept4 (fd, address, length, 0);
}
