/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "blobs_stage.h"

const depot_limits_t LIMITS = {.blob_bytes = 4 << 20, .disk_bytes = 64 << 20};

char place[64];
char directory[96];
depot_t *depot;
uint8_t contents[BYTES];
uint8_t hash[TMQ_BLOB_HASH_BYTES];
depot_upload_t upload;

/* Faults: the operation of this number fails, or the process ends before it. */

faults_t *faults; /* shared with the children */

bool fails (void)
{
    if (faults->at == 0 || ++faults->done != faults->at)
        return false;
    if (faults->error == 0)
        _exit (CRASHED);
    errno = faults->error;
    return true;
}

bool refuses_direct;
unsigned long direct_writes;

ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t at)
{
    if (fails ())
        return -1;
    bool direct = (fcntl (fd, F_GETFL) & O_DIRECT) != 0;
    direct_writes += direct;
    if (direct && refuses_direct) {
        errno = EINVAL;
        return -1;
    }
    faults->dirty++;
    return __real_pwrite (fd, bytes, length, at);
}

ssize_t __real_pwrite64 (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite64 (int fd, const void *bytes, size_t length, off_t at);
ssize_t __wrap_pwrite64 (int fd, const void *bytes, size_t length, off_t at)
{
    return __wrap_pwrite (fd, bytes, length, at);
}

int __real_fsync (int fd);
int __wrap_fsync (int fd);
int __wrap_fsync (int fd)
{
    struct stat status;
    bool is_file = fstat (fd, &status) == 0 && S_ISREG (status.st_mode);
    if (fails ()) {
        faults->lost = faults->lost || is_file;
        return -1;
    }
    if (is_file)
        faults->dirty = 0;
    return __real_fsync (fd);
}

/* What the disk was asked to write, in bytes, and what it was waited for. */
uint64_t began_back;
uint64_t waited_back;
int write_back_error; /* the next one fails */

int __real_sync_file_range (int fd, off_t from, off_t length, unsigned flags);
int __wrap_sync_file_range (int fd, off_t from, off_t length, unsigned flags);
int __wrap_sync_file_range (int fd, off_t from, off_t length, unsigned flags)
{
    if (write_back_error != 0) {
        errno = write_back_error;
        write_back_error = 0;
        return -1;
    }
    if ((flags & SYNC_FILE_RANGE_WAIT_AFTER) != 0)
        waited_back += (uint64_t) length;
    else
        began_back += (uint64_t) length;
    return __real_sync_file_range (fd, from, length, flags);
}

uint64_t free_bytes; /* of the disk; 0: what it has */

int __real_fstatvfs (int fd, struct statvfs *out);
int __wrap_fstatvfs (int fd, struct statvfs *out);
int __wrap_fstatvfs (int fd, struct statvfs *out)
{
    int failed = __real_fstatvfs (fd, out);
    if (failed == 0 && free_bytes > 0) {
        out->f_frsize = 1;
        out->f_bavail = free_bytes;
    }
    return failed;
}

int __real_fstatvfs64 (int fd, struct statvfs *out);
int __wrap_fstatvfs64 (int fd, struct statvfs *out);
int __wrap_fstatvfs64 (int fd, struct statvfs *out)
{
    return __wrap_fstatvfs (fd, out);
}

int __real_linkat (int from, const char *old, int to, const char *name, int flags);
int __wrap_linkat (int from, const char *old, int to, const char *name, int flags);
int __wrap_linkat (int from, const char *old, int to, const char *name, int flags)
{
    return fails () ? -1 : __real_linkat (from, old, to, name, flags);
}

int __real_renameat (int from, const char *old, int to, const char *name);
int __wrap_renameat (int from, const char *old, int to, const char *name);
int __wrap_renameat (int from, const char *old, int to, const char *name)
{
    return fails () ? -1 : __real_renameat (from, old, to, name);
}

int __real_mkdirat (int at, const char *name, mode_t mode);
int __wrap_mkdirat (int at, const char *name, mode_t mode);
int __wrap_mkdirat (int at, const char *name, mode_t mode)
{
    return fails () ? -1 : __real_mkdirat (at, name, mode);
}

int __real_unlinkat (int at, const char *name, int flags);
int __wrap_unlinkat (int at, const char *name, int flags);
int __wrap_unlinkat (int at, const char *name, int flags)
{
    return fails () ? -1 : __real_unlinkat (at, name, flags);
}

/* What the tests are made of. */

void open_depot (const depot_limits_t *limits)
{
    int error = 0;
    depot = depot_new (directory, limits, &error);
    assert_non_null (depot);
}

void reopen (void)
{
    depot_free (&depot);
    open_depot (&LIMITS);
}

int setup (void **state)
{
    (void) state;
    directory_make (place);
    snprintf (directory, sizeof (directory), "%s/blobs", place);
    *faults = (faults_t){0};
    for (size_t i = 0; i < BYTES; i++)
        contents[i] = (uint8_t) (i * 7 + i / 251);
    crypto_generichash (hash, sizeof (hash), contents, BYTES, NULL, 0);
    upload = (depot_upload_t){.identity = "uid:7", .ns = "default", .hash = hash, .bytes = BYTES};
    open_depot (&LIMITS);
    return 0;
}

int teardown (void **state)
{
    (void) state;
    char command[160];
    *faults = (faults_t){0};
    depot_free (&depot);
    snprintf (command, sizeof (command), "rm -rf '%s'", place);
    return system (command);
}

depot_word_t begin_at (const depot_upload_t *of, int64_t mono_ms)
{
    depot_word_t word;
    do
        depot_begin (depot, of, mono_ms, &word);
    while (word.more);
    return word;
}

depot_word_t begin (const depot_upload_t *of)
{
    return begin_at (of, 0);
}

depot_word_t chunk (const depot_upload_t *of, uint64_t offset, size_t length)
{
    depot_word_t word;
    do
        depot_chunk (depot, of, offset, contents + offset, length, 0, &word);
    while (word.more);
    return word;
}

/* From where it is wanted to its end, or to the first refusal. */
depot_word_t put_rest (const depot_upload_t *of)
{
    depot_word_t word = begin (of);
    while (word.code == TMQ_OK && !word.whole) {
        size_t left = BYTES - (size_t) word.offset;
        word = chunk (of, word.offset, left < PIECE ? left : PIECE);
    }
    return word;
}

tmq_code_t read_at (uint64_t offset, uint8_t *to, size_t limit, size_t *length)
{
    depot_word_t word;
    depot_read (depot, hash, BYTES, offset, to, limit, length, &word);
    return word.code;
}

void expect_contents (void)
{
    static uint8_t bytes[BYTES];
    size_t at = 0;
    while (at < BYTES) {
        size_t length;
        assert_int_equal (read_at (at, bytes + at, PIECE, &length), TMQ_OK);
        assert_true (length > 0);
        at += length;
    }
    assert_memory_equal (bytes, contents, BYTES);
}

void blob_path (char out[300])
{
    char hex[65];
    sodium_bin2hex (hex, sizeof (hex), hash, sizeof (hash));
    snprintf (out, 300, "%s/%.2s/%s", directory, hex, hex + 2);
}

/* The one file in uploads. */
bool upload_path (char out[500])
{
    char uploads[160];
    bool found = false;
    snprintf (uploads, sizeof (uploads), "%s/uploads", directory);
    DIR *list = opendir (uploads);
    assert_non_null (list);
    for (const struct dirent *file = readdir (list); file != NULL; file = readdir (list))
        if (file->d_name[0] != '.' && strstr (file->d_name, ".new") == NULL) {
            snprintf (out, 500, "%s/%s", uploads, file->d_name);
            found = true;
        }
    closedir (list);
    return found;
}

/* As if it had stood still for two hours. */
void age (const char *path)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    now.tv_sec -= 7200;
    const struct timespec times[] = {now, now};
    assert_int_equal (utimensat (AT_FDCWD, path, times, 0), 0);
}

/* All that one round of looks brings. */
size_t look (depot_left_t *newest)
{
    static depot_left_t left[DEPOT_SLICE_MAX];
    size_t all = 0;
    for (unsigned i = 0; i <= DEPOT_BUCKETS; i++) {
        size_t count;
        depot_look (depot, 2 * DEPOT_IDLE_MS, left, &count);
        if (count > 0)
            *newest = left[count - 1];
        all += count;
    }
    return all;
}

void stage_begin (void)
{
    faults =
        mmap (NULL, sizeof (*faults), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true (faults != MAP_FAILED);
    assert_true (sodium_init () >= 0);
}
