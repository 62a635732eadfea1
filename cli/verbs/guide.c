/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl help. */
#include <stdio.h>

#include "base/exit.h"
#include "screen/output.h"
#include "verbs/verbs.h"

int run_help (app_t *app)
{
    const grammar_t *grammar = app->args.grammar;
    const char *name = app->args.operands_count ? app->args.operands[0] : NULL;
    const command_t *command = name ? command_find (grammar, name) : NULL;
    if (name && !command) {
        const char *nearest = command_nearest (grammar, name);
        char hint[80];
        snprintf (hint, sizeof hint, "did you mean '%s'?", nearest ? nearest : "");
        return usage_error (app, nearest ? hint : "taskctl help", "unknown command '%s'", name);
    }
    if (app->args.operands_count > 1 && !verb_find (command, app->args.operands[1]))
        return usage_error (app, NULL, "%s has no command '%s'", name, app->args.operands[1]);
    help_print (grammar, command);
    return EXIT_OK;
}
