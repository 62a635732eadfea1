/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/upload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
    BEGINS_MAX = 8,
    STEP_MS = 60 * 1000, /* for the answer to a step: then it is asked again where it stands */
    AGAIN_MS = 1000,     /* after a refusal that names no time */
    STANDS_MS = 3000     /* refused in a row: before, it may be that others are just in front */
};

static void give_up (upload_t *self, int code, const char *why)
{
    self->code = code;
    snprintf (self->why, sizeof self->why, "%s", why);
}

/* length 0: asks what the broker wants. */
static void send (upload_t *self, tmq_client_t *client, uint64_t offset, const void *bytes,
                  size_t length)
{
    tmq_error_t error = {0};
    const int code = tmq_blob_send_start (client, &self->blob, offset, bytes, length, STEP_MS,
                                          self->user, &error);
    self->asked = code == TMQ_OK;
    if (code != TMQ_OK)
        give_up (self, code, error.text);
}

/* It may be said again without harm. With a timeout the library tells it and does not wait itself,
 * so that we can say what it waits for. */
static bool passes (int code)
{
    return code == TMQ_LIMIT || code == TMQ_STORE_FULL || code == TMQ_OVERLOADED ||
           code == TMQ_UNAVAILABLE || code == TMQ_STOPPING || code == TMQ_UNREACHABLE ||
           code == TMQ_TIMEOUT || code == TMQ_UNKNOWN || code == TMQ_OUTBOX_FULL;
}

static void wait_a_while (upload_t *self, const tmq_completion_t *answer)
{
    const uint32_t wait_ms = answer->error ? answer->error->retry_after_ms : 0;
    if (self->refused_since_ms == 0)
        self->refused_since_ms = mono_ms ();
    self->refused_code = answer->code;
    self->again_at_ms = mono_ms () + (wait_ms > 0 ? wait_ms : AGAIN_MS);
    snprintf (self->why, sizeof self->why, "%s",
              answer->error ? answer->error->text : tmq_code_text (answer->code));
}

void upload_go_on (upload_t *self, tmq_client_t *client)
{
    if (self->again_at_ms == 0 || mono_ms () < self->again_at_ms)
        return;
    self->again_at_ms = 0;
    send (self, client, 0, NULL, 0);
}

void upload_end (upload_t *self, tmq_client_t *client)
{
    if (self->user && !self->whole)
        tmq_blob_drop (client, &self->blob, NULL);
}

bool upload_stands (const upload_t *self)
{
    const int code = self->refused_code;
    return self->again_at_ms > 0 && mono_ms () - self->refused_since_ms >= STANDS_MS &&
           (code == TMQ_LIMIT || code == TMQ_STORE_FULL || code == TMQ_OVERLOADED ||
            code == TMQ_UNAVAILABLE);
}

bool upload_lacks_room (const upload_t *self)
{
    return upload_stands (self) &&
           (self->refused_code == TMQ_LIMIT || self->refused_code == TMQ_STORE_FULL);
}

void upload_begin (upload_t *self, tmq_client_t *client, const body_t *body, void *user)
{
    self->user = user;
    self->blob = body_blob (body);
    self->whole = self->told = false;
    self->again_at_ms = 0;
    if (++self->begins > BEGINS_MAX)
        give_up (self, TMQ_CONFLICT, "the broker takes it again and again, and has not got it");
    else
        send (self, client, 0, NULL, 0);
}

static void send_piece (upload_t *self, tmq_client_t *client, const body_t *body, uint64_t offset)
{
    if (offset >= body->bytes) {
        give_up (self, TMQ_PROTOCOL, "the broker wants more than there is");
        return;
    }
    const uint64_t left = body->bytes - offset;
    const size_t length = left < TMQ_FRAME_BYTES_MAX ? (size_t) left : TMQ_FRAME_BYTES_MAX;
    char *piece = must_alloc (length);
    if (pread (body->fd, piece, length, (off_t) offset) == (ssize_t) length)
        send (self, client, offset, piece, length);
    else
        give_up (self, TMQ_SYSTEM, strerror (errno));
    free (piece);
}

void upload_take (upload_t *self, tmq_client_t *client, const body_t *body,
                  const tmq_completion_t *answer)
{
    self->asked = false;
    if (answer->code == TMQ_OK)
        self->refused_since_ms = 0;
    if (answer->code == TMQ_OK && answer->part)
        self->whole = !answer->part->more;
    if (self->whole)
        return;
    if (answer->code == TMQ_OK && answer->part)
        send_piece (self, client, body, answer->part->offset);
    else if (answer->code == TMQ_NO_BLOB || answer->code == TMQ_CONFLICT)
        upload_begin (self, client, body, self->user);
    else if (passes (answer->code))
        wait_a_while (self, answer);
    else
        give_up (self, answer->code, answer->error ? answer->error->text : "refused");
}
