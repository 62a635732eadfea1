/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Packed messages as an earlier schema had them, made anew in today's form. What is no message of
 * that form is false, and *out is then of no use. *out is appended to. */
#ifndef TASKMQ_STORE_RESHAPE_H
#define TASKMQ_STORE_RESHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

/* Until schema 6 of the tables, and 2 of journal.db, progress was whole numbers. */
bool reshape_record_6 (bytes_t *out, const uint8_t *bytes, size_t length);
bool reshape_events_6 (bytes_t *out, const uint8_t *bytes, size_t length);
/* With the sums of before and after: false also when the batch is damaged. */
bool reshape_batch_2 (bytes_t *out, const uint8_t *bytes, size_t length);

#endif
