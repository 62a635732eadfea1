/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Counters, workers, the way to MCP, health. */
#include "rest/handlers.h"
#include "rest/query.h"
#include "timestamp.h"
#include "view.h"

enum { WORKERS_MAX = 1000 /* of a page */ };

static void write_number (json_writer_t *writer, const char *key, uint64_t number)
{
    json_write_key (writer, key);
    json_write_uint (writer, number);
}

static void write_queue (json_writer_t *writer, const tmq_queue_depth_t *queue)
{
    json_write_object_begin (writer);
    json_write_key (writer, "queue");
    json_write_text (writer, queue->queue);
    write_number (writer, "ready", queue->ready);
    write_number (writer, "scheduled", queue->scheduled);
    write_number (writer, "blocked", queue->blocked);
    write_number (writer, "working", queue->working);
    write_number (writer, "input_required", queue->input_required);
    write_number (writer, "submitted", queue->submitted);
    write_number (writer, "completed", queue->completed);
    write_number (writer, "failed", queue->failed);
    write_number (writer, "attempts_failed", queue->attempts_failed);
    write_number (writer, "oldest_ready_ms", queue->oldest_ready_ms);
    json_write_object_end (writer);
}

static void write_queues (json_writer_t *writer, const char *key, const tmq_stats_t *stats)
{
    json_write_key (writer, key);
    json_write_array_begin (writer);
    for (size_t i = 0; i < stats->queues_count; i++)
        write_queue (writer, &stats->queues[i]);
    json_write_array_end (writer);
}

static void write_stats (json_writer_t *writer, const tmq_completion_t *completion)
{
    const tmq_stats_t *stats = completion->stats;
    json_write_key (writer, "counters");
    json_write_object_begin (writer);
    for (size_t i = 0; i < stats->counters_count; i++)
        write_number (writer, stats->counters[i].name, stats->counters[i].value);
    json_write_object_end (writer);
    write_queues (writer, "queues", stats);
}

static void stats_came (void *context, tmq_completion_t *completion)
{
    answer_object (context, completion, write_stats);
}

void stats_show (exchange_t *exchange)
{
    tmq_error_t error;
    started (exchange, link_stats (exchange->link, call_of (exchange, stats_came), &error), &error);
}

/* Workers. */

static void write_workers (json_writer_t *writer, const tmq_completion_t *completion)
{
    const tmq_worker_list_t *list = completion->workers;
    json_write_key (writer, "items");
    json_write_array_begin (writer);
    for (size_t i = 0; i < list->count; i++)
        view_write_worker (writer, &list->workers[i]);
    json_write_array_end (writer);
    answer_next (writer, list->next, list->next != 0);
}

static void workers_came (void *context, tmq_completion_t *completion)
{
    answer_object (context, completion, write_workers);
}

void worker_list (exchange_t *exchange)
{
    static const char *const names[] = {"limit", "before", "all"};
    uint64_t limit = 0, before = 0, all = 0;
    tmq_error_t error;
    if (!known_parameters (exchange, names, sizeof names / sizeof *names) ||
        !number_parameter (exchange, &limit, "limit", WORKERS_MAX) ||
        !number_parameter (exchange, &before, "before", INT64_MAX) ||
        !number_parameter (exchange, &all, "all", 1))
        return;
    started (exchange,
             link_workers (exchange->link, call_of (exchange, workers_came), before,
                           (uint32_t) limit, all != 0, &error),
             &error);
}

/* MCP, which has a room of its own. */

void mcp_serve (exchange_t *exchange)
{
    const service_mcp_t *mcp = &service_of (exchange)->mcp;
    if (mcp->run != NULL)
        mcp->run (mcp->context, exchange);
    else
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_NOT_FOUND,
                                               .detail = "no tools are offered: there is no "
                                                         "tools.json"});
}

/* Health. */

void health_show (exchange_t *exchange)
{
    response_t response;
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "status");
    json_write_text (&writer, "ok");
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

/* Ready is who has a way to every namespace. */
void ready_show (exchange_t *exchange)
{
    const service_t *service = service_of (exchange);
    const int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    int64_t since_ms = 0;
    response_t response;
    json_writer_t writer = answer_json (&response);
    for (size_t i = 0; i < service->links_count; i++) {
        link_numbers_t numbers;
        link_count (service->links[i], &numbers);
        if (!numbers.up)
            response.status = 503;
        if (!numbers.up && now_ms - numbers.since_ms > since_ms)
            since_ms = now_ms - numbers.since_ms;
    }
    json_write_object_begin (&writer);
    json_write_key (&writer, "broker");
    json_write_text (&writer, response.status == 200 ? "there" : "away");
    json_write_key (&writer, "since");
    json_write_time (&writer, response.status == 200 ? 0 : clock_ms (CLOCK_REALTIME) - since_ms);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

void problem_show (exchange_t *exchange)
{
    response_t response;
    response_init (&response, 200);
    if (problem_page (&response, exchange->parameters[0])) {
        answer (exchange, &response);
        return;
    }
    response_clear (&response);
    answer_problem (exchange, &(problem_t){.kind = PROBLEM_NOT_FOUND,
                                           .detail = "there is no problem of that type"});
}
