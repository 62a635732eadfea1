/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/told.h"

static bool may_tell (told_t *self, int64_t mono_ms, told_left_t *left)
{
    if (bucket_take_each (&self->bucket, (int64_t) TOLD_EACH_MS * 1000000, TOLD_BURST, mono_ms) !=
        0)
        return false;
    *left = self->left;
    self->left = (told_left_t){0};
    return true;
}

/* One that lasts is told late rather than never. */
bool told_gone (told_t *self, uint64_t reason, int64_t mono_ms, told_left_t *left)
{
    *left = (told_left_t){0};
    if (!self->gone)
        self->reasons = 0;
    bool news = reason != self->reason && self->reasons < TOLD_REASONS_MAX;
    bool told = self->gone && self->said;
    self->gone = true;
    if ((told && !news) || !may_tell (self, mono_ms, left))
        return false;
    self->said = true;
    self->reason = reason;
    self->reasons++;
    return true;
}

/* The end of what was told is always told. */
bool told_there (told_t *self, bool news, int64_t mono_ms, told_left_t *left)
{
    *left = (told_left_t){0};
    bool ends = self->gone;
    bool said = self->said;
    self->gone = self->said = false;
    if (ends && said)
        return true;
    self->left.absences += ends;
    bool owes = self->left.absences > 0 || self->left.news > 0;
    if ((owes || news) && may_tell (self, mono_ms, left))
        return true;
    self->left.news += news;
    return false;
}
