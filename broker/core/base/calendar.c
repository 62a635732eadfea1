/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/base/calendar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ids.h"
#include "units.h"

enum {
    MINUTE_S = 60,
    HOUR_S = 60 * MINUTE_S,
    DAY_S = 24 * HOUR_S,
    LOOKS_MAX = CALENDAR_YEARS_MAX * 16 /* days: the first of each month, and a few more */
};

/* Days. */

typedef struct date {
    int64_t year;
    unsigned month; /* 1..12 */
    unsigned day;   /* 1..31 */
} date_t;

static int64_t floor_div (int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The Gregorian date of a day since the epoch: Howard Hinnant's civil_from_days, whose years begin
 * in March, so that the leap day is a year's last. */
static date_t date_of (int64_t day)
{
    enum { ERA_DAYS = 146097, EPOCH_DAY = 719468 };
    int64_t z = day + EPOCH_DAY;
    int64_t era = floor_div (z, ERA_DAYS);
    int64_t of_era = z - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    date_t date = {.day = (unsigned) (of_year - (153 * month + 2) / 5 + 1),
                   .month = (unsigned) (month < 10 ? month + 3 : month - 9)};
    date.year = year + era * 400 + (date.month <= 2);
    return date;
}

static unsigned length_of_month (const date_t *date)
{
    static const uint8_t LENGTH[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = date->year % 4 == 0 && (date->year % 100 != 0 || date->year % 400 == 0);
    return date->month == 2 && leap ? 29U : LENGTH[date->month];
}

static unsigned weekday_of (int64_t day)
{
    return (unsigned) (((day + 4) % 7 + 7) % 7); /* the epoch was a Thursday */
}

/* Parsing. */

typedef struct field {
    const char *name;
    const char *words; /* three letters each; NULL: none */
    unsigned least;
    unsigned most;
} field_t;

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const field_t FIELD[FIELDS] = {
    [MINUTE] = {"minute", NULL, 0, 59},
    [HOUR] = {"hour", NULL, 0, 23},
    [DAY] = {"day of the month", NULL, 1, 31},
    [MONTH] = {"month", "janfebmaraprmayjunjulaugsepoctnovdec", 1, 12},
    [WEEKDAY] = {"day of the week", "sunmontuewedthufrisat", 0, 7},
};

/* So much of what somebody wrote as an error shows, in whole characters. */
static int shown (const char *text, size_t length)
{
    enum { SHOWN_BYTES_MAX = 32 };
    return (int) utf8_whole (text, length, SHOWN_BYTES_MAX);
}

/* What is wrong with an item of a list. */
typedef enum fault { FAULT_NONE, FAULT_VALUE, FAULT_ORDER, FAULT_STEP, FAULT_STEP_ALONE } fault_t;

static bool wrong (char *error, const field_t *field, fault_t fault, const char *at,
                   const char *end)
{
    const int length = shown (at, (size_t) (end - at));
    switch (fault) {
    case FAULT_ORDER:
        snprintf (error, CALENDAR_ERROR_SIZE, "%.*s: a range of the %s begins with its lower end",
                  length, at, field->name);
        break;
    case FAULT_STEP:
        snprintf (error, CALENDAR_ERROR_SIZE, "%.*s: a step is a number (1 to 59)", length, at);
        break;
    case FAULT_STEP_ALONE:
        snprintf (error, CALENDAR_ERROR_SIZE, "%.*s: a step follows a star or a range", length, at);
        break;
    default:
        snprintf (error, CALENDAR_ERROR_SIZE, "%.*s is no %s (%u to %u)", length, at, field->name,
                  field->least, field->most);
        break;
    }
    return false;
}

/* A number, or a word of the field. */
static bool take_value (const field_t *field, const char **at, unsigned *out)
{
    if (**at >= '0' && **at <= '9') {
        unsigned value = 0;
        for (; **at >= '0' && **at <= '9'; (*at)++)
            value = value < 1000 ? value * 10 + (unsigned) (**at - '0') : value;
        *out = value;
        return value >= field->least && value <= field->most;
    }
    for (const char *word = field->words; word != NULL && *word != '\0'; word += 3) {
        if (strncasecmp (word, *at, 3) == 0) {
            *out = field->least + (unsigned) (word - field->words) / 3;
            *at += 3;
            return true;
        }
    }
    return false;
}

/* One item of a list: a star, a value or a range, with a step or without. */
static fault_t take_item (const field_t *field, const char **at, uint64_t *bits)
{
    unsigned from = field->least;
    unsigned upto = field->most;
    unsigned step = 1;
    bool single = false;
    if (**at == '*') {
        (*at)++;
    } else {
        if (!take_value (field, at, &from))
            return FAULT_VALUE;
        upto = from;
        single = true;
        if (**at == '-') {
            (*at)++;
            single = false;
            if (!take_value (field, at, &upto))
                return FAULT_VALUE;
            if (upto < from)
                return FAULT_ORDER;
        }
    }
    if (**at == '/') {
        static const field_t STEP = {"step", NULL, 1, 59};
        (*at)++;
        if (single)
            return FAULT_STEP_ALONE;
        if (!take_value (&STEP, at, &step))
            return FAULT_STEP;
    }
    for (unsigned value = from; value <= upto; value += step)
        *bits |= UINT64_C (1) << value;
    return FAULT_NONE;
}

/* One field, up to a space or the end. */
static bool take_field (const field_t *field, const char **at, uint64_t *bits, char *error)
{
    const char *begin = *at;
    const char *end = begin + strcspn (begin, " \t");
    *bits = 0;
    do {
        const fault_t fault = take_item (field, at, bits);
        if (fault != FAULT_NONE)
            return wrong (error, field, fault, begin, end);
    } while (*(*at)++ == ',');
    (*at)--;
    return *at == end || wrong (error, field, FAULT_VALUE, begin, end);
}

static bool parse_fields (calendar_t *out, const char *text, char *error)
{
    uint64_t bits[FIELDS];
    bool star[FIELDS];
    const char *at = text;
    for (int i = 0; i < FIELDS; i++) {
        at += strspn (at, " \t");
        star[i] = *at == '*';
        if (*at == '\0') {
            snprintf (error, CALENDAR_ERROR_SIZE,
                      "five fields are wanted (minute hour day month weekday), %d are there", i);
            return false;
        }
        if (!take_field (&FIELD[i], &at, &bits[i], error))
            return false;
    }
    at += strspn (at, " \t");
    if (*at != '\0') {
        snprintf (error, CALENDAR_ERROR_SIZE, "more than five fields: %.*s",
                  shown (at, strlen (at)), at);
        return false;
    }
    bits[WEEKDAY] |= bits[WEEKDAY] >> 7; /* 7 is Sunday, too */
    *out = (calendar_t){.minutes = bits[MINUTE],
                        .hours = (uint32_t) bits[HOUR],
                        .days = (uint32_t) bits[DAY],
                        .months = (uint16_t) bits[MONTH],
                        .weekdays = (uint8_t) (bits[WEEKDAY] & 0x7f),
                        .either_day = !star[DAY] && !star[WEEKDAY],
                        .wall = star[MINUTE] || star[HOUR]};
    return true;
}

static bool parse_every (calendar_t *out, const char *text, char *error)
{
    int64_t ms;
    char why[UNITS_ERROR_SIZE];
    if (!duration_parse (&ms, text + strspn (text, " \t"), why) || ms < CALENDAR_EVERY_MS_MIN ||
        ms > (int64_t) CALENDAR_YEARS_MAX * 365 * DAY_S * 1000) {
        snprintf (error, CALENDAR_ERROR_SIZE, "@every wants a duration from 1s on, such as 90s");
        return false;
    }
    *out = (calendar_t){.every_ms = ms};
    return true;
}

bool calendar_parse (calendar_t *out, const char *text, char error[CALENDAR_ERROR_SIZE])
{
    static const char *const words[][2] = {{"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},
                                           {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
                                           {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
                                           {"@annually", "0 0 1 1 *"}};
    static const char every[] = "@every ";
    if (strncmp (text, every, sizeof (every) - 1) == 0)
        return parse_every (out, text + sizeof (every) - 1, error);
    if (*text != '@')
        return parse_fields (out, text, error);
    for (size_t i = 0; i < sizeof (words) / sizeof (words[0]); i++)
        if (strcmp (text, words[i][0]) == 0)
            return parse_fields (out, words[i][1], error);
    snprintf (error, CALENDAR_ERROR_SIZE,
              "%.*s is none of @hourly @daily @weekly @monthly @yearly @every",
              shown (text, strlen (text)), text);
    return false;
}

/* Zones. */

/* How many changes came at or before this time. */
static size_t changes_upto (const zone_t *zone, int64_t utc_s)
{
    size_t low = 0;
    size_t high = zone->changes_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].at <= utc_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t offset_after (const zone_t *zone, size_t changes)
{
    return changes == 0 ? zone->first_offset : zone->changes[changes - 1].offset;
}

/* When the clock on the wall shows this for the first time, or leaps over it. */
static int64_t first_utc (const zone_t *zone, int64_t local_s)
{
    /* Offsets are less than a day and a half, so begin before any that may matter. */
    size_t at = changes_upto (zone, local_s - 2 * (int64_t) DAY_S);
    for (; at < zone->changes_count; at++) {
        int64_t utc_s = local_s - offset_after (zone, at);
        if (utc_s < zone->changes[at].at)
            return utc_s;
        if (local_s < zone->changes[at].at + zone->changes[at].offset)
            return zone->changes[at].at; /* it leaps */
    }
    return local_s - offset_after (zone, at);
}

/* Finding. */

/* 0: the day matches; else so many days may be passed over: to the next one of its month that may
 * match, or to the next month. */
static unsigned days_to_pass (const calendar_t *self, int64_t day)
{
    date_t date = date_of (day);
    bool of_week = (self->weekdays >> weekday_of (day) & 1) != 0;
    uint32_t left = self->days >> date.day;
    unsigned rest = length_of_month (&date) - date.day + 1;
    if ((self->months >> date.month & 1) == 0)
        return rest;
    if ((left & 1) != 0 && (of_week || self->either_day))
        return 0;
    if (self->either_day)
        return of_week ? 0 : 1;
    left &= ~UINT32_C (1);
    unsigned ahead = left == 0 ? rest : (unsigned) __builtin_ctz (left);
    return ahead < rest ? ahead : rest;
}

/* The first minute of the day from this one on; false: none. */
static bool minute_of_day (const calendar_t *self, unsigned from, unsigned *out)
{
    for (unsigned hour = from / 60; hour < 24; hour++, from = hour * 60) {
        if ((self->hours >> hour & 1) == 0)
            continue;
        uint64_t left = self->minutes >> from % 60;
        if (left != 0) {
            *out = from + (unsigned) __builtin_ctzll (left);
            return true;
        }
    }
    return false;
}

/* The first time on the wall, from this one on, that the fields name. *looks is what is left of the
 * days to look at. */
static bool next_local (const calendar_t *self, int64_t from_s, int64_t *out, int *looks)
{
    int64_t minute = floor_div (from_s + MINUTE_S - 1, MINUTE_S);
    int64_t day = floor_div (minute, DAY_S / MINUTE_S);
    unsigned of_day = (unsigned) (minute - day * (DAY_S / MINUTE_S));
    for (; *looks > 0; of_day = 0, (*looks)--) {
        unsigned found;
        unsigned pass = days_to_pass (self, day);
        if (pass == 0 && minute_of_day (self, of_day, &found)) {
            *out = day * DAY_S + (int64_t) found * MINUTE_S;
            return true;
        }
        day += pass == 0 ? 1 : pass;
    }
    return false;
}

static bool next_every (const calendar_t *self, int64_t anchor_ms, const occurrence_t *after,
                        occurrence_t *out)
{
    int64_t times = floor_div (after->at_ms - anchor_ms, self->every_ms) + 1;
    *out = (occurrence_t){anchor_ms + (times < 1 ? 1 : times) * self->every_ms, 0};
    return true;
}

/* By the clock on the wall: each stretch between two changes of it by itself. What was found behind
 * the end of one is the first in the next, too, unless the clock went back behind its begin. */
static bool next_wall (const calendar_t *self, const zone_t *zone, const occurrence_t *after,
                       occurrence_t *out)
{
    int looks = LOOKS_MAX;
    int64_t from_s = floor_div (after->at_ms, 1000) + 1;
    int64_t begin_s = INT64_MAX; /* none is in [begin_s, local_s) */
    int64_t local_s = INT64_MIN;
    for (size_t at = changes_upto (zone, from_s);; at++) {
        int32_t offset = offset_after (zone, at);
        if (from_s + offset < begin_s || from_s + offset > local_s) {
            begin_s = from_s + offset;
            if (!next_local (self, begin_s, &local_s, &looks))
                return false;
        }
        bool last = at == zone->changes_count;
        if (last || local_s - offset < zone->changes[at].at) {
            *out = (occurrence_t){(local_s - offset) * 1000, local_s};
            return true;
        }
        from_s = zone->changes[at].at;
    }
}

/* By what the clock should show: each time of it once. */
static bool next_once (const calendar_t *self, const zone_t *zone, const occurrence_t *after,
                       occurrence_t *out)
{
    int looks = LOOKS_MAX;
    int64_t local_s = after->local_s;
    while (next_local (self, local_s + 1, &local_s, &looks)) {
        int64_t at_ms = first_utc (zone, local_s) * 1000;
        if (at_ms < after->at_ms)
            continue; /* it was shown before the clock went back */
        *out = (occurrence_t){at_ms, local_s};
        return true;
    }
    return false;
}

occurrence_t calendar_at (const zone_t *zone, int64_t at_ms)
{
    int64_t utc_s = floor_div (at_ms, 1000);
    return (occurrence_t){at_ms, utc_s + offset_after (zone, changes_upto (zone, utc_s))};
}

bool calendar_next (const calendar_t *self, const zone_t *zone, int64_t anchor_ms,
                    const occurrence_t *after, occurrence_t *out)
{
    if (self->every_ms != 0)
        return next_every (self, anchor_ms, after, out);
    return self->wall ? next_wall (self, zone, after, out) : next_once (self, zone, after, out);
}
