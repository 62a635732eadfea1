/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads the record of deeds in pages, beside the thread that writes it: whole lines only. */
#ifndef TASKMQ_AUDIT_PAGES_H
#define TASKMQ_AUDIT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum {
    PAGES_READ_MAX = 4 * 1024 * 1024 /* bytes of files looked at for one page */
};

typedef struct page_query {
    uint32_t file;   /* the number of the file, or the number that it will get; 0: begin */
    uint64_t offset; /* in it */
    const char *kind;
    const char *actor; /* NULL or empty: all */
    int64_t since;     /* ms; with file 0: from the first line since then; 0: the newest lines */
    size_t limit;      /* lines */
    size_t bytes_max;  /* of the page */
} page_query_t;

typedef struct page {
    bytes_t lines; /* the caller's to free */
    uint32_t file; /* where to go on */
    uint64_t offset;
    bool more;           /* there is more now */
    const char *problem; /* of a file that cannot be read, which is `file` */
} page_t;

/* False: a file cannot be read, or there is no memory. */
bool page_read (page_t *out, const char *directory, const page_query_t *query);

#endif
