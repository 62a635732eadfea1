/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How a new access file is told in the record of deeds, and whose time has ended. */
#include <stdio.h>
#include <string.h>

#include "notes.h"
#include "support/cmocka_all.h"

static policy_t *parse (const char *text)
{
    policy_error_t error;
    policy_t *policy = policy_parse (text, strlen (text), NULL, &error);
    if (policy == NULL)
        fail_msg ("line %u: %s", error.line, error.text);
    return policy;
}

static void assert_difference (const char *before, const char *after, const char *said)
{
    char text[AUDIT_TEXT_MAX];
    policy_t *old = before != NULL ? parse (before) : NULL;
    policy_t *new = after != NULL ? parse (after) : NULL;
    assert_int_equal (notes_difference (text, sizeof (text), old, new), said[0] != '\0');
    assert_string_equal (text, said);
    policy_drop (old);
    policy_drop (new);
}

static void lines_are_added_changed_and_removed (void **state)
{
    (void) state;
    assert_difference ("a uid:1 client(*)\nb uid:2 client(*)\n", "b uid:2 client(*)\n",
                       "removed a uid:1 client(*)");
    assert_difference ("a uid:1 client(*)\n", "b uid:2 client(*)\na uid:1 worker(*) # now\n",
                       "added b uid:2 client(*); changed a uid:1 client(*) to a uid:1 worker(*)");
    assert_difference (NULL, "a uid:1 client(*)\n", "added a uid:1 client(*)");
    assert_difference ("a uid:1 client(*)\n", "# a comment\na uid:1 client(*)\n", "");
    assert_difference ("limits * - tasks=7\na uid:1 client(*)\n",
                       "a uid:1 client(*)\nlimits * -  tasks=8 # more\n",
                       "changed limits * - tasks=7 to limits * -  tasks=8");
    assert_difference (NULL, "limits * - tasks=7\n", "added limits * - tasks=7");
    assert_difference ("limits * - tasks=7\n", "a uid:1 client(*)\n",
                       "added a uid:1 client(*); removed limits * - tasks=7");
}

static void what_does_not_fit_is_counted (void **state)
{
    (void) state;
    static char file[32 * 1024];
    char text[AUDIT_TEXT_MAX];
    size_t length = 0;
    for (unsigned i = 0; i < 500; i++)
        length += (size_t) snprintf (file + length, sizeof (file) - length,
                                     "principal-%03u uid:%u client(*)\n", i, i);
    policy_t *policy = parse (file);
    notes_difference (text, sizeof (text), NULL, policy);
    assert_true (strlen (text) < sizeof (text));
    assert_non_null (strstr (text, "added principal-000 uid:0 client(*); added principal-001"));
    assert_non_null (strstr (text, " more lines"));
    policy_drop (policy);
}

/* The record is a stand-in: the object of each line. */

static char told[256];
static unsigned changes; /* lines about the access file */
static audit_stats_t stands;
static chain_head_t expected;

void audit_stats (audit_t *self, audit_stats_t *out)
{
    (void) self;
    *out = stands;
}

bool audit_expect (audit_t *self, const chain_head_t *head)
{
    (void) self;
    expected = *head;
    return true;
}

void audit_note (audit_t *self, const audit_line_t *line)
{
    (void) self;
    size_t length = strlen (told);
    if (line->kind == AUDIT_ACCESS_CHANGED)
        changes++;
    if (line->kind == AUDIT_KEY_ENDED)
        snprintf (told + length, sizeof (told) - length, "%s ", line->object);
}

static void an_end_is_told_once (void **state)
{
    (void) state;
    notes_t notes;
    policy_t *policy = parse ("a uid:1 client(*) until=2026-01-01T00:00:00Z\n"
                              "b uid:2 client(*) until=2026-01-01T00:00:10Z\n"
                              "c uid:3 client(*)\n");
    const int64_t end = policy_by_name (policy, "a")->until_ms;
    notes_init (&notes, NULL, "access", &(boot_t){.generation = 1}, NULL);
    notes_ends (&notes, end);
    notes_policy (&notes, policy, end - 5000);
    notes_ends (&notes, end - 1);
    assert_string_equal (told, "");
    notes_ends (&notes, end);
    notes_ends (&notes, end + 9999);
    assert_string_equal (told, "a ");
    notes_policy (&notes, policy, end + 9999); /* the file is written again */
    notes_ends (&notes, end + 20000);
    notes_ends (&notes, end + 30000);
    assert_string_equal (told, "a b ");
    notes_ends (&notes, end - 5000); /* the clock was wrong, and both are to come again */
    notes_ends (&notes, end + 20000);
    assert_string_equal (told, "a b a b ");
    told[sizeof ("a b ") - 1] = '\0';
    notes_policy (&notes, NULL, end + 30000);
    notes_ends (&notes, INT64_MAX - 1);
    assert_string_equal (told, "a b ");
    notes_free (&notes);
    policy_drop (policy);
}

static void an_end_while_the_broker_was_down_is_told (void **state)
{
    (void) state;
    notes_t notes;
    policy_t *policy = parse ("a uid:1 client(*) until=2026-01-01T00:00:00Z\n"
                              "b uid:2 client(*) until=2026-01-01T00:00:10Z\n");
    const int64_t end = policy_by_name (policy, "a")->until_ms;
    told[0] = '\0';
    stands.last_ms = end + 1; /* a was told by the broker before */
    notes_init (&notes, NULL, "access", &(boot_t){.generation = 1}, NULL);
    notes_policy (&notes, policy, end + 3600000);
    notes_ends (&notes, end + 3600000);
    assert_string_equal (told, "b ");
    notes_ends (&notes, end + 7200000);
    assert_string_equal (told, "b ");
    notes_free (&notes);
    stands.last_ms = 0; /* there was no broker before */
    notes_init (&notes, NULL, "access", &(boot_t){.generation = 1}, NULL);
    notes_policy (&notes, policy, end + 3600000);
    notes_ends (&notes, end + 3600000);
    assert_string_equal (told, "b ");
    notes_free (&notes);
    policy_drop (policy);
}

/* A request that changed nothing has the file read again, too. */
static void a_file_that_says_the_same_is_no_change (void **state)
{
    (void) state;
    notes_t notes;
    policy_t *policy = parse ("a uid:1 client(*)\n");
    policy_t *same = parse ("# a comment\na uid:1 client(*)\n");
    policy_t *other = parse ("a uid:1 worker(*)\n");
    changes = 0;
    notes_init (&notes, NULL, "access", &(boot_t){.generation = 1}, NULL);
    notes_policy (&notes, policy, 1);
    assert_int_equal (changes, 1); /* the start */
    notes_policy (&notes, same, 2);
    assert_int_equal (changes, 1);
    notes_policy (&notes, other, 3);
    assert_int_equal (changes, 2);
    notes_policy (&notes, NULL, 4);
    assert_int_equal (changes, 3);
    notes_policy (&notes, policy, 5);
    assert_int_equal (changes, 4);
    notes_free (&notes);
    policy_drop (policy);
    policy_drop (same);
    policy_drop (other);
}

static const int64_t HOUR_MS = INT64_C (3600) * 1000;

static void head_of (uint64_t n)
{
    stands.head.n = n;
    memset (stands.head.hash, (int) n, sizeof (stands.head.hash));
}

/* Whether there is a row to be kept; what a start finds in it is asked for. */
static bool keeps (notes_t *notes, int64_t mono_ms, bool at_once, uint64_t generation)
{
    row_t row;
    notes_t later;
    if (!notes_head (notes, mono_ms, at_once, &row))
        return false;
    assert_true (row_is_valid (&row));
    notes_init (&later, notes->audit, "access", &(boot_t){.generation = generation}, NULL);
    notes_restore (&later, &row);
    notes_expect (&later);
    row_drop (&row);
    return true;
}

static void the_head_is_kept_hourly_at_a_turn_and_at_the_stop (void **state)
{
    (void) state;
    int place; /* there is a record: the stand-ins do not look into it */
    notes_t notes;
    notes_init (&notes, (audit_t *) (void *) &place, "access", &(boot_t){.generation = 7}, NULL);
    head_of (3);
    assert_true (keeps (&notes, 1000, false, 7));
    assert_int_equal (expected.n, 3);
    assert_memory_equal (expected.hash, stands.head.hash, sizeof (expected.hash));
    head_of (4);
    assert_false (keeps (&notes, HOUR_MS, false, 7));
    assert_true (keeps (&notes, HOUR_MS + 1000, false, 7));
    assert_int_equal (expected.n, 4);
    assert_false (keeps (&notes, 3 * HOUR_MS, false, 7)); /* nothing was noted */
    head_of (5);
    stands.turns++;
    assert_true (keeps (&notes, 3 * HOUR_MS + 1, false, 7));
    head_of (6);
    assert_true (keeps (&notes, 3 * HOUR_MS + 2, true, 7));
    head_of (7);
    assert_true (keeps (&notes, 3 * HOUR_MS + 3, true, 8)); /* a restored store */
    assert_int_equal (expected.n, 0);
    notes_free (&notes);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (lines_are_added_changed_and_removed),
        cmocka_unit_test (what_does_not_fit_is_counted),
        cmocka_unit_test (an_end_is_told_once),
        cmocka_unit_test (a_file_that_says_the_same_is_no_change),
        cmocka_unit_test (an_end_while_the_broker_was_down_is_told),
        cmocka_unit_test (the_head_is_kept_hourly_at_a_turn_and_at_the_stop),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
