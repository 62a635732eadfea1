/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A list and everything in it lie in one arena. Failure: a piece that found no memory makes the
 * whole list fail. */
#include "codec/roster.h"

#include <string.h>

#include "ids.h"

enum { LIST_BYTES_MAX = 1024 * 1024 }; /* an envelope has 64 KiB */

typedef struct maker {
    arena_t *arena;
    bool failed;
} maker_t;

static const char *keep_bytes (maker_t *maker, const char *text, size_t length)
{
    char *copy = arena_alloc (maker->arena, length + 1);
    maker->failed = maker->failed || copy == NULL;
    if (copy == NULL)
        return "";
    memcpy (copy, text, length);
    copy[length] = '\0';
    return copy;
}

static const char *keep (maker_t *maker, const char *text)
{
    return keep_bytes (maker, text, strlen (text));
}

static const char *const *keep_texts (maker_t *maker, char *const *texts, size_t count)
{
    const char **out = arena_zalloc (maker->arena, count, sizeof *out);
    maker->failed = maker->failed || (out == NULL && count > 0);
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = keep (maker, texts[i]);
    return out;
}

static const tmq_label_t *keep_labels (maker_t *maker, Taskmq__Label *const *labels, size_t count)
{
    tmq_label_t *out = arena_zalloc (maker->arena, count, sizeof *out);
    maker->failed = maker->failed || (out == NULL && count > 0);
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = (tmq_label_t){keep (maker, labels[i]->key), keep (maker, labels[i]->value)};
    return out;
}

static void take_about (maker_t *maker, tmq_worker_info_t *out, const Taskmq__WorkerAbout *in)
{
    out->name = keep (maker, in->name);
    out->queues = keep_texts (maker, in->queues, in->n_queues);
    out->queues_count = in->n_queues;
    out->role = keep (maker, in->role);
    out->labels = keep_labels (maker, in->labels, in->n_labels);
    out->labels_count = in->n_labels;
    out->pid = in->pid;
    out->host = keep (maker, in->host);
    out->version = keep (maker, in->version);
    out->config = keep (maker, in->config);
    out->depends_on = keep_texts (maker, in->depends_on, in->n_depends_on);
    out->depends_on_count = in->n_depends_on;
}

static void take_info (maker_t *maker, tmq_worker_info_t *out, const Taskmq__WorkerInfo *in)
{
    static const Taskmq__WorkerAbout nothing = TASKMQ__WORKER_ABOUT__INIT;
    char id[2 * 16 + 1] = "";
    if (in->worker_id.len == 16)
        hex_encode (id, in->worker_id.data, in->worker_id.len);
    take_about (maker, out, in->about != NULL ? in->about : &nothing);
    out->id = keep (maker, id);
    out->principal = keep (maker, in->principal);
    out->drained_by = keep (maker, in->drained_by);
    out->started_at = in->started_at;
    out->heard_at = in->heard_at;
    out->ended_at = in->ended_at;
    out->drained_at = in->drained_at;
    out->connected = in->connected;
    out->running = in->running;
    out->completed = in->completed;
    out->failed = in->failed;
    out->released = in->released;
    out->lost = in->lost;
    out->cancelled = in->cancelled;
    out->has_exit = in->has_exit;
    out->exit_status = in->exit_status;
    out->exit_signal = (int) in->exit_signal;
}

static void take_broker (maker_t *maker, tmq_worker_list_t *out, const Taskmq__BrokerState *in)
{
    static const Taskmq__BrokerState nothing = TASKMQ__BROKER_STATE__INIT;
    if (in == NULL)
        in = &nothing;
    out->broker = keep (maker, in->version);
    out->broker_pid = in->pid;
    out->broker_host = keep (maker, in->host);
    out->broker_started_at = in->started_at;
    out->broker_heartbeat_at = in->heartbeat_at;
    out->generation = in->generation;
    out->epoch = in->epoch;
}

tmq_worker_list_t *core_workers_record (const Taskmq__Reply *reply)
{
    const bool is_page = reply->body_case == TASKMQ__REPLY__BODY_WORKER_PAGE;
    const size_t count = is_page ? reply->worker_page->n_workers : 1;
    arena_t *arena = arena_new (LIST_BYTES_MAX);
    core_roster_t *self = arena == NULL ? NULL : arena_zalloc (arena, 1, sizeof *self);
    tmq_worker_info_t *workers = self == NULL ? NULL : arena_zalloc (arena, count, sizeof *workers);
    maker_t maker = {arena, self == NULL || (workers == NULL && count > 0)};
    if (!maker.failed) {
        self->arena = arena;
        self->list.workers = workers;
        self->list.count = count;
        self->list.next = is_page ? reply->worker_page->next : 0;
        take_broker (&maker, &self->list, is_page ? reply->worker_page->broker : NULL);
        for (size_t i = 0; i < count; i++)
            take_info (&maker, &workers[i],
                       is_page ? reply->worker_page->workers[i] : reply->worker_info);
    }
    if (!maker.failed)
        return &self->list;
    arena_free (arena);
    return NULL;
}
