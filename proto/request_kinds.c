/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "request_kinds.h"

#include <stddef.h>

static const request_kind_t kinds[] = {
#define X(OP, NAME, FLAGS) [TASKMQ__REQUEST__OP_##OP] = {#NAME, FLAGS},
    REQUEST_KIND_MAP (X)
#undef X
};

const request_kind_t *request_kind (const Taskmq__Request *request)
{
    size_t index = (size_t) request->op_case;
    if (index >= sizeof kinds / sizeof kinds[0] || kinds[index].name == NULL)
        return NULL;
    return &kinds[index];
}

const char *request_name (const Taskmq__Request *request)
{
    const request_kind_t *kind = request_kind (request);
    return kind != NULL ? kind->name : "unknown";
}
