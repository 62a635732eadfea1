/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Public records out of messages. */
#ifndef TASKMQ_CLIENT_RECORDS_H
#define TASKMQ_CLIENT_RECORDS_H

#include "taskmq.h"
#include "taskmq.pb-c.h"

/* Each is one piece of memory; NULL when it is exhausted. */
/* body: what of the second frame belongs to the task (Task.body, then TaskError.body); NULL: the
 * message has none for it. */
tmq_task_t *core_task_record (const Taskmq__Task *task, const uint8_t *body);
tmq_event_t *core_event_record (const Taskmq__Event *event, const char *ns, uint64_t generation);
tmq_event_t *core_notice_record (const Taskmq__Notice *notice, const char *ns);
/* An item that is neither an event nor a notice. */
tmq_event_t *core_item_record (tmq_item_kind_t kind, const char *ns);
tmq_assignment_t *core_assignment_record (const Taskmq__Assignment *in, const void *payload);
tmq_task_list_t *core_task_list_record (const Taskmq__TaskPage *page);
tmq_event_list_t *core_event_list_record (const Taskmq__EventPage *page, const char *ns,
                                          uint64_t generation);
/* body: in->body bytes. */
tmq_part_t *core_part_record (const Taskmq__Part *in, const void *body);
tmq_value_t *core_value_record (const Taskmq__Value *in, const void *body);
tmq_value_list_t *core_value_list_record (const Taskmq__ValuePage *page);
/* body: page->body bytes. */
tmq_item_list_t *core_item_list_record (const Taskmq__ItemPage *page, const uint8_t *body);
tmq_part_t *core_head_record (const Taskmq__AuditAt *in); /* a hash of 32 bytes */
tmq_cleanup_state_t *core_cleanup_record (const Taskmq__CleanupPage *in);
tmq_vacuum_state_t *core_vacuum_record (const Taskmq__Vacuumed *in);
tmq_stats_t *core_stats_record (const Taskmq__StatsReport *report);
/* page->next: at most TMQ_CURSOR_BYTES_MAX bytes. */
tmq_queue_report_t *core_queues_record (const Taskmq__QueuePage *page);
/* Bytes that the record takes in memory. */
size_t core_event_bytes (const tmq_event_t *event);
void core_cursor_format (char out[48], uint64_t generation, uint64_t seq);

tmq_explanation_t *core_explanation_record (const Taskmq__Explanation *in);
tmq_attempt_list_t *core_attempts_record (const Taskmq__AttemptPage *in);

#endif
