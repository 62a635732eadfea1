/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The layers of a configuration below the command line: its files, then the environment. */
#ifndef TASKMQ_CONFIG_LAYERS_H
#define TASKMQ_CONFIG_LAYERS_H

#include "config/config.h"

/* The file, then each FILE.d/?*.conf; that directory may be missing. */
bool layers_files (config_t *self, const char *file, char error[CONFIG_ERROR_SIZE]);
/* Every TASKMQD_SECTION_KEY. One that is no key is an error; TASKMQD_OPTIONS belongs to the service
 * file. Items of a list stand between spaces. */
bool layers_environment (config_t *self, char *const *environment, char error[CONFIG_ERROR_SIZE]);

#endif
