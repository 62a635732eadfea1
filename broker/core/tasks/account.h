/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What an identity has of everything that a principal may have only so much of. There are accounts
 * only while there is a policy. What of it survives a restart is counted again from the live tasks;
 * the buckets are full again then. */
#ifndef TASKMQ_CORE_ACCOUNT_H
#define TASKMQ_CORE_ACCOUNT_H

#include "core/access/policy.h"
#include "core/base/bucket.h"
#include "core/tasks/tasks.h"

enum { ACCOUNT_READS_BURST = 4 }; /* seconds of reads that may come at once */

typedef struct account {
    node_t node;
    name_t *name;
    node_t links; /* of_account of its links */
    size_t links_count;
    size_t tasks;       /* live ones, … */
    uint64_t bytes;     /* … of their payloads */
    uint64_t blobs;     /* bytes of those that its tasks name, each once; ended ones, too */
    size_t leases;      /* that its workers hold */
    node_t hungry;      /* its workers that wait for the end of a lease of any of them */
    size_t pending_old; /* tasks that it brought and are not durable, in batches up to … */
    uint64_t pending_upto;
    size_t pending_new; /* … this one, and behind it */
    bucket_t submits;
    bucket_t reads;
    bool limited;
    uint64_t quotas[QUOTAS]; /* if it is limited */
} account_t;

/* From now on there are accounts, as of what is there, or none. True: there were none, and what
 * blobs_charge adds is to be added. */
bool accounts_begin (tasks_t *self);
void accounts_end (tasks_t *self);
/* Forgets what the tasks and leases were, with them. */
void accounts_reset (tasks_t *self);
/* The account of an identity, made if it is not there; NULL: there are none. */
account_t *account_of (tasks_t *self, name_t *identity);
/* It may go if it has nothing. Accepts NULL. */
void account_release (tasks_t *self, account_t *account);
/* quotas NULL: unlimited. Workers that wait for a lease are looked at when there is one more. */
void account_limit (tasks_t *self, account_t *account, const uint64_t *quotas);
/* A live task came, or ended. */
void account_add_task (tasks_t *self, const task_t *task);
void account_end_task (tasks_t *self, const task_t *task);
/* A task of the owner is the first that names a blob of so many bytes, or was the last. */
void account_add_blob (tasks_t *self, name_t *owner, uint64_t bytes);
void account_end_blob (tasks_t *self, name_t *owner, uint64_t bytes);
/* It submitted, imported or retried a task into the open batch. Accepts NULL. */
void account_add_pending (tasks_t *self, account_t *account);
/* How many of them may not be durable yet; at most a few batches too many. */
size_t account_pending (const tasks_t *self, account_t *account);
/* The worker has so many leases more, or fewer. */
void account_add_leases (tasks_t *self, worker_t *worker, size_t count);
void account_end_leases (tasks_t *self, worker_t *worker, size_t count);
/* The worker may have another lease. One that may not is looked at again when it may. */
bool account_has_lease (worker_t *worker);

#endif
