/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rights_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const role_case_t ROLE_CASES[ROLE_CASES_COUNT] = {
    {"client", "client(default/q)", NULL}, {"reader", "reader(default/q)", NULL},
    {"worker", "worker(default/q)", NULL}, {"observer", "observer(default/q)", NULL},
    {"admin", "admin(default)", NULL},     {"operator", "operator", NULL},
};

bool is_id (const ProtobufCBinaryData *bytes, unsigned n)
{
    tmq_id_t id = rig_id (n);
    return bytes->len == sizeof (id) && memcmp (bytes->data, id.bytes, sizeof (id)) == 0;
}

Taskmq__Assignment *lease_of (rig_t *rig, unsigned n)
{
    static uint8_t secret[16];
    static tmq_id_t id;
    static Taskmq__Assignment none;
    size_t peer = n == HELD ? ME : ELSE;
    for (size_t i = 0; n == HELD || n == STOLEN; i++) {
        const rig_item_t *item = rig_assignment (rig, peer, i);
        if (is_id (&item->assignment->task_id, n))
            return (Taskmq__Assignment *) item->assignment;
    }
    taskmq__assignment__init (&none);
    id = rig_id (n);
    none.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    none.secret = (ProtobufCBinaryData){sizeof (secret), secret};
    none.attempt = 1;
    return &none;
}

static void submit (rig_t *rig, size_t peer, unsigned n, const char *queue)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) queue;
    spec.meta = (char *) "{\"secret\":1}";
    spec.ttl_ms = n / 10 * 10 == GONE ? 2000 : 0;
    rig_submit_spec (rig, peer, n, &spec, "payload");
    rig_settle (rig);
}

static void complete_all (rig_t *rig, size_t peer)
{
    for (size_t i = 0; i < rig_assignments (rig, peer); i++) {
        const Taskmq__Assignment *assignment = rig_assignment (rig, peer, i)->assignment;
        if (!is_id (&assignment->task_id, STOLEN))
            rig_complete (rig, peer, assignment, "result");
    }
    rig_settle (rig);
}

void sweep (rig_t *rig)
{
    due_t due = {.records = calloc (8, sizeof (record_t *)), .written = UINT64_MAX};
    for (size_t i = 1; i < rig->rows_end; i++) {
        const record_t *row = rig->rows[i];
        if (row == NULL || row->expires_at > rig->now.wall_ms || due.count == 8)
            continue;
        record_t copy = *row;
        copy.payload = copy.result = NULL;
        due.records[due.count++] = record_new (&copy);
    }
    assert_int_equal (engine_due (rig->engine, &due, rig->now), 3);
}

void set_policy (rig_t *rig, const char *name, const char *grant)
{
    char text[256];
    snprintf (text, sizeof (text), "%s uid:1 %s\nsomebody uid:2 operator\n", name, grant);
    rig_access (rig, text);
}

rig_t *stage_new (const role_case_t *role)
{
    rig_t *rig = rig_new ();
    rig->peers[ME].identity = role->name;
    rig->peers[ELSE].identity = rig->peers[AWAY].identity = "somebody";
    set_policy (rig, role->name, "operator");
    rig_link (rig, ME, "default");
    rig_link (rig, ELSE, "default");
    rig_link (rig, AWAY, "other");
    rig_use_request_id (1);
    submit (rig, ELSE, HELD, "q");
    rig_register (rig, ME, MY_WORKER, "q", 1);
    rig_settle (rig);
    submit (rig, ELSE, STOLEN, "q");
    rig_register (rig, ELSE, ELSES_WORKER, "q", 1);
    rig_settle (rig);
    rig_ask (rig, ELSE, rig_assignment (rig, ELSE, 0)->assignment, "theirs", "{\"secret\":1}");
    rig->owner = role->owner;
    char *queues[] = {(char *) "q", (char *) "z"};
    for (unsigned first = DONE; first <= GONE; first += GONE - DONE) {
        submit (rig, ME, first + OWN, "q");
        submit (rig, ELSE, first + FOREIGN, "q");
        submit (rig, ELSE, first + QUEUE, "z");
    }
    submit (rig, AWAY, DONE + SPACE, "q");
    rig_register_queues (rig, ELSE, HELPER, queues, 2, 100);
    rig_register_queues (rig, AWAY, FAR_HELPER, queues, 2, 100);
    rig_settle (rig);
    complete_all (rig, ELSE);
    complete_all (rig, AWAY);
    rig_leave (rig, ELSE, HELPER);
    rig_leave (rig, AWAY, FAR_HELPER);
    for (unsigned first = 0; first <= DOOMED; first += DOOMED) {
        submit (rig, ME, first + OWN, "q");
        submit (rig, ELSE, first + FOREIGN, "q");
        submit (rig, ELSE, first + QUEUE, "z");
        submit (rig, AWAY, first + SPACE, "q");
    }
    rig_advance (rig, 2100);
    return rig;
}

void take_role (rig_t *rig, const role_case_t *role)
{
    uint64_t before = rig_get (rig, ELSE, OWN); /* its answer waits for a commit */
    set_policy (rig, role->name, role->grant);
    uint64_t after = rig_get (rig, ME, OWN);
    uint64_t still = rig_get (rig, ELSE, OWN);
    rig_settle (rig);
    bool same = strcmp (role->grant, "operator") == 0;
    assert_int_equal (rig_code (rig, ME, after), same ? TMQ_OK : TMQ_NO_LINK);
    assert_int_equal (rig_code (rig, ELSE, before), TMQ_OK);
    assert_int_equal (rig_code (rig, ELSE, still), TMQ_OK);
    if (!same)
        rig_link (rig, ME, "default");
    bool works = strcmp (role->name, "worker") == 0 || strcmp (role->name, "admin") == 0 || same;
    if (!works || role->owner != NULL)
        return;
    uint64_t registered = rig_register_with (rig, ME, MY_WORKER, "q", 1, lease_of (rig, HELD));
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, ME, registered)->reply->registered->leases[0]->code, TMQ_OK);
}
