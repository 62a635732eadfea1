/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What an owner does with its database: beats, commits, the question what became of one whose
 * answer was lost, and write-backs. As store/postgresql does it. */
#include "cluster.h"

enum {
    AGAIN_MS = 100, /* between two tries to reach the database, … */
    AGAIN_MS_MAX = 1000,
    BEAT_AGAIN_MS = 250,
    WRITE_AGAIN_MS = 200,
    SLOW_MS = 250, /* a commit that waits for so long finds it out of reach */
    FULL_AGAIN_MS = 1000,
    DURABLE_MS_MAX = 2,
    BEAT_DELAYED = 50,
    DELAY_MS_MAX = 3 * SIM_LEASE_MS,
    BEAT_BREAKS = 40,
    FREEZES_LOOKING = 400,
    FREEZES_LONG = 700 /* … so that somebody takes over */
};

static int64_t own_now (const world_t *world)
{
    return host_ms (world, world->mono_ms);
}

static void note_reach (world_t *world, answer_code_t code)
{
    host_t *self = world->broker->host;
    if (code == ANSWER_AWAY && self->away_since == 0) {
        self->away_since = world->mono_ms;
    } else if (code != ANSWER_AWAY) {
        self->away_since = 0;
    }
}

/* ANSWER_NONE: not yet. */
static answer_code_t hear (world_t *world, talk_t *session, answer_t *answer)
{
    answer_code_t code = talk_answer (world, session, answer);
    if (code != ANSWER_NONE) {
        note_reach (world, code);
    }
    return code;
}

static void fenced (world_t *world)
{
    const host_t *self = world->broker->host;
    const database_t *database = world->database;
    if (database->shard.epoch <= self->epoch && !database->failed_over) {
        sim_fail (world, "A105: epoch %llu is fenced, and it is the newest",
                  (unsigned long long) self->epoch);
    }
    world->database->fenced++;
    host_end (world, "is fenced");
}

/* What was acknowledged is not there any more. */
static void rolled_back (world_t *world, const char *what)
{
    if (!world->database->failed_over) {
        sim_fail (world, "A106: %s is said to be lost, and nothing was", what);
    }
    host_end (world, "finds that the database lost something");
}

/* A write-back takes from the journal what it writes, in one. So where it is gone and no commit is,
 * a start finds all of that in the journal. */
static void write_back_lost (world_t *world)
{
    const host_t *self = world->broker->host;
    const database_t *database = world->database;
    place_t written = database->shard.written;
    uint64_t last = written.epoch == self->epoch ? written.batch : 0;
    for (size_t i = 0; i < database->journal.count; i++) {
        const parcel_t *parcel = database->journal.list[i];
        if (parcel->epoch == self->epoch && parcel->previous <= last && parcel->batch->no > last) {
            last = parcel->batch->no;
        }
    }
    if (database->shard.epoch == self->epoch && last < database_newest (database, self->epoch)) {
        sim_fail (world,
                  "A106: a write-back is lost, and the journal lacks what is behind batch %llu",
                  (unsigned long long) last);
    }
    rolled_back (world, "a write-back");
}

/* Beats. */

void keeping_begin (world_t *world)
{
    host_t *self = world->broker->host;
    beats_init (&self->beats, SIM_LEASE_MS);
    self->next_beat_ms = own_now (world);
    self->beat_fresh = self->beat_looks = self->beat_waits = false;
    self->last = self->written = 0;
    self->committing = COMMITS_NOTHING;
    self->writing = WRITES_NOTHING;
    self->away_since = 0;
    self->stalled = self->starts_over = self->doubted = self->never = false;
    self->beat.incarnation = self->commit.incarnation = self->write.incarnation = 0;
    self->blobs.incarnation = 0;
    self->blobs_lost = true;
    self->commit_at = 0;
    self->overlaid = 0;
}

static void send_beat (world_t *world)
{
    host_t *self = world->broker->host;
    ask_t beat = {.kind = ASK_BEAT, .epoch = self->epoch, .timeline = self->timeline};
    self->sent_ms = self->asked_ms = own_now (world);
    self->beat_fresh = self->beat_fresh || sim_fault (world, BEAT_BREAKS);
    talk_ask (world, &self->beat, &beat);
}

static void beat_counts (world_t *world)
{
    host_t *self = world->broker->host;
    beats_acknowledged (&self->beats, self->sent_ms);
    self->beat_looks = false;
    self->next_beat_ms = self->sent_ms + beats_every_ms (&self->beats);
    if (sim_fault (world, BEAT_DELAYED)) {
        self->next_beat_ms += rng_between (&world->rng, 0, DELAY_MS_MAX);
    }
}

/* Its replay is committed, and known to be. */
static bool is_serving (const host_t *self)
{
    return self->life == LIFE_SERVES || self->life == LIFE_STOPS;
}

/* On a new connection what was acknowledged is looked for, before the beat counts. */
static void look_whole (world_t *world)
{
    host_t *self = world->broker->host;
    ask_t look = {.kind = ASK_NEWEST, .epoch = self->epoch};
    self->beat_waits = false;
    self->last_then = self->last;
    self->served_then = is_serving (self);
    self->written_then = self->written;
    self->asked_ms = own_now (world);
    talk_ask (world, &self->beat, &look);
}

static void begin_look (world_t *world)
{
    host_t *self = world->broker->host;
    self->beat_looks = self->beat_waits = true;
    if (world->options.host_freeze > 0 && sim_fault (world, FREEZES_LOOKING)) {
        bool long_one = rng_chance (&world->rng, FREEZES_LONG);
        host_freeze (world, long_one ? SIM_LEASE_MS * 3 / 2 : 1);
    } else {
        look_whole (world);
    }
}

/* What is written back is not in memory any more, and would be read from tables without it. */
static bool lacks_written (const world_t *world, place_t written, uint64_t known)
{
    const host_t *self = world->broker->host;
    bool lacks =
        written.epoch < self->epoch || (written.epoch == self->epoch && written.batch < known);
    return lacks && world->options.planted_bug != ENGINE_BUG_WRITTEN_CUT &&
           world->options.planted_bug != ENGINE_BUG_WRITTEN_OF_OTHERS;
}

static void found_whole (world_t *world, const answer_t *answer)
{
    host_t *self = world->broker->host;
    /* What an epoch that is over has left says nothing, and it may have ended since the beat. */
    bool over = answer->shard.epoch != self->epoch;
    if (over && world->options.planted_bug != ENGINE_BUG_LOOK_OF_ANYBODY) {
        fenced (world);
        return;
    }
    if (answer->newest < self->last_then) {
        rolled_back (world, "a commit");
        return;
    }
    if (self->served_then && lacks_written (world, answer->shard.written, self->written_then)) {
        write_back_lost (world);
        return;
    }
    /* After a promotion whoever took over while the lease had lapsed may be forgotten. */
    bool promoted = answer->timeline != self->timeline;
    bool lapsed = own_now (world) >= self->beats.valid_until;
    if (promoted && lapsed && world->options.planted_bug != ENGINE_BUG_LAPSED_GOES_ON) {
        rolled_back (world, "another owner");
        return;
    }
    self->timeline = answer->timeline;
    host_found_whole (world);
    self->beat_fresh = false;
    beat_counts (world);
}

void keeping_beat (world_t *world)
{
    host_t *self = world->broker->host;
    answer_t answer;
    if (self->beat_waits) {
        look_whole (world);
    } else if (!self->beat.asks && own_now (world) >= self->next_beat_ms) {
        send_beat (world);
    }
    answer_code_t code = hear (world, &self->beat, &answer);
    if (code == ANSWER_NONE && self->beat.asks &&
        own_now (world) - self->asked_ms > SIM_LEASE_MS / 2) {
        talk_drop (world, &self->beat);
        code = ANSWER_AWAY;
    }
    switch (code) {
    case ANSWER_NONE: break;
    case ANSWER_OK:
        if (self->beat_looks) {
            found_whole (world, &answer);
        } else if (self->beat_fresh) {
            begin_look (world);
        } else {
            beat_counts (world);
        }
        break;
    case ANSWER_FENCED: fenced (world); break;
    default:
        self->beat_fresh = true;
        self->beat_looks = false;
        self->next_beat_ms = own_now (world) + BEAT_AGAIN_MS;
    }
}

/* Commits. */

static void append (world_t *world)
{
    host_t *self = world->broker->host;
    ask_t what = {.kind = ASK_APPEND, .epoch = self->epoch, .parcel = self->making};
    self->committing = COMMITS_APPENDS;
    self->appended_ms = own_now (world);
    talk_ask (world, &self->commit, &what);
}

static void committed (world_t *world)
{
    broker_t *broker = world->broker;
    host_t *self = broker->host;
    self->committing = COMMITS_NOTHING;
    self->doubted = self->never = false;
    self->last = self->making->batch->no;
    self->making->acknowledged = true;
    parcels_add (&self->behind, self->making);
    parcel_drop (self->making);
    self->making = NULL;
    if (world->options.planted_bug == ENGINE_BUG_COMMIT_PROLONGS) {
        beats_acknowledged (&self->beats, self->appended_ms);
    }
    broker->durable = self->last;
    broker->durable_due_ms = world->mono_ms + rng_between (&world->rng, 0, DURABLE_MS_MAX);
    if (broker->write_due_ms == SIM_END_OF_TIME) {
        broker->write_due_ms =
            world->mono_ms + rng_between (&world->rng, 0, world->options.write_ms_max);
    }
}

/* Nothing of it was kept: all that was applied is dropped, and comes again from the store (A21). */
static void no_space (world_t *world)
{
    host_t *self = world->broker->host;
    sim_log (world, "commit %llu finds no space%s", (unsigned long long) self->making->batch->no,
             self->never ? ", and can never land" : "");
    world->database->full++;
    self->never = false;
    self->committing = COMMITS_NOTHING;
    parcel_drop (self->making);
    self->making = NULL;
    self->commit_at = world->mono_ms + FULL_AGAIN_MS;
    self->starts_over = self->life == LIFE_SERVES;
    broker_drop (world);
}

/* It waits for the rows of what was committed, or for the news that they find no space. */
bool keeping_starts_over (world_t *world)
{
    host_t *self = world->broker->host;
    bool dropped = world->options.planted_bug == ENGINE_BUG_UNWRITTEN_DROPPED;
    if (!self->starts_over) {
        return false;
    }
    if ((self->behind.count > 0 && !self->stalled) || reach_is_away (world)) {
        return true;
    }
    self->starts_over = false;
    self->overlaid = self->behind.count == 0 || dropped ? 0 : self->last;
    world->model->overlaid = self->overlaid > self->written;
    broker_start_over (world);
    return false;
}

static void doubt (world_t *world)
{
    host_t *self = world->broker->host;
    if (world->options.planted_bug == ENGINE_BUG_DOUBT_FAILED) {
        no_space (world);
        return;
    }
    if (world->options.planted_bug == ENGINE_BUG_DOUBT_DONE) {
        committed (world);
        return;
    }
    self->doubted = world->options.planted_bug != ENGINE_BUG_DOUBT_FULL;
    self->committing = COMMITS_SETTLES;
    self->settle_written = self->written;
    self->again_ms = world->mono_ms;
    self->pause_ms = AGAIN_MS;
}

static void settled (world_t *world, const answer_t *answer)
{
    host_t *self = world->broker->host;
    uint64_t batch = self->making->batch->no;
    uint64_t newest = answer->newest;
    world->database->settled++;
    if (newest < self->last || (newest != batch && newest != self->last)) {
        rolled_back (world, "a commit");
        return;
    }
    if (lacks_written (world, answer->shard.written, self->settle_written)) {
        write_back_lost (world);
        return;
    }
    host_found_whole (world);
    if (newest == batch) {
        world->database->landed++;
        committed (world);
    } else if (self->never) {
        no_space (world);
    } else {
        append (world);
    }
}

static void settle_later (world_t *world)
{
    host_t *self = world->broker->host;
    self->again_ms = world->mono_ms + self->pause_ms;
    self->pause_ms = self->pause_ms * 2 > AGAIN_MS_MAX ? AGAIN_MS_MAX : self->pause_ms * 2;
}

/* Where it is not made again no session before this one may land it: they are told to end, and it
 * is looked when none is left. */
static bool is_alone (world_t *world)
{
    const host_t *self = world->broker->host;
    if (!self->never || world->options.planted_bug == ENGINE_BUG_FULL_UNENDED) {
        return true;
    }
    return host_reaches (world) && backends_end (world, ASK_SETTLE, self->index, NULL) == 0;
}

static void settle (world_t *world)
{
    host_t *self = world->broker->host;
    answer_t answer;
    if (!self->commit.asks && world->mono_ms >= self->again_ms) {
        if (!is_alone (world)) {
            settle_later (world);
            return;
        }
        self->settle_written = self->written;
        talk_ask (world, &self->commit, &(ask_t){.kind = ASK_SETTLE, .epoch = self->epoch});
    }
    switch (hear (world, &self->commit, &answer)) {
    case ANSWER_NONE: break;
    case ANSWER_OK: settled (world, &answer); break;
    case ANSWER_FENCED: fenced (world); break;
    case ANSWER_BUSY:
        backends_end (world, ASK_SETTLE, self->index, NULL);
        settle_later (world);
        break;
    default: settle_later (world);
    }
}

/* The session before this one may stand still, and find space later: "nothing of it is kept" is no
 * answer before that one can never land. */
static void full_in_doubt (world_t *world)
{
    host_t *self = world->broker->host;
    self->committing = COMMITS_SETTLES;
    self->never = true;
    self->settle_written = self->written;
    self->again_ms = world->mono_ms;
    self->pause_ms = AGAIN_MS;
}

static void append_heard (world_t *world)
{
    answer_t answer;
    switch (hear (world, &world->broker->host->commit, &answer)) {
    case ANSWER_NONE: break;
    case ANSWER_OK: committed (world); break;
    case ANSWER_FENCED: fenced (world); break;
    case ANSWER_FULL:
        if (world->broker->host->doubted) {
            full_in_doubt (world);
        } else {
            no_space (world);
        }
        break;
    default: doubt (world);
    }
}

static void commit (world_t *world)
{
    broker_t *broker = world->broker;
    host_t *self = broker->host;
    if (world->mono_ms < self->commit_at) {
        return;
    }
    if (self->making == NULL && broker->batch != NULL) {
        self->making = parcel_new (self, broker->batch, broker->started_ms);
        self->making_since = world->mono_ms;
        broker->batch = NULL;
        append (world);
    }
    if (self->committing == COMMITS_APPENDS) {
        append_heard (world);
    } else if (self->committing == COMMITS_SETTLES) {
        settle (world);
    }
}

/* Write-backs. */

static void write_some (world_t *world)
{
    host_t *self = world->broker->host;
    bool again = self->writing == WRITES_AGAIN;
    self->writing_count = again ? self->writing_count : self->behind.count;
    parcels_t some = {self->behind.list, self->writing_count, 0};
    ask_t what = {.kind = ASK_WRITE,
                  .epoch = self->epoch,
                  .parcels = &some,
                  .again = again,
                  .written = self->written};
    self->writing = WRITES_SOME;
    talk_ask (world, &self->write, &what);
}

static void written (world_t *world)
{
    broker_t *broker = world->broker;
    host_t *self = broker->host;
    self->writing = WRITES_NOTHING;
    self->written = self->behind.list[self->writing_count - 1]->batch->no;
    parcels_shift (&self->behind, self->writing_count);
    broker->write_due_ms =
        self->behind.count == 0
            ? SIM_END_OF_TIME
            : world->mono_ms + rng_between (&world->rng, 0, world->options.write_ms_max);
}

static bool is_due (const world_t *world)
{
    const broker_t *broker = world->broker;
    const host_t *self = broker->host;
    if (self->writing == WRITES_AGAIN) {
        return world->mono_ms >= self->write_again_ms;
    }
    bool hurries = self->life == LIFE_STOPS || self->starts_over;
    bool due = world->mono_ms >= broker->write_due_ms || hurries;
    return self->writing == WRITES_NOTHING && due && self->behind.count > 0;
}

static void write_behind (world_t *world)
{
    host_t *self = world->broker->host;
    answer_t answer;
    if (is_due (world)) {
        write_some (world);
    }
    answer_code_t code = hear (world, &self->write, &answer);
    if (code != ANSWER_NONE) {
        self->stalled = code == ANSWER_FULL;
    }
    switch (code) {
    case ANSWER_NONE: break;
    case ANSWER_OK:
    case ANSWER_THERE: written (world); break;
    case ANSWER_FENCED: fenced (world); break;
    case ANSWER_CUT: write_back_lost (world); break;
    default: self->writing = WRITES_AGAIN; self->write_again_ms = world->mono_ms + WRITE_AGAIN_MS;
    }
}

/* A clean end leaves no owner. */
static void release (world_t *world)
{
    host_t *self = world->broker->host;
    answer_t answer;
    if (!self->own.asks) {
        talk_drop (world, &self->beat);
        talk_ask (world, &self->own, &(ask_t){.kind = ASK_RELEASE, .epoch = self->epoch});
    }
    if (talk_answer (world, &self->own, &answer) != ANSWER_NONE) {
        host_end (world, "has stopped");
    }
}

void keeping_step (world_t *world)
{
    host_t *self = world->broker->host;
    commit (world);
    if (self->life == LIFE_SERVES || (self->life == LIFE_STOPS && self->making == NULL)) {
        write_behind (world);
    }
    bool done = self->making == NULL && self->behind.count == 0;
    if (self->life == LIFE_STOPS && done) {
        release (world);
    }
}

void keeping_leave (world_t *world)
{
    host_t *self = world->broker->host;
    talk_drop (world, &self->beat);
    talk_drop (world, &self->commit);
    talk_drop (world, &self->write);
    talk_drop (world, &self->blobs);
    parcel_drop (self->making);
    self->making = NULL;
    parcels_free (&self->behind);
    self->committing = COMMITS_NOTHING;
    self->writing = WRITES_NOTHING;
}

/* Time. */

static int64_t earlier (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t keeping_next_ms (const world_t *world)
{
    const broker_t *broker = world->broker;
    const host_t *self = broker->host;
    int64_t next =
        earlier (talk_next_ms (world, &self->commit), talk_next_ms (world, &self->write));
    next = earlier (next, talk_next_ms (world, &self->beat));
    int64_t beat_ms = self->beat.asks ? self->asked_ms + SIM_LEASE_MS / 2 + 1 : self->next_beat_ms;
    next = earlier (next, host_world_ms (world, beat_ms));
    if (self->committing == COMMITS_SETTLES && !self->commit.asks) {
        next = earlier (next, self->again_ms);
    }
    if (self->commit_at > world->mono_ms) {
        next = earlier (next, self->commit_at);
    }
    if (self->writing == WRITES_AGAIN) {
        next = earlier (next, self->write_again_ms);
    }
    if (self->writing == WRITES_NOTHING) {
        next = earlier (next, broker->write_due_ms);
    }
    bool soon = self->life == LIFE_STOPS || self->life == LIFE_BEATS || self->beat_waits ||
                self->starts_over;
    return soon ? world->mono_ms + 1 : next;
}
