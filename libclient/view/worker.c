/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include <string.h>

#include "view.h"

const char *view_worker_state (const tmq_worker_info_t *worker)
{
    if (worker->ended_at)
        return "ended";
    if (!worker->connected)
        return "away";
    if (worker->drained_at)
        return "draining";
    return worker->running ? "working" : "idle";
}

/* NULL and "" are null. */
static void write_text (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_text (writer, text != NULL && *text != '\0' ? text : NULL);
}

static void write_texts (json_writer_t *writer, const char *key, const char *const *texts,
                         size_t count)
{
    json_write_key (writer, key);
    json_write_array_begin (writer);
    for (size_t i = 0; i < count; i++)
        json_write_text (writer, texts[i]);
    json_write_array_end (writer);
}

static void write_number (json_writer_t *writer, const char *key, uint64_t number)
{
    json_write_key (writer, key);
    json_write_uint (writer, number);
}

static void write_time (json_writer_t *writer, const char *key, uint64_t ms)
{
    json_write_key (writer, key);
    json_write_time (writer, (int64_t) ms);
}

static void write_labels (json_writer_t *writer, const tmq_worker_info_t *worker)
{
    json_write_key (writer, "labels");
    json_write_object_begin (writer);
    for (size_t i = 0; i < worker->labels_count; i++) {
        json_write_foreign_key (writer, worker->labels[i].key);
        json_write_text (writer, worker->labels[i].value);
    }
    json_write_object_end (writer);
}

static void write_exit (json_writer_t *writer, const tmq_worker_info_t *worker)
{
    json_write_key (writer, "exit");
    if (!worker->has_exit) {
        json_write_null (writer);
        return;
    }
    json_write_object_begin (writer);
    json_write_key (writer, "status");
    json_write_int (writer, worker->exit_status);
    write_number (writer, "signal", (uint64_t) worker->exit_signal);
    json_write_object_end (writer);
}

void view_write_worker (json_writer_t *writer, const tmq_worker_info_t *worker)
{
    json_write_object_begin (writer);
    write_text (writer, "worker_id", worker->id);
    write_text (writer, "name", worker->name);
    write_text (writer, "state", view_worker_state (worker));
    write_texts (writer, "queues", worker->queues, worker->queues_count);
    write_number (writer, "running", worker->running);
    write_number (writer, "completed", worker->completed);
    write_number (writer, "failed", worker->failed);
    write_number (writer, "released", worker->released);
    write_number (writer, "lost", worker->lost);
    write_number (writer, "cancelled", worker->cancelled);
    write_text (writer, "principal", worker->principal);
    write_text (writer, "role", worker->role);
    write_labels (writer, worker);
    write_text (writer, "host", worker->host);
    write_number (writer, "pid", worker->pid);
    write_text (writer, "version", worker->version);
    json_write_key (writer, "config");
    if (*worker->config != '\0')
        json_write_raw (writer, worker->config, strlen (worker->config));
    else
        json_write_null (writer);
    write_texts (writer, "depends_on", worker->depends_on, worker->depends_on_count);
    write_time (writer, "started_at", worker->started_at);
    write_time (writer, "heard_at", worker->heard_at);
    write_time (writer, "ended_at", worker->ended_at);
    write_time (writer, "drained_at", worker->drained_at);
    write_text (writer, "drained_by", worker->drained_by);
    write_exit (writer, worker);
    json_write_object_end (writer);
}
