/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line of an export, as the task that it tells of. */
#ifndef TASKCTL_IMPORT_LINE_H
#define TASKCTL_IMPORT_LINE_H

#include "json.h"
#include "screen/pieces.h"
#include "taskmq.h"

enum { IMPORT_WHY_SIZE = 256 };

/* A body that the line names by hash. */
typedef struct import_body {
    const char *what; /* "payload", "result" */
    tmq_blob_t blob;
} import_body_t;

enum { IMPORT_BODIES_MAX = 2 };

typedef struct import_line {
    tmq_import_t task; /* points into the memory below */
    piece_t object;    /* the line without white space */
    bytes_t compact;
    tmq_status_t status; /* that it says: one that was being worked on becomes queued */
    bool redacted;       /* who wrote it replaced what looked secret */
    import_body_t bodies[IMPORT_BODIES_MAX];
    size_t bodies_count;
    /* What of it does not come along. */
    size_t events;
    size_t kept; /* late successes */
    size_t questions;
    void **owned;
    size_t owned_count;
    char why[IMPORT_WHY_SIZE]; /* what is wrong with it */
} import_line_t;

/* False: why says what is wrong. To be cleared in any case. */
bool import_line_read (import_line_t *self, const char *line, size_t length);
void import_line_clear (import_line_t *self);
/* What of the task differs in these two lines, by the name of its key; NULL: nothing that an import
 * brings. */
const char *import_line_differs (piece_t line, piece_t other);

#endif
