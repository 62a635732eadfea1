/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/attempts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/patience.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"
#include "view.h"

enum { PAGE_ATTEMPTS = 100, INDENT = 4, DETAIL_INDENT = 9 };

int attempts_load (attempts_view_t *self, const app_t *app, const tmq_id_t *id, tmq_error_t *error)
{
    uint32_t after = 0;
    *self = (attempts_view_t){0};
    do {
        tmq_attempt_list_t *page;
        patience_t patience = {0};
        int code;
        do
            code =
                tmq_attempts (&page, app->client, id, after, PAGE_ATTEMPTS, app->timeout_ms, error);
        while (patience_waits (&patience, error, app->timeout_ms));
        if (code != TMQ_OK)
            return code;
        self->pages = must_grow (self->pages, self->pages_count + 1, sizeof (void *));
        self->pages[self->pages_count++] = page;
        after = page->next;
    } while (after);
    return TMQ_OK;
}

void attempts_clear (attempts_view_t *self)
{
    for (size_t i = 0; i < self->pages_count; i++)
        tmq_attempt_list_free (self->pages[i]);
    free (self->pages);
}

void attempts_write (json_writer_t *writer, const attempts_view_t *self)
{
    json_write_array_begin (writer);
    for (size_t i = 0; i < self->pages_count; i++)
        for (size_t k = 0; k < self->pages[i]->count; k++)
            view_write_attempt (writer, &self->pages[i]->attempts[k]);
    json_write_array_end (writer);
}

/* Lines. */

static void put_time (const char *before, int64_t ms)
{
    char text[LOCAL_TIME_SIZE];
    char zone[ZONE_SIZE];
    long zone_s = 0;
    if (ms && local_time (text, zone, &zone_s, (uint64_t) ms))
        printf ("%s%s", before, text);
}

static void show_error (const app_t *app, const tmq_attempt_info_t *attempt)
{
    char code[16] = "";
    if (!attempt->error_code && !*attempt->error_message)
        return;
    if (attempt->error_code)
        snprintf (code, sizeof code, "%" PRId32 "  ", attempt->error_code);
    printf ("%*s%s%s%s", DETAIL_INDENT, "", paint_status (app, TMQ_STATUS_FAILED), code,
            paint_end (app));
    print_wrapped_text (app, attempt->error_message, DETAIL_INDENT + strlen (code), DETAIL_INDENT);
    putchar ('\n');
}

static void show_kept (const app_t *app, const tmq_attempt_info_t *attempt)
{
    char size[UNITS_TEXT_SIZE];
    if (!attempt->kept)
        return;
    printf ("%*sa late success is kept: %s", DETAIL_INDENT, "",
            attempt->kept_bytes ? size_format (size, attempt->kept_bytes) : "empty");
    if (*attempt->kept_type) {
        fputs ("  ", stdout);
        print_text (app, stdout, attempt->kept_type);
    }
    put_time (", since ", attempt->kept_at);
    put_time (", until ", attempt->kept_until);
    putchar ('\n');
}

static void show_attempt (const app_t *app, const tmq_attempt_info_t *attempt)
{
    char took[UNITS_TEXT_SIZE];
    printf ("%*s%3" PRIu32 "  %-14s  ", INDENT - 2, "", attempt->attempt,
            attempt->how ? tmq_event_kind_text (attempt->how) : "running");
    print_text (app, stdout, attempt->worker);
    put_time ("  ", attempt->started_at ? attempt->started_at : attempt->ended_at);
    if (attempt->started_at && attempt->ended_at >= attempt->started_at)
        printf ("  in %s", duration_format (took, attempt->ended_at - attempt->started_at));
    else if (!attempt->started_at && attempt->ended_at)
        fputs ("  not started", stdout);
    putchar ('\n');
    show_error (app, attempt);
    show_kept (app, attempt);
}

void attempts_show (const app_t *app, const attempts_view_t *self)
{
    bool any = false;
    printf ("  %sattempts%s\n", paint_dim (app), paint_end (app));
    for (size_t i = 0; i < self->pages_count; i++)
        for (size_t k = 0; k < self->pages[i]->count; k++) {
            show_attempt (app, &self->pages[i]->attempts[k]);
            any = true;
        }
    if (!any)
        printf ("%*snone\n", INDENT, "");
}
