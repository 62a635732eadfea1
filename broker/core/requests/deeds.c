/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/deeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "request_kinds.h"

/* NULL: there is no place left. */
static deed_t *add (requests_t *self, deed_kind_t kind, const link_t *link, const char *identity)
{
    static const bool SAMPLED[] = {
#define X(NAME, some) [DEED_##NAME] = some,
        DEED_KIND_MAP (X)
#undef X
    };
    bool sampled = SAMPLED[kind];
    if (self->deeds_count >= (sampled ? DEEDS_SAMPLED_MAX : DEEDS_MAX)) {
        self->deeds_left += !sampled;
        return NULL;
    }
    deed_t *deed = &self->deeds[self->deeds_count++];
    *deed = (deed_t){.kind = kind, .peer = link->peer};
    snprintf (deed->identity, sizeof (deed->identity), "%s", identity);
    if (link->established)
        snprintf (deed->ns, sizeof (deed->ns), "%s", link->space->name);
    return deed;
}

void deny (call_t *call)
{
    requests_t *self = call->requests;
    self->base->counts.denied++;
    deed_t *deed = add (self, DEED_DENIED, call->link, call->identity);
    if (deed != NULL)
        deed->request = request_kind (call->request)->name;
}

void deeds_quota (requests_t *self, const link_t *link, const char *identity, const char *text)
{
    deed_t *deed = add (self, DEED_QUOTA, link, identity);
    if (deed != NULL)
        snprintf (deed->text, sizeof (deed->text), "%s", text);
}

/* A link without a line has all rights, and owns what bears its name. */
static bool is_own (const link_t *link, const found_t *found)
{
    const principal_t *principal = link->access.principal;
    const char *identity = name_text (link->identity);
    if (found->holder != NULL && strcmp (found->holder, identity) == 0)
        return true;
    return principal != NULL ? principal_is (principal, found->owner)
                             : strcmp (found->owner, identity) == 0;
}

void deeds_task (call_t *call, deed_kind_t kind, const found_t *found)
{
    link_t *link = call->link;
    /* Without a policy everybody is the operator, and nobody is told from another. */
    if (link->access.policy == NULL || found->owner == NULL || is_own (link, found) ||
        !access_sees (&link->access, found->queue, found->owner, found->holder,
                      RIGHT_ADMIN | RIGHT_OPERATE))
        return;
    deed_t *deed = add (call->requests, kind, link, call->identity);
    if (deed == NULL)
        return;
    deed->request = request_kind (call->request)->name;
    deed->task = found->task != NULL ? found->task->id : found->record->id;
    snprintf (deed->text, sizeof (deed->text), "%s", found->owner);
}

static deed_t *add_named (call_t *call, deed_kind_t kind, const char *text)
{
    deed_t *deed = add (call->requests, kind, call->link, call->identity);
    if (deed == NULL)
        return NULL;
    deed->request = request_kind (call->request)->name;
    snprintf (deed->text, sizeof (deed->text), "%s", text);
    return deed;
}

void deeds_queue (call_t *call, const char *queue)
{
    add_named (call, DEED_QUEUE, queue);
}

void deeds_worker (call_t *call, const char *worker)
{
    add_named (call, DEED_WORKER, worker);
}

void deeds_import (call_t *call, const uint8_t *id, const char *queue)
{
    deed_t *deed = add_named (call, DEED_IMPORT, queue);
    if (deed != NULL)
        memcpy (deed->task.bytes, id, sizeof (deed->task.bytes));
}

bool deeds_next (requests_t *self, deed_t *out)
{
    if (self->deeds_told < self->deeds_count) {
        *out = self->deeds[self->deeds_told++];
        return true;
    }
    self->deeds_told = self->deeds_count = 0;
    if (self->deeds_left == 0)
        return false;
    *out = (deed_t){.kind = DEED_MORE};
    snprintf (out->text, sizeof (out->text), "%" PRIu64 " more at once", self->deeds_left);
    self->deeds_left = 0;
    return true;
}
