/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the store alone costs: synthetic lives (submitted and claimed in one batch, completed in the
 * next; three events, 200 bytes in, 100 out) committed as fast as it takes them. CPU of the commits
 * is that of this thread inside store_commit, CPU of the write-back that of all other threads.
 *
 *     store-bench DIRECTORY [LIVES [LIVES-PER-BATCH...]]
 *
 * And what a large store costs to open and to read, with half of the tasks queued:
 *
 *     store-bench DIRECTORY scale TASKS
 *
 * And what the threads behind it take that write tasks.jsonl and events.jsonl: beside the same
 * lives, or of all that a data directory has which no broker uses. The directory stays:
 *
 *     store-bench DIRECTORY export LIVES
 *     store-bench DIRECTORY export
 *
 * And what reads take while lives are committed as fast as it takes them: look-ups, lists,
 * replays. Every task has a dedup key:
 *
 *     store-bench DIRECTORY reads TASKS
 *
 * With DATABASE=URI in the environment all but the export is done on PostgreSQL, in fresh schemas
 * of that database, which stay. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "followers.h"
#include "store/postgresql/database_options.h"
#include "store/store.h"
#include "taskmq.pb-c.h"

enum {
    FIELD_EVENTS = 1,       /* of taskmq.EventList */
    COUNT_MAX = 1000000000, /* of lives, tasks, and lives a batch */
    PAYLOAD_BYTES = 200,
    RESULT_BYTES = 100,
    DIRTY_TASKS_MAX = 4000 /* the soft limit on what is not written back (A12) */
};

typedef struct bench {
    store_t *store;
    uint64_t batch;
    uint64_t seq;
    int64_t number;      /* newest task */
    int64_t first_open;  /* oldest task not completed */
    uint64_t *last_seqs; /* of open tasks, by number modulo the size of a batch */
    size_t per_batch;
    bytes_t list;
    double commit_us; /* CPU */
    bool keys;        /* each task has a dedup key */
    atomic_bool stop; /* of those who commit */
} bench_t;

static double seconds (clockid_t clock)
{
    struct timespec now;
    clock_gettime (clock, &now);
    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static double process_cpu (void)
{
    return seconds (CLOCK_PROCESS_CPUTIME_ID);
}

static tmq_id_t make_id (int64_t number)
{
    tmq_id_t id = {{0x01, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80}};
    for (unsigned i = 0; i < 4; i++)
        id.bytes[2 + i] = (uint8_t) (number >> (8 * (3 - i)));
    uint64_t noise = (uint64_t) number * UINT64_C (0x9e3779b97f4a7c15);
    memcpy (id.bytes + 9, &noise, 7);
    return id;
}

static void add_event (bench_t *bench, const record_t *record, tmq_event_kind_t kind)
{
    Taskmq__Event event = TASKMQ__EVENT__INIT;
    bench->seq++;
    event.seq = bench->seq;
    event.at = (uint64_t) record->updated_at;
    event.kind = kind;
    event.task_id = (ProtobufCBinaryData){16, (uint8_t *) record->id.bytes};
    event.queue = (char *) record->queue;
    event.status = record->status;
    event.attempt = record->attempt;
    event.actor = (char *) record->owner;
    event.previous_seq = bench->last_seqs[(size_t) record->number % bench->per_batch];
    bytes_append_message (&bench->list, FIELD_EVENTS, &event.base);
    bench->last_seqs[(size_t) record->number % bench->per_batch] = bench->seq;
}

/* Of a task; valid until the next call of the same thread. */
static const char *make_key (int64_t number)
{
    static _Thread_local char key[32];
    snprintf (key, sizeof (key), "order-%lld", (long long) number);
    return key;
}

static record_t make_record (const bench_t *bench, int64_t number)
{
    static const char EMPTY[] = "";
    record_t record = {.number = number,
                       .id = make_id (number),
                       .ns = "default",
                       .owner = "local",
                       .queue = "work",
                       .session = EMPTY,
                       .method = EMPTY,
                       .content_type = "application/octet-stream",
                       .dedup_key = bench->keys ? make_key (number) : EMPTY,
                       .meta = EMPTY,
                       .status_message = EMPTY,
                       .worker = "bench-worker-1",
                       .progress_unit = EMPTY,
                       .progress_message = EMPTY,
                       .result_type = EMPTY,
                       .error_message = EMPTY,
                       .error_data = EMPTY};
    record.status = TMQ_STATUS_WORKING;
    record.priority = TMQ_PRIORITY_DEFAULT;
    record.created_at = record.updated_at = 1700000000000 + number / 50;
    record.ttl_ms = TMQ_TTL_MS_DEFAULT;
    record.expires_at = record.created_at + record.ttl_ms;
    record.poll_interval_ms = TMQ_POLL_INTERVAL_MS_DEFAULT;
    record.lease_ms = TMQ_LEASE_MS_DEFAULT;
    record.backoff_ms = TMQ_BACKOFF_MS_DEFAULT;
    record.max_attempts = TMQ_MAX_ATTEMPTS_DEFAULT;
    record.attempt = 1;
    record.version = 2;
    record.leased = true;
    memset (record.secret, 1 + (int) (number & 0x7f), sizeof (record.secret));
    memset (record.worker_id, 2, sizeof (record.worker_id));
    memset (record.request_id, 3, sizeof (record.request_id));
    memset (record.digest, 1 + (int) (number & 0x7f), sizeof (record.digest));
    record.payload_bytes = PAYLOAD_BYTES;
    return record;
}

static void submit_and_claim (bench_t *bench, batch_t *batch)
{
    record_t record = make_record (bench, ++bench->number);
    bench->last_seqs[(size_t) record.number % bench->per_batch] = 0;
    add_event (bench, &record, TMQ_EVENT_SUBMITTED);
    add_event (bench, &record, TMQ_EVENT_CLAIMED);
    record.last_seq = bench->seq;
    record.payload = buf_new_uninitialised (PAYLOAD_BYTES);
    memset (buf_mutable (record.payload), 'p', PAYLOAD_BYTES);
    batch->records[batch->records_count++] = record_new (&record);
    buf_drop (record.payload);
    batch->bytes += sizeof (record_t) + PAYLOAD_BYTES;
}

static void complete (bench_t *bench, batch_t *batch)
{
    record_t record = make_record (bench, bench->first_open++);
    record.status = TMQ_STATUS_COMPLETED;
    record.leased = false;
    record.version = 3;
    record.started_at = record.finished_at = record.updated_at;
    record.outcome = TMQ_OUTCOME_RESULT;
    record.result_type = "text/plain";
    record.result_bytes = RESULT_BYTES;
    add_event (bench, &record, TMQ_EVENT_COMPLETED);
    record.last_seq = bench->seq;
    record.result = buf_new_uninitialised (RESULT_BYTES);
    memset (buf_mutable (record.result), 'r', RESULT_BYTES);
    batch->records[batch->records_count++] = record_new (&record);
    buf_drop (record.result);
    batch->bytes += sizeof (record_t) + RESULT_BYTES;
}

static batch_t *make_batch (bench_t *bench, size_t lives)
{
    batch_t *batch = memory_zero (1, sizeof (*batch));
    batch->no = ++bench->batch;
    batch->wall_ms = 1700000000000 + (int64_t) batch->no;
    batch->records = memory_zero (2 * bench->per_batch, sizeof (record_t *));
    uint64_t first_seq = bench->seq + 1;
    int64_t open = bench->number - bench->first_open + 1;
    bytes_clear (&bench->list);
    for (int64_t i = 0; i < open; i++)
        complete (bench, batch);
    for (size_t i = 0; i < lives; i++)
        submit_and_claim (bench, batch);
    batch->blocks = memory_zero (1, sizeof (event_block_t));
    batch->blocks_count = 1;
    batch->blocks[0] = (event_block_t){memory_text ("default"),
                                       first_seq,
                                       first_seq,
                                       (uint32_t) (bench->seq - first_seq + 1),
                                       false,
                                       buf_new (bench->list.data, bench->list.length)};
    batch->bytes += bench->list.length;
    batch->inputs = batch->records_count;
    return batch;
}

static void fail (const char *what, const store_error_t *error)
{
    fprintf (stderr, "store-bench: %s: %s\n", what, error->text);
    exit (1);
}

static void commit (bench_t *bench, batch_t *batch)
{
    store_error_t error = {STORE_OK, ""};
    double start = seconds (CLOCK_THREAD_CPUTIME_ID);
    if (store_commit (bench->store, &batch, 1, &error) != STORE_OK)
        fail ("commit", &error);
    bench->commit_us += (seconds (CLOCK_THREAD_CPUTIME_ID) - start) * 1e6;
}

static void wait_written (bench_t *bench, uint64_t batch)
{
    while (store_written (bench->store) < batch) {
        const struct timespec pause = {0, 200000};
        nanosleep (&pause, NULL);
    }
}

static void remove_files (const char *directory)
{
    DIR *list = opendir (directory);
    if (list == NULL)
        return;
    for (struct dirent *entry = readdir (list); entry != NULL; entry = readdir (list)) {
        char path[4096];
        snprintf (path, sizeof (path), "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink (path);
    }
    closedir (list);
}

static void open_store (bench_t *bench, const char *directory, bool fresh, boot_t *boot)
{
    static unsigned schemas;
    char schema[48];
    store_error_t error = {STORE_OK, ""};
    store_options_t options = STORE_OPTIONS_INIT;
    database_options_t database = {.uri = getenv ("DATABASE"), .schema = schema};
    schemas += fresh;
    snprintf (schema, sizeof (schema), "bench_%d_%u", (int) getpid (), schemas);
    options.directory = directory;
    options.database = &database;
    const char *name = database.uri == NULL ? "sqlite" : "postgresql";
    if (store_open (&bench->store, name, &options, boot, &error) != STORE_OK ||
        store_own (bench->store, -1, boot, &error) != STORE_OK)
        fail ("open", &error);
    bench->batch = 0;
}

static void commit_lives (bench_t *bench, size_t lives)
{
    const uint64_t ahead_max = DIRTY_TASKS_MAX / bench->per_batch; /* each task is in two batches */
    for (size_t done = 0; done < lives; done += bench->per_batch) {
        commit (bench, make_batch (bench, bench->per_batch));
        if (bench->batch > ahead_max)
            wait_written (bench, bench->batch - ahead_max);
    }
    commit (bench, make_batch (bench, 0));
}

static void run (const char *directory, size_t lives, size_t per_batch)
{
    bench_t bench = {.first_open = 1, .per_batch = per_batch};
    store_error_t error = {STORE_OK, ""};
    boot_t boot;
    store_stats_t stats;
    bench.last_seqs = memory_zero (per_batch, sizeof (uint64_t));
    remove_files (directory);
    double opening = seconds (CLOCK_MONOTONIC);
    open_store (&bench, directory, true, &boot);
    double start = seconds (CLOCK_MONOTONIC);
    double cpu = process_cpu ();
    double own_cpu = seconds (CLOCK_THREAD_CPUTIME_ID);
    commit_lives (&bench, lives);
    double committed = seconds (CLOCK_MONOTONIC) - start;
    wait_written (&bench, bench.batch);
    double wall = seconds (CLOCK_MONOTONIC) - start;
    double own = seconds (CLOCK_THREAD_CPUTIME_ID) - own_cpu;
    double others = process_cpu () - cpu - own;
    double count = (double) bench.number;
    store_stats (bench.store, &stats);
    printf ("%6zu lives a batch: commit %5.2f us, write-back %5.2f us CPU a life; %7.0f lives/s,"
            " %6.0f commits/s (%4.0f us each); %4.0f bytes a task on disk; open %.0f ms\n",
            per_batch, bench.commit_us / count, others * 1e6 / count, count / wall,
            (double) bench.batch / committed, (double) stats.commit_us / (double) stats.commits,
            (double) stats.database_bytes / count, (start - opening) * 1e3);
    if (store_close (&bench.store, &error) != STORE_OK)
        fail ("close", &error);
    bytes_free (&bench.list);
    free (bench.last_seqs);
}

static void see_task (void *context, record_t *record)
{
    size_t *count = context;
    (*count)++;
    record_free (record);
}

static void see_ns (void *context, const char *name, uint64_t last_seq)
{
    (void) context;
    (void) name;
    (void) last_seq;
}

static void time_read (store_reader_t *reader, const char *what, read_t read)
{
    double start = seconds (CLOCK_MONOTONIC);
    read.filter.ns = "default";
    if (store_reader_run (reader, &read) != STORE_OK) {
        fprintf (stderr, "store-bench: %s: %s\n", what, read.error_text);
        exit (1);
    }
    printf ("%-42s %9.3f ms  %zu rows, count %llu\n", what,
            (seconds (CLOCK_MONOTONIC) - start) * 1e3, read.records_count,
            (unsigned long long) read.count);
    read_clear (&read);
}

static void time_reads (store_t *store, int64_t middle)
{
    static const tmq_status_t COMPLETED = TMQ_STATUS_COMPLETED;
    static const tmq_status_t FAILED = TMQ_STATUS_FAILED;
    static const char *const WORK = "work";
    store_error_t error;
    store_reader_t *reader;
    if (store_reader_open (&reader, store, &error) != STORE_OK)
        fail ("reader", &error);
    time_read (reader, "list, no filter, 50", (read_t){.kind = READ_LIST, .limit = 50});
    time_read (reader, "list, queue, from the middle, 1000",
               (read_t){.kind = READ_LIST,
                        .limit = 1000,
                        .before_number = middle,
                        .filter = {.queues = &WORK, .queues_count = 1}});
    time_read (reader, "list, status, 50",
               (read_t){.kind = READ_LIST,
                        .limit = 50,
                        .filter = {.statuses = &COMPLETED, .statuses_count = 1}});
    time_read (reader, "list, status that nobody has, 50",
               (read_t){.kind = READ_LIST,
                        .limit = 50,
                        .filter = {.statuses = &FAILED, .statuses_count = 1}});
    time_read (reader, "list, accepted within a time, 50",
               (read_t){.kind = READ_LIST,
                        .limit = 50,
                        .filter = {.created_since = 1700000000000 + middle / 100,
                                   .created_until = 1700000000000 + middle / 50}});
    time_read (reader, "count, no filter", (read_t){.kind = READ_COUNT});
    time_read (reader, "resolve, nothing", (read_t){.kind = READ_RESOLVE, .suffix = "ffffffffff"});
    store_reader_close (&reader);
}

static void scale (const char *directory, size_t tasks)
{
    enum { BATCH = 1000 };
    bench_t bench = {.first_open = 1, .per_batch = BATCH};
    store_error_t error = {STORE_OK, ""};
    boot_t boot;
    bench.last_seqs = memory_zero (BATCH, sizeof (uint64_t));
    remove_files (directory);
    open_store (&bench, directory, true, &boot);
    while ((size_t) bench.number < tasks) {
        /* Every other batch stays as it is: its tasks are live. */
        commit (&bench, make_batch (&bench, BATCH));
        wait_written (&bench, bench.batch - 1);
        commit (&bench, make_batch (&bench, BATCH));
        bench.first_open = bench.number + 1;
    }
    if (store_close (&bench.store, &error) != STORE_OK)
        fail ("close", &error);
    double start = seconds (CLOCK_MONOTONIC);
    open_store (&bench, directory, false, &boot);
    double opened = seconds (CLOCK_MONOTONIC);
    size_t live = 0;
    store_live_visitor_t visitor = {see_task, see_ns, &live, NULL};
    if (store_live (bench.store, &visitor, &error) != STORE_OK)
        fail ("live", &error);
    printf ("%llu tasks: opened in %.0f ms, %zu live ones streamed in %.0f ms\n",
            (unsigned long long) boot.tasks, (opened - start) * 1e3, live,
            (seconds (CLOCK_MONOTONIC) - opened) * 1e3);
    time_reads (bench.store, bench.number / 2);
    if (store_close (&bench.store, &error) != STORE_OK)
        fail ("close", &error);
    bytes_free (&bench.list);
    free (bench.last_seqs);
}

static void export(const char *directory, size_t lives)
{
    enum { BATCH = 100 };
    bench_t bench = {.first_open = 1, .per_batch = BATCH};
    store_options_t options = STORE_OPTIONS_INIT;
    store_error_t error = {STORE_OK, ""};
    boot_t boot;
    followers_t *followers = followers_new ();
    options.directory = directory;
    options.notify = followers_notify;
    options.notify_context = followers;
    bench.last_seqs = memory_zero (BATCH, sizeof (uint64_t));
    if (lives > 0)
        remove_files (directory);
    if (store_open (&bench.store, "sqlite", &options, &boot, &error) != STORE_OK)
        fail ("open", &error);
    followers_start (followers, bench.store, &boot, directory);
    if (lives > 0) {
        commit_lives (&bench, lives);
        wait_written (&bench, bench.batch);
    }
    followers_wait (followers);
    followers_print (followers, lives > 0 ? (size_t) bench.number : (size_t) boot.tasks, directory);
    followers_free (&followers);
    if (store_close (&bench.store, &error) != STORE_OK)
        fail ("close", &error);
    bytes_free (&bench.list);
    free (bench.last_seqs);
}

/* Reads beside commits. */

enum { LIVES_A_BATCH = 100, SAMPLES = 400, IDS = 100 };

static void *commit_beside (void *context)
{
    bench_t *bench = context;
    while (!atomic_load (&bench->stop)) {
        commit (bench, make_batch (bench, LIVES_A_BATCH));
        if (bench->batch > DIRTY_TASKS_MAX / LIVES_A_BATCH)
            wait_written (bench, bench->batch - DIRTY_TASKS_MAX / LIVES_A_BATCH);
    }
    return NULL;
}

static int compare_doubles (const void *a, const void *b)
{
    double left = *(const double *) a;
    double right = *(const double *) b;
    return (left > right) - (left < right);
}

static void tell_times (const char *what, double us[SAMPLES])
{
    qsort (us, SAMPLES, sizeof (double), compare_doubles);
    printf ("  %-42s p50 %8.0f us, p99 %8.0f us\n", what, us[SAMPLES / 2], us[SAMPLES * 99 / 100]);
}

/* count look-ups at once, of tasks spread over the first `tasks`. With none: of keys that nobody
 * has, as a submit of a new task asks. */
static void time_lookups (bench_t *bench, const char *what, lookup_t like, size_t count,
                          int64_t tasks, bool none)
{
    double us[SAMPLES];
    char keys_of[IDS][40];
    lookup_t keys[IDS];
    store_error_t error;
    for (int64_t i = 0; i < SAMPLES; i++) {
        for (size_t k = 0; k < count; k++) {
            int64_t number = 1 + (i * 7919 + (int64_t) k * 104729) % tasks;
            snprintf (keys_of[k], sizeof (keys_of[k]), "%s%s", none ? "x" : "", make_key (number));
            keys[k] = like;
            keys[k].ns = "default";
            keys[k].id = make_id (number);
            keys[k].owner = "local";
            keys[k].dedup_key = keys_of[k];
        }
        double start = seconds (CLOCK_MONOTONIC);
        if (store_load (bench->store, keys, count, &error) != STORE_OK)
            fail (what, &error);
        us[i] = (seconds (CLOCK_MONOTONIC) - start) * 1e6;
        for (size_t k = 0; k < count; k++) {
            if ((keys[k].record == NULL) != none)
                fail (what, &(store_error_t){STORE_ERROR_IO, "another answer than is right"});
            record_free (keys[k].record);
        }
    }
    tell_times (what, us);
}

static void time_pages (store_reader_t *reader, const char *what, read_t like, uint64_t events)
{
    double us[SAMPLES];
    for (uint64_t i = 0; i < SAMPLES; i++) {
        read_t read = like;
        read.filter.ns = "default";
        if (read.kind == READ_EVENTS)
            read.after_seq = i * 7919 % events;
        double start = seconds (CLOCK_MONOTONIC);
        if (store_reader_run (reader, &read) != STORE_OK) {
            fprintf (stderr, "store-bench: %s: %s\n", what, read.error_text);
            exit (1);
        }
        us[i] = (seconds (CLOCK_MONOTONIC) - start) * 1e6;
        read_clear (&read);
    }
    tell_times (what, us);
}

static void time_all (bench_t *bench, int64_t tasks)
{
    static const tmq_status_t COMPLETED = TMQ_STATUS_COMPLETED;
    static const char *const WORK = "work";
    const lookup_t id = {.kind = LOOKUP_ID, .bodies = true};
    const lookup_t key = {.kind = LOOKUP_DEDUP};
    store_error_t error;
    store_reader_t *reader;
    if (store_reader_open (&reader, bench->store, &error) != STORE_OK)
        fail ("reader", &error);
    uint64_t events = (uint64_t) tasks * 3;
    time_lookups (bench, "look-up of a task with its bodies", id, 1, tasks, false);
    time_lookups (bench, "look-up of 100 tasks with their bodies", id, IDS, tasks, false);
    time_lookups (bench, "look-up of a dedup key that is there", key, 1, tasks, false);
    time_lookups (bench, "look-up of 100 new dedup keys", key, IDS, tasks, true);
    time_pages (reader, "list, 50 newest", (read_t){.kind = READ_LIST, .limit = 50}, 0);
    time_pages (reader, "list, queue and status, 50",
                (read_t){.kind = READ_LIST,
                         .limit = 50,
                         .filter = {.queues = &WORK,
                                    .queues_count = 1,
                                    .statuses = &COMPLETED,
                                    .statuses_count = 1}},
                0);
    time_pages (reader, "replay, 64 KiB of events",
                (read_t){.kind = READ_EVENTS, .limit = 64 * 1024}, events);
    store_reader_close (&reader);
}

static void reads (const char *directory, size_t tasks)
{
    bench_t bench = {.first_open = 1, .per_batch = LIVES_A_BATCH, .keys = true};
    store_error_t error = {STORE_OK, ""};
    boot_t boot;
    pthread_t thread;
    bench.last_seqs = memory_zero (LIVES_A_BATCH, sizeof (uint64_t));
    remove_files (directory);
    open_store (&bench, directory, true, &boot);
    while ((size_t) bench.number < tasks) {
        commit (&bench, make_batch (&bench, LIVES_A_BATCH));
        if (bench.batch > DIRTY_TASKS_MAX / LIVES_A_BATCH)
            wait_written (&bench, bench.batch - DIRTY_TASKS_MAX / LIVES_A_BATCH);
    }
    commit (&bench, make_batch (&bench, 0));
    wait_written (&bench, bench.batch);
    printf ("%zu tasks, at rest:\n", tasks);
    time_all (&bench, (int64_t) tasks);
    int64_t before = bench.number;
    double start = seconds (CLOCK_MONOTONIC);
    if (pthread_create (&thread, NULL, commit_beside, &bench) != 0)
        return;
    printf ("while lives are committed, %d a batch:\n", LIVES_A_BATCH);
    time_all (&bench, (int64_t) tasks);
    atomic_store (&bench.stop, true);
    pthread_join (thread, NULL);
    printf ("  beside them %.0f lives/s\n",
            (double) (bench.number - before) / (seconds (CLOCK_MONOTONIC) - start));
    if (store_close (&bench.store, &error) != STORE_OK)
        fail ("close", &error);
    bytes_free (&bench.list);
    free (bench.last_seqs);
}

static void usage (FILE *to)
{
    fputs ("usage: store-bench DIRECTORY [LIVES [LIVES-PER-BATCH...]]\n"
           "       store-bench DIRECTORY scale TASKS\n"
           "       store-bench DIRECTORY export [LIVES]\n"
           "       store-bench DIRECTORY reads TASKS\n\n"
           "LIVES is 100000, and a batch has 1, 10, 100 and 1000 of them, where nothing is said.\n"
           "scale opens a store with so many tasks, reads looks into it, export tells what the\n"
           "threads behind it take; without LIVES it leaves the files to be compared.\n"
           "With DATABASE=URI in the environment all but export is done on PostgreSQL.\n",
           to);
}

static size_t count_of (const char *text)
{
    char *end;
    unsigned long long value = strtoull (text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value == 0 || value > COUNT_MAX) {
        fprintf (stderr, "store-bench: '%s' is not a number from 1 to %d\n", text, COUNT_MAX);
        exit (2);
    }
    return (size_t) value;
}

static void run_batches (const char *directory, int count, char **arguments)
{
    size_t lives = count > 0 ? count_of (arguments[0]) : 100000;
    for (int i = 1; i < count; i++)
        count_of (arguments[i]); /* before anything is measured */
    if (count <= 1) {
        run (directory, lives < 20 ? 1 : lives / 20, 1);
        run (directory, lives < 2 ? 1 : lives / 2, 10);
        run (directory, lives, 100);
        run (directory, lives, 1000);
    }
    for (int i = 1; i < count; i++)
        run (directory, lives, count_of (arguments[i]));
}

int main (int argc, char **argv)
{
    if (argc == 2 && strcmp (argv[1], "--help") == 0) {
        usage (stdout);
        return 0;
    }
    const char *what = argc > 2 ? argv[2] : "";
    bool large = strcmp (what, "scale") == 0 || strcmp (what, "reads") == 0;
    bool exports = strcmp (what, "export") == 0;
    if (argc < 2 || argv[1][0] == '-' || (large && argc != 4) || (exports && argc > 4)) {
        usage (stderr);
        return 2;
    }
    size_t tasks = (large || exports) && argc == 4 ? count_of (argv[3]) : 0;
    if (!large && !exports && argc > 2)
        count_of (what);
    mkdir (argv[1], 0700);
    if (exports) {
        export(argv[1], tasks);
        return 0;
    }
    if (large)
        (what[0] == 's' ? scale : reads) (argv[1], tasks);
    else
        run_batches (argv[1], argc - 2, argv + 2);
    remove_files (argv[1]);
    return rmdir (argv[1]) == 0 || !large ? 0 : 1;
}
