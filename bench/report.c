/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the bench prints: a table for people, JSON for programs, Markdown for docs/PERFORMANCE.md,
 * columns for gnuplot. */

#include "growth.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CELL_BYTES = 32, SYSTEMS_MAX = 32 };

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

static bool same_row (const sample_t *a, const sample_t *b)
{
    return a->row == b->row && a->sync_delay_us == b->sync_delay_us;
}

/* The same row of the first system, to which ratios refer. */
static const sample_t *reference (const report_t *report, const sample_t *of)
{
    for (size_t i = 0; i < report->count; i++) {
        const sample_t *sample = &report->samples[i];
        if (same_row (sample, of) && sample->driver == report->samples[0].driver)
            return sample;
    }
    return NULL;
}

static bool has_tails (const sample_t *sample)
{
    return sample->row->tails && sample->sync_delay_us == 0 && !isnan (sample->figures.p50_us);
}

static double delay_ms (const sample_t *sample)
{
    return (double) sample->sync_delay_us / 1000;
}

static const char *ratio (char out[CELL_BYTES], const report_t *report, const sample_t *of)
{
    const sample_t *base = reference (report, of);
    if (!base || base == of || !(of->figures.rate_per_s > 0))
        return memcpy (out, "", sizeof "");
    /* Idle rows compare times, the others rates; above 1 the first system is better. */
    bool idle = strcmp (of->row->name, "to_worker") == 0 || strcmp (of->row->name, "notified") == 0;
    double value = idle ? of->figures.p50_us / base->figures.p50_us
                        : base->figures.rate_per_s / of->figures.rate_per_s;
    snprintf (out, CELL_BYTES, "%.2f x", value);
    return out;
}

void report_machine (const machine_t *machine)
{
    printf ("on %ld cores of %s, %s, %s; a sync of an append of 4 KiB takes %.0f us (p99 %.0f us); "
            "load %.1f\n",
            machine->cores, machine->processor, machine->system, machine->filesystem,
            machine->sync_p50_us, machine->sync_p99_us, machine->load);
}

void report_table (const report_t *report, size_t first)
{
    char against[CELL_BYTES * 2];
    snprintf (against, sizeof against, "%s against it", report->samples[0].driver->system);
    for (size_t i = first; i < report->count; i++) {
        const sample_t *sample = &report->samples[i];
        char cells[6][CELL_BYTES];
        const figures_t *figures = &sample->figures;
        if (i == first || !same_row (sample - 1, sample)) {
            printf ("\n%s: %s\n", sample->row->name, sample->row->says);
            if (sample->sync_delay_us > 0)
                printf ("  on a disk slower by %g ms for each sync\n", delay_ms (sample));
            printf ("  %-16s %10s %10s %10s %13s %15s %10s   %s\n", "", "per s", "p50 us", "p99 us",
                    "server CPU us", "clients' CPU us", "memory", against);
        }
        printf ("  %-16s %10s %10s %10s %13s %15s %10s   %s\n", sample->driver->system,
                cell (cells[0], figures->rate_per_s), cell (cells[1], figures->p50_us),
                cell (cells[2], figures->p99_us), cell (cells[3], figures->server_cpu_us),
                cell (cells[5], figures->clients_cpu_us), cell (cells[4], figures->rss_bytes),
                ratio ((char[CELL_BYTES]){0}, report, sample));
    }
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

const char *report_refused (const char *path)
{
    char temporary[BENCH_PATH_MAX];
    struct stat status;
    if (path[0] == '\0')
        return strerror (ENOENT);
    if (strlen (path) + sizeof "-growth.dat.new" > sizeof temporary)
        return strerror (ENAMETOOLONG);
    if (stat (path, &status) == 0 && !S_ISREG (status.st_mode))
        return S_ISDIR (status.st_mode) ? strerror (EISDIR) : "is no regular file";
    snprintf (temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen (temporary, "w");
    if (!file)
        return strerror (errno);
    fclose (file);
    unlink (temporary);
    return NULL;
}

static void finish (FILE *file, const char *path, const char *temporary)
{
    bool failed = ferror (file) != 0;
    if (fclose (file) != 0 || failed || rename (temporary, path) != 0)
        die ("%s: %s", path, strerror (errno));
}

static void json_number (FILE *file, const char *key, double value, int decimals)
{
    if (isnan (value))
        fprintf (file, ",\"%s\":null", key);
    else
        fprintf (file, ",\"%s\":%.*f", key, decimals, value);
}

/* "tails": pairs of a share and the latency that so many do not exceed. */
static void json_tails (FILE *file, const figures_t *figures)
{
    if (isnan (figures->p50_us))
        return;
    fputs (",\"tails_us\":[", file);
    for (size_t i = 0; i < TAILS; i++)
        fprintf (file, "%s[%g,%.1f]", i > 0 ? "," : "", tail_shares[i], figures->tail_us[i]);
    fputs ("]", file);
}

/* The systems in the order in which they first occur; returns how many. */
static size_t systems_of (const report_t *report, const driver_t *out[SYSTEMS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        size_t at = 0;
        while (at < count && out[at] != report->samples[i].driver)
            at++;
        if (at == count && count < SYSTEMS_MAX)
            out[count++] = report->samples[i].driver;
    }
    return count;
}

/* Quotes, backslashes and control characters do not occur in what is written, save in what other
 * programs say: there they become spaces. */
static void json_text (FILE *file, const char *key, const char *text)
{
    fprintf (file, "\"%s\":\"", key);
    for (; *text; text++)
        fputc (*text == '"' || *text == '\\' || (unsigned char) *text < ' ' ? ' ' : *text, file);
    fputc ('"', file);
}

static void json_machine (FILE *file, const report_t *report)
{
    const machine_t *machine = &report->machine;
    fputs ("\"machine\":{", file);
    json_text (file, "processor", machine->processor);
    fprintf (file, ",\"cores\":%ld,\"memory_bytes\":%.0f,", machine->cores, machine->memory_bytes);
    json_text (file, "system", machine->system);
    fputc (',', file);
    json_text (file, "kernel", machine->kernel);
    fputc (',', file);
    json_text (file, "filesystem", machine->filesystem);
    json_number (file, "sync_p50_us", machine->sync_p50_us, 1);
    json_number (file, "sync_p99_us", machine->sync_p99_us, 1);
    json_number (file, "load", machine->load, 2);
    fputs ("},\n\"run\":{", file);
    json_text (file, "date", machine->date);
    fprintf (file, ",\"rounds\":%d,\"seconds\":%g,\"payload_bytes\":%d},\n", report->rounds,
             report->seconds, (int) BENCH_PAYLOAD_BYTES);
}

/* Asked once: some take a second to answer. */
static const char *version_of (const driver_t *driver)
{
    static struct {
        const driver_t *driver;
        char version[BENCH_VERSION_BYTES];
    } known[SYSTEMS_MAX];
    size_t i = 0;
    while (i + 1 < SYSTEMS_MAX && known[i].driver && known[i].driver != driver)
        i++;
    if (known[i].driver != driver)
        program_version (driver->version, known[i].version);
    known[i].driver = driver;
    return known[i].version;
}

static void json_systems (FILE *file, const report_t *report)
{
    const driver_t *systems[SYSTEMS_MAX];
    size_t count = systems_of (report, systems);
    fputs ("\"systems\":[", file);
    for (size_t i = 0; i < count; i++) {
        fputs (i == 0 ? "\n{" : ",\n{", file);
        json_text (file, "system", systems[i]->system);
        fputc (',', file);
        json_text (file, "version", version_of (systems[i]));
        fputc (',', file);
        json_text (file, "durability", systems[i]->durability);
        fputc (',', file);
        json_text (file, "note", systems[i]->note);
        fputc ('}', file);
    }
    fputs ("\n],\n", file);
}

void report_json (const char *path, const report_t *report)
{
    char temporary[BENCH_PATH_MAX];
    FILE *file = begin (path, temporary);
    fputs ("{", file);
    json_machine (file, report);
    json_systems (file, report);
    fputs ("\"rows\":[", file);
    for (size_t i = 0; i < report->count; i++) {
        const sample_t *sample = &report->samples[i];
        const figures_t *figures = &sample->figures;
        fprintf (file, "%s\n{\"system\":\"%s\",\"case\":\"%s\"", i ? "," : "",
                 sample->driver->system, sample->row->name);
        json_number (file, "sync_delay_ms", delay_ms (sample), 1);
        json_number (file, "rate_per_s", figures->rate_per_s, 1);
        json_number (file, "rate_min_per_s", sample->rate_min_per_s, 1);
        json_number (file, "rate_max_per_s", sample->rate_max_per_s, 1);
        json_number (file, "p50_us", figures->p50_us, 1);
        json_number (file, "p99_us", figures->p99_us, 1);
        json_number (file, "server_cpu_us", figures->server_cpu_us, 2);
        json_number (file, "clients_cpu_us", figures->clients_cpu_us, 2);
        json_number (file, "rss_bytes", figures->rss_bytes, 0);
        json_tails (file, figures);
        fprintf (file, ",\"durability\":\"%s\"}", sample->driver->durability);
    }
    growth_json (file, report->points, report->points_count, report->count == 0);
    fputs ("\n]}\n", file);
    finish (file, path, temporary);
}

/* NAME.json gives NAME and the suffix. */
static FILE *begin_beside (const char *json, const char *suffix, char path[BENCH_PATH_MAX],
                           char temporary[BENCH_PATH_MAX])
{
    size_t stem = strlen (json);
    if (stem > 5 && strcmp (json + stem - 5, ".json") == 0)
        stem -= 5;
    if (snprintf (path, BENCH_PATH_MAX, "%.*s%s", (int) stem, json, suffix) >= BENCH_PATH_MAX)
        die ("%s: the name is too long", json);
    return begin (path, temporary);
}

static void plot_number (FILE *file, double value)
{
    if (isnan (value))
        fputs ("\t?", file);
    else
        fprintf (file, "\t%.2f", value);
}

void report_plot_data (const char *json, const report_t *report)
{
    char path[BENCH_PATH_MAX];
    char temporary[BENCH_PATH_MAX];
    FILE *file = begin_beside (json, ".dat", path, temporary);
    fputs ("# case\tsystem\tdurability\tsync_delay_ms\trate_per_s\tp50_us\tp99_us"
           "\tserver_cpu_us\trss_bytes\tclients_cpu_us\n",
           file);
    for (size_t i = 0; i < report->count; i++) {
        const sample_t *sample = &report->samples[i];
        const figures_t *figures = &sample->figures;
        fprintf (file, "%s\t%s\t%s\t%g", sample->row->name, sample->driver->system,
                 sample->driver->durability, delay_ms (sample));
        plot_number (file, figures->rate_per_s);
        plot_number (file, figures->p50_us);
        plot_number (file, figures->p99_us);
        plot_number (file, figures->server_cpu_us);
        plot_number (file, figures->rss_bytes);
        plot_number (file, figures->clients_cpu_us);
        fputc ('\n', file);
    }
    finish (file, path, temporary);
}

void report_tail_data (const char *json, const report_t *report)
{
    char path[BENCH_PATH_MAX];
    char temporary[BENCH_PATH_MAX];
    FILE *file = begin_beside (json, "-tails.dat", path, temporary);
    fputs ("# case\tsystem\tshare\tus\n", file);
    for (size_t i = 0; i < report->count; i++) {
        const sample_t *sample = &report->samples[i];
        for (size_t k = 0; has_tails (sample) && k < TAILS; k++)
            fprintf (file, "%s\t%s\t%g\t%.1f\n", sample->row->name, sample->driver->system,
                     tail_shares[k], sample->figures.tail_us[k]);
    }
    finish (file, path, temporary);
}

void report_growth_data (const char *json, const point_t *points, size_t count)
{
    char path[BENCH_PATH_MAX];
    char temporary[BENCH_PATH_MAX];
    FILE *file = begin_beside (json, "-growth.dat", path, temporary);
    growth_plot_data (file, points, count);
    finish (file, path, temporary);
}

/* Markdown. */

static void markdown_machine (FILE *file, const report_t *report)
{
    const machine_t *machine = &report->machine;
    fprintf (
        file,
        "Measured on %s (UTC), %d rounds of %g s a row, on %ld cores of %s with %.1f GB; %s, "
        "Linux %s, %s. A sync of an append of 4 KiB took %.0f us (p99 %.0f us); the load before "
        "it began was %.1f. \"Against it\" above 1 means that %s is better.\n",
        machine->date, report->rounds, report->seconds, machine->cores, machine->processor,
        machine->memory_bytes / 1e9, machine->system, machine->kernel, machine->filesystem,
        machine->sync_p50_us, machine->sync_p99_us, machine->load,
        report->samples[0].driver->system);
}

static void markdown_rows (FILE *file, const report_t *report)
{
    const char *first = report->samples[0].driver->system;
    for (size_t i = 0; i < report->count; i++) {
        const sample_t *sample = &report->samples[i];
        const figures_t *figures = &sample->figures;
        char cells[6][CELL_BYTES];
        if (i == 0 || !same_row (sample - 1, sample)) {
            fprintf (file, "\n**%s**: %s", sample->row->name, sample->row->says);
            if (sample->sync_delay_us > 0)
                fprintf (file, ", on a disk slower by %g ms for each sync", delay_ms (sample));
            fprintf (file,
                     "\n\n| system | durable | per s | p50 us | p99 us | server CPU us | clients' "
                     "CPU us | memory | %s against it |\n|---|---|---|---|---|---|---|---|---|\n",
                     first);
        }
        fprintf (file, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", sample->driver->system,
                 sample->driver->durability, cell (cells[0], figures->rate_per_s),
                 cell (cells[1], figures->p50_us), cell (cells[2], figures->p99_us),
                 cell (cells[3], figures->server_cpu_us), cell (cells[5], figures->clients_cpu_us),
                 cell (cells[4], figures->rss_bytes),
                 ratio ((char[CELL_BYTES]){0}, report, sample));
    }
}

static void markdown_tails (FILE *file, const report_t *report)
{
    const row_t *row = NULL;
    for (size_t i = 0; i < report->count; i++) {
        const sample_t *sample = &report->samples[i];
        if (!has_tails (sample))
            continue;
        if (sample->row != row) {
            row = sample->row;
            fprintf (file, "\n**%s**, how long it took, in us: of all, so many took no longer\n\n",
                     row->name);
            fputs ("| system |", file);
            for (size_t k = 0; k < TAILS; k++)
                fprintf (file, " %g %% |", tail_shares[k] * 100);
            fputs ("\n|---|", file);
            for (size_t k = 0; k < TAILS; k++)
                fputs ("---|", file);
            fputc ('\n', file);
        }
        fprintf (file, "| %s |", sample->driver->system);
        for (size_t k = 0; k < TAILS; k++)
            fprintf (file, " %s |", cell ((char[CELL_BYTES]){0}, sample->figures.tail_us[k]));
        fputc ('\n', file);
    }
}

static void markdown_systems (FILE *file, const report_t *report)
{
    const driver_t *systems[SYSTEMS_MAX];
    size_t count = systems_of (report, systems);
    fputs ("\n| system | version | durable | what a life is there |\n|---|---|---|---|\n", file);
    for (size_t i = 0; i < count; i++) {
        fprintf (file, "| %s | %s | %s | %s |\n", systems[i]->system, version_of (systems[i]),
                 systems[i]->durability, systems[i]->note);
    }
}

void report_markdown (const char *path, const report_t *report)
{
    char temporary[BENCH_PATH_MAX];
    FILE *file = begin (path, temporary);
    if (report->count > 0) {
        markdown_machine (file, report);
        markdown_systems (file, report);
        markdown_rows (file, report);
        markdown_tails (file, report);
    }
    growth_markdown (file, report->points, report->points_count);
    finish (file, path, temporary);
}
