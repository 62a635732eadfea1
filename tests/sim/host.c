/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Hosts, each with a clock and a process of its own: it looks at the owner's beats, takes over, has
 * the journal written to the tables, and serves until something ends it. */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum {
    RATE_LEAST = 950, /* of 1,000: two clocks run within a tenth of each other */
    RATE_MOST = 1050,
    ZERO_MS_MAX = 100000,
    START_MS_MAX = 4000,
    TRIES_MAX = 5, /* to get a lock that stays taken */
    POINTS_MAX = 40,
    FROZEN_MS_MAX = 20000,
    CUT_OFF_MS_MAX = 8000,
    DIES_BEFORE_REPLAY = 250, /* of 1,000 */
    DIES_YOUNG = 300,
    YOUNG_POINTS_MAX = 400,
    LATE_THREADS = 2, /* of it: beats, commits */
    LATE_MS_MAX = 3000,
    LOOK_FAILS = 15,
    NEEDLESS_PART = 10 /* a lease less so much of it, by the true time */
};

/* Clocks. */

int64_t host_ms (const world_t *world, int64_t world_ms)
{
    const host_t *self = world->broker->host;
    return self == NULL ? world_ms : self->zero_ms + world_ms * self->rate / 1000;
}

int64_t host_world_ms (const world_t *world, int64_t own_ms)
{
    const host_t *self = world->broker->host;
    if (self == NULL || own_ms >= SIM_END_OF_TIME / 2000) {
        return own_ms;
    }
    int64_t since_ms = own_ms - self->zero_ms;
    return since_ms <= 0 ? 0 : (since_ms * 1000 + self->rate - 1) / self->rate;
}

int64_t host_wall_ms (const world_t *world)
{
    const host_t *self = world->broker->host;
    int64_t ahead_ms = self == NULL ? 0 : world->mono_ms * (self->rate - 1000) / 1000;
    return sim_wall_ms (world) + ahead_ms;
}

int64_t hosts_latest_wall_ms (world_t *world)
{
    broker_t *turn = world->broker;
    int64_t latest_ms = sim_wall_ms (world);
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        world->broker = &world->brokers[i];
        latest_ms = host_wall_ms (world) > latest_ms ? host_wall_ms (world) : latest_ms;
    }
    world->broker = turn;
    return latest_ms;
}

static int64_t own_now (const world_t *world)
{
    return host_ms (world, world->mono_ms);
}

/* Making. */

void hosts_make (world_t *world)
{
    for (uint32_t i = 0; world->database != NULL && i < world->options.brokers; i++) {
        broker_t *broker = &world->brokers[i];
        broker->host = calloc (1, sizeof *broker->host);
        broker->host->index = i;
        broker->host->zero_ms = rng_between (&world->rng, 0, ZERO_MS_MAX);
        broker->host->rate = rng_between (&world->rng, RATE_LEAST, RATE_MOST);
        broker->start_ms = rng_between (&world->rng, 0, 500);
    }
}

void hosts_free (world_t *world)
{
    for (uint32_t i = 0; world->database != NULL && i < world->options.brokers; i++) {
        world->broker = &world->brokers[i];
        keeping_leave (world);
        talk_drop (world, &world->broker->host->own);
        free (world->broker->host);
        world->broker->host = NULL;
    }
    world->broker = &world->brokers[0];
}

bool host_reaches (const world_t *world)
{
    return database_is_up (world) && world->mono_ms >= world->broker->host->cut_off_until;
}

bool host_has_looked (const world_t *world)
{
    const host_t *self = world->broker->host;
    const database_t *database = world->database;
    unsigned bug = world->options.planted_bug;
    bool looked = database->incarnation == self->whole || bug == ENGINE_BUG_READ_UNLOOKED;
    bool own = bug == ENGINE_BUG_READ_OWNED_EARLY ? self->owned_then
                                                  : database->shard.epoch == self->epoch;
    return looked && (own || bug == ENGINE_BUG_READ_OF_LATER);
}

void host_found_whole (world_t *world)
{
    host_t *self = world->broker->host;
    self->whole = world->database->incarnation;
    self->whole_timeline = world->database->timeline;
}

bool host_is_over (const world_t *world)
{
    const host_t *self = world->broker->host;
    const shard_t *shard = &world->database->shard;
    return self->epoch < shard->epoch ||
           (self->epoch == shard->epoch && self->generation != shard->generation);
}

/* Looking at the owner. */

static void ask (world_t *world, talk_t *session, ask_t what)
{
    talk_ask (world, session, &what);
}

static void look_again (world_t *world)
{
    host_t *self = world->broker->host;
    self->life = LIFE_WATCHES;
    self->next_look_ms = world->mono_ms + SIM_LOOK_MS;
}

static void missed (world_t *world)
{
    host_t *self = world->broker->host;
    beat_watch_missed (&self->watch);
    self->missed_ms = world->mono_ms;
    look_again (world);
}

static void try_to_take (world_t *world)
{
    host_t *self = world->broker->host;
    uint64_t generation = rng_next (&world->rng) >> 1 | 1;
    self->life = LIFE_TAKES;
    model_boot (world->model, &self->early);
    ask (world, &self->own,
         (ask_t){.kind = ASK_TAKE,
                 .epoch = self->seen.epoch,
                 .beat = self->seen.beat,
                 .generation = generation});
}

/* Nobody, and who was here before, has certainly ended. But after a failover the row may lack the
 * newest owner. */
static bool has_ended (const world_t *world)
{
    const host_t *self = world->broker->host;
    const shard_t *seen = &self->seen;
    bool ended = seen->owner == SIM_NOBODY || seen->owner == (int32_t) self->index;
    return ended && seen->timeline == self->seen_timeline;
}

static void judge_owner (world_t *world)
{
    host_t *self = world->broker->host;
    const shard_t *seen = &self->seen;
    bool still = beat_watch_saw (&self->watch, seen->epoch, seen->beat, own_now (world));
    bool ended = has_ended (world);
    self->silent = !ended;
    self->tries = 0;
    if (ended || still) {
        try_to_take (world);
    } else {
        look_again (world);
    }
}

static void watch (world_t *world)
{
    host_t *self = world->broker->host;
    answer_t answer;
    if (!self->own.asks && world->mono_ms >= self->next_look_ms) {
        if (sim_fault (world, LOOK_FAILS)) {
            missed (world);
        } else {
            ask (world, &self->own, (ask_t){.kind = ASK_LOOK});
        }
    }
    switch (talk_answer (world, &self->own, &answer)) {
    case ANSWER_NONE: break;
    case ANSWER_OK:
        self->seen = answer.shard;
        self->seen_timeline = answer.timeline;
        judge_owner (world);
        break;
    default: missed (world);
    }
}

/* A119: an owner gave no sign for a lease, of which this one saw every bit. */
static void check_taken (world_t *world)
{
    const host_t *self = world->broker->host;
    int64_t since_ms = world->mono_ms - self->missed_ms;
    int64_t least_ms = SIM_LEASE_MS - SIM_LEASE_MS / NEEDLESS_PART;
    if (self->silent && since_ms < least_ms) {
        sim_fail (world, "A119: host %u takes over %lld ms after a look that had no answer",
                  self->index, (long long) since_ms);
    }
}

static void took (world_t *world, const answer_t *answer)
{
    host_t *self = world->broker->host;
    check_taken (world);
    self->epoch = answer->shard.epoch;
    self->generation = answer->shard.generation;
    self->timeline = answer->timeline;
    sim_log (world, "host %u owns epoch %llu%s", self->index, (unsigned long long) self->epoch,
             self->silent ? ", after a silence" : "");
    self->life = LIFE_BEATS;
    keeping_begin (world);
}

/* Sessions that hold locks are the owner's, who stands still or is gone. */
static void take (world_t *world)
{
    host_t *self = world->broker->host;
    answer_t answer;
    switch (talk_answer (world, &self->own, &answer)) {
    case ANSWER_NONE: break;
    case ANSWER_OK: took (world, &answer); break;
    case ANSWER_BUSY:
        if (self->seen.owner != SIM_NOBODY) {
            backends_end (world, ASK_KINDS, (uint32_t) self->seen.owner, self->own.backend);
        }
        if (++self->tries < TRIES_MAX) {
            try_to_take (world);
        } else {
            missed (world);
        }
        break;
    case ANSWER_AWAY: missed (world); break;
    default: look_again (world);
    }
}

/* A start. */

/* What was acknowledged is in the tables now. */
static void check_replayed (world_t *world)
{
    const char *what;
    bool current = world->database->shard.epoch == world->broker->host->epoch &&
                   !world->database->cut.happened;
    if (current && model_differs (world->model, &what)) {
        sim_fail (world,
                  "A119: host %u replayed the journal, and the tables lack %s that are durable",
                  world->broker->host->index, what);
    }
}

static void serve (world_t *world, const answer_t *answer)
{
    host_t *self = world->broker->host;
    boot_t boot;
    world->model->overlaid = false;
    check_replayed (world);
    model_boot (world->model, &boot);
    if (world->options.planted_bug == ENGINE_BUG_NUMBERS_TWICE) {
        boot.last_number = self->early.last_number;
        boot.last_pos = self->early.last_pos;
    }
    boot.epoch = self->epoch;
    boot.generation = self->generation;
    boot.recovered_batches = answer->replayed;
    self->life = LIFE_SERVES;
    self->commit.incarnation = self->write.incarnation = self->whole;
    self->owned_then = true;
    broker_serve (world, &boot);
    if (world->options.host_crash > 0 && sim_fault (world, DIES_YOUNG)) {
        self->trouble = TROUBLE_CRASH;
        self->trouble_in = 1 + rng_below (&world->rng, YOUNG_POINTS_MAX);
    }
}

static void replay (world_t *world)
{
    host_t *self = world->broker->host;
    answer_t answer;
    if (!self->write.asks && world->mono_ms >= self->next_look_ms) {
        ask (world, &self->write, (ask_t){.kind = ASK_REPLAY, .epoch = self->epoch});
    }
    switch (talk_answer (world, &self->write, &answer)) {
    case ANSWER_NONE: break;
    case ANSWER_OK: serve (world, &answer); break;
    case ANSWER_FENCED: host_end (world, "is fenced before it serves"); break;
    default: self->next_look_ms = world->mono_ms + SIM_LOOK_MS;
    }
}

/* Ends. */

void host_end (world_t *world, const char *why)
{
    host_t *self = world->broker->host;
    sim_log (world, "host %u %s", self->index, why);
    keeping_leave (world);
    talk_drop (world, &self->own);
    broker_gone (world);
    self->life = LIFE_DOWN;
    self->forgotten = false;
    self->trouble = TROUBLE_NONE;
    world->broker->start_ms = world->mono_ms + rng_between (&world->rng, 1, START_MS_MAX);
}

static void begin (world_t *world)
{
    host_t *self = world->broker->host;
    self->life = LIFE_WATCHES;
    self->next_look_ms = world->mono_ms;
    self->missed_ms = world->mono_ms;
    beat_watch_init (&self->watch, SIM_LEASE_MS);
    self->watch.planted_bug = world->options.planted_bug;
}

/* Trouble. */

/* A clean stop: nobody is told anything any more, what is under way is finished. */
static void stop (world_t *world)
{
    host_t *self = world->broker->host;
    if (self->life != LIFE_SERVES) {
        return;
    }
    sim_log (world, "host %u stops", self->index);
    broker_gone (world);
    self->life = LIFE_STOPS;
}

static bool is_owner (const host_t *self)
{
    return self->life >= LIFE_BEATS;
}

/* Its threads wake in any order: that of beats, that of commits, or both come late. */
static void wake_late (world_t *world)
{
    const broker_t *broker = world->broker;
    host_t *self = broker->host;
    unsigned late = rng_below (&world->rng, 1 << LATE_THREADS);
    int64_t late_ms = broker->frozen_until + rng_between (&world->rng, 0, LATE_MS_MAX);
    if (is_owner (self) && (late & 1) != 0) {
        self->next_beat_ms = host_ms (world, late_ms);
    }
    if ((late & 2) != 0) {
        self->commit_at = late_ms;
    }
}

void host_freeze (world_t *world, int64_t least_ms)
{
    broker_t *broker = world->broker;
    broker->frozen_until = world->mono_ms + rng_between (&world->rng, least_ms, FROZEN_MS_MAX);
    wake_late (world);
    check_gone_forget_all (world);
    sim_log (world, "host %u is frozen until %lld", broker->host->index,
             (long long) broker->frozen_until);
}

bool host_point (world_t *world)
{
    host_t *self = world->broker->host;
    if (self->trouble == TROUBLE_NONE || --self->trouble_in > 0) {
        return false;
    }
    trouble_t trouble = self->trouble;
    self->trouble = TROUBLE_NONE;
    if (trouble == TROUBLE_CRASH) {
        host_end (world, "crashes");
    } else if (trouble == TROUBLE_FREEZE) {
        host_freeze (world, 1);
    } else {
        stop (world);
    }
    return true;
}

static void draw_trouble (world_t *world)
{
    host_t *self = world->broker->host;
    const sim_options_t *options = &world->options;
    if (self->trouble != TROUBLE_NONE) {
        return;
    }
    self->trouble = sim_fault (world, options->host_crash)    ? TROUBLE_CRASH
                    : sim_fault (world, options->host_freeze) ? TROUBLE_FREEZE
                    : sim_fault (world, options->host_stop)   ? TROUBLE_STOP
                                                              : TROUBLE_NONE;
    self->trouble_in = 1 + rng_below (&world->rng, POINTS_MAX);
}

void hosts_faults (world_t *world)
{
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        world->broker = &world->brokers[i];
        draw_trouble (world);
        if (sim_fault (world, world->options.host_cut)) {
            world->broker->host->cut_off_until =
                world->mono_ms + rng_between (&world->rng, 1, CUT_OFF_MS_MAX);
            sim_log (world, "host %u is cut off from the database until %lld", i,
                     (long long) world->broker->host->cut_off_until);
        }
    }
    hosts_turn_owner (world);
}

void hosts_log (world_t *world)
{
    const database_t *database = world->database;
    if (database != NULL) {
        sim_log (world,
                 "%u adoptions, %u fenced, %u commits in doubt, %u of them had landed, %u found no "
                 "space",
                 database->adoptions, database->fenced, database->settled, database->landed,
                 database->full);
    }
}

static void wake (world_t *world)
{
    broker_t *broker = world->broker;
    if (world->mono_ms < broker->frozen_until && !broker->host->forgotten) {
        broker->frozen_until = world->mono_ms;
        broker->host->next_beat_ms = own_now (world);
        broker->host->commit_at = 0;
    }
}

void hosts_heal (world_t *world)
{
    database_t *database = world->database;
    if (database == NULL) {
        return;
    }
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        world->broker = &world->brokers[i];
        wake (world);
        world->broker->host->cut_off_until = 0;
        world->broker->host->trouble = TROUBLE_NONE;
    }
    hosts_turn_owner (world);
    database->full_until = 0;
    if (database->down_until > world->mono_ms) {
        database->down_until = world->mono_ms;
    }
}

/* Time. */

static void live (world_t *world)
{
    host_t *self = world->broker->host;
    switch (self->life) {
    case LIFE_DOWN:
        if (world->mono_ms >= world->broker->start_ms) {
            begin (world);
        }
        break;
    case LIFE_WATCHES: watch (world); break;
    case LIFE_TAKES: take (world); break;
    case LIFE_BEATS:
        if (self->beats.valid_until != INT64_MIN) {
            self->life = LIFE_REPLAYS;
            host_found_whole (world); /* it has acknowledged nothing yet */
            self->next_look_ms = world->mono_ms;
            if (sim_fault (world, DIES_BEFORE_REPLAY)) {
                host_end (world, "dies between taking over and the replay");
            }
        }
        break;
    case LIFE_REPLAYS: replay (world); break;
    case LIFE_SERVES:
    case LIFE_STOPS: keeping_step (world); break;
    }
}

static void host_step (world_t *world)
{
    host_t *self = world->broker->host;
    if (world->mono_ms < world->broker->frozen_until) {
        return;
    }
    live (world);
    bool releases = self->life == LIFE_STOPS && self->own.asks;
    if (is_owner (self) && !releases) {
        keeping_beat (world);
    }
    bool serves = world->broker->engine != NULL;
    if (serves && !keeping_starts_over (world)) {
        world->model->written = self->written; /* as this process knows it */
        world->model->overlaid = self->overlaid > self->written;
        broker_turn (world);
        if (world->mono_ms >= world->broker->frozen_until + SIM_LOOK_MS) {
            self->owned_then = world->database->shard.epoch == self->epoch;
        }
    } else if (self->life != LIFE_DOWN) {
        host_point (world);
    }
}

void hosts_step (world_t *world)
{
    database_step (world);
    for (uint32_t i = 0; i < world->options.brokers && !world->failed; i++) {
        world->broker = &world->brokers[i];
        host_step (world);
    }
    hosts_turn_owner (world);
}

static int64_t next_of (world_t *world)
{
    const host_t *self = world->broker->host;
    int64_t next = talk_next_ms (world, &self->own);
    if (self->life == LIFE_DOWN) {
        next = world->broker->start_ms;
    } else if (self->life == LIFE_WATCHES || self->life == LIFE_REPLAYS) {
        bool asks = self->life == LIFE_WATCHES ? self->own.asks : self->write.asks;
        next = asks || next < self->next_look_ms ? next : self->next_look_ms;
    }
    if (is_owner (self)) {
        int64_t kept = keeping_next_ms (world);
        next = kept < next ? kept : next;
    }
    if (world->broker->engine != NULL) {
        int64_t turn = broker_next_ms (world);
        next = turn < next ? turn : next;
    }
    return next > world->broker->frozen_until ? next : world->broker->frozen_until;
}

int64_t hosts_next_ms (world_t *world)
{
    int64_t next = database_next_ms (world);
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        world->broker = &world->brokers[i];
        int64_t own = next_of (world);
        next = own < next ? own : next;
    }
    hosts_turn_owner (world);
    return next;
}

void hosts_turn_owner (world_t *world)
{
    world->broker = &world->brokers[0];
    for (uint32_t i = 1; world->database != NULL && i < world->options.brokers; i++) {
        const broker_t *other = &world->brokers[i];
        bool newer = other->engine != NULL && (world->broker->engine == NULL ||
                                               other->host->epoch > world->broker->host->epoch);
        world->broker = newer ? &world->brokers[i] : world->broker;
    }
}
