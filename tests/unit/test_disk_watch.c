/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How long submissions are refused behind commits that found no space. The disk that the broker
 * sees has room all the time: it may be another one than the store's. */
#include "disk_watch.h"

#include "support/cmocka_all.h"

enum { START = 987654321, LOOK_MS = 1000, MAX_MS = 30000, FORGOTTEN_MS = 300000 };

static bool refuses;

void engine_set_full (engine_t *self, bool full)
{
    (void) self;
    refuses = full;
}

void store_stats (store_t *self, store_stats_t *out)
{
    (void) self;
    *out = (store_stats_t){.free_bytes = UINT64_MAX};
}

/* As the server does: it looks each second. */
static int64_t fail_at (disk_watch_t *watch, int64_t now_ms)
{
    disk_commit_failed (watch, now_ms);
    refuses = true;
    int64_t end_ms = now_ms;
    while (refuses) {
        end_ms += LOOK_MS;
        disk_look (watch, NULL, NULL, end_ms, 0, 1, true);
        assert_true (end_ms - now_ms <= 2 * MAX_MS);
    }
    return end_ms;
}

static void submissions_are_refused_for_longer_each_time (void **state)
{
    (void) state;
    disk_watch_t watch = {0};
    int64_t now_ms = START;
    for (int64_t wanted = FULL_RETRY_MS; wanted < 4 * MAX_MS; wanted *= 2) {
        int64_t end_ms = fail_at (&watch, now_ms);
        assert_int_equal (end_ms - now_ms, wanted < MAX_MS ? wanted : MAX_MS);
        now_ms = end_ms + 1;
    }
}

static void a_failure_long_ago_is_forgotten (void **state)
{
    (void) state;
    disk_watch_t watch = {0};
    fail_at (&watch, START);
    fail_at (&watch, START + LOOK_MS);
    int64_t now_ms = START + LOOK_MS + FORGOTTEN_MS;
    assert_int_equal (fail_at (&watch, now_ms - 1) - now_ms + 1, 4 * FULL_RETRY_MS);
    now_ms += FORGOTTEN_MS;
    assert_int_equal (fail_at (&watch, now_ms) - now_ms, FULL_RETRY_MS);
}

static void a_look_between_clears_nothing (void **state)
{
    (void) state;
    disk_watch_t watch = {0};
    disk_commit_failed (&watch, START);
    refuses = true;
    disk_look (&watch, NULL, NULL, START + MAX_MS, 0, 1, false);
    assert_true (refuses);
    disk_look (&watch, NULL, NULL, START + MAX_MS, 0, 1, true);
    assert_false (refuses);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (submissions_are_refused_for_longer_each_time),
        cmocka_unit_test (a_failure_long_ago_is_forgotten),
        cmocka_unit_test (a_look_between_clears_nothing),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
