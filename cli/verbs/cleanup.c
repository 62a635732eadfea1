/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl cleanup: has the broker remove what retention lets go, or shows what that would be. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "base/exit.h"
#include "link/connect.h"
#include "screen/listing.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/status.h"
#include "units.h"
#include "verbs/verbs.h"

enum { POLL_MS_MIN = 5, POLL_MS_MAX = 250, PAGE_DEFAULT = 50 };

/* A pass. */

static void put_pass (const app_t *app, const tmq_cleanup_state_t *cleanup)
{
    items_t items;
    char bytes[UNITS_TEXT_SIZE];
    if (!app_wants_json (app)) {
        printf ("%" PRIu64 " of %" PRIu64 " removed, %s of payloads, results and turns\n",
                cleanup->removed, cleanup->looked, size_format (bytes, cleanup->removed_bytes));
        return;
    }
    items_begin (&items, app, true);
    json_writer_t *writer = items_open (&items);
    json_write_object_begin (writer);
    member_uint (writer, "looked", cleanup->looked);
    member_uint (writer, "removed", cleanup->removed);
    member_uint (writer, "removed_bytes", cleanup->removed_bytes);
    json_write_object_end (writer);
    items_close (&items);
    items_end (&items, NULL);
}

static int clean (app_t *app)
{
    tmq_error_t error = {0};
    tmq_cleanup_state_t *cleanup = NULL;
    status_line_t line;
    int pause_ms = POLL_MS_MIN;
    status_begin (&line, app);
    error.code = tmq_cleanup (&cleanup, app->client, 0, app->timeout_ms, &error);
    while (error.code == TMQ_OK && cleanup->more) {
        const uint64_t pass = cleanup->pass;
        status_show_bar (app, cleanup->removed, cleanup->looked, "looking, and removing");
        poll (NULL, 0, pause_ms);
        pause_ms = 2 * pause_ms < POLL_MS_MAX ? 2 * pause_ms : POLL_MS_MAX;
        tmq_cleanup_state_free (cleanup);
        cleanup = NULL;
        error.code = tmq_cleanup (&cleanup, app->client, pass, app->timeout_ms, &error);
    }
    status_end (app);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    put_pass (app, cleanup);
    tmq_cleanup_state_free (cleanup);
    return EXIT_OK;
}

/* A look. */

static const char *whose (const tmq_cleanup_item_t *item)
{
    return item->of_namespace ? "namespace" : "queue";
}

static void add_item (listing_t *out, const tmq_cleanup_item_t *item)
{
    char id[37];
    char unit[UNITS_TEXT_SIZE];
    tmq_id_format (&item->id, id);
    if (out->table) {
        table_row (out->table);
        table_set (out->table, 0, "%s", id);
        table_set (out->table, 1, "%s", item->queue);
        table_set (out->table, 2, "%s", tmq_status_text (item->status));
        table_set (out->table, 3, "%s", time_format_relative (unit, 0, (int64_t) item->age_ms));
        table_set (out->table, 4, "%s", size_format (unit, item->bytes));
        table_set (out->table, 5, "%s of the %s", tmq_policy_text (item->policy), whose (item));
    } else if (out->json) {
        json_writer_t *writer = items_open (&out->items);
        json_write_object_begin (writer);
        member_text (writer, "task_id", id);
        member_text (writer, "queue", item->queue);
        member_text (writer, "status", tmq_status_text (item->status));
        member_text (writer, "policy", tmq_policy_text (item->policy));
        member_text (writer, "of", whose (item));
        member_uint (writer, "age_ms", item->age_ms);
        member_uint (writer, "bytes", item->bytes);
        json_write_object_end (writer);
        items_close (&out->items);
    } else {
        puts (id);
    }
}

/* At most *left (0: no limit) of what a pass would remove, behind the cursor, which moves on. */
static int look_at_page (app_t *app, listing_t *out, char *cursor, uint64_t *left,
                         tmq_error_t *error)
{
    const uint64_t most = *left == 0 || *left > TMQ_LIST_LIMIT_MAX ? TMQ_LIST_LIMIT_MAX : *left;
    tmq_cleanup_state_t *page = NULL;
    const int code =
        tmq_cleanup_look (&page, app->client, cursor, (uint32_t) most, app->timeout_ms, error);
    if (code != TMQ_OK)
        return code;
    for (size_t i = 0; i < page->count; i++)
        add_item (out, &page->items[i]);
    snprintf (cursor, 2 * TMQ_CURSOR_BYTES_MAX + 1, "%s", page->next);
    if (*left > 0)
        *left -= page->count;
    tmq_cleanup_state_free (page);
    return TMQ_OK;
}

static int look (app_t *app)
{
    static const column_t columns[] = {{"TASK", COLUMN_LEFT},   {"QUEUE", COLUMN_TRUNCATE},
                                       {"STATUS", COLUMN_LEFT}, {"ENDED", COLUMN_RIGHT},
                                       {"BYTES", COLUMN_RIGHT}, {"WHY", COLUMN_LEFT}};
    const args_t *args = &app->args;
    const bool all = args_has (args, OPT_ALL);
    const char *from = args_text (args, OPT_CURSOR);
    char cursor[2 * TMQ_CURSOR_BYTES_MAX + 1];
    uint64_t left = all ? 0 : args_number (args, OPT_LIMIT, PAGE_DEFAULT);
    tmq_error_t error = {0};
    listing_t out;
    int code = TMQ_OK;
    snprintf (cursor, sizeof cursor, "%s", from ? from : "");
    listing_begin (&out, app, columns, sizeof columns / sizeof *columns);
    do
        code = look_at_page (app, &out, cursor, &left, &error);
    while (code == TMQ_OK && *cursor && (all || left > 0));
    if (out.json)
        items_end (&out.items, code == TMQ_OK ? cursor : NULL);
    else
        listing_end (&out, code == TMQ_OK ? "nothing would go" : NULL);
    if (code != TMQ_OK)
        return library_error (app, &error, NULL);
    if (*cursor && !out.json)
        note_last (app, "more follow: --cursor %s, or --all", cursor);
    return EXIT_OK;
}

int run_cleanup (app_t *app)
{
    static const int of_look[] = {OPT_LIMIT, OPT_CURSOR, OPT_ALL};
    const bool dry = args_has (&app->args, OPT_DRY_RUN);
    if (app->args.operands_count > 0)
        return usage_error (app, "taskctl purge --queue NAME removes ended tasks of one queue",
                            "cleanup applies the rules of all queues at once, and takes no '%s'",
                            app->args.operands[0]);
    for (size_t i = 0; !dry && i < sizeof of_look / sizeof *of_look; i++)
        if (args_has (&app->args, (option_id_t) of_look[i]))
            return usage_error (app, "taskctl help cleanup",
                                "--limit, --cursor and --all: of a --dry-run only");
    const int code = app_connect (app);
    if (code)
        return code;
    return dry ? look (app) : clean (app);
}
