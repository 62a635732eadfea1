/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tests of blobs stand on: a depot in a directory of its own, an upload, and a disk whose
 * operations fail, or are the last thing that happens, when they are told to. */
#ifndef TASKMQ_TEST_BLOBS_STAGE_H
#define TASKMQ_TEST_BLOBS_STAGE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "blobs/depot.h"
#include "store_support.h"

enum { KIB = 1024, PIECE = 256 * KIB, BYTES = 600 * KIB, CRASHED = 77 };

typedef struct faults {
    unsigned long done;  /* operations */
    unsigned long at;    /* which; 0: none */
    int error;           /* with which it fails; 0: a crash */
    unsigned long dirty; /* writes since the last sync of a file */
    bool lost;           /* a sync of a file failed */
} faults_t;

/* Of the depot, as setup and reopen open it; `upload` is of `contents`, whose hash is `hash`. */
extern const depot_limits_t LIMITS;
extern char place[64];
extern char directory[96];
extern depot_t *depot;
extern uint8_t contents[BYTES];
extern uint8_t hash[TMQ_BLOB_HASH_BYTES];
extern depot_upload_t upload;

extern faults_t *faults; /* shared with the children */
/* What the disk was asked to write, in bytes, and what it was waited for. */
extern uint64_t began_back;
extern uint64_t waited_back;
extern int write_back_error; /* the next one fails */
extern uint64_t free_bytes;  /* of the disk; 0: what it has */
extern bool refuses_direct;  /* the file system takes no O_DIRECT */
extern unsigned long direct_writes;

/* Counts an operation. True: it is to fail, with errno set. */
bool fails (void);

void open_depot (const depot_limits_t *limits);
void reopen (void);
int setup (void **state);
int teardown (void **state);

/* Until something is decided, whatever the turns. */
depot_word_t begin_at (const depot_upload_t *of, int64_t mono_ms);
depot_word_t begin (const depot_upload_t *of);
depot_word_t chunk (const depot_upload_t *of, uint64_t offset, size_t length);
/* From where it is wanted to its end, or to the first refusal. */
depot_word_t put_rest (const depot_upload_t *of);
tmq_code_t read_at (uint64_t offset, uint8_t *to, size_t limit, size_t *length);
void expect_contents (void);
void blob_path (char out[300]);
/* The one file in uploads. */
bool upload_path (char out[500]);
/* As if it had stood still for two hours. */
void age (const char *path);
/* All that one round of looks brings. */
size_t look (depot_left_t *newest);

/* Once, before all tests. */
void stage_begin (void);

/* Past the faults. */
ssize_t __real_pwrite (int fd, const void *bytes, size_t length, off_t at);

#endif
