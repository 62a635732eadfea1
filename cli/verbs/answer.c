/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl answer, inbox: the questions of workers. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "base/patience.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/listing.h"
#include "screen/output.h"
#include "screen/show.h"
#include "verbs/given.h"
#include "verbs/verbs.h"
#include "view.h"

/* What a person is asked: the text of the usual forms, else the JSON as it is. */
static char *question_text (const char *request)
{
    json_t *json = json_loads (request, JSON_DECODE_ANY, NULL);
    const json_t *params = json_object_get (json, "params");
    const char *text = json_string_value (json);
    if (!text)
        text = json_string_value (json_object_get (json, "text"));
    if (!text)
        text = json_string_value (json_object_get (params, "message"));
    char *out = must_copy (text ? text : request);
    json_decref (json);
    return out;
}

/* inbox. */

static void add_question (items_t *items, const tmq_question_t *question)
{
    view_write_question (items_open (items), question);
    items_close (items);
}

static void add_row (table_t *table, const tmq_question_t *question)
{
    char id[37];
    char age[32];
    const uint64_t now = wall_ms ();
    char *text = question_text (question->request);
    tmq_id_format (&question->task_id, id);
    table_row (table);
    table_set (table, 0, "%s", id + id_from (FULL_ID_COLUMNS));
    table_set (table, 1, "%s", question->key);
    table_set (table, 2, "%s",
               span_format (age, now > question->asked_at ? now - question->asked_at : 0));
    table_set (table, 3, "%s", question->queue);
    table_set (table, 4, "%s", text);
    free (text);
}

static void show_one (const app_t *app, items_t *items, table_t *table,
                      const tmq_question_t *question)
{
    char id[37];
    tmq_id_format (&question->task_id, id);
    if (table)
        add_row (table, question);
    else if (app->format == FORMAT_ID)
        puts (id);
    else
        add_question (items, question);
}

/* Pages until `left` questions are shown. */
static int show_pages (app_t *app, tmq_inbox_query_t *query, uint64_t left, items_t *items,
                       table_t *table)
{
    tmq_error_t error = {0};
    do {
        tmq_inbox_t *page = NULL;
        query->limit = left < TMQ_LIST_LIMIT_MAX ? (uint32_t) left : TMQ_LIST_LIMIT_MAX;
        error.code = tmq_inbox (&page, app->client, query, app->timeout_ms, &error);
        if (error.code != TMQ_OK)
            return library_error (app, &error, NULL);
        for (size_t i = 0; i < page->count; i++, left--)
            show_one (app, items, table, &page->questions[i]);
        query->after = page->next;
        tmq_inbox_free (page);
    } while (left > 0 && query->after != 0);
    if (query->after != 0)
        note_last (app, "there are more: --limit N, or --all");
    return EXIT_OK;
}

int run_inbox (app_t *app)
{
    static const column_t columns[] = {{"TASK", COLUMN_LEFT},
                                       {"KEY", COLUMN_TRUNCATE},
                                       {"AGE", COLUMN_RIGHT},
                                       {"QUEUE", COLUMN_LEFT},
                                       {"QUESTION", COLUMN_TRUNCATE}};
    const args_t *args = &app->args;
    const char *task = args_text (args, OPT_TASK);
    const char *session = args_text (args, OPT_SESSION);
    tmq_inbox_query_t query;
    tmq_id_t id;
    listing_t out;
    int code = app_connect (app);
    if (code || (task && (code = app_resolve (app, &id, task))))
        return code;
    tmq_inbox_query_init (&query);
    query.queues = args->operands;
    query.queues_count = args->operands_count;
    query.task_id = task ? &id : NULL;
    query.sessions = &session;
    query.sessions_count = session != NULL;
    listing_begin (&out, app, columns, sizeof columns / sizeof *columns);
    const uint64_t left = args_has (args, OPT_ALL)
                              ? UINT64_MAX
                              : args_number (args, OPT_LIMIT, TMQ_LIST_LIMIT_DEFAULT);
    code = show_pages (app, &query, left, &out.items, out.table);
    listing_end (&out, code ? NULL : "no open questions");
    return code;
}

void show_questions (app_t *app, const tmq_id_t *id)
{
    tmq_inbox_query_t query;
    tmq_inbox_t *page = NULL;
    tmq_inbox_query_init (&query);
    query.task_id = id;
    if (tmq_inbox (&page, app->client, &query, app->timeout_ms, NULL) != TMQ_OK)
        return;
    for (size_t i = 0; i < page->count; i++) {
        char *text = question_text (page->questions[i].request);
        print_safe (app, stdout, "  question      %s: %s", page->questions[i].key, text);
        putchar ('\n');
        free (text);
    }
    tmq_inbox_free (page);
}

void write_questions (json_writer_t *writer, const app_t *app, const tmq_task_t *task)
{
    tmq_inbox_query_t query;
    tmq_inbox_t *page = NULL;
    tmq_error_t error = {0};
    patience_t patience = {0};
    tmq_inbox_query_init (&query);
    query.task_id = &task->id;
    json_write_array_begin (writer);
    if (task->status == TMQ_STATUS_INPUT_REQUIRED)
        do
            tmq_inbox (&page, app->client, &query, app->timeout_ms, &error);
        while (patience_waits (&patience, &error, app->timeout_ms));
    for (size_t i = 0; page && i < page->count; i++)
        view_write_question (writer, &page->questions[i]);
    json_write_array_end (writer);
    tmq_inbox_free (page);
}

/* answer. */

/* The question that is meant without --ask: the only one that is open. */
static int find_key (app_t *app, const tmq_id_t *id, char **out)
{
    tmq_inbox_query_t query;
    tmq_inbox_t *page = NULL;
    tmq_error_t error = {0};
    int code = 0;
    tmq_inbox_query_init (&query);
    query.task_id = id;
    error.code = tmq_inbox (&page, app->client, &query, app->timeout_ms, &error);
    *out = NULL;
    if (error.code != TMQ_OK) /* who may answer and not read names the key */
        return error.code == TMQ_DENIED ? 0 : library_error (app, &error, NULL);
    if (page->count == 1)
        *out = must_copy (page->questions[0].key);
    else if (page->count > 1)
        code = usage_error (app, "--ask KEY; taskctl inbox --task ID lists them",
                            "the task has %zu open questions", page->count);
    tmq_inbox_free (page);
    return code;
}

static int put_answered (const app_t *app, const char *id, const char *key,
                         const tmq_answered_t *answered)
{
    if (answered->code != TMQ_OK)
        return id_error (app, answered->code, id, NULL, "%s: question %s: %s", id, key,
                         answered->text);
    if (app_wants_json (app)) {
        items_t items;
        items_begin (&items, app, true);
        json_writer_t *writer = items_open (&items);
        json_write_object_begin (writer);
        json_write_key (writer, "task_id");
        json_write_text (writer, id);
        json_write_key (writer, "key");
        json_write_text (writer, key);
        json_write_object_end (writer);
        items_close (&items);
        items_end (&items, NULL);
    } else if (app->format == FORMAT_ID) {
        puts (id);
    } else {
        note (app, "%s: %s is answered", id, key);
    }
    return EXIT_OK;
}

static bool is_json (const given_t *given)
{
    return json_text_is_valid (given->bytes, given->length);
}

static int answer (app_t *app, const given_t *given)
{
    char id[37];
    tmq_id_t task;
    char *found = NULL;
    tmq_error_t error = {0};
    tmq_answered_t answered = {0};
    const char *key = args_text (&app->args, OPT_ASK);
    int code = app_connect (app);
    if (code || (code = app_resolve (app, &task, app->args.operands[0])) ||
        (!key && (code = find_key (app, &task, &found))))
        return code;
    tmq_id_format (&task, id);
    const tmq_answer_t in = {.key = key ? key : found,
                             .answer = given->bytes,
                             .answer_bytes = given->length,
                             .is_text = args_has (&app->args, OPT_TEXT) || !is_json (given)};
    error.code = tmq_answer (&answered, app->client, &task, &in, 1, app->timeout_ms, &error);
    if (error.code == TMQ_UNKNOWN)
        code = unknown_error (app, &error, id, "run it again: the same answer does no harm",
                              "%s: no answer in time: the question may be answered", id);
    else if (error.code != TMQ_OK)
        code = library_error (app, &error, id);
    else
        code = put_answered (app, id, in.key ? in.key : "input", &answered);
    free (found);
    return code;
}

int run_answer (app_t *app)
{
    given_t given;
    int code = given_read (&given, app, 1, TMQ_ANSWER_BYTES_MAX, "the answer");
    if (!code && !given.given)
        code = usage_error (app, "--data STR, --file FILE, or - for standard input",
                            "answer needs an answer");
    if (!code && given.length == 0)
        code = usage_error (app, "--data '\"\"' answers with an empty text", "the answer is empty");
    if (!code)
        code = answer (app, &given);
    given_clear (&given);
    return code;
}
