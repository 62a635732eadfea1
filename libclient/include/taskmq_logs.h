/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the programs of workers write. A part of taskmq.h, which includes it. */
#ifndef TASKMQ_LOGS_H
#define TASKMQ_LOGS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tmq_worker tmq_worker_t; /* of taskmq_workers.h */
typedef struct tmq_assignment tmq_assignment_t;

/* Logs. */

/* Sends bytes of what the program of an attempt writes to stdout (TMQ_LOG_OUT) or stderr
 * (TMQ_LOG_ERR), as they come; copied. Best effort: it never waits, and no outcome waits for it.
 * What the broker has not taken is kept through reconnects, the newest 256 KiB of each stream; the
 * outcome takes along what is left. Who reads finds a gap where something was lost.
 * Codes: TMQ_STALE_LEASE (the attempt is not held any more), TMQ_INVALID, TMQ_NO_MEMORY. */
TMQ_API int tmq_worker_log (tmq_worker_t *worker, const tmq_assignment_t *of,
                            tmq_log_stream_t stream, const void *bytes, size_t length,
                            tmq_error_t *error);
/* Bytes of both streams that the broker has not taken yet. Does not block. */
TMQ_API size_t tmq_worker_log_pending (tmq_worker_t *worker, const tmq_assignment_t *of);

/* Reads what is kept of a stream, from an offset on; attempt 0: of the newest attempt that has a
 * log. limit 0: TMQ_LOG_BYTES_MAX, which is the most. In *out, to be freed by tmq_part_free:
 *
 *     bytes, length   what stands there without a gap; none: nothing is kept from there on
 *     offset          of the first of them. Above the one asked for: what lies between is lost
 *     file            the attempt; 0: the task has no log
 *     total           where the stream ends now; without bytes, and above the offset: what lies
 *                     between was taken and is lost, for want of space or by an error of the disk
 *     more            there is more now
 *
 * To follow a log, make a subscription to the task with `logs` set. After TMQ_ITEM_LIVE read until
 * there is no more, and again with each notice that has has_log, until the task has ended.
 * Codes: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED, TMQ_INVALID, TMQ_DENIED, and those of any
 * request. */
TMQ_API int tmq_log_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id,
                          uint32_t attempt, tmq_log_stream_t stream, uint64_t offset,
                          uint32_t limit, uint32_t timeout_ms, tmq_error_t *error);
/* The completion (TMQ_OP_READ_LOG) has part. */
TMQ_API int tmq_log_read_start (tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
                                tmq_log_stream_t stream, uint64_t offset, uint32_t limit,
                                uint32_t timeout_ms, void *user, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
