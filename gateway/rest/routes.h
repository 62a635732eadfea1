/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The one table of routes. */
#ifndef TASKMQ_GATEWAY_REST_ROUTES_H
#define TASKMQ_GATEWAY_REST_ROUTES_H

#include <stdio.h>

#include "rest/route.h"

/* The route of an exchange, with its parameters; NULL without one. *allowed (a sum of 1 << method)
 * are the methods that the path has. HEAD goes where GET does. */
const route_t *routes_find (exchange_t *exchange, unsigned *allowed);
size_t routes_index (const route_t *route);
/* The one in that place; NULL behind the last. */
const route_t *routes_at (size_t index);
/* One line for each: method, path, who may. */
void routes_print (FILE *out);

#endif
