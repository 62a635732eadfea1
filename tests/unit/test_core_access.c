/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Patterns, the access file, and the pure checks (core/access). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/access/access.h"
#include "support/cmocka_all.h"

/* Patterns. */

static bool takes (const char *pattern, const char *name)
{
    glob_t glob;
    assert_true (glob_make (&glob, pattern, strlen (pattern)));
    bool taken = glob_takes (&glob, name);
    glob_clear (&glob);
    return taken;
}

static void test_patterns_take_names (void **state)
{
    (void) state;
    static const struct {
        const char *pattern;
        const char *takes; /* names, a blank between them */
        const char *refuses;
    } CASES[] = {
        {"*", "a render x.y_z-0", ""},
        {"**", "a render", ""},
        {"render", "render", "rende renders Render renderr"},
        {"render*", "render render-a renders", "rende xrender Render"},
        {"*render", "render a-render renderrender", "renders rende render-a"},
        {"r*r", "rr rer render", "r re xrr renders"},
        {"a*b*c", "abc axbxc abbc aabbcc abcc abcbc", "ab ac acb abcb"},
        {"*a*a*", "aa bab-a aaa", "a b bab"},
        {"*.jpg.*", "x.jpg.y .jpg.", "x.jpg jpg x.jpgy"},
        {"a*a", "aa aba aaa", "a ab ba"},
    };
    for (size_t i = 0; i < sizeof (CASES) / sizeof (CASES[0]); i++) {
        for (int expected = 0; expected < 2; expected++) {
            char names[128];
            snprintf (names, sizeof (names), "%s", expected ? CASES[i].takes : CASES[i].refuses);
            char *rest = NULL;
            for (char *name = strtok_r (names, " ", &rest); name != NULL;
                 name = strtok_r (NULL, " ", &rest))
                if (takes (CASES[i].pattern, name) != (bool) expected)
                    fail_msg ("%s and %s", CASES[i].pattern, name);
        }
    }
}

/* Every pattern of up to four of a, b and *, against every name of up to five of a and b: as a
 * matcher does it that tries everything. */
static bool tried (const char *pattern, const char *name)
{
    if (*pattern == '\0')
        return *name == '\0';
    if (*pattern != '*')
        return *pattern == *name && tried (pattern + 1, name + 1);
    return tried (pattern + 1, name) || (*name != '\0' && tried (pattern, name + 1));
}

static void spell (char *out, size_t number, const char *letters)
{
    size_t count = strlen (letters);
    size_t length = 0;
    for (number++; number > 0; number = (number - 1) / count)
        out[length++] = letters[(number - 1) % count];
    out[length] = '\0';
}

static void test_patterns_agree_with_trying (void **state)
{
    (void) state;
    for (size_t p = 0; p < 3 + 9 + 27 + 81; p++)
        for (size_t n = 0; n < 2 + 4 + 8 + 16 + 32; n++) {
            char pattern[8], name[8];
            spell (pattern, p, "ab*");
            spell (name, n, "ab");
            if (takes (pattern, name) != tried (pattern, name))
                fail_msg ("%s and %s", pattern, name);
        }
}

/* The longest name against the pattern that makes a matcher with second thoughts try longest: each
 * character is looked at once, so the steps are counted by the length alone. */
static void test_the_worst_pattern_is_matched (void **state)
{
    (void) state;
    char pattern[TMQ_NAME_LENGTH_MAX + 1] = "";
    char name[TMQ_NAME_LENGTH_MAX + 1];
    for (size_t i = 0; i + 2 < sizeof (pattern); i += 2)
        memcpy (pattern + i, "*a", 3);
    pattern[TMQ_NAME_LENGTH_MAX - 1] = 'b';
    memset (name, 'a', TMQ_NAME_LENGTH_MAX);
    name[TMQ_NAME_LENGTH_MAX] = '\0';
    for (int i = 0; i < 100000; i++) /* hours, if the time were exponential in the stars */
        assert_false (takes (pattern, name));
    name[TMQ_NAME_LENGTH_MAX - 1] = 'b';
    assert_true (takes (pattern, name));
}

static void test_what_is_no_pattern (void **state)
{
    (void) state;
    static const char *const BAD[] = {"", "a b", "a/b", "a?", "[a]", "\xc3\xa4", "a%", "a:b"};
    glob_t glob;
    for (size_t i = 0; i < sizeof (BAD) / sizeof (BAD[0]); i++)
        assert_false (glob_make (&glob, BAD[i], strlen (BAD[i])));
    char longest[TMQ_NAME_LENGTH_MAX + 2];
    memset (longest, 'a', sizeof (longest));
    assert_false (glob_make (&glob, longest, TMQ_NAME_LENGTH_MAX + 1));
    assert_true (glob_make (&glob, longest, TMQ_NAME_LENGTH_MAX));
    glob_clear (&glob);
}

/* The file. */

static bool find_user (void *context, const char *name, uint32_t *uid)
{
    (void) context;
    if (strcmp (name, "ada") != 0)
        return false;
    *uid = 1001;
    return true;
}

static long find_group (void *context, const char *name, uint32_t *uids, size_t room)
{
    (void) context;
    static const uint32_t MEMBERS[] = {1001, 1002, 65534};
    if (strcmp (name, "huge") == 0)
        return (long) room + 1;
    if (strcmp (name, "taskmq") != 0)
        return -1;
    memcpy (uids, MEMBERS, sizeof (MEMBERS));
    return 3;
}

static const policy_names_t NAMES = {.own_uid = 990, .user = find_user, .group = find_group};

static const char *key_text (unsigned n)
{
    static char text[KEY_TEXT_SIZE];
    key_public_t key;
    memset (&key, 0, sizeof (key));
    key.bytes[0] = (uint8_t) n;
    key_text_public (text, &key);
    return text;
}

static key_public_t key_of (unsigned n)
{
    key_public_t key;
    memset (&key, 0, sizeof (key));
    key.bytes[0] = (uint8_t) n;
    return key;
}

static policy_t *parse (const char *text)
{
    policy_error_t error;
    policy_t *policy = policy_parse (text, strlen (text), &NAMES, &error);
    if (policy == NULL)
        fail_msg ("line %u: %s", error.line, error.text);
    return policy;
}

static policy_t *parse_whole (void)
{
    char text[2048];
    int used = snprintf (text, sizeof (text),
                         "# who may do what\n"
                         "ops\tuid:1000,group:taskmq  operator   # people\n"
                         "\n"
                         "ci key:%s client(build/*) owns=uid:1000,old-ci\n",
                         key_text (1));
    used += snprintf (text + used, sizeof (text) - (size_t) used,
                      "render-7 key:%s worker(default/render*) client(default/thumbs) "
                      "until=2027-06-30\n",
                      key_text (2));
    snprintf (text + used, sizeof (text) - (size_t) used,
              "ada user:ada reader(*)\n"
              "box addr:10.0.0.7 observer(*)\n"
              "here local client(default) worker(default)\n"
              "invite-3f2a invite:%s worker(default/render*) uses=2 until=2026-11-22T07:00Z "
              "as=render-%%h\n",
              key_text (3));
    return parse (text);
}

static void test_a_file_is_read (void **state)
{
    (void) state;
    policy_t *policy = parse_whole ();
    assert_int_equal (policy_count (policy), 7);
    const principal_t *ci = policy_by_name (policy, "ci");
    assert_int_equal (ci->line, 4);
    assert_string_equal (ci->may, "client(build/*)");
    assert_int_equal (ci->owns_count, 2);
    assert_string_equal (ci->owns[1], "old-ci");
    key_public_t key = key_of (2);
    const principal_t *render = policy_by_key (policy, &key);
    assert_string_equal (render->name, "render-7");
    assert_string_equal (render->may, "worker(default/render*) client(default/thumbs)");
    assert_true (render->until_ms == INT64_C (1814313600000));
    assert_true (policy_next_end_ms (policy, 0) == INT64_C (1795330800000));
    assert_true (policy_next_end_ms (policy, INT64_C (1795330800000)) == render->until_ms);
    assert_true (policy_next_loss_ms (policy, 0) == render->until_ms); /* the other one invites */
    assert_true (policy_next_loss_ms (policy, render->until_ms) == INT64_MAX);
    assert_true (policy_next_loss_ms (NULL, 0) == INT64_MAX);
    assert_string_equal (policy_by_name (policy, "ops")->text,
                         "ops\tuid:1000,group:taskmq  operator");
    const principal_t *invitation = policy_by_name (policy, "invite-3f2a");
    assert_true (invitation->is_invitation);
    assert_int_equal (invitation->uses, 2);
    assert_string_equal (invitation->as, "render-%h");
    assert_null (policy_by_name (policy, "cj"));
    key = key_of (9);
    assert_null (policy_by_key (policy, &key));
    policy_drop (policy);
}

static void test_a_user_by_name_comes_before_one_by_group (void **state)
{
    (void) state;
    policy_t *policy = parse_whole ();
    assert_string_equal (policy_by_uid (policy, 1001)->name, "ada");
    assert_string_equal (policy_by_uid (policy, 1002)->name, "ops");
    assert_null (policy_by_uid (policy, 65534));
    policy_drop (policy);
}

static void test_mistakes_are_named (void **state)
{
    (void) state;
    static const struct {
        const char *text;
        unsigned line;
        const char *says;
    } CASES[] = {
        {"a uid:1 wroker(x)", 1, "\"wroker\" is no role; did you mean worker?"},
        {"a uid:1 king(x)", 1, "client, reader, worker, observer, gateway, admin, operator"},
        {"\n# x\na uid:1", 3, "what may it do"},
        {"a", 1, "who is it"},
        {"a/b uid:1 operator", 1, "\"a/b\" is no name"},
        {"local uid:1 operator", 1, "choose another name"},
        {"a udi:1 operator", 1, "\"udi\" is no kind of principal; did you mean uid?"},
        {"a uid operator", 1, "says not who"},
        {"a uid: operator", 1, "\"uid:\" is followed by nothing"},
        {"a uid:x operator", 1, "followed by a number"},
        {"a uid:65534 operator", 1, "65534 is nobody"},
        {"a uid:4294967295 operator", 1, "followed by a number"},
        {"a user:bob operator", 1, "no such user"},
        {"a addr:10.0.7 operator", 1, "\"addr:10.0.7\": must be an address"},
        {"a addr:box operator", 1, "must be an address"},
        {"a group:bob operator", 1, "no such group"},
        {"a group:huge operator", 1, "4097 members"},
        {"a key:tmqpk_x operator", 1, "tmqpk_x"},
        {"a uid:1 operator(default)", 1, "say operator alone"},
        {"a uid:1 worker", 1, "where?"},
        {"a uid:1 worker(", 1, "parenthesis"},
        {"a uid:1 worker(default", 1, "parenthesis"},
        {"a uid:1 worker()", 1, "a namespace is"},
        {"a uid:1 worker(default/)", 1, "a queue is"},
        {"a uid:1 worker(a/b/c)", 1, "a queue is"},
        {"a uid:1 worker(a?b)", 1, "a namespace is"},
        {"a uid:1 admin(default/x)", 1, "whole namespaces"},
        {"a uid:1 - client(x)", 1, "at once"},
        {"a uid:1 until=2027-01-01", 1, "a grant is missing"},
        {"a uid:1 client(x) untli=2027-01-01", 1, "did you mean until?"},
        {"a uid:1 client(x) until=tomorrow", 1, "as 2027-06-30"},
        {"a uid:1 client(x) uses=2", 1, "invitations only"},
        {"a uid:1 client(x) owns=,b", 1, "owns="},
        {"a uid:1 client(x) tasks=many", 1, "must be a number"},
        {"a uid:1 client(x) rate=50", 1, "as 50/s"},
        {"a uid:1 client(x) rate=0/s", 1, "as 50/s"},
        {"a uid:1 client(x) rate=5/s burst=0", 1, "burst=0: must be a number of at least 1"},
        {"a uid:1 client(x)\nlimits * - burst=0", 2, "of at least 1"},
        {"a uid:1 client(x) links=1 tasks=2 links=3", 1, "links= stands twice"},
        {"a uid:1 client(x) until=2027-01-01 until=2028-01-01", 1, "until= stands twice"},
        {"limits * - tasks=1 tasks=2", 1, "tasks= stands twice"},
        {"a uid:1 client(x) bytes=1", 1, "bytes=1"},
        {"a uid:1 client(x) taks=1", 1, "did you mean tasks?"},
        {"limits * -\nlimits * - links=1", 2, "limits stand in line 1 already"},
        {"limits uid:1 -", 1, "grant nothing"},
        {"limits * client(x)", 1, "grant nothing"},
        {"limits * - until=2027-01-01", 1, "is no quota"},
        {"a uid:1 client(x)\nb uid:1 client(x)", 2, "uid 1 stands in line 1 already"},
        {"a uid:1 client(x)\na uid:2 client(x)", 2, "the name a stands in line 1 already"},
        {"a local client(x)\nb local client(x)", 2, "\"local\" stands in line 1 already"},
        {"a uid:1 client(x)\r\n", 1, "control character (0x0d)"},
        {"a uid:1 client(x)\x1b[31m", 1, "control character (0x1b)"},
    };
    for (size_t i = 0; i < sizeof (CASES) / sizeof (CASES[0]); i++) {
        policy_error_t error;
        policy_t *policy = policy_parse (CASES[i].text, strlen (CASES[i].text), &NAMES, &error);
        if (policy != NULL)
            fail_msg ("taken: %s", CASES[i].text);
        char lower[POLICY_ERROR_SIZE];
        snprintf (lower, sizeof (lower), "%s", error.text);
        char *grant = strstr (lower, "A grant is missing");
        if (grant != NULL)
            *grant = 'a';
        if (error.line != CASES[i].line || strstr (lower, CASES[i].says) == NULL)
            fail_msg ("%s: line %u: %s", CASES[i].text, error.line, error.text);
    }
}

static void test_quotas_are_read (void **state)
{
    (void) state;
    policy_t *policy = parse ("a uid:1 client(x) rate=7/s bytes=2M\nlimits * - tasks=5 rate=9/s\n"
                              "b uid:2 client(x)\n");
    assert_int_equal (policy_count (policy), 2);
    const uint64_t *a = policy_by_name (policy, "a")->quotas;
    const uint64_t *b = policy_by_name (policy, "b")->quotas;
    assert_int_equal (a[QUOTA_RATE], 7);
    assert_int_equal (a[QUOTA_BYTES], 2 << 20);
    assert_int_equal (a[QUOTA_TASKS], 5);
    assert_int_equal (a[QUOTA_LINKS], 64);
    assert_int_equal (b[QUOTA_RATE], 9);
    policy_drop (policy);
}

static void expect_error (const char *text, size_t bytes, const char *says)
{
    policy_error_t error;
    assert_null (policy_parse (text, bytes, &NAMES, &error));
    if (strstr (error.text, says) == NULL)
        fail_msg ("%s", error.text);
}

static void test_a_key_stands_in_one_line (void **state)
{
    (void) state;
    char text[512];
    char one[KEY_TEXT_SIZE];
    snprintf (one, sizeof (one), "%s", key_text (1));
    snprintf (text, sizeof (text), "a key:%s client(x)\nb key:%s client(x)\n", one, one);
    expect_error (text, strlen (text), "stands in line 1 already");
    snprintf (text, sizeof (text), "i invite:%s client(x)\n", one);
    expect_error (text, strlen (text), "as=NAME");
    snprintf (text, sizeof (text), "i invite:%s,uid:1 client(x) as=x\n", one);
    expect_error (text, strlen (text), "one key and nothing else");
}

static void test_limits_of_a_file (void **state)
{
    (void) state;
    size_t bytes = 10 * POLICY_BYTES_MAX;
    char *text = malloc (bytes);
    memset (text, '\n', bytes);
    expect_error (text, bytes, "the file has 10M, more than 1M");
    policy_error_t error;
    policy_t *policy = policy_parse (text, POLICY_BYTES_MAX, &NAMES, &error);
    assert_non_null (policy);
    assert_int_equal (policy_count (policy), 0);
    policy_drop (policy);
    size_t used = 0;
    for (unsigned i = 0; i <= POLICY_PRINCIPALS_MAX; i++)
        used += (size_t) sprintf (text + used, "a%u uid:%u -\n", i, i + 1);
    expect_error (text, used, "more than 10000 lines");
    used = (size_t) sprintf (text, "a uid:1");
    for (unsigned i = 0; i <= POLICY_GRANTS_MAX; i++)
        used += (size_t) sprintf (text + used, " client(x%u)", i);
    expect_error (text, used, "more than 64 grants");
    used = (size_t) sprintf (text, "a uid:1");
    for (unsigned i = 0; i <= POLICY_WHO_MAX; i++)
        used += (size_t) sprintf (text + used, ",uid:%u", i + 2);
    used += (size_t) sprintf (text + used, " client(x)");
    expect_error (text, used, "more than 64 of whom");
    used = (size_t) sprintf (text, "a uid:1");
    for (unsigned i = 0; i < 200; i++)
        used += (size_t) sprintf (text + used, " -");
    expect_error (text, used, "words in a line");
    memcpy (text, "a uid:1\0 -\n", 11);
    expect_error (text, 11, "control character (0x00)");
    free (text);
}

/* A file that ends anywhere is read or refused, and never more. */
static void test_a_torn_file (void **state)
{
    (void) state;
    char text[256];
    int length = snprintf (text, sizeof (text),
                           "ops uid:1000,group:taskmq operator # x\nci key:%s client(b/*) owns=x\n",
                           key_text (1));
    for (int i = 0; i <= length; i++) {
        policy_error_t error;
        char *torn = malloc ((size_t) i + 1); /* so that a sanitizer sees a step beyond its end */
        memcpy (torn, text, (size_t) i);
        policy_drop (policy_parse (torn, (size_t) i, &NAMES, &error));
        free (torn);
    }
}

static void test_the_text_is_edited (void **state)
{
    (void) state;
    static const char TEXT[] = "# head\na uid:1 -\n  b uid:2 - # two\n# foot";
    static const struct {
        const char *name;
        const char *line;
        const char *becomes;
    } CASES[] = {
        {"b", "b uid:3 -", "# head\na uid:1 -\nb uid:3 -\n# foot"},
        {"b", NULL, "# head\na uid:1 -\n# foot"},
        {"c", "c uid:4 -", "# head\na uid:1 -\n  b uid:2 - # two\n# foot\nc uid:4 -\n"},
        {"c", NULL, "# head\na uid:1 -\n  b uid:2 - # two\n# foot"},
    };
    for (size_t i = 0; i < sizeof (CASES) / sizeof (CASES[0]); i++) {
        size_t bytes = 0;
        char *text = policy_text_put (TEXT, strlen (TEXT), CASES[i].name, CASES[i].line, &bytes);
        assert_int_equal (bytes, strlen (CASES[i].becomes));
        assert_memory_equal (text, CASES[i].becomes, bytes);
        free (text);
    }
    size_t bytes = 0;
    char *text = policy_text_put ("", 0, "a", "a uid:1 -", &bytes);
    assert_memory_equal (text, "a uid:1 -\n", bytes);
    free (text);
}

/* The door. */

static admission_t knock (const policy_t *policy, const char *domain, const char *address, int key,
                          int64_t now_ms)
{
    admission_t entry;
    key_public_t public_key = key_of ((unsigned) key);
    access_door (policy,
                 &(knock_t){.domain = domain,
                            .key = key == 0 ? NULL : &public_key,
                            .address = address,
                            .now_ms = now_ms},
                 &entry);
    return entry;
}

static void assert_entry (admission_t entry, const char *identity)
{
    assert_int_equal (entry.status, identity == NULL ? 400 : 200);
    if (identity != NULL)
        assert_string_equal (entry.identity, identity);
    else
        assert_non_null (entry.why);
}

static void test_who_comes_in (void **state)
{
    (void) state;
    policy_t *policy = parse_whole ();
    assert_entry (knock (policy, "ipc", "localhost:1000:1000:77", 0, 0), "ops");
    assert_entry (knock (policy, "ipc", "localhost:1001:1000:77", 0, 0), "ada");
    assert_entry (knock (policy, "ipc", "localhost:4711:1000:77", 0, 0), "uid:4711");
    assert_entry (knock (policy, "ipc", "localhost:x:1000:77", 0, 0), NULL);
    assert_entry (knock (policy, "ipc", "localhost:1000", 0, 0), NULL);
    assert_entry (knock (policy, "loopback", "127.0.0.1", 0, 0), "here");
    assert_entry (knock (policy, "plain", "10.0.0.7", 0, 0), "box");
    assert_entry (knock (policy, "plain", "10.0.0.8", 0, 0), "addr:10.0.0.8");
    assert_entry (knock (policy, "curve", "10.0.0.8", 1, 0), "ci");
    assert_entry (knock (policy, "curve", "10.0.0.8", 0, 0), NULL);
    assert_entry (knock (policy, "curve", "10.0.0.8", 9, 0), NULL);
    admission_t render = knock (policy, "curve", "10.0.0.8", 2, 0);
    assert_entry (render, "render-7");
    assert_true (render.until_ms == INT64_C (1814313600000));
    assert_entry (knock (policy, "curve", "10.0.0.8", 2, INT64_C (1814313599999)), "render-7");
    assert_entry (knock (policy, "curve", "10.0.0.8", 2, INT64_C (1814313600000)), NULL);
    assert_entry (knock (policy, "curve", "10.0.0.8", 3, 0), "invite:invite-3f2a");
    assert_entry (knock (policy, "feed/build", "127.0.0.1", 0, 0), NULL);
    assert_entry (knock (policy, "feed/build", "10.0.0.7", 1, 0), NULL);
    assert_entry (knock (policy, "feed/build", "localhost:1000:1000:77", 0, 0), "ops");
    assert_entry (knock (policy, "feed/build", "localhost:4711:1000:77", 0, 0), NULL);
    policy_drop (policy);
}

static void test_who_comes_in_without_a_file (void **state)
{
    (void) state;
    assert_entry (knock (NULL, "ipc", "localhost:4711:1000:77", 0, 0), "uid:4711");
    assert_entry (knock (NULL, "loopback", "127.0.0.1", 0, 0), "local");
    assert_entry (knock (NULL, "plain", "10.0.0.7", 0, 0), "addr:10.0.0.7");
    assert_entry (knock (NULL, "curve", "10.0.0.7", 1, 0), NULL);
    assert_entry (knock (NULL, "feed/x", "localhost:4711:1000:77", 0, 0), "uid:4711");
}

/* Who owns the files is not locked out by a line. */
static void test_the_brokers_user_stays_operator (void **state)
{
    (void) state;
    policy_t *policy = parse ("me uid:990 client(x)\nroot uid:0 operator\n");
    assert_entry (knock (policy, "ipc", "localhost:990:1:1", 0, 0), "uid:990");
    assert_entry (knock (policy, "ipc", "localhost:0:1:1", 0, 0), "root");
    access_t access;
    assert_true (access_link (&access, policy, "uid:990", "any", 0));
    assert_true (access_may (&access, RIGHT_OPERATE));
    access_clear (&access);
    assert_false (access_link (&access, policy, "uid:991", "any", 0));
    access_clear (&access);
    policy_drop (policy);
}

/* Links. */

static void test_grants_are_a_union (void **state)
{
    (void) state;
    policy_t *policy = parse ("x uid:1 client(default/a*) reader(default/ab*) worker(default/w) "
                              "observer(other/*) owns=old\n");
    access_t access;
    assert_true (access_link (&access, policy, "x", "default", 0));
    assert_true (access_may (&access, RIGHT_SUBMIT));
    assert_true (access_may (&access, RIGHT_WORK));
    assert_false (access_may (&access, RIGHT_OBSERVE | RIGHT_ADMIN | RIGHT_OPERATE));
    assert_true (access_queue (&access, "a1", RIGHT_SUBMIT));
    assert_false (access_queue (&access, "b1", RIGHT_SUBMIT));
    assert_true (access_sees (&access, "a1", "x", NULL, RIGHT_READ));
    assert_true (access_sees (&access, "a1", "old", NULL, RIGHT_READ));
    assert_false (access_sees (&access, "a1", "y", NULL, RIGHT_READ));
    assert_true (access_sees (&access, "ab", "y", NULL, RIGHT_READ));
    assert_false (access_sees (&access, "ab", "y", NULL, RIGHT_CANCEL));
    assert_true (access_sees (&access, "ab", "x", NULL, RIGHT_CANCEL));
    assert_false (access_sees (&access, "w", "y", "", RIGHT_READ));
    assert_false (access_sees (&access, "w", "y", "y", RIGHT_READ));
    assert_true (access_sees (&access, "w", "y", "x", RIGHT_READ));
    assert_true (access_sees (&access, "w", "y", "x", RIGHT_BODY));
    assert_false (access_sees (&access, "w", "y", "x", RIGHT_CANCEL));
    assert_false (access_sees (&access, "a1", "y", "x", RIGHT_READ));
    access_clear (&access);
    assert_true (access_link (&access, policy, "x", "other", 0));
    assert_true (access_sees (&access, "any", "y", NULL, RIGHT_OBSERVE));
    assert_false (access_sees (&access, "any", "x", "x", RIGHT_READ | RIGHT_BODY));
    assert_false (access_may (&access, RIGHT_SUBMIT));
    access_clear (&access);
    assert_false (access_link (&access, policy, "x", "third", 0));
    access_clear (&access);
    assert_false (access_link (&access, policy, "y", "default", 0));
    access_clear (&access);
    policy_drop (policy);
}

static void test_invitations_enroll_and_nothing_else (void **state)
{
    (void) state;
    policy_t *policy = parse_whole ();
    access_t access;
    assert_true (access_link (&access, policy, "invite:invite-3f2a", "default", 0));
    assert_true (access_may (&access, RIGHT_ENROLL));
    assert_false (access_may (&access, RIGHTS_ALL & ~(RIGHT_LINK | RIGHT_ENROLL)));
    assert_false (access_sees (&access, "render", "render-7", "render-7", RIGHTS_ALL));
    access_clear (&access);
    assert_false (access_link (&access, policy, "invite-3f2a", "default", 0));
    access_clear (&access);
    assert_false (access_link (&access, policy, "invite:ci", "build", 0));
    access_clear (&access);
    assert_false (
        access_link (&access, policy, "invite:invite-3f2a", "default", INT64_C (1795330800000)));
    access_clear (&access);
    policy_drop (policy);
}

static void test_without_a_file_all_is_allowed (void **state)
{
    (void) state;
    access_t access;
    assert_true (access_link (&access, NULL, "local", "any", 0));
    assert_true (access_sees (&access, "q", "somebody", NULL, RIGHT_BODY));
    assert_true (access_queue (&access, "q", RIGHT_WORK));
    access_t copy;
    access_copy (&copy, &access);
    access_clear (&access);
    assert_false (access_may (&access, RIGHTS_ALL));
    assert_false (access_sees (&access, "q", "", "", RIGHTS_ALL));
    assert_true (access_may (&copy, RIGHT_OPERATE));
    access_clear (&copy);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_patterns_take_names),
        cmocka_unit_test (test_patterns_agree_with_trying),
        cmocka_unit_test (test_the_worst_pattern_is_matched),
        cmocka_unit_test (test_what_is_no_pattern),
        cmocka_unit_test (test_a_file_is_read),
        cmocka_unit_test (test_a_user_by_name_comes_before_one_by_group),
        cmocka_unit_test (test_mistakes_are_named),
        cmocka_unit_test (test_quotas_are_read),
        cmocka_unit_test (test_a_key_stands_in_one_line),
        cmocka_unit_test (test_limits_of_a_file),
        cmocka_unit_test (test_a_torn_file),
        cmocka_unit_test (test_the_text_is_edited),
        cmocka_unit_test (test_who_comes_in),
        cmocka_unit_test (test_who_comes_in_without_a_file),
        cmocka_unit_test (test_the_brokers_user_stays_operator),
        cmocka_unit_test (test_grants_are_a_union),
        cmocka_unit_test (test_invitations_enroll_and_nothing_else),
        cmocka_unit_test (test_without_a_file_all_is_allowed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
