/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/entries.h"

#include "core/data/turn.h"
#include "store/sqlite/order_row.h"

/* Those of ranges first, at the places of their kinds. */
enum {
    QUEUES = RANGE_BY_NUMBER + 1,
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

const char *const ENTRIES_TEXTS[ENTRIES_STATEMENTS] = {
    [RANGE_BY_QUEUE] = "SELECT number FROM task WHERE queue = ?1 AND status = ?2 AND " BETWEEN,
    [RANGE_BY_SESSION] = "SELECT number, queue, status FROM task WHERE session = ?1 AND " BETWEEN,
    /* The label's own index has the order; the task is one step from there. */
    [RANGE_BY_LABEL] = "SELECT l.number, t.queue, t.status, t.session FROM label AS l"
                       " CROSS JOIN task AS t ON t.number = l.number"
                       " WHERE l.ns = ?1 AND l.key = ?5 AND l.value = ?6 AND l.number < ?3"
                       " AND l.number >= ?4 ORDER BY l.number DESC",
    [RANGE_BY_PARENT] = "SELECT number, queue, status, session FROM task WHERE ns = ?1"
                        " AND parent = ?5 AND " BETWEEN,
    [RANGE_BY_NUMBER] = "SELECT number, queue, status FROM task WHERE ns = ?1 AND " BETWEEN,
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

/* Planning. */

static view_t *view_of (void *source)
{
    return ((entries_t *) source)->view;
}

static store_code_t find (void *source, name_kind_t kind, int64_t ns, const char *text, int64_t *id,
                          store_error_t *error)
{
    return names_find (&view_of (source)->names, kind, ns, text, id, error);
}

static store_code_t queues (void *source, int64_t ns, size_t max, int64_t *out, size_t *count,
                            store_error_t *error)
{
    view_t *view = view_of (source);
    sqlite3_stmt *statement = view_statement (view, QUEUES);
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_int (statement, 2, NAME_QUEUE);
    sqlite3_bind_int64 (statement, 3, (sqlite3_int64) max);
    store_code_t code = STORE_OK;
    bool row = true;
    for (*count = 0; code == STORE_OK && row;) {
        code = view_step (view, statement, &row, error);
        if (code == STORE_OK && row)
            out[(*count)++] = sqlite3_column_int64 (statement, 0);
    }
    sqlite3_reset (statement);
    return code;
}

static store_code_t bounds (void *source, int64_t ns, int64_t *lowest, int64_t *highest,
                            store_error_t *error)
{
    (void) ns;
    bool row;
    view_t *view = view_of (source);
    sqlite3_stmt *statement = view_statement (view, BOUNDS);
    store_code_t code = view_step (view, statement, &row, error);
    *lowest = row ? sqlite3_column_int64 (statement, 0) : 0;
    *highest = row ? sqlite3_column_int64 (statement, 1) : 0;
    sqlite3_reset (statement);
    return code;
}

static store_code_t order (void *source, order_t *out, bool *known, store_error_t *error)
{
    bool row;
    view_t *view = view_of (source);
    sqlite3_stmt *statement = view_statement (view, ORDER);
    order_bind (statement);
    store_code_t code = view_step (view, statement, &row, error);
    *known = code == STORE_OK && row && order_unpack_row (out, statement);
    sqlite3_reset (statement);
    return code;
}

static store_code_t created (void *source, int64_t ns, int64_t from, int64_t *number,
                             int64_t *created_at, store_error_t *error)
{
    (void) ns;
    bool row;
    view_t *view = view_of (source);
    sqlite3_stmt *statement = view_statement (view, CREATED);
    sqlite3_bind_int64 (statement, 1, from);
    store_code_t code = view_step (view, statement, &row, error);
    *number = row ? sqlite3_column_int64 (statement, 0) : 0;
    *created_at = row ? sqlite3_column_int64 (statement, 1) : 0;
    sqlite3_reset (statement);
    return code;
}

/* Walking. */

static sqlite3_stmt *range_bind (view_t *view, const range_t *range, int which, int64_t low)
{
    sqlite3_stmt *statement = view_statement (view, (size_t) which);
    sqlite3_bind_int64 (statement, 1, range->key);
    if (range->kind == RANGE_BY_QUEUE)
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

static store_code_t few (void *source, const ranges_t *ranges, const range_t *list, size_t count,
                         int64_t most, int64_t *out, store_error_t *error)
{
    view_t *view = view_of (source);
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < count && *out < most; i++) {
        bool row;
        int which = list[i].kind == RANGE_BY_QUEUE     ? FEW_BY_QUEUE
                    : list[i].kind == RANGE_BY_SESSION ? FEW_BY_SESSION
                                                       : FEW_BY_LABEL;
        sqlite3_stmt *statement = range_bind (view, &list[i], which, ranges->low);
        sqlite3_bind_int64 (statement, 7, most - *out);
        code = view_step (view, statement, &row, error);
        if (code == STORE_OK && row)
            *out += sqlite3_column_int64 (statement, 0);
        sqlite3_reset (statement);
    }
    return code;
}

static store_code_t count_all (void *source, const ranges_t *ranges, const range_t *range,
                               int64_t low, uint64_t *count, store_error_t *error)
{
    (void) ranges;
    bool row;
    view_t *view = view_of (source);
    sqlite3_stmt *statement = range_bind (view, range, COUNT, low);
    store_code_t code = view_step (view, statement, &row, error);
    *count = row ? (uint64_t) sqlite3_column_int64 (statement, 0) : 0;
    sqlite3_reset (statement);
    return code;
}

static store_code_t begin (void *source, const ranges_t *ranges, const range_t *range, int64_t low,
                           store_error_t *error)
{
    (void) ranges;
    (void) error;
    entries_t *self = source;
    self->kind = range->kind;
    self->walk = range_bind (self->view, range, (int) range->kind, low);
    return STORE_OK;
}

static store_code_t next (void *source, range_entry_t *out, bool *found, store_error_t *error)
{
    entries_t *self = source;
    store_code_t code = view_step (self->view, self->walk, found, error);
    if (!*found)
        return code;
    out->number = sqlite3_column_int64 (self->walk, 0);
    if (self->kind == RANGE_BY_QUEUE)
        return code;
    out->queue = sqlite3_column_int64 (self->walk, 1);
    out->status = (tmq_status_t) sqlite3_column_int (self->walk, 2);
    if (self->kind == RANGE_BY_LABEL || self->kind == RANGE_BY_PARENT)
        out->session = sqlite3_column_int64 (self->walk, 3);
    return code;
}

static void end (void *source)
{
    sqlite3_reset (((entries_t *) source)->walk);
}

/* Of one task. */

static store_code_t has_label (void *source, int64_t ns, const label_t *label, int64_t number,
                               bool *has, store_error_t *error)
{
    view_t *view = view_of (source);
    sqlite3_stmt *statement = view_statement (view, HAS_LABEL);
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_text (statement, 2, label->key, -1, SQLITE_STATIC);
    sqlite3_bind_text (statement, 3, label->value, -1, SQLITE_STATIC);
    sqlite3_bind_int64 (statement, 4, number);
    store_code_t code = view_step (view, statement, has, error);
    sqlite3_reset (statement);
    return code;
}

store_code_t entries_find_marks (view_t *view, const filter_t *filter, int64_t number, bool *has,
                                 store_error_t *error)
{
    int64_t ns = 0;
    entries_t source = {.view = view};
    store_code_t code = STORE_OK;
    *has = true;
    for (size_t i = 0; code == STORE_OK && *has && i < filter->labels_count; i++) {
        if (!label_is_mark (&filter->labels[i]))
            continue;
        if (ns == 0)
            code = find (&source, NAME_NAMESPACE, 0, filter->ns, &ns, error);
        if (code == STORE_OK)
            code = has_label (&source, ns, &filter->labels[i], number, has, error);
    }
    return code;
}

static store_code_t whose (void *source, int64_t number, bool *found, const char **queue,
                           const char **owner, store_error_t *error)
{
    view_t *view = view_of (source);
    sqlite3_stmt *statement = view_statement (view, WHOSE);
    sqlite3_bind_int64 (statement, 1, number);
    store_code_t code = view_step (view, statement, found, error);
    if (code == STORE_OK && *found) {
        int64_t queue_id = sqlite3_column_int64 (statement, 0);
        int64_t owner_id = sqlite3_column_int64 (statement, 1);
        code = names_text (&view->names, NAME_QUEUE, queue_id, queue, error);
        if (code == STORE_OK)
            code = names_text (&view->names, NAME_OWNER, owner_id, owner, error);
    }
    sqlite3_reset (statement);
    return code;
}

static bool is_over (void *source)
{
    return view_is_over (view_of (source));
}

const range_calls_t ENTRIES_CALLS = {
    .find = find,
    .queues = queues,
    .bounds = bounds,
    .order = order,
    .created = created,
    .few = few,
    .count = count_all,
    .begin = begin,
    .next = next,
    .end = end,
    .has_label = has_label,
    .whose = whose,
    .is_over = is_over,
};
