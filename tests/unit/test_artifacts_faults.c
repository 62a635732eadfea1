/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Artifacts through a crash behind each operation on any file: those of their bodies, of the
 * journal and of the tables. The engine, a store and the files of the blobs are driven as the
 * broker does. A run is recorded, operation by operation; then the disk is put together as a kill
 * or a loss of power may leave it, and all is started from there. What was acknowledged is there,
 * with the bytes that were attached; what was not is there whole or not at all; no name is left
 * without a body; and it goes on. Then each operation on the files of bodies fails once, by an
 * error or for want of space.
 *
 * TASKMQ_POINTS says how many moments are tried, 0: all, each with every loss. TASKMQ_SEED says
 * which, and what is lost; without it they are others in each run. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "blobs/depot.h"
#include "core/base/memory.h"
#include "core_rig.h"
#include "fault_vfs.h"
#include "file_calls.h"
#include "store/journal/journal_codec.h"
#include "store_support.h"
#include "vfs_disk.h"

enum {
    HASH = TMQ_BLOB_HASH_BYTES,
    BODY_BYTES = 280000, /* of a large one */
    PIECE = 150000,
    BODIES = 3,
    SMALL = BODIES, /* the body of the small one */
    WORKER = 100,
    FIRST = 1, /* task, … */
    SECOND = 2,
    POINTS_DEFAULT = 100,
    TRIES = 4
};

static const depot_limits_t LIMITS = {.blob_bytes = 4 << 20, .disk_bytes = 64 << 20};
static const char SMALL_BODY[] = "what a worker says of it";
static uint8_t bodies[BODIES][BODY_BYTES];
static uint8_t hashes[BODIES + 1][HASH];

/* A broker. */
typedef struct stage {
    fixture_t *store;
    depot_t *depot;
    rig_t *rig;
    char blobs[96];
} stage_t;

/* What a commit needs is a copy, because the store takes it. */
static void keep (void *context, const batch_t *batch)
{
    stage_t *self = context;
    bytes_t body = BYTES_INIT;
    journal_head_t head = {0};
    bool newer = false;
    store_error_t error = {STORE_OK, ""};
    journal_encode (&body, &head, batch);
    batch_t *copy = journal_decode (body.data, body.length, &head, &newer);
    bytes_free (&body);
    assert_non_null (copy);
    assert_int_equal (store_commit (self->store->store, &copy, 1, &error), STORE_OK);
    self->store->batch = batch->no;
}

static void take_task (void *context, record_t *record)
{
    engine_restore (((stage_t *) context)->rig->engine, record);
}

static void take_ns (void *context, const char *name, uint64_t last_seq)
{
    engine_restore_ns (((stage_t *) context)->rig->engine, name, last_seq);
}

static void take_row (void *context, const row_t *row)
{
    engine_restore_row (((stage_t *) context)->rig->engine, row);
}

static void take_rows (stage_t *self, row_kind_t kind)
{
    read_t read = {.kind = READ_ROWS, .row_kind = kind, .limit = 1000};
    fixture_read (self->store, &read);
    for (size_t i = 0; i < read.rows_count; i++)
        row_list_put (&self->rig->kind_rows, &read.rows[i]);
    read_clear (&read);
}

/* What look-ups find. */
static void take_tables (stage_t *self)
{
    rig_t *rig = self->rig;
    static const row_kind_t kinds[] = {ROW_KIND_ARTIFACT, ROW_KIND_BLOB, ROW_KIND_BLOB_SHARE};
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        take_rows (self, kinds[i]);
    for (unsigned n = FIRST; n <= SECOND; n++) {
        tmq_id_t id = rig_id (n);
        record_t *record = fixture_load (self->store, "default", &id);
        if (record == NULL)
            continue;
        rig->rows[record->number] = record;
        if (rig->rows_end <= (size_t) record->number)
            rig->rows_end = (size_t) record->number + 1;
    }
}

static void stage_start (stage_t *self)
{
    int error = 0;
    store_error_t store_error = {STORE_OK, ""};
    store_live_visitor_t visitor = {take_task, take_ns, self, take_row};
    fixture_open (self->store);
    self->depot = depot_new (self->blobs, &LIMITS, &error);
    assert_non_null (self->depot);
    self->rig = rig_new ();
    rig_t *rig = self->rig;
    rig->keep = keep;
    rig->keep_context = self;
    rig->boot = self->store->boot;
    engine_free (rig->engine);
    rig->engine = engine_new (&rig->config);
    engine_boot (rig->engine, &rig->boot, rig->now);
    assert_int_equal (store_live (self->store->store, &visitor, &store_error), STORE_OK);
    engine_ready (rig->engine, rig->now);
    take_tables (self);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_run (rig);
}

static void stage_stop (stage_t *self)
{
    rig_free (self->rig);
    depot_free (&self->depot);
    fixture_close (self->store);
}

/* In a directory of its own; nothing runs yet. */
static void stage_make (stage_t *self)
{
    *self = (stage_t){.store = fixture_new ("sqlite")};
    rmdir (self->store->directory);
    vfs_place_make (self->store->directory);
    snprintf (self->blobs, sizeof (self->blobs), "%s/blobs", self->store->directory);
    self->store->options.journal_bytes = 1 << 16;
    self->store->options.dirty_ms_max = 5;
    file_calls = (file_calls_t){.below = "/blobs/"};
}

static void stage_remove (stage_t *self)
{
    file_calls = (file_calls_t){.below = NULL};
    vfs_place_remove (self->store->directory);
    free (self->store);
}

/* What is asked of it. */

static depot_upload_t upload_of (unsigned body)
{
    return (depot_upload_t){
        .identity = "uid:0", .ns = "default", .hash = hashes[body], .bytes = BODY_BYTES};
}

/* To its end, or to the first refusal. */
static depot_word_t upload_once (stage_t *self, unsigned body)
{
    depot_upload_t of = upload_of (body);
    depot_word_t word;
    do
        depot_begin (self->depot, &of, 0, &word);
    while (word.more);
    while (word.code == TMQ_OK && !word.whole) {
        size_t left = BODY_BYTES - (size_t) word.offset;
        uint64_t at = word.offset;
        do
            depot_chunk (self->depot, &of, at, bodies[body] + at, left < PIECE ? left : PIECE, 0,
                         &word);
        while (word.more);
    }
    return word;
}

/* As a client does: what is refused is begun again. */
static void upload (stage_t *self, unsigned body)
{
    depot_word_t word = upload_once (self, body);
    for (int i = 1; i < TRIES && !word.whole; i++) {
        if (word.code != TMQ_CONFLICT && word.code != TMQ_INTERNAL && word.code != TMQ_STORE_FULL)
            fail_msg ("an upload is refused by %d: %s", (int) word.code, word.text);
        if (file_calls.failed > 0 && file_calls.error == ENOSPC)
            assert_int_not_equal (word.code, TMQ_INTERNAL);
        word = upload_once (self, body);
    }
    if (!word.whole)
        fail_msg ("an upload does not come to its end: %s", word.text);
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    Taskmq__BlobBegin message = TASKMQ__BLOB_BEGIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    blob.hash = (ProtobufCBinaryData){HASH, hashes[body]};
    blob.bytes = BODY_BYTES;
    message.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_BEGIN;
    request.blob_begin = &message;
    rig_send (self->rig, 1, &request, NULL, 0);
    errand_t *errand = engine_errand_next (self->rig->engine);
    assert_non_null (errand);
    errand->whole = true;
    engine_errand_done (self->rig->engine, errand, self->rig->now);
}

static const Taskmq__Assignment *begin_task (stage_t *self, unsigned n)
{
    rig_t *rig = self->rig;
    rig_submit (rig, 0, n, "q", "p");
    rig_run (rig);
    rig_register (rig, 1, WORKER + n, "q", 1);
    rig_run (rig);
    return rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
}

static void attach (stage_t *self, const Taskmq__Assignment *to, const char *name, unsigned body)
{
    static unsigned newest_id;
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    Taskmq__ArtifactPut put = TASKMQ__ARTIFACT_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t request_id[16] = {0};
    unsigned unique = ++newest_id;
    memcpy (request_id, &unique, sizeof (unique));
    lease.task_id = to->task_id;
    lease.attempt = to->attempt;
    lease.secret = to->secret;
    put.lease = &lease;
    put.name = (char *) (uintptr_t) name;
    put.type = (char *) "text/plain";
    request.op_case = TASKMQ__REQUEST__OP_ARTIFACT;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.artifact = &put;
    if (body == SMALL) {
        put.bytes = sizeof (SMALL_BODY);
    } else {
        upload (self, body);
        blob.hash = (ProtobufCBinaryData){HASH, hashes[body]};
        blob.bytes = BODY_BYTES;
        put.blob = &blob;
    }
    uint64_t number = rig_send (self->rig, 1, &request, SMALL_BODY, put.bytes);
    rig_run (self->rig);
    assert_int_equal (rig_code (self->rig, 1, number), TMQ_OK);
}

/* The run: what is there behind each of its steps. */

enum { NOTE, PLOT, FILM, NAMES, NONE = -1 };
static const char *const names[NAMES] = {"note", "plot", "film"};

typedef struct expected {
    bool there[SECOND + 1];
    bool completed[SECOND + 1];
    int body[SECOND + 1][NAMES]; /* NONE: no such name */
} expected_t;

enum { STEPS = 8 };

static expected_t expected_behind (unsigned step)
{
    expected_t out;
    memset (&out, 0, sizeof (out));
    for (unsigned n = FIRST; n <= SECOND; n++)
        for (int name = 0; name < NAMES; name++)
            out.body[n][name] = NONE;
    out.there[FIRST] = step >= 1 && step < 8;
    out.body[FIRST][NOTE] = step >= 2 ? SMALL : NONE;
    out.body[FIRST][PLOT] = step >= 4 ? 1 : step == 3 ? 0 : NONE;
    out.completed[FIRST] = step >= 5;
    out.there[SECOND] = step >= 6;
    out.body[SECOND][FILM] = step >= 7 ? 1 : NONE;
    return out;
}

static void mark (recording_t *recording, unsigned kind, uint64_t step)
{
    if (recording != NULL)
        recording_add (recording, &(vfs_op_t){.kind = VFS_MARK, .offset = kind, .length = step});
}

enum { BEGUN, ACKNOWLEDGED };

static const Taskmq__Assignment *do_step (stage_t *self, unsigned step,
                                          const Taskmq__Assignment *held)
{
    switch (step) {
    case 1: return begin_task (self, FIRST);
    case 2: attach (self, held, names[NOTE], SMALL); return held;
    case 3: attach (self, held, names[PLOT], 0); return held;
    case 4: attach (self, held, names[PLOT], 1); return held;
    case 5: {
        uint64_t request = rig_complete (self->rig, 1, held, "done");
        rig_run (self->rig);
        assert_int_equal (rig_code (self->rig, 1, request), TMQ_OK);
        return held;
    }
    case 6: return begin_task (self, SECOND);
    case 7: attach (self, held, names[FILM], 1); return held; /* the same bytes once more */
    default: {
        uint64_t request = rig_change (self->rig, 0, TASKMQ__REQUEST__OP_PURGE, FIRST, 1);
        rig_settle (self->rig);
        assert_int_equal (rig_changed (self->rig, 0, request), TMQ_OK);
        return held;
    }
    }
}

/* What is there. */

static void expect_large (stage_t *self, unsigned body, const char *when)
{
    static uint8_t bytes[PIECE];
    depot_word_t word;
    size_t length;
    for (size_t at = 0; at < BODY_BYTES; at += length) {
        depot_read (self->depot, hashes[body], BODY_BYTES, at, bytes, sizeof (bytes), &length,
                    &word);
        if (word.code != TMQ_OK || length == 0)
            fail_msg ("%s: a name without a body: %s", when, word.text);
        if (memcmp (bytes, bodies[body] + at, length) != 0)
            fail_msg ("%s: other bytes than were attached", when);
    }
}

static void expect_small (stage_t *self, unsigned n, const char *name, const char *when)
{
    tmq_id_t id = rig_id (n);
    Taskmq__BlobRead message = TASKMQ__BLOB_READ__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    message.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    message.part = 3;
    message.name = (char *) (uintptr_t) name;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_READ;
    request.blob_read = &message;
    uint64_t number = rig_send (self->rig, 0, &request, NULL, 0);
    rig_settle (self->rig);
    const rig_item_t *item = rig_reply (self->rig, 0, number);
    if (item->reply->code != TMQ_OK || item->body_bytes != sizeof (SMALL_BODY) ||
        memcmp (item->body, SMALL_BODY, sizeof (SMALL_BODY)) != 0)
        fail_msg ("%s: the small body of task %u is not what was attached", when, n);
}

/* Which body a name stands for; NONE: there is no such name. */
static int body_of (const Taskmq__ArtifactPage *page, const char *name, const char *when)
{
    for (size_t i = 0; i < page->n_artifacts; i++) {
        const Taskmq__Artifact *artifact = page->artifacts[i];
        if (strcmp (artifact->name, name) != 0)
            continue;
        for (int body = 0; body <= SMALL; body++)
            if (memcmp (artifact->hash.data, hashes[body], HASH) == 0)
                return body;
        fail_msg ("%s: a hash that nobody gave", when);
    }
    return NONE;
}

static bool task_is (stage_t *self, unsigned n, const expected_t *expected, const char *when)
{
    uint64_t request = rig_get_record (self->rig, 0, n);
    rig_settle (self->rig);
    const Taskmq__Reply *reply = rig_reply (self->rig, 0, request)->reply;
    bool there = reply->code == TMQ_OK;
    if (there != expected->there[n])
        return false;
    if (!there)
        return true;
    if ((reply->task->status == TMQ_STATUS_COMPLETED) != expected->completed[n])
        return false;
    const Taskmq__ArtifactPage *page = rig_artifacts (self->rig, n);
    int found[NAMES];
    size_t count = page->n_artifacts;
    for (int name = 0; name < NAMES; name++) {
        found[name] = body_of (page, names[name], when);
        count -= found[name] != NONE;
        if (found[name] != expected->body[n][name])
            return false;
    }
    assert_int_equal (count, 0);
    for (int name = 0; name < NAMES; name++) {
        if (found[name] == SMALL)
            expect_small (self, n, names[name], when);
        else if (found[name] != NONE)
            expect_large (self, (unsigned) found[name], when);
    }
    return true;
}

static bool all_is (stage_t *self, unsigned step, const char *when)
{
    expected_t expected = expected_behind (step);
    for (unsigned n = FIRST; n <= SECOND; n++)
        if (!task_is (self, n, &expected, when))
            return false;
    return true;
}

/* Whoever does not record it looks at what is there behind each step. */
static void run (stage_t *self, recording_t *recording, const char *when)
{
    const Taskmq__Assignment none = TASKMQ__ASSIGNMENT__INIT;
    const Taskmq__Assignment *held = &none;
    for (unsigned step = 1; step <= STEPS; step++) {
        mark (recording, BEGUN, step);
        held = do_step (self, step, held);
        mark (recording, ACKNOWLEDGED, step);
        if (step % 3 == 0)
            fixture_settle (self->store);
        rig_settle (self->rig);
        if (recording == NULL && !all_is (self, step, when))
            fail_msg ("%s: step %u is not there", when, step);
    }
}

/* A task names it, so the collector must not have it. */
static void expect_needed (stage_t *self, unsigned step)
{
    expected_t expected = expected_behind (step);
    for (unsigned n = FIRST; n <= SECOND; n++)
        for (int name = 0; name < NAMES; name++) {
            int body = expected.body[n][name];
            if (expected.there[n] && body != NONE && body != SMALL)
                assert_true (engine_blob_is_needed (self->rig->engine, hashes[body]));
        }
}

/* Another task gets a body, one that may be there already and one that is not. */
static void expect_goes_on (stage_t *self, const char *when)
{
    enum { NEXT = 9 };
    const Taskmq__Assignment *held = begin_task (self, NEXT);
    tmq_id_t id = rig_id (NEXT);
    if (memcmp (held->task_id.data, id.bytes, sizeof (id.bytes)) != 0) {
        rig_register (self->rig, 1, WORKER + NEXT + 1, "q", 2); /* an older one came first */
        rig_run (self->rig);
        held = rig_assignment (self->rig, 1, rig_assignments (self->rig, 1) - 1)->assignment;
    }
    attach (self, held, names[PLOT], 1);
    attach (self, held, names[FILM], 2);
    const Taskmq__ArtifactPage *page = rig_artifacts (self->rig, NEXT);
    assert_int_equal (page->n_artifacts, 2);
    expect_large (self, 1, when);
    expect_large (self, 2, when);
}

/* The tests. */

static void crash_behind (const vfs_disk_t *disk, size_t point, vfs_loss_t loss, unsigned begun,
                          unsigned acknowledged, uint64_t *random)
{
    char when[80];
    stage_t stage;
    snprintf (when, sizeof (when), "operation %zu, loss %u, step %u", point, (unsigned) loss,
              begun);
    stage_make (&stage);
    vfs_disk_lose (disk, stage.store->directory, loss, random);
    stage_start (&stage);
    unsigned is = all_is (&stage, begun, when) ? begun : acknowledged;
    if (is != begun && !all_is (&stage, acknowledged, when))
        fail_msg ("%s: neither what was acknowledged nor what was begun", when);
    expect_needed (&stage, is);
    expect_goes_on (&stage, when);
    stage_stop (&stage);
    stage_remove (&stage);
}

static uint64_t number_from (const char *name, uint64_t fallback)
{
    const char *text = getenv (name);
    return text == NULL ? fallback : strtoull (text, NULL, 10);
}

static void record_a_run (recording_t *recording)
{
    static char root[64];
    stage_t stage;
    stage_make (&stage);
    memcpy (root, stage.store->directory, sizeof (root));
    recording->root = root;
    stage.store->options.journal_device = &fault_device;
    fault_vfs_record (recording_add, recording);
    file_calls.record = recording_add;
    file_calls.context = recording;
    mkdir (stage.blobs, 0700);
    recording_add (recording, &(vfs_op_t){.kind = VFS_DIRECTORY, .path = stage.blobs});
    stage_start (&stage);
    run (&stage, recording, NULL);
    fault_vfs_record (NULL, NULL);
    stage_stop (&stage);
    stage_remove (&stage);
    recording->root = NULL;
}

static void a_crash_behind_each_operation (void **state)
{
    (void) state;
    recording_t recording = {NULL, NULL, 0, 0};
    vfs_disk_t *disk = vfs_disk_new ();
    uint64_t points = number_from ("TASKMQ_POINTS", POINTS_DEFAULT);
    uint64_t seed = number_from ("TASKMQ_SEED", (uint64_t) time (NULL));
    uint64_t random = seed;
    unsigned begun = 0;
    unsigned acknowledged = 0;
    uint64_t tried = 0;
    record_a_run (&recording);
    print_message ("TASKMQ_SEED=%llu: %zu operations\n", (unsigned long long) seed,
                   recording.count);
    assert_true (recording.count > 100);
    for (size_t i = 0; i < recording.count; i++) {
        const vfs_op_t *op = &recording.ops[i];
        vfs_disk_apply (disk, op);
        if (op->kind == VFS_MARK && op->offset == BEGUN)
            begun = (unsigned) op->length;
        if (op->kind == VFS_MARK && op->offset == ACKNOWLEDGED)
            acknowledged = (unsigned) op->length;
        for (vfs_loss_t loss = LOSE_ALL; points == 0 && loss < LOSSES; loss++)
            crash_behind (disk, i, loss, begun, acknowledged, &random);
        if (points == 0 || (i * points + seed) % recording.count < points)
            crash_behind (disk, i, (vfs_loss_t) ((seed + tried++) % LOSSES), begun, acknowledged,
                          &random);
    }
    assert_int_equal (acknowledged, STEPS);
    assert_true (tried >= points / 2);
    vfs_disk_free (disk);
    recording_free (&recording);
}

/* One call on the files of bodies fails: the upload is refused, begun again, and all is as if
 * nothing had been; after a restart, too. */
static void each_operation_on_bodies_may_fail (void **state)
{
    (void) state;
    static const int errors[] = {EIO, ENOSPC};
    for (size_t i = 0; i < 2; i++) {
        unsigned long failed;
        unsigned long at = 1;
        do {
            char when[80];
            stage_t stage;
            snprintf (when, sizeof (when), "call %lu fails by %d", at, errors[i]);
            stage_make (&stage);
            mkdir (stage.blobs, 0700);
            stage_start (&stage);
            file_calls.made = 0;
            file_calls.error = errors[i];
            file_calls.fails_at = at;
            run (&stage, NULL, when);
            failed = file_calls.failed;
            file_calls.fails_at = 0;
            for (int again = 0; again < 2; again++) {
                if (!all_is (&stage, STEPS, when))
                    fail_msg ("%s: it is not all there", when);
                expect_needed (&stage, STEPS);
                if (again == 0) {
                    stage_stop (&stage);
                    stage_start (&stage);
                }
            }
            expect_goes_on (&stage, when);
            stage_stop (&stage);
            stage_remove (&stage);
            at++;
        } while (failed > 0);
        assert_true (at > 20);
    }
}

int main (void)
{
    assert_true (sodium_init () >= 0);
    fault_vfs_install ();
    fault_vfs_skip_syncs (true);
    for (unsigned body = 0; body < BODIES; body++) {
        for (size_t i = 0; i < BODY_BYTES; i++)
            bodies[body][i] = (uint8_t) (i * 7 + i / 251 + 50 * body + 1);
        crypto_generichash (hashes[body], HASH, bodies[body], BODY_BYTES, NULL, 0);
    }
    crypto_generichash (hashes[SMALL], HASH, (const uint8_t *) SMALL_BODY, sizeof (SMALL_BODY),
                        NULL, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_crash_behind_each_operation),
        cmocka_unit_test (each_operation_on_bodies_may_fail),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
