/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "zones.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"

enum { HEADER_BYTES = 44, HOUR_S = 3600, DAY_S = 86400, RULE_LAST_YEAR = 2200 };

/* The rule at the end of a file: POSIX's TZ, with RFC 9636's hours from -167 to 167. */

typedef struct rule_day {
    char kind;   /* 'M', 'J' or '0' */
    int month;   /* M */
    int week;    /* M: 1..5 */
    int day;     /* M: weekday; J: 1..365 without leap days; 0: 0..365 */
    int seconds; /* from midnight */
} rule_day_t;

typedef struct rule {
    int32_t standard; /* seconds east */
    int32_t summer;
    bool changes;
    rule_day_t begin; /* of summer time */
    rule_day_t end;
} rule_t;

static bool take_name (const char **at)
{
    const char *begin = *at;
    if (**at == '<') {
        const char *end = strchr (*at, '>');
        if (end == NULL)
            return false;
        *at = end + 1;
        return true;
    }
    while (isalpha ((unsigned char) **at))
        (*at)++;
    return *at - begin >= 3;
}

static bool take_number (const char **at, int most, int *out)
{
    if (!isdigit ((unsigned char) **at))
        return false;
    int value = 0;
    for (; isdigit ((unsigned char) **at) && value <= most; (*at)++)
        value = value * 10 + (**at - '0');
    *out = value;
    return value <= most;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time (const char **at, int *out)
{
    int parts[3] = {0};
    int sign = **at == '-' ? -1 : 1;
    if (**at == '-' || **at == '+')
        (*at)++;
    if (!take_number (at, 167, &parts[0]))
        return false;
    for (int i = 1; i < 3 && **at == ':'; i++) {
        (*at)++;
        if (!take_number (at, 59, &parts[i]))
            return false;
    }
    *out = sign * (parts[0] * HOUR_S + parts[1] * 60 + parts[2]);
    return true;
}

static bool take_day (const char **at, rule_day_t *out)
{
    *out = (rule_day_t){.kind = '0', .seconds = 2 * HOUR_S};
    if (*(*at)++ != ',')
        return false;
    bool good;
    if (**at == 'M') {
        (*at)++;
        out->kind = 'M';
        good = take_number (at, 12, &out->month) && *(*at)++ == '.' &&
               take_number (at, 5, &out->week) && *(*at)++ == '.' &&
               take_number (at, 6, &out->day) && out->month > 0 && out->week > 0;
    } else if (**at == 'J') {
        (*at)++;
        out->kind = 'J';
        good = take_number (at, 365, &out->day) && out->day > 0;
    } else {
        good = take_number (at, 365, &out->day);
    }
    if (good && **at == '/') {
        (*at)++;
        good = take_time (at, &out->seconds);
    }
    return good;
}

static bool rule_parse (rule_t *out, const char *text)
{
    const char *at = text;
    int west;
    *out = (rule_t){0};
    if (!take_name (&at) || !take_time (&at, &west))
        return false;
    out->standard = -west;
    if (*at == '\0')
        return true;
    out->changes = true;
    out->summer = out->standard + HOUR_S;
    if (!take_name (&at))
        return false;
    if (*at != ',' && *at != '\0') {
        if (!take_time (&at, &west))
            return false;
        out->summer = -west;
    }
    return take_day (&at, &out->begin) && take_day (&at, &out->end) && *at == '\0';
}

static bool is_leap (int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from the epoch to the first of January. */
static int64_t new_year (int64_t year)
{
    int64_t before = year - 1;
    return 365 * (year - 1970) + (before / 4 - before / 100 + before / 400) - 477;
}

/* When the day of the rule comes, in seconds of the clock on the wall. */
static int64_t rule_local (const rule_day_t *day, int64_t year)
{
    static const int BEFORE[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    int64_t first = new_year (year);
    bool leap = is_leap (year);
    if (day->kind == '0')
        return (first + day->day) * DAY_S + day->seconds;
    if (day->kind == 'J')
        return (first + day->day - 1 + (leap && day->day >= 60)) * DAY_S + day->seconds;
    int64_t month = first + BEFORE[day->month - 1] + (leap && day->month > 2);
    int64_t next = first + BEFORE[day->month] + (leap && day->month >= 2);
    int64_t weekday = ((month + 4) % 7 + 7) % 7;
    int64_t found = month + (day->day - weekday + 7) % 7 + (int64_t) (day->week - 1) * 7;
    while (found >= next)
        found -= 7;
    return found * DAY_S + day->seconds;
}

/* The changes in the making. */

typedef struct changes {
    zone_change_t *list;
    size_t count;
    size_t capacity;
    int32_t offset; /* in force */
} changes_t;

static void add_change (changes_t *self, int64_t at, int32_t offset)
{
    if (offset == self->offset || (self->count > 0 && at <= self->list[self->count - 1].at))
        return;
    self->list = memory_grow (self->list, &self->capacity, self->count, sizeof (zone_change_t));
    self->list[self->count++] = (zone_change_t){at, offset};
    self->offset = offset;
}

static void follow_rule (changes_t *self, const rule_t *rule)
{
    int64_t from_s = self->count > 0 ? self->list[self->count - 1].at : 0;
    if (!rule->changes)
        return;
    int64_t first = 1970 + from_s / (366 * (int64_t) DAY_S);
    for (int64_t year = first; year <= RULE_LAST_YEAR; year++) {
        int64_t begin = rule_local (&rule->begin, year) - rule->standard;
        int64_t end = rule_local (&rule->end, year) - rule->summer;
        if (begin < end) {
            add_change (self, begin, rule->summer);
            add_change (self, end, rule->standard);
        } else {
            add_change (self, end, rule->standard);
            add_change (self, begin, rule->summer);
        }
    }
}

/* The file. */

static uint32_t number_at (const uint8_t *at)
{
    return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

static int64_t long_at (const uint8_t *at)
{
    return (int64_t) ((uint64_t) number_at (at) << 32 | number_at (at + 4));
}

typedef struct block {
    uint32_t utc_marks;
    uint32_t standard_marks;
    uint32_t leaps;
    uint32_t times;
    uint32_t types;
    uint32_t letters;
} block_t;

/* *bytes: of the block behind its header, whose times have this size. */
static bool block_read (block_t *out, const uint8_t *at, size_t left, size_t time_bytes,
                        size_t *bytes)
{
    if (left < HEADER_BYTES || memcmp (at, "TZif", 4) != 0)
        return false;
    *out = (block_t){number_at (at + 20), number_at (at + 24), number_at (at + 28),
                     number_at (at + 32), number_at (at + 36), number_at (at + 40)};
    const uint32_t most = ZONES_FILE_BYTES_MAX;
    if (out->utc_marks > most || out->standard_marks > most || out->leaps > most ||
        out->times > most || out->types > most || out->letters > most || out->types == 0)
        return false;
    *bytes = out->times * (time_bytes + 1) + (size_t) out->types * 6 + out->letters +
             out->leaps * (time_bytes + 4) + out->standard_marks + out->utc_marks;
    return *bytes <= left - HEADER_BYTES;
}

/* The second block, whose times have 64 bits, and the rule behind it. */
static bool read_changes (const block_t *block, const uint8_t *at, changes_t *out, zone_t *zone)
{
    const uint8_t *types_of = at + (size_t) block->times * 8;
    const uint8_t *types = types_of + block->times;
    zone->first_offset = out->offset = (int32_t) number_at (types);
    for (uint32_t i = 0; i < block->times; i++) {
        if (types_of[i] >= block->types)
            return false;
        add_change (out, long_at (at + (size_t) i * 8),
                    (int32_t) number_at (types + (size_t) types_of[i] * 6));
    }
    return true;
}

static bool read_rule (const uint8_t *at, size_t left, changes_t *out)
{
    char text[128];
    rule_t rule;
    const uint8_t *end = left > 1 && at[0] == '\n' ? memchr (at + 1, '\n', left - 1) : NULL;
    if (end == NULL || end - at > (ptrdiff_t) sizeof (text))
        return false;
    size_t length = (size_t) (end - at) - 1;
    memcpy (text, at + 1, length);
    text[length] = '\0';
    if (length == 0)
        return true; /* no rule */
    if (!rule_parse (&rule, text))
        return false;
    follow_rule (out, &rule);
    return true;
}

bool zone_parse (zone_t *out, const void *file, size_t bytes)
{
    const uint8_t *at = file;
    block_t block;
    size_t length;
    changes_t changes = {0};
    *out = (zone_t){0};
    if (!block_read (&block, at, bytes, 4, &length) || at[4] < '2')
        return false;
    size_t second = HEADER_BYTES + length;
    if (!block_read (&block, at + second, bytes - second, 8, &length))
        return false;
    size_t rule = second + HEADER_BYTES + length;
    bool good = read_changes (&block, at + second + HEADER_BYTES, &changes, out) &&
                read_rule (at + rule, bytes - rule, &changes);
    if (!good) {
        free (changes.list);
        return false;
    }
    out->changes = changes.list;
    out->changes_count = changes.count;
    return true;
}

/* The zones that were named. */

typedef struct known {
    char name[ZONES_NAME_BYTES_MAX + 1];
    zone_t zone;
} known_t;

struct zones {
    char *directory;
    known_t *list[ZONES_MAX];
    size_t count;
};

zones_t *zones_new (const char *directory)
{
    zones_t *self = memory_zero (1, sizeof (*self));
    self->directory = memory_text (directory);
    return self;
}

void zones_free (zones_t **self_p)
{
    zones_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (size_t i = 0; i < self->count; i++) {
        free ((zone_change_t *) self->list[i]->zone.changes);
        free (self->list[i]);
    }
    free (self->directory);
    free (self);
}

/* Area/Place: nothing that leads out of the directory, and one spelling for each. */
static bool is_name (const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    size_t length = strlen (name);
    return length > 0 && length <= ZONES_NAME_BYTES_MAX && strspn (name, letters) == length &&
           name[0] != '/' && name[length - 1] != '/' && strstr (name, "//") == NULL &&
           strncmp (name, "posix/", 6) != 0 && strncmp (name, "right/", 6) != 0;
}

static bool load (const zones_t *self, const char *name, zone_t *out)
{
    char path[4096 + ZONES_NAME_BYTES_MAX];
    uint8_t *file = memory_alloc (ZONES_FILE_BYTES_MAX);
    snprintf (path, sizeof (path), "%s/%s", self->directory, name);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read (fd, file, ZONES_FILE_BYTES_MAX);
    bool good = got > 0 && zone_parse (out, file, (size_t) got);
    if (fd >= 0)
        close (fd);
    free (file);
    return good;
}

const zone_t *zones_find (void *context, const char *name)
{
    static const zone_t UTC;
    zones_t *self = context;
    zone_t zone;
    if (strcmp (name, "UTC") == 0)
        return &UTC;
    for (size_t i = 0; i < self->count; i++)
        if (strcmp (self->list[i]->name, name) == 0)
            return &self->list[i]->zone;
    if (self->count == ZONES_MAX || !is_name (name) || !load (self, name, &zone))
        return NULL;
    known_t *known = memory_zero (1, sizeof (*known));
    snprintf (known->name, sizeof (known->name), "%s", name);
    known->zone = zone;
    self->list[self->count++] = known;
    return &known->zone;
}
