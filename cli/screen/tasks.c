/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "nearest.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"

enum { TEXT_SIZE = TMQ_LABELS_MAX * (TMQ_LABEL_BYTES_MAX + TMQ_NAME_LENGTH_MAX + 2) };

/* Where a fact is a column when nobody chose any. */
typedef enum shown_where {
    SHOWN_ALWAYS,
    SHOWN_IF_ANY, /* where a task has it, as it tells tasks apart; always with -o wide */
    SHOWN_WIDE,
    SHOWN_BY_CHOICE
} shown_where_t;

/* One fact about a task. */
typedef struct task_fact {
    const char *name; /* for --columns */
    const char *title;
    int flags; /* of its column */
    shown_where_t where;
    void (*put) (char out[TEXT_SIZE], const tmq_task_t *task); /* out is empty before */
} task_fact_t;

/* The facts. */

static void put_text (char out[TEXT_SIZE], const char *text)
{
    snprintf (out, TEXT_SIZE, "%s", text);
}

static void put_when (char out[TEXT_SIZE], uint64_t ms)
{
    char text[UNITS_TEXT_SIZE];
    if (ms)
        put_text (out, time_format_relative (text, (int64_t) ms, (int64_t) wall_ms ()));
}

static void put_size (char out[TEXT_SIZE], uint64_t bytes)
{
    char text[UNITS_TEXT_SIZE];
    put_text (out, size_format (text, bytes));
}

static void put_id (char out[TEXT_SIZE], const tmq_task_t *task)
{
    char id[37];
    tmq_id_format (&task->id, id);
    put_text (out, id + id_from (FULL_ID_COLUMNS));
}

/* Beside all the other columns. */
static void put_wide_id (char out[TEXT_SIZE], const tmq_task_t *task)
{
    char id[37];
    tmq_id_format (&task->id, id);
    put_text (out, id + id_from (FULL_ID_COLUMNS_WIDE));
}

static void put_status (char out[TEXT_SIZE], const tmq_task_t *task)
{
    const bool held = task->phase != TMQ_PHASE_NONE && task->phase != TMQ_PHASE_READY &&
                      task->phase != TMQ_PHASE_LEASED;
    snprintf (out, TEXT_SIZE, held ? "%s (%s)" : "%s", tmq_status_text (task->status),
              phase_name (task->phase));
}

static void put_queue (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_text (out, task->queue);
}

static void put_session (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_text (out, task->session);
}

static void put_priority (char out[TEXT_SIZE], const tmq_task_t *task)
{
    snprintf (out, TEXT_SIZE, "%d", task->priority);
}

static void put_method (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_text (out, task->method);
}

static void put_created (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_when (out, task->created_at);
}

static void put_updated (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_when (out, task->updated_at);
}

static void put_took (char out[TEXT_SIZE], const tmq_task_t *task)
{
    char text[32];
    put_text (out, task_took (text, task));
}

static void put_failures (char out[TEXT_SIZE], const tmq_task_t *task)
{
    snprintf (out, TEXT_SIZE, "%" PRIu32 "/%" PRIu32, task->failures, task->max_attempts);
}

static void put_attempt (char out[TEXT_SIZE], const tmq_task_t *task)
{
    snprintf (out, TEXT_SIZE, "%" PRIu32, task->attempt);
}

static void put_worker (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_text (out, task->worker);
}

static void put_owner (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_text (out, task->owner);
}

static void put_type (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_text (out, task->content_type);
}

static void put_payload (char out[TEXT_SIZE], const tmq_task_t *task)
{
    put_size (out, task->payload_bytes);
}

static void put_result (char out[TEXT_SIZE], const tmq_task_t *task)
{
    if (task->outcome != TMQ_OUTCOME_NONE)
        put_size (out, task->result_bytes);
}

static void put_expires (char out[TEXT_SIZE], const tmq_task_t *task)
{
    if (task->expires_at)
        put_when (out, task->expires_at);
    else
        put_text (out, "never");
}

static void put_labels (char out[TEXT_SIZE], const tmq_task_t *task)
{
    size_t used = 0;
    for (size_t i = 0; i < task->labels_count && used < TEXT_SIZE; i++)
        used += (size_t) snprintf (out + used, TEXT_SIZE - used, "%s%s=%s", i ? " " : "",
                                   task->labels[i].key, task->labels[i].value);
}

static void put_remark (char out[TEXT_SIZE], const tmq_task_t *task)
{
    task_remark (out, TEXT_SIZE, task);
}

/* In the order in which they stand in a table. */
static const task_fact_t facts[] = {
    {"id", "ID", COLUMN_LEFT, SHOWN_ALWAYS, put_id},
    {"status", "STATUS", COLUMN_LEFT, SHOWN_ALWAYS, put_status},
    {"queue", "QUEUE", COLUMN_TRUNCATE, SHOWN_ALWAYS, put_queue},
    {"session", "SESSION", COLUMN_TRUNCATE | 8 * COLUMN_YIELDS, SHOWN_WIDE, put_session},
    {"priority", "PRIORITY", COLUMN_RIGHT | 4 * COLUMN_YIELDS, SHOWN_WIDE, put_priority},
    {"method", "METHOD", COLUMN_TRUNCATE | 11 * COLUMN_YIELDS, SHOWN_IF_ANY, put_method},
    {"labels", "LABELS", COLUMN_TRUNCATE | 12 * COLUMN_YIELDS, SHOWN_IF_ANY, put_labels},
    {"created", "CREATED", COLUMN_RIGHT | 10 * COLUMN_YIELDS, SHOWN_ALWAYS, put_created},
    {"updated", "UPDATED", COLUMN_RIGHT, SHOWN_BY_CHOICE, put_updated},
    {"took", "TOOK", COLUMN_RIGHT | 6 * COLUMN_YIELDS, SHOWN_ALWAYS, put_took},
    {"failures", "FAILED", COLUMN_RIGHT | 9 * COLUMN_YIELDS, SHOWN_ALWAYS, put_failures},
    {"attempt", "ATTEMPT", COLUMN_RIGHT | 3 * COLUMN_YIELDS, SHOWN_WIDE, put_attempt},
    {"worker", "WORKER", COLUMN_TRUNCATE | 7 * COLUMN_YIELDS, SHOWN_WIDE, put_worker},
    {"owner", "OWNER", COLUMN_LEFT, SHOWN_BY_CHOICE, put_owner},
    {"type", "TYPE", COLUMN_LEFT, SHOWN_BY_CHOICE, put_type},
    {"payload", "PAYLOAD", COLUMN_RIGHT | 2 * COLUMN_YIELDS, SHOWN_WIDE, put_payload},
    {"result", "RESULT", COLUMN_RIGHT | 1 * COLUMN_YIELDS, SHOWN_WIDE, put_result},
    {"expires", "EXPIRES", COLUMN_RIGHT | 5 * COLUMN_YIELDS, SHOWN_WIDE, put_expires},
    {"remark", "REMARK", COLUMN_TRUNCATE | 13 * COLUMN_YIELDS, SHOWN_IF_ANY, put_remark},
};
enum { FACTS = sizeof facts / sizeof *facts };
/* "label:NAME" */
static const task_fact_t label_fact = {"label:", NULL, COLUMN_TRUNCATE, SHOWN_BY_CHOICE, NULL};

const char *task_column_name (size_t i)
{
    return i < FACTS ? facts[i].name : NULL;
}

/* The choice of columns. */

static int unknown_column (const app_t *app, const char *name, size_t length)
{
    const char *names[FACTS];
    char word[64];
    char hint[256] = "columns:";
    snprintf (word, sizeof word, "%.*s", (int) length, name);
    for (size_t i = 0; i < FACTS; i++) {
        names[i] = facts[i].name;
        snprintf (hint + strlen (hint), sizeof hint - strlen (hint), " %s", facts[i].name);
    }
    snprintf (hint + strlen (hint), sizeof hint - strlen (hint), " label:NAME");
    const char *nearest = nearest_of (word, names, FACTS);
    if (nearest)
        snprintf (hint, sizeof hint, "did you mean '%s'?", nearest);
    return usage_error (app, hint, "there is no column '%s'", word);
}

static const task_fact_t *find_fact (const char *name, size_t length)
{
    const size_t prefix = strlen (label_fact.name);
    if (length > prefix && strncmp (name, label_fact.name, prefix) == 0)
        return length - prefix <= TMQ_NAME_LENGTH_MAX ? &label_fact : NULL;
    for (size_t i = 0; i < FACTS; i++) {
        if (strlen (facts[i].name) == length && strncmp (name, facts[i].name, length) == 0)
            return &facts[i];
    }
    return NULL;
}

int task_table_init (task_table_t *self, const app_t *app, const char *choice)
{
    *self = (task_table_t){.app = app, .chosen = choice != NULL};
    while (choice) {
        const size_t length = strcspn (choice, ",");
        const task_fact_t *fact = find_fact (choice, length);
        if (!fact)
            return unknown_column (app, choice, length);
        if (self->count == TASK_COLUMNS_MAX)
            return usage_error (app, NULL, "more than %d columns", TASK_COLUMNS_MAX);
        task_column_t *column = &self->columns[self->count++];
        column->fact = fact;
        if (fact == &label_fact)
            snprintf (column->label, sizeof column->label, "%.*s",
                      (int) (length - strlen (label_fact.name)), choice + strlen (label_fact.name));
        choice = choice[length] ? choice + length + 1 : NULL;
    }
    return 0;
}

static bool any_has (const task_fact_t *fact, tmq_task_t *const *tasks, size_t count)
{
    char text[TEXT_SIZE] = "";
    for (size_t i = 0; i < count && !*text; i++)
        fact->put (text, tasks[i]);
    return *text != '\0';
}

static void settle_columns (task_table_t *self, tmq_task_t *const *tasks, size_t count)
{
    const bool wide = self->app->format == FORMAT_WIDE;
    for (size_t i = 0; i < FACTS; i++) {
        const shown_where_t where = facts[i].where;
        if (where == SHOWN_ALWAYS || (wide && where != SHOWN_BY_CHOICE) ||
            (where == SHOWN_IF_ANY && any_has (&facts[i], tasks, count)))
            self->columns[self->count++].fact = &facts[i];
    }
}

/* Rows. */

static const char *label_value (const tmq_task_t *task, const char *key)
{
    for (size_t i = 0; i < task->labels_count; i++) {
        if (strcmp (task->labels[i].key, key) == 0)
            return task->labels[i].value;
    }
    return "";
}

static void fill_row (table_t *table, const task_table_t *self, const tmq_task_t *task)
{
    table_row (table);
    for (size_t i = 0; i < self->count; i++) {
        const task_column_t *column = &self->columns[i];
        char text[TEXT_SIZE] = "";
        if (column->fact == &label_fact)
            put_text (text, label_value (task, column->label));
        else if (column->fact->put == put_id && self->app->format == FORMAT_WIDE)
            put_wide_id (text, task);
        else
            column->fact->put (text, task);
        table_set (table, i, "%s", text);
        if (column->fact->put == put_status)
            table_paint (table, i, task->status);
    }
}

/* What the first page has no room for is missing from the others, too. */
static void drop_left_out (task_table_t *self, const table_t *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->count; i++) {
        if (!table_has_left_out (table, i))
            self->columns[kept++] = self->columns[i];
    }
    self->left_out += self->count - kept;
    self->count = kept;
}

void task_table_show (task_table_t *self, tmq_task_t *const *tasks, size_t count)
{
    column_t columns[TASK_COLUMNS_MAX];
    if (count == 0)
        return;
    if (self->count == 0)
        settle_columns (self, tasks, count);
    for (size_t i = 0; i < self->count; i++) {
        const task_column_t *column = &self->columns[i];
        const int flags = column->fact->flags;
        columns[i].title = column->fact == &label_fact ? column->label : column->fact->title;
        columns[i].flags = self->chosen ? flags % COLUMN_YIELDS : flags;
    }
    table_t *table = table_new (self->app, columns, self->count, !self->begun);
    self->begun = true;
    for (size_t i = 0; i < count; i++)
        fill_row (table, self, tasks[i]);
    table_fit (table);
    drop_left_out (self, table);
    table_end (table);
}
