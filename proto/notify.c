/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The datagram of sd_notify(3), without the library for it. */
#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_supervisor (const char *state)
{
    const char *path = getenv ("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') ||
        strlen (path) >= sizeof (address.sun_path))
        return;
    size_t length = strlen (path);
    memcpy (address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t) (offsetof (struct sockaddr_un, sun_path) + length);
    ssize_t sent =
        sendto (fd, state, strlen (state), MSG_NOSIGNAL, (struct sockaddr *) &address, size);
    (void) sent;
    close (fd);
}
