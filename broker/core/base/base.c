/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What every room stands on. */
#include "core/base/base.h"

void base_init (base_t *self, const engine_config_t *config)
{
    *self = (base_t){.config = *config, .round = config->round};
    secrets_init (&self->secrets, config->seed);
    base_reset (self);
}

void base_reset (base_t *self)
{
    names_free (&self->names);
    names_init (&self->names, &self->secrets);
    wheel_init (&self->fine, FINE_MS, self->clocks.mono_ms);
    wheel_init (&self->coarse, COARSE_MS, base_expiry_turn_ms (self));
}

int64_t base_gone_grace_ms (const base_t *self)
{
    int64_t usual_ms = self->config.gone_grace_ms;
    bool moved = self->clocks.mono_ms < self->moved_until && usual_ms < TMQ_MOVE_GRACE_MS;
    return moved ? TMQ_MOVE_GRACE_MS : usual_ms;
}

void base_arm_expiry (base_t *self, alarm_t *alarm, int64_t expires_at)
{
    wheel_arm (&self->coarse, alarm, expires_at + self->coarse_ahead_ms);
}

int64_t base_expiry_turn_ms (const base_t *self)
{
    return clocks_expiry_ms (&self->clocks) + self->coarse_ahead_ms;
}

void base_written (base_t *self, uint64_t batch)
{
    if (batch >= self->kept && batch < self->refused)
        batch = self->refused;
    if (batch > self->written)
        self->written = batch;
}

void base_refuse (base_t *self, uint64_t upto)
{
    if (self->durable > self->refused) /* else nothing was kept since the last time */
        self->kept = self->durable;
    self->refused = self->durable = upto;
    base_written (self, self->written);
}

void base_free (base_t *self)
{
    names_free (&self->names);
}
