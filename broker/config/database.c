/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The store reads the URI with libpq, which knows all its forms. Here it is only judged before it
 * is shown to anybody: --show-config, logs and the list of processes show a value to people who
 * may not have the database's password. */
#include "config/database.h"

#include <stdio.h>
#include <string.h>

static bool refuse (char why[UNITS_ERROR_SIZE], const char *text)
{
    snprintf (why, UNITS_ERROR_SIZE, "%s", text);
    return false;
}

/* Behind the scheme; NULL: it is no URI. */
static const char *skip_scheme (const char *text)
{
    static const char *const schemes[] = {"postgresql://", "postgres://"};
    for (size_t i = 0; i < sizeof (schemes) / sizeof (schemes[0]); i++)
        if (strncmp (text, schemes[i], strlen (schemes[i])) == 0)
            return text + strlen (schemes[i]);
    return NULL;
}

/* USER:PASSWORD@ before the hosts. */
static bool has_user_password (const char *rest)
{
    size_t authority = strcspn (rest, "/?");
    const char *at = memchr (rest, '@', authority);
    return at != NULL && memchr (rest, ':', (size_t) (at - rest)) != NULL;
}

/* password = …, sslpassword = …, in either form. */
static bool has_key_password (const char *text)
{
    static const char word[] = "password";
    for (const char *at = strstr (text, word); at != NULL; at = strstr (at + 1, word)) {
        const char *rest = at + strlen (word);
        rest += strspn (rest, " \t");
        if (*rest == '=')
            return true;
    }
    return false;
}

bool database_check_uri (const char *text, char why[UNITS_ERROR_SIZE])
{
    const char *rest = skip_scheme (text);
    if (rest == NULL)
        return refuse (why, "must be postgresql://USER@HOST/NAME");
    if (has_user_password (rest) || has_key_password (rest))
        return refuse (why, "has a password, which others could see: put it into a file of mode "
                            "0600 (database/passfile)");
    return true;
}

bool database_check_schema (const char *text, char why[UNITS_ERROR_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    if (strchr (letters, text[0]) == NULL || text[strspn (text, rest)] != '\0')
        return refuse (why, "must be small letters, digits and _, and begin with no digit");
    if (strncmp (text, "pg_", 3) == 0)
        return refuse (why, "must not begin with pg_, as PostgreSQL's own");
    return true;
}
