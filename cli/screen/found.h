/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that a search found, with what of their texts it was. */
#ifndef TASKCTL_FOUND_H
#define TASKCTL_FOUND_H

#include "screen/items.h"

/* The tasks of a page: rows with an excerpt below each, ids, or JSON, by the format. */
void found_show (items_t *items, const tmq_found_list_t *page);
/* What the answer may lack, on stderr. */
void found_note (app_t *app, const tmq_found_list_t *list);

#endif
