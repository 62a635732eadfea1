/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What clients did and were told, written down while it happens. Contradictions that one answer
 * shows (a second accepted outcome, an attempt that was given twice) are noted at once, because
 * the final state might hide them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/checker.h"

enum { INDEX_FIRST = 1024, NEWEST = 256 /* tasks that change still */ };

void history_init (history_t *self)
{
    memset (self, 0, sizeof *self);
    pthread_mutex_init (&self->mutex, NULL);
    self->index_size = INDEX_FIRST;
    self->index = calloc (self->index_size, sizeof *self->index);
}

void history_clear (history_t *self)
{
    for (size_t i = 0; i < CHECKER_STREAMS_MAX; i++) {
        free (self->streams[i].events);
    }
    free (self->facts);
    free (self->index);
    pthread_mutex_destroy (&self->mutex);
    memset (self, 0, sizeof *self);
}

static void note (history_t *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

/* The mutex is held. */
static void note (history_t *self, const char *format, ...)
{
    if (self->broken[0] == '\0') {
        va_list arguments;
        va_start (arguments, format);
        vsnprintf (self->broken, sizeof self->broken, format, arguments);
        va_end (arguments);
    }
}

void history_broken (history_t *self, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);
    pthread_mutex_lock (&self->mutex);
    note (self, "%s", text);
    pthread_mutex_unlock (&self->mutex);
}

/* Facts by id. */

static size_t slot_of (const history_t *self, const tmq_id_t *id)
{
    uint64_t key;
    memcpy (&key, id->bytes + 8, sizeof key);
    size_t at = (size_t) (key * 0x9e3779b97f4a7c15u >> 20) & (self->index_size - 1);
    while (self->index[at] != 0 &&
           memcmp (&self->facts[self->index[at] - 1].id, id, sizeof *id) != 0) {
        at = (at + 1) & (self->index_size - 1);
    }
    return at;
}

static void grow (history_t *self)
{
    if (self->count == self->capacity) {
        self->capacity = self->capacity == 0 ? 1024 : 2 * self->capacity;
        self->facts = realloc (self->facts, self->capacity * sizeof *self->facts);
    }
    if (2 * self->count >= self->index_size) {
        free (self->index);
        self->index_size *= 2;
        self->index = calloc (self->index_size, sizeof *self->index);
        for (size_t i = 0; i < self->count; i++) {
            self->index[slot_of (self, &self->facts[i].id)] = i + 1;
        }
    }
}

/* NULL for a task that nobody made here. The mutex is held. */
static fact_t *find (history_t *self, const tmq_id_t *id)
{
    size_t found = self->index[slot_of (self, id)];
    if (found == 0) {
        char text[37];
        tmq_id_format (id, text);
        note (self, "task %s: nobody submitted it", text);
        return NULL;
    }
    return &self->facts[found - 1];
}

size_t history_new_task (history_t *self, tmq_id_t *id, char payload[CHECKER_TEXT_MAX])
{
    tmq_id_make (id);
    pthread_mutex_lock (&self->mutex);
    grow (self);
    size_t number = self->count++;
    fact_t *fact = &self->facts[number];
    memset (fact, 0, sizeof *fact);
    fact->id = *id;
    snprintf (fact->payload, sizeof fact->payload, "task %zu %02x%02x", number, id->bytes[14],
              id->bytes[15]);
    memcpy (payload, fact->payload, CHECKER_TEXT_MAX);
    self->index[slot_of (self, id)] = number + 1;
    pthread_mutex_unlock (&self->mutex);
    return number;
}

/* Notes. */

/* The mutex is held, in these two. */
static void freshen (history_t *self, const fact_t *fact)
{
    self->fresh[self->freshened++ % CHECKER_FRESH] = (size_t) (fact - self->facts);
}

static void finish (history_t *self, fact_t *fact)
{
    self->finished += !fact->finished;
    if (!fact->finished) {
        freshen (self, fact);
    }
    fact->finished = true;
}

void history_accepted (history_t *self, size_t number, const tmq_receipt_t *receipt)
{
    pthread_mutex_lock (&self->mutex);
    fact_t *fact = &self->facts[number];
    if (memcmp (&receipt->id, &fact->id, sizeof fact->id) != 0) {
        note (self, "I6: the receipt of task %zu names another task", number);
    }
    self->accepted += !fact->accepted;
    fact->accepted = true;
    freshen (self, fact);
    pthread_mutex_unlock (&self->mutex);
}

void history_cancelled (history_t *self, size_t number)
{
    pthread_mutex_lock (&self->mutex);
    fact_t *fact = &self->facts[number];
    if (fact->completed_by > 0) {
        note (self, "I2: task %zu was completed, then cancelled", number);
    }
    self->cancelled += !fact->cancelled;
    fact->cancelled = true;
    finish (self, fact);
    fact->ended = TMQ_STATUS_CANCELLED;
    pthread_mutex_unlock (&self->mutex);
}

void history_ended (history_t *self, size_t number, tmq_status_t status)
{
    pthread_mutex_lock (&self->mutex);
    fact_t *fact = &self->facts[number];
    if (fact->ended != TMQ_STATUS_NONE && fact->ended != status) {
        note (self, "I2: task %zu ended as %s and as %s", number, tmq_status_text (fact->ended),
              tmq_status_text (status));
    }
    fact->ended = status;
    pthread_mutex_unlock (&self->mutex);
}

void history_assigned (history_t *self, const tmq_assignment_t *assignment,
                       char result[CHECKER_TEXT_MAX])
{
    pthread_mutex_lock (&self->mutex);
    fact_t *fact = find (self, &assignment->task_id);
    result[0] = '\0';
    if (fact != NULL) {
        /* Threads may note two attempts in another order than they were given in. */
        uint64_t bit = 1ull << (assignment->attempt % 64);
        if ((fact->attempts & bit) != 0) {
            note (self, "I5: %s: attempt %u was given twice", fact->payload, assignment->attempt);
        }
        fact->attempts |= bit;
        if (fact->completed_by > 0 && assignment->attempt > fact->completed_by) {
            note (self, "I4: %s: attempt %u was given, %u had completed it", fact->payload,
                  assignment->attempt, fact->completed_by);
        }
        if (assignment->payload_bytes != strlen (fact->payload) ||
            memcmp (assignment->payload, fact->payload, assignment->payload_bytes) != 0) {
            note (self, "I1: %s came with another payload", fact->payload);
        }
        if (assignment->attempt > fact->attempts_seen) {
            fact->attempts_seen = assignment->attempt;
        }
        fact->assignments++;
        snprintf (result, CHECKER_TEXT_MAX, "%.40s by %u", fact->payload, assignment->attempt);
    }
    pthread_mutex_unlock (&self->mutex);
}

void history_completed (history_t *self, const tmq_id_t *id, uint32_t attempt, const char *result)
{
    pthread_mutex_lock (&self->mutex);
    fact_t *fact = find (self, id);
    if (fact != NULL) {
        if (fact->completed_by > 0) {
            note (self, "I4: %s: attempts %u and %u both completed it", fact->payload,
                  fact->completed_by, attempt);
        }
        if (fact->attempts_seen > attempt) {
            note (self, "I4: %s: attempt %u was accepted, %u had been given", fact->payload,
                  attempt, fact->attempts_seen);
        }
        if (fact->cancelled) {
            note (self, "I2: %s was cancelled, then completed", fact->payload);
        }
        fact->completed_by = attempt;
        snprintf (fact->result, sizeof fact->result, "%s", result);
        self->completed++;
        finish (self, fact);
    }
    pthread_mutex_unlock (&self->mutex);
}

void history_event (history_t *self, size_t stream, const tmq_event_t *event)
{
    pthread_mutex_lock (&self->mutex);
    stream_t *to = &self->streams[stream];
    if (event->item == TMQ_ITEM_GAP) {
        note (self, "I7: stream %zu: a gap %llu..%llu", stream,
              (unsigned long long) event->gap_from, (unsigned long long) event->gap_to);
    } else if (event->item == TMQ_ITEM_EVENT) {
        if (to->count == to->capacity) {
            to->capacity = to->capacity == 0 ? 4096 : 2 * to->capacity;
            to->events = realloc (to->events, to->capacity * sizeof *to->events);
        }
        to->events[to->count++] = (seen_event_t){event->seq,    event->kind,     event->task_id,
                                                 event->status, event->previous, event->attempt};
        if (event->seq != to->upto + 1) {
            note (self, "I7: stream %zu: event %llu after %llu", stream,
                  (unsigned long long) event->seq, (unsigned long long) to->upto);
        }
        if (to->generation != 0 && to->generation != event->generation) {
            note (self, "I7: stream %zu: another generation", stream);
        }
        to->generation = event->generation;
        to->upto = event->seq;
        fact_t *fact = find (self, &event->task_id);
        if (fact != NULL && event->seq > fact->told_seq) {
            fact->told_seq = event->seq;
        }
        if (fact != NULL && tmq_status_terminal (event->status)) {
            finish (self, fact);
        }
    }
    pthread_mutex_unlock (&self->mutex);
}

/* What was told before (I16). */

static tmq_status_t ended_as (const fact_t *fact)
{
    return fact->completed_by > 0 ? TMQ_STATUS_COMPLETED : fact->ended;
}

bool history_ask (history_t *self, unsigned dice, asked_t *out)
{
    pthread_mutex_lock (&self->mutex);
    size_t among = self->count < NEWEST ? self->count : NEWEST;
    if (among > 0) {
        size_t number = self->count - 1 - dice / 2 % among;
        if (dice % 2 == 0 && self->freshened >= CHECKER_FRESH) {
            number = self->fresh[dice / 2 % CHECKER_FRESH];
        }
        const fact_t *fact = &self->facts[number];
        *out = (asked_t){.id = fact->id,
                         .number = number,
                         .accepted = fact->accepted,
                         .version = fact->told_version,
                         .seq = fact->told_seq,
                         .attempt = fact->attempts_seen,
                         .ended = ended_as (fact)};
    }
    pthread_mutex_unlock (&self->mutex);
    return among > 0;
}

/* The mutex is held. */
static void compare_told (history_t *self, const asked_t *asked, const tmq_task_t *task)
{
    const char *payload = self->facts[asked->number].payload;
    bool ended = asked->ended != TMQ_STATUS_NONE && task->status != asked->ended;
    if (task->version < asked->version || task->seq < asked->seq ||
        task->attempt < asked->attempt || ended) {
        note (self,
              "I16: %s was told at version %llu, event %llu, attempt %u, %s; later at %llu, %llu, "
              "%u, %s",
              payload, (unsigned long long) asked->version, (unsigned long long) asked->seq,
              asked->attempt, tmq_status_text (asked->ended), (unsigned long long) task->version,
              (unsigned long long) task->seq, task->attempt, tmq_status_text (task->status));
    }
}

/* The mutex is held. */
static void keep_told (fact_t *fact, const tmq_task_t *task)
{
    if (task->version > fact->told_version) {
        fact->told_version = task->version;
    }
    if (task->seq > fact->told_seq) {
        fact->told_seq = task->seq;
    }
    if (tmq_status_terminal (task->status) && fact->ended == TMQ_STATUS_NONE) {
        fact->ended = task->status;
    }
}

void history_told (history_t *self, const asked_t *asked, int code, const tmq_task_t *task)
{
    bool told = asked->version > 0 || asked->seq > 0 || asked->attempt > 0;
    pthread_mutex_lock (&self->mutex);
    if (code == TMQ_NOT_FOUND && (asked->accepted || told)) {
        note (self, "I16: %s was told, later it was not found", self->facts[asked->number].payload);
    } else if (code == TMQ_OK) {
        self->told += told;
        compare_told (self, asked, task);
        keep_told (&self->facts[asked->number], task);
    }
    pthread_mutex_unlock (&self->mutex);
}

/* Numbers. */

size_t history_accepted_count (history_t *self)
{
    pthread_mutex_lock (&self->mutex);
    size_t count = self->accepted;
    pthread_mutex_unlock (&self->mutex);
    return count;
}

size_t history_finished_count (history_t *self)
{
    pthread_mutex_lock (&self->mutex);
    size_t count = self->finished;
    pthread_mutex_unlock (&self->mutex);
    return count;
}

size_t history_completed_count (history_t *self)
{
    pthread_mutex_lock (&self->mutex);
    size_t count = self->completed;
    pthread_mutex_unlock (&self->mutex);
    return count;
}
