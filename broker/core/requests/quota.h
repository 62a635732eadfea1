/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How much a principal may have at once, and in a second. Without a policy there is no limit. */
#ifndef TASKMQ_CORE_QUOTA_H
#define TASKMQ_CORE_QUOTA_H

#include "core/requests/requests.h"
#include "core/tasks/account.h"

/* A link of the account, or no more. */
void quota_enter (requests_t *self, link_t *link);
void quota_leave (requests_t *self, link_t *link);
/* The quotas that hold now for the link's principal. */
void quota_refresh (requests_t *self, link_t *link);
/* Why the account may not have `more` in addition, or no further request of its kind now. */
typedef struct quota_refusal {
    bool refused;
    char text[TMQ_NAME_LENGTH_MAX + 96];
    uint32_t retry_after_ms;
} quota_refusal_t;
/* One more of LINKS, WORKERS or SUBSCRIPTIONS. */
quota_refusal_t quota_ask (requests_t *self, const link_t *link, quota_t quota);
/* So many in all, as the caller knows. */
quota_refusal_t quota_ask_total (requests_t *self, const link_t *link, quota_t quota,
                                 uint64_t total);
/* Of a task with such a payload: tasks, bytes, rate. What is not refused is taken from the rate. */
quota_refusal_t quota_submit (requests_t *self, const link_t *link, size_t payload_bytes);
/* Of one that comes as it ended elsewhere: the rate alone. */
quota_refusal_t quota_submit_ended (requests_t *self, const link_t *link);
/* The identity may have another task with such a payload; the rate does not count. principal: NULL
 * is unlimited. */
bool quota_has_room (requests_t *self, name_t *identity, const principal_t *principal,
                     size_t payload_bytes);
/* Of another blob that a task of the owner is to name. */
quota_refusal_t quota_blob (requests_t *self, const link_t *link, const char *owner,
                            const Taskmq__Blob *blob);
/* How many bytes of blobs the link may have, which it returns, and how many it *has that are not on
 * their way: without those of this hash. UINT64_MAX: there is no limit. */
uint64_t quota_blobs (requests_t *self, const link_t *link, const uint8_t *hash, uint64_t *has);
/* Somebody else has refused a request for a quota of who is named so. link NULL: it has ended. */
void quota_tell (requests_t *self, const link_t *link, const char *identity, const char *text);
/* The link's principal alone has filled its share of what may wait for the disk, and others are
 * here: the rest is theirs. */
bool quota_is_over_share (requests_t *self, const link_t *link);
/* Of a request that reads pages. As quota_submit. */
quota_refusal_t quota_read (requests_t *self, const link_t *link);
/* Answers with the refusal, if there is one. */
bool quota_answered (call_t *call, quota_refusal_t refusal);

#endif
