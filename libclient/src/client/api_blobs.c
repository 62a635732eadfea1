/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Large bodies on their way up: in pieces, until the broker has them. */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors.h"
#include "client/client.h"
#include "codec/encode.h"
#include "codec/request.h"
#include "ids.h"

enum {
    PIECE_BYTES = TMQ_FRAME_BYTES_MAX,
    BEGINS_MAX = 4,  /* of one put: a broker that restarts has forgotten what was under way */
    STANDING_MAX = 8 /* pieces in a row that bring nothing on */
};

/* What is uploaded: bytes in memory, or of a file. */
typedef struct source {
    const uint8_t *bytes; /* NULL: the file's */
    int fd;
    uint64_t length;
    struct timespec modified; /* of a file, when it was looked at first */
    uint8_t *piece;           /* room for one */
} source_t;

/* Pieces. */

static const uint8_t *source_read (const source_t *self, uint64_t offset, size_t length)
{
    size_t done = 0;
    if (self->bytes != NULL)
        return self->bytes + offset;
    while (done < length) {
        ssize_t got = pread (self->fd, self->piece + done, length - done, (off_t) (offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return NULL;
        if (got == 0) { /* it has become shorter */
            errno = 0;
            return NULL;
        }
        done += (size_t) got;
    }
    return self->piece;
}

static int changed (tmq_error_t *error)
{
    return core_error (error, TMQ_CONFLICT, "the file changed while it was read");
}

static int unreadable (tmq_error_t *error)
{
    if (errno == 0)
        return changed (error);
    return core_error (error, TMQ_SYSTEM, "the file cannot be read: %s", strerror (errno));
}

static size_t piece_of (const source_t *self, uint64_t offset)
{
    uint64_t left = self->length - offset;
    return left < PIECE_BYTES ? (size_t) left : PIECE_BYTES;
}

static int source_hash (const source_t *self, uint8_t *out, tmq_error_t *error)
{
    crypto_generichash_state state;
    crypto_generichash_init (&state, NULL, 0, TMQ_BLOB_HASH_BYTES);
    for (uint64_t at = 0; at < self->length;) {
        size_t length = piece_of (self, at);
        const uint8_t *bytes = source_read (self, at, length);
        if (bytes == NULL)
            return unreadable (error);
        crypto_generichash_update (&state, bytes, length);
        at += length;
    }
    crypto_generichash_final (&state, out, TMQ_BLOB_HASH_BYTES);
    return TMQ_OK;
}

/* A file is read twice, and somebody may write to it all the while. */
static int source_same (const source_t *self, tmq_error_t *error)
{
    struct stat info;
    if (self->bytes != NULL)
        return TMQ_OK;
    if (fstat (self->fd, &info) != 0)
        return unreadable (error);
    if ((uint64_t) info.st_size == self->length && info.st_mtim.tv_sec == self->modified.tv_sec &&
        info.st_mtim.tv_nsec == self->modified.tv_nsec)
        return TMQ_OK;
    return changed (error);
}

/* Requests. */

static void blob_message (Taskmq__Blob *out, const tmq_blob_t *blob)
{
    taskmq__blob__init (out);
    out->hash = (ProtobufCBinaryData){sizeof blob->hash, (uint8_t *) (uintptr_t) blob->hash};
    out->bytes = blob->bytes;
}

static int take_at (tmq_part_t **out, tmq_client_t *client, core_request_t *request,
                    uint32_t timeout_ms, tmq_error_t *error)
{
    return client_take (out, CLIENT_MEMBER (completion.part), client, request, timeout_ms, error);
}

static int begin_request (core_request_t **out, const tmq_blob_t *blob, tmq_error_t *error)
{
    Taskmq__Blob named;
    Taskmq__BlobBegin message = TASKMQ__BLOB_BEGIN__INIT;
    blob_message (&named, blob);
    message.blob = &named;
    return core_request_message (out, TMQ_OP_BLOB_BEGIN, &message.base, error);
}

static int piece_request (core_request_t **out, const tmq_blob_t *blob, uint64_t offset,
                          const uint8_t *bytes, size_t length, tmq_error_t *error)
{
    core_request_t *request = NULL;
    Taskmq__Blob named;
    Taskmq__BlobChunk message = TASKMQ__BLOB_CHUNK__INIT;
    blob_message (&named, blob);
    message.blob = &named;
    message.offset = offset;
    message.chunk_bytes = (uint32_t) length;
    int code = core_request_message (&request, TMQ_OP_BLOB_CHUNK, &message.base, error);
    if (code != TMQ_OK)
        return code;
    bytes_append (&request->body, bytes, length);
    return core_request_finish (out, request, error);
}

static int begin (tmq_part_t **out, tmq_client_t *client, const tmq_blob_t *blob,
                  uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = begin_request (&request, blob, error);
    return code == TMQ_OK ? take_at (out, client, request, timeout_ms, error) : code;
}

static int send_piece (tmq_part_t **out, tmq_client_t *client, const tmq_blob_t *blob,
                       const source_t *source, uint64_t offset, uint32_t timeout_ms,
                       tmq_error_t *error)
{
    core_request_t *request = NULL;
    size_t length = piece_of (source, offset);
    const uint8_t *bytes = source_read (source, offset, length);
    if (bytes == NULL)
        return unreadable (error);
    int code = piece_request (&request, blob, offset, bytes, length, error);
    return code == TMQ_OK ? take_at (out, client, request, timeout_ms, error) : code;
}

int tmq_blob_drop (tmq_client_t *client, const tmq_blob_t *blob, tmq_error_t *error)
{
    core_request_t *request = NULL;
    Taskmq__Blob named;
    Taskmq__BlobDrop message = TASKMQ__BLOB_DROP__INIT;
    const char *owner = client_owner (client);
    if (blob == NULL)
        return core_error (error, TMQ_INVALID, "the blob is NULL");
    blob_message (&named, blob);
    message.blob = &named;
    int code = core_request_message (&request, (tmq_op_t) CORE_OP_BLOB_DROP, &message.base, error);
    if (code != TMQ_OK)
        return code;
    client = client_base (client);
    code = client_enter (client, error);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    code = core_drop_blob (client->core, request, owner, client_now_ms (), error);
    client_leave (client);
    return code;
}

/* What was sent of it will never be whole. */
static int give_up (int code, tmq_client_t *client, const tmq_blob_t *blob)
{
    tmq_blob_drop (client, blob, NULL);
    return code;
}

/* From where the broker wants it to the end. NO_BLOB: it has forgotten the upload. */
static int send_rest (tmq_client_t *client, const tmq_blob_t *blob, const source_t *source,
                      uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_part_t *at = NULL;
    unsigned standing = 0;
    int code = begin (&at, client, blob, timeout_ms, error);
    while (code == TMQ_OK && at != NULL && at->more) {
        uint64_t offset = at->offset;
        tmq_part_free (at);
        at = NULL;
        if (offset >= source->length)
            return core_error (error, TMQ_PROTOCOL, "the broker wants more than there is");
        code = send_piece (&at, client, blob, source, offset, timeout_ms, error);
        standing =
            code == TMQ_OK && at != NULL && at->more && at->offset == offset ? standing + 1 : 0;
        if (standing == STANDING_MAX)
            code = core_error (error, TMQ_PROTOCOL, "the broker does not take what it wants");
    }
    tmq_part_free (at);
    return code;
}

static int put (tmq_blob_t *out, tmq_client_t *client, const source_t *source, uint32_t timeout_ms,
                tmq_error_t *error)
{
    memset (out, 0, sizeof *out);
    if (source->length < TMQ_BLOB_BYTES_MIN)
        return core_error (error, TMQ_INVALID, "%" PRIu64 " bytes are no blob, at least %d",
                           source->length, TMQ_BLOB_BYTES_MIN);
    if (source->length > TMQ_BLOB_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "%" PRIu64 " bytes, at most %" PRIu64,
                           source->length, TMQ_BLOB_BYTES_MAX);
    tmq_blob_t blob = {.bytes = source->length};
    int code = source_hash (source, blob.hash, error);
    if (code != TMQ_OK)
        return code;
    code = TMQ_NO_BLOB;
    for (unsigned i = 0; i < BEGINS_MAX && (code == TMQ_NO_BLOB || code == TMQ_CONFLICT); i++) {
        code = send_rest (client, &blob, source, timeout_ms, error);
        int same = source_same (source, error);
        if (same != TMQ_OK)
            return give_up (same, client, &blob);
    }
    if (code == TMQ_SYSTEM) /* it cannot be read */
        return give_up (code, client, &blob);
    if (code == TMQ_OK)
        *out = blob;
    return code;
}

int tmq_blob_put (tmq_blob_t *out, tmq_client_t *client, const void *bytes, size_t length,
                  uint32_t timeout_ms, tmq_error_t *error)
{
    const source_t source = {.bytes = bytes, .fd = -1, .length = length};
    if (bytes == NULL)
        return core_error (error, TMQ_INVALID, "the bytes are NULL");
    return put (out, client, &source, timeout_ms, error);
}

int tmq_blob_send_start (tmq_client_t *client, const tmq_blob_t *blob, uint64_t offset,
                         const void *bytes, size_t length, uint32_t timeout_ms, void *user,
                         tmq_error_t *error)
{
    core_request_t *request = NULL;
    if (blob == NULL || (bytes == NULL && length > 0))
        return core_error (error, TMQ_INVALID, "the blob or the bytes are NULL");
    if (length > PIECE_BYTES)
        return core_error (error, TMQ_INVALID, "a piece has at most %d bytes", PIECE_BYTES);
    int code = length == 0 ? begin_request (&request, blob, error)
                           : piece_request (&request, blob, offset, bytes, length, error);
    if (code != TMQ_OK)
        return code;
    request->once = length == 0 && timeout_ms != TMQ_FOREVER;
    return client_begin (client, request, timeout_ms, user, error);
}

/* Opens nothing: the descriptor is the caller's. To be closed by source_close. */
static int source_open (source_t *out, int fd, tmq_error_t *error)
{
    struct stat info;
    *out = (source_t){.fd = fd};
    if (fstat (fd, &info) != 0)
        return unreadable (error);
    if (!S_ISREG (info.st_mode))
        return core_error (error, TMQ_INVALID, "only a regular file can be put");
    out->length = (uint64_t) info.st_size;
    out->modified = info.st_mtim;
    out->piece = malloc (PIECE_BYTES);
    return out->piece != NULL ? TMQ_OK : core_error (error, TMQ_NO_MEMORY, NULL);
}

static void source_close (source_t *self)
{
    free (self->piece);
}

int tmq_blob_put_file (tmq_blob_t *out, tmq_client_t *client, int fd, uint32_t timeout_ms,
                       tmq_error_t *error)
{
    source_t source;
    memset (out, 0, sizeof *out);
    int code = source_open (&source, fd, error);
    if (code == TMQ_OK)
        code = put (out, client, &source, timeout_ms, error);
    source_close (&source);
    return code;
}

/* Submit. */

/* The broker may have forgotten the upload between the two. */
static int submit_source (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                          const source_t *source, uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_submit_t submit = *in;
    int code = TMQ_NO_BLOB;
    submit.payload = NULL;
    submit.payload_bytes = 0;
    if (id_is_zero (&submit.id))
        tmq_id_make (&submit.id);
    out->id = submit.id;
    for (unsigned i = 0; i < BEGINS_MAX && code == TMQ_NO_BLOB; i++) {
        code = put (&submit.payload_blob, client, source, timeout_ms, error);
        if (code == TMQ_OK)
            code = tmq_submit (out, client, &submit, timeout_ms, error);
        out->code = code;
    }
    return code;
}

int client_submit_large (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                         uint32_t timeout_ms, tmq_error_t *error)
{
    const source_t source = {.bytes = in->payload, .fd = -1, .length = in->payload_bytes};
    if (in->payload == NULL)
        return core_error (error, TMQ_INVALID, "the payload is NULL");
    return submit_source (out, client, in, &source, timeout_ms, error);
}

static int submit_small (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                         const source_t *source, uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_submit_t submit = *in;
    submit.payload_bytes = (size_t) source->length;
    submit.payload = source_read (source, 0, submit.payload_bytes);
    if (submit.payload == NULL)
        return unreadable (error);
    int code = source_same (source, error);
    return code == TMQ_OK ? tmq_submit (out, client, &submit, timeout_ms, error) : code;
}

int tmq_submit_file (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *given, int fd,
                     uint32_t timeout_ms, tmq_error_t *error)
{
    source_t source = {.piece = NULL};
    tmq_submit_t in = {0};
    memset (out, 0, sizeof *out);
    int code = core_submit_take (&in, given, error);
    if (code == TMQ_OK)
        code = source_open (&source, fd, error);
    if (code == TMQ_OK)
        code = source.length <= TMQ_FRAME_BYTES_MAX
                   ? submit_small (out, client, &in, &source, timeout_ms, error)
                   : submit_source (out, client, &in, &source, timeout_ms, error);
    source_close (&source);
    out->code = code;
    return code;
}
