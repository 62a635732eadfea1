/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A PostgreSQL of the bench's own, for the two systems that stand on one. */

#include "bench.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

bool postgresql_available (void)
{
    char path[BENCH_PATH_MAX];
    return access (POSTGRESQL_PROGRAMS "/postgres", X_OK) == 0 && program_find ("setpriv", path);
}

/* It refuses to run as root, so root lends it the package's user. */
void postgresql_command (char out[POSTGRESQL_COMMAND_BYTES], const server_t *server,
                         const char *options)
{
    const struct passwd *user = getuid () == 0 ? getpwnam ("postgres") : NULL;
    char become[64] = "";
    if (getuid () == 0 && (!user || chown (server->directory, user->pw_uid, user->pw_gid) != 0))
        die ("postgresql: there is no user postgres");
    if (user)
        snprintf (become, sizeof become, "--reuid=%u --regid=%u --clear-groups",
                  (unsigned) user->pw_uid, (unsigned) user->pw_gid);
    snprintf (out, POSTGRESQL_COMMAND_BYTES,
              "exec setpriv %s --pdeathsig=KILL sh -c '" POSTGRESQL_PROGRAMS
              "/initdb -D data -A trust -U bench >initdb.log 2>&1 && exec " POSTGRESQL_PROGRAMS
              "/postgres -D data %s'",
              become, options);
}
