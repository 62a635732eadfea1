/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The broker's loop around the engine, as the server drives it, with the threads' work turned into
 * things that happen later. It may crash between any two steps: before a commit, within it
 * (disk.c), after it, before its outputs are released, in the middle of them, before and after a
 * write-back. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cluster.h"
#include "core/base/planted.h"
#include "request_kinds.h"

enum {
    DRAIN_MESSAGES_MAX = 24,
    SWEEP_ITEMS = 50,
    FULL_MS_MAX = 3000,
    READ_MS_MAX = 20,
    FAR_READ_MS_MAX = 100, /* from a database */
    SEARCH_MS_MAX = 300
};

now_t broker_now (const world_t *world)
{
    return (now_t){host_ms (world, world->mono_ms), host_wall_ms (world)};
}

/* Start and end. */

/* The reads themselves belong to the engine, which frees what it gave away. */
static void forget_reads (broker_t *broker)
{
    while (broker->reads != NULL) {
        flying_read_t *flying = broker->reads;
        broker->reads = flying->next;
        free (flying);
    }
}

/* The engine knows no links any more, so no end of one gives anything back. */
static void links_forgotten (world_t *world)
{
    check_gone_forget_all (world);
    for (wire_t *link = world->links; link != NULL; link = link->next) {
        link->registered = link->registered && link->broker != world->broker;
    }
}

void broker_commit (world_t *world, batch_t *batch)
{
    check_batch (world, batch);
    warden_check_batch (world, batch);
    scheduler_check_batch (world, batch);
    model_commit (world->model, batch);
    seeker_committed (world, batch);
}

/* What a process has in its memory alone. */
static void forget_memory (world_t *world)
{
    broker_t *broker = world->broker;
    links_forgotten (world);
    engine_free (broker->engine);
    broker->engine = NULL;
    forget_reads (broker);
    logs_forget (&broker->logs);
}

void broker_gone (world_t *world)
{
    broker_t *broker = world->broker;
    if (broker->engine == NULL) {
        return;
    }
    forget_memory (world);
    batch_free (broker->batch);
    broker->batch = NULL;
    broker->durable = 0;
    broker->sends = false;
    depot_crash (world);
    network_broker_gone (world);
}

void broker_crash (world_t *world)
{
    broker_t *broker = world->broker;
    if (broker->host != NULL) {
        host_end (world, "crashes");
        return;
    }
    if (broker->engine == NULL) {
        return;
    }
    sim_log (world, "broker crashes");
    broker->crashes++;
    forget_memory (world);
    batch_t *batch = broker->batch;
    broker->batch = NULL;
    broker->reach.landed = 0;
    if (batch != NULL && reach_is_away (world) && broker->reach.doubt == DOUBT_LOST) {
        batch_free (batch); /* nothing of it came, and nobody will send it again */
        batch = NULL;
    }
    if (disk_crash (world, batch)) {
        broker_commit (world, batch);
    }
    ledger_crash (world);
    depot_crash (world);
    network_broker_gone (world);
    broker->start_ms = world->mono_ms + rng_between (&world->rng, 1, 4000);
}

/* True if the broker crashed here, or stands still. */
static bool crash_point (world_t *world)
{
    if (world->broker->host != NULL) {
        return host_point (world);
    }
    if (sim_fault (world, world->options.broker_crash)) {
        broker_crash (world);
        return true;
    }
    return false;
}

static void free_one (world_t *world)
{
    broker_t *broker = world->broker;
    forget_reads (broker);
    if (broker->engine != NULL) {
        logs_forget (&broker->logs);
    }
    depot_crash (world);
    engine_free (broker->engine);
    broker->engine = NULL;
    batch_free (broker->batch);
    broker->batch = NULL;
    arena_free (broker->arena);
}

void broker_free (world_t *world)
{
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        world->broker = &world->brokers[i];
        free_one (world);
    }
    world->broker = &world->brokers[0];
    if (world->database == NULL) {
        disk_free (world);
    }
    ledger_free (world);
}

uint32_t broker_starts (const world_t *world)
{
    uint32_t starts = 0;
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        starts += world->brokers[i].crashes + world->brokers[i].resets;
    }
    return starts;
}

/* The committer and the store thread. */

void broker_drop (world_t *world)
{
    broker_t *broker = world->broker;
    if (broker->engine == NULL) {
        return;
    }
    broker->resets++;
    links_forgotten (world);
    batch_free (broker->batch);
    broker->batch = NULL;
    broker->durable = 0;
    broker->sends = false;
    engine_reset (broker->engine);
}

static void restore_full (world_t *world, const boot_t *boot)
{
    broker_t *broker = world->broker;
    broker_restore (world, boot);
    engine_set_full (broker->engine, true);
    broker->full_until = world->mono_ms + rng_between (&world->rng, 1, FULL_MS_MAX);
}

void broker_start_over (world_t *world)
{
    boot_t boot;
    model_boot (world->model, &boot);
    boot.epoch = world->broker->host->epoch;
    boot.generation = world->broker->host->generation;
    restore_full (world, &boot);
}

static void commit_failed (world_t *world)
{
    sim_log (world, "commit %llu finds no space", (unsigned long long) world->broker->batch->no);
    broker_drop (world);
    boot_t boot;
    ledger_write (world);
    model_reset (world->model, &boot);
    disk_written (world);
    restore_full (world, &boot);
}

/* The commit in doubt becomes durable, and nobody hears of it. */
static void land (world_t *world)
{
    broker_t *broker = world->broker;
    uint64_t no = broker->batch->no;
    if (!disk_commit (world, broker->batch)) {
        broker->reach.doubt = DOUBT_LOST;
        return;
    }
    if (world->options.planted_bug == ENGINE_BUG_UNKNOWN_FAILED) {
        model_commit_unseen (world->model, broker->batch);
    } else {
        broker_commit (world, broker->batch);
        broker->batch = NULL;
    }
    broker->reach.landed = no;
}

/* The store is back and finds out whether the commit in doubt had landed: then it is told, else it
 * is made once more. True: there is nothing left to be committed. */
static bool settle (world_t *world)
{
    broker_t *broker = world->broker;
    bool landed = broker->reach.landed != 0;
    unsigned bug = world->options.planted_bug;
    if (landed) {
        broker->durable = broker->reach.landed;
        broker->durable_due_ms = world->mono_ms;
    }
    broker->reach.landed = 0;
    broker->reach.doubt = DOUBT_NONE;
    if (landed && bug == ENGINE_BUG_UNKNOWN_FAILED) {
        commit_failed (world);
    } else if (!landed && bug == ENGINE_BUG_UNKNOWN_DONE) {
        broker->durable = broker->batch->no;
        batch_free (broker->batch);
        broker->batch = NULL;
    }
    return broker->batch == NULL;
}

static void commit_to_disk (world_t *world)
{
    broker_t *broker = world->broker;
    if (reach_lands (world) && broker->reach.landed == 0) {
        land (world);
    }
    bool waits = reach_is_away (world) || (reach_settles (world) && settle (world));
    if (!waits && broker->batch != NULL && world->mono_ms >= broker->commit_due_ms) {
        uint64_t no = broker->batch->no;
        if (!disk_commit (world, broker->batch)) {
            commit_failed (world);
            return;
        }
        broker_commit (world, broker->batch);
        broker->batch = NULL;
        broker->durable = no;
        broker->durable_due_ms = world->mono_ms + rng_between (&world->rng, 0, 2);
        if (broker->write_due_ms == SIM_END_OF_TIME) {
            broker->write_due_ms =
                world->mono_ms + rng_between (&world->rng, 0, world->options.write_ms_max);
        }
    }
}

static void committer (world_t *world)
{
    broker_t *broker = world->broker;
    if (broker->host == NULL) {
        commit_to_disk (world);
    }
    if (broker->full_until > 0 && world->mono_ms >= broker->full_until) {
        broker->full_until = 0;
        engine_set_full (broker->engine, false);
    }
    if (broker->durable > 0 && world->mono_ms >= broker->durable_due_ms) {
        engine_durable (broker->engine, broker->durable, broker_now (world));
        seeker_heard (world, broker->durable);
        broker->durable = 0;
        broker->tick_wanted = true;
    }
}

static bool has_unwritten (const world_t *world)
{
    const host_t *host = world->broker->host;
    return host == NULL ? world->model->journal_count > 0 : host->behind.count > 0;
}

static void store_thread (world_t *world)
{
    broker_t *broker = world->broker;
    bool away = reach_is_away (world);
    if (broker->host == NULL && !away && world->mono_ms >= broker->write_due_ms) {
        ledger_write (world);
        model_write_back (world->model, world->model->committed);
        disk_written (world);
        ledger_check_written (world);
        broker->write_due_ms = SIM_END_OF_TIME;
    }
    /* The news travels separately, as it does between threads. */
    if (broker->written_told < world->model->written && rng_chance (&world->rng, 700)) {
        broker->written_told = world->model->written;
        engine_written (broker->engine, broker->written_told);
        broker->tick_wanted = true;
    }
    if (engine_wants_flush (broker->engine) && has_unwritten (world)) {
        int64_t due = world->mono_ms + rng_between (&world->rng, 0, 20);
        broker->write_due_ms = due < broker->write_due_ms ? due : broker->write_due_ms;
    }
    if (!away && world->mono_ms >= broker->sweep_ms) {
        broker->sweep_ms = world->mono_ms + SIM_SWEEP_MS;
        due_t due = {.written = world->model->written};
        model_due (world->model, host_wall_ms (world), SWEEP_ITEMS, &due);
        engine_due (broker->engine, &due, broker_now (world));
    }
}

static void readers (world_t *world)
{
    broker_t *broker = world->broker;
    flying_read_t **at = &broker->reads;
    while (*at != NULL) {
        flying_read_t *flying = *at;
        if (flying->due_ms > world->mono_ms) {
            at = &flying->next;
            continue;
        }
        *at = flying->next;
        flying->read->away = reach_misses (world);
        if (!flying->read->away) {
            ledger_read (world, flying->read);
        }
        engine_read_done (broker->engine, flying->read, broker_now (world));
        free (flying);
        broker->tick_wanted = true;
    }
    read_t *read;
    while ((read = engine_read_next (broker->engine)) != NULL) {
        flying_read_t *flying = calloc (1, sizeof *flying);
        flying->read = read;
        uint32_t latency_ms = read->kind == READ_SEARCH ? SEARCH_MS_MAX
                              : world->database != NULL ? FAR_READ_MS_MAX
                                                        : READ_MS_MAX;
        flying->due_ms = world->mono_ms + rng_between (&world->rng, 0, latency_ms);
        flying->next = broker->reads;
        broker->reads = flying;
    }
}

/* The server thread. */

typedef struct received {
    packet_t *packet;
    verdicts_t verdicts;
    message_t message;
} received_t;

static bool decode (world_t *world, received_t *received, const wire_t *link)
{
    packet_t *packet = received->packet;
    const Taskmq__ClientMessage *envelope =
        validate_frames (&received->verdicts, world->broker->arena, packet->body == NULL ? 1 : 2,
                         packet->envelope, packet->envelope_bytes, packet->body_bytes);
    if (envelope == NULL || received->verdicts.refused > 0) {
        const char *text = received->verdicts.message.text;
        for (size_t i = 0; text == NULL && i < received->verdicts.requests_count; i++) {
            text = received->verdicts.requests[i].verdict.text;
        }
        sim_fail (world, "a message of client %u (%s) is refused: %s", link->client->index,
                  envelope != NULL ? request_name (envelope->requests[0]) : "?",
                  text != NULL ? text : "?");
        return false;
    }
    received->message = (message_t){.peer = link->peer,
                                    .identity = link->client->identity,
                                    .envelope = envelope,
                                    .body = packet->body,
                                    .body_bytes = packet->body_bytes,
                                    .verdicts = &received->verdicts};
    return true;
}

/* True if the socket is empty afterwards. */
static bool gather (world_t *world, received_t *out, size_t *count)
{
    size_t limit = 1 + rng_below (&world->rng, DRAIN_MESSAGES_MAX);
    *count = 0;
    for (wire_t *link = world->links; link != NULL; link = link->next) {
        while (link->open_at_broker && link->broker == world->broker && *count < limit) {
            packet_t *packet = wire_receive_up (link);
            if (packet == NULL) {
                break;
            }
            out[*count].packet = packet;
            if (!decode (world, &out[*count], link)) {
                packet_free (packet);
                return false;
            }
            (*count)++;
        }
    }
    return *count < limit;
}

/* Looks up what is wanted, and the payloads that queued tasks wait for. */
static void load (world_t *world, key_list_t *keys)
{
    broker_t *broker = world->broker;
    engine_want_payloads (broker->engine, keys);
    if (keys->count > 0 && reach_misses (world)) {
        engine_unread (broker->engine, keys);
        return;
    }
    model_load (world->model, keys->keys, keys->count);
    engine_loaded (broker->engine, keys);
    free (keys->keys);
}

/* One message, in as many rounds as it takes. */
static void handle (world_t *world, const message_t *message)
{
    engine_t *engine = world->broker->engine;
    size_t from = 0;
    while (from < message->envelope->n_requests) {
        key_list_t keys = {0};
        size_t upto = engine_want (engine, message, from, &keys);
        load (world, &keys);
        engine_message (engine, message, from, upto, broker_now (world));
        if (upto == from) {
            engine_round (engine);
        }
        from = upto;
    }
}

static void drain (world_t *world)
{
    broker_t *broker = world->broker;
    received_t received[DRAIN_MESSAGES_MAX];
    size_t count;
    arena_reset (broker->arena);
    bool empty = gather (world, received, &count);
    engine_round (broker->engine);
    for (size_t i = 0; i < count; i++) {
        handle (world, &received[i].message);
        packet_free (received[i].packet);
    }
    key_list_t none = {0};
    load (world, &none);
    reach_tell (world);
    int64_t own_ms = host_ms (world, world->mono_ms);
    if (count > 0 || own_ms >= broker->deadline_ms) {
        broker->tick_wanted = true;
    }
    if (empty) {
        broker->heard_ms = own_ms;
    }
    int64_t stood_ms = 0;
    if (broker->tick_wanted && reach_may_judge (world, &stood_ms)) {
        int64_t stood_still = world->mono_ms - broker->last_tick_ms - TMQ_HEARTBEAT_MS;
        /* Waiting for input is no standing still: only a freeze counts. */
        bool froze = broker->frozen_until > broker->last_tick_ms;
        broker->deadline_ms = engine_tick (broker->engine, broker_now (world), broker->heard_ms,
                                           (froze && stood_still > 0 ? stood_still : 0) + stood_ms);
        broker->tick_wanted = false;
    }
    broker->last_tick_ms = world->mono_ms;
}

static bool send_round (world_t *world)
{
    broker_t *broker = world->broker;
    output_t output;
    while (engine_output_next (broker->engine, &output)) {
        if (crash_point (world)) {
            if (broker->engine != NULL) { /* it stands still, and has it in its hand */
                engine_output_kept (broker->engine, &output);
            }
            return false;
        }
        wire_t *link = wire_find (world, output.peer);
        if (reach_keeps_output (world, &output)) {
            return false;
        }
        if (link != NULL) {
            prowler_judge (world, link->client, &output);
        }
        if (link == NULL || !wire_send_down (link, &output)) {
            engine_output_failed (broker->engine, &output, broker_now (world));
            broker->tick_wanted = true;
        }
    }
    return true;
}

static void send_outputs (world_t *world)
{
    while (send_round (world) && engine_has_output (world->broker->engine)) {
    }
}

/* One that stood still in the middle of its outputs goes on with them. */
static bool goes_on_sending (world_t *world)
{
    broker_t *broker = world->broker;
    if (broker->sends) {
        send_outputs (world);
        broker->sends = broker->engine != NULL && world->mono_ms < broker->frozen_until;
    }
    return broker->engine != NULL && !broker->sends;
}

void broker_step (world_t *world)
{
    broker_t *broker = world->broker;
    if (world->database != NULL) {
        hosts_step (world);
        return;
    }
    if (broker->engine == NULL) {
        if (world->mono_ms < broker->start_ms || reach_is_away (world)) {
            return;
        }
        broker_start (world);
        if (broker->engine == NULL) {
            return;
        }
    }
    if (world->mono_ms < broker->frozen_until) {
        return;
    }
    if (sim_fault (world, world->options.broker_freeze)) {
        broker->frozen_until = world->mono_ms + rng_between (&world->rng, 100, 15000);
        check_gone_forget_all (world);
        sim_log (world, "broker freezes until %lld", (long long) broker->frozen_until);
        return;
    }
    broker_turn (world);
}

static bool is_committing (const world_t *world)
{
    const broker_t *broker = world->broker;
    const host_t *host = broker->host;
    bool waits = host != NULL &&
                 (host->making != NULL || broker->durable > 0 || world->mono_ms < host->commit_at);
    return broker->batch != NULL || broker->reach.landed != 0 || waits;
}

void broker_turn (world_t *world)
{
    broker_t *broker = world->broker;
    if (!goes_on_sending (world)) {
        return;
    }
    reach_step (world);
    drain (world);
    if (world->failed || crash_point (world)) {
        return;
    }
    committer (world);
    if (crash_point (world)) {
        return;
    }
    store_thread (world);
    if (crash_point (world)) {
        return;
    }
    readers (world);
    ledger_step (world);
    logs_step (world);
    depot_step (world);
    if (!is_committing (world)) {
        broker->batch = engine_batch_take (broker->engine, broker_now (world));
        if (broker->batch != NULL) {
            broker->commit_due_ms =
                world->mono_ms + rng_between (&world->rng, 0, world->options.commit_ms_max);
        }
    }
    reach_goes (world);
    broker->sends = broker->host != NULL;
    send_outputs (world);
    broker->sends = broker->sends && world->mono_ms < broker->frozen_until;
}

static int64_t earlier (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later (int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t broker_next_ms (const world_t *world)
{
    const broker_t *broker = world->broker;
    if (broker->engine == NULL && broker->host == NULL) {
        return later (broker->start_ms, broker->reach.away_until);
    }
    int64_t next = earlier (reach_next_ms (world), depot_next_ms (world));
    if (!broker->reach.tenure.shut) {
        next = earlier (next, host_world_ms (world, broker->deadline_ms));
    }
    if (!reach_is_away (world)) {
        next = broker->host != NULL ? next : earlier (next, broker->write_due_ms);
        next = earlier (next, broker->sweep_ms);
    }
    if (broker->batch != NULL && (broker->host != NULL || !reach_is_away (world))) {
        next = earlier (next, broker->commit_due_ms);
    }
    if (broker->full_until > 0) {
        next = earlier (next, broker->full_until);
    }
    if (broker->durable > 0) {
        next = earlier (next, broker->durable_due_ms);
    }
    if ((broker->tick_wanted && !broker->reach.tenure.shut) ||
        broker->written_told < world->model->written) {
        next = earlier (next, world->mono_ms + 1);
    }
    for (const flying_read_t *flying = broker->reads; flying != NULL; flying = flying->next) {
        next = earlier (next, flying->due_ms);
    }
    return next > broker->frozen_until ? next : broker->frozen_until;
}
