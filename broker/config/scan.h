/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The shape of a configuration file, line by line, before zconfig reads its values: zconfig says
 * neither which line is wrong nor which line a key came from. Pure: a function over a buffer. */
#ifndef TASKMQ_CONFIG_SCAN_H
#define TASKMQ_CONFIG_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum {
    SCAN_LINE_BYTES_MAX = 4200, /* a path and its key */
    SCAN_LINES_MAX = 10000,     /* sections and keys of one file */
    SCAN_ERROR_SIZE = 256
};

/* A section (depth 0) or a key (depth 1), in the order of the file, which is that of the tree's
 * nodes. */
typedef struct scan_line {
    unsigned line; /* from 1 */
    unsigned depth;
} scan_line_t;

typedef struct scan {
    scan_line_t *lines;
    size_t count;
    unsigned wrong_line; /* 0: of the whole file */
    char error[SCAN_ERROR_SIZE];
} scan_t;

/* Comments and empty lines of the text are blanked, because zconfig wants their indentation right
 * too. False with `error` and `wrong_line`. Any bytes will do. Free it in both cases. */
bool scan_text (scan_t *out, char *text, size_t bytes);
void scan_free (scan_t *self);

#endif
