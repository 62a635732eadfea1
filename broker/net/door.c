/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a question that the system does not answer cuts nobody. */
#include "net/door.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/memory.h"

enum {
    FDS_FIRST = 64,
    GROWTH_BYTES = 16 * 1024 * 1024 /* of resident memory: then somebody may send without an end */
};

typedef struct connection {
    bool open;
    bool cut;
    bool heard;
    uint64_t cookie;
    uint64_t origin; /* an address, of IPv6 its network, or a user of this machine */
    int64_t opened_ms;
    int64_t linked_ms; /* when its link was last seen, at first when it was opened */
    uint32_t messages; /* when received was kept */
    uint64_t received; /* bytes that belonged to whole messages, or a little more */
} connection_t;

struct door {
    door_options_t options;
    connection_t *connections; /* by descriptor */
    size_t capacity;
    int memory_fd;   /* statm of the process */
    uint64_t memory; /* resident, at the last look at the connections */
    uint64_t page_size;
    door_stats_t stats;
};

door_t *door_new (const door_options_t *options)
{
    door_t *self = memory_zero (1, sizeof (*self));
    self->options = *options;
    self->memory_fd = open ("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    self->page_size = (uint64_t) sysconf (_SC_PAGESIZE);
    return self;
}

void door_free (door_t **self_p)
{
    door_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->memory_fd >= 0)
        close (self->memory_fd);
    free (self->connections);
    free (self);
}

static bool cookie_of (int fd, uint64_t *cookie)
{
    socklen_t size = sizeof (*cookie);
    return getsockopt (fd, SOL_SOCKET, SO_COOKIE, cookie, &size) == 0;
}

/* Who crowds the door: 0 when the system does not say. */
static uint64_t origin_of (int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage storage;
    } peer = {.any = {0}};
    struct ucred user;
    socklen_t size = sizeof (peer);
    socklen_t user_size = sizeof (user);
    uint64_t origin = 0;
    if (getpeername (fd, &peer.any, &size) != 0)
        return 0;
    if (peer.any.sa_family == AF_INET)
        return peer.v4.sin_addr.s_addr;
    if (peer.any.sa_family != AF_INET6)
        return getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &user, &user_size) == 0 ? user.uid : 0;
    const uint8_t *bytes = peer.v6.sin6_addr.s6_addr;
    if (IN6_IS_ADDR_V4MAPPED (&peer.v6.sin6_addr))
        memcpy (&origin, bytes + 12, 4);
    else
        memcpy (&origin, bytes, sizeof (origin));
    return origin;
}

void door_opened (door_t *self, int fd, int64_t now_ms)
{
    if (fd < 0)
        return;
    size_t index = (size_t) fd;
    if (index >= self->capacity) {
        size_t capacity = index * 2 + FDS_FIRST;
        self->connections =
            memory_resize (self->connections, capacity, sizeof (*self->connections));
        memset (self->connections + self->capacity, 0,
                (capacity - self->capacity) * sizeof (*self->connections));
        self->capacity = capacity;
    }
    connection_t *connection = &self->connections[index];
    door_closed (self, fd); /* its end was not told */
    self->stats.open++;
    self->stats.unheard++;
    *connection = (connection_t){
        .open = true, .opened_ms = now_ms, .linked_ms = now_ms, .origin = origin_of (fd)};
    connection->cut = !cookie_of (fd, &connection->cookie); /* it has ended already */
}

static connection_t *find (const door_t *self, int fd)
{
    if (fd < 0 || (size_t) fd >= self->capacity || !self->connections[fd].open)
        return NULL;
    return &self->connections[fd];
}

void door_closed (door_t *self, int fd)
{
    connection_t *connection = find (self, fd);
    if (connection == NULL)
        return;
    connection->open = false;
    self->stats.open--;
    self->stats.unheard -= !connection->heard;
}

void door_heard (door_t *self, int fd)
{
    connection_t *connection = find (self, fd);
    if (connection == NULL || connection->heard)
        return;
    connection->heard = true;
    self->stats.unheard--;
}

static bool cut (connection_t *connection, int fd)
{
    uint64_t cookie;
    if (connection->cut)
        return false;
    connection->cut = true;
    return cookie_of (fd, &cookie) && cookie == connection->cookie && shutdown (fd, SHUT_RDWR) == 0;
}

void door_cut (door_t *self, int fd)
{
    connection_t *connection = find (self, fd);
    if (connection != NULL)
        cut (connection, fd);
}

void door_cut_mute (door_t *self, int64_t heard_ms, const door_view_t *view)
{
    for (size_t i = 0; i < self->capacity; i++) {
        connection_t *connection = &self->connections[i];
        if (!connection->open || connection->cut ||
            heard_ms - connection->linked_ms < self->options.mute_ms)
            continue;
        if (view->is_linked (view->context, (int) i))
            connection->linked_ms = heard_ms;
        else
            self->stats.mute += cut (connection, (int) i);
    }
}

size_t door_cut_unheard (door_t *self, const door_view_t *view)
{
    size_t count = 0;
    for (size_t i = 0; i < self->capacity; i++) {
        connection_t *connection = &self->connections[i];
        if (connection->open && !connection->cut && view->messages (view->context, (int) i) == 0)
            count += cut (connection, (int) i);
    }
    return count;
}

/* Too many at the door. */

typedef struct waiting {
    uint64_t origin;
    int64_t opened_ms;
    int fd;
} waiting_t;

static int compare_waiting (const void *one, const void *other)
{
    const waiting_t *a = one;
    const waiting_t *b = other;
    if (a->origin != b->origin)
        return a->origin < b->origin ? -1 : 1;
    return (a->opened_ms > b->opened_ms) - (a->opened_ms < b->opened_ms);
}

/* Those that may be cut, sorted by origin and age. */
static waiting_t *list_waiting (const door_t *self, int64_t opened_until_ms, size_t *count)
{
    waiting_t *list = memory_alloc ((self->stats.unheard + 1) * sizeof (*list));
    *count = 0;
    for (size_t i = 0; i < self->capacity; i++) {
        const connection_t *connection = &self->connections[i];
        if (connection->open && !connection->heard && !connection->cut &&
            connection->opened_ms <= opened_until_ms)
            list[(*count)++] = (waiting_t){connection->origin, connection->opened_ms, (int) i};
    }
    qsort (list, *count, sizeof (*list), compare_waiting);
    return list;
}

/* Of one origin: places in the list. */
typedef struct queue {
    size_t first;
    size_t end;
} queue_t;

static size_t list_queues (queue_t *queues, const waiting_t *list, size_t count)
{
    size_t queues_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || list[i].origin != list[i - 1].origin)
            queues[queues_count++] = (queue_t){i, i};
        queues[queues_count - 1].end = i + 1;
    }
    return queues_count;
}

static queue_t *longest (queue_t *queues, size_t count)
{
    queue_t *found = &queues[0];
    for (size_t i = 1; i < count; i++)
        if (queues[i].end - queues[i].first > found->end - found->first)
            found = &queues[i];
    return found;
}

size_t door_cut_crowd (door_t *self, int64_t now_ms)
{
    size_t most = self->options.mute_max;
    if (most == 0 || self->stats.unheard <= most)
        return 0;
    bool pressed = self->stats.unheard > 4 * most;
    size_t count;
    waiting_t *list = list_waiting (self, pressed ? now_ms : now_ms - DOOR_MUTE_GRACE_MS, &count);
    queue_t *queues = memory_alloc ((count + 1) * sizeof (*queues));
    size_t queues_count = list_queues (queues, list, count);
    size_t excess = self->stats.unheard - most;
    size_t done = 0;
    for (; done < excess && done < count; done++) {
        queue_t *queue = longest (queues, queues_count);
        int fd = list[queue->first++].fd;
        cut (&self->connections[fd], fd);
    }
    self->stats.crowd += done;
    free (queues);
    free (list);
    return done;
}

/* Messages without an end. */

static bool memory_grew (door_t *self)
{
    char text[128];
    unsigned long long size = 0;
    unsigned long long resident = 0;
    ssize_t length = pread (self->memory_fd, text, sizeof (text) - 1, 0);
    if (length <= 0)
        return false;
    text[length] = '\0';
    if (sscanf (text, "%llu %llu", &size, &resident) != 2)
        return false;
    uint64_t memory = resident * self->page_size;
    bool grew = memory > self->memory + GROWTH_BYTES;
    if (grew || memory < self->memory)
        self->memory = memory;
    return grew;
}

/* What came over the connection since its last whole message, or a little less. */
static uint64_t pending (connection_t *connection, int fd, const door_view_t *view)
{
    struct tcp_info info;
    socklen_t size = sizeof (info);
    memset (&info, 0, sizeof (info));
    if (getsockopt (fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return 0;
    uint32_t messages = view->messages (view->context, fd);
    if (messages != connection->messages) {
        connection->messages = messages;
        connection->received = info.tcpi_bytes_received;
    }
    return info.tcpi_bytes_received - connection->received;
}

typedef struct weight {
    uint64_t all;
    uint64_t mute; /* of those from which no message has come */
} weight_t;

/* Cuts those with more than that, and says what is left. */
static weight_t cut_beyond (door_t *self, uint64_t limit, uint64_t mute_limit,
                            const door_view_t *view)
{
    weight_t left = {0, 0};
    for (size_t i = 0; i < self->capacity; i++) {
        connection_t *connection = &self->connections[i];
        uint64_t bytes =
            connection->open && !connection->cut ? pending (connection, (int) i, view) : 0;
        if (bytes > (connection->heard ? limit : mute_limit)) {
            self->stats.endless += cut (connection, (int) i);
            continue;
        }
        left.all += bytes;
        left.mute += connection->heard ? 0 : bytes;
    }
    return left;
}

void door_cut_endless (door_t *self, bool reading, const door_view_t *view)
{
    uint64_t limit = reading ? DOOR_PENDING_MAX : DOOR_PENDING_UNREAD_MAX;
    if (!memory_grew (self))
        return;
    weight_t left = cut_beyond (self, limit, limit, view);
    if (left.mute > DOOR_PENDING_MUTE_ALL_MAX)
        left = cut_beyond (self, limit, DOOR_PENDING_MUTE_FAIR, view);
    if (left.all > DOOR_PENDING_ALL_MAX)
        cut_beyond (self, DOOR_PENDING_FAIR, DOOR_PENDING_MUTE_FAIR, view);
}

void door_stats (const door_t *self, door_stats_t *out)
{
    *out = self->stats;
}
