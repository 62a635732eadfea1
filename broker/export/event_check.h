/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads all files of events of a directory that no broker uses, and changes nothing: whether their
 * lines are one chain, and where it ends. */
#ifndef TASKMQ_EXPORT_EVENT_CHECK_H
#define TASKMQ_EXPORT_EVENT_CHECK_H

#include "export/event_turned.h"

enum { EVENT_CHECK_TEXT_SIZE = EVENT_TURNED_PATH_SIZE + 256 };

typedef struct event_check {
    uint64_t lines;      /* that were read; 0: there are none */
    event_place_t place; /* of the last whole one, with the history of the lines at the end */
    event_turned_t turned;
    char fault[EVENT_CHECK_TEXT_SIZE]; /* the first that is wrong, "FILE:LINE: …"; empty: none. What
                                          an anchor tells by itself is none */
} event_check_t;

/* To be freed in every case. */
void event_check_read (event_check_t *out, const char *directory);
void event_check_free (event_check_t *self);

#endif
