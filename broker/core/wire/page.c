/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Pages of tasks. */
#include "core/wire/page.h"

#include "core/wire/pack.h"

/* What may stand before the first task of a message: a page has one task at least. */
enum { HEAD_BYTES_MAX = 64 };

size_t pack_page (bytes_t *out, uint32_t field, record_t *const *records, size_t count,
                  size_t first, filter_copy_t *filter, access_t *access, const clocks_t *clocks)
{
    int64_t expiry_ms = clocks_expiry_ms (clocks);
    size_t i = first;
    for (; i < count; i++) {
        if ((filter != NULL && !filter_takes_record (filter, records[i])) ||
            record_is_over (records[i], expiry_ms))
            continue;
        size_t before = out->length;
        bool bare = !access_sees (access, records[i]->queue, records[i]->owner, NULL, RIGHT_BODY);
        pack_task (out, field, records[i], record_phase (records[i], clocks->wall_ms), bare,
                   (pack_bodies_t){0, 0});
        if (out->length > ENVELOPE_FILL_BYTES && before > HEAD_BYTES_MAX) {
            out->length = before;
            break;
        }
    }
    return i;
}
