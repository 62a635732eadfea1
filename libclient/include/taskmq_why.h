/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* libtaskmq: why a task does not move. taskmq.h includes it. */
#ifndef TASKMQ_WHY_H
#define TASKMQ_WHY_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One fact of an explanation. */
typedef struct tmq_fact {
    const char *name;
    tmq_fact_kind_t kind;
    const char *text; /* of a TMQ_FACT_TEXT, else empty */
    uint64_t number;  /* of the other kinds: a number, ms since the epoch, or ms */
} tmq_fact_t;

/* What holds a task at this moment: the first thing that stands between it and its end. All texts
 * belong to it. Later versions append members. */
struct tmq_explanation {
    tmq_id_t id;
    const char *reason;   /* a word for programs, as "no_worker"; PROTOCOL.md lists them */
    const char *sentence; /* for people */
    tmq_status_t status;
    tmq_phase_t phase;
    const tmq_fact_t *facts;
    size_t facts_count;
    const tmq_dependency_t *after; /* what it still waits for */
    size_t after_count;
};
/* Accepts NULL. */
TMQ_API void tmq_explanation_free (tmq_explanation_t *explanation);

/* Why the task is where it is. Waits for the answer; *out is to be freed, and is not touched unless
 * the code is 0. The broker computes it from what decides, so it is true when it is given.
 * Codes: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED (the text says since when), TMQ_DENIED. */
TMQ_API int tmq_why (tmq_explanation_t **out, tmq_client_t *client, const tmq_id_t *id,
                     uint32_t timeout_ms, tmq_error_t *error);
/* The completion is TMQ_OP_WHY. Does not block. */
TMQ_API int tmq_why_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                           void *user, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
