/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Structs of programs that were built with an older or a newer header than the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sized.h"
#include "client/options.h"
#include "codec/encode.h"
#include "codec/questions.h"
#include "codec/schedules.h"
#include "taskmq.h"

enum { CANARY = 0xa5, ROOM = 1024 };

/* The initialisers, all of one shape. */
typedef void init_t (void *out, size_t size);
#define X(NAME)                                                                                    \
    static void init_##NAME (void *out, size_t size)                                               \
    {                                                                                              \
        (tmq_##NAME##_init) (out, size);                                                           \
    }
#define STRUCTS(X)                                                                                 \
    X (client_options)                                                                             \
    X (submit)                                                                                     \
    X (subscription_options)                                                                       \
    X (worker_options)                                                                             \
    X (audit_query)                                                                                \
    X (set) X (ask) X (inbox_query) X (schedule_spec) X (value_query) X (item_request)
STRUCTS (X)
#undef X

static const struct {
    const char *name;
    init_t *init;
    size_t size;
} structs[] = {
#define X(NAME) {#NAME, init_##NAME, sizeof (tmq_##NAME##_t)},
    STRUCTS (X)
#undef X
};

static void an_initialiser_keeps_to_the_programs_size (void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof structs / sizeof *structs; i++)
        for (size_t size = 0; size <= structs[i].size + 64; size += 8) {
            union {
                uint8_t bytes[ROOM];
                size_t size;
            } room;
            memset (&room, CANARY, sizeof room);
            structs[i].init (&room, size);
            for (size_t at = size; at < sizeof room; at++)
                if (room.bytes[at] != CANARY)
                    fail_msg ("%s of %zu bytes: byte %zu was written", structs[i].name, size, at);
            if (size >= sizeof size)
                assert_int_equal (room.size, size);
            for (size_t at = structs[i].size; at < size; at++)
                assert_int_equal (room.bytes[at], 0);
        }
}

static void the_macros_give_the_whole_size (void **state)
{
    (void) state;
    tmq_submit_t submit;
    tmq_client_options_t options;
    tmq_submit_init (&submit);
    tmq_client_options_init (&options);
    assert_int_equal (submit.size, sizeof submit);
    assert_int_equal (submit.priority, -1);
    assert_int_equal (options.size, sizeof options);
    assert_int_equal (options.reconnect_ms_min, 100);
    tmq_client_options_clear (&options);
}

/* Beside a broker that is away another one may take over, so the pause stays short. */
static void several_endpoints_are_tried_sooner (void **state)
{
    (void) state;
    tmq_client_options_t options;
    tmq_client_options_init (&options);
    assert_int_equal (options_reconnect_max (&options, 1), 5000);
    assert_int_equal (options_reconnect_max (&options, 2), 1000);
    options.reconnect_ms_max = 7000;
    assert_int_equal (options_reconnect_max (&options, 2), 7000);
    options.reconnect_ms_max = 0;
    options.reconnect_ms_min = 6000;
    assert_int_equal (options_reconnect_max (&options, 1), 6000);
}

/* Tasks in an array of an older program stand closer together. */
static void a_batch_of_an_older_program_is_taken (void **state)
{
    (void) state;
    enum { OLD = offsetof (tmq_submit_t, after), COUNT = 3 };
    uint8_t room[COUNT * OLD];
    tmq_id_t ids[COUNT] = {{{1}}, {{2}}, {{3}}};
    core_request_t *request = NULL;
    tmq_submit_t *first = (tmq_submit_t *) (void *) room;
    for (size_t i = 0; i < COUNT; i++) {
        tmq_submit_t whole = {0};
        (tmq_submit_init) (&whole, OLD);
        whole.queue = "q";
        memcpy (room + i * OLD, &whole, OLD);
    }
    assert_int_equal (core_request_submit_batch (&request, first, ids, COUNT, NULL), TMQ_OK);
    core_request_free (request);
}

static void what_a_struct_cannot_hold_is_not_set (void **state)
{
    (void) state;
    enum { OLD = offsetof (tmq_client_options_t, directory) };
    union {
        tmq_client_options_t options;
        uint8_t bytes[ROOM];
    } room;
    memset (&room, CANARY, sizeof room);
    (tmq_client_options_init) (&room.options, OLD);
    assert_int_equal (tmq_client_options_set (&room.options, "namespace", "ns", NULL), TMQ_OK);
    assert_int_equal (tmq_client_options_set (&room.options, "profile", "p", NULL), TMQ_INVALID);
    assert_int_equal (tmq_client_options_set (&room.options, "fail_fast", "true", NULL),
                      TMQ_INVALID);
    tmq_client_options_clear (&room.options);
    for (size_t at = OLD; at < sizeof room; at++)
        assert_int_equal (room.bytes[at], CANARY);
}

/* Only what was never initialised is refused. */
static void shorter_and_longer_structs_are_taken (void **state)
{
    (void) state;
    core_request_t *request = NULL;
    tmq_inbox_query_t query;
    tmq_ask_t ask, taken;
    tmq_inbox_query_init (&query);
    for (size_t size = sizeof query.size; size <= sizeof query; size += 8) {
        query.size = size;
        assert_int_equal (core_request_inbox (&request, &query, NULL), TMQ_OK);
        core_request_free (request);
    }
    query.size = 0;
    assert_int_equal (core_request_inbox (&request, &query, NULL), TMQ_INVALID);
    (tmq_ask_init) (&ask, offsetof (tmq_ask_t, deadline_ms));
    ask.request = "{}";
    ask.deadline_ms = 77; /* behind what the program has */
    assert_int_equal (core_take_ask (&taken, &ask, NULL), TMQ_OK);
    assert_int_equal (taken.deadline_ms, 0);
    assert_int_equal (taken.size, sizeof taken);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (an_initialiser_keeps_to_the_programs_size),
        cmocka_unit_test (several_endpoints_are_tried_sooner),
        cmocka_unit_test (the_macros_give_the_whole_size),
        cmocka_unit_test (a_batch_of_an_older_program_is_taken),
        cmocka_unit_test (what_a_struct_cannot_hold_is_not_set),
        cmocka_unit_test (shorter_and_longer_structs_are_taken),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
