/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/connect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "screen/output.h"
#include "trust.h"

enum { ENDPOINTS_MAX = 64, LOOK_AGAIN_MS = 50 };

/* Where to look for the broker, and who said so. */
typedef struct endpoints {
    const char *uris[ENDPOINTS_MAX];
    size_t count;
    char *text;      /* what uris point into, unless they are from the command line */
    char *directory; /* the .taskmq directory, when that is where they come from */
    trust_t trust;   /* in it; nothing is read from one that others may have planted */
    uid_t owner;
} endpoints_t;

static void endpoints_clear (endpoints_t *self)
{
    free (self->text);
    free (self->directory);
    memset (self, 0, sizeof *self);
}

/* Takes over text and splits it at white space. */
static void endpoints_split (endpoints_t *self, char *text)
{
    char *rest = NULL;
    self->text = text;
    for (char *uri = strtok_r (text, " \t\r\n", &rest); uri && self->count < ENDPOINTS_MAX;
         uri = strtok_r (NULL, " \t\r\n", &rest))
        self->uris[self->count++] = uri;
}

/* The nearest .taskmq from the working directory upward, or NULL. */
static char *find_directory (struct stat *status)
{
    char *here = getcwd (NULL, 0);
    while (here) {
        char *candidate = must_alloc (strlen (here) + sizeof "/.taskmq");
        sprintf (candidate, "%s/.taskmq", strcmp (here, "/") == 0 ? "" : here);
        if (stat (candidate, status) == 0 && S_ISDIR (status->st_mode)) {
            free (here);
            return candidate;
        }
        free (candidate);
        char *slash = strrchr (here, '/');
        if (!slash || !here[1])
            break;
        slash[slash == here ? 1 : 0] = '\0';
    }
    free (here);
    return NULL;
}

static void read_directory (endpoints_t *self, const struct stat *status)
{
    self->owner = status->st_uid;
    self->trust = trust_directory (status, false);
    if (self->trust != TRUST_GOOD)
        return;
    char *path = must_alloc (strlen (self->directory) + sizeof "/endpoint");
    sprintf (path, "%s/endpoint", self->directory);
    FILE *file = fopen (path, "re");
    char *text = must_alloc (8192);
    if (file) {
        text[fread (text, 1, 8191, file)] = '\0';
        fclose (file);
    }
    endpoints_split (self, text);
    free (path);
}

/* The flag, then the environment, then the file of the nearest .taskmq. */
static void endpoints_find (endpoints_t *self, const app_t *app)
{
    const char *environment = getenv ("TASKMQ_ENDPOINT");
    struct stat status;
    memset (self, 0, sizeof *self);
    const size_t flags = args_count (&app->args, OPT_ENDPOINT);
    for (size_t i = 0; i < flags && i < ENDPOINTS_MAX; i++)
        self->uris[self->count++] = args_nth (&app->args, OPT_ENDPOINT, i)->text;
    if (self->count == 0 && environment && *environment)
        endpoints_split (self, must_copy (environment));
    if (self->count == 0 && (self->directory = find_directory (&status)))
        read_directory (self, &status);
}

static int no_endpoint (const app_t *app, const endpoints_t *self)
{
    char hint[512];
    if (!self->directory)
        return code_error (app, TMQ_UNREACHABLE,
                           "start 'taskmqd' in the project's directory, or say -e URI",
                           "no broker is known: no -e, no TASKMQ_ENDPOINT, no .taskmq directory "
                           "here or above");
    if (self->trust == TRUST_FOREIGN)
        return code_error (app, TMQ_UNREACHABLE, "say -e URI if you mean its broker",
                           "%s belongs to uid %ld, not to you", self->directory,
                           (long) self->owner);
    if (self->trust == TRUST_WRITABLE) {
        snprintf (hint, sizeof hint, "chmod go-w %s", self->directory);
        return code_error (app, TMQ_UNREACHABLE, hint, "others may write in %s", self->directory);
    }
    snprintf (hint, sizeof hint, "taskmqd --data %s", self->directory);
    return code_error (app, TMQ_UNREACHABLE, hint, "no broker is running for %s", self->directory);
}

static int bad_endpoint (const app_t *app, const endpoints_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        const char *uri = self->uris[i];
        if (strncmp (uri, "ipc://", 6) != 0 && strncmp (uri, "tcp://", 6) != 0)
            return usage_error (app, "such as ipc:///path/taskmqd.ipc or tcp://127.0.0.1:5560",
                                "'%s' is not an endpoint", uri);
    }
    return 0;
}

static int connect_error (const app_t *app, const endpoints_t *self, const tmq_error_t *error)
{
    char all[1024] = "";
    char hint[512];
    for (size_t i = 0; i < self->count; i++) {
        const size_t used = strlen (all);
        snprintf (all + used, sizeof all - used, "%s%s", i ? ", " : "", self->uris[i]);
    }
    if (exit_of_code (error->code) != EXIT_UNREACHABLE)
        return library_error (app, error, all);
    char waited[32];
    if (app->timeout_ms % 1000 == 0)
        snprintf (waited, sizeof waited, "%" PRIu32 "s", app->timeout_ms / 1000);
    else
        snprintf (waited, sizeof waited, "%" PRIu32 "ms", app->timeout_ms);
    snprintf (hint, sizeof hint, "is taskmqd running%s%s?", self->directory ? " for " : "",
              self->directory ? self->directory : "");
    return code_error (app, TMQ_UNREACHABLE, hint, "cannot reach %s: no answer in %s", all, waited);
}

static int client_start (app_t *app, const endpoints_t *found, uint32_t timeout_ms)
{
    tmq_client_options_t options;
    tmq_error_t error = {0};
    tmq_client_options_init (&options);
    options.endpoints = found->uris;
    options.endpoints_count = found->count;
    options.ns = app->ns;
    options.name = "taskctl";
    int code = tmq_client_new (&app->client, &options, &error);
    if (code == TMQ_OK)
        code = tmq_client_connect (app->client, timeout_ms, &error);
    error.code = code;
    return code == TMQ_OK ? 0 : connect_error (app, found, &error);
}

/* As TASKMQ_ENDPOINT holds them. */
static char *endpoints_join (const endpoints_t *self)
{
    size_t length = 1;
    for (size_t i = 0; i < self->count; i++)
        length += strlen (self->uris[i]) + 1;
    char *text = must_alloc (length);
    for (size_t i = 0; i < self->count; i++)
        sprintf (text + strlen (text), "%s%s", i ? " " : "", self->uris[i]);
    return text;
}

static void tell_connection (const app_t *app)
{
    tmq_broker_info_t info;
    if (!app->verbose || tmq_client_info (&info, app->client) != TMQ_OK)
        return;
    detail (app,
            "connected to %s as %s: %s, generation %" PRIu64 ", epoch %" PRIu64 ", event %" PRIu64,
            info.endpoint, info.identity, info.broker, info.generation, info.epoch, info.seq);
}

static int connect_until (app_t *app, uint64_t deadline_ms)
{
    endpoints_t found;
    endpoints_find (&found, app);
    while (found.count == 0 && found.trust == TRUST_GOOD && mono_ms () < deadline_ms) {
        endpoints_clear (&found);
        nanosleep (&(struct timespec){0, LOOK_AGAIN_MS * 1000000L}, NULL);
        endpoints_find (&found, app);
    }
    int code = found.count ? bad_endpoint (app, &found) : no_endpoint (app, &found);
    if (!code)
        code = client_start (app, &found, app->timeout_ms);
    if (!code)
        app->endpoint = endpoints_join (&found);
    endpoints_clear (&found);
    if (!code)
        tell_connection (app);
    return code;
}

int app_connect (app_t *app)
{
    return connect_until (app, 0);
}

int app_connect_patiently (app_t *app)
{
    return connect_until (app, mono_ms () + app->timeout_ms);
}

void app_disconnect (app_t *app)
{
    tmq_client_free (&app->client);
    free (app->endpoint);
    app->endpoint = NULL;
}
