/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The link: which connection is wanted, hello and welcome, heartbeats, and the messages themselves.
 *
 * Whatever goes wrong with a link has one consequence: it ends, everything open is queued again,
 * and after a pause another connection is tried. Only a refusal that would be repeated for ever
 * (authentication, version, namespace) is final, and then ends everything with its code. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "core_internal.h"
#include "ids.h"
#include "types.h"

enum {
    MESSAGE_TOKEN = 1,
    MESSAGE_REQUESTS = 2,
    REQUEST_ID = 1,
    REQUEST_DEADLINE_MS = 2,
    REQUEST_REQUEST_ID = 3,
    REQUEST_HELLO = 10,
    REQUEST_GOODBYE = 11,
    REQUEST_HEARTBEAT = 12,
    REQUEST_SUBMIT = 20
};

/* Life. */

static char *copy_text (const char *text)
{
    return strdup (text != NULL ? text : "");
}

static bool copy_endpoints (core_t *self, const core_config_t *config)
{
    char **endpoints = calloc (config->endpoints_count, sizeof *endpoints);
    self->config.endpoints = (const char *const *) endpoints;
    self->config.endpoints_count = 0;
    for (size_t i = 0; endpoints != NULL && i < config->endpoints_count; i++) {
        endpoints[i] = copy_text (config->endpoints[i]);
        if (endpoints[i] == NULL)
            return false;
        self->config.endpoints_count++;
    }
    return endpoints != NULL;
}

core_t *core_new (const core_config_t *config, int64_t now_ms)
{
    core_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->config = *config;
    self->config.ns = self->config.name = NULL; /* they are the caller's: copied here */
    snprintf (self->ns, sizeof self->ns, "%s", config->ns != NULL ? config->ns : "");
    snprintf (self->name, sizeof self->name, "%s", config->name != NULL ? config->name : "");
    memcpy (&self->jitter, config->seed + 16, sizeof self->jitter);
    self->now_ms = now_ms;
    self->link_at_ms = now_ms;
    self->heartbeat_ms = TMQ_HEARTBEAT_MS;
    self->code = TMQ_UNREACHABLE;
    snprintf (self->text, sizeof self->text, "not connected yet");
    self->arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    self->events_arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    bool good = copy_endpoints (self, config) && self->arena != NULL &&
                self->events_arena != NULL &&
                bytes_reserve (&self->envelope, TMQ_ENVELOPE_BYTES_MAX) != NULL &&
                bytes_reserve (&self->body, TMQ_FRAME_BYTES_MAX) != NULL;
    if (good)
        return self;
    core_free (self);
    return NULL;
}

void core_free (core_t *self)
{
    if (self == NULL)
        return;
    core_close (self);
    core_answer_t *answer;
    while ((answer = core_answer_next (self)) != NULL)
        core_answer_free (answer);
    core_subscriptions_free (self);
    core_workers_free (self);
    core_waits_free (self);
    core_slots_free (&self->requests);
    core_heap_free (&self->timers);
    arena_free (self->arena);
    arena_free (self->events_arena);
    bytes_free (&self->envelope);
    bytes_free (&self->body);
    for (size_t i = 0; i < self->config.endpoints_count; i++)
        free ((void *) (uintptr_t) self->config.endpoints[i]);
    free ((void *) (uintptr_t) self->config.endpoints);
    free (self);
}

static void end_everything (core_t *self, int code, const char *text)
{
    core_requests_end (self, code, text);
    core_subscriptions_end (self, code, text);
    core_workers_end (self, code, text);
}

void core_close (core_t *self)
{
    if (self->closed)
        return;
    self->closed = true;
    self->stage = CORE_LINK_FINAL;
    self->code = TMQ_CLOSED;
    snprintf (self->text, sizeof self->text, "%s", code_text (TMQ_CLOSED));
    self->changes++;
    end_everything (self, TMQ_CLOSED, NULL);
}

/* splitmix64: enough for jitter. */
uint64_t core_random (core_t *self)
{
    uint64_t z = self->jitter += UINT64_C (0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Which connection. */

static bool has_connection (const core_t *self)
{
    return self->stage == CORE_LINK_OPENING || self->stage == CORE_LINK_HELLO ||
           self->stage == CORE_LINK_UP || self->stage == CORE_LINK_LEAVING;
}

core_link_t core_link_wanted (const core_t *self)
{
    core_link_t link = {0, 0};
    if (has_connection (self))
        link = (core_link_t){self->connection, self->endpoint};
    return link;
}

static void hear_time (core_t *self, int64_t now_ms)
{
    if (now_ms > self->now_ms)
        self->now_ms = now_ms;
}

/* What the broker knew of us is gone; everything that is open is to be sent again. */
static void unlink_all (core_t *self)
{
    self->hello_due = false;
    core_requests_unsend (self);
    core_waits_unsend (self);
    core_subscriptions_unlink (self);
    core_workers_unlink (self);
}

/* One round over all endpoints waits the same pause, the next one twice as long. With a quarter of
 * jitter, also at the longest pause: those that lost the broker together come back spread. */
static int64_t reconnect_pause (core_t *self)
{
    int64_t min = self->config.reconnect_ms_min;
    int64_t max = self->config.reconnect_ms_max;
    size_t round = self->failures / self->config.endpoints_count;
    int64_t pause = min;
    while (round-- > 0 && pause < max)
        pause *= 2;
    pause = pause < max ? pause : max;
    int64_t low = pause - pause / 4 > min ? pause - pause / 4 : min;
    int64_t high = pause + pause / 4 < max ? pause + pause / 4 : max;
    return low + (int64_t) (core_random (self) % (uint64_t) (high - low + 1));
}

static void log_line (core_t *self, const char *text)
{
    if (!self->config.log || self->untaken >= self->config.completions_max)
        return;
    core_answer_t *answer = calloc (1, sizeof *answer);
    if (answer == NULL)
        return;
    answer->completion.op = TMQ_OP_LOG;
    core_answer_set (answer, TMQ_UNREACHABLE, text, 0);
    if (answer->completion.error == NULL) {
        free (answer);
        return;
    }
    answer->completion.error->code = answer->completion.code = TMQ_OK;
    answer->completion.error->retriable = false;
    self->untaken++;
    core_answer_push (self, answer);
}

static void link_pause (core_t *self, const char *text)
{
    bool was_up = self->stage == CORE_LINK_UP;
    if (was_up && self->now_ms - self->up_since_ms >= self->config.reconnect_ms_max)
        self->failures = 0;
    snprintf (self->text, sizeof self->text, "cannot reach %s: %s",
              self->config.endpoints[self->endpoint], text);
    self->code = TMQ_UNREACHABLE;
    self->stage = CORE_LINK_PAUSE;
    self->link_at_ms = self->now_ms + reconnect_pause (self);
    self->failures++;
    if (!was_up)
        self->endpoint = (self->endpoint + 1) % self->config.endpoints_count;
    self->changes++;
    log_line (self, self->text);
    unlink_all (self);
}

static void link_final (core_t *self, int code, const char *text)
{
    self->code = code;
    snprintf (self->text, sizeof self->text, "%s: %s", self->config.endpoints[self->endpoint],
              text != NULL && text[0] != '\0' ? text : code_text (code));
    self->stage = CORE_LINK_FINAL;
    self->changes++;
    log_line (self, self->text);
    unlink_all (self);
    char copy[sizeof self->text];
    memcpy (copy, self->text, sizeof copy);
    end_everything (self, code, copy);
}

void core_link_failed (core_t *self, uint64_t connection, int code, const char *text,
                       int64_t now_ms)
{
    hear_time (self, now_ms);
    if (!has_connection (self) || connection != self->connection)
        return;
    if (self->stage == CORE_LINK_LEAVING)
        core_close (self);
    else if (code == TMQ_NOT_AUTHENTICATED)
        link_final (self, code, text);
    else
        link_pause (self, text);
}

void core_link_drop (core_t *self, int code, const char *text)
{
    if (has_connection (self) && self->stage != CORE_LINK_LEAVING)
        link_pause (self, text != NULL ? text : code_text (code));
}

int core_link_state (const core_t *self, char *text, size_t text_size, bool *final)
{
    snprintf (text, text_size, "%s", self->code == TMQ_OK ? "" : self->text);
    *final = self->stage == CORE_LINK_FINAL;
    return self->code;
}

uint64_t core_link_changes (const core_t *self)
{
    return self->changes;
}

void core_info (const core_t *self, tmq_broker_info_t *out, size_t *endpoint)
{
    *out = self->info;
    *endpoint = self->info_endpoint;
}

void core_counters (const core_t *self, tmq_client_counters_t *out)
{
    *out = self->counters;
    out->outbox_requests = self->open;
    out->outbox_bytes = self->open_bytes;
}

void core_goodbye (core_t *self)
{
    if (self->stage == CORE_LINK_UP)
        self->stage = CORE_LINK_LEAVING;
    else
        core_close (self);
}

bool core_goodbye_done (const core_t *self)
{
    return self->stage == CORE_LINK_FINAL;
}

/* Hello and welcome. */

static void say_hello (core_t *self)
{
    self->stage = CORE_LINK_HELLO;
    self->hello_due = true;
    self->link_at_ms = self->now_ms + (int64_t) self->heartbeat_ms * TMQ_HEARTBEATS_MISSED_MAX;
}

/* The broker has forgotten the link, or never knew it: begin again on the same connection. */
static void link_again (core_t *self)
{
    if (self->stage == CORE_LINK_LEAVING)
        core_close (self);
    if (self->stage != CORE_LINK_UP)
        return;
    self->code = TMQ_UNREACHABLE;
    snprintf (self->text, sizeof self->text, "the broker is beginning anew");
    self->changes++;
    unlink_all (self);
    say_hello (self);
}

static bool welcome (core_t *self, const Taskmq__Welcome *in)
{
    if (in->token.len != sizeof self->token || in->version != TMQ_PROTOCOL_VERSION)
        return false;
    memcpy (self->token, in->token.data, sizeof self->token);
    self->info.generation = in->generation;
    self->info.epoch = in->epoch;
    self->info.seq = in->seq;
    snprintf (self->info.identity, sizeof self->info.identity, "%s", in->identity);
    snprintf (self->info.broker, sizeof self->info.broker, "%s", in->broker);
    if (in->namespace_[0] != '\0')
        snprintf (self->ns, sizeof self->ns, "%s", in->namespace_);
    self->info_endpoint = self->endpoint;
    if (in->heartbeat_ms >= 10)
        self->heartbeat_ms = in->heartbeat_ms;
    self->stage = CORE_LINK_UP;
    self->code = TMQ_OK;
    self->text[0] = '\0';
    self->changes++;
    self->counters.connects++;
    self->missed = 0;
    self->heard = true;
    self->up_since_ms = self->now_ms;
    self->link_at_ms = self->now_ms + self->heartbeat_ms;
    core_workers_link (self);
    core_subscriptions_link (self);
    return true;
}

static bool is_less (uint32_t told, uint32_t ours)
{
    return told != 0 && told < ours;
}

/* What is queued was cut to our limits, which are those of the protocol's version; a broker that
 * takes less would refuse some of it again and again. */
static bool limits_are_small (const Taskmq__Welcome *in)
{
    return is_less (in->envelope_bytes_max, TMQ_ENVELOPE_BYTES_MAX) ||
           is_less (in->frame_bytes_max, TMQ_FRAME_BYTES_MAX) ||
           is_less (in->submit_items_max, TMQ_SUBMIT_ITEMS_MAX) ||
           is_less (in->wait_ids_max, TMQ_WAIT_IDS_MAX);
}

static bool hello_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply)
{
    core_request_end (self, request, TMQ_OK, NULL, 0);
    if (self->stage != CORE_LINK_HELLO)
        return true;
    bool welcomed = reply->code == TMQ_OK && reply->body_case == TASKMQ__REPLY__BODY_WELCOME;
    if (reply->code == TMQ_OK && !welcomed)
        return false;
    if (welcomed && !limits_are_small (reply->welcome))
        return welcome (self, reply->welcome);
    if (welcomed)
        link_final (self, TMQ_UNSUPPORTED, "the broker's limits are smaller than the library's");
    else if (code_is_retriable ((int) reply->code))
        core_link_drop (self, (int) reply->code, reply->text);
    else
        link_final (self, (int) reply->code, reply->text);
    return true;
}

/* Messages in. */

static bool one_reply (core_t *self, const Taskmq__Reply *reply, core_bodies_t *bodies)
{
    core_request_t *request = core_slots_get (&self->requests, reply->id);
    if (self->stage == CORE_LINK_LEAVING && reply->id == self->goodbye) {
        core_close (self);
        return true;
    }
    if (request != NULL && request->op == CORE_OP_HELLO)
        return hello_reply (self, request, reply);
    if (reply->code != TMQ_NO_LINK)
        return core_reply (self, reply, bodies);
    if (request != NULL)
        request->maybe_done = request->maybe_before;
    link_again (self);
    return true;
}

static bool message_parts (core_t *self, const Taskmq__BrokerMessage *message,
                           core_bodies_t *bodies)
{
    bool good = true;
    for (size_t i = 0; i < message->n_replies && good; i++)
        good = one_reply (self, message->replies[i], bodies);
    for (size_t i = 0; i < message->n_assignments && good; i++)
        good = core_workers_assign (self, message->assignments[i], bodies);
    for (size_t i = 0; i < message->n_cancels && good; i++)
        core_workers_cancel (self, message->cancels[i]);
    for (size_t i = 0; i < message->n_notices && good; i++)
        good = core_subscriptions_notice (self, message->notices[i]);
    for (size_t i = 0; i < message->n_events && good; i++) {
        const Taskmq__EventBatch *batch = message->events[i];
        const uint8_t *list = core_bodies_take (bodies, batch->list_bytes, &good);
        good = good && core_subscriptions_events (self, batch, list);
    }
    if (good && message->snapshot != NULL)
        good = core_subscriptions_snapshot (self, message->snapshot);
    if (good && message->gap != NULL)
        good = core_subscriptions_gap (self, message->gap);
    return good;
}

void core_receive (core_t *self, const void *envelope, size_t envelope_bytes, const void *body,
                   size_t body_bytes, int64_t now_ms)
{
    hear_time (self, now_ms);
    if (!has_connection (self))
        return;
    self->heard = true;
    self->heard_ms = self->now_ms;
    self->counters.messages_received++;
    codec_report_t report;
    core_bodies_t bodies = {body, body_bytes, 0};
    arena_reset (self->arena);
    const Taskmq__BrokerMessage *message =
        codec_broker_message (&report, self->arena, envelope, envelope_bytes);
    if (message == NULL)
        core_link_drop (self, TMQ_PROTOCOL, report.text);
    else if (!message_parts (self, message, &bodies))
        core_link_drop (self, TMQ_PROTOCOL, NULL);
}

/* The number of a request that waits for no answer. */
uint64_t core_number_make (core_t *self)
{
    return ++self->requests.newest;
}

/* Messages out. */

/* A batch's fields are its items: the submit around them is written when it is sent, because items
 * may have been taken out. */
static bool needs_wrapping (const core_request_t *request)
{
    return request->op == TMQ_OP_SUBMIT_BATCH;
}

static bool message_fits (const core_t *self, const core_request_t *request, size_t requests)
{
    return requests < TMQ_REQUESTS_MAX &&
           self->envelope.length + request->fields.length + CORE_RESERVE_BYTES <=
               TMQ_ENVELOPE_BYTES_MAX &&
           self->body.length + request->body.length <= TMQ_FRAME_BYTES_MAX;
}

static uint64_t wire_deadline (const core_t *self, const core_request_t *request)
{
    if (request->deadline_ms == CORE_NEVER)
        return 0;
    int64_t left = request->deadline_ms - self->now_ms;
    return left < 1 ? 1 : left > UINT32_MAX ? UINT32_MAX : (uint64_t) left;
}

static void message_add (core_t *self, const core_request_t *request)
{
    bytes_t *out = &self->envelope;
    bytes_mark_t mark = bytes_open (out, MESSAGE_REQUESTS);
    bytes_append_uint (out, REQUEST_ID, request->number);
    bytes_append_uint (out, REQUEST_DEADLINE_MS, wire_deadline (self, request));
    if (request->changes)
        bytes_append_blob (out, REQUEST_REQUEST_ID, request->request_id, 16);
    if (needs_wrapping (request))
        bytes_append_element (out, REQUEST_SUBMIT, request->fields.data, request->fields.length);
    else
        bytes_append (out, request->fields.data, request->fields.length);
    bytes_close (out, mark);
    if (request->body.length > 0)
        bytes_append (&self->body, request->body.data, request->body.length);
}

/* Moves what fits from a queue into the message; false when one did not fit. */
static bool message_fill (core_t *self, core_queue_t *queue, size_t *requests)
{
    while (queue->first != NULL) {
        core_request_t *request = queue->first;
        if (request->large && self->large_open >= CORE_LARGE_OPEN_MAX)
            return true;
        if (!message_fits (self, request, *requests))
            return false;
        message_add (self, request);
        (*requests)++;
        if (request->op == CORE_OP_CREDIT || request->op == CORE_OP_WORKER_CREDIT)
            core_request_end (self, request, TMQ_OK, NULL, 0); /* answered only when refused */
        else
            core_request_sent (self, request);
    }
    return true;
}

static bool message_give (core_t *self, core_message_t *out)
{
    self->counters.messages_sent++;
    out->envelope = self->envelope.data;
    out->envelope_bytes = self->envelope.length;
    out->body = self->body.length > 0 ? self->body.data : NULL;
    out->body_bytes = self->body.length;
    return true;
}

static void message_begin (core_t *self)
{
    bytes_clear (&self->envelope);
    bytes_clear (&self->body);
}

static bool hello_output (core_t *self, core_message_t *out)
{
    core_request_t *request = core_internal_new (self, CORE_OP_HELLO, false);
    if (request == NULL)
        return false;
    bytes_mark_t mark = bytes_open (&request->fields, REQUEST_HELLO);
    bytes_append_uint (&request->fields, 1, TMQ_PROTOCOL_VERSION);
    bytes_append_uint (&request->fields, 2, TMQ_PROTOCOL_VERSION);
    bytes_append_string (&request->fields, 3, self->ns);
    bytes_append_string (&request->fields, 4, self->name);
    bytes_close (&request->fields, mark);
    say_hello (self);
    core_internal_send (self, request);
    if (self->stage != CORE_LINK_HELLO)
        return false;
    self->hello_due = false;
    message_begin (self);
    message_add (self, request);
    core_request_sent (self, request);
    return message_give (self, out);
}

static void goodbye_add (core_t *self)
{
    self->goodbye = core_number_make (self);
    bytes_mark_t mark = bytes_open (&self->envelope, MESSAGE_REQUESTS);
    bytes_append_uint (&self->envelope, REQUEST_ID, self->goodbye);
    bytes_append_element (&self->envelope, REQUEST_GOODBYE, NULL, 0);
    bytes_close (&self->envelope, mark);
}

bool core_has_output (const core_t *self)
{
    if (self->hello_due || (self->stage == CORE_LINK_LEAVING && self->goodbye == 0))
        return true;
    return self->stage == CORE_LINK_UP &&
           (self->control.first != NULL || self->small.first != NULL ||
            (self->large.first != NULL && self->large_open < CORE_LARGE_OPEN_MAX) ||
            core_waits_pending (self) || self->credit_first != NULL || self->pushes_first != NULL ||
            self->workers_due != NULL);
}

size_t core_open (const core_t *self)
{
    return self->open;
}

bool core_output (core_t *self, core_message_t *out, int64_t now_ms)
{
    hear_time (self, now_ms);
    if (!core_has_output (self))
        return false;
    if (self->hello_due)
        return hello_output (self, out);
    bool leaving = self->stage == CORE_LINK_LEAVING;
    if (!leaving) {
        core_waits_output (self);
        core_subscriptions_output (self);
        core_workers_output (self);
        if (self->stage != CORE_LINK_UP)
            return false;
    }
    message_begin (self);
    bytes_append_blob (&self->envelope, MESSAGE_TOKEN, self->token, sizeof self->token);
    size_t requests = 0;
    bool all = message_fill (self, &self->control, &requests) &&
               message_fill (self, &self->small, &requests) &&
               message_fill (self, &self->large, &requests);
    if (leaving && all && requests < TMQ_REQUESTS_MAX) {
        goodbye_add (self);
        return message_give (self, out);
    }
    return requests > 0 && message_give (self, out);
}

bool core_woken_next (core_t *self, core_woken_kind_t *kind, void **owner)
{
    *kind = CORE_WOKEN_SUBSCRIPTION;
    if (core_subscription_woken (self, owner))
        return true;
    *kind = CORE_WOKEN_WORKER;
    return core_worker_woken (self, owner);
}

/* Time. */

static void heartbeat (core_t *self)
{
    core_request_t *request = core_internal_new (self, CORE_OP_HEARTBEAT, false);
    if (request != NULL)
        bytes_append_element (&request->fields, REQUEST_HEARTBEAT, NULL, 0);
    core_internal_send (self, request);
}

static void beat (core_t *self)
{
    /* At least two heartbeats without an answer, so that a pause of our own is not taken for
     * silence of the broker. */
    int64_t patience_ms = (int64_t) self->heartbeat_ms * TMQ_HEARTBEATS_MISSED_MAX;
    self->missed = self->heard ? 0 : self->missed + 1;
    if (self->missed >= TMQ_HEARTBEATS_MISSED_MAX - 1 &&
        self->now_ms - self->heard_ms >= patience_ms) {
        link_pause (self, "no sign of life");
        return;
    }
    self->heard = false;
    self->link_at_ms = self->now_ms + self->heartbeat_ms;
    if (self->missed > 0 && self->heard_ms + patience_ms > self->now_ms &&
        self->heard_ms + patience_ms < self->link_at_ms)
        self->link_at_ms = self->heard_ms + patience_ms; /* not a whole interval too late */
    heartbeat (self);
    core_workers_beat (self);
}

static void link_due (core_t *self)
{
    switch (self->stage) {
    case CORE_LINK_PAUSE:
        self->stage = CORE_LINK_OPENING;
        self->connection++;
        self->hello_due = true;
        self->link_at_ms = self->now_ms + CORE_CONNECT_MS;
        break;
    case CORE_LINK_OPENING: link_pause (self, "no connection in 2 s"); break;
    case CORE_LINK_HELLO: link_pause (self, "no answer"); break;
    case CORE_LINK_UP: beat (self); break;
    case CORE_LINK_LEAVING:
    case CORE_LINK_FINAL: break;
    }
}

static void timer_due (core_t *self, core_timer_t *timer)
{
    core_heap_clear (&self->timers, timer);
    switch (timer->kind) {
    case CORE_TIMER_REQUEST: core_request_timer (self, timer->item); break;
    case CORE_TIMER_WAITER: core_waiter_due (self, timer->item); break;
    case CORE_TIMER_LEASE: core_attempt_due (self, timer->item); break;
    case CORE_TIMER_PUSH: core_push_due (self, timer->item); break;
    }
}

static bool is_timed (const core_t *self)
{
    return self->stage != CORE_LINK_LEAVING && self->stage != CORE_LINK_FINAL;
}

int64_t core_next_due (const core_t *self)
{
    const core_timer_t *timer = core_heap_first (&self->timers);
    int64_t next = timer != NULL ? timer->at_ms : CORE_NEVER;
    return is_timed (self) && self->link_at_ms < next ? self->link_at_ms : next;
}

int64_t core_tick (core_t *self, int64_t now_ms)
{
    hear_time (self, now_ms);
    core_timer_t *timer;
    while ((timer = core_heap_first (&self->timers)) != NULL && timer->at_ms <= self->now_ms)
        timer_due (self, timer);
    if (is_timed (self) && self->link_at_ms <= self->now_ms)
        link_due (self);
    return core_next_due (self);
}
