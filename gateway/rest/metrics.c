/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/trees.h"
#include "exposition.h"
#include "rest/routes.h"

static const struct {
    uint64_t us;
    const char *text;
} buckets[SERVICE_TIMES] = {{1000, "0.001"},  {2000, "0.002"},  {5000, "0.005"}, {10000, "0.01"},
                            {20000, "0.02"},  {50000, "0.05"},  {100000, "0.1"}, {200000, "0.2"},
                            {500000, "0.5"},  {1000000, "1"},   {2000000, "2"},  {5000000, "5"},
                            {10000000, "10"}, {30000000, "30"}, {60000000, "60"}};

uint64_t metrics_bucket_us (size_t bucket)
{
    return buckets[bucket].us;
}

static void put_number (bytes_t *out, const char *name, const char *type, const char *help,
                        uint64_t value)
{
    exposition_head (out, name, type, help);
    bytes_append_format (out, "taskmq_%s %" PRIu64 "\n", name, value);
}

static void put_answers (bytes_t *out, const service_numbers_t *numbers)
{
    exposition_head (out, "gateway_http_requests_total", "counter", "requests answered");
    for (size_t row = 0; row < SERVICE_ROUTES_MAX; row++) {
        const route_t *route = routes_at (row);
        for (size_t status = 0; status < SERVICE_STATUSES; status++)
            if (numbers->answers[row][status] > 0)
                bytes_append_format (
                    out,
                    "taskmq_gateway_http_requests_total{route=\"%s\",method=\"%s\","
                    "status=\"%zu\"} %" PRIu64 "\n",
                    route != NULL ? route->path : "",
                    route != NULL ? http_method_text (route->method) : "", status,
                    numbers->answers[row][status]);
    }
}

static void put_times (bytes_t *out, const service_numbers_t *numbers)
{
    uint64_t count = 0;
    exposition_head (out, "gateway_http_request_duration_seconds", "histogram",
                     "from the head of a request to its answer");
    for (size_t i = 0; i < SERVICE_TIMES; i++) {
        count += numbers->times[i];
        bytes_append_format (
            out, "taskmq_gateway_http_request_duration_seconds_bucket{le=\"%s\"} %" PRIu64 "\n",
            buckets[i].text, count);
    }
    count += numbers->times[SERVICE_TIMES];
    bytes_append_format (
        out, "taskmq_gateway_http_request_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n",
        count);
    bytes_append_format (
        out, "taskmq_gateway_http_request_duration_seconds_sum %" PRIu64 ".%06" PRIu64 "\n",
        numbers->times_us / 1000000, numbers->times_us % 1000000);
    bytes_append_format (out, "taskmq_gateway_http_request_duration_seconds_count %" PRIu64 "\n",
                         count);
}

/* One line for each namespace. */
static void put_links (bytes_t *out, const service_t *service, const char *name, const char *type,
                       const char *help, uint64_t (*value) (const link_numbers_t *))
{
    link_numbers_t numbers;
    exposition_head (out, name, type, help);
    for (size_t i = 0; i < service->links_count; i++) {
        link_count (service->links[i], &numbers);
        bytes_append_format (out, "taskmq_%s{namespace=\"%s\"} %" PRIu64 "\n", name,
                             link_ns (service->links[i]), value (&numbers));
    }
}

static uint64_t is_up (const link_numbers_t *numbers)
{
    return numbers->up;
}

static uint64_t epoch_of (const link_numbers_t *numbers)
{
    return numbers->epoch;
}

static uint64_t reconnects_of (const link_numbers_t *numbers)
{
    return numbers->connects > 0 ? numbers->connects - 1 : 0;
}

static uint64_t resent_of (const link_numbers_t *numbers)
{
    return numbers->resent;
}

static uint64_t waits_of (const link_numbers_t *numbers)
{
    return numbers->waits;
}

static uint64_t waits_displaced_of (const link_numbers_t *numbers)
{
    return numbers->waits_displaced;
}

static uint64_t cancels_of (const link_numbers_t *numbers)
{
    return numbers->cancels;
}

static uint64_t cancels_dropped_of (const link_numbers_t *numbers)
{
    return numbers->cancels_dropped;
}

static void put_refused (bytes_t *out, const service_numbers_t *numbers)
{
    exposition_head (out, "gateway_refused_total", "counter",
                     "requests that were refused before they were served");
    for (size_t kind = 0; kind < PROBLEM_KINDS; kind++)
        if (numbers->refused[kind] > 0)
            bytes_append_format (out, "taskmq_gateway_refused_total{reason=\"%s\"} %" PRIu64 "\n",
                                 problem_name ((problem_kind_t) kind), numbers->refused[kind]);
}

static const char *const state_names[] = {[CONNECTION_IDLE] = "idle",
                                          [CONNECTION_READING] = "reading",
                                          [CONNECTION_WAITING] = "waiting",
                                          [CONNECTION_STREAMING] = "streaming",
                                          [CONNECTION_CLOSING] = "closing"};
static const char *const kind_names[] = {
    [STREAM_BYTES] = "bytes", [STREAM_EVENTS] = "events", [STREAM_MCP] = "mcp"};

/* A gauge with a line for each value of its one label. */
static void put_each (bytes_t *out, const char *name, const char *help, const char *label,
                      const char *const *names, const uint64_t *values, size_t count)
{
    exposition_head (out, name, "gauge", help);
    for (size_t i = 0; i < count; i++)
        bytes_append_format (out, "taskmq_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, names[i],
                             values[i]);
}

static void put_streams (bytes_t *out, const service_t *service)
{
    const streams_t *streams = &service->streams;
    put_number (out, "gateway_streams_displaced_total", "counter",
                "streams that gave way to one of a principal with fewer",
                service->stream_seats.displaced);
    put_number (out, "gateway_stream_hubs", "gauge", "sources that streams of one filter share",
                streams->hubs_count);
    put_number (out, "gateway_streams_waiting", "gauge", "streams that wait for a turn to catch up",
                streams->waiting_count);
    put_number (out, "gateway_stream_events_total", "counter",
                "events that were sent to streams, with notices and gaps", streams->events);
    put_number (out, "gateway_stream_gaps_total", "counter",
                "gaps that the broker told: events that were not kept any more", streams->gaps);
    exposition_head (out, "gateway_hub_lag_seconds", "gauge",
                     "how old the last event of a shared source was when it came");
    bytes_append_format (out, "taskmq_gateway_hub_lag_seconds %" PRIu64 ".%03" PRIu64 "\n",
                         streams->lag_ms / 1000, streams->lag_ms % 1000);
}

static void put_ways (bytes_t *out, const service_t *service)
{
    put_links (out, service, "broker_up", "gauge", "1 while the broker is there", is_up);
    put_links (out, service, "broker_epoch", "gauge", "starts of the broker, as it counts them",
               epoch_of);
    put_links (out, service, "gateway_client_reconnects_total", "counter",
               "connections to the broker after the first", reconnects_of);
    put_links (out, service, "gateway_client_resent_total", "counter",
               "requests to the broker that were repeated after that", resent_of);
    put_links (out, service, "gateway_cancels", "gauge",
               "cancels of calls whose client left, that the broker has not settled yet",
               cancels_of);
    put_links (out, service, "gateway_cancels_dropped_total", "counter",
               "cancels for which there was no room", cancels_dropped_of);
    put_links (out, service, "gateway_waits", "gauge", "tasks that long polls wait for", waits_of);
    put_links (out, service, "gateway_waits_displaced_total", "counter",
               "long polls of many tasks that gave way to one of a principal with fewer",
               waits_displaced_of);
}

static void put_requests (bytes_t *out, const service_numbers_t *numbers)
{
    put_answers (out, numbers);
    put_times (out, numbers);
    put_number (out, "gateway_http_abandoned_total", "counter", "requests whose client left",
                numbers->left);
    put_number (out, "gateway_auth_failures_total", "counter", "requests without a good token",
                numbers->auth_failures);
    put_number (out, "gateway_rate_limited_total", "counter",
                "requests beyond what their token may ask at a time or in a second",
                numbers->rate_limited);
    put_refused (out, numbers);
    put_number (out, "gateway_cut_total", "counter",
                "answers that could not be brought to their end", numbers->cut);
}

static void put_uploads (bytes_t *out, const service_uploads_t *uploads)
{
    put_number (out, "gateway_uploads", "gauge", "payloads of more than 256 KiB under way",
                uploads->seats.count);
    put_number (out, "gateway_spool_bytes", "gauge", "that they take on the gateway's disk",
                uploads->bytes);
    put_number (out, "gateway_uploads_displaced_total", "counter",
                "payloads under way that gave way to those of a principal with fewer",
                uploads->seats.displaced);
}

static void put_connections (bytes_t *out, const connections_numbers_t *connections)
{
    put_each (out, "gateway_connections", "connections that are open", "state", state_names,
              connections->states, CONNECTION_STATES);
    put_each (out, "gateway_streams", "streams that are open", "kind", kind_names,
              connections->kinds, STREAM_KINDS);
    put_number (out, "gateway_accepted_total", "counter", "connections accepted",
                connections->accepted);
    put_number (out, "gateway_connections_refused_total", "counter",
                "connections for which there was no room", connections->refused);
    put_number (out, "gateway_connections_displaced_total", "counter",
                "connections that were closed to make room for others", connections->displaced);
    put_number (out, "gateway_timeouts_total", "counter",
                "heads and bodies that did not come in time", connections->timeouts);
    put_number (out, "gateway_strangers_bytes", "gauge",
                "of the buffers, what connections take that brought no good token",
                connections->strangers.bytes);
    exposition_head (
        out, "gateway_memory_bytes", "gauge",
        "heads, bodies and answers that are held, and what JSON takes when it is parsed");
    bytes_append_format (out,
                         "taskmq_gateway_memory_bytes{use=\"buffers\"} %" PRIu64
                         "\ntaskmq_gateway_memory_bytes{use=\"trees\"} %" PRIu64 "\n",
                         connections->memory_bytes, trees_bytes ());
}

void metrics_write_own (bytes_t *out, const service_t *service)
{
    exposition_head (out, "gateway_info", "gauge", "1, with the version");
    bytes_append_format (out, "taskmq_gateway_info{version=\"%s\"} 1\n", TASKMQ_VERSION);
    put_ways (out, service);
    put_requests (out, &service->numbers);
    put_streams (out, service);
    put_uploads (out, &service->uploads);
    if (service->mcp.measure != NULL)
        service->mcp.measure (service->mcp.context, out);
    if (service->connections != NULL)
        put_connections (out, service->connections);
}

/* OpenMetrics names a family of counters without the ending of its samples, calls unknown what is
 * untyped, and has a last line. */
void metrics_open (bytes_t *out, const char *text)
{
    static const char total[] = "_total", untyped[] = " untyped";
    while (*text != '\0') {
        const size_t length = strcspn (text, "\n");
        const bool is_head = strncmp (text, "# HELP ", 7) == 0 || strncmp (text, "# TYPE ", 7) == 0;
        const size_t name = is_head ? 7 + strcspn (text + 7, " ") : 0;
        const bool cut = name > sizeof total && memcmp (text + name - 6, total, 6) == 0;
        const size_t end = sizeof untyped - 1;
        const bool renamed = is_head && text[2] == 'T' && length > end &&
                             memcmp (text + length - end, untyped, end) == 0;
        bytes_append (out, text, cut ? name - 6 : name);
        bytes_append (out, text + name, length - name - (renamed ? end : 0));
        bytes_append_text (out, renamed ? " unknown\n" : "\n");
        text += length + (text[length] == '\n');
    }
    bytes_append_text (out, "# EOF\n");
}

/* The process itself, by the names that all programs give it. */

static void put_own (bytes_t *out, const char *name, const char *help, uint64_t value)
{
    bytes_append_format (out,
                         "# HELP process_%s %s\n# TYPE process_%s gauge\nprocess_%s %" PRIu64 "\n",
                         name, help, name, name, value);
}

static uint64_t files_open (void)
{
    uint64_t count = 0;
    DIR *files = opendir ("/proc/self/fd");
    while (files != NULL && readdir (files) != NULL)
        count++;
    if (files != NULL)
        closedir (files);
    return count > 3 ? count - 3 : 0; /* without ".", ".." and the one that reads them */
}

void metrics_write_process (bytes_t *out, const service_t *service)
{
    struct rusage usage;
    struct rlimit limit = {.rlim_cur = 0};
    unsigned long long all = 0, resident = 0;
    const uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE);
    FILE *file = fopen ("/proc/self/statm", "re");
    if (file == NULL || fscanf (file, "%llu %llu", &all, &resident) != 2)
        all = resident = 0;
    if (file != NULL)
        fclose (file);
    getrusage (RUSAGE_SELF, &usage);
    getrlimit (RLIMIT_NOFILE, &limit);
    bytes_append_format (out, "# HELP process_cpu_seconds_total time that the gateway computed\n"
                              "# TYPE process_cpu_seconds_total counter\n");
    bytes_append_format (out, "process_cpu_seconds_total %lld.%06lld\n",
                         (long long) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                             (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000000,
                         (long long) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) % 1000000);
    put_own (out, "start_time_seconds", "when the gateway began, since the epoch",
             (uint64_t) service->began_ms / 1000);
    put_own (out, "resident_memory_bytes", "memory of the gateway", resident * page);
    put_own (out, "virtual_memory_bytes", "address space of the gateway", all * page);
    put_own (out, "open_fds", "files that the gateway has open", files_open ());
    put_own (out, "max_fds", "files that it may have open", (uint64_t) limit.rlim_cur);
}
