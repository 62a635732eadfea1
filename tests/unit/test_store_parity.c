/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One suite for every backend: what store.h promises, whichever URI was opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/data/extra.h"
#include "ids.h"
#include "store_support.h"
#include "timestamp.h"

static record_t full_record (int64_t number)
{
    static const label_t LABELS[] = {{"colour", "blue"}, {"size", "µ"}};
    record_t record = test_record (number);
    record.session = "thread-1";
    record.method = "tools/call";
    record.dedup_key = "key-1";
    record.meta = "{\"a\":1}";
    record.labels = LABELS;
    record.labels_count = 2;
    record.status_message = "half way";
    record.not_before = 77;
    record.returns = 2;
    record.started_at = 2000;
    record.attempt = 3;
    record.failures = 2;
    record.leased = true;
    record.lease_started = true;
    memset (record.secret, 0xab, sizeof (record.secret));
    memset (record.worker_id, 0xcd, sizeof (record.worker_id));
    memset (record.request_id, 0xef, sizeof (record.request_id));
    record.status = TMQ_STATUS_WORKING;
    record.worker = "w-1";
    record.holder = "render-7";
    record.progress_done = 5;
    record.progress_total = 9;
    record.progress_unit = "files";
    record.progress_message = "five";
    return record;
}

static void a_record_comes_back_as_it_was (void **state)
{
    fixture_t *f = *state;
    record_t record = full_record (1);
    record.payload = buf_new ("do it", 5);
    record.payload_bytes = 5;
    record.extra = buf_new ("what few have", 13);
    batch_t *batch = fixture_batch (f);
    fixture_change (f, batch, &record, TMQ_EVENT_CLAIMED);
    fixture_commit (f, batch);
    fixture_settle (f);
    record_t *found = fixture_load (f, "default", &record.id);
    assert_same_record (found, &record, true);
    record_free (found);
    assert_null (fixture_load (f, "other", &record.id));
    tmq_id_t unknown = test_id (2);
    assert_null (fixture_load (f, "default", &unknown));
    buf_drop (record.payload);
    buf_drop (record.extra);
}

static void bodies_are_given_once_and_kept (void **state)
{
    fixture_t *f = *state;
    static const size_t SIZES[] = {1, 1023, 1024, 1025, 70000};
    for (size_t i = 0; i < sizeof (SIZES) / sizeof (SIZES[0]); i++) {
        record_t record = test_record ((int64_t) i + 1);
        record.payload = buf_new_uninitialised (SIZES[i]);
        memset (buf_mutable (record.payload), 'p', SIZES[i]);
        record.payload_bytes = (uint32_t) SIZES[i];
        buf_t *payload = record.payload;
        batch_t *batch = fixture_batch (f);
        fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
        fixture_commit (f, batch);
        if (i % 2 == 0)
            fixture_settle (f); /* else both images meet in one write-back */
        record.payload = NULL;
        record.status = TMQ_STATUS_COMPLETED;
        record.finished_at = 3000;
        record.outcome = TMQ_OUTCOME_RESULT;
        record.result = buf_new_uninitialised (SIZES[i]);
        memset (buf_mutable (record.result), 'r', SIZES[i]);
        record.result_bytes = (uint32_t) SIZES[i];
        batch = fixture_batch (f);
        fixture_change (f, batch, &record, TMQ_EVENT_COMPLETED);
        fixture_commit (f, batch);
        fixture_settle (f);
        record_t *found = fixture_load (f, "default", &record.id);
        record.payload = payload;
        assert_same_record (found, &record, true);
        record_free (found);
        buf_drop (payload);
        buf_drop (record.result);
    }
}

/* A retry clears the outcome, and the next outcome replaces it. */
static void a_result_can_be_replaced (void **state)
{
    fixture_t *f = *state;
    static const char *const RESULTS[] = {"first", NULL, "second"};
    for (int settle = 0; settle < 2; settle++) {
        record_t record = test_record (settle + 1);
        for (size_t i = 0; i < 3; i++) {
            record.result = RESULTS[i] == NULL ? NULL : buf_new (RESULTS[i], strlen (RESULTS[i]));
            record.result_bytes = (uint32_t) buf_length (record.result);
            batch_t *batch = fixture_batch (f);
            fixture_change (f, batch, &record, TMQ_EVENT_CHANGED);
            fixture_commit (f, batch);
            buf_drop (record.result);
            if (settle == 1)
                fixture_settle (f);
        }
        fixture_settle (f);
        record_t *found = fixture_load (f, "default", &record.id);
        assert_body (found->result, "second", 6);
        record_free (found);
    }
}

static void a_dedup_key_belongs_to_owner_and_namespace (void **state)
{
    fixture_t *f = *state;
    record_t record = test_record (1);
    record.dedup_key = "once";
    batch_t *batch = fixture_batch (f);
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (f, batch);
    fixture_settle (f);
    lookup_t keys[] = {
        {.kind = LOOKUP_DEDUP, .ns = "default", .owner = "uid:7", .dedup_key = "once"},
        {.kind = LOOKUP_DEDUP, .ns = "default", .owner = "uid:8", .dedup_key = "once"},
        {.kind = LOOKUP_DEDUP, .ns = "other", .owner = "uid:7", .dedup_key = "once"},
        {.kind = LOOKUP_DEDUP, .ns = "default", .owner = "uid:7", .dedup_key = "twice"},
    };
    store_error_t error;
    assert_int_equal (store_load (f->store, keys, 4, &error), STORE_OK);
    assert_same_record (keys[0].record, &record, false);
    for (size_t i = 1; i < 4; i++)
        assert_null (keys[i].record);
    record_free (keys[0].record);
}

static void attempts_are_found_by_their_number (void **state)
{
    fixture_t *f = *state;
    record_t record = test_record (1);
    attempt_t attempt = {.number = 1,
                         .id = record.id,
                         .attempt = 2,
                         .worker = "w-9",
                         .started_at = 10,
                         .ended_at = 20,
                         .how = TMQ_EVENT_ATTEMPT_FAILED,
                         .error_code = -5,
                         .error_message = "no luck"};
    memset (attempt.secret, 0x11, sizeof (attempt.secret));
    memset (attempt.request_id, 0x22, sizeof (attempt.request_id));
    batch_t *batch = fixture_batch (f);
    fixture_change (f, batch, &record, TMQ_EVENT_ATTEMPT_FAILED);
    batch_add_attempt (batch, &attempt);
    fixture_commit (f, batch);
    fixture_settle (f);
    lookup_t keys[] = {
        {.kind = LOOKUP_ATTEMPT, .ns = "default", .id = record.id, .attempt = 2},
        {.kind = LOOKUP_ATTEMPT, .ns = "default", .id = record.id, .attempt = 1},
        {.kind = LOOKUP_ATTEMPT, .ns = "other", .id = record.id, .attempt = 2},
    };
    store_error_t error;
    assert_int_equal (store_load (f->store, keys, 3, &error), STORE_OK);
    attempt_t *found = keys[0].attempt_row;
    assert_non_null (found);
    assert_null (keys[1].attempt_row);
    assert_null (keys[2].attempt_row);
    assert_int_equal (found->number, 1);
    assert_memory_equal (found->id.bytes, record.id.bytes, 16);
    assert_int_equal (found->attempt, 2);
    assert_string_equal (found->worker, "w-9");
    assert_int_equal (found->started_at, 10);
    assert_int_equal (found->ended_at, 20);
    assert_int_equal (found->how, TMQ_EVENT_ATTEMPT_FAILED);
    assert_int_equal (found->error_code, -5);
    assert_string_equal (found->error_message, "no luck");
    assert_memory_equal (found->secret, attempt.secret, 16);
    assert_memory_equal (found->request_id, attempt.request_id, 16);
    free (found);
}

/* Behind an attempt, a page at a time; those of other tasks are not among them. */
static void attempts_are_read_in_pages (void **state)
{
    enum { ATTEMPTS = 8, PAGE = 3 };
    fixture_t *f = *state;
    for (int64_t number = 1; number <= 2; number++) {
        record_t record = test_record (number);
        batch_t *batch = fixture_batch (f);
        fixture_change (f, batch, &record, TMQ_EVENT_ATTEMPT_FAILED);
        for (uint32_t i = 1; i <= ATTEMPTS; i++) {
            attempt_t attempt = {.number = number,
                                 .id = record.id,
                                 .attempt = i * 2,
                                 .how = TMQ_EVENT_LEASE_LOST,
                                 .ended_at = number * 100 + i};
            batch_add_attempt (batch, &attempt);
        }
        fixture_commit (f, batch);
    }
    fixture_settle (f);
    uint32_t seen = 0;
    for (bool more = true; more;) {
        read_t read = {
            .kind = READ_ATTEMPTS, .task_number = 2, .after_attempt = seen * 2, .limit = PAGE};
        fixture_read (f, &read);
        more = read.more;
        assert_int_equal (read.attempts_count, seen + PAGE <= ATTEMPTS ? PAGE : ATTEMPTS - seen);
        for (size_t i = 0; i < read.attempts_count; i++) {
            seen++;
            assert_int_equal (read.attempts[i].attempt, seen * 2);
            assert_int_equal (read.attempts[i].ended_at, 200 + seen);
            assert_int_equal (read.attempts[i].how, TMQ_EVENT_LEASE_LOST);
        }
        read_clear (&read);
    }
    assert_int_equal (seen, ATTEMPTS);
    read_t none = {.kind = READ_ATTEMPTS, .task_number = 3, .limit = PAGE};
    fixture_read (f, &none);
    assert_int_equal (none.attempts_count, 0);
    assert_false (none.more);
    read_clear (&none);
}

/* Removal. */

static void a_removed_task_leaves_a_tombstone (void **state)
{
    fixture_t *f = *state;
    store_stats_t stats;
    for (int settle = 0; settle < 2; settle++) {
        record_t record = test_record (settle + 1);
        record.dedup_key = "freed";
        attempt_t attempt = {.number = record.number, .id = record.id, .attempt = 1};
        batch_t *batch = fixture_batch (f);
        fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
        batch_add_attempt (batch, &attempt);
        fixture_commit (f, batch);
        if (settle == 1)
            fixture_settle (f);
        batch = fixture_batch (f);
        batch_add_removal (batch, &record, TMQ_PURGED, 4321);
        fixture_commit (f, batch);
        fixture_settle (f);
        lookup_t key = {.kind = LOOKUP_ID, .ns = "default", .id = record.id};
        store_error_t error;
        assert_int_equal (store_load (f->store, &key, 1, &error), STORE_OK);
        assert_null (key.record);
        assert_int_equal (key.tombstone, TMQ_PURGED);
        assert_int_equal (key.tombstone_at, 4321);
        assert_string_equal (key.tombstone_owner, record.owner);
        assert_string_equal (key.tombstone_queue, record.queue);
    }
    store_stats (f->store, &stats);
    assert_int_equal (stats.tasks, 0);
    assert_int_equal (stats.tombstones, 2);
}

/* Numbers of the next tasks that are due. */
static size_t due_numbers (fixture_t *f, store_sweep_t *sweep, int64_t *numbers)
{
    store_error_t error;
    assert_int_equal (store_due (f->store, sweep, &error), STORE_OK);
    size_t count = sweep->found.count;
    for (size_t i = 0; i < count; i++)
        numbers[i] = sweep->found.records[i]->number;
    due_clear (&sweep->found);
    return count;
}

static size_t due_at (fixture_t *f, int64_t wall_ms, size_t limit, int64_t *numbers)
{
    store_sweep_t sweep = {.wall_ms = wall_ms, .limit = limit};
    return due_numbers (f, &sweep, numbers);
}

static void only_ended_tasks_past_their_time_are_due (void **state)
{
    fixture_t *f = *state;
    batch_t *batch = fixture_batch (f);
    for (int64_t number = 1; number <= 6; number++) {
        record_t record = test_record (number);
        record.expires_at = 100 * number;
        record.status = TMQ_STATUS_COMPLETED;
        if (number == 2)
            record.status = TMQ_STATUS_QUEUED;
        if (number == 3) {
            record.status = TMQ_STATUS_CANCELLED;
            record.leased = true;
        }
        if (number == 4)
            record.expires_at = 0;
        fixture_change (f, batch, &record, TMQ_EVENT_CHANGED);
    }
    fixture_commit (f, batch);
    fixture_settle (f);
    int64_t numbers[8];
    assert_int_equal (due_at (f, 99, 8, numbers), 0);
    assert_int_equal (due_at (f, 599, 8, numbers), 2);
    assert_int_equal (numbers[0], 1);
    assert_int_equal (numbers[1], 5);
    assert_int_equal (due_at (f, 600, 8, numbers), 3);
    assert_int_equal (due_at (f, 600, 1, numbers), 1);

    /* Slice by slice, each behind the one before. */
    store_sweep_t sweep = {.wall_ms = 600, .limit = 2};
    assert_int_equal (due_numbers (f, &sweep, numbers), 2);
    assert_true (sweep.more);
    assert_int_equal (numbers[1], 5);
    assert_int_equal (due_numbers (f, &sweep, numbers), 1);
    assert_int_equal (numbers[0], 6);
    assert_int_equal (due_numbers (f, &sweep, numbers), 0);
    assert_false (sweep.more);
}

/* The live tasks of a start. */

typedef struct seen {
    int64_t numbers[64];
    size_t count;
    uint64_t default_seq;
    uint64_t other_seq;
} seen_t;

static void see_task (void *context, record_t *record)
{
    seen_t *seen = context;
    assert_null (record->payload);
    seen->numbers[seen->count++] = record->number;
    record_free (record);
}

static void see_ns (void *context, const char *name, uint64_t last_seq)
{
    seen_t *seen = context;
    if (strcmp (name, "default") == 0)
        seen->default_seq = last_seq;
    else if (strcmp (name, "other") == 0)
        seen->other_seq = last_seq;
    else
        fail_msg ("namespace %s", name);
}

static void live_tasks_come_in_order (void **state)
{
    fixture_t *f = *state;
    static const tmq_status_t STATUSES[] = {
        TMQ_STATUS_QUEUED, TMQ_STATUS_COMPLETED, TMQ_STATUS_WORKING,   TMQ_STATUS_INPUT_REQUIRED,
        TMQ_STATUS_FAILED, TMQ_STATUS_CANCELLED, TMQ_STATUS_CANCELLED, TMQ_STATUS_QUEUED};
    batch_t *batch = fixture_batch (f);
    for (int64_t i = 0; i < 8; i++) {
        record_t record = test_record (8 - i); /* not in order of number */
        record.status = STATUSES[7 - i];
        record.queue = i % 2 == 0 ? "mail" : "print";
        record.leased = record.number == 6;
        fixture_change (f, batch, &record, TMQ_EVENT_CHANGED);
    }
    record_t other = test_record (30);
    other.ns = "other";
    batch_add_event (batch, "other", 1, f->pos + 1, 1, &other.id, TMQ_EVENT_SUBMITTED, 0);
    f->pos++;
    batch_add_record (batch, &other);
    fixture_commit (f, batch);
    seen_t seen = {{0}, 0, 0, 0};
    store_live_visitor_t visitor = {see_task, see_ns, &seen, NULL};
    store_error_t error;
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    static const int64_t WANTED[] = {1, 3, 4, 6, 8, 30};
    assert_int_equal (seen.count, 6);
    assert_memory_equal (seen.numbers, WANTED, sizeof (WANTED));
    assert_int_equal (seen.default_seq, 8);
    assert_int_equal (seen.other_seq, 1);
}

/* Lists. */

enum { LISTED_LABELS = 2 };

/* By number % 2 and number % 7. */
static const label_t *labels_of (int64_t number)
{
    static const char *const DIGITS[] = {"0", "1", "2", "3", "4", "5", "6"};
    static label_t labels[LISTED_LABELS];
    labels[0] = (label_t){"half", DIGITS[number % 2]};
    labels[1] = (label_t){"day", DIGITS[number % 7]};
    return labels;
}

static tmq_id_t parent_of (int64_t number)
{
    return (tmq_id_t){{1, (uint8_t) (number % 4)}};
}

/* Every third task is a part, of the task number % 4; freed by buf_drop. */
static buf_t *part_of (int64_t number)
{
    tmq_id_t parent = parent_of (number);
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    extra.start_by = UINT64_MAX; /* before the parent, and behind it: */
    extra.depth = 300;
    extra.fair_key = "k";
    if (number % 3 == 0)
        extra.parent = (ProtobufCBinaryData){sizeof (parent.bytes), parent.bytes};
    return extra_pack (&extra);
}

/* 60 tasks: queue by number % 3, status by number % 4, session by number % 5, every tenth in
 * another namespace. */
static void fill_lists (fixture_t *f)
{
    static const char *const QUEUES[] = {"mail", "print", "scan"};
    static const char *const SESSIONS[] = {"", "s1", "s2", "s3", "s4"};
    static const tmq_status_t STATUSES[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING,
                                            TMQ_STATUS_COMPLETED, TMQ_STATUS_FAILED};
    for (int64_t number = 1; number <= 60; number++) {
        batch_t *batch = fixture_batch (f);
        record_t record = test_record (number);
        record.queue = QUEUES[number % 3];
        record.session = SESSIONS[number % 5];
        record.status = STATUSES[number % 4];
        record.ns = number % 10 == 0 ? "other" : "default";
        record.labels = labels_of (number);
        record.labels_count = LISTED_LABELS;
        record.extra = number % 2 == 0 ? NULL : part_of (number);
        batch_add_record (batch, &record);
        fixture_commit (f, batch);
        buf_drop (record.extra);
    }
    fixture_settle (f);
}

static bool wanted (const filter_t *filter, int64_t number)
{
    static const char *const QUEUES[] = {"mail", "print", "scan"};
    static const char *const SESSIONS[] = {"", "s1", "s2", "s3", "s4"};
    static const tmq_status_t STATUSES[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING,
                                            TMQ_STATUS_COMPLETED, TMQ_STATUS_FAILED};
    bool queue = filter->queues_count == 0;
    for (size_t i = 0; i < filter->queues_count; i++)
        queue |= strcmp (filter->queues[i], QUEUES[number % 3]) == 0;
    bool session = filter->sessions_count == 0;
    for (size_t i = 0; i < filter->sessions_count; i++)
        session |= strcmp (filter->sessions[i], SESSIONS[number % 5]) == 0;
    bool status = filter->statuses_count == 0;
    for (size_t i = 0; i < filter->statuses_count; i++)
        status |= filter->statuses[i] == STATUSES[number % 4];
    bool labels = true;
    record_t labelled = {.labels = labels_of (number), .labels_count = LISTED_LABELS};
    for (size_t i = 0; i < filter->labels_count; i++)
        labels &= record_has_label (&labelled, &filter->labels[i]);
    bool part = filter->parents_count == 0;
    tmq_id_t parent = parent_of (number);
    for (size_t i = 0; i < filter->parents_count; i++)
        part |= number % 6 == 3 && memcmp (&filter->parents[i], &parent, sizeof (parent)) == 0;
    return queue && session && status && labels && part &&
           (number % 10 == 0) == (strcmp (filter->ns, "other") == 0) &&
           1000 + number >= filter->created_since &&
           (filter->created_until == 0 || 1000 + number < filter->created_until);
}

/* Counts in as many turns as it takes. */
static uint64_t count_in_turns (fixture_t *f, const filter_t *filter, size_t vain_max)
{
    read_t read = {.kind = READ_COUNT, .filter = *filter, .vain_max = vain_max};
    do {
        int64_t before = read.before_number;
        fixture_read (f, &read);
        assert_true (!read.more ||
                     (read.next_number > 0 && (before == 0 || read.next_number < before)));
        read.before_number = read.next_number;
    } while (read.more);
    return read.count;
}

/* Reads all pages and the count, and compares with a plain walk over all numbers. */
static void check_filter (fixture_t *f, const filter_t *filter, size_t limit, size_t vain_max)
{
    int64_t before = 0;
    int64_t expected = 61;
    size_t total = 0;
    bool more = true;
    while (more) {
        read_t read = {.kind = READ_LIST,
                       .filter = *filter,
                       .limit = limit,
                       .before_number = before,
                       .vain_max = vain_max};
        fixture_read (f, &read);
        for (size_t i = 0; i < read.records_count; i++) {
            do
                expected--;
            while (expected > 0 && !wanted (filter, expected));
            assert_int_equal (read.records[i]->number, expected);
        }
        total += read.records_count;
        more = read.more;
        assert_true (!more || read.records_count == limit || read.next_number > 0);
        if (more)
            before = read.next_number > 0 ? read.next_number
                                          : read.records[read.records_count - 1]->number;
        read_clear (&read);
    }
    do
        expected--;
    while (expected > 0 && !wanted (filter, expected));
    assert_true (expected <= 0); /* nothing that is wanted was left out */
    assert_int_equal (count_in_turns (f, filter, vain_max), total);
}

/* Pages that end by their length are shorter, never empty, and leave nothing out. */
static void check_filter_by_bytes (fixture_t *f)
{
    read_t count = {.kind = READ_COUNT, .filter = {.ns = "default"}};
    fixture_read (f, &count);
    int64_t before = 0;
    size_t total = 0;
    bool more = true;
    while (more) {
        read_t read = {.kind = READ_LIST,
                       .filter = {.ns = "default"},
                       .limit = 1000,
                       .bytes_max = 400,
                       .before_number = before};
        fixture_read (f, &read);
        for (size_t i = 0; i < read.records_count; i++) {
            assert_true (before == 0 || read.records[i]->number < before);
            before = read.records[i]->number;
        }
        total += read.records_count;
        more = read.more && read.records_count > 0;
        read_clear (&read);
    }
    assert_int_equal (total, count.count);
}

static void lists_and_counts_follow_their_filter (void **state)
{
    fixture_t *f = *state;
    static const char *const QUEUES[] = {"scan", "mail", "nowhere"};
    static const char *const SESSIONS[] = {"s3", "s1", "none"};
    static const tmq_status_t STATUSES[] = {TMQ_STATUS_FAILED, TMQ_STATUS_QUEUED};
    fill_lists (f);
    static const label_t LABELS[] = {{"half", "1"}, {"day", "3"}, {"day", "none"}};
    const tmq_id_t parents[] = {parent_of (1), parent_of (3), {{7}}};
    for (unsigned mask = 0; mask < 512; mask++)
        for (size_t limit = 1; limit <= 100; limit = limit * 7) {
            filter_t filter = {.ns = mask & 1 ? "other" : "default"};
            filter.queues = QUEUES;
            filter.queues_count = mask & 2 ? 3 : 0;
            filter.sessions = SESSIONS;
            filter.sessions_count = mask & 4 ? 3 : 0;
            filter.statuses = STATUSES;
            filter.statuses_count = mask & 8 ? 2 : 0;
            filter.labels = LABELS;
            filter.labels_count = mask / 64 % 4;
            filter.parents = parents;
            filter.parents_count = mask & 256 ? mask % 3 + 1 : 0;
            filter.created_since = mask & 16 ? 1010 : 0;
            filter.created_until = mask & 32 ? 1047 : 0;
            check_filter (f, &filter, limit, mask % 3 * 4);
        }
    check_filter_by_bytes (f);
    filter_t nowhere = {.ns = "nowhere"};
    read_t read = {.kind = READ_LIST, .filter = nowhere, .limit = 5};
    fixture_read (f, &read);
    assert_int_equal (read.records_count, 0);
    assert_false (read.more);
}

static void listed_records_are_whole_but_without_bodies (void **state)
{
    fixture_t *f = *state;
    record_t record = full_record (1);
    record.payload = buf_new ("body", 4);
    record.payload_bytes = 4;
    batch_t *batch = fixture_batch (f);
    fixture_change (f, batch, &record, TMQ_EVENT_CLAIMED);
    fixture_commit (f, batch);
    fixture_settle (f);
    read_t read = {.kind = READ_LIST, .filter = {.ns = "default"}, .limit = 5};
    fixture_read (f, &read);
    assert_int_equal (read.records_count, 1);
    assert_same_record (read.records[0], &record, false);
    assert_null (read.records[0]->payload);
    read_clear (&read);
    buf_drop (record.payload);
}

static void short_ids_are_resolved (void **state)
{
    fixture_t *f = *state;
    fill_lists (f);
    tmq_id_t id = test_id (17);
    char text[33];
    hex_encode (text, id.bytes, 16);
    read_t read = {.kind = READ_RESOLVE, .filter = {.ns = "default"}};
    snprintf (read.suffix, sizeof (read.suffix), "%s", text + 26);
    fixture_read (f, &read);
    assert_int_equal (read.count, 1);
    assert_memory_equal (read.id.bytes, id.bytes, 16);
    read_t other = {.kind = READ_RESOLVE, .filter = {.ns = "other"}};
    memcpy (other.suffix, read.suffix, sizeof (read.suffix));
    fixture_read (f, &other);
    assert_int_equal (other.count, 0);
    read_t all = {.kind = READ_RESOLVE, .filter = {.ns = "default"}, .suffix = ""};
    fixture_read (f, &all);
    assert_int_equal (all.count, 2);
}

static void tasks_are_picked_by_their_numbers (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 20);
    record_t other = test_record (21);
    other.queue = "other";
    batch_t *batch = fixture_batch (f);
    fixture_change (f, batch, &other, TMQ_EVENT_SUBMITTED);
    fixture_commit (f, batch);
    fixture_settle (f);
    static const int64_t numbers[] = {21, 7, 99, 20, 1};
    const char *queue = "mail";
    read_t read = {.kind = READ_PICK,
                   .filter = {.ns = "default", .queues = &queue, .queues_count = 1},
                   .numbers = numbers,
                   .numbers_count = 5};
    fixture_read (f, &read);
    assert_int_equal (read.records_count, 3);
    assert_int_equal (read.records[0]->number, 7);
    assert_int_equal (read.records[1]->number, 20);
    assert_int_equal (read.records[2]->number, 1);
    read_clear (&read);
    read.filter.ns = "elsewhere";
    fixture_read (f, &read);
    assert_int_equal (read.records_count, 0);
    read_clear (&read);
}

static void whole_tasks_are_read_in_their_order (void **state)
{
    fixture_t *f = *state;
    enum { TASKS = 9 };
    for (int64_t i = 1; i <= TASKS; i++) {
        record_t record = test_record (i);
        record.ns = i % 2 == 0 ? "default" : "other";
        record.payload = buf_new ("body", 4);
        record.payload_bytes = 4;
        batch_t *batch = fixture_batch (f);
        batch_add_record (batch, &record);
        fixture_commit (f, batch);
        buf_drop (record.payload);
    }
    fixture_settle (f);
    int64_t after = 0;
    bool more = true;
    while (more) {
        read_t read = {.kind = READ_WHOLE, .after_number = after, .limit = 4};
        fixture_read (f, &read);
        for (size_t i = 0; i < read.records_count; i++) {
            assert_int_equal (read.records[i]->number, ++after);
            assert_int_equal (buf_length (read.records[i]->payload), 4);
            assert_string_equal (read.records[i]->ns, after % 2 == 0 ? "default" : "other");
        }
        more = read.more;
        read_clear (&read);
    }
    assert_int_equal (after, TASKS);
}

/* Ended, without a lease, and no time to live ends them. */
static void lasting_tasks_are_read_newest_first (void **state)
{
    fixture_t *f = *state;
    enum { TASKS = 40 };
    batch_t *batch = fixture_batch (f);
    for (int64_t i = 1; i <= TASKS; i++) {
        record_t record = test_record (i);
        record.ns = i % 4 == 3 ? "other" : "default";
        record.status = i % 5 == 0 ? TMQ_STATUS_QUEUED : TMQ_STATUS_COMPLETED;
        record.expires_at = i % 7 == 0 ? 5000000 : 0;
        record.finished_at = 1000 + i;
        record.leased = i % 11 == 0;
        if (record.leased)
            record.status = TMQ_STATUS_CANCELLED;
        batch_add_record (batch, &record);
    }
    fixture_commit (f, batch);
    fixture_settle (f);
    int64_t below = 0;
    int64_t expected = TASKS + 1;
    bool more = true;
    while (more) {
        read_t read = {
            .kind = READ_LASTING, .filter = {.ns = "default"}, .before_number = below, .limit = 5};
        fixture_read (f, &read);
        assert_true (read.records_count > 0);
        assert_true (read.written > 0);
        for (size_t i = 0; i < read.records_count; i++) {
            do
                expected--;
            while (expected % 4 == 3 || expected % 5 == 0 || expected % 7 == 0 ||
                   expected % 11 == 0);
            assert_int_equal (read.records[i]->number, expected);
            assert_int_equal (read.records[i]->finished_at, 1000 + expected);
            below = expected;
        }
        more = read.more;
        read_clear (&read);
    }
    assert_int_equal (expected, 1);
    read_t nowhere = {.kind = READ_LASTING, .filter = {.ns = "nowhere"}, .limit = 5};
    fixture_read (f, &nowhere);
    assert_int_equal (nowhere.records_count, 0);
    read_clear (&nowhere);
}

/* On a disk of this machine nobody else can own the data, and it is never out of reach. What
 * several can reach is owned for a while that goes on. */
static void who_opened_it_owns_it (void **state)
{
    fixture_t *f = *state;
    store_error_t error = {STORE_OK, ""};
    boot_t boot = f->boot;
    assert_int_equal (store_own (f->store, -1, &boot, &error), STORE_OK);
    assert_true (boot.generation != 0 && boot.generation == f->boot.generation);
    assert_true (boot.epoch != 0 && boot.epoch == f->boot.epoch);
    bool far_away = strcmp (f->uri, "postgresql") == 0;
    assert_int_equal (store_valid_until (f->store) == INT64_MAX, !far_away);
    assert_true (store_valid_until (f->store) > clock_ms (CLOCK_MONOTONIC));
    fixture_submit (f, 1, 3);
    assert_int_equal (store_away_ms (f->store), 0);
    assert_int_equal (store_inline_inputs (f->store), far_away ? 0 : 16);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL (a_record_comes_back_as_it_was),
        ON_ALL (bodies_are_given_once_and_kept),
        ON_ALL (a_result_can_be_replaced),
        ON_ALL (a_dedup_key_belongs_to_owner_and_namespace),
        ON_ALL (attempts_are_found_by_their_number),
        ON_ALL (attempts_are_read_in_pages),
        ON_ALL (a_removed_task_leaves_a_tombstone),
        ON_ALL (only_ended_tasks_past_their_time_are_due),
        ON_ALL (live_tasks_come_in_order),
        ON_ALL (lists_and_counts_follow_their_filter),
        ON_ALL (listed_records_are_whole_but_without_bodies),
        ON_ALL (short_ids_are_resolved),
        ON_ALL (tasks_are_picked_by_their_numbers),
        ON_ALL (whole_tasks_are_read_in_their_order),
        ON_ALL (lasting_tasks_are_read_newest_first),
        ON_ALL (who_opened_it_owns_it),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
