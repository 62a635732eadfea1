/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_own.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "core/base/beats.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_steps.h"
#include "timestamp.h"

enum {
    LOOK_MS = 100, /* between two looks at an owner */
    LOOK_WAIT_MS = 2000,
    LOOK_ANSWER_MS = 4000, /* for one look, or a commit: neither waits for a lock */
    TRIES = 5,             /* each waits 2 s for locks */
    TEXT_SIZE = 512,
    NO_BEATS = -1
};

enum { LOOK, LOOK_AND_LOCK, VERSION, TERMINATE, TAKE, FENCE, RELEASE, STATEMENTS };

/* The first version of the table has no lease, and its owners do not beat: -1. 0 stands there until
 * the first beat of an owner. */
#define SHARD_SQL                                                                                  \
    "SELECT owner, epoch, beat, generation, system_id, timeline,"                                  \
    " coalesce ((to_jsonb (s) ->> 'lease_ms')::int4, -1), (SELECT version FROM meta)"              \
    " FROM shard s WHERE shard = $1::int2"

static const char *const TEXTS[STATEMENTS] = {
    [LOOK] = SHARD_SQL,
    [LOOK_AND_LOCK] = SHARD_SQL " FOR UPDATE",
    [VERSION] = "SELECT version FROM meta",
    /* A step of an upgrade at which the server works stays: it may be long, it ends with its
     * broker, and to begin it anew would help nobody. `state` would say so, too, but not with
     * track_activities off. */
    [TERMINATE] = PG_LINK_TERMINATE_WHERE ("application_name LIKE 'taskmq % ' || $1::text"
                                           " AND usename = session_user"
                                           " AND pid <> pg_backend_pid ()"
                                           " AND NOT (application_name LIKE 'taskmq schema %'"
                                           " AND wait_event IS DISTINCT FROM 'ClientRead')"),
    [TAKE] = "UPDATE shard SET epoch = $2::int8, owner = $3::text, system_id = $4::int8,"
             " timeline = $5::int4, generation = $6::int8, beat = beat + 1"
             " WHERE shard = $1::int2",
    [FENCE] = "UPDATE fence SET epoch = $2::int8 WHERE shard = $1::int2",
    [RELEASE] = ("UPDATE shard SET owner = NULL WHERE shard = $1::int2 AND epoch = $2::int8"
                 " AND owner = $3::text"),
};

/* What table shard says. */
typedef struct shard {
    bool owned;
    char owner[PG_OWNER_TEXT_SIZE];
    uint64_t epoch;
    uint64_t beat;
    uint64_t generation;
    int64_t system_id; /* 0: nobody owned it yet, or a copy that is to go on */
    int32_t timeline;
    int64_t lease_ms; /* NO_BEATS: a version whose owners do not beat; 0: none did yet */
    int32_t version;  /* of the schema */
} shard_t;

typedef enum verdict {
    VERDICT_TAKE,
    VERDICT_WAIT,
    VERDICT_REFUSE /* another owner lives, or nobody can tell */
} verdict_t;

typedef struct taker {
    pg_store_t *store;
    pg_link_t link;
    int stop_fd;
    beat_watch_t watch;
    pg_owned_t *out;
    shard_t seen;         /* by the newest look */
    uint64_t first_epoch; /* … and by the first one */
    uint64_t first_beat;
    bool looked;
    uint64_t told_epoch; /* of the owner that we said to wait for */
    bool told;
    bool doubted;     /* the answer to the commit of an adoption was lost … */
    pg_owned_t doubt; /* … and this is what it had found */
} taker_t;

/* Looking. */

static store_code_t read_shard (taker_t *self, size_t statement, shard_t *out, store_error_t *error)
{
    PGresult *row = NULL;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    store_code_t code = pg_link_run (&self->link, statement, &params, &row, error);
    if (code == STORE_OK && PQntuples (row) != 1)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table %s.shard is empty",
                           self->store->target.where, self->store->target.schema);
    if (code == STORE_OK) {
        *out = (shard_t){.owned = !pg_is_null (row, 0, 0),
                         .epoch = (uint64_t) pg_int8 (row, 0, 1),
                         .beat = (uint64_t) pg_int8 (row, 0, 2),
                         .generation = (uint64_t) pg_int8 (row, 0, 3),
                         .system_id = pg_int8 (row, 0, 4),
                         .timeline = pg_int4 (row, 0, 5),
                         .lease_ms = pg_int4 (row, 0, 6),
                         .version = pg_is_null (row, 0, 7) ? 0 : pg_int4 (row, 0, 7)};
        if (out->owned)
            snprintf (out->owner, sizeof (out->owner), "%s", pg_text (row, 0, 0));
    }
    PQclear (row);
    return code;
}

/* Tables of a newer version are none that this broker could ever take over: it says so at once, and
 * not when it would be needed. */
static store_code_t judge_version (const taker_t *self, int32_t version, store_error_t *error)
{
    const pg_target_t *target = &self->store->target;
    return version <= pg_steps_version () ? STORE_OK : pg_schema_newer (target, version, error);
}

static store_code_t look (taker_t *self, store_error_t *error)
{
    store_code_t code = read_shard (self, LOOK, &self->seen, error);
    if (code == STORE_OK)
        code = judge_version (self, self->seen.version, error);
    if (code != STORE_OK)
        return code;
    if (!self->looked) {
        self->looked = true;
        self->first_epoch = self->seen.epoch;
        self->first_beat = self->seen.beat;
    }
    return STORE_OK;
}

/* The owner has ended, as far as we can know. */
static bool has_ended (const taker_t *self)
{
    const shard_t *seen = &self->seen;
    const pg_instance_t *instance = &self->out->instance;
    return !seen->owned || pg_instance_was (instance, seen->owner) ||
           (seen->lease_ms == NO_BEATS && pg_instance_was_unplaced (instance, seen->owner));
}

/* A promotion may have lost who owned it last, and that one's lease may hold. So may what a cut was
 * found behind: PG_TIMELINE_CUT is no server's. */
static bool may_lack_an_owner (const taker_t *self)
{
    const shard_t *seen = &self->seen;
    return seen->timeline != 0 && seen->lease_ms > 0 &&
           seen->timeline != atomic_load (&self->store->target.timeline);
}

/* The lease is the owner's: it believes in that one, whatever ours is. One that did not beat yet
 * believes in nothing. */
static bool stands_still (taker_t *self, int64_t now_ms)
{
    const shard_t *seen = &self->seen;
    self->watch.lease_ms = seen->lease_ms == 0 ? PG_LEASE_MS : seen->lease_ms;
    bool still = beat_watch_saw (&self->watch, seen->epoch, seen->beat, now_ms);
    self->out->silent_ms = still ? now_ms - self->watch.since_ms : 0;
    return still;
}

static verdict_t judge (taker_t *self)
{
    const shard_t *seen = &self->seen;
    bool standby = self->store->database.standby;
    self->out->silent_ms = 0;
    if (has_ended (self) && !may_lack_an_owner (self))
        return VERDICT_TAKE;
    if (seen->lease_ms == NO_BEATS)
        return standby ? VERDICT_WAIT : VERDICT_REFUSE;
    if (stands_still (self, clock_ms (CLOCK_MONOTONIC)))
        return VERDICT_TAKE;
    bool lives = seen->epoch != self->first_epoch || seen->beat != self->first_beat;
    return lives && !standby ? VERDICT_REFUSE : VERDICT_WAIT;
}

static const char *twin (const taker_t *self)
{
    return pg_instance_is_twin (&self->out->instance, self->seen.owner)
               ? ". It has the same instance as this directory: if both live, one directory is a "
                 "copy of the other; remove the file 'instance' of the copy"
               : "";
}

static store_code_t refuse (const taker_t *self, store_error_t *error)
{
    char owner[TEXT_SIZE];
    pg_instance_text (self->seen.owner, owner, sizeof (owner));
    return store_fail (error, STORE_ERROR_OWNED,
                       "%s: another broker owns the data: %s. Stop it, or wait for it "
                       "(cluster/standby, --standby)%s",
                       self->store->target.where, owner, twin (self));
}

/* Once for each owner that is met. */
static void tell_waiting (taker_t *self)
{
    char owner[TEXT_SIZE / 2];
    char text[TEXT_SIZE];
    if ((self->told && self->told_epoch == self->seen.epoch) || has_ended (self))
        return;
    self->told = true;
    self->told_epoch = self->seen.epoch;
    pg_instance_text (self->seen.owner, owner, sizeof (owner));
    if (self->seen.lease_ms == NO_BEATS)
        snprintf (text, sizeof (text),
                  "%s owns the data, and is of a version that gives no signs: it is waited for "
                  "until it stops",
                  owner);
    else if (self->store->database.standby)
        snprintf (text, sizeof (text),
                  "%s owns the data: this broker takes over when that stops, or gives no sign for "
                  "%lld ms%s",
                  owner, (long long) self->watch.lease_ms, twin (self));
    else
        snprintf (text, sizeof (text),
                  "%s owns the data, or did not stop cleanly: whether it lives is known in %lld ms",
                  owner, (long long) self->watch.lease_ms);
    pg_store_say (self->store, DATABASE_STANDBY, text);
}

static store_code_t pause_look (int stop_fd, int ms, store_error_t *error)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    if (poll (&stop, 1, ms) > 0 && (stop.revents & POLLIN) != 0)
        return store_fail (error, STORE_ERROR_STOPPED,
                           "stopped while another broker owns the data");
    return STORE_OK;
}

static int look_pause_ms (const taker_t *self)
{
    return (int) beat_watch_pause_ms (&self->watch, LOOK_MS, clock_ms (CLOCK_MONOTONIC));
}

/* Adopting. */

/* After a promotion that may have lost something, and where a copy goes on, cursors of the history
 * before have to find a gap. */
static void choose_generation (const taker_t *self, const shard_t *row)
{
    const pg_store_t *store = self->store;
    pg_owned_t *out = self->out;
    bool known = row->timeline != 0;
    bool copied = known && row->system_id == 0;
    bool cut = row->timeline == PG_TIMELINE_CUT;
    bool promoted = known && row->timeline != atomic_load (&store->target.timeline);
    out->generation = row->generation;
    out->promoted = cut || copied || (promoted && !store->database.failover_synchronous);
    uint64_t fresh = 0;
    if (out->promoted && getrandom (&fresh, sizeof (fresh), 0) == (ssize_t) sizeof (fresh))
        out->generation = fresh >> 1 | 1; /* as everywhere: fits int64, not 0 */
}

static store_code_t judge_system (const taker_t *self, const shard_t *row, store_error_t *error)
{
    const pg_target_t *target = &self->store->target;
    if (row->system_id != 0 && row->system_id != atomic_load (&target->system_id))
        return store_fail (error, STORE_ERROR_FOREIGN,
                           "%s: the data was written on another server, so this is a copy; if it "
                           "is the one to go on with: UPDATE %s.shard SET system_id = 0",
                           target->where, target->schema);
    return STORE_OK;
}

/* Tables that were made, and that nobody owned so far. */
static store_code_t judge_fresh (const taker_t *self, const shard_t *row, store_error_t *error)
{
    pg_tables_of_t owned;
    if (row->epoch != 0 || self->store->database.gives_up)
        return STORE_OK;
    pg_instance_owned (&owned, self->store->options.directory);
    return owned.system_id == 0 ? STORE_OK
                                : pg_instance_lacks (&owned, &self->link, "empty", error);
}

/* A step that was waited for may have ended since the look: before an epoch is spent. */
static store_code_t judge_version_anew (taker_t *self, store_error_t *error)
{
    PGresult *row;
    store_code_t code = pg_link_run (&self->link, VERSION, NULL, &row, error);
    if (code == STORE_OK)
        code = judge_version (self, PQntuples (row) == 1 ? pg_int4 (row, 0, 0) : 0, error);
    PQclear (row);
    return code;
}

static store_code_t take (taker_t *self, store_error_t *error)
{
    uint64_t rows;
    pg_params_t params;
    const pg_target_t *target = &self->store->target;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) self->out->epoch);
    pg_param_text (&params, self->out->instance.owner);
    pg_param_int8 (&params, atomic_load (&target->system_id));
    pg_param_int4 (&params, atomic_load (&target->timeline));
    pg_param_int8 (&params, (int64_t) self->out->generation);
    store_code_t code = pg_link_change (&self->link, TAKE, &params, &rows, error);
    params.count = 2;
    if (code == STORE_OK)
        code = pg_link_change (&self->link, FENCE, &params, &rows, error);
    if (code == STORE_OK && rows < PG_FENCES_MIN)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table %s.fence lacks rows",
                           target->where, target->schema);
    return code;
}

static void note_before (taker_t *self)
{
    pg_owned_t *out = self->out;
    bool other = self->seen.owned && !pg_instance_was_unplaced (&out->instance, self->seen.owner);
    snprintf (out->from, sizeof (out->from), "%s",
              other || out->silent_ms > 0 ? self->seen.owner : "");
    /* One in doubt had landed: the owner before us is not who we were a moment ago. */
    if (!self->doubted || strcmp (self->seen.owner, out->instance.owner) != 0)
        return;
    memcpy (out->from, self->doubt.from, sizeof (out->from));
    out->silent_ms = self->doubt.silent_ms;
    out->promoted = out->promoted || self->doubt.promoted;
}

static store_code_t commit (taker_t *self, store_error_t *error)
{
    note_before (self);
    const int64_t wait_ms_max = self->link.wait_ms_max;
    self->link.wait_ms_max = LOOK_ANSWER_MS;
    store_code_t code = pg_link_commit (&self->link, error);
    self->link.wait_ms_max = wait_ms_max;
    if (code == STORE_ERROR_AWAY) {
        self->doubted = true;
        self->doubt = *self->out;
    }
    return code;
}

/* On condition that nothing happened since the look: else somebody was faster, or the owner lives.
 * The lock on the row makes a beat that is being committed count. */
static store_code_t adopt (taker_t *self, bool *taken, store_error_t *error)
{
    shard_t row;
    memset (&row, 0, sizeof (row));
    store_code_t code = pg_link_begin (&self->link, error);
    if (code == STORE_OK)
        code = pg_link_do (&self->link, "SET LOCAL lock_timeout = '2s'", error);
    if (code == STORE_OK)
        code = read_shard (self, LOOK_AND_LOCK, &row, error);
    bool same = code == STORE_OK && row.epoch == self->seen.epoch && row.beat == self->seen.beat;
    if (same)
        code = judge_system (self, &row, error);
    if (same && code == STORE_OK)
        code = judge_fresh (self, &row, error);
    if (same && code == STORE_OK)
        code = judge_version_anew (self, error);
    if (same && code == STORE_OK) {
        self->out->epoch = row.epoch + 1;
        choose_generation (self, &row);
        code = take (self, error);
    }
    if (same && code == STORE_OK) {
        code = commit (self, error);
        *taken = code == STORE_OK; /* not before: what is rolled back is owned by nobody */
    }
    pg_link_rollback (&self->link);
    return code;
}

static store_code_t terminate (taker_t *self, const char *owner, store_error_t *error)
{
    char tag[PG_TAG_SIZE];
    PGresult *ended;
    pg_params_t params;
    pg_instance_tag (owner, tag);
    pg_params_clear (&params);
    pg_param_text (&params, tag);
    store_code_t code = pg_link_run (&self->link, TERMINATE, &params, &ended, error);
    if (code == STORE_OK)
        pg_link_note_waits (&self->link, ended);
    PQclear (ended);
    pg_store_waits (self->store, &self->link);
    return code;
}

/* The owner may stand still in the middle of something, and its sessions with locks: they end. So
 * do our own of an adoption whose answer was lost. */
static store_code_t terminate_old (taker_t *self, store_error_t *error)
{
    store_code_t code = terminate (self, self->seen.owner, error);
    return code == STORE_OK ? terminate (self, self->out->instance.owner, error) : code;
}

static store_code_t adopt_through_locks (taker_t *self, bool *taken, store_error_t *error)
{
    store_code_t code = STORE_ERROR_BUSY;
    for (int i = 0; code == STORE_ERROR_BUSY && i < TRIES; i++) {
        code = adopt (self, taken, error);
        if (code == STORE_ERROR_BUSY && terminate_old (self, error) != STORE_OK)
            return error->code;
        if (code == STORE_ERROR_BUSY && pause_look (self->stop_fd, 0, error) != STORE_OK)
            return error->code;
    }
    return code != STORE_ERROR_BUSY
               ? code
               : store_fail (error, STORE_ERROR_BUSY, "%s: locks of another session stay taken",
                             self->store->target.where);
}

/* A full disk here is no reason to leave the tasks to nobody: the next start notes it. */
static void note_owned (const taker_t *self)
{
    store_error_t ignored;
    pg_instance_note_owned (self->store->options.directory, &self->link, &ignored);
}

/* One look, and what follows from it. */
static store_code_t try_once (taker_t *self, bool *taken, store_error_t *error)
{
    const int64_t wait_ms_max = self->link.wait_ms_max;
    self->link.wait_ms_max = LOOK_ANSWER_MS;
    store_code_t code = look (self, error);
    self->link.wait_ms_max = wait_ms_max;
    if (code != STORE_OK)
        return code;
    switch (judge (self)) {
    case VERDICT_REFUSE: return refuse (self, error);
    case VERDICT_TAKE: return adopt_through_locks (self, taken, error);
    case VERDICT_WAIT: tell_waiting (self); break;
    }
    return STORE_OK;
}

void pg_own_link_name (const pg_target_t *target, char out[PG_LINK_NAME_MAX + 1])
{
    static const char PREFIX[] = "adoption ";
    enum { SUM_DIGITS = 8, ROOM = PG_LINK_NAME_MAX - (sizeof (PREFIX) - 1) };
    size_t length = strlen (target->schema);
    if (length <= ROOM)
        snprintf (out, PG_LINK_NAME_MAX + 1, "%s%s", PREFIX, target->schema);
    else
        snprintf (out, PG_LINK_NAME_MAX + 1, "%s%.*s~%0*x", PREFIX, ROOM - SUM_DIGITS - 1,
                  target->schema, SUM_DIGITS, (uint32_t) XXH3_64bits (target->schema, length));
}

/* Behind a commit in doubt: whoever begins anew would not know any more who was taken over from.
 * What that session waited for is told. */
static store_code_t open_again (taker_t *self, store_error_t *error)
{
    pg_store_say (self->store, DATABASE_WAITS, "the take-over waits for its commit");
    store_code_t code = pg_link_open (&self->link, error);
    beat_watch_missed (&self->watch); /* it may be another server by now */
    self->looked = false;
    pg_store_waits (self->store, &self->link);
    return code;
}

store_code_t pg_own_take (pg_store_t *store, int stop_fd, pg_owned_t *out, store_error_t *error)
{
    taker_t self = {.store = store, .out = out, .stop_fd = stop_fd};
    char name[PG_LINK_NAME_MAX + 1];
    bool taken = false;
    *out = (pg_owned_t){.epoch = 0};
    store_code_t code = pg_instance_read (&out->instance, store->options.directory, error);
    if (code != STORE_OK)
        return code;
    pg_instance_tag (out->instance.owner, store->target.tag);
    beat_watch_init (&self.watch, PG_LEASE_MS);
    pg_own_link_name (&store->target, name);
    pg_link_init (&self.link, &store->target, name, TEXTS, STATEMENTS);
    self.link.wait_ms_max = LOOK_WAIT_MS * TRIES;
    self.link.ends_others = true;
    code = pg_link_open (&self.link, error);
    pg_store_waits (store, &self.link);
    while (code == STORE_OK && !taken) {
        code = try_once (&self, &taken, error);
        if (code == STORE_ERROR_BUSY && store->database.standby) {
            beat_watch_missed (&self.watch); /* whatever holds those locks may hold beats, too */
            code = STORE_OK;
        }
        if (code == STORE_ERROR_AWAY && self.doubted)
            code = open_again (&self, error);
        if (code == STORE_OK && !taken)
            code = pause_look (stop_fd, look_pause_ms (&self), error);
    }
    if (code == STORE_OK)
        note_owned (&self);
    pg_link_close (&self.link);
    return code;
}

store_code_t pg_own_release (pg_store_t *store, uint64_t epoch, store_error_t *error)
{
    pg_link_t link;
    pg_params_t params;
    pg_link_init (&link, &store->target, "end", TEXTS, STATEMENTS);
    link.wait_ms_max = LOOK_WAIT_MS;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) epoch);
    pg_param_text (&params, store->owner);
    store_code_t code = pg_link_open (&link, error);
    if (code == STORE_OK)
        code = pg_link_run (&link, RELEASE, &params, NULL, error);
    pg_link_close (&link);
    return code;
}
