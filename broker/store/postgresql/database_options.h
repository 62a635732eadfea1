/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the postgresql backend is told by its owner, and what it says to him. */
#ifndef TASKMQ_STORE_DATABASE_OPTIONS_H
#define TASKMQ_STORE_DATABASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The store leaves it in the data directory of a broker whose tasks are not in that: who it is. */
#define DATABASE_INSTANCE_FILE "instance"

/* What it has to say, beside failures. */
typedef enum database_word {
    DATABASE_STANDBY,      /* another owner has the data: it is waited for */
    DATABASE_ADOPTED,      /* … and was taken over from, since it stood still */
    DATABASE_UPGRADED,     /* the tables were of a version before, and are of this one */
    DATABASE_OWNED,        /* this process owns the data from now on */
    DATABASE_AWAY,         /* out of reach: it is waited for */
    DATABASE_BACK,         /* … and it is back; the text tells what became of a commit in doubt */
    DATABASE_TIMELINE,     /* it was promoted or restored since this data was owned last */
    DATABASE_UNREPLICATED, /* no other server has to have a commit before it is acknowledged */
    DATABASE_UNSUMMED,     /* it would not notice damaged pages: data_checksums is off */
    DATABASE_PINNED,       /* an old transaction keeps what was deleted */
    DATABASE_BLOBS,        /* a large body was not put or read; the text says why */
    DATABASE_WAITS         /* a take-over goes on waiting for its commit; said each time */
} database_word_t;

typedef struct database_options {
    /* As libpq has it: postgresql://… or key = value. Several hosts may be given. A password in it
     * is refused: it stands in the passfile. */
    const char *uri;
    const char *passfile;           /* NULL: the URI's, or libpq's own; refused beside the URI's */
    const char *schema;             /* NULL: "taskmq" */
    const char *synchronous_commit; /* on, remote_apply or local; NULL: on */
    /* Over a promotion nothing that was acknowledged can be missing, so the history goes on. */
    bool failover_synchronous;
    /* Who finds an owner that lives waits until that ends or stands still; else it is refused. */
    bool standby;
    /* Tables that the broker of this data directory owned may be gone: it begins with nothing. */
    bool gives_up;
    int64_t lease_ms; /* an owner that gives no sign for so long may be taken over from; 0: 4,000 */
    int64_t pinned_ms; /* DATABASE_PINNED: so old a transaction; 0: 60,000 */
    /* Told on any thread, with a line for people; may be NULL. */
    void (*say) (void *context, database_word_t word, const char *text);
    void *context;
} database_options_t;

#endif
