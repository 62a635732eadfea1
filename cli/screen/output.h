/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Messages on stderr, and text from tasks made safe for a terminal. stdout carries data, stderr
 * everything else. */
#ifndef TASKCTL_OUTPUT_H
#define TASKCTL_OUTPUT_H

#include <stdio.h>

#include "line/app.h"

/* "taskctl: TEXT" and "hint: HINT" (NULL: none) on stderr, or both as JSON with -o json. Returns
 * EXIT_USAGE. */
int usage_error (const app_t *app, const char *hint, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* The same for an error with a code of taskmq_types.h. Returns its exit code. */
int code_error (const app_t *app, int code, const char *hint, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));
/* The same about the task of that id, which JSON names apart. */
int id_error (const app_t *app, int code, const char *id, const char *hint, const char *format, ...)
    __attribute__ ((format (printf, 5, 6)));
/* The same of a request whose outcome is not known; beside the hint it is said where the broker's
 * last word was that its store is out of reach. */
int unknown_error (const app_t *app, const tmq_error_t *error, const char *id, const char *hint,
                   const char *format, ...) __attribute__ ((format (printf, 5, 6)));
/* The task of that id itself ended badly; name is the error's code in JSON. Returns EXIT_TASK. */
int task_error (const app_t *app, const char *name, const char *id, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));
/* What the library said about `what` (an id, a queue; NULL: nothing in particular). */
int library_error (const app_t *app, const tmq_error_t *error, const char *what);
/* What to do about a broker that answered, and cannot reach its store; NULL: the error is another
 * one. */
const char *hint_of_store (const tmq_error_t *error);
/* A line on stderr that -q silences; says nothing about success or failure. */
void note (const app_t *app, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* The same, behind all output, also behind a pager. The text is short; a later one stands below. */
void note_last (app_t *app, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* A line on stderr that only -v shows. */
void detail (const app_t *app, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* Text from a task. Control bytes, hidden characters and what the locale cannot show become
 * \xNN. */
void print_text (const app_t *app, FILE *stream, const char *text);
/* The same for a text that is made of several parts. */
void print_safe (const app_t *app, FILE *stream, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* The same as a text, freed by free (). */
char *safe_text (const app_t *app, const char *text);

#endif
