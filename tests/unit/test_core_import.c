/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Import: tasks that come as they were elsewhere; what is here already; pieces; who may. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import_stage.h"
#include "imported.h"
#include "rights_stage.h"

enum { SUBJECT = 700, OTHER = 701, WORKER = 100 };

static void is_as_it_was (rig_t *rig, const given_t *given)
{
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_int_equal (task->status, given->task.status);
    assert_int_equal (task->created_at, given->task.created_at);
    assert_int_equal (task->updated_at, given->task.updated_at);
    assert_int_equal (task->finished_at, given->task.finished_at);
    assert_int_equal (task->version, 7);
    assert_int_equal (task->attempt, 2);
    assert_int_equal (task->failures, 1);
    assert_int_equal (task->priority, 9);
    assert_int_equal (task->lease_ms, 45000);
    assert_string_equal (task->worker, "w");
    assert_int_equal (task->payload_bytes, 5);
    assert_int_equal (task->outcome, given->task.outcome);
}

static void it_is_as_it_was (void **state)
{
    static const tmq_status_t statuses[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_COMPLETED,
                                            TMQ_STATUS_FAILED, TMQ_STATUS_CANCELLED};
    (void) state;
    for (size_t i = 0; i < sizeof (statuses) / sizeof (statuses[0]); i++) {
        rig_t *rig = rig_new ();
        given_t given;
        rig_link (rig, 0, "default");
        given_fill (&given, rig, SUBJECT, statuses[i]);
        const Taskmq__SubmittedItem *item = given_item (rig, &given);
        assert_false (item->existing);
        assert_int_equal (item->status, statuses[i]);
        deed_t deed;
        tmq_id_t id = rig_id (SUBJECT);
        assert_true (engine_deed_next (rig->engine, &deed));
        assert_int_equal (deed.kind, DEED_IMPORT);
        assert_memory_equal (deed.task.bytes, id.bytes, sizeof (id));
        assert_true (given_item (rig, &given)->existing);
        assert_false (engine_deed_next (rig->engine, &deed));
        is_as_it_was (rig, &given);
        rig_restart (rig);
        rig_link (rig, 0, "default");
        is_as_it_was (rig, &given);
        uint64_t request = rig_payload (rig, 0, SUBJECT);
        rig_settle (rig);
        assert_memory_equal (rig_reply (rig, 0, request)->body, "hello", 5);
        rig_free (rig);
    }
}

static void nothing_is_said_before_it_is_durable (void **state)
{
    rig_t *rig = *state;
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    uint64_t request = given_send (rig, 0, &given);
    rig_outputs (rig);
    assert_null (rig_reply (rig, 0, request));
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
}

static void it_is_one_event (void **state)
{
    rig_t *rig = *state;
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_FAILED);
    rig_subscribe (rig, 1, 5, 0);
    given_item (rig, &given);
    size_t count = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++) {
        const Taskmq__EventList *list = rig->peers[1].items[i].list;
        for (size_t k = 0; list != NULL && k < list->n_events; k++, count++) {
            assert_int_equal (list->events[k]->kind, TMQ_EVENT_IMPORTED);
            assert_int_equal (list->events[k]->status, TMQ_STATUS_FAILED);
            assert_int_equal (list->events[k]->previous, TMQ_STATUS_NONE);
        }
    }
    assert_int_equal (count, 1);
}

static void what_is_here_is_not_changed (void **state)
{
    rig_t *rig = *state;
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    given_item (rig, &given);
    given.task.priority = 1;
    assert_true (given_item (rig, &given)->existing);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->priority, 9);
    given.whole.payload.data = (uint8_t *) "other";
    assert_int_equal (given_code (rig, &given), TMQ_CONFLICT);
    given.whole.payload.data = (uint8_t *) "hello";
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_true (given_item (rig, &given)->existing);
    /* A key belongs to one task. */
    given.import.dedup_key = (char *) "key";
    given.id = rig_id (OTHER);
    assert_false (given_item (rig, &given)->existing);
    given.id = rig_id (OTHER + 1);
    assert_int_equal (given_code (rig, &given), TMQ_CONFLICT);
}

static void what_waits_goes_on (void **state)
{
    rig_t *rig = *state;
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    given_item (rig, &given);
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    assert_int_equal (assignment->attempt, 3);
    assert_int_equal (assignment->lease_ms, 45000);
    uint64_t request = rig_complete (rig, 1, assignment, "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_COMPLETED);
}

static void what_failed_can_be_retried (void **state)
{
    rig_t *rig = *state;
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_FAILED);
    given_item (rig, &given);
    uint64_t request = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, SUBJECT, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, request), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
}

static void dependencies_are_here (void **state)
{
    rig_t *rig = *state;
    given_t given;
    tmq_id_t id = rig_id (OTHER);
    Taskmq__Dependency entry = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *after[] = {&entry};
    entry.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    given.extra.after = after;
    given.extra.n_after = 1;
    assert_int_equal (given_code (rig, &given), TMQ_NOT_FOUND);
    rig_submit (rig, 0, OTHER, "q", "p");
    rig_settle (rig);
    given_item (rig, &given);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->phase, TMQ_PHASE_BLOCKED);
    rig_cancel (rig, 0, OTHER);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_FAILED);
}

static void a_parent_may_be_gone (void **state)
{
    rig_t *rig = *state;
    given_t given;
    tmq_id_t id = rig_id (OTHER);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    given.extra.parent = (ProtobufCBinaryData){sizeof (id), id.bytes};
    given_item (rig, &given);
    assert_memory_equal (rig_task (rig, 0, SUBJECT)->extra->parent.data, id.bytes, sizeof (id));
}

static void attempts_come_along (void **state)
{
    rig_t *rig = *state;
    given_t given;
    Taskmq__AttemptInfo info = TASKMQ__ATTEMPT_INFO__INIT;
    Taskmq__TaskError error = TASKMQ__TASK_ERROR__INIT;
    Taskmq__AttemptInfo *attempts[] = {&info};
    error.code = 5;
    error.message = (char *) "first";
    info.attempt = 1;
    info.worker = (char *) "before";
    info.how = TMQ_EVENT_ATTEMPT_FAILED;
    info.error = &error;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    given.whole.attempts = attempts;
    given.whole.n_attempts = 1;
    given_item (rig, &given);
    Taskmq__Attempts wanted = TASKMQ__ATTEMPTS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    wanted.task_id = given.import.task_id;
    request.op_case = TASKMQ__REQUEST__OP_ATTEMPTS;
    request.attempts = &wanted;
    uint64_t sent = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    const Taskmq__AttemptPage *page = rig_reply (rig, 0, sent)->reply->attempt_page;
    assert_int_equal (page->n_attempts, 2);
    assert_int_equal (page->attempts[0]->how, TMQ_EVENT_ATTEMPT_FAILED);
    assert_string_equal (page->attempts[0]->error->message, "first");
    assert_int_equal (page->attempts[1]->how, TMQ_EVENT_COMPLETED);
}

/* Who had a lease elsewhere has none here, whatever secret he shows. */
static void old_leases_are_stale (void **state)
{
    rig_t *rig = *state;
    given_t given;
    uint8_t secret[16] = {0};
    Taskmq__Assignment lease = TASKMQ__ASSIGNMENT__INIT;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    given_item (rig, &given);
    lease.task_id = given.import.task_id;
    lease.attempt = 2;
    lease.secret = (ProtobufCBinaryData){sizeof (secret), secret};
    uint64_t request = rig_complete (rig, 1, &lease, "mine");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_STALE_LEASE);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
}

enum { TURNS = 5 };

static void turns_come_along (void **state)
{
    rig_t *rig = *state;
    given_t given;
    Taskmq__TurnInfo infos[TURNS];
    Taskmq__ImportedTurn turns[TURNS];
    Taskmq__ImportedTurn *list[TURNS];
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_FAILED);
    for (uint32_t i = 0; i < TURNS; i++) {
        infos[i] = (Taskmq__TurnInfo) TASKMQ__TURN_INFO__INIT;
        turns[i] = (Taskmq__ImportedTurn) TASKMQ__IMPORTED_TURN__INIT;
        infos[i].turn = i + 1;
        infos[i].attempt = i < 3 ? 1 : 2;
        infos[i].number = i < 3 ? i + 1 : i - 2;
        infos[i].superseded = i == 1 || i == 2;
        infos[i].told_at = given.task.created_at + i;
        turns[i].info = &infos[i];
        turns[i].content = (ProtobufCBinaryData){1, (uint8_t *) "abcde" + i};
        list[i] = &turns[i];
    }
    given.whole.turns = list;
    given.whole.n_turns = TURNS;
    given_item (rig, &given);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    uint64_t sent = rig_turns (rig, 0, SUBJECT, 0, 0);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, sent);
    const Taskmq__TurnPage *page = item->reply->turn_page;
    assert_int_equal (page->n_turns, TURNS);
    for (uint32_t i = 0; i < TURNS; i++) {
        assert_int_equal (page->turns[i]->number, infos[i].number);
        assert_int_equal (page->turns[i]->told_at, infos[i].told_at);
        assert_int_equal (page->turns[i]->superseded, infos[i].superseded);
    }
    assert_memory_equal (item->body, "abcde", TURNS);
    infos[3].number = 2;
    given.id = rig_id (OTHER);
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
}

/* A task that waits for an answer. */
static void give_asking (given_t *out, const rig_t *rig, Taskmq__Question questions[2],
                         Taskmq__Question *list[2])
{
    uint64_t now = (uint64_t) rig->now.wall_ms;
    given_fill (out, rig, SUBJECT, TMQ_STATUS_INPUT_REQUIRED);
    for (size_t i = 0; i < 2; i++) {
        questions[i] = (Taskmq__Question) TASKMQ__QUESTION__INIT;
        questions[i].key = (char *) (i == 0 ? "size" : "colour");
        questions[i].request = (char *) "{\"text\":\"?\"}";
        questions[i].asked_at = out->task.created_at;
        questions[i].deadline = now + 60000;
        questions[i].attempt = 2;
        questions[i].worker = (char *) "w";
        list[i] = &questions[i];
    }
    out->whole.questions = list;
    out->whole.n_questions = 2;
}

static size_t open_questions (rig_t *rig)
{
    Taskmq__Inbox all = TASKMQ__INBOX__INIT;
    uint64_t sent = rig_inbox (rig, 0, &all);
    rig_settle (rig);
    const Taskmq__InboxPage *page = rig_reply (rig, 0, sent)->reply->inbox_page;
    if (page->n_questions == 2) { /* in the order in which they came */
        assert_string_equal (page->questions[0]->key, "size");
        assert_string_equal (page->questions[1]->key, "colour");
        assert_string_equal (page->questions[1]->request, "{\"text\":\"?\"}");
        assert_int_equal (page->questions[1]->asked_at, page->questions[0]->asked_at);
        assert_int_equal (page->questions[1]->attempt, 2);
    }
    return page->n_questions;
}

static void give_answer (rig_t *rig, const char *key)
{
    uint64_t sent = rig_answer (rig, 0, SUBJECT, key, "5");
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, sent)->reply->answered->items[0]->code, TMQ_OK);
}

static void questions_come_along (void **state)
{
    rig_t *rig = *state;
    given_t given;
    Taskmq__Question questions[2];
    Taskmq__Question *list[2];
    give_asking (&given, rig, questions, list);
    given.task.ttl_ms = 60000;
    given.task.expires_at = (uint64_t) rig->now.wall_ms - 1; /* it does not expire while it waits */
    assert_int_equal (given_item (rig, &given)->status, TMQ_STATUS_INPUT_REQUIRED);
    assert_int_equal (open_questions (rig), 2);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_true (given_item (rig, &given)->existing);
    assert_int_equal (open_questions (rig), 2);
    is_as_it_was (rig, &given);
    give_answer (rig, "size");
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_INPUT_REQUIRED);
    give_answer (rig, "colour");
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
    rig_link (rig, 1, "default");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_assignment (rig, 1, 0)->assignment->answers, 2);
}

/* Whose time went by on the way is answered by its default, or ends its task. */
static void deadlines_of_questions_count (void **state)
{
    (void) state;
    for (int has_default = 0; has_default < 2; has_default++) {
        rig_t *rig = rig_new ();
        given_t given;
        Taskmq__Question questions[2];
        Taskmq__Question *list[2];
        rig_link (rig, 0, "default");
        give_asking (&given, rig, questions, list);
        given.whole.n_questions = 1;
        questions[0].deadline = questions[0].asked_at + 1;
        questions[0].has_default = has_default;
        questions[0].default_answer = (char *) (has_default ? "7" : "");
        given_item (rig, &given);
        rig_advance (rig, 1000);
        rig_settle (rig);
        assert_int_equal (rig_status (rig, 0, SUBJECT),
                          has_default ? TMQ_STATUS_QUEUED : TMQ_STATUS_FAILED);
        rig_free (rig);
    }
}

static void wrong_questions_are_refused (void **state)
{
    rig_t *rig = *state;
    given_t given;
    Taskmq__Question questions[2];
    Taskmq__Question *list[2];
    give_asking (&given, rig, questions, list);
    given.whole.n_questions = 0; /* nobody is asked */
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    give_asking (&given, rig, questions, list);
    given.task.status = TMQ_STATUS_QUEUED;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    give_asking (&given, rig, questions, list);
    questions[1].key = questions[0].key;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    give_asking (&given, rig, questions, list);
    questions[1].request = (char *) "";
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    give_asking (&given, rig, questions, list);
    questions[1].attempt = 3; /* the task has had 2 */
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    give_asking (&given, rig, questions, list);
    questions[1].asked_at += 48ULL * 3600 * 1000;
    questions[1].deadline = questions[1].asked_at + 1;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    give_asking (&given, rig, questions, list);
    given_item (rig, &given);
}

static void it_may_come_in_pieces (void **state)
{
    enum { PIECE = 100, RESULT = 350 };
    uint8_t packed[1024];
    uint8_t result[RESULT];
    rig_t *rig = *state;
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    memset (result, 'r', sizeof (result));
    given.whole.result = (ProtobufCBinaryData){sizeof (result), result};
    size_t length = taskmq__imported_task__get_packed_size (&given.whole);
    assert_in_range (length, 3 * PIECE + 1, sizeof (packed));
    taskmq__imported_task__pack (&given.whole, packed);
    given.import.extra = NULL;
    uint64_t sent = given_send_piece (rig, 0, &given, packed, 0, PIECE, true);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_OK);
    sent = given_send_piece (rig, 0, &given, packed, 2 * PIECE, PIECE, true); /* one is missing */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_CONFLICT);
    uint64_t looked = rig_get (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, looked), TMQ_NOT_FOUND);
    sent = given_send_piece (rig, 0, &given, packed, PIECE, PIECE, true);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_OK);
    rig_link (rig, 0, "default"); /* a new link knows nothing of it */
    sent = given_send_piece (rig, 0, &given, packed, 2 * PIECE, length - 2 * PIECE, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_CONFLICT);
    given_send_piece (rig, 0, &given, packed, 0, 2 * PIECE, true);
    sent = given_send_piece (rig, 0, &given, packed, 2 * PIECE, length - 2 * PIECE, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_OK);
    sent = rig_result (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, sent)->body_bytes, RESULT);
}

/* The answer to a piece of a task of its own for each peer. */
static unsigned piece_of (rig_t *rig, size_t peer, size_t offset)
{
    enum { PIECE = 100 };
    static const uint8_t bytes[3 * PIECE];
    given_t given;
    given_fill (&given, rig, SUBJECT + (unsigned) peer, TMQ_STATUS_COMPLETED);
    given.import.extra = NULL;
    uint64_t sent = given_send_piece (rig, peer, &given, bytes, offset, PIECE, true);
    rig_settle (rig);
    return rig_code (rig, peer, sent);
}

static unsigned first_piece_of (rig_t *rig, size_t peer, const char *identity)
{
    rig->peers[peer].identity = identity;
    rig_link (rig, peer, "default");
    return piece_of (rig, peer, 0);
}

static unsigned second_piece_of (rig_t *rig, size_t peer)
{
    return piece_of (rig, peer, 100);
}

/* Nobody keeps the others from importing large tasks, however long he lives. */
static void places_of_pieces_are_shared (void **state)
{
    static const char *const identities[] = {"uid:1", "uid:2", "uid:3", "uid:4"};
    enum { OF_ONE = 4, ALL = 16, HALF_MS = 30 * 1000 };
    engine_config_t config = ENGINE_CONFIG_INIT;
    (void) state;
    config.heartbeat_ms = HALF_MS; /* no link is silent for too long */
    rig_t *rig = rig_new_with (&config);
    for (size_t i = 0; i < OF_ONE; i++)
        assert_int_equal (first_piece_of (rig, i, identities[0]), TMQ_OK);
    assert_int_equal (first_piece_of (rig, OF_ONE, identities[0]), TMQ_OVERLOADED);
    for (size_t i = OF_ONE; i < ALL; i++)
        assert_int_equal (first_piece_of (rig, i, identities[i / OF_ONE]), TMQ_OK);
    assert_int_equal (first_piece_of (rig, ALL, "uid:5"), TMQ_OVERLOADED);
    rig_advance (rig, HALF_MS);
    assert_int_equal (second_piece_of (rig, 0), TMQ_OK);
    assert_int_equal (first_piece_of (rig, ALL, identities[0]), TMQ_OVERLOADED);
    rig_advance (rig, HALF_MS); /* all but the first stood still for a minute */
    assert_int_equal (first_piece_of (rig, ALL, identities[0]), TMQ_OK);
    assert_int_equal (second_piece_of (rig, 1), TMQ_CONFLICT);
    assert_int_equal (first_piece_of (rig, 1, "uid:5"), TMQ_OK);
    assert_int_equal (second_piece_of (rig, 2), TMQ_CONFLICT); /* the one before it */
    assert_int_equal (second_piece_of (rig, 3), TMQ_OK);
    assert_int_equal (piece_of (rig, 0, 200), TMQ_OK);
    rig_free (rig);
}

static void what_is_wrong_is_said (void **state)
{
    rig_t *rig = *state;
    given_t given;
    uint64_t now = (uint64_t) rig->now.wall_ms;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_WORKING);
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    given.task.finished_at = 0;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    given.task.outcome = TMQ_OUTCOME_NONE;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    given.task.queue = (char *) "a queue";
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    given.task.created_at = given.task.updated_at = now + 2 * 24 * 3600 * 1000;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    given.task.expires_at = now - 1;
    assert_int_equal (given_code (rig, &given), TMQ_EXPIRED);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    uint64_t sent = given_send_piece (rig, 0, &given, (const uint8_t *) "\xff\xff", 0, 2, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_INVALID);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_QUEUED);
    given_item (rig, &given); /* the same, as it has to be */
}

static void who_may_submit_may (void **state)
{
    static const char *const expected[ROLE_CASES_COUNT] = {"y", "d", "d", "d", "y", "y"};
    (void) state;
    for (size_t i = 0; i < ROLE_CASES_COUNT; i++) {
        rig_t *rig = stage_new (&ROLE_CASES[i]);
        given_t given;
        take_role (rig, &ROLE_CASES[i]);
        given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
        unsigned code = given_code (rig, &given);
        if ((code == TMQ_OK) != (expected[i][0] == 'y') || (code != TMQ_OK && code != TMQ_DENIED))
            fail_msg ("%s: %u", ROLE_CASES[i].name, code);
        rig_free (rig);
    }
}

/* Only to its queues, and nothing that is another's. */
static void a_client_brings_its_own (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig->peers[0].identity = "me";
    rig->peers[1].identity = "other";
    rig_access (rig, "me uid:1 client(*/mine)\nother uid:2 client(*)\n");
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_submit (rig, 1, SUBJECT + 1, "mine", "x");
    rig_settle (rig);
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    given.task.queue = (char *) "other";
    assert_int_equal (given_code (rig, &given), TMQ_DENIED);
    given.task.queue = (char *) "mine";
    given.task.owner = (char *) "other";
    given_item (rig, &given);
    assert_string_equal (rig_task (rig, 0, SUBJECT)->owner, "me");
    given_fill (&given, rig, SUBJECT + 1, TMQ_STATUS_COMPLETED);
    given.task.queue = (char *) "mine";
    assert_int_equal (given_code (rig, &given), TMQ_CONFLICT);
    rig_free (rig);
}

static void what_has_ended_counts_as_submitted (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig->peers[0].identity = "me";
    rig_access (rig, "me uid:1 client(*) tasks=1 rate=10/s burst=2\n");
    rig_link (rig, 0, "default");
    given_t given;
    for (unsigned n = 0; n < 2; n++) {
        given_fill (&given, rig, SUBJECT + n, TMQ_STATUS_COMPLETED);
        given_item (rig, &given);
    }
    given_fill (&given, rig, SUBJECT + 2, TMQ_STATUS_COMPLETED);
    assert_int_equal (given_code (rig, &given), TMQ_LIMIT);
    rig_advance (rig, 100);
    given_item (rig, &given);
    rig_free (rig);
}

static void the_owner_is_who_imports (void **state)
{
    rig_t *rig = *state;
    given_t given;
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    given.task.owner = (char *) "somebody";
    given.task.namespace_ = (char *) "elsewhere";
    given_item (rig, &given);
    assert_string_not_equal (rig_task (rig, 0, SUBJECT)->owner, "somebody");
    assert_string_equal (rig_task (rig, 0, SUBJECT)->namespace_, "default");
}

/* Large bodies. */

static uint8_t hash[TMQ_BLOB_HASH_BYTES] = {1, 2, 3};
enum { BLOB_BYTES = 1000000 };

static void give_large (given_t *out, const rig_t *rig, Taskmq__Blob *blob)
{
    taskmq__blob__init (blob);
    blob->hash = (ProtobufCBinaryData){sizeof (hash), hash};
    blob->bytes = BLOB_BYTES;
    given_fill (out, rig, SUBJECT, TMQ_STATUS_COMPLETED);
    out->whole.payload.len = out->whole.result.len = 0;
    out->extra.payload_blob = out->extra.result_blob = blob;
}

static void what_is_large_is_uploaded_first (void **state)
{
    rig_t *rig = *state;
    given_t given;
    Taskmq__Blob blob;
    give_large (&given, rig, &blob);
    assert_int_equal (given_code (rig, &given), TMQ_NO_BLOB);
    given_upload (rig, 0, &blob);
    blob.bytes++;
    assert_int_equal (given_code (rig, &given), TMQ_NO_BLOB);
    blob.bytes--;
    assert_false (given_item (rig, &given)->existing);
    assert_true (given_item (rig, &given)->existing);
    for (int i = 0; i < 2; i++) {
        const Taskmq__Extra *extra = rig_task (rig, 0, SUBJECT)->extra;
        assert_int_equal (extra->payload_blob->bytes, BLOB_BYTES);
        assert_int_equal (extra->result_blob->bytes, BLOB_BYTES);
        assert_memory_equal (extra->result_blob->hash.data, hash, sizeof (hash));
        assert_true (engine_blob_is_needed (rig->engine, hash));
        rig_restart (rig); /* which forgets who uploaded what: a task names it */
        rig_link (rig, 0, "default");
    }
}

/* A hash alone gives nobody the bytes. */
static void a_blob_is_of_who_uploaded_it (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    given_t given;
    Taskmq__Blob blob;
    rig->peers[0].identity = "a";
    rig->peers[1].identity = "b";
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    give_large (&given, rig, &blob);
    given_upload (rig, 1, &blob);
    assert_int_equal (given_code (rig, &given), TMQ_NO_BLOB);
    given_upload (rig, 0, &blob);
    given_item (rig, &given);
    rig_free (rig);
}

static void a_body_is_there_or_a_blob (void **state)
{
    rig_t *rig = *state;
    given_t given;
    Taskmq__Blob blob;
    give_large (&given, rig, &blob);
    given_upload (rig, 0, &blob);
    given.whole.payload.len = 5;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    given.whole.payload.len = 0;
    given.whole.result.len = 4;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    given_fill (&given, rig, SUBJECT, TMQ_STATUS_FAILED);
    given.extra.result_blob = &blob;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
    blob.bytes = TMQ_FRAME_BYTES_MAX;
    given.extra.result_blob = NULL;
    given.extra.payload_blob = &blob;
    assert_int_equal (given_code (rig, &given), TMQ_INVALID);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (it_is_as_it_was),
        TEST (nothing_is_said_before_it_is_durable),
        TEST (it_is_one_event),
        TEST (what_is_here_is_not_changed),
        TEST (what_waits_goes_on),
        TEST (what_failed_can_be_retried),
        TEST (dependencies_are_here),
        TEST (a_parent_may_be_gone),
        TEST (attempts_come_along),
        TEST (old_leases_are_stale),
        TEST (turns_come_along),
        TEST (questions_come_along),
        cmocka_unit_test (deadlines_of_questions_count),
        TEST (wrong_questions_are_refused),
        TEST (it_may_come_in_pieces),
        TEST (places_of_pieces_are_shared),
        TEST (what_is_wrong_is_said),
        cmocka_unit_test (who_may_submit_may),
        cmocka_unit_test (a_client_brings_its_own),
        cmocka_unit_test (what_has_ended_counts_as_submitted),
        TEST (the_owner_is_who_imports),
        TEST (what_is_large_is_uploaded_first),
        cmocka_unit_test (a_blob_is_of_who_uploaded_it),
        TEST (a_body_is_there_or_a_blob),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
