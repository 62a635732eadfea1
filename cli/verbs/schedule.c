/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl schedule: tasks that are submitted again and again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "ids.h"
#include "link/connect.h"
#include "screen/listing.h"
#include "screen/output.h"
#include "screen/show.h"
#include "units.h"
#include "verbs/spec.h"
#include "verbs/verbs.h"

enum { COMING_DEFAULT = 10 };

static const char *const overlaps[] = {"allow", "skip", "cancel"};
static const char *const misseds[] = {"skip", "one", "all"};
enum { WORDS = 3 };

static const char *zone_of (const tmq_schedule_t *schedule)
{
    return *schedule->zone ? schedule->zone : "UTC";
}

static const char *state_of (const tmq_schedule_t *schedule)
{
    return schedule->paused ? "paused" : schedule->coming_count == 0 ? "over" : "active";
}

/* Where the reader is, as in all that is not JSON. */
enum { INSTANT_SIZE = LOCAL_TIME_SIZE + ZONE_SIZE };
static const char *instant (char out[INSTANT_SIZE], uint64_t ms)
{
    char text[LOCAL_TIME_SIZE];
    char zone[ZONE_SIZE];
    long zone_s;
    if (!local_time (text, zone, &zone_s, ms))
        return "never";
    text[sizeof "2026-11-22 05:00:00" - 1] = '\0'; /* nobody plans by the millisecond */
    snprintf (out, INSTANT_SIZE, "%s %s", text, zone);
    return out;
}

/* JSON. */

static void put_text (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_text (writer, text);
}

static void put_time (json_writer_t *writer, const char *key, uint64_t ms)
{
    json_write_key (writer, key);
    json_write_time (writer, (int64_t) ms);
}

static void put_number (json_writer_t *writer, const char *key, uint64_t number)
{
    json_write_key (writer, key);
    json_write_uint (writer, number);
}

static void put_task (json_writer_t *writer, const tmq_schedule_t *schedule)
{
    json_write_key (writer, "task");
    json_write_object_begin (writer);
    put_text (writer, "queue", schedule->queue);
    put_text (writer, "session", schedule->session);
    put_text (writer, "method", schedule->method);
    put_text (writer, "content_type", schedule->content_type);
    put_number (writer, "payload_bytes", schedule->payload_bytes);
    if (schedule->payload) {
        json_write_key (writer, "payload");
        json_write_body (writer, schedule->content_type, schedule->payload,
                         schedule->payload_bytes);
    }
    json_write_object_end (writer);
}

static void add_schedule (items_t *items, const tmq_schedule_t *schedule)
{
    char id[37];
    json_writer_t *writer = items_open (items);
    json_write_object_begin (writer);
    put_text (writer, "name", schedule->name);
    put_text (writer, "calendar", schedule->calendar);
    put_text (writer, "zone", zone_of (schedule));
    put_text (writer, "state", state_of (schedule));
    put_text (writer, "overlap", overlaps[(unsigned) schedule->overlap % WORDS]);
    put_text (writer, "missed", misseds[(unsigned) schedule->missed % WORDS]);
    put_time (writer, "until", schedule->until);
    put_text (writer, "owner", schedule->owner);
    put_time (writer, "created_at", schedule->created_at);
    put_time (writer, "updated_at", schedule->updated_at);
    put_time (writer, "last_at", schedule->last_at);
    tmq_id_format (&schedule->last_task, id);
    put_text (writer, "last_task", id_is_zero (&schedule->last_task) ? NULL : id);
    put_text (writer, "last_error", schedule->last_error);
    put_number (writer, "fired", schedule->fired);
    put_number (writer, "skipped", schedule->skipped);
    json_write_key (writer, "next");
    json_write_array_begin (writer);
    for (size_t i = 0; i < schedule->coming_count; i++)
        json_write_time (writer, (int64_t) schedule->coming[i]);
    json_write_array_end (writer);
    put_task (writer, schedule);
    json_write_object_end (writer);
    items_close (items);
}

static int put_json (const app_t *app, const tmq_schedule_t *schedule)
{
    items_t items;
    items_begin (&items, app, true);
    add_schedule (&items, schedule);
    items_end (&items, NULL);
    return EXIT_OK;
}

/* add. */

/* One of the words. 0 or an exit code. */
static int read_word (const app_t *app, option_id_t option, const char *const words[WORDS],
                      unsigned *out)
{
    const char *text = args_text (&app->args, option);
    *out = 0;
    if (!text)
        return 0;
    for (unsigned i = 0; i < WORDS; i++) {
        if (strcmp (words[i], text) == 0) {
            *out = i;
            return 0;
        }
    }
    return usage_error (app, NULL, "--%s '%.40s': must be %s, %s or %s",
                        option == OPT_OVERLAP ? "overlap" : "missed", text, words[0], words[1],
                        words[2]);
}

static int read_spec (const app_t *app, tmq_schedule_spec_t *out, const spec_t *task)
{
    const args_t *args = &app->args;
    unsigned overlap, missed;
    int code = read_word (app, OPT_OVERLAP, overlaps, &overlap);
    if (!code)
        code = read_word (app, OPT_MISSED, misseds, &missed);
    if (code)
        return code;
    if (!args_has (args, OPT_CRON))
        return usage_error (app, "--cron '30 3 * * *' is each day at 3:30; --cron '@every 90s'",
                            "when? --cron is needed");
    tmq_schedule_spec_init (out);
    out->name = args->operands[1];
    out->calendar = args_text (args, OPT_CRON);
    out->zone = args_text (args, OPT_ZONE);
    out->overlap = (tmq_overlap_t) overlap;
    out->missed = (tmq_missed_t) missed;
    out->until = args_number (args, OPT_UNTIL, 0);
    out->paused = args_has (args, OPT_PAUSED);
    out->replace = args_has (args, OPT_REPLACE);
    out->task = &task->submit;
    return 0;
}

static void tell_next (const app_t *app, const tmq_schedule_t *schedule)
{
    char text[INSTANT_SIZE];
    if (schedule->paused)
        note (app, "schedule %s is paused", schedule->name);
    else if (schedule->coming_count == 0)
        note (app, "schedule %s: no instant comes any more", schedule->name);
    else
        note (app, "schedule %s: next %s", schedule->name, instant (text, schedule->coming[0]));
}

/* Shows what became of a change, and frees the report. */
static int put_change (const app_t *app, tmq_schedule_report_t *report)
{
    int code = EXIT_OK;
    if (app_wants_json (app))
        code = put_json (app, &report->schedules[0]);
    else if (app->format == FORMAT_ID)
        puts (report->schedules[0].name);
    else
        tell_next (app, &report->schedules[0]);
    tmq_schedule_report_free (report);
    return code;
}

/* By the names of the command line, where the broker has those of the protocol. */
static int blame_spec (const app_t *app, const tmq_schedule_spec_t *wanted,
                       const tmq_error_t *error)
{
    static const struct {
        const char *prefix;
        const char *option;
    } members[] = {{"calendar: ", "cron"}, {"zone: ", "zone"}, {"until: ", "until"}};
    if (error->code == TMQ_CONFLICT)
        return code_error (app, TMQ_CONFLICT, "--replace puts it in place of one of yours",
                           "%s: %s", wanted->name, error->text);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const size_t length = strlen (members[i].prefix);
        if (error->code == TMQ_INVALID && strncmp (error->text, members[i].prefix, length) == 0)
            return usage_error (app, NULL, "--%s: %s", members[i].option, error->text + length);
    }
    return library_error (app, error, wanted->name);
}

static int schedule_add (app_t *app)
{
    tmq_schedule_report_t *report = NULL;
    tmq_schedule_spec_t wanted = {0};
    tmq_error_t error = {0};
    spec_t task;
    spec_init (&task, app->args.command->options);
    int code = spec_from_args (&task, app, 2);
    if (!code)
        code = read_spec (app, &wanted, &task);
    if (!code)
        code = app_connect (app);
    if (!code && tmq_schedule_put (&report, app->client, &wanted, app->timeout_ms, &error) != 0)
        code = blame_spec (app, &wanted, &error);
    if (!code)
        code = put_change (app, report);
    spec_clear (&task);
    return code;
}

/* list. */

static const char *when (char out[UNITS_TEXT_SIZE], uint64_t ms)
{
    return time_format_relative (out, (int64_t) ms, (int64_t) wall_ms ());
}

static void add_row (table_t *table, const tmq_schedule_t *schedule, bool wide)
{
    char text[UNITS_TEXT_SIZE];
    table_row (table);
    table_set (table, 0, "%s", schedule->name);
    table_set (table, 1, "%s", schedule->calendar);
    table_set (table, 2, "%s", schedule->queue);
    table_set (table, 3, "%s", state_of (schedule));
    table_set (table, 4, "%s", schedule->coming_count ? when (text, schedule->coming[0]) : "");
    table_set (table, 5, "%" PRIu64, schedule->fired);
    if (!wide)
        return;
    table_set (table, 6, "%" PRIu64, schedule->skipped);
    table_set (table, 7, "%s", zone_of (schedule));
    table_set (table, 8, "%s", schedule->owner);
    table_set (table, 9, "%s", schedule->last_error);
}

static int schedule_list (app_t *app)
{
    static const column_t columns[] = {{"NAME", COLUMN_TRUNCATE},
                                       {"CALENDAR", COLUMN_TRUNCATE},
                                       {"QUEUE", COLUMN_TRUNCATE},
                                       {"STATE", COLUMN_LEFT},
                                       {"NEXT", COLUMN_LEFT},
                                       {"FIRED", COLUMN_RIGHT | 2 * COLUMN_YIELDS},
                                       {"SKIPPED", COLUMN_RIGHT | 1 * COLUMN_YIELDS},
                                       {"ZONE", COLUMN_TRUNCATE},
                                       {"OWNER", COLUMN_LEFT | 3 * COLUMN_YIELDS},
                                       {"ERROR", COLUMN_TRUNCATE | 4 * COLUMN_YIELDS}};
    enum { COLUMNS_NARROW = 6, COLUMNS_WIDE = 10 };
    const bool wide = app->format == FORMAT_WIDE;
    char after[TMQ_NAME_LENGTH_MAX + 1] = "";
    bool more = true;
    tmq_error_t error = {0};
    listing_t out;
    const int code = app_connect (app);
    if (code)
        return code;
    listing_begin (&out, app, columns, wide ? COLUMNS_WIDE : COLUMNS_NARROW);
    while (more) {
        tmq_schedule_report_t *page = NULL;
        if (tmq_schedule_list (&page, app->client, after, 0, app->timeout_ms, &error) != TMQ_OK)
            break;
        for (size_t i = 0; i < page->count; i++) {
            if (out.table)
                add_row (out.table, &page->schedules[i], wide);
            else if (out.json)
                add_schedule (&out.items, &page->schedules[i]);
            else
                puts (page->schedules[i].name);
            snprintf (after, sizeof after, "%s", page->schedules[i].name);
        }
        more = page->more;
        tmq_schedule_report_free (page);
    }
    listing_end (&out, error.code == TMQ_OK ? "no schedules" : NULL);
    return error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, NULL);
}

/* show, next. */

static void put_line (const app_t *app, const char *what, const char *text)
{
    print_safe (app, stdout, "%-15s %s", what, text);
    putchar ('\n');
}

static void put_card (const app_t *app, const tmq_schedule_t *schedule)
{
    char text[INSTANT_SIZE];
    char id[37];
    put_line (app, "schedule", schedule->name);
    put_line (app, "calendar", schedule->calendar);
    put_line (app, "zone", zone_of (schedule));
    put_line (app, "state", state_of (schedule));
    put_line (app, "queue", schedule->queue);
    put_line (app, "owner", schedule->owner);
    printf ("payload         %" PRIu64 " bytes\n", schedule->payload_bytes);
    printf ("overlap         %s\n", overlaps[(unsigned) schedule->overlap % WORDS]);
    printf ("missed          %s\n", misseds[(unsigned) schedule->missed % WORDS]);
    if (schedule->until)
        printf ("until           %s\n", instant (text, schedule->until));
    printf ("fired           %" PRIu64 ", skipped %" PRIu64 "\n", schedule->fired,
            schedule->skipped);
    if (!id_is_zero (&schedule->last_task)) {
        tmq_id_format (&schedule->last_task, id);
        printf ("last task       %s\n", id);
    }
    if (*schedule->last_error)
        put_line (app, "last error", schedule->last_error);
    for (size_t i = 0; i < schedule->coming_count; i++)
        printf ("%-15s %s\n", i == 0 ? "next" : "", instant (text, schedule->coming[i]));
}

static int show (app_t *app, uint32_t coming, void put (const app_t *, const tmq_schedule_t *))
{
    tmq_schedule_report_t *report = NULL;
    tmq_error_t error = {0};
    const char *name = app->args.operands[1];
    int code = app_connect (app);
    if (code)
        return code;
    if (tmq_schedule_show (&report, app->client, name, coming, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name);
    if (app_wants_json (app))
        code = put_json (app, &report->schedules[0]);
    else if (app->format == FORMAT_ID)
        puts (report->schedules[0].name);
    else
        put (app, &report->schedules[0]);
    tmq_schedule_report_free (report);
    return code;
}

static int schedule_show (app_t *app)
{
    return show (app, 3, put_card);
}

static void put_coming (const app_t *app, const tmq_schedule_t *schedule)
{
    char text[INSTANT_SIZE];
    for (size_t i = 0; i < schedule->coming_count; i++)
        puts (instant (text, schedule->coming[i]));
    if (schedule->coming_count == 0)
        tell_next (app, schedule);
}

static int schedule_next (app_t *app)
{
    return show (app, (uint32_t) args_number (&app->args, OPT_COUNT, COMING_DEFAULT), put_coming);
}

/* Changes. */

typedef int change_t (tmq_schedule_report_t **out, tmq_client_t *client, const char *name,
                      uint32_t timeout_ms, tmq_error_t *error);

static int change (app_t *app, change_t *function)
{
    tmq_schedule_report_t *report = NULL;
    tmq_error_t error = {0};
    const char *name = app->args.operands[1];
    const int code = app_connect (app);
    if (code)
        return code;
    if (function (&report, app->client, name, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name);
    return put_change (app, report);
}

static int schedule_pause (app_t *app)
{
    return change (app, tmq_schedule_pause);
}

static int schedule_resume (app_t *app)
{
    return change (app, tmq_schedule_resume);
}

static int schedule_remove (app_t *app)
{
    tmq_error_t error = {0};
    const char *name = app->args.operands[1];
    const int code = app_connect (app);
    if (code)
        return code;
    if (tmq_schedule_remove (app->client, name, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name);
    note (app, "schedule %s is removed; its tasks go on", name);
    return EXIT_OK;
}

const verb_t schedule_verbs[] = {{"add", "NAME QUEUE --cron FIELDS", 2, 3, schedule_add},
                                 {"list", "", 0, 0, schedule_list},
                                 {"show", "NAME", 1, 1, schedule_show},
                                 {"next", "NAME", 1, 1, schedule_next},
                                 {"pause", "NAME", 1, 1, schedule_pause},
                                 {"resume", "NAME", 1, 1, schedule_resume},
                                 {"remove", "NAME", 1, 1, schedule_remove},
                                 {.name = NULL}};
