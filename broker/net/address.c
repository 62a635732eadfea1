/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: everything that is wrong is said in a sentence and left to the caller; nothing that
 * stands in the file system is removed here. */
#include "net/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ids.h"

enum { HOST_SIZE = 64, PATH_HASH_BYTES = 16 };

__attribute__ ((format (printf, 3, 4))) static bool fail (char *error, size_t size,
                                                          const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, size, format, arguments);
    va_end (arguments);
    return false;
}

/* tcp. */

/* What stands for a host; false when it is no address. */
static bool parse_host (address_t *out, char host[HOST_SIZE], bool *loopback)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp (host, "localhost") == 0)
        snprintf (host, HOST_SIZE, "127.0.0.1");
    if (strcmp (host, "*") == 0)
        snprintf (host, HOST_SIZE, "0.0.0.0");
    if (inet_pton (AF_INET, host, &v4) == 1) {
        *loopback = (ntohl (v4.s_addr) >> 24) == 127;
        out->any = v4.s_addr == htonl (INADDR_ANY);
        return true;
    }
    if (inet_pton (AF_INET6, host, &v6) != 1)
        return false;
    out->ipv6 = true;
    *loopback = IN6_IS_ADDR_LOOPBACK (&v6);
    out->any = IN6_IS_ADDR_UNSPECIFIED (&v6);
    return true;
}

/* "HOST:PORT", the host perhaps in brackets. */
static bool split_tcp (const char *rest, size_t length, char host[HOST_SIZE], unsigned long *port)
{
    const char *colon = memrchr (rest, ':', length);
    const char *begin = rest;
    char *end;
    if (colon == NULL || colon[1] < '0' || colon[1] > '9')
        return false;
    *port = strtoul (colon + 1, &end, 10);
    if (end != rest + length || *port > 65535)
        return false;
    size_t host_length = (size_t) (colon - rest);
    if (host_length >= 2 && rest[0] == '[' && rest[host_length - 1] == ']') {
        begin++;
        host_length -= 2;
    }
    if (host_length == 0 || host_length >= HOST_SIZE)
        return false;
    memcpy (host, begin, host_length);
    host[host_length] = '\0';
    return true;
}

static bool parse_tcp (address_t *out, const char *rest, char *error, size_t size)
{
    static const char curve[] = "?curve";
    char host[HOST_SIZE];
    unsigned long port;
    bool loopback = false;
    size_t length = strcspn (rest, "?");
    out->curve = strcmp (rest + length, curve) == 0;
    if (rest[length] != '\0' && !out->curve)
        return fail (error, size, "tcp://%s: behind the port only ?curve is possible", rest);
    if (!split_tcp (rest, length, host, &port))
        return fail (error, size, "tcp://%s: expected tcp://HOST:PORT", rest);
    if (!parse_host (out, host, &loopback))
        return fail (error, size,
                     "tcp://%s: the host must be an address of this machine (10.0.0.5, [::1], * "
                     "for all), not a name",
                     rest);
    out->kind = ADDRESS_TCP;
    out->curve = out->curve || !loopback;
    snprintf (out->uri, sizeof (out->uri), out->ipv6 ? "tcp://[%s]:%lu" : "tcp://%s:%lu", host,
              port);
    return true;
}

/* ipc. */

/* A directory that only this user can enter; made if it is missing. */
static bool private_directory (const char *path, char *error, size_t size)
{
    struct stat info;
    if (mkdir (path, 0700) != 0 && errno != EEXIST)
        return fail (error, size, "cannot make %s: %s", path, strerror (errno));
    if (lstat (path, &info) != 0)
        return fail (error, size, "cannot look at %s: %s", path, strerror (errno));
    if (!S_ISDIR (info.st_mode) || info.st_uid != geteuid () || (info.st_mode & 077) != 0)
        return fail (error, size, "%s is not a directory of this user alone (mode 0700)", path);
    return true;
}

static bool move_path (char *path, size_t path_size, char *error, size_t size)
{
    char directory[ADDRESS_IPC_PATH_MAX + 1];
    const char *runtime = getenv ("XDG_RUNTIME_DIR");
    const char *temporary = getenv ("TMPDIR");
    int length;
    if (runtime != NULL && runtime[0] == '/')
        length = snprintf (directory, sizeof (directory), "%s/taskmq", runtime);
    else
        length = snprintf (directory, sizeof (directory), "%s/taskmq-%u",
                           temporary != NULL && temporary[0] == '/' ? temporary : "/tmp",
                           (unsigned) geteuid ());

    uint8_t hash[PATH_HASH_BYTES];
    char name[2 * PATH_HASH_BYTES + 1];
    crypto_generichash (hash, sizeof (hash), (const uint8_t *) path, strlen (path), NULL, 0);
    hex_encode (name, hash, sizeof (hash));
    static const char suffix[] = ".ipc";
    if (length < 0 || (size_t) length + 1 + strlen (name) + strlen (suffix) > ADDRESS_IPC_PATH_MAX)
        return fail (error, size,
                     "ipc://%s is over %d bytes and the directory for short paths is too long too; "
                     "set XDG_RUNTIME_DIR to a short one",
                     path, ADDRESS_IPC_PATH_MAX);
    if (!private_directory (directory, error, size))
        return false;
    snprintf (path, path_size, "%s/%s%s", directory, name, suffix);
    return true;
}

static bool parse_ipc (address_t *out, const char *rest, char *error, size_t size)
{
    if (rest[0] == '@')
        return fail (error, size, "ipc://%s: an abstract name has no permissions; use a path",
                     rest);
    if (rest[0] == '\0' || rest[strlen (rest) - 1] == '/')
        return fail (error, size, "ipc://%s: expected the path of a socket", rest);

    char directory[PATH_MAX] = "";
    if (rest[0] != '/' && getcwd (directory, sizeof (directory)) == NULL)
        return fail (error, size, "cannot name the working directory: %s", strerror (errno));
    char path[ADDRESS_PATH_SIZE];
    int length = snprintf (path, sizeof (path), rest[0] == '/' ? "%s%s" : "%s/%s", directory, rest);
    if (length < 0 || (size_t) length >= sizeof (path))
        return fail (error, size, "the ipc path is over %d bytes", ADDRESS_PATH_SIZE - 1);
    out->kind = ADDRESS_IPC;
    out->moved = length > ADDRESS_IPC_PATH_MAX;
    if (out->moved && !move_path (path, sizeof (path), error, size))
        return false;
    snprintf (out->uri, sizeof (out->uri), "ipc://%s", path);
    return true;
}

bool address_parse (address_t *out, const char *uri, char *error, size_t error_size)
{
    static const char ipc[] = "ipc://";
    static const char tcp[] = "tcp://";
    memset (out, 0, sizeof (*out));
    if (strncmp (uri, ipc, strlen (ipc)) == 0)
        return parse_ipc (out, uri + strlen (ipc), error, error_size);
    if (strncmp (uri, tcp, strlen (tcp)) == 0)
        return parse_tcp (out, uri + strlen (tcp), error, error_size);
    return fail (error, error_size, "%s: expected ipc://PATH or tcp://HOST:PORT", uri);
}

bool address_parse_plain (address_t *out, const char *uri, char *error, size_t error_size)
{
    if (!address_parse (out, uri, error, error_size))
        return false;
    if (out->kind != ADDRESS_TCP || strchr (uri, '?') != NULL)
        return fail (error, error_size, "%s: expected tcp://HOST:PORT", uri);
    out->curve = false;
    out->plain = true;
    return true;
}

const char *address_domain (const address_t *self)
{
    if (self->kind == ADDRESS_IPC)
        return "ipc";
    return self->curve ? "curve" : self->plain ? "plain" : "loopback";
}

bool address_is_network (const char *text)
{
    char host[HOST_SIZE];
    uint8_t bytes[sizeof (struct in6_addr)];
    char *end;
    size_t length = strcspn (text, "/");
    if (length >= sizeof (host))
        return false;
    memcpy (host, text, length);
    host[length] = '\0';
    bool ipv6 = inet_pton (AF_INET6, host, bytes) == 1;
    if (!ipv6 && inet_pton (AF_INET, host, bytes) != 1)
        return false;
    if (text[length] == '\0')
        return true;
    unsigned long bits = strtoul (text + length + 1, &end, 10);
    return text[length + 1] >= '0' && text[length + 1] <= '9' && *end == '\0' &&
           bits <= (ipv6 ? 128 : 32);
}

void address_host (const address_t *self, char *out, size_t out_size)
{
    const char *begin = self->uri + strlen ("tcp://") + self->ipv6;
    size_t length = (size_t) (strrchr (self->uri, ':') - begin) - self->ipv6;
    snprintf (out, out_size, "%.*s", (int) length, begin);
}

int address_try (const address_t *self)
{
    char host[ADDRESS_URI_SIZE];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_family = self->ipv6 ? AF_INET6 : AF_INET,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    address_host (self, host, sizeof (host));
    if (getaddrinfo (host, strrchr (self->uri, ':') + 1, &hints, &found) != 0)
        return EADDRNOTAVAIL;
    int on = 1;
    int code = 0;
    int fd = socket (found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof (on)) != 0 ||
        bind (fd, found->ai_addr, found->ai_addrlen) != 0 || listen (fd, 1) != 0)
        code = errno;
    if (fd >= 0)
        close (fd);
    freeaddrinfo (found);
    return code;
}

void address_reach (const char *endpoint, char *out, size_t out_size)
{
    static const char any_v4[] = "tcp://0.0.0.0:";
    static const char any_v6[] = "tcp://[::]:";
    if (strncmp (endpoint, any_v4, strlen (any_v4)) == 0)
        snprintf (out, out_size, "tcp://127.0.0.1:%s", endpoint + strlen (any_v4));
    else if (strncmp (endpoint, any_v6, strlen (any_v6)) == 0)
        snprintf (out, out_size, "tcp://[::1]:%s", endpoint + strlen (any_v6));
    else
        snprintf (out, out_size, "%s", endpoint);
}

/* The lock beside an ipc path. */

/* Somebody answers at the socket: a program that knows nothing of our lock. */
static bool socket_is_alive (const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert (strlen (path) < sizeof (address.sun_path));
    memcpy (address.sun_path, path, strlen (path) + 1);
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool alive =
        connect (fd, (struct sockaddr *) &address, sizeof (address)) == 0 || errno == EAGAIN;
    close (fd);
    return alive;
}

static bool path_is_free (const char *path, char *error, size_t size)
{
    struct stat info;
    if (lstat (path, &info) != 0) {
        if (errno == ENOENT)
            return true;
        return fail (error, size, "cannot look at %s: %s", path, strerror (errno));
    }
    if (!S_ISSOCK (info.st_mode))
        return fail (error, size, "%s exists and is not a socket", path);
    if (socket_is_alive (path))
        return fail (error, size, "another program listens on %s", path);
    return true;
}

int address_lock_ipc (const char *path, char *error, size_t error_size)
{
    char lock[ADDRESS_PATH_SIZE];
    snprintf (lock, sizeof (lock), "%s.lock", path);
    int fd = open (lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        fail (error, error_size, "cannot open %s: %s", lock, strerror (errno));
        return -1;
    }
    bool locked = flock (fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked)
        fail (error, error_size,
              errno == EWOULDBLOCK ? "another broker listens on %s" : "cannot lock %s.lock", path);
    if (locked && path_is_free (path, error, error_size))
        return fd;
    close (fd);
    return -1;
}
