/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The verdict at the end of a stress run. */
#include "support/checker.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/audit.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum { PATH_SIZE = 512 };

static bool is_terminal (tmq_status_t status)
{
    return tmq_status_terminal (status);
}

/* The final drain. */

static void wait_for_end (fact_t *fact, tmq_client_t *client, int64_t until_ms)
{
    tmq_error_t error = {0};
    tmq_status_t status = TMQ_STATUS_NONE;
    int64_t left = until_ms - timing_ms ();
    int code = tmq_wait (&status, client, &fact->id, left > 0 ? (uint32_t) left : 0, &error);
    if (code == TMQ_NOT_FOUND && !fact->accepted) {
        return;
    }
    if (code != TMQ_OK) {
        fail_msg ("%s: %s does not end: %s %s", fact->accepted ? "I1, I11" : "I11", fact->payload,
                  tmq_code_name (code), error.text);
    }
    if (fact->ended != TMQ_STATUS_NONE && fact->ended != status) {
        fail_msg ("I2: %s had ended as %s, now it is %s", fact->payload,
                  tmq_status_text (fact->ended), tmq_status_text (status));
    }
    fact->ended = status;
}

static void compare (const fact_t *fact, const tmq_task_t *task)
{
    if (task->status != fact->ended) {
        fail_msg ("I2: %s had ended as %s, now it is %s", fact->payload,
                  tmq_status_text (fact->ended), tmq_status_text (task->status));
    }
    if (task->payload_bytes != strlen (fact->payload)) {
        fail_msg ("I1: %s has a payload of %llu bytes", fact->payload,
                  (unsigned long long) task->payload_bytes);
    }
    if (fact->attempts_seen > task->attempt) {
        fail_msg ("I5: %s is at attempt %u, a worker had %u", fact->payload, task->attempt,
                  fact->attempts_seen);
    }
    if (fact->completed_by == 0) {
        return;
    }
    if (task->status != TMQ_STATUS_COMPLETED || task->attempt != fact->completed_by) {
        fail_msg ("I4: %s was completed by attempt %u; it is %s at attempt %u", fact->payload,
                  fact->completed_by, tmq_status_text (task->status), task->attempt);
    }
    if (task->body_bytes != strlen (fact->result) ||
        memcmp (task->body, fact->result, task->body_bytes) != 0) {
        fail_msg ("I3: the result of %s is not what was acknowledged", fact->payload);
    }
}

static void read_back (fact_t *fact, tmq_client_t *client)
{
    tmq_error_t error = {0};
    tmq_task_t *task = NULL;
    int code = tmq_get (&task, client, &fact->id, TIMING_PATIENCE_MS, &error);
    if (code == TMQ_NOT_FOUND && !fact->accepted) {
        return;
    }
    if (code != TMQ_OK) {
        fail_msg ("I1: %s cannot be read: %s %s", fact->payload, tmq_code_name (code), error.text);
    }
    compare (fact, task);
    fact->status = task->status;
    fact->attempt = task->attempt;
    fact->version = task->version;
    fact->seq = task->seq;
    tmq_task_free (task);
}

static void tell_broken (history_t *history)
{
    pthread_mutex_lock (&history->mutex);
    bool broken = history->broken[0] != '\0';
    pthread_mutex_unlock (&history->mutex);
    if (broken) {
        fail_msg ("%s", history->broken);
    }
}

void checker_wait (history_t *history, tmq_client_t *client, uint32_t ms)
{
    int64_t until_ms = timing_ms () + ms;
    tell_broken (history);
    for (size_t i = 0; i < history->count; i++) {
        wait_for_end (&history->facts[i], client, until_ms);
    }
    tell_broken (history);
}

void checker_drain (history_t *history, tmq_client_t *client)
{
    for (size_t i = 0; i < history->count; i++) {
        read_back (&history->facts[i], client);
    }
    tell_broken (history);
}

/* Events. */

/* What the events tell about one task. */
typedef struct story {
    tmq_id_t id;
    uint64_t seq;
    tmq_status_t status;
    uint32_t attempt;
    bool begun;
} story_t;

static int by_id (const void *a, const void *b)
{
    return memcmp (a, b, sizeof (tmq_id_t));
}

/* A success that comes after its attempt is over (S35) changes nothing but the newest event, and
 * names its own attempt: another one may have begun since. */
static void tell_late (story_t *story, const seen_event_t *event)
{
    unsigned long long seq = event->seq;
    if (event->attempt == 0 || event->attempt > story->attempt) {
        fail_msg ("I5: event %llu: a late success of attempt %u, the newest is %u", seq,
                  event->attempt, story->attempt);
    }
    if (event->status != story->status || story->status == TMQ_STATUS_COMPLETED ||
        story->status == TMQ_STATUS_CANCELLED) {
        fail_msg ("I2: event %llu: a late success makes %s of %s", seq,
                  tmq_status_text (event->status), tmq_status_text (story->status));
    }
    story->seq = event->seq;
}

static void tell (story_t *story, const seen_event_t *event)
{
    unsigned long long seq = event->seq;
    if (story->begun == (event->kind == TMQ_EVENT_SUBMITTED)) {
        fail_msg ("I7: event %llu: submitted twice, or not first", seq);
    }
    if (event->previous != story->status) {
        fail_msg ("I7: event %llu: from %s, but the task was %s", seq,
                  tmq_status_text (event->previous), tmq_status_text (story->status));
    }
    if (story->begun && is_terminal (story->status) && event->status != story->status) {
        fail_msg ("I2: event %llu: from %s to %s", seq, tmq_status_text (story->status),
                  tmq_status_text (event->status));
    }
    if (event->kind == TMQ_EVENT_LATE) {
        tell_late (story, event);
        return;
    }
    if (event->attempt < story->attempt ||
        (event->kind == TMQ_EVENT_CLAIMED && event->attempt == story->attempt)) {
        fail_msg ("I5: event %llu, %s: attempt %u after %u", seq, tmq_event_kind_text (event->kind),
                  event->attempt, story->attempt);
    }
    story->begun = true;
    story->seq = event->seq;
    story->status = event->status;
    story->attempt = event->attempt;
}

static void check_stories (const history_t *history, const stream_t *stream)
{
    story_t *stories = calloc (history->count + 1, sizeof *stories);
    for (size_t i = 0; i < history->count; i++) {
        stories[i].id = history->facts[i].id;
    }
    qsort (stories, history->count, sizeof *stories, by_id);
    for (size_t i = 0; i < stream->count; i++) {
        story_t *story =
            bsearch (&stream->events[i].task_id, stories, history->count, sizeof *stories, by_id);
        if (story == NULL) {
            fail_msg ("I7: event %llu is about a task that nobody submitted",
                      (unsigned long long) stream->events[i].seq);
        }
        tell (story, &stream->events[i]);
    }
    for (size_t i = 0; i < history->count; i++) {
        const fact_t *fact = &history->facts[i];
        const story_t *story = bsearch (&fact->id, stories, history->count, sizeof *stories, by_id);
        if (story->seq != fact->seq || story->status != fact->status) {
            fail_msg ("I7: the events of %s end at %llu with %s; the task: %llu, %s", fact->payload,
                      (unsigned long long) story->seq, tmq_status_text (story->status),
                      (unsigned long long) fact->seq, tmq_status_text (fact->status));
        }
    }
    free (stories);
}

static bool same_event (const seen_event_t *a, const seen_event_t *b)
{
    return a->seq == b->seq && a->kind == b->kind && a->status == b->status &&
           a->previous == b->previous && a->attempt == b->attempt &&
           memcmp (&a->task_id, &b->task_id, sizeof a->task_id) == 0;
}

void checker_events (const history_t *history, size_t streams, uint64_t upto)
{
    const stream_t *first = &history->streams[0];
    for (size_t k = 0; k < streams; k++) {
        const stream_t *stream = &history->streams[k];
        if (stream->upto != upto || stream->count != upto) {
            fail_msg ("I7: stream %zu has %zu events up to %llu, there are %llu", k, stream->count,
                      (unsigned long long) stream->upto, (unsigned long long) upto);
        }
        for (size_t i = 0; i < stream->count; i++) {
            if (stream->events[i].seq != i + 1) {
                fail_msg ("I7: stream %zu: event %llu in place %zu", k,
                          (unsigned long long) stream->events[i].seq, i + 1);
            }
            if (!same_event (&stream->events[i], &first->events[i])) {
                fail_msg ("I7: streams 0 and %zu differ in event %zu", k, i + 1);
            }
        }
    }
    check_stories (history, first);
}

/* Files. */

static int expect_ok (void *context, int columns, char **values, char **names)
{
    (void) names;
    if (columns > 0 && values[0] != NULL && strcmp (values[0], "ok") != 0) {
        snprintf (context, PATH_SIZE, "%s", values[0]);
    }
    return 0;
}

static void check_database (const char *directory, const char *name)
{
    char path[PATH_SIZE];
    char trouble[PATH_SIZE] = "";
    sqlite3 *database = NULL;
    snprintf (path, sizeof path, "%s/%s", directory, name);
    if (sqlite3_open_v2 (path, &database, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        fail_msg ("I10: %s: %s", path, sqlite3_errmsg (database));
    }
    static const char *const checks[] = {"PRAGMA integrity_check", "PRAGMA foreign_key_check"};
    for (size_t i = 0; i < 2; i++) {
        char *message = NULL;
        sqlite3_exec (database, checks[i], expect_ok, trouble, &message);
        if (message != NULL || trouble[0] != '\0') {
            fail_msg ("I10: %s: %s: %s", path, checks[i], message != NULL ? message : trouble);
        }
    }
    sqlite3_close (database);
}

static void fail_finding (void *context, const char *text)
{
    fail_msg ("I10: %s: %s", (const char *) context, text);
}

/* As `taskmqd --check` reads all of it. Returns how many commits only the journal has. */
static uint64_t audit (const char *directory)
{
    store_error_t error = {STORE_OK, ""};
    store_audit_t report = {.found = fail_finding, .context = (void *) directory};
    if (store_audit (&report, directory, &error) != STORE_OK) {
        fail_msg ("I10: %s: %s", directory, error.text);
    }
    return report.batches;
}

void checker_databases (const char *data_directory)
{
    check_database (data_directory, "taskmq.db");
    audit (data_directory);
}

/* The last line of a task, as far as it is compared. */
typedef struct line {
    tmq_id_t id;
    char status[24];
    json_int_t attempt;
    json_int_t version;
    json_int_t seq;
    size_t order;
    char result[CHECKER_TEXT_MAX];
} line_t;

static int by_id_and_order (const void *a, const void *b)
{
    const line_t *left = a;
    const line_t *right = b;
    int order = by_id (a, b);
    return order != 0 ? order : (left->order > right->order) - (left->order < right->order);
}

static void parse_line (line_t *out, const char *text, size_t number, json_int_t *pos)
{
    json_error_t error;
    json_t *object = json_loads (text, 0, &error);
    if (object == NULL) {
        fail_msg ("I8: line %zu of tasks.jsonl: %s", number, error.text);
    }
    const char *id = json_string_value (json_object_get (object, "task_id"));
    const char *status = json_string_value (json_object_get (object, "status"));
    const char *result = json_string_value (json_object_get (object, "result"));
    json_int_t own_pos = json_integer_value (json_object_get (object, "pos"));
    if (id == NULL || status == NULL || tmq_id_parse (&out->id, id) != TMQ_OK) {
        fail_msg ("I8: line %zu of tasks.jsonl has no id or status", number);
    }
    if (own_pos <= *pos) {
        fail_msg ("I8: line %zu of tasks.jsonl: pos %lld after %lld", number, own_pos, *pos);
    }
    *pos = own_pos;
    snprintf (out->status, sizeof out->status, "%s", status);
    snprintf (out->result, sizeof out->result, "%s", result != NULL ? result : "");
    out->attempt = json_integer_value (json_object_get (object, "attempt"));
    out->version = json_integer_value (json_object_get (object, "version"));
    out->seq = json_integer_value (json_object_get (object, "seq"));
    out->order = number;
    json_decref (object);
}

/* All lines, sorted by task and place; the caller frees them. */
static line_t *read_lines (const char *path, size_t *count)
{
    FILE *file = fopen (path, "r");
    if (file == NULL) {
        fail_msg ("I8: %s is missing", path);
    }
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    line_t *lines = NULL;
    size_t capacity = 0;
    json_int_t pos = 0;
    *count = 0;
    while ((length = getline (&text, &size, file)) > 0) {
        if (text[length - 1] != '\n') {
            fail_msg ("I8: the last line of %s is torn", path);
        }
        if (*count == capacity) {
            capacity = capacity == 0 ? 1024 : 2 * capacity;
            line_t *more = realloc (lines, capacity * sizeof *lines);
            assert_non_null (more);
            lines = more;
        }
        parse_line (&lines[*count], text, *count + 1, &pos);
        (*count)++;
    }
    free (text);
    fclose (file);
    if (*count > 0) {
        qsort (lines, *count, sizeof *lines, by_id_and_order);
    }
    return lines;
}

static const line_t *last_line (const line_t *lines, size_t count, const tmq_id_t *id)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memcmp (&lines[middle].id, id, sizeof *id) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && memcmp (&lines[low - 1].id, id, sizeof *id) == 0 ? &lines[low - 1] : NULL;
}

static void compare_line (const fact_t *fact, const line_t *line)
{
    if (line == NULL) {
        fail_msg ("I8: %s has no line in tasks.jsonl", fact->payload);
        return;
    }
    if (strcmp (line->status, tmq_status_text (fact->status)) != 0 ||
        line->attempt != fact->attempt || (uint64_t) line->version != fact->version ||
        (uint64_t) line->seq != fact->seq) {
        fail_msg ("I8: the last line of %s: %s, attempt %lld, version %lld, seq %lld; get: %s, "
                  "%u, %llu, %llu",
                  fact->payload, line->status, line->attempt, line->version, line->seq,
                  tmq_status_text (fact->status), fact->attempt, (unsigned long long) fact->version,
                  (unsigned long long) fact->seq);
    }
    if (fact->completed_by > 0 && strcmp (line->result, fact->result) != 0) {
        fail_msg ("I8: the last line of %s has another result: %s", fact->payload, line->result);
    }
}

void checker_tasks_file (const history_t *history, const char *data_directory)
{
    char path[PATH_SIZE];
    size_t count;
    snprintf (path, sizeof path, "%s/tasks.jsonl", data_directory);
    line_t *lines = read_lines (path, &count);
    for (size_t i = 0; i < history->count; i++) {
        const fact_t *fact = &history->facts[i];
        if (fact->status != TMQ_STATUS_NONE) {
            compare_line (fact, last_line (lines, count, &fact->id));
        }
    }
    free (lines);
}

void checker_files (const history_t *history, const char *data_directory)
{
    checker_databases (data_directory);
    if (audit (data_directory) != 0) {
        fail_msg ("after a clean stop the journal of %s holds batches", data_directory);
    }
    checker_tasks_file (history, data_directory);
}
