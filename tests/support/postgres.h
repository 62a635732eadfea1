/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A real PostgreSQL in a directory of its own (support/postgres.sh): start, kill, start again.
 *
 * The role "taskmq" owns the database taskmq and has no other right; "postgres" is the superuser.
 * Every function fails the running cmocka test when it cannot do its work. The kernel ends the
 * server with the thread that started it, so that thread must live on, and nothing is left behind
 * by a test that crashed. */
#ifndef TASKMQ_TESTS_POSTGRES_H
#define TASKMQ_TESTS_POSTGRES_H

#include <stdbool.h>
#include <sys/types.h>

enum { POSTGRES_PATH_MAX = 96, POSTGRES_SETTINGS_MAX = 12, POSTGRES_URI_SIZE = 256 };

typedef struct postgres {
    char home[POSTGRES_PATH_MAX];                /* temporary directory: data, the socket, log */
    int port;                                    /* of TCP on the loopback; 0: the socket alone */
    const char *settings[POSTGRES_SETTINGS_MAX]; /* "NAME=VALUE", NULL ends them; set by the test */
    pid_t pid;                                   /* 0: not running */
} postgres_t;

/* To be called first by main: where PostgreSQL is not installed it says so and ends the program as
 * skipped. */
void postgres_need (void);

/* A fresh server's files. */
void postgres_init (postgres_t *self);
/* ... and it will listen on a free TCP port of the loopback, too: for a proxy. */
void postgres_init_tcp (postgres_t *self);
/* The files of a standby of another server, which runs with wal_level=replica and max_wal_senders:
 * in a directory of its own, or in the place of what it had. */
void postgres_init_standby (postgres_t *self, const postgres_t *primary);
void postgres_copy (postgres_t *self, const postgres_t *primary);
/* Starts it and waits until it takes connections. */
void postgres_start (postgres_t *self);
/* Ends it by a signal and waits for that: SIGINT is a clean stop, SIGQUIT one without a checkpoint;
 * with SIGKILL every process of it is killed at the same time. */
void postgres_end (postgres_t *self, int signal);
/* It stands still (SIGSTOP), or goes on (SIGCONT), with each process of it. */
void postgres_signal (const postgres_t *self, int signal);
/* Ends it if it runs, and removes the directory. A test that fails never comes here, so its
 * directory stays. */
void postgres_destroy (postgres_t *self);

/* The URI by which a role reaches a database through the socket. */
void postgres_uri (const postgres_t *self, const char *role, const char *database,
                   char out[POSTGRES_URI_SIZE]);
/* The same for the role and the database taskmq through TCP, at this port: the server's, or that
 * of a proxy before it. */
void postgres_uri_tcp (int port, char out[POSTGRES_URI_SIZE]);

/* Runs statements as the superuser, in the database taskmq. Returns the last one's first value,
 * empty if it has none; to be freed. */
char *postgres_sql (const postgres_t *self, const char *sql);
/* The same as a whole number. */
long long postgres_number (const postgres_t *self, const char *sql);

/* One server for the whole program: started when it is first asked for, ended at exit. */
const postgres_t *postgres_shared (void);

#endif
