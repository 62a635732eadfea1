/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who pauses queues and sessions and sets caps, and what must be true of every claim and acceptance
 * that becomes durable: by the settings that are stored before it, and by the leases that are. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum {
    PAUSE_MS_MAX = 1500,
    SETTLED_MS = 5000, /* a connection so old has no forerunner whose words are still under way */
    CAP_MAX = 3,
    RATE_MS = 5000, /* one task in so long, where there is a rate */
    REST_MS = 10000 /* then all is done that is not held, and only an opened gate wakes a worker */
};

static const char *const queues[] = {"red", "green", "blue"};
static const char *const keys[] = {"", "k1", "k2", "k3"};
static const char *const sessions[] = {"", "s1", "s2", "s3"};

/* What tasks ask for. */

void warden_draw (rng_t *rng, known_t *task)
{
    task->key = (uint8_t) (rng_chance (rng, 400) ? 1 + rng_below (rng, 3) : 0);
    task->needs = rng_chance (rng, 150);
    task->session = (uint8_t) (rng_chance (rng, 400) ? 1 + rng_below (rng, 3) : 0);
}

void warden_fill (const known_t *task, Taskmq__Extra *extra)
{
    static Taskmq__Label label;
    static Taskmq__Label *needs[] = {&label};
    taskmq__label__init (&label);
    label.key = label.value = (char *) (uintptr_t) "strong";
    extra->fair_key = (char *) (uintptr_t) keys[task->key];
    extra->needs = needs;
    extra->n_needs = task->needs;
}

const char *warden_key (const known_t *task)
{
    return keys[task->key];
}

const char *warden_session (const known_t *task)
{
    return sessions[task->session];
}

/* The first worker of each namespace is strong, and every other one after them. */
bool warden_is_strong (const client_t *worker)
{
    uint32_t number = worker->index - worker->world->options.submitters;
    return number < 2 || number % 2 == 1;
}

/* Orders. */

typedef struct warden {
    uint32_t asked;     /* orders so far in the liveness phase */
    bool rested;        /* before them */
    int64_t cleaned_ms; /* when retention was applied last */
} warden_t;

static void warden_start (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (warden_t));
    }
}

static void pause (client_t *client, const char *queue, bool paused)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__QueuePause pause_op = TASKMQ__QUEUE_PAUSE__INIT;
    Taskmq__QueueResume resume_op = TASKMQ__QUEUE_RESUME__INIT;
    pause_op.queue = resume_op.queue = (char *) (uintptr_t) queue;
    request.op_case = paused ? TASKMQ__REQUEST__OP_QUEUE_PAUSE : TASKMQ__REQUEST__OP_QUEUE_RESUME;
    if (paused) {
        request.queue_pause = &pause_op;
    } else {
        request.queue_resume = &resume_op;
    }
    client_request (client, &request, NULL, 0);
}

static void cap (client_t *client, const char *queue, uint32_t running, uint32_t per_key, bool rate)
{
    static uint32_t fields[] = {TMQ_QUEUE_FIELD_MAX_RUNNING, TMQ_QUEUE_FIELD_MAX_PER_KEY,
                                TMQ_QUEUE_FIELD_RATE, TMQ_QUEUE_FIELD_RATE_MS};
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__QueueSet set_op = TASKMQ__QUEUE_SET__INIT;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    settings.max_running = running;
    settings.max_per_key = per_key;
    settings.rate = rate;
    settings.rate_ms = rate ? RATE_MS : 0;
    set_op.queue = (char *) (uintptr_t) queue;
    set_op.settings = &settings;
    set_op.fields = fields;
    set_op.n_fields = 4;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &set_op;
    client_request (client, &request, NULL, 0);
}

static void set_session (client_t *client, const char *name, tmq_session_status_t status)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__SessionStatus status_op = TASKMQ__SESSION_STATUS__INIT;
    status_op.name = (char *) (uintptr_t) name;
    status_op.status = status;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_STATUS;
    request.session_status = &status_op;
    client_request (client, &request, NULL, 0);
}

static void set_salience (client_t *client, const char *name, uint32_t salience)
{
    static uint32_t fields[] = {TMQ_SESSION_FIELD_SALIENCE};
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__SessionSet set_op = TASKMQ__SESSION_SET__INIT;
    set_op.name = (char *) (uintptr_t) name;
    set_op.salience = salience;
    set_op.fields = fields;
    set_op.n_fields = 1;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_SET;
    request.session_set = &set_op;
    client_request (client, &request, NULL, 0);
}

/* Mostly active; sometimes it holds its tasks, or takes none. */
static void order_session (client_t *client, rng_t *rng)
{
    static const tmq_session_status_t statuses[] = {
        TMQ_SESSION_STATUS_ACTIVE, TMQ_SESSION_STATUS_ACTIVE, TMQ_SESSION_STATUS_PAUSED,
        TMQ_SESSION_STATUS_PAUSED, TMQ_SESSION_STATUS_FROZEN, TMQ_SESSION_STATUS_COMPLETE};
    const char *name = sessions[1 + rng_below (rng, 3)];
    if (rng_chance (rng, 300)) {
        set_salience (client, name, 1 + rng_below (rng, TMQ_SALIENCE_MAX));
    } else {
        set_session (client, name, statuses[rng_below (rng, 6)]);
    }
}

static void warden_tick (client_t *client)
{
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    warden_t *warden = client->state;
    client->next_ms = world->mono_ms + rng_between (rng, 50, PAUSE_MS_MAX);
    if (client_open (client) > 0 || cleaner_order (client, &warden->cleaned_ms)) {
        return;
    }
    if (!world->faults && !warden->rested) {
        warden->rested = true;
        client->next_ms += rng_chance (rng, 300) ? REST_MS : 0;
        return;
    }
    if (!world->faults) { /* all may run: again and again, for a late word may undo it */
        uint32_t order = warden->asked++;
        if (order % 3 == 0) {
            pause (client, queues[order / 3 % 3], false);
        } else if (order % 3 == 1) {
            cap (client, queues[order / 3 % 3], 0, rng_below (rng, 2), false);
        } else {
            set_session (client, sessions[1 + order / 3 % 3], TMQ_SESSION_STATUS_ACTIVE);
        }
        return;
    }
    if (rng_chance (rng, 400)) {
        order_session (client, rng);
        return;
    }
    const char *queue = queues[rng_below (rng, 3)];
    if (rng_chance (rng, 600)) {
        pause (client, queue, rng_chance (rng, 400));
    } else {
        cap (client, queue, rng_below (rng, CAP_MAX + 1), rng_below (rng, CAP_MAX),
             rng_chance (rng, 200));
    }
}

/* What is stored of the queue; NULL: nothing is set. To be freed. */
static Taskmq__QueueSettings *settings_of (const model_side_t *side, const char *ns,
                                           const char *queue)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, ns);
    row_key_text (&key, queue);
    for (size_t i = 0; i < side->kind_rows.count; i++) {
        const row_t *row = &side->kind_rows.rows[i];
        if (row->kind == ROW_KIND_QUEUE && buf_length (row->key) == key.length &&
            memcmp (buf_bytes (row->key), key.bytes, key.length) == 0) {
            return taskmq__queue_settings__unpack (NULL, buf_length (row->body),
                                                   buf_bytes (row->body));
        }
    }
    return NULL;
}

/* What is stored of the session; NULL: nothing. To be freed. */
static Taskmq__Session *session_of (const model_side_t *side, const char *ns, const char *name)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, ns);
    row_key_text (&key, name);
    buf_t *wanted = buf_new (key.bytes, key.length);
    const row_t *row = row_list_find (&side->kind_rows, ROW_KIND_SESSION, wanted);
    buf_drop (wanted);
    return row == NULL
               ? NULL
               : taskmq__session__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
}

static void session_answered (client_t *client, const pending_t *pending,
                              const Taskmq__Reply *reply)
{
    world_t *world = client->world;
    if (reply->code == TMQ_NOT_FOUND && pending->op == TASKMQ__REQUEST__OP_SESSION_STATUS) {
        return;
    }
    if (reply->code != TMQ_OK || reply->session == NULL) {
        sim_fail (world, "an order about a session is answered %u: %s", reply->code, reply->text);
        return;
    }
    if (pending->sent_ms < client->linked_ms + SETTLED_MS) {
        return;
    }
    Taskmq__Session *stored = session_of (&world->model->durable, client->ns, reply->session->name);
    if (stored == NULL || stored->status != reply->session->status ||
        stored->salience != reply->session->salience) {
        sim_fail (world, "session %s is not stored as it was answered", reply->session->name);
    }
    if (stored != NULL) {
        taskmq__session__free_unpacked (stored, NULL);
    }
}

static void warden_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                          const uint8_t *body, size_t body_bytes)
{
    world_t *world = client->world;
    (void) body;
    (void) body_bytes;
    if (pending->op == TASKMQ__REQUEST__OP_CLEANUP && reply->code == TMQ_OK) {
        return;
    }
    if (pending->op == TASKMQ__REQUEST__OP_SESSION_STATUS ||
        pending->op == TASKMQ__REQUEST__OP_SESSION_SET) {
        session_answered (client, pending, reply);
        return;
    }
    if (reply->code != TMQ_OK) {
        sim_fail (world, "an order about a queue is answered %u: %s", reply->code, reply->text);
        return;
    }
    if (pending->sent_ms < client->linked_ms + SETTLED_MS) {
        return;
    }
    Taskmq__QueueSettings *stored =
        settings_of (&world->model->durable, client->ns, reply->queue->queue);
    bool paused = stored != NULL && stored->paused;
    if (pending->op != TASKMQ__REQUEST__OP_QUEUE_SET &&
        paused != (pending->op == TASKMQ__REQUEST__OP_QUEUE_PAUSE)) {
        sim_fail (world, "queue %s is not stored as it was answered", reply->queue->queue);
    }
    taskmq__queue_settings__free_unpacked (stored, NULL);
}

const actor_t warden_actor = {
    .name = "warden", .start = warden_start, .tick = warden_tick, .reply = warden_reply};

/* Claims. */

static uint32_t key_of (const record_t *record)
{
    uint32_t key = 0;
    Taskmq__Extra *extra =
        record->extra == NULL
            ? NULL
            : taskmq__extra__unpack (NULL, buf_length (record->extra), buf_bytes (record->extra));
    for (uint32_t i = 1; extra != NULL && i < 4; i++) {
        key = strcmp (extra->fair_key, keys[i]) == 0 ? i : key;
    }
    taskmq__extra__free_unpacked (extra, NULL);
    return key;
}

/* The task as it stands behind the batch. */
static const record_t *record_behind (const model_t *model, const batch_t *batch, uint32_t index)
{
    const record_t *record = model->durable.rows[index].record;
    for (size_t i = 0; i < batch->records_count; i++) {
        if (model_index (batch->records[i]->id.bytes) == index) {
            record = batch->records[i];
        }
    }
    return record;
}

static void judge_claim (world_t *world, const batch_t *batch, const record_t *claimed)
{
    const model_t *model = world->model;
    Taskmq__QueueSettings *settings = settings_of (&model->durable, claimed->ns, claimed->queue);
    if (settings == NULL) {
        return;
    }
    uint32_t key = key_of (claimed);
    uint32_t running = 0;
    uint32_t of_key = 0;
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        const record_t *record = record_behind (model, batch, i);
        if (record != NULL && record->leased && strcmp (record->ns, claimed->ns) == 0 &&
            strcmp (record->queue, claimed->queue) == 0) {
            running++;
            of_key += key > 0 && key_of (record) == key;
        }
    }
    if (settings->paused) {
        sim_fail (world, "a task of queue %s is given away while it is paused", claimed->queue);
    }
    if (settings->max_running > 0 && running > settings->max_running) {
        sim_fail (world, "%u tasks of queue %s are running, at most %u may", running,
                  claimed->queue, settings->max_running);
    }
    if (settings->max_per_key > 0 && of_key > settings->max_per_key) {
        sim_fail (world, "%u tasks of key %s in queue %s are running, at most %u may", of_key,
                  keys[key], claimed->queue, settings->max_per_key);
    }
    taskmq__queue_settings__free_unpacked (settings, NULL);
}

/* Of the namespace that has a warden. */
static uint32_t queue_number (const char *ns, const char *queue)
{
    uint32_t number = 0;
    while (number < 3 &&
           (strcmp (ns, model_namespaces[0]) != 0 || strcmp (queue, queues[number]) != 0)) {
        number++;
    }
    return number;
}

/* A bucket of one is full when the rate is set and when the broker starts; a little more, for the
 * broker is ahead of the disk. */
static void judge_rate (world_t *world, const record_t *claimed)
{
    uint32_t number = queue_number (claimed->ns, claimed->queue);
    if (number == 3 || world->rates[number].rate == 0) {
        return;
    }
    int64_t passed_ms = world->mono_ms - world->rates[number].since_ms;
    passed_ms += world->options.brokers > 1 ? passed_ms / 10 : 0; /* their clocks may be fast */
    uint32_t starts = broker_starts (world) - world->rates[number].starts;
    uint32_t most = 2 + starts + (uint32_t) (passed_ms / RATE_MS);
    if (++world->rates[number].claims > most) {
        sim_fail (world, "%u tasks of queue %s began in %lld ms, at most %u may",
                  world->rates[number].claims, claimed->queue, (long long) passed_ms, most);
    }
}

static void note_rate (world_t *world, const row_t *row)
{
    const char *ns = (const char *) buf_bytes (row->key);
    uint32_t number = queue_number (ns, ns + strlen (ns) + 1);
    Taskmq__QueueSettings *settings =
        row->gone
            ? NULL
            : taskmq__queue_settings__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
    uint32_t rate = settings == NULL ? 0 : settings->rate;
    if (number < 3 && world->rates[number].rate != rate) {
        world->rates[number].rate = rate;
        world->rates[number].since_ms = world->mono_ms;
        world->rates[number].claims = 0;
        world->rates[number].starts = broker_starts (world);
    }
    taskmq__queue_settings__free_unpacked (settings, NULL);
}

/* The batch has a row of the session: what was before it and what behind is not to be told. */
static bool changes_session (const batch_t *batch, const record_t *record)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, record->ns);
    row_key_text (&key, record->session);
    for (size_t i = 0; i < batch->rows_count; i++) {
        const row_t *row = &batch->rows[i];
        if (row->kind == ROW_KIND_SESSION && buf_length (row->key) == key.length &&
            memcmp (buf_bytes (row->key), key.bytes, key.length) == 0) {
            return true;
        }
    }
    return false;
}

/* S32. claimed: it was given to a worker; else it is new. */
static void judge_session (world_t *world, const batch_t *batch, const record_t *record,
                           bool claimed)
{
    if (record->session[0] == '\0' || changes_session (batch, record)) {
        return;
    }
    Taskmq__Session *session = session_of (&world->model->durable, record->ns, record->session);
    if (session == NULL) {
        sim_fail (world, "there is no session %s", record->session);
        return;
    }
    bool paused = session->status == TMQ_SESSION_STATUS_PAUSED;
    bool frozen = session->status == TMQ_SESSION_STATUS_FROZEN;
    bool complete = session->status == TMQ_SESSION_STATUS_COMPLETE;
    if (claimed && (paused || frozen)) {
        sim_fail (world, "a task of session %s is given away while it is paused", record->session);
    }
    if (!claimed && (frozen || complete)) {
        sim_fail (world, "session %s takes a task, and should take none", record->session);
    }
    taskmq__session__free_unpacked (session, NULL);
}

/* What was before it in the batch and what behind is not to be told. */
static bool changes_queues (world_t *world, const batch_t *batch)
{
    bool changes = false;
    for (size_t i = 0; i < batch->rows_count; i++) {
        if (batch->rows[i].kind == ROW_KIND_QUEUE) {
            note_rate (world, &batch->rows[i]);
            changes = true;
        }
    }
    return changes;
}

void warden_check_batch (world_t *world, const batch_t *batch)
{
    bool judged = !changes_queues (world, batch);
    for (size_t i = 0; i < batch->records_count && !world->failed; i++) {
        const record_t *record = batch->records[i];
        const record_t *before = world->model->durable.rows[model_index (record->id.bytes)].record;
        bool claimed = record->leased && (before == NULL || before->attempt != record->attempt);
        if (claimed && judged) {
            judge_claim (world, batch, record);
            judge_rate (world, record);
        }
        if (claimed || before == NULL) {
            judge_session (world, batch, record, claimed && before != NULL);
        }
    }
}
