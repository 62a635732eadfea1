/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns that a worker tells of: each is there once and in order, whatever becomes of the broker
 * meanwhile. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_support.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

static tmq_assignment_t *next (tmq_worker_t *worker)
{
    tmq_assignment_t *task = NULL;
    assert_int_equal (tmq_worker_next (&task, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    return task;
}

static int tell (tmq_worker_t *worker, const tmq_assignment_t *task, uint32_t number,
                 uint8_t request, const char *content)
{
    tmq_turn_t turn;
    tmq_turn_init (&turn);
    turn.number = number;
    turn.request_id[0] = request;
    turn.content = content;
    return tmq_worker_turn (worker, task, &turn, TIMING_PATIENCE_MS, NULL);
}

static tmq_turn_list_t *read_turns (tmq_client_t *client, const tmq_id_t *id, uint32_t after,
                                    uint32_t limit)
{
    tmq_turn_list_t *list = NULL;
    unsigned parts = TMQ_TURN_CONTENT | TMQ_TURN_TOOL_CALLS | TMQ_TURN_TOOL_LOG | TMQ_TURN_FILES;
    assert_int_equal (
        tmq_turns (&list, client, id, 0, after, limit, parts, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    return list;
}

/* A program that has all that a turn can have, and a broker that is killed behind it. */
static void a_turn_outlives_the_broker (void **state)
{
    (void) state;
    const tmq_turn_file_t files[] = {{TMQ_FILE_OP_READ, "in.c"}, {TMQ_FILE_OP_DELETE, "out/old"}};
    tmq_client_t *client = client_of (broker.endpoint);
    tmq_worker_t *worker = worker_of (client, "turns", 1);
    tmq_id_t id = submit (client, "turns", "x");
    tmq_assignment_t *task = next (worker);
    tmq_turn_t turn;
    tmq_turn_init (&turn);
    turn.agent = "planner";
    turn.status = "done";
    turn.started_at = 1700000000000;
    turn.duration_ms = 1500;
    turn.content = "I look at the file.";
    turn.tool_calls = "[{\"name\":\"read\"}]";
    turn.tool_log = "42 lines\n";
    turn.files = files;
    turn.files_count = 2;
    assert_int_equal (tmq_worker_turn (worker, task, &turn, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    tmq_turn_list_t *list = read_turns (client, &id, 0, 0);
    assert_int_equal (list->count, 1);
    assert_int_equal (list->next, 0);
    const tmq_turn_info_t *told = &list->turns[0];
    assert_int_equal (told->turn, 1);
    assert_int_equal (told->attempt, 1);
    assert_int_equal (told->number, 1);
    assert_string_equal (told->agent, turn.agent);
    assert_string_equal (told->status, turn.status);
    assert_true (told->started_at == turn.started_at && told->duration_ms == turn.duration_ms);
    assert_true (told->told_at > turn.started_at);
    assert_string_equal (told->content, turn.content);
    assert_string_equal (told->tool_calls, turn.tool_calls);
    assert_string_equal (told->tool_log, turn.tool_log);
    assert_int_equal (told->files_count, 2);
    assert_int_equal (told->files[1].op, TMQ_FILE_OP_DELETE);
    assert_string_equal (told->files[1].path, "out/old");
    assert_false (told->superseded);
    tmq_turn_list_free (list);
    tmq_assignment_free (task);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* Many are on their way when the broker is killed, again and again. */
static void turns_pass_kills_once_and_in_order (void **state)
{
    (void) state;
    enum { KILLS = 5, TURNS = 14, ALL = KILLS * TURNS /* below what may come at once */ };
    tmq_client_t *client = client_of (broker.endpoint);
    tmq_worker_t *worker = worker_of (client, "kills", 1);
    tmq_id_t id = submit (client, "kills", "x");
    tmq_assignment_t *task = next (worker);
    char content[16];
    for (uint32_t i = 1; i <= ALL; i++) {
        tmq_turn_t turn;
        tmq_turn_init (&turn);
        snprintf (content, sizeof content, "turn %u", i);
        turn.content = content;
        assert_int_equal (tmq_worker_turn_start (worker, task, &turn, TMQ_FOREVER, NULL, NULL),
                          TMQ_OK);
        if (i % TURNS == TURNS / 2) {
            daemon_end (&broker, SIGKILL);
            daemon_start (&broker);
        }
    }
    for (uint32_t i = 0; i < ALL; i++) {
        tmq_completion_t *completion;
        size_t count;
        assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS),
                          TMQ_OK);
        assert_int_equal (completion->op, TMQ_OP_TURN);
        assert_int_equal (completion->code, TMQ_OK);
        tmq_completion_free (completion);
    }
    uint32_t told = 0;
    for (uint32_t after = 0, more = 1; more > 0; after = more) {
        tmq_turn_list_t *list = read_turns (client, &id, after, 9);
        for (size_t i = 0; i < list->count; i++) {
            snprintf (content, sizeof content, "turn %u", ++told);
            assert_int_equal (list->turns[i].turn, told);
            assert_int_equal (list->turns[i].number, told);
            assert_string_equal (list->turns[i].content, content);
        }
        more = list->next;
        tmq_turn_list_free (list);
    }
    assert_int_equal (told, ALL);
    tmq_assignment_free (task);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* A worker that does not know whether its turn arrived says it again, also to the next broker. */
static void a_repeated_turn_is_told_once (void **state)
{
    (void) state;
    tmq_client_t *client = client_of (broker.endpoint);
    tmq_worker_t *worker = worker_of (client, "again", 1);
    tmq_id_t id = submit (client, "again", "x");
    tmq_assignment_t *task = next (worker);
    assert_int_equal (tell (worker, task, 1, 7, "one"), TMQ_OK);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    assert_int_equal (tell (worker, task, 1, 7, "one"), TMQ_OK);
    assert_int_equal (tell (worker, task, 1, 8, "another one"), TMQ_CONFLICT);
    assert_int_equal (tell (worker, task, 3, 9, "three"), TMQ_CONFLICT);
    assert_int_equal (tell (worker, task, 2, 9, "two"), TMQ_OK);
    tmq_turn_list_t *list = read_turns (client, &id, 0, 0);
    assert_int_equal (list->count, 2);
    assert_string_equal (list->turns[0].content, "one");
    assert_string_equal (list->turns[1].content, "two");
    tmq_turn_list_free (list);
    tmq_assignment_free (task);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* What a resume leaves behind stays readable; the attempt before has nothing more to say. */
static void a_resume_goes_back_to_a_turn (void **state)
{
    (void) state;
    tmq_client_t *client = client_of (broker.endpoint);
    tmq_worker_t *worker = worker_of (client, "back", 1);
    tmq_id_t id = submit (client, "back", "x");
    tmq_assignment_t *first = next (worker);
    tmq_outcome_t outcome = {.error_code = 5, .error_message = "lost the thread", .final = true};
    tmq_changed_t changed;
    assert_int_equal (first->turns, 0);
    for (uint32_t i = 1; i <= 3; i++)
        assert_int_equal (tell (worker, first, i, 0, "of the first"), TMQ_OK);
    assert_int_equal (tmq_worker_fail (worker, first, &outcome, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_resume_from (&changed, client, &id, 4, NULL, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (changed.code, TMQ_INVALID);
    assert_int_equal (tmq_resume_from (&changed, client, &id, 1, NULL, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (changed.code, TMQ_OK);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    tmq_assignment_t *second = next (worker);
    assert_int_equal (second->turns, 3);
    assert_int_equal (tell (worker, first, 4, 0, "late"), TMQ_STALE_LEASE);
    assert_int_equal (tell (worker, second, 0, 0, "of the second"), TMQ_OK);
    tmq_turn_list_t *list = read_turns (client, &id, 0, 0);
    assert_int_equal (list->count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal (list->turns[i].superseded, i == 1 || i == 2);
    assert_int_equal (list->turns[3].attempt, second->attempt);
    assert_int_equal (list->turns[3].number, 1);
    assert_string_equal (list->turns[3].content, "of the second");
    tmq_turn_list_free (list);
    tmq_assignment_free (first);
    tmq_assignment_free (second);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_turn_outlives_the_broker, set_up, tear_down),
        cmocka_unit_test_setup_teardown (turns_pass_kills_once_and_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown (a_repeated_turn_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown (a_resume_goes_back_to_a_turn, set_up, tear_down)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
