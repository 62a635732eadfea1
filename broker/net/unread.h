/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bytes that were given to ZeroMQ and have not left yet: a high-water mark counts messages, of a
 * few bytes or of 320 KiB alike. Given by the server's thread, taken by ZeroMQ's own when a message
 * has left or its connection has ended, which may be after the peer was forgotten. */
#ifndef TASKMQ_NET_UNREAD_H
#define TASKMQ_NET_UNREAD_H

#include <stdbool.h>
#include <stddef.h>

enum {
    /* Of one peer, unless the options say otherwise. Three times what a client may have asked for
     * at a time (4 large answers). */
    UNREAD_BYTES = 4 * 1024 * 1024,
    UNREAD_ALL_BYTES = 128 * 1024 * 1024, /* the same of all peers */
    UNREAD_FAIR_BYTES = 128 * 1024        /* of one, when all are over their limit */
};

/* Of all peers, or of one. */
typedef struct unread unread_t;

/* all: NULL for that of all, which each peer's refers to. bytes_max: from then on there is no
 * room. */
unread_t *unread_new (unread_t *all, size_t bytes_max);
/* The owner's end of it; it lives until the last byte has left. Accepts a NULL object. */
void unread_drop (unread_t **self);
size_t unread_bytes (const unread_t *self);
/* The peer may be given something more. */
bool unread_has_room (const unread_t *self);
void unread_add (unread_t *self, size_t bytes);
/* Any thread. */
void unread_remove (unread_t *self, size_t bytes);

#endif
