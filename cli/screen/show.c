/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "screen/output.h"
#include "screen/table.h"
#include "units.h"

enum {
    LAST_GROUP = 24,       /* where the last group of an id's text begins */
    FULL_ID_COLUMNS = 100, /* of a terminal that shows full ids in tables */
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

const char *progress_text (char *out, size_t size, uint64_t done, uint64_t total, const char *unit,
                           const char *message)
{
    int used = 0;
    if (total)
        used = snprintf (out, size, "%" PRIu64 "/%" PRIu64, done, total);
    else if (done || !*message)
        used = snprintf (out, size, "%" PRIu64, done);
    if (*unit && (size_t) used < size)
        used += snprintf (out + used, size - (size_t) used, " %s", unit);
    if (*message && (size_t) used < size)
        snprintf (out + used, size - (size_t) used, "%s%s", used ? " " : "", message);
    return out;
}

const char *task_remark (char *out, size_t size, const tmq_task_t *task)
{
    out[0] = '\0';
    if (task->status == TMQ_STATUS_FAILED)
        snprintf (out, size, "%s%s", task->dead ? "dead: " : "", task->error_message);
    else if (*task->status_message)
        snprintf (out, size, "%s", task->status_message);
    else if (!tmq_status_terminal (task->status) && (task->progress_done || task->progress_total))
        progress_text (out, size, task->progress_done, task->progress_total, task->progress_unit,
                       task->progress_message);
    return out;
}

static const char *size_text (char out[UNITS_TEXT_SIZE], uint64_t bytes)
{
    return size_format (out, bytes);
}

static const char *when (char out[UNITS_TEXT_SIZE], uint64_t ms)
{
    out[0] = '\0';
    return ms ? time_format_relative (out, (int64_t) ms, (int64_t) wall_ms ()) : out;
}

/* A table of tasks. */

enum {
    COL_ID,
    COL_STATUS,
    COL_QUEUE,
    COL_SESSION,
    COL_PRIORITY,
    COL_METHOD,
    COL_CREATED,
    COL_TOOK,
    COL_TRY,
    COL_WORKER,
    COL_PAYLOAD,
    COL_RESULT,
    COL_EXPIRES,
    COL_LABELS,
    COL_REMARK
};

static const column_t task_columns[] = {
    [COL_ID] = {"ID", COLUMN_LEFT},
    [COL_STATUS] = {"STATUS", COLUMN_LEFT},
    [COL_QUEUE] = {"QUEUE", COLUMN_LEFT},
    [COL_SESSION] = {"SESSION", COLUMN_WIDE},
    [COL_PRIORITY] = {"PRIORITY", COLUMN_RIGHT | COLUMN_WIDE},
    [COL_METHOD] = {"METHOD", COLUMN_WIDE},
    [COL_CREATED] = {"CREATED", COLUMN_RIGHT},
    [COL_TOOK] = {"TOOK", COLUMN_RIGHT},
    [COL_TRY] = {"TRY", COLUMN_RIGHT},
    [COL_WORKER] = {"WORKER", COLUMN_WIDE},
    [COL_PAYLOAD] = {"PAYLOAD", COLUMN_RIGHT | COLUMN_WIDE},
    [COL_RESULT] = {"RESULT", COLUMN_RIGHT | COLUMN_WIDE},
    [COL_EXPIRES] = {"EXPIRES", COLUMN_RIGHT | COLUMN_WIDE},
    [COL_LABELS] = {"LABELS", COLUMN_WIDE},
    [COL_REMARK] = {"REMARK", COLUMN_TRUNCATE},
};

static void labels_text (char *out, size_t size, const tmq_label_t *labels, size_t count)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t) snprintf (out + used, size - used, "%s%s=%s", i ? " " : "", labels[i].key,
                                   labels[i].value);
}

static void fill_wide (table_t *table, const tmq_task_t *task)
{
    char text[UNITS_TEXT_SIZE];
    char labels[TMQ_LABELS_MAX * (TMQ_LABEL_BYTES_MAX + TMQ_NAME_LENGTH_MAX + 2)];
    table_set (table, COL_SESSION, "%s", task->session);
    table_set (table, COL_PRIORITY, "%d", task->priority);
    table_set (table, COL_METHOD, "%s", task->method);
    table_set (table, COL_WORKER, "%s", task->worker);
    table_set (table, COL_PAYLOAD, "%s", size_text (text, task->payload_bytes));
    table_set (table, COL_RESULT, "%s",
               task->outcome == TMQ_OUTCOME_NONE ? "" : size_text (text, task->result_bytes));
    table_set (table, COL_EXPIRES, "%s",
               task->expires_at ? when (text, task->expires_at) : "never");
    labels_text (labels, sizeof labels, task->labels, task->labels_count);
    table_set (table, COL_LABELS, "%s", labels);
}

static void fill_row (table_t *table, const tmq_task_t *task, size_t id_from)
{
    char id[37];
    char text[UNITS_TEXT_SIZE];
    char remark[TMQ_MESSAGE_BYTES_MAX + 64];
    tmq_id_format (&task->id, id);
    table_row (table);
    table_set (table, COL_ID, "%s", id + id_from);
    table_set (table, COL_STATUS, "%s", tmq_status_text (task->status));
    table_paint (table, COL_STATUS, task->status);
    table_set (table, COL_QUEUE, "%s", task->queue);
    table_set (table, COL_CREATED, "%s", when (text, task->created_at));
    table_set (table, COL_TOOK, "%s", task_took (text, task));
    table_set (table, COL_TRY, "%" PRIu32 "/%" PRIu32, task->attempt, task->max_attempts);
    table_set (table, COL_REMARK, "%s", task_remark (remark, sizeof remark, task));
    fill_wide (table, task);
}

void show_tasks (const app_t *app, tmq_task_t *const *tasks, size_t count, bool headings)
{
    if (count == 0)
        return;
    /* On a narrow terminal the last group is enough: it is random, and any ending names a task. */
    const size_t columns = terminal_columns ();
    const size_t id_from = columns && columns < FULL_ID_COLUMNS ? LAST_GROUP : 0;
    table_t *table =
        table_new (app, task_columns, sizeof task_columns / sizeof *task_columns, headings);
    for (size_t i = 0; i < count; i++)
        fill_row (table, tasks[i], id_from);
    table_end (table);
}

/* Lines of a live view. */

static void print_clock (const app_t *app, uint64_t at)
{
    const time_t seconds = (time_t) (at / MS_PER_SECOND);
    struct tm local;
    char text[16] = "";
    if (localtime_r (&seconds, &local))
        strftime (text, sizeof text, "%H:%M:%S", &local);
    printf ("%s%s.%03d%s", paint_dim (app), text, (int) (at % MS_PER_SECOND), paint_end (app));
}

static bool moves (const tmq_event_t *event)
{
    return event->status != event->previous && event->status && event->previous;
}

/* True if print_event_what will print something. */
static bool says_more (const tmq_event_t *event)
{
    return moves (event) || event->attempt || *event->worker || event->has_progress ||
           *event->message;
}

static void print_event_what (const app_t *app, const tmq_event_t *event)
{
    char text[TMQ_MESSAGE_BYTES_MAX + 128];
    const char *arrow = app->utf8 ? "→" : "->";
    if (moves (event))
        printf ("  %s %s %s%s%s", tmq_status_text (event->previous), arrow,
                paint_status (app, event->status), tmq_status_text (event->status),
                paint_end (app));
    if (event->attempt)
        printf ("  attempt %" PRIu32, event->attempt);
    if (*event->worker) {
        fputs ("  by ", stdout);
        print_text (app, stdout, event->worker);
    }
    if (event->has_progress) {
        progress_text (text, sizeof text, event->progress_done, event->progress_total,
                       event->progress_unit, event->progress_message);
        fputs ("  ", stdout);
        print_text (app, stdout, text);
    }
    if (*event->message) {
        fputs ("  ", stdout);
        print_text (app, stdout, event->message);
    }
}

static void print_snapshot (const app_t *app, const tmq_task_t *task)
{
    char id[37];
    char remark[TMQ_MESSAGE_BYTES_MAX + 64];
    tmq_id_format (&task->id, id);
    print_clock (app, task->updated_at);
    printf ("  %-14s  %s  %s  %s%s%s", "is", id, task->queue, paint_status (app, task->status),
            tmq_status_text (task->status), paint_end (app));
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
        printf ("-- the cursor belongs to another history: this one follows from its event %" PRIu64
                " --",
                event->gap_to + 1);
    else
        printf ("-- events %" PRIu64 " to %" PRIu64 " are no longer kept --", event->gap_from,
                event->gap_to);
    printf ("%s\n", paint_end (app));
}

void show_event (const app_t *app, const tmq_event_t *event, bool with_task, bool other_history)
{
    char id[37];
    if (event->item == TMQ_ITEM_GAP) {
        show_gap (app, event, other_history);
        return;
    }
    if (event->item == TMQ_ITEM_SNAPSHOT) {
        print_snapshot (app, event->task);
    } else {
        tmq_id_format (&event->task_id, id);
        print_clock (app, event->at);
        const char *kind =
            event->item == TMQ_ITEM_NOTICE ? "progress" : tmq_event_kind_text (event->kind);
        if (with_task)
            printf ("  %-14s  %s  %s", kind, id, event->queue);
        else
            printf (says_more (event) ? "  %-14s" : "  %s", kind);
        print_event_what (app, event);
    }
    fputc ('\n', stdout);
}

void show_ending (const app_t *app, const tmq_task_t *task)
{
    char id[37];
    char took[32];
    char remark[TMQ_MESSAGE_BYTES_MAX + 64];
    tmq_id_format (&task->id, id);
    printf ("%s  %s%-9s%s  %s", id, paint_status (app, task->status),
            tmq_status_text (task->status), paint_end (app), task->queue);
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

void put_body (const tmq_task_t *task)
{
    if (task->body_bytes)
        fwrite (task->body, 1, task->body_bytes, stdout);
}
