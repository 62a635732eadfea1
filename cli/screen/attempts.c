/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/attempts.h"

#include <inttypes.h>
#include <sodium.h>
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

const tmq_attempt_info_t *attempts_next (const attempts_view_t *self, attempts_place_t *place)
{
    while (place->page < self->pages_count && place->at == self->pages[place->page]->count)
        *place = (attempts_place_t){place->page + 1, 0};
    return place->page < self->pages_count ? &self->pages[place->page]->attempts[place->at++]
                                           : NULL;
}

/* What is gone meanwhile is not there. */
int attempts_load_kept (attempts_view_t *self, const app_t *app, const tmq_id_t *id,
                        tmq_error_t *error)
{
    const tmq_attempt_info_t *attempt;
    attempts_place_t place = {0};
    int code = TMQ_OK;
    while (code == TMQ_OK && (attempt = attempts_next (self, &place))) {
        if (!attempt->kept)
            continue;
        self->kept = must_grow (self->kept, self->kept_count + 1, sizeof *self->kept);
        shown_body_t *body = &self->kept[self->kept_count++];
        *body = (shown_body_t){BYTES_INIT, false};
        if (attempt->kept_bytes <= TMQ_FRAME_BYTES_MAX)
            code = shown_body_kept (body, app, id, attempt, error);
        if (code == TMQ_NO_BLOB)
            code = TMQ_OK;
    }
    return code;
}

void attempts_clear (attempts_view_t *self)
{
    shown_bodies_free (self->kept, self->kept_count);
    for (size_t i = 0; i < self->pages_count; i++)
        tmq_attempt_list_free (self->pages[i]);
    free (self->pages);
}

/* JSON. */

/* What an export has beside what is known of a late success: the hash of one that is larger than a
 * frame, the bytes of others. */
static void write_beside (json_writer_t *writer, const tmq_attempt_info_t *attempt,
                          const void *context)
{
    char hex[2 * TMQ_BLOB_HASH_BYTES + 1];
    if (attempt->kept_blob.bytes > 0) {
        sodium_bin2hex (hex, sizeof hex, attempt->kept_blob.hash, TMQ_BLOB_HASH_BYTES);
        json_write_key (writer, "hash");
        json_write_text (writer, hex);
    }
    shown_body_write (writer, context);
}

void attempts_write (json_writer_t *writer, const attempts_view_t *self)
{
    const tmq_attempt_info_t *attempt;
    attempts_place_t place = {0};
    size_t kept = 0;
    json_write_array_begin (writer);
    while ((attempt = attempts_next (self, &place))) {
        const shown_body_t *body = attempt->kept && self->kept ? &self->kept[kept++] : NULL;
        view_write_attempt (writer, attempt, body ? write_beside : NULL, body);
    }
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
    const tmq_attempt_info_t *attempt;
    attempts_place_t place = {0};
    bool any = false;
    printf ("  %sattempts%s\n", paint_dim (app), paint_end (app));
    while ((attempt = attempts_next (self, &place))) {
        show_attempt (app, attempt);
        any = true;
    }
    if (!any)
        printf ("%*snone\n", INDENT, "");
}
