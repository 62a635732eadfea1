/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Durations, sizes and times as people write and read them.
 *
 * Pure. Parsers refuse what they do not understand, with a text that says what would be right;
 * formatters write into the caller's buffer and never allocate. */
#ifndef TASKMQ_PROTO_UNITS_H
#define TASKMQ_PROTO_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UNITS_ERROR_SIZE = 160,
    UNITS_TEXT_SIZE = 32,
    TIME_TEXT_SIZE = 25 /* 2026-11-21T21:05:00.123Z and a NUL */
};

/* "500ms", "30s", "5m", "2h", "1d", several of them from the largest unit down ("1h30m"), or "0",
 * in milliseconds. False with a text in error, which may be NULL; *ms is then untouched. */
bool duration_parse (int64_t *ms, const char *text, char error[UNITS_ERROR_SIZE]);
/* In the largest unit that leaves no rest: "90s", "2h", "1500ms", "0". duration_parse reads it. */
const char *duration_format (char out[UNITS_TEXT_SIZE], int64_t ms);

/* In its two largest units, cut: "1m30s", "23h59m", "2d", "800ms", "0". For people; duration_parse
 * reads it. */
const char *duration_format_short (char out[UNITS_TEXT_SIZE], int64_t ms);

/* "512B", "64K", "1M", "2G" or "0", in bytes; K is 1,024. As duration_parse. */
bool size_parse (uint64_t *bytes, const char *text, char error[UNITS_ERROR_SIZE]);
/* With one decimal where the unit leaves a rest: "640B", "64K", "1.4M". For people. */
const char *size_format (char out[UNITS_TEXT_SIZE], uint64_t bytes);

/* "3", "0.25", "1.5e-7": a number from 0 up, with a point whatever the locale says. As
 * duration_parse. */
bool number_parse (double *number, const char *text, char error[UNITS_ERROR_SIZE]);
/* A whole number below 2^53 with all its digits; else as few of at most `digits` (1..17) digits as
 * are read as the same number. number_parse reads it. */
enum { NUMBER_DIGITS_MAX = 17, NUMBER_TEXT_MAX = 64 };
const char *number_format (char out[UNITS_TEXT_SIZE], double number, int digits);

/* RFC 3339 with any offset and any number of decimals (cut to milliseconds), in milliseconds since
 * the epoch, UTC. From the epoch to the end of the year 9999. As duration_parse. */
bool time_parse (int64_t *ms, const char *text, char error[UNITS_ERROR_SIZE]);
/* RFC 3339 in UTC with milliseconds. False outside of the range of time_parse. */
bool time_format (char out[TIME_TEXT_SIZE], int64_t ms);
/* "now", "3m ago", "in 2h": whole units, cut. */
const char *time_format_relative (char out[UNITS_TEXT_SIZE], int64_t ms, int64_t now_ms);

#endif
