/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_blobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_whole.h"
#include "timestamp.h"

enum {
    WAIT_MS = 5000,      /* for an answer, then the link is given up */
    STATEMENT_MS = 4000, /* of the server, which gives up first and keeps the link */
    LOCK_MS = 500,       /* … that somebody holds on a whole table, … */
    REST_MS = 2000,      /* … and behind it nothing is asked: files are read by the same thread */
    SAY_MS = 10000,      /* between two words about what failed */
    SWEEP_PIECES = VAULT_SWEEP_BYTES / VAULT_PIECE_BYTES
};

enum {
    COUNT,
    LOOK,
    KEEP,
    BEGIN,
    PUT,
    FENCE,
    HIDE,
    SHOW,
    READ,
    LACKS,
    LIST,
    REMOVE,
    FIND_TORN,
    SWEEP,
    FORGET,
    STATEMENTS
};

/* No row: another owner has begun a later epoch. It comes to the lock before it changes anything,
 * and whoever takes the data over waits for it. */
#define FENCE_SQL                                                                                  \
    "SELECT 1 FROM fence WHERE shard = $1::int2 AND part = 'b' AND epoch = $2::int8 FOR UPDATE"
#define OWN "WITH own AS MATERIALIZED (" FENCE_SQL ")"
#define NOW_MS "(extract (epoch FROM clock_timestamp ()) * 1000)::int8"
#define PIECE "196608" /* VAULT_PIECE_BYTES */
_Static_assert((int) VAULT_PIECE_BYTES == 196608, "as the statements have it");

/* What has no name is found by an order that no other index has (as in pg_readers_sql.c). */
static const char *const TEXTS[STATEMENTS] = {
    [COUNT] = "SELECT count (*), coalesce (sum (bytes), 0)::int8 FROM blob"
              " WHERE shard = $1::int2 AND whole",
    [LOOK] = "SELECT b.bytes, (SELECT count (*) FROM blob_chunk c WHERE c.blob = b.id"
             " AND c.n >= $3::int4 AND c.n < $4::int4 AND octet_length (c.bytes)"
             " = least (" PIECE ", b.bytes - c.n::int8 * " PIECE ")"
             " AND sha256 (c.bytes) = c.sum)"
             " FROM blob b WHERE b.shard = $1::int2 AND b.hash = $2::bytea AND b.whole",
    [KEEP] = OWN ", done AS (UPDATE blob b SET touched = greatest (b.touched, " NOW_MS ") FROM own"
                 " WHERE b.shard = $1::int2 AND b.hash = $3::bytea AND b.whole RETURNING touched)"
                 " SELECT (SELECT touched FROM done) FROM own",
    [BEGIN] = OWN " INSERT INTO blob (shard, hash, bytes, touched, whole)"
                  " SELECT $1::int2, $3::bytea, $4::int8, " NOW_MS ", false FROM own RETURNING id",
    /* A number counts with its hash alone: another server may lack what was begun under it, and
     * give it to another blob. */
    [PUT] = OWN ", place AS MATERIALIZED (SELECT b.id FROM blob b, own WHERE b.id = $3::int8"
                " AND b.shard = $1::int2 AND b.hash = $6::bytea AND NOT b.whole"
                " FOR KEY SHARE OF b),"
                " done AS (INSERT INTO blob_chunk (blob, n, bytes, sum)"
                " SELECT p.id, c.n, c.bytes, sha256 (c.bytes) FROM place p,"
                " unnest ($4::int4[], $5::bytea[]) AS c (n, bytes) ON CONFLICT DO NOTHING)"
                " SELECT (SELECT count (*) FROM place) FROM own",
    [FENCE] = FENCE_SQL,
    [HIDE] = "UPDATE blob SET whole = false"
             " WHERE shard = $1::int2 AND hash = $2::bytea AND whole RETURNING bytes, touched",
    /* $4: when the one was touched that was hidden; never before that (pg_whole.h). */
    [SHOW] = "UPDATE blob b SET whole = true, touched = greatest ($4::int8, " NOW_MS ")"
             " WHERE b.id = $3::int8 AND b.shard = $1::int2 AND b.hash = $2::bytea AND NOT b.whole"
             " AND b.bytes = (SELECT coalesce (sum (octet_length (c.bytes)), 0) FROM blob_chunk c"
             " WHERE c.blob = b.id) RETURNING b.bytes, b.touched",
    [READ] = "SELECT b.bytes, c.n, c.bytes, sha256 (c.bytes) = c.sum FROM blob b"
             " LEFT JOIN LATERAL (SELECT n, bytes, sum FROM blob_chunk WHERE blob = b.id"
             " AND n >= $3::int4 AND n <= $4::int4 ORDER BY n) c ON true"
             " WHERE b.shard = $1::int2 AND b.hash = $2::bytea AND b.whole",
    /* As a value, and not as a join, which would walk all blobs for each. */
    [LACKS] = "SELECT a.n FROM unnest ($2::int4[], $3::bytea[]) AS a (n, hash) WHERE"
              " (SELECT b.id FROM blob b WHERE b.shard = $1::int2 AND b.hash = a.hash AND b.whole)"
              " IS NULL",
    [LIST] = "SELECT hash, touched, touched <= " NOW_MS " - $3::int8 FROM blob"
             " WHERE shard = $1::int2 AND whole AND hash > $2::bytea ORDER BY hash LIMIT $4::int4",
    [REMOVE] = OWN ", done AS (UPDATE blob b SET whole = false FROM own WHERE b.shard = $1::int2"
                   " AND b.hash = $3::bytea AND b.whole AND b.touched = $4::int8 RETURNING bytes)"
                   " SELECT (SELECT bytes FROM done) FROM own",
    [FIND_TORN] = "SELECT id, bytes FROM blob WHERE shard = $1::int2 AND NOT whole"
                  " AND id <> ALL ($2::int8[]) ORDER BY id DESC NULLS LAST LIMIT 1",
    /* The end of a lost connection may be given its name just now: the row is looked at again, as
     * it is behind the lock. */
    [SWEEP] = OWN ", torn AS MATERIALIZED (SELECT b.id FROM blob b, own WHERE b.id = $3::int8"
                  " AND NOT b.whole FOR UPDATE OF b),"
                  " done AS (DELETE FROM blob_chunk c USING torn WHERE c.blob = $3::int8"
                  " AND c.n >= $4::int4 AND c.n < $5::int4) SELECT 1 FROM own",
    [FORGET] = OWN ", done AS (DELETE FROM blob b USING own WHERE b.id = $3::int8 AND NOT b.whole"
                   " AND NOT EXISTS (SELECT 1 FROM blob_chunk c WHERE c.blob = $3::int8))"
                   " SELECT 1 FROM own",
};

struct pg_blobs {
    vault_t vault;
    pg_store_t *store;
    pg_link_t link;
    vault_stats_t stats;
    pg_params_t params;
    pg_array_t numbers;
    pg_array_t pieces;
    /* What is being swept, and up to where; 0: nothing. */
    int64_t torn;
    int32_t torn_at;
    int32_t torn_end;
    int64_t said_ms;  /* mono */
    int64_t rests_ms; /* mono; until then nothing is asked */
};

/* What an error is to who asked. Where the database stands is for the log alone. */

static void say (pg_blobs_t *self, const store_error_t *error)
{
    int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    if (self->said_ms != 0 && now_ms - self->said_ms < SAY_MS)
        return;
    self->said_ms = now_ms;
    pg_store_say (self->store, DATABASE_BLOBS, error->text);
}

static tmq_code_t answer_of (pg_blobs_t *self, store_code_t code, vault_word_t *word)
{
    tmq_code_t answer = TMQ_INTERNAL;
    const char *text = "the database refused it";
    const bool locked = code == STORE_ERROR_BUSY && self->link.locked;
    pg_link_rollback (&self->link);
    if (locked)
        self->rests_ms = clock_ms (CLOCK_MONOTONIC) + REST_MS;
    if (code == STORE_ERROR_AWAY || code == STORE_ERROR_BUSY || code == STORE_ERROR_FENCED) {
        answer = TMQ_UNAVAILABLE;
        text = "the database is out of reach";
    } else if (code == STORE_ERROR_FULL) {
        answer = TMQ_STORE_FULL;
        text = "the database has no room for it";
    } else if (code == STORE_ERROR_CORRUPT) {
        answer = TMQ_NO_BLOB;
        text = "is damaged in the database";
    }
    snprintf (word->text, sizeof (word->text), "%s", text);
    return answer;
}

/* … and somebody waits for a body. */
static tmq_code_t fail (pg_blobs_t *self, store_code_t code, const store_error_t *error,
                        vault_word_t *word)
{
    if (!pg_store_is_away (self->store) && !pg_link_is_missing (&self->store->target, error))
        say (self, error);
    return answer_of (self, code, word);
}

/* … and nobody waits: that the database is out of reach is told by who needs it. */
static tmq_code_t fail_upkeep (pg_blobs_t *self, store_code_t code, const store_error_t *error,
                               vault_word_t *word)
{
    return code == STORE_ERROR_AWAY ? answer_of (self, code, word) : fail (self, code, error, word);
}

/* The owner after this one has begun: commits find that, too, and end the process. */
static store_code_t fenced (const pg_blobs_t *self, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_FENCED, "%s: another broker owns the data",
                       self->store->target.where);
}

/* The link. */

static pg_params_t *params_of_shard (pg_blobs_t *self)
{
    pg_params_clear (&self->params);
    pg_param_int2 (&self->params, PG_SHARD);
    return &self->params;
}

static pg_params_t *params_of_own (pg_blobs_t *self)
{
    pg_params_t *params = params_of_shard (self);
    pg_param_int8 (params, (int64_t) self->store->epoch);
    return params;
}

static store_code_t count (pg_blobs_t *self, store_error_t *error)
{
    PGresult *result;
    store_code_t code = pg_link_run (&self->link, COUNT, params_of_shard (self), &result, error);
    if (code == STORE_OK)
        self->stats =
            (vault_stats_t){(uint64_t) pg_int8 (result, 0, 0), (uint64_t) pg_int8 (result, 0, 1)};
    PQclear (result);
    return code;
}

static store_code_t begin_session (pg_blobs_t *self, store_error_t *error)
{
    char text[64];
    snprintf (text, sizeof (text), "SET statement_timeout = %d; SET lock_timeout = %d",
              (int) STATEMENT_MS, (int) LOCK_MS);
    store_code_t code = pg_link_do (&self->link, text, error);
    return code == STORE_OK ? count (self, error) : code;
}

/* One that stood idle may have been closed by the other end, and nothing was asked on it. */
static bool is_open (pg_blobs_t *self)
{
    if (pg_link_is_open (&self->link) && PQconsumeInput (self->link.db) == 0)
        pg_link_close (&self->link);
    return pg_link_is_open (&self->link);
}

static store_code_t connect_link (pg_blobs_t *self, store_error_t *error)
{
    if (pg_store_is_away (self->store) || clock_ms (CLOCK_MONOTONIC) < self->rests_ms)
        return pg_link_missing (&self->store->target, error);
    if (is_open (self))
        return STORE_OK;
    store_code_t code = pg_link_open (&self->link, error);
    if (code == STORE_ERROR_AWAY)
        pg_store_lost (self->store, error);
    if (code == STORE_OK)
        code = begin_session (self, error);
    if (code != STORE_OK)
        pg_link_close (&self->link);
    return code;
}

/* One statement, with the parameters as they are. */
static store_code_t run (pg_blobs_t *self, size_t statement, PGresult **out, store_error_t *error)
{
    return pg_link_run (&self->link, statement, &self->params, out, error);
}

/* One that changes something: its row says that this is still the owner. */
static store_code_t run_own (pg_blobs_t *self, size_t statement, PGresult **out,
                             store_error_t *error)
{
    store_code_t code = run (self, statement, out, error);
    if (code == STORE_OK && PQntuples (*out) == 0) {
        PQclear (*out);
        *out = NULL;
        code = fenced (self, error);
    }
    return code;
}

static int32_t pieces_of (uint64_t bytes)
{
    return (int32_t) ((bytes + VAULT_PIECE_BYTES - 1) / VAULT_PIECE_BYTES);
}

/* Putting. */

static store_code_t touch (pg_blobs_t *self, const uint8_t *hash, bool *good, store_error_t *error)
{
    PGresult *result;
    pg_param_bytes (params_of_own (self), hash, TMQ_BLOB_HASH_BYTES);
    store_code_t code = run_own (self, KEEP, &result, error);
    *good = code == STORE_OK && !pg_is_null (result, 0, 0);
    if (*good)
        code = pg_whole_add_body (self->store, &self->link, hash, pg_int8 (result, 0, 0), error);
    PQclear (result);
    return code;
}

static tmq_code_t vault_look (void *context, const uint8_t *hash, uint64_t bytes, uint64_t *at,
                              bool *good, vault_word_t *word)
{
    pg_blobs_t *self = context;
    PGresult *result = NULL;
    store_error_t error;
    uint64_t until = bytes - *at < VAULT_LOOK_BYTES ? bytes : *at + VAULT_LOOK_BYTES;
    int32_t first = pieces_of (*at);
    int32_t end = pieces_of (until);
    *good = false;
    store_code_t code = connect_link (self, &error);
    pg_params_t *params = params_of_shard (self);
    pg_param_bytes (params, hash, TMQ_BLOB_HASH_BYTES);
    pg_param_int4 (params, first);
    pg_param_int4 (params, end);
    if (code == STORE_OK)
        code = run (self, LOOK, &result, &error);
    if (code == STORE_OK)
        *good = PQntuples (result) == 1 && (uint64_t) pg_int8 (result, 0, 0) == bytes &&
                pg_int8 (result, 0, 1) == end - first;
    PQclear (result);
    if (code == STORE_OK && *good && until == bytes)
        code = touch (self, hash, good, &error);
    if (code == STORE_ERROR_CORRUPT) { /* the server says so of a page: it is put anew */
        pg_link_rollback (&self->link);
        return TMQ_OK;
    }
    if (code != STORE_OK)
        return fail (self, code, &error, word);
    *at = until;
    return TMQ_OK;
}

static tmq_code_t vault_begin (void *context, const uint8_t *hash, uint64_t bytes, int64_t *number,
                               vault_word_t *word)
{
    pg_blobs_t *self = context;
    PGresult *result = NULL;
    store_error_t error;
    store_code_t code = connect_link (self, &error);
    pg_params_t *params = params_of_own (self);
    pg_param_bytes (params, hash, TMQ_BLOB_HASH_BYTES);
    pg_param_int8 (params, (int64_t) bytes);
    if (code == STORE_OK)
        code = run_own (self, BEGIN, &result, &error);
    *number = code == STORE_OK ? pg_int8 (result, 0, 0) : 0;
    PQclear (result);
    return code == STORE_OK ? TMQ_OK : fail (self, code, &error, word);
}

/* As the arrays of PUT. */
static void put_pieces (pg_array_t *numbers, pg_array_t *pieces, uint64_t offset,
                        const uint8_t *data, size_t length)
{
    int32_t n = pieces_of (offset);
    pg_array_begin (numbers, PG_INT4);
    pg_array_begin (pieces, PG_BYTEA);
    for (size_t at = 0; at < length; at += VAULT_PIECE_BYTES, n++) {
        size_t some = length - at < VAULT_PIECE_BYTES ? length - at : VAULT_PIECE_BYTES;
        pg_put_int4 (&numbers->bytes, n);
        pg_put_bytes (&pieces->bytes, data + at, some);
        numbers->count++;
        pieces->count++;
    }
}

static tmq_code_t vault_put (void *context, int64_t number, const uint8_t *hash, uint64_t offset,
                             const uint8_t *data, size_t length, bool *there, vault_word_t *word)
{
    pg_blobs_t *self = context;
    PGresult *result = NULL;
    store_error_t error;
    put_pieces (&self->numbers, &self->pieces, offset, data, length);
    store_code_t code = connect_link (self, &error);
    pg_params_t *params = params_of_own (self);
    pg_param_int8 (params, number);
    pg_param_array (params, &self->numbers);
    pg_param_array (params, &self->pieces);
    pg_param_bytes (params, hash, TMQ_BLOB_HASH_BYTES);
    if (code == STORE_OK)
        code = run_own (self, PUT, &result, &error);
    *there = code == STORE_OK && pg_int8 (result, 0, 0) == 1;
    PQclear (result);
    return code == STORE_OK ? TMQ_OK : fail (self, code, &error, word);
}

/* Those that a statement of the end has changed. */
typedef struct named {
    uint64_t blobs;
    uint64_t bytes;
    int64_t touched; /* the last of them */
} named_t;

static store_code_t change_name (pg_blobs_t *self, size_t statement, const uint8_t *hash,
                                 int64_t number, int64_t before, named_t *changed,
                                 store_error_t *error)
{
    PGresult *result = NULL;
    pg_params_t *params = params_of_shard (self);
    pg_param_bytes (params, hash, TMQ_BLOB_HASH_BYTES);
    if (statement == SHOW) {
        pg_param_int8 (params, number);
        pg_param_int8 (params, before);
    }
    store_code_t code = run (self, statement, &result, error);
    *changed = (named_t){0};
    for (int row = 0; code == STORE_OK && row < PQntuples (result); row++) {
        changed->blobs++;
        changed->bytes += (uint64_t) pg_int8 (result, row, 0);
        changed->touched = pg_int8 (result, row, 1);
    }
    PQclear (result);
    return code;
}

static store_code_t take_name (pg_blobs_t *self, int64_t number, const uint8_t *hash, bool *done,
                               store_error_t *error)
{
    PGresult *result = NULL;
    named_t hidden;
    named_t shown = {0};
    store_code_t code = pg_link_begin (&self->link, error);
    params_of_own (self);
    if (code == STORE_OK)
        code = run_own (self, FENCE, &result, error);
    PQclear (result);
    if (code == STORE_OK)
        code = change_name (self, HIDE, hash, 0, 0, &hidden, error);
    if (code == STORE_OK)
        code = change_name (self, SHOW, hash, number, hidden.touched, &shown, error);
    if (code == STORE_OK && shown.blobs != 1) {
        pg_link_rollback (&self->link);
        return STORE_OK;
    }
    if (code == STORE_OK)
        code = pg_link_commit (&self->link, error);
    if (code == STORE_OK)
        code = pg_whole_add_body (self->store, &self->link, hash, shown.touched, error);
    if (code != STORE_OK)
        return code;
    *done = true;
    self->stats.blobs += 1 - hidden.blobs;
    self->stats.bytes += shown.bytes - hidden.bytes;
    return STORE_OK;
}

static tmq_code_t vault_end (void *context, int64_t number, const uint8_t *hash, bool *done,
                             vault_word_t *word)
{
    pg_blobs_t *self = context;
    store_error_t error;
    *done = false;
    store_code_t code = connect_link (self, &error);
    if (code == STORE_OK)
        code = take_name (self, number, hash, done, &error);
    return code == STORE_OK ? TMQ_OK : fail (self, code, &error, word);
}

/* Reading. */

/* Copies what is wanted of the pieces. False: some is missing, or is not what was put. */
static bool take_pieces (const PGresult *result, uint64_t bytes, uint64_t offset, uint8_t *to,
                         size_t wanted)
{
    size_t got = 0;
    if ((uint64_t) pg_int8 (result, 0, 0) != bytes)
        return false;
    for (int row = 0; row < PQntuples (result) && got < wanted; row++) {
        size_t length;
        const uint8_t *piece = pg_bytes (result, row, 2, &length);
        uint64_t at = (uint64_t) pg_int4 (result, row, 1) * VAULT_PIECE_BYTES;
        uint64_t from = offset + got;
        if (pg_is_null (result, row, 1) || !pg_bool (result, row, 3) || at > from ||
            from - at >= length)
            return false;
        size_t some = length - (size_t) (from - at);
        if (some > wanted - got)
            some = wanted - got;
        memcpy (to + got, piece + (from - at), some);
        got += some;
    }
    return got == wanted;
}

static tmq_code_t vault_read (void *context, const uint8_t *hash, uint64_t bytes, uint64_t offset,
                              uint8_t *to, size_t limit, size_t *length, vault_word_t *word)
{
    pg_blobs_t *self = context;
    PGresult *result = NULL;
    store_error_t error;
    *length = 0;
    uint64_t left = offset < bytes ? bytes - offset : 0;
    size_t wanted = left < limit ? (size_t) left : limit;
    store_code_t code = connect_link (self, &error);
    pg_params_t *params = params_of_shard (self);
    pg_param_bytes (params, hash, TMQ_BLOB_HASH_BYTES);
    pg_param_int4 (params, (int32_t) (offset / VAULT_PIECE_BYTES));
    pg_param_int4 (params, (int32_t) ((offset + wanted - (wanted > 0)) / VAULT_PIECE_BYTES));
    if (code == STORE_OK)
        code = run (self, READ, &result, &error);
    if (code != STORE_OK)
        return fail (self, code, &error, word);
    const char *wrong = PQntuples (result) == 0 ? "is missing" : NULL;
    if (wrong == NULL && !take_pieces (result, bytes, offset, to, wanted))
        wrong = "is damaged in the database";
    PQclear (result);
    *length = wrong == NULL ? wanted : 0;
    snprintf (word->text, sizeof (word->text), "%s", wrong == NULL ? "" : wrong);
    return wrong == NULL ? TMQ_OK : TMQ_NO_BLOB;
}

static tmq_code_t vault_lacks (void *context, const uint8_t (*hashes)[TMQ_BLOB_HASH_BYTES],
                               size_t count_of, bool *lacks, vault_word_t *word)
{
    pg_blobs_t *self = context;
    PGresult *result = NULL;
    store_error_t error;
    pg_array_begin (&self->numbers, PG_INT4);
    pg_array_begin (&self->pieces, PG_BYTEA);
    for (size_t i = 0; i < count_of; i++) {
        lacks[i] = false;
        pg_put_int4 (&self->numbers.bytes, (int32_t) i);
        pg_put_bytes (&self->pieces.bytes, hashes[i], TMQ_BLOB_HASH_BYTES);
        self->numbers.count++;
        self->pieces.count++;
    }
    store_code_t code = connect_link (self, &error);
    pg_params_t *params = params_of_shard (self);
    pg_param_array (params, &self->numbers);
    pg_param_array (params, &self->pieces);
    if (code == STORE_OK)
        code = run (self, LACKS, &result, &error);
    if (code != STORE_OK)
        return fail_upkeep (self, code, &error, word);
    for (int row = 0; row < PQntuples (result); row++)
        lacks[(size_t) pg_int4 (result, row, 0)] = true;
    PQclear (result);
    return TMQ_OK;
}

/* Removing. */

static tmq_code_t vault_list (void *context, const uint8_t *behind, int64_t still_ms,
                              vault_item_t *out, size_t *count_of, vault_word_t *word)
{
    pg_blobs_t *self = context;
    PGresult *result = NULL;
    store_error_t error;
    *count_of = 0;
    store_code_t code = connect_link (self, &error);
    pg_params_t *params = params_of_shard (self);
    pg_param_bytes (params, behind, behind == NULL ? 0 : TMQ_BLOB_HASH_BYTES);
    pg_param_int8 (params, still_ms);
    pg_param_int4 (params, VAULT_SLICE_MAX);
    if (code == STORE_OK)
        code = run (self, LIST, &result, &error);
    if (code != STORE_OK)
        return fail_upkeep (self, code, &error, word);
    for (int row = 0; row < PQntuples (result) && row < VAULT_SLICE_MAX; row++) {
        vault_item_t *item = &out[(*count_of)++];
        pg_fixed (result, row, 0, item->hash, sizeof (item->hash));
        item->at = pg_int8 (result, row, 1);
        item->still = pg_bool (result, row, 2);
    }
    PQclear (result);
    return TMQ_OK;
}

static tmq_code_t vault_remove (void *context, const vault_item_t *item, bool *done,
                                vault_word_t *word)
{
    pg_blobs_t *self = context;
    PGresult *result = NULL;
    store_error_t error;
    *done = false;
    store_code_t code = connect_link (self, &error);
    pg_params_t *params = params_of_own (self);
    pg_param_bytes (params, item->hash, sizeof (item->hash));
    pg_param_int8 (params, item->at);
    pg_whole_drop_body (self->store, item->hash); /* before: who looks meanwhile does not miss it */
    if (code == STORE_OK)
        code = run_own (self, REMOVE, &result, &error);
    if (code != STORE_OK)
        return fail_upkeep (self, code, &error, word);
    *done = !pg_is_null (result, 0, 0);
    self->stats.blobs -= *done;
    self->stats.bytes -= (uint64_t) pg_int8 (result, 0, 0);
    PQclear (result);
    return TMQ_OK;
}

static store_code_t find_torn (pg_blobs_t *self, const int64_t *numbers, size_t count_of,
                               store_error_t *error)
{
    PGresult *result = NULL;
    pg_array_begin (&self->numbers, PG_INT8);
    for (size_t i = 0; i < count_of; i++) {
        pg_put_int8 (&self->numbers.bytes, numbers[i]);
        self->numbers.count++;
    }
    pg_param_array (params_of_shard (self), &self->numbers);
    self->torn = 0;
    store_code_t code = run (self, FIND_TORN, &result, error);
    if (code == STORE_OK && PQntuples (result) == 1) {
        self->torn = pg_int8 (result, 0, 0);
        self->torn_at = 0;
        self->torn_end = pieces_of ((uint64_t) pg_int8 (result, 0, 1));
    }
    PQclear (result);
    return code;
}

static store_code_t sweep_on (pg_blobs_t *self, store_error_t *error)
{
    PGresult *result = NULL;
    pg_params_t *params = params_of_own (self);
    bool last = self->torn_at >= self->torn_end;
    pg_param_int8 (params, self->torn);
    if (!last) {
        pg_param_int4 (params, self->torn_at);
        pg_param_int4 (params, self->torn_at + SWEEP_PIECES);
    }
    store_code_t code = run_own (self, last ? FORGET : SWEEP, &result, error);
    PQclear (result);
    self->torn_at += SWEEP_PIECES;
    if (code != STORE_OK || last)
        self->torn = 0;
    return code;
}

/* The pieces from the first on, with a lower bound, then the row: one that fails begins anew. */
static tmq_code_t vault_sweep (void *context, const int64_t *numbers, size_t count_of, bool *more,
                               vault_word_t *word)
{
    pg_blobs_t *self = context;
    store_error_t error;
    *more = false;
    store_code_t code = connect_link (self, &error);
    if (code == STORE_OK && self->torn == 0)
        code = find_torn (self, numbers, count_of, &error);
    *more = code == STORE_OK && self->torn != 0;
    if (*more)
        code = sweep_on (self, &error);
    if (code == STORE_OK)
        return TMQ_OK;
    *more = false;
    self->torn = 0;
    return fail_upkeep (self, code, &error, word);
}

static vault_stats_t vault_stats (void *context)
{
    return ((const pg_blobs_t *) context)->stats;
}

/* Life. */

pg_blobs_t *pg_blobs_new (pg_store_t *store)
{
    pg_blobs_t *self = memory_zero (1, sizeof (*self));
    self->vault =
        (vault_t){self,        vault_look, vault_begin,  vault_put,   vault_end,  vault_read,
                  vault_lacks, vault_list, vault_remove, vault_sweep, vault_stats};
    self->store = store;
    pg_link_init (&self->link, &store->target, "blobs", TEXTS, STATEMENTS);
    self->link.wait_ms_max = WAIT_MS;
    self->link.ends_others = true;
    return self;
}

void pg_blobs_free (pg_blobs_t **self_p)
{
    pg_blobs_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pg_link_close (&self->link);
    pg_array_free (&self->numbers);
    pg_array_free (&self->pieces);
    free (self);
}

const vault_t *pg_blobs_vault (const pg_blobs_t *self)
{
    return &self->vault;
}

/* Filling. */

/* One that is put into tables without an owner. */
typedef struct filling {
    pg_link_t *link;
    const uint8_t *hash;
    uint64_t bytes;
    int64_t number;
    pg_params_t params;
    pg_array_t numbers;
    pg_array_t pieces;
    uint8_t *data; /* VAULT_PUT_BYTES */
} filling_t;

/* *number (may be NULL): the first column of its one row. */
static store_code_t run_filling (filling_t *self, size_t statement, int64_t *number,
                                 store_error_t *error)
{
    PGresult *result;
    store_code_t code = pg_link_run (self->link, statement, &self->params, &result, error);
    if (code == STORE_OK && PQntuples (result) != 1)
        code = store_fail (error, STORE_ERROR_IO, "%s: a large body could not be put",
                           self->link->target->where);
    if (code == STORE_OK && number != NULL)
        *number = pg_int8 (result, 0, 0);
    PQclear (result);
    return code;
}

static pg_params_t *params_of_nobody (filling_t *self)
{
    pg_params_clear (&self->params);
    pg_param_int2 (&self->params, PG_SHARD);
    pg_param_int8 (&self->params, 0); /* the epoch before the first */
    return &self->params;
}

static store_code_t fill_piece (filling_t *self, int fd, uint64_t offset, store_error_t *error)
{
    uint64_t left = self->bytes - offset;
    size_t length = left < VAULT_PUT_BYTES ? (size_t) left : VAULT_PUT_BYTES;
    for (size_t got = 0; got < length;) {
        ssize_t some = read (fd, self->data + got, length - got);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return store_fail (error, STORE_ERROR_IO, "a large body cannot be read: %s",
                               some < 0 ? strerror (errno) : "it became shorter");
        got += (size_t) some;
    }
    put_pieces (&self->numbers, &self->pieces, offset, self->data, length);
    pg_params_t *params = params_of_nobody (self);
    pg_param_int8 (params, self->number);
    pg_param_array (params, &self->numbers);
    pg_param_array (params, &self->pieces);
    pg_param_bytes (params, self->hash, TMQ_BLOB_HASH_BYTES);
    return run_filling (self, PUT, NULL, error);
}

static store_code_t fill_all (filling_t *self, int fd, store_error_t *error)
{
    pg_params_t *params = params_of_nobody (self);
    pg_param_bytes (params, self->hash, TMQ_BLOB_HASH_BYTES);
    pg_param_int8 (params, (int64_t) self->bytes);
    store_code_t code = run_filling (self, BEGIN, &self->number, error);
    for (uint64_t at = 0; code == STORE_OK && at < self->bytes; at += VAULT_PUT_BYTES)
        code = fill_piece (self, fd, at, error);
    if (code != STORE_OK)
        return code;
    pg_params_clear (params);
    pg_param_int2 (params, PG_SHARD);
    pg_param_bytes (params, self->hash, TMQ_BLOB_HASH_BYTES);
    pg_param_int8 (params, self->number);
    pg_param_int8 (params, 0);
    return run_filling (self, SHOW, NULL, error);
}

store_code_t pg_blobs_fill (pg_link_t *link, const uint8_t *hash, uint64_t bytes, int fd,
                            store_error_t *error)
{
    filling_t self = {.link = link, .hash = hash, .bytes = bytes};
    store_code_t code =
        link->texts == TEXTS ? STORE_OK : pg_link_use (link, TEXTS, STATEMENTS, error);
    self.data = memory_alloc (VAULT_PUT_BYTES);
    if (code == STORE_OK)
        code = fill_all (&self, fd, error);
    free (self.data);
    pg_array_free (&self.numbers);
    pg_array_free (&self.pieces);
    return code;
}
