/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/upload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum { BEGINS_MAX = 8 };

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
    const int code = tmq_blob_send_start (client, &self->blob, offset, bytes, length, TMQ_FOREVER,
                                          self->user, &error);
    self->asked = code == TMQ_OK;
    if (code != TMQ_OK)
        give_up (self, code, error.text);
}

void upload_begin (upload_t *self, tmq_client_t *client, const body_t *body, void *user)
{
    self->user = user;
    self->blob = body_blob (body);
    self->whole = self->told = false;
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
    if (answer->code == TMQ_OK && answer->part)
        self->whole = !answer->part->more;
    if (self->whole)
        return;
    if (answer->code == TMQ_OK && answer->part)
        send_piece (self, client, body, answer->part->offset);
    else if (answer->code == TMQ_NO_BLOB || answer->code == TMQ_CONFLICT)
        upload_begin (self, client, body, self->user);
    else
        give_up (self, answer->code, answer->error ? answer->error->text : "refused");
}
