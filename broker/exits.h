/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How taskmqd ends: one exit code for each reason, so that a supervisor and a script can tell what
 * to do. Numbers never change. */
#ifndef TASKMQ_BROKER_EXITS_H
#define TASKMQ_BROKER_EXITS_H

#include "store/store.h"

/* number, NAME, the log's id of the line that says so, what it means */
#define EXITS_MAP(X)                                                                               \
    X (0, OK, "STOPPED", "stopped as asked")                                                       \
    X (1, INTERNAL, "INTERNAL", "the system refused something basic: a thread, a descriptor")      \
    X (2, USAGE, "USAGE", "wrong command line or configuration")                                   \
    X (3, DATA, "DATA-ACCESS", "the data directory, a file in it or the database cannot be used")  \
    X (4, RUNNING, "DATA-LOCKED",                                                                  \
       "another broker runs on the data directory, or owns the database")                          \
    X (5, LISTEN, "LISTEN-FAILED",                                                                 \
       "an address cannot be listened on: in use, or not possible here")                           \
    X (6, ADDRESS, "LISTEN-REFUSED", "an address is not a valid URI")                              \
    X (7, FOREIGN, "STORE-FOREIGN", "the database belongs to another application")                 \
    X (8, NEWER, "STORE-NEWER", "the database was written by a newer version")                     \
    X (9, CORRUPT, "STORE-CORRUPT", "the database is damaged")                                     \
    X (10, IO, "STORE-IO", "reading, writing or syncing the database failed")                      \
    X (11, FULL, "STORE-FULL", "no space to start")                                                \
    X (12, BUSY, "STORE-BUSY", "another program has the database open for writing")                \
    X (13, FENCED, "STORE-FENCED", "another broker took the database over")                        \
    X (14, KEYS, "KEYS", "a key or the access file cannot be used, or a door is open")             \
    X (15, DAMAGED, "CHECK-DAMAGED", "--check found damage")                                       \
    X (16, ROLLBACK, "STORE-ROLLBACK",                                                             \
       "the database lost an acknowledged commit, or lacks events that events.jsonl has")

typedef enum exits {
#define X(number, NAME, id, meaning) EXITS_##NAME = number,
    EXITS_MAP (X)
#undef X
} exits_t;

const char *exits_id (exits_t code);
const char *exits_meaning (exits_t code);
exits_t exits_of_store (store_code_t code);

/* Logs one line under the code's id and returns the code: "return exits_fail
 * (EXITS_DATA, text)". */
exits_t exits_fail (exits_t code, const char *text);
/* The store failed for good: one line, then the process ends at once. Nothing more is answered,
 * written or guessed (A23). Any thread. */
_Noreturn void exits_store_failed (const store_error_t *error);

#endif
