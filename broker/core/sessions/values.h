/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Values: bytes under a key, of a session or of the namespace itself. */
#ifndef TASKMQ_CORE_VALUES_H
#define TASKMQ_CORE_VALUES_H

#include "core/data/row.h"
#include "core/sessions/sessions.h"
#include "core/tasks/puts.h"

/* How many puts a value remembers, so that a repeat of one gets its first answer. */
enum { VALUE_PUTS_MAX = 4 };

typedef struct value {
    uint64_t version; /* sequence of its newest event: it only grows, also beyond a removal */
    int64_t updated_at;
    char owner[TMQ_OWNER_BYTES_MAX + 1]; /* who made it */
    char actor[TMQ_OWNER_BYTES_MAX + 1]; /* who put it last */
    puts_t puts;                         /* the newest, each with its version */
    const uint8_t *bytes;                /* borrowed from the row */
    size_t length;
} value_t;

/* Whose value it is. */
typedef struct value_name {
    space_t *space;
    const char *session; /* empty: the namespace's */
    const char *key;
} value_name_t;

/* A change of a value. */
typedef struct value_change {
    const char *actor;
    const uint8_t *request_id;
    const uint8_t *bytes;
    size_t length;
} value_change_t;

/* The key of its row; without a key, what the keys of all its session's values begin with. */
void value_row_key (row_key_t *out, const char *ns, const char *session, const char *key);
/* The key that the row's key ends with; not NUL-terminated. */
const char *value_key_of (const buf_t *row_key, size_t *length);
/* False: it is none. */
bool value_unpack (value_t *out, const buf_t *body);

/* Puts it, with an event. value is what it was (of zeros: there was none), and what it is then. */
void value_put (sessions_t *self, const value_name_t *name, const value_change_t *change,
                value_t *value);
void value_remove (sessions_t *self, const value_name_t *name, const char *actor,
                   const value_t *value);

#endif
