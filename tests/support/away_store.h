/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A store over another one, which a test takes out of reach and gives back. It keeps the contract
 * of store.h in that state: a commit waits, reads say that they found it so, and the lease runs
 * out.
 *
 * The program taskmqd_away is a broker that opens it in place of its store, when the environment
 * names the switch's file. */
#ifndef TASKMQ_TESTS_AWAY_STORE_H
#define TASKMQ_TESTS_AWAY_STORE_H

#include <stdatomic.h>
#include <stdint.h>

#define AWAY_STORE_FILE "TASKMQ_TEST_AWAY"

/* Shared by the test and the broker, as a mapped file. */
typedef struct away_switch {
    _Atomic int64_t since;    /* CLOCK_MONOTONIC in ms: out of reach since then; 0: in reach */
    _Atomic int64_t lease_ms; /* of a store that is in reach; 0: it is owned for good */
    _Atomic int32_t lands; /* commits that begin while it is away land, and their answer is lost */
    _Atomic int32_t waiting;  /* commits that wait */
    _Atomic uint32_t missed;  /* look-ups and reads that found it out of reach */
    _Atomic uint32_t unknown; /* commits that landed without an answer */
} away_switch_t;

/* Maps the file, which is made when it is not there; ends the program when that is not possible. */
away_switch_t *away_switch_map (const char *path);
/* Takes the store away, or gives it back. */
void away_switch_set (away_switch_t *self, int away);

#endif
