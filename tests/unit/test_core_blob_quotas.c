/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How many bytes of blobs a principal may have: what counts to whom, from when on and until when.
 * */
#include <stdio.h>
#include <string.h>

#include "core/engine/rooms.h"
#include "core/tasks/blobs.h"
#include "core_rig.h"

enum { ME = 0, OTHER = 1, BOSS = 2, BYTES = 1000000, WORKER = 100, LEASE_MS = 30000 };
enum { GONE_MS = 90 * 60 * 1000 + 1000 }; /* then the file of what nobody names may go */

static char policy_text[256];

static void give (rig_t *rig, const char *options)
{
    snprintf (policy_text, sizeof (policy_text),
              "me uid:1 client(*) %s\nother uid:2 client(*) worker(*)\n", options);
    rig_access (rig, policy_text);
}

static rig_t *stage_new (const char *options)
{
    rig_t *rig = rig_new ();
    rig->peers[ME].identity = "me";
    rig->peers[OTHER].identity = "other";
    give (rig, options);
    rig_link (rig, ME, "default");
    rig_link (rig, OTHER, "default");
    rig_link (rig, BOSS, "default"); /* root: it has no quota */
    rig_use_request_id (1);
    return rig;
}

/* Blobs differ by a number. */
static void make_blob (Taskmq__Blob *out, uint8_t hash[TMQ_BLOB_HASH_BYTES], unsigned which)
{
    memset (hash, 0, TMQ_BLOB_HASH_BYTES);
    hash[0] = (uint8_t) which;
    hash[1] = (uint8_t) (which >> 8);
    taskmq__blob__init (out);
    out->hash = (ProtobufCBinaryData){TMQ_BLOB_HASH_BYTES, hash};
    out->bytes = BYTES;
}

static uint64_t send_begin (rig_t *rig, size_t peer, unsigned which)
{
    Taskmq__Blob blob;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    Taskmq__BlobBegin begin = TASKMQ__BLOB_BEGIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    make_blob (&blob, hash, which);
    begin.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_BEGIN;
    request.blob_begin = &begin;
    return rig_send (rig, peer, &request, NULL, 0);
}

/* What the depot hears of who begins this one. */
static uint64_t has (rig_t *rig, size_t peer, unsigned which, uint64_t *most)
{
    send_begin (rig, peer, which);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    uint64_t bytes = errand->blobs_had;
    if (most != NULL)
        *most = errand->blobs_most;
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    return bytes;
}

static void upload (rig_t *rig, size_t peer, unsigned which)
{
    send_begin (rig, peer, which);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    Taskmq__BlobAt at = TASKMQ__BLOB_AT__INIT;
    at.whole = errand->whole = true;
    errand_reply (errand, TASKMQ__REPLY__BODY_BLOB_AT, &at.base);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
}

static const Taskmq__SubmittedItem *submit (rig_t *rig, size_t peer, unsigned n, unsigned which)
{
    Taskmq__Blob blob;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    make_blob (&blob, hash, which);
    spec.queue = (char *) (uintptr_t) "q";
    extra.payload_blob = &blob;
    spec.extra = &extra;
    uint64_t request = rig_submit_spec (rig, peer, n, &spec, "");
    rig_settle (rig);
    return rig_reply (rig, peer, request)->reply->submitted->items[0];
}

static void bring (rig_t *rig, size_t peer, unsigned n, unsigned which)
{
    upload (rig, peer, which);
    assert_int_equal (submit (rig, peer, n, which)->code, TMQ_OK);
}

static void purge (rig_t *rig, unsigned n)
{
    rig_cancel (rig, BOSS, n);
    rig_settle (rig);
    uint64_t request = rig_change (rig, BOSS, TASKMQ__REQUEST__OP_PURGE, n, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, BOSS, request), TMQ_OK);
}

static size_t shares_of (const rig_t *rig)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        count += rig->kind_rows.rows[i].kind == ROW_KIND_BLOB_SHARE;
    return count;
}

/* From the upload on, once for all tasks, until the last of them is gone; and for each by itself.
 * */
static void what_tasks_name_counts_to_their_owner (void **state)
{
    (void) state;
    uint64_t most;
    rig_t *rig = stage_new ("blobs=2500000B");
    assert_int_equal (has (rig, ME, 1, &most), 0);
    assert_int_equal (most, 2500000);
    upload (rig, ME, 1);
    assert_int_equal (has (rig, ME, 2, NULL), BYTES); /* nobody names it yet */
    assert_int_equal (has (rig, ME, 1, NULL), 0);     /* but itself it costs nothing */
    assert_int_equal (submit (rig, ME, 1, 1)->code, TMQ_OK);
    assert_int_equal (submit (rig, ME, 2, 1)->code, TMQ_OK);
    assert_int_equal (has (rig, ME, 2, NULL), BYTES);
    assert_int_equal (has (rig, ME, 1, NULL), 0);
    assert_int_equal (has (rig, OTHER, 2, &most), 0);
    assert_int_equal (most, UINT64_C (4) << 30); /* what a line has that says nothing */
    bring (rig, OTHER, 3, 1);
    assert_int_equal (has (rig, OTHER, 2, NULL), BYTES);
    assert_int_equal (shares_of (rig), 2);
    rig_advance (rig, GONE_MS); /* the claims are over */
    purge (rig, 1);
    assert_int_equal (has (rig, ME, 2, NULL), BYTES);
    purge (rig, 2);
    assert_int_equal (has (rig, ME, 2, NULL), 0);
    assert_int_equal (has (rig, OTHER, 2, NULL), BYTES);
    purge (rig, 3);
    assert_int_equal (has (rig, OTHER, 2, NULL), 0);
    assert_int_equal (shares_of (rig), 0);
    rig_free (rig);
}

static void who_is_over_it_is_refused (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("blobs=2500000B");
    bring (rig, ME, 1, 1);
    bring (rig, ME, 2, 2);
    upload (rig, ME, 3); /* the depot would have refused it */
    const Taskmq__SubmittedItem *item = submit (rig, ME, 3, 3);
    assert_int_equal (item->code, TMQ_LIMIT);
    assert_true (item->retry_after_ms > 0);
    assert_non_null (strstr (item->text, "bytes of blobs of me: 2500000"));
    assert_int_equal (submit (rig, ME, 4, 2)->code, TMQ_OK); /* he has it */
    bring (rig, OTHER, 5, 3);                                /* others have room */
    rig_cancel (rig, ME, 1);                                 /* an ended task has it still */
    rig_settle (rig);
    assert_int_equal (submit (rig, ME, 3, 3)->code, TMQ_LIMIT);
    purge (rig, 1);
    assert_int_equal (submit (rig, ME, 3, 3)->code, TMQ_OK);
    rig_free (rig);
}

/* The depot knows of uploads; what it refuses is counted, and told as any other quota. */
static void what_the_depot_refuses_is_a_quota_hit (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("blobs=2500000B");
    uint64_t before = rig->engine->base.counts.quota_hits;
    uint64_t request = send_begin (rig, ME, 1);
    errand_t *errand = engine_errand_next (rig->engine);
    errand_refuse (errand, TMQ_LIMIT, "too many");
    errand->over_quota = true;
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, request), TMQ_LIMIT);
    assert_int_equal (rig->engine->base.counts.quota_hits, before + 1);
    rig_free (rig);
}

/* … and a policy that comes later finds what is there. */
static void shares_survive_a_restart (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("blobs=2500000B");
    bring (rig, ME, 1, 1);
    bring (rig, ME, 2, 2);
    rig_cancel (rig, ME, 2);
    rig_settle (rig);
    rig_write (rig);
    rig_restart (rig);
    rig_link (rig, ME, "default");
    rig_link (rig, BOSS, "default");
    assert_int_equal (has (rig, ME, 3, NULL), 2 * BYTES);
    rig_access (rig, NULL);
    rig_link (rig, ME, "default");
    uint64_t most;
    assert_int_equal (has (rig, ME, 3, &most), 0);
    assert_true (most == UINT64_MAX);
    bring (rig, ME, 3, 3);
    give (rig, "blobs=2500000B");
    rig_link (rig, ME, "default");
    assert_int_equal (has (rig, ME, 4, NULL), 3 * BYTES);
    rig_free (rig);
}

/* Who has as many as may wait for a name has to name them: one that gave way would count to nobody.
 * */
static void what_nobody_names_is_bounded (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("");
    for (unsigned i = 1; i <= BLOB_CLAIMS_OF_ONE_MAX; i++)
        upload (rig, ME, i);
    uint64_t request = send_begin (rig, ME, 500);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, request), TMQ_LIMIT);
    assert_int_equal (has (rig, ME, 1, NULL), (BLOB_CLAIMS_OF_ONE_MAX - 1) * BYTES); /* again */
    assert_int_equal (submit (rig, ME, 1, 7)->code, TMQ_OK);
    upload (rig, ME, 500);
    assert_int_equal (has (rig, ME, 500, NULL), BLOB_CLAIMS_OF_ONE_MAX * BYTES);
    assert_int_equal (submit (rig, ME, 2, 1)->code, TMQ_OK); /* the first of them is there still */
    rig_advance (rig, GONE_MS);
    assert_int_equal (has (rig, ME, 501, NULL), 2 * BYTES);
    rig_free (rig);
}

/* Results. */

static const Taskmq__Assignment *claim (rig_t *rig, unsigned n)
{
    rig_submit (rig, ME, n, "q", "payload");
    rig_register (rig, OTHER, WORKER, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, OTHER, 0)->assignment;
    rig_started (rig, OTHER, assignment);
    rig_run (rig);
    return assignment;
}

static uint64_t complete (rig_t *rig, const Taskmq__Assignment *assignment, unsigned which)
{
    Taskmq__Blob blob;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__Complete complete = TASKMQ__COMPLETE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    make_blob (&blob, hash, which);
    lease.task_id = assignment->task_id;
    lease.attempt = assignment->attempt;
    lease.secret = assignment->secret;
    complete.lease = &lease;
    complete.result_blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_COMPLETE;
    request.complete = &complete;
    uint64_t number = rig_send (rig, OTHER, &request, NULL, 0);
    rig_settle (rig);
    return number;
}

/* Whoever brought it. The owner may be away. */
static void a_result_counts_to_the_owner (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("blobs=1500000B");
    const Taskmq__Assignment *assignment = claim (rig, 1);
    bring (rig, ME, 2, 2);
    rig_goodbye (rig, ME);
    rig_settle (rig);
    upload (rig, OTHER, 1);
    assert_int_equal (has (rig, OTHER, 9, NULL), BYTES);
    uint64_t request = complete (rig, assignment, 1);
    assert_int_equal (rig_code (rig, OTHER, request), TMQ_LIMIT);
    assert_non_null (strstr (rig_reply (rig, OTHER, request)->reply->text, "of blobs of me"));
    assert_true (rig_reply (rig, OTHER, request)->reply->retry_after_ms > 0);
    give (rig, "blobs=2M");
    request = complete (rig, assignment, 1);
    assert_int_equal (rig_code (rig, OTHER, request), TMQ_OK); /* the attempt went on */
    assert_int_equal (has (rig, OTHER, 9, NULL), 0);
    rig_link (rig, ME, "default");
    assert_int_equal (has (rig, ME, 9, NULL), 2 * BYTES);
    rig_free (rig);
}

/* … also one that came late, for as long as it is kept. */
static void what_came_late_counts_to_the_owner (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("");
    const Taskmq__Assignment *assignment = claim (rig, 1);
    rig_advance (rig, LEASE_MS + 1000);
    upload (rig, OTHER, 1);
    uint64_t request = complete (rig, assignment, 1);
    assert_int_equal (rig_code (rig, OTHER, request), TMQ_STALE_LEASE);
    rig_goodbye (rig, OTHER); /* nobody takes it once more */
    assert_int_equal (has (rig, ME, 9, NULL), BYTES);
    rig_write (rig);
    rig_restart (rig);
    rig_link (rig, ME, "default");
    rig_link (rig, BOSS, "default");
    assert_int_equal (has (rig, ME, 9, NULL), BYTES);
    purge (rig, 1);
    assert_int_equal (has (rig, ME, 9, NULL), 0);
    assert_int_equal (shares_of (rig), 0);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_tasks_name_counts_to_their_owner),
        cmocka_unit_test (who_is_over_it_is_refused),
        cmocka_unit_test (what_the_depot_refuses_is_a_quota_hit),
        cmocka_unit_test (shares_survive_a_restart),
        cmocka_unit_test (what_nobody_names_is_bounded),
        cmocka_unit_test (a_result_counts_to_the_owner),
        cmocka_unit_test (what_came_late_counts_to_the_owner),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
