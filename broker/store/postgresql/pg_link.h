/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One connection to PostgreSQL: how it is made and judged safe, how statements run on it, and what
 * an error of the server means for the store. A link belongs to one thread at a time. It never
 * connects again by itself: whoever owns it decides when, because a commit in doubt has to be
 * settled first.
 *
 * Errors. STORE_ERROR_AWAY: the connection is gone or was refused for now, and nobody knows whether
 * what ran last took effect; the link is closed. STORE_ERROR_BUSY: the server gave the transaction
 * up (a lock, a time limit, too little memory); nothing of it is kept and it may be run again.
 * STORE_ERROR_FULL: no space. Any other is final.
 *
 * A server is over for a link once another one was found whole behind it (pg_whole.h): its answers
 * are not waited for any more, and nothing else is asked of it. */
#ifndef TASKMQ_STORE_PG_LINK_H
#define TASKMQ_STORE_PG_LINK_H

#include <libpq-fe.h>
#include <stdatomic.h>

#include "store/error.h"
#include "store/postgresql/pg_target.h"
#include "store/postgresql/pg_values.h"

enum {
    PG_STATEMENTS_MAX = 48, /* of one link */
    PG_VERSION_MIN = 140000,
    PG_LINK_NAME_MAX = 39, /* "taskmq NAME TAG": the server cuts names of sessions at 63 bytes */
    PG_LINK_WAITS_SIZE = 101
};

typedef struct pg_link {
    pg_target_t *target;
    const char *name;         /* of the session, as pg_stat_activity shows it */
    const char *const *texts; /* of the statements; parameters are cast in them */
    size_t texts_count;
    int64_t wait_ms_max;     /* for an answer, then the link is given up; 0: as long as it takes */
    const atomic_bool *ends; /* true: an answer is waited for as a session's set-up; may be NULL */
    bool judges;             /* it finds out whether another server has all (A106) */
    int32_t timeline;        /* of its server, when it connected */
    uint64_t server;         /* … one life of it: from a start to an end or a promotion */
    uint64_t whole;          /* the one that was known to be whole when it connected, or its own
                                once that is; 0: none */
    PGconn *db;              /* NULL: closed */
    uint64_t opened;         /* how often it was, or was moved to */
    bool ends_others;        /* when it is opened (pg_link_end_others) */
    /* synchronous_standby_names, where a session that was ended waited for it with its commit,
     * until somebody takes that (pg_store_waits); or empty. */
    char waits_for[PG_LINK_WAITS_SIZE];
    bool conflict; /* the newest error: such a key is there already … */
    bool locked;   /* … or a lock of somebody was waited for as long as it may take … */
    bool late;     /* … or no answer came in time; until it is opened again */
    bool passed;   /* while it is opened: its host is of no use, and the next one is asked */
    bool prepared[PG_STATEMENTS_MAX];
} pg_link_t;

/* A closed link. What is given must outlive it. */
void pg_link_init (pg_link_t *self, pg_target_t *target, const char *name, const char *const *texts,
                   size_t texts_count);
/* Connects, sets the session up, and refuses a server that is not safe (STORE_ERROR_ACCESS) or
 * another one than before (STORE_ERROR_FOREIGN). One that was promoted or started anew is out of
 * reach until a link that judges has found it whole. Waits some seconds for each host, and for the
 * answers of the one that is there. */
store_code_t pg_link_open (pg_link_t *self, store_error_t *error);
void pg_link_close (pg_link_t *self); /* accepts a closed one */
/* Ends all other sessions that have the name of this one. Of a link that is the only one of its
 * name in this broker they are what is left of connections that were lost: they may hold locks, or
 * wait for a standby, and do not notice that nobody listens. Numbers of processes would not do: on
 * another server, and later on this one, they are somebody else's. *found (may be NULL): how many
 * there were. One of them may stand still, and ends when it goes on; a count of 0 says that none
 * is left. Outside a transaction: within one it would see no later state. */
store_code_t pg_link_end_others (pg_link_t *self, size_t *found, store_error_t *error);
/* Ends sessions; its rows are for pg_link_note_waits. */
#define PG_LINK_TERMINATE_WHERE(which)                                                             \
    "SELECT CASE WHEN wait_event = 'SyncRep'"                                                      \
    " THEN current_setting ('synchronous_standby_names') END, pg_terminate_backend (pid)"          \
    " FROM pg_stat_activity WHERE " which
void pg_link_note_waits (pg_link_t *self, const PGresult *ended);
/* Takes the connection of another link of the same statements; that is closed then. */
void pg_link_move (pg_link_t *self, pg_link_t *from);
/* Other statements run on an open link from now on, also within its transaction. */
store_code_t pg_link_use (pg_link_t *self, const char *const *texts, size_t texts_count,
                          store_error_t *error);
/* What is asked where there is no link: STORE_ERROR_AWAY, and its text has no reason. */
store_code_t pg_link_missing (const pg_target_t *target, store_error_t *error);
bool pg_link_is_missing (const pg_target_t *target, const store_error_t *error);
#define PG_LINK_OVER "its server was started anew since, or another one was promoted"
/* Another server, or a later life of this one, was found whole since it was opened. */
bool pg_link_is_over (const pg_link_t *self);
/* One whose server is over is not: it is to be opened anew. */
static inline bool pg_link_is_open (const pg_link_t *self)
{
    return self->db != NULL && !pg_link_is_over (self);
}

/* Runs a statement of the list, prepared when it is first used; params may be NULL. *out (may be
 * NULL) is to be freed with PQclear; it is NULL after an error. Values are binary. */
store_code_t pg_link_run (pg_link_t *self, size_t statement, const pg_params_t *params,
                          PGresult **out, store_error_t *error);
/* The same in two parts: what was asked is answered while its asker does something else. Between
 * them the link is used for nothing else. */
store_code_t pg_link_ask (pg_link_t *self, size_t statement, const pg_params_t *params,
                          store_error_t *error);
/* Whether the answer, or the loss of the link, can be taken without waiting. */
bool pg_link_is_answered (pg_link_t *self);
store_code_t pg_link_answer (pg_link_t *self, PGresult **out, store_error_t *error);
/* … and tells how many rows it changed. */
store_code_t pg_link_change (pg_link_t *self, size_t statement, const pg_params_t *params,
                             uint64_t *rows, store_error_t *error);
/* Runs SQL without parameters, one or several statements. */
store_code_t pg_link_do (pg_link_t *self, const char *sql, store_error_t *error);
/* … and gives the answer of the last one, in texts; *out as pg_link_run has it. */
store_code_t pg_link_show (pg_link_t *self, const char *sql, PGresult **out, store_error_t *error);
/* BEGIN, COMMIT; ROLLBACK, which cannot fail: a link that it fails on is closed. */
store_code_t pg_link_begin (pg_link_t *self, store_error_t *error);
store_code_t pg_link_commit (pg_link_t *self, store_error_t *error);
void pg_link_rollback (pg_link_t *self);

/* Several statements in one round trip: each is queued, then their results are taken in that order.
 * After an error the rest is given up. Their texts are prepared before. */
store_code_t pg_link_queue_begin (pg_link_t *self, const size_t *statements, size_t count,
                                  store_error_t *error);
store_code_t pg_link_queue (pg_link_t *self, size_t statement, const pg_params_t *params,
                            store_error_t *error);
store_code_t pg_link_queue_send (pg_link_t *self, store_error_t *error);
store_code_t pg_link_queue_take (pg_link_t *self, PGresult **out, store_error_t *error);
void pg_link_queue_end (pg_link_t *self);

/* COPY … FROM STDIN (FORMAT binary): begin, data with header and trailer, end. */
store_code_t pg_link_copy_begin (pg_link_t *self, const char *sql, store_error_t *error);
store_code_t pg_link_copy_put (pg_link_t *self, const void *bytes, size_t length,
                               store_error_t *error);
store_code_t pg_link_copy_end (pg_link_t *self, store_error_t *error);

#endif
