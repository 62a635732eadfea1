/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the broker's welcome says about who we are. */
#ifndef TASKMQ_CLIENT_RIGHTS_H
#define TASKMQ_CLIENT_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "keys.h"
#include "taskmq_types.h"

typedef struct core_rights {
    char principal[TMQ_NAME_LENGTH_MAX + 1];
    char roles[1024];
    char redact[TMQ_REDACT_BYTES_MAX + 1]; /* what exports leave out */
    uint64_t key_until;                    /* when our key ends; 0: it does not */
    int64_t clock_ms;                      /* the broker's clock, since the epoch, … */
    int64_t clock_at;                      /* … at this time of ours (monotonic) */
    uint64_t blob_bytes_max;
    bool has_server;     /* the broker has a key, … */
    key_public_t server; /* … this one, … */
    bool has_next;       /* … and will have another one: … */
    key_public_t next;   /* … this */
} core_rights_t;

#endif
