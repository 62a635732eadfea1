/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The database that several brokers share: what is committed, in its order. Rows of tasks and
 * events are the model's: `durable` is what the tables and the journal come to, `tables` what the
 * tables have. An asynchronous failover takes the end of all that away. */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum {
    DOWN_MS_MIN = 100,
    DOWN_MS_MAX = 20000,
    PROMOTION_MS_MAX = 3000,
    LOSS_MS_MAX = 1500,
    LOSS_FEW_MS_MAX = 50,
    EARLIEST_MS = 5000,
    LOST_EPOCH_MS_MAX = 5000,
    SILENCE_LOST = 900, /* of 1,000: what is lost began after a silence, … */
    SILENCE_MS = 10000, /* … of at least so long */
    LOST_IS_SILENT = 950,
    ACKNOWLEDGED_MS_MAX = 3000,
    FULL_MS_MAX = 6000,
    FULL_MS_FEW = 1000,
    HEARD_MS = 6, /* until an answer was, mostly */
    FIRST_GENERATION = 7
};

void database_make (world_t *world)
{
    if (world->options.brokers < 2) {
        return;
    }
    database_t *self = calloc (1, sizeof *self);
    world->database = self;
    self->shard = (shard_t){.owner = SIM_NOBODY, .generation = FIRST_GENERATION, .timeline = 1};
    self->timeline = 1;
    self->incarnation = 1;
    self->failover_ms = SIM_END_OF_TIME;
    if (world->options.failover > 0) {
        self->failover_ms = rng_between (&world->rng, EARLIEST_MS, world->options.safety_ms);
    }
}

static void change_free (change_t *change)
{
    parcel_drop (change->appended);
    parcels_free (&change->written);
}

static void forget_log (database_t *self)
{
    for (size_t i = 0; i < self->log_count; i++) {
        change_free (&self->log[i]);
    }
    free (self->log);
    self->log = NULL;
    self->log_count = self->log_capacity = 0;
}

void database_free (world_t *world)
{
    database_t *self = world->database;
    if (self == NULL) {
        return;
    }
    backends_die (world);
    forget_log (self);
    parcels_free (&self->journal);
    vault_free (self);
    free (self);
    world->database = NULL;
}

/* Rows. */

static bool is_above (const parcel_t *parcel, place_t place)
{
    return parcel->epoch > place.epoch ||
           (parcel->epoch == place.epoch && parcel->batch->no > place.batch);
}

uint64_t database_newest (const database_t *self, uint64_t epoch)
{
    place_t written = self->shard.written;
    uint64_t newest = written.epoch == epoch ? written.batch : 0;
    for (size_t i = 0; i < self->journal.count; i++) {
        const parcel_t *parcel = self->journal.list[i];
        if (parcel->epoch == epoch && parcel->batch->no > newest) {
            newest = parcel->batch->no;
        }
    }
    return newest;
}

bool database_has (const database_t *self, const parcel_t *parcel)
{
    for (size_t i = 0; i < self->journal.count; i++) {
        const parcel_t *there = self->journal.list[i];
        if (there->epoch == parcel->epoch && there->batch->no == parcel->batch->no) {
            return true;
        }
    }
    return false;
}

/* By epoch and batch. */
static int in_order (const void *a, const void *b)
{
    const parcel_t *const *left = a;
    const parcel_t *const *right = b;
    if ((*left)->epoch != (*right)->epoch) {
        return (*left)->epoch < (*right)->epoch ? -1 : 1;
    }
    return ((*left)->batch->no > (*right)->batch->no) - ((*left)->batch->no < (*right)->batch->no);
}

void database_unwritten (const world_t *world, uint64_t own_epoch, parcels_t *out)
{
    const database_t *self = world->database;
    unsigned bug = world->options.planted_bug;
    for (size_t i = 0; i < self->journal.count; i++) {
        parcel_t *parcel = self->journal.list[i];
        bool above = bug == ENGINE_BUG_WRITTEN_OF_OTHERS
                         ? parcel->batch->no > self->shard.written.batch
                         : is_above (parcel, self->shard.written);
        bool missed = bug == ENGINE_BUG_REPLAY_FORGOTTEN ||
                      (bug == ENGINE_BUG_ADOPTER_FORGOTTEN && parcel->epoch + 1 != own_epoch);
        if (above && !missed) {
            parcels_add (out, parcel);
        }
    }
    if (out->count > 1) {
        qsort (out->list, out->count, sizeof *out->list, in_order);
    }
}

/* Changes. */

change_t database_change (const world_t *world)
{
    return (change_t){.at_ms = world->mono_ms, .shard = world->database->shard};
}

static bool is_forgotten (const change_t *change, const parcel_t *parcel)
{
    if (change->forgets_before && parcel->epoch < change->upto.epoch) {
        return true;
    }
    return parcel->epoch == change->from.epoch && parcel->batch->no > change->from.batch &&
           !is_above (parcel, change->upto);
}

static void forget_journal (database_t *self, const change_t *change)
{
    size_t left = 0;
    for (size_t i = 0; i < self->journal.count; i++) {
        if (is_forgotten (change, self->journal.list[i])) {
            parcel_drop (self->journal.list[i]);
        } else {
            self->journal.list[left++] = self->journal.list[i];
        }
    }
    self->journal.count = left;
}

static void apply (world_t *world, const change_t *change)
{
    database_t *self = world->database;
    if (change->appended != NULL) {
        parcels_add (&self->journal, change->appended);
        /* One that is in the tables already, and comes again, counts for nothing. */
        if (is_above (change->appended, self->shard.written)) {
            model_commit_unseen (world->model, change->appended->batch);
        }
    }
    for (size_t i = 0; i < change->written.count; i++) {
        model_write (world->model, change->written.list[i]->batch);
    }
    if (change->forgets) {
        forget_journal (self, change);
    }
    self->shard = change->shard;
}

/* A later epoch began, or the same one again where the database lost it. */
static bool is_over (const database_t *self, const parcel_t *parcel)
{
    const shard_t *shard = &self->shard;
    return parcel->epoch < shard->epoch ||
           (parcel->epoch == shard->epoch && parcel->generation != shard->generation);
}

/* What the checker says of a batch that is about to become durable. */
static void judge (world_t *world, const parcel_t *parcel)
{
    database_t *self = world->database;
    broker_t *turn = world->broker;
    const batch_t *batch = parcel->batch;
    if (is_over (self, parcel)) {
        sim_fail (world, "I14: batch %llu of epoch %llu becomes durable, epoch %llu has begun",
                  (unsigned long long) batch->no, (unsigned long long) parcel->epoch,
                  (unsigned long long) self->shard.epoch);
    }
    cut_check_commit (world, parcel);
    if (self->cut.happened || !is_above (parcel, self->shard.written)) {
        return;
    }
    world->broker = &world->brokers[parcel->host];
    self->maker_started_ms = parcel->started_ms;
    check_batch (world, batch);
    warden_check_batch (world, batch);
    scheduler_check_batch (world, batch);
    world->broker = turn;
}

/* Rows of an epoch that is over would stand over newer ones. */
static void judge_written (world_t *world, const change_t *change)
{
    const database_t *self = world->database;
    bool replays = change->forgets_before;
    if (change->written.count > 0 && (replays ? change->from.epoch < self->shard.epoch
                                              : is_over (self, change->written.list[0]))) {
        sim_fail (world, "I14: epoch %llu writes rows back, and epoch %llu has begun",
                  (unsigned long long) change->from.epoch, (unsigned long long) self->shard.epoch);
    }
}

static void remember (database_t *self, const change_t *change)
{
    if (self->log_count == self->log_capacity) {
        self->log_capacity = self->log_capacity == 0 ? 64 : 2 * self->log_capacity;
        self->log = realloc (self->log, self->log_capacity * sizeof *self->log);
    }
    self->log[self->log_count++] = *change;
}

/* The owner stands still when a failover is due, and lives through it. */
static void silence_owner (world_t *world)
{
    database_t *self = world->database;
    hosts_turn_owner (world);
    if (!self->silenced && world->broker->engine != NULL) {
        self->silenced = true;
        if (sim_fault (world, SILENCE_LOST)) {
            host_freeze (world, SILENCE_MS);
        }
    }
}

/* Something that is lost was acknowledged, or will hardly be any more. */
static bool loses_enough (const world_t *world)
{
    const database_t *self = world->database;
    bool waits = self->silenced && world->mono_ms < self->failover_ms + ACKNOWLEDGED_MS_MAX;
    for (size_t i = self->loses_from - 1; waits && i < self->log_count; i++) {
        const parcel_t *parcel = self->log[i].appended;
        waits = parcel == NULL || !parcel->acknowledged;
    }
    return !waits;
}

/* Once it is due it comes soon behind the beginning of an epoch, and takes all of that away. */
static void plan_failover (world_t *world, bool begins)
{
    database_t *self = world->database;
    bool waits = world->mono_ms >= self->failover_ms && self->loses_from == 0;
    if (waits && begins && world->options.failover == SIM_FAILOVER_ADOPTION) {
        self->loses_from = self->log_count; /* its place, and 1 */
        self->failover_ms = world->mono_ms + rng_between (&world->rng, 0, LOST_EPOCH_MS_MAX);
    }
}

/* … or behind a write-back whose end was heard, and behind which nothing was committed. */
static void look_for_write (const world_t *world)
{
    database_t *self = world->database;
    size_t at = self->log_count;
    while (at > 1 && self->log[at - 1].appended == NULL && self->log[at - 1].written.count == 0) {
        at--;
    }
    const change_t *change = &self->log[at - 1];
    if (at > 1 && change->appended == NULL && world->mono_ms - change->at_ms >= HEARD_MS) {
        self->loses_from = at;
    }
}

void database_commit (world_t *world, change_t *change)
{
    database_t *self = world->database;
    bool began = change->shard.epoch != self->shard.epoch;
    judge_written (world, change);
    if (change->appended != NULL) {
        judge (world, change->appended);
    }
    apply (world, change);
    cut_check_healed (world);
    if (change->appended != NULL && !self->cut.happened) {
        seeker_committed (world, change->appended->batch);
    }
    if (self->failover_ms != SIM_END_OF_TIME) {
        remember (self, change);
        plan_failover (world, began);
    } else {
        change_free (change);
    }
}

/* Reach. */

bool database_is_up (const world_t *world)
{
    return world->mono_ms >= world->database->down_until;
}

static void go_down (world_t *world, int64_t most_ms)
{
    database_t *self = world->database;
    self->down_until = world->mono_ms + rng_between (&world->rng, DOWN_MS_MIN, most_ms);
    sim_log (world, "the database is down until %lld", (long long) self->down_until);
    self->incarnation++;
    backends_die (world);
}

bool database_is_full (const world_t *world)
{
    return world->mono_ms < world->database->full_until;
}

void database_fill (world_t *world, bool briefly)
{
    database_t *self = world->database;
    int64_t most_ms = briefly ? FULL_MS_FEW : FULL_MS_MAX;
    self->full_until = world->mono_ms + rng_between (&world->rng, 1, most_ms);
    sim_log (world, "the database has no space until %lld", (long long) self->full_until);
}

void database_faults (world_t *world)
{
    if (!database_is_full (world) && sim_fault (world, world->options.commit_full)) {
        database_fill (world, false);
    }
    if (database_is_up (world) && sim_fault (world, world->options.away)) {
        bool long_one = rng_chance (&world->rng, 400);
        go_down (world, long_one ? DOWN_MS_MAX : SIM_LEASE_MS);
    }
}

/* How many of the transactions are left. */
static size_t draw_loss (world_t *world)
{
    database_t *self = world->database;
    size_t left = self->log_count;
    if (self->loses_from > 0) {
        return self->loses_from - 1;
    }
    int64_t most_ms = rng_chance (&world->rng, 500) ? LOSS_MS_MAX : LOSS_FEW_MS_MAX;
    int64_t since_ms = world->mono_ms - rng_between (&world->rng, 0, most_ms);
    while (left > 1 && self->log[left - 1].at_ms > since_ms) {
        left--;
    }
    return left;
}

/* Whose epoch is lost learns of it late, perhaps when another one has begun the same. */
static void silence_lost (world_t *world)
{
    hosts_turn_owner (world);
    if (world->broker->engine != NULL && sim_fault (world, LOST_IS_SILENT)) {
        host_freeze (world, SILENCE_MS);
        world->broker->host->forgotten = true;
    }
}

/* A standby that did not have all is promoted. */
static void fail_over (world_t *world)
{
    database_t *self = world->database;
    size_t left = draw_loss (world);
    bool commits = false;
    bool acknowledged = false;
    place_t newest = {0, 0};
    for (size_t i = left; i < self->log_count; i++) {
        const parcel_t *parcel = self->log[i].appended;
        commits = commits || parcel != NULL;
        if (parcel != NULL && parcel->acknowledged) {
            acknowledged = true;
            newest = (place_t){parcel->epoch, parcel->batch->no};
        }
    }
    sim_log (world, "failover: %zu of %zu transactions are lost%s", self->log_count - left,
             self->log_count, acknowledged ? ", acknowledged ones" : "");
    self->failed_over = true;
    self->failover_ms = SIM_END_OF_TIME;
    go_down (world, PROMOTION_MS_MAX);
    if (world->options.failover == SIM_FAILOVER_ADOPTION) {
        silence_lost (world);
    }
    if (commits) {
        cut_happens (world, acknowledged, newest);
    }
    model_clear (world->model);
    parcels_free (&self->journal);
    self->shard = (shard_t){.owner = SIM_NOBODY, .generation = FIRST_GENERATION, .timeline = 1};
    for (size_t i = 0; i < left; i++) {
        apply (world, &self->log[i]);
    }
    self->timeline++;
    forget_log (self);
}

void database_step (world_t *world)
{
    database_t *self = world->database;
    backends_step (world);
    bool due = world->mono_ms >= self->failover_ms && world->faults && self->log_count > 1;
    if (due && world->options.failover == SIM_FAILOVER_WRITE) {
        look_for_write (world);
    }
    bool waits = world->options.failover != SIM_FAILOVER_ANY && self->loses_from == 0;
    if (due && waits && world->options.failover == SIM_FAILOVER_ADOPTION) {
        silence_owner (world);
    }
    if (due && !waits && (self->loses_from == 0 || loses_enough (world))) {
        fail_over (world);
    }
}

int64_t database_next_ms (const world_t *world)
{
    const database_t *self = world->database;
    int64_t next = backends_next_ms (world);
    if (self->down_until > world->mono_ms && self->down_until < next) {
        next = self->down_until;
    }
    if (self->loses_from > 0 && self->failover_ms < next) {
        next = self->failover_ms;
    }
    return next;
}
