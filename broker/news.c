/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "news.h"

/* A leap holds what would be removed by it, so somebody should know (S20). */
void news_clock (engine_t *engine, log_level_t level)
{
    int64_t ms;
    clocks_step_t step = engine_clock_news (engine, &ms);
    if (step == CLOCKS_LEAPT)
        log_write (level, "CLOCK-LEAP",
                   "the wall clock is ahead of what was expected: nothing expires by that for ten "
                   "minutes",
                   LOG_FIELDS (LOG_NUMBER ("ms", ms)));
    else if (step == CLOCKS_BACK)
        log_write (level, "CLOCK-BACK",
                   "the wall clock went back by more than an hour and is followed",
                   LOG_FIELDS (LOG_NUMBER ("ms", ms)));
}

static void log_broken (void *context, const char *ns, const char *name, const char *why)
{
    (void) context;
    log_write (LOG_LEVEL_WARNING, "SCHEDULE-BROKEN",
               "a schedule makes no tasks until it is put again",
               LOG_FIELDS (LOG_TEXT ("ns", ns), LOG_TEXT ("name", name), LOG_TEXT ("why", why)));
}

void news_schedules (const engine_t *engine)
{
    engine_tell_broken (engine, log_broken, NULL);
}
