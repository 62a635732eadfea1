/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who is at the other end of a connection, as net names it. */
#ifndef TASKMQ_CORE_PEER_H
#define TASKMQ_CORE_PEER_H

#include <stdint.h>

/* Never 0, never used again for another connection. */
typedef uint64_t peer_t;

#endif
