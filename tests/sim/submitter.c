/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A submitter: new tasks one by one and in batches, the same again, other content under a known id,
 * idempotency keys, cancel, wait, get, result, list. It has no memory of its own: what it learns is
 * the checker's. */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "sim.h"

enum {
    OPEN_MAX = 8,
    TASKS_MAX = 220, /* of one run; keeps a seed under a fifth of a second */
    BATCH_MAX = 8,
    PAYLOAD_MAX = SIM_PAYLOAD_MAX,
    WAIT_IDS_MAX = 12,
    KEYS = 12,
    PAUSE_MS_MAX = 400
};

static const char *const queues[] = {"red", "green", "blue"};

/* New tasks. */

static void draw_limits (rng_t *rng, known_t *task)
{
    static const uint32_t leases[] = {1000, 2000, 5000, 0};
    task->lease_ms = leases[rng_below (rng, 4)];
    task->max_attempts = rng_chance (rng, 300) ? 1 + rng_below (rng, 4) : 0;
    task->priority = (uint8_t) rng_below (rng, 4);
    /* Some die young: waiting in the queue, or soon after their end. */
    task->ttl_ms = rng_chance (rng, 150) ? (uint64_t) rng_between (rng, 2000, 40000) : 0;
}

/* Some wait, some have a start deadline, and attempts that may not run for long. */
static void draw_times (world_t *world, known_t *task)
{
    static const uint32_t runtimes[] = {300, 1000, 3000};
    rng_t *rng = &world->rng;
    int64_t wall_ms = sim_wall_ms (world);
    /* With a clock that goes back a time of day is far away, and after a restart a delay is one. */
    bool waits = world->options.clock_leap == 0;
    if (waits && rng_chance (rng, 80)) {
        task->delay_ms = 1 + rng_below (rng, 8000);
    } else if (waits && rng_chance (rng, 80)) {
        task->not_before = wall_ms + rng_between (rng, -1000, 8000);
    }
    if (rng_chance (rng, 100)) {
        task->start_by = wall_ms + rng_between (rng, 0, 20000);
    }
    if (rng_chance (rng, 150)) {
        task->max_runtime_ms = runtimes[rng_below (rng, 3)];
    }
}

known_t *submitter_draw_task (client_t *client)
{
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    uint32_t index = world->tasks_count++;
    known_t *task = &world->tasks[index];
    uint8_t random[ID_RANDOM_BYTES];
    rng_fill (rng, random, sizeof random);
    id_make (&task->id, sim_wall_ms (world), random);
    for (int i = 0; i < 4; i++) {
        task->id.bytes[12 + i] = (uint8_t) (index >> (24 - 8 * i));
    }
    task->ns = client->ns;
    task->queue = queues[rng_below (rng, 3)];
    task->owner = strcmp (client->identity, "uid:1") == 0;
    task->payload_bytes = rng_chance (rng, 200) ? 0 : rng_below (rng, PAYLOAD_MAX);
    draw_limits (rng, task);
    draw_times (world, task);
    warden_draw (rng, task);
    if (rng_chance (rng, 80)) {
        char key = (char) ('a' + (int) rng_below (rng, KEYS));
        memcpy (task->dedup_key, "key-", 4);
        task->dedup_key[4] = key;
        /* One content per key, else most of them would only conflict. */
        task->payload_bytes = rng_chance (rng, 900) ? 40 : 41;
        task->content = 1000 + (uint32_t) key;
        task->queue = queues[0];
        task->session = 0; /* it is of the content, too */
    } else {
        task->content = index;
        task->lasting = cleaner_lasts (world, index);
    }
    if (task->lasting) {
        task->ttl_ms = 0;
        task->purging = true;
    }
    return task;
}

static void fill_spec (world_t *world, const known_t *task, bool other_content,
                       Taskmq__TaskSpec *spec, after_room_t *room)
{
    taskmq__task_spec__init (spec);
    Taskmq__Extra *extra = &room->extra;
    taskmq__extra__init (extra);
    extra->start_by = (uint64_t) task->start_by;
    extra->max_runtime_ms = task->max_runtime_ms;
    warden_fill (task, extra);
    parts_fill (world, task, extra);
    carrier_fill (task, other_content, room);
    if (taskmq__extra__get_packed_size (extra) > 0) {
        spec->extra = extra;
    }
    spec->delay_ms = task->delay_ms;
    spec->not_before = (uint64_t) task->not_before;
    spec->task_id.data = (uint8_t *) (uintptr_t) task->id.bytes;
    spec->task_id.len = 16;
    spec->queue = (char *) (uintptr_t) task->queue;
    spec->session = (char *) (uintptr_t) warden_session (task);
    spec->payload_bytes = task->payload_bytes;
    spec->dedup_key = (char *) (uintptr_t) task->dedup_key;
    spec->priority_plus_1 = task->priority + 1u;
    spec->ttl_ms = task->ttl_ms;
    spec->ttl_never = task->lasting;
    spec->max_attempts = task->max_attempts;
    spec->lease_ms = task->lease_ms;
    spec->n_labels = seeker_fill_labels (task, room);
    spec->labels = room->label_list;
    after_fill (world, task, room, spec);
}

/* What a submit was meant to show; kept beside the request. */
typedef struct intent {
    bool other_content;
    size_t count;
    known_t *tasks[BATCH_MAX];
} intent_t;

static void submit (client_t *client, intent_t *intent)
{
    Taskmq__Submit submit_op = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__TaskSpec specs[BATCH_MAX];
    Taskmq__TaskSpec *pointers[BATCH_MAX];
    after_room_t rooms[BATCH_MAX];
    uint8_t body[BATCH_MAX * (PAYLOAD_MAX + 1)];
    size_t body_bytes = 0;
    for (size_t i = 0; i < intent->count; i++) {
        known_t *task = intent->tasks[i];
        fill_spec (client->world, task, intent->other_content, &specs[i], &rooms[i]);
        pointers[i] = &specs[i];
        check_payload_fill (task, body + body_bytes);
        if (intent->other_content && task->blob > 0) {
            ; /* it names another blob */
        } else if (intent->other_content) {
            specs[i].payload_bytes++;
            body[body_bytes + task->payload_bytes] = '!';
        } else {
            task->submitted = true;
        }
        body_bytes += specs[i].payload_bytes;
    }
    submit_op.tasks = pointers;
    submit_op.n_tasks = intent->count;
    request.op_case = TASKMQ__REQUEST__OP_SUBMIT;
    request.submit = &submit_op;
    pending_t *pending = client_request (client, &request, body, body_bytes);
    pending->data = intent;
}

static void submit_new (client_t *client)
{
    intent_t *intent = calloc (1, sizeof *intent);
    intent->count =
        rng_chance (&client->world->rng, 600) ? 1 : 1 + rng_below (&client->world->rng, BATCH_MAX);
    for (size_t i = 0; i < intent->count; i++) {
        intent->tasks[i] = submitter_draw_task (client);
        after_draw (client, intent->tasks[i], intent->tasks, i);
        parts_draw (client, intent->tasks[i]);
        carrier_draw (client, intent->tasks[i]);
    }
    submit (client, intent);
}

/* Import: a task that waits, as it was elsewhere. It is new, or known: then nothing of it may
 * change, and with other content it must not be taken for it. */

/* Its times are those of now, so that the checker's rules of a submit hold for it. */
static size_t pack_imported (world_t *world, const known_t *task, bool other_content,
                             uint8_t out[1024])
{
    Taskmq__Task imported = TASKMQ__TASK__INIT;
    Taskmq__ImportedTask whole = TASKMQ__IMPORTED_TASK__INIT;
    after_room_t room;
    uint8_t payload[PAYLOAD_MAX + 1];
    uint64_t now_ms = (uint64_t) sim_wall_ms (world);
    check_payload_fill (task, payload);
    payload[task->payload_bytes] = '!';
    imported.queue = (char *) (uintptr_t) task->queue;
    imported.session = (char *) (uintptr_t) warden_session (task);
    imported.status = TMQ_STATUS_QUEUED;
    imported.priority = task->priority;
    imported.created_at = imported.updated_at = now_ms;
    imported.ttl_ms = task->ttl_ms == 0 ? TMQ_TTL_MS_DEFAULT : task->ttl_ms;
    imported.expires_at = now_ms + imported.ttl_ms;
    imported.max_attempts = task->max_attempts == 0 ? TMQ_MAX_ATTEMPTS_DEFAULT : task->max_attempts;
    imported.version = 1;
    imported.n_labels = seeker_fill_labels (task, &room);
    imported.labels = room.label_list;
    whole.task = &imported;
    whole.lease_ms = task->lease_ms;
    whole.payload.data = payload;
    whole.payload.len = task->payload_bytes + other_content;
    return taskmq__imported_task__pack (&whole, out);
}

/* What few tasks have of what is drawn here, an import cannot have, or tells otherwise. */
static bool is_plain (const known_t *task)
{
    return task->dedup_key[0] == '\0' && task->after_count == 0 && task->parent == 0 &&
           task->blob == 0 && task->delay_ms == 0 && task->not_before == 0 && task->start_by == 0;
}

static void import (client_t *client, known_t *task, bool other_content)
{
    world_t *world = client->world;
    Taskmq__Import import_op = TASKMQ__IMPORT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__TaskSpec spec;
    after_room_t room;
    uint8_t packed[1024];
    intent_t *intent = calloc (1, sizeof *intent);
    fill_spec (world, task, false, &spec, &room);
    import_op.task_id = spec.task_id;
    import_op.extra = spec.extra;
    import_op.bytes = (uint32_t) pack_imported (world, task, other_content, packed);
    intent->other_content = other_content;
    intent->count = 1;
    intent->tasks[0] = task;
    task->submitted = task->submitted || !other_content;
    request.op_case = TASKMQ__REQUEST__OP_IMPORT;
    request.import = &import_op;
    client_request (client, &request, packed, import_op.bytes)->data = intent;
}

static void import_some (client_t *client)
{
    world_t *world = client->world;
    if (world->tasks_count + BATCH_MAX < TASKS_MAX && rng_chance (&world->rng, 600)) {
        known_t *task = submitter_draw_task (client);
        task->delay_ms = task->max_runtime_ms = 0;
        task->not_before = task->start_by = 0;
        if (is_plain (task)) {
            import (client, task, false);
        }
        return;
    }
    known_t *task = submitter_draw_known (client);
    bool mine = task != NULL && task->owner == (strcmp (client->identity, "uid:1") == 0);
    if (mine && is_plain (task)) {
        import (client, task, task->accepted && rng_chance (&world->rng, 500));
    }
}

/* Known tasks. */

known_t *submitter_draw_known (client_t *client)
{
    world_t *world = client->world;
    for (int tries = 0; tries < 8 && world->tasks_count > 0; tries++) {
        /* Mostly young ones: there more happens. */
        uint32_t window =
            rng_chance (&world->rng, 700) && world->tasks_count > 20 ? 20 : world->tasks_count;
        known_t *task = &world->tasks[world->tasks_count - 1 - rng_below (&world->rng, window)];
        if (task->submitted && strcmp (task->ns, client->ns) == 0) {
            return task;
        }
    }
    return NULL;
}

static void submit_again (client_t *client, bool other_content)
{
    known_t *task = submitter_draw_known (client);
    bool mine = task != NULL && task->owner == (strcmp (client->identity, "uid:1") == 0);
    if (!mine || (other_content && (!task->accepted || task->dedup_key[0] != '\0'))) {
        return;
    }
    intent_t *intent = calloc (1, sizeof *intent);
    intent->other_content = other_content;
    intent->count = 1;
    intent->tasks[0] = task;
    submit (client, intent);
}

static void ask (client_t *client, Taskmq__Request__OpCase op)
{
    known_t *task = submitter_draw_known (client);
    if (task == NULL) {
        return;
    }
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Get get = TASKMQ__GET__INIT;
    Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
    request.op_case = op;
    get.task_id.data = cancel.task_id.data = task->id.bytes;
    get.task_id.len = cancel.task_id.len = 16;
    if (op == TASKMQ__REQUEST__OP_CANCEL) {
        request.cancel = &cancel;
    } else {
        request.get = &get; /* get, result and payload share the message */
    }
    pending_t *pending = client_request (client, &request, NULL, 0);
    intent_t *intent = calloc (1, sizeof *intent);
    intent->count = 1;
    intent->tasks[0] = task;
    pending->data = intent;
    pending->context = check_mark (task);
}

static void wait_for_some (client_t *client)
{
    Taskmq__Wait wait_op = TASKMQ__WAIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    ProtobufCBinaryData ids[WAIT_IDS_MAX] = {{0}};
    size_t wanted = 1 + rng_below (&client->world->rng, WAIT_IDS_MAX);
    for (size_t i = 0; i < wanted; i++) {
        known_t *task = submitter_draw_known (client);
        bool twice = task == NULL;
        for (size_t k = 0; !twice && k < wait_op.n_task_ids; k++) {
            twice = ids[k].data == task->id.bytes;
        }
        if (!twice) {
            ids[wait_op.n_task_ids].data = task->id.bytes;
            ids[wait_op.n_task_ids++].len = 16;
        }
    }
    if (wait_op.n_task_ids > 0) {
        wait_op.task_ids = ids;
        request.op_case = TASKMQ__REQUEST__OP_WAIT;
        request.wait = &wait_op;
        client_request (client, &request, NULL, 0);
    }
}

static void list_some (client_t *client)
{
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    list.limit = 1 + rng_below (&client->world->rng, 40);
    request.op_case = TASKMQ__REQUEST__OP_LIST;
    request.list = &list;
    client_request (client, &request, NULL, 0);
}

/* The actor. */

static void submitter_tick (client_t *client)
{
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    client->next_ms = world->mono_ms + rng_between (rng, 1, PAUSE_MS_MAX);
    if (!world->faults || client_open (client) >= OPEN_MAX) {
        return;
    }
    if (reach_is_away (world) && rng_chance (rng, 600)) {
        ask (client, TASKMQ__REQUEST__OP_GET); /* memory does not have all of them */
        return;
    }
    uint32_t dice = rng_below (rng, 100);
    if (dice < 36) {
        if (world->tasks_count + BATCH_MAX < TASKS_MAX) {
            submit_new (client);
        }
    } else if (dice < 40) {
        import_some (client);
    } else if (dice < 46) {
        submit_again (client, false);
    } else if (dice < 50) {
        submit_again (client, true);
    } else if (dice < 60) {
        ask (client, TASKMQ__REQUEST__OP_CANCEL);
    } else if (dice < 70) {
        wait_for_some (client);
    } else if (dice < 80) {
        ask (client, TASKMQ__REQUEST__OP_GET);
    } else if (dice < 88) {
        ask (client, TASKMQ__REQUEST__OP_RESULT);
    } else if (dice < 90) {
        ask (client, TASKMQ__REQUEST__OP_PAYLOAD);
    } else if (dice < 97) {
        question_answer (client);
    } else {
        list_some (client);
    }
}

static void judge_other_content (client_t *client, const known_t *task, uint32_t code)
{
    if (code != TMQ_CONFLICT && code != TMQ_EXPIRED && code != TMQ_PURGED &&
        code != TMQ_OVERLOADED && code != TMQ_STORE_FULL && code != TMQ_LIMIT &&
        code != TMQ_UNAVAILABLE) {
        sim_fail (client->world, "I6: other content under the id of task %u is answered %u",
                  model_index (task->id.bytes), code);
    }
}

/* As of a submit of one task; what is wrong with it is said of the request. */
static void imported (client_t *client, const intent_t *intent, const Taskmq__Reply *reply)
{
    Taskmq__SubmittedItem item = TASKMQ__SUBMITTED_ITEM__INIT;
    known_t *task = intent->tasks[0];
    if (reply->code == TMQ_OK && (reply->submitted == NULL || reply->submitted->n_items != 1)) {
        sim_fail (client->world, "the import of a task is answered without it");
        return;
    }
    item.code = reply->code;
    item.text = reply->text;
    if (reply->code == TMQ_OK) {
        item = *reply->submitted->items[0];
    }
    if (intent->other_content) {
        judge_other_content (client, task, item.code);
    } else {
        check_submitted (client->world, task, &item);
    }
}

static void submitted (client_t *client, const intent_t *intent, const Taskmq__Reply *reply)
{
    if (reply->code != TMQ_OK || reply->submitted == NULL ||
        reply->submitted->n_items != intent->count) {
        sim_fail (client->world, "submit of %zu: code %u %s", intent->count, reply->code,
                  reply->text);
        return;
    }
    for (size_t i = 0; i < intent->count; i++) {
        known_t *task = intent->tasks[i];
        const Taskmq__SubmittedItem *item = reply->submitted->items[i];
        if (!intent->other_content) {
            check_submitted (client->world, task, item);
        } else {
            judge_other_content (client, task, item->code);
        }
    }
}

static void listed (client_t *client, const Taskmq__Reply *reply)
{
    if (reply->code != TMQ_OK || reply->page == NULL) {
        sim_fail (client->world, "list: code %u %s", reply->code, reply->text);
        return;
    }
    for (size_t i = 0; i < reply->page->n_tasks; i++) {
        const Taskmq__Task *task = reply->page->tasks[i];
        if (strcmp (task->namespace_, client->ns) != 0) {
            sim_fail (client->world, "I9: a list of %s shows a task of %s", client->ns,
                      task->namespace_);
        }
    }
}

static void submitter_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                             const uint8_t *body, size_t body_bytes)
{
    const intent_t *intent = pending->data;
    (void) body_bytes;
    switch (pending->op) {
    case TASKMQ__REQUEST__OP_SUBMIT: submitted (client, intent, reply); break;
    case TASKMQ__REQUEST__OP_IMPORT: imported (client, intent, reply); break;
    case TASKMQ__REQUEST__OP_CANCEL:
        check_cancelled (client->world, intent->tasks[0], reply);
        break;
    case TASKMQ__REQUEST__OP_WAIT:
        for (size_t i = 0; reply->waited != NULL && i < reply->waited->n_items; i++) {
            check_waited (client->world, reply->waited->items[i], client->ns);
        }
        break;
    case TASKMQ__REQUEST__OP_LIST: listed (client, reply); break;
    case TASKMQ__REQUEST__OP_ANSWER: question_answered (client->world, pending, reply); break;
    case TASKMQ__REQUEST__OP_GET:
    case TASKMQ__REQUEST__OP_RESULT:
        check_read (client->world, intent->tasks[0], reply, body, pending->context);
        break;
    default: /* a payload: the record without the check of its result */
        check_read (client->world, intent->tasks[0], reply, NULL, pending->context);
        break;
    }
}

const actor_t submitter_actor = {
    .name = "submitter", .tick = submitter_tick, .reply = submitter_reply};

/* The auditor: reads everything back at the end. */

typedef struct audit {
    uint32_t next;
    uint32_t answered;
} audit_t;

static void auditor_start (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (audit_t));
    }
}

static void auditor_tick (client_t *client)
{
    audit_t *audit = client->state;
    world_t *world = client->world;
    client->next_ms = world->mono_ms + 1;
    while (client_open (client) < OPEN_MAX && audit->next < world->tasks_count) {
        known_t *task = &world->tasks[audit->next++];
        if (!task->submitted || strcmp (task->ns, client->ns) != 0) {
            audit->answered++;
            continue;
        }
        Taskmq__Get get = TASKMQ__GET__INIT;
        Taskmq__Request request = TASKMQ__REQUEST__INIT;
        get.task_id.data = task->id.bytes;
        get.task_id.len = 16;
        request.op_case = TASKMQ__REQUEST__OP_GET;
        request.get = &get;
        pending_t *pending = client_request (client, &request, NULL, 0);
        pending->data = calloc (1, sizeof (intent_t));
        ((intent_t *) pending->data)->tasks[0] = task;
        pending->context = check_mark (task);
    }
}

static void auditor_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                           const uint8_t *body, size_t body_bytes)
{
    const intent_t *intent = pending->data;
    audit_t *audit = client->state;
    (void) body_bytes;
    audit->answered++;
    known_t *task = intent->tasks[0];
    check_read (client->world, task, reply, body, pending->context);
}

bool auditor_done (const client_t *client)
{
    const audit_t *audit = client->state;
    return audit != NULL && audit->answered == client->world->tasks_count;
}

const actor_t auditor_actor = {
    .name = "auditor", .start = auditor_start, .tick = auditor_tick, .reply = auditor_reply};
