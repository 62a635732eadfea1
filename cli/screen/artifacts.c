/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/artifacts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"

static void write_artifact (json_writer_t *writer, const tmq_artifact_info_t *artifact,
                            const shown_body_t *body)
{
    const artifact_view_t view = {.name = artifact->name,
                                  .type = artifact->type,
                                  .bytes = artifact->bytes,
                                  .hash = artifact->has_hash ? artifact->hash : NULL,
                                  .attempt = artifact->attempt,
                                  .attached_at = (int64_t) artifact->attached_at};
    json_write_object_begin (writer);
    json_write_artifact_members (writer, &view);
    shown_body_write (writer, body);
    json_write_object_end (writer);
}

void artifact_write (json_writer_t *writer, const tmq_artifact_info_t *artifact)
{
    write_artifact (writer, artifact, NULL);
}

void artifacts_write (json_writer_t *writer, const tmq_artifact_list_t *list,
                      const shown_body_t *bodies)
{
    json_write_array_begin (writer);
    for (size_t i = 0; i < list->count; i++)
        write_artifact (writer, &list->artifacts[i], bodies ? &bodies[i] : NULL);
    json_write_array_end (writer);
}

void artifacts_table (const app_t *app, const tmq_artifact_list_t *list)
{
    static const column_t columns[] = {{"NAME", COLUMN_TRUNCATE},
                                       {"BYTES", COLUMN_RIGHT},
                                       {"TYPE", COLUMN_LEFT},
                                       {"ATTEMPT", COLUMN_RIGHT},
                                       {"ATTACHED", COLUMN_LEFT}};
    char ago[UNITS_TEXT_SIZE];
    const int64_t now_ms = (int64_t) wall_ms ();
    if (app->format == FORMAT_ID) {
        for (size_t i = 0; i < list->count; i++) {
            print_text (app, stdout, list->artifacts[i].name);
            putchar ('\n');
        }
        return;
    }
    table_t *table = table_new (app, columns, sizeof columns / sizeof *columns, true);
    for (size_t i = 0; i < list->count; i++) {
        const tmq_artifact_info_t *artifact = &list->artifacts[i];
        table_row (table);
        table_set (table, 0, "%s", artifact->name);
        table_set (table, 1, "%" PRIu64, artifact->bytes);
        table_set (table, 2, "%s", artifact->type);
        table_set (table, 3, "%" PRIu32, artifact->attempt);
        table_set (table, 4, "%s",
                   time_format_relative (ago, (int64_t) artifact->attached_at, now_ms));
    }
    table_end (table);
}

static size_t width_of (const char *text)
{
    return columns_of (text, strlen (text));
}

/* Names and sizes stand in columns. */
void artifacts_show (const app_t *app, const tmq_artifact_list_t *list)
{
    enum { INDENT = 4, GAP = 2 };
    char size[UNITS_TEXT_SIZE];
    size_t names = 0;
    size_t sizes = 0;
    for (size_t i = 0; i < list->count; i++) {
        char *name = safe_text (app, list->artifacts[i].name);
        const size_t bytes = width_of (size_format (size, list->artifacts[i].bytes));
        names = width_of (name) > names ? width_of (name) : names;
        sizes = bytes > sizes ? bytes : sizes;
        free (name);
    }
    printf ("  %sartifacts%s\n", paint_dim (app), paint_end (app));
    for (size_t i = 0; i < list->count; i++) {
        const tmq_artifact_info_t *artifact = &list->artifacts[i];
        char *name = safe_text (app, artifact->name);
        printf ("%*s%s%*s", INDENT, "", name, (int) (names - width_of (name) + GAP), "");
        printf ("%s%*s  ", paint_dim (app), (int) sizes, size_format (size, artifact->bytes));
        print_text (app, stdout, artifact->type);
        printf ("  attempt %" PRIu32 "%s\n", artifact->attempt, paint_end (app));
        free (name);
    }
}
