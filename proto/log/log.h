/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The broker's log: one line for one event on stderr, as key=value or as JSON.
 *
 *     2026-11-21T22:45:00.123Z level=info id=READY msg="listens" endpoint=ipc:///…/taskmqd.ipc
 *
 * Every event has an id that stays the same for ever, so that it can be searched for and alarmed
 * on; the sentence may change. Any thread: a line is one write. A log that cannot be written is
 * lost without a word, because the broker's work goes on. */
#ifndef TASKMQ_LOG_LOG_H
#define TASKMQ_LOG_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_ERROR
} log_level_t;

/* A fact beside the sentence; text or, if that is NULL, the number. */
typedef struct log_field {
    const char *key; /* NULL ends the list */
    const char *text;
    int64_t number;
} log_field_t;

#define LOG_TEXT(key, text)                                                                        \
    {                                                                                              \
        (key), (text), 0                                                                           \
    }
#define LOG_NUMBER(key, number)                                                                    \
    {                                                                                              \
        (key), NULL, (int64_t) (number)                                                            \
    }
#define LOG_FIELDS(...) ((const log_field_t[]){__VA_ARGS__, {NULL, NULL, 0}})

/* Until then: info and text. Any thread; a line that is being written is not touched. */
void log_configure (log_level_t least, bool json);
/* "debug", "info", "warning", "error"; false for anything else. */
bool log_level_parse (log_level_t *out, const char *text);
/* fields: LOG_FIELDS (…), or NULL for none. */
void log_write (log_level_t level, const char *id, const char *message, const log_field_t *fields);

#endif
