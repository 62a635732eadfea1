/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl ping and stats. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/exit.h"
#include "explain.h"
#include "link/connect.h"
#include "screen/items.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"
#include "verbs/prometheus.h"
#include "verbs/verbs.h"

static uint64_t mono_us (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* ping. */

static void put_ping (const app_t *app, const tmq_broker_info_t *info, uint64_t us)
{
    items_t items;
    char cursor[2 * 20 + 2]; /* a text: a generation is more than many readers of JSON can count */
    if (!app_wants_json (app)) {
        print_safe (app, stdout, "%s at %s", info->broker, info->endpoint);
        printf (" answers in %" PRIu64 ".%03" PRIu64 " ms\n", us / 1000, us % 1000);
        return;
    }
    items_begin (&items, app, true);
    json_writer_t *writer = items_open (&items);
    json_write_object_begin (writer);
    member_text (writer, "broker", info->broker);
    member_text (writer, "endpoint", info->endpoint);
    member_text (writer, "namespace", app->ns);
    member_text (writer, "identity", info->identity);
    member_uint (writer, "generation", info->generation);
    member_uint (writer, "epoch", info->epoch);
    member_uint (writer, "seq", info->seq);
    snprintf (cursor, sizeof cursor, "%" PRIu64 "-%" PRIu64, info->generation, info->seq);
    member_text (writer, "cursor", cursor);
    member_uint (writer, "round_trip_us", us);
    json_write_object_end (writer);
    items_close (&items);
    items_end (&items, NULL);
}

int run_ping (app_t *app)
{
    tmq_error_t error = {0};
    tmq_broker_info_t info;
    const int code = app_connect (app);
    if (code)
        return code;
    const uint64_t began_us = mono_us ();
    error.code = tmq_ping (app->client, app->timeout_ms, &error);
    const uint64_t us = mono_us () - began_us;
    if (error.code == TMQ_OK)
        error.code = tmq_client_info (&info, app->client);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    put_ping (app, &info, us);
    return EXIT_OK;
}

/* stats. */

static void write_stats (items_t *items, const tmq_stats_t *stats)
{
    json_writer_t *writer = items_open (items);
    json_write_object_begin (writer);
    json_write_key (writer, "counters");
    json_write_object_begin (writer);
    for (size_t i = 0; i < stats->counters_count; i++) {
        json_write_foreign_key (writer, stats->counters[i].name);
        json_write_uint (writer, stats->counters[i].value);
    }
    json_write_object_end (writer);
    json_write_key (writer, "queues");
    json_write_array_begin (writer);
    for (size_t i = 0; i < stats->queues_count; i++) {
        const tmq_queue_depth_t *queue = &stats->queues[i];
        json_write_object_begin (writer);
        member_text (writer, "queue", queue->queue);
        member_uint (writer, "ready", queue->ready);
        member_uint (writer, "scheduled", queue->scheduled);
        member_uint (writer, "blocked", queue->blocked);
        member_uint (writer, "working", queue->working);
        member_uint (writer, "input_required", queue->input_required);
        member_uint (writer, "submitted", queue->submitted);
        member_uint (writer, "completed", queue->completed);
        member_uint (writer, "failed", queue->failed);
        member_uint (writer, "attempts_failed", queue->attempts_failed);
        member_uint (writer, "oldest_ready_ms", queue->oldest_ready_ms);
        json_write_object_end (writer);
    }
    json_write_array_end (writer);
    json_write_object_end (writer);
    items_close (items);
}

static void show_queues (const app_t *app, const tmq_stats_t *stats)
{
    static const column_t columns[] = {{"QUEUE", COLUMN_TRUNCATE},
                                       {"READY", COLUMN_RIGHT},
                                       {"SCHEDULED", COLUMN_RIGHT | 3 * COLUMN_YIELDS},
                                       {"BLOCKED", COLUMN_RIGHT | 2 * COLUMN_YIELDS},
                                       {"WORKING", COLUMN_RIGHT},
                                       {"ASKING", COLUMN_RIGHT | 1 * COLUMN_YIELDS},
                                       {"OLDEST", COLUMN_RIGHT},
                                       {"FAILED", COLUMN_RIGHT},
                                       {"SUBMITTED", COLUMN_RIGHT},
                                       {"COMPLETED", COLUMN_RIGHT}};
    enum { COLUMNS_NARROW = 8, COLUMNS_WIDE = 10 };
    const bool wide = app->format == FORMAT_WIDE;
    table_t *table = table_new (app, columns, wide ? COLUMNS_WIDE : COLUMNS_NARROW, true);
    for (size_t i = 0; i < stats->queues_count; i++) {
        const tmq_queue_depth_t *queue = &stats->queues[i];
        char age[32];
        table_row (table);
        table_set (table, 0, "%s", queue->queue);
        table_set (table, 1, "%" PRIu64, queue->ready);
        table_set (table, 2, "%" PRIu64, queue->scheduled);
        table_set (table, 3, "%" PRIu64, queue->blocked);
        table_set (table, 4, "%" PRIu64, queue->working);
        table_set (table, 5, "%" PRIu64, queue->input_required);
        table_set (table, 6, "%s", queue->ready ? span_format (age, queue->oldest_ready_ms) : "");
        table_set (table, 7, "%" PRIu64, queue->failed);
        if (!wide)
            continue;
        table_set (table, 8, "%" PRIu64, queue->submitted);
        table_set (table, 9, "%" PRIu64, queue->completed);
    }
    table_end (table);
}

/* Words behind the column where the line stands; on a terminal they go on below, at that column. */
static void put_words (const char *text, size_t indent)
{
    const size_t columns = terminal_columns ();
    size_t column = indent;
    while (*text) {
        const size_t length = strcspn (text, " ");
        if (columns && column > indent && column + 1 + length > columns) {
            printf ("\n%*s", (int) indent, "");
            column = indent;
        } else if (column > indent) {
            putchar (' ');
            column++;
        }
        printf ("%.*s", (int) length, text);
        column += length;
        text += length + strspn (text + length, " ");
    }
    putchar ('\n');
}

/* Bytes as people count them. */
static const char *value_text (char out[UNITS_TEXT_SIZE], const tmq_counter_t *counter)
{
    static const char unit[] = "_bytes";
    const size_t length = strlen (counter->name);
    if (length > sizeof unit && strcmp (counter->name + length - (sizeof unit - 1), unit) == 0)
        return size_format (out, counter->value);
    snprintf (out, UNITS_TEXT_SIZE, "%" PRIu64, counter->value);
    return out;
}

/* All counters with their meaning; what is bad already is painted. */
static void explain_counters (const app_t *app, const tmq_stats_t *stats)
{
    enum { NAME_COLUMNS = 24, VALUE_COLUMNS = 14 };
    char text[256];
    char value[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < stats->counters_count; i++) {
        const tmq_counter_t *counter = &stats->counters[i];
        const explanation_t *known = explain (counter->name);
        const bool is_bad = counter->value && strncmp (known->bad, "above 0", 7) == 0;
        print_safe (app, stdout, "%-*s ", NAME_COLUMNS, counter->name);
        printf ("%s%*s%s  ", is_bad ? paint_status (app, TMQ_STATUS_FAILED) : "", VALUE_COLUMNS,
                value_text (value, counter), is_bad ? paint_end (app) : "");
        snprintf (text, sizeof text, "%s%s%s", known->meaning, *known->bad ? "; bad: " : "",
                  known->bad);
        put_words (text, NAME_COLUMNS + 1 + VALUE_COLUMNS + 2);
    }
}

/* Most counters are 0 most of the time and only hide the others: -o wide shows them too. */
static void show_counters (const app_t *app, const tmq_stats_t *stats)
{
    static const column_t columns[] = {{"COUNTER", COLUMN_LEFT}, {"VALUE", COLUMN_RIGHT}};
    table_t *table = table_new (app, columns, sizeof columns / sizeof *columns, true);
    char value[UNITS_TEXT_SIZE];
    size_t zeros = 0;
    for (size_t i = 0; i < stats->counters_count; i++) {
        if (stats->counters[i].value == 0 && app->format != FORMAT_WIDE) {
            zeros++;
            continue;
        }
        table_row (table);
        table_set (table, 0, "%s", stats->counters[i].name);
        table_set (table, 1, "%s", value_text (value, &stats->counters[i]));
    }
    table_end (table);
    if (zeros)
        printf ("%s%zu others are 0: -o wide shows them, -v explains all%s\n", paint_dim (app),
                zeros, paint_end (app));
}

static void show_stats (const app_t *app, const tmq_stats_t *stats)
{
    items_t items;
    if (app_wants_json (app)) {
        items_begin (&items, app, true);
        write_stats (&items, stats);
        items_end (&items, NULL);
        return;
    }
    if (stats->queues_count) {
        show_queues (app, stats);
        fputc ('\n', stdout);
    }
    if (app->verbose)
        explain_counters (app, stats);
    else
        show_counters (app, stats);
}

int run_stats (app_t *app)
{
    tmq_error_t error = {0};
    tmq_stats_t *stats;
    tmq_broker_info_t info;
    const bool metrics = args_has (&app->args, OPT_PROMETHEUS);
    if (metrics && args_has (&app->args, OPT_OUTPUT))
        return usage_error (app, NULL, "--prometheus is a format of its own: leave out --output");
    const int code = app_connect (app);
    if (code)
        return code;
    error.code = tmq_stats (&stats, app->client, app->timeout_ms, &error);
    if (error.code == TMQ_OK)
        error.code = tmq_client_info (&info, app->client);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    if (metrics)
        prometheus_print (app, stats, info.broker);
    else
        show_stats (app, stats);
    tmq_stats_free (stats);
    return EXIT_OK;
}
