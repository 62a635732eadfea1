/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A payload or a result that is larger than a frame, in a file without a name: fetched before its
 * program starts, or written by it, piece by piece. */
#ifndef TASKCTL_BODY_H
#define TASKCTL_BODY_H

#include <sodium.h>
#include <taskmq.h>

typedef struct body {
    int fd; /* -1: none */
    uint64_t bytes;
    crypto_generichash_state *hash; /* of them; it wants to lie well */
} body_t;

void body_init (body_t *self);
void body_drop (body_t *self);
/* Reads on in a file that stays the caller's, whose bytes are the body: at most length of them. 0
 * at its end, -1 with errno. */
ssize_t body_take (body_t *self, int fd, char *piece, size_t length);
/* The next bytes; false with errno. */
bool body_add (body_t *self, const void *bytes, size_t length);
/* What it is now. */
tmq_blob_t body_blob (const body_t *self);
/* It is whole, and its bytes are those of the hash. */
bool body_is (const body_t *self, const tmq_blob_t *blob);

#endif
