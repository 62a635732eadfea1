/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* wait: one answer per id, when its terminal status is durable (A53). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/quota.h"
#include "core/requests/wait.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "types.h"

/* Numbers of the fields in taskmq.proto. */
enum { WAITED_ITEMS = 1, WAITED_TASK_ID = 1, WAITED_CODE = 2, WAITED_STATUS = 3, WAITED_TEXT = 4 };

static void pack_item (bytes_t *out, const uint8_t *id, tmq_status_t status, tmq_code_t code,
                       const char *text)
{
    bytes_mark_t mark = bytes_open (out, WAITED_ITEMS);
    bytes_append_blob (out, WAITED_TASK_ID, id, sizeof (tmq_id_t));
    bytes_append_uint (out, WAITED_CODE, code);
    bytes_append_uint (out, WAITED_STATUS, status);
    bytes_append_string (out, WAITED_TEXT, text);
    bytes_close (out, mark);
}

static void pack_found (bytes_t *out, const uint8_t *id, const found_t *found)
{
    char text[GONE_TEXT_SIZE] = "";
    if (found->gone != TMQ_OK)
        gone_text (text, found);
    pack_item (out, id, found_status (found), found->gone, text);
}

/* A task that ended, with those who wait for it and have no answer yet. */
typedef struct ended {
    node_t node; /* in the list of those to be answered */
    tmq_id_t id;
    tmq_status_t status;
    wait_entry_t *entries;
} ended_t;

static void attach (wait_entry_t *entry, wait_entry_t **list)
{
    entry->at = list;
    entry->next = *list;
    if (*list != NULL)
        (*list)->at = &entry->next;
    *list = entry;
}

static void detach (wait_entry_t *entry)
{
    assert (entry->at != NULL); /* said for the static analyzer */
    *entry->at = entry->next;
    if (entry->next != NULL)
        entry->next->at = entry->at;
    entry->at = NULL;
}

static void wait_free (requests_t *self, wait_t *wait)
{
    for (size_t i = 0; i < wait->entries_count; i++)
        if (wait->entries[i].at != NULL)
            detach (&wait->entries[i]);
    self->waits -= wait->open;
    if (wait->waiter != NULL)
        wait->waiter->open -= wait->open;
    alarm_disarm (&wait->alarm);
    list_remove (&wait->node);
    free (wait);
}

void wait_end (requests_t *self, wait_t *wait)
{
    if (wait->waiter == NULL)
        return;
    wait->waiter->open -= wait->open;
    wait->waiter = NULL;
    list_unlink (&wait->node);
    list_push_back (&self->waits_over, &wait->node);
}

void waits_drop_link (requests_t *self, link_t *link)
{
    waiter_t *waiter = link->waiter;
    if (waiter == NULL)
        return;
    waiter->link = NULL;
    link->waiter = NULL;
    list_push_back (&self->waiters_gone, &waiter->node);
}

static void answer_entry (requests_t *self, wait_entry_t *entry, const tmq_id_t *id,
                          tmq_status_t status)
{
    wait_t *wait = entry->wait;
    detach (entry);
    wait->open--;
    self->waits--;
    if (wait->waiter == NULL)
        return;
    wait->waiter->open--;
    if (wait->waiter->link == NULL)
        return;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, wait->request, TMQ_OK, NULL, 0, wait->open > 0, &mark);
    bytes_mark_t waited = bytes_open (out, TASKMQ__REPLY__BODY_WAITED);
    pack_item (out, id->bytes, status, TMQ_OK, "");
    bytes_close (out, waited);
    reply_close (self, wait->waiter->link, mark, journal_batch (self->tasks), NULL);
    if (wait->open == 0)
        wait_free (self, wait);
}

/* Answers so many of those who wait at most, as far as the round allows. */
static void answer_some (requests_t *self, wait_entry_t **entries, const tmq_id_t *id,
                         tmq_status_t status, size_t max)
{
    size_t *left = &self->base->round.waits;
    for (; *entries != NULL && *left > 0 && max > 0; max--) {
        answer_entry (self, *entries, id, status);
        budget_take (left, 1);
    }
}

static void owe (requests_t *self, task_t *task, tmq_status_t status)
{
    ended_t *ended = memory_alloc (sizeof (*ended));
    *ended = (ended_t){.id = task->id, .status = status, .entries = task->waits};
    ended->entries->at = &ended->entries;
    task->waits = NULL;
    list_push_back (&self->waits_owed, &ended->node);
}

void waits_follow (requests_t *self, const fact_t *fact)
{
    task_t *task = fact->task;
    if (task->waits == NULL || !status_is_terminal (fact->to))
        return;
    if (fact->to == TMQ_STATUS_CANCELLED &&
        self->base->config.planted_bug == ENGINE_BUG_WAIT_FORGOTTEN) {
        while (task->waits != NULL)
            detach (task->waits);
        return;
    }
    answer_some (self, &task->waits, &task->id, fact->to, SIZE_MAX);
    if (task->waits != NULL)
        owe (self, task, fact->to);
}

/* Frees what nobody waits for any more. */
static void free_some (requests_t *self)
{
    size_t *left = &self->base->round.endings;
    while (*left > 0) {
        node_t *gone = list_first (&self->waiters_gone);
        waiter_t *waiter = gone == NULL ? NULL : LIST_ITEM (gone, waiter_t, node);
        node_t *node = list_pop_front (&self->waits_over);
        if (node == NULL && waiter != NULL)
            node = list_pop_front (&waiter->waits);
        if (node != NULL) {
            wait_t *wait = LIST_ITEM (node, wait_t, node);
            budget_take (left, 1 + wait->entries_count);
            wait_free (self, wait);
        } else if (waiter != NULL) {
            free (LIST_ITEM (list_pop_front (&self->waiters_gone), waiter_t, node));
        } else {
            return;
        }
    }
}

void waits_run (requests_t *self)
{
    enum { TURN = 64 }; /* answers for a task, before the others have their turn */
    while (self->base->round.waits > 0 && !list_is_empty (&self->waits_owed)) {
        ended_t *ended = LIST_ITEM (list_pop_front (&self->waits_owed), ended_t, node);
        answer_some (self, &ended->entries, &ended->id, ended->status, TURN);
        if (ended->entries != NULL)
            list_push_back (&self->waits_owed, &ended->node);
        else
            free (ended);
    }
    free_some (self);
}

bool waits_are_behind (const requests_t *self)
{
    return !list_is_empty (&self->waits_owed) || !list_is_empty (&self->waits_over) ||
           !list_is_empty (&self->waiters_gone);
}

void waits_init (requests_t *self)
{
    list_init (&self->waits_owed);
    list_init (&self->waits_over);
    list_init (&self->waiters_gone);
}

void waits_reset (requests_t *self)
{
    while (waits_are_behind (self)) {
        self->base->round = self->base->config.round;
        waits_run (self);
    }
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

static found_t find_waited (const call_t *call, const uint8_t *id)
{
    const requests_t *self = call->requests;
    if (self->base->config.planted_bug == ENGINE_BUG_WAIT_UNJUDGED)
        return find_unjudged (self->reads, call->link->space, id);
    return find_id_for_long (self->reads, call->link, id, RIGHT_READ | RIGHT_OBSERVE);
}

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
        out->found[out->count] = find_waited (call, id);
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
            pack_found (out, named->ids[i], &named->found[i]);
    bytes_close (out, waited);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

static waiter_t *waiter_of (link_t *link)
{
    if (link->waiter == NULL) {
        link->waiter = memory_zero (1, sizeof (*link->waiter));
        link->waiter->link = link;
        list_init (&link->waiter->waits);
    }
    return link->waiter;
}

static void keep_waiting (call_t *call, const named_t *named)
{
    requests_t *self = call->requests;
    size_t open = named->open;
    wait_t *wait = memory_zero (1, sizeof (*wait) + open * sizeof (wait->entries[0]));
    wait->waiter = waiter_of (call->link);
    wait->request = call->request->id;
    wait->alarm.kind = ALARM_WAIT;
    wait->open = open;
    for (size_t i = 0; i < named->count; i++) {
        if (!is_open (&named->found[i]))
            continue;
        wait_entry_t *entry = &wait->entries[wait->entries_count++];
        entry->wait = wait;
        attach (entry, &named->found[i].task->waits);
    }
    list_push_back (&wait->waiter->waits, &wait->node);
    wait->waiter->open += open;
    self->waits += open;
    if (call->request->deadline_ms > 0)
        wheel_arm (&self->base->fine, &wait->alarm,
                   self->base->clocks.mono_ms + call->request->deadline_ms);
}

/* Ids that are waited for on all links of the link's principal. */
static uint64_t open_of_account (const link_t *link)
{
    uint64_t open = 0;
    if (link->account == NULL)
        return 0;
    const node_t *links = &link->account->links;
    for (const node_t *node = links->next; node != links; node = node->next) {
        const waiter_t *waiter = LIST_ITEM (node, const link_t, of_account)->waiter;
        open += waiter == NULL ? 0 : waiter->open;
    }
    return open;
}

void on_wait (call_t *call)
{
    named_t named MEMORY_FILLED_BEFORE_READ;
    find_named (call, &named);
    size_t open = call->link->waiter == NULL ? 0 : call->link->waiter->open;
    if (open + named.open > TMQ_LINK_WAITS_MAX) {
        reply_limit (call, "ids waited for on a link", TMQ_LINK_WAITS_MAX);
        return;
    }
    size_t waits_max = call->requests->base->config.waits_max;
    if (call->requests->waits + named.open > waits_max) {
        reply_limit (call, "ids waited for by all links", waits_max);
        return;
    }
    if (quota_answered (call, quota_ask_total (call->requests, call->link, QUOTA_WAITS,
                                               open_of_account (call->link) + named.open)))
        return;
    answer_known (call, &named);
    if (named.open > 0)
        keep_waiting (call, &named);
}
