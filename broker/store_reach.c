/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store_reach.h"

#include <unistd.h>

#include "log/log.h"
#include "timestamp.h"

static void tell_away (const tenure_t *self, int64_t away_ms)
{
    const char *what = self->shut ? "the store is no longer surely ours: the broker answers nobody "
                                    "until it is sure"
                                  : "the store is out of reach: what needs it is answered "
                                    "UNAVAILABLE";
    log_write (LOG_LEVEL_WARNING, "DATABASE-AWAY", what, LOG_FIELDS (LOG_NUMBER ("ms", away_ms)));
}

bool store_reach_look (tenure_t *self, store_t *store, engine_t *engine, now_t now)
{
    bool was_shut = self->shut;
    bool was_away = self->away;
    int64_t away_ms = store_away_ms (store);
    tenure_news_t news = tenure_look (self, now.mono_ms, away_ms, store_valid_until (store));
    if (self->away != was_away)
        engine_set_away (engine, self->away, now);
    if (self->shut != was_shut)
        engine_set_shut (engine, self->shut);
    if (news == TENURE_AWAY || (self->shut && !was_shut))
        tell_away (self, away_ms);
    else if (news == TENURE_BACK)
        log_write (LOG_LEVEL_INFO, "DATABASE-BACK", "the store is in reach again",
                   LOG_FIELDS (LOG_NUMBER ("ms", now.mono_ms - self->away_since)));
    return self->away != was_away || self->shut != was_shut;
}

void store_reach_missed (tenure_t *self, engine_t *engine, now_t now)
{
    if (tenure_missed (self, now.mono_ms))
        tell_away (self, 0);
    engine_set_away (engine, true, now);
}

bool store_reach_ended (tenure_t *self, engine_t *engine)
{
    if (self->shut || !tenure_has_end (self) || tenure_may_tell (self, clock_ms (CLOCK_MONOTONIC)))
        return false;
    self->shut = true;
    self->away_since = self->away ? self->away_since : clock_ms (CLOCK_MONOTONIC);
    engine_set_shut (engine, true);
    tell_away (self, 0);
    return true;
}

bool store_reach_is_lost (const tenure_t *self)
{
    return self->away || self->shut;
}

exits_t store_reach_left (const store_error_t *error)
{
    log_write (LOG_LEVEL_WARNING, "STOPPED-AWAY",
               "stopped while the store is out of reach, and without a word to it",
               LOG_FIELDS (LOG_TEXT ("why", error->text), LOG_NUMBER ("exit", EXITS_OK)));
    return EXITS_OK;
}

void store_reach_give_up (const tenure_t *self, bool away)
{
    if (!store_reach_is_lost (self) && !away)
        return;
    log_write (LOG_LEVEL_WARNING, "STOPPED-AWAY",
               "stopped while the store is out of reach: requests without an answer are dropped",
               LOG_FIELDS (LOG_NUMBER ("exit", EXITS_OK)));
    _exit (EXITS_OK);
}
