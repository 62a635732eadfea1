/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "trust.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

trust_t trust_directory (const struct stat *status, bool named)
{
    if (!named && status->st_uid != geteuid () && status->st_uid != 0)
        return TRUST_FOREIGN;
    return (status->st_mode & (S_IWGRP | S_IWOTH)) != 0 ? TRUST_WRITABLE : TRUST_GOOD;
}

/* Why a .taskmq on the way was not taken. */
static void ignore (char reason[TRUST_REASON_SIZE], const char *path, const struct stat *status,
                    trust_t trust)
{
    if (trust == TRUST_FOREIGN)
        snprintf (reason, TRUST_REASON_SIZE,
                  "ignored %s: it belongs to uid %ld, not to you; if you mean it say -e", path,
                  (long) status->st_uid);
    else
        snprintf (reason, TRUST_REASON_SIZE, "ignored %s: others may write in it; chmod go-w %s",
                  path, path);
}

char *trust_nearest (char ignored[TRUST_REASON_SIZE])
{
    static const char name[] = "/.taskmq";
    struct stat status;
    char here[PATH_MAX + sizeof name];
    ignored[0] = '\0';
    if (getcwd (here, PATH_MAX) == NULL)
        return NULL;
    for (size_t length = strcmp (here, "/") == 0 ? 0 : strlen (here);;) {
        memcpy (here + length, name, sizeof name);
        if (stat (here, &status) == 0 && S_ISDIR (status.st_mode)) {
            const trust_t trust = trust_directory (&status, false);
            if (trust == TRUST_GOOD)
                return strdup (here);
            if (ignored[0] == '\0')
                ignore (ignored, here, &status, trust);
        }
        if (length == 0)
            return NULL;
        do
            length--;
        while (here[length] != '/');
    }
}
