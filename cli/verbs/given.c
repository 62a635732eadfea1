/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/given.h"

#include <stdlib.h>
#include <string.h>

#include "link/input.h"
#include "screen/output.h"

/* Where the bytes are, by the options; *path is NULL unless a file has them. 0 or an exit code. */
static int find_given (given_t *out, const char **path, const app_t *app, size_t operand,
                       size_t bytes_max, const char *what)
{
    const args_t *args = &app->args;
    const char *data = args_text (args, OPT_DATA);
    const char *file = args_text (args, OPT_FILE);
    const bool from_stdin = args->operands_count > operand;
    *out = (given_t){.bytes = ""};
    *path = NULL;
    if (from_stdin && strcmp (args->operands[operand], "-") != 0)
        return usage_error (app, "--data STR, --file FILE, or - for standard input",
                            "%s takes no argument '%.80s' here", args->command->name,
                            args->operands[operand]);
    if ((data != NULL) + (file != NULL) + from_stdin > 1)
        return usage_error (app, NULL, "only one of --data, --file and - can be %s", what);
    out->given = data || file || from_stdin;
    if (data) {
        out->bytes = data;
        out->length = strlen (data);
        if (out->length > bytes_max)
            return code_error (app, TMQ_TOO_LARGE, NULL, "%s has more than %zu bytes", what,
                               bytes_max);
        return 0;
    }
    if (out->given)
        *path = file ? file : "-";
    return 0;
}

int given_read (given_t *out, const app_t *app, size_t operand, size_t bytes_max, const char *what)
{
    const char *path;
    int code = find_given (out, &path, app, operand, bytes_max, what);
    if (code || !path)
        return code;
    code = read_all (app, &out->owned, &out->length, path, bytes_max);
    if (!code)
        out->bytes = out->owned;
    return code;
}

int given_read_large (given_t *out, int *file, app_t *app, size_t operand, size_t bytes_max,
                      const char *what)
{
    const char *path;
    *file = -1;
    int code = find_given (out, &path, app, operand, bytes_max, what);
    if (code || !path)
        return code;
    code = read_large (app, &out->owned, &out->length, file, path, bytes_max);
    out->given = !code && *file < 0;
    if (out->given)
        out->bytes = out->owned;
    return code;
}

void given_clear (given_t *self)
{
    free (self->owned);
    *self = (given_t){0};
}
