/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files under the journal, as a table of functions: the machine's, or those of a test that
 * loses power. Like the calls of the system, they return -1 and set errno. */
#ifndef TASKMQ_STORE_DEVICE_H
#define TASKMQ_STORE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct device device_t;
struct device {
    /* flags: those of open(2); a link is never followed. */
    int (*open) (const device_t *self, const char *path, int flags);
    void (*close) (const device_t *self, int fd);
    /* EWOULDBLOCK: somebody else has it open. */
    int (*lock) (const device_t *self, int fd);
    int64_t (*size) (const device_t *self, int fd);
    /* All of it: fewer bytes are an error. */
    int (*read) (const device_t *self, int fd, void *to, size_t length, uint64_t at);
    /* durable: these bytes are on the disk when it returns 0 (RWF_DSYNC). */
    int (*write) (const device_t *self, int fd, const void *bytes, size_t length, uint64_t at,
                  bool durable);
    int (*sync) (const device_t *self, int fd);
    int (*truncate) (const device_t *self, int fd, uint64_t bytes);
    /* Past the page cache from now on (O_DIRECT), or through it again. */
    int (*direct) (const device_t *self, int fd, bool on);
    int (*rename) (const device_t *self, const char *from, const char *to);
    int (*remove) (const device_t *self, const char *path);
    int (*sync_directory) (const device_t *self, const char *path);
};

extern const device_t device_files;

#endif
