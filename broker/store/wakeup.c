/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An eventfd as the wake-up of a queue. A write or read that fails for another reason than an
 * interruption would lose a wake-up for ever, so it ends the process. */
#include "store/wakeup.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int wakeup_new (void)
{
    return eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void wakeup_raise (int fd)
{
    const uint64_t one = 1;
    ssize_t written;
    do
        written = write (fd, &one, sizeof (one));
    while (written < 0 && errno == EINTR);
    assert (written == (ssize_t) sizeof (one));
}

void wakeup_lower (int fd)
{
    uint64_t count;
    ssize_t got;
    do
        got = read (fd, &count, sizeof (count));
    while (got < 0 && errno == EINTR);
    assert (got == (ssize_t) sizeof (count) || errno == EAGAIN);
}
