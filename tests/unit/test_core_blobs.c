/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the engine decides about blobs: who may upload, name and read one, and how long its file is
 * needed. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

enum { SUBJECT = 1, OTHER = 2, WORKER = 100, HOUR_MS = 60 * 60 * 1000, LEASE_MS = 30000 };

static uint8_t hash[TMQ_BLOB_HASH_BYTES] = {1, 2, 3};
enum { BYTES = 1000000 };

static Taskmq__Blob blob_of (uint64_t bytes)
{
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = (ProtobufCBinaryData){sizeof (hash), hash};
    blob.bytes = bytes;
    return blob;
}

static uint64_t send_begin (rig_t *rig, size_t peer)
{
    Taskmq__Blob blob = blob_of (BYTES);
    Taskmq__BlobBegin begin = TASKMQ__BLOB_BEGIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    begin.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_BEGIN;
    request.blob_begin = &begin;
    return rig_send (rig, peer, &request, NULL, 0);
}

static uint64_t send_chunk (rig_t *rig, size_t peer, const char *bytes)
{
    Taskmq__Blob blob = blob_of (BYTES);
    Taskmq__BlobChunk chunk = TASKMQ__BLOB_CHUNK__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    chunk.blob = &blob;
    chunk.chunk_bytes = (uint32_t) strlen (bytes);
    request.op_case = TASKMQ__REQUEST__OP_BLOB_CHUNK;
    request.blob_chunk = &chunk;
    return rig_send (rig, peer, &request, bytes, strlen (bytes));
}

static uint64_t send_read_part (rig_t *rig, size_t peer, unsigned n, uint32_t part)
{
    tmq_id_t id = rig_id (n);
    Taskmq__BlobRead read = TASKMQ__BLOB_READ__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    read.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    read.part = part;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_READ;
    request.blob_read = &read;
    return rig_send (rig, peer, &request, NULL, 0);
}

static uint64_t send_read (rig_t *rig, size_t peer, unsigned n)
{
    return send_read_part (rig, peer, n, 1);
}

/* The files' thread has done it. */
static void finish (rig_t *rig, bool whole)
{
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    Taskmq__BlobAt at = TASKMQ__BLOB_AT__INIT;
    at.whole = whole;
    errand->whole = whole;
    errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_AT, &at.base);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
}

static void upload (rig_t *rig, size_t peer)
{
    send_begin (rig, peer);
    finish (rig, true);
}

static uint64_t submit_as (rig_t *rig, size_t peer, unsigned n, uint64_t bytes)
{
    Taskmq__Blob blob = blob_of (bytes);
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) (uintptr_t) "q";
    extra.payload_blob = &blob;
    spec.extra = &extra;
    uint64_t request = rig_submit_spec (rig, peer, n, &spec, "");
    rig_settle (rig);
    return request;
}

static uint32_t submit_code (rig_t *rig, size_t peer, unsigned n)
{
    uint64_t request = submit_as (rig, peer, n, BYTES);
    return rig_reply (rig, peer, request)->reply->submitted->items[0]->code;
}

static void an_upload_is_an_errand (void **state)
{
    rig_t *rig = *state;
    uint64_t begun = send_begin (rig, 0);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_int_equal (errand->op, TASKMQ__REQUEST__OP_BLOB_BEGIN);
    assert_memory_equal (errand->blob, hash, sizeof (hash));
    assert_int_equal (errand->blob_bytes, BYTES);
    assert_string_equal (errand->ns, "default");
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, begun), TMQ_OK);
    send_chunk (rig, 0, "some bytes");
    errand = engine_errand_next (rig->engine);
    assert_int_equal (errand->op, TASKMQ__REQUEST__OP_BLOB_CHUNK);
    assert_int_equal (buf_length (errand->bytes), 10);
    assert_memory_equal (buf_bytes (errand->bytes), "some bytes", 10);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
}

static uint64_t send_drop (rig_t *rig, size_t peer)
{
    Taskmq__Blob blob = blob_of (BYTES);
    Taskmq__BlobDrop drop = TASKMQ__BLOB_DROP__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    drop.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_DROP;
    request.blob_drop = &drop;
    return rig_send (rig, peer, &request, NULL, 0);
}

/* It is often the last thing that a client says. */
static void it_is_done_though_its_link_ends (void **state)
{
    rig_t *rig = *state;
    send_begin (rig, 0);
    send_drop (rig, 0);
    rig_goodbye (rig, 0);
    rig_settle (rig);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    assert_int_equal (errand->op, TASKMQ__REQUEST__OP_BLOB_DROP);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    assert_null (engine_errand_next (rig->engine));
}

/* What comes of it is the files' thread's; nobody may name the blob for it. */
static void an_upload_is_taken_back (void **state)
{
    rig_t *rig = *state;
    uint64_t asked = send_drop (rig, 0);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_int_equal (errand->op, TASKMQ__REQUEST__OP_BLOB_DROP);
    assert_memory_equal (errand->blob, hash, sizeof (hash));
    assert_int_equal (errand->blob_bytes, BYTES);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, asked), TMQ_OK);
    assert_int_equal (submit_code (rig, 0, 1), TMQ_NO_BLOB);
}

/* Four of a link are under way at most. */
static void uploads_have_limits (void **state)
{
    rig_t *rig = *state;
    for (size_t i = 0; i < 4; i++)
        send_chunk (rig, 0, "x");
    uint64_t fifth = send_chunk (rig, 0, "x");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, fifth), TMQ_LIMIT);
    for (size_t i = 0; i < 4; i++)
        finish (rig, false);
}

/* However many links somebody has, others find a place. */
static void nobody_has_all_places (void **state)
{
    rig_t *rig = *state;
    uint64_t newest = 0;
    size_t given = 0;
    for (size_t peer = 2; peer < 10; peer++)
        rig_link (rig, peer, "default");
    for (size_t peer = 0; peer < 9; peer++)
        for (size_t i = 0; i < 4; i++)
            newest = send_chunk (rig, peer, "x");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 8, newest), TMQ_OVERLOADED); /* the library asks again */
    assert_true (rig_reply (rig, 8, newest)->reply->retry_after_ms > 0);
    rig->peers[10].identity = "uid:9";
    rig_link (rig, 10, "default");
    uint64_t other = send_chunk (rig, 10, "x");
    rig_settle (rig);
    assert_null (rig_reply (rig, 10, other)); /* it is under way */
    for (errand_t *errand = engine_errand_next (rig->engine); errand != NULL;
         errand = engine_errand_next (rig->engine), given++)
        engine_errand_done (rig->engine, errand, rig->now);
    assert_int_equal (given, 33);
}

/* What a crash would take back is told to nobody. */
static void a_read_waits_for_what_names_the_blob (void **state)
{
    rig_t *rig = *state;
    upload (rig, 0);
    Taskmq__Blob blob = blob_of (BYTES);
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) (uintptr_t) "q";
    extra.payload_blob = &blob;
    spec.extra = &extra;
    rig_submit_spec (rig, 0, SUBJECT, &spec, "");
    uint64_t read = send_read (rig, 0, SUBJECT);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    rig_take (rig);
    engine_errand_done (rig->engine, errand, rig->now);
    assert_null (rig_reply (rig, 0, read));
    rig_durable (rig);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, read), TMQ_OK);
}

/* A hash alone gives nobody anything. */
static void only_who_uploaded_it_names_it (void **state)
{
    rig_t *rig = *state;
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_NO_BLOB);
    upload (rig, 0);
    rig->peers[2].identity = "uid:9";
    rig_link (rig, 2, "default");
    assert_int_equal (submit_code (rig, 2, OTHER), TMQ_NO_BLOB);
    rig_link (rig, 3, "elsewhere");
    assert_int_equal (submit_code (rig, 3, OTHER), TMQ_NO_BLOB);
    uint64_t shorter = submit_as (rig, 0, SUBJECT, BYTES - 1);
    assert_int_equal (rig_reply (rig, 0, shorter)->reply->submitted->items[0]->code, TMQ_NO_BLOB);
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_OK);
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_OK); /* existing */
    rig_advance (rig, HOUR_MS / 2);
    assert_int_equal (submit_code (rig, 0, OTHER), TMQ_NO_BLOB); /* too late … */
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_OK);    /* … for a new one only */
}

static void who_may_read_the_payload_reads_it (void **state)
{
    rig_t *rig = *state;
    upload (rig, 0);
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_OK);
    rig_submit (rig, 0, OTHER, "q", "small");
    rig_settle (rig);
    uint64_t read = send_read (rig, 0, SUBJECT);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    assert_memory_equal (errand->blob, hash, sizeof (hash));
    assert_int_equal (errand->blob_bytes, BYTES);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, read), TMQ_OK);
    uint64_t none = send_read (rig, 0, OTHER);
    uint64_t nobody = send_read (rig, 0, 77);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, none), TMQ_NO_BLOB);
    assert_int_equal (rig_code (rig, 0, nobody), TMQ_NOT_FOUND);
    assert_null (engine_errand_next (rig->engine));
    rig_link (rig, 2, "elsewhere");
    uint64_t foreign = send_read (rig, 2, SUBJECT);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 2, foreign), TMQ_NOT_FOUND);
}

static void a_worker_is_told_of_it (void **state)
{
    rig_t *rig = *state;
    upload (rig, 0);
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_OK);
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    assert_int_equal (assignment->payload_bytes, 0);
    assert_int_equal (assignment->extra->payload_blob->bytes, BYTES);
    assert_memory_equal (assignment->extra->payload_blob->hash.data, hash, sizeof (hash));
}

/* Its bytes are bytes of the namespace's live tasks. */
static void its_bytes_count (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_bytes_max = BYTES + BYTES / 2;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    upload (rig, 0);
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_OK);
    assert_int_equal (submit_code (rig, 0, OTHER), TMQ_LIMIT);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_int_equal (submit_code (rig, 0, OTHER), TMQ_OK);
    rig_free (rig);
}

static const Taskmq__CleanupPage *clean (rig_t *rig, uint64_t pass)
{
    Taskmq__Cleanup body = TASKMQ__CLEANUP__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t id[16] = {(uint8_t) (pass + 1)};
    body.pass = pass;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    request.op_case = TASKMQ__REQUEST__OP_CLEANUP;
    request.cleanup = &body;
    uint64_t sent = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    return rig_reply (rig, 0, sent)->reply->cleanup_page;
}

/* … and of those that have ended. */
static void its_bytes_count_for_retention (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.retention.max_bytes = BYTES + BYTES / 2;
    rig_t *rig = rig_new_with (&config);
    Taskmq__Blob blob = blob_of (BYTES);
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) (uintptr_t) "q";
    spec.ttl_never = true;
    spec.extra = &extra;
    extra.payload_blob = &blob;
    rig_link (rig, 0, "default");
    upload (rig, 0);
    for (unsigned n = SUBJECT; n < SUBJECT + 2; n++) {
        rig_submit_spec (rig, 0, n, &spec, "");
        rig_settle (rig);
        rig_cancel (rig, 0, n);
        rig_settle (rig);
    }
    const Taskmq__CleanupPage *page = clean (rig, clean (rig, 0)->pass);
    assert_int_equal (page->removed, 1);
    assert_int_equal (page->removed_bytes, BYTES);
    rig_free (rig);
}

static bool needed (rig_t *rig)
{
    return engine_blob_is_needed (rig->engine, hash);
}

static void purge (rig_t *rig, unsigned n)
{
    rig_cancel (rig, 0, n);
    rig_settle (rig);
    uint64_t request = rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, n, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, request), TMQ_OK);
}

static void its_file_is_needed_while_a_task_names_it (void **state)
{
    rig_t *rig = *state;
    assert_false (needed (rig));
    upload (rig, 0);
    assert_true (needed (rig)); /* somebody may name it now */
    submit_code (rig, 0, SUBJECT);
    submit_code (rig, 0, OTHER);
    rig_advance (rig, 3 * HOUR_MS);
    assert_true (needed (rig));
    rig_write (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_true (needed (rig)); /* a restart knows it */
    rig_advance (rig, 3 * HOUR_MS);
    purge (rig, SUBJECT);
    rig_advance (rig, 3 * HOUR_MS);
    assert_true (needed (rig)); /* the other one has it still */
    purge (rig, OTHER);
    assert_true (needed (rig)); /* for an hour */
    rig_advance (rig, HOUR_MS + 1000);
    assert_false (needed (rig));
    rig_write (rig);
    rig_restart (rig);
    assert_false (needed (rig));
}

/* A crash brings back a task whose removal was not durable: its file must be there then. */
static void a_removal_that_is_not_durable_removes_nothing (void **state)
{
    rig_t *rig = *state;
    upload (rig, 0);
    submit_code (rig, 0, SUBJECT);
    rig_cancel (rig, 0, SUBJECT);
    rig_advance (rig, HOUR_MS / 2);
    assert_true (needed (rig)); /* the claim is over */
    rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    rig_take (rig);
    rig->now.mono_ms += 2 * HOUR_MS;
    send_read (rig, 0, 77); /* tells the time */
    assert_true (needed (rig));
    rig_durable (rig);
    assert_false (needed (rig));
}

static void a_claim_ends (void **state)
{
    rig_t *rig = *state;
    upload (rig, 0);
    rig_advance (rig, HOUR_MS / 4);
    upload (rig, 0); /* again */
    rig_advance (rig, HOUR_MS / 4);
    assert_int_equal (submit_code (rig, 0, SUBJECT), TMQ_OK);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (submit_code (rig, 0, OTHER), TMQ_NO_BLOB); /* to be begun again, at no cost */
    upload (rig, 0);
    assert_int_equal (submit_code (rig, 0, OTHER), TMQ_OK);
}

/* Results. */

static const Taskmq__Assignment *claim (rig_t *rig, unsigned n)
{
    size_t before = rig_assignments (rig, 1);
    rig_submit (rig, 0, n, "q", "payload");
    if (before == 0)
        rig_register (rig, 1, WORKER, "q", 1);
    else
        rig_worker_credit (rig, 1, WORKER, before, 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), before + 1);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, before)->assignment;
    rig_started (rig, 1, assignment);
    rig_worker_credit (rig, 1, WORKER, assignment->number, 0);
    rig_run (rig);
    return assignment;
}

static tmq_code_t complete (rig_t *rig, const Taskmq__Assignment *assignment)
{
    Taskmq__Blob blob = blob_of (BYTES);
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__Complete complete = TASKMQ__COMPLETE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    lease.task_id = assignment->task_id;
    lease.attempt = assignment->attempt;
    lease.secret = assignment->secret;
    complete.lease = &lease;
    complete.result_blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_COMPLETE;
    request.complete = &complete;
    uint64_t number = rig_send (rig, 1, &request, NULL, 0);
    rig_settle (rig);
    return rig_code (rig, 1, number);
}

static void assert_result_is_the_blob (rig_t *rig, unsigned n)
{
    uint64_t request = rig_result (rig, 0, n);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    const Taskmq__Task *task = rig_reply (rig, 0, request)->reply->task;
    assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
    assert_int_equal (task->outcome, TMQ_OUTCOME_RESULT);
    assert_string_equal (task->result_type, "application/octet-stream");
    assert_int_equal (task->extra->result_blob->bytes, BYTES);
    assert_memory_equal (task->extra->result_blob->hash.data, hash, sizeof (hash));
    request = send_read_part (rig, 0, n, 2);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    assert_memory_equal (errand->blob, hash, sizeof (hash));
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
}

static void a_result_may_be_a_blob (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claim (rig, SUBJECT);
    uint64_t early = send_read_part (rig, 0, SUBJECT, 2);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, early), TMQ_NO_BLOB);
    assert_int_equal (complete (rig, assignment), TMQ_NO_BLOB);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_WORKING); /* nothing was done */
    upload (rig, 1);
    assert_int_equal (complete (rig, assignment), TMQ_OK);
    assert_result_is_the_blob (rig, SUBJECT);
    rig_advance (rig, HOUR_MS);
    assert_int_equal (complete (rig, assignment), TMQ_OK); /* a repeat needs no claim */
    rig_advance (rig, 2 * HOUR_MS);
    assert_true (needed (rig));
    rig_write (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_result_is_the_blob (rig, SUBJECT);
    uint64_t request = rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, request), TMQ_OK);
    rig_advance (rig, HOUR_MS + 1000);
    assert_false (needed (rig));
}

/* Payload and result may be the same one. */
static void two_names_are_two (void **state)
{
    rig_t *rig = *state;
    upload (rig, 0);
    assert_int_equal (submit_code (rig, 0, OTHER), TMQ_OK);
    rig_cancel (rig, 0, OTHER);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = claim (rig, SUBJECT);
    assert_int_equal (complete (rig, assignment), TMQ_OK);
    purge (rig, OTHER);
    rig_advance (rig, 3 * HOUR_MS);
    assert_true (needed (rig));
}

static uint64_t adopt (rig_t *rig, unsigned n, uint32_t attempt)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Adopt adopt = TASKMQ__ADOPT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    adopt.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    adopt.attempt = attempt;
    request.op_case = TASKMQ__REQUEST__OP_ADOPT;
    request.adopt = &adopt;
    return rig_send (rig, 0, &request, NULL, 0);
}

/* One that comes too late is kept as any other, if it is not larger than all that are kept. */
static void a_late_one_is_kept_and_adopted (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claim (rig, SUBJECT);
    rig_advance (rig, LEASE_MS + 1000);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
    upload (rig, 1);
    assert_int_equal (complete (rig, assignment), TMQ_STALE_LEASE);
    rig_advance (rig, 3 * HOUR_MS);
    assert_true (needed (rig));
    rig_write (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_true (needed (rig));
    uint64_t request = adopt (rig, SUBJECT, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    assert_result_is_the_blob (rig, SUBJECT);
    rig_advance (rig, 3 * HOUR_MS);
    assert_true (needed (rig));
}

static void what_is_kept_ends (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_kept_bytes_max = BYTES;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    const Taskmq__Assignment *assignment = claim (rig, SUBJECT);
    rig_advance (rig, LEASE_MS + 1000);
    upload (rig, 1);
    assert_int_equal (complete (rig, assignment), TMQ_STALE_LEASE);
    rig_advance (rig, 3 * HOUR_MS);
    assert_true (needed (rig));
    purge (rig, SUBJECT); /* what is kept goes with its task */
    rig_advance (rig, HOUR_MS + 1000);
    assert_false (needed (rig));
    config.space_kept_bytes_max = BYTES - 1;
    engine_configure (rig->engine, &config);
    assignment = claim (rig, OTHER);
    rig_advance (rig, LEASE_MS + 1000);
    upload (rig, 1);
    assert_int_equal (complete (rig, assignment), TMQ_STALE_LEASE);
    rig_advance (rig, HOUR_MS);
    assert_true (needed (rig)); /* the claim has ended, and it rests */
    rig_advance (rig, HOUR_MS + 1000);
    assert_false (needed (rig)); /* it was not kept */
    rig_free (rig);
}

/* Of those that nobody names any more few are remembered. */
static void few_of_them_rest (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.blobs_rest_max = 2;
    rig_t *rig = rig_new_with (&config);
    const uint8_t first = hash[0];
    rig_link (rig, 0, "default");
    for (uint8_t i = 0; i < 3; i++) {
        hash[0] = (uint8_t) (first + i);
        send_begin (rig, 0);
        finish (rig, true);
    }
    for (uint8_t i = 0; i < 3; i++) {
        hash[0] = (uint8_t) (first + i);
        assert_true (engine_blob_is_needed (rig->engine, hash));
    }
    rig_advance (rig, HOUR_MS / 2 + 1000); /* the claims are over */
    for (uint8_t i = 0; i < 3; i++) {
        hash[0] = (uint8_t) (first + i);
        assert_int_equal (engine_blob_is_needed (rig->engine, hash), i > 0);
    }
    hash[0] = first;
    rig_free (rig);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (an_upload_is_an_errand),
        TEST (an_upload_is_taken_back),
        TEST (it_is_done_though_its_link_ends),
        TEST (uploads_have_limits),
        TEST (nobody_has_all_places),
        TEST (a_read_waits_for_what_names_the_blob),
        TEST (only_who_uploaded_it_names_it),
        TEST (who_may_read_the_payload_reads_it),
        TEST (a_worker_is_told_of_it),
        cmocka_unit_test (its_bytes_count),
        cmocka_unit_test (its_bytes_count_for_retention),
        TEST (its_file_is_needed_while_a_task_names_it),
        TEST (a_removal_that_is_not_durable_removes_nothing),
        TEST (a_claim_ends),
        TEST (a_result_may_be_a_blob),
        TEST (two_names_are_two),
        TEST (a_late_one_is_kept_and_adopted),
        cmocka_unit_test (what_is_kept_ends),
        cmocka_unit_test (few_of_them_rest),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
