/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Several stores on one database, each as a broker of its own would have it. */
#ifndef TASKMQ_TESTS_POSTGRES_PARTY_H
#define TASKMQ_TESTS_POSTGRES_PARTY_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/postgresql/database_options.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_store.h"
#include "store_fixture.h"

enum { PARTY_LEASE_MS = 2000, PARTY_TEXT_SIZE = 512 };

/* One broker's store, on a directory of its own, that is owned on a thread of its own. */
typedef struct party {
    char directory[64];
    store_options_t options;
    database_options_t database;
    store_t *store;
    boot_t boot;
    store_code_t code;
    store_error_t error;
    int stop_fd;
    int64_t owned_at; /* mono, when store_own returned */
    pthread_t thread;
    pthread_mutex_t lock;
    char said[DATABASE_WAITS + 1][PARTY_TEXT_SIZE];
    _Atomic (store_code_t) failed_with;
    atomic_bool cut; /* … once, whatever came behind it */
    atomic_bool done;
} party_t;

/* directory: NULL for a new one, which goes with it. */
party_t *party_new (const fixture_t *f, bool standby, const char *directory);
void party_free (party_t *self);
/* Opens and owns the data, on a thread of its own: it may have to wait. */
void party_begin (party_t *self);
void party_end (party_t *self, store_code_t expected);
void party_own (party_t *self, store_code_t expected);
store_code_t party_close (party_t *self); /* accepts a closed one */

bool party_was_told (party_t *self, database_word_t word, const char *words);
bool party_waits (party_t *self);
/* A task with this number, in a commit of its own. */
void party_submit (fixture_t *f, party_t *self, int64_t number, store_code_t expected);

/* The beats of whoever owns it now fail, or stand still in the middle. */
void party_stop_beats (const fixture_t *f, const char *how);
#define PARTY_FAIL "RAISE 'not now' USING ERRCODE = '40001'"
#define PARTY_HANG "PERFORM pg_sleep (600)"

/* The server ends all sessions of that name. */
void party_end_sessions (const fixture_t *f, const char *name);

/* Of each test: a fresh schema of the shared server. */
int party_setup (void **state);
int party_teardown (void **state);

#endif
