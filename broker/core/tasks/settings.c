/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Settings of queues, and the gate that they close. */
#include "core/tasks/settings.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/tasks/lanes.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"

enum { BURST_MS = 100 }; /* without a burst, so much of a rate may come at once */

/* Rows. */

static void key_of (row_key_t *key, const queue_t *queue)
{
    row_key_text (key, queue->space->name);
    row_key_text (key, queue->name);
}

void settings_message (const settings_t *self, Taskmq__QueueSettings *out)
{
    taskmq__queue_settings__init (out);
    out->paused = self->paused;
    out->paused_at = (uint64_t) self->paused_at;
    out->paused_by = self->paused_by == NULL ? out->paused_by : self->paused_by;
    out->paused_why = self->why == NULL ? out->paused_why : self->why;
#define X(number, NAME, member) out->member = (__typeof__ (out->member)) self->member;
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
}

retention_t settings_retention (const settings_t *self)
{
    return (retention_t){.max_age_ms = (int64_t) self->max_age_ms,
                         .max_count = self->max_count,
                         .max_bytes = self->max_ended_bytes,
                         .keep_failed_ms = (int64_t) self->keep_failed_ms,
                         .min_keep = self->min_keep};
}

static void set_text (char **place, const char *text)
{
    free (*place);
    *place = text == NULL || text[0] == '\0' ? NULL : memory_text (text);
}

static void take_row (settings_t *self, const Taskmq__QueueSettings *in)
{
    self->paused = in->paused;
    self->paused_at = (int64_t) in->paused_at;
    set_text (&self->paused_by, in->paused_by);
    set_text (&self->why, in->paused_why);
#define X(number, NAME, member) self->member = (uint64_t) in->member;
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
    if (in->request_id.len == sizeof (self->request_id))
        memcpy (self->request_id, in->request_id.data, sizeof (self->request_id));
}

void settings_restore (tasks_t *self, const row_t *row)
{
    const char *space = (const char *) buf_bytes (row->key);
    size_t length = buf_length (row->key);
    size_t first = strnlen (space, length);
    if (length < 2 || first + 1 >= length || space[length - 1] != '\0')
        return;
    Taskmq__QueueSettings *message =
        taskmq__queue_settings__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
    if (message == NULL)
        return;
    queue_t *queue = queue_make (self, space_make (self, space), space + first + 1);
    settings_t *settings = settings_make (self, queue);
    take_row (settings, message);
    queue->weight_of = (tmq_weight_of_t) settings->weight_of;
    settings_judge (self, queue);
    taskmq__queue_settings__free_unpacked (message, NULL);
}

/* Life. */

settings_t *settings_make (tasks_t *self, queue_t *queue)
{
    if (queue->settings != NULL)
        return queue->settings;
    settings_t *settings = memory_zero (1, sizeof (*settings));
    settings->queue = queue;
    settings->alarm.kind = ALARM_QUEUE;
    queue->settings = settings;
    queue->space->settings++;
    self->settings++;
    return settings;
}

static void settings_free (queue_t *queue)
{
    settings_t *settings = queue->settings;
    if (settings == NULL)
        return;
    alarm_disarm (&settings->alarm);
    free (settings->paused_by);
    free (settings->why);
    free (settings);
    queue->settings = NULL;
}

void settings_clear (tasks_t *self)
{
    size_t cursor = 0;
    for (queue_t *queue = self->settings == 0 ? NULL : map_each (&self->queues, &cursor);
         queue != NULL; queue = map_each (&self->queues, &cursor))
        settings_free (queue);
    self->settings = 0;
}

static bool is_empty (const settings_t *self)
{
    uint64_t any = self->paused;
#define X(number, NAME, member) any |= self->member;
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
    return any == 0;
}

static row_t row_of (const settings_t *self)
{
    row_key_t key = ROW_KEY_INIT;
    key_of (&key, self->queue);
    if (is_empty (self))
        return row_make_gone (ROW_KIND_QUEUE, key.bytes, key.length);
    Taskmq__QueueSettings message;
    settings_message (self, &message);
    message.request_id =
        (ProtobufCBinaryData){sizeof (self->request_id), (uint8_t *) (uintptr_t) self->request_id};
    bytes_t packed = BYTES_INIT;
    bytes_append_packed (&packed, &message.base);
    row_t row = row_make (ROW_KIND_QUEUE, key.bytes, key.length, packed.data, packed.length);
    bytes_free (&packed);
    return row;
}

void settings_drop_empty (tasks_t *self, settings_t *settings)
{
    queue_t *queue = settings->queue;
    space_t *space = queue->space;
    if (!is_empty (settings))
        return;
    settings_free (queue);
    space->settings--;
    self->settings--;
    queue_release (self, queue);
    space_release (self, space);
}

void settings_put (tasks_t *self, settings_t *settings)
{
    if (self->base->config.planted_bug != ENGINE_BUG_PAUSE_UNWRITTEN)
        rows_put (self, row_of (settings));
    self->open.inputs++;
    settings_judge (self, settings->queue);
    settings_drop_empty (self, settings);
}

/* Changes. */

static void take_field (settings_t *self, const Taskmq__QueueSettings *in, uint32_t field)
{
    switch (field) {
#define X(number, NAME, member)                                                                    \
    case number: self->member = (uint64_t) in->member; break;
        TMQ_QUEUE_FIELD_MAP (X)
#undef X
    default: break;
    }
}

void settings_pause (const tasks_t *self, settings_t *settings, const char *by, const char *why)
{
    if (settings->paused && (why == NULL || *why == '\0'))
        return; /* who paused it first, and why, stands */
    if (!settings->paused)
        settings->paused_at = self->base->clocks.wall_ms;
    settings->paused = true;
    set_text (&settings->paused_by, by);
    set_text (&settings->why, why);
}

void settings_resume (settings_t *self)
{
    self->paused = false;
    self->paused_at = 0;
    set_text (&self->paused_by, NULL);
    set_text (&self->why, NULL);
}

const char *settings_take (tasks_t *tasks, settings_t *self, const Taskmq__QueueSettings *in,
                           const uint32_t *fields, size_t count)
{
    settings_t next = *self;
    for (size_t i = 0; i < count; i++)
        take_field (&next, in, fields[i]);
    if ((next.rate == 0) != (next.rate_ms == 0))
        return "rate and rate_ms: one needs the other";
    if (next.rate == 0 && next.burst != 0)
        return "burst: only beside a rate";
    if (next.ttl_never && next.ttl_ms != 0)
        return "ttl_ms: must be 0 beside ttl_never";
    retention_t rule = settings_retention (&next);
    const char *contradiction = retention_contradiction (&rule);
    if (contradiction != NULL)
        return contradiction;
    if (next.rate != self->rate || next.rate_ms != self->rate_ms || next.burst != self->burst)
        next.bucket = (bucket_t){0};
    if (next.weight_of != self->weight_of)
        lanes_change_key (tasks, self->queue, (tmq_weight_of_t) next.weight_of);
#define X(number, NAME, member) self->member = next.member;
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
    self->bucket = next.bucket;
    return NULL;
}

/* Gates. */

static int64_t each_ns (const settings_t *self)
{
    const uint64_t MS_NS = 1000000;
    return (int64_t) ((self->rate_ms * MS_NS + self->rate - 1) / self->rate);
}

static uint64_t burst_of (const settings_t *self)
{
    uint64_t usual = self->rate * BURST_MS / self->rate_ms;
    return self->burst > 0 ? self->burst : usual > 0 ? usual : 1;
}

/* Closes the gate until the next task may begin, if that is not now. */
static void judge_rate (tasks_t *self, settings_t *settings)
{
    int64_t now_ms = self->base->clocks.mono_ms;
    bool ignored = self->base->config.planted_bug == ENGINE_BUG_RATE_IGNORED;
    int64_t wait_ms =
        settings->rate == 0 || ignored
            ? 0
            : bucket_wait_ms (&settings->bucket, each_ns (settings), burst_of (settings), now_ms);
    alarm_disarm (&settings->alarm);
    if (wait_ms == 0) {
        gate_open (&settings->queue->gate, GATE_RATE);
        return;
    }
    gate_close (&settings->queue->gate, GATE_RATE);
    wheel_arm (&self->base->fine, &settings->alarm, now_ms + wait_ms);
}

static void set_gate (queue_t *queue, unsigned why, bool closed)
{
    if (closed)
        gate_close (&queue->gate, why);
    else
        gate_open (&queue->gate, why);
}

void settings_judge (tasks_t *self, queue_t *queue)
{
    settings_t *settings = queue->settings;
    bool ignored = self->base->config.planted_bug == ENGINE_BUG_CAP_IGNORED;
    bool was_open = gate_is_open (&queue->gate);
    bool capped = settings->max_running > 0 && queue->leases >= settings->max_running;
    if (queue->key_cap != settings->max_per_key) {
        queue->key_cap = (uint32_t) settings->max_per_key;
        lanes_judge (self, queue);
    }
    set_gate (queue, GATE_PAUSED, settings->paused);
    set_gate (queue, GATE_CAP, capped && !ignored);
    judge_rate (self, settings);
    if (!was_open && gate_is_open (&queue->gate) &&
        self->base->config.planted_bug != ENGINE_BUG_GATE_UNHEARD)
        queue_changed (self, queue);
}

void settings_given (tasks_t *self, queue_t *queue)
{
    settings_t *settings = queue->settings;
    if (settings->rate > 0)
        bucket_take_each (&settings->bucket, each_ns (settings), burst_of (settings),
                          self->base->clocks.mono_ms);
    settings_judge (self, queue);
}

void settings_lease_ended (tasks_t *self, queue_t *queue)
{
    if (gate_is_closed (&queue->gate, GATE_CAP))
        settings_judge (self, queue);
}

void settings_alarm (tasks_t *self, settings_t *settings)
{
    settings_judge (self, settings->queue);
}
