/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks done again, changed and removed by hand, their attempts, and successes that came too late.
 * A part of taskmq.h, which includes it. */
#ifndef TASKMQ_AGAIN_H
#define TASKMQ_AGAIN_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The answer about one task. */
struct tmq_changed {
    tmq_id_t id;
    int code;            /* of this task; 0: it is done */
    tmq_status_t status; /* of the task now; 0: it is gone, or nothing is known of it */
    char text[256];      /* why it was refused */
};

/* The functions of this section take 1 or more ids; those that end in _start at most 256. out has
 * room for the answers, in the order of the ids, and is filled in any case. TMQ_OK: all were
 * answered, each with its own code. Other codes: those of any request; out tells which tasks were
 * answered before. They block until the answers are there.
 *
 * request_id is 16 bytes, or NULL: the library makes one. After TMQ_UNKNOWN the call may be
 * repeated with the same one: what was done is not done again, and gets the first answer.
 *
 * Codes of a task: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED, TMQ_DENIED, TMQ_WRONG_STATUS, TMQ_LIMIT.
 *
 * The _start functions return at once: the answer is a completion with `changed`. */

/* Queues tasks that failed or were cancelled once more, from the beginning: no outcome, no
 * progress, all attempts before them, and a new time to live. One whose worker has not stopped
 * since it was cancelled waits for that (TMQ_PHASE_BLOCKED). */
TMQ_API int tmq_retry (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *ids, size_t count,
                       const uint8_t *request_id, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_retry_start (tmq_client_t *client, const tmq_id_t *ids, size_t count,
                             const uint8_t *request_id, uint32_t timeout_ms, void *user,
                             tmq_error_t *error);
/* The same, but a task goes on from what its worker kept last. */
TMQ_API int tmq_resume (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *ids, size_t count,
                        const uint8_t *request_id, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_resume_start (tmq_client_t *client, const tmq_id_t *ids, size_t count,
                              const uint8_t *request_id, uint32_t timeout_ms, void *user,
                              tmq_error_t *error);
/* Removes tasks that have ended, with their bodies, before their time. Needs the role admin. To
 * remove what was purged already succeeds. */
TMQ_API int tmq_purge (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *ids, size_t count,
                       const uint8_t *request_id, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_purge_start (tmq_client_t *client, const tmq_id_t *ids, size_t count,
                             const uint8_t *request_id, uint32_t timeout_ms, void *user,
                             tmq_error_t *error);

/* What is to be changed. Later versions append members. */
typedef struct tmq_set_options {
    size_t size;               /* sizeof (tmq_set_t); set by the initialiser */
    bool ttl;                  /* ttl_ms is given: it counts from now on, or from not_before */
    uint64_t ttl_ms;           /* 0: never */
    int priority;              /* 0..255; -1: as it is */
    uint32_t max_attempts;     /* 0: as it is */
    int64_t not_before;        /* ms since the epoch; 0: at once; -1: as it is */
    const tmq_label_t *labels; /* are added, or get another value */
    size_t labels_count;
    const char *const *drop_labels; /* keys of labels that go */
    size_t drop_labels_count;
} tmq_set_t;
/* Nothing is to be changed. */
TMQ_API void tmq_set_init (tmq_set_t *set, size_t size);
#define tmq_set_init(set) tmq_set_init ((set), sizeof *(set))
/* Of a task that has ended only the ttl and the labels can be changed; not_before only of one that
 * is queued: else TMQ_WRONG_STATUS. */
TMQ_API int tmq_set (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *ids, size_t count,
                     const tmq_set_t *set, const uint8_t *request_id, uint32_t timeout_ms,
                     tmq_error_t *error);
TMQ_API int tmq_set_start (tmq_client_t *client, const tmq_id_t *ids, size_t count,
                           const tmq_set_t *set, const uint8_t *request_id, uint32_t timeout_ms,
                           void *user, tmq_error_t *error);

/* One attempt at a task. */
typedef struct tmq_attempt_info {
    uint32_t attempt;
    const char *worker;        /* name of who had it */
    int64_t started_at;        /* ms since the epoch; 0: its worker never said that it began */
    int64_t ended_at;          /* 0: it goes on */
    tmq_event_kind_t how;      /* the event that ended it; TMQ_EVENT_NONE: it goes on */
    int32_t error_code;        /* what it failed with; 0: without a code */
    const char *error_message; /* its first 1 KiB; empty: none */
    bool kept;                 /* it brought a success after its end, which is kept: */
    uint64_t kept_bytes;       /* of its result, */
    const char *kept_type;     /* content type */
    int64_t kept_at;           /* since when, */
    int64_t kept_until;        /* and until when at the latest */
    tmq_blob_t kept_blob;      /* … of a result larger than a frame, for who may see bodies */
} tmq_attempt_info_t;
/* Some attempts, by rising number. All texts belong to it. */
struct tmq_attempt_page {
    const tmq_attempt_info_t *attempts;
    size_t count;
    uint32_t next; /* `after` of the page that follows; 0: there is none */
};
/* Accepts NULL. */
TMQ_API void tmq_attempt_list_free (tmq_attempt_list_t *list);

/* The attempts at a task with greater numbers than `after`, at most limit (1..1000; 0: 50). Waits
 * for the answer; *out is to be freed, and is not touched unless the code is 0.
 * Codes: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED, TMQ_DENIED. */
TMQ_API int tmq_attempts (tmq_attempt_list_t **out, tmq_client_t *client, const tmq_id_t *id,
                          uint32_t after, uint32_t limit, uint32_t timeout_ms, tmq_error_t *error);
/* The completion is TMQ_OP_ATTEMPTS with `attempts`. Does not block. */
TMQ_API int tmq_attempts_start (tmq_client_t *client, const tmq_id_t *id, uint32_t after,
                                uint32_t limit, uint32_t timeout_ms, void *user,
                                tmq_error_t *error);

/* Reads a piece of the late success that is kept of an attempt: the limit and *out are those of
 * tmq_payload_read. Codes: TMQ_NO_BLOB (nothing is kept of this attempt, or its bytes are missing
 * or damaged), and those of tmq_payload. */
TMQ_API int tmq_kept_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id,
                           uint32_t attempt, uint64_t offset, uint32_t limit, uint32_t timeout_ms,
                           tmq_error_t *error);
/* Writes all of one that has a kept_blob into a file, from where an earlier call ended, as
 * tmq_result_fetch does. */
TMQ_API int tmq_kept_fetch (tmq_client_t *client, const tmq_id_t *id,
                            const tmq_attempt_info_t *attempt, int fd, uint64_t *fetched,
                            uint32_t timeout_ms, tmq_error_t *error);

/* Makes the late success that is kept of an attempt the outcome of its task, which is completed by
 * it. Whoever works on the task meanwhile has lost it. Needs the role admin. *task (task may be
 * NULL) is the task as it is then. request_id: 16 bytes, or NULL, as above; a repeat succeeds.
 * Codes: TMQ_NOT_FOUND (no such task, or nothing is kept of this attempt: the text says which),
 * TMQ_WRONG_STATUS (the task is completed or cancelled, or the attempt still runs), TMQ_EXPIRED,
 * TMQ_PURGED, TMQ_DENIED. */
TMQ_API int tmq_adopt (tmq_task_t **task, tmq_client_t *client, const tmq_id_t *id,
                       uint32_t attempt, const uint8_t *request_id, uint32_t timeout_ms,
                       tmq_error_t *error);
/* The completion is TMQ_OP_ADOPT with `task`. Does not block. */
TMQ_API int tmq_adopt_start (tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
                             const uint8_t *request_id, uint32_t timeout_ms, void *user,
                             tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
