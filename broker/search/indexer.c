/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: what the disk does not take is tried again each second, from the place that is in the
 * index. A damaged index is left alone until somebody asks for a new one. Neither holds up anybody:
 * searches say so. */
#include "search/indexer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "core/base/memory.h"
#include "core/base/planted.h"
#include "core/data/extra.h"
#include "log/log.h"
#include "search/texts.h"
#include "store/pace.h"
#include "timestamp.h"

enum {
    PAGE_ITEMS = 500,
    PAGE_BYTES = 4 * 1024 * 1024,
    TURNS_PAGE = 50,
    COMMIT_BYTES = 1024 * 1024, /* of texts in a transaction; a task more is possible */
    LOOK_MS = 1000,             /* between two looks while nobody asks */
    RETRY_MS = 1000,            /* after a failure */
    WHY_SIZE = 176              /* of a text that fits into an answer, with what mends it */
};

/* When it has lagged for a minute, events are soon forgotten that it has not seen. */
static const pace_t PACE = {
    .share = 20, .share_late = 4, .late_ms = 60 * 1000, .rest_ms_max = 2000};

struct indexer {
    indexer_options_t options;
    pthread_t thread;
    bool running;
    /* The thread's own. */
    store_reader_t *reader;
    search_writer_t *writer; /* NULL: it could not be opened */
    search_place_t place;    /* as it was committed */
    size_t bytes;            /* of texts since then */
    search_walk_t walk;      /* looking through what is there */
    bool walking;
    pace_t pace;
    uint64_t seen;     /* written batch before the last page */
    uint64_t removals; /* … and how many there were when it was looked through */
    char setting_ns[TMQ_NAME_LENGTH_MAX + 1];
    char setting_queue[TMQ_NAME_LENGTH_MAX + 1]; /* that was asked about last, in this page */
    bool setting_off;

    pthread_mutex_t file; /* held by whoever reads the index, and to replace it */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stop;
    bool rebuild;
    bool look_through;
    size_t waiting;     /* searches that wait for it */
    uint64_t pages;     /* begun */
    uint64_t caught_up; /* the newest that found nothing behind it */
    uint64_t epoch;     /* of the file */
    search_place_t shown;
    bool broken;
    bool failing;
    char why[WHY_SIZE];
    size_t turns; /* if it is driven: that a search may take */
};

/* Until something changes, or the time. The lock is held. */
static void wait_until (indexer_t *self, int64_t ms)
{
    struct timespec until = {ms / 1000, ms % 1000 * 1000000};
    pthread_cond_timedwait (&self->changed, &self->lock, &until);
}

/* How it stands. */

static bool is_damage (store_code_t code)
{
    return code != STORE_ERROR_FULL && code != STORE_ERROR_IO && code != STORE_ERROR_ACCESS &&
           code != STORE_ERROR_DAMAGED && code != STORE_ERROR_BUSY && code != STORE_ERROR_AWAY;
}

static void tell_failure (indexer_t *self, const store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    bool damage = is_damage (error->code);
    bool news = damage ? !self->broken : !self->failing;
    self->broken = self->broken || damage;
    self->failing = true;
    snprintf (self->why, sizeof (self->why), "%.*s", WHY_SIZE - 1, error->text);
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (news && damage)
        log_write (LOG_LEVEL_ERROR, "SEARCH-DAMAGED",
                   "the index of texts cannot be used; 'taskctl search reindex' makes a new one",
                   LOG_FIELDS (LOG_TEXT ("error", error->text)));
    else if (news)
        log_write (LOG_LEVEL_WARNING, "SEARCH-STALLED",
                   "the index of texts lags until it can be written",
                   LOG_FIELDS (LOG_TEXT ("error", error->text)));
}

/* caught: the page found nothing behind it. */
static void tell_place (indexer_t *self, uint64_t page, bool caught)
{
    pthread_mutex_lock (&self->lock);
    bool built = self->shown.building && !self->place.building;
    bool goes_on = self->failing;
    self->shown = self->place;
    self->failing = false;
    self->why[0] = '\0';
    if (caught)
        self->caught_up = page;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (goes_on)
        log_write (LOG_LEVEL_INFO, "SEARCH-GOES-ON", "the index of texts can be written again",
                   NULL);
    if (built)
        log_write (LOG_LEVEL_INFO, "SEARCH-BUILT", "the index of texts is built",
                   LOG_FIELDS (LOG_NUMBER ("tasks", (uint64_t) self->place.built)));
}

/* A read of the store that did not go well: its damaged parts only stall. It is out of reach at the
 * stop alone: the next start completes the index. */
static void read_failed (indexer_t *self, const read_t *read, store_error_t *error)
{
    error->code = (store_code_t) read->error;
    snprintf (error->text, sizeof (error->text), "%s", read->error_text);
    if (error->code != STORE_ERROR_DAMAGED && !read->away)
        self->options.failed (error);
}

/* Opening. */

/* anew: somebody asked for a new one, and is told once more if it cannot be made. */
static void open_index (indexer_t *self, bool anew)
{
    store_error_t error = {STORE_OK, ""};
    pthread_mutex_lock (&self->file);
    search_writer_close (&self->writer);
    uint64_t last =
        self->place.pos > self->options.last_pos ? self->place.pos : self->options.last_pos;
    store_code_t code =
        search_writer_open (&self->writer, self->options.directory, self->options.generation, last,
                            anew, &self->place, &error);
    pthread_mutex_unlock (&self->file);
    self->walk = (search_walk_t){0};
    self->walking = false;
    pthread_mutex_lock (&self->lock);
    self->epoch++;
    self->broken = false;
    self->failing = self->failing && !anew;
    self->look_through = true;
    self->shown = self->place;
    pthread_mutex_unlock (&self->lock);
    if (code != STORE_OK)
        tell_failure (self, &error);
    else if (self->place.building)
        log_write (LOG_LEVEL_INFO, "SEARCH-BUILDS", "the index of texts is being built", NULL);
}

/* Tasks. */

static store_code_t put (indexer_t *self, const texts_t *texts, store_error_t *error)
{
    for (size_t i = 0; i < SEARCH_TEXTS; i++)
        self->bytes += texts->doc.texts[i].length;
    return search_writer_put (self->writer, &texts->doc, error);
}

/* What is under way is left: the next start does it. */
static store_code_t check_stop (indexer_t *self, store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    bool stop = self->stop;
    pthread_mutex_unlock (&self->lock);
    return stop ? store_fail (error, STORE_ERROR_BUSY, "the broker stops") : STORE_OK;
}

static bool ask_setting (indexer_t *self, const record_t *record, store_error_t *error)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, record->ns);
    row_key_text (&key, record->queue);
    buf_t *prefix = buf_new (key.bytes, key.length);
    read_t read = {.kind = READ_ROWS, .row_kind = ROW_KIND_QUEUE, .prefix = prefix, .limit = 1};
    bool good = store_reader_run (self->reader, &read) == STORE_OK;
    if (!good)
        read_failed (self, &read, error);
    self->setting_off = false;
    Taskmq__QueueSettings *set =
        good && read.rows_count > 0
            ? taskmq__queue_settings__unpack (NULL, buf_length (read.rows[0].body),
                                              buf_bytes (read.rows[0].body))
            : NULL;
    if (set != NULL) {
        self->setting_off = set->search_off;
        taskmq__queue_settings__free_unpacked (set, NULL);
    }
    read_clear (&read);
    buf_drop (prefix);
    snprintf (self->setting_ns, sizeof (self->setting_ns), "%s", record->ns);
    snprintf (self->setting_queue, sizeof (self->setting_queue), "%s", record->queue);
    return good;
}

/* *off: its queue's tasks are not to be found. */
static store_code_t is_off (indexer_t *self, const record_t *record, bool *off,
                            store_error_t *error)
{
    bool known = strcmp (self->setting_queue, record->queue) == 0 &&
                 strcmp (self->setting_ns, record->ns) == 0;
    *off = false;
    if (!known && !ask_setting (self, record, error))
        return error->code;
    *off = self->setting_off;
    return STORE_OK;
}

static store_code_t put_turns (indexer_t *self, const record_t *record, const read_t *read,
                               uint32_t *last, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < read->rows_count; i++) {
        turn_t turn;
        texts_t texts;
        if (!turn_unpack (&turn, read->rows[i].body))
            continue;
        *last = turn.turn;
        texts_of_turn (&texts, record, &turn);
        code = put (self, &texts, error);
        texts_clear (&texts);
    }
    return code;
}

static store_code_t add_turns (indexer_t *self, const record_t *record, uint32_t turns,
                               store_error_t *error)
{
    uint32_t last;
    bool more = true;
    store_code_t code =
        search_writer_last_turn (self->writer, record->ns, record->number, &last, error);
    if (last > 0 && self->options.planted_bug == ENGINE_BUG_TURN_UNINDEXED)
        return code;
    while (code == STORE_OK && more && last < turns) {
        row_key_t prefix;
        row_key_t after;
        turn_key (&prefix, record->ns, record->id.bytes, 0);
        turn_key (&after, record->ns, record->id.bytes, last);
        read_t read = {.kind = READ_ROWS, .row_kind = ROW_KIND_TURN, .limit = TURNS_PAGE};
        buf_t *keys[2] = {buf_new (prefix.bytes, prefix.length),
                          last == 0 ? NULL : buf_new (after.bytes, after.length)};
        read.prefix = keys[0];
        read.after = keys[1];
        if (store_reader_run (self->reader, &read) == STORE_OK) {
            code = put_turns (self, record, &read, &last, error);
        } else {
            read_failed (self, &read, error);
            code = error->code;
        }
        more = read.more;
        read_clear (&read);
        buf_drop (keys[0]);
        buf_drop (keys[1]);
        if (code == STORE_OK)
            code = check_stop (self, error);
    }
    return code;
}

static uint32_t turns_of (const record_t *record)
{
    if (record->extra == NULL)
        return 0;
    extra_t *extra = extra_new (record->extra);
    uint32_t turns = extra->fields->turns;
    extra_free (extra);
    return turns;
}

static store_code_t take_task (indexer_t *self, const record_t *record, store_error_t *error)
{
    bool off;
    texts_t texts;
    store_code_t code = is_off (self, record, &off, error);
    if (code != STORE_OK)
        return code;
    if (off)
        return search_writer_drop (self->writer, record->ns, record->number, error);
    texts_of_task (&texts, record);
    code = put (self, &texts, error);
    texts_clear (&texts);
    uint32_t turns = code == STORE_OK ? turns_of (record) : 0;
    return turns > 0 ? add_turns (self, record, turns, error) : code;
}

/* Pages. */

static store_code_t commit (indexer_t *self, const search_place_t *place, store_error_t *error)
{
    store_code_t code = search_writer_commit (self->writer, place, error);
    if (code == STORE_OK)
        self->place = *place;
    self->bytes = 0;
    return code;
}

/* Between two tasks: what is much is committed, so that no transaction grows with its page. */
static store_code_t pause_between (indexer_t *self, const search_place_t *place,
                                   store_error_t *error)
{
    store_code_t code = check_stop (self, error);
    if (code != STORE_OK || self->bytes < COMMIT_BYTES)
        return code;
    code = commit (self, place, error);
    return code == STORE_OK ? search_writer_begin (self->writer, error) : code;
}

/* The next tasks of a new index. */
static store_code_t build (indexer_t *self, const read_t *read, search_place_t *place,
                           store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < read->records_count; i++) {
        code = take_task (self, read->records[i], error);
        place->built = read->records[i]->number;
        if (code == STORE_OK)
            code = pause_between (self, place, error);
    }
    place->building = read->more;
    return code;
}

/* Where it lagged so far that events are forgotten, all tasks are gone through again. */
static store_code_t follow (indexer_t *self, const read_t *read, search_place_t *place,
                            store_error_t *error)
{
    store_code_t code = STORE_OK;
    if (read->gap) {
        place->building = true;
        place->built = 0;
    }
    for (size_t i = 0; code == STORE_OK && i < read->items_count; i++) {
        code = take_task (self, read->items[i].record, error);
        place->pos = read->items[i].pos;
        if (code == STORE_OK)
            code = pause_between (self, place, error);
    }
    if (read->upto_pos > place->pos)
        place->pos = read->upto_pos;
    return code;
}

static store_code_t take_page (indexer_t *self, const read_t *read, store_error_t *error)
{
    search_place_t place = self->place;
    store_code_t code = search_writer_begin (self->writer, error);
    self->setting_queue[0] = '\0';
    self->bytes = 0;
    if (code == STORE_OK)
        code = read->kind == READ_WHOLE ? build (self, read, &place, error)
                                        : follow (self, read, &place, error);
    if (code == STORE_OK)
        code = commit (self, &place, error);
    if (code != STORE_OK)
        search_writer_rollback (self->writer);
    return code;
}

/* *more: another page follows. */
static store_code_t page (indexer_t *self, bool *more, store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    uint64_t number = ++self->pages;
    pthread_mutex_unlock (&self->lock);
    self->seen = store_written (self->options.store);
    read_t read = {.kind = self->place.building ? READ_WHOLE : READ_EXPORT,
                   .limit = PAGE_ITEMS,
                   .bytes_max = PAGE_BYTES,
                   .after_pos = self->place.pos,
                   .after_number = self->place.built,
                   .from_tables = true};
    if (store_reader_run (self->reader, &read) != STORE_OK) {
        read_failed (self, &read, error);
        return error->code;
    }
    bool following = read.kind == READ_EXPORT;
    bool nothing = following && read.items_count == 0 && read.upto_pos <= self->place.pos;
    store_code_t code = nothing ? STORE_OK : take_page (self, &read, error);
    *more = read.more || !following || self->place.building;
    read_clear (&read);
    if (code == STORE_OK)
        tell_place (self, number, !*more);
    return code;
}

/* Looking through: what was removed, or is not to be found any more, goes. */

static bool has (const read_t *read, int64_t number, size_t *place)
{
    while (*place < read->records_count && read->records[*place]->number < number)
        ++*place;
    return *place < read->records_count && read->records[*place]->number == number;
}

static store_code_t drop_gone (indexer_t *self, const read_t *read, store_error_t *error)
{
    store_code_t code = search_writer_begin (self->writer, error);
    size_t place = 0;
    self->setting_queue[0] = '\0';
    for (size_t i = 0; code == STORE_OK && i < self->walk.count; i++) {
        bool goes = !has (read, self->walk.numbers[i], &place);
        if (!goes)
            code = is_off (self, read->records[place], &goes, error);
        if (code == STORE_OK && goes && self->options.planted_bug != ENGINE_BUG_TEXTS_LEFT)
            code = search_writer_drop (self->writer, self->walk.ns, self->walk.numbers[i], error);
    }
    if (code == STORE_OK && self->walk.count == 0)
        code = search_writer_drop_spaces (self->writer, error);
    if (code == STORE_OK)
        code = search_writer_commit (self->writer, &self->place, error);
    if (code != STORE_OK)
        search_writer_rollback (self->writer);
    return code;
}

static store_code_t look_through (indexer_t *self, store_error_t *error)
{
    int64_t place = self->walk.place;
    store_code_t code = search_writer_walk (self->writer, &self->walk, error);
    if (code != STORE_OK)
        return code;
    read_t read = {.kind = READ_PICK,
                   .filter = {.ns = self->walk.ns},
                   .numbers = self->walk.numbers,
                   .numbers_count = self->walk.count};
    if (self->walk.count > 0 && store_reader_run (self->reader, &read) != STORE_OK) {
        read_failed (self, &read, error);
        self->walk.place = place;
        return error->code;
    }
    code = drop_gone (self, &read, error);
    read_clear (&read);
    if (code != STORE_OK) {
        self->walk.place = place; /* nothing of it was dropped */
        return code;
    }
    self->walking = self->walk.count > 0;
    if (!self->walking)
        self->walk = (search_walk_t){0};
    return code;
}

static bool look_is_due (indexer_t *self)
{
    store_stats_t stats;
    store_stats (self->options.store, &stats);
    pthread_mutex_lock (&self->lock);
    bool due = self->look_through || stats.removals != self->removals;
    self->look_through = false;
    pthread_mutex_unlock (&self->lock);
    self->removals = stats.removals;
    return due;
}

/* The thread. */

/* What is left of a disk is for the work. It is the index's own: the store may be elsewhere. */
static bool has_space (indexer_t *self, store_error_t *error)
{
    struct statvfs info;
    if (statvfs (self->options.directory, &info) != 0 ||
        (uint64_t) info.f_bavail * info.f_frsize >= shared_limit (self->options.free_bytes_min))
        return true;
    store_fail (error, STORE_ERROR_FULL, "free space is below limits/free_space_min");
    return false;
}

/* One step. False: it failed, to be tried again after a while. */
static bool step (indexer_t *self, bool *more)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = has_space (self, &error) ? page (self, more, &error) : STORE_ERROR_FULL;
    if (code == STORE_OK && !*more && !self->walking && look_is_due (self))
        self->walking = true;
    if (code == STORE_OK && !self->place.building && self->walking)
        code = look_through (self, &error);
    *more = *more || self->walking;
    if (code != STORE_OK && check_stop (self, &error) == STORE_OK)
        tell_failure (self, &error);
    return code == STORE_OK;
}

static bool has_news (indexer_t *self)
{
    return self->waiting > 0 || self->rebuild || self->look_through ||
           store_written (self->options.store) != self->seen;
}

/* After a step that took so long. */
static int64_t rest_ms_of (indexer_t *self, bool good, bool more, int64_t worked_us)
{
    int64_t now = clock_ms (CLOCK_MONOTONIC);
    bool busy = pace_others_work (&self->pace, store_written (self->options.store), now);
    pace_lags (&self->pace, more, now);
    if (!good)
        return RETRY_MS;
    if (!more)
        return LOOK_MS;
    return busy ? pace_rest_ms (&self->pace, worked_us, now) : worked_us / 1000;
}

/* Until there is something to do. The lock is held. */
static void rest (indexer_t *self, bool good, bool more, int64_t worked_us)
{
    int64_t until = clock_ms (CLOCK_MONOTONIC) + rest_ms_of (self, good, more, worked_us);
    while (!self->stop && !self->rebuild && clock_ms (CLOCK_MONOTONIC) < until &&
           (!good || self->waiting == 0))
        wait_until (self, until);
    while (!self->stop && good && !more && !has_news (self))
        wait_until (self, clock_ms (CLOCK_MONOTONIC) + LOOK_MS);
    while (!self->stop && !self->rebuild && self->broken)
        wait_until (self, clock_ms (CLOCK_MONOTONIC) + LOOK_MS);
}

/* Opens the index if need be, and takes one step. The lock is held, but not meanwhile. */
static bool work (indexer_t *self, bool *more)
{
    bool good = false;
    bool anew = self->rebuild;
    bool usable = !self->broken;
    self->rebuild = *more = false;
    pthread_mutex_unlock (&self->lock);
    if (anew || (usable && self->writer == NULL))
        open_index (self, anew);
    if (self->writer != NULL && (usable || anew))
        good = step (self, more);
    pthread_mutex_lock (&self->lock);
    return good;
}

static void *indexer_run (void *context)
{
    indexer_t *self = context;
    pthread_setname_np (pthread_self (), "indexer");
    bar_wait (self->options.bar);
    pthread_mutex_lock (&self->lock);
    while (!self->stop) {
        bool more;
        int64_t began = clock_us (CLOCK_MONOTONIC);
        bool good = work (self, &more);
        rest (self, good, more, clock_us (CLOCK_MONOTONIC) - began);
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

bool indexer_turn (indexer_t *self)
{
    bool more;
    pthread_mutex_lock (&self->lock);
    bool good = work (self, &more);
    pthread_mutex_unlock (&self->lock);
    return good && more;
}

void indexer_allow (indexer_t *self, size_t turns)
{
    self->turns = turns;
}

bool indexer_is_driven (const indexer_t *self)
{
    return self->options.driven;
}

/* Others. */

void indexer_rebuild (indexer_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->rebuild = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

void indexer_look_through (indexer_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->look_through = true;
    pthread_mutex_unlock (&self->lock);
}

/* The lock is held. False: it was long enough. */
static bool wait_on (indexer_t *self, int64_t until_ms)
{
    bool more;
    if (!self->options.driven && clock_ms (CLOCK_MONOTONIC) < until_ms) {
        wait_until (self, until_ms);
        return true;
    }
    if (self->turns == 0)
        return false;
    self->turns--;
    work (self, &more);
    return true;
}

void indexer_wait (indexer_t *self, int64_t until_ms, search_t *out)
{
    pthread_mutex_lock (&self->lock);
    uint64_t before = self->pages;
    self->waiting++;
    pthread_cond_broadcast (&self->changed);
    while (self->caught_up <= before && !self->broken && !self->failing && !self->shown.building &&
           !self->stop && wait_on (self, until_ms))
        ;
    self->waiting--;
    out->behind =
        self->caught_up <= before && self->options.planted_bug != ENGINE_BUG_WATERMARK_AHEAD;
    out->building = self->shown.building || self->rebuild;
    out->indexed_pos = self->shown.pos;
    out->built = self->shown.built;
    snprintf (out->stalled, sizeof (out->stalled), "%.127s", self->failing ? self->why : "");
    pthread_mutex_unlock (&self->lock);
}

bool indexer_read_begin (indexer_t *self, uint64_t *epoch, store_error_t *error)
{
    pthread_mutex_lock (&self->file);
    pthread_mutex_lock (&self->lock);
    bool usable = !self->broken && self->epoch > 0;
    *epoch = self->epoch;
    if (self->broken)
        store_fail (error, STORE_ERROR_DAMAGED,
                    "the index of texts cannot be used; for operators 'taskctl search reindex' "
                    "makes a new one: %s",
                    self->why);
    else if (!usable)
        store_fail (error, STORE_ERROR_BUSY, "the index of texts is not open yet");
    pthread_mutex_unlock (&self->lock);
    if (!usable)
        pthread_mutex_unlock (&self->file);
    return usable;
}

void indexer_read_end (indexer_t *self, const store_error_t *error)
{
    pthread_mutex_unlock (&self->file);
    if (error->code != STORE_OK && is_damage (error->code))
        tell_failure (self, error);
}

void indexer_stats (indexer_t *self, indexer_stats_t *out)
{
    pthread_mutex_lock (&self->lock);
    *out = (indexer_stats_t){self->shown.pos, self->shown.building, self->broken};
    pthread_mutex_unlock (&self->lock);
}

/* Life. */

indexer_t *indexer_new (const indexer_options_t *options)
{
    store_error_t error;
    pthread_condattr_t attributes;
    indexer_t *self = memory_zero (1, sizeof (*self));
    self->options = *options;
    self->pace = PACE;
    self->pace.written = store_written (options->store);
    pthread_mutex_init (&self->file, NULL);
    pthread_mutex_init (&self->lock, NULL);
    pthread_condattr_init (&attributes);
    pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
    pthread_cond_init (&self->changed, &attributes);
    pthread_condattr_destroy (&attributes);
    bool opened = store_reader_open (&self->reader, options->store, &error) == STORE_OK;
    if (opened)
        store_reader_be_patient (self->reader);
    self->running =
        opened && !options->driven && pthread_create (&self->thread, NULL, indexer_run, self) == 0;
    if (!opened || (!self->running && !options->driven))
        indexer_free (&self);
    return self;
}

void indexer_free (indexer_t **self_p)
{
    indexer_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (self->running)
        pthread_join (self->thread, NULL);
    search_writer_close (&self->writer);
    if (self->reader != NULL)
        store_reader_close (&self->reader);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    pthread_mutex_destroy (&self->file);
    free (self);
}
