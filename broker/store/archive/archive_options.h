/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What an archive is told by its owner, and what it says to him. */
#ifndef TASKMQ_STORE_ARCHIVE_OPTIONS_H
#define TASKMQ_STORE_ARCHIVE_OPTIONS_H

#include "core/base/shared_limit.h"

#define ARCHIVE_BACKLOG_BYTES_MAX (UINT64_C (1) << 30)

enum { ARCHIVE_SYNC_MS = 1000, ARCHIVE_UNREAD_MS = 60 * 1000 };

/* What it has to say. */
typedef enum archive_word {
    ARCHIVE_BEGUN,   /* there was nothing of this history */
    ARCHIVE_STALLED, /* the directory fails; what comes waits */
    ARCHIVE_BACK,    /* … and it works again */
    ARCHIVE_GAP,     /* something will never be there */
    ARCHIVE_BROKEN,  /* what waited was given up */
    ARCHIVE_BLOB,    /* a blob that batches name is damaged or gone */
    ARCHIVE_UNREAD   /* … is there, and cannot be read: it is tried again */
} archive_word_t;

typedef struct archive_options {
    const char *directory; /* of the archive */
    const char *data;      /* the data directory */
    int64_t keep_ms;       /* segments and blobs go so long after their last change; 0: none do */
    int64_t sync_ms;       /* between two syncs, ARCHIVE_SYNC_MS */
    int64_t unread_ms; /* until a body that could not be read is tried again, ARCHIVE_UNREAD_MS */
    uint64_t backlog_bytes_max;           /* ARCHIVE_BACKLOG_BYTES_MAX */
    const shared_limit_t *free_bytes_min; /* of the data's disk: close to it a backlog goes first;
                                             may be NULL */
    /* Told on any thread. */
    void (*say) (void *context, archive_word_t word, const char *text);
    void *context;
} archive_options_t;

#endif
