/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "codec/sessions.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/errors.h"
#include "codec/encode.h"
#include "codec/tail.h"

/* Requests. */

/* Field numbers of SessionSet in taskmq.proto. */
enum {
    SET_NAME = 1,
    SET_GOAL = 2,
    SET_SALIENCE = 3,
    SET_CONTEXT = 4,
    SET_LABELS = 5,
    SET_DROP_LABELS = 6,
    SET_FIELDS = 7
};
enum { LABEL_KEY = 1, LABEL_VALUE = 2 };

static int check (const tmq_session_spec_t *spec, tmq_error_t *error)
{
    if (spec == NULL || spec->size != sizeof *spec)
        return core_error (error, TMQ_INVALID, "tmq_session_spec_init was not called");
    int code = core_check_name (spec->name, "session", true, error);
    if (code == TMQ_OK)
        code = core_check_text (spec->goal, "goal", TMQ_SESSION_GOAL_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (spec->context, "context", TMQ_SESSION_CONTEXT_BYTES_MAX, error);
    if (code == TMQ_OK && spec->salience > TMQ_SALIENCE_MAX)
        code = core_error (error, TMQ_INVALID, "salience: must be in 1..%d", TMQ_SALIENCE_MAX);
    if (code == TMQ_OK &&
        (spec->labels_count > TMQ_LABELS_MAX || spec->drop_labels_count > TMQ_LABELS_MAX))
        code = core_error (error, TMQ_TOO_LARGE, "labels: at most %d are allowed", TMQ_LABELS_MAX);
    for (size_t i = 0; code == TMQ_OK && i < spec->labels_count; i++) {
        code = core_check_name (spec->labels[i].key, "label", true, error);
        if (code == TMQ_OK)
            code = core_check_text (spec->labels[i].value, "label", TMQ_LABEL_BYTES_MAX, error);
    }
    for (size_t i = 0; code == TMQ_OK && i < spec->drop_labels_count; i++)
        code = core_check_name (spec->drop_labels[i], "label", true, error);
    return code;
}

int core_request_session (core_request_t **out, const tmq_session_spec_t *spec, tmq_error_t *error)
{
    int code = check (spec, error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_SESSION_SET);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_t *fields = &request->fields;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_string (fields, SET_NAME, spec->name);
    bytes_append_string (fields, SET_GOAL, spec->goal == NULL ? "" : spec->goal);
    bytes_append_uint (fields, SET_SALIENCE, spec->salience);
    bytes_append_string (fields, SET_CONTEXT, spec->context == NULL ? "" : spec->context);
    for (size_t i = 0; i < spec->labels_count; i++) {
        bytes_mark_t label = bytes_open (fields, SET_LABELS);
        bytes_append_string (fields, LABEL_KEY, spec->labels[i].key);
        bytes_append_string (fields, LABEL_VALUE, spec->labels[i].value);
        bytes_close (fields, label);
    }
    for (size_t i = 0; i < spec->drop_labels_count; i++)
        bytes_append_string (fields, SET_DROP_LABELS, spec->drop_labels[i]);
    bytes_append_uint (fields, SET_FIELDS, spec->goal == NULL ? 0 : TMQ_SESSION_FIELD_GOAL);
    bytes_append_uint (fields, SET_FIELDS, spec->salience == 0 ? 0 : TMQ_SESSION_FIELD_SALIENCE);
    bytes_append_uint (fields, SET_FIELDS, spec->context == NULL ? 0 : TMQ_SESSION_FIELD_CONTEXT);
    bytes_close (fields, mark);
    return core_request_finish (out, request, error);
}

/* Records. */

static void fill (tmq_session_t *out, tail_t *tail, const Taskmq__Session *in)
{
    tmq_label_t labels[TMQ_LABELS_MAX] = {{NULL, NULL}};
    size_t count = in->n_labels < TMQ_LABELS_MAX ? in->n_labels : TMQ_LABELS_MAX;
    tmq_label_t *place = tail_bytes (tail, labels, count * sizeof *labels); /* aligned */
    for (size_t i = 0; i < count; i++) {
        labels[i].key = tail_text (tail, in->labels[i]->key);
        labels[i].value = tail_text (tail, in->labels[i]->value);
    }
    if (place != NULL)
        memcpy (place, labels, count * sizeof *labels);
    *out = (tmq_session_t){.name = tail_text (tail, in->name),
                           .goal = tail_text (tail, in->goal),
                           .status = (tmq_session_status_t) in->status,
                           .salience = in->salience,
                           .labels = place,
                           .labels_count = count,
                           .context = tail_text (tail, in->context),
                           .owner = tail_text (tail, in->owner),
                           .created_at = in->created_at,
                           .updated_at = in->updated_at,
                           .version = in->version,
                           .status_by = tail_text (tail, in->status_by),
                           .status_at = in->status_at,
                           .status_why = tail_text (tail, in->status_why),
                           .last_task_at = in->last_task_at,
                           .tasks = in->tasks};
    while (tail->used % sizeof (void *) != 0)
        tail_bytes (tail, "", 1);
}

tmq_session_report_t *core_sessions_record (const Taskmq__SessionPage *page)
{
    tail_t tail = {NULL, 0};
    tmq_session_t measured;
    for (size_t i = 0; i < page->n_sessions; i++)
        fill (&measured, &tail, page->sessions[i]);
    size_t size = page->n_sessions * sizeof (tmq_session_t);
    tmq_session_report_t *out = calloc (1, sizeof *out + size + tail.used);
    if (out == NULL)
        return NULL;
    tmq_session_t *sessions = (tmq_session_t *) (void *) (out + 1);
    tail = (tail_t){(uint8_t *) (sessions + page->n_sessions), 0};
    for (size_t i = 0; i < page->n_sessions; i++)
        fill (&sessions[i], &tail, page->sessions[i]);
    out->sessions = sessions;
    out->count = page->n_sessions;
    out->more = page->more;
    return out;
}
