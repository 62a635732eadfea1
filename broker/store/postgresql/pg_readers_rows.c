/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads of tasks, attempts and rows. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/turn.h"
#include "ids.h"
#include "store/postgresql/pg_readers_page.h"
#include "store/postgresql/pg_rows.h"
#include "store/select.h"

enum {
    RECORDS_LABELS = PG_ROW_BARE_END, /* a column of PG_RECORDS */
    WINDOW_NUMBERS = 256 /* of tasks that are looked for at once: they have as many namespaces */
};

static size_t smaller (size_t a, size_t b)
{
    return a < b ? a : b;
}

store_code_t pg_page_read_row (pg_page_t *self, const PGresult *result, int row, bool bodies,
                               const char *ns, record_t **out, store_error_t *error)
{
    *out = NULL;
    store_code_t code = pg_row_read (result, row, 0, ns, bodies, self->desk->arena, out, error);
    return code == STORE_OK ? code : pg_store_go_on (self->store, code, error);
}

/* Tasks with their bodies. */

store_code_t pg_page_whole_rows (pg_page_t *self, const pg_wanted_t *list,
                                 const int64_t *last_events, size_t count, PGresult **out,
                                 store_error_t *error)
{
    pg_params_t *params = pg_page_params (self);
    pg_array_t *names = pg_page_array (self, 0, PG_TEXT);
    pg_array_t *numbers = pg_page_array (self, 1, PG_INT8);
    pg_array_t *events = pg_page_array (self, 2, PG_INT8);
    for (size_t i = 0; i < count; i++) {
        pg_put_text (&names->bytes, list[i].ns);
        pg_put_int8 (&numbers->bytes, list[i].number);
        pg_put_int8 (&events->bytes, last_events == NULL ? -1 : last_events[i]);
    }
    names->count = numbers->count = events->count = (int32_t) count;
    pg_param_array (params, names);
    pg_param_array (params, numbers);
    pg_param_array (params, events);
    return pg_page_run (self, PG_WHOLE_ROWS, out, error);
}

size_t pg_page_whole_count (const pg_wanted_t *list, size_t count)
{
    int64_t bytes = 0;
    size_t taken = 0;
    while (taken < count && taken < PG_READERS_ROWS &&
           (taken == 0 || bytes + list[taken].bytes <= PG_READERS_BYTES))
        bytes += list[taken++].bytes;
    return taken;
}

/* Tasks by their numbers. */

/* The filter's marks of turns, which no record has; the others at their places are NULL. *wanted:
 * the bits of those that must be there. */
static void add_marks (pg_page_t *self, uint64_t *wanted)
{
    const filter_t *filter = &self->read->filter;
    pg_array_t *keys = pg_page_array (self, 3, PG_TEXT);
    pg_array_t *values = pg_page_array (self, 4, PG_BYTEA);
    *wanted = 0;
    for (size_t i = 0; i < filter->labels_count; i++) {
        const label_t *label = &filter->labels[i];
        if (!label_is_mark (label))
            continue;
        *wanted |= UINT64_C (1) << keys->count++;
        pg_put_text (&keys->bytes, label->key);
        pg_put_bytes (&values->bytes, label->value, strlen (label->value));
        values->count++;
    }
    pg_param_array (&self->desk->params, keys);
    pg_param_array (&self->desk->params, values);
}

/* The rows of these tasks, in no order. marked: *wanted is what column RECORDS_LABELS must have. */
static store_code_t fetch_records (pg_page_t *self, const int64_t *numbers, size_t count,
                                   bool marked, uint64_t *wanted, PGresult **out,
                                   store_error_t *error)
{
    pg_params_t *params = pg_page_params (self);
    pg_array_t *array = pg_page_array (self, 0, PG_INT8);
    for (size_t i = 0; i < count; i++)
        pg_put_int8 (&array->bytes, numbers[i]);
    array->count = (int32_t) count;
    pg_param_int4 (params, self->ns);
    pg_param_array (params, array);
    if (marked) {
        add_marks (self, wanted);
    } else {
        pg_param_array (params, pg_page_array (self, 3, PG_TEXT));
        pg_param_array (params, pg_page_array (self, 4, PG_BYTEA));
    }
    return pg_page_run (self, PG_RECORDS, out, error);
}

/* The row of this number; -1: there is none. */
static int row_of (const PGresult *result, int64_t number)
{
    for (int row = 0; row < PQntuples (result); row++)
        if (pg_int8 (result, row, PG_ROW_NUMBER) == number)
            return row;
    return -1;
}

/* LIST. */

/* The record is the read's, or freed. */
static void list_take (pg_page_t *self, record_t *record)
{
    read_t *read = self->read;
    if (!select_matches (&read->filter, record)) {
        record_free (record); /* changed since */
    } else if (read->records_count == read->limit) {
        record_free (record);
        read->more = true;
        self->done = true;
    } else {
        pg_page_add_record (self, record, false);
        self->done = read->more = read->bytes_max > 0 && self->bytes >= read->bytes_max;
    }
}

/* Reads what was found. */
static store_code_t list_read (pg_page_t *self, store_error_t *error)
{
    PGresult *result;
    if (self->numbers_count == 0)
        return STORE_OK;
    store_code_t code =
        fetch_records (self, self->numbers, self->numbers_count, false, NULL, &result, error);
    for (size_t i = 0; code == STORE_OK && i < self->numbers_count && !self->done; i++) {
        record_t *record = NULL;
        int row = row_of (result, self->numbers[i]);
        if (row >= 0) /* else it was removed since */
            code =
                pg_page_read_row (self, result, row, false, self->read->filter.ns, &record, error);
        if (record != NULL)
            list_take (self, record);
    }
    if (code == STORE_OK)
        self->numbers_count = 0;
    PQclear (result);
    return code;
}

/* Finds up to so many numbers. *last: there are no more of them. *over: the page is. */
static store_code_t find_numbers (pg_page_t *self, size_t max, bool *last, bool *over,
                                  store_error_t *error)
{
    store_code_t code = STORE_OK;
    while (code == STORE_OK && self->numbers_count < max && !*last && !*over) {
        int64_t number;
        code = ranges_next (&self->ranges, &number, over, error);
        if (code != STORE_OK || *over)
            break;
        *last = number == 0;
        if (number != 0)
            self->numbers[self->numbers_count++] = number;
    }
    return code;
}

/* What was found so far is given, with the place to go on from. */
static void end_early (pg_page_t *self)
{
    int64_t below;
    if (!ranges_ended_early (&self->ranges, &below))
        return;
    self->done = true;
    self->read->more = below > 0;
    self->read->next_number = below;
}

store_code_t pg_page_list (pg_page_t *self, store_error_t *error)
{
    const read_t *read = self->read;
    store_code_t code = list_read (self, error); /* what the page before had no time for */
    bool over = false;
    while (code == STORE_OK && !self->done && !over) {
        bool last = false;
        size_t wanted = smaller (read->limit - read->records_count, PG_READERS_ROWS - 1) + 1;
        code = find_numbers (self, wanted, &last, &over, error);
        if (code == STORE_OK)
            code = list_read (self, error);
        if (code != STORE_OK || self->done)
            break;
        self->done = last;
        if (over)
            end_early (self);
        over = over || pg_page_is_over (self);
    }
    return code;
}

store_code_t pg_page_count (pg_page_t *self, store_error_t *error)
{
    bool over;
    read_t *read = self->read;
    store_code_t code =
        ranges_count (&self->ranges, &read->count, &over, &read->next_number, error);
    read->more = read->next_number > 0;
    self->done = code == STORE_OK && (!over || read->more);
    return code;
}

/* RESOLVE. */

/* Ids that end with the suffix: id, queue, owner. */
static void resolve_take (pg_page_t *self, const PGresult *result)
{
    for (int row = 0; row < PQntuples (result) && !self->done; row++) {
        tmq_id_t id;
        pg_fixed (result, row, 0, id.bytes, sizeof (id.bytes));
        if (id_ends_with (&id, self->read->suffix) &&
            ranges_let (&self->live, pg_text (result, row, 1), pg_text (result, row, 2)))
            self->done = !select_resolved (self->read, &id);
    }
}

/* The newest ids in one sweep of an index. */
static store_code_t resolve_newest (pg_page_t *self, store_error_t *error)
{
    PGresult *result;
    pg_params_t *params = pg_page_params (self);
    pg_param_int4 (params, self->ns);
    pg_param_int8 (params, TMQ_SUFFIX_TASKS_MAX);
    pg_param_text (params, self->read->suffix);
    store_code_t code = pg_page_run (self, PG_NEWEST_IDS, &result, error);
    if (code == STORE_OK) {
        resolve_take (self, result);
        self->judged = 1; /* they were looked at */
    }
    PQclear (result);
    return code;
}

static store_code_t resolve_live (pg_page_t *self, store_error_t *error)
{
    PGresult *result;
    if (self->numbers_count == 0)
        return STORE_OK;
    pg_params_t *params = pg_page_params (self);
    pg_array_t *array = pg_page_array (self, 0, PG_INT8);
    for (size_t i = 0; i < self->numbers_count; i++)
        pg_put_int8 (&array->bytes, self->numbers[i]);
    array->count = (int32_t) self->numbers_count;
    pg_param_int4 (params, self->ns);
    pg_param_array (params, array);
    pg_param_text (params, self->read->suffix);
    store_code_t code = pg_page_run (self, PG_IDS, &result, error);
    if (code == STORE_OK) {
        resolve_take (self, result);
        self->resolved += self->numbers_count;
        self->numbers_count = 0;
    }
    PQclear (result);
    return code;
}

/* Then the live tasks, however old. */
store_code_t pg_page_resolve (pg_page_t *self, store_error_t *error)
{
    bool over = false;
    if (self->ns == 0) {
        self->done = true;
        return STORE_OK;
    }
    store_code_t code = self->judged == 0 ? resolve_newest (self, error) : STORE_OK;
    while (code == STORE_OK && !self->done && !over) {
        bool last = false;
        size_t left = TMQ_SUFFIX_LIVE_TASKS_MAX - self->resolved;
        code = find_numbers (self, smaller (left, PG_READERS_SMALL_ROWS), &last, &over, error);
        if (code == STORE_OK)
            code = resolve_live (self, error);
        if (code != STORE_OK)
            break;
        self->done = self->done || last || self->resolved >= TMQ_SUFFIX_LIVE_TASKS_MAX;
        over = over || pg_page_is_over (self);
    }
    return code;
}

/* PICK. */

static store_code_t pick (pg_page_t *self, const PGresult *result, int64_t number, uint64_t marks,
                          store_error_t *error)
{
    record_t *record = NULL;
    int row = row_of (result, number);
    if (row < 0 || ((uint64_t) pg_int8 (result, row, RECORDS_LABELS) & marks) != marks)
        return STORE_OK;
    store_code_t code =
        pg_page_read_row (self, result, row, false, self->read->filter.ns, &record, error);
    if (record != NULL && select_matches (&self->read->filter, record))
        pg_page_add_record (self, record, false);
    else
        record_free (record);
    return code;
}

store_code_t pg_page_pick (pg_page_t *self, store_error_t *error)
{
    const read_t *read = self->read;
    store_code_t code = STORE_OK;
    bool over = false; /* each page gets on */
    while (code == STORE_OK && self->judged < read->numbers_count && !over) {
        PGresult *result;
        uint64_t marks = 0;
        const int64_t *numbers = read->numbers + self->judged;
        size_t count = smaller (read->numbers_count - self->judged, PG_READERS_ROWS);
        code = fetch_records (self, numbers, count, true, &marks, &result, error);
        for (size_t i = 0; code == STORE_OK && i < count; i++, self->judged++)
            code = pick (self, result, numbers[i], marks, error);
        PQclear (result);
        over = pg_page_is_over (self);
    }
    self->done = self->judged == read->numbers_count;
    return code;
}

/* LASTING. */

store_code_t pg_page_lasting (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    store_code_t code = STORE_OK;
    bool over = false;
    if (self->number == 0)
        self->number = read->before_number == 0 ? INT64_MAX : read->before_number;
    while (code == STORE_OK && !self->done && !over) {
        PGresult *result;
        size_t count = smaller (read->limit - read->records_count, PG_READERS_ROWS - 1) + 1;
        pg_params_t *params = pg_page_params (self);
        pg_param_int4 (params, self->ns);
        pg_param_int8 (params, self->number);
        pg_param_int8 (params, (int64_t) count);
        code = pg_page_run (self, PG_LASTING, &result, error);
        for (int row = 0; code == STORE_OK && row < PQntuples (result) && !self->done; row++) {
            record_t *record = NULL;
            self->done = read->more = read->records_count == read->limit;
            if (self->done)
                break;
            self->number = pg_int8 (result, row, PG_ROW_NUMBER);
            code = pg_page_read_row (self, result, row, false, read->filter.ns, &record, error);
            if (record != NULL)
                pg_page_add_record (self, record, false);
        }
        if (code == STORE_OK && !self->done)
            self->done = (size_t) PQntuples (result) < count;
        PQclear (result);
        over = pg_page_is_over (self);
    }
    return code;
}

/* WHOLE. */

static int compare_wanted (const void *a, const void *b)
{
    int64_t left = ((const pg_wanted_t *) a)->number;
    int64_t right = ((const pg_wanted_t *) b)->number;
    return (left > right) - (left < right);
}

/* The tasks of some numbers from there on, the lowest first. The texts stand in *out. */
static store_code_t whole_window (pg_page_t *self, pg_wanted_t list[WINDOW_NUMBERS], size_t *count,
                                  PGresult **out, store_error_t *error)
{
    pg_params_t *params = pg_page_params (self);
    pg_param_int8 (params, self->number);
    pg_param_int8 (params, self->number + WINDOW_NUMBERS);
    store_code_t code = pg_page_run (self, PG_WHOLE_WINDOW, out, error);
    *count = 0;
    for (int row = 0; code == STORE_OK && row < PQntuples (*out); row++) {
        assert (*count < WINDOW_NUMBERS); /* no number is given twice */
        list[(*count)++] =
            (pg_wanted_t){pg_int8 (*out, row, 0), pg_text (*out, row, 1), pg_int8 (*out, row, 2)};
    }
    if (*count > 1)
        qsort (list, *count, sizeof (pg_wanted_t), compare_wanted);
    return code;
}

/* Nothing is in the window: goes to before the next task, or ends. */
static store_code_t whole_skip (pg_page_t *self, store_error_t *error)
{
    PGresult *result;
    pg_param_int8 (pg_page_params (self), self->number + WINDOW_NUMBERS);
    store_code_t code = pg_page_run (self, PG_WHOLE_NEXT, &result, error);
    if (code == STORE_OK && pg_is_null (result, 0, 0))
        self->done = true;
    else if (code == STORE_OK)
        self->number = pg_int8 (result, 0, 0) - 1;
    PQclear (result);
    return code;
}

static bool whole_is_full (const pg_page_t *self)
{
    const read_t *read = self->read;
    return read->records_count == read->limit ||
           (read->bytes_max > 0 && self->bytes >= read->bytes_max);
}

static store_code_t whole_take (pg_page_t *self, const pg_wanted_t *list, size_t count,
                                store_error_t *error)
{
    PGresult *result;
    store_code_t code = pg_page_whole_rows (self, list, NULL, count, &result, error);
    for (int row = 0; code == STORE_OK && row < PQntuples (result) && !self->done; row++) {
        record_t *record = NULL;
        self->done = self->read->more = whole_is_full (self);
        if (self->done)
            break;
        const pg_wanted_t *wanted = &list[pg_int8 (result, row, PG_WHOLE_PLACE) - 1];
        self->number = wanted->number;
        code = pg_page_read_row (self, result, row, true, wanted->ns, &record, error);
        if (record != NULL)
            pg_page_add_record (self, record, true);
    }
    PQclear (result);
    return code;
}

store_code_t pg_page_whole (pg_page_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    if (self->number < self->read->after_number)
        self->number = self->read->after_number;
    for (bool over = false; code == STORE_OK && !self->done && !over;) {
        pg_wanted_t list[WINDOW_NUMBERS];
        PGresult *names;
        size_t count;
        int64_t end = self->number + WINDOW_NUMBERS;
        code = whole_window (self, list, &count, &names, error);
        if (code == STORE_OK && count == 0)
            code = whole_skip (self, error);
        for (size_t i = 0; code == STORE_OK && i < count && !self->done && !over;) {
            size_t taken = pg_page_whole_count (list + i, count - i);
            code = whole_take (self, list + i, taken, error);
            i += taken;
            over = pg_page_is_over (self);
            if (i == count && code == STORE_OK && !self->done)
                self->number = end;
        }
        PQclear (names);
        over = over || pg_page_is_over (self);
    }
    return code;
}

/* What follows the events and lacks bodies (READ_EXPORT). */

static bool is_whole (const record_t *record)
{
    return buf_length (record->payload) == record->payload_bytes &&
           buf_length (record->result) == record->result_bytes;
}

/* The record gets the row's bodies. *still false: the row has moved on. */
static store_code_t complete_one (pg_page_t *self, const PGresult *result, size_t place,
                                  record_t *record, bool *still, store_error_t *error)
{
    record_t *found = NULL;
    store_code_t code = STORE_OK;
    for (int row = 0; row < PQntuples (result) && code == STORE_OK && found == NULL; row++)
        if (pg_int8 (result, row, PG_WHOLE_PLACE) == (int64_t) place + 1)
            code = pg_page_read_row (self, result, row, true, record->ns, &found, error);
    *still = found != NULL;
    if (found == NULL)
        return code;
    buf_drop (record->payload);
    buf_drop (record->result);
    record->payload = buf_keep (found->payload);
    record->result = buf_keep (found->result);
    record_free (found);
    return code;
}

/* Items from self->judged on that lack bodies, as many as one statement may bring. *upto: those
 * before it are known then. */
static size_t find_incomplete (const pg_page_t *self, pg_wanted_t list[PG_READERS_ROWS],
                               int64_t events[PG_READERS_ROWS], size_t *upto)
{
    size_t count = 0;
    int64_t bytes = 0;
    const read_t *read = self->read;
    for (*upto = self->judged; *upto < read->items_count; (*upto)++) {
        const record_t *record = read->items[*upto].record;
        int64_t more = (int64_t) record->payload_bytes + record->result_bytes;
        if (is_whole (record))
            continue;
        if (count == PG_READERS_ROWS || (count > 0 && bytes + more > PG_READERS_BYTES))
            break;
        bytes += more;
        events[count] = (int64_t) record->last_seq;
        list[count++] = (pg_wanted_t){record->number, record->ns, more};
    }
    return count;
}

/* Those that are no longer their task's newest state leave: a newer one follows. */
store_code_t pg_page_complete (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    store_code_t code = STORE_OK;
    bool over = false;
    while (code == STORE_OK && self->judged < read->items_count && !over) {
        pg_wanted_t list[PG_READERS_ROWS];
        int64_t events[PG_READERS_ROWS];
        PGresult *result = NULL;
        size_t upto;
        size_t place = 0;
        size_t count = find_incomplete (self, list, events, &upto);
        if (count > 0)
            code = pg_page_whole_rows (self, list, events, count, &result, error);
        for (; code == STORE_OK && self->judged < upto; self->judged++) {
            bool stays = true;
            export_item_t item = read->items[self->judged];
            if (!is_whole (item.record))
                code = complete_one (self, result, place++, item.record, &stays, error);
            if (stays)
                read->items[self->kept++] = item;
        }
        PQclear (result);
        over = pg_page_is_over (self);
    }
    self->done = self->judged == read->items_count;
    if (self->done && code == STORE_OK)
        read->items_count = self->kept;
    return code;
}

/* STANDING. */

store_code_t pg_page_standing (pg_page_t *self, store_error_t *error)
{
    const read_t *read = self->read;
    store_code_t code = STORE_OK;
    bool over = false;
    while (code == STORE_OK && self->judged < read->standing_count && !over) {
        PGresult *result;
        standing_t *list = read->standing + self->judged;
        size_t count = smaller (read->standing_count - self->judged, PG_READERS_SMALL_ROWS);
        pg_params_t *params = pg_page_params (self);
        pg_array_t *names = pg_page_array (self, 0, PG_TEXT);
        pg_array_t *ids = pg_page_array (self, 1, PG_UUID);
        for (size_t i = 0; i < count; i++) {
            pg_put_text (&names->bytes, list[i].ns);
            pg_put_id (&ids->bytes, list[i].id.bytes);
            list[i].stands = false;
        }
        names->count = ids->count = (int32_t) count;
        pg_param_array (params, names);
        pg_param_array (params, ids);
        code = pg_page_run (self, PG_NEWEST_OF, &result, error);
        for (int row = 0; code == STORE_OK && row < PQntuples (result); row++) {
            standing_t *standing = &list[pg_int8 (result, row, 0) - 1];
            standing->stands = (uint64_t) pg_int8 (result, row, 1) == standing->seq;
        }
        PQclear (result);
        self->judged += code == STORE_OK ? count : 0;
        over = pg_page_is_over (self);
    }
    self->done = self->judged == read->standing_count;
    return code;
}

/* ATTEMPTS. */

store_code_t pg_page_attempts (pg_page_t *self, store_error_t *error)
{
    read_t *read = self->read;
    store_code_t code = STORE_OK;
    for (bool over = false; code == STORE_OK && !self->done && !over;) {
        PGresult *result;
        size_t have = read->attempts_count;
        size_t count = smaller (read->limit - have, PG_READERS_SMALL_ROWS - 1) + 1;
        pg_params_t *params = pg_page_params (self);
        pg_param_int8 (params, read->task_number);
        pg_param_int8 (params, have > 0 ? read->attempts[have - 1].attempt : read->after_attempt);
        pg_param_int8 (params, (int64_t) count);
        code = pg_page_run (self, PG_ATTEMPTS, &result, error);
        for (int row = 0; code == STORE_OK && row < PQntuples (result) && !read->more; row++) {
            read->more = read->attempts_count == read->limit;
            if (read->more)
                break;
            read->attempts = memory_grow (read->attempts, &self->capacity, read->attempts_count,
                                          sizeof (attempt_t));
            attempt_t *attempt = &read->attempts[read->attempts_count++];
            pg_attempt_read (result, row, 0, attempt);
            attempt->id = read->id;
        }
        if (code == STORE_OK)
            self->done = read->more || (size_t) PQntuples (result) < count;
        PQclear (result);
        over = pg_page_is_over (self);
    }
    return code;
}

/* ROWS. */

static int compare_keys (const buf_t *a, const buf_t *b)
{
    row_t left = {.key = (buf_t *) a};
    row_t right = {.key = (buf_t *) b};
    return row_compare (&left, &right);
}

/* Takes a row, or ends the read before it. */
static void take_row (pg_page_t *self, const PGresult *result, int at)
{
    read_t *read = self->read;
    size_t length;
    const uint8_t *key = pg_bytes (result, at, 0, &length);
    row_t row = {.kind = read->row_kind, .key = buf_new (key, length)};
    self->done = !row_key_begins_with (row.key, read->prefix);
    if (!self->done && (read->rows_count == read->limit || self->bytes >= ROWS_READ_BYTES_MAX))
        read->more = self->done = true;
    if (self->done) {
        row_drop (&row);
        return;
    }
    row.body = pg_body (result, at, 1);
    row.expires_at = pg_int8 (result, at, 2);
    self->bytes += buf_length (row.key) + buf_length (row.body);
    read->rows = memory_grow (read->rows, &self->capacity, read->rows_count, sizeof (row_t));
    read->rows[read->rows_count++] = row;
}

store_code_t pg_page_rows (pg_page_t *self, store_error_t *error)
{
    const read_t *read = self->read;
    store_code_t code = STORE_OK;
    for (bool over = false; code == STORE_OK && !self->done && !over;) {
        PGresult *result;
        size_t have = read->rows_count;
        const buf_t *before = have > 0 ? read->rows[have - 1].key : read->after;
        bool from_prefix = before == NULL || compare_keys (before, read->prefix) < 0;
        const buf_t *from = from_prefix ? read->prefix : before;
        size_t count = smaller (read->limit - have, PG_READERS_SMALL_ROWS - 1) + 1;
        pg_params_t *params = pg_page_params (self);
        pg_param_int2 (params, PG_SHARD);
        pg_param_int2 (params, (int16_t) read->row_kind);
        pg_param_bytes (params, buf_bytes (from), buf_length (from));
        pg_param_bool (params, from_prefix);
        pg_param_int8 (params, (int64_t) count);
        pg_param_int8 (params, ROWS_READ_BYTES_MAX);
        code = pg_page_run (self, PG_ROWS, &result, error);
        for (int row = 0; code == STORE_OK && row < PQntuples (result) && !self->done; row++)
            take_row (self, result, row);
        if (code == STORE_OK && PQntuples (result) == 0)
            self->done = true;
        PQclear (result);
        over = pg_page_is_over (self);
    }
    return code;
}
