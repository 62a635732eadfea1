/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl context: values that the tasks of a session, or of a namespace, share. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "link/connect.h"
#include "screen/listing.h"
#include "screen/output.h"
#include "screen/show.h"
#include "verbs/given.h"
#include "verbs/verbs.h"

static const char *session_of (const app_t *app)
{
    return args_text (&app->args, OPT_SESSION);
}

static const char *operand (const app_t *app, size_t i)
{
    return i < app->args.operands_count ? app->args.operands[i] : NULL;
}

static void write_member (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_text (writer, text);
}

/* bytes: as of tmq_value_get. */
static void write_value (items_t *items, const tmq_value_t *value)
{
    json_writer_t *writer = items_open (items);
    json_write_object_begin (writer);
    write_member (writer, "session", value->session);
    write_member (writer, "key", value->key);
    json_write_key (writer, "version");
    json_write_uint (writer, value->version);
    json_write_key (writer, "updated_at");
    json_write_time (writer, (int64_t) value->updated_at);
    write_member (writer, "actor", value->actor);
    write_member (writer, "owner", value->owner);
    json_write_key (writer, "bytes");
    json_write_uint (writer, value->length);
    if (value->bytes) {
        json_write_key (writer, "value");
        json_write_body (writer, "", value->bytes, value->length);
    }
    json_write_object_end (writer);
    items_close (items);
}

static void put_json (const app_t *app, const tmq_value_t *value)
{
    items_t items;
    items_begin (&items, app, true);
    write_value (&items, value);
    items_end (&items, NULL);
}

static int failed (const app_t *app, const tmq_error_t *error)
{
    if (error->code == TMQ_CONFLICT)
        return code_error (app, error->code, "taskctl context get -o json shows what there is",
                           "%s: %s", operand (app, 1), error->text);
    return library_error (app, error, operand (app, 1));
}

static int context_get (app_t *app)
{
    tmq_error_t error = {0};
    tmq_value_t *value = NULL;
    const int code = app_connect (app);
    if (code)
        return code;
    error.code = tmq_value_get (&value, app->client, session_of (app), operand (app, 1),
                                app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return failed (app, &error);
    if (app_wants_json (app))
        put_json (app, value);
    else if (app->format == FORMAT_ID)
        printf ("%" PRIu64 "\n", value->version);
    else
        put_bytes (value->bytes, value->length);
    tmq_value_free (value);
    return EXIT_OK;
}

static uint64_t version_asked (const app_t *app)
{
    return args_number (&app->args, OPT_IF_VERSION, TMQ_ANY_VERSION);
}

static int context_put (app_t *app)
{
    tmq_error_t error = {0};
    tmq_value_t *value = NULL;
    given_t given;
    int code = given_read (&given, app, 2, TMQ_VALUE_BYTES_MAX, "the value");
    if (!code && !given.given)
        code = usage_error (app, "--data STR, --file FILE, or - for standard input",
                            "context put needs a value");
    if (!code)
        code = app_connect (app);
    if (!code) {
        error.code =
            tmq_value_put (&value, app->client, session_of (app), operand (app, 1), given.bytes,
                           given.length, version_asked (app), app->timeout_ms, &error);
        code = error.code == TMQ_OK ? EXIT_OK : failed (app, &error);
    }
    given_clear (&given);
    if (code)
        return code;
    if (app_wants_json (app))
        put_json (app, value);
    else
        printf ("%" PRIu64 "\n", value->version);
    tmq_value_free (value);
    return EXIT_OK;
}

static int context_remove (app_t *app)
{
    tmq_error_t error = {0};
    if (version_asked (app) == 0)
        return usage_error (app, NULL, "--if-version 0 is what does not exist");
    const int code = app_connect (app);
    if (code)
        return code;
    error.code = tmq_value_remove (app->client, session_of (app), operand (app, 1),
                                   version_asked (app), app->timeout_ms, &error);
    return error.code == TMQ_OK ? EXIT_OK : failed (app, &error);
}

static void add_row (table_t *table, const tmq_value_t *value)
{
    table_row (table);
    table_set (table, 0, "%s", value->key);
    table_set (table, 1, "%" PRIu64, value->version);
    table_set (table, 2, "%zu", value->length);
    table_set (table, 3, "%s", value->actor);
}

static void show_one (const app_t *app, items_t *items, table_t *table, const tmq_value_t *value)
{
    if (table) {
        add_row (table, value);
    } else if (app->format == FORMAT_ID) {
        print_text (app, stdout, value->key);
        putchar ('\n');
    } else {
        write_value (items, value);
    }
}

/* Pages until `left` values are shown. */
static int list_pages (app_t *app, const tmq_value_query_t *asked, uint64_t left, items_t *items,
                       table_t *table)
{
    char after[TMQ_ENTRY_NAME_BYTES_MAX + 1] = "";
    tmq_value_query_t query = *asked;
    tmq_error_t error = {0};
    do {
        tmq_value_list_t *page = NULL;
        query.after = after;
        query.limit = left < TMQ_LIST_LIMIT_MAX ? (uint32_t) left : TMQ_LIST_LIMIT_MAX;
        error.code = tmq_value_list (&page, app->client, &query, app->timeout_ms, &error);
        if (error.code != TMQ_OK)
            return library_error (app, &error, NULL);
        for (size_t i = 0; i < page->count; i++, left--)
            show_one (app, items, table, &page->values[i]);
        snprintf (after, sizeof after, "%s", page->next);
        tmq_value_list_free (page);
    } while (left > 0 && *after);
    if (*after)
        note_last (app, "there are more: --limit N, or --all");
    return EXIT_OK;
}

static int context_list (app_t *app)
{
    static const column_t columns[] = {{"KEY", COLUMN_LEFT},
                                       {"VERSION", COLUMN_RIGHT},
                                       {"BYTES", COLUMN_RIGHT},
                                       {"BY", COLUMN_TRUNCATE}};
    tmq_value_query_t query;
    listing_t out;
    int code = app_connect (app);
    if (code)
        return code;
    tmq_value_query_init (&query);
    query.session = session_of (app);
    query.prefix = operand (app, 1);
    listing_begin (&out, app, columns, sizeof columns / sizeof *columns);
    const uint64_t left = args_has (&app->args, OPT_ALL)
                              ? UINT64_MAX
                              : args_number (&app->args, OPT_LIMIT, TMQ_LIST_LIMIT_DEFAULT);
    code = list_pages (app, &query, left, &out.items, out.table);
    listing_end (&out, code ? NULL : "no values");
    return code;
}

static int context_watch (app_t *app)
{
    return watch_subject (app, TMQ_SUBJECT_VALUE, operand (app, 1));
}

const verb_t context_verbs[] = {
    {"get", "KEY", 1, 1, context_get},        {"put", "KEY [-]", 1, 2, context_put},
    {"list", "[PREFIX]", 0, 1, context_list}, {"watch", "[PREFIX]", 0, 1, context_watch},
    {"remove", "KEY", 1, 1, context_remove},  {.name = NULL}};
