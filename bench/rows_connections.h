/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The bare ROUTER that connections are compared with, as a process of its own. */
#ifndef TASKMQ_BENCH_ROWS_CONNECTIONS_H
#define TASKMQ_BENCH_ROWS_CONNECTIONS_H

/* Returns every message to its sender, for ever. */
_Noreturn void bare_router (const char *uri);

#endif
