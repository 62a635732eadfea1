/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "pulse.h"

#include <stdlib.h>
#include <unistd.h>

#include "notify.h"

enum { LOOK_MS = 100 /* until it is ready */, BEAT_MS_MIN = 100 };

struct pulse {
    const service_t *service;
    watch_t *timer;
    bool ready;
    int64_t beat_ms; /* 0: nobody wants to know */
};

/* Half of what the manager waits for; 0: it does not, or waits for another process. */
static int64_t wanted_beat_ms (void)
{
    const char *text = getenv ("WATCHDOG_USEC");
    const char *pid = getenv ("WATCHDOG_PID");
    const long long us = text != NULL ? strtoll (text, NULL, 10) : 0;
    if (us <= 0 || (pid != NULL && strtoll (pid, NULL, 10) != (long long) getpid ()))
        return 0;
    const int64_t ms = us / 2000;
    return ms > BEAT_MS_MIN ? ms : BEAT_MS_MIN;
}

static bool is_ready (const service_t *service)
{
    for (size_t i = 0; i < service->links_count; i++) {
        link_numbers_t numbers;
        link_count (service->links[i], &numbers);
        if (numbers.connects == 0)
            return false;
    }
    return true;
}

static void beat (void *context)
{
    pulse_t *self = context;
    if (!self->ready && is_ready (self->service)) {
        self->ready = true;
        notify_supervisor ("READY=1\nSTATUS=serves");
    }
    if (self->beat_ms > 0)
        notify_supervisor ("WATCHDOG=1");
    if (!self->ready)
        watch_after (self->timer, LOOK_MS);
    else if (self->beat_ms > 0)
        watch_after (self->timer, self->beat_ms);
}

pulse_t *pulse_new (loop_t *loop, const service_t *service)
{
    pulse_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->service = service;
    self->beat_ms = wanted_beat_ms ();
    self->timer = loop_timer (loop, beat, self);
    if (self->timer == NULL) {
        free (self);
        return NULL;
    }
    notify_supervisor ("STATUS=listens, and waits for the broker");
    watch_after (self->timer, 0);
    return self;
}

void pulse_free (pulse_t **self)
{
    if (*self == NULL)
        return;
    notify_supervisor ("STOPPING=1");
    watch_free (&(*self)->timer);
    free (*self);
    *self = NULL;
}
