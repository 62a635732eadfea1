/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/found.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"

/* Characters of the first bytes of a text. */
static uint64_t characters (const char *text, size_t bytes)
{
    uint64_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char) text[i] & 0xc0) != 0x80;
    return count;
}

/* Where the hits stand is told in characters, as most languages count. */
static void write_found (json_writer_t *writer, const tmq_found_t *found)
{
    json_write_key (writer, "found");
    json_write_object_begin (writer);
    json_write_key (writer, "turn");
    if (found->turn > 0)
        json_write_uint (writer, found->turn);
    else
        json_write_null (writer);
    json_write_key (writer, "excerpt");
    json_write_string (writer, found->excerpt, strlen (found->excerpt));
    json_write_key (writer, "hits");
    json_write_array_begin (writer);
    for (size_t i = 0; i < found->hits_count; i++) {
        const tmq_hit_t *hit = &found->hits[i];
        json_write_array_begin (writer);
        json_write_uint (writer, characters (found->excerpt, hit->begin));
        json_write_uint (writer, characters (found->excerpt + hit->begin, hit->length));
        json_write_array_end (writer);
    }
    json_write_array_end (writer);
    json_write_object_end (writer);
}

/* In one line: what is between words is one space. */
static void print_piece (const app_t *app, const char *text, size_t length)
{
    char *line = must_alloc (length + 1);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        const bool space = text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r';
        if (!space)
            line[used++] = text[i];
        else if (used == 0 || line[used - 1] != ' ')
            line[used++] = ' ';
    }
    line[used] = '\0';
    print_text (app, stdout, line);
    free (line);
}

static void print_excerpt (const app_t *app, const tmq_found_t *found)
{
    size_t at = 0;
    for (size_t i = 0; i < found->hits_count; i++) {
        const tmq_hit_t *hit = &found->hits[i];
        if (hit->begin < at)
            continue;
        print_piece (app, found->excerpt + at, hit->begin - at);
        fputs (paint_bold (app), stdout);
        print_piece (app, found->excerpt + hit->begin, hit->length);
        fputs (paint_end (app), stdout);
        at = hit->begin + hit->length;
    }
    print_piece (app, found->excerpt + at, strlen (found->excerpt) - at);
}

/* A page on its way to a table. */
typedef struct shown {
    const app_t *app;
    const tmq_found_list_t *page;
} shown_t;

static void print_below (void *context, size_t row)
{
    const shown_t *self = context;
    fputs ("    ", stdout);
    print_excerpt (self->app, &self->page->found[row]);
    putchar ('\n');
}

static void add_row (table_t *table, const tmq_task_t *task, const tmq_found_t *found)
{
    char id[37];
    char when[UNITS_TEXT_SIZE];
    tmq_id_format (&task->id, id);
    table_row (table);
    table_set (table, 0, "%s", id + id_from (FULL_ID_COLUMNS));
    table_set (table, 1, "%s", tmq_status_text (task->status));
    table_paint (table, 1, task->status);
    table_set (table, 2, "%s", task->queue);
    table_set (table, 3, "%s",
               time_format_relative (when, (int64_t) task->created_at, (int64_t) wall_ms ()));
    if (found->turn > 0)
        table_set (table, 4, "%" PRIu32, found->turn);
    else
        table_set (table, 4, "%s", "");
}

/* Rows as those of a list, each with its excerpt below it. */
static void show_table (const app_t *app, const tmq_found_list_t *page, bool headings)
{
    static const column_t columns[] = {{"ID", COLUMN_LEFT},
                                       {"STATUS", COLUMN_LEFT},
                                       {"QUEUE", COLUMN_TRUNCATE},
                                       {"CREATED", COLUMN_RIGHT},
                                       {"TURN", COLUMN_RIGHT | 1 * COLUMN_YIELDS}};
    shown_t shown = {app, page};
    if (page->tasks->count == 0)
        return;
    table_t *table = table_new (app, columns, sizeof columns / sizeof *columns, headings);
    for (size_t i = 0; i < page->tasks->count; i++)
        add_row (table, page->tasks->tasks[i], &page->found[i]);
    table_end_with (table, print_below, &shown);
}

static void add_object (items_t *items, const tmq_task_t *task, const tmq_found_t *found)
{
    json_writer_t *writer = items_open (items);
    json_write_object_begin (writer);
    write_task_members (writer, task, false);
    write_found (writer, found);
    json_write_object_end (writer);
    items_close (items);
}

void found_show (items_t *items, const tmq_found_list_t *page)
{
    const app_t *app = items->app;
    const size_t count = page->tasks->count;
    if (app_wants_json (app)) {
        for (size_t i = 0; i < count; i++)
            add_object (items, page->tasks->tasks[i], &page->found[i]);
        return;
    }
    for (size_t i = 0; app->format == FORMAT_ID && i < count; i++) {
        char id[37];
        tmq_id_format (&page->tasks->tasks[i]->id, id);
        puts (id);
    }
    if (app->format != FORMAT_ID)
        show_table (app, page, items->count == 0);
    items->count += count;
}

void found_note (app_t *app, const tmq_found_list_t *list)
{
    if (*list->stalled)
        note_last (app, "the index does not go on, so newer texts are missing: %s", list->stalled);
    else if (list->building)
        note_last (app,
                   "the index is being built: texts of older tasks come first, up to task"
                   " %" PRIu64 " of %" PRIu64 " by now",
                   list->built, list->last);
    else if (list->behind)
        note_last (app, "the index lags by %" PRIu64 " events: newer texts may be missing",
                   list->lag);
}
