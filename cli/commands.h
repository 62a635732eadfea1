/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of commands. */
#ifndef TASKCTL_COMMANDS_H
#define TASKCTL_COMMANDS_H

#include "line/command.h"

extern const grammar_t grammar;

#endif
