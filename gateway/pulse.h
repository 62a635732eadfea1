/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the service manager is told (sd_notify(3)): that the gateway is ready when every namespace
 * has had a way to the broker, and that its loop turns, where it wants to know. */
#ifndef TASKMQ_GATEWAY_PULSE_H
#define TASKMQ_GATEWAY_PULSE_H

#include "net/loop.h"
#include "rest/service.h"

typedef struct pulse pulse_t;

/* service is borrowed. NULL when memory is exhausted. */
pulse_t *pulse_new (loop_t *loop, const service_t *service);
void pulse_free (pulse_t **self); /* accepts NULL */

#endif
