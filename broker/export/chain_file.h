/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A chain of lines (chain.h) in a growing file: audit.jsonl. One thread. */
#ifndef TASKMQ_EXPORT_CHAIN_FILE_H
#define TASKMQ_EXPORT_CHAIN_FILE_H

#include "bytes.h"
#include "chain.h"
#include "export/line_file.h"

/* Lines that were added stand in `waiting` until they are written. */
typedef struct chain_file {
    line_file_t file;
    chain_head_t head;    /* behind what waits */
    chain_head_t written; /* behind what the file has */
    bytes_t waiting;
} chain_file_t;

/* How the end of the file was found. */
typedef struct chain_file_end {
    off_t torn;   /* bytes of a last line that a crash left half written; cut off */
    bool damaged; /* the last line is none: the file was set aside as PATH.damaged */
    char *first;  /* its first line, the caller's to free; NULL: the file is empty */
    char *last;   /* its last whole line, too */
} chain_file_end_t;

/* Opens the file or makes it. The object is to be closed in every case. */
bool chain_file_open (chain_file_t *out, const char *path, chain_file_end_t *end,
                      char error[LINE_FILE_ERROR_SIZE]);
void chain_file_close (chain_file_t *self);
/* An empty file goes on behind this head. */
void chain_file_begin (chain_file_t *self, const chain_head_t *head);
/* Makes the next line of these members of a JSON object. */
void chain_file_add (chain_file_t *self, const void *members, size_t length);
/* The same, of members that are appended to `waiting` between the two calls; from: what the first
 * one returned. */
size_t chain_file_line_begin (chain_file_t *self);
void chain_file_line_end (chain_file_t *self, size_t from);
/* Writes what was added. False: nothing of it is in the file, and it is forgotten; the next line is
 * the one behind those written. */
bool chain_file_write (chain_file_t *self, char error[LINE_FILE_ERROR_SIZE]);
/* Forgets what was added. */
void chain_file_forget (chain_file_t *self);
bool chain_file_sync (chain_file_t *self, char error[LINE_FILE_ERROR_SIZE]);
/* What is written moves to this path, which nothing may have, and the chain goes on in a file of
 * the old name. */
bool chain_file_turn (chain_file_t *self, const char *to, char error[LINE_FILE_ERROR_SIZE]);

#endif
