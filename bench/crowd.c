/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One epoll loop on a thread of its own; a connection is a small state machine. */
#include "crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "taskmq.pb-c.h"
#include "taskmq_types.h"

enum {
    GREETING_BYTES = 64,
    FLAG_MORE = 1, /* of a ZMTP frame */
    FLAG_LONG = 2,
    FLAG_COMMAND = 4,
    GREETING_NOW_MAX = 200, /* connections on their way at the same time */
    READ_BYTES = 512 * 1024,
    EVENTS_MAX = 256,
    TICK_MS = 50,
    CREDIT_BYTES = TMQ_SUBSCRIPTION_WINDOW_BYTES / 2,
    UP_SECONDS_MAX = 120,
    FILES_SPARE = 100
};

typedef enum phase { PHASE_NONE, PHASE_GREETING, PHASE_READY, PHASE_HELLO, PHASE_UP } phase_t;

typedef struct member {
    int fd;
    phase_t phase;
    uint8_t token[16];
    uint8_t *rest; /* of a message that has not arrived wholly */
    size_t rest_bytes;
    uint64_t heartbeat_at; /* now_ns */
    uint64_t start;        /* sequence that the subscription begins behind */
    uint64_t upto;
    uint64_t events;
    uint64_t messages;
    uint64_t uncredited_bytes;
} member_t;

struct crowd {
    crowd_options_t options;
    int port;
    int poll;
    pthread_t thread;
    pthread_mutex_t lock; /* held by the thread except while it waits */
    atomic_bool over;
    member_t *members;
    size_t begun;
    size_t up;
    uint64_t heartbeat_ns;
    histogram_t latency;
    uint8_t *buffer;
};

/* Out. */

static void send_bytes (const member_t *to, const void *bytes, size_t length)
{
    if (send (to->fd, bytes, length, MSG_NOSIGNAL) != (ssize_t) length)
        die ("a connection of the crowd broke: %s", strerror (errno));
}

static void send_frame (const member_t *to, uint8_t flags, const void *bytes, size_t length)
{
    uint8_t frame[256];
    frame[0] = flags;
    frame[1] = (uint8_t) length;
    memcpy (frame + 2, bytes, length);
    send_bytes (to, frame, length + 2);
}

static void send_greeting (const member_t *to)
{
    static const uint8_t greeting[GREETING_BYTES] = {
        [0] = 0xff, [9] = 0x7f, [10] = 3, [12] = 'N', [13] = 'U', [14] = 'L', [15] = 'L'};
    send_bytes (to, greeting, sizeof greeting);
}

static void send_ready (const member_t *to)
{
    static const char ready[] = "\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0";
    send_frame (to, FLAG_COMMAND, ready,
                sizeof ready); /* with the NUL: the last byte of a length */
}

static void send_request (const member_t *to, Taskmq__Request *request)
{
    static uint64_t ids;
    uint8_t packed[200] = {0};
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    request->id = ++ids;
    message.token = (ProtobufCBinaryData){to->phase == PHASE_UP ? 16 : 0, (uint8_t *) to->token};
    message.requests = &request;
    message.n_requests = 1;
    if (taskmq__client_message__get_packed_size (&message) > sizeof packed)
        die ("a request of the crowd is too long");
    send_frame (to, 0, packed, taskmq__client_message__pack (&message, packed));
}

static void send_hello (const member_t *to)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    hello.version_min = hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.client = "taskmq-bench";
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    send_request (to, &request);
}

static void send_heartbeat (const member_t *to)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &heartbeat;
    send_request (to, &request);
}

static void send_subscribe (const member_t *to)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 1;
    subscribe.from_now = true;
    request.op_case = TASKMQ__REQUEST__OP_SUBSCRIBE;
    request.subscribe = &subscribe;
    send_request (to, &request);
}

static void send_credit (member_t *to)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Credit credit = TASKMQ__CREDIT__INIT;
    credit.subscription = 1;
    credit.received_upto = to->upto;
    request.op_case = TASKMQ__REQUEST__OP_CREDIT;
    request.credit = &credit;
    send_request (to, &request);
    to->uncredited_bytes = 0;
}

/* In. */

static void begin_member (crowd_t *self)
{
    member_t *member = &self->members[self->begun++];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons ((uint16_t) self->port)};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    int on = 1;
    member->fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct epoll_event event = {EPOLLIN, {.ptr = member}};
    if (member->fd < 0 || connect (member->fd, (struct sockaddr *) &address, sizeof address) != 0 ||
        setsockopt (member->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        epoll_ctl (self->poll, EPOLL_CTL_ADD, member->fd, &event) != 0)
        die ("connection %zu of the crowd: %s", self->begun, strerror (errno));
    member->phase = PHASE_GREETING;
    send_greeting (member);
}

static void rise (crowd_t *self, member_t *member)
{
    self->up++;
    if (self->options.stalls)
        epoll_ctl (self->poll, EPOLL_CTL_DEL, member->fd, NULL);
    if (self->begun < self->options.count)
        begin_member (self);
}

static void take_reply (crowd_t *self, member_t *member, const Taskmq__Reply *reply)
{
    if (reply->code != TMQ_OK)
        die ("taskmq answered one of the crowd: %s", reply->text);
    if (reply->body_case == TASKMQ__REPLY__BODY_WELCOME) {
        memcpy (member->token, reply->welcome->token.data, sizeof member->token);
        member->phase = PHASE_UP;
        self->heartbeat_ns = reply->welcome->heartbeat_ms * UINT64_C (1000000);
        member->heartbeat_at = now_ns () + self->heartbeat_ns;
        if (self->options.subscribes)
            send_subscribe (member);
        else
            rise (self, member);
    } else if (reply->body_case == TASKMQ__REPLY__BODY_SUBSCRIBED) {
        member->start = member->upto = reply->subscribed->seq;
        rise (self, member);
    }
}

static void take_events (crowd_t *self, member_t *member, const Taskmq__EventBatch *events,
                         size_t bytes)
{
    const crowd_options_t *options = &self->options;
    uint64_t oldest = events->upto - events->count + 1 - options->sent_first;
    if (events->count > 0 && oldest < options->sent_count)
        histogram_add (&self->latency, now_ns () - atomic_load (&options->sent_ns[oldest]));
    member->upto = events->upto;
    member->events += events->count;
    member->messages += events->count > 0;
    member->uncredited_bytes += bytes;
    if (member->uncredited_bytes >= CREDIT_BYTES)
        send_credit (member);
}

static Taskmq__BrokerMessage *unpack (const uint8_t *envelope, size_t envelope_bytes)
{
    Taskmq__BrokerMessage *message =
        taskmq__broker_message__unpack (NULL, envelope_bytes, envelope);
    if (!message)
        die ("taskmq sent one of the crowd what is no message");
    return message;
}

static void take_message (crowd_t *self, member_t *member, const uint8_t *envelope,
                          size_t envelope_bytes)
{
    if (self->options.bare) {
        if (member->phase == PHASE_HELLO)
            rise (self, member);
        member->phase = PHASE_UP;
        return;
    }
    Taskmq__BrokerMessage *message = unpack (envelope, envelope_bytes);
    for (size_t i = 0; i < message->n_replies; i++)
        take_reply (self, member, message->replies[i]);
    for (size_t i = 0; i < message->n_events; i++)
        take_events (self, member, message->events[i], message->events[i]->list_bytes);
    if (message->gap)
        die ("taskmq told one of the crowd a gap");
    taskmq__broker_message__free_unpacked (message, NULL);
}

/* A frame at the front: its length with its head, or 0 if it has not arrived wholly. */
static size_t frame_at (const uint8_t *at, size_t length, const uint8_t **body, size_t *body_bytes)
{
    size_t head = length > 0 && (at[0] & FLAG_LONG) ? 9 : 2;
    if (length < head)
        return 0;
    uint64_t size = at[1];
    for (size_t i = 2; i < head; i++)
        size = size << 8 | at[i];
    if (length - head < size)
        return 0;
    *body = at + head;
    *body_bytes = (size_t) size;
    return head + (size_t) size;
}

/* A greeting, a command, or a message of one or two frames; returns its length, or 0 if it has not
 * arrived wholly. */
static size_t take_unit (crowd_t *self, member_t *member, const uint8_t *at, size_t length)
{
    const uint8_t *first;
    const uint8_t *second;
    size_t first_bytes;
    size_t second_bytes = 0;
    if (member->phase == PHASE_GREETING) {
        if (length < GREETING_BYTES)
            return 0;
        member->phase = PHASE_READY;
        send_ready (member);
        return GREETING_BYTES;
    }
    size_t used = frame_at (at, length, &first, &first_bytes);
    if (used == 0)
        return 0;
    if (at[0] & FLAG_COMMAND) {
        member->phase = PHASE_HELLO;
        send_hello (member);
        return used;
    }
    if (at[0] & FLAG_MORE) {
        size_t more = frame_at (at + used, length - used, &second, &second_bytes);
        if (more == 0)
            return 0;
        used += more;
    }
    take_message (self, member, first, first_bytes);
    return used;
}

static void receive (crowd_t *self, member_t *member)
{
    memcpy (self->buffer, member->rest, member->rest_bytes);
    ssize_t got = recv (member->fd, self->buffer + member->rest_bytes,
                        READ_BYTES - member->rest_bytes, MSG_DONTWAIT);
    if (got <= 0 && errno != EAGAIN)
        die ("the broker ended a connection of the crowd");
    size_t length = member->rest_bytes + (size_t) (got > 0 ? got : 0);
    size_t at = 0;
    for (size_t used = 1; at < length && used > 0; at += used)
        used = take_unit (self, member, self->buffer + at, length - at);
    member->rest_bytes = length - at;
    free (member->rest);
    member->rest = NULL;
    if (member->rest_bytes == 0)
        return;
    member->rest = need_memory (malloc (member->rest_bytes));
    memcpy (member->rest, self->buffer + at, member->rest_bytes);
}

/* The loop. */

static void heartbeats (crowd_t *self)
{
    uint64_t now = now_ns ();
    for (size_t i = 0; i < self->begun; i++) {
        member_t *member = &self->members[i];
        if (member->phase != PHASE_UP || now < member->heartbeat_at)
            continue;
        send_heartbeat (member);
        member->heartbeat_at += self->heartbeat_ns;
    }
}

static void *loop (void *argument)
{
    crowd_t *self = argument;
    struct epoll_event events[EVENTS_MAX];
    uint64_t tick_at = 0;
    while (!atomic_load (&self->over)) {
        int count = epoll_wait (self->poll, events, EVENTS_MAX, TICK_MS);
        pthread_mutex_lock (&self->lock);
        for (int i = 0; i < count; i++)
            receive (self, events[i].data.ptr);
        if (!self->options.bare && now_ns () >= tick_at) {
            heartbeats (self);
            tick_at = now_ns () + TICK_MS * UINT64_C (1000000);
        }
        pthread_mutex_unlock (&self->lock);
    }
    return NULL;
}

static void pause_ms (long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep (&pause, NULL);
}

/* As many descriptors as the system lets us have. */
static void raise_files (size_t count)
{
    struct rlimit files;
    if (getrlimit (RLIMIT_NOFILE, &files) != 0)
        die ("getrlimit: %s", strerror (errno));
    files.rlim_cur = files.rlim_max;
    if (files.rlim_max < count + FILES_SPARE || setrlimit (RLIMIT_NOFILE, &files) != 0)
        die ("%zu connections need more open files than the limit of %llu", count,
             (unsigned long long) files.rlim_max);
}

static size_t count_up (crowd_t *self)
{
    pthread_mutex_lock (&self->lock);
    size_t up = self->up;
    pthread_mutex_unlock (&self->lock);
    return up;
}

crowd_t *crowd_start (const server_t *server, const crowd_options_t *options)
{
    crowd_t *self = need_memory (calloc (1, sizeof *self));
    self->options = *options;
    self->port = server->port;
    self->members = need_memory (calloc (options->count, sizeof *self->members));
    self->buffer = need_memory (malloc (READ_BYTES));
    self->poll = epoll_create1 (EPOLL_CLOEXEC);
    raise_files (options->count);
    pthread_mutex_init (&self->lock, NULL);
    for (size_t i = 0; i < options->count && i < GREETING_NOW_MAX; i++)
        begin_member (self);
    if (self->poll < 0 || pthread_create (&self->thread, NULL, loop, self) != 0)
        die ("a thread could not be started");
    uint64_t end = now_ns () + UP_SECONDS_MAX * UINT64_C (1000000000);
    while (count_up (self) < options->count) {
        if (now_ns () > end)
            die ("only %zu of %zu connections came up", count_up (self), options->count);
        pause_ms (5);
    }
    return self;
}

/* What came. */

/* Whether every subscriber has what it should; dies when one has what it should not. */
static bool complete (crowd_t *self, uint64_t seq)
{
    bool all = true;
    pthread_mutex_lock (&self->lock);
    for (size_t i = 0; i < self->options.count; i++) {
        const member_t *member = &self->members[i];
        if (member->upto - member->start != member->events)
            die ("a subscriber got %llu events of %llu", (unsigned long long) member->events,
                 (unsigned long long) (member->upto - member->start));
        all = all && member->upto >= seq;
    }
    pthread_mutex_unlock (&self->lock);
    return all;
}

void crowd_expect (crowd_t *self, uint64_t seq, double seconds)
{
    uint64_t end = now_ns () + (uint64_t) (seconds * 1e9);
    while (!complete (self, seq)) {
        if (now_ns () > end)
            die ("a subscriber did not get every event up to %llu", (unsigned long long) seq);
        pause_ms (5);
    }
}

uint64_t crowd_events (crowd_t *self)
{
    uint64_t sum = 0;
    pthread_mutex_lock (&self->lock);
    for (size_t i = 0; i < self->options.count; i++)
        sum += self->members[i].events;
    pthread_mutex_unlock (&self->lock);
    return sum;
}

uint64_t crowd_messages (crowd_t *self)
{
    uint64_t sum = 0;
    pthread_mutex_lock (&self->lock);
    for (size_t i = 0; i < self->options.count; i++)
        sum += self->members[i].messages;
    pthread_mutex_unlock (&self->lock);
    return sum;
}

void crowd_latency (crowd_t *self, histogram_t *out)
{
    pthread_mutex_lock (&self->lock);
    *out = self->latency;
    pthread_mutex_unlock (&self->lock);
}

void crowd_stop (crowd_t **self_p)
{
    crowd_t *self = *self_p;
    *self_p = NULL;
    atomic_store (&self->over, true);
    pthread_join (self->thread, NULL);
    for (size_t i = 0; i < self->begun; i++) {
        close (self->members[i].fd);
        free (self->members[i].rest);
    }
    close (self->poll);
    pthread_mutex_destroy (&self->lock);
    free (self->members);
    free (self->buffer);
    free (self);
}
