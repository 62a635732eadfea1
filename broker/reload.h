/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A running broker reads its configuration again. */
#ifndef TASKMQ_BROKER_RELOAD_H
#define TASKMQ_BROKER_RELOAD_H

#include <stdbool.h>

#include "server.h"

/* The files and the environment are read again, with the command line of the start over them. What
 * takes effect now does; what needs a start is named in the log and left as it was. A mistake
 * changes nothing. False: `text` says the mistake with its place; true: it says what was done.
 * context: a daemon_t. Only on the thread of the server's loop. */
reload_t reload;

#endif
