/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/load.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "ids.h"
#include "store/live.h"
#include "store/sqlite/kind_rows.h"

enum statement {
    BY_ID,
    BY_ID_BARE,
    BY_KEY,
    BY_KEY_BARE,
    TOMBSTONE,
    ATTEMPT,
    DUE,
    NAMESPACES,
    QUEUES,
    NUMBERS,
    LINGERING,
    ROWS_BETWEEN,
    LAST_EVENTS,
    ROW_FIND,
    ROWS_FROM,
    ROWS_DUE,
    STATEMENTS
};

#define WHERE_ID " FROM task WHERE ns = ?1 AND id = ?2"
#define WHERE_KEY " FROM task WHERE ns = ?1 AND owner = ?2 AND dedup_key = ?3"

static const char *const TEXTS[STATEMENTS] = {
    [BY_ID] = "SELECT " ROW_COLUMNS WHERE_ID,
    [BY_ID_BARE] = "SELECT " ROW_COLUMNS_BARE WHERE_ID,
    [BY_KEY] = "SELECT " ROW_COLUMNS WHERE_KEY,
    [BY_KEY_BARE] = "SELECT " ROW_COLUMNS_BARE WHERE_KEY,
    [TOMBSTONE] =
        "SELECT code, at, number, sum, owner, queue FROM tombstone WHERE ns = ?1 AND id = ?2",
    [ATTEMPT] =
        "SELECT " ROW_ATTEMPT_COLUMNS " FROM task JOIN attempt ON attempt.number = task.number"
        " WHERE task.ns = ?1 AND task.id = ?2 AND attempt.attempt = ?3",
    /* The first lower bound is the one that SQLite seeks by: the place, not the 0 of the index. */
    [DUE] = "SELECT " ROW_COLUMNS_BARE " FROM task INDEXED BY task_expiry"
            " WHERE (expires_at, number) > (?2, ?3) AND expires_at <= ?1"
            " AND expires_at > 0 AND status >= 4 AND leased = 0 ORDER BY expires_at, number",
    [NAMESPACES] = "SELECT id, name FROM namespace ORDER BY id",
    [QUEUES] = "SELECT id FROM name WHERE ns = ?1 AND kind = ?2",
    [NUMBERS] = "SELECT number FROM task WHERE queue = ?1 AND status = ?2",
    [LINGERING] = "SELECT number FROM task INDEXED BY task_lingering"
                  " WHERE leased = 1 AND status >= 4",
    [ROWS_BETWEEN] = "SELECT " ROW_COLUMNS_BARE " FROM task WHERE number BETWEEN ?1 AND ?2"
                     " AND (status < 4 OR leased = 1) ORDER BY number",
    [LAST_EVENTS] = "SELECT " ROW_EVENTS_COLUMNS " FROM event WHERE key >= ?1 AND key < ?2"
                    " ORDER BY key DESC LIMIT 1",
    [ROW_FIND] = KIND_ROWS_FIND,
    [ROWS_FROM] = KIND_ROWS_FROM,
    [ROWS_DUE] = KIND_ROWS_DUE,
};

store_code_t load_open (view_t *view, const char *directory, gate_t *gate, store_error_t *error)
{
    return view_open (view, directory, gate, TEXTS, STATEMENTS, error);
}

/* Keys. */

static void bind_id (sqlite3_stmt *statement, int64_t ns, const tmq_id_t *id)
{
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_blob (statement, 2, id->bytes, sizeof (id->bytes), SQLITE_STATIC);
}

static store_code_t key_damaged (const view_t *view, const lookup_t *key, const char *what,
                                 store_error_t *error)
{
    char id[ID_TEXT_SIZE];
    id_format (&key->id, id);
    return store_fail (error, STORE_ERROR_DAMAGED, "%s: %s of task %s is damaged",
                       sqlite3_db_filename (view->db, "main"), what, id);
}

static store_code_t load_row (view_t *view, sqlite3_stmt *statement, lookup_t *key,
                              store_error_t *error)
{
    bool row;
    store_code_t code = view_step (view, statement, &row, error);
    if (code == STORE_OK && row)
        code = view_record (view, statement, key->bodies, &key->record, error);
    sqlite3_reset (statement);
    return code;
}

static store_code_t load_tombstone (view_t *view, int64_t ns, lookup_t *key, store_error_t *error)
{
    bool row;
    sqlite3_stmt *statement = view_statement (view, TOMBSTONE);
    bind_id (statement, ns, &key->id);
    store_code_t code = view_step (view, statement, &row, error);
    if (code == STORE_OK && row) {
        removal_t removal = {.number = sqlite3_column_int64 (statement, 2),
                             .id = key->id,
                             .at = sqlite3_column_int64 (statement, 1),
                             .owner = sql_column_text (statement, 4),
                             .queue = sql_column_text (statement, 5)};
        row_take_tombstone_code (&removal, sqlite3_column_int64 (statement, 0));
        lookup_take_tombstone (key, &removal);
        if ((uint64_t) sqlite3_column_int64 (statement, 3) != row_sum_of_tombstone (&removal, ns))
            code = key_damaged (view, key, "the tombstone", error);
    }
    sqlite3_reset (statement);
    return code;
}

static store_code_t load_id (view_t *view, int64_t ns, lookup_t *key, store_error_t *error)
{
    sqlite3_stmt *statement = view_statement (view, key->bodies ? BY_ID : BY_ID_BARE);
    bind_id (statement, ns, &key->id);
    store_code_t code = load_row (view, statement, key, error);
    if (code == STORE_OK && key->record == NULL)
        code = load_tombstone (view, ns, key, error);
    return code;
}

static store_code_t load_dedup (view_t *view, int64_t ns, lookup_t *key, store_error_t *error)
{
    int64_t owner;
    store_code_t code = names_find (&view->names, NAME_OWNER, ns, key->owner, &owner, error);
    if (code != STORE_OK)
        return code;
    sqlite3_stmt *statement = view_statement (view, key->bodies ? BY_KEY : BY_KEY_BARE);
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_int64 (statement, 2, owner);
    sqlite3_bind_text (statement, 3, key->dedup_key, -1, SQLITE_STATIC);
    return load_row (view, statement, key, error);
}

static store_code_t load_attempt (view_t *view, int64_t ns, lookup_t *key, store_error_t *error)
{
    sqlite3_stmt *statement = view_statement (view, ATTEMPT);
    bind_id (statement, ns, &key->id);
    sqlite3_bind_int64 (statement, 3, key->attempt);
    bool found = false;
    store_code_t code = view_step (view, statement, &found, error);
    if (code == STORE_OK && found) {
        attempt_t attempt;
        if (row_read_attempt (statement, &attempt)) {
            attempt.id = key->id;
            key->attempt_row = attempt_new (&attempt);
        } else {
            code = key_damaged (view, key, "an attempt", error);
        }
    }
    sqlite3_reset (statement);
    return code;
}

static store_code_t load_answers (view_t *view, lookup_t *key, store_error_t *error)
{
    int64_t ns;
    key->record = NULL;
    key->tombstone = TMQ_OK;
    key->attempt_row = NULL;
    key->damaged = false;
    if (key->kind == LOOKUP_ROW)
        return kind_rows_find (view, view_statement (view, ROW_FIND), key, error);
    store_code_t code = names_find (&view->names, NAME_NAMESPACE, 0, key->ns, &ns, error);
    if (code != STORE_OK || ns == 0)
        return code;
    switch (key->kind) {
    case LOOKUP_ID: return load_id (view, ns, key, error);
    case LOOKUP_DEDUP: return load_dedup (view, ns, key, error);
    case LOOKUP_ATTEMPT: return load_attempt (view, ns, key, error);
    case LOOKUP_ROW: break;
    }
    return STORE_OK;
}

/* What is damaged is the answer of its key alone; so is a page of the file that SQLite refuses. */
static store_code_t load_key (view_t *view, lookup_t *key, store_error_t *error)
{
    store_code_t code = load_answers (view, key, error);
    key->damaged = code == STORE_ERROR_DAMAGED || code == STORE_ERROR_CORRUPT;
    return view_go_on (view, code, error);
}

/* One transaction for a part of the keys. What a key finds rests on no other key, so a write-back
 * in between changes nothing: memory has what it writes. */
static store_code_t load_page (view_t *view, lookup_t *keys, size_t count, size_t *done,
                               store_error_t *error)
{
    store_code_t code = view_begin (view, error);
    if (code != STORE_OK)
        return code;
    size_t end = count - *done > LOAD_KEYS_MAX ? *done + LOAD_KEYS_MAX : count;
    do
        code = load_key (view, &keys[(*done)++], error);
    while (code == STORE_OK && *done < end && !view_is_over (view));
    view_end (view);
    return code;
}

store_code_t load_keys (view_t *view, lookup_t *keys, size_t count, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t done = 0; code == STORE_OK && done < count;)
        code = load_page (view, keys, count, &done, error);
    return code;
}

/* The sweep. */

/* The row that the statement stands on. */
static store_code_t sweep_row (view_t *view, const load_dirty_t *dirty, sqlite3_stmt *row,
                               store_sweep_t *sweep, size_t *capacity, store_error_t *error)
{
    sweep->expires_at = sqlite3_column_int64 (row, ROW_EXPIRES_AT);
    sweep->number = sqlite3_column_int64 (row, ROW_NUMBER);
    if (dirty->has (dirty->context, sweep->number))
        return STORE_OK;
    record_t *record;
    store_code_t code = view_record (view, row, false, &record, error);
    if (code != STORE_OK)
        return view_go_on (view, code, error);
    due_t *found = &sweep->found;
    found->records = memory_grow (found->records, capacity, found->count, sizeof (record_t *));
    found->records[found->count++] = record;
    return STORE_OK;
}

static store_code_t due_tasks (view_t *view, const load_dirty_t *dirty, store_sweep_t *sweep,
                               store_error_t *error)
{
    size_t capacity = 0;
    store_code_t code = STORE_OK;
    sqlite3_stmt *statement = view_statement (view, DUE);
    sqlite3_bind_int64 (statement, 1, sweep->wall_ms);
    sqlite3_bind_int64 (statement, 2, sweep->expires_at);
    sqlite3_bind_int64 (statement, 3, sweep->number);
    do {
        code = view_step (view, statement, &sweep->more, error);
        if (code == STORE_OK && sweep->more)
            code = sweep_row (view, dirty, statement, sweep, &capacity, error);
    } while (code == STORE_OK && sweep->more && sweep->found.count < sweep->limit &&
             !view_is_over (view));
    sqlite3_reset (statement);
    if (code != STORE_OK)
        sweep->more =
            false; /* what stands behind the damage is kept; the next pass tells it again */
    return view_go_on (view, code, error);
}

store_code_t load_due (view_t *view, const load_dirty_t *dirty, store_sweep_t *sweep,
                       store_error_t *error)
{
    bool more_rows = false;
    store_code_t code = view_begin (view, error);
    if (code != STORE_OK)
        return code;
    code = due_tasks (view, dirty, sweep, error);
    if (code == STORE_OK)
        code = kind_rows_due (view, view_statement (view, ROWS_DUE), sweep, &more_rows, error);
    view_end (view);
    sweep->more = sweep->more || more_rows;
    return code;
}

/* The live tasks. */

typedef struct numbers {
    int64_t *list;
    size_t count;
    size_t capacity;
} numbers_t;

static void numbers_add (numbers_t *numbers, int64_t number)
{
    numbers->list =
        memory_grow (numbers->list, &numbers->capacity, numbers->count, sizeof (int64_t));
    numbers->list[numbers->count++] = number;
}

static int number_compare (const void *a, const void *b)
{
    int64_t left = *(const int64_t *) a;
    int64_t right = *(const int64_t *) b;
    return (left > right) - (left < right);
}

/* Appends the first column of all rows. */
static store_code_t collect (view_t *view, sqlite3_stmt *statement, numbers_t *numbers,
                             store_error_t *error)
{
    bool row = true;
    store_code_t code = STORE_OK;
    while (code == STORE_OK && row) {
        code = view_step (view, statement, &row, error);
        if (code == STORE_OK && row)
            numbers_add (numbers, sqlite3_column_int64 (statement, 0));
    }
    sqlite3_reset (statement);
    return code;
}

/* The numbers of all live tasks, through the narrow index and not through the rows of all tasks
 * that ever were. */
static store_code_t collect_live (view_t *view, int64_t ns, numbers_t *live, store_error_t *error)
{
    numbers_t queues = {NULL, 0, 0};
    sqlite3_stmt *statement = view_statement (view, QUEUES);
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_int (statement, 2, NAME_QUEUE);
    store_code_t code = collect (view, statement, &queues, error);
    for (size_t i = 0; i < queues.count; i++)
        for (int status = TMQ_STATUS_QUEUED; status < ROW_STATUS_TERMINAL_MIN; status++) {
            statement = view_statement (view, NUMBERS);
            sqlite3_bind_int64 (statement, 1, queues.list[i]);
            sqlite3_bind_int (statement, 2, status);
            if (code == STORE_OK)
                code = collect (view, statement, live, error);
        }
    free (queues.list);
    return code;
}

/* What the pages of a start need. */
typedef struct stream {
    view_t *view;
    live_t out;
    numbers_t spaces;
    numbers_t live;
    size_t next; /* in live */
} stream_t;

static store_code_t visit_row (stream_t *stream, sqlite3_stmt *row, store_error_t *error)
{
    record_t *record;
    if (!live_wants (&stream->out, sqlite3_column_int64 (row, ROW_NUMBER)))
        return STORE_OK;
    store_code_t code = view_record (stream->view, row, false, &record, error);
    if (code == STORE_OK)
        live_task (&stream->out, record);
    return code;
}

/* Visits live rows until the page is over; numbers that lie close together are read in
 * one range. */
static store_code_t visit_page (stream_t *stream, store_error_t *error)
{
    enum { GAP_MAX = 8, RANGE_MAX = 256 };
    const numbers_t *live = &stream->live;
    store_code_t code = STORE_OK;
    while (code == STORE_OK && stream->next < live->count && !view_is_over (stream->view)) {
        size_t first = stream->next;
        size_t last = first;
        while (last + 1 < live->count && last - first < RANGE_MAX &&
               live->list[last + 1] - live->list[last] <= GAP_MAX)
            last++;
        sqlite3_stmt *statement = view_statement (stream->view, ROWS_BETWEEN);
        sqlite3_bind_int64 (statement, 1, live->list[first]);
        sqlite3_bind_int64 (statement, 2, live->list[last]);
        bool row = true;
        while (code == STORE_OK && row) {
            code = view_step (stream->view, statement, &row, error);
            if (code == STORE_OK && row)
                code = visit_row (stream, statement, error);
        }
        stream->next = last + 1;
    }
    return code;
}

static store_code_t visit_rows (stream_t *stream, store_error_t *error)
{
    store_code_t code = STORE_OK;
    while (code == STORE_OK && stream->next < stream->live.count) {
        code = view_begin (stream->view, error);
        if (code != STORE_OK)
            break;
        code = visit_page (stream, error);
        view_end (stream->view);
    }
    if (code == STORE_OK)
        live_tasks_end (&stream->out);
    return code;
}

static store_code_t visit_namespace (stream_t *stream, int64_t ns, store_error_t *error)
{
    const char *name;
    bool row;
    uint64_t last_seq = 0;
    sqlite3_stmt *statement = view_statement (stream->view, LAST_EVENTS);
    sqlite3_bind_int64 (statement, 1, EVENT_KEY (ns, 0));
    sqlite3_bind_int64 (statement, 2, EVENT_KEY (ns + 1, 0));
    store_code_t code = view_step (stream->view, statement, &row, error);
    if (code == STORE_OK && row)
        code = row_check_events (statement, error);
    if (code == STORE_OK && row)
        last_seq =
            (uint64_t) (sqlite3_column_int64 (statement, ROW_EVENTS_KEY) - EVENT_KEY (ns, 0) +
                        sqlite3_column_int64 (statement, ROW_EVENTS_COUNT) - 1);
    sqlite3_reset (statement);
    if (code == STORE_OK)
        code = names_text (&stream->view->names, NAME_NAMESPACE, ns, &name, error);
    if (code == STORE_OK)
        live_space (&stream->out, name, last_seq);
    return code;
}

/* A namespace whose first rows still wait is in the overlay alone. */
static store_code_t visit_new_namespaces (stream_t *stream, store_error_t *error)
{
    store_code_t code = STORE_OK;
    const char *name;
    for (size_t i = 0; code == STORE_OK && (name = live_new_space (&stream->out, i)) != NULL; i++) {
        int64_t ns;
        code = names_find (&stream->view->names, NAME_NAMESPACE, 0, name, &ns, error);
        if (code == STORE_OK && ns == 0)
            live_space (&stream->out, name, 0);
    }
    return code;
}

static store_code_t visit_namespaces (stream_t *stream, store_error_t *error)
{
    store_code_t code = view_begin (stream->view, error);
    if (code != STORE_OK)
        return code;
    for (size_t i = 0; code == STORE_OK && i < stream->spaces.count; i++)
        code = visit_namespace (stream, stream->spaces.list[i], error);
    if (code == STORE_OK)
        code = visit_new_namespaces (stream, error);
    view_end (stream->view);
    return code;
}

static store_code_t plan_live (stream_t *stream, store_error_t *error)
{
    view_t *view = stream->view;
    store_code_t code = view_begin (view, error);
    if (code != STORE_OK)
        return code;
    code = collect (view, view_statement (view, NAMESPACES), &stream->spaces, error);
    for (size_t i = 0; code == STORE_OK && i < stream->spaces.count; i++)
        code = collect_live (view, stream->spaces.list[i], &stream->live, error);
    if (code == STORE_OK)
        code = collect (view, view_statement (view, LINGERING), &stream->live, error);
    view_end (view);
    if (stream->live.count > 1)
        qsort (stream->live.list, stream->live.count, sizeof (int64_t), number_compare);
    return code;
}

static store_code_t visit_kind (stream_t *stream, row_kind_t kind, store_error_t *error)
{
    buf_t *after = NULL;
    store_code_t code = STORE_OK;
    live_kind (&stream->out, kind);
    for (bool done = false; code == STORE_OK && !done;) {
        read_t read = {.kind = READ_ROWS, .row_kind = kind, .after = after, .limit = SIZE_MAX};
        kind_page_t page = {.read = &read, .none_missing = true};
        code = view_begin (stream->view, error);
        if (code != STORE_OK)
            break;
        code =
            kind_rows_page (stream->view, view_statement (stream->view, ROWS_FROM), &page, error);
        view_end (stream->view);
        done = page.done && !read.more;
        for (size_t i = 0; i < read.rows_count; i++)
            live_row (&stream->out, &read.rows[i]);
        if (read.rows_count > 0) {
            buf_drop (after);
            after = buf_keep (read.rows[read.rows_count - 1].key);
        }
        read_clear (&read);
    }
    buf_drop (after);
    live_kind_end (&stream->out, kind);
    return code;
}

static store_code_t visit_kinds (stream_t *stream, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (int kind = 1; code == STORE_OK && stream->out.visitor->row != NULL && kind < ROW_KINDS_MAX;
         kind++)
        if (row_kind_name ((row_kind_t) kind) != NULL &&
            row_kind_home ((row_kind_t) kind) == ROW_HOME_LIVE)
            code = visit_kind (stream, (row_kind_t) kind, error);
    return code;
}

store_code_t load_live (view_t *view, const overlay_t *overlay, const store_live_visitor_t *visitor,
                        store_error_t *error)
{
    stream_t stream = {.view = view};
    live_init (&stream.out, visitor, overlay);
    names_trim (&view->names);
    store_code_t code = visit_kinds (&stream, error);
    if (code == STORE_OK)
        code = plan_live (&stream, error);
    if (code == STORE_OK)
        code = visit_rows (&stream, error);
    if (code == STORE_OK)
        code = visit_namespaces (&stream, error);
    if (code == STORE_ERROR_DAMAGED) {
        store_error_t found = *error;
        code = store_fail (error, STORE_ERROR_CORRUPT,
                           "%.400s, and work goes on from there: restore a backup (taskmqd --check "
                           "names all that is damaged)",
                           found.text);
    }
    free (stream.spaces.list);
    free (stream.live.list);
    return code;
}
