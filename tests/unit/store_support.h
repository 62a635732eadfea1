/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tests of the store share: batches made by hand, a store in a directory of its own. */
#ifndef TASKMQ_TESTS_STORE_SUPPORT_H
#define TASKMQ_TESTS_STORE_SUPPORT_H

#include "store/journal/device.h"
#include "store/store.h"
#include "support/cmocka_all.h"

/* Batches. */

tmq_id_t test_id (uint64_t number);
/* A queued task of namespace "default", owner "uid:7", queue "mail" with id test_id (number). Its
 * strings are static. */
record_t test_record (int64_t number);

batch_t *batch_make (uint64_t no, int64_t wall_ms);
void batch_add_record (batch_t *batch, const record_t *record);
void batch_add_attempt (batch_t *batch, const attempt_t *attempt);
void batch_add_removal (batch_t *batch, const record_t *record, tmq_code_t code, int64_t at);
/* Key and body are texts; body NULL: the row is gone. */
void batch_add_row (batch_t *batch, row_kind_t kind, const char *key, const char *body);
/* Appends an event to the block of the namespace; sequences must follow each other. */
void batch_add_event (batch_t *batch, const char *ns, uint64_t seq, uint64_t pos, int64_t at,
                      const tmq_id_t *task, tmq_event_kind_t kind, uint64_t previous_seq);

/* A store under test. */

typedef struct fixture {
    const char *uri;
    char directory[64]; /* empty for memory */
    store_options_t options;
    store_t *store;
    store_reader_t *reader;
    boot_t boot;
    uint64_t batch; /* number of the newest batch */
    uint64_t seq;   /* newest event of "default" */
    uint64_t pos;
} fixture_t;

/* What a fixture of this URI needs beside a directory: filled in before its store is opened first,
 * and freed at its end. NULL: nothing. */
typedef struct fixture_needs {
    const char *uri;
    void (*begin) (fixture_t *self);
    void (*end) (fixture_t *self);
} fixture_needs_t;
extern const fixture_needs_t *fixture_needs;

/* cmocka's setup and teardown; the prestate is the URI. */
int fixture_setup (void **state);
int fixture_teardown (void **state);
/* A fixture whose store is not open yet. */
extern const device_t *fixture_device; /* under the journal of stores that come; NULL: the files */
fixture_t *fixture_new (const char *uri);
void fixture_open (fixture_t *self);
void fixture_close (fixture_t *self); /* cleanly */

batch_t *fixture_batch (fixture_t *self); /* the next one */
void fixture_commit (fixture_t *self, batch_t *batch);
/* Adds the record and an event of this kind for it; updates record->last_seq. */
void fixture_change (fixture_t *self, batch_t *batch, record_t *record, tmq_event_kind_t kind);
/* Commits one queued task per number of from..to, in one batch. */
void fixture_submit (fixture_t *self, int64_t from, int64_t to);
/* Waits until everything committed is in the tables. */
void fixture_settle (fixture_t *self);

/* The task as the tables have it, bodies included; NULL: not there. */
record_t *fixture_load (fixture_t *self, const char *ns, const tmq_id_t *id);
void fixture_read (fixture_t *self, read_t *read); /* must succeed */

/* Comparing. */

void assert_same_record (const record_t *a, const record_t *b, bool bodies);
void assert_body (const buf_t *body, const char *bytes, size_t length);
/* Sequences of the events of a packed list; at most max. */
size_t list_seqs (const buf_t *list, uint64_t *seqs, size_t max);

/* Fresh directory below the working directory; and its removal with everything in it. */
void directory_make (char path[64]);
void directory_remove (const char *path);

/* A test on each backend, whose URI is the state before its setup. */
#define ON_WITH(test, setup, teardown, uri)                                                        \
    {                                                                                              \
#test " (" uri ")", test, setup, teardown, (void *) uri                                    \
    }
#define ON(test, uri) ON_WITH (test, fixture_setup, fixture_teardown, uri)
/* … on each, and on the one that outlives a start. */
#ifdef FIXTURE_POSTGRESQL /* the same suites on a real one: tests/postgres/store_fixture.c */
#define ON_STORED_WITH(test, setup, teardown) ON_WITH (test, setup, teardown, "postgresql")
#define ON_ALL_WITH(test, setup, teardown) ON_STORED_WITH (test, setup, teardown)
#else
#define ON_STORED_WITH(test, setup, teardown) ON_WITH (test, setup, teardown, "sqlite")
#define ON_ALL_WITH(test, setup, teardown)                                                         \
    ON_WITH (test, setup, teardown, "memory"), ON_STORED_WITH (test, setup, teardown)
#endif
#define ON_ALL(test) ON_ALL_WITH (test, fixture_setup, fixture_teardown)

#endif
