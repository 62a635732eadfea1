/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The addresses of the broker: what is listened on, with which key, and whether it is shut. */
#ifndef TASKMQ_BROKER_DOORS_H
#define TASKMQ_BROKER_DOORS_H

#include "daemon.h"

/* Reads or makes the broker's key, if an address asks for keys: only a broker that other machines
 * reach has one. */
exits_t doors_key (daemon_t *self);
/* Who may come near, as the configuration has it; valid as long as the daemon. */
guard_t doors_guard (daemon_t *self);
/* Listens everywhere, looks whether the doors are shut, and says that the broker is ready. */
exits_t doors_open (daemon_t *self);

#endif
