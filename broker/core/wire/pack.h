/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Events, tasks and leases in the wire's form. */
#ifndef TASKMQ_CORE_PACK_H
#define TASKMQ_CORE_PACK_H

#include "bytes.h"
#include "core/data/record.h"

typedef struct event {
    uint64_t seq;
    int64_t at;
    tmq_event_kind_t kind;
    const tmq_id_t *id; /* NULL: it is of no task, but of … */
    tmq_subject_t subject;
    const char *name;
    uint64_t number; /* of an item, of a turn; else 0 */
    const char *queue;
    const char *session;
    tmq_status_t status;
    tmq_status_t previous;
    uint32_t attempt;
    const char *worker;
    const char *actor;
    const char *message;
    const label_t *labels;
    size_t labels_count;
    uint64_t previous_seq;
    const char *owner; /* of the task: who may see the event is judged by it */
    const char *trace; /* NULL: none */
} event_t;
/* Numbers of fields in taskmq.proto that several rooms write: of BrokerMessage, … */
enum {
    BROKER_REPLIES = 1,
    BROKER_ASSIGNMENTS = 2,
    BROKER_CANCELS = 3,
    BROKER_NOTICES = 4,
    BROKER_EVENTS = 5,
    BROKER_SNAPSHOT = 6,
    BROKER_GAP = 7,
    BROKER_ANSWERS = 8,
    BROKER_DRAINS = 9
};
/* … and of pages. */
enum { TASK_PAGE_TASKS = 1, TASK_PAGE_NEXT = 2 };
enum { EVENT_PAGE_LIST = 1, EVENT_PAGE_BEFORE_SEQ = 2 };
enum { SNAPSHOT_SUBSCRIPTION = 1, SNAPSHOT_TASKS = 2, SNAPSHOT_LAST = 3 };

/* Of an envelope of 64 KiB: room for the wrapping of one more item. */
enum { ENVELOPE_FILL_BYTES = 60 * 1024 };

void pack_event (bytes_t *out, const event_t *event); /* one element of an EventList */
/* The rest is packed as field of an enclosing message. */
/* What of the second frame belongs to a task: its body, and behind it the data of its error, where
 * that is too long for an envelope. */
typedef struct pack_bodies {
    uint32_t body;
    uint32_t error;
} pack_bodies_t;

/* bare: without what RIGHT_BODY is needed for. */
void pack_task (bytes_t *out, uint32_t field, const record_t *record, tmq_phase_t phase, bool bare,
                pack_bodies_t bodies);
/* How long the data of its error is, if that is too long for an envelope; else 0. */
uint32_t pack_long_data (const record_t *record);
void pack_labels (bytes_t *out, uint32_t field, const label_t *labels, size_t count);
void pack_lease_state (bytes_t *out, uint32_t field, const uint8_t *id, uint32_t attempt,
                       tmq_code_t code, uint32_t lease_ms, uint32_t answers);

#endif
