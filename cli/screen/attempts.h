/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What became of a task's attempts. */
#ifndef TASKCTL_ATTEMPTS_H
#define TASKCTL_ATTEMPTS_H

#include "json.h"
#include "line/app.h"
#include "screen/bodies.h"

/* All attempts at a task. */
typedef struct attempts_view {
    tmq_attempt_list_t **pages;
    size_t pages_count;
    shown_body_t *kept; /* of those of which something is kept, in their order; NULL: not loaded */
    size_t kept_count;
} attempts_view_t;
/* Asks for them. Returns TMQ_OK or the code in error. To be cleared in any case. */
int attempts_load (attempts_view_t *self, const app_t *app, const tmq_id_t *id, tmq_error_t *error);
/* … and for the late successes that fit a frame. */
int attempts_load_kept (attempts_view_t *self, const app_t *app, const tmq_id_t *id,
                        tmq_error_t *error);
void attempts_clear (attempts_view_t *self);
/* The next one behind *place, which begins all zero; NULL: there is none. */
typedef struct attempts_place {
    size_t page;
    size_t at;
} attempts_place_t;
const tmq_attempt_info_t *attempts_next (const attempts_view_t *self, attempts_place_t *place);

/* An array, as a value of what is being written. */
void attempts_write (json_writer_t *writer, const attempts_view_t *self);
/* Lines of a card. */
void attempts_show (const app_t *app, const attempts_view_t *self);

#endif
