/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* libtaskmq: what is set for queues, and how they stand. taskmq.h includes it. */
#ifndef TASKMQ_QUEUES_H
#define TASKMQ_QUEUES_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queues. */

/* What is set for a queue; 0: nothing. */
typedef struct tmq_queue_settings {
    uint64_t max_running; /* tasks that workers hold at once, 1..1,000,000 */
    uint64_t max_per_key; /* the same of one fair key */
    uint64_t weight_of;   /* what the fair key is: tmq_weight_of_t */
    uint64_t rate;        /* so many tasks may begin, 1..1,000,000, ... */
    uint64_t rate_ms;     /* ... in so long, 1 ms .. 1 d; with rate; at most 1,000 in 1 ms */
    uint64_t burst;       /* ... and so many at once; with rate; 0: what comes in 100 ms */
    uint64_t max_tasks;   /* queued ones; a submit beyond gets TMQ_LIMIT */
    uint64_t max_bytes;   /* of the payloads of queued ones; the same */
    uint64_t ttl_ms;      /* of a task that is submitted without one, and so on */
    uint64_t ttl_never;   /* 1: such a task never expires; then ttl_ms is 0 */
    uint64_t lease_ms;    /* 1 s .. 24 h */
    uint64_t backoff_ms;  /* at most 5 min */
    uint64_t max_attempts;
    uint64_t max_runtime_ms;
    uint64_t search_off; /* 1: the texts of its tasks are not found by searches */
    /* Of its tasks that have ended and that no time to live ends: */
    uint64_t max_age_ms;      /* they go so long after their end */
    uint64_t max_count;       /* so many stay, the newest */
    uint64_t max_ended_bytes; /* so many bytes of their payloads and results stay */
    uint64_t keep_failed_ms;  /* what failed stays so long, whatever a policy says */
    uint64_t min_keep;        /* so many of the newest stay, whatever a policy says */
} tmq_queue_settings_t;

/* A queue as it stands. All texts belong to the report. Later versions append members. */
typedef struct tmq_queue {
    const char *queue;
    bool paused;
    const char *paused_by;  /* an identity, as the broker takes it; empty: it is not paused */
    uint64_t paused_at;     /* ms since the epoch */
    const char *paused_why; /* may be empty */
    tmq_queue_settings_t settings;
    uint64_t ready;
    uint64_t scheduled;
    uint64_t working;
    uint64_t input_required;
    uint64_t queued_bytes; /* of the payloads of queued tasks */
    uint64_t running;      /* tasks that workers hold, also cancelled ones */
    uint64_t workers;      /* that serve it */
    uint64_t blocked;      /* queued tasks that wait for others */
    uint32_t closed;       /* why nothing is given away now: tmq_queue_closed_t, added up */
    uint32_t needs_sets;   /* different sets of labels that its live tasks require */
    /* Totals since the queue has had a task or a worker without a break. They are not stored: a
     * start of the broker begins anew, too. */
    uint64_t submitted;
    uint64_t completed;
    uint64_t failed;
    uint64_t attempts_failed; /* those of tasks that are tried again too */
    uint64_t oldest_ready_ms; /* so long its oldest ready task could have been claimed */
} tmq_queue_t;

struct tmq_queue_report {
    const tmq_queue_t *queues;
    size_t count;
    const char *next; /* opaque text, empty: nothing follows */
};
typedef struct tmq_queue_report tmq_queue_report_t;
/* Accepts NULL. */
TMQ_API void tmq_queue_report_free (tmq_queue_report_t *report);

/* The functions of this section wait for the answer, but for those that end in _start: they do not
 * block, and their completion has `queues`. *out is to be freed; it is not touched unless the code
 * is 0. Each may be repeated after TMQ_UNKNOWN. A queue need not exist to be set or paused: names
 * are made by their first use. */

/* Queues of the namespace that have tasks, workers or settings, in the order in which they came.
 * cursor: `next` of the page before; NULL: from the first. limit: at most 1,000; 0: 100. A page
 * may be shorter without being the last. Codes: TMQ_BAD_CURSOR. */
TMQ_API int tmq_queue_list (tmq_queue_report_t **out, tmq_client_t *client, const char *cursor,
                            uint32_t limit, uint32_t timeout_ms, tmq_error_t *error);
/* The completion is TMQ_OP_QUEUE_LIST. */
TMQ_API int tmq_queue_list_start (tmq_client_t *client, const char *cursor, uint32_t limit,
                                  uint32_t timeout_ms, void *user, tmq_error_t *error);
/* One of them. Codes: TMQ_NOT_FOUND. */
TMQ_API int tmq_queue_show (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                            uint32_t timeout_ms, tmq_error_t *error);
/* The completion is TMQ_OP_QUEUE_SHOW. */
TMQ_API int tmq_queue_show_start (tmq_client_t *client, const char *queue, uint32_t timeout_ms,
                                  void *user, tmq_error_t *error);
/* Sets the members of `settings` that `fields` names; 0 takes back what was set. It counts at once,
 * for what is queued too, but for the defaults, which a task gets as it is submitted. A cap below
 * what runs takes nothing away: nothing begins until less is running.
 * Codes: TMQ_INVALID (a value, named in the text), TMQ_DENIED (not an admin or operator),
 * TMQ_LIMIT (10,000 queues of a namespace have settings). */
TMQ_API int tmq_queue_set (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                           const tmq_queue_settings_t *settings, const tmq_queue_field_t *fields,
                           size_t fields_count, uint32_t timeout_ms, tmq_error_t *error);
/* Nothing of the queue is given to workers until it is resumed; what they hold goes on, and tasks
 * may be submitted. why (at most 256 bytes) may be NULL. Codes: TMQ_DENIED, TMQ_LIMIT. */
TMQ_API int tmq_queue_pause (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                             const char *why, uint32_t timeout_ms, tmq_error_t *error);
/* The completion is TMQ_OP_QUEUE_PAUSE. */
TMQ_API int tmq_queue_pause_start (tmq_client_t *client, const char *queue, const char *why,
                                   uint32_t timeout_ms, void *user, tmq_error_t *error);
/* To resume one that is not paused is no mistake. Codes: TMQ_DENIED. */
TMQ_API int tmq_queue_resume (tmq_queue_report_t **out, tmq_client_t *client, const char *queue,
                              uint32_t timeout_ms, tmq_error_t *error);
/* The completion is TMQ_OP_QUEUE_RESUME. */
TMQ_API int tmq_queue_resume_start (tmq_client_t *client, const char *queue, uint32_t timeout_ms,
                                    void *user, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
