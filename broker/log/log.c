/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line is built on the stack and written at once; a value is quoted and escaped when it is not a
 * plain word, because texts of peers may stand in it. */
#include "log/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 16 * 1024, LINE_END = 2 /* brace and newline */ };

static struct {
    log_level_t least;
    bool json;
} settings = {LOG_LEVEL_INFO, false};

static const char *const level_texts[] = {"debug", "info", "warning", "error"};

typedef struct line {
    char text[LINE_SIZE];
    size_t length;
    bool full; /* something was left out */
} line_t;

static void line_byte (line_t *line, char byte)
{
    if (line->length < LINE_SIZE - LINE_END)
        line->text[line->length++] = byte;
    else
        line->full = true;
}

static void line_text (line_t *line, const char *text)
{
    for (; *text != '\0'; text++)
        line_byte (line, *text);
}

static void line_quoted (line_t *line, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    line_byte (line, '"');
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char) *text;
        if (byte == '"' || byte == '\\') {
            line_byte (line, '\\');
            line_byte (line, *text);
        } else if (byte < 0x20 || byte == 0x7f) {
            line_text (line, "\\u00");
            line_byte (line, digits[byte >> 4]);
            line_byte (line, digits[byte & 15]);
        } else {
            line_byte (line, *text);
        }
    }
    line_byte (line, '"');
}

static bool is_plain (const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if ((unsigned char) *text <= ' ' || *text == '"' || *text == '=' || *text == '\\' ||
            *text == 0x7f)
            return false;
    }
    return true;
}

static void line_key (line_t *line, const char *key)
{
    if (line->length > 0 && line->text[line->length - 1] != '{')
        line_byte (line, settings.json ? ',' : ' ');
    if (settings.json)
        line_quoted (line, key);
    else
        line_text (line, key);
    line_byte (line, settings.json ? ':' : '=');
}

static void line_field (line_t *line, const char *key, const char *text)
{
    line_key (line, key);
    if (settings.json || !is_plain (text))
        line_quoted (line, text);
    else
        line_text (line, text);
}

static void line_time (line_t *line)
{
    struct timespec now;
    struct tm parts;
    char text[32];
    char whole[40];
    clock_gettime (CLOCK_REALTIME, &now);
    gmtime_r (&now.tv_sec, &parts);
    strftime (text, sizeof (text), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf (whole, sizeof (whole), "%s.%03uZ", text, (unsigned) (now.tv_nsec / 1000000) % 1000);
    if (settings.json)
        line_field (line, "at", whole);
    else
        line_text (line, whole);
}

void log_configure (log_level_t least, bool json)
{
    settings.least = least;
    settings.json = json;
}

bool log_level_parse (log_level_t *out, const char *text)
{
    for (size_t i = 0; i < sizeof (level_texts) / sizeof (level_texts[0]); i++) {
        if (strcmp (text, level_texts[i]) == 0) {
            *out = (log_level_t) i;
            return true;
        }
    }
    return false;
}

static void line_fact (line_t *line, const log_field_t *field)
{
    char number[24];
    size_t before = line->length;
    if (field->text != NULL) {
        line_field (line, field->key, field->text);
    } else {
        snprintf (number, sizeof (number), "%lld", (long long) field->number);
        line_key (line, field->key);
        line_text (line, number);
    }
    if (line->full)
        line->length = before;
    line->full = false;
}

void log_write (log_level_t level, const char *id, const char *message, const log_field_t *fields)
{
    if (level < settings.least)
        return;
    line_t line;
    line.length = 0;
    line.full = false;
    if (settings.json)
        line_byte (&line, '{');
    line_time (&line);
    line_field (&line, "level", level_texts[level]);
    line_field (&line, "id", id);
    line_field (&line, "msg", message);
    for (; fields != NULL && fields->key != NULL; fields++)
        line_fact (&line, fields);
    if (settings.json)
        line.text[line.length++] = '}';
    line.text[line.length++] = '\n';
    ssize_t written = write (STDERR_FILENO, line.text, line.length);
    (void) written;
}
