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
    uint64_t cookie;
    int64_t linked_ms; /* when its link was last seen, at first when it was opened */
    uint32_t messages; /* when received was kept */
    uint64_t received; /* bytes that belonged to whole messages, or a little more */
} connection_t;

struct door {
    int64_t mute_ms;
    connection_t *connections; /* by descriptor */
    size_t capacity;
    int memory_fd;   /* statm of the process */
    uint64_t memory; /* resident, at the last look at the connections */
    uint64_t page_size;
    door_stats_t stats;
};

door_t *door_new (int64_t mute_ms)
{
    door_t *self = memory_zero (1, sizeof (*self));
    self->mute_ms = mute_ms;
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
    self->stats.open += !connection->open;
    *connection = (connection_t){.open = true, .linked_ms = now_ms};
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
            heard_ms - connection->linked_ms < self->mute_ms)
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

static uint64_t cut_beyond (door_t *self, uint64_t limit, const door_view_t *view)
{
    uint64_t left = 0;
    for (size_t i = 0; i < self->capacity; i++) {
        connection_t *connection = &self->connections[i];
        uint64_t bytes =
            connection->open && !connection->cut ? pending (connection, (int) i, view) : 0;
        if (bytes > limit)
            self->stats.endless += cut (connection, (int) i);
        else
            left += bytes;
    }
    return left;
}

void door_cut_endless (door_t *self, bool reading, const door_view_t *view)
{
    uint64_t limit = reading ? DOOR_PENDING_MAX : DOOR_PENDING_UNREAD_MAX;
    if (memory_grew (self) && cut_beyond (self, limit, view) > DOOR_PENDING_ALL_MAX)
        cut_beyond (self, DOOR_PENDING_FAIR, view);
}

void door_stats (const door_t *self, door_stats_t *out)
{
    *out = self->stats;
}
