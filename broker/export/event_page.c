/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: what cannot be read is passed over. A table says where its next row is in a page that
 * may be the damaged one, so the way is found by asking for positions farther and farther on. */
#include "export/event_page.h"

enum { LEAPS = 40 /* each twice as far as the one before: beyond every position there is */ };

static store_code_t ask (read_t *out, store_reader_t *reader, uint64_t after_pos, size_t limit)
{
    *out = (read_t){.kind = READ_BLOCKS, .after_pos = after_pos, .limit = limit};
    return store_reader_run (reader, out);
}

/* Whether the page behind this position can be read. */
static store_code_t probe (store_reader_t *reader, uint64_t after_pos)
{
    read_t read;
    store_code_t code = ask (&read, reader, after_pos, 1);
    read_clear (&read);
    return code;
}

/* A position behind the damage, if it can be had, and the nearest one. */
static store_code_t find_end (uint64_t *out, store_reader_t *reader, uint64_t bad)
{
    store_code_t code = STORE_ERROR_DAMAGED;
    uint64_t good = bad;
    for (unsigned leap = 0; code == STORE_ERROR_DAMAGED && leap < LEAPS; leap++) {
        bad = good;
        good += UINT64_C (1) << leap;
        code = probe (reader, good);
    }
    while (code == STORE_OK && good - bad > 1) {
        uint64_t middle = bad + (good - bad) / 2;
        code = probe (reader, middle);
        if (code == STORE_OK)
            good = middle;
        if (code == STORE_ERROR_DAMAGED) {
            bad = middle;
            code = STORE_OK;
        }
    }
    *out = good;
    return code;
}

store_code_t event_page_read (read_t *out, store_reader_t *reader, uint64_t after_pos, size_t limit,
                              bool *passed)
{
    uint64_t end;
    *passed = false;
    store_code_t code = ask (out, reader, after_pos, limit);
    if (code != STORE_ERROR_DAMAGED || find_end (&end, reader, after_pos) != STORE_OK)
        return code;
    read_clear (out);
    *passed = true;
    return ask (out, reader, end, limit);
}
