/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From the fields of a reply with code 0 to an answer: one small function per kind of operation. */
#ifndef TASKMQ_CLIENT_REPLIES_H
#define TASKMQ_CLIENT_REPLIES_H

#include "link/requests.h"

/* The part of a file that a reply brings, or NULL. */
const Taskmq__Part *core_part_of (const Taskmq__Reply *reply);
/* "Not now": the library tries again until the deadline. */
bool core_reply_is_for_now (uint32_t code);

/* False: the reply is not what it should be. body: the bytes that belong to the reply's task. */
typedef bool core_reply_handler_t (core_requests_t *self, core_request_t *request,
                                   const Taskmq__Reply *reply, const uint8_t *body);
core_reply_handler_t core_reply_submit, core_reply_submit_batch, core_reply_task, core_reply_cancel,
    core_reply_list, core_reply_count, core_reply_resolve, core_reply_events, core_reply_stats,
    core_reply_access, core_reply_part, core_reply_blob_at, core_reply_head, core_reply_vacuumed,
    core_reply_cleanup, core_reply_queues, core_reply_answered, core_reply_inbox, core_reply_why,
    core_reply_workers, core_reply_changed, core_reply_done;
core_reply_handler_t core_reply_sessions;
core_reply_handler_t core_reply_schedules, core_reply_attempts, core_reply_turns, core_reply_search,
    core_reply_artifacts;
core_reply_handler_t core_reply_import;
core_reply_handler_t core_reply_value, core_reply_value_page, core_reply_item_page,
    core_reply_item_done;

#endif
