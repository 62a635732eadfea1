/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The gateway: started in order, stopped in order. */
#ifndef TASKMQ_GATEWAY_GATEWAY_H
#define TASKMQ_GATEWAY_GATEWAY_H

#include "config.h"

/* Serves until SIGTERM or SIGINT. config stays where it is. Returns the exit code. */
int gateway_run (config_t *config);

#endif
