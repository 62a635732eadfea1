/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Clients that have closed their side. They may wait for their answers still (RFC 9112, 9.6), or be
 * gone altogether: TCP tells the two apart only by how it answers what we send. So whose answer is
 * not there soon is sent something that clients pass over: a ping of its stream, or in front of an
 * answer an interim one (RFC 9110, 15.2), which HTTP/1.0 does not have. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <poll.h>

#include "base/effort.h"
#include "net/connection_parts.h"
#include "timestamp.h"

enum {
    PROBE_MS = 200, /* most answers are there before; as long is waited for what comes back */
    PROBE_AGAIN_MS = 5000, /* it may go later */
    OLD_PATIENCE_MS = 5000 /* for an answer to HTTP/1.0, where nothing can be sent in front of it */
};

/* Has the system learned that nobody is there? */
static bool is_gone (const connection_t *self)
{
    struct pollfd file = {.fd = bufferevent_getfd (self->buffers)};
    return poll (&file, 1, 0) == 1 && (file.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

static void probe_after (connection_t *self, int64_t ms)
{
    const struct timeval time = {(time_t) (ms / 1000), (suseconds_t) (ms % 1000 * 1000)};
    event_add (self->probe, &time);
}

/* Where something is owed, writing that tells. It may end here. */
static void ask (connection_t *self)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (self->phase == PHASE_BUSY && !self->exchange.request->minor_0) {
        evbuffer_add (connection_output (self), interim, sizeof interim - 1);
    } else if (self->phase == PHASE_STREAM) {
        self->running = true;
        connection_speak (self);
        connection_run (self);
    }
}

static void probe (evutil_socket_t fd, short what, void *context)
{
    connection_t *self = context;
    (void) fd;
    (void) what;
    effort_begin ();
    const bool due = self->phase == PHASE_BUSY || self->phase == PHASE_STREAM;
    const bool is_old = self->phase == PHASE_BUSY && self->exchange.request->minor_0;
    if (is_gone (self) ||
        (is_old && clock_ms (CLOCK_MONOTONIC) - self->ended_ms >= OLD_PATIENCE_MS)) {
        connection_free (self);
        return;
    }
    self->asked = !self->asked && due && connection_owed (self) == 0;
    probe_after (self, self->asked ? PROBE_MS : PROBE_AGAIN_MS);
    if (self->asked)
        ask (self);
}

void connection_await_leaving (connection_t *self)
{
    self->ended = true;
    self->ended_ms = clock_ms (CLOCK_MONOTONIC);
    self->probe = is_gone (self) ? NULL : evtimer_new (loop_base (self->set->loop), probe, self);
    if (self->probe == NULL) {
        connection_free (self);
        return;
    }
    probe_after (self, PROBE_MS);
    if (self->phase != PHASE_CLOSING)
        connection_run (self);
    else if (connection_owed (self) == 0)
        connection_free (self);
}
