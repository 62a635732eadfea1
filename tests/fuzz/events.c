/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Lines of events.jsonl as somebody may have left them, and anchors as the broker makes them:
 * whatever they say, they are read back. */
#include "chain.h"
#include "export/event_line.h"
#include "fuzz.h"

enum { NUMBERS = 4, NUMBER_BYTES = 8 };

static const int64_t TIMES_MAX = INT64_C (253402300799999); /* 9999-12-31 */

static void parse_lines (const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    while (data < end) {
        event_place_t place;
        const uint8_t *newline = memchr (data, '\n', (size_t) (end - data));
        const uint8_t *stop = newline != NULL ? newline : end;
        char *line = fuzz_copy (data, (size_t) (stop - data));
        bool good = event_line_parse (&place, line, (size_t) (stop - data));
        HOLDS (!good || place.pos <= INT64_MAX);
        HOLDS (!good || place.generation == 0 || place.seq == 0);
        HOLDS (memchr (place.ns, '\0', sizeof (place.ns)) != NULL);
        free (line);
        data = stop + 1;
    }
}

static uint64_t number_of (const uint8_t *data, size_t place)
{
    uint64_t number = 0;
    for (size_t i = 0; i < NUMBER_BYTES; i++)
        number = number << 8 | data[place * NUMBER_BYTES + i];
    return number;
}

static void read_back (const bytes_t *members, event_place_t *place)
{
    bytes_t line = BYTES_INIT;
    chain_head_t head = {0};
    chain_head_t read;
    chain_link (&line, &head, members->data, members->length);
    HOLDS (!line.failed && line.length > 0 && line.data[line.length - 1] == '\n');
    HOLDS (chain_follow (&read, (const char *) line.data, line.length - 1) && read.n == 1);
    HOLDS (event_line_parse (place, (const char *) line.data, line.length - 1));
    bytes_free (&line);
}

static void make_lines (const uint8_t *data)
{
    event_place_t place;
    bytes_t members = BYTES_INIT;
    uint64_t pos = number_of (data, 1) >> 2;
    event_anchor_t anchor = {
        .generation = number_of (data, 0) | 1,
        .pos = pos,
        .why = (event_anchor_why_t) (number_of (data, 2) % (EVENT_ANCHOR_ROLLBACK + 1)),
        .at = 1 + (int64_t) (number_of (data, 2) % (uint64_t) TIMES_MAX), /* 0 would be none */
        .before_generation = number_of (data, 3),
        .before_pos = number_of (data, 3) >> 2};
    event_line_anchor (&members, &anchor);
    read_back (&members, &place);
    HOLDS (place.generation == anchor.generation && place.pos == pos && place.at == anchor.at);
    bytes_clear (&members);
    event_line_gap (&members, pos / 2, pos);
    read_back (&members, &place);
    HOLDS (place.generation == 0 && place.seq == 0 && place.pos == pos);
    bytes_free (&members);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    parse_lines (data, size);
    if (size >= NUMBERS * NUMBER_BYTES)
        make_lines (data);
    return 0;
}
