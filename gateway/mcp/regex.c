/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Both languages agree on what people write. Where they do not, options make PCRE2 follow ECMA-262,
 * and what only PCRE2 has and can cost more than a match (verbs, callouts) is refused. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "mcp/regex.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/schema.h"

struct regex {
    pcre2_code *code;
    pcre2_match_data *found;
    pcre2_match_context *bounds;
};

/* "(*" and "(?C" outside of a class: nothing that ECMA-262 has. */
static bool has_verb (const char *expression)
{
    bool in_class = false;
    for (const char *at = expression; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (in_class)
            in_class = *at != ']';
        else if (*at == '[')
            in_class = true;
        else if (*at == '(' && (at[1] == '*' || (at[1] == '?' && at[2] == 'C')))
            return true;
    }
    return false;
}

/* ECMA-262 has long names for what PCRE2 calls by one or two letters. */
static const char *const categories[][2] = {{"Letter", "L"},
                                            {"Cased_Letter", "L&"},
                                            {"Uppercase_Letter", "Lu"},
                                            {"Lowercase_Letter", "Ll"},
                                            {"Titlecase_Letter", "Lt"},
                                            {"Modifier_Letter", "Lm"},
                                            {"Other_Letter", "Lo"},
                                            {"Mark", "M"},
                                            {"Nonspacing_Mark", "Mn"},
                                            {"Spacing_Mark", "Mc"},
                                            {"Enclosing_Mark", "Me"},
                                            {"Number", "N"},
                                            {"Decimal_Number", "Nd"},
                                            {"Letter_Number", "Nl"},
                                            {"Other_Number", "No"},
                                            {"Punctuation", "P"},
                                            {"Connector_Punctuation", "Pc"},
                                            {"Dash_Punctuation", "Pd"},
                                            {"Open_Punctuation", "Ps"},
                                            {"Close_Punctuation", "Pe"},
                                            {"Initial_Punctuation", "Pi"},
                                            {"Final_Punctuation", "Pf"},
                                            {"Other_Punctuation", "Po"},
                                            {"Symbol", "S"},
                                            {"Math_Symbol", "Sm"},
                                            {"Currency_Symbol", "Sc"},
                                            {"Modifier_Symbol", "Sk"},
                                            {"Other_Symbol", "So"},
                                            {"Separator", "Z"},
                                            {"Space_Separator", "Zs"},
                                            {"Line_Separator", "Zl"},
                                            {"Paragraph_Separator", "Zp"},
                                            {"Other", "C"},
                                            {"Control", "Cc"},
                                            {"Format", "Cf"},
                                            {"Private_Use", "Co"},
                                            {"Unassigned", "Cn"}};

/* The short name for the long one that begins at; NULL: it is none. */
static const char *short_name (const char *at, size_t length)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (strlen (categories[i][0]) == length && memcmp (categories[i][0], at, length) == 0)
            return categories[i][1];
    return NULL;
}

/* out has room for as many bytes as the expression, which become no more. */
static void shorten_names (char *out, const char *at)
{
    while (*at != '\0') {
        const bool property = *at == '\\' && (at[1] == 'p' || at[1] == 'P') && at[2] == '{';
        const size_t length = property ? strcspn (at + 3, "}") : 0;
        const char *name = property ? short_name (at + 3, length) : NULL;
        const size_t keep = name != NULL ? 3 : *at == '\\' && at[1] != '\0' ? 2 : 1;
        memcpy (out, at, keep);
        out += keep;
        at += keep;
        if (name != NULL) {
            memcpy (out, name, strlen (name));
            out += strlen (name);
            at += length;
        }
    }
    *out = '\0';
}

static pcre2_code *compile (const char *expression, char error[REGEX_ERROR_SIZE])
{
    pcre2_compile_context *context = pcre2_compile_context_create (NULL);
    PCRE2_UCHAR reason[120] = "memory is exhausted";
    int code = 0;
    size_t at = 0;
    if (context == NULL) {
        snprintf (error, REGEX_ERROR_SIZE, "%s", (const char *) reason);
        return NULL;
    }
    pcre2_set_parens_nest_limit (context, SCHEMA_DEPTH_MAX);
    pcre2_set_newline (context, PCRE2_NEWLINE_ANYCRLF);
    pcre2_set_compile_extra_options (context, PCRE2_EXTRA_ALT_BSUX);
    pcre2_code *out =
        pcre2_compile ((PCRE2_SPTR) expression, PCRE2_ZERO_TERMINATED,
                       PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
                           PCRE2_MATCH_UNSET_BACKREF | PCRE2_ALLOW_EMPTY_CLASS,
                       &code, &at, context);
    pcre2_compile_context_free (context);
    if (out != NULL)
        return out;
    pcre2_get_error_message (code, reason, sizeof reason);
    snprintf (error, REGEX_ERROR_SIZE, "byte %zu of the pattern: %s", at + 1,
              (const char *) reason);
    return NULL;
}

regex_t *regex_new (const char *expression, char error[REGEX_ERROR_SIZE])
{
    if (strlen (expression) > SCHEMA_PATTERN_BYTES_MAX || has_verb (expression)) {
        snprintf (error, REGEX_ERROR_SIZE, "the pattern has more than %d bytes, or a verb of PCRE",
                  SCHEMA_PATTERN_BYTES_MAX);
        return NULL;
    }
    char text[SCHEMA_PATTERN_BYTES_MAX + 1];
    shorten_names (text, expression);
    pcre2_code *code = compile (text, error);
    regex_t *self = code != NULL ? calloc (1, sizeof *self) : NULL;
    if (self == NULL) {
        pcre2_code_free (code);
        return NULL;
    }
    self->code = code;
    self->found = pcre2_match_data_create (1, NULL);
    self->bounds = pcre2_match_context_create (NULL);
    if (self->found == NULL || self->bounds == NULL) {
        snprintf (error, REGEX_ERROR_SIZE, "memory is exhausted");
        regex_free (self);
        return NULL;
    }
    pcre2_set_depth_limit (self->bounds, REGEX_DEPTH_LIMIT);
    pcre2_set_heap_limit (self->bounds, REGEX_HEAP_LIMIT_KIB);
    return self;
}

void regex_free (regex_t *self)
{
    if (self == NULL)
        return;
    pcre2_match_context_free (self->bounds);
    pcre2_match_data_free (self->found);
    pcre2_code_free (self->code);
    free (self);
}

regex_verdict_t regex_match (const regex_t *self, const char *text, size_t length, size_t *effort)
{
    const size_t limits[] = {REGEX_EASY_LIMIT + length, REGEX_HARD_LIMIT, REGEX_MATCH_LIMIT};
    size_t before = 0;
    int code = PCRE2_ERROR_MATCHLIMIT;
    for (size_t i = 0; i < 3 && code == PCRE2_ERROR_MATCHLIMIT; i++) {
        const size_t limit = limits[i] < REGEX_MATCH_LIMIT ? limits[i] : REGEX_MATCH_LIMIT;
        if (limit <= before)
            continue;
        if (i > 0 && *effort < limit)
            return REGEX_TOO_DEAR;
        *effort -= i > 0 ? limit : 0;
        before = limit;
        pcre2_set_match_limit (self->bounds, (uint32_t) limit);
        code = pcre2_match (self->code, (PCRE2_SPTR) text, length, 0, 0, self->found, self->bounds);
    }
    if (code == PCRE2_ERROR_NOMATCH)
        return REGEX_NO;
    return code < 0 ? REGEX_TOO_DEAR : REGEX_YES;
}
