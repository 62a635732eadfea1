/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Retention: some tasks have no time to live, and a rule says how long they stay when they have
 * ended. Every removal by it is judged by what was durable before: nothing goes that must stay. */
#include <string.h>

#include "ids.h"
#include "sim.h"

enum {
    MAX_AGE_MS = 4000,
    KEEP_FAILED_MS = 15000,
    MIN_KEEP = 2,
    EVERY_MS = 3000, /* an operator has it applied */
    LASTING_OF = 3   /* every so manieth task */
};

bool cleaner_lasts (const world_t *world, uint32_t index)
{
    return world->options.retention > 0 && index % LASTING_OF == 0;
}

void cleaner_configure (const world_t *world, engine_config_t *config)
{
    if (world->options.retention > 0) {
        config->retention = (retention_t){
            .max_age_ms = MAX_AGE_MS, .keep_failed_ms = KEEP_FAILED_MS, .min_keep = MIN_KEEP};
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

/* Those that stay and are newer. */
static size_t newer_ones (const world_t *world, const batch_t *batch, const record_t *than)
{
    size_t count = 0;
    for (size_t i = 0; i < MODEL_ROWS_MAX; i++) {
        const record_t *record = world->model->durable.rows[i].record;
        count += record != NULL && record->number > than->number && record_is_lasting (record) &&
                 strcmp (record->ns, than->ns) == 0 && !goes_by_policy (batch, &record->id);
    }
    return count;
}

static void check_removal (world_t *world, const batch_t *batch, const removal_t *removal)
{
    uint32_t index = model_index (removal->id.bytes);
    const record_t *record = world->model->durable.rows[index].record;
    if (record == NULL || !record_is_lasting (record)) {
        sim_fail (world, "S37: a policy removes task %u, which has not ended or has a ttl", index);
        return;
    }
    bool failed = record->status == TMQ_STATUS_FAILED;
    int64_t age_ms = removal->at - record->finished_at;
    bool known = world->options.clock_leap == 0;
    if (known && age_ms < (failed ? KEEP_FAILED_MS : MAX_AGE_MS)) {
        sim_fail (world, "S37: a policy removes task %u (%s) %lld ms after its end", index,
                  failed ? "failed" : "not failed", (long long) age_ms);
    } else if (newer_ones (world, batch, record) < MIN_KEEP) {
        sim_fail (world, "S37: a policy removes task %u, one of the newest", index);
    }
}

void cleaner_check_batch (world_t *world, const batch_t *batch)
{
    for (size_t i = 0; i < batch->removals_count && !world->failed; i++) {
        if (batch->removals[i].why != 0) {
            check_removal (world, batch, &batch->removals[i]);
        }
    }
}
