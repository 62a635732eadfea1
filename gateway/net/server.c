/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log/log.h"

enum {
    BACKLOG = 1024,
    ACCEPT_PAUSE_MS = 1000 /* when no descriptor is left */
};

static const char UNIX_PREFIX[] = "unix:";

typedef struct listener {
    struct listener *next;
    struct evconnlistener *listener;
    char path[sizeof ((struct sockaddr_un *) NULL)->sun_path]; /* of a socket file; "": none */
} listener_t;

struct server {
    connections_t connections;
    listener_t *listeners;
    watch_t *pause; /* of accepting */
    watch_fn *drained;
    void *drained_context;
};

static void each_listener (server_t *self, int (*fn) (struct evconnlistener *))
{
    for (listener_t *at = self->listeners; at != NULL; at = at->next)
        fn (at->listener);
}

static void accept_again (void *context)
{
    each_listener (context, evconnlistener_enable);
}

server_t *server_new (loop_t *loop, const settings_t *settings, const exchange_handler_t *handler)
{
    server_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    account_retain (&self->connections.numbers.strangers); /* it is no memory of its own */
    self->connections.loop = loop;
    self->connections.settings = settings;
    self->connections.handler = handler;
    self->pause = loop_timer (loop, accept_again, self);
    if (self->pause == NULL)
        server_free (&self);
    return self;
}

static void free_listeners (server_t *self)
{
    while (self->listeners != NULL) {
        listener_t *listener = self->listeners;
        self->listeners = listener->next;
        if (listener->path[0] != '\0')
            unlink (listener->path);
        evconnlistener_free (listener->listener);
        free (listener);
    }
}

void server_free (server_t **self)
{
    if (*self == NULL)
        return;
    (*self)->connections.left = NULL;
    (*self)->connections.stopping = true;
    free_listeners (*self);
    while ((*self)->connections.first != NULL)
        connection_free ((*self)->connections.first);
    watch_free (&(*self)->pause);
    free (*self);
    *self = NULL;
}

const connections_numbers_t *server_numbers (const server_t *self)
{
    return &self->connections.numbers;
}

/* Accepting. */

static void name_peer (char out[EXCHANGE_PEER_SIZE], const struct sockaddr *address)
{
    const void *ip = NULL;
    snprintf (out, EXCHANGE_PEER_SIZE, "unix");
    if (address->sa_family == AF_INET)
        ip = &((const struct sockaddr_in *) (const void *) address)->sin_addr;
    else if (address->sa_family == AF_INET6)
        ip = &((const struct sockaddr_in6 *) (const void *) address)->sin6_addr;
    if (ip != NULL)
        inet_ntop (address->sa_family, ip, out, EXCHANGE_PEER_SIZE);
}

/* A place that is not there is told in a few bytes, which a new socket always takes. */
static void turn_away (const server_t *self, int fd)
{
    response_t response;
    bytes_t out = BYTES_INIT;
    response_init (&response, 503);
    self->connections.handler->refuse (self->connections.handler->context, NULL, &response, 503,
                                       "as many connections are open as may be");
    response_write (&out, &response, (response_frame_t){.close = true});
    if (!out.failed) {
        const ssize_t sent = send (fd, out.data, out.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void) sent;
    }
    bytes_free (&out);
    response_clear (&response);
    close (fd);
}

static void accepted (struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *context)
{
    server_t *self = context;
    char peer[EXCHANGE_PEER_SIZE];
    (void) listener;
    (void) length;
    name_peer (peer, address);
    connections_t *set = &self->connections;
    const bool full = set->numbers.connections >= set->settings->numbers[SETTING_CONNECTIONS_MAX];
    if ((full && !connections_make_room (set)) || connection_new (set, fd, peer) == NULL) {
        set->numbers.refused++;
        turn_away (self, fd);
        return;
    }
    set->numbers.accepted++;
}

static void accept_failed (struct evconnlistener *listener, void *context)
{
    server_t *self = context;
    const int code = EVUTIL_SOCKET_ERROR ();
    (void) listener;
    /* Who is the longest without a word makes room here, too; the newcomer is accepted then. */
    if ((code == EMFILE || code == ENFILE) && connections_make_room (&self->connections))
        return;
    log_write (LOG_LEVEL_WARNING, "GATEWAY-ACCEPT", "a connection could not be accepted",
               LOG_FIELDS (LOG_TEXT ("error", strerror (code))));
    each_listener (self, evconnlistener_disable);
    watch_after (self->pause, ACCEPT_PAUSE_MS);
}

/* Listening. */

typedef union address {
    struct sockaddr any;
    struct sockaddr_storage storage;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
} address_t;

static bool parse_ip (address_t *out, int *length, const char *text)
{
    char ip[INET6_ADDRSTRLEN + 2];
    char *end;
    const char *colon = strrchr (text, ':');
    if (colon == NULL || colon[1] < '0' || colon[1] > '9' || (size_t) (colon - text) >= sizeof ip)
        return false;
    const unsigned long port = strtoul (colon + 1, &end, 10);
    size_t ip_length = (size_t) (colon - text);
    memcpy (ip, text, ip_length);
    ip[ip_length] = '\0';
    if (*end != '\0' || port > UINT16_MAX)
        return false;
    if (ip_length > 2 && ip[0] == '[' && ip[ip_length - 1] == ']') {
        ip[ip_length - 1] = '\0';
        out->in6.sin6_family = AF_INET6;
        out->in6.sin6_port = htons ((uint16_t) port);
        *length = (int) sizeof out->in6;
        return inet_pton (AF_INET6, ip + 1, &out->in6.sin6_addr) == 1;
    }
    out->in.sin_family = AF_INET;
    out->in.sin_port = htons ((uint16_t) port);
    *length = (int) sizeof out->in;
    return inet_pton (AF_INET, ip, &out->in.sin_addr) == 1;
}

static bool parse_address (address_t *out, int *length, const char *text)
{
    memset (out, 0, sizeof *out);
    if (strncmp (text, UNIX_PREFIX, sizeof UNIX_PREFIX - 1) != 0)
        return parse_ip (out, length, text);
    const char *path = text + sizeof UNIX_PREFIX - 1;
    out->un.sun_family = AF_UNIX;
    *length = (int) sizeof out->un;
    return *path != '\0' && (size_t) snprintf (out->un.sun_path, sizeof out->un.sun_path, "%s",
                                               path) < sizeof out->un.sun_path;
}

bool server_is_address (const char *text)
{
    address_t address;
    int length;
    return parse_address (&address, &length, text);
}

bool server_is_local (const char *text)
{
    address_t address;
    int length;
    if (!parse_address (&address, &length, text))
        return false;
    if (address.any.sa_family == AF_INET)
        return ntohl (address.in.sin_addr.s_addr) >> 24 == 127;
    return address.any.sa_family == AF_UNIX || IN6_IS_ADDR_LOOPBACK (&address.in6.sin6_addr);
}

/* A socket file that nobody listens on any more is in the way. */
static void remove_stale (const address_t *address)
{
    struct stat status;
    const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (lstat (address->un.sun_path, &status) == 0 && S_ISSOCK (status.st_mode) &&
        connect (fd, &address->any, sizeof address->un) != 0 && errno == ECONNREFUSED)
        unlink (address->un.sun_path);
    close (fd);
}

static void describe (char out[ADDRESS_SIZE], const char *text, struct evconnlistener *listener)
{
    address_t address = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t length = sizeof address;
    char ip[INET6_ADDRSTRLEN] = "";
    snprintf (out, ADDRESS_SIZE, "%s", text);
    if (getsockname (evconnlistener_get_fd (listener), &address.any, &length) != 0)
        return;
    if (address.any.sa_family == AF_INET)
        snprintf (out, ADDRESS_SIZE, "http://%s:%u",
                  inet_ntop (AF_INET, &address.in.sin_addr, ip, sizeof ip),
                  ntohs (address.in.sin_port));
    else if (address.any.sa_family == AF_INET6)
        snprintf (out, ADDRESS_SIZE, "http://[%s]:%u",
                  inet_ntop (AF_INET6, &address.in6.sin6_addr, ip, sizeof ip),
                  ntohs (address.in6.sin6_port));
}

bool server_listen (server_t *self, const char *text, char out[ADDRESS_SIZE],
                    char error[SERVER_ERROR_SIZE])
{
    address_t address;
    int length;
    if (!parse_address (&address, &length, text)) {
        snprintf (error, SERVER_ERROR_SIZE,
                  "'%.100s' is no address: it is ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH", text);
        return false;
    }
    const bool is_file = address.any.sa_family == AF_UNIX;
    listener_t *listener = calloc (1, sizeof *listener);
    if (listener == NULL) {
        snprintf (error, SERVER_ERROR_SIZE, "memory is exhausted");
        return false;
    }
    if (is_file)
        remove_stale (&address);
    const mode_t mask = umask (0177);
    listener->listener = evconnlistener_new_bind (
        loop_base (self->connections.loop), accepted, self,
        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | (is_file ? 0 : LEV_OPT_REUSEABLE), BACKLOG,
        &address.any, length);
    umask (mask);
    if (listener->listener == NULL) {
        snprintf (error, SERVER_ERROR_SIZE, "%.100s: %s", text, strerror (errno));
        free (listener);
        return false;
    }
    if (is_file)
        memcpy (listener->path, address.un.sun_path, sizeof listener->path);
    evconnlistener_set_error_cb (listener->listener, accept_failed);
    listener->next = self->listeners;
    self->listeners = listener;
    describe (out, text, listener->listener);
    return true;
}

void server_each (server_t *self, exchange_fn *fn, void *context)
{
    connections_each (&self->connections, fn, context);
}

/* The end. */

static void one_left (void *context)
{
    const server_t *self = context;
    if (self->connections.numbers.connections == 0)
        self->drained (self->drained_context);
}

void server_drain (server_t *self, watch_fn *fn, void *context)
{
    self->drained = fn;
    self->drained_context = context;
    self->connections.left = one_left;
    self->connections.left_context = self;
    watch_cancel (self->pause);
    free_listeners (self);
    connections_drain (&self->connections);
    one_left (self);
}
