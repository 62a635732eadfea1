/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The audit file as somebody may have left it, and lines with any texts as the broker makes them:
 * a chain of our own is always good, and a byte changed in it is always noticed. */
#include "chain.h"
#include "fuzz.h"
#include "json.h"

static void check_lines (const uint8_t *data, size_t size)
{
    chain_check_t check = {0};
    const uint8_t *end = data + size;
    while (data < end) {
        const uint8_t *newline = memchr (data, '\n', (size_t) (end - data));
        const uint8_t *stop = newline != NULL ? newline : end;
        uint8_t *line = fuzz_copy (data, (size_t) (stop - data));
        chain_check_line (&check, line, (size_t) (stop - data));
        free (line);
        data = stop + 1;
    }
    chain_check_end (&check);
}

static void link_line (bytes_t *out, chain_head_t *head, const void *text, size_t size)
{
    bytes_t members = BYTES_INIT;
    json_writer_t writer = {&members, false};
    json_write_key (&writer, "detail");
    json_write_string (&writer, text, size);
    chain_link (out, head, members.data, members.length);
    bytes_free (&members);
}

static chain_fault_t check_chain (const bytes_t *lines)
{
    chain_check_t check = {0};
    size_t at = 0;
    for (size_t i = 0; i < lines->length; i++) {
        if (lines->data[i] != '\n')
            continue;
        chain_check_line (&check, lines->data + at, i - at);
        at = i + 1;
    }
    chain_check_end (&check);
    return check.fault;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    enum { TEXT_MAX = 200, LINES = 2 };
    bytes_t lines = BYTES_INIT;
    chain_head_t head = {0};
    size_t length = size < TEXT_MAX ? size : TEXT_MAX;
    check_lines (data, size);
    for (int i = 0; i < LINES; i++)
        link_line (&lines, &head, data, length);
    HOLDS (!lines.failed && head.n == LINES);
    HOLDS (check_chain (&lines) == CHAIN_GOOD);
    if (size >= 2) {
        size_t at = ((size_t) data[0] << 8 | data[1]) % (lines.length / LINES);
        if (lines.data[at] != '\n') {
            lines.data[at] = lines.data[at] == 'x' ? 'y' : 'x';
            HOLDS (check_chain (&lines) != CHAIN_GOOD);
        }
    }
    bytes_free (&lines);
    return 0;
}
