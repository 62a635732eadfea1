/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The task that a route is about. */
#ifndef TASKMQ_GATEWAY_REST_SUBJECT_H
#define TASKMQ_GATEWAY_REST_SUBJECT_H

#include "rest/answer.h"

/* What stands behind the id in the path. */
typedef struct subject {
    tmq_id_t id;
    int (*start) (exchange_t *exchange, tmq_error_t *error);
    char message[TMQ_MESSAGE_BYTES_MAX + 1]; /* of a cancel */
    uint64_t before;                         /* of a page of events */
    uint32_t limit;
    uint32_t attempt; /* to be adopted, or whose log; or behind which a page of them begins */
    tmq_log_stream_t stream; /* of a log, … */
    uint64_t offset;         /* … and from where on */
    bool waited;             /* as long as was wished */
    bool looking;            /* at the record, and … */
    bool again;              /* … it has changed meanwhile */
    flow_t *flow;            /* that tells so */
    uint64_t wait;           /* for its end: the ticket */
    link_t *link;
    bool done; /* what was asked for: only the record is still to be shown */
} subject_t;

/* Of an exchange for which one was begun. */
subject_t *subject_of (exchange_t *exchange);
/* NULL: answered. */
subject_t *subject_begin (exchange_t *exchange);
/* Starts what is to be done, or answers. */
void subject_act (exchange_t *exchange);
/* … when it is known whose the task is: for what does not bring the task itself. */
void subject_act_if_theirs (exchange_t *exchange);
/* True if a completion with the task is good, and it is theirs; else answered. A task of somebody
 * else is as one that is not there. */
bool subject_came (exchange_t *exchange, const tmq_completion_t *completion);
/* The record as the body of a response, with its tag. */
void subject_write (const exchange_t *exchange, response_t *response, json_writer_t *writer,
                    const tmq_task_t *task);
/* Answers with the record. */
void subject_answer (exchange_t *exchange, const tmq_task_t *task);
/* Looks the task up, and answers with its record. */
int subject_show (exchange_t *exchange, tmq_error_t *error);
/* … when what was asked for has been done: that is true also when the record cannot be had. */
void subject_show_done (exchange_t *exchange);

#endif
