/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Waiting for conditions, never for time alone. */
#ifndef TASKMQ_TESTS_TIMING_H
#define TASKMQ_TESTS_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/* How long a test waits for what must happen: long enough for sanitizers on a busy machine. */
#define TIMING_PATIENCE_MS 60000

/* Monotonic milliseconds. */
int64_t timing_ms (void);
/* A short pause between two looks at a condition, or a random moment of a fault. */
void timing_pause (uint32_t ms);

/* Looks at condition until it is true; fails the test when ms are over. */
#define WAIT_FOR(condition, ms)                                                                    \
    do {                                                                                           \
        int64_t wait_until_ms_ = timing_ms () + (ms);                                              \
        while (!(condition)) {                                                                     \
            if (timing_ms () > wait_until_ms_) {                                                   \
                fail_msg ("%s:%d: not in %d ms: %s", __FILE__, __LINE__, (int) (ms), #condition);  \
            }                                                                                      \
            timing_pause (5);                                                                      \
        }                                                                                          \
    } while (0)

#endif
