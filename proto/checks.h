/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the validator checks requests with: one function for each kind of request, and what they
 * are made of. A check stops at the first thing that is wrong and says which member it was and what
 * it must be. */
#ifndef TASKMQ_CHECKS_H
#define TASKMQ_CHECKS_H

#include "validate.h"

/* One request under judgement. */
typedef struct check {
    arena_t *arena;
    verdict_t *verdict;
    const verdict_t *items;    /* see request_verdict_t */
    const codec_flaw_t *flaws; /* this request's first, NULL if it has none */
} check_t;

/* What checks are made of (checks.c). */
/* Always false: for `return check_refuse (…)`. */
__attribute__ ((format (printf, 3, 4))) bool check_refuse (check_t *check, tmq_code_t code,
                                                           const char *format, ...);
bool check_name (check_t *check, const char *member, const char *name);
bool check_name_or_empty (check_t *check, const char *member, const char *name);
bool check_text (check_t *check, const char *member, const char *text, size_t bytes_max);
bool check_16_bytes (check_t *check, const char *member, const ProtobufCBinaryData *data);
/* Finite and not negative. */
bool check_amount (check_t *check, const char *member, double value);
bool check_range (check_t *check, const char *member, uint64_t value, uint64_t min, uint64_t max);
bool check_count (check_t *check, const char *member, size_t count, size_t min, size_t max);
bool check_body (check_t *check, const char *member, uint32_t bytes);
bool check_json (check_t *check, const char *member, const char *text, size_t bytes_max,
                 bool object);
bool check_names (check_t *check, const char *member, char *const *names, size_t count);
bool check_ids (check_t *check, const char *member, const ProtobufCBinaryData *ids, size_t count);
bool check_labels (check_t *check, Taskmq__Label *const *labels, size_t count);
bool check_needs (check_t *check, const Taskmq__Extra *extra);
bool check_lease (check_t *check, const Taskmq__Lease *lease);
bool check_leases (check_t *check, Taskmq__Lease *const *leases, size_t count, size_t min);
/* What a question asks, and the answer that counts when nobody gives one (checks_tasks.c). */
bool check_asked (check_t *check, const char *request);
bool check_default (check_t *check, bool given, bool is_text, const char *answer);

/* Tasks (checks_tasks.c). */
bool check_spec (check_t *check, const Taskmq__TaskSpec *task);
/* Judges the items one by one; the request itself stands as long as their number is right. */
bool check_submit (check_t *check, const Taskmq__Request *request);
/* What it says of itself; the task is judged when it is whole (imported.h). */
bool check_import (check_t *check, const Taskmq__Request *request);
bool check_get (check_t *check, const Taskmq__Request *request);
bool check_result (check_t *check, const Taskmq__Request *request);
bool check_payload (check_t *check, const Taskmq__Request *request);
bool check_resolve (check_t *check, const Taskmq__Request *request);
bool check_filter (check_t *check, const Taskmq__Filter *filter);
bool check_list (check_t *check, const Taskmq__Request *request);
bool check_search (check_t *check, const Taskmq__Request *request);
bool check_filter_of_count (check_t *check, const Taskmq__Request *request);
bool check_task_events (check_t *check, const Taskmq__Request *request);
bool check_why (check_t *check, const Taskmq__Request *request);
bool check_cancel (check_t *check, const Taskmq__Request *request);
bool check_wait (check_t *check, const Taskmq__Request *request);
bool check_answer (check_t *check, const Taskmq__Request *request);
bool check_inbox (check_t *check, const Taskmq__Request *request);
bool check_ask (check_t *check, const Taskmq__Request *request);
bool check_take_answers (check_t *check, const Taskmq__Request *request);
bool check_log (check_t *check, const Taskmq__Request *request);
bool check_read_log (check_t *check, const Taskmq__Request *request);
/* What a request names as its blob: it is larger than a frame, … */
bool check_blob (check_t *check, const char *member, const Taskmq__Blob *blob);
/* … or an artifact that is imported. */
bool check_uploaded (check_t *check, const char *member, const Taskmq__Blob *blob);
bool check_artifact_name (check_t *check, const char *name);
bool check_blob_begin (check_t *check, const Taskmq__Request *request);
bool check_blob_chunk (check_t *check, const Taskmq__Request *request);
bool check_blob_drop (check_t *check, const Taskmq__Request *request);
bool check_blob_read (check_t *check, const Taskmq__Request *request);
bool check_checkpoint (check_t *check, const Taskmq__Request *request);
bool check_checkpoint_read (check_t *check, const Taskmq__Request *request);
bool check_retry (check_t *check, const Taskmq__Request *request);
bool check_resume (check_t *check, const Taskmq__Request *request);
bool check_purge (check_t *check, const Taskmq__Request *request);
bool check_adopt (check_t *check, const Taskmq__Request *request);
bool check_attempts (check_t *check, const Taskmq__Request *request);
bool check_artifact (check_t *check, const Taskmq__Request *request);
bool check_artifacts (check_t *check, const Taskmq__Request *request);
bool check_turn (check_t *check, const Taskmq__Request *request);
bool check_turns (check_t *check, const Taskmq__Request *request);
bool check_set (check_t *check, const Taskmq__Request *request);

/* Subscriptions and workers (checks_workers.c). */
bool check_subscribe (check_t *check, const Taskmq__Request *request);
bool check_credit (check_t *check, const Taskmq__Request *request);
bool check_unsubscribe (check_t *check, const Taskmq__Request *request);
bool check_register (check_t *check, const Taskmq__Request *request);
bool check_worker_credit (check_t *check, const Taskmq__Request *request);
bool check_started (check_t *check, const Taskmq__Request *request);
bool check_renew (check_t *check, const Taskmq__Request *request);
bool check_push (check_t *check, const Taskmq__Request *request);
bool check_cancel_ack (check_t *check, const Taskmq__Request *request);
bool check_complete (check_t *check, const Taskmq__Request *request);
bool check_fail (check_t *check, const Taskmq__Request *request);
bool check_release (check_t *check, const Taskmq__Request *request);
bool check_leave (check_t *check, const Taskmq__Request *request);
bool check_worker_list (check_t *check, const Taskmq__Request *request);
bool check_worker_show (check_t *check, const Taskmq__Request *request);
bool check_worker_drain (check_t *check, const Taskmq__Request *request);

/* The broker, its queues, and what stands beside tasks (checks_broker.c). */
bool check_enroll (check_t *check, const Taskmq__Request *request);
bool check_key_trust (check_t *check, const Taskmq__Request *request);
bool check_key_revoke (check_t *check, const Taskmq__Request *request);
bool check_invite (check_t *check, const Taskmq__Request *request);
bool check_invite_revoke (check_t *check, const Taskmq__Request *request);
bool check_rotate (check_t *check, const Taskmq__Request *request);
bool check_audit (check_t *check, const Taskmq__Request *request);
/* Calendar and zone are judged by the broker, which has the zones. */
bool check_schedule_put (check_t *check, const Taskmq__Request *request);
bool check_schedule_list (check_t *check, const Taskmq__Request *request);
bool check_backup (check_t *check, const Taskmq__Request *request);
bool check_queue_list (check_t *check, const Taskmq__Request *request);
bool check_queue_show (check_t *check, const Taskmq__Request *request);
bool check_queue_pause (check_t *check, const Taskmq__Request *request);
bool check_queue_resume (check_t *check, const Taskmq__Request *request);
bool check_cleanup (check_t *check, const Taskmq__Request *request);
bool check_queue_set (check_t *check, const Taskmq__Request *request);
bool check_session_set (check_t *check, const Taskmq__Request *request);
bool check_session_show (check_t *check, const Taskmq__Request *request);
bool check_session_list (check_t *check, const Taskmq__Request *request);
bool check_session_status (check_t *check, const Taskmq__Request *request);
bool check_session_remove (check_t *check, const Taskmq__Request *request);
bool check_value_put (check_t *check, const Taskmq__Request *request);
bool check_value_get (check_t *check, const Taskmq__Request *request);
bool check_value_list (check_t *check, const Taskmq__Request *request);
bool check_item_put (check_t *check, const Taskmq__Request *request);
bool check_item_read (check_t *check, const Taskmq__Request *request);
bool check_item_ack (check_t *check, const Taskmq__Request *request);
bool check_value_remove (check_t *check, const Taskmq__Request *request);
bool check_schedule_show (check_t *check, const Taskmq__Request *request);
bool check_schedule_pause (check_t *check, const Taskmq__Request *request);
bool check_schedule_resume (check_t *check, const Taskmq__Request *request);
bool check_schedule_remove (check_t *check, const Taskmq__Request *request);

#endif
