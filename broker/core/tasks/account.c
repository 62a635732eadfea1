/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Accounts: found through the name of the identity, so a task costs no look-up. */
#include "core/tasks/account.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/tasks/extras.h"

/* Two of those that have been there for longest, for each that comes: who left with a bucket that
 * was not full would stay for ever. */
static void release_some (tasks_t *self)
{
    for (int i = 0; i < 2 && !list_is_empty (&self->accounts); i++) {
        account_t *account = LIST_ITEM (list_pop_front (&self->accounts), account_t, node);
        list_push_back (&self->accounts, &account->node);
        account_release (self, account);
    }
}

account_t *account_of (tasks_t *self, name_t *identity)
{
    if (!self->has_accounts || identity == NULL)
        return NULL;
    if (identity->account != NULL)
        return identity->account;
    release_some (self);
    account_t *account = memory_zero (1, sizeof (*account));
    account->name = names_share (identity);
    identity->account = account;
    list_init (&account->links);
    list_init (&account->hungry);
    list_push_back (&self->accounts, &account->node);
    return account;
}

static void forget (tasks_t *self, account_t *account)
{
    while (list_pop_front (&account->hungry) != NULL)
        continue;
    while (list_pop_front (&account->links) != NULL)
        continue;
    list_remove (&account->node);
    account->name->account = NULL;
    names_drop (&self->base->names, account->name);
    free (account);
}

void account_release (tasks_t *self, account_t *account)
{
    if (account == NULL || account->links_count > 0 || account->tasks > 0 || account->leases > 0 ||
        account->blobs > 0)
        return;
    int64_t mono_ms = self->base->clocks.mono_ms;
    if (bucket_is_full (&account->submits, mono_ms) && bucket_is_full (&account->reads, mono_ms))
        forget (self, account);
}

/* All of them: the first one may have nothing to take. */
static void wake_hungry (tasks_t *self, account_t *account)
{
    for (node_t *node = list_pop_front (&account->hungry); node != NULL;
         node = list_pop_front (&account->hungry))
        worker_changed (self, LIST_ITEM (node, worker_t, hungry));
}

void account_limit (tasks_t *self, account_t *account, const uint64_t *quotas)
{
    account->limited = quotas != NULL;
    for (size_t i = 0; i < QUOTAS; i++)
        account->quotas[i] = quotas == NULL ? UINT64_MAX : quotas[i];
    if (account->limited) {
        int64_t mono_ms = self->base->clocks.mono_ms;
        uint64_t reads = quotas[QUOTA_READS];
        bucket_fit (&account->submits, quotas[QUOTA_RATE], quotas[QUOTA_BURST], mono_ms);
        bucket_fit (&account->reads, reads, ACCOUNT_READS_BURST * reads, mono_ms);
    }
    if (account->leases < account->quotas[QUOTA_LEASES])
        wake_hungry (self, account);
}

void account_add_task (tasks_t *self, const task_t *task)
{
    account_t *account = account_of (self, task->owner);
    if (account == NULL)
        return;
    account->tasks++;
    account->bytes += extras_payload_bytes (task);
}

void account_end_task (tasks_t *self, const task_t *task)
{
    account_t *account = task->owner == NULL ? NULL : task->owner->account;
    if (account == NULL)
        return;
    account->tasks--;
    account->bytes -= extras_payload_bytes (task);
    account_release (self, account);
}

void account_add_blob (tasks_t *self, name_t *owner, uint64_t bytes)
{
    account_t *account = account_of (self, owner);
    if (account != NULL)
        account->blobs += bytes;
}

void account_end_blob (tasks_t *self, name_t *owner, uint64_t bytes)
{
    if (owner->account == NULL)
        return;
    owner->account->blobs -= bytes;
    account_release (self, owner->account);
}

size_t account_pending (const tasks_t *self, account_t *account)
{
    if (self->durable >= account->pending_upto) {
        account->pending_old = account->pending_new;
        account->pending_new = 0;
        account->pending_upto = self->open.no;
    }
    return account->pending_old + account->pending_new;
}

void account_add_pending (tasks_t *self, account_t *account)
{
    if (account == NULL)
        return;
    account_pending (self, account);
    if (self->open.no <= account->pending_upto)
        account->pending_old++;
    else
        account->pending_new++;
}

void account_add_leases (tasks_t *self, worker_t *worker, size_t count)
{
    account_t *account = count == 0 ? NULL : account_of (self, worker->identity);
    if (account != NULL)
        account->leases += count;
}

void account_end_leases (tasks_t *self, worker_t *worker, size_t count)
{
    account_t *account = worker->identity == NULL ? NULL : worker->identity->account;
    if (account == NULL || count == 0)
        return;
    account->leases -= count;
    wake_hungry (self, account);
    account_release (self, account);
}

bool account_has_lease (worker_t *worker)
{
    account_t *account = worker->identity == NULL ? NULL : worker->identity->account;
    list_remove (&worker->hungry);
    if (account == NULL || !account->limited || account->leases < account->quotas[QUOTA_LEASES])
        return true;
    list_push_back (&account->hungry, &worker->hungry);
    return false;
}

bool accounts_begin (tasks_t *self)
{
    if (self->has_accounts)
        return false;
    self->has_accounts = true;
    size_t cursor = 0;
    for (task_t *task = map_each (&self->by_id, &cursor); task != NULL;
         task = map_each (&self->by_id, &cursor))
        if (!task_is_terminal (task))
            account_add_task (self, task);
    cursor = 0;
    for (worker_t *worker = map_each (&self->workers, &cursor); worker != NULL;
         worker = map_each (&self->workers, &cursor))
        account_add_leases (self, worker, worker->held);
    return true;
}

void accounts_reset (tasks_t *self)
{
    for (node_t *node = list_pop_front (&self->accounts); node != NULL;
         node = list_pop_front (&self->accounts))
        forget (self, LIST_ITEM (node, account_t, node));
}

void accounts_end (tasks_t *self)
{
    accounts_reset (self);
    self->has_accounts = false;
}
