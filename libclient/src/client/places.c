/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "client/places.h"

#include <arpa/inet.h>
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
#include "client/names.h"
#include "profile.h"
#include "trust.h"

enum {
    FILE_BYTES_MAX = 8192, /* of a directory's file with endpoints */
    IPC_PATH_MAX = sizeof ((struct sockaddr_un *) 0)->sun_path - 1,
    TCP_WAIT_MS = 100,
    GREETING_BYTES = 64, /* of ZMTP 3: signature, version, mechanism, … */
    MECHANISM_AT = 12
};

/* Where the broker of the whole machine listens, if there is one. */
#define MACHINE_SOCKET "/run/taskmq/taskmqd.ipc"

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

/* What stands behind the '?'. */
static int parse_query (place_t *out, const char *query, tmq_error_t *error)
{
    static const char key[] = "server_key=";
    char reason[KEY_ERROR_SIZE];
    if (strcmp (query, "insecure") == 0) {
        out->insecure = true;
        return TMQ_OK;
    }
    if (strncmp (query, key, strlen (key)) != 0)
        return core_error (
            error, TMQ_INVALID,
            "endpoint %s: behind '?' stands server_key=tmqpk_… or insecure, not '%.40s'", out->uri,
            query);
    out->has_server_key = key_parse_public (&out->server_key, query + strlen (key), reason);
    if (!out->has_server_key)
        return core_error (error, TMQ_INVALID, "endpoint %s: server_key: %s", out->uri, reason);
    return TMQ_OK;
}

/* 127.x.x.x, ::1 or localhost. */
static bool is_loopback (const char *uri)
{
    char host[PLACES_URI_BYTES_MAX + 1];
    const char *port;
    struct in_addr address;
    if (!split_tcp (uri, host, &port))
        return false;
    if (strcmp (host, "localhost") == 0 || strcmp (host, "::1") == 0)
        return true;
    return inet_pton (AF_INET, host, &address) == 1 && ntohl (address.s_addr) >> 24 == 127;
}

bool places_is_tcp (const place_t *place)
{
    return strncmp (place->uri, "tcp://", 6) == 0;
}

bool places_is_far (const place_t *place)
{
    return places_is_tcp (place) && !is_loopback (place->uri);
}

/* What is wrong with it, or what may be meant. */
static int no_uri (const char *uri, tmq_error_t *error)
{
    char meant[PLACES_URI_BYTES_MAX + sizeof "tcp://"];
    const char *host = strncmp (uri, "tcp://", 6) == 0 ? uri + 6 : NULL;
    const char *flaw = "is neither tcp://HOST:PORT nor ipc://PATH";
    snprintf (meant, sizeof meant, "tcp://%s", uri);
    if (strchr (uri, ',') != NULL)
        flaw = "is no URI: several stand with spaces between them, without commas";
    else if (host != NULL && host[0] != '[' && strchr (host, ':') != strrchr (host, ':'))
        flaw = "is no URI: an IPv6 address stands in brackets, as in tcp://[::1]:5560";
    else if (host != NULL && host[0] != '\0' && strrchr (host, ':') <= strrchr (host, ']'))
        flaw = "has no port: tcp://HOST:PORT";
    else if (host != NULL)
        flaw = "is no URI: tcp://HOST:PORT, with a port of 1 to 65535";
    else if (strstr (uri, "://") == NULL && is_tcp (meant))
        flaw = "has no scheme: tcp:// is to stand before it";
    else if (uri[0] == '/')
        flaw = "has no scheme: ipc:// is to stand before it";
    return core_error (error, TMQ_INVALID, "endpoint: '%s' %s", uri, flaw);
}

static int check_uri (const char *uri, tmq_error_t *error)
{
    const char *path = path_of (uri);
    if (path != NULL && strlen (path) > IPC_PATH_MAX)
        return core_error (error, TMQ_INVALID,
                           "endpoint: the path of a socket has at most %d bytes",
                           (int) IPC_PATH_MAX);
    if ((path == NULL || path[0] == '\0') && !is_tcp (uri))
        return no_uri (uri, error);
    return TMQ_OK;
}

int places_parse (place_t *out, const char *uri, tmq_error_t *error)
{
    memset (out, 0, sizeof *out);
    const char *query = uri != NULL && path_of (uri) == NULL ? strchr (uri, '?') : NULL;
    const size_t length = uri == NULL ? 0 : query != NULL ? (size_t) (query - uri) : strlen (uri);
    if (uri == NULL || length > PLACES_URI_BYTES_MAX)
        return core_error (error, TMQ_INVALID, "endpoint: a URI of at most %d bytes",
                           PLACES_URI_BYTES_MAX);
    memcpy (out->uri, uri, length);
    const int code = check_uri (out->uri, error);
    return code == TMQ_OK && query != NULL ? parse_query (out, query + 1, error) : code;
}

/* Finding. */

bool places_same (const place_t *one, const place_t *other)
{
    return strcmp (one->uri, other->uri) == 0 && one->insecure == other->insecure &&
           one->has_server_key == other->has_server_key &&
           (!one->has_server_key || memcmp (one->server_key.bytes, other->server_key.bytes,
                                            sizeof one->server_key.bytes) == 0);
}

int places_too_many (const char *uri, tmq_error_t *error)
{
    return core_error (error, TMQ_INVALID,
                       "endpoint: a client has at most %d different ones, and '%.100s' is one more",
                       TMQ_ENDPOINTS_MAX, uri);
}

/* One that is there already is not added again. */
static int add (places_t *self, const char *uri, size_t most, tmq_error_t *error)
{
    place_t place;
    int code = places_parse (&place, uri, error);
    if (code != TMQ_OK)
        return code;
    for (size_t i = 0; i < self->count; i++)
        if (places_same (&self->list[i], &place))
            return TMQ_OK;
    if (self->count == most)
        return places_too_many (uri, error);
    place_t *list = realloc (self->list, (self->count + 1) * sizeof *list);
    if (list == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    self->list = list;
    list[self->count++] = place;
    return TMQ_OK;
}

/* Adds each word of text, which is changed. */
static int add_words (places_t *self, char *text, size_t most, tmq_error_t *error)
{
    char *rest = NULL;
    int code = TMQ_OK;
    for (char *uri = strtok_r (text, white, &rest); uri != NULL && code == TMQ_OK;
         uri = strtok_r (NULL, white, &rest))
        code = add (self, uri, most, error);
    return code;
}

/* An error in what is not in the caller's hand tells where it stands. */
static int blame (int code, const char *where, tmq_error_t *error)
{
    if (code == TMQ_INVALID && error != NULL) {
        char text[sizeof error->text];
        memcpy (text, error->text, sizeof text);
        return core_error (error, code, "%.200s: %.300s", where, text);
    }
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

/* The first that knows a place says where. */

static int use_endpoints (places_t *out, const tmq_client_options_t *options, tmq_error_t *error)
{
    int code = TMQ_OK;
    snprintf (out->told_by, sizeof out->told_by, "the caller");
    for (size_t i = 0; i < options->endpoints_count && code == TMQ_OK; i++)
        code = add (out, options->endpoints[i], TMQ_ENDPOINTS_MAX, error);
    return code;
}

static int use_directory (places_t *out, const char *directory, tmq_error_t *error)
{
    out->named = true;
    out->directory = absolute (directory);
    if (out->directory == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    snprintf (out->told_by, sizeof out->told_by, "%s", out->directory);
    return TMQ_OK;
}

/* The endpoints of a profile, if it has some. */
static int use_profile (places_t *out, const char *name, tmq_error_t *error)
{
    char reason[PROFILE_ERROR_SIZE];
    profile_t *profile = malloc (sizeof *profile);
    if (profile == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    int code = TMQ_OK;
    if (profile_path (out->profile, name, reason) != 0 ||
        profile_read (profile, out->profile, reason) != 0) {
        profile->count = 0;
        code = core_error (error, TMQ_INVALID, "%s", reason);
    }
    const char *directory = profile_value (profile, "directory");
    for (size_t i = 0; i < profile->count && code == TMQ_OK; i++)
        if (strcmp (profile->lines[i].key, "endpoint") == 0)
            code = blame (add (out, profile->lines[i].value, TMQ_ENDPOINTS_MAX, error),
                          out->profile, error);
    if (code == TMQ_OK && out->count == 0 && directory != NULL)
        code = use_directory (out, directory, error);
    out->of_profile = out->count > 0;
    snprintf (out->told_by, sizeof out->told_by, "profile %.200s", name);
    profile_clear (profile);
    free (profile);
    return code;
}

static int use_environment (places_t *out, const char *environment, tmq_error_t *error)
{
    char *text = strdup (environment);
    if (text == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    const int code = add_words (out, text, TMQ_ENDPOINTS_MAX, error);
    free (text);
    snprintf (out->told_by, sizeof out->told_by, "TASKMQ_ENDPOINT");
    return blame (code, out->told_by, error);
}

static bool is_found (const places_t *self)
{
    return self->count > 0 || self->directory != NULL;
}

static int nothing_found (const char *ignored, tmq_error_t *error)
{
    int code = core_error (error, TMQ_UNREACHABLE,
                           "no broker is known: no endpoint, no TASKMQ_ENDPOINT, no profile, no "
                           ".taskmq directory here or above");
    char name[PROFILE_NAME_SIZE];
    if (error == NULL)
        return code;
    if (ignored[0] == '\0' && profile_first (name))
        snprintf (error->hint, sizeof error->hint,
                  "a saved connection is taken when it is named: --profile %s", name);
    else
        snprintf (error->hint, sizeof error->hint, "%s",
                  ignored[0] != '\0'
                      ? ignored
                      : "start 'taskmqd' in the project's directory, or name an endpoint");
    return code;
}

/* Nobody said anything: what is usual. */
static int find_usual (places_t *out, tmq_error_t *error)
{
    char ignored[TRUST_REASON_SIZE], name[PROFILE_NAME_SIZE];
    out->directory = trust_nearest (ignored);
    if (out->directory != NULL) {
        snprintf (out->told_by, sizeof out->told_by, "%s", out->directory);
        return TMQ_OK;
    }
    int code = TMQ_OK;
    if (profile_chosen (name))
        code = use_profile (out, name, error);
    if (code == TMQ_OK && !is_found (out) && access (MACHINE_SOCKET, F_OK) == 0) {
        snprintf (out->told_by, sizeof out->told_by, "the machine's broker");
        code = add (out, "ipc://" MACHINE_SOCKET, TMQ_ENDPOINTS_MAX, error);
    }
    return code == TMQ_OK && !is_found (out) ? nothing_found (ignored, error) : code;
}

int places_find (places_t *out, const tmq_client_options_t *options, tmq_error_t *error)
{
    const char *environment = getenv ("TASKMQ_ENDPOINT");
    const char *profile = getenv ("TASKMQ_PROFILE");
    const bool named = options->profile != NULL && options->profile[0] != '\0';
    int code = TMQ_OK;
    memset (out, 0, sizeof *out);
    if (named)
        code = use_profile (out, options->profile, error);
    if (code == TMQ_OK && options->endpoints_count > 0) {
        out->count = 0; /* only the rest is the profile's */
        out->of_profile = false;
        code = use_endpoints (out, options, error);
    } else if (code == TMQ_OK && options->directory != NULL && options->directory[0] != '\0') {
        free (out->directory);
        out->count = 0;
        out->of_profile = false;
        code = use_directory (out, options->directory, error);
    }
    if (code == TMQ_OK && !is_found (out) && environment != NULL)
        code = use_environment (out, environment, error);
    if (code == TMQ_OK && !named && profile != NULL && profile[0] != '\0' && !is_found (out))
        code = use_profile (out, profile, error);
    if (code == TMQ_OK && !is_found (out))
        code = find_usual (out, error);
    if (code != TMQ_OK)
        places_free (out);
    return code;
}

void places_free (places_t *self)
{
    free (self->list);
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

/* What a broker leaves in its lock: its pid, and whether it waits. */
static bool is_standby (int fd)
{
    char text[64];
    const ssize_t got = pread (fd, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return strstr (text, "\nstandby\n") != NULL;
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
    const bool waits = held && is_standby (fd);
    if (fd >= 0)
        close (fd);
    snprintf (hint, sizeof hint, "taskmqd --data %s", self->directory);
    if (waits)
        absent (why, true, "a standby waits here",
                "name the owner's endpoint, too (TASKMQ_ENDPOINT)");
    else if (held)
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

bool places_uri (const places_t *self, size_t index, uint64_t attempt, place_t *out, absence_t *why)
{
    char text[FILE_BYTES_MAX];
    places_t found = {0};
    if (self->directory == NULL) {
        *out = self->list[index];
        return true;
    }
    if (!is_trusted (self, why) || !read_file (self, text, why))
        return false;
    bool good = add_words (&found, text, PLACES_FILE_MAX, NULL) == TMQ_OK && found.count > 0;
    if (good)
        *out = found.list[attempt > 0 ? (attempt - 1) % found.count : 0]; /* the own socket first */
    else
        absent (why, false, "its file 'endpoint' holds something else", "");
    places_free (&found);
    return good;
}

/* Connects by hand, because ZeroMQ does not tell why it could not; errno, 0 for success. The caller
 * closes *fd unless it is -1. */
static int try_open (int *fd, const struct sockaddr *address, socklen_t size)
{
    *fd = socket (address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return errno;
    int failed = connect (*fd, address, size) == 0 ? 0 : errno;
    if (failed == EINPROGRESS) {
        struct pollfd item = {*fd, POLLOUT, 0};
        socklen_t length = sizeof failed;
        if (poll (&item, 1, TCP_WAIT_MS) > 0)
            getsockopt (*fd, SOL_SOCKET, SO_ERROR, &failed, &length);
    }
    return failed;
}

static int try (const struct sockaddr *address, socklen_t size)
{
    int fd;
    int failed = try_open (&fd, address, size);
    if (fd >= 0)
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

/* Only addresses in numbers: nobody is kept waiting by a name server. The caller frees it. */
static struct addrinfo *address_of (const char *uri)
{
    char host[PLACES_URI_BYTES_MAX + 1];
    const char *port;
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                    .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (!split_tcp (uri, host, &port) ||
        getaddrinfo (strcmp (host, "localhost") == 0 ? "127.0.0.1" : host, port, &wanted, &found) !=
            0)
        return NULL;
    return found;
}

static int try_tcp (const char *uri)
{
    struct addrinfo *found = address_of (uri);
    if (found == NULL)
        return EAGAIN;
    int failed = try (found->ai_addr, found->ai_addrlen);
    freeaddrinfo (found);
    return failed;
}

/* Whether the host of a tcp URI has an address; a name server has little time for the answer. */
static bool has_address (const char *uri, absence_t *why)
{
    char host[PLACES_URI_BYTES_MAX + 1];
    const char *port;
    int failed;
    struct addrinfo *found = address_of (uri);
    if (found == NULL && split_tcp (uri, host, &port) &&
        names_resolve (&found, &failed, host, port, TCP_WAIT_MS) && failed != 0) {
        if (failed == EAI_NONAME || failed == EAI_NODATA)
            absent (why, true, "there is no host of this name",
                    "look at the name; 'getent hosts NAME' asks for its address");
        else
            absent (why, false, gai_strerror (failed), "");
        return false;
    }
    if (found != NULL)
        freeaddrinfo (found);
    return true;
}

/* Reads the peer's greeting; true if it came whole in time. Ours is not finished, so the peer
 * cannot have found anything wrong with it. */
static bool read_greeting (int fd, uint8_t greeting[GREETING_BYTES])
{
    static const uint8_t signature[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3}; /* and version 3 */
    size_t length = 0;
    if (send (fd, signature, sizeof signature, MSG_NOSIGNAL) != (ssize_t) sizeof signature)
        return false;
    while (length < GREETING_BYTES) {
        struct pollfd item = {fd, POLLIN, 0};
        if (poll (&item, 1, TCP_WAIT_MS) <= 0)
            return false;
        const ssize_t got = recv (fd, greeting + length, GREETING_BYTES - length, 0);
        if (got <= 0)
            return false;
        length += (size_t) got;
    }
    return true;
}

bool places_mechanism (const char *uri, char out[MECHANISM_BYTES + 1])
{
    uint8_t greeting[GREETING_BYTES];
    int fd = -1;
    struct addrinfo *found = address_of (uri);
    if (found == NULL)
        return false;
    const bool good =
        try_open (&fd, found->ai_addr, found->ai_addrlen) == 0 && read_greeting (fd, greeting);
    freeaddrinfo (found);
    if (fd >= 0)
        close (fd);
    if (good)
        snprintf (out, MECHANISM_BYTES + 1, "%.*s", MECHANISM_BYTES,
                  (const char *) greeting + MECHANISM_AT);
    return good;
}

void places_look (const places_t *self, const char *uri, absence_t *why)
{
    const char *path = path_of (uri);
    if (path == NULL && !has_address (uri, why))
        return;
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
