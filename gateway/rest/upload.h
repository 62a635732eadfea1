/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A payload that is larger than a frame, from a client to the broker.
 *
 * The broker wants its hash before its first byte, and a client of HTTP tells none. So it goes
 * through a file without a name (net/spool.h), in pieces of UPLOAD_PIECE_BYTES: the next one is
 * read from the client when the one before is in the file. When all is there it is sent to the
 * broker, a piece after the answer to the one before; of all uploads and downloads of a namespace
 * as many at a time as there are turns (link_bodies). So a piece is in memory, whatever the length,
 * and a client that leaves before all of it has come leaves nothing at the broker. When it leaves
 * later, or the broker refuses, what was begun there is taken back.
 *
 * A broker that is away is waited for, as long as body_timeout without a piece. */
#ifndef TASKMQ_GATEWAY_REST_UPLOAD_H
#define TASKMQ_GATEWAY_REST_UPLOAD_H

#include "link/link.h"
#include "rest/service.h"

/* With its last byte it is certain that it does not fit a frame. */
enum { UPLOAD_PIECE_BYTES = TMQ_FRAME_BYTES_MAX + 1 };

typedef struct upload upload_t;

/* At the head: a body that turns out to be larger than a frame becomes an upload. How much of it is
 * taken is set, within what the broker takes. */
void upload_expect (exchange_t *exchange);
/* When the request is whole, and exchange->upload is not NULL: sends it, and calls done when the
 * broker has it; else answers. Also again, if the broker has forgotten it (TMQ_NO_BLOB). False:
 * nothing was done, because that has been said too often. */
typedef void upload_done_fn (exchange_t *exchange, const tmq_blob_t *blob);
bool upload_send (exchange_t *exchange, upload_done_fn *done);
void upload_free (upload_t **self); /* accepts a NULL object */

#endif
