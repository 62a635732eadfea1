/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_beat.h"

#include <stdlib.h>
#include <time.h>

#include "core/base/beats.h"
#include "core/base/memory.h"
#include "store/postgresql/pg_commit.h"
#include "store/postgresql/pg_own.h"
#include "store/postgresql/pg_schema.h"
#include "timestamp.h"

enum {
    AGAIN_MS = 250, /* between two tries to reach the database */
    WAIT_MS_MAX = 5000
};

enum { BEAT, NEWEST, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    /* Another thread of this broker may have found a cut ($6) just now: that mark stays. */
    [BEAT] = "UPDATE shard SET beat = beat + 1, lease_ms = $3::int4,"
             " timeline = CASE WHEN timeline = $6::int4 THEN timeline ELSE $4::int4 END"
             " WHERE shard = $1::int2 AND epoch = $2::int8 AND owner = $5::text",
    [NEWEST] = PG_WHOLE_SQL,
};

struct pg_beat {
    pg_store_t *store;
    pg_link_t link;
    beats_t beats;
    uint64_t epoch;
    int32_t timeline; /* on which all that was acknowledged was found */
    /* Of the last beat: until when it holds by the monotonic clock, and how far the clock that
     * counts sleep, too, was before that one. */
    atomic_int_fast64_t valid_until;
    atomic_int_fast64_t slept_ms;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool hurry;
    bool stop;
};

/* How long the machine has slept since it was started. */
static int64_t slept_ms (void)
{
    return clock_ms (CLOCK_BOOTTIME) - clock_ms (CLOCK_MONOTONIC);
}

pg_beat_t *pg_beat_new (pg_store_t *store)
{
    pg_beat_t *self = memory_zero (1, sizeof (*self));
    pthread_condattr_t monotonic;
    int64_t lease_ms = store->database.lease_ms;
    self->store = store;
    beats_init (&self->beats, lease_ms == 0 ? PG_LEASE_MS : lease_ms);
    pg_link_init (&self->link, &store->target, "beat", TEXTS, STATEMENTS);
    self->link.wait_ms_max = self->beats.lease_ms / 2;
    if (self->link.wait_ms_max > WAIT_MS_MAX)
        self->link.wait_ms_max = WAIT_MS_MAX;
    self->link.judges = true;
    self->link.ends_others = true;
    atomic_init (&self->valid_until, INT64_MIN);
    atomic_init (&self->slept_ms, 0);
    pthread_mutex_init (&self->lock, NULL);
    pthread_condattr_init (&monotonic);
    pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init (&self->changed, &monotonic);
    pthread_condattr_destroy (&monotonic);
    return self;
}

static void put_epoch (const pg_beat_t *self, pg_params_t *params)
{
    pg_params_clear (params);
    pg_param_int2 (params, PG_SHARD);
    pg_param_int8 (params, (int64_t) self->epoch);
}

/* What was acknowledged before the question has to be in the answer. That of an epoch which is over
 * would say nothing, so the same statement says whose it is. */
static store_code_t look_whole (pg_beat_t *self, store_error_t *error)
{
    pg_there_t there;
    const pg_whole_t known = pg_whole_known (self->store);
    store_code_t code = pg_whole_look (&self->link, NEWEST, self->epoch, &known, &there, error);
    if (code != STORE_OK)
        return code;
    if (there.epoch != self->epoch)
        return pg_commit_fenced (self->store, self->epoch, error);
    code = pg_commit_judge (&self->link, self->store, self->epoch, &known, &there, error);
    if (code != STORE_OK && code != STORE_ERROR_IO)
        return code;
    /* A promotion may have lost a successor that began when our lease was over. */
    bool moved = self->link.timeline != self->timeline;
    int64_t until = pg_beat_valid_until (self);
    bool lapsed = until != INT64_MIN && clock_ms (CLOCK_MONOTONIC) >= until;
    if (moved && lapsed && !self->store->database.failover_synchronous)
        return store_fail (error, STORE_ERROR_FENCED,
                           "%s: it was promoted, and the lease was over before that was known: who "
                           "may have taken over from epoch %llu may be lost",
                           self->store->target.where, (unsigned long long) self->epoch);
    if (code != STORE_OK)
        return code;
    if (!pg_whole_found (self->store, &self->link, &known)) /* it is asked again */
        return store_fail (error, STORE_ERROR_BUSY, "%s: what is known has changed meanwhile",
                           self->store->target.where);
    self->timeline = self->link.timeline;
    return STORE_OK;
}

static store_code_t beat (pg_beat_t *self, store_error_t *error)
{
    uint64_t rows = 0;
    pg_params_t params;
    bool fresh = !pg_link_is_open (&self->link);
    store_code_t code = fresh ? pg_link_open (&self->link, error) : STORE_OK;
    if (code != STORE_OK)
        return code;
    pg_store_waits (self->store, &self->link);
    int64_t slept = slept_ms ();
    int64_t sent_ms = clock_ms (CLOCK_MONOTONIC);
    put_epoch (self, &params);
    pg_param_int4 (&params, (int32_t) self->beats.lease_ms);
    pg_param_int4 (&params, self->timeline);
    pg_param_text (&params, self->store->owner);
    pg_param_int4 (&params, PG_TIMELINE_CUT);
    code = pg_link_change (&self->link, BEAT, &params, &rows, error);
    if (code == STORE_OK && rows == 0)
        return pg_commit_fenced (self->store, self->epoch, error);
    if (code == STORE_OK && fresh)
        code = look_whole (self, error);
    if (code != STORE_OK) {
        if (fresh)
            pg_link_close (&self->link); /* so that it is asked again */
        return code;
    }
    pg_store_commits (self->store);
    beats_acknowledged (&self->beats, sent_ms);
    atomic_store (&self->slept_ms, slept);
    atomic_store (&self->valid_until, self->beats.valid_until);
    return STORE_OK;
}

static bool passes (store_code_t code)
{
    return code == STORE_ERROR_AWAY || code == STORE_ERROR_BUSY || code == STORE_ERROR_FULL;
}

/* False: it is to stop. */
static bool wait_until (pg_beat_t *self, int64_t until_ms)
{
    struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    pthread_mutex_lock (&self->lock);
    bool waits = true;
    while (waits && !self->stop && !self->hurry)
        waits = pthread_cond_timedwait (&self->changed, &self->lock, &until) == 0;
    self->hurry = false;
    bool goes_on = !self->stop;
    pthread_mutex_unlock (&self->lock);
    return goes_on;
}

static void *beat_run (void *context)
{
    pg_beat_t *self = context;
    store_error_t error;
    int64_t next_ms = clock_ms (CLOCK_MONOTONIC) + beats_every_ms (&self->beats);
    pthread_setname_np (pthread_self (), "beat");
    while (wait_until (self, next_ms)) {
        int64_t begun_ms = clock_ms (CLOCK_MONOTONIC);
        store_code_t code = beat (self, &error);
        next_ms = begun_ms + beats_every_ms (&self->beats);
        if (code == STORE_OK)
            continue;
        if (!passes (code)) {
            if (self->store->options.failed != NULL)
                self->store->options.failed (self->store->options.notify_context, &error);
            break;
        }
        bool known = self->link.late && atomic_load (&self->store->commits_wait);
        if (code == STORE_ERROR_AWAY && !known)
            pg_store_lost (self->store, &error);
        next_ms = clock_ms (CLOCK_MONOTONIC) + AGAIN_MS;
    }
    pg_link_close (&self->link);
    return NULL;
}

store_code_t pg_beat_start (pg_beat_t *self, uint64_t epoch, store_error_t *error)
{
    self->epoch = epoch;
    self->timeline = atomic_load (&self->store->target.timeline);
    store_code_t code = beat (self, error);
    if (code != STORE_OK)
        return code;
    if (pthread_create (&self->thread, NULL, beat_run, self) != 0)
        return store_fail (error, STORE_ERROR_IO, "the thread of beats cannot be started");
    self->runs = true;
    return STORE_OK;
}

int64_t pg_beat_valid_until (pg_beat_t *self)
{
    int64_t until = atomic_load (&self->valid_until);
    int64_t slept = slept_ms () - atomic_load (&self->slept_ms);
    return until == INT64_MIN || slept <= 0 ? until : until - slept;
}

void pg_beat_hurry (pg_beat_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->hurry = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

void pg_beat_stop (pg_beat_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (self->runs)
        pthread_join (self->thread, NULL);
    self->runs = false;
}

void pg_beat_free (pg_beat_t **self_p)
{
    pg_beat_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pg_beat_stop (self);
    pg_link_close (&self->link);
    pthread_mutex_destroy (&self->lock);
    pthread_cond_destroy (&self->changed);
    free (self);
}
