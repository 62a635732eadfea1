/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The way in. Implements the handler of exchanges: it looks at a head (is it meant for us, what is
 * it, whose is it, may they), then runs the route. */
#ifndef TASKMQ_GATEWAY_REST_DOOR_H
#define TASKMQ_GATEWAY_REST_DOOR_H

#include "rest/service.h"

/* service must stay where it is. */
exchange_handler_t door_handler (service_t *service);
/* Ends an exchange whose token was removed, has other rights now, or is over. context: the
 * service. */
void door_check (void *context, exchange_t *exchange);

#endif
