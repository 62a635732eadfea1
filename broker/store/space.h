/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Space of the file system. */
#ifndef TASKMQ_STORE_SPACE_H
#define TASKMQ_STORE_SPACE_H

#include <stdint.h>

/* What is free where the directory stands; 0 when nobody knows. */
uint64_t space_free_bytes (const char *directory);

#endif
