/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Filters as the engine keeps them, and what they take. */
#ifndef TASKMQ_CORE_FILTER_H
#define TASKMQ_CORE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/lookup.h"
#include "core/wire/scan.h"
#include "taskmq.pb-c.h"

/* A filter as the engine keeps it: one allocation, with the lists that a read_t points to. */
typedef struct filter_copy {
    filter_t filter;
    const tmq_id_t *ids;
    size_t ids_count;
    unsigned subjects;       /* a bit for each that is wanted */
    const char *name_prefix; /* NULL: none */
    bool everything;         /* every event of a task, without a condition */
    size_t bytes;            /* of the allocation */
    bool scoped;             /* not all of the namespace is seen: access says what is */
    access_t access;
    uint8_t digest[16];
} filter_copy_t;
/* A copy of a filter, as far as access lets see. filter NULL: no condition. */
filter_copy_t *filter_new (const char *ns, const Taskmq__Filter *filter, const access_t *access);
/* What is asked for beside it belongs to its digest. */
void filter_digest_more (filter_copy_t *self, const char *text);
void filter_free (filter_copy_t *self); /* accepts NULL */
/* What the asker may see of what it takes; link: what the link may, if it is not kept here. */
static inline access_t *filter_access (filter_copy_t *self, access_t *link)
{
    return self->scoped ? &self->access : link;
}
bool filter_takes_event (filter_copy_t *filter, const scanned_t *event);
bool filter_takes_record (filter_copy_t *filter, const record_t *record);
/* Lets a read see what access sees. */
void filter_scope (read_t *read, const access_t *access);

#endif
