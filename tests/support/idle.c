/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A loop that sleeps long when nothing happens: preloaded into the broker. A poll with a timeout
 * waits for minutes instead, so what nobody is woken for is not done by chance. */
#include <dlfcn.h>
#include <poll.h>

enum { LONG_MS = 300 * 1000 };

__attribute__ ((visibility ("default"))) int poll (struct pollfd *fds, nfds_t count, int timeout_ms)
{
    union { /* a function pointer out of an object pointer, as POSIX wants it */
        void *object;
        int (*function) (struct pollfd *, nfds_t, int);
    } next = {dlsym (RTLD_NEXT, "poll")};
    return next.function (fds, count, timeout_ms > 0 ? LONG_MS : timeout_ms);
}
