/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Retention: some tasks have no time to live, and a rule says how long they stay when they have
 * ended. Every removal by it is judged by what was durable before: nothing goes that must stay. */
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "ids.h"
#include "sim.h"

enum {
    EVERY_MS = 3000,  /* an operator has it applied */
    LASTING_OF = 2,   /* every so manieth task */
    RECENT_MS = 30000 /* from a look at a task to the batch that removes it, at most */
};

/* One namespace lets go by age, the others by how many there are and how large they are. */
static const retention_t BY_AGE = {.max_age_ms = 4000, .keep_failed_ms = 15000, .min_keep = 3};
static const retention_t BY_SIZE = {.max_count = 5,
                                    .max_bytes = 900, /* four of them, about */
                                    .keep_failed_ms = 4000,
                                    .min_keep = 2};

static const retention_t *rule_of (const char *ns)
{
    return strcmp (ns, model_namespaces[0]) == 0 ? &BY_AGE : &BY_SIZE;
}

bool cleaner_lasts (const world_t *world, uint32_t index)
{
    return world->options.retention > 0 && index % LASTING_OF == 0;
}

void cleaner_configure (const world_t *world, engine_config_t *config)
{
    if (world->options.retention > 0) {
        config->retention = BY_SIZE;
        config->retentions_count = 1;
        config->retentions[0].rule = BY_AGE;
        strcpy (config->retentions[0].ns, model_namespaces[0]);
    }
}

bool cleaner_order (client_t *client, int64_t *cleaned_ms)
{
    const world_t *world = client->world;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Cleanup cleanup = TASKMQ__CLEANUP__INIT;
    if (world->options.retention == 0 || world->mono_ms < *cleaned_ms + EVERY_MS) {
        return false;
    }
    *cleaned_ms = world->mono_ms;
    cleanup.dry_run = world->mono_ms % 3 == 0;
    request.op_case = TASKMQ__REQUEST__OP_CLEANUP;
    request.cleanup = &cleanup;
    client_request (client, &request, NULL, 0);
    return true;
}

static bool goes_by_policy (const batch_t *batch, const tmq_id_t *id)
{
    for (size_t i = 0; i < batch->removals_count; i++) {
        if (batch->removals[i].why != 0 && id_equal (&batch->removals[i].id, id)) {
            return true;
        }
    }
    return false;
}

static uint64_t bytes_of (const record_t *record)
{
    return (uint64_t) record->payload_bytes + record->result_bytes +
           extra_bytes_beside (record->extra);
}

/* Those that are newer and stay, and those that would have, but were purged or live again since. */
static retention_tally_t newer_ones (const world_t *world, const batch_t *batch,
                                     const record_t *than)
{
    retention_tally_t out = {0, 0};
    MODEL_EACH_ROW (i, &world->model->durable)
    {
        const record_t *record = world->model->durable.rows[i].record;
        bool stays = record != NULL && record->number > than->number &&
                     record_is_lasting (record) && strcmp (record->ns, than->ns) == 0 &&
                     !goes_by_policy (batch, &record->id);
        bool stayed = !stays && world->left[i].number > than->number &&
                      world->left[i].at_ms + RECENT_MS > world->mono_ms;
        out.count += stays || stayed;
        out.bytes += stays ? bytes_of (record) : stayed ? world->left[i].bytes : 0;
    }
    return out;
}

/* The policy that is said to let it go does so. */
static bool lets_go (const world_t *world, const retention_t *rule, const removal_t *removal,
                     const record_t *record, retention_tally_t newer)
{
    bool ages = world->options.clock_leap == 0;
    switch (removal->why & ~RETENTION_OF_SPACE) {
    case TMQ_POLICY_MAX_AGE:
        return rule->max_age_ms > 0 &&
               (!ages || removal->at - record->finished_at >= rule->max_age_ms);
    case TMQ_POLICY_MAX_COUNT: return rule->max_count > 0 && newer.count >= rule->max_count;
    case TMQ_POLICY_MAX_BYTES:
        return rule->max_bytes > 0 && newer.bytes + bytes_of (record) > rule->max_bytes;
    default: return false;
    }
}

static void check_removal (world_t *world, const batch_t *batch, const removal_t *removal)
{
    uint32_t index = model_index (removal->id.bytes);
    const record_t *record = world->model->durable.rows[index].record;
    if (record == NULL || !record_is_lasting (record)) {
        sim_fail (world, "S37: a policy removes task %u, which has not ended or has a ttl", index);
        return;
    }
    const retention_t *rule = rule_of (record->ns);
    retention_tally_t newer = newer_ones (world, batch, record);
    int64_t age_ms = removal->at - record->finished_at;
    bool failed = record->status == TMQ_STATUS_FAILED && world->options.clock_leap == 0;
    if (failed && age_ms < rule->keep_failed_ms) {
        sim_fail (world, "S37: a policy removes task %u %lld ms after it failed", index,
                  (long long) age_ms);
    } else if (newer.count < rule->min_keep) {
        sim_fail (world, "S37: a policy removes task %u, one of the newest", index);
    } else if (!lets_go (world, rule, removal, record, newer)) {
        sim_fail (world,
                  "S37: policy %u removes task %u of %llu bytes %lld ms after its end; %llu newer "
                  "ones of %llu bytes stay",
                  removal->why & ~RETENTION_OF_SPACE, index, (unsigned long long) bytes_of (record),
                  (long long) age_ms, (unsigned long long) newer.count,
                  (unsigned long long) newer.bytes);
    }
}

/* It was there for a look, and will not be for the next one. */
static void leave (world_t *world, const uint8_t id[16])
{
    uint32_t index = model_index (id);
    const record_t *record = world->model->durable.rows[index].record;
    if (record != NULL && record_is_lasting (record)) {
        world->left[index].number = record->number;
        world->left[index].at_ms = world->mono_ms;
        world->left[index].bytes = bytes_of (record);
    }
}

void cleaner_check_batch (world_t *world, const batch_t *batch)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        if (!record_is_lasting (batch->records[i])) {
            leave (world, batch->records[i]->id.bytes);
        }
    }
    for (size_t i = 0; i < batch->removals_count; i++) {
        if (batch->removals[i].why == 0) {
            leave (world, batch->removals[i].id.bytes);
        }
    }
    for (size_t i = 0; i < batch->removals_count && !world->failed; i++) {
        if (batch->removals[i].why != 0) {
            check_removal (world, batch, &batch->removals[i]);
        }
    }
}

/* At rest. */

static int newest_first (const void *a, const void *b)
{
    const record_t *const *left = a;
    const record_t *const *right = b;
    return ((*left)->number < (*right)->number) - ((*left)->number > (*right)->number);
}

/* All that is there stays, by the ages at the broker's last start: a rule said over again, and
 * plainly. */
static bool all_stay (const world_t *world, const char *ns)
{
    const record_t *there[MODEL_ROWS_MAX];
    const retention_t *rule = rule_of (ns);
    int64_t start_ms = world->broker->started_wall_ms;
    size_t count = 0;
    uint64_t bytes = 0;
    MODEL_EACH_ROW (i, &world->model->durable)
    {
        const record_t *record = world->model->durable.rows[i].record;
        if (record != NULL && record_is_lasting (record) && strcmp (record->ns, ns) == 0) {
            there[count++] = record;
        }
    }
    if (count > 1)
        qsort (there, count, sizeof *there, newest_first);
    for (size_t i = 0; i < count; i++) {
        int64_t age_ms = start_ms - there[i]->finished_at;
        bool failed = there[i]->status == TMQ_STATUS_FAILED;
        bool kept = i < rule->min_keep || (failed && age_ms < rule->keep_failed_ms);
        bytes += bytes_of (there[i]);
        if (!kept && ((rule->max_age_ms > 0 && age_ms >= rule->max_age_ms) ||
                      (rule->max_count > 0 && i >= rule->max_count) ||
                      (rule->max_bytes > 0 && bytes > rule->max_bytes))) {
            return false;
        }
    }
    return true;
}

bool cleaner_is_quit (const world_t *world)
{
    bool quit = true;
    bool holds = world->options.clock_leap > 0; /* a leap holds removals for ten minutes */
    for (size_t i = 0; i < MODEL_NAMESPACES && world->options.retention > 0 && !holds; i++) {
        quit = quit && all_stay (world, model_namespaces[i]);
    }
    return quit;
}
