/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the table of commands points at: each runs one command and returns its exit code. */
#ifndef TASKCTL_COMMANDS_H
#define TASKCTL_COMMANDS_H

struct app;

int run_submit (struct app *app);
int run_get (struct app *app);
int run_payload (struct app *app);
int run_result (struct app *app);
int run_wait (struct app *app);
int run_list (struct app *app);
int run_count (struct app *app);
int run_watch (struct app *app);
int run_cancel (struct app *app);
int run_work (struct app *app);
int run_stats (struct app *app);
int run_ping (struct app *app);
int run_help (struct app *app);

#endif
