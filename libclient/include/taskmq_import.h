/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Import: tasks as they were in another broker, or here before a backup was lost. A part of
 * taskmq.h, which includes it. */
#ifndef TASKMQ_IMPORT_H
#define TASKMQ_IMPORT_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Import. */

/* An attempt that did not complete its task. */
typedef struct tmq_imported_attempt {
    uint32_t attempt;
    const char *worker; /* name of who had it, or NULL */
    uint64_t started_at;
    uint64_t ended_at;
    tmq_event_kind_t how; /* RELEASED, ATTEMPT_FAILED, LEASE_LOST, FAILED or CANCELLED */
    int32_t error_code;
    const char *error_message; /* at most 1 KiB, or NULL */
} tmq_imported_attempt_t;

/* A turn; its place and its number follow from the order. */
typedef struct tmq_imported_turn {
    uint32_t attempt;
    const char *worker;
    const char *agent;
    const char *status;
    uint64_t started_at;
    uint64_t duration_ms;
    uint64_t told_at;
    bool superseded;
    const char *content;
    const char *tool_calls; /* JSON */
    const char *tool_log;
    const struct tmq_turn_file *files; /* of taskmq_turns.h */
    size_t files_count;
} tmq_imported_turn_t;

/* An artifact, as tmq_artifacts told of it. */
typedef struct tmq_imported_artifact {
    const char *name;
    const char *type;
    const void *bytes; /* length of them, of any length; or NULL, and … */
    size_t length;
    tmq_blob_t blob; /* … what tmq_blob_put gave to this client's identity */
    uint32_t attempt;
    uint64_t attached_at;
} tmq_imported_artifact_t;

/* A success that came too late, as tmq_attempts told of its attempt. */
typedef struct tmq_imported_late {
    uint32_t attempt; /* one of those above, which was not cancelled */
    const char *type;
    uint64_t at;
    uint64_t until;
    const void *result;
    size_t result_bytes;
    tmq_blob_t result_blob; /* in place of one that is larger than a frame */
} tmq_imported_late_t;

/* A task to be imported: what tmq_get, tmq_payload, tmq_attempts, tmq_turns, tmq_inbox and
 * tmq_artifacts told of it. Texts may be NULL. Later versions append members. */
typedef struct tmq_importation {
    size_t size; /* sizeof (tmq_import_t); set by the initialiser */
    tmq_id_t id;
    const char *queue;
    const char *session;
    tmq_status_t status; /* queued, input_required, completed, failed or cancelled */
    const char *status_message;
    uint8_t priority;
    const char *method;
    const char *content_type;
    const char *dedup_key;
    const char *meta;
    const tmq_label_t *labels;
    size_t labels_count;
    uint64_t created_at;
    uint64_t updated_at;
    uint64_t started_at;
    uint64_t finished_at;
    uint64_t expires_at; /* 0: never */
    uint64_t not_before;
    uint64_t ttl_ms; /* 0: never */
    uint32_t poll_interval_ms;
    uint32_t lease_ms;
    uint32_t backoff_ms;
    uint32_t attempt;
    uint32_t failures;
    uint32_t max_attempts;
    const char *worker;
    double progress_done;
    double progress_total;
    const char *progress_unit;
    const char *progress_message;
    const void *payload;
    size_t payload_bytes;
    tmq_outcome_kind_t outcome;
    const void *result;
    size_t result_bytes;
    const char *result_type;
    int32_t error_code;
    const char *error_message;
    const char *error_data;
    bool dead;
    uint32_t version;
    uint64_t start_by;
    uint64_t max_runtime_ms;
    const char *trace;
    const char *cancel_message;
    const char *fair_key;
    const tmq_label_t *needs;
    size_t needs_count;
    const tmq_dependency_t *after; /* with the statuses that it was told of */
    size_t after_count;
    tmq_id_t parent; /* all zero: none */
    bool has_parts;
    uint32_t adopted_from;
    const tmq_imported_attempt_t *attempts; /* at most 1,000, rising numbers */
    size_t attempts_count;
    const tmq_imported_turn_t *turns; /* at most 1,000, all of them in their order */
    size_t turns_count;
    /* Those that are open, at most 64: exactly a task that is input_required has some. Their number
     * and what they say of the task do not count. */
    const struct tmq_question *questions; /* of taskmq_questions.h */
    size_t questions_count;
    /* In place of a payload or a result that is larger than a frame: what tmq_blob_put gave to this
     * client's identity. bytes 0: none. */
    tmq_blob_t payload_blob;
    tmq_blob_t result_blob;
    const tmq_imported_artifact_t *artifacts; /* at most 100, each name once */
    size_t artifacts_count;
    /* At most 3, rising attempts; of a task that is completed or cancelled none. */
    const tmq_imported_late_t *late;
    size_t late_count;
} tmq_import_t;
TMQ_API void tmq_import_init (tmq_import_t *task, size_t size);
#define tmq_import_init(task) tmq_import_init ((task), sizeof *(task))

/* Imports count tasks, each for itself and in their order: the same id, status, times, outcome,
 * attempts, turns, open questions, artifacts and late successes; one event `imported`. Their owner
 * is who imports them, their namespace that of the client. A task of at most 4 MiB with its turns,
 * beside what is uploaded: this call uploads the bytes of artifacts that are larger than a frame,
 * or for which the task has no room. Needs the right to submit. out has count receipts, which
 * always tell about every task; the code is 0, or that of the first that did not come. A task that
 * is there already, with the same queue, method, session and payload, is `existing`, and nothing of
 * it is changed. So after TMQ_UNKNOWN the call may be repeated. Blocks. Codes of a task:
 * TMQ_CONFLICT (the id or the key belongs to another one), TMQ_EXPIRED (its time to live is over),
 * TMQ_PURGED (it was here and was removed), TMQ_NOT_FOUND (it waits for a task that is not here),
 * TMQ_INVALID, TMQ_TOO_LARGE, TMQ_LIMIT, TMQ_STORE_FULL, TMQ_DENIED, TMQ_NO_BLOB (a blob is to be
 * put first, or again: tmq_blob_put), those of tmq_blob_put. */
TMQ_API int tmq_import (tmq_receipt_t *out, tmq_client_t *client, const tmq_import_t *tasks,
                        size_t count, uint32_t timeout_ms, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
