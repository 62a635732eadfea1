/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl submit: one task. */
#include "verbs/submit.h"

#include <string.h>

#include "base/exit.h"
#include "ids.h"
#include "link/connect.h"
#include "link/ids.h"
#include "link/input.h"
#include "screen/items.h"
#include "screen/output.h"
#include "verbs/receipt.h"
#include "verbs/spec.h"
#include "verbs/verbs.h"
#include "verbs/wait.h"

/* What the library says of the file that it reads begins so; it does not know its name. */
static const char THE_FILE[] = "the file ";

static bool has_request_id (const tmq_submit_t *submit)
{
    static const uint8_t none[sizeof submit->request_id];
    return memcmp (submit->request_id, none, sizeof none) != 0;
}

/* One number repeats a submit: where the user gave no id, the request id is the task's id. So a
 * repeat by --request-id alone names the same task, and cannot make a second one. */
static void settle_ids (tmq_submit_t *submit, const app_t *app)
{
    const char *repeat = args_text (&app->args, OPT_REQUEST_ID);
    const bool has_id = !id_is_zero (&submit->id);
    tmq_id_t id;
    if (repeat)
        hex_decode (submit->request_id, sizeof submit->request_id, repeat);
    if (has_id)
        return;
    memcpy (id.bytes, submit->request_id, sizeof id.bytes);
    if (!repeat || !id_is_v7 (&id))
        tmq_id_make (&id);
    submit->id = id;
    if (!repeat)
        memcpy (submit->request_id, id.bytes, sizeof submit->request_id);
}

/* Of a payload in a file. */
static bool is_about_upload (const tmq_error_t *error)
{
    return exit_of_code (error->code) == EXIT_UNREACHABLE ||
           strncmp (error->text, THE_FILE, strlen (THE_FILE)) == 0;
}

static int upload_error (const app_t *app, const tmq_error_t *error)
{
    const char *file = args_text (&app->args, OPT_FILE);
    const char *name = file && strcmp (file, "-") != 0 ? file : "standard input";
    if (exit_of_code (error->code) == EXIT_UNREACHABLE)
        return code_error (app, error->code,
                           "within an hour the same command goes on where the upload ended",
                           "the upload of %s was cut off: %s", name, error->text);
    return code_error (
        app, error->code,
        error->code == TMQ_CONFLICT ? "submit it when nobody writes to it, or submit a copy" : NULL,
        "%s: %s", name, error->text);
}

static int submit_error (const app_t *app, const spec_t *spec, const tmq_error_t *error)
{
    char id[37];
    char hint[160];
    const tmq_submit_t *submit = &spec->submit;
    if (spec->file >= 0 && is_about_upload (error))
        return upload_error (app, error);
    if (error->code != TMQ_UNKNOWN)
        return library_error (app, error, submit->queue);
    tmq_id_format (&submit->id, id);
    if (!has_request_id (submit)) {
        snprintf (hint, sizeof hint, "run it again with --id %s: that cannot make a second task",
                  id);
    } else {
        char hex[2 * sizeof submit->request_id + 1];
        hex_encode (hex, submit->request_id, sizeof submit->request_id);
        snprintf (hint, sizeof hint,
                  "run it again with --request-id %s: that cannot make a second task", hex);
    }
    return unknown_error (app, error, id, hint,
                          "no answer in time: task %s may have been submitted", id);
}

static void print_receipt (const app_t *app, const tmq_submit_t *submit,
                           const tmq_receipt_t *receipt)
{
    char id[37];
    items_t items;
    tmq_id_format (&receipt->id, id);
    if (receipt->existing)
        note (app, "%s exists already, it is %s", id, tmq_status_text (receipt->status));
    if (!app_wants_json (app)) {
        puts (id);
        return;
    }
    items_begin (&items, app, true);
    write_receipt (items_open (&items), receipt, submit->queue);
    items_close (&items);
    items_end (&items, NULL);
}

static int dry_run (const app_t *app, const spec_t *spec)
{
    items_t items;
    if (app->format != FORMAT_JSON && app->format != FORMAT_JSONL)
        note (app, spec->file < 0 ? "nothing was submitted; as a line of --batch it would be:"
                                  : "nothing was submitted; the broker takes a payload of this "
                                    "length, which is too long to be shown:");
    items_begin (&items, app, true);
    spec_write (items_open (&items), spec);
    items_close (&items);
    items_end (&items, NULL);
    return EXIT_OK;
}

/* Somebody gives a payload on stdin, and nothing said that it is one. In a loop over lines stdin
 * belongs to the loop: there a payload option is given. */
static void tell_unread_input (const app_t *app)
{
    const args_t *args = &app->args;
    if (args->operands_count < 2 && !args_has (args, OPT_DATA) && !args_has (args, OPT_FILE) &&
        input_is_there ())
        note (app, "taskctl: the payload is empty: standard input is read by 'submit %s -' only",
              args->operands[0]);
}

static int submit_one (app_t *app, spec_t *spec)
{
    tmq_receipt_t receipt;
    tmq_error_t error = {0};
    int code = app_connect (app);
    if (code)
        return code;
    settle_ids (&spec->submit, app);
    error.code = spec->file < 0
                     ? tmq_submit (&receipt, app->client, &spec->submit, app->timeout_ms, &error)
                     : tmq_submit_file (&receipt, app->client, &spec->submit, spec->file,
                                        app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return submit_error (app, spec, &error);
    tell_unread_input (app);
    if (!args_has (&app->args, OPT_WAIT)) {
        print_receipt (app, &spec->submit, &receipt);
        return EXIT_OK;
    }
    char id[37];
    tmq_id_format (&receipt.id, id);
    note (app, "%s", id);
    return wait_for_result (app, &receipt.id, NULL);
}

int run_submit (app_t *app)
{
    const args_t *args = &app->args;
    spec_t spec;
    if (args_has (args, OPT_FOR) && !args_has (args, OPT_WAIT))
        return usage_error (app, NULL, "--for goes with --wait");
    if (args_has (args, OPT_BATCH) || args_has (args, OPT_LINES))
        return run_submit_batch (app);
    app->tells_link = args_has (args, OPT_WAIT);
    int code = app_resolve_options (app);
    if (code)
        return code;
    spec_init (&spec, args->command->options);
    spec.takes_files = true;
    code = spec_from_args (&spec, app, 0);
    if (!code)
        code = args_has (args, OPT_DRY_RUN) ? dry_run (app, &spec) : submit_one (app, &spec);
    spec_clear (&spec);
    return code;
}
