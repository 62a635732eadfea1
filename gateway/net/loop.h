/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The event loop: descriptors, timers, signals. One thread. Only this room knows libevent. */
#ifndef TASKMQ_GATEWAY_NET_LOOP_H
#define TASKMQ_GATEWAY_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
typedef struct loop loop_t;
typedef struct watch watch_t;
typedef void watch_fn (void *context);

loop_t *loop_new (void);
void loop_free (loop_t **self);
struct event_base *loop_base (loop_t *self);
void loop_run (loop_t *self);
void loop_stop (loop_t *self);

/* NULL when memory is exhausted. */
watch_t *loop_readable (loop_t *self, int fd, watch_fn *fn, void *context);
watch_t *loop_signal (loop_t *self, int number, watch_fn *fn, void *context);
/* Not running yet. */
watch_t *loop_timer (loop_t *self, watch_fn *fn, void *context);
/* Runs once, so long from now; it may be set again. */
void watch_after (watch_t *self, int64_t ms);
void watch_cancel (watch_t *self);
void watch_free (watch_t **self); /* accepts NULL */

#endif
