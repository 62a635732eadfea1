/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What workers attached to a task. */
#ifndef TASKCTL_ARTIFACTS_H
#define TASKCTL_ARTIFACTS_H

#include "json.h"
#include "line/app.h"
#include "screen/bodies.h"

/* One object, as a value of what is being written. */
void artifact_write (json_writer_t *writer, const tmq_artifact_info_t *artifact);
/* An array of them, with their bodies as far as they are there; bodies: one each, or NULL. */
void artifacts_write (json_writer_t *writer, const tmq_artifact_list_t *list,
                      const shown_body_t *bodies);
void artifacts_table (const app_t *app, const tmq_artifact_list_t *list);
/* Lines of a card. */
void artifacts_show (const app_t *app, const tmq_artifact_list_t *list);

#endif
