/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Filters that ask for the same, as the same text. Pure. */
#ifndef TASKMQ_GATEWAY_EVENTS_KEY_H
#define TASKMQ_GATEWAY_EVENTS_KEY_H

#include "taskmq.h"

/* Whatever the order of the values. NULL when memory is exhausted; to be freed. owner may be
 * NULL. */
char *filter_key (const tmq_filter_t *filter, const char *owner);

#endif
