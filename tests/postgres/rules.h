/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What holds of all rows of a broker that has stopped cleanly, said in SQL, without its code. All
 * its tasks have ended, none was retried or removed behind its end, and its history begins with
 * event 1.
 *
 * damage: statements that are executed before, and undone behind it, or "". */
#ifndef TASKMQ_TESTS_POSTGRES_RULES_H
#define TASKMQ_TESTS_POSTGRES_RULES_H

#include "support/checker.h"
#include "support/postgres.h"

/* Each rule that is broken, and how often; empty: none. To be freed. */
char *rules_broken (const postgres_t *server, const char *damage);

/* The rows of all tasks against the final drain: one for each that there is, with the same status,
 * attempt and newest event. Empty, or the first difference. To be freed. */
char *rules_untold (const postgres_t *server, const history_t *history, const char *damage);

#endif
