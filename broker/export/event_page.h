/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Pages of events, also from tables of which a page is damaged. */
#ifndef TASKMQ_EXPORT_EVENT_PAGE_H
#define TASKMQ_EXPORT_EVENT_PAGE_H

#include "store/store.h"

/* READ_BLOCKS behind this position, with `limit` bytes of blocks; read_clear is the caller's in
 * every case. *passed: what follows the position cannot be read, and the blocks are the first ones
 * behind that; there are none while nothing readable stands there. DAMAGED: nothing can be read
 * at all. Any other code is the store's. */
store_code_t event_page_read (read_t *out, store_reader_t *reader, uint64_t after_pos, size_t limit,
                              bool *passed);

#endif
