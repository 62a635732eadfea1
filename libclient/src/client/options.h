/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Options: defaults under what the caller's version of a struct has, and checks. */
#ifndef TASKMQ_CLIENT_OPTIONS_H
#define TASKMQ_CLIENT_OPTIONS_H

#include "taskmq.h"

/* What a struct of an older or newer header says, over the defaults of this library. in NULL: only
 * the defaults. Strings stay the caller's. */
int options_client (tmq_client_options_t *out, const tmq_client_options_t *in, tmq_error_t *error);
void options_subscription (tmq_subscription_options_t *out, const tmq_subscription_options_t *in);
void options_worker (tmq_worker_options_t *out, const tmq_worker_options_t *in);
/* The longest pause before a new connection, for so many endpoints. options: of options_client. */
uint32_t options_reconnect_max (const tmq_client_options_t *options, size_t endpoints);

#endif
