/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks and events on stdout as people like to read them: as tables, as a card of one task, as
 * lines of a live view. */
#ifndef TASKCTL_SHOW_H
#define TASKCTL_SHOW_H

#include "line/app.h"

enum { LOCAL_TIME_SIZE = 32, ZONE_SIZE = 16 };
/* "2026-11-22 05:00:01.123" where the reader is, and "UTC+01:00", in seconds too. False for a time
 * that cannot be shown. */
bool local_time (char out[LOCAL_TIME_SIZE], char zone[ZONE_SIZE], long *zone_s, uint64_t ms);
/* The same as one text, for cards: "2026-11-22 05:00:01.234 UTC+01:00"; "" if it is no time. */
enum { MOMENT_SIZE = LOCAL_TIME_SIZE + ZONE_SIZE };
const char *moment_text (char out[MOMENT_SIZE], uint64_t ms);
enum { CLOCK_TEXT_SIZE = 9 };
/* "05:00:01" where the reader is. */
const char *clock_text (char out[CLOCK_TEXT_SIZE], uint64_t ms);

/* "2.1s", "450ms", "3m 12s" */
const char *span_format (char out[32], uint64_t ms);
/* How long a task ran or has been running; "" if it did not start. */
const char *task_took (char out[32], const tmq_task_t *task);
/* What there is to say about a task in one line: its error, message or progress. "" if nothing. */
const char *task_remark (char *out, size_t size, const tmq_task_t *task);

/* Where the id begins in what tables and lines show. On a narrower terminal its last group
 * is enough: it is random, and any ending names a task. */
enum { FULL_ID_COLUMNS = 100, FULL_ID_COLUMNS_WIDE = 180 };
size_t id_from (size_t full_columns);

/* "3/10 pages rendering" */
const char *progress_text (char *out, size_t size, double done, double total, const char *unit,
                           const char *message);

/* All about one task. parts: how many it has in each status, or NULL; the task's body is its
 * result, payload's body the payload (NULL: not shown); events may be NULL. */
void show_card (const app_t *app, const tmq_task_t *task, const uint64_t *parts,
                const tmq_task_t *payload, tmq_event_t *const *events, size_t events_count);
/* The columns that the first bytes of a text take; escape sequences take none. */
size_t columns_of (const char *text, size_t length);
/* Text from a task, between words in as many lines as the terminal makes of it. column: where the
 * line stands now; indent: where the following lines begin. */
void print_wrapped_text (const app_t *app, const char *text, size_t column, size_t indent);
/* One line of a live view. other_history: as of items_add_event. */
void show_event (const app_t *app, const tmq_event_t *event, bool other_history);
/* An event of a task's card. A message that is too long for the line stands below it. */
void show_history_event (const app_t *app, const tmq_event_t *event);
/* One line about a task that has ended. */
void show_ending (const app_t *app, const tmq_task_t *task);
/* What went wrong with a failed or cancelled task, on stderr. Returns EXIT_TASK. */
int show_failure (const app_t *app, const tmq_task_t *task);
/* The bytes as they are; on a terminal the line after them is a new one. */
void put_bytes (const void *bytes, size_t length);
void put_body (const tmq_task_t *task);

/* "ready"; empty for none. */
const char *phase_name (tmq_phase_t phase);

#endif
