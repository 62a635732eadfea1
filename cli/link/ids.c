/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/memory.h"
#include "base/patience.h"
#include "link/connect.h"
#include "link/input.h"
#include "screen/output.h"

/* Of ids on standard input: about 1,800,000 of them. */
enum { STDIN_BYTES_MAX = 64 * 1024 * 1024 };

static bool looks_like_id (const char *text)
{
    tmq_id_t id;
    size_t digits = 0;
    if (tmq_id_parse (&id, text) == TMQ_OK)
        return true;
    if (strspn (text, "0123456789abcdefABCDEF-") != strlen (text))
        return false;
    for (; *text; text++)
        digits += *text != '-';
    return digits >= TMQ_SUFFIX_LENGTH_MIN && digits <= 32;
}

/* Takes the ids of standard input for the operand "-", which may be given once. */
static int read_stdin (app_t *app)
{
    args_t *args = &app->args;
    char *text;
    size_t bytes;
    size_t i = 0;
    while (i < args->operands_count && strcmp (args->operands[i], "-") != 0)
        i++;
    if (i == args->operands_count)
        return 0;
    const int code = read_all (app, &text, &bytes, "-", STDIN_BYTES_MAX);
    if (code)
        return code;
    args_expand (args, i, text);
    const int most = args->command->operands_max;
    if (args->operands_count == 0)
        return usage_error (app, NULL, "standard input names no ids");
    if (most >= 0 && args->operands_count > (size_t) most)
        return usage_error (app, NULL, "%s takes no further argument '%s'", args->command->name,
                            args->operands[most]);
    return 0;
}

/* Who meant a queue is told how to say so. */
static int no_id (const app_t *app, const char *text)
{
    static const char by_id[] = "a full id, or its ending of at least 6 characters";
    const option_spec_t *option = app->args.command->options;
    char hint[TMQ_NAME_LENGTH_MAX + 96];
    while (option->id != OPT_END && option->id != OPT_QUEUE)
        option++;
    if (option->id == OPT_END || strlen (text) > TMQ_NAME_LENGTH_MAX || strpbrk (text, " /"))
        return usage_error (app, by_id, "'%s' is not an id", text);
    snprintf (hint, sizeof hint, "%s; the tasks of a queue: --queue %s", by_id, text);
    return usage_error (app, hint, "'%s' is not an id", text);
}

bool app_operands_are_ids (app_t *app, int *code)
{
    if ((*code = read_stdin (app)))
        return false;
    for (size_t i = 0; i < app->args.operands_count; i++) {
        if (!looks_like_id (app->args.operands[i])) {
            *code = no_id (app, app->args.operands[i]);
            return false;
        }
    }
    return true;
}

int app_resolve (app_t *app, tmq_id_t *out, const char *text)
{
    tmq_error_t error = {0};
    if (tmq_id_parse (out, text) == TMQ_OK)
        return 0;
    patience_t patience = {0};
    int code;
    do
        code = tmq_resolve (out, app->client, text, app->timeout_ms, &error);
    while (patience_waits (&patience, &error, app->timeout_ms));
    return code == TMQ_OK ? 0 : library_error (app, &error, text);
}

void app_resolve_operands (app_t *app, tmq_id_t **out, size_t *count, tally_t *tally)
{
    *out = must_alloc (app->args.operands_count * sizeof **out);
    *count = 0;
    for (size_t i = 0; i < app->args.operands_count; i++) {
        const int code = app_resolve (app, &(*out)[*count], app->args.operands[i]);
        if (code)
            tally_add (tally, code);
        else
            (*count)++;
    }
}

/* "ID" or "ID:POLICY". */
static int resolve_value (app_t *app, size_t i)
{
    const char *given = app->args.values[i].text;
    const char *colon = strchr (given, ':');
    char *text = must_copy (given);
    char whole[80];
    tmq_id_t id;
    int code = 0;
    text[strcspn (text, ":")] = '\0';
    if (looks_like_id (text) && tmq_id_parse (&id, text) != TMQ_OK && !(code = app_connect (app)) &&
        !(code = app_resolve (app, &id, text))) {
        tmq_id_format (&id, whole);
        snprintf (whole + strlen (whole), sizeof whole - strlen (whole), "%s", colon ? colon : "");
        args_replace (&app->args, i, must_copy (whole));
    }
    free (text);
    return code;
}

int app_resolve_options (app_t *app)
{
    int code = 0;
    for (size_t i = 0; !code && i < app->args.values_count; i++) {
        const option_spec_t *spec = app->args.values[i].spec;
        if (spec->kind == KIND_TEXT && (spec->id == OPT_AFTER || spec->id == OPT_PARENT))
            code = resolve_value (app, i);
    }
    return code;
}
