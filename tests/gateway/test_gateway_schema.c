/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* JSON Schema: the official suite of draft 2020-12, what is told, what is refused, and bounds.
 *
 * With a file as its argument the program judges pairs: a line {"schema":…,"value":…} each, and
 * prints for each "valid", "invalid" or "refused". */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/schema.h"

static json_t *parse (const char *text)
{
    json_error_t error;
    json_t *value = json_loads (text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (value == NULL)
        fail_msg ("%s: %s", error.text, text);
    return value;
}

static schema_t *compile (const char *text, char error[SCHEMA_ERROR_SIZE])
{
    json_t *document = parse (text);
    schema_t *schema = schema_new (document, error);
    json_decref (document);
    return schema;
}

/* Schemas of the suite that ask for other documents: we fetch nothing. */
static bool leads_out (const char *error)
{
    return strstr (error, "leads out of the document") != NULL;
}

static void judge_group (const json_t *group, size_t *judged, size_t *refused)
{
    char error[SCHEMA_ERROR_SIZE];
    size_t i;
    const json_t *test;
    const char *file = json_string_value (json_object_get (group, "file"));
    const char *what = json_string_value (json_object_get (group, "description"));
    const json_t *tests = json_object_get (group, "tests");
    schema_t *schema = schema_new (json_object_get (group, "schema"), error);
    if (schema == NULL) {
        if (!leads_out (error))
            fail_msg ("%s: %s: %s", file, what, error);
        *refused += json_array_size (tests);
        return;
    }
    json_array_foreach (tests, i, test)
    {
        bytes_t flaws = BYTES_INIT;
        const bool good = schema_takes (schema, json_array_get (test, 1), &flaws);
        if (good != json_is_true (json_array_get (test, 2)))
            fail_msg ("%s: %s: %s: %s\n%s", file, what,
                      json_string_value (json_array_get (test, 0)), good ? "taken" : "not taken",
                      bytes_text (&flaws));
        assert_int_equal (good, flaws.length == 0);
        bytes_free (&flaws);
        (*judged)++;
    }
    schema_free (&schema);
}

static void test_the_suite_of_the_draft (void **state)
{
    static char line[65536];
    char path[512];
    size_t judged = 0;
    size_t refused = 0;
    (void) state;
    snprintf (path, sizeof path, "%s/tests/gateway/data/draft2020-12.jsonl",
              getenv ("TASKMQ_SOURCE"));
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    while (fgets (line, sizeof line, file) != NULL) {
        json_t *group = parse (line);
        judge_group (group, &judged, &refused);
        json_decref (group);
    }
    fclose (file);
    print_message ("%zu tests judged as the suite does, %zu lead out of their document\n", judged,
                   refused);
    assert_int_equal (judged, 1246);
    assert_int_equal (refused, 17);
}

static void test_what_is_told (void **state)
{
    char error[SCHEMA_ERROR_SIZE];
    bytes_t flaws = BYTES_INIT;
    (void) state;
    schema_t *schema = compile ("{\"type\":\"object\",\"required\":[\"film\"],\"properties\":{"
                                "\"film\":{\"type\":\"string\"},\"a/b\":{\"items\":{\"maximum\":"
                                "3}}},\"additionalProperties\":false}",
                                error);
    json_t *value = parse ("{\"frame\":1,\"a/b\":[1,9]}");
    assert_non_null (schema);
    assert_false (schema_takes (schema, value, &flaws));
    assert_string_equal (bytes_text (&flaws), "(the whole): has no film\n"
                                              "/a~1b/1: is above 3\n"
                                              "(the whole): must not have frame\n");
    assert_false (schema_takes (schema, value, NULL));
    json_decref (value);
    schema_free (&schema);
    bytes_free (&flaws);
}

static void test_what_is_refused (void **state)
{
    static const char *const bad[][2] = {
        {"3", "#: a schema is an object, true or false"},
        {"{\"type\":\"text\"}", "#: type is a type, or an array of different types"},
        {"{\"properties\":{\"a\":{\"minimum\":\"1\"}}}", "#/properties/a: minimum is a number"},
        {"{\"items\":[{}]}", "#: items is one schema in draft 2020-12; a list is prefixItems"},
        {"{\"dependencies\":{}}", "#: dependencies is of draft 7"},
        {"{\"$recursiveRef\":\"#\"}", "#: $recursiveRef is of draft 2019-09"},
        {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}", "#: $schema is not that of"},
        {"{\"$ref\":\"https://example.com/a.json\"}", "leads out of the document"},
        {"{\"$ref\":\"#/$defs/none\"}", "leads to no schema"},
        {"{\"$ref\":\"#none\"}", "leads to no schema"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", "the anchor 'x' too"},
        {"{\"$defs\":{\"a\":{\"$id\":\"x\"},\"b\":{\"$id\":\"x\"}}}", "has the $id 'x' too"},
        {"{\"pattern\":\"(\"}", "#/pattern: byte 2 of the pattern"},
        {"{\"pattern\":\"(*LIMIT_MATCH=1)a\"}", "a verb of PCRE"},
        {"{\"pattern\":\"a(?C1)b\"}", "a verb of PCRE"},
        {"{\"minLength\":-1}", "minLength is a whole number"},
        {"{\"multipleOf\":0}", "multipleOf is a number above 0"},
        {"{\"required\":[\"a\",\"a\"]}", "required is an array of different strings"},
        {"{\"allOf\":[]}", "allOf is an array of at least one schema"},
        {"{\"$id\":\"#x\"}", "$id is no URI reference"},
    };
    char error[SCHEMA_ERROR_SIZE];
    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        schema_t *schema = compile (bad[i][0], error);
        if (schema != NULL || strstr (error, bad[i][1]) == NULL)
            fail_msg ("%s: '%s', not '%s'", bad[i][0], error, bad[i][1]);
    }
}

/* count times `before`, the middle, count times `after`. */
static char *nested (const char *before, const char *middle, const char *after, size_t count)
{
    bytes_t out = BYTES_INIT;
    for (size_t i = 0; i < count; i++)
        bytes_append_text (&out, before);
    bytes_append_text (&out, middle);
    for (size_t i = 0; i < count; i++)
        bytes_append_text (&out, after);
    char *text = strdup (bytes_text (&out));
    bytes_free (&out);
    assert_non_null (text);
    return text;
}

static void test_bounds_of_schemas (void **state)
{
    char error[SCHEMA_ERROR_SIZE];
    (void) state;
    char *text = nested ("{\"not\":", "{}", "}", SCHEMA_DEPTH_MAX - 1);
    schema_t *schema = compile (text, error);
    assert_non_null (schema);
    schema_free (&schema);
    free (text);
    text = nested ("{\"not\":", "{}", "}", SCHEMA_DEPTH_MAX);
    assert_null (compile (text, error));
    assert_non_null (strstr (error, "nested deeper than 64"));
    free (text);
    text = nested ("", "{\"anyOf\":[{}", "", 1);
    bytes_t wide = BYTES_INIT;
    bytes_append_text (&wide, text);
    for (size_t i = 0; i < SCHEMA_NODES_MAX; i++)
        bytes_append_text (&wide, ",{}");
    bytes_append_text (&wide, "]}");
    assert_null (compile (bytes_text (&wide), error));
    assert_non_null (strstr (error, "more than 10000 subschemas"));
    bytes_free (&wide);
    free (text);
}

static void assert_stopped (const char *schema_text, const char *value_text, const char *flaw)
{
    char error[SCHEMA_ERROR_SIZE];
    bytes_t flaws = BYTES_INIT;
    schema_t *schema = compile (schema_text, error);
    json_t *value = parse (value_text);
    if (schema == NULL)
        fail_msg ("%s", error);
    assert_false (schema_takes (schema, value, &flaws));
    if (strstr (bytes_text (&flaws), flaw) == NULL)
        fail_msg ("%s", bytes_text (&flaws));
    bytes_free (&flaws);
    json_decref (value);
    schema_free (&schema);
}

/* None of these may be taken for want of time. */
static void test_bounds_of_judgements (void **state)
{
    (void) state;
    assert_stopped ("{\"$ref\":\"#\"}", "1", "applied deeper");
    assert_stopped ("{\"not\":{\"$ref\":\"#\"}}", "1", "applied deeper");
    assert_stopped ("{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}],\"$defs\":{"
                    "\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"},{\"$ref\":\"#/$defs/b\"}]},"
                    "\"b\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}}}",
                    "1", "");
    assert_stopped ("{\"pattern\":\"^(a+)+$\"}", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"",
                    "patterns cost more");
    assert_stopped ("{\"not\":{\"pattern\":\"^(a+)+$\"}}",
                    "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"", "patterns cost more");
    /* Each one is judged in time, but not all of them. */
    bytes_t hard = BYTES_INIT;
    bytes_append_text (&hard, "[\"easy\"");
    for (size_t i = 0; i < 1000; i++)
        bytes_append_text (&hard, ",\"aaaaaaaaaaaa!\"");
    bytes_append_text (&hard, "]");
    assert_stopped ("{\"items\":{\"not\":{\"pattern\":\"^(\\\\w+\\\\s?)*$\"}}}", bytes_text (&hard),
                    "patterns cost more");
    assert_stopped ("{\"items\":{\"pattern\":\"^(\\\\w+\\\\s?)*$\"}}",
                    "[\"easy\",\"aaaaaaaaaaaa!\"]", "/1: does not match");
    bytes_free (&hard);
    char *many = nested ("[", "1", "]", 60);
    assert_stopped ("{\"items\":{\"$ref\":\"#\"},\"maximum\":0}", many, "is above 0");
    free (many);
    bytes_t wide = BYTES_INIT;
    bytes_append_text (&wide, "[0");
    for (size_t i = 1; i < 1000; i++) {
        char item[16];
        snprintf (item, sizeof item, ",%zu", i);
        bytes_append_text (&wide, item);
    }
    bytes_append_text (&wide, "]");
    assert_stopped ("{\"uniqueItems\":true}", bytes_text (&wide), "more steps");
    bytes_free (&wide);
}

static int judge_pairs (const char *path)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen (path, "r");
    if (file == NULL)
        return 1;
    while (getline (&line, &room, file) > 0) {
        char error[SCHEMA_ERROR_SIZE];
        json_t *pair = json_loads (line, 0, NULL);
        schema_t *schema = schema_new (json_object_get (pair, "schema"), error);
        puts (schema == NULL                                                 ? "refused"
              : schema_takes (schema, json_object_get (pair, "value"), NULL) ? "valid"
                                                                             : "invalid");
        schema_free (&schema);
        json_decref (pair);
    }
    free (line);
    fclose (file);
    return 0;
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_suite_of_the_draft), cmocka_unit_test (test_what_is_told),
        cmocka_unit_test (test_what_is_refused), cmocka_unit_test (test_bounds_of_schemas),
        cmocka_unit_test (test_bounds_of_judgements)};
    if (argc > 1)
        return judge_pairs (argv[1]);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
