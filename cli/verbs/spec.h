/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task to be submitted, as options or a line of a batch file describe it. */
#ifndef TASKCTL_SPEC_H
#define TASKCTL_SPEC_H

#include "json.h"
#include "line/app.h"

/* A tmq_submit_t with the memory that it points into. */
typedef struct spec {
    tmq_submit_t submit;
    const option_spec_t *options; /* of the command submit */
    tmq_label_t labels[TMQ_LABELS_MAX];
    tmq_label_t needs[TMQ_NEEDS_MAX];
    tmq_dependency_t *after; /* owned */
    const tmq_id_t *earlier; /* ids of earlier lines, zero for one that has no task; or NULL */
    size_t earlier_count;    /* line N is at N - 1 */
    bool takes_files;        /* the payload may be larger than a frame … */
    int file;                /* … and is in this file then; -1: it is not */
    uint64_t file_bytes;
    char **owned; /* freed with the spec */
    size_t owned_count;
} spec_t;

void spec_init (spec_t *self, const option_spec_t *options);
void spec_clear (spec_t *self);

/* From the command line, whose operand number `queue` is the queue; the payload may be read from a
 * file or stdin. 0 or an exit code. */
int spec_from_args (spec_t *self, app_t *app, size_t queue);
/* From one line of a batch file. False with a text that says what is wrong. */
bool spec_from_line (spec_t *self, const char *line, size_t length, char *why, size_t why_size);
/* A policy of --after by its name, and back. */
const char *after_name (tmq_after_t policy);
bool after_find (tmq_after_t *out, const char *name);
/* As a line of a batch file; of a payload that is in a file it has the length alone. */
void spec_write (json_writer_t *writer, const spec_t *self);

#endif
