/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Workers: registration on every new link, assignments, leases and their renewal.
 *
 * A lease is lost only when the broker says so. Silence ends nothing here: the application is
 * warned at half of what is left, and goes on; after the next registration the broker tells which
 * leases still hold (S9). What was assigned but not taken can always be given up without a word,
 * because the next registration does not list it. */
#include "parts/workers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/errors.h"
#include "codec/encode.h"
#include "codec/records.h"
#include "ids.h"
#include "parts/asked.h"

enum {
    RENEW_LEASES_MAX = 500, /* of one request: 25 KiB */
    RENEW_MS_MIN = 100      /* between two tries, whatever the broker says that a lease lasts */
};

/* Leases. */

/* The lease lasts at least lease_ms from when the broker was asked. */
static void lease_granted (core_attempt_t *attempt, int64_t since_ms, uint32_t lease_ms)
{
    if (lease_ms != 0)
        attempt->lease_ms = lease_ms;
    attempt->granted_ms = since_ms;
    attempt->asked_ms = since_ms;
    attempt->renew_ms = since_ms + attempt->lease_ms / 3;
    if (attempt->state == TMQ_ATTEMPT_ENDING) {
        attempt->state = TMQ_ATTEMPT_HELD;
        core_attempt_change (attempt, TMQ_ATTEMPT_HELD, NULL);
    }
    core_attempt_schedule (attempt);
}

/* It has something to say with the next message. */
static void due (core_worker_t *self)
{
    if (self->due)
        return;
    self->due = true;
    self->next_due = self->all->due;
    self->all->due = self;
}

void core_attempt_due (core_attempt_t *attempt)
{
    core_worker_t *worker = attempt->worker;
    const core_workers_t *all = worker->all;
    int64_t now_ms = all->link->now_ms;
    if (attempt->state == TMQ_ATTEMPT_HELD &&
        now_ms >= attempt->granted_ms + attempt->lease_ms / 2) {
        attempt->state = TMQ_ATTEMPT_ENDING;
        core_attempt_change (attempt, TMQ_ATTEMPT_ENDING, NULL);
    }
    if (attempt->hurry_ms != 0 && now_ms >= attempt->hurry_ms) {
        attempt->hurry_ms = 0;
        attempt->hurries = true;
        if (attempt->state == TMQ_ATTEMPT_HELD)
            core_attempt_change (attempt, TMQ_ATTEMPT_HURRY, NULL);
    }
    if (now_ms >= attempt->renew_ms) {
        uint32_t step_ms = attempt->lease_ms / 6;
        attempt->renew_ms = now_ms + (step_ms > RENEW_MS_MIN ? step_ms : RENEW_MS_MIN);
        if (worker->registered)
            due (worker);
    }
    core_attempt_schedule (attempt);
}

static void renew_some (core_worker_t *self, core_attempt_t **at)
{
    core_workers_t *all = self->all;
    core_request_t *request = NULL;
    bytes_mark_t mark = 0;
    size_t leases = 0;
    for (; *at != NULL && leases < RENEW_LEASES_MAX; *at = (*at)->next) {
        core_attempt_t *attempt = *at;
        if (all->link->now_ms - attempt->asked_ms < attempt->lease_ms / 6)
            continue;
        if (request == NULL) {
            request = core_internal_new (all->requests, CORE_OP_RENEW);
            if (request == NULL)
                return; /* renew_ms brings the next try */
            mark = core_request_begin (request);
            bytes_append_blob (&request->fields, 1, self->id, sizeof self->id);
        }
        bytes_mark_t lease = bytes_open (&request->fields, 2);
        core_attempt_encode (&request->fields, attempt);
        bytes_close (&request->fields, lease);
        attempt->asked_ms = all->link->now_ms;
        leases++;
    }
    if (request == NULL)
        return;
    bytes_close (&request->fields, mark);
    request->worker = self;
    core_internal_send (all->requests, request);
}

static void renew (core_worker_t *self)
{
    core_attempt_t *at = self->attempts;
    while (at != NULL && core_link_is_up (self->all->link))
        renew_some (self, &at);
}

static void lease_state (core_workers_t *all, const Taskmq__LeaseState *state)
{
    tmq_id_t id;
    if (!id_from_bytes (&id, state->task_id.data, state->task_id.len))
        return;
    core_attempt_t *attempt = core_attempt_find (all, &id, state->attempt);
    if (attempt == NULL)
        return;
    if (state->code == TMQ_OK) {
        lease_granted (attempt, attempt->asked_ms, state->lease_ms);
        core_asked_news (attempt, state->answers);
    } else if (state->code == TMQ_CANCELLED)
        core_attempt_cancelled (attempt, NULL);
    else
        core_attempt_lost (attempt, NULL);
}

/* Registration. */

static void end (core_worker_t *self, int code, const char *text)
{
    if (self->code != TMQ_OK)
        return;
    self->code = code;
    self->text = text != NULL && text[0] != '\0' ? strdup (text) : NULL;
    core_worker_wake (self);
}

static uint32_t capacity_now (const core_worker_t *self)
{
    return self->draining ? 0 : self->capacity;
}

static void enrol (core_worker_t *self)
{
    core_workers_t *all = self->all;
    core_request_t *request = core_internal_new (all->requests, CORE_OP_REGISTER);
    if (request != NULL) {
        bytes_mark_t mark = core_request_begin (request);
        bytes_append_blob (&request->fields, 1, self->id, sizeof self->id);
        bytes_append (&request->fields, self->head.data, self->head.length);
        bytes_append_uint (&request->fields, 4, self->seen);
        bytes_append_uint (&request->fields, 5, capacity_now (self));
        for (core_attempt_t *at = self->attempts; at != NULL; at = at->next) {
            bytes_mark_t lease = bytes_open (&request->fields, 6);
            core_attempt_encode (&request->fields, at);
            bytes_close (&request->fields, lease);
            at->asked_ms = all->link->now_ms;
        }
        bytes_close (&request->fields, mark);
        request->worker = self;
    }
    self->registering = true;
    self->seen_told = self->seen;
    self->capacity_told = capacity_now (self);
    core_internal_send (all->requests, request);
}

/* The broker does not know the worker on this link. */
static void enrol_again (core_worker_t *self)
{
    self->registered = false;
    if (self->code == TMQ_OK && !self->registering)
        enrol (self);
}

void core_workers_link (core_workers_t *all)
{
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    if (self->code == TMQ_OK && core_link_is_up (all->link)) {
        enrol (self);
        for (core_attempt_t *attempt = self->attempts; attempt != NULL; attempt = attempt->next)
            core_attempt_send_log (attempt, attempt->ends > 0);
    }
}

void core_workers_unlink (core_workers_t *all)
{
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    {
        self->registered = false;
        self->registering = false;
        for (core_attempt_t *attempt = self->attempts; attempt != NULL; attempt = attempt->next) {
            attempt->fetching = false;
            core_log_unsent (attempt->log);
        }
    }
}

static core_worker_t *worker_of (const core_workers_t *all, const core_worker_t *maybe)
{
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    if (self == maybe)
        return self;
    return NULL;
}

static void on_registered (core_workers_t *all, const core_request_t *request,
                           const Taskmq__Reply *reply)
{
    core_worker_t *self = worker_of (all, request->worker);
    if (self == NULL)
        return;
    if (reply->code != TMQ_OK) {
        end (self, (int) reply->code, reply->text);
        return;
    }
    if (reply->body_case != TASKMQ__REPLY__BODY_REGISTERED) {
        core_link_drop (all->requests->link, TMQ_PROTOCOL, NULL);
        return;
    }
    self->registering = false;
    self->registered = true;
    if (capacity_now (self) != self->capacity_told)
        due (self);
    for (size_t i = 0; i < reply->registered->n_leases; i++)
        lease_state (all, reply->registered->leases[i]);
}

void core_workers_reply (core_workers_t *all, const core_request_t *request,
                         const Taskmq__Reply *reply)
{
    if (request->op == CORE_OP_REGISTER) {
        on_registered (all, request, reply);
        return;
    }
    if (request->op == CORE_OP_RENEW && reply->code == TMQ_NOT_FOUND) {
        core_worker_t *self = worker_of (all, request->worker);
        if (self != NULL && self->registered)
            enrol_again (self);
        return;
    }
    if (request->op == CORE_OP_RENEW) {
        for (size_t i = 0;
             reply->body_case == TASKMQ__REPLY__BODY_RENEWED && i < reply->renewed->n_leases; i++)
            lease_state (all, reply->renewed->leases[i]);
        return;
    }
    /* What was said about one attempt: only that it is over matters here. */
    core_attempt_t *attempt = core_attempt_find (all, &request->task_id, request->attempt);
    if (attempt != NULL)
        core_attempt_refused (attempt, reply->code);
}

/* Assignments. */

static core_worker_t *worker_by_id (const core_workers_t *all, const ProtobufCBinaryData *id)
{
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    if (id->len == sizeof self->id && memcmp (self->id, id->data, sizeof self->id) == 0)
        return self;
    return NULL;
}

static core_attempt_t *attempt_new (core_worker_t *self, const Taskmq__Assignment *in,
                                    const uint8_t *payload)
{
    core_workers_t *all = self->all;
    core_attempt_t *attempt = calloc (1, sizeof *attempt);
    if (attempt == NULL)
        return NULL;
    attempt->fresh = core_assignment_record (in, payload);
    attempt->node.id = attempt->fresh != NULL ? attempt->fresh->task_id : (tmq_id_t){{0}};
    if (attempt->fresh == NULL || !core_timer_reserve (all->requests, 2)) {
        tmq_assignment_free (attempt->fresh);
        free (attempt);
        return NULL;
    }
    if (!core_idmap_add (&all->attempts, &attempt->node)) {
        all->requests->timers_alive -= 2;
        tmq_assignment_free (attempt->fresh);
        free (attempt);
        return NULL;
    }
    attempt->worker = self;
    attempt->attempt = in->attempt;
    memcpy (attempt->secret, in->secret.data, sizeof attempt->secret);
    attempt->lease_ms = in->lease_ms;
    attempt->runtime_ms = (int64_t) attempt->fresh->max_runtime_ms;
    attempt->state = TMQ_ATTEMPT_HELD;
    attempt->lease_timer = (core_timer_t){0, 0, CORE_TIMER_LEASE, attempt};
    attempt->push_timer = (core_timer_t){0, 0, CORE_TIMER_PUSH, attempt};
    attempt->next = self->attempts;
    if (attempt->next != NULL)
        attempt->next->previous = attempt;
    self->attempts = attempt;
    self->held++;
    lease_granted (attempt, all->link->now_ms, in->lease_ms);
    return attempt;
}

bool core_workers_assign (core_workers_t *all, const Taskmq__Assignment *in, core_bodies_t *bodies)
{
    bool good = true;
    const uint8_t *payload = core_bodies_take (bodies, in->payload_bytes, &good);
    core_worker_t *self = worker_by_id (all, &in->worker_id);
    if (!good || in->task_id.len != ID_BYTES || in->secret.len != 16 || in->lease_ms == 0)
        return false;
    if (self == NULL || self->registering || in->number <= self->seen)
        return true;
    core_attempt_t *attempt = attempt_new (self, in, payload);
    if (attempt == NULL) {
        core_link_drop (all->requests->link, TMQ_NO_MEMORY, NULL);
        return true;
    }
    self->seen = in->number;
    if (self->draining || self->code != TMQ_OK || !core_fresh_push (self, attempt))
        core_attempt_give_back (attempt);
    else {
        core_asked_news (attempt, in->answers);
        core_worker_wake (self);
    }
    return true;
}

void core_workers_cancel (core_workers_t *all, const Taskmq__CancelNotice *notice)
{
    tmq_id_t id;
    core_attempt_t *attempt = NULL;
    if (id_from_bytes (&id, notice->task_id.data, notice->task_id.len))
        attempt = core_attempt_find (all, &id, notice->attempt);
    if (attempt != NULL && notice->code != 0) /* it is over: nothing is to be acknowledged */
        core_attempt_lost (attempt, notice->message);
    else if (attempt != NULL)
        core_attempt_cancelled (attempt, notice->message);
}

void core_workers_drain (core_workers_t *all, const Taskmq__DrainNotice *notice)
{
    core_worker_t *self = worker_by_id (all, &notice->worker_id);
    if (self != NULL)
        core_worker_drain (self, NULL);
}

/* What is due to be sent. */

static void tell_credit (core_worker_t *self)
{
    core_request_t *request = core_internal_new (self->all->requests, CORE_OP_WORKER_CREDIT);
    if (request != NULL) {
        bytes_mark_t mark = core_request_begin (request);
        bytes_append_blob (&request->fields, 1, self->id, sizeof self->id);
        bytes_append_uint (&request->fields, 2, self->seen);
        bytes_append_uint (&request->fields, 3, capacity_now (self));
        bytes_close (&request->fields, mark);
    }
    self->seen_told = self->seen;
    self->capacity_told = capacity_now (self);
    self->credit_due = false;
    self->credit_number = core_internal_send (self->all->requests, request);
}

void core_workers_output (core_workers_t *all)
{
    while (all->due != NULL) {
        core_worker_t *self = all->due;
        all->due = self->next_due;
        self->due = false;
        if (self->registered)
            renew (self);
    }
    core_attempts_output (all);
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    if (self->registered && (self->credit_due || self->seen != self->seen_told ||
                             capacity_now (self) != self->capacity_told))
        tell_credit (self);
}

bool core_workers_waiting (const core_workers_t *all)
{
    return all->pushes != NULL || all->due != NULL;
}

/* Credit is absolute, so saying it again harms nothing; its refusal is how a worker that the broker
 * does not know any more learns of it. */
void core_workers_beat (core_workers_t *all)
{
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    self->credit_due = self->registered;
}

void core_workers_refused (core_workers_t *all, uint64_t number)
{
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    if (self->registered && self->credit_number == number) {
        enrol_again (self);
        return;
    }
}

/* The application's side. */

static int check_about (const tmq_worker_options_t *options, tmq_error_t *error)
{
    int code = core_check_name (options->role, "role", false, error);
    if (code == TMQ_OK)
        code = core_check_labels (options->labels, options->labels_count, error);
    if (code == TMQ_OK)
        code = core_check_text (options->version, "version", TMQ_WORKER_TEXT_BYTES_MAX, error);
    if (code == TMQ_OK)
        code = core_check_text (options->config, "config", TMQ_WORKER_CONFIG_BYTES_MAX, error);
    if (code == TMQ_OK && options->depends_on_count > TMQ_WORKER_DEPENDS_MAX)
        code = core_error (error, TMQ_INVALID, "depends_on: at most %d", TMQ_WORKER_DEPENDS_MAX);
    for (size_t i = 0; i < options->depends_on_count && code == TMQ_OK; i++)
        code = core_check_name (options->depends_on[i], "depends_on", true, error);
    return code;
}

/* What it says of itself, in every registration the same. */
static int add_about (bytes_t *head, const tmq_worker_options_t *options, tmq_error_t *error)
{
    char host[TMQ_WORKER_TEXT_BYTES_MAX + 1] = "";
    int code = check_about (options, error);
    if (code != TMQ_OK)
        return code;
    if (gethostname (host, sizeof host - 1) != 0)
        host[0] = '\0';
    bytes_append_string (head, 7, options->role != NULL ? options->role : "");
    core_encode_labels (head, 8, options->labels, options->labels_count);
    bytes_append_uint (head, 9, (uint64_t) getpid ());
    bytes_append_string (head, 10, host);
    bytes_append_string (head, 11, options->version != NULL ? options->version : "");
    bytes_append_string (head, 12, options->config != NULL ? options->config : "");
    for (size_t i = 0; i < options->depends_on_count; i++)
        bytes_append_string (head, 13, options->depends_on[i]);
    return TMQ_OK;
}

static int worker_init (core_worker_t *self, const tmq_worker_options_t *options,
                        tmq_error_t *error)
{
    int code = core_check_name (options->name, "worker name", true, error);
    if (code != TMQ_OK)
        return code;
    if (options->queues_count == 0 || options->queues_count > TMQ_WORKER_QUEUES_MAX)
        return core_error (error, TMQ_INVALID, "queues: 1 to %d", TMQ_WORKER_QUEUES_MAX);
    if (options->capacity == 0 || options->capacity > TMQ_CREDIT_MAX)
        return core_error (error, TMQ_INVALID, "capacity: 1 to %d", TMQ_CREDIT_MAX);
    bytes_append_string (&self->head, 2, options->name);
    for (size_t i = 0; i < options->queues_count; i++) {
        code = core_check_name (options->queues[i], "queue", true, error);
        if (code != TMQ_OK)
            return code;
        bytes_append_string (&self->head, 3, options->queues[i]);
    }
    code = add_about (&self->head, options, error);
    if (code != TMQ_OK)
        return code;
    self->capacity = options->capacity;
    self->fresh_size = (size_t) options->capacity + 1;
    self->fresh = calloc (self->fresh_size, sizeof (core_attempt_t *));
    core_part_init (&self->part, TMQ_OP_WORKER_READY, options->notify, options->user);
    if (self->fresh == NULL || self->head.failed)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    return TMQ_OK;
}

static void worker_release (core_worker_t *self)
{
    while (self->changes_first != NULL)
        free (core_change_pop (self));
    bytes_free (&self->head);
    free (self->fresh);
    free (self->text);
    free (self);
}

int core_workers_add (core_worker_t **out, core_workers_t *all, const tmq_worker_options_t *options,
                      void *owner, tmq_error_t *error)
{
    if (all->link->stage == CORE_LINK_FINAL)
        return core_error (error, all->link->code, "%s", all->link->text);
    core_worker_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    self->all = all;
    core_request_id_make (all->requests, self->id);
    int code = worker_init (self, options, error);
    if (code != TMQ_OK) {
        worker_release (self);
        return code;
    }
    core_parts_add (&all->parts, &self->part, owner);
    if (core_link_is_up (all->link))
        enrol (self);
    *out = self;
    return TMQ_OK;
}

static void leave (core_worker_t *self)
{
    core_request_t *request = core_internal_new (self->all->requests, CORE_OP_LEAVE);
    if (request != NULL) {
        bytes_mark_t mark = core_request_begin (request);
        bytes_append_blob (&request->fields, 1, self->id, sizeof self->id);
        if (self->has_exit) {
            bytes_append_uint (&request->fields, 2, 1);
            bytes_append_sint (&request->fields, 3, self->exit_status);
            bytes_append_uint (&request->fields, 4, (uint64_t) self->exit_signal);
        }
        bytes_close (&request->fields, mark);
    }
    core_internal_send (self->all->requests, request);
}

void core_worker_exit (core_worker_t *self, int status, int signal)
{
    self->has_exit = true;
    self->exit_status = status;
    self->exit_signal = signal < 0 ? 0 : signal;
}

void core_worker_free (core_worker_t *self)
{
    core_workers_t *all = self->all;
    for (core_attempt_t *attempt = self->attempts; attempt != NULL;) {
        core_attempt_t *next = attempt->next;
        core_attempt_free (attempt);
        attempt = next;
    }
    while (self->lost != NULL)
        core_attempt_free (self->lost);
    if (self->registered || self->registering)
        leave (self);
    for (core_worker_t **at = &all->due; *at != NULL; at = &(*at)->next_due)
        if (*at == self) {
            *at = self->next_due;
            break;
        }
    core_parts_remove (&all->parts, &self->part);
    worker_release (self);
}

void core_workers_end (core_workers_t *all, int code, const char *text)
{
    CORE_PARTS_EACH (core_worker_t, self, &all->parts)
    end (self, code, text);
}

void core_workers_free (core_workers_t *all)
{
    core_part_t *next;
    for (core_part_t *part = all->parts.first; part != NULL; part = next) {
        next = part->next;
        core_worker_free ((core_worker_t *) part);
    }
    core_idmap_free (&all->attempts);
}

int core_worker_next (tmq_assignment_t **out, core_worker_t *self, tmq_error_t *error)
{
    if (self->code != TMQ_OK && self->text != NULL)
        return core_error (error, self->code, "%s", self->text);
    if (self->code != TMQ_OK || (self->draining && self->fresh_count == 0))
        return core_error (error, self->code != TMQ_OK ? self->code : TMQ_CLOSED, NULL);
    if (self->fresh_count == 0)
        return core_error (error, TMQ_TIMEOUT, NULL);
    core_attempt_t *attempt = core_fresh_pop (self);
    *out = attempt->fresh;
    attempt->fresh = NULL;
    attempt->taken = true;
    return core_error (error, TMQ_OK, NULL);
}

int core_worker_drain (core_worker_t *self, tmq_error_t *error)
{
    if (self->draining)
        return core_error (error, TMQ_OK, NULL);
    self->draining = true;
    while (self->fresh_count > 0)
        core_attempt_give_back (core_fresh_pop (self));
    due (self);
    core_worker_wake (self);
    return core_error (error, TMQ_OK, NULL);
}

size_t core_worker_held (const core_worker_t *self)
{
    return self->held;
}

int core_worker_changed (tmq_attempt_change_t *out, core_worker_t *self)
{
    if (self->changes_first == NULL)
        return self->code != TMQ_OK ? self->code : TMQ_TIMEOUT;
    core_change_t *change = core_change_pop (self);
    *out = change->change;
    free (change);
    return TMQ_OK;
}

core_answer_t *core_worker_answer (core_worker_t *self)
{
    return &self->part.ready;
}
