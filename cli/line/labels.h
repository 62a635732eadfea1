/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Labels as they stand on the command line: NAME=VALUE, which the parser has seen to be right. */
#ifndef TASKCTL_LABELS_H
#define TASKCTL_LABELS_H

#include "line/app.h"

typedef struct labels {
    tmq_label_t list[TMQ_LABELS_MAX]; /* the values stay where the arguments are */
    char keys[TMQ_LABELS_MAX][TMQ_NAME_LENGTH_MAX + 1];
    size_t count;
} labels_t;

/* Adds one; false: there are TMQ_LABELS_MAX. The struct must stay where it is. */
bool labels_add (labels_t *self, const char *text);
/* All values of an option of KIND_LABEL; false: there are more. */
bool labels_from_args (labels_t *out, const args_t *args, option_id_t option);

#endif
