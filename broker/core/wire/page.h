/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Records as the tasks of a message. */
#ifndef TASKMQ_CORE_PAGE_H
#define TASKMQ_CORE_PAGE_H

#include "bytes.h"
#include "core/base/clocks.h"
#include "core/wire/filter.h"

/* Appends records from number `first` on as elements of `field`, as many as an envelope takes,
 * without those that are over or that the filter (NULL: none) does not take, and bare where access
 * says so. Returns the number of
 * the first one that is left. */
size_t pack_page (bytes_t *out, uint32_t field, record_t *const *records, size_t count,
                  size_t first, filter_copy_t *filter, access_t *access, const clocks_t *clocks);

#endif
