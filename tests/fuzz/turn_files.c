/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of a turn, as a worker packed them. What is taken has files that are whole, and packed
 * anew they are the same. */
#include "turn_files.h"

#include <string.h>

#include "fuzz.h"
#include "ids.h"

static void judge (const turn_file_t *file)
{
    HOLDS (file->op >= TMQ_FILE_OP_READ && file->op <= TMQ_FILE_OP_DELETE);
    HOLDS (file_op_parse (file_op_text (file->op)) == file->op);
    HOLDS (file->path_bytes >= 1 && file->path_bytes <= TMQ_TURN_PATH_BYTES_MAX);
    HOLDS (utf8_is_valid (file->path, file->path_bytes));
    HOLDS (memchr (file->path, '\0', file->path_bytes) == NULL);
}

static void pack (bytes_t *out, const turn_file_t *file)
{
    char path[TMQ_TURN_PATH_BYTES_MAX + 1];
    memcpy (path, file->path, file->path_bytes);
    path[file->path_bytes] = '\0';
    turn_file_append (out, file->op, path);
}

/* Reads as far as there are files. Returns how many; taken: the flaw was looked for before. */
static size_t read_all (const uint8_t *at, const uint8_t *end, bool taken, bytes_t *out)
{
    size_t count = 0;
    turn_file_t file;
    for (const uint8_t *before = at; at < end && turn_file_read (&file, &at, end); before = at) {
        HOLDS (at > before && at <= end);
        HOLDS (file.path_bytes == 0 ||
               (file.path >= (const char *) before && file.path + file.path_bytes <= (char *) at));
        count++;
        if (taken) {
            judge (&file);
            pack (out, &file);
        }
    }
    HOLDS (!taken || at == end);
    return count;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    size_t count;
    size_t again;
    bytes_t packed = BYTES_INIT;
    uint8_t *copy = fuzz_copy (data, size);
    bool taken = turn_files_flaw (copy, size, &count) == NULL;
    size_t files = read_all (copy, copy + size, taken, &packed);
    HOLDS (!taken || files == count);
    if (taken && count > 0) {
        HOLDS (count <= TMQ_TURN_FILES_MAX && packed.length <= size);
        HOLDS (turn_files_flaw (packed.data, packed.length, &again) == NULL && again == count);
    }
    bytes_free (&packed);
    free (copy);
    return 0;
}
