/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/follow.h"

#include <stdlib.h>

#include "core/base/memory.h"

/* As much as may be dirty (A12): a follower that lags by more reads the tables. */
enum { BYTES_MAX = 64 * 1024 * 1024 };

enum { FETCH_AHEAD = 16 }; /* events */

typedef struct followed_set {
    struct followed_set *next;
    dirty_t dirty;
    uint64_t first_pos;
    uint64_t last_pos;
} followed_set_t;

void follow_init (followed_t *self)
{
    *self = (followed_t){0};
    pthread_mutex_init (&self->lock, NULL);
}

static void set_free (void *context)
{
    followed_set_t *set = context;
    dirty_free (&set->dirty);
    free (set);
}

static followed_set_t *pop (followed_t *self)
{
    followed_set_t *set = self->first;
    self->first = set->next;
    if (self->first == NULL)
        self->last = NULL;
    self->bytes -= set->dirty.bytes;
    return set;
}

void follow_destroy (followed_t *self)
{
    while (self->first != NULL)
        set_free (pop (self));
    pthread_mutex_destroy (&self->lock);
}

/* The positions that the batches have; false: there is no event in them. */
static bool find_positions (followed_set_t *set)
{
    for (size_t i = 0; i < set->dirty.count; i++) {
        const batch_t *batch = set->dirty.batches[i];
        if (batch->blocks_count == 0)
            continue;
        const event_block_t *last = &batch->blocks[batch->blocks_count - 1];
        if (set->first_pos == 0)
            set->first_pos = batch->blocks[0].first_pos;
        set->last_pos = last->first_pos + last->count - 1;
    }
    return set->first_pos != 0;
}

static void push (followed_t *self, followed_set_t *set)
{
    if (self->last == NULL)
        self->first = set;
    else
        self->last->next = set;
    self->last = set;
    self->bytes += set->dirty.bytes;
}

void follow_put (followed_t *self, dirty_t *dirty)
{
    followed_set_t *set = memory_zero (1, sizeof (*set));
    followed_set_t *dropped = NULL;
    set->dirty = *dirty;
    *dirty = (dirty_t){0};
    bool wanted = find_positions (set);
    pthread_mutex_lock (&self->lock);
    wanted = wanted && self->followed;
    if (wanted)
        push (self, set);
    while (self->bytes > BYTES_MAX) { /* perhaps the new one itself */
        followed_set_t *old = pop (self);
        old->next = dropped;
        dropped = old;
    }
    pthread_mutex_unlock (&self->lock);
    if (!wanted)
        set_free (set);
    while (dropped != NULL) {
        followed_set_t *next = dropped->next;
        set_free (dropped);
        dropped = next;
    }
}

/* The images that are news, by their positions: those of a set are as many as its events, so each
 * image has a place of its own. 0: none stands there, else its place in the list plus one. */
static uint32_t *find_places (const followed_set_t *set, uint64_t after_pos, size_t *count)
{
    const images_t *images = &set->dirty.images;
    *count = (size_t) (set->last_pos - after_pos);
    uint32_t *places = memory_zero (*count, sizeof (*places));
    for (size_t i = 0; i < images->count; i++)
        if (images->list[i].pos > after_pos)
            places[images->list[i].pos - after_pos - 1] = (uint32_t) i + 1;
    return places;
}

/* The bodies that older images had may go into the latest. False: it lacks one even so. */
static bool take_bodies (record_t *record, const image_t *image)
{
    if (record->payload == NULL)
        record->payload = buf_keep (image->payload);
    if (record->result == NULL)
        record->result = buf_keep (image->result);
    return (record->payload != NULL || record->payload_bytes == 0) &&
           (record->result != NULL || record->result_bytes == 0);
}

/* The set is the read's alone now. Its records are in no cache any more: each is fetched while
 * those before it are looked at. */
static void answer (followed_set_t *set, read_t *read, bool *lacks)
{
    const images_t *images = &set->dirty.images;
    size_t count;
    uint32_t *places = find_places (set, read->after_pos, &count);
    read->items = memory_alloc (images->count * sizeof (export_item_t));
    *lacks = false;
    for (size_t i = 0; i < count; i++) {
        if (i + FETCH_AHEAD < count && places[i + FETCH_AHEAD] != 0)
            __builtin_prefetch (&images->list[places[i + FETCH_AHEAD] - 1].record->payload);
        if (places[i] == 0)
            continue;
        const image_t *image = &images->list[places[i] - 1];
        record_t *record = image->record;
        *lacks = !take_bodies (record, image) || *lacks;
        read->items[read->items_count++] = (export_item_t){image->pos, record->last_seq, record};
    }
    free (places);
    read->upto_pos = set->last_pos;
    read->held = set;
    read->release = set_free;
}

bool follow_take (followed_t *self, read_t *read, bool *lacks)
{
    followed_set_t *passed = NULL;
    followed_set_t *set = NULL;
    pthread_mutex_lock (&self->lock);
    self->followed = true;
    while (self->first != NULL && self->first->last_pos <= read->after_pos) {
        followed_set_t *old = pop (self);
        old->next = passed;
        passed = old;
    }
    if (self->first != NULL && self->first->first_pos <= read->after_pos + 1)
        set = pop (self);
    bool more = self->first != NULL;
    pthread_mutex_unlock (&self->lock);
    while (passed != NULL) {
        followed_set_t *next = passed->next;
        set_free (passed);
        passed = next;
    }
    if (set == NULL)
        return false;
    answer (set, read, lacks);
    read->more = more;
    return true;
}
