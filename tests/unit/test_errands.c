/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The errands' thread: everything comes back, once and in its order, done by the runner of its
 * kind. */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "errands.h"
#include "support/cmocka_all.h"

enum { DEADLINE_MS = 60000, KNOWN = 79, UNKNOWN = 80, LONG = 81 };

/* A runner that waits until it is let through. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    unsigned runs; /* of the errands' thread */
} gate_t;

static void pass (void *context, errand_t *errand)
{
    gate_t *gate = context;
    pthread_mutex_lock (&gate->lock);
    while (!gate->open)
        pthread_cond_wait (&gate->changed, &gate->lock);
    pthread_mutex_unlock (&gate->lock);
    errand->retry_after_ms = ++gate->runs;
    errand->code = TMQ_CONFLICT;
}

static void gate_open (gate_t *gate)
{
    pthread_mutex_lock (&gate->lock);
    gate->open = true;
    pthread_cond_broadcast (&gate->changed);
    pthread_mutex_unlock (&gate->lock);
}

static errand_t *next (errands_t *errands)
{
    struct pollfd source = {errands_fd (errands), POLLIN, 0};
    assert_int_equal (poll (&source, 1, DEADLINE_MS), 1);
    errand_t *errand = errands_done (errands);
    assert_non_null (errand);
    return errand;
}

static const errand_judge_t EVERYBODY = {NULL, NULL};

static void errands_come_back_in_their_order (void **state)
{
    (void) state;
    gate_t gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, true, 0};
    const errand_runner_t runner = {KNOWN, pass, &gate};
    errands_t *errands = errands_new (&runner, 1, EVERYBODY);
    assert_non_null (errands);
    assert_null (errands_done (errands));
    for (int i = 0; i < 50; i++)
        errands_submit (errands, errand_new (i == 10 ? UNKNOWN : KNOWN));
    uint32_t runs = 0;
    for (int i = 0; i < 50; i++) {
        errand_t *errand = next (errands);
        if (i == 10)
            assert_int_equal (errand->code, TMQ_UNSUPPORTED);
        else
            assert_int_equal (errand->retry_after_ms, ++runs);
        errand_free (errand);
    }
    struct pollfd source = {errands_fd (errands), POLLIN, 0};
    assert_int_equal (poll (&source, 1, 0), 0);
    errands_free (&errands);
    assert_null (errands);
}

/* Three turns, of which each but the last asks for another one. */
static void run_in_turns (void *context, errand_t *errand)
{
    (void) context;
    errand->retry_after_ms++;
    errand->again = errand->retry_after_ms < 3;
}

/* Those behind it have their turn meanwhile. */
static void a_long_one_is_done_in_turns (void **state)
{
    (void) state;
    gate_t gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
    const errand_runner_t runners[] = {{KNOWN, pass, &gate}, {LONG, run_in_turns, NULL}};
    errands_t *errands = errands_new (runners, 2, EVERYBODY);
    static const uint32_t ops[] = {KNOWN, LONG, KNOWN, KNOWN};
    static const uint32_t order[] = {KNOWN, KNOWN, KNOWN, LONG};
    for (size_t i = 0; i < 4; i++)
        errands_submit (errands, errand_new (ops[i]));
    gate_open (&gate);
    for (size_t i = 0; i < 4; i++) {
        errand_t *errand = next (errands);
        assert_int_equal (errand->op, order[i]);
        if (errand->op == LONG)
            assert_int_equal (errand->retry_after_ms, 3);
        errand_free (errand);
    }
    errands_free (&errands);
}

static void the_line_has_an_end (void **state)
{
    (void) state;
    gate_t gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
    const errand_runner_t runner = {KNOWN, pass, &gate};
    errands_t *errands = errands_new (&runner, 1, EVERYBODY);
    const int sent = ERRANDS_QUEUE_MAX + 10;
    for (int i = 0; i < sent; i++)
        errands_submit (errands, errand_new (KNOWN));
    errand_t *errand = next (errands); /* the runner stands: only a refusal comes back */
    assert_int_equal (errand->code, TMQ_OVERLOADED);
    assert_int_equal (errand->retry_after_ms, ERRANDS_OVERLOAD_MS);
    errand_free (errand);
    gate_open (&gate);
    for (int i = 1; i < sent; i++)
        errand_free (next (errands));
    assert_true (gate.runs >= ERRANDS_QUEUE_MAX);
    assert_true (gate.runs < (unsigned) sent);
    errands_free (&errands);
}

static bool is_ops (void *context, const errand_t *errand)
{
    (void) context;
    return strcmp (errand->identity, "ops") == 0;
}

static errand_t asked_by (const char *identity)
{
    static int client;
    return (errand_t){.op = KNOWN, .identity = (char *) (uintptr_t) identity, .context = &client};
}

static void who_lost_the_right_is_refused (void **state)
{
    (void) state;
    gate_t gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, true, 0};
    const errand_runner_t runner = {KNOWN, pass, &gate};
    errands_t *errands = errands_new (&runner, 1, (errand_judge_t){is_ops, NULL});
    errand_t ops = asked_by ("ops");
    errand_t other = asked_by ("other");
    errand_t *own = errand_new (KNOWN); /* nobody asked: it is the server's */
    errands_submit (errands, &other);
    errands_submit (errands, &ops);
    errands_submit (errands, own);
    assert_ptr_equal (next (errands), &other);
    assert_int_equal (other.code, TMQ_DENIED);
    assert_ptr_equal (next (errands), &ops);
    assert_int_equal (ops.retry_after_ms, 1); /* the runner was here */
    assert_ptr_equal (next (errands), own);
    assert_int_equal (gate.runs, 2);
    errand_free (own);
    errands_free (&errands);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (errands_come_back_in_their_order),
        cmocka_unit_test (a_long_one_is_done_in_turns),
        cmocka_unit_test (the_line_has_an_end),
        cmocka_unit_test (who_lost_the_right_is_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
