/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl profile: saved connections. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "ids.h"
#include "link/connect.h"
#include "profile.h"
#include "screen/listing.h"
#include "screen/output.h"
#include "verbs/saved.h"
#include "verbs/verbs.h"

static int file_error (const app_t *app, int failed, const char *reason)
{
    return code_error (app, failed == ENOENT ? TMQ_NOT_FOUND : TMQ_INVALID,
                       failed == ENOENT ? "taskctl profile list" : NULL, "%s", reason);
}

/* Of a profile that was named. */
static int read_error (const app_t *app, int failed, const char *name, const char *reason)
{
    char missing[PROFILE_NAME_SIZE + 32];
    snprintf (missing, sizeof missing, "there is no profile %s", name);
    return file_error (app, failed, failed == ENOENT ? missing : reason);
}

static const char *operand (const app_t *app, size_t i)
{
    return i < app->args.operands_count ? app->args.operands[i] : NULL;
}

/* The profile of that name as a file. 0 or an exit code. */
static int find (const app_t *app, char path[PATH_MAX], const char *name)
{
    char reason[PROFILE_ERROR_SIZE];
    if (!name_is_valid (name))
        return usage_error (app, NULL, "'%.80s' is not a name", name);
    const int failed = profile_path (path, name, reason);
    if (failed != 0)
        return file_error (app, failed, reason);
    return 0;
}

/* add. */

/* Judges the values as the library will, which has each endpoint once in options. */
static int check (app_t *app, tmq_client_options_t *options, const char *key_file)
{
    tmq_client_t *client = NULL;
    tmq_error_t error = {0};
    const size_t count = args_count (&app->args, OPT_ENDPOINT);
    for (size_t i = 0; i < count && error.code == TMQ_OK; i++)
        tmq_client_options_set (options, "endpoint", args_nth (&app->args, OPT_ENDPOINT, i)->text,
                                &error);
    options->server_key = args_text (&app->args, OPT_SERVER_KEY);
    options->key_file = key_file;
    if (error.code == TMQ_OK && tmq_client_new (&client, options, &error) == TMQ_OK)
        tmq_client_free (&client);
    return error.code == TMQ_OK ? 0 : library_error (app, &error, NULL);
}

static void add_line (FILE *text, const char *key, const char *value)
{
    if (value && *value)
        fprintf (text, "%s = %s\n", key, value);
}

/* The text of a profile; the caller frees it. NULL when memory is exhausted. */
static char *profile_text (const args_t *args, const tmq_client_options_t *options, size_t *bytes)
{
    char *text = NULL;
    FILE *stream = open_memstream (&text, bytes);
    if (!stream)
        return NULL;
    for (size_t i = 0; i < options->endpoints_count; i++)
        add_line (stream, "endpoint", options->endpoints[i]);
    add_line (stream, "server_key", options->server_key);
    add_line (stream, "key_file", options->key_file);
    add_line (stream, "namespace", args_text (args, OPT_NAMESPACE));
    fclose (stream);
    return text;
}

static int profile_add (app_t *app)
{
    const args_t *args = &app->args;
    const char *name = operand (app, 1), *file = args_text (args, OPT_KEY_FILE);
    char path[PATH_MAX], whole[PATH_MAX] = "", reason[PROFILE_ERROR_SIZE];
    tmq_client_options_t options;
    size_t bytes;
    tmq_client_options_init (&options);
    int code = find (app, path, name);
    if (!code && !args_has (args, OPT_ENDPOINT))
        code =
            usage_error (app, "taskctl profile add NAME -e tcp://HOST:5560 --server-key tmqpk_...",
                         "profile add needs an endpoint: -e");
    if (!code && file && !realpath (file, whole))
        code = code_error (app, TMQ_NOT_FOUND, NULL, "%s: %s", file, strerror (errno));
    if (!code)
        code = check (app, &options, file ? whole : NULL);
    char *text = code ? NULL : profile_text (args, &options, &bytes);
    tmq_client_options_clear (&options);
    if (code)
        return code;
    if (!text)
        return code_error (app, TMQ_NO_MEMORY, NULL, "no memory");
    int failed = profile_make_directory (path, reason);
    if (failed == 0)
        failed = secret_file_write (path, text, bytes, false, reason);
    free (text);
    if (failed == EEXIST)
        return code_error (app, TMQ_CONFLICT, "taskctl profile remove, if it is to go", "%s",
                           reason);
    if (failed != 0)
        return file_error (app, failed, reason);
    note (app, "saved as %s; use it by --profile %s, or always: taskctl profile use %s", path, name,
          name);
    return EXIT_OK;
}

/* list and show. */

/* All of them, as TASKMQ_ENDPOINT would hold them. The caller frees it. */
static char *all_endpoints (const profile_t *profile)
{
    size_t length = 1;
    for (size_t i = 0; i < profile->count; i++)
        length += strlen (profile->lines[i].value) + 1;
    char *out = must_alloc (length);
    char *end = out;
    for (size_t i = 0; i < profile->count; i++) {
        if (strcmp (profile->lines[i].key, "endpoint") != 0)
            continue;
        if (end > out)
            *end++ = ' ';
        end = stpcpy (end, profile->lines[i].value);
    }
    *end = '\0';
    return out;
}

static void write_endpoints (json_writer_t *writer, const profile_t *profile)
{
    json_write_key (writer, "endpoints");
    json_write_array_begin (writer);
    for (size_t i = 0; i < profile->count; i++)
        if (strcmp (profile->lines[i].key, "endpoint") == 0)
            json_write_text (writer, profile->lines[i].value);
    json_write_array_end (writer);
}

static void list_one (const app_t *app, items_t *items, table_t *table, const char *name,
                      const char *chosen)
{
    char path[PATH_MAX], reason[PROFILE_ERROR_SIZE];
    static profile_t profile;
    const bool is_chosen = strcmp (name, chosen) == 0;
    profile.count = 0;
    if (profile_path (path, name, reason) != 0 || profile_read (&profile, path, reason) != 0)
        note (app, "taskctl: %s", reason);
    const char *endpoint = profile_value (&profile, "endpoint");
    const char *ns = profile_value (&profile, "namespace");
    if (table) {
        table_row (table);
        table_set (table, 0, "%s", name);
        char *endpoints = all_endpoints (&profile);
        table_set (table, 1, "%s", endpoints);
        free (endpoints);
        table_set (table, 2, "%s", ns ? ns : "");
        table_set (table, 3, "%s", is_chosen ? "yes" : "");
    } else {
        json_writer_t *writer = items_open (items);
        json_write_object_begin (writer);
        json_write_key (writer, "name");
        json_write_text (writer, name);
        json_write_key (writer, "endpoint");
        json_write_text (writer, endpoint);
        write_endpoints (writer, &profile);
        json_write_key (writer, "namespace");
        json_write_text (writer, ns);
        json_write_key (writer, "default");
        json_write_bool (writer, is_chosen);
        json_write_object_end (writer);
        items_close (items);
    }
    profile_clear (&profile);
}

static int profile_list (app_t *app)
{
    static const column_t columns[] = {{"NAME", COLUMN_LEFT},
                                       {"ENDPOINT", COLUMN_TRUNCATE},
                                       {"NAMESPACE", COLUMN_LEFT},
                                       {"DEFAULT", COLUMN_LEFT}};
    size_t count;
    listing_t out;
    char chosen[PROFILE_NAME_SIZE] = "";
    char **names = saved_names (&count);
    profile_chosen (chosen);
    listing_begin (&out, app, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++)
        list_one (app, &out.items, out.table, names[i], chosen);
    listing_end (&out, "no profiles");
    saved_free (names, count);
    return EXIT_OK;
}

/* Secrets are hidden. */
static int profile_show (app_t *app)
{
    char path[PATH_MAX], reason[PROFILE_ERROR_SIZE], name[PROFILE_NAME_SIZE];
    static profile_t profile;
    if (operand (app, 1))
        snprintf (name, sizeof name, "%s", operand (app, 1));
    else if (!profile_chosen (name))
        return code_error (app, TMQ_NOT_FOUND, "taskctl profile use NAME",
                           "no profile is the default");
    const int code = find (app, path, name);
    if (code)
        return code;
    const int failed = profile_read (&profile, path, reason);
    if (failed != 0)
        return read_error (app, failed, name, reason);
    for (size_t i = 0; i < profile.count; i++) {
        const bool secret = strcmp (profile.lines[i].key, "key") == 0;
        print_text (app, stdout, profile.lines[i].key);
        fputs (" = ", stdout);
        print_text (app, stdout, secret ? "(a secret key)" : profile.lines[i].value);
        fputc ('\n', stdout);
    }
    profile_clear (&profile);
    return EXIT_OK;
}

/* use, remove, test. */

int saved_choose (const app_t *app, const char *name)
{
    char path[PATH_MAX], reason[PROFILE_ERROR_SIZE];
    if (!profile_home (path, "profile"))
        return code_error (app, TMQ_SYSTEM, "set HOME", "there is no home directory");
    const int failed = profile_set (path, "profile", name, reason);
    return failed == 0 ? EXIT_OK : file_error (app, failed, reason);
}

static int profile_use (app_t *app)
{
    char path[PATH_MAX], reason[PROFILE_ERROR_SIZE];
    static profile_t profile;
    const char *name = operand (app, 1);
    const int code = find (app, path, name);
    if (code)
        return code;
    const int failed = profile_read (&profile, path, reason);
    if (failed != 0)
        return read_error (app, failed, name, reason);
    profile_clear (&profile);
    return saved_choose (app, name);
}

static int profile_remove (app_t *app)
{
    char path[PATH_MAX], chosen[PROFILE_NAME_SIZE];
    const int code = find (app, path, operand (app, 1));
    if (code)
        return code;
    if (unlink (path) != 0)
        return code_error (app, errno == ENOENT ? TMQ_NOT_FOUND : TMQ_SYSTEM, NULL, "%s: %s", path,
                           strerror (errno));
    if (profile_chosen (chosen) && strcmp (chosen, operand (app, 1)) == 0)
        return saved_choose (app, NULL);
    return EXIT_OK;
}

static int profile_test (app_t *app)
{
    if (operand (app, 1))
        app->profile = operand (app, 1);
    const int code = run_ping (app);
    return code ? code : show_whoami (app);
}

const verb_t profile_verbs[] = {{"add", "NAME", 1, 1, profile_add},
                                {"list", "", 0, 0, profile_list},
                                {"use", "NAME", 1, 1, profile_use},
                                {"show", "[NAME]", 0, 1, profile_show},
                                {"remove", "NAME", 1, 1, profile_remove},
                                {"test", "[NAME]", 0, 1, profile_test},
                                {.name = NULL}};
