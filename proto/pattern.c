/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Without PCRE2's compiler to machine code: a process that may write what it runs is an easier
 * prey, and taskmqd's unit forbids it.
 *
 * Failure: whatever PCRE2 says besides "no match" means that nothing was found out. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "ids.h"

typedef struct pattern {
    pcre2_code *code;
    uint32_t length_min; /* no text below it can match, in characters */
    int needed;          /* a byte that each match has; -1: not known */
} pattern_t;

struct patterns {
    pattern_t items[PATTERNS_MAX];
    size_t count;
    pcre2_compile_context *compile;
    pcre2_match_context *match;
    pcre2_match_data *found;
    uint64_t steps_left; /* of all texts together */
    /* Of a search. */
    uint64_t steps;
    uint64_t steps_max;
    size_t at;     /* where the last step was */
    bytes_t valid; /* a text that was no UTF-8 */
    bytes_t covers;
};

/* Life. */

/* Called before each item of an expression. */
static int count_steps (pcre2_callout_block *block, void *arg)
{
    patterns_t *self = arg;
    size_t at = block->current_position;
    self->steps += PATTERN_TRY_STEPS + (at > self->at ? at - self->at : self->at - at);
    self->at = at;
    return self->steps > self->steps_max ? PCRE2_ERROR_CALLOUT : 0;
}

patterns_t *patterns_new (void)
{
    patterns_t *self = calloc (1, sizeof (*self));
    if (self == NULL)
        return NULL;
    self->compile = pcre2_compile_context_create (NULL);
    self->match = pcre2_match_context_create (NULL);
    self->found = pcre2_match_data_create (1, NULL);
    if (self->compile == NULL || self->match == NULL || self->found == NULL) {
        patterns_free (&self);
        return NULL;
    }
    pcre2_set_max_pattern_length (self->compile, PATTERN_BYTES_MAX);
    pcre2_set_parens_nest_limit (self->compile, PATTERN_DEPTH_MAX);
    pcre2_set_match_limit (self->match, PATTERN_MATCH_LIMIT);
    pcre2_set_depth_limit (self->match, PATTERN_DEPTH_LIMIT);
    pcre2_set_heap_limit (self->match, PATTERN_HEAP_LIMIT_KIB);
    pcre2_set_callout (self->match, count_steps, self);
    patterns_begin (self);
    return self;
}

void patterns_free (patterns_t **self_p)
{
    patterns_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (size_t i = 0; i < self->count; i++)
        pcre2_code_free (self->items[i].code);
    pcre2_match_data_free (self->found);
    pcre2_match_context_free (self->match);
    pcre2_compile_context_free (self->compile);
    bytes_free (&self->valid);
    bytes_free (&self->covers);
    free (self);
}

size_t patterns_count (const patterns_t *self)
{
    return self->count;
}

/* Expressions. */

static bool refuse (char error[PATTERN_ERROR_SIZE], int code, size_t at)
{
    PCRE2_UCHAR text[PATTERN_ERROR_SIZE - 40] = "";
    pcre2_get_error_message (code, text, sizeof (text));
    snprintf (error, PATTERN_ERROR_SIZE, "byte %zu of the pattern: %s", at + 1,
              (const char *) text);
    return false;
}

/* PCRE2 itself looks for this byte only in texts of at most some thousand bytes. A letter may stand
 * for its other case, too. */
static int needed_byte (const pcre2_code *code)
{
    uint32_t type = 0;
    uint32_t byte = 0;
    pcre2_pattern_info (code, PCRE2_INFO_LASTCODETYPE, &type);
    pcre2_pattern_info (code, PCRE2_INFO_LASTCODEUNIT, &byte);
    bool is_letter = (byte | 32) >= 'a' && (byte | 32) <= 'z';
    return type == 1 && byte < 0x80 && !is_letter ? (int) byte : -1;
}

bool patterns_add (patterns_t *self, const char *expression, char error[PATTERN_ERROR_SIZE])
{
    pattern_t *pattern = &self->items[self->count];
    uint32_t may_be_empty = 0;
    int code = 0;
    size_t at = 0;
    if (self->count == PATTERNS_MAX) {
        snprintf (error, PATTERN_ERROR_SIZE, "there are more than %d patterns", PATTERNS_MAX);
        return false;
    }
    if (strlen (expression) > PATTERN_BYTES_MAX) {
        snprintf (error, PATTERN_ERROR_SIZE, "it has more than %d bytes", PATTERN_BYTES_MAX);
        return false;
    }
    pattern->code = pcre2_compile ((PCRE2_SPTR) expression, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, &code,
                                   &at, self->compile);
    if (pattern->code == NULL)
        return refuse (error, code, at);
    pcre2_pattern_info (pattern->code, PCRE2_INFO_MATCHEMPTY, &may_be_empty);
    if (may_be_empty) {
        pcre2_code_free (pattern->code);
        snprintf (error, PATTERN_ERROR_SIZE, "it matches the empty text");
        return false;
    }
    pcre2_pattern_info (pattern->code, PCRE2_INFO_MINLENGTH, &pattern->length_min);
    pattern->needed = needed_byte (pattern->code);
    self->count++;
    return true;
}

/* Searching. */

void patterns_begin (patterns_t *self)
{
    self->steps_left = PATTERN_STEPS_MAX;
}

/* PCRE2 reads beyond a text that is no UTF-8: each byte that is none becomes a NUL. NULL: memory is
 * exhausted. */
static const uint8_t *make_valid (patterns_t *self, const uint8_t *text, size_t length)
{
    bytes_clear (&self->valid);
    bytes_append (&self->valid, text, length);
    if (self->valid.failed)
        return NULL;
    for (size_t i = 0; i < length;) {
        size_t size = utf8_character (text + i, length - i);
        if (size == 0)
            self->valid.data[i] = 0;
        i += size == 0 ? 1 : size;
    }
    return self->valid.data;
}

/* All matches of one. Each goes on behind the one before. */
static bool find_one (patterns_t *self, uint32_t which, const uint8_t *text, size_t length)
{
    const pattern_t *pattern = &self->items[which];
    const size_t *bounds = pcre2_get_ovector_pointer (self->found);
    size_t at = 0;
    if (length == 0 || length < pattern->length_min ||
        (pattern->needed >= 0 && memchr (text, pattern->needed, length) == NULL))
        return true;
    while (at < length) {
        self->at = at;
        int code = pcre2_match (pattern->code, text, length, at,
                                PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, self->found, self->match);
        if (code == PCRE2_ERROR_NOMATCH)
            return true;
        if (code < 0 || bounds[0] < at || bounds[1] <= bounds[0] ||
            self->covers.length == PATTERN_COVERS_MAX * sizeof (pattern_cover_t))
            return false;
        pattern_cover_t cover = {(uint32_t) bounds[0], (uint32_t) bounds[1], which};
        bytes_append (&self->covers, &cover, sizeof (cover));
        at = bounds[1];
    }
    return true;
}

static int compare_covers (const void *one_p, const void *two_p)
{
    const pattern_cover_t *one = one_p;
    const pattern_cover_t *two = two_p;
    if (one->from != two->from)
        return one->from < two->from ? -1 : 1;
    if (one->to != two->to)
        return one->to > two->to ? -1 : 1;
    return one->which < two->which ? -1 : one->which > two->which;
}

/* Those that overlap become one. Returns how many are left. */
static size_t join_covers (pattern_cover_t *covers, size_t count)
{
    size_t kept = 0;
    if (count > 1)
        qsort (covers, count, sizeof (*covers), compare_covers);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && covers[i].from < covers[kept - 1].to) {
            if (covers[i].to > covers[kept - 1].to)
                covers[kept - 1].to = covers[i].to;
        } else {
            covers[kept++] = covers[i];
        }
    }
    return kept;
}

bool patterns_find (patterns_t *self, const void *text, size_t length,
                    const pattern_cover_t **covers, size_t *count)
{
    const uint8_t *bytes = text;
    uint64_t own = PATTERN_STEPS_OF_TEXT + PATTERN_STEPS_OF_BYTE * (uint64_t) length;
    bool good = length <= UINT32_MAX;
    bytes_clear (&self->covers);
    if (good && !utf8_is_valid (text, length))
        good = (bytes = make_valid (self, text, length)) != NULL;
    self->steps = 0;
    self->steps_max = own + self->steps_left;
    for (uint32_t i = 0; good && i < self->count; i++)
        good = find_one (self, i, bytes, length);
    if (self->steps > own)
        self->steps_left -= self->steps < self->steps_max ? self->steps - own : self->steps_left;
    pattern_cover_t *all = (pattern_cover_t *) (void *) self->covers.data;
    *covers = all;
    *count = join_covers (all, self->covers.length / sizeof (*all));
    return good && !self->covers.failed;
}
