/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What this broker has to reach by its configuration, and nothing beyond (confine.h). */
#ifndef TASKMQ_BROKER_REACH_H
#define TASKMQ_BROKER_REACH_H

#include "config/config.h"
#include "data.h"

/* Confines the process to the data directory and to the directories that the configuration names,
 * and logs how far. After the data directory is open and before the first thread. */
void reach_confine (const config_t *config, const data_t *data);

#endif
