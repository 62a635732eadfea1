/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/behalf.h"

#include <assert.h>
#include <stdio.h>

#include "core/tasks/account.h"

bool behalf_begin (requests_t *self, link_t *link, const char *owner, behalf_own_t *own)
{
    char name[TMQ_OWNER_BYTES_MAX + 1];
    access_t access = {0};
    int length =
        snprintf (name, sizeof (name), "%s%c%s", name_text (link->identity), BEHALF_MARK, owner);
    bool anybody = self->base->config.planted_bug == ENGINE_BUG_BEHALF_OF_ANYBODY;
    if (length < 0 || (size_t) length >= sizeof (name) ||
        !access_link (&access, self->policy, anybody ? owner : name, link->space->name,
                      self->base->clocks.wall_ms)) {
        access_clear (&access);
        return false;
    }
    if (self->base->config.planted_bug == ENGINE_BUG_BEHALF_UNSCOPED)
        access.everywhere |= RIGHT_READ | RIGHT_BODY;
    own->identity = link->identity;
    own->access = link->access;
    link->identity = names_keep (&self->base->names, name);
    link->access = access;
    link->charged = account_of (self->tasks, link->identity);
    if (link->charged != NULL && access.principal != NULL)
        account_limit (self->tasks, link->charged, access.principal->quotas);
    return true;
}

void behalf_end (requests_t *self, link_t *link, behalf_own_t *own)
{
    assert (!link->dead);
    account_release (self->tasks, link->charged);
    link->charged = NULL;
    access_clear (&link->access);
    names_drop (&self->base->names, link->identity);
    link->identity = own->identity;
    link->access = own->access;
}
