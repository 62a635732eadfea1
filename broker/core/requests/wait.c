/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* wait: one answer per id, when its terminal status is durable (A44). */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/wait.h"
#include "core/tasks/journal.h"
#include "types.h"

/* Numbers of the fields in taskmq.proto. */
enum { WAITED_ITEMS = 1, WAITED_TASK_ID = 1, WAITED_CODE = 2, WAITED_STATUS = 3, WAITED_TEXT = 4 };

static void pack_item (bytes_t *out, const uint8_t *id, tmq_code_t code, tmq_status_t status)
{
    bytes_mark_t mark = bytes_open (out, WAITED_ITEMS);
    bytes_append_blob (out, WAITED_TASK_ID, id, sizeof (tmq_id_t));
    bytes_append_uint (out, WAITED_CODE, code);
    bytes_append_uint (out, WAITED_STATUS, status);
    if (code != TMQ_OK)
        bytes_append_string (out, WAITED_TEXT, code_text ((int) code));
    bytes_close (out, mark);
}

static void attach (wait_entry_t *entry, task_t *task)
{
    entry->task = task;
    entry->next = task->waits;
    entry->prev = NULL;
    if (task->waits != NULL)
        task->waits->prev = entry;
    task->waits = entry;
}

static void detach (wait_entry_t *entry)
{
    if (entry->prev != NULL)
        entry->prev->next = entry->next;
    else
        entry->task->waits = entry->next;
    if (entry->next != NULL)
        entry->next->prev = entry->prev;
    entry->task = NULL;
}

/* Takes the newest one out of the task's list, or returns NULL. */
static wait_entry_t *detach_first (task_t *task)
{
    wait_entry_t *entry = task->waits;
    if (entry == NULL)
        return NULL;
    task->waits = entry->next;
    if (entry->next != NULL)
        entry->next->prev = NULL;
    entry->task = NULL;
    return entry;
}

void wait_drop (requests_t *self, wait_t *wait)
{
    for (size_t i = 0; i < wait->entries_count; i++)
        if (wait->entries[i].task != NULL)
            detach (&wait->entries[i]);
    wait->link->waits_count -= wait->open;
    self->waits -= wait->open;
    alarm_disarm (&wait->alarm);
    list_remove (&wait->node);
    free (wait);
}

static void answer_entry (requests_t *self, wait_entry_t *entry, const task_t *task)
{
    wait_t *wait = entry->wait;
    wait->open--;
    wait->link->waits_count--;
    self->waits--;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, wait->request, TMQ_OK, NULL, 0, wait->open > 0, &mark);
    bytes_mark_t waited = bytes_open (out, TASKMQ__REPLY__BODY_WAITED);
    pack_item (out, task->id.bytes, TMQ_OK, task->status);
    bytes_close (out, waited);
    reply_close (self, wait->link, mark, journal_batch (self->tasks), NULL);
    if (wait->open == 0)
        wait_drop (self, wait);
}

void waits_follow (requests_t *self, const fact_t *fact)
{
    task_t *task = fact->task;
    if (task->waits == NULL || !task_is_terminal (task))
        return;
    bool forget = task->status == TMQ_STATUS_CANCELLED &&
                  self->base->config.planted_bug == ENGINE_BUG_WAIT_FORGOTTEN;
    for (wait_entry_t *entry = detach_first (task); entry != NULL; entry = detach_first (task))
        if (!forget)
            answer_entry (self, entry, task);
}

static bool is_open (const found_t *found)
{
    return found->task != NULL && !task_is_terminal (found->task);
}

/* Everything that is known at once goes into the first answer. */
static void answer_known (call_t *call, const found_t *found, size_t open)
{
    requests_t *self = call->requests;
    const Taskmq__Wait *request = call->request->wait;
    if (open == request->n_task_ids)
        return;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, open > 0, &mark);
    bytes_mark_t waited = bytes_open (out, TASKMQ__REPLY__BODY_WAITED);
    for (size_t i = 0; i < request->n_task_ids; i++)
        if (!is_open (&found[i]))
            pack_item (out, request->task_ids[i].data, found[i].gone, found_status (&found[i]));
    bytes_close (out, waited);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

static void keep_waiting (call_t *call, const found_t *found, size_t open)
{
    requests_t *self = call->requests;
    wait_t *wait = memory_zero (1, sizeof (*wait) + open * sizeof (wait->entries[0]));
    wait->link = call->link;
    wait->request = call->request->id;
    wait->alarm.kind = ALARM_WAIT;
    wait->open = open;
    for (size_t i = 0; i < call->request->wait->n_task_ids; i++) {
        if (!is_open (&found[i]))
            continue;
        wait_entry_t *entry = &wait->entries[wait->entries_count++];
        entry->wait = wait;
        attach (entry, found[i].task);
    }
    list_push_back (&call->link->waits, &wait->node);
    call->link->waits_count += open;
    self->waits += open;
    if (call->request->deadline_ms > 0)
        wheel_arm (&self->base->fine, &wait->alarm,
                   self->base->clocks.mono_ms + call->request->deadline_ms);
}

void on_wait (call_t *call)
{
    const Taskmq__Wait *request = call->request->wait;
    found_t found[TMQ_WAIT_IDS_MAX];
    size_t open = 0;
    for (size_t i = 0; i < request->n_task_ids; i++) {
        found[i] = find_id (call->requests->reads, call->link->space, request->task_ids[i].data);
        open += is_open (&found[i]);
    }
    if (call->link->waits_count + open > TMQ_LINK_WAITS_MAX) {
        reply_code (call, TMQ_LIMIT, "too many ids are waited for on this link");
        return;
    }
    answer_known (call, found, open);
    if (open > 0)
        keep_waiting (call, found, open);
}
