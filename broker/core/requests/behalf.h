/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests that a gateway makes for somebody else (Request.owner).
 *
 * While such a request is looked up and handled its link stands for that owner: identity and access
 * are his, and what he submits and reads is charged to his account. So no handler knows of it. What
 * outlives the request has copies. The link's connection, its subscriptions and its waits are the
 * gateway's. */
#ifndef TASKMQ_CORE_BEHALF_H
#define TASKMQ_CORE_BEHALF_H

#include "core/requests/requests.h"

typedef struct behalf_own { /* of the link, meanwhile */
    name_t *identity;
    access_t access;
} behalf_own_t;

/* The link stands for the request's owner until behalf_end; it may not be closed meanwhile. False:
 * it may not act for him, and nothing was changed. */
bool behalf_begin (requests_t *self, link_t *link, const char *owner, behalf_own_t *own);
void behalf_end (requests_t *self, link_t *link, behalf_own_t *own);

#endif
