/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A broker on a PostgreSQL of its own, and what its tables must be like when it has stopped. */
#ifndef TASKMQ_TESTS_POSTGRES_STAGE_H
#define TASKMQ_TESTS_POSTGRES_STAGE_H

#include "support/checker.h"
#include "support/daemon.h"
#include "support/postgres.h"

typedef struct stage {
    postgres_t server;
    daemon_t broker;
    char uri[POSTGRES_URI_SIZE]; /* what the broker is told */
} stage_t;

/* Of a test whose rounds are a part of the long proof's: "--percent N", "--seed N", and "--only
 * PATTERN" for some of its tests. Without PostgreSQL the test is skipped here. */
void stage_arguments (int argc, char **argv, unsigned *percent, unsigned *seed);

/* So many of the long proof's rounds, and at least one. */
unsigned stage_part (unsigned full, unsigned percent);
/* ... and at least one of each kind, of so many kinds that follow each other. */
unsigned stage_part_of_kinds (unsigned full, unsigned percent, unsigned kinds);

/* A server that runs, with these settings (NULL: none of its own; ended by NULL), and a broker that
 * does not yet, told of it by its socket. */
void stage_init (stage_t *self, const char *const *settings);
/* The same by TCP, so that a proxy can stand between; the broker is told `port`, or with 0 the
 * server's own. */
void stage_init_tcp (stage_t *self, const char *const *settings);
void stage_through (stage_t *self, int port);
void stage_destroy (stage_t *self);

/* A small task; its id. */
tmq_id_t stage_submit (tmq_client_t *client, const char *queue);

/* Of a broker that has stopped cleanly: its tables keep all rules, and have each task as the
 * history says (rules.h). */
void stage_check_tables (const stage_t *self, const history_t *history);

#endif
