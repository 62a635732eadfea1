/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An upload that is taken back: what it had is free at once, and nothing of anybody else goes. */
#include "blobs_stage.h"

static depot_word_t drop (const depot_upload_t *of)
{
    depot_word_t word;
    do
        depot_drop (depot, of, &word);
    while (word.more);
    return word;
}

/* One of another hash, of the same length. */
static depot_upload_t other_of (uint8_t other[TMQ_BLOB_HASH_BYTES], unsigned n)
{
    depot_upload_t one = upload;
    memset (other, 0, TMQ_BLOB_HASH_BYTES);
    other[0] = (uint8_t) n;
    one.hash = other;
    return one;
}

static void its_place_and_room_are_free_at_once (void **state)
{
    (void) state;
    uint8_t other[TMQ_BLOB_HASH_BYTES];
    char path[500];
    depot_limits_t limits = {.blob_bytes = BYTES,
                             .disk_bytes = DEPOT_UPLOADS_OF_ONE_MAX * (uint64_t) BYTES};
    depot_configure (depot, &limits);
    for (unsigned i = 1; i < DEPOT_UPLOADS_OF_ONE_MAX; i++) {
        depot_upload_t one = other_of (other, i);
        assert_int_equal (begin (&one).code, TMQ_OK);
    }
    assert_int_equal (begin (&upload).code, TMQ_OK);
    assert_int_equal (chunk (&upload, 0, PIECE).offset, PIECE);
    depot_upload_t next = other_of (other, 99);
    assert_int_equal (begin (&next).code, TMQ_OVERLOADED);
    assert_int_equal (drop (&upload).code, TMQ_OK);
    assert_false (upload_path (path));
    assert_int_equal (begin (&next).code, TMQ_OK);
    assert_int_equal (depot_stats (depot).bytes, DEPOT_UPLOADS_OF_ONE_MAX * (uint64_t) BYTES);
    assert_int_equal (chunk (&upload, PIECE, PIECE).code, TMQ_NO_BLOB);
}

static void what_is_not_there_is_told (void **state)
{
    (void) state;
    depot_word_t word = drop (&upload);
    assert_int_equal (word.code, TMQ_NO_BLOB);
    assert_non_null (strstr (word.text, "no such upload"));
    begin (&upload);
    depot_upload_t longer = upload;
    longer.bytes = BYTES + 1;
    assert_int_equal (drop (&longer).code, TMQ_NO_BLOB);
    assert_int_equal (drop (&upload).code, TMQ_OK);
    assert_int_equal (drop (&upload).code, TMQ_NO_BLOB); /* a repeat */
    assert_int_equal (begin (&upload).offset, 0);
    assert_true (put_rest (&upload).whole);
    expect_contents ();
}

/* One that a restart, or the want of a place, has stopped. */
static void what_stands_still_goes_too (void **state)
{
    (void) state;
    char path[500];
    begin (&upload);
    chunk (&upload, 0, PIECE);
    reopen ();
    assert_int_equal (depot_stats (depot).parked, 1);
    assert_int_equal (drop (&upload).code, TMQ_OK);
    assert_false (upload_path (path));
    assert_int_equal (depot_stats (depot).parked, 0);
    assert_int_equal (depot_stats (depot).bytes, 0);
}

static void a_blob_stays (void **state)
{
    (void) state;
    assert_true (put_rest (&upload).whole);
    depot_word_t word = drop (&upload);
    assert_int_equal (word.code, TMQ_CONFLICT);
    expect_contents ();
    assert_true (begin (&upload).whole); /* who brought it has it still */
    reopen ();
    assert_int_equal (drop (&upload).code, TMQ_CONFLICT);
    expect_contents ();
}

/* Of the same bytes. */
static void an_upload_of_others_goes_on (void **state)
{
    (void) state;
    depot_upload_t other = upload;
    other.identity = "uid:8";
    depot_upload_t elsewhere = upload;
    elsewhere.ns = "other";
    begin (&upload);
    chunk (&upload, 0, PIECE);
    assert_int_equal (drop (&other).code, TMQ_NO_BLOB);
    assert_int_equal (drop (&elsewhere).code, TMQ_NO_BLOB);
    begin (&other);
    chunk (&other, 0, 2 * PIECE);
    assert_int_equal (drop (&other).code, TMQ_OK);
    assert_int_equal (begin (&upload).offset, PIECE);
    assert_true (put_rest (&upload).whole);
    begin (&other);
    chunk (&other, 0, PIECE);
    assert_int_equal (drop (&other).code, TMQ_OK);
    expect_contents ();
    assert_true (begin (&upload).whole);
    assert_int_equal (depot_stats (depot).bytes, BYTES);
}

/* A begin that reads in turns what is there would make it anew with its next one. */
static void it_waits_for_the_turns_of_others (void **state)
{
    (void) state;
    enum { LARGE = DEPOT_TURN_BYTES + PIECE };
    depot_word_t word;
    char path[500];
    depot_upload_t large = upload;
    large.bytes = LARGE + PIECE;
    begin (&large);
    for (uint64_t at = 0; at < LARGE; at += PIECE)
        depot_chunk (depot, &large, at, contents, PIECE, 0, &word);
    reopen ();
    depot_begin (depot, &large, 0, &word);
    assert_true (word.more);
    depot_word_t dropped;
    depot_drop (depot, &large, &dropped);
    assert_true (dropped.more);
    depot_begin (depot, &large, 0, &word);
    assert_false (word.more);
    assert_int_equal (word.offset, LARGE);
    assert_int_equal (drop (&large).code, TMQ_OK);
    assert_false (upload_path (path));
    assert_int_equal (depot_stats (depot).uploads, 0);
}

/* All has come, and the disk refuses what would make it a blob: nobody comes back by himself. */
static void what_cannot_be_published_goes (void **state)
{
    (void) state;
    begin (&upload);
    chunk (&upload, 0, PIECE);
    chunk (&upload, PIECE, PIECE);
    for (unsigned long at = 1; depot_stats (depot).uploads > 0; at++) {
        faults->at = faults->done + at;
        faults->error = EIO;
        depot_word_t word = put_rest (&upload);
        faults->at = 0;
        tmq_code_t code = drop (&upload).code;
        assert_true (code == TMQ_OK || code == TMQ_CONFLICT || code == TMQ_NO_BLOB);
        assert_int_equal (depot_stats (depot).uploads, 0);
        if (word.whole)
            break;
        begin (&upload);
    }
    assert_true (put_rest (&upload).whole);
    expect_contents ();
    assert_int_equal (depot_stats (depot).bytes, BYTES);
}

/* A database that is out of reach: what it is asked for waits. */

static tmq_code_t away_look (void *context, const uint8_t *of, uint64_t bytes, uint64_t *at,
                             bool *good, vault_word_t *word)
{
    (void) context;
    (void) of;
    (void) bytes;
    (void) at;
    (void) good;
    snprintf (word->text, sizeof word->text, "the database is away");
    return TMQ_UNAVAILABLE;
}

static vault_stats_t away_stats (void *context)
{
    (void) context;
    return (vault_stats_t){0};
}

/* It is a blob already, and waits for the database: its place is free, the blob stays. */
static void what_waits_for_the_database_gives_its_place (void **state)
{
    (void) state;
    const vault_t vault = {.look = away_look, .stats = away_stats};
    depot_use (depot, &vault);
    assert_int_equal (put_rest (&upload).code, TMQ_UNAVAILABLE);
    assert_int_equal (depot_stats (depot).uploads, 1);
    assert_int_equal (drop (&upload).code, TMQ_CONFLICT);
    assert_int_equal (depot_stats (depot).uploads, 0);
    assert_int_equal (depot_stats (depot).bytes, BYTES);
    expect_contents ();
    assert_int_equal (begin (&upload).code, TMQ_UNAVAILABLE); /* nobody hears that it is there */
    depot_use (depot, NULL);
    assert_int_equal (drop (&upload).code, TMQ_CONFLICT);
    assert_true (begin (&upload).whole);
    assert_int_equal (depot_stats (depot).bytes, BYTES);
}

int main (void)
{
    stage_begin ();
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (its_place_and_room_are_free_at_once),
        TEST (what_is_not_there_is_told),
        TEST (what_stands_still_goes_too),
        TEST (a_blob_stays),
        TEST (an_upload_of_others_goes_on),
        TEST (it_waits_for_the_turns_of_others),
        TEST (what_cannot_be_published_goes),
        TEST (what_waits_for_the_database_gives_its_place),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
