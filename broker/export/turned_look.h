/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The names of files that were turned, of events and of the audit. */
#ifndef TASKMQ_EXPORT_TURNED_LOOK_H
#define TASKMQ_EXPORT_TURNED_LOOK_H

/* Calls `take` with each name in the directory, with most of them twice: it looks twice, because a
 * file that is packed meanwhile may show neither of its names to one look, but to the next. */
void turned_look (const char *directory, void (*take) (void *context, const char *name),
                  void *context);

#endif
