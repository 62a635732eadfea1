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
    const char *owner;
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
    turn_take (&self->turn, line, self->owner, has_it, self);
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

/* Who wants many keeps nobody waiting for all of them; whoever stands behind one that leaves has
 * its place. */
static void test_owners (void **state)
{
    static const char ann[] = "ann", bob[] = "bob", cid[] = "cid";
    line_t line = {.most = 1};
    taker_t holds = {.name = 'h', .owner = ann};
    taker_t a[] = {{.name = '1', .owner = ann, .gives = true},
                   {.name = '2', .owner = ann, .gives = true},
                   {.name = '3', .owner = ann, .gives = true},
                   {.name = '4', .owner = ann, .gives = true}};
    taker_t b[] = {{.name = 'b', .owner = bob, .gives = true},
                   {.name = 'B', .owner = bob, .gives = true}};
    taker_t c = {.name = 'c', .owner = cid, .gives = true};
    (void) state;
    memset (had, 0, sizeof had);
    take (&holds, &line);
    for (size_t i = 0; i < 4; i++)
        take (&a[i], &line);
    take (&b[0], &line);
    take (&c, &line);
    take (&b[1], &line);
    turn_give (&a[0].turn); /* leaves: the second one has its place */
    turn_give (&a[2].turn); /* out of the middle */
    turn_give (&holds.turn);
    assert_string_equal (had, "h2bc4B");
    assert_int_equal (line.taken, 0);
    assert_null (line.first);
    assert_null (line.last);
}

/* Somebody who wants another turn as soon as he has had one stands behind the others. */
static void test_in_turn (void **state)
{
    static const char ann[] = "ann", bob[] = "bob";
    line_t line = {.most = 1};
    taker_t a[] = {{.name = 'a', .owner = ann}, {.name = 'A', .owner = ann}};
    taker_t b[] = {{.name = 'b', .owner = bob}, {.name = 'B', .owner = bob}};
    (void) state;
    memset (had, 0, sizeof had);
    for (size_t i = 0; i < 2; i++)
        take (&a[i], &line);
    for (size_t i = 0; i < 2; i++)
        take (&b[i], &line);
    for (size_t i = 0; i < 8; i++) {
        taker_t *each[] = {&a[0], &a[1], &b[0], &b[1]};
        for (size_t j = 0; j < 4; j++)
            if (each[j]->turn.state == TURN_HAD) {
                turn_give (&each[j]->turn);
                take (each[j], &line);
                break;
            }
    }
    assert_string_equal (had, "aAbaBAbaB");
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
        cmocka_unit_test (test_owners),
        cmocka_unit_test (test_in_turn),
        cmocka_unit_test (test_who_gives_at_once),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
