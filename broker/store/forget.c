/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/forget.h"

void forget_init (forget_t *self, const forget_calls_t *calls, void *context)
{
    self->calls = calls;
    self->context = context;
    self->looked_pos = 0;
    self->spaces_count = 0;
}

void forget_begin_anew (forget_t *self)
{
    self->looked_pos = 0;
}

/* Events. */

static store_code_t delete_block (forget_t *self, const forget_block_t *block,
                                  forget_totals_t *totals, store_error_t *error)
{
    store_code_t code = self->calls->remove_block (self->context, block, error);
    if (code == STORE_OK)
        totals->event_bytes -=
            block->bytes < totals->event_bytes ? block->bytes : totals->event_bytes;
    return code;
}

/* The newest block of a namespace tells its last sequence: it goes with the namespace alone. */
static store_code_t delete_space (forget_t *self, const forget_block_t *block,
                                  forget_totals_t *totals, store_error_t *error)
{
    bool needed;
    store_code_t code = self->calls->is_needed (self->context, block->ns, &needed, error);
    if (code != STORE_OK || needed)
        return code;
    forgotten_space_t *space = &self->spaces[self->spaces_count];
    *space = (forgotten_space_t){.last_seq = block->first_seq + (uint64_t) block->count - 1};
    code = delete_block (self, block, totals, error);
    if (code == STORE_OK)
        code = self->calls->remove_space (self->context, block->ns, space->name, error);
    self->spaces_count++;
    return code;
}

static store_code_t delete_old (forget_t *self, forget_block_t *block, forget_totals_t *totals,
                                store_error_t *error)
{
    store_code_t code = STORE_OK;
    if (self->calls->look_later != NULL)
        code = self->calls->look_later (self->context, block, error);
    if (code != STORE_OK)
        return code;
    return block->later ? delete_block (self, block, totals, error)
                        : delete_space (self, block, totals, error);
}

static store_code_t forget_events (forget_t *self, const forget_limits_t *limits,
                                   forget_totals_t *totals, bool *more, store_error_t *error)
{
    forget_block_t blocks[FORGET_SLICE];
    size_t count;
    store_code_t code =
        self->calls->blocks (self->context, self->looked_pos, blocks, &count, error);
    bool ended = code != STORE_OK || count < FORGET_SLICE;
    for (size_t i = 0; code == STORE_OK && i < count; i++) {
        uint64_t last_pos = (uint64_t) (blocks[i].pos + blocks[i].count - 1);
        bool due = blocks[i].at < limits->events_before_ms ||
                   totals->event_bytes > limits->events_bytes_max;
        if (!due || last_pos > limits->exported_pos) {
            ended = true;
            break;
        }
        code = delete_old (self, &blocks[i], totals, error);
        self->looked_pos = blocks[i].pos;
    }
    if (ended || code != STORE_OK)
        self->looked_pos = 0; /* the next round begins at the oldest again */
    *more = !ended;
    return code;
}

/* Tombstones. */

static store_code_t forget_tombstones (forget_t *self, const forget_limits_t *limits,
                                       forget_totals_t *totals, bool *more, store_error_t *error)
{
    forget_tombstone_t list[FORGET_SLICE];
    size_t found = 0;
    size_t count = 0;
    store_code_t code = self->calls->tombstones (self->context, list, &found, error);
    *more = false;
    if (code != STORE_OK)
        return code;
    for (; count < found; count++) {
        bool due = list[count].at < limits->tombstones_before_ms ||
                   totals->tombstones - count > limits->tombstones_max;
        if (!due)
            break;
    }
    *more = count == FORGET_SLICE;
    if (count == 0)
        return STORE_OK;
    totals->tombstones -= count;
    return self->calls->remove_tombstones (self->context, list[count - 1].age, error);
}

store_code_t forget_slice (forget_t *self, const forget_limits_t *limits, forget_totals_t *totals,
                           bool *more, store_error_t *error)
{
    self->spaces_count = 0;
    bool more_events = false;
    bool more_tombstones = false;
    store_code_t code = forget_events (self, limits, totals, &more_events, error);
    if (code == STORE_OK)
        code = forget_tombstones (self, limits, totals, &more_tombstones, error);
    *more = more_events || more_tombstones;
    return code;
}

/* The floor. */

const char FORGET_FLOOR_KEY[4] = "seq";

row_t forget_raise_floor (forgotten_t *forgotten)
{
    for (size_t i = 0; i < forgotten->count; i++)
        if (forgotten->upto_seq < forgotten->list[i].last_seq)
            forgotten->upto_seq = forgotten->list[i].last_seq;
    row_key_t body = ROW_KEY_INIT;
    row_key_number (&body, forgotten->upto_seq);
    return row_make (ROW_KIND_FORGOTTEN, FORGET_FLOOR_KEY, sizeof (FORGET_FLOOR_KEY), body.bytes,
                     body.length);
}
