/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl mail, taskctl session input: items of a box, in order, until they are acknowledged. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "ids.h"
#include "link/connect.h"
#include "screen/listing.h"
#include "screen/output.h"
#include "units.h"
#include "verbs/given.h"
#include "verbs/verbs.h"

enum { HOUR_MS = 60 * 60 * 1000 };

/* Where the items are, and what of the command line is about them. */
typedef struct place {
    const char *session; /* NULL: of the namespace */
    char box[TMQ_NAME_LENGTH_MAX + 1];
    size_t rest; /* the first operand behind the place */
} place_t;

static int mail_place (place_t *out, const app_t *app)
{
    const char *agent = app->args.operands[1];
    const int length = snprintf (out->box, sizeof out->box, "mail.%s", agent);
    out->session = args_text (&app->args, OPT_SESSION);
    out->rest = 2;
    if (!name_is_valid (agent) || length >= (int) sizeof out->box)
        return usage_error (app, NULL, "agent '%.80s' must be 1 to %d of A-Z a-z 0-9 . _ -", agent,
                            TMQ_NAME_LENGTH_MAX - 5);
    return 0;
}

/* session input VERB SESSION ... */
static int input_place (place_t *out, const app_t *app)
{
    if (app->args.operands_count < 3)
        return usage_error (app, "taskctl help session",
                            "session input needs a verb and a session");
    out->session = app->args.operands[2];
    snprintf (out->box, sizeof out->box, "inputs");
    out->rest = 3;
    if (!name_is_valid (out->session))
        return usage_error (app, NULL, "session '%.80s' must be 1 to %d of A-Z a-z 0-9 . _ -",
                            out->session, TMQ_NAME_LENGTH_MAX);
    return 0;
}

/* Puts. */

static int take_intensity (double *out, const app_t *app)
{
    const char *text = args_text (&app->args, OPT_INTENSITY);
    *out = 0;
    if (!text || (number_parse (out, text, NULL) && *out <= 1))
        return 0;
    return usage_error (app, NULL, "--intensity '%.40s' must be a number from 0 to 1", text);
}

static int put (app_t *app, const place_t *place)
{
    tmq_error_t error = {0};
    tmq_item_request_t item;
    given_t given;
    uint64_t number = 0;
    tmq_item_request_init (&item);
    item.session = place->session;
    item.box = place->box;
    item.source = args_text (&app->args, OPT_SOURCE);
    item.type = args_text (&app->args, OPT_TYPE);
    int code = given_read (&given, app, place->rest, TMQ_ITEM_BYTES_MAX, "the item");
    if (!code && !given.given)
        code = usage_error (app, "--data STR, --file FILE, or - for standard input",
                            "there is nothing to put");
    if (!code)
        code = take_intensity (&item.intensity, app);
    if (!code)
        code = app_connect (app);
    if (!code) {
        item.bytes = given.bytes;
        item.length = given.length;
        error.code = tmq_item_put (&number, app->client, &item, app->timeout_ms, &error);
        code = error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, place->box);
    }
    given_clear (&given);
    if (code)
        return code;
    if (app_wants_json (app))
        printf ("{\"number\":%" PRIu64 "}\n", number);
    else
        printf ("%" PRIu64 "\n", number);
    return EXIT_OK;
}

/* Reads. */

static void write_member (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_text (writer, text);
}

/* How new it is, from 1 downwards: a half after an hour, a third after two. */
static void write_recency (json_writer_t *writer, const tmq_item_t *item)
{
    const uint64_t now_ms = wall_ms ();
    const uint64_t age_ms = now_ms > item->at ? now_ms - item->at : 0;
    const uint64_t thousandths = (UINT64_C (1000) * HOUR_MS + age_ms / 2) / (HOUR_MS + age_ms);
    json_write_key (writer, "recency");
    json_write_double (writer, (double) thousandths / 1000);
}

static void write_item (items_t *items, const tmq_item_t *item)
{
    json_writer_t *writer = items_open (items);
    json_write_object_begin (writer);
    json_write_key (writer, "number");
    json_write_uint (writer, item->number);
    json_write_key (writer, "at");
    json_write_time (writer, (int64_t) item->at);
    write_member (writer, "owner", item->owner);
    write_member (writer, "source", item->source);
    write_member (writer, "type", item->type);
    json_write_key (writer, "intensity");
    json_write_double (writer, item->intensity);
    write_recency (writer, item);
    json_write_key (writer, "bytes");
    json_write_uint (writer, item->length);
    json_write_key (writer, "data");
    if (item->bytes)
        json_write_body (writer, "", item->bytes, item->length);
    else
        json_write_null (writer);
    json_write_object_end (writer);
    items_close (items);
}

static void add_row (table_t *table, const tmq_item_t *item)
{
    table_row (table);
    table_set (table, 0, "%" PRIu64, item->number);
    table_set (table, 1, "%s", item->owner);
    table_set (table, 2, "%s", item->source);
    table_set (table, 3, "%s", item->type);
    table_set (table, 4, "%s", item->bytes ? (const char *) item->bytes : "");
}

static bool is_wanted (const app_t *app, const tmq_item_t *item)
{
    const char *source = args_text (&app->args, OPT_SOURCE);
    const char *type = args_text (&app->args, OPT_TYPE);
    return (!source || strcmp (source, item->source) == 0) &&
           (!type || strcmp (type, item->type) == 0) &&
           item->at >= args_number (&app->args, OPT_SINCE, 0);
}

static void show_one (const app_t *app, items_t *items, table_t *table, const tmq_item_t *item)
{
    if (table)
        add_row (table, item);
    else if (app->format == FORMAT_ID)
        printf ("%" PRIu64 "\n", item->number);
    else
        write_item (items, item);
}

/* Pages until `left` items are shown. */
static int show_pages (app_t *app, const place_t *place, uint64_t left, items_t *items,
                       table_t *table)
{
    uint64_t after = args_number (&app->args, OPT_AFTER, 0);
    tmq_error_t error = {0};
    bool more = true;
    while (more && left > 0) {
        tmq_item_list_t *page = NULL;
        error.code = tmq_item_read (&page, app->client, place->session, place->box, after, 0,
                                    app->timeout_ms, &error);
        if (error.code != TMQ_OK)
            return library_error (app, &error, place->box);
        size_t i = 0;
        for (; i < page->count && left > 0; i++) {
            after = page->items[i].number;
            if (!is_wanted (app, &page->items[i]))
                continue;
            show_one (app, items, table, &page->items[i]);
            left--;
        }
        more = i < page->count || page->next != 0;
        if (i == page->count && page->next != 0)
            after = page->next;
        tmq_item_list_free (page);
    }
    if (more)
        note_last (app, "there are more: --after %" PRIu64, after);
    return EXIT_OK;
}

static int show (app_t *app, const place_t *place)
{
    static const column_t columns[] = {{"NUMBER", COLUMN_RIGHT},
                                       {"BY", COLUMN_LEFT},
                                       {"SOURCE", COLUMN_LEFT},
                                       {"TYPE", COLUMN_LEFT},
                                       {"DATA", COLUMN_TRUNCATE}};
    listing_t out;
    if (!terminal_columns () && !args_has (&app->args, OPT_OUTPUT) && !getenv ("TASKMQ_OUTPUT"))
        app->format = FORMAT_JSONL; /* who reads a pipe wants the bytes, not what a table makes */
    int code = app_connect (app);
    if (code)
        return code;
    listing_begin (&out, app, columns, sizeof columns / sizeof *columns);
    const uint64_t left = args_number (&app->args, OPT_LIMIT, TMQ_LIST_LIMIT_DEFAULT);
    code = show_pages (app, place, left, &out.items, out.table);
    listing_end (&out, code ? NULL : "no items");
    return code;
}

/* Acknowledgements. */

static int take_numbers (const app_t *app, size_t first, uint64_t **out, size_t *count)
{
    const args_t *args = &app->args;
    *count = args->operands_count - first;
    *out = NULL;
    if (*count == 0 || *count > TMQ_ITEM_NUMBERS_MAX)
        return usage_error (app, NULL, "1 to %d numbers of items are needed", TMQ_ITEM_NUMBERS_MAX);
    *out = must_alloc (*count * sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        char *end;
        (*out)[i] = strtoull (args->operands[first + i], &end, 10);
        if (*end || (*out)[i] == 0)
            return usage_error (app, NULL, "'%.40s' is no number of an item",
                                args->operands[first + i]);
    }
    return 0;
}

static int acknowledge (app_t *app, const place_t *place)
{
    tmq_error_t error = {0};
    uint64_t *numbers;
    uint64_t gone = 0;
    size_t count;
    int code = take_numbers (app, place->rest, &numbers, &count);
    if (!code)
        code = app_connect (app);
    if (!code) {
        error.code = tmq_item_ack (&gone, app->client, place->session, place->box, numbers, count,
                                   app->timeout_ms, &error);
        code = error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, place->box);
    }
    free (numbers);
    if (!code && gone == 0)
        return code_error (app, TMQ_NOT_FOUND, NULL, "%s: no item of these numbers is there",
                           place->box);
    if (!code)
        note (app, "%" PRIu64 " of %zu acknowledged", gone, count);
    return code;
}

/* The verbs. */

static int run_mail (app_t *app, int (*run) (app_t *app, const place_t *place))
{
    place_t place = {0};
    const int code = mail_place (&place, app);
    return code ? code : run (app, &place);
}

static int mail_send (app_t *app)
{
    return run_mail (app, put);
}

static int mail_read (app_t *app)
{
    return run_mail (app, show);
}

static int mail_ack (app_t *app)
{
    return run_mail (app, acknowledge);
}

int session_input (app_t *app)
{
    const char *verb = app->args.operands[1];
    place_t place = {0};
    const int code = input_place (&place, app);
    if (code)
        return code;
    if (strcmp (verb, "add") == 0)
        return put (app, &place);
    if (strcmp (verb, "list") == 0)
        return show (app, &place);
    if (strcmp (verb, "drop") == 0)
        return acknowledge (app, &place);
    return usage_error (app, "taskctl help session", "session input has no verb '%.40s'", verb);
}

const verb_t mail_verbs[] = {{"send", "AGENT [-]", 1, 2, mail_send},
                             {"read", "AGENT", 1, 1, mail_read},
                             {"ack", "AGENT NUMBER...", 2, -1, mail_ack},
                             {.name = NULL}};
