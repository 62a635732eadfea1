/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/loop.h"

#include <event2/event.h>
#include <stdlib.h>

struct loop {
    struct event_base *base;
};

struct watch {
    struct event *event;
    watch_fn *fn;
    void *context;
};

loop_t *loop_new (void)
{
    loop_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->base = event_base_new ();
    if (self->base == NULL) {
        free (self);
        return NULL;
    }
    return self;
}

void loop_free (loop_t **self)
{
    if (*self == NULL)
        return;
    event_base_free ((*self)->base);
    free (*self);
    *self = NULL;
}

struct event_base *loop_base (loop_t *self)
{
    return self->base;
}

void loop_run (loop_t *self)
{
    event_base_dispatch (self->base);
}

void loop_stop (loop_t *self)
{
    event_base_loopbreak (self->base);
}

static void happened (evutil_socket_t fd, short what, void *argument)
{
    const watch_t *watch = argument;
    (void) fd;
    (void) what;
    watch->fn (watch->context);
}

static watch_t *watch_new (loop_t *self, int fd, short what, watch_fn *fn, void *context)
{
    watch_t *watch = calloc (1, sizeof *watch);
    if (watch == NULL)
        return NULL;
    watch->fn = fn;
    watch->context = context;
    watch->event = event_new (self->base, fd, what, happened, watch);
    if (watch->event == NULL ||
        ((what & (EV_READ | EV_SIGNAL)) != 0 && event_add (watch->event, NULL) != 0))
        watch_free (&watch);
    return watch;
}

watch_t *loop_readable (loop_t *self, int fd, watch_fn *fn, void *context)
{
    return watch_new (self, fd, EV_READ | EV_PERSIST, fn, context);
}

watch_t *loop_signal (loop_t *self, int number, watch_fn *fn, void *context)
{
    return watch_new (self, number, EV_SIGNAL | EV_PERSIST, fn, context);
}

watch_t *loop_timer (loop_t *self, watch_fn *fn, void *context)
{
    return watch_new (self, -1, 0, fn, context);
}

void watch_after (watch_t *self, int64_t ms)
{
    const struct timeval time = {(time_t) (ms / 1000), (suseconds_t) (ms % 1000 * 1000)};
    event_add (self->event, &time);
}

void watch_cancel (watch_t *self)
{
    event_del (self->event);
}

void watch_free (watch_t **self)
{
    if (*self == NULL)
        return;
    if ((*self)->event != NULL)
        event_free ((*self)->event);
    free (*self);
    *self = NULL;
}
