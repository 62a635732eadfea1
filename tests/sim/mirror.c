/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a subscriber that began with a snapshot believes: the snapshot, and the events over it. When
 * all has come to rest it must be the truth, whatever was repeated, cut off or begun anew. */
#include <string.h>

#include "sim.h"

void mirror_take (world_t *world, mirror_t *mirror, const uint8_t id[16], uint64_t seq,
                  uint32_t status)
{
    uint32_t index = model_index (id);
    if (index >= world->tasks_count) {
        sim_fail (world, "I9: a subscriber sees a task that nobody submitted");
    } else if (seq > mirror->seq[index]) { /* a snapshot may hold more than the events behind it */
        mirror->seq[index] = seq;
        mirror->status[index] = (uint8_t) status;
    }
}

/* Its time is over, swept or not (S12). Wall time that was once stored does not go back (S20). */
static bool is_over (const world_t *world, const record_t *record)
{
    return record->status >= TMQ_STATUS_COMPLETED && record->expires_at > 0 &&
           record->expires_at <= world->wall_latest_ms;
}

void mirror_check (world_t *world, const mirror_t *mirror, const client_t *client,
                   const char *queue)
{
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        const record_t *record = world->model->durable.rows[i].record;
        uint32_t status = 0;
        uint64_t seq = mirror->seq[i];
        if (record != NULL && strcmp (record->ns, client->ns) == 0 &&
            (queue == NULL || strcmp (record->queue, queue) == 0)) {
            status = record->status;
            seq = record->last_seq;
        }
        bool unknown = mirror->status[i] == 0 && mirror->seq[i] == 0;
        if (unknown && record != NULL && is_over (world, record)) {
            continue; /* a snapshot leaves it out */
        }
        if (mirror->status[i] != status || mirror->seq[i] != seq) {
            sim_fail (world,
                      "I7: client %u (%s) believes task %u to be in status %u at event %llu; "
                      "it is in status %u at %llu",
                      client->index, client->actor->name, i, mirror->status[i],
                      (unsigned long long) mirror->seq[i], status, (unsigned long long) seq);
        }
    }
}

/* How far somebody was told: nobody is behind that who asks afterwards. */

static uint64_t *told_of (world_t *world, const char *ns)
{
    return &world->told[model_log (&world->model->durable, ns) - world->model->durable.logs];
}

void check_told (world_t *world, const char *ns, uint64_t seq)
{
    uint64_t *told = told_of (world, ns);
    *told = seq > *told ? seq : *told;
}

uint64_t check_told_mark (world_t *world, const char *ns)
{
    return *told_of (world, ns);
}

void check_from_now (world_t *world, const char *ns, uint64_t mark, uint64_t seq)
{
    if (seq < mark) {
        sim_fail (world, "I16: %s was told up to event %llu, and now is said to be behind %llu", ns,
                  (unsigned long long) mark, (unsigned long long) seq);
    }
}
