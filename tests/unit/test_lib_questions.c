/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions in the library's core: they are asked through reconnects, and each answer is fetched
 * once, however often the broker tells of it. */
#include "lib_rig.h"

#include <stdlib.h>
#include <string.h>

#include "codec/questions.h"
#include "parts/asked.h"

static uint8_t secret[16] = {9, 8, 7};
static uint8_t worker_id[16];

static void say_registered (rig_t *rig, const Taskmq__Request *request, uint64_t answers)
{
    tmq_id_t id = rig_id (1);
    memcpy (worker_id, request->register_->worker_id.data, 16);
    Taskmq__LeaseState state = TASKMQ__LEASE_STATE__INIT;
    Taskmq__LeaseState *states[] = {&state};
    Taskmq__Registered body = TASKMQ__REGISTERED__INIT;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    state.task_id = rig_bytes (&id);
    state.attempt = 1;
    state.lease_ms = 30000;
    state.answers = answers;
    body.n_leases = request->register_->n_leases;
    body.leases = states;
    reply.id = request->id;
    reply.body_case = TASKMQ__REPLY__BODY_REGISTERED;
    reply.registered = &body;
    rig_reply (rig, &reply, NULL, 0);
}

static void reply_registered (rig_t *rig, uint64_t answers)
{
    say_registered (rig, rig_request (rig, TASKMQ__REQUEST__OP_REGISTER), answers);
}

/* A worker that holds task 1, of which the broker says that it has so many answers. */
static rig_t *working (core_worker_t **worker, tmq_assignment_t **assignment, uint64_t answers)
{
    static const char *const queues[] = {"q"};
    rig_t *rig = rig_linked (NULL);
    tmq_worker_options_t options;
    tmq_worker_options_init (&options);
    options.name = "tester";
    options.queues = queues;
    options.queues_count = 1;
    assert_int_equal (core_worker_new (worker, rig->core, &options, NULL, NULL), TMQ_OK);
    reply_registered (rig, 0);
    tmq_id_t id = rig_id (1);
    Taskmq__Assignment given = TASKMQ__ASSIGNMENT__INIT;
    Taskmq__Assignment *assignments[] = {&given};
    Taskmq__BrokerMessage message = TASKMQ__BROKER_MESSAGE__INIT;
    given.worker_id = (ProtobufCBinaryData){16, worker_id};
    given.number = 1;
    given.task_id = rig_bytes (&id);
    given.attempt = 1;
    given.secret = (ProtobufCBinaryData){16, secret};
    given.lease_ms = 30000;
    given.answers = answers;
    message.n_assignments = 1;
    message.assignments = assignments;
    rig_send (rig, &message, NULL, 0);
    assert_int_equal (core_worker_next (assignment, *worker, NULL), TMQ_OK);
    return rig;
}

static void done (rig_t *rig, core_worker_t *worker, tmq_assignment_t *assignment)
{
    tmq_assignment_free (assignment);
    core_worker_free (worker);
    rig_free (rig);
}

/* Answers the take_answers that has to come: one answer of this number, or none. */
static void give (rig_t *rig, uint64_t seen, uint64_t number, const char *text)
{
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_TAKE_ANSWERS);
    assert_non_null (request);
    assert_int_equal (request->take_answers->seen, seen);
    Taskmq__GivenAnswer given = TASKMQ__GIVEN_ANSWER__INIT;
    Taskmq__GivenAnswer *answers[] = {&given};
    Taskmq__AnswerPage page = TASKMQ__ANSWER_PAGE__INIT;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    given.number = number;
    given.key = (char *) (number == 1 ? "one" : "two");
    given.bytes = page.body = (uint32_t) strlen (text);
    given.by = (char *) "uid:1";
    page.n_answers = number > 0;
    page.answers = answers;
    reply.id = request->id;
    reply.body_case = TASKMQ__REPLY__BODY_ANSWER_PAGE;
    reply.answer_page = &page;
    rig_reply (rig, &reply, text, strlen (text));
}

static void notify (rig_t *rig, uint64_t answers)
{
    tmq_id_t id = rig_id (1);
    Taskmq__AnswerNotice notice = TASKMQ__ANSWER_NOTICE__INIT;
    Taskmq__AnswerNotice *notices[] = {&notice};
    Taskmq__BrokerMessage message = TASKMQ__BROKER_MESSAGE__INIT;
    notice.worker_id = (ProtobufCBinaryData){16, worker_id};
    notice.task_id = rig_bytes (&id);
    notice.attempt = 1;
    notice.answers = answers;
    message.n_answers = 1;
    message.answers = notices;
    rig_send (rig, &message, NULL, 0);
}

static void has (core_worker_t *worker, const tmq_assignment_t *assignment, const char *key,
                 const char *expected)
{
    tmq_given_t *given = NULL;
    assert_int_equal (core_worker_given (&given, worker, assignment, key, NULL), TMQ_OK);
    assert_string_equal (given->answer, expected);
    assert_string_equal (given->by, "uid:1");
    tmq_given_free (given);
}

static void has_none (core_worker_t *worker, const tmq_assignment_t *assignment, const char *key,
                      int code)
{
    tmq_given_t *given = NULL;
    assert_int_equal (core_worker_given (&given, worker, assignment, key, NULL), code);
}

static void ask (rig_t *rig, core_worker_t *worker, const tmq_assignment_t *assignment, int code)
{
    tmq_ask_t question;
    tmq_ask_init (&question);
    question.key = "one";
    question.request = "{\"text\":\"which?\"}";
    question.default_answer = "";
    question.default_is_text = true;
    assert_int_equal (core_worker_ask (worker, assignment, &question,
                                       (core_target_t){NULL, NULL, NULL}, rig->now_ms + 5000,
                                       rig->now_ms, NULL),
                      code);
}

static void test_a_question_is_asked_until_it_is_answered (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    uint8_t request_id[16];
    rig_t *rig = working (&worker, &assignment, 0);
    ask (rig, worker, assignment, TMQ_OK);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_ASK);
    assert_non_null (request);
    assert_string_equal (request->ask->key, "one");
    assert_true (request->ask->has_default && request->ask->default_text);
    assert_true (request->ask->lease->started);
    memcpy (request_id, request->request_id.data, 16);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    assert_true (rig_take (rig) && rig->message->n_requests == 2);
    const Taskmq__Request *again = rig->message->requests[1];
    assert_int_equal (again->op_case, TASKMQ__REQUEST__OP_ASK);
    assert_memory_equal (request_id, again->request_id.data, 16);
    uint64_t asked = again->id;
    say_registered (rig, rig->message->requests[0], 0);
    rig_ok (rig, asked);
    rig_answered (rig, TMQ_OP_ASK, TMQ_OK);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    done (rig, worker, assignment);
}

static void test_answers_are_fetched_when_they_are_told_of (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    tmq_attempt_change_t change;
    rig_t *rig = working (&worker, &assignment, 0);
    has_none (worker, assignment, NULL, TMQ_TIMEOUT);
    notify (rig, 1);
    notify (rig, 1);
    give (rig, 0, 1, "\"red\"");
    assert_int_equal (core_worker_changed (&change, worker), TMQ_OK);
    assert_int_equal (change.state, TMQ_ATTEMPT_ANSWERED);
    give (rig, 1, 0, ""); /* the broker hears that it was taken */
    assert_null (rig_find_request (rig, TASKMQ__REQUEST__OP_TAKE_ANSWERS));
    has (worker, assignment, NULL, "\"red\"");
    has_none (worker, assignment, NULL, TMQ_TIMEOUT);
    has (worker, assignment, "one", "\"red\"");
    has (worker, assignment, "one", "\"red\"");
    has_none (worker, assignment, "two", TMQ_TIMEOUT);
    notify (rig, 2);
    give (rig, 1, 2, "2");
    has (worker, assignment, NULL, "2");
    done (rig, worker, assignment);
}

static void test_an_assignment_brings_earlier_answers (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment, 1);
    give (rig, 0, 1, "1");
    has (worker, assignment, "one", "1");
    done (rig, worker, assignment);
}

static void test_a_lost_link_loses_no_answer (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment, 0);
    notify (rig, 1);
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_TAKE_ANSWERS));
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    reply_registered (rig, 1);
    give (rig, 0, 1, "1");
    has (worker, assignment, "one", "1");
    done (rig, worker, assignment);
}

static void test_what_does_not_add_up_ends_the_link (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment, 1);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_TAKE_ANSWERS);
    Taskmq__GivenAnswer given = TASKMQ__GIVEN_ANSWER__INIT;
    Taskmq__GivenAnswer *answers[] = {&given};
    Taskmq__AnswerPage page = TASKMQ__ANSWER_PAGE__INIT;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    given.number = 1;
    given.bytes = 100;
    page.n_answers = 1;
    page.answers = answers;
    page.body = 1;
    reply.id = request->id;
    reply.body_case = TASKMQ__REPLY__BODY_ANSWER_PAGE;
    reply.answer_page = &page;
    rig_reply (rig, &reply, "1", 1);
    bool final;
    assert_int_not_equal (core_link_state (rig->core, NULL, &final), TMQ_OK);
    done (rig, worker, assignment);
}

static void test_a_cancelled_task_gets_no_answer (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment, 0);
    ask (rig, worker, assignment, TMQ_OK);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_ASK);
    rig_refuse (rig, request->id, TMQ_WRONG_STATUS, 0);
    rig_answered (rig, TMQ_OP_ASK, TMQ_WRONG_STATUS);
    has_none (worker, assignment, "one", TMQ_CANCELLED);
    done (rig, worker, assignment);
}

static void test_what_is_wrong_is_refused_here (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment, 0);
    tmq_ask_t question, taken;
    tmq_ask_init (&question);
    assert_int_equal (core_take_ask (&taken, &question, NULL), TMQ_INVALID);
    question.request = "1";
    assert_int_equal (core_take_ask (&taken, &question, NULL), TMQ_OK);
    question.size = 1;
    assert_int_equal (core_take_ask (&taken, &question, NULL), TMQ_INVALID);
    core_request_t *request = NULL;
    tmq_id_t id = rig_id (1);
    tmq_answer_t answers[65] = {{.answer = "1", .answer_bytes = 1}};
    assert_int_equal (core_request_answer (&request, &id, answers, 0, NULL), TMQ_INVALID);
    assert_int_equal (core_request_answer (&request, &id, answers, 65, NULL), TMQ_TOO_LARGE);
    answers[0].answer_bytes = 65537;
    assert_int_equal (core_request_answer (&request, &id, answers, 1, NULL), TMQ_TOO_LARGE);
    tmq_inbox_query_t query;
    tmq_inbox_query_init (&query);
    query.limit = 1001;
    assert_int_equal (core_request_inbox (&request, &query, NULL), TMQ_INVALID);
    done (rig, worker, assignment);
}

static void test_an_inbox_is_one_piece_of_memory (void **state)
{
    (void) state;
    tmq_id_t id = rig_id (7);
    Taskmq__Question question = TASKMQ__QUESTION__INIT;
    Taskmq__Question *questions[] = {&question, &question};
    Taskmq__InboxPage page = TASKMQ__INBOX_PAGE__INIT;
    question.task_id = rig_bytes (&id);
    question.key = (char *) "colour";
    question.request = (char *) "1";
    page.n_questions = 2;
    page.questions = questions;
    page.next = 9;
    tmq_inbox_t *inbox = core_inbox_record (&page);
    assert_int_equal (inbox->count, 2);
    assert_int_equal (inbox->next, 9);
    assert_string_equal (inbox->questions[1].key, "colour");
    assert_string_equal (inbox->questions[1].request, "1");
    assert_memory_equal (inbox->questions[0].task_id.bytes, id.bytes, 16);
    tmq_inbox_free (inbox);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_question_is_asked_until_it_is_answered),
        cmocka_unit_test (test_answers_are_fetched_when_they_are_told_of),
        cmocka_unit_test (test_an_assignment_brings_earlier_answers),
        cmocka_unit_test (test_a_lost_link_loses_no_answer),
        cmocka_unit_test (test_what_does_not_add_up_ends_the_link),
        cmocka_unit_test (test_a_cancelled_task_gets_no_answer),
        cmocka_unit_test (test_what_is_wrong_is_refused_here),
        cmocka_unit_test (test_an_inbox_is_one_piece_of_memory),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
