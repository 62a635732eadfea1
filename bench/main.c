/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmq-bench: the command line and the alternation of systems.
 *
 * Every row of every round runs on a fresh server in a fresh directory, the systems one after
 * the other (A B A B), so that a machine that drifts drifts for all of them. */

#include "bench.h"
#include "growth.h"
#include "rows_connections.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, ROUNDS_DEFAULT = 3, SYSTEMS_MAX = 32, DELAYS_MAX = 8 };
static const double seconds_default = 4;
static const double seconds_quick = 1.5;

/* clang-format off */
static const driver_t *const drivers[] = {
    &taskmq_driver,
    &taskmq_normal_driver,
    &taskmq_curve_driver,
    &taskmq_postgresql_driver,
    &ceiling_driver,
    &ceiling_log_driver,
    &beanstalkd_driver,
#ifdef BENCH_REDIS
    &redis_driver,
    &redis_work_driver,
#endif
#ifdef BENCH_POSTGRESQL
    &postgresql_driver,
#endif
#ifdef BENCH_RABBITMQ
    &rabbitmq_driver,
    &rabbitmq_classic_driver,
#endif
    &gearmand_driver,
#ifdef BENCH_NATS
    &nats_driver,
#endif
    NULL,
};
/* clang-format on */

/* Systems whose client library was not there when this program was built. */
static const char left_out[] = ""
#ifndef BENCH_REDIS
                               " redis redis-work (libhiredis-dev)"
#endif
#ifndef BENCH_POSTGRESQL
                               " postgresql (libpq-dev)"
#endif
#ifndef BENCH_RABBITMQ
                               " rabbitmq rabbitmq-classic (librabbitmq-dev)"
#endif
#ifndef BENCH_NATS
                               " nats (libnats-dev)"
#endif
    ;

/* What is added to each sync of the servers; only some rows are run with more than nothing. */
static const long delays_default_us[] = {0, 1000, 5000};

typedef struct options {
    char *only;    /* rows, separated by commas; NULL: all */
    char *systems; /* likewise */
    int rounds;
    double seconds;
    long delays_us[DELAYS_MAX];
    size_t delays_count;
    bool quick;
    const char *sizes; /* of the growth rows; NULL: their own */
    const char *json;
    const char *markdown;
    const char *directory; /* that of the run is made below it */
} options_t;

/* A command line that cannot be followed; nothing runs yet. */
__attribute__ ((format (printf, 1, 2))) _Noreturn static void misuse (const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    fputs ("taskmq-bench: ", stderr);
    vfprintf (stderr, format, arguments);
    fputc ('\n', stderr);
    va_end (arguments);
    exit (2);
}

/* Running. */

static bool listed (const char *list, const char *name)
{
    if (!list)
        return true;
    size_t length = strlen (name);
    for (const char *at = list; (at = strstr (at, name)); at += length) {
        bool begins = at == list || at[-1] == ',';
        bool ends = at[length] == '\0' || at[length] == ',';
        if (begins && ends)
            return true;
    }
    return false;
}

static void run_once (figures_t *out, const options_t *options, const driver_t *driver,
                      const row_t *row, long sync_delay_us)
{
    server_t server = {.sync_delay_us = sync_delay_us};
    if (snprintf (server.directory, sizeof server.directory, "%s/%s", options->directory,
                  driver->system) >= (int) sizeof server.directory)
        die ("the directory's name is too long");
    directory_remove (server.directory);
    if (mkdir (server.directory, 0700) != 0)
        die ("%s: %s", server.directory, strerror (errno));
    driver->start (&server);
    row->run (out, driver, &server, options->seconds);
    server_stop (&server);
    directory_remove (server.directory);
}

static int compare (const void *left, const void *right)
{
    double a = *(const double *) left;
    double b = *(const double *) right;
    return (a > b) - (a < b);
}

static double median_at (const figures_t *runs, int count, size_t offset)
{
    double values[ROUNDS_MAX] = {0};
    for (int i = 0; i < count; i++)
        memcpy (&values[i], (const char *) &runs[i] + offset, sizeof values[i]);
    qsort (values, (size_t) count, sizeof *values, compare);
    return values[count / 2];
}

static figures_t medians_of (const figures_t *runs, int count)
{
    figures_t medians = {
        .rate_per_s = median_at (runs, count, offsetof (figures_t, rate_per_s)),
        .p50_us = median_at (runs, count, offsetof (figures_t, p50_us)),
        .p99_us = median_at (runs, count, offsetof (figures_t, p99_us)),
        .broker_cpu_us = median_at (runs, count, offsetof (figures_t, broker_cpu_us)),
        .client_cpu_us = median_at (runs, count, offsetof (figures_t, client_cpu_us)),
        .rss_bytes = median_at (runs, count, offsetof (figures_t, rss_bytes)),
    };
    for (size_t i = 0; i < TAILS; i++)
        medians.tail_us[i] = median_at (
            runs, count, offsetof (figures_t, tail_us) + i * sizeof (medians.tail_us[0]));
    return medians;
}

static size_t choose_systems (const options_t *options, const driver_t **chosen)
{
    size_t count = 0;
    for (size_t i = 0; drivers[i]; i++) {
        if (!listed (options->systems, drivers[i]->system))
            continue;
        if (drivers[i]->available ())
            chosen[count++] = drivers[i];
        else
            printf ("%s is not installed: left out\n", drivers[i]->system);
    }
    if (left_out[0] != '\0' && !options->systems)
        printf ("left out of this build, for want of a client library:%s\n", left_out);
    if (count == 0)
        misuse ("none of these systems is there: %s", options->systems);
    return count;
}

/* Whether a system takes part: some have no result, some never sync, one starves. */
static bool takes_part (const driver_t *driver, const row_t *row, long sync_delay_us)
{
    return (!row->needs_call || driver->call) && !(row->slow && driver->starves) &&
           (sync_delay_us == 0 || strcmp (driver->durability, "fsync") == 0);
}

static void show_progress (const options_t *options, const row_t *row, long sync_delay_us,
                           const driver_t *driver, int round)
{
    if (!isatty (STDERR_FILENO))
        return;
    fprintf (stderr, "\r%-18s +%g ms  round %d of %d  %-16s", row->name,
             (double) sync_delay_us / 1000, round + 1, options->rounds, driver->system);
}

/* Runs one row on all systems in alternation and appends its samples. */
static void run_row (const options_t *options, const row_t *row, long sync_delay_us,
                     const driver_t **systems, size_t systems_count, sample_t *samples,
                     size_t *samples_count)
{
    figures_t runs[SYSTEMS_MAX][ROUNDS_MAX];
    for (int round = 0; round < options->rounds; round++) {
        for (size_t i = 0; i < systems_count; i++) {
            if (!takes_part (systems[i], row, sync_delay_us))
                continue;
            show_progress (options, row, sync_delay_us, systems[i], round);
            run_once (&runs[i][round], options, systems[i], row, sync_delay_us);
        }
    }
    if (isatty (STDERR_FILENO))
        fprintf (stderr, "\r%60s\r", "");
    for (size_t i = 0; i < systems_count; i++) {
        if (!takes_part (systems[i], row, sync_delay_us))
            continue;
        samples[(*samples_count)++] = (sample_t){
            .driver = systems[i],
            .row = row,
            .sync_delay_us = sync_delay_us,
            .figures = medians_of (runs[i], options->rounds),
        };
    }
}

static void write_files (const options_t *options, const report_t *report)
{
    if (options->json) {
        report_json (options->json, report);
        report_plot_data (options->json, report);
        report_tail_data (options->json, report);
    }
    if (options->json && report->points_count > 0)
        report_growth_data (options->json, report->points, report->points_count);
    if (options->markdown)
        report_markdown (options->markdown, report);
}

/* The chosen rows, first on the disk as it is, then on slower ones. Everything is reported after
 * each row, so that a long run that breaks is not lost. */
static void run_rows (const options_t *options, const driver_t **systems, size_t systems_count,
                      report_t *report, sample_t *samples)
{
    for (size_t delay = 0; delay < options->delays_count; delay++) {
        long delay_us = options->delays_us[delay];
        for (size_t i = 0; i < rows_count; i++) {
            if (!listed (options->only, rows[i].name) || (delay_us > 0 && !rows[i].slow))
                continue;
            size_t first = report->count;
            run_row (options, &rows[i], delay_us, systems, systems_count, samples, &report->count);
            report_table (report, first);
            write_files (options, report);
        }
    }
}

/* The rows by size are about taskmq: left out when other systems are asked for. */
static size_t run_growth (const options_t *options, point_t *out)
{
    size_t count = 0;
    bool wanted = listed (options->systems, "taskmq") && options->delays_us[0] == 0;
    for (size_t i = 0; wanted && i < growth_rows_count; i++) {
        if (listed (options->only, growth_rows[i]->name))
            count +=
                growth_measure (out + count, growth_rows[i], options->directory, options->sizes,
                                options->rounds, options->seconds, options->quick);
    }
    return count;
}

/* The command line. */

static void usage (FILE *to)
{
    fputs ("usage: taskmq-bench [--quick] [--only ROW,…] [--systems NAME,…] [--rounds N]\n"
           "                    [--seconds S] [--sizes N,…] [--slow-disk MS]… [--json FILE]\n"
           "                    [--markdown FILE] [--directory DIR]\n\n"
           "Runs each row on each system in alternation and prints medians and ratios.\n"
           "--quick: one round, short rows, taskmq and the bare ceiling only.\n"
           "--slow-disk: only rows marked *, with MS milliseconds added to each sync of the\n"
           "servers' disk; 0 is the disk as it is. Without it, and without --quick and --only,\n"
           "these rows are also run with 1 and 5 ms.\n\nrows:\n",
           to);
    for (size_t i = 0; i < rows_count; i++)
        fprintf (to, "%c %-18s %s\n", rows[i].slow ? '*' : ' ', rows[i].name, rows[i].says);
    fputs ("\nrows of taskmq alone, by size:\n", to);
    for (size_t i = 0; i < growth_rows_count; i++)
        fprintf (to, "  %-18s %s\n", growth_rows[i]->name, growth_rows[i]->says);
    fputs ("\nsystems:", to);
    for (size_t i = 0; drivers[i]; i++)
        fprintf (to, " %s", drivers[i]->system);
    fputc ('\n', to);
    if (left_out[0] != '\0')
        fprintf (to, "left out of this build, for want of a client library:%s\n", left_out);
}

static double number (const char *text, double lowest, double highest)
{
    char *end = NULL;
    double value = text ? strtod (text, &end) : NAN;
    if (!text || end == text || *end != '\0' || !(value >= lowest && value <= highest))
        misuse ("'%s' is not a number from %g to %g", text, lowest, highest);
    return value;
}

static void delay_add (options_t *options, const char *text)
{
    if (options->delays_count == DELAYS_MAX)
        misuse ("more than %d times --slow-disk", DELAYS_MAX);
    options->delays_us[options->delays_count++] = lround (number (text, 0, 10000) * 1000);
}

static void known_rows (const char *list)
{
    char *copy = need_memory (strdup (list));
    for (char *save, *name = strtok_r (copy, ",", &save); name;
         name = strtok_r (NULL, ",", &save)) {
        size_t i = 0;
        while (i < rows_count && strcmp (rows[i].name, name) != 0)
            i++;
        if (i == rows_count && !growth_knows (name))
            misuse ("no such row: %s", name);
    }
    free (copy);
}

static void options_parse (options_t *options, int argc, char **argv)
{
    static const struct option table[] = {
        {"quick", no_argument, NULL, 'q'},
        {"only", required_argument, NULL, 'o'},
        {"systems", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 't'},
        {"json", required_argument, NULL, 'j'},
        {"markdown", required_argument, NULL, 'm'},
        {"directory", required_argument, NULL, 'd'},
        {"sizes", required_argument, NULL, 'n'},
        {"slow-disk", required_argument, NULL, 'w'},
        {"bare-router", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long (argc, argv, "h", table, NULL)) != -1;) {
        switch (c) {
        case 'q':
            options->quick = true;
            options->rounds = 1;
            options->seconds = seconds_quick;
            options->systems = options->systems ? options->systems : "taskmq,ceiling";
            break;
        case 'o': options->only = optarg; break;
        case 's': options->systems = optarg; break;
        case 'r': options->rounds = (int) number (optarg, 1, ROUNDS_MAX); break;
        case 't': options->seconds = number (optarg, 0.1, 3600); break;
        case 'j': options->json = optarg; break;
        case 'm': options->markdown = optarg; break;
        case 'd': options->directory = optarg; break;
        case 'w': delay_add (options, optarg); break;
        case 'n': options->sizes = optarg; break;
        case 'b': bare_router (optarg); /* not for people: what `connections` compares with */
        case 'h': usage (stdout); exit (0);
        default: usage (stderr); exit (2);
        }
    }
    if (optind < argc) {
        usage (stderr);
        exit (2);
    }
    if (options->only)
        known_rows (options->only);
    if (options->delays_count == 0) {
        memcpy (options->delays_us, delays_default_us, sizeof delays_default_us);
        options->delays_count = options->quick || options->only
                                    ? 1
                                    : sizeof delays_default_us / sizeof *delays_default_us;
    }
}

int main (int argc, char **argv)
{
    setvbuf (stdout, NULL, _IOLBF, 0);
    options_t options = {.rounds = ROUNDS_DEFAULT, .seconds = seconds_default, .directory = "."};
    options_parse (&options, argc, argv);

    const driver_t *systems[SYSTEMS_MAX];
    size_t systems_count = choose_systems (&options, systems);
    signals_watch ();
    options.directory = run_directory_make (options.directory);
    report_t report = {.rounds = options.rounds, .seconds = options.seconds};
    machine_look (&report.machine, options.directory);
    size_t samples_max = rows_count * systems_count * options.delays_count;
    sample_t *samples = need_memory (calloc (samples_max, sizeof *samples));
    point_t *points = need_memory (calloc (growth_rows_count * GROWTH_SIZES_MAX, sizeof *points));
    report.samples = samples;
    report.points = points;
    run_rows (&options, systems, systems_count, &report, samples);
    report.points_count = run_growth (&options, points);
    run_directory_remove ();
    growth_table (points, report.points_count);
    write_files (&options, &report);
    free (points);
    free (samples);
    return 0;
}
