/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The result of a job that is larger than a frame: uploaded piece by piece, and named at the end of
 * the attempt. The job waits for the answer to that end, because a broker that was started again
 * meanwhile wants to hear of the upload once more. */
#ifndef TASKCTL_UPLOAD_H
#define TASKCTL_UPLOAD_H

#include <stdint.h>

#include <taskmq.h>

#include "work/body.h"

typedef struct upload {
    void *user;                /* of its requests; NULL: it is not begun */
    tmq_blob_t blob;           /* what is uploaded */
    bool asked;                /* a request is on its way */
    bool whole;                /* the broker has it */
    bool told;                 /* the attempt's end is on its way */
    bool done;                 /* … and was answered */
    unsigned begins;           /* how often it was begun */
    uint64_t refused_since_ms; /* for now, by LIMIT, OVERLOADED …; 0: it is not, … */
    int refused_code;          /* … the last one, which why tells, … */
    uint64_t again_at_ms;      /* … and when it goes on; 0: it does not wait */
    int code;                  /* why it cannot be uploaded; OK: it can */
    char why[512];
} upload_t;

/* Begins, or begins again. user: like no other's. */
void upload_begin (upload_t *self, tmq_client_t *client, const body_t *body, void *user);
/* The answer to a request of this upload: sends the next piece. */
void upload_take (upload_t *self, tmq_client_t *client, const body_t *body,
                  const tmq_completion_t *answer);
/* Its job is over: what is not whole is taken back. */
void upload_end (upload_t *self, tmq_client_t *client);
/* Goes on with one that was refused for now, when its time has come. */
void upload_go_on (upload_t *self, tmq_client_t *client);
/* It was refused again and again, for so long that it may take longer still. */
bool upload_stands (const upload_t *self);
/* … for room, which may never come. */
bool upload_lacks_room (const upload_t *self);

#endif
