/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#include "ids.h"
#include "store/postgresql/pg_line.h"
#include "timestamp.h"

enum {
    HOSTS_MAX = 16,  /* beyond them the order is libpq's */
    HOST_SIZE = 256, /* of one, with its end */
    PLACE_SIZE = 2 * HOST_SIZE + sizeof ("[]:"),
    KEYWORDS_MAX = 72,  /* those of a target (pg_target.c), and three more */
    FIRST_MS_MIN = 200, /* for one host, however short the lease is */
    LEASE_PART = 4,     /* what of a lease all hosts together may take in the first round */
    NAMED_MAX = 4,      /* hosts whose reasons are told; of more it is told how many there are */
    REASON_SIZE = 200,  /* of one host, with its end */
    PORT_MAX = 65535
};

enum { NAMES, ADDRESSES, PORTS };
static const char *const PLACE[PG_HOSTS_PLACE] = {"host", "hostaddr", "port"};

/* The lists. */

static size_t count_of (const char *list)
{
    size_t count = list == NULL ? 0 : 1;
    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

/* A list of one is good for all. False: it is too long, or not there. */
static bool take_nth (const char *list, size_t n, char out[HOST_SIZE])
{
    if (list == NULL)
        return false;
    for (size_t i = 0; i < n && count_of (list) > 1; i++)
        list += strcspn (list, ",") + 1;
    size_t length = strcspn (list, ",");
    snprintf (out, HOST_SIZE, "%.*s", (int) length, list);
    return length < HOST_SIZE;
}

static size_t named (const pg_hosts_t *self)
{
    return count_of (self->lists[self->lists[ADDRESSES] != NULL ? ADDRESSES : NAMES]);
}

/* Those beyond the bounds are left to libpq. */
static bool are_ours (const pg_hosts_t *self)
{
    char one[HOST_SIZE];
    size_t count = named (self);
    if (count < 2 || count > HOSTS_MAX)
        return false;
    for (size_t i = 0; i < PG_HOSTS_PLACE; i++)
        for (size_t n = 0; n < count_of (self->lists[i]); n++)
            if (!take_nth (self->lists[i], n, one))
                return false;
    return true;
}

void pg_hosts_init (pg_hosts_t *self, const char *names, const char *addresses, const char *ports,
                    const char *connect_timeout, int64_t lease_ms)
{
    self->lists[NAMES] = names;
    self->lists[ADDRESSES] = addresses;
    self->lists[PORTS] = ports;
    atomic_init (&self->good, 0);
    self->is_final = NULL;
    self->most_ms = strtoll (connect_timeout, NULL, 10) * 1000;
    self->count = 0;
    if (self->most_ms <= 0 || !are_ours (self)) /* 0: somebody wants it to wait for ever */
        return;
    self->count = named (self);
    self->first_ms = lease_ms / LEASE_PART / (int64_t) self->count;
    if (self->first_ms < FIRST_MS_MIN)
        self->first_ms = FIRST_MS_MIN;
    if (self->first_ms > self->most_ms || lease_ms == 0)
        self->first_ms = self->most_ms;
}

/* One with a scope is not: its interface may come later. */
static bool is_address (const char *text)
{
    struct addrinfo *found = NULL;
    const struct addrinfo hint = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    if (text[0] == '\0' || strchr (text, '%') != NULL)
        return true;
    bool is_one = getaddrinfo (text, NULL, &hint, &found) == 0;
    if (is_one)
        freeaddrinfo (found);
    return is_one;
}

/* As people write it. */
static void name_place (const pg_hosts_t *self, size_t n, char out[PLACE_SIZE])
{
    char name[HOST_SIZE];
    char port[HOST_SIZE];
    if (!take_nth (self->lists[NAMES], n, name) || name[0] == '\0')
        if (!take_nth (self->lists[ADDRESSES], n, name) || name[0] == '\0')
            snprintf (name, sizeof (name), "the local socket");
    bool has_port = take_nth (self->lists[PORTS], n, port) && port[0] != '\0';
    bool is_six = strchr (name, ':') != NULL && is_address (name);
    snprintf (out, PLACE_SIZE, "%s%s%s:%s", is_six ? "[" : "", name, is_six ? "]" : "",
              has_port ? port : "5432");
}

void pg_hosts_list (const pg_hosts_t *self, char list[PG_HOSTS_LIST_SIZE])
{
    enum { ROOM = PG_HOSTS_LIST_SIZE - sizeof (" and 4294967295 more") };
    char one[PLACE_SIZE];
    size_t count = named (self) == 0 ? 1 : named (self);
    list[0] = '\0';
    for (size_t n = 0; n < count; n++) {
        size_t used = strlen (list);
        name_place (self, n, one);
        if (n > 0 && used + strlen (", ") + strlen (one) >= ROOM) {
            snprintf (list + used, PG_HOSTS_LIST_SIZE - used, " and %u more",
                      (unsigned) (count - n));
            return;
        }
        snprintf (list + used, ROOM - used, "%s%s", n == 0 ? "" : ", ", one);
    }
}

void pg_hosts_answered (const pg_hosts_t *self, char out[PG_HOSTS_LIST_SIZE])
{
    char one[PLACE_SIZE] = "";
    if (self->count > 0)
        name_place (self, atomic_load (&self->good), one);
    snprintf (out, PG_HOSTS_LIST_SIZE, "%.*s", PG_HOSTS_LIST_SIZE - 1, one);
}

void pg_hosts_pass (pg_hosts_t *self)
{
    if (self->count > 0)
        atomic_store (&self->good, (atomic_load (&self->good) + 1) % self->count);
}

size_t pg_hosts_count (const pg_hosts_t *self)
{
    return self->count == 0 ? 1 : self->count;
}

/* Connecting. */

void pg_hosts_wait (PGconn *db, int64_t ms)
{
    int64_t until_ms = clock_ms (CLOCK_MONOTONIC) + ms;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (PQstatus (db) != CONNECTION_BAD) {
        int64_t left = until_ms - clock_ms (CLOCK_MONOTONIC);
        struct pollfd ready = {.fd = PQsocket (db),
                               .events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int found = left < 0 ? 0 : poll (&ready, 1, (int) left);
        if (found == 0)
            return;
        if (found < 0 && errno != EINTR)
            return;
        if (found > 0)
            next = PQconnectPoll (db);
        if (next == PGRES_POLLING_OK || next == PGRES_POLLING_FAILED)
            return;
    }
}

static bool says_place (const char *keyword)
{
    bool found = false;
    for (size_t i = 0; i < PG_HOSTS_PLACE; i++)
        found = found || strcmp (keyword, PLACE[i]) == 0;
    return found;
}

/* What the server says beside an answer belongs into no log: libpq would write it to stderr. */
static void no_notice (void *context, const PGresult *result)
{
    (void) context;
    (void) result;
}

static PGconn *quiet (PGconn *db)
{
    PQsetNoticeReceiver (db, no_notice, NULL); /* takes NULL for a connection, too */
    return db;
}

/* At this place, which lacks what is NULL, and as the keywords have it otherwise. */
static PGconn *begin_at (const char *const place[PG_HOSTS_PLACE], const char *const *keywords,
                         const char *const *values)
{
    const char *own[KEYWORDS_MAX];
    const char *their[KEYWORDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < PG_HOSTS_PLACE; i++) {
        own[count] = PLACE[i];
        their[count] = place[i];
        count += place[i] != NULL;
    }
    for (size_t i = 0; keywords[i] != NULL && count + 1 < KEYWORDS_MAX; i++) {
        own[count] = keywords[i];
        their[count] = values[i];
        count += !says_place (keywords[i]);
    }
    own[count] = their[count] = NULL;
    return quiet (PQconnectStartParams (own, their, 0));
}

PGconn *pg_hosts_begin (const pg_hosts_t *self, size_t n, const char *const *keywords,
                        const char *const *values)
{
    char parts[PG_HOSTS_PLACE][HOST_SIZE];
    const char *place[PG_HOSTS_PLACE];
    if (self->count == 0)
        return quiet (PQconnectStartParams (keywords, values, 0));
    for (size_t i = 0; i < PG_HOSTS_PLACE; i++)
        place[i] = take_nth (self->lists[i], n, parts[i]) ? parts[i] : NULL;
    return begin_at (place, keywords, values);
}

/* Of two that took no connection the one that says more: it was there, and asked for a password. */
static PGconn *better (PGconn *one, PGconn *other)
{
    bool first = one != NULL &&
                 (PQconnectionUsedPassword (one) != 0 || PQconnectionNeedsPassword (one) != 0);
    PQfinish (first ? other : one);
    return first ? one : other;
}

static const char BEFORE[] = "connection to server ";

/* A name may have several addresses, with a line each: what a server said, else what became of the
 * last one. */
static const char *line_of (const PGconn *db, size_t *length)
{
    const char *text = db == NULL ? "" : PQerrorMessage (db);
    const char *line = strstr (text, "FATAL:");
    const char *next = line == NULL ? strstr (text, BEFORE) : NULL;
    for (; next != NULL; next = strstr (next + 1, BEFORE))
        line = next;
    while (line != NULL && line > text && line[-1] != '\n')
        line--;
    if (line == NULL)
        line = text;
    *length = strcspn (line, "\n");
    return line;
}

static void note (const PGconn *db, char out[REASON_SIZE])
{
    size_t length;
    const char *line = line_of (db, &length);
    const char *reason = strstr (line, " failed: ");
    if (strncmp (line, BEFORE, strlen (BEFORE)) == 0 && reason != NULL && reason < line + length) {
        reason += strlen (" failed: ");
        length -= (size_t) (reason - line);
        line = reason;
    }
    if (length == 0)
        snprintf (out, REASON_SIZE, "no answer in time");
    else
        snprintf (out, REASON_SIZE, "%.*s", (int) utf8_whole (line, length, REASON_SIZE - 1), line);
}

/* Each with its part of the text. */
static void tell_all (const pg_hosts_t *self, char reasons[][REASON_SIZE],
                      char why[PG_HOSTS_WHY_SIZE])
{
    char place[PLACE_SIZE];
    char one[PLACE_SIZE + REASON_SIZE + sizeof (": ")];
    size_t shown = self->count > NAMED_MAX ? NAMED_MAX : self->count;
    size_t part = (PG_HOSTS_WHY_SIZE - sizeof ("; and 12 more")) / shown - strlen ("; ");
    size_t used = 0;
    for (size_t n = 0; n < shown; n++) {
        name_place (self, n, place);
        snprintf (one, sizeof (one), "%s: %.*s", place, REASON_SIZE - 1, reasons[n]);
        used +=
            (size_t) snprintf (why + used, PG_HOSTS_WHY_SIZE - used, "%s%.*s", n == 0 ? "" : "; ",
                               (int) utf8_whole (one, strlen (one), part), one);
    }
    if (shown < self->count)
        snprintf (why + used, PG_HOSTS_WHY_SIZE - used, "; and %zu more", self->count - shown);
}

static PGconn *connect_any (const char *const *keywords, const char *const *values,
                            char why[PG_HOSTS_WHY_SIZE])
{
    size_t length;
    PGconn *db = quiet (PQconnectdbParams (keywords, values, 0));
    const char *line = line_of (db, &length);
    snprintf (why, PG_HOSTS_WHY_SIZE, "%.*s",
              (int) utf8_whole (line, length, PG_HOSTS_WHY_SIZE - 1), line);
    return db;
}

/* What was found out of all hosts that took no connection. */
typedef struct asked {
    char reasons[HOSTS_MAX][REASON_SIZE];
    bool final[HOSTS_MAX]; /* to ask again would only count as another wrong password there */
    bool late;             /* one did not answer in its time */
    PGconn *kept;          /* NULL: there is no memory for any */
} asked_t;

/* One round. NULL: there is no connection. */
static PGconn *ask_all (pg_hosts_t *self, asked_t *asked, int64_t ms, const char *const *keywords,
                        const char *const *values)
{
    size_t good = atomic_load (&self->good);
    asked->late = false;
    for (size_t i = 0; i < self->count; i++) {
        size_t n = (good + i) % self->count;
        if (asked->final[n])
            continue;
        PGconn *db = pg_hosts_begin (self, n, keywords, values);
        if (db == NULL)
            return NULL;
        PQsetErrorVerbosity (db, PQERRORS_VERBOSE);
        pg_hosts_wait (db, ms);
        if (PQstatus (db) == CONNECTION_OK) {
            PQsetErrorVerbosity (db, PQERRORS_DEFAULT);
            atomic_store (&self->good, n);
            return db;
        }
        asked->late = asked->late || PQstatus (db) != CONNECTION_BAD;
        asked->final[n] = self->is_final != NULL && self->is_final (db);
        note (db, asked->reasons[n]);
        asked->kept = better (asked->kept, db);
    }
    return NULL;
}

/* Where all have answered there is nothing to ask again just now. */
PGconn *pg_hosts_connect (pg_hosts_t *self, const char *const *keywords, const char *const *values,
                          char why[PG_HOSTS_WHY_SIZE])
{
    asked_t asked = {.late = false};
    why[0] = '\0';
    if (self->count == 0)
        return connect_any (keywords, values, why);
    PGconn *db = ask_all (self, &asked, self->first_ms, keywords, values);
    if (db == NULL && asked.late && self->first_ms < self->most_ms)
        db = ask_all (self, &asked, self->most_ms, keywords, values);
    if (db == NULL) {
        tell_all (self, asked.reasons, why);
        return asked.kept;
    }
    PQfinish (asked.kept);
    return db;
}

/* Checking. */

/* libpq looks at all values before it goes to a host, and then meets an address that is none.
 * Whatever else it says is about a value. */
static store_code_t check_values (const char *const *keywords, const char *const *values,
                                  store_error_t *error)
{
    static const char *const nowhere[PG_HOSTS_PLACE] = {"nowhere", "!", "1"};
    PGconn *db = begin_at (nowhere, keywords, values);
    const char *said = db == NULL ? "no memory" : PQerrorMessage (db);
    store_code_t code = STORE_OK;
    if (strstr (said, "network address \"!\"") == NULL)
        code = store_fail (error, STORE_ERROR_OPTIONS, "database/uri: %.*s",
                           pg_line_length (said, 300), said);
    PQfinish (db);
    return code;
}

/* As libpq takes it, with blanks around the number. Empty: the usual one. */
static bool is_port (const char *text)
{
    char *end;
    long port = strtol (text, &end, 10);
    bool is_number = end != text;
    while (isspace ((unsigned char) *end))
        end++;
    return text[0] == '\0' || (is_number && *end == '\0' && port >= 1 && port <= PORT_MAX);
}

static bool is_reachable (const char *host, const char *port)
{
    size_t room = sizeof (((struct sockaddr_un *) NULL)->sun_path);
    bool is_socket = host[0] == '/' || host[0] == '@';
    long number = port[0] == '\0' ? 5432 : strtol (port, NULL, 10);
    size_t length = (size_t) snprintf (NULL, 0, "%s/.s.PGSQL.%ld", host, number);
    return !is_socket || length < room;
}

/* What begins no path is looked up, and no name has these letters. hostaddr is not looked up. */
static bool is_name (const char *host)
{
    bool is_path = host[0] == '/' || host[0] == '@';
    bool is_six = strchr (host, ':') != NULL && is_address (host);
    return is_path || is_six || strpbrk (host, "/:") == NULL;
}

static store_code_t check_host (const pg_hosts_t *self, size_t n, store_error_t *error)
{
    char parts[PG_HOSTS_PLACE][HOST_SIZE];
    for (size_t i = 0; i < PG_HOSTS_PLACE; i++)
        if (!take_nth (self->lists[i], n, parts[i]))
            parts[i][0] = '\0';
    if (!is_port (parts[PORTS]))
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/uri: invalid port number '%.60s': it is 1 to %d", parts[PORTS],
                           PORT_MAX);
    if (!is_address (parts[ADDRESSES]))
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/uri: hostaddr '%.60s' is no address", parts[ADDRESSES]);
    if (parts[ADDRESSES][0] == '\0' && !is_name (parts[NAMES]))
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/uri: host '%.120s' is no name: a socket's directory begins "
                           "with /, and a port stands in the list 'port'",
                           parts[NAMES]);
    if (!is_reachable (parts[NAMES], parts[PORTS]))
        return store_fail (error, STORE_ERROR_OPTIONS,
                           "database/uri: the path of a socket in '%.120s' is too long",
                           parts[NAMES]);
    return STORE_OK;
}

store_code_t pg_hosts_check (const pg_hosts_t *self, const char *const *keywords,
                             const char *const *values, store_error_t *error)
{
    size_t count = named (self) == 0 ? 1 : named (self);
    store_code_t code = check_values (keywords, values, error);
    for (size_t i = 0; code == STORE_OK && i < PG_HOSTS_PLACE; i++) {
        size_t has = count_of (self->lists[i]);
        if (has != 0 && has != count && (i != PORTS || has != 1))
            code = store_fail (error, STORE_ERROR_OPTIONS,
                               "database/uri: %zu hosts, but the list of '%s' has %zu", count,
                               PLACE[i], has);
    }
    for (size_t n = 0; code == STORE_OK && n < count; n++)
        code = check_host (self, n, error);
    return code;
}
