/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sharers: each counts one value up, by a put that rests on the version it has seen. So the value
 * is the number of puts that were answered OK, and of those whose maker did not live to hear it.
 * The same holds for the items that they put into a box, where nobody takes them out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/row.h"
#include "sim.h"
#include "wire.h"

/* A value remembers its newest four puts. A put that is repeated behind others may be forgotten,
 * one of them without an answer yet: then nobody knows. */
enum { PAUSE_MS_MAX = 3000, PUTS_BEHIND_MAX = 2, ITEMS_BEHIND_MAX = 30 /* a box remembers 32 */ };

static char key[] = "count";
static char box[] = "tally";

typedef struct sharer {
    bool seen;    /* version and count are what somebody answered */
    bool putting; /* a put has no answer yet */
    bool adding;  /* … of an item */
    uint64_t version;
    unsigned long count;
} sharer_t;

static sharer_t *sharer_of (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (sharer_t));
    }
    return client->state;
}

static void look (client_t *client)
{
    Taskmq__ValueGet get = TASKMQ__VALUE_GET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    get.key = key;
    request.op_case = TASKMQ__REQUEST__OP_VALUE_GET;
    request.value_get = &get;
    client_request (client, &request, NULL, 0);
}

static void count_up (client_t *client, sharer_t *sharer)
{
    Taskmq__ValuePut put = TASKMQ__VALUE_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    char text[24];
    put.key = key;
    put.if_version_plus_1 = sharer->version + 1;
    put.body_bytes = (uint32_t) snprintf (text, sizeof text, "%lu", sharer->count + 1);
    request.op_case = TASKMQ__REQUEST__OP_VALUE_PUT;
    request.value_put = &put;
    sharer->putting = true;
    client_request (client, &request, text, put.body_bytes)->context = client->world->counted;
}

static void add_item (client_t *client, sharer_t *sharer)
{
    Taskmq__ItemPut put = TASKMQ__ITEM_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    put.box = box;
    put.body_bytes = 1;
    request.op_case = TASKMQ__REQUEST__OP_ITEM_PUT;
    request.item_put = &put;
    sharer->adding = true;
    client_request (client, &request, "x", 1)->context = client->world->items;
}

static void sharer_tick (client_t *client)
{
    world_t *world = client->world;
    sharer_t *sharer = sharer_of (client);
    client->next_ms = world->mono_ms + rng_between (&world->rng, 1, PAUSE_MS_MAX);
    if (!world->faults || client_open (client) > 0) {
        return;
    }
    if (rng_chance (&world->rng, 400)) {
        add_item (client, sharer);
    } else if (sharer->seen) {
        count_up (client, sharer);
    } else {
        look (client);
    }
}

static void put_answered (client_t *client, sharer_t *sharer, const pending_t *pending,
                          const Taskmq__Reply *reply)
{
    world_t *world = client->world;
    sharer->putting = false;
    sharer->seen = reply->code == TMQ_OK && reply->value != NULL;
    if (sharer->seen) {
        sharer->version = reply->value->version;
        sharer->count++;
        world->counted++;
    } else if (reply->code == TMQ_CONFLICT) {
        world->maybe_counted += world->counted - pending->context >= PUTS_BEHIND_MAX;
    } else {
        sim_fail (world, "a put is answered %u %s", reply->code, reply->text);
    }
}

static void item_answered (client_t *client, sharer_t *sharer, const pending_t *pending,
                           const Taskmq__Reply *reply)
{
    world_t *world = client->world;
    sharer->adding = false;
    if (reply->code != TMQ_OK || reply->item_done == NULL || reply->item_done->number == 0) {
        sim_fail (world, "an item is answered %u %s", reply->code, reply->text);
        return;
    }
    world->maybe_items += world->items - pending->context >= ITEMS_BEHIND_MAX;
    world->items++;
}

static void look_answered (client_t *client, sharer_t *sharer, const Taskmq__Reply *reply,
                           const uint8_t *body, size_t body_bytes)
{
    char text[24] = "";
    sharer->seen = true;
    sharer->version = 0;
    sharer->count = 0;
    if (reply->code == TMQ_NOT_FOUND) {
        return;
    }
    if (reply->code != TMQ_OK || reply->value == NULL || body_bytes >= sizeof text) {
        sim_fail (client->world, "a look at a value is answered %u %s", reply->code, reply->text);
        return;
    }
    memcpy (text, body, body_bytes);
    sharer->version = reply->value->version;
    sharer->count = strtoul (text, NULL, 10);
}

static void sharer_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                          const uint8_t *body, size_t body_bytes)
{
    sharer_t *sharer = sharer_of (client);
    if (pending->op == TASKMQ__REQUEST__OP_VALUE_PUT) {
        put_answered (client, sharer, pending, reply);
    } else if (pending->op == TASKMQ__REQUEST__OP_ITEM_PUT) {
        item_answered (client, sharer, pending, reply);
    } else {
        look_answered (client, sharer, reply, body, body_bytes);
    }
}

static void sharer_stop (client_t *client)
{
    sharer_t *sharer = sharer_of (client);
    client->world->maybe_counted += sharer->putting;
    client->world->maybe_items += sharer->adding;
    *sharer = (sharer_t){0};
}

/* The bytes of a stored value are a number. */
static unsigned long stored_count (const row_t *row)
{
    enum { FIELD_BYTES = 6 }; /* core/sessions/values.c */
    const uint8_t *at = row == NULL ? NULL : buf_bytes (row->body);
    const uint8_t *end = row == NULL ? NULL : at + buf_length (row->body);
    wire_field_t field;
    char text[24] = "";
    while (at < end && wire_read_field (&field, &at, end)) {
        if (field.number == FIELD_BYTES && field.length < sizeof text) {
            memcpy (text, field.bytes, field.length);
        }
    }
    return strtoul (text, NULL, 10);
}

static void check_items (world_t *world)
{
    const row_list_t *rows = &world->model->durable.kind_rows;
    uint64_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        count += rows->rows[i].kind == ROW_KIND_ITEM;
    }
    if (count < world->items || count > world->items + world->maybe_items) {
        sim_fail (world, "items: %llu puts were answered, %llu more may have been; there are %llu",
                  (unsigned long long) world->items, (unsigned long long) world->maybe_items,
                  (unsigned long long) count);
    }
}

void sharers_check (world_t *world)
{
    row_key_t row_key = ROW_KEY_INIT;
    row_key_text (&row_key, model_namespaces[SIM_SHARED]);
    row_key_text (&row_key, "");
    row_key_bytes (&row_key, key, strlen (key));
    buf_t *wanted = buf_new (row_key.bytes, row_key.length);
    unsigned long count =
        stored_count (row_list_find (&world->model->durable.kind_rows, ROW_KIND_VALUE, wanted));
    buf_drop (wanted);
    if (count < world->counted || count > world->counted + world->maybe_counted) {
        sim_fail (world, "values: %llu puts counted up, %llu more may have; the value is %lu",
                  (unsigned long long) world->counted, (unsigned long long) world->maybe_counted,
                  count);
    }
    check_items (world);
}

const actor_t sharer_actor = {
    .name = "sharer", .stop = sharer_stop, .tick = sharer_tick, .reply = sharer_reply};
