/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which filters the streams of each holder have: each is a subscription at the broker. Pure. */
#ifndef TASKMQ_GATEWAY_EVENTS_FILTERS_H
#define TASKMQ_GATEWAY_EVENTS_FILTERS_H

#include <stdbool.h>

#include "base/account.h"

typedef struct filter_use filter_use_t;

/* For one more stream of the account, with the filter of this key (events/key.h) on this link.
 * NULL: *full tells whether it has `most` others already; else memory is exhausted. */
filter_use_t *filters_take (filter_use_t **all, account_t *account, const void *link,
                            const char *key, uint64_t most, bool *full);
/* Accepts a NULL object. */
void filters_give (filter_use_t **all, filter_use_t **self);

#endif
