/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What somebody looks for, taken apart. */
#include <stdio.h>
#include <string.h>

#include "core/data/search.h"
#include "support/cmocka_all.h"

/* "word", 'begin'*, !not, |or-with-the-next: one after the other. */
static const char *shape_of (const char *text)
{
    static char out[2048];
    search_query_t query;
    char error[SEARCH_ERROR_SIZE];
    tmq_code_t code = search_query_parse (&query, text, error);
    if (code != TMQ_OK)
        fail_msg ("%s: %s", text, error);
    out[0] = '\0';
    for (size_t i = 0; i < query.count; i++) {
        const search_term_t *term = &query.terms[i];
        size_t used = strlen (out);
        snprintf (out + used, sizeof (out) - used, "%s%s[%.*s]%s%s", i > 0 ? " " : "",
                  term->negated ? "!" : "", (int) term->length, term->text, term->prefix ? "*" : "",
                  term->or_next ? " |" : "");
    }
    return out;
}

static void words_phrases_and_prefixes (void **state)
{
    (void) state;
    assert_string_equal (shape_of ("one"), "[one]");
    assert_string_equal (shape_of ("  one\ttwo\n"), "[one] [two]");
    assert_string_equal (shape_of ("\"a b\" cd*"), "[a b] [cd]*");
}

static void operators_stand_between_words (void **state)
{
    (void) state;
    assert_string_equal (shape_of ("ab* NOT cd"), "[ab]* ![cd]");
    assert_string_equal (shape_of ("one -two -\"three four\""), "[one] ![two] ![three four]");
    assert_string_equal (shape_of ("one OR two OR three four"), "[one] | [two] | [three] [four]");
    assert_string_equal (shape_of ("one AND two"), "[one] [two]");
    assert_string_equal (shape_of ("one and not or"), "[one] [and] [not] [or]"); /* words */
    assert_string_equal (shape_of ("\"OR\" x-y"), "[OR] [x-y]");
    assert_string_equal (shape_of ("\"begin of\"*"), "[begin of]*");
    assert_string_equal (shape_of ("a:b \"(c) *\" d' éa*"), "[a:b] [(c) *] [d'] [éa]*");
}

static void refused (const char *text, tmq_code_t code, const char *part)
{
    search_query_t query;
    char error[SEARCH_ERROR_SIZE];
    assert_int_equal (search_query_parse (&query, text, error), code);
    if (strstr (error, part) == NULL)
        fail_msg ("%s: '%s' does not say '%s'", text, error, part);
}

static void what_makes_no_sense_is_told (void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *part;
    } CASES[] = {
        {"", "at least one word"},
        {"NOT a", "at least one word"},
        {"-a", "at least one word"},
        {"\"a", "not closed"},
        {"a\"b\"", "before a phrase"},
        {"\"b\"a", "behind a phrase"},
        {"a OR", "missing at the end"},
        {"a AND", "missing at the end"},
        {"a AND AND b", "between two words"},
        {"a AND OR b", "between two words"},
        {"a NOT", "missing at the end"},
        {"OR a", "between two words"},
        {"a OR OR b", "between two words"},
        {"a NOT NOT b", "before a word"},
        {"a OR -b", "NOT before none"},
        {"-a OR b", "NOT before none"},
        {"(a OR b)", "parentheses"},
        {"*", "letter or a digit"},
        {"a*b", "at the end of a word"},
        {"**a", "at the end of a word"},
        {"...", "letter or a digit"},
        {"\"\"", "letter or a digit"},
        {"a b*", "search prefix: at least 2"},
        {"foo-b*", "search prefix: at least 2"},
        {"AND", "between two words"},
    };
    for (size_t i = 0; i < sizeof (CASES) / sizeof (CASES[0]); i++)
        refused (CASES[i].text, TMQ_INVALID, CASES[i].part);
}

static void every_limit_has_its_name (void **state)
{
    (void) state;
    char text[TMQ_SEARCH_BYTES_MAX + 2] = "";
    for (int i = 0; i <= TMQ_SEARCH_TERMS_MAX; i++)
        strcat (text, i == 0 ? "ab" : " OR ab");
    refused (text, TMQ_TOO_LARGE, "search: more than 16 words and phrases");
    text[0] = '\0';
    for (int i = 0; i <= TMQ_SEARCH_PREFIXES_MAX; i++)
        strcat (text, i == 0 ? "ab*" : " OR ab*");
    refused (text, TMQ_TOO_LARGE, "search: more than 4 words with a *");
    memset (text, 'a', sizeof (text) - 1);
    text[sizeof (text) - 1] = '\0';
    refused (text, TMQ_TOO_LARGE, "search: more than 1024 bytes");
    text[TMQ_SEARCH_BYTES_MAX] = '\0';
    assert_non_null (shape_of (text));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (words_phrases_and_prefixes),
        cmocka_unit_test (operators_stand_between_words),
        cmocka_unit_test (what_makes_no_sense_is_told),
        cmocka_unit_test (every_limit_has_its_name),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
