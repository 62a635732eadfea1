/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of peers: found through a keyed hash of the routing id (a peer chooses its routing id,
 * so it must not be able to choose its chain), through the place that a number holds, and through
 * the descriptor. Failure: out of memory ends the process; a full table refuses the newcomer. */
#include "net/peers.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/list.h"
#include "core/base/map.h"
#include "core/base/memory.h"

enum {
    PLACE_BITS = 16,
    NO_PLACE = 0,          /* places count from 1, so that 0 is free in the table of descriptors */
    CROWDED_LOOK_MS = 1000 /* between two searches for a silent one in a full table */
};

static_assert (PEERS_LIMIT_MAX + PEERS_REFUSED_MAX < 1 << PLACE_BITS, "a number holds a place");

typedef struct place {
    peer_t peer;
    node_t node; /* among those that ended or were refused; both: among the refused */
    int64_t seen_ms;
    int fd;
    uint32_t hash;
    uint32_t at; /* its index; free ones: the next free one */
    uint32_t messages;
    uint32_t late_ends; /* reports that are still to come for earlier holders of its descriptor */
    unread_t *unread;
    void *own;   /* the caller's */
    char *knock; /* how it came in */
    bool routed; /* stands in the hash table: newest holder of its routing id */
    bool refused;
    bool ended;
    bool end_seen; /* the end of its connection was reported */
    uint8_t routing_id_bytes;
    uint8_t *routing_id; /* behind identity */
    char identity[];
} place_t;

typedef struct gone {
    peer_t peer;
    int64_t at_ms;
} gone_t;

struct peers {
    uint8_t key[PEERS_KEY_BYTES];
    size_t limit;
    size_t count;    /* not refused */
    uint64_t serial; /* of the newest peer */

    place_t **places; /* places[0] is not used; NULL: free */
    size_t places_capacity;
    uint32_t places_used; /* highest place ever given */
    uint32_t *free_places;
    size_t free_count;
    size_t free_capacity;

    map_t by_routing_id;
    node_t ended;   /* in this order */
    node_t refused; /* longest known first */
    size_t refused_count;
    node_t forgotten;      /* whose identities may still be held */
    int64_t crowded_until; /* no search for silent ones before */

    uint32_t *by_fd;
    size_t by_fd_capacity;

    gone_t *gone; /* a queue: those before gone_first were told */
    size_t gone_first;
    size_t gone_count;
    size_t gone_capacity;
};

peers_t *peers_new (size_t limit, const uint8_t key[PEERS_KEY_BYTES])
{
    assert (limit > 0 && limit <= PEERS_LIMIT_MAX);
    peers_t *self = memory_zero (1, sizeof (*self));
    memcpy (self->key, key, PEERS_KEY_BYTES);
    self->limit = limit;
    list_init (&self->ended);
    list_init (&self->refused);
    list_init (&self->forgotten);
    return self;
}

/* Places. */

static uint32_t hash_of (const peers_t *self, const void *routing_id, size_t length)
{
    static_assert ((int) PEERS_KEY_BYTES == (int) crypto_shorthash_KEYBYTES, "key of the hash");
    uint8_t out[crypto_shorthash_BYTES];
    crypto_shorthash (out, routing_id, length, self->key);
    uint32_t value;
    memcpy (&value, out, sizeof (value));
    return value;
}

static place_t *place_find (const peers_t *self, uint32_t hash, const origin_t *origin)
{
    size_t cursor = MAP_START;
    place_t *place = NULL;
    while ((place = map_next (&self->by_routing_id, hash, &cursor)) != NULL)
        if (place->routing_id_bytes == origin->routing_id_bytes &&
            memcmp (place->routing_id, origin->routing_id, origin->routing_id_bytes) == 0)
            break;
    return place;
}

static place_t *place_of (const peers_t *self, peer_t peer)
{
    uint32_t at = (uint32_t) (peer & ((1u << PLACE_BITS) - 1));
    if (at == NO_PLACE || at > self->places_used || self->places[at] == NULL ||
        self->places[at]->peer != peer)
        return NULL;
    return self->places[at];
}

static bool holds_its_fd (const peers_t *self, const place_t *place)
{
    return place->fd >= 0 && self->by_fd[place->fd] == place->at;
}

static uint32_t index_take (peers_t *self)
{
    if (self->free_count > 0)
        return self->free_places[--self->free_count];
    self->places_used++;
    self->places = memory_grow (self->places, &self->places_capacity, self->places_used,
                                sizeof (*self->places));
    return self->places_used;
}

static void place_forget (peers_t *self, place_t *place)
{
    if (place->routed)
        map_remove (&self->by_routing_id, place->hash, place);
    if (holds_its_fd (self, place))
        self->by_fd[place->fd] = NO_PLACE;
    list_remove (&place->node);
    if (place->refused)
        self->refused_count--;
    else
        self->count--;
    if (place->unread != NULL)
        unread_drop (&place->unread);
    self->places[place->at] = NULL;
    self->free_places = memory_grow (self->free_places, &self->free_capacity, self->free_count,
                                     sizeof (*self->free_places));
    self->free_places[self->free_count++] = place->at;
    list_push_back (&self->forgotten, &place->node);
}

void peers_release (peers_t *self)
{
    for (node_t *node = list_pop_front (&self->forgotten); node != NULL;
         node = list_pop_front (&self->forgotten)) {
        place_t *place = LIST_ITEM (node, place_t, node);
        free (place->knock);
        free (place);
    }
}

static void gone_append (peers_t *self, peer_t peer, int64_t now_ms)
{
    self->gone = memory_grow (self->gone, &self->gone_capacity, self->gone_count, sizeof (gone_t));
    self->gone[self->gone_count++] = (gone_t){peer, now_ms};
}

/* Its connection is over, or somebody else's. */
static void place_end (peers_t *self, place_t *place, int64_t now_ms)
{
    if (place->ended)
        return;
    place->ended = true;
    if (!place->refused)
        list_push_back (&self->ended, &place->node);
    gone_append (self, place->peer, now_ms);
}

static place_t *place_new (const origin_t *origin)
{
    size_t identity_size = strlen (origin->user) + 1;
    assert (origin->routing_id_bytes <= PEERS_ROUTING_ID_BYTES_MAX);
    place_t *place = memory_alloc (sizeof (*place) + identity_size + origin->routing_id_bytes);
    *place = (place_t){.fd = origin->fd,
                       .routing_id_bytes = (uint8_t) origin->routing_id_bytes,
                       .routing_id = (uint8_t *) place->identity + identity_size};
    memcpy (place->identity, origin->user, identity_size);
    memcpy (place->routing_id, origin->routing_id, origin->routing_id_bytes);
    return place;
}

static void fd_assign (peers_t *self, place_t *place, int64_t now_ms)
{
    if (place->fd < 0)
        return;
    size_t index = (size_t) place->fd;
    if (index >= self->by_fd_capacity) {
        size_t capacity = index * 2 + 64;
        self->by_fd = memory_resize (self->by_fd, capacity, sizeof (uint32_t));
        memset (self->by_fd + self->by_fd_capacity, 0,
                (capacity - self->by_fd_capacity) * sizeof (uint32_t));
        self->by_fd_capacity = capacity;
    }
    /* The kernel gives a descriptor again only when it was closed, so its last holder is gone, also
     * if the report of that is still on the way. */
    if (self->by_fd[index] != NO_PLACE) {
        place_t *old = self->places[self->by_fd[index]];
        place->late_ends = old->late_ends + !old->end_seen;
        place_end (self, old, now_ms);
    }
    self->by_fd[index] = place->at;
}

/* Room. */

/* Who ended longest ago, or who was not heard for long. */
static place_t *find_spare (peers_t *self, int64_t now_ms)
{
    node_t *node = list_first (&self->ended);
    if (node != NULL)
        return LIST_ITEM (node, place_t, node);
    if (now_ms < self->crowded_until)
        return NULL;
    place_t *found = NULL;
    for (uint32_t at = 1; at <= self->places_used; at++) {
        place_t *place = self->places[at];
        if (place != NULL && !place->refused && now_ms - place->seen_ms > PEERS_CROWDED_MS &&
            (found == NULL || place->seen_ms < found->seen_ms))
            found = place;
    }
    if (found == NULL)
        self->crowded_until = now_ms + CROWDED_LOOK_MS;
    return found;
}

static bool make_room (peers_t *self, int64_t now_ms)
{
    if (self->count < self->limit)
        return true;
    place_t *spare = find_spare (self, now_ms);
    if (spare == NULL)
        return false;
    place_end (self, spare, now_ms);
    place_forget (self, spare);
    return true;
}

static void refuse (peers_t *self, place_t *place)
{
    if (self->refused_count == PEERS_REFUSED_MAX)
        place_forget (self, LIST_ITEM (list_first (&self->refused), place_t, node));
    place->refused = true;
    list_push_back (&self->refused, &place->node);
    self->refused_count++;
}

/* One that was refused and comes again: perhaps there is room by now. */
static void try_again (peers_t *self, place_t *place, int64_t now_ms)
{
    if (!make_room (self, now_ms))
        return;
    place->refused = false;
    list_remove (&place->node);
    self->refused_count--;
    self->count++;
    if (place->ended)
        list_push_back (&self->ended, &place->node);
}

/* Peers. */

static place_t *place_add (peers_t *self, const origin_t *origin, uint32_t hash, int64_t now_ms)
{
    bool room = make_room (self, now_ms);
    place_t *place = place_new (origin);
    if (room)
        self->count++;
    else
        refuse (self, place);
    place->at = index_take (self);
    self->places[place->at] = place;
    place->peer = ++self->serial << PLACE_BITS | place->at;
    place->hash = hash;
    place->routed = true;
    map_insert (&self->by_routing_id, hash, place);
    fd_assign (self, place, now_ms);
    return place;
}

seen_t peers_seen (peers_t *self, const origin_t *origin, int64_t now_ms)
{
    uint32_t hash = hash_of (self, origin->routing_id, origin->routing_id_bytes);
    place_t *place = place_find (self, hash, origin);
    if (place != NULL && (place->fd != origin->fd || strcmp (place->identity, origin->user) != 0)) {
        /* Another connection under the same routing id: what goes out to the old one would
         * reach the new one. It stays only because its identity may be in use. */
        map_remove (&self->by_routing_id, hash, place);
        place->routed = false;
        place_end (self, place, now_ms);
        place = NULL;
    }
    bool is_new = place == NULL;
    if (is_new)
        place = place_add (self, origin, hash, now_ms);
    else if (place->refused)
        try_again (self, place, now_ms);
    place->seen_ms = now_ms;
    place->messages++;
    /* What a dead peer sent last, or its revival under the same descriptor, which may end again. */
    if (place->ended && place->fd >= 0 && self->by_fd[place->fd] == NO_PLACE)
        self->by_fd[place->fd] = place->at;
    return (seen_t){place->peer, place->identity, is_new, place->refused, place->own};
}

const void *peers_route (const peers_t *self, peer_t peer, size_t *routing_id_bytes)
{
    const place_t *place = place_of (self, peer);
    if (place == NULL || !place->routed)
        return NULL;
    *routing_id_bytes = place->routing_id_bytes;
    return place->routing_id;
}

unread_t **peers_unread (peers_t *self, peer_t peer)
{
    place_t *place = place_of (self, peer);
    return place != NULL ? &place->unread : NULL;
}

void peers_set_knock (peers_t *self, peer_t peer, const char *knock)
{
    place_t *place = place_of (self, peer);
    if (place == NULL || knock == NULL)
        return;
    free (place->knock);
    place->knock = memory_text (knock);
}

const char *peers_knock (peers_t *self, peer_t peer)
{
    const place_t *place = place_of (self, peer);
    return place != NULL ? place->knock : NULL;
}

bool peers_each (const peers_t *self, uint32_t *cursor, peers_item_t *out)
{
    while (*cursor < self->places_used) {
        const place_t *place = self->places[++*cursor];
        if (place == NULL || place->ended || place->fd < 0)
            continue;
        *out = (peers_item_t){place->fd, place->identity, place->knock};
        return true;
    }
    return false;
}

int peers_fd (const peers_t *self, peer_t peer)
{
    const place_t *place = place_of (self, peer);
    return place != NULL && !place->ended ? place->fd : -1;
}

void **peers_own (peers_t *self, peer_t peer)
{
    place_t *place = place_of (self, peer);
    return place != NULL ? &place->own : NULL;
}

static place_t *place_at (const peers_t *self, int fd)
{
    if (fd < 0 || (size_t) fd >= self->by_fd_capacity || self->by_fd[fd] == NO_PLACE)
        return NULL;
    return self->places[self->by_fd[fd]];
}

void peers_ended (peers_t *self, int fd, int64_t now_ms)
{
    place_t *place = place_at (self, fd);
    if (place == NULL)
        return;
    if (place->late_ends > 0) {
        place->late_ends--;
        return;
    }
    self->by_fd[fd] = NO_PLACE;
    place->end_seen = true;
    place->seen_ms = now_ms;
    if (place->ended)
        gone_append (self, place->peer, now_ms); /* the end of its revival */
    else
        place_end (self, place, now_ms);
}

peer_t peers_gone_next (peers_t *self, int64_t until_ms)
{
    if (self->gone_first < self->gone_count && self->gone[self->gone_first].at_ms <= until_ms)
        return self->gone[self->gone_first++].peer;
    if (self->gone_first == self->gone_count)
        self->gone_first = self->gone_count = 0;
    return 0;
}

peer_t peers_at (const peers_t *self, int fd, uint32_t *messages)
{
    const place_t *place = place_at (self, fd);
    *messages = place != NULL ? place->messages : 0;
    return place != NULL ? place->peer : 0;
}

int peers_fd_of (const peers_t *self, const void *routing_id, size_t bytes)
{
    origin_t origin = {.routing_id = routing_id, .routing_id_bytes = bytes};
    const place_t *place = place_find (self, hash_of (self, routing_id, bytes), &origin);
    return place != NULL && !place->ended ? place->fd : -1;
}

void peers_forget (peers_t *self, int64_t now_ms)
{
    for (uint32_t at = 1; at <= self->places_used; at++) {
        place_t *place = self->places[at];
        if (place == NULL)
            continue;
        int64_t silent_ms = now_ms - place->seen_ms;
        if (!place->routed || silent_ms > (place->ended ? PEERS_ENDED_MS : PEERS_SILENT_MS))
            place_forget (self, place);
    }
    peers_release (self);
}

size_t peers_count (const peers_t *self)
{
    return self->count;
}

void peers_free (peers_t **self_p)
{
    peers_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (uint32_t at = 1; at <= self->places_used; at++)
        if (self->places[at] != NULL)
            place_forget (self, self->places[at]);
    peers_release (self);
    map_free (&self->by_routing_id);
    free (self->places);
    free (self->free_places);
    free (self->by_fd);
    free (self->gone);
    free (self);
}
