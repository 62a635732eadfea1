/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the depot is made of. Private to this directory. */
#ifndef TASKMQ_BLOBS_DEPOT_PARTS_H
#define TASKMQ_BLOBS_DEPOT_PARTS_H

#include "blobs/blob_files.h"
#include "blobs/blob_write.h"
#include "blobs/depot.h"
#include "blobs/keeping.h"
#include "blobs/parked.h"
#include "blobs/summed.h"

enum {
    HASH_BYTES = TMQ_BLOB_HASH_BYTES,
    OWNER_BYTES = 16,
    PIECE_BYTES = 256 * 1024, /* that are read at once */
    NAME_SIZE = BLOB_HEX_SIZE + 8
};

#define UPLOADS "uploads"

/* What is to be done next. */
typedef enum stage {
    READING,   /* what the disk has of it */
    FILLING,   /* bytes come */
    COMPARING, /* all have come and are right; somebody else brought the same before */
    PUBLISHING,
    KEEPING /* it is a blob, and goes into the vault */
} stage_t;

/* An upload under way. */
typedef struct upload {
    char name[BLOB_HEX_SIZE];   /* of its file */
    uint8_t owner[OWNER_BYTES]; /* hash of the identity */
    uint8_t peer[OWNER_BYTES];  /* … of who acts for it, or its own */
    uint8_t hash[HASH_BYTES];
    uint64_t bytes;
    uint64_t offset;
    uint64_t charged; /* of the depot's bytes: all of its own, or none while it may be a blob's */
    uint64_t owed;    /* bytes of a new blob that nobody was told of yet */
    blob_sent_t sent;
    uint64_t compared;
    stage_t stage;
    bool turning; /* whoever brings it comes back for the next turn without being asked */
    int64_t used_ms;
    crypto_generichash_state sum; /* of the upload; of the other's file while they are compared */
    keeping_t keeping;
} upload_t;

/* A file that is summed in turns, since it is read. */
typedef struct summing {
    bool under_way;
    uint8_t hash[HASH_BYTES];
    uint64_t bytes;
    uint64_t at;
    struct stat file;
    crypto_generichash_state sum;
} summing_t;

struct depot {
    int directory;
    int uploads_at; /* the directory of them */
    depot_limits_t limits;
    depot_stats_t stats;
    upload_t *uploads;
    size_t uploads_count;
    parked_t parked;
    depot_place_t looked; /* up to there; DEPOT_BUCKETS: the uploads are next */
    blob_writer_t writer;
    const vault_t *vault; /* NULL: there is none */
    uint8_t *room;        /* for what goes there */
    keeping_t brought;    /* which has no upload; of no bytes: none */
    summed_t summed;
    summing_t summing;
    bool listed; /* the vault's blobs, up to … */
    uint8_t listed_hash[HASH_BYTES];
    uint8_t piece[PIECE_BYTES];
};

/* What is said, and what counts (depot_life.c). */
__attribute__ ((format (printf, 3, 4))) void depot_refuse (depot_word_t *out, tmq_code_t code,
                                                           const char *format, ...);
/* What the vault says to a turn. */
void depot_refuse_vault (depot_t *self, depot_word_t *out, tmq_code_t code,
                         const vault_word_t *word);
/* What the disk says: an errno. */
void depot_refuse_error (depot_t *self, depot_word_t *out, const char *what, int error);
uint64_t depot_min (uint64_t a, uint64_t b);
void depot_take_off (depot_t *self, uint64_t bytes);
/* -1 with errno. */
int depot_open_bucket (const depot_t *self, const char *hex, bool make);
/* Adds what a file has from the offset on, up to there. 0 or an errno. */
int depot_sum_file (depot_t *self, int fd, uint64_t *offset, uint64_t bytes,
                    crypto_generichash_state *sum);
bool depot_sum_is (const crypto_generichash_state *sum, const uint8_t *hash);

/* Places and room (depot_places.c). */
upload_t *depot_upload_find (depot_t *self, const char *name);
/* One more; NULL: there is no place or no room for it, as out says. */
upload_t *depot_upload_new (depot_t *self, const depot_upload_t *of, const char *name,
                            int64_t mono_ms, depot_word_t *out);
/* Its bytes are the depot's from now on. False: there is no room; out says so. */
bool depot_charge (depot_t *self, upload_t *upload, depot_word_t *out);
void depot_upload_forget (depot_t *self, upload_t *upload);
/* Its file stays: who begins it again goes on with it. */
void depot_upload_park (depot_t *self, upload_t *upload);
/* Nothing of it stays: what it has are not the bytes of the hash, or not for certain. */
void depot_discard (depot_t *self, upload_t *upload);
/* Of the file. The first half says whose it is. */
void depot_name_of (char out[BLOB_HEX_SIZE], const depot_upload_t *of);
/* What the disk has of an upload that is no blob. */
uint64_t depot_bytes_alone (const depot_t *self, const char *name);
/* The file of no upload under way, or of one that is not charged. */
void depot_remove_file (depot_t *self, const char *name);
/* Its bytes count already. */
void depot_park_file (depot_t *self, const char *name, uint64_t bytes, int64_t since_ms);

#endif
