/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/service.h"

#include <string.h>

#include "base/trees.h"

bool service_has_room (const service_t *self)
{
    const uint64_t held = self->connections != NULL ? self->connections->memory_bytes : 0;
    return held + trees_bytes () <= self->settings.numbers[SETTING_MEMORY_BYTES_MAX];
}

link_t *service_link (const service_t *self, const char *ns)
{
    for (size_t i = 0; i < self->links_count; i++)
        if (strcmp (link_ns (self->links[i]), ns) == 0)
            return self->links[i];
    return NULL;
}

service_t *service_of (const exchange_t *exchange)
{
    return exchange->service;
}
