/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The points of growth rows: their table, Markdown, JSON and plot data; and what the rows share. */
#include "growth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, LIMITS_TASKS = 20000000, LIMITS_LINKS = 12000, SETTLE_SECONDS_MAX = 600 };

const growth_row_t *const growth_rows[] = {&scale_live_row,  &scale_terminal_row, &connections_row,
                                           &subscribers_row, &stalled_row,        &interference_row,
                                           &features_row,    &values_row,         &schedules_row,
                                           &history_row,     &transfers_row};
const size_t growth_rows_count = sizeof growth_rows / sizeof *growth_rows;

/* Points. */

void point_set (point_t *self, const char *name, double value)
{
    if (self->values_count == GROWTH_VALUES_MAX)
        die ("more than %d values of one point", GROWTH_VALUES_MAX);
    self->values[self->values_count++] = (growth_value_t){name, value};
}

void point_set_figures (point_t *self, const char *names[5], const figures_t *figures)
{
    const double values[5] = {figures->rate_per_s, figures->p50_us, figures->p99_us,
                              figures->server_cpu_us, figures->rss_bytes};
    for (size_t i = 0; i < 5; i++) {
        if (names[i])
            point_set (self, names[i], values[i]);
    }
}

static int compare (const void *left, const void *right)
{
    double a = *(const double *) left;
    double b = *(const double *) right;
    return (a > b) - (a < b);
}

/* The medians of the values of several rounds. */
static point_t median (const point_t *rounds, size_t count)
{
    point_t out = rounds[0];
    for (size_t value = 0; value < out.values_count; value++) {
        double sorted[ROUNDS_MAX] = {0};
        for (size_t i = 0; i < count; i++)
            sorted[i] = rounds[i].values[value].value;
        qsort (sorted, count, sizeof *sorted, compare);
        out.values[value].value = sorted[count / 2];
    }
    return out;
}

/* Measuring. */

bool growth_knows (const char *name)
{
    for (size_t i = 0; i < growth_rows_count; i++) {
        if (strcmp (growth_rows[i]->name, name) == 0)
            return true;
    }
    return false;
}

size_t growth_sizes_parse (double out[GROWTH_SIZES_MAX], const growth_row_t *row, const char *text)
{
    size_t count = 0;
    for (const char *at = text;; at++) {
        char *end;
        double size = strtod (at, &end);
        if (end == at || count == GROWTH_SIZES_MAX || size != floor (size) ||
            !(size >= row->size_min && size <= GROWTH_SIZE_LARGEST))
            return 0;
        out[count++] = size;
        at = end;
        if (*at != ',')
            return *at == '\0' ? count : 0;
    }
}

/* Those of a row end with its first repetition of nothing: sizes rise. */
static size_t sizes_of (double out[GROWTH_SIZES_MAX], const double sizes[GROWTH_SIZES_MAX])
{
    size_t count = 0;
    while (count < GROWTH_SIZES_MAX && (count == 0 || sizes[count] > sizes[count - 1])) {
        out[count] = sizes[count];
        count++;
    }
    return count;
}

static void measure_point (point_t *out, const growth_row_t *row, double size,
                           const char *directory, double seconds)
{
    server_t server = {0};
    *out = (point_t){.row = row, .size = size};
    if (snprintf (server.directory, sizeof server.directory, "%s/growth", directory) >=
        (int) sizeof server.directory)
        die ("the directory's name is too long");
    directory_remove (server.directory);
    if (mkdir (server.directory, 0700) != 0)
        die ("%s: %s", server.directory, strerror (errno));
    row->run (out, &server, seconds);
    server_stop (&server);
    directory_remove (server.directory);
}

size_t growth_measure (point_t *out, const growth_row_t *row, const char *directory,
                       const char *sizes, int rounds, double seconds, bool quick)
{
    double list[GROWTH_SIZES_MAX];
    point_t (*points)[ROUNDS_MAX] = need_memory (calloc (GROWTH_SIZES_MAX, sizeof *points));
    size_t count = sizes ? growth_sizes_parse (list, row, sizes)
                         : sizes_of (list, quick ? row->quick : row->full);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            fprintf (stderr, "\r%-18s round %d of %d  %-14.0f", row->name, round + 1, rounds,
                     list[i]);
            measure_point (&points[i][round], row, list[i], directory, seconds);
        }
    }
    if (isatty (STDERR_FILENO))
        fprintf (stderr, "\r%60s\r", "");
    for (size_t i = 0; i < count; i++)
        out[i] = median (points[i], (size_t) rounds);
    free (points);
    return count;
}

/* Reports. */

enum { CELL_BYTES = 32 };

static const char *cell (char out[CELL_BYTES], double value)
{
    static const char *const units[] = {"", " k", " M", " G"};
    size_t unit = 0;
    if (isnan (value))
        return memcpy (out, "-", sizeof "-");
    while (fabs (value) >= 9999.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000;
        unit++;
    }
    int decimals = fabs (value) >= 99.95 || (unit == 0 && rint (value) == value) ? 0 : 1;
    snprintf (out, CELL_BYTES, "%.*f%s", decimals, value, units[unit]);
    return out;
}

/* So many points, from the first, belong to its row. */
static size_t of_one_row (const point_t *points, size_t count)
{
    size_t same = 1;
    while (same < count && points[same].row == points[0].row)
        same++;
    return same;
}

static void table_of_row (const point_t *points, size_t count)
{
    char text[CELL_BYTES];
    printf ("\n%s: %s\n  %-24s", points->row->name, points->row->says, points->row->sizes);
    for (size_t i = 0; i < count; i++)
        printf (" %12.0f", points[i].size);
    for (size_t value = 0; value < points->values_count; value++) {
        printf ("\n  %-24s", points->values[value].name);
        for (size_t i = 0; i < count; i++)
            printf (" %12s", cell (text, points[i].values[value].value));
    }
    putchar ('\n');
}

void growth_table (const point_t *points, size_t count)
{
    for (size_t i = 0, same = 0; i < count; i += same) {
        same = of_one_row (points + i, count - i);
        table_of_row (points + i, same);
    }
}

static void markdown_of_row (FILE *file, const point_t *points, size_t count)
{
    char text[CELL_BYTES];
    fprintf (file, "\n%s: %s\n\n| %s |", points->row->name, points->row->says, points->row->sizes);
    for (size_t i = 0; i < count; i++)
        fprintf (file, " %.0f |", points[i].size);
    fputs ("\n|---|", file);
    for (size_t i = 0; i < count; i++)
        fputs ("---|", file);
    for (size_t value = 0; value < points->values_count; value++) {
        fprintf (file, "\n| %s |", points->values[value].name);
        for (size_t i = 0; i < count; i++)
            fprintf (file, " %s |", cell (text, points[i].values[value].value));
    }
    fputc ('\n', file);
}

void growth_markdown (FILE *file, const point_t *points, size_t count)
{
    for (size_t i = 0, same = 0; i < count; i += same) {
        same = of_one_row (points + i, count - i);
        markdown_of_row (file, points + i, same);
    }
}

/* Fields that every object of "rows" has, measured or not. */
static const char *const common[] = {"rate_per_s", "p50_us", "p99_us", "server_cpu_us",
                                     "rss_bytes"};

static void json_value (FILE *file, const char *name, double value)
{
    if (isnan (value))
        fprintf (file, ",\"%s\":null", name);
    else
        fprintf (file, ",\"%s\":%.2f", name, value);
}

static double value_of (const point_t *point, const char *name)
{
    for (size_t i = 0; i < point->values_count; i++) {
        if (strcmp (point->values[i].name, name) == 0)
            return point->values[i].value;
    }
    return NAN;
}

static bool is_common (const char *name)
{
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        if (strcmp (common[i], name) == 0)
            return true;
    }
    return false;
}

void growth_json (FILE *file, const point_t *points, size_t count, bool first)
{
    for (size_t i = 0; i < count; i++) {
        const point_t *point = &points[i];
        fprintf (file, "%s\n{\"system\":\"taskmq\",\"case\":\"%s\",\"size\":%.0f",
                 first && i == 0 ? "" : ",", point->row->name, point->size);
        for (size_t name = 0; name < sizeof common / sizeof *common; name++)
            json_value (file, common[name], value_of (point, common[name]));
        for (size_t value = 0; value < point->values_count; value++) {
            if (!is_common (point->values[value].name))
                json_value (file, point->values[value].name, point->values[value].value);
        }
        fputs (",\"durability\":\"fsync\"}", file);
    }
}

void growth_plot_data (FILE *file, const point_t *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const point_t *point = &points[i];
        if (i == 0 || points[i - 1].row != point->row) {
            fprintf (file, "%s\"%s\"\n# size", i == 0 ? "" : "\n\n", point->row->name);
            for (size_t name = 0; name < sizeof common / sizeof *common; name++)
                fprintf (file, " %s", common[name]);
            fputc ('\n', file);
        }
        fprintf (file, "%.0f", point->size);
        for (size_t name = 0; name < sizeof common / sizeof *common; name++) {
            double value = value_of (point, common[name]);
            if (isnan (value))
                fputs (" ?", file);
            else
                fprintf (file, " %.2f", value);
        }
        fputc ('\n', file);
    }
}

/* The broker. */

/* The defaults, but more tasks and links than a row has. */
static void write_configuration (const char *path)
{
    FILE *file = fopen (path, "w");
    if (file)
        fprintf (file,
                 "limits\n    live_tasks = %d\n    namespace_tasks = %d\n    links = %d\n"
                 "    blob_bytes = 1G\n",
                 LIMITS_TASKS, LIMITS_TASKS, LIMITS_LINKS);
    if (!file || fclose (file) != 0)
        die ("%s: %s", path, strerror (errno));
}

double growth_start (server_t *server)
{
    char configuration[BENCH_PATH_MAX + 16];
    snprintf (configuration, sizeof configuration, "%s/bench.conf", server->directory);
    write_configuration (configuration);
    server->port = server_free_port ();
    snprintf (server->address, sizeof server->address, "tcp://127.0.0.1:%d", server->port);
    uint64_t begin = now_ns ();
    server_spawn (server, (char *[]){"taskmqd", "--config", configuration, "--data",
                                     server->directory, "--listen", server->address, NULL});
    server_wait_port (server);
    tmq_client_t *client = client_connect (server);
    double ms = (double) (now_ns () - begin) / 1e6;
    tmq_client_free (&client);
    return ms;
}

uint64_t growth_counter (tmq_client_t *client, const char *name)
{
    tmq_stats_t *stats;
    tmq_error_t error = {0};
    client_check (tmq_stats (&stats, client, CLIENT_DEADLINE_MS, &error), "stats", &error);
    size_t i = 0;
    while (i < stats->counters_count && strcmp (stats->counters[i].name, name) != 0)
        i++;
    if (i == stats->counters_count)
        die ("taskmq has no counter %s", name);
    uint64_t value = stats->counters[i].value;
    tmq_stats_free (stats);
    return value;
}

void growth_settle (const server_t *server)
{
    tmq_client_t *client = client_connect (server);
    uint64_t end = now_ns () + SETTLE_SECONDS_MAX * UINT64_C (1000000000);
    while (growth_counter (client, "store_dirty_tasks") > 0 ||
           growth_counter (client, "export_lag") > 0) {
        if (now_ns () > end)
            die ("taskmq has not written everything back after %d s", SETTLE_SECONDS_MAX);
        growth_pause_us (20000);
    }
    tmq_client_free (&client);
}

uint64_t growth_file_bytes (const server_t *server, const char *name)
{
    char path[BENCH_PATH_MAX + 64];
    struct stat status;
    snprintf (path, sizeof path, "%s/%s", server->directory, name);
    return stat (path, &status) == 0 ? (uint64_t) status.st_size : 0;
}

void growth_pause_us (long us)
{
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep (&pause, NULL);
}

void growth_ordinary (figures_t *out, const char *row, const server_t *server, double seconds)
{
    size_t i = 0;
    while (i < rows_count && strcmp (rows[i].name, row) != 0)
        i++;
    if (i == rows_count)
        die ("no such row: %s", row);
    rows[i].run (out, &taskmq_driver, server, seconds);
}
