/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of links. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/link.h"

static uint32_t peer_hash (const links_t *self, peer_t peer)
{
    uint8_t key[16] = {0};
    memcpy (key, &peer, sizeof (peer));
    return secrets_hash_id (&self->base->secrets, 0, key);
}

link_t *link_find (const links_t *self, peer_t peer)
{
    uint32_t hash = peer_hash (self, peer);
    size_t cursor = MAP_START;
    link_t *link = map_next (&self->by_peer, hash, &cursor);
    while (link != NULL && link->peer != peer)
        link = map_next (&self->by_peer, hash, &cursor);
    return link;
}

link_t *link_make (links_t *self, peer_t peer)
{
    link_t *link = link_find (self, peer);
    if (link != NULL)
        return link;
    link = memory_zero (1, sizeof (*link));
    link->peer = peer;
    link->alarm.kind = ALARM_LINK;
    list_init (&link->ready);
    list_init (&link->subscriptions);
    list_init (&link->streams);
    list_init (&link->workers);
    list_init (&link->stats);
    list_init (&link->errands);
    list_init (&link->reads);
    list_init (&link->page_reads);
    list_init (&link->paged);
    map_insert (&self->by_peer, peer_hash (self, peer), link);
    return link;
}

void link_free_if_idle (links_t *self, link_t *link)
{
    if (link->established || link->references > 0 || !list_is_empty (&link->ready))
        return;
    if (!link->dead)
        map_remove (&self->by_peer, peer_hash (self, link->peer), link);
    list_remove (&link->output);
    list_remove (&link->refused);
    map_free (&link->subscriptions_by_id);
    free (link);
}

void link_drop_import (links_t *self, link_t *link)
{
    if (link->import == NULL)
        return;
    list_remove (&link->import->node);
    names_drop (&self->base->names, link->import->identity);
    bytes_free (&link->import->bytes);
    free (link->import);
    link->import = NULL;
}

void link_remove (links_t *self, link_t *link)
{
    assert (!link->dead);
    link_drop_import (self, link);
    map_remove (&self->by_peer, peer_hash (self, link->peer), link);
    link->dead = true;
    alarm_disarm (&link->alarm);
}

void link_unreference (links_t *self, link_t *link)
{
    assert (link->references > 0);
    link->references--;
    link_free_if_idle (self, link);
}

int64_t link_silence_ms (const links_t *self)
{
    return (int64_t) self->base->config.heartbeat_ms * TMQ_HEARTBEATS_MISSED_MAX;
}

bool link_heard (links_t *self, link_t *link)
{
    const clocks_t *clocks = &self->base->clocks;
    link->heard_ms = clocks_awake_ms (clocks);
    if (!link->established)
        return false;
    bool changed = gate_is_closed (&link->gate, GATE_UNHEARD);
    if (gate_is_closed (&link->gate, GATE_GONE | GATE_SILENT))
        wheel_arm (&self->base->fine, &link->alarm, clocks->mono_ms + link_silence_ms (self));
    gate_open (&link->gate, GATE_UNHEARD);
    return changed;
}

bool link_token_is (const link_t *link, const uint8_t *token, size_t length)
{
    return link->established && !gate_is_closed (&link->gate, GATE_LOST) &&
           length == sizeof (link->token) &&
           sodium_memcmp (token, link->token, sizeof (link->token)) == 0;
}

bool link_is (const link_t *link, const char *identity)
{
    bool anybody = link->access.policy == NULL && link->access.behalf == NULL;
    return anybody || strcmp (name_text (link->identity), identity) == 0 ||
           (link->access.principal != NULL && principal_is (link->access.principal, identity));
}
