/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What looks secret, what does not, and what is left of the JSON around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "redact.h"

static redactor_t *redactor_of (const char *item)
{
    char error[REDACT_ERROR_SIZE] = "";
    redactor_t *self = redactor_new ();
    assert_non_null (self);
    if (!redactor_add (self, item, error))
        fail_msg ("%s: %s", item, error);
    assert_true (redactor_is_set (self));
    return self;
}

static void assert_text (redactor_t *self, const char *text, const char *wanted)
{
    bytes_t out = BYTES_INIT;
    bool replaced = redact_text (self, &out, text, strlen (text));
    if (strcmp (bytes_text (&out), wanted) != 0)
        fail_msg ("%s\ngave %s\nnot  %s", text, bytes_text (&out), wanted);
    assert_int_equal (replaced, strcmp (text, wanted) != 0);
    bytes_free (&out);
}

static void assert_pattern (const char *item, const char *text, const char *wanted)
{
    redactor_t *self = redactor_of (item);
    assert_text (self, text, wanted);
    redactor_free (&self);
}

static void assert_refused (const char *item, const char *reason)
{
    char error[REDACT_ERROR_SIZE] = "";
    redactor_t *self = redactor_new ();
    if (redactor_add (self, item, error))
        fail_msg ("%s was taken", item);
    assert_false (redactor_is_set (self));
    if (strstr (error, reason) == NULL)
        fail_msg ("%s gave: %s", item, error);
    redactor_free (&self);
}

/* Patterns. */

static void test_expressions_match (void **state)
{
    (void) state;
    assert_pattern ("a=x", "axb", "a[redacted:a]b");
    assert_pattern ("a=xy*", "axyyyb xb x", "a[redacted:a]b [redacted:a]b [redacted:a]");
    assert_pattern ("a=x{2,3}y", "xy xxy xxxxy", "xy [redacted:a] x[redacted:a]");
    assert_pattern ("a=(ab|c)+d", "ababcd abd ab", "[redacted:a] [redacted:a] ab");
    assert_pattern ("a=[[:digit:][:punct:]]+", "a1.2b", "a[redacted:a]b");
    assert_pattern ("a=\\d+\\.\\d\\x41", "1.2A 1x2A", "[redacted:a] 1x2A");
    assert_pattern ("a=(?i)To[k]en", "tOKEN", "[redacted:a]");
    assert_pattern ("a=b=c", "b=c", "[redacted:a]");
    assert_pattern ("a=^x|y$", "xx yy", "[redacted:a]x y[redacted:a]");
    assert_pattern ("a=(?<=pin )\\d+\\b", "pin 12 34", "pin [redacted:a] 34");
    assert_pattern ("a=<.*?>", "<a><b>\n<\n>", "[redacted:a][redacted:a]\n<\n>");
    assert_pattern ("a=(?s)<.*>", "<a><b>\n<\n>", "[redacted:a]");
    assert_pattern ("a=([a-z])\\1", "abbc", "a[redacted:a]c");
    assert_pattern ("a=x(?=y*)", "xy", "[redacted:a]y");
}

static void test_overlapping_matches_are_one (void **state)
{
    (void) state;
    redactor_t *self = redactor_of ("one=abc");
    char error[REDACT_ERROR_SIZE];
    assert_true (redactor_add (self, "two=bcde|q", error));
    assert_true (redactor_add (self, "six=abcd", error));
    assert_text (self, "abcde", "[redacted:six]");
    assert_text (self, "xbcde", "x[redacted:two]");
    assert_text (self, "abcq", "[redacted:one][redacted:two]");
    redactor_free (&self);
}

static void test_characters_are_of_utf8 (void **state)
{
    (void) state;
    assert_pattern ("a=x.", "xé!", "[redacted:a]!");
    assert_pattern ("a=[é€]+x", "€éx", "[redacted:a]");
    assert_pattern ("a=(?i)é\\x{20ac}", "É€", "[redacted:a]");
    /* What is none does not hide what stands beside it. */
    assert_pattern ("a=key\\d", "\xff\xfekey1\xe2\x82", "\xff\xfe[redacted:a]\xe2\x82");
    assert_pattern ("a=key.\\d",
                    "key\xff"
                    "1 key\xe9",
                    "[redacted:a] key\xe9");
    redactor_t *self = redactor_of ("a=k[^x]y");
    bytes_t out = BYTES_INIT;
    assert_true (redact_text (self, &out, "\0k\0y\0", 5));
    assert_int_equal (out.length, 14);
    assert_memory_equal (out.data, "\0[redacted:a]\0", 14);
    bytes_free (&out);
    redactor_free (&self);
}

static void test_bad_expressions_are_refused (void **state)
{
    (void) state;
    char text[PATTERN_BYTES_MAX + 8];
    assert_refused ("", "NAME=PATTERN");
    assert_refused ("commons", "NAME=PATTERN");
    assert_refused ("=x", "NAME=PATTERN");
    assert_refused ("Upper=x", "NAME=PATTERN");
    assert_refused ("a=", "the empty text");
    assert_refused ("a=x*", "the empty text");
    assert_refused ("a=(x|y?)", "the empty text");
    assert_refused ("a=(?=x)", "the empty text");
    assert_refused ("a=(x", "byte 3 of the pattern: missing closing parenthesis");
    assert_refused ("a=xy)", "byte 3 of the pattern: unmatched closing parenthesis");
    assert_refused ("a=+x", "byte 1 of the pattern: quantifier does not follow");
    assert_refused ("a=x\\C", "using \\C is disabled");
    assert_refused ("a=x\xff", "UTF-8 error");
    assert_refused ("a=x{70000}", "number too big");
    assert_refused ("a=((xy){1000}){1000}", "too large");
    memset (text, 'x', sizeof (text));
    memcpy (text, "a=", 2);
    text[sizeof (text) - 1] = '\0';
    assert_refused (text, "more than 1024 bytes");
    memset (text + 2, '(', 40);
    text[42] = '\0';
    assert_refused (text, "nested");
}

static void test_lists_are_bounded (void **state)
{
    (void) state;
    char error[REDACT_ERROR_SIZE];
    redactor_t *self = redactor_new ();
    for (int i = 0; i < REDACT_ITEMS_MAX; i++)
        assert_true (redactor_add (self, i % 2 == 0 ? "a=x" : "common", error));
    assert_false (redactor_add (self, "a=x", error));
    assert_non_null (strstr (error, "more than 64"));
    redactor_free (&self);
}

/* Bounds: each is met, and what is looked at is replaced as a whole. */

typedef struct hard {
    const char *item;
    const char *text; /* again and again */
    size_t length;
} hard_t;

static void test_work_is_bounded (void **state)
{
    static const hard_t hards[] = {
        {"a=(x+x+)+(?=y)", "x", 64}, /* goes back for ever */
        {"a=[x.]+@[x.]+", "x.@", 3 * 1024 * 1024},
        {"a=[x@]+@[yz]", "x@", 256 * 1024},        /* the square of the length */
        {"a=x{1000}y|x{900}z|x{800}w", "xyzw", 0}, /* nothing at all */
        {"a=(?:x|y)+[zw]", "xy", 4 * 1024 * 1024}, /* places to go back to */
        {"a=(x(?1)?[yz])", "x", 1024 * 1024},      /* inside each other */
        {"a=(*LIMIT_MATCH=1)x+[yw]", "xxz", 64},
        {"a=x", "x ", 2 * (PATTERN_COVERS_MAX + 1)}};
    (void) state;
    for (size_t i = 0; i < sizeof (hards) / sizeof (hards[0]); i++) {
        const hard_t *hard = &hards[i];
        char *text = malloc (hard->length + 1);
        bytes_t out = BYTES_INIT;
        for (size_t at = 0; at < hard->length; at++)
            text[at] = hard->text[at % strlen (hard->text)];
        redactor_t *self = redactor_of (hard->item);
        if (redact_text (self, &out, text, hard->length) != (hard->length > 0))
            fail_msg ("%s", hard->item);
        assert_string_equal (bytes_text (&out), hard->length > 0 ? "[redacted:too-much-work]" : "");
        assert_int_equal (redactor_hidden (self), hard->length > 0);
        redactor_free (&self);
        bytes_free (&out);
        free (text);
    }
}

/* As many as there may be are replaced. */
static void test_bounds_leave_room (void **state)
{
    (void) state;
    const size_t length = 2 * PATTERN_COVERS_MAX;
    char *text = malloc (length);
    bytes_t out = BYTES_INIT;
    for (size_t i = 0; i < length; i++)
        text[i] = "x "[i % 2];
    redactor_t *self = redactor_of ("a=x");
    assert_true (redact_text (self, &out, text, length));
    assert_int_equal (out.length, PATTERN_COVERS_MAX * strlen ("[redacted:a] "));
    assert_int_equal (redactor_hidden (self), 0);
    redactor_free (&self);
    /* An address of mail in a text that could be one for long. */
    memset (text, 'x', length);
    memcpy (text + length - 20, ", joe@example.org, x", 20);
    self = redactor_of ("mail=[A-Za-z0-9._-]{1,64}@[A-Za-z0-9.-]+");
    bytes_clear (&out);
    assert_true (redact_text (self, &out, text, length));
    assert_int_equal (redactor_hidden (self), 0);
    assert_non_null (strstr (bytes_text (&out), ", [redacted:mail], x"));
    redactor_free (&self);
    bytes_free (&out);
    free (text);
}

/* The well-known forms. */

typedef struct sample {
    const char *text;
    const char *wanted; /* NULL: it stays */
} sample_t;

#define ID36 "abcdefghijklmnopqrstuvwxyz0123456789"

static void test_common_forms (void **state)
{
    static const sample_t samples[] = {
        {"key tmqsk_4x7RtB2kQp9yLmNc3vWz8sDf", "key [redacted:taskmq]"},
        {"taskctl join tmqjoin_2abcdefghijklmnopqrstuv.", "taskctl join [redacted:taskmq]."},
        {"tmqpk_4x7RtB2kQp9yLmNc3vWz8sDf", NULL},
        {"tmqsk_ is how they begin", NULL},
        {"AKIAIOSFODNN7EXAMPLE", "[redacted:aws]"},
        {"ASIAIOSFODNN7EXAMPLE", "[redacted:aws]"},
        {"AKIA is a prefix", NULL},
        {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[redacted:aws]"},
        {"AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'", "[redacted:aws]'"},
        {"aws_secret_access_key = $SECRET", NULL},
        {"ghp_" ID36, "[redacted:github]"},
        {"token=gho_" ID36 ";", "token=[redacted:github];"},
        {"github_pat_11ABCDEFG0123456789_abcdef", "[redacted:github]"},
        {"ghp_short", NULL},
        {"glpat-abcdefghij0123456789", "[redacted:gitlab]"},
        {"glpat-", NULL},
        {"xoxb-123456789012-abcdef", "[redacted:slack]"},
        {"xapp-1-A0123456789-abc", "[redacted:slack]"},
        {"https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX",
         "https://[redacted:slack]"},
        {"xoxo-hugs", NULL},
        {"AIzaabcdefghijklmnopqrstuvwxyz012345678", "[redacted:google]"},
        {"AIza", NULL},
        {"sk_live_abcdefghijklmnop", "[redacted:stripe]"},
        {"sk_live_", NULL},
        {"sk-proj-abcdefghijklmnopqrst", "[redacted:sk]"},
        {"sk-learn", NULL},
        {"npm_" ID36, "[redacted:npm]"},
        {"npm_config_cache", NULL},
        {"Authorization: Bearer abcdefghijklmnopqrst", "Authorization: [redacted:bearer]"},
        {"the bearer of this letter", NULL},
        {"Authorization: Basic dXNlcjpwYXNz", "[redacted:basic]"},
        {"basic authorization", NULL},
        {"postgres://joe:s3cret@db/x", "postgres://[redacted:url]@db/x"},
        {"https://example.org:8080/x@y", NULL},
        {"https://joe@example.org/", NULL},
        {"at 10:30 mail joe@example.org", NULL},
        {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_9", "[redacted:jwt]"},
        {"eyJhbGciOiJIUzI1NiJ9 alone", NULL},
        {"a\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIE==\n"
         "-----END RSA PRIVATE KEY-----\nb",
         "a\n[redacted:private-key]\nb"},
        {"-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----",
         "[redacted:private-key]"},
        {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNza\nb3Bl", "[redacted:private-key]"},
        {"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ\n-----END PGP PRIVATE KEY BLOCK-----",
         "[redacted:private-key]"},
        {"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", NULL},
        {"0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b", NULL},
        {"2026-11-23T06:30:00.123Z", NULL}};
    (void) state;
    redactor_t *self = redactor_of ("common");
    for (size_t i = 0; i < sizeof (samples) / sizeof (samples[0]); i++)
        assert_text (self, samples[i].text,
                     samples[i].wanted == NULL ? samples[i].text : samples[i].wanted);
    redactor_free (&self);
    /* Each form has a sample. */
    for (size_t place = 0; redact_common_name (place) != NULL; place++) {
        char name[REDACT_NAME_MAX + 16];
        bool found = false;
        snprintf (name, sizeof (name), "[redacted:%s]", redact_common_name (place));
        for (size_t i = 0; i < sizeof (samples) / sizeof (samples[0]); i++)
            found |= samples[i].wanted != NULL && strstr (samples[i].wanted, name) != NULL;
        assert_true (found);
    }
}

/* JSON. */

static void assert_object (redactor_t *self, const char *text, const char *wanted)
{
    bytes_t out = BYTES_INIT;
    bool replaced = redact_object (self, &out, text, strlen (text));
    if (strcmp (bytes_text (&out), wanted == NULL ? text : wanted) != 0)
        fail_msg ("%s\ngave %s\nnot  %s", text, bytes_text (&out), wanted);
    assert_true (json_text_is_object (out.data, out.length));
    assert_int_equal (replaced, wanted != NULL);
    bytes_free (&out);
}

#define MARK ",\"redacted\":true}"

static void test_objects_stay_json (void **state)
{
    (void) state;
    redactor_t *self = redactor_of ("s=secret[0-9]*");
    assert_object (self, "{}", NULL);
    assert_object (self, "{\"a\":\"b\\u00e9\\n\",\"c\":[1,true,null,-1.5e3]}", NULL);
    assert_object (self, "{\"a\":\"my secret1\"}", "{\"a\":\"my [redacted:s]\"" MARK);
    assert_object (self, "{\"a\":\"my s\\u0065cret1 \\\"\\n\\ud83d\\ude00\"}",
                   "{\"a\":\"my [redacted:s] \\\"\\n\xf0\x9f\x98\x80\"" MARK);
    assert_object (self, "{\"secret7\":1,\"b\":{\"secret\":[\"x\",\"secret\"]}}",
                   "{\"[redacted:s]\":1,\"b\":{\"[redacted:s]\":[\"x\",\"[redacted:s]\"]}" MARK);
    assert_object (self, "{\"a\":\"sec\",\"b\":\"ret\"}", NULL);

    redactor_free (&self);
}

static void test_what_programs_go_by_stays (void **state)
{
    (void) state;
    redactor_t *self = redactor_of ("any=[0-9a-z-]+");
    assert_object (self,
                   "{\"task_id\":\"0192\",\"namespace\":\"default\",\"seq\":1,\"pos\":2,"
                   "\"kind\":\"x\",\"status\":\"working\",\"created_at\":\"2026\",\"at\":\"9\"}",
                   NULL);
    assert_object (self, "{\"seq\":1,\"x\":{\"seq\":1}}",
                   "{\"seq\":1,\"[redacted:any]\":{\"[redacted:any]\":\"[redacted:any]\"}" MARK);
    redactor_free (&self);
}

static void test_names_tell_what_a_value_is (void **state)
{
    (void) state;
    redactor_t *self = redactor_of ("common");
    assert_object (self,
                   "{\"payload\":{\"AWS_SECRET_ACCESS_KEY\":"
                   "\"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\"}}",
                   "{\"payload\":{\"AWS_SECRET_ACCESS_KEY\":\"[redacted:aws]\"}" MARK);
    assert_object (self, "{\"payload\":{\"authorization\":\"Basic dXNlcjpwYXNz\"}}",
                   "{\"payload\":{\"authorization\":\"[redacted:basic]\"}" MARK);
    redactor_free (&self);
}

static void test_bytes_and_texts_of_json_are_looked_into (void **state)
{
    (void) state;
    redactor_t *self = redactor_of ("s=secret[0-9]*");
    /* "\0secret1\0" */
    assert_object (self, "{\"payload\":{\"base64\":\"AHNlY3JldDEA\"}}",
                   "{\"payload\":{\"base64\":\"AFtyZWRhY3RlZDpzXQA=\"}" MARK);
    assert_object (self, "{\"payload\":{\"base64\":\"AAAA\"}}", NULL);
    assert_object (self, "{\"payload_text\":\"{ \\\"a\\\": \\\"s\\\\u0065cret\\\" }\"}",
                   "{\"payload_text\":\"{ \\\"a\\\": \\\"[redacted:s]\\\" }\"" MARK);
    assert_object (self, "{\"payload_text\":\"{ \\\"a\\\": 1 }\"}", NULL);
    /* Bytes within such a text: what stands around them is as it was. */
    assert_object (self,
                   "{\"payload_text\":\"{ \\\"base64\\\": \\\"QUJDREVGR0hJSktMTU5PUFFSU1RV\\\", "
                   "\\\"t\\\": \\\"secret\\\" }\"}",
                   "{\"payload_text\":\"{ \\\"base64\\\": \\\"QUJDREVGR0hJSktMTU5PUFFSU1RV\\\", "
                   "\\\"t\\\": \\\"[redacted:s]\\\" }\"" MARK);
    assert_object (self, "{\"payload_text\":\"no json: secret\"}",
                   "{\"payload_text\":\"no json: [redacted:s]\"" MARK);
    redactor_free (&self);
}

/* A line has so much work for all its values, and each value some of its own. */
static void test_one_dear_value_leaves_the_others (void **state)
{
    enum { DEAR = 128 * 1024 };
    (void) state;
    redactor_t *self = redactor_of ("a=[x@]+@1|key[0-9]");
    bytes_t in = BYTES_INIT;
    bytes_t out = BYTES_INIT;
    for (unsigned i = 0; i < 3; i++) {
        bytes_append_text (&in, i == 0 ? "{\"a\":\"" : i == 1 ? "\",\"b\":\"" : "\",\"c\":\"");
        for (size_t at = 0; at < DEAR; at++)
            bytes_append_byte (&in, (uint8_t) "x@"[at % 2]);
    }
    bytes_append_text (&in, "\",\"plain\":\"text\",\"d\":\"my key1\"}");
    assert_true (redact_object (self, &out, in.data, in.length));
    assert_string_equal (bytes_text (&out), "{\"a\":\"[redacted:too-much-work]\","
                                            "\"b\":\"[redacted:too-much-work]\","
                                            "\"c\":\"[redacted:too-much-work]\","
                                            "\"plain\":\"text\",\"d\":\"my [redacted:a]\"" MARK);
    assert_int_equal (redactor_hidden (self), 3);
    redactor_free (&self);
    bytes_free (&in);
    bytes_free (&out);
}

static void test_numbers_become_texts (void **state)
{
    (void) state;
    redactor_t *self = redactor_of ("card=[0-9]{16}");
    assert_object (self, "{\"a\":[4111111111111111,12]}", "{\"a\":[\"[redacted:card]\",12]" MARK);
    redactor_free (&self);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_expressions_match),
        cmocka_unit_test (test_overlapping_matches_are_one),
        cmocka_unit_test (test_characters_are_of_utf8),
        cmocka_unit_test (test_bad_expressions_are_refused),
        cmocka_unit_test (test_lists_are_bounded),
        cmocka_unit_test (test_work_is_bounded),
        cmocka_unit_test (test_bounds_leave_room),
        cmocka_unit_test (test_one_dear_value_leaves_the_others),
        cmocka_unit_test (test_common_forms),
        cmocka_unit_test (test_objects_stay_json),
        cmocka_unit_test (test_what_programs_go_by_stays),
        cmocka_unit_test (test_names_tell_what_a_value_is),
        cmocka_unit_test (test_bytes_and_texts_of_json_are_looked_into),
        cmocka_unit_test (test_numbers_become_texts)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
