/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Payloads and results that are larger than a frame. A part of taskmq.h, which includes it. */
#ifndef TASKMQ_BLOBS_H
#define TASKMQ_BLOBS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Large bodies. */

/* Uploads what is larger than TMQ_FRAME_BYTES_MAX; for an import also less, at least
 * TMQ_BLOB_BYTES_MIN: only artifacts of imported tasks may name that. For half an hour a submit of
 * this client's identity in this namespace can name it (tmq_submit_t.payload_blob), or the end of
 * an attempt (tmq_outcome_t.result_blob). Later, or after a restart of the broker, it is to be put
 * again: that sends nothing which the broker still has. tmq_submit and tmq_worker_complete do all
 * of that for what is large. This is for who submits or ends without blocking, or in batches.
 *
 * The bytes go in pieces, each of which has the timeout. What was interrupted goes on where it
 * ended when the same bytes are put again within an hour. The broker compares them with the hash.
 * Codes: TMQ_INVALID (it is smaller), TMQ_TOO_LARGE (limits/blob_bytes of the broker, 16 MiB
 * unless the operator set another; never more than 1 GiB), TMQ_LIMIT, TMQ_STORE_FULL, and those of
 * every operation. */
TMQ_API int tmq_blob_put (tmq_blob_t *out, tmq_client_t *client, const void *bytes, size_t length,
                          uint32_t timeout_ms, tmq_error_t *error);
/* The same for a file, from its first byte to its end. It is read twice; the descriptor stays open,
 * its position as it is. One that cannot be read to its end is taken back (tmq_blob_drop). Codes:
 * also TMQ_CONFLICT (the file changed meanwhile), TMQ_SYSTEM (it cannot be read), TMQ_INVALID
 * (also: it is no regular file). */
TMQ_API int tmq_blob_put_file (tmq_blob_t *out, tmq_client_t *client, int fd, uint32_t timeout_ms,
                               tmq_error_t *error);
/* One step of an upload, for who must not block: the piece at the offset, of at most
 * TMQ_FRAME_BYTES_MAX bytes; length 0 begins it, or goes on with it. The bytes are copied. The part
 * of the completion says what comes next: more is false when all of it is there; else the broker
 * wants the bytes from offset on. After TMQ_NO_BLOB and TMQ_CONFLICT it is to be begun again. With
 * TMQ_FOREVER it waits while there is no room (TMQ_LIMIT, TMQ_STORE_FULL) or no place among the
 * uploads under way (TMQ_OVERLOADED). With any other timeout a begin that the broker refuses for
 * now is answered at once, with retry_after_ms: who has many uploads lets others go on meanwhile.
 * Codes: those of tmq_blob_put. */
TMQ_API int tmq_blob_send_start (tmq_client_t *client, const tmq_blob_t *blob, uint64_t offset,
                                 const void *bytes, size_t length, uint32_t timeout_ms, void *user,
                                 tmq_error_t *error);
/* Takes back an upload that was begun and will not go on: its place at the broker is free at once,
 * and so is the room of its bytes. Without it the broker finds out by itself, within a minute of
 * somebody's need. What is whole stays. It waits for nothing, goes behind what was started before,
 * and nobody hears what came of it: without a link, or with a broker that does not know it yet,
 * nothing changes. Two clients of one identity that bring the same bytes have one upload: the other
 * one hears TMQ_NO_BLOB, and begins again. Codes: TMQ_INVALID, TMQ_NO_MEMORY, and TMQ_OUTBOX_FULL
 * (TMQ_BLOB_DROPS_MAX are not answered yet). */
TMQ_API int tmq_blob_drop (tmq_client_t *client, const tmq_blob_t *blob, tmq_error_t *error);
enum { TMQ_BLOB_DROPS_MAX = 256 };
/* tmq_submit with the contents of a file as payload, whatever their length; in->payload is not
 * looked at. Codes as of tmq_submit and tmq_blob_put_file. */
TMQ_API int tmq_submit_file (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                             int fd, uint32_t timeout_ms, tmq_error_t *error);

/* Reads a piece of a task's payload_blob, also of a task that this client works on. limit 0:
 * TMQ_PART_BYTES_MAX, which is the most. *out is to be freed by tmq_part_free: bytes and length;
 * more (something follows); total (of the blob). Who puts the pieces together compares the hash:
 * tmq_payload_save does. Codes: those of tmq_payload, and TMQ_NO_BLOB: the task's payload is none,
 * or the blob, which the text names, is missing or damaged; the task stays readable. */
TMQ_API int tmq_payload_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id,
                              uint64_t offset, uint32_t limit, uint32_t timeout_ms,
                              tmq_error_t *error);
/* The completion (TMQ_OP_BLOB_READ) has part. */
TMQ_API int tmq_payload_read_start (tmq_client_t *client, const tmq_id_t *id, uint64_t offset,
                                    uint32_t limit, uint32_t timeout_ms, void *user,
                                    tmq_error_t *error);
/* Writes the payload of a task, whatever its length, to a descriptor, piece by piece, and compares
 * its hash at the end. The timeout is of each piece. Codes: also TMQ_SYSTEM (it cannot be written).
 * After any code but TMQ_OK what was written does not count. */
TMQ_API int tmq_payload_save (tmq_client_t *client, const tmq_id_t *id, int fd, uint32_t timeout_ms,
                              tmq_error_t *error);

/* The same for the result of a task that has ended. Codes: those of tmq_result and the above. */
TMQ_API int tmq_result_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id,
                             uint64_t offset, uint32_t limit, uint32_t timeout_ms,
                             tmq_error_t *error);
TMQ_API int tmq_result_read_start (tmq_client_t *client, const tmq_id_t *id, uint64_t offset,
                                   uint32_t limit, uint32_t timeout_ms, void *user,
                                   tmq_error_t *error);
TMQ_API int tmq_result_save (tmq_client_t *client, const tmq_id_t *id, int fd, uint32_t timeout_ms,
                             tmq_error_t *error);

/* The same into a regular file that is open for reading and writing, from where an earlier call
 * ended: what the file has counts as the beginning. It is read once, only what is missing is
 * fetched, and the hash is compared over all of it. If that is another one, everything is fetched
 * again. After TMQ_OK the file has the bytes and no others; synced it is not. After any other code
 * what was fetched stays, for the next call. The descriptor's position is not used. *fetched (may
 * be NULL): the bytes that came from the broker. Codes: those of tmq_result_save. */
TMQ_API int tmq_result_fetch (tmq_client_t *client, const tmq_id_t *id, int fd, uint64_t *fetched,
                              uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_payload_fetch (tmq_client_t *client, const tmq_id_t *id, int fd, uint64_t *fetched,
                               uint32_t timeout_ms, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
