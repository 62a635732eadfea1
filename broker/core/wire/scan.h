/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Packed events looked at without unpacking them. */
#ifndef TASKMQ_CORE_SCAN_H
#define TASKMQ_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/record.h"

/* What an event's packed form says, as far as filters and cursors need it. Texts are not
 * NUL-terminated. */
typedef struct scanned {
    const uint8_t *element; /* its element of the EventList, tag and length included */
    size_t element_bytes;
    const uint8_t *event;
    size_t event_bytes;
    uint64_t seq;
    uint64_t previous_seq;
    uint64_t status;
    uint64_t subject;  /* 0: a task */
    const uint8_t *id; /* NULL, or 16 bytes */
    const uint8_t *queue;
    size_t queue_bytes;
    const uint8_t *session;
    size_t session_bytes;
    const uint8_t *owner;
    size_t owner_bytes;
    const uint8_t *name;
    size_t name_bytes;
} scanned_t;
/* The event at *at, which moves behind it; false at the end, or where the bytes are damaged. */
bool scan_event (const uint8_t **at, const uint8_t *end, scanned_t *out);
/* The event carries the label; one with an empty value is told by its key alone. */
bool scan_has_label (const scanned_t *event, const label_t *label);

#endif
