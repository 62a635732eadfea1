/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A growing file of whole lines, mode 0600.
 *
 * A line is there wholly or not at all: what a crash or a full disk left behind of a last line is
 * cut off before anything is appended. */
#ifndef TASKMQ_EXPORT_LINE_FILE_H
#define TASKMQ_EXPORT_LINE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    LINE_FILE_ERROR_SIZE = 512,
    /* No line of ours is longer: one of tasks.jsonl has at most two bodies of 64 KiB, of which each
     * byte may take six. */
    LINE_FILE_LINE_MAX = 4 * 1024 * 1024,
    /* What a system may still have to write: half a minute's worth of lines, and more. */
    LINE_FILE_UNSYNCED_MAX = 256 * 1024 * 1024
};

typedef struct line_file {
    char *path;
    int fd;        /* -1: closed, or could not be opened behind a rename */
    off_t length;  /* of the whole lines */
    bool overhang; /* a failed append may have left bytes behind them */
} line_file_t;

/* Opens the file or makes it; what is in it counts as whole lines until line_file_read_last. The
 * object is to be closed in every case. */
bool line_file_open (line_file_t *out, const char *path, char error[LINE_FILE_ERROR_SIZE]);
void line_file_close (line_file_t *self);
/* Reads the last whole line, without its newline: *line belongs to the caller, NULL if there is
 * none. It is empty when the file does not end with lines of at most LINE_FILE_LINE_MAX bytes, so
 * that somebody else has written it. *torn: bytes that stand behind it; they count no more and go
 * with the next line_file_cut or line_file_append. */
bool line_file_read_last (line_file_t *self, char **line, size_t *length, off_t *torn,
                          char error[LINE_FILE_ERROR_SIZE]);
/* *at: the first byte of value 0 in the last LINE_FILE_UNSYNCED_MAX bytes, or -1. No line has one:
 * there a loss of power took what was not on the disk yet, and left what came behind it. */
bool line_file_find_hole (const line_file_t *self, off_t *at, char error[LINE_FILE_ERROR_SIZE]);
/* Cuts the file behind the last whole line before `at`. */
bool line_file_cut_at (line_file_t *self, off_t at, char error[LINE_FILE_ERROR_SIZE]);
/* Cuts off what stands behind the whole lines. */
bool line_file_cut (line_file_t *self, char error[LINE_FILE_ERROR_SIZE]);
/* Appends whole lines: all of them or, with `error`, none. May be repeated. */
bool line_file_append (line_file_t *self, const void *lines, size_t length,
                       char error[LINE_FILE_ERROR_SIZE]);
/* Renames the file to its name with this ending, or with .2 and so on behind it if that is taken,
 * and begins it anew. */
bool line_file_set_aside (line_file_t *self, const char *ending, char error[LINE_FILE_ERROR_SIZE]);
/* Reads `length` bytes from an offset within the whole lines. */
bool line_file_read (const line_file_t *self, off_t from, void *out, size_t length,
                     char error[LINE_FILE_ERROR_SIZE]);
/* The file becomes another one that lies beside it, which is closed then: both are under one name
 * at each moment, and what `by` has is on the disk before it takes the name. */
bool line_file_replace (line_file_t *self, line_file_t *by, char error[LINE_FILE_ERROR_SIZE]);
/* What was appended is on the disk. */
bool line_file_sync (const line_file_t *self, char error[LINE_FILE_ERROR_SIZE]);
/* Renames the file to this path and begins it anew; both names are on the disk then. */
bool line_file_turn (line_file_t *self, const char *to, char error[LINE_FILE_ERROR_SIZE]);
/* Somebody removed the file, put another one in its place, or changed its length: what is appended
 * would be lost to readers, or lines are missing. */
bool line_file_is_changed (const line_file_t *self);

#endif
