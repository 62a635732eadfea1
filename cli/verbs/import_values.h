/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line that is imported, and what stands under its keys. Each of the functions gives false with
 * what is wrong in self->why; what is absent or null is right, and leaves *out as it was. What they
 * give belongs to the line. */
#ifndef TASKCTL_IMPORT_VALUES_H
#define TASKCTL_IMPORT_VALUES_H

#include "json.h"
#include "screen/pieces.h"
#include "taskmq.h"

enum { IMPORT_WHY_SIZE = 256 };

/* A body that the line names by hash. */
typedef struct import_body {
    const char *what; /* "payload", "result", "artifact plot.png" */
    tmq_blob_t blob;
} import_body_t;

/* Payload, result, artifacts, late successes. */
enum { IMPORT_BODIES_MAX = 2 + TMQ_ARTIFACTS_MAX + TMQ_KEPT_TASK_MAX };

typedef struct import_line {
    tmq_import_t task; /* points into the memory below */
    piece_t object;    /* the line without white space */
    bytes_t compact;
    tmq_status_t status; /* that it says: one that was being worked on becomes queued */
    bool redacted;       /* who wrote it replaced what looked secret */
    import_body_t *bodies;
    size_t bodies_count;
    tmq_imported_late_t *late; /* task.late */
    /* What of it does not come along. */
    size_t events;
    size_t kept; /* late successes: their time is over, or the line has not their bytes */
    size_t questions;
    void **owned;
    size_t owned_count;
    char why[IMPORT_WHY_SIZE]; /* what is wrong with it */
} import_line_t;

/* Memory of the line, all zero: count things, and one more. */
void *line_room (import_line_t *self, size_t count, size_t size);

/* Always false. */
__attribute__ ((format (printf, 2, 3))) bool line_wrong (import_line_t *self, const char *format,
                                                         ...);
/* The same, when that was found in the nth (from 1) of what the key has; 0: there is one. */
bool line_wrong_in (import_line_t *self, const char *key, size_t nth);

/* False: there is none, or it is null. */
bool line_find (piece_t *out, piece_t object, const char *key);
/* A string without its quotes and escapes; NULL: it is none. */
char *line_decode (import_line_t *self, piece_t piece, size_t *length);

/* An array of objects, and how many; an object. at NULL: there is none. */
bool line_array (import_line_t *self, piece_t *out, size_t *count, piece_t object, const char *key);
bool line_object (import_line_t *self, piece_t *out, piece_t object, const char *key);

bool line_text (import_line_t *self, const char **out, piece_t object, const char *key);
/* As it stands there: for JSON that is passed on. */
bool line_raw (import_line_t *self, const char **out, piece_t object, const char *key);
bool line_number (import_line_t *self, uint64_t *out, piece_t object, const char *key,
                  uint64_t max);
bool line_number_32 (import_line_t *self, uint32_t *out, piece_t object, const char *key);
bool line_code (import_line_t *self, int32_t *out, piece_t object);
bool line_amount (import_line_t *self, double *out, piece_t object, const char *key);
bool line_bool (import_line_t *self, bool *out, piece_t object, const char *key);
bool line_time (import_line_t *self, uint64_t *out, piece_t object, const char *key);
bool line_id (import_line_t *self, tmq_id_t *out, piece_t object, const char *key);
/* An object of strings, of at most max members. */
bool line_pairs (import_line_t *self, const tmq_label_t **out, size_t *count, piece_t object,
                 const char *key, size_t max);
/* 64 hexadecimal digits; here it is wrong if there is none. */
bool line_hash (import_line_t *self, uint8_t hash[TMQ_BLOB_HASH_BYTES], piece_t object,
                const char *key);

#endif
