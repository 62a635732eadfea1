/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Import. Tasks that fit into a frame go many at a time; one that does not goes alone, piece by
 * piece, each when the one before is answered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/sized.h"
#include "client/client.h"
#include "codec/imports.h"

enum { BEGINNINGS_MAX = 3 }; /* of one task in pieces: a new link forgets those that came before */

/* One call. */
typedef struct importing {
    tmq_client_t *client;
    tmq_receipt_t *out;
    size_t count;
    int64_t deadline_ms;
    core_group_t *group; /* what is not sent yet; NULL: nothing */
    int code;            /* first failure */
    tmq_error_t *error;
} importing_t;

void (tmq_import_init) (tmq_import_t *task, size_t size)
{
    static const tmq_import_t defaults = {0};
    core_sized_init (task, size, &defaults, sizeof defaults);
}

static void note (importing_t *self, int code, const tmq_error_t *error)
{
    if (code == TMQ_OK || self->code != TMQ_OK)
        return;
    self->code = code;
    if (self->error != NULL)
        *self->error = *error;
}

static uint32_t time_left (const importing_t *self)
{
    int64_t left = self->deadline_ms - client_now_ms ();
    return left <= 0 ? 0 : left > UINT32_MAX ? UINT32_MAX : (uint32_t) left;
}

/* answer: NULL, nothing was sent. */
static void take_receipts (importing_t *self, const bool *asked, const core_answer_t *answer,
                           int code, const tmq_error_t *error)
{
    for (size_t i = 0; i < self->count; i++) {
        tmq_receipt_t *out = &self->out[i];
        if (!asked[i])
            continue;
        if (answer != NULL)
            *out = answer->completion.receipts[i];
        else
            out->code = code;
        if (answer == NULL)
            snprintf (out->text, sizeof out->text, "%.255s", error->text);
    }
}

/* Sends what the group has and waits for the answers. */
static int flush (importing_t *self)
{
    core_answer_t *answer = NULL;
    tmq_error_t error = {0};
    if (self->group == NULL)
        return TMQ_OK;
    core_request_t *first = self->group->first;
    bool *asked = calloc (self->count, sizeof *asked);
    if (asked == NULL) {
        core_import_drop (self->group);
        self->group = NULL;
        return core_error (&error, TMQ_NO_MEMORY, NULL);
    }
    for (const core_request_t *member = first; member != NULL; member = member->next)
        asked[member->items[0].receipt] = true;
    self->group = NULL;
    int code = client_call (&answer, self->client, first, time_left (self), &error);
    take_receipts (self, asked, answer, code, &error);
    note (self, code, &error);
    core_answer_free (answer);
    free (asked);
    return code;
}

static bool add (importing_t *self, const tmq_import_t *task, const bytes_t *packed, size_t offset,
                 size_t i)
{
    if (self->group == NULL)
        self->group = core_import_group (self->count);
    return self->group != NULL && core_import_add (self->group, task, packed, offset, i);
}

static int import_pieces (importing_t *self, const tmq_import_t *task, const bytes_t *packed,
                          size_t i)
{
    int code = TMQ_OK;
    for (size_t at = 0; code == TMQ_OK && at < packed->length; at += TMQ_FRAME_BYTES_MAX)
        code = add (self, task, packed, at, i) ? flush (self) : TMQ_NO_MEMORY;
    return code;
}

/* One that does not fit into a frame. */
static void import_alone (importing_t *self, const tmq_import_t *task, const bytes_t *packed,
                          size_t i)
{
    tmq_error_t first = {0};
    const int before = self->code;
    if (self->error != NULL)
        first = *self->error;
    int code = TMQ_CONFLICT;
    for (int n = 0; code == TMQ_CONFLICT && n < BEGINNINGS_MAX; n++) {
        self->code = before;
        if (self->error != NULL)
            *self->error = first;
        code = import_pieces (self, task, packed, i);
    }
    if (code == TMQ_NO_MEMORY)
        self->out[i].code = code;
}

/* What the task has room for beside all that must be in it. 0: too little, which is told later. */
static size_t room_for_artifacts (const tmq_import_t *task)
{
    enum { ARTIFACT_FIELDS_BYTES = 512 };
    tmq_import_t bare = *task;
    bytes_t packed = BYTES_INIT;
    bare.artifacts_count = 0;
    core_import_pack (&packed, &bare);
    size_t taken = packed.length + task->artifacts_count * ARTIFACT_FIELDS_BYTES;
    for (size_t i = 0; i < task->artifacts_count; i++)
        if (task->artifacts[i].length < TMQ_BLOB_BYTES_MIN)
            taken += task->artifacts[i].length;
    bytes_free (&packed);
    return taken < TMQ_IMPORT_BYTES_MAX ? TMQ_IMPORT_BYTES_MAX - taken : 0;
}

/* Uploads those of its artifacts that do not fit into it. *own, to be freed, has them then; it may
 * be NULL. uploaded: how many. */
static int put_artifacts (importing_t *self, tmq_import_t *task, tmq_imported_artifact_t **own,
                          size_t *uploaded, tmq_error_t *error)
{
    int code = TMQ_OK;
    if (task->artifacts_count == 0)
        return TMQ_OK;
    size_t room = room_for_artifacts (task);
    *own = calloc (task->artifacts_count, sizeof **own);
    if (*own == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    memcpy (*own, task->artifacts, task->artifacts_count * sizeof **own);
    for (size_t i = 0; code == TMQ_OK && i < task->artifacts_count; i++) {
        tmq_imported_artifact_t *artifact = &(*own)[i];
        const size_t length = artifact->blob.bytes > 0 ? 0 : artifact->length;
        if (length < TMQ_BLOB_BYTES_MIN)
            continue;
        if (length <= TMQ_FRAME_BYTES_MAX && length <= room) {
            room -= length;
            continue;
        }
        code = tmq_blob_put (&artifact->blob, self->client, artifact->bytes, length,
                             time_left (self), error);
        ++*uploaded;
    }
    task->artifacts = *own;
    return code;
}

static void import_one (importing_t *self, const tmq_import_t *given, size_t i)
{
    tmq_import_t task;
    tmq_error_t error = {0};
    bytes_t packed = BYTES_INIT;
    tmq_imported_artifact_t *own = NULL;
    size_t uploaded = 0;
    int code = core_import_take (&task, given, &error);
    if (code == TMQ_OK) {
        self->out[i].id = task.id;
        code = put_artifacts (self, &task, &own, &uploaded, &error);
    }
    if (code == TMQ_OK) {
        core_import_pack (&packed, &task);
        if (packed.failed)
            code = core_error (&error, TMQ_NO_MEMORY, NULL);
        else if (packed.length > TMQ_IMPORT_BYTES_MAX)
            code = core_error (&error, TMQ_TOO_LARGE,
                               "the task has %zu bytes with its turns, at most %d can be imported",
                               packed.length, TMQ_IMPORT_BYTES_MAX);
    }
    if (code == TMQ_OK && packed.length > TMQ_FRAME_BYTES_MAX) {
        flush (self);
        import_alone (self, &task, &packed, i);
    } else if (code == TMQ_OK && !add (self, &task, &packed, 0, i)) {
        code = core_error (&error, TMQ_NO_MEMORY, NULL);
    }
    if (uploaded > 0) /* before others take the places of its uploads */
        flush (self);
    if (code != TMQ_OK) {
        self->out[i].code = code;
        snprintf (self->out[i].text, sizeof self->out[i].text, "%.255s", error.text);
        note (self, code, &error);
    }
    bytes_free (&packed);
    free (own);
}

int tmq_import (tmq_receipt_t *out, tmq_client_t *client, const tmq_import_t *tasks, size_t count,
                uint32_t timeout_ms, tmq_error_t *error)
{
    importing_t self = {.client = client,
                        .out = out,
                        .count = count,
                        .deadline_ms = client_deadline (timeout_ms),
                        .error = error};
    if (tasks == NULL || count == 0)
        return core_error (error, TMQ_INVALID, "at least one task is needed");
    memset (out, 0, count * sizeof *out);
    const char *at = (const char *) tasks; /* the caller's structs may be shorter than ours */
    for (size_t i = 0; i < count; i++, at += tasks->size)
        import_one (&self, (const tmq_import_t *) (const void *) at, i);
    flush (&self);
    return self.code;
}
