/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Import: artifacts and successes that came too late. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "import_stage.h"

enum { SUBJECT = 700, OTHER = 701, WORKER = 100, DAY_MS = 86400000, LARGE = 1000000 };
enum { SMALL = 20000 }; /* uploaded all the same */

/* Artifacts. */

/* Small ones have their bytes, others were uploaded. */
typedef struct things {
    Taskmq__Artifact infos[TMQ_ARTIFACTS_MAX];
    Taskmq__ImportedArtifact artifacts[TMQ_ARTIFACTS_MAX];
    Taskmq__ImportedArtifact *list[TMQ_ARTIFACTS_MAX];
    uint8_t hashes[TMQ_ARTIFACTS_MAX][TMQ_BLOB_HASH_BYTES];
} things_t;

static Taskmq__Artifact *add (given_t *given, things_t *things, const char *name)
{
    size_t i = given->whole.n_artifacts++;
    Taskmq__Artifact *info = &things->infos[i];
    taskmq__artifact__init (info);
    taskmq__imported_artifact__init (&things->artifacts[i]);
    things->list[i] = &things->artifacts[i];
    things->artifacts[i].info = info;
    given->whole.artifacts = things->list;
    info->name = (char *) (uintptr_t) name;
    info->type = (char *) "text/plain";
    info->attempt = 2;
    info->attached_at = given->task.created_at + 1;
    info->hash = (ProtobufCBinaryData){TMQ_BLOB_HASH_BYTES, things->hashes[i]};
    return info;
}

static void add_small (given_t *given, things_t *things, const char *name, const char *bytes)
{
    Taskmq__Artifact *info = add (given, things, name);
    size_t i = given->whole.n_artifacts - 1;
    info->bytes = strlen (bytes);
    things->artifacts[i].body =
        (ProtobufCBinaryData){strlen (bytes), (uint8_t *) (uintptr_t) bytes};
    crypto_generichash (things->hashes[i], TMQ_BLOB_HASH_BYTES, (const uint8_t *) bytes,
                        strlen (bytes), NULL, 0);
}

static Taskmq__Blob add_uploaded (given_t *given, things_t *things, const char *name,
                                  uint64_t bytes)
{
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    Taskmq__Artifact *info = add (given, things, name);
    info->bytes = bytes;
    memset (info->hash.data, (int) (bytes & 0xff), TMQ_BLOB_HASH_BYTES);
    blob.hash = info->hash;
    blob.bytes = bytes;
    return blob;
}

/* part 3 with a name, or 4 with an attempt. */
static uint64_t send_read (rig_t *rig, const char *name, uint32_t attempt)
{
    tmq_id_t id = rig_id (SUBJECT);
    Taskmq__BlobRead message = TASKMQ__BLOB_READ__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    message.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    message.part = attempt > 0 ? 4 : 3;
    message.name = (char *) (uintptr_t) name;
    message.attempt = attempt;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_READ;
    request.blob_read = &message;
    return rig_send (rig, 0, &request, NULL, 0);
}

static void assert_body (rig_t *rig, const char *name, uint32_t attempt, const char *body)
{
    uint64_t request = send_read (rig, name, attempt);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, request);
    if (item->reply->code != TMQ_OK)
        fail_msg ("%u: %s", item->reply->code, item->reply->text);
    assert_int_equal (item->reply->blob_part->total, strlen (body));
    assert_int_equal (item->body_bytes, strlen (body));
    assert_memory_equal (item->body, body, strlen (body));
}

/* The server is asked for the file of this blob. */
static void assert_file_is_read (rig_t *rig, const char *name, uint32_t attempt,
                                 const Taskmq__Blob *blob)
{
    send_read (rig, name, attempt);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    assert_int_equal (errand->blob_bytes, blob->bytes);
    assert_memory_equal (errand->blob, blob->hash.data, TMQ_BLOB_HASH_BYTES);
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
}

static void artifacts_come_along (void **state)
{
    rig_t *rig = *state;
    given_t given;
    things_t things;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    add_small (&given, &things, "points.csv", "a,b\n");
    add_small (&given, &things, "empty", "");
    Taskmq__Blob film = add_uploaded (&given, &things, "film.mp4", LARGE);
    Taskmq__Blob plot = add_uploaded (&given, &things, "plot.png", SMALL);
    assert_int_equal (given_code (rig, &given), TMQ_NO_BLOB);
    given_upload (rig, 0, &film);
    assert_int_equal (given_code (rig, &given), TMQ_NO_BLOB);
    given_upload (rig, 0, &plot);
    assert_false (given_item (rig, &given)->existing);
    for (int i = 0; i < 2; i++) {
        const Taskmq__ArtifactPage *page = rig_artifacts (rig, SUBJECT);
        assert_int_equal (page->n_artifacts, 4);
        assert_string_equal (page->artifacts[0]->name, "empty");
        assert_string_equal (page->artifacts[1]->name, "film.mp4");
        assert_int_equal (page->artifacts[1]->bytes, LARGE);
        assert_string_equal (page->artifacts[2]->name, "plot.png");
        assert_false (page->artifacts[2]->uploaded); /* that is not told */
        assert_string_equal (page->artifacts[3]->name, "points.csv");
        assert_int_equal (page->artifacts[3]->attached_at, given.task.created_at + 1);
        assert_int_equal (page->artifacts[3]->attempt, 2);
        assert_memory_equal (page->artifacts[3]->hash.data, things.hashes[0], TMQ_BLOB_HASH_BYTES);
        assert_body (rig, "points.csv", 0, "a,b\n");
        assert_body (rig, "empty", 0, "");
        assert_file_is_read (rig, "film.mp4", 0, &film);
        assert_file_is_read (rig, "plot.png", 0, &plot);
        assert_true (engine_blob_is_needed (rig->engine, film.hash.data));
        rig_restart (rig); /* which forgets who uploaded what: a task names it */
        rig_link (rig, 0, "default");
    }
    rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    rig_settle (rig);
    rig_advance (rig, 2 * 60 * 60 * 1000);
    assert_false (engine_blob_is_needed (rig->engine, film.hash.data));
    assert_false (engine_blob_is_needed (rig->engine, plot.hash.data));
}

static void a_task_that_waits_has_artifacts (void **state)
{
    rig_t *rig = *state;
    given_t given;
    things_t things;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    add_small (&given, &things, "log", "of the first attempt");
    given_item (rig, &given);
    assert_body (rig, "log", 0, "of the first attempt");
    assert_int_equal (rig_artifacts (rig, SUBJECT)->n_artifacts, 1);
}

static void a_hundred_are_uploaded_first (void **state)
{
    rig_t *rig = *state;
    given_t given;
    things_t things;
    char names[TMQ_ARTIFACTS_MAX][8];
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_FAILED);
    for (size_t i = 0; i < TMQ_ARTIFACTS_MAX; i++) {
        snprintf (names[i], sizeof (names[i]), "%zu", i);
        Taskmq__Blob blob = add_uploaded (&given, &things, names[i], LARGE + i);
        given_upload (rig, 0, &blob);
    }
    given_item (rig, &given);
    assert_int_equal (rig_artifacts (rig, SUBJECT)->n_artifacts, TMQ_ARTIFACTS_MAX);
    Taskmq__Blob first = TASKMQ__BLOB__INIT;
    first.bytes = LARGE;
    first.hash = things.infos[0].hash;
    assert_file_is_read (rig, "0", 0, &first);
}

static void wrong_artifacts_are_refused (void **state)
{
    rig_t *rig = *state;
    given_t given;
    things_t things;
#define REFUSED(CODE, CHANGE)                                                                      \
    do {                                                                                           \
        given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);                                   \
        add_small (&given, &things, "a", "x");                                                     \
        CHANGE;                                                                                    \
        assert_int_equal (given_code (rig, &given), CODE);                                         \
    } while (0)
    REFUSED (TMQ_INVALID, things.infos[0].name = (char *) "../a");
    REFUSED (TMQ_INVALID, add_small (&given, &things, "a", "y"));
    REFUSED (TMQ_INVALID, things.hashes[0][0] ^= 1);
    REFUSED (TMQ_INVALID, things.infos[0].hash.len = 31);
    REFUSED (TMQ_INVALID, things.infos[0].bytes = 2);
    REFUSED (TMQ_INVALID, things.infos[0].attempt = 3);
    REFUSED (TMQ_INVALID, things.infos[0].attempt = 0);
    REFUSED (TMQ_INVALID, things.infos[0].attached_at = 0);
    REFUSED (TMQ_INVALID, things.infos[0].attached_at += 2 * (uint64_t) DAY_MS);
    REFUSED (TMQ_INVALID, things.infos[0].uploaded = true);
    REFUSED (TMQ_INVALID, things.artifacts[0].info = NULL);
    REFUSED (TMQ_INVALID, add_uploaded (&given, &things, "b", TMQ_BLOB_BYTES_MIN - 1));
    REFUSED (TMQ_NO_BLOB, add_uploaded (&given, &things, "b", TMQ_BLOB_BYTES_MIN));
    REFUSED (TMQ_TOO_LARGE, add_uploaded (&given, &things, "b", TMQ_BLOB_BYTES_MAX + 1));
    REFUSED (TMQ_OK, (void) 0);
#undef REFUSED
}

static void artifacts_have_limits (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.task_artifact_bytes_max = 8;
    config.space_artifact_bytes_max = 12;
    rig_t *rig = rig_new_with (&config);
    given_t given;
    things_t things;
    rig_link (rig, 0, "default");
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    add_small (&given, &things, "a", "123456789");
    assert_int_equal (given_code (rig, &given), TMQ_TOO_LARGE);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    add_small (&given, &things, "a", "12345678");
    given_item (rig, &given);
    given_fill (&given, rig, OTHER, TMQ_STATUS_COMPLETED);
    add_small (&given, &things, "a", "12345");
    assert_int_equal (given_code (rig, &given), TMQ_LIMIT);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    rig_settle (rig);
    given_item (rig, &given);
    rig_free (rig);
}

/* Late successes. */

typedef struct lates {
    Taskmq__AttemptInfo attempts[2];
    Taskmq__AttemptInfo *attempt_list[2];
    Taskmq__ImportedLate late[2];
    Taskmq__ImportedLate *list[2];
} lates_t;

/* Both attempts were lost, and the first has brought its result since. */
static void add_late (given_t *given, lates_t *lates, const rig_t *rig)
{
    uint64_t now = (uint64_t) rig->now.wall_ms;
    for (size_t i = 0; i < 2; i++) {
        taskmq__attempt_info__init (&lates->attempts[i]);
        taskmq__imported_late__init (&lates->late[i]);
        lates->attempt_list[i] = &lates->attempts[i];
        lates->list[i] = &lates->late[i];
        lates->attempts[i].attempt = lates->late[i].attempt = (uint32_t) i + 1;
        lates->attempts[i].worker = (char *) "w";
        lates->attempts[i].started_at = now - 900;
        lates->attempts[i].ended_at = now - 800;
        lates->attempts[i].how = TMQ_EVENT_LEASE_LOST;
        lates->late[i].type = (char *) "text/plain";
        lates->late[i].at = now - 700;
        lates->late[i].until = now + DAY_MS;
        lates->late[i].result = (ProtobufCBinaryData){8, (uint8_t *) "too late"};
    }
    given->whole.attempts = lates->attempt_list;
    given->whole.n_attempts = 2;
    given->whole.late = lates->list;
    given->whole.n_late = 1;
}

static const Taskmq__AttemptInfo *first_attempt (rig_t *rig, unsigned n)
{
    Taskmq__Attempts attempts = TASKMQ__ATTEMPTS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    request.op_case = TASKMQ__REQUEST__OP_ATTEMPTS;
    request.attempts = &attempts;
    attempts.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    uint64_t number = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, number);
    assert_int_equal (item->reply->code, TMQ_OK);
    return item->reply->attempt_page->attempts[0];
}

static void adopt (rig_t *rig, unsigned n)
{
    Taskmq__Adopt adopt = TASKMQ__ADOPT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    uint8_t request_id[16] = {7};
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.op_case = TASKMQ__REQUEST__OP_ADOPT;
    request.adopt = &adopt;
    adopt.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    adopt.attempt = 1;
    uint64_t sent = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_OK);
}

static void late_successes_come_along (void **state)
{
    static const tmq_status_t statuses[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_FAILED};
    (void) state;
    for (size_t i = 0; i < 2; i++) {
        rig_t *rig = rig_new ();
        given_t given;
        lates_t lates;
        rig_link (rig, 0, "default");
        given_fill (&given, rig, SUBJECT, statuses[i]);
        add_late (&given, &lates, rig);
        given_item (rig, &given);
        const Taskmq__AttemptInfo *info = first_attempt (rig, SUBJECT);
        assert_true (info->kept);
        assert_int_equal (info->kept_bytes, 8);
        assert_string_equal (info->kept_type, "text/plain");
        assert_int_equal (info->kept_at, lates.late[0].at);
        assert_int_equal (info->kept_until, lates.late[0].until);
        assert_int_equal (info->kept_hash.len, 0);
        for (int k = 0; k < 2; k++) {
            assert_body (rig, "", 1, "too late");
            rig_restart (rig);
            rig_link (rig, 0, "default");
        }
        adopt (rig, SUBJECT);
        uint64_t request = rig_result (rig, 0, SUBJECT);
        rig_settle (rig);
        assert_int_equal (rig_reply (rig, 0, request)->body_bytes, 8);
        request = send_read (rig, "", 1);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, 0, request), TMQ_NO_BLOB);
        rig_free (rig);
    }
}

static void a_large_one_is_a_blob (void **state)
{
    rig_t *rig = *state;
    given_t given;
    lates_t lates;
    uint8_t hash[TMQ_BLOB_HASH_BYTES] = {5};
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = (ProtobufCBinaryData){sizeof (hash), hash};
    blob.bytes = LARGE;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    add_late (&given, &lates, rig);
    lates.late[0].result.len = 0;
    lates.late[0].result_blob = &blob;
    assert_int_equal (given_code (rig, &given), TMQ_NO_BLOB);
    given_upload (rig, 0, &blob);
    given_item (rig, &given);
    const Taskmq__AttemptInfo *info = first_attempt (rig, SUBJECT);
    assert_int_equal (info->kept_bytes, LARGE);
    assert_int_equal (info->kept_hash.len, sizeof (hash));
    assert_memory_equal (info->kept_hash.data, hash, sizeof (hash));
    assert_file_is_read (rig, "", 1, &blob);
    adopt (rig, SUBJECT);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->extra->result_blob->bytes, LARGE);
}

/* It goes when it would have gone elsewhere, and never later than one of here. */
static void its_time_goes_on (void **state)
{
    rig_t *rig = *state;
    given_t given;
    lates_t lates;
    uint8_t hash[TMQ_BLOB_HASH_BYTES] = {5};
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = (ProtobufCBinaryData){sizeof (hash), hash};
    blob.bytes = LARGE;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    add_late (&given, &lates, rig);
    lates.late[0].until = (uint64_t) rig->now.wall_ms;
    lates.late[0].result.len = 0;
    lates.late[0].result_blob = &blob; /* that nobody has uploaded */
    given_item (rig, &given);
    assert_false (first_attempt (rig, SUBJECT)->kept);
    given_fill (&given, rig, OTHER, TMQ_STATUS_QUEUED);
    add_late (&given, &lates, rig);
    lates.late[0].until = (uint64_t) rig->now.wall_ms + 900 * (uint64_t) DAY_MS;
    given_item (rig, &given);
    assert_int_equal (first_attempt (rig, OTHER)->kept_until,
                      lates.late[0].at + 7 * (uint64_t) DAY_MS);
}

static void it_pushes_out_nothing (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_kept_bytes_max = 10;
    rig_t *rig = rig_new_with (&config);
    given_t given;
    lates_t lates;
    rig_link (rig, 0, "default");
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    add_late (&given, &lates, rig);
    given_item (rig, &given);
    given_fill (&given, rig, OTHER, TMQ_STATUS_QUEUED);
    add_late (&given, &lates, rig);
    assert_int_equal (given_code (rig, &given), TMQ_LIMIT);
    assert_true (first_attempt (rig, SUBJECT)->kept);
    adopt (rig, SUBJECT);
    given_item (rig, &given);
    rig_free (rig);
}

static void wrong_late_successes_are_refused (void **state)
{
    rig_t *rig = *state;
    given_t given;
    lates_t lates;
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    uint8_t hash[TMQ_BLOB_HASH_BYTES] = {5};
    blob.hash = (ProtobufCBinaryData){sizeof (hash), hash};
    blob.bytes = SMALL;
#define REFUSED(STATUS, CHANGE)                                                                    \
    do {                                                                                           \
        given_fill (&given, rig, SUBJECT, STATUS);                                                 \
        add_late (&given, &lates, rig);                                                            \
        CHANGE;                                                                                    \
        assert_int_equal (given_code (rig, &given), TMQ_INVALID);                                  \
    } while (0)
    REFUSED (TMQ_STATUS_COMPLETED, (void) 0);
    REFUSED (TMQ_STATUS_CANCELLED, (void) 0);
    REFUSED (TMQ_STATUS_QUEUED, lates.late[0].attempt = 0);
    REFUSED (TMQ_STATUS_QUEUED, lates.late[0].attempt = 3);
    REFUSED (TMQ_STATUS_QUEUED, lates.attempts[0].how = TMQ_EVENT_CANCELLED);
    REFUSED (TMQ_STATUS_QUEUED, given.whole.n_late = 2; lates.late[1].attempt = 1);
    REFUSED (TMQ_STATUS_QUEUED, lates.late[0].until = lates.late[0].at - 1);
    REFUSED (TMQ_STATUS_QUEUED, lates.late[0].at += 2 * (uint64_t) DAY_MS;
             lates.late[0].until = lates.late[0].at);
    REFUSED (TMQ_STATUS_QUEUED, lates.late[0].result_blob = &blob);
    REFUSED (TMQ_STATUS_QUEUED, lates.late[0].result.len = 0; lates.late[0].result_blob = &blob);
#undef REFUSED
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (artifacts_come_along),
        TEST (a_task_that_waits_has_artifacts),
        TEST (a_hundred_are_uploaded_first),
        TEST (wrong_artifacts_are_refused),
        cmocka_unit_test (artifacts_have_limits),
        cmocka_unit_test (late_successes_come_along),
        TEST (a_large_one_is_a_blob),
        TEST (its_time_goes_on),
        cmocka_unit_test (it_pushes_out_nothing),
        TEST (wrong_late_successes_are_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
