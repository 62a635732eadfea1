/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The values of options: one small check per kind, each with a text that says what would be
 * right. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ids.h"
#include "line/command.h"
#include "taskmq.h"
#include "units.h"

/* The names of values that are words, in the order of their numbers. */
static const char *const formats[] = {"table", "wide", "json", "jsonl", "id"};
static const char *const colors[] = {"auto", "always", "never"};

/* The status that the first length bytes name; TMQ_STATUS_NONE for an unknown one. */
static tmq_status_t find_status (const char *text, size_t length)
{
    for (int i = TMQ_STATUS_QUEUED; i <= TMQ_STATUS_CANCELLED; i++) {
        const char *name = tmq_status_text ((tmq_status_t) i);
        if (strlen (name) == length && strncmp (text, name, length) == 0)
            return (tmq_status_t) i;
    }
    return TMQ_STATUS_NONE;
}

static bool parse_statuses (uint64_t *mask, const char *text)
{
    *mask = 0;
    for (;;) {
        const size_t length = strcspn (text, ",");
        const tmq_status_t status = find_status (text, length);
        if (status == TMQ_STATUS_NONE)
            return false;
        *mask |= UINT64_C (1) << status;
        if (!text[length])
            return true;
        text += length + 1;
    }
}

static bool parse_subject (uint64_t *number, const char *text)
{
    for (*number = TMQ_SUBJECT_TASK; *number <= TMQ_SUBJECT_ITEM; (*number)++)
        if (strcmp (tmq_subject_text ((tmq_subject_t) *number), text) == 0)
            return true;
    return false;
}

static bool parse_word (uint64_t *number, const char *const *words, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp (words[i], text) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

static bool parse_number (uint64_t *number, const option_spec_t *spec, const char *text, char *why,
                          size_t why_size)
{
    char *end;
    errno = 0;
    *number = strtoull (text, &end, 10);
    if (isdigit ((unsigned char) *text) && !*end && !errno && *number >= spec->min &&
        *number <= spec->max)
        return true;
    if (spec->max == UINT64_MAX)
        snprintf (why, why_size, "must be a whole number of at least %" PRIu64, spec->min);
    else
        snprintf (why, why_size, "must be a whole number from %" PRIu64 " to %" PRIu64, spec->min,
                  spec->max);
    return false;
}

static bool parse_duration (uint64_t *number, const option_spec_t *spec, const char *text,
                            char *why, size_t why_size)
{
    char least[UNITS_TEXT_SIZE];
    char most[UNITS_TEXT_SIZE];
    int64_t ms;
    if (!duration_parse (&ms, text, NULL)) {
        snprintf (why, why_size, "must be a duration with its unit: 500ms, 30s, 5m, 1h30m, 1d");
        return false;
    }
    *number = (uint64_t) ms;
    if (*number >= spec->min && *number <= spec->max)
        return true;
    snprintf (why, why_size, "must be from %s to %s", duration_format (least, (int64_t) spec->min),
              duration_format (most, (int64_t) spec->max));
    return false;
}

/* A local time; false for a day that its month does not have, which mktime would move. */
static bool from_local (int64_t *ms, struct tm local)
{
    const struct tm asked = local;
    local.tm_isdst = -1;
    const time_t seconds = mktime (&local);
    *ms = (int64_t) seconds * 1000;
    return seconds >= 0 && local.tm_mday == asked.tm_mday;
}

/* A day, or a time of a day, where we are. */
static bool parse_local (int64_t *ms, const char *text)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d%n%H:%M", "%Y-%m-%d%n%H:%M:%S",
                                        "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm local = {0};
        const char *end = strptime (text, forms[i], &local);
        if (end && !*end)
            return from_local (ms, local);
    }
    return false;
}

/* Midnight of today or of a day before. */
static bool parse_day (int64_t *ms, const char *text, time_t now)
{
    struct tm local;
    const bool yesterday = strcmp (text, "yesterday") == 0;
    if ((!yesterday && strcmp (text, "today") != 0) || !localtime_r (&now, &local))
        return false;
    local.tm_hour = local.tm_min = local.tm_sec = 0;
    local.tm_mday -= yesterday;
    local.tm_isdst = -1;
    *ms = (int64_t) mktime (&local) * 1000;
    return true;
}

bool value_time (uint64_t *ms, const char *text)
{
    int64_t value;
    const int64_t now = (int64_t) wall_ms ();
    if (!time_parse (&value, text, NULL) && !parse_day (&value, text, (time_t) (now / 1000)) &&
        !parse_local (&value, text)) {
        if (!duration_parse (&value, text, NULL) || value > now)
            return false;
        value = now - value;
    }
    *ms = (uint64_t) value;
    return true;
}

/* "18:00" or "18:00:30": the next such time where we are. */
static bool parse_clock (int64_t *ms, const char *text, time_t now)
{
    struct tm clock = {0};
    struct tm local;
    const char *end = strptime (text, "%H:%M:%S", &clock);
    if (!end || *end)
        end = strptime (text, "%H:%M", &clock);
    if (!end || *end || !localtime_r (&now, &local))
        return false;
    for (int days = 0; days < 2; days++) {
        struct tm next = local;
        next.tm_mday += days;
        next.tm_hour = clock.tm_hour;
        next.tm_min = clock.tm_min;
        next.tm_sec = clock.tm_sec;
        next.tm_isdst = -1;
        *ms = (int64_t) mktime (&next) * 1000;
        if (*ms > (int64_t) now * 1000)
            return true;
    }
    return false;
}

/* As value_time for what lies ahead: a duration counts from now on, and a time of day is its next
 * one. */
static bool value_future (uint64_t *ms, const char *text)
{
    int64_t value;
    const int64_t now = (int64_t) wall_ms ();
    if (!time_parse (&value, text, NULL) && !parse_clock (&value, text, (time_t) (now / 1000)) &&
        !parse_local (&value, text)) {
        if (!duration_parse (&value, text, NULL) || value > TMQ_TTL_MS_MAX)
            return false;
        value = now + value;
    }
    *ms = (uint64_t) value;
    return value > 0 && value <= TMQ_TIME_MS_MAX;
}

static bool parse_label (const char *text)
{
    char key[TMQ_NAME_LENGTH_MAX + 1];
    const char *equals = strchr (text, '=');
    if (!equals || equals - text > TMQ_NAME_LENGTH_MAX)
        return false;
    memcpy (key, text, (size_t) (equals - text));
    key[equals - text] = '\0';
    return name_is_valid (key) && strlen (equals + 1) <= TMQ_LABEL_BYTES_MAX;
}

static bool parse_request (const char *text)
{
    return strlen (text) == 32 && strspn (text, "0123456789abcdefABCDEF") == 32;
}

bool value_parse (uint64_t *number, const option_spec_t *spec, const char *text, char *why,
                  size_t why_size)
{
    switch (spec->kind) {
    case KIND_FLAG: return true;
    case KIND_TEXT:
        if (!spec->max || strlen (text) <= spec->max)
            return true;
        snprintf (why, why_size, "must have at most %" PRIu64 " bytes", spec->max);
        return false;
    case KIND_NAME:
        snprintf (why, why_size, "must be 1 to %d of A-Z a-z 0-9 . _ -", TMQ_NAME_LENGTH_MAX);
        return name_is_valid (text);
    case KIND_LABEL:
        snprintf (why, why_size,
                  "must be NAME=VALUE, the name 1 to %d of A-Z a-z 0-9 . _ -, the value at most %d "
                  "bytes",
                  TMQ_NAME_LENGTH_MAX, TMQ_LABEL_BYTES_MAX);
        return parse_label (text);
    case KIND_NUMBER: return parse_number (number, spec, text, why, why_size);
    case KIND_DURATION: return parse_duration (number, spec, text, why, why_size);
    case KIND_TIME:
        snprintf (why, why_size,
                  "must be a time: 2026-11-21, '2026-11-21 05:00', 2026-11-21T21:05:00Z, "
                  "yesterday, or 90m for 90 minutes ago");
        return value_time (number, text);
    case KIND_FUTURE:
        snprintf (why, why_size,
                  "must be a time: 18:00, '2026-11-22 05:00', 2026-11-21T21:05:00Z, or 90m for in "
                  "90 minutes");
        return value_future (number, text);
    case KIND_STATUS:
        snprintf (why, why_size,
                  "must be queued, working, input_required, completed, failed or cancelled");
        *number = find_status (text, strlen (text));
        return *number != TMQ_STATUS_NONE;
    case KIND_STATUSES:
        snprintf (why, why_size,
                  "must be queued, working, input_required, completed, failed, cancelled, or "
                  "several of them with commas");
        return parse_statuses (number, text);
    case KIND_SUBJECT:
        snprintf (why, why_size, "must be task, queue, session, schedule, worker, value or item");
        return parse_subject (number, text);
    case KIND_FORMAT:
        snprintf (why, why_size, "must be table, wide, json, jsonl or id");
        return parse_word (number, formats, sizeof formats / sizeof *formats, text);
    case KIND_COLOR:
        snprintf (why, why_size, "must be auto, always or never");
        return parse_word (number, colors, sizeof colors / sizeof *colors, text);
    case KIND_REQUEST:
        snprintf (why, why_size, "must be 32 hexadecimal digits");
        return parse_request (text);
    }
    return false;
}
