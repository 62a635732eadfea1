/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/table.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/memory.h"
#include "screen/output.h"

enum {
    COLUMNS_MAX = 32,
    SEPARATOR = 2,
    NARROWEST = 8, /* what cutting leaves of a column at least, and its title */
    ROOMY = 12     /* what others make room for before it is cut further */
};

struct table {
    const app_t *app;
    struct libscols_table *scols;
    struct libscols_line *line;
    struct libscols_column *columns[COLUMNS_MAX];
    bool may_cut[COLUMNS_MAX];
    bool filled[COLUMNS_MAX]; /* some row has something there */
    bool left_out[COLUMNS_MAX];
    int yields[COLUMNS_MAX]; /* 0: not at all */
    size_t widths[COLUMNS_MAX];
    size_t count;
    bool headings;
};

/* Colours. */

const char *paint_status (const app_t *app, tmq_status_t status)
{
    if (!app->color)
        return "";
    switch (status) {
    case TMQ_STATUS_WORKING: return "\033[36m";
    case TMQ_STATUS_INPUT_REQUIRED: return "\033[35m";
    case TMQ_STATUS_COMPLETED: return "\033[32m";
    case TMQ_STATUS_FAILED: return "\033[31m";
    case TMQ_STATUS_CANCELLED: return "\033[33m";
    default: return "";
    }
}

const char *paint_bold (const app_t *app)
{
    return app->color ? "\033[1m" : "";
}

const char *paint_dim (const app_t *app)
{
    return app->color ? "\033[2m" : "";
}

const char *paint_end (const app_t *app)
{
    return app->color ? "\033[0m" : "";
}

/* Tables. */

static size_t measure_columns (void)
{
    struct winsize size;
    const char *environment = getenv ("COLUMNS");
    if (!isatty (STDOUT_FILENO))
        return 0;
    if (environment && atoi (environment) > 0)
        return (size_t) atoi (environment);
    if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

size_t terminal_columns (void)
{
    static bool measured; /* behind a pager it could not be found out any more */
    static size_t columns;
    if (!measured)
        columns = measure_columns ();
    measured = true;
    return columns;
}

static void *or_die (void *memory)
{
    return memory ? memory : must_grow (NULL, SIZE_MAX, 2);
}

table_t *table_new (const app_t *app, const column_t *columns, size_t count, bool headings)
{
    table_t *self = must_alloc (sizeof *self);
    self->app = app;
    self->scols = or_die (scols_new_table ());
    scols_table_enable_noencoding (self->scols, 1); /* table_set has escaped what has to be */
    if (terminal_columns ()) {
        scols_table_set_termforce (self->scols, SCOLS_TERMFORCE_ALWAYS);
        scols_table_set_termwidth (self->scols, terminal_columns ());
    }
    scols_table_enable_colors (self->scols, app->color);
    scols_table_enable_noheadings (self->scols, !headings);
    scols_table_set_column_separator (self->scols, "  ");
    for (size_t i = 0; i < count; i++) {
        const int flags = columns[i].flags;
        const int known = flags & COLUMN_RIGHT ? SCOLS_FL_RIGHT : 0;
        self->columns[i] =
            or_die (scols_table_new_column (self->scols, columns[i].title, 0, known));
        self->may_cut[i] = flags & COLUMN_TRUNCATE;
        self->yields[i] = flags / COLUMN_YIELDS;
        self->widths[i] = headings ? strlen (columns[i].title) : 0;
    }
    self->count = count;
    self->headings = headings;
    return self;
}

/* The columns that a text takes, max at most. *bytes (may be NULL): how much of it that is. */
static size_t text_width (const char *text, size_t max, size_t *bytes)
{
    const char *at = text;
    size_t width = 0;
    mbstate_t state = {0};
    while (*at) {
        wchar_t letter;
        size_t length = mbrtowc (&letter, at, MB_CUR_MAX, &state);
        if (length == (size_t) -1 || length == (size_t) -2) /* no text of this locale: as bytes */
            length = 1;
        const int columns = length == 1 ? 1 : wcwidth (letter);
        if (columns > 0 && width + (size_t) columns > max)
            break;
        width += columns > 0 ? (size_t) columns : 0;
        at += length;
    }
    if (bytes)
        *bytes = (size_t) (at - text);
    return width;
}

/* A row's width, if of a column that may be cut at most so much counts. */
static size_t row_width (const table_t *self, size_t cut_to)
{
    size_t total = 0;
    for (size_t i = 0; i < self->count; i++) {
        const bool cut = self->may_cut[i] && self->widths[i] > cut_to;
        if (!self->left_out[i])
            total += (cut ? cut_to : self->widths[i]) + SEPARATOR;
    }
    return total - (total ? SEPARATOR : 0);
}

/* The column that is missed least, or count. */
static size_t least_wanted (const table_t *self)
{
    size_t least = self->count;
    for (size_t i = 0; i < self->count; i++) {
        if (self->left_out[i] || self->yields[i] == 0)
            continue;
        if (least == self->count || self->filled[i] < self->filled[least] ||
            (self->filled[i] == self->filled[least] && self->yields[i] < self->yields[least]))
            least = i;
    }
    return least;
}

void table_fit (table_t *self)
{
    const size_t columns = terminal_columns ();
    size_t i = 0;
    while (columns && row_width (self, ROOMY) > columns && i < self->count) {
        i = least_wanted (self);
        if (i < self->count) {
            self->left_out[i] = true;
            scols_column_set_flags (self->columns[i], SCOLS_FL_HIDDEN);
        }
    }
}

bool table_has_left_out (const table_t *self, size_t column)
{
    return self->left_out[column];
}

/* Narrows the widest columns that may be cut until a row fits the terminal. */
static void narrow (size_t widths[COLUMNS_MAX], const table_t *self)
{
    size_t total = row_width (self, SIZE_MAX);
    for (size_t i = 0; i < self->count; i++)
        widths[i] = self->widths[i];
    for (; total > terminal_columns (); total--) {
        size_t widest = self->count;
        for (size_t i = 0; i < self->count; i++)
            if (self->may_cut[i] && !self->left_out[i] && widths[i] > NARROWEST &&
                (widest == self->count || widths[i] > widths[widest]))
                widest = i;
        if (widest == self->count)
            return;
        widths[widest]--;
    }
}

/* What is left out is seen: the beginning of a text may be another text. */
static void cut_cell (const table_t *self, struct libscols_cell *cell, size_t width)
{
    const char *text = scols_cell_get_data (cell);
    const char *mark = self->app->utf8 ? "…" : "..";
    const size_t mark_width = self->app->utf8 ? 1 : 2;
    size_t bytes;
    char *shorter;
    if (!text || text_width (text, SIZE_MAX, NULL) <= width)
        return;
    text_width (text, width - mark_width, &bytes);
    if (asprintf (&shorter, "%.*s%s", (int) bytes, text, mark) < 0)
        or_die (NULL);
    scols_cell_set_data (cell, shorter);
    free (shorter);
}

static void cut_rows (table_t *self)
{
    size_t widths[COLUMNS_MAX];
    struct libscols_iter *rows = or_die (scols_new_iter (SCOLS_ITER_FORWARD));
    struct libscols_line *row;
    narrow (widths, self);
    while (scols_table_next_line (self->scols, rows, &row) == 0)
        for (size_t i = 0; i < self->count; i++)
            if (widths[i] < self->widths[i])
                cut_cell (self, scols_line_get_column_cell (row, self->columns[i]), widths[i]);
    scols_free_iter (rows);
}

void table_row (table_t *self)
{
    self->line = or_die (scols_table_new_line (self->scols, NULL));
}

void table_set (table_t *self, size_t column, const char *format, ...)
{
    va_list list;
    char *text = NULL;
    va_start (list, format);
    if (vasprintf (&text, format, list) < 0)
        or_die (NULL);
    va_end (list);
    char *safe = safe_text (self->app, text);
    const char *shown = *safe ? safe : "-";
    const size_t width = text_width (shown, SIZE_MAX, NULL);
    self->filled[column] |= *safe != '\0';
    scols_line_set_column_data (self->line, self->columns[column], shown);
    if (width > self->widths[column])
        self->widths[column] = width;
    free (safe);
    free (text);
}

void table_paint (table_t *self, size_t column, tmq_status_t status)
{
    const char *sequence = paint_status (self->app, status);
    if (*sequence)
        scols_cell_set_color (scols_line_get_column_cell (self->line, self->columns[column]),
                              sequence);
}

size_t table_rows (const table_t *self)
{
    return scols_table_get_nlines (self->scols);
}

static void table_free (table_t *self)
{
    scols_unref_table (self->scols);
    free (self);
}

void table_end (table_t *self)
{
    table_fit (self);
    if (terminal_columns ())
        cut_rows (self);
    scols_print_table (self->scols);
    table_free (self);
}

void table_end_with (table_t *self, table_below_t *below, void *context)
{
    char *text = NULL;
    char *rest;
    size_t row = 0;
    bool is_heading = self->headings;
    table_fit (self);
    if (terminal_columns ())
        cut_rows (self);
    if (scols_print_table_to_string (self->scols, &text) != 0)
        or_die (NULL);
    for (char *line = strtok_r (text, "\n", &rest); line; line = strtok_r (NULL, "\n", &rest)) {
        puts (line);
        if (!is_heading)
            below (context, row++);
        is_heading = false;
    }
    free (text);
    table_free (self);
}
