/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An upload that is taken back. What has two names is a blob, which others may name: of that
 * nothing is touched. */
#include "blobs/depot_parts.h"

static void answer_whole (depot_word_t *out)
{
    depot_refuse (out, TMQ_CONFLICT, "all of it has come; it stays until nobody needs it");
}

/* One that nobody brings more of just now, or none. */
static void drop_still (depot_t *self, const char *name, depot_word_t *out)
{
    struct stat info;
    if (!blob_file_find (self->uploads_at, name, &info))
        depot_refuse (out, TMQ_NO_BLOB, "there is no such upload");
    else if (info.st_nlink > 1)
        answer_whole (out);
    else
        depot_remove_file (self, name);
}

void depot_drop (depot_t *self, const depot_upload_t *of, depot_word_t *out)
{
    char name[BLOB_HEX_SIZE];
    *out = (depot_word_t){.code = TMQ_OK};
    depot_name_of (name, of);
    upload_t *upload = depot_upload_find (self, name);
    if (upload == NULL) {
        drop_still (self, name, out);
    } else if (upload->bytes != of->bytes) {
        depot_refuse (out, TMQ_NO_BLOB, "there is no such upload");
    } else if (upload->turning) {
        out->more = true; /* else its next turn would begin it again */
    } else if (upload->stage <= COMPARING) {
        depot_discard (self, upload);
    } else { /* it may be a blob: only its place is free */
        depot_upload_park (self, upload);
        answer_whole (out);
    }
}
