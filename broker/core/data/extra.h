/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What few tasks have: taskmq.Extra, kept beside a task and stored packed. A new member of that
 * message is journalled, stored, restored and sent without a line of code.
 *
 * A packed one is never changed, so records share it. */
#ifndef TASKMQ_CORE_EXTRA_H
#define TASKMQ_CORE_EXTRA_H

#include <stdbool.h>
#include <stddef.h>

#include "core/data/buf.h"
#include "taskmq.pb-c.h"
#include "taskmq_types.h"

typedef struct extra {
    Taskmq__Extra *fields;   /* never NULL; what it points to is its own (extra_set_text) */
    buf_t *packed;           /* the same; NULL: empty, or not packed since a change */
    struct blocked *blocked; /* while it waits for others to end (tasks/edges.h); or NULL */
    struct order *order; /* of its requirements, while the task lives (tasks/lanes.h); or NULL */
    bool changed;        /* fields are newer than packed */
    size_t counted;      /* bytes that the owner has counted for it */
} extra_t;

/* The bytes of a message, without what is unknown in it. NULL: there is nothing in it. */
buf_t *extra_pack (const Taskmq__Extra *fields);
/* The task that one with it is a part of; false: of none. */
bool extra_parent (const buf_t *packed, tmq_id_t *out);
/* The same without the hashes of what is too large for a row, for who may not see bodies: a hash
 * would tell whether a body is one that he knows. One more reference if it has none. */
buf_t *extra_without_hashes (buf_t *packed);
/* So many of its bytes are sent: artifacts stand behind them, and are read by themselves. */
size_t extra_sent_bytes (const buf_t *packed);
/* Of the payload of one with it, if that is too large for a row. */
uint64_t extra_blob_bytes (const buf_t *packed);
/* Of what a task with it leaves behind beside its row: turns, artifacts, and bodies too large for a
 * row. */
uint64_t extra_bytes_beside (const buf_t *packed);
/* A task with it waits for others to end. */
bool extra_waits (buf_t *packed);
/* What one with these fields takes in memory, about; 0 for NULL. */
size_t extra_bytes_of (const Taskmq__Extra *fields);

/* packed: what extra_pack made, or NULL; a reference is taken. */
extra_t *extra_new (buf_t *packed);
void extra_free (extra_t *self); /* accepts NULL */
/* Borrowed, until the next change. NULL for NULL, and when nothing is in it. */
buf_t *extra_packed (extra_t *self);
/* Sets a text of the fields to a copy; NULL or empty: none. */
void extra_set_text (char **place, const char *text);
/* The same with a blob; NULL: none. */
void extra_set_blob (Taskmq__Blob **place, const Taskmq__Blob *blob);
/* One more artifact, empty; extra_set_artifact makes it a copy of another. */
Taskmq__Artifact *extra_add_artifact (Taskmq__Extra *fields);
void extra_set_artifact (Taskmq__Artifact *artifact, const Taskmq__Artifact *from);

#endif
