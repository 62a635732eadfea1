/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A turn as it is stored: one row of kind TURN. */
#ifndef TASKMQ_CORE_TURN_H
#define TASKMQ_CORE_TURN_H

#include "core/data/record.h"
#include "core/data/row.h"
#include "taskmq_types.h"

enum { TURN_PARTS = 4 }; /* content, tool calls, tool log, files: bit n of tmq_turn_part_t */

typedef struct turn {
    uint32_t turn; /* its place, from 1 */
    uint32_t attempt;
    uint32_t number; /* among those of the attempt, from 1 */
    int64_t started_at;
    int64_t duration_ms;
    int64_t told_at;
    uint8_t request_id[16];
    char worker[TMQ_NAME_LENGTH_MAX + 1];
    char agent[TMQ_TURN_AGENT_BYTES_MAX + 1];
    char status[TMQ_TURN_STATUS_BYTES_MAX + 1];
    const uint8_t *parts[TURN_PARTS]; /* borrowed */
    size_t lengths[TURN_PARTS];
} turn_t;

/* What tasks are found by of their turns: an agent, a file. Each is kept, and looked for, as a
 * label with a key that no label has. */
#define TURN_MARK_AGENT "\1agent"
#define TURN_MARK_FILE "\1file"

typedef struct turn_mark {
    const char *key;
    const char *value; /* borrowed, not terminated */
    size_t length;
} turn_mark_t;

static inline bool label_is_mark (const label_t *label)
{
    return label->key[0] == '\1';
}
/* The next mark; *place is 0 before the first one. False: there is no other. */
bool turn_next_mark (const turn_t *turn, size_t *place, turn_mark_t *out);
bool turn_has_mark (const turn_t *turn, const label_t *wanted);

/* The row's key; turn 0: what those of the task begin with. */
void turn_key (row_key_t *out, const char *ns, const uint8_t *id, uint32_t turn);
bool turn_unpack (turn_t *out, const buf_t *body);
size_t turn_bytes (const turn_t *turn); /* of its parts */
buf_t *turn_pack (const turn_t *turn);  /* its row's body */

#endif
