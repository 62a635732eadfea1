/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/turns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "base/patience.h"
#include "ids.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"

enum { PAGE_TURNS = 100, INDENT = 4, DETAIL_INDENT = 9, LINES_SHOWN = 12, LINE_BYTES_MAX = 1024 };

int turns_load (turns_view_t *self, const app_t *app, const tmq_id_t *id, bool whole,
                tmq_error_t *error)
{
    const unsigned parts =
        whole ? TMQ_TURN_CONTENT | TMQ_TURN_TOOL_CALLS | TMQ_TURN_TOOL_LOG | TMQ_TURN_FILES
              : TMQ_TURN_FILES;
    uint32_t after = 0;
    *self = (turns_view_t){0};
    do {
        tmq_turn_list_t *page;
        patience_t patience = {0};
        int code;
        do
            code = tmq_turns (&page, app->client, id, 0, after, PAGE_TURNS, parts, app->timeout_ms,
                              error);
        while (patience_waits (&patience, error, app->timeout_ms));
        if (code != TMQ_OK)
            return code;
        self->pages = must_grow (self->pages, self->pages_count + 1, sizeof (void *));
        self->pages[self->pages_count++] = page;
        after = page->next;
    } while (after);
    return TMQ_OK;
}

void turns_clear (turns_view_t *self)
{
    for (size_t i = 0; i < self->pages_count; i++)
        tmq_turn_list_free (self->pages[i]);
    free (self->pages);
}

/* The next turn; at counts pages and turns from 0. NULL: it was the last. */
typedef struct at {
    size_t page;
    size_t turn;
} at_t;

static const tmq_turn_info_t *next (const turns_view_t *self, at_t *at)
{
    while (at->page < self->pages_count && at->turn == self->pages[at->page]->count)
        *at = (at_t){at->page + 1, 0};
    return at->page < self->pages_count ? &self->pages[at->page]->turns[at->turn++] : NULL;
}

/* JSON. */

static void write_raw (json_writer_t *writer, const char *key, const char *json)
{
    json_write_key (writer, key);
    if (json && *json)
        json_write_raw (writer, json, strlen (json));
    else
        json_write_null (writer);
}

static void write_superseded (json_writer_t *writer, bool superseded)
{
    json_write_key (writer, "superseded");
    json_write_bool (writer, superseded);
}

static void write_turn (json_writer_t *writer, const tmq_turn_info_t *turn)
{
    json_write_object_begin (writer);
    member_uint (writer, "turn", turn->turn);
    member_uint (writer, "attempt", turn->attempt);
    member_uint (writer, "number", turn->number);
    member_text (writer, "worker", turn->worker);
    member_text (writer, "agent", turn->agent);
    member_text (writer, "status", turn->status);
    member_time (writer, "started_at", turn->started_at);
    json_write_key (writer, "duration_ms");
    if (turn->duration_ms)
        json_write_uint (writer, turn->duration_ms);
    else
        json_write_null (writer);
    member_time (writer, "told_at", turn->told_at);
    write_superseded (writer, turn->superseded);
    member_text (writer, "content", turn->content);
    write_raw (writer, "tool_calls", turn->tool_calls);
    member_text (writer, "tool_log", turn->tool_log);
    json_write_key (writer, "files");
    json_write_array_begin (writer);
    for (size_t i = 0; i < turn->files_count; i++) {
        json_write_object_begin (writer);
        member_text (writer, "op", tmq_file_op_text (turn->files[i].op));
        member_text (writer, "path", turn->files[i].path);
        json_write_object_end (writer);
    }
    json_write_array_end (writer);
    json_write_object_end (writer);
}

void turns_write (json_writer_t *writer, const turns_view_t *self)
{
    const tmq_turn_info_t *turn;
    at_t at = {0};
    json_write_array_begin (writer);
    while ((turn = next (self, &at)))
        write_turn (writer, turn);
    json_write_array_end (writer);
}

/* Files: one entry for each path and what was done to it, with the newest turn that did so. */

typedef struct touched {
    const char *path;
    tmq_file_op_t op;
    uint32_t turn;
    bool superseded;
} touched_t;

static int compare (const void *left, const void *right)
{
    const touched_t *a = left;
    const touched_t *b = right;
    const int path = strcmp (a->path, b->path);
    if (path != 0)
        return path;
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    if (a->superseded != b->superseded) /* what counts comes first, then what is newer */
        return a->superseded ? 1 : -1;
    return a->turn > b->turn ? -1 : a->turn < b->turn;
}

static touched_t *merge (const turns_view_t *self, size_t *count)
{
    touched_t *all = NULL;
    const tmq_turn_info_t *turn;
    size_t used = 0;
    at_t at = {0};
    while ((turn = next (self, &at))) {
        all = must_grow (all, used + turn->files_count + 1, sizeof *all);
        for (size_t i = 0; i < turn->files_count; i++)
            all[used++] =
                (touched_t){turn->files[i].path, turn->files[i].op, turn->turn, turn->superseded};
    }
    if (used > 0)
        qsort (all, used, sizeof *all, compare);
    *count = 0;
    for (size_t i = 0; i < used; i++)
        if (i == 0 || strcmp (all[i].path, all[i - 1].path) != 0 || all[i].op != all[i - 1].op)
            all[(*count)++] = all[i];
    return all;
}

void turns_write_files (json_writer_t *writer, const turns_view_t *self)
{
    size_t count;
    touched_t *files = merge (self, &count);
    json_write_array_begin (writer);
    for (size_t i = 0; i < count; i++) {
        json_write_object_begin (writer);
        member_text (writer, "path", files[i].path);
        member_text (writer, "op", tmq_file_op_text (files[i].op));
        member_uint (writer, "turn", files[i].turn);
        write_superseded (writer, files[i].superseded);
        json_write_object_end (writer);
    }
    json_write_array_end (writer);
    free (files);
}

void turns_show_files (const app_t *app, const turns_view_t *self)
{
    size_t count;
    touched_t *files = merge (self, &count);
    printf ("  %sfiles%s\n", paint_dim (app), paint_end (app));
    for (size_t i = 0; i < count; i++) {
        printf ("%*s%-6s  turn %-3" PRIu32 "  ", INDENT, "", tmq_file_op_text (files[i].op),
                files[i].turn);
        print_text (app, stdout, files[i].path);
        if (files[i].superseded)
            printf ("  %ssuperseded%s", paint_dim (app), paint_end (app));
        putchar ('\n');
    }
    if (count == 0)
        printf ("%*snone\n", INDENT, "");
    free (files);
}

/* Lines. */

/* The beginning of a text, line by line and wrapped; what is left out is said. */
static void show_text (const app_t *app, const char *name, const char *text, const char *id)
{
    char line[LINE_BYTES_MAX + 1];
    const size_t indent = DETAIL_INDENT + (*name ? strlen (name) + 2 : 0);
    int lines = 0;
    if (!text || !*text)
        return;
    while (*text && lines++ < LINES_SHOWN) {
        const size_t whole = strcspn (text, "\n");
        const size_t size = utf8_whole (text, whole, LINE_BYTES_MAX);
        memcpy (line, text, size);
        line[size] = '\0';
        printf ("%*s%s%s%s%s", DETAIL_INDENT, "", paint_dim (app), lines == 1 ? name : "",
                paint_end (app), "");
        printf ("%*s", (int) (indent - DETAIL_INDENT) - (lines == 1 ? (int) strlen (name) : 0), "");
        print_wrapped_text (app, line, indent, indent);
        putchar ('\n');
        text += size < whole ? size : whole + (text[whole] == '\n');
    }
    if (*text)
        printf ("%*s%s... %zu more bytes: taskctl -o json get --turns %s%s\n", (int) indent, "",
                paint_dim (app), strlen (text), id, paint_end (app));
}

/* The name of a called tool, in any of the forms that are in use. */
static const char *tool_of (const json_t *call)
{
    const char *const keys[] = {"name", "tool"};
    const json_t *function = json_object_get (call, "function");
    if (json_is_string (call))
        return json_string_value (call);
    if (json_is_string (function))
        return json_string_value (function);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *name = json_object_get (function ? function : call, keys[i]);
        if (json_is_string (name))
            return json_string_value (name);
    }
    return NULL;
}

/* The names of the tools, if that is what the JSON has, else its text. */
static void show_tools (const app_t *app, const char *text, const char *id)
{
    json_t *calls = text && *text ? json_loads (text, JSON_DECODE_ANY, NULL) : NULL;
    char names[LINE_BYTES_MAX] = "";
    size_t used = 0;
    bool named = json_is_array (calls) && json_array_size (calls) > 0;
    for (size_t i = 0; named && i < json_array_size (calls); i++) {
        const char *name = tool_of (json_array_get (calls, i));
        named = name && used + strlen (name) + 3 < sizeof names;
        if (named)
            used +=
                (size_t) snprintf (names + used, sizeof names - used, "%s%s", i ? ", " : "", name);
    }
    show_text (app, "tools", named ? names : text, id);
    json_decref (calls);
}

static void show_head (const app_t *app, const tmq_turn_info_t *turn)
{
    char took[UNITS_TEXT_SIZE];
    char text[LOCAL_TIME_SIZE];
    char zone[ZONE_SIZE];
    long zone_s = 0;
    printf ("%*s%s%3" PRIu32 "%s  ", INDENT - 2, "", turn->superseded ? "" : paint_bold (app),
            turn->turn, turn->superseded ? "" : paint_end (app));
    if (*turn->agent) {
        print_text (app, stdout, turn->agent);
        fputs ("  ", stdout);
    }
    if (*turn->status) {
        print_text (app, stdout, turn->status);
        fputs ("  ", stdout);
    }
    printf ("%sattempt %" PRIu32, paint_dim (app), turn->attempt);
    if (local_time (text, zone, &zone_s, turn->started_at ? turn->started_at : turn->told_at))
        printf ("  %s", text);
    if (turn->duration_ms)
        printf ("  in %s", duration_format (took, (int64_t) turn->duration_ms));
    printf ("%s%s\n", turn->superseded ? "  superseded" : "", paint_end (app));
}

static void show_touched (const app_t *app, const tmq_turn_info_t *turn)
{
    for (size_t i = 0; i < turn->files_count; i++) {
        printf ("%*s%s%-6s%s  ", DETAIL_INDENT, "", paint_dim (app),
                tmq_file_op_text (turn->files[i].op), paint_end (app));
        print_text (app, stdout, turn->files[i].path);
        putchar ('\n');
    }
}

void turns_show (const app_t *app, const turns_view_t *self, const tmq_id_t *id)
{
    char text[ID_TEXT_SIZE];
    const tmq_turn_info_t *turn;
    at_t at = {0};
    bool any = false;
    tmq_id_format (id, text);
    printf ("  %sturns%s\n", paint_dim (app), paint_end (app));
    while ((turn = next (self, &at))) {
        any = true;
        show_head (app, turn);
        show_text (app, "", turn->content, text);
        show_tools (app, turn->tool_calls, text);
        show_text (app, "log", turn->tool_log, text);
        show_touched (app, turn);
    }
    if (!any)
        printf ("%*snone\n", INDENT, "");
}
