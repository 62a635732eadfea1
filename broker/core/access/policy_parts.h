/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a policy is made of: between the parser and the look-ups. */
#ifndef TASKMQ_CORE_POLICY_PARTS_H
#define TASKMQ_CORE_POLICY_PARTS_H

#include <stdatomic.h>

#include "core/access/policy.h"

typedef struct key_entry {
    key_public_t key;
    size_t principal;
} key_entry_t;
typedef struct uid_entry {
    uint32_t uid;
    bool by_group; /* a line that names the user itself comes first */
    size_t principal;
} uid_entry_t;
typedef struct name_entry { /* of a principal, or an address */
    const char *name;
    size_t principal;
} name_entry_t;

struct policy {
    _Atomic unsigned users;
    uint8_t digest[POLICY_DIGEST_BYTES]; /* of the text */
    uint32_t own_uid;
    bool has_own_uid;
    char **texts; /* everything that the lines point into */
    size_t texts_count;
    size_t texts_capacity;
    const char *limits; /* their line, as it stands; NULL: there is none */
    principal_t *lines;
    size_t lines_count;
    size_t lines_capacity;
    /* sorted once all lines were read */
    name_entry_t *names;
    size_t names_count;
    size_t names_capacity;
    name_entry_t *places;
    size_t places_count;
    size_t places_capacity;
    key_entry_t *keys;
    size_t keys_count;
    size_t keys_capacity;
    uid_entry_t *uids;
    size_t uids_count;
    size_t uids_capacity;
};

/* Sorts what is looked up. */
void policy_sort (policy_t *self);
/* Then: of the entries of each uid only the one that counts stays. */
void policy_drop_lesser_uids (policy_t *self);

#endif
