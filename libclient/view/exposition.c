/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain.h"

enum { METRIC_LENGTH_MAX = 100 };

/* A backslash is escaped, in the value of a label the quote too. Names are ASCII; what else came
 * from a broker does no harm to a terminal. */
static void put_escaped (bytes_t *out, const char *text, bool label)
{
    for (; *text; text++) {
        const bool is_plain = *text >= ' ' ? *text < 0x7f : (uint8_t) *text >= 0x80 && !label;
        if (*text == '\\' || (label && *text == '"'))
            bytes_append_byte (out, '\\');
        bytes_append_byte (out, is_plain ? (uint8_t) *text : '?');
    }
}

void exposition_head (bytes_t *out, const char *name, const char *type, const char *help)
{
    bytes_append_format (out, "# HELP taskmq_%s ", name);
    put_escaped (out, help, false);
    bytes_append_format (out, "\n# TYPE taskmq_%s %s\n", name, type);
}

static void put_label (bytes_t *out, const char *before, const char *name, const char *value)
{
    bytes_append_format (out, "%s%s=\"", before, name);
    put_escaped (out, value, true);
    bytes_append_byte (out, '"');
}

/* Of a broker that somebody else made a name may be anything. */
static bool is_metric (const char *name)
{
    return *name && strlen (name) <= METRIC_LENGTH_MAX &&
           strspn (name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               strlen (name);
}

static void put_counter (bytes_t *out, const tmq_counter_t *counter)
{
    static const char *const types[] = {"untyped", "counter", "gauge"};
    const explanation_t *known = explain (counter->name);
    char name[METRIC_LENGTH_MAX + sizeof "_total"];
    if (!is_metric (counter->name))
        return;
    snprintf (name, sizeof name, "%s%s", counter->name,
              known->kind == COUNTER_TOTAL ? "_total" : "");
    exposition_head (out, name, types[known->kind], known->meaning);
    bytes_append_format (out, "taskmq_%s %" PRIu64 "\n", name, counter->value);
}

static void put_depth (bytes_t *out, const char *ns, const char *queue, const char *state,
                       uint64_t value)
{
    bytes_append_text (out, "taskmq_queue_tasks{");
    put_label (out, "", "namespace", ns);
    put_label (out, ",", "queue", queue);
    put_label (out, ",", "state", state);
    bytes_append_format (out, "} %" PRIu64 "\n", value);
}

static void put_depths (bytes_t *out, const char *ns, const tmq_queue_depth_t *queue)
{
    put_depth (out, ns, queue->queue, "ready", queue->ready);
    put_depth (out, ns, queue->queue, "scheduled", queue->scheduled);
    put_depth (out, ns, queue->queue, "blocked", queue->blocked);
    put_depth (out, ns, queue->queue, "working", queue->working);
    put_depth (out, ns, queue->queue, "input_required", queue->input_required);
}

/* What is told of each queue beside its depths. */
static const struct {
    const char *name;
    const char *type;
    const char *help;
    size_t offset;
    uint64_t unit; /* that the number is divided by */
} totals[] = {{"queue_submitted_total", "counter", "tasks submitted to a queue",
               offsetof (tmq_queue_depth_t, submitted), 1},
              {"queue_completed_total", "counter", "tasks of a queue that completed",
               offsetof (tmq_queue_depth_t, completed), 1},
              {"queue_failed_total", "counter", "tasks of a queue that failed",
               offsetof (tmq_queue_depth_t, failed), 1},
              {"queue_attempts_failed_total", "counter", "attempts at its tasks that failed",
               offsetof (tmq_queue_depth_t, attempts_failed), 1},
              {"queue_oldest_ready_seconds", "gauge",
               "how long its oldest ready task has waited for a worker",
               offsetof (tmq_queue_depth_t, oldest_ready_ms), 1000}};
enum { TOTALS = sizeof totals / sizeof *totals };

static void put_total (bytes_t *out, size_t row, const char *ns, const tmq_queue_depth_t *queue)
{
    uint64_t value;
    memcpy (&value, (const char *) queue + totals[row].offset, sizeof value);
    bytes_append_format (out, "taskmq_%s{", totals[row].name);
    put_label (out, "", "namespace", ns);
    put_label (out, ",", "queue", queue->queue);
    bytes_append_format (out, "} %" PRIu64 "\n", value / totals[row].unit);
}

static const char OTHERS[] = "_other";

static void add_queue (tmq_queue_depth_t *sum, const tmq_queue_depth_t *queue)
{
    sum->ready += queue->ready;
    sum->scheduled += queue->scheduled;
    sum->blocked += queue->blocked;
    sum->working += queue->working;
    sum->input_required += queue->input_required;
    sum->submitted += queue->submitted;
    sum->completed += queue->completed;
    sum->failed += queue->failed;
    sum->attempts_failed += queue->attempts_failed;
    if (queue->oldest_ready_ms > sum->oldest_ready_ms)
        sum->oldest_ready_ms = queue->oldest_ready_ms;
}

/* row: of totals, or TOTALS for the depths. A queue that is called as the others are is one of
 * them, so that no line comes twice. */
static void put_queues (bytes_t *out, size_t row, const exposition_space_t *space)
{
    const tmq_stats_t *stats = space->stats;
    const bool many = stats->queues_count > EXPOSITION_QUEUES_MAX;
    tmq_queue_depth_t others = {.queue = OTHERS};
    size_t shown = 0;
    for (size_t i = 0; i < stats->queues_count; i++) {
        const tmq_queue_depth_t *queue = &stats->queues[i];
        if (many && (shown == EXPOSITION_QUEUES_MAX || strcmp (queue->queue, OTHERS) == 0)) {
            add_queue (&others, queue);
            continue;
        }
        shown++;
        if (row == TOTALS)
            put_depths (out, space->ns, queue);
        else
            put_total (out, row, space->ns, queue);
    }
    if (many && row == TOTALS)
        put_depths (out, space->ns, &others);
    else if (many)
        put_total (out, row, space->ns, &others);
}

void exposition_broker (bytes_t *out, const tmq_stats_t *stats, const char *broker)
{
    exposition_head (out, "broker_info", "gauge", "1, with the program that answered");
    put_label (out, "taskmq_broker_info{", "broker", broker);
    bytes_append_text (out, "} 1\n");
    for (size_t i = 0; i < stats->counters_count; i++)
        put_counter (out, &stats->counters[i]);
}

void exposition_queues (bytes_t *out, const exposition_space_t *spaces, size_t count)
{
    size_t queues = 0;
    for (size_t i = 0; i < count; i++)
        queues += spaces[i].stats->queues_count;
    if (queues == 0)
        return;
    exposition_head (out, "queue_tasks", "gauge", "tasks of a queue that have not ended, by state");
    for (size_t i = 0; i < count; i++)
        put_queues (out, TOTALS, &spaces[i]);
    for (size_t row = 0; row < TOTALS; row++) {
        exposition_head (out, totals[row].name, totals[row].type, totals[row].help);
        for (size_t i = 0; i < count; i++)
            put_queues (out, row, &spaces[i]);
    }
}

static void put_serving (bytes_t *out, const exposition_space_t *space, const char *name,
                         bool of_workers)
{
    size_t shown = 0;
    for (size_t i = 0; i < space->pages_count; i++)
        for (size_t j = 0; j < space->pages[i]->count && shown < EXPOSITION_QUEUES_MAX; j++) {
            const tmq_queue_t *queue = &space->pages[i]->queues[j];
            bytes_append_format (out, "taskmq_%s{", name);
            put_label (out, "", "namespace", space->ns);
            put_label (out, ",", "queue", queue->queue);
            bytes_append_format (out, "} %" PRIu64 "\n",
                                 of_workers ? queue->workers : (uint64_t) queue->paused);
            shown++;
        }
}

void exposition_serving (bytes_t *out, const exposition_space_t *spaces, size_t count)
{
    exposition_head (out, "queue_workers", "gauge", "workers that serve a queue");
    for (size_t i = 0; i < count; i++)
        put_serving (out, &spaces[i], "queue_workers", true);
    exposition_head (out, "queue_paused", "gauge", "1 while a queue is paused");
    for (size_t i = 0; i < count; i++)
        put_serving (out, &spaces[i], "queue_paused", false);
}
