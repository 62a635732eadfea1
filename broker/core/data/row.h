/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows: what has no table of its own. A feature that keeps something new adds a kind to the map
 * below, with its key and body; the store knows how to keep, look up and list every kind.
 *
 * A key is bytes whose order is the order of the rows: texts end with a NUL, numbers stand with
 * their highest byte first (row_key_text, row_key_number). A body is whatever its kind packs. */
#ifndef TASKMQ_CORE_DATA_ROW_H
#define TASKMQ_CORE_DATA_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/buf.h"

/* X (NAME, number, name, home, key). The number is stored: it is never given to another kind.
 * home LIVE: every row is handed to the engine at a start and stays in memory; TABLES: it is read
 * when it is wanted. */
#define ROW_KIND_MAP(X)                                                                            \
    X (TEST, 1, "test", TABLES, "any bytes; of the tests alone")                                   \
    X (TEST_LIVE, 2, "test-live", LIVE, "any bytes; of the tests alone")                           \
    X (FORGOTTEN, 3, "forgotten", LIVE, "one row: the highest sequence of forgotten namespaces")   \
    X (ORDER, 24, "order", TABLES, "one row: which numbers have times that do not rise with them") \
    X (AUDIT_HEAD, 4, "audit-head", LIVE, "a broker: where its record of deeds stood")             \
    X (ALIKE, 28, "alike", LIVE, "one row: which access file and server key the owner has")        \
    X (QUARANTINE, 5, "quarantine", TABLES, "namespace, task, attempt: a success that came late")  \
    X (LATE, 20, "late", LIVE, "namespace, task, attempt: what is known of such a success")        \
    X (CHECKPOINT, 6, "checkpoint", TABLES, "namespace, task: what a worker keeps of its work")    \
    X (TURN, 21, "turn", TABLES, "namespace, task, place: what a worker told of a turn")           \
    X (BLOB, 23, "blob", LIVE, "hash: that tasks name, and how many")                              \
    X (BLOB_SHARE, 27, "blob-share", LIVE, "hash, owner: how many of those tasks are his")         \
    X (TURNS_LEFT, 22, "turns-left", LIVE, "namespace, task: gone, but its turns are not yet")     \
    X (ARTIFACT, 25, "artifact", TABLES, "namespace, task, place: the bytes of a small one")       \
    X (ARTIFACTS_LEFT, 26, "artifacts-left", LIVE, "namespace, task: gone, but its artifacts not") \
    X (QUEUE, 7, "queue", LIVE, "namespace, queue: what is set for it")                            \
    X (QUESTION, 9, "question", LIVE, "namespace, task, key: of a live task, open or answered")    \
    X (SESSION, 10, "session", LIVE, "namespace, name: how it stands, and what is set")            \
    X (SCHEDULE, 14, "schedule", LIVE, "namespace, name")                                          \
    X (VALUE, 11, "value", TABLES, "namespace, session, key (without a NUL)")                      \
    X (ENTRIES, 19, "entries", LIVE, "namespace: how much it keeps beside its tasks")              \
    X (WORKER, 15, "worker", LIVE, "namespace, worker's id: who works here, and who did")          \
    X (ITEM, 12, "item", TABLES, "namespace, session, box, number")                                \
    X (BOX, 13, "box", TABLES, "namespace, session, box: as long as it has items")

typedef enum row_kind {
    ROW_KIND_NONE = 0,
#define X(NAME, number, name, home, key) ROW_KIND_##NAME = (number),
    ROW_KIND_MAP (X)
#undef X
} row_kind_t;

typedef enum row_home { ROW_HOME_TABLES, ROW_HOME_LIVE } row_home_t;

enum {
    ROW_KINDS_MAX = 64,              /* numbers of kinds stay below */
    ROW_KEY_BYTES_MAX = 512,         /* several names of a task, a number and an id */
    ROW_BODY_BYTES_MAX = 1024 * 1024 /* as a result; larger things are cut by their kind */
};

/* NULL for a number that is no kind: of a newer version, or damaged. */
const char *row_kind_name (row_kind_t kind);
row_home_t row_kind_home (row_kind_t kind);

/* One row, or the removal of one. */
typedef struct row {
    row_kind_t kind;
    bool gone; /* there is no such row (any more); the body is NULL */
    buf_t *key;
    buf_t *body;        /* NULL: empty */
    int64_t expires_at; /* wall: then the sweep removes it; 0: never */
} row_t;

/* Copies key and body. The lengths are within their limits: a kind checks what peers give it. */
row_t row_make (row_kind_t kind, const void *key, size_t key_bytes, const void *body,
                size_t body_bytes);
row_t row_make_gone (row_kind_t kind, const void *key, size_t key_bytes);
row_t row_keep (const row_t *row);          /* a copy that shares key and body */
row_t row_keep_bare (const row_t *row);     /* … the key alone */
void row_drop (row_t *row);                 /* gives key and body back; accepts an all-zero row */
void rows_free (row_t *rows, size_t count); /* an array of them */
/* By kind, then key, as memcmp orders them. */
int row_compare (const row_t *a, const row_t *b);
bool row_key_begins_with (const buf_t *key, const buf_t *prefix); /* NULL: every key */
size_t row_bytes (const row_t *row);                              /* memory, about */
/* Kind, key and body are what may be stored. */
bool row_is_valid (const row_t *row);

/* A key in the making. */
typedef struct row_key {
    uint8_t bytes[ROW_KEY_BYTES_MAX];
    size_t length;
} row_key_t;
#define ROW_KEY_INIT                                                                               \
    {                                                                                              \
        {0}, 0                                                                                     \
    }

/* 8 bytes as row_key_number appends them; 0 for any other length. */
uint64_t row_number (const buf_t *bytes);
/* What is appended must fit: names and ids have limits of their own. */
void row_key_text (row_key_t *self, const char *text);
void row_key_number (row_key_t *self, uint64_t number);
void row_key_bytes (row_key_t *self, const void *bytes, size_t length);

#endif
