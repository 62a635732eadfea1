/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The threads that write tasks.jsonl and events.jsonl, behind a store that is measured, and the CPU
 * that each of them takes. Every function ends the program with a message when something fails. */
#ifndef TASKMQ_BENCH_FOLLOWERS_H
#define TASKMQ_BENCH_FOLLOWERS_H

#include "store/store.h"

typedef struct followers followers_t;

followers_t *followers_new (void);
/* For store_options_t.notify, with the followers as its context. */
void followers_notify (void *followers);
/* Both begin behind what their files in this directory have. The clock in lines stands still, so
 * that files of the same store are the same. */
void followers_start (followers_t *self, store_t *store, const boot_t *boot, const char *directory);
/* Until all is written that the store has: nothing is committed any more. */
void followers_wait (followers_t *self);
/* A line for each thread: CPU of each life and each line, and bytes of its file. */
void followers_print (const followers_t *self, size_t lives, const char *directory);
void followers_free (followers_t **self);

#endif
