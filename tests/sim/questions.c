/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions: workers ask, submitters answer in one of two ways, deadlines answer in a third. I13:
 * a question has one answer. Who was told that an answer counts, who was given one, and every later
 * attempt agree on it. With the end of a task they go: nothing is said of one that was revived. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const char *const ANSWERS[] = {[1] = "\"yes\"", [2] = "\"no\"", [3] = "\"later\""};

typedef struct answer_intent {
    known_t *task;
    uint32_t question;
    uint8_t answer;
    bool asked_then;    /* the question was acknowledged when the answer was sent, … */
    uint8_t known_then; /* … and so was this answer */
} answer_intent_t;

static void learn (world_t *world, known_t *task, uint32_t question, uint8_t answer)
{
    uint8_t *known = &task->questions[question].answer;
    if (task->revived) {
        return;
    }
    if (*known != 0 && *known != answer) {
        sim_fail (world, "I13: question %u of task %u is answered %s and %s", question,
                  model_index (task->id.bytes), ANSWERS[*known], ANSWERS[answer]);
    }
    *known = answer;
}

/* The same of every attempt, so that a repeat is one. Every other has a default. */
void question_fill (Taskmq__Ask *ask, uint32_t question, char key[8], char text[16])
{
    snprintf (key, 8, "q%u", question);
    snprintf (text, 16, "{\"q\":%u}", question);
    ask->key = key;
    ask->request = text;
    ask->deadline_ms = 2000 + 2000 * question;
    ask->has_default = question % 2 == 1;
    ask->default_answer = ask->has_default ? (char *) (uintptr_t) ANSWERS[3] : "";
}

void question_asked (world_t *world, known_t *task, uint32_t question, const Taskmq__Reply *reply)
{
    bool over = reply->code == TMQ_STALE_LEASE || reply->code == TMQ_WRONG_STATUS ||
                reply->code == TMQ_NOT_FOUND || reply->code == TMQ_EXPIRED ||
                reply->code == TMQ_PURGED;
    if (reply->code == TMQ_OK) {
        task->questions[question].asked = true;
    } else if (!over) {
        sim_fail (world, "I13: question %u of task %u is refused: %u %s", question,
                  model_index (task->id.bytes), reply->code, reply->text);
    }
}

/* Mostly one that has asked. */
static known_t *draw_asked (client_t *client, uint32_t question)
{
    known_t *task = NULL;
    for (int tries = 0; tries < 12; tries++) {
        task = submitter_draw_known (client);
        if (task != NULL && task->questions[question].asked && task->ended == TMQ_STATUS_NONE) {
            break;
        }
    }
    return task;
}

static void send_answer (client_t *client, known_t *task, uint32_t question, uint8_t given)
{
    answer_intent_t *intent = calloc (1, sizeof *intent);
    *intent = (answer_intent_t){.task = task,
                                .question = question,
                                .answer = given,
                                .asked_then = task->questions[question].asked,
                                .known_then = task->questions[question].answer};
    char key[8];
    Taskmq__Answer answer = TASKMQ__ANSWER__INIT;
    Taskmq__AnswerItem item = TASKMQ__ANSWER_ITEM__INIT;
    Taskmq__AnswerItem *items[] = {&item};
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    snprintf (key, sizeof key, "q%u", question);
    item.key = key;
    item.bytes = (uint32_t) strlen (ANSWERS[given]);
    answer.task_id.data = task->id.bytes;
    answer.task_id.len = 16;
    answer.items = items;
    answer.n_items = 1;
    request.op_case = TASKMQ__REQUEST__OP_ANSWER;
    request.answer = &answer;
    client_request (client, &request, ANSWERS[given], item.bytes)->data = intent;
}

void question_answer (client_t *client)
{
    rng_t *rng = &client->world->rng;
    uint32_t question = rng_below (rng, SIM_QUESTIONS);
    known_t *task = draw_asked (client, question);
    if (task == NULL) {
        return;
    }
    uint8_t answer = (uint8_t) (1 + rng_below (rng, 2));
    uint8_t other = (uint8_t) (3 - answer);
    bool known = task->questions[question].answer == answer;
    if (known && rng_chance (rng, 500)) {
        answer = other; /* somebody else thinks otherwise, … */
    }
    send_answer (client, task, question, answer);
    if (!known && rng_chance (rng, 300)) {
        send_answer (client, task, question, other); /* … perhaps at the same time */
    }
}

void question_answered (world_t *world, const pending_t *pending, const Taskmq__Reply *reply)
{
    const answer_intent_t *intent = pending->data;
    if (reply->code != TMQ_OK || reply->answered == NULL || intent->task->revived) {
        return; /* the task has ended, or is gone */
    }
    uint32_t code = reply->answered->items[0]->code;
    if (code == TMQ_OK) {
        learn (world, intent->task, intent->question, intent->answer);
    } else if (code == TMQ_NOT_FOUND && intent->asked_then) {
        sim_fail (world, "I13: question %u of task %u is forgotten", intent->question,
                  model_index (intent->task->id.bytes));
    } else if (code == TMQ_CONFLICT && intent->known_then == intent->answer) {
        sim_fail (world, "I13: the answer to question %u of task %u is refused when it is repeated",
                  intent->question, model_index (intent->task->id.bytes));
    }
}

/* What was answered before an attempt began comes with its assignment. */
void question_check_assigned (world_t *world, const known_t *task,
                              const Taskmq__Assignment *assignment)
{
    uint64_t answered = 0;
    if (task->revived) {
        return;
    }
    for (size_t i = 0; i < task->assigned_count; i++) {
        if (task->assigned[i].attempt > assignment->attempt) {
            return; /* it comes late */
        }
    }
    for (size_t i = 0; i < SIM_QUESTIONS; i++) {
        answered += task->questions[i].answer != 0;
    }
    if (assignment->answers < answered) {
        sim_fail (world, "I13: attempt %u of task %u is told of %llu answers of %llu",
                  assignment->attempt, model_index (task->id.bytes),
                  (unsigned long long) assignment->answers, (unsigned long long) answered);
    }
}

void question_taken (world_t *world, known_t *task, const Taskmq__AnswerPage *page,
                     const uint8_t *body, size_t body_bytes)
{
    for (size_t i = 0; i < page->n_answers; i++) {
        const Taskmq__GivenAnswer *given = page->answers[i];
        uint32_t question = (uint32_t) (given->key[1] - '0');
        uint8_t answer = given->by_default ? 3 : 1;
        while (answer < 3 && (given->bytes != strlen (ANSWERS[answer]) ||
                              memcmp (body, ANSWERS[answer], given->bytes) != 0)) {
            answer++;
        }
        bool whole = given->bytes <= body_bytes && given->bytes == strlen (ANSWERS[answer]) &&
                     memcmp (body, ANSWERS[answer], given->bytes) == 0;
        if (question >= SIM_QUESTIONS || !whole || (answer == 3) != (bool) given->by_default) {
            sim_fail (world, "I13: task %u has an answer that nobody gave",
                      model_index (task->id.bytes));
            return;
        }
        learn (world, task, question, answer);
        body += given->bytes;
        body_bytes -= given->bytes;
    }
}
