/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The server's files of blobs, in memory: uploads that stand where a crash left them, and blobs
 * that are collected when they stood still and the engine says that nobody needs them. What is
 * asked is done in its order by a thread that is slow, as broker/blobs does it.
 *
 * Of several brokers each has files of its own, and puts what it has into the database (vault.c)
 * before it says that a blob is whole.
 *
 * The invariants: what is durable names only blobs that are whole, so nothing that a task names is
 * ever collected; and the row of a blob counts exactly those that name it. */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "core/data/blob_row.h"
#include "core/data/extra.h"
#include "wire.h"

enum {
    IDLE_MS = 300,         /* a file stays for so long after it was touched, … */
    IDLE_BESIDE_MS = 1200, /* … and where the database has it, too, which goes first */
    CLAIM_MS = 2500,
    LATENCY_MS_MAX = 8,
    COLLECTING_MS_MAX = 3,
    PUT_UNITS = 16,
    PUT_TRIES_MAX = 3,
    SWEEP_MS = 150,
    JUDGING_MS_MAX =
        60 /* from a look at the database to the removal, so that others come between */
};

/* … STORED: of the database. */
typedef enum job_kind { JOB_ERRAND, JOB_COLLECT, JOB_COLLECT_STORED, JOB_SWEEP } job_kind_t;

typedef struct depot_job {
    job_kind_t kind;
    errand_t *errand; /* the engine's */
    uint32_t blob;    /* of COLLECT, … */
    int64_t touched;  /* … as it was looked at */
    bool asks;        /* it waits for the database, which was asked … */
    ask_kind_t asked; /* … this */
    uint32_t units;   /* … to put so many of them */
    uint32_t tries;
    bool turns; /* it goes on with what it puts, behind the others */
    bool ran;
    int64_t due_ms;
    struct depot_job *next;
} depot_job_t;

uint8_t blobs_byte (uint32_t blob, uint32_t unit)
{
    return (uint8_t) (blob * 37 + unit * 11 + 5);
}

uint32_t blobs_units (uint32_t blob)
{
    return 27 + blob; /* at least one byte more than a frame */
}

void blobs_name (uint32_t blob, blob_name_t *out)
{
    memset (out->hash, 0xb0, sizeof out->hash);
    out->hash[0] = (uint8_t) blob;
    taskmq__blob__init (&out->blob);
    out->blob.hash.data = out->hash;
    out->blob.hash.len = sizeof out->hash;
    out->blob.bytes = (uint64_t) blobs_units (blob) * SIM_UNIT_BYTES;
}

/* SIM_BLOBS: no blob of ours. */
uint32_t blobs_number (const Taskmq__Blob *blob)
{
    blob_name_t name;
    if (blob->hash.len != TMQ_BLOB_HASH_BYTES || blob->hash.data[0] >= SIM_BLOBS) {
        return SIM_BLOBS;
    }
    blobs_name (blob->hash.data[0], &name);
    return blob->bytes == name.blob.bytes &&
                   memcmp (name.hash, blob->hash.data, sizeof name.hash) == 0
               ? blob->hash.data[0]
               : SIM_BLOBS;
}

void depot_configure (engine_config_t *config)
{
    config->blob_claim_ms = CLAIM_MS;
    config->blob_rest_ms = 0; /* a crash is what it has to withstand */
}

/* Doing what was asked. */

static uint32_t place_of (const char *ns, const char *identity)
{
    return (strcmp (ns, model_namespaces[0]) != 0 ? 2u : 0u) +
           (strcmp (identity, "uid:1") == 0 ? 1u : 0u);
}

static sim_upload_t *upload_of (world_t *world, const errand_t *errand)
{
    return &world->broker->depot.uploads[place_of (errand->ns, errand->identity)][errand->blob[0]];
}

uint32_t depot_draw (const client_t *client, uint32_t wanted)
{
    const world_t *world = client->world;
    const sim_upload_t *uploads =
        world->broker->depot.uploads[place_of (client->ns, client->identity)];
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        uint32_t blob = (wanted + i) % SIM_BLOBS;
        if (uploads[blob].told_ms > 0 && world->mono_ms - uploads[blob].told_ms < CLAIM_MS) {
            return blob;
        }
    }
    return wanted;
}

/* The database. */

/* Whoever worked for a connection that was lost is told to end when the next one is made. */
static void ask (world_t *world, depot_job_t *job, ask_kind_t kind, const vault_ask_t *what)
{
    host_t *host = world->broker->host;
    if (host->blobs_lost) {
        host->blobs_lost = false;
        backends_end (world, kind, host->index, NULL);
    }
    job->asks = true;
    job->asked = kind;
    talk_ask (world, &host->blobs, &(ask_t){.kind = kind, .epoch = host->epoch, .vault = *what});
}

/* Begins it, or goes on with what was begun. */
static void put_on (world_t *world, depot_job_t *job)
{
    uint32_t blob = job->errand->blob[0];
    const sim_put_t *put = &world->broker->depot.puts[blob];
    vault_ask_t what = {.blob = blob, .number = put->number, .from = put->units};
    uint32_t left = blobs_units (blob) - put->units;
    what.units = job->units = left < PUT_UNITS ? left : PUT_UNITS;
    ask (world, job,
         put->number == 0 ? ASK_BLOB_BEGIN
         : left > 0       ? ASK_BLOB_PUT
                          : ASK_BLOB_END,
         &what);
}

static void keep (world_t *world, depot_job_t *job)
{
    ask (world, job, ASK_BLOB_KEEP, &(vault_ask_t){.blob = job->errand->blob[0]});
}

static void refuse_away (depot_job_t *job, bool full)
{
    errand_refuse (job->errand, full ? TMQ_STORE_FULL : TMQ_UNAVAILABLE,
                   full ? "the database has no room for it" : "the database is out of reach");
}

static void reply_at (world_t *world, errand_t *errand, bool whole)
{
    Taskmq__BlobAt at = TASKMQ__BLOB_AT__INIT;
    at.whole = whole;
    at.offset = (uint64_t) upload_of (world, errand)->units * SIM_UNIT_BYTES;
    if (at.whole) {
        world->broker->depot.files[errand->blob[0]].touched_ms = world->mono_ms;
    }
    errand->whole = at.whole;
    errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_AT, &at.base);
}

/* A turn of keeping it was answered. */
static void kept (world_t *world, depot_job_t *job, const answer_t *answer)
{
    sim_put_t *put = &world->broker->depot.puts[job->errand->blob[0]];
    bool ends = job->asked == ASK_BLOB_END;
    if (job->asked == ASK_BLOB_BEGIN) {
        put->number = answer->number;
    } else if (job->asked == ASK_BLOB_PUT) {
        put->units += job->units;
    } else if (ends) {
        *put = (sim_put_t){.number = 0};
    }
    if (answer->good) {
        reply_at (world, job->errand, true);
    } else if (!ends) {
        job->turns = true;
    } else if (++job->tries < PUT_TRIES_MAX) {
        keep (world, job);
    } else {
        sim_fail (world, "A120: blob %u is not whole after it was put", job->errand->blob[0]);
    }
}

/* Whether an end took effect is not known after an error: then it is looked at. */
static void not_kept (world_t *world, depot_job_t *job, answer_code_t code)
{
    if (job->asked == ASK_BLOB_END) {
        world->broker->depot.puts[job->errand->blob[0]] = (sim_put_t){.number = 0};
    }
    refuse_away (job, code == ANSWER_FULL);
}

static void answer_at (world_t *world, depot_job_t *job)
{
    errand_t *errand = job->errand;
    uint32_t blob = errand->blob[0];
    bool whole = upload_of (world, errand)->units == blobs_units (blob) &&
                 world->broker->depot.files[blob].whole;
    if (whole && world->database != NULL &&
        world->options.planted_bug != ENGINE_BUG_BLOB_TOLD_EARLY) {
        keep (world, job);
    } else {
        reply_at (world, errand, whole);
    }
}

static void begin (world_t *world, depot_job_t *job)
{
    errand_t *errand = job->errand;
    sim_upload_t *upload = upload_of (world, errand);
    uint32_t blob = errand->blob[0];
    if (upload->units == blobs_units (blob) && !world->broker->depot.files[blob].whole) {
        upload->units = 0; /* it was collected meanwhile */
    }
    answer_at (world, job);
}

static void chunk (world_t *world, depot_job_t *job, const Taskmq__BlobChunk *wanted)
{
    errand_t *errand = job->errand;
    sim_upload_t *upload = upload_of (world, errand);
    uint32_t blob = errand->blob[0];
    uint32_t from = (uint32_t) (wanted->offset / SIM_UNIT_BYTES);
    for (uint32_t i = 0; i < buf_length (errand->bytes); i++) {
        if (buf_bytes (errand->bytes)[i] != blobs_byte (blob, from + i)) {
            sim_fail (world, "R7: a chunk of blob %u has bytes of another one", blob);
        }
        upload->units += from + i == upload->units;
    }
    if (upload->units == blobs_units (blob)) {
        world->broker->depot.files[blob].whole = true;
    }
    answer_at (world, job);
}

/* What is a blob, or may be one, stays: others may name it. */
static void drop (world_t *world, errand_t *errand)
{
    sim_upload_t *upload = upload_of (world, errand);
    if (upload->units == blobs_units (errand->blob[0])) {
        errand_refuse (errand, TMQ_CONFLICT, "all of it has come");
        return;
    }
    if (upload->units == 0) {
        errand_refuse (errand, TMQ_NO_BLOB, "there is no such upload");
    }
    upload->units = 0;
}

static void reply_part (errand_t *errand, const Taskmq__BlobRead *ask)
{
    uint32_t blob = errand->blob[0];
    uint8_t bytes[64];
    Taskmq__Part part = TASKMQ__PART__INIT;
    uint32_t units = blobs_units (blob);
    uint32_t from = (uint32_t) (ask->offset / SIM_UNIT_BYTES);
    uint32_t upto = from + ask->limit / SIM_UNIT_BYTES;
    from = from < units ? from : units;
    upto = upto < units ? upto : units;
    for (uint32_t i = from; i < upto; i++) {
        bytes[i - from] = blobs_byte (blob, i);
    }
    part.body = upto - from;
    part.offset = ask->offset;
    part.total = errand->blob_bytes;
    part.more = upto < units;
    errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_PART, &part.base);
    errand->body = buf_new (bytes, upto - from);
}

/* The bytes of a file, or of the database if there is none. */
static void read_part (world_t *world, depot_job_t *job, const Taskmq__BlobRead *wanted)
{
    errand_t *errand = job->errand;
    uint32_t blob = errand->blob[0];
    const sim_file_t *file = &world->broker->depot.files[blob];
    if (file->whole && !file->damaged) {
        reply_part (errand, wanted);
    } else if (world->database != NULL) {
        ask (world, job, ASK_BLOB_READ, &(vault_ask_t){.blob = blob});
    } else {
        errand_refuse (errand, TMQ_NO_BLOB, "blob %02x is missing or damaged", blob);
    }
}

static Taskmq__Request *request_of (const errand_t *errand)
{
    return taskmq__request__unpack (NULL, buf_length (errand->request),
                                    buf_bytes (errand->request));
}

static void read_stored (const depot_job_t *job, const answer_t *answer)
{
    Taskmq__Request *request = request_of (job->errand);
    if (answer->good) {
        reply_part (job->errand, request->blob_read);
    } else {
        errand_refuse (job->errand, TMQ_NO_BLOB, "blob %02x is missing", job->errand->blob[0]);
    }
    taskmq__request__free_unpacked (request, NULL);
}

static void run_errand (world_t *world, depot_job_t *job)
{
    errand_t *errand = job->errand;
    Taskmq__Request *request = request_of (errand);
    if (errand->op == TASKMQ__REQUEST__OP_BLOB_BEGIN) {
        begin (world, job);
    } else if (errand->op == TASKMQ__REQUEST__OP_BLOB_CHUNK) {
        chunk (world, job, request->blob_chunk);
    } else if (errand->op == TASKMQ__REQUEST__OP_BLOB_DROP) {
        drop (world, errand);
    } else if (errand->op == TASKMQ__REQUEST__OP_BLOB_READ) {
        read_part (world, job, request->blob_read);
    } else {
        sim_fail (world, "an errand that nobody asked for");
    }
    taskmq__request__free_unpacked (request, NULL);
}

/* What is durable. */

static void names_of (const record_t *record, uint32_t blobs[2])
{
    blobs[0] = blobs[1] = SIM_BLOBS;
    uint64_t large = record->extra == NULL ? 0 : buf_length (record->extra);
    extra_t *extra = large == 0 ? NULL : extra_new (record->extra);
    if (extra != NULL && extra->fields->payload_blob != NULL) {
        blobs[0] = blobs_number (extra->fields->payload_blob);
    }
    if (extra != NULL && extra->fields->result_blob != NULL) {
        blobs[1] = blobs_number (extra->fields->result_blob);
    }
    extra_free (extra);
}

uint32_t blobs_named (const record_t *record, bool result)
{
    uint32_t blobs[2];
    names_of (record, blobs);
    return blobs[result];
}

/* A late success that is kept may be a blob. */
static uint32_t kept_name (const row_t *row)
{
    enum { FIELD_BLOB = 7 }; /* core/tasks/quarantine.c */
    const uint8_t *at = buf_bytes (row->body);
    const uint8_t *end = at + buf_length (row->body);
    wire_field_t field;
    while (at < end && wire_read_field (&field, &at, end)) {
        if (field.number == FIELD_BLOB) {
            return field.bytes[0];
        }
    }
    return SIM_BLOBS;
}

static void count_names (const world_t *world, uint64_t counts[SIM_BLOBS + 1])
{
    const model_side_t *durable = &world->model->durable;
    memset (counts, 0, (SIM_BLOBS + 1) * sizeof *counts);
    MODEL_EACH_ROW (i, durable)
    {
        uint32_t blobs[2];
        if (durable->rows[i].record != NULL) {
            names_of (durable->rows[i].record, blobs);
            counts[blobs[0]]++;
            counts[blobs[1]]++;
        }
    }
    for (size_t i = 0; i < durable->kind_rows.count; i++) {
        const row_t *row = &durable->kind_rows.rows[i];
        if (row->kind == ROW_KIND_LATE && !row->gone) {
            counts[kept_name (row)]++;
        }
    }
}

/* As others would find it. */
static bool is_there (const world_t *world, uint32_t blob)
{
    return world->database != NULL ? vault_find (world, blob) != NULL
                                   : world->broker->depot.files[blob].whole;
}

/* A failover that takes commits would take as much of the blobs, which is not played. */
static bool is_cut (const world_t *world)
{
    return world->database != NULL && world->database->cut.happened;
}

void depot_check_durable (world_t *world)
{
    const row_list_t *rows = &world->model->durable.kind_rows;
    uint64_t counts[SIM_BLOBS + 1];
    uint64_t stored[SIM_BLOBS] = {0};
    uint64_t shared[SIM_BLOBS] = {0};
    if (is_cut (world)) {
        return;
    }
    count_names (world, counts);
    for (size_t i = 0; i < rows->count; i++) {
        uint64_t bytes;
        const uint8_t *hash;
        const char *owner;
        uint64_t tasks;
        if (rows->rows[i].kind == ROW_KIND_BLOB && !rows->rows[i].gone) {
            blob_row_read (&rows->rows[i], &bytes, &stored[buf_bytes (rows->rows[i].key)[0]]);
        }
        if (blob_share_read (&rows->rows[i], &hash, &owner, &tasks)) {
            shared[hash[0]] += tasks;
        }
    }
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        if (stored[i] != shared[i]) {
            sim_fail (world, "A98: %llu name blob %u, their owners' rows say %llu",
                      (unsigned long long) stored[i], i, (unsigned long long) shared[i]);
        } else if (counts[i] != stored[i]) {
            sim_fail (world, "R8: %llu name blob %u, its row says %llu",
                      (unsigned long long) counts[i], i, (unsigned long long) stored[i]);
        } else if (counts[i] > 0 && !is_there (world, i)) {
            sim_fail (world, "R8: blob %u is named and not there", i);
        }
    }
}

void depot_check_batch (world_t *world, const batch_t *batch)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        uint32_t blobs[2];
        names_of (batch->records[i], blobs);
        for (size_t k = 0; k < 2; k++) {
            if (blobs[k] < SIM_BLOBS && !is_there (world, blobs[k])) {
                sim_fail (world, "R8: task %u names blob %u, which is not there",
                          model_index (batch->records[i]->id.bytes), blobs[k]);
            }
        }
    }
}

/* Collection. */

void depot_check_collected (world_t *world, uint32_t blob)
{
    uint64_t counts[SIM_BLOBS + 1];
    count_names (world, counts);
    if (counts[blob] > 0 && !is_cut (world)) {
        sim_fail (world, "R8: blob %u is collected, and %llu name it", blob,
                  (unsigned long long) counts[blob]);
    }
}

static void collect (world_t *world, const depot_job_t *job)
{
    sim_file_t *file = &world->broker->depot.files[job->blob];
    file->going = false;
    if (!file->whole || file->touched_ms != job->touched) {
        return; /* somebody has just uploaded it again */
    }
    if (world->database == NULL) { /* else the other place has it, too */
        depot_check_collected (world, job->blob);
    }
    sim_log (world, "blob %u is collected", job->blob);
    file->whole = false;
    world->broker->depot.collected++;
}

static depot_job_t *add_job (world_t *world, job_kind_t kind)
{
    depot_job_t **at = &world->broker->depot.jobs;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    depot_job_t *job = calloc (1, sizeof *job);
    job->kind = kind;
    job->due_ms = world->mono_ms + rng_between (&world->rng, 0, LATENCY_MS_MAX);
    *at = job;
    return job;
}

/* Those that stood still, and that the engine does not need. What has been done is told to it in
 * order, so all of it that came before the look is known when it is judged, also after a freeze. */
static void judge_left (world_t *world)
{
    if (world->broker->depot.jobs != NULL && world->broker->depot.jobs->ran) {
        return;
    }
    int64_t idle_ms = world->database != NULL ? IDLE_BESIDE_MS : IDLE_MS;
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        blob_name_t name;
        sim_file_t *file = &world->broker->depot.files[i];
        blobs_name (i, &name);
        if (file->whole && !file->going && world->mono_ms - file->touched_ms >= idle_ms &&
            !engine_blob_is_needed (world->broker->engine, name.hash)) {
            depot_job_t *job = add_job (world, JOB_COLLECT);
            job->blob = i;
            job->due_ms = world->mono_ms + rng_between (&world->rng, 0, COLLECTING_MS_MAX);
            file->going = true;
            job->touched = file->touched_ms;
        }
    }
}

/* An answer about it is not here yet. The time for which a blob has to be idle is much longer than
 * any answer takes; here both are short. */
static bool is_asked_for (const sim_depot_t *self, uint32_t blob)
{
    const depot_job_t *job = self->jobs;
    while (job != NULL && (job->kind != JOB_ERRAND || job->errand->blob[0] != blob)) {
        job = job->next;
    }
    return job != NULL;
}

/* The same of the database, by its own times. */
static void judge_stored (world_t *world)
{
    sim_depot_t *self = &world->broker->depot;
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        blob_name_t name;
        sim_going_t *going = &self->going_stored[i];
        const vault_row_t *row = vault_find (world, i);
        blobs_name (i, &name);
        if (row != NULL && going->at_ms == 0 && world->mono_ms - row->touched_ms >= IDLE_MS &&
            !is_asked_for (self, i) && !engine_blob_is_needed (world->broker->engine, name.hash)) {
            going->touched_ms = row->touched_ms;
            going->at_ms = world->mono_ms + rng_between (&world->rng, 0, JUDGING_MS_MAX);
        } else if (going->at_ms != 0 && !going->asked && world->mono_ms >= going->at_ms) {
            depot_job_t *job = add_job (world, JOB_COLLECT_STORED);
            job->blob = i;
            job->touched = going->touched_ms;
            going->asked = true;
        }
    }
}

static void look_at_stored (world_t *world)
{
    sim_depot_t *self = &world->broker->depot;
    if (world->database == NULL || world->broker->host->away_since != 0) {
        return;
    }
    if (self->jobs == NULL || !self->jobs->ran) {
        judge_stored (world);
    }
    if (world->mono_ms >= self->sweep_ms) {
        self->sweep_ms = world->mono_ms + rng_between (&world->rng, SWEEP_MS / 2, SWEEP_MS);
        add_job (world, JOB_SWEEP);
    }
}

static void find_torn (world_t *world, depot_job_t *job)
{
    vault_ask_t what = {.number = 0};
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        what.in_hand[i] = world->broker->depot.puts[i].number;
    }
    ask (world, job, ASK_BLOB_FIND, &what);
}

/* As an errand that has to come back. */
static void go_behind (world_t *world, depot_job_t *job)
{
    sim_depot_t *self = &world->broker->depot;
    depot_job_t **at = &self->jobs;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = job;
    job->next = NULL;
    job->due_ms = world->mono_ms;
}

static void job_ran (world_t *world, depot_job_t *job)
{
    job->asks = false;
    job->ran = true;
    job->due_ms = world->mono_ms + rng_between (&world->rng, 0, LATENCY_MS_MAX);
}

/* The database has answered the job that waits. */
static void hear_answer (world_t *world, depot_job_t *job, const answer_t *answer)
{
    bool good = answer->code == ANSWER_OK;
    job->asks = false;
    if (job->kind == JOB_ERRAND && !good) {
        not_kept (world, job, answer->code);
    } else if (job->kind == JOB_ERRAND && job->asked == ASK_BLOB_READ) {
        read_stored (job, answer);
    } else if (job->kind == JOB_ERRAND) {
        kept (world, job, answer);
    } else if (job->kind == JOB_SWEEP && good && answer->number != 0) {
        ask (world, job, ASK_BLOB_SWEEP, &(vault_ask_t){.number = answer->number});
    } else if (job->kind == JOB_COLLECT_STORED) {
        world->broker->depot.going_stored[job->blob] = (sim_going_t){.at_ms = 0};
    }
    if (job->turns) {
        go_behind (world, job);
    } else if (!job->asks) {
        job_ran (world, job);
    }
}

static void hear (world_t *world, depot_job_t *job)
{
    host_t *host = world->broker->host;
    answer_t answer;
    answer_code_t code = talk_answer (world, &host->blobs, &answer);
    if (code != ANSWER_NONE) {
        host->blobs_lost = code == ANSWER_AWAY;
        hear_answer (world, job, &answer);
    }
}

static void run_job (world_t *world, depot_job_t *job)
{
    bool turns = job->turns;
    job->turns = false;
    switch (job->kind) {
    case JOB_ERRAND:
        if (turns) {
            put_on (world, job);
        } else {
            run_errand (world, job);
        }
        break;
    case JOB_COLLECT: collect (world, job); break;
    case JOB_COLLECT_STORED:
        ask (world, job, ASK_BLOB_REMOVE,
             &(vault_ask_t){.blob = job->blob, .touched_ms = job->touched});
        break;
    case JOB_SWEEP: find_torn (world, job); break;
    }
    if (!job->asks) {
        job_ran (world, job);
    }
}

/* The news reaches the server. */
static void finish_job (world_t *world, const depot_job_t *job)
{
    if (job->kind == JOB_ERRAND) {
        if (job->errand->whole) {
            upload_of (world, job->errand)->told_ms = world->mono_ms;
        }
        engine_errand_done (world->broker->engine, job->errand, broker_now (world));
        world->broker->tick_wanted = true;
    }
}

void depot_step (world_t *world)
{
    sim_depot_t *self = &world->broker->depot;
    errand_t *errand;
    while ((errand = engine_errand_next (world->broker->engine)) != NULL) {
        add_job (world, JOB_ERRAND)->errand = errand;
    }
    while (self->jobs != NULL && self->jobs->ran && world->mono_ms >= self->jobs->due_ms) {
        depot_job_t *job = self->jobs;
        self->jobs = job->next;
        finish_job (world, job);
        free (job);
    }
    if (world->mono_ms > self->look_ms) {
        self->look_ms = world->mono_ms;
        judge_left (world);
        look_at_stored (world);
    }
    for (depot_job_t *job = self->jobs, *next; job != NULL; job = next) {
        next = job->next;
        if (job->asks) {
            hear (world, job);
        } else if (!job->ran && world->mono_ms >= job->due_ms) {
            run_job (world, job);
        }
        if (!job->ran) {
            break; /* one after the other */
        }
    }
}

int64_t depot_next_ms (const world_t *world)
{
    int64_t next = SIM_END_OF_TIME;
    for (const depot_job_t *job = world->broker->depot.jobs; job != NULL; job = job->next) {
        int64_t own = job->asks ? talk_next_ms (world, &world->broker->host->blobs) : job->due_ms;
        next = own < next ? own : next;
        if (!job->ran) {
            break; /* what is behind it waits */
        }
    }
    return next;
}

/* The broker is gone, and with it what was not done. An upload may lose its end. */
void depot_crash (world_t *world)
{
    sim_depot_t *self = &world->broker->depot;
    while (self->jobs != NULL) {
        depot_job_t *job = self->jobs;
        self->jobs = job->next;
        free (job); /* the errand is the engine's */
    }
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        self->files[i].going = false;
        self->going_stored[i] = (sim_going_t){.at_ms = 0};
        self->puts[i] = (sim_put_t){.number = 0};
    }
    for (uint32_t i = 0; world->faults && i < 4 * SIM_BLOBS; i++) {
        sim_upload_t *upload = &self->uploads[i / SIM_BLOBS][i % SIM_BLOBS];
        upload->told_ms = 0;
        if (upload->units > 0 && upload->units < blobs_units (i % SIM_BLOBS) &&
            rng_chance (&world->rng, 300)) {
            upload->units = rng_below (&world->rng, upload->units);
        }
    }
    if (world->options.damage > 0 && world->faults) {
        self->files[rng_below (&world->rng, SIM_BLOBS)].damaged = true;
    }
}
