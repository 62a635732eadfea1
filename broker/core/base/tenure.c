/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/base/tenure.h"

#include "core/base/planted.h"

void tenure_init (tenure_t *self, int64_t patience_ms, unsigned planted_bug)
{
    *self = (tenure_t){
        .planted_bug = planted_bug, .patience_ms = patience_ms, .valid_until = INT64_MAX};
}

tenure_news_t tenure_look (tenure_t *self, int64_t now_ms, int64_t away_ms, int64_t valid_until)
{
    bool was = self->away || self->shut;
    self->valid_until = valid_until;
    self->shut = !tenure_may_tell (self, now_ms);
    self->away = away_ms > self->patience_ms || (self->away && away_ms > 0);
    bool is = self->away || self->shut;
    if (is && !was)
        self->away_since = now_ms;
    return is == was ? TENURE_SAME : is ? TENURE_AWAY : TENURE_BACK;
}

void tenure_hear (tenure_t *self, int64_t valid_until)
{
    self->valid_until = valid_until;
}

bool tenure_missed (tenure_t *self, int64_t now_ms)
{
    bool news = !self->away && !self->shut;
    if (news)
        self->away_since = now_ms;
    self->away = true;
    return news;
}

bool tenure_has_end (const tenure_t *self)
{
    return self->valid_until != INT64_MAX;
}

bool tenure_may_tell (const tenure_t *self, int64_t now_ms)
{
    return now_ms < self->valid_until || self->planted_bug == ENGINE_BUG_TOLD_PAST_LEASE;
}

bool tenure_may_judge (tenure_t *self, int64_t now_ms, int64_t *stood_ms)
{
    *stood_ms = 0;
    if (now_ms >= self->valid_until && self->planted_bug != ENGINE_BUG_JUDGED_PAST_LEASE) {
        if (self->unjudged_since == 0)
            self->unjudged_since = now_ms;
        return false;
    }
    if (self->unjudged_since != 0)
        *stood_ms = now_ms - self->unjudged_since;
    self->unjudged_since = 0;
    return true;
}

int64_t tenure_left_ms (const tenure_t *self, int64_t now_ms)
{
    bool holds = tenure_has_end (self) && now_ms < self->valid_until;
    return holds ? self->valid_until - now_ms : 0;
}
