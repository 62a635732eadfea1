/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One run of taskctl: what was asked for, how to show it, the connection; and everything that
 * writes to the screen. stdout carries data, stderr everything else.
 *
 * Failure policy: a function that returns an exit code has already said on stderr what is wrong.
 * Memory that runs out ends the program: nothing here could go on without it. */
#ifndef TASKCTL_APP_H
#define TASKCTL_APP_H

#include <stdarg.h>
#include <stdio.h>

#include "command.h"
#include "taskmq.h"

typedef enum format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_JSONL, FORMAT_ID } format_t;
typedef enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_when_t;

/* A stable interface: scripts are written against these numbers. */
typedef enum exit_code {
    EXIT_OK = 0,
    EXIT_OTHER = 1,
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,
    EXIT_DENIED = 4,
    EXIT_NOT_FOUND = 5,
    EXIT_CONFLICT = 6,
    EXIT_DEADLINE = 7,
    EXIT_TASK = 8,
    EXIT_SOME = 9,
    EXIT_OVERLOADED = 10,
    EXIT_UNKNOWN = 11,
    EXIT_INTERRUPTED = 130,
    EXIT_TERMINATED = 143
} exit_code_t;

typedef struct app {
    args_t args;
    format_t format;
    bool quiet;
    bool verbose;
    bool color; /* on stdout */
    bool utf8;  /* what the locale can show */
    uint32_t timeout_ms;
    const char *ns;       /* namespace */
    tmq_client_t *client; /* NULL until app_connect */
} app_t;

/* Messages (output.c). */

/* "taskctl: TEXT" and "hint: HINT" (NULL: none) on stderr, or the error as JSON with -o json.
 * Returns EXIT_USAGE. */
int usage_error (const app_t *app, const char *hint, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* The same for an error with a code of taskmq_types.h. Returns its exit code. */
int code_error (const app_t *app, int code, const char *hint, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));
/* The task itself ended badly; name is the error's code in JSON. Returns EXIT_TASK. */
int task_error (const app_t *app, const char *name, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* What the library said about `what` (an id, a queue; NULL: nothing in particular). */
int library_error (const app_t *app, const tmq_error_t *error, const char *what);
/* A line on stderr that -q silences; says nothing about success or failure. */
void note (const app_t *app, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* A line on stderr that only -v shows. */
void detail (const app_t *app, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* Of a code of taskmq_types.h. */
int exit_of_code (int code);

/* Text from a task, with control bytes and what the locale cannot show as \xNN. */
void print_text (const app_t *app, FILE *stream, const char *text);

/* Several things were to be done and some failed: which exit code that makes. */
typedef struct tally {
    size_t done;
    size_t failed;
    int code; /* of the failures, if they all had the same, else EXIT_SOME */
} tally_t;
void tally_add (tally_t *tally, int exit_code);
int tally_exit (const tally_t *tally);

/* Connection (connect.c). */

/* Finds the broker and connects. 0 or an exit code. */
int app_connect (app_t *app);
/* The same, but waits until --timeout for a broker that does not exist yet. */
int app_connect_patiently (app_t *app);
/* Goes away politely. */
void app_disconnect (app_t *app);
/* A full id, or the ending of one, looked up. 0 or an exit code. */
int app_resolve (app_t *app, tmq_id_t *out, const char *text);
/* All operands; those that cannot be resolved are counted in tally. *out is freed by free (). */
void app_resolve_operands (app_t *app, tmq_id_t **out, size_t *count, tally_t *tally);
/* True if the operands could be ids; else an exit code is in *code. Needs no connection. */
bool app_operands_are_ids (app_t *app, int *code);

/* Small things (util.c). */

/* They end the program when memory runs out. */
void *must_alloc (size_t size);
void *must_grow (void *memory, size_t count, size_t size);
char *must_copy (const char *text);

/* A file's or stream's bytes ("-": stdin). 0, or an exit code after saying why. At most limit
 * bytes; more is an error. *data is freed by free () and ends with a NUL that does not count. */
int read_all (const app_t *app, char **data, size_t *bytes, const char *path, size_t limit);

/* Now, in milliseconds since the epoch, and on a clock that never jumps. */
uint64_t wall_ms (void);
uint64_t mono_ms (void);

#endif
