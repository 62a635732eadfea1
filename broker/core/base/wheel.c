/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Hashed timing wheel: a slot per granularity, chosen by the time at which an alarm is due. */
#include "core/base/wheel.h"

#define DUE_MAX ((INT64_C (1) << 47) - 1) /* ms: 4,000 years */

void wheel_init (wheel_t *self, int64_t granularity_ms, int64_t now)
{
    *self = (wheel_t){.granularity_ms = granularity_ms, .turned = now / granularity_ms};
    list_init (&self->opened);
    for (size_t i = 0; i < WHEEL_SLOTS; i++)
        list_init (&self->slots[i]);
}

static void disarm_list (node_t *list)
{
    while (list_pop_front (list) != NULL)
        ;
}

void wheel_clear (wheel_t *self)
{
    disarm_list (&self->opened);
    for (size_t i = 0; i < WHEEL_SLOTS; i++)
        disarm_list (&self->slots[i]);
}

static size_t slot_of (int64_t number)
{
    return (size_t) (number & (WHEEL_SLOTS - 1));
}

void wheel_arm (wheel_t *self, alarm_t *alarm, int64_t due)
{
    list_remove (&alarm->node);
    due = due < DUE_MAX ? due : DUE_MAX;
    alarm->due_low = (uint32_t) due;
    alarm->due_high = (int16_t) (due >> 32);
    int64_t number = due / self->granularity_ms + (due % self->granularity_ms > 0);
    if (number <= self->turned)
        number = self->turned + 1;
    size_t slot = slot_of (number);
    list_push_back (&self->slots[slot], &alarm->node);
    self->used[slot / 64] |= UINT64_C (1) << (slot % 64);
}

void alarm_disarm (alarm_t *alarm)
{
    list_remove (&alarm->node);
}

/* All of a slot goes to the opened ones, at the same cost whatever it holds. */
static void open_slot (wheel_t *self, size_t slot)
{
    node_t *head = &self->slots[slot];
    self->used[slot / 64] &= ~(UINT64_C (1) << (slot % 64));
    if (list_is_empty (head))
        return;
    node_t *last = self->opened.prev;
    last->next = head->next;
    head->next->prev = last;
    self->opened.prev = head->prev;
    head->prev->next = &self->opened;
    list_init (head);
}

void wheel_turn (wheel_t *self, int64_t now, node_t *fired, size_t max)
{
    int64_t upto = now / self->granularity_ms;
    int64_t first = self->turned + 1;
    if (upto - first >= WHEEL_SLOTS)
        first = upto - WHEEL_SLOTS + 1; /* a leap: every slot once */
    for (int64_t number = first; number <= upto; number++) {
        size_t slot = slot_of (number);
        if ((self->used[slot / 64] & (UINT64_C (1) << (slot % 64))) != 0)
            open_slot (self, slot);
    }
    if (upto > self->turned)
        self->turned = upto;
    for (size_t looked = 0; looked < max && !list_is_empty (&self->opened); looked++) {
        alarm_t *alarm = LIST_ITEM (self->opened.next, alarm_t, node);
        if (alarm_due (alarm) > now) {
            wheel_arm (self, alarm, alarm_due (alarm)); /* a turn or more ahead */
            continue;
        }
        list_unlink (&alarm->node);
        list_push_back (fired, &alarm->node);
    }
}

int64_t wheel_next (wheel_t *self)
{
    if (!list_is_empty (&self->opened))
        return self->turned * self->granularity_ms;
    for (int64_t number = self->turned + 1; number <= self->turned + WHEEL_SLOTS; number++) {
        size_t slot = slot_of (number);
        uint64_t word = self->used[slot / 64];
        if (word == 0 && slot % 64 == 0) {
            number += 63;
            continue;
        }
        if ((word & (UINT64_C (1) << (slot % 64))) == 0)
            continue;
        if (!list_is_empty (&self->slots[slot]))
            return number * self->granularity_ms;
        self->used[slot / 64] &= ~(UINT64_C (1) << (slot % 64));
    }
    return INT64_MAX;
}
