/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of blobs: what was uploaded is read again; what is under a name are the bytes of that
 * name; nothing grows beyond its limit, and nothing is removed before its time. */

#include "blobs/blob_write.h"
#include "blobs_stage.h"

static void what_was_uploaded_is_read_again (void **state)
{
    (void) state;
    uint8_t byte;
    size_t length;
    depot_word_t word = begin (&upload);
    assert_int_equal (word.code, TMQ_OK);
    assert_false (word.whole);
    assert_int_equal (word.offset, 0);
    assert_int_equal (read_at (0, &byte, 1, &length), TMQ_NO_BLOB);
    assert_int_equal (chunk (&upload, 0, PIECE).offset, PIECE);
    assert_int_equal (chunk (&upload, 0, PIECE).offset, PIECE);       /* a repeat */
    assert_int_equal (chunk (&upload, 2 * PIECE, KIB).offset, PIECE); /* a hole */
    assert_int_equal (chunk (&upload, PIECE - 5, PIECE).offset, 2 * PIECE - 5);
    word = put_rest (&upload);
    assert_int_equal (word.code, TMQ_OK);
    assert_true (word.whole);
    expect_contents ();
    assert_int_equal (read_at (BYTES - 1, &byte, 1, &length), TMQ_OK);
    assert_int_equal (byte, contents[BYTES - 1]);
    assert_int_equal (read_at (BYTES, &byte, 1, &length), TMQ_OK);
    assert_int_equal (length, 0);
    assert_true (begin (&upload).whole); /* nothing is sent again, … */
    reopen ();
    assert_true (begin (&upload).whole); /* … also after a restart */
    assert_int_equal (depot_stats (depot).blobs, 1);
}

static void an_upload_goes_on_after_a_restart (void **state)
{
    (void) state;
    begin (&upload);
    chunk (&upload, 0, PIECE);
    reopen ();
    assert_int_equal (chunk (&upload, PIECE, PIECE).code, TMQ_NO_BLOB); /* begin again */
    assert_int_equal (begin (&upload).offset, PIECE);
    assert_true (put_rest (&upload).whole);
    expect_contents ();
}

/* Who knows a hash has nothing of those who uploaded its bytes. */
static void nobody_has_what_others_uploaded (void **state)
{
    (void) state;
    depot_upload_t other = upload;
    assert_true (put_rest (&upload).whole);
    other.identity = "uid:8";
    assert_false (begin (&other).whole);
    other = upload;
    other.ns = "other";
    assert_false (begin (&other).whole);
    assert_int_equal (begin (&other).offset, 0);
    assert_true (put_rest (&other).whole);
    assert_int_equal (depot_stats (depot).blobs, 1); /* one file all the same, … */
    expect_contents ();
    char path[300];
    struct stat info;
    blob_path (path);
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (info.st_nlink, 3);                     /* … which has the names of both */
    assert_int_equal (depot_stats (depot).bytes, 2 * BYTES); /* with what uid:8 began */
    assert_true (begin (&other).whole);
    assert_true (begin (&upload).whole);
}

static void wrong_bytes_are_refused (void **state)
{
    (void) state;
    begin (&upload);
    contents[3] ^= 1;
    depot_word_t word = put_rest (&upload);
    contents[3] ^= 1;
    assert_int_equal (word.code, TMQ_CONFLICT);
    assert_int_equal (begin (&upload).offset, 0);
    assert_true (put_rest (&upload).whole);
    expect_contents ();
}

/* The same hash with another length can reach nothing that was published. */
static void another_length_harms_nothing (void **state)
{
    (void) state;
    depot_upload_t longer = upload;
    longer.bytes = BYTES + KIB;
    assert_true (put_rest (&upload).whole);
    assert_int_equal (begin (&longer).offset, 0);
    assert_int_equal (chunk (&longer, 0, KIB).offset, KIB);
    expect_contents ();
    reopen ();
    assert_false (begin (&longer).whole);
    expect_contents ();
    assert_true (put_rest (&upload).whole);
}

static void limits_are_told (void **state)
{
    (void) state;
    depot_limits_t limits = {.blob_bytes = BYTES - 1, .disk_bytes = BYTES};
    depot_configure (depot, &limits);
    depot_word_t word = begin (&upload);
    assert_int_equal (word.code, TMQ_TOO_LARGE);
    assert_non_null (strstr (word.text, "limits/blob_bytes"));
    limits = (depot_limits_t){.blob_bytes = BYTES, .disk_bytes = BYTES - 1};
    depot_configure (depot, &limits);
    word = begin (&upload);
    assert_int_equal (word.code, TMQ_LIMIT);
    assert_non_null (strstr (word.text, "limits/blobs_disk"));
    assert_true (word.retry_after_ms > 0);
    limits = (depot_limits_t){
        .blob_bytes = BYTES, .disk_bytes = UINT64_MAX / 2, .free_bytes_min = UINT64_MAX / 2};
    depot_configure (depot, &limits);
    assert_int_equal (begin (&upload).code, TMQ_STORE_FULL);
    depot_configure (depot, &LIMITS);
    for (unsigned i = 0; i < DEPOT_UPLOADS_OF_ONE_MAX; i++) {
        uint8_t other[TMQ_BLOB_HASH_BYTES] = {(uint8_t) i, 1};
        depot_upload_t one = upload;
        one.hash = other;
        assert_int_equal (begin (&one).code, TMQ_OK);
    }
    assert_int_equal (begin (&upload).code, TMQ_OVERLOADED);
    upload.identity = "uid:9";
    assert_int_equal (begin (&upload).code, TMQ_OK);
    depot_word_t beyond;
    depot_chunk (depot, &upload, BYTES - 1, contents, 2, 0, &beyond);
    assert_int_equal (beyond.code, TMQ_INVALID);
}

/* What open uploads will still write is not free. */
static void room_is_kept_for_what_is_to_come (void **state)
{
    (void) state;
    uint8_t other[TMQ_BLOB_HASH_BYTES] = {1};
    depot_upload_t second = upload;
    second.hash = other;
    free_bytes = 2 * BYTES - 1;
    assert_int_equal (begin (&upload).code, TMQ_OK);
    assert_int_equal (begin (&second).code, TMQ_STORE_FULL);
    assert_int_equal (chunk (&upload, 0, PIECE).code, TMQ_OK);
    free_bytes -= PIECE; /* it has taken them */
    assert_int_equal (begin (&second).code, TMQ_STORE_FULL);
    assert_true (put_rest (&upload).whole);
    free_bytes = BYTES;
    assert_int_equal (begin (&second).code, TMQ_OK);
    reopen ();
    assert_int_equal (begin (&second).code, TMQ_OK);
    free_bytes = 0;
}

/* As one of many uploads. */
static depot_word_t begin_of (const char *identity, unsigned n, int64_t mono_ms)
{
    uint8_t other[TMQ_BLOB_HASH_BYTES] = {(uint8_t) n, (uint8_t) (n >> 8), 1};
    depot_upload_t one = upload;
    one.identity = identity;
    one.hash = other;
    return begin_at (&one, mono_ms);
}

/* Who began uploads and went away keeps nobody out, and finds what it brought. */
static void a_place_that_stands_still_is_given_up (void **state)
{
    (void) state;
    assert_int_equal (begin (&upload).code, TMQ_OK);
    assert_int_equal (chunk (&upload, 0, PIECE).code, TMQ_OK);
    for (unsigned i = 1; i < DEPOT_UPLOADS_OF_ONE_MAX; i++)
        assert_int_equal (begin_of (upload.identity, i, 1).code, TMQ_OK);
    assert_int_equal (begin_of (upload.identity, 99, DEPOT_YIELD_MS - 1).code, TMQ_OVERLOADED);
    assert_int_equal (depot_stats (depot).bytes, DEPOT_UPLOADS_OF_ONE_MAX * (uint64_t) BYTES);
    assert_int_equal (begin_of (upload.identity, 99, DEPOT_YIELD_MS).code, TMQ_OK);
    assert_int_equal (depot_stats (depot).uploads, DEPOT_UPLOADS_OF_ONE_MAX);
    assert_int_equal (depot_stats (depot).bytes,
                      DEPOT_UPLOADS_OF_ONE_MAX * (uint64_t) BYTES + PIECE); /* it is there still */
    depot_word_t word = begin_at (&upload, DEPOT_YIELD_MS + 1);
    assert_int_equal (word.code, TMQ_OK);
    assert_int_equal (word.offset, PIECE);
    assert_int_equal (depot_stats (depot).bytes, DEPOT_UPLOADS_OF_ONE_MAX * (uint64_t) BYTES);
    reopen ();
    assert_int_equal (depot_stats (depot).bytes, PIECE);
    assert_true (put_rest (&upload).whole);
    assert_int_equal (depot_stats (depot).bytes, BYTES);
}

/* Somebody's upload of so many bytes, which may be cut off; put: that come. */
static depot_word_t part_of (const char *identity, unsigned n, const depot_share_t *share,
                             size_t put, int64_t mono_ms)
{
    uint8_t other[TMQ_BLOB_HASH_BYTES] = {(uint8_t) n, 2};
    depot_upload_t one = upload;
    one.identity = identity;
    one.hash = other;
    one.share = share;
    depot_word_t word = begin_at (&one, mono_ms);
    if (word.code == TMQ_OK && put > 0)
        depot_chunk (depot, &one, word.offset, contents, put, mono_ms, &word);
    return word;
}

/* What somebody may have counts with what he uploads, whole or cut off, also behind a restart. */
static void a_share_has_uploads_in_it (void **state)
{
    (void) state;
    const depot_share_t share = {.has = BYTES, .most = 3 * BYTES};
    assert_int_equal (part_of ("me", 1, &share, KIB, 0).code, TMQ_OK);
    assert_int_equal (part_of ("me", 2, &share, KIB, 0).code, TMQ_OK);
    depot_word_t word = part_of ("me", 3, &share, 0, DEPOT_STILL_MS - 1);
    assert_int_equal (word.code, TMQ_LIMIT);
    assert_true (word.over_quota);
    assert_non_null (strstr (word.text, "bytes of blobs of me: 1843200, as many"));
    assert_int_equal (part_of ("me", 2, &share, KIB, 0).offset, 2 * KIB); /* it goes on */
    assert_int_equal (part_of ("you", 3, &share, 0, 0).code, TMQ_OK);
    reopen ();
    const depot_share_t tight = {.has = BYTES, .most = 2 * BYTES + KIB};
    assert_int_equal (depot_stats (depot).parked, 2);
    assert_int_equal (part_of ("me", 3, &tight, 0, 100).code, TMQ_LIMIT); /* 3 KiB are there */
    assert_int_equal (part_of ("you", 3, &tight, 0, 100).code, TMQ_OK);
    assert_int_equal (part_of ("me", 3, &tight, 0, 99 + DEPOT_STILL_MS).code, TMQ_LIMIT);
    assert_int_equal (depot_stats (depot).dropped, 0);
    /* What nobody went on with gives its room to what is wanted now. */
    assert_int_equal (part_of ("me", 3, &tight, 0, 100 + DEPOT_STILL_MS).code, TMQ_OK);
    assert_true (depot_stats (depot).dropped > 0);
}

/* An upload that was given up keeps its room only until somebody needs it. */
static void what_was_given_up_makes_room (void **state)
{
    (void) state;
    depot_limits_t limits = {.blob_bytes = BYTES, .disk_bytes = 3 * BYTES};
    depot_configure (depot, &limits);
    assert_int_equal (begin_at (&upload, 0).code, TMQ_OK);
    assert_int_equal (chunk (&upload, 0, PIECE).code, TMQ_OK);
    for (unsigned i = 1; i <= 2; i++)
        assert_int_equal (part_of ("me", i, NULL, KIB, i).code, TMQ_OK);
    /* Each time the one that stood still for longest, and no more of them than are needed. */
    assert_int_equal (part_of ("you", 1, NULL, KIB, DEPOT_STILL_MS).offset, KIB);
    assert_int_equal (depot_stats (depot).dropped, 1);
    assert_int_equal (part_of ("you", 2, NULL, KIB, DEPOT_STILL_MS).code, TMQ_LIMIT);
    assert_int_equal (part_of ("you", 2, NULL, KIB, 1 + DEPOT_STILL_MS).offset, KIB);
    assert_int_equal (depot_stats (depot).dropped, 2);
    assert_int_equal (depot_stats (depot).uploads, 3);
    assert_int_equal (depot_stats (depot).bytes, 3 * BYTES);
    assert_int_equal (begin_at (&upload, 1 + DEPOT_STILL_MS).code, TMQ_LIMIT);
    assert_int_equal (begin_at (&upload, 2 + DEPOT_STILL_MS).offset, 0); /* it began anew */
    reopen ();
    assert_int_equal (depot_stats (depot).bytes, 2 * KIB);
    assert_int_equal (depot_stats (depot).parked, 2);
}

/* Nobody has all places, whatever names it acts for. */
static void one_peer_does_not_have_all_places (void **state)
{
    (void) state;
    char name[32];
    depot_limits_t limits = {.blob_bytes = BYTES, .disk_bytes = UINT64_MAX / 2};
    depot_configure (depot, &limits);
    for (unsigned i = 0; i < DEPOT_UPLOADS_OF_PEER_MAX; i++) {
        snprintf (name, sizeof (name), "gateway/user-%u", i);
        assert_int_equal (begin_of (name, i, 0).code, TMQ_OK);
    }
    depot_word_t word = begin_of ("gateway/one-more", 0, 0);
    assert_int_equal (word.code, TMQ_OVERLOADED);
    assert_non_null (strstr (word.text, "acts for you"));
    for (unsigned i = DEPOT_UPLOADS_OF_PEER_MAX; i < DEPOT_UPLOADS_MAX; i++) {
        snprintf (name, sizeof (name), "uid:%u", i);
        assert_int_equal (begin_of (name, i, 0).code, TMQ_OK);
    }
    assert_int_equal (begin_of ("uid:1", 1, 0).code, TMQ_OVERLOADED);
    assert_int_equal (begin_of ("uid:1", 1, DEPOT_STILL_MS).code, TMQ_OK);
}

/* A body of several turns, made of the same bytes again and again. */
enum { LARGE_TIMES = 35, LARGE = LARGE_TIMES * BYTES };

static uint8_t large_hash[TMQ_BLOB_HASH_BYTES];

static depot_upload_t large_upload (void)
{
    crypto_generichash_state sum;
    depot_limits_t limits = {.blob_bytes = LARGE, .disk_bytes = 4 * (uint64_t) LARGE};
    crypto_generichash_init (&sum, NULL, 0, sizeof (large_hash));
    for (unsigned i = 0; i < LARGE_TIMES; i++)
        crypto_generichash_update (&sum, contents, BYTES);
    crypto_generichash_final (&sum, large_hash, sizeof (large_hash));
    depot_configure (depot, &limits);
    return (depot_upload_t){
        .identity = "uid:7", .ns = "default", .hash = large_hash, .bytes = LARGE};
}

static depot_word_t put_large (const depot_upload_t *of)
{
    depot_word_t word = begin (of);
    while (word.code == TMQ_OK && !word.whole) {
        size_t at = (size_t) (word.offset % BYTES);
        size_t length = BYTES - at < PIECE ? BYTES - at : PIECE;
        uint64_t offset = word.offset;
        do
            depot_chunk (depot, of, offset, contents + at, length, 0, &word);
        while (word.more);
    }
    return word;
}

/* What is read again is read in turns, and others have theirs meanwhile. */
static void others_have_their_turn (void **state)
{
    (void) state;
    unsigned turns = 0;
    depot_word_t word;
    depot_upload_t large = large_upload ();
    assert_true (put_large (&large).whole);
    begin (&upload);
    for (depot_begin (depot, &large, 0, &word); word.more; depot_begin (depot, &large, 0, &word)) {
        assert_int_equal (chunk (&upload, turns * KIB, KIB).offset, (turns + 1) * KIB);
        turns++;
    }
    assert_true (word.whole);
    assert_int_equal (turns, (LARGE - 1) / DEPOT_TURN_BYTES);
    large.identity = "uid:8"; /* the same bytes: compared in turns */
    assert_true (put_large (&large).whole);
    assert_true (put_rest (&upload).whole);
    expect_contents ();
    assert_int_equal (depot_stats (depot).bytes, LARGE + BYTES);
}

/* The last piece of what another one has, too, is one request; a crash in it goes on. */
static void what_is_compared_goes_on (void **state)
{
    (void) state;
    unsigned turns = 0;
    depot_word_t word = {.code = TMQ_OK};
    depot_upload_t large = large_upload ();
    assert_true (put_large (&large).whole);
    large.identity = "uid:8";
    begin (&large);
    for (uint64_t at = 0; at < LARGE; at += KIB * 200)
        depot_chunk (depot, &large, at, contents + at % BYTES, KIB * 200, 0, &word);
    assert_true (word.more);
    for (; word.more; turns++)
        depot_begin (depot, &large, 0, &word); /* whoever asks brings it on */
    assert_true (turns > 5);
    assert_true (word.whole);
    assert_int_equal (depot_stats (depot).blobs, 1);
    assert_int_equal (depot_stats (depot).uploads, 0);
    assert_int_equal (depot_stats (depot).bytes, LARGE);
}

/* The sync at the end has little to do. */
static void the_disk_begins_early (void **state)
{
    (void) state;
    depot_upload_t large = large_upload ();
    began_back = waited_back = 0;
    assert_true (put_large (&large).whole);
    assert_true (LARGE - began_back < BLOB_WRITE_BACK_BYTES);
    assert_true (LARGE - waited_back < 2 * BLOB_WRITE_BACK_BYTES + PIECE);
}

static void expect_large (void)
{
    static uint8_t bytes[PIECE];
    depot_word_t word;
    size_t length;
    for (size_t at = 0; at < LARGE; at += length) {
        size_t left = BYTES - at % BYTES < PIECE ? BYTES - at % BYTES : PIECE;
        depot_read (depot, large_hash, LARGE, at, bytes, left, &length, &word);
        assert_int_equal (word.code, TMQ_OK);
        assert_true (length > 0);
        assert_memory_equal (bytes, contents + at % BYTES, length);
    }
}

/* How much of a file the page cache has, in bytes. */
static size_t cached_of (int fd, size_t length)
{
    static unsigned char pages[LARGE / 4096 + 1];
    size_t count = 0;
    void *at = mmap (NULL, length, PROT_READ, MAP_SHARED, fd, 0);
    assert_true (at != MAP_FAILED);
    assert_int_equal (mincore (at, length, pages), 0);
    for (size_t i = 0; i < length / 4096; i++)
        count += (pages[i] & 1) != 0;
    munmap (at, length);
    return count * 4096;
}

/* The file system has a page cache, and writes past it: tmpfs is one, others have none. */
static bool shows_direct_writes (void)
{
    enum { PROBE = 64 * KIB };
    char path[160];
    size_t cached[2] = {0, PROBE};
    uint8_t *bytes = aligned_alloc (4096, PROBE);
    assert_non_null (bytes);
    memset (bytes, 'p', PROBE);
    snprintf (path, sizeof (path), "%s/probe", place);
    for (int direct = 0; direct < 2; direct++) {
        int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | (direct == 1 ? O_DIRECT : 0);
        int fd = open (path, flags, 0600);
        if (fd >= 0 && __real_pwrite (fd, bytes, PROBE, 0) == PROBE)
            cached[direct] = cached_of (fd, PROBE);
        if (fd >= 0)
            close (fd);
        unlink (path);
    }
    free (bytes);
    return cached[0] == PROBE && cached[1] == 0;
}

/* … of a blob. */
static size_t cached (const uint8_t *of)
{
    char hex[65];
    char path[300];
    sodium_bin2hex (hex, sizeof (hex), of, TMQ_BLOB_HASH_BYTES);
    snprintf (path, sizeof (path), "%s/%.2s/%s", directory, hex, hex + 2);
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    assert_true (fd >= 0);
    size_t count = cached_of (fd, LARGE);
    close (fd);
    return count;
}

/* A body of a gigabyte would push out of the page cache what others read. */
static void a_large_one_passes_the_page_cache (void **state)
{
    (void) state;
    depot_upload_t large = large_upload ();
    if (!shows_direct_writes ()) {
        print_message ("skipped: no write to %s can be seen to pass its page cache\n", place);
        skip ();
    }
    direct_writes = 0;
    assert_true (put_large (&large).whole);
    assert_int_equal (direct_writes, 3 * LARGE_TIMES);
    assert_true (cached (large_hash) < LARGE / 4);
    expect_large ();
    direct_writes = 0;
    assert_true (put_rest (&upload).whole); /* a small one does not */
    assert_int_equal (direct_writes, 0);
}

/* A file system may have no such thing, and say so as late as at the first write. */
static void without_that_it_goes_through_the_cache (void **state)
{
    (void) state;
    depot_upload_t large = large_upload ();
    refuses_direct = true;
    direct_writes = 0;
    assert_true (put_large (&large).whole);
    refuses_direct = false;
    assert_in_range (direct_writes, 0, 1); /* it is asked once … */
    expect_large ();
    large.identity = "uid:8";
    direct_writes = 0;
    assert_true (put_large (&large).whole);
    if (shows_direct_writes ())
        assert_int_equal (direct_writes, 3 * LARGE_TIMES); /* … for each upload */
}

/* The disk says once that it has lost something. */
static void what_the_disk_has_lost_begins_again (void **state)
{
    (void) state;
    depot_upload_t large = large_upload ();
    write_back_error = EIO;
    depot_word_t word = put_large (&large);
    assert_int_equal (word.code, TMQ_INTERNAL);
    assert_int_equal (depot_stats (depot).uploads, 0);
    assert_int_equal (begin (&large).offset, 0);
    write_back_error = ENOSYS; /* there is no such thing: the sync at the end does it */
    assert_true (put_large (&large).whole);
}

static void what_is_missing_or_damaged_is_named (void **state)
{
    (void) state;
    char path[300];
    char hex[65];
    uint8_t byte;
    size_t length;
    depot_word_t word;
    assert_true (put_rest (&upload).whole);
    sodium_bin2hex (hex, sizeof (hex), hash, sizeof (hash));
    blob_path (path);
    assert_int_equal (truncate (path, BYTES - 7), 0);
    depot_read (depot, hash, BYTES, 0, &byte, 1, &length, &word);
    assert_int_equal (word.code, TMQ_NO_BLOB);
    assert_non_null (strstr (word.text, hex));
    assert_non_null (strstr (word.text, "damaged"));
    assert_int_equal (unlink (path), 0);
    depot_read (depot, hash, BYTES, 0, &byte, 1, &length, &word);
    assert_int_equal (word.code, TMQ_NO_BLOB);
    assert_non_null (strstr (word.text, "missing"));
    assert_int_equal (mkfifo (path, 0600), 0); /* nobody waits for a writer */
    depot_read (depot, hash, BYTES, 0, &byte, 1, &length, &word);
    assert_int_equal (word.code, TMQ_NO_BLOB);
    assert_non_null (strstr (word.text, "missing"));
    assert_true (put_rest (&upload).whole); /* whoever has the bytes mends it */
    expect_contents ();
}

static void flip_byte (const char *path, off_t at)
{
    uint8_t byte;
    int fd = open (path, O_RDWR | O_CLOEXEC);
    assert_true (fd >= 0);
    assert_int_equal (pread (fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal (__real_pwrite (fd, &byte, 1, at), 1);
    close (fd);
}

/* Of the right length, but with a wrong byte: nobody hears that it is there, and whoever brings
 * the bytes again mends it for all. */
static void who_brings_it_again_mends_what_is_damaged (void **state)
{
    (void) state;
    char path[500];
    depot_upload_t other = upload;
    other.identity = "uid:8";
    assert_true (put_rest (&upload).whole);
    blob_path (path);
    flip_byte (path, 100);
    depot_word_t word = begin (&upload);
    assert_int_equal (word.code, TMQ_OK);
    assert_false (word.whole);
    assert_int_equal (word.offset, 0);
    assert_true (put_rest (&upload).whole);
    expect_contents ();
    assert_true (begin (&upload).whole);
    flip_byte (path, BYTES - 1);
    assert_true (put_rest (&other).whole);
    expect_contents ();
    assert_false (begin (&upload).whole); /* his own copy is the damaged one */
    assert_true (put_rest (&upload).whole);
    expect_contents ();
    assert_int_equal (depot_stats (depot).blobs, 1);
    assert_int_equal (depot_stats (depot).bytes, BYTES);
}

/* What the last run left whole may have been torn by a loss of power. */
static void what_was_torn_begins_again (void **state)
{
    (void) state;
    char path[500];
    begin (&upload);
    for (uint64_t at = 0; at < BYTES - KIB; at += KIB)
        chunk (&upload, at, KIB);
    reopen ();
    assert_true (upload_path (path));
    flip_byte (path, 5);
    int fd = open (path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, contents + BYTES - KIB, KIB), KIB);
    close (fd);
    depot_word_t word = begin (&upload);
    assert_int_equal (word.code, TMQ_OK);
    assert_int_equal (word.offset, 0);
    assert_true (put_rest (&upload).whole);
    expect_contents ();
}

static void only_what_stood_still_is_removed (void **state)
{
    (void) state;
    char path[300];
    char claim[500];
    depot_left_t left;
    assert_true (put_rest (&upload).whole);
    blob_path (path);
    assert_int_equal (look (&left), 0);
    age (path); /* its other name is of the same file */
    assert_int_equal (look (&left), 1);
    assert_memory_equal (left.hash, hash, sizeof (hash));
    assert_false (upload_path (claim)); /* the claim is over, … */
    expect_contents ();                 /* … the blob is not: nobody said so */
    assert_true (put_rest (&upload).whole);
    depot_collect (depot, &left); /* it was touched meanwhile */
    expect_contents ();
    age (path);
    assert_int_equal (look (&left), 1);
    depot_collect (depot, &left);
    size_t length;
    uint8_t byte;
    assert_int_equal (read_at (0, &byte, 1, &length), TMQ_NO_BLOB);
    assert_int_equal (depot_stats (depot).blobs, 0);
    assert_int_equal (depot_stats (depot).bytes, 0);
    assert_int_equal (depot_stats (depot).collected, 1);
}

/* More than a look brings, and all of them named by tasks: none hides the ones behind it. */
static void a_full_bucket_is_seen_to_its_end (void **state)
{
    (void) state;
    enum { FILES = 2 * DEPOT_SLICE_MAX + 10 };
    static depot_left_t left[DEPOT_SLICE_MAX];
    char path[300];
    size_t all = 0;
    snprintf (path, sizeof (path), "%s/00", directory);
    assert_int_equal (mkdir (path, 0700), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf (path, sizeof (path), "%s/00/%062x", directory, i);
        int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true (fd >= 0);
        close (fd);
        age (path);
    }
    for (int i = 0; i < 3; i++) {
        size_t count;
        depot_look (depot, 0, left, &count);
        all += count;
    }
    assert_int_equal (all, FILES);
    size_t count;
    depot_look (depot, 0, left, &count);
    assert_int_equal (count, 0); /* the next bucket */
}

static void an_upload_that_stands_still_is_removed (void **state)
{
    (void) state;
    char path[500];
    depot_left_t left;
    begin (&upload);
    chunk (&upload, 0, PIECE);
    assert_int_equal (depot_stats (depot).bytes, BYTES);
    assert_int_equal (look (&left), 0);
    assert_false (upload_path (path));
    assert_int_equal (depot_stats (depot).bytes, 0);
    assert_int_equal (begin (&upload).offset, 0);
}

int main (void)
{
    stage_begin ();
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (what_was_uploaded_is_read_again),
        TEST (an_upload_goes_on_after_a_restart),
        TEST (nobody_has_what_others_uploaded),
        TEST (wrong_bytes_are_refused),
        TEST (another_length_harms_nothing),
        TEST (limits_are_told),
        TEST (room_is_kept_for_what_is_to_come),
        TEST (a_place_that_stands_still_is_given_up),
        TEST (a_share_has_uploads_in_it),
        TEST (what_was_given_up_makes_room),
        TEST (one_peer_does_not_have_all_places),
        TEST (others_have_their_turn),
        TEST (what_is_compared_goes_on),
        TEST (the_disk_begins_early),
        TEST (a_large_one_passes_the_page_cache),
        TEST (without_that_it_goes_through_the_cache),
        TEST (what_the_disk_has_lost_begins_again),
        TEST (what_is_missing_or_damaged_is_named),
        TEST (who_brings_it_again_mends_what_is_damaged),
        TEST (what_was_torn_begins_again),
        TEST (only_what_stood_still_is_removed),
        TEST (a_full_bucket_is_seen_to_its_end),
        TEST (an_upload_that_stands_still_is_removed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
