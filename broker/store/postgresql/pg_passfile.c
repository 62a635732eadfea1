/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_passfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_SHOWN_MAX = 120,
    FAULT_SIZE = 96,
    OTHERS = 077 /* rights that nobody but its owner may have */
};

/* DEFAULT_PGSOCKET_DIR of Debian's libpq, which looks for "localhost" then (libpq, "The Password
 * File"). */
static const char USUAL_SOCKET[] = "/var/run/postgresql";

static bool is_readable (const char *path)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        close (fd);
    return fd >= 0;
}

/* As libpq judges it. It is opened, since a confined process may have the right and not the way to
 * it. False: `fault` says what is wrong with it. */
static bool is_good (const char *path, char fault[FAULT_SIZE])
{
    struct stat info;
    if (stat (path, &info) != 0)
        snprintf (fault, FAULT_SIZE, "%s", strerror (errno));
    else if (!S_ISREG (info.st_mode))
        snprintf (fault, FAULT_SIZE, "it is no file");
    else if ((info.st_mode & OTHERS) != 0)
        snprintf (fault, FAULT_SIZE, "others may read it (mode %04o): it must be of mode 0600",
                  (unsigned) (info.st_mode & 07777));
    else if (!is_readable (path))
        snprintf (fault, FAULT_SIZE, "%s", strerror (errno));
    else
        return true;
    return false;
}

store_code_t pg_passfile_check (const char *path, store_error_t *error)
{
    char fault[FAULT_SIZE];
    return is_good (path, fault)
               ? STORE_OK
               : store_fail (error, STORE_ERROR_ACCESS, "passfile %.300s: %s", path, fault);
}

/* Of a connection; empty: it has none. */
static const char *setting (const PQconninfoOption *options, const char *keyword)
{
    for (; options != NULL && options->keyword != NULL; options++)
        if (strcmp (options->keyword, keyword) == 0)
            return options->val == NULL ? "" : options->val;
    return "";
}

/* The host as a line has it: the usual socket is "localhost" there, also where it is named. */
static const char *line_host (const PGconn *db, const PQconninfoOption *options)
{
    bool usual = setting (options, "host")[0] == '\0' && setting (options, "hostaddr")[0] == '\0';
    return usual || strcmp (PQhost (db), USUAL_SOCKET) == 0 ? "localhost" : PQhost (db);
}

void pg_passfile_explain (PGconn *db, bool named, char why[PG_PASSFILE_WHY_SIZE])
{
    char fault[FAULT_SIZE];
    PQconninfoOption *options = PQconninfo (db);
    const char *path = setting (options, "passfile");
    const char *before = named ? "" : "database/passfile is not set, and ";
    if (path[0] == '\0')
        snprintf (why, PG_PASSFILE_WHY_SIZE, "database/passfile is not set");
    else if (!is_good (path, fault))
        snprintf (why, PG_PASSFILE_WHY_SIZE, "%spassfile %.*s: %s", before, PATH_SHOWN_MAX, path,
                  fault);
    else
        snprintf (why, PG_PASSFILE_WHY_SIZE, "%spassfile %.*s has no line for %s:%s:%s:%s", before,
                  PATH_SHOWN_MAX, path, line_host (db, options), PQport (db), PQdb (db),
                  PQuser (db));
    PQconninfoFree (options);
}
