/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions with the database. Each question has a server process that takes it step by step: it
 * waits for locks, stands still in the middle, is killed, or finishes what nobody waits for any
 * more. Of several statements the asker sends each, and one that is gone sends no further one; a
 * single statement needs nobody. */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum {
    REFUSED_MS_MAX = 20, /* until a connection that cannot be made has failed */
    TRAVEL_MS_MAX = 2,
    WORK_MS_MAX = 4,
    HANG_MS_MAX = 6000,
    WRITE_IS_SLOW = 150, /* of 1,000 */
    LOST_SOON_MS = 10,   /* a connection is lost while the statement runs, … */
    LOST_LATE_MS = 400,
    WAKES_MS_MAX = 1500,
    APPLIED_LATER = 500,
    FILLS_IN_DOUBT = 800,
    ENDS_IN_DOUBT = 250,  /* of puts of blobs, which are few */
    CHANGE_IS_FULL = 100, /* of 1,000, while there is no space: a row that is changed needs some */
    KILLED = 250          /* … by the end of the server's process, of 1,000 */
};

typedef enum op {
    OP_END,
    OP_LOOK,
    OP_SHARD,   /* its lock, and what has to stand there */
    OP_COMMITS, /* the same of the fence of commits, … */
    OP_WRITES,  /* … of write-backs, … */
    OP_BLOBS,   /* … and of blobs */
    OP_INSERT,  /* by the key */
    OP_NEWEST,
    OP_WRITTEN,
    OP_VAULT, /* a look at the blobs */
    OP_WORK,
    OP_COMMIT
} op_t;

enum { OPS_MAX = 6 };

static const op_t SCRIPTS[ASK_KINDS][OPS_MAX] = {
    [ASK_LOOK] = {OP_LOOK, OP_END},
    [ASK_NEWEST] = {OP_NEWEST, OP_END},
    [ASK_BEAT] = {OP_SHARD, OP_COMMIT, OP_END},
    [ASK_APPEND] = {OP_COMMITS, OP_INSERT, OP_COMMIT, OP_END},
    [ASK_RELEASE] = {OP_SHARD, OP_COMMIT, OP_END},
    [ASK_SETTLE] = {OP_SHARD, OP_COMMITS, OP_NEWEST, OP_COMMIT, OP_END},
    [ASK_WRITE] = {OP_WRITES, OP_WRITTEN, OP_WORK, OP_COMMIT, OP_END},
    [ASK_TAKE] = {OP_SHARD, OP_COMMITS, OP_WRITES, OP_BLOBS, OP_COMMIT, OP_END},
    [ASK_REPLAY] = {OP_WRITES, OP_WORK, OP_COMMIT, OP_END},
    [ASK_BLOB_KEEP] = {OP_BLOBS, OP_COMMIT, OP_END},
    [ASK_BLOB_BEGIN] = {OP_BLOBS, OP_COMMIT, OP_END},
    [ASK_BLOB_PUT] = {OP_BLOBS, OP_WORK, OP_COMMIT, OP_END},
    [ASK_BLOB_REMOVE] = {OP_BLOBS, OP_COMMIT, OP_END},
    [ASK_BLOB_FIND] = {OP_VAULT, OP_END},
    [ASK_BLOB_SWEEP] = {OP_BLOBS, OP_COMMIT, OP_END},
    [ASK_BLOB_READ] = {OP_VAULT, OP_END},
    [ASK_BLOB_END] = {OP_BLOBS, OP_COMMIT, OP_END},
};

/* What a session is called, by which it is found and ended. */
enum { OF_ADOPTION, OF_BEATS, OF_COMMITS, OF_WRITES, OF_BLOBS };
static const int NAMES[ASK_KINDS] = {
    [ASK_LOOK] = OF_ADOPTION,     [ASK_TAKE] = OF_ADOPTION,    [ASK_RELEASE] = OF_ADOPTION,
    [ASK_NEWEST] = OF_BEATS,      [ASK_BEAT] = OF_BEATS,       [ASK_APPEND] = OF_COMMITS,
    [ASK_SETTLE] = OF_COMMITS,    [ASK_WRITE] = OF_WRITES,     [ASK_REPLAY] = OF_WRITES,
    [ASK_BLOB_KEEP] = OF_BLOBS,   [ASK_BLOB_BEGIN] = OF_BLOBS, [ASK_BLOB_PUT] = OF_BLOBS,
    [ASK_BLOB_REMOVE] = OF_BLOBS, [ASK_BLOB_FIND] = OF_BLOBS,  [ASK_BLOB_SWEEP] = OF_BLOBS,
    [ASK_BLOB_READ] = OF_BLOBS,   [ASK_BLOB_END] = OF_BLOBS,
};

static bool has_several (const backend_t *self)
{
    return self->ask.kind >= ASK_SETTLE;
}

static unsigned bug_of (const world_t *world)
{
    return world->options.planted_bug;
}

/* Locks. */

static void give_back (world_t *world, backend_t *self)
{
    database_t *database = world->database;
    for (size_t i = 0; i < LOCKS; i++) {
        if (database->locks[i] == self) {
            database->locks[i] = NULL;
        }
    }
    for (backend_t *other = database->backends; other != NULL; other = other->next) {
        other->due_ms = other->waits ? world->mono_ms : other->due_ms;
    }
}

static void finish (world_t *world, backend_t *self, answer_code_t code)
{
    give_back (world, self);
    self->waits = false;
    self->done = true;
    self->answer.code = code;
    self->answer.shard = world->database->shard;
    self->answer.timeline = world->database->timeline;
    self->due_ms = world->mono_ms + rng_between (&world->rng, 0, TRAVEL_MS_MAX);
}

static void kill_backend (world_t *world, backend_t *self)
{
    if (!self->done) {
        give_back (world, self);
        self->waits = false;
        self->killed = true;
        self->due_ms = SIM_END_OF_TIME;
    }
}

/* One that waits, for a lock or the next statement, ends at once; one that is in the middle of
 * something when it looks up. */
static void end_backend (world_t *world, backend_t *self)
{
    self->told = true;
    if (self->waits || (has_several (self) && !self->sent)) {
        kill_backend (world, self);
    }
}

/* False: another session has it, and this one waits, or has waited for long enough. */
static bool take_lock (world_t *world, backend_t *self, size_t lock)
{
    database_t *database = world->database;
    bool limited = self->ask.kind == ASK_TAKE || self->ask.kind == ASK_SETTLE;
    if (database->locks[lock] == NULL || database->locks[lock] == self) {
        database->locks[lock] = self;
        self->waits = false;
        return true;
    }
    if (!self->waits) {
        self->waits = true;
        self->waits_since = world->mono_ms;
    }
    self->due_ms = limited ? self->waits_since + SIM_LOCK_MS : SIM_END_OF_TIME;
    if (self->due_ms <= world->mono_ms) {
        finish (world, self, ANSWER_BUSY);
    }
    return false;
}

/* Steps. */

static bool lock_shard (world_t *world, backend_t *self)
{
    const shard_t *shard = &world->database->shard;
    const ask_t *ask = &self->ask;
    if (!take_lock (world, self, LOCK_SHARD)) {
        return false;
    }
    bool own = shard->owner == (int32_t) self->host || bug_of (world) == ENGINE_BUG_EPOCH_TWICE;
    bool same =
        ask->epoch == shard->epoch && (ask->kind == ASK_TAKE ? ask->beat == shard->beat : own);
    if (!same) {
        finish (world, self, ask->kind == ASK_TAKE ? ANSWER_ELSEWHERE : ANSWER_FENCED);
    }
    return same;
}

static bool lock_fence (world_t *world, backend_t *self, fence_t fence)
{
    const ask_t *ask = &self->ask;
    bool append = ask->kind == ASK_APPEND;
    bool unfenced = (append && bug_of (world) == ENGINE_BUG_COMMIT_UNFENCED) ||
                    (ask->kind == ASK_WRITE && bug_of (world) == ENGINE_BUG_WRITE_UNFENCED) ||
                    (fence == FENCE_BLOBS && bug_of (world) == ENGINE_BUG_BLOB_UNFENCED);
    bool shared = append && bug_of (world) == ENGINE_BUG_FENCE_SHARED;
    static const size_t LOCK_OF[FENCES] = {LOCK_COMMITS, LOCK_WRITES, LOCK_BLOBS};
    size_t lock = LOCK_OF[fence];
    if (!shared && !take_lock (world, self, lock)) {
        return false;
    }
    bool own = ask->kind == ASK_TAKE || ask->epoch == world->database->shard.fences[fence];
    if (!own && !unfenced) {
        finish (world, self, ANSWER_FENCED);
        return false;
    }
    return true;
}

/* While the disk is full there is no room for new rows, and seldom none for a changed one. */
static bool has_space (world_t *world, backend_t *self, bool adds)
{
    if (!database_is_full (world) || (!adds && !rng_chance (&world->rng, CHANGE_IS_FULL))) {
        return true;
    }
    finish (world, self, ANSWER_FULL);
    return false;
}

static bool insert (world_t *world, backend_t *self)
{
    bool keyed = bug_of (world) != ENGINE_BUG_KEY_FORGOTTEN;
    if (keyed && database_has (world->database, self->ask.parcel)) {
        finish (world, self, ANSWER_THERE);
        return false;
    }
    return has_space (world, self, true);
}

static void read_newest (world_t *world, backend_t *self)
{
    self->answer.newest = bug_of (world) == ENGINE_BUG_READ_BACK_EARLY
                              ? self->seen_newest
                              : database_newest (world->database, self->ask.epoch);
}

/* A write-back that is made again, and may have got through. This too is asked behind the lock,
 * for the session before may only just be committing. */
static bool judge_written (world_t *world, backend_t *self)
{
    const ask_t *ask = &self->ask;
    place_t place = bug_of (world) == ENGINE_BUG_WRITTEN_EARLY ? self->seen_written
                                                               : world->database->shard.written;
    bool own = place.epoch == ask->epoch;
    bool cut = place.epoch < ask->epoch || (own && place.batch < ask->written);
    if (!ask->again) {
        return true;
    }
    if (cut && bug_of (world) != ENGINE_BUG_WRITTEN_CUT) {
        finish (world, self, ANSWER_CUT);
        return false;
    }
    if (own && place.batch >= self->parcels.list[self->parcels.count - 1]->batch->no) {
        finish (world, self, ANSWER_THERE);
        return false;
    }
    return true;
}

/* What is committed. */

/* Nobody takes over while somebody else may tell what he has in memory. */
static void check_leases (world_t *world, uint32_t taker)
{
    broker_t *turn = world->broker;
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        world->broker = &world->brokers[i];
        const host_t *host = world->broker->host;
        bool tells = i != taker && world->broker->engine != NULL;
        if (tells && host_ms (world, world->mono_ms) < host->beats.valid_until) {
            sim_fail (world, "A119: host %u takes over, and the lease of epoch %llu holds", taker,
                      (unsigned long long) host->epoch);
        }
    }
    world->broker = turn;
}

/* Of what is lost nobody knows, so an epoch may be met again, in another generation. */
static void check_epoch (world_t *world, const shard_t *begun)
{
    const database_t *database = world->database;
    if (begun->generation == database->highest_of && begun->epoch <= database->highest) {
        sim_fail (world, "I14: epoch %llu begins a second time", (unsigned long long) begun->epoch);
    }
}

/* Whose epoch was lost goes on soon behind the beginning of the one that has its number now. */
static void wake_lost (world_t *world, uint32_t taker, uint64_t epoch)
{
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        broker_t *broker = &world->brokers[i];
        bool lost = i != taker && broker->engine != NULL && broker->host->epoch == epoch;
        int64_t wakes_ms = world->mono_ms + rng_between (&world->rng, 1, WAKES_MS_MAX);
        if (lost && broker->frozen_until > wakes_ms) {
            broker->frozen_until = wakes_ms;
            broker->host->forgotten = false;
        }
    }
}

static void take_over (world_t *world, const backend_t *self, change_t *change)
{
    database_t *database = world->database;
    shard_t *shard = &change->shard;
    bool promoted = shard->timeline != database->timeline;
    check_leases (world, self->host);
    shard->epoch++;
    shard->beat++;
    shard->owner = (int32_t) self->host;
    for (size_t i = 0; i < FENCES; i++) {
        shard->fences[i] = shard->epoch;
    }
    shard->timeline = database->timeline;
    if (promoted && bug_of (world) != ENGINE_BUG_GENERATION_KEPT) {
        shard->generation = self->ask.generation;
        cut_happens (world, false, (place_t){0, 0});
    }
    database->adoptions++;
    check_epoch (world, shard);
    database->highest = shard->epoch;
    database->highest_of = shard->generation;
    wake_lost (world, self->host, shard->epoch);
}

static void write_back (const backend_t *self, change_t *change)
{
    shard_t *shard = &change->shard;
    parcels_copy (&change->written, &self->parcels);
    change->forgets = true;
    change->from = (place_t){self->ask.epoch, 0};
    change->upto =
        (place_t){self->ask.epoch, self->parcels.list[self->parcels.count - 1]->batch->no};
    shard->written = change->upto;
}

static void replay (world_t *world, backend_t *self, change_t *change)
{
    place_t begin = {self->ask.epoch, 0};
    database_unwritten (world, self->ask.epoch, &change->written);
    self->answer.replayed = change->written.count;
    change->forgets = true;
    change->forgets_before = true;
    change->upto = change->from = begin;
    if (bug_of (world) != ENGINE_BUG_WRITTEN_OF_OTHERS) {
        change->shard.written = begin;
    }
}

/* Nothing can change what was read: the lock is held. */
static void check_settled (world_t *world, const backend_t *self)
{
    uint64_t newest = database_newest (world->database, self->ask.epoch);
    if (self->answer.newest != newest) {
        sim_fail (world, "A106: batch %llu is durable, and who reads back is told of %llu",
                  (unsigned long long) newest, (unsigned long long) self->answer.newest);
    }
}

/* A beat of somebody else would keep others from taking over. */
static void check_owner (world_t *world, const backend_t *self)
{
    const shard_t *shard = &world->database->shard;
    if (shard->owner != (int32_t) self->host) {
        sim_fail (world, "A119: what host %u asks in epoch %llu counts, and its owner is host %d",
                  self->host, (unsigned long long) shard->epoch, (int) shard->owner);
    }
}

static void commit (world_t *world, backend_t *self)
{
    change_t change = database_change (world);
    if (NAMES[self->ask.kind] == OF_BLOBS) {
        vault_commit (world, self);
        finish (world, self, ANSWER_OK);
        return;
    }
    switch (self->ask.kind) {
    case ASK_BEAT:
        check_owner (world, self);
        change.shard.beat++;
        change.shard.timeline = self->ask.timeline;
        break;
    case ASK_SETTLE:
        check_owner (world, self);
        change.shard.beat++;
        check_settled (world, self);
        break;
    case ASK_APPEND: change.appended = parcel_keep (self->ask.parcel); break;
    case ASK_RELEASE: change.shard.owner = SIM_NOBODY; break;
    case ASK_WRITE: write_back (self, &change); break;
    case ASK_TAKE: take_over (world, self, &change); break;
    case ASK_REPLAY: replay (world, self, &change); break;
    default: break;
    }
    database_commit (world, &change);
    finish (world, self, ANSWER_OK);
}

/* True: the next step may follow. */
static bool do_step (world_t *world, backend_t *self)
{
    switch (SCRIPTS[self->ask.kind][self->step]) {
    case OP_SHARD: return lock_shard (world, self);
    case OP_COMMITS: return lock_fence (world, self, FENCE_COMMITS);
    case OP_WRITES: return lock_fence (world, self, FENCE_WRITES);
    case OP_BLOBS: return lock_fence (world, self, FENCE_BLOBS);
    case OP_VAULT: vault_look (world, self); return true;
    case OP_INSERT: return insert (world, self);
    case OP_NEWEST: read_newest (world, self); return true;
    case OP_WRITTEN: return judge_written (world, self);
    case OP_COMMIT:
        if (self->ask.kind == ASK_APPEND || has_space (world, self, false)) {
            commit (world, self);
        }
        return false;
    case OP_END: finish (world, self, ANSWER_OK); return false;
    case OP_WORK: return has_space (world, self, true);
    case OP_LOOK: return true;
    }
    return false;
}

static int64_t step_ms (world_t *world, backend_t *self)
{
    if (self->step == self->hangs_at) {
        self->cut_ms = world->mono_ms + rng_between (&world->rng, 0, LOST_SOON_MS);
        return rng_between (&world->rng, LOST_SOON_MS, HANG_MS_MAX);
    }
    op_t next = SCRIPTS[self->ask.kind][self->step];
    int64_t most_ms = next == OP_END ? 0
                      : next == OP_COMMIT && self->ask.kind == ASK_APPEND
                          ? world->options.commit_ms_max
                          : WORK_MS_MAX;
    bool slow = self->step == 0 && self->ask.kind == ASK_WRITE && sim_fault (world, WRITE_IS_SLOW);
    bool hangs = slow || (next != OP_END && sim_fault (world, world->options.session_hang));
    return rng_between (&world->rng, 0, hangs ? HANG_MS_MAX : most_ms);
}

/* The next statement is the asker's to send. */
static bool is_sent (world_t *world, backend_t *self)
{
    const broker_t *asker = &world->brokers[self->host];
    if (self->sent || !has_several (self)) {
        return true;
    }
    if (!self->heard) {
        kill_backend (world, self);
        return false;
    }
    if (world->mono_ms < asker->frozen_until) {
        self->due_ms = asker->frozen_until + 1;
        return false;
    }
    self->sent = true;
    return true;
}

static void run_backend (world_t *world, backend_t *self)
{
    bool told = self->told && SCRIPTS[self->ask.kind][self->step] != OP_COMMIT;
    if (world->mono_ms >= self->dies_ms || (told && world->mono_ms >= self->due_ms)) {
        kill_backend (world, self);
    }
    while (!self->done && !self->killed && world->mono_ms >= self->due_ms) {
        if (!is_sent (world, self)) {
            return;
        }
        if (self->step == 0 && !self->waits) {
            self->seen_newest = database_newest (world->database, self->ask.epoch);
            self->seen_written = world->database->shard.written;
        }
        if (do_step (world, self)) {
            self->step++;
            self->due_ms = world->mono_ms + step_ms (world, self);
            self->sent = SCRIPTS[self->ask.kind][self->step] == OP_COMMIT && self->heard &&
                         world->mono_ms >= world->brokers[self->host].frozen_until;
        }
    }
}

static void free_backend (backend_t *self)
{
    parcel_drop (self->ask.parcel);
    parcels_free (&self->parcels);
    free (self);
}

/* Nobody waits for those that have ended. */
static void sweep (world_t *world)
{
    backend_t **at = &world->database->backends;
    while (*at != NULL) {
        backend_t *self = *at;
        if (!self->heard && (self->done || self->killed)) {
            *at = self->next;
            free_backend (self);
        } else {
            at = &self->next;
        }
    }
}

void backends_step (world_t *world)
{
    for (backend_t *self = world->database->backends; self != NULL; self = self->next) {
        run_backend (world, self);
    }
    sweep (world);
}

size_t backends_end (world_t *world, ask_kind_t like, uint32_t host, const backend_t *except)
{
    size_t found = 0;
    for (backend_t *self = world->database->backends; self != NULL; self = self->next) {
        bool named = like == ASK_KINDS || NAMES[self->ask.kind] == NAMES[like];
        if (self != except && self->host == host && named && !self->done && !self->killed) {
            end_backend (world, self);
            found++;
        }
    }
    return found;
}

void backends_die (world_t *world)
{
    for (backend_t *self = world->database->backends; self != NULL; self = self->next) {
        kill_backend (world, self);
        self->killed = true; /* also an answer that is under way */
    }
    sweep (world);
}

int64_t backends_next_ms (const world_t *world)
{
    int64_t next = SIM_END_OF_TIME;
    for (const backend_t *self = world->database->backends; self != NULL; self = self->next) {
        bool waits = self->done || self->killed; /* for its asker */
        int64_t own = self->due_ms < self->dies_ms ? self->due_ms : self->dies_ms;
        next = !waits && own < next ? own : next;
    }
    return next;
}

/* The asker's side. */

static size_t commit_step (const backend_t *self)
{
    size_t step = 0;
    while (step < OPS_MAX && SCRIPTS[self->ask.kind][step] != OP_COMMIT) {
        step++;
    }
    return step;
}

/* The connection will be lost, or the server's process killed. */
static void draw_fate (world_t *world, talk_t *self, backend_t *backend)
{
    self->lost_ms = SIM_END_OF_TIME;
    bool ends = backend->ask.kind == ASK_BLOB_END && world->options.session_cut > 0;
    if (ends && sim_fault (world, ENDS_IN_DOUBT)) {
        backend->hangs_at = commit_step (backend);
        return;
    }
    if (!sim_fault (world, world->options.session_cut)) {
        return;
    }
    if (rng_chance (&world->rng, APPLIED_LATER)) {
        backend->hangs_at = rng_below (&world->rng, 2) * commit_step (backend);
        bool makes_doubt = backend->ask.kind == ASK_APPEND && world->options.commit_full > 0;
        if (makes_doubt && sim_fault (world, FILLS_IN_DOUBT)) {
            database_fill (world, true);
        }
        return;
    }
    bool soon = rng_chance (&world->rng, 600);
    self->lost_ms =
        world->mono_ms + rng_between (&world->rng, 0, soon ? LOST_SOON_MS : LOST_LATE_MS);
    if (rng_chance (&world->rng, KILLED)) {
        backend->dies_ms = self->lost_ms;
    }
}

void talk_ask (world_t *world, talk_t *self, const ask_t *ask)
{
    database_t *database = world->database;
    self->asks = true;
    /* A connection that has ended is noticed by who says something; the settling begins anew. Rows
     * are written to no database of which it is not known whether it has all. */
    bool broken = self->incarnation != 0 && self->incarnation != database->incarnation &&
                  ask->kind != ASK_SETTLE;
    bool waits = ask->kind == ASK_WRITE || NAMES[ask->kind] == OF_BLOBS;
    bool unjudged = waits && world->broker->host->whole != database->incarnation;
    self->incarnation = broken || unjudged ? 0 : database->incarnation;
    if (broken || unjudged || !host_reaches (world)) {
        self->lost_ms = world->mono_ms + rng_between (&world->rng, 0, REFUSED_MS_MAX);
        return;
    }
    backend_t *backend = calloc (1, sizeof *backend);
    backend->host = world->broker->host->index;
    backend->heard = true;
    backend->dies_ms = SIM_END_OF_TIME;
    backend->ask = *ask;
    parcel_keep (ask->parcel);
    parcels_copy (&backend->parcels, ask->parcels);
    backend->hangs_at = OPS_MAX;
    backend->cut_ms = SIM_END_OF_TIME;
    draw_fate (world, self, backend);
    backend->due_ms =
        world->mono_ms + rng_between (&world->rng, 0, TRAVEL_MS_MAX) + step_ms (world, backend);
    backend_t **at = &database->backends;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = backend;
    self->backend = backend;
}

void talk_drop (world_t *world, talk_t *self)
{
    if (self->backend != NULL) {
        self->backend->heard = false;
        self->backend = NULL;
        sweep (world);
    }
    self->asks = false;
}

answer_code_t talk_answer (world_t *world, talk_t *self, answer_t *out)
{
    const backend_t *backend = self->backend;
    *out = (answer_t){.code = ANSWER_NONE};
    if (!self->asks) {
        return ANSWER_NONE;
    }
    bool lost = world->mono_ms >= self->lost_ms ||
                (backend != NULL && (backend->killed || world->mono_ms >= backend->cut_ms)) ||
                !host_reaches (world);
    if (lost) {
        out->code = ANSWER_AWAY;
        talk_drop (world, self);
    } else if (backend != NULL && backend->done && world->mono_ms >= backend->due_ms) {
        *out = backend->answer;
        talk_drop (world, self);
    }
    return out->code;
}

int64_t talk_next_ms (const world_t *world, const talk_t *self)
{
    const backend_t *backend = self->backend;
    if (!self->asks) {
        return SIM_END_OF_TIME;
    }
    if ((backend != NULL && backend->killed) || !host_reaches (world)) {
        return world->mono_ms + 1;
    }
    int64_t next = self->lost_ms;
    if (backend != NULL) {
        next = backend->cut_ms < next ? backend->cut_ms : next;
        next = backend->done && backend->due_ms < next ? backend->due_ms : next;
    }
    return next;
}
