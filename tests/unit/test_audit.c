/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The record of deeds: what is noted is in the file in a chain, across stops, crashes, turns,
 * floods and a disk that takes nothing. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/pages.h"
#include "audit/turned.h"
#include "export/line_file.h"
#include "packed.h"
#include "store_support.h"
#include "support/timing.h"

static char directory[64];
static char path[128];
static char text[4 * 1024 * 1024];
static _Atomic int64_t wall;
static atomic_bool disk_full;

ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset)
{
    if (atomic_load (&disk_full)) {
        errno = ENOSPC;
        return -1;
    }
    return __real_pwrite (fd, bytes, length, offset);
}

static int64_t told_wall (void)
{
    return atomic_load (&wall);
}

static int setup (void **state)
{
    (void) state;
    directory_make (directory);
    snprintf (path, sizeof (path), "%s/audit.jsonl", directory);
    atomic_store (&wall, INT64_C (1795000000000));
    atomic_store (&disk_full, false);
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    directory_remove (directory);
    return 0;
}

static audit_t *open_audit (uint64_t keep_bytes)
{
    char error[AUDIT_ERROR_SIZE] = "";
    audit_options_t options = {.directory = directory,
                               .generation = 0x1234,
                               .epoch = 7,
                               .keep_bytes = keep_bytes,
                               .keep_ms = INT64_C (90) * 86400000,
                               .wall_ms = told_wall};
    audit_t *audit = audit_new (&options, error);
    if (audit == NULL)
        fail_msg ("%s", error);
    return audit;
}

static void deed (audit_t *audit, const char *object)
{
    assert_true (audit_note_synced (
        audit, &(audit_line_t){.kind = AUDIT_LISTEN, .actor = "ops", .object = object}));
}

static size_t read_file (const char *name)
{
    FILE *file = fopen (name, "r");
    assert_non_null (file);
    size_t length = fread (text, 1, sizeof (text) - 1, file);
    text[length] = '\0';
    fclose (file);
    return length;
}

/* Goes on with the check over the file's whole lines. */
static void check_file (chain_check_t *check, const char *name)
{
    const char *line;
    size_t length;
    bool whole;
    packed_t *file = packed_open (name, true);
    assert_non_null (file);
    while (packed_line (file, &line, &length, &whole) > 0)
        if (whole)
            chain_check_line (check, line, length);
    packed_close (&file);
}

/* Of the newest file, whose text is in `text` then. */
static void assert_chain (uint64_t lines)
{
    chain_check_t check = {0};
    check_file (&check, path);
    read_file (path);
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
    assert_int_equal (check.head.n, lines);
}

static size_t count_of (const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr (at, what)) != NULL; at++)
        count++;
    return count;
}

static void lines_form (void **state)
{
    (void) state;
    audit_t *audit = open_audit (1 << 20);
    assert_true (audit_note_synced (audit, &(audit_line_t){.kind = AUDIT_LISTEN,
                                                           .actor = "ops",
                                                           .from = "10.0.0.7",
                                                           .object = "a \"quoted\"\nname",
                                                           .ns = "default",
                                                           .outcome = "refused",
                                                           .detail = "why"}));
    /* On the disk by now, without a stop. */
    read_file (path);
    assert_non_null (strstr (text, "{\"n\":1,\"at\":\"2026-11-18T11:06:40.000Z\",\"kind\":\"audit."
                                   "begun\",\"actor\":null,\"from\":null,\"object\":null,"
                                   "\"ns\":null,\"outcome\":\"ok\",\"detail\":\"generation "
                                   "0000000000001234, epoch 7\",\"prev\":\"000000"));
    assert_non_null (strstr (text, "\"kind\":\"listen\",\"actor\":\"ops\",\"from\":\"10.0.0.7\","
                                   "\"object\":\"a \\\"quoted\\\"\\nname\",\"ns\":\"default\","
                                   "\"outcome\":\"refused\",\"detail\":\"why\",\"prev\":"));
    struct stat info;
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (info.st_mode & 0777, 0600);
    audit_stats_t stats;
    audit_stats (audit, &stats);
    assert_int_equal (stats.lines, 2);
    assert_int_equal (stats.head.n, 2);
    audit_free (&audit);
    assert_chain (2);
}

/* A text that fills its line altogether still makes a line. */
static void long_texts (void **state)
{
    (void) state;
    audit_t *audit = open_audit (1 << 20);
    char *longest = malloc (10000);
    memset (longest, '\x01', 9999);
    longest[9999] = '\0';
    audit_note (
        audit, &(audit_line_t){AUDIT_LISTEN, longest, longest, longest, longest, longest, longest});
    free (longest);
    audit_free (&audit);
    assert_chain (2);
}

static void goes_on (void **state)
{
    (void) state;
    for (int i = 0; i < 3; i++) {
        audit_t *audit = open_audit (1 << 20);
        deed (audit, "x");
        audit_free (&audit);
    }
    assert_chain (4);
}

static void put (const char *name, const char *what, const char *mode)
{
    FILE *file = fopen (name, mode);
    assert_non_null (file);
    fputs (what, file);
    fclose (file);
}

/* What a crash left of a line is cut off, and that is told. */
static void torn (void **state)
{
    (void) state;
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "x");
    audit_free (&audit);
    put (path, "{\"n\":3,\"at\":\"20", "a");
    audit = open_audit (1 << 20);
    audit_free (&audit);
    assert_chain (3);
    assert_non_null (strstr (text, "\"kind\":\"audit.torn\""));
    assert_non_null (strstr (text, "15 bytes"));
}

/* A whole last line that is none of the chain's is damage, and is kept. */
static void damaged (void **state)
{
    (void) state;
    char aside[160];
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "x");
    audit_free (&audit);
    put (path, "something else\n", "a");
    audit = open_audit (1 << 20);
    audit_free (&audit);
    snprintf (aside, sizeof (aside), "%s.damaged", path);
    read_file (aside);
    assert_non_null (strstr (text, "something else"));
    assert_chain (1);
    assert_non_null (strstr (text, "set aside"));
}

/* What has no end of a line within the longest one was not written by us: it is not read to its
 * beginning, and kept. */
static void endless (void **state)
{
    (void) state;
    char aside[160];
    struct stat info;
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "x");
    audit_free (&audit);
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (truncate (path, info.st_size + LINE_FILE_LINE_MAX + 1), 0);
    audit = open_audit (1 << 20);
    audit_free (&audit);
    snprintf (aside, sizeof (aside), "%s.damaged", path);
    assert_int_equal (stat (aside, &info), 0);
    assert_true (info.st_size > LINE_FILE_LINE_MAX);
    assert_chain (1);
}

/* When the broker before wrote its last line is known to the next one. */
static void last_line_has_a_time (void **state)
{
    (void) state;
    audit_stats_t stats;
    audit_t *audit = open_audit (1 << 20);
    audit_stats (audit, &stats);
    assert_int_equal (stats.last_ms, 0);
    deed (audit, "x");
    audit_free (&audit);
    audit = open_audit (1 << 20);
    audit_stats (audit, &stats);
    assert_int_equal (stats.last_ms, told_wall ());
    audit_free (&audit);
}

static void turned_path_of (char out[160], unsigned number)
{
    snprintf (out, 160, "%s/audit-%04u.jsonl", directory, number);
}

/* At its size, and at midnight; the chain goes over all files. */
static void turns (void **state)
{
    (void) state;
    char name[160];
    audit_t *audit = open_audit (4096);
    for (int i = 0; i < 40; i++)
        deed (audit, "the same deed again and again");
    atomic_fetch_add (&wall, 86400000);
    deed (audit, "tomorrow");
    audit_stats_t stats;
    audit_stats (audit, &stats);
    assert_true (stats.files >= 3);
    audit_free (&audit);
    read_file (path);
    assert_int_equal (count_of ("\n"), 2);
    assert_non_null (strstr (text, "\"kind\":\"audit.turned\""));
    chain_check_t check = {0};
    for (unsigned number = 1; number <= stats.files; number++) {
        turned_path_of (name, number);
        check_file (&check, name);
    }
    check_file (&check, path);
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
    assert_int_equal (check.head.n, stats.head.n);
}

static bool is_packed (unsigned number)
{
    char name[160];
    char file[192];
    turned_path_of (name, number);
    snprintf (file, sizeof (file), "%s" PACKED_ENDING, name);
    return access (name, F_OK) != 0 && access (file, F_OK) == 0;
}

/* All lines, in pages of at most seven. */
static uint64_t lines_in_pages (void)
{
    uint64_t lines = 0;
    page_t page = {.file = 1, .more = true};
    while (page.more) {
        page_query_t query = {
            .file = page.file, .offset = page.offset, .limit = 7, .bytes_max = 65536};
        assert_true (page_read (&page, directory, &query));
        for (size_t i = 0; i < page.lines.length; i++)
            lines += page.lines.data[i] == '\n';
        bytes_free (&page.lines);
    }
    return lines;
}

/* What was turned is packed soon, also what a kill before left plain; nobody sees a difference. */
static void turned_ones_are_packed (void **state)
{
    (void) state;
    char name[160];
    char file[192];
    audit_stats_t stats;
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "x");
    audit_free (&audit);
    turned_path_of (name, 1);
    assert_int_equal (rename (path, name), 0);
    snprintf (file, sizeof (file), "%s" PACKED_ENDING, name);
    put (file, "of a kill before", "w");
    snprintf (file, sizeof (file), "%s" PACKED_ENDING ".new", name);
    put (file, "of another one", "w");
    audit = open_audit (4096);
    for (int i = 0; i < 40; i++)
        deed (audit, "the same deed again and again");
    audit_stats (audit, &stats);
    assert_true (stats.files >= 3);
    for (unsigned number = 1; number <= stats.files; number++)
        WAIT_FOR (is_packed (number), TIMING_PATIENCE_MS);
    assert_int_not_equal (access (file, F_OK), 0);
    assert_int_equal (lines_in_pages (), stats.head.n);
    chain_head_t head = stats.head;
    audit_free (&audit);
    /* An empty file goes on behind the last packed one. */
    assert_int_equal (unlink (path), 0);
    audit = open_audit (1 << 20);
    audit_stats_t later;
    audit_stats (audit, &later);
    assert_true (later.head.n > 0 && later.head.n < head.n);
    assert_int_equal (later.last_ms, told_wall ());
    audit_free (&audit);
    /* A damaged one keeps nobody from starting. */
    turned_path_of (name, (unsigned) stats.files);
    snprintf (file, sizeof (file), "%s" PACKED_ENDING, name);
    put (file, "damaged", "w");
    assert_int_equal (unlink (path), 0);
    audit = open_audit (1 << 20);
    assert_false (audit_expect (audit, &head));
    audit_free (&audit);
    assert_chain (2);
}

/* A crash between the two names of a turn. */
static void turned_by_half (void **state)
{
    (void) state;
    char name[160];
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "x");
    audit_free (&audit);
    turned_path_of (name, 3);
    assert_int_equal (rename (path, name), 0);
    audit = open_audit (1 << 20);
    deed (audit, "y");
    audit_free (&audit);
    chain_check_t check = {0};
    check_file (&check, name);
    check_file (&check, path);
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
    assert_int_equal (check.head.n, 3);
}

/* Somebody turns the file by hand, by the names that the broker gives: nothing takes its place. */
static void turned_by_hand (void **state)
{
    (void) state;
    char name[160];
    char other[192];
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "by hand");
    turned_path_of (name, 1);
    assert_int_equal (rename (path, name), 0);
    turned_path_of (other, 2);
    strcat (other, PACKED_ENDING);
    put (other, "somebody's", "w");
    deed (audit, "y");
    atomic_fetch_add (&wall, 86400000);
    deed (audit, "tomorrow");
    audit_free (&audit);
    read_file (name);
    assert_non_null (strstr (text, "by hand"));
    read_file (other);
    assert_string_equal (text, "somebody's");
    chain_check_t check = {0};
    check_file (&check, name);
    turned_path_of (name, 3);
    check_file (&check, name);
    check_file (&check, path);
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
}

/* No new file is to be had where the old one is to be turned: no line is lost. */
static void no_file_to_turn_to (void **state)
{
    (void) state;
    struct rlimit before;
    audit_t *audit = open_audit (4096);
    while (access (path, F_OK) == 0 && read_file (path) < 4096)
        deed (audit, "the same deed again and again");
    assert_int_equal (getrlimit (RLIMIT_NOFILE, &before), 0);
    assert_int_equal (setrlimit (RLIMIT_NOFILE, &(struct rlimit){3, before.rlim_max}), 0);
    audit_line_t line = {.kind = AUDIT_LISTEN, .object = "meanwhile"};
    assert_false (audit_note_synced (audit, &line));
    assert_int_equal (setrlimit (RLIMIT_NOFILE, &before), 0);
    WAIT_FOR (audit_note_synced (audit, &line), TIMING_PATIENCE_MS);
    audit_stats_t stats;
    audit_stats (audit, &stats);
    audit_free (&audit);
    chain_check_t check = {0};
    char name[160];
    turned_path_of (name, 1);
    check_file (&check, name);
    check_file (&check, path);
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
    assert_int_equal (check.head.n, stats.head.n);
}

/* A clock that leaps by years takes two files, not all of them. */
static void old_go (void **state)
{
    (void) state;
    char name[160];
    for (unsigned number = 1; number <= 5; number++) {
        turned_path_of (name, number);
        put (name, "old\n", "w");
    }
    atomic_store (&wall, INT64_C (4000000000000));
    audit_t *audit = open_audit (1 << 20);
    audit_stats_t stats;
    audit_stats (audit, &stats);
    assert_int_equal (stats.files, 3);
    audit_free (&audit);
    turned_path_of (name, 2);
    assert_null (packed_open (name, true));
    turned_path_of (name, 3);
    packed_t *file = packed_open (name, true);
    assert_non_null (file);
    packed_close (&file);
}

/* One that somebody moved away holds up none of those behind it. */
static void moved_away_is_gone (void **state)
{
    (void) state;
    char name[160];
    turned_t turned = {0};
    for (unsigned number = 1; number <= 3; number++) {
        turned_path_of (name, number);
        put (name, "old\n", "w");
    }
    turned_read (&turned, directory);
    assert_int_equal (turned.count, 3);
    turned_path_of (name, 1);
    assert_int_equal (unlink (name), 0);
    assert_int_equal (turned_remove (&turned, directory, INT64_C (4000000000000)), 2);
    assert_int_equal (turned.count, 1);
    turned_path_of (name, 2);
    assert_int_not_equal (access (name, F_OK), 0);
    turned_free (&turned);
}

/* Of a flood the first ten lines of each source are written, and how many there were. */
static void sampled (void **state)
{
    (void) state;
    audit_t *audit = open_audit (1 << 20);
    for (int i = 0; i < 1000; i++) {
        audit_note (audit, &(audit_line_t){.kind = AUDIT_DENIED, .from = "10.0.0.7"});
        if (i < 5)
            audit_note (audit, &(audit_line_t){.kind = AUDIT_DENIED, .from = "10.0.0.8"});
    }
    audit_free (&audit);
    assert_chain (17);
    assert_int_equal (count_of ("\"from\":\"10.0.0.7\""), 11);
    assert_int_equal (count_of ("\"from\":\"10.0.0.8\""), 5);
    assert_int_equal (count_of ("990 more in this minute"), 1);
}

/* More sources than there is room for are counted together. */
static void many_sources (void **state)
{
    (void) state;
    char source[32];
    audit_t *audit = open_audit (1 << 20);
    for (int i = 0; i < 2000; i++) {
        snprintf (source, sizeof (source), "10.0.%d.%d", i / 250, i % 250);
        audit_note (audit, &(audit_line_t){.kind = AUDIT_DENIED, .from = source});
    }
    audit_free (&audit);
    assert_chain (1 + 256 + 10 + 1);
    assert_int_equal (count_of ("\"from\":\"others\""), 1);
    assert_int_equal (count_of ("1734 more in this minute"), 1);
}

/* While the disk takes nothing nobody is held up but who asked to be; the hole is told. */
static void disk_is_full (void **state)
{
    (void) state;
    audit_t *audit = open_audit (64 << 20);
    deed (audit, "before");
    atomic_store (&disk_full, true);
    audit_line_t line = {.kind = AUDIT_LISTEN, .object = "meanwhile"};
    assert_false (audit_note_synced (audit, &line));
    for (int i = 0; i < 20000; i++)
        audit_note (audit, &line);
    audit_stats_t stats;
    audit_stats (audit, &stats);
    assert_true (stats.lost > 0);
    assert_true (stats.errors > 0);
    atomic_store (&disk_full, false);
    uint64_t tries = 0;
    line.object = "after";
    WAIT_FOR ((tries++, audit_note_synced (audit, &line)), TIMING_PATIENCE_MS);
    audit_stats (audit, &stats);
    audit_free (&audit);
    assert_chain (stats.head.n);
    uint64_t lost = 0;
    const char *gap = text;
    while ((gap = strstr (gap, "\"outcome\":\"lost\",\"detail\":\"")) != NULL) {
        gap += strlen ("\"outcome\":\"lost\",\"detail\":\"");
        lost += strtoull (gap, NULL, 10);
    }
    assert_int_equal (lost, stats.lost);
    assert_int_equal (count_of ("\"object\":\"meanwhile\"") + count_of ("\"object\":\"after\""),
                      20001 + tries - lost);
}

/* Somebody takes the file away: the chain goes on, and what is missing shows. */
static void taken_away (void **state)
{
    (void) state;
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "x");
    assert_int_equal (unlink (path), 0);
    deed (audit, "y");
    audit_free (&audit);
    read_file (path);
    assert_non_null (strstr (text, "{\"n\":3,"));
    assert_non_null (strstr (text, "\"kind\":\"audit.gap\""));
    assert_non_null (strstr (text, "\"object\":\"y\""));
}

static void none_kept (void **state)
{
    (void) state;
    audit_stats_t stats;
    audit_t *none = NULL;
    audit_note (NULL, &(audit_line_t){.kind = AUDIT_LISTEN});
    assert_true (audit_note_synced (NULL, &(audit_line_t){.kind = AUDIT_LISTEN}));
    audit_stats (NULL, &stats);
    audit_free (&none);
}

static chain_head_t head_of (audit_t *audit)
{
    audit_stats_t stats;
    audit_stats (audit, &stats);
    return stats.head;
}

static void a_head_that_was_known_is_found (void **state)
{
    (void) state;
    static const chain_head_t none = {0};
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "first");
    chain_head_t head = head_of (audit);
    deed (audit, "second");
    assert_true (audit_expect (audit, &none));
    assert_true (audit_expect (audit, &head));
    audit_free (&audit);
    audit = open_audit (64); /* each line turns the file */
    for (int i = 0; i < 8; i++)
        deed (audit, "third");
    assert_true (audit_expect (audit, &head));
    chain_head_t other = head;
    other.hash[0] ^= 1;
    assert_false (audit_expect (audit, &other));
    audit_free (&audit);
}

/* What was written before the rest is too old then, but the head that was kept stands there. */
static void a_long_rest_is_no_loss (void **state)
{
    (void) state;
    struct timespec then[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "before");
    chain_head_t head = head_of (audit);
    deed (audit, "stop");
    audit_free (&audit);
    assert_int_equal (utimensat (AT_FDCWD, path, then, 0), 0);
    atomic_fetch_add (&wall, INT64_C (400) * 86400000);
    audit = open_audit (1 << 20);
    deed (audit, "behind"); /* a new day turns the file */
    audit_stats_t stats;
    audit_stats (audit, &stats);
    assert_int_equal (stats.files, 1);
    assert_true (audit_expect (audit, &head));
    audit_free (&audit);
}

static void a_record_that_was_removed_as_a_whole_is_missed (void **state)
{
    (void) state;
    audit_t *audit = open_audit (1 << 20);
    deed (audit, "first");
    deed (audit, "second");
    chain_head_t head = head_of (audit);
    audit_free (&audit);
    unlink (path);
    audit = open_audit (1 << 20);
    assert_false (audit_expect (audit, &head));
    audit_free (&audit);
    read_file (path);
    assert_int_equal (count_of ("\"outcome\":\"missing\""), 1);
    assert_non_null (strstr (text, "line 3 is not there"));
}

static void a_quota_is_told_once_a_minute_and_principal (void **state)
{
    (void) state;
    static const char *const ACTORS[] = {"a", "b", "a", "a"};
    audit_t *audit = open_audit (1 << 20);
    for (size_t i = 0; i < 4; i++)
        audit_note (audit, &(audit_line_t){.kind = AUDIT_QUOTA_HIT,
                                           .actor = ACTORS[i],
                                           .from = i == 2 ? "10.0.0.1" : "10.0.0.2"});
    audit_free (&audit);
    read_file (path);
    assert_int_equal (count_of ("\"kind\":\"quota.hit\""), 3);
    assert_int_equal (count_of ("\"actor\":\"a\",\"from\":null"), 1);
    assert_non_null (strstr (text, "2 more in this minute"));
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (lines_form),
        TEST (long_texts),
        TEST (goes_on),
        TEST (torn),
        TEST (damaged),
        TEST (endless),
        TEST (last_line_has_a_time),
        TEST (turns),
        TEST (turned_ones_are_packed),
        TEST (turned_by_half),
        TEST (turned_by_hand),
        TEST (no_file_to_turn_to),
        TEST (old_go),
        TEST (moved_away_is_gone),
        TEST (sampled),
        TEST (many_sources),
        TEST (disk_is_full),
        TEST (taken_away),
        TEST (none_kept),
        TEST (a_head_that_was_known_is_found),
        TEST (a_long_rest_is_no_loss),
        TEST (a_record_that_was_removed_as_a_whole_is_missed),
        TEST (a_quota_is_told_once_a_minute_and_principal),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
