/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/ranges.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/planted.h"
#include "store/select.h"

enum {
    ROWS_BETWEEN_LOOKS = 64, /* at the clock */
    ROWS_COUNTED = 8,        /* by a backend, in the time that it takes to look at one here */
    FEW_MAX = 1000           /* entries counted to find out which condition has the fewest */
};

static range_t *range_add (ranges_t *self, range_kind_t kind, int64_t key, tmq_status_t status)
{
    self->list = memory_grow (self->list, &self->capacity, self->count, sizeof (range_t));
    range_t *range = &self->list[self->count++];
    range->kind = kind;
    range->key = key;
    range->status = status;
    range->label = NULL;
    range->parent = NULL;
    range->high = self->high;
    range->exhausted = false;
    range->next = range->count = range->vain = 0;
    return range;
}

/* Planning. */

static store_code_t find (const ranges_t *self, name_kind_t kind, const char *text, int64_t *id,
                          store_error_t *error)
{
    return self->calls->find (self->source, kind, self->ns, text, id, error);
}

/* Its numbers alone are walked: nothing is asked of its tasks that an index of another kind has. */
static bool is_by_number (const ranges_t *self)
{
    return self->calls->by_number && self->filter->queues_count == 0 &&
           self->filter->statuses_count == 0;
}

static store_code_t find_queues (ranges_t *self, store_error_t *error)
{
    enum { MAX = RANGES_MAX + 1 }; /* with more, queues are not walked one by one */
    const filter_t *filter = self->filter;
    store_code_t code = STORE_OK;
    self->queues = memory_alloc ((filter->queues_count + MAX) * sizeof (int64_t));
    if (is_by_number (self))
        return STORE_OK;
    if (filter->queues_count == 0)
        return self->calls->queues (self->source, self->ns, MAX, self->queues, &self->queues_count,
                                    error);
    for (size_t i = 0; code == STORE_OK && i < filter->queues_count; i++) {
        int64_t id;
        code = find (self, NAME_QUEUE, filter->queues[i], &id, error);
        if (code == STORE_OK && id != 0)
            self->queues[self->queues_count++] = id;
    }
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
        int64_t found;
        int64_t created_at;
        code = self->calls->created (self->source, self->ns, middle, &found, &created_at, error);
        if (code != STORE_OK)
            break;
        if (found == 0 || found >= end || created_at >= since_ms)
            high = middle;
        else
            low = found + 1;
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
    bool known;
    order_t order;
    store_code_t code = self->calls->order (self->source, &order, &known, error);
    if (code == STORE_OK && !known)
        order = (order_t){.first = *from, .last = *to - 1};
    if (code != STORE_OK)
        return code;
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
    int64_t low = 0;
    int64_t high = 0;
    store_code_t code = self->calls->bounds (self->source, self->ns, &low, &high, error);
    low = high == 0 ? 1 : low;
    high++;
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
    if (self->queues_count * statuses > RANGES_MAX || is_by_number (self)) {
        range_add (self, RANGE_BY_NUMBER, self->ns, TMQ_STATUS_NONE);
        return;
    }
    for (size_t i = 0; i < self->queues_count; i++)
        for (tmq_status_t status = TMQ_STATUS_QUEUED; status <= TMQ_STATUS_CANCELLED; status++)
            if (select_wants_status (self->filter, status))
                range_add (self, RANGE_BY_QUEUE, self->queues[i], status);
}

static store_code_t plan_sessions (ranges_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < self->filter->sessions_count; i++) {
        int64_t id;
        code = find (self, NAME_SESSION, self->filter->sessions[i], &id, error);
        if (code != STORE_OK || id == 0)
            continue;
        assert (self->sessions_count < TMQ_FILTER_VALUES_MAX);
        self->sessions[self->sessions_count++] = id;
        range_add (self, RANGE_BY_SESSION, id, TMQ_STATUS_NONE);
    }
    return code;
}

/* What a task has many parts of is rare, so nothing else is walked. */
static void plan_parents (ranges_t *self)
{
    self->count = 0;
    for (size_t i = 0; i < self->filter->parents_count; i++)
        range_add (self, RANGE_BY_PARENT, self->ns, TMQ_STATUS_NONE)->parent =
            &self->filter->parents[i];
}

/* Which conditions are the fewest. */

/* Adds the entries of ranges to *few, as long as these are fewer than most. */
static store_code_t count_few (const ranges_t *self, const range_t *list, size_t count,
                               int64_t most, int64_t *few, store_error_t *error)
{
    bool all = count > 0 && list[0].kind == RANGE_BY_NUMBER;
    if (all || *few >= most) {
        *few = most;
        return STORE_OK;
    }
    return count == 0 ? STORE_OK
                      : self->calls->few (self->source, self, list, count, most, few, error);
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
    if (narrow && code == STORE_OK)
        code = count_few (self, self->list, self->count, FEW_MAX, &few, error);
    if (narrow && few < FEW_MAX)
        fewest = few;
    for (size_t i = 0; code == STORE_OK && i < filter->labels_count; i++) {
        range_t range = {.kind = RANGE_BY_LABEL,
                         .key = self->ns,
                         .label = &filter->labels[i],
                         .high = self->high};
        few = 0;
        code = count_few (self, &range, 1, fewest < FEW_MAX ? fewest : FEW_MAX, &few, error);
        if (few < fewest) {
            fewest = few;
            rarest = &filter->labels[i];
        }
    }
    if (code == STORE_OK && rarest != NULL) {
        self->count = 0;
        range_add (self, RANGE_BY_LABEL, self->ns, TMQ_STATUS_NONE)->label = rarest;
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
    if (narrow && code == STORE_OK)
        code = count_few (self, self->list, self->count, FEW_MAX, &few, error);
    for (size_t i = 0; code == STORE_OK && narrow && i < filter->owners_count; i++) {
        range_t range = {
            .kind = RANGE_BY_LABEL, .key = self->ns, .label = &self->owners[i], .high = self->high};
        code = count_few (self, &range, 1, few, &theirs, error);
    }
    if (code != STORE_OK || (narrow && few < FEW_MAX && theirs >= few))
        return code;
    self->count = 0;
    for (size_t i = 0; i < filter->owners_count; i++) /* each once, or it would count twice */
        if (i == 0 || !select_contains (filter->owners, i, filter->owners[i]))
            range_add (self, RANGE_BY_LABEL, self->ns, TMQ_STATUS_NONE)->label = &self->owners[i];
    return STORE_OK;
}

store_code_t ranges_open (ranges_t *self, const range_calls_t *calls, void *source,
                          const filter_t *filter, int64_t before_number, store_error_t *error)
{
    *self = (ranges_t){.calls = calls, .source = source, .filter = filter};
    store_code_t code = calls->find (source, NAME_NAMESPACE, 0, filter->ns, &self->ns, error);
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

/* The labels that the range is not walked by. */
static store_code_t has_labels (const ranges_t *self, const range_t *range, int64_t number,
                                bool *has, store_error_t *error)
{
    store_code_t code = STORE_OK;
    *has = true;
    for (size_t i = 0; code == STORE_OK && *has && i < self->filter->labels_count; i++) {
        const label_t *label = &self->filter->labels[i];
        bool forgotten = self->planted_bug == ENGINE_BUG_MARK_FORGOTTEN && range->label != NULL;
        if (label != range->label && !forgotten)
            code = self->calls->has_label (self->source, self->ns, label, number, has, error);
    }
    return code;
}

/* By its key alone; in other ranges each entry is looked at. */
static bool range_holds_wanted (const ranges_t *self, const range_t *range)
{
    return range->kind == RANGE_BY_QUEUE || (range->kind == RANGE_BY_NUMBER && is_by_number (self));
}

static bool fits (const ranges_t *self, const range_t *range, const range_entry_t *entry)
{
    const filter_t *filter = self->filter;
    if (range_holds_wanted (self, range))
        return true;
    bool forgotten = self->planted_bug == ENGINE_BUG_STATUS_FORGOTTEN && range->label != NULL;
    if (!forgotten && !select_wants_status (filter, entry->status))
        return false;
    if (filter->queues_count > 0 && !holds (self->queues, self->queues_count, entry->queue))
        return false;
    bool has_session = range->kind == RANGE_BY_LABEL || range->kind == RANGE_BY_PARENT;
    return !has_session || filter->sessions_count == 0 ||
           holds (self->sessions, self->sessions_count, entry->session);
}

bool ranges_let (const filter_t *filter, const char *queue, const char *owner)
{
    return filter_sees (filter, queue, owner) &&
           select_contains (filter->owners, filter->owners_count, owner);
}

store_code_t ranges_see (const ranges_t *self, int64_t number, bool *seen, store_error_t *error)
{
    bool found;
    const char *queue = "";
    const char *owner = "";
    *seen = self->filter->scope == NULL && self->filter->owners_count == 0;
    if (*seen)
        return STORE_OK;
    store_code_t code = self->calls->whose (self->source, number, &found, &queue, &owner, error);
    *seen = code == STORE_OK && found && ranges_let (self->filter, queue, owner);
    return code;
}

/* Where times do not rise with the numbers. */
static store_code_t was_created_then (const ranges_t *self, int64_t number, bool *then,
                                      store_error_t *error)
{
    const filter_t *filter = self->filter;
    int64_t found = 0;
    int64_t at = 0;
    store_code_t code = self->calls->created (self->source, self->ns, number, &found, &at, error);
    *then = code == STORE_OK && found == number &&
            (filter->created_since == 0 || at >= filter->created_since) &&
            (filter->created_until == 0 || at < filter->created_until);
    return code;
}

static store_code_t is_wanted (ranges_t *self, range_t *range, const range_entry_t *entry,
                               bool *wanted, store_error_t *error)
{
    store_code_t code = STORE_OK;
    *wanted = fits (self, range, entry);
    if (*wanted && self->by_time)
        code = was_created_then (self, entry->number, wanted, error);
    if (*wanted && code == STORE_OK && self->filter->labels_count > 0)
        code = has_labels (self, range, entry->number, wanted, error);
    if (*wanted && code == STORE_OK)
        code = ranges_see (self, entry->number, wanted, error);
    return code;
}

/* Each range has its share of the caller's limit, so that a page gets on in all of them. */
static bool is_weary (const ranges_t *self, const range_t *range)
{
    size_t share = self->vain_max / self->count;
    return self->vain_max > 0 && range->vain >= (share > 0 ? share : 1);
}

/* Looks at the entries of a range from `low` on, until `take` has enough, the range ends (then it
 * is exhausted) or the page is over. */
typedef bool take_t (range_t *range, void *context); /* one that is wanted, at range->high */

static store_code_t range_walk (ranges_t *self, range_t *range, int64_t low, take_t *take,
                                void *context, bool *over, store_error_t *error)
{
    const range_calls_t *calls = self->calls;
    bool enough = false;
    store_code_t code = calls->begin (self->source, self, range, low, error);
    if (code != STORE_OK)
        return code;
    for (size_t rows = 1; code == STORE_OK && !enough && !*over; rows++) {
        range_entry_t entry;
        bool found;
        bool wanted = false;
        code = calls->next (self->source, &entry, &found, error);
        if (code != STORE_OK)
            break;
        range->exhausted = !found;
        if (!found)
            break;
        code = is_wanted (self, range, &entry, &wanted, error);
        if (code != STORE_OK)
            break; /* it was not looked at */
        range->high = entry.number;
        range->vain += !wanted;
        if (wanted)
            enough = take (range, context);
        enough = enough || (self->lists && is_weary (self, range));
        *over = rows % ROWS_BETWEEN_LOOKS == 0 && calls->is_over (self->source);
    }
    calls->end (self->source);
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
        bool lowest = self->planted_bug == ENGINE_BUG_EARLY_END_SKIPS;
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

/* Everything in such a range is wanted, so the backend counts without handing out an entry. */
static store_code_t count_all (ranges_t *self, range_t *range, uint64_t *count,
                               store_error_t *error)
{
    uint64_t counted = 0;
    store_code_t code =
        self->calls->count (self->source, self, range, self->slice_low, &counted, error);
    if (code != STORE_OK)
        return code;
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
        bool all = range_holds_wanted (self, range) && self->filter->labels_count == 0 &&
                   self->filter->owners_count == 0 && self->filter->scope == NULL && !self->by_time;
        code = all ? count_all (self, range, count, error)
                   : count_rows (self, range, count, over, error);
        if (code != STORE_OK || range->high > self->slice_low)
            break; /* the next call goes on with this range */
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
            self->slice_low = self->high - RANGES_COUNT_NUMBERS > self->low
                                  ? self->high - RANGES_COUNT_NUMBERS
                                  : self->low;
        code = count_slice (self, count, over, error);
        if (code != STORE_OK || self->counting < self->count)
            break;
        self->high = self->slice_low;
        self->slice_low = 0;
        self->counting = 0;
        if (window_next (self)) {
            *over = self->calls->is_over (self->source);
            *below = self->vain_max > 0 && self->looks >= self->vain_max ? self->high : 0;
        }
    }
    return code;
}
