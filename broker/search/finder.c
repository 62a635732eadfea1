/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "search/finder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "store/handover.h"
#include "store/search.h"
#include "timestamp.h"

enum {
    BATCH = 100,       /* documents that the store is asked about together */
    FEW = 200,         /* tasks that a filter leaves: the index is asked about each, … */
    FEW_LOOKS = 2000,  /* … if so many looks find them */
    RANKED_MAX = 20000 /* documents that are ranked, the newest */
};

static const char TOO_WIDE[] =
    "search prefix: the index takes too long for all that begins with it; "
    "give more letters before the *";

struct finder {
    store_t *store;
    indexer_t *indexer;
    const char *directory;
    handover_t *handover;
    pthread_t thread;
    bool running;
    /* The thread's own. */
    store_reader_t *reader;
    search_reader_t *index; /* of the file with … */
    uint64_t epoch;         /* … this number */
    bool late;              /* the newest search */
    atomic_uint ms_max;
};

/* A search under way. */
typedef struct hunt {
    finder_t *finder;
    read_t *read;
    search_hit_t hits[BATCH]; /* to be looked at: a task each */
    size_t hits_count;
    search_hit_t *found; /* of the records that are taken */
    size_t found_capacity;
    size_t records_capacity;
    size_t bytes;
    size_t looks; /* at documents, that are left */
} hunt_t;

static store_code_t take_error (const read_t *read, store_error_t *error)
{
    return store_fail (error, (store_code_t) read->error, "%s", read->error_text);
}

/* What the asker may read of; seeing that it is there would be less. */
static bool may_read (read_t *read, const record_t *record)
{
    return read->filter.scope == NULL ||
           access_sees (read->filter.scope, record->queue, record->owner, NULL, RIGHT_BODY);
}

static bool is_full (const hunt_t *self)
{
    const read_t *read = self->read;
    if (read->search->counting)
        return false;
    return read->records_count >= read->limit ||
           (read->bytes_max > 0 && self->bytes >= read->bytes_max);
}

/* True: the record is the page's now. */
static bool take (hunt_t *self, record_t *record, const search_hit_t *hit)
{
    read_t *read = self->read;
    if (read->search->counting) {
        read->count++;
        return false;
    }
    self->found = memory_grow (self->found, &self->found_capacity, read->records_count,
                               sizeof (search_hit_t));
    self->found[read->records_count] = *hit;
    read->records = memory_grow (read->records, &self->records_capacity, read->records_count,
                                 sizeof (record_t *));
    read->records[read->records_count++] = record;
    self->bytes += record_wire_bytes (record);
    return true;
}

/* Those of the hits that match the filter, until the page is full. *taken: so many hits were looked
 * at. */
static store_code_t pick (hunt_t *self, size_t *taken, store_error_t *error)
{
    int64_t numbers[BATCH];
    for (size_t i = 0; i < self->hits_count; i++)
        numbers[i] = self->hits[i].number;
    read_t picked = {.kind = READ_PICK,
                     .filter = self->read->filter,
                     .numbers = numbers,
                     .numbers_count = self->hits_count};
    *taken = 0;
    int64_t before = clock_ms (CLOCK_MONOTONIC);
    store_code_t code = store_reader_run (self->finder->reader, &picked);
    search_reader_spare (self->finder->index, clock_ms (CLOCK_MONOTONIC) - before);
    if (code != STORE_OK)
        return take_error (&picked, error);
    for (size_t i = 0, at = 0; i < self->hits_count && !is_full (self); i++, ++*taken) {
        if (at == picked.records_count || picked.records[at]->number != numbers[i])
            continue;
        if (may_read (self->read, picked.records[at]) &&
            take (self, picked.records[at], &self->hits[i]))
            picked.records[at] = NULL;
        at++;
    }
    read_clear (&picked);
    self->hits_count = 0;
    return STORE_OK;
}

/* The newest first. */

/* Steps until there is a batch of tasks, or no further one; *place: as of search_reader_next. */
static store_code_t gather (hunt_t *self, search_step_t *step, int64_t *place, store_error_t *error)
{
    store_code_t code = STORE_OK;
    *step = SEARCH_STEP_FOUND;
    while (code == STORE_OK && *step == SEARCH_STEP_FOUND && self->hits_count < BATCH) {
        search_hit_t *hit = &self->hits[self->hits_count];
        code = search_reader_next (self->finder->index, hit, &self->looks, step, error);
        *place = hit->number;
        self->hits_count += code == STORE_OK && *step == SEARCH_STEP_FOUND;
    }
    return code;
}

static store_code_t hunt_newest (hunt_t *self, store_error_t *error)
{
    read_t *read = self->read;
    search_step_t step = SEARCH_STEP_FOUND;
    store_code_t code =
        search_reader_begin (self->finder->index, read->filter.ns, &read->search->query,
                             read->before_number, false, error);
    while (code == STORE_OK && step == SEARCH_STEP_FOUND && !is_full (self) &&
           !atomic_load (&read->cancelled)) {
        size_t taken = 0;
        int64_t place = 0;
        code = gather (self, &step, &place, error);
        size_t count = self->hits_count;
        if (code == STORE_OK && count > 0)
            code = pick (self, &taken, error);
        if (code != STORE_OK)
            break;
        read->more = step != SEARCH_STEP_END || taken < count;
        if (is_full (self))
            read->next_number = read->records[read->records_count - 1]->number;
        else if (step == SEARCH_STEP_TIRED)
            read->next_number = place;
    }
    search_reader_end (self->finder->index);
    return code;
}

/* A filter that leaves few tasks: looking each of them up in the index is quicker than looking
 * for them among all that have the words. */

static bool is_worth_it (const read_t *read)
{
    const filter_t *filter = &read->filter;
    const search_query_t *query = &read->search->query;
    for (size_t i = 0; i < query->count; i++)
        if (query->terms[i].prefix) /* its words are gathered anew for each task */
            return false;
    return filter->queues_count + filter->statuses_count + filter->sessions_count +
               filter->labels_count + filter->parents_count >
           0;
}

/* *few: these are all of them. */
static store_code_t list_few (hunt_t *self, read_t *list, bool *few, store_error_t *error)
{
    *list = (read_t){.kind = READ_LIST,
                     .filter = self->read->filter,
                     .before_number = self->read->before_number,
                     .limit = FEW,
                     .vain_max = FEW_LOOKS};
    if (store_reader_run (self->finder->reader, list) != STORE_OK)
        return take_error (list, error);
    *few = !list->more;
    return STORE_OK;
}

static store_code_t look_up (hunt_t *self, record_t **record, store_error_t *error)
{
    search_hit_t hit;
    search_step_t step = SEARCH_STEP_END;
    size_t looks = FEW_LOOKS; /* its documents need none */
    read_t *read = self->read;
    store_code_t code = search_reader_begin_task (self->finder->index, read->filter.ns,
                                                  &read->search->query, (*record)->number, error);
    if (code == STORE_OK)
        code = search_reader_next (self->finder->index, &hit, &looks, &step, error);
    search_reader_end (self->finder->index);
    if (code != STORE_OK || step != SEARCH_STEP_FOUND || !may_read (read, *record))
        return code;
    if (take (self, *record, &hit))
        *record = NULL;
    return STORE_OK;
}

/* *done false: there are more, so nothing was done. */
static store_code_t hunt_few (hunt_t *self, bool *done, store_error_t *error)
{
    read_t list;
    read_t *read = self->read;
    *done = false;
    if (!is_worth_it (read))
        return STORE_OK;
    store_code_t code = list_few (self, &list, done, error);
    size_t i = 0;
    for (; code == STORE_OK && *done && i < list.records_count && !is_full (self); i++)
        code = look_up (self, &list.records[i], error);
    if (code == STORE_OK && *done && i < list.records_count) {
        read->more = true;
        read->next_number = read->records[read->records_count - 1]->number;
    }
    read_clear (&list);
    return code;
}

static store_code_t hunt_in_order (hunt_t *self, store_error_t *error)
{
    bool done;
    store_code_t code = hunt_few (self, &done, error);
    return code != STORE_OK || done ? code : hunt_newest (self, error);
}

/* The best first: of the newest documents. */

static int by_rank (const void *a, const void *b)
{
    const search_hit_t *left = a;
    const search_hit_t *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->number < right->number) - (left->number > right->number);
}

/* The store answers in the order that it is asked in. */
static store_code_t pick_ranked (hunt_t *self, search_hit_t *hits, size_t count,
                                 store_error_t *error)
{
    store_code_t code = STORE_OK;
    size_t taken;
    qsort (hits, count, sizeof (*hits), by_rank);
    for (size_t i = 0; code == STORE_OK && i < count && !is_full (self); i++) {
        self->hits[self->hits_count++] = hits[i];
        if (self->hits_count == BATCH || i + 1 == count)
            code = pick (self, &taken, error);
    }
    return code;
}

static store_code_t hunt_best (hunt_t *self, store_error_t *error)
{
    read_t *read = self->read;
    search_hit_t *hits = NULL;
    size_t capacity = 0;
    size_t count = 0;
    size_t looks = RANKED_MAX;
    search_step_t step = SEARCH_STEP_FOUND;
    store_code_t code = search_reader_begin (self->finder->index, read->filter.ns,
                                             &read->search->query, 0, true, error);
    while (code == STORE_OK && step == SEARCH_STEP_FOUND && !atomic_load (&read->cancelled)) {
        hits = memory_grow (hits, &capacity, count, sizeof (*hits));
        code = search_reader_next (self->finder->index, &hits[count], &looks, &step, error);
        count += code == STORE_OK && step == SEARCH_STEP_FOUND;
    }
    search_reader_end (self->finder->index);
    if (code == STORE_OK && count > 0)
        code = pick_ranked (self, hits, count, error);
    free (hits);
    return code;
}

/* Excerpts. */

typedef struct place {
    search_hit_t hit;
    size_t record;
} place_t;

static int by_number (const void *a, const void *b)
{
    int64_t left = ((const place_t *) a)->hit.number;
    int64_t right = ((const place_t *) b)->hit.number;
    return (left < right) - (left > right);
}

static store_code_t add_excerpts (hunt_t *self, store_error_t *error)
{
    read_t *read = self->read;
    search_t *search = read->search;
    size_t count = read->records_count;
    if (count == 0 || self->found == NULL)
        return STORE_OK;
    place_t *places = memory_alloc (count * sizeof (*places));
    search_hit_t *hits = memory_alloc (count * sizeof (*hits));
    char **texts = memory_zero (count, sizeof (*texts));
    for (size_t i = 0; i < count; i++)
        places[i] = (place_t){self->found[i], i};
    qsort (places, count, sizeof (*places), by_number);
    for (size_t i = 0; i < count; i++)
        hits[i] = places[i].hit;
    store_code_t code = search_reader_excerpts (self->finder->index, read->filter.ns,
                                                &search->query, hits, count, texts, error);
    search->found = memory_zero (count, sizeof (*search->found));
    search->count = count;
    for (size_t i = 0; i < count; i++)
        search->found[places[i].record] = (search_found_t){hits[i].turn, texts[i]};
    free (places);
    free (hits);
    free (texts);
    return code;
}

/* Running. */

static store_code_t open_index (finder_t *self, uint64_t epoch, store_error_t *error)
{
    if (self->index != NULL && self->epoch == epoch)
        return STORE_OK;
    search_reader_close (&self->index);
    self->epoch = epoch;
    return search_reader_open (&self->index, self->directory, error);
}

static store_code_t run (finder_t *self, read_t *read, store_error_t *error)
{
    uint64_t epoch;
    hunt_t hunt = {.finder = self, .read = read, .looks = read->vain_max};
    if (!indexer_read_begin (self->indexer, &epoch, error)) /* nothing of it is known yet … */
        return error->code == STORE_ERROR_BUSY ? STORE_OK : error->code; /* … and it is behind */
    store_code_t code = open_index (self, epoch, error);
    if (code == STORE_OK)
        search_reader_limit (self->index, atomic_load (&self->ms_max));
    if (code == STORE_OK)
        code = read->search->ranked ? hunt_best (&hunt, error) : hunt_in_order (&hunt, error);
    if (code == STORE_OK)
        code = add_excerpts (&hunt, error);
    self->late = code != STORE_OK && self->index != NULL && search_reader_is_late (self->index);
    if (self->late)
        code = store_fail (error, STORE_ERROR_BUSY, "%s", TOO_WIDE);
    else if (code != STORE_OK)
        search_reader_close (&self->index);
    error->code = code;
    indexer_read_end (self->indexer, error);
    free (hunt.found);
    return code;
}

void finder_answer (finder_t *self, read_t *read)
{
    store_error_t error = {STORE_OK, ""};
    self->late = false;
    bool was_behind = read->search->behind; /* in an earlier piece of a count */
    if (atomic_load (&read->cancelled))
        return;
    indexer_wait (self->indexer, read->since_ms, read->search);
    read->search->behind |= was_behind;
    if (run (self, read, &error) == STORE_OK)
        return;
    read_clear (read);
    read->search->too_wide = self->late;
    read->error = STORE_ERROR_DAMAGED; /* the index is no reason to end the broker */
    read->away = error.code == STORE_ERROR_AWAY;
    memcpy (read->error_text, error.text, sizeof (read->error_text) - 1);
}

static void *finder_run (void *context)
{
    finder_t *self = context;
    read_t *read;
    pthread_setname_np (pthread_self (), "finder");
    while ((read = handover_next (self->handover)) != NULL) {
        finder_answer (self, read);
        handover_finish (self->handover, read);
    }
    return NULL;
}

void finder_limit (finder_t *self, uint32_t ms)
{
    atomic_store (&self->ms_max, ms);
}

void finder_submit (finder_t *self, read_t *read)
{
    bool goes_on = read->search->counting && read->before_number > 0; /* it has waited */
    read->since_ms = clock_ms (CLOCK_MONOTONIC) + (goes_on ? 0 : FINDER_WAIT_MS);
    handover_submit (self->handover, read);
}

read_t *finder_done (finder_t *self)
{
    return handover_done (self->handover);
}

int finder_fd (const finder_t *self)
{
    return handover_fd (self->handover);
}

/* Life. */

finder_t *finder_new (store_t *store, indexer_t *indexer, const char *directory)
{
    store_error_t error;
    finder_t *self = memory_zero (1, sizeof (*self));
    self->store = store;
    self->indexer = indexer;
    self->directory = directory;
    self->handover = handover_new ();
    atomic_store (&self->ms_max, FINDER_MS_MAX);
    bool driven = indexer_is_driven (indexer);
    bool opened =
        self->handover != NULL && store_reader_open (&self->reader, store, &error) == STORE_OK;
    self->running =
        opened && !driven && pthread_create (&self->thread, NULL, finder_run, self) == 0;
    if (!opened || (!self->running && !driven))
        finder_free (&self);
    return self;
}

void finder_free (finder_t **self_p)
{
    finder_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->running) {
        handover_stop (self->handover);
        pthread_join (self->thread, NULL);
    }
    handover_free (&self->handover);
    search_reader_close (&self->index);
    if (self->reader != NULL)
        store_reader_close (&self->reader);
    free (self);
}
