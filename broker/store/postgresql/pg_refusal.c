/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_refusal.h"

#include <ctype.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "store/postgresql/pg_passfile.h"

enum {
    LOOK_MS = 3000,    /* for all hosts together, … */
    LOOK_MS_MIN = 500, /* … but not less for one */
    STATE_LENGTH = 5,
    REASONS_SIZE = 360 /* what is told of all that refuse, with its end */
};

typedef struct reason {
    const char *begin; /* of a text, or of a code */
    const char *means; /* where libpq's own words are too few; or NULL */
    bool password;
} reason_t;

/* Of the server: who it is, which database, and settings in the URI that it does not
 * know, or let us change. */
static const reason_t FINAL_STATES[] = {
    {"28P01", NULL, true},  {"28", NULL, false},    {"3D000", NULL, false}, {"42501", NULL, false},
    {"42704", NULL, false}, {"22023", NULL, false}, {"55P02", NULL, false},
};

/* What it means depends on the file of passwords. */
static const char NO_PASSWORD[] = "no password supplied";

/* Of libpq and OpenSSL, which have no codes, in their own language: this process sets no locale. */
static const reason_t FINAL_TEXTS[] = {
    {"certificate verify failed",
     "it is out of date, or nobody signed it whom sslrootcert (~/.postgresql/root.crt) has", false},
    {"does not match host name", NULL, false},
    {"root certificate file", "name the right one by sslrootcert", false},
    {"certificate file", NULL, false},
    {"private key file", NULL, false},
    {"SSL was required", "set ssl = on there, or name a weaker sslmode", false},
    {"was required", NULL, false},
    {"alert unknown ca", "the server does not know who signed sslcert", false},
    {"alert bad certificate", "the server does not take sslcert", false},
    {"alert certificate", "the server does not take sslcert", false},
    {"alert protocol version", NULL, false},
    {"unsupported protocol", NULL, false},
    {NO_PASSWORD, NULL, true},
    {"password retrieved from file", NULL, true}, /* behind one that was wrong: of which file */
};

/* Of libpq about a server that let us in. */
static const char *const AWAY_TEXTS[] = {"session is read-only", "hot standby mode"};

/* What was found of all hosts. */
typedef struct look {
    pg_refusals_t which;
    bool has_passfile; /* the configuration names one */
    bool away;
    char reasons[REASONS_SIZE]; /* of those that refuse for good; empty: none does */
} look_t;

static const char *find (const char *line, size_t length, const char *text)
{
    const char *found = strstr (line, text);
    return found != NULL && found < line + length ? found : NULL;
}

/* The code in "FATAL:  28P01: password ...": five letters or digits between two colons. */
static const char *find_state (const char *line, size_t length)
{
    const char *end = line + length;
    for (const char *at = strstr (line, ":  "); at != NULL && at < end;
         at = strstr (at + 1, ":  ")) {
        size_t has = 0;
        while (has < STATE_LENGTH &&
               (isupper ((unsigned char) at[3 + has]) || isdigit ((unsigned char) at[3 + has])))
            has++;
        if (has == STATE_LENGTH && at[3 + has] == ':')
            return at + 3;
    }
    return NULL;
}

/* NULL: it is not final. */
static const reason_t *find_final (const char *line, size_t length, const char *state)
{
    for (size_t i = 0; state != NULL && i < sizeof (FINAL_STATES) / sizeof (FINAL_STATES[0]); i++)
        if (strncmp (state, FINAL_STATES[i].begin, strlen (FINAL_STATES[i].begin)) == 0)
            return &FINAL_STATES[i];
    for (size_t i = 0; state == NULL && i < sizeof (FINAL_TEXTS) / sizeof (FINAL_TEXTS[0]); i++)
        if (find (line, length, FINAL_TEXTS[i].begin) != NULL)
            return &FINAL_TEXTS[i];
    return NULL;
}

static bool is_away (const char *line, size_t length)
{
    bool found = false;
    for (size_t i = 0; i < sizeof (AWAY_TEXTS) / sizeof (AWAY_TEXTS[0]); i++)
        found = found || find (line, length, AWAY_TEXTS[i]) != NULL;
    return found;
}

/* The same host says it once more, without TLS or with it. */
static bool has_reason (const look_t *self, const char *line, size_t length)
{
    for (const char *at = self->reasons; length > 0 && (at = strchr (at, line[0])) != NULL; at++)
        if (strncmp (at, line, length) == 0)
            return true;
    return false;
}

static void add_reason (look_t *self, PGconn *db, const char *line, size_t length,
                        const reason_t *reason)
{
    char why[PG_PASSFILE_WHY_SIZE];
    const char *means = reason->means;
    size_t used = strlen (self->reasons);
    if (has_reason (self, line, length))
        return;
    if (reason->begin == NO_PASSWORD) {
        pg_passfile_explain (db, self->has_passfile, why);
        means = why;
    }
    snprintf (self->reasons + used, REASONS_SIZE - used, "%s%.*s%s%s", used == 0 ? "" : "; ",
              (int) length, line, means == NULL ? "" : ": ", means == NULL ? "" : means);
}

/* A name may have several addresses, and TLS be tried beside plain text: each has lines. */
static void judge_line (look_t *self, PGconn *db, const char *line, size_t length)
{
    const char *state = find_state (line, length);
    const reason_t *reason = find_final (line, length, state);
    bool counts = reason != NULL && (self->which == PG_REFUSALS_ALL || reason->password);
    if (counts)
        add_reason (self, db, line, length, reason);
    else
        self->away = self->away || reason != NULL || state != NULL || is_away (line, length);
}

static void judge (look_t *self, PGconn *db)
{
    const char *line = PQerrorMessage (db);
    if (PQstatus (db) == CONNECTION_OK) /* it has come meanwhile */
        self->away = true;
    while (PQstatus (db) == CONNECTION_BAD && *line != '\0') {
        size_t length = strcspn (line, "\n");
        judge_line (self, db, line, length);
        line += length + (line[length] == '\n');
    }
}

static bool has_keyword (const char *const *keywords, const char *keyword)
{
    for (; *keywords != NULL; keywords++)
        if (strcmp (*keywords, keyword) == 0)
            return true;
    return false;
}

store_code_t pg_refusal_look (const pg_hosts_t *hosts, const char *const *keywords,
                              const char *const *values, pg_refusals_t which, const char *where,
                              store_error_t *error)
{
    look_t self = {.which = which, .has_passfile = has_keyword (keywords, "passfile")};
    int64_t ms = LOOK_MS / (int64_t) pg_hosts_count (hosts);
    for (size_t n = 0; n < pg_hosts_count (hosts); n++) {
        PGconn *db = pg_hosts_begin (hosts, n, keywords, values);
        if (db == NULL)
            return STORE_ERROR_AWAY;
        PQsetErrorVerbosity (db, PQERRORS_VERBOSE);
        pg_hosts_wait (db, ms < LOOK_MS_MIN ? LOOK_MS_MIN : ms);
        judge (&self, db);
        PQfinish (db);
    }
    if (self.reasons[0] == '\0' || self.away)
        return STORE_ERROR_AWAY;
    return store_fail (error, STORE_ERROR_ACCESS, "%s: %s", where, self.reasons);
}

bool pg_refusal_is_final (PGconn *db)
{
    look_t self = {.which = PG_REFUSALS_ALL};
    judge (&self, db);
    return self.reasons[0] != '\0' && !self.away;
}
