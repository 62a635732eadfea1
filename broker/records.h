/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests about the record of deeds, for backups and for the vacuum. One backup at a time is made,
 * on a thread of its own, so that nobody's errand waits for it. It is given up when its client does
 * not ask for it any more. */
#ifndef TASKMQ_BROKER_RECORDS_H
#define TASKMQ_BROKER_RECORDS_H

#include "audit/audit.h"
#include "core/base/shared_limit.h"
#include "errands.h"
#include "store/store.h"

typedef struct records records_t;

/* All borrowed. */
typedef struct records_options {
    store_t *store;
    audit_t *audit;        /* NULL: none is kept */
    const char *directory; /* of the data */
    const char *access;    /* path of the access file */
    shared_limit_t *free_bytes_min;
    shared_limit_t *lacks; /* set behind each backup: large bodies that are not in it */
    size_t keep;           /* backups */
} records_options_t;

enum { RECORDS_RUNNERS = 4, RECORDS_WATCHED_MAX = 32 };

records_t *records_new (const records_options_t *options);
/* Gives a backup that is being made up. Accepts a NULL object. */
void records_free (records_t **self);
void records_runners (records_t *self, errand_runner_t out[RECORDS_RUNNERS]);
/* The connection ended: its backup is given up unless it is asked for by another one soon. Never
 * waits; any thread. */
void records_gone (records_t *self, peer_t peer);
/* From now on what these runners change is noted, and on the disk before it is answered. */
void records_watch (records_t *self, errand_runner_t *runners, size_t count);

#endif
