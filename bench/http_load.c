/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmq-http-load: load by HTTP/1.1, for ./dev bench gateway (gateway.py beside this file).
 *
 *     taskmq-http-load ask PORT CONNECTIONS SECONDS FILE STATUS
 *     taskmq-http-load stream PORT CONNECTIONS SECONDS FILE EVENTS
 *     taskmq-http-load idle PORT CONNECTIONS
 *
 * ask sends the request in FILE, as it stands there, on connections that stay open, each the next
 * one when the answer is whole: {"answers", "seconds", "p50_us", "p99_us"}. An answer of another
 * status, and a connection that is lost, end it with 1. stream sends it once on each connection and
 * reads until so many EVENTS have come to all of them together, at most so long: {"events",
 * "seconds", "p50_ms", "p99_ms"}. The lag is that between a text of an event that begins with "AT",
 * 16 digits of microseconds since the epoch, and now. idle opens connections, says so, and waits
 * for the end of its input. One thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 20000,
    REQUEST_BYTES_MAX = 64 * 1024,
    HEAD_BYTES_MAX = 8 * 1024,
    READ_BYTES = 256 * 1024,
    WAITS_MAX = 256,
    SAMPLES_MAX = 4 * 1024 * 1024, /* later ones are counted, and not looked at */
    MARK_BYTES = 20                /* of a time with its quotes, which may be cut */
};

typedef struct connection {
    int fd;
    uint64_t sent_us;
    char head[HEAD_BYTES_MAX + 1]; /* of the answer, as far as it has come */
    size_t head_length;
    bool chunked;
    uint64_t body_left; /* bytes that are still to come; 0: none */
    char tail[8];       /* the last bytes of a chunked body */
} connection_t;

static connection_t *connections;
static size_t connections_count;
static char request[REQUEST_BYTES_MAX];
static size_t request_length;
static int wanted_status;
static float *samples;
static size_t samples_count;
static uint64_t counted;

__attribute__ ((format (printf, 1, 2))) _Noreturn static void die (const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    fputs ("taskmq-http-load: ", stderr);
    vfprintf (stderr, format, arguments);
    fputc ('\n', stderr);
    va_end (arguments);
    exit (1);
}

static uint64_t now_us (clockid_t clock)
{
    struct timespec now;
    clock_gettime (clock, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

static void count (double value)
{
    counted++;
    if (samples_count < SAMPLES_MAX)
        samples[samples_count++] = (float) value;
}

static int compare (const void *left, const void *right)
{
    const float a = *(const float *) left, b = *(const float *) right;
    return (a > b) - (a < b);
}

static double share (double of)
{
    return samples_count == 0 ? 0 : (double) samples[(size_t) ((double) (samples_count - 1) * of)];
}

static void report (const char *what, const char *unit, uint64_t began_us)
{
    qsort (samples, samples_count, sizeof *samples, compare);
    printf ("{\"%s\":%llu,\"seconds\":%.3f,\"p50_%s\":%.1f,\"p99_%s\":%.1f}\n", what,
            (unsigned long long) counted, (double) (now_us (CLOCK_MONOTONIC) - began_us) / 1e6,
            unit, share (0.5), unit, share (0.99));
}

/* Connections. */

static void open_all (int port, int poll)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons ((uint16_t) port),
                                        .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    const int yes = 1;
    for (size_t i = 0; i < connections_count; i++) {
        const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
        if (fd < 0 || connect (fd, (const struct sockaddr *) &address, sizeof address) != 0)
            die ("connection %zu: %s", i, strerror (errno));
        setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (epoll_ctl (poll, EPOLL_CTL_ADD, fd, &event) != 0)
            die ("epoll: %s", strerror (errno));
        connections[i].fd = fd;
    }
}

static void send_request (connection_t *self)
{
    self->head_length = 0;
    self->body_left = 0;
    self->chunked = false;
    self->sent_us = now_us (CLOCK_MONOTONIC);
    for (size_t at = 0; at < request_length;) {
        const ssize_t sent = write (self->fd, request + at, request_length - at);
        if (sent < 0)
            die ("a connection was lost: %s", strerror (errno));
        at += (size_t) sent;
    }
}

/* Answers. */

static void read_head (connection_t *self)
{
    self->head[self->head_length] = '\0';
    const int status = atoi (self->head + sizeof "HTTP/1.1");
    const char *length = strcasestr (self->head, "\r\ncontent-length:");
    if (status != wanted_status)
        die ("an answer is no %d: %.300s", wanted_status, self->head);
    self->chunked = strcasestr (self->head, "\r\ntransfer-encoding: chunked") != NULL;
    self->body_left =
        length != NULL ? strtoull (length + sizeof "\r\ncontent-length:" - 1, NULL, 10) : 0;
    memset (self->tail, 0, sizeof self->tail);
}

/* The last chunk is one of no length. A body that has these bytes elsewhere is not sent here. */
static bool chunks_end (connection_t *self, const char *bytes, size_t length)
{
    static const char last[] = "\r\n0\r\n\r\n";
    const size_t kept = sizeof last - 1;
    char both[2 * sizeof self->tail];
    const size_t more = length < kept ? length : kept;
    memcpy (both, self->tail, kept);
    memcpy (both + kept, bytes + length - more, more);
    memcpy (self->tail, both + more, kept);
    return memcmp (self->tail, last, kept) == 0;
}

/* True if the answer is whole. */
static bool take (connection_t *self, const char *bytes, size_t length)
{
    while (length > 0 && (self->head_length < 4 ||
                          memcmp (self->head + self->head_length - 4, "\r\n\r\n", 4) != 0)) {
        if (self->head_length == HEAD_BYTES_MAX)
            die ("the head of an answer is too long");
        self->head[self->head_length++] = *bytes++;
        length--;
        if (self->head_length >= 4 &&
            memcmp (self->head + self->head_length - 4, "\r\n\r\n", 4) == 0) {
            read_head (self);
            if (!self->chunked && self->body_left == 0)
                return true;
        }
    }
    if (length == 0)
        return false;
    if (self->chunked)
        return chunks_end (self, bytes, length);
    if (length > self->body_left)
        die ("an answer is longer than it says");
    self->body_left -= length;
    return self->body_left == 0;
}

static void run_ask (int poll, double seconds)
{
    static char bytes[READ_BYTES];
    struct epoll_event events[WAITS_MAX];
    const uint64_t began_us = now_us (CLOCK_MONOTONIC);
    const uint64_t end_us = began_us + (uint64_t) (seconds * 1e6);
    for (size_t i = 0; i < connections_count; i++)
        send_request (&connections[i]);
    while (now_us (CLOCK_MONOTONIC) < end_us) {
        const int ready = epoll_wait (poll, events, WAITS_MAX, 100);
        for (int i = 0; i < ready; i++) {
            connection_t *self = &connections[events[i].data.u64];
            const ssize_t got = read (self->fd, bytes, sizeof bytes);
            if (got <= 0)
                die ("a connection was lost");
            if (!take (self, bytes, (size_t) got))
                continue;
            count ((double) (now_us (CLOCK_MONOTONIC) - self->sent_us));
            send_request (self);
        }
    }
    report ("answers", "us", began_us);
}

/* Streams. */

/* What begins with the time it was made at, wherever it is cut. */
static void take_events (connection_t *self, const char *bytes, size_t length)
{
    static char both[READ_BYTES + MARK_BYTES + 1];
    const uint64_t now = now_us (CLOCK_REALTIME);
    memcpy (both, self->head, self->head_length);
    memcpy (both + self->head_length, bytes, length);
    const size_t all = self->head_length + length;
    both[all] = '\0';
    const char *at = both;
    const char *end = both + all;
    for (const char *next;
         (next = memmem (at, (size_t) (end - at), "\"AT", 3)) != NULL && next + MARK_BYTES <= end;
         at = next + 3)
        count (((double) now - strtod (next + 3, NULL)) / 1000);
    const char *mark = memmem (at, (size_t) (end - at), "\"AT", 3);
    self->head_length = mark != NULL   ? (size_t) (end - mark)
                        : end - at < 2 ? (size_t) (end - at)
                                       : 2;
    memcpy (self->head, end - self->head_length, self->head_length);
}

static void run_stream (int poll, double seconds, uint64_t wanted)
{
    static char bytes[READ_BYTES];
    struct epoll_event events[WAITS_MAX];
    for (size_t i = 0; i < connections_count; i++)
        send_request (&connections[i]);
    puts ("{\"open\":true}");
    fflush (stdout);
    const uint64_t began_us = now_us (CLOCK_MONOTONIC);
    const uint64_t end_us = began_us + (uint64_t) (seconds * 1e6);
    while (counted < wanted && now_us (CLOCK_MONOTONIC) < end_us) {
        const int ready = epoll_wait (poll, events, WAITS_MAX, 100);
        for (int i = 0; i < ready; i++) {
            connection_t *self = &connections[events[i].data.u64];
            const ssize_t got = read (self->fd, bytes, sizeof bytes);
            if (got <= 0)
                die ("a stream was lost");
            take_events (self, bytes, (size_t) got);
        }
    }
    report ("events", "ms", began_us);
}

static void read_request (const char *path)
{
    FILE *file = fopen (path, "re");
    if (file == NULL)
        die ("%s: %s", path, strerror (errno));
    request_length = fread (request, 1, sizeof request, file);
    fclose (file);
}

int main (int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const bool asks = strcmp (what, "ask") == 0 && argc == 7;
    const bool streams = strcmp (what, "stream") == 0 && argc == 7;
    const bool idles = strcmp (what, "idle") == 0 && argc == 4;
    struct rlimit files;
    if (!asks && !streams && !idles)
        die ("ask PORT CONNECTIONS SECONDS FILE STATUS | stream PORT CONNECTIONS SECONDS FILE "
             "EVENTS "
             "| idle PORT CONNECTIONS");
    connections_count = (size_t) atoi (argv[3]);
    if (connections_count < 1 || connections_count > CONNECTIONS_MAX)
        die ("1 to %d connections", CONNECTIONS_MAX);
    getrlimit (RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit (RLIMIT_NOFILE, &files);
    connections = calloc (connections_count, sizeof *connections);
    samples = calloc (SAMPLES_MAX, sizeof *samples);
    const int poll = epoll_create1 (EPOLL_CLOEXEC);
    if (connections == NULL || samples == NULL || poll < 0)
        die ("no memory");
    if (!idles)
        read_request (argv[5]);
    if (asks)
        wanted_status = atoi (argv[6]);
    open_all (atoi (argv[2]), poll);
    if (asks)
        run_ask (poll, atof (argv[4]));
    if (streams)
        run_stream (poll, atof (argv[4]), strtoull (argv[6], NULL, 10));
    if (idles) {
        puts ("{\"open\":true}");
        fflush (stdout);
        while (getchar () != EOF)
            continue;
    }
    return 0;
}
