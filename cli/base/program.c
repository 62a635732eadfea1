/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static bool is_program (const char *path)
{
    struct stat status;
    if (stat (path, &status) != 0)
        return false;
    if (!S_ISREG (status.st_mode)) {
        errno = EACCES;
        return false;
    }
    return access (path, X_OK) == 0;
}

char *program_find (const char *name)
{
    const char *path = getenv ("PATH");
    int reason = ENOENT;
    if (strchr (name, '/'))
        return is_program (name) ? must_copy (name) : NULL;
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*name) {
        const size_t length = strcspn (path, ":");
        char *candidate = must_alloc (length + strlen (name) + 3);
        sprintf (candidate, "%.*s/%s", (int) (length ? length : 1), length ? path : ".", name);
        if (is_program (candidate))
            return candidate;
        reason = errno == EACCES ? EACCES : reason;
        free (candidate);
        if (!path[length])
            break;
        path += length + 1;
    }
    errno = reason;
    return NULL;
}
