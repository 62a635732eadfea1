/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/connect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "screen/output.h"
#include "units.h"

enum {
    LOOK_AGAIN_MS = 50,
    TAKE_OVER_MS =
        15000 /* a lease, and the reading of 100,000 live tasks on a machine with other work:
                            docs/CLUSTER.md has the figures */
};

/* Those of the command line, as TASKMQ_ENDPOINT would hold them; "" if it has none. */
static char *given_endpoints (const app_t *app, const char ***uris, size_t *count)
{
    size_t length = 1;
    *count = args_count (&app->args, OPT_ENDPOINT);
    *uris = must_alloc (*count * sizeof **uris);
    for (size_t i = 0; i < *count; i++) {
        (*uris)[i] = args_nth (&app->args, OPT_ENDPOINT, i)->text;
        length += strlen ((*uris)[i]) + 1;
    }
    char *text = must_alloc (length);
    for (size_t i = 0; i < *count; i++)
        sprintf (text + strlen (text), "%s%s", i ? " " : "", (*uris)[i]);
    return text;
}

enum { KEY_WARNING_MS = 7 * 24 * 60 * 60 * 1000 };

/* A key that ends soon is changed while it is still good. */
static void tell_key_end (const app_t *app, const tmq_whoami_t *who)
{
    char left[UNITS_TEXT_SIZE];
    const uint64_t now_ms = wall_ms ();
    if (who->key_until == 0 || who->key_until > now_ms + KEY_WARNING_MS)
        return;
    note (app, "taskctl: your key ends %s: taskctl key rotate",
          time_format_relative (left, (int64_t) who->key_until, (int64_t) now_ms));
}

const char *app_told_by (const app_t *app, const tmq_whoami_t *who)
{
    return args_has (&app->args, OPT_ENDPOINT) ? "-e" : who->told_by;
}

static void tell_connection (const app_t *app, const tmq_broker_info_t *info,
                             const tmq_whoami_t *who)
{
    detail (app, "%s is where %s says", info->endpoint, app_told_by (app, who));
    if (who->key[0])
        detail (app, "with the key %s%s%s%s", who->key, who->key_file[0] ? " (" : "", who->key_file,
                who->key_file[0] ? ")" : "");
    tell_key_end (app, who);
    detail (app,
            "connected to %s as %s: %s, generation %" PRIu64 ", epoch %" PRIu64 ", event %" PRIu64,
            info->endpoint, info->identity, info->broker, info->generation, info->epoch, info->seq);
}

/* A take-over is one that a request has to outlast. */
void app_plan_timeout (app_t *app, const tmq_whoami_t *who)
{
    if (app->timeout_is_given || who->endpoints_count < 2)
        return;
    app->timeout_ms = TAKE_OVER_MS;
    detail (app, "of %" PRIu32 " endpoints another one may be taking over: --timeout is %d s",
            who->endpoints_count, TAKE_OVER_MS / 1000);
}

void app_settle_timeout (app_t *app, tmq_client_t *client)
{
    tmq_whoami_t who = {.size = sizeof who};
    if (tmq_client_whoami (&who, client) == TMQ_OK)
        app_plan_timeout (app, &who);
}

void app_client_options (const app_t *app, const char *const *uris, size_t count,
                         tmq_client_options_t *options)
{
    tmq_client_options_init (options);
    options->endpoints = count ? uris : NULL;
    options->endpoints_count = count;
    options->ns = app->ns;
    options->name = "taskctl";
    options->profile = app->profile;
    options->server_key = args_text (&app->args, OPT_SERVER_KEY);
    options->key_file = args_text (&app->args, OPT_KEY_FILE);
}

int app_endpoints (const app_t *app, tmq_whoami_t *who, tmq_error_t *error)
{
    const char **uris;
    size_t count;
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    *who = (tmq_whoami_t){.size = sizeof *who};
    free (given_endpoints (app, &uris, &count));
    app_client_options (app, uris, count, &options);
    int code = tmq_client_new (&client, &options, error);
    free (uris);
    if (code == TMQ_OK)
        code = tmq_client_whoami (who, client);
    tmq_client_free (&client);
    return code;
}

/* A client that is connected, or the reason. Until the deadline it also waits for a directory that
 * does not exist yet. */
static int start_client (app_t *app, const char *const *uris, size_t count, uint64_t deadline_ms,
                         tmq_error_t *error)
{
    tmq_client_options_t options;
    app_client_options (app, uris, count, &options);
    options.fail_fast = deadline_ms == 0;
    options.link = app->tells_link;
    int code = tmq_client_new (&app->client, &options, error);
    while (code == TMQ_UNREACHABLE && mono_ms () < deadline_ms) {
        nanosleep (&(struct timespec){0, LOOK_AGAIN_MS * 1000000L}, NULL);
        code = tmq_client_new (&app->client, &options, error);
    }
    if (code == TMQ_OK)
        app_settle_timeout (app, app->client);
    if (code == TMQ_OK)
        code = tmq_client_connect (app->client, app->timeout_ms, error);
    const char *owner = args_text (&app->args, OPT_ON_BEHALF);
    if (code != TMQ_OK || owner == NULL)
        return code;
    app->connection = app->client;
    return tmq_client_on_behalf (&app->client, app->connection, owner, error);
}

/* A code of taskmq_types.h. */
static int try_until (app_t *app, uint64_t deadline_ms, tmq_broker_info_t *info, tmq_error_t *error)
{
    const char **uris;
    size_t count;
    tmq_whoami_t who = {.size = sizeof who};
    char *given = given_endpoints (app, &uris, &count);
    int code = start_client (app, uris, count, deadline_ms, error);
    free (uris);
    if (code == TMQ_OK)
        code = tmq_client_info (info, app->client);
    if (code == TMQ_OK)
        code = tmq_client_whoami (&who, app->client);
    if (code != TMQ_OK) {
        free (given);
        error->code = code;
        return code;
    }
    if (!*given) {
        free (given);
        given = must_copy (who.endpoints);
    }
    app->endpoint = given;
    app->key_file = who.key_file[0] ? must_copy (who.key_file) : NULL;
    app->ns = app->ns_told = must_copy (who.ns);
    tell_connection (app, info, &who);
    return TMQ_OK;
}

static int connect_until (app_t *app, uint64_t deadline_ms)
{
    tmq_error_t error = {0};
    tmq_broker_info_t info;
    return try_until (app, deadline_ms, &info, &error) == TMQ_OK
               ? 0
               : library_error (app, &error, NULL);
}

int app_try (app_t *app, tmq_broker_info_t *info, tmq_error_t *error)
{
    return try_until (app, 0, info, error);
}

int app_connect (app_t *app)
{
    if (app->client)
        return 0;
    return connect_until (app, 0);
}

int app_connect_patiently (app_t *app)
{
    return connect_until (app, mono_ms () + app->timeout_ms);
}

void app_disconnect (app_t *app)
{
    if (app->client != app->connection)
        tmq_client_free (&app->client);
    app->client = NULL;
    tmq_client_free (&app->connection);
    free (app->endpoint);
    free (app->key_file);
    free (app->ns_told);
    app->endpoint = app->key_file = app->ns_told = NULL;
}
