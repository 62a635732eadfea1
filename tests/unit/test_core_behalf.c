/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a gateway does for owners that it names: whose it is, who pays, who is told. What they may
 * do is in test_core_rights.c. */
#include <string.h>

#include "core_rig.h"

enum { GATEWAY = 0, BOSS = 1 };

static const char ACCESS[] = "gw uid:1 gateway(*) tasks=2 reads=1/s\n"
                             "boss uid:2 operator\n";

/* access NULL: everybody may do everything. */
static rig_t *stage_new (const char *access)
{
    rig_t *rig = rig_new ();
    rig->peers[GATEWAY].identity = access == NULL ? "uid:0" : "gw";
    rig->peers[BOSS].identity = access == NULL ? "uid:2" : "boss";
    rig_access (rig, access);
    rig_link (rig, GATEWAY, "default");
    rig_link (rig, BOSS, "default");
    return rig;
}

static const Taskmq__SubmittedItem *submit (rig_t *rig, const char *owner, unsigned n,
                                            const char *key)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) "q";
    spec.dedup_key = (char *) key;
    rig->owner = owner;
    rig_use_request_id (n);
    uint64_t request = rig_submit_spec (rig, GATEWAY, n, &spec, "payload");
    rig_settle (rig);
    return rig_reply (rig, GATEWAY, request)->reply->submitted->items[0];
}

static const Taskmq__TaskPage *list (rig_t *rig, size_t peer, Taskmq__Filter *filter)
{
    uint64_t request = rig_list (rig, peer, filter, (ProtobufCBinaryData){0}, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, peer, request), TMQ_OK);
    return rig_reply (rig, peer, request)->reply->page;
}

static bool is_task (const ProtobufCBinaryData *id, unsigned n)
{
    tmq_id_t wanted = rig_id (n);
    return memcmp (id->data, wanted.bytes, sizeof (wanted)) == 0;
}

/* … also where nobody has rights because there is no access file. */
static void each_owner_has_a_world_of_his_own (void **state)
{
    (void) state;
    const char *const policies[] = {ACCESS, NULL};
    for (size_t i = 0; i < 2; i++) {
        rig_t *rig = stage_new (policies[i]);
        const char *whose = policies[i] == NULL ? "uid:0/ann" : "gw/ann";
        assert_int_equal (submit (rig, "ann", 1, "key")->code, TMQ_OK);
        assert_int_equal (submit (rig, "ben", 2, "key")->code, TMQ_OK); /* keys are his own */
        assert_false (submit (rig, "ben", 2, "key")->existing == 0);
        assert_int_equal (submit (rig, "ben", 1, "")->code, TMQ_CONFLICT);
        assert_string_equal (rig_task (rig, BOSS, 1)->owner, whose);
        rig->owner = "ben";
        uint64_t get = rig_get (rig, GATEWAY, 1);
        uint64_t wait = rig_wait (rig, GATEWAY, 1, 2, 0);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, GATEWAY, get), TMQ_NOT_FOUND);
        const Taskmq__Waited *waited = rig_reply (rig, GATEWAY, wait)->reply->waited;
        assert_int_equal (waited->n_items, 1); /* his own has not ended */
        assert_int_equal (waited->items[0]->code, TMQ_NOT_FOUND);
        const Taskmq__TaskPage *page = list (rig, GATEWAY, NULL);
        assert_int_equal (page->n_tasks, 1);
        assert_true (is_task (&page->tasks[0]->task_id, 2));
        rig_free (rig);
    }
}

static void owners_are_a_filter (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    char *owners[] = {(char *) "gw/ann", (char *) "gw/cid"};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    submit (rig, "ann", 1, "");
    submit (rig, "ben", 2, "");
    submit (rig, "cid", 3, "");
    filter.owners = owners;
    filter.n_owners = 2;
    const Taskmq__TaskPage *page = list (rig, BOSS, &filter);
    assert_int_equal (page->n_tasks, 2);
    assert_true (is_task (&page->tasks[0]->task_id, 3));
    assert_true (is_task (&page->tasks[1]->task_id, 1));
    assert_int_equal (list (rig, BOSS, NULL)->n_tasks, 3);
    rig_free (rig);
}

/* Tasks and reads are each owner's, as if it were on a line of his own. */
static void each_owner_has_the_quotas_of_the_line (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    for (unsigned n = 1; n <= 2; n++)
        assert_int_equal (submit (rig, "ann", n, "")->code, TMQ_OK);
    const Taskmq__SubmittedItem *refused = submit (rig, "ann", 3, "");
    assert_int_equal (refused->code, TMQ_LIMIT);
    assert_non_null (strstr (refused->text, "live tasks of gw/ann: 2"));
    assert_int_equal (submit (rig, "ben", 4, "")->code, TMQ_OK);
    rig->owner = "ann";
    for (unsigned i = 0; i < 4; i++)
        list (rig, GATEWAY, NULL);
    uint64_t late = rig_list (rig, GATEWAY, NULL, (ProtobufCBinaryData){0}, 0);
    rig->owner = "ben";
    uint64_t other = rig_list (rig, GATEWAY, NULL, (ProtobufCBinaryData){0}, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, GATEWAY, late), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, GATEWAY, other), TMQ_OK);
    rig_restart (rig); /* what is live is counted again */
    rig_link (rig, GATEWAY, "default");
    assert_int_equal (submit (rig, "ann", 5, "")->code, TMQ_LIMIT);
    assert_int_equal (submit (rig, "ben", 6, "")->code, TMQ_OK);
    rig_free (rig);
}

/* Events and the snapshot of the subscription: those of this task, and no others. */
static void assert_told (const rig_t *rig, uint64_t subscription, unsigned n)
{
    size_t events = 0;
    size_t tasks = 0;
    for (size_t i = 0; i < rig->peers[GATEWAY].count; i++) {
        const rig_item_t *item = &rig->peers[GATEWAY].items[i];
        bool mine = item->list != NULL && item->events->subscription == subscription;
        for (size_t k = 0; mine && k < item->list->n_events; k++, events++)
            assert_true (is_task (&item->list->events[k]->task_id, n));
        mine = item->snapshot != NULL && item->snapshot->subscription == subscription;
        for (size_t k = 0; mine && k < item->snapshot->n_tasks; k++, tasks++) {
            assert_true (is_task (&item->snapshot->tasks[k]->task_id, n));
            assert_string_equal (item->snapshot->tasks[k]->meta, "{\"his\":1}");
        }
    }
    assert_int_equal (tasks, 1);
    assert_true (events > 0);
}

static void a_subscription_tells_of_its_owner_alone (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    const char *const owners[] = {"ann", "ben"};
    for (unsigned n = 1; n <= 2; n++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
        spec.queue = (char *) "q";
        spec.meta = (char *) "{\"his\":1}";
        rig->owner = owners[n - 1];
        rig_submit_spec (rig, GATEWAY, n, &spec, "");
        rig_settle (rig);
        subscribe.subscription = n;
        subscribe.snapshot = true;
        rig_subscribe_as (rig, GATEWAY, &subscribe);
        rig_settle (rig);
    }
    rig->owner = NULL;
    rig_cancel (rig, BOSS, 1);
    rig_cancel (rig, BOSS, 2);
    rig_settle (rig);
    assert_told (rig, 1, 1);
    assert_told (rig, 2, 2);
    rig_free (rig);
}

static void both_names_stand_in_events_and_deeds (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    deed_t deed;
    submit (rig, "ann", 1, "");
    rig_cancel (rig, GATEWAY, 1);
    rig_settle (rig);
    uint64_t history = rig_history (rig, BOSS, 1);
    rig_settle (rig);
    const Taskmq__EventList *events = rig_reply (rig, BOSS, history)->reply->event_page->list;
    assert_int_equal (events->n_events, 2);
    for (size_t i = 0; i < events->n_events; i++)
        assert_string_equal (events->events[i]->actor, "gw/ann");
    for (unsigned n = 2; n <= 4; n++)
        submit (rig, "ann", n, "");
    assert_true (engine_deed_next (rig->engine, &deed));
    assert_int_equal (deed.kind, DEED_QUOTA);
    assert_string_equal (deed.identity, "gw/ann");
    rig_free (rig);
}

/* What no owner is asked for a gateway sees nothing of, but that its queues are there. */
static void a_gateway_alone_sees_no_task (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    submit (rig, "ann", 1, "");
    rig->owner = NULL;
    uint64_t denied[] = {rig_get (rig, GATEWAY, 1), rig_cancel (rig, GATEWAY, 1),
                         rig_submit (rig, GATEWAY, 2, "q", ""),
                         rig_list (rig, GATEWAY, NULL, (ProtobufCBinaryData){0}, 0),
                         rig_subscribe (rig, GATEWAY, 1, 0)};
    uint64_t stats = rig_stats (rig, GATEWAY);
    rig_settle (rig);
    for (size_t i = 0; i < sizeof (denied) / sizeof (denied[0]); i++)
        assert_int_equal (rig_code (rig, GATEWAY, denied[i]), TMQ_DENIED);
    assert_int_equal (rig_reply (rig, GATEWAY, stats)->reply->stats->n_queues, 1);
    rig_free (rig);
}

/* Nobody is made by a name alone. */
static void a_lost_grant_counts_at_once (void **state)
{
    (void) state;
    rig_t *rig = stage_new (ACCESS);
    submit (rig, "ann", 1, "");
    rig_access (rig, "gw uid:1 client(*)\nboss uid:2 operator\n");
    rig_settle (rig);
    rig_link (rig, GATEWAY, "default");
    uint64_t get = rig_get (rig, GATEWAY, 1);
    rig->owner = NULL;
    uint64_t own = rig_get (rig, GATEWAY, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, GATEWAY, get), TMQ_DENIED);
    assert_int_equal (rig_code (rig, GATEWAY, own), TMQ_NOT_FOUND); /* they are not the line's */
    rig_access (rig, "gw uid:1 client(*) owns=gw/ann\nboss uid:2 operator\n");
    rig_settle (rig);
    rig_link (rig, GATEWAY, "default");
    own = rig_get (rig, GATEWAY, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, GATEWAY, own), TMQ_OK);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (each_owner_has_a_world_of_his_own),
        cmocka_unit_test (owners_are_a_filter),
        cmocka_unit_test (each_owner_has_the_quotas_of_the_line),
        cmocka_unit_test (a_subscription_tells_of_its_owner_alone),
        cmocka_unit_test (both_names_stand_in_events_and_deeds),
        cmocka_unit_test (a_gateway_alone_sees_no_task),
        cmocka_unit_test (a_lost_grant_counts_at_once),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
