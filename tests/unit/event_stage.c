/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "event_stage.h"

/* Every operation that changes files counts. The one with this number ends the process, or fails
 * for lack of space, as do so many behind it. */
atomic_llong operations;
long long crash_at;
long long full_from;
long long full_upto;

typedef enum op { GO_ON, FAIL } op_t;

static op_t operation (void)
{
    long long number = atomic_fetch_add (&operations, 1) + 1;
    if (number == crash_at)
        _exit (CRASHED);
    return number >= full_from && number < full_upto ? FAIL : GO_ON;
}

ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset);
int __wrap_rename (const char *from, const char *to);
int __real_ftruncate (int fd, off_t length);
int __wrap_ftruncate (int fd, off_t length);
int __real_fdatasync (int fd);
int __wrap_fdatasync (int fd);
int __wrap_unlink (const char *path);

/* A write that is cut off leaves half of what it was for. */
ssize_t __wrap_pwrite (int fd, const void *bytes, size_t length, off_t offset)
{
    if (atomic_load (&operations) + 1 == crash_at || length < 2) {
        __real_pwrite (fd, bytes, length / 2, offset);
    } else if (atomic_load (&operations) + 1 == full_from) {
        atomic_fetch_add (&operations, 1);
        return __real_pwrite (fd, bytes, length / 2, offset);
    }
    if (operation () == GO_ON)
        return __real_pwrite (fd, bytes, length, offset);
    errno = ENOSPC;
    return -1;
}

#define WRAP(call)                                                                                 \
    if (operation () == GO_ON)                                                                     \
        return __real_##call;                                                                      \
    errno = ENOSPC;                                                                                \
    return -1

int __wrap_rename (const char *from, const char *to)
{
    WRAP (rename (from, to));
}

int __wrap_ftruncate (int fd, off_t length)
{
    WRAP (ftruncate (fd, length));
}

int __wrap_fdatasync (int fd)
{
    WRAP (fdatasync (fd));
}

int __wrap_unlink (const char *path)
{
    WRAP (unlink (path));
}

void no_faults (void)
{
    atomic_store (&operations, 0);
    crash_at = full_from = full_upto = 0;
}

/* A damaged page of the tables: none of these positions can be read. */
uint64_t bad_from;
uint64_t bad_upto; /* 0: there is none */

store_code_t __real_store_reader_run (store_reader_t *self, read_t *read);
store_code_t __wrap_store_reader_run (store_reader_t *self, read_t *read);

/* What the tables do: what stands before the damage is given, then nothing. */
store_code_t __wrap_store_reader_run (store_reader_t *self, read_t *read)
{
    store_code_t code = __real_store_reader_run (self, read);
    if (read->kind != READ_BLOCKS || bad_upto == 0)
        return code;
    for (size_t i = 0; i < read->blocks_count; i++) {
        const event_block_t *block = &read->blocks[i];
        if (block->first_pos > bad_upto || block->first_pos + block->count <= bad_from)
            continue;
        for (size_t k = i; k < read->blocks_count; k++) {
            free ((void *) (uintptr_t) read->blocks[k].ns);
            buf_drop (read->blocks[k].list);
        }
        read->blocks_count = i;
        read->more = true;
    }
    if (read->blocks_count > 0 || !read->more)
        return code;
    read_clear (read);
    snprintf (read->error_text, sizeof (read->error_text), "a page is damaged");
    return STORE_ERROR_DAMAGED;
}

int64_t now_ms;

int64_t wall_ms (void)
{
    return now_ms;
}

void must_not_fail (const store_error_t *error)
{
    fprintf (stderr, "%s\n", error->text);
    abort ();
}

void rig_open (rig_t *self, int64_t events)
{
    no_faults ();
    now_ms = INT64_C (1790000000000);
    directory_make (self->directory);
    self->wake_fd = wakeup_new ();
    self->options = (event_files_options_t){.directory = self->directory,
                                            .turn_bytes = UINT64_MAX,
                                            .keep_ms = INT64_C (1) << 40,
                                            .keep_bytes = UINT64_MAX,
                                            .wall_ms = wall_ms};
    self->fixture = fixture_new ("memory");
    fixture_open (self->fixture);
    for (int64_t from = 1; from <= events; from += 100)
        fixture_submit (self->fixture, from, from + 99 < events ? from + 99 : events);
    fixture_settle (self->fixture);
    self->fixture->boot.last_pos = self->fixture->pos;
    watermark_init (&self->watermark, self->fixture->store);
    watermark_move (&self->watermark, WATERMARK_TASKS, UINT64_MAX);
}

void rig_close (rig_t *self)
{
    void *state = self->fixture;
    no_faults ();
    fixture_teardown (&state);
    close (self->wake_fd);
    directory_remove (self->directory);
}

/* As the broker does it at its start; NULL: the database lacks events. */
event_log_t *rig_start (rig_t *self)
{
    char error[LINE_FILE_ERROR_SIZE] = "";
    event_files_t *files = NULL;
    uint64_t pos;
    while ((files = event_files_open (&self->options, &self->end, error)) == NULL)
        ; /* no space */
    assert_int_equal (event_witness (&self->verdict, &pos, files, &self->end, self->fixture->store,
                                     &self->fixture->boot, self->why),
                      STORE_OK);
    event_log_options_t options = {.store = self->fixture->store,
                                   .watermark = &self->watermark,
                                   .generation = self->fixture->boot.generation,
                                   .pos = pos,
                                   .begin = self->verdict == EVENTS_OTHER,
                                   .why = EVENT_ANCHOR_TURNED,
                                   .wake_fd = self->wake_fd,
                                   .stop_ms = TIMING_PATIENCE_MS,
                                   .failed = must_not_fail};
    if (self->verdict == EVENTS_AHEAD) {
        event_files_close (&files);
        return NULL;
    }
    event_log_t *log = event_log_new (&options, &files, error);
    assert_non_null (log);
    return log;
}

void wait_written (event_log_t *log, uint64_t pos)
{
    event_log_stats_t stats;
    WAIT_FOR ((event_log_stats (log, &stats), stats.pos >= pos), TIMING_PATIENCE_MS);
}

/* Writes everything that the store has. */
void rig_follow (rig_t *self)
{
    event_log_t *log = rig_start (self);
    assert_non_null (log);
    wait_written (log, self->fixture->pos);
    event_log_free (&log);
}

lines_t lines;

void lines_clear (void)
{
    for (size_t i = 0; i < lines.count; i++)
        free (lines.list[i]);
    for (size_t i = 0; i < lines.files; i++)
        free (lines.names[i]);
    lines = (lines_t){.files = 0};
}

uint64_t first_n (const char *name)
{
    unsigned long long n = 0;
    FILE *file = fopen (name, "r");
    assert_non_null (file);
    if (fscanf (file, "{\"n\":%llu", &n) != 1)
        n = UINT64_MAX; /* empty: it goes on behind all others */
    fclose (file);
    return n;
}

static int compare_names (const void *a, const void *b)
{
    uint64_t left = first_n (*(char *const *) a);
    uint64_t right = first_n (*(char *const *) b);
    return (left > right) - (left < right);
}

void read_file (const char *path)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    while ((length = getline (&line, &room, file)) > 0) {
        assert_int_equal (line[length - 1], '\n');
        line[length - 1] = '\0';
        assert_true (lines.count < LINES_MAX);
        lines.list[lines.count++] = strdup (line);
    }
    free (line);
    fclose (file);
}

void read_files (const char *directory)
{
    char path[512];
    lines_clear ();
    DIR *entries = opendir (directory);
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL;) {
        size_t length = strlen (entry->d_name);
        if (strncmp (entry->d_name, "events", 6) != 0 || length < 6 ||
            strcmp (entry->d_name + length - 6, ".jsonl") != 0)
            continue;
        snprintf (path, sizeof (path), "%s/%s", directory, entry->d_name);
        assert_true (lines.files < FILES_MAX);
        lines.names[lines.files++] = strdup (path);
    }
    closedir (entries);
    qsort (lines.names, lines.files, sizeof (char *), compare_names);
    for (size_t i = 0; i < lines.files; i++)
        read_file (lines.names[i]);
}

/* All lines are one chain, and tell each position once, in order, behind this one. */
void check_lines (const char *directory, uint64_t pos, uint64_t upto)
{
    chain_check_t check = {0};
    read_files (directory);
    for (size_t i = 0; i < lines.count; i++) {
        event_place_t place;
        size_t length = strlen (lines.list[i]);
        chain_check_line (&check, lines.list[i], length);
        assert_true (event_line_parse (&place, lines.list[i], length));
        if (place.generation != 0) {
            lines.anchors++;
            assert_int_equal (place.pos, pos);
        } else if (place.seq != 0) {
            lines.events++;
            assert_int_equal (place.pos, ++pos);
        } else {
            lines.gaps++;
            pos = place.pos;
        }
    }
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
    assert_int_equal (pos, upto);
}

void path_of (const rig_t *rig, const char *name, char out[128])
{
    snprintf (out, 128, "%s/%s", rig->directory, name);
}

int end_lines (void **state)
{
    (void) state;
    lines_clear ();
    return 0;
}
