/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/import_beside.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "artifact_name.h"
#include "core/peers/link.h"
#include "core/requests/answer.h"
#include "core/requests/naming.h"
#include "core/tasks/artifacts.h"
#include "core/tasks/blobs.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/space.h"

enum { AHEAD_MS_MAX = 24 * 60 * 60 * 1000 /* of its times before the broker's clock */ };

/* Refusals. */

bool import_refuse (import_refusal_t *out, tmq_code_t code, const char *format, ...)
{
    va_list list;
    va_start (list, format);
    vsnprintf (out->text, sizeof (out->text), format, list);
    va_end (list);
    out->code = code;
    return false;
}

bool import_refuse_limit (import_refusal_t *out, const char *what, size_t limit)
{
    char text[LIMIT_TEXT_SIZE];
    limit_text (text, what, limit);
    out->retry_after_ms = LIMIT_RETRY_MS;
    return import_refuse (out, TMQ_LIMIT, "%s", text);
}

bool import_time_is_good (const requests_t *self, const char *member, uint64_t time,
                          import_refusal_t *out)
{
    return (int64_t) time <= self->base->clocks.wall_ms + AHEAD_MS_MAX ||
           import_refuse (out, TMQ_INVALID, "%s: its time is more than a day ahead of the broker's",
                          member);
}

/* Blobs. */

/* Only who has the bytes may name them, as of a submit. member and name say which. */
static bool blob_is_good (const call_t *call, const Taskmq__Blob *blob, const char *member,
                          const char *name, import_refusal_t *out)
{
    naming_refusal_t why;
    char which[SESSION_REFUSAL_SIZE];
    snprintf (which, sizeof (which), "%s%s", member, name);
    if (!naming_refuses (call, name_text (call->link->identity), blob, which, &why))
        return true;
    out->retry_after_ms = why.retry_after_ms;
    return import_refuse (out, why.code, "%s", why.text);
}

static bool is_uploaded (const Taskmq__ImportedArtifact *artifact)
{
    return artifact->body.len == 0 && artifact->info->bytes > 0;
}

static bool blobs_have_places (const call_t *call, const Taskmq__ImportedTask *whole,
                               import_refusal_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < whole->n_artifacts; i++)
        count += is_uploaded (whole->artifacts[i]);
    return count == 0 || blobs_count (call->requests->tasks) + count <= BLOBS_MAX ||
           import_refuse_limit (out, "blobs", BLOBS_MAX);
}

/* Artifacts. */

static bool body_is_good (const Taskmq__ImportedArtifact *artifact, import_refusal_t *out)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    crypto_generichash (hash, sizeof (hash), artifact->body.data, artifact->body.len, NULL, 0);
    return memcmp (hash, artifact->info->hash.data, sizeof (hash)) == 0 ||
           import_refuse (out, TMQ_INVALID, "artifacts: %s has other bytes than its hash says",
                          artifact->info->name);
}

static bool artifact_is_good (const call_t *call, const Taskmq__ImportedArtifact *artifact,
                              import_refusal_t *out)
{
    const Taskmq__Blob blob = artifact_blob (artifact->info);
    if (!import_time_is_good (call->requests, "artifacts.attached_at", artifact->info->attached_at,
                              out))
        return false;
    return is_uploaded (artifact)
               ? blob_is_good (call, &blob, "artifacts: ", artifact->info->name, out)
               : body_is_good (artifact, out);
}

/* What never fits is TOO_LARGE: to try again would be in vain. */
static bool artifacts_have_room (const call_t *call, const Taskmq__ImportedTask *whole,
                                 import_refusal_t *out)
{
    const engine_config_t *config = &call->requests->base->config;
    uint64_t bytes = 0;
    size_t listed = 0;
    for (size_t i = 0; i < whole->n_artifacts; i++) {
        bytes += whole->artifacts[i]->info->bytes;
        listed += artifact_packed_bytes (whole->artifacts[i]->info);
    }
    if (bytes > config->task_artifact_bytes_max)
        return import_refuse (out, TMQ_TOO_LARGE,
                              "artifacts: %" PRIu64 " bytes, a task has at most %" PRIu64, bytes,
                              config->task_artifact_bytes_max);
    if (listed > TMQ_ARTIFACT_LIST_BYTES_MAX)
        return import_refuse (out, TMQ_TOO_LARGE,
                              "artifacts: their names and types have %zu bytes, at most %d", listed,
                              TMQ_ARTIFACT_LIST_BYTES_MAX);
    if (call->link->space->entries.artifact_bytes + bytes > config->space_artifact_bytes_max)
        return import_refuse_limit (out, "bytes of the artifacts of a namespace",
                                    config->space_artifact_bytes_max);
    return true;
}

static bool artifacts_are_good (const call_t *call, const Taskmq__ImportedTask *whole,
                                import_refusal_t *out)
{
    for (size_t i = 0; i < whole->n_artifacts; i++)
        if (!artifact_is_good (call, whole->artifacts[i], out))
            return false;
    return whole->n_artifacts == 0 || artifacts_have_room (call, whole, out);
}

static void bring_artifact (tasks_t *tasks, task_t *task, const Taskmq__ImportedArtifact *given)
{
    Taskmq__Artifact artifact = *given->info;
    const uint8_t *bytes = given->body.len == 0 ? (const uint8_t *) "" : given->body.data;
    if (artifact.type[0] == '\0')
        artifact.type = (char *) (uintptr_t) ARTIFACT_TYPE;
    artifact.uploaded = is_uploaded (given) && artifact.bytes <= TMQ_FRAME_BYTES_MAX;
    artifact_put (tasks, task, &artifact, bytes);
}

/* Late successes. */

/* One whose time ended on the way does not come: that of here, too. */
static bool is_over (const call_t *call, const Taskmq__ImportedLate *late)
{
    const base_t *base = call->requests->base;
    int64_t most = (int64_t) late->at + base->config.kept_ms;
    int64_t until = (int64_t) late->until < most ? (int64_t) late->until : most;
    return until <= clocks_expiry_ms (&base->clocks);
}

/* They never push out what is kept here. */
static bool late_are_good (const call_t *call, const Taskmq__ImportedTask *whole,
                           import_refusal_t *out)
{
    const engine_config_t *config = &call->requests->base->config;
    uint64_t bytes = 0;
    size_t count = 0;
    for (size_t i = 0; i < whole->n_late; i++) {
        const Taskmq__ImportedLate *late = whole->late[i];
        const Taskmq__Blob *blob = late->result_blob;
        if (!import_time_is_good (call->requests, "late.at", late->at, out))
            return false;
        if (is_over (call, late))
            continue;
        if (blob != NULL && !blob_is_good (call, blob, "late", "", out))
            return false;
        bytes += late->result.len + (blob == NULL ? 0 : blob->bytes);
        count++;
    }
    if (bytes > config->space_kept_bytes_max)
        return import_refuse (out, TMQ_TOO_LARGE,
                              "late: %" PRIu64 " bytes, a namespace keeps at most %zu", bytes,
                              config->space_kept_bytes_max);
    if (count == 0 || kept_has_room (call->requests->tasks, call->link->space, count, bytes))
        return true;
    return import_refuse_limit (out, "late successes of a namespace", config->space_kept_max);
}

static void bring_late (const call_t *call, const Taskmq__ImportedTask *whole, task_t *task,
                        const Taskmq__ImportedLate *given)
{
    attempt_note_t attempt = {.attempt = given->attempt, .worker = ""};
    for (size_t i = 0; i < whole->n_attempts; i++)
        if (whole->attempts[i]->attempt == given->attempt) {
            attempt.started_at = (int64_t) whole->attempts[i]->started_at;
            attempt.worker = whole->attempts[i]->worker;
        }
    const late_t late = {&attempt, given->result.data, (uint32_t) given->result.len, given->type,
                         given->result_blob};
    kept_bring (call->requests->tasks, task, &late, (int64_t) given->at, (int64_t) given->until);
}

/* All of it. */

bool import_beside_judge (const call_t *call, const Taskmq__ImportedTask *whole,
                          const Taskmq__Extra *extra, import_refusal_t *out)
{
    const Taskmq__Blob *payload = extra == NULL ? NULL : extra->payload_blob;
    const Taskmq__Blob *result = extra == NULL ? NULL : extra->result_blob;
    return (payload == NULL || blob_is_good (call, payload, "payload_blob", "", out)) &&
           (result == NULL || blob_is_good (call, result, "result_blob", "", out)) &&
           blobs_have_places (call, whole, out) && artifacts_are_good (call, whole, out) &&
           late_are_good (call, whole, out);
}

void import_beside_bring (call_t *call, const Taskmq__ImportedTask *whole,
                          const Taskmq__Extra *extra, task_t *task)
{
    tasks_t *tasks = call->requests->tasks;
    const char *owner = name_text (task->owner);
    if (extra != NULL && extra->payload_blob != NULL)
        blob_take (tasks, owner, extra->payload_blob);
    if (extra != NULL && extra->result_blob != NULL)
        blob_take (tasks, owner, extra->result_blob);
    for (size_t i = 0; i < whole->n_artifacts; i++)
        bring_artifact (tasks, task, whole->artifacts[i]);
    for (size_t i = 0; i < whole->n_late; i++)
        if (!is_over (call, whole->late[i]))
            bring_late (call, whole, task, whole->late[i]);
}
