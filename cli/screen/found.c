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

static void print_found (const app_t *app, const tmq_task_t *task, const tmq_found_t *found)
{
    char id[37];
    char when[UNITS_TEXT_SIZE];
    tmq_id_format (&task->id, id);
    printf ("%s%s%s  %s%s%s  ", paint_bold (app), id + id_from (FULL_ID_COLUMNS), paint_end (app),
            paint_status (app, task->status), tmq_status_text (task->status), paint_end (app));
    print_text (app, stdout, task->queue);
    printf ("  %s%s", paint_dim (app),
            time_format_relative (when, (int64_t) task->created_at, (int64_t) wall_ms ()));
    if (found->turn > 0)
        printf ("  turn %" PRIu32, found->turn);
    printf ("%s\n    ", paint_end (app));
    print_excerpt (app, found);
    putchar ('\n');
}

void found_show (items_t *items, const tmq_task_t *task, const tmq_found_t *found)
{
    const app_t *app = items->app;
    if (app_wants_json (app)) {
        json_writer_t *writer = items_open (items);
        json_write_object_begin (writer);
        write_task_members (writer, task, false);
        write_found (writer, found);
        json_write_object_end (writer);
        items_close (items);
        return;
    }
    if (app->format == FORMAT_ID) {
        char id[37];
        tmq_id_format (&task->id, id);
        puts (id);
    } else {
        print_found (app, task, found);
    }
    items->count++;
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
