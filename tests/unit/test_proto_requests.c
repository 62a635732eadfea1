/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The validator: one test for each kind of request, with every limit at, below and beyond. */
#include "test_proto_judge.h"

#include <math.h>

/* Link. */

static void test_hello (void **state)
{
    (void) state;
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_HELLO);
    request.hello = &hello;
    hello.version_min = 1;
    hello.version_max = 1;
    assert_good (&request);
    hello.version_max = UINT32_MAX;
    hello.namespace_ = text_of ("default");
    hello.client = repeated ('c', 64);
    hello.features = UINT32_MAX; /* those that nobody knows yet are passed over */
    assert_good (&request);
    hello.client = repeated ('c', 65);
    assert_bad (&request, TMQ_TOO_LARGE, "client: 65 bytes, at most 64");
    hello.client = text_of ("");
    hello.namespace_ = text_of ("de fault");
    assert_bad (&request, TMQ_INVALID, "namespace: must match [A-Za-z0-9._-]{1,64}");
    hello.namespace_ = text_of ("");
    hello.version_min = 2;
    assert_bad (&request, TMQ_UNSUPPORTED, "version 1");
    hello.version_max = 1;
    assert_bad (&request, TMQ_INVALID, "version_min");
    hello.version_min = hello.version_max = 0;
    assert_bad (&request, TMQ_INVALID, "version_max");
}

static void test_hello_is_alone (void **state)
{
    (void) state;
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request first = request_of (TASKMQ__REQUEST__OP_HELLO);
    Taskmq__Request second = request_of (TASKMQ__REQUEST__OP_STATS);
    Taskmq__Request *requests[] = {&first, &second};
    verdicts_t verdicts;
    hello.version_min = hello.version_max = 1;
    first.hello = &hello;
    second.stats = &stats;
    assert_non_null (judge_many (&verdicts, requests, 2, 0));
    assert_verdict (verdicts.requests[0].verdict, TMQ_INVALID, "hello: must be alone");
    assert_int_equal (verdicts.requests[1].verdict.code, TMQ_OK);
    assert_int_equal (verdicts.refused, 1);
}

/* Reads. */

static void test_requests_for_one_task (void **state)
{
    (void) state;
    Taskmq__Get get = TASKMQ__GET__INIT;
    const Taskmq__Request__OpCase kinds[] = {TASKMQ__REQUEST__OP_GET, TASKMQ__REQUEST__OP_RESULT,
                                             TASKMQ__REQUEST__OP_PAYLOAD};
    for (size_t i = 0; i < 3; i++) {
        Taskmq__Request request = request_of (kinds[i]);
        request.get = &get;
        get.task_id = bytes_of (16);
        assert_good (&request);
        get.task_id = bytes_of (17);
        assert_bad (&request, TMQ_INVALID, "task_id: must be 16 bytes, not 17");
        get.task_id = bytes_of (0);
        assert_bad (&request, TMQ_INVALID, "task_id: must be 16 bytes, not 0");
    }
    get.task_id = bytes_of (16);
    get.no_body = true;
    for (size_t i = 0; i < 3; i++) {
        Taskmq__Request request = request_of (kinds[i]);
        request.get = &get;
        if (kinds[i] == TASKMQ__REQUEST__OP_GET)
            assert_good (&request);
        else
            assert_bad (&request, TMQ_INVALID, "no_body: of get alone");
    }
    Taskmq__TaskEvents events = TASKMQ__TASK_EVENTS__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_TASK_EVENTS);
    request.task_events = &events;
    assert_bad (&request, TMQ_INVALID, "task_id");
    events.task_id = bytes_of (16);
    events.limit = 1000;
    assert_good (&request);
    events.limit = 1001;
    assert_bad (&request, TMQ_INVALID, "limit: must be in 0..1000");
}

static void test_resolve (void **state)
{
    (void) state;
    Taskmq__Resolve resolve = TASKMQ__RESOLVE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_RESOLVE);
    request.resolve = &resolve;
    resolve.suffix = text_of ("07398f");
    assert_good (&request);
    resolve.suffix = repeated ('a', 32);
    assert_good (&request);
    const char *bad[] = {"", "7398f", "07398F", "07398g", "0739-8f", "' or 1=1 --"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        resolve.suffix = text_of (bad[i]);
        assert_bad (&request, TMQ_INVALID, "suffix: must be 6..32 lower-case hexadecimal digits");
    }
    resolve.suffix = repeated ('a', 33);
    assert_bad (&request, TMQ_INVALID, "suffix");
}

static void test_filters_of_list_and_count (void **state)
{
    (void) state;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Count count = TASKMQ__COUNT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_LIST);
    Taskmq__Request counting = request_of (TASKMQ__REQUEST__OP_COUNT);
    request.list = &list;
    counting.count = &count;
    assert_good (&request);
    assert_good (&counting);
    list.filter = count.filter = &filter;
    list.limit = 1000;
    assert_good (&request);
    list.limit = 1001;
    assert_bad (&request, TMQ_INVALID, "limit: must be in 0..1000");
    list.limit = 0;

    char *names[TMQ_FILTER_VALUES_MAX + 1];
    for (size_t i = 0; i < TMQ_FILTER_VALUES_MAX + 1; i++)
        names[i] = text_of ("name");
    filter.queues = filter.sessions = names;
    filter.n_queues = filter.n_sessions = TMQ_FILTER_VALUES_MAX;
    assert_good (&request);
    filter.n_queues++;
    assert_bad (&request, TMQ_TOO_LARGE, "queues: 65 of them, at most 64");
    filter.n_queues = 0;
    filter.n_sessions++;
    assert_bad (&counting, TMQ_TOO_LARGE, "sessions: 65 of them, at most 64");
    filter.n_sessions = 2;
    names[1] = text_of ("");
    assert_bad (&counting, TMQ_INVALID, "sessions: must match");
    filter.n_sessions = 0;
    filter.n_queues = 2;
    names[1] = text_of ("\xff");
    assert_bad (&counting, TMQ_INVALID, "queues: must be UTF-8 without NUL");
    filter.n_queues = 0;

    uint32_t statuses[TMQ_FILTER_VALUES_MAX + 1] = {1, 2, 3, 4, 5, 6};
    filter.statuses = statuses;
    filter.n_statuses = 6;
    assert_good (&request);
    filter.n_statuses = 7;
    assert_bad (&request, TMQ_INVALID, "statuses: 0 is no status");
    statuses[6] = 7;
    assert_bad (&request, TMQ_INVALID, "statuses: 7 is no status");
    filter.n_statuses = TMQ_FILTER_VALUES_MAX + 1;
    assert_bad (&request, TMQ_TOO_LARGE, "statuses: 65 of them");
    filter.n_statuses = 0;

    filter.created_until = INT64_MAX;
    assert_good (&request);
    filter.created_until++;
    assert_bad (&request, TMQ_INVALID, "created_until");
    filter.created_until = 0;
    filter.created_since = UINT64_MAX;
    assert_bad (&request, TMQ_INVALID, "created_since");
    filter.created_since = 0;

    ProtobufCBinaryData ids[] = {bytes_of (16)};
    filter.task_ids = ids;
    filter.n_task_ids = 1;
    assert_bad (&request, TMQ_UNSUPPORTED, "task_ids: only in the filter of a subscription");
    filter.n_task_ids = 0;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    label.key = text_of ("k");
    filter.labels = labels;
    filter.n_labels = 1;
    assert_good (&counting);
    label.key = text_of ("not a name");
    assert_bad (&counting, TMQ_INVALID, "labels.key");
    filter.n_labels = 0;
    char path[TMQ_TURN_PATH_BYTES_MAX + 2] = "";
    char *texts[TMQ_LABELS_MAX + 1];
    for (size_t i = 0; i < TMQ_LABELS_MAX + 1; i++)
        texts[i] = path;
    filter.files = filter.agents = texts;
    filter.n_files = 1;
    assert_bad (&counting, TMQ_INVALID, "files: must not be empty");
    memset (path, 'a', sizeof (path) - 2);
    assert_good (&counting);
    filter.n_files = TMQ_LABELS_MAX;
    assert_good (&counting);
    filter.n_files++;
    assert_bad (&counting, TMQ_TOO_LARGE, "files: 17 of them, at most 16");
    filter.n_files = 1;
    path[sizeof (path) - 2] = 'a';
    assert_bad (&counting, TMQ_TOO_LARGE, "files");
    filter.n_files = 0;
    filter.n_agents = 1;
    assert_bad (&counting, TMQ_TOO_LARGE, "agents");
    path[TMQ_TURN_AGENT_BYTES_MAX] = '\0';
    assert_good (&counting);
}

static void test_wait (void **state)
{
    (void) state;
    ProtobufCBinaryData ids[TMQ_WAIT_IDS_MAX + 1];
    Taskmq__Wait wait = TASKMQ__WAIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_WAIT);
    for (size_t i = 0; i < TMQ_WAIT_IDS_MAX + 1; i++)
        ids[i] = bytes_of (16);
    request.wait = &wait;
    wait.task_ids = ids;
    assert_bad (&request, TMQ_INVALID, "task_ids: at least 1");
    wait.n_task_ids = TMQ_WAIT_IDS_MAX;
    assert_good (&request);
    wait.n_task_ids++;
    assert_bad (&request, TMQ_TOO_LARGE, "task_ids: 1001 of them, at most 1000");
    wait.n_task_ids = 3;
    ids[2] = bytes_of (8);
    assert_bad (&request, TMQ_INVALID, "task_ids: must be 16 bytes, not 8");
}

static void test_cancel (void **state)
{
    (void) state;
    Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CANCEL);
    request.cancel = &cancel;
    assert_bad (&request, TMQ_INVALID, "task_id");
    cancel.task_id = bytes_of (16);
    cancel.message = repeated ('m', 1024);
    assert_good (&request);
    cancel.message = repeated ('m', 1025);
    assert_bad (&request, TMQ_TOO_LARGE, "message: 1025 bytes, at most 1024");
}

/* Subscriptions. */

static void test_subscribe (void **state)
{
    (void) state;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SUBSCRIBE);
    request.subscribe = &subscribe;
    assert_bad (&request, TMQ_INVALID, "subscription: must not be 0");
    subscribe.subscription = UINT64_MAX;
    subscribe.after_seq = 5;
    assert_good (&request);
    subscribe.since_time = 5;
    assert_bad (&request, TMQ_INVALID, "since_time: must be 0 beside after_seq");
    subscribe.after_seq = 0;
    assert_good (&request);
    subscribe.since_time = UINT64_MAX;
    assert_bad (&request, TMQ_INVALID, "since_time");
    subscribe.since_time = 0;

    subscribe.filter = &filter;
    filter.created_since = 1;
    assert_bad (&request, TMQ_INVALID, "created_since, created_until: not in a subscription");
    filter.created_since = 0;
    ProtobufCBinaryData ids[TMQ_FILTER_VALUES_MAX + 1];
    for (size_t i = 0; i < TMQ_FILTER_VALUES_MAX + 1; i++)
        ids[i] = bytes_of (16);
    filter.task_ids = ids;
    filter.n_task_ids = TMQ_FILTER_VALUES_MAX;
    assert_good (&request);
    filter.n_task_ids++;
    assert_bad (&request, TMQ_TOO_LARGE, "task_ids: 65 of them");
    filter.n_task_ids = 1;
    ids[0] = bytes_of (1);
    assert_bad (&request, TMQ_INVALID, "task_ids: must be 16 bytes");
    filter.n_task_ids = 0;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    filter.labels = labels;
    filter.n_labels = 1;
    assert_bad (&request, TMQ_INVALID, "labels.key: must match");
    label.key = text_of ("team");
    assert_good (&request);
    char *texts[] = {text_of ("planner")};
    filter.agents = texts;
    filter.n_agents = 1;
    assert_bad (&request, TMQ_UNSUPPORTED, "agents, files: not in a subscription");
}

static void test_credit_and_unsubscribe (void **state)
{
    (void) state;
    Taskmq__Credit credit = TASKMQ__CREDIT__INIT;
    Taskmq__Unsubscribe unsubscribe = TASKMQ__UNSUBSCRIBE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CREDIT);
    request.credit = &credit;
    assert_bad (&request, TMQ_INVALID, "subscription");
    credit.subscription = 1;
    assert_good (&request);
    request = request_of (TASKMQ__REQUEST__OP_UNSUBSCRIBE);
    request.unsubscribe = &unsubscribe;
    assert_bad (&request, TMQ_INVALID, "subscription");
    unsubscribe.subscription = 1;
    assert_good (&request);
}

/* Workers. */

static void test_register (void **state)
{
    (void) state;
    char *queues[TMQ_WORKER_QUEUES_MAX + 1];
    static Taskmq__Lease *leases[TMQ_CREDIT_MAX + 1];
    Taskmq__Lease lease = good_lease ();
    Taskmq__Register worker = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_REGISTER);
    for (size_t i = 0; i < TMQ_WORKER_QUEUES_MAX + 1; i++)
        queues[i] = text_of ("hash");
    for (size_t i = 0; i < TMQ_CREDIT_MAX + 1; i++)
        leases[i] = &lease;
    request.register_ = &worker;
    worker.worker_id = bytes_of (16);
    worker.name = text_of ("worker-1");
    worker.queues = queues;
    worker.n_queues = TMQ_WORKER_QUEUES_MAX;
    worker.capacity = TMQ_CREDIT_MAX;
    worker.leases = leases;
    worker.n_leases = TMQ_CREDIT_MAX;
    assert_good (&request);
    worker.n_leases++;
    assert_bad (&request, TMQ_TOO_LARGE, "leases: 1001 of them, at most 1000");
    worker.n_leases = 1;
    lease.attempt = 0;
    assert_bad (&request, TMQ_INVALID, "lease.attempt: must be in 1..4294967295");
    worker.n_leases = 0;
    worker.capacity++;
    assert_bad (&request, TMQ_INVALID, "capacity: must be in 0..1000");
    worker.capacity = 0;
    assert_good (&request);
    worker.n_queues++;
    assert_bad (&request, TMQ_TOO_LARGE, "queues: 65 of them, at most 64");
    worker.n_queues = 0;
    assert_bad (&request, TMQ_INVALID, "queues: at least 1");
    worker.n_queues = 1;
    queues[0] = text_of ("*");
    assert_bad (&request, TMQ_INVALID, "queues: must match");
    queues[0] = text_of ("hash");
    worker.name = text_of ("");
    assert_bad (&request, TMQ_INVALID, "name: must match");
    worker.name = text_of ("w");
    worker.worker_id = bytes_of (4);
    assert_bad (&request, TMQ_INVALID, "worker_id: must be 16 bytes, not 4");
}

static void test_worker_credit_renew_and_leave (void **state)
{
    (void) state;
    Taskmq__WorkerCredit credit = TASKMQ__WORKER_CREDIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_WORKER_CREDIT);
    request.worker_credit = &credit;
    assert_bad (&request, TMQ_INVALID, "worker_id");
    credit.worker_id = bytes_of (16);
    credit.capacity = TMQ_CREDIT_MAX;
    assert_good (&request);
    credit.capacity++;
    assert_bad (&request, TMQ_INVALID, "capacity");

    Taskmq__Lease lease = good_lease ();
    Taskmq__Lease *leases[] = {&lease};
    Taskmq__Renew renew = TASKMQ__RENEW__INIT;
    request = request_of (TASKMQ__REQUEST__OP_RENEW);
    request.renew = &renew;
    assert_bad (&request, TMQ_INVALID, "worker_id");
    renew.worker_id = bytes_of (16);
    assert_bad (&request, TMQ_INVALID, "leases: at least 1");
    renew.leases = leases;
    renew.n_leases = 1;
    assert_good (&request);
    lease.secret = bytes_of (0);
    assert_bad (&request, TMQ_INVALID, "lease.secret: must be 16 bytes, not 0");

    Taskmq__Leave leave = TASKMQ__LEAVE__INIT;
    request = request_of (TASKMQ__REQUEST__OP_LEAVE);
    request.leave = &leave;
    assert_bad (&request, TMQ_INVALID, "worker_id");
    leave.worker_id = bytes_of (16);
    assert_good (&request);
}

static void test_push (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    Taskmq__Push push = TASKMQ__PUSH__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_PUSH);
    request.push = &push;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    push.lease = &lease;
    assert_bad (&request, TMQ_INVALID, "status_message or progress");
    push.status_message = repeated ('s', 1024);
    assert_good (&request);
    push.status_message = repeated ('s', 1025);
    assert_bad (&request, TMQ_TOO_LARGE, "status_message: 1025 bytes");
    push.status_message = text_of ("");
    push.progress = &progress;
    assert_good (&request);
    progress.unit = repeated ('u', 32);
    progress.message = repeated ('m', 1024);
    assert_good (&request);
    progress.unit = repeated ('u', 33);
    assert_bad (&request, TMQ_TOO_LARGE, "progress.unit: 33 bytes, at most 32");
    progress.unit = text_of ("");
    progress.message = repeated ('m', 1025);
    assert_bad (&request, TMQ_TOO_LARGE, "progress.message: 1025 bytes");
    progress.message = text_of ("");
    const double bad[] = {NAN, -NAN, INFINITY, -INFINITY, -1, -5e-324};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        progress.done = bad[i];
        assert_bad (&request, TMQ_INVALID, "progress.done: must be a finite number from 0 up");
        progress.done = -0.0;
        progress.total = bad[i];
        assert_bad (&request, TMQ_INVALID, "progress.total: must be a finite number from 0 up");
        progress.total = 1e308;
        assert_good (&request);
    }
}

static void test_started_and_cancel_ack (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Started started = TASKMQ__STARTED__INIT;
    Taskmq__CancelAck ack = TASKMQ__CANCEL_ACK__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_STARTED);
    request.started = &started;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    started.lease = &lease;
    assert_good (&request);
    lease.task_id = bytes_of (3);
    assert_bad (&request, TMQ_INVALID, "lease.task_id: must be 16 bytes, not 3");
    request = request_of (TASKMQ__REQUEST__OP_CANCEL_ACK);
    request.cancel_ack = &ack;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    lease = good_lease ();
    ack.lease = &lease;
    assert_good (&request);
}

static void test_ask (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Ask ask = TASKMQ__ASK__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ASK);
    request.ask = &ask;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    ask.lease = &lease;
    assert_bad (&request, TMQ_INVALID, "request: must be JSON");
    ask.request = text_of ("{\"method\":\"elicitation/create\"}");
    assert_good (&request);
    ask.request = text_of ("{");
    assert_bad (&request, TMQ_INVALID, "request: must be JSON");
    ask.request = repeated ('1', TMQ_QUESTION_BYTES_MAX);
    ask.key = repeated ('k', TMQ_QUESTION_KEY_BYTES_MAX);
    assert_good (&request);
    ask.request = repeated ('1', TMQ_QUESTION_BYTES_MAX + 1);
    assert_bad (&request, TMQ_TOO_LARGE, "request: 16385 bytes, at most 16384");
    ask.request = text_of ("1");
    ask.key = repeated ('k', TMQ_QUESTION_KEY_BYTES_MAX + 1);
    assert_bad (&request, TMQ_TOO_LARGE, "key: 257 bytes");
    ask.key = text_of ("\xff");
    assert_bad (&request, TMQ_INVALID, "key: must be UTF-8");
    ask.key = text_of ("");
    ask.default_answer = text_of ("1");
    assert_bad (&request, TMQ_INVALID, "default_answer: only with has_default");
    ask.has_default = true;
    assert_good (&request);
    ask.default_answer = text_of ("red");
    assert_bad (&request, TMQ_INVALID, "default_answer: must be JSON");
    ask.default_text = true;
    assert_good (&request);
    ask.deadline_ms = (uint64_t) TMQ_TTL_MS_MAX + 1;
    assert_bad (&request, TMQ_INVALID, "deadline_ms: must be in");
}

static void test_answer_and_inbox (void **state)
{
    (void) state;
    Taskmq__AnswerItem item = TASKMQ__ANSWER_ITEM__INIT;
    Taskmq__AnswerItem *items[TMQ_QUESTIONS_OPEN_MAX + 1];
    Taskmq__Answer answer = TASKMQ__ANSWER__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ANSWER);
    for (size_t i = 0; i <= TMQ_QUESTIONS_OPEN_MAX; i++)
        items[i] = &item;
    request.answer = &answer;
    answer.items = items;
    assert_bad (&request, TMQ_INVALID, "task_id");
    answer.task_id = bytes_of (16);
    assert_bad (&request, TMQ_INVALID, "items: at least 1");
    answer.n_items = TMQ_QUESTIONS_OPEN_MAX;
    assert_good (&request);
    answer.n_items++;
    assert_bad (&request, TMQ_TOO_LARGE, "items: 65 of them, at most 64");
    answer.n_items = 2;
    item.bytes = TMQ_ANSWER_BYTES_MAX;
    assert_int_equal (judge (&request, 2 * TMQ_ANSWER_BYTES_MAX).code, TMQ_OK);
    item.bytes++;
    assert_bad (&request, TMQ_TOO_LARGE, "items.bytes: 65537, at most 65536");
    Taskmq__Inbox inbox = TASKMQ__INBOX__INIT;
    char *bad[] = {text_of ("no name")};
    request = request_of (TASKMQ__REQUEST__OP_INBOX);
    request.inbox = &inbox;
    assert_good (&request);
    inbox.task_id = bytes_of (15);
    assert_bad (&request, TMQ_INVALID, "task_id");
    inbox.task_id = bytes_of (16);
    inbox.limit = 1001;
    assert_bad (&request, TMQ_INVALID, "limit: must be in 0..1000");
    inbox.limit = 1000;
    inbox.queues = bad;
    inbox.n_queues = 1;
    assert_bad (&request, TMQ_INVALID, "queues: must match");
    inbox.n_queues = 0;
    inbox.sessions = bad;
    inbox.n_sessions = 1;
    assert_bad (&request, TMQ_INVALID, "sessions: must match");
}

static void test_complete (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Complete complete = TASKMQ__COMPLETE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_COMPLETE);
    request.complete = &complete;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    complete.lease = &lease;
    complete.result_type = repeated ('t', 256);
    assert_good (&request);
    complete.result_bytes = TMQ_FRAME_BYTES_MAX;
    assert_int_equal (judge (&request, TMQ_FRAME_BYTES_MAX).code, TMQ_OK);
    assert_bad (&request, TMQ_INVALID, "mention 262144 bytes, the second frame has 0");
    complete.result_bytes++;
    assert_bad (&request, TMQ_TOO_LARGE, "result_bytes: 262145, at most 262144");
    complete.result_bytes = 0;
    complete.result_type = repeated ('t', 257);
    assert_bad (&request, TMQ_TOO_LARGE, "result_type");
}

static void test_fail (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Fail fail = TASKMQ__FAIL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_FAIL);
    request.fail = &fail;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    fail.lease = &lease;
    fail.message = repeated ('m', TMQ_ERROR_MESSAGE_BYTES_MAX);
    fail.data = text_of ("[1]");
    fail.code = -33000;
    assert_good (&request);
    fail.code = -33100;
    assert_good (&request);
    fail.code = -33001;
    assert_bad (&request, TMQ_INVALID, "code: -33099..-33001 are the broker's own");
    fail.code = -33099;
    assert_bad (&request, TMQ_INVALID, "code");
    fail.code = 1;
    fail.data = text_of ("no");
    assert_bad (&request, TMQ_INVALID, "data: must be JSON");
    fail.data = repeated ('1', TMQ_ERROR_DATA_INLINE_MAX);
    assert_good (&request);
    fail.data = repeated ('1', TMQ_ERROR_DATA_INLINE_MAX + 1);
    assert_bad (&request, TMQ_TOO_LARGE, "data: 16385 bytes");
    fail.data = text_of ("[1]");
    fail.data_bytes = 3;
    assert_bad (&request, TMQ_INVALID, "data_bytes: beside data");
    fail.data = text_of ("");
    fail.data_bytes = TMQ_ERROR_DATA_BYTES_MAX;
    assert_int_equal (judge (&request, TMQ_ERROR_DATA_BYTES_MAX).code, TMQ_OK);
    fail.data_bytes = TMQ_ERROR_DATA_BYTES_MAX + 1;
    assert_bad (&request, TMQ_TOO_LARGE, "data_bytes: 65537, at most 65536");
    fail.data_bytes = 100;
    fail.result_bytes = TMQ_FRAME_BYTES_MAX - 100;
    assert_int_equal (judge (&request, TMQ_FRAME_BYTES_MAX).code, TMQ_OK);
    fail.result_bytes++;
    assert_bad (&request, TMQ_TOO_LARGE, "result_bytes and data_bytes");
    fail.result_bytes = fail.data_bytes = 0;
    fail.message = repeated ('m', TMQ_ERROR_MESSAGE_BYTES_MAX + 1);
    assert_bad (&request, TMQ_TOO_LARGE, "message");
    fail.message = text_of ("");
    fail.result_bytes = 3;
    assert_int_equal (judge (&request, 3).code, TMQ_OK);
    fail.result_bytes = TMQ_FRAME_BYTES_MAX + 1;
    assert_bad (&request, TMQ_TOO_LARGE, "result_bytes");
}

static void test_artifact (void **state)
{
    (void) state;
    static const char *const bad[] = {".",   "..",     ".hidden", "a/b",  "/etc/passwd",
                                      "a\n", "\x1b[m", "\x7f",    "a\tb", "\xc2\x9b"};
    static const char *const good[] = {"a",    "a b.txt", "\xc3\xa4.png", "-",
                                       "a..b", "\\",      "\xc2\xa0"};
    uint8_t hash[TMQ_BLOB_HASH_BYTES] = {1};
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    Taskmq__Lease lease = good_lease ();
    Taskmq__ArtifactPut put = TASKMQ__ARTIFACT_PUT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ARTIFACT);
    request.artifact = &put;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    put.lease = &lease;
    assert_bad (&request, TMQ_INVALID, "name: must not be empty");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put.name = text_of (bad[i]);
        assert_bad (&request, TMQ_INVALID, "name: must not");
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        put.name = text_of (good[i]);
        assert_good (&request);
    }
    put.name = repeated ('n', TMQ_ARTIFACT_NAME_BYTES_MAX);
    assert_good (&request);
    put.name = repeated ('n', TMQ_ARTIFACT_NAME_BYTES_MAX + 1);
    assert_bad (&request, TMQ_INVALID, "name: has more than 128 bytes");
    put.name = text_of ("a");
    put.type = repeated ('t', TMQ_CONTENT_TYPE_BYTES_MAX + 1);
    assert_bad (&request, TMQ_TOO_LARGE, "type: 257 bytes, at most 256");
    put.type = text_of ("");
    put.bytes = 3;
    assert_int_equal (judge (&request, 3).code, TMQ_OK);
    put.bytes = TMQ_FRAME_BYTES_MAX + 1;
    assert_bad (&request, TMQ_TOO_LARGE, "bytes");
    put.bytes = 0;
    put.blob = &blob;
    assert_bad (&request, TMQ_INVALID, "blob");
    blob.hash = (ProtobufCBinaryData){sizeof hash, hash};
    blob.bytes = TMQ_FRAME_BYTES_MAX + 1;
    assert_good (&request);
    put.bytes = 1;
    assert_bad (&request, TMQ_INVALID, "blob: must not stand beside bytes");
}

static void test_drop_of_a_blob (void **state)
{
    (void) state;
    uint8_t hash[TMQ_BLOB_HASH_BYTES] = {1};
    Taskmq__Blob blob = TASKMQ__BLOB__INIT;
    Taskmq__BlobDrop drop = TASKMQ__BLOB_DROP__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_BLOB_DROP);
    request.blob_drop = &drop;
    assert_bad (&request, TMQ_INVALID, "blob: ");
    drop.blob = &blob;
    blob.hash = (ProtobufCBinaryData){sizeof hash - 1, hash};
    blob.bytes = TMQ_FRAME_BYTES_MAX + 1;
    assert_bad (&request, TMQ_INVALID, "blob: ");
    blob.hash.len++;
    assert_good (&request);
    blob.bytes = 1;
    assert_bad (&request, TMQ_INVALID, "blob: 1 bytes are no blob");
}

static void test_read_of_an_artifact (void **state)
{
    (void) state;
    uint8_t hash[TMQ_BLOB_HASH_BYTES] = {1};
    Taskmq__BlobRead read = TASKMQ__BLOB_READ__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_BLOB_READ);
    request.blob_read = &read;
    read.task_id = bytes_of (16);
    read.part = 3;
    assert_bad (&request, TMQ_INVALID, "name: must not be empty");
    read.name = text_of ("../a");
    assert_bad (&request, TMQ_INVALID, "name: must not");
    read.name = text_of ("a");
    assert_good (&request);
    read.hash = (ProtobufCBinaryData){31, hash};
    assert_bad (&request, TMQ_INVALID, "hash: must have 32 bytes");
    read.hash.len = 32;
    assert_good (&request);
    read.part = 2;
    assert_bad (&request, TMQ_INVALID, "name, hash: only of an artifact");
    read.part = 4;
    read.attempt = 1;
    assert_bad (&request, TMQ_INVALID, "name, hash: only of an artifact");
    read.name = text_of ("");
    read.hash.len = 0;
    assert_good (&request);
    read.attempt = 0;
    assert_bad (&request, TMQ_INVALID, "attempt: of a late success");
    read.part = 1;
    assert_good (&request);
    read.attempt = 1;
    assert_bad (&request, TMQ_INVALID, "attempt: of a late success, and only of that");
    read.attempt = 0;
    read.part = 5;
    assert_bad (&request, TMQ_INVALID, "part: must be in 1..4");
}

static void test_release (void **state)
{
    (void) state;
    Taskmq__Lease lease = good_lease ();
    Taskmq__Release release = TASKMQ__RELEASE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_RELEASE);
    request.release = &release;
    assert_bad (&request, TMQ_INVALID, "lease: is missing");
    release.lease = &lease;
    release.delay_ms = TMQ_RELEASE_DELAY_MS_MAX;
    assert_good (&request);
    release.delay_ms++;
    assert_bad (&request, TMQ_INVALID, "delay_ms: must be in 0..86400000");
    release.delay_ms = 1;
    release.no_delay = true;
    assert_bad (&request, TMQ_INVALID, "delay_ms: must be 0 beside no_delay");
    release.delay_ms = 0;
    assert_good (&request);
}

static void test_schedules (void **state)
{
    (void) state;
    uint8_t id[16] = {1};
    Taskmq__TaskSpec task = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Schedule schedule = TASKMQ__SCHEDULE__INIT;
    Taskmq__SchedulePut put = TASKMQ__SCHEDULE_PUT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SCHEDULE_PUT);
    request.schedule_put = &put;
    assert_bad (&request, TMQ_INVALID, "schedule.task");
    put.schedule = &schedule;
    assert_bad (&request, TMQ_INVALID, "schedule.task");
    schedule.task = &task;
    assert_bad (&request, TMQ_INVALID, "schedule.name");
    schedule.name = text_of ("nightly");
    assert_bad (&request, TMQ_INVALID, "queue");
    task.queue = text_of ("q");
    assert_good (&request); /* the calendar is the broker's to judge */
    task.task_id = (ProtobufCBinaryData){16, id};
    assert_bad (&request, TMQ_INVALID, "schedule.task.task_id");
    task.task_id.len = 0;
    task.dedup_key = text_of ("k");
    assert_bad (&request, TMQ_INVALID, "schedule.task.dedup_key");
    task.dedup_key = text_of ("");
    schedule.overlap = 3;
    assert_bad (&request, TMQ_INVALID, "schedule.overlap");
    schedule.overlap = 2;
    schedule.missed = 3;
    assert_bad (&request, TMQ_INVALID, "schedule.missed");
    schedule.missed = 2;
    schedule.until = UINT64_MAX;
    assert_bad (&request, TMQ_INVALID, "schedule.until");
    schedule.until = 0;
    task.payload_bytes = TMQ_SCHEDULE_PAYLOAD_BYTES_MAX + 1;
    assert_bad (&request, TMQ_INVALID, "schedule.task.payload_bytes");
    Taskmq__ScheduleName name = TASKMQ__SCHEDULE_NAME__INIT;
    request = request_of (TASKMQ__REQUEST__OP_SCHEDULE_SHOW);
    request.schedule_show = &name;
    assert_bad (&request, TMQ_INVALID, "name");
    name.name = text_of ("nightly");
    name.coming = TMQ_SCHEDULE_COMING_MAX + 1;
    assert_bad (&request, TMQ_INVALID, "coming");
    name.coming--;
    assert_good (&request);
}

static void test_values (void **state)
{
    (void) state;
    char key[TMQ_ENTRY_NAME_BYTES_MAX + 2];
    Taskmq__ValuePut put = TASKMQ__VALUE_PUT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_VALUE_PUT);
    request.value_put = &put;
    memset (key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    assert_bad (&request, TMQ_INVALID, "key");
    put.key = key;
    assert_bad (&request, TMQ_TOO_LARGE, "key");
    key[sizeof key - 2] = '\0';
    assert_good (&request);
    put.session = text_of ("a b");
    assert_bad (&request, TMQ_INVALID, "session");
    put.session = text_of ("");
    put.body_bytes = TMQ_VALUE_BYTES_MAX + 1;
    assert_bad (&request, TMQ_TOO_LARGE, "body_bytes");
    Taskmq__ValueRemove remove = TASKMQ__VALUE_REMOVE__INIT;
    Taskmq__Request removal = request_of (TASKMQ__REQUEST__OP_VALUE_REMOVE);
    removal.value_remove = &remove;
    remove.key = key;
    assert_good (&removal);
    remove.if_version_plus_1 = 1;
    assert_bad (&removal, TMQ_INVALID, "if_version_plus_1");
    Taskmq__ValueList list = TASKMQ__VALUE_LIST__INIT;
    Taskmq__Request listing = request_of (TASKMQ__REQUEST__OP_VALUE_LIST);
    listing.value_list = &list;
    assert_good (&listing);
    list.limit = TMQ_LIST_LIMIT_MAX + 1;
    assert_bad (&listing, TMQ_INVALID, "limit");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_values),
        cmocka_unit_test (test_schedules),
        cmocka_unit_test (test_hello),
        cmocka_unit_test (test_hello_is_alone),
        cmocka_unit_test (test_requests_for_one_task),
        cmocka_unit_test (test_resolve),
        cmocka_unit_test (test_filters_of_list_and_count),
        cmocka_unit_test (test_wait),
        cmocka_unit_test (test_cancel),
        cmocka_unit_test (test_subscribe),
        cmocka_unit_test (test_credit_and_unsubscribe),
        cmocka_unit_test (test_register),
        cmocka_unit_test (test_worker_credit_renew_and_leave),
        cmocka_unit_test (test_push),
        cmocka_unit_test (test_started_and_cancel_ack),
        cmocka_unit_test (test_ask),
        cmocka_unit_test (test_answer_and_inbox),
        cmocka_unit_test (test_complete),
        cmocka_unit_test (test_fail),
        cmocka_unit_test (test_release),
        cmocka_unit_test (test_artifact),
        cmocka_unit_test (test_drop_of_a_blob),
        cmocka_unit_test (test_read_of_an_artifact),
    };
    return cmocka_run_group_tests (tests, judge_setup, judge_teardown);
}
