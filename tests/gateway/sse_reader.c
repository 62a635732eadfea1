/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Readers of a stream of events that count and judge, and keep nothing:
 *
 *     sse_reader PORT TOKEN TARGET CLIENTS SLOW EVENTS
 *
 * Each client reads TARGET and begins anew behind its last id whenever the stream ends. SLOW of
 * them rest until the others are a tenth of all events ahead, then they read on. The program ends
 * with 0 when each of them has had so many events, with rising numbers (seq); with 1, and a
 * sentence, at the first number that does not rise, at a gap, and at an answer that is no stream.
 * One thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 100, LINE_MAX_BYTES = 64 * 1024, READ_BYTES = 256 * 1024, WAITS_MAX = 64 };
static const struct timespec pause_before_again = {0, 50000000};

typedef struct client {
    int fd; /* -1: not connected */
    bool has_head;
    bool is_event; /* the piece that comes is one, and no word about the stream */
    char id[64];   /* of the last whole piece, … */
    char next_id[64];
    uint64_t seq; /* … and its number */
    uint64_t next_seq;
    uint64_t events;
    uint64_t connects;
    bool is_slow;
    bool rests; /* a slow one: until the others are far ahead */
    char line[LINE_MAX_BYTES];
    size_t length;
} client_t;

static const char *const words[] = {"live", "snapshot", "snapshot_end", "broker", "stop", "notice"};
static client_t *clients;
static size_t clients_count;
static uint64_t wanted;
static uint64_t lag; /* events that a slow client lets the others be ahead, before it reads on */
static uint64_t fastest; /* events of the first of the others */
static size_t whole;     /* clients that have all of them */
static const char *token;
static const char *target;
static struct sockaddr_in address;
static int poll_fd;

__attribute__ ((format (printf, 1, 2))) _Noreturn static void fail (const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vprintf (format, arguments);
    putchar ('\n');
    va_end (arguments);
    exit (1);
}

static void begin (client_t *self)
{
    char text[1024];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = self};
    const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fail ("no socket: %s", strerror (errno));
    if (connect (fd, (const struct sockaddr *) &address, sizeof address) != 0) {
        close (fd); /* it is away: later */
        return;
    }
    const int length =
        snprintf (text, sizeof text,
                  "GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n%s%s%s\r\n",
                  target, token, self->id[0] != '\0' ? "Last-Event-ID: " : "", self->id,
                  self->id[0] != '\0' ? "\r\n" : "");
    if (write (fd, text, (size_t) length) != length ||
        epoll_ctl (poll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        close (fd);
        return;
    }
    self->fd = fd;
    self->has_head = self->is_event = self->rests = false;
    self->length = 0;
    self->next_id[0] = '\0';
    self->connects++;
}

/* A slow client reads until it has nearly caught up, and rests until it is far behind: farther than
 * what the gateway keeps for those who are nearly there. */
static void pace (client_t *self)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = self};
    const uint64_t behind = fastest > self->events ? fastest - self->events : 0;
    const bool rests = self->is_slow && fastest < wanted && behind < (self->rests ? lag : lag / 8);
    if (rests == self->rests || self->fd < 0)
        return;
    self->rests = rests;
    event.events = rests ? 0 : EPOLLIN;
    if (epoll_ctl (poll_fd, EPOLL_CTL_MOD, self->fd, &event) != 0)
        fail ("a client cannot rest: %s", strerror (errno));
}

/* The end of a piece. */
static void take_piece (client_t *self)
{
    if (self->is_event) {
        if (self->next_seq <= self->seq)
            fail ("%" PRIu64 " comes behind %" PRIu64, self->next_seq, self->seq);
        self->seq = self->next_seq;
        whole += ++self->events == wanted;
        if (!self->is_slow && self->events > fastest)
            fastest = self->events;
    }
    if (self->next_id[0] != '\0')
        memcpy (self->id, self->next_id, sizeof self->id);
    self->is_event = false;
}

static void take_line (client_t *self, const char *line)
{
    if (!self->has_head) {
        if (strncmp (line, "HTTP/1.", 7) == 0 && strncmp (line + 8, " 200", 4) != 0)
            fail ("the answer is no stream: %s", line);
        self->has_head = *line == '\0';
    } else if (*line == '\0') {
        take_piece (self);
    } else if (strncmp (line, "event: ", 7) == 0) {
        self->is_event = true;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            self->is_event = self->is_event && strcmp (line + 7, words[i]) != 0;
        if (strcmp (line + 7, "gap") == 0)
            fail ("a gap behind %" PRIu64, self->seq);
    } else if (strncmp (line, "id: ", 4) == 0) {
        snprintf (self->next_id, sizeof self->next_id, "%s", line + 4);
    } else if (strncmp (line, "data: ", 6) == 0) {
        const char *seq = strstr (line, "\"seq\":");
        self->next_seq = seq != NULL ? strtoull (seq + 6, NULL, 10) : 0;
    }
}

static void take (client_t *self, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n') {
            if (self->length == sizeof self->line - 1)
                fail ("a line is too long");
            self->line[self->length++] = bytes[i];
            continue;
        }
        self->length -= self->length > 0 && self->line[self->length - 1] == '\r';
        self->line[self->length] = '\0';
        take_line (self, self->line);
        self->length = 0;
    }
}

int main (int argc, char **argv)
{
    static char bytes[READ_BYTES];
    struct epoll_event events[WAITS_MAX];
    uint64_t connects = 0;
    if (argc != 7)
        fail ("sse_reader PORT TOKEN TARGET CLIENTS SLOW EVENTS");
    address = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons ((uint16_t) atoi (argv[1])),
                                   .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    token = argv[2];
    target = argv[3];
    clients_count = (size_t) atoi (argv[4]);
    const size_t slow = (size_t) atoi (argv[5]);
    wanted = strtoull (argv[6], NULL, 10);
    lag = wanted / 10;
    poll_fd = epoll_create1 (EPOLL_CLOEXEC);
    clients = calloc (CLIENTS_MAX, sizeof *clients);
    if (clients == NULL || poll_fd < 0 || clients_count < 1 || clients_count > CLIENTS_MAX)
        fail ("1 to %d clients", CLIENTS_MAX);
    if (slow >= clients_count)
        fail ("one client at least is not slow");
    for (size_t i = 0; i < clients_count; i++) {
        clients[i].fd = -1;
        clients[i].is_slow = i < slow;
    }
    while (whole < clients_count) {
        bool waits = false;
        for (size_t i = 0; i < clients_count; i++) {
            if (clients[i].fd < 0)
                begin (&clients[i]);
            waits = waits || clients[i].fd < 0;
            pace (&clients[i]);
        }
        if (waits)
            nanosleep (&pause_before_again, NULL);
        const int ready = epoll_wait (poll_fd, events, WAITS_MAX, waits ? 0 : 1000);
        for (int i = 0; i < ready; i++) {
            client_t *self = events[i].data.ptr;
            const ssize_t got = read (self->fd, bytes, sizeof bytes);
            if (got > 0) {
                take (self, bytes, (size_t) got);
                continue;
            }
            close (self->fd);
            self->fd = -1;
        }
    }
    for (size_t i = 0; i < clients_count; i++) {
        if (clients[i].events != wanted)
            fail ("a client had %" PRIu64 " events", clients[i].events);
        connects += clients[i].connects;
    }
    printf ("%zu clients, %zu of them slow, %" PRIu64 " events, each once and in order, %" PRIu64
            " connections\n",
            clients_count, slow, wanted, connects);
    return 0;
}
