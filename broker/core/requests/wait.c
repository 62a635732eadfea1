/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* wait: one answer per id, when its terminal status is durable (A53). */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/wait.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"

/* Numbers of the fields in taskmq.proto. */
enum { WAITED_ITEMS = 1, WAITED_TASK_ID = 1, WAITED_CODE = 2, WAITED_STATUS = 3, WAITED_TEXT = 4 };

static void pack_item (bytes_t *out, const uint8_t *id, const found_t *found)
{
    bytes_mark_t mark = bytes_open (out, WAITED_ITEMS);
    bytes_append_blob (out, WAITED_TASK_ID, id, sizeof (tmq_id_t));
    bytes_append_uint (out, WAITED_CODE, found->gone);
    bytes_append_uint (out, WAITED_STATUS, found_status (found));
    if (found->gone != TMQ_OK) {
        char text[GONE_TEXT_SIZE];
        gone_text (text, found);
        bytes_append_string (out, WAITED_TEXT, text);
    }
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

static void answer_entry (requests_t *self, wait_entry_t *entry, task_t *task)
{
    wait_t *wait = entry->wait;
    wait->open--;
    wait->link->waits_count--;
    self->waits--;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, wait->request, TMQ_OK, NULL, 0, wait->open > 0, &mark);
    bytes_mark_t waited = bytes_open (out, TASKMQ__REPLY__BODY_WAITED);
    pack_item (out, task->id.bytes, &(found_t){.task = task});
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

/* The ids of a wait, each of them once. */
typedef struct named {
    const uint8_t *ids[TMQ_WAIT_IDS_MAX];
    found_t found[TMQ_WAIT_IDS_MAX];
    size_t count;
    size_t open;
} named_t;

static void find_named (call_t *call, named_t *out)
{
    enum { SLOTS = 2048 };
    uint16_t slots[SLOTS] = {0}; /* one more than the place in ids; 0: free */
    const requests_t *self = call->requests;
    const Taskmq__Wait *request = call->request->wait;
    _Static_assert(TMQ_WAIT_IDS_MAX <= SLOTS / 2, "there is always a free slot");
    out->count = out->open = 0;
    for (size_t i = 0; i < request->n_task_ids; i++) {
        const uint8_t *id = request->task_ids[i].data;
        size_t slot = task_hash (self->tasks, call->link->space, id) % SLOTS;
        while (slots[slot] != 0 && memcmp (out->ids[slots[slot] - 1], id, sizeof (tmq_id_t)) != 0)
            slot = (slot + 1) % SLOTS;
        if (slots[slot] != 0)
            continue;
        out->ids[out->count] = id;
        out->found[out->count] = find_id (self->reads, call->link->space, id);
        out->open += is_open (&out->found[out->count]);
        slots[slot] = (uint16_t) ++out->count;
    }
}

/* Everything that is known at once goes into the first answer. */
static void answer_known (call_t *call, const named_t *named)
{
    requests_t *self = call->requests;
    if (named->open == named->count)
        return;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, named->open > 0, &mark);
    bytes_mark_t waited = bytes_open (out, TASKMQ__REPLY__BODY_WAITED);
    for (size_t i = 0; i < named->count; i++)
        if (!is_open (&named->found[i]))
            pack_item (out, named->ids[i], &named->found[i]);
    bytes_close (out, waited);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

static void keep_waiting (call_t *call, const named_t *named)
{
    requests_t *self = call->requests;
    size_t open = named->open;
    wait_t *wait = memory_zero (1, sizeof (*wait) + open * sizeof (wait->entries[0]));
    wait->link = call->link;
    wait->request = call->request->id;
    wait->alarm.kind = ALARM_WAIT;
    wait->open = open;
    for (size_t i = 0; i < named->count; i++) {
        if (!is_open (&named->found[i]))
            continue;
        wait_entry_t *entry = &wait->entries[wait->entries_count++];
        entry->wait = wait;
        attach (entry, named->found[i].task);
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
    named_t named;
    find_named (call, &named);
    if (call->link->waits_count + named.open > TMQ_LINK_WAITS_MAX) {
        reply_limit (call, "ids waited for on a link", TMQ_LINK_WAITS_MAX);
        return;
    }
    size_t waits_max = call->requests->base->config.waits_max;
    if (call->requests->waits + named.open > waits_max) {
        reply_limit (call, "ids waited for by all links", waits_max);
        return;
    }
    answer_known (call, &named);
    if (named.open > 0)
        keep_waiting (call, &named);
}
