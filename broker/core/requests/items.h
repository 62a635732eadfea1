/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests about items. */
#ifndef TASKMQ_CORE_REQUESTS_ITEMS_H
#define TASKMQ_CORE_REQUESTS_ITEMS_H

#include "core/requests/requests.h"

/* What is to be looked up of a box, and of items of it (numbers may be NULL). */
void want_items (const requests_t *self, const link_t *link, const char *session, const char *box,
                 const uint64_t *numbers, size_t count, key_list_t *keys);
/* Answers an item_read whose rows were read. */
void items_answer (requests_t *self, read_job_t *job);

#endif
