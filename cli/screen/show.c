/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "screen/output.h"
#include "screen/table.h"
#include "units.h"

enum {
    CLOCK_FROM = 11, /* where the time of day begins in a local time */
    LAST_GROUP = 24, /* where the last group of an id's text begins */
    HISTORY_INDENT = 4,
    CLOCK_COLUMNS = 12,
    MS_PER_SECOND = 1000,
    MS_PER_MINUTE = 60 * 1000,
    MS_PER_HOUR = 60 * 60 * 1000
};

/* Small texts. */

const char *span_format (char out[32], uint64_t ms)
{
    if (ms < MS_PER_SECOND)
        snprintf (out, 32, "%" PRIu64 "ms", ms);
    else if (ms < MS_PER_MINUTE)
        snprintf (out, 32, "%" PRIu64 ".%" PRIu64 "s", ms / 1000, ms % 1000 / 100);
    else if (ms < MS_PER_HOUR)
        snprintf (out, 32, "%" PRIu64 "m %" PRIu64 "s", ms / MS_PER_MINUTE,
                  ms % MS_PER_MINUTE / 1000);
    else
        snprintf (out, 32, "%" PRIu64 "h %" PRIu64 "m", ms / MS_PER_HOUR,
                  ms % MS_PER_HOUR / MS_PER_MINUTE);
    return out;
}

const char *task_took (char out[32], const tmq_task_t *task)
{
    const uint64_t end = task->finished_at ? task->finished_at : wall_ms ();
    out[0] = '\0';
    if (task->started_at && end >= task->started_at &&
        (task->finished_at || task->status == TMQ_STATUS_WORKING))
        span_format (out, end - task->started_at);
    return out;
}

const char *progress_text (char *out, size_t size, double done, double total, const char *unit,
                           const char *message)
{
    enum { DIGITS = 6 }; /* enough for people */
    char so_far[UNITS_TEXT_SIZE];
    char whole[UNITS_TEXT_SIZE];
    int used = 0;
    number_format (so_far, done, DIGITS);
    if (total > 0)
        used = snprintf (out, size, "%s/%s", so_far, number_format (whole, total, DIGITS));
    else if (done > 0 || !*message)
        used = snprintf (out, size, "%s", so_far);
    if (*unit && (size_t) used < size)
        used += snprintf (out + used, size - (size_t) used, " %s", unit);
    if (*message && (size_t) used < size)
        snprintf (out + used, size - (size_t) used, "%s%s", used ? " " : "", message);
    return out;
}

const char *task_remark (char *out, size_t size, const tmq_task_t *task)
{
    char when[UNITS_TEXT_SIZE];
    out[0] = '\0';
    if (task->status == TMQ_STATUS_FAILED)
        snprintf (out, size, "%s%s", task->dead ? "dead: " : "", task->error_message);
    else if (task->phase == TMQ_PHASE_SCHEDULED && task->not_before)
        snprintf (out, size, "due %s",
                  time_format_relative (when, (int64_t) task->not_before, (int64_t) wall_ms ()));
    else if (*task->status_message)
        snprintf (out, size, "%s", task->status_message);
    else if (!tmq_status_terminal (task->status) &&
             (task->progress_done > 0 || task->progress_total > 0))
        progress_text (out, size, task->progress_done, task->progress_total, task->progress_unit,
                       task->progress_message);
    return out;
}

size_t id_from (size_t full_columns)
{
    const size_t columns = terminal_columns ();
    return columns && columns < full_columns ? LAST_GROUP : 0;
}

/* Lines of a live view. */

bool local_time (char out[LOCAL_TIME_SIZE], char zone[ZONE_SIZE], long *zone_s, uint64_t ms)
{
    const time_t seconds = (time_t) (ms / MS_PER_SECOND);
    struct tm local;
    char text[24];
    char offset[8];
    if (!localtime_r (&seconds, &local) || !strftime (text, sizeof text, "%F %T", &local) ||
        !strftime (offset, sizeof offset, "%z", &local))
        return false;
    snprintf (out, LOCAL_TIME_SIZE, "%s.%03d", text, (int) (ms % MS_PER_SECOND));
    snprintf (zone, ZONE_SIZE, "UTC%.3s:%.2s", offset, offset + 3);
    if (local.tm_gmtoff == 0)
        snprintf (zone, ZONE_SIZE, "UTC");
    *zone_s = local.tm_gmtoff;
    return true;
}

const char *moment_text (char out[MOMENT_SIZE], uint64_t ms)
{
    char text[LOCAL_TIME_SIZE];
    char zone[ZONE_SIZE];
    long zone_s;
    out[0] = '\0';
    if (ms && local_time (text, zone, &zone_s, ms))
        snprintf (out, MOMENT_SIZE, "%s %s", text, zone);
    return out;
}

const char *clock_text (char out[CLOCK_TEXT_SIZE], uint64_t ms)
{
    char text[LOCAL_TIME_SIZE] = "";
    char zone[ZONE_SIZE];
    long zone_s;
    out[0] = '\0';
    if (local_time (text, zone, &zone_s, ms))
        snprintf (out, CLOCK_TEXT_SIZE, "%.8s", text + CLOCK_FROM);
    return out;
}

static void print_clock (const app_t *app, uint64_t at)
{
    char text[LOCAL_TIME_SIZE] = "";
    char zone[ZONE_SIZE];
    long zone_s;
    if (local_time (text, zone, &zone_s, at))
        printf ("%s%s%s", paint_dim (app), text + CLOCK_FROM, paint_end (app));
}

size_t columns_of (const char *text, size_t length)
{
    size_t columns = 0;
    bool escape = false;
    for (size_t i = 0; i < length; i++) {
        escape = escape || text[i] == '\033';
        if (!escape)
            columns += ((unsigned char) text[i] & 0xc0) != 0x80; /* else a character goes on */
        escape = escape && text[i] != 'm';
    }
    return columns;
}

void print_wrapped_text (const app_t *app, const char *text, size_t column, size_t indent)
{
    char *safe = safe_text (app, text);
    const size_t columns = terminal_columns ();
    if (columns == 0) {
        fputs (safe, stdout);
        free (safe);
        return;
    }
    for (const char *at = safe; *at;) {
        const size_t spaces = strspn (at, " ");
        const size_t length = strcspn (at + spaces, " ");
        const size_t width = columns_of (at + spaces, length);
        if (column > indent && column + spaces + width > columns) {
            printf ("\n%*s", (int) indent, "");
            column = indent;
        } else {
            printf ("%*s", (int) spaces, "");
            column += spaces;
        }
        fwrite (at + spaces, 1, length, stdout);
        column += width;
        at += spaces + length;
    }
    free (safe);
}

/* What a person or a program asked for: the worker is that of the attempt before. */
static bool is_asked_for (tmq_event_kind_t kind)
{
    return kind == TMQ_EVENT_CANCELLED || kind == TMQ_EVENT_RETRIED || kind == TMQ_EVENT_RESUMED ||
           kind == TMQ_EVENT_ADOPTED || kind == TMQ_EVENT_CHANGED || kind == TMQ_EVENT_PURGED ||
           kind == TMQ_EVENT_IMPORTED;
}

static void put_event_what (const app_t *app, FILE *out, const tmq_event_t *event, bool brief)
{
    char text[TMQ_MESSAGE_BYTES_MAX + 128];
    const char *arrow = app->utf8 ? "→" : "->";
    if (!brief && event->status != event->previous && event->status && event->previous)
        fprintf (out, "  %s %s %s%s%s", tmq_status_text (event->previous), arrow,
                 paint_status (app, event->status), tmq_status_text (event->status),
                 paint_end (app));
    if (event->kind == TMQ_EVENT_TURN)
        fprintf (out, "  turn %" PRIu64, event->number);
    if (event->attempt)
        fprintf (out, "  attempt %" PRIu32, event->attempt);
    const char *by = is_asked_for (event->kind) ? event->actor : event->worker;
    if (*by) {
        fputs ("  by ", out);
        print_text (app, out, by);
    }
    if (event->kind == TMQ_EVENT_TURN && *event->name) {
        fputs ("  ", out);
        print_text (app, out, event->name);
    }
    if (event->kind == TMQ_EVENT_ARTIFACT) {
        fputs ("  ", out);
        print_text (app, out, event->name);
    }
    if (event->has_progress) {
        progress_text (text, sizeof text, event->progress_done, event->progress_total,
                       event->progress_unit, event->progress_message);
        fputs ("  ", out);
        print_text (app, out, text);
    }
}

/* brief: without the statuses, of which the kind of the event tells enough. To be freed. */
static char *event_what (const app_t *app, const tmq_event_t *event, bool brief, size_t *columns)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream (&text, &bytes);
    if (out) {
        put_event_what (app, out, event, brief);
        fclose (out);
    }
    *columns = text ? columns_of (text, bytes) : 0;
    return text;
}

/* The rest of an event's line, which has come to this column. What it has no room for stands below,
 * from the column indent on. */
static void print_event_rest (const app_t *app, const tmq_event_t *event, size_t column,
                              size_t indent)
{
    const size_t columns = terminal_columns ();
    size_t width;
    char *what = event_what (app, event, false, &width);
    if (columns && column + width > columns) {
        free (what);
        what = event_what (app, event, true, &width);
    }
    if (what && columns && column + width > columns)
        print_wrapped_text (app, what, column, indent);
    else
        fputs (what ? what : "", stdout);
    free (what);
    if (!*event->message)
        return;
    column += width + 2;
    char *message = safe_text (app, event->message);
    const bool below = columns && column + columns_of (message, strlen (message)) > columns;
    if (!below)
        fputs ("  ", stdout);
    print_wrapped_text (app, event->message, below ? columns : column, indent);
    free (message);
}

static void print_snapshot (const app_t *app, const tmq_task_t *task)
{
    char id[37];
    char remark[TMQ_ERROR_MESSAGE_BYTES_MAX + 64];
    tmq_id_format (&task->id, id);
    print_clock (app, task->updated_at);
    print_safe (app, stdout, "  %-14s  %s  %s  ", "is", id + id_from (FULL_ID_COLUMNS),
                task->queue);
    printf ("%s%s%s", paint_status (app, task->status), tmq_status_text (task->status),
            paint_end (app));
    task_remark (remark, sizeof remark, task);
    if (*remark) {
        fputs ("  ", stdout);
        print_text (app, stdout, remark);
    }
}

/* Events of another history cannot be compared with ours by their numbers. */
static void show_gap (const app_t *app, const tmq_event_t *event, bool other_history)
{
    fputs (paint_bold (app), stdout);
    if (other_history)
        printf ("-- the cursor belongs to another history (events may be lost): this one follows "
                "from its event %" PRIu64 " --",
                event->gap_to + 1);
    else
        printf ("-- events %" PRIu64 " to %" PRIu64 " are no longer kept --", event->gap_from,
                event->gap_to);
    printf ("%s\n", paint_end (app));
}

/* What is no task. */
static void put_entry (const app_t *app, FILE *out, const char *kind, const tmq_event_t *event)
{
    print_safe (app, out, "  %-14s  %s %s", kind, tmq_subject_text (event->subject), event->name);
    if (event->number != 0)
        fprintf (out, " %" PRIu64, event->number);
    if (*event->session)
        print_safe (app, out, "  session %s", event->session);
    if (*event->actor)
        print_safe (app, out, "  by %s", event->actor);
}

static void print_event (const app_t *app, const tmq_event_t *event)
{
    char id[37];
    char *head = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream (&head, &bytes);
    const char *kind =
        event->item == TMQ_ITEM_NOTICE ? "progress" : tmq_event_kind_text (event->kind);
    if (!out)
        return;
    tmq_id_format (&event->task_id, id);
    if (event->subject > TMQ_SUBJECT_TASK)
        put_entry (app, out, kind, event);
    else
        print_safe (app, out, "  %-14s  %s  %s", kind, id + id_from (FULL_ID_COLUMNS),
                    event->queue);
    fclose (out);
    print_clock (app, event->at);
    fputs (head, stdout);
    print_event_rest (app, event, CLOCK_COLUMNS + columns_of (head, bytes), CLOCK_COLUMNS + 2);
    free (head);
}

void show_event (const app_t *app, const tmq_event_t *event, bool other_history)
{
    if (event->item == TMQ_ITEM_GAP) {
        show_gap (app, event, other_history);
        return;
    }
    if (event->item == TMQ_ITEM_SNAPSHOT)
        print_snapshot (app, event->task);
    else
        print_event (app, event);
    fputc ('\n', stdout);
}

void show_history_event (const app_t *app, const tmq_event_t *event)
{
    enum { KIND_COLUMNS = 16 };
    const char *kind = tmq_event_kind_text (event->kind);
    const bool alone = !event->attempt && !*event->worker && !event->has_progress &&
                       !is_asked_for (event->kind) && !*event->message &&
                       (event->status == event->previous || !event->status || !event->previous);
    printf ("%*s", HISTORY_INDENT, "");
    print_clock (app, event->at);
    printf (alone ? "  %s" : "  %-14s", kind);
    print_event_rest (app, event, HISTORY_INDENT + CLOCK_COLUMNS + KIND_COLUMNS,
                      HISTORY_INDENT + CLOCK_COLUMNS + 2);
    putchar ('\n');
}

void show_ending (const app_t *app, const tmq_task_t *task)
{
    char id[37];
    char took[32];
    char remark[TMQ_ERROR_MESSAGE_BYTES_MAX + 64];
    tmq_id_format (&task->id, id);
    printf ("%s  %s%-9s%s  ", id + id_from (FULL_ID_COLUMNS), paint_status (app, task->status),
            tmq_status_text (task->status), paint_end (app));
    print_text (app, stdout, task->queue);
    if (*task_took (took, task))
        printf ("  in %s", took);
    if (*task_remark (remark, sizeof remark, task)) {
        fputs ("  ", stdout);
        print_text (app, stdout, remark);
    }
    fputc ('\n', stdout);
}

int show_failure (const app_t *app, const tmq_task_t *task)
{
    char id[37];
    tmq_id_format (&task->id, id);
    if (task->status == TMQ_STATUS_CANCELLED)
        return task_error (app, "TASK_CANCELLED", id, "%s was cancelled%s%s", id,
                           *task->status_message ? ": " : "", task->status_message);
    return task_error (app, "TASK_FAILED", id, "%s failed%s: %s (code %" PRId32 ")", id,
                       task->dead ? " for good, its attempts are used up" : "", task->error_message,
                       task->error_code);
}

void put_bytes (const void *bytes, size_t length)
{
    if (length == 0)
        return;
    fwrite (bytes, 1, length, stdout);
    if (isatty (STDOUT_FILENO) && ((const char *) bytes)[length - 1] != '\n')
        putchar ('\n');
}

void put_body (const tmq_task_t *task)
{
    put_bytes (task->body, task->body_bytes);
}
