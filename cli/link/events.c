/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/events.h"

#include "screen/output.h"

tmq_event_t *next_event (const app_t *app, tmq_subscription_t *subscription, int *code)
{
    tmq_event_t *event = NULL;
    tmq_error_t error = {0};
    error.code = tmq_subscription_next (&event, subscription, 0, &error);
    if (error.code != TMQ_OK && error.code != TMQ_TIMEOUT)
        *code = library_error (app, &error, NULL);
    return error.code == TMQ_OK ? event : NULL;
}
