/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Finding the broker and connecting to it. */
#ifndef TASKCTL_CONNECT_H
#define TASKCTL_CONNECT_H

#include "line/app.h"

/* Finds the broker, as the library does, and connects. Where it is certain that nobody is there, it
 * does not wait. 0 or an exit code. */
int app_connect (app_t *app);
/* The same, but waits in any case until --timeout: a broker may be started yet. */
int app_connect_patiently (app_t *app);
/* As app_connect, but says nothing: a code of taskmq_types.h, and the reason in error. */
int app_try (app_t *app, tmq_broker_info_t *info, tmq_error_t *error);
/* Fills in how the command line says to reach a broker at those endpoints, which are borrowed;
 * count 0: where it is found. */
void app_client_options (const app_t *app, const char *const *uris, size_t count,
                         tmq_client_options_t *options);
/* Which endpoints would be asked, without a connection: a code of taskmq_types.h, and the reason in
 * error. */
int app_endpoints (const app_t *app, tmq_whoami_t *who, tmq_error_t *error);
/* Who said where the broker is, in words of the command line. */
const char *app_told_by (const app_t *app, const tmq_whoami_t *who);
/* With several endpoints a request may last as long as a take-over, unless --timeout is given. */
void app_settle_timeout (app_t *app, tmq_client_t *client);
void app_plan_timeout (app_t *app, const tmq_whoami_t *who);
/* Goes away politely. */
void app_disconnect (app_t *app);

#endif
