/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the engine decides about logs: who may write and read them, how fast they may grow, and who
 * is told how far they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"

enum { SUBJECT = 1, WORKER = 100, KIB = 1024 };

/* Peer 1 works on the task. */
static const Taskmq__Assignment *take_task (rig_t *rig)
{
    rig_register (rig, 1, WORKER, "q", 10);
    rig_submit (rig, 0, SUBJECT, "q", "");
    rig_settle (rig);
    return rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
}

static unsigned code_of (rig_t *rig, uint64_t request)
{
    rig_outputs (rig);
    return rig_code (rig, 1, request);
}

static unsigned log_code (rig_t *rig, const Taskmq__Assignment *assignment, uint64_t offset,
                          const char *bytes)
{
    return code_of (rig, rig_log (rig, 1, assignment, TMQ_LOG_OUT, offset, bytes));
}

/* Everything that waits for the server is in the files. */
static size_t finish (rig_t *rig)
{
    log_piece_t *piece;
    size_t bytes = 0;
    while ((piece = engine_log_next (rig->engine)) != NULL) {
        bytes += buf_length (piece->bytes);
        engine_log_done (rig->engine, piece);
    }
    return bytes;
}

static char *text_of (size_t length)
{
    char *text = malloc (length + 1);
    memset (text, 'x', length);
    text[length] = '\0';
    return text;
}

static void a_piece_is_taken_at_once (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = take_task (rig);
    uint64_t committed = rig->committed;
    rig_started (rig, 1, assignment);
    uint64_t request = rig_log (rig, 1, assignment, TMQ_LOG_ERR, 7, "said");
    rig_outputs (rig); /* no commit is needed for it */
    assert_int_equal (rig_code (rig, 1, request), TMQ_OK);
    assert_int_equal (rig->committed, committed);
    log_piece_t *piece = engine_log_next (rig->engine);
    assert_non_null (piece);
    assert_null (engine_log_next (rig->engine));
    assert_int_equal (piece->offset, 7);
    assert_int_equal (buf_length (piece->bytes), 4);
    assert_memory_equal (buf_bytes (piece->bytes), "said", 4);
    assert_int_equal (piece->key.stream, TMQ_LOG_ERR);
    assert_int_equal (piece->key.attempt, 1);
    assert_string_equal (piece->key.ns, "default");
    tmq_id_t id = rig_id (SUBJECT);
    assert_memory_equal (&piece->key.id, &id, sizeof (id));
    assert_int_equal (piece->key.number, rig->rows[1]->number);
    engine_log_done (rig->engine, piece);
}

static void only_the_holder_of_the_lease_writes (void **state)
{
    rig_t *rig = *state;
    Taskmq__Assignment wrong = *take_task (rig);
    const Taskmq__Assignment right = wrong;
    uint8_t secret[16] = {0};
    wrong.secret.data = secret;
    assert_int_equal (log_code (rig, &right, 0, "mine"), TMQ_OK);
    rig_settle (rig);
    uint64_t request = rig_log (rig, 1, &wrong, TMQ_LOG_OUT, 0, "not mine");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_STALE_LEASE);
    wrong = right;
    wrong.attempt = 2;
    request = rig_log (rig, 1, &wrong, TMQ_LOG_OUT, 0, "too early");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_STALE_LEASE);
    rig_complete (rig, 1, &right, "");
    rig_settle (rig);
    request = rig_log (rig, 1, &right, TMQ_LOG_OUT, 4, "too late");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_STALE_LEASE);
    assert_int_equal (finish (rig), 4);
}

static void a_cancelled_program_says_why_it_ends (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = take_task (rig);
    rig_started (rig, 1, assignment);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_int_equal (log_code (rig, assignment, 0, "stopping"), TMQ_OK);
    assert_int_equal (finish (rig), 8);
    rig_cancel_ack (rig, 1, assignment);
    rig_settle (rig);
    uint64_t request = rig_log (rig, 1, assignment, TMQ_LOG_OUT, 8, "more");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_STALE_LEASE);
}

static void who_writes_too_fast_waits (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = take_task (rig);
    char *piece = text_of (64 * KIB);
    uint64_t offset = 0;
    unsigned code = TMQ_OK;
    uint64_t request = 0;
    while (code == TMQ_OK) {
        request = rig_log (rig, 1, assignment, TMQ_LOG_OUT, offset, piece);
        code = code_of (rig, request);
        offset += code == TMQ_OK ? 64 * KIB : 0;
        finish (rig);
    }
    assert_int_equal (code, TMQ_LIMIT);
    assert_in_range (offset, rig->config.log_rate, rig->config.log_rate + 64 * KIB);
    const Taskmq__Reply *reply = rig_reply (rig, 1, request)->reply;
    assert_in_range (reply->retry_after_ms, 1, 1000);
    assert_non_null (strstr (reply->text, "1048576"));
    assert_int_equal (finish (rig), 0);

    /* Nothing else waits for it. */
    uint64_t push = rig_push (rig, 1, assignment, "still there", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, push), TMQ_OK);

    /* A second later there is room for a second more. */
    uint64_t before = offset;
    for (size_t i = 0; i < 20; i++) {
        rig_advance (rig, 100);
        while (log_code (rig, assignment, offset, piece) == TMQ_OK)
            offset += 64 * KIB;
        finish (rig);
    }
    assert_in_range (offset - before, rig->config.log_rate * 18 / 10,
                     rig->config.log_rate * 22 / 10);
    free (piece);
    uint64_t complete = rig_complete (rig, 1, assignment, "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_OK);
}

static void what_is_not_in_a_file_is_bounded (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.log_bytes_max = log_piece_memory (10);
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    const Taskmq__Assignment *assignment = take_task (rig);
    assert_int_equal (log_code (rig, assignment, 0, "six..."), TMQ_OK);
    uint64_t request = rig_log (rig, 1, assignment, TMQ_LOG_OUT, 6, "six...");
    assert_int_equal (code_of (rig, request), TMQ_LIMIT);
    assert_true (rig_reply (rig, 1, request)->reply->retry_after_ms > 0);
    log_piece_t *piece = engine_log_next (rig->engine); /* with the server it counts still */
    assert_int_equal (log_code (rig, assignment, 6, "six..."), TMQ_LIMIT);
    engine_log_done (rig->engine, piece);
    assert_int_equal (log_code (rig, assignment, 6, "six..."), TMQ_OK);
    assert_int_equal (finish (rig), 6);
    rig_free (rig);
}

/* A byte costs what a piece of one byte takes. */
static void small_pieces_are_bounded_by_their_memory (void **state)
{
    enum { ROOM = 100 };
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.log_bytes_max = ROOM * sizeof (log_piece_t);
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    const Taskmq__Assignment *assignment = take_task (rig);
    unsigned taken = 0;
    while (taken <= ROOM && log_code (rig, assignment, taken, "x") == TMQ_OK)
        taken++;
    assert_in_range (taken, ROOM / 4, ROOM);
    assert_int_equal (finish (rig), taken);
    rig_free (rig);
}

static void subscribe (rig_t *rig, uint64_t number, bool logs)
{
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = number;
    subscribe.from_now = true;
    subscribe.logs = logs;
    rig_subscribe_as (rig, 0, &subscribe);
    rig_settle (rig);
}

static const Taskmq__Notice *newest_notice (const rig_t *rig, uint64_t subscription, size_t *count)
{
    const Taskmq__Notice *newest = NULL;
    *count = 0;
    for (size_t i = 0; i < rig->peers[0].count; i++) {
        const Taskmq__Notice *notice = rig->peers[0].items[i].notice;
        if (notice == NULL || notice->subscription != subscription)
            continue;
        newest = notice;
        (*count)++;
    }
    return newest;
}

static void who_follows_is_told_how_far_it_is (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = take_task (rig);
    size_t count;
    subscribe (rig, 7, true);
    subscribe (rig, 8, false);
    rig_log (rig, 1, assignment, TMQ_LOG_OUT, 0, "out");
    rig_log (rig, 1, assignment, TMQ_LOG_ERR, 0, "error");
    rig_settle (rig);
    const Taskmq__Notice *notice = newest_notice (rig, 7, &count);
    assert_int_equal (count, 1); /* of both */
    assert_int_equal (notice->attempt, 1);
    assert_null (notice->progress);
    assert_int_equal (notice->log->out, 3);
    assert_int_equal (notice->log->err, 5);
    rig_log (rig, 1, assignment, TMQ_LOG_OUT, 0, "out"); /* a repeat is no news */
    rig_settle (rig);
    newest_notice (rig, 7, &count);
    assert_int_equal (count, 1);
    rig_log (rig, 1, assignment, TMQ_LOG_OUT, 10, "gap");
    rig_settle (rig);
    assert_int_equal (newest_notice (rig, 7, &count)->log->out, 13);
    newest_notice (rig, 8, &count);
    assert_int_equal (count, 0);
    finish (rig);

    /* A second attempt begins two new streams. */
    rig_release (rig, 1, assignment, true);
    rig_settle (rig);
    assignment = rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
    assert_int_equal (assignment->attempt, 2);
    rig_log (rig, 1, assignment, TMQ_LOG_ERR, 0, "x");
    rig_settle (rig);
    notice = newest_notice (rig, 7, &count);
    assert_int_equal (notice->attempt, 2);
    assert_int_equal (notice->log->out, 0);
    assert_int_equal (notice->log->err, 1);
    rig_unsubscribe (rig, 0, 7);
    rig_log (rig, 1, assignment, TMQ_LOG_ERR, 1, "x");
    rig_settle (rig);
    assert_int_equal (newest_notice (rig, 7, &count)->log->err, 1);
    finish (rig);
}

static void a_read_names_the_task_to_the_server (void **state)
{
    rig_t *rig = *state;
    take_task (rig);
    uint64_t request = rig_read_log (rig, 0, SUBJECT);
    rig_settle (rig);
    errand_t *errand = engine_errand_next (rig->engine);
    assert_non_null (errand);
    assert_int_equal (errand->op, TASKMQ__REQUEST__OP_READ_LOG);
    assert_int_equal (errand->task_number, rig->rows[1]->number);
    assert_string_equal (errand->ns, "default");
    engine_errand_done (rig->engine, errand, rig->now);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    request = rig_read_log (rig, 0, SUBJECT + 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_NOT_FOUND);
    assert_null (engine_errand_next (rig->engine));
}

static void a_reset_keeps_what_is_with_the_server (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = take_task (rig);
    assert_int_equal (log_code (rig, assignment, 0, "given"), TMQ_OK);
    log_piece_t *piece = engine_log_next (rig->engine);
    assert_int_equal (log_code (rig, assignment, 5, "waits"), TMQ_OK);
    rig_fail_commit (rig);
    engine_log_done (rig->engine, piece);
    assert_int_equal (finish (rig), 5);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (a_piece_is_taken_at_once),
        TEST (only_the_holder_of_the_lease_writes),
        TEST (a_cancelled_program_says_why_it_ends),
        TEST (who_writes_too_fast_waits),
        cmocka_unit_test (what_is_not_in_a_file_is_bounded),
        cmocka_unit_test (small_pieces_are_bounded_by_their_memory),
        TEST (who_follows_is_told_how_far_it_is),
        TEST (a_read_names_the_task_to_the_server),
        TEST (a_reset_keeps_what_is_with_the_server),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
