/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads in pages: each kind is a function that works inside one transaction until it is done or
 * the page is over, and is called again in the next one where it goes on. */
#include "store/sqlite/readers.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "ids.h"
#include "store/events.h"
#include "store/select.h"
#include "store/sqlite/entries.h"
#include "store/sqlite/kind_rows.h"

enum statement {
    ROW_BARE = ENTRIES_STATEMENTS,
    IDS,
    ID_OF,
    BLOCK_UPTO,
    BLOCKS_FROM,
    BLOCK_FIRST,
    ROWS_FROM,
    NEWEST_OF,
    ATTEMPTS_FROM,
    WHOLE_FROM,
    LASTING,
    EXPORT_FIRST,
    STATEMENTS = EXPORT_FIRST + EXPORT_STATEMENTS
};

#define BLOCK_COLUMNS "SELECT " ROW_EVENTS_COLUMNS " FROM event "

static const char *const TEXTS[EXPORT_FIRST - ENTRIES_STATEMENTS] = {
    [ROW_BARE - ENTRIES_STATEMENTS] = "SELECT " ROW_COLUMNS_BARE " FROM task WHERE number = ?1",
    /* Ids are made in the order of time, so the index alone has the newest. */
    [IDS - ENTRIES_STATEMENTS] =
        "SELECT id, number FROM task WHERE ns = ?1 ORDER BY id DESC LIMIT ?2",
    [ID_OF - ENTRIES_STATEMENTS] = "SELECT id, number FROM task WHERE number = ?1",
    [BLOCK_UPTO - ENTRIES_STATEMENTS] =
        BLOCK_COLUMNS "WHERE key >= ?1 AND key <= ?2 ORDER BY key DESC LIMIT 1",
    [BLOCKS_FROM - ENTRIES_STATEMENTS] = BLOCK_COLUMNS "WHERE key >= ?1 AND key < ?2 ORDER BY key",
    [BLOCK_FIRST - ENTRIES_STATEMENTS] =
        "SELECT key FROM event WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT 1",
    [ROWS_FROM - ENTRIES_STATEMENTS] = KIND_ROWS_FROM,
    [NEWEST_OF - ENTRIES_STATEMENTS] = "SELECT last_event FROM task WHERE ns = ?1 AND id = ?2",
    [ATTEMPTS_FROM - ENTRIES_STATEMENTS] =
        "SELECT " ROW_ATTEMPT_COLUMNS " FROM attempt WHERE number = ?1 AND attempt > ?2"
        " ORDER BY attempt",
    [WHOLE_FROM - ENTRIES_STATEMENTS] =
        "SELECT " ROW_COLUMNS " FROM task WHERE number > ?1 ORDER BY number",
    [LASTING - ENTRIES_STATEMENTS] =
        "SELECT " ROW_COLUMNS_BARE " FROM task INDEXED BY task_lasting"
        " WHERE ns = ?1 AND number < ?2 AND expires_at = 0 AND status >= 4 AND leased = 0"
        " ORDER BY number DESC",
};

/* What a read keeps from page to page. */
typedef struct page_read {
    view_t *view;
    read_t *read;
    int64_t ns;   /* 0: not stored, so there is nothing */
    bool started; /* the first page was begun */
    bool done;
    size_t capacity; /* of the array that the read fills */
    size_t bytes;    /* LIST: of its records */
    size_t resolved; /* RESOLVE: live tasks that were looked at */
    size_t judged;   /* STANDING, PICK: so many have their answer */
    int64_t number;  /* WHOLE, LASTING: the last one that was looked at */
    entries_t entries;
    ranges_t ranges;
    event_chain_t history;
    kind_page_t rows;
    export_walk_t *export;
    int64_t block_end; /* HISTORY: the block in BLOCK_UPTO ends before this key; 0: none */
} page_read_t;

store_code_t readers_open (readers_t *self, const char *directory, gate_t *gate,
                           uint32_t page_us_max, store_error_t *error)
{
    const char *texts[STATEMENTS];
    memcpy (texts, ENTRIES_TEXTS, sizeof (ENTRIES_TEXTS));
    memcpy (texts + ENTRIES_STATEMENTS, TEXTS, sizeof (TEXTS));
    memcpy (texts + EXPORT_FIRST, EXPORT_TEXTS, sizeof (EXPORT_TEXTS));
    *self = (readers_t){.export = {.statements = EXPORT_FIRST}};
    store_code_t code = view_open (&self->view, directory, gate, texts, STATEMENTS, error);
    self->view.page_us_max = page_us_max;
    return code;
}

void readers_close (readers_t *self)
{
    export_walk_clear (&self->export);
    view_close (&self->view);
}

/* Tasks. */

static store_code_t list_add (page_read_t *job, int64_t number, store_error_t *error)
{
    read_t *read = job->read;
    bool row;
    sqlite3_stmt *statement = view_statement (job->view, ROW_BARE);
    sqlite3_bind_int64 (statement, 1, number);
    record_t *record = NULL;
    store_code_t code = view_step (job->view, statement, &row, error);
    if (code == STORE_OK && row)
        code = view_record (job->view, statement, false, &record, error);
    if (record == NULL)
        return view_go_on (job->view, code, error); /* removed since, or damaged: left out */
    if (!select_matches (&read->filter, record)) {
        record_free (record); /* changed since */
    } else if (read->records_count == read->limit) {
        record_free (record);
        read->more = true;
        job->done = true;
    } else {
        read->records =
            memory_grow (read->records, &job->capacity, read->records_count, sizeof (record_t *));
        read->records[read->records_count++] = record;
        job->bytes += record_wire_bytes (record);
        job->done = read->more = read->bytes_max > 0 && job->bytes >= read->bytes_max;
    }
    return STORE_OK;
}

/* What was found so far is given, with the place to go on from. */
static void end_early (page_read_t *job)
{
    int64_t below;
    if (!ranges_ended_early (&job->ranges, &below))
        return;
    job->done = true;
    job->read->more = below > 0;
    job->read->next_number = below;
}

static store_code_t page_list (page_read_t *job, store_error_t *error)
{
    store_code_t code = STORE_OK;
    bool over = false;
    while (code == STORE_OK && !job->done && !over) {
        int64_t number;
        code = ranges_next (&job->ranges, &number, &over, error);
        if (code == STORE_OK && over)
            end_early (job);
        if (code != STORE_OK || over)
            break;
        if (number == 0)
            job->done = true;
        else
            code = list_add (job, number, error);
        over = view_is_over (job->view);
    }
    return code;
}

static store_code_t page_count (page_read_t *job, store_error_t *error)
{
    bool over;
    read_t *read = job->read;
    store_code_t code = ranges_count (&job->ranges, &read->count, &over, &read->next_number, error);
    read->more = read->next_number > 0;
    job->done = !over || read->more;
    return code;
}

static store_code_t resolve_id (page_read_t *job, sqlite3_stmt *statement, store_error_t *error)
{
    tmq_id_t id;
    bool seen;
    sql_column_bytes (statement, 0, id.bytes, sizeof (id.bytes));
    if (!id_ends_with (&id, job->read->suffix))
        return STORE_OK;
    store_code_t code =
        ranges_see (&job->ranges, sqlite3_column_int64 (statement, 1), &seen, error);
    if (code == STORE_OK && seen && !select_resolved (job->read, &id))
        job->done = true;
    return code;
}

static store_code_t resolve_newest (page_read_t *job, store_error_t *error)
{
    sqlite3_stmt *statement = view_statement (job->view, IDS);
    sqlite3_bind_int64 (statement, 1, job->ns);
    sqlite3_bind_int (statement, 2, TMQ_SUFFIX_TASKS_MAX);
    store_code_t code = STORE_OK;
    bool row = true;
    while (code == STORE_OK && row && !job->done) {
        code = view_step (job->view, statement, &row, error);
        if (code == STORE_OK && row)
            code = resolve_id (job, statement, error);
    }
    sqlite3_reset (statement);
    return code;
}

/* The newest ids in one sweep of an index, then the live tasks, however old (job->ranges
 * has them). */
static store_code_t page_resolve (page_read_t *job, store_error_t *error)
{
    store_code_t code = STORE_OK;
    if (!job->started)
        code = resolve_newest (job, error);
    bool over = false;
    while (code == STORE_OK && !job->done && !over) {
        int64_t number;
        bool row;
        code = ranges_next (&job->ranges, &number, &over, error);
        if (code != STORE_OK || over)
            break;
        job->done = number == 0 || ++job->resolved > TMQ_SUFFIX_LIVE_TASKS_MAX;
        if (job->done)
            break;
        sqlite3_stmt *statement = view_statement (job->view, ID_OF);
        sqlite3_bind_int64 (statement, 1, number);
        code = view_step (job->view, statement, &row, error);
        if (code == STORE_OK && row)
            code = resolve_id (job, statement, error);
        over = view_is_over (job->view);
    }
    return code;
}

/* Events. */

/* Steps to the newest block of the namespace that begins at or before seq. */
static store_code_t block_upto (page_read_t *job, uint64_t seq, sqlite3_stmt **statement, bool *row,
                                store_error_t *error)
{
    *statement = view_statement (job->view, BLOCK_UPTO);
    sqlite3_bind_int64 (*statement, 1, EVENT_KEY (job->ns, 0));
    sqlite3_bind_int64 (*statement, 2, EVENT_KEY (job->ns, seq));
    return view_step (job->view, *statement, row, error);
}

static uint64_t block_first_seq (const page_read_t *job, sqlite3_stmt *statement)
{
    return (uint64_t) (sqlite3_column_int64 (statement, ROW_EVENTS_KEY) - EVENT_KEY (job->ns, 0));
}

/* One after the last sequence of the block. */
static uint64_t block_end_seq (const page_read_t *job, sqlite3_stmt *statement)
{
    return block_first_seq (job, statement) +
           (uint64_t) sqlite3_column_int64 (statement, ROW_EVENTS_COUNT);
}

static const uint8_t *block_list (sqlite3_stmt *statement, size_t *list_bytes)
{
    const uint8_t *list = sqlite3_column_blob (statement, ROW_EVENTS_LIST);
    *list_bytes = (size_t) sqlite3_column_bytes (statement, ROW_EVENTS_LIST);
    return list;
}

typedef struct finder {
    page_read_t *job;
    store_code_t code;
    store_error_t *error;
} finder_t;

static bool find_block (void *context, uint64_t seq, const uint8_t **list, size_t *list_bytes)
{
    finder_t *finder = context;
    page_read_t *job = finder->job;
    sqlite3_stmt *statement = job->view->statements[BLOCK_UPTO];
    /* A chain often stays in one block: the statement still stands on it. */
    bool row = job->block_end > EVENT_KEY (job->ns, seq) && block_first_seq (job, statement) <= seq;
    if (!row) {
        job->block_end = 0;
        finder->code = block_upto (job, seq, &statement, &row, finder->error);
        if (finder->code == STORE_OK && row)
            finder->code = row_check_events (statement, finder->error);
        if (finder->code != STORE_OK || !row || block_end_seq (job, statement) <= seq)
            return false;
        job->block_end = EVENT_KEY (job->ns, block_end_seq (job, statement));
    }
    *list = block_list (statement, list_bytes);
    return true;
}

static bool page_enough (void *context)
{
    return view_is_over (((finder_t *) context)->job->view);
}

static store_code_t page_history (page_read_t *job, store_error_t *error)
{
    finder_t finder = {job, STORE_OK, error};
    event_source_t source = {find_block, page_enough, &finder};
    job->block_end = 0;
    job->done = event_chain_follow (&job->history, &source);
    return finder.code;
}

static store_code_t events_bounds (page_read_t *job, store_error_t *error)
{
    bool row;
    sqlite3_stmt *statement;
    store_code_t code = block_upto (job, (UINT64_C (1) << 42) - 1, &statement, &row, error);
    if (code != STORE_OK || !row)
        return code;
    job->read->last_seq_seen = block_end_seq (job, statement) - 1;
    statement = view_statement (job->view, BLOCK_FIRST);
    sqlite3_bind_int64 (statement, 1, EVENT_KEY (job->ns, 0));
    sqlite3_bind_int64 (statement, 2, EVENT_KEY (job->ns + 1, 0));
    code = view_step (job->view, statement, &row, error);
    if (code == STORE_OK && row)
        job->read->first_seq = block_first_seq (job, statement);
    return code;
}

static void events_add (page_read_t *job, sqlite3_stmt *statement)
{
    read_t *read = job->read;
    size_t list_bytes;
    const uint8_t *list = block_list (statement, &list_bytes);
    read->blocks =
        memory_grow (read->blocks, &job->capacity, read->blocks_count, sizeof (event_block_t));
    read->blocks[read->blocks_count++] = (event_block_t){
        .ns = memory_text (read->filter.ns),
        .first_seq = block_first_seq (job, statement),
        .first_pos = (uint64_t) sqlite3_column_int64 (statement, ROW_EVENTS_POS),
        .count = (uint32_t) sqlite3_column_int64 (statement, ROW_EVENTS_COUNT),
        .list = buf_new (list, list_bytes),
    };
    event_block_t *block = &read->blocks[read->blocks_count - 1];
    block->mixed = event_list_is_mixed (block->list);
}

/* One page: what the limit in bytes allows is read well within its time. */
static store_code_t page_events (page_read_t *job, store_error_t *error)
{
    read_t *read = job->read;
    uint64_t from = read->after_seq + 1;
    size_t bytes = 0;
    bool row;
    sqlite3_stmt *statement;
    job->done = true;
    store_code_t code = events_bounds (job, error);
    if (code != STORE_OK || from > read->last_seq_seen)
        return code;
    code = block_upto (job, from, &statement, &row, error);
    if (code != STORE_OK)
        return code;
    if (row && block_end_seq (job, statement) > from)
        from = block_first_seq (job, statement);
    statement = view_statement (job->view, BLOCKS_FROM);
    sqlite3_bind_int64 (statement, 1, EVENT_KEY (job->ns, from));
    sqlite3_bind_int64 (statement, 2, EVENT_KEY (job->ns + 1, 0));
    while (true) {
        code = view_step (job->view, statement, &row, error);
        if (code != STORE_OK || !row)
            return code;
        bool damaged = row_check_events (statement, error) != STORE_OK;
        bool enough = bytes >= read->limit || view_is_over (job->view);
        if (read->blocks_count > 0 && (enough || damaged)) {
            read->more = true; /* a page has no gap within: it may begin with one */
            return STORE_OK;
        }
        if (damaged) {
            damage_tell (job->view->damage, error);
            continue;
        }
        events_add (job, statement);
        bytes += buf_length (read->blocks[read->blocks_count - 1].list);
    }
}

/* Looks by halves for the first block that was committed at or after the time. */
static store_code_t page_since (page_read_t *job, store_error_t *error)
{
    read_t *read = job->read;
    bool row;
    sqlite3_stmt *statement;
    job->done = true;
    store_code_t code = events_bounds (job, error);
    if (code != STORE_OK || read->last_seq_seen == 0)
        return code;
    uint64_t middle;
    event_bisect_t bisect = {read->first_seq, read->last_seq_seen + 1};
    while (event_bisect_middle (&bisect, &middle)) {
        code = block_upto (job, middle, &statement, &row, error);
        if (code != STORE_OK)
            return code;
        event_bisect_judge (&bisect, middle, row, row ? block_first_seq (job, statement) : 0,
                            row ? block_end_seq (job, statement) : 0,
                            row &&
                                sqlite3_column_int64 (statement, ROW_EVENTS_AT) >= read->since_ms);
    }
    read->seq = bisect.low - 1;
    code = block_upto (job, bisect.low, &statement, &row, error);
    if (code == STORE_OK && row)
        code = row_check_events (statement, error);
    if (code != STORE_OK || !row)
        return code;
    size_t list_bytes;
    const uint8_t *list = block_list (statement, &list_bytes);
    uint64_t first = event_first_since (list, list_bytes, read->since_ms);
    read->seq = first != 0 ? first - 1 : block_end_seq (job, statement) - 1;
    return STORE_OK;
}

static store_code_t page_export (page_read_t *job, store_error_t *error)
{
    return export_walk_page (job->export, job->view, job->read, &job->done, error);
}

static store_code_t page_blocks (page_read_t *job, store_error_t *error)
{
    job->done = true;
    return export_blocks_page (job->export, job->view, job->read, error);
}

/* Rows. */

static store_code_t page_rows (page_read_t *job, store_error_t *error)
{
    job->rows.read = job->read;
    store_code_t code =
        kind_rows_page (job->view, view_statement (job->view, ROWS_FROM), &job->rows, error);
    job->done = job->rows.done;
    return code;
}

/* Standing. */

static store_code_t judge_standing (page_read_t *job, standing_t *standing, store_error_t *error)
{
    bool row = false;
    int64_t ns;
    store_code_t code = names_find (&job->view->names, NAME_NAMESPACE, 0, standing->ns, &ns, error);
    standing->stands = false;
    if (code != STORE_OK || ns == 0)
        return code;
    sqlite3_stmt *statement = view_statement (job->view, NEWEST_OF);
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_blob (statement, 2, standing->id.bytes, sizeof (tmq_id_t), SQLITE_STATIC);
    code = view_step (job->view, statement, &row, error);
    if (code == STORE_OK && row)
        standing->stands = (uint64_t) sqlite3_column_int64 (statement, 0) == standing->seq;
    else if (code != STORE_OK)
        standing->stands = true;
    sqlite3_reset (statement);
    return view_go_on (job->view, code, error);
}

static store_code_t page_standing (page_read_t *job, store_error_t *error)
{
    store_code_t code = STORE_OK;
    read_t *read = job->read;
    bool over = false; /* each page gets on */
    while (code == STORE_OK && job->judged < read->standing_count && !over) {
        code = judge_standing (job, &read->standing[job->judged++], error);
        over = view_is_over (job->view);
    }
    job->done = job->judged == read->standing_count;
    return code;
}

/* Attempts. */

/* Takes the row that the statement stands on, or ends the read before it. */
static store_code_t take_attempt (page_read_t *job, sqlite3_stmt *statement, store_error_t *error)
{
    read_t *read = job->read;
    attempt_t attempt;
    if (read->attempts_count == read->limit) {
        read->more = job->done = true;
        return STORE_OK;
    }
    if (!row_read_attempt (statement, &attempt))
        return store_fail (error, STORE_ERROR_DAMAGED, "attempt %" PRIu32 " of the task is damaged",
                           attempt.attempt);
    attempt.id = read->id;
    read->attempts =
        memory_grow (read->attempts, &job->capacity, read->attempts_count, sizeof (attempt_t));
    read->attempts[read->attempts_count++] = attempt;
    return STORE_OK;
}

static store_code_t page_attempts (page_read_t *job, store_error_t *error)
{
    const read_t *read = job->read;
    size_t count = read->attempts_count;
    uint32_t after = count > 0 ? read->attempts[count - 1].attempt : read->after_attempt;
    store_code_t code = STORE_OK;
    sqlite3_stmt *statement = view_statement (job->view, ATTEMPTS_FROM);
    sqlite3_bind_int64 (statement, 1, read->task_number);
    sqlite3_bind_int64 (statement, 2, after);
    do {
        bool row;
        code = view_step (job->view, statement, &row, error);
        job->done = !row;
        if (code == STORE_OK && row)
            code = take_attempt (job, statement, error);
    } while (code == STORE_OK && !job->done && !view_is_over (job->view));
    sqlite3_reset (statement);
    return code;
}

/* Tasks by their numbers. */

static void add_record (page_read_t *job, record_t *record)
{
    read_t *read = job->read;
    read->records =
        memory_grow (read->records, &job->capacity, read->records_count, sizeof (record_t *));
    read->records[read->records_count++] = record;
}

static store_code_t pick (page_read_t *job, int64_t number, store_error_t *error)
{
    bool row;
    record_t *record = NULL;
    sqlite3_stmt *statement = view_statement (job->view, ROW_BARE);
    sqlite3_bind_int64 (statement, 1, number);
    store_code_t code = view_step (job->view, statement, &row, error);
    if (code == STORE_OK && row)
        code = view_record (job->view, statement, false, &record, error);
    if (record == NULL)
        return view_go_on (job->view, code, error);
    bool wanted = select_matches (&job->read->filter, record);
    if (wanted)
        code = entries_find_marks (job->view, &job->read->filter, number, &wanted, error);
    if (wanted && code == STORE_OK)
        add_record (job, record);
    else
        record_free (record);
    return code;
}

static store_code_t page_pick (page_read_t *job, store_error_t *error)
{
    store_code_t code = STORE_OK;
    const read_t *read = job->read;
    bool over = false;
    while (code == STORE_OK && job->judged < read->numbers_count && !over) {
        code = pick (job, read->numbers[job->judged++], error);
        over = view_is_over (job->view);
    }
    job->done = job->judged == read->numbers_count;
    return code;
}

/* Takes the row that the statement stands on, or ends the read before it. */
static store_code_t take_whole (page_read_t *job, sqlite3_stmt *statement, store_error_t *error)
{
    read_t *read = job->read;
    record_t *record = NULL;
    if (read->records_count == read->limit ||
        (read->bytes_max > 0 && job->bytes >= read->bytes_max)) {
        read->more = job->done = true;
        return STORE_OK;
    }
    job->number = sqlite3_column_int64 (statement, 0);
    store_code_t code = view_record (job->view, statement, true, &record, error);
    if (record == NULL)
        return view_go_on (job->view, code, error);
    job->bytes +=
        record_wire_bytes (record) + buf_length (record->payload) + buf_length (record->result);
    add_record (job, record);
    return STORE_OK;
}

static store_code_t page_whole (page_read_t *job, store_error_t *error)
{
    store_code_t code = STORE_OK;
    sqlite3_stmt *statement = view_statement (job->view, WHOLE_FROM);
    if (job->number < job->read->after_number)
        job->number = job->read->after_number;
    sqlite3_bind_int64 (statement, 1, job->number);
    do {
        bool row;
        code = view_step (job->view, statement, &row, error);
        job->done = job->done || !row;
        if (code == STORE_OK && row)
            code = take_whole (job, statement, error);
    } while (code == STORE_OK && !job->done && !view_is_over (job->view));
    sqlite3_reset (statement);
    return code;
}

/* Takes the row that the statement stands on, or ends the read before it. */
static store_code_t take_lasting (page_read_t *job, sqlite3_stmt *statement, store_error_t *error)
{
    read_t *read = job->read;
    record_t *record = NULL;
    if (read->records_count == read->limit) {
        read->more = job->done = true;
        return STORE_OK;
    }
    job->number = sqlite3_column_int64 (statement, ROW_NUMBER);
    store_code_t code = view_record (job->view, statement, false, &record, error);
    if (record == NULL)
        return view_go_on (job->view, code, error);
    add_record (job, record);
    return STORE_OK;
}

static store_code_t page_lasting (page_read_t *job, store_error_t *error)
{
    store_code_t code = STORE_OK;
    sqlite3_stmt *statement = view_statement (job->view, LASTING);
    if (job->number == 0)
        job->number = job->read->before_number == 0 ? INT64_MAX : job->read->before_number;
    sqlite3_bind_int64 (statement, 1, job->ns);
    sqlite3_bind_int64 (statement, 2, job->number);
    do {
        bool row;
        code = view_step (job->view, statement, &row, error);
        job->done = job->done || !row;
        if (code == STORE_OK && row)
            code = take_lasting (job, statement, error);
    } while (code == STORE_OK && !job->done && !view_is_over (job->view));
    sqlite3_reset (statement);
    return code;
}

/* Running. */

typedef store_code_t page_t (page_read_t *job, store_error_t *error);

static page_t *const PAGES[] = {
    [READ_LIST] = page_list,         [READ_COUNT] = page_count,     [READ_RESOLVE] = page_resolve,
    [READ_HISTORY] = page_history,   [READ_EVENTS] = page_events,   [READ_EXPORT] = page_export,
    [READ_SINCE] = page_since,       [READ_ROWS] = page_rows,       [READ_STANDING] = page_standing,
    [READ_ATTEMPTS] = page_attempts, [READ_PICK] = page_pick,       [READ_WHOLE] = page_whole,
    [READ_BLOCKS] = page_blocks,     [READ_LASTING] = page_lasting,
};

static const tmq_status_t LIVE[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING,
                                    TMQ_STATUS_INPUT_REQUIRED};

static store_code_t walk_ranges (page_read_t *job, const filter_t *filter, int64_t before_number,
                                 store_error_t *error)
{
    job->entries = (entries_t){.view = job->view};
    store_code_t code =
        ranges_open (&job->ranges, &ENTRIES_CALLS, &job->entries, filter, before_number, error);
    job->ranges.planted_bug = job->view->planted_bug;
    return code;
}

/* What the first page finds out before its work. */
static store_code_t job_prepare (page_read_t *job, filter_t *live, store_error_t *error)
{
    read_t *read = job->read;
    if (read->kind == READ_EXPORT) {
        export_walk_begin (job->export, read->after_pos);
        return STORE_OK;
    }
    if (read->kind == READ_ROWS || read->kind == READ_STANDING || read->kind == READ_ATTEMPTS ||
        read->kind == READ_WHOLE || read->kind == READ_BLOCKS)
        return STORE_OK; /* what is asked for says whose it is */
    store_code_t code =
        names_find (&job->view->names, NAME_NAMESPACE, 0, read->filter.ns, &job->ns, error);
    if (code != STORE_OK)
        return code;
    switch (read->kind) {
    case READ_LIST:
    case READ_COUNT:
        code = walk_ranges (job, &read->filter, read->before_number, error);
        job->ranges.lists = read->kind == READ_LIST;
        job->ranges.vain_max = read->vain_max;
        return code;
    case READ_RESOLVE:
        *live = (filter_t){.ns = read->filter.ns,
                           .scope = read->filter.scope,
                           .statuses = LIVE,
                           .statuses_count = sizeof (LIVE) / sizeof (LIVE[0])};
        return walk_ranges (job, live, 0, error);
    case READ_HISTORY:
        event_chain_start (&job->history, read);
        if (job->ns == 0)
            job->history.next_seq = 0;
        return STORE_OK;
    default: job->done = job->ns == 0; return STORE_OK;
    }
}

store_code_t readers_run (readers_t *self, read_t *read, store_error_t *error)
{
    view_t *view = &self->view;
    page_read_t job = {.view = view, .read = read, .export = &self->export};
    filter_t live;
    store_code_t code = STORE_OK;
    names_trim (&view->names);
    while (code == STORE_OK && !job.done && !atomic_load (&read->cancelled)) {
        code = view_begin (view, error);
        if (code != STORE_OK)
            break;
        if (!job.started)
            code = job_prepare (&job, &live, error);
        if (code == STORE_OK && !job.done)
            code = PAGES[read->kind](&job, error);
        job.started = true;
        view_end (view);
    }
    if (read->kind == READ_HISTORY)
        event_chain_finish (&job.history, read);
    ranges_close (&job.ranges);
    if (code == STORE_ERROR_CORRUPT && read->kind != READ_EXPORT)
        code = error->code = STORE_ERROR_DAMAGED; /* a page of the file: others can be read */
    if (code == STORE_ERROR_DAMAGED)
        damage_tell (view->damage, error);
    return code;
}

store_code_t readers_complete (readers_t *self, read_t *read, bool lacks, store_error_t *error)
{
    export_walk_clear (&self->export); /* it is not where the walk stands */
    return lacks ? export_complete (&self->export, &self->view, read, error) : STORE_OK;
}
