/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "support/zmtp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/timing.h"

enum { GREETING_BYTES = 64, FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4, SHORT_MAX = 255 };

/* False when the other side has ended the connection, also if it takes nothing any more. */
static bool write_all (int fd, const uint8_t *bytes, size_t length)
{
    struct pollfd writable = {fd, POLLOUT | POLLRDHUP, 0};
    while (length > 0) {
        if (poll (&writable, 1, TIMING_PATIENCE_MS) == 0)
            fail_msg ("the connection takes nothing and does not end");
        if ((writable.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
            return false;
        ssize_t sent = send (fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t) sent;
    }
    return true;
}

static bool write_frame (int fd, uint8_t flags, const void *bytes, size_t length)
{
    uint8_t head[9] = {flags, (uint8_t) length};
    size_t head_bytes = 2;
    if (length > SHORT_MAX) {
        head[0] = flags | FLAG_LONG;
        for (int i = 0; i < 8; i++)
            head[1 + i] = (uint8_t) ((uint64_t) length >> (56 - 8 * i));
        head_bytes = 9;
    }
    return write_all (fd, head, head_bytes) && write_all (fd, bytes, length);
}

static size_t put_property (uint8_t *out, const char *name, const void *value, size_t length)
{
    size_t name_length = strlen (name);
    uint32_t size = htonl ((uint32_t) length);
    out[0] = (uint8_t) name_length;
    memcpy (out + 1, name, name_length);
    memcpy (out + 1 + name_length, &size, sizeof (size));
    if (length > 0)
        memcpy (out + 1 + name_length + sizeof (size), value, length);
    return 1 + name_length + sizeof (size) + length;
}

/* The other side's READY: before it nothing else may be sent (RFC 23). None comes from one that
 * ends the connection instead. */
static void await_ready (int fd)
{
    uint8_t head[2];
    uint8_t body[SHORT_MAX];
    if (recv (fd, head, sizeof (head), MSG_WAITALL) == sizeof (head))
        recv (fd, body, head[1], MSG_WAITALL);
}

static void shake_hands (int fd, const char *type, const void *routing_id, size_t routing_id_bytes)
{
    static const char ready[] = "\5READY";
    uint8_t greeting[GREETING_BYTES] = {0xff, 0,    0, 0, 0,   0,   0,   0,
                                        0,    0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    uint8_t theirs[GREETING_BYTES];
    assert_true (write_all (fd, greeting, sizeof (greeting)));
    assert_int_equal (recv (fd, theirs, sizeof (theirs), MSG_WAITALL), sizeof (theirs));
    uint8_t *command = malloc (routing_id_bytes + 100);
    size_t length = strlen (ready);
    memcpy (command, ready, length);
    length += put_property (command + length, "Socket-Type", type, strlen (type));
    length += put_property (command + length, "Identity", routing_id, routing_id_bytes);
    assert_true (write_frame (fd, FLAG_COMMAND, command, length));
    free (command);
    await_ready (fd);
}

int zmtp_open (const char *endpoint, const char *type, const void *routing_id,
               size_t routing_id_bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    address.sin_port = htons ((uint16_t) atoi (strrchr (endpoint, ':') + 1));
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (connect (fd, (struct sockaddr *) &address, sizeof (address)), 0);
    shake_hands (fd, type, routing_id, routing_id_bytes);
    return fd;
}

bool zmtp_send (int fd, bool more, const void *bytes, size_t length)
{
    return write_frame (fd, more ? FLAG_MORE : 0, bytes, length);
}

void zmtp_wait_end (int fd)
{
    char bytes[4096];
    struct pollfd readable = {fd, POLLIN, 0};
    for (int64_t until = timing_ms () + TIMING_PATIENCE_MS; timing_ms () < until;) {
        if (poll (&readable, 1, 100) != 1)
            continue;
        ssize_t got = recv (fd, bytes, sizeof (bytes), 0);
        if (got == 0 || (got < 0 && errno != EINTR))
            return;
    }
    fail_msg ("the connection does not end");
}
