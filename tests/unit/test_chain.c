/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A chain of lines names the first that is not what it was. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"

enum { LINES = 10 };

/* Lines with their newlines cut off, as a reader has them. */
typedef struct lines {
    char *text[LINES + 2];
    size_t count;
    chain_head_t head;
} lines_t;

static char *copy (const char *text, size_t length)
{
    char *out = malloc (length + 1);
    memcpy (out, text, length);
    out[length] = '\0';
    return out;
}

static void make (lines_t *self)
{
    *self = (lines_t){.count = LINES};
    for (int i = 0; i < LINES; i++) {
        char members[64];
        bytes_t line = BYTES_INIT;
        snprintf (members, sizeof (members), "\"kind\":\"deed-%d\"", i + 1);
        chain_link (&line, &self->head, members, strlen (members));
        assert_false (line.failed);
        assert_int_equal (line.data[line.length - 1], '\n');
        self->text[i] = copy ((const char *) line.data, line.length - 1);
        bytes_free (&line);
    }
}

static void destroy (lines_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free (self->text[i]);
}

static chain_check_t check (const lines_t *self, const uint8_t *known)
{
    chain_check_t out = {.known = known};
    for (size_t i = 0; i < self->count; i++)
        chain_check_line (&out, self->text[i], strlen (self->text[i]));
    chain_check_end (&out);
    return out;
}

static void assert_fault (const lines_t *lines, chain_fault_t fault, uint64_t n, uint64_t place)
{
    chain_check_t found = check (lines, NULL);
    assert_int_equal (found.fault, fault);
    assert_int_equal (found.fault_n, n);
    assert_int_equal (found.fault_place, place);
}

static void change (lines_t *self, size_t index)
{
    char *deed = strstr (self->text[index], "deed");
    assert_non_null (deed);
    memcpy (deed, "DEED", 4);
}

static void take_out (lines_t *self, size_t index)
{
    free (self->text[index]);
    self->count--;
    memmove (&self->text[index], &self->text[index + 1],
             (self->count - index) * sizeof (self->text[0]));
}

static void good (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    chain_check_t found = check (&lines, NULL);
    assert_int_equal (found.fault, CHAIN_GOOD);
    assert_int_equal (found.first_n, 1);
    assert_int_equal (found.head.n, LINES);
    assert_memory_equal (found.head.hash, lines.head.hash, CHAIN_HASH_BYTES);

    /* The writer goes on behind what it reads. */
    chain_head_t behind;
    assert_true (chain_follow (&behind, lines.text[LINES - 1], strlen (lines.text[LINES - 1])));
    assert_memory_equal (&behind, &lines.head, sizeof (behind));
    destroy (&lines);

    chain_check_t nothing = {0};
    chain_check_end (&nothing);
    assert_int_equal (nothing.fault, CHAIN_GOOD);
}

static void changed (void **state)
{
    (void) state;
    for (size_t i = 0; i < LINES - 1; i++) {
        lines_t lines;
        make (&lines);
        change (&lines, i);
        assert_fault (&lines, CHAIN_CHANGED, i + 1, i + 1);
        destroy (&lines);
    }
}

/* A line whose own prev was changed is the changed one, not the one before it. */
static void changed_prev (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    size_t length = strlen (lines.text[4]);
    char *digit = lines.text[4] + length - 3;
    *digit = *digit == '0' ? '1' : '0';
    assert_fault (&lines, CHAIN_CHANGED, 5, 5);
    destroy (&lines);
}

static void replaced (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    chain_head_t before;
    assert_true (chain_follow (&before, lines.text[2], strlen (lines.text[2])));
    bytes_t line = BYTES_INIT;
    chain_link (&line, &before, "\"kind\":\"other\"", strlen ("\"kind\":\"other\""));
    free (lines.text[3]);
    lines.text[3] = copy ((const char *) line.data, line.length - 1);
    bytes_free (&line);
    assert_fault (&lines, CHAIN_CHANGED, 4, 4);
    destroy (&lines);
}

static void removed (void **state)
{
    (void) state;
    for (size_t i = 1; i < LINES - 1; i++) {
        lines_t lines;
        make (&lines);
        take_out (&lines, i);
        assert_fault (&lines, CHAIN_MISSING, i + 1, i + 1);
        destroy (&lines);
    }
}

static void moved (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    char *line = lines.text[3];
    memmove (&lines.text[3], &lines.text[4], 4 * sizeof (lines.text[0]));
    lines.text[7] = line;
    chain_check_t found = check (&lines, NULL);
    assert_int_equal (found.fault, CHAIN_MOVED);
    assert_int_equal (found.fault_n, 4);
    assert_int_equal (found.fault_place, 4);
    assert_int_equal (found.moved_to, 8);
    destroy (&lines);
}

static void repeated (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    memmove (&lines.text[6], &lines.text[5], 5 * sizeof (lines.text[0]));
    lines.text[5] = copy (lines.text[2], strlen (lines.text[2]));
    lines.count++;
    assert_fault (&lines, CHAIN_REPEATED, 3, 6);
    destroy (&lines);
}

static void no_line (void **state)
{
    (void) state;
    static const char *const bad[] = {"",
                                      "{}",
                                      "{\"n\":5}",
                                      "{\"n\":05,\"prev\":\"\"}",
                                      "{\"n\":99999999999999999999,\"prev\":\"\"}",
                                      "\xff\xfe"};
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        lines_t lines;
        make (&lines);
        free (lines.text[4]);
        lines.text[4] = copy (bad[i], strlen (bad[i]));
        assert_fault (&lines, CHAIN_CHANGED, 5, 5);
        destroy (&lines);
    }
}

/* Who can write the file can make a whole new chain, and cut off the end: a head tells. */
static void head_known (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    chain_head_t at6;
    assert_true (chain_follow (&at6, lines.text[5], strlen (lines.text[5])));
    chain_check_t found = check (&lines, at6.hash);
    assert_int_equal (found.fault, CHAIN_GOOD);
    assert_int_equal (found.known_n, 6);

    change (&lines, LINES - 1); /* the last line: held by nothing */
    assert_int_equal (check (&lines, NULL).fault, CHAIN_GOOD);
    assert_int_equal (check (&lines, at6.hash).fault, CHAIN_GOOD);
    assert_int_equal (check (&lines, lines.head.hash).fault, CHAIN_HEADLESS);
    while (lines.count > 5)
        take_out (&lines, lines.count - 1);
    assert_int_equal (check (&lines, NULL).fault, CHAIN_GOOD);
    assert_int_equal (check (&lines, at6.hash).fault, CHAIN_HEADLESS);
    destroy (&lines);
}

/* A later file begins where the one before it ended. */
static void later_file (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    take_out (&lines, 0);
    take_out (&lines, 0);
    chain_check_t found = check (&lines, lines.head.hash);
    assert_int_equal (found.fault, CHAIN_GOOD);
    assert_int_equal (found.first_n, 3);
    assert_int_equal (found.known_n, LINES);
    destroy (&lines);
}

static void a_line_may_begin_anew (void **state)
{
    (void) state;
    lines_t lines;
    make (&lines);
    chain_check_t gap = {.known = NULL};
    for (size_t i = 0; i < LINES; i++) {
        if (i == 3)
            continue;
        if (i == 4)
            chain_check_anew (&gap);
        chain_check_line (&gap, lines.text[i], strlen (lines.text[i]));
    }
    chain_check_end (&gap);
    assert_int_equal (gap.fault, CHAIN_GOOD);
    assert_int_equal (gap.first_n, 1);
    assert_int_equal (gap.head.n, LINES);

    /* What comes again does not, and what was doubtful before it is not forgotten. */
    chain_check_t again = {.known = NULL};
    chain_check_line (&again, lines.text[0], strlen (lines.text[0]));
    chain_check_line (&again, lines.text[1], strlen (lines.text[1]));
    chain_check_anew (&again);
    chain_check_line (&again, lines.text[0], strlen (lines.text[0]));
    assert_int_equal (again.fault, CHAIN_REPEATED);
    lines.text[1][10] ^= 1;
    chain_check_t changed = {.known = NULL};
    for (size_t i = 0; i < 3; i++)
        chain_check_line (&changed, lines.text[i], strlen (lines.text[i]));
    chain_check_anew (&changed);
    assert_int_equal (changed.fault, CHAIN_CHANGED);
    assert_int_equal (changed.fault_n, 2);
    assert_false (changed.alien);
    chain_check_t alien = {.known = NULL};
    chain_check_line (&alien, lines.text[0], strlen (lines.text[0]));
    chain_check_line (&alien, "{}", 2);
    assert_int_equal (alien.fault, CHAIN_CHANGED);
    assert_true (alien.alien);
    destroy (&lines);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (good),
        cmocka_unit_test (changed),
        cmocka_unit_test (changed_prev),
        cmocka_unit_test (replaced),
        cmocka_unit_test (removed),
        cmocka_unit_test (moved),
        cmocka_unit_test (repeated),
        cmocka_unit_test (no_line),
        cmocka_unit_test (head_known),
        cmocka_unit_test (later_file),
        cmocka_unit_test (a_line_may_begin_anew),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
