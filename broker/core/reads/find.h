/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where a task is: in memory, in the answers of this round's look-up, or gone and why. */
#ifndef TASKMQ_CORE_FIND_H
#define TASKMQ_CORE_FIND_H

#include "core/reads/reads.h"

typedef struct found {
    task_t *task;
    const record_t *record;
    /* NOT_FOUND, EXPIRED, PURGED when neither of them is set; INTERNAL: what is stored is
     * damaged */
    tmq_code_t gone;
    const char *owner; /* who may know of it; NULL: not known */
    const char *queue;
    const char *holder;
    int64_t gone_at; /* EXPIRED, PURGED: since when; 0: not known */
    bool removed;    /* … and there is only its tombstone */
    uint8_t why;     /* PURGED: removal_t.why */
} found_t;
/* The only way from an id to a task. One that the link has none of the rights over is NOT_FOUND, as
 * if it did not exist; DENIED if the link sees that it does. */
found_t find_id (const reads_t *self, link_t *link, const uint8_t *id, unsigned rights);
/* … as long as nobody's lease is what lets it be seen: a lease ends. */
found_t find_id_for_long (const reads_t *self, link_t *link, const uint8_t *id, unsigned rights);
/* … whoever asks: for who shows that it knows more than the id, a lease's secret; and for the
 * collision of ids. What is found must not be shown to others. */
found_t find_unjudged (const reads_t *self, const space_t *space, const uint8_t *id);
/* The link sees the task, or what is left of it. */
bool found_is_seen (link_t *link, const found_t *found);
found_t find_dedup (const reads_t *self, const space_t *space, const char *owner, const char *key);
tmq_status_t found_status (const found_t *found); /* NONE when it is gone */
/* What is known of a former attempt: its row, in memory or in the tables; false: nothing. */
bool find_attempt (const reads_t *self, const space_t *space, const uint8_t *id, int64_t number,
                   uint32_t attempt, attempt_note_t *out);
/* It was looked up and its row is damaged. */
bool attempt_is_damaged (const reads_t *self, const space_t *space, const uint8_t *id,
                         uint32_t attempt);
/* The body of a row, as it was changed last or as this round's look-up brought it (want_row);
 * *found tells whether there is such a row. Past its time there is none, swept or not. Borrowed;
 * NULL is an empty one. */
const buf_t *find_row (const reads_t *self, row_kind_t kind, const void *key, size_t key_bytes,
                       bool *found);
/* A payload or result that this round's look-up brought, or NULL. Borrowed. */
buf_t *find_result (const reads_t *self, const space_t *space, const uint8_t *id);
buf_t *find_payload (const reads_t *self, const space_t *space, const uint8_t *id);

#endif
