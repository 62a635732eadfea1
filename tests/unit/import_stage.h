/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that are imported, for tests of it. */
#ifndef TASKMQ_TEST_IMPORT_STAGE_H
#define TASKMQ_TEST_IMPORT_STAGE_H

#include "core_rig.h"

/* What is imported; a test changes what it wants. */
typedef struct given {
    Taskmq__Import import;
    Taskmq__ImportedTask whole;
    Taskmq__Task task;
    Taskmq__TaskError error;
    Taskmq__Extra extra;
    tmq_id_t id;
    uint8_t request_id[16];
} given_t;

/* One of this status, made a second before the rig's clock. */
void given_fill (given_t *out, const rig_t *rig, unsigned n, tmq_status_t status);
uint64_t given_send_piece (rig_t *rig, size_t peer, given_t *given, const uint8_t *bytes,
                           size_t from, size_t length, bool more);
/* All of it, in one piece. */
uint64_t given_send (rig_t *rig, size_t peer, given_t *given);
/* By the first peer: the code of the answer; its item, of one that came. */
unsigned given_code (rig_t *rig, given_t *given);
const Taskmq__SubmittedItem *given_item (rig_t *rig, given_t *given);
/* The peer has uploaded it. */
void given_upload (rig_t *rig, size_t peer, Taskmq__Blob *blob);

#endif
