/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A policy's life and look-ups: sorted lists, searched by halves. */
#include "core/access/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/access/policy_parts.h"
#include "core/base/memory.h"

static const struct {
    const char *name;
    unsigned rights;
} ROLE_TABLE[ROLES] = {
#define X(ROLE, name, rights) [ROLE_##ROLE] = {name, rights},
    POLICY_ROLE_MAP (X)
#undef X
};

const char *role_name (role_t role)
{
    return ROLE_TABLE[role].name;
}

unsigned role_rights (role_t role)
{
    return ROLE_TABLE[role].rights;
}

policy_t *policy_keep (policy_t *self)
{
    if (self != NULL)
        self->users++;
    return self;
}

void policy_drop (policy_t *self)
{
    if (self == NULL || --self->users > 0)
        return;
    for (size_t i = 0; i < self->lines_count; i++) {
        principal_t *line = &self->lines[i];
        for (size_t k = 0; k < line->grants_count; k++) {
            glob_clear (&line->grants[k].space);
            glob_clear (&line->grants[k].queue);
        }
        free (line->grants);
        free (line->keys);
    }
    for (size_t i = 0; i < self->texts_count; i++)
        free (self->texts[i]);
    free (self->texts);
    free (self->lines);
    free (self->names);
    free (self->places);
    free (self->keys);
    free (self->uids);
    free (self);
}

/* Order. */

static int by_name (const void *a, const void *b)
{
    return strcmp (((const name_entry_t *) a)->name, ((const name_entry_t *) b)->name);
}

static int by_key (const void *a, const void *b)
{
    return memcmp (&((const key_entry_t *) a)->key, &((const key_entry_t *) b)->key,
                   sizeof (key_public_t));
}

static int by_uid (const void *a, const void *b)
{
    uint32_t x = ((const uid_entry_t *) a)->uid;
    uint32_t y = ((const uid_entry_t *) b)->uid;
    return (x > y) - (x < y);
}

/* Of several entries of a uid the one that counts stands first: a line that names the user, else
 * the first line of a group. */
static int by_uid_and_rank (const void *a, const void *b)
{
    const uid_entry_t *x = a;
    const uid_entry_t *y = b;
    int order = by_uid (a, b);
    if (order != 0)
        return order;
    if (x->by_group != y->by_group)
        return x->by_group ? 1 : -1;
    return (x->principal > y->principal) - (x->principal < y->principal);
}

static void sort (void *items, size_t count, size_t size,
                  int (*compare) (const void *, const void *))
{
    if (count > 1)
        qsort (items, count, size, compare);
}

void policy_sort (policy_t *self)
{
    sort (self->names, self->names_count, sizeof (*self->names), by_name);
    sort (self->places, self->places_count, sizeof (*self->places), by_name);
    sort (self->keys, self->keys_count, sizeof (*self->keys), by_key);
    sort (self->uids, self->uids_count, sizeof (*self->uids), by_uid_and_rank);
}

void policy_drop_lesser_uids (policy_t *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->uids_count; i++)
        if (kept == 0 || self->uids[kept - 1].uid != self->uids[i].uid)
            self->uids[kept++] = self->uids[i];
    self->uids_count = kept;
}

/* Look-ups. */

static const void *find (const void *wanted, const void *items, size_t count, size_t size,
                         int (*compare) (const void *, const void *))
{
    return count == 0 ? NULL : bsearch (wanted, items, count, size, compare);
}

void policy_set_digest (policy_t *self, const uint8_t digest[POLICY_DIGEST_BYTES])
{
    memcpy (self->digest, digest, POLICY_DIGEST_BYTES);
}

const uint8_t *policy_digest (const policy_t *self)
{
    return self->digest;
}

size_t policy_count (const policy_t *self)
{
    return self->lines_count;
}

const principal_t *policy_at (const policy_t *self, size_t index)
{
    return &self->lines[index];
}

const char *policy_limits (const policy_t *self)
{
    return self->limits != NULL ? self->limits : "";
}

const principal_t *policy_by_name (const policy_t *self, const char *name)
{
    const name_entry_t wanted = {.name = name};
    const name_entry_t *found =
        find (&wanted, self->names, self->names_count, sizeof (wanted), by_name);
    return found == NULL ? NULL : &self->lines[found->principal];
}

const principal_t *policy_by_address (const policy_t *self, const char *who)
{
    const name_entry_t wanted = {.name = who};
    const name_entry_t *found =
        find (&wanted, self->places, self->places_count, sizeof (wanted), by_name);
    return found == NULL ? NULL : &self->lines[found->principal];
}

const principal_t *policy_by_key (const policy_t *self, const key_public_t *key)
{
    const key_entry_t wanted = {.key = *key};
    const key_entry_t *found =
        find (&wanted, self->keys, self->keys_count, sizeof (wanted), by_key);
    return found == NULL ? NULL : &self->lines[found->principal];
}

const principal_t *policy_by_uid (const policy_t *self, uint32_t uid)
{
    const uid_entry_t wanted = {.uid = uid};
    const uid_entry_t *found =
        find (&wanted, self->uids, self->uids_count, sizeof (wanted), by_uid);
    return found == NULL ? NULL : &self->lines[found->principal];
}

bool policy_is_own_uid (const policy_t *self, uint32_t uid)
{
    return uid == 0 || (self->has_own_uid && uid == self->own_uid);
}

bool principal_is (const principal_t *self, const char *identity)
{
    bool own = strcmp (self->name, identity) == 0;
    for (size_t i = 0; i < self->owns_count && !own; i++)
        own = strcmp (self->owns[i], identity) == 0;
    return own;
}

int principal_join_name (const principal_t *self, const char *host, char *out, size_t size)
{
    const char *place = strstr (self->as, "%h");
    if (place == NULL)
        return snprintf (out, size, "%s", self->as);
    if (host[0] == '\0')
        return 0;
    return snprintf (out, size, "%.*s%s%s", (int) (place - self->as), self->as, host, place + 2);
}

bool policy_has_keys (const policy_t *self)
{
    return self->keys_count > 0;
}

static int64_t next_end_ms (const policy_t *self, int64_t now_ms, bool invitations)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < self->lines_count; i++) {
        int64_t until_ms = self->lines[i].until_ms;
        if (until_ms > now_ms && until_ms < next_ms &&
            (invitations || !self->lines[i].is_invitation))
            next_ms = until_ms;
    }
    return next_ms;
}

int64_t policy_next_end_ms (const policy_t *self, int64_t now_ms)
{
    return next_end_ms (self, now_ms, true);
}

int64_t policy_next_loss_ms (const policy_t *self, int64_t now_ms)
{
    return self == NULL ? INT64_MAX : next_end_ms (self, now_ms, false);
}

bool policy_ends_are_due (const policy_ends_t *self, int64_t wall_ms)
{
    return wall_ms >= self->next_ms || wall_ms < self->judged_ms;
}

void policy_ends_judged (policy_ends_t *self, const policy_t *policy, int64_t wall_ms)
{
    *self = (policy_ends_t) POLICY_ENDS_INIT;
    if (policy != NULL)
        *self = (policy_ends_t){wall_ms, policy_next_end_ms (policy, wall_ms)};
}
