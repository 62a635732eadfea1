/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What stays in one namespace, as text: NAMESPACE=max_age:30d,max_count:1000, or NAMESPACE=none. */
#ifndef TASKMQ_CONFIG_RETAIN_H
#define TASKMQ_CONFIG_RETAIN_H

#include "core/base/retention.h"
#include "units.h"

/* False: why says what is wrong with it. */
bool retain_parse (retention_of_t *out, const char *text, char why[UNITS_ERROR_SIZE]);

#endif
