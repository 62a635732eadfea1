/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The archive of this broker (store/archive/archive.h), as the configuration names it. */
#ifndef TASKMQ_BROKER_ARCHIVED_H
#define TASKMQ_BROKER_ARCHIVED_H

#include "config/config.h"
#include "core/base/shared_limit.h"
#include "exits.h"
#include "store/archive/archive_options.h"

enum { ARCHIVED_ERROR_SIZE = 4096 + 256 };

/* The directory that store/archive names is one, may be written, and is not the data's own. Also
 * EXITS_OK where none is named. data: NULL: not known. */
exits_t archived_judge (const config_t *config, const char *data, char error[ARCHIVED_ERROR_SIZE]);
/* Fills the options, which say in the log what the archive says; false: none is named. The texts
 * are lent by the configuration. */
bool archived_fill (archive_options_t *out, const config_t *config, const char *data,
                    const shared_limit_t *free_bytes_min);

#endif
