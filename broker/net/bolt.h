/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Descriptors never run out. libzmq 4.3 ends the process when an ipc listener finds none left, and
 * turns in circles over a tcp connection that it cannot take. So the calls by which it takes
 * connections are ours: one that would take a descriptor from the spare ones is closed at once. */
#ifndef TASKMQ_NET_BOLT_H
#define TASKMQ_NET_BOLT_H

/* Connections get descriptors below this one; before the first call, any. Any thread. */
void bolt_set (int limit);

#endif
