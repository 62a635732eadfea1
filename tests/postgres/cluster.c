/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "cluster.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/cmocka_all.h"
#include "support/timing.h"

enum { INSTANCE_LENGTH = 32, BAR_MS = 250, BAR_MAX = 60 };

/* Life. */

static int port_of (const char *endpoint)
{
    return atoi (strrchr (endpoint, ':') + 1);
}

static void prepare (cluster_t *self, unsigned number, bool through, unsigned seed)
{
    daemon_t *broker = &self->brokers[number];
    size_t count = 0;
    if (through) {
        daemon_init_tcp (broker);
        count = 2;
        self->databases[number] = proxy_new (self->stage.server.port, seed + number);
        self->doors[number] = proxy_new (port_of (broker->endpoint), seed + number);
        postgres_uri_tcp (port_of (proxy_endpoint (self->databases[number])), self->uris[number]);
    } else {
        daemon_init (broker);
    }
    broker->arguments[count++] = "--standby";
    broker->arguments[count++] = "--store";
    broker->arguments[count++] = "postgresql";
    broker->arguments[count++] = "--database";
    broker->arguments[count++] = self->uris[number];
}

void cluster_init (cluster_t *self, unsigned brokers, bool through, const char *lease,
                   unsigned seed)
{
    memset (self, 0, sizeof *self);
    setenv ("TASKMQD_CLUSTER_LEASE", lease, 1);
    if (through)
        stage_init_tcp (&self->stage, NULL);
    else
        stage_init (&self->stage, NULL);
    self->count = brokers;
    for (unsigned i = 0; i < brokers; i++) {
        snprintf (self->uris[i], sizeof self->uris[i], "%s", self->stage.uri);
        prepare (self, i, through, seed);
    }
}

void cluster_init_on (cluster_t *self, unsigned brokers, const char *uri, const char *lease)
{
    setenv ("TASKMQD_CLUSTER_LEASE", lease, 1);
    self->count = brokers;
    for (unsigned i = 0; i < brokers; i++) {
        snprintf (self->uris[i], sizeof self->uris[i], "%s", uri);
        prepare (self, i, false, 0);
    }
}

void cluster_destroy (cluster_t *self)
{
    for (unsigned i = 0; i < self->count; i++) {
        daemon_destroy (&self->brokers[i]);
        proxy_free (self->databases[i]);
        proxy_free (self->doors[i]);
    }
    stage_destroy (&self->stage);
}

void cluster_start (cluster_t *self)
{
    daemon_start (&self->brokers[0]);
    for (unsigned i = 1; i < self->count; i++) {
        daemon_spawn (&self->brokers[i]);
        WAIT_FOR (daemon_logged (&self->brokers[i], "DATABASE-STANDBY"), TIMING_PATIENCE_MS);
    }
}

/* Clients. */

void cluster_endpoints (const cluster_t *self, const char *out[LOAD_ENDPOINTS_MAX])
{
    for (unsigned i = 0; i < LOAD_ENDPOINTS_MAX; i++)
        out[i] = NULL;
    for (unsigned i = 0; i < self->count; i++)
        out[i] =
            self->doors[i] != NULL ? proxy_endpoint (self->doors[i]) : self->brokers[i].endpoint;
}

load_options_t cluster_load (const cluster_t *self)
{
    load_options_t options = {.submitters = 2,
                              .workers = 2,
                              .subscribers = 2,
                              .readers = 2 * self->count,
                              .visitors = 1,
                              .open_max = 200,
                              .timeout_ms = CLUSTER_END_MS,
                              .faulty_workers = true,
                              .cancels = true};
    cluster_endpoints (self, options.endpoints);
    return options;
}

/* Brokers. */

static bool is_instance (const daemon_t *broker, const char *owner)
{
    char path[DAEMON_PATH_MAX + 32];
    char id[INSTANCE_LENGTH + 1] = "";
    snprintf (path, sizeof path, "%s/instance", broker->data);
    FILE *file = fopen (path, "r");
    bool read = file != NULL && fread (id, 1, INSTANCE_LENGTH, file) == INSTANCE_LENGTH;
    if (file != NULL)
        fclose (file);
    return read && strncmp (owner, id, INSTANCE_LENGTH) == 0;
}

unsigned cluster_owner (const cluster_t *self, const postgres_t *server)
{
    unsigned found = self->count;
    char *owner = postgres_sql (server, "SELECT coalesce (owner, '') FROM taskmq.shard");
    for (unsigned i = 0; i < self->count; i++)
        if (is_instance (&self->brokers[i], owner))
            found = i;
    free (owner);
    return found;
}

void cluster_tend (cluster_t *self)
{
    for (unsigned i = 0; i < self->count; i++) {
        int code;
        if (!daemon_has_ended (&self->brokers[i], &code))
            continue;
        if (code != CLUSTER_FENCED)
            fail_msg ("broker %u (see %s) ended with %d", i, self->brokers[i].log, code);
        self->fenced++;
        daemon_spawn (&self->brokers[i]);
    }
}

void cluster_kill (cluster_t *self, unsigned number)
{
    int status = daemon_end (&self->brokers[number], SIGKILL);
    if (WIFEXITED (status) && WEXITSTATUS (status) != CLUSTER_FENCED)
        fail_msg ("broker %u (see %s) had ended with %d", number, self->brokers[number].log,
                  WEXITSTATUS (status));
}

void cluster_stop (cluster_t *self, unsigned number)
{
    daemon_signal (&self->brokers[number], SIGTERM);
    int code = daemon_exit_code (&self->brokers[number]);
    if (code != 0 && code != CLUSTER_FENCED)
        fail_msg ("broker %u (see %s) ended with %d", number, self->brokers[number].log, code);
}

int64_t cluster_wait_accepted (cluster_t *self, load_t *load, int64_t since_ms)
{
    WAIT_FOR ((cluster_tend (self), atomic_load (&load->accepted_ms) >= since_ms),
              TIMING_PATIENCE_MS);
    return atomic_load (&load->accepted_ms);
}

/* The end. */

static bool is_known (const cluster_t *self)
{
    return cluster_owner (self, &self->stage.server) < self->count;
}

void cluster_finish (cluster_t *self, load_t *load)
{
    cluster_wait_accepted (self, load, timing_ms ());
    load_finish (load, CLUSTER_END_MS);
    print_message ("%zu tasks accepted, %zu completed, %llu events, %zu answers compared with "
                   "older ones, %u brokers fenced\n",
                   load->history.accepted, load->history.completed,
                   (unsigned long long) load->history.streams[0].upto, load->history.told,
                   self->fenced);
    assert_true (is_known (self));
    unsigned owner = cluster_owner (self, &self->stage.server);
    for (unsigned i = 0; i < self->count; i++)
        if (i != owner && self->brokers[i].pid > 0)
            cluster_stop (self, i);
    daemon_stop (&self->brokers[owner]);
    checker_tasks_file (&load->history, self->brokers[owner].data);
    stage_check_tables (&self->stage, &load->history);
    load_clear (load);
}

/* Times. */

void cluster_time (cluster_times_t *times, int64_t ms)
{
    if (times->count < sizeof times->ms / sizeof times->ms[0])
        times->ms[times->count++] = ms;
}

static int by_time (const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return (*left > *right) - (*left < *right);
}

static size_t count_within (const cluster_times_t *times, int64_t from_ms, int64_t to_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < times->count; i++)
        count += times->ms[i] >= from_ms && times->ms[i] < to_ms;
    return count;
}

/* Of times in order. */
static int64_t time_of (const cluster_times_t *times, size_t hundredths)
{
    return times->ms[times->count * hundredths / 100];
}

void cluster_print_times (cluster_times_t *times, const char *of)
{
    static const char bar[BAR_MAX + 1] =
        "############################################################";
    size_t count = times->count;
    if (count == 0)
        return;
    qsort (times->ms, count, sizeof times->ms[0], by_time);
    print_message ("%s: %zu, p50 %lld ms, p99 %lld ms, longest %lld ms\n", of, count,
                   (long long) time_of (times, 50), (long long) time_of (times, 99),
                   (long long) times->ms[count - 1]);
    for (int64_t at = times->ms[0] / BAR_MS * BAR_MS; at <= times->ms[count - 1]; at += BAR_MS) {
        size_t within = count_within (times, at, at + BAR_MS);
        if (within > 0)
            print_message ("%6lld ms %5zu %.*s\n", (long long) at, within,
                           (int) ((within * BAR_MAX + count - 1) / count), bar);
    }
}

void cluster_assert_times (const cluster_times_t *times, const char *of, int64_t p50_ms,
                           int64_t p99_ms)
{
    assert_true (times->count > 0);
    int64_t p50 = time_of (times, 50);
    int64_t p99 = time_of (times, 99);
    if (p50 > p50_ms || p99 > p99_ms)
        fail_msg ("%s: p50 %lld ms, to be at most %lld; p99 %lld ms, to be at most %lld", of,
                  (long long) p50, (long long) p50_ms, (long long) p99, (long long) p99_ms);
}
