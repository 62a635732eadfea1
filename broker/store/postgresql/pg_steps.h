/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The steps by which the schema came to be what it is: each brings it from one version to the next.
 * What a step is, is fixed once a version is out: a change is a further step.
 *
 * A standby of a version before reads the tables while it waits. So the version in meta, and of
 * shard the columns that pg_own.c looks at, stay what they are in every version. */
#ifndef TASKMQ_STORE_PG_STEPS_H
#define TASKMQ_STORE_PG_STEPS_H

#include <stdint.h>

/* The version that this broker makes and knows. */
int32_t pg_steps_version (void);
/* Statements that bring this version, from 0 (nothing is there) up to the one before ours, to the
 * next one; NULL ends them. They belong into one transaction. */
const char *const *pg_steps_from (int32_t version);

#endif
