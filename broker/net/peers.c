/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of peers: places in an array, found through a keyed hash of the routing id (a peer
 * chooses its routing id, so it must not be able to choose its chain) and through the descriptor.
 * Failure: out of memory ends the process; a full table refuses the newcomer. */
#include "net/peers.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum {
    PLACE_BITS = 16,
    PLACES_FIRST = 64,
    NO_PLACE = 0,          /* places count from 1, so that 0 is free in the tables of places */
    CROWDED_MS = 15 * 1000 /* PEERS_ENDED_MS of a table that is three quarters full */
};

typedef struct place {
    peer_t peer; /* 0: free */
    int fd;
    int64_t seen_ms;
    bool routed; /* stands in the hash table: newest holder of its routing id */
    bool ended;
    bool end_seen;      /* the end of its connection was reported */
    uint32_t late_ends; /* reports that are still to come for earlier holders of its descriptor */
    char *identity;     /* one allocation: identity, address, routing id */
    char *address;
    uint8_t *routing_id;
    uint8_t routing_id_bytes;
    uint32_t next_free;
} place_t;

struct peers {
    uint8_t key[PEERS_KEY_BYTES];
    size_t limit;
    size_t count;
    uint64_t serial; /* of the newest peer */

    place_t *places; /* places[0] is not used */
    uint32_t places_capacity;
    uint32_t places_used; /* highest place ever given */
    uint32_t free_first;

    uint32_t *hash; /* open addressing, linear probing */
    uint32_t hash_mask;

    uint32_t *by_fd;
    size_t by_fd_capacity;

    peer_t *gone;
    size_t gone_count;
    size_t gone_capacity;
};

peers_t *peers_new (size_t limit, const uint8_t key[PEERS_KEY_BYTES])
{
    assert (limit > 0 && limit <= PEERS_LIMIT_MAX);
    peers_t *self = memory_zero (1, sizeof (*self));
    memcpy (self->key, key, PEERS_KEY_BYTES);
    self->limit = limit;
    self->places_capacity = PLACES_FIRST;
    self->places = memory_zero (PLACES_FIRST, sizeof (place_t));
    self->hash = memory_zero ((size_t) 2 * PLACES_FIRST, sizeof (uint32_t));
    self->hash_mask = 2 * PLACES_FIRST - 1;
    return self;
}

void peers_free (peers_t **self_p)
{
    peers_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (uint32_t at = 1; at <= self->places_used; at++)
        free (self->places[at].identity);
    free (self->places);
    free (self->hash);
    free (self->by_fd);
    free (self->gone);
    free (self);
}

/* The hash table. */

static uint32_t hash_slot (const peers_t *self, const void *routing_id, size_t length)
{
    static_assert ((int) PEERS_KEY_BYTES == (int) crypto_shorthash_KEYBYTES, "key of the hash");
    uint8_t out[crypto_shorthash_BYTES];
    crypto_shorthash (out, routing_id, length, self->key);
    uint32_t value;
    memcpy (&value, out, sizeof (value));
    return value & self->hash_mask;
}

static uint32_t hash_find (const peers_t *self, const void *routing_id, size_t length)
{
    for (uint32_t slot = hash_slot (self, routing_id, length);;
         slot = (slot + 1) & self->hash_mask) {
        uint32_t at = self->hash[slot];
        if (at == NO_PLACE)
            return NO_PLACE;
        const place_t *place = &self->places[at];
        if (place->routing_id_bytes == length &&
            memcmp (place->routing_id, routing_id, length) == 0)
            return at;
    }
}

static void hash_insert (peers_t *self, uint32_t at)
{
    const place_t *place = &self->places[at];
    uint32_t slot = hash_slot (self, place->routing_id, place->routing_id_bytes);
    while (self->hash[slot] != NO_PLACE)
        slot = (slot + 1) & self->hash_mask;
    self->hash[slot] = at;
}

/* Linear probing without tombstones: what stands behind the hole and may not stay moves up. */
static void hash_remove (peers_t *self, uint32_t at)
{
    const place_t *place = &self->places[at];
    uint32_t hole = hash_slot (self, place->routing_id, place->routing_id_bytes);
    while (self->hash[hole] != at)
        hole = (hole + 1) & self->hash_mask;
    for (uint32_t slot = (hole + 1) & self->hash_mask; self->hash[slot] != NO_PLACE;
         slot = (slot + 1) & self->hash_mask) {
        const place_t *other = &self->places[self->hash[slot]];
        uint32_t home = hash_slot (self, other->routing_id, other->routing_id_bytes);
        if (((slot - home) & self->hash_mask) >= ((slot - hole) & self->hash_mask)) {
            self->hash[hole] = self->hash[slot];
            hole = slot;
        }
    }
    self->hash[hole] = NO_PLACE;
}

/* Places. */

static void places_grow (peers_t *self)
{
    uint32_t capacity = self->places_capacity * 2;
    self->places = memory_resize (self->places, capacity, sizeof (place_t));
    memset (self->places + self->places_capacity, 0,
            (capacity - self->places_capacity) * sizeof (place_t));
    self->places_capacity = capacity;
    free (self->hash);
    self->hash = memory_zero ((size_t) 2 * capacity, sizeof (uint32_t));
    self->hash_mask = 2 * capacity - 1;
    for (uint32_t at = 1; at <= self->places_used; at++) {
        if (self->places[at].routed)
            hash_insert (self, at);
    }
}

static uint32_t place_take (peers_t *self)
{
    uint32_t at = self->free_first;
    if (at != NO_PLACE) {
        self->free_first = self->places[at].next_free;
    } else {
        if (self->places_used + 1 == self->places_capacity)
            places_grow (self);
        at = ++self->places_used;
    }
    self->count++;
    return at;
}

static void place_forget (peers_t *self, uint32_t at)
{
    place_t *place = &self->places[at];
    if (place->routed)
        hash_remove (self, at);
    if (place->fd >= 0 && self->by_fd[place->fd] == at)
        self->by_fd[place->fd] = NO_PLACE;
    free (place->identity);
    memset (place, 0, sizeof (*place));
    place->next_free = self->free_first;
    self->free_first = at;
    self->count--;
}

static const place_t *place_of (const peers_t *self, peer_t peer)
{
    uint32_t at = (uint32_t) (peer & ((1u << PLACE_BITS) - 1));
    if (peer == 0 || at > self->places_used || self->places[at].peer != peer)
        return NULL;
    return &self->places[at];
}

static void gone_append (peers_t *self, peer_t peer)
{
    self->gone = memory_grow (self->gone, &self->gone_capacity, self->gone_count, sizeof (peer_t));
    self->gone[self->gone_count++] = peer;
}

/* Peers. */

/* On ipc the kernel vouches for the uid in "localhost:uid:gid:pid"; an IP address holds no name. */
static int identity_of (const char *address, char *out, size_t size)
{
    unsigned uid, gid, pid;
    if (sscanf (address, "localhost:%u:%u:%u", &uid, &gid, &pid) == 3)
        return snprintf (out, size, "uid:%u", uid);
    return snprintf (out, size, "local");
}

static void place_fill (place_t *place, const origin_t *origin)
{
    char identity[32];
    size_t identity_size = (size_t) identity_of (origin->address, identity, sizeof (identity)) + 1;
    size_t address_size = strlen (origin->address) + 1;
    char *memory = memory_alloc (identity_size + address_size + origin->routing_id_bytes);
    memcpy (memory, identity, identity_size);
    memcpy (memory + identity_size, origin->address, address_size);
    memcpy (memory + identity_size + address_size, origin->routing_id, origin->routing_id_bytes);
    place->identity = memory;
    place->address = memory + identity_size;
    place->routing_id = (uint8_t *) memory + identity_size + address_size;
    place->routing_id_bytes = (uint8_t) origin->routing_id_bytes;
    place->fd = origin->fd;
}

static void fd_assign (peers_t *self, int fd, uint32_t at)
{
    if (fd < 0)
        return;
    size_t index = (size_t) fd;
    if (index >= self->by_fd_capacity) {
        size_t capacity = index * 2 + 64;
        self->by_fd = memory_resize (self->by_fd, capacity, sizeof (uint32_t));
        memset (self->by_fd + self->by_fd_capacity, 0,
                (capacity - self->by_fd_capacity) * sizeof (uint32_t));
        self->by_fd_capacity = capacity;
    }
    /* The kernel gives a descriptor again only when it was closed, so its last holder is gone, also
     * if the report of that is still on the way. */
    uint32_t before = self->by_fd[index];
    if (before != NO_PLACE) {
        place_t *old = &self->places[before];
        self->places[at].late_ends = old->late_ends + !old->end_seen;
        if (!old->ended)
            gone_append (self, old->peer);
        old->ended = true;
    }
    self->by_fd[index] = at;
}

static uint32_t peer_add (peers_t *self, const origin_t *origin)
{
    if (self->count == self->limit)
        return NO_PLACE;
    uint32_t at = place_take (self);
    place_t *place = &self->places[at];
    place->peer = ++self->serial << PLACE_BITS | at;
    place_fill (place, origin);
    place->routed = true;
    hash_insert (self, at);
    fd_assign (self, origin->fd, at);
    return at;
}

peer_t peers_seen (peers_t *self, const origin_t *origin, int64_t now_ms, const char **identity)
{
    uint32_t at = hash_find (self, origin->routing_id, origin->routing_id_bytes);
    if (at != NO_PLACE) {
        place_t *place = &self->places[at];
        if (place->fd != origin->fd || strcmp (place->address, origin->address) != 0) {
            /* Another connection under the same routing id: what goes out to the old one would
             * reach the new one. It stays only because its identity may be in use. */
            hash_remove (self, at);
            place->routed = false;
            if (!place->ended)
                gone_append (self, place->peer);
            place->ended = true;
            at = NO_PLACE;
        }
    }
    if (at == NO_PLACE)
        at = peer_add (self, origin);
    if (at == NO_PLACE)
        return 0;
    place_t *place = &self->places[at];
    place->seen_ms = now_ms;
    /* What a dead peer sent last, or its revival under the same descriptor, which may end again. */
    if (place->ended && place->fd >= 0 && self->by_fd[place->fd] == NO_PLACE)
        self->by_fd[place->fd] = at;
    *identity = place->identity;
    return place->peer;
}

const void *peers_route (const peers_t *self, peer_t peer, size_t *routing_id_bytes)
{
    const place_t *place = place_of (self, peer);
    if (place == NULL || !place->routed)
        return NULL;
    *routing_id_bytes = place->routing_id_bytes;
    return place->routing_id;
}

void peers_ended (peers_t *self, int fd, int64_t now_ms)
{
    if (fd < 0 || (size_t) fd >= self->by_fd_capacity || self->by_fd[fd] == NO_PLACE)
        return;
    place_t *place = &self->places[self->by_fd[fd]];
    if (place->late_ends > 0) {
        place->late_ends--;
        return;
    }
    self->by_fd[fd] = NO_PLACE;
    place->end_seen = true;
    place->ended = true;
    place->seen_ms = now_ms;
    gone_append (self, place->peer);
}

peer_t peers_gone_next (peers_t *self)
{
    return self->gone_count > 0 ? self->gone[--self->gone_count] : 0;
}

void peers_forget (peers_t *self, int64_t now_ms)
{
    int64_t ended_ms = self->count > self->limit / 4 * 3 ? CROWDED_MS : PEERS_ENDED_MS;
    for (uint32_t at = 1; at <= self->places_used; at++) {
        const place_t *place = &self->places[at];
        if (place->peer == 0)
            continue;
        int64_t silent_ms = now_ms - place->seen_ms;
        if (!place->routed || silent_ms > (place->ended ? ended_ms : PEERS_SILENT_MS))
            place_forget (self, at);
    }
}

size_t peers_count (const peers_t *self)
{
    return self->count;
}
