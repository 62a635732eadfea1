/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl why: what holds a task, in one sentence and its facts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "units.h"
#include "verbs/verbs.h"

static void write_fact (json_writer_t *writer, const tmq_fact_t *fact)
{
    json_write_foreign_key (writer, fact->name);
    if (fact->kind == TMQ_FACT_TEXT)
        json_write_text (writer, fact->text);
    else if (fact->kind == TMQ_FACT_TIME)
        json_write_time (writer, (int64_t) fact->number);
    else
        json_write_int (writer, (int64_t) fact->number);
}

static void write_why (json_writer_t *writer, const tmq_explanation_t *why)
{
    char id[37];
    tmq_id_format (&why->id, id);
    json_write_object_begin (writer);
    json_write_key (writer, "task_id");
    json_write_text (writer, id);
    json_write_key (writer, "status");
    json_write_text (writer, tmq_status_text (why->status));
    json_write_key (writer, "phase");
    json_write_text (writer, phase_name (why->phase));
    json_write_key (writer, "reason");
    json_write_text (writer, why->reason);
    json_write_key (writer, "sentence");
    json_write_text (writer, why->sentence);
    json_write_key (writer, "facts");
    json_write_object_begin (writer);
    for (size_t i = 0; i < why->facts_count; i++)
        write_fact (writer, &why->facts[i]);
    json_write_object_end (writer);
    json_write_key (writer, "waits_for");
    json_write_array_begin (writer);
    for (size_t i = 0; i < why->after_count; i++) {
        tmq_id_format (&why->after[i].id, id);
        json_write_text (writer, id);
    }
    json_write_array_end (writer);
    json_write_object_end (writer);
}

static void show_fact (const app_t *app, const tmq_fact_t *fact)
{
    enum { TEXT_COLUMN = 18 };
    char text[UNITS_TEXT_SIZE];
    char moment[MOMENT_SIZE];
    print_text (app, stdout, fact->name);
    printf ("%*s", fact->name[0] ? (int) (16 - strlen (fact->name) % 16) : 16, "");
    switch (fact->kind) {
    case TMQ_FACT_TEXT: print_wrapped_text (app, fact->text, TEXT_COLUMN, TEXT_COLUMN); break;
    case TMQ_FACT_TIME:
        if (*moment_text (moment, fact->number))
            printf ("%s  (%s)", moment,
                    time_format_relative (text, (int64_t) fact->number, (int64_t) wall_ms ()));
        break;
    case TMQ_FACT_DURATION: fputs (duration_format (text, (int64_t) fact->number), stdout); break;
    default: printf ("%" PRId64, (int64_t) fact->number); break;
    }
    fputc ('\n', stdout);
}

static void show_why (const app_t *app, const tmq_explanation_t *why)
{
    char id[37];
    print_wrapped_text (app, why->sentence, 0, 0);
    fputc ('\n', stdout);
    for (size_t i = 0; i < why->facts_count; i++) {
        fputs ("  ", stdout);
        show_fact (app, &why->facts[i]);
    }
    for (size_t i = 0; i < why->after_count; i++) {
        tmq_id_format (&why->after[i].id, id);
        printf ("  %-16s%s\n", i == 0 ? "tasks" : "", id);
    }
}

static int why_one (app_t *app, const tmq_id_t *id)
{
    tmq_explanation_t *why = NULL;
    tmq_error_t error = {0};
    char text[37];
    items_t items;
    tmq_id_format (id, text);
    error.code = tmq_why (&why, app->client, id, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    if (app_wants_json (app)) {
        items_begin (&items, app, true);
        write_why (items_open (&items), why);
        items_close (&items);
        items_end (&items, NULL);
    } else if (app->format == FORMAT_ID) {
        puts (text);
    } else {
        show_why (app, why);
    }
    tmq_explanation_free (why);
    return EXIT_OK;
}

int run_why (app_t *app)
{
    tally_t tally = {0};
    tmq_id_t *ids;
    size_t count;
    int code;
    if (app->args.operands_count == 0)
        return usage_error (app, "taskctl help why", "why needs the id of a task");
    if (!app_operands_are_ids (app, &code) || (code = app_connect (app)))
        return code;
    app_resolve_operands (app, &ids, &count, &tally);
    if (count > 0)
        tally_add (&tally, why_one (app, &ids[0]));
    free (ids);
    return tally_exit (&tally);
}
