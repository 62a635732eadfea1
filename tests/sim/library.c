/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A program that uses libtaskmq: the library's decision core on the simulated network. It submits,
 * waits, cancels, works and follows the events, all through one client, and it may crash: then only
 * its stored cursor is left.
 *
 * Other than the hand-made clients it sees no lost or repeated messages within a link: the core
 * stands on ZeroMQ, which delivers or disconnects. */
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "ids.h"
#include "sim.h"

enum {
    HELD_MAX = 4,
    OPEN_MAX = 6,
    TASKS_MAX = 260, /* of one run, with those of the submitters */
    RESULT_MAX = 100,
    PAUSE_MS_MAX = 300
};

typedef struct held {
    tmq_assignment_t *assignment;
    known_t *task;
    int64_t act_ms;
    bool ending;
    uint8_t result_seed;
    uint32_t result_bytes;
} held_t;

typedef struct program {
    core_t *core; /* NULL: not running */
    uint64_t connection;
    core_subscription_t *subscription;
    core_worker_t *worker;
    held_t held[HELD_MAX];
    size_t held_count;
    size_t open;     /* operations without an answer */
    uint64_t taken;  /* newest event that the application took */
    char stored[48]; /* cursor, survives a crash; "": none yet */
    uint64_t stored_taken;
    bool mirrors;  /* begins with a snapshot */
    bool mirrored; /* the snapshot is complete */
    mirror_t mirror;
    mirror_t stored_mirror;
} program_t;

/* Which operation an answer belongs to. */
typedef struct operation {
    known_t *task;
    uint64_t mark;    /* what was known when it was started */
    uint32_t attempt; /* whose end it is; 0: of none */
} operation_t;

static core_target_t target_for (program_t *program, known_t *task)
{
    operation_t *operation = calloc (1, sizeof *operation);
    operation->task = task;
    operation->mark = check_mark (task);
    program->open++;
    return (core_target_t){.user = operation};
}

static int64_t draw_deadline (world_t *world)
{
    return sim_fault (world, 200) ? world->mono_ms + rng_between (&world->rng, 0, 4000)
                                  : CORE_NEVER;
}

/* Life. */

static void begin (client_t *client)
{
    world_t *world = client->world;
    program_t *program = client->state;
    static const char *const endpoints[] = {"sim://a", "sim://b", "sim://c"};
    static const char *const queues[] = {"red", "green", "blue"};
    core_config_t config = {.ns = client->ns,
                            .name = "simulated",
                            .endpoints = endpoints,
                            .endpoints_count = world->options.brokers,
                            .requests_max = 1000,
                            .request_bytes_max = 1 << 20,
                            .completions_max = 1000,
                            .reads_max = 4,
                            .reconnect_ms_min = 100,
                            .reconnect_ms_max = 2000};
    rng_fill (&world->rng, config.seed, sizeof config.seed);
    program->core = core_new (&config, world->mono_ms);
    program->connection = 0;
    program->open = 0;
    program->held_count = 0;

    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.cursor = program->stored[0] != '\0' ? program->stored : program->mirrors ? NULL : "0";
    options.snapshot = program->mirrors && program->stored[0] == '\0';
    program->mirrored = !options.snapshot;
    program->mirror = program->stored_mirror;
    options.buffer_bytes_max = 4096;
    program->taken = program->stored_taken;
    tmq_worker_options_t worker_options;
    tmq_worker_options_init (&worker_options);
    worker_options.name = "library";
    worker_options.queues = queues;
    worker_options.queues_count = 3;
    worker_options.capacity = HELD_MAX;
    if (core_subscription_new (&program->subscription, program->core, &options, NULL, NULL) != 0 ||
        core_worker_new (&program->worker, program->core, &worker_options, NULL, NULL) != 0) {
        sim_fail (world, "library: no subscription or worker");
    }
    client->running = true;
    client->status = CLIENT_LINKED;
    client->next_ms = world->mono_ms;
}

static void forget_answers (program_t *program)
{
    core_answer_t *answer;
    core_close (program->core);
    while ((answer = core_answer_next (program->core)) != NULL) {
        free (answer->completion.user);
        core_answer_taken (program->core, answer);
        core_answer_free (answer);
    }
}

static void library_stop (client_t *client)
{
    program_t *program = client->state;
    if (program == NULL || program->core == NULL) {
        return;
    }
    for (size_t i = 0; i < program->held_count; i++) {
        tmq_assignment_free (program->held[i].assignment);
    }
    forget_answers (program);
    core_subscription_free (program->subscription);
    core_worker_free (program->worker);
    core_free (program->core);
    program->core = NULL;
}

/* Operations. */

static void submit_one (client_t *client)
{
    program_t *program = client->state;
    world_t *world = client->world;
    known_t *task = submitter_draw_task (client);
    static const tmq_label_t STRONG = {"strong", "strong"};
    uint8_t payload[512];
    tmq_submit_t submit;
    core_request_t *request = NULL;
    check_payload_fill (task, payload);
    task->submitted = true;
    tmq_submit_init (&submit);
    submit.id = task->id;
    submit.queue = task->queue;
    submit.payload = payload;
    submit.payload_bytes = task->payload_bytes;
    submit.dedup_key = task->dedup_key;
    submit.priority = task->priority;
    submit.ttl_ms = task->ttl_ms;
    submit.max_attempts = task->max_attempts;
    submit.lease_ms = task->lease_ms;
    submit.delay_ms = task->delay_ms;
    submit.not_before = (uint64_t) task->not_before;
    submit.start_by = (uint64_t) task->start_by;
    submit.max_runtime_ms = task->max_runtime_ms;
    submit.fair_key = warden_key (task);
    submit.session = warden_session (task);
    submit.needs = &STRONG;
    submit.needs_count = task->needs;
    if (core_request_submit (&request, &submit, &task->id, NULL) != TMQ_OK ||
        core_start (program->core, request, target_for (program, task), draw_deadline (world),
                    world->mono_ms, NULL) != TMQ_OK) {
        sim_fail (world, "library: a submit cannot be started");
    }
}

static void ask_about (client_t *client, tmq_op_t op)
{
    program_t *program = client->state;
    world_t *world = client->world;
    known_t *task = submitter_draw_known (client);
    core_request_t *request = NULL;
    int code;
    if (task == NULL) {
        return;
    }
    core_target_t target = target_for (program, task);
    int64_t deadline = draw_deadline (world);
    if (op == TMQ_OP_WAIT) {
        code = core_wait (program->core, &task->id, 1, target, deadline, world->mono_ms, NULL);
    } else {
        code = op == TMQ_OP_CANCEL ? core_request_cancel (&request, &task->id, "", NULL)
                                   : core_request_get (&request, op, &task->id, NULL);
        if (code == TMQ_OK) {
            code = core_start (program->core, request, target, deadline, world->mono_ms, NULL);
        }
    }
    if (code != TMQ_OK) {
        sim_fail (world, "library: operation %d cannot be started: %d", (int) op, code);
    }
}

static void act_by_chance (client_t *client)
{
    program_t *program = client->state;
    world_t *world = client->world;
    client->next_ms = world->mono_ms + rng_between (&world->rng, 1, PAUSE_MS_MAX);
    if (!world->faults || program->open >= OPEN_MAX) {
        return;
    }
    uint32_t dice = rng_below (&world->rng, 100);
    if (dice < 50 && world->tasks_count < TASKS_MAX) {
        submit_one (client);
    } else if (dice < 70) {
        ask_about (client, TMQ_OP_WAIT);
    } else if (dice < 85) {
        ask_about (client, TMQ_OP_GET);
    } else if (dice < 92) {
        ask_about (client, TMQ_OP_CANCEL);
    }
}

/* Answers. */

static void answer_submit (world_t *world, known_t *task, const tmq_completion_t *completion)
{
    Taskmq__SubmittedItem item = TASKMQ__SUBMITTED_ITEM__INIT;
    if (completion->code == TMQ_UNKNOWN || completion->code == TMQ_UNREACHABLE ||
        completion->code == TMQ_OVERLOADED || completion->code == TMQ_STORE_FULL ||
        completion->code == TMQ_UNAVAILABLE) {
        return;
    }
    if (completion->receipts_count == 1) {
        item.task_id.data = completion->receipts[0].id.bytes;
        item.task_id.len = 16;
        item.existing = completion->receipts[0].existing;
    }
    item.code = (uint32_t) completion->code;
    check_submitted (world, task, &item);
}

static void answer_wait (client_t *client, const tmq_completion_t *completion)
{
    Taskmq__WaitedItem item = TASKMQ__WAITED_ITEM__INIT;
    tmq_id_t id = completion->task_id;
    if (completion->code != TMQ_TIMEOUT && completion->code != TMQ_UNREACHABLE) {
        item.task_id.data = id.bytes;
        item.task_id.len = 16;
        item.code = (uint32_t) completion->code;
        item.status = completion->status;
        check_waited (client->world, &item, client->ns);
    }
}

static void answer_read (client_t *client, const operation_t *operation,
                         const tmq_completion_t *completion)
{
    world_t *world = client->world;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    Taskmq__Task found = TASKMQ__TASK__INIT;
    reply.code = (uint32_t) completion->code;
    if (completion->code >= TMQ_UNREACHABLE) {
        return; /* the library's own: nothing was learned */
    }
    if (completion->task != NULL) {
        const tmq_task_t *task = completion->task;
        found.task_id.data = (uint8_t *) (uintptr_t) task->id.bytes;
        found.task_id.len = 16;
        found.namespace_ = (char *) (uintptr_t) task->ns;
        found.status = task->status;
        found.attempt = task->attempt;
        found.version = task->version;
        found.body = (uint32_t) task->body_bytes;
        reply.task = &found;
        reply.body_case = TASKMQ__REPLY__BODY_TASK;
    }
    if (completion->op == TMQ_OP_CANCEL) {
        check_cancelled (world, operation->task, &reply);
    } else {
        check_read (world, operation->task, &reply,
                    completion->task != NULL ? completion->task->body : NULL, operation->mark);
    }
}

static void drop_held (program_t *program, size_t at)
{
    tmq_assignment_free (program->held[at].assignment);
    program->held[at] = program->held[--program->held_count];
}

static void answer_end (client_t *client, const operation_t *operation,
                        const tmq_completion_t *completion)
{
    program_t *program = client->state;
    world_t *world = client->world;
    for (size_t i = 0; i < program->held_count; i++) {
        held_t *held = &program->held[i];
        if (held->task != operation->task || held->assignment->attempt != operation->attempt) {
            continue;
        }
        if (completion->op == TMQ_OP_COMPLETE && completion->code == TMQ_OK) {
            check_completed (world, held->task, held->assignment->attempt, held->result_seed,
                             held->result_bytes);
        } else if (completion->op == TMQ_OP_COMPLETE && completion->code == TMQ_STALE_LEASE) {
            check_stale (world, held->task, held->assignment->attempt);
        }
        drop_held (program, i);
        return;
    }
}

static void take_answers (client_t *client)
{
    program_t *program = client->state;
    core_answer_t *answer;
    while ((answer = core_answer_next (program->core)) != NULL) {
        const tmq_completion_t *completion = &answer->completion;
        operation_t *operation = completion->user;
        switch (completion->op) {
        case TMQ_OP_SUBMIT: answer_submit (client->world, operation->task, completion); break;
        case TMQ_OP_WAIT: answer_wait (client, completion); break;
        case TMQ_OP_GET:
        case TMQ_OP_CANCEL: answer_read (client, operation, completion); break;
        default: answer_end (client, operation, completion); break;
        }
        program->open--;
        free (operation);
        core_answer_taken (program->core, answer);
        core_answer_free (answer);
    }
}

/* Events. */

static void take_event (client_t *client, const tmq_event_t *event)
{
    program_t *program = client->state;
    world_t *world = client->world;
    switch (event->item) {
    case TMQ_ITEM_EVENT:
        /* Behind a snapshot what it holds already is left out. */
        if (!program->mirrors || event->seq <= program->taken) {
            check_event (world, client->ns, program->taken, event);
        } else {
            check_event (world, client->ns, event->seq - 1, event);
        }
        program->taken = event->seq;
        check_told (world, client->ns, event->seq);
        mirror_take (world, &program->mirror, event->task_id.bytes, event->seq, event->status);
        break;
    case TMQ_ITEM_SNAPSHOT:
        mirror_take (world, &program->mirror, event->task->id.bytes, event->task->seq,
                     event->task->status);
        break;
    case TMQ_ITEM_SNAPSHOT_END: program->mirrored = true; break;
    case TMQ_ITEM_GAP: sim_fail (world, "I7: library: a gap though nothing was removed"); break;
    default: break;
    }
}

static void take_events (client_t *client)
{
    program_t *program = client->state;
    world_t *world = client->world;
    tmq_event_t *event = NULL;
    while (!sim_fault (world, 20) &&
           core_subscription_next (&event, program->subscription, NULL) == TMQ_OK) {
        take_event (client, event);
        tmq_event_free (event);
    }
    if (program->mirrored && rng_chance (&world->rng, 300) &&
        core_subscription_cursor (program->stored, program->subscription) == TMQ_OK) {
        program->stored_taken = program->taken;
        program->stored_mirror = program->mirror;
    }
}

/* Work. */

static void take_tasks (client_t *client)
{
    program_t *program = client->state;
    world_t *world = client->world;
    tmq_assignment_t *assignment = NULL;
    while (program->held_count < HELD_MAX &&
           core_worker_next (&assignment, program->worker, NULL) == TMQ_OK) {
        Taskmq__Assignment seen = TASKMQ__ASSIGNMENT__INIT;
        uint8_t no_secret[16] = {0};
        seen.task_id.data = assignment->task_id.bytes;
        seen.task_id.len = 16;
        seen.attempt = assignment->attempt;
        seen.queue = (char *) (uintptr_t) assignment->queue;
        seen.payload_bytes = (uint32_t) assignment->payload_bytes;
        seen.secret.data = no_secret;
        seen.secret.len = sizeof no_secret;
        Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
        extra.max_runtime_ms = assignment->max_runtime_ms;
        Taskmq__Blob blob = TASKMQ__BLOB__INIT;
        blob.hash.data = assignment->payload_blob.hash;
        blob.hash.len = sizeof assignment->payload_blob.hash;
        blob.bytes = assignment->payload_blob.bytes;
        extra.payload_blob = blob.bytes > 0 ? &blob : NULL;
        seen.extra = &extra;
        check_assigned (world, client->index, &seen, assignment->payload);
        program->held[program->held_count++] =
            (held_t){.assignment = assignment,
                     .task = check_find (world, &seen.task_id),
                     .act_ms = world->mono_ms + rng_between (&world->rng, 0, 2000),
                     .result_seed = (uint8_t) rng_next (&world->rng),
                     .result_bytes = rng_below (&world->rng, RESULT_MAX)};
        if (rng_chance (&world->rng, 700)) {
            core_worker_started (program->worker, assignment, NULL);
        }
    }
}

static void end_one (client_t *client, held_t *held)
{
    program_t *program = client->state;
    world_t *world = client->world;
    uint8_t result[RESULT_MAX];
    tmq_outcome_t outcome = {.result = result, .result_bytes = held->result_bytes};
    uint32_t dice = rng_below (&world->rng, 100);
    tmq_attempt_state_t state = core_worker_state (program->worker, held->assignment);
    tmq_op_t op = dice < 85 ? TMQ_OP_COMPLETE : dice < 93 ? TMQ_OP_FAIL : TMQ_OP_RELEASE;
    check_result_fill (held->result_seed, result, held->result_bytes);
    check_brought (held->task, held->assignment->attempt, held->result_seed, held->result_bytes);
    if (state == TMQ_ATTEMPT_CANCELLED) {
        op = TMQ_OP_CANCELLED;
    } else if (op == TMQ_OP_FAIL) {
        outcome = (tmq_outcome_t){.error_code = 3, .error_message = "no"};
    }
    held->ending = true;
    core_target_t target = target_for (program, held->task);
    ((operation_t *) target.user)->attempt = held->assignment->attempt;
    int code = core_worker_end (program->worker, op, held->assignment, &outcome, 100, target,
                                CORE_NEVER, world->mono_ms, NULL);
    if (code != TMQ_OK) {
        /* It is known already that the attempt is over. */
        free (target.user);
        program->open--;
        drop_held (program, (size_t) (held - program->held));
    }
}

static void work (client_t *client)
{
    program_t *program = client->state;
    take_tasks (client);
    for (size_t i = program->held_count; i-- > 0;) {
        held_t *held = &program->held[i];
        if (!held->ending && client->world->mono_ms >= held->act_ms) {
            end_one (client, held);
        }
    }
}

/* The driver. */

static void follow_link (client_t *client)
{
    program_t *program = client->state;
    world_t *world = client->world;
    core_wanted_t wanted = core_link_wanted (program->core);
    if (wanted.connection != program->connection) {
        if (client->link != NULL) {
            wire_close (client->link);
            client->link = NULL;
        }
        program->connection = wanted.connection;
        client->endpoint = (uint32_t) wanted.endpoint;
        if (wanted.connection != 0 && world->brokers[client->endpoint].engine != NULL) {
            client->link = wire_open (client);
            core_link_greeted (program->core, program->connection, world->mono_ms);
        }
    }
    if (program->connection != 0 && (client->link == NULL || !client->link->open_at_client)) {
        client->link = NULL;
        core_link_failed (program->core, program->connection, TMQ_UNREACHABLE, "cut",
                          world->mono_ms);
    }
}

static uint8_t *copy_of (const uint8_t *bytes, size_t length)
{
    uint8_t *out = length > 0 ? malloc (length) : NULL;
    if (out != NULL) {
        memcpy (out, bytes, length);
    }
    return out;
}

static void exchange (client_t *client)
{
    program_t *program = client->state;
    world_t *world = client->world;
    packet_t *packet;
    core_message_t message;
    while (client->link != NULL && (packet = wire_receive_down (client->link)) != NULL) {
        core_receive (program->core, packet->envelope, packet->envelope_bytes, packet->body,
                      packet->body_bytes, world->mono_ms);
        packet_free (packet);
    }
    follow_link (client);
    core_tick (program->core, world->mono_ms);
    take_answers (client);
    take_events (client);
    work (client);
    while (client->link != NULL && core_output (program->core, &message, world->mono_ms)) {
        wire_send_up (client->link, copy_of (message.envelope, message.envelope_bytes),
                      message.envelope_bytes, copy_of (message.body, message.body_bytes),
                      message.body_bytes, false);
    }
}

static void library_step (client_t *client)
{
    world_t *world = client->world;
    if (client->state == NULL) {
        program_t *fresh = calloc (1, sizeof *fresh);
        fresh->mirrors = rng_chance (&world->rng, 500);
        client->state = fresh;
    }
    if (client->status == CLIENT_DOWN) {
        if (world->mono_ms < client->wake_ms) {
            return;
        }
        begin (client);
    }
    follow_link (client);
    exchange (client);
    if (world->mono_ms >= client->next_ms) {
        act_by_chance (client);
    }
}

static int64_t library_next_ms (const client_t *client)
{
    const program_t *program = client->state;
    if (client->status == CLIENT_DOWN || program == NULL) {
        return client->wake_ms;
    }
    int64_t next = client->next_ms;
    int64_t due = core_next_due (program->core);
    next = due < next ? due : next;
    for (size_t i = 0; i < program->held_count; i++) {
        const held_t *held = &program->held[i];
        next = !held->ending && held->act_ms < next ? held->act_ms : next;
    }
    return next;
}

/* The newest event that the application knows of, by its cursor: GENERATION-SEQUENCE. */
static uint64_t known_upto (const program_t *program)
{
    char cursor[48];
    if (core_subscription_cursor (cursor, program->subscription) != TMQ_OK) {
        return 0;
    }
    return strtoull (strchr (cursor, '-') + 1, NULL, 10);
}

bool library_at_rest (const client_t *client)
{
    const program_t *program = client->state;
    return program != NULL && program->core != NULL && program->open == 0 && program->mirrored &&
           known_upto (program) >= check_newest (client->world, client->ns);
}

void library_check (client_t *client)
{
    const program_t *program = client->state;
    mirror_check (client->world, &program->mirror, client, NULL);
}

const actor_t library_actor = {
    .name = "library", .stop = library_stop, .step = library_step, .next_ms = library_next_ms};
