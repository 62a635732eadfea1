/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tests of logs stand on: a shelf in a directory of its own, and what is put there and
 * read. */
#ifndef TASKMQ_TEST_LOGS_STAGE_H
#define TASKMQ_TEST_LOGS_STAGE_H

#include <sys/types.h>

#include "logs/shelf.h"
#include "store_support.h"

enum { KIB = 1024 };

extern const shelf_limits_t LIMITS;
extern char place[64];
extern char directory[96]; /* of the shelf, in it */
extern shelf_t *shelf;

extern int read_error;            /* 0: files are read as they are, … */
extern size_t reads_before_error; /* … and so often they still are */
extern off_t unreadable_at;       /* what touches this byte of a file fails with EIO; 0: nothing */
extern uint64_t read_bytes;

log_key_t key_of (int64_t number);
void open_shelf (const shelf_limits_t *limits);
int setup (void **state);
int teardown (void **state);

int put (const log_key_t *key, uint64_t offset, const void *bytes, size_t length);
void put_text (const log_key_t *key, uint64_t offset, const char *text);
shelf_page_t page_at (const log_key_t *key, uint64_t offset, char *out, size_t limit);
/* What is read at an offset begins at `begins`. */
void expect (const log_key_t *key, uint64_t offset, uint64_t begins, const char *text);
/* Of a file of the task. */
void path_of (char out[200], int64_t number, const char *name);

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

#endif
