/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The carrier's side of an archive: pieces become segments of its directory. One thread. */
#ifndef TASKMQ_STORE_ARCHIVE_CARRIER_H
#define TASKMQ_STORE_ARCHIVE_CARRIER_H

#include "store/archive/archive_blobs.h"
#include "store/archive/archive_options.h"
#include "store/archive/archive_spool.h"

typedef struct archive_carrier {
    const archive_options_t *options;
    archive_spool_t *spool;
    archive_writer_t writer; /* of the open segment */
    /* What the directory has of this generation; 0: nobody has looked since something failed. */
    uint64_t generation;
    bool begun; /* … anything */
    uint64_t epoch;
    uint64_t batch;
    bytes_t bytes;
    archive_unread_t unread;
    int64_t unread_ms;  /* monotonic, when they are tried again; INT64_MAX: there are none */
    int64_t expired_ms; /* monotonic, when the last look for what is old was */
    uint64_t gaps;
} archive_carrier_t;

void carrier_init (archive_carrier_t *self, const archive_options_t *options,
                   archive_spool_t *spool);
void carrier_destroy (archive_carrier_t *self);

/* Carries the pieces before this number with their blobs: then they are on the disk, and gone from
 * the spool. False with errno: what was not carried is there still, and all is tried again. */
bool carrier_run (archive_carrier_t *self, uint64_t before, int64_t mono_ms);
/* Closes the segment when it is large or old enough, or in any case. */
bool carrier_close (archive_carrier_t *self, int64_t mono_ms, bool in_any_case);
/* When there is something to be done without new pieces: the segment is old enough, or bodies that
 * could not be read are to be tried again; INT64_MAX: never. */
int64_t carrier_due_ms (const archive_carrier_t *self);
/* Removes what is older than is kept, now and then. */
void carrier_expire (archive_carrier_t *self, int64_t mono_ms);
/* Something failed: what the directory has will be looked at again. */
void carrier_forget (archive_carrier_t *self);

#endif
