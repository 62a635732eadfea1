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
#include "view.h"

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
        view_write_why (items_open (&items), why);
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
