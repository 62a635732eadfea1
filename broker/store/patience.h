/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The end of patience: a process that stops waits for no data that is out of reach. */
#ifndef TASKMQ_STORE_PATIENCE_H
#define TASKMQ_STORE_PATIENCE_H

#include "store/store.h"

/* From now on patient readers (store_reader_be_patient) answer …_AWAY as others do, also those that
 * wait already. For the stop: what they would have read, the next start reads. Any thread. */
void store_end_patience (store_t *self);

#endif
