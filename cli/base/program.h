/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Programs that others start. */
#ifndef TASKCTL_PROGRAM_H
#define TASKCTL_PROGRAM_H

/* The program's path by PATH; NULL with errno if it cannot be executed. Freed by free (). */
char *program_find (const char *name);

#endif
