/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A broker's start: what it is configured for, and what of the store it takes into memory. */
#include <string.h>

#include "arena.h"
#include "cluster.h"
#include "core/base/planted.h"

enum {
    ARENA_BYTES = 8 << 20,
    LOOKS_FEW = 8 /* in vain, of a page that ends early */
};

void broker_restore (world_t *world, const boot_t *boot)
{
    broker_t *broker = world->broker;
    const model_side_t *seen = model_seen (world->model);
    seeker_heard (world, 0);
    engine_boot (broker->engine, boot, broker_now (world));
    for (size_t i = 0; i < seen->kind_rows.count; i++) {
        if (row_kind_home (seen->kind_rows.rows[i].kind) == ROW_HOME_LIVE) {
            engine_restore_row (broker->engine, &seen->kind_rows.rows[i]);
        }
    }
    for (size_t i = 0; i < MODEL_NAMESPACES; i++) {
        if (seen->logs[i].events_count > 0) {
            engine_restore_ns (broker->engine, seen->logs[i].ns, seen->logs[i].events_count);
        }
    }
    record_t *live[MODEL_ROWS_MAX] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < MODEL_ROWS_MAX; i++) {
        const record_t *record = seen->rows[i].record;
        if (record == NULL || (record->status >= TMQ_STATUS_COMPLETED && !record->leased)) {
            continue;
        }
        size_t at = count++;
        while (at > 0 && live[at - 1]->number > record->number) {
            live[at] = live[at - 1];
            at--;
        }
        live[at] = model_copy (record, false);
    }
    for (size_t i = 0; i < count; i++) {
        engine_restore (broker->engine, live[i]);
    }
    broker->started_ms = world->mono_ms;
    broker->started_wall_ms = host_wall_ms (world);
    engine_ready (broker->engine, broker_now (world));
    broker->tick_wanted = true;
}

static engine_config_t draw_config (world_t *world)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    rng_fill (&world->rng, config.seed, sizeof config.seed);
    config.broker = "simulated";
    config.planted_bug = world->options.planted_bug;
    if (config.planted_bug == ENGINE_BUG_NOT_FRESH_BEHIND && world->database->adoptions > 1) {
        config.planted_bug = ENGINE_BUG_NO_FRESH_TERM;
    }
    /* Small enough that replay, payload look-ups and overload are met. */
    config.ring_bytes = rng_chance (&world->rng, 500) ? 4096 : config.ring_bytes;
    config.payload_cache_bytes = rng_chance (&world->rng, 500) ? 2048 : config.payload_cache_bytes;
    if (rng_chance (&world->rng, 500)) { /* a refused answer ends its link at once */
        config.unsent_bytes_max = 0;
        config.unsent_ms_max = 0;
    }
    config.read_looks_max = rng_chance (&world->rng, 500) ? LOOKS_FEW : config.read_looks_max;
    cleaner_configure (world, &config);
    depot_configure (&config);
    config.round.dependents = 2;
    config.round.leftovers = 1;
    config.log_bytes_max = SIM_LOG_BYTES_MAX;
    config.looks_max = config.ring_bytes == 4096 ? 20 : config.looks_max;
    config.dirty_tasks_soft = rng_chance (&world->rng, 250) ? 20 : config.dirty_tasks_soft;
    return config;
}

static void begin (world_t *world, const engine_config_t *config, const boot_t *boot)
{
    broker_t *broker = world->broker;
    list_init (&broker->logs.pieces);
    broker->engine = engine_new (config);
    broker->last_tick_ms = world->mono_ms;
    broker->frozen_until = world->mono_ms;
    broker->durable = 0;
    broker->full_until = 0;
    broker->written_told = 0;
    broker->write_due_ms = SIM_END_OF_TIME;
    broker->sweep_ms = world->mono_ms + SIM_SWEEP_MS;
    reach_start (world);
    sim_log (world, "broker starts, epoch %llu", (unsigned long long) boot->epoch);
    broker_restore (world, boot);
    engine_access (broker->engine, world->policy, broker_now (world));
}

static void need_arena (broker_t *broker)
{
    if (broker->arena == NULL) {
        broker->arena = arena_new (ARENA_BYTES);
    }
}

void broker_start (world_t *world)
{
    engine_config_t config = draw_config (world);
    need_arena (world->broker);
    boot_t boot;
    if (disk_start (world, &boot)) {
        begin (world, &config, &boot);
    } else {
        world->broker->start_ms = world->mono_ms + rng_between (&world->rng, 1, 1000);
    }
}

void broker_serve (world_t *world, const boot_t *boot)
{
    engine_config_t config = draw_config (world);
    need_arena (world->broker);
    world->broker->crashes++;
    begin (world, &config, boot);
}
