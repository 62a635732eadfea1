/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: whom there is no room for counts as a stranger, never as a friend. */
#include "net/guests.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

typedef struct guest {
    char *knock;
    char *identity;
} guest_t;

typedef struct room {
    char *domain;
    bool crowded; /* there are more */
    size_t count;
    guest_t guests[GUESTS_MAX];
} room_t;

struct guests {
    bool crowded; /* there are more domains */
    size_t count;
    room_t *rooms[GUESTS_DOMAINS_MAX];
};

guests_t *guests_new (void)
{
    return memory_zero (1, sizeof (guests_t));
}

static void clear (room_t *room)
{
    for (size_t i = 0; i < room->count; i++) {
        free (room->guests[i].knock);
        free (room->guests[i].identity);
    }
    room->count = 0;
    room->crowded = false;
}

void guests_free (guests_t **self_p)
{
    guests_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (size_t i = 0; i < self->count; i++) {
        clear (self->rooms[i]);
        free (self->rooms[i]->domain);
        free (self->rooms[i]);
    }
    free (self);
}

static room_t *find (const guests_t *self, const char *domain)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp (self->rooms[i]->domain, domain) == 0)
            return self->rooms[i];
    return NULL;
}

static room_t *make (guests_t *self, const char *domain)
{
    room_t *room = find (self, domain);
    if (room != NULL)
        return room;
    if (self->count == GUESTS_DOMAINS_MAX) {
        self->crowded = true;
        return NULL;
    }
    room = memory_zero (1, sizeof (*room));
    room->domain = memory_text (domain);
    self->rooms[self->count++] = room;
    return room;
}

void guests_add (guests_t *self, const char *domain, const char *knock, const char *identity)
{
    room_t *room = make (self, domain);
    if (room == NULL)
        return;
    for (size_t i = 0; i < room->count; i++)
        if (strcmp (room->guests[i].knock, knock) == 0 &&
            strcmp (room->guests[i].identity, identity) == 0)
            return;
    room->crowded = room->crowded || room->count == GUESTS_MAX;
    if (!room->crowded)
        room->guests[room->count++] = (guest_t){memory_text (knock), memory_text (identity)};
}

void guests_forget (guests_t *self, const char *domain)
{
    room_t *room = find (self, domain);
    if (room != NULL)
        clear (room);
}

bool guests_are (const guests_t *self, const char *domain, guests_judge_t *judge,
                 const void *context)
{
    const room_t *room = find (self, domain);
    if (room == NULL)
        return !self->crowded;
    bool good = !room->crowded;
    for (size_t i = 0; good && i < room->count; i++)
        good = judge (context, room->guests[i].knock, room->guests[i].identity);
    return good;
}
