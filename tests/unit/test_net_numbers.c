/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbers of peers: which of them ZeroMQ has given, and who took one that is still to come. */
#include "support/cmocka_all.h"

#include <arpa/inet.h>
#include <string.h>
#include <zmq.h>

#include "net/numbers.h"
#include "support/timing.h"

enum { PATIENCE_MS = TIMING_PATIENCE_MS };

typedef struct fixture {
    void *context;
    void *router;
    numbers_t *numbers;
} fixture_t;

static void fixture_open (fixture_t *self)
{
    int one = 1;
    int patience = PATIENCE_MS;
    self->context = zmq_ctx_new ();
    self->router = zmq_socket (self->context, ZMQ_ROUTER);
    zmq_setsockopt (self->router, ZMQ_ROUTER_MANDATORY, &one, sizeof (one));
    zmq_setsockopt (self->router, ZMQ_RCVTIMEO, &patience, sizeof (patience));
    self->numbers = numbers_new (self->context, self->router);
    assert_non_null (self->numbers);
    assert_int_equal (zmq_bind (self->router, "inproc://peers"), 0);
}

static void fixture_close (fixture_t *self)
{
    numbers_free (&self->numbers);
    zmq_close (self->router);
    zmq_ctx_term (self->context);
}

static void *dealer_open (fixture_t *self, const void *id, size_t bytes)
{
    void *dealer = zmq_socket (self->context, ZMQ_DEALER);
    int none = 0;
    zmq_setsockopt (dealer, ZMQ_LINGER, &none, sizeof (none));
    if (bytes > 0)
        assert_int_equal (zmq_setsockopt (dealer, ZMQ_ROUTING_ID, id, bytes), 0);
    assert_int_equal (zmq_connect (dealer, "inproc://peers"), 0);
    return dealer;
}

/* One message; its routing id. True when it was the answer to the question. */
static bool receive (fixture_t *self, uint8_t id[256], size_t *bytes)
{
    uint8_t frame[256];
    int length = zmq_recv (self->router, id, 256, 0);
    assert_true (length > 0);
    *bytes = (size_t) length;
    int frame_bytes = zmq_recv (self->router, frame, sizeof (frame), 0);
    assert_true (frame_bytes >= 0);
    return numbers_answered (self->numbers, id, *bytes, frame, (size_t) frame_bytes);
}

static void learn (fixture_t *self)
{
    uint8_t id[256];
    size_t bytes;
    assert_true (numbers_ask (self->numbers));
    assert_false (numbers_ask (self->numbers)); /* one question at a time */
    assert_true (receive (self, id, &bytes));
}

static void later (uint8_t id[NUMBERS_ID_BYTES], uint32_t count)
{
    uint32_t number;
    memcpy (&number, id + 1, sizeof (number));
    number = htonl (ntohl (number) + count);
    memcpy (id + 1, &number, sizeof (number));
}

static void test_a_given_number_is_known_after_the_answer (void **state)
{
    (void) state;
    fixture_t fixture;
    uint8_t id[256];
    uint8_t squatted[NUMBERS_ID_BYTES];
    size_t bytes;
    fixture_open (&fixture);
    void *dealer = dealer_open (&fixture, NULL, 0);
    zmq_send (dealer, "x", 1, 0);
    assert_false (receive (&fixture, id, &bytes));
    assert_int_equal (numbers_judge (fixture.numbers, id, bytes), NUMBERS_UNSURE);
    learn (&fixture);
    assert_int_equal (numbers_judge (fixture.numbers, id, bytes), NUMBERS_GIVEN);
    assert_true (numbers_is_given (fixture.numbers, id));
    assert_false (numbers_squatted (fixture.numbers, squatted));
    /* Numbers from before the first one, and those to come, are not given. */
    later (id, UINT32_MAX - 10);
    assert_int_equal (numbers_judge (fixture.numbers, id, bytes), NUMBERS_UNSURE);
    assert_false (numbers_is_given (fixture.numbers, id));
    zmq_close (dealer);
    fixture_close (&fixture);
}

static void test_chosen_ids_are_known_at_once (void **state)
{
    (void) state;
    fixture_t fixture;
    fixture_open (&fixture);
    static uint8_t long_id[255] = {0};
    assert_int_equal (numbers_judge (fixture.numbers, "name", 4), NUMBERS_CLAIMED);
    assert_int_equal (numbers_judge (fixture.numbers, "\1abcd", 5), NUMBERS_CLAIMED);
    assert_int_equal (numbers_judge (fixture.numbers, "\0abc", 4), NUMBERS_CLAIMED);
    assert_int_equal (numbers_judge (fixture.numbers, "\0abcde", 6), NUMBERS_CLAIMED);
    assert_int_equal (numbers_judge (fixture.numbers, long_id, sizeof (long_id)), NUMBERS_CLAIMED);
    fixture_close (&fixture);
}

static void test_who_waits_for_a_newcomers_number_is_found (void **state)
{
    (void) state;
    enum { AHEAD = 1000 };
    fixture_t fixture;
    uint8_t id[256];
    uint8_t found[NUMBERS_ID_BYTES];
    size_t bytes;
    fixture_open (&fixture);
    void *dealer = dealer_open (&fixture, NULL, 0);
    zmq_send (dealer, "x", 1, 0);
    assert_false (receive (&fixture, id, &bytes));
    later (id, AHEAD);
    void *squatter = dealer_open (&fixture, id, bytes); /* it says nothing */
    learn (&fixture);
    assert_false (numbers_squatted (fixture.numbers, found)); /* it may have got it since */
    assert_true (numbers_suspects (fixture.numbers));
    learn (&fixture);
    assert_true (numbers_squatted (fixture.numbers, found));
    assert_memory_equal (found, id, NUMBERS_ID_BYTES);
    /* One that speaks is known by its number. */
    zmq_send (squatter, "x", 1, 0);
    assert_false (receive (&fixture, id, &bytes));
    assert_false (numbers_is_given (fixture.numbers, id));
    zmq_close (squatter);
    do {
        learn (&fixture);
        numbers_squatted (fixture.numbers, found);
    } while (numbers_suspects (fixture.numbers));
    zmq_close (dealer);
    fixture_close (&fixture);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_given_number_is_known_after_the_answer),
        cmocka_unit_test (test_chosen_ids_are_known_at_once),
        cmocka_unit_test (test_who_waits_for_a_newcomers_number_is_found),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
