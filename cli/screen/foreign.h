/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* JSON with the texts of others in it, which is good and which jansson may refuse. */
#ifndef TASKCTL_FOREIGN_H
#define TASKCTL_FOREIGN_H

#include <jansson.h>

#include "json.h"

/* Reads JSON without white space, as our writer makes it. A number that jansson has no room for
 * becomes a text of its digits; a NUL in a key stands there as \u0000.
 * flags: JSON_REJECT_DUPLICATES or 0. NULL: memory ran out, or it is no such JSON. Else to be freed
 * by json_decref. */
json_t *foreign_read (const bytes_t *json, size_t flags);

#endif
