/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The conductor: it owns the rooms of the core and lets them play together.
 *
 * Below it nobody calls upwards. What a room has to tell others it leaves as data: the link its
 * news, the requests their ended ones (through the table here), and each call that comes from
 * outside ends with `settle`, which acts on the news. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "codec.h"
#include "link/replies.h"
#include "parts/asked.h"
#include "parts/logs.h"
#include "parts/waits.h"

struct core {
    core_config_t config; /* its strings and endpoints are copies */
    core_link_t link;
    core_requests_t requests;
    core_messages_t messages;
    core_waits_t waits;
    core_subscriptions_t subscriptions;
    core_workers_t workers;
    arena_t *arena;            /* of a message */
    core_answer_t link_answer; /* TMQ_OP_LINK */
    tmq_link_state_t link_told;
    size_t drops; /* of uploads, that are not answered yet */
};

/* What becomes of the requests of each kind. */

static bool on_hello (core_requests_t *requests, core_request_t *request,
                      const Taskmq__Reply *reply, const uint8_t *body)
{
    core_t *self = requests->core;
    bool welcomed;
    (void) body;
    core_request_end (requests, request, TMQ_OK, NULL, 0);
    if (!core_link_hello_reply (&self->link, reply, &welcomed))
        return false;
    if (welcomed) {
        core_workers_link (&self->workers);
        core_subscriptions_link (&self->subscriptions);
    }
    return true;
}

static bool on_wait (core_requests_t *requests, core_request_t *request, const Taskmq__Reply *reply,
                     const uint8_t *body)
{
    (void) body;
    core_waits_reply (&((core_t *) requests->core)->waits, request, reply);
    return true;
}

static bool on_subscribe (core_requests_t *requests, core_request_t *request,
                          const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    core_subscriptions_reply (&((core_t *) requests->core)->subscriptions, request, reply);
    return true;
}

static bool on_worker (core_requests_t *requests, core_request_t *request,
                       const Taskmq__Reply *reply, const uint8_t *body)
{
    (void) body;
    core_workers_reply (&((core_t *) requests->core)->workers, request, reply);
    return true;
}

static bool on_log (core_requests_t *requests, core_request_t *request, const Taskmq__Reply *reply,
                    const uint8_t *body)
{
    (void) body;
    core_logs_reply (&((core_t *) requests->core)->workers, request, reply);
    return true;
}

static bool on_answers (core_requests_t *requests, core_request_t *request,
                        const Taskmq__Reply *reply, const uint8_t *body)
{
    return core_asked_reply (&((core_t *) requests->core)->workers, request, reply, body);
}

static void wait_ended (core_t *self, core_request_t *request, int code)
{
    (void) code;
    core_waits_ended (&self->waits, request);
}

static void drop_ended (core_t *self, core_request_t *request, int code)
{
    (void) request;
    (void) code;
    self->drops--;
}

static void word_ended (core_t *self, core_request_t *request, int code)
{
    core_attempt_answered (&self->workers, request, code);
}

/* on_reply: of an operation, for replies with code 0; of the core's own requests, for every reply
 * that is not "later". NULL: nobody depends on it. on_end: before the answer is given. */
static const struct op {
    core_reply_handler_t *on_reply;
    void (*on_end) (core_t *self, core_request_t *request, int code);
} ops[CORE_OP_END] = {
    [TMQ_OP_SUBMIT] = {core_reply_submit, NULL},
    [TMQ_OP_SUBMIT_BATCH] = {core_reply_submit_batch, NULL},
    [TMQ_OP_GET] = {core_reply_task, NULL},
    [TMQ_OP_RESULT] = {core_reply_task, NULL},
    [TMQ_OP_PAYLOAD] = {core_reply_task, NULL},
    [TMQ_OP_LIST] = {core_reply_list, NULL},
    [TMQ_OP_COUNT] = {core_reply_count, NULL},
    [TMQ_OP_RESOLVE] = {core_reply_resolve, NULL},
    [TMQ_OP_EVENTS] = {core_reply_events, NULL},
    [TMQ_OP_CANCEL] = {core_reply_cancel, NULL},
    [TMQ_OP_CHECKPOINT] = {core_reply_done, word_ended},
    [TMQ_OP_CHECKPOINT_READ] = {core_reply_part, NULL},
    [TMQ_OP_READ_LOG] = {core_reply_part, NULL},
    [TMQ_OP_BLOB_BEGIN] = {core_reply_blob_at, NULL},
    [TMQ_OP_BLOB_CHUNK] = {core_reply_blob_at, NULL},
    [TMQ_OP_BLOB_READ] = {core_reply_part, NULL},
    [TMQ_OP_RETRY] = {core_reply_changed, NULL},
    [TMQ_OP_RESUME] = {core_reply_changed, NULL},
    [TMQ_OP_SET] = {core_reply_changed, NULL},
    [TMQ_OP_PURGE] = {core_reply_changed, NULL},
    [TMQ_OP_ADOPT] = {core_reply_cancel, NULL},
    [TMQ_OP_ATTEMPTS] = {core_reply_attempts, NULL},
    [TMQ_OP_ARTIFACT] = {core_reply_done, word_ended},
    [TMQ_OP_ARTIFACTS] = {core_reply_artifacts, NULL},
    [TMQ_OP_TURN] = {core_reply_done, word_ended},
    [TMQ_OP_TURNS] = {core_reply_turns, NULL},
    [TMQ_OP_SEARCH] = {core_reply_search, NULL},
    [TMQ_OP_REINDEX] = {core_reply_done, NULL},
    [TMQ_OP_IMPORT] = {core_reply_import, NULL},
    [TMQ_OP_STATS] = {core_reply_stats, NULL},
    [TMQ_OP_ENROLL] = {core_reply_access, NULL},
    [TMQ_OP_KEY_LIST] = {core_reply_access, NULL},
    [TMQ_OP_KEY_TRUST] = {core_reply_access, NULL},
    [TMQ_OP_KEY_REVOKE] = {core_reply_access, NULL},
    [TMQ_OP_INVITE] = {core_reply_access, NULL},
    [TMQ_OP_INVITE_LIST] = {core_reply_access, NULL},
    [TMQ_OP_INVITE_REVOKE] = {core_reply_access, NULL},
    [TMQ_OP_SERVER_KEY_ROTATE] = {core_reply_access, NULL},
    [TMQ_OP_RELOAD] = {core_reply_access, NULL},
    [TMQ_OP_ACCESS_READ] = {core_reply_access, NULL},
    [TMQ_OP_AUDIT] = {core_reply_part, NULL},
    [TMQ_OP_AUDIT_HEAD] = {core_reply_head, NULL},
    [TMQ_OP_BACKUP] = {core_reply_part, NULL},
    [TMQ_OP_VACUUM] = {core_reply_vacuumed, NULL},
    [TMQ_OP_CLEANUP] = {core_reply_cleanup, NULL},
    [TMQ_OP_QUEUE_LIST] = {core_reply_queues, NULL},
    [TMQ_OP_QUEUE_SHOW] = {core_reply_queues, NULL},
    [TMQ_OP_QUEUE_SET] = {core_reply_queues, NULL},
    [TMQ_OP_QUEUE_PAUSE] = {core_reply_queues, NULL},
    [TMQ_OP_QUEUE_RESUME] = {core_reply_queues, NULL},
    [TMQ_OP_SESSION_SET] = {core_reply_sessions, NULL},
    [TMQ_OP_SESSION_SHOW] = {core_reply_sessions, NULL},
    [TMQ_OP_SESSION_LIST] = {core_reply_sessions, NULL},
    [TMQ_OP_SESSION_STATUS] = {core_reply_sessions, NULL},
    [TMQ_OP_SESSION_REMOVE] = {core_reply_done, NULL},
    [TMQ_OP_SCHEDULE_PUT] = {core_reply_schedules, NULL},
    [TMQ_OP_SCHEDULE_SHOW] = {core_reply_schedules, NULL},
    [TMQ_OP_SCHEDULE_LIST] = {core_reply_schedules, NULL},
    [TMQ_OP_SCHEDULE_PAUSE] = {core_reply_schedules, NULL},
    [TMQ_OP_SCHEDULE_RESUME] = {core_reply_schedules, NULL},
    [TMQ_OP_SCHEDULE_REMOVE] = {core_reply_done, NULL},
    [TMQ_OP_ASK] = {core_reply_done, word_ended},
    [TMQ_OP_ANSWER] = {core_reply_answered, NULL},
    [TMQ_OP_INBOX] = {core_reply_inbox, NULL},
    [TMQ_OP_WHY] = {core_reply_why, NULL},
    [TMQ_OP_VALUE_PUT] = {core_reply_value, NULL},
    [TMQ_OP_VALUE_GET] = {core_reply_value, NULL},
    [TMQ_OP_VALUE_LIST] = {core_reply_value_page, NULL},
    [TMQ_OP_VALUE_REMOVE] = {core_reply_value, NULL},
    [TMQ_OP_WORKER_LIST] = {core_reply_workers, NULL},
    [TMQ_OP_WORKER_SHOW] = {core_reply_workers, NULL},
    [TMQ_OP_WORKER_DRAIN] = {core_reply_workers, NULL},
    [TMQ_OP_ITEM_PUT] = {core_reply_item_done, NULL},
    [TMQ_OP_ITEM_READ] = {core_reply_item_page, NULL},
    [TMQ_OP_ITEM_ACK] = {core_reply_item_done, NULL},
    [TMQ_OP_PING] = {core_reply_done, NULL},
    [TMQ_OP_PUSH] = {core_reply_done, word_ended},
    [TMQ_OP_COMPLETE] = {core_reply_done, word_ended},
    [TMQ_OP_FAIL] = {core_reply_done, word_ended},
    [TMQ_OP_RELEASE] = {core_reply_done, word_ended},
    [TMQ_OP_CANCELLED] = {core_reply_done, word_ended},
    [CORE_OP_HELLO] = {on_hello, NULL},
    [CORE_OP_WAIT] = {on_wait, wait_ended},
    [CORE_OP_SUBSCRIBE] = {on_subscribe, NULL},
    [CORE_OP_REGISTER] = {on_worker, NULL},
    [CORE_OP_RENEW] = {on_worker, NULL},
    [CORE_OP_STARTED] = {on_worker, NULL},
    [CORE_OP_PROGRESS] = {on_worker, NULL},
    [CORE_OP_LOG] = {on_log, NULL},
    [CORE_OP_BLOB_DROP] = {NULL, drop_ended},
    [CORE_OP_TAKE_ANSWERS] = {on_answers, NULL},
};

static void request_ended (void *core, core_request_t *request, int code)
{
    if (ops[request->op].on_end != NULL)
        ops[request->op].on_end (core, request, code);
}

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
    core_link_init (&self->link, &self->config, now_ms);
    self->config.ns = self->config.name = NULL; /* they are the caller's, and copied by the link */
    self->requests.link = &self->link;
    self->requests.config = &self->config;
    self->requests.core = self;
    self->requests.on_end = request_ended;
    self->waits.requests = self->workers.requests = &self->requests;
    self->waits.link = self->workers.link = &self->link;
    self->workers.parts.answers = &self->requests.answers;
    self->link_answer.embedded = true;
    self->link_answer.completion.op = TMQ_OP_LINK;
    self->arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    bool good = copy_endpoints (self, config) && self->arena != NULL;
    good = core_subscriptions_init (&self->subscriptions, &self->requests) && good;
    good = core_messages_init (&self->messages, &self->requests) && good;
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
    core_subscriptions_free (&self->subscriptions);
    core_workers_free (&self->workers);
    core_waits_free (&self->waits);
    core_requests_free (&self->requests);
    core_messages_free (&self->messages);
    core_answer_free (&self->link_answer);
    arena_free (self->arena);
    for (size_t i = 0; i < self->config.endpoints_count; i++)
        free ((void *) (uintptr_t) self->config.endpoints[i]);
    free ((void *) (uintptr_t) self->config.endpoints);
    free (self);
}

/* Acting on the link's news. */

static void log_line (core_t *self, const char *text)
{
    core_requests_t *requests = &self->requests;
    if (!self->config.log || requests->untaken >= self->config.completions_max)
        return;
    core_answer_t *answer = calloc (1, sizeof *answer);
    if (answer == NULL)
        return;
    answer->completion.op = TMQ_OP_LOG;
    answer->completion.text = strdup (text);
    if (answer->completion.text == NULL) {
        free (answer);
        return;
    }
    requests->untaken++;
    core_answers_push (&requests->answers, answer);
}

static tmq_link_state_t link_state (const core_t *self)
{
    if (self->link.code == TMQ_OK)
        return self->link.connects > 1 ? TMQ_LINK_BACK : TMQ_LINK_UP;
    return self->link.stage == CORE_LINK_FINAL ? TMQ_LINK_REFUSED : TMQ_LINK_LOST;
}

/* Tells whether the link is there, each time that this changes. One answer is enough for all: it
 * always says the newest. */
static void tell_link (core_t *self)
{
    core_answer_t *answer = &self->link_answer;
    tmq_link_state_t state = link_state (self);
    bool tried =
        self->link.failures > 0 || self->link.connects > 0 || self->link.stage == CORE_LINK_FINAL;
    if (!self->config.link || !tried || state == self->link_told || self->link.code == TMQ_CLOSED)
        return;
    self->link_told = state;
    core_answer_free (answer);
    answer->completion.op = TMQ_OP_LINK;
    answer->completion.link = state;
    core_answer_set (answer, self->link.code, self->link.text, 0);
    if (!answer->queued) {
        answer->queued = true;
        core_answers_push (&self->requests.answers, answer);
    }
}

static void unsend_all (core_t *self)
{
    core_requests_unsend (&self->requests);
    core_subscriptions_unlink (&self->subscriptions);
    core_workers_unlink (&self->workers);
}

/* Ends every operation with what the link says. */
static void end_operations (core_t *self)
{
    const char *reason = self->link.code == TMQ_CLOSED ? NULL : self->link.text;
    core_requests_end (&self->requests, self->link.code, reason);
    core_waits_end (&self->waits, self->link.code, reason);
}

static void end_all (core_t *self)
{
    int code = self->link.code;
    const char *reason = code == TMQ_CLOSED ? NULL : self->link.text;
    end_operations (self);
    core_subscriptions_end (&self->subscriptions, code, reason);
    core_workers_end (&self->workers, code, reason);
}

static void settle (core_t *self)
{
    unsigned news = core_link_settle (&self->link);
    if ((news & CORE_LINK_NEWS_TEXT) != 0)
        log_line (self, self->link.text);
    if ((news & CORE_LINK_NEWS_LOST) != 0)
        unsend_all (self);
    if ((news & CORE_LINK_NEWS_FINAL) != 0)
        end_all (self);
    else if ((news & CORE_LINK_NEWS_ABSENT) != 0)
        end_operations (self);
    tell_link (self);
}

void core_close (core_t *self)
{
    core_link_close (&self->link);
    settle (self);
}

/* The link. */

core_wanted_t core_link_wanted (const core_t *self)
{
    if (core_link_has_connection (&self->link))
        return (core_wanted_t){self->link.connection, self->link.endpoint};
    return (core_wanted_t){0, 0};
}

void core_link_failed (core_t *self, uint64_t connection, int code, const char *text,
                       int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    if (core_link_has_connection (&self->link) && connection == self->link.connection)
        core_link_ended (&self->link, code, text);
    settle (self);
}

void core_link_reached (core_t *self, uint64_t connection, int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    if (core_link_has_connection (&self->link) && connection == self->link.connection)
        core_link_reach (&self->link);
}

void core_link_greeted (core_t *self, uint64_t connection, int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    if (core_link_has_connection (&self->link) && connection == self->link.connection)
        core_link_greet (&self->link);
}

void core_link_absent_at (core_t *self, uint64_t connection, const char *text, const char *hint,
                          int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    if (core_link_has_connection (&self->link) && connection == self->link.connection)
        core_link_absent (&self->link, text, hint);
    settle (self);
}

int core_link_state (const core_t *self, tmq_error_t *error, bool *final)
{
    const core_link_t *link = &self->link;
    *final = link->stage == CORE_LINK_FINAL || core_link_is_absent (link);
    if (link->code == TMQ_OK)
        return core_error (error, TMQ_OK, NULL);
    core_error (error, link->code, "%s", link->text);
    if (error != NULL)
        memcpy (error->hint, link->hint, sizeof error->hint);
    return link->code;
}

void core_link_needed (core_t *self, int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    core_link_hurry (&self->link);
}

uint64_t core_link_changes (const core_t *self)
{
    return self->link.changes;
}

void core_info (const core_t *self, tmq_broker_info_t *out, size_t *endpoint)
{
    *out = self->link.info;
    *endpoint = self->link.info_endpoint;
}

const char *core_namespace (const core_t *self)
{
    return self->link.ns;
}

const core_rights_t *core_rights (const core_t *self)
{
    return &self->link.rights;
}

void core_counters (const core_t *self, tmq_client_counters_t *out)
{
    *out = self->requests.counters;
    out->connects = self->link.connects;
    out->outbox_requests = self->requests.open;
    out->outbox_bytes = self->requests.open_bytes;
}

void core_goodbye (core_t *self)
{
    core_link_leave (&self->link);
    settle (self);
}

bool core_goodbye_done (const core_t *self)
{
    return self->link.stage == CORE_LINK_FINAL;
}

/* Messages in. */

static bool internal_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                            const uint8_t *body)
{
    uint64_t number = request->number;
    bool waits = core_reply_is_for_now (reply->code) ||
                 ((request->op == CORE_OP_LOG || request->op == CORE_OP_BLOB_DROP) &&
                  reply->code == TMQ_LIMIT);
    if (waits && request->op != CORE_OP_HELLO) {
        core_request_delay (&self->requests, request, (int) reply->code, reply->text,
                            reply->retry_after_ms);
        return true;
    }
    core_reply_handler_t *on_reply = ops[request->op].on_reply;
    if (on_reply != NULL && !on_reply (&self->requests, request, reply, body))
        return false;
    bool open = core_slots_get (&self->requests.slots, number) != NULL;
    if (open && !reply->more && core_link_is_up (&self->link))
        core_request_end (&self->requests, request, TMQ_OK, NULL, 0);
    return true;
}

/* An outcome is not lost to a full disk: the lease goes on, and so does the attempt to say it. The
 * same holds for its bytes, if whoever brings them has time: there may be no room for them, or
 * others on their way. */
static bool is_for_later (const core_request_t *request, uint32_t code)
{
    bool brings = request->op == TMQ_OP_BLOB_BEGIN || request->op == TMQ_OP_BLOB_CHUNK;
    bool lasts = brings && request->deadline_ms == CORE_NEVER;
    if (request->once)
        return false;
    return core_reply_is_for_now (code) ||
           (code == TMQ_STORE_FULL && (lasts || core_op_ends_attempt (request->op))) ||
           (code == TMQ_LIMIT && lasts);
}

static bool operation_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply,
                             const uint8_t *body)
{
    if (reply->code == TMQ_OK)
        return ops[request->op].on_reply (&self->requests, request, reply, body);
    const char *text = reply->text[0] != '\0' ? reply->text : NULL;
    if (is_for_later (request, reply->code))
        core_request_delay (&self->requests, request, (int) reply->code, text,
                            reply->retry_after_ms);
    else
        core_request_end (&self->requests, request, (int) reply->code, text, reply->retry_after_ms);
    return true;
}

static size_t task_bodies (const Taskmq__Task *task)
{
    return (size_t) task->body + (task->error != NULL ? task->error->body : 0);
}

/* The bodies of a reply are passed over even if nobody waits for it. */
static bool reply_body (const Taskmq__Reply *reply, core_bodies_t *bodies, const uint8_t **body)
{
    bool good = true;
    *body = NULL;
    if (reply->body_case == TASKMQ__REPLY__BODY_TASK)
        *body = core_bodies_take (bodies, task_bodies (reply->task), &good);
    else if (core_part_of (reply) != NULL)
        *body = core_bodies_take (bodies, core_part_of (reply)->body, &good);
    else if (reply->body_case == TASKMQ__REPLY__BODY_ANSWER_PAGE)
        *body = core_bodies_take (bodies, reply->answer_page->body, &good);
    else if (reply->body_case == TASKMQ__REPLY__BODY_VALUE)
        *body = core_bodies_take (bodies, reply->value->body, &good);
    else if (reply->body_case == TASKMQ__REPLY__BODY_SCHEDULE)
        *body = core_bodies_take (bodies, reply->schedule->body, &good);
    else if (reply->body_case == TASKMQ__REPLY__BODY_ITEM_PAGE)
        *body = core_bodies_take (bodies, reply->item_page->body, &good);
    else if (reply->body_case == TASKMQ__REPLY__BODY_TURN_PAGE)
        *body = core_bodies_take (bodies, reply->turn_page->body, &good);
    return good;
}

/* A reply to nobody is ignored: its request was answered or given up before. Credit is such a
 * request, and is answered only when it is refused. */
static void nobodys_reply (core_t *self, const Taskmq__Reply *reply)
{
    if (self->link.stage == CORE_LINK_LEAVING && reply->id == self->messages.goodbye)
        core_link_close (&self->link);
    if (reply->code == TMQ_NO_LINK)
        core_link_again (&self->link);
    if (reply->code != TMQ_NOT_FOUND)
        return;
    core_subscriptions_refused (&self->subscriptions, reply->id);
    core_workers_refused (&self->workers, reply->id);
}

static bool one_reply (core_t *self, const Taskmq__Reply *reply, core_bodies_t *bodies)
{
    const uint8_t *body;
    core_request_t *request = core_slots_get (&self->requests.slots, reply->id);
    if (!reply_body (reply, bodies, &body))
        return false;
    if (request == NULL) {
        nobodys_reply (self, reply);
        return true;
    }
    if (reply->code == TMQ_NO_LINK && request->op != CORE_OP_HELLO) {
        request->maybe_done = request->maybe_before;
        core_link_again (&self->link);
        return true;
    }
    return request->internal ? internal_reply (self, request, reply, body)
                             : operation_reply (self, request, reply, body);
}

static bool events (core_t *self, const Taskmq__EventBatch *batch, core_bodies_t *bodies)
{
    bool good = true;
    const uint8_t *list = core_bodies_take (bodies, batch->list_bytes, &good);
    return good && core_subscriptions_events (&self->subscriptions, batch, list);
}

/* False if something cannot be what it should be. What stands behind something that ends the link
 * is not looked at: the next link asks for it again. */
static bool message_parts (core_t *self, const Taskmq__BrokerMessage *message,
                           core_bodies_t *bodies)
{
    const core_link_t *link = &self->link;
    bool good = true;
    for (size_t i = 0; i < message->n_replies && good && !link->dropped; i++)
        good = one_reply (self, message->replies[i], bodies);
    for (size_t i = 0; i < message->n_assignments && good && !link->dropped; i++)
        good = core_workers_assign (&self->workers, message->assignments[i], bodies);
    for (size_t i = 0; i < message->n_cancels && good && !link->dropped; i++)
        core_workers_cancel (&self->workers, message->cancels[i]);
    for (size_t i = 0; i < message->n_answers && good && !link->dropped; i++)
        core_asked_notice (&self->workers, message->answers[i]);
    for (size_t i = 0; i < message->n_drains && good && !link->dropped; i++)
        core_workers_drain (&self->workers, message->drains[i]);
    for (size_t i = 0; i < message->n_notices && good && !link->dropped; i++)
        good = core_subscriptions_notice (&self->subscriptions, message->notices[i]);
    for (size_t i = 0; i < message->n_events && good && !link->dropped; i++)
        good = events (self, message->events[i], bodies);
    if (good && message->snapshot != NULL && !link->dropped)
        good = core_subscriptions_snapshot (&self->subscriptions, message->snapshot);
    if (good && message->gap != NULL && !link->dropped)
        good = core_subscriptions_gap (&self->subscriptions, message->gap);
    return good;
}

void core_receive (core_t *self, const void *envelope, size_t envelope_bytes, const void *body,
                   size_t body_bytes, int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    if (!core_link_has_connection (&self->link))
        return;
    core_link_heard (&self->link);
    self->requests.counters.messages_received++;
    codec_report_t report;
    core_bodies_t bodies = {body, body_bytes, 0};
    arena_reset (self->arena);
    const Taskmq__BrokerMessage *message =
        codec_broker_message (&report, self->arena, envelope, envelope_bytes);
    if (message == NULL)
        core_link_drop (&self->link, TMQ_PROTOCOL, report.text);
    else if (!message_parts (self, message, &bodies))
        core_link_drop (&self->link, TMQ_PROTOCOL, NULL);
    settle (self);
}

/* Messages out. */

bool core_has_output (const core_t *self)
{
    const core_link_t *link = &self->link;
    if (link->dropped)
        return false;
    if (link->hello_due || (link->stage == CORE_LINK_LEAVING && self->messages.goodbye == 0))
        return true;
    return link->stage == CORE_LINK_UP &&
           (core_messages_waiting (&self->messages) || core_waits_waiting (&self->waits) ||
            core_subscriptions_waiting (&self->subscriptions) ||
            core_workers_waiting (&self->workers));
}

static bool output (core_t *self, core_message_t *out)
{
    if (!core_has_output (self))
        return false;
    if (self->link.hello_due)
        return core_messages_hello (&self->messages, out);
    if (self->link.stage == CORE_LINK_UP) {
        core_waits_output (&self->waits);
        core_subscriptions_output (&self->subscriptions);
        core_workers_output (&self->workers);
    }
    return !self->link.dropped && core_messages_next (&self->messages, out);
}

bool core_output (core_t *self, core_message_t *out, int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    bool given = output (self, out);
    settle (self);
    return given;
}

size_t core_open (const core_t *self)
{
    return self->requests.open;
}

size_t core_changes_open (const core_t *self)
{
    return self->requests.changes;
}

size_t core_forget (core_t *self, const tmq_id_t *id, const void *user)
{
    return core_waits_abandon (&self->waits, id, user) +
           core_requests_abandon (&self->requests, id, user);
}

uint64_t core_waits_work (const core_t *self)
{
    return self->waits.looked;
}

/* Answers. */

core_answer_t *core_answer_next (core_t *self)
{
    core_answer_t *answer = core_answers_pop (&self->requests.answers);
    if (answer != NULL && answer->completion.code == TMQ_UNREACHABLE &&
        self->link.code == TMQ_UNREACHABLE && answer->completion.error != NULL)
        memcpy (answer->completion.error->hint, self->link.hint, sizeof self->link.hint);
    return answer;
}

void core_answer_taken (core_t *self, const core_answer_t *answer)
{
    if (!answer->embedded && self->requests.untaken > 0)
        self->requests.untaken--;
}

bool core_woken_next (core_t *self, core_woken_kind_t *kind, void **owner)
{
    *kind = CORE_WOKEN_SUBSCRIPTION;
    if (core_parts_woken (&self->subscriptions.parts, owner))
        return true;
    *kind = CORE_WOKEN_WORKER;
    return core_parts_woken (&self->workers.parts, owner);
}

/* Operations. */

int core_start (core_t *self, core_request_t *request, core_target_t target, int64_t deadline_ms,
                int64_t now_ms, tmq_error_t *error)
{
    core_link_hear_time (&self->link, now_ms);
    return core_request_start (&self->requests, request, target, deadline_ms, error);
}

int core_drop_blob (core_t *self, core_request_t *request, const char *owner, int64_t now_ms,
                    tmq_error_t *error)
{
    core_link_hear_time (&self->link, now_ms);
    int code = owner != NULL ? core_request_for (request, owner, error) : (int) TMQ_OK;
    if (code == TMQ_OK && self->drops == TMQ_BLOB_DROPS_MAX)
        code = core_error (error, TMQ_OUTBOX_FULL, "%d uploads are being taken back",
                           TMQ_BLOB_DROPS_MAX);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    core_internal_begin (&self->requests, request);
    self->drops += core_internal_send (&self->requests, request) != 0;
    return TMQ_OK;
}

int core_wait (core_t *self, const tmq_id_t *ids, size_t count, core_target_t target,
               int64_t deadline_ms, int64_t now_ms, tmq_error_t *error)
{
    core_link_hear_time (&self->link, now_ms);
    return core_waits_start (&self->waits, ids, count, target, deadline_ms, error);
}

int core_subscription_new (core_subscription_t **out, core_t *self,
                           const tmq_subscription_options_t *options, void *owner,
                           tmq_error_t *error)
{
    return core_subscriptions_add (out, &self->subscriptions, options, owner, error);
}

int core_worker_new (core_worker_t **out, core_t *self, const tmq_worker_options_t *options,
                     void *owner, tmq_error_t *error)
{
    return core_workers_add (out, &self->workers, options, owner, error);
}

/* Time. */

static void timer_due (core_t *self, core_timer_t *timer)
{
    core_heap_clear (&self->requests.timers, timer);
    switch (timer->kind) {
    case CORE_TIMER_REQUEST: core_request_timer (&self->requests, timer->item); break;
    case CORE_TIMER_WAITER: core_waiter_due (&self->waits, timer->item); break;
    case CORE_TIMER_LEASE: core_attempt_due (timer->item); break;
    case CORE_TIMER_PUSH: core_push_due (timer->item); break;
    }
}

int64_t core_next_due (const core_t *self)
{
    const core_timer_t *timer = core_heap_first (&self->requests.timers);
    int64_t next = timer != NULL ? timer->at_ms : CORE_NEVER;
    int64_t link_ms = core_link_next_due (&self->link);
    return link_ms < next ? link_ms : next;
}

int64_t core_tick (core_t *self, int64_t now_ms)
{
    core_link_hear_time (&self->link, now_ms);
    const core_heap_t *timers = &self->requests.timers;
    core_timer_t *timer;
    while ((timer = core_heap_first (timers)) != NULL && timer->at_ms <= self->link.now_ms)
        timer_due (self, timer);
    if (core_link_tick (&self->link)) {
        core_messages_heartbeat (&self->messages);
        core_workers_beat (&self->workers);
    }
    settle (self);
    return core_next_due (self);
}
