/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Every filter together with every other, in lists, counts and picks, over every store, against a
 * plain look at what the test knows of each task; also while tasks change between the pages, and
 * with an eye on what SQLite does for it. Several queues, statuses, sessions and parents are OR;
 * labels, agents and files AND. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "core/data/turn.h"
#include "sim/rng.h"
#include "store_support.h"
#include "turn_files.h"
#ifndef FIXTURE_POSTGRESQL
#include <sqlite3.h>

#include "store/sqlite/readers.h"
#endif

enum { TASKS = 260, ADDED_MAX = 90, NAMES = 4, CASES_MAX = 1200, TRIPLES = 250 };

static const char *const QUEUES[NAMES] = {"mail", "print", "scan", "rare"};
static const char *const SESSIONS[NAMES] = {"", "s1", "s2", "s3"};
static const label_t LABELS[NAMES] = {
    {"colour", "red"}, {"size", "big"}, {"colour", "blue"}, {"rare", "yes"}};
static const char *const AGENTS[NAMES] = {"planner", "coder", "tester", "rare"};
static const char *const OWNERS[NAMES] = {"uid:1", "gw/ann", "gw/ben", "gw/rare"};
static const char *const FILES[NAMES] = {"src/a.c", "src/b.c", "docs/é.md", "rare"};

/* What is known of a task. Sets have a bit for each name. */
typedef struct fact {
    bool there;
    unsigned queue, session, owner, labels, parent, agents, files, turns;
    tmq_status_t status;
} fact_t;

/* A condition, also of the oracle: zero means none. */
typedef struct condition {
    const char *says;
    unsigned kind; /* two of one kind are not put together */
    unsigned queues, sessions, owners, labels, parents, agents, files, statuses;
    int64_t since, until;
} condition_t;

#define STATUS(S) (1u << TMQ_STATUS_##S)

static const condition_t CONDITIONS[] = {
    {"queue", 1, .queues = 1},
    {"two queues", 1, .queues = 6},
    {"rare queue", 1, .queues = 8},
    {"status", 2, .statuses = STATUS (QUEUED)},
    {"two statuses", 2, .statuses = STATUS (COMPLETED) | STATUS (FAILED)},
    {"session", 3, .sessions = 2},
    {"two sessions", 3, .sessions = 4 | 8},
    {"label", 4, .labels = 1},
    {"two labels", 4, .labels = 1 | 2},
    {"rare label", 4, .labels = 8},
    {"parent", 5, .parents = 2},
    {"two parents", 5, .parents = 4 | 8},
    {"agent", 6, .agents = 1},
    {"two agents", 6, .agents = 1 | 2},
    {"rare agent", 6, .agents = 8},
    {"file", 7, .files = 4},
    {"two files", 7, .files = 1 | 2},
    {"since", 8, .since = 1000 + TASKS / 3},
    {"until", 9, .until = 1000 + TASKS / 2},
    {"owner", 10, .owners = 2},
    {"two owners", 10, .owners = 2 | 4},
    {"rare owner", 10, .owners = 8},
    {"owner without an index", 10, .owners = 1},
    {"owners with and without", 10, .owners = 1 | 4},
};
enum { CONDITIONS_COUNT = sizeof (CONDITIONS) / sizeof (CONDITIONS[0]) };

/* Some conditions together, as a filter, and a walk over its pages. */
typedef struct walk {
    char says[96];
    condition_t all;
    const char *queues[NAMES], *sessions[NAMES], *owners[NAMES];
    tmq_status_t statuses[8];
    label_t labels[3 * NAMES];
    tmq_id_t parents[NAMES];
    filter_t filter;
    size_t limit, vain_max;
    int64_t before;
    bool done;
    uint8_t always[TASKS + ADDED_MAX + 1], ever[TASKS + ADDED_MAX + 1];
} walk_t;

typedef struct stage {
    fixture_t *f;
    rng_t rng;
    int64_t last;
    fact_t facts[TASKS + ADDED_MAX + 1]; /* by number */
    walk_t *walks;
    size_t walks_count;
} stage_t;

static int setup (void **state)
{
    stage_t *self = memory_zero (1, sizeof (*self));
    if (fixture_setup (state) != 0)
        return -1;
    self->f = *state;
    self->rng.state = 12;
    self->walks = memory_zero (CASES_MAX, sizeof (walk_t));
    *state = self;
    return 0;
}

static int teardown (void **state)
{
    stage_t *self = *state;
    void *fixture = self->f;
    free (self->walks);
    free (self);
    return fixture_teardown (&fixture);
}

/* Tasks. */

/* Bits of a set; the last one is rare. */
static unsigned some (rng_t *rng)
{
    unsigned set = (unsigned) rng_below (rng, 8);
    return rng_chance (rng, 40) ? set | 8 : set;
}

static unsigned one (rng_t *rng)
{
    return rng_chance (rng, 40) ? 3 : rng_below (rng, 3);
}

static buf_t *extra_of (const fact_t *fact)
{
    tmq_id_t parent = test_id (fact->parent);
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    extra.parent = (ProtobufCBinaryData){sizeof (parent), parent.bytes};
    return fact->parent == 0 ? NULL : extra_pack (&extra);
}

/* Some in the middle were imported: they are older than those before them. */
static int64_t created_of (int64_t number)
{
    bool imported = number > TASKS / 4 && number <= TASKS * 3 / 4;
    return 1000 + (imported ? number * 7 % TASKS : number);
}

/* Adds the task as it is now to a batch. */
static void put (stage_t *self, batch_t *batch, int64_t number, bool relabelled)
{
    const fact_t *fact = &self->facts[number];
    label_t labels[NAMES];
    record_t record = test_record (number);
    record.queue = QUEUES[fact->queue];
    record.session = SESSIONS[fact->session];
    record.created_at = created_of (number);
    record.owner = OWNERS[fact->owner];
    record.status = fact->status;
    record.extra = extra_of (fact);
    record.labels = labels;
    record.relabelled = relabelled;
    for (size_t i = 0; i < NAMES; i++)
        if ((fact->labels >> i & 1) != 0)
            labels[record.labels_count++] = LABELS[i];
    batch_add_record (batch, &record);
    buf_drop (record.extra);
}

/* A turn of one agent with some files. */
static void put_turn (stage_t *self, batch_t *batch, int64_t number, unsigned agent, unsigned files)
{
    fact_t *fact = &self->facts[number];
    row_key_t key;
    bytes_t packed = BYTES_INIT;
    tmq_id_t id = test_id ((uint64_t) number);
    turn_t turn = {.turn = ++fact->turns, .attempt = 1, .number = fact->turns};
    strcpy (turn.agent, AGENTS[agent]);
    for (size_t i = 0; i < NAMES; i++)
        if ((files >> i & 1) != 0)
            turn_file_append (&packed, TMQ_FILE_OP_READ, FILES[i]);
    turn.parts[3] = packed.data;
    turn.lengths[3] = packed.length;
    turn_key (&key, "default", id.bytes, turn.turn);
    batch->rows = memory_resize (batch->rows, batch->rows_count + 1, sizeof (row_t));
    batch->rows[batch->rows_count++] = (row_t){
        .kind = ROW_KIND_TURN, .key = buf_new (key.bytes, key.length), .body = turn_pack (&turn)};
    bytes_free (&packed);
    fact->agents |= 1u << agent;
    fact->files |= files;
}

static void submit (stage_t *self, batch_t *batch)
{
    rng_t *rng = &self->rng;
    fact_t *fact = &self->facts[++self->last];
    *fact = (fact_t){.there = true,
                     .queue = one (rng),
                     .session = one (rng),
                     .owner = one (rng),
                     .labels = some (rng) & ~4u, /* one value of a key */
                     .parent = rng_chance (rng, 400) ? 1 + one (rng) : 0,
                     .status =
                         (tmq_status_t) rng_between (rng, TMQ_STATUS_QUEUED, TMQ_STATUS_CANCELLED)};
    put (self, batch, self->last, false);
    for (size_t turns = rng_below (rng, 3); turns > 0; turns--)
        put_turn (self, batch, self->last, one (rng), some (rng));
}

static void fill (stage_t *self)
{
    batch_t *batch = fixture_batch (self->f);
    while (self->last < TASKS)
        submit (self, batch);
    fixture_commit (self->f, batch);
    fixture_settle (self->f);
}

/* The oracle. */

static bool has_one (unsigned wanted, unsigned has)
{
    return wanted == 0 || (wanted >> has & 1) != 0;
}

static bool is_wanted (const stage_t *self, const condition_t *all, int64_t number)
{
    const fact_t *fact = &self->facts[number];
    int64_t created = created_of (number);
    return fact->there && has_one (all->queues, fact->queue) &&
           has_one (all->sessions, fact->session) && has_one (all->owners, fact->owner) &&
           has_one (all->statuses, fact->status) && has_one (all->parents, fact->parent) &&
           (all->labels & ~fact->labels) == 0 && (all->agents & ~fact->agents) == 0 &&
           (all->files & ~fact->files) == 0 && created >= all->since &&
           (all->until == 0 || created < all->until);
}

/* Filters. */

static void add_names (const char **to, size_t *count, unsigned set, const char *const *names)
{
    for (size_t i = 0; i < NAMES; i++)
        if ((set >> i & 1) != 0)
            to[(*count)++] = names[i];
}

static void add_marks (walk_t *self, unsigned set, const char *key, const char *const *names)
{
    for (size_t i = 0; i < NAMES; i++)
        if ((set >> i & 1) != 0)
            self->labels[self->filter.labels_count++] = (label_t){key, names[i]};
}

static void make_filter (walk_t *self)
{
    const condition_t *all = &self->all;
    filter_t *filter = &self->filter;
    *filter = (filter_t){.ns = "default",
                         .queues = self->queues,
                         .sessions = self->sessions,
                         .owners = self->owners,
                         .statuses = self->statuses,
                         .labels = self->labels,
                         .parents = self->parents,
                         .created_since = all->since,
                         .created_until = all->until};
    add_names (self->queues, &filter->queues_count, all->queues, QUEUES);
    add_names (self->sessions, &filter->sessions_count, all->sessions, SESSIONS);
    add_names (self->owners, &filter->owners_count, all->owners, OWNERS);
    for (unsigned i = 0; i < 32; i++)
        if ((all->statuses >> i & 1) != 0)
            self->statuses[filter->statuses_count++] = (tmq_status_t) i;
    for (unsigned i = 0; i < NAMES + 1; i++)
        if ((all->parents >> i & 1) != 0)
            self->parents[filter->parents_count++] = test_id (i);
    for (size_t i = 0; i < NAMES; i++)
        if ((all->labels >> i & 1) != 0)
            self->labels[filter->labels_count++] = LABELS[i];
    add_marks (self, all->agents, TURN_MARK_AGENT, AGENTS);
    add_marks (self, all->files, TURN_MARK_FILE, FILES);
}

static void join (walk_t *self, const condition_t *more)
{
    condition_t *all = &self->all;
    strncat (self->says, more->says, 30);
    strcat (self->says, "; ");
    all->queues |= more->queues;
    all->sessions |= more->sessions;
    all->owners |= more->owners;
    all->labels |= more->labels;
    all->parents |= more->parents;
    all->agents |= more->agents;
    all->files |= more->files;
    all->statuses |= more->statuses;
    all->since |= more->since;
    all->until |= more->until;
}

static void add_walk (stage_t *self, size_t a, size_t b, size_t c)
{
    static const condition_t NONE = {.says = ""};
    const condition_t *parts[] = {&CONDITIONS[a], b < CONDITIONS_COUNT ? &CONDITIONS[b] : &NONE,
                                  c < CONDITIONS_COUNT ? &CONDITIONS[c] : &NONE};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < i; k++)
            if (parts[i]->kind == parts[k]->kind && parts[i]->kind != 0)
                return;
    assert_true (self->walks_count < CASES_MAX);
    walk_t *walk = &self->walks[self->walks_count++];
    *walk = (walk_t){.limit = 1 + rng_below (&self->rng, 12),
                     .vain_max = 5 + rng_below (&self->rng, 40)};
    for (size_t i = 0; i < 3; i++)
        join (walk, parts[i]);
    make_filter (walk);
    memset (walk->always, 1, sizeof (walk->always));
}

/* Each alone, each with each, and some triples. */
static void make_walks (stage_t *self)
{
    rng_t *rng = &self->rng;
    for (size_t a = 0; a < CONDITIONS_COUNT; a++) {
        add_walk (self, a, CONDITIONS_COUNT, CONDITIONS_COUNT);
        for (size_t b = 0; b < a; b++)
            add_walk (self, a, b, CONDITIONS_COUNT);
    }
    for (size_t i = 0; i < TRIPLES; i++)
        add_walk (self, rng_below (rng, CONDITIONS_COUNT), rng_below (rng, CONDITIONS_COUNT),
                  rng_below (rng, CONDITIONS_COUNT));
}

/* Pages. */

typedef void page_t (void *context, read_t *read);

static void run_fixture (void *context, read_t *read)
{
    fixture_read (((stage_t *) context)->f, read);
}

/* Reads the next page and goes behind it; the records are the read's. */
static void next_page (walk_t *self, read_t *read, page_t *run, void *context)
{
    *read = (read_t){.kind = READ_LIST,
                     .filter = self->filter,
                     .limit = self->limit,
                     .vain_max = self->vain_max,
                     .before_number = self->before};
    run (context, read);
    int64_t below = read->next_number > 0     ? read->next_number
                    : read->records_count > 0 ? read->records[read->records_count - 1]->number
                                              : 0;
    if (read->records_count > self->limit ||
        (read->more && (below == 0 || (self->before > 0 && below >= self->before))))
        fail_msg ("%s: a page does not get on", self->says);
    self->before = below;
    self->done = !read->more;
}

/* All pages are what a plain look finds. */
static size_t check_pages (const stage_t *self, walk_t *walk, page_t *run, void *context)
{
    int64_t number = self->last + 1;
    size_t total = 0;
    while (!walk->done) {
        read_t read;
        next_page (walk, &read, run, context);
        for (size_t i = 0; i < read.records_count; i++, total++) {
            for (number--; number > 0 && !is_wanted (self, &walk->all, number);)
                number--;
            if (read.records[i]->number != number)
                fail_msg ("%s: %d where %d was expected", walk->says, (int) read.records[i]->number,
                          (int) number);
        }
        read_clear (&read);
    }
    for (number--; number > 0; number--)
        if (is_wanted (self, &walk->all, number))
            fail_msg ("%s: %d is missing", walk->says, (int) number);
    return total;
}

static uint64_t count (const walk_t *walk, page_t *run, void *context)
{
    read_t read = {.kind = READ_COUNT, .filter = walk->filter, .vain_max = walk->vain_max};
    do {
        run (context, &read);
        if (read.more && read.before_number > 0 && read.next_number >= read.before_number)
            fail_msg ("%s: a count does not get on", walk->says);
        read.before_number = read.next_number;
    } while (read.more);
    return read.count;
}

/* Of these numbers those that match, as a search asks for them. */
static void check_pick (const stage_t *self, const walk_t *walk, page_t *run, void *context)
{
    int64_t numbers[TASKS / 2];
    size_t found = 0;
    for (size_t i = 0; i < TASKS / 2; i++)
        numbers[i] = self->last - 2 * (int64_t) i;
    read_t read = {
        .kind = READ_PICK, .filter = walk->filter, .numbers = numbers, .numbers_count = TASKS / 2};
    run (context, &read);
    for (size_t i = 0; i < TASKS / 2; i++) {
        if (!is_wanted (self, &walk->all, numbers[i]))
            continue;
        if (found == read.records_count || read.records[found++]->number != numbers[i])
            fail_msg ("%s: %d is not picked", walk->says, (int) numbers[i]);
    }
    if (found != read.records_count)
        fail_msg ("%s: more is picked than matches", walk->says);
    read_clear (&read);
}

static void every_filter_goes_with_every_other (void **state)
{
    stage_t *self = *state;
    size_t total = 0;
    size_t empty = 0;
    fill (self);
    make_walks (self);
    for (size_t i = 0; i < self->walks_count; i++) {
        walk_t *walk = &self->walks[i];
        size_t found = check_pages (self, walk, run_fixture, self);
        if (count (walk, run_fixture, self) != found)
            fail_msg ("%s: the count is another one than the list's", walk->says);
        check_pick (self, walk, run_fixture, self);
        total += found;
        empty += found == 0;
    }
    assert_true (self->walks_count > 300 && total > 2000); /* and most of them find something */
    assert_true (empty < self->walks_count / 2);
}

/* Changes between pages. */

static void change_one (stage_t *self, batch_t *batch, int64_t number)
{
    fact_t *fact = &self->facts[number];
    rng_t *rng = &self->rng;
    switch (rng_below (rng, 5)) {
    case 0:
        fact->labels = some (rng) & ~4u;
        put (self, batch, number, true);
        return;
    case 1:
        put (self, batch, number, false);
        put_turn (self, batch, number, one (rng), some (rng));
        return;
    case 2: {
        record_t record = test_record (number);
        batch_add_removal (batch, &record, TMQ_PURGED, 1);
        *fact = (fact_t){0};
        return;
    }
    default:
        fact->status = (tmq_status_t) rng_between (rng, TMQ_STATUS_QUEUED, TMQ_STATUS_CANCELLED);
        put (self, batch, number, false);
    }
}

static void change (stage_t *self)
{
    enum { CHANGES = 30, ADDED = 6 };
    uint8_t changed[TASKS + ADDED_MAX + 1] = {0};
    batch_t *batch = fixture_batch (self->f);
    for (size_t i = 0; i < CHANGES; i++) {
        int64_t number = rng_between (&self->rng, 1, self->last);
        if (self->facts[number].there && !changed[number])
            change_one (self, batch, number);
        changed[number] = 1;
    }
    for (size_t i = 0; i < ADDED && self->last < TASKS + ADDED_MAX; i++)
        submit (self, batch);
    fixture_commit (self->f, batch);
    fixture_settle (self->f);
}

/* What matched all the time is shown once, what never did is not shown. */
static void go_on (stage_t *self, walk_t *walk)
{
    read_t read;
    int64_t above = walk->before == 0 ? self->last + 1 : walk->before;
    for (int64_t number = 1; number <= self->last; number++) {
        bool wanted = is_wanted (self, &walk->all, number);
        walk->always[number] = walk->always[number] && wanted;
        walk->ever[number] = walk->ever[number] || wanted;
    }
    next_page (walk, &read, run_fixture, self);
    int64_t place = walk->done ? 0 : walk->before;
    uint8_t shown[TASKS + ADDED_MAX + 1] = {0};
    for (size_t i = 0; i < read.records_count; i++) {
        int64_t number = read.records[i]->number;
        if (number >= above || number < place || !walk->ever[number] || shown[number])
            fail_msg ("%s: %d is shown", walk->says, (int) number);
        shown[number] = 1;
    }
    for (int64_t number = above - 1; number >= (place > 0 ? place : 1); number--)
        if (walk->always[number] && !shown[number])
            fail_msg ("%s: %d was there all the time and is not shown", walk->says, (int) number);
    read_clear (&read);
}

static void pages_go_on_while_tasks_change (void **state)
{
    stage_t *self = *state;
    enum { ROUNDS_MAX = 14 };
    size_t open = 1;
    fill (self);
    make_walks (self);
    for (size_t round = 0; round < ROUNDS_MAX && open > 0; round++) {
        open = 0;
        for (size_t i = 0; i < self->walks_count; i++) {
            if (!self->walks[i].done)
                go_on (self, &self->walks[i]);
            open += !self->walks[i].done;
        }
        change (self);
    }
    for (size_t i = 0; i < self->walks_count; i++) { /* and afterwards all is as it should be */
        walk_t *walk = &self->walks[i];
        walk->before = 0;
        walk->done = false;
        size_t found = check_pages (self, walk, run_fixture, self);
        assert_int_equal (count (walk, run_fixture, self), found);
    }
}

#ifndef FIXTURE_POSTGRESQL /* tests/postgres/test_readers.c looks at the plans there */
/* What SQLite does. */

static void run_readers (void *context, read_t *read)
{
    store_error_t error = {STORE_OK, ""};
    assert_int_equal (readers_run (context, read, &error), STORE_OK);
}

static int work (const readers_t *readers, int which)
{
    int sum = 0;
    for (sqlite3_stmt *it = sqlite3_next_stmt (readers->view.db, NULL); it != NULL;
         it = sqlite3_next_stmt (readers->view.db, it))
        sum += sqlite3_stmt_status (it, which, 1);
    return sum;
}

/* No table and no index is walked from end to end, and nothing is sorted. A page that may look at
 * few entries in vain takes few steps. */
static void no_filter_walks_everything (void **state)
{
    stage_t *self = *state;
    enum { PAGE_US = 20000, STEPS_EACH = 400, STEPS_PLAN = 30000 };
    gate_t gate;
    readers_t readers;
    store_error_t error = {STORE_OK, ""};
    fill (self);
    make_walks (self);
    gate_init (&gate);
    assert_int_equal (readers_open (&readers, self->f->directory, &gate, PAGE_US, &error),
                      STORE_OK);
    for (size_t i = 0; i < self->walks_count; i++) {
        walk_t *walk = &self->walks[i];
        work (&readers, SQLITE_STMTSTATUS_VM_STEP);
        while (!walk->done) {
            read_t read;
            next_page (walk, &read, run_readers, &readers);
            int steps = work (&readers, SQLITE_STMTSTATUS_VM_STEP);
            if (steps > STEPS_PLAN + STEPS_EACH * (int) (walk->limit + walk->vain_max))
                fail_msg ("%s: a page takes %d steps", walk->says, steps);
            read_clear (&read);
        }
        count (walk, run_readers, &readers);
        if (work (&readers, SQLITE_STMTSTATUS_FULLSCAN_STEP) != 0)
            fail_msg ("%s: something is walked from end to end", walk->says);
        if (work (&readers, SQLITE_STMTSTATUS_SORT) +
                work (&readers, SQLITE_STMTSTATUS_AUTOINDEX) !=
            0)
            fail_msg ("%s: something is sorted", walk->says);
    }
    readers_close (&readers);
    gate_destroy (&gate);
}

#endif

static void put_at (fixture_t *f, int64_t number, int64_t created_at)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record (number);
    record.created_at = created_at;
    batch_add_record (batch, &record);
    fixture_commit (f, batch);
    fixture_settle (f);
}

static uint64_t count_between (fixture_t *f, int64_t since, int64_t until)
{
    read_t read = {.kind = READ_COUNT,
                   .filter = {.ns = "default", .created_since = since, .created_until = until}};
    fixture_read (f, &read);
    uint64_t count = read.count;
    read_clear (&read);
    return count;
}

/* Which tasks are older than those before them is known to the next start, too. */
static void times_are_found_across_a_start (void **state)
{
    stage_t *self = *state;
    fixture_t *f = self->f;
    for (int64_t number = 1; number <= 20; number++)
        put_at (f, number, 1000 + number);
    put_at (f, 21, 5);
    fixture_close (f);
    fixture_open (f);
    put_at (f, 22, 1021);
    put_at (f, 23, 1003);
    fixture_close (f);
    fixture_open (f);
    for (int64_t number = 24; number <= 40; number++)
        put_at (f, number, 1000 + number);
    assert_int_equal (count_between (f, 0, 0), 40);
    assert_int_equal (count_between (f, 1, 1000), 1);
    assert_int_equal (count_between (f, 1003, 1004), 2);
    assert_int_equal (count_between (f, 1020, 0), 19);
    assert_int_equal (count_between (f, 0, 1021), 22);
    assert_int_equal (count_between (f, 1041, 0), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL_WITH (every_filter_goes_with_every_other, setup, teardown),
        ON_ALL_WITH (pages_go_on_while_tasks_change, setup, teardown),
        ON_STORED_WITH (times_are_found_across_a_start, setup, teardown),
#ifndef FIXTURE_POSTGRESQL
        ON_WITH (no_filter_walks_everything, setup, teardown, "sqlite"),
#endif
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
