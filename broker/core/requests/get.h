/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Answers about one task, wherever it is. */
#ifndef TASKMQ_CORE_GET_H
#define TASKMQ_CORE_GET_H

#include "core/reads/find.h"
#include "core/requests/requests.h"

/* Finds the task of a request that needs one of the rights over it; false when the request was
 * answered. */
bool get_find (call_t *call, const ProtobufCBinaryData *id, unsigned rights, found_t *out);
/* Answers with the task as it is, and a body or NULL. */
void get_answer (call_t *call, const found_t *found, buf_t *body);
/* Answers WRONG_STATUS: what, and the status that the task has. */
void get_answer_wrong_status (call_t *call, const char *what, tmq_status_t status);

#endif
