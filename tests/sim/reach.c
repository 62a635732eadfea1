/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A store that is out of reach now and then, as one behind a network is. Look-ups and reads find it
 * so; a commit waits, however long, and of the one that was under way nobody knows whether it
 * landed: it did at once, or does later, or never will, and the store finds out when it is back.
 * Meanwhile no beat prolongs the lease, nor does one of a broker that stands still: past its end
 * somebody else could own the store. */
#include "cluster.h"

enum {
    AWAY_MS_MIN = 100,
    AWAY_MS_MAX = 20000,
    GOES_MS_MAX = 500, /* until a commit is under way */
    AT_A_START = 200,  /* per mille */
    PATIENCE_MS = 1000,
    BEAT_MS = 1000,
    LEASE_MS = 3500, /* from the last beat on */
    LATE_MS = 500,   /* a beat that is late comes a moment later still */
    LATER_MS_MAX = 50,
    SLOW_MS = 250,     /* a commit that waits for so long finds it out of reach */
    BETWEEN = 2,       /* the lease ends between the making of an output and its sending */
    LOST_MS_MAX = 3000 /* … for so long at most */
};

static bool is_used (const world_t *world)
{
    return world->options.away > 0;
}

bool reach_is_away (const world_t *world)
{
    if (world->broker->host != NULL) {
        return !host_reaches (world) || !host_has_looked (world);
    }
    return world->mono_ms < world->broker->reach.away_until;
}

/* By the clock of its host. */
static int64_t own_now (const world_t *world)
{
    return host_ms (world, world->mono_ms);
}

int64_t reach_valid_until (const world_t *world)
{
    if (world->broker->host != NULL) {
        return world->broker->host->beats.valid_until;
    }
    return is_used (world) ? world->broker->reach.beat_at + LEASE_MS : INT64_MAX;
}

/* A commit that is under way when the store goes away. */
static void draw_doubt (world_t *world)
{
    reach_t *self = &world->broker->reach;
    static const doubt_t DOUBTS[] = {DOUBT_LANDED, DOUBT_LANDS, DOUBT_LOST};
    if (world->broker->batch == NULL) {
        return;
    }
    self->doubt = DOUBTS[rng_below (&world->rng, 3)];
    self->lands_at = world->mono_ms;
    if (self->doubt == DOUBT_LANDS) {
        self->lands_at = rng_between (&world->rng, world->mono_ms, self->away_until);
    }
}

static void go_away (world_t *world)
{
    reach_t *self = &world->broker->reach;
    self->goes_at = SIM_END_OF_TIME;
    self->away_since = world->mono_ms;
    self->away_until = world->mono_ms + rng_between (&world->rng, AWAY_MS_MIN, AWAY_MS_MAX);
    self->times++;
    draw_doubt (world);
    sim_log (world, "the store is out of reach until %lld, commit %llu is in doubt: %d",
             (long long) self->away_until,
             world->broker->batch == NULL ? 0ull : (unsigned long long) world->broker->batch->no,
             (int) self->doubt);
}

/* The store of a broker that starts: it has just been owned. */
void reach_start (world_t *world)
{
    reach_t *self = &world->broker->reach;
    tenure_init (&self->tenure, PATIENCE_MS, world->options.planted_bug);
    self->told_away = self->told_shut = false;
    self->doubt = DOUBT_NONE;
    self->beat_at = world->mono_ms;
    self->next_beat_at = world->mono_ms + BEAT_MS;
    self->goes_at = SIM_END_OF_TIME;
    if (is_used (world) && world->database == NULL && sim_fault (world, AT_A_START)) {
        go_away (world); /* before anything was looked up */
    }
}

void reach_faults (world_t *world)
{
    reach_t *self = &world->broker->reach;
    bool waits = self->goes_at != SIM_END_OF_TIME;
    if (!waits && !reach_is_away (world) && sim_fault (world, world->options.away)) {
        self->goes_at = world->mono_ms + GOES_MS_MAX;
    }
}

void reach_goes (world_t *world)
{
    const reach_t *self = &world->broker->reach;
    bool waits = is_used (world) && world->faults && self->goes_at != SIM_END_OF_TIME;
    if (waits && (world->broker->batch != NULL || world->mono_ms >= self->goes_at)) {
        go_away (world);
    }
}

static void beat (world_t *world)
{
    reach_t *self = &world->broker->reach;
    if (reach_is_away (world) || world->mono_ms < self->next_beat_at) {
        return;
    }
    if (world->mono_ms - self->next_beat_at > LATE_MS) {
        self->next_beat_at = world->mono_ms + rng_between (&world->rng, 1, LATER_MS_MAX);
        return;
    }
    self->beat_at = world->mono_ms;
    self->next_beat_at = world->mono_ms + BEAT_MS;
}

void reach_tell (world_t *world)
{
    reach_t *self = &world->broker->reach;
    const tenure_t *tenure = &self->tenure;
    bool was_away = self->told_away;
    bool was_shut = self->told_shut;
    if (tenure->away == was_away && tenure->shut == was_shut) {
        return;
    }
    self->told_away = tenure->away;
    self->told_shut = tenure->shut;
    if (tenure->away != was_away) {
        engine_set_away (world->broker->engine, tenure->away, broker_now (world));
    }
    if (tenure->shut != was_shut) {
        engine_set_shut (world->broker->engine, tenure->shut);
        check_gone_forget_all (world);
        sim_log (world, "the lease %s", tenure->shut ? "is over" : "holds again");
    }
    world->broker->tick_wanted = true;
}

/* How long it is out of reach, as its own threads have found. */
static int64_t away_ms (const world_t *world)
{
    const host_t *host = world->broker->host;
    if (host == NULL) {
        return reach_is_away (world) ? world->mono_ms - world->broker->reach.away_since + 1 : 0;
    }
    int64_t away = host->away_since == 0 ? 0 : world->mono_ms - host->away_since + 1;
    int64_t waits = host->making == NULL ? 0 : world->mono_ms - host->making_since;
    return waits > SLOW_MS && waits > away ? waits : away;
}

void reach_step (world_t *world)
{
    reach_t *self = &world->broker->reach;
    if (!is_used (world)) {
        return;
    }
    if (world->broker->host == NULL) {
        beat (world);
    }
    tenure_look (&self->tenure, own_now (world), away_ms (world), reach_valid_until (world));
    reach_tell (world);
}

bool reach_misses (world_t *world)
{
    tenure_t *tenure = &world->broker->reach.tenure;
    const host_t *host = world->broker->host;
    if (!reach_is_away (world)) {
        if (host != NULL && host->whole_timeline != world->database->timeline) {
            sim_fail (world, "A107: epoch %llu reads before it knows what a failover has left",
                      (unsigned long long) host->epoch);
        } else if (host != NULL && host_is_over (world)) {
            sim_fail (world, "A100: epoch %llu reads what epoch %llu may have written",
                      (unsigned long long) host->epoch,
                      (unsigned long long) world->database->shard.epoch);
        }
        return false;
    }
    tenure_missed (tenure, own_now (world));
    return true;
}

bool reach_keeps_output (world_t *world, const output_t *output)
{
    reach_t *self = &world->broker->reach;
    bool linked = engine_is_linked (world->broker->engine, output->peer);
    bool holds = is_used (world) && linked && !self->tenure.shut;
    if (holds && world->database == NULL && sim_fault (world, BETWEEN)) {
        self->beat_at = world->mono_ms - LEASE_MS;
        self->next_beat_at = world->mono_ms + rng_between (&world->rng, 1, LOST_MS_MAX);
        tenure_look (&self->tenure, world->mono_ms, 0, reach_valid_until (world));
        if (self->tenure.shut) {
            engine_output_kept (world->broker->engine, output);
            reach_tell (world);
            return true;
        }
    }
    /* The server asks the clock, however long it stood still since the last look. */
    if (world->broker->host != NULL && linked) {
        tenure_look (&self->tenure, own_now (world), away_ms (world), reach_valid_until (world));
        if (self->tenure.shut) {
            engine_output_kept (world->broker->engine, output);
            reach_tell (world);
            return true;
        }
        cut_check_output (world);
    }
    if (linked && own_now (world) >= reach_valid_until (world)) {
        sim_fail (world, "A101: told %lld ms after the lease",
                  (long long) (own_now (world) - reach_valid_until (world)));
    }
    return false;
}

bool reach_may_judge (world_t *world, int64_t *stood_ms)
{
    bool may = tenure_may_judge (&world->broker->reach.tenure, own_now (world), stood_ms);
    if (may && own_now (world) >= reach_valid_until (world)) {
        sim_fail (world, "A101: deadlines are judged after the lease");
    }
    return may;
}

/* Commits. */

bool reach_lands (const world_t *world)
{
    const reach_t *self = &world->broker->reach;
    bool lands = self->doubt == DOUBT_LANDED || self->doubt == DOUBT_LANDS;
    return lands && world->broker->batch != NULL && world->mono_ms >= self->lands_at;
}

bool reach_settles (world_t *world)
{
    return !reach_is_away (world) && world->broker->reach.doubt != DOUBT_NONE;
}

/* Time. */

static int64_t earlier (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t reach_next_ms (const world_t *world)
{
    const reach_t *self = &world->broker->reach;
    if (!is_used (world)) {
        return SIM_END_OF_TIME;
    }
    if (world->broker->host != NULL) {
        int64_t look_ms = away_ms (world) > 0 ? world->mono_ms + PATIENCE_MS : SIM_END_OF_TIME;
        return self->tenure.shut
                   ? look_ms
                   : earlier (look_ms, host_world_ms (world, reach_valid_until (world)));
    }
    int64_t next = self->next_beat_at;
    if (reach_is_away (world)) {
        next = self->away_until;
        next = earlier (next, world->mono_ms + PATIENCE_MS);
        if (self->doubt == DOUBT_LANDS && world->broker->batch != NULL) {
            next = earlier (next, self->lands_at);
        }
    }
    if (!self->tenure.shut) {
        next = earlier (next, reach_valid_until (world));
    }
    return next;
}
