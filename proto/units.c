/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "units.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    DAY_MS = 24 * HOUR_MS
};

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit_t;

static const unit_t duration_units[] = {
    {"d", DAY_MS}, {"h", HOUR_MS}, {"m", MINUTE_MS}, {"s", SECOND_MS}, {"ms", 1}};
static const unit_t size_units[] = {{"G", 1u << 30}, {"M", 1u << 20}, {"K", 1u << 10}, {"B", 1}};
enum {
    DURATION_UNITS = sizeof duration_units / sizeof duration_units[0],
    SIZE_UNITS = sizeof size_units / sizeof size_units[0]
};

/* Always false: for `return fail (…)`. */
__attribute__ ((format (printf, 2, 3))) static bool fail (char *error, const char *format, ...)
{
    if (error == NULL)
        return false;
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, UNITS_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return false;
}

/* Reads digits and moves *at behind them. False if there are none or the number is over max. */
static bool take_number (uint64_t *value, const char **at, uint64_t max)
{
    const char *start = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t) (**at - '0');
        if (*value > (max - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return *at > start;
}

/* The unit that *at begins with (the longest such name), and moves *at behind it. NULL: none. */
static const unit_t *take_unit (const char **at, const unit_t *units, size_t count)
{
    size_t length = strspn (*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    for (size_t i = 0; i < count; i++) {
        if (strlen (units[i].name) == length && strncmp (*at, units[i].name, length) == 0) {
            *at += length;
            return &units[i];
        }
    }
    return NULL;
}

/* Whole numbers with their units, at most parts_max of them, the largest first; form says what is
 * right. */
static bool quantity_parse (uint64_t *out, const char *text, const unit_t *units, size_t count,
                            size_t parts_max, const char *form, char *error)
{
    const char *at = text;
    const unit_t *last = NULL;
    uint64_t sum = 0;
    for (size_t parts = 0; parts == 0 || *at != '\0'; parts++) {
        uint64_t number;
        if (*at < '0' || *at > '9' || parts == parts_max)
            return fail (error, "\"%.40s\": must be %s", text, form);
        if (!take_number (&number, &at, INT64_MAX))
            return fail (error, "\"%.40s\": the number is too large", text);
        if (*at == '\0' && number == 0 && parts == 0)
            break;
        if (*at == '\0')
            return fail (error, "\"%.40s\": the unit is missing; must be %s", text, form);
        const unit_t *unit = take_unit (&at, units, count);
        if (unit == NULL || (last != NULL && unit->factor >= last->factor))
            return fail (error, "\"%.40s\": must be %s", text, form);
        if (number > ((uint64_t) INT64_MAX - sum) / unit->factor)
            return fail (error, "\"%.40s\": the number is too large", text);
        sum += number * unit->factor;
        last = unit;
    }
    *out = sum;
    return true;
}

bool duration_parse (int64_t *ms, const char *text, char error[UNITS_ERROR_SIZE])
{
    uint64_t value = 0;
    if (!quantity_parse (&value, text, duration_units, DURATION_UNITS, DURATION_UNITS,
                         "whole numbers with ms, s, m, h or d, as 30s or 1h30m", error))
        return false;
    *ms = (int64_t) value;
    return true;
}

const char *duration_format (char out[UNITS_TEXT_SIZE], int64_t ms)
{
    const unit_t *unit = duration_units;
    while (unit->factor > 1 && ms % (int64_t) unit->factor != 0)
        unit++;
    if (ms == 0)
        snprintf (out, UNITS_TEXT_SIZE, "0");
    else
        snprintf (out, UNITS_TEXT_SIZE, "%" PRId64 "%s", ms / (int64_t) unit->factor, unit->name);
    return out;
}

bool size_parse (uint64_t *bytes, const char *text, char error[UNITS_ERROR_SIZE])
{
    return quantity_parse (bytes, text, size_units, SIZE_UNITS, 1,
                           "a whole number and B, K, M or G, as 64K", error);
}

const char *size_format (char out[UNITS_TEXT_SIZE], uint64_t bytes)
{
    const unit_t *unit = size_units;
    while (unit->factor > 1 && bytes < unit->factor)
        unit++;
    uint64_t whole = bytes / unit->factor;
    uint64_t tenth = bytes % unit->factor * 10 / unit->factor;
    if (bytes == 0)
        snprintf (out, UNITS_TEXT_SIZE, "0");
    else if (tenth == 0 || whole >= 100)
        snprintf (out, UNITS_TEXT_SIZE, "%" PRIu64 "%s", whole, unit->name);
    else
        snprintf (out, UNITS_TEXT_SIZE, "%" PRIu64 ".%" PRIu64 "%s", whole, tenth, unit->name);
    return out;
}

/* Numbers. The C library's point is the locale's, which may be any text. */

static size_t digits_of (const char *text)
{
    return strspn (text, "0123456789");
}

/* As JSON has it, but for the sign. */
static bool is_number (const char *text, size_t *whole)
{
    *whole = digits_of (text);
    const char *at = text + *whole;
    if (*whole == 0)
        return false;
    if (*at == '.') {
        const size_t decimals = digits_of (at + 1);
        if (decimals == 0)
            return false;
        at += 1 + decimals;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        const size_t power = digits_of (at);
        if (power == 0)
            return false;
        at += power;
    }
    return *at == '\0';
}

bool number_parse (double *number, const char *text, char error[UNITS_ERROR_SIZE])
{
    char local[NUMBER_TEXT_MAX + 32];
    const char *point = localeconv ()->decimal_point;
    size_t whole;
    if (strlen (text) > NUMBER_TEXT_MAX || strlen (point) > 16 || !is_number (text, &whole))
        return fail (error, "'%.40s' must be a number from 0 up, as 3 or 0.25", text);
    if (text[whole] == '.')
        snprintf (local, sizeof local, "%.*s%s%s", (int) whole, text, point, text + whole + 1);
    else
        snprintf (local, sizeof local, "%s", text);
    const double value = strtod (local, NULL);
    if (!isfinite (value))
        return fail (error, "'%.40s' is too large", text);
    *number = value;
    return true;
}

/* Puts a point where the locale has put something else. */
static void put_point (char *out, const char *local)
{
    const char *at = local;
    for (; *at && !strchr ("0123456789e+-", *at); at++)
        continue;
    size_t used = digits_of (at);
    memcpy (out, at, used);
    at += used;
    const size_t strange = strcspn (at, "0123456789e+-");
    if (strange > 0)
        out[used++] = '.';
    snprintf (out + used, UNITS_TEXT_SIZE - used, "%s", at + strange);
}

const char *number_format (char out[UNITS_TEXT_SIZE], double number, int digits)
{
    const double exact_below = 9007199254740992.0; /* 2^53 */
    char local[UNITS_TEXT_SIZE + 32];
    if (number >= 0 && number < exact_below && (double) (uint64_t) number >= number) {
        snprintf (out, UNITS_TEXT_SIZE, "%" PRIu64, (uint64_t) number);
        return out;
    }
    int wanted = digits < 6 ? digits : 6;
    do {
        snprintf (local, sizeof local, "%.*g", wanted, number);
    } while (++wanted <= digits &&
             (strtod (local, NULL) < number || strtod (local, NULL) > number));
    put_point (out, local);
    return out;
}

/* Times. */

/* The last millisecond of the year 9999. */
#define TIME_MS_MAX INT64_C (253402300799999)

typedef struct civil {
    int64_t year;
    int64_t month; /* 1..12 */
    int64_t day;   /* 1..31 */
} civil_t;

/* Days since the epoch of a date in the Gregorian calendar. The year is taken to begin in March, so
 * that the day that comes and goes is its last; 400 years have 146,097 days. */
static int64_t days_from_civil (civil_t date)
{
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t era = year / 400;
    int64_t year_of_era = year - era * 400;
    int64_t month = (date.month + 9) % 12;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

/* The other way, for days from the epoch on. In 32 bits, where a division by a constant takes half
 * the time: the export writes five times a line. */
static civil_t civil_from_days (uint32_t days)
{
    days += 719468;
    uint32_t era = days / 146097;
    uint32_t day_of_era = days - era * 146097;
    uint32_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint32_t month = (5 * day_of_year + 2) / 153;
    civil_t date;
    date.day = day_of_year - (153 * month + 2) / 5 + 1;
    date.month = month < 10 ? month + 3 : month - 9;
    date.year = year_of_era + era * 400 + (date.month <= 2 ? 1 : 0);
    return date;
}

static int64_t days_in_month (int64_t year, int64_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Exactly count digits, in min..max. */
static bool take_digits (int64_t *value, const char **at, int count, int64_t min, int64_t max)
{
    *value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = *value * 10 + (**at - '0');
    }
    return *value >= min && *value <= max;
}

/* One of two characters. */
static bool take_either (const char **at, char a, char b)
{
    if (**at != a && **at != b)
        return false;
    (*at)++;
    return true;
}

static bool take_date (int64_t *days, const char **at)
{
    civil_t date;
    if (!take_digits (&date.year, at, 4, 0, 9999) || !take_either (at, '-', '-') ||
        !take_digits (&date.month, at, 2, 1, 12) || !take_either (at, '-', '-') ||
        !take_digits (&date.day, at, 2, 1, days_in_month (date.year, date.month)))
        return false;
    *days = days_from_civil (date);
    return true;
}

/* Decimals of a second, cut to milliseconds. */
static bool take_fraction (int64_t *ms, const char **at)
{
    *ms = 0;
    if (**at != '.')
        return true;
    (*at)++;
    if (**at < '0' || **at > '9')
        return false;
    int64_t weight = 100;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        *ms += (**at - '0') * weight;
        weight /= 10;
    }
    return true;
}

static bool take_clock (int64_t *ms, const char **at)
{
    int64_t hour, minute, second, fraction;
    /* A leap second counts as the first of the next minute. */
    if (!take_digits (&hour, at, 2, 0, 23) || !take_either (at, ':', ':') ||
        !take_digits (&minute, at, 2, 0, 59) || !take_either (at, ':', ':') ||
        !take_digits (&second, at, 2, 0, 60) || !take_fraction (&fraction, at))
        return false;
    *ms = hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + fraction;
    return true;
}

static bool take_offset (int64_t *ms, const char **at)
{
    *ms = 0;
    if (take_either (at, 'Z', 'z'))
        return true;
    int64_t sign = **at == '-' ? -1 : 1;
    int64_t hour, minute;
    if (!take_either (at, '+', '-') || !take_digits (&hour, at, 2, 0, 23) ||
        !take_either (at, ':', ':') || !take_digits (&minute, at, 2, 0, 59))
        return false;
    *ms = sign * (hour * HOUR_MS + minute * MINUTE_MS);
    return true;
}

bool time_parse (int64_t *ms, const char *text, char error[UNITS_ERROR_SIZE])
{
    const char *at = text;
    int64_t days, clock, offset;
    if (!take_date (&days, &at) || !(take_either (&at, 'T', 't') || take_either (&at, ' ', ' ')) ||
        !take_clock (&clock, &at) || !take_offset (&offset, &at) || *at != '\0')
        return fail (error, "\"%.40s\": must be a time as 2026-11-21T21:05:00Z", text);
    int64_t value = days * DAY_MS + clock - offset;
    if (value < 0 || value > TIME_MS_MAX)
        return fail (error, "\"%.40s\": must be between 1970 and 9999", text);
    *ms = value;
    return true;
}

/* Writes two digits and what stands behind them; returns the place behind that. */
static char *put_part (char *at, unsigned value, char separator)
{
    at = digits_put_pair (at, value);
    *at = separator;
    return at + 1;
}

bool time_format (char out[TIME_TEXT_SIZE], int64_t ms)
{
    if (ms < 0 || ms > TIME_MS_MAX)
        return false;
    civil_t date = civil_from_days ((uint32_t) (ms / DAY_MS));
    unsigned in_day = (unsigned) (ms % DAY_MS);
    unsigned second = in_day / SECOND_MS;
    char *at = digits_put_pair (out, (unsigned) date.year / 100);
    at = put_part (at, (unsigned) date.year % 100, '-');
    at = put_part (at, (unsigned) date.month, '-');
    at = put_part (at, (unsigned) date.day, 'T');
    at = put_part (at, second / 3600, ':');
    at = put_part (at, second / 60 % 60, ':');
    at = put_part (at, second % 60, '.');
    *at++ = (char) ('0' + in_day % SECOND_MS / 100);
    at = put_part (at, in_day % 100, 'Z');
    *at = '\0';
    return true;
}

const char *duration_format_short (char out[UNITS_TEXT_SIZE], int64_t ms)
{
    uint64_t left = ms > 0 ? (uint64_t) ms : 0;
    const unit_t *unit = duration_units;
    while (unit->factor > 1 && left < unit->factor)
        unit++;
    if (left == 0) {
        snprintf (out, UNITS_TEXT_SIZE, "0");
        return out;
    }
    int used = snprintf (out, UNITS_TEXT_SIZE, "%" PRIu64 "%s", left / unit->factor, unit->name);
    left %= unit->factor;
    if (unit->factor > 1 && unit[1].factor > 1 && left >= unit[1].factor)
        snprintf (out + used, (size_t) (UNITS_TEXT_SIZE - used), "%" PRIu64 "%s",
                  left / unit[1].factor, unit[1].name);
    return out;
}

const char *time_format_relative (char out[UNITS_TEXT_SIZE], int64_t ms, int64_t now_ms)
{
    bool past = ms <= now_ms;
    uint64_t distance =
        past ? (uint64_t) now_ms - (uint64_t) ms : (uint64_t) ms - (uint64_t) now_ms;
    const unit_t *unit = duration_units;
    while (unit->factor > 1 && distance < unit->factor)
        unit++;
    if (unit->factor <= 1)
        snprintf (out, UNITS_TEXT_SIZE, "now");
    else
        snprintf (out, UNITS_TEXT_SIZE, past ? "%" PRIu64 "%s ago" : "in %" PRIu64 "%s",
                  distance / unit->factor, unit->name);
    return out;
}
