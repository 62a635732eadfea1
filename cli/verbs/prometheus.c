/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/prometheus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "screen/output.h"
#include "verbs/explain.h"

/* In HELP a backslash and the end of a line are escaped, in the value of a label the quote too. */
static void put_escaped (const char *text, bool label)
{
    for (; *text; text++) {
        if (*text == '\n')
            fputs ("\\n", stdout);
        else if (*text == '\\' || (label && *text == '"'))
            printf ("\\%c", *text);
        else
            putchar (*text);
    }
}

static void put_head (const char *name, const char *suffix, const char *type, const char *help)
{
    printf ("# HELP taskmq_%s%s ", name, suffix);
    put_escaped (help, false);
    printf ("\n# TYPE taskmq_%s%s %s\n", name, suffix, type);
}

/* A value comes from the broker: in a terminal it does no more than in any other view. */
static void put_label (const app_t *app, const char *before, const char *name, const char *value)
{
    char *safe = safe_text (app, value);
    printf ("%s%s=\"", before, name);
    put_escaped (safe, true);
    putchar ('"');
    free (safe);
}

/* Of a broker that somebody else made a name may be anything. */
static bool is_metric (const char *name)
{
    return *name &&
           strspn (name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               strlen (name);
}

static void put_counter (const tmq_counter_t *counter)
{
    static const char *const types[] = {"untyped", "counter", "gauge"};
    const explanation_t *known = explain (counter->name);
    const char *suffix = known->kind == COUNTER_TOTAL ? "_total" : "";
    if (!is_metric (counter->name))
        return;
    put_head (counter->name, suffix, types[known->kind], known->meaning);
    printf ("taskmq_%s%s %" PRIu64 "\n", counter->name, suffix, counter->value);
}

static void put_depth (const app_t *app, const char *queue, const char *state, uint64_t value)
{
    fputs ("taskmq_queue_tasks{", stdout);
    put_label (app, "", "namespace", app->ns);
    put_label (app, ",", "queue", queue);
    put_label (app, ",", "state", state);
    printf ("} %" PRIu64 "\n", value);
}

static void put_depths (const app_t *app, const tmq_stats_t *stats)
{
    if (stats->queues_count == 0)
        return;
    put_head ("queue_tasks", "", "gauge", "tasks of a queue that have not ended, by state");
    for (size_t i = 0; i < stats->queues_count; i++) {
        const tmq_queue_depth_t *queue = &stats->queues[i];
        put_depth (app, queue->queue, "ready", queue->ready);
        put_depth (app, queue->queue, "scheduled", queue->scheduled);
        put_depth (app, queue->queue, "blocked", queue->blocked);
        put_depth (app, queue->queue, "working", queue->working);
        put_depth (app, queue->queue, "input_required", queue->input_required);
    }
}

static void put_of_queues (const app_t *app, const tmq_stats_t *stats, const char *name,
                           const char *type, const char *help,
                           uint64_t (*value) (const tmq_queue_depth_t *))
{
    put_head (name, "", type, help);
    for (size_t i = 0; i < stats->queues_count; i++) {
        printf ("taskmq_%s{", name);
        put_label (app, "", "namespace", app->ns);
        put_label (app, ",", "queue", stats->queues[i].queue);
        printf ("} %" PRIu64 "\n", value (&stats->queues[i]));
    }
}

static uint64_t submitted_of (const tmq_queue_depth_t *queue)
{
    return queue->submitted;
}

static uint64_t completed_of (const tmq_queue_depth_t *queue)
{
    return queue->completed;
}

static uint64_t failed_of (const tmq_queue_depth_t *queue)
{
    return queue->failed;
}

static uint64_t attempts_failed_of (const tmq_queue_depth_t *queue)
{
    return queue->attempts_failed;
}

static uint64_t oldest_of (const tmq_queue_depth_t *queue)
{
    return queue->oldest_ready_ms / 1000;
}

static void put_totals (const app_t *app, const tmq_stats_t *stats)
{
    if (stats->queues_count == 0)
        return;
    put_of_queues (app, stats, "queue_submitted_total", "counter", "tasks submitted to a queue",
                   submitted_of);
    put_of_queues (app, stats, "queue_completed_total", "counter",
                   "tasks of a queue that completed", completed_of);
    put_of_queues (app, stats, "queue_failed_total", "counter", "tasks of a queue that failed",
                   failed_of);
    put_of_queues (app, stats, "queue_attempts_failed_total", "counter",
                   "attempts at its tasks that failed", attempts_failed_of);
    put_of_queues (app, stats, "queue_oldest_ready_seconds", "gauge",
                   "how long its oldest ready task has waited for a worker", oldest_of);
}

void prometheus_print (const app_t *app, const tmq_stats_t *stats, const char *broker)
{
    put_head ("broker_info", "", "gauge", "1, with the program that answered");
    put_label (app, "taskmq_broker_info{", "broker", broker);
    puts ("} 1");
    for (size_t i = 0; i < stats->counters_count; i++)
        put_counter (&stats->counters[i]);
    put_depths (app, stats);
    put_totals (app, stats);
}
