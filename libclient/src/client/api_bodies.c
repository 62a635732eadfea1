/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bodies on their way down: in pieces, until the hash is right. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact_name.h"
#include "base/errors.h"
#include "base/sized.h"
#include "client/client.h"
#include "codec/artifacts.h"
#include "codec/request.h"
#include "disk.h"
#include "ids.h"

enum { PART_PAYLOAD = 1, PART_RESULT = 2 }; /* of BlobRead.part */
enum { BUFFER_BYTES = 64 * 1024 };

/* A body of a task that is read in pieces. */
typedef struct body {
    uint32_t part;
    const tmq_id_t *id;
    const tmq_artifact_info_t *artifact; /* of an artifact, or NULL */
    uint32_t attempt;                    /* of a late success */
    tmq_blob_t blob;                     /* what it has to be, when all of it is read */
} body_t;

/* Pieces. */

static int read_request (core_request_t **out, const body_t *body, uint64_t offset, uint32_t limit,
                         tmq_error_t *error)
{
    Taskmq__BlobRead message = TASKMQ__BLOB_READ__INIT;
    if (body->id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    if (limit > TMQ_PART_BYTES_MAX)
        return core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_PART_BYTES_MAX);
    message.task_id = (ProtobufCBinaryData){ID_BYTES, (uint8_t *) (uintptr_t) body->id->bytes};
    message.part = body->part;
    message.attempt = body->attempt;
    message.offset = offset;
    message.limit = limit;
    const tmq_artifact_info_t *artifact = body->artifact;
    if (artifact != NULL)
        message.name = (char *) (uintptr_t) artifact->name;
    if (artifact != NULL && artifact->has_hash)
        message.hash =
            (ProtobufCBinaryData){sizeof artifact->hash, (uint8_t *) (uintptr_t) artifact->hash};
    int code = core_request_message (out, TMQ_OP_BLOB_READ, &message.base, error);
    if (code == TMQ_OK) {
        (*out)->task_id = *body->id;
        (*out)->answer.completion.task_id = *body->id;
    }
    return code;
}

static int read_part (tmq_part_t **out, tmq_client_t *client, const body_t *body, uint64_t offset,
                      uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = read_request (&request, body, offset, limit, error);
    return code == TMQ_OK ? client_take (out, CLIENT_MEMBER (completion.part), client, request,
                                         timeout_ms, error)
                          : code;
}

static int read_start (tmq_client_t *client, const body_t *body, uint64_t offset, uint32_t limit,
                       uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = read_request (&request, body, offset, limit, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_payload_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id, uint64_t offset,
                      uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    const body_t body = {.part = PART_PAYLOAD, .id = id};
    return read_part (out, client, &body, offset, limit, timeout_ms, error);
}

int tmq_payload_read_start (tmq_client_t *client, const tmq_id_t *id, uint64_t offset,
                            uint32_t limit, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    const body_t body = {.part = PART_PAYLOAD, .id = id};
    return read_start (client, &body, offset, limit, timeout_ms, user, error);
}

int tmq_result_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id, uint64_t offset,
                     uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    const body_t body = {.part = PART_RESULT, .id = id};
    return read_part (out, client, &body, offset, limit, timeout_ms, error);
}

int tmq_result_read_start (tmq_client_t *client, const tmq_id_t *id, uint64_t offset,
                           uint32_t limit, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    const body_t body = {.part = PART_RESULT, .id = id};
    return read_start (client, &body, offset, limit, timeout_ms, user, error);
}

/* Wholes. */

static int unwritable (tmq_error_t *error)
{
    return core_error (error, TMQ_SYSTEM, "it cannot be written: %s", strerror (errno));
}

static int damaged (const body_t *body, tmq_error_t *error)
{
    char hex[2 * TMQ_BLOB_HASH_BYTES + 1];
    sodium_bin2hex (hex, sizeof hex, body->blob.hash, sizeof body->blob.hash);
    return core_error (error, TMQ_NO_BLOB, "%s %s is damaged: its bytes are others",
                       body->artifact != NULL ? "the artifact" : "the blob", hex);
}

/* What is on its way into a descriptor. */
typedef struct sink {
    int fd;
    bool in_place;    /* each piece goes to its offset, else they follow each other */
    uint64_t at;      /* so much is there, … */
    uint64_t fetched; /* … of it from the broker, by this call */
    crypto_generichash_state hash;
} sink_t;

static void sink_begin (sink_t *self, int fd, bool in_place)
{
    *self = (sink_t){.fd = fd, .in_place = in_place};
    crypto_generichash_init (&self->hash, NULL, 0, TMQ_BLOB_HASH_BYTES);
}

/* From where it is to the end of the body. */
static int sink_rest (sink_t *self, tmq_client_t *client, const body_t *body, uint32_t timeout_ms,
                      tmq_error_t *error)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    while (self->at < body->blob.bytes) {
        tmq_part_t *part = NULL;
        int code = read_part (&part, client, body, self->at, 0, timeout_ms, error);
        if (code == TMQ_OK && (part->length == 0 || part->length > body->blob.bytes - self->at))
            code = damaged (body, error);
        if (code == TMQ_OK) {
            crypto_generichash_update (&self->hash, (const uint8_t *) part->bytes, part->length);
            const int failed = self->in_place
                                   ? disk_write_at (self->fd, part->bytes, part->length, self->at)
                                   : disk_write (self->fd, part->bytes, part->length);
            code = failed == 0 ? TMQ_OK : unwritable (error);
            self->at += part->length;
            self->fetched += part->length;
        }
        tmq_part_free (part);
        if (code != TMQ_OK)
            return code;
    }
    crypto_generichash_final (&self->hash, hash, sizeof hash);
    return memcmp (hash, body->blob.hash, sizeof hash) == 0 ? TMQ_OK : damaged (body, error);
}

/* Takes what the file has as the beginning. More than there can be: it is something else. */
static int sink_resume (sink_t *self, const body_t *body, tmq_error_t *error)
{
    struct stat info;
    if (fstat (self->fd, &info) != 0 || !S_ISREG (info.st_mode))
        return core_error (error, TMQ_INVALID, "only a regular file can be gone on with");
    uint64_t there = (uint64_t) info.st_size > body->blob.bytes ? 0 : (uint64_t) info.st_size;
    uint8_t *buffer = there == 0 ? NULL : malloc (BUFFER_BYTES);
    if (there > 0 && buffer == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    int code = TMQ_OK;
    while (code == TMQ_OK && self->at < there) {
        size_t want = there - self->at < BUFFER_BYTES ? (size_t) (there - self->at) : BUFFER_BYTES;
        ssize_t got = pread (self->fd, buffer, want, (off_t) self->at);
        if (got == 0)
            code = core_error (error, TMQ_SYSTEM, "the file became shorter while it was read");
        else if (got < 0 && errno != EINTR)
            code = core_error (error, TMQ_SYSTEM, "the file cannot be read: %s", strerror (errno));
        else if (got > 0) {
            crypto_generichash_update (&self->hash, buffer, (size_t) got);
            self->at += (uint64_t) got;
        }
    }
    free (buffer);
    return code;
}

static int shorten (int fd, uint64_t length, tmq_error_t *error)
{
    return ftruncate (fd, (off_t) length) == 0 ? TMQ_OK : unwritable (error);
}

static int save_body (tmq_client_t *client, const body_t *body, int fd, uint32_t timeout_ms,
                      tmq_error_t *error)
{
    sink_t sink;
    sink_begin (&sink, fd, false);
    return sink_rest (&sink, client, body, timeout_ms, error);
}

static int fetch_body (tmq_client_t *client, const body_t *body, int fd, uint64_t *fetched,
                       uint32_t timeout_ms, tmq_error_t *error)
{
    sink_t sink;
    sink_begin (&sink, fd, true);
    int code = sink_resume (&sink, body, error);
    const bool began = sink.at > 0;
    if (code == TMQ_OK)
        code = sink_rest (&sink, client, body, timeout_ms, error);
    uint64_t bytes = sink.fetched;
    if (code == TMQ_NO_BLOB && began && sink.at == body->blob.bytes) {
        /* What was there was the beginning of something else. */
        sink_begin (&sink, fd, true);
        code = sink_rest (&sink, client, body, timeout_ms, error);
        bytes += sink.fetched;
    }
    if (fetched != NULL)
        *fetched = bytes;
    return code == TMQ_OK ? shorten (fd, body->blob.bytes, error) : code;
}

static body_t body_of (const tmq_task_t *task, uint32_t part)
{
    return (body_t){.part = part,
                    .id = &task->id,
                    .blob = part == PART_RESULT ? task->result_blob : task->payload_blob};
}

/* A body that came with its task, or is to be read in pieces. */
static int save (tmq_client_t *client, uint32_t part, tmq_task_t *task, int fd, uint32_t timeout_ms,
                 tmq_error_t *error)
{
    const body_t body = body_of (task, part);
    int code = TMQ_OK;
    if (body.blob.bytes > 0)
        code = save_body (client, &body, fd, timeout_ms, error);
    else if (disk_write (fd, task->body, task->body_bytes) != 0)
        code = unwritable (error);
    tmq_task_free (task);
    return code;
}

static int fetch (tmq_client_t *client, uint32_t part, tmq_task_t *task, int fd, uint64_t *fetched,
                  uint32_t timeout_ms, tmq_error_t *error)
{
    const body_t body = body_of (task, part);
    int code = TMQ_OK;
    if (body.blob.bytes > 0) {
        code = fetch_body (client, &body, fd, fetched, timeout_ms, error);
    } else {
        code =
            disk_write_at (fd, task->body, task->body_bytes, 0) == 0 ? TMQ_OK : unwritable (error);
        if (code == TMQ_OK)
            code = shorten (fd, task->body_bytes, error);
        if (fetched != NULL)
            *fetched = task->body_bytes;
    }
    tmq_task_free (task);
    return code;
}

int tmq_payload_save (tmq_client_t *client, const tmq_id_t *id, int fd, uint32_t timeout_ms,
                      tmq_error_t *error)
{
    tmq_task_t *task = NULL;
    int code = tmq_payload (&task, client, id, timeout_ms, error);
    return code == TMQ_OK ? save (client, PART_PAYLOAD, task, fd, timeout_ms, error) : code;
}

int tmq_result_save (tmq_client_t *client, const tmq_id_t *id, int fd, uint32_t timeout_ms,
                     tmq_error_t *error)
{
    tmq_task_t *task = NULL;
    int code = tmq_result (&task, client, id, timeout_ms, error);
    return code == TMQ_OK ? save (client, PART_RESULT, task, fd, timeout_ms, error) : code;
}

int tmq_payload_fetch (tmq_client_t *client, const tmq_id_t *id, int fd, uint64_t *fetched,
                       uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_task_t *task = NULL;
    int code = tmq_payload (&task, client, id, timeout_ms, error);
    return code == TMQ_OK ? fetch (client, PART_PAYLOAD, task, fd, fetched, timeout_ms, error)
                          : code;
}

int tmq_result_fetch (tmq_client_t *client, const tmq_id_t *id, int fd, uint64_t *fetched,
                      uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_task_t *task = NULL;
    int code = tmq_result (&task, client, id, timeout_ms, error);
    return code == TMQ_OK ? fetch (client, PART_RESULT, task, fd, fetched, timeout_ms, error)
                          : code;
}

/* Artifacts. Workers attach them in api_worker.c. */

void (tmq_artifact_init) (tmq_artifact_t *artifact, size_t size)
{
    static const tmq_artifact_t defaults = {0};
    core_sized_init (artifact, size, &defaults, sizeof defaults);
}

const char *tmq_artifact_name_flaw (const char *name)
{
    return artifact_name_flaw (name);
}

void tmq_artifact_list_free (tmq_artifact_list_t *list)
{
    free (list);
}

static int artifacts_request (core_request_t **out, const tmq_id_t *id, tmq_error_t *error)
{
    Taskmq__Artifacts message = TASKMQ__ARTIFACTS__INIT;
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    message.task_id = (ProtobufCBinaryData){ID_BYTES, (uint8_t *) (uintptr_t) id->bytes};
    return core_request_message (out, TMQ_OP_ARTIFACTS, &message.base, error);
}

int tmq_artifacts (tmq_artifact_list_t **out, tmq_client_t *client, const tmq_id_t *id,
                   uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = artifacts_request (&request, id, error);
    return code == TMQ_OK ? client_take (out, CLIENT_MEMBER (completion.artifacts), client, request,
                                         timeout_ms, error)
                          : code;
}

int tmq_artifacts_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms, void *user,
                         tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = artifacts_request (&request, id, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

static int artifact_body (body_t *out, const tmq_id_t *id, const tmq_artifact_info_t *artifact,
                          tmq_error_t *error)
{
    if (artifact == NULL)
        return core_error (error, TMQ_INVALID, "the artifact is NULL");
    *out = (body_t){.part = BLOB_PART_ARTIFACT,
                    .id = id,
                    .artifact = artifact,
                    .blob = {.bytes = artifact->bytes}};
    memcpy (out->blob.hash, artifact->hash, sizeof out->blob.hash);
    return TMQ_OK;
}

int tmq_artifact_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id,
                       const tmq_artifact_info_t *artifact, uint64_t offset, uint32_t limit,
                       uint32_t timeout_ms, tmq_error_t *error)
{
    body_t body;
    int code = artifact_body (&body, id, artifact, error);
    return code == TMQ_OK ? read_part (out, client, &body, offset, limit, timeout_ms, error) : code;
}

int tmq_artifact_read_start (tmq_client_t *client, const tmq_id_t *id,
                             const tmq_artifact_info_t *artifact, uint64_t offset, uint32_t limit,
                             uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    body_t body;
    int code = artifact_body (&body, id, artifact, error);
    return code == TMQ_OK ? read_start (client, &body, offset, limit, timeout_ms, user, error)
                          : code;
}

/* … as a whole: a hash is needed for that. */
static int artifact_whole (body_t *out, const tmq_id_t *id, const tmq_artifact_info_t *artifact,
                           tmq_error_t *error)
{
    int code = artifact_body (out, id, artifact, error);
    if (code == TMQ_OK && !artifact->has_hash)
        code = core_error (error, TMQ_DENIED, "you may not see the bodies of this task");
    return code;
}

int tmq_artifact_save (tmq_client_t *client, const tmq_id_t *id,
                       const tmq_artifact_info_t *artifact, int fd, uint32_t timeout_ms,
                       tmq_error_t *error)
{
    body_t body;
    int code = artifact_whole (&body, id, artifact, error);
    return code == TMQ_OK ? save_body (client, &body, fd, timeout_ms, error) : code;
}

int tmq_artifact_fetch (tmq_client_t *client, const tmq_id_t *id,
                        const tmq_artifact_info_t *artifact, int fd, uint64_t *fetched,
                        uint32_t timeout_ms, tmq_error_t *error)
{
    body_t body;
    int code = artifact_whole (&body, id, artifact, error);
    return code == TMQ_OK ? fetch_body (client, &body, fd, fetched, timeout_ms, error) : code;
}

/* Late successes. */

int tmq_kept_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
                   uint64_t offset, uint32_t limit, uint32_t timeout_ms, tmq_error_t *error)
{
    const body_t body = {.part = BLOB_PART_LATE, .id = id, .attempt = attempt};
    return read_part (out, client, &body, offset, limit, timeout_ms, error);
}

int tmq_kept_fetch (tmq_client_t *client, const tmq_id_t *id, const tmq_attempt_info_t *attempt,
                    int fd, uint64_t *fetched, uint32_t timeout_ms, tmq_error_t *error)
{
    if (attempt == NULL || attempt->kept_blob.bytes == 0)
        return core_error (error, TMQ_INVALID, "the attempt has no kept_blob");
    const body_t body = {
        .part = BLOB_PART_LATE, .id = id, .attempt = attempt->attempt, .blob = attempt->kept_blob};
    return fetch_body (client, &body, fd, fetched, timeout_ms, error);
}
