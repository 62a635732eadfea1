/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/destination.h"

#include <string.h>

#include "screen/output.h"

int destination_take (app_t *app, const char **path)
{
    static const option_spec_t spec = {.name = "output", .kind = KIND_FORMAT};
    const char *text = args_text (&app->args, OPT_OUT_FILE);
    uint64_t format;
    char why[160];
    *path = NULL;
    if (!text || strcmp (text, "-") == 0)
        return 0;
    if (!*text)
        return usage_error (app, NULL, "-o needs the name of a file");
    if (!value_parse (&format, &spec, text, why, sizeof why)) {
        *path = text;
        return 0;
    }
    app->format = (format_t) format;
    if (app->format == FORMAT_ID)
        return usage_error (app, "a file of that name is ./id",
                            "%s prints no ids: -o id means nothing here", app->args.command->name);
    return 0;
}
