/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tokens, rates, hosts and origins, and JSON as it is taken apart. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/origin.h"
#include "auth/policy.h"
#include "auth/session.h"
#include "auth/tokens.h"
#include "rest/input.h"

static const char path[] = "test_gateway_auth.tokens";

static void write_file (const char *text, mode_t mode)
{
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (text, file);
    fclose (file);
    assert_int_equal (chmod (path, mode), 0);
}

static void test_tokens_are_kept_as_hashes (void **state)
{
    static tokens_t tokens;
    char token[TOKEN_SIZE];
    char error[TOKENS_ERROR_SIZE];
    (void) state;
    unlink (path);
    assert_true (tokens_read (&tokens, path, error));
    assert_int_equal (tokens.count, 0);
    assert_true (tokens_add (&tokens, token, "ann", "client,observer", "a,b", 2000, error));
    assert_int_equal (strlen (token), TOKEN_SIZE - 1);
    assert_false (tokens_add (&tokens, token, "ann", "client", "a", 0, error));
    assert_true (tokens_write (&tokens, path, error));
    tokens_clear (&tokens);
    assert_true (tokens_read (&tokens, path, error));
    assert_int_equal (tokens.list[0]->roles, ROLE_CLIENT | ROLE_OBSERVER);
    assert_true (principal_has (tokens.list[0], "b") && !principal_has (tokens.list[0], "c"));
    assert_null (tokens_find (&tokens, "tmq_no", 0));
    assert_true (tokens_remove (&tokens, "ann") && !tokens_remove (&tokens, "ann"));
    assert_true (tokens_add (&tokens, token, "bob", "client", "a", 2000, error));
    assert_ptr_equal (tokens_find (&tokens, token, 1999), tokens.list[0]);
    assert_null (tokens_find (&tokens, token, 2000));
    tokens_clear (&tokens);
    unlink (path);
}

static void test_bad_files_of_tokens (void **state)
{
    static tokens_t tokens;
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
    static const char *const wrong[] = {"a client default " HASH,
                                        "a client default " HASH " never x",
                                        "a king default " HASH " never",
                                        "a client default 00 never",
                                        "a client default " HASH " tomorrow",
                                        "a/b client default " HASH " never",
                                        "a client , " HASH " never",
                                        "a client a,b,c,d,e,f,g,h,i " HASH " never",
                                        "a client default " HASH " never\na client default " HASH
                                        " never"};
    char error[TOKENS_ERROR_SIZE];
    (void) state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file (wrong[i], 0600);
        if (tokens_read (&tokens, path, error))
            fail_msg ("taken: %s", wrong[i]);
        assert_non_null (strstr (error, path));
        assert_int_equal (tokens.count, 0);
    }
    write_file ("# nobody\n\n", 0644);
    assert_false (tokens_read (&tokens, path, error));
    write_file ("# nobody\n\n", 0600);
    assert_true (tokens_read (&tokens, path, error));
    unlink (path);
}

/* A principal is the same one when the file was read again. */
static void test_inheritance (void **state)
{
    static tokens_t before, after;
    char token[TOKEN_SIZE];
    char error[TOKENS_ERROR_SIZE];
    (void) state;
    assert_true (tokens_add (&before, token, "ann", "client", "default", 0, error));
    assert_true (tokens_add (&after, token, "bob", "client", "default", 0, error));
    assert_true (tokens_add (&after, token, "ann", "client", "default", 0, error));
    account_t *owed = account_retain (before.list[0]->account);
    owed->bytes = 7;
    before.list[0]->time.used = 5;
    tokens_inherit (&after, &before);
    tokens_clear (&before);
    assert_ptr_equal (after.list[1]->account, owed);
    assert_int_equal (after.list[1]->account->bytes, 7);
    assert_true (after.list[1]->time.used > 4);
    assert_int_equal (after.list[0]->account->bytes, 0);
    tokens_clear (&after);
    assert_int_equal (owed->references, 1); /* an answer is owed still */
    account_release (owed);
}

static void test_rates (void **state)
{
    rate_t rate = {0, 0};
    uint64_t left, wait_ms;
    (void) state;
    for (uint64_t i = 0; i < 10; i++) {
        assert_true (rate_take (&rate, 5, 10, 1000000, &left, &wait_ms));
        assert_int_equal (left, 9 - i);
    }
    assert_false (rate_take (&rate, 5, 10, 1000000, &left, &wait_ms));
    assert_int_equal (wait_ms, 201);
    assert_true (rate_take (&rate, 5, 10, 1201000, &left, &wait_ms));
    assert_false (rate_take (&rate, 5, 10, 1202000, &left, &wait_ms));
    assert_true (rate_take (&rate, 5, 10, 100000000, &left, &wait_ms));
    assert_int_equal (left, 9);

    rate_t time = {0, 0};
    rate_spend (&time, 5, 30, 1000000);
    assert_int_equal (rate_debt_ms (&time, 5, 10, 1000000), 4001);
    assert_int_equal (rate_debt_ms (&time, 5, 10, 5000000), 0);
    rate_spend (&time, 5, -30, 1000000);
    assert_int_equal (rate_debt_ms (&time, 5, 0, 1000000), 0);

    static failures_t failures;
    for (int i = 0; i < 3; i++) {
        assert_int_equal (failures_wait_ms (&failures, "a", 10), 0);
        failures_add (&failures, "a", 3, 5000, 10);
    }
    assert_int_equal (failures_wait_ms (&failures, "a", 10), 5000);
    assert_int_equal (failures_wait_ms (&failures, "b", 10), 0);
    assert_int_equal (failures_wait_ms (&failures, "a", 5010), 0);
}

static void test_hosts_and_origins (void **state)
{
    const names_t names = {{"tasks.example", "https://page.example"}, 2};
    static const char *const good[] = {"localhost",     "LOCALHOST:1",    "127.0.0.1",
                                       "127.9.9.9:80",  "[::1]",          "[::1]:80",
                                       "tasks.example", "Tasks.example:1"};
    static const char *const bad[] = {"",          "evil.example", "127.0.0.1.evil.example",
                                      "128.0.0.1", "[::2]",        "[::1",
                                      "[::1]x",    "localhost:x",  "localhost:1:2",
                                      "0.0.0.0",   "[::1].evil",   "2130706433"};
    (void) state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!origin_host_is_good (good[i], &names))
            fail_msg ("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (origin_host_is_good (bad[i], &names))
            fail_msg ("taken: %s", bad[i]);
    assert_true (origin_is_good ("http://a:1", "a:1", &names));
    assert_true (origin_is_good ("https://page.example", "a", &names));
    assert_false (origin_is_good ("http://a", "a:1", &names));
    assert_false (origin_is_good ("null", "a", &names));
    assert_false (origin_is_good ("", "", &names));
}

static slice_t slice_of (const char *text)
{
    return (slice_t){text, strlen (text)};
}

static void assert_member (const char *object, const char *name, const char *wanted)
{
    const slice_t got = input_member (slice_of (object), name);
    if (got.length != strlen (wanted) || memcmp (got.text, wanted, got.length) != 0)
        fail_msg ("%s of %s is %.*s", name, object, (int) got.length, got.text);
}

static void test_members_as_they_stand (void **state)
{
    (void) state;
    assert_member ("{}", "a", "");
    assert_member (" { \"a\" : 1.10 } ", "a", "1.10");
    assert_member ("{\"b\":\"\\\"a\\\":2\",\"a\":[{\"a\":3},\"]\"],\"c\":4}", "a",
                   "[{\"a\":3},\"]\"]");
    assert_member ("{\"b\":\"\\\"a\\\":2\",\"a\":[{\"a\":3},\"]\"],\"c\":4}", "c", "4");
    assert_member ("{\"b\":{\"a\":1},\"a\":null}", "a", "null");
    assert_member ("{\"a\\u0062\":1}", "ab", "");
    slice_t rest = slice_of ("[ 1 , \"a,b\",[],{\"x\":[2,3]} ]");
    static const char *const items[] = {"1", "\"a,b\"", "[]", "{\"x\":[2,3]}"};
    slice_t item;
    for (size_t i = 0; i < 4; i++) {
        assert_true (input_next (&rest, &item));
        assert_int_equal (item.length, strlen (items[i]));
        assert_memory_equal (item.text, items[i], item.length);
    }
    assert_false (input_next (&rest, &item));
    rest = slice_of ("[]");
    assert_false (input_next (&rest, &item));
}

static char *make_session (const sessions_t *sessions, seal_purpose_t purpose,
                           const principal_t *principal, int64_t expires_ms)
{
    bytes_t text = BYTES_INIT;
    session_make (sessions, &text, purpose, principal->hash, expires_ms);
    assert_non_null (bytes_text (&text));
    return (char *) text.data;
}

/* Nobody makes sessions that another one has ended good again, by ending many. */
static void test_ended_sessions (void **state)
{
    static tokens_t tokens;
    static sessions_t sessions;
    static const uint8_t secret[SEAL_KEY_BYTES] = "one";
    static char *texts[2 * SESSIONS_ENDED_MAX];
    seal_t seal;
    char token[TOKEN_SIZE];
    char error[TOKENS_ERROR_SIZE];
    (void) state;
    seal_init (&seal, secret);
    sessions_init (&sessions, &seal, false);
    assert_true (tokens_add (&tokens, token, "ann", "client", "a", 0, error));
    assert_true (tokens_add (&tokens, token, "bob", "client", "a", 0, error));
    char *hers = make_session (&sessions, SEAL_COOKIE, tokens.list[0], 4000);
    session_end (&sessions, SEAL_COOKIE, hers, 1);
    for (size_t i = 0; i < 2 * SESSIONS_ENDED_MAX; i++) {
        texts[i] = make_session (&sessions, SEAL_COOKIE, tokens.list[1], 4000);
        session_end (&sessions, SEAL_COOKIE, texts[i], 1);
    }
    assert_null (session_find (&sessions, &tokens, SEAL_COOKIE, hers, 1));
    for (size_t i = 0; i < 2 * SESSIONS_ENDED_MAX; i++) {
        const bool kept = i >= 2 * SESSIONS_ENDED_MAX - SESSIONS_ENDED_OWN_MAX;
        assert_true ((session_find (&sessions, &tokens, SEAL_COOKIE, texts[i], 1) == NULL) == kept);
        free (texts[i]);
    }
    free (hers);
    tokens_clear (&tokens);
}

static void test_sessions (void **state)
{
    static tokens_t tokens;
    static sessions_t sessions, others;
    static const uint8_t secret[SEAL_KEY_BYTES] = "one", other_secret[SEAL_KEY_BYTES] = "two";
    seal_t seal, other;
    char token[TOKEN_SIZE];
    char error[TOKENS_ERROR_SIZE];
    (void) state;
    seal_init (&seal, secret);
    seal_init (&other, other_secret);
    sessions_init (&sessions, &seal, false);
    sessions_init (&others, &other, true);
    assert_string_not_equal (sessions.cookie, others.cookie + strlen ("__Host-"));
    assert_true (tokens_add (&tokens, token, "ann", "client", "a", 5000, error));
    assert_true (tokens_add (&tokens, token, "bob", "client", "a", 0, error));
    char *text = make_session (&sessions, SEAL_COOKIE, tokens.list[0], 4000);
    assert_ptr_equal (session_find (&sessions, &tokens, SEAL_COOKIE, text, 1), tokens.list[0]);
    assert_null (session_find (&sessions, &tokens, SEAL_COOKIE, text, 4000));
    assert_null (session_find (&sessions, &tokens, SEAL_TICKET, text, 1));
    assert_null (session_find (&others, &tokens, SEAL_COOKIE, text, 1));
    char *second = make_session (&sessions, SEAL_COOKIE, tokens.list[0], 9000);
    assert_null (
        session_find (&sessions, &tokens, SEAL_COOKIE, second, 5000)); /* the token's end */
    session_end (&sessions, SEAL_COOKIE, text, 1);
    session_end (&sessions, SEAL_COOKIE, "nonsense", 1);
    assert_null (session_find (&sessions, &tokens, SEAL_COOKIE, text, 1));
    assert_non_null (session_find (&sessions, &tokens, SEAL_COOKIE, second, 1));
    assert_true (tokens_remove (&tokens, "ann"));
    assert_null (session_find (&sessions, &tokens, SEAL_COOKIE, second, 1));
    free (text);
    free (second);
    tokens_clear (&tokens);
}

static void test_cookies (void **state)
{
    static sessions_t sessions;
    static const uint8_t secret[SEAL_KEY_BYTES] = "one";
    char out[SEAL_TEXT_MAX + 1], field[3 * SEAL_TEXT_MAX];
    seal_t seal;
    bytes_t set = BYTES_INIT;
    (void) state;
    seal_init (&seal, secret);
    sessions_init (&sessions, &seal, true);
    snprintf (field, sizeof field, "a=b; %s=xyz; c=d", sessions.cookie);
    assert_true (session_cookie (&sessions, field, out));
    assert_string_equal (out, "xyz");
    snprintf (field, sizeof field, "%s=1;%s=2", sessions.cookie, sessions.cookie);
    assert_false (session_cookie (&sessions, field, out));
    snprintf (field, sizeof field, "%s; x%s=1; =; ;;", sessions.cookie, sessions.cookie);
    assert_false (session_cookie (&sessions, field, out));
    assert_false (session_cookie (&sessions, NULL, out));
    snprintf (field, sizeof field, "%s=%0*d", sessions.cookie, SEAL_TEXT_MAX + 1, 0);
    assert_false (session_cookie (&sessions, field, out));
    session_set_cookie (&sessions, &set, "v", 2000);
    snprintf (field, sizeof field, "%s=v; Path=/; Max-Age=2; HttpOnly; SameSite=Strict; Secure",
              sessions.cookie);
    assert_string_equal (bytes_text (&set), field);
    bytes_free (&set);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_tokens_are_kept_as_hashes),
        cmocka_unit_test (test_bad_files_of_tokens),
        cmocka_unit_test (test_inheritance),
        cmocka_unit_test (test_rates),
        cmocka_unit_test (test_hosts_and_origins),
        cmocka_unit_test (test_sessions),
        cmocka_unit_test (test_ended_sessions),
        cmocka_unit_test (test_cookies),
        cmocka_unit_test (test_members_as_they_stand),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
