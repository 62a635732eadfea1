/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/journal/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

static store_code_t read_at (const scan_source_t *source, void *to, size_t length, uint64_t at,
                             store_error_t *error)
{
    if (source->read (source->context, to, length, at) == 0)
        return STORE_OK;
    return store_fail (error, STORE_ERROR_IO, "%s: cannot be read: %s", source->path,
                       strerror (errno));
}

/* The headers. */

static store_code_t header_fail (const scan_source_t *source, form_found_t first,
                                 form_found_t second, store_error_t *error)
{
    if (first == FORM_NEWER || second == FORM_NEWER)
        return store_fail (error, STORE_ERROR_NEWER, "%s: was written by a newer version",
                           source->path);
    if (first == FORM_NONE && second == FORM_NONE)
        return store_fail (error, STORE_ERROR_FOREIGN, "%s: is not a journal of taskmq",
                           source->path);
    return store_fail (error, STORE_ERROR_CORRUPT,
                       "%s: both its headers are damaged: restore a backup", source->path);
}

/* While one of the two is written the other one is whole; the newer one counts. */
static store_code_t read_headers (form_header_t *out, const scan_source_t *source,
                                  store_error_t *error)
{
    uint8_t bytes[2][FORM_HEADER_BYTES] = {{0}};
    form_header_t headers[2] = {{0}};
    form_found_t found[2];
    for (size_t i = 0; i < 2; i++) {
        if (source->bytes >= i * FORM_BLOCK_BYTES + FORM_HEADER_BYTES) {
            store_code_t code =
                read_at (source, bytes[i], FORM_HEADER_BYTES, i * FORM_BLOCK_BYTES, error);
            if (code != STORE_OK)
                return code;
        }
        found[i] = form_unpack_header (&headers[i], bytes[i]);
    }
    if (found[0] != FORM_WHOLE && found[1] != FORM_WHOLE)
        return header_fail (source, found[0], found[1], error);
    size_t newest = found[0] == FORM_WHOLE ? 0 : 1;
    if (found[0] == FORM_WHOLE && found[1] == FORM_WHOLE &&
        (headers[1].epoch > headers[0].epoch ||
         (headers[1].epoch == headers[0].epoch && headers[1].segments > headers[0].segments)))
        newest = 1;
    *out = headers[newest];
    return STORE_OK;
}

/* The parts. */

static void keep_part (scan_t *self, const form_part_t *head, uint64_t at)
{
    self->parts = memory_grow (self->parts, &self->capacity, self->count, sizeof (*self->parts));
    self->parts[self->count++] = (scan_part_t){*head, at};
    if (head->written > self->written)
        self->written = head->written;
    if (head->last > self->newest)
        self->newest = head->last;
    self->unsynced = self->unsynced || head->unsynced;
}

/* What lies inside a part that is whole is content, whatever it looks like. */
static void scan_segment (scan_t *self, const uint8_t *bytes, uint64_t segment)
{
    uint64_t size = self->run.segment_bytes;
    uint64_t at = form_first_part (segment);
    while (at < size) {
        form_part_t head;
        form_found_t found =
            form_unpack_part (&head, bytes + at, (size_t) (size - at), self->run.salt);
        if (found == FORM_WHOLE && head.generation == self->run.generation &&
            head.epoch == self->run.epoch) {
            keep_part (self, &head, segment * size + at);
            at += form_part_room (head.bytes);
        } else {
            at += FORM_BLOCK_BYTES;
        }
    }
}

static int compare_parts (const void *a, const void *b)
{
    const form_part_t *left = &((const scan_part_t *) a)->head;
    const form_part_t *right = &((const scan_part_t *) b)->head;
    if (left->serial != right->serial)
        return left->serial < right->serial ? -1 : 1;
    if (left->part != right->part)
        return left->part < right->part ? -1 : 1;
    return 0;
}

store_code_t scan_read (scan_t *out, const scan_source_t *source, store_error_t *error)
{
    *out = (scan_t){.parts = NULL};
    store_code_t code = read_headers (&out->run, source, error);
    if (code != STORE_OK)
        return code;
    size_t size = (size_t) out->run.segment_bytes;
    uint64_t segments = source->bytes / size;
    out->is_short = segments < out->run.segments;
    if (!out->is_short)
        segments = out->run.segments;
    uint8_t *bytes = memory_alloc (size);
    for (uint64_t i = 0; code == STORE_OK && i < segments; i++) {
        code = read_at (source, bytes, size, i * size, error);
        if (code == STORE_OK)
            scan_segment (out, bytes, i);
    }
    free (bytes);
    if (code != STORE_OK)
        scan_destroy (out);
    else if (out->count > 1)
        qsort (out->parts, out->count, sizeof (*out->parts), compare_parts);
    return code;
}

void scan_destroy (scan_t *self)
{
    free (self->parts);
    *self = (scan_t){.parts = NULL};
}

/* The log. */

/* Whether all parts of the commit that begins here are there. */
static bool is_complete (const scan_t *scan, size_t first)
{
    const form_part_t *head = &scan->parts[first].head;
    if (head->part != 0 || head->parts > scan->count - first)
        return false;
    for (uint32_t i = 1; i < head->parts; i++) {
        const form_part_t *next = &scan->parts[first + i].head;
        if (next->serial != head->serial || next->part != i)
            return false;
    }
    return true;
}

/* The part before this one, of the same commit, is damaged or missing. Each part is durable before
 * the next one is written, and what is taken back goes from its last part on: so a crash does not
 * do that. Only behind the newest write: what stands in front of that may be overwritten. */
static bool lacks_one_before (const scan_t *scan, size_t i)
{
    const form_part_t *head = &scan->parts[i].head;
    if (head->part == 0 || head->serial != scan->parts[scan->count - 1].head.serial)
        return false;
    const form_part_t *before = i == 0 ? NULL : &scan->parts[i - 1].head;
    return before == NULL || before->serial != head->serial || before->part + 1 != head->part;
}

/* A part tells that the commit before its own, and the parts of its own before it, were durable: it
 * was written after them. */
static void find_gap (scan_log_t *out, const scan_t *scan)
{
    for (size_t i = 0; i < scan->count; i++) {
        const form_part_t *head = &scan->parts[i].head;
        bool proves =
            head->previous > out->last || (head->last > out->last && lacks_one_before (scan, i));
        if (!proves)
            continue;
        if (!out->gap) {
            out->gap = true;
            out->unsynced = head->unsynced;
            out->at = scan->parts[i].at;
        }
        if (head->last > out->upto)
            out->upto = head->last;
    }
}

void scan_log (scan_log_t *out, const scan_t *scan, uint64_t written)
{
    *out = (scan_log_t){.last = written};
    out->commits = memory_zero (scan->count, sizeof (size_t));
    for (size_t i = 0; i < scan->count; i++) {
        const form_part_t *head = &scan->parts[i].head;
        bool follows = out->count == 0 ? head->previous <= written : head->previous == out->last;
        if (head->batches == 0 || head->last <= out->last || !follows || !is_complete (scan, i))
            continue;
        out->commits[out->count++] = i;
        out->last = head->last;
        i += head->parts - 1;
    }
    find_gap (out, scan);
}

void scan_chain (scan_log_t *out, const scan_t *scan, uint64_t last)
{
    *out = (scan_log_t){.last = 0};
    out->commits = memory_zero (scan->count, sizeof (size_t));
    for (size_t i = 0; i < scan->count; i++) {
        const form_part_t *head = &scan->parts[i].head;
        if (head->batches == 0 || head->last <= out->last || head->last > last ||
            !is_complete (scan, i))
            continue;
        if (head->previous != out->last)
            out->count = 0; /* what is in front of it was overwritten */
        out->commits[out->count++] = i;
        out->last = head->last;
        i += head->parts - 1;
    }
    if (out->last != last)
        out->count = 0;
}

void scan_log_destroy (scan_log_t *self)
{
    free (self->commits);
    *self = (scan_log_t){.commits = NULL};
}

store_code_t scan_content (const scan_t *self, const scan_source_t *source, size_t commit,
                           bytes_t *content, store_error_t *error)
{
    for (uint32_t i = 0; i < self->parts[commit].head.parts; i++) {
        const scan_part_t *part = &self->parts[commit + i];
        uint8_t *room = bytes_reserve (content, part->head.bytes);
        if (room == NULL)
            return store_fail (error, STORE_ERROR_IO, "%s: memory is exhausted", source->path);
        store_code_t code =
            read_at (source, room, part->head.bytes, part->at + FORM_PART_BYTES, error);
        if (code != STORE_OK)
            return code;
        content->length += part->head.bytes;
    }
    return STORE_OK;
}

bool scan_next_batch (const bytes_t *content, size_t *at, const uint8_t **body, size_t *bytes)
{
    if (content->length - *at < FORM_LENGTH_BYTES)
        return false;
    *bytes = form_get_length (content->data + *at);
    if (*bytes > content->length - *at - FORM_LENGTH_BYTES)
        return false;
    *body = content->data + *at + FORM_LENGTH_BYTES;
    *at += FORM_LENGTH_BYTES + *bytes;
    return true;
}
