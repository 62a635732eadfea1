/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/base/retention.h"

const char *retention_contradiction (const retention_t *self)
{
    if (self->max_count > 0 && self->max_count < self->min_keep)
        return "max_count is less than min_keep: how many are to stay?";
    if (self->keep_failed_ms > 0 && self->keep_failed_ms < self->max_age_ms)
        return "keep_failed is less than max_age: it is the longer age of what failed";
    return NULL;
}

static bool keeps (const retention_scope_t *scope, const retention_item_t *item)
{
    const retention_t *rule = &scope->rule;
    return scope->tally->count < rule->min_keep ||
           (item->failed && item->age_ms < rule->keep_failed_ms);
}

/* Only what stays is counted, so a pass that is cut off and begun again comes to the same end. */
static tmq_policy_t lets_go (const retention_scope_t *scope, const retention_item_t *item)
{
    const retention_t *rule = &scope->rule;
    const retention_tally_t *tally = scope->tally;
    if (rule->max_age_ms > 0 && item->age_ms >= rule->max_age_ms)
        return TMQ_POLICY_MAX_AGE;
    if (rule->max_count > 0 && tally->count >= rule->max_count)
        return TMQ_POLICY_MAX_COUNT;
    if (rule->max_bytes > 0 && tally->bytes + item->bytes > rule->max_bytes)
        return TMQ_POLICY_MAX_BYTES;
    return TMQ_POLICY_NONE;
}

tmq_policy_t retention_judge (const retention_scope_t *scopes, size_t count,
                              const retention_item_t *item, size_t *whose)
{
    tmq_policy_t policy = TMQ_POLICY_NONE;
    bool kept = item->needed;
    for (size_t i = 0; i < count; i++)
        kept = kept || keeps (&scopes[i], item);
    for (size_t i = 0; !kept && i < count && policy == TMQ_POLICY_NONE; i++) {
        policy = lets_go (&scopes[i], item);
        *whose = i;
    }
    for (size_t i = 0; policy == TMQ_POLICY_NONE && i < count; i++) {
        scopes[i].tally->count++;
        scopes[i].tally->bytes += item->bytes;
    }
    return policy;
}
