/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How much a principal may have at once, and in a second. */
#include <stdio.h>
#include <string.h>

#include "core/base/bucket.h"
#include "core/engine/rooms.h"
#include "core/tasks/account.h"
#include "core_rig.h"

enum { ME = 0, OTHER = 1, BOSS = 2 };

/* me may have what options say; other has the defaults. */
static rig_t *stage_new (const char *options)
{
    char text[256];
    rig_t *rig = rig_new ();
    rig->peers[ME].identity = rig->peers[3].identity = rig->peers[4].identity = "me";
    rig->peers[OTHER].identity = "other";
    snprintf (text, sizeof (text),
              "me uid:1 client(*) worker(*) %s\nother uid:2 client(*) worker(*)\n", options);
    rig_access (rig, text);
    rig_link (rig, ME, "default");
    rig_link (rig, OTHER, "default");
    rig_link (rig, BOSS, "default"); /* root owns the files: it has no quota */
    rig_use_request_id (1);
    return rig;
}

static const Taskmq__SubmittedItem *submit_with (rig_t *rig, size_t peer, unsigned n,
                                                 const char *payload)
{
    uint64_t request = rig_submit (rig, peer, n, "q", payload);
    rig_settle (rig);
    return rig_reply (rig, peer, request)->reply->submitted->items[0];
}

static const Taskmq__SubmittedItem *submit (rig_t *rig, size_t peer, unsigned n)
{
    return submit_with (rig, peer, n, "12345678");
}

static void assert_refused (const Taskmq__SubmittedItem *item, const char *says)
{
    assert_int_equal (item->code, TMQ_LIMIT);
    assert_true (item->retry_after_ms > 0);
    if (strstr (item->text, says) == NULL)
        fail_msg ("%s", item->text);
}

static void a_bucket_gives_a_burst_and_then_a_rate (void **state)
{
    (void) state;
    bucket_t bucket = {0};
    for (int i = 0; i < 10; i++)
        assert_int_equal (bucket_take (&bucket, 50, 10, 1000), 0);
    assert_int_equal (bucket_take (&bucket, 50, 10, 1000), 20);
    assert_int_equal (bucket_take (&bucket, 50, 10, 1019), 1);
    assert_int_equal (bucket_take (&bucket, 50, 10, 1020), 0);
    assert_int_equal (bucket_take (&bucket, 50, 10, 1020), 20);
    assert_false (bucket_is_full (&bucket, 1200));
    assert_true (bucket_is_full (&bucket, 1220));
    for (int i = 0; i < 10; i++) /* it does not hold more than its burst, however long it rests */
        assert_int_equal (bucket_take (&bucket, 50, 10, 999999), 0);
    assert_int_equal (bucket_take (&bucket, 50, 10, 999999), 20);
}

static void live_tasks_are_limited (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("tasks=3");
    for (unsigned i = 1; i <= 3; i++)
        assert_int_equal (submit (rig, ME, i)->code, TMQ_OK);
    assert_refused (submit (rig, ME, 4), "live tasks of me: 3");
    assert_int_equal (submit (rig, ME, 3)->code, TMQ_OK); /* it is there already */
    assert_int_equal (submit (rig, OTHER, 5)->code, TMQ_OK);
    rig_cancel (rig, ME, 1);
    rig_settle (rig);
    assert_int_equal (submit (rig, ME, 4)->code, TMQ_OK);
    assert_refused (submit (rig, ME, 6), "live tasks");
    rig_free (rig);
}

static void bytes_of_payloads_are_limited (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("bytes=20B");
    assert_int_equal (submit (rig, ME, 1)->code, TMQ_OK);
    assert_int_equal (submit (rig, ME, 2)->code, TMQ_OK);
    assert_refused (submit (rig, ME, 3), "payloads of me: 20");
    rig_cancel (rig, ME, 1);
    rig_settle (rig);
    assert_int_equal (submit (rig, ME, 3)->code, TMQ_OK);
    rig_free (rig);
}

/* The counts are derived from the live tasks, so a restart makes no room. */
static void counts_survive_a_restart (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("tasks=2 leases=1");
    submit (rig, ME, 1);
    submit (rig, ME, 2);
    rig_register (rig, ME, 50, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 1);
    rig_restart (rig);
    rig_link (rig, ME, "default");
    assert_refused (submit (rig, ME, 3), "live tasks of me: 2");
    rig_register (rig, ME, 51, "q", 5); /* another worker: the lease of the first one counts */
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 1);
    rig_free (rig);
}

/* … and so does a failed commit, after which everything is read again. */
static void counts_survive_a_failed_commit (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("tasks=2");
    submit (rig, ME, 1);
    rig_submit (rig, ME, 2, "q", "lost");
    rig_fail_commit (rig);
    rig_link (rig, ME, "default");
    assert_int_equal (submit (rig, ME, 3)->code, TMQ_OK);
    assert_refused (submit (rig, ME, 4), "live tasks");
    rig_free (rig);
}

static void submits_have_a_rate (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("rate=10/s burst=4");
    for (unsigned i = 1; i <= 4; i++)
        assert_int_equal (submit (rig, ME, i)->code, TMQ_OK);
    const Taskmq__SubmittedItem *item = submit (rig, ME, 5);
    assert_refused (item, "tasks a second of me: 10");
    assert_in_range (item->retry_after_ms, 80, 120);
    assert_int_equal (submit (rig, OTHER, 9)->code, TMQ_OK);
    rig_advance (rig, 100);
    assert_int_equal (submit (rig, ME, 5)->code, TMQ_OK);
    assert_refused (submit (rig, ME, 6), "tasks a second");
    rig_free (rig);
}

static unsigned count_code (rig_t *rig, size_t peer)
{
    uint64_t request = rig_count (rig, peer);
    rig_settle (rig);
    return rig_code (rig, peer, request);
}

/* Both ways a changed rate counts at once: what was taken at the old one is a burst at most. */
static void a_changed_rate_counts_at_once (void **state)
{
    (void) state;
    unsigned n = 0;
    rig_t *rig = stage_new ("rate=1/s burst=9 reads=1/s");
    while (n < 9)
        assert_int_equal (submit (rig, ME, ++n)->code, TMQ_OK);
    for (unsigned i = 0; i < ACCOUNT_READS_BURST; i++)
        assert_int_equal (count_code (rig, ME), TMQ_OK);
    assert_int_equal (count_code (rig, ME), TMQ_LIMIT);
    assert_refused (submit (rig, ME, ++n), "tasks a second of me: 1");
    rig_access (rig, "me uid:1 client(*) worker(*) rate=100/s burst=2 reads=100/s\n"
                     "other uid:2 client(*) worker(*)\n");
    rig_link (rig, ME, "default");
    rig_advance (rig, 20);
    assert_int_equal (submit (rig, ME, ++n)->code, TMQ_OK);
    assert_int_equal (submit (rig, ME, ++n)->code, TMQ_OK);
    assert_int_equal (count_code (rig, ME), TMQ_OK);
    const Taskmq__SubmittedItem *item = submit (rig, ME, ++n);
    assert_refused (item, "tasks a second of me: 100");
    assert_true (item->retry_after_ms < 20);
    rig_free (rig);
}

static size_t accounts_count (const rig_t *rig)
{
    const node_t *head = &rig->engine->tasks.accounts;
    size_t count = 0;
    for (const node_t *node = head->next; node != head; node = node->next)
        count++;
    return count;
}

/* Each of a hundred jobs comes, submits, is done and goes, as another principal. */
static void who_left_leaves_no_account (void **state)
{
    (void) state;
    char text[8192] = "other uid:2 client(*)\n";
    char names[100][16];
    for (size_t i = 0; i < 100; i++) {
        snprintf (names[i], sizeof (names[i]), "job-%zu", i);
        snprintf (text + strlen (text), sizeof (text) - strlen (text), "%s uid:%zu client(*)\n",
                  names[i], 1000 + i);
    }
    rig_t *rig = rig_new ();
    rig_access (rig, text);
    for (unsigned i = 0; i < 100; i++) {
        rig->peers[ME].identity = names[i];
        rig_link (rig, ME, "default");
        assert_int_equal (submit (rig, ME, i + 1)->code, TMQ_OK);
        rig_cancel (rig, ME, i + 1);
        rig_settle (rig);
        rig_goodbye (rig, ME);
        rig_settle (rig);
        rig_advance (rig, 10);
    }
    assert_in_range (accounts_count (rig), 1, 4);
    rig_free (rig);
}

/* What waits for the disk: one principal fills its share of the room, if others are here. */
static void fill_the_room (size_t inputs, size_t percent)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.pending_inputs_soft = inputs;
    config.pending_share = percent;
    for (int others = 0; others < 2; others++) {
        rig_t *rig = rig_new_with (&config);
        rig->peers[ME].identity = "me";
        rig->peers[OTHER].identity = "other";
        rig_access (rig, "me uid:1 client(*)\nother uid:2 client(*)\n");
        rig_link (rig, ME, "default");
        if (others == 1)
            rig_link (rig, OTHER, "default");
        rig_settle (rig);
        for (unsigned i = 1; i <= 4; i++)
            rig_submit (rig, ME, i, "q", "");
        rig_take (rig); /* under way to the disk */
        uint64_t fifth = rig_submit (rig, ME, 5, "q", "");
        uint64_t theirs = others == 1 ? rig_submit (rig, OTHER, 6, "q", "") : 0;
        rig_durable (rig);
        rig_settle (rig);
        if (others == 1) {
            assert_int_equal (rig_code (rig, ME, fifth), TMQ_OVERLOADED);
            assert_int_equal (rig_code (rig, OTHER, theirs), TMQ_OK);
            fifth = rig_submit (rig, ME, 5, "q", ""); /* the disk has what it sent */
            rig_settle (rig);
        }
        assert_int_equal (rig_code (rig, ME, fifth), TMQ_OK);
        rig_free (rig);
    }
}

static void nobody_fills_the_room_of_all (void **state)
{
    (void) state;
    fill_the_room (8, ((engine_config_t) ENGINE_CONFIG_INIT).pending_share);
    fill_the_room (16, 25);
    fill_the_room (5, 80);
}

static uint64_t import (rig_t *rig, unsigned n)
{
    static uint8_t request_id[16] = {9};
    uint8_t packed[256];
    tmq_id_t id = rig_id (n);
    Taskmq__Task task = TASKMQ__TASK__INIT;
    Taskmq__ImportedTask whole = TASKMQ__IMPORTED_TASK__INIT;
    Taskmq__Import body = TASKMQ__IMPORT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    task.queue = (char *) "q";
    task.status = TMQ_STATUS_QUEUED;
    task.created_at = task.updated_at = (uint64_t) rig->now.wall_ms;
    task.max_attempts = 1;
    task.version = 1;
    whole.task = &task;
    body.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    body.bytes = (uint32_t) taskmq__imported_task__pack (&whole, packed);
    request.op_case = TASKMQ__REQUEST__OP_IMPORT;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.import = &body;
    request_id[1]++;
    return rig_send (rig, ME, &request, packed, body.bytes);
}

/* What is imported or retried waits for the disk as what is submitted does. */
static void whatever_brings_tasks_fills_the_room (void **state)
{
    (void) state;
    for (int imports = 0; imports < 2; imports++) {
        engine_config_t config = ENGINE_CONFIG_INIT;
        config.pending_inputs_soft = 8;
        rig_t *rig = rig_new_with (&config);
        rig->peers[ME].identity = "me";
        rig->peers[OTHER].identity = "other";
        rig_access (rig, "me uid:1 client(*)\nother uid:2 client(*)\n");
        rig_link (rig, ME, "default");
        rig_link (rig, OTHER, "default");
        for (unsigned i = 1; imports == 0 && i <= 4; i++) {
            rig_submit (rig, ME, i, "q", "");
            rig_settle (rig);
            rig_cancel (rig, ME, i);
            rig_settle (rig);
        }
        for (unsigned i = 1; imports == 1 && i <= 4; i++)
            import (rig, i);
        if (imports == 0)
            rig_change (rig, ME, TASKMQ__REQUEST__OP_RETRY, 1, 4);
        rig_take (rig); /* under way to the disk */
        uint64_t mine = rig_submit (rig, ME, 5, "q", "");
        uint64_t imported = import (rig, 6);
        uint64_t theirs = rig_submit (rig, OTHER, 7, "q", "");
        rig_durable (rig);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, ME, mine), TMQ_OVERLOADED);
        assert_int_equal (rig_code (rig, ME, imported), TMQ_OVERLOADED);
        assert_int_equal (rig_code (rig, OTHER, theirs), TMQ_OK);
        imported = import (rig, 6); /* the disk has what it sent */
        rig_settle (rig);
        assert_int_equal (rig_code (rig, ME, imported), TMQ_OK);
        for (unsigned i = 1; i <= 4; i++)
            assert_int_equal (rig_status (rig, ME, i), TMQ_STATUS_QUEUED);
        rig_free (rig);
    }
}

static void reads_have_a_rate (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("reads=2/s");
    for (int i = 0; i < 8; i++)
        assert_int_equal (count_code (rig, ME), TMQ_OK);
    uint64_t count = rig_count (rig, ME);
    uint64_t stats = rig_stats (rig, ME);
    Taskmq__ScheduleList all = TASKMQ__SCHEDULE_LIST__INIT;
    Taskmq__Request list = TASKMQ__REQUEST__INIT;
    list.op_case = TASKMQ__REQUEST__OP_SCHEDULE_LIST;
    list.schedule_list = &all;
    uint64_t schedules = rig_send (rig, ME, &list, NULL, 0);
    Taskmq__Inbox open = TASKMQ__INBOX__INIT;
    uint64_t inbox = rig_inbox (rig, ME, &open);
    uint64_t get = rig_get (rig, ME, 1);
    uint64_t others = rig_count (rig, OTHER);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, count), TMQ_LIMIT);
    assert_in_range (rig_reply (rig, ME, count)->reply->retry_after_ms, 400, 600);
    assert_int_equal (rig_code (rig, ME, stats), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, ME, schedules), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, ME, inbox), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, ME, get), TMQ_NOT_FOUND);
    assert_int_equal (rig_code (rig, OTHER, others), TMQ_OK);
    rig_advance (rig, 500);
    stats = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, stats), TMQ_OK);
    rig_free (rig);
}

/* All workers of a principal together, on all its links. */
static void leases_are_limited (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("leases=2");
    rig_link (rig, 3, "default");
    for (unsigned i = 1; i <= 4; i++)
        submit (rig, BOSS, i);
    rig_register (rig, ME, 50, "q", 5);
    rig_settle (rig);
    rig_register (rig, 3, 51, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 2);
    assert_int_equal (rig_assignments (rig, 3), 0);
    rig_complete (rig, ME, rig_assignment (rig, ME, 0)->assignment, "r");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME) + rig_assignments (rig, 3), 3);
    rig_goodbye (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 3), 2); /* what it had is free for the other one */
    rig_register (rig, OTHER, 52, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, OTHER), 1);
    rig_free (rig);
}

/* Workers that waited together do not go beyond it together, and the end of a lease wakes the one
 * that has something to do. */
static void leases_are_limited_for_workers_that_wait (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("leases=2");
    for (unsigned i = 0; i < 4; i++)
        rig_register (rig, ME, 50 + i, i == 3 ? "z" : "q", 5);
    rig_settle (rig);
    for (unsigned i = 1; i <= 4; i++)
        submit (rig, BOSS, i);
    assert_int_equal (rig_assignments (rig, ME), 2);
    rig_cancel (rig, BOSS, 3);
    rig_cancel (rig, BOSS, 4);
    uint64_t z = rig_submit (rig, BOSS, 5, "z", "");
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, BOSS, z)->reply->submitted->items[0]->code, TMQ_OK);
    assert_int_equal (rig_assignments (rig, ME), 2);
    rig_complete (rig, ME, rig_assignment (rig, ME, 0)->assignment, "r");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 3);
    assert_string_equal (rig_assignment (rig, ME, 2)->assignment->queue, "z");
    rig_free (rig);
}

/* A higher limit is enough: no lease has to end before. */
static void a_higher_limit_wakes_workers (void **state)
{
    (void) state;
    static const char LINES[] = "me uid:1 client(*) worker(*)\nother uid:2 client(*) worker(*)\n";
    char text[256];
    rig_t *rig = stage_new ("");
    snprintf (text, sizeof (text), "limits * - leases=0\n%s", LINES);
    rig_access (rig, text);
    rig_register (rig, ME, 50, "q", 5);
    submit (rig, BOSS, 1);
    submit (rig, BOSS, 2);
    assert_int_equal (rig_assignments (rig, ME), 0);
    snprintf (text, sizeof (text), "limits * - leases=1\n%s", LINES);
    rig_access (rig, text);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, ME), 1);
    rig_free (rig);
}

static void workers_waits_and_subscriptions_are_limited (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("workers=2 waits=3 subscriptions=2");
    rig_link (rig, 3, "default");
    for (unsigned i = 1; i <= 4; i++)
        submit (rig, ME, i);
    uint64_t good[] = {rig_register (rig, ME, 50, "z", 1), rig_register (rig, 3, 51, "z", 1),
                       rig_register (rig, 3, 51, "z", 2), rig_subscribe (rig, ME, 1, 0),
                       rig_subscribe (rig, 3, 1, 0)};
    uint64_t wait = rig_wait (rig, ME, 1, 3, 0);
    uint64_t bad[] = {rig_register (rig, ME, 52, "z", 1), rig_subscribe (rig, ME, 2, 0),
                      rig_wait (rig, 3, 4, 1, 0)};
    rig_settle (rig);
    size_t peers[] = {ME, 3, 3, ME, 3};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal (rig_code (rig, peers[i], good[i]), TMQ_OK);
    assert_null (rig_reply (rig, ME, wait));
    assert_int_equal (rig_code (rig, ME, bad[0]), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, ME, bad[1]), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, 3, bad[2]), TMQ_LIMIT);
    rig_leave (rig, ME, 50);
    uint64_t later = rig_register (rig, ME, 52, "z", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, later), TMQ_OK);
    rig_free (rig);
}

static unsigned hello_code (rig_t *rig, size_t peer)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = hello.version_max = TMQ_PROTOCOL_VERSION;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    uint64_t id = rig_send (rig, peer, &request, NULL, 0);
    rig_outputs (rig);
    return rig_code (rig, peer, id);
}

static void links_are_limited (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("links=2");
    assert_int_equal (hello_code (rig, 3), TMQ_OK);
    assert_int_equal (hello_code (rig, 4), TMQ_LIMIT);
    assert_int_equal (hello_code (rig, 3), TMQ_OK); /* in its own place */
    rig_link (rig, 3, "default");
    rig_goodbye (rig, 3);
    rig_settle (rig);
    assert_int_equal (hello_code (rig, 4), TMQ_OK);
    rig_free (rig);
}

/* The line limits is for who says nothing else; without a policy nothing is limited. */
static void limits_are_for_everybody_else (void **state)
{
    (void) state;
    rig_t *rig = stage_new ("");
    rig_access (rig, "limits * - tasks=2\nme uid:1 client(*) worker(*) tasks=3\n"
                     "other uid:2 client(*) worker(*)\n");
    rig_link (rig, ME, "default");
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal (submit (rig, ME, i)->code, TMQ_OK);
        assert_int_equal (submit (rig, OTHER, 10 + i)->code, i <= 2 ? TMQ_OK : TMQ_LIMIT);
        assert_int_equal (submit (rig, BOSS, 20 + i)->code, TMQ_OK);
    }
    assert_refused (submit (rig, ME, 4), "live tasks of me: 3");
    rig_access (rig, NULL);
    rig_link (rig, ME, "default");
    assert_int_equal (submit (rig, ME, 4)->code, TMQ_OK);
    rig_access (rig, "me uid:1 client(*) worker(*) tasks=4\n"); /* counted anew */
    rig_link (rig, ME, "default");
    assert_refused (submit (rig, ME, 5), "live tasks of me: 4");
    rig_free (rig);
}

/* Whoever submits: a namespace leaves room for the others. */
static void namespaces_have_only_so_many_tasks_and_bytes (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_tasks_max = 3;
    config.space_bytes_max = 20;
    rig_t *rig = rig_new_with (&config);
    rig_use_request_id (1);
    rig_link (rig, ME, "default");
    assert_int_equal (submit (rig, ME, 1)->code, TMQ_OK);
    rig_submit (rig, ME, 2, "q", "lost");
    rig_fail_commit (rig);
    rig_link (rig, ME, "default");
    rig_link (rig, OTHER, "default");
    rig_link (rig, BOSS, "elsewhere");
    assert_int_equal (submit (rig, OTHER, 2)->code, TMQ_OK);
    assert_refused (submit (rig, ME, 3), "payloads of the namespace's live tasks: 20");
    assert_int_equal (submit_with (rig, ME, 4, "")->code, TMQ_OK);
    assert_refused (submit_with (rig, OTHER, 5, ""), "live tasks of the namespace: 3");
    assert_int_equal (submit (rig, BOSS, 6)->code, TMQ_OK);
    rig_restart (rig);
    rig_link (rig, ME, "default");
    assert_refused (submit_with (rig, ME, 5, ""), "live tasks of the namespace: 3");
    rig_cancel (rig, ME, 1);
    rig_settle (rig);
    assert_int_equal (submit (rig, ME, 7)->code, TMQ_OK);
    assert_refused (submit_with (rig, ME, 5, ""), "live tasks of the namespace: 3");
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_bucket_gives_a_burst_and_then_a_rate),
        cmocka_unit_test (live_tasks_are_limited),
        cmocka_unit_test (bytes_of_payloads_are_limited),
        cmocka_unit_test (counts_survive_a_restart),
        cmocka_unit_test (counts_survive_a_failed_commit),
        cmocka_unit_test (submits_have_a_rate),
        cmocka_unit_test (a_changed_rate_counts_at_once),
        cmocka_unit_test (who_left_leaves_no_account),
        cmocka_unit_test (nobody_fills_the_room_of_all),
        cmocka_unit_test (whatever_brings_tasks_fills_the_room),
        cmocka_unit_test (reads_have_a_rate),
        cmocka_unit_test (leases_are_limited),
        cmocka_unit_test (leases_are_limited_for_workers_that_wait),
        cmocka_unit_test (a_higher_limit_wakes_workers),
        cmocka_unit_test (workers_waits_and_subscriptions_are_limited),
        cmocka_unit_test (links_are_limited),
        cmocka_unit_test (limits_are_for_everybody_else),
        cmocka_unit_test (namespaces_have_only_so_many_tasks_and_bytes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
