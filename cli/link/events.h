/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Events of a subscription, as they come. */
#ifndef TASKCTL_EVENTS_H
#define TASKCTL_EVENTS_H

#include "line/app.h"

/* The next event that is there already, to be freed. NULL: there is none, or it failed, which was
 * said and is an exit code in *code. */
tmq_event_t *next_event (const app_t *app, tmq_subscription_t *subscription, int *code);

#endif
