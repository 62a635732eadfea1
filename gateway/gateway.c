/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "auth/policy.h"
#include "base/effort.h"
#include "base/trees.h"
#include "key_file.h"
#include "mcp/mcp.h"
#include "net/server.h"
#include "pulse.h"
#include "rest/door.h"
#include "rest/metrics.h"
#include "timestamp.h"
#include "trim.h"

enum {
    CHECKS_MS = 1000,
    FILES_OWN = 32, /* that are open beside connections: the log, the loop, listeners, files read */
    FILES_OF_LINK = 32 /* of each way to a broker: sockets, and those that wake its threads */
};

typedef struct gateway {
    config_t *config;
    loop_t *loop;
    service_t service;
    exchange_handler_t handler;
    server_t *server;
    mcp_t *mcp; /* NULL: there are no tools */
    watch_t *term;
    watch_t *interrupt;
    watch_t *hang_up;
    watch_t *drain;
    watch_t *checks; /* of the tokens of what is under way, and of the file */
    pulse_t *pulse;
    trim_t trim;
    bytes_t addresses; /* where it listens, for the file */
    bool told;         /* the file is ours */
    bool warned;       /* it could not be written */
} gateway_t;

static bool fail (const char *id, const char *message, const char *why)
{
    log_write (LOG_LEVEL_ERROR, id, message, LOG_FIELDS (LOG_TEXT ("error", why)));
    return false;
}

/* Tokens. */

/* Without a token nobody could do anything: the first start makes one, for who may read it. */
static bool make_first_token (gateway_t *self)
{
    char token[TOKEN_SIZE + 1];
    char error[TOKENS_ERROR_SIZE];
    const config_t *config = self->config;
    tokens_t *tokens = &self->service.tokens;
    if (!tokens_add (tokens, token, FIRST_TOKEN, "operator", "default", 0, error))
        return fail ("GATEWAY-TOKENS", "the first token could not be made", error);
    memcpy (token + strlen (token), "\n", sizeof "\n");
    /* The other way around, a stop in between would leave a token that nobody can know. */
    if (secret_file_write (config->token, token, strlen (token), true, error) != 0 ||
        !tokens_write (tokens, config->tokens, error))
        return fail ("GATEWAY-TOKENS", "the first token could not be written", error);
    explicit_bzero (token, sizeof token);
    log_write (LOG_LEVEL_INFO, "GATEWAY-FIRST-TOKEN", "a token was made, for who may read the file",
               LOG_FIELDS (LOG_TEXT ("path", config->token)));
    return true;
}

static bool begin_tokens (gateway_t *self)
{
    char error[TOKENS_ERROR_SIZE];
    const config_t *config = self->config;
    if (config->no_auth) {
        const principal_t anybody = {.name = "anybody",
                                     .roles = ROLE_OPERATOR,
                                     .namespaces = {"default"},
                                     .namespaces_count = 1};
        self->service.anybody = principal_new (&anybody);
        if (self->service.anybody == NULL)
            return fail ("GATEWAY-START", "memory is exhausted", "");
        log_write (LOG_LEVEL_WARNING, "GATEWAY-NO-AUTH",
                   "whoever reaches it may do everything: it was started with --insecure-no-auth",
                   NULL);
        return true;
    }
    if (!tokens_read (&self->service.tokens, config->tokens, error))
        return fail ("GATEWAY-TOKENS", "the tokens could not be read", error);
    return self->service.tokens.count > 0 || access (config->tokens, F_OK) == 0 ||
           make_first_token (self);
}

static bool read_proxy_secret (gateway_t *self)
{
    char error[TOKENS_ERROR_SIZE];
    const config_t *config = self->config;
    return config->proxy_secret == NULL ||
           proxied_read (&self->service.proxied, config->proxy_secret, error) ||
           fail ("GATEWAY-TOKENS", "the secret of the proxy could not be read", error);
}

static bool begin_seal (gateway_t *self)
{
    char error[KEY_FILE_ERROR_SIZE];
    if (!seal_read (&self->service.seal, self->config->key, error))
        return fail ("GATEWAY-KEY", "the key that seals cannot be used", error);
    sessions_init (&self->service.sessions, &self->service.seal, self->config->behind_proxy);
    return true;
}

/* Ways to the broker. */

static bool add_link (gateway_t *self, const char *ns)
{
    service_t *service = &self->service;
    const config_t *config = self->config;
    tmq_client_options_t options;
    tmq_error_t error;
    if (service_link (service, ns) != NULL)
        return true;
    if (service->links_count == SERVICE_LINKS_MAX)
        return fail ("GATEWAY-LINKS", "there are tokens for more namespaces than may be", ns);
    tmq_client_options_init (&options);
    options.endpoints = config->endpoints.list;
    options.endpoints_count = config->endpoints.count;
    options.profile = config->saved;
    if (config->endpoints.count == 0) {
        options.endpoints = NULL;
        options.directory = config->saved == NULL ? config->data : NULL;
    }
    link_t *link = link_new (self->loop, &service->settings, &options, ns, &error);
    if (link == NULL)
        return fail ("GATEWAY-LINKS", "there is no way to the broker", error.text);
    service->links[service->links_count++] = link;
    return true;
}

static bool add_links (gateway_t *self)
{
    const service_t *service = &self->service;
    bool good = service->anybody == NULL || add_link (self, "default");
    for (size_t i = 0; good && i < service->tokens.count; i++)
        for (size_t j = 0; good && j < service->tokens.list[i]->namespaces_count; j++)
            good = add_link (self, service->tokens.list[i]->namespaces[j]);
    return good;
}

/* Where the process may open fewer files than 'connections_max' needs, connections are fewer: else
 * strangers could take those that a way to the broker needs. */
static void fit_connections (gateway_t *self)
{
    struct rlimit limit;
    uint64_t *most = &self->service.settings.numbers[SETTING_CONNECTIONS_MAX];
    const uint64_t before = *most;
    const uint64_t own = FILES_OWN + self->config->settings.numbers[SETTING_UPLOADS_MAX] +
                         FILES_OF_LINK * (uint64_t) self->service.links_count;
    *most = self->config->settings.numbers[SETTING_CONNECTIONS_MAX];
    if (getrlimit (RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= *most + own)
        return;
    *most = limit.rlim_cur > own ? limit.rlim_cur - own : 1;
    if (*most != before)
        log_write (LOG_LEVEL_WARNING, "GATEWAY-FILES",
                   "fewer connections than 'connections_max': the process may not open more files",
                   LOG_FIELDS (LOG_NUMBER ("connections", *most),
                               LOG_NUMBER ("files", (uint64_t) limit.rlim_cur)));
}

/* Tools. */

/* A file that is not there is no mistake, unless it was named; then nothing changes. */
static bool read_tools (gateway_t *self)
{
    char error[TOOLS_ERROR_SIZE];
    const config_t *config = self->config;
    if (!config->tools_told && self->mcp == NULL && access (config->tools, F_OK) != 0)
        return true;
    tools_t *tools = tools_read (config->tools, error);
    if (tools == NULL)
        return fail ("GATEWAY-TOOLS",
                     self->mcp != NULL ? "the tools could not be read; those before stay"
                                       : "the tools could not be read",
                     error);
    const size_t count = tools->count;
    if (self->mcp != NULL)
        mcp_change (self->mcp, tools);
    else
        self->mcp = mcp_new (&self->service, tools);
    if (self->mcp == NULL)
        return fail ("GATEWAY-TOOLS", "memory is exhausted", "");
    log_write (LOG_LEVEL_INFO, "GATEWAY-TOOLS", "the tools were read",
               LOG_FIELDS (LOG_NUMBER ("tools", count)));
    return true;
}

/* Signals. */

/* The file is for people and for 'link': a disk without room for it keeps nobody from being served.
 * One that another gateway left would lie, so it goes. */
static void tell_addresses (gateway_t *self)
{
    char reason[KEY_FILE_ERROR_SIZE];
    const config_t *config = self->config;
    self->told = secret_file_write (config->endpoint, (const char *) self->addresses.data,
                                    self->addresses.length, true, reason) == 0;
    if (self->told)
        return;
    unlink (config->endpoint);
    if (!self->warned)
        log_write (LOG_LEVEL_WARNING, "GATEWAY-ENDPOINT",
                   "where it listens cannot be told by the file; it serves, and tries again",
                   LOG_FIELDS (LOG_TEXT ("error", reason)));
    self->warned = true;
}

/* What is under way for long is not to outlive its token. */
static void check_tokens (gateway_t *self)
{
    server_each (self->server, door_check, &self->service);
}

static void tick (void *context, exchange_t *exchange)
{
    (void) context;
    effort_begin ();
    if (exchange->on_tick != NULL)
        exchange->on_tick (exchange);
}

static void check (void *context)
{
    gateway_t *self = context;
    check_tokens (self);
    server_each (self->server, tick, NULL);
    if (!self->told)
        tell_addresses (self);
    trim_sometimes (&self->trim, clock_ms (CLOCK_MONOTONIC));
    watch_after (self->checks, CHECKS_MS);
}

static void reload (void *context)
{
    gateway_t *self = context;
    service_t *service = &self->service;
    char error[TOKENS_ERROR_SIZE];
    read_tools (self);
    read_proxy_secret (self);
    tokens_t *fresh = service->anybody == NULL ? malloc (sizeof *fresh) : NULL;
    if (fresh == NULL || !tokens_read (fresh, self->config->tokens, error)) {
        if (fresh != NULL)
            fail ("GATEWAY-TOKENS", "the tokens could not be read; those before stay", error);
        free (fresh);
        return;
    }
    tokens_inherit (fresh, &service->tokens);
    tokens_clear (&service->tokens);
    service->tokens = *fresh;
    free (fresh);
    add_links (self);
    fit_connections (self);
    check_tokens (self);
    log_write (LOG_LEVEL_INFO, "GATEWAY-RELOADED", "the tokens were read again",
               LOG_FIELDS (LOG_NUMBER ("tokens", service->tokens.count)));
}

static void stop (void *context)
{
    gateway_t *self = context;
    loop_stop (self->loop);
}

static void drain (void *context)
{
    gateway_t *self = context;
    log_write (LOG_LEVEL_INFO, "GATEWAY-STOPPING", "nothing more is accepted", NULL);
    watch_after (self->drain, (int64_t) self->service.settings.numbers[SETTING_DRAIN_TIMEOUT]);
    server_drain (self->server, stop, self);
}

static bool begin_watches (gateway_t *self)
{
    self->term = loop_signal (self->loop, SIGTERM, drain, self);
    self->interrupt = loop_signal (self->loop, SIGINT, drain, self);
    self->hang_up = loop_signal (self->loop, SIGHUP, reload, self);
    self->drain = loop_timer (self->loop, stop, self);
    self->checks = loop_timer (self->loop, check, self);
    return (self->term != NULL && self->interrupt != NULL && self->hang_up != NULL &&
            self->drain != NULL && self->checks != NULL) ||
           fail ("GATEWAY-START", "signals cannot be watched", strerror (errno));
}

/* Start and stop. */

/* As many connections as the settings allow, and the rest of the process. */
static void raise_files (void)
{
    struct rlimit limit;
    if (getrlimit (RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit (RLIMIT_NOFILE, &limit);
    }
}

static bool begin_listening (gateway_t *self)
{
    char error[SERVER_ERROR_SIZE];
    char address[ADDRESS_SIZE];
    const names_t *listen = &self->config->listen;
    for (size_t i = 0; i < listen->count; i++) {
        if (!server_listen (self->server, listen->list[i], address, error))
            return fail ("GATEWAY-LISTEN", "it cannot listen", error);
        log_write (LOG_LEVEL_INFO, "GATEWAY-READY", "listens",
                   LOG_FIELDS (LOG_TEXT ("address", address)));
        bytes_append_text (&self->addresses, address);
        bytes_append_byte (&self->addresses, '\n');
    }
    if (self->addresses.failed)
        return fail ("GATEWAY-LISTEN", "it cannot listen", "memory is exhausted");
    tell_addresses (self);
    return true;
}

static bool begin (gateway_t *self)
{
    const config_t *config = self->config;
    self->service.began_ms = clock_ms (CLOCK_REALTIME);
    self->service.settings = config->settings;
    self->service.uploads.seats.hold = HOLD_UPLOADS;
    self->service.stream_seats.hold = HOLD_STREAMS;
    self->service.hosts = config->hosts;
    self->service.origins = config->origins;
    self->service.authorization_servers = config->authorization_servers;
    self->handler = door_handler (&self->service);
    self->loop = loop_new ();
    if (self->loop == NULL)
        return fail ("GATEWAY-START", "there is no event loop", strerror (errno));
    if (!begin_tokens (self) || !read_proxy_secret (self) || !begin_seal (self) ||
        !read_tools (self) || !add_links (self) || !begin_watches (self))
        return false;
    self->service.spool = spool_new (self->loop, config->data);
    if (self->service.spool == NULL)
        return fail ("GATEWAY-START", "there is no thread for large payloads", strerror (errno));
    self->server = server_new (self->loop, &self->service.settings, &self->handler);
    if (self->server == NULL)
        return fail ("GATEWAY-START", "memory is exhausted", "");
    self->service.connections = server_numbers (self->server);
    fit_connections (self);
    if (!begin_listening (self))
        return false;
    watch_after (self->checks, CHECKS_MS);
    self->pulse = pulse_new (self->loop, &self->service);
    return self->pulse != NULL || fail ("GATEWAY-START", "memory is exhausted", "");
}

static void end (gateway_t *self)
{
    pulse_free (&self->pulse);
    server_free (&self->server);
    spool_free (&self->service.spool);
    watch_free (&self->term);
    watch_free (&self->interrupt);
    watch_free (&self->hang_up);
    watch_free (&self->drain);
    watch_free (&self->checks);
    for (size_t i = 0; i < self->service.links_count; i++) {
        scraped_clear (&self->service.scraped[i]);
        link_free (&self->service.links[i]);
    }
    mcp_free (&self->mcp);
    tokens_clear (&self->service.tokens);
    principal_release (self->service.anybody);
    proxied_clear (&self->service.proxied);
    seal_wipe (&self->service.seal);
    loop_free (&self->loop);
    if (self->told)
        unlink (self->config->endpoint);
    bytes_free (&self->addresses);
}

int gateway_run (config_t *config)
{
    gateway_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return EXIT_FAILURE;
    self->config = config;
    trees_count ();
    signal (SIGPIPE, SIG_IGN);
    raise_files ();
    const bool good = begin (self);
    if (good)
        loop_run (self->loop);
    end (self);
    if (good)
        log_write (LOG_LEVEL_INFO, "GATEWAY-STOPPED", "stopped", NULL);
    free (self);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
