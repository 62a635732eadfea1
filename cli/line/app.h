/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One run of taskctl: what was asked for, how to show it, the connection.
 *
 * Failure policy: a function that returns an exit code has already said on stderr what is wrong.
 * Memory that runs out ends the program: nothing here could go on without it. */
#ifndef TASKCTL_APP_H
#define TASKCTL_APP_H

#include "line/command.h"
#include "taskmq.h"

typedef enum format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_JSONL, FORMAT_ID } format_t;
typedef enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_when_t;

typedef struct app {
    args_t args;
    format_t format;
    bool quiet;
    bool verbose;
    bool color;      /* on stdout */
    bool utf8;       /* what the locale can show */
    bool tells_link; /* asked for before app_connect: the connection is told of (link/state.h) */
    uint32_t timeout_ms;
    bool timeout_is_given;      /* by an option or the environment */
    const char *ns;             /* namespace; NULL: that of the profile, until app_connect */
    const char *profile;        /* NULL: none was named */
    char *ns_told;              /* what ns points at behind app_connect */
    tmq_client_t *client;       /* NULL until app_connect */
    tmq_client_t *connection;   /* … what it stands on with --on-behalf; NULL: itself */
    struct status_line *status; /* NULL: there is none; see screen/status.h */
    char *key_file;             /* of the connection; NULL: none */
    char *endpoint;      /* where the broker was found, URIs with spaces between; as client */
    char last_note[256]; /* by note_last; empty: none */
} app_t;

#endif
