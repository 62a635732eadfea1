/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Schedules, as clients put and read them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/link.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/fire.h"
#include "core/requests/quota.h"
#include "core/requests/room.h"
#include "core/tasks/entries.h"
#include "core/tasks/journal.h"

enum {
    CHANGES_KEPT = 8, /* whose repeats are known */
    DAY_S = 86400
};

/* Reading. */

static bool is_seen (call_t *call, const schedule_t *schedule, unsigned rights)
{
    return access_sees (&call->link->access, schedule->stored->task->queue,
                        name_text (schedule->owner), NULL, rights);
}

/* The schedule that the request names; NULL when it was answered. */
static schedule_t *find (call_t *call, const char *name, unsigned rights)
{
    schedule_t *schedule = schedule_find (call->link->space, name);
    if (schedule == NULL || !is_seen (call, schedule, RIGHT_READ | RIGHT_OBSERVE | rights)) {
        reply_code (call, TMQ_NOT_FOUND, "no such schedule");
        return NULL;
    }
    if (!is_seen (call, schedule, rights)) {
        deny (call);
        reply_code (call, TMQ_DENIED, "no right over this schedule");
        return NULL;
    }
    return schedule;
}

/* The next instants, in a list that the caller has. */
static size_t coming (const schedule_t *schedule, uint64_t *out, size_t max)
{
    size_t count = 0;
    occurrence_t at = schedule->next;
    const Taskmq__Schedule *stored = schedule->stored;
    bool more = schedule->has_next;
    while (more && count < max) {
        out[count++] = (uint64_t) at.at_ms;
        more = count < max &&
               calendar_next (&schedule->calendar, schedule->zone, (int64_t) stored->created_at,
                              &at, &at) &&
               (stored->until == 0 || at.at_ms <= (int64_t) stored->until);
    }
    return count;
}

/* As it is shown: without what only the store needs, and what the link may not see. */
static Taskmq__Schedule shown (const schedule_t *schedule, uint64_t *list, size_t max, bool body)
{
    Taskmq__Schedule out = *schedule->stored;
    out.payload = (ProtobufCBinaryData){0};
    out.request_ids = (ProtobufCBinaryData){0};
    out.salt = (ProtobufCBinaryData){0};
    if (schedule->broken != NULL)
        out.last_error = (char *) schedule->broken;
    else if (node_is_linked (&schedule->waiting))
        out.last_error =
            (char *) "it waits for its turn: more instants have come than are decided in a second";
    out.n_coming = coming (schedule, list, max);
    out.coming = list;
    out.body = body ? (uint32_t) schedule->stored->payload.len : 0;
    return out;
}

static void answer (call_t *call, const schedule_t *schedule, size_t max)
{
    bytes_mark_t mark;
    uint64_t list[TMQ_SCHEDULE_COMING_MAX];
    const ProtobufCBinaryData *payload = &schedule->stored->payload;
    bool body = payload->len > 0 && max > 0 && is_seen (call, schedule, RIGHT_BODY);
    bytes_t *out = reply_open (call->requests, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    Taskmq__Schedule message = shown (schedule, list, max, body);
    bytes_append_message (out, TASKMQ__REPLY__BODY_SCHEDULE, &message.base);
    buf_t *bytes = body ? buf_new (payload->data, payload->len) : NULL;
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), bytes);
    buf_drop (bytes);
}

void on_schedule_show (call_t *call)
{
    const Taskmq__ScheduleName *request = call->request->schedule_show;
    schedule_t *schedule = find (call, request->name, RIGHT_READ | RIGHT_OBSERVE);
    if (schedule != NULL)
        answer (call, schedule, request->coming == 0 ? 1 : request->coming);
}

void on_schedule_list (call_t *call)
{
    bytes_mark_t mark;
    uint64_t list[1];
    const Taskmq__ScheduleList *request = call->request->schedule_list;
    if (quota_answered (call, quota_read (call->requests, call->link)))
        return;
    size_t left = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
    bytes_t *out = reply_open (call->requests, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_SCHEDULE_PAGE);
    schedule_t *schedule = schedule_after (call->link->space, request->after);
    for (; schedule != NULL;
         schedule = schedule_after (call->link->space, schedule->stored->name)) {
        if (!is_seen (call, schedule, RIGHT_READ | RIGHT_OBSERVE))
            continue;
        Taskmq__Schedule message = shown (schedule, list, 1, false);
        if (!reply_page_add (out, &message.base, &left))
            break;
    }
    bytes_close (out, page);
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}

/* Putting. */

/* The same request once more: it was done, and may have been undone since. */
static bool is_repeat (const call_t *call, const schedule_t *schedule)
{
    const ProtobufCBinaryData *done = &schedule->stored->request_ids;
    const ProtobufCBinaryData *id = &call->request->request_id;
    for (size_t at = 0; id->len > 0 && at + id->len <= done->len; at += id->len)
        if (memcmp (done->data + at, id->data, id->len) == 0)
            return true;
    return false;
}

/* The changes that an older definition had, and this one. */
static ProtobufCBinaryData changes_with (const call_t *call, const Taskmq__Schedule *old)
{
    const ProtobufCBinaryData *id = &call->request->request_id;
    const uint8_t *before = old == NULL ? NULL : old->request_ids.data;
    size_t length = old == NULL ? 0 : old->request_ids.len;
    size_t over = length >= CHANGES_KEPT * id->len ? length - (CHANGES_KEPT - 1) * id->len : 0;
    ProtobufCBinaryData out = {length - over + id->len, NULL};
    if (out.len == 0)
        return out;
    out.data = memory_alloc (out.len);
    if (length > over)
        memcpy (out.data, before + over, length - over);
    if (id->len > 0)
        memcpy (out.data + length - over, id->data, id->len);
    return out;
}

/* False with a text if it would never make a task. */
static bool has_instants (const call_t *call, const Taskmq__Schedule *schedule,
                          const calendar_t *calendar, const zone_t *zone, const char **text)
{
    int64_t now_ms = call->requests->base->clocks.wall_ms;
    occurrence_t now = calendar_at (zone, now_ms);
    occurrence_t first;
    *text = "calendar: no such moment ever comes";
    if (!calendar_next (calendar, zone, now_ms, &now, &first))
        return false;
    *text = "until: no moment comes before it";
    return schedule->until == 0 || first.at_ms <= (int64_t) schedule->until;
}

static bool refuse_definition (call_t *call, const Taskmq__Schedule *schedule)
{
    char text[CALENDAR_ERROR_SIZE + 32];
    char error[CALENDAR_ERROR_SIZE];
    const char *never;
    calendar_t calendar;
    const zone_t *zone = schedule_zone (call->requests->tasks, schedule->zone);
    if (!calendar_parse (&calendar, schedule->calendar, error))
        snprintf (text, sizeof (text), "calendar: %s", error);
    else if (zone == NULL)
        snprintf (text, sizeof (text), "zone: there is no time zone %s here", schedule->zone);
    else if (!has_instants (call, schedule, &calendar, zone, &never))
        snprintf (text, sizeof (text), "%s", never);
    else
        return false;
    reply_code_at_once (call, TMQ_INVALID, text, 0);
    return true;
}

/* There is none of this name, or it may be replaced. */
static bool refuse_name (call_t *call, const schedule_t *old)
{
    const Taskmq__SchedulePut *request = call->request->schedule_put;
    if (old == NULL)
        return false;
    if (!is_seen (call, old, RIGHT_READ | RIGHT_OBSERVE) || !is_seen (call, old, RIGHT_CANCEL) ||
        !link_is (call->link, old->stored->owner))
        reply_code (call, TMQ_CONFLICT, "the name is in use");
    else if (!request->replace)
        reply_code (call, TMQ_CONFLICT, "a schedule of this name is there already");
    else
        return false;
    return true;
}

/* It would come too often, beside the others. */
static bool refuse_rate (call_t *call, const schedule_t *old, size_t bytes)
{
    const tasks_t *tasks = call->requests->tasks;
    const engine_config_t *config = &call->requests->base->config;
    char error[CALENDAR_ERROR_SIZE];
    calendar_t calendar;
    if (!calendar_parse (&calendar, call->request->schedule_put->schedule->calendar, error))
        return false;
    uint64_t daily = schedule_daily (&calendar, schedule_cost (bytes));
    uint64_t less = old == NULL ? 0 : old->daily;
    if (daily <= less)
        return false;
    if (call->link->space->schedules_daily - less + daily > DAY_S * config->space_instants_rate)
        reply_limit (call, "instants a second of the namespace's schedules",
                     config->space_instants_rate);
    else if (tasks->instants.daily - less + daily > DAY_S * config->instants_rate)
        reply_limit (call, "instants a second of all schedules", config->instants_rate);
    else
        return false;
    return true;
}

static bool refuse_more (call_t *call, const schedule_t *old)
{
    const tasks_t *tasks = call->requests->tasks;
    const Taskmq__Schedule *schedule = call->request->schedule_put->schedule;
    size_t bytes = taskmq__schedule__get_packed_size (schedule) + schedule->task->payload_bytes;
    if (old == NULL && call->link->space->schedules_count >= SCHEDULES_SPACE_MAX) {
        reply_limit (call, "schedules of the namespace", SCHEDULES_SPACE_MAX);
        return true;
    }
    if (tasks->schedules_bytes + bytes > SCHEDULES_BYTES_MAX) {
        reply_limit (call, "bytes of schedules", SCHEDULES_BYTES_MAX);
        return true;
    }
    return refuse_rate (call, old, bytes);
}

static ProtobufCBinaryData copy (const void *data, size_t length)
{
    ProtobufCBinaryData out = {length, NULL};
    if (length > 0) {
        out.data = memory_alloc (length);
        memcpy (out.data, data, length);
    }
    return out;
}

/* The definition alone, with what the broker adds. */
static Taskmq__Schedule *stored_of (call_t *call, const schedule_t *old)
{
    const Taskmq__Schedule *given = call->request->schedule_put->schedule;
    Taskmq__Schedule definition = TASKMQ__SCHEDULE__INIT;
    definition.name = given->name;
    definition.calendar = given->calendar;
    definition.zone = given->zone;
    definition.task = given->task;
    definition.overlap = given->overlap;
    definition.missed = given->missed;
    definition.until = given->until;
    definition.paused = given->paused;
    size_t bytes = taskmq__schedule__get_packed_size (&definition);
    uint8_t *packed = memory_alloc (bytes);
    taskmq__schedule__pack (&definition, packed);
    Taskmq__Schedule *stored = taskmq__schedule__unpack (NULL, bytes, packed);
    free (packed);
    if (stored == NULL)
        abort (); /* out of memory, as everywhere in the broker */
    uint8_t salt[SCHEDULE_SALT_BYTES];
    secrets_take (&call->requests->base->secrets, salt, sizeof (salt));
    stored->salt = copy (salt, sizeof (salt));
    stored->owner = memory_text (name_text (call->link->identity));
    stored->created_at = (uint64_t) call->requests->base->clocks.wall_ms;
    stored->payload = copy (call->body, given->task->payload_bytes);
    stored->request_ids = changes_with (call, old == NULL ? NULL : old->stored);
    if (old != NULL) {
        stored->version = old->stored->version;
        stored->fired = old->stored->fired;
        stored->skipped = old->stored->skipped;
        stored->last_task = copy (old->stored->last_task.data, old->stored->last_task.len);
    }
    return stored;
}

void on_schedule_put (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Schedule *given = call->request->schedule_put->schedule;
    schedule_t *old = schedule_find (call->link->space, given->name);
    if (old != NULL && link_is (call->link, old->stored->owner) && is_repeat (call, old)) {
        answer (call, old, 1);
        return;
    }
    if (!access_queue (&call->link->access, given->task->queue, RIGHT_SUBMIT)) {
        deny (call);
        reply_code (call, TMQ_DENIED, "no right to submit to this queue");
        return;
    }
    if (new_is_refused (call) || refuse_definition (call, given) || refuse_name (call, old) ||
        refuse_more (call, old))
        return;
    self->tasks->open.inputs++;
    schedule_t *schedule = schedule_put (self->tasks, call->link->space, stored_of (call, old));
    fire_event (self, schedule, TMQ_EVENT_CHANGED, name_text (call->link->identity), "");
    answer (call, schedule, 1);
}

/* Pause, resume, remove. */

static void remember (call_t *call, schedule_t *schedule)
{
    ProtobufCBinaryData changes = changes_with (call, schedule->stored);
    free (schedule->stored->request_ids.data);
    schedule->stored->request_ids = changes;
}

static void set_paused (call_t *call, const char *name, bool paused)
{
    requests_t *self = call->requests;
    /* A pause is what helps against a schedule that fills the broker. */
    if (!paused && room_refused_at_once (call))
        return;
    schedule_t *schedule = find (call, name, RIGHT_CANCEL);
    if (schedule == NULL)
        return;
    if (schedule->broken != NULL) {
        reply_code (call, TMQ_INVALID, schedule->broken);
        return;
    }
    if (schedule->stored->paused != paused && !is_repeat (call, schedule)) {
        schedule->stored->paused = paused;
        if (!paused) { /* what came meanwhile was nobody's to make up for */
            occurrence_t now = calendar_at (schedule->zone, self->base->clocks.wall_ms);
            if (now.at_ms > schedule->last.at_ms) /* a clock that went back decides none twice */
                schedule_goes_on (schedule, &now);
        }
        remember (call, schedule);
        self->tasks->open.inputs++;
        schedule_changed (self->tasks, schedule);
        fire_event (self, schedule, TMQ_EVENT_CHANGED, name_text (call->link->identity),
                    paused ? "paused" : "resumed");
    }
    answer (call, schedule, 1);
}

void on_schedule_pause (call_t *call)
{
    set_paused (call, call->request->schedule_pause->name, true);
}

void on_schedule_resume (call_t *call)
{
    set_paused (call, call->request->schedule_resume->name, false);
}

void on_schedule_remove (call_t *call)
{
    requests_t *self = call->requests;
    space_t *space = call->link->space;
    const uint8_t *request_id = call->request->request_id.data;
    if (entries_removed_by (space, request_id) != 0) {
        reply_code (call, TMQ_OK, NULL);
        return;
    }
    schedule_t *schedule = find (call, call->request->schedule_remove->name, RIGHT_CANCEL);
    if (schedule == NULL)
        return;
    self->tasks->open.inputs++;
    fire_event (self, schedule, TMQ_EVENT_REMOVED, name_text (call->link->identity), "");
    schedule_remove (self->tasks, schedule);
    entries_note_removal (self->tasks, space, request_id, 1);
    reply_code (call, TMQ_OK, NULL);
}
