/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Artifacts: attached by the holder of a lease, named, replaced, bounded, read, removed. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

enum { SUBJECT = 1, WORKER = 100, HASH = TMQ_BLOB_HASH_BYTES, LARGE = 1000000, LEASE_MS = 30000 };

static unsigned newest_id; /* of the requests that must differ */

static const Taskmq__Assignment *begin (rig_t *rig, unsigned n)
{
    rig_submit (rig, 0, n, "q", "p");
    rig_run (rig);
    rig_register (rig, 1, WORKER + n, "q", 1);
    rig_run (rig);
    return rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
}

static uint64_t send_put (rig_t *rig, const Taskmq__Assignment *assignment, const char *name,
                          const char *type, const char *bytes, Taskmq__Blob *blob)
{
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__ArtifactPut put = TASKMQ__ARTIFACT_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t request_id[16] = {0};
    unsigned unique = ++newest_id;
    memcpy (request_id, &unique, sizeof (unique));
    lease.task_id = assignment->task_id;
    lease.attempt = assignment->attempt;
    lease.secret = assignment->secret;
    put.lease = &lease;
    put.name = (char *) (uintptr_t) name;
    put.type = (char *) (uintptr_t) type;
    put.bytes = (uint32_t) strlen (bytes);
    put.blob = blob;
    request.op_case = TASKMQ__REQUEST__OP_ARTIFACT;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.artifact = &put;
    return rig_send (rig, 1, &request, bytes, strlen (bytes));
}

static unsigned put_as (rig_t *rig, const Taskmq__Assignment *assignment, const char *name,
                        const char *type, const char *bytes)
{
    uint64_t request = send_put (rig, assignment, name, type, bytes, NULL);
    rig_run (rig);
    return rig_code (rig, 1, request);
}

static unsigned put (rig_t *rig, const Taskmq__Assignment *assignment, const char *name,
                     const char *bytes)
{
    return put_as (rig, assignment, name, "text/plain", bytes);
}

static uint8_t hash[HASH] = {1, 2, 3};

static Taskmq__Blob large (void)
{
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = (ProtobufCBinaryData){HASH, hash};
    blob.bytes = LARGE;
    return blob;
}

/* The worker's identity has uploaded it. */
static void upload (rig_t *rig)
{
    Taskmq__Blob blob = large ();
    Taskmq__BlobBegin message = TASKMQ__BLOB_BEGIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    message.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_BEGIN;
    request.blob_begin = &message;
    rig_send (rig, 1, &request, NULL, 0);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    errand->whole = true;
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
}

static unsigned put_large (rig_t *rig, const Taskmq__Assignment *assignment, const char *name)
{
    Taskmq__Blob blob = large ();
    uint64_t request = send_put (rig, assignment, name, "", "", &blob);
    rig_run (rig);
    return rig_code (rig, 1, request);
}

static uint64_t send_read (rig_t *rig, unsigned n, const char *name, uint64_t offset,
                           uint32_t limit, const ProtobufCBinaryData *expected)
{
    tmq_id_t id = rig_id (n);
    Taskmq__BlobRead message = TASKMQ__BLOB_READ__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    message.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    message.part = 3;
    message.name = (char *) (uintptr_t) name;
    message.offset = offset;
    message.limit = limit;
    if (expected != NULL)
        message.hash = *expected;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_READ;
    request.blob_read = &message;
    return rig_send (rig, 0, &request, NULL, 0);
}

static void assert_body (rig_t *rig, unsigned n, const char *name, const char *body)
{
    uint64_t request = send_read (rig, n, name, 0, 0, NULL);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, request);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->blob_part->total, strlen (body));
    assert_int_equal (item->body_bytes, strlen (body));
    assert_memory_equal (item->body, body, strlen (body));
}

static size_t rows_of (const rig_t *rig, row_kind_t kind)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        count += rig->kind_rows.rows[i].kind == kind;
    return count;
}

static void what_is_attached_is_read (void **state)
{
    rig_t *rig = *state;
    uint8_t expected[HASH];
    const Taskmq__Assignment *assignment = begin (rig, SUBJECT);
    uint64_t request = send_put (rig, assignment, "b.txt", "text/plain", "second", NULL);
    rig_outputs (rig);
    assert_null (rig_reply (rig, 1, request)); /* not before it is durable */
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_OK);
    assert_int_equal (put_as (rig, assignment, "a", "", ""), TMQ_OK);
    for (int again = 0; again < 2; again++) {
        const Taskmq__ArtifactPage *page = rig_artifacts (rig, SUBJECT);
        assert_int_equal (page->n_artifacts, 2);
        assert_string_equal (page->artifacts[0]->name, "a");
        assert_string_equal (page->artifacts[0]->type, "application/octet-stream");
        assert_int_equal (page->artifacts[0]->bytes, 0);
        assert_string_equal (page->artifacts[1]->name, "b.txt");
        assert_string_equal (page->artifacts[1]->type, "text/plain");
        assert_int_equal (page->artifacts[1]->bytes, 6);
        assert_int_equal (page->artifacts[1]->attempt, 1);
        crypto_generichash (expected, HASH, (const uint8_t *) "second", 6, NULL, 0);
        assert_memory_equal (page->artifacts[1]->hash.data, expected, HASH);
        assert_body (rig, SUBJECT, "a", "");
        assert_body (rig, SUBJECT, "b.txt", "second");
        const Taskmq__Extra *extra = rig_task (rig, 0, SUBJECT)->extra;
        assert_int_equal (extra->artifacts_count, 2);
        assert_int_equal (extra->artifact_bytes, 6);
        assert_int_equal (extra->n_artifacts, 0); /* they are read by themselves */
        rig_restart (rig);
        rig_link (rig, 0, "default");
    }
}

static void it_is_read_in_pieces (void **state)
{
    rig_t *rig = *state;
    assert_int_equal (put (rig, begin (rig, SUBJECT), "a", "0123456789"), TMQ_OK);
    uint64_t middle = send_read (rig, SUBJECT, "a", 3, 4, NULL);
    uint64_t end = send_read (rig, SUBJECT, "a", 7, 0, NULL);
    uint64_t behind = send_read (rig, SUBJECT, "a", 10, 0, NULL);
    uint64_t none = send_read (rig, SUBJECT, "b", 0, 0, NULL);
    const ProtobufCBinaryData other = {HASH, hash};
    uint64_t changed = send_read (rig, SUBJECT, "a", 0, 0, &other);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, middle);
    assert_int_equal (item->body_bytes, 4);
    assert_memory_equal (item->body, "3456", 4);
    assert_true (item->reply->blob_part->more);
    item = rig_reply (rig, 0, end);
    assert_int_equal (item->body_bytes, 3);
    assert_memory_equal (item->body, "789", 3);
    assert_false (item->reply->blob_part->more);
    assert_int_equal (rig_reply (rig, 0, behind)->body_bytes, 0);
    assert_int_equal (rig_code (rig, 0, none), TMQ_NO_BLOB);
    assert_int_equal (rig_code (rig, 0, changed), TMQ_CONFLICT);
}

static void it_is_an_event (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig, SUBJECT);
    assert_int_equal (put (rig, assignment, "a.txt", "bytes"), TMQ_OK);
    assert_int_equal (put (rig, assignment, "empty", ""), TMQ_OK);
    uint64_t request = rig_history (rig, 0, SUBJECT);
    rig_settle (rig);
    const Taskmq__EventPage *page = rig_reply (rig, 0, request)->reply->event_page;
    const Taskmq__Event *event = page->list->events[page->list->n_events - 2];
    assert_int_equal (event->kind, TMQ_EVENT_ARTIFACT);
    assert_string_equal (event->name, "a.txt");
    assert_int_equal (event->number, 5);
    assert_string_equal (event->message, "text/plain");
    assert_string_equal (page->list->events[page->list->n_events - 1]->name, "empty");
}

/* The same bytes under a name are there already; other bytes take their place. */
static void the_newest_has_the_name (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig, SUBJECT);
    assert_int_equal (put (rig, assignment, "a", "first"), TMQ_OK);
    uint64_t version = rig_task (rig, 0, SUBJECT)->version;
    assert_int_equal (put (rig, assignment, "a", "first"), TMQ_OK);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->version, version);
    assert_int_equal (put (rig, assignment, "a", "another"), TMQ_OK);
    assert_body (rig, SUBJECT, "a", "another");
    rig_fail (rig, 1, assignment, 5, false);
    rig_advance (rig, 10000);
    assignment = rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
    assert_int_equal (assignment->attempt, 2);
    assert_int_equal (put (rig, assignment, "a", "of 2"), TMQ_OK);
    assert_int_equal (put (rig, assignment, "b", "beside"), TMQ_OK);
    const Taskmq__ArtifactPage *page = rig_artifacts (rig, SUBJECT);
    assert_int_equal (page->n_artifacts, 2);
    assert_int_equal (page->artifacts[0]->attempt, 2);
    assert_body (rig, SUBJECT, "a", "of 2");
    assert_int_equal (rig_task (rig, 0, SUBJECT)->extra->artifact_bytes, 10);
    assert_int_equal (rows_of (rig, ROW_KIND_ARTIFACT), 2);
}

static void only_the_holder_attaches (void **state)
{
    rig_t *rig = *state;
    Taskmq__Assignment stolen = *begin (rig, SUBJECT);
    uint8_t secret[16] = {9};
    assert_int_equal (put (rig, &stolen, "a", "mine"), TMQ_OK);
    rig_complete (rig, 1, &stolen, "done");
    rig_run (rig);
    assert_int_equal (put (rig, &stolen, "b", "late"), TMQ_STALE_LEASE);
    stolen.secret = (ProtobufCBinaryData){sizeof (secret), secret};
    assert_int_equal (put (rig, &stolen, "a", "theirs"), TMQ_STALE_LEASE);
    assert_int_equal (rig_artifacts (rig, SUBJECT)->n_artifacts, 1);
    assert_body (rig, SUBJECT, "a", "mine"); /* after its end, too */
}

static void limits_are_answered (void **state)
{
    (void) state;
    char name[TMQ_ARTIFACT_NAME_BYTES_MAX + 1];
    char type[TMQ_CONTENT_TYPE_BYTES_MAX + 1];
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.task_artifact_bytes_max = 2 * TMQ_ARTIFACTS_MAX;
    config.space_artifact_bytes_max = 2 * TMQ_ARTIFACTS_MAX + 3;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    const Taskmq__Assignment *assignment = begin (rig, SUBJECT);
    for (unsigned i = 0; i < TMQ_ARTIFACTS_MAX; i++) {
        snprintf (name, sizeof (name), "%u", i);
        assert_int_equal (put (rig, assignment, name, "x"), TMQ_OK);
    }
    rig_advance (rig, 10000); /* or they come too fast */
    assert_int_equal (put (rig, assignment, "one more", "x"), TMQ_LIMIT);
    assert_int_equal (put (rig, assignment, "7", "xx"), TMQ_OK);
    memset (name, 'x', sizeof (name) - 1);
    name[TMQ_ARTIFACT_NAME_BYTES_MAX] = '\0';
    assert_int_equal (put (rig, assignment, "7", name), TMQ_LIMIT); /* bytes of the task */
    assert_int_equal (rig_artifacts (rig, SUBJECT)->n_artifacts, TMQ_ARTIFACTS_MAX);
    assignment = begin (rig, SUBJECT + 1);
    assert_int_equal (put (rig, assignment, "a", name), TMQ_LIMIT); /* of the namespace */
    memset (type, 't', sizeof (type) - 1);
    type[TMQ_CONTENT_TYPE_BYTES_MAX] = '\0';
    unsigned code = TMQ_OK;
    for (unsigned i = 0; i < TMQ_ARTIFACTS_MAX && code == TMQ_OK; i++) {
        name[0] = (char) ('0' + i / 10);
        name[1] = (char) ('0' + i % 10);
        code = put_as (rig, assignment, name, type, "");
    }
    assert_int_equal (code, TMQ_LIMIT); /* their names and types */
    rig_free (rig);
}

static void a_task_attaches_only_so_fast (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig, SUBJECT);
    for (unsigned i = 0; i < TMQ_ARTIFACTS_MAX; i++)
        assert_int_equal (put (rig, assignment, "a", i % 2 == 0 ? "x" : "y"), TMQ_OK);
    uint64_t request = send_put (rig, assignment, "a", "", "z", NULL);
    rig_run (rig);
    const Taskmq__Reply *reply = rig_reply (rig, 1, request)->reply;
    assert_int_equal (reply->code, TMQ_LIMIT);
    assert_in_range (reply->retry_after_ms, 1, 1000 / TMQ_ARTIFACT_RATE_MAX);
    rig_advance (rig, reply->retry_after_ms);
    assert_int_equal (put (rig, assignment, "a", "z"), TMQ_OK);
}

/* Blobs. */

static void a_large_one_is_a_blob (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig, SUBJECT);
    assert_int_equal (put_large (rig, assignment, "film"), TMQ_NO_BLOB);
    upload (rig);
    assert_int_equal (put_large (rig, assignment, "film"), TMQ_OK);
    assert_int_equal (put_large (rig, assignment, "copy"), TMQ_OK);
    assert_int_equal (put (rig, assignment, "film", "small now"), TMQ_OK);
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_BLOB), 1);
    rig_advance (rig, 2000);
    send_read (rig, SUBJECT, "copy", 5, 10, NULL);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    assert_int_equal (errand->op, TASKMQ__REQUEST__OP_BLOB_READ);
    assert_memory_equal (errand->blob, hash, HASH);
    assert_int_equal (errand->blob_bytes, LARGE);
    engine_errand_done (rig->engine, errand, rig->now);
    assert_body (rig, SUBJECT, "film", "small now");
    assert_int_equal (put (rig, assignment, "copy", "small, too"), TMQ_OK);
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_BLOB), 0);
}

/* The end. */

static void they_go_with_the_task (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    char name[8];
    config.round.leftovers = 2;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    const Taskmq__Assignment *assignment = begin (rig, SUBJECT);
    upload (rig);
    assert_int_equal (put_large (rig, assignment, "film"), TMQ_OK);
    for (unsigned i = 0; i < 8; i++) {
        snprintf (name, sizeof (name), "%u", i);
        assert_int_equal (put (rig, assignment, name, "x"), TMQ_OK);
    }
    rig_complete (rig, 1, assignment, "done");
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_ARTIFACT), 8);
    assert_int_equal (rows_of (rig, ROW_KIND_BLOB), 1);
    rig_use_request_id (81);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    rig_commit (rig);
    engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
    rig_commit (rig);
    rig_restart (rig);                                  /* some are left */
    assert_int_equal (rows_of (rig, ROW_KIND_BLOB), 0); /* its reference went with the task */
    assert_in_range (rows_of (rig, ROW_KIND_ARTIFACT), 1, 8);
    assert_int_equal (rows_of (rig, ROW_KIND_ARTIFACTS_LEFT), 1);
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_ARTIFACT), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_ARTIFACTS_LEFT), 0);
    rig_free (rig);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (what_is_attached_is_read),
        TEST (it_is_read_in_pieces),
        TEST (it_is_an_event),
        TEST (the_newest_has_the_name),
        TEST (only_the_holder_attaches),
        cmocka_unit_test (limits_are_answered),
        TEST (a_task_attaches_only_so_fast),
        TEST (a_large_one_is_a_blob),
        cmocka_unit_test (they_go_with_the_task),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
