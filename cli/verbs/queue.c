/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl queue: how queues stand, and what is set for them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "link/connect.h"
#include "screen/listing.h"
#include "screen/output.h"
#include "screen/show.h"
#include "units.h"
#include "verbs/verbs.h"
#include "view.h"

/* How a setting is written. */
typedef enum setting_kind {
    SETTING_NUMBER,
    SETTING_DURATION,
    SETTING_SIZE,
    SETTING_RATE,  /* N/DURATION: two members */
    SETTING_BURST, /* goes with the rate */
    SETTING_TTL,   /* a duration, or 0 for ever: two members */
    SETTING_WORD,  /* of TMQ_WEIGHT_OF_MAP */
    SETTING_SWITCH /* on or off; the member says that it is off */
} setting_kind_t;

typedef struct setting {
    const char *name; /* of the option, and in texts */
    option_id_t option;
    setting_kind_t kind;
    tmq_queue_field_t field;
    size_t offset; /* of its member in tmq_queue_settings_t */
} setting_t;

#define SETTING(name, OPTION, KIND, FIELD, member)                                                 \
    {                                                                                              \
        name, OPT_##OPTION, SETTING_##KIND, TMQ_QUEUE_FIELD_##FIELD,                               \
            offsetof (tmq_queue_settings_t, member)                                                \
    }
static const setting_t settings[] = {
    SETTING ("max-running", MAX_RUNNING, NUMBER, MAX_RUNNING, max_running),
    SETTING ("max-per-key", MAX_PER_KEY, NUMBER, MAX_PER_KEY, max_per_key),
    SETTING ("weight-of", WEIGHT_OF, WORD, WEIGHT_OF, weight_of),
    SETTING ("rate", RATE, RATE, RATE, rate),
    SETTING ("burst", BURST, BURST, BURST, burst),
    SETTING ("max-tasks", MAX_TASKS, NUMBER, MAX_TASKS, max_tasks),
    SETTING ("max-bytes", MAX_BYTES, SIZE, MAX_BYTES, max_bytes),
    SETTING ("ttl", TTL, TTL, TTL_MS, ttl_ms),
    SETTING ("lease", LEASE, DURATION, LEASE_MS, lease_ms),
    SETTING ("backoff", BACKOFF, DURATION, BACKOFF_MS, backoff_ms),
    SETTING ("max-attempts", MAX_ATTEMPTS, NUMBER, MAX_ATTEMPTS, max_attempts),
    SETTING ("max-runtime", MAX_RUNTIME, DURATION, MAX_RUNTIME_MS, max_runtime_ms),
    SETTING ("search", SEARCH, SWITCH, SEARCH_OFF, search_off),
    SETTING ("max-age", MAX_AGE, DURATION, MAX_AGE_MS, max_age_ms),
    SETTING ("max-count", MAX_COUNT, NUMBER, MAX_COUNT, max_count),
    SETTING ("max-ended-bytes", MAX_ENDED_BYTES, SIZE, MAX_ENDED_BYTES, max_ended_bytes),
    SETTING ("keep-failed", KEEP_FAILED, DURATION, KEEP_FAILED_MS, keep_failed_ms),
    SETTING ("min-keep", MIN_KEEP, NUMBER, MIN_KEEP, min_keep),
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const struct {
    tmq_weight_of_t number;
    const char *text;
} words[] = {
#define X(number, NAME, text) {TMQ_WEIGHT_OF_##NAME, text},
    TMQ_WEIGHT_OF_MAP (X)
#undef X
};
enum { WORDS = sizeof words / sizeof *words };

static uint64_t *member_of (tmq_queue_settings_t *values, const setting_t *setting)
{
    return (uint64_t *) (void *) ((char *) values + setting->offset);
}

static uint64_t value_of (const tmq_queue_settings_t *values, const setting_t *setting)
{
    return *(const uint64_t *) (const void *) ((const char *) values + setting->offset);
}

/* As it is written on the command line; empty: it is not set. */
static const char *setting_text (char out[2 * UNITS_TEXT_SIZE], const setting_t *setting,
                                 const tmq_queue_settings_t *values)
{
    char unit[UNITS_TEXT_SIZE];
    const uint64_t value = value_of (values, setting);
    *out = '\0';
    if (setting->kind == SETTING_TTL && values->ttl_never)
        snprintf (out, 2 * UNITS_TEXT_SIZE, "0");
    else if (value == 0)
        return out;
    else if (setting->kind == SETTING_SWITCH)
        snprintf (out, 2 * UNITS_TEXT_SIZE, "off");
    else if (setting->kind == SETTING_RATE)
        snprintf (out, 2 * UNITS_TEXT_SIZE, "%" PRIu64 "/%s", value,
                  duration_format (unit, (int64_t) values->rate_ms));
    else if (setting->kind == SETTING_WORD)
        snprintf (out, 2 * UNITS_TEXT_SIZE, "%s", view_weight_text (value));
    else if (setting->kind == SETTING_SIZE)
        snprintf (out, 2 * UNITS_TEXT_SIZE, "%s", size_format (unit, value));
    else if (setting->kind == SETTING_DURATION || setting->kind == SETTING_TTL)
        snprintf (out, 2 * UNITS_TEXT_SIZE, "%s", duration_format (unit, (int64_t) value));
    else
        snprintf (out, 2 * UNITS_TEXT_SIZE, "%" PRIu64, value);
    return out;
}

/* Reports. */

/* ended: how many of its tasks that have ended are kept; NULL: it was not asked. */
static void add_queue (items_t *items, const tmq_queue_t *queue, const uint64_t *ended)
{
    view_write_queue (items_open (items), queue, ended);
    items_close (items);
}

/* "max-running=4 rate=10/1m" */
static const char *settings_text (char *out, size_t size, const tmq_queue_t *queue)
{
    char text[2 * UNITS_TEXT_SIZE];
    size_t length = 0;
    *out = '\0';
    for (size_t i = 0; i < SETTINGS && length < size; i++)
        if (*setting_text (text, &settings[i], &queue->settings))
            length += (size_t) snprintf (out + length, size - length, "%s%s=%s", length ? " " : "",
                                         settings[i].name, text);
    return out;
}

/* list. */

static void add_row (table_t *table, const tmq_queue_t *queue, bool wide)
{
    char text[512];
    char unit[UNITS_TEXT_SIZE];
    const uint64_t numbers[] = {queue->ready,   queue->scheduled,      queue->blocked,
                                queue->working, queue->input_required, queue->workers};
    table_row (table);
    table_set (table, 0, "%s", queue->queue);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        table_set (table, 1 + i, "%" PRIu64, numbers[i]);
    table_set (table, 7, "%s", view_queue_state (text, sizeof text, queue));
    if (!wide)
        return;
    table_set (table, 8, "%" PRIu64, queue->running);
    table_set (table, 9, "%s", size_format (unit, queue->queued_bytes));
    table_set (table, 10, "%s", settings_text (text, sizeof text, queue));
}

static int queue_list (app_t *app)
{
    static const column_t columns[] = {{"QUEUE", COLUMN_TRUNCATE},
                                       {"READY", COLUMN_RIGHT},
                                       {"SCHEDULED", COLUMN_RIGHT | 3 * COLUMN_YIELDS},
                                       {"BLOCKED", COLUMN_RIGHT | 2 * COLUMN_YIELDS},
                                       {"WORKING", COLUMN_RIGHT},
                                       {"ASKING", COLUMN_RIGHT | 1 * COLUMN_YIELDS},
                                       {"WORKERS", COLUMN_RIGHT | 6 * COLUMN_YIELDS},
                                       {"STATE", COLUMN_LEFT},
                                       {"RUNNING", COLUMN_RIGHT | 4 * COLUMN_YIELDS},
                                       {"BYTES", COLUMN_RIGHT | 5 * COLUMN_YIELDS},
                                       {"SETTINGS", COLUMN_TRUNCATE}};
    enum { COLUMNS_NARROW = 8, COLUMNS_WIDE = 11 };
    const bool wide = app->format == FORMAT_WIDE;
    char cursor[TMQ_CURSOR_BYTES_MAX * 2 + 1] = "";
    tmq_error_t error = {0};
    listing_t out;
    int code = app_connect (app);
    if (code)
        return code;
    listing_begin (&out, app, columns, wide ? COLUMNS_WIDE : COLUMNS_NARROW);
    do {
        tmq_queue_report_t *report = NULL;
        if (tmq_queue_list (&report, app->client, cursor, 0, app->timeout_ms, &error) != TMQ_OK)
            break;
        for (size_t i = 0; i < report->count; i++) {
            if (out.table)
                add_row (out.table, &report->queues[i], wide);
            else if (out.json)
                add_queue (&out.items, &report->queues[i], NULL);
            else
                puts (report->queues[i].queue);
        }
        snprintf (cursor, sizeof cursor, "%s", report->next);
        tmq_queue_report_free (report);
    } while (*cursor);
    listing_end (&out, error.code == TMQ_OK ? "no queues" : NULL);
    return error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, NULL);
}

/* One queue. */

enum { VALUE_COLUMN = 16 };

/* Its ended tasks that are kept. False: who asks may not know. */
static bool count_ended (uint64_t *out, const app_t *app, const char *queue)
{
    static const tmq_status_t ended[] = {TMQ_STATUS_COMPLETED, TMQ_STATUS_FAILED,
                                         TMQ_STATUS_CANCELLED};
    const tmq_filter_t filter = {.queues = &queue,
                                 .queues_count = 1,
                                 .statuses = ended,
                                 .statuses_count = sizeof ended / sizeof *ended};
    return tmq_count (out, app->client, &filter, app->timeout_ms, NULL) == TMQ_OK;
}

static void put_card (const app_t *app, const tmq_queue_t *queue, const uint64_t *ended)
{
    char text[512];
    char unit[UNITS_TEXT_SIZE];
    print_safe (app, stdout, "queue           %s", queue->queue);
    printf ("\nstate           %s\n", view_queue_state (text, sizeof text, queue));
    if (queue->paused) {
        snprintf (text, sizeof text, "by %s %s%s%s", queue->paused_by,
                  time_format_relative (unit, (int64_t) queue->paused_at, (int64_t) wall_ms ()),
                  *queue->paused_why ? ": " : "", queue->paused_why);
        printf ("%-*s", VALUE_COLUMN, "paused");
        print_wrapped_text (app, text, VALUE_COLUMN, VALUE_COLUMN);
        putchar ('\n');
    }
    printf ("queued          %" PRIu64 " ready, %" PRIu64 " scheduled, %" PRIu64
            " blocked, payloads %s\n",
            queue->ready, queue->scheduled, queue->blocked,
            size_format (unit, queue->queued_bytes));
    printf ("at work         %" PRIu64 ", and %" PRIu64 " wait for an answer\n", queue->working,
            queue->input_required);
    printf ("workers         %" PRIu64 ", who hold %" PRIu64 " tasks\n", queue->workers,
            queue->running);
    if (ended)
        printf ("ended           %" PRIu64 " that are kept\n", *ended);
    if (queue->needs_sets)
        printf ("required labels %" PRIu32 " sets, at most %d\n", queue->needs_sets,
                TMQ_NEEDS_SETS_MAX);
    for (size_t i = 0; i < SETTINGS; i++)
        if (*setting_text (text, &settings[i], &queue->settings))
            printf ("%-15s %s\n", settings[i].name, text);
}

/* Shows the answer to a request about one queue, and frees it. */
static int put_report (const app_t *app, tmq_queue_report_t *report)
{
    items_t items;
    uint64_t count = 0;
    const uint64_t *ended =
        app->format != FORMAT_ID && count_ended (&count, app, report->queues[0].queue) ? &count
                                                                                       : NULL;
    if (app_wants_json (app)) {
        items_begin (&items, app, true);
        add_queue (&items, &report->queues[0], ended);
        items_end (&items, NULL);
    } else if (app->format == FORMAT_ID) {
        puts (report->queues[0].queue);
    } else {
        put_card (app, &report->queues[0], ended);
    }
    tmq_queue_report_free (report);
    return EXIT_OK;
}

static int queue_show (app_t *app)
{
    tmq_queue_report_t *report = NULL;
    tmq_error_t error = {0};
    const char *name = app->args.operands[1];
    const int code = app_connect (app);
    if (code)
        return code;
    if (tmq_queue_show (&report, app->client, name, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, name);
    return put_report (app, report);
}

static const char resumed[] = "is not paused any more";

/* Nothing waits and nobody works: the name may be a mistake. */
static bool is_idle (const tmq_queue_t *queue)
{
    return queue->workers + queue->ready + queue->scheduled + queue->blocked + queue->working == 0;
}

static void note_unused (const app_t *app, const tmq_queue_t *queue)
{
    uint64_t ended = 0;
    if (is_idle (queue) && !(count_ended (&ended, app, queue->queue) && ended > 0))
        note (app, "no task and no worker uses this queue now; it counts for those to come");
}

/* Changes say little: the exit code is the answer, and JSON the queue as it stands. */
static int put_change (const app_t *app, tmq_queue_report_t *report, const char *what)
{
    const tmq_queue_t *queue = &report->queues[0];
    if (app_wants_json (app) || app->format == FORMAT_ID)
        return put_report (app, report);
    note (app, "queue %s %s", queue->queue, what);
    if (what != resumed)
        note_unused (app, queue);
    tmq_queue_report_free (report);
    return EXIT_OK;
}

/* One request about the queue that was named. */
typedef int ask_t (app_t *app, const char *queue, tmq_queue_report_t **out, tmq_error_t *error);

static int change (app_t *app, ask_t *ask, const char *what)
{
    tmq_queue_report_t *report = NULL;
    tmq_error_t error = {0};
    const char *name = app->args.operands[1];
    const int code = app_connect (app);
    if (code)
        return code;
    if (ask (app, name, &report, &error) != TMQ_OK)
        return library_error (app, &error, name);
    return put_change (app, report, what);
}

static int ask_pause (app_t *app, const char *queue, tmq_queue_report_t **out, tmq_error_t *error)
{
    return tmq_queue_pause (out, app->client, queue, args_text (&app->args, OPT_WHY),
                            app->timeout_ms, error);
}

static int queue_pause (app_t *app)
{
    return change (app, ask_pause, "is paused; what workers hold goes on");
}

static int ask_resume (app_t *app, const char *queue, tmq_queue_report_t **out, tmq_error_t *error)
{
    return tmq_queue_resume (out, app->client, queue, app->timeout_ms, error);
}

static int queue_resume (app_t *app)
{
    return change (app, ask_resume, resumed);
}

/* set. */

typedef struct change {
    tmq_queue_settings_t values;
    tmq_queue_field_t fields[TMQ_QUEUE_FIELDS_MAX];
    size_t count;
} change_t;

static void add_field (change_t *self, tmq_queue_field_t field)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->fields[i] == field)
            return;
    self->fields[self->count++] = field;
}

/* The members that a setting has beside its own. */
static void add_fields (change_t *self, const setting_t *setting)
{
    add_field (self, setting->field);
    if (setting->kind == SETTING_RATE)
        add_field (self, TMQ_QUEUE_FIELD_RATE_MS);
    else if (setting->kind == SETTING_TTL)
        add_field (self, TMQ_QUEUE_FIELD_TTL_NEVER);
}

/* "10/1m", "5/s". 0 or an exit code. */
static int read_rate (const app_t *app, change_t *self, const char *text)
{
    char duration[UNITS_TEXT_SIZE];
    char *end;
    int64_t ms = 0;
    const unsigned long long rate = strtoull (text, &end, 10);
    const bool begins = *text >= '0' && *text <= '9' && *end == '/';
    const bool bare = begins && strspn (end + 1, "0123456789") == 0;
    snprintf (duration, sizeof duration, "%s%.20s", bare ? "1" : "", begins ? end + 1 : "");
    if (!begins || !duration_parse (&ms, duration, NULL) || ms <= 0)
        return usage_error (app, "--rate 10/1m lets ten tasks begin in a minute",
                            "--rate '%.40s': must be N/DURATION", text);
    if (rate == 0)
        return usage_error (app, "taskctl queue pause QUEUE",
                            "--rate '%.40s': a rate of 0 would let nothing begin", text);
    if (rate > TMQ_QUEUE_RUNNING_MAX || ms > TMQ_QUEUE_RATE_MS_MAX ||
        rate / 1000 > (unsigned long long) ms)
        return usage_error (app, NULL,
                            "--rate '%.40s': at most %d tasks, in at most 1d, and 1000 in 1ms",
                            text, TMQ_QUEUE_RUNNING_MAX);
    self->values.rate = rate;
    self->values.rate_ms = (uint64_t) ms;
    return 0;
}

static int read_size (const app_t *app, uint64_t *out, const setting_t *setting)
{
    const char *text = args_text (&app->args, setting->option);
    char why[UNITS_ERROR_SIZE];
    if (!size_parse (out, text, why))
        return usage_error (app, NULL, "--%s: %s", setting->name, why);
    if (*out > (uint64_t) TMQ_QUEUE_BYTES_MAX)
        return usage_error (app, NULL, "--%s '%.40s': must be from 1B to 1024T, or 0: no limit",
                            setting->name, text);
    return 0;
}

static int read_word (const app_t *app, uint64_t *out, const char *text)
{
    for (size_t i = 0; i < WORDS; i++)
        if (strcmp (words[i].text, text) == 0) {
            *out = words[i].number;
            return 0;
        }
    return usage_error (app, NULL, "--weight-of '%.40s': must be key, owner or session", text);
}

static int read_switch (const app_t *app, uint64_t *off, const setting_t *setting)
{
    const char *text = args_text (&app->args, setting->option);
    *off = strcmp (text, "off") == 0;
    if (*off || strcmp (text, "on") == 0)
        return 0;
    return usage_error (app, NULL, "--%s '%.40s': must be on or off", setting->name, text);
}

static int read_setting (const app_t *app, change_t *self, const setting_t *setting)
{
    const args_t *args = &app->args;
    uint64_t *value = member_of (&self->values, setting);
    if (!args_has (args, setting->option))
        return 0;
    add_fields (self, setting);
    if (setting->kind == SETTING_RATE)
        return read_rate (app, self, args_text (args, setting->option));
    if (setting->kind == SETTING_SIZE)
        return read_size (app, value, setting);
    if (setting->kind == SETTING_WORD)
        return read_word (app, value, args_text (args, setting->option));
    if (setting->kind == SETTING_SWITCH)
        return read_switch (app, value, setting);
    *value = args_number (args, setting->option, 0);
    if (setting->kind == SETTING_TTL)
        self->values.ttl_never = *value == 0;
    return 0;
}

/* As an option, or as in the configuration: max-age, max_age. */
static bool is_named (const char *option, const char *name)
{
    while (*option && (*option == *name || (*option == '-' && *name == '_'))) {
        option++;
        name++;
    }
    return !*option && !*name;
}

static int read_unset (const app_t *app, change_t *self, const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (!is_named (settings[i].name, name))
            continue;
        if (args_has (&app->args, settings[i].option))
            return usage_error (app, NULL, "--%s and --unset %s: which of them?", name, name);
        add_fields (self, &settings[i]);
        if (settings[i].kind == SETTING_RATE)
            add_field (self, TMQ_QUEUE_FIELD_BURST);
        return 0;
    }
    return usage_error (app, "the names are those of the options: --unset max-running",
                        "--unset '%.40s': nothing of this name can be set", name);
}

/* The rules about what stays of ended tasks. */
static bool changes_retention (const change_t *self)
{
    static const tmq_queue_field_t rules[] = {
        TMQ_QUEUE_FIELD_MAX_AGE_MS, TMQ_QUEUE_FIELD_MAX_COUNT, TMQ_QUEUE_FIELD_MAX_ENDED_BYTES,
        TMQ_QUEUE_FIELD_KEEP_FAILED_MS, TMQ_QUEUE_FIELD_MIN_KEEP};
    for (size_t i = 0; i < self->count; i++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
            if (self->fields[i] == rules[r])
                return true;
    return false;
}

static bool has_retention (const tmq_queue_settings_t *values)
{
    return values->max_age_ms || values->max_count || values->max_ended_bytes ||
           values->keep_failed_ms || values->min_keep;
}

static void note_retention (const app_t *app, const tmq_queue_t *queue)
{
    uint64_t ended = 0;
    if (!queue->settings.ttl_never)
        note (app,
              "these rules are for tasks with a ttl of 0; --ttl 0 sets that for those to come");
    if (count_ended (&ended, app, queue->queue) && ended > 0)
        note (app, "%" PRIu64 " ended task%s here: taskctl cleanup --dry-run shows what would go",
              ended, ended == 1 ? " is" : "s are");
}

/* All that is set now, as it is written on the command line. */
static int put_settings (const app_t *app, tmq_queue_report_t *report, const change_t *change)
{
    char text[1024];
    const tmq_queue_t *queue = &report->queues[0];
    if (app_wants_json (app) || app->format == FORMAT_ID)
        return put_report (app, report);
    settings_text (text, sizeof text, queue);
    note (app, "queue %s: %s", queue->queue, *text ? text : "nothing is set any more");
    note_unused (app, queue);
    if (changes_retention (change) && has_retention (&queue->settings))
        note_retention (app, queue);
    tmq_queue_report_free (report);
    return EXIT_OK;
}

/* What one change cannot say because of what is set already, one of both can. */
static int refuse_change (const app_t *app, tmq_error_t *error, const char *queue)
{
    const char *hint = strncmp (error->text, "max_count", strlen ("max_count")) == 0
                           ? "--max-count N --min-keep N says both at once, --unset min-keep takes "
                             "it back"
                       : strncmp (error->text, "keep_failed", strlen ("keep_failed")) == 0
                           ? "--max-age D --keep-failed D says both at once, --unset keep-failed "
                             "takes it back"
                           : "";
    if (!*error->hint)
        snprintf (error->hint, sizeof error->hint, "%s", hint);
    return library_error (app, error, queue);
}

/* 0 or an exit code. */
static int read_change (const app_t *app, change_t *self)
{
    const args_t *args = &app->args;
    int code = 0;
    memset (self, 0, sizeof *self);
    for (size_t i = 0; i < SETTINGS && !code; i++)
        code = read_setting (app, self, &settings[i]);
    for (size_t i = 0; i < args_count (args, OPT_UNSET) && !code; i++)
        code = read_unset (app, self, args_nth (args, OPT_UNSET, i)->text);
    if (!code && self->count == 0)
        return usage_error (app, "taskctl help queue", "what is to be set?");
    return code;
}

static int queue_set (app_t *app)
{
    tmq_queue_report_t *report = NULL;
    tmq_error_t error = {0};
    change_t change;
    const char *name = app->args.operands[1];
    int code = read_change (app, &change);
    if (!code)
        code = app_connect (app);
    if (code)
        return code;
    if (tmq_queue_set (&report, app->client, name, &change.values, change.fields, change.count,
                       app->timeout_ms, &error) != TMQ_OK)
        return refuse_change (app, &error, name);
    return put_settings (app, report, &change);
}

const verb_t queue_verbs[] = {
    {"list", "", 0, 0, queue_list},          {"show", "QUEUE", 1, 1, queue_show},
    {"set", "QUEUE", 1, 1, queue_set},       {"pause", "QUEUE", 1, 1, queue_pause},
    {"resume", "QUEUE", 1, 1, queue_resume}, {.name = NULL}};
