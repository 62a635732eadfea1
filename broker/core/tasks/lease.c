/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Leases and who holds them. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/account.h"
#include "core/tasks/index.h"
#include "core/tasks/lanes.h"
#include "core/tasks/lease.h"
#include "core/tasks/members.h"
#include "core/tasks/settings.h"
#include "core/tasks/space.h"

bool lease_is_current (const tasks_t *self, const task_t *task, const Taskmq__Lease *lease)
{
    if (task == NULL || !task->leased)
        return false;
    if (self->base->config.planted_bug == ENGINE_BUG_NO_ATTEMPT_CHECK)
        return true;
    return task->attempt == lease->attempt &&
           sodium_memcmp (task->detail->secret, lease->secret.data,
                          sizeof (task->detail->secret)) == 0;
}

void lease_arm (tasks_t *self, task_t *task, int64_t lease_ms)
{
    detail_t *detail = task->detail;
    const clocks_t *clocks = &self->base->clocks;
    detail->lease_due_ms = clocks_awake_ms (clocks) + lease_ms;
    int64_t due_ms = clocks->mono_ms + lease_ms;
    /* A longer term is noticed when the alarm fires: a renewal costs nothing here. */
    if (!alarm_is_armed (&task->alarm) || alarm_due (&task->alarm) > due_ms) {
        task->alarm.kind = ALARM_TASK;
        wheel_arm (&self->base->fine, &task->alarm, due_ms);
    }
}

void lease_hold (tasks_t *self, worker_t *worker, task_t *task)
{
    task->detail->holder = worker;
    list_push_back (&worker->leases, &task->detail->held);
    members_add (self, worker, task);
    worker->held++;
    task->queue->leases++;
    account_add_leases (self, worker, 1);
    task->leased = true;
    self->leases++;
}

void lease_end (tasks_t *self, task_t *task)
{
    assert (task->leased);
    detail_t *detail = task->detail;
    worker_t *worker = detail->holder;
    list_remove (&detail->held);
    members_remove (self, detail);
    detail->holder = NULL;
    task->leased = false;
    worker->held--;
    task->queue->leases--;
    lanes_release (self, task);
    if (task->queue->settings != NULL)
        settings_lease_ended (self, task->queue);
    account_end_leases (self, worker, 1);
    self->leases--;
    alarm_disarm (&task->alarm);
    worker_changed (self, worker);
}

worker_t *worker_find (const tasks_t *self, const space_t *space, const uint8_t *id)
{
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    worker_t *worker = map_next (&self->workers, hash, &cursor);
    while (worker != NULL &&
           (worker->space != space || memcmp (worker->id, id, sizeof (worker->id)) != 0))
        worker = map_next (&self->workers, hash, &cursor);
    return worker;
}

worker_t *worker_make (tasks_t *self, space_t *space, const uint8_t *id)
{
    worker_t *worker = worker_find (self, space, id);
    if (worker != NULL)
        return worker;
    worker = memory_zero (1, sizeof (*worker));
    memcpy (worker->id, id, sizeof (worker->id));
    worker->hash = task_hash (self, space, id);
    worker->space = space;
    space->workers++;
    worker->alarm.kind = ALARM_WORKER;
    list_init (&worker->leases);
    list_init (&worker->dropped);
    map_insert (&self->workers, worker->hash, worker);
    return worker;
}

void worker_set_labels (tasks_t *self, worker_t *worker, Taskmq__Label *const *labels, size_t count)
{
    for (size_t i = 0; i < worker->labels_count; i++)
        names_drop (&self->base->names, worker->labels[i]);
    free (worker->labels);
    worker->labels = count == 0 ? NULL : memory_alloc (count * sizeof (*worker->labels));
    for (size_t i = 0; i < count; i++)
        worker->labels[i] = needs_name (self, labels[i]);
    worker->labels_count = count;
}

void worker_release (tasks_t *self, worker_t *worker)
{
    if (worker->link != NULL || worker->held > 0)
        return;
    assert (worker->seats_count == 0);
    list_remove (&worker->changed);
    list_remove (&worker->hungry);
    list_remove (&worker->owing);
    alarm_disarm (&worker->alarm);
    map_remove (&self->workers, worker->hash, worker);
    names_drop (&self->base->names, worker->name);
    names_drop (&self->base->names, worker->identity);
    worker_set_labels (self, worker, NULL, 0);
    space_t *space = worker->space;
    space->workers--;
    free (worker);
    space_release (self, space);
}
