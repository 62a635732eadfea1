/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of logs, through a kill and a loss of power behind each of their operations, with each
 * of these failing, and on a disk without space. Logs are best effort: what counts is that a reader
 * gets bytes that were written at their offsets, each once, and is told of every gap; that a
 * failure takes its own piece and nothing else; and that it goes on afterwards.
 *
 * TASKMQ_SEED gives another choice of what is lost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_calls.h"
#include "logs/shelf.h"
#include "store_support.h"
#include "vfs_disk.h"

enum {
    KIB = 1024,
    STREAM_BYTES = 8 * KIB,
    PIECE_MAX = 1500,
    STREAMS = 5, /* of two tasks, one with two attempts */
    FORGOTTEN = 4,
    PIECES = 60,
    /* However a file is halved, so much at its end stays. */
    KEPT_BYTES = STREAM_BYTES / 2 - PIECE_MAX - 200,
    SEED_DEFAULT = 7
};

static const shelf_limits_t LIMITS = {
    .stream_bytes = STREAM_BYTES, .disk_bytes = 64 << 20, .tasks = 1000};

/* Marks among the operations: of a stream, up to where bytes were brought, or taken. */
enum { BROUGHT, TAKEN = BROUGHT + STREAMS, GONE = TAKEN + STREAMS };

static char place[64];
static char directory[96];
static shelf_t *shelf;
static uint64_t chance;

/* What the test knows of a stream. */
typedef struct known {
    uint64_t brought; /* up to here bytes were on their way */
    uint64_t taken;   /* … and were answered without an error */
} known_t;
static known_t known[STREAMS];
static bool gone; /* the task of the last stream, or it was about to go */

static uint64_t dice (void)
{
    chance = chance * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return chance >> 33;
}

static log_key_t key_of (size_t stream)
{
    static const struct {
        int64_t number;
        uint32_t attempt;
        tmq_log_stream_t stream;
    } streams[STREAMS] = {{1, 1, TMQ_LOG_OUT},
                          {1, 1, TMQ_LOG_ERR},
                          {1, 2, TMQ_LOG_OUT},
                          {1, 2, TMQ_LOG_ERR},
                          {2, 1, TMQ_LOG_OUT}};
    log_key_t key = {.number = streams[stream].number,
                     .ns = "default",
                     .attempt = streams[stream].attempt,
                     .stream = streams[stream].stream};
    key.id.bytes[0] = (uint8_t) key.number;
    return key;
}

/* What stands at an offset of a stream, and nowhere near another one; never a zero. */
static uint8_t byte_at (size_t stream, uint64_t offset)
{
    uint64_t x = (offset + stream * 1000003 + 1) * UINT64_C (0x9e3779b97f4a7c15);
    return (uint8_t) ('!' + (x >> 40) % 90);
}

static int put (size_t stream, uint64_t offset, size_t length)
{
    uint8_t bytes[PIECE_MAX];
    log_key_t key = key_of (stream);
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at (stream, offset + i);
    log_piece_t *piece = log_piece_new (&key, offset, bytes, length);
    int error = shelf_write (shelf, piece, 0);
    log_piece_free (piece);
    return error;
}

/* Starts, and has looked at all that was there. */
static void open_shelf (void)
{
    int error = 0;
    log_key_t left[SHELF_SLICE_MAX];
    size_t count;
    shelf = shelf_new (directory, &LIMITS, &error);
    assert_non_null (shelf);
    bool more = true;
    while (more) {
        more = shelf_look (shelf, left, &count);
        for (size_t i = 0; i < count && gone; i++)
            if (left[i].number == key_of (FORGOTTEN).number)
                shelf_forget (shelf, left[i].number);
    }
}

static void mark (recording_t *recording, unsigned kind, uint64_t value)
{
    if (recording != NULL)
        recording_add (recording, &(vfs_op_t){.kind = VFS_MARK, .offset = kind, .length = value});
}

/* A stream's next piece. */
static void bring (recording_t *recording, size_t stream)
{
    known_t *self = &known[stream];
    size_t length = 1 + dice () % PIECE_MAX;
    uint64_t offset = self->brought;
    self->brought += length;
    mark (recording, BROUGHT + (unsigned) stream, self->brought);
    if (put (stream, offset, length) != 0)
        return;
    self->taken = self->brought;
    mark (recording, TAKEN + (unsigned) stream, self->taken);
}

/* Pieces of all streams, a restart in their middle, and a task that is removed. */
static void run (recording_t *recording)
{
    memset (known, 0, sizeof (known));
    gone = false;
    chance = SEED_DEFAULT;
    open_shelf ();
    for (size_t i = 0; i < PIECES; i++) {
        size_t stream = dice () % (i < PIECES / 3 ? 2 : STREAMS);
        if (stream != FORGOTTEN || !gone)
            bring (recording, stream);
        if (i == PIECES / 2) {
            shelf_free (&shelf);
            open_shelf ();
        }
        if (i == PIECES * 3 / 4) {
            mark (recording, GONE, 1);
            gone = true;
            shelf_forget (shelf, key_of (FORGOTTEN).number);
        }
    }
}

/* Reading. */

typedef struct seen {
    uint64_t first; /* byte that is kept; UINT64_MAX: none is */
    uint64_t end;   /* behind the newest one */
    uint64_t total; /* as the reader is told */
    uint64_t gaps;  /* bytes between the two that are not there */
} seen_t;

static seen_t read_stream (size_t stream, const char *when, size_t point)
{
    seen_t seen = {.first = UINT64_MAX};
    uint8_t bytes[700];
    log_key_t key = key_of (stream);
    shelf_page_t page;
    uint64_t at = 0;
    do {
        assert_int_equal (shelf_read (shelf, &key, at, bytes, sizeof (bytes), &page), 0);
        seen.total = page.end;
        assert_true (page.length > 0 || !page.more);
        if (page.length == 0)
            break;
        assert_true (page.offset >= at);
        for (size_t i = 0; i < page.length; i++)
            if (bytes[i] != byte_at (stream, page.offset + i))
                fail_msg ("%s, operation %zu: byte %zu of stream %zu is not what was written", when,
                          point, (size_t) page.offset + i, stream);
        if (seen.first == UINT64_MAX)
            seen.first = page.offset;
        else
            seen.gaps += page.offset - at;
        at = seen.end = page.offset + page.length;
    } while (page.more);
    return seen;
}

/* What counts to the limits is what the disk has. */
static void assert_bytes_counted (const char *when, size_t point)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < STREAMS; i++) {
        char path[200];
        struct stat info;
        log_key_t key = key_of (i);
        if (i == FORGOTTEN &&
            gone) /* its removal may have failed: the next start makes up for it */
            continue;
        snprintf (path, sizeof (path), "%s/0/%d-%u.%s", directory, (int) key.number, key.attempt,
                  key.stream == TMQ_LOG_OUT ? "out" : "err");
        if (stat (path, &info) == 0)
            bytes += (uint64_t) info.st_size;
    }
    if (shelf_stats (shelf).bytes != bytes)
        fail_msg ("%s, operation %zu: %zu bytes counted, %zu on the disk", when, point,
                  (size_t) shelf_stats (shelf).bytes, (size_t) bytes);
}

/* Whatever is there is right, and all streams go on behind it, also after one more start. */
static void assert_goes_on (const char *when, size_t point)
{
    for (size_t i = 0; i < STREAMS; i++) {
        if (i == FORGOTTEN && gone)
            continue;
        seen_t before = read_stream (i, when, point);
        assert_true (before.total <= known[i].brought);
        uint64_t offset = known[i].brought;
        assert_int_equal (put (i, offset, 100), 0);
        known[i].brought += 100;
        for (int again = 0; again < 2; again++) {
            seen_t after = read_stream (i, when, point);
            if (after.end != offset + 100 || after.total != after.end)
                fail_msg ("%s, operation %zu: stream %zu does not go on at %zu", when, point, i,
                          (size_t) offset);
            if (before.end > 0 && before.end >= offset && after.gaps > before.gaps)
                fail_msg ("%s, operation %zu: stream %zu lost what was there", when, point, i);
            if (again == 0) {
                shelf_free (&shelf);
                open_shelf ();
            }
        }
    }
    assert_bytes_counted (when, point);
}

/* A kill takes nothing that was taken, but what was too old to stay. */
static void assert_kept (const char *when, size_t point)
{
    for (size_t i = 0; i < STREAMS; i++) {
        if (i == FORGOTTEN && gone)
            continue;
        seen_t seen = read_stream (i, when, point);
        uint64_t kept = known[i].taken < KEPT_BYTES ? known[i].taken : KEPT_BYTES;
        if (seen.end < known[i].taken || seen.gaps > 0 ||
            (kept > 0 && seen.first > known[i].taken - kept))
            fail_msg ("%s, operation %zu: stream %zu lost what was taken", when, point, i);
    }
}

/* The tests. */

static void begin (void)
{
    vfs_place_make (place);
    snprintf (directory, sizeof (directory), "%s/logs", place);
    assert_int_equal (mkdir (directory, 0700), 0);
    file_calls = (file_calls_t){.below = "/logs/"};
}

static void end (void)
{
    shelf_free (&shelf);
    file_calls = (file_calls_t){.below = NULL};
    vfs_place_remove (place);
}

/* What the run was told until then. */
static void take_mark (const vfs_op_t *op)
{
    if (op->offset >= GONE)
        gone = true;
    else if (op->offset >= TAKEN)
        known[op->offset - TAKEN].taken = op->length;
    else
        known[op->offset].brought = op->length;
}

static void crash_behind (const vfs_disk_t *disk, size_t point, vfs_loss_t loss)
{
    static const char *const names[] = {"all unsynced is lost", "a kill", "some sectors are lost",
                                        "some writes are lost", "zeros for bytes"};
    known_t before[STREAMS];
    memcpy (before, known, sizeof (known));
    begin ();
    vfs_disk_lose (disk, directory, loss, &chance);
    open_shelf ();
    if (loss == LOSE_NOTHING)
        assert_kept (names[loss], point);
    assert_goes_on (names[loss], point);
    end ();
    memcpy (known, before, sizeof (known));
}

static void a_crash_behind_each_operation (void **state)
{
    (void) state;
    const char *seed = getenv ("TASKMQ_SEED");
    char root[96];
    recording_t recording = {NULL, NULL, 0, 0};
    vfs_disk_t *disk = vfs_disk_new ();
    begin ();
    memcpy (root, directory, sizeof (root));
    recording.root = root;
    file_calls.record = recording_add;
    file_calls.context = &recording;
    run (&recording);
    end ();
    memset (known, 0, sizeof (known));
    gone = false;
    chance = seed == NULL ? SEED_DEFAULT : strtoull (seed, NULL, 10);
    assert_true (recording.count > 3 * PIECES);
    for (size_t i = 0; i < recording.count; i++) {
        vfs_disk_apply (disk, &recording.ops[i]);
        if (recording.ops[i].kind == VFS_MARK) {
            take_mark (&recording.ops[i]);
            continue;
        }
        for (vfs_loss_t loss = LOSE_ALL; loss < LOSSES; loss++)
            crash_behind (disk, i, loss);
    }
    vfs_disk_free (disk);
    recording_free (&recording);
}

/* One call fails, or all from it on until the disk is well again. Who reads before the next start
 * is also told of what was lost at the end. */
static void fail_at_each (int error, unsigned long more, const char *when)
{
    unsigned long failed;
    unsigned long at = 1;
    do {
        begin ();
        file_calls.error = error;
        file_calls.fails_at = at;
        file_calls.fails_upto = at + more;
        run (NULL);
        failed = file_calls.failed;
        file_calls.fails_at = 0;
        assert_bytes_counted (when, at);
        for (size_t i = 0; i < STREAMS; i++) {
            if (i == FORGOTTEN && gone)
                continue;
            log_key_t key = key_of (i);
            bool newest = key.number != 1 || key.attempt == 2;
            seen_t seen = read_stream (i, when, at);
            if (newest && seen.total != known[i].brought)
                fail_msg ("%s, call %zu: nobody is told that stream %zu lost its end", when, at, i);
            uint64_t window = known[i].brought < KEPT_BYTES ? known[i].brought : KEPT_BYTES;
            if (more == 1 && seen.end >= known[i].brought && seen.gaps == 0 &&
                seen.first > known[i].brought - window)
                fail_msg ("%s, call %zu: stream %zu lost more than its piece", when, at, i);
            if (more == 1 && seen.gaps > PIECE_MAX)
                fail_msg ("%s, call %zu: stream %zu lost more than a piece", when, at, i);
        }
        assert_goes_on (when, at);
        end ();
        at++;
    } while (failed > 0);
    assert_true (at > PIECES);
}

static void each_operation_may_fail (void **state)
{
    (void) state;
    fail_at_each (EIO, 1, "a call fails");
}

static void there_may_be_no_space (void **state)
{
    (void) state;
    fail_at_each (ENOSPC, 1, "a call finds no space");
    fail_at_each (ENOSPC, 12, "twelve calls find no space");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_crash_behind_each_operation),
        cmocka_unit_test (each_operation_may_fail),
        cmocka_unit_test (there_may_be_no_space),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
