/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reports about keys and the access file out of messages. */
#ifndef TASKMQ_CLIENT_ACCESS_H
#define TASKMQ_CLIENT_ACCESS_H

#include "base/answers.h"
#include "taskmq.pb-c.h"

/* The reply has one of the bodies that core_access_record reads. */
bool core_reply_is_about_access (const Taskmq__Reply *reply);
/* NULL when memory is exhausted. */
tmq_access_t *core_access_record (const Taskmq__Reply *reply);
/* A copy of a text that lives as long as the report; NULL when memory is exhausted. */
char *core_access_keep (core_access_t *self, const char *text, size_t length);

#endif
