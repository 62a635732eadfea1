/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Items: what was put into a box of a session or of the namespace, in order, until somebody
 * acknowledges it. */
#ifndef TASKMQ_CORE_ITEMS_H
#define TASKMQ_CORE_ITEMS_H

#include "core/data/row.h"
#include "core/sessions/sessions.h"
#include "core/tasks/puts.h"

/* How many puts a box remembers, so that a repeat of one gets its first answer. */
enum { BOX_PUTS_MAX = 32 };

typedef struct box {
    uint64_t count; /* of items that are in it; 0: there is no box */
    puts_t puts;    /* the newest, each with its item's number */
} box_t;

typedef struct item_entry {
    uint64_t number; /* sequence of its event */
    int64_t at;
    char owner[TMQ_OWNER_BYTES_MAX + 1]; /* who put it */
    char source[TMQ_ENTRY_NAME_BYTES_MAX + 1];
    char type[TMQ_ENTRY_NAME_BYTES_MAX + 1];
    uint32_t intensity;   /* in millionths */
    const uint8_t *bytes; /* borrowed from the row */
    size_t length;
} item_entry_t;

typedef struct box_name {
    space_t *space;
    const char *session; /* empty: the namespace's */
    const char *box;
} box_name_t;

/* The key of a box's row, and what those of its items begin with. */
void box_row_key (row_key_t *out, const char *ns, const char *session, const char *box);
void item_row_key (row_key_t *out, const char *ns, const char *session, const char *box,
                   uint64_t number);
/* The number that the key of an item's row ends with. */
uint64_t item_number_of (const buf_t *row_key);
bool box_unpack (box_t *out, const buf_t *body);
bool item_unpack (item_entry_t *out, const buf_t *body);

/* Puts it, with an event: item gets its number and time. */
void item_put (sessions_t *self, const box_name_t *name, box_t *box, item_entry_t *item,
               const uint8_t *request_id);
/* It goes with its box. */
void item_drop (sessions_t *self, const box_name_t *name, const item_entry_t *item,
                const char *actor);
/* It is acknowledged, and gone. The box is to be closed after the last one. */
void item_remove (sessions_t *self, const box_name_t *name, box_t *box, const item_entry_t *item,
                  const char *actor);
void box_close (sessions_t *self, const box_name_t *name, const box_t *box);

#endif
