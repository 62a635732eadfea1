/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Time, chance and the order of things: one run from its seed to its verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum {
    WALL_START_DAYS = 20000,      /* some day in 2024 */
    LIVENESS_MS_MAX = 240 * 1000, /* for the longest chain of fresh leases and backoffs */
    AUDIT_MS_MAX = 60 * 1000,
    COLLECTION_MS = 1500,
    DOUBTS_MIN = 30,
    SEEKERS = 4
};

/* Options. */

sim_options_t sim_options_shared (const sim_options_t *alone, sim_trial_t trial)
{
    rng_t rng = {alone->seed * 0x9e3779b97f4a7c15u + 3};
    sim_options_t out = *alone;
    out.brokers = rng_chance (&rng, 300) ? 2 : SIM_BROKERS_MAX;
    out.tables = 0; /* of one broker */
    out.damage = 0;
    out.commit_ms_max = rng_chance (&rng, 300) ? 100 : 5;
    out.away = 1 + rng_below (&rng, 20);
    out.host_crash = rng_chance (&rng, 800) ? rng_below (&rng, 30) : 0;
    out.host_freeze = rng_chance (&rng, 800) ? rng_below (&rng, 50) : 0;
    out.host_stop = rng_chance (&rng, 800) ? rng_below (&rng, 50) : 0;
    out.host_cut = rng_chance (&rng, 700) ? rng_below (&rng, 30) : 0;
    out.session_cut = rng_chance (&rng, 800) ? rng_below (&rng, 100) : 0;
    if (trial == SIM_TRIAL_SPACE) { /* … in the middle of a commit in doubt */
        out.session_cut = DOUBTS_MIN + out.session_cut / 2;
    }
    out.session_hang = rng_chance (&rng, 800) ? rng_below (&rng, 20) : 0;
    static const uint32_t FAILOVERS[] = {SIM_FAILOVER_ANY, SIM_FAILOVER_WRITE, SIM_FAILOVER_WRITE,
                                         SIM_FAILOVER_ADOPTION, SIM_FAILOVER_ADOPTION};
    out.failover = FAILOVERS[rng_below (&rng, sizeof FAILOVERS / sizeof FAILOVERS[0])];
    bool none = rng_chance (&rng, 700);
    if (trial == SIM_TRIAL_WRITE_BACK || trial == SIM_TRIAL_ADOPTION) {
        out.failover = trial == SIM_TRIAL_ADOPTION ? SIM_FAILOVER_ADOPTION : SIM_FAILOVER_WRITE;
    } else if (trial != SIM_TRIAL_FAILOVER && none) {
        out.failover = SIM_FAILOVER_NONE;
    }
    out.commit_full =
        trial == SIM_TRIAL_SPACE || rng_chance (&rng, 300) ? 20 + rng_below (&rng, 80) : 0;
    return out;
}

sim_options_t sim_options_of (uint64_t seed)
{
    rng_t rng = {seed * 0x2545f4914f6cdd1du + 1};
    sim_options_t out = {.seed = seed};
    out.submitters = 2 + rng_below (&rng, 3);
    out.workers = 2 + rng_below (&rng, 4);
    out.subscribers = 2 + rng_below (&rng, 3);
    out.libraries = rng_below (&rng, 3);
    out.safety_ms = 30000 + rng_below (&rng, 40000);
    out.delay_ms_max = rng_chance (&rng, 300) ? 300 : 10;
    /* Each kind of fault is absent from some seeds, so that none hides another. */
    out.lose = rng_chance (&rng, 600) ? rng_below (&rng, 40) : 0;
    out.repeat = rng_chance (&rng, 700) ? rng_below (&rng, 100) : 0;
    out.cut = rng_chance (&rng, 700) ? rng_below (&rng, 80) : 0;
    out.stall = rng_chance (&rng, 500) ? rng_below (&rng, 40) : 0;
    out.refuse = rng_chance (&rng, 500) ? rng_below (&rng, 20) : 0;
    out.broker_crash = rng_chance (&rng, 800) ? rng_below (&rng, 3) : 0;
    out.broker_freeze = rng_chance (&rng, 300) ? 1 : 0;
    out.commit_full = rng_chance (&rng, 400) ? rng_below (&rng, 10) : 0;
    out.client_crash = rng_chance (&rng, 700) ? rng_below (&rng, 60) : 0;
    out.commit_ms_max = rng_chance (&rng, 450) ? 200 : 5;
    out.write_ms_max = rng_chance (&rng, 500) ? 2000 : 100;
    out.clock_leap = rng_chance (&rng, 110) ? 20 : 0;
    out.menders = 1 + rng_chance (&rng, 500);
    out.retention = rng_chance (&rng, 960);
    out.damage = rng_chance (&rng, 200);
    out.away = rng_chance (&rng, 300) ? 10 + rng_below (&rng, 60) : 0;
    out.tables = seed % 5 == 0; /* they cost as much as all the rest */
    out.brokers = 1;
    return out;
}

void sim_options_print (const sim_options_t *o)
{
    printf ("seed %llu: bug %u, %u submitters, %u workers, %u subscribers, %u libraries, "
            "%u menders, %u ms, "
            "delay %u ms, "
            "lose %u, repeat %u, cut %u, stall %u, refuse %u, broker_crash %u, broker_freeze %u, "
            "commit_full %u, client_crash %u, commit %u ms, write %u ms, clock_leap %u, "
            "damage %u, retention %u, away %u, tables %u, brokers %u, failover %u, host crash %u, "
            "freeze %u, stop %u, cut %u, session cut %u, hang %u\n",
            (unsigned long long) o->seed, o->planted_bug, o->submitters, o->workers, o->subscribers,
            o->libraries, o->menders, o->safety_ms, o->delay_ms_max, o->lose, o->repeat, o->cut,
            o->stall, o->refuse, o->broker_crash, o->broker_freeze, o->commit_full, o->client_crash,
            o->commit_ms_max, o->write_ms_max, o->clock_leap, o->damage, o->retention, o->away,
            o->tables, o->brokers, o->failover, o->host_crash, o->host_freeze, o->host_stop,
            o->host_cut, o->session_cut, o->session_hang);
}

/* Helpers. */

int64_t sim_wall_ms (const world_t *world)
{
    return (int64_t) WALL_START_DAYS * 24 * 3600 * 1000 + world->mono_ms + world->wall_offset_ms;
}

void sim_fail (world_t *world, const char *format, ...)
{
    if (!world->failed) {
        world->failed = true;
        int length = snprintf (world->failure, sizeof world->failure,
                               "at %lld ms: ", (long long) world->mono_ms);
        va_list arguments;
        va_start (arguments, format);
        vsnprintf (world->failure + length, sizeof world->failure - (size_t) length, format,
                   arguments);
        va_end (arguments);
    }
}

void sim_log (world_t *world, const char *format, ...)
{
    if (world->options.verbose) {
        printf ("%8lld  ", (long long) world->mono_ms);
        va_list arguments;
        va_start (arguments, format);
        vprintf (format, arguments);
        va_end (arguments);
        printf ("\n");
    }
}

bool sim_fault (world_t *world, uint32_t per_mille)
{
    return world->faults && per_mille > 0 && rng_chance (&world->rng, per_mille);
}

/* Steps. */

static void every_second (world_t *world)
{
    network_faults (world);
    if (world->database != NULL) {
        database_faults (world);
        hosts_faults (world);
    } else {
        reach_faults (world);
    }
    prowlers_swap (world, false);
    if (reach_is_away (world)) {
        check_gone_forget_all (world); /* nothing becomes durable, however long */
    }
    check_given_back (world);
    depot_check_durable (world);
    for (uint32_t i = 0; i < world->clients_count; i++) {
        client_t *client = &world->clients[i];
        if (client->running && sim_fault (world, world->options.client_crash)) {
            client_crash (client);
        }
    }
    if (sim_fault (world, world->options.clock_leap)) {
        world->wall_offset_ms += rng_between (&world->rng, -3600 * 1000, 3000 * 1000);
        sim_log (world, "the wall clock leaps");
    }
}

static int64_t next_ms (world_t *world, int64_t second_ms)
{
    int64_t next = second_ms;
    int64_t brokers = world->database != NULL ? hosts_next_ms (world) : broker_next_ms (world);
    int64_t others[] = {brokers, network_next_ms (world)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        next = others[i] < next ? others[i] : next;
    }
    for (uint32_t i = 0; i < world->clients_count; i++) {
        int64_t own = client_next_ms (&world->clients[i]);
        next = own < next ? own : next;
    }
    return next > world->mono_ms ? next : world->mono_ms + 1;
}

/* Runs until done says so or until_ms is reached; true if done. */
static bool run (world_t *world, int64_t until_ms, bool (*done) (const world_t *world))
{
    int64_t second_ms = world->mono_ms;
    while (!world->failed && world->mono_ms < until_ms) {
        if (world->mono_ms >= second_ms) {
            every_second (world);
            second_ms = world->mono_ms + 1000;
        }
        int64_t latest_ms = hosts_latest_wall_ms (world);
        if (latest_ms > world->wall_latest_ms) {
            world->wall_latest_ms = latest_ms;
        }
        broker_step (world);
        if (cut_ends_story (world)) {
            return false;
        }
        uint32_t first = rng_below (&world->rng, world->clients_count);
        for (uint32_t i = 0; i < world->clients_count && !world->failed; i++) {
            client_step (&world->clients[(first + i) % world->clients_count]);
        }
        network_sweep (world);
        world->steps++;
        if (done != NULL && done (world)) {
            return true;
        }
        world->mono_ms = next_ms (world, second_ms);
    }
    return done == NULL;
}

/* A history that was cut ends the story. True: it went on to the end of this phase. */
static bool tell (world_t *world, int64_t ms, bool (*done) (const world_t *world),
                  void (*hangs) (world_t *world))
{
    if (world->failed) {
        return false;
    }
    bool comes = run (world, world->mono_ms + ms, done);
    if (cut_ends_story (world)) {
        cut_tell (world);
        return false;
    }
    if (!comes && !world->failed) {
        hangs (world);
    }
    return !world->failed;
}

bool sim_go_on (world_t *world, int64_t ms, bool (*done) (const world_t *world))
{
    return run (world, world->mono_ms + ms, done);
}

/* Phases. */

static void populate (world_t *world)
{
    const sim_options_t *options = &world->options;
    static const char *const identities[] = {"uid:0", "uid:1"};
    for (uint32_t i = 0; i < options->submitters; i++) {
        client_init (world, &submitter_actor, model_namespaces[i % 2 == 1], identities[i / 2 % 2]);
    }
    for (uint32_t i = 0; i < options->workers; i++) {
        client_init (world, &worker_actor, model_namespaces[i % 2 == 1], identities[0]);
    }
    for (uint32_t i = 0; i < options->subscribers; i++) {
        client_init (world, &subscriber_actor, model_namespaces[i == 1], identities[1]);
    }
    for (uint32_t i = 0; i < PROWLERS; i++) {
        client_init (world, &prowler_actor, model_namespaces[0], prowler_name (i));
    }
    prowlers_swap (world, true);
    client_init (world, &warden_actor, model_namespaces[0], identities[0]);
    client_init (world, &scheduler_actor, model_namespaces[SIM_SHARED], identities[0]);
    for (uint32_t i = 0; i < SHARERS; i++) {
        client_init (world, &sharer_actor, model_namespaces[SIM_SHARED], identities[0]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        client_init (world, &carrier_actor, model_namespaces[i / 2], identities[i % 2]);
    }
    for (uint32_t i = 0; i < (options->tables > 0 ? SEEKERS : SEEKERS / 2); i++) {
        client_init (world, &seeker_actor, model_namespaces[i == 1], identities[0]);
    }
    client_init (world, &feller_actor, model_namespaces[0], identities[0]);
    for (uint32_t i = 0; i < options->menders; i++) {
        client_init (world, &mender_actor, model_namespaces[0], identities[0]);
    }
    for (uint32_t i = 0; i < options->libraries; i++) {
        client_init (world, &library_actor, model_namespaces[0], identities[i % 2]);
    }
}

static bool at_rest (const world_t *world)
{
    if (world->broker->engine == NULL || world->broker->batch != NULL ||
        (world->broker->host != NULL && world->broker->host->making != NULL) ||
        world->broker->reach.tenure.shut || !check_all_ended (world) || !teller_is_quit (world)) {
        return false;
    }
    for (uint32_t i = 0; i < world->clients_count; i++) {
        const client_t *client = &world->clients[i];
        if (client->actor == &subscriber_actor &&
            subscriber_upto (client) < check_newest (world, client->ns)) {
            return false;
        }
        bool asks = client->actor == &submitter_actor || client->actor == &sharer_actor ||
                    client->actor == &mender_actor || client->actor == &feller_actor;
        if (asks && client_open (client) > 0) {
            return false;
        }
        if (client->actor == &library_actor && !library_at_rest (client)) {
            return false;
        }
    }
    return true;
}

/* Names what hangs when the liveness phase is over. */
static void fail_liveness (world_t *world)
{
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        const record_t *record = world->model->durable.rows[i].record;
        if (record != NULL && record->status < TMQ_STATUS_COMPLETED) {
            sim_fail (world, "I11: task %u in %s/%s stays in status %d, attempt %u, leased %d, %s",
                      i, record->ns, record->queue, (int) record->status, record->attempt,
                      record->leased, world->broker->engine == NULL ? "broker down" : "");
        }
    }
    for (uint32_t i = 0; i < world->clients_count; i++) {
        const client_t *client = &world->clients[i];
        if (client->actor == &subscriber_actor) {
            uint64_t newest = check_newest (world, client->ns);
            if (subscriber_upto (client) < newest) {
                sim_fail (world, "I11: subscriber %u stays at %llu of %llu", i,
                          (unsigned long long) subscriber_upto (client),
                          (unsigned long long) newest);
            }
        } else if (client->actor == &library_actor) {
            if (!library_at_rest (client)) {
                sim_fail (world, "I11: library %u has open operations or not all events", i);
            }
        } else if (client->actor != &prowler_actor && client->actor != &seeker_actor &&
                   client_open (client) > 0) {
            sim_fail (world, "I11: client %u (%s, state %d) has %zu open requests, first op %d", i,
                      client->actor->name, (int) client->status, client_open (client),
                      (int) client->pending->op);
        }
    }
    if (!teller_is_quit (world)) {
        sim_fail (world, "I11: turns of a task that was removed stay for ever");
    }
    sim_fail (world, "I11: the broker does not come to rest");
}

static void heal (world_t *world)
{
    world->faults = false;
    hosts_heal (world);
    world->broker->frozen_until = world->mono_ms;
    if (world->broker->reach.away_until > world->mono_ms) {
        world->broker->reach.away_until = world->mono_ms;
    }
    for (wire_t *link = world->links; link != NULL; link = link->next) {
        link->stalled_until = 0;
    }
    for (uint32_t i = 0; i < world->clients_count; i++) {
        client_t *client = &world->clients[i];
        client->gone_for_good = false;
        if (client->status == CLIENT_DOWN && client->wake_ms > world->mono_ms + 1000) {
            client->wake_ms = world->mono_ms + 1000;
        }
    }
}

static bool audited (const world_t *world)
{
    /* There is time for a collection of all that this start does not know to be needed. */
    bool done = world->mono_ms >= world->broker->started_ms + COLLECTION_MS;
    for (uint32_t i = 0; i < world->clients_count; i++) {
        const client_t *client = &world->clients[i];
        done = done && (client->actor != &auditor_actor || auditor_done (client));
    }
    return done && cleaner_is_quit (world);
}

static void check_beliefs (world_t *world)
{
    for (uint32_t i = 0; i < world->clients_count; i++) {
        client_t *client = &world->clients[i];
        if (client->actor == &subscriber_actor) {
            subscriber_check (client);
        } else if (client->actor == &library_actor) {
            library_check (client);
        }
    }
}

static void fail_audit (world_t *world)
{
    sim_fail (world, "I11: the audit does not come to its end");
}

static void phases (world_t *world)
{
    populate (world);
    world->faults = true;
    if (!tell (world, world->options.safety_ms, NULL, NULL)) {
        return;
    }
    check_durable (world);
    heal (world);
    if (!tell (world, LIVENESS_MS_MAX, at_rest, fail_liveness)) {
        return;
    }
    check_beliefs (world);
    sharers_check (world);
    /* The audit reads through a broker that started afresh: only what is stored can answer. */
    broker_crash (world);
    for (size_t i = 0; i < MODEL_NAMESPACES; i++) {
        client_init (world, &auditor_actor, model_namespaces[i], "uid:0");
    }
    if (!tell (world, AUDIT_MS_MAX, audited, fail_audit)) {
        return;
    }
    check_durable (world);
    ledger_check_rest (world);
}

bool sim_run (const sim_options_t *options, char *failure, size_t failure_size,
              uint64_t *completions)
{
    world_t *world = calloc (1, sizeof *world);
    world->options = *options;
    world->rng.state = options->seed;
    world->model = model_new (7);
    world->broker = &world->brokers[0];
    ledger_make (world);
    database_make (world);
    hosts_make (world);
    phases (world);
    bool good = !world->failed;
    sim_log (world, "%llu steps, %u tasks, %llu completions, %u crashes, %u failed commits",
             (unsigned long long) world->steps, world->tasks_count,
             (unsigned long long) world->completions, world->broker->crashes,
             world->broker->resets);
    hosts_log (world);
    snprintf (failure, failure_size, "%s", world->failure);
    *completions = world->completions;
    broker_free (world);
    hosts_free (world);
    database_free (world);
    for (uint32_t i = 0; i < world->clients_count; i++) {
        client_free (&world->clients[i]);
    }
    network_free (world);
    model_free (world->model);
    policy_drop (world->policy);
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        free (world->tasks[i].assigned);
    }
    free (world);
    return good;
}
