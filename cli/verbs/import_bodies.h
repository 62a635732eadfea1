/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The bodies of a line that is imported. Each false with what is wrong in self->why. */
#ifndef TASKCTL_IMPORT_BODIES_H
#define TASKCTL_IMPORT_BODIES_H

#include "verbs/import_values.h"

/* The payload and the result; the first to be taken. */
bool line_take_bodies (import_line_t *self);
bool line_take_artifacts (import_line_t *self);
/* The late success that is kept of this attempt, if the line's piece has one. */
bool line_take_late (import_line_t *self, piece_t piece, uint32_t attempt);

#endif
