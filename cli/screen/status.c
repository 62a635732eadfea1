/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BAR_CELLS = 24, COLUMNS_DEFAULT = 80 };

static bool is_pipe (int fd)
{
    struct stat status;
    return fstat (fd, &status) == 0 && (S_ISFIFO (status.st_mode) || S_ISSOCK (status.st_mode));
}

void status_begin (status_line_t *self, app_t *app)
{
    const char *terminal = getenv ("TERM");
    memset (self, 0, sizeof *self);
    self->possible = !app->quiet && isatty (STDERR_FILENO) && !is_pipe (STDOUT_FILENO) &&
                     terminal && strcmp (terminal, "dumb") != 0;
    app->status = self;
}

void status_hide (const app_t *app)
{
    status_line_t *self = app->status;
    if (!self || !self->drawn)
        return;
    fputs ("\r\033[K", stderr);
    fflush (stderr);
    self->drawn = false;
}

void status_end (app_t *app)
{
    status_hide (app);
    app->status = NULL;
}

/* A job in the background of a shell keeps its hands off the prompt. */
static bool is_in_foreground (void)
{
    const pid_t group = tcgetpgrp (STDERR_FILENO);
    return group < 0 || group == getpgrp ();
}

/* Cuts text to the terminal's width, less a column, so that it never wraps. */
static void cut (char *text)
{
    struct winsize size;
    size_t columns = COLUMNS_DEFAULT;
    if (ioctl (STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
        columns = size.ws_col;
    for (char *at = text; *at; at++) {
        const bool begins = ((unsigned char) *at & 0xc0) != 0x80; /* a character */
        if (begins && --columns == 0) {
            *at = '\0';
            return;
        }
    }
}

static void draw (status_line_t *self, char *text)
{
    cut (text);
    if (self->drawn && strcmp (self->text, text) == 0)
        return;
    if (!is_in_foreground ())
        return;
    snprintf (self->text, sizeof self->text, "%s", text);
    fflush (stdout);
    fprintf (stderr, "\r\033[K%s", text);
    fflush (stderr);
    self->drawn = true;
}

void status_show (const app_t *app, const char *format, ...)
{
    char text[STATUS_BYTES_MAX];
    va_list list;
    if (!app->status || !app->status->possible)
        return;
    va_start (list, format);
    vsnprintf (text, sizeof text, format, list);
    va_end (list);
    draw (app->status, text);
}

void status_show_bar (const app_t *app, uint64_t done, uint64_t total, const char *format, ...)
{
    char text[STATUS_BYTES_MAX];
    size_t used = 0;
    va_list list;
    if (!app->status || !app->status->possible)
        return;
    const uint64_t filled = total ? done * BAR_CELLS / total : 0;
    const char *full = app->utf8 ? "█" : "#";
    const char *empty = app->utf8 ? "░" : ".";
    for (uint64_t i = 0; i < BAR_CELLS; i++)
        used +=
            (size_t) snprintf (text + used, sizeof text - used, "%s", i < filled ? full : empty);
    used += (size_t) snprintf (text + used, sizeof text - used, "  ");
    va_start (list, format);
    vsnprintf (text + used, sizeof text - used, format, list);
    va_end (list);
    draw (app->status, text);
}
