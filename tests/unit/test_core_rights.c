/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who may do what (core/access): every request by every role, over its own tasks, those of others,
 * of another queue, of another namespace, and over what it holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "rights_judges.h"

typedef struct probe {
    const char *name;
    uint64_t (*send) (rig_t *rig, unsigned n);
    char (*judge) (rig_t *rig, uint64_t request, unsigned n);
    unsigned first;       /* of these tasks */
    const char *expected; /* a word a role, in it a letter a task, from first on */
} probe_t;

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

SEND (send_adopt)
{
    Taskmq__Adopt adopt = TASKMQ__ADOPT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    uint8_t request_id[16] = {1};
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    adopt.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    adopt.attempt = 1;
    request.op_case = TASKMQ__REQUEST__OP_ADOPT;
    request.adopt = &adopt;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_attempts)
{
    Taskmq__Attempts attempts = TASKMQ__ATTEMPTS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    attempts.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    request.op_case = TASKMQ__REQUEST__OP_ATTEMPTS;
    request.attempts = &attempts;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_set)
{
    Taskmq__Set set = TASKMQ__SET__INIT;
    set.ttl_never = true;
    return rig_set (rig, ME, n, &set);
}

/* A file that turns told stands in their bodies: who may not read them finds nothing by it. */
SEND (send_list_by_file)
{
    (void) n;
    char *files[] = {"src/a.c"};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    filter.files = files;
    filter.n_files = 1;
    return rig_list (rig, ME, &filter, (ProtobufCBinaryData){0}, 0);
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

SEND (send_log)
{
    return rig_log (rig, ME, lease_of (rig, n), TMQ_LOG_OUT, 0, "");
}

SEND (send_read_log)
{
    return rig_read_log (rig, ME, n);
}

static uint8_t some_hash[TMQ_BLOB_HASH_BYTES];

static Taskmq__Blob some_blob (void)
{
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    blob.hash = (ProtobufCBinaryData){sizeof (some_hash), some_hash};
    blob.bytes = 1000000;
    return blob;
}

SEND (send_blob_begin)
{
    (void) n;
    Taskmq__Blob blob = some_blob ();
    Taskmq__BlobBegin begin = TASKMQ__BLOB_BEGIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    begin.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_BEGIN;
    request.blob_begin = &begin;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_blob_chunk)
{
    (void) n;
    Taskmq__Blob blob = some_blob ();
    Taskmq__BlobChunk chunk = TASKMQ__BLOB_CHUNK__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    chunk.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_CHUNK;
    request.blob_chunk = &chunk;
    return rig_send (rig, ME, &request, "", 0);
}

SEND (send_blob_drop)
{
    (void) n;
    Taskmq__Blob blob = some_blob ();
    Taskmq__BlobDrop drop = TASKMQ__BLOB_DROP__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    drop.blob = &blob;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_DROP;
    request.blob_drop = &drop;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_blob_read)
{
    tmq_id_t id = rig_id (n);
    Taskmq__BlobRead read = TASKMQ__BLOB_READ__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    read.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    read.part = 1;
    request.op_case = TASKMQ__REQUEST__OP_BLOB_READ;
    request.blob_read = &read;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_checkpoint)
{
    return rig_checkpoint (rig, ME, lease_of (rig, n), "");
}

SEND (send_checkpoint_read)
{
    return rig_checkpoint (rig, ME, lease_of (rig, n), NULL);
}

SEND (send_turn)
{
    return rig_turn (rig, ME, lease_of (rig, n), 1, "");
}

SEND (send_search)
{
    (void) n;
    return rig_search (rig, ME, "word", (ProtobufCBinaryData){0}, false);
}

SEND (send_artifacts)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Artifacts artifacts = TASKMQ__ARTIFACTS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    artifacts.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    request.op_case = TASKMQ__REQUEST__OP_ARTIFACTS;
    request.artifacts = &artifacts;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_artifact)
{
    const Taskmq__Assignment *assignment = lease_of (rig, n);
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__ArtifactPut put = TASKMQ__ARTIFACT_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t request_id[16] = {7};
    lease.task_id = assignment->task_id;
    lease.attempt = assignment->attempt;
    lease.secret = assignment->secret;
    put.lease = &lease;
    put.name = (char *) (uintptr_t) "a";
    request.op_case = TASKMQ__REQUEST__OP_ARTIFACT;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.artifact = &put;
    return rig_send (rig, ME, &request, NULL, 0);
}

SEND (send_turns)
{
    return rig_turns (rig, ME, n, 0, 0);
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
    {"read_log", send_read_log, judge_log, OWN, "ynnnn yynny nnnny ddddd yyyny yyyny"},
    {"read_log", send_read_log, judge_log, DONE + OWN, "ynnn yynn nnnn dddd yyyn yyyn"},
    {"read_log", send_read_log, judge_log, GONE + OWN, "enn een nnn ddd eee eee"},
    {"blob_read", send_blob_read, judge_blob, OWN, "ynnnn yynny nnnny ddddd yyyny yyyny"},
    {"blob_read", send_blob_read, judge_blob, DONE + OWN, "ynnn yynn nnnn dddd yyyn yyyn"},
    {"blob_read", send_blob_read, judge_blob, GONE + OWN, "enn een nnn ddd eee eee"},
    {"blob_begin", send_blob_begin, judge_log, OWN, "y d y d y y"},
    {"blob_chunk", send_blob_chunk, judge_log, OWN, "y d y d y y"},
    {"blob_drop", send_blob_drop, judge_log, OWN, "y d y d y y"},
    {"task_events", send_history, judge_history, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"task_events", send_history, judge_code, GONE + OWN, "enn een nnn een eee eee"},
    {"attempts", send_attempts, judge_code, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"attempts", send_attempts, judge_code, GONE + OWN, "enn een nnn een eee eee"},
    {"turns", send_turns, judge_code, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"artifacts", send_artifacts, judge_code, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"artifacts", send_artifacts, judge_code, GONE + OWN, "enn een nnn een eee eee"},
    {"turns", send_turns, judge_code, GONE + OWN, "enn een nnn een eee eee"},
    {"resolve", send_resolve, judge_resolved, OWN, "ynnnn yynny nnnny yynny yyyny yyyny"},
    {"list", send_list, judge_page, OWN, "y---- yy--y ddddd bb--b yyy-y yyy-y"},
    {"list", send_list_by_file, judge_page, OWN, "y---- yy--y ddddd ----- yyy-y yyy-y"},
    {"list", send_list, judge_page, DONE + OWN, "y--- yy-- dddd bb-- yyy- yyy-"},
    {"search", send_search, judge_code, OWN, "y y d d y y"},
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
    {"adopt", send_adopt, judge_code, DONE + OWN, "dnnn ddnn dddd dddd yyyn yyyn"},
    {"adopt", send_adopt, judge_code, GONE + OWN, "dnn ddn ddd ddd eee eee"},
    {"register", send_register, judge_code, FOREIGN, "dd dd yd dd yy yy"},
    {"worker_credit", send_worker_credit, judge_quiet, HELD, "dd dd yn dd yn yn"},
    {"started", send_started, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"renew", send_renew, judge_renewed, OWN, "dddddd dddddd ssssys dddddd ssssys ssssys"},
    {"push", send_push, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"log", send_log, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"checkpoint", send_checkpoint, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"checkpoint_read", send_checkpoint_read, judge_code, OWN,
     "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"artifact", send_artifact, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
    {"turn", send_turn, judge_code, OWN, "dddddd dddddd ssssyd dddddd ssssyd ssssyd"},
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

enum { TASKS_MAX = 8 };

/* Who acts for others does it as a client, the first of the words. */
static void expected_of (const probe_t *probe, const role_case_t *role, char out[TASKS_MAX + 1])
{
    const char *word = probe->expected;
    for (const role_case_t *before = ROLE_CASES; role->owner == NULL && before < role; before++)
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

static void holds (const role_case_t *role)
{
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

/* Each request in a message of its own. */
static void the_matrix_holds (void **state)
{
    (void) state;
    for (const role_case_t *role = ROLE_CASES; role < ROLE_CASES + ROLE_CASES_COUNT; role++)
        holds (role);
}

static void holds_in_one_message (const role_case_t *role)
{
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

/* All of them in one message: each is judged alone, whatever stands beside it. */
static void the_matrix_holds_in_one_message (void **state)
{
    (void) state;
    for (const role_case_t *role = ROLE_CASES; role < ROLE_CASES + ROLE_CASES_COUNT; role++)
        holds_in_one_message (role);
}

static void holds_after_a_restart (const role_case_t *role)
{
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

/* … after a start of the broker: owners, holders and tombstones are stored. */
static void the_matrix_holds_after_a_restart (void **state)
{
    (void) state;
    for (const role_case_t *role = ROLE_CASES; role < ROLE_CASES + ROLE_CASES_COUNT; role++)
        holds_after_a_restart (role);
}

/* Who names an owner is his client and nothing else, whatever it may do itself. */
static void who_acts_for_another_is_a_client (void **state)
{
    static const role_case_t GATEWAYS[] = {{"gateway", "gateway(default/q)", "alice"},
                                           {"gateway", "gateway(default/q) reader(default)", "al"},
                                           {"gateway", "gateway(default/q) worker(*)", "a.b-c"}};
    (void) state;
    for (size_t i = 0; i < sizeof (GATEWAYS) / sizeof (GATEWAYS[0]); i++) {
        holds (&GATEWAYS[i]);
        holds_in_one_message (&GATEWAYS[i]);
        holds_after_a_restart (&GATEWAYS[i]);
    }
}

/* … its own tasks and those of others whom it acts for are foreign to him, too. */
static void who_is_acted_for_sees_his_own_tasks_alone (void **state)
{
    static const role_case_t GATEWAY = {"gateway", "gateway(default/q) client(default/q)", "alice"};
    (void) state;
    rig_t *rig = stage_new (&GATEWAY);
    sweep (rig);
    rig_settle (rig);
    take_role (rig, &GATEWAY);
    assert_string_equal (rig_task (rig, ME, OWN)->owner, "gateway/alice");
    const char *const others[] = {"bob", "alic", "gateway", NULL};
    for (size_t i = 0; i < sizeof (others) / sizeof (others[0]); i++) {
        rig->owner = others[i];
        uint64_t unseen = rig_get (rig, ME, OWN);
        uint64_t cancel = rig_cancel (rig, ME, DOOMED + OWN);
        uint64_t absent = rig_get (rig, ME, 99);
        rig_settle (rig);
        const Taskmq__Reply *a = rig_reply (rig, ME, unseen)->reply;
        const Taskmq__Reply *b = rig_reply (rig, ME, absent)->reply;
        assert_int_equal (a->code, TMQ_NOT_FOUND);
        assert_int_equal (b->code, TMQ_NOT_FOUND);
        assert_string_equal (a->text, b->text);
        assert_int_equal (rig_code (rig, ME, cancel), TMQ_NOT_FOUND);
    }
    rig_free (rig);
}

static void who_may_not_act_for_others_is_denied (void **state)
{
    (void) state;
    for (const role_case_t *role = ROLE_CASES; role < ROLE_CASES + ROLE_CASES_COUNT; role++) {
        rig_t *rig = stage_new (role);
        take_role (rig, role);
        rig->owner = "alice";
        uint64_t get = rig_get (rig, ME, OWN);
        rig_settle (rig);
        bool may = strcmp (role->name, "admin") == 0 || strcmp (role->name, "operator") == 0;
        assert_int_equal (rig_code (rig, ME, get), may ? TMQ_NOT_FOUND : TMQ_DENIED);
        rig_free (rig);
    }
}

/* Requests of which the table above says nothing. A new request is in one of the two. Of queues
 * test_core_queues.c says who may, of schedules test_core_schedules.c, of imports
 * test_core_import.c. */

static bool is_probed (const char *name)
{
    static const char *const ELSEWHERE[] = {
        "hello",         "goodbye",        "count",           "queue_list",      "queue_set",
        "queue_show",    "queue_pause",    "queue_resume",    "schedule_put",    "schedule_show",
        "schedule_list", "schedule_pause", "schedule_resume", "schedule_remove", "worker_list",
        "worker_show",   "worker_drain",   "import"};
    for (size_t i = 0; i < sizeof (ELSEWHERE) / sizeof (ELSEWHERE[0]); i++)
        if (strcmp (ELSEWHERE[i], name) == 0)
            return true;
    if (strncmp (name, "value_", 6) == 0 || strncmp (name, "item_", 5) == 0 ||
        strncmp (name, "session_", 8) == 0) /* test_core_values.c, test_core_sessions.c */
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_matrix_holds),
        cmocka_unit_test (the_matrix_holds_in_one_message),
        cmocka_unit_test (the_matrix_holds_after_a_restart),
        cmocka_unit_test (who_acts_for_another_is_a_client),
        cmocka_unit_test (who_is_acted_for_sees_his_own_tasks_alone),
        cmocka_unit_test (who_may_not_act_for_others_is_denied),
        cmocka_unit_test (all_other_requests_are_for_operators),
        cmocka_unit_test (what_is_not_seen_does_not_exist),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
