/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Artifacts: bodies with names that workers attach to their task, as files to a letter. A part of
 * taskmq.h, which includes it. */
#ifndef TASKMQ_ARTIFACTS_H
#define TASKMQ_ARTIFACTS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Artifacts. */

typedef struct tmq_worker tmq_worker_t; /* of taskmq_workers.h */
typedef struct tmq_assignment tmq_assignment_t;

/* One to be attached. Later versions append members. */
typedef struct tmq_artifact_spec {
    size_t size; /* sizeof (tmq_artifact_t); set by the initialiser */
    const char
        *name; /* 1..128 bytes of UTF-8 without '/' and control characters; no dot in front */
    const char *type; /* a content type, at most 256 bytes; NULL: application/octet-stream */
    const void *bytes;
    size_t length;
    tmq_blob_t blob; /* of the _start call only, in place of bytes: what tmq_blob_put gave */
} tmq_artifact_t;
TMQ_API void tmq_artifact_init (tmq_artifact_t *artifact, size_t size);
#define tmq_artifact_init(artifact) tmq_artifact_init ((artifact), sizeof *(artifact))

/* NULL: an artifact may have this name. Else what is wrong with it, a static text. */
TMQ_API const char *tmq_artifact_name_flaw (const char *name);

/* Attaches a body to the task, whatever its length (limits/blob_bytes of the broker). TMQ_OK is a
 * promise: it is durable, and stays with the task as long as that, whatever becomes of the attempt.
 * What had the name before is replaced, also that of an earlier attempt. So a call may be repeated
 * after TMQ_UNKNOWN. What is larger than a frame is uploaded in pieces first, each of which has the
 * timeout; what was interrupted goes on when the same bytes are attached again within an hour.
 * Blocks until the answer is there.
 * Codes: TMQ_INVALID (the name), TMQ_TOO_LARGE, TMQ_LIMIT (100 artifacts or 1 GiB of a task, 16 GiB
 * of a namespace, 20 a second, long names of many: the text says which), TMQ_STORE_FULL, and those
 * of tmq_worker_message and tmq_blob_put. */
TMQ_API int tmq_worker_artifact (tmq_worker_t *worker, const tmq_assignment_t *of,
                                 const tmq_artifact_t *artifact, uint32_t timeout_ms,
                                 tmq_error_t *error);
/* The same with the contents of a regular file, from its first byte to its end; artifact->bytes is
 * not looked at. The descriptor stays open, its position as it is. Codes: also those of
 * tmq_blob_put_file. */
TMQ_API int tmq_worker_artifact_file (tmq_worker_t *worker, const tmq_assignment_t *of,
                                      const tmq_artifact_t *artifact, int fd, uint32_t timeout_ms,
                                      tmq_error_t *error);
/* The same without blocking, for at most TMQ_FRAME_BYTES_MAX bytes, which are copied, or a blob;
 * the completion is TMQ_OP_ARTIFACT. After TMQ_NO_BLOB the blob is to be put again. */
TMQ_API int tmq_worker_artifact_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                       const tmq_artifact_t *artifact, uint32_t timeout_ms,
                                       void *user, tmq_error_t *error);

/* One that was attached. */
typedef struct tmq_artifact_info {
    const char *name;
    const char *type;
    uint64_t bytes;
    bool has_hash;                     /* false: who asks may not see bodies */
    uint8_t hash[TMQ_BLOB_HASH_BYTES]; /* BLAKE2b-256 of it */
    uint32_t attempt;                  /* that attached it */
    uint64_t attached_at;              /* ms since the epoch */
} tmq_artifact_info_t;
/* All artifacts of a task, by name. All texts belong to it. */
struct tmq_artifact_page {
    const tmq_artifact_info_t *artifacts;
    size_t count;
};
/* Accepts NULL. */
TMQ_API void tmq_artifact_list_free (tmq_artifact_list_t *list);

/* Whoever may read the task may ask, and who works on it. Waits for the answer; *out is to be
 * freed, and is not touched unless the code is 0.
 * Codes: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED, TMQ_DENIED. */
TMQ_API int tmq_artifacts (tmq_artifact_list_t **out, tmq_client_t *client, const tmq_id_t *id,
                           uint32_t timeout_ms, tmq_error_t *error);

/* The same without blocking; the completion (TMQ_OP_ARTIFACTS) has artifacts. */
TMQ_API int tmq_artifacts_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                                 void *user, tmq_error_t *error);

/* Reads a piece of an artifact as the list told it (name and hash): the limit and *out are those of
 * tmq_payload_read. Codes: TMQ_NO_BLOB (there is none of this name, or its bytes are missing or
 * damaged), TMQ_CONFLICT (another body has the name now: list again), and those of tmq_payload. */
TMQ_API int tmq_artifact_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id,
                               const tmq_artifact_info_t *artifact, uint64_t offset, uint32_t limit,
                               uint32_t timeout_ms, tmq_error_t *error);
/* The completion (TMQ_OP_BLOB_READ) has part. */
TMQ_API int tmq_artifact_read_start (tmq_client_t *client, const tmq_id_t *id,
                                     const tmq_artifact_info_t *artifact, uint64_t offset,
                                     uint32_t limit, uint32_t timeout_ms, void *user,
                                     tmq_error_t *error);
/* Writes all of it to a descriptor and compares its hash at the end, as tmq_payload_save does. */
TMQ_API int tmq_artifact_save (tmq_client_t *client, const tmq_id_t *id,
                               const tmq_artifact_info_t *artifact, int fd, uint32_t timeout_ms,
                               tmq_error_t *error);
/* … into a file, from where an earlier call ended, as tmq_result_fetch does. */
TMQ_API int tmq_artifact_fetch (tmq_client_t *client, const tmq_id_t *id,
                                const tmq_artifact_info_t *artifact, int fd, uint64_t *fetched,
                                uint32_t timeout_ms, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
