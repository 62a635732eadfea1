/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Quotas. What a few links have is added up when it is asked for; what a task or a lease changes is
 * counted (tasks/account.h). */
#include "core/requests/quota.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/tasks/blobs.h"
#include "core/tasks/journal.h"

void quota_refresh (requests_t *self, link_t *link)
{
    const principal_t *principal = link->access.principal;
    if (link->account != NULL)
        account_limit (self->tasks, link->account, principal == NULL ? NULL : principal->quotas);
}

void quota_enter (requests_t *self, link_t *link)
{
    link->account = account_of (self->tasks, link->identity);
    if (link->account == NULL)
        return;
    list_push_back (&link->account->links, &link->of_account);
    link->account->links_count++;
    quota_refresh (self, link);
}

void quota_leave (requests_t *self, link_t *link)
{
    account_t *account = link->account;
    if (account == NULL)
        return;
    list_remove (&link->of_account);
    link->account = NULL;
    account->links_count--;
    account_release (self->tasks, account);
}

/* Who pays for tasks and reads. */
static account_t *payer (const link_t *link)
{
    return link->charged != NULL ? link->charged : link->account;
}

static uint64_t has (const account_t *account, quota_t quota)
{
    uint64_t sum = 0;
    for (const node_t *node = account->links.next; node != &account->links; node = node->next) {
        const link_t *link = LIST_ITEM (node, const link_t, of_account);
        switch (quota) {
        case QUOTA_LINKS: sum++; break;
        case QUOTA_WORKERS: sum += link->workers_count; break;
        case QUOTA_SUBSCRIPTIONS: sum += link->subscriptions_by_id.count; break;
        default: break;
        }
    }
    return sum;
}

/* Spread by a fifth, so that those who were refused together do not come back together. */
static uint32_t spread (requests_t *self, int64_t ms)
{
    int64_t fifth = ms / 5;
    int64_t spread_ms =
        ms - fifth + (int64_t) secrets_below (&self->base->secrets, (uint64_t) (2 * fifth + 1));
    return spread_ms < 1 ? 1 : spread_ms > UINT32_MAX ? UINT32_MAX : (uint32_t) spread_ms;
}

void quota_tell (requests_t *self, const link_t *link, const char *identity, const char *text)
{
    self->base->counts.quota_hits++;
    if (link != NULL)
        deeds_quota (self, link, identity, text);
}

static quota_refusal_t refuse (requests_t *self, const link_t *link, const account_t *account,
                               const char *what, uint64_t limit, int64_t retry_ms)
{
    const char *name = name_text (account->name);
    quota_refusal_t refusal = {.refused = true, .retry_after_ms = spread (self, retry_ms)};
    snprintf (refusal.text, sizeof (refusal.text), "%s of %s: %" PRIu64 ", as many as it may have",
              what, name, limit);
    quota_tell (self, link, name, refusal.text);
    return refusal;
}

quota_refusal_t quota_ask_total (requests_t *self, const link_t *link, quota_t quota,
                                 uint64_t total)
{
    static const char *const WHAT[QUOTAS] = {[QUOTA_LINKS] = "links",
                                             [QUOTA_WORKERS] = "workers",
                                             [QUOTA_SUBSCRIPTIONS] = "subscriptions",
                                             [QUOTA_WAITS] = "ids waited for"};
    const account_t *account = link->account;
    if (account == NULL || !account->limited || total <= account->quotas[quota])
        return (quota_refusal_t){0};
    return refuse (self, link, account, WHAT[quota], account->quotas[quota], LIMIT_RETRY_MS);
}

quota_refusal_t quota_ask (requests_t *self, const link_t *link, quota_t quota)
{
    const account_t *account = link->account;
    bool limited = account != NULL && account->limited; /* else it may have many links */
    return quota_ask_total (self, link, quota, limited ? has (account, quota) + 1 : 0);
}

static quota_refusal_t take (requests_t *self, const link_t *link, bucket_t *bucket, uint64_t rate,
                             uint64_t burst, const char *what)
{
    int64_t wait_ms = bucket_take (bucket, rate, burst, self->base->clocks.mono_ms);
    if (wait_ms == 0)
        return (quota_refusal_t){0};
    return refuse (self, link, payer (link), what, rate, wait_ms);
}

/* Which quota another task would exceed; QUOTAS: none. */
static quota_t exceeded (const account_t *account, size_t payload_bytes)
{
    if (account->tasks >= account->quotas[QUOTA_TASKS])
        return QUOTA_TASKS;
    if (account->bytes + payload_bytes > account->quotas[QUOTA_BYTES])
        return QUOTA_BYTES;
    return QUOTAS;
}

bool quota_has_room (requests_t *self, name_t *identity, const principal_t *principal,
                     size_t payload_bytes)
{
    account_t *account = account_of (self->tasks, identity);
    if (account == NULL)
        return true;
    account_limit (self->tasks, account, principal == NULL ? NULL : principal->quotas);
    bool room = !account->limited || exceeded (account, payload_bytes) == QUOTAS;
    account_release (self->tasks, account);
    return room;
}

quota_refusal_t quota_submit (requests_t *self, const link_t *link, size_t payload_bytes)
{
    account_t *account = payer (link);
    if (account == NULL || !account->limited)
        return (quota_refusal_t){0};
    const uint64_t *quotas = account->quotas;
    quota_t over = exceeded (account, payload_bytes);
    if (over != QUOTAS)
        return refuse (self, link, account,
                       over == QUOTA_TASKS ? "live tasks" : "bytes of live tasks' payloads",
                       quotas[over], LIMIT_RETRY_MS);
    return quota_submit_ended (self, link);
}

quota_refusal_t quota_submit_ended (requests_t *self, const link_t *link)
{
    account_t *account = payer (link);
    if (account == NULL || !account->limited)
        return (quota_refusal_t){0};
    return take (self, link, &account->submits, account->quotas[QUOTA_RATE],
                 account->quotas[QUOTA_BURST], "tasks a second");
}

uint64_t quota_blobs (requests_t *self, const link_t *link, const uint8_t *hash, uint64_t *has)
{
    const account_t *account = payer (link);
    *has = 0;
    if (account == NULL || !account->limited)
        return UINT64_MAX;
    const char *owner = name_text (account->name);
    *has = account->blobs - blob_bytes_of (self->tasks, owner, hash) +
           blobs_claimed (self->tasks, owner, hash);
    return account->quotas[QUOTA_BLOBS];
}

/* Who may be away. */
static void refresh_owner (requests_t *self, const link_t *link, account_t *account)
{
    access_t access;
    if (access_link (&access, self->policy, name_text (account->name), link->space->name,
                     self->base->clocks.wall_ms))
        account_limit (self->tasks, account,
                       access.principal == NULL ? NULL : access.principal->quotas);
    access_clear (&access);
}

quota_refusal_t quota_blob (requests_t *self, const link_t *link, const char *owner,
                            const Taskmq__Blob *blob)
{
    quota_refusal_t refusal = {0};
    if (blob_bytes_of (self->tasks, owner, blob->hash.data) > 0)
        return refusal;
    name_t *name = names_keep (&self->base->names, owner);
    account_t *account = account_of (self->tasks, name);
    if (account != NULL && account->links_count == 0)
        refresh_owner (self, link, account);
    if (account != NULL && account->limited &&
        account->blobs + blob->bytes > account->quotas[QUOTA_BLOBS])
        refusal = refuse (self, link, account, "bytes of blobs", account->quotas[QUOTA_BLOBS],
                          LIMIT_RETRY_MS);
    account_release (self->tasks, account);
    names_drop (&self->base->names, name);
    return refusal;
}

bool quota_is_over_share (requests_t *self, const link_t *link)
{
    account_t *account = link->account;
    const engine_config_t *config = &self->base->config;
    size_t share = config->pending_inputs_soft * config->pending_share / 100;
    if (account == NULL || !account->limited || journal_pending_inputs (self->tasks) < share)
        return false;
    bool alone = account->links_count == self->peers->established;
    return !alone && account_pending (self->tasks, account) >= share;
}

quota_refusal_t quota_read (requests_t *self, const link_t *link)
{
    account_t *account = payer (link);
    if (account == NULL || !account->limited)
        return (quota_refusal_t){0};
    uint64_t rate = account->quotas[QUOTA_READS];
    return take (self, link, &account->reads, rate, ACCOUNT_READS_BURST * rate, "reads a second");
}

bool quota_answered (call_t *call, quota_refusal_t refusal)
{
    if (refusal.refused)
        reply_code_at_once (call, TMQ_LIMIT, refusal.text, refusal.retry_after_ms);
    return refusal.refused;
}
