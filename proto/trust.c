/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "trust.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES_TOLD = 80 };

trust_t trust_directory (const struct stat *status, bool named)
{
    if (!named && status->st_uid != geteuid () && status->st_uid != 0)
        return TRUST_FOREIGN;
    return (status->st_mode & (S_IWGRP | S_IWOTH)) != 0 ? TRUST_WRITABLE : TRUST_GOOD;
}

/* Why a .taskmq on the way was not taken. Of a long path its end is told: the reason has to fit. */
static void ignore (char reason[TRUST_REASON_SIZE], const char *path, const struct stat *status,
                    trust_t trust)
{
    const size_t length = strlen (path);
    const char *cut = "";
    if (length > PATH_BYTES_TOLD) {
        cut = "...";
        path += length - PATH_BYTES_TOLD;
        while (((unsigned char) *path & 0xC0) == 0x80) /* the rest of a character that was cut */
            path++;
    }
    if (trust == TRUST_FOREIGN)
        snprintf (reason, TRUST_REASON_SIZE,
                  "ignored %s%.*s: it belongs to uid %ld, not to you; if you mean it say -e", cut,
                  PATH_BYTES_TOLD, path, (long) status->st_uid);
    else
        snprintf (reason, TRUST_REASON_SIZE,
                  "ignored %s%.*s: others may write in it; chmod go-w that directory", cut,
                  PATH_BYTES_TOLD, path);
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
