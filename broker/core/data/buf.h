/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Immutable bytes with a counted life, shared between threads. */
#ifndef TASKMQ_CORE_BUF_H
#define TASKMQ_CORE_BUF_H

#include <stddef.h>
#include <stdint.h>

/* Immutable bytes with a counted life. The count is atomic: any thread may keep and drop. */
typedef struct buf buf_t;

/* Copies length bytes; the caller holds the only reference. Aborts when memory is exhausted. */
buf_t *buf_new (const void *bytes, size_t length);
/* As buf_new, with undefined contents to be filled through buf_mutable before it is shared. */
buf_t *buf_new_uninitialised (size_t length);
uint8_t *buf_mutable (buf_t *self);
buf_t *buf_keep (buf_t *self);                /* one more reference; accepts and returns NULL */
void buf_drop (buf_t *self);                  /* accepts NULL */
const uint8_t *buf_bytes (const buf_t *self); /* NULL gives an empty, non-NULL pointer */
size_t buf_length (const buf_t *self);        /* 0 for NULL */

#endif
