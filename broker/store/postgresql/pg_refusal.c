/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_refusal.h"

#include <ctype.h>
#include <libpq-fe.h>
#include <string.h>

#include "store/postgresql/pg_hosts.h"

enum { LOOK_MS = 3000, STATE_LENGTH = 5 };

/* Of the server: who it is, and which database. */
static const char *const FINAL_STATES[] = {"28", "3D000", "42501"};

/* Of libpq and OpenSSL, which have no codes, in their own language: this process sets no locale. */
static const char *const FINAL_TEXTS[] = {
    "certificate verify failed",       "does not match host name",    "root certificate file",
    "could not read root certificate", "server does not support SSL", "no password supplied",
    "invalid sslmode value",
};

/* The code in "FATAL:  28P01: password ...": five letters or digits between two colons. Gives what
 * stands behind the first one; NULL: there is none. */
static const char *find_state (const char *text)
{
    for (const char *at = strstr (text, ":  "); at != NULL; at = strstr (at + 1, ":  ")) {
        size_t length = 0;
        while (length < STATE_LENGTH && (isupper ((unsigned char) at[3 + length]) ||
                                         isdigit ((unsigned char) at[3 + length])))
            length++;
        if (length == STATE_LENGTH && at[3 + length] == ':')
            return at + 3;
    }
    return NULL;
}

/* Where it says so; NULL: it is not final. */
static const char *find_final (const char *text)
{
    const char *state = find_state (text);
    if (state != NULL) {
        for (size_t i = 0; i < sizeof (FINAL_STATES) / sizeof (FINAL_STATES[0]); i++)
            if (strncmp (state, FINAL_STATES[i], strlen (FINAL_STATES[i])) == 0)
                return state;
        return NULL;
    }
    for (size_t i = 0; i < sizeof (FINAL_TEXTS) / sizeof (FINAL_TEXTS[0]); i++) {
        const char *found = strstr (text, FINAL_TEXTS[i]);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* Of several hosts each has lines of its own. */
static const char *line_around (const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        at--;
    return at;
}

store_code_t pg_refusal_look (char *const *keywords, char *const *values, const char *where,
                              store_error_t *error)
{
    PGconn *db =
        PQconnectStartParams ((const char *const *) keywords, (const char *const *) values, 0);
    if (db == NULL)
        return STORE_ERROR_AWAY;
    PQsetErrorVerbosity (db, PQERRORS_VERBOSE);
    pg_hosts_wait (db, LOOK_MS);
    const char *text = PQerrorMessage (db);
    const char *final = PQstatus (db) == CONNECTION_BAD ? find_final (text) : NULL;
    store_code_t code = STORE_ERROR_AWAY;
    if (final != NULL) {
        const char *line = line_around (text, final);
        size_t length = strcspn (line, "\n");
        code = store_fail (error, STORE_ERROR_ACCESS, "%s: %.*s", where,
                           (int) (length > 350 ? 350 : length), line);
    }
    PQfinish (db);
    return code;
}
