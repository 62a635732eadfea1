/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl key and server-key: the pair of this user, and the broker's public key. */
#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "ids.h"
#include "key_file.h"
#include "keys.h"
#include "link/connect.h"
#include "link/input.h"
#include "profile.h"
#include "screen/items.h"
#include "screen/output.h"
#include "units.h"
#include "verbs/verbs.h"

enum { IMPORT_BYTES_MAX = 4096 };

static const char DEFAULT_NAME[] = "default";

/* The exit code of what key_file.h answers. */
static int file_error (const app_t *app, int failed, const char *reason)
{
    switch (failed) {
    case ENOENT: return code_error (app, TMQ_NOT_FOUND, NULL, "%s", reason);
    case EEXIST:
        return code_error (app, TMQ_CONFLICT, "give the new key another name", "%s", reason);
    case EPERM: return code_error (app, TMQ_NOT_AUTHENTICATED, NULL, "%s", reason);
    case EBADMSG: return code_error (app, TMQ_INVALID, NULL, "%s", reason);
    default: return code_error (app, TMQ_SYSTEM, NULL, "%s", reason);
    }
}

/* The file of a key: a text with a slash is a path, another one a name. 0 or an exit code. */
static int key_path (const app_t *app, char out[PATH_MAX], const char *name)
{
    char below[sizeof "keys/.key" + TMQ_NAME_LENGTH_MAX];
    if (strchr (name, '/')) {
        snprintf (out, PATH_MAX, "%s", name);
        return 0;
    }
    if (!name_is_valid (name))
        return usage_error (app, NULL, "'%.80s' is neither a name nor a path with a slash", name);
    snprintf (below, sizeof below, "keys/%s.key", name);
    if (!profile_home (out, below))
        return code_error (app, TMQ_SYSTEM, "set HOME, or name a path",
                           "there is no home directory");
    return 0;
}

/* What is shown of a key. texts[i] NULL: not that one. */
static void put_key (const app_t *app, const char *path, const char *const texts[2])
{
    items_t items;
    if (!app_wants_json (app)) {
        for (int i = 0; i < 2; i++)
            if (texts[i])
                puts (texts[i]);
        return;
    }
    items_begin (&items, app, true);
    json_writer_t *writer = items_open (&items);
    json_write_object_begin (writer);
    json_write_key (writer, "public_key");
    json_write_text (writer, texts[0]);
    if (texts[1]) {
        json_write_key (writer, "secret_key");
        json_write_text (writer, texts[1]);
    }
    if (path) {
        json_write_key (writer, "file");
        json_write_text (writer, path);
    }
    json_write_object_end (writer);
    items_close (&items);
    items_end (&items, NULL);
}

/* key new and key import. */

static int store (const app_t *app, const char *name, const key_secret_t *secret)
{
    char path[PATH_MAX], reason[KEY_FILE_ERROR_SIZE], text[KEY_TEXT_SIZE];
    key_public_t public_key;
    const int code = key_path (app, path, name);
    if (code)
        return code;
    int failed = profile_make_directory (path, reason);
    if (failed == 0)
        failed = key_file_write (path, secret, false, reason);
    if (failed != 0)
        return file_error (app, failed, reason);
    key_public_of (&public_key, secret);
    key_text_public (text, &public_key);
    put_key (app, path, (const char *const[2]){text, NULL});
    note (app, "the secret key is in %s; this is the public one.", path);
    note (app, "The broker's operator lets it in: taskctl key trust NAME %s --role ROLE", text);
    return EXIT_OK;
}

static int key_new (app_t *app)
{
    key_public_t public_key;
    key_secret_t secret;
    key_make (&public_key, &secret);
    const int code =
        store (app, app->args.operands_count > 1 ? app->args.operands[1] : DEFAULT_NAME, &secret);
    sodium_memzero (&secret, sizeof secret);
    return code;
}

static int key_take (app_t *app)
{
    char reason[KEY_ERROR_SIZE], *text;
    size_t bytes;
    key_secret_t secret;
    int code = read_all (app, &text, &bytes, app->args.operands[1], IMPORT_BYTES_MAX);
    if (code)
        return code;
    size_t length = strlen (text);
    while (length > 0 && strchr (" \t\r\n", text[length - 1]))
        text[--length] = '\0';
    if (!key_import (&secret, text + strspn (text, " \t\r\n"), reason))
        code = code_error (app, TMQ_INVALID, NULL, "%s: %s", app->args.operands[1], reason);
    else
        code = store (app, app->args.operands_count > 2 ? app->args.operands[2] : DEFAULT_NAME,
                      &secret);
    sodium_memzero (text, bytes);
    sodium_memzero (&secret, sizeof secret);
    free (text);
    return code;
}

/* key show. */

/* A secret goes to people, and elsewhere only when somebody has said so. */
static int may_show_secret (const app_t *app)
{
    if (isatty (STDOUT_FILENO) || args_has (&app->args, OPT_YES))
        return 0;
    return usage_error (app, "add --yes if it is to go into a file or a pipe",
                        "a secret key is shown on a terminal only");
}

static int key_show (app_t *app)
{
    const args_t *args = &app->args;
    char path[PATH_MAX], reason[KEY_FILE_ERROR_SIZE], texts[2][KEY_TEXT_SIZE];
    key_secret_t secret;
    key_public_t public_key;
    const char *file = args_text (args, OPT_KEY_FILE);
    const bool with_secret = args_has (args, OPT_SECRET);
    if (args->operands_count < 2 && file)
        snprintf (path, sizeof path, "%s", file);
    int code =
        args->operands_count < 2 && file
            ? 0
            : key_path (app, path, args->operands_count > 1 ? args->operands[1] : DEFAULT_NAME);
    if (!code && with_secret)
        code = may_show_secret (app);
    if (code)
        return code;
    const int failed = key_file_read (&secret, path, reason);
    if (failed != 0)
        return file_error (app, failed, reason);
    key_public_of (&public_key, &secret);
    if (args_has (args, OPT_Z85)) {
        key_z85 (texts[0], public_key.bytes);
        key_z85 (texts[1], secret.bytes);
    } else {
        key_text_public (texts[0], &public_key);
        key_text_secret (texts[1], &secret);
    }
    put_key (app, path, (const char *const[2]){texts[0], with_secret ? texts[1] : NULL});
    sodium_memzero (texts, sizeof texts);
    sodium_memzero (&secret, sizeof secret);
    return EXIT_OK;
}

const verb_t key_verbs[] = {
    {"new", "[NAME]", 0, 1, key_new},       {"show", "[NAME]", 0, 1, key_show},
    {"trust", "NAME KEY", 2, 2, key_trust}, {"revoke", "NAME or KEY", 1, 1, key_revoke},
    {"list", "", 0, 0, key_list},           {"rotate", "", 0, 0, key_rotate},
    {"import", "FILE", 1, 2, key_take},     {.name = NULL}};

/* server-key. */

static int server_key_show (app_t *app)
{
    tmq_whoami_t who = {.size = sizeof who};
    char text[KEY_TEXT_SIZE], reason[KEY_ERROR_SIZE];
    key_public_t key;
    const int code = app_connect (app);
    if (code)
        return code;
    tmq_client_whoami (&who, app->client);
    if (!who.server_key[0])
        return code_error (app, TMQ_NOT_FOUND,
                           "it makes one when it listens on an address of another machine",
                           "this broker has no key");
    snprintf (text, sizeof text, "%s", who.server_key);
    if (args_has (&app->args, OPT_Z85) && key_parse_public (&key, who.server_key, reason))
        key_z85 (text, key.bytes);
    put_key (app, NULL, (const char *const[2]){text, NULL});
    return EXIT_OK;
}

static int put_server_keys (const app_t *app, const tmq_access_t *report)
{
    char time[TIME_TEXT_SIZE] = "";
    items_t items;
    time_format (time, (int64_t) report->at);
    if (!app_wants_json (app)) {
        puts (report->next_server_key);
        return EXIT_OK;
    }
    items_begin (&items, app, true);
    json_writer_t *writer = items_open (&items);
    json_write_object_begin (writer);
    json_write_key (writer, "server_key");
    json_write_text (writer, report->server_key);
    json_write_key (writer, "next_server_key");
    json_write_text (writer, report->next_server_key);
    json_write_key (writer, "at");
    json_write_text (writer, time);
    json_write_object_end (writer);
    items_close (&items);
    items_end (&items, NULL);
    return EXIT_OK;
}

/* Without a time nobody would have learned of the next key, so there is no default. */
static int server_key_rotate (app_t *app)
{
    const args_t *args = &app->args;
    const bool now = args_has (args, OPT_NOW);
    char time[TIME_TEXT_SIZE] = "";
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    if (now == args_has (args, OPT_IN))
        return usage_error (app, "taskctl server-key rotate --in 7d",
                            "say when: --in DURATION, or --now");
    int code = app_connect (app);
    if (code)
        return code;
    if (tmq_server_key_rotate (&report, app->client,
                               now ? 0 : (uint64_t) args_number (args, OPT_IN, 0), app->timeout_ms,
                               &error) != TMQ_OK)
        return library_error (app, &error, NULL);
    code = put_server_keys (app, report);
    time_format (time, (int64_t) report->at);
    note (app,
          now ? "the broker has this key from now on; who did not know it needs it"
              : "the broker will have this key from %s on; who connects until then learns it",
          time);
    tmq_access_free (report);
    return code;
}

const verb_t server_key_verbs[] = {
    {"show", "", 0, 0, server_key_show}, {"rotate", "", 0, 0, server_key_rotate}, {.name = NULL}};
