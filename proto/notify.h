/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Word to the service manager. */
#ifndef TASKMQ_PROTO_NOTIFY_H
#define TASKMQ_PROTO_NOTIFY_H

/* Sends a state ("READY=1") to the socket that $NOTIFY_SOCKET names (sd_notify(3)); does nothing
 * without one, and nothing that fails here matters. */
void notify_supervisor (const char *state);

#endif
