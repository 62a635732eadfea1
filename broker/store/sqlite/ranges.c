/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/ranges.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/planted.h"
#include "core/data/turn.h"
#include "store/select.h"
#include "store/sqlite/order.h"

enum {
    BY_QUEUE,
    BY_SESSION,
    BY_LABEL,
    BY_PARENT,
    BY_NUMBER,
    QUEUES,
    CREATED,
    ORDER,
    BOUNDS,
    COUNT,
    HAS_LABEL,
    FEW_BY_QUEUE,
    FEW_BY_SESSION,
    FEW_BY_LABEL,
    WHOSE
};

#define BETWEEN "number < ?3 AND number >= ?4 ORDER BY number DESC"
#define LABELLED "label WHERE ns = ?1 AND key = ?5 AND value = ?6 AND number < ?3 AND number >= ?4"
/* At most ?7 of what the rest of the text finds. */
#define FEW(REST) "SELECT count (*) FROM (SELECT 1 FROM " REST " LIMIT ?7)"

const char *const RANGES_TEXTS[RANGES_STATEMENTS] = {
    [BY_QUEUE] = "SELECT number FROM task WHERE queue = ?1 AND status = ?2 AND " BETWEEN,
    [BY_SESSION] = "SELECT number, queue, status FROM task WHERE session = ?1 AND " BETWEEN,
    /* The label's own index has the order; the task is one step from there. */
    [BY_LABEL] = "SELECT l.number, t.queue, t.status, t.session FROM label AS l"
                 " CROSS JOIN task AS t ON t.number = l.number"
                 " WHERE l.ns = ?1 AND l.key = ?5 AND l.value = ?6 AND l.number < ?3"
                 " AND l.number >= ?4 ORDER BY l.number DESC",
    [BY_PARENT] = "SELECT number, queue, status, session FROM task WHERE ns = ?1 AND parent = ?5"
                  " AND " BETWEEN,
    [BY_NUMBER] = "SELECT number, queue, status FROM task WHERE ns = ?1 AND " BETWEEN,
    [QUEUES] = "SELECT id FROM name WHERE ns = ?1 AND kind = ?2 LIMIT ?3",
    [CREATED] = "SELECT number, created_at FROM task WHERE number >= ?1 ORDER BY number LIMIT 1",
    [ORDER] = ORDER_READ,
    [BOUNDS] = "SELECT (SELECT min (number) FROM task), (SELECT max (number) FROM task)",
    [COUNT] = "SELECT count (*) FROM task WHERE queue = ?1 AND status = ?2 AND number < ?3 AND "
              "number >= ?4",
    [HAS_LABEL] = "SELECT 1 FROM label WHERE ns = ?1 AND key = ?2 AND value = ?3 AND number = ?4",
    [FEW_BY_QUEUE] = FEW ("task WHERE queue = ?1 AND status = ?2 AND number < ?3 AND number >= ?4"),
    [FEW_BY_SESSION] = FEW ("task WHERE session = ?1 AND number < ?3 AND number >= ?4"),
    [FEW_BY_LABEL] = FEW (LABELLED),
    [WHOSE] = "SELECT queue, owner FROM task WHERE number = ?1",
};

enum {
    RANGE_BUFFER = 64,
    /* More pairs of queue and status than this are not merged: the tasks are walked by number. */
    RANGES_MAX = 512,
    ROWS_BETWEEN_LOOKS = 64, /* at the clock */
    COUNT_NUMBERS = 16384,   /* counted at once: 1 to 2 ms if all of them are in the range */
    ROWS_COUNTED = 8,        /* by SQLite, in the time that it takes to look at one here */
    FEW_MAX = 1000           /* entries counted to find out which condition has the fewest */
};

/* A statement with its key, and the numbers read ahead from it. */
typedef struct range {
    int statement;
    int64_t key; /* queue, session or namespace */
    tmq_status_t status;
    const label_t *label;   /* BY_LABEL */
    const tmq_id_t *parent; /* BY_PARENT */
    int64_t high;           /* numbers below it are still to be read */
    bool exhausted;
    size_t vain; /* entries looked at that were not wanted */
    int64_t buffer[RANGE_BUFFER];
    size_t next;
    size_t count;
} range_t;

static range_t *range_add (ranges_t *self, int statement, int64_t key, tmq_status_t status)
{
    self->list = memory_grow (self->list, &self->capacity, self->count, sizeof (range_t));
    range_t *range = &self->list[self->count++];
    range->statement = statement;
    range->key = key;
    range->status = status;
    range->label = NULL;
    range->parent = NULL;
    range->high = self->high;
    range->exhausted = false;
    range->next = range->count = range->vain = 0;
    return range;
}

static void queue_add (ranges_t *self, int64_t id)
{
    self->queues =
        memory_grow (self->queues, &self->queues_capacity, self->queues_count, sizeof (int64_t));
    self->queues[self->queues_count++] = id;
}

/* Planning. */

static store_code_t find_queues (ranges_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < self->filter->queues_count; i++) {
        int64_t id;
        code = names_find (&self->view->names, NAME_QUEUE, self->ns, self->filter->queues[i], &id,
                           error);
        if (code == STORE_OK && id != 0)
            queue_add (self, id);
    }
    if (self->filter->queues_count > 0)
        return code;
    sqlite3_stmt *statement = view_statement (self->view, QUEUES);
    sqlite3_bind_int64 (statement, 1, self->ns);
    sqlite3_bind_int (statement, 2, NAME_QUEUE);
    sqlite3_bind_int (statement, 3,
                      RANGES_MAX + 1); /* with more, queues are not walked one by one */
    bool row = true;
    while (code == STORE_OK && row) {
        code = view_step (self->view, statement, &row, error);
        if (code == STORE_OK && row)
            queue_add (self, sqlite3_column_int64 (statement, 0));
    }
    sqlite3_reset (statement);
    return code;
}

/* The first number from low on, below high, whose task was accepted at or after a time. There the
 * times rise with the numbers. */
static store_code_t number_since (ranges_t *self, int64_t low, int64_t high, int64_t since_ms,
                                  int64_t *number, store_error_t *error)
{
    int64_t end = high;
    store_code_t code = STORE_OK;
    while (code == STORE_OK && low < high) {
        int64_t middle = low + (high - low) / 2;
        bool row;
        sqlite3_stmt *statement = view_statement (self->view, CREATED);
        sqlite3_bind_int64 (statement, 1, middle);
        code = view_step (self->view, statement, &row, error);
        if (code != STORE_OK)
            break;
        int64_t found = row ? sqlite3_column_int64 (statement, 0) : end;
        if (found >= end || sqlite3_column_int64 (statement, 1) >= since_ms)
            high = middle;
        else
            low = found + 1;
        sqlite3_reset (statement);
    }
    *number = low;
    return code;
}

/* Where times rise, the part that the filter asks for. */
static store_code_t add_window (ranges_t *self, int64_t low, int64_t high, bool by_time,
                                store_error_t *error)
{
    int64_t since = low;
    int64_t until = high;
    store_code_t code = STORE_OK;
    if (!by_time && self->filter->created_since > 0)
        code = number_since (self, low, high, self->filter->created_since, &since, error);
    if (code == STORE_OK && !by_time && self->filter->created_until > 0)
        code = number_since (self, low, high, self->filter->created_until, &until, error);
    if (code == STORE_OK && since < until)
        self->windows[self->windows_count++] = (struct window){since, until, by_time};
    return code;
}

static int64_t within (int64_t number, int64_t low, int64_t high)
{
    return number < low ? low : number > high ? high : number;
}

/* *from, *to: among these numbers there are tasks that are older than one before them. What is not
 * known is all of them. */
static store_code_t find_disorder (ranges_t *self, int64_t *from, int64_t *to, store_error_t *error)
{
    bool row;
    order_t order = {.first = *from, .last = *to - 1};
    sqlite3_stmt *statement = view_statement (self->view, ORDER);
    order_bind (statement);
    store_code_t code = view_step (self->view, statement, &row, error);
    if (code == STORE_OK && row)
        order_unpack (&order, statement);
    sqlite3_reset (statement);
    int64_t low = *from;
    int64_t high = *to;
    *from = within (order.last == 0 ? low : order.first, low, high);
    *to = within (order.last == 0 ? low : order.last + 1, *from, high);
    return code;
}

/* Goes to the next lower window when this one is at its end. False: there is none. */
static bool window_next (ranges_t *self)
{
    while (self->high <= self->low && self->windows_count > 0) {
        const struct window *window = &self->windows[--self->windows_count];
        self->low = window->low;
        self->high = window->high;
        self->by_time = window->by_time;
        for (size_t i = 0; i < self->count; i++) {
            self->list[i].high = self->high;
            self->list[i].exhausted = false;
        }
    }
    return self->high > self->low;
}

static store_code_t find_bounds (ranges_t *self, int64_t before_number, store_error_t *error)
{
    bool row;
    sqlite3_stmt *statement = view_statement (self->view, BOUNDS);
    store_code_t code = view_step (self->view, statement, &row, error);
    int64_t low = 1;
    int64_t high = 1;
    if (code == STORE_OK && row && sqlite3_column_type (statement, 0) != SQLITE_NULL) {
        low = sqlite3_column_int64 (statement, 0);
        high = sqlite3_column_int64 (statement, 1) + 1;
    }
    sqlite3_reset (statement);
    if (before_number > 0 && before_number < high)
        high = before_number;
    int64_t from = low;
    int64_t to = high;
    if (self->filter->created_since == 0 && self->filter->created_until == 0)
        to = from; /* whatever their times */
    else if (code == STORE_OK)
        code = find_disorder (self, &from, &to, error);
    if (code == STORE_OK)
        code = add_window (self, low, from, false, error);
    if (code == STORE_OK)
        code = add_window (self, from, to, true, error);
    if (code == STORE_OK)
        code = add_window (self, to, high, false, error);
    window_next (self);
    return code;
}

static void plan_queues (ranges_t *self)
{
    size_t statuses = self->filter->statuses_count > 0 ? self->filter->statuses_count
                                                       : (size_t) TMQ_STATUS_CANCELLED;
    if (self->queues_count * statuses > RANGES_MAX) {
        range_add (self, BY_NUMBER, self->ns, TMQ_STATUS_NONE);
        return;
    }
    for (size_t i = 0; i < self->queues_count; i++)
        for (tmq_status_t status = TMQ_STATUS_QUEUED; status <= TMQ_STATUS_CANCELLED; status++)
            if (select_wants_status (self->filter, status))
                range_add (self, BY_QUEUE, self->queues[i], status);
}

static store_code_t plan_sessions (ranges_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < self->filter->sessions_count; i++) {
        int64_t id;
        code = names_find (&self->view->names, NAME_SESSION, self->ns, self->filter->sessions[i],
                           &id, error);
        if (code != STORE_OK || id == 0)
            continue;
        assert (self->sessions_count < TMQ_FILTER_VALUES_MAX);
        self->sessions[self->sessions_count++] = id;
        range_add (self, BY_SESSION, id, TMQ_STATUS_NONE);
    }
    return code;
}

/* What a task has many parts of is rare, so nothing else is walked. */
static void plan_parents (ranges_t *self)
{
    self->count = 0;
    for (size_t i = 0; i < self->filter->parents_count; i++)
        range_add (self, BY_PARENT, self->ns, TMQ_STATUS_NONE)->parent = &self->filter->parents[i];
}

/* Which conditions are the fewest. */

static sqlite3_stmt *range_bind (const ranges_t *self, const range_t *range, int which, int64_t low)
{
    sqlite3_stmt *statement = view_statement (self->view, (size_t) which);
    sqlite3_bind_int64 (statement, 1, range->key);
    if (range->statement == BY_QUEUE)
        sqlite3_bind_int (statement, 2, (int) range->status);
    sqlite3_bind_int64 (statement, 3, range->high);
    sqlite3_bind_int64 (statement, 4, low);
    if (range->parent != NULL)
        sqlite3_bind_blob (statement, 5, range->parent->bytes, sizeof (range->parent->bytes),
                           SQLITE_STATIC);
    if (range->label != NULL) {
        sqlite3_bind_text (statement, 5, range->label->key, -1, SQLITE_STATIC);
        sqlite3_bind_text (statement, 6, range->label->value, -1, SQLITE_STATIC);
    }
    return statement;
}

/* Adds the entries of a range to *few, as long as these are fewer than most. */
static store_code_t count_few (const ranges_t *self, const range_t *range, int64_t most,
                               int64_t *few, store_error_t *error)
{
    int which = range->statement == BY_QUEUE     ? FEW_BY_QUEUE
                : range->statement == BY_SESSION ? FEW_BY_SESSION
                                                 : FEW_BY_LABEL;
    if (range->statement == BY_NUMBER || *few >= most) {
        *few = most;
        return STORE_OK;
    }
    bool row;
    sqlite3_stmt *statement = range_bind (self, range, which, self->low);
    sqlite3_bind_int64 (statement, 7, most - *few);
    store_code_t code = view_step (self->view, statement, &row, error);
    if (code == STORE_OK && row)
        *few += sqlite3_column_int64 (statement, 0);
    sqlite3_reset (statement);
    return code;
}

/* Walks the entries of the rarest label instead, unless the ranges have fewer. What a walk does not
 * have by itself is asked of each of its entries. */
static store_code_t plan_labels (ranges_t *self, store_error_t *error)
{
    const filter_t *filter = self->filter;
    bool narrow = filter->queues_count + filter->sessions_count + filter->statuses_count > 0;
    int64_t fewest = FEW_MAX + 1; /* so many: a label is never worse than that */
    int64_t few = 0;
    const label_t *rarest = NULL;
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && narrow && i < self->count; i++)
        code = count_few (self, &self->list[i], FEW_MAX, &few, error);
    if (narrow && few < FEW_MAX)
        fewest = few;
    for (size_t i = 0; code == STORE_OK && i < filter->labels_count; i++) {
        range_t range = {.statement = BY_LABEL,
                         .key = self->ns,
                         .label = &filter->labels[i],
                         .high = self->high};
        few = 0;
        code = count_few (self, &range, fewest < FEW_MAX ? fewest : FEW_MAX, &few, error);
        if (few < fewest) {
            fewest = few;
            rarest = &filter->labels[i];
        }
    }
    if (code == STORE_OK && rarest != NULL) {
        self->count = 0;
        range_add (self, BY_LABEL, self->ns, TMQ_STATUS_NONE)->label = rarest;
    }
    return code;
}

/* Walks what belongs to the owners instead, unless the ranges have less. Only those whom somebody
 * else acts for have an index of theirs: of others there are few, and each has many tasks. */
static store_code_t plan_owners (ranges_t *self, store_error_t *error)
{
    const filter_t *filter = self->filter;
    bool narrow = filter->queues_count + filter->sessions_count + filter->statuses_count +
                      filter->labels_count >
                  0;
    int64_t few = 0;
    int64_t theirs = 0;
    store_code_t code = STORE_OK;
    for (size_t i = 0; i < filter->owners_count; i++) {
        if (!access_is_behalf (filter->owners[i]))
            return STORE_OK;
        self->owners[i] = (label_t){RECORD_MARK_OWNER, filter->owners[i]};
    }
    for (size_t i = 0; code == STORE_OK && narrow && i < self->count; i++)
        code = count_few (self, &self->list[i], FEW_MAX, &few, error);
    for (size_t i = 0; code == STORE_OK && narrow && i < filter->owners_count; i++) {
        range_t range = {
            .statement = BY_LABEL, .key = self->ns, .label = &self->owners[i], .high = self->high};
        code = count_few (self, &range, few, &theirs, error);
    }
    if (code != STORE_OK || (narrow && few < FEW_MAX && theirs >= few))
        return code;
    self->count = 0;
    for (size_t i = 0; i < filter->owners_count; i++) /* each once, or it would count twice */
        if (i == 0 || !select_contains (filter->owners, i, filter->owners[i]))
            range_add (self, BY_LABEL, self->ns, TMQ_STATUS_NONE)->label = &self->owners[i];
    return STORE_OK;
}

store_code_t ranges_open (ranges_t *self, view_t *view, const filter_t *filter,
                          int64_t before_number, store_error_t *error)
{
    *self = (ranges_t){.view = view, .filter = filter};
    names_trim (&view->names);
    store_code_t code = names_find (&view->names, NAME_NAMESPACE, 0, filter->ns, &self->ns, error);
    if (code != STORE_OK || self->ns == 0)
        return code;
    code = find_bounds (self, before_number, error);
    if (code == STORE_OK)
        code = find_queues (self, error);
    if (code != STORE_OK)
        return code;
    if (filter->sessions_count > 0)
        code = plan_sessions (self, error);
    else if (filter->parents_count == 0)
        plan_queues (self);
    if (filter->parents_count > 0)
        plan_parents (self);
    else if (code == STORE_OK && filter->labels_count > 0)
        code = plan_labels (self, error);
    if (code == STORE_OK && filter->parents_count == 0 && filter->owners_count > 0)
        code = plan_owners (self, error);
    return code;
}

void ranges_close (ranges_t *self)
{
    free (self->queues);
    free (self->list);
}

/* Walking. */

static bool holds (const int64_t *ids, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static store_code_t has_label (view_t *view, int64_t ns, const label_t *label, int64_t number,
                               bool *has, store_error_t *error)
{
    sqlite3_stmt *statement = view_statement (view, HAS_LABEL);
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_text (statement, 2, label->key, -1, SQLITE_STATIC);
    sqlite3_bind_text (statement, 3, label->value, -1, SQLITE_STATIC);
    sqlite3_bind_int64 (statement, 4, number);
    store_code_t code = view_step (view, statement, has, error);
    sqlite3_reset (statement);
    return code;
}

/* The labels that the range is not walked by. */
static store_code_t has_labels (const ranges_t *self, const range_t *range, int64_t number,
                                bool *has, store_error_t *error)
{
    store_code_t code = STORE_OK;
    *has = true;
    for (size_t i = 0; code == STORE_OK && *has && i < self->filter->labels_count; i++) {
        const label_t *label = &self->filter->labels[i];
        bool forgotten =
            self->view->planted_bug == ENGINE_BUG_MARK_FORGOTTEN && range->label != NULL;
        if (label != range->label && !forgotten)
            code = has_label (self->view, self->ns, label, number, has, error);
    }
    return code;
}

store_code_t ranges_find_marks (view_t *view, const filter_t *filter, int64_t number, bool *has,
                                store_error_t *error)
{
    int64_t ns = 0;
    store_code_t code = STORE_OK;
    *has = true;
    for (size_t i = 0; code == STORE_OK && *has && i < filter->labels_count; i++) {
        if (!label_is_mark (&filter->labels[i]))
            continue;
        if (ns == 0)
            code = names_find (&view->names, NAME_NAMESPACE, 0, filter->ns, &ns, error);
        if (code == STORE_OK)
            code = has_label (view, ns, &filter->labels[i], number, has, error);
    }
    return code;
}

/* A range by queue and status holds only what is wanted; in the others each row is looked at. */
static bool fits (const ranges_t *self, const range_t *range, sqlite3_stmt *row)
{
    const filter_t *filter = self->filter;
    if (range->statement == BY_QUEUE)
        return true;
    bool forgotten = self->view->planted_bug == ENGINE_BUG_STATUS_FORGOTTEN && range->label != NULL;
    if (!forgotten && !select_wants_status (filter, (tmq_status_t) sqlite3_column_int (row, 2)))
        return false;
    if (filter->queues_count > 0 &&
        !holds (self->queues, self->queues_count, sqlite3_column_int64 (row, 1)))
        return false;
    bool has_session = range->statement == BY_LABEL || range->statement == BY_PARENT;
    return !has_session || filter->sessions_count == 0 ||
           holds (self->sessions, self->sessions_count, sqlite3_column_int64 (row, 3));
}

store_code_t ranges_see (const ranges_t *self, int64_t number, bool *seen, store_error_t *error)
{
    bool row;
    const char *queue = "";
    const char *owner = "";
    *seen = self->filter->scope == NULL && self->filter->owners_count == 0;
    if (*seen)
        return STORE_OK;
    sqlite3_stmt *statement = view_statement (self->view, WHOSE);
    sqlite3_bind_int64 (statement, 1, number);
    store_code_t code = view_step (self->view, statement, &row, error);
    if (code == STORE_OK && row) {
        name_numbers_t *names = &self->view->names;
        code = names_text (names, NAME_QUEUE, sqlite3_column_int64 (statement, 0), &queue, error);
        if (code == STORE_OK)
            code =
                names_text (names, NAME_OWNER, sqlite3_column_int64 (statement, 1), &owner, error);
        *seen = code == STORE_OK && filter_sees (self->filter, queue, owner) &&
                select_contains (self->filter->owners, self->filter->owners_count, owner);
    }
    sqlite3_reset (statement);
    return code;
}

/* Where times do not rise with the numbers. */
static store_code_t was_created_then (const ranges_t *self, int64_t number, bool *then,
                                      store_error_t *error)
{
    bool row;
    const filter_t *filter = self->filter;
    sqlite3_stmt *statement = view_statement (self->view, CREATED);
    sqlite3_bind_int64 (statement, 1, number);
    store_code_t code = view_step (self->view, statement, &row, error);
    int64_t at = row ? sqlite3_column_int64 (statement, 1) : 0;
    *then = code == STORE_OK && row &&
            (filter->created_since == 0 || at >= filter->created_since) &&
            (filter->created_until == 0 || at < filter->created_until);
    sqlite3_reset (statement);
    return code;
}

static store_code_t is_wanted (ranges_t *self, range_t *range, sqlite3_stmt *row, bool *wanted,
                               store_error_t *error)
{
    store_code_t code = STORE_OK;
    *wanted = fits (self, range, row);
    if (*wanted && self->by_time)
        code = was_created_then (self, sqlite3_column_int64 (row, 0), wanted, error);
    if (*wanted && code == STORE_OK && self->filter->labels_count > 0)
        code = has_labels (self, range, sqlite3_column_int64 (row, 0), wanted, error);
    if (*wanted && code == STORE_OK)
        code = ranges_see (self, sqlite3_column_int64 (row, 0), wanted, error);
    range->vain += !*wanted;
    return code;
}

/* Each range has its share of the caller's limit, so that a page gets on in all of them. */
static bool is_weary (const ranges_t *self, const range_t *range)
{
    size_t share = self->vain_max / self->count;
    return self->vain_max > 0 && range->vain >= (share > 0 ? share : 1);
}

/* Looks at the rows of a range from `low` on, until `take` has enough, the range ends (then it is
 * exhausted) or the page is over. */
typedef bool take_t (range_t *range, void *context); /* one that is wanted, at range->high */

static store_code_t range_walk (ranges_t *self, range_t *range, int64_t low, take_t *take,
                                void *context, bool *over, store_error_t *error)
{
    sqlite3_stmt *statement = range_bind (self, range, range->statement, low);
    store_code_t code = STORE_OK;
    bool enough = false;
    for (size_t rows = 1; code == STORE_OK && !enough && !*over; rows++) {
        bool row;
        bool wanted = false;
        code = view_step (self->view, statement, &row, error);
        if (code != STORE_OK)
            break;
        range->exhausted = !row;
        if (!row)
            break;
        range->high = sqlite3_column_int64 (statement, 0);
        code = is_wanted (self, range, statement, &wanted, error);
        if (code == STORE_OK && wanted)
            enough = take (range, context);
        enough = enough || (self->lists && is_weary (self, range));
        *over = rows % ROWS_BETWEEN_LOOKS == 0 && view_is_over (self->view);
    }
    sqlite3_reset (statement);
    return code;
}

static bool keep_number (range_t *range, void *context)
{
    (void) context;
    range->buffer[range->count++] = range->high;
    return range->count == RANGE_BUFFER;
}

/* Reads on until there is something in the buffer, the range ends or the page is over. */
static store_code_t range_fill (ranges_t *self, range_t *range, bool *over, store_error_t *error)
{
    range->next = range->count = 0;
    return range_walk (self, range, self->low, keep_number, NULL, over, error);
}

/* Of this window. */
static store_code_t next_number (ranges_t *self, int64_t *number, bool *over, store_error_t *error)
{
    int64_t unknown = 0; /* what is below it, in a range that looked long enough */
    *number = 0;
    *over = false;
    for (size_t i = 0; i < self->count; i++) {
        range_t *range = &self->list[i];
        while (range->next == range->count && !range->exhausted && !is_weary (self, range) &&
               !*over) {
            store_code_t code = range_fill (self, range, over, error);
            if (code != STORE_OK)
                return code;
        }
        if (*over && range->next == range->count)
            return STORE_OK;
        *over = false;
        if (range->next < range->count && range->buffer[range->next] > *number)
            *number = range->buffer[range->next];
        if (range->next == range->count && !range->exhausted && range->high > unknown)
            unknown = range->high;
    }
    if (unknown > *number) {
        *number = 0;
        *over = self->ended_early = true;
        return STORE_OK;
    }
    for (size_t i = 0; i < self->count; i++) {
        range_t *range = &self->list[i];
        if (range->next < range->count && range->buffer[range->next] == *number)
            range->next++; /* in all of them: a task may have changed its range meanwhile */
    }
    return STORE_OK;
}

store_code_t ranges_next (ranges_t *self, int64_t *number, bool *over, store_error_t *error)
{
    store_code_t code = next_number (self, number, over, error);
    while (code == STORE_OK && *number == 0 && !*over && self->windows_count > 0) {
        self->high = self->low; /* it is at its end */
        window_next (self);
        code = next_number (self, number, over, error);
    }
    return code;
}

bool ranges_ended_early (const ranges_t *self, int64_t *below)
{
    *below = 0;
    if (!self->ended_early)
        return false;
    for (size_t i = 0; i < self->count; i++) {
        const range_t *range = &self->list[i];
        int64_t next = range->next < range->count ? range->buffer[range->next] + 1
                       : range->exhausted         ? 0
                                                  : range->high;
        bool lowest = self->view->planted_bug == ENGINE_BUG_EARLY_END_SKIPS;
        if (lowest ? next > 0 && (*below == 0 || next < *below) : next > *below)
            *below = next;
    }
    return true;
}

/* Counting. */

static bool count_one (range_t *range, void *context)
{
    (void) range;
    ++*(uint64_t *) context;
    return false;
}

/* Everything in such a range is wanted, so SQLite counts without handing out a row. */
static store_code_t count_all (ranges_t *self, range_t *range, uint64_t *count,
                               store_error_t *error)
{
    bool row;
    sqlite3_stmt *statement = range_bind (self, range, COUNT, self->slice_low);
    store_code_t code = view_step (self->view, statement, &row, error);
    if (code != STORE_OK)
        return code;
    uint64_t counted = (uint64_t) sqlite3_column_int64 (statement, 0);
    sqlite3_reset (statement);
    *count += counted;
    self->looks += 1 + counted / ROWS_COUNTED;
    range->high = self->slice_low;
    return STORE_OK;
}

static store_code_t count_rows (ranges_t *self, range_t *range, uint64_t *count, bool *over,
                                store_error_t *error)
{
    uint64_t counted = *count;
    size_t vain = range->vain;
    store_code_t code = range_walk (self, range, self->slice_low, count_one, count, over, error);
    self->looks += 1 + *count - counted + range->vain - vain;
    if (range->exhausted)
        range->high = self->slice_low;
    return code;
}

/* What is left of the slice in all ranges. */
static store_code_t count_slice (ranges_t *self, uint64_t *count, bool *over, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (; code == STORE_OK && self->counting < self->count; self->counting++) {
        range_t *range = &self->list[self->counting];
        bool all = range->statement == BY_QUEUE && self->filter->labels_count == 0 &&
                   self->filter->owners_count == 0 && self->filter->scope == NULL && !self->by_time;
        code = all ? count_all (self, range, count, error)
                   : count_rows (self, range, count, over, error);
        if (code == STORE_OK && range->high > self->slice_low)
            break;
    }
    return code;
}

/* Numbers are counted in slices, each in all ranges: so there is one place to go on from. */
store_code_t ranges_count (ranges_t *self, uint64_t *count, bool *over, int64_t *below,
                           store_error_t *error)
{
    store_code_t code = STORE_OK;
    *over = false;
    *below = 0;
    while (code == STORE_OK && !*over && *below == 0 && self->count > 0 && window_next (self)) {
        if (self->slice_low == 0)
            self->slice_low =
                self->high - COUNT_NUMBERS > self->low ? self->high - COUNT_NUMBERS : self->low;
        code = count_slice (self, count, over, error);
        if (code != STORE_OK || self->counting < self->count)
            break;
        self->high = self->slice_low;
        self->slice_low = 0;
        self->counting = 0;
        if (window_next (self)) {
            *over = view_is_over (self->view);
            *below = self->vain_max > 0 && self->looks >= self->vain_max ? self->high : 0;
        }
    }
    return code;
}
