/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "store/journal/form.h"
#include "store/journal/journal_codec.h"
#include "store/postgresql/pg_schema.h"
#include "timestamp.h"

enum {
    AGAIN_MS = 100, /* between two tries to reach the database, or after it gave a commit up */
    AGAIN_MS_MAX = 1000
};

enum { APPEND, BEAT, LOCK, NEWEST, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    /* The lock makes no new version of the row, and conflicts with an adoption's update: who does
     * not find his epoch there changes nothing. */
    [APPEND] = "WITH own AS (SELECT 1 FROM fence WHERE shard = $1::int2 AND part = 'c'"
               " AND epoch = $2::int8 FOR UPDATE)"
               " INSERT INTO journal SELECT $1::int2, $2::int8, $3::int8, $4::bytea FROM own",
    [BEAT] = "UPDATE shard SET beat = beat + 1 WHERE shard = $1::int2 AND epoch = $2::int8"
             " AND owner = $3::text",
    [LOCK] = "SELECT 1 FROM fence WHERE shard = $1::int2 AND part = 'c' AND epoch = $2::int8"
             " FOR UPDATE",
    [NEWEST] = PG_WHOLE_SQL,
};

struct pg_commit {
    pg_store_t *store;
    pg_link_t link;
    uint64_t generation;
    uint64_t epoch;
    bytes_t body;
    atomic_int_fast64_t since; /* mono: the commit that is being made began; 0: there is none */
};

pg_commit_t *pg_commit_new (pg_store_t *store)
{
    pg_commit_t *self = memory_zero (1, sizeof (*self));
    self->store = store;
    pg_link_init (&self->link, &store->target, "commits", TEXTS, STATEMENTS);
    self->link.judges = true;
    return self;
}

void pg_commit_free (pg_commit_t **self_p)
{
    pg_commit_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pg_link_close (&self->link);
    bytes_free (&self->body);
    free (self);
}

int64_t pg_commit_waits_ms (const pg_commit_t *self)
{
    int64_t since = atomic_load (&self->since);
    return since == 0 ? 0 : clock_ms (CLOCK_MONOTONIC) - since;
}

static void pause_ms (int64_t ms)
{
    nanosleep (&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void put_epoch (const pg_commit_t *self, pg_params_t *params)
{
    pg_params_clear (params);
    pg_param_int2 (params, PG_SHARD);
    pg_param_int8 (params, (int64_t) self->epoch);
}

store_code_t pg_commit_fenced (const pg_store_t *store, uint64_t epoch, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_FENCED, "%s: another broker took over from epoch %llu",
                       store->target.where, (unsigned long long) epoch);
}

/* As well as it goes: it ends in any case. An epoch of the same number may be another owner's. */
static void mark_cut (pg_link_t *link, const pg_store_t *store)
{
    char text[128 + 2 * PG_OWNER_TEXT_SIZE];
    store_error_t ignored;
    pg_link_rollback (link);
    if (!pg_link_is_open (link))
        return;
    char *owner = PQescapeLiteral (link->db, store->owner, strlen (store->owner));
    if (owner == NULL)
        return;
    snprintf (text, sizeof (text),
              "UPDATE shard SET timeline = %d WHERE shard = %d AND epoch = %" PRIu64
              " AND owner = %s",
              PG_TIMELINE_CUT, PG_SHARD, store->epoch, owner);
    PQfreemem (owner);
    pg_link_do (link, text, &ignored);
}

store_code_t pg_commit_cut (pg_link_t *link, const pg_store_t *store, uint64_t epoch, uint64_t last,
                            uint64_t newest, store_error_t *error)
{
    mark_cut (link, store);
    return store_fail (error, STORE_ERROR_CUT,
                       "%s: commit %llu of epoch %llu was acknowledged, and the newest that is "
                       "there is %llu: the database lost it, or another one was restored",
                       store->target.where, (unsigned long long) last, (unsigned long long) epoch,
                       (unsigned long long) newest);
}

static store_code_t changes (const pg_store_t *store, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_BUSY, "%s: what is known has changed meanwhile",
                       store->target.where);
}

static store_code_t body_cut (pg_link_t *link, const pg_store_t *store, store_error_t *error)
{
    mark_cut (link, store);
    return store_fail (
        error, STORE_ERROR_CUT,
        "%s: that a large body is there was acknowledged, and is lost: the database lost "
        "it, or another one was restored",
        store->target.where);
}

/* What was written back is in memory no more, so reads would be answered without it. What is there
 * may be ahead of what is known, as far as a write-back under way has come. */
store_code_t pg_commit_judge (pg_link_t *link, pg_store_t *store, uint64_t epoch,
                              const pg_whole_t *known, const pg_there_t *there,
                              store_error_t *error)
{
    if (there->last < known->last)
        return pg_commit_cut (link, store, epoch, known->last, there->last, error);
    if (!there->body && pg_whole_known (store).bodies != known->bodies)
        return changes (store, error);
    if (!there->body)
        return body_cut (link, store, error);
    if (there->written >= known->written)
        return STORE_OK;
    if (!pg_whole_end (store, known)) /* a commit, perhaps, which the server before has yet */
        return changes (store, error);
    return store_fail (error, STORE_ERROR_IO,
                       "%s: no commit is lost, but rows are that were written back: commits up to "
                       "%llu of epoch %llu are in the journal yet, and a start brings them back",
                       store->target.where, (unsigned long long) known->written - 1,
                       (unsigned long long) epoch);
}

static store_code_t fenced (const pg_commit_t *self, store_error_t *error)
{
    return pg_commit_fenced (self->store, self->epoch, error);
}

/* A commit in doubt. */

/* What is written here makes this more than a look: once our own later commit is acknowledged, so
 * is all that stands before it in the server's log, on a standby, too. */
static store_code_t beat_and_lock (pg_commit_t *self, store_error_t *error)
{
    uint64_t rows = 0;
    pg_params_t params;
    put_epoch (self, &params);
    pg_param_text (&params, self->store->owner);
    store_code_t code = pg_link_do (&self->link, "SET LOCAL lock_timeout = '2s'", error);
    if (code == STORE_OK)
        code = pg_link_change (&self->link, BEAT, &params, &rows, error);
    if (code == STORE_OK && rows == 0)
        return fenced (self, error);
    put_epoch (self, &params);
    if (code == STORE_OK)
        code = pg_link_change (&self->link, LOCK, &params, &rows, error);
    if (code == STORE_OK && rows == 0)
        return fenced (self, error);
    return code;
}

/* No session of ours is left that could land anything yet. One that stands still before its lock
 * ends when it goes on, and is waited for. */
static store_code_t be_alone (pg_commit_t *self, store_error_t *error)
{
    size_t others = 0;
    store_code_t code =
        pg_link_is_open (&self->link) ? STORE_OK : pg_link_open (&self->link, error);
    if (code == STORE_OK)
        code = pg_link_end_others (&self->link, &others, error);
    if (code == STORE_OK && others > 0)
        return store_fail (error, STORE_ERROR_BUSY, "%s: the session of a lost connection lives",
                           self->store->target.where);
    return code;
}

/* One try: on a new connection, or on one that is the only one. *known: what was acknowledged when
 * this server was asked, not when the doubt began: more may have been written back meanwhile. */
static store_code_t ask_newest (pg_commit_t *self, bool alone, pg_whole_t *known, pg_there_t *there,
                                store_error_t *error)
{
    store_code_t code = alone ? be_alone (self, error) : pg_link_open (&self->link, error);
    if (code == STORE_OK)
        code = pg_link_begin (&self->link, error);
    if (code == STORE_OK)
        code = beat_and_lock (self, error);
    *known = pg_whole_known (self->store);
    if (code ==
        STORE_OK) /* a statement behind the lock: an earlier one would see an earlier state */
        code = pg_whole_look (&self->link, NEWEST, self->epoch, known, there, error);
    if (code == STORE_OK)
        code = pg_link_commit (&self->link, error);
    if (code == STORE_OK)
        return STORE_OK;
    pg_link_rollback (&self->link);
    store_error_t ignored;
    if (code == STORE_ERROR_BUSY) /* the session before this one still holds what is locked */
        pg_link_end_others (&self->link, NULL, &ignored);
    return code;
}

/* What the server gave up is out of reach for who does not wait. */
static store_code_t give_up (store_code_t code, store_error_t *error)
{
    return code == STORE_ERROR_BUSY ? (error->code = STORE_ERROR_AWAY) : code;
}

/* Waits until the database answers, however long that takes. */
static store_code_t find_newest (pg_commit_t *self, bool alone, pg_whole_t *known,
                                 pg_there_t *there, store_error_t *error)
{
    store_code_t code;
    int64_t wait_ms = AGAIN_MS;
    while (true) {
        code = ask_newest (self, alone, known, there, error);
        if (code != STORE_ERROR_AWAY && code != STORE_ERROR_BUSY && code != STORE_ERROR_FULL)
            return code;
        if (code == STORE_ERROR_AWAY)
            pg_store_lost (self->store, error);
        if (atomic_load (&self->store->impatient))
            return give_up (code, error);
        pause_ms (wait_ms);
        wait_ms = wait_ms * 2 > AGAIN_MS_MAX ? AGAIN_MS_MAX : wait_ms * 2;
    }
}

/* The newest that is there, on a server that has all that was acknowledged. Nothing is committed
 * meanwhile, so the server before can acknowledge what waits to be written back, and no more. */
static store_code_t find_whole (pg_commit_t *self, bool alone, pg_whole_t *known, pg_there_t *there,
                                store_error_t *error)
{
    while (true) {
        store_code_t code = find_newest (self, alone, known, there, error);
        if (code != STORE_OK)
            return code;
        code = pg_commit_judge (&self->link, self->store, self->epoch, known, there, error);
        bool found = code == STORE_OK && pg_whole_found (self->store, &self->link, known);
        bool fails = code != STORE_OK && code != STORE_ERROR_BUSY;
        if (found || fails || atomic_load (&self->store->impatient))
            return found ? STORE_OK
                         : give_up (code != STORE_OK ? code : changes (self->store, error), error);
        pause_ms (AGAIN_MS);
    }
}

/* What became of the commit that ends with this batch. One that had not landed may do so yet, and
 * never will where it says `never`. */
static store_code_t settle (pg_commit_t *self, uint64_t batch, bool never, bool *landed,
                            store_error_t *error)
{
    char text[128];
    pg_whole_t known;
    pg_there_t there;
    store_code_t code = find_whole (self, never, &known, &there, error);
    if (code != STORE_OK)
        return code;
    *landed = there.last == batch;
    if (!*landed && there.last != known.last)
        return pg_commit_cut (&self->link, self->store, self->epoch, known.last, there.last, error);
    if (batch != 0 && !never)
        atomic_fetch_add (&self->store->unknown_commits, 1);
    snprintf (text, sizeof (text), "commit %llu %s", (unsigned long long) batch,
              *landed ? "had landed"
              : never ? "never landed, and finds no space"
                      : "had not landed, and is made again");
    pg_store_found (self->store, batch == 0 ? NULL : text);
    return STORE_OK;
}

/* Commits. */

store_code_t pg_commit_start (pg_commit_t *self, uint64_t generation, uint64_t epoch,
                              store_error_t *error)
{
    bool none;
    self->generation = generation;
    self->epoch = epoch;
    return settle (self, 0, false, &none, error);
}

static void pack (pg_commit_t *self, batch_t *const *batches, size_t count)
{
    uint64_t previous = pg_whole_known (self->store).last;
    bytes_t *body = &self->body;
    bytes_clear (body);
    for (size_t i = 0; i < count; i++) {
        const journal_head_t head = {self->generation, self->epoch, previous};
        uint8_t length[FORM_LENGTH_BYTES] = {0};
        size_t start = body->length;
        bytes_append (body, length, sizeof (length));
        journal_encode (body, &head, batches[i]);
        journal_seal (body, start + sizeof (length));
        if (body->failed)
            abort (); /* as the journal does: half a commit is none */
        form_put_length (body->data + start, (uint32_t) (body->length - start - sizeof (length)));
        previous = batches[i]->no;
    }
}

static store_code_t insert (pg_commit_t *self, uint64_t batch, store_error_t *error)
{
    uint64_t rows = 0;
    pg_params_t params;
    put_epoch (self, &params);
    pg_param_int8 (&params, (int64_t) batch);
    pg_param_bytes (&params, self->body.data, self->body.length);
    store_code_t code = pg_link_change (&self->link, APPEND, &params, &rows, error);
    return code == STORE_OK && rows == 0 ? fenced (self, error) : code;
}

/* Acknowledged, and by a server that is not over. */
static store_code_t insert_or_know (pg_commit_t *self, uint64_t batch, bool landed,
                                    store_error_t *error)
{
    store_code_t code = landed ? STORE_OK : insert (self, batch, error);
    return code == STORE_OK ? pg_whole_add (self->store, &self->link, batch, 0, error) : code;
}

/* Where a commit is made again that finds no space, the one in doubt may find some yet: "nothing of
 * it is kept" is no answer before that one can never land. */
static store_code_t insert_until_known (pg_commit_t *self, uint64_t batch, store_error_t *error)
{
    bool landed = false;
    bool doubted = false;
    while (true) {
        store_code_t code = insert_or_know (self, batch, landed, error);
        if (code == STORE_ERROR_BUSY) { /* nothing of it is kept */
            pause_ms (AGAIN_MS);
            continue;
        }
        bool full = code == STORE_ERROR_FULL && doubted;
        bool doubt = code == STORE_ERROR_AWAY || (code != STORE_OK && self->link.conflict);
        if (!doubt && !full)
            return code;
        if (code == STORE_ERROR_AWAY)
            pg_store_lost (self->store, error);
        const store_error_t met = *error;
        code = settle (self, batch, full, &landed, error);
        if (code != STORE_OK)
            return code;
        if (full && !landed) {
            *error = met;
            return met.code;
        }
        doubted = true;
    }
}

store_code_t pg_commit_append (pg_commit_t *self, batch_t *const *batches, size_t count,
                               store_error_t *error)
{
    uint64_t batch = batches[count - 1]->no;
    pack (self, batches, count);
    atomic_store (&self->since, clock_ms (CLOCK_MONOTONIC));
    store_code_t code = insert_until_known (self, batch, error);
    atomic_store (&self->since, 0);
    if (self->body.capacity > STORE_COMMIT_BYTES_MAX)
        bytes_free (&self->body);
    return code;
}

/* Taking apart. */

store_code_t pg_commit_unpack (const uint8_t *body, size_t body_bytes, size_t *place,
                               journal_head_t *head, batch_t **out, store_error_t *error)
{
    bool newer = false;
    *out = NULL;
    if (*place == body_bytes)
        return STORE_OK;
    size_t room = body_bytes - *place;
    uint32_t length = room < FORM_LENGTH_BYTES ? UINT32_MAX : form_get_length (body + *place);
    if (room < FORM_LENGTH_BYTES || length > room - FORM_LENGTH_BYTES)
        return store_fail (error, STORE_ERROR_CORRUPT, "a commit in the journal ends too early");
    *out = journal_decode (body + *place + FORM_LENGTH_BYTES, length, head, &newer);
    *place += FORM_LENGTH_BYTES + length;
    if (*out != NULL)
        return STORE_OK;
    return newer ? store_fail (error, STORE_ERROR_NEWER,
                               "a commit in the journal was written by a newer version")
                 : store_fail (error, STORE_ERROR_CORRUPT, "a commit in the journal is damaged");
}
