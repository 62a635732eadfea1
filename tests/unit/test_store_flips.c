/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Single bits of the files of a closed and of a killed store are flipped, one at a time. Each time
 * a start refuses, or every task is as it was or named as damaged; never another answer, never a
 * crash. The one exception is told in docs/GUARANTEES.md: the last commit of a log.
 *
 *     test_store_flips [--flips N] [--seed S]       N flips in each file */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/audit.h"
#include "store_support.h"

enum { TASKS = 60, PER_BATCH = 4, LARGE_EVERY = 7, LARGE_BYTES = 3000, SMALL_BYTES = 200 };

/* What became of one flip: the exit code of the child that looked. */
enum { WHOLE = 0, REFUSED, NAMED, LOST_LAST, WRONG };

static unsigned flips = 8;
static uint64_t seed = 1;

static uint64_t next_random (void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static record_t record_of (int64_t number)
{
    record_t record = test_record (number);
    char bytes[LARGE_BYTES];
    memset (bytes, (int) (number % 200) + 1, sizeof (bytes));
    if (number % 3 != 0)
        record.status = TMQ_STATUS_COMPLETED;
    record.payload = buf_new (bytes, number % LARGE_EVERY == 0 ? LARGE_BYTES : SMALL_BYTES);
    record.payload_bytes = (uint32_t) buf_length (record.payload);
    return record;
}

static void submit_all (fixture_t *f)
{
    for (int64_t number = 1; number <= TASKS; number += PER_BATCH) {
        batch_t *batch = fixture_batch (f);
        for (int64_t i = number; i < number + PER_BATCH; i++) {
            record_t record = record_of (i);
            fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
            buf_drop (record.payload);
        }
        fixture_commit (f, batch);
    }
}

/* How the store ended: cleanly; killed, all of it in the log of the journal; killed when all of it
 * was in that of the tables too; or there alone. */
typedef enum end { CLOSED, KILLED, KILLED_WRITTEN, KILLED_GIVEN_UP } end_t;

/* With this commit the journal gives up what the tables have. */
static void commit_one_more (fixture_t *f)
{
    batch_t *batch = fixture_batch (f);
    batch_add_row (batch, ROW_KIND_TEST, "key", "value");
    fixture_commit (f, batch);
}

static fixture_t *prepared (end_t end)
{
    fixture_t *f = fixture_new ("sqlite");
    if (end == KILLED)
        f->options.dirty_ms_max = 1000000;
    fflush (NULL);
    pid_t child = fork ();
    if (child == 0) {
        fixture_open (f);
        submit_all (f);
        if (end == CLOSED)
            fixture_close (f);
        else if (end != KILLED)
            fixture_settle (f);
        if (end == KILLED_GIVEN_UP)
            commit_one_more (f);
        _exit (0);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
    return f;
}

static int judge (fixture_t *f, int64_t number)
{
    store_error_t error = {STORE_OK, ""};
    lookup_t key = {
        .kind = LOOKUP_ID, .bodies = true, .ns = "default", .id = test_id ((uint64_t) number)};
    record_t wanted = record_of (number);
    if (store_load (f->store, &key, 1, &error) != STORE_OK)
        return REFUSED; /* the broker ends and says so */
    if (key.damaged)
        return NAMED;
    if (key.record == NULL)
        return number > TASKS - PER_BATCH ? LOST_LAST : WRONG;
    const record_t *found = key.record;
    bool same =
        found->status == wanted.status && found->created_at == wanted.created_at &&
        found->expires_at == wanted.expires_at && found->number == number &&
        strcmp (found->queue, wanted.queue) == 0 &&
        buf_length (found->payload) == wanted.payload_bytes &&
        memcmp (buf_bytes (found->payload), buf_bytes (wanted.payload), wanted.payload_bytes) == 0;
    return same ? WHOLE : WRONG;
}

static void take_task (void *context, record_t *record)
{
    ++*(unsigned *) context;
    record_free (record);
}

static void take_ns (void *context, const char *name, uint64_t last_seq)
{
    (void) context;
    (void) name;
    (void) last_seq;
}

/* Starts as a broker does and looks at every task; in a process of its own. */
static int look (fixture_t *f)
{
    store_error_t error = {STORE_OK, ""};
    unsigned live = 0;
    const store_live_visitor_t visitor = {.task = take_task, .ns = take_ns, .context = &live};
    int worst = WHOLE;
    if (store_open (&f->store, "sqlite", &f->options, &f->boot, &error) != STORE_OK ||
        store_live (f->store, &visitor, &error) != STORE_OK)
        return error.text[0] != '\0' ? REFUSED : WRONG;
    for (int64_t number = 1; number <= TASKS; number++) {
        int verdict = judge (f, number);
        worst = verdict > worst ? verdict : worst;
    }
    unsigned expected = TASKS / 3;
    if (worst < LOST_LAST && live != expected)
        return WRONG;
    return worst;
}

typedef struct image {
    char name[32];
    uint8_t *bytes;
    size_t size;
} image_t;

static const char *const FILES[] = {"taskmq.db", "journal.log", "taskmq.db-wal"};
enum { FILES_COUNT = sizeof (FILES) / sizeof (FILES[0]) };

static void image_read (const fixture_t *f, image_t *image, const char *name)
{
    char path[160];
    struct stat status;
    snprintf (image->name, sizeof (image->name), "%s", name);
    snprintf (path, sizeof (path), "%s/%s", f->directory, name);
    image->bytes = NULL;
    image->size = 0;
    if (stat (path, &status) != 0 || status.st_size == 0)
        return;
    image->size = (size_t) status.st_size;
    image->bytes = malloc (image->size);
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    assert_int_equal (read (fd, image->bytes, image->size), image->size);
    close (fd);
}

static void image_write (const fixture_t *f, const image_t *image)
{
    char path[160];
    snprintf (path, sizeof (path), "%s/%s", f->directory, image->name);
    unlink (path);
    if (image->bytes == NULL)
        return;
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal (write (fd, image->bytes, image->size), image->size);
    close (fd);
}

static void restore (const fixture_t *f, const image_t images[FILES_COUNT])
{
    char path[160];
    snprintf (path, sizeof (path), "%s/taskmq.db-shm", f->directory);
    unlink (path);
    for (size_t i = 0; i < FILES_COUNT; i++)
        image_write (f, &images[i]);
}

/* The part of a log that holds something is small: only that is worth a flip. */
static size_t used_bytes (const image_t *image)
{
    enum { HEADER = 32, FRAME_HEADER = 24, FRAME = FRAME_HEADER + 16384 };
    size_t length = image->size;
    if (strcmp (image->name, "journal.log") == 0) {
        length /= 4; /* the first of its segments; the others have their header alone */
        while (length > 0 && image->bytes[length - 1] == 0)
            length--;
        return length;
    }
    if (strstr (image->name, "-wal") == NULL || image->size < HEADER + FRAME)
        return image->size;
    size_t used = HEADER;
    while (used + FRAME <= image->size &&
           memcmp (image->bytes + used + 8, image->bytes + 16, 8) == 0)
        used += FRAME;
    return used;
}

static void flip_file (fixture_t *f, const image_t images[FILES_COUNT], image_t *image)
{
    unsigned counts[WRONG + 1] = {0};
    size_t used = used_bytes (image);
    bool is_log = strstr (image->name, "-wal") != NULL || strcmp (image->name, "journal.log") == 0;
    for (unsigned i = 0; used > 0 && i < flips; i++) {
        size_t at = next_random () % used;
        uint8_t bit = (uint8_t) (1u << next_random () % 8);
        image->bytes[at] ^= bit;
        restore (f, images);
        image->bytes[at] ^= bit;
        fflush (NULL);
        pid_t child = fork ();
        if (child == 0)
            _exit (look (f));
        int status;
        assert_int_equal (waitpid (child, &status, 0), child);
        int verdict = WIFEXITED (status) ? WEXITSTATUS (status) : WRONG;
        if (verdict >= WRONG || (verdict == LOST_LAST && !is_log))
            fail_msg ("%s: byte %zu, mask %#x: status %#x", image->name, at, bit, status);
        counts[verdict]++;
    }
    print_message ("%u flips: %s: %u refused, %u whole, %u named, %u lost the last commit\n", flips,
                   image->name, counts[REFUSED], counts[WHOLE], counts[NAMED], counts[LOST_LAST]);
}

static void flip_all (end_t end)
{
    image_t images[FILES_COUNT];
    fixture_t *f = prepared (end);
    for (size_t i = 0; i < FILES_COUNT; i++)
        image_read (f, &images[i], FILES[i]);
    for (size_t i = 0; i < FILES_COUNT; i++)
        flip_file (f, images, &images[i]);
    for (size_t i = 0; i < FILES_COUNT; i++)
        free (images[i].bytes);
    void *state = f;
    fixture_teardown (&state);
}

static void a_closed_store_with_a_flipped_bit (void **state)
{
    (void) state;
    flip_all (CLOSED);
}

static void a_killed_store_with_a_flipped_bit (void **state)
{
    (void) state;
    flip_all (KILLED);
}

static void a_killed_store_with_a_flipped_bit_in_its_tables (void **state)
{
    (void) state;
    flip_all (KILLED_WRITTEN);
}

static void a_killed_store_with_a_flipped_bit_in_what_only_its_tables_have (void **state)
{
    (void) state;
    flip_all (KILLED_GIVEN_UP);
}

/* Index pages have no checksums. `taskmqd --check` compares them with their tables: what it does
 * not find must not be told by the index either. */
typedef struct page {
    size_t at;
    char index[64];
} page_t;

enum { PAGES_MAX = 64, PAGE_BYTES = 16384, SQL_BYTES = 1000 };

static size_t number_at (const uint8_t *bytes)
{
    return (size_t) bytes[0] << 8 | bytes[1];
}

/* The pages of indexes that have entries. */
static size_t find_pages (sqlite3 *db, const image_t *image, page_t pages[PAGES_MAX])
{
    sqlite3_stmt *statement;
    size_t count = 0;
    assert_int_equal (sqlite3_prepare_v2 (db,
                                          "SELECT pageno, name FROM dbstat WHERE ncell > 0 AND name"
                                          " IN (SELECT name FROM sqlite_schema"
                                          " WHERE type = 'index')",
                                          -1, &statement, NULL),
                      SQLITE_OK);
    while (count < PAGES_MAX && sqlite3_step (statement) == SQLITE_ROW) {
        page_t *page = &pages[count++];
        page->at = (size_t) (sqlite3_column_int64 (statement, 0) - 1) * PAGE_BYTES;
        snprintf (page->index, sizeof (page->index), "%s",
                  (const char *) sqlite3_column_text (statement, 1));
        assert_true (page->at + PAGE_BYTES <= image->size);
    }
    sqlite3_finalize (statement);
    return count;
}

/* "SELECT its columns, from the index alone". */
static void index_sql (sqlite3 *db, const char *index, char sql[SQL_BYTES])
{
    sqlite3_stmt *statement;
    assert_int_equal (
        sqlite3_prepare_v2 (db,
                            "SELECT 'SELECT ' || (SELECT group_concat (ifnull (name, 'rowid'))"
                            " FROM pragma_index_xinfo (?1)) || ' FROM ' || tbl_name ||"
                            " ' INDEXED BY ' || name || CASE WHEN instr (sql, ' WHERE ') THEN"
                            " substr (sql, instr (sql, ' WHERE ')) ELSE '' END"
                            " FROM sqlite_schema WHERE name = ?1",
                            -1, &statement, NULL),
        SQLITE_OK);
    sqlite3_bind_text (statement, 1, index, -1, SQLITE_STATIC);
    assert_int_equal (sqlite3_step (statement), SQLITE_ROW);
    snprintf (sql, SQL_BYTES, "%s", (const char *) sqlite3_column_text (statement, 0));
    sqlite3_finalize (statement);
}

static sqlite3 *open_tables (const fixture_t *f)
{
    char path[160];
    sqlite3 *db;
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    return db;
}

/* A sum over what the index tells, in its order; 0 when it cannot be read to its end. */
static uint64_t told_by (const fixture_t *f, const char *index)
{
    char sql[SQL_BYTES];
    sqlite3 *db = open_tables (f);
    sqlite3_stmt *statement;
    uint64_t sum = 14695981039346656037u;
    int rc = SQLITE_ERROR;
    index_sql (db, index, sql);
    if (sqlite3_prepare_v2 (db, sql, -1, &statement, NULL) == SQLITE_OK) {
        while ((rc = sqlite3_step (statement)) == SQLITE_ROW)
            for (int i = 0; i < sqlite3_column_count (statement); i++) {
                const uint8_t *bytes = sqlite3_column_blob (statement, i);
                int length = sqlite3_column_bytes (statement, i);
                sum = (sum ^ (uint64_t) sqlite3_column_type (statement, i)) * 1099511628211u;
                for (int k = 0; k < length; k++)
                    sum = (sum ^ bytes[k]) * 1099511628211u;
            }
        sqlite3_finalize (statement);
    }
    sqlite3_close (db);
    return rc == SQLITE_DONE ? sum : 0;
}

static void count_finding (void *context, const char *text)
{
    assert_true (text[0] != '\0');
    ++*(unsigned *) context;
}

static bool is_found (const fixture_t *f)
{
    unsigned findings = 0;
    store_error_t error = {STORE_OK, ""};
    store_audit_t audit = {.found = count_finding, .context = &findings};
    return store_audit (&audit, f->directory, &error) != STORE_OK || findings > 0;
}

/* A byte of the page that is not between its pointers and its cells, where nothing stands. */
static size_t byte_in_use (const uint8_t *page)
{
    enum { LEAF = 10, LEAF_HEADER = 8, INNER_HEADER = 12 };
    size_t used = (page[0] == LEAF ? LEAF_HEADER : INNER_HEADER) + 2 * number_at (page + 3);
    size_t cells = number_at (page + 5);
    size_t at = next_random () % (used + PAGE_BYTES - cells);
    return at < used ? at : cells + at - used;
}

static void an_index_with_a_flipped_bit (void **state)
{
    (void) state;
    page_t pages[PAGES_MAX];
    image_t images[FILES_COUNT];
    fixture_t *f = prepared (CLOSED);
    for (size_t i = 0; i < FILES_COUNT; i++)
        image_read (f, &images[i], FILES[i]);
    sqlite3 *db = open_tables (f);
    size_t count = find_pages (db, &images[0], pages);
    sqlite3_close (db);
    assert_true (count >= 4); /* of ids, of queues, of bodies, of events */
    assert_false (is_found (f));
    unsigned harmless = 0;
    for (unsigned i = 0; i < flips * count; i++) {
        const page_t *page = &pages[i % count];
        uint64_t told = told_by (f, page->index);
        size_t at = page->at + byte_in_use (images[0].bytes + page->at);
        uint8_t bit = (uint8_t) (1u << next_random () % 8);
        images[0].bytes[at] ^= bit;
        image_write (f, &images[0]);
        images[0].bytes[at] ^= bit;
        if (!is_found (f)) {
            if (told_by (f, page->index) != told)
                fail_msg ("%s: byte %zu, mask %#x is not found", page->index, at, bit);
            harmless++;
        }
        restore (f, images);
    }
    print_message ("%u flips in %zu pages of indexes: %u found by the check, %u in bytes that say "
                   "nothing\n",
                   flips * (unsigned) count, count, flips * (unsigned) count - harmless, harmless);
    for (size_t i = 0; i < FILES_COUNT; i++)
        free (images[i].bytes);
    void *owner = f;
    fixture_teardown (&owner);
}

/* Opens what a kill has left without one of its files. */
static void assert_refused_without (end_t end, const char *name, const char *text)
{
    fixture_t *f = prepared (end);
    store_error_t error = {STORE_OK, ""};
    char path[160];
    snprintf (path, sizeof (path), "%s/taskmq.db-shm", f->directory);
    unlink (path);
    snprintf (path, sizeof (path), "%s/%s", f->directory, name);
    assert_int_equal (unlink (path), 0);
    assert_int_equal (store_open (&f->store, "sqlite", &f->options, &f->boot, &error),
                      STORE_ERROR_CORRUPT);
    if (strstr (error.text, text) == NULL)
        fail_msg ("%s", error.text);
    void *state = f;
    fixture_teardown (&state);
}

static void a_killed_store_without_one_of_its_logs (void **state)
{
    (void) state;
    assert_refused_without (KILLED, "journal.log", "journal.log is missing");
    assert_refused_without (KILLED_GIVEN_UP, "taskmq.db-wal", "taskmq.db lacks its newest part");
}

int main (int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp (argv[i], "--flips") == 0)
            flips = (unsigned) atoi (argv[i + 1]);
        else if (strcmp (argv[i], "--seed") == 0)
            seed = strtoull (argv[i + 1], NULL, 10) | 1;
    }
    print_message ("seed %llu\n", (unsigned long long) seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_closed_store_with_a_flipped_bit),
        cmocka_unit_test (a_killed_store_with_a_flipped_bit),
        cmocka_unit_test (a_killed_store_with_a_flipped_bit_in_its_tables),
        cmocka_unit_test (a_killed_store_with_a_flipped_bit_in_what_only_its_tables_have),
        cmocka_unit_test (an_index_with_a_flipped_bit),
        cmocka_unit_test (a_killed_store_without_one_of_its_logs),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
