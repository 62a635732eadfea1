/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* Whether the database still has what events.jsonl says that it had. The file is written by nobody
 * but a broker that had committed its events: a database that ends before it has lost work. */
#ifndef TASKMQ_EXPORT_EVENT_WITNESS_H
#define TASKMQ_EXPORT_EVENT_WITNESS_H

#include "export/event_files.h"
#include "store/store.h"

typedef enum event_verdict {
    EVENTS_GO_ON, /* the file's end stands in the database */
    EVENTS_BEGIN, /* there are no lines */
    EVENTS_OTHER, /* the database has another history than the lines at the end */
    EVENTS_AHEAD  /* … or lacks events that the file has, with `why`: also one that is empty */
} event_verdict_t;

enum { EVENT_WITNESS_TEXT_SIZE = 256 };

/* What the database has where the file's last line stands. */
typedef enum event_found { EVENT_FOUND_UNKNOWN, EVENT_FOUND_SAME, EVENT_FOUND_OTHER } event_found_t;

event_found_t event_witness_compare (const event_place_t *place, const event_block_t *block);
/* The verdict on a database with this history that ends at last_pos; turned: the files before. */
event_verdict_t event_witness_judge (const event_place_t *place, event_found_t found,
                                     uint64_t generation, uint64_t last_pos,
                                     const event_turned_t *turned,
                                     char why[EVENT_WITNESS_TEXT_SIZE]);

/* *pos: behind which the file goes on. `why` also has the text of an error of the store. */
store_code_t event_witness (event_verdict_t *out, uint64_t *pos, const event_files_t *files,
                            const event_files_end_t *end, store_t *store, const boot_t *boot,
                            char why[EVENT_WITNESS_TEXT_SIZE]);

#endif
