/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl audit: the record of deeds, over its files or through the broker. */
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "chain.h"
#include "link/connect.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "verbs/verbs.h"
#include "verbs/verify.h"

enum { FOLLOW_MS = 1000, TAIL_LINES = 10 };

/* head. */

static int run_head (app_t *app)
{
    tmq_error_t error = {0};
    tmq_part_t *part;
    char hash[CHAIN_HASH_TEXT_SIZE];
    items_t items;
    const int code = app_connect (app);
    if (code)
        return code;
    error.code = tmq_audit_head (&part, app->client, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    chain_hash_format (hash, part->hash);
    if (!app_wants_json (app)) {
        printf ("%" PRIu64 " %s\n", part->n, hash);
    } else {
        items_begin (&items, app, true);
        json_writer_t *writer = items_open (&items);
        json_write_object_begin (writer);
        json_write_key (writer, "n");
        json_write_uint (writer, part->n);
        json_write_key (writer, "hash");
        json_write_text (writer, hash);
        json_write_object_end (writer);
        items_close (&items);
        items_end (&items, NULL);
    }
    tmq_part_free (part);
    return EXIT_OK;
}

/* tail. */

enum { COLUMNS = 4 };
static const int widths[COLUMNS] = {24, 16, 10, 10};

static const char *member (const json_t *object, const char *key)
{
    const char *text = json_string_value (json_object_get (object, key));
    return text != NULL ? text : "-";
}

/* A line for people: when, what, who, from where, to what, how it ended, and more. */
static void show_line (const app_t *app, const char *line, size_t length)
{
    json_t *object = json_loadb (line, length, 0, NULL);
    static const char *const keys[COLUMNS] = {"at", "kind", "actor", "from"};
    size_t column = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        char *text = safe_text (app, member (object, keys[i]));
        column += (size_t) printf ("%-*s ", widths[i], text);
        free (text);
    }
    const char *detail = member (object, "detail");
    char rest[2048];
    snprintf (rest, sizeof rest, "%s %s%s%s", member (object, "object"), member (object, "outcome"),
              strcmp (detail, "-") ? ": " : "", strcmp (detail, "-") ? detail : "");
    print_wrapped_text (app, rest, column, (size_t) widths[0] + 1);
    putchar ('\n');
    json_decref (object);
}

static void show_heads (const app_t *app)
{
    static const char *const heads[COLUMNS] = {"AT", "KIND", "ACTOR", "FROM"};
    printf ("%s", paint_dim (app));
    for (size_t i = 0; i < COLUMNS; i++)
        printf ("%-*s ", widths[i], heads[i]);
    printf ("OBJECT OUTCOME%s\n", paint_end (app));
}

/* headed: the heads stand already. */
static void show_page (const app_t *app, const tmq_part_t *page, bool *headed)
{
    const char *end = page->bytes + page->length;
    if (page->length > 0 && !*headed && !app_wants_json (app)) {
        show_heads (app);
        *headed = true;
    }
    for (const char *line = page->bytes, *newline; line < end; line = newline + 1) {
        newline = memchr (line, '\n', (size_t) (end - line));
        if (newline == NULL)
            break;
        if (app_wants_json (app))
            fwrite (line, 1, (size_t) (newline - line) + 1, stdout);
        else
            show_line (app, line, (size_t) (newline - line));
    }
    fflush (stdout);
}

static int fill_query (const app_t *app, tmq_audit_query_t *out)
{
    uint64_t since = 0;
    const char *text = args_text (&app->args, OPT_SINCE);
    tmq_audit_query_init (out);
    if (text != NULL && !value_time (&since, text))
        return usage_error (app, NULL, "--since must be a time, a day or a duration before now: %s",
                            text);
    out->kind = args_text (&app->args, OPT_KIND);
    out->actor = args_text (&app->args, OPT_ACTOR);
    out->since = (int64_t) since;
    out->limit = (uint32_t) args_number (&app->args, OPT_LIMIT, TAIL_LINES);
    return EXIT_OK;
}

static int run_tail (app_t *app)
{
    tmq_error_t error = {0};
    tmq_part_t *page;
    tmq_audit_query_t query;
    bool headed = false;
    const bool follow = args_has (&app->args, OPT_FOLLOW);
    if (app->format == FORMAT_JSON)
        return usage_error (app, "-o jsonl", "audit tail gives lines, not one document");
    int code = fill_query (app, &query);
    if (code == EXIT_OK)
        code = app_connect (app);
    if (code)
        return code;
    const bool to_the_end = follow || query.since != 0;
    while (true) {
        error.code = tmq_audit (&page, app->client, &query, app->timeout_ms, &error);
        if (error.code != TMQ_OK)
            return library_error (app, &error, NULL);
        show_page (app, page, &headed);
        const bool more = page->more;
        query.file = page->file;
        query.offset = page->offset;
        query.since = 0;
        query.limit = TMQ_AUDIT_LINES_MAX;
        tmq_part_free (page);
        if (!(more && to_the_end) && !follow)
            break;
        if (!more)
            poll (NULL, 0, FOLLOW_MS);
    }
    if (!headed && !app_wants_json (app))
        note (app, "no such lines");
    return EXIT_OK;
}

const verb_t audit_verbs[] = {{"verify", "[FILE | DIR]...", 0, -1, verify_run},
                              {"head", "", 0, 0, run_head},
                              {"tail", "", 0, 0, run_tail},
                              {.name = NULL}};
