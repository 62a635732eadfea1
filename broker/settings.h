/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the configuration says to the server and its engine. One function, so that a reload says the
 * same as a start. */
#ifndef TASKMQ_BROKER_SETTINGS_H
#define TASKMQ_BROKER_SETTINGS_H

#include "config/config.h"
#include "server.h"

/* Sets limits and defaults, and leaves alone what is opened or random. links: limits/links, or as
 * many as there are open files for. */
void settings_fill (server_options_t *out, const config_t *config, size_t links);

#endif
