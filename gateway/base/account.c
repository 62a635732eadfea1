/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/account.h"

#include <stdlib.h>

account_t *account_new (void)
{
    account_t *self = calloc (1, sizeof *self);
    if (self != NULL)
        self->begins.most = 1;
    return account_retain (self);
}

account_t *account_retain (account_t *self)
{
    if (self != NULL)
        self->references++;
    return self;
}

void account_release (account_t *self)
{
    if (self != NULL && --self->references == 0)
        free (self);
}
