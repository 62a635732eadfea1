/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Pieces of logs that wait to be given to the server. */
#ifndef TASKMQ_CORE_LOG_H
#define TASKMQ_CORE_LOG_H

#include "core/data/log_piece.h"
#include "core/requests/requests.h"

log_piece_t *log_pieces_next (requests_t *self); /* or NULL; comes back by log_piece_done */
void log_piece_done (requests_t *self, log_piece_t *piece); /* takes it */
void log_pieces_free (requests_t *self);                    /* those that wait */

#endif
