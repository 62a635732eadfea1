/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a write that fails is repeated once a second, with the lines that waited. A sync that
 * fails may have lost what it was for, so the hole is told in a line too. */
#include "audit/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/sampler.h"
#include "audit/turned.h"
#include "core/base/memory.h"
#include "export/chain_file.h"
#include "export/packer.h"
#include "json.h"
#include "log/log.h"
#include "nearest.h"
#include "packed.h"
#include "timestamp.h"
#include "units.h"

enum {
    QUEUE_BYTES = 1024 * 1024, /* about 4,000 lines */
    QUEUE_SPARE = 64 * 1024,   /* of it for lines that tell of lines that are not there */
    LINE_BYTES_USUAL = 512,
    SYNC_MS = 1000,  /* a line is on the disk within this time */
    RETRY_MS = 1000, /* after a write that failed */
    HEAD_MS = 3600 * 1000,
    PACK_MS = 3600 * 1000, /* after a file that could not be packed */
    DAY_LENGTH = 10,       /* 2026-11-21 */
    HOLDS_FILES = 16,      /* turned ones, in which a head that was known is looked for */
    FIRST_TEN = 10,
    FIRST_OF_ACTOR = 1
};
#define ALL UINT64_MAX

static const struct kind {
    const char *name;
    uint64_t most; /* lines of one source in a minute */
} kind_table[AUDIT_KINDS] = {
#define X(NAME, name, some) [AUDIT_##NAME] = {name, some},
    AUDIT_KIND_MAP (X)
#undef X
};

bool audit_knows_kind (const char *name, const char **nearest)
{
    const char *names[AUDIT_KINDS];
    *nearest = NULL;
    for (size_t i = 0; i < AUDIT_KINDS; i++) {
        names[i] = kind_table[i].name;
        if (strcmp (names[i], name) == 0)
            return true;
    }
    *nearest = nearest_of (name, names, AUDIT_KINDS);
    return false;
}

struct audit {
    char *directory;
    uint64_t keep_bytes;
    int64_t keep_ms;
    int64_t (*wall_ms) (void);
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t noted;
    pthread_cond_t synced;
    bytes_t queue; /* members of lines, each behind its length */
    uint64_t noted_count;
    uint64_t synced_count; /* so many of those noted are on the disk */
    uint64_t failed_count; /* so many were in a try that failed */
    bool hurry;            /* somebody waits for the disk */
    uint64_t lost;         /* not told in a line yet */
    sampler_t sampler;
    bool stop;
    audit_stats_t stats;

    /* Of the thread. */
    chain_file_t file;
    turned_t turned;
    bytes_t taken; /* as queue: what is being written */
    uint64_t taken_count;
    char day[DAY_LENGTH + 1]; /* of the file's first line */
    int64_t sync_at;          /* monotonic; 0: everything is synced */
    int64_t retry_at;         /* after a failure */
    int64_t head_at;
    uint64_t head_told;
    shared_limit_t *free_bytes_min;
    packer_t *packer; /* of a turned file, a step each time that nothing waits to be written */
    int64_t pack_at;  /* INT64_MAX: all are packed */
    bool failing;     /* said once */
};

static int64_t wall_clock_ms (void)
{
    return clock_ms (CLOCK_REALTIME);
}

/* Noting. The lock is held. */

static void write_text (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    if (text == NULL || text[0] == '\0')
        json_write_null (writer);
    else
        json_write_string (writer, text, strnlen (text, AUDIT_TEXT_MAX));
}

static void append (audit_t *self, bytes_t *out, const audit_line_t *line)
{
    uint32_t length = 0;
    size_t from = out->length;
    bytes_append (out, &length, sizeof (length));
    json_writer_t writer = {out, false};
    json_write_key (&writer, "at");
    json_write_time (&writer, self->wall_ms ());
    write_text (&writer, "kind", kind_table[line->kind].name);
    write_text (&writer, "actor", line->actor);
    write_text (&writer, "from", line->from);
    write_text (&writer, "object", line->object);
    write_text (&writer, "ns", line->ns);
    write_text (&writer, "outcome", line->outcome != NULL ? line->outcome : "ok");
    write_text (&writer, "detail", line->detail);
    if (out->failed)
        abort (); /* out of memory, as everywhere in the broker */
    length = (uint32_t) (out->length - from - sizeof (length));
    memcpy (out->data + from, &length, sizeof (length));
}

/* The ticket of the line; 0: it was not taken. */
static uint64_t note (audit_t *self, const audit_line_t *line)
{
    const struct kind *kind = &kind_table[line->kind];
    bool has_from = kind->most != FIRST_OF_ACTOR && line->from != NULL && line->from[0] != '\0';
    const char *source = has_from ? line->from : line->actor;
    if (kind->most != ALL && !sampler_allows (&self->sampler, line->kind, source, kind->most,
                                              clock_ms (CLOCK_MONOTONIC))) {
        pthread_cond_signal (&self->noted); /* it looks for the end of the minute */
        return 0;
    }
    if (self->queue.length >= QUEUE_BYTES - QUEUE_SPARE) {
        self->lost++;
        self->stats.lost++;
        return 0;
    }
    append (self, &self->queue, line);
    pthread_cond_signal (&self->noted);
    return ++self->noted_count;
}

void audit_note (audit_t *self, const audit_line_t *line)
{
    if (self == NULL)
        return;
    pthread_mutex_lock (&self->lock);
    note (self, line);
    pthread_mutex_unlock (&self->lock);
}

bool audit_note_synced (audit_t *self, const audit_line_t *line)
{
    if (self == NULL)
        return true;
    pthread_mutex_lock (&self->lock);
    uint64_t ticket = note (self, line);
    self->hurry = true;
    while (ticket > self->synced_count && ticket > self->failed_count)
        pthread_cond_wait (&self->synced, &self->lock);
    bool good = ticket != 0 && ticket <= self->synced_count;
    pthread_mutex_unlock (&self->lock);
    return good;
}

void audit_stats (audit_t *self, audit_stats_t *out)
{
    *out = (audit_stats_t){0};
    if (self == NULL)
        return;
    pthread_mutex_lock (&self->lock);
    *out = self->stats;
    pthread_mutex_unlock (&self->lock);
}

/* What was known before. */

static void check_file (chain_check_t *check, const char *path)
{
    const char *line;
    size_t length;
    bool whole;
    packed_t *file = packed_open (path, true);
    while (file != NULL && packed_line (file, &line, &length, &whole) > 0)
        if (whole) /* the thread may be writing the last one */
            chain_check_line (check, line, length);
    packed_close (&file);
}

/* The head is told at each turn, so it is in the newest file, at the end of the one before, or, if
 * it was turned quickly, in a file not far behind. */
static bool holds (const audit_t *self, const chain_head_t *head)
{
    char path[AUDIT_PATH_SIZE];
    turned_t turned;
    chain_check_t check = {.known = head->hash};
    snprintf (path, sizeof (path), "%s/" AUDIT_FILE, self->directory);
    check_file (&check, path);
    turned_read (&turned, self->directory);
    size_t least = turned.count > HOLDS_FILES ? turned.count - HOLDS_FILES : 0;
    for (size_t i = turned.count; check.known_n != head->n && i > least; i--) {
        if (check.first_n > 0 && check.first_n <= head->n)
            break; /* it should have been here */
        turned_path (path, sizeof (path), self->directory, turned.numbers[i - 1]);
        check = (chain_check_t){.known = head->hash};
        check_file (&check, path);
    }
    turned_free (&turned);
    return check.known_n == head->n;
}

bool audit_expect (audit_t *self, const chain_head_t *head)
{
    char detail[128];
    if (self == NULL || head->n == 0 || holds (self, head))
        return true;
    snprintf (detail, sizeof (detail), "line %" PRIu64 " is not there, or not what it was",
              head->n);
    log_write (LOG_LEVEL_ERROR, "AUDIT-MISSING",
               "the record is not the one that was kept before this start: lines were removed or "
               "changed",
               LOG_FIELDS (LOG_NUMBER ("n", head->n)));
    audit_note (self,
                &(audit_line_t){.kind = AUDIT_AUDIT_GAP, .outcome = "missing", .detail = detail});
    return false;
}

/* Lines that tell of others that are not there. The lock is held. */

static void note_left_out (audit_t *self)
{
    sampler_row_t row;
    char detail[128];
    while (sampler_ended (&self->sampler, clock_ms (CLOCK_MONOTONIC), self->stop, &row)) {
        if (self->queue.length >= QUEUE_BYTES) {
            self->lost++;
            self->stats.lost++;
            continue;
        }
        snprintf (detail, sizeof (detail), "%" PRIu64 " more in this minute", row.count);
        const char *source = row.source[0] != '\0' ? row.source : "others";
        bool is_actor = kind_table[row.kind].most == FIRST_OF_ACTOR;
        audit_line_t line = {.kind = (audit_kind_t) row.kind,
                             .actor = is_actor ? source : NULL,
                             .from = is_actor ? NULL : source,
                             .outcome = "counted",
                             .detail = detail};
        append (self, &self->queue, &line);
        self->noted_count++;
    }
}

static void note_lost (audit_t *self)
{
    char detail[128];
    if (self->lost == 0)
        return;
    snprintf (detail, sizeof (detail), "%" PRIu64 " lines could not be kept", self->lost);
    audit_line_t line = {.kind = AUDIT_AUDIT_GAP, .outcome = "lost", .detail = detail};
    append (self, &self->queue, &line);
    self->noted_count++;
    self->lost = 0;
}

/* The thread: writing. */

static void failed (audit_t *self, const char *error)
{
    if (!self->failing)
        log_write (LOG_LEVEL_WARNING, "AUDIT-STALLED",
                   "audit.jsonl lags until it can be written; the broker goes on",
                   LOG_FIELDS (LOG_TEXT ("error", error)));
    self->failing = true;
    self->retry_at = clock_ms (CLOCK_MONOTONIC) + RETRY_MS;
    pthread_mutex_lock (&self->lock);
    self->stats.errors++;
    self->failed_count = self->noted_count;
    pthread_cond_broadcast (&self->synced);
    pthread_mutex_unlock (&self->lock);
}

static void tell_head (audit_t *self)
{
    char hash[CHAIN_HASH_TEXT_SIZE];
    const chain_head_t *head = &self->file.written;
    self->head_at = clock_ms (CLOCK_MONOTONIC) + HEAD_MS;
    if (head->n == self->head_told)
        return;
    self->head_told = head->n;
    chain_hash_format (hash, head->hash);
    log_write (LOG_LEVEL_INFO, "AUDIT-HEAD",
               "the record stands here: taskctl audit verify --head proves it later",
               LOG_FIELDS (LOG_NUMBER ("n", head->n), LOG_TEXT ("hash", hash)));
}

static void add_own (audit_t *self, audit_kind_t kind, const char *object, const char *outcome,
                     const char *detail)
{
    bytes_t members = BYTES_INIT;
    audit_line_t line = {.kind = kind, .object = object, .outcome = outcome, .detail = detail};
    append (self, &members, &line);
    chain_file_add (&self->file, members.data + sizeof (uint32_t),
                    members.length - sizeof (uint32_t));
    bytes_free (&members);
}

static void today (const audit_t *self, char day[DAY_LENGTH + 1])
{
    char text[TIME_TEXT_SIZE] = "";
    time_format (text, self->wall_ms ());
    snprintf (day, DAY_LENGTH + 1, "%.*s", DAY_LENGTH, text);
}

static bool is_due (const audit_t *self)
{
    char day[DAY_LENGTH + 1];
    today (self, day);
    return self->file.file.length > 0 && ((uint64_t) self->file.file.length >= self->keep_bytes ||
                                          strncmp (day, self->day, DAY_LENGTH) > 0);
}

static void remove_old (audit_t *self)
{
    size_t removed =
        turned_remove (&self->turned, self->directory, self->wall_ms () - self->keep_ms);
    if (removed > 0) {
        packer_free (&self->packer); /* it may be one of them */
        log_write (LOG_LEVEL_INFO, "AUDIT-REMOVED", "old files of the record were removed",
                   LOG_FIELDS (LOG_NUMBER ("files", removed)));
    }
    pthread_mutex_lock (&self->lock);
    self->stats.files = self->turned.count;
    pthread_mutex_unlock (&self->lock);
}

/* That nothing has yet: somebody may have put a file there while the broker ran. */
static uint32_t free_number (const audit_t *self)
{
    int64_t time;
    uint32_t number = turned_next (&self->turned);
    while (turned_time (self->directory, number, &time))
        number++;
    return number;
}

/* The full file, or yesterday's, gets a number; the first line of the new one says so. */
static bool turn (audit_t *self, char *error)
{
    char path[AUDIT_PATH_SIZE];
    uint32_t number = free_number (self);
    turned_path (path, sizeof (path), self->directory, number);
    if (!chain_file_turn (&self->file, path, error))
        return false;
    turned_t *turned = &self->turned;
    turned->numbers =
        memory_grow (turned->numbers, &turned->capacity, turned->count, sizeof (uint32_t));
    turned->numbers[turned->count++] = number;
    pthread_mutex_lock (&self->lock);
    self->stats.turns++;
    pthread_mutex_unlock (&self->lock);
    today (self, self->day);
    add_own (self, AUDIT_AUDIT_TURNED, strrchr (path, '/') + 1, NULL, NULL);
    tell_head (self);
    remove_old (self);
    self->pack_at = 0;
    return true;
}

/* A step of the oldest file that is still plain. */
static void pack (audit_t *self)
{
    char path[AUDIT_PATH_SIZE];
    char error[PACKER_ERROR_SIZE];
    if (self->packer == NULL) {
        uint32_t number = turned_plain (&self->turned, self->directory, 1);
        if (number == 0) {
            self->pack_at = INT64_MAX;
            return;
        }
        turned_path (path, sizeof (path), self->directory, number);
        self->packer = packer_new (path, self->free_bytes_min);
    }
    packer_state_t state = packer_step (self->packer, error);
    if (state == PACKER_MORE)
        return;
    packer_free (&self->packer);
    if (state == PACKER_DONE)
        return;
    self->pack_at = clock_ms (CLOCK_MONOTONIC) + PACK_MS;
    log_write (LOG_LEVEL_WARNING, "AUDIT-PLAIN",
               "a turned file of the record could not be packed: it stays as it is for now",
               LOG_FIELDS (LOG_TEXT ("error", error)));
}

static uint64_t add_taken (audit_t *self)
{
    uint64_t count = 0;
    uint32_t length;
    for (size_t at = 0; at < self->taken.length; at += length) {
        memcpy (&length, self->taken.data + at, sizeof (length));
        at += sizeof (length);
        chain_file_add (&self->file, self->taken.data + at, length);
        count++;
    }
    return count;
}

static void publish (audit_t *self, uint64_t lines, bool synced)
{
    pthread_mutex_lock (&self->lock);
    self->stats.lines += lines;
    self->stats.head = self->file.written;
    if (synced) {
        self->synced_count = self->taken_count;
        pthread_cond_broadcast (&self->synced);
    }
    pthread_mutex_unlock (&self->lock);
}

/* Somebody took the file away, or wrote into it. What is there now is set aside, and the chain goes
 * on behind what was written. */
static bool look_after (audit_t *self, char *error)
{
    if (!line_file_is_changed (&self->file.file))
        return true;
    if (!line_file_set_aside (&self->file.file, "foreign", error))
        return false;
    log_write (LOG_LEVEL_ERROR, "AUDIT-CHANGED",
               "audit.jsonl was taken away or changed by hand: it goes on in a new file", NULL);
    add_own (self, AUDIT_AUDIT_GAP, NULL, "changed",
             "the file before was taken away or changed by hand");
    return true;
}

/* What was taken into the file. False: again later. */
static bool write_taken (audit_t *self)
{
    char error[LINE_FILE_ERROR_SIZE];
    bool good = look_after (self, error) && (!is_due (self) || turn (self, error));
    uint64_t lines = good ? add_taken (self) : 0;
    if (!good || !chain_file_write (&self->file, error)) {
        failed (self, error);
        return false;
    }
    if (self->failing)
        log_write (LOG_LEVEL_INFO, "AUDIT-GOES-ON", "audit.jsonl can be written again", NULL);
    self->failing = false;
    bytes_clear (&self->taken);
    if (self->sync_at == 0)
        self->sync_at = clock_ms (CLOCK_MONOTONIC) + SYNC_MS;
    publish (self, lines, false);
    return true;
}

static void sync_file (audit_t *self)
{
    char error[LINE_FILE_ERROR_SIZE];
    bool good = chain_file_sync (&self->file, error);
    self->sync_at = 0;
    if (good) {
        publish (self, 0, true);
        return;
    }
    failed (self, error);
    /* The next sync would say that all is well. */
    audit_note (self, &(audit_line_t){.kind = AUDIT_AUDIT_GAP,
                                      .outcome = "unsure",
                                      .detail = "a sync failed: a loss of power may take lines "
                                                "before this one"});
}

/* The thread: waiting. */

static void wait_until (audit_t *self, int64_t at_ms)
{
    struct timespec until = {at_ms / 1000, at_ms % 1000 * 1000000};
    pthread_cond_timedwait (&self->noted, &self->lock, &until);
}

/* When there is something to do without news. The lock is held. */
static int64_t next_ms (const audit_t *self)
{
    int64_t next = self->head_at;
    if (self->sync_at != 0 && self->sync_at < next)
        next = self->sync_at;
    if (self->sampler.open > 0 && clock_ms (CLOCK_MONOTONIC) + SYNC_MS < next)
        next = clock_ms (CLOCK_MONOTONIC) + SYNC_MS;
    if (self->pack_at < next)
        next = self->pack_at;
    if (self->failing)
        next = self->retry_at;
    return next;
}

/* Waits for something to write, or for the time to sync. The lock is held. */
static void wait_news (audit_t *self)
{
    while (!self->stop) {
        int64_t now = clock_ms (CLOCK_MONOTONIC);
        bool news = self->taken.length > 0 || self->queue.length > 0;
        if (self->failing ? now >= self->retry_at : news || self->hurry || now >= next_ms (self))
            return;
        wait_until (self, next_ms (self));
        if (self->sampler.open > 0)
            note_left_out (self);
    }
}

/* Moves the queue behind what is still to be written. The lock is held. */
static void take_queue (audit_t *self)
{
    note_left_out (self);
    if (self->taken.length > 0)
        return; /* the last try failed: first what is older */
    note_lost (self);
    bytes_t empty = self->taken;
    self->taken = self->queue;
    self->queue = empty;
    self->taken_count = self->noted_count;
}

static void *audit_run (void *context)
{
    audit_t *self = context;
    pthread_setname_np (pthread_self (), "audit");
    bool ends = false;
    while (!ends) {
        pthread_mutex_lock (&self->lock);
        wait_news (self);
        take_queue (self);
        bool stop = self->stop;
        bool hurry = self->hurry || stop;
        ends = stop && self->queue.length == 0;
        self->hurry = false;
        pthread_mutex_unlock (&self->lock);
        bool good = self->taken.length == 0 || write_taken (self);
        if (good && self->sync_at != 0 && (hurry || clock_ms (CLOCK_MONOTONIC) >= self->sync_at))
            sync_file (self);
        else if (good && hurry)
            publish (self, 0, true);
        if (clock_ms (CLOCK_MONOTONIC) >= self->head_at)
            tell_head (self);
        if (good && !stop && clock_ms (CLOCK_MONOTONIC) >= self->pack_at)
            pack (self);
        ends = ends || (stop && !good);
    }
    return NULL;
}

/* Life. */

/* The text of a line's time; NULL: it has none. */
static const char *at_of (const char *line)
{
    static const char key[] = "\"at\":\"";
    const char *at = line != NULL ? strstr (line, key) : NULL;
    return at != NULL ? at + sizeof (key) - 1 : NULL;
}

/* 0: the line has none. */
static int64_t time_of (const char *line)
{
    char text[TIME_TEXT_SIZE];
    char error[UNITS_ERROR_SIZE];
    int64_t ms;
    const char *at = at_of (line);
    if (at == NULL)
        return 0;
    snprintf (text, sizeof (text), "%.*s", (int) strcspn (at, "\""), at);
    return time_parse (&ms, text, error) ? ms : 0;
}

/* An empty file goes on behind the newest that was turned: a crash may have come between. */
static bool follow_turned (audit_t *self, char *error)
{
    char path[AUDIT_PATH_SIZE];
    const char *line;
    size_t length;
    bool whole;
    int got = -1;
    bytes_t last = BYTES_INIT;
    if (self->turned.count == 0)
        return true;
    turned_path (path, sizeof (path), self->directory, turned_next (&self->turned) - 1);
    packed_t *file = packed_open (path, true);
    while (file != NULL && (got = packed_line (file, &line, &length, &whole)) > 0)
        if (whole) {
            bytes_clear (&last);
            bytes_append (&last, line, length);
        }
    int reason = errno;
    if (got < 0)
        snprintf (error, AUDIT_ERROR_SIZE, "cannot read %.300s: %s", path, packed_problem (reason));
    /* A damaged one is followed by nothing; that the record is gone is said by the head that was
     * kept. */
    bool good = got == 0 || reason == EBADMSG || reason == EFBIG;
    chain_head_t head = {0};
    if (got == 0 && last.length > 0 && chain_follow (&head, last.data, last.length)) {
        chain_file_begin (&self->file, &head);
        self->stats.last_ms = time_of (bytes_text (&last));
    }
    packed_close (&file);
    bytes_free (&last);
    return good;
}

static void note_end (audit_t *self, const audit_options_t *options, const chain_file_end_t *end)
{
    char detail[128];
    if (end->torn > 0) {
        snprintf (detail, sizeof (detail), "a crash left %lld bytes of a line: cut off",
                  (long long) end->torn);
        audit_note (self, &(audit_line_t){.kind = AUDIT_AUDIT_TORN, .detail = detail});
    }
    if (self->file.written.n > 0)
        return;
    snprintf (detail, sizeof (detail), "generation %016" PRIx64 ", epoch %" PRIu64 "%s",
              options->generation, options->epoch,
              end->damaged ? "; the file before was damaged and set aside" : "");
    audit_note (self, &(audit_line_t){.kind = AUDIT_AUDIT_BEGUN, .detail = detail});
}

/* The day of the first line, by its text. */
static void read_day (audit_t *self, const char *first)
{
    const char *at = at_of (first);
    if (at != NULL)
        snprintf (self->day, sizeof (self->day), "%.*s", DAY_LENGTH, at);
    else
        today (self, self->day);
}

static bool open_files (audit_t *self, const audit_options_t *options, char *error)
{
    char path[AUDIT_PATH_SIZE];
    chain_file_end_t end;
    snprintf (path, sizeof (path), "%s/" AUDIT_FILE, self->directory);
    turned_read (&self->turned, self->directory);
    if (!chain_file_open (&self->file, path, &end, error))
        return false;
    read_day (self, end.first);
    self->stats.last_ms = end.damaged ? 0 : time_of (end.last);
    free (end.first);
    free (end.last);
    if (end.damaged)
        log_write (LOG_LEVEL_ERROR, "AUDIT-DAMAGED",
                   "the end of audit.jsonl is damaged: set aside, begun anew", NULL);
    if (self->file.written.n == 0 && !end.damaged && !follow_turned (self, error))
        return false;
    note_end (self, options, &end);
    remove_old (self);
    self->stats.head = self->file.written;
    self->head_told = self->file.written.n;
    self->head_at = clock_ms (CLOCK_MONOTONIC) + HEAD_MS;
    return true;
}

static void release (audit_t *self)
{
    packer_free (&self->packer);
    chain_file_close (&self->file);
    turned_free (&self->turned);
    sampler_destroy (&self->sampler);
    bytes_free (&self->queue);
    bytes_free (&self->taken);
    pthread_mutex_destroy (&self->lock);
    pthread_cond_destroy (&self->noted);
    pthread_cond_destroy (&self->synced);
    free (self->directory);
    free (self);
}

audit_t *audit_new (const audit_options_t *options, char error[AUDIT_ERROR_SIZE])
{
    audit_t *self = memory_zero (1, sizeof (*self));
    self->directory = memory_text (options->directory);
    self->keep_bytes = options->keep_bytes;
    self->keep_ms = options->keep_ms;
    self->free_bytes_min = options->free_bytes_min;
    self->wall_ms = options->wall_ms != NULL ? options->wall_ms : wall_clock_ms;
    self->file.file.fd = -1;
    sampler_init (&self->sampler, AUDIT_KINDS);
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->synced, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init (&monotonic);
    pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init (&self->noted, &monotonic);
    pthread_condattr_destroy (&monotonic);
    if (!open_files (self, options, error)) {
        release (self);
        return NULL;
    }
    if (pthread_create (&self->thread, NULL, audit_run, self) != 0) {
        snprintf (error, AUDIT_ERROR_SIZE, "cannot start a thread");
        release (self);
        return NULL;
    }
    return self;
}

void audit_free (audit_t **self_p)
{
    audit_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_signal (&self->noted);
    pthread_mutex_unlock (&self->lock);
    pthread_join (self->thread, NULL);
    tell_head (self);
    if (self->taken.length > 0 || self->queue.length > 0)
        log_write (LOG_LEVEL_ERROR, "AUDIT-LOST",
                   "audit.jsonl could not be written at the stop: its last lines are lost", NULL);
    release (self);
}
