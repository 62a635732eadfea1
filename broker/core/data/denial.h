/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Somebody asked for what it may not have: for the record of deeds. */
#ifndef TASKMQ_CORE_DATA_DENIAL_H
#define TASKMQ_CORE_DATA_DENIAL_H

#include "core/data/peer.h"
#include "taskmq_types.h"

/* Waiting to be told; of more in one round only the number is counted. */
enum { DENIALS_MAX = 16 };

typedef struct denial {
    peer_t peer;
    char identity[TMQ_OWNER_BYTES_MAX + 1];
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* empty: the peer has no link */
    const char *request;              /* its name; static */
} denial_t;

#endif
