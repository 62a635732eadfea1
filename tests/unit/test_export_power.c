/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* tasks.jsonl on a disk that fails, is full, or loses power. One run of the exporter, with lines
 * that come and a file that is made smaller, is recorded call by call. Then the files are put
 * together as a crash behind the nth call may leave them: what was not synced is there, or not, or
 * torn. From each an exporter must make a file of whole lines that has the last state of each task.
 *
 * TASKMQ_SEED gives another choice of what is lost. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "export_rig.h"
#include "ids.h"
#include "support/timing.h"

enum { SECTOR = 512, FILE_MAX = 1 << 20, TASKS = 12, ROUNDS = 6, SEED_DEFAULT = 5 };

/* The calls that change files, as the linker hands them to us. */

typedef enum kind { WRITE, TRUNCATE, SYNC, RENAME } kind_t;
typedef struct call {
    kind_t kind;
    bool new; /* of tasks.jsonl.new */
    size_t at;
    size_t length;
    char *bytes;
} call_t;

static call_t *calls;
static size_t calls_count;
static size_t calls_room;
static atomic_bool records;
static atomic_int fails_at; /* the nth call from now fails, … */
static atomic_int fails_with;
static atomic_bool fails_on; /* … and all that come after it */
static atomic_int made;      /* since then */

static bool name_of (int fd, char name[160])
{
    char link[40];
    snprintf (link, sizeof (link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink (link, name, 159);
    name[length > 0 ? length : 0] = '\0';
    return strstr (name, "tasks.jsonl") != NULL;
}

static bool ends_with (const char *text, const char *ending)
{
    size_t length = strlen (text);
    return length >= strlen (ending) && strcmp (text + length - strlen (ending), ending) == 0;
}

static void note (kind_t kind, const char *name, size_t at, size_t length, const void *bytes)
{
    if (!atomic_load (&records))
        return;
    calls = memory_grow (calls, &calls_room, calls_count, sizeof (call_t));
    call_t *call = &calls[calls_count++];
    *call = (call_t){kind, ends_with (name, ".new"), at, length, NULL};
    if (bytes != NULL)
        call->bytes = memcpy (memory_alloc (length + 1), bytes, length);
}

/* Whether this call is to fail. */
static bool refuse (void)
{
    int number = atomic_fetch_add (&made, 1) + 1;
    int at = atomic_load (&fails_at);
    if (at == 0 || number < at || (number > at && !atomic_load (&fails_on)))
        return false;
    errno = atomic_load (&fails_with);
    return true;
}

ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at);
int __real_ftruncate (int fd, off_t length);
int __wrap_ftruncate (int fd, off_t length);
int __real_fdatasync (int fd);
int __wrap_fdatasync (int fd);
int __real_rename (const char *from, const char *to);
int __wrap_rename (const char *from, const char *to);

/* One that fails has written half of it. */
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at)
{
    char name[160];
    if (!name_of (fd, name))
        return __real_pwrite (fd, bytes, length, at);
    if (refuse ()) {
        int saved = errno;
        if (__real_pwrite (fd, bytes, length / 2, at) < 0)
            saved = errno;
        errno = saved;
        return -1;
    }
    ssize_t written = __real_pwrite (fd, bytes, length, at);
    note (WRITE, name, (size_t) at, (size_t) written, bytes);
    return written;
}

int __wrap_ftruncate (int fd, off_t length)
{
    char name[160];
    if (!name_of (fd, name))
        return __real_ftruncate (fd, length);
    if (refuse ())
        return -1;
    note (TRUNCATE, name, (size_t) length, 0, NULL);
    return __real_ftruncate (fd, length);
}

int __wrap_fdatasync (int fd)
{
    char name[160];
    if (!name_of (fd, name))
        return __real_fdatasync (fd);
    if (refuse ())
        return -1;
    note (SYNC, name, 0, 0, NULL);
    return 0;
}

int __wrap_rename (const char *from, const char *to)
{
    if (strstr (from, "tasks.jsonl") == NULL)
        return __real_rename (from, to);
    if (refuse ())
        return -1;
    note (RENAME, from, 0, 0, NULL);
    return __real_rename (from, to);
}

/* A store in memory with an exporter behind it, and tasks. */

static record_t tasks[TASKS]; /* as they were committed last */

static void open_with_tasks (rig_t *self)
{
    rig_open (self, "memory");
    for (int64_t i = 0; i < TASKS; i++)
        tasks[i] = test_record (i + 1);
}

static void export_to_file (rig_t *self, bool compacts)
{
    self->compact.bytes = compacts ? 4096 : UINT64_MAX;
    rig_export (self);
}

/* The nth call failed, or all is in the file. */
static bool is_done (const rig_t *self, int at)
{
    exporter_stats_t stats;
    exporter_stats (self->exporter, &stats);
    return (at > 0 && atomic_load (&made) >= at) || stats.pos == self->fixture->pos;
}

/* A new state of each task, each a line, until the nth call has failed; 0: none does. */
static void rig_change_all (rig_t *self, int at)
{
    for (size_t i = 0; i < TASKS; i++) {
        batch_t *batch = fixture_batch (self->fixture);
        fixture_change (self->fixture, batch, &tasks[i],
                        tasks[i].last_seq == 0 ? TMQ_EVENT_SUBMITTED : TMQ_EVENT_CHANGED);
        fixture_commit (self->fixture, batch);
        fixture_settle (self->fixture);
        WAIT_FOR (is_done (self, at), TIMING_PATIENCE_MS);
    }
}

/* Whole lines, none with a hole, and of each task the newest sequence. */
static void assert_right (const rig_t *self, const char *when, size_t point)
{
    static char text[FILE_MAX];
    uint64_t newest[TASKS] = {0};
    int fd = open (self->path, O_RDONLY);
    assert_true (fd >= 0);
    ssize_t got = read (fd, text, sizeof (text) - 1);
    close (fd);
    assert_in_range (got, 1, sizeof (text) - 2);
    text[got] = '\0';
    if (memchr (text, '\0', (size_t) got) != NULL || text[got - 1] != '\n')
        fail_msg ("%s, call %zu: a line is not whole", when, point);
    for (char *line = strtok (text, "\n"); line != NULL; line = strtok (NULL, "\n")) {
        tasks_line_t place;
        if (!tasks_line_parse (line, strlen (line), &place))
            fail_msg ("%s, call %zu: no line of ours: %.80s", when, point, line);
        for (size_t i = 0; i < TASKS; i++)
            if (memcmp (&place.id, &tasks[i].id, sizeof (place.id)) == 0)
                newest[i] = place.seq;
    }
    for (size_t i = 0; i < TASKS; i++)
        if (newest[i] != tasks[i].last_seq)
            fail_msg ("%s, call %zu: task %zu is at %d, not %d", when, point, i, (int) newest[i],
                      (int) tasks[i].last_seq);
}

/* The files after a loss of power. */

typedef enum loss { KEEP, DROP, SOME, SECTORS, LOSSES } loss_t;
static const char *const LOSS_NAMES[] = {"all is kept", "all is dropped", "some calls are",
                                         "some sectors are"};

typedef struct image {
    char bytes[FILE_MAX];
    size_t length;
    bool there;
} image_t;

static uint64_t chance;

static bool is_kept (loss_t loss)
{
    chance = chance * UINT64_C (6364136223846793005) + 1442695040888963407;
    return loss == KEEP || (loss != DROP && (chance >> 33) % 2 == 0);
}

/* The size of the file may be known where the bytes are not: then they are zeroes. */
static void apply (image_t *image, const call_t *call, loss_t loss)
{
    image->there = true;
    if (call->kind == TRUNCATE) {
        if (is_kept (loss))
            image->length = call->at;
        return;
    }
    if (loss != KEEP && loss != SECTORS && !is_kept (loss))
        return;
    if (call->at > image->length)
        memset (image->bytes + image->length, 0, call->at - image->length);
    size_t old = image->length;
    if (call->at + call->length > image->length)
        image->length = call->at + call->length;
    for (size_t done = 0; done < call->length;) {
        size_t piece = SECTOR - (call->at + done) % SECTOR;
        if (piece > call->length - done)
            piece = call->length - done;
        if (loss != SECTORS || is_kept (loss))
            memcpy (image->bytes + call->at + done, call->bytes + done, piece);
        else if (call->at + done >= old)
            memset (image->bytes + call->at + done, 0, piece);
        done += piece;
    }
}

/* The file of this name as the disk has it behind `point` calls; [from, point) were not synced. */
static void replay (image_t images[2], size_t point, loss_t loss)
{
    size_t synced[2] = {0, 0};
    size_t named = 0; /* calls of .new before its last renaming are those of the file itself */
    memset (images, 0, 2 * sizeof (image_t));
    for (size_t i = 0; i < point; i++) {
        if (calls[i].kind == SYNC)
            synced[calls[i].new] = i;
        if (calls[i].kind == RENAME) {
            synced[0] = synced[1];
            named = i;
        }
    }
    for (size_t i = 0; i < point; i++) {
        const call_t *call = &calls[i];
        if (call->kind == RENAME) {
            images[0] = images[1];
            images[1] = (image_t){.there = false};
        } else if (call->kind != SYNC) {
            bool counts = call->new &&i < named;
            size_t safe = counts ? named : synced[call->new];
            apply (&images[call->new], call, i < safe ? KEEP : loss);
        }
    }
}

static void put (const char *path, const image_t *image)
{
    unlink (path);
    if (!image->there)
        return;
    int fd = open (path, O_WRONLY | O_CREAT, 0600);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, image->bytes, image->length), image->length);
    close (fd);
}

static void record_a_run (rig_t *rig)
{
    atomic_store (&records, true);
    export_to_file (rig, true);
    for (int round = 0; round < ROUNDS; round++) {
        exporter_stats_t stats;
        rig_change_all (rig, 0);
        if (round == ROUNDS - 2)
            WAIT_FOR ((exporter_stats (rig->exporter, &stats), stats.compactions > 0),
                      TIMING_PATIENCE_MS);
    }
    exporter_free (&rig->exporter);
    atomic_store (&records, false);
}

static void test_a_loss_of_power_at_any_moment (void **state)
{
    (void) state;
    rig_t rig = {0};
    static image_t images[2];
    char new[96];
    size_t renames = 0;
    const char *seed = getenv ("TASKMQ_SEED");
    chance = seed == NULL ? SEED_DEFAULT : strtoull (seed, NULL, 10);
    open_with_tasks (&rig);
    snprintf (new, sizeof (new), "%s.new", rig.path);
    record_a_run (&rig);
    for (size_t i = 0; i < calls_count; i++)
        renames += calls[i].kind == RENAME;
    assert_true (calls_count > TASKS * ROUNDS);
    assert_true (renames > 0);
    for (size_t point = 1; point <= calls_count; point++)
        for (loss_t loss = KEEP; loss < LOSSES; loss++) {
            replay (images, point, loss);
            put (rig.path, &images[0]);
            put (new, &images[1]);
            export_to_file (&rig, false);
            rig_settle (&rig);
            exporter_free (&rig.exporter);
            assert_right (&rig, LOSS_NAMES[loss], point);
        }
    rig_close (&rig);
    for (size_t i = 0; i < calls_count; i++)
        free (calls[i].bytes);
    free (calls);
    calls = NULL;
    calls_count = calls_room = 0;
}

/* The nth call fails, alone or with all behind it, until the disk is well again. */
static void fail_at_each (bool all_behind, int with)
{
    bool reached = true;
    for (int at = 1; reached; at += 1 + at / 4) {
        rig_t rig = {0};
        open_with_tasks (&rig);
        export_to_file (&rig, true);
        rig_change_all (&rig, 0);
        atomic_store (&made, 0);
        atomic_store (&fails_with, with);
        atomic_store (&fails_on, all_behind);
        atomic_store (&fails_at, at);
        exporter_stats_t stats;
        for (int round = 0; round < 3; round++)
            rig_change_all (&rig, at);
        fixture_settle (rig.fixture);
        WAIT_FOR (
            (exporter_stats (rig.exporter, &stats),
             atomic_load (&made) >= at || (stats.compactions > 0 && stats.pos == rig.fixture->pos)),
            TIMING_PATIENCE_MS);
        reached = atomic_load (&made) >= at;
        atomic_store (&fails_at, 0);
        rig_settle (&rig);
        exporter_free (&rig.exporter);
        assert_right (&rig, all_behind ? "all calls fail from" : "one call fails", (size_t) at);
        export_to_file (&rig, false);
        rig_settle (&rig);
        exporter_free (&rig.exporter);
        assert_right (&rig, "started again", (size_t) at);
        rig_close (&rig);
        assert_in_range (at, 1, 200);
        if (!reached)
            assert_true (at > 5);
    }
}

static void test_any_call_fails (void **state)
{
    (void) state;
    fail_at_each (false, EIO);
}

static void test_no_space_from_any_call_on (void **state)
{
    (void) state;
    fail_at_each (true, ENOSPC);
}

/* What is none of ours is never cut, whatever stands in it. */
static void test_a_foreign_file_with_zeroes_is_kept (void **state)
{
    (void) state;
    rig_t rig = {0};
    image_t *image = memory_zero (1, sizeof (*image));
    char aside[96];
    struct stat info;
    open_with_tasks (&rig);
    image->there = true;
    image->length = 3000;
    memcpy (image->bytes, "GIF89a", 6);
    image->bytes[2000] = '\n';
    put (rig.path, image);
    export_to_file (&rig, false);
    rig_change_all (&rig, 0);
    exporter_free (&rig.exporter);
    assert_right (&rig, "beside a foreign file", 0);
    snprintf (aside, sizeof (aside), "%s.foreign", rig.path);
    assert_int_equal (stat (aside, &info), 0);
    assert_int_equal (info.st_size, image->length);
    free (image);
    rig_close (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_loss_of_power_at_any_moment),
        cmocka_unit_test (test_any_call_fails),
        cmocka_unit_test (test_no_space_from_any_call_on),
        cmocka_unit_test (test_a_foreign_file_with_zeroes_is_kept),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
