/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions of workers, answers of clients. */
#ifndef TASKMQ_CORE_ASK_H
#define TASKMQ_CORE_ASK_H

#include "core/requests/requests.h"

/* A follower: the holder of a task whose question was answered is told. */
void answers_follow (requests_t *self, const fact_t *fact);

#endif
