/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The entries of indexes that ranges are walked by (store/ranges.h).
 *
 * A round trip costs as much as some hundred entries. So whoever walks one range is given the first
 * entries of all ranges that will be walked with it, by one statement, and what may be asked of
 * each entry comes with it. Queues and sessions stand as texts in the tables: their numbers are
 * places in a list of names that this read knows. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "store/postgresql/pg_readers_page.h"
#include "store/select.h"

enum {
    FETCH_MIN = 8,     /* entries of one range */
    LABELS_MAX = 64,   /* bits of PG_WALK_LABELS */
    FETCH_GROWS_BY = 4 /* a range that is walked further */
};

static pg_entries_t *entries_of (void *source)
{
    return source;
}

/* Names. */

static int64_t name_number (pg_entries_t *self, name_kind_t kind, const char *text, bool add)
{
    for (size_t i = 0; i < self->names_count; i++)
        if (self->names[i].kind == kind && strcmp (self->names[i].text, text) == 0)
            return (int64_t) i + 1;
    if (!add)
        return 0;
    self->names =
        memory_grow (self->names, &self->names_capacity, self->names_count, sizeof (pg_name_t));
    self->names[self->names_count++] = (pg_name_t){kind, text};
    return (int64_t) self->names_count;
}

static const char *name_text (const pg_entries_t *self, int64_t number)
{
    return self->names[number - 1].text;
}

static store_code_t find (void *source, name_kind_t kind, int64_t ns, const char *text, int64_t *id,
                          store_error_t *error)
{
    (void) ns;
    pg_entries_t *self = entries_of (source);
    if (kind != NAME_NAMESPACE) {
        *id = text[0] == '\0' ? 0 : name_number (self, kind, text, true);
        return STORE_OK;
    }
    int32_t space;
    store_code_t code = pg_page_space (self->page, text, &space, error);
    *id = space;
    return code;
}

/* Planning. */

static store_code_t queues (void *source, int64_t ns, size_t max, int64_t *out, size_t *count,
                            store_error_t *error)
{
    pg_entries_t *self = entries_of (source);
    pg_params_t *params = pg_page_params (self->page);
    pg_param_int4 (params, (int32_t) ns);
    pg_param_int8 (params, (int64_t) max);
    PQclear (self->queues);
    store_code_t code = pg_page_run (self->page, PG_QUEUES, &self->queues, error);
    *count = 0;
    for (int i = 0; code == STORE_OK && i < PQntuples (self->queues); i++) {
        /* Each comes once, so it need not be looked for. */
        self->names =
            memory_grow (self->names, &self->names_capacity, self->names_count, sizeof (pg_name_t));
        self->names[self->names_count++] = (pg_name_t){NAME_QUEUE, pg_text (self->queues, i, 0)};
        out[(*count)++] = (int64_t) self->names_count;
    }
    return code;
}

static store_code_t bounds (void *source, int64_t ns, int64_t *lowest, int64_t *highest,
                            store_error_t *error)
{
    PGresult *result;
    pg_page_t *page = entries_of (source)->page;
    pg_param_int4 (pg_page_params (page), (int32_t) ns);
    store_code_t code = pg_page_run (page, PG_BOUNDS, &result, error);
    if (code == STORE_OK) {
        *lowest = pg_int8 (result, 0, 0); /* NULL reads as 0 */
        *highest = pg_int8 (result, 0, 1);
    }
    PQclear (result);
    return code;
}

static store_code_t order (void *source, order_t *out, bool *known, store_error_t *error)
{
    PGresult *result;
    pg_page_t *page = entries_of (source)->page;
    pg_params_t *params = pg_page_params (page);
    pg_param_int2 (params, PG_SHARD);
    pg_param_int2 (params, ROW_KIND_ORDER);
    pg_param_bytes (params, ORDER_KEY, sizeof (ORDER_KEY));
    store_code_t code = pg_page_run (page, PG_ORDER, &result, error);
    *known = code == STORE_OK && PQntuples (result) == 1;
    if (*known) {
        size_t bytes;
        const uint8_t *body = pg_bytes (result, 0, 0, &bytes);
        *known = order_unpack (out, body, bytes);
    }
    PQclear (result);
    return code;
}

static int64_t given_number (const pg_entries_t *self)
{
    return self->row == NULL ? 0 : pg_int8 (self->row, self->row_at, PG_WALK_NUMBER);
}

static store_code_t created (void *source, int64_t ns, int64_t from, int64_t *number,
                             int64_t *created_at, store_error_t *error)
{
    PGresult *result;
    pg_entries_t *self = entries_of (source);
    if (given_number (self) == from) {
        *number = from;
        *created_at = pg_int8 (self->row, self->row_at, PG_WALK_CREATED_AT);
        return STORE_OK;
    }
    pg_params_t *params = pg_page_params (self->page);
    pg_param_int4 (params, (int32_t) ns);
    pg_param_int8 (params, from);
    store_code_t code = pg_page_run (self->page, PG_CREATED, &result, error);
    *number = 0;
    if (code == STORE_OK && PQntuples (result) == 1) {
        *number = pg_int8 (result, 0, 0);
        *created_at = pg_int8 (result, 0, 1);
    }
    PQclear (result);
    return code;
}

/* Ranges as parameters. */

static void put_key (const pg_entries_t *self, const range_t *range, pg_array_t *keys,
                     pg_array_t *seconds)
{
    switch (range->kind) {
    case RANGE_BY_QUEUE:
        pg_put_int2 (&seconds->bytes, (int16_t) range->status);
        pg_put_text (&keys->bytes, name_text (self, range->key));
        break;
    case RANGE_BY_SESSION: pg_put_text (&keys->bytes, name_text (self, range->key)); break;
    case RANGE_BY_LABEL:
        pg_put_text (&keys->bytes, range->label->key);
        pg_put_bytes (&seconds->bytes, range->label->value, strlen (range->label->value));
        break;
    case RANGE_BY_PARENT: pg_put_id (&keys->bytes, range->parent->bytes); break;
    case RANGE_BY_NUMBER: break;
    }
    keys->count++;
    seconds->count++;
}

/* Adds the parameters of a kind: the numbers below which, and behind what `between` adds the keys.
 * The ranges are those of the list at these places. */
static void add_ranges (pg_entries_t *self, const range_t *list, const size_t *places, size_t count,
                        void (*between) (pg_entries_t *self, const range_t *range))
{
    pg_page_t *page = self->page;
    pg_params_t *params = &page->desk->params;
    range_kind_t kind = list[places[0]].kind;
    pg_array_t *highs = pg_page_array (page, 0, PG_INT8);
    pg_array_t *keys = pg_page_array (page, 1, kind == RANGE_BY_PARENT ? PG_UUID : PG_TEXT);
    pg_array_t *seconds = pg_page_array (page, 2, kind == RANGE_BY_QUEUE ? PG_INT2 : PG_BYTEA);
    for (size_t i = 0; i < count; i++) {
        pg_put_int8 (&highs->bytes, list[places[i]].high);
        highs->count++;
        put_key (self, &list[places[i]], keys, seconds);
    }
    pg_param_array (params, highs);
    if (between != NULL)
        between (self, &list[places[0]]);
    if (kind != RANGE_BY_NUMBER)
        pg_param_array (params, keys);
    if (kind == RANGE_BY_QUEUE || kind == RANGE_BY_LABEL)
        pg_param_array (params, seconds);
}

/* The filter's labels; that which the range is walked by is not asked for. */
static void add_labels (pg_entries_t *self, const range_t *range)
{
    const filter_t *filter = self->ranges->filter;
    pg_array_t *keys = pg_page_array (self->page, 3, PG_TEXT);
    pg_array_t *values = pg_page_array (self->page, 4, PG_BYTEA);
    assert (filter->labels_count <= LABELS_MAX);
    for (size_t i = 0; i < filter->labels_count; i++) {
        const label_t *label = &filter->labels[i];
        if (label == range->label)
            pg_put_null (&keys->bytes);
        else
            pg_put_text (&keys->bytes, label->key);
        pg_put_bytes (&values->bytes, label->value, strlen (label->value));
        keys->count++;
        values->count++;
    }
    pg_param_array (&self->page->desk->params, keys);
    pg_param_array (&self->page->desk->params, values);
}

static store_code_t few (void *source, const ranges_t *ranges, const range_t *list, size_t count,
                         int64_t most, int64_t *out, store_error_t *error)
{
    PGresult *result;
    pg_entries_t *self = entries_of (source);
    pg_read_statement_t statement = list[0].kind == RANGE_BY_QUEUE     ? PG_FEW_BY_QUEUE
                                    : list[0].kind == RANGE_BY_SESSION ? PG_FEW_BY_SESSION
                                                                       : PG_FEW_BY_LABEL;
    size_t *places = memory_alloc (count * sizeof (size_t));
    for (size_t i = 0; i < count; i++)
        places[i] = i;
    pg_params_t *params = pg_page_params (self->page);
    pg_param_int4 (params, (int32_t) ranges->ns);
    pg_param_int8 (params, ranges->low);
    pg_param_int8 (params, most - *out);
    add_ranges (self, list, places, count, NULL);
    free (places);
    store_code_t code = pg_page_run (self->page, statement, &result, error);
    if (code == STORE_OK)
        *out += pg_int8 (result, 0, 0);
    PQclear (result);
    return code;
}

/* Counting. */

/* All ranges of the slice at once: the others are asked for next. */
static store_code_t count_slice (pg_entries_t *self, const ranges_t *ranges, int64_t high,
                                 int64_t low, store_error_t *error)
{
    PGresult *result;
    bool by_number = ranges->list[0].kind == RANGE_BY_NUMBER;
    if (self->counts == NULL)
        self->counts = memory_zero (ranges->count, sizeof (uint64_t));
    if (self->asked == NULL)
        self->asked = memory_zero (ranges->count, sizeof (size_t));
    for (size_t i = 0; i < ranges->count; i++)
        self->asked[i] = i;
    pg_params_t *params = pg_page_params (self->page);
    pg_param_int4 (params, (int32_t) ranges->ns);
    pg_param_int8 (params, low);
    if (by_number)
        pg_param_int8 (params, high);
    else
        add_ranges (self, ranges->list, self->asked, ranges->count, NULL);
    self->counts_high = 0;
    store_code_t code = pg_page_run (self->page, by_number ? PG_COUNT_BY_NUMBER : PG_COUNT_BY_QUEUE,
                                     &result, error);
    for (int i = 0; code == STORE_OK && i < PQntuples (result); i++) {
        int64_t place = pg_int8 (result, i, 0) - 1;
        assert (place >= 0 && (size_t) place < ranges->count);
        self->counts[place] = (uint64_t) pg_int8 (result, i, 1);
    }
    PQclear (result);
    if (code == STORE_OK) {
        self->counts_low = low;
        self->counts_high = high;
    }
    return code;
}

static store_code_t count_all (void *source, const ranges_t *ranges, const range_t *range,
                               int64_t low, uint64_t *count, store_error_t *error)
{
    pg_entries_t *self = entries_of (source);
    size_t place = (size_t) (range - ranges->list);
    bool known = self->counts_high == range->high && self->counts_low == low;
    store_code_t code = known ? STORE_OK : count_slice (self, ranges, range->high, low, error);
    *count = code == STORE_OK ? self->counts[place] : 0;
    return code;
}

/* Walking. */

static pg_segment_t *segment_of (pg_entries_t *self, size_t place)
{
    return &self->segments[place];
}

static void drop_segments (pg_entries_t *self)
{
    for (size_t i = 0; i < self->segments_count; i++)
        self->segments[i].next = self->segments[i].end = 0;
    for (size_t i = 0; i < self->segments_count; i++)
        self->segments[i].whole = false;
    for (size_t i = 0; i < self->results_count; i++)
        PQclear (self->results[i]);
    self->results_count = 0;
    self->row = NULL;
}

/* Entries of this range are wanted; of which others, too? Those that a list merges with it and that
 * have none left. */
static size_t choose (pg_entries_t *self, const ranges_t *ranges, size_t place)
{
    size_t count = 0;
    self->asked[count++] = place;
    for (size_t i = 0; ranges->lists && i < ranges->count; i++) {
        const range_t *range = &ranges->list[i];
        const pg_segment_t *segment = segment_of (self, i);
        if (i != place && range->kind == ranges->list[place].kind && range->next == range->count &&
            !range->exhausted && segment->next == segment->end && !segment->whole)
            self->asked[count++] = i;
    }
    return count;
}

/* Gives each range its rows, which stand in the order of the ranges. */
static void divide (pg_entries_t *self, const PGresult *result, size_t count, int64_t limit)
{
    int row = 0;
    int rows = PQntuples (result);
    for (size_t i = 0; i < count; i++) {
        pg_segment_t *segment = segment_of (self, self->asked[i]);
        segment->from = result;
        segment->next = row;
        while (row < rows && pg_int8 (result, row, PG_WALK_PLACE) == (int64_t) i + 1)
            row++;
        segment->end = row;
        segment->asked = limit;
        segment->whole = segment->end - segment->next < limit;
    }
}

static store_code_t fetch (pg_entries_t *self, const ranges_t *ranges, size_t place,
                           store_error_t *error)
{
    PGresult *result;
    size_t count = choose (self, ranges, place);
    int64_t limit = PG_READERS_SMALL_ROWS / (int64_t) count;
    int64_t before = segment_of (self, place)->asked;
    if (ranges->lists && limit > RANGE_BUFFER)
        limit = before * FETCH_GROWS_BY > RANGE_BUFFER ? before * FETCH_GROWS_BY : RANGE_BUFFER;
    if (limit > PG_READERS_SMALL_ROWS)
        limit = PG_READERS_SMALL_ROWS;
    if (limit < FETCH_MIN)
        limit = FETCH_MIN;
    pg_params_t *params = pg_page_params (self->page);
    pg_param_int4 (params, (int32_t) ranges->ns);
    pg_param_int8 (params, self->low);
    pg_param_int8 (params, limit);
    add_ranges (self, ranges->list, self->asked, count, add_labels);
    store_code_t code =
        pg_page_run (self->page, (pg_read_statement_t) ranges->list[place].kind, &result, error);
    if (code != STORE_OK)
        return code;
    self->results = memory_grow (self->results, &self->results_capacity, self->results_count,
                                 sizeof (PGresult *));
    self->results[self->results_count++] = result;
    divide (self, result, count, limit);
    return STORE_OK;
}

static store_code_t begin (void *source, const ranges_t *ranges, const range_t *range, int64_t low,
                           store_error_t *error)
{
    (void) error;
    pg_entries_t *self = entries_of (source);
    if (self->segments == NULL) {
        self->segments = memory_zero (ranges->count, sizeof (pg_segment_t));
        self->segments_count = ranges->count;
    }
    if (self->asked == NULL)
        self->asked = memory_zero (ranges->count, sizeof (size_t));
    if (self->low != low)
        drop_segments (self);
    self->low = low;
    self->ranges = ranges;
    self->walked = (size_t) (range - ranges->list);
    return STORE_OK;
}

/* Passes what the range is behind by now. */
static bool segment_has (pg_segment_t *segment, const range_t *range)
{
    while (segment->next < segment->end &&
           pg_int8 (segment->from, segment->next, PG_WALK_NUMBER) >= range->high)
        segment->next++;
    return segment->next < segment->end;
}

static store_code_t next (void *source, range_entry_t *out, bool *found, store_error_t *error)
{
    pg_entries_t *self = entries_of (source);
    const range_t *range = &self->ranges->list[self->walked];
    pg_segment_t *segment = segment_of (self, self->walked);
    store_code_t code = STORE_OK;
    *found = false;
    if (!segment_has (segment, range) && !segment->whole)
        code = fetch (self, self->ranges, self->walked, error);
    if (code != STORE_OK || !segment_has (segment, range))
        return code;
    const filter_t *filter = self->ranges->filter;
    self->row = segment->from;
    self->row_at = segment->next++;
    out->number = given_number (self);
    out->status = (tmq_status_t) pg_int2 (self->row, self->row_at, PG_WALK_STATUS);
    out->queue = out->session = 0;
    if (filter->queues_count > 0)
        out->queue =
            name_number (self, NAME_QUEUE, pg_text (self->row, self->row_at, PG_WALK_QUEUE), false);
    if (filter->sessions_count > 0)
        out->session = name_number (self, NAME_SESSION,
                                    pg_text (self->row, self->row_at, PG_WALK_SESSION), false);
    *found = true;
    return STORE_OK;
}

static void end (void *source)
{
    (void) source; /* what was fetched and not walked is kept for the next begin */
}

/* Of the entry that next gave. */

static store_code_t has_label (void *source, int64_t ns, const label_t *label, int64_t number,
                               bool *has, store_error_t *error)
{
    (void) ns;
    (void) error;
    const pg_entries_t *self = entries_of (source);
    ptrdiff_t place = label - self->ranges->filter->labels;
    assert (given_number (self) == number);
    *has = ((uint64_t) pg_int8 (self->row, self->row_at, PG_WALK_LABELS) >> place & 1) != 0;
    return STORE_OK;
}

static store_code_t whose (void *source, int64_t number, bool *found, const char **queue,
                           const char **owner, store_error_t *error)
{
    (void) error;
    const pg_entries_t *self = entries_of (source);
    assert (given_number (self) == number);
    *found = true;
    *queue = pg_text (self->row, self->row_at, PG_WALK_QUEUE);
    *owner = pg_text (self->row, self->row_at, PG_WALK_OWNER);
    return STORE_OK;
}

static bool is_over (void *source)
{
    return pg_page_is_over (entries_of (source)->page);
}

const range_calls_t PG_ENTRIES_CALLS = {
    .by_number = true,
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

/* Life. */

/* The next page sees another state. */
void pg_entries_end_page (pg_entries_t *self)
{
    drop_segments (self);
    self->counts_high = 0;
}

void pg_entries_clear (pg_entries_t *self)
{
    drop_segments (self);
    free (self->results);
    free (self->segments);
    free (self->asked);
    free (self->counts);
    free (self->names);
    PQclear (self->queues);
    *self = (pg_entries_t){0};
}
