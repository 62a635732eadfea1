/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: an address that cannot be listened on, or cannot be guarded, ends the start. */
#include "doors.h"

#include <czmq.h>
#include <limits.h>
#include <sys/stat.h>

#include "confine.h"
#include "log/log.h"
#include "net/probe.h"
#include "notify.h"
#include "server_key.h"

#define KEY_PART "?server_key="
#define IPC "ipc://"

static bool wants_key (const doors_t *self)
{
    char error[ADDRESS_ERROR_SIZE];
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    address_t address;
    const config_value_t *listen = &self->config->values[CONFIG_LISTEN];
    const config_value_t *feeds = &self->config->values[CONFIG_FEED];
    for (size_t i = 0; i < listen->items_count; i++)
        if (address_parse (&address, listen->items[i].text, error, sizeof (error)) && address.curve)
            return true;
    for (size_t i = 0; i < feeds->items_count; i++) {
        const char *uri;
        if (config_split_feed (feeds->items[i].text, ns, &uri) &&
            address_parse (&address, uri, error, sizeof (error)) && address.curve)
            return true;
    }
    return false;
}

exits_t doors_key (doors_t *self)
{
    char error[SERVER_KEY_ERROR_SIZE];
    bool made = false;
    if (!wants_key (self))
        return EXITS_OK;
    if (self->config->numbers[CONFIG_CORE_DUMPS] == 0 && !confine_memory ())
        return exits_fail (EXITS_INTERNAL, "cannot keep the key out of core dumps");
    exits_t code = server_key_open (&self->server_key, &made, self->data, error);
    if (code != EXITS_OK)
        return exits_fail (code, error);
    char text[KEY_TEXT_SIZE];
    self->has_server_key = true;
    key_public_of (&self->server_public, &self->server_key);
    key_text_public (text, &self->server_public);
    log_write (LOG_LEVEL_INFO, "SERVER-KEY", made ? "made a key for this broker" : "has a key",
               LOG_FIELDS (LOG_TEXT ("public", text)));
    return EXITS_OK;
}

/* How many threads ZeroMQ is to have; after doors_key. */
static unsigned doors_io_threads (const doors_t *self)
{
    enum { PROCESSORS_FOR_TWO = 4 };
    uint64_t said = self->config->numbers[CONFIG_IO_THREADS];
    if (said != 0)
        return (unsigned) said;
    return self->has_server_key && sysconf (_SC_NPROCESSORS_ONLN) >= PROCESSORS_FOR_TWO ? 2 : 1;
}

guard_t doors_guard (doors_t *self)
{
    const config_value_t *networks = &self->config->values[CONFIG_ALLOW_FROM];
    for (size_t i = 0; i < networks->items_count; i++)
        self->networks[i] = networks->items[i].text;
    return (guard_t){.server_key = self->has_server_key ? &self->server_key : NULL,
                     .networks = self->networks,
                     .networks_count = networks->items_count,
                     .io_threads = doors_io_threads (self),
                     .handshake_ms = (int) self->config->numbers[CONFIG_HANDSHAKE]};
}

static exits_t cannot_listen (const listen_error_t *error)
{
    return exits_fail (error->open ? EXITS_KEYS : EXITS_LISTEN, error->text);
}

/* Nobody may find a door open that should be shut. */
static exits_t look_at_door (doors_t *self, const char *endpoint, bool feed)
{
    char error[ADDRESS_ERROR_SIZE];
    if (probe_door (zsys_init (), self->zap, endpoint, feed, &self->server_public, error,
                    sizeof (error)))
        return EXITS_OK;
    log_write (LOG_LEVEL_ERROR, "DOOR-OPEN", error, LOG_FIELDS (LOG_TEXT ("endpoint", endpoint)));
    return exits_fail (EXITS_KEYS, error);
}

/* What clients read: with the key that they have to know. */
static void name_endpoint (const doors_t *self, const address_t *address, const char *endpoint,
                           doors_endpoint_t *out)
{
    char key[KEY_TEXT_SIZE];
    snprintf (out->text, sizeof (out->text), "%s", endpoint);
    if (!address->curve)
        return;
    key_text_public (key, &self->server_public);
    snprintf (out->text, sizeof (out->text), "%s" KEY_PART "%s", endpoint, key);
}

/* In the log, where it lets in more than one may think, and in the record. */
static void tell_domain (const doors_t *self, const address_t *address, const char *domain,
                         const char *endpoint)
{
    const policy_t *policy = access_file_policy (self->access);
    bool local = policy == NULL || policy_by_address (policy, "local") != NULL;
    audit_note (self->audit,
                &(audit_line_t){.kind = AUDIT_LISTEN, .object = endpoint, .detail = domain});
    if (address->plain)
        log_write (LOG_LEVEL_WARNING, "INSECURE",
                   "whoever reaches this address is let in, and everything can be read on the way",
                   LOG_FIELDS (LOG_TEXT ("endpoint", endpoint)));
    else if (address->kind == ADDRESS_TCP && !address->curve && local)
        log_write (LOG_LEVEL_WARNING, "LOOPBACK-OPEN",
                   "every user of this machine is let in at this address",
                   LOG_FIELDS (LOG_TEXT ("endpoint", endpoint)));
}

/* Invitations name the first address with keys that another machine can reach. */
static void tell_joiners (doors_t *self, const char *endpoint)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    char place[JOIN_PLACE_BYTES_MAX + 1];
    const char *at = endpoint + strlen ("tcp://");
    const char *colon = strrchr (at, ':');
    const char *told = config_text (self->config, CONFIG_ADVERTISE);
    bool everywhere = strncmp (at, "0.0.0.0:", 8) == 0 || strncmp (at, "[::]:", 5) == 0;
    if (self->joiners_told || colon == NULL)
        return;
    self->joiners_told = true;
    if (told != NULL)
        snprintf (place, sizeof (place), "%s", told);
    else if (everywhere && gethostname (host, sizeof (host) - 1) == 0)
        snprintf (place, sizeof (place), "%s%.16s", host, colon);
    else
        snprintf (place, sizeof (place), "%.250s", at);
    access_requests_listen (self->requests, &self->server_public, place);
}

/* A socket beside that of the data directory is for other users, too, once there is a file that
 * says what they may. It was made for this user alone, so there is no moment at which it is open
 * too far. What the file said counts also when it is gone. False with an error. */
static bool open_to_users (const char *endpoint, char error[ADDRESS_ERROR_SIZE])
{
    enum { EVERY_USER = 0666 };
    const char *path = endpoint + strlen (IPC);
    if (chmod (path, EVERY_USER) == 0)
        return true;
    snprintf (error, ADDRESS_ERROR_SIZE, "cannot open %s to other users: %s", path,
              strerror (errno));
    return false;
}

void doors_open_to_users (doors_t *self)
{
    char error[ADDRESS_ERROR_SIZE];
    for (size_t i = 1; !self->open_to_users && i < self->endpoints_count; i++)
        if (strncmp (self->endpoints[i].text, IPC, strlen (IPC)) == 0 &&
            !open_to_users (self->endpoints[i].text, error))
            log_write (LOG_LEVEL_ERROR, "LISTEN-SHUT",
                       "other users do not reach an address that they may use now",
                       LOG_FIELDS (LOG_TEXT ("error", error)));
    self->open_to_users = true;
}

/* One address: the data directory's own socket is the first. */
static exits_t listen_on (doors_t *self, const address_t *address, doors_endpoint_t *out, bool own)
{
    char text[ADDRESS_ERROR_SIZE];
    listen_error_t error;
    const char *endpoint = router_bind (self->router, address, &error);
    if (endpoint == NULL)
        return cannot_listen (&error);
    if (address->kind == ADDRESS_IPC && !own && self->open_to_users &&
        !open_to_users (endpoint, text))
        return exits_fail (EXITS_LISTEN, text);
    name_endpoint (self, address, endpoint, out);
    if (address->curve)
        tell_joiners (self, endpoint);
    log_write (LOG_LEVEL_INFO, "LISTEN", address->moved ? "listens on a shorter path" : "listens",
               LOG_FIELDS (LOG_TEXT ("endpoint", endpoint),
                           LOG_TEXT ("domain", address_domain (address))));
    tell_domain (self, address, address_domain (address), endpoint);
    return address->curve ? look_at_door (self, endpoint, false) : EXITS_OK;
}

static exits_t listen_on_all (doors_t *self, config_key_t key, doors_endpoint_t *out)
{
    const config_value_t *value = &self->config->values[key];
    exits_t code = EXITS_OK;
    for (size_t i = 0; code == EXITS_OK && i < value->items_count; i++) {
        char error[ADDRESS_ERROR_SIZE];
        address_t address;
        bool good =
            key == CONFIG_INSECURE_LISTEN
                ? address_parse_plain (&address, value->items[i].text, error, sizeof (error))
                : address_parse (&address, value->items[i].text, error, sizeof (error));
        code =
            good ? listen_on (self, &address, &out[i], false) : exits_fail (EXITS_ADDRESS, error);
    }
    return code;
}

static exits_t publish_on (doors_t *self, const char *item)
{
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    char domain[TMQ_NAME_LENGTH_MAX + sizeof ("feed/")];
    const char *uri;
    char text[ADDRESS_ERROR_SIZE];
    address_t address;
    listen_error_t error;
    guard_t guard = doors_guard (self);
    if (!config_split_feed (item, ns, &uri) || !address_parse (&address, uri, text, sizeof (text)))
        return exits_fail (EXITS_ADDRESS, text);
    const char *endpoint = feed_bind (self->feed, ns, &address, &guard, &error);
    if (endpoint == NULL)
        return cannot_listen (&error);
    log_write (LOG_LEVEL_INFO, "FEED", "publishes events",
               LOG_FIELDS (LOG_TEXT ("namespace", ns), LOG_TEXT ("endpoint", endpoint)));
    snprintf (domain, sizeof (domain), "feed/%s", ns);
    tell_domain (self, &address, domain, endpoint);
    return address.curve ? look_at_door (self, endpoint, true) : EXITS_OK;
}

static bool own_address (address_t *out, const data_t *data, char error[ADDRESS_ERROR_SIZE])
{
    char uri[DATA_PATH_SIZE + 32];
    snprintf (uri, sizeof (uri), IPC "%s/" DATA_SOCKET_NAME, data->directory);
    return address_parse (out, uri, error, ADDRESS_ERROR_SIZE);
}

static exits_t listen_on_own (doors_t *self, doors_endpoint_t *out)
{
    char error[ADDRESS_ERROR_SIZE];
    address_t address;
    if (!own_address (&address, self->data, error))
        return exits_fail (EXITS_ADDRESS, error);
    return listen_on (self, &address, out, true);
}

/* A socket that is dead: the lock beside it is ours for the moment. */
static void remove_dead (const address_t *address)
{
    char error[ADDRESS_ERROR_SIZE];
    const char *path = address->uri + strlen (IPC);
    int lock = address->kind == ADDRESS_IPC && access (path, F_OK) == 0
                   ? address_lock_ipc (path, error, sizeof (error))
                   : -1;
    if (lock < 0)
        return;
    unlink (path);
    close (lock);
}

void doors_sweep (const config_t *config, const data_t *data)
{
    char error[ADDRESS_ERROR_SIZE];
    address_t address;
    const config_value_t *listen = &config->values[CONFIG_LISTEN];
    if (own_address (&address, data, error))
        remove_dead (&address);
    for (size_t i = 0; i < listen->items_count; i++)
        if (address_parse (&address, listen->items[i].text, error, sizeof (error)))
            remove_dead (&address);
}

/* Where keys are asked for, an address without them would be a way around. */
static exits_t check_insecure (const doors_t *self)
{
    if (self->config->values[CONFIG_INSECURE_LISTEN].items_count == 0 ||
        !zap_lists_keys (self->zap))
        return EXITS_OK;
    return exits_fail (EXITS_KEYS, "--insecure-listen beside an access file that lists keys: "
                                   "leave one of them out");
}

static exits_t write_endpoints (const doors_t *self, char error[DATA_ERROR_SIZE])
{
    const char *uris[DOORS_ENDPOINTS_MAX];
    for (size_t i = 0; i < self->endpoints_count; i++)
        uris[i] = self->endpoints[i].text;
    return data_write_endpoints (self->data, uris, self->endpoints_count, error);
}

/* All of them are asked for; the router says when they are too many. */
exits_t doors_open (doors_t *self)
{
    doors_endpoint_t *endpoints = self->endpoints;
    const config_value_t *feeds = &self->config->values[CONFIG_FEED];
    size_t open = self->config->values[CONFIG_LISTEN].items_count + 1;
    size_t count = open + self->config->values[CONFIG_INSECURE_LISTEN].items_count;
    char error[DATA_ERROR_SIZE];
    self->open_to_users = access_file_policy (self->access) != NULL;
    exits_t code = check_insecure (self);
    if (code == EXITS_OK)
        code = listen_on_own (self, &endpoints[0]);
    if (code == EXITS_OK)
        code = listen_on_all (self, CONFIG_LISTEN, &endpoints[1]);
    if (code == EXITS_OK)
        code = listen_on_all (self, CONFIG_INSECURE_LISTEN, &endpoints[open]);
    for (size_t i = 0; code == EXITS_OK && i < feeds->items_count; i++)
        code = publish_on (self, feeds->items[i].text);
    if (code != EXITS_OK)
        return code;
    self->endpoints_count = count;
    code = write_endpoints (self, error);
    if (code != EXITS_OK)
        return exits_fail (code, error);
    log_write (LOG_LEVEL_INFO, "READY", "takes requests",
               LOG_FIELDS (LOG_TEXT ("endpoint", endpoints[0].text),
                           LOG_TEXT ("version", TASKMQ_VERSION), LOG_NUMBER ("pid", getpid ())));
    notify_supervisor ("READY=1\nSTATUS=takes requests");
    return EXITS_OK;
}

/* What clients read goes on naming the same addresses. */
static void rename_endpoints (doors_t *self, const char *key)
{
    char error[DATA_ERROR_SIZE];
    for (size_t i = 0; i < self->endpoints_count; i++) {
        char *part = strstr (self->endpoints[i].text, KEY_PART);
        if (part != NULL)
            snprintf (part + strlen (KEY_PART), KEY_TEXT_SIZE, "%s", key);
    }
    if (write_endpoints (self, error) != EXITS_OK)
        log_write (LOG_LEVEL_WARNING, "ENDPOINT-OLD",
                   "the file that names the addresses names the key that has ended",
                   LOG_FIELDS (LOG_TEXT ("error", error)));
}

void doors_change_key (doors_t *self, const key_secret_t *key)
{
    char text[KEY_TEXT_SIZE];
    self->server_key = *key;
    key_public_of (&self->server_public, key);
    key_text_public (text, &self->server_public);
    access_requests_change_key (self->requests, &self->server_public);
    rename_endpoints (self, text);
    router_outdate (self->router);
    feed_outdate (self->feed);
    log_write (LOG_LEVEL_INFO, "SERVER-KEY", "has another key from now on",
               LOG_FIELDS (LOG_TEXT ("public", text)));
}

void doors_renew (doors_t *self, int64_t now_ms)
{
    listen_error_t error;
    bool good = router_renew (self->router, now_ms, &error);
    good = feed_renew (self->feed, now_ms, &error) && good;
    if (!good && !self->renew_failed)
        log_write (LOG_LEVEL_ERROR, "LISTEN-LOST",
                   "an address that was closed for a moment cannot be opened again: tried each "
                   "second",
                   LOG_FIELDS (LOG_TEXT ("error", error.text)));
    self->renew_failed = !good;
}

bool doors_are_closing (const doors_t *self)
{
    return router_is_closing (self->router) || feed_is_closing (self->feed);
}
