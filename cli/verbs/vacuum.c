/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl vacuum: has the broker give free space back, and waits until it did. */
#include <poll.h>
#include <stdio.h>

#include "base/exit.h"
#include "link/connect.h"
#include "screen/items.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/status.h"
#include "units.h"
#include "verbs/verbs.h"

enum { POLL_MS_MIN = 5, POLL_MS_MAX = 250 };

static void put_vacuum (app_t *app, const tmq_vacuum_state_t *vacuum)
{
    items_t items;
    char given[UNITS_TEXT_SIZE];
    char file[UNITS_TEXT_SIZE];
    if (!app_wants_json (app)) {
        printf ("%s given back; the tables have %s\n", size_format (given, vacuum->given_bytes),
                size_format (file, vacuum->file_bytes));
        return;
    }
    items_begin (&items, app, true);
    json_writer_t *writer = items_open (&items);
    json_write_object_begin (writer);
    member_uint (writer, "given_bytes", vacuum->given_bytes);
    member_uint (writer, "file_bytes", vacuum->file_bytes);
    member_uint (writer, "free_bytes", vacuum->free_bytes);
    json_write_object_end (writer);
    items_close (&items);
    items_end (&items, NULL);
}

int run_vacuum (app_t *app)
{
    tmq_error_t error = {0};
    tmq_vacuum_state_t *vacuum = NULL;
    status_line_t line;
    int pause_ms = POLL_MS_MIN;
    bool begins = true;
    const int code = app_connect (app);
    if (code)
        return code;
    status_begin (&line, app);
    error.code = tmq_vacuum (&vacuum, app->client, begins, app->timeout_ms, &error);
    /* A broker that was started again meanwhile knows of none: its tables have no size then. */
    while (error.code == TMQ_OK && (vacuum->more || (!begins && vacuum->file_bytes == 0))) {
        begins = !vacuum->more;
        status_show_bar (app, vacuum->given_bytes, vacuum->given_bytes + vacuum->free_bytes,
                         "giving space back");
        poll (NULL, 0, pause_ms);
        pause_ms = 2 * pause_ms < POLL_MS_MAX ? 2 * pause_ms : POLL_MS_MAX;
        tmq_vacuum_state_free (vacuum);
        vacuum = NULL;
        error.code = tmq_vacuum (&vacuum, app->client, begins, app->timeout_ms, &error);
    }
    status_end (app);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    put_vacuum (app, vacuum);
    tmq_vacuum_state_free (vacuum);
    return EXIT_OK;
}
