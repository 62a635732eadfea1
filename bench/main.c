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
static const char systems_quick[] = "taskmq,ceiling";

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
typedef struct left_out {
    const char *system;
    const char *library;
} left_out_t;

static const left_out_t left_out[] = {
#ifndef BENCH_REDIS
    {"redis", "libhiredis-dev"},
    {"redis-work", "libhiredis-dev"},
#endif
#ifndef BENCH_POSTGRESQL
    {"postgresql", "libpq-dev"},
#endif
#ifndef BENCH_RABBITMQ
    {"rabbitmq", "librabbitmq-dev"},
    {"rabbitmq-classic", "librabbitmq-dev"},
#endif
#ifndef BENCH_NATS
    {"nats", "libnats-dev"},
#endif
    {NULL, NULL},
};

/* What is added to each sync of the servers; only some rows are run with more than nothing. */
static const long delays_default_us[] = {0, 1000, 5000};

typedef struct options {
    const char *only;    /* rows, separated by commas; NULL: all */
    const char *systems; /* likewise */
    int rounds;          /* 0: not said yet */
    double seconds;      /* likewise */
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

/* Calls judge with each name of a list, which has one at least. */
static void each_name (const char *option, const char *list, void (*judge) (const char *name))
{
    char *copy = need_memory (strdup (list));
    char *save;
    char *name = strtok_r (copy, ",", &save);
    if (!name)
        misuse ("%s names nothing", option);
    for (; name; name = strtok_r (NULL, ",", &save))
        judge (name);
    free (copy);
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

/* Of the quickest round, or of the slowest. */
static double rate_of (const figures_t *runs, int count, bool quickest)
{
    double rate = runs[0].rate_per_s;
    for (int i = 1; i < count; i++) {
        if ((runs[i].rate_per_s > rate) == quickest)
            rate = runs[i].rate_per_s;
    }
    return rate;
}

static figures_t medians_of (const figures_t *runs, int count)
{
    figures_t medians = {
        .rate_per_s = median_at (runs, count, offsetof (figures_t, rate_per_s)),
        .p50_us = median_at (runs, count, offsetof (figures_t, p50_us)),
        .p99_us = median_at (runs, count, offsetof (figures_t, p99_us)),
        .server_cpu_us = median_at (runs, count, offsetof (figures_t, server_cpu_us)),
        .clients_cpu_us = median_at (runs, count, offsetof (figures_t, clients_cpu_us)),
        .rss_bytes = median_at (runs, count, offsetof (figures_t, rss_bytes)),
    };
    for (size_t i = 0; i < TAILS; i++)
        medians.tail_us[i] = median_at (
            runs, count, offsetof (figures_t, tail_us) + i * sizeof (medians.tail_us[0]));
    return medians;
}

static void left_out_tell (FILE *to)
{
    if (!left_out[0].system)
        return;
    fputs ("left out of this build, for want of a client library:", to);
    for (size_t i = 0; left_out[i].system; i++)
        fprintf (to, " %s (%s)", left_out[i].system, left_out[i].library);
    fputc ('\n', to);
}

/* A system that is asked for by name and cannot be measured is not left out without a word. */
static void known_system (const char *name)
{
    for (size_t i = 0; drivers[i]; i++) {
        if (strcmp (drivers[i]->system, name) != 0)
            continue;
        if (!drivers[i]->available ())
            misuse ("%s is not installed", name);
        return;
    }
    for (size_t i = 0; left_out[i].system; i++) {
        if (strcmp (left_out[i].system, name) == 0)
            misuse ("%s was left out of this build, for want of %s", name, left_out[i].library);
    }
    misuse ("no such system: '%s'", name);
}

static size_t choose_systems (const options_t *options, const driver_t **chosen)
{
    size_t count = 0;
    if (options->systems)
        each_name ("--systems", options->systems, known_system);
    else
        left_out_tell (stdout);
    for (size_t i = 0; drivers[i]; i++) {
        if (!listed (options->systems, drivers[i]->system))
            continue;
        if (drivers[i]->available ())
            chosen[count++] = drivers[i];
        else
            printf ("%s is not installed: left out\n", drivers[i]->system);
    }
    if (count == 0)
        misuse ("no system is installed");
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
            .rate_min_per_s = rate_of (runs[i], options->rounds, false),
            .rate_max_per_s = rate_of (runs[i], options->rounds, true),
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

/* The rows by size are about taskmq, on the disk as it is: left out where that is not asked for. */
static bool growth_runs (const options_t *options, const growth_row_t *row)
{
    size_t i = 0;
    while (i < options->delays_count && options->delays_us[i] != 0)
        i++;
    return i < options->delays_count && listed (options->systems, "taskmq") &&
           listed (options->only, row->name);
}

static size_t run_growth (const options_t *options, point_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < growth_rows_count; i++) {
        if (growth_runs (options, growth_rows[i]))
            count +=
                growth_measure (out + count, growth_rows[i], options->directory, options->sizes,
                                options->rounds, options->seconds, options->quick);
    }
    return count;
}

/* The command line. */

static void usage (FILE *to)
{
    fprintf (
        to,
        "usage: taskmq-bench [OPTION]…\n\n"
        "Runs each row on each system in alternation and prints medians and ratios.\n\n"
        "  --only ROW,…        these rows (default: all)\n"
        "  --systems NAME,…    these systems (default: all that are installed)\n"
        "  --rounds N          rounds, of which the medians are told (%d, --quick: 1)\n"
        "  --seconds S         of one round of a row (%g, --quick: %g)\n"
        "  --quick             short rows, small sizes, only %s\n"
        "  --sizes N,…         of the rows by size, instead of their own\n"
        "  --slow-disk MS      only rows marked *, with MS milliseconds added to each sync\n"
        "                      of the servers; 0 is the disk as it is. Several times: each.\n"
        "                      (Default: these rows with 0, 1 and 5 ms; with --quick or\n"
        "                      --only 0.)\n"
        "  --directory DIR     below it the servers have theirs, on the disk that is\n"
        "                      measured (the current one)\n"
        "  --json FILE         the figures for programs. For gnuplot they are beside it: of\n"
        "                      x.json in x.dat, x-tails.dat and x-growth.dat\n"
        "  --markdown FILE     the figures for people\n\n"
        "Columns: \"server CPU us\" and \"clients' CPU us\" are processor time for one\n"
        "operation of the row. \"taskmq against it\" is taskmq's rate divided by that of this\n"
        "line; in the rows to_worker and notified the p50 of this line divided by taskmq's.\n"
        "So above 1 taskmq is better. If taskmq is not measured, it is the first system.\n\n"
        "Exit: 0 measured, 1 a system failed, 2 the command line cannot be followed.\n\n"
        "rows:\n",
        ROUNDS_DEFAULT, seconds_default, seconds_quick, systems_quick);
    for (size_t i = 0; i < rows_count; i++)
        fprintf (to, "%c %-18s %s\n", rows[i].slow ? '*' : ' ', rows[i].name, rows[i].says);
    fputs ("\nrows of taskmq alone, by size:\n", to);
    for (size_t i = 0; i < growth_rows_count; i++)
        fprintf (to, "  %-18s %s\n", growth_rows[i]->name, growth_rows[i]->says);
    fputs ("\nsystems:", to);
    for (size_t i = 0; drivers[i]; i++)
        fprintf (to, " %s", drivers[i]->system);
    fputc ('\n', to);
    left_out_tell (to);
}

static double number (const char *text, double lowest, double highest)
{
    char *end = NULL;
    double value = text ? strtod (text, &end) : NAN;
    if (!text || end == text || *end != '\0' || !(value >= lowest && value <= highest))
        misuse ("'%s' is not a number from %g to %g", text, lowest, highest);
    return value;
}

static double whole_number (const char *text, double lowest, double highest)
{
    double value = number (text, lowest, highest);
    if (value != floor (value))
        misuse ("'%s' is not a whole number", text);
    return value;
}

static void delay_add (options_t *options, const char *text)
{
    if (options->delays_count == DELAYS_MAX)
        misuse ("more than %d times --slow-disk", DELAYS_MAX);
    options->delays_us[options->delays_count++] = lround (number (text, 0, 10000) * 1000);
}

static void known_row (const char *name)
{
    size_t i = 0;
    while (i < rows_count && strcmp (rows[i].name, name) != 0)
        i++;
    if (i == rows_count && !growth_knows (name))
        misuse ("no such row: '%s'", name);
}

/* What is asked for and would measure nothing. */

static bool row_runs (const options_t *options, const row_t *row, const driver_t **systems,
                      size_t systems_count)
{
    for (size_t i = 0; i < options->delays_count * systems_count; i++) {
        long delay_us = options->delays_us[i / systems_count];
        if ((delay_us == 0 || row->slow) && takes_part (systems[i % systems_count], row, delay_us))
            return listed (options->only, row->name);
    }
    return false;
}

static void judge_rows (const options_t *options, const driver_t **systems, size_t systems_count)
{
    size_t run = 0;
    for (size_t i = 0; i < rows_count; i++) {
        bool runs = row_runs (options, &rows[i], systems, systems_count);
        if (!runs && options->only && listed (options->only, rows[i].name))
            misuse ("row %s: none of these systems takes part in it on such a disk", rows[i].name);
        run += runs;
    }
    for (size_t i = 0; i < growth_rows_count; i++) {
        bool runs = growth_runs (options, growth_rows[i]);
        if (!runs && options->only && listed (options->only, growth_rows[i]->name))
            misuse ("row %s is of taskmq alone, on the disk as it is", growth_rows[i]->name);
        run += runs;
    }
    if (run == 0)
        misuse ("none of these systems takes part in any row on such a disk");
}

static void judge_sizes (const options_t *options)
{
    size_t run = 0;
    for (size_t i = 0; options->sizes && i < growth_rows_count; i++) {
        double list[GROWTH_SIZES_MAX];
        if (!growth_runs (options, growth_rows[i]))
            continue;
        if (growth_sizes_parse (list, growth_rows[i], options->sizes) == 0)
            misuse ("--sizes '%s': row %s takes up to %d whole numbers from %g to %d",
                    options->sizes, growth_rows[i]->name, GROWTH_SIZES_MAX,
                    growth_rows[i]->size_min, GROWTH_SIZE_LARGEST);
        run++;
    }
    if (options->sizes && run == 0)
        misuse ("--sizes: no row by size is run");
}

static void judge_file (const char *option, const char *path)
{
    const char *reason = path ? report_refused (path) : NULL;
    if (reason)
        misuse ("%s '%s': %s", option, path, reason);
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
    int which = 0;
    for (int c; (c = getopt_long (argc, argv, "h", table, &which)) != -1;) {
        if (optarg && strncmp (optarg, "--", 2) == 0)
            misuse ("--%s wants a value: '%s' is an option", table[which].name, optarg);
        switch (c) {
        case 'q': options->quick = true; break;
        case 'o': options->only = optarg; break;
        case 's': options->systems = optarg; break;
        case 'r': options->rounds = (int) whole_number (optarg, 1, ROUNDS_MAX); break;
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
        each_name ("--only", options->only, known_row);
    if (options->rounds == 0)
        options->rounds = options->quick ? 1 : ROUNDS_DEFAULT;
    if (options->seconds == 0)
        options->seconds = options->quick ? seconds_quick : seconds_default;
    if (options->quick && !options->systems)
        options->systems = systems_quick;
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
    options_t options = {.directory = "."};
    options_parse (&options, argc, argv);

    const driver_t *systems[SYSTEMS_MAX];
    size_t systems_count = choose_systems (&options, systems);
    judge_rows (&options, systems, systems_count);
    judge_sizes (&options);
    judge_file ("--json", options.json);
    judge_file ("--markdown", options.markdown);
    signals_watch ();
    options.directory = run_directory_make (options.directory);
    report_t report = {.rounds = options.rounds, .seconds = options.seconds};
    machine_look (&report.machine, options.directory);
    report_machine (&report.machine);
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
