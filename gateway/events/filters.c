/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "events/filters.h"

#include <stdlib.h>
#include <string.h>

struct filter_use {
    filter_use_t *next;
    account_t *account;
    const void *link;
    char *key;
    size_t streams;
};

static filter_use_t *make (account_t *account, const void *link, const char *key)
{
    filter_use_t *self = calloc (1, sizeof *self);
    if (self == NULL || (self->key = strdup (key)) == NULL) {
        free (self);
        return NULL;
    }
    self->account = account_retain (account);
    self->link = link;
    account->held[HOLD_FILTERS]++;
    return self;
}

filter_use_t *filters_take (filter_use_t **all, account_t *account, const void *link,
                            const char *key, uint64_t most, bool *full)
{
    filter_use_t *self = *all;
    *full = false;
    while (self != NULL &&
           (self->account != account || self->link != link || strcmp (self->key, key) != 0))
        self = self->next;
    if (self == NULL) {
        *full = account->held[HOLD_FILTERS] >= most;
        self = *full ? NULL : make (account, link, key);
        if (self == NULL)
            return NULL;
        self->next = *all;
        *all = self;
    }
    self->streams++;
    return self;
}

void filters_give (filter_use_t **all, filter_use_t **self)
{
    filter_use_t *use = *self;
    *self = NULL;
    if (use == NULL || --use->streams > 0)
        return;
    while (*all != use)
        all = &(*all)->next;
    *all = use->next;
    use->account->held[HOLD_FILTERS]--;
    account_release (use->account);
    free (use->key);
    free (use);
}
