/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* ask and take_answers of workers, answer and inbox of clients.
 *
 * An ask needs no memory of its request id: the key and the question say that it is a repeat, also
 * by a later attempt that begins from scratch and asks the same again. */
#include "core/requests/ask.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/outbox.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/get.h"
#include "core/requests/marks.h"
#include "core/requests/quota.h"
#include "core/requests/report.h"
#include "core/requests/room.h"
#include "core/tasks/asking.h"
#include "core/tasks/journal.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"
#include "core/wire/pack.h"
#include "ids.h"
#include "json.h"
#include "types.h"

static const char *key_of (const char *key)
{
    return key[0] == '\0' ? "input" : key;
}

/* ask. */

/* White space makes no other question: an import brings one without it. */
static bool is_same_json (const char *a, const char *b)
{
    bytes_t left = BYTES_INIT;
    bytes_t right = BYTES_INIT;
    json_writer_t to_left = {&left, false};
    json_writer_t to_right = {&right, false};
    if (strcmp (a, b) == 0)
        return true;
    json_write_raw (&to_left, a, strlen (a));
    json_write_raw (&to_right, b, strlen (b));
    bool same = !left.failed && !right.failed && left.length == right.length &&
                memcmp (left.data, right.data, left.length) == 0;
    bytes_free (&left);
    bytes_free (&right);
    return same;
}

/* It is the question that the task has under this key. */
static bool is_same (const question_t *question, const Taskmq__Ask *ask)
{
    if (!is_same_json (question->request, ask->request) ||
        question->has_default != (bool) ask->has_default ||
        question->default_text != (bool) ask->default_text)
        return false;
    return ask->default_text ? strcmp (question->default_answer, ask->default_answer) == 0
                             : is_same_json (question->default_answer, ask->default_answer);
}

static void answer_asked (call_t *call, const question_t *question, bool existing)
{
    Taskmq__Asked asked = TASKMQ__ASKED__INIT;
    asked.deadline = (uint64_t) question->deadline;
    asked.existing = existing;
    asked.answered = question->answer_number > 0;
    bytes_mark_t mark;
    bytes_t *out = reply_open (call->requests, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_ASKED, &asked.base);
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}

static bool refuse_question (call_t *call, const asking_t *asking, size_t bytes)
{
    const tasks_t *tasks = call->requests->tasks;
    if (asking != NULL && asking->open >= TMQ_QUESTIONS_OPEN_MAX)
        reply_limit (call, "open questions of a task", TMQ_QUESTIONS_OPEN_MAX);
    else if (asking != NULL && asking->count >= TMQ_QUESTIONS_MAX)
        reply_limit (call, "questions of a task", TMQ_QUESTIONS_MAX);
    else if (!questions_have_room (tasks, bytes))
        reply_limit (call, "bytes of questions and answers",
                     tasks->base->config.questions_bytes_max);
    else
        return false;
    return true;
}

static question_t *add_question (call_t *call, task_t *task, const char *key)
{
    requests_t *self = call->requests;
    const Taskmq__Ask *ask = call->request->ask;
    question_t spec = {.key = (char *) key,
                       .request = ask->request,
                       .default_answer = ask->default_answer,
                       .worker = (char *) name_text (task->detail->worker),
                       .has_default = ask->has_default,
                       .default_text = ask->default_text,
                       .by = ""};
    int64_t deadline_ms =
        ask->deadline_ms == 0 ? TMQ_ANSWER_MS_DEFAULT : (int64_t) ask->deadline_ms;
    cause_t cause = {.actor = name_text (call->link->identity), .message = key};
    self->tasks->open.inputs++;
    return asking_ask (self->tasks, task, &spec, deadline_ms, &cause);
}

void on_ask (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Ask *ask = call->request->ask;
    const char *key = key_of (ask->key);
    task_t *task = report_begin (call, ask->lease);
    if (task == NULL)
        return;
    report_started (self, task);
    const asking_t *asking = asking_find (self->tasks, call->link->space, task->id.bytes);
    const question_t *question = question_find (asking, key);
    if (question != NULL && !is_same (question, ask)) {
        reply_code (call, TMQ_CONFLICT, "the task has asked something else under this key");
        return;
    }
    if (question != NULL) {
        answer_asked (call, question, true);
        return;
    }
    size_t bytes = strlen (key) + strlen (ask->request) + strlen (ask->default_answer);
    if (!refuse_question (call, asking, bytes) && !room_refused_at_once (call))
        answer_asked (call, add_question (call, task, key), false);
}

/* take_answers. */

enum {
    ANSWER_PAGE_ANSWERS = 1,
    ANSWER_PAGE_BODY = 2,
    ANSWER_PAGE_MORE = 3,
    PAGE_BODY_BYTES = 192 * 1024, /* of the second frame: room for others beside it */
    PAGE_ANSWERS_MAX = 64         /* of 256 bytes of key and some names: 32 KiB */
};

/* The question that got the task's answer of this number. */
static const question_t *answered_as (const asking_t *asking, uint32_t number)
{
    for (size_t i = 0; i < asking->count; i++)
        if (asking->list[i]->answer_number == number)
            return asking->list[i];
    return NULL;
}

static void pack_given (bytes_t *out, const question_t *question)
{
    Taskmq__GivenAnswer given = TASKMQ__GIVEN_ANSWER__INIT;
    given.number = question->answer_number;
    given.key = question->key;
    given.text = question->answer_text;
    given.bytes = (uint32_t) buf_length (question->answer);
    given.by = question->by;
    given.at = (uint64_t) question->answered_at;
    given.by_default = question->by_default;
    bytes_append_message (out, ANSWER_PAGE_ANSWERS, &given.base);
}

/* Which answers behind `after` go into one page: up to which, and how many bytes they have. */
static uint32_t choose_answers (const asking_t *asking, uint32_t after, size_t *bytes)
{
    uint32_t upto = after;
    *bytes = 0;
    while (upto < asking->answers && upto - after < PAGE_ANSWERS_MAX) {
        const question_t *question = answered_as (asking, upto + 1);
        size_t length = question == NULL ? 0 : buf_length (question->answer);
        if (*bytes > 0 && *bytes + length > PAGE_BODY_BYTES)
            break;
        *bytes += length;
        upto++;
    }
    return upto;
}

static void answer_given (call_t *call, const asking_t *asking)
{
    requests_t *self = call->requests;
    size_t bytes = 0;
    uint32_t after = asking == NULL ? 0 : asking->seen;
    uint32_t upto = asking == NULL ? 0 : choose_answers (asking, after, &bytes);
    buf_t *body = bytes == 0 ? NULL : buf_new_uninitialised (bytes);
    uint8_t *at = body == NULL ? NULL : buf_mutable (body);
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_ANSWER_PAGE);
    for (uint32_t number = after + 1; number <= upto; number++) {
        const question_t *question = answered_as (asking, number);
        if (question == NULL)
            continue;
        size_t length = buf_length (question->answer);
        if (at != NULL && length > 0) { /* there is room for the sum of them */
            memcpy (at, buf_bytes (question->answer), length);
            at += length;
        }
        pack_given (out, question);
    }
    bytes_append_uint (out, ANSWER_PAGE_BODY, bytes);
    bytes_append_uint (out, ANSWER_PAGE_MORE, asking != NULL && upto < asking->answers);
    bytes_close (out, page);
    reply_close (self, call->link, mark, journal_batch (self->tasks), body);
    buf_drop (body);
}

void on_take_answers (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__TakeAnswers *request = call->request->take_answers;
    const task_t *task = report_begin (call, request->lease);
    if (task == NULL)
        return;
    asking_t *asking = asking_find (self->tasks, call->link->space, task->id.bytes);
    if (asking != NULL)
        asking->seen = request->seen > asking->answers ? asking->answers : (uint32_t) request->seen;
    answer_given (call, asking);
}

/* The holder is told once of what is new; its renewals tell it again. */
void answers_follow (requests_t *self, const fact_t *fact)
{
    const task_t *task = fact->task;
    if ((fact->input != INPUT_ANSWER && fact->input != INPUT_ANSWER_SOME) || !task->leased)
        return;
    const worker_t *worker = task->detail->holder;
    asking_t *asking = asking_find (self->tasks, task->queue->space, task->id.bytes);
    if (asking == NULL || asking->told == asking->answers || worker->link == NULL)
        return;
    asking->told = asking->answers;
    Taskmq__AnswerNotice notice = TASKMQ__ANSWER_NOTICE__INIT;
    notice.worker_id = (ProtobufCBinaryData){sizeof (worker->id), (uint8_t *) worker->id};
    notice.task_id = (ProtobufCBinaryData){sizeof (task->id), (uint8_t *) task->id.bytes};
    notice.attempt = task->attempt;
    notice.answers = asking->answers;
    bytes_clear (&self->peers->scratch);
    bytes_append_message (&self->peers->scratch, BROKER_ANSWERS, &notice.base);
    outbox_add (self->peers, worker->link, ITEM_ANSWERS, journal_batch (self->tasks),
                &self->peers->scratch, NULL);
}

/* answer. */

typedef struct judged {
    tmq_code_t code;
    const char *text; /* NULL: the code's own. Of LIMIT: of what there is too much */
} judged_t;

static bool is_answered_so (const question_t *question, const uint8_t *bytes, size_t length,
                            bool text)
{
    return question->answer_text == text && buf_length (question->answer) == length &&
           (length == 0 || memcmp (buf_bytes (question->answer), bytes, length) == 0);
}

static judged_t judge_content (const Taskmq__AnswerItem *item, const uint8_t *bytes)
{
    if (!utf8_is_valid (bytes, item->bytes))
        return (judged_t){TMQ_INVALID, "the answer must be UTF-8 without NUL"};
    if (!item->text && !json_text_is_valid ((const char *) bytes, item->bytes))
        return (judged_t){TMQ_INVALID, "the answer must be JSON, or be marked as text"};
    return (judged_t){TMQ_OK, NULL};
}

static judged_t answer_one (call_t *call, task_t *task, const Taskmq__AnswerItem *item,
                            const uint8_t *bytes)
{
    requests_t *self = call->requests;
    const char *key = key_of (item->key);
    question_t *question =
        question_find (asking_find (self->tasks, call->link->space, task->id.bytes), key);
    judged_t content = judge_content (item, bytes);
    if (question == NULL)
        return (judged_t){TMQ_NOT_FOUND, "the task has no question with this key"};
    if (content.code != TMQ_OK)
        return content;
    bool answered = question->answer_number > 0;
    if (answered && self->base->config.planted_bug == ENGINE_BUG_ANSWER_TWICE)
        return (judged_t){TMQ_OK, NULL};
    if (answered && is_answered_so (question, bytes, item->bytes, item->text))
        return (judged_t){TMQ_OK, NULL};
    if (answered)
        return (judged_t){TMQ_CONFLICT, question->by_default
                                            ? "the deadline has passed, and its default counts"
                                            : "it is answered already, in another way"};
    if (!questions_have_room (self->tasks, item->bytes))
        return (judged_t){TMQ_LIMIT, "bytes of questions and answers"};
    cause_t cause = {.actor = name_text (call->link->identity), .message = key};
    buf_t *answer = item->bytes == 0 ? NULL : buf_new (bytes, item->bytes);
    asking_answer (self->tasks, question, answer, item->text, &cause);
    buf_drop (answer);
    return (judged_t){TMQ_OK, NULL};
}

enum { ANSWERED_ITEMS = 1, ANSWERED_STATUS = 2 };

static void answer_answered (call_t *call, bytes_t *packed, tmq_status_t status)
{
    requests_t *self = call->requests;
    bytes_append_uint (packed, ANSWERED_STATUS, status);
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_ANSWERED, packed->data, packed->length);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

/* A repeat behind the end of the task: all of it counted. */
static void answer_again (call_t *call, tmq_status_t status)
{
    const Taskmq__Answer *request = call->request->answer;
    bytes_t packed = BYTES_INIT;
    for (size_t i = 0; i < request->n_items; i++) {
        Taskmq__AnsweredItem answered = TASKMQ__ANSWERED_ITEM__INIT;
        answered.key = (char *) key_of (request->items[i]->key);
        bytes_append_message (&packed, ANSWERED_ITEMS, &answered.base);
    }
    answer_answered (call, &packed, status);
    bytes_free (&packed);
}

static void answer_all (call_t *call, const found_t *found)
{
    task_t *task = found->task;
    requests_t *self = call->requests;
    const Taskmq__Answer *request = call->request->answer;
    const uint8_t *bytes = call->body;
    char limit[LIMIT_TEXT_SIZE];
    bytes_t packed = BYTES_INIT;
    bool all_count = true;
    bool some_count = false;
    self->tasks->open.inputs++;
    for (size_t i = 0; i < request->n_items; i++) {
        const Taskmq__AnswerItem *item = request->items[i];
        judged_t judged = answer_one (call, task, item, bytes);
        Taskmq__AnsweredItem answered = TASKMQ__ANSWERED_ITEM__INIT;
        answered.key = (char *) key_of (item->key);
        answered.code = judged.code;
        answered.retry_after_ms = judged.code == TMQ_LIMIT ? LIMIT_RETRY_MS : 0;
        all_count = all_count && judged.code == TMQ_OK;
        some_count = some_count || judged.code == TMQ_OK;
        if (judged.code != TMQ_OK)
            answered.text =
                (char *) (judged.text == NULL ? code_text ((int) judged.code) : judged.text);
        if (judged.code == TMQ_LIMIT) {
            limit_text (limit, judged.text, self->base->config.questions_bytes_max);
            answered.text = limit;
        }
        bytes_append_message (&packed, ANSWERED_ITEMS, &answered.base);
        bytes += item->bytes;
    }
    if (some_count)
        deeds_task (call, DEED_ANSWER, found);
    if (all_count) {
        mark_keep (call, task, MARK_ANSWERED);
        journal_touch (self->tasks, task);
    }
    answer_answered (call, &packed, task->status);
    bytes_free (&packed);
}

void on_answer (call_t *call)
{
    found_t found;
    if (!get_find (call, &call->request->answer->task_id, RIGHT_CANCEL, &found))
        return;
    tmq_status_t status = found_status (&found);
    if (status_is_terminal (status) && mark_is_repeat (call, &found, MARK_ANSWERED)) {
        answer_again (call, status);
    } else if (status_is_terminal (status)) {
        get_answer_wrong_status (call, "its questions ended with it", status);
    } else {
        assert (found.task != NULL); /* what is not over is in memory */
        answer_all (call, &found);
    }
}

/* inbox. */

enum { INBOX_PAGE_QUESTIONS = 1, INBOX_PAGE_NEXT = 2 };

/* A walk over open questions. */
typedef struct walk {
    const Taskmq__Inbox *request;
    const asking_t *asking; /* of one task; NULL: all of the namespace */
    const space_t *space;
    size_t cursor; /* UNANSWERED_START: nothing was looked at */
} walk_t;

static question_t *walk_task (walk_t *walk)
{
    for (size_t i = walk->cursor == UNANSWERED_START ? 0 : walk->cursor; i < walk->asking->count;
         i++) {
        question_t *question = walk->asking->list[i];
        if (question->answer_number > 0 || question->number <= walk->request->after)
            continue;
        walk->cursor = i + 1;
        return question;
    }
    return NULL;
}

static question_t *walk_next (walk_t *walk)
{
    return walk->asking != NULL
               ? walk_task (walk)
               : unanswered_next (&walk->space->unanswered, walk->request->after, &walk->cursor);
}

/* What is wanted, by what is in memory of it: names that nothing has are left out, so a look
 * compares no strings. */
typedef struct wanted {
    const queue_t *queues[TMQ_FILTER_VALUES_MAX];
    const session_t *sessions[TMQ_FILTER_VALUES_MAX]; /* NULL: tasks without one */
    size_t queues_count;
    size_t sessions_count;
} wanted_t;

static void wanted_read (const call_t *call, wanted_t *out)
{
    const Taskmq__Inbox *request = call->request->inbox;
    const space_t *space = call->link->space;
    out->queues_count = out->sessions_count = 0;
    for (size_t i = 0; i < request->n_queues && i < TMQ_FILTER_VALUES_MAX; i++) {
        const queue_t *queue = queue_find (call->requests->tasks, space, request->queues[i]);
        if (queue != NULL)
            out->queues[out->queues_count++] = queue;
    }
    for (size_t i = 0; i < request->n_sessions && i < TMQ_FILTER_VALUES_MAX; i++) {
        const char *name = request->sessions[i];
        const session_t *session = name[0] == '\0' ? NULL : session_find (space, name);
        if (session != NULL || name[0] == '\0')
            out->sessions[out->sessions_count++] = session;
    }
}

static bool is_of_queues (const wanted_t *wanted, const queue_t *queue)
{
    for (size_t i = 0; i < wanted->queues_count; i++)
        if (wanted->queues[i] == queue)
            return true;
    return false;
}

static bool is_of_sessions (const wanted_t *wanted, const session_t *session)
{
    for (size_t i = 0; i < wanted->sessions_count; i++)
        if (wanted->sessions[i] == session)
            return true;
    return false;
}

static bool is_wanted (call_t *call, const wanted_t *wanted, const task_t *task)
{
    const Taskmq__Inbox *request = call->request->inbox;
    const char *holder = task->leased ? name_text (task->detail->identity) : NULL;
    return (request->n_queues == 0 || is_of_queues (wanted, task->queue)) &&
           (request->n_sessions == 0 || is_of_sessions (wanted, task->session)) &&
           access_sees (&call->link->access, task->queue->name, name_text (task->owner), holder,
                        RIGHT_READ | RIGHT_OBSERVE);
}

static void pack_question (call_t *call, bytes_t *out, const question_t *question)
{
    const task_t *task = question->asking->task;
    bool bodies = access_sees (&call->link->access, task->queue->name, name_text (task->owner),
                               NULL, RIGHT_BODY);
    Taskmq__Question packed = TASKMQ__QUESTION__INIT;
    packed.number = question->number;
    packed.task_id = (ProtobufCBinaryData){sizeof (task->id), (uint8_t *) task->id.bytes};
    packed.key = question->key;
    packed.queue = task->queue->name;
    packed.session = (char *) session_text (task->session);
    packed.asked_at = (uint64_t) question->asked_at;
    packed.deadline = (uint64_t) question->deadline;
    packed.has_default = question->has_default;
    packed.default_text = question->default_text;
    if (bodies) {
        packed.request = question->request;
        packed.default_answer = question->default_answer;
    }
    packed.attempt = question->attempt;
    packed.worker = question->worker;
    bytes_append_message (out, INBOX_PAGE_QUESTIONS, &packed.base);
}

/* What is found goes into the page, oldest first. Returns where the next page begins, 0 for none:
 * a page ends when it is full, and when enough was looked at. */
static uint64_t pack_inbox (call_t *call, walk_t *walk, bytes_t *out)
{
    const Taskmq__Inbox *request = call->request->inbox;
    size_t room = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
    size_t looks = call->requests->base->config.read_looks_max;
    uint64_t looked = request->after;
    wanted_t names MEMORY_FILLED_BEFORE_READ;
    wanted_read (call, &names);
    for (question_t *question = walk_next (walk); question != NULL; question = walk_next (walk)) {
        bool wanted = is_wanted (call, &names, question->asking->task);
        size_t before = out->length;
        if (room == 0 || looks == 0)
            return looked;
        if (wanted)
            pack_question (call, out, question);
        if (out->length > ENVELOPE_FILL_BYTES && before > 0) {
            out->length = before;
            return looked;
        }
        looked = question->number;
        room -= wanted;
        looks--;
    }
    return 0;
}

void on_inbox (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Inbox *request = call->request->inbox;
    walk_t walk = {.request = request, .space = call->link->space, .cursor = UNANSWERED_START};
    bytes_t packed = BYTES_INIT;
    bool one = request->task_id.len > 0;
    found_t found;
    if (quota_answered (call, quota_read (self, call->link)))
        return;
    if (one && !get_find (call, &request->task_id, RIGHT_READ | RIGHT_OBSERVE, &found))
        return;
    if (one)
        walk.asking = asking_find (self->tasks, call->link->space, request->task_id.data);
    uint64_t next = one && walk.asking == NULL ? 0 : pack_inbox (call, &walk, &packed);
    bytes_append_uint (&packed, INBOX_PAGE_NEXT, next);
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_INBOX_PAGE, packed.data, packed.length);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
    bytes_free (&packed);
}
