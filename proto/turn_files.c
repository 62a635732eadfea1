/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "turn_files.h"

#include <string.h>

#include "ids.h"
#include "wire.h"

enum { FILES_FILES = 1, FILE_OP = 1, FILE_PATH = 2 }; /* of taskmq.proto */

bool turn_file_read (turn_file_t *out, const uint8_t **at, const uint8_t *end)
{
    wire_field_t field;
    *out = (turn_file_t){TMQ_FILE_OP_NONE, "", 0};
    if (!wire_read_field (&field, at, end) || field.number != FILES_FILES ||
        field.type != WIRE_BYTES)
        return false;
    const uint8_t *inner = field.bytes;
    const uint8_t *inner_end = field.bytes + field.length;
    while (inner < inner_end) {
        if (!wire_read_field (&field, &inner, inner_end))
            return false;
        if (field.number == FILE_OP && field.type == WIRE_VARINT)
            out->op =
                field.value <= TMQ_FILE_OP_DELETE ? (tmq_file_op_t) field.value : TMQ_FILE_OP_NONE;
        if (field.number == FILE_PATH && field.type == WIRE_BYTES) {
            out->path = (const char *) field.bytes;
            out->path_bytes = field.length;
        }
    }
    return true;
}

const char *turn_files_flaw (const uint8_t *bytes, size_t length, size_t *count)
{
    *count = 0;
    if (length == 0) /* bytes may be NULL then */
        return NULL;
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + length;
    turn_file_t file;
    while (at < end) {
        if (!turn_file_read (&file, &at, end))
            return "files: malformed";
        if (file.op == TMQ_FILE_OP_NONE)
            return "files: what is done to a file is read, write or delete";
        if (file.path_bytes == 0 || file.path_bytes > TMQ_TURN_PATH_BYTES_MAX)
            return "files: a path has 1 to 1024 bytes";
        if (!utf8_is_valid (file.path, file.path_bytes) ||
            memchr (file.path, '\0', file.path_bytes) != NULL)
            return "files: a path is not UTF-8";
        if (++*count > TMQ_TURN_FILES_MAX)
            return "files: at most 256";
    }
    return NULL;
}

void turn_file_append (bytes_t *out, tmq_file_op_t op, const char *path)
{
    bytes_mark_t mark = bytes_open (out, FILES_FILES);
    bytes_append_uint (out, FILE_OP, op);
    bytes_append_string (out, FILE_PATH, path);
    bytes_close (out, mark);
}

static const char *const OP_TEXTS[] = {
#define X(number, NAME, text) [number] = (text),
    TMQ_FILE_OP_MAP (X)
#undef X
};

const char *file_op_text (unsigned op)
{
    return op < sizeof OP_TEXTS / sizeof *OP_TEXTS ? OP_TEXTS[op] : NULL;
}

tmq_file_op_t file_op_parse (const char *text)
{
    for (unsigned i = 1; i < sizeof OP_TEXTS / sizeof *OP_TEXTS; i++)
        if (strcmp (text, OP_TEXTS[i]) == 0)
            return (tmq_file_op_t) i;
    return TMQ_FILE_OP_NONE;
}
