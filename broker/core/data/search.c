/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* Where the parser stands. */
typedef struct parser {
    search_query_t *query;
    const char *at;
    size_t prefixes;
    size_t positive;
    bool negated; /* NOT was said */
    bool or_said;
    bool and_said;
    char *error;
} parser_t;

static tmq_code_t invalid (const parser_t *self, const char *text)
{
    snprintf (self->error, SEARCH_ERROR_SIZE, "search: %s", text);
    return TMQ_INVALID;
}

static tmq_code_t beyond (const parser_t *self, const char *limit, int most)
{
    snprintf (self->error, SEARCH_ERROR_SIZE, "search: more than %d %s", most, limit);
    return TMQ_TOO_LARGE;
}

/* Of a word as far as it can be told without tables: whatever is no ASCII. */
static bool is_letter (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char) c >= 0x80;
}

static bool is_space (char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool has_letter (const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (is_letter (text[i]))
            return true;
    return false;
}

/* Characters of the word at the end. */
static size_t last_word (const char *text, size_t length)
{
    size_t characters = 0;
    while (length > 0 && is_letter (text[length - 1]))
        characters += ((unsigned char) text[--length] & 0xc0) != 0x80;
    return characters;
}

static tmq_code_t add (parser_t *self, const char *text, size_t length, bool prefix)
{
    search_query_t *query = self->query;
    if (!has_letter (text, length))
        return invalid (self, "a word needs a letter or a digit");
    if (query->count == TMQ_SEARCH_TERMS_MAX)
        return beyond (self, "words and phrases", TMQ_SEARCH_TERMS_MAX);
    if (prefix && ++self->prefixes > TMQ_SEARCH_PREFIXES_MAX)
        return beyond (self, "words with a *", TMQ_SEARCH_PREFIXES_MAX);
    if (prefix && last_word (text, length) < TMQ_SEARCH_PREFIX_MIN) {
        snprintf (self->error, SEARCH_ERROR_SIZE,
                  "search prefix: at least %d letters or digits stand before the *",
                  TMQ_SEARCH_PREFIX_MIN);
        return TMQ_INVALID;
    }
    if (self->or_said && (self->negated || query->terms[query->count - 1].negated))
        return invalid (self, "OR stands between two words, and NOT before none of them");
    if (self->or_said)
        query->terms[query->count - 1].or_next = true;
    query->terms[query->count++] = (search_term_t){text, length, prefix, self->negated, false};
    self->positive += !self->negated;
    self->negated = self->or_said = self->and_said = false;
    return TMQ_OK;
}

/* A phrase, from its quotation mark on. */
static tmq_code_t take_phrase (parser_t *self)
{
    const char *text = self->at + 1;
    const char *end = strchr (text, '"');
    if (end == NULL)
        return invalid (self, "a quotation mark is not closed");
    bool prefix = end[1] == '*';
    self->at = end + 1 + prefix;
    if (*self->at != '\0' && !is_space (*self->at))
        return invalid (self, "a space stands behind a phrase");
    return add (self, text, (size_t) (end - text), prefix);
}

static tmq_code_t take_operator (parser_t *self, const char *word, size_t length, bool *taken)
{
    const bool is_not = length == 3 && memcmp (word, "NOT", 3) == 0;
    const bool is_or = length == 2 && memcmp (word, "OR", 2) == 0;
    const bool is_and = length == 3 && memcmp (word, "AND", 3) == 0;
    *taken = is_not || is_or || is_and;
    if (!*taken)
        return TMQ_OK;
    if ((is_or || is_and) &&
        (self->query->count == 0 || self->negated || self->or_said || self->and_said))
        return invalid (self, "AND and OR stand between two words");
    if (is_not && self->negated)
        return invalid (self, "NOT stands before a word");
    self->negated = self->negated || is_not;
    self->or_said = self->or_said || is_or;
    self->and_said = self->and_said || is_and;
    return TMQ_OK;
}

static tmq_code_t take_word (parser_t *self)
{
    const char *word = self->at;
    size_t length = 0;
    bool taken;
    while (word[length] != '\0' && word[length] != '"' && !is_space (word[length]))
        length++;
    self->at = word + length;
    if (word[length] == '"')
        return invalid (self, "a space stands before a phrase");
    tmq_code_t code = take_operator (self, word, length, &taken);
    if (code != TMQ_OK || taken)
        return code;
    if (word[0] == '(')
        return invalid (self, "parentheses are not known; in quotation marks they are text");
    bool prefix = word[length - 1] == '*';
    length -= prefix;
    if (memchr (word, '*', length) != NULL)
        return invalid (self, "a * stands at the end of a word; in quotation marks it is text");
    return add (self, word, length, prefix);
}

static tmq_code_t take (parser_t *self)
{
    if (*self->at == '-' && self->at[1] != '\0' && !is_space (self->at[1]) && !self->negated) {
        self->negated = true;
        self->at++;
    }
    return *self->at == '"' ? take_phrase (self) : take_word (self);
}

tmq_code_t search_query_parse (search_query_t *out, const char *text, char error[SEARCH_ERROR_SIZE])
{
    parser_t parser = {.query = out, .at = out->text, .error = error};
    tmq_code_t code = TMQ_OK;
    error[0] = '\0';
    out->count = 0;
    if (strlen (text) > TMQ_SEARCH_BYTES_MAX)
        return beyond (&parser, "bytes", TMQ_SEARCH_BYTES_MAX);
    memcpy (out->text, text, strlen (text) + 1);
    while (code == TMQ_OK) {
        while (is_space (*parser.at))
            parser.at++;
        if (*parser.at == '\0')
            break;
        code = take (&parser);
    }
    if (code == TMQ_OK && (parser.negated || parser.or_said || parser.and_said))
        code = invalid (&parser, "a word is missing at the end");
    if (code == TMQ_OK && parser.positive == 0)
        code = invalid (&parser, "at least one word must be looked for");
    return code;
}

search_t *search_new (void)
{
    return memory_zero (1, sizeof (search_t));
}

void search_clear (search_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free (self->found[i].excerpt);
    free (self->found);
    self->found = NULL;
    self->count = 0;
}

void search_free (search_t *self)
{
    if (self == NULL)
        return;
    search_clear (self);
    free (self);
}
