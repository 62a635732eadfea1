/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the engine tells for the record of deeds. */
#include <string.h>

#include "core_rig.h"

enum { ME = 0, ADMIN = 1, OTHER = 2, ROOT = 3, LEASE_MS = 30000 };

static const char ACCESS[] = "me uid:1 client(*) worker(*) tasks=100\n"
                             "admin uid:2 admin(*)\n"
                             "other uid:3 client(*) reader(*)\n";

static rig_t *stage_new (const char *access)
{
    rig_t *rig = rig_new ();
    rig->peers[ME].identity = "me";
    rig->peers[ADMIN].identity = "admin";
    rig->peers[OTHER].identity = "other";
    rig_access (rig, access);
    for (size_t peer = ME; peer <= ROOT; peer++)
        rig_link (rig, peer, "default");
    rig_use_request_id (1);
    rig_submit (rig, ME, 1, "q", "12345678");
    rig_settle (rig);
    return rig;
}

static deed_t next (rig_t *rig)
{
    deed_t deed;
    rig_settle (rig);
    assert_true (engine_deed_next (rig->engine, &deed));
    return deed;
}

static void assert_none (rig_t *rig)
{
    deed_t deed;
    rig_settle (rig);
    assert_false (engine_deed_next (rig->engine, &deed));
}

static void assert_task (const deed_t *deed, deed_kind_t kind, const char *who, const char *request)
{
    tmq_id_t id = rig_id (1);
    assert_int_equal (deed->kind, kind);
    assert_string_equal (deed->identity, who);
    assert_string_equal (deed->ns, "default");
    assert_string_equal (deed->request, request);
    assert_string_equal (deed->text, "me");
    assert_memory_equal (deed->task.bytes, id.bytes, sizeof (id));
}

static void reading_and_ending_what_is_anothers_is_told (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    rig_get (rig, ADMIN, 1); /* it carries no result yet */
    assert_none (rig);
    rig_payload (rig, ADMIN, 1);
    deed_t deed = next (rig);
    assert_task (&deed, DEED_READ, "admin", "payload");
    rig_payload (rig, ROOT, 1);
    deed = next (rig);
    assert_int_equal (deed.kind, DEED_READ);
    rig_cancel (rig, ADMIN, 1);
    deed = next (rig);
    assert_task (&deed, DEED_CANCEL, "admin", "cancel");
    rig_cancel (rig, ADMIN, 1); /* it has ended already */
    assert_none (rig);
    rig_free (rig);
}

/* Each as what it is, once it was done. */
static void changing_what_is_anothers_is_told (void **state)
{
    (void) state;
    enum { RETRY = TASKMQ__REQUEST__OP_RETRY, RESUME = TASKMQ__REQUEST__OP_RESUME };
    rig_t *rig = stage_new (ACCESS);
    Taskmq__Set set = TASKMQ__SET__INIT;
    set.priority_plus_1 = 5;
    rig_set (rig, ADMIN, 1, &set);
    deed_t deed = next (rig);
    assert_task (&deed, DEED_SET, "admin", "set");
    rig_change (rig, ADMIN, RETRY, 1, 1); /* it has not ended */
    rig_change (rig, ADMIN, TASKMQ__REQUEST__OP_PURGE, 1, 1);
    assert_none (rig);
    rig_cancel (rig, ME, 1);
    rig_use_request_id (2);
    rig_change (rig, ADMIN, RETRY, 1, 1);
    deed = next (rig);
    assert_task (&deed, DEED_RETRY, "admin", "retry");
    rig_change (rig, ADMIN, RETRY, 1, 1); /* the same one again */
    assert_none (rig);
    rig_use_request_id (3);
    rig_cancel (rig, ME, 1);
    rig_use_request_id (4);
    rig_change (rig, ADMIN, RESUME, 1, 1);
    deed = next (rig);
    assert_task (&deed, DEED_RETRY, "admin", "resume");
    rig_use_request_id (5);
    rig_cancel (rig, ME, 1);
    rig_change (rig, ADMIN, TASKMQ__REQUEST__OP_PURGE, 1, 1);
    deed = next (rig);
    assert_task (&deed, DEED_PURGE, "admin", "purge");
    rig_free (rig);
}

static void adopt (rig_t *rig, unsigned n, uint32_t attempt)
{
    Taskmq__Adopt adopting = TASKMQ__ADOPT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    uint8_t request_id[16] = {9};
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.op_case = TASKMQ__REQUEST__OP_ADOPT;
    request.adopt = &adopting;
    adopting.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    adopting.attempt = attempt;
    rig_send (rig, ADMIN, &request, NULL, 0);
}

static void drain (rig_t *rig)
{
    Taskmq__WorkerDrain draining = TASKMQ__WORKER_DRAIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    draining.name = (char *) "w";
    request.op_case = TASKMQ__REQUEST__OP_WORKER_DRAIN;
    request.worker_drain = &draining;
    rig_send (rig, ADMIN, &request, NULL, 0);
}

/* A question, the log and the late success of another's task, and a worker. */
static void what_a_worker_did_for_another_is_told (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    rig_register (rig, ME, 1, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, ME, 0)->assignment;
    rig_started (rig, ME, assignment);
    rig_ask (rig, ME, assignment, "colour", "{}");
    assert_none (rig);
    rig_answer (rig, ADMIN, 1, "shape", "1"); /* there is no such question */
    assert_none (rig);
    rig_answer (rig, ADMIN, 1, "colour", "\"red\"");
    deed_t deed = next (rig);
    assert_task (&deed, DEED_ANSWER, "admin", "answer");
    rig_read_log (rig, ADMIN, 1);
    deed = next (rig);
    assert_task (&deed, DEED_READ, "admin", "read_log");
    rig_read_log (rig, ME, 1);
    assert_none (rig);
    rig_worker_credit (rig, ME, 1, 1, 0);
    rig_advance (rig, LEASE_MS + 1000);
    rig_complete (rig, ME, assignment, "late");
    assert_none (rig);
    adopt (rig, 1, 1);
    deed = next (rig);
    assert_task (&deed, DEED_ADOPT, "admin", "adopt");
    drain (rig);
    deed = next (rig);
    assert_int_equal (deed.kind, DEED_WORKER);
    assert_string_equal (deed.request, "worker_drain");
    assert_string_equal (deed.text, "w");
    drain (rig); /* it is drained */
    assert_none (rig);
    rig_free (rig);
}

static void what_is_ones_own_or_a_readers_is_not_told (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    rig_payload (rig, ME, 1);
    rig_payload (rig, OTHER, 1); /* it was granted for that */
    rig_cancel (rig, ME, 1);
    assert_none (rig);
    rig_free (rig);
    rig = stage_new (NULL);
    rig_payload (rig, ADMIN, 1);
    rig_cancel (rig, ADMIN, 1);
    assert_none (rig);
    rig_free (rig);
}

static void what_is_denied_is_told (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    rig_register (rig, OTHER, 1, "q", 1);
    deed_t deed = next (rig);
    assert_int_equal (deed.kind, DEED_DENIED);
    assert_string_equal (deed.identity, "other");
    assert_string_equal (deed.request, "register");
    assert_none (rig);
    rig_free (rig);
}

static void a_quota_that_is_met_is_told (void **state)
{
    (void) state;
    rig_t *rig =
        stage_new ("me uid:1 client(*) tasks=1\nadmin uid:2 admin(*)\nother uid:3 client(*)\n");
    assert_none (rig);
    rig_submit (rig, ME, 2, "q", "");
    deed_t deed = next (rig);
    assert_int_equal (deed.kind, DEED_QUOTA);
    assert_string_equal (deed.identity, "me");
    assert_string_equal (deed.ns, "default");
    assert_string_equal (deed.text, "live tasks of me: 1, as many as it may have");
    assert_none (rig);
    rig_free (rig);
}

/* Refusals fill their own places only, and no cancellation is lost without a word. */
static void there_are_places_for_cancellations (void **state)
{
    (void) state;
    enum { REFUSED = 3 * DEEDS_SAMPLED_MAX, CANCELLED = DEEDS_MAX };
    deed_t deed;
    rig_t *rig = stage_new (ACCESS);
    for (unsigned n = 2; n <= CANCELLED; n++)
        rig_submit (rig, ME, n, "q", "");
    rig_settle (rig);
    for (unsigned i = 0; i < REFUSED; i++)
        rig_register (rig, OTHER, 1, "q", 1);
    for (unsigned n = 1; n <= CANCELLED; n++)
        rig_cancel (rig, ADMIN, n);
    rig_settle (rig);
    for (size_t i = 0; i < DEEDS_MAX; i++) {
        assert_true (engine_deed_next (rig->engine, &deed));
        assert_int_equal (deed.kind, i < DEEDS_SAMPLED_MAX ? DEED_DENIED : DEED_CANCEL);
    }
    assert_true (engine_deed_next (rig->engine, &deed));
    assert_int_equal (deed.kind, DEED_MORE);
    assert_string_equal (deed.text, "16 more at once");
    assert_none (rig);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (reading_and_ending_what_is_anothers_is_told),
        cmocka_unit_test (changing_what_is_anothers_is_told),
        cmocka_unit_test (what_a_worker_did_for_another_is_told),
        cmocka_unit_test (what_is_ones_own_or_a_readers_is_not_told),
        cmocka_unit_test (what_is_denied_is_told),
        cmocka_unit_test (a_quota_that_is_met_is_told),
        cmocka_unit_test (there_are_places_for_cancellations),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
