/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who works here: list, show, drain. A link sees all workers of its namespace if it may read or
 * observe all of it, else its own. */
#include <inttypes.h>
#include <string.h>

#include "core/match/roster.h"
#include "core/peers/link.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/quota.h"
#include "core/tasks/journal.h"
#include "core/wire/pack.h"

/* Numbers of fields in taskmq.proto. */
enum { PAGE_WORKERS = 1, PAGE_NEXT = 2, PAGE_BROKER = 3 };

enum { LIMIT_DEFAULT = 100, DRAINED_MAX = 1000 };

static bool sees (const call_t *call, const roster_entry_t *entry)
{
    const char *identity = name_text (entry->identity);
    return strcmp (name_text (entry->ns), call->link->space->name) == 0 &&
           (access_sees_entry (&call->link->access, identity, RIGHT_READ | RIGHT_OBSERVE) ||
            link_is (call->link, identity));
}

static void pack_broker (const requests_t *self, bytes_t *out)
{
    const engine_config_t *config = &self->base->config;
    Taskmq__BrokerState broker = TASKMQ__BROKER_STATE__INIT;
    broker.version = (char *) config->broker;
    broker.pid = config->broker_pid;
    broker.host = (char *) config->broker_host;
    broker.started_at = (uint64_t) config->broker_started_at;
    broker.heartbeat_at = (uint64_t) self->base->clocks.wall_ms;
    broker.generation = self->history->generation;
    broker.epoch = self->history->epoch;
    bytes_append_message (out, PAGE_BROKER, &broker.base);
}

void on_worker_list (call_t *call)
{
    requests_t *self = call->requests;
    const match_t *match = self->match;
    const Taskmq__WorkerList *request = call->request->worker_list;
    if (quota_answered (call, quota_read (self, call->link)))
        return;
    size_t left = request->limit == 0 ? LIMIT_DEFAULT : request->limit;
    uint64_t last = 0;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_WORKER_PAGE);
    size_t begin = out->length;
    bool more = false;
    if (request->before == 0)
        pack_broker (self, out);
    for (node_t *node = match->roster.next; node != &match->roster && !more; node = node->next) {
        const roster_entry_t *entry = LIST_ITEM (node, const roster_entry_t, node);
        if ((request->before != 0 && entry->no >= request->before) ||
            (entry->ended_at != 0 && !request->all) || !sees (call, entry))
            continue;
        more = left == 0 || out->length - begin > ENVELOPE_FILL_BYTES - TMQ_WORKER_INFO_BYTES_MAX;
        if (more)
            break;
        roster_pack (match, out, PAGE_WORKERS, entry);
        last = entry->no;
        left--;
    }
    bytes_append_uint (out, PAGE_NEXT, more ? last : 0);
    bytes_close (out, page);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

static bool is_named (const roster_entry_t *entry, const ProtobufCBinaryData *id, const char *name)
{
    return id->len > 0 ? memcmp (entry->id, id->data, sizeof (entry->id)) == 0
                       : strcmp (name_text (entry->name), name) == 0;
}

void on_worker_show (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__WorkerShow *request = call->request->worker_show;
    const roster_entry_t *found = NULL;
    if (quota_answered (call, quota_read (self, call->link)))
        return;
    for (node_t *node = self->match->roster.next; node != &self->match->roster; node = node->next) {
        const roster_entry_t *entry = LIST_ITEM (node, const roster_entry_t, node);
        if (!is_named (entry, &request->worker_id, request->name) || !sees (call, entry))
            continue;
        if (found == NULL || (found->ended_at != 0 && entry->ended_at == 0))
            found = entry;
    }
    if (found == NULL) {
        reply_code (call, TMQ_NOT_FOUND, "there is no such worker");
        return;
    }
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    roster_pack (self->match, out, TASKMQ__REPLY__BODY_WORKER_INFO, found);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

/* One that was drained before is in the answer again, so it may be repeated. */
void on_worker_drain (call_t *call)
{
    requests_t *self = call->requests;
    match_t *match = self->match;
    const Taskmq__WorkerDrain *request = call->request->worker_drain;
    bytes_t packed = BYTES_INIT;
    size_t count = 0;
    if (self->base->full) { /* its row could not be kept */
        reply_code_at_once (call, TMQ_STORE_FULL, NULL, FULL_RETRY_MS);
        return;
    }
    for (node_t *node = match->roster.next; node != &match->roster && count < DRAINED_MAX;
         node = node->next) {
        roster_entry_t *entry = LIST_ITEM (node, roster_entry_t, node);
        if (entry->ended_at != 0 || !is_named (entry, &request->worker_id, request->name) ||
            !sees (call, entry))
            continue;
        if (entry->drained_by == NULL)
            deeds_worker (call, name_text (entry->name));
        roster_drain (match, entry, name_text (call->link->identity));
        count++;
        if (packed.length <= ENVELOPE_FILL_BYTES - TMQ_WORKER_INFO_BYTES_MAX)
            roster_pack (match, &packed, PAGE_WORKERS, entry);
    }
    if (count == 0) {
        reply_code (call, TMQ_NOT_FOUND, "no such worker works here now");
    } else {
        bytes_mark_t mark;
        bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
        bytes_append_element (out, TASKMQ__REPLY__BODY_WORKER_PAGE, packed.data, packed.length);
        reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
    }
    bytes_free (&packed);
}
