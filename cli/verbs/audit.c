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
#include "base/memory.h"
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

enum {
    CELLS = 5,            /* before the outcome, which is last and may be long */
    GAP = 2,              /* between columns */
    OBJECT_MAX = 36,      /* a longer one moves its outcome: an id has so many … */
    OBJECT_PIPE_MAX = 64, /* … where nothing has to fit a terminal */
    OUTCOME_MIN = 12,     /* else it stands right behind its object */
    SECONDS_LENGTH = 19   /* "2026-11-22 05:00:01" */
};
static const char *const heads[CELLS] = {"AT", "KIND", "ACTOR", "FROM", "OBJECT"};

/* One line of the record for people: when, what, who, from where, to what; how it ended, and
 * more. */
typedef struct deed {
    char *cells[CELLS]; /* safe for a terminal */
    char *outcome;      /* as it is */
} deed_t;

/* What is shown stands in columns, also over several pages: they only become wider. */
typedef struct tail {
    const app_t *app;
    bool headed; /* the heads stand already */
    size_t widths[CELLS];
} tail_t;

static const char *member (const json_t *object, const char *key)
{
    const char *text = json_string_value (json_object_get (object, key));
    return text != NULL ? text : "-";
}

/* Where the reader is, to the second; -o jsonl has all of it. */
static char *local_text (const app_t *app, const char *at)
{
    char text[LOCAL_TIME_SIZE];
    char zone[ZONE_SIZE];
    long zone_s;
    uint64_t ms;
    if (!value_time (&ms, at) || !local_time (text, zone, &zone_s, ms))
        return safe_text (app, at);
    text[SECONDS_LENGTH] = '\0';
    return safe_text (app, text);
}

static void deed_read (deed_t *out, const app_t *app, const char *line, size_t length)
{
    static const char *const keys[CELLS] = {"at", "kind", "actor", "from", "object"};
    json_t *object = json_loadb (line, length, 0, NULL);
    const char *outcome = member (object, "outcome");
    const char *detail = json_string_value (json_object_get (object, "detail"));
    out->cells[0] = local_text (app, member (object, keys[0]));
    for (size_t i = 1; i < CELLS; i++)
        out->cells[i] = safe_text (app, member (object, keys[i]));
    out->outcome = must_alloc (strlen (outcome) + (detail ? strlen (detail) : 0) + 3);
    sprintf (out->outcome, "%s%s%s", outcome, detail ? ": " : "", detail ? detail : "");
    json_decref (object);
}

static void deed_clear (deed_t *self)
{
    for (size_t i = 0; i < CELLS; i++)
        free (self->cells[i]);
    free (self->outcome);
}

static void measure (tail_t *self, const deed_t *deed)
{
    const size_t object_max = terminal_columns () ? OBJECT_MAX : OBJECT_PIPE_MAX;
    for (size_t i = 0; i < CELLS; i++) {
        const size_t width = columns_of (deed->cells[i], strlen (deed->cells[i]));
        if ((i < CELLS - 1 || width <= object_max) && width > self->widths[i])
            self->widths[i] = width;
    }
}

/* cells has CELLS of them. The last one and the outcome go on below where the terminal ends. */
static void put_line (const tail_t *self, const char *const *cells, const char *outcome)
{
    size_t column = 0;
    for (size_t i = 0; i < CELLS - 1; i++) {
        const size_t width = columns_of (cells[i], strlen (cells[i]));
        printf ("%s%*s", cells[i], (int) (self->widths[i] - width + GAP), "");
        column += self->widths[i] + GAP;
    }
    const char *object = cells[CELLS - 1];
    const size_t width = columns_of (object, strlen (object));
    const size_t wanted = self->widths[CELLS - 1];
    const size_t columns = terminal_columns ();
    const bool fits = columns == 0 || column + wanted + GAP + OUTCOME_MIN <= columns;
    const size_t gap = fits && wanted > width ? wanted - width + GAP : GAP;
    char *rest = must_alloc (strlen (object) + gap + strlen (outcome) + 1);
    sprintf (rest, "%s%*s%s", object, (int) gap, "", outcome);
    print_wrapped_text (self->app, rest, column, SECONDS_LENGTH + GAP);
    free (rest);
}

static void show_heads (tail_t *self)
{
    printf ("%s", paint_dim (self->app));
    put_line (self, heads, "OUTCOME");
    printf ("%s\n", paint_end (self->app));
    self->headed = true;
}

static void show_deeds (tail_t *self, const deed_t *deeds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        measure (self, &deeds[i]);
    if (count > 0 && !self->headed)
        show_heads (self);
    for (size_t i = 0; i < count; i++) {
        put_line (self, (const char *const *) deeds[i].cells, deeds[i].outcome);
        putchar ('\n');
    }
}

static void show_page (tail_t *self, const tmq_part_t *page)
{
    const char *end = page->bytes + page->length;
    deed_t *deeds = NULL;
    size_t count = 0;
    for (const char *line = page->bytes, *newline; line < end; line = newline + 1) {
        newline = memchr (line, '\n', (size_t) (end - line));
        if (newline == NULL)
            break;
        if (app_wants_json (self->app)) {
            fwrite (line, 1, (size_t) (newline - line) + 1, stdout);
            continue;
        }
        deeds = must_grow (deeds, count + 1, sizeof *deeds);
        deed_read (&deeds[count++], self->app, line, (size_t) (newline - line));
    }
    show_deeds (self, deeds, count);
    for (size_t i = 0; i < count; i++)
        deed_clear (&deeds[i]);
    free (deeds);
    fflush (stdout);
}

static tail_t tail_begin (const app_t *app)
{
    tail_t self = {.app = app};
    for (size_t i = 0; i < CELLS; i++)
        self.widths[i] = strlen (heads[i]);
    return self;
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

static int tail_failed (const app_t *app, tmq_error_t *error)
{
    if (strncmp (error->text, "kind:", strlen ("kind:")) == 0 && !strstr (error->text, "did you"))
        snprintf (error->hint, sizeof error->hint,
                  "kinds are key.revoked, access.changed, task.cancelled, backup and others: "
                  "taskctl(1) has them all");
    return library_error (app, error, NULL);
}

static int run_tail (app_t *app)
{
    tmq_error_t error = {0};
    tmq_part_t *page;
    tmq_audit_query_t query;
    tail_t tail = tail_begin (app);
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
            return tail_failed (app, &error);
        show_page (&tail, page);
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
    if (!tail.headed && !app_wants_json (app))
        note (app, "no such lines");
    return EXIT_OK;
}

const verb_t audit_verbs[] = {{"verify", "[FILE | DIR]...", 0, -1, verify_run},
                              {"head", "", 0, 0, run_head},
                              {"tail", "", 0, 0, run_tail},
                              {.name = NULL}};
