/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What few tasks have. protobuf-c packs and unpacks it: the tasks that have it are few. */
#include "core/data/extra.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "taskmq_types.h"

/* protobuf-c takes memory that ends for a message that is wrong. */
static void *take (void *unused, size_t size)
{
    (void) unused;
    return memory_alloc (size);
}

static void give (void *unused, void *memory)
{
    (void) unused;
    free (memory);
}

static ProtobufCAllocator MEMORY = {take, give, NULL};

buf_t *extra_pack (const Taskmq__Extra *fields)
{
    size_t length = fields == NULL ? 0 : taskmq__extra__get_packed_size (fields);
    if (length == 0)
        return NULL;
    buf_t *packed = buf_new_uninitialised (length);
    taskmq__extra__pack (fields, buf_mutable (packed));
    return packed;
}

/* By hand, for it is asked of each image that is written and of each task that a list looks at. */
static bool number_read (const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *out |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The member of this number, which has a length; NULL: there is none. */
static const uint8_t *member_find (const buf_t *packed, unsigned member, uint64_t *length)
{
    const uint8_t *at = buf_bytes (packed);
    const uint8_t *end = at + buf_length (packed);
    uint64_t tag;
    while (at < end && number_read (&at, end, &tag) && number_read (&at, end, length)) {
        if ((tag & 7) == 0)
            continue;
        if ((tag & 7) != 2 || *length > (uint64_t) (end - at)) /* Extra has no other kinds */
            return NULL;
        if (tag >> 3 == member)
            return at;
        at += *length;
    }
    return NULL;
}

/* Numbers of taskmq.proto. */
enum {
    MEMBER_PARENT = 16,
    MEMBER_PAYLOAD_BLOB = 37,
    MEMBER_RESULT_BLOB = 38,
    MEMBER_ARTIFACTS = 255 /* the last one */
};

bool extra_parent (const buf_t *packed, tmq_id_t *out)
{
    uint64_t length;
    const uint8_t *parent = member_find (packed, MEMBER_PARENT, &length);
    if (parent == NULL || length != sizeof (out->bytes))
        return false;
    memcpy (out->bytes, parent, sizeof (out->bytes));
    return true;
}

static uint64_t blob_bytes (const buf_t *packed, unsigned member)
{
    uint64_t length;
    const uint8_t *at = member_find (packed, member, &length);
    if (at == NULL)
        return 0;
    Taskmq__Blob *blob = taskmq__blob__unpack (&MEMORY, (size_t) length, at);
    uint64_t bytes = blob == NULL ? 0 : blob->bytes;
    taskmq__blob__free_unpacked (blob, &MEMORY);
    return bytes;
}

uint64_t extra_blob_bytes (const buf_t *packed)
{
    return blob_bytes (packed, MEMBER_PAYLOAD_BLOB);
}

static void forget_hash (Taskmq__Blob *blob)
{
    if (blob == NULL)
        return;
    free (blob->hash.data);
    blob->hash = (ProtobufCBinaryData){0, NULL};
}

buf_t *extra_without_hashes (buf_t *packed)
{
    uint64_t length;
    if (packed == NULL || (member_find (packed, MEMBER_PAYLOAD_BLOB, &length) == NULL &&
                           member_find (packed, MEMBER_RESULT_BLOB, &length) == NULL))
        return buf_keep (packed);
    Taskmq__Extra *fields =
        taskmq__extra__unpack (&MEMORY, buf_length (packed), buf_bytes (packed));
    assert (fields != NULL); /* we packed it */
    forget_hash (fields->payload_blob);
    forget_hash (fields->result_blob);
    buf_t *bare = extra_pack (fields);
    taskmq__extra__free_unpacked (fields, &MEMORY);
    return bare;
}

static size_t varint_bytes (uint64_t number)
{
    size_t bytes = 1;
    for (; number >= 0x80; number >>= 7)
        bytes++;
    return bytes;
}

size_t extra_sent_bytes (const buf_t *packed)
{
    uint64_t length;
    const uint8_t *at = packed == NULL ? NULL : member_find (packed, MEMBER_ARTIFACTS, &length);
    if (at == NULL)
        return buf_length (packed);
    const size_t head = varint_bytes ((uint64_t) MEMBER_ARTIFACTS << 3) + varint_bytes (length);
    return (size_t) (at - buf_bytes (packed)) - head;
}

uint64_t extra_bytes_beside (const buf_t *packed)
{
    enum { TURN_BYTES_TAG = 21 << 3, ARTIFACT_BYTES_TAG = 40 << 3 };
    const uint8_t *at = buf_bytes (packed);
    const uint8_t *end = at + buf_length (packed);
    uint64_t tag;
    uint64_t number;
    uint64_t bytes =
        blob_bytes (packed, MEMBER_PAYLOAD_BLOB) + blob_bytes (packed, MEMBER_RESULT_BLOB);
    while (at < end && number_read (&at, end, &tag) && number_read (&at, end, &number)) {
        if (tag == TURN_BYTES_TAG || tag == ARTIFACT_BYTES_TAG)
            bytes += number;
        if ((tag & 7) != 0 && ((tag & 7) != 2 || number > (uint64_t) (end - at)))
            return bytes; /* Extra has no other kinds */
        at += (tag & 7) == 0 ? 0 : number;
    }
    return bytes;
}

bool extra_waits (buf_t *packed)
{
    if (packed == NULL)
        return false;
    bool waits = false;
    Taskmq__Extra *fields =
        taskmq__extra__unpack (&MEMORY, buf_length (packed), buf_bytes (packed));
    for (size_t i = 0; fields != NULL && i < fields->n_after; i++)
        waits = waits || fields->after[i]->status == TMQ_STATUS_NONE;
    taskmq__extra__free_unpacked (fields, &MEMORY);
    return waits;
}

enum { ALLOCATIONS_BYTES = 64 }; /* of a dependency, of an artifact */
enum { DEPENDENCY_BYTES = sizeof (Taskmq__Dependency) + ALLOCATIONS_BYTES };
enum { ARTIFACT_BYTES = sizeof (Taskmq__Artifact) + ALLOCATIONS_BYTES };

/* Packed, and its members each for itself: with what an allocation costs, about twice as much. */
size_t extra_bytes_of (const Taskmq__Extra *fields)
{
    if (fields == NULL)
        return 0;
    return sizeof (extra_t) + sizeof (Taskmq__Extra) + fields->n_after * DEPENDENCY_BYTES +
           fields->n_artifacts * ARTIFACT_BYTES + 3 * taskmq__extra__get_packed_size (fields);
}

extra_t *extra_new (buf_t *packed)
{
    extra_t *self = memory_zero (1, sizeof (*self));
    self->fields = taskmq__extra__unpack (&MEMORY, buf_length (packed), buf_bytes (packed));
    assert (self->fields != NULL); /* we packed it, and the store compares its checksum */
    self->packed = buf_keep (packed);
    return self;
}

void extra_free (extra_t *self)
{
    if (self == NULL)
        return;
    taskmq__extra__free_unpacked (self->fields, &MEMORY);
    buf_drop (self->packed);
    free (self);
}

buf_t *extra_packed (extra_t *self)
{
    if (self == NULL)
        return NULL;
    if (self->changed) {
        buf_drop (self->packed);
        self->packed = extra_pack (self->fields);
        self->changed = false;
    }
    return self->packed;
}

void extra_set_text (char **place, const char *text)
{
    if (*place != (char *) protobuf_c_empty_string)
        free (*place);
    bool none = text == NULL || text[0] == '\0';
    *place = none ? (char *) protobuf_c_empty_string : memory_text (text);
}

Taskmq__Artifact *extra_add_artifact (Taskmq__Extra *fields)
{
    Taskmq__Artifact **all = memory_alloc ((fields->n_artifacts + 1) * sizeof (*all));
    if (fields->n_artifacts > 0)
        memcpy (all, fields->artifacts, fields->n_artifacts * sizeof (*all));
    free (fields->artifacts);
    fields->artifacts = all;
    Taskmq__Artifact *added = memory_alloc (sizeof (*added));
    taskmq__artifact__init (added);
    all[fields->n_artifacts++] = added;
    fields->artifacts_count = (uint32_t) fields->n_artifacts;
    return added;
}

void extra_set_artifact (Taskmq__Artifact *artifact, const Taskmq__Artifact *from)
{
    extra_set_text (&artifact->name, from->name);
    extra_set_text (&artifact->type, from->type);
    free (artifact->hash.data);
    artifact->hash = (ProtobufCBinaryData){from->hash.len, memory_alloc (from->hash.len)};
    memcpy (artifact->hash.data, from->hash.data, from->hash.len);
    artifact->bytes = from->bytes;
    artifact->uploaded = from->uploaded;
    artifact->attempt = from->attempt;
    artifact->attached_at = from->attached_at;
}

void extra_set_blob (Taskmq__Blob **place, const Taskmq__Blob *blob)
{
    taskmq__blob__free_unpacked (*place, &MEMORY);
    *place = NULL;
    if (blob == NULL)
        return;
    *place = memory_alloc (sizeof (**place));
    taskmq__blob__init (*place);
    (*place)->bytes = blob->bytes;
    (*place)->hash = (ProtobufCBinaryData){blob->hash.len, memory_alloc (blob->hash.len)};
    memcpy ((*place)->hash.data, blob->hash.data, blob->hash.len);
}
