/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task that comes from another broker: its pieces together, decoded and judged.
 *
 * Pure. Whatever stands in the bytes, the answer is a message that the broker may build a task of,
 * or what is wrong with it. Clocks, rooms and what is there already are the broker's to judge. */
#ifndef TASKMQ_PROTO_IMPORTED_H
#define TASKMQ_PROTO_IMPORTED_H

#include "validate.h"

enum {
    /* Texts and bodies are copied; a task of many small members takes a few times its bytes. */
    IMPORTED_ARENA_BYTES = 4 * TMQ_IMPORT_BYTES_MAX + 1024 * 1024
};

/* NULL: out says why. Texts and message live in the arena. */
const Taskmq__ImportedTask *imported_read (verdict_t *out, arena_t *arena, const void *bytes,
                                           size_t length);

#endif
