/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What came of a request: y done, b done and bare, d DENIED, n NOT_FOUND, e EXPIRED, s STALE_LEASE,
 * - it is not in the list. */
#ifndef TESTS_RIGHTS_JUDGES_H
#define TESTS_RIGHTS_JUDGES_H

#include "rights_stage.h"

char judge_code (rig_t *rig, uint64_t request, unsigned n);
char judge_log (rig_t *rig, uint64_t request, unsigned n);
char judge_blob (rig_t *rig, uint64_t request, unsigned n);
char judge_changed (rig_t *rig, uint64_t request, unsigned n);
char judge_quiet (rig_t *rig, uint64_t request, unsigned n);
char judge_body (rig_t *rig, uint64_t request, unsigned n);
char judge_page (rig_t *rig, uint64_t request, unsigned n);
char judge_resolved (rig_t *rig, uint64_t request, unsigned n);
char judge_waited (rig_t *rig, uint64_t request, unsigned n);
char judge_item (rig_t *rig, uint64_t request, unsigned n);
char judge_renewed (rig_t *rig, uint64_t request, unsigned n);
char judge_stream (rig_t *rig, uint64_t request, unsigned n);
char judge_stats (rig_t *rig, uint64_t request, unsigned n);
char judge_inbox (rig_t *rig, uint64_t request, unsigned n);
char judge_history (rig_t *rig, uint64_t request, unsigned n);

#endif
