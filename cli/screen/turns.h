/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What workers told of their turns, and the files that these touched. */
#ifndef TASKCTL_TURNS_H
#define TASKCTL_TURNS_H

#include "json.h"
#include "line/app.h"

/* All turns of a task, by their place. */
typedef struct turns_view {
    tmq_turn_list_t **pages;
    size_t pages_count;
} turns_view_t;
/* Asks for them: whole, or with their files alone. Returns TMQ_OK or the code in error. To be
 * cleared in any case. */
int turns_load (turns_view_t *self, const app_t *app, const tmq_id_t *id, bool whole,
                tmq_error_t *error);
void turns_clear (turns_view_t *self);

/* Arrays, as values of what is being written. */
void turns_write (json_writer_t *writer, const turns_view_t *self);
void turns_write_files (json_writer_t *writer, const turns_view_t *self);
/* Lines of a card. id: the task's. */
void turns_show (const app_t *app, const turns_view_t *self, const tmq_id_t *id);
void turns_show_files (const app_t *app, const turns_view_t *self);

#endif
