/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl session: threads of work. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "ids.h"
#include "line/labels.h"
#include "link/connect.h"
#include "screen/items.h"
#include "screen/listing.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/show.h"
#include "units.h"
#include "verbs/verbs.h"

static const char *name_of (const app_t *app)
{
    return app->args.operands[1];
}

static int check_name (const app_t *app)
{
    if (name_is_valid (name_of (app)))
        return 0;
    return usage_error (app, NULL, "session '%.80s' must be 1 to %d of A-Z a-z 0-9 . _ -",
                        name_of (app), TMQ_NAME_LENGTH_MAX);
}

/* JSON. */

static void write_context (json_writer_t *writer, const tmq_session_t *session)
{
    json_write_key (writer, "context");
    if (*session->context)
        json_write_raw (writer, session->context, strlen (session->context));
    else
        json_write_null (writer);
}

static void write_labels (json_writer_t *writer, const tmq_session_t *session)
{
    json_write_key (writer, "labels");
    json_write_object_begin (writer);
    for (size_t i = 0; i < session->labels_count; i++) {
        json_write_key (writer, session->labels[i].key);
        json_write_text (writer, session->labels[i].value);
    }
    json_write_object_end (writer);
}

static void add_session (items_t *items, const tmq_session_t *session, bool whole)
{
    json_writer_t *writer = items_open (items);
    json_write_object_begin (writer);
    member_text (writer, "session", session->name);
    member_text (writer, "goal", session->goal);
    member_text (writer, "status", tmq_session_status_text (session->status));
    member_text (writer, "status_by", session->status_by);
    member_time (writer, "status_at", session->status_at);
    member_text (writer, "status_why", session->status_why);
    member_uint (writer, "salience", session->salience);
    write_labels (writer, session);
    if (whole)
        write_context (writer, session);
    member_text (writer, "owner", session->owner);
    member_time (writer, "created_at", session->created_at);
    member_time (writer, "updated_at", session->updated_at);
    member_time (writer, "last_task_at", session->last_task_at);
    member_uint (writer, "tasks", session->tasks);
    member_uint (writer, "version", session->version);
    json_write_object_end (writer);
    items_close (items);
}

/* list. */

static void add_row (table_t *table, const tmq_session_t *session, bool wide)
{
    char when[UNITS_TEXT_SIZE];
    table_row (table);
    table_set (table, 0, "%s", session->name);
    table_set (table, 1, "%s", tmq_session_status_text (session->status));
    table_set (table, 2, "%" PRIu32, session->tasks);
    table_set (table, 3, "%" PRIu32, session->salience);
    table_set (table, 4, "%s",
               time_format_relative (when, (int64_t) session->updated_at, (int64_t) wall_ms ()));
    if (wide) {
        table_set (table, 5, "%s", session->owner);
        table_set (table, 6, "%s", session->status_why);
    }
    table_set (table, wide ? 7 : 5, "%s", session->goal);
}

/* 0 or an exit code. *status 0: of any. */
static int take_status (tmq_session_status_t *status, const app_t *app)
{
    const char *text = args_text (&app->args, OPT_STATUS);
    *status = TMQ_SESSION_STATUS_NONE;
    if (!text)
        return 0;
#define X(number, NAME, word)                                                                      \
    if (strcmp (text, word) == 0)                                                                  \
        *status = TMQ_SESSION_STATUS_##NAME;
    TMQ_SESSION_STATUS_MAP (X)
#undef X
    return *status
               ? 0
               : usage_error (app, NULL,
                              "--status '%.40s' must be active, paused, frozen or complete", text);
}

static const column_t narrow[] = {{"SESSION", COLUMN_TRUNCATE}, {"STATUS", COLUMN_LEFT},
                                  {"TASKS", COLUMN_RIGHT},      {"SALIENCE", COLUMN_RIGHT},
                                  {"UPDATED", COLUMN_LEFT},     {"GOAL", COLUMN_TRUNCATE}};
static const column_t wide_columns[] = {{"SESSION", COLUMN_TRUNCATE},
                                        {"STATUS", COLUMN_LEFT},
                                        {"TASKS", COLUMN_RIGHT},
                                        {"SALIENCE", COLUMN_RIGHT | 2 * COLUMN_YIELDS},
                                        {"UPDATED", COLUMN_LEFT | 3 * COLUMN_YIELDS},
                                        {"OWNER", COLUMN_LEFT | 1 * COLUMN_YIELDS},
                                        {"WHY", COLUMN_TRUNCATE | 4 * COLUMN_YIELDS},
                                        {"GOAL", COLUMN_TRUNCATE | 5 * COLUMN_YIELDS}};

static void show_one (const app_t *app, listing_t *out, const tmq_session_t *session)
{
    if (out->table)
        add_row (out->table, session, app->format == FORMAT_WIDE);
    else if (out->json)
        add_session (&out->items, session, false);
    else
        puts (session->name);
}

static void show_pages (app_t *app, tmq_session_status_t status, listing_t *out, tmq_error_t *error)
{
    char after[TMQ_NAME_LENGTH_MAX + 1] = "";
    uint64_t left = args_number (&app->args, OPT_LIMIT, UINT64_MAX);
    bool more = true;
    while (more && left > 0) {
        tmq_session_report_t *page = NULL;
        if (tmq_session_list (&page, app->client, after, 0, app->timeout_ms, error) != TMQ_OK)
            break;
        for (size_t i = 0; i < page->count && left > 0; i++) {
            const tmq_session_t *session = &page->sessions[i];
            snprintf (after, sizeof after, "%s", session->name);
            if (status && session->status != status)
                continue;
            show_one (app, out, session);
            left--;
        }
        more = page->more;
        tmq_session_report_free (page);
    }
}

static int session_list (app_t *app)
{
    const bool wide = app->format == FORMAT_WIDE;
    tmq_session_status_t status;
    tmq_error_t error = {0};
    listing_t out;
    int code = take_status (&status, app);
    if (!code)
        code = app_connect (app);
    if (code)
        return code;
    listing_begin (&out, app, wide ? wide_columns : narrow,
                   wide ? sizeof wide_columns / sizeof *wide_columns
                        : sizeof narrow / sizeof *narrow);
    show_pages (app, status, &out, &error);
    listing_end (&out, error.code == TMQ_OK ? "no sessions" : NULL);
    return error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, NULL);
}

/* One session. */

static void put_line (const app_t *app, const char *what, const char *text)
{
    if (!*text)
        return;
    print_safe (app, stdout, "%-15s %s", what, text);
    putchar ('\n');
}

static void put_status (const app_t *app, const tmq_session_t *session)
{
    enum { VALUE_COLUMN = 16 };
    char unit[UNITS_TEXT_SIZE];
    char text[512];
    const char *status = tmq_session_status_text (session->status);
    if (*session->status_by)
        snprintf (text, sizeof text, "%s, by %s %s%s%s", status, session->status_by,
                  time_format_relative (unit, (int64_t) session->status_at, (int64_t) wall_ms ()),
                  *session->status_why ? ": " : "", session->status_why);
    else
        snprintf (text, sizeof text, "%s", status);
    printf ("%-*s", VALUE_COLUMN, "status");
    print_wrapped_text (app, text, VALUE_COLUMN, VALUE_COLUMN);
    putchar ('\n');
}

static void put_card (const app_t *app, const tmq_session_t *session)
{
    char unit[UNITS_TEXT_SIZE];
    put_line (app, "session", session->name);
    put_line (app, "goal", session->goal);
    put_status (app, session);
    printf ("%-15s %" PRIu32 "\n", "salience", session->salience);
    printf ("%-15s %" PRIu32 " live\n", "tasks", session->tasks);
    put_line (app, "owner", session->owner);
    put_line (app, "made",
              time_format_relative (unit, (int64_t) session->created_at, (int64_t) wall_ms ()));
    for (size_t i = 0; i < session->labels_count; i++) {
        print_safe (app, stdout, "%-15s %s=%s", i == 0 ? "labels" : "", session->labels[i].key,
                    session->labels[i].value);
        putchar ('\n');
    }
    put_line (app, "context", session->context);
}

/* Shows the session, and frees the report. */
static int put_report (const app_t *app, tmq_session_report_t *report)
{
    items_t items;
    if (app_wants_json (app)) {
        items_begin (&items, app, true);
        add_session (&items, &report->sessions[0], true);
        items_end (&items, NULL);
    } else if (app->format == FORMAT_ID) {
        puts (report->sessions[0].name);
    } else {
        put_card (app, &report->sessions[0]);
    }
    tmq_session_report_free (report);
    return EXIT_OK;
}

/* Changes say little: the exit code is the answer, and JSON the session as it stands. */
static int put_change (const app_t *app, tmq_session_report_t *report, const char *what)
{
    if (app_wants_json (app) || app->format == FORMAT_ID)
        return put_report (app, report);
    note (app, "session %s %s", report->sessions[0].name, what);
    tmq_session_report_free (report);
    return EXIT_OK;
}

static int session_show (app_t *app)
{
    tmq_session_report_t *report = NULL;
    tmq_error_t error = {0};
    int code = check_name (app);
    if (!code)
        code = app_connect (app);
    if (code)
        return code;
    if (tmq_session_show (&report, app->client, name_of (app), app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name_of (app));
    return put_report (app, report);
}

/* set. */

typedef struct change {
    tmq_session_spec_t spec;
    labels_t labels;
    const char *dropped[TMQ_LABELS_MAX];
} change_t;

/* 0 or an exit code. */
static int read_labels (const app_t *app, change_t *out)
{
    const args_t *args = &app->args;
    const size_t dropped = args_count (args, OPT_DROP_LABEL);
    if (!labels_from_args (&out->labels, args, OPT_LABEL) || dropped > TMQ_LABELS_MAX)
        return usage_error (app, NULL, "at most %d labels", TMQ_LABELS_MAX);
    for (size_t i = 0; i < dropped; i++)
        out->dropped[i] = args_nth (args, OPT_DROP_LABEL, i)->text;
    out->spec.labels = out->labels.list;
    out->spec.labels_count = out->labels.count;
    out->spec.drop_labels = out->dropped;
    out->spec.drop_labels_count = dropped;
    return 0;
}

static int read_change (const app_t *app, change_t *out)
{
    const args_t *args = &app->args;
    const char *context = args_text (args, OPT_CONTEXT);
    tmq_session_spec_init (&out->spec);
    out->spec.name = name_of (app);
    out->spec.goal = args_text (args, OPT_GOAL);
    out->spec.salience = (uint32_t) args_number (args, OPT_SALIENCE, 0);
    out->spec.context = context;
    if (context && *context && !json_text_is_valid (context, strlen (context)))
        return usage_error (app, NULL, "--context must be JSON");
    return read_labels (app, out);
}

static int session_set (app_t *app)
{
    tmq_session_report_t *report = NULL;
    tmq_error_t error = {0};
    change_t change;
    int code = check_name (app);
    if (!code)
        code = read_change (app, &change);
    if (!code)
        code = app_connect (app);
    if (code)
        return code;
    if (tmq_session_set (&report, app->client, &change.spec, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name_of (app));
    return put_change (app, report, "is set");
}

/* Its status. */

static int set_status (app_t *app, tmq_session_status_t status, const char *what)
{
    tmq_session_report_t *report = NULL;
    tmq_error_t error = {0};
    int code = check_name (app);
    if (!code)
        code = app_connect (app);
    if (code)
        return code;
    if (tmq_session_status (&report, app->client, name_of (app), status,
                            args_text (&app->args, OPT_WHY), app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name_of (app));
    return put_change (app, report, what);
}

static int session_pause (app_t *app)
{
    return set_status (app, TMQ_SESSION_STATUS_PAUSED, "is paused; what workers hold goes on");
}

static int session_resume (app_t *app)
{
    return set_status (app, TMQ_SESSION_STATUS_ACTIVE, "goes on");
}

static int session_freeze (app_t *app)
{
    return set_status (app, TMQ_SESSION_STATUS_FROZEN,
                       "is frozen: it takes no tasks, and gives none to workers");
}

static int session_complete (app_t *app)
{
    return set_status (app, TMQ_SESSION_STATUS_COMPLETE,
                       "is complete; it goes 30 days after its last task");
}

static int session_remove (app_t *app)
{
    tmq_error_t error = {0};
    int code = check_name (app);
    if (!code)
        code = app_connect (app);
    if (code)
        return code;
    if (tmq_session_remove (app->client, name_of (app), app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name_of (app));
    note (app, "session %s is removed, with its values, mail and inputs", name_of (app));
    return EXIT_OK;
}

const verb_t session_verbs[] = {
    {"list", "", 0, 0, session_list},
    {"show", "NAME", 1, 1, session_show},
    {"set", "NAME", 1, 1, session_set},
    {"pause", "NAME", 1, 1, session_pause},
    {"resume", "NAME", 1, 1, session_resume},
    {"freeze", "NAME", 1, 1, session_freeze},
    {"complete", "NAME", 1, 1, session_complete},
    {"close", "NAME", 1, 1, session_complete},
    {"remove", "NAME", 1, 1, session_remove},
    {"input", "add|list|drop SESSION [NUMBER...]", 2, -1, session_input},
    {.name = NULL}};
