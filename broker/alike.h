/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What brokers that own a database in turn should have alike, and have in files of their own: the
 * access file and the server key. The owner keeps what it has of them in the store. One that takes
 * over from another compares, and says what differs: a key that was revoked at the owner before
 * may still be good here, and clients that know one server key do not come in by another. The
 * server's thread. */
#ifndef TASKMQ_BROKER_ALIKE_H
#define TASKMQ_BROKER_ALIKE_H

#include "core/access/policy.h"
#include "core/data/lookup.h"
#include "core/data/row.h"
#include "keys.h"

/* Of one broker. All zero: it has none. */
typedef struct alike_parts {
    uint8_t instance[BOOT_INSTANCE_BYTES];
    uint8_t access[POLICY_DIGEST_BYTES];
    key_public_t key;
} alike_parts_t;

typedef struct alike {
    bool in_turn;            /* else there is but one broker, and nothing to compare */
    const key_public_t *key; /* borrowed, as it is now; NULL: there is none */
    alike_parts_t own;       /* what we have now */
    alike_parts_t kept;      /* what stands in the store */
    bool is_kept;            /* something stands there */
} alike_t;

/* key: lent, and may change; NULL if the broker has none. */
void alike_init (alike_t *self, const boot_t *boot, const key_public_t *key);
/* The row that the store has kept. */
void alike_restore (alike_t *self, const row_t *row);
/* From now on this policy counts; NULL: none. */
void alike_policy (alike_t *self, const policy_t *policy);
/* Says in the log what differs from what the owner before had; once, at the start. */
void alike_compare (alike_t *self);
/* True: this row, the caller's, is to be kept, since what we have is not what stands there. */
bool alike_row (alike_t *self, row_t *out);

#endif
