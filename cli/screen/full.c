/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/full.h"

#define NCURSES_NOMACROS
#include <ncurses.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "screen/output.h"

enum { TEXT_MAX = 1024, PAIR_GOOD = 1, PAIR_BAD = 2 };

static SCREEN *screen;
static bool colored;

int full_check (const app_t *app)
{
    if (isatty (STDOUT_FILENO) && isatty (STDIN_FILENO))
        return 0;
    return usage_error (app, "numbers for scripts: taskctl stats, taskctl queue list",
                        "top needs a terminal");
}

int full_begin (const app_t *app)
{
    const char *terminal = getenv ("TERM");
    screen = newterm (NULL, stdout, stdin);
    if (!screen)
        return usage_error (app, "set TERM to what your terminal is",
                            "top cannot draw on a terminal of the type '%.40s'",
                            terminal ? terminal : "");
    set_term (screen);
    cbreak ();
    noecho ();
    nonl ();
    keypad (stdscr, TRUE);
    nodelay (stdscr, TRUE);
    curs_set (0);
    colored = app->color && has_colors () && start_color () == OK;
    if (colored) {
        use_default_colors ();
        init_pair (PAIR_GOOD, COLOR_GREEN, -1);
        init_pair (PAIR_BAD, COLOR_RED, -1);
    }
    return 0;
}

void full_end (void)
{
    if (!screen)
        return;
    endwin ();
    delscreen (screen);
    screen = NULL;
}

size_t full_lines (void)
{
    return LINES > 0 ? (size_t) LINES : 0;
}

size_t full_columns (void)
{
    return COLS > 0 ? (size_t) COLS : 0;
}

void full_clear (void)
{
    erase ();
}

static attr_t look_of (full_look_t look)
{
    switch (look) {
    case FULL_HEAD: return A_BOLD;
    case FULL_BAR: return A_REVERSE;
    case FULL_GOOD: return colored ? (attr_t) COLOR_PAIR (PAIR_GOOD) : A_NORMAL;
    case FULL_BAD: return A_BOLD | (colored ? (attr_t) COLOR_PAIR (PAIR_BAD) : A_NORMAL);
    case FULL_DIM: return A_DIM;
    default: return A_NORMAL;
    }
}

void full_put (const app_t *app, size_t line, size_t column, size_t width, full_look_t look,
               const char *format, ...)
{
    char text[TEXT_MAX];
    wchar_t wide[TEXT_MAX];
    size_t used = 0, count = 0;
    va_list list;
    if (line >= full_lines () || column >= full_columns ())
        return;
    if (width > full_columns () - column)
        width = full_columns () - column;
    va_start (list, format);
    vsnprintf (text, sizeof text, format, list);
    va_end (list);
    char *safe = safe_text (app, text);
    size_t length = mbstowcs (wide, safe, TEXT_MAX);
    free (safe);
    for (; length != (size_t) -1 && count < length; count++) {
        const int columns = wcwidth (wide[count]);
        if (columns < 0 || used + (size_t) columns > width)
            break;
        used += (size_t) columns;
    }
    attrset ((int) look_of (look));
    mvaddnwstr ((int) line, (int) column, wide, (int) count);
    for (; look == FULL_BAR && used < width; used++)
        addch (' ');
    attrset (A_NORMAL);
}

void full_show (void)
{
    refresh ();
}

int full_key (void)
{
    const int key = getch ();
    if (key == KEY_RESIZE)
        return FULL_RESIZED;
    return key == ERR || key > 127 ? 0 : key;
}
