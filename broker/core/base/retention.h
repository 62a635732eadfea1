/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What stays of things that have ended, and what goes, by rules that say how old, how many and how
 * large they may be together (S37). Pure: the caller walks through them, the newest first. */
#ifndef TASKMQ_CORE_RETENTION_H
#define TASKMQ_CORE_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

/* What a tombstone says of it: a policy, and whose it is. */
enum { RETENTION_POLICY = 7, RETENTION_OF_SPACE = 8 };

/* 0: this is not said. */
typedef struct retention {
    int64_t max_age_ms;     /* since its end; older ones go */
    uint64_t max_count;     /* so many stay */
    uint64_t max_bytes;     /* … of so many bytes together: payloads, results, turns */
    int64_t keep_failed_ms; /* what failed stays so long, whatever else is said */
    uint64_t min_keep;      /* so many of the newest stay, whatever else is said */
} retention_t;

/* The rule of one namespace, in place of what is said of all. */
typedef struct retention_of {
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    retention_t rule;
} retention_of_t;
enum { RETENTIONS_MAX = 64 };

/* Those that stay, of the ones that were judged by a rule. */
typedef struct retention_tally {
    uint64_t count;
    uint64_t bytes;
} retention_tally_t;

/* A rule for some of the things; the same thing may be under several. */
typedef struct retention_scope {
    retention_t rule;
    retention_tally_t *tally;
} retention_scope_t;

typedef struct retention_item {
    int64_t age_ms;
    uint64_t bytes;
    bool failed;
    bool needed; /* it stays */
} retention_item_t;

static inline bool retention_is_set (const retention_t *self)
{
    return self->max_age_ms > 0 || self->max_count > 0 || self->max_bytes > 0 ||
           self->keep_failed_ms > 0 || self->min_keep > 0;
}
/* It may let something go. */
static inline bool retention_removes (const retention_t *self)
{
    return self->max_age_ms > 0 || self->max_count > 0 || self->max_bytes > 0;
}
/* Why the rule contradicts itself, or NULL. */
const char *retention_contradiction (const retention_t *self);
/* Judges the next thing by all rules that it is under. NONE: it stays, and is counted in all of
 * them. Else the policy that lets it go, and whose it is. What one rule keeps, none lets go. */
tmq_policy_t retention_judge (const retention_scope_t *scopes, size_t count,
                              const retention_item_t *item, size_t *whose);

#endif
