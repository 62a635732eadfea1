/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/effort.h"
#include "link/cancels.h"
#include "log/log.h"
#include "timestamp.h"

enum {
    POLL_MAX = 256, /* completions of one turn; then sockets again */
    TICKETS_FIRST = 64,
    WAITS_RETRY_MS = 1000
};

/* A place for one operation. Its number and its generation are the ticket. */
typedef struct place {
    uint32_t generation;
    uint32_t next_free; /* number + 1 */
    size_t left;        /* completions that are to come; SIZE_MAX: ever more */
    bool waits;         /* for tasks: each completion is one of them */
    link_call_t call;
} place_t;

struct link {
    const settings_t *settings;
    tmq_client_t *client;
    watch_t *watch;
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    place_t *places;
    uint32_t places_count;
    uint32_t first_free; /* number + 1; 0: none */
    uint64_t waits;      /* tasks that are waited for */
    line_t bodies;
    seats_t polls;
    flow_t *flows;
    flow_t *next_flow; /* of a round through them */
    watch_t *again;    /* flows that were left in the middle */
    cancels_t *cancels;
    bool up;
    int64_t since_ms;
};

struct flow {
    link_t *link;
    flow_t *next;
    flow_t *previous;
    tmq_subscription_t *subscription;
    flow_taker_t taker;
    uint64_t ticket;
    bool again;
};

/* Tickets. */

static bool more_places (link_t *self)
{
    const uint32_t count = self->places_count == 0 ? TICKETS_FIRST : self->places_count * 2;
    place_t *places = realloc (self->places, count * sizeof *places);
    if (places == NULL)
        return false;
    for (uint32_t i = self->places_count; i < count; i++)
        places[i] = (place_t){.generation = 1, .next_free = i + 1 < count ? i + 2 : 0};
    self->first_free = self->places_count + 1;
    self->places = places;
    self->places_count = count;
    return true;
}

/* 0 when memory is exhausted. */
static uint64_t take_place (link_t *self, link_call_t call, size_t completions)
{
    if (self->first_free == 0 && !more_places (self))
        return 0;
    const uint32_t number = self->first_free - 1;
    place_t *place = &self->places[number];
    self->first_free = place->next_free;
    place->call = call;
    place->left = completions;
    place->waits = false;
    return (uint64_t) place->generation << 32 | (number + 1);
}

static place_t *find_place (link_t *self, uint64_t ticket)
{
    const uint32_t number = (uint32_t) ticket;
    if (number == 0 || number > self->places_count)
        return NULL;
    place_t *place = &self->places[number - 1];
    return place->generation == ticket >> 32 && place->left > 0 ? place : NULL;
}

static void free_place (link_t *self, place_t *place)
{
    if (place->waits)
        self->waits -= place->left;
    place->waits = false;
    place->left = 0;
    place->generation++;
    place->next_free = self->first_free;
    self->first_free = (uint32_t) (place - self->places) + 1;
}

static void *user_of (uint64_t ticket)
{
    return (void *) (uintptr_t) ticket;
}

void link_forget (link_t *self, uint64_t *ticket)
{
    place_t *place = self != NULL ? find_place (self, *ticket) : NULL;
    if (place != NULL) {
        tmq_forget (NULL, self->client, NULL, user_of (*ticket));
        free_place (self, place);
    }
    *ticket = 0;
}

/* Flows. */

/* A round through all flows, of which any may be freed meanwhile. */
static flow_t *first_flow (link_t *self)
{
    flow_t *flow = self->flows;
    self->next_flow = flow != NULL ? flow->next : NULL;
    return flow;
}

static flow_t *following_flow (link_t *self)
{
    flow_t *flow = self->next_flow;
    self->next_flow = flow != NULL ? flow->next : NULL;
    return flow;
}

static void flow_is_ready (void *context, tmq_completion_t *completion)
{
    flow_t *self = context;
    (void) completion;
    self->taker.ready (self->taker.context);
}

static void go_on (void *context)
{
    link_t *self = context;
    for (flow_t *flow = first_flow (self); flow != NULL; flow = following_flow (self)) {
        if (!flow->again)
            continue;
        flow->again = false;
        effort_begin ();
        flow->taker.ready (flow->taker.context);
    }
}

flow_t *flow_new (link_t *link, const tmq_subscription_options_t *options, flow_taker_t taker,
                  tmq_error_t *error)
{
    tmq_subscription_options_t own = *options;
    flow_t *self = calloc (1, sizeof *self);
    memset (error, 0, sizeof *error);
    error->code = TMQ_NO_MEMORY;
    if (self == NULL)
        return NULL;
    self->link = link;
    self->taker = taker;
    self->ticket =
        take_place (link, (link_call_t){flow_is_ready, self, &self->ticket, NULL}, SIZE_MAX);
    own.notify = true;
    own.user = user_of (self->ticket);
    if (self->ticket == 0 || (error->code = tmq_subscription_new (&self->subscription, link->client,
                                                                  &own, error)) != TMQ_OK) {
        if (self->ticket != 0)
            free_place (link, find_place (link, self->ticket));
        free (self);
        return NULL;
    }
    self->next = link->flows;
    if (self->next != NULL)
        self->next->previous = self;
    link->flows = self;
    return self;
}

void flow_free (flow_t **self)
{
    flow_t *flow = *self;
    if (flow == NULL)
        return;
    link_t *link = flow->link;
    if (link->next_flow == flow)
        link->next_flow = flow->next;
    if (flow->next != NULL)
        flow->next->previous = flow->previous;
    if (flow->previous != NULL)
        flow->previous->next = flow->next;
    else
        link->flows = flow->next;
    free_place (link, find_place (link, flow->ticket));
    tmq_subscription_free (&flow->subscription);
    free (flow);
    *self = NULL;
}

void flow_give (flow_t *self, flow_taker_t taker)
{
    self->taker = taker;
}

int flow_next (tmq_event_t **out, flow_t *self, tmq_error_t *error)
{
    memset (error, 0, sizeof *error);
    return tmq_subscription_next (out, self->subscription, 0, error);
}

void flow_again (flow_t *self)
{
    self->again = true;
    watch_after (self->link->again, 0);
}

bool flow_cursor (char out[48], flow_t *self)
{
    return tmq_subscription_cursor (out, self->subscription) == TMQ_OK;
}

/* Completions. */

static void link_changed (link_t *self, const tmq_completion_t *completion)
{
    const bool up = completion->link == TMQ_LINK_UP || completion->link == TMQ_LINK_BACK;
    const char *why = completion->error != NULL ? completion->error->text : "";
    self->up = up;
    self->since_ms = clock_ms (CLOCK_MONOTONIC);
    if (up)
        log_write (LOG_LEVEL_INFO, "GATEWAY-LINK", "the broker is there",
                   LOG_FIELDS (LOG_TEXT ("namespace", self->ns)));
    else
        log_write (LOG_LEVEL_WARNING, "GATEWAY-LINK-LOST", "the broker is away",
                   LOG_FIELDS (LOG_TEXT ("namespace", self->ns), LOG_TEXT ("error", why)));
    for (flow_t *flow = first_flow (self); flow != NULL; flow = following_flow (self))
        flow->taker.moved (flow->taker.context, up);
    if (up)
        cancels_go (self->cancels);
}

static void deliver (link_t *self, tmq_completion_t *completion)
{
    if (completion->op == TMQ_OP_LINK) {
        link_changed (self, completion);
        return;
    }
    place_t *place = find_place (self, (uint64_t) (uintptr_t) completion->user);
    if (place == NULL)
        return;
    const link_call_t call = place->call;
    self->waits -= place->waits;
    if (place->left != SIZE_MAX && --place->left == 0) {
        place->waits = false; /* it is counted already */
        place->left = 1;      /* free_place ends it */
        free_place (self, place);
        if (call.ticket != NULL)
            *call.ticket = 0;
    }
    if (call.fn != NULL)
        call.fn (call.context, completion);
}

static void take_completions (void *context)
{
    link_t *self = context;
    tmq_completion_t *completions[POLL_MAX];
    size_t count = 0;
    if (tmq_client_poll (completions, POLL_MAX, &count, self->client, 0) != TMQ_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        effort_begin ();
        deliver (self, completions[i]);
        tmq_completion_free (completions[i]);
    }
}

/* Cancels that nobody waits for. */

static void cancel_came (void *context, tmq_completion_t *completion)
{
    cancels_came (context, completion->code);
}

static int ask_cancel (void *context, cancel_t *cancel)
{
    tmq_error_t error;
    const link_call_t call = {cancel_came, cancel, &cancel->ticket,
                              cancel->owned ? cancel->owner : NULL};
    return link_cancel (context, call, &cancel->id, cancel->message, &error);
}

/* Life. */

link_t *link_new (loop_t *loop, const settings_t *settings, const tmq_client_options_t *options,
                  const char *ns, tmq_error_t *error)
{
    tmq_client_options_t own = *options;
    link_t *self = calloc (1, sizeof *self);
    if (self == NULL) {
        snprintf (error->text, sizeof error->text, "memory is exhausted");
        return NULL;
    }
    self->settings = settings;
    self->since_ms = clock_ms (CLOCK_MONOTONIC);
    snprintf (self->ns, sizeof self->ns, "%s", ns);
    self->bodies.most = LINK_BODIES_MAX;
    self->polls.hold = HOLD_POLLS;
    own.ns = self->ns;
    own.name = "taskmq-gateway";
    own.link = true;
    if (tmq_client_new (&self->client, &own, error) == TMQ_OK) {
        self->watch = loop_readable (loop, tmq_client_fd (self->client), take_completions, self);
        self->again = loop_timer (loop, go_on, self);
        self->cancels = cancels_new (loop, settings, self->ns, ask_cancel, self);
        if (self->watch != NULL && self->again != NULL && self->cancels != NULL)
            return self;
        snprintf (error->text, sizeof error->text, "memory is exhausted");
    }
    link_free (&self);
    return NULL;
}

void link_free (link_t **self)
{
    if (*self == NULL)
        return;
    cancels_free (&(*self)->cancels);
    watch_free (&(*self)->watch);
    watch_free (&(*self)->again);
    tmq_client_free (&(*self)->client);
    free ((*self)->places);
    free (*self);
    *self = NULL;
}

const char *link_ns (const link_t *self)
{
    return self->ns;
}

void link_count (const link_t *self, link_numbers_t *out)
{
    tmq_client_counters_t counters;
    tmq_broker_info_t info;
    tmq_client_counters (&counters, self->client);
    tmq_client_info (&info, self->client);
    *out = (link_numbers_t){.up = self->up,
                            .since_ms = self->since_ms,
                            .epoch = info.epoch,
                            .connects = counters.connects,
                            .resent = counters.resent,
                            .waits = self->waits,
                            .waits_displaced = self->polls.displaced};
    cancels_count (self->cancels, &out->cancels, &out->cancels_dropped);
}

uint64_t link_generation (const link_t *self)
{
    tmq_broker_info_t info;
    tmq_client_info (&info, self->client);
    return info.generation;
}

void link_broker (const link_t *self, char out[65])
{
    tmq_broker_info_t info;
    tmq_client_info (&info, self->client);
    snprintf (out, 65, "%s", info.broker);
}

/* Operations. */

typedef struct started {
    tmq_client_t *client;
    tmq_client_t *behalf; /* freed by end */
    uint64_t ticket;
    void *user;
    uint32_t timeout_ms;
} started_t;

/* What every operation begins with: is there a way, and a place. */
static int begin (link_t *self, started_t *out, link_call_t call, size_t completions,
                  tmq_error_t *error)
{
    const int64_t away_ms = self->up ? 0 : clock_ms (CLOCK_MONOTONIC) - self->since_ms;
    const int64_t grace_ms = (int64_t) self->settings->numbers[SETTING_GRACE];
    out->timeout_ms = (uint32_t) self->settings->numbers[SETTING_REQUEST_TIMEOUT];
    memset (error, 0, sizeof *error);
    if (!self->up && away_ms >= grace_ms) {
        error->code = TMQ_UNREACHABLE;
        error->retriable = true;
        error->retry_after_ms = (uint32_t) grace_ms;
        snprintf (error->text, sizeof error->text, "the broker is away; nothing was done");
        return TMQ_UNREACHABLE;
    }
    if (!self->up && grace_ms - away_ms < out->timeout_ms)
        out->timeout_ms = (uint32_t) (grace_ms - away_ms);
    out->client = self->client;
    out->behalf = NULL;
    if (call.owner != NULL) {
        error->code = tmq_client_on_behalf (&out->behalf, self->client, call.owner, error);
        if (error->code != TMQ_OK)
            return error->code;
        out->client = out->behalf;
    }
    out->ticket = take_place (self, call, completions);
    out->user = user_of (out->ticket);
    if (out->ticket != 0)
        return TMQ_OK;
    tmq_client_free (&out->behalf);
    error->code = TMQ_NO_MEMORY;
    return TMQ_NO_MEMORY;
}

/* … and ends with. */
static int end (link_t *self, started_t *started, link_call_t call, int code)
{
    tmq_client_free (&started->behalf); /* what was started goes on */
    if (call.ticket != NULL)
        *call.ticket = code == TMQ_OK ? started->ticket : 0;
    if (code != TMQ_OK)
        free_place (self, find_place (self, started->ticket));
    return code;
}

/* The library's function of an operation, with what stands between the client and the time. */
#define START(completions, function, ...)                                                          \
    do {                                                                                           \
        started_t started;                                                                         \
        int code = begin (self, &started, call, (completions), error);                             \
        if (code == TMQ_OK)                                                                        \
            code = end (                                                                           \
                self, &started, call,                                                              \
                function (started.client, __VA_ARGS__, started.timeout_ms, started.user, error));  \
        return code;                                                                               \
    } while (0)

int link_submit (link_t *self, link_call_t call, const tmq_submit_t *in, tmq_error_t *error)
{
    START (1, tmq_submit_start, in);
}

int link_submit_batch (link_t *self, link_call_t call, const tmq_submit_t *in, size_t count,
                       tmq_error_t *error)
{
    START (1, tmq_submit_batch_start, in, count);
}

int link_get (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_get_record_start, id);
}

int link_result (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_result_start, id);
}

int link_payload (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_payload_start, id);
}

int link_result_read (link_t *self, link_call_t call, const tmq_id_t *id, uint64_t offset,
                      uint32_t limit, tmq_error_t *error)
{
    START (1, tmq_result_read_start, id, offset, limit);
}

int link_payload_read (link_t *self, link_call_t call, const tmq_id_t *id, uint64_t offset,
                       uint32_t limit, tmq_error_t *error)
{
    START (1, tmq_payload_read_start, id, offset, limit);
}

int link_artifacts (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_artifacts_start, id);
}

int link_artifact_read (link_t *self, link_call_t call, const tmq_id_t *id,
                        const tmq_artifact_info_t *artifact, uint64_t offset, uint32_t limit,
                        tmq_error_t *error)
{
    START (1, tmq_artifact_read_start, id, artifact, offset, limit);
}

int link_blob_send (link_t *self, link_call_t call, const tmq_blob_t *blob, uint64_t offset,
                    const void *bytes, size_t length, tmq_error_t *error)
{
    START (1, tmq_blob_send_start, blob, offset, bytes, length);
}

/* Where it cannot be said, the broker finds out by itself. */
void link_blob_drop (link_t *self, const char *owner, const tmq_blob_t *blob)
{
    tmq_client_t *behalf = NULL;
    if (owner == NULL)
        tmq_blob_drop (self->client, blob, NULL);
    else if (tmq_client_on_behalf (&behalf, self->client, owner, NULL) == TMQ_OK)
        tmq_blob_drop (behalf, blob, NULL);
    tmq_client_free (&behalf);
}

line_t *link_bodies (link_t *self)
{
    return &self->bodies;
}

int link_resolve (link_t *self, link_call_t call, const char *suffix, tmq_error_t *error)
{
    START (1, tmq_resolve_start, suffix);
}

int link_list (link_t *self, link_call_t call, const tmq_list_query_t *in, tmq_error_t *error)
{
    START (1, tmq_list_start, in);
}

int link_tally (link_t *self, link_call_t call, const tmq_filter_t *in, tmq_error_t *error)
{
    START (1, tmq_count_start, in);
}

int link_cancel (link_t *self, link_call_t call, const tmq_id_t *id, const char *message,
                 tmq_error_t *error)
{
    START (1, tmq_cancel_start, id, message);
}

bool link_cancel_kept (link_t *self, account_t *account, const char *owner, const tmq_id_t *id,
                       const char *message)
{
    return cancels_add (self->cancels, account, owner, id, message);
}

int link_events (link_t *self, link_call_t call, const tmq_id_t *id, uint64_t before,
                 uint32_t limit, tmq_error_t *error)
{
    START (1, tmq_events_start, id, before, limit);
}

int link_wait (link_t *self, link_call_t call, const tmq_id_t *ids, size_t count,
               uint32_t timeout_ms, tmq_error_t *error)
{
    started_t started;
    /* The library would not ask the broker for more, and tell nobody: TMQ_LINK_WAITS_MAX. */
    uint64_t most = self->settings->numbers[SETTING_WAIT_IDS_MAX];
    if (count > 1)
        most -= most / 5;
    if (self->waits + count > most) {
        *error = (tmq_error_t){
            .code = TMQ_OVERLOADED, .retriable = true, .retry_after_ms = WAITS_RETRY_MS};
        snprintf (error->text, sizeof error->text,
                  "as many tasks are waited for as 'wait_ids_max' allows");
        return TMQ_OVERLOADED;
    }
    int code = begin (self, &started, call, count, error);
    if (code == TMQ_OK)
        code = end (self, &started, call,
                    tmq_wait_start (started.client, ids, count, timeout_ms, started.user, error));
    if (code == TMQ_OK) {
        find_place (self, started.ticket)->waits = true;
        self->waits += count;
    }
    return code;
}

seats_t *link_polls (link_t *self)
{
    return &self->polls;
}

int link_stats (link_t *self, link_call_t call, tmq_error_t *error)
{
    started_t started;
    int code = begin (self, &started, call, 1, error);
    if (code == TMQ_OK)
        code = end (self, &started, call,
                    tmq_stats_start (self->client, started.timeout_ms, started.user, error));
    return code;
}

int link_retry (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_retry_start, id, 1, NULL);
}

int link_resume (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_resume_start, id, 1, NULL);
}

int link_purge (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_purge_start, id, 1, NULL);
}

int link_adopt (link_t *self, link_call_t call, const tmq_id_t *id, uint32_t attempt,
                tmq_error_t *error)
{
    START (1, tmq_adopt_start, id, attempt, NULL);
}

int link_why (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error)
{
    START (1, tmq_why_start, id);
}

int link_answer (link_t *self, link_call_t call, const tmq_id_t *id, const tmq_answer_t *in,
                 size_t count, tmq_error_t *error)
{
    START (1, tmq_answer_start, id, in, count);
}

int link_inbox (link_t *self, link_call_t call, const tmq_inbox_query_t *in, tmq_error_t *error)
{
    START (1, tmq_inbox_start, in);
}

int link_workers (link_t *self, link_call_t call, uint64_t before, uint32_t limit, bool all,
                  tmq_error_t *error)
{
    START (1, tmq_workers_start, before, limit, all);
}

int link_attempts (link_t *self, link_call_t call, const tmq_id_t *id, uint32_t after,
                   uint32_t limit, tmq_error_t *error)
{
    START (1, tmq_attempts_start, id, after, limit);
}

int link_log (link_t *self, link_call_t call, const tmq_id_t *id, uint32_t attempt,
              tmq_log_stream_t stream, uint64_t offset, uint32_t limit, tmq_error_t *error)
{
    START (1, tmq_log_read_start, id, attempt, stream, offset, limit);
}

int link_queues (link_t *self, link_call_t call, const char *cursor, uint32_t limit,
                 tmq_error_t *error)
{
    START (1, tmq_queue_list_start, cursor, limit);
}

int link_queue (link_t *self, link_call_t call, const char *queue, tmq_error_t *error)
{
    START (1, tmq_queue_show_start, queue);
}

int link_pause (link_t *self, link_call_t call, const char *queue, const char *why,
                tmq_error_t *error)
{
    START (1, tmq_queue_pause_start, queue, why);
}

int link_unpause (link_t *self, link_call_t call, const char *queue, tmq_error_t *error)
{
    START (1, tmq_queue_resume_start, queue);
}
