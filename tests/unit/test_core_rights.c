/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who may do what (core/access): every request by every role, over its own tasks, those of others,
 * of another queue, of another namespace, and over what it holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"
#include "ids.h"

enum {
    ME = 0,
    ELSE = 1,
    AWAY = 2
}; /* peers: the one that is judged, somebody, in namespace other */

/* Tasks, by whose and where they are. The queues: q, which the roles are granted, and z. */
enum {
    OWN = 1,
    FOREIGN,     /* q, of somebody else */
    QUEUE,       /* z, of somebody else */
    SPACE,       /* q of another namespace */
    HELD,        /* q, of somebody else, and I have its lease */
    STOLEN,      /* … somebody else has it, and I know its secret */
    DONE = 10,   /* the first four again, completed */
    GONE = 20,   /* the first three again, removed after their time to live */
    DOOMED = 30, /* the first four again, to be cancelled */
    MADE = 40    /* to be submitted: to q, to z */
};

enum { MY_WORKER = 50, ELSES_WORKER, HELPER, FAR_HELPER };

/* The roles. */

typedef struct role_case {
    const char *name;
    const char *grant;
} role_case_t;
static const role_case_t ROLE_CASES[] = {
    {"client", "client(default/q)"}, {"reader", "reader(default/q)"},
    {"worker", "worker(default/q)"}, {"observer", "observer(default/q)"},
    {"admin", "admin(default)"},     {"operator", "operator"},
};
enum { ROLE_CASES_COUNT = sizeof (ROLE_CASES) / sizeof (ROLE_CASES[0]) };

/* What came of a request: y done, b done and bare, d DENIED, n NOT_FOUND, e EXPIRED, s STALE_LEASE,
 * - it is not in the list. */

typedef struct probe {
    const char *name;
    uint64_t (*send) (rig_t *rig, unsigned n);
    char (*judge) (rig_t *rig, uint64_t request, unsigned n);
    unsigned first;       /* of these tasks */
    const char *expected; /* a word a role, in it a letter a task, from first on */
} probe_t;

static char letter_of (unsigned code)
{
    switch (code) {
    case TMQ_OK:
    case TMQ_WRONG_STATUS: return 'y';
    case TMQ_DENIED: return 'd';
    case TMQ_NOT_FOUND: return 'n';
    case TMQ_EXPIRED: return 'e';
    case TMQ_STALE_LEASE: return 's';
    default: return '?';
    }
}

static char judge_code (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    return letter_of (rig_code (rig, ME, request));
}

/* The requests about many tasks. */
static char judge_changed (rig_t *rig, uint64_t request, unsigned n)
{
    bool whole = rig_code (rig, ME, request) != TMQ_OK;
    return whole ? judge_code (rig, request, n) : letter_of (rig_changed (rig, ME, request));
}

/* Quiet when it is done. */
static char judge_quiet (rig_t *rig, uint64_t request, unsigned n)
{
    return rig_reply (rig, ME, request) == NULL ? 'y' : judge_code (rig, request, n);
}

static char judge_body (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const rig_item_t *item = rig_reply (rig, ME, request);
    if (item->reply->body_case != TASKMQ__REPLY__BODY_TASK)
        return letter_of (item->reply->code);
    assert_string_not_equal (item->reply->task->owner, "");
    return item->reply->task->meta[0] == '\0' && item->body_bytes == 0 ? 'b' : 'y';
}

static bool is_id (const ProtobufCBinaryData *bytes, unsigned n)
{
    tmq_id_t id = rig_id (n);
    return bytes->len == sizeof (id) && memcmp (bytes->data, id.bytes, sizeof (id)) == 0;
}

static char judge_page (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case != TASKMQ__REPLY__BODY_PAGE)
        return letter_of (reply->code);
    for (size_t i = 0; i < reply->page->n_tasks; i++)
        if (is_id (&reply->page->tasks[i]->task_id, n))
            return reply->page->tasks[i]->meta[0] == '\0' ? 'b' : 'y';
    return '-';
}

static char judge_resolved (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case == TASKMQ__REPLY__BODY_RESOLVED)
        assert_true (is_id (&reply->resolved, n));
    return letter_of (reply->code);
}

static char judge_waited (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case != TASKMQ__REPLY__BODY_WAITED)
        return letter_of (reply->code);
    assert_true (is_id (&reply->waited->items[0]->task_id, n));
    return letter_of (reply->waited->items[0]->code);
}

static char judge_item (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    return letter_of (reply->body_case == TASKMQ__REPLY__BODY_SUBMITTED
                          ? reply->submitted->items[0]->code
                          : reply->code);
}

static char judge_renewed (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    return letter_of (reply->body_case == TASKMQ__REPLY__BODY_RENEWED
                          ? reply->renewed->leases[0]->code
                          : reply->code);
}

/* The events, the notices and the snapshot of the subscription with the number of the task. */
static char judge_stream (rig_t *rig, uint64_t request, unsigned n)
{
    if (rig_code (rig, ME, request) != TMQ_OK)
        return letter_of (rig_code (rig, ME, request));
    bool event = false;
    char snapshot = '-';
    for (size_t i = 0; i < rig->peers[ME].count; i++) {
        const rig_item_t *item = &rig->peers[ME].items[i];
        for (size_t k = 0;
             item->list != NULL && item->events->subscription == n && k < item->list->n_events; k++)
            event = event || is_id (&item->list->events[k]->task_id, n);
        for (size_t k = 0; item->snapshot != NULL && item->snapshot->subscription == n &&
                           k < item->snapshot->n_tasks;
             k++)
            if (is_id (&item->snapshot->tasks[k]->task_id, n))
                snapshot = item->snapshot->tasks[k]->meta[0] == '\0' ? 'b' : 'y';
    }
    assert_int_equal (event, snapshot != '-');
    return snapshot;
}

/* … and whether there are counters. */
static char judge_stats (rig_t *rig, uint64_t request, unsigned n)
{
    bool found = false;
    bool counters = false;
    for (size_t i = 0; i < rig->peers[ME].count; i++) {
        const Taskmq__Reply *reply = rig->peers[ME].items[i].reply;
        if (reply == NULL || reply->id != request || reply->body_case != TASKMQ__REPLY__BODY_STATS)
            continue;
        counters = counters || reply->stats->n_counters > 0;
        for (size_t k = 0; k < reply->stats->n_queues; k++)
            found = found || strcmp (reply->stats->queues[k]->queue, n == QUEUE ? "z" : "q") == 0;
    }
    return found ? (counters ? 'y' : 'b') : '-';
}

/* The question of a task among all: whole, bare, or not there. */
static char judge_inbox (rig_t *rig, uint64_t request, unsigned n)
{
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->code != TMQ_OK)
        return letter_of (reply->code);
    for (size_t i = 0; i < reply->inbox_page->n_questions; i++) {
        const Taskmq__Question *question = reply->inbox_page->questions[i];
        if (is_id (&question->task_id, n))
            return question->request[0] == '\0' ? 'b' : 'y';
    }
    return '-';
}

static char judge_history (rig_t *rig, uint64_t request, unsigned n)
{
    (void) n;
    const Taskmq__Reply *reply = rig_reply (rig, ME, request)->reply;
    if (reply->body_case == TASKMQ__REPLY__BODY_EVENT_PAGE)
        assert_true (reply->event_page->list->n_events > 0);
    return letter_of (reply->code);
}

/* How to send them. */

#define SEND(NAME) static uint64_t NAME (rig_t *rig, unsigned n)

SEND (send_get)
{
    return rig_get (rig, ME, n);
}

SEND (send_why)
{
    return rig_why (rig, ME, n);
}

SEND (send_result)
{
    return rig_result (rig, ME, n);
}

SEND (send_payload)
{
    return rig_payload (rig, ME, n);
}

SEND (send_history)
{
    return rig_history (rig, ME, n);
}

SEND (send_wait)
{
    return rig_wait (rig, ME, n, 1, 0);
}

SEND (send_cancel)
{
    return rig_cancel (rig, ME, n);
}

SEND (send_answer)
{
    Taskmq__AnswerItem item = TASKMQ__ANSWER_ITEM__INIT;
    Taskmq__AnswerItem *items[] = {&item};
    Taskmq__Answer answer = TASKMQ__ANSWER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    item.text = true;
    answer.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    answer.items = items;
    answer.n_items = 1;
    request.op_case = TASKMQ__REQUEST__OP_ANSWER;
    request.answer = &answer;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_inbox)
{
    Taskmq__Inbox inbox = TASKMQ__INBOX__INIT;
    (void) n;
    return rig_inbox (rig, ME, &inbox);
}

SEND (send_inbox_of)
{
    Taskmq__Inbox inbox = TASKMQ__INBOX__INIT;
    tmq_id_t id = rig_id (n);
    inbox.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    return rig_inbox (rig, ME, &inbox);
}

SEND (send_retry)
{
    return rig_change (rig, ME, TASKMQ__REQUEST__OP_RETRY, n, 1);
}

SEND (send_resume)
{
    return rig_change (rig, ME, TASKMQ__REQUEST__OP_RESUME, n, 1);
}

SEND (send_purge)
{
    return rig_change (rig, ME, TASKMQ__REQUEST__OP_PURGE, n, 1);
}

SEND (send_set)
{
    Taskmq__Set set = TASKMQ__SET__INIT;
    set.ttl_never = true;
    return rig_set (rig, ME, n, &set);
}

SEND (send_list)
{
    (void) n;
    return rig_list (rig, ME, NULL, (ProtobufCBinaryData){0}, 0);
}

SEND (send_resolve)
{
    tmq_id_t id = rig_id (n);
    char suffix[2 * sizeof (id) + 1];
    hex_encode (suffix, id.bytes, sizeof (id));
    return rig_resolve (rig, ME, suffix);
}

SEND (send_submit)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) (n == MADE + 1 ? "q" : "z");
    return rig_submit_spec (rig, ME, n, &spec, "");
}

SEND (send_subscribe)
{
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = n;
    subscribe.snapshot = true;
    return rig_subscribe_as (rig, ME, &subscribe);
}

SEND (send_stats)
{
    (void) n;
    return rig_stats (rig, ME);
}

SEND (send_register)
{
    return rig_register (rig, ME, 60 + n, n == QUEUE ? "z" : "q", 0);
}

SEND (send_unsubscribe)
{
    return rig_unsubscribe (rig, ME, 100 + n);
}

SEND (send_credit)
{
    return rig_credit (rig, ME, n, 0);
}

SEND (send_heartbeat)
{
    (void) n;
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &heartbeat;
    return rig_send (rig, ME, &request, NULL, 0);
}

/* The lease of a task: mine, somebody else's, and of the others one that nobody has. */
static Taskmq__Assignment *lease_of (rig_t *rig, unsigned n)
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

SEND (send_started)
{
    return rig_started (rig, ME, lease_of (rig, n));
}

SEND (send_renew)
{
    return rig_renew (rig, ME, n == HELD ? MY_WORKER : ELSES_WORKER, lease_of (rig, n));
}

SEND (send_push)
{
    return rig_push (rig, ME, lease_of (rig, n), "so far", 1);
}

SEND (send_checkpoint)
{
    return rig_checkpoint (rig, ME, lease_of (rig, n), "");
}

SEND (send_checkpoint_read)
{
    return rig_checkpoint (rig, ME, lease_of (rig, n), NULL);
}

SEND (send_ask)
{
    return rig_ask (rig, ME, lease_of (rig, n), "mine", "1");
}

SEND (send_take_answers)
{
    return rig_take_answers (rig, ME, lease_of (rig, n), 0);
}

SEND (send_cancel_ack)
{
    return rig_cancel_ack (rig, ME, lease_of (rig, n));
}

SEND (send_complete)
{
    return rig_complete (rig, ME, lease_of (rig, n), "");
}

SEND (send_fail)
{
    return rig_fail (rig, ME, lease_of (rig, n), 1, true);
}

SEND (send_release)
{
    return rig_release (rig, ME, lease_of (rig, n), true);
}

SEND (send_worker_credit)
{
    return rig_worker_credit (rig, ME, n == HELD ? MY_WORKER : ELSES_WORKER, 9, 1);
}

SEND (send_leave)
{
    return rig_leave (rig, ME, n == HELD ? MY_WORKER : ELSES_WORKER);
}

/* What is expected: client, reader, worker, observer, admin, operator. Of the tasks own, foreign,
 * of another queue, of another namespace, held; who does not work holds nothing any more, so to it
 * that one is a foreign task. Those that change something come last. */
static const probe_t PROBES[] = {
    {"heartbeat", send_heartbeat, judge_code, OWN, "y y y y y y"},
    {"get", send_get, judge_body, OWN, "ynnnn yynny nnnny bbnnb yyyny yyyny"},
    {"get", send_get, judge_body, DONE + OWN, "ynnn yynn nnnn bbnn yyyn yyyn"},
    {"get", send_get, judge_code, GONE + OWN, "enn een nnn een eee eee"},
    {"why", send_why, judge_code, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"why", send_why, judge_code, GONE + OWN, "enn een nnn een eee eee"},
    {"result", send_result, judge_body, DONE + OWN, "ynnn yynn nnnn dddd yyyn yyyn"},
    {"result", send_result, judge_code, GONE + OWN, "enn een nnn ddd eee eee"},
    {"result", send_result, judge_code, OWN, "ynnnn yynny nnnny ddddd yyyny yyyny"},
    {"payload", send_payload, judge_body, OWN, "ynnnn yynny nnnny ddddd yyyny yyyny"},
    {"payload", send_payload, judge_body, DONE + OWN, "ynnn yynn nnnn dddd yyyn yyyn"},
    {"task_events", send_history, judge_history, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"task_events", send_history, judge_code, GONE + OWN, "enn een nnn een eee eee"},
    {"resolve", send_resolve, judge_resolved, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"list", send_list, judge_page, OWN, "y---- yy--y ddddd bb--b yyy-y yyy-y"},
    {"list", send_list, judge_page, DONE + OWN, "y--- yy-- dddd bb-- yyy- yyy-"},
    {"wait", send_wait, judge_waited, DONE + OWN, "ynnn yynn nnnn yynn yyyn yyyn"},
    {"wait", send_wait, judge_waited, GONE + OWN, "enn een nnn een eee eee"},
    {"subscribe", send_subscribe, judge_stream, OWN, "y---- yy--y ddddd bb--b yyy-y yyy-y"},
    {"credit", send_credit, judge_quiet, OWN, "y y n y y y"},
    {"unsubscribe", send_unsubscribe, judge_code, OWN, "y y y y y y"},
    {"stats", send_stats, judge_stats, FOREIGN, "b- b- b- y- yy yy"},
    {"inbox", send_inbox, judge_inbox, STOLEN, "- y d b y y"},
    {"inbox", send_inbox_of, judge_code, OWN, "ynnn yynn dddd yynn yyyn yyyn"},
    {"inbox", send_inbox_of, judge_code, GONE + OWN, "enn een ddd een eee eee"},
    {"submit", send_submit, judge_item, MADE + 1, "yd dd dd dd yy yy"},
    {"answer", send_answer, judge_code, DOOMED + OWN, "ynnn ddnn dddd dddd yyyn yyyn"},
    {"answer", send_answer, judge_code, GONE + OWN, "enn ddn ddd ddd eee eee"},
    {"cancel", send_cancel, judge_code, DOOMED + OWN, "ynnn ddnn dddd dddd yyyn yyyn"},
    {"cancel", send_cancel, judge_code, GONE + OWN, "enn ddn ddd ddd eee eee"},
    {"retry", send_retry, judge_changed, DOOMED + OWN, "ynnn ddnn dddd dddd yyyn yyyn"},
    {"retry", send_retry, judge_changed, GONE + OWN, "enn ddn ddd ddd eee eee"},
    {"resume", send_resume, judge_changed, DOOMED + OWN, "ynnn ddnn dddd dddd yyyn yyyn"},
    {"set", send_set, judge_changed, DOOMED + OWN, "ynnn ddnn dddd dddd yyyn yyyn"},
    {"purge", send_purge, judge_changed, DOOMED + OWN, "dnnn ddnn dddd dddd yyyn yyyn"},
    {"register", send_register, judge_code, FOREIGN, "dd dd yd dd yy yy"},
    {"worker_credit", send_worker_credit, judge_quiet, HELD, "dd dd yn dd yn yn"},
    {"started", send_started, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"renew", send_renew, judge_renewed, OWN, "dddddd dddddd ssssys dddddd ssssys ssssys"},
    {"push", send_push, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"checkpoint", send_checkpoint, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"checkpoint_read", send_checkpoint_read, judge_code, OWN,
     "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"ask", send_ask, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"take_answers", send_take_answers, judge_code, OWN,
     "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"cancel_ack", send_cancel_ack, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"complete", send_complete, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"fail", send_fail, judge_code, STOLEN, "d d d d d d"},
    {"release", send_release, judge_code, STOLEN, "d d d d d d"},
    {"leave", send_leave, judge_code, HELD, "dd dd yy dd yy yy"},
};
enum { PROBES_COUNT = sizeof (PROBES) / sizeof (PROBES[0]) };

/* The stage. */

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

/* The rows of what is past its time to live are removed. */
static void sweep (rig_t *rig)
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

static void set_policy (rig_t *rig, const char *name, const char *grant)
{
    char text[256];
    snprintf (text, sizeof (text), "%s uid:1 %s\nsomebody uid:2 operator\n", name, grant);
    rig_access (rig, text);
}

/* Everything is made while everybody may do everything; then the policy becomes the one that is
 * tested. */
static rig_t *stage_new (const role_case_t *role)
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

/* The policy that is tested. Its links meet the new rights, who is unchanged notices nothing. */
static void take_role (rig_t *rig, const role_case_t *role)
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
    if (!works)
        return;
    uint64_t registered = rig_register_with (rig, ME, MY_WORKER, "q", 1, lease_of (rig, HELD));
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, ME, registered)->reply->registered->leases[0]->code, TMQ_OK);
}

enum { TASKS_MAX = 8 };

static void expected_of (const probe_t *probe, const role_case_t *role, char out[TASKS_MAX + 1])
{
    const char *word = probe->expected;
    for (const role_case_t *before = ROLE_CASES; before < role; before++)
        word = strchr (word, ' ') + 1;
    snprintf (out, TASKS_MAX + 1, "%.*s", (int) strcspn (word, " "), word);
}

static void judge (rig_t *rig, const probe_t *probe, const role_case_t *role, uint64_t *sent)
{
    char expected[TASKS_MAX + 1];
    expected_of (probe, role, expected);
    for (unsigned i = 0; expected[i] != '\0'; i++) {
        char found = probe->judge (rig, sent[i], probe->first + i);
        if (found != expected[i])
            fail_msg ("%s by %s of task %u: %c, should be %c", probe->name, role->name,
                      probe->first + i, found, expected[i]);
    }
}

static void send_probe (rig_t *rig, const probe_t *probe, const role_case_t *role, uint64_t *sent)
{
    char expected[TASKS_MAX + 1];
    expected_of (probe, role, expected);
    for (unsigned i = 0; expected[i] != '\0'; i++)
        sent[i] = probe->send (rig, probe->first + i);
}

/* Each request in a message of its own. */
static void the_matrix_holds (void **state)
{
    (void) state;
    for (const role_case_t *role = ROLE_CASES; role < ROLE_CASES + ROLE_CASES_COUNT; role++) {
        rig_t *rig = stage_new (role);
        sweep (rig);
        rig_settle (rig);
        take_role (rig, role);
        for (size_t i = 0; i < PROBES_COUNT; i++) {
            uint64_t sent[TASKS_MAX];
            rig_use_request_id ((unsigned) i + 2);
            send_probe (rig, &PROBES[i], role, sent);
            rig_settle (rig);
            judge (rig, &PROBES[i], role, sent);
        }
        rig_free (rig);
    }
}

/* All of them in one message: each is judged alone, whatever stands beside it. */
static void the_matrix_holds_in_one_message (void **state)
{
    (void) state;
    for (const role_case_t *role = ROLE_CASES; role < ROLE_CASES + ROLE_CASES_COUNT; role++) {
        uint64_t sent[PROBES_COUNT][TASKS_MAX];
        rig_t *rig = stage_new (role);
        take_role (rig, role);
        rig_gather (rig);
        for (size_t i = 0; i < PROBES_COUNT; i++) {
            rig_use_request_id ((unsigned) i + 2);
            send_probe (rig, &PROBES[i], role, sent[i]);
        }
        sweep (rig); /* what is removed now is remembered in memory alone */
        rig_send_gathered (rig, ME);
        rig_settle (rig);
        for (size_t i = 0; i < PROBES_COUNT; i++) /* the read of a resolve ends behind the lease */
            if (PROBES[i].send != send_resolve || strcmp (role->name, "worker") != 0)
                judge (rig, &PROBES[i], role, sent[i]);
        rig_free (rig);
    }
}

/* … after a start of the broker: owners, holders and tombstones are stored. */
static void the_matrix_holds_after_a_restart (void **state)
{
    (void) state;
    for (const role_case_t *role = ROLE_CASES; role < ROLE_CASES + ROLE_CASES_COUNT; role++) {
        rig_t *rig = stage_new (role);
        sweep (rig);
        rig_settle (rig);
        rig_restart (rig);
        rig_link (rig, ME, "default");
        rig_link (rig, ELSE, "default");
        take_role (rig, role);
        for (size_t i = 0; i < PROBES_COUNT; i++) {
            uint64_t sent[TASKS_MAX];
            bool of_events = PROBES[i].send == send_history || PROBES[i].send == send_subscribe ||
                             PROBES[i].send == send_credit;
            if (of_events) /* the rig keeps no events over a restart */
                continue;
            rig_use_request_id ((unsigned) i + 2);
            send_probe (rig, &PROBES[i], role, sent);
            rig_settle (rig);
            judge (rig, &PROBES[i], role, sent);
        }
        rig_free (rig);
    }
}

/* Requests of which the table above says nothing. A new request is in one of the two. Of queues
 * test_core_queues.c says who may, of schedules test_core_schedules.c. */

static bool is_probed (const char *name)
{
    static const char *const ELSEWHERE[] = {
        "hello",         "goodbye",        "count",           "queue_list",      "queue_set",
        "queue_show",    "queue_pause",    "queue_resume",    "schedule_put",    "schedule_show",
        "schedule_list", "schedule_pause", "schedule_resume", "schedule_remove", "worker_list",
        "worker_show",   "worker_drain"};
    for (size_t i = 0; i < sizeof (ELSEWHERE) / sizeof (ELSEWHERE[0]); i++)
        if (strcmp (ELSEWHERE[i], name) == 0)
            return true;
    if (strncmp (name, "value_", 6) == 0 ||
        strncmp (name, "item_", 5) == 0) /* test_core_values.c */
        return true;
    for (size_t i = 0; i < PROBES_COUNT; i++)
        if (strcmp (PROBES[i].name, name) == 0)
            return true;
    return false;
}

/* Whoever has a link may try to bring a key: what it stands for is judged where it is written. */
static bool is_for_everybody (const char *name)
{
    return strcmp (name, "enroll") == 0;
}

/* A request with an empty body of this kind. */
static uint64_t send_empty (rig_t *rig, size_t peer, const ProtobufCFieldDescriptor *field)
{
    uint64_t place[64] = {0}; /* larger than any of them */
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    const ProtobufCMessageDescriptor *type = field->descriptor;
    assert_true (type->sizeof_message <= sizeof (place));
    protobuf_c_message_init (type, place);
    request.op_case = (Taskmq__Request__OpCase) field->id;
    request.get = (Taskmq__Get *) (void *) place; /* a union: the same place for all */
    return rig_send (rig, peer, &request, NULL, 0);
}

static void all_other_requests_are_for_operators (void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *type = &taskmq__request__descriptor;
    const role_case_t *last = ROLE_CASES + ROLE_CASES_COUNT - 1;
    for (const role_case_t *role = ROLE_CASES; role < last; role++) {
        rig_t *rig = stage_new (role);
        take_role (rig, role);
        for (unsigned i = 0; i < type->n_fields; i++) {
            const ProtobufCFieldDescriptor *field = &type->fields[i];
            if (field->type != PROTOBUF_C_TYPE_MESSAGE || is_probed (field->name))
                continue;
            uint64_t request = send_empty (rig, ME, field);
            rig_settle (rig);
            bool denied =
                rig_reply (rig, ME, request) != NULL && rig_code (rig, ME, request) == TMQ_DENIED;
            if (denied == is_for_everybody (field->name))
                fail_msg ("%s by %s", field->name, role->name);
        }
        rig_free (rig);
    }
}

/* An invitation is good for a key, and for nothing else. */
static void an_invitation_does_nothing_else (void **state)
{
    (void) state;
    char text[256];
    char key[KEY_TEXT_SIZE];
    key_public_t public_key = {{1}};
    rig_t *rig = stage_new (&ROLE_CASES[0]);
    take_role (rig, &ROLE_CASES[0]);
    key_text_public (key, &public_key);
    snprintf (text, sizeof (text), "invite-1 invite:%s admin(*) as=new\n", key);
    rig_access (rig, text);
    rig->peers[5].identity = "invite:invite-1";
    rig_link (rig, 5, "default");
    for (unsigned n = OWN; n <= DOOMED + SPACE; n++) {
        uint64_t requests[] = {rig_get (rig, 5, n), rig_payload (rig, 5, n), rig_cancel (rig, 5, n),
                               rig_wait (rig, 5, n, 1, 0), rig_history (rig, 5, n)};
        rig_settle (rig);
        for (size_t i = 0; i < sizeof (requests) / sizeof (requests[0]); i++)
            assert_int_equal (rig_code (rig, 5, requests[i]), TMQ_DENIED);
    }
    uint64_t requests[] = {rig_submit (rig, 5, 90, "q", ""), rig_register (rig, 5, 90, "q", 1),
                           rig_count (rig, 5), rig_subscribe (rig, 5, 1, 0)};
    uint64_t stats = rig_stats (rig, 5);
    rig_settle (rig);
    for (size_t i = 0; i < sizeof (requests) / sizeof (requests[0]); i++)
        assert_int_equal (rig_code (rig, 5, requests[i]), TMQ_DENIED);
    assert_int_equal (rig_reply (rig, 5, stats)->reply->stats->n_queues, 0);
    assert_int_equal (rig_reply (rig, 5, stats)->reply->stats->n_counters, 0);
    rig_free (rig);
}

/* An unseen task is answered as one that does not exist, to the last byte. */
static void what_is_not_seen_does_not_exist (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[0]);
    sweep (rig);
    rig_settle (rig);
    take_role (rig, &ROLE_CASES[0]);
    static const unsigned TASKS[] = {FOREIGN, QUEUE, SPACE, DONE + FOREIGN, GONE + FOREIGN};
    uint64_t (*const sends[]) (rig_t *, unsigned) = {send_get,     send_result, send_payload,
                                                     send_history, send_cancel, send_wait};
    for (size_t s = 0; s < sizeof (sends) / sizeof (sends[0]); s++) {
        for (size_t i = 0; i < sizeof (TASKS) / sizeof (TASKS[0]); i++) {
            uint64_t unseen = sends[s](rig, TASKS[i]);
            uint64_t absent = sends[s](rig, 99);
            rig_settle (rig);
            const Taskmq__Reply *a = rig_reply (rig, ME, unseen)->reply;
            const Taskmq__Reply *b = rig_reply (rig, ME, absent)->reply;
            assert_int_equal (a->code, b->code);
            assert_string_equal (a->text, b->text);
            assert_int_equal (a->body_case, b->body_case);
            if (a->body_case != TASKMQ__REPLY__BODY_WAITED)
                continue;
            assert_int_equal (a->waited->items[0]->code, TMQ_NOT_FOUND);
            assert_string_equal (a->waited->items[0]->text, b->waited->items[0]->text);
        }
    }
    rig_free (rig);
}

/* Somebody else's id is in use, and no more is said: also of one that was removed. */
static void an_id_of_somebody_else_is_in_use (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[0]);
    sweep (rig);
    rig_settle (rig);
    take_role (rig, &ROLE_CASES[0]);
    static const unsigned TASKS[] = {FOREIGN, QUEUE, DONE + FOREIGN, GONE + FOREIGN};
    for (size_t i = 0; i < sizeof (TASKS) / sizeof (TASKS[0]); i++) {
        uint64_t request = rig_submit (rig, ME, TASKS[i], "q", "mine");
        rig_settle (rig);
        const Taskmq__SubmittedItem *item =
            rig_reply (rig, ME, request)->reply->submitted->items[0];
        assert_int_equal (item->code, TMQ_CONFLICT);
        assert_string_equal (item->text, "the id or key is in use");
        assert_int_equal (item->status, 0);
    }
    rig_free (rig);
}

static unsigned hello_code (rig_t *rig, size_t peer, const char *space, const char **text)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.namespace_ = (char *) space;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    uint64_t id = rig_send (rig, peer, &request, NULL, 0);
    rig_outputs (rig);
    *text = rig_reply (rig, peer, id)->reply->text;
    return rig_code (rig, peer, id);
}

/* A namespace without a grant is closed, whether it exists or not, and is not made by asking. */
static void a_namespace_without_a_grant_is_closed (void **state)
{
    (void) state;
    const char *text = NULL;
    rig_t *rig = stage_new (&ROLE_CASES[4]);
    take_role (rig, &ROLE_CASES[4]);
    rig->peers[5].identity = "uid:4711"; /* not listed */
    assert_int_equal (hello_code (rig, 5, "default", &text), TMQ_DENIED);
    rig->peers[5].identity = "admin";
    assert_int_equal (hello_code (rig, 5, "other", &text), TMQ_DENIED);
    assert_string_equal (text, "no access to namespace other");
    assert_int_equal (hello_code (rig, 5, "nowhere", &text), TMQ_DENIED);
    assert_string_equal (text, "no access to namespace nowhere");
    uint64_t get = rig_get (rig, 5, OWN);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 5, get), TMQ_NO_LINK);
    rig_free (rig);
}

/* Changes of the policy. */

/* What waits for a commit to leave is dropped, and so is a durable subscription. */
static void a_revoked_link_gets_nothing_more (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[1]);
    take_role (rig, &ROLE_CASES[1]);
    rig_subscribe (rig, ME, 7, 0);
    rig_wait (rig, ME, FOREIGN, 1, 0);
    rig_settle (rig);
    rig_forget (rig, ME);
    rig_cancel (rig, ELSE, FOREIGN);
    uint64_t get = rig_get (rig, ME, DONE + FOREIGN);
    rig_take (rig);
    rig_access (rig, "somebody uid:2 operator\n");
    rig_durable (rig);
    rig_settle (rig);
    assert_null (rig_reply (rig, ME, get));
    assert_int_equal (rig->peers[ME].count, 0);
    const char *text = NULL;
    assert_int_equal (hello_code (rig, ME, "default", &text), TMQ_DENIED);
    rig_free (rig);
}

/* The leases of a worker that is gone return at once, not counted as attempts that failed. */
static void leases_of_a_revoked_worker_return (void **state)
{
    (void) state;
    for (int restarted = 0; restarted < 2; restarted++) {
        rig_t *rig = stage_new (&ROLE_CASES[2]);
        if (restarted == 1) { /* the worker has not come back yet */
            rig_restart (rig);
            rig_link (rig, ELSE, "default");
        } else {
            take_role (rig, &ROLE_CASES[2]);
        }
        rig_access (rig, "somebody uid:2 operator\n");
        rig_settle (rig);
        assert_int_equal (rig_status (rig, ELSE, HELD), TMQ_STATUS_QUEUED);
        assert_int_equal (rig_task (rig, ELSE, HELD)->failures, 0);
        assert_int_equal (rig_status (rig, ELSE, STOLEN), TMQ_STATUS_INPUT_REQUIRED);
        rig_free (rig);
    }
}

/* A lease needs its secret and its holder, also after a restart. */
static void a_lease_belongs_to_its_holder (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[2]);
    rig_restart (rig);
    rig_link (rig, ELSE, "default");
    uint64_t stolen = rig_register_with (rig, ELSE, MY_WORKER, "q", 1, lease_of (rig, HELD));
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ELSE, stolen), TMQ_DENIED);
    set_policy (rig, "worker", "worker(default/q)");
    rig_link (rig, ME, "default");
    uint64_t mine = rig_register_with (rig, ME, MY_WORKER, "q", 1, lease_of (rig, HELD));
    uint64_t complete = rig_complete (rig, ME, lease_of (rig, HELD), "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, mine), TMQ_OK);
    assert_int_equal (rig_code (rig, ME, complete), TMQ_OK);
    uint64_t again = rig_complete (rig, ME, lease_of (rig, HELD), "r");
    uint64_t theirs = rig_complete (rig, ELSE, lease_of (rig, HELD), "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, again), TMQ_OK);
    assert_int_equal (rig_code (rig, ELSE, theirs), TMQ_STALE_LEASE);
    rig_free (rig);
}

/* A worker whose grants were narrowed to other queues loses what it holds: others get it. */
static void a_lease_needs_the_right_in_its_queue (void **state)
{
    (void) state;
    rig_t *rig = stage_new (&ROLE_CASES[2]);
    set_policy (rig, "worker", "worker(default/other)");
    rig_link (rig, ME, "default");
    uint64_t back = rig_register_with (rig, ME, MY_WORKER, "other", 1, lease_of (rig, HELD));
    uint64_t complete = rig_complete (rig, ME, lease_of (rig, HELD), "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, back), TMQ_OK);
    assert_int_equal (rig_code (rig, ME, complete), TMQ_STALE_LEASE);
    assert_int_equal (rig_status (rig, ELSE, HELD), TMQ_STATUS_QUEUED);
    rig_free (rig);
}

/* A principal's time ends: its links with it, within the tick. */
static void a_principal_has_an_end (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig->peers[ME].identity = "guest";
    rig_access (rig, "guest uid:1 reader(*) until=2023-11-14T22:14Z\n"); /* 40 s after the start */
    rig_link (rig, ME, "default");
    uint64_t early = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, early), TMQ_OK);
    rig_advance (rig, 39000);
    uint64_t still = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, still), TMQ_OK);
    rig_advance (rig, 1000);
    uint64_t late = rig_stats (rig, ME);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, ME, late), TMQ_NO_LINK);
    const char *text = NULL;
    assert_int_equal (hello_code (rig, ME, "default", &text), TMQ_DENIED);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_matrix_holds),
        cmocka_unit_test (the_matrix_holds_in_one_message),
        cmocka_unit_test (the_matrix_holds_after_a_restart),
        cmocka_unit_test (all_other_requests_are_for_operators),
        cmocka_unit_test (an_invitation_does_nothing_else),
        cmocka_unit_test (what_is_not_seen_does_not_exist),
        cmocka_unit_test (an_id_of_somebody_else_is_in_use),
        cmocka_unit_test (a_namespace_without_a_grant_is_closed),
        cmocka_unit_test (a_revoked_link_gets_nothing_more),
        cmocka_unit_test (leases_of_a_revoked_worker_return),
        cmocka_unit_test (a_lease_belongs_to_its_holder),
        cmocka_unit_test (a_lease_needs_the_right_in_its_queue),
        cmocka_unit_test (a_principal_has_an_end),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
