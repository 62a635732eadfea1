/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A running broker reads its configuration again. */
#ifndef TASKMQ_BROKER_RELOAD_H
#define TASKMQ_BROKER_RELOAD_H

#include "daemon.h"
#include "errands.h"

/* Makes the runner of reloads read the configuration, too, before what it does itself: the files
 * and the environment, with the command line of the start over them. A mistake changes nothing, and
 * is the answer to a client. */
void reload_open (daemon_t *self);
void reload_close (daemon_t *self);
/* What was read takes effect, as far as it may now; what needs a start is named in the log and left
 * as it was. context: a daemon_t. Only on the thread of the server's loop. */
reload_t reload_take;

#endif
