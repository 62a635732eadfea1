/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl join: an invitation becomes a key and a saved connection of this user. */
#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "ids.h"
#include "key_file.h"
#include "keys.h"
#include "link/connect.h"
#include "link/input.h"
#include "profile.h"
#include "screen/output.h"
#include "verbs/saved.h"
#include "verbs/verbs.h"

enum { LINE_BYTES_MAX = 4096 };

static const char SECRET_FILE[] = "/run/secrets/taskmq_join";

typedef struct joining {
    app_t *app;
    const char *name; /* of the profile and of the key */
    char profile[PATH_MAX];
    char key_file[PATH_MAX];
    join_t join;
    char uris[JOIN_PLACES_MAX][JOIN_PLACE_BYTES_MAX + sizeof "tcp://"];
    const char *endpoints[JOIN_PLACES_MAX];
    size_t endpoints_count;
    char server_key[KEY_TEXT_SIZE];
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* in which it may do something */
    bool made_key;
} joining_t;

/* The line. */

/* "HOST:PORT,HOST:PORT" */
static void take_places (joining_t *self)
{
    const char *at = self->join.place;
    while (*at && self->endpoints_count < JOIN_PLACES_MAX) {
        const size_t length = strcspn (at, ",");
        char *uri = self->uris[self->endpoints_count];
        snprintf (uri, sizeof self->uris[0], "tcp://%.*s", (int) length, at);
        self->endpoints[self->endpoints_count++] = uri;
        at += length + (at[length] == ',');
    }
}

static int parse (joining_t *self, char *text)
{
    char reason[KEY_ERROR_SIZE];
    static const char prefix[] = "taskctl join ";
    text[strcspn (text, "\r\n")] = '\0';
    text += strspn (text, " \t");
    if (strncmp (text, prefix, sizeof prefix - 1) == 0) /* the whole line was kept */
        text += sizeof prefix - 1;
    text[strcspn (text, " \t")] = '\0';
    if (!join_parse (&self->join, text, reason))
        return code_error (self->app, TMQ_INVALID,
                           "'taskctl invite', on the broker's machine, prints the whole line", "%s",
                           reason);
    take_places (self);
    key_text_public (self->server_key, &self->join.server);
    return 0;
}

static int parse_file (joining_t *self, const char *path)
{
    char *text;
    size_t bytes;
    int code = read_all (self->app, &text, &bytes, path, LINE_BYTES_MAX);
    if (code)
        return code;
    code = parse (self, text);
    sodium_memzero (text, bytes);
    free (text);
    return code;
}

static int read_line (joining_t *self)
{
    const args_t *args = &self->app->args;
    const char *text = args->operands_count ? args->operands[0] : getenv ("TASKMQ_JOIN");
    if (args->operands_count && strcmp (text, "-") == 0)
        return parse_file (self, "-");
    if (!text || !*text) {
        if (access (SECRET_FILE, F_OK) == 0)
            return parse_file (self, SECRET_FILE);
        return usage_error (self->app, "the operator makes one by: taskctl invite NAME --role ROLE",
                            "join needs the line of an invitation");
    }
    char *copy = must_copy (text);
    const int code = parse (self, copy);
    sodium_memzero (copy, strlen (copy));
    free (copy);
    return code;
}

/* The connection. */

static int connect_as (const joining_t *self, tmq_client_t **out, const char *secret,
                       const char *key_file)
{
    tmq_client_options_t options;
    tmq_error_t error = {0};
    tmq_client_options_init (&options);
    options.endpoints = self->endpoints;
    options.endpoints_count = self->endpoints_count;
    options.server_key = self->server_key;
    options.key = secret;
    options.key_file = key_file;
    options.ns = self->ns[0] ? self->ns : NULL;
    options.name = "taskctl";
    options.fail_fast = true;
    error.code = tmq_client_new (out, &options, &error);
    if (error.code == TMQ_OK)
        app_settle_timeout (self->app, *out);
    if (error.code == TMQ_OK)
        error.code = tmq_client_connect (*out, self->app->timeout_ms, &error);
    if (error.code == TMQ_OK)
        return 0;
    tmq_client_free (out);
    if (secret && error.code == TMQ_NOT_AUTHENTICATED)
        return code_error (self->app, TMQ_NOT_AUTHENTICATED, "ask for a new line",
                           "the broker at %s does not know this invitation: it has ended, or was "
                           "taken back",
                           self->join.place);
    if (secret && error.code == TMQ_UNREACHABLE)
        return code_error (self->app, TMQ_UNREACHABLE,
                           "if that is not the broker's address from here, ask for a line with "
                           "--address HOST:PORT",
                           "%s", error.text);
    return library_error (self->app, &error, NULL);
}

/* A key of one's own. One that is there is of a join that was broken off: the same again. */
static int own_key (joining_t *self, key_public_t *out)
{
    char reason[KEY_FILE_ERROR_SIZE];
    key_secret_t secret = {0};
    int failed = key_file_read (&secret, self->key_file, reason);
    if (failed == ENOENT) {
        key_make (out, &secret);
        failed = profile_make_directory (self->key_file, reason);
        if (failed == 0)
            failed = key_file_write (self->key_file, &secret, false, reason);
        self->made_key = failed == 0;
    }
    key_public_of (out, &secret);
    sodium_memzero (&secret, sizeof secret);
    return failed == 0 ? 0 : code_error (self->app, TMQ_SYSTEM, NULL, "%s", reason);
}

/* This machine's name as a name may be; NULL: none. */
static const char *host_name (char out[TMQ_NAME_LENGTH_MAX + 1])
{
    char host[HOST_NAME_MAX + 1] = "";
    size_t length = 0;
    if (gethostname (host, sizeof host - 1) != 0)
        return NULL;
    for (const char *at = host; *at && *at != '.' && length < TMQ_NAME_LENGTH_MAX; at++) {
        const char letter[2] = {*at, '\0'};
        out[length++] = name_is_valid (letter) ? *at : '-';
    }
    out[length] = '\0';
    return length ? out : NULL;
}

/* Where the first grant holds: "worker(NAMESPACE/…". A pattern says no name. */
static void find_namespace (joining_t *self, const tmq_principal_t *line)
{
    snprintf (self->ns, sizeof self->ns, "default");
    for (size_t i = 0; i < line->grants_count; i++) {
        char name[TMQ_NAME_LENGTH_MAX + 1];
        const char *inside = strchr (line->grants[i], '(');
        const size_t length = inside ? strcspn (inside + 1, "/)") : 0;
        if (length == 0 || length >= sizeof name)
            continue;
        memcpy (name, inside + 1, length);
        name[length] = '\0';
        if (!name_is_valid (name))
            continue;
        memcpy (self->ns, name, length + 1);
        return;
    }
}

/* "worker of render* in default", for each grant. */
static void put_grants (const app_t *app, const tmq_principal_t *line)
{
    for (size_t i = 0; i < line->grants_count; i++) {
        const char *grant = line->grants[i], *inside = strchr (grant, '(');
        const char *queue = inside ? strchr (inside, '/') : NULL;
        print_safe (app, stdout, "%s%.*s", i ? ", " : ": ", (int) strcspn (grant, "("), grant);
        if (queue)
            print_safe (app, stdout, " of %.*s", (int) strcspn (queue + 1, ")"), queue + 1);
        if (inside)
            print_safe (app, stdout, " in %.*s", (int) strcspn (inside + 1, "/)"), inside + 1);
    }
    putchar ('\n');
}

static int enroll (joining_t *self, const key_public_t *key, tmq_access_t **report)
{
    char host[TMQ_NAME_LENGTH_MAX + 1], secret_text[KEY_TEXT_SIZE], public_text[KEY_TEXT_SIZE];
    key_public_t invited;
    key_secret_t secret;
    tmq_client_t *client = NULL;
    tmq_error_t error = {0};
    join_keys (&invited, &secret, &self->join);
    key_text_secret (secret_text, &secret);
    key_text_public (public_text, key);
    int code = connect_as (self, &client, secret_text, NULL);
    sodium_memzero (&secret, sizeof secret);
    sodium_memzero (secret_text, sizeof secret_text);
    if (!code && tmq_enroll (report, client, public_text, host_name (host), false,
                             self->app->timeout_ms, &error) != TMQ_OK)
        code = access_error (self->app, &error, NULL);
    tmq_client_free (&client);
    return code;
}

/* Saves what was proved to work. */
static int save (const joining_t *self)
{
    char chosen[PROFILE_NAME_SIZE], reason[PROFILE_ERROR_SIZE], text[4 * PATH_MAX];
    int length = 0;
    for (size_t i = 0; i < self->endpoints_count; i++)
        length += sprintf (text + length, "endpoint = %s\n", self->endpoints[i]);
    length += snprintf (text + length, sizeof text - (size_t) length,
                        "server_key = %s\nkey_file = %s\nnamespace = %s\n", self->server_key,
                        self->key_file, self->ns);
    int failed = profile_make_directory (self->profile, reason);
    if (failed == 0)
        failed = secret_file_write (self->profile, text, (size_t) length, false, reason);
    if (failed != 0)
        return code_error (self->app, TMQ_SYSTEM, NULL, "%s", reason);
    return profile_chosen (chosen) ? 0 : saved_choose (self->app, self->name);
}

static int join (joining_t *self)
{
    key_public_t key;
    tmq_access_t *report = NULL;
    tmq_client_t *client = NULL;
    int code = own_key (self, &key);
    if (!code)
        code = enroll (self, &key, &report);
    /* A key that may have been taken is kept for the next try. */
    if (code && code != EXIT_UNKNOWN && self->made_key)
        unlink (self->key_file);
    if (code)
        return code;
    find_namespace (self, report->principals);
    code = connect_as (self, &client, NULL, self->key_file);
    if (!code)
        code = save (self);
    if (!code) {
        print_safe (self->app, stdout, "joined tcp://%s as %s", self->join.place,
                    report->principals[0].name);
        put_grants (self->app, report->principals);
    }
    tmq_client_free (&client);
    tmq_access_free (report);
    return code;
}

int run_join (app_t *app)
{
    joining_t self = {.app = app, .name = app->profile ? app->profile : "default"};
    char below[TMQ_NAME_LENGTH_MAX + 32], reason[PROFILE_ERROR_SIZE];
    char hint[TMQ_NAME_LENGTH_MAX + 96];
    if (!name_is_valid (self.name))
        return usage_error (app, NULL, "--profile: '%.80s' is not a name", self.name);
    snprintf (below, sizeof below, "keys/%s.key", self.name);
    if (!profile_home (self.key_file, below) || profile_path (self.profile, self.name, reason) != 0)
        return code_error (app, TMQ_SYSTEM, "set HOME", "there is no home directory");
    if (access (self.profile, F_OK) == 0) {
        if (args_has (&app->args, OPT_IF_NEEDED))
            return EXIT_OK;
        snprintf (hint, sizeof hint,
                  "to replace it: taskctl profile remove %s; to have both: "
                  "join with --profile OTHER",
                  self.name);
        return code_error (app, TMQ_CONFLICT, hint, "there is a profile %s already", self.name);
    }
    int code = read_line (&self);
    if (!code)
        code = join (&self);
    sodium_memzero (&self.join, sizeof self.join);
    return code;
}
