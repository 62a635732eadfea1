/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns: told by the holder of a lease, numbered, bounded, read, superseded, removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"
#include "turn_files.h"

enum { SUBJECT = 1, WORKER = 100 };

static unsigned newest_id; /* of the requests that must differ */

/* The newest one: there is room for one at a time. */
static const Taskmq__Assignment *claim (rig_t *rig)
{
    if (rig_assignments (rig, 1) == 0)
        rig_register (rig, 1, WORKER, "q", 1);
    rig_advance (rig, 3000);
    return rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
}

static const Taskmq__Assignment *begin (rig_t *rig)
{
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    return claim (rig);
}

static unsigned code_of_turn (rig_t *rig, const Taskmq__Assignment *assignment, uint32_t number,
                              const char *content)
{
    rig_use_request_id (1000 + ++newest_id);
    uint64_t request = rig_turn (rig, 1, assignment, number, content);
    rig_run (rig);
    return rig_code (rig, 1, request);
}

static void tell (rig_t *rig, const Taskmq__Assignment *assignment, uint32_t first, uint32_t last)
{
    char content[16];
    for (uint32_t i = first; i <= last; i++) {
        snprintf (content, sizeof (content), "turn %u", i);
        assert_int_equal (code_of_turn (rig, assignment, i, content), TMQ_OK);
    }
}

static const rig_item_t *read_turns (rig_t *rig, uint32_t attempt, uint32_t after)
{
    uint64_t request = rig_turns (rig, 0, SUBJECT, attempt, after);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, request);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->body_case, TASKMQ__REPLY__BODY_TURN_PAGE);
    return item;
}

/* The task's turns as a word: s superseded, y counts. */
static void assert_turns (rig_t *rig, const char *expected)
{
    const Taskmq__TurnPage *page = read_turns (rig, 0, 0)->reply->turn_page;
    char found[64] = "";
    assert_in_range (page->n_turns, 0, sizeof (found) - 1);
    for (size_t i = 0; i < page->n_turns; i++) {
        assert_int_equal (page->turns[i]->turn, i + 1);
        found[i] = page->turns[i]->superseded ? 's' : 'y';
    }
    assert_string_equal (found, expected);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->extra->turns, strlen (expected));
}

static size_t rows_of (const rig_t *rig, row_kind_t kind)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        count += rig->kind_rows.rows[i].kind == kind;
    return count;
}

static void end (rig_t *rig, const Taskmq__Assignment *assignment)
{
    rig_use_request_id (1000 + ++newest_id);
    rig_fail (rig, 1, assignment, 5, true);
    rig_settle (rig);
}

/* Resumes from a turn, or retries (-1). */
static const Taskmq__ChangedItem *go_on (rig_t *rig, int64_t from)
{
    tmq_id_t id = rig_id (SUBJECT);
    ProtobufCBinaryData bytes = {sizeof (id.bytes), id.bytes};
    uint8_t request_id[16] = {0};
    Taskmq__Retry retry = TASKMQ__RETRY__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    unsigned unique = ++newest_id;
    memcpy (request_id, &unique, sizeof (unique));
    retry.task_ids = &bytes;
    retry.n_task_ids = 1;
    retry.from_turn_plus_1 = (uint32_t) (from + 1);
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.op_case = from < 0 ? TASKMQ__REQUEST__OP_RETRY : TASKMQ__REQUEST__OP_RESUME;
    request.resume = &retry;
    uint64_t sent = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_OK);
    return rig_reply (rig, 0, sent)->reply->changed->items[0];
}

static void what_was_told_is_read (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    assert_int_equal (assignment->extra == NULL ? 0 : assignment->extra->turns, 0);
    uint64_t request = rig_turn (rig, 1, assignment, 1, "first");
    rig_outputs (rig);
    assert_null (rig_reply (rig, 1, request)); /* not before it is durable */
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_OK);
    for (int again = 0; again < 2; again++) {
        const rig_item_t *item = read_turns (rig, 0, 0);
        const Taskmq__TurnPage *page = item->reply->turn_page;
        assert_int_equal (page->n_turns, 1);
        assert_int_equal (page->turns[0]->attempt, 1);
        assert_int_equal (page->turns[0]->number, 1);
        assert_string_equal (page->turns[0]->agent, "planner");
        assert_string_equal (page->turns[0]->status, "ok");
        assert_int_equal (page->turns[0]->content_bytes, 5);
        assert_int_equal (page->turns[0]->parts, TMQ_TURN_CONTENT);
        assert_int_equal (item->body_bytes, 5);
        assert_memory_equal (item->body, "first", 5);
        assert_int_equal (page->next, 0);
        rig_restart (rig);
        rig_link (rig, 0, "default");
    }
    assert_int_equal (rows_of (rig, ROW_KIND_TURN), 1);
}

static void it_is_an_event (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    tell (rig, assignment, 1, 2);
    uint64_t request = rig_history (rig, 0, SUBJECT);
    rig_settle (rig);
    const Taskmq__EventPage *page = rig_reply (rig, 0, request)->reply->event_page;
    const Taskmq__Event *event = page->list->events[page->list->n_events - 1];
    assert_int_equal (event->kind, TMQ_EVENT_TURN);
    assert_int_equal (event->number, 2);
    assert_string_equal (event->name, "planner");
    assert_string_equal (event->message, "ok");
    assert_int_equal (event->status, TMQ_STATUS_WORKING);
}

static void a_repeat_is_told_once (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    rig_use_request_id (77);
    uint64_t first = rig_turn (rig, 1, assignment, 1, "first");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, first), TMQ_OK);
    uint64_t again = rig_turn (rig, 1, assignment, 1, "first");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, again), TMQ_OK);
    assert_int_equal (code_of_turn (rig, assignment, 1, "other"), TMQ_CONFLICT);
    assert_int_equal (code_of_turn (rig, assignment, 3, "third"), TMQ_CONFLICT);
    assert_int_equal (code_of_turn (rig, assignment, 2, "second"), TMQ_OK);
    rig_use_request_id (77);
    again = rig_turn (rig, 1, assignment, 1, "first");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, again), TMQ_OK);
    assert_turns (rig, "yy");
}

static void only_the_holder_tells (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = begin (rig);
    tell (rig, first, 1, 2);
    rig_use_request_id (78);
    rig_fail (rig, 1, first, 5, false);
    rig_settle (rig);
    const Taskmq__Assignment *second = claim (rig);
    assert_int_equal (second->extra->turns, 2);
    assert_int_equal (code_of_turn (rig, first, 3, "late"), TMQ_STALE_LEASE);
    tell (rig, second, 1, 1);
    assert_int_equal (read_turns (rig, 2, 0)->reply->turn_page->n_turns, 1);
    assert_int_equal (read_turns (rig, 2, 0)->reply->turn_page->turns[0]->turn, 3);
    rig_use_request_id (79);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_int_equal (code_of_turn (rig, second, 2, "late"), TMQ_WRONG_STATUS);
    assert_turns (rig, "yyy");
}

static unsigned code_of_parts (rig_t *rig, const Taskmq__Assignment *assignment, const void *parts,
                               uint32_t content, uint32_t calls, uint32_t log, uint32_t files)
{
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__Turn turn = TASKMQ__TURN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t request_id[16] = {9};
    lease.task_id = assignment->task_id;
    lease.attempt = assignment->attempt;
    lease.secret = assignment->secret;
    turn.lease = &lease;
    turn.number = 1;
    turn.content_bytes = content;
    turn.tool_calls_bytes = calls;
    turn.tool_log_bytes = log;
    turn.files_bytes = files;
    request.op_case = TASKMQ__REQUEST__OP_TURN;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.turn = &turn;
    uint64_t sent = rig_send (rig, 1, &request, parts, content + calls + log + files);
    rig_settle (rig);
    return rig_code (rig, 1, sent);
}

static void parts_are_what_they_have_to_be (void **state)
{
    rig_t *rig = *state;
    char path[TMQ_TURN_PATH_BYTES_MAX + 2];
    bytes_t files = BYTES_INIT;
    const Taskmq__Assignment *assignment = begin (rig);
    assert_int_equal (code_of_parts (rig, assignment, "a\xff", 2, 0, 0, 0), TMQ_INVALID);
    assert_int_equal (code_of_parts (rig, assignment, "a\0", 2, 0, 0, 0), TMQ_INVALID);
    assert_int_equal (code_of_parts (rig, assignment, "[1", 0, 2, 0, 0), TMQ_INVALID);
    assert_int_equal (code_of_parts (rig, assignment, "\xc3", 0, 0, 1, 0), TMQ_INVALID);
    assert_int_equal (code_of_parts (rig, assignment, "\x0a\x05", 0, 0, 0, 2), TMQ_INVALID);
    memset (path, 'p', sizeof (path));
    path[sizeof (path) - 1] = '\0';
    const struct {
        tmq_file_op_t op;
        const char *path;
    } wrong[] = {{TMQ_FILE_OP_READ, ""},
                 {TMQ_FILE_OP_READ, path},
                 {TMQ_FILE_OP_NONE, "p"},
                 {(tmq_file_op_t) 4, "p"},
                 {TMQ_FILE_OP_READ, "\xff"}};
    for (size_t i = 0; i < sizeof (wrong) / sizeof (wrong[0]); i++) {
        bytes_clear (&files);
        turn_file_append (&files, wrong[i].op, wrong[i].path);
        assert_int_equal (
            code_of_parts (rig, assignment, files.data, 0, 0, 0, (uint32_t) files.length),
            TMQ_INVALID);
    }
    bytes_clear (&files);
    for (size_t i = 0; i < TMQ_TURN_FILES_MAX; i++)
        turn_file_append (&files, TMQ_FILE_OP_WRITE, "p");
    uint32_t length = (uint32_t) files.length;
    turn_file_append (&files, TMQ_FILE_OP_WRITE, "p");
    assert_int_equal (code_of_parts (rig, assignment, files.data, 0, 0, 0, (uint32_t) files.length),
                      TMQ_INVALID);
    assert_int_equal (code_of_parts (rig, assignment, files.data, 0, 0, 0, length), TMQ_OK);
    bytes_free (&files);
}

/* Limits. */

static void limits_are_answered (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.task_turns_max = 3;
    config.task_turn_bytes_max = 20;
    config.space_turn_bytes_max = 18;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    const Taskmq__Assignment *assignment = begin (rig);
    assert_int_equal (code_of_turn (rig, assignment, 1, "0123456789"), TMQ_OK);
    assert_int_equal (code_of_turn (rig, assignment, 2, "0123456789x"), TMQ_LIMIT);
    assert_int_equal (code_of_turn (rig, assignment, 2, "012345678"), TMQ_LIMIT);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register_with (rig, 1, WORKER, "q", 1, assignment);
    rig_settle (rig);
    assert_int_equal (code_of_turn (rig, assignment, 2, "012345678"), TMQ_LIMIT);
    assert_int_equal (code_of_turn (rig, assignment, 2, "01234567"), TMQ_OK);
    assert_int_equal (code_of_turn (rig, assignment, 3, ""), TMQ_OK);
    assert_int_equal (code_of_turn (rig, assignment, 4, ""), TMQ_LIMIT);
    assert_turns (rig, "yyy");
    end (rig, assignment);
    rig_use_request_id (80);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    rig_settle (rig);
    rig_submit (rig, 0, SUBJECT + 1, "q", "p");
    rig_run (rig);
    assert_int_equal (code_of_turn (rig, claim (rig), 1, "0123456789"), TMQ_OK);
    rig_free (rig);
}

static void a_task_tells_only_so_fast (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    uint32_t told = 0;
    while (told < 1000 && code_of_turn (rig, assignment, told + 1, "") == TMQ_OK)
        told++;
    assert_int_equal (told, 5 * TMQ_TURN_RATE_MAX);
    rig_advance (rig, 1000);
    uint32_t before = told;
    while (told < 1000 && code_of_turn (rig, assignment, told + 1, "") == TMQ_OK)
        told++;
    assert_in_range (told - before, TMQ_TURN_RATE_MAX - 1, TMQ_TURN_RATE_MAX + 1);
}

/* Going back. */

static void a_resume_goes_back_to_a_turn (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    tell (rig, assignment, 1, 4);
    end (rig, assignment);
    const Taskmq__ChangedItem *item = go_on (rig, 5);
    assert_int_equal (item->code, TMQ_INVALID);
    assert_non_null (strstr (item->text, "4 turns"));
    assert_int_equal (go_on (rig, 2)->code, TMQ_OK);
    assert_turns (rig, "yyss");
    assignment = claim (rig);
    assert_int_equal (assignment->extra->turns, 4);
    tell (rig, assignment, 1, 2);
    assert_turns (rig, "yyssyy");
    end (rig, assignment);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    assert_int_equal (go_on (rig, 5)->code, TMQ_OK);
    assert_turns (rig, "yyssys");
    rig_register (rig, 1, WORKER + 1, "q", 1);
    assignment = claim (rig);
    end (rig, assignment);
    assert_int_equal (go_on (rig, 3)->code, TMQ_OK); /* into a range, over another one */
    assert_turns (rig, "yyssss");
    end (rig, claim (rig));
    assert_int_equal (go_on (rig, 0)->code, TMQ_OK);
    assert_turns (rig, "ssssss");
}

static void a_retry_begins_anew (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    tell (rig, assignment, 1, 2);
    end (rig, assignment);
    assert_int_equal (go_on (rig, -1)->code, TMQ_OK);
    tell (rig, claim (rig), 1, 1);
    assert_turns (rig, "ssy");
}

static void ranges_have_a_limit (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    uint32_t turns = 0;
    for (unsigned i = 0; i <= TMQ_TURN_RANGES_MAX; i++) {
        tell (rig, assignment, 1, 2);
        turns += 2;
        end (rig, assignment);
        unsigned code = go_on (rig, turns - 1)->code;
        assert_int_equal (code, i < TMQ_TURN_RANGES_MAX ? TMQ_OK : TMQ_LIMIT);
        if (code == TMQ_OK)
            assignment = claim (rig);
    }
    assert_int_equal (go_on (rig, 0)->code, TMQ_OK);
}

/* The end. */

static void they_go_with_the_task_in_slices (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.leftovers = 3;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    const Taskmq__Assignment *assignment = begin (rig);
    tell (rig, assignment, 1, 12);
    end (rig, assignment);
    assert_int_equal (rows_of (rig, ROW_KIND_TURN), 12);
    rig_use_request_id (81);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    rig_commit (rig);
    engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
    rig_commit (rig);
    rig_restart (rig); /* some are left */
    assert_in_range (rows_of (rig, ROW_KIND_TURN), 1, 12);
    assert_int_equal (rows_of (rig, ROW_KIND_TURNS_LEFT), 1);
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_TURN), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_TURNS_LEFT), 0);
    rig_free (rig);
}

/* Pages. */

static void a_page_takes_what_a_message_takes (void **state)
{
    enum { TURNS = 8 };
    static char large[TMQ_TURN_BYTES_MAX + 1];
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = begin (rig);
    memset (large, 'x', TMQ_TURN_BYTES_MAX);
    for (uint32_t i = 1; i <= TURNS; i++)
        assert_int_equal (code_of_turn (rig, assignment, i, large), TMQ_OK);
    uint32_t after = 0;
    uint32_t seen = 0;
    do {
        const rig_item_t *item = read_turns (rig, 0, after);
        const Taskmq__TurnPage *page = item->reply->turn_page;
        assert_in_range (page->n_turns, 1, 3);
        assert_int_equal (item->body_bytes, page->n_turns * TMQ_TURN_BYTES_MAX);
        for (size_t i = 0; i < page->n_turns; i++)
            assert_int_equal (page->turns[i]->turn, ++seen);
        after = page->next;
    } while (after != 0);
    assert_int_equal (seen, TURNS);
    assert_int_equal (read_turns (rig, 0, TURNS)->reply->turn_page->n_turns, 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (what_was_told_is_read),
        TEST (it_is_an_event),
        TEST (a_repeat_is_told_once),
        TEST (only_the_holder_tells),
        TEST (parts_are_what_they_have_to_be),
        cmocka_unit_test (limits_are_answered),
        TEST (a_task_tells_only_so_fast),
        TEST (a_resume_goes_back_to_a_turn),
        TEST (a_retry_begins_anew),
        TEST (ranges_have_a_limit),
        cmocka_unit_test (they_go_with_the_task_in_slices),
        TEST (a_page_takes_what_a_message_takes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
