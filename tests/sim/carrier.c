/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A carrier uploads blobs, and takes some back, so that the submitters and workers of its identity
 * may name them, and reads those of tasks. Its links are cut in the middle of an upload, which then
 * goes on. A unit, a byte in a frame, stands for so many bytes that a blob is more than a frame
 * holds. */
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "sim.h"

enum {
    PAUSE_MS_MAX = 40,
    OPEN_MAX = 4,
    UNITS_MAX = 19,  /* of a chunk, or of a piece that is read */
    LASTING_BY = 27, /* of those that stay few have blobs, so that many small ones do, too */
    NAMED_BY = 2,    /* every so manieth task has a blob for a payload, … */
    BROUGHT_BY = 2,  /* … or brings one as its result */
    DROPS_BY = 4,    /* uploads are taken back in every so manieth seed: what others find stays */
    OFTEN = 6,       /* the first blobs are uploaded all the time, the others now and then */
    YOUNG_MS = 2000,
    PART_PAYLOAD = 1,
    PART_RESULT = 2
};

typedef struct carrier {
    uint32_t blob; /* that is being uploaded */
    bool begun;    /* offset is where the broker wants to go on */
    uint32_t units;
} carrier_t;

/* What a read was meant to show. */
typedef struct reading {
    known_t *task;
    uint32_t part;
    uint32_t from;
    uint32_t units;
    bool accepted; /* before it was asked */
} reading_t;

/* Which tasks name what. */

static bool may_have (const known_t *task)
{
    return !task->lasting || model_index (task->id.bytes) % LASTING_BY == 0;
}

void carrier_draw (const client_t *client, known_t *task)
{
    uint32_t index = model_index (task->id.bytes);
    if (index % NAMED_BY == 1 && task->dedup_key[0] == '\0' && may_have (task)) {
        task->blob = 1 + depot_draw (client, index / NAMED_BY % SIM_BLOBS);
        task->payload_bytes = 0;
        if (index % 4 == 1 && !task->lasting) { /* so that the last one that names it goes soon */
            task->ttl_ms = YOUNG_MS + index * 977u % 9000;
        }
    }
}

void carrier_fill (const known_t *task, bool other_content, after_room_t *room)
{
    if (task->blob > 0) {
        blobs_name ((task->blob - 1 + other_content) % SIM_BLOBS, &room->name);
        room->extra.payload_blob = &room->name.blob;
    }
}

uint32_t carrier_brings (const client_t *client, const known_t *task, uint32_t attempt)
{
    uint32_t index = model_index (task->id.bytes);
    return index % BROUGHT_BY == 0 && may_have (task)
               ? depot_draw (client, (index + attempt) % SIM_BLOBS)
               : SIM_BLOBS;
}

void carrier_check_assigned (world_t *world, const known_t *task,
                             const Taskmq__Assignment *assignment)
{
    const Taskmq__Blob *blob = assignment->extra == NULL ? NULL : assignment->extra->payload_blob;
    uint32_t named = blob == NULL ? 0 : 1 + blobs_number (blob);
    if (named != task->blob) {
        sim_fail (world, "I1: task %u came with blob %u, not %u", model_index (task->id.bytes),
                  named, task->blob);
    }
}

/* Uploads. */

static uint32_t draw_blob (rng_t *rng)
{
    return rng_below (rng, rng_chance (rng, 800) ? OFTEN : SIM_BLOBS);
}

static void begin (client_t *client, carrier_t *self)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__BlobBegin ask = TASKMQ__BLOB_BEGIN__INIT;
    blob_name_t name;
    blobs_name (self->blob, &name);
    ask.blob = &name.blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_BEGIN;
    request.blob_begin = &ask;
    client_request (client, &request, NULL, 0)->context = self->blob;
}

static void send_chunk (client_t *client, const carrier_t *self)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__BlobChunk chunk = TASKMQ__BLOB_CHUNK__INIT;
    blob_name_t name;
    uint8_t bytes[UNITS_MAX];
    uint32_t left = blobs_units (self->blob) - self->units;
    chunk.chunk_bytes = 1 + rng_below (&client->world->rng, left < UNITS_MAX ? left : UNITS_MAX);
    for (uint32_t i = 0; i < chunk.chunk_bytes; i++) {
        bytes[i] = blobs_byte (self->blob, self->units + i);
    }
    blobs_name (self->blob, &name);
    chunk.blob = &name.blob;
    chunk.offset = (uint64_t) self->units * SIM_UNIT_BYTES;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_CHUNK;
    request.blob_chunk = &chunk;
    client_request (client, &request, bytes, chunk.chunk_bytes)->context = self->blob;
}

static void drop (client_t *client, const carrier_t *self)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__BlobDrop ask = TASKMQ__BLOB_DROP__INIT;
    blob_name_t name;
    blobs_name (self->blob, &name);
    ask.blob = &name.blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_DROP;
    request.blob_drop = &ask;
    client_request (client, &request, NULL, 0)->context = self->blob;
}

/* Another carrier of the identity may have brought the rest, or taken it back. */
static void dropped (client_t *client, const pending_t *pending, const Taskmq__Reply *reply)
{
    carrier_t *self = client->state;
    if (reply->code != TMQ_OK && reply->code != TMQ_NO_BLOB && reply->code != TMQ_CONFLICT) {
        sim_fail (client->world, "that blob %u is taken back is answered %u %s",
                  (unsigned) pending->context, reply->code, reply->text);
    } else if (pending->context == self->blob) {
        self->begun = false;
        self->blob = draw_blob (&client->world->rng);
    }
}

static void uploaded (client_t *client, const pending_t *pending, const Taskmq__Reply *reply)
{
    carrier_t *self = client->state;
    if (reply->code != TMQ_OK || reply->blob_at == NULL) {
        sim_fail (client->world, "the upload of blob %u is answered %u %s",
                  (unsigned) pending->context, reply->code, reply->text);
    } else if (pending->context == self->blob) {
        self->begun = !reply->blob_at->whole;
        self->units = (uint32_t) (reply->blob_at->offset / SIM_UNIT_BYTES);
        if (reply->blob_at->whole) {
            self->blob = draw_blob (&client->world->rng);
        } else if (self->units >= blobs_units (self->blob)) {
            sim_fail (client->world, "R7: all of blob %u is there, and it is not whole",
                      self->blob);
        }
    }
}

/* Reads. */

static void ask_for_part (client_t *client)
{
    rng_t *rng = &client->world->rng;
    known_t *task = submitter_draw_known (client);
    uint32_t part = rng_chance (rng, 500) ? PART_PAYLOAD : PART_RESULT;
    if (task == NULL || (part == PART_PAYLOAD && task->blob == 0)) {
        return;
    }
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__BlobRead ask = TASKMQ__BLOB_READ__INIT;
    reading_t *reading = calloc (1, sizeof *reading);
    *reading = (reading_t){task, part, rng_below (rng, 30), 1 + rng_below (rng, UNITS_MAX),
                           task->accepted && task->alias == 0};
    ask.task_id.data = task->id.bytes;
    ask.task_id.len = sizeof (tmq_id_t);
    ask.part = part;
    ask.offset = (uint64_t) reading->from * SIM_UNIT_BYTES;
    ask.limit = reading->units * SIM_UNIT_BYTES;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_READ;
    request.blob_read = &ask;
    client_request (client, &request, NULL, 0)->data = reading;
}

static void check_bytes (world_t *world, const reading_t *reading, uint32_t blob,
                         const Taskmq__Part *part, const uint8_t *body)
{
    uint32_t units = blobs_units (blob);
    uint32_t from = reading->from < units ? reading->from : units;
    uint32_t upto = from + reading->units < units ? from + reading->units : units;
    bool good = part->body == upto - from && part->total == (uint64_t) units * SIM_UNIT_BYTES &&
                part->more == (upto < units);
    for (uint32_t i = from; good && i < upto; i++) {
        good = body[i - from] == blobs_byte (blob, i);
    }
    if (!good) {
        sim_fail (world, "R7: part %u of task %u is read with other bytes than blob %u has",
                  reading->part, model_index (reading->task->id.bytes), blob);
    }
}

/* A task that is there, and names a blob that is whole, has its bytes; a damaged one is named. */
static void was_read (world_t *world, const reading_t *reading, const Taskmq__Reply *reply,
                      const uint8_t *body)
{
    uint32_t index = model_index (reading->task->id.bytes);
    const record_t *record = world->model->durable.rows[index].record;
    uint32_t blob = record == NULL ? SIM_BLOBS : blobs_named (record, reading->part == PART_RESULT);
    if (reply->code == TMQ_OK && record != NULL && blob == SIM_BLOBS) {
        sim_fail (world, "A7: part %u of task %u is read, and none is durable", reading->part,
                  index);
    } else if (reply->code == TMQ_OK && record != NULL) {
        check_bytes (world, reading, blob, reply->blob_part, body);
    } else if (reply->code == TMQ_NO_BLOB && record != NULL && blob < SIM_BLOBS &&
               reading->part == PART_PAYLOAD && reading->accepted &&
               !(world->broker->depot.files[blob].damaged &&
                 strstr (reply->text, "damaged") != NULL)) {
        sim_fail (world, "R8: the payload of task %u, blob %u, cannot be read: %s", index, blob,
                  reply->text);
    }
}

/* The actor. */

static void carrier_start (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (carrier_t));
    }
    carrier_t *self = client->state; /* a new process knows nothing */
    *self = (carrier_t){.blob = draw_blob (&client->world->rng)};
}

static void carrier_tick (client_t *client)
{
    carrier_t *self = client->state;
    rng_t *rng = &client->world->rng;
    client->next_ms = client->world->mono_ms + rng_between (rng, 1, PAUSE_MS_MAX);
    if (!client->world->faults || client_open (client) >= OPEN_MAX) {
        return;
    }
    if (rng_chance (rng, 300)) {
        ask_for_part (client);
    } else if (!self->begun || rng_chance (rng, 100)) {
        begin (client, self);
    } else if (client->world->options.seed % DROPS_BY == 2 && rng_chance (rng, 30)) {
        drop (client, self);
    } else {
        send_chunk (client, self);
    }
}

static void carrier_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                           const uint8_t *body, size_t body_bytes)
{
    (void) body_bytes;
    if (pending->op == TASKMQ__REQUEST__OP_BLOB_READ) {
        was_read (client->world, pending->data, reply, body);
    } else if (pending->op == TASKMQ__REQUEST__OP_BLOB_DROP) {
        dropped (client, pending, reply);
    } else {
        uploaded (client, pending, reply);
    }
}

const actor_t carrier_actor = {
    .name = "carrier", .start = carrier_start, .tick = carrier_tick, .reply = carrier_reply};
