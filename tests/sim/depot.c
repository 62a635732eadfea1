/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The server's files of blobs, in memory: uploads that stand where a crash left them, and blobs
 * that are collected when they stood still and the engine says that nobody needs them. What is
 * asked is done in its order by a thread that is slow, as broker/blobs does it.
 *
 * The invariants: what is durable names only blobs that are whole, so nothing that a task names is
 * ever collected; and the row of a blob counts exactly those that name it. */
#include <stdlib.h>
#include <string.h>

#include "core/data/blob_row.h"
#include "core/data/extra.h"
#include "sim.h"
#include "wire.h"

enum {
    IDLE_MS = 300, /* a file stays for so long after it was touched */
    CLAIM_MS = 2500,
    LATENCY_MS_MAX = 8,
    COLLECTING_MS_MAX = 3
};

typedef enum job_kind { JOB_ERRAND, JOB_COLLECT } job_kind_t;

typedef struct depot_job {
    job_kind_t kind;
    errand_t *errand; /* the engine's */
    uint32_t blob;    /* of COLLECT, … */
    int64_t touched;  /* … as it was looked at */
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
    return &world->depot.uploads[place_of (errand->ns, errand->identity)][errand->blob[0]];
}

uint32_t depot_draw (const client_t *client, uint32_t wanted)
{
    const world_t *world = client->world;
    const sim_upload_t *uploads = world->depot.uploads[place_of (client->ns, client->identity)];
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        uint32_t blob = (wanted + i) % SIM_BLOBS;
        if (uploads[blob].told_ms > 0 && world->mono_ms - uploads[blob].told_ms < CLAIM_MS) {
            return blob;
        }
    }
    return wanted;
}

static void answer_at (world_t *world, errand_t *errand, const sim_upload_t *upload)
{
    sim_file_t *file = &world->depot.files[errand->blob[0]];
    Taskmq__BlobAt at = TASKMQ__BLOB_AT__INIT;
    at.whole = upload->units == blobs_units (errand->blob[0]) && file->whole;
    at.offset = (uint64_t) upload->units * SIM_UNIT_BYTES;
    if (at.whole) {
        file->touched_ms = world->mono_ms;
    }
    errand->whole = at.whole;
    errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_AT, &at.base);
}

static void begin (world_t *world, errand_t *errand)
{
    sim_upload_t *upload = upload_of (world, errand);
    uint32_t blob = errand->blob[0];
    if (upload->units == blobs_units (blob) && !world->depot.files[blob].whole) {
        upload->units = 0; /* it was collected meanwhile */
    }
    answer_at (world, errand, upload);
}

static void chunk (world_t *world, errand_t *errand, const Taskmq__BlobChunk *ask)
{
    sim_upload_t *upload = upload_of (world, errand);
    uint32_t blob = errand->blob[0];
    uint32_t from = (uint32_t) (ask->offset / SIM_UNIT_BYTES);
    for (uint32_t i = 0; i < buf_length (errand->bytes); i++) {
        if (buf_bytes (errand->bytes)[i] != blobs_byte (blob, from + i)) {
            sim_fail (world, "R7: a chunk of blob %u has bytes of another one", blob);
        }
        upload->units += from + i == upload->units;
    }
    if (upload->units == blobs_units (blob)) {
        world->depot.files[blob].whole = true;
    }
    answer_at (world, errand, upload);
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

static void read_part (world_t *world, errand_t *errand, const Taskmq__BlobRead *ask)
{
    uint32_t blob = errand->blob[0];
    const sim_file_t *file = &world->depot.files[blob];
    uint8_t bytes[64];
    if (!file->whole || file->damaged) {
        errand_refuse (errand, TMQ_NO_BLOB, "blob %02x is missing or damaged", blob);
        return;
    }
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

static void run_errand (world_t *world, errand_t *errand)
{
    Taskmq__Request *request =
        taskmq__request__unpack (NULL, buf_length (errand->request), buf_bytes (errand->request));
    if (errand->op == TASKMQ__REQUEST__OP_BLOB_BEGIN) {
        begin (world, errand);
    } else if (errand->op == TASKMQ__REQUEST__OP_BLOB_CHUNK) {
        chunk (world, errand, request->blob_chunk);
    } else if (errand->op == TASKMQ__REQUEST__OP_BLOB_DROP) {
        drop (world, errand);
    } else if (errand->op == TASKMQ__REQUEST__OP_BLOB_READ) {
        read_part (world, errand, request->blob_read);
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

void depot_check_durable (world_t *world)
{
    const row_list_t *rows = &world->model->durable.kind_rows;
    uint64_t counts[SIM_BLOBS + 1];
    uint64_t stored[SIM_BLOBS] = {0};
    uint64_t shared[SIM_BLOBS] = {0};
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
        } else if (counts[i] > 0 && !world->depot.files[i].whole) {
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
            if (blobs[k] < SIM_BLOBS && !world->depot.files[blobs[k]].whole) {
                sim_fail (world, "R8: task %u names blob %u, which is not there",
                          model_index (batch->records[i]->id.bytes), blobs[k]);
            }
        }
    }
}

/* Collection. */

static void collect (world_t *world, const depot_job_t *job)
{
    sim_file_t *file = &world->depot.files[job->blob];
    uint64_t counts[SIM_BLOBS + 1];
    file->going = false;
    if (!file->whole || file->touched_ms != job->touched) {
        return; /* somebody has just uploaded it again */
    }
    count_names (world, counts);
    if (counts[job->blob] > 0) {
        sim_fail (world, "R8: blob %u is collected, and %llu name it", job->blob,
                  (unsigned long long) counts[job->blob]);
    }
    sim_log (world, "blob %u is collected", job->blob);
    file->whole = false;
    world->depot.collected++;
}

static depot_job_t *add_job (world_t *world, job_kind_t kind)
{
    depot_job_t **at = &world->depot.jobs;
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
    if (world->depot.jobs != NULL && world->depot.jobs->ran) {
        return;
    }
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        blob_name_t name;
        sim_file_t *file = &world->depot.files[i];
        blobs_name (i, &name);
        if (file->whole && !file->going && world->mono_ms - file->touched_ms >= IDLE_MS &&
            !engine_blob_is_needed (world->broker->engine, name.hash)) {
            depot_job_t *job = add_job (world, JOB_COLLECT);
            job->blob = i;
            job->due_ms = world->mono_ms + rng_between (&world->rng, 0, COLLECTING_MS_MAX);
            file->going = true;
            job->touched = file->touched_ms;
        }
    }
}

static void run_job (world_t *world, depot_job_t *job)
{
    if (job->kind == JOB_ERRAND) {
        run_errand (world, job->errand);
    } else if (job->kind == JOB_COLLECT) {
        collect (world, job);
    }
    job->ran = true;
    job->due_ms = world->mono_ms + rng_between (&world->rng, 0, LATENCY_MS_MAX);
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
    sim_depot_t *self = &world->depot;
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
    }
    for (depot_job_t *job = self->jobs; job != NULL; job = job->next) {
        if (!job->ran && world->mono_ms < job->due_ms) {
            break; /* one after the other */
        }
        if (!job->ran) {
            run_job (world, job);
        }
    }
}

int64_t depot_next_ms (const world_t *world)
{
    int64_t next = SIM_END_OF_TIME;
    for (const depot_job_t *job = world->depot.jobs; job != NULL; job = job->next) {
        next = job->due_ms < next ? job->due_ms : next;
    }
    return next;
}

/* The broker is gone, and with it what was not done. An upload may lose its end. */
void depot_crash (world_t *world)
{
    sim_depot_t *self = &world->depot;
    while (self->jobs != NULL) {
        depot_job_t *job = self->jobs;
        self->jobs = job->next;
        free (job); /* the errand is the engine's */
    }
    for (uint32_t i = 0; i < SIM_BLOBS; i++) {
        self->files[i].going = false;
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
