/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Waits in the library's core: many in one request, never lost, never before their submit. */
#include "lib_rig.h"

#include <stdlib.h>
#include <string.h>

static void start_waits (rig_t *rig, uint32_t first, uint32_t count, int64_t timeout_ms)
{
    tmq_id_t *ids = calloc (count, sizeof *ids);
    assert_non_null (ids);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = rig_id (first + i);
    int64_t deadline_ms = timeout_ms == CORE_NEVER ? CORE_NEVER : rig->now_ms + timeout_ms;
    assert_int_equal (core_wait (rig->core, ids, count, (core_target_t){NULL, NULL, NULL},
                                 deadline_ms, rig->now_ms, NULL),
                      TMQ_OK);
    free (ids);
}

static void answer_wait (rig_t *rig, uint64_t request, uint32_t number, int code, bool more)
{
    tmq_id_t id = rig_id (number);
    Taskmq__WaitedItem item = TASKMQ__WAITED_ITEM__INIT;
    Taskmq__WaitedItem *items[] = {&item};
    item.task_id = rig_bytes (&id);
    item.code = (uint32_t) code;
    item.status = code == TMQ_OK ? TMQ_STATUS_COMPLETED : 0;
    Taskmq__Waited waited = TASKMQ__WAITED__INIT;
    waited.n_items = 1;
    waited.items = items;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = request;
    reply.more = more;
    reply.body_case = TASKMQ__REPLY__BODY_WAITED;
    reply.waited = &waited;
    rig_reply (rig, &reply, NULL, 0);
}

static void ten_thousand_waits_are_ten_requests (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    start_waits (rig, 0, TMQ_LINK_WAITS_MAX + 500, CORE_NEVER);
    size_t requests = 0;
    size_t ids = 0;
    while (rig_take (rig))
        for (size_t i = 0; i < rig->message->n_requests; i++) {
            assert_int_equal (rig->message->requests[i]->op_case, TASKMQ__REQUEST__OP_WAIT);
            assert_int_equal (rig->message->requests[i]->deadline_ms, 0);
            requests++;
            ids += rig->message->requests[i]->wait->n_task_ids;
        }
    assert_int_equal (requests, TMQ_LINK_WAITS_MAX / TMQ_WAIT_IDS_MAX);
    assert_int_equal (ids, TMQ_LINK_WAITS_MAX); /* the rest waits for room */
    rig_free (rig);
}

static void what_is_beyond_is_asked_for_when_others_end (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint64_t request = 0;
    start_waits (rig, 0, TMQ_LINK_WAITS_MAX + 1, CORE_NEVER);
    while (rig_take (rig))
        request = request == 0 ? rig->message->requests[0]->id : request;
    answer_wait (rig, request, 0, TMQ_OK, true);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    assert_int_equal (rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->wait->n_task_ids, 1);
    rig_free (rig);
}

static void each_id_is_answered_once (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    start_waits (rig, 1, 3, 5000);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_WAIT);
    uint64_t number = request->id;
    assert_int_equal (request->wait->n_task_ids, 3);
    answer_wait (rig, number, 2, TMQ_OK, true);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_WAIT, TMQ_OK);
    assert_int_equal (answer->completion.status, TMQ_STATUS_COMPLETED);
    tmq_id_t id = rig_id (2);
    assert_memory_equal (answer->completion.task_id.bytes, id.bytes, 16);
    core_answer_free (answer);
    answer_wait (rig, number, 2, TMQ_OK, true);
    rig_no_answer (rig);
    answer_wait (rig, number, 1, TMQ_NOT_FOUND, true);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_NOT_FOUND);
    answer_wait (rig, number, 3, TMQ_EXPIRED, false);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_EXPIRED);
    assert_false (rig_take (rig));
    rig_free (rig);
}

static void many_waiters_for_one_task_ask_once (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    for (int i = 0; i < 5; i++)
        start_waits (rig, 1, 1, 5000);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_WAIT);
    assert_int_equal (request->wait->n_task_ids, 1);
    uint64_t number = request->id;
    start_waits (rig, 1, 1, 4000); /* is known already */
    assert_false (rig_take (rig));
    answer_wait (rig, number, 1, TMQ_OK, false);
    for (int i = 0; i < 6; i++)
        rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_free (rig);
}

static void a_later_deadline_asks_again (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    start_waits (rig, 1, 1, 1000);
    assert_in_range (rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->deadline_ms, 1, 1000);
    start_waits (rig, 1, 1, 9000);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_WAIT);
    assert_in_range (request->deadline_ms, 8000, 9000);
    uint64_t number = request->id;
    rig_pass (rig, 1000);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_TIMEOUT);
    answer_wait (rig, number, 1, TMQ_OK, false);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_free (rig);
}

static void a_wait_cannot_hang_after_a_reconnect (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    start_waits (rig, 1, 3, CORE_NEVER);
    answer_wait (rig, rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->id, 1, TMQ_OK, true);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_WAIT);
    assert_int_equal (request->wait->n_task_ids, 2);
    uint64_t number = request->id;
    answer_wait (rig, number, 2, TMQ_OK, true);
    answer_wait (rig, number, 3, TMQ_OK, false);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_free (rig);
}

static void deadlines_tell_why (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    start_waits (rig, 1, 1, 500);
    rig_cut (rig);
    rig_pass (rig, 50);
    rig_pass (rig, 450);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_UNREACHABLE);
    rig_free (rig);
    rig = rig_linked (NULL);
    start_waits (rig, 1, 1, 500);
    rig_request (rig, TASKMQ__REQUEST__OP_WAIT);
    rig_pass (rig, 500);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_TIMEOUT);
    rig_free (rig);
}

static void a_wait_follows_its_submit (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 5000);
    start_waits (rig, 1, 1, 5000);
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 2);
    assert_int_equal (rig->message->requests[0]->op_case, TASKMQ__REQUEST__OP_SUBMIT);
    assert_int_equal (rig->message->requests[1]->op_case, TASKMQ__REQUEST__OP_WAIT);
    rig_free (rig);
}

static void a_wait_outlives_a_refused_submit (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 5000);
    start_waits (rig, 1, 1, 5000);
    assert_true (rig_take (rig));
    uint64_t submit = rig->message->requests[0]->id;
    uint64_t wait = rig->message->requests[1]->id;
    rig_refuse (rig, submit, TMQ_OVERLOADED, 100);
    answer_wait (rig, wait, 1, TMQ_NOT_FOUND, false); /* the broker does not know the task yet */
    rig_no_answer (rig);
    assert_false (rig_take (rig)); /* and is not asked again before the submit is answered */
    rig_pass (rig, 130);
    tmq_id_t id = rig_id (1);
    rig_accept (rig, rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->id, &id);
    answer_wait (rig, rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->id, 1, TMQ_OK, false);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_OK);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_free (rig);
}

static void a_refused_submit_that_ends_lets_its_wait_ask (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 50);
    start_waits (rig, 1, 1, 5000);
    assert_true (rig_take (rig));
    uint64_t wait = rig->message->requests[1]->id;
    rig_refuse (rig, rig->message->requests[0]->id, TMQ_OVERLOADED, 100);
    answer_wait (rig, wait, 1, TMQ_NOT_FOUND, false);
    rig_pass (rig, 60);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_OVERLOADED);
    answer_wait (rig, rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->id, 1, TMQ_NOT_FOUND, false);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_NOT_FOUND);
    rig_free (rig);
}

static void a_wait_that_gives_up_leaves_its_refused_submit (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    rig_submit (rig, 1, 5000);
    start_waits (rig, 1, 1, 40);
    assert_true (rig_take (rig));
    uint64_t wait = rig->message->requests[1]->id;
    rig_refuse (rig, rig->message->requests[0]->id, TMQ_OVERLOADED, 100);
    answer_wait (rig, wait, 1, TMQ_NOT_FOUND, false);
    rig_pass (rig, 50);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_TIMEOUT);
    rig_pass (rig, 90);
    tmq_id_t id = rig_id (1);
    rig_accept (rig, rig_request (rig, TASKMQ__REQUEST__OP_SUBMIT)->id, &id);
    rig_answered (rig, TMQ_OP_SUBMIT, TMQ_OK);
    assert_false (rig_take (rig));
    rig_free (rig);
}

/* Takes what is to be sent; submits are refused, or accepted, and waits get NOT_FOUND. */
static void answer_all (rig_t *rig, bool refuse)
{
    enum { REQUESTS_MAX = 4096 };
    static uint64_t submits[REQUESTS_MAX];
    static uint32_t numbers[REQUESTS_MAX];
    while (rig_take (rig)) {
        size_t count = rig->message->n_requests;
        assert_true (count <= REQUESTS_MAX);
        for (size_t i = 0; i < count; i++) {
            const Taskmq__Request *request = rig->message->requests[i];
            submits[i] = request->op_case == TASKMQ__REQUEST__OP_SUBMIT ? request->id : 0;
            if (submits[i] != 0) {
                const uint8_t *id = request->submit->tasks[0]->task_id.data;
                numbers[i] = (uint32_t) id[14] << 8 | id[15];
            }
            for (size_t j = 0; request->op_case == TASKMQ__REQUEST__OP_WAIT && refuse &&
                               j < request->wait->n_task_ids;
                 j++) {
                const uint8_t *id = request->wait->task_ids[j].data;
                answer_wait (rig, request->id, (uint32_t) id[14] << 8 | id[15], TMQ_NOT_FOUND,
                             true);
            }
        }
        for (size_t i = 0; i < count; i++) {
            tmq_id_t id = rig_id (numbers[i]);
            if (submits[i] != 0 && refuse)
                rig_refuse (rig, submits[i], TMQ_OVERLOADED, 100);
            else if (submits[i] != 0)
                rig_accept (rig, submits[i], &id);
        }
    }
}

/* Refused again and again, as by a broker that is overloaded for a second. */
static void refused_submits_do_not_cost_their_square (void **state)
{
    (void) state;
    enum { PAIRS = 1000, ROUNDS = 5 };
    rig_t *rig = rig_linked (NULL);
    for (uint32_t i = 0; i < PAIRS; i++)
        rig_submit (rig, i, CORE_NEVER);
    for (int round = 0; round < ROUNDS; round++) {
        answer_all (rig, true);
        if (round == 0) /* behind the refusals */
            for (uint32_t i = 0; i < PAIRS; i++)
                start_waits (rig, i, 1, CORE_NEVER);
        answer_all (rig, true);
        rig_pass (rig, 130);
    }
    answer_all (rig, false);
    core_answer_t *answer;
    while ((answer = core_answer_next (rig->core)) != NULL)
        core_answer_free (answer);
    assert_true (core_waits_work (rig->core) >= PAIRS);
    assert_true (core_waits_work (rig->core) <= 20 * PAIRS);
    rig_free (rig);
}

static void an_overloaded_wait_is_asked_again_later (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    start_waits (rig, 1, 2, 5000);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->id, TMQ_OVERLOADED, 100);
    assert_false (rig_take (rig));
    rig_pass (rig, 130);
    assert_int_equal (rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->wait->n_task_ids, 2);
    rig_free (rig);
}

static void a_forgotten_wait_gives_no_answer (void **state)
{
    (void) state;
    int mine;
    rig_t *rig = rig_linked (NULL);
    tmq_id_t ids[3] = {rig_id (1), rig_id (2), rig_id (3)};
    assert_int_equal (core_wait (rig->core, ids, 3, (core_target_t){NULL, &mine, NULL}, CORE_NEVER,
                                 rig->now_ms, NULL),
                      TMQ_OK);
    start_waits (rig, 1, 1, CORE_NEVER); /* of another user */
    uint64_t asked = rig_request (rig, TASKMQ__REQUEST__OP_WAIT)->id;
    assert_int_equal (core_forget (rig->core, &ids[1], &mine), 1);
    assert_int_equal (core_forget (rig->core, &ids[1], &mine), 0);
    assert_int_equal (core_forget (rig->core, NULL, &mine), 2);
    assert_int_equal (core_open (rig->core), 1);
    answer_wait (rig, asked, 2, TMQ_OK, true);
    rig_no_answer (rig);
    answer_wait (rig, asked, 1, TMQ_OK, true);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_no_answer (rig);
    rig_free (rig);
}

/* What one owner is told another is not, though both wait for the same id. */
static void owners_wait_apart (void **state)
{
    (void) state;
    static const char *const OWNERS[] = {NULL, "ann", "ann", "ben"};
    rig_t *rig = rig_linked (NULL);
    tmq_id_t id = rig_id (1);
    uint64_t requests[3];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal (core_wait (rig->core, &id, 1, (core_target_t){NULL, NULL, OWNERS[i]},
                                     CORE_NEVER, rig->now_ms, NULL),
                          TMQ_OK);
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 3); /* ann asks once */
    for (size_t i = 0; i < 3; i++) {
        static const char *const ASKED[] = {"", "ann", "ben"};
        requests[i] = rig->message->requests[i]->id;
        assert_string_equal (rig->message->requests[i]->owner, ASKED[i]);
    }
    answer_wait (rig, requests[2], 1, TMQ_NOT_FOUND, false);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_NOT_FOUND);
    assert_null (core_answer_next (rig->core));
    answer_wait (rig, requests[1], 1, TMQ_OK, false);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    rig_answered (rig, TMQ_OP_WAIT, TMQ_OK);
    assert_null (core_answer_next (rig->core));
    assert_int_equal (core_forget (rig->core, &id, NULL), 1);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (ten_thousand_waits_are_ten_requests),
        cmocka_unit_test (what_is_beyond_is_asked_for_when_others_end),
        cmocka_unit_test (each_id_is_answered_once),
        cmocka_unit_test (many_waiters_for_one_task_ask_once),
        cmocka_unit_test (a_later_deadline_asks_again),
        cmocka_unit_test (a_wait_cannot_hang_after_a_reconnect),
        cmocka_unit_test (deadlines_tell_why),
        cmocka_unit_test (a_wait_follows_its_submit),
        cmocka_unit_test (a_wait_outlives_a_refused_submit),
        cmocka_unit_test (a_refused_submit_that_ends_lets_its_wait_ask),
        cmocka_unit_test (a_wait_that_gives_up_leaves_its_refused_submit),
        cmocka_unit_test (refused_submits_do_not_cost_their_square),
        cmocka_unit_test (a_forgotten_wait_gives_no_answer),
        cmocka_unit_test (an_overloaded_wait_is_asked_again_later),
        cmocka_unit_test (owners_wait_apart),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
