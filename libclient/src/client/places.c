/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "client/places.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/errors.h"
#include "trust.h"

enum {
    FILE_BYTES_MAX = 8192, /* of a directory's file with endpoints */
    IPC_PATH_MAX = sizeof ((struct sockaddr_un *) 0)->sun_path - 1,
    TCP_WAIT_MS = 100
};

static const char white[] = " \t\r\n";

/* One URI. */

static const char *path_of (const char *uri)
{
    return strncmp (uri, "ipc://", 6) == 0 ? uri + 6 : NULL;
}

/* Splits HOST:PORT of a tcp URI; the host without the brackets of an IPv6 address. */
static bool split_tcp (const char *uri, char host[PLACES_URI_BYTES_MAX + 1], const char **port)
{
    if (strncmp (uri, "tcp://", 6) != 0)
        return false;
    const char *begin = uri + 6;
    const char *colon = strrchr (begin, ':');
    if (colon == NULL || colon == begin || colon - begin > PLACES_URI_BYTES_MAX)
        return false;
    size_t length = (size_t) (colon - begin);
    bool brackets = begin[0] == '[' && begin[length - 1] == ']' && length > 2;
    memcpy (host, begin + brackets, length - 2 * brackets);
    host[length - 2 * brackets] = '\0';
    *port = colon + 1;
    return brackets || strchr (host, ':') == NULL;
}

static bool is_tcp (const char *uri)
{
    char host[PLACES_URI_BYTES_MAX + 1];
    const char *port;
    char *end;
    if (!split_tcp (uri, host, &port) || !isdigit ((unsigned char) port[0]))
        return false;
    for (const char *at = host; *at != '\0'; at++)
        if (!isalnum ((unsigned char) *at) && strchr ("._-:%", *at) == NULL)
            return false;
    unsigned long number = strtoul (port, &end, 10);
    return *end == '\0' && number >= 1 && number <= 65535;
}

int places_check (const char *uri, tmq_error_t *error)
{
    if (uri == NULL || strlen (uri) > PLACES_URI_BYTES_MAX)
        return core_error (error, TMQ_INVALID, "endpoint: a URI of at most %d bytes",
                           PLACES_URI_BYTES_MAX);
    const char *path = path_of (uri);
    if (path != NULL && strlen (path) > IPC_PATH_MAX)
        return core_error (error, TMQ_INVALID,
                           "endpoint: the path of a socket has at most %d bytes",
                           (int) IPC_PATH_MAX);
    if ((path == NULL || path[0] == '\0') && !is_tcp (uri))
        return core_error (error, TMQ_INVALID,
                           "endpoint: '%s' is neither tcp://HOST:PORT nor ipc://PATH", uri);
    return TMQ_OK;
}

/* Finding. */

static int add (places_t *self, const char *uri, tmq_error_t *error)
{
    int code = places_check (uri, error);
    if (code != TMQ_OK)
        return code;
    if (self->count == PLACES_MAX)
        return core_error (error, TMQ_INVALID, "endpoint: at most %d", PLACES_MAX);
    char **uris = realloc (self->uris, (self->count + 1) * sizeof *uris);
    if (uris == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    self->uris = uris;
    uris[self->count] = strdup (uri);
    if (uris[self->count] == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    self->count++;
    return TMQ_OK;
}

/* Adds each word of text, which is changed. */
static int add_words (places_t *self, char *text, tmq_error_t *error)
{
    char *rest = NULL;
    int code = TMQ_OK;
    for (char *uri = strtok_r (text, white, &rest); uri != NULL && code == TMQ_OK;
         uri = strtok_r (NULL, white, &rest))
        code = add (self, uri, error);
    return code;
}

/* Absolute, so that it stays the same when the program changes its directory. */
static char *absolute (const char *path)
{
    char *here = path[0] == '/' ? NULL : getcwd (NULL, 0);
    char *out = malloc ((here != NULL ? strlen (here) : 0) + strlen (path) + 2);
    if (out != NULL)
        sprintf (out, "%s%s%s", here != NULL ? here : "", here != NULL ? "/" : "", path);
    free (here);
    return out;
}

/* The nearest .taskmq from the working directory upward, or NULL. */
static char *nearest (void)
{
    static const char name[] = "/.taskmq";
    struct stat status;
    char here[PATH_MAX + sizeof name];
    if (getcwd (here, PATH_MAX) == NULL)
        return NULL;
    for (size_t length = strcmp (here, "/") == 0 ? 0 : strlen (here);;) {
        memcpy (here + length, name, sizeof name);
        if (stat (here, &status) == 0 && S_ISDIR (status.st_mode))
            return strdup (here);
        if (length == 0)
            return NULL;
        do
            length--;
        while (here[length] != '/');
    }
}

static int find_nearest (places_t *out, tmq_error_t *error)
{
    out->directory = nearest ();
    if (out->directory != NULL)
        return TMQ_OK;
    int code = core_error (error, TMQ_UNREACHABLE,
                           "no broker is known: no endpoint, no TASKMQ_ENDPOINT, no .taskmq "
                           "directory here or above");
    if (error != NULL)
        snprintf (error->hint, sizeof error->hint,
                  "start 'taskmqd' in the project's directory, or name an endpoint");
    return code;
}

int places_find (places_t *out, const tmq_client_options_t *options, tmq_error_t *error)
{
    const char *environment = getenv ("TASKMQ_ENDPOINT");
    int code = TMQ_OK;
    memset (out, 0, sizeof *out);
    if (options->endpoints_count > 0) {
        for (size_t i = 0; i < options->endpoints_count && code == TMQ_OK; i++)
            code = add (out, options->endpoints[i], error);
    } else if (options->directory != NULL && options->directory[0] != '\0') {
        out->named = true;
        out->directory = absolute (options->directory);
        if (out->directory == NULL)
            code = core_error (error, TMQ_NO_MEMORY, NULL);
    } else {
        char *text = environment != NULL ? strdup (environment) : NULL;
        if (text != NULL)
            code = add_words (out, text, error);
        free (text);
        if (code == TMQ_OK && out->count == 0)
            code = find_nearest (out, error);
    }
    if (code != TMQ_OK)
        places_free (out);
    return code;
}

void places_free (places_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free (self->uris[i]);
    free (self->uris);
    free (self->directory);
    memset (self, 0, sizeof *self);
}

/* Looking whether somebody is there. */

static void absent (absence_t *why, bool certain, const char *text, const char *hint)
{
    why->certain = certain;
    snprintf (why->text, sizeof why->text, "%s", text);
    snprintf (why->hint, sizeof why->hint, "%s", hint);
}

static void denied (absence_t *why)
{
    absent (why, true, "permission denied",
            "it belongs to another user: ask for access, or start a broker of your own");
}

/* A broker holds a lock in its directory as long as it lives. The shared lock that is tried here is
 * given back at once; a broker that starts in this moment tries again. */
static void look_at_lock (const places_t *self, absence_t *why)
{
    char path[PATH_MAX];
    char hint[160];
    snprintf (path, sizeof path, "%s/taskmq.lock", self->directory);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == EACCES) {
        denied (why);
        return;
    }
    bool held = fd >= 0 && flock (fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close (fd);
    snprintf (hint, sizeof hint, "taskmqd --data %s", self->directory);
    if (held)
        absent (why, false, "its broker is starting", "");
    else
        absent (why, true, "no broker is running there", hint);
}

static bool is_trusted (const places_t *self, absence_t *why)
{
    struct stat status;
    char text[160];
    char hint[160];
    if (stat (self->directory, &status) != 0) {
        if (errno == EACCES)
            denied (why);
        else
            look_at_lock (self, why); /* nobody can hold it */
        return false;
    }
    switch (trust_directory (&status, self->named)) {
    case TRUST_GOOD: return true;
    case TRUST_FOREIGN:
        snprintf (text, sizeof text, "it belongs to uid %ld, not to you", (long) status.st_uid);
        absent (why, true, text, "name an endpoint, or this directory, if you mean its broker");
        break;
    case TRUST_WRITABLE:
        snprintf (hint, sizeof hint, "chmod go-w %s", self->directory);
        absent (why, true, "others may write in it", hint);
        break;
    }
    return false;
}

static bool read_file (const places_t *self, char text[FILE_BYTES_MAX], absence_t *why)
{
    char path[PATH_MAX];
    snprintf (path, sizeof path, "%s/endpoint", self->directory);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t got = fd >= 0 ? read (fd, text, FILE_BYTES_MAX - 1) : 0;
    bool refused = fd < 0 && errno == EACCES;
    if (fd >= 0)
        close (fd);
    text[got > 0 ? got : 0] = '\0';
    if (refused)
        denied (why);
    else if (text[strspn (text, white)] == '\0')
        look_at_lock (self, why);
    else
        return true;
    return false;
}

bool places_uri (const places_t *self, size_t index, uint64_t attempt,
                 char out[PLACES_URI_BYTES_MAX + 1], absence_t *why)
{
    char text[FILE_BYTES_MAX];
    places_t found = {0};
    if (self->directory == NULL) {
        snprintf (out, PLACES_URI_BYTES_MAX + 1, "%s", self->uris[index]);
        return true;
    }
    if (!is_trusted (self, why) || !read_file (self, text, why))
        return false;
    bool good = add_words (&found, text, NULL) == TMQ_OK;
    if (good)
        snprintf (out, PLACES_URI_BYTES_MAX + 1, "%s", found.uris[attempt % found.count]);
    else
        absent (why, false, "its file 'endpoint' holds something else", "");
    places_free (&found);
    return good;
}

/* Connects by hand, because ZeroMQ does not tell why it could not; errno, 0 for success. */
static int try (const struct sockaddr *address, socklen_t size)
{
    int fd = socket (address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int failed = connect (fd, address, size) == 0 ? 0 : errno;
    if (failed == EINPROGRESS) {
        struct pollfd item = {fd, POLLOUT, 0};
        socklen_t length = sizeof failed;
        if (poll (&item, 1, TCP_WAIT_MS) > 0)
            getsockopt (fd, SOL_SOCKET, SO_ERROR, &failed, &length);
    }
    close (fd);
    return failed;
}

static int try_ipc (const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen (path);
    memcpy (address.sun_path, path, length);
    if (path[0] == '@') /* an abstract name */
        address.sun_path[0] = '\0';
    socklen_t size = (socklen_t) (offsetof (struct sockaddr_un, sun_path) + length);
    return try ((const struct sockaddr *) &address, path[0] == '@' ? size : size + 1);
}

/* Only addresses in numbers: nobody is kept waiting by a name server. */
static int try_tcp (const char *uri)
{
    char host[PLACES_URI_BYTES_MAX + 1];
    const char *port;
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                    .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (!split_tcp (uri, host, &port) ||
        getaddrinfo (strcmp (host, "localhost") == 0 ? "127.0.0.1" : host, port, &wanted, &found) !=
            0)
        return EAGAIN;
    int failed = try (found->ai_addr, found->ai_addrlen);
    freeaddrinfo (found);
    return failed;
}

void places_look (const places_t *self, const char *uri, absence_t *why)
{
    const char *path = path_of (uri);
    int failed = path != NULL ? try_ipc (path) : try_tcp (uri);
    if (failed == EACCES || failed == EPERM)
        denied (why);
    else if ((failed == ENOENT || failed == ECONNREFUSED) && self->directory != NULL)
        look_at_lock (self, why);
    else if (failed == ENOENT)
        absent (why, true, "there is no such socket", "start 'taskmqd', or look at the path");
    else if (failed == ECONNREFUSED)
        absent (why, true, "nobody listens there",
                path != NULL ? "start 'taskmqd'; the socket is left from one that was killed"
                             : "start 'taskmqd', or look at host and port");
    else
        absent (why, false, "no connection", "");
}
