/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Commands of two words: "key new", "profile list". */
#include "verbs/verbs.h"

int run_verb (app_t *app)
{
    return verb_find (app->args.command, app->args.operands[0])->run (app);
}
