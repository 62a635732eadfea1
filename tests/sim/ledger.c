/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The tables themselves, in worlds that have them: the broker's own taskmq.db, written behind the
 * journal, its readers, and the index of texts with its follower and its finder, all in one thread.
 * A crash may come in the middle of a write-back, or of a turn of the follower: from some write on
 * nothing reaches the files any more.
 *
 * The plain tables of the model stand beside them. Whatever the engine asks both are asked, and the
 * answers must be the same: so a mark that stays, a filter that is forgotten, a count that is wrong
 * and a page that ends too far are seen at once, whatever a client makes of them. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "log/log.h"
#include "search/finder.h"
#include "sim.h"
#include "store/search.h"
#include "store/sqlite/readers.h"
#include "store/sqlite/tables.h"
#include "store/store_backend.h"

enum {
    WRITES_LEFT_MAX = 40, /* before a crash in the middle of a write-back */
    TURNS_MAX = 6,        /* of the follower, that a search waits for */
    TURNS_AT_REST = 1000,
    DIRECTORY_BYTES = 32
};

/* What the follower and the finder take for the store: the readers of the tables. */
typedef struct facade {
    store_t base;
    world_t *world;
} facade_t;

struct ledger {
    char directory[DIRECTORY_BYTES];
    store_options_t options;
    gate_t gate;
    tables_t *tables; /* NULL: the broker is down */
    readers_t readers;
    facade_t facade;
    store_reader_t reader;
    indexer_t *indexer;
    finder_t *finder;
};

static ledger_t *ledger_of (const world_t *world)
{
    return world->broker->ledger;
}

/* The facade. */

static uint64_t facade_written (store_t *base)
{
    return ((facade_t *) base)->world->model->written;
}

static store_code_t facade_open (store_reader_t **out, store_t *base, store_error_t *error)
{
    ledger_t *self = ledger_of (((facade_t *) base)->world);
    (void) error;
    self->reader.store = base;
    *out = &self->reader;
    return STORE_OK;
}

static void facade_close (store_reader_t *reader)
{
    (void) reader;
}

static store_code_t facade_run (store_reader_t *reader, read_t *read, store_error_t *error)
{
    ledger_t *self = ledger_of (((facade_t *) reader->store)->world);
    return readers_run (&self->readers, read, error);
}

static void facade_stats (store_t *base, store_stats_t *out)
{
    ledger_t *self = ledger_of (((facade_t *) base)->world);
    *out = (store_stats_t){.removals = tables_removals (self->tables), .free_bytes = UINT64_MAX};
}

static const store_backend_t FACADE = {
    .uri = "simulated",
    .written = facade_written,
    .reader_open = facade_open,
    .reader_close = facade_close,
    .reader_run = facade_run,
    .stats = facade_stats,
};

/* Life. */

static void read_failed (const store_error_t *error)
{
    fprintf (stderr, "a read of the follower fails: %s\n", error->text);
    abort ();
}

static void name_directory (char out[DIRECTORY_BYTES], pid_t process)
{
    snprintf (out, DIRECTORY_BYTES, "sim-%d", (int) process);
}

void ledger_clean (pid_t process)
{
    static const char *const names[] = {"taskmq.db", "search.db"};
    static const char *const ends[] = {"", "-wal", "-shm"};
    char directory[DIRECTORY_BYTES];
    name_directory (directory, process);
    for (size_t i = 0; i < 6; i++) {
        char path[DIRECTORY_BYTES + 32];
        snprintf (path, sizeof path, "%s/%s%s", directory, names[i / 3], ends[i % 3]);
        unlink (path);
    }
    rmdir (directory);
}

/* No other process opens these files: locks that only this one sees are enough, and cost no
 * calls. */
static void lock_within (void)
{
    static bool done;
    if (!done) {
        done = true;
        sqlite3_vfs_register (sqlite3_vfs_find ("unix-excl"), 1);
    }
}

void ledger_make (world_t *world)
{
    if (world->options.tables == 0) {
        return;
    }
    ledger_t *self = calloc (1, sizeof *self);
    world->broker->ledger = self;
    lock_within ();
    fault_vfs_install ();
    fault_vfs_skip_syncs (true); /* a loss of power is the journal's matter, here and store_power */
    log_configure (LOG_LEVEL_ERROR, false);
    name_directory (self->directory, getpid ());
    if (mkdir (self->directory, 0700) != 0) {
        sim_fail (world, "no directory can be made for the tables");
    }
    self->options = (store_options_t) STORE_OPTIONS_INIT;
    self->options.directory = self->directory;
    self->options.planted_bug = world->options.planted_bug;
    self->facade = (facade_t){{.backend = &FACADE}, world};
    gate_init (&self->gate);
}

static void ledger_close (ledger_t *self)
{
    finder_free (&self->finder);
    indexer_free (&self->indexer);
    readers_close (&self->readers);
    self->readers = (readers_t){0};
    tables_free (&self->tables);
}

void ledger_free (world_t *world)
{
    ledger_t *self = ledger_of (world);
    if (self == NULL) {
        return;
    }
    ledger_close (self);
    gate_destroy (&self->gate);
    ledger_clean (getpid ());
    free (self);
    world->broker->ledger = NULL;
}

/* Writing. */

/* The batches belong to the model. */
static void dirty_leave (dirty_t *dirty)
{
    images_free (&dirty->images);
    row_list_free (&dirty->rows);
    free (dirty->batches);
}

/* Everything that the journal has and the tables have not. start: it is what a start does. */
static store_code_t write_all (world_t *world, bool start, store_error_t *error)
{
    ledger_t *self = ledger_of (world);
    const model_t *model = world->model;
    uint64_t written = tables_meta (self->tables)->written_batch;
    dirty_t dirty = {0};
    for (size_t i = 0; i < model->journal_count; i++) {
        if (model->journal[i]->no > written) {
            dirty_add (&dirty, model->journal[i], 0);
        }
    }
    dirty_sort (&dirty);
    store_code_t code = tables_begin (self->tables, error);
    if (code == STORE_OK && dirty.count > 0) {
        code = tables_write (self->tables, &dirty, error);
    }
    if (code == STORE_OK && start) {
        tables_start_epoch (self->tables);
    }
    code = code == STORE_OK ? tables_commit (self->tables, error) : code;
    dirty_leave (&dirty);
    return code;
}

void ledger_write (world_t *world)
{
    ledger_t *self = ledger_of (world);
    store_error_t error = {STORE_OK, ""};
    if (self == NULL || world->model->journal_count == 0) {
        return;
    }
    if (write_all (world, false, &error) != STORE_OK ||
        tables_checkpoint_if_large (self->tables, &error) != STORE_OK) {
        sim_fail (world, "A10: the write-back fails: %s", error.text);
    }
}

void ledger_check_written (world_t *world)
{
    const ledger_t *self = ledger_of (world);
    if (self == NULL) {
        return;
    }
    uint64_t tasks = 0;
    MODEL_EACH_ROW (i, &world->model->tables)
    {
        tasks += world->model->tables.rows[i].record != NULL;
    }
    uint64_t counted = tables_meta (self->tables)->tasks;
    if (tasks != counted) {
        sim_fail (world, "A10: the tables count %llu tasks, there are %llu",
                  (unsigned long long) counted, (unsigned long long) tasks);
    }
}

/* A start: what the journal has comes into the tables, and a new epoch begins. */
void ledger_start (world_t *world)
{
    ledger_t *self = ledger_of (world);
    store_error_t error = {STORE_OK, ""};
    if (self == NULL) {
        return;
    }
    store_code_t code = tables_open (&self->tables, &self->options, &self->gate, &error);
    if (code == STORE_OK) {
        code = write_all (world, true, &error);
    }
    if (code == STORE_OK) {
        code = tables_checkpoint_all (self->tables, &error);
    }
    if (code == STORE_OK) {
        uint32_t page_us = rng_chance (&world->rng, 500) ? 0 : UINT32_MAX;
        code = readers_open (&self->readers, self->directory, &self->gate, page_us, &error);
        self->readers.view.planted_bug = world->options.planted_bug;
    }
    if (code != STORE_OK) {
        sim_fail (world, "A13: the tables cannot be opened: %s", error.text);
        return;
    }
    const indexer_options_t options = {.store = &self->facade.base,
                                       .directory = self->directory,
                                       .generation = world->model->generation,
                                       .last_pos = tables_meta (self->tables)->last_pos,
                                       .failed = read_failed,
                                       .driven = true,
                                       .planted_bug = world->options.planted_bug};
    self->indexer = indexer_new (&options);
    self->finder = finder_new (&self->facade.base, self->indexer, self->directory);
}

/* The process is gone, perhaps in the middle of a write-back or of a turn of the follower. */
void ledger_crash (world_t *world)
{
    ledger_t *self = ledger_of (world);
    store_error_t error;
    if (self == NULL || self->tables == NULL) {
        return;
    }
    fault_t fault = {.file = "", .ops = FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE};
    bool writes = rng_chance (&world->rng, 500) && world->model->journal_count > 0;
    fault.after = writes ? rng_below (&world->rng, WRITES_LEFT_MAX) : 0;
    fault_vfs_arm (&fault);
    if (writes && rng_chance (&world->rng, 300)) {
        indexer_turn (self->indexer);
    }
    if (writes) {
        (void) write_all (world, false, &error);
    }
    ledger_close (self);
    fault_vfs_disarm ();
}

void ledger_step (world_t *world)
{
    ledger_t *self = ledger_of (world);
    if (self != NULL && self->tables != NULL && rng_chance (&world->rng, 20)) {
        indexer_turn (self->indexer);
    }
}

/* Reading. */

/* The same question to the plain tables. */
static read_t ask_model (const world_t *world, const read_t *read)
{
    read_t plain = {.kind = read->kind,
                    .filter = read->filter,
                    .before_number = read->before_number,
                    .limit = read->limit,
                    .row_kind = read->row_kind,
                    .prefix = read->prefix,
                    .after = read->after};
    memcpy (plain.suffix, read->suffix, sizeof plain.suffix);
    model_read (world->model, &plain);
    return plain;
}

/* True: the answer covers this number. */
static bool covers (const read_t *read, int64_t number)
{
    int64_t below = 0;
    if (read->more && read->next_number > 0) {
        below = read->next_number;
    } else if (read->more && read->records_count > 0) {
        below = read->records[read->records_count - 1]->number;
    }
    return number >= below;
}

static void compare_records (world_t *world, const read_t *read, const read_t *plain)
{
    for (size_t i = 0; i < read->records_count; i++) {
        const record_t *record = read->records[i];
        if (i >= plain->records_count || plain->records[i]->number != record->number) {
            sim_fail (world,
                      "R3: a page (%d) has task %u at place %zu, which does not belong there",
                      (int) read->kind, model_index (record->id.bytes), i);
            return;
        }
        if (plain->records[i]->version != record->version) {
            sim_fail (world, "A11: task %u is read at version %llu, stored is %llu",
                      model_index (record->id.bytes), (unsigned long long) record->version,
                      (unsigned long long) plain->records[i]->version);
        }
    }
    size_t behind = read->records_count;
    if (behind < plain->records_count && covers (read, plain->records[behind]->number)) {
        sim_fail (world, "R3: a page (%d) leaves out task %u", (int) read->kind,
                  model_index (plain->records[behind]->id.bytes));
    }
}

static void compare_rows (world_t *world, const read_t *read, const read_t *plain)
{
    bool same = read->rows_count == plain->rows_count && read->more == plain->more;
    for (size_t i = 0; same && i < read->rows_count; i++) {
        const row_t *a = &read->rows[i];
        const row_t *b = &plain->rows[i];
        same = buf_length (a->key) == buf_length (b->key) &&
               memcmp (buf_bytes (a->key), buf_bytes (b->key), buf_length (a->key)) == 0 &&
               buf_length (a->body) == buf_length (b->body) &&
               (buf_length (a->body) == 0 ||
                memcmp (buf_bytes (a->body), buf_bytes (b->body), buf_length (a->body)) == 0);
    }
    if (!same) {
        sim_fail (world, "A37: a page of rows of kind %d has %zu, there are %zu, or others",
                  (int) read->row_kind, read->rows_count, plain->rows_count);
    }
}

static void compare (world_t *world, const read_t *read)
{
    read_t plain = ask_model (world, read);
    switch (read->kind) {
    case READ_LIST:
    case READ_LASTING: compare_records (world, read, &plain); break;
    case READ_COUNT:
        if (read->before_number == 0 && !read->more && read->count != plain.count) {
            sim_fail (world, "R3: %llu tasks are counted, there are %llu",
                      (unsigned long long) read->count, (unsigned long long) plain.count);
        }
        break;
    case READ_RESOLVE:
        if (read->count != plain.count) {
            sim_fail (world, "a short id names %llu tasks, it should %llu",
                      (unsigned long long) read->count, (unsigned long long) plain.count);
        }
        break;
    default: compare_rows (world, read, &plain);
    }
    read_clear (&plain);
}

/* Searches. */

/* The newest event of the task has been followed. */
static bool is_followed (const world_t *world, const record_t *record, const search_t *search)
{
    const model_log_t *log = model_log (&world->model->tables, record->ns);
    return record->last_seq > 0 && record->last_seq <= log->events_count &&
           log->positions[record->last_seq - 1] <= search->indexed_pos;
}

static bool has (const read_t *read, const tmq_id_t *id)
{
    for (size_t i = 0; i < read->records_count; i++) {
        if (memcmp (read->records[i]->id.bytes, id->bytes, sizeof *id) == 0) {
            return true;
        }
    }
    return false;
}

/* What must be found is: all that the index says that it has. And nothing else. */
static void judge_search (world_t *world, const read_t *read, uint64_t last_pos)
{
    const search_t *search = read->search;
    bool whole = !search->behind && !search->building;
    uint64_t count = 0;
    if (read->error != 0 || search->stalled[0] != '\0') {
        sim_fail (world, "R4: the index cannot be read: %s%s", read->error_text, search->stalled);
        return;
    }
    if (whole && search->indexed_pos < last_pos) {
        sim_fail (world, "R4: a search says that the index has all, and it is at %llu of %llu",
                  (unsigned long long) search->indexed_pos, (unsigned long long) last_pos);
    }
    for (uint32_t i = 0; i < world->tasks_count && !world->failed; i++) {
        const record_t *record = world->model->tables.rows[i].record;
        if (record == NULL || !model_matches (&world->model->tables, &read->filter, record)) {
            continue;
        }
        bool reads = read->filter.scope == NULL || access_sees (read->filter.scope, record->queue,
                                                                record->owner, NULL, RIGHT_BODY);
        bool matches = reads && seeker_finds (&world->tasks[i], record, &search->query);
        bool below = read->before_number == 0 || record->number < read->before_number;
        bool there = has (read, &record->id);
        count += matches;
        if (there && (!matches || (!below && !search->ranked))) {
            sim_fail (world, "R4: '%s' finds task %u, which does not have it", search->query.text,
                      i);
        } else if (matches && below && !there && !search->counting && !search->building &&
                   (whole || is_followed (world, record, search)) &&
                   (search->ranked ? read->records_count < read->limit
                                   : covers (read, record->number))) {
            sim_fail (world, "R4: '%s' does not find task %u, events up to %llu are in the index",
                      search->query.text, i, (unsigned long long) search->indexed_pos);
        }
    }
    if (search->counting && whole && !read->more && read->before_number == 0 &&
        read->count != count) {
        sim_fail (world, "R4: '%s' counts %llu tasks, there are %llu", search->query.text,
                  (unsigned long long) read->count, (unsigned long long) count);
    }
}

static void search (world_t *world, read_t *read)
{
    ledger_t *self = ledger_of (world);
    uint64_t last_pos = tables_meta (self->tables)->last_pos;
    indexer_allow (self->indexer, rng_below (&world->rng, TURNS_MAX));
    finder_answer (self->finder, read);
    judge_search (world, read, last_pos);
}

static bool is_ours (const world_t *world, const read_t *read)
{
    return ledger_of (world) != NULL &&
           (read->kind == READ_LIST || read->kind == READ_COUNT || read->kind == READ_RESOLVE ||
            read->kind == READ_LASTING || read->kind == READ_ROWS || read->kind == READ_SEARCH);
}

void ledger_read (world_t *world, read_t *read)
{
    ledger_t *self = ledger_of (world);
    store_error_t error = {STORE_OK, ""};
    if (!is_ours (world, read)) {
        model_read (world->model, read);
        return;
    }
    read->written = world->model->written;
    if (atomic_load (&read->cancelled)) {
        return; /* nobody waits for the answer */
    }
    if (read->kind == READ_SEARCH) {
        search (world, read);
    } else if (readers_run (&self->readers, read, &error) != STORE_OK) {
        sim_fail (world, "a read (%d) fails: %s", (int) read->kind, error.text);
    } else {
        compare (world, read);
    }
}

/* When all has come to rest no text is left of tasks that are gone. */
void ledger_check_rest (world_t *world)
{
    ledger_t *self = ledger_of (world);
    search_place_t place;
    search_walk_t walk = {0};
    search_writer_t *writer = NULL;
    store_error_t error = {STORE_OK, ""};
    if (self == NULL || self->tables == NULL) {
        return;
    }
    size_t turns = 0;
    while (turns < TURNS_AT_REST && indexer_turn (self->indexer)) {
        turns++;
    }
    finder_free (&self->finder);
    indexer_free (&self->indexer);
    store_code_t code =
        search_writer_open (&writer, self->directory, world->model->generation,
                            tables_meta (self->tables)->last_pos, false, &place, &error);
    bool more = code == STORE_OK;
    while (more && !world->failed) {
        code = search_writer_walk (writer, &walk, &error);
        more = code == STORE_OK && walk.count > 0;
        for (size_t i = 0; more && i < walk.count; i++) {
            if (!model_has_number (&world->model->tables, walk.ns, walk.numbers[i])) {
                sim_fail (world, "R4: texts of task number %lld are left, and the task is gone",
                          (long long) walk.numbers[i]);
            }
        }
    }
    if (code != STORE_OK || turns == TURNS_AT_REST) {
        sim_fail (world, "R4: the index does not come to rest: %s", error.text);
    }
    search_writer_close (&writer);
}
