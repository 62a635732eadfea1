/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bytes of a task as the body of an answer: a payload, a result, an artifact. They have a strong
 * entity tag, their hash, and a client may ask for a range of them.
 *
 * What is larger than a frame is read from the broker in pieces of DOWNLOAD_PIECE_BYTES. The next
 * one is asked for when the client has taken the one before, so that is all that the gateway holds
 * of a download, and a slow client holds up nobody. A broker that is away is waited for, as long as
 * output_timeout without a piece. The last piece leaves when the hash of all is right. What cannot
 * be brought to its end is cut: a client sees that it has not all of it, and goes on by a range.
 * A range alone has no hash: who puts the pieces together compares it with the tag. */
#ifndef TASKMQ_GATEWAY_REST_DOWNLOAD_H
#define TASKMQ_GATEWAY_REST_DOWNLOAD_H

#include "link/link.h"
#include "rest/service.h"

enum { DOWNLOAD_PIECE_BYTES = TMQ_PART_BYTES_MAX };

typedef enum download_part { DOWNLOAD_PAYLOAD, DOWNLOAD_RESULT, DOWNLOAD_ARTIFACT } download_part_t;

/* What it is. All of it is borrowed for the call. */
typedef struct download_what {
    download_part_t part;
    tmq_id_t id;
    const char *type;  /* "": application/octet-stream */
    const char *name;  /* of an artifact; else NULL */
    const void *bytes; /* NULL: they are read from the broker, … */
    uint64_t length;
    const uint8_t *hash; /* … and these are theirs: BLAKE2b-256 */
} download_what_t;

typedef struct download download_t;

/* Answers the exchange, once. Of it is what the download needs until then. */
void download_answer (exchange_t *exchange, const download_what_t *what);
void download_free (download_t **self); /* accepts a NULL object */

#endif
