/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The directory `blobs` of the data: what is too large for a row. A file is named by the
 * BLAKE2b-256 of its bytes, "ab/cdef…"; `uploads` has those that are on their way.
 *
 *     uploads/NAME       bytes as they come. NAME is a hash of who uploads, and one of that, the
 *                        namespace and the hash, so nobody learns what others have by asking for it
 *     ab/cdef…           the same file under its second name, once its bytes are the hash's and
 *                        both are on the disk
 *
 * The first name stays for an hour: whoever uploaded it has it, also after a restart. A crash
 * leaves an upload, which goes on where it ended, and never a file whose bytes are not those of its
 * name.
 * Nothing but depot_collect removes a blob, and it removes only what stood still for an hour.
 *
 * The bytes of an upload go to the disk while they come (blob_write.h), so that the sync at its end
 * is short and the journal never waits for a gigabyte. What has to be read again is read in turns.
 *
 * Not thread-safe: one thread has it. No file is open between two calls. */
#ifndef TASKMQ_BLOBS_DEPOT_H
#define TASKMQ_BLOBS_DEPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/vault.h"

typedef struct depot depot_t;

enum {
    DEPOT_UPLOADS_MAX = 256,         /* under way, … */
    DEPOT_UPLOADS_OF_ONE_MAX = 16,   /* … of one identity, … */
    DEPOT_UPLOADS_OF_PEER_MAX = 128, /* … of one and of all the owners it acts for */
    /* When there is no place, one that stood still for so long gives its own: whoever left in the
     * middle said nothing, and another one should not wait for long. Its bytes stay, and it goes on
     * where it ended. */
    DEPOT_YIELD_MS = 10 * 1000,
    DEPOT_STILL_MS = 60 * 1000, /* … and its bytes when there is no room for another one's */
    DEPOT_IDLE_MS = 60 * 60 * 1000,
    DEPOT_TURN_BYTES = 2 * 1024 * 1024, /* that one call reads again */
    DEPOT_SLICE_MAX = 256,              /* blobs that one look brings */
    DEPOT_BUCKETS = 256,
    DEPOT_TEXT_SIZE = 256,
    DEPOT_RETRY_MS = 1000
};

typedef struct depot_limits {
    uint64_t blob_bytes;     /* of one, 16 MiB */
    uint64_t disk_bytes;     /* of all, uploads included, 16 GiB */
    uint64_t free_bytes_min; /* of the disk */
} depot_limits_t;

typedef struct depot_stats {
    uint64_t blobs;
    uint64_t bytes;   /* of blobs, of uploads under way as they will be, of others as they are */
    uint64_t uploads; /* under way */
    uint64_t parked;  /* … that stand still, … */
    uint64_t dropped; /* … and that lost their bytes, because others needed the room */
    uint64_t collected;
    uint64_t stored; /* blobs in the vault, … */
    uint64_t stored_bytes;
    uint64_t errors;
} depot_stats_t;

/* How much whoever uploads may have. */
typedef struct depot_share {
    uint64_t has;  /* bytes that count to him already, without those of this upload and of others */
    uint64_t most; /* … with all uploads */
} depot_share_t;

/* Whose upload it is, and of what. */
typedef struct depot_upload {
    const char *identity;
    const char *ns;
    const uint8_t *hash; /* TMQ_BLOB_HASH_BYTES */
    uint64_t bytes;
    const depot_share_t *share; /* of depot_begin; NULL: any number */
} depot_upload_t;

/* What became of a call; code OK: nothing is wrong. */
typedef struct depot_word {
    tmq_code_t code;
    uint32_t retry_after_ms;
    char text[DEPOT_TEXT_SIZE];
    uint64_t offset; /* the next byte that is wanted */
    bool whole;      /* the blob is there */
    bool over_quota; /* LIMIT: of the share */
    bool damaged;    /* a file was found damaged just now, whatever the code: it is to be told */
    bool more;       /* nothing is decided yet: the same call again, behind those of others */
} depot_word_t;

/* Opens the directory, which it makes with mode 0700. NULL with an errno in *error. */
depot_t *depot_new (const char *directory, const depot_limits_t *limits, int *error);
void depot_free (depot_t **self); /* accepts a NULL object */
void depot_configure (depot_t *self, const depot_limits_t *limits);
/* A place behind the files (core/data/vault.h), which must live longer; NULL: none, which is so at
 * first. Nobody hears that a blob is there before it is there, too, and what is not in a file is
 * read from it, and so is what has other bytes there. What calls below may then wait for it, and be
 * answered UNAVAILABLE. */
void depot_use (depot_t *self, const vault_t *vault);

/* Begins an upload or goes on with it; what is on the disk of it is read again, once.
 *
 * TOO_LARGE: more than limits/blob_bytes. LIMIT: the disk has as many blobs as it may, or who asks
 * has, with his uploads. Before it is refused, what stood still for a minute goes. OVERLOADED:
 * who asks, or all together, have as many uploads under way as they may have: to be asked again.
 * STORE_FULL: the disk has no room for it beside what is still to come of the others. */
void depot_begin (depot_t *self, const depot_upload_t *upload, int64_t mono_ms, depot_word_t *out);
/* The bytes at an offset. Those that are there count as taken; where there is a hole before them
 * nothing is, and out->offset says from where on they are wanted. The last byte makes the blob. */
void depot_chunk (depot_t *self, const depot_upload_t *upload, uint64_t offset,
                  const uint8_t *bytes, size_t length, int64_t mono_ms, depot_word_t *out);
/* Takes an upload back: its place, its room and its bytes are free at once.
 *
 * NO_BLOB: there is no such upload. CONFLICT: all of it has come; a blob goes only when nobody
 * names it. What is being read or made a blob just now is waited for. */
void depot_drop (depot_t *self, const depot_upload_t *upload, depot_word_t *out);
/* At most limit bytes of a blob of so many bytes. NO_BLOB names it: it is missing, or damaged.
 *
 * With a vault behind it the whole file is summed in turns before its first part, and not again
 * while it stays as it is (summed.h); if it is damaged the vault is read in its place. Without one
 * whoever reads finds out. */
void depot_read (depot_t *self, const uint8_t *hash, uint64_t bytes, uint64_t offset, uint8_t *to,
                 size_t limit, size_t *length, depot_word_t *out);

/* A blob that stood still for an hour. */
typedef struct depot_left {
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    int64_t at;     /* when it was touched last, as its file says, in ns; or as the vault says */
    uint64_t bytes; /* of the file */
    bool stored;    /* it is the vault's, and not the file */
} depot_left_t;

/* The next slice of the directory: at most DEPOT_SLICE_MAX blobs. Uploads that stood still for as
 * long are removed on the way. */
void depot_look (depot_t *self, int64_t mono_ms, depot_left_t *out, size_t *count);
/* The next slice of the vault. */
void depot_look_stored (depot_t *self, depot_left_t *out, size_t *count);
/* Removes the blob, here or there, unless it was touched meanwhile. Nobody may name it: the caller
 * knows. */
void depot_collect (depot_t *self, const depot_left_t *left);

/* Removes a part of what the vault has without a name. True: there is more. */
bool depot_sweep (depot_t *self);

/* A place in a walk over the files; all zero: the beginning. */
typedef struct depot_place {
    unsigned bucket;                     /* DEPOT_BUCKETS: the end */
    bool within;                         /* the directory, behind … */
    uint8_t behind[TMQ_BLOB_HASH_BYTES]; /* the hash that was passed last */
} depot_place_t;
/* The next files that the vault lacks, at most DEPOT_SLICE_MAX, of a part of the directory, in the
 * order of their hashes: what is removed meanwhile hides no other. Another code than OK: the place
 * is where it was. */
tmq_code_t depot_lacking (depot_t *self, depot_place_t *place, depot_left_t *out, size_t *count);
/* A turn of putting such a file there; one at a time. NO_BLOB: it is damaged, or cannot be read.
 * UNAVAILABLE: not now, which may also be for want of file descriptors. OK without more and whole:
 * it is gone. */
void depot_bring (depot_t *self, const depot_left_t *left, depot_word_t *out);

depot_stats_t depot_stats (const depot_t *self);

#endif
