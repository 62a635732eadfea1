/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Schedules: what is submitted again and again. Each is a row of its kind, and lives in memory with
 * an alarm for its next instant; what happens then is decided above (requests/schedules.c). An
 * instant is decided once: the row that says so goes with the batch of the task. */
#ifndef TASKMQ_CORE_SCHEDULE_H
#define TASKMQ_CORE_SCHEDULE_H

#include "core/base/calendar.h"
#include "core/tasks/tasks.h"
#include "taskmq.pb-c.h"

enum {
    SCHEDULES_SPACE_MAX = 10000,            /* of one namespace */
    SCHEDULES_BYTES_MAX = 64 * 1024 * 1024, /* of all, with their payloads */
    SCHEDULE_LATE_MS = 60000,               /* an instant that is later was missed */
    SCHEDULE_SALT_BYTES = 16,
    SCHEDULE_MISSED_MAX = 100, /* so many of them are made up for at a time */
    INSTANT_BYTES = 4096,      /* of a schedule with its payload that one instant takes along */
    INSTANTS_AT_ONCE = 256     /* that are decided without a pause, of all schedules */
};

/* Schedule.overlap and Schedule.missed. */
typedef enum schedule_overlap { OVERLAP_ALLOW, OVERLAP_SKIP, OVERLAP_CANCEL } schedule_overlap_t;
typedef enum schedule_missed { MISSED_SKIP, MISSED_ONE, MISSED_ALL } schedule_missed_t;

struct schedule {
    Taskmq__Schedule *stored; /* as its row has it; its own */
    space_t *space;
    name_t *owner;
    alarm_t alarm;
    calendar_t calendar;
    const zone_t *zone; /* NULL: it is not known any more */
    const char *broken; /* why it makes no tasks until it is put again; NULL: it is not */
    occurrence_t last;  /* decided, or where it begins */
    occurrence_t next;
    bool has_next;
    int64_t make_up_ms; /* instants up to this time were missed, and are made up for */
    int64_t held_ms;    /* mono; what came since then waits, or waited, for the clock or for its
                         * turn; 0: nothing */
    node_t waiting;     /* in the list of those that wait for their turn */
    uint32_t cost;      /* as so many instants one of it counts */
    uint32_t refused;   /* times in a row that the broker could not take its task */
    uint64_t daily;     /* so many of them in a day */
    size_t bytes;       /* of its row */
};

typedef void schedule_tell_t (void *context, const char *ns, const char *name, const char *why);

/* A zone by its name, empty for UTC; NULL: there is none. */
const zone_t *schedule_zone (const tasks_t *self, const char *name);
/* Takes a definition that was judged; the schedule begins now unless it has begun already. Puts the
 * row. An older one of this name is replaced. */
schedule_t *schedule_put (tasks_t *self, space_t *space, Taskmq__Schedule *stored);
schedule_t *schedule_find (const space_t *space, const char *name);
/* The first one behind a name, in the order of bytes; NULL: none. */
schedule_t *schedule_after (const space_t *space, const char *name);
/* It was changed or has decided: the row goes with the open batch, and the alarm is armed. */
void schedule_changed (tasks_t *self, schedule_t *schedule);
void schedule_remove (tasks_t *self, schedule_t *schedule);
/* A row of a start: key and body. */
void schedule_load (tasks_t *self, const row_t *row);
/* The alarm for the next instant; at the latest in a minute, because the clock may leap. */
void schedule_arm (tasks_t *self, schedule_t *schedule);
/* ... so long from now at the earliest. */
void schedule_arm_later (tasks_t *self, schedule_t *schedule, int64_t ms);
/* What one instant of a schedule with so many bytes counts, and its instants of a day. */
uint32_t schedule_cost (size_t bytes);
uint64_t schedule_daily (const calendar_t *calendar, uint32_t cost);
/* One of its instants may be decided now. Else it waits until its turn comes. first: it has waited
 * for longest. */
bool schedule_has_turn (tasks_t *self, schedule_t *schedule, bool first);
/* The next one whose turn has come; NULL: none. */
schedule_t *schedule_next_turn (tasks_t *self);
/* Goes on behind an occurrence. */
void schedule_goes_on (schedule_t *schedule, const occurrence_t *behind);
/* Passes over the instants up to a time, but for the newest ones; the row is the caller's. */
void schedule_leave_out (const tasks_t *self, schedule_t *schedule, int64_t upto_ms, size_t kept);
/* The id of the task of an instant: the same one whenever it is asked for. The salt of the schedule
 * keeps others from guessing it. */
tmq_id_t schedule_task_id (const schedule_t *schedule, const occurrence_t *instant);
/* Calls tell for each that is broken. */
void schedules_tell_broken (const tasks_t *self, schedule_tell_t *tell, void *context);
/* Frees all of them. */
void schedules_clear (tasks_t *self);

#endif
