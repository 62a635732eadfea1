/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is not used costs nothing: the life of a plain task is some images of one record and three
 * events in the journal, and not a byte beside them, whatever other tasks of the broker use. */
#include "core_rig.h"
#include "store/journal/journal_codec.h"

enum { LIVES = 20, LIFE_BYTES_MAX = 750, WIDER = 8 /* of numbers that have grown */ };

/* What became durable of some lives. */
typedef struct cost {
    size_t batches;
    size_t bytes;
    size_t records;
    size_t with_extra;
    size_t attempts;
    size_t rows;
    size_t events;
} cost_t;

static void add_batch (cost_t *out, const batch_t *batch)
{
    bytes_t body = BYTES_INIT;
    journal_encode (&body, &(journal_head_t){0}, batch);
    out->batches++;
    out->bytes += body.length;
    out->records += batch->records_count;
    out->attempts += batch->attempts_count;
    out->rows += batch->rows_count;
    for (size_t i = 0; i < batch->records_count; i++)
        out->with_extra += batch->records[i]->extra != NULL;
    for (size_t i = 0; i < batch->blocks_count; i++)
        out->events += batch->blocks[i].count;
    bytes_free (&body);
}

/* A broker with a worker at queue q. */
static rig_t *broker_new (void)
{
    rig_t *rig = rig_new ();
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register (rig, 1, 1000, "q", 1);
    rig_settle (rig);
    return rig;
}

/* One task after the other, each with a commit of its own for what happens to it. */
static cost_t lives (rig_t *rig, unsigned first, Taskmq__TaskSpec *spec)
{
    uint64_t from = rig->committed;
    cost_t cost = {0};
    for (unsigned n = first; n < first + LIVES; n++) {
        size_t given = rig_assignments (rig, 1);
        Taskmq__TaskSpec task = *spec;
        rig_submit_spec (rig, 0, n, &task, "payload");
        rig_settle (rig);
        rig_complete (rig, 1, rig_assignment (rig, 1, given)->assignment, "result");
        rig_settle (rig);
        rig_worker_credit (rig, 1, 1000, given + 1, 1);
        assert_int_equal (rig_status (rig, 0, n), TMQ_STATUS_COMPLETED);
    }
    for (uint64_t no = from + 1; no <= rig->committed; no++)
        if (rig->batches[no] != NULL)
            add_batch (&cost, rig->batches[no]);
    return cost;
}

static cost_t plain_lives (rig_t *rig, unsigned first)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) "q";
    return lives (rig, first, &spec);
}

static void a_plain_life_is_its_record_and_its_events (void **state)
{
    (void) state;
    rig_t *rig = broker_new ();
    cost_t cost = plain_lives (rig, 1);
    assert_int_equal (cost.rows, 0);
    assert_int_equal (cost.attempts, 0);
    assert_int_equal (cost.with_extra, 0);
    assert_int_equal (cost.events, 3 * LIVES);  /* submitted, claimed, completed */
    assert_int_equal (cost.records, 2 * LIVES); /* submit and claim are one image */
    assert_int_equal (cost.batches, 2 * LIVES);
    assert_in_range (cost.bytes / LIVES, 1, LIFE_BYTES_MAX);
    rig_free (rig);
}

/* A queue with settings, a session, a task that requires what nobody has, one that waits for it. */
static void use_features (rig_t *rig)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *needs[] = {&label};
    Taskmq__Dependency dependency = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *after[] = {&dependency};
    tmq_id_t first = rig_id (9000);
    label.key = label.value = (char *) "gpu";
    extra.needs = needs;
    extra.n_needs = 1;
    extra.fair_key = (char *) "tenant";
    spec.queue = (char *) "elsewhere";
    spec.session = (char *) "trip";
    spec.extra = &extra;
    rig_submit_spec (rig, 0, 9000, &spec, "");
    rig_settle (rig);
    extra.n_needs = 0;
    dependency.task_id = (ProtobufCBinaryData){sizeof (first), first.bytes};
    extra.after = after;
    extra.n_after = 1;
    rig_submit_spec (rig, 0, 9001, &spec, "");
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    Taskmq__QueueSet set = TASKMQ__QUEUE_SET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint32_t field = TMQ_QUEUE_FIELD_MAX_PER_KEY;
    uint8_t id[16] = {1};
    settings.max_per_key = 1;
    set.queue = (char *) "elsewhere";
    set.settings = &settings;
    set.fields = &field;
    set.n_fields = 1;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &set;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    uint64_t number = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, number), TMQ_OK);
}

static void what_others_use_costs_a_plain_life_nothing (void **state)
{
    (void) state;
    rig_t *bare = broker_new ();
    rig_t *rich = broker_new ();
    use_features (rich);
    cost_t without = plain_lives (bare, 1);
    cost_t beside = plain_lives (rich, 1);
    assert_int_equal (beside.rows, 0);
    assert_int_equal (beside.with_extra, 0);
    assert_int_equal (beside.records, without.records);
    assert_int_equal (beside.events, without.events);
    assert_int_equal (beside.batches, without.batches);
    assert_in_range (beside.bytes, without.bytes, without.bytes + LIVES * WIDER);
    rig_free (bare);
    rig_free (rich);
}

/* Who uses something pays for that: so the count sees it. */
static void a_fair_key_is_paid_for_by_its_task (void **state)
{
    (void) state;
    rig_t *rig = broker_new ();
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    extra.fair_key = (char *) "tenant";
    spec.queue = (char *) "q";
    spec.extra = &extra;
    cost_t plain = plain_lives (rig, 1);
    cost_t fair = lives (rig, 100, &spec);
    assert_int_equal (fair.with_extra, fair.records);
    assert_int_equal (fair.rows, 0);
    assert_in_range (fair.bytes, plain.bytes + 2 * LIVES * sizeof ("tenant"),
                     plain.bytes + 2 * LIVES * 2 * sizeof ("tenant") + LIVES * WIDER);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_plain_life_is_its_record_and_its_events),
        cmocka_unit_test (what_others_use_costs_a_plain_life_nothing),
        cmocka_unit_test (a_fair_key_is_paid_for_by_its_task),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
