/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/damage.h"

void damage_tell (damage_t *self, const store_error_t *error)
{
    if (self == NULL)
        return;
    atomic_fetch_add (&self->count, 1);
    if (self->found != NULL)
        self->found (self->context, error);
}
