/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The checker: what clients were told against what they were told before (I1 to I7, I9), and, since
 * nothing may leave the broker before it is durable, against what the store would keep if the
 * broker crashed at this very moment. */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "ids.h"

enum {
    GIVEN_BACK_MS = 2000,   /* from the end of the grace to a durable change, at most */
    RUNTIME_SLACK_MS = 1000 /* until the end of a runtime is judged, at most */
};

static uint32_t index_of (const known_t *task)
{
    return model_index (task->id.bytes);
}

static const record_t *durable_of (const world_t *world, const known_t *task)
{
    return world->model->durable.rows[index_of (task)].record;
}

static bool was_removed (const world_t *world, const known_t *task)
{
    return world->model->durable.rows[index_of (task)].tombstone != TMQ_OK;
}

static bool is_terminal (uint32_t status)
{
    return status >= TMQ_STATUS_COMPLETED && status <= TMQ_STATUS_CANCELLED;
}

void check_payload_fill (const known_t *task, uint8_t *out)
{
    seeker_fill_payload (task, out);
}

void check_result_fill (uint8_t seed, uint8_t *out, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        out[i] = (uint8_t) (seed + i * 13);
    }
}

static bool result_fits (const known_t *task, const uint8_t *bytes, size_t length)
{
    if (length != task->result_bytes) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != (uint8_t) (task->result_seed + i * 13)) {
            return false;
        }
    }
    return true;
}

known_t *check_find (world_t *world, const ProtobufCBinaryData *id)
{
    uint32_t index = id->len == 16 ? model_index (id->data) : MODEL_TASKS_MAX;
    if (index >= world->tasks_count || memcmp (world->tasks[index].id.bytes, id->data, 16) != 0) {
        sim_fail (world, "a task that nobody submitted");
        return NULL;
    }
    return &world->tasks[index];
}

static void learn_version (known_t *task, uint64_t version)
{
    task->version = version > task->version ? version : task->version;
}

/* Somebody was told that the task is gone. */
static void learn_removal (world_t *world, known_t *task)
{
    if (task->ttl_ms == 0 && world->options.clock_leap == 0 && !task->purging) {
        sim_fail (world, "I3: task %u is gone before its time", index_of (task));
    }
    task->removed = true;
}

static void learn_end (world_t *world, known_t *task, uint32_t status)
{
    if (!is_terminal (status)) {
        if (task->ended != TMQ_STATUS_NONE) {
            sim_fail (world, "I2: task %u had ended as %d and shows status %u", index_of (task),
                      (int) task->ended, status);
        }
        return;
    }
    if (task->revived && status != TMQ_STATUS_COMPLETED) { /* perhaps of an earlier life */
        if ((task->ends & 1u << status) == 0) {
            sim_fail (world, "A7: the end of task %u (%u) was told and never was durable",
                      index_of (task), status);
        }
        return;
    }
    if (task->ended != TMQ_STATUS_NONE && task->ended != (tmq_status_t) status) {
        sim_fail (world, "I2: task %u ended as %d and as %u", index_of (task), (int) task->ended,
                  status);
    }
    task->ended = (tmq_status_t) status;
    const record_t *record = durable_of (world, task);
    if (record != NULL ? record->status != (tmq_status_t) status : !was_removed (world, task)) {
        sim_fail (world, "A7: the end of task %u (%u) was told and is not durable", index_of (task),
                  status);
    }
}

/* Submit. */

static void check_alias (world_t *world, known_t *task, const Taskmq__SubmittedItem *item)
{
    known_t *other = check_find (world, &item->task_id);
    if (other == NULL) {
        return;
    }
    bool same = task->dedup_key[0] != '\0' && strcmp (task->dedup_key, other->dedup_key) == 0 &&
                strcmp (task->ns, other->ns) == 0 && task->owner == other->owner &&
                task->payload_bytes == other->payload_bytes;
    if (!same || !item->existing) {
        sim_fail (world, "I6: task %u is answered with task %u", index_of (task), index_of (other));
    } else if (task->accepted && task->alias == 0) {
        sim_fail (world, "I6: task %u was accepted, now it is said to be %u", index_of (task),
                  index_of (other));
    } else if (durable_of (world, other) == NULL && !was_removed (world, other)) {
        sim_fail (world, "A7: existing task %u is not durable", index_of (other));
    }
    task->accepted = true;
    task->alias = index_of (other) + 1;
}

void check_submitted (world_t *world, known_t *task, const Taskmq__SubmittedItem *item)
{
    task->refused = task->refused || item->code != TMQ_OK;
    switch (item->code) {
    case TMQ_OK: break;
    case TMQ_EXPIRED:
    case TMQ_PURGED: learn_removal (world, task); return;
    case TMQ_OVERLOADED:
    case TMQ_STORE_FULL:
    case TMQ_LIMIT: return;
    case TMQ_INVALID: /* the submit arrived after its task had to begin */
        if (task->start_by == 0 || (task->accepted && task->alias == 0)) {
            sim_fail (world, "I6: the submit of task %u is invalid: %s", index_of (task),
                      item->text);
        }
        return;
    case TMQ_NO_BLOB: /* nobody of its identity has uploaded it lately */
        if (task->blob == 0) {
            sim_fail (world, "R7: task %u: %s", index_of (task), item->text);
        }
        return;
    case TMQ_NOT_FOUND:
        if (!after_may_be_unknown (world, task) && !parts_may_be_orphans (world, task)) {
            sim_fail (world, "S21: task %u: %s", index_of (task), item->text);
        }
        return;
    case TMQ_WRONG_STATUS: /* its session is complete */
        if (task->session == 0) {
            sim_fail (world, "S32: task %u: %s", index_of (task), item->text);
        }
        return;
    default:
        if (item->code != TMQ_CONFLICT || task->dedup_key[0] == '\0') {
            sim_fail (world, "I6: the submit of task %u is answered %u %s", index_of (task),
                      item->code, item->text);
        }
        return;
    }
    if (item->task_id.len != 16) {
        sim_fail (world, "the submit of task %u is answered without an id", index_of (task));
        return;
    }
    if (memcmp (item->task_id.data, task->id.bytes, 16) != 0) {
        check_alias (world, task, item);
        return;
    }
    if (task->alias != 0) {
        /* The key was free again, or the first answer was about a task that is gone. */
        task->alias = 0;
    }
    task->accepted = true;
    learn_version (task, 1);
    const record_t *record = durable_of (world, task);
    if (record == NULL
            ? !was_removed (world, task)
            : record->payload_bytes != task->payload_bytes || strcmp (record->ns, task->ns) != 0) {
        sim_fail (world, "I1: the submit of task %u was acknowledged and is not durable",
                  index_of (task));
    }
}

/* Work. */

static bool payload_fits (const known_t *task, const Taskmq__Assignment *assignment,
                          const uint8_t *body)
{
    if (assignment->payload_bytes != task->payload_bytes) {
        return false;
    }
    uint8_t payload[SIM_PAYLOAD_MAX];
    check_payload_fill (task, payload);
    return task->payload_bytes == 0 || memcmp (body, payload, task->payload_bytes) == 0;
}

void check_assigned (world_t *world, uint32_t worker, const Taskmq__Assignment *assignment,
                     const uint8_t *body)
{
    known_t *task = check_find (world, &assignment->task_id);
    if (task == NULL) {
        return;
    }
    uint32_t index = index_of (task);
    uint32_t attempt = assignment->attempt;
    if (!task->submitted || strcmp (task->queue, assignment->queue) != 0 ||
        strcmp (task->ns, world->clients[worker].ns) != 0 || assignment->secret.len != 16) {
        sim_fail (world, "I9: task %u came to the wrong worker or in the wrong shape", index);
    } else if (task->max_runtime_ms !=
               (assignment->extra == NULL ? 0 : assignment->extra->max_runtime_ms)) {
        sim_fail (world, "I1: task %u came with a max_runtime of %u, not %u", index,
                  assignment->extra == NULL ? 0 : (unsigned) assignment->extra->max_runtime_ms,
                  task->max_runtime_ms);
    } else if (!payload_fits (task, assignment, body)) {
        sim_fail (world, "I1: task %u came with another payload (%u bytes, not %u)", index,
                  assignment->payload_bytes, task->payload_bytes);
    }
    carrier_check_assigned (world, task, assignment);
    for (size_t i = 0; i < task->assigned_count; i++) {
        if (task->assigned[i].attempt == attempt) {
            sim_fail (world, "I15: attempt %u of task %u was given to workers %u and %u", attempt,
                      index, task->assigned[i].worker, worker);
        }
    }
    if (task->completed_by > 0) {
        if (attempt > task->completed_by) {
            sim_fail (world, "I4: attempt %u of task %u, but %u had completed it", attempt, index,
                      task->completed_by);
        }
    }
    const record_t *record = durable_of (world, task);
    if (record == NULL ? !was_removed (world, task) : record->attempt < attempt) {
        sim_fail (world, "A7: attempt %u of task %u was assigned and is not durable", attempt,
                  index);
    }
    assigned_t *grown =
        realloc (task->assigned, (task->assigned_count + 1) * sizeof *task->assigned);
    task->assigned = grown;
    assigned_t *entry = &task->assigned[task->assigned_count++];
    *entry = (assigned_t){.attempt = attempt, .worker = worker, .at_ms = world->mono_ms};
    memcpy (entry->secret, assignment->secret.data, sizeof entry->secret);
}

void check_completed (world_t *world, known_t *task, uint32_t attempt, uint8_t result_seed,
                      uint32_t result_bytes)
{
    uint32_t index = index_of (task);
    if (task->completed_by != 0 && task->completed_by != attempt) {
        sim_fail (world, "I4: attempts %u and %u of task %u both completed it", task->completed_by,
                  attempt, index);
    }
    for (size_t i = 0; i < task->assigned_count; i++) {
        if (task->assigned[i].attempt > attempt) {
            sim_fail (world, "I4: attempt %u of task %u was accepted, %u had been assigned",
                      attempt, index, task->assigned[i].attempt);
        }
    }
    if (task->cancelled && !task->revived) {
        sim_fail (world, "I2: task %u was cancelled, then completed by attempt %u", index, attempt);
    }
    task->completed_by = attempt;
    task->result_seed = result_seed;
    task->result_bytes = result_bytes;
    learn_end (world, task, TMQ_STATUS_COMPLETED);
    const record_t *record = durable_of (world, task);
    if (record != NULL &&
        (record->attempt != attempt ||
         !result_fits (task, buf_bytes (record->result), buf_length (record->result)))) {
        sim_fail (world, "I3: task %u, attempt %u: its %u bytes are not what is stored: %zu of %u",
                  index, attempt, result_bytes, buf_length (record->result), record->attempt);
    }
    world->completions++;
}

void check_brought (known_t *task, uint32_t attempt, uint8_t result_seed, uint32_t result_bytes)
{
    for (size_t i = 0; i < task->assigned_count; i++) {
        assigned_t *entry = &task->assigned[i];
        if (entry->attempt == attempt) {
            entry->brought = true;
            entry->result_seed = result_seed;
            entry->result_bytes = result_bytes;
        }
    }
}

void check_adopted (world_t *world, known_t *task, uint32_t attempt, const record_t *record)
{
    const assigned_t *entry = NULL;
    for (size_t i = 0; i < task->assigned_count; i++) {
        entry = task->assigned[i].attempt == attempt ? &task->assigned[i] : entry;
    }
    if (entry == NULL || !entry->brought) {
        sim_fail (world, "S35: attempt %u of task %u is adopted and brought nothing", attempt,
                  index_of (task));
        return;
    }
    if (task->completed_by != 0 && task->completed_by != record->attempt) {
        sim_fail (world, "I4: attempt %u of task %u completed it, adopted is %u as %u",
                  task->completed_by, index_of (task), attempt, record->attempt);
    }
    task->completed_by = record->attempt;
    task->result_seed = entry->result_seed;
    task->result_bytes = entry->result_bytes;
    learn_end (world, task, TMQ_STATUS_COMPLETED);
    if (!result_fits (task, buf_bytes (record->result), buf_length (record->result))) {
        sim_fail (world, "S35: task %u has another outcome than what attempt %u brought",
                  index_of (task), attempt);
    }
}

void check_stale (world_t *world, const known_t *task, uint32_t attempt)
{
    const record_t *record = durable_of (world, task);
    if (record != NULL && record->status == TMQ_STATUS_COMPLETED && record->attempt == attempt) {
        sim_fail (world, "A45: attempt %u of task %u completed it and is told that it is stale",
                  attempt, index_of (task));
    }
}

void check_ended_otherwise (world_t *world, known_t *task, uint32_t attempt)
{
    if (task->completed_by == attempt) {
        sim_fail (world, "I4: attempt %u of task %u completed it and ended otherwise", attempt,
                  index_of (task));
    }
}

/* Nothing was read: the store was out of reach. */
static void check_away (world_t *world, const known_t *task)
{
    if (world->options.away == 0) {
        sim_fail (world, "task %u is out of reach, and the store is not", index_of (task));
    }
}

void check_cancelled (world_t *world, known_t *task, const Taskmq__Reply *reply)
{
    switch (reply->code) {
    case TMQ_OK:
        task->cancelled = !task->revived;
        if (task->completed_by != 0 && !task->revived) {
            sim_fail (world, "I2: task %u was completed, then cancelled", index_of (task));
        }
        learn_end (world, task, TMQ_STATUS_CANCELLED);
        break;
    case TMQ_EXPIRED:
    case TMQ_PURGED: learn_removal (world, task); break;
    case TMQ_WRONG_STATUS:
    case TMQ_NOT_FOUND: break;
    case TMQ_UNAVAILABLE: check_away (world, task); break;
    default:
        sim_fail (world, "the cancel of task %u is answered %u %s", index_of (task), reply->code,
                  reply->text);
    }
}

/* Reads. */

void check_waited (world_t *world, const Taskmq__WaitedItem *item, const char *ns)
{
    known_t *task = check_find (world, &item->task_id);
    if (task == NULL) {
        return;
    }
    if (strcmp (task->ns, ns) != 0 && item->code != TMQ_NOT_FOUND) {
        sim_fail (world, "I9: %s was told of a task of %s", ns, task->ns);
    }
    if (item->code == TMQ_OK) {
        if (!is_terminal (item->status)) {
            sim_fail (world, "a wait for task %u ends at status %u", index_of (task), item->status);
        }
        learn_end (world, task, item->status);
    } else if (item->code == TMQ_EXPIRED || item->code == TMQ_PURGED) {
        learn_removal (world, task);
    }
}

enum { MARK_ENDED = 1, MARK_COMPLETED = 2, MARK_BITS = 2 };

uint64_t check_mark (const known_t *task)
{
    return task->version << MARK_BITS | (task->ended != TMQ_STATUS_NONE ? MARK_ENDED : 0) |
           (task->ended == TMQ_STATUS_COMPLETED ? MARK_COMPLETED : 0);
}

static void check_record (world_t *world, known_t *task, const Taskmq__Task *found,
                          const uint8_t *body, uint64_t mark)
{
    uint64_t asked_version = mark >> MARK_BITS;
    uint32_t index = index_of (task);
    if (found->task_id.len != 16 || memcmp (found->task_id.data, task->id.bytes, 16) != 0 ||
        strcmp (found->namespace_, task->ns) != 0) {
        sim_fail (world, "I9: asked for task %u, got another", index);
        return;
    }
    if (found->version < asked_version) {
        sim_fail (world, "I16: task %u was at version %llu, a later read shows %llu", index,
                  (unsigned long long) asked_version, (unsigned long long) found->version);
    }
    const record_t *record = durable_of (world, task);
    if (record != NULL && record->version < found->version) {
        sim_fail (world, "A7: task %u shows version %llu, durable is %llu", index,
                  (unsigned long long) found->version, (unsigned long long) record->version);
    }
    /* A reply may be old when it arrives: only what was asked after an end must show it, and after
     * the last one: not where somebody has revived it since. A success is the last one. */
    const bool last = (mark & MARK_COMPLETED) != 0 || ((mark & MARK_ENDED) != 0 && !task->revived);
    if (is_terminal (found->status) || last) {
        learn_end (world, task, found->status);
    }
    learn_version (task, found->version);
    if (body != NULL && found->status == TMQ_STATUS_COMPLETED && task->completed_by > 0 &&
        (found->attempt != task->completed_by || !result_fits (task, body, found->body))) {
        sim_fail (world, "I3: task %u: %u bytes by attempt %u, read are %u bytes of %u", index,
                  task->result_bytes, task->completed_by, found->body, found->attempt);
    }
}

void check_read (world_t *world, known_t *task, const Taskmq__Reply *reply, const uint8_t *body,
                 uint64_t mark)
{
    switch (reply->code) {
    case TMQ_OK:
        if (reply->task == NULL) {
            sim_fail (world, "a read of task %u brings nothing", index_of (task));
        } else {
            check_record (world, task, reply->task, body, mark);
        }
        break;
    case TMQ_EXPIRED:
    case TMQ_PURGED: learn_removal (world, task); break;
    case TMQ_NOT_FOUND:
        if (mark > 1) {
            sim_fail (world, "I1: task %u was accepted and is not found", index_of (task));
        }
        break;
    case TMQ_WRONG_STATUS: break;
    case TMQ_UNAVAILABLE: check_away (world, task); break;
    default:
        sim_fail (world, "a read of task %u is answered %u %s", index_of (task), reply->code,
                  reply->text);
    }
}

/* Events. */

static bool same_event (const Taskmq__Event *a, const Taskmq__Event *b)
{
    return a->seq == b->seq && a->kind == b->kind && a->status == b->status &&
           a->previous == b->previous && a->attempt == b->attempt && a->at == b->at &&
           a->task_id.len == b->task_id.len &&
           memcmp (a->task_id.data, b->task_id.data, a->task_id.len) == 0;
}

void check_events (world_t *world, const char *ns, const char *queue, uint64_t last, uint64_t upto,
                   const Taskmq__EventList *list)
{
    const model_log_t *log = model_log (&world->model->durable, ns);
    if (upto < last || upto > log->events_count) {
        sim_fail (world, "I7: %s: events up to %llu after %llu; %zu are durable", ns,
                  (unsigned long long) upto, (unsigned long long) last, log->events_count);
        return;
    }
    size_t at = 0;
    for (uint64_t seq = last + 1; seq <= upto; seq++) {
        const Taskmq__Event *expected = log->events[seq - 1];
        bool asked = queue == NULL || strcmp (expected->queue, queue) == 0;
        if (!asked || expected->subject != TMQ_SUBJECT_NONE) {
            continue;
        }
        if (at == list->n_events || !same_event (list->events[at], expected)) {
            sim_fail (
                world, "I7: %s: after %llu up to %llu: event %llu is missing or another (%llu)", ns,
                (unsigned long long) last, (unsigned long long) upto, (unsigned long long) seq,
                at == list->n_events ? 0ull : (unsigned long long) list->events[at]->seq);
            return;
        }
        at++;
    }
    if (at != list->n_events) {
        sim_fail (world, "I7: %s: after %llu up to %llu: event %llu does not belong here", ns,
                  (unsigned long long) last, (unsigned long long) upto,
                  (unsigned long long) list->events[at]->seq);
    }
}

uint64_t check_newest (const world_t *world, const char *ns)
{
    const model_log_t *log = model_log (&world->model->durable, ns);
    uint64_t seq = log->events_count;
    while (seq > 0 && log->events[seq - 1]->subject != TMQ_SUBJECT_NONE) {
        seq--;
    }
    return seq;
}

void check_event (world_t *world, const char *ns, uint64_t last, const tmq_event_t *event)
{
    const model_log_t *log = model_log (&world->model->durable, ns);
    uint64_t next = last + 1; /* of what is no task nobody has asked */
    while (next <= log->events_count && log->events[next - 1]->subject != TMQ_SUBJECT_NONE) {
        next++;
    }
    if (event->seq != next || event->seq > log->events_count) {
        sim_fail (world, "I7: library: event %llu after %llu; %zu are durable",
                  (unsigned long long) event->seq, (unsigned long long) last, log->events_count);
        return;
    }
    const Taskmq__Event *expected = log->events[next - 1];
    if (expected->kind != event->kind || expected->status != event->status ||
        expected->attempt != event->attempt ||
        memcmp (expected->task_id.data, event->task_id.bytes, 16) != 0) {
        sim_fail (world, "I7: library: event %llu is another one", (unsigned long long) event->seq);
    }
}

/* S9: after a restart every live lease has a fresh term. It cannot be lost before that is over,
 * unless its worker came back and renewed it for a shorter term, or did not name it. */
static void check_lease_lost (world_t *world, const Taskmq__Event *event)
{
    bool shared = world->database != NULL;
    int64_t started_ms = shared ? world->database->maker_started_ms : world->broker->started_ms;
    /* A clock may be fast. */
    int64_t term_ms = TMQ_RECOVERY_LEASE_MS_MIN - (shared ? TMQ_RECOVERY_LEASE_MS_MIN / 10 : 0);
    known_t *task = check_find (world, &event->task_id);
    bool fresh = world->mono_ms < started_ms + term_ms;
    if (task == NULL || !fresh || task->assigned_count == 0) {
        return;
    }
    const assigned_t *last = &task->assigned[task->assigned_count - 1];
    const client_t *worker = &world->clients[last->worker];
    /* The library says hello by itself, so nobody here knows when. */
    bool away = worker->actor == &worker_actor && worker->linked_ms < started_ms;
    if (away && last->attempt == event->attempt && last->at_ms < started_ms) {
        sim_fail (world, "S9: attempt %u of task %u is lost %lld ms after a restart",
                  event->attempt, index_of (task), (long long) (world->mono_ms - started_ms));
    }
}

/* A48: the hint that a connection ended gives the leases of its worker back after the grace, in
 * whatever order hint and refused outputs come. Only the newest connection counts, and only if the
 * worker knows that it is registered there: else its leases may stand with another one. */
void check_gone (const wire_t *link)
{
    client_t *client = link->client;
    world_t *world = client->world;
    bool counts = world->database == NULL && client->actor == &worker_actor && link->registered &&
                  link->peer == client->newest && world->mono_ms >= world->broker->frozen_until;
    if (counts) {
        memcpy (client->gone_id, worker_id (client), sizeof client->gone_id);
        client->gone_due_ms = world->mono_ms + TMQ_GONE_GRACE_MS + GIVEN_BACK_MS;
    }
}

void check_gone_forget (client_t *client)
{
    client->gone_due_ms = 0;
}

void check_gone_forget_all (world_t *world)
{
    for (uint32_t i = 0; i < world->clients_count; i++) {
        check_gone_forget (&world->clients[i]);
    }
}

static bool holds (const uint8_t id[16], const record_t *record)
{
    return record != NULL && record->leased && memcmp (record->worker_id, id, 16) == 0;
}

void check_given_back (world_t *world)
{
    for (uint32_t i = 0; i < world->clients_count; i++) {
        client_t *client = &world->clients[i];
        if (client->gone_due_ms == 0 || world->mono_ms < client->gone_due_ms) {
            continue;
        }
        for (uint32_t k = 0; k < world->tasks_count; k++) {
            if (holds (client->gone_id, world->model->durable.rows[k].record)) {
                sim_fail (world,
                          "A48: worker %u is gone, its connection's end was told, and it"
                          " still holds task %u",
                          i, k);
            }
        }
        check_gone_forget (client);
    }
}

/* By so much the clocks of several hosts may be apart by now. */
static int64_t apart_ms (const world_t *world)
{
    return world->options.brokers > 1 ? world->mono_ms / 10 : 0;
}

/* What is stored of a task that is queued says when it may be claimed. */
static void check_not_before (world_t *world, const Taskmq__Event *event)
{
    if (event->kind != TMQ_EVENT_CLAIMED || world->options.clock_leap != 0) {
        return;
    }
    uint32_t index = model_index (event->task_id.data);
    const record_t *before = world->model->durable.rows[index].record;
    if (before != NULL && before->last_seq == event->previous_seq &&
        before->not_before > (int64_t) event->at + apart_ms (world)) {
        sim_fail (world, "S25: task %u is claimed %lld ms before its time", index,
                  (long long) (before->not_before - (int64_t) event->at));
    }
}

void check_batch (world_t *world, const batch_t *batch)
{
    keeper_check_batch (world, batch);
    cleaner_check_batch (world, batch);
    for (size_t i = 0; i < batch->blocks_count; i++) {
        if (strcmp (batch->blocks[i].ns, model_namespaces[SIM_SHARED]) == 0) {
            continue; /* the tasks there are of schedules */
        }
        const buf_t *packed = batch->blocks[i].list;
        Taskmq__EventList *list =
            taskmq__event_list__unpack (NULL, buf_length (packed), buf_bytes (packed));
        for (size_t k = 0; list != NULL && k < list->n_events; k++) {
            after_check_event (world, list->events[k]);
            mender_check_event (world, list->events[k], batch);
            teller_check_event (world, list->events[k]);
            check_not_before (world, list->events[k]);
            if (list->events[k]->kind == TMQ_EVENT_LEASE_LOST) {
                check_lease_lost (world, list->events[k]);
            }
        }
        taskmq__event_list__free_unpacked (list, NULL);
    }
    teller_check_batch (world, batch);
    depot_check_batch (world, batch);
}

/* What is durable. */

typedef struct walk {
    uint64_t submitted_at;
    uint64_t last_seq;
    uint32_t status;
    uint32_t attempt;
    uint32_t asked; /* the newest attempt that asked a question */
    bool withdrawn; /* a cancelled attempt has its lease still */
    bool adopted;   /* its outcome came late */
    bool removed;
} walk_t;

/* By a wall clock that nobody sets, all times are alike. */
static void check_claim_time (world_t *world, const walk_t *walk, const Taskmq__Event *event,
                              uint32_t index)
{
    const known_t *task = &world->tasks[index];
    if (world->options.clock_leap != 0 || task->revived || task->set) {
        return;
    }
    uint64_t not_before =
        task->delay_ms > 0 ? walk->submitted_at + task->delay_ms : (uint64_t) task->not_before;
    if (event->at + (uint64_t) apart_ms (world) < not_before) {
        sim_fail (world, "delay: attempt %u of task %u begins %llu ms before its time",
                  event->attempt, index, (unsigned long long) (not_before - event->at));
    }
    if (task->start_by > 0 && event->at >= (uint64_t) task->start_by) {
        sim_fail (world, "start_by: attempt %u of task %u begins %llu ms after its start_by",
                  event->attempt, index,
                  (unsigned long long) (event->at - (uint64_t) task->start_by));
    }
}

/* Where the broker does not stand still and its clock neither, an attempt ends in time. While a
 * question is open its time does not count (S27). */
static void check_runtime (world_t *world, const known_t *task, const walk_t *walk,
                           const record_t *record)
{
    const sim_options_t *options = &world->options;
    bool steady = options->broker_crash == 0 && options->broker_freeze == 0 &&
                  options->commit_full == 0 && options->clock_leap == 0 && options->away == 0;
    if (!steady || task->max_runtime_ms == 0 || walk->adopted || walk->asked == record->attempt ||
        record->status != TMQ_STATUS_COMPLETED) {
        return;
    }
    int64_t ran_ms = record->finished_at - record->started_at;
    if (ran_ms > (int64_t) task->max_runtime_ms + RUNTIME_SLACK_MS) {
        sim_fail (world, "max_runtime: attempt %u of task %u ran for %lld ms of %u",
                  record->attempt, index_of (task), (long long) ran_ms, task->max_runtime_ms);
    }
}

/* By whose wish it does not stay as it ended. */
static bool goes_on (const walk_t *walk, const Taskmq__Event *event)
{
    bool revived = event->kind == TMQ_EVENT_RETRIED || event->kind == TMQ_EVENT_RESUMED;
    bool adopted = event->kind == TMQ_EVENT_ADOPTED && walk->status == TMQ_STATUS_FAILED;
    return adopted || (revived && walk->status != TMQ_STATUS_COMPLETED);
}

/* S5: while the lease of a cancelled attempt stands, nobody begins another one. */
static void walk_lease (world_t *world, walk_t *walk, const Taskmq__Event *event, uint32_t index)
{
    switch (event->kind) {
    case TMQ_EVENT_CANCELLED: walk->withdrawn = event->previous == TMQ_STATUS_WORKING; break;
    case TMQ_EVENT_CANCEL_ACKNOWLEDGED:
    case TMQ_EVENT_RELEASED:
    case TMQ_EVENT_LEASE_LOST: walk->withdrawn = false; break;
    case TMQ_EVENT_CLAIMED:
        if (walk->withdrawn) {
            sim_fail (world, "S5: task %u is claimed, its cancelled attempt has a lease still",
                      index);
        }
        break;
    default: break;
    }
}

static void walk_event (world_t *world, walk_t *walk, const Taskmq__Event *event, uint32_t index)
{
    if (event->previous_seq != walk->last_seq) {
        sim_fail (world, "I7: event %llu of task %u follows %llu, not %llu",
                  (unsigned long long) event->seq, index, (unsigned long long) walk->last_seq,
                  (unsigned long long) event->previous_seq);
    }
    bool removal = event->kind == TMQ_EVENT_EXPIRED || event->kind == TMQ_EVENT_PURGED;
    if (walk->removed || (is_terminal (walk->status) && !removal && !goes_on (walk, event) &&
                          event->status != walk->status)) {
        sim_fail (world, "I2: task %u had status %u, event %llu (%u) makes it %u", index,
                  walk->status, (unsigned long long) event->seq, event->kind, event->status);
    }
    if (event->kind == TMQ_EVENT_LATE) { /* of an attempt that is over; nothing else changes */
        if (event->attempt > walk->attempt || event->status != walk->status) {
            sim_fail (world, "I5: task %u: a late success of attempt %u after %u", index,
                      event->attempt, walk->attempt);
        }
    } else if (event->attempt < walk->attempt ||
               ((event->kind == TMQ_EVENT_CLAIMED || event->kind == TMQ_EVENT_ADOPTED) &&
                event->attempt == walk->attempt)) {
        sim_fail (world, "I5: task %u: attempt %u after %u", index, event->attempt, walk->attempt);
    }
    if (event->kind == TMQ_EVENT_SUBMITTED || event->kind == TMQ_EVENT_IMPORTED) {
        walk->submitted_at = event->at;
    }
    if (event->kind == TMQ_EVENT_CLAIMED) {
        check_claim_time (world, walk, event, index);
    }
    walk_lease (world, walk, event, index);
    walk->adopted = walk->adopted || event->kind == TMQ_EVENT_ADOPTED;
    walk->last_seq = event->seq;
    if (!removal && event->kind != TMQ_EVENT_LATE) {
        walk->attempt = event->attempt;
    }
    if (event->status == TMQ_STATUS_INPUT_REQUIRED) {
        walk->asked = event->attempt;
    }
    walk->status = removal ? walk->status : event->status;
    walk->removed = removal;
}

static void check_rows (world_t *world, const walk_t *walks)
{
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        const model_row_t *row = &world->model->durable.rows[i];
        const walk_t *walk = &walks[i];
        const record_t *record = row->record;
        if (record == NULL) {
            if (walk->last_seq > 0 && !walk->removed) {
                sim_fail (world, "I1: task %u has events and no record", i);
            }
            continue;
        }
        if (record->last_seq != walk->last_seq || (uint32_t) record->status != walk->status) {
            sim_fail (world, "I7: task %u: record at event %llu, status %d; log at %llu, %u", i,
                      (unsigned long long) record->last_seq, (int) record->status,
                      (unsigned long long) walk->last_seq, walk->status);
        }
        check_runtime (world, &world->tasks[i], walk, record);
        if (record->failures > record->max_attempts) {
            sim_fail (world, "task %u failed %u times of at most %u", i, record->failures,
                      record->max_attempts);
        }
    }
}

static void check_known (world_t *world, known_t *task)
{
    if (!task->accepted || task->alias != 0 || was_removed (world, task)) {
        return;
    }
    const record_t *record = durable_of (world, task);
    uint32_t index = index_of (task);
    if (record == NULL) {
        sim_fail (world, "I1: task %u was accepted and is lost", index);
    } else if (task->ended != TMQ_STATUS_NONE && record->status != task->ended) {
        sim_fail (world, "I2: task %u had ended as %d and is %d", index, (int) task->ended,
                  (int) record->status);
    } else if (task->completed_by > 0 &&
               (record->attempt != task->completed_by ||
                !result_fits (task, buf_bytes (record->result), buf_length (record->result)))) {
        sim_fail (world, "I4: task %u: attempt %u completed it, stored is attempt %u", index,
                  task->completed_by, record->attempt);
    }
}

void check_durable (world_t *world)
{
    if (world->model->broken[0] != '\0') {
        sim_fail (world, "%s", world->model->broken);
    }
    walk_t *walks = calloc (MODEL_ROWS_MAX, sizeof *walks);
    for (size_t k = 0; k < MODEL_NAMESPACES; k++) {
        const model_log_t *log = &world->model->durable.logs[k];
        for (size_t i = 0; i < log->events_count; i++) {
            if (log->events[i]->subject != TMQ_SUBJECT_NONE) {
                continue;
            }
            uint32_t index = model_index (log->events[i]->task_id.data);
            walk_event (world, &walks[index], log->events[i], index);
            if (index < MODEL_TASKS_MAX && strcmp (world->tasks[index].ns, log->ns) != 0) {
                sim_fail (world, "I9: task %u has an event in %s", index, log->ns);
            }
        }
    }
    check_rows (world, walks);
    free (walks);
    keeper_check_durable (world);
    parts_check_durable (world);
    teller_check_durable (world);
    depot_check_durable (world);
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        check_known (world, &world->tasks[i]);
    }
}

bool check_all_ended (const world_t *world)
{
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        const record_t *record = world->model->durable.rows[i].record;
        if (record != NULL && !is_terminal (record->status)) {
            return false;
        }
    }
    return true;
}
