/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl adopt: a success that came too late becomes the outcome of its task. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "ids.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "verbs/verbs.h"

/* 0 or an exit code. */
static int take_attempt (const app_t *app, uint32_t *out)
{
    const char *text = app->args.operands[1];
    char *end;
    errno = 0;
    const unsigned long long number = strtoull (text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number < 1 || number > UINT32_MAX)
        return usage_error (app, "taskctl get --attempts ID shows them",
                            "'%s' is not the number of an attempt", text);
    *out = (uint32_t) number;
    return 0;
}

static int adopt_error (const app_t *app, const tmq_error_t *error, const uint8_t *request_id,
                        const char *id)
{
    char hint[96];
    char hex[2 * 16 + 1];
    if (error->code != TMQ_UNKNOWN)
        return library_error (app, error, id);
    hex_encode (hex, request_id, 16);
    snprintf (hint, sizeof hint, "run it again with --request-id %s", hex);
    return unknown_error (app, error, id, hint, "%s: no answer in time: it may be adopted", id);
}

static void put_adopted (app_t *app, const tmq_task_t *task, const char *id)
{
    items_t items;
    if (app_wants_json (app)) {
        items_begin (&items, app, true);
        items_add_task (&items, task, false);
        items_end (&items, NULL);
    } else if (app->format == FORMAT_ID) {
        puts (id);
    } else {
        show_ending (app, task);
    }
}

int run_adopt (app_t *app)
{
    const char *repeat = args_text (&app->args, OPT_REQUEST_ID);
    uint32_t attempt = 0;
    tmq_task_t *task = NULL;
    tmq_error_t error = {0};
    tmq_id_t made;
    tmq_id_t id;
    char text[37];
    int code;
    tmq_id_make (&made);
    if (repeat)
        hex_decode (made.bytes, sizeof made.bytes, repeat);
    if ((code = take_attempt (app, &attempt)) || (code = app_connect (app)) ||
        (code = app_resolve (app, &id, app->args.operands[0])))
        return code;
    tmq_id_format (&id, text);
    error.code = tmq_adopt (&task, app->client, &id, attempt, made.bytes, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return adopt_error (app, &error, made.bytes, text);
    put_adopted (app, task, text);
    tmq_task_free (task);
    return EXIT_OK;
}
