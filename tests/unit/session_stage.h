/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A stage for tests of sessions: peer 0 orders and submits to queue q, peer 1 works. */
#ifndef TASKMQ_TESTS_SESSION_STAGE_H
#define TASKMQ_TESTS_SESSION_STAGE_H

#include "core_rig.h"

/* Of what is sent; the same one until stage_next_request is called. */
extern uint8_t stage_request_id[16];
/* Sends, and settles. */
uint64_t stage_send (rig_t *rig, size_t peer, Taskmq__Request *request);
/* What is sent next is no repeat. */
void stage_next_request (void);
uint64_t stage_send_status (rig_t *rig, size_t peer, const char *name, tmq_session_status_t status,
                            const char *why);
void stage_set_status (rig_t *rig, const char *name, tmq_session_status_t status);
uint64_t stage_send_set (rig_t *rig, size_t peer, Taskmq__SessionSet *body);
unsigned stage_set_goal (rig_t *rig, size_t peer, const char *name, const char *goal);
/* Of the session "trip". */
void stage_pause (rig_t *rig);
void stage_resume (rig_t *rig);
void stage_set_salience (rig_t *rig, const char *name, uint32_t salience);
uint64_t stage_send_name (rig_t *rig, size_t peer, Taskmq__Request__OpCase op, const char *name);
const Taskmq__Reply *stage_show (rig_t *rig, size_t peer, const char *name);
unsigned stage_remove (rig_t *rig, size_t peer, const char *name);
uint64_t stage_send_queue (rig_t *rig, bool paused);
void stage_set_queue (rig_t *rig, uint32_t field, uint32_t value);
uint64_t stage_submit_spec (rig_t *rig, unsigned n, const char *session, Taskmq__TaskSpec *spec);
void stage_submit (rig_t *rig, unsigned n, const char *session);
unsigned stage_code_of_submit (rig_t *rig, unsigned n, const char *session);
void stage_complete_all (rig_t *rig);
void stage_assert_held (rig_t *rig, unsigned n);

#endif
