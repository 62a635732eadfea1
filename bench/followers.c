/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "followers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "export/event_log.h"
#include "export/event_witness.h"
#include "export/exporter.h"
#include "store/wakeup.h"

struct followers {
    int tasks_fd;
    int events_fd;
    store_t *store;
    watermark_t watermark;
    exporter_t *exporter;
    event_log_t *events;
};

static void die (const char *what, const char *why)
{
    fprintf (stderr, "store-bench: %s: %s\n", what, why);
    exit (1);
}

static void read_failed (const store_error_t *error)
{
    die ("read", error->text);
}

static int64_t standing_clock (void)
{
    return INT64_C (1700000000000);
}

followers_t *followers_new (void)
{
    followers_t *self = memory_zero (1, sizeof (*self));
    self->tasks_fd = wakeup_new ();
    self->events_fd = wakeup_new ();
    if (self->tasks_fd < 0 || self->events_fd < 0)
        die ("eventfd", "cannot be made");
    return self;
}

void followers_notify (void *followers)
{
    followers_t *self = followers;
    wakeup_raise (self->tasks_fd);
    wakeup_raise (self->events_fd);
}

static void start_exporter (followers_t *self, const boot_t *boot, const char *directory)
{
    char path[4096];
    char error[TASKS_FILE_ERROR_SIZE];
    snprintf (path, sizeof (path), "%s/tasks.jsonl", directory);
    exporter_options_t options = {.store = self->store,
                                  .path = path,
                                  .last_pos = boot->last_pos,
                                  .wake_fd = self->tasks_fd,
                                  .watermark = &self->watermark,
                                  .compact = {UINT64_MAX, UINT64_MAX, NULL},
                                  .failed = read_failed};
    self->exporter = exporter_new (&options, error);
    if (self->exporter == NULL)
        die ("tasks.jsonl", error);
}

static void start_events (followers_t *self, const boot_t *boot, const char *directory)
{
    char error[LINE_FILE_ERROR_SIZE];
    event_files_end_t end;
    event_verdict_t verdict;
    event_files_options_t options = {.directory = directory,
                                     .turn_bytes = UINT64_MAX,
                                     .keep_ms = INT64_C (1) << 40,
                                     .keep_bytes = UINT64_MAX,
                                     .wall_ms = standing_clock};
    event_log_options_t log = {.store = self->store,
                               .watermark = &self->watermark,
                               .generation = boot->generation,
                               .why = EVENT_ANCHOR_BEGUN,
                               .wake_fd = self->events_fd,
                               .failed = read_failed};
    event_files_t *files = event_files_open (&options, &end, error);
    if (files == NULL)
        die ("events.jsonl", error);
    if (event_witness (&verdict, &log.pos, files, &end, self->store, boot, error) != STORE_OK ||
        verdict == EVENTS_AHEAD)
        die ("events.jsonl", error);
    log.begin = verdict == EVENTS_OTHER;
    self->events = event_log_new (&log, &files, error);
    if (self->events == NULL)
        die ("events.jsonl", error);
}

void followers_start (followers_t *self, store_t *store, const boot_t *boot, const char *directory)
{
    self->store = store;
    watermark_init (&self->watermark, store);
    start_exporter (self, boot, directory);
    start_events (self, boot, directory);
}

/* Both are as far as the newest event, twice: a look between two pages of one sees the other. */
void followers_wait (followers_t *self)
{
    exporter_stats_t tasks = {0};
    event_log_stats_t events = {0};
    uint64_t last = UINT64_MAX;
    for (int same = 0; same < 3; same++) {
        nanosleep (&(struct timespec){0, 50000000}, NULL);
        exporter_stats (self->exporter, &tasks);
        event_log_stats (self->events, &events);
        if (tasks.pos != events.pos || tasks.pos != last)
            same = -1;
        last = tasks.pos;
    }
}

/* The text of a file of this thread, without its end; empty: there is none. */
static void read_text (const char *thread, const char *name, char *out, size_t size)
{
    char path[512];
    snprintf (path, sizeof (path), "/proc/self/task/%s/%s", thread, name);
    FILE *file = fopen (path, "r");
    if (file == NULL || fgets (out, (int) size, file) == NULL)
        out[0] = '\0';
    out[strcspn (out, "\n")] = '\0';
    if (file != NULL)
        fclose (file);
}

/* CPU of the thread with this name; ns. */
static double cpu_of (const char *name)
{
    double cpu = -1;
    DIR *threads = opendir ("/proc/self/task");
    for (struct dirent *entry; threads != NULL && (entry = readdir (threads)) != NULL;) {
        char text[64];
        read_text (entry->d_name, "comm", text, sizeof (text));
        if (strcmp (text, name) != 0)
            continue;
        read_text (entry->d_name, "schedstat", text, sizeof (text));
        cpu = strtod (text, NULL);
    }
    if (threads != NULL)
        closedir (threads);
    if (cpu < 0)
        die (name, "no thread has this name");
    return cpu;
}

static void print (const char *thread, size_t lives, uint64_t lines, const char *directory,
                   const char *file)
{
    char path[4096];
    struct stat info = {0};
    double us = cpu_of (thread) / 1e3;
    snprintf (path, sizeof (path), "%s/%s", directory, file);
    stat (path, &info);
    printf ("%-8s %6.3f us CPU a life, %6.3f a line; %9llu lines, %5.0f bytes each\n", thread,
            us / (double) lives, us / (double) lines, (unsigned long long) lines,
            (double) info.st_size / (double) lines);
}

void followers_print (const followers_t *self, size_t lives, const char *directory)
{
    exporter_stats_t tasks;
    event_log_stats_t events;
    exporter_stats (self->exporter, &tasks);
    event_log_stats (self->events, &events);
    print ("exporter", lives, tasks.lines, directory, "tasks.jsonl");
    print ("events", lives, events.lines, directory, "events.jsonl");
}

void followers_free (followers_t **self_p)
{
    followers_t *self = *self_p;
    *self_p = NULL;
    event_log_free (&self->events);
    exporter_free (&self->exporter);
    close (self->tasks_fd);
    close (self->events_fd);
    free (self);
}
