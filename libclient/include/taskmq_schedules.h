/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* libtaskmq: tasks that are submitted again and again. taskmq.h includes it. */
#ifndef TASKMQ_SCHEDULES_H
#define TASKMQ_SCHEDULES_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Schedules. */

/* While the task of the instant before has not ended. */
typedef enum tmq_overlap {
    TMQ_OVERLAP_ALLOW = 0, /* submit all the same */
    TMQ_OVERLAP_SKIP,      /* make none */
    TMQ_OVERLAP_CANCEL     /* cancel that one first */
} tmq_overlap_t;

/* Instants that came while the broker was away; they are 60 s late, or more. */
typedef enum tmq_missed {
    TMQ_MISSED_SKIP = 0, /* make none */
    TMQ_MISSED_ONE,      /* make the newest one */
    TMQ_MISSED_ALL       /* make all, but at most the newest 100 */
} tmq_missed_t;

/* What is to be submitted, and when. */
typedef struct tmq_schedule_spec {
    size_t size;          /* set by tmq_schedule_spec_init */
    const char *name;     /* a name, unique in the namespace */
    const char *calendar; /* five fields as of cron(8), "@hourly", ..., or "@every 90s" */
    const char *zone;     /* IANA, "Europe/Berlin"; NULL: UTC */
    tmq_overlap_t overlap;
    tmq_missed_t missed;
    uint64_t until; /* ms since the epoch: no instant after it; 0: no end */
    bool paused;    /* it makes no tasks until it is resumed */
    bool replace;   /* one's own schedule of this name, if there is one */
    /* Each instant's task: at most 64 KiB of payload, no id, dedup_key, not_before, start_by and
     * after, which are of one task. */
    const tmq_submit_t *task;
} tmq_schedule_spec_t;
TMQ_API void tmq_schedule_spec_init (tmq_schedule_spec_t *spec, size_t size);
#define tmq_schedule_spec_init(spec) tmq_schedule_spec_init ((spec), sizeof *(spec))

/* A schedule as it stands. All texts belong to the report. Later versions append members. */
typedef struct tmq_schedule {
    const char *name;
    const char *calendar;
    const char *zone; /* empty: UTC */
    tmq_overlap_t overlap;
    tmq_missed_t missed;
    uint64_t until;
    bool paused;
    const char *owner;
    uint64_t created_at; /* times are ms since the epoch */
    uint64_t updated_at;
    uint64_t version;
    uint64_t last_at;       /* the newest instant that was decided, or from when on they count */
    tmq_id_t last_task;     /* zero: none yet */
    uint64_t fired;         /* tasks that came of it */
    uint64_t skipped;       /* instants that made none, because the task before had not ended */
    const char *last_error; /* why the newest instant made none; empty: it did */
    const uint64_t *coming; /* the next instants; none: it is paused, or over */
    size_t coming_count;
    const char *queue; /* of its tasks */
    const char *session;
    const char *method;
    const char *content_type;
    uint64_t payload_bytes;
    const void *payload; /* NULL unless it was asked for and may be read */
} tmq_schedule_t;

typedef struct tmq_schedule_report {
    const tmq_schedule_t *schedules;
    size_t count;
    bool more; /* others follow behind the last name */
} tmq_schedule_report_t;
/* Accepts NULL. */
TMQ_API void tmq_schedule_report_free (tmq_schedule_report_t *report);

/* The functions of this section wait for the answer. *out is to be freed; it is not touched unless
 * the code is 0. */

/* Makes a schedule. Each instant is decided once, also through restarts of the broker; its task is
 * the caller's. May be repeated after TMQ_UNKNOWN with replace.
 * Codes: TMQ_INVALID (the calendar, the zone; the text says which), TMQ_CONFLICT (the name is
 * there), TMQ_DENIED (no right to submit to the queue), TMQ_LIMIT (10,000 of a namespace). */
TMQ_API int tmq_schedule_put (tmq_schedule_report_t **out, tmq_client_t *client,
                              const tmq_schedule_spec_t *spec, uint32_t timeout_ms,
                              tmq_error_t *error);
/* One of them, with its payload and its next instants (0: one; at most 100). Codes: TMQ_NOT_FOUND.
 */
TMQ_API int tmq_schedule_show (tmq_schedule_report_t **out, tmq_client_t *client, const char *name,
                               uint32_t coming, uint32_t timeout_ms, tmq_error_t *error);
/* Those whose names come behind `after` (NULL: the first), in the order of bytes. limit: at most
 * 1,000; 0: 50. A page may be shorter. */
TMQ_API int tmq_schedule_list (tmq_schedule_report_t **out, tmq_client_t *client, const char *after,
                               uint32_t limit, uint32_t timeout_ms, tmq_error_t *error);
/* It makes no tasks until it is resumed; what falls into the pause is not made up for. To repeat it
 * is no mistake. Codes: TMQ_NOT_FOUND, TMQ_DENIED. */
TMQ_API int tmq_schedule_pause (tmq_schedule_report_t **out, tmq_client_t *client, const char *name,
                                uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_schedule_resume (tmq_schedule_report_t **out, tmq_client_t *client,
                                 const char *name, uint32_t timeout_ms, tmq_error_t *error);
/* Its live tasks go on. Codes: TMQ_NOT_FOUND, TMQ_DENIED. */
TMQ_API int tmq_schedule_remove (tmq_client_t *client, const char *name, uint32_t timeout_ms,
                                 tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
