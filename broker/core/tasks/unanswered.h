/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The open questions of a namespace in the order of their numbers: what the inbox reads. */
#ifndef TASKMQ_CORE_UNANSWERED_H
#define TASKMQ_CORE_UNANSWERED_H

#include <stddef.h>
#include <stdint.h>

typedef struct unanswered_entry {
    uint64_t number;
    struct question *question; /* NULL: it was answered, or went with its task */
} unanswered_entry_t;

typedef struct unanswered {
    unanswered_entry_t *list; /* rising numbers, with holes */
    size_t count;
    size_t capacity;
    size_t open; /* of them, that are no holes */
} unanswered_t;  /* zeroed memory is an empty list */

void unanswered_add (unanswered_t *self, uint64_t number, struct question *question);
void unanswered_remove (unanswered_t *self, uint64_t number); /* it must be there */
/* The first one behind the number `after`, and with the same cursor those that follow; NULL: no
 * more. The list must not change meanwhile. */
struct question *unanswered_next (const unanswered_t *self, uint64_t after, size_t *cursor);
#define UNANSWERED_START SIZE_MAX
void unanswered_clear (unanswered_t *self); /* the list, not the questions */

#endif
