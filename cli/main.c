/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl: the command line of taskmq. Reads the command line, settles what is global, and runs one
 * command of the table. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "commands.h"
#include "ids.h"
#include "link/connect.h"
#include "screen/fields.h"
#include "screen/output.h"
#include "screen/pager.h"
#include "units.h"
#include "verbs/verbs.h"

/* NO_COLOR wins over CLICOLOR_FORCE, and --color over both. */
static bool wants_color (const args_t *args)
{
    const char *no = getenv ("NO_COLOR");
    const char *force = getenv ("CLICOLOR_FORCE");
    const char *terminal = getenv ("TERM");
    const uint64_t when = args_number (args, OPT_COLOR, COLOR_AUTO);
    if (when != COLOR_AUTO)
        return when == COLOR_ALWAYS;
    if (no && *no)
        return false;
    if (force && *force && strcmp (force, "0") != 0)
        return true;
    return isatty (STDOUT_FILENO) && terminal && strcmp (terminal, "dumb") != 0;
}

static int settle_timeout (app_t *app)
{
    const char *text = getenv ("TASKMQ_TIMEOUT");
    int64_t ms = TMQ_REQUEST_DEADLINE_MS_DEFAULT;
    app->timeout_ms = TMQ_REQUEST_DEADLINE_MS_DEFAULT;
    if (!args_has (&app->args, OPT_TIMEOUT) && text && *text &&
        (!duration_parse (&ms, text, NULL) || ms == 0 || ms >= UINT32_MAX))
        return usage_error (app, "a duration with its unit, such as 500ms or 5s",
                            "TASKMQ_TIMEOUT is '%s'", text);
    app->timeout_is_given = args_has (&app->args, OPT_TIMEOUT) || (text && *text);
    app->timeout_ms = (uint32_t) args_number (&app->args, OPT_TIMEOUT, (uint64_t) ms);
    return 0;
}

static int settle_namespace (app_t *app)
{
    const char *environment = getenv ("TASKMQ_NAMESPACE");
    app->ns = args_text (&app->args, OPT_NAMESPACE);
    if (!app->ns && environment && *environment)
        app->ns = environment;
    if (app->ns && !name_is_valid (app->ns))
        return usage_error (app, NULL, "TASKMQ_NAMESPACE '%.80s' is not a name", app->ns);
    return 0;
}

static int settle_output (app_t *app)
{
    static const option_spec_t spec = {.name = "output", .kind = KIND_FORMAT};
    const char *text = getenv ("TASKMQ_OUTPUT");
    char why[160];
    uint64_t format = FORMAT_TABLE;
    if (!args_has (&app->args, OPT_OUTPUT) && text && *text &&
        !value_parse (&format, &spec, text, why, sizeof why))
        return usage_error (app, NULL, "TASKMQ_OUTPUT '%.80s' %s", text, why);
    app->format = (format_t) args_number (&app->args, OPT_OUTPUT, format);
    return 0;
}

static int settle (app_t *app)
{
    const args_t *args = &app->args;
    app->quiet = args_has (args, OPT_QUIET);
    app->verbose = args_has (args, OPT_VERBOSE);
    app->color = wants_color (args);
    app->utf8 = strcmp (nl_langinfo (CODESET), "UTF-8") == 0;
    app->profile = args_text (args, OPT_PROFILE);
    int code = settle_output (app);
    if (!code)
        code = settle_namespace (app);
    return code ? code : settle_timeout (app);
}

static int run (app_t *app, pid_t *pager)
{
    const args_t *args = &app->args;
    if (args_has (args, OPT_VERSION)) {
        printf ("taskctl %d.%d.%d\n", TMQ_VERSION_MAJOR, TMQ_VERSION_MINOR, TMQ_VERSION_PATCH);
        return EXIT_OK;
    }
    if (args_has (args, OPT_HELP)) {
        help_print (args->grammar, args->command);
        return EXIT_OK;
    }
    if (args->problem.text[0])
        return usage_error (app, args->problem.hint, "%s", args->problem.text);
    if (!args->command) {
        help_print (args->grammar, NULL);
        return EXIT_USAGE;
    }
    if (app->format == FORMAT_ID && args->command->no_ids && args_has (args, OPT_OUTPUT))
        return usage_error (app, NULL, "%s prints no ids: -o id means nothing here",
                            args->command->name);
    if (args_has (args, OPT_REQUEST_ID) && !args->command->repeats)
        return usage_error (app, "run the same command again: repeating it does no harm",
                            "%s takes no --request-id", args->command->name);
    const int code = fields_check (app);
    if (!code && args->command->pages)
        *pager = pager_start (app);
    return code ? code : args->command->run (app);
}

/* Data that did not reach its reader is a failure, also when only the last flush tells. */
static int close_output (const app_t *app, int exit_code)
{
    if (!fflush (stdout) && !ferror (stdout))
        return exit_code;
    const int code = code_error (app, TMQ_SYSTEM, NULL, "cannot write the output");
    return exit_code == EXIT_OK ? code : exit_code;
}

int main (int argc, char **argv)
{
    app_t app = {0};
    pid_t pager = 0;
    setlocale (LC_ALL, "");
    args_parse (&app.args, &grammar, argc, argv);
    int exit_code = settle (&app);
    if (!exit_code)
        exit_code = run (&app, &pager);
    app_disconnect (&app);
    exit_code = close_output (&app, exit_code);
    args_clear (&app.args);
    pager_end (pager);
    char *rest = app.last_note;
    for (char *line; !app.quiet && (line = strsep (&rest, "\n")) != NULL && *line;) {
        print_safe (&app, stderr, "%s", line);
        fputc ('\n', stderr);
    }
    return exit_code;
}
