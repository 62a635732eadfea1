/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blob_desk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "blobs/blob_files.h"
#include "core/base/memory.h"
#include "errands.h"
#include "log/log.h"
#include "taskmq.pb-c.h"
#include "timestamp.h"

/* Errands of its own, beside those of requests; no request has these numbers. */
enum {
    DO_LOOK = 1,
    DO_COLLECT,
    DO_CONFIGURE,
    DO_LOOK_STORED,
    DO_SWEEP, /* of the vault */
    DO_LACK,  /* which files it lacks */
    DO_BRING  /* these to it */
};

enum {
    RUNNERS = 11,
    COLLECT_AT_ONCE = 16 /* files that are removed before others have their turn */
};

/* Of the files that are brought to the vault together. */
typedef struct slice {
    size_t at;
    uint64_t blobs; /* that are there now, … */
    uint64_t bytes;
} slice_t;

struct blob_desk {
    errands_t *errands;
    size_t pending;
    errand_t **own; /* of them, those that no client asked for */
    size_t own_count;
    size_t own_capacity;
    bool looking;
    bool held;
    int64_t looked_ms;
    bool stores; /* there is a vault: it is looked at, … */
    bool looking_stored;
    bool sweeping; /* … swept, … */
    bool brings;   /* … and files that it lacks are brought there, once */
    bool bringing;
    depot_place_t place;  /* up to which that was done, … */
    depot_place_t behind; /* … and will be with the slice under way */
    slice_t brought;      /* in all */
    slice_t slice;        /* the thread's */
    depot_t *depot;       /* the thread's; NULL: it cannot be used */
    pthread_mutex_t lock;
    depot_stats_t stats;
};

/* What run_lack found. */
typedef struct lacking {
    depot_place_t place;
    size_t count;
    depot_left_t files[DEPOT_SLICE_MAX];
} lacking_t;

/* The thread. */

static void show_stats (blob_desk_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->stats = depot_stats (self->depot);
    pthread_mutex_unlock (&self->lock);
}

static void refuse (errand_t *errand, const depot_word_t *word)
{
    errand_refuse (errand, word->code, "%s", word->text);
    errand->over_quota = word->over_quota;
    errand->retry_after_ms = word->retry_after_ms;
}

static bool is_off (const blob_desk_t *self, errand_t *errand)
{
    if (self->depot == NULL)
        errand_refuse (errand, TMQ_INTERNAL, "the broker has no place for blobs");
    return self->depot == NULL;
}

static Taskmq__Request *read_again (errand_t *errand)
{
    Taskmq__Request *request =
        taskmq__request__unpack (NULL, buf_length (errand->request), buf_bytes (errand->request));
    if (request == NULL || (uint32_t) request->op_case != errand->op)
        errand_refuse (errand, TMQ_INTERNAL, "the request could not be read again");
    return request;
}

static depot_upload_t upload_of (const errand_t *errand)
{
    return (depot_upload_t){.identity = errand->identity,
                            .ns = errand->ns,
                            .hash = errand->blob,
                            .bytes = errand->blob_bytes};
}

static void answer_at (errand_t *errand, const depot_word_t *word)
{
    errand->again = word->more;
    if (word->more)
        return;
    if (word->code != TMQ_OK) {
        refuse (errand, word);
        return;
    }
    Taskmq__BlobAt out = TASKMQ__BLOB_AT__INIT;
    out.offset = word->offset;
    out.whole = word->whole;
    errand->whole = word->whole;
    errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_AT, &out.base);
}

static void run_begin (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    depot_word_t word;
    depot_upload_t upload = upload_of (errand);
    const depot_share_t share = {errand->blobs_had, errand->blobs_most};
    if (is_off (self, errand))
        return;
    if (share.most < UINT64_MAX)
        upload.share = &share;
    depot_begin (self->depot, &upload, clock_ms (CLOCK_MONOTONIC), &word);
    answer_at (errand, &word);
    show_stats (self);
}

static void run_chunk (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    depot_word_t word;
    depot_upload_t upload = upload_of (errand);
    if (is_off (self, errand))
        return;
    Taskmq__Request *request = read_again (errand);
    if (errand->code == TMQ_OK) {
        depot_chunk (self->depot, &upload, request->blob_chunk->offset, buf_bytes (errand->bytes),
                     buf_length (errand->bytes), clock_ms (CLOCK_MONOTONIC), &word);
        answer_at (errand, &word);
        show_stats (self);
    }
    taskmq__request__free_unpacked (request, NULL);
}

static void run_drop (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    depot_word_t word;
    depot_upload_t upload = upload_of (errand);
    if (is_off (self, errand))
        return;
    depot_drop (self->depot, &upload, &word);
    errand->again = word.more;
    if (word.code != TMQ_OK)
        refuse (errand, &word);
    show_stats (self);
}

static void say_damaged (const uint8_t *hash)
{
    char hex[BLOB_HEX_SIZE];
    blob_hex (hex, hash);
    log_write (LOG_LEVEL_WARNING, "BLOB-DAMAGED",
               "the file of a blob is damaged; the database is read in its place",
               LOG_FIELDS (LOG_TEXT ("blob", hex)));
}

static void read_part (blob_desk_t *self, errand_t *errand, const Taskmq__BlobRead *ask)
{
    depot_word_t word;
    size_t length = 0;
    size_t limit = ask->limit == 0 ? TMQ_PART_BYTES_MAX : ask->limit;
    uint8_t *bytes = memory_alloc (limit);
    depot_read (self->depot, errand->blob, errand->blob_bytes, ask->offset, bytes, limit, &length,
                &word);
    errand->again = word.more;
    if (word.code != TMQ_OK || word.damaged)
        show_stats (self);
    if (word.damaged)
        say_damaged (errand->blob);
    if (word.code != TMQ_OK) {
        refuse (errand, &word);
        if (word.code != TMQ_UNAVAILABLE)
            log_write (LOG_LEVEL_WARNING, "BLOB-DAMAGED", "a blob that a task names cannot be read",
                       LOG_FIELDS (LOG_TEXT ("error", word.text)));
    } else if (!word.more) {
        Taskmq__Part out = TASKMQ__PART__INIT;
        out.offset = ask->offset;
        out.body = (uint32_t) length;
        out.total = errand->blob_bytes;
        out.more = ask->offset + length < errand->blob_bytes;
        errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_PART, &out.base);
        errand->body = buf_new (bytes, length);
    }
    free (bytes);
}

static void run_read (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    if (is_off (self, errand))
        return;
    Taskmq__Request *request = read_again (errand);
    if (errand->code == TMQ_OK)
        read_part (self, errand, request->blob_read);
    taskmq__request__free_unpacked (request, NULL);
}

static void run_look (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    size_t count = 0;
    depot_left_t *left = memory_alloc (DEPOT_SLICE_MAX * sizeof (*left));
    if (self->depot != NULL) {
        depot_look (self->depot, clock_ms (CLOCK_MONOTONIC), left, &count);
        show_stats (self);
    }
    errand->body = buf_new (left, count * sizeof (*left));
    free (left);
}

static void run_look_stored (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    size_t count = 0;
    depot_left_t *left = memory_alloc (DEPOT_SLICE_MAX * sizeof (*left));
    depot_look_stored (self->depot, left, &count);
    show_stats (self);
    errand->body = buf_new (left, count * sizeof (*left));
    free (left);
}

static void run_sweep (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    errand->again = depot_sweep (self->depot);
}

/* The place behind them, and the files. */
static void run_lack (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    size_t count = 0;
    lacking_t *found = memory_zero (1, sizeof (*found));
    memcpy (&found->place, buf_bytes (errand->bytes), sizeof (found->place));
    errand->code = depot_lacking (self->depot, &found->place, found->files, &count);
    show_stats (self);
    found->count = count;
    errand->body = buf_new (found, sizeof (*found));
    free (found);
}

static void say_unbrought (const depot_word_t *word)
{
    log_write (LOG_LEVEL_WARNING, "BLOB-DAMAGED", "a file could not be put into the database",
               LOG_FIELDS (LOG_TEXT ("error", word->text)));
}

/* One after the other. What is damaged or refused is told and passed; what is out of reach, or
 * full, is tried again with the whole slice, of which the others are there then. */
static void run_bring (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    slice_t *slice = &self->slice;
    depot_left_t left;
    depot_word_t word;
    memcpy (&left, buf_bytes (errand->bytes) + slice->at * sizeof (left), sizeof (left));
    depot_bring (self->depot, &left, &word);
    show_stats (self);
    bool waits = word.code == TMQ_UNAVAILABLE || word.code == TMQ_STORE_FULL;
    if (word.code != TMQ_OK && !waits)
        say_unbrought (&word);
    if (word.whole) {
        slice->blobs++;
        slice->bytes += left.bytes;
    }
    slice->at += !word.more;
    errand->code = waits ? word.code : TMQ_OK;
    errand->again = !waits && slice->at * sizeof (left) < buf_length (errand->bytes);
    if (errand->again)
        return;
    errand->body = buf_new (slice, sizeof (*slice));
    *slice = (slice_t){0};
}

static void run_collect (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    depot_left_t left;
    for (size_t at = 0; at < buf_length (errand->bytes); at += sizeof (left)) {
        memcpy (&left, buf_bytes (errand->bytes) + at, sizeof (left));
        depot_collect (self->depot, &left);
    }
    show_stats (self);
}

static void run_configure (void *context, errand_t *errand)
{
    blob_desk_t *self = context;
    depot_limits_t limits;
    memcpy (&limits, buf_bytes (errand->bytes), sizeof (limits));
    if (self->depot != NULL)
        depot_configure (self->depot, &limits);
}

/* The server. */

bool blob_desk_does (const errand_t *errand)
{
    return errand->op == TASKMQ__REQUEST__OP_BLOB_BEGIN ||
           errand->op == TASKMQ__REQUEST__OP_BLOB_CHUNK ||
           errand->op == TASKMQ__REQUEST__OP_BLOB_DROP ||
           errand->op == TASKMQ__REQUEST__OP_BLOB_READ;
}

void blob_desk_give (blob_desk_t *self, errand_t *errand)
{
    self->pending++;
    errands_submit (self->errands, errand);
}

static void submit_own (blob_desk_t *self, uint32_t what, const void *bytes, size_t length)
{
    errand_t *errand = errand_new (what);
    if (length > 0)
        errand->bytes = buf_new (bytes, length);
    self->own = memory_grow (self->own, &self->own_capacity, self->own_count, sizeof (*self->own));
    self->own[self->own_count++] = errand;
    blob_desk_give (self, errand);
}

static void free_own (blob_desk_t *self, errand_t *errand)
{
    size_t i = 0;
    while (self->own[i] != errand)
        i++;
    self->own[i] = self->own[--self->own_count];
    errand_free (errand);
}

/* Those that nobody needs, to be removed; the thread does so unless they were touched meanwhile. */
static void judge_left (blob_desk_t *self, engine_t *engine, const errand_t *look)
{
    depot_left_t *left = memory_alloc (DEPOT_SLICE_MAX * sizeof (*left));
    size_t length = buf_length (look->body);
    size_t count = 0;
    memcpy (left, buf_bytes (look->body), length);
    for (size_t i = 0; i < length / sizeof (*left); i++)
        if (!engine_blob_is_needed (engine, left[i].hash))
            left[count++] = left[i];
    for (size_t at = 0; at < count && !self->held; at += COLLECT_AT_ONCE) {
        size_t some = count - at < COLLECT_AT_ONCE ? count - at : COLLECT_AT_ONCE;
        submit_own (self, DO_COLLECT, left + at, some * sizeof (*left));
    }
    free (left);
}

static void look_for_files (blob_desk_t *self)
{
    self->bringing = true;
    submit_own (self, DO_LACK, &self->place, sizeof (self->place));
}

static void end_slice (blob_desk_t *self, const depot_place_t *place)
{
    self->place = *place;
    self->bringing = false;
    self->brings = place->bucket < DEPOT_BUCKETS;
    if (self->brings)
        look_for_files (self);
    else if (self->brought.blobs > 0)
        log_write (LOG_LEVEL_INFO, "BLOBS-BROUGHT",
                   "large bodies that were files alone are in the database now",
                   LOG_FIELDS (LOG_NUMBER ("blobs", self->brought.blobs),
                               LOG_NUMBER ("bytes", self->brought.bytes)));
}

/* Those that nobody needs will be collected. */
static void judge_lacking (blob_desk_t *self, engine_t *engine, const errand_t *errand)
{
    lacking_t *found = memory_alloc (sizeof (*found));
    size_t count = 0;
    memcpy (found, buf_bytes (errand->body), sizeof (*found));
    for (size_t i = 0; i < found->count; i++)
        if (engine_blob_is_needed (engine, found->files[i].hash))
            found->files[count++] = found->files[i];
    self->behind = found->place;
    if (count == 0)
        end_slice (self, &found->place);
    else
        submit_own (self, DO_BRING, found->files, count * sizeof (found->files[0]));
    free (found);
}

/* What did not go is tried again at the next look, from the same place on. */
static void take_lacking (blob_desk_t *self, engine_t *engine, const errand_t *errand)
{
    if (errand->op == DO_BRING && errand->body != NULL) {
        slice_t slice;
        memcpy (&slice, buf_bytes (errand->body), sizeof (slice));
        self->brought.blobs += slice.blobs;
        self->brought.bytes += slice.bytes;
    }
    if (errand->code != TMQ_OK)
        self->bringing = false;
    else if (errand->op == DO_LACK)
        judge_lacking (self, engine, errand);
    else
        end_slice (self, &self->behind);
}

static void take_own (blob_desk_t *self, engine_t *engine, const errand_t *errand)
{
    switch (errand->op) {
    case DO_LOOK: self->looking = false; break;
    case DO_LOOK_STORED: self->looking_stored = false; break;
    case DO_SWEEP: self->sweeping = false; break;
    case DO_LACK:
    case DO_BRING: take_lacking (self, engine, errand); break;
    default: break;
    }
    if ((errand->op == DO_LOOK || errand->op == DO_LOOK_STORED) && errand->code == TMQ_OK)
        judge_left (self, engine, errand);
}

void blob_desk_take (blob_desk_t *self, engine_t *engine, now_t now)
{
    errand_t *errand;
    while ((errand = errands_done (self->errands)) != NULL) {
        self->pending--;
        if (errand->context != NULL) {
            engine_errand_done (engine, errand, now);
            continue;
        }
        take_own (self, engine, errand);
        free_own (self, errand);
    }
}

static void begin (blob_desk_t *self, uint32_t what, bool *goes_on)
{
    if (*goes_on)
        return;
    *goes_on = true;
    submit_own (self, what, NULL, 0);
}

void blob_desk_tick (blob_desk_t *self, now_t now, bool held)
{
    self->held = held;
    if (now.mono_ms - self->looked_ms < BLOB_LOOK_MS)
        return;
    self->looked_ms = now.mono_ms;
    begin (self, DO_LOOK, &self->looking);
    if (!self->stores)
        return;
    begin (self, DO_LOOK_STORED, &self->looking_stored);
    begin (self, DO_SWEEP, &self->sweeping);
    if (self->brings && !self->bringing)
        look_for_files (self);
}

bool blob_desk_is_idle (const blob_desk_t *self)
{
    return self->pending == self->own_count;
}

int blob_desk_fd (const blob_desk_t *self)
{
    return errands_fd (self->errands);
}

depot_stats_t blob_desk_stats (blob_desk_t *self)
{
    pthread_mutex_lock (&self->lock);
    depot_stats_t stats = self->stats;
    pthread_mutex_unlock (&self->lock);
    return stats;
}

void blob_desk_configure (blob_desk_t *self, const depot_limits_t *limits)
{
    submit_own (self, DO_CONFIGURE, limits, sizeof (*limits));
}

/* Life. */

blob_desk_t *blob_desk_new (const char *directory, const depot_limits_t *limits,
                            const vault_t *vault)
{
    int error = 0;
    blob_desk_t *self = memory_zero (1, sizeof (*self));
    pthread_mutex_init (&self->lock, NULL);
    self->depot = depot_new (directory, limits, &error);
    if (self->depot == NULL)
        log_write (LOG_LEVEL_WARNING, "BLOBS-OFF",
                   "large bodies cannot be kept: their directory cannot be used",
                   LOG_FIELDS (LOG_TEXT ("path", directory), LOG_TEXT ("error", strerror (error))));
    else
        depot_use (self->depot, vault);
    self->stores = self->brings = self->depot != NULL && vault != NULL;
    if (self->depot != NULL)
        self->stats = depot_stats (self->depot);
    const errand_runner_t runners[RUNNERS] = {{TASKMQ__REQUEST__OP_BLOB_BEGIN, run_begin, self},
                                              {TASKMQ__REQUEST__OP_BLOB_CHUNK, run_chunk, self},
                                              {TASKMQ__REQUEST__OP_BLOB_DROP, run_drop, self},
                                              {TASKMQ__REQUEST__OP_BLOB_READ, run_read, self},
                                              {DO_LOOK, run_look, self},
                                              {DO_COLLECT, run_collect, self},
                                              {DO_CONFIGURE, run_configure, self},
                                              {DO_LOOK_STORED, run_look_stored, self},
                                              {DO_SWEEP, run_sweep, self},
                                              {DO_LACK, run_lack, self},
                                              {DO_BRING, run_bring, self}};
    self->errands = errands_new (runners, RUNNERS, (errand_judge_t){NULL, NULL});
    if (self->errands == NULL)
        blob_desk_free (&self);
    return self;
}

void blob_desk_free (blob_desk_t **self_p)
{
    blob_desk_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    errands_free (&self->errands);
    while (self->own_count > 0)
        free_own (self, self->own[0]);
    free (self->own);
    depot_free (&self->depot);
    pthread_mutex_destroy (&self->lock);
    free (self);
}
