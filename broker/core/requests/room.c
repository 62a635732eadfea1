/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Room for live tasks, for all requests that bring some. */
#include "core/requests/room.h"

#include "core/requests/quota.h"
#include "core/requests/unavailable.h"
#include "core/tasks/journal.h"
#include "core/tasks/settings.h"
#include "core/tasks/space.h"

bool room_refuses (const requests_t *self, const space_t *space, size_t payload_bytes,
                   size_t texts_bytes, room_refusal_t *out)
{
    const engine_config_t *config = &self->base->config;
    const char *what = NULL;
    size_t limit = 0;
    if (tasks_live (self->tasks) >= config->live_tasks_max) {
        what = "live tasks";
        limit = config->live_tasks_max;
    } else if (self->tasks->texts_bytes + self->tasks->order_bytes + texts_bytes >
               config->live_bytes_max) {
        what = "bytes of live tasks' texts, and of their queues and fair keys";
        limit = config->live_bytes_max;
    } else if (space->tasks >= config->space_tasks_max) {
        what = "live tasks of the namespace";
        limit = config->space_tasks_max;
    } else if (space->bytes + payload_bytes > config->space_bytes_max) {
        what = "bytes of payloads of the namespace's live tasks";
        limit = config->space_bytes_max;
    }
    if (what != NULL)
        limit_text (out->text, what, limit);
    return what != NULL;
}

const char *room_of_queue (const requests_t *self, const space_t *space, const char *name,
                           size_t payload_bytes, size_t *limit)
{
    const queue_t *queue = space->settings == 0 ? NULL : queue_find (self->tasks, space, name);
    const settings_t *settings = queue == NULL ? NULL : queue->settings;
    if (settings == NULL)
        return NULL;
    if (settings->max_tasks > 0 && queue->queued >= settings->max_tasks) {
        *limit = (size_t) settings->max_tasks;
        return "queued tasks of the queue";
    }
    if (settings->max_bytes > 0 && queue->queued_bytes + payload_bytes > settings->max_bytes) {
        *limit = (size_t) settings->max_bytes;
        return "bytes of payloads of the queue's queued tasks";
    }
    return NULL;
}

bool room_refused_at_once (call_t *call)
{
    requests_t *self = call->requests;
    if (self->base->full) {
        self->base->counts.full++;
        reply_code_at_once (call, TMQ_STORE_FULL, NULL, FULL_RETRY_MS);
    } else if (self->base->away) {
        reply_unavailable (call);
    } else if (submits_are_refused (self) || quota_is_over_share (self, call->link)) {
        self->base->counts.overloads++;
        reply_code_at_once (call, TMQ_OVERLOADED, NULL, OVERLOAD_RETRY_MS);
    } else {
        return false;
    }
    return true;
}
