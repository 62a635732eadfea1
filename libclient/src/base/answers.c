/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/answers.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"

void core_answers_push (core_answers_t *self, core_answer_t *answer)
{
    answer->next = NULL;
    answer->previous = self->last;
    if (self->last != NULL)
        self->last->next = answer;
    else
        self->first = answer;
    self->last = answer;
}

core_answer_t *core_answers_pop (core_answers_t *self)
{
    core_answer_t *answer = self->first;
    if (answer == NULL)
        return NULL;
    self->first = answer->next;
    if (answer->next != NULL)
        answer->next->previous = NULL;
    else
        self->last = NULL;
    answer->next = NULL;
    return answer;
}

void core_answers_withdraw (core_answers_t *self, const core_answer_t *answer)
{
    for (core_answer_t *at = self->first; at != NULL; at = at->next)
        if (at == answer) {
            if (at->previous != NULL)
                at->previous->next = at->next;
            else
                self->first = at->next;
            if (at->next != NULL)
                at->next->previous = at->previous;
            else
                self->last = at->previous;
            return;
        }
}

/* The ends of records. */

void tmq_task_free (tmq_task_t *task)
{
    free (task);
}

void tmq_task_list_free (tmq_task_list_t *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        tmq_task_free (list->tasks[i]);
    free (list);
}

void tmq_event_free (tmq_event_t *event)
{
    if (event != NULL)
        tmq_task_free ((tmq_task_t *) (uintptr_t) event->task);
    free (event);
}

void tmq_event_list_free (tmq_event_list_t *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        tmq_event_free (list->events[i]);
    free (list);
}

void tmq_assignment_free (tmq_assignment_t *assignment)
{
    free (assignment);
}

void tmq_stats_free (tmq_stats_t *stats)
{
    free (stats);
}

void tmq_access_free (tmq_access_t *report)
{
    if (report == NULL)
        return;
    /* It is what an arena begins with, whose place stands behind it. */
    core_access_t *self = (core_access_t *) (void *) report;
    if (self->join != NULL)
        sodium_memzero (self->join, strlen (self->join));
    arena_free (self->arena);
}

void tmq_part_free (tmq_part_t *part)
{
    free (part);
}

void tmq_schedule_report_free (tmq_schedule_report_t *report)
{
    free (report);
}

void tmq_vacuum_state_free (tmq_vacuum_state_t *vacuum)
{
    free (vacuum);
}

void tmq_cleanup_state_free (tmq_cleanup_state_t *cleanup)
{
    free (cleanup);
}

void tmq_explanation_free (tmq_explanation_t *explanation)
{
    free (explanation);
}

void tmq_queue_report_free (tmq_queue_report_t *report)
{
    free (report);
}

void tmq_attempt_list_free (tmq_attempt_list_t *list)
{
    free (list);
}

void tmq_worker_list_free (tmq_worker_list_t *list)
{
    /* It is what an arena begins with, whose place stands behind it. */
    if (list != NULL)
        arena_free (((core_roster_t *) (void *) list)->arena);
}

static void completion_clear (tmq_completion_t *completion)
{
    free (completion->error);
    free (completion->text);
    free (completion->receipts);
    tmq_task_free (completion->task);
    tmq_task_list_free (completion->list);
    tmq_event_list_free (completion->events);
    tmq_stats_free (completion->stats);
    tmq_access_free (completion->access);
    tmq_part_free (completion->part);
    free (completion->changed);
    tmq_queue_report_free (completion->queues);
    tmq_schedule_report_free (completion->schedules);
    tmq_inbox_free (completion->inbox);
    free (completion->answered);
    tmq_worker_list_free (completion->workers);
    tmq_explanation_free (completion->why);
    tmq_attempt_list_free (completion->attempts);
    tmq_vacuum_state_free (completion->vacuum);
    tmq_artifact_list_free (completion->artifacts);
    memset (completion, 0, sizeof *completion);
}

void tmq_completion_free (tmq_completion_t *completion)
{
    if (completion == NULL)
        return;
    completion_clear (completion);
    /* What tmq_client_poll gave away is a part of an answer. */
    free ((char *) completion - offsetof (core_answer_t, completion));
}

/* Answers. */

void core_answer_set (core_answer_t *answer, int code, const char *text, uint32_t retry_after_ms)
{
    answer->completion.code = code;
    if (code == TMQ_OK)
        return;
    /* Without memory for the text the code alone has to do. */
    answer->completion.error = malloc (sizeof *answer->completion.error);
    if (answer->completion.error != NULL)
        core_error_fill (answer->completion.error, code, text, retry_after_ms);
}

void core_answer_free (core_answer_t *answer)
{
    if (answer == NULL)
        return;
    completion_clear (&answer->completion);
    free (answer->shared);
    answer->shared = NULL;
    if (!answer->embedded)
        free (answer);
}
