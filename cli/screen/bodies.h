/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bodies of artifacts and of late successes that stand in the line of an export. */
#ifndef TASKCTL_SHOWN_BODIES_H
#define TASKCTL_SHOWN_BODIES_H

#include "json.h"
#include "line/app.h"

typedef struct shown_body {
    bytes_t bytes;
    bool there; /* false: it is not shown */
} shown_body_t;

/* Fetch one of at most TMQ_FRAME_BYTES_MAX bytes. Returns TMQ_OK or the code in error; TMQ_NO_BLOB:
 * it is not there, or not any more. */
int shown_body_artifact (shown_body_t *out, const app_t *app, const tmq_id_t *id,
                         const tmq_artifact_info_t *artifact, tmq_error_t *error);
int shown_body_kept (shown_body_t *out, const app_t *app, const tmq_id_t *id,
                     const tmq_attempt_info_t *attempt, tmq_error_t *error);
/* The member `text` of the object that is open, or `base64` where the bytes are none: what looks
 * secret in a text is found in it. Nothing for one that is not there, or NULL. */
void shown_body_write (json_writer_t *writer, const shown_body_t *body);
void shown_bodies_free (shown_body_t *bodies, size_t count);

#endif
