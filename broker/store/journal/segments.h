/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The file that the journal writes: its segments, how they are made, and one write that is durable.
 * Private to this room. */
#ifndef TASKMQ_STORE_SEGMENTS_H
#define TASKMQ_STORE_SEGMENTS_H

#include "store/error.h"
#include "store/journal/device.h"
#include "store/journal/form.h"

typedef struct segments {
    const device_t *device;
    const char *directory;
    char *path;
    int fd; /* -1: closed */
    /* O_DIRECT and RWF_DSYNC: one call writes and syncs. Else through the page cache, with a sync
     * behind each write. */
    bool direct;
    form_header_t run;
    uint64_t *last;  /* of each segment: the last batch in it, 0 for none */
    size_t count;    /* of segments */
    uint8_t *buffer; /* in which parts are put together, aligned to a block */
    size_t buffer_bytes;
} segments_t;

/* device NULL: the files of the machine. */
void segments_init (segments_t *self, const char *directory, const device_t *device);
void segments_destroy (segments_t *self);

/* Sizes of a file of about so many bytes. */
void segments_shape (form_header_t *shape, uint64_t bytes);
/* Opens and locks; *missing: there is none, or an empty one. */
store_code_t segments_open (segments_t *self, bool *missing, store_error_t *error);
/* Makes the file anew, of zeroes and headers, durably, and in the place of one that is there. */
store_code_t segments_make (segments_t *self, const form_header_t *run, store_error_t *error);
/* Begins a start in the file that is there, whose segments have this size and are as many or more:
 * then those beyond go. */
store_code_t segments_begin (segments_t *self, const form_header_t *run, store_error_t *error);
/* Chooses how commits are written. */
store_code_t segments_choose (segments_t *self, bool unsynced, store_error_t *error);
/* One segment more, in two steps. What it consists of: zeroes, durably; nothing that another thread
 * writes meanwhile is touched. FULL keeps nothing. */
store_code_t segments_fill (segments_t *self, store_error_t *error);
/* … and then its header, and the file's that counts it. */
store_code_t segments_add (segments_t *self, store_error_t *error);

/* Room for so many bytes, in whole blocks. */
uint8_t *segments_buffer (segments_t *self, uint64_t bytes);
/* Writes so many bytes of the buffer. */
store_code_t segments_write (segments_t *self, uint64_t bytes, uint64_t at, bool durable,
                             store_error_t *error);
/* Makes the block there empty, durably: no start takes for a part what begins in it. */
store_code_t segments_take_back (segments_t *self, uint64_t at, store_error_t *error);

#endif
