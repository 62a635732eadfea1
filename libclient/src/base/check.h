/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What can be judged of a text without the broker. Each returns a code, and names the field. */
#ifndef TASKMQ_CLIENT_CHECK_H
#define TASKMQ_CLIENT_CHECK_H

#include "taskmq.h"

int core_check_text (const char *text, const char *field, size_t bytes_max, tmq_error_t *error);
int core_check_name (const char *name, const char *field, bool required, tmq_error_t *error);
/* Whom a gateway acts for. */
int core_check_owner (const char *owner, tmq_error_t *error);

#endif
