/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
#include "export/event_witness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/events.h"

/* The block's event at this position. */
static bool find_event (const event_block_t *block, uint64_t pos, packed_event_t *out)
{
    event_walk_t walk = event_walk (buf_bytes (block->list), buf_length (block->list));
    while (event_walk_next (&walk, out))
        if (block->first_pos + (out->seq - block->first_seq) == pos)
            return true;
    return false;
}

event_found_t event_witness_compare (const event_place_t *place, const event_block_t *block)
{
    packed_event_t event;
    static const tmq_id_t none;
    if (place->seq == 0 || !find_event (block, place->pos, &event))
        return EVENT_FOUND_UNKNOWN;
    const void *id = event.task_id != NULL ? (const void *) event.task_id : &none;
    bool same = event.seq == place->seq && strcmp (block->ns, place->ns) == 0 &&
                memcmp (id, &place->id, sizeof (none)) == 0;
    return same ? EVENT_FOUND_SAME : EVENT_FOUND_OTHER;
}

/* What the database has where the last line of the file stands. */
static store_code_t look_up (event_found_t *out, const event_place_t *place, store_t *store,
                             char *why)
{
    store_reader_t *reader = NULL;
    store_error_t error = {STORE_OK, ""};
    read_t read = {.kind = READ_BLOCKS, .after_pos = place->pos - 1, .limit = 1};
    *out = EVENT_FOUND_UNKNOWN;
    if (place->pos == 0 || place->seq == 0)
        return STORE_OK;
    store_code_t code = store_reader_open (&reader, store, &error);
    if (code != STORE_OK) {
        snprintf (why, EVENT_WITNESS_TEXT_SIZE, "%.250s", error.text);
        return code;
    }
    store_reader_be_patient (reader);
    code = store_reader_run (reader, &read);
    if (code != STORE_OK)
        snprintf (why, EVENT_WITNESS_TEXT_SIZE, "%.250s", read.error_text);
    else if (read.blocks_count > 0)
        *out = event_witness_compare (place, &read.blocks[0]);
    read_clear (&read);
    store_reader_close (&reader);
    return code;
}

event_verdict_t event_witness_judge (const event_place_t *place, event_found_t found,
                                     uint64_t generation, uint64_t last_pos,
                                     const event_turned_t *turned,
                                     char why[EVENT_WITNESS_TEXT_SIZE])
{
    bool same = place->generation == generation;
    why[0] = '\0';
    if (place->generation == 0)
        return EVENTS_BEGIN;
    if (!same && event_turned_has (turned, generation))
        snprintf (why, EVENT_WITNESS_TEXT_SIZE,
                  "the database has the history %016" PRIx64 " that the broker had left",
                  generation);
    else if (!same && place->pos > 0 && last_pos == 0) /* what is restored has some */
        snprintf (why, EVENT_WITNESS_TEXT_SIZE,
                  "the database is an empty one, events.jsonl and the files before it have events "
                  "up to %" PRIu64,
                  place->pos);
    else if (same && place->pos > last_pos)
        snprintf (why, EVENT_WITNESS_TEXT_SIZE,
                  "the database ends at event %" PRIu64
                  " (by its pos), events.jsonl and the files before it have them up to %" PRIu64,
                  last_pos, place->pos);
    else if (same && found == EVENT_FOUND_OTHER)
        snprintf (why, EVENT_WITNESS_TEXT_SIZE,
                  "the database has another event %" PRIu64 " (by its pos) than events.jsonl",
                  place->pos);
    return why[0] != '\0' ? EVENTS_AHEAD : same ? EVENTS_GO_ON : EVENTS_OTHER;
}

store_code_t event_witness (event_verdict_t *out, uint64_t *pos, const event_files_t *files,
                            const event_files_end_t *end, store_t *store, const boot_t *boot,
                            char why[EVENT_WITNESS_TEXT_SIZE])
{
    const event_place_t *place = &end->place;
    event_found_t found = EVENT_FOUND_UNKNOWN;
    bool ahead = place->pos > boot->last_pos;
    why[0] = '\0';
    *pos = ahead ? boot->last_pos : place->pos;
    *out = EVENTS_BEGIN;
    if (place->generation == 0)
        return STORE_OK;
    store_code_t code = ahead ? STORE_OK : look_up (&found, place, store, why);
    if (code != STORE_OK)
        return code;
    if (found == EVENT_FOUND_OTHER)
        *pos = 0; /* nobody knows how far both are the same */
    *out = event_witness_judge (place, found, boot->generation, boot->last_pos,
                                event_files_turned (files), why);
    return STORE_OK;
}
