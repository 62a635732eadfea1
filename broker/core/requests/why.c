/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* why: what holds a task, at this moment. A walk over what stands between it and its end to the
 * first thing that is closed: its end, its lease, other tasks, its time, the gates of its queue,
 * the workers. It is computed from what decides, so it cannot be out of date. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/match/match.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/get.h"
#include "core/requests/sessions.h"
#include "core/tasks/due.h"
#include "core/tasks/edges.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/question.h"
#include "core/tasks/session.h"
#include "core/tasks/settings.h"
#include "core/tasks/view.h"
#include "ids.h"
#include "types.h"
#include "units.h"

enum {
    FACTS_MAX = 16,
    FACT_TEXT_SIZE = 288, /* a reason to pause, a question's key: 256 bytes */
    SENTENCE_SIZE = 1024,
    LOOKS_MAX = 4096 /* at tasks that come before */
};

typedef struct story {
    call_t *call;
    Taskmq__Explanation out;
    Taskmq__Fact facts[FACTS_MAX];
    Taskmq__Fact *list[FACTS_MAX];
    char texts[FACTS_MAX][FACT_TEXT_SIZE];
    Taskmq__Dependency *after[TMQ_AFTER_MAX];
    char sentence[SENTENCE_SIZE];
} story_t;

/* Facts. */

static Taskmq__Fact *add (story_t *self, const char *name, tmq_fact_kind_t kind)
{
    size_t i = self->out.n_facts;
    if (i == FACTS_MAX)
        return &self->facts[FACTS_MAX - 1];
    taskmq__fact__init (&self->facts[i]);
    self->facts[i].name = (char *) (uintptr_t) name;
    self->facts[i].kind = kind;
    self->list[i] = &self->facts[i];
    self->out.n_facts++;
    return &self->facts[i];
}

static void add_text (story_t *self, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    Taskmq__Fact *fact = add (self, name, TMQ_FACT_TEXT);
    char *place = self->texts[fact - self->facts];
    size_t length = strlen (text);
    size_t kept = 0;
    while (kept < length) { /* whole characters */
        size_t next = utf8_character ((const uint8_t *) text + kept, length - kept);
        if (next == 0 || kept + next >= FACT_TEXT_SIZE)
            break;
        kept += next;
    }
    memcpy (place, text, kept);
    place[kept] = '\0';
    fact->text = place;
}

static void add_number (story_t *self, const char *name, uint64_t number)
{
    add (self, name, TMQ_FACT_NUMBER)->number = number;
}

static void add_time (story_t *self, const char *name, int64_t ms)
{
    if (ms > 0)
        add (self, name, TMQ_FACT_TIME)->number = (uint64_t) ms;
}

static void add_duration (story_t *self, const char *name, int64_t ms)
{
    add (self, name, TMQ_FACT_DURATION)->number = ms > 0 ? (uint64_t) ms : 0;
}

__attribute__ ((format (printf, 3, 4))) static void tell (story_t *self, const char *reason,
                                                          const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (self->sentence, sizeof (self->sentence), format, arguments);
    va_end (arguments);
    self->out.reason = (char *) (uintptr_t) reason;
    self->out.sentence = self->sentence;
}

static int64_t wall_ms (const story_t *self)
{
    return self->call->requests->base->clocks.wall_ms;
}

/* Its end. */

static void tell_failed (story_t *self, const record_t *task)
{
    char ago[UNITS_TEXT_SIZE];
    enum { SHOWN_BYTES_MAX = 600 };
    const char *message = self->call->bodies ? task->error_message : "";
    const int shown = (int) utf8_whole (message, strlen (message), SHOWN_BYTES_MAX);
    duration_format_short (ago, wall_ms (self) - task->finished_at);
    add_number (self, "error_code", (uint64_t) (int64_t) task->error_code);
    add_text (self, "error_message", message);
    if (task->dead)
        tell (self, "dead",
              "it failed for good %s ago: %" PRIu32 " of %" PRIu32 " attempts failed%s%.*s", ago,
              task->failures, task->max_attempts, message[0] != '\0' ? ", the last one with: " : "",
              shown, message);
    else
        tell (self, "failed", "it failed %s ago%s%.*s", ago, message[0] != '\0' ? ": " : "", shown,
              message);
    if (task->dead) {
        add_number (self, "failures", task->failures);
        add_number (self, "max_attempts", task->max_attempts);
    }
}

static void tell_end (story_t *self, const record_t *task)
{
    char ago[UNITS_TEXT_SIZE];
    duration_format_short (ago, wall_ms (self) - task->finished_at);
    add_time (self, "finished_at", task->finished_at);
    if (task->status == TMQ_STATUS_FAILED) {
        tell_failed (self, task);
    } else if (task->status == TMQ_STATUS_COMPLETED) {
        tell (self, "completed", "it completed %s ago", ago);
    } else if (task->leased) {
        add_text (self, "worker", task->worker);
        tell (self, "cancelling",
              "it was cancelled %s ago; worker '%s' has not confirmed yet that it stopped", ago,
              task->worker);
    } else {
        tell (self, "cancelled", "it was cancelled %s ago", ago);
    }
}

/* Its lease. */

static void tell_leased (story_t *self, const task_t *task)
{
    const clocks_t *clocks = &self->call->requests->base->clocks;
    const detail_t *detail = task->detail;
    char left[UNITS_TEXT_SIZE];
    int64_t left_ms = detail->lease_due_ms - clocks_awake_ms (clocks);
    const char *worker = name_text (detail->worker);
    bool late = left_ms <= 0;
    add_text (self, "worker", worker);
    add_text (self, "holder", name_text (detail->identity));
    add_number (self, "attempt", task->attempt);
    add_number (self, "failures", task->failures);
    add_number (self, "max_attempts", task->max_attempts);
    add_time (self, "started_at", detail->started_at);
    add_time (self, "until", clocks->wall_ms + left_ms);
    if (late) {
        tell (self, "late",
              "the lease of worker '%s' ran out; it goes back to its queue unless the worker is "
              "heard now",
              worker);
        return;
    }
    duration_format_short (left, left_ms);
    tell (self, "leased",
          "worker '%s' %s it: attempt %" PRIu32 ", after %" PRIu32 " failures of at most %" PRIu32
          "; the lease ends in %s unless it is renewed",
          worker, task->started ? "works on" : "has", task->attempt, task->failures,
          task->max_attempts, left);
}

static void tell_input (story_t *self, const task_t *task)
{
    const tasks_t *tasks = self->call->requests->tasks;
    const asking_t *asking = asking_find (tasks, task->queue->space, task->id.bytes);
    const question_t *first = NULL;
    char since[UNITS_TEXT_SIZE];
    char left[UNITS_TEXT_SIZE];
    for (size_t i = 0; asking != NULL && i < asking->count; i++) {
        const question_t *question = asking->list[i];
        if (question->answer_number == 0 && (first == NULL || question->deadline < first->deadline))
            first = question;
    }
    if (first == NULL) {
        tell (self, "input", "it waits for an answer");
        return;
    }
    add_number (self, "open", asking->open);
    if (self->call->bodies)
        add_text (self, "key", first->key);
    add_time (self, "asked_at", first->asked_at);
    add_time (self, "until", first->deadline);
    duration_format_short (since, wall_ms (self) - first->asked_at);
    duration_format_short (left, first->deadline - wall_ms (self));
    tell (self, "input",
          "it waits for an answer: %" PRIu32 " question%s open, %sasked %s ago; %s left to answer",
          asking->open, asking->open == 1 ? " is" : "s are",
          asking->open == 1 ? "" : "the most urgent one ", since, left);
}

/* Other tasks, and its time. */

static void tell_blocked (story_t *self, const task_t *task)
{
    const Taskmq__Extra *extra = extras_of (task);
    char id[ID_TEXT_SIZE] = "";
    size_t open = 0;
    for (size_t i = 0; i < extra->n_after && open < TMQ_AFTER_MAX; i++)
        if (extra->after[i]->status == TMQ_STATUS_NONE)
            self->after[open++] = extra->after[i];
    tmq_id_t first = {{0}};
    if (open > 0)
        memcpy (first.bytes, self->after[0]->task_id.data, sizeof (first));
    id_format (&first, id);
    self->out.after = self->after;
    self->out.n_after = open;
    add_number (self, "waits_for", open);
    if (open == 1)
        tell (self, "blocked", "it waits for task %s to end", id);
    else
        tell (self, "blocked", "it waits for %zu tasks to end, the first of them %s", open, id);
}

static void tell_scheduled (story_t *self, const task_t *task)
{
    char left[UNITS_TEXT_SIZE];
    const char *cause = task->attempt == 0                         ? "delay"
                        : task->failures > 0 && task->returns == 0 ? "backoff"
                                                                   : "return";
    duration_format_short (left, task->not_before - wall_ms (self));
    add_time (self, "until", task->not_before);
    add_text (self, "cause", cause);
    if (task->attempt > 0) {
        add_number (self, "failures", task->failures);
        add_number (self, "max_attempts", task->max_attempts);
    }
    if (task->attempt == 0)
        tell (self, "scheduled", "it was submitted for later: it may be claimed in %s", left);
    else if (task->failures > 0 && task->returns == 0)
        tell (self, "scheduled",
              "it failed %" PRIu32 " times of at most %" PRIu32 ", and is tried again in %s",
              task->failures, task->max_attempts, left);
    else
        tell (self, "scheduled", "it was given back, and may be claimed again in %s", left);
}

/* Its queue. */

static void tell_paused (story_t *self, const queue_t *queue)
{
    const settings_t *settings = queue->settings;
    const char *by = settings->paused_by == NULL ? "" : settings->paused_by;
    const char *why = settings->why == NULL ? "" : settings->why;
    char since[UNITS_TEXT_SIZE];
    duration_format_short (since, wall_ms (self) - settings->paused_at);
    add_text (self, "by", by);
    add_time (self, "since", settings->paused_at);
    add_text (self, "why", why);
    tell (self, "queue_paused", "queue '%s' was paused by %s %s ago%s%s", queue->name, by, since,
          why[0] != '\0' ? ": " : "", why);
}

static void tell_session (story_t *self, const session_t *session)
{
    const Taskmq__Session *stored = session->stored;
    const char *how = session_status_text (stored->status);
    bool seen = session_is_seen (self->call->requests, self->call->link, session);
    const char *by = seen ? stored->status_by : "";
    const char *why = seen ? stored->status_why : "";
    char since[UNITS_TEXT_SIZE];
    duration_format_short (since, wall_ms (self) - (int64_t) stored->status_at);
    add_text (self, "session", session->name->text);
    add_text (self, "by", by);
    add_time (self, "since", (int64_t) stored->status_at);
    add_text (self, "why", why);
    tell (self, stored->status == TMQ_SESSION_STATUS_PAUSED ? "session_paused" : "session_frozen",
          "its session '%s' was %s%s%s %s ago%s%s", session->name->text, how,
          by[0] != '\0' ? " by " : "", by, since, why[0] != '\0' ? ": " : "", why);
}

static void tell_rate (story_t *self, const queue_t *queue)
{
    const settings_t *settings = queue->settings;
    char per[UNITS_TEXT_SIZE];
    add_number (self, "rate", settings->rate);
    add_duration (self, "rate_ms", (int64_t) settings->rate_ms);
    tell (self, "rate", "queue '%s' may begin %" PRIu64 " tasks in %s, and has begun as many",
          queue->name, settings->rate, duration_format (per, (int64_t) settings->rate_ms));
}

/* False: no gate of the queue holds it. */
static bool tell_gate (story_t *self, const queue_t *queue)
{
    bool has = queue->settings != NULL;
    if (has && gate_is_closed (&queue->gate, GATE_PAUSED)) {
        tell_paused (self, queue);
    } else if (has && gate_is_closed (&queue->gate, GATE_CAP)) {
        add_number (self, "running", queue->leases);
        add_number (self, "max_running", queue->settings->max_running);
        tell (self, "cap", "queue '%s' has %" PRIu32 " tasks running, and may have %" PRIu64,
              queue->name, queue->leases, queue->settings->max_running);
    } else if (has && gate_is_closed (&queue->gate, GATE_RATE)) {
        tell_rate (self, queue);
    } else {
        return false;
    }
    return true;
}

/* Its fair key has as many running as may. */
static bool tell_key (story_t *self, const task_t *task)
{
    key_use_t use;
    if (!lanes_key_is_full (self->call->requests->tasks, task, &use))
        return false;
    add_text (self, "fair_key", use.key);
    add_number (self, "running", use.running);
    add_number (self, "max_per_key", task->queue->key_cap);
    tell (self, "key_cap",
          "of the fair key '%s' %" PRIu32 " tasks of queue '%s' are running, and may be %" PRIu32,
          use.key, use.running, task->queue->name, task->queue->key_cap);
    return true;
}

/* The workers that serve its queue. */
typedef struct crowd {
    uint32_t serving;
    uint32_t right;      /* … and have the labels that it requires */
    uint32_t open;       /* … and are given tasks */
    const char *drained; /* the name of a right one that gets nothing any more; NULL: none */
} crowd_t;

static bool has_label (const worker_t *worker, const Taskmq__Label *label)
{
    size_t key = strlen (label->key);
    for (size_t i = 0; i < worker->labels_count; i++) {
        const char *text = name_text (worker->labels[i]);
        if (strncmp (text, label->key, key) == 0 && text[key] == '=' &&
            strcmp (text + key + 1, label->value) == 0)
            return true;
    }
    return false;
}

static bool serves (const worker_t *worker, const queue_t *queue)
{
    for (size_t i = 0; i < worker->seats_count; i++)
        if (worker->seats[i].queue == queue)
            return true;
    return false;
}

/* missing: of the labels that it requires the first that no worker has, NULL if there is none. */
static crowd_t look_around (const story_t *self, const task_t *task, const Taskmq__Label **missing)
{
    const Taskmq__Extra *extra = extras_of (task);
    const map_t *workers = &self->call->requests->tasks->workers;
    crowd_t crowd = {0};
    uint32_t having[TMQ_NEEDS_MAX] = {0};
    size_t cursor = 0;
    size_t looks = 0;
    for (const worker_t *worker = map_each (workers, &cursor); worker != NULL && looks < LOOKS_MAX;
         worker = map_each (workers, &cursor), looks++) {
        if (worker->space != task->queue->space || !serves (worker, task->queue))
            continue;
        size_t met = 0;
        for (size_t i = 0; i < extra->n_needs; i++) {
            bool has = has_label (worker, extra->needs[i]);
            met += has;
            having[i] += has;
        }
        crowd.serving++;
        if (met < extra->n_needs)
            continue;
        crowd.right++;
        crowd.open += worker->link != NULL && gate_is_open (&worker->gate);
        if (gate_is_closed (&worker->gate, GATE_DRAINED))
            crowd.drained = name_text (worker->name);
    }
    *missing = NULL;
    for (size_t i = extra->n_needs; i > 0; i--)
        if (having[i - 1] == 0)
            *missing = extra->needs[i - 1];
    return crowd;
}

static void tell_needs (story_t *self, const task_t *task, const crowd_t *crowd,
                        const Taskmq__Label *missing)
{
    char label[TMQ_NAME_LENGTH_MAX + TMQ_LABEL_BYTES_MAX + 2] = "";
    if (missing != NULL)
        snprintf (label, sizeof (label), "%s=%s", missing->key, missing->value);
    add_text (self, "missing", label);
    add_number (self, "workers", crowd->serving);
    tell (self, "no_worker_with_labels",
          missing != NULL ? "of the %" PRIu32 " workers of queue '%s' none has the label %s, which "
                            "it requires"
                          : "of the %" PRIu32 " workers of queue '%s' none has all the labels "
                            "that it requires%s",
          crowd->serving, task->queue->name, label);
}

/* There are workers, and none of them can be given this task. */
static bool tell_workers (story_t *self, const task_t *task)
{
    const Taskmq__Label *missing;
    crowd_t crowd = look_around (self, task, &missing);
    if (crowd.serving == 0 || crowd.open > 0)
        return false;
    if (crowd.right == 0) {
        tell_needs (self, task, &crowd, missing);
        return true;
    }
    add_number (self, "workers", crowd.right);
    if (crowd.drained != NULL) {
        add_text (self, "worker", crowd.drained);
        tell (self, "drained",
              "worker '%s' of queue '%s' is drained and gets nothing new, and there is no other",
              crowd.drained, task->queue->name);
    } else {
        tell (self, "silent", "the workers of queue '%s' are not heard now", task->queue->name);
    }
    return true;
}

static void tell_ready (story_t *self, const task_t *task)
{
    const queue_t *queue = task->queue;
    size_t position = queue_position (queue, task, LOOKS_MAX);
    bool free = !list_is_empty (&queue->waiting);
    bool full = self->call->requests->base->full;
    add_number (self, "position", position);
    add_number (self, "ready", queue->ready);
    add_number (self, "workers", queue->seats);
    if (queue->seats == 0)
        tell (self, "no_worker", "no worker serves queue '%s'", queue->name);
    else if (task->payload_wanted ||
             (position == 1 && free && task->payload_bytes > 0 && task->payload == NULL))
        tell (self, "payload", "it is the next one, and its payload is being read");
    else
        tell (self, full ? "disk_full" : "ready",
              "%sit waits for its turn: %s number %zu of queue '%s', which %" PRIu32
              " worker%s serve%s%s",
              full ? "the broker's disk is full; " : "",
              position == LOOKS_MAX ? "at least" : "about", position, queue->name, queue->seats,
              queue->seats == 1 ? "" : "s", queue->seats == 1 ? "s" : "",
              free ? "" : "; none has room now");
}

static void tell_queued (story_t *self, const task_t *task)
{
    const base_t *base = self->call->requests->base;
    add_text (self, "queue", task->queue->name);
    add_time (self, "expires_at", task->expires_at);
    add_time (self, "start_by", (int64_t) extras_of (task)->start_by);
    if (base->stopping)
        tell (self, "stopping", "the broker is stopping, and gives nothing away any more");
    else if (task->leased)
        tell (self, "lease", "it was retried, and waits until worker '%s' confirms that it stopped",
              name_text (task->detail->worker));
    else if (task->blocked)
        tell_blocked (self, task);
    else if (task->scheduled)
        tell_scheduled (self, task);
    else if (session_holds (task->session) && !gate_is_closed (&task->queue->gate, GATE_PAUSED))
        tell_session (self, task->session);
    else if (!tell_gate (self, task->queue) && !tell_key (self, task) && !tell_workers (self, task))
        tell_ready (self, task);
}

/* The answer. */

static void tell_live (story_t *self, const task_t *task)
{
    record_t view;
    task_texts_t texts MEMORY_FILLED_BEFORE_READ;
    self->out.phase = task_phase (self->call->requests->tasks, task);
    if (task_is_terminal (task)) {
        task_view (task, &view, &texts);
        tell_end (self, &view);
    } else if (task->status == TMQ_STATUS_QUEUED) {
        tell_queued (self, task);
    } else if (task->status == TMQ_STATUS_INPUT_REQUIRED) {
        tell_input (self, task);
    } else {
        tell_leased (self, task);
    }
}

void on_why (call_t *call)
{
    found_t found;
    const ProtobufCBinaryData *id = &call->request->why->task_id;
    if (!get_find (call, id, RIGHT_READ | RIGHT_OBSERVE, &found))
        return;
    requests_t *self = call->requests;
    story_t story = {.call = call, .out = TASKMQ__EXPLANATION__INIT};
    story.out.task_id = *id;
    story.out.status = found_status (&found);
    story.out.facts = story.list;
    if (found.task != NULL)
        tell_live (&story, found.task);
    else
        tell_end (&story, found.record);
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_EXPLANATION, &story.out.base);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}
