/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The schema of a version to come: today's, and one step. The step lasts as long as there is a role
 * of this name, so that a test says how long. */
#include "store/postgresql/pg_steps.h"

static const char *const STEP[] = {
    "DO $$ BEGIN WHILE EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hold') LOOP"
    " PERFORM pg_sleep (0.02); END LOOP; END $$",
    "ALTER TABLE task ADD COLUMN later int4 NOT NULL DEFAULT 0;"
    "CREATE TABLE later (number int8 PRIMARY KEY)",
    "UPDATE meta SET version = version + 1",
    0,
};

int32_t __real_pg_steps_version (void);
int32_t __wrap_pg_steps_version (void);
int32_t __wrap_pg_steps_version (void)
{
    return __real_pg_steps_version () + 1;
}

const char *const *__real_pg_steps_from (int32_t version);
const char *const *__wrap_pg_steps_from (int32_t version);
const char *const *__wrap_pg_steps_from (int32_t version)
{
    return version == __real_pg_steps_version () ? STEP : __real_pg_steps_from (version);
}
