/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns in a line. */
#include "support/cmocka_all.h"

#include <stdbool.h>
#include <string.h>

#include "base/line.h"

enum { MANY = 1000 };

typedef struct taker {
    turn_t turn;
    char name;
    bool gives; /* at once */
} taker_t;

static char had[MANY + 1];

static void has_it (void *context)
{
    taker_t *self = context;
    assert_int_equal (self->turn.state, TURN_HAD);
    had[strlen (had)] = self->name;
    if (self->gives)
        turn_give (&self->turn);
}

static void take (taker_t *self, line_t *line)
{
    turn_take (&self->turn, line, has_it, self);
}

static void test_order (void **state)
{
    line_t line = {.most = 2};
    taker_t a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'}, d = {.name = 'd'},
            e = {.name = 'e'};
    (void) state;
    memset (had, 0, sizeof had);
    take (&a, &line);
    take (&b, &line);
    take (&c, &line);
    take (&d, &line);
    take (&e, &line);
    assert_string_equal (had, "ab");
    turn_give (&d.turn); /* leaves the line */
    turn_give (&b.turn);
    assert_string_equal (had, "abc");
    turn_give (&b.turn); /* has none */
    turn_give (&d.turn);
    assert_string_equal (had, "abc");
    turn_give (&a.turn);
    turn_give (&c.turn);
    assert_string_equal (had, "abce");
    assert_int_equal (line.taken, 1);
    turn_give (&e.turn);
    assert_int_equal (line.taken, 0);
    assert_null (line.first);
    assert_null (line.last);
    take (&b, &line); /* again */
    assert_string_equal (had, "abceb");
    turn_give (&b.turn);
}

static void test_who_gives_at_once (void **state)
{
    static taker_t takers[MANY];
    line_t line = {.most = 1};
    taker_t first = {.name = 'f'};
    (void) state;
    memset (had, 0, sizeof had);
    take (&first, &line);
    for (size_t i = 0; i < MANY - 1; i++) {
        takers[i] = (taker_t){.name = 'x', .gives = true};
        take (&takers[i], &line);
    }
    turn_give (&first.turn);
    assert_int_equal (strlen (had), MANY);
    assert_int_equal (line.taken, 0);
    assert_null (line.first);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_order),
        cmocka_unit_test (test_who_gives_at_once),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
