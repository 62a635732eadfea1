/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* After a failover that lost commits nobody can hold the brokers to what they told before. So the
 * clients leave, and what is judged is I17: the history that was cut is not served, and not gone on
 * with, under its old generation. Witnesses find out who serves then. */
#include "cluster.h"

enum { WITNESSES = 3, CUT_MS_MAX = 60 * 1000 };

void cut_happens (world_t *world, bool lost, place_t newest)
{
    database_t *self = world->database;
    if (self->cut.happened && (self->cut.lost || !lost)) {
        return;
    }
    self->cut = (cut_t){.happened = true,
                        .lost = lost,
                        .epoch = self->shard.epoch,
                        .generation = self->shard.generation,
                        .newest = newest};
    sim_log (world, "the history of generation %llu is cut in epoch %llu",
             (unsigned long long) self->cut.generation, (unsigned long long) self->cut.epoch);
}

void cut_check_healed (world_t *world)
{
    database_t *self = world->database;
    cut_t *cut = &self->cut;
    place_t written = self->shard.written;
    bool same = self->shard.generation == cut->generation;
    if (cut->lost && same && written.epoch == cut->newest.epoch &&
        written.batch >= cut->newest.batch) {
        sim_log (world, "what was lost is written back");
        cut->lost = false;
    }
}

void cut_check_commit (world_t *world, const parcel_t *parcel)
{
    const cut_t *cut = &world->database->cut;
    /* An owner from before may still commit, if who came after it is lost: it tells nobody. */
    if (cut->lost && parcel->generation == cut->generation && parcel->epoch == cut->epoch) {
        sim_fail (world, "I17: batch %llu of epoch %llu goes on with a history that was cut",
                  (unsigned long long) parcel->batch->no, (unsigned long long) parcel->epoch);
    }
}

void cut_check_output (world_t *world)
{
    const database_t *database = world->database;
    const host_t *host = world->broker->host;
    const cut_t *cut = &database->cut;
    if (host_is_over (world)) {
        sim_fail (world, "A101: epoch %llu tells something, and epoch %llu has begun",
                  (unsigned long long) host->epoch, (unsigned long long) database->shard.epoch);
    }
    /* Its last owner may tell what it has in memory, until it knows or its lease is over. */
    if (cut->lost && host->generation == cut->generation && host->epoch != cut->epoch) {
        sim_fail (world, "I17: epoch %llu serves a history that was cut, under its generation",
                  (unsigned long long) host->epoch);
    }
}

/* Only who is welcome learns the generation, which outputs are judged by. */
static void witness_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                           const uint8_t *body, size_t body_bytes)
{
    (void) client;
    (void) pending;
    (void) reply;
    (void) body;
    (void) body_bytes;
}

static void witness_tick (client_t *client)
{
    client->next_ms = SIM_END_OF_TIME;
}

static const actor_t witness_actor = {
    .name = "witness", .tick = witness_tick, .reply = witness_reply};

static bool is_told (const world_t *world)
{
    const cut_t *cut = &world->database->cut;
    bool told = false;
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        const broker_t *broker = &world->brokers[i];
        if (cut->lost && broker->engine != NULL && broker->host->generation == cut->generation) {
            return false; /* it has to notice */
        }
    }
    for (uint32_t i = 0; i < world->clients_count; i++) {
        const client_t *client = &world->clients[i];
        told = told || (client->actor == &witness_actor && client->status == CLIENT_LINKED &&
                        (!cut->lost || client->generation != cut->generation));
    }
    return told;
}

bool cut_ends_story (const world_t *world)
{
    const database_t *self = world->database;
    return self != NULL && self->cut.happened && !self->cut.told;
}

void cut_tell (world_t *world)
{
    world->database->cut.told = true;
    world->faults = false;
    hosts_heal (world);
    for (uint32_t i = 0; i < world->clients_count; i++) {
        client_goes (&world->clients[i]);
    }
    for (uint32_t i = 0; i < WITNESSES; i++) {
        client_init (world, &witness_actor, model_namespaces[0], "uid:0");
    }
    if (!sim_go_on (world, CUT_MS_MAX, is_told)) {
        sim_fail (world,
                  "I17: %d ms after a cut nobody serves a new history, or somebody the old one",
                  CUT_MS_MAX);
    }
}
