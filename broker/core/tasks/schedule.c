/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/schedule.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"
#include "ids.h"

enum {
    LOOK_MS = 60000, /* between two looks at the clock on the wall */
    DAY_MS = 86400000
};

/* Rows. */

static row_key_t key_of (const space_t *space, const char *name)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, space->name);
    row_key_text (&key, name);
    return key;
}

static void put_row (tasks_t *self, schedule_t *schedule)
{
    if (self->base->config.planted_bug == ENGINE_BUG_INSTANT_TWICE && schedule->stored->fired > 0)
        return;
    row_key_t key = key_of (schedule->space, schedule->stored->name);
    size_t bytes = taskmq__schedule__get_packed_size (schedule->stored);
    uint8_t *body = memory_alloc (bytes);
    taskmq__schedule__pack (schedule->stored, body);
    rows_put (self, row_make (ROW_KIND_SCHEDULE, key.bytes, key.length, body, bytes));
    free (body);
    self->schedules_bytes += bytes - schedule->bytes;
    schedule->bytes = bytes;
}

/* The list of a namespace, by name. */

/* The place of the first one whose name is not before this one. */
static size_t place_of (const space_t *space, const char *name)
{
    size_t low = 0;
    size_t high = space->schedules_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp (space->schedules[middle]->stored->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

schedule_t *schedule_find (const space_t *space, const char *name)
{
    size_t place = place_of (space, name);
    if (place == space->schedules_count ||
        strcmp (space->schedules[place]->stored->name, name) != 0)
        return NULL;
    return space->schedules[place];
}

schedule_t *schedule_after (const space_t *space, const char *name)
{
    size_t place = place_of (space, name);
    if (place < space->schedules_count && strcmp (space->schedules[place]->stored->name, name) == 0)
        place++;
    return place < space->schedules_count ? space->schedules[place] : NULL;
}

static void enlist (space_t *space, schedule_t *schedule)
{
    size_t place = place_of (space, schedule->stored->name);
    space->schedules = memory_grow (space->schedules, &space->schedules_capacity,
                                    space->schedules_count, sizeof (schedule_t *));
    memmove (space->schedules + place + 1, space->schedules + place,
             (space->schedules_count - place) * sizeof (schedule_t *));
    space->schedules[place] = schedule;
    space->schedules_count++;
}

static void delist (space_t *space, const schedule_t *schedule)
{
    size_t place = place_of (space, schedule->stored->name);
    assert (space->schedules[place] == schedule);
    space->schedules_count--;
    memmove (space->schedules + place, space->schedules + place + 1,
             (space->schedules_count - place) * sizeof (schedule_t *));
    if (space->schedules_count > 0)
        return;
    free (space->schedules);
    space->schedules = NULL;
    space->schedules_capacity = 0;
}

static void wait_no_more (tasks_t *self, schedule_t *schedule)
{
    if (!node_is_linked (&schedule->waiting))
        return;
    list_unlink (&schedule->waiting);
    self->instants.count--;
}

static void free_schedule (tasks_t *self, schedule_t *schedule)
{
    alarm_disarm (&schedule->alarm);
    wait_no_more (self, schedule);
    self->instants.daily -= schedule->daily;
    schedule->space->schedules_daily -= schedule->daily;
    names_drop (&self->base->names, schedule->owner);
    self->schedules_bytes -= schedule->bytes;
    taskmq__schedule__free_unpacked (schedule->stored, NULL);
    free (schedule);
}

/* Instants. */

static void find_next (const tasks_t *self, schedule_t *schedule)
{
    const Taskmq__Schedule *stored = schedule->stored;
    bool paused =
        stored->paused && self->base->config.planted_bug != ENGINE_BUG_SCHEDULE_NOT_PAUSED;
    schedule->has_next =
        schedule->broken == NULL && !paused &&
        calendar_next (&schedule->calendar, schedule->zone, (int64_t) stored->created_at,
                       &schedule->last, &schedule->next) &&
        (stored->until == 0 || schedule->next.at_ms <= (int64_t) stored->until);
}

void schedule_goes_on (schedule_t *schedule, const occurrence_t *behind)
{
    schedule->last = *behind;
    schedule->stored->last_at = (uint64_t) behind->at_ms;
    schedule->stored->last_local = behind->local_s;
}

void schedule_arm_later (tasks_t *self, schedule_t *schedule, int64_t ms)
{
    const clocks_t *clocks = &self->base->clocks;
    int64_t wait_ms = schedule->next.at_ms - clocks->wall_ms;
    if (wait_ms < ms)
        wait_ms = ms;
    if (wait_ms > LOOK_MS)
        wait_ms = LOOK_MS;
    alarm_disarm (&schedule->alarm);
    schedule->alarm.kind = ALARM_SCHEDULE;
    if (schedule->has_next)
        wheel_arm (&self->base->fine, &schedule->alarm, clocks->mono_ms + wait_ms);
}

void schedule_arm (tasks_t *self, schedule_t *schedule)
{
    schedule_arm_later (self, schedule, 0);
}

static bool due_behind (const schedule_t *schedule, const occurrence_t *behind, int64_t upto_ms,
                        occurrence_t *out)
{
    occurrence_t found;
    if (!calendar_next (&schedule->calendar, schedule->zone, (int64_t) schedule->stored->created_at,
                        behind, &found) ||
        found.at_ms > upto_ms)
        return false;
    *out = found;
    return true;
}

/* The newest instant up to a time that is not decided; false: none. */
static bool schedule_newest (const schedule_t *schedule, int64_t upto_ms, occurrence_t *out)
{
    int64_t low_s = schedule->last.at_ms / 1000; /* one is due behind it … */
    int64_t high_s = upto_ms / 1000 + 1;         /* … and none behind this */
    if (!due_behind (schedule, &schedule->last, upto_ms, out))
        return false;
    while (high_s - low_s > 1) {
        int64_t middle_s = low_s + (high_s - low_s) / 2;
        occurrence_t middle = calendar_at (schedule->zone, middle_s * 1000);
        if (due_behind (schedule, &middle, upto_ms, out))
            low_s = middle_s;
        else
            high_s = middle_s;
    }
    while (due_behind (schedule, out, upto_ms, out)) /* several at once */
        ;
    return true;
}

void schedule_leave_out (const tasks_t *self, schedule_t *schedule, int64_t upto_ms, size_t kept)
{
    int64_t until_ms = (int64_t) schedule->stored->until;
    int64_t from_ms = until_ms != 0 && until_ms < upto_ms ? until_ms : upto_ms;
    for (size_t i = 0; i < kept; i++) {
        occurrence_t at;
        if (!schedule_newest (schedule, from_ms, &at))
            return; /* there are not so many */
        from_ms = at.at_ms - 1;
    }
    if (from_ms <= schedule->last.at_ms)
        return;
    occurrence_t place = calendar_at (schedule->zone, from_ms);
    schedule_goes_on (schedule, &place);
    find_next (self, schedule);
}

tmq_id_t schedule_task_id (const schedule_t *schedule, const occurrence_t *instant)
{
    const Taskmq__Schedule *stored = schedule->stored;
    const uint64_t numbers[] = {stored->created_at, (uint64_t) instant->at_ms,
                                (uint64_t) instant->local_s};
    uint8_t hash[crypto_generichash_BYTES];
    crypto_generichash_state state;
    crypto_generichash_init (&state, stored->salt.data, stored->salt.len, sizeof (hash));
    crypto_generichash_update (&state, (const uint8_t *) schedule->space->name,
                               strlen (schedule->space->name) + 1);
    crypto_generichash_update (&state, (const uint8_t *) stored->name, strlen (stored->name) + 1);
    crypto_generichash_update (&state, (const uint8_t *) numbers, sizeof (numbers));
    crypto_generichash_final (&state, hash, sizeof (hash));
    tmq_id_t id;
    id_make (&id, instant->at_ms, hash);
    return id;
}

/* Turns. */

uint32_t schedule_cost (size_t bytes)
{
    return (uint32_t) (bytes / INSTANT_BYTES + 1);
}

uint64_t schedule_daily (const calendar_t *calendar, uint32_t cost)
{
    int64_t times = calendar->every_ms != 0 ? DAY_MS / calendar->every_ms
                                            : (int64_t) __builtin_popcountll (calendar->minutes) *
                                                  (int64_t) __builtin_popcount (calendar->hours);
    return (uint64_t) (times > 0 ? times : 1) * cost;
}

static int64_t instant_ns (const tasks_t *self)
{
    return INT64_C (1000000000) / self->base->config.instants_rate;
}

/* Whoever waits for longest is looked at when the next one may be decided. */
static void arm_turns (tasks_t *self)
{
    instants_t *instants = &self->instants;
    int64_t now_ms = self->base->clocks.mono_ms;
    int64_t wait_ms =
        bucket_wait_ms (&instants->bucket, instant_ns (self), INSTANTS_AT_ONCE, now_ms);
    instants->alarm.kind = ALARM_INSTANTS;
    alarm_disarm (&instants->alarm);
    if (!list_is_empty (&instants->waiting))
        wheel_arm (&self->base->fine, &instants->alarm, now_ms + wait_ms);
}

bool schedule_has_turn (tasks_t *self, schedule_t *schedule, bool first)
{
    instants_t *instants = &self->instants;
    int64_t now_ms = self->base->clocks.mono_ms;
    if ((first || list_is_empty (&instants->waiting)) &&
        bucket_take_some (&instants->bucket, schedule->cost, instant_ns (self), INSTANTS_AT_ONCE,
                          now_ms) == 0)
        return true;
    if (schedule->held_ms == 0)
        schedule->held_ms = now_ms;
    alarm_disarm (&schedule->alarm);
    instants->count++;
    if (first)
        list_push_front (&instants->waiting, &schedule->waiting);
    else
        list_push_back (&instants->waiting, &schedule->waiting);
    arm_turns (self);
    return false;
}

schedule_t *schedule_next_turn (tasks_t *self)
{
    instants_t *instants = &self->instants;
    const node_t *node = list_first (&instants->waiting);
    if (node == NULL || self->base->round.alarms == 0 ||
        bucket_wait_ms (&instants->bucket, instant_ns (self), INSTANTS_AT_ONCE,
                        self->base->clocks.mono_ms) > 0) {
        arm_turns (self);
        return NULL;
    }
    schedule_t *schedule = LIST_ITEM (node, schedule_t, waiting);
    wait_no_more (self, schedule);
    return schedule;
}

/* Life. */

const zone_t *schedule_zone (const tasks_t *self, const char *name)
{
    static const zone_t UTC;
    const engine_config_t *config = &self->base->config;
    if (name[0] == '\0' || strcmp (name, "UTC") == 0)
        return &UTC;
    return config->zone == NULL ? NULL : config->zone (config->zone_context, name);
}

/* Tzdata may have lost a zone since, and another version may have stored it. */
static void take_definition (tasks_t *self, schedule_t *schedule)
{
    char error[CALENDAR_ERROR_SIZE];
    const Taskmq__Schedule *stored = schedule->stored;
    schedule->zone = schedule_zone (self, stored->zone);
    schedule->last = (occurrence_t){(int64_t) stored->last_at, stored->last_local};
    if (!calendar_parse (&schedule->calendar, stored->calendar, error))
        schedule->broken = "its calendar is not understood";
    else if (schedule->zone == NULL)
        schedule->broken = "its time zone is not there any more";
    schedule->cost = schedule_cost (taskmq__schedule__get_packed_size (stored));
    if (schedule->broken == NULL)
        schedule->daily = schedule_daily (&schedule->calendar, schedule->cost);
    schedule->space->schedules_daily += schedule->daily;
    self->instants.daily += schedule->daily;
}

static schedule_t *make (tasks_t *self, space_t *space, Taskmq__Schedule *stored, size_t bytes)
{
    schedule_t *schedule = memory_zero (1, sizeof (*schedule));
    schedule->stored = stored;
    schedule->space = space;
    schedule->bytes = bytes;
    self->schedules_bytes += bytes;
    take_definition (self, schedule);
    schedule->owner = names_keep (&self->base->names, stored->owner);
    enlist (space, schedule);
    return schedule;
}

schedule_t *schedule_put (tasks_t *self, space_t *space, Taskmq__Schedule *stored)
{
    schedule_t *old = schedule_find (space, stored->name);
    if (old != NULL) {
        delist (space, old);
        free_schedule (self, old);
    }
    schedule_t *schedule = make (self, space, stored, 0);
    assert (schedule->broken == NULL);
    if (stored->last_at == 0) {
        occurrence_t now = calendar_at (schedule->zone, self->base->clocks.wall_ms);
        schedule_goes_on (schedule, &now);
    }
    schedule_changed (self, schedule);
    return schedule;
}

void schedule_changed (tasks_t *self, schedule_t *schedule)
{
    schedule->stored->version++;
    schedule->stored->updated_at = (uint64_t) self->base->clocks.wall_ms;
    put_row (self, schedule);
    find_next (self, schedule);
    schedule_arm (self, schedule);
}

void schedule_remove (tasks_t *self, schedule_t *schedule)
{
    space_t *space = schedule->space;
    row_key_t key = key_of (space, schedule->stored->name);
    rows_put (self, row_make_gone (ROW_KIND_SCHEDULE, key.bytes, key.length));
    delist (space, schedule);
    free_schedule (self, schedule);
    space_release (self, space);
}

void schedule_load (tasks_t *self, const row_t *row)
{
    const uint8_t *key = buf_bytes (row->key);
    const uint8_t *end = memchr (key, '\0', buf_length (row->key));
    Taskmq__Schedule *stored =
        taskmq__schedule__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
    if (row->gone || end == NULL || stored == NULL || stored->task == NULL) {
        if (stored != NULL)
            taskmq__schedule__free_unpacked (stored, NULL);
        return;
    }
    space_t *space = space_make (self, (const char *) key);
    schedule_t *schedule = make (self, space, stored, buf_length (row->body));
    find_next (self, schedule);
    schedule_arm (self, schedule);
}

void schedules_tell_broken (const tasks_t *self, schedule_tell_t *tell, void *context)
{
    size_t cursor = 0;
    for (const space_t *space = map_each (&self->spaces, &cursor); space != NULL;
         space = map_each (&self->spaces, &cursor))
        for (size_t i = 0; i < space->schedules_count; i++)
            if (space->schedules[i]->broken != NULL)
                tell (context, space->name, space->schedules[i]->stored->name,
                      space->schedules[i]->broken);
}

void schedules_clear (tasks_t *self)
{
    size_t cursor = 0;
    alarm_disarm (&self->instants.alarm);
    for (space_t *space = map_each (&self->spaces, &cursor); space != NULL;
         space = map_each (&self->spaces, &cursor)) {
        for (size_t i = 0; i < space->schedules_count; i++)
            free_schedule (self, space->schedules[i]);
        free (space->schedules);
        space->schedules = NULL;
        space->schedules_count = space->schedules_capacity = 0;
    }
}
