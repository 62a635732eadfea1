/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "start_stop.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "log/log.h"
#include "store/wakeup.h"
#include "timestamp.h"

enum { LOOK_MS = 100 };

/* Nobody has taken it from the descriptor of signals: whoever takes it acts on it. */
static bool is_told (void)
{
    sigset_t pending;
    sigemptyset (&pending);
    sigpending (&pending);
    return sigismember (&pending, SIGTERM) == 1 || sigismember (&pending, SIGINT) == 1;
}

static _Noreturn void end (const start_stop_t *self)
{
    log_write (LOG_LEVEL_WARNING, "STOPPED-AWAY",
               self->text != NULL
                   ? self->text
                   : "stopped in the middle of a start, which did not hear of it in time",
               LOG_FIELDS (LOG_NUMBER ("exit", (int) self->code)));
    _exit ((int) self->code);
}

static void *watch (void *context)
{
    const start_stop_t *self = context;
    struct pollfd done = {.fd = self->end_fd, .events = POLLIN};
    int64_t told_ms = INT64_MAX;
    pthread_setname_np (pthread_self (), "start");
    while (poll (&done, 1, LOOK_MS) <= 0) {
        int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
        if (!self->told && !is_told ())
            told_ms = INT64_MAX;
        else if (told_ms == INT64_MAX)
            told_ms = now_ms;
        else if (now_ms - told_ms >= (self->ms > 0 ? self->ms : START_STOP_MS))
            end (self);
    }
    return NULL;
}

bool start_stop_begin (start_stop_t *self)
{
    if (self->runs)
        return true;
    self->end_fd = wakeup_new ();
    self->runs = self->end_fd >= 0 && pthread_create (&self->thread, NULL, watch, self) == 0;
    if (!self->runs && self->end_fd >= 0)
        close (self->end_fd);
    return self->runs;
}

void start_stop_end (start_stop_t *self)
{
    if (!self->runs)
        return;
    wakeup_raise (self->end_fd);
    pthread_join (self->thread, NULL);
    close (self->end_fd);
    self->runs = false;
}
