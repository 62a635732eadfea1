/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What can be said without starting: --check-config and --check. Both print on stdout. The code
 * is that with which a start would end. */
#ifndef TASKMQ_BROKER_CHECK_H
#define TASKMQ_BROKER_CHECK_H

#include "config/config.h"
#include "exits.h"

/* What the configuration needs of this machine: the directory, open files, space. Touches nothing,
 * so it may be asked beside a running broker. */
exits_t check_config (const config_t *config);
/* Reads all of the data directory, if one is named, while no broker runs on it. */
exits_t check_data (const config_t *config);

#endif
