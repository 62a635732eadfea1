/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A hashed timing wheel: arming, disarming and firing cost the same whatever the number of alarms.
 * An alarm fires at the end of its slot, so up to one granularity late and never early. One that
 * lies more than a turn ahead is looked at once per turn. */
#ifndef TASKMQ_CORE_WHEEL_H
#define TASKMQ_CORE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/list.h"

enum { WHEEL_SLOTS = 4096 };

/* Member of what is to be woken; zeroed memory is a disarmed alarm. */
typedef struct alarm {
    node_t node;
    uint32_t due_low; /* ms on the wheel's clock: alarm_due () */
    int16_t due_high;
    uint8_t kind; /* the owner's: what the alarm is a member of */
} alarm_t;
static inline int64_t alarm_due (const alarm_t *alarm)
{
    return (int64_t) alarm->due_high * (INT64_C (1) << 32) + alarm->due_low;
}

typedef struct wheel {
    int64_t granularity_ms;
    int64_t turned;                  /* number of the newest slot that was emptied */
    uint64_t used[WHEEL_SLOTS / 64]; /* slots that may hold alarms */
    node_t opened;                   /* alarms of slots whose time has come, not looked at yet */
    node_t slots[WHEEL_SLOTS];
} wheel_t;

/* A turn takes WHEEL_SLOTS * granularity_ms. now: on the clock that the wheel shall follow. */
void wheel_init (wheel_t *self, int64_t granularity_ms, int64_t now);
/* Disarms all: what they are members of may be freed in any order then. */
void wheel_clear (wheel_t *self);
/* Arms, or arms anew, for the time due. */
void wheel_arm (wheel_t *self, alarm_t *alarm, int64_t due);
void alarm_disarm (alarm_t *alarm); /* whichever wheel it is in; does nothing to a disarmed one */
static inline bool alarm_is_armed (const alarm_t *alarm)
{
    return node_is_linked (&alarm->node);
}
/* Moves alarms that are due to the end of the list fired; they count as armed until popped. Looks
 * at no more than max alarms; wheel_next says that it wants to be turned again at once if there
 * are more. */
void wheel_turn (wheel_t *self, int64_t now, node_t *fired, size_t max);
/* When the wheel wants to be turned next; INT64_MAX when no alarm is armed. */
int64_t wheel_next (wheel_t *self);

#endif
