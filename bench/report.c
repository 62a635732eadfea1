/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the bench prints: a table for people, JSON for programs, Markdown
 * for docs/PERFORMANCE.md. */

#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 32 };

/* A number with three significant digits; "-" where nothing was measured. */
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
    int decimals = fabs (value) >= 99.95 ? 0 : 1;
    snprintf (out, CELL_BYTES, "%.*f%s", decimals, value, units[unit]);
    return out;
}

/* The same row of the first system, to which ratios refer. */
static const sample_t *reference (const sample_t *samples, size_t count, const row_t *row)
{
    for (size_t i = 0; i < count; i++) {
        if (samples[i].row == row && samples[i].driver == samples[0].driver)
            return &samples[i];
    }
    return NULL;
}

static const char *ratio (char out[CELL_BYTES], const sample_t *samples, size_t count,
                          const sample_t *of)
{
    const sample_t *base = reference (samples, count, of->row);
    if (!base || base == of || !(of->figures.rate_per_s > 0))
        return memcpy (out, "", sizeof "");
    /* Idle rows compare times, the others rates; above 1 the first system is better. */
    bool idle = strcmp (of->row->name, "to_worker") == 0 || strcmp (of->row->name, "notified") == 0;
    double value = idle ? of->figures.p50_us / base->figures.p50_us
                        : base->figures.rate_per_s / of->figures.rate_per_s;
    snprintf (out, CELL_BYTES, "%.2f x", value);
    return out;
}

void report_table (const sample_t *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const row_t *row = samples[i].row;
        char cells[5][CELL_BYTES];
        const figures_t *figures = &samples[i].figures;
        if (i == 0 || samples[i - 1].row != row) {
            printf ("\n%s: %s\n", row->name, row->says);
            printf ("  %-14s %10s %10s %10s %12s %10s   %s\n", "", "per s", "p50 us", "p99 us",
                    "CPU us/op", "memory", "first against it");
        }
        printf ("  %-14s %10s %10s %10s %12s %10s   %s\n", samples[i].driver->system,
                cell (cells[0], figures->rate_per_s), cell (cells[1], figures->p50_us),
                cell (cells[2], figures->p99_us), cell (cells[3], figures->broker_cpu_us),
                cell (cells[4], figures->rss_bytes),
                ratio ((char[CELL_BYTES]){0}, samples, count, &samples[i]));
    }
    putchar ('\n');
}

/* Files. */

static FILE *begin (const char *path, char temporary[BENCH_PATH_MAX])
{
    if (snprintf (temporary, BENCH_PATH_MAX, "%s.new", path) >= BENCH_PATH_MAX)
        die ("%s: the name is too long", path);
    FILE *file = fopen (temporary, "w");
    if (!file)
        die ("%s: %s", temporary, strerror (errno));
    return file;
}

static void finish (FILE *file, const char *path, const char *temporary)
{
    bool failed = ferror (file) != 0;
    if (fclose (file) != 0 || failed || rename (temporary, path) != 0)
        die ("%s: %s", path, strerror (errno));
    printf ("written: %s\n", path);
}

static void json_number (FILE *file, const char *key, double value, int decimals)
{
    if (isnan (value))
        fprintf (file, ",\"%s\":null", key);
    else
        fprintf (file, ",\"%s\":%.*f", key, decimals, value);
}

void report_json (const char *path, const sample_t *samples, size_t count)
{
    char temporary[BENCH_PATH_MAX];
    FILE *file = begin (path, temporary);
    fputs ("{\"rows\":[", file);
    for (size_t i = 0; i < count; i++) {
        const figures_t *figures = &samples[i].figures;
        fprintf (file, "%s\n{\"system\":\"%s\",\"case\":\"%s\"", i ? "," : "",
                 samples[i].driver->system, samples[i].row->name);
        json_number (file, "rate_per_s", figures->rate_per_s, 1);
        json_number (file, "p50_us", figures->p50_us, 1);
        json_number (file, "p99_us", figures->p99_us, 1);
        json_number (file, "broker_cpu_us", figures->broker_cpu_us, 2);
        json_number (file, "rss_bytes", figures->rss_bytes, 0);
        fprintf (file, ",\"durability\":\"%s\"}", samples[i].driver->durability);
    }
    fputs ("\n]}\n", file);
    finish (file, path, temporary);
}

void report_markdown (const char *path, const sample_t *samples, size_t count)
{
    char temporary[BENCH_PATH_MAX];
    FILE *file = begin (path, temporary);
    fputs ("| row | system | durable | per s | p50 us | p99 us | server CPU us | memory | taskmq "
           "against it |\n|---|---|---|---|---|---|---|---|---|\n",
           file);
    for (size_t i = 0; i < count; i++) {
        char cells[5][CELL_BYTES];
        const figures_t *figures = &samples[i].figures;
        fprintf (file, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", samples[i].row->name,
                 samples[i].driver->system, samples[i].driver->durability,
                 cell (cells[0], figures->rate_per_s), cell (cells[1], figures->p50_us),
                 cell (cells[2], figures->p99_us), cell (cells[3], figures->broker_cpu_us),
                 cell (cells[4], figures->rss_bytes),
                 ratio ((char[CELL_BYTES]){0}, samples, count, &samples[i]));
    }
    finish (file, path, temporary);
}
