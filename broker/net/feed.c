/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The XPUB sockets of the feed. Nothing here can fail a commit: what cannot be sent is missed. */
#include "net/feed.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "bytes.h"
#include "codec.h"
#include "core/base/memory.h"
#include "ids.h"
#include "json.h"
#include "net/door.h"
#include "net/socket.h"
#include "types.h"

enum {
    SEND_MESSAGES_MAX = 10000, /* a subscriber that is further behind misses events */
    SUBSCRIPTION_BYTES_MAX = 1024,
    /* Of new prefixes from one connection: each byte of them takes up to 40 in ZeroMQ. */
    SUBSCRIPTIONS_BYTES_MAX = 64 * 1024,
    FDS_FIRST = 64,
    EVENTS_MAX = 1000,                                        /* of connections, taken at once */
    TOPIC_SIZE = 3 * (TMQ_NAME_LENGTH_MAX + 1) + ID_TEXT_SIZE /* namespace, queue, status, id */
};

typedef struct channel {
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    void *socket;
    void *monitor;
    int lock;     /* beside an ipc path; -1: none */
    bool wanted;  /* somebody has subscribed since there was a connection */
    buf_t **held; /* lists of events under way to the disk, oldest first */
    size_t held_count;
    size_t held_capacity;
    char uri[ADDRESS_URI_SIZE];
    char domain[SOCKET_DOMAIN_MAX + 1];
    address_t address; /* with the real port */
    guard_t guard;
    bool old;    /* to be opened anew */
    bool closed; /* until it is */
    closing_t closing;
} channel_t;

struct feed {
    void *context;
    door_t *door; /* of all channels */
    int linger_ms;
    arena_t *arena;
    bytes_t json;
    uint64_t published;
    size_t *asked; /* bytes of new prefixes, by descriptor */
    size_t asked_capacity;
    channel_t *channels[FEEDS_MAX];
    size_t channels_count;
};

feed_t *feed_new (void *context, int linger_ms)
{
    feed_t *self = memory_zero (1, sizeof (*self));
    self->context = context;
    self->linger_ms = linger_ms;
    door_options_t door = {.mute_ms = INT64_MAX};
    self->door = door_new (&door);
    self->arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    if (self->arena == NULL)
        feed_free (&self);
    return self;
}

static void channel_drop (channel_t *self)
{
    for (size_t i = 0; i < self->held_count; i++)
        buf_drop (self->held[i]);
    self->held_count = 0;
}

static void channel_free (channel_t *self)
{
    channel_drop (self);
    free (self->held);
    if (self->monitor != NULL) {
        zmq_socket_monitor (self->socket, NULL, 0);
        zmq_close (self->monitor);
    }
    if (self->socket != NULL)
        zmq_close (self->socket);
    if (self->lock >= 0)
        close (self->lock);
    free (self);
}

void feed_free (feed_t **self_p)
{
    feed_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (size_t i = 0; i < self->channels_count; i++)
        channel_free (self->channels[i]);
    door_free (&self->door);
    free (self->asked);
    arena_free (self->arena);
    bytes_free (&self->json);
    free (self);
}

static bool channel_open (feed_t *self, channel_t *channel, const address_t *address,
                          listen_error_t *error)
{
    error->open = false;
    if (address->kind == ADDRESS_IPC) {
        channel->lock =
            address_lock_ipc (address->uri + strlen ("ipc://"), error->text, sizeof (error->text));
        if (channel->lock < 0)
            return false;
    }
    channel->socket = zmq_socket (self->context, ZMQ_XPUB);
    if (channel->socket != NULL) {
        socket_set (channel->socket, ZMQ_SNDHWM, SEND_MESSAGES_MAX);
        socket_set (channel->socket, ZMQ_LINGER, self->linger_ms);
        socket_limit (channel->socket, SUBSCRIPTION_BYTES_MAX);
        channel->monitor = monitor_open (self->context, channel->socket);
    }
    if (channel->monitor != NULL)
        return true;
    snprintf (error->text, sizeof (error->text), "cannot publish on %s: %s", address->uri,
              zmq_strerror (zmq_errno ()));
    return false;
}

static bool channel_bind (channel_t *self, const address_t *address, const guard_t *guard,
                          listen_error_t *error)
{
    size_t size = sizeof (self->uri);
    snprintf (self->domain, sizeof (self->domain), "feed/%s", self->ns);
    if (!listen_bind (self->socket, address, self->domain, guard, error))
        return false;
    int rc = zmq_getsockopt (self->socket, ZMQ_LAST_ENDPOINT, self->uri, &size);
    assert (rc == 0);
    self->address = *address;
    memcpy (self->address.uri, self->uri, sizeof (self->uri));
    self->guard = *guard;
    return true;
}

const char *feed_bind (feed_t *self, const char *ns, const address_t *address, const guard_t *guard,
                       listen_error_t *error)
{
    if (self->channels_count == FEEDS_MAX) {
        error->open = false;
        snprintf (error->text, sizeof (error->text), "more than %d feeds", FEEDS_MAX);
        return NULL;
    }
    channel_t *channel = memory_zero (1, sizeof (*channel));
    channel->lock = -1;
    assert (strlen (ns) < sizeof (channel->ns));
    memcpy (channel->ns, ns, strlen (ns) + 1);
    if (!channel_open (self, channel, address, error) ||
        !channel_bind (channel, address, guard, error)) {
        channel_free (channel);
        return NULL;
    }
    self->channels[self->channels_count++] = channel;
    return channel->uri;
}

void feed_hold (feed_t *self, const batch_t *batch)
{
    for (size_t i = 0; i < self->channels_count; i++) {
        channel_t *channel = self->channels[i];
        for (size_t k = 0; k < batch->blocks_count; k++) {
            const event_block_t *block = &batch->blocks[k];
            if (strcmp (block->ns, channel->ns) != 0)
                continue;
            channel->held = memory_grow (channel->held, &channel->held_capacity,
                                         channel->held_count, sizeof (buf_t *));
            channel->held[channel->held_count++] = buf_keep (block->list);
        }
    }
}

/* Of the connection on this descriptor. */
static size_t *asked_by (feed_t *self, int fd)
{
    size_t index = (size_t) fd;
    if (index >= self->asked_capacity) {
        size_t capacity = index * 2 + FDS_FIRST;
        self->asked = memory_resize (self->asked, capacity, sizeof (*self->asked));
        memset (self->asked + self->asked_capacity, 0,
                (capacity - self->asked_capacity) * sizeof (*self->asked));
        self->asked_capacity = capacity;
    }
    return &self->asked[index];
}

/* XPUB tells of the first subscriber of a prefix and of the end of its last one, but anybody can
 * make it tell of an end: so ends are not counted. */
static void take_subscriptions (feed_t *self, channel_t *channel)
{
    zmq_msg_t message;
    zmq_msg_init (&message);
    while (zmq_msg_recv (&message, channel->socket, ZMQ_DONTWAIT) > 0) {
        int fd = zmq_msg_get (&message, ZMQ_SRCFD);
        if (*(const uint8_t *) zmq_msg_data (&message) != 1)
            continue;
        channel->wanted = true;
        if (fd < 0)
            continue;
        size_t *asked = asked_by (self, fd);
        *asked += zmq_msg_size (&message);
        if (*asked > SUBSCRIPTIONS_BYTES_MAX)
            door_cut (self->door, fd);
    }
    zmq_msg_close (&message);
}

/* A removal has no status; its kind stands in its place. */
static size_t write_topic (char topic[TOPIC_SIZE], const event_view_t *event)
{
    char id[ID_TEXT_SIZE];
    id_format (&event->task_id, id);
    const char *status =
        event->status != 0 ? status_text (event->status) : event_kind_text (event->kind);
    int length = snprintf (topic, TOPIC_SIZE, "%s/%s/%s/%s", event->ns, event->queue, status, id);
    assert (length > 0 && length < TOPIC_SIZE);
    return (size_t) length;
}

static void publish_event (feed_t *self, channel_t *channel, const Taskmq__Event *wire)
{
    event_view_t event;
    if (wire->subject != TMQ_SUBJECT_NONE) /* a topic has a task's id */
        return;
    if (!event_view_from_wire (&event, wire, channel->ns, self->arena))
        return;
    bytes_clear (&self->json);
    json_writer_t writer = {&self->json, false};
    json_write_event (&writer, &event);
    char topic[TOPIC_SIZE];
    size_t length = write_topic (topic, &event);
    if (self->json.failed ||
        zmq_send (channel->socket, topic, length, ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0)
        return;
    if (zmq_send (channel->socket, self->json.data, self->json.length, ZMQ_DONTWAIT) >= 0)
        self->published++;
}

static void publish_list (feed_t *self, channel_t *channel, const buf_t *packed)
{
    codec_report_t report;
    arena_reset (self->arena);
    const Taskmq__EventList *list =
        codec_event_list (&report, self->arena, buf_bytes (packed), buf_length (packed));
    for (size_t i = 0; list != NULL && i < list->n_events; i++)
        publish_event (self, channel, list->events[i]);
}

static void channel_publish (feed_t *self, channel_t *channel)
{
    take_subscriptions (self, channel);
    for (size_t i = 0; channel->wanted && i < channel->held_count; i++)
        publish_list (self, channel, channel->held[i]);
}

void feed_publish (feed_t *self)
{
    for (size_t i = 0; i < self->channels_count; i++) {
        if (self->channels[i]->held_count > 0)
            channel_publish (self, self->channels[i]);
    }
    feed_drop (self);
}

void feed_drop (feed_t *self)
{
    for (size_t i = 0; i < self->channels_count; i++)
        channel_drop (self->channels[i]);
}

/* A subscriber sends nothing but subscriptions, so all it ever sent counts as one message. */
static uint32_t no_messages (void *context, int fd)
{
    (void) context;
    (void) fd;
    return 0;
}

static void take_event (feed_t *self, channel_t *channel, uint16_t event, int fd, int64_t now_ms)
{
    if (event == ZMQ_EVENT_ACCEPTED && fd >= 0) {
        door_opened (self->door, fd, now_ms);
        *asked_by (self, fd) = 0;
    } else if (event == ZMQ_EVENT_DISCONNECTED) {
        door_closed (self->door, fd);
    } else if (event == ZMQ_EVENT_CLOSED) {
        listen_closed (&channel->closing);
    }
}

static void channel_watch (feed_t *self, channel_t *channel, int64_t now_ms)
{
    uint16_t event;
    uint32_t value;
    for (int i = 0; i < EVENTS_MAX && monitor_receive (channel->monitor, &event, &value); i++)
        take_event (self, channel, event, (int) value, now_ms);
}

void feed_outdate (feed_t *self)
{
    for (size_t i = 0; i < self->channels_count; i++)
        self->channels[i]->old = self->channels[i]->old || self->channels[i]->address.curve;
}

void feed_recheck (feed_t *self, zap_t *zap)
{
    for (size_t i = 0; i < self->channels_count; i++)
        self->channels[i]->old =
            self->channels[i]->old || !zap_is_feed_current (zap, self->channels[i]->domain);
    for (size_t i = 0; i < self->channels_count; i++)
        if (self->channels[i]->old)
            zap_forget_feed (zap, self->channels[i]->domain);
}

bool feed_renew (feed_t *self, int64_t now_ms, listen_error_t *error)
{
    bool good = true;
    for (size_t i = 0; i < self->channels_count; i++) {
        channel_t *channel = self->channels[i];
        if (!channel->old)
            continue;
        if (!channel->closed)
            listen_close (channel->socket, channel->uri, &channel->closing, now_ms);
        channel->closed = true;
        channel_watch (self, channel, now_ms);
        if (!listen_all_closed (&channel->closing, now_ms))
            continue;
        channel->closed = !listen_bind (channel->socket, &channel->address, channel->domain,
                                        &channel->guard, error);
        channel->old = channel->closed;
        good = good && !channel->closed;
    }
    return good;
}

bool feed_is_closing (const feed_t *self)
{
    bool closing = false;
    for (size_t i = 0; i < self->channels_count; i++)
        closing = closing || listen_is_closing (&self->channels[i]->closing);
    return closing;
}

void feed_watch (feed_t *self, int64_t now_ms)
{
    door_view_t view = {self, no_messages, NULL};
    for (size_t i = 0; i < self->channels_count; i++)
        channel_watch (self, self->channels[i], now_ms);
    door_stats_t door;
    door_stats (self->door, &door);
    for (size_t i = 0; i < self->channels_count; i++) {
        take_subscriptions (self, self->channels[i]);
        self->channels[i]->wanted = self->channels[i]->wanted && door.open > 0;
    }
    door_cut_endless (self->door, true, &view);
}

bool feed_has_channels (const feed_t *self)
{
    return self->channels_count > 0;
}

uint64_t feed_published (const feed_t *self)
{
    return self->published;
}
