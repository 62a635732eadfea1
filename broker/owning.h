/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From a start to owning the data: the store is opened, and its owner's end or a database that is
 * out of reach is waited for. Nothing of the store is used, and nobody is listened to, before. */
#ifndef TASKMQ_BROKER_OWNING_H
#define TASKMQ_BROKER_OWNING_H

#include "store/store.h"

/* As store_open and store_own. A signal to stop (signal_fd, which is read then) ends the process
 * with EXITS_OK while it waits: nothing is open that could be lost. One to read the configuration
 * again is told to come too early. */
store_code_t owning_open (store_t **out, const char *store, const store_options_t *options,
                          int signal_fd, boot_t *boot, store_error_t *error);

#endif
