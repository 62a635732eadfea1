/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The one checker of the stress runs: what clients were told, against a final drain, the exported
 * JSONL and the database (I1 to I8, I10, I16).
 *
 * A history is filled by many threads at once while brokers and connections die. At the end
 * checker_drain asks the broker about every task, checker_events looks at what subscribers saw,
 * checker_files reads the files of a stopped broker. Each fails the cmocka test on the first
 * difference and names it. */
#ifndef TASKMQ_TESTS_CHECKER_H
#define TASKMQ_TESTS_CHECKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "taskmq.h"

enum { CHECKER_TEXT_MAX = 64, CHECKER_STREAMS_MAX = 8, CHECKER_FRESH = 8 };

/* What is known about one task. */
typedef struct fact {
    tmq_id_t id;
    char payload[CHECKER_TEXT_MAX];
    bool accepted;         /* the submit was acknowledged */
    bool cancelled;        /* the cancel was acknowledged */
    uint32_t completed_by; /* attempt whose completion was acknowledged, 0: none */
    char result[CHECKER_TEXT_MAX];
    uint32_t attempts_seen; /* highest attempt that a worker was given */
    uint64_t attempts;      /* bit n % 64: attempt n was given */
    uint32_t assignments;
    tmq_status_t ended;    /* terminal status that a wait or a get told */
    bool finished;         /* nothing more is to come of it, as somebody was told */
    uint64_t told_version; /* the newest that any answer told, … */
    uint64_t told_seq;     /* … and the newest event */
    /* of the final drain */
    tmq_status_t status;
    uint32_t attempt;
    uint64_t version;
    uint64_t seq;
} fact_t;

/* What had been told of a task when somebody asked for it. */
typedef struct asked {
    tmq_id_t id;
    size_t number;
    bool accepted;
    uint64_t version;
    uint64_t seq;
    uint32_t attempt;
    tmq_status_t ended;
} asked_t;

typedef struct seen_event {
    uint64_t seq;
    tmq_event_kind_t kind;
    tmq_id_t task_id;
    tmq_status_t status;
    tmq_status_t previous;
    uint32_t attempt;
} seen_event_t;

/* What one subscriber took, in its order. */
typedef struct stream {
    seen_event_t *events;
    size_t count;
    size_t capacity;
    uint64_t upto; /* its cursor */
    uint64_t generation;
} stream_t;

typedef struct history {
    pthread_mutex_t mutex;
    fact_t *facts; /* in order of making */
    size_t count;
    size_t capacity;
    size_t *index; /* open addressing, number of the fact + 1 */
    size_t index_size;
    size_t accepted;
    size_t cancelled;
    size_t completed;
    size_t finished;
    size_t fresh[CHECKER_FRESH]; /* numbers of tasks of which something new was told last */
    size_t freshened;
    size_t told; /* answers that could be compared with what had been told before */
    stream_t streams[CHECKER_STREAMS_MAX];
    char broken[512]; /* first contradiction that a client saw; reported by checker_drain */
} history_t;

void history_init (history_t *self);
void history_clear (history_t *self);

/* While it runs; any thread. */

/* A new task: makes id and payload ("task N" and a random tail). Returns its number. */
size_t history_new_task (history_t *self, tmq_id_t *id, char payload[CHECKER_TEXT_MAX]);
void history_accepted (history_t *self, size_t number, const tmq_receipt_t *receipt);
void history_cancelled (history_t *self, size_t number);
void history_ended (history_t *self, size_t number, tmq_status_t status);
/* The result that this attempt is to bring. */
void history_assigned (history_t *self, const tmq_assignment_t *assignment,
                       char result[CHECKER_TEXT_MAX]);
void history_completed (history_t *self, const tmq_id_t *id, uint32_t attempt, const char *result);
void history_event (history_t *self, size_t stream, const tmq_event_t *event);
/* Before somebody asks for a task, by dice: one of which something new was just told, or one of the
 * newest. False: there is none. */
bool history_ask (history_t *self, unsigned dice, asked_t *out);
/* What came of it: an answer says no less than what had been told, by whichever broker, before the
 * question was asked. NULL for a task that is not there; other codes say nothing. */
void history_told (history_t *self, const asked_t *asked, int code, const tmq_task_t *task);
size_t history_accepted_count (history_t *self);
size_t history_completed_count (history_t *self);
/* Nothing more is to come of them. */
size_t history_finished_count (history_t *self);
/* A contradiction that a client saw; the first one is kept. */
void history_broken (history_t *self, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* At the end. */

/* Waits until every accepted task is terminal, ms at most. Submitters must have ended; workers may
 * still be at work. */
void checker_wait (history_t *history, tmq_client_t *client, uint32_t ms);
/* Reads each task and compares. Nobody writes into the history any more. */
void checker_drain (history_t *history, tmq_client_t *client);
/* Each stream: gapless from 1 to upto, the same as the others, and the story of each task is a
 * possible one that ends as the drain says. All streams must have come as far as upto. */
void checker_events (const history_t *history, size_t streams, uint64_t upto);
/* Of a stopped broker: integrity, foreign keys, an empty journal; tasks.jsonl: whole lines, pos
 * strictly rising, the last line of each task as the drain saw it. */
void checker_files (const history_t *history, const char *data_directory);
/* Only tasks.jsonl. */
void checker_tasks_file (const history_t *history, const char *data_directory);
/* Only integrity and foreign keys of both databases. */
void checker_databases (const char *data_directory);

#endif
