/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/drain.h"

#include <string.h>

#include "base/clock.h"
#include "screen/output.h"
#include "screen/status.h"

enum {
    LEFT_MS = 1000, /* between looks at the queues for the bar */
    LOOK_MS = 500   /* … and for the end */
};

static tmq_filter_t queued_here (const drain_t *self)
{
    static const tmq_status_t queued[] = {TMQ_STATUS_QUEUED};
    return (tmq_filter_t){.queues = self->app->args.operands,
                          .queues_count = self->app->args.operands_count,
                          .statuses = queued,
                          .statuses_count = 1};
}

/* How much is queued, as a count; to who may not read tasks the broker's numbers tell it. */
static bool ask_queues (const drain_t *self, void *user)
{
    tmq_client_t *client = self->app->client;
    const tmq_filter_t queued = queued_here (self);
    return self->by_stats ? tmq_stats_start (client, TMQ_FOREVER, user, NULL) == TMQ_OK
                          : tmq_count_start (client, &queued, TMQ_FOREVER, user, NULL) == TMQ_OK;
}

static uint64_t queued_in (const drain_t *self, const tmq_stats_t *stats)
{
    const args_t *args = &self->app->args;
    uint64_t sum = 0;
    for (size_t i = 0; i < stats->queues_count; i++) {
        for (size_t q = 0; q < args->operands_count; q++) {
            if (strcmp (stats->queues[i].queue, args->operands[q]) == 0)
                sum += stats->queues[i].ready + stats->queues[i].scheduled;
        }
    }
    return sum;
}

static bool looks_for_bar (const drain_t *self)
{
    return self->on && self->app->status->possible && !self->counting_left;
}

/* The queues are empty when two counts in a row say so and nothing was assigned between them. After
 * one alone an assignment made before it might still be on its way to us. */
void drain_look (drain_t *self, bool busy)
{
    if (self->on && !self->counting && !busy && mono_ms () >= self->look_at_ms)
        self->counting = ask_queues (self, NULL);
    if (looks_for_bar (self) && mono_ms () >= self->left_at_ms)
        self->counting_left = ask_queues (self, &self->left);
}

uint64_t drain_wakes_ms (const drain_t *self, bool busy)
{
    uint64_t wakes_ms = UINT64_MAX;
    if (self->on && !self->counting && !busy)
        wakes_ms = self->look_at_ms;
    if (looks_for_bar (self) && self->left_at_ms < wakes_ms)
        wakes_ms = self->left_at_ms;
    return wakes_ms;
}

/* What is queued may be for others. */
static bool list_left (const drain_t *self)
{
    const tmq_list_query_t query = {.filter = queued_here (self), .limit = TMQ_LIST_LIMIT_MAX};
    return tmq_list_start (self->app->client, &query, TMQ_FOREVER, NULL, NULL) == TMQ_OK;
}

/* A label that the task requires and --label does not give; NULL: there is none. */
static const tmq_label_t *lacking (const drain_t *self, const tmq_task_t *task)
{
    const args_t *args = &self->app->args;
    for (size_t i = 0; i < task->needs_count; i++) {
        const tmq_label_t *need = &task->needs[i];
        const size_t key = strlen (need->key);
        size_t k = 0;
        for (; k < args_count (args, OPT_LABEL); k++) {
            const char *given = args_nth (args, OPT_LABEL, k)->text;
            if (strncmp (given, need->key, key) == 0 && given[key] == '=' &&
                strcmp (given + key + 1, need->value) == 0)
                break;
        }
        if (k == args_count (args, OPT_LABEL))
            return need;
    }
    return NULL;
}

static void note_left (const drain_t *self, size_t unfit, const tmq_label_t *label, size_t paused)
{
    if (unfit > 0)
        note (self->app,
              "taskctl: %zu task%s left that this worker may not do: it has no label %s=%s", unfit,
              unfit == 1 ? " is" : "s are", label->key, label->value);
    if (paused > 0)
        note (self->app, "taskctl: %zu task%s left that somebody has paused", paused,
              paused == 1 ? " is" : "s are");
}

/* It is over, too, when nothing is left but tasks that this worker may not do, that are paused,
 * and those that wait for them. */
static bool take_left (drain_t *self, const tmq_completion_t *answer, bool busy)
{
    const tmq_task_list_t *list = answer->code == TMQ_OK ? answer->list : NULL;
    const tmq_label_t *label = NULL;
    size_t unfit = 0;
    size_t waiting = 0;
    size_t paused = 0;
    self->counting = false;
    for (size_t i = 0; list && i < list->count; i++) {
        const tmq_label_t *missing = lacking (self, list->tasks[i]);
        unfit += missing != NULL;
        waiting += !missing && list->tasks[i]->phase == TMQ_PHASE_BLOCKED;
        paused += !missing && list->tasks[i]->phase == TMQ_PHASE_PAUSED;
        label = missing ? missing : label;
    }
    if (unfit + paused == 0 || *list->next || unfit + paused + waiting < list->count || busy) {
        self->unfit_seen = 0;
        return false;
    }
    if (++self->unfit_seen < 2)
        return false;
    note_left (self, unfit, label, paused);
    return true;
}

static bool take_count (drain_t *self, const tmq_completion_t *answer)
{
    const bool is_stats = answer->op == TMQ_OP_STATS;
    const bool good = answer->code == TMQ_OK;
    const uint64_t queued = !good ? 0 : is_stats ? queued_in (self, answer->stats) : answer->count;
    if (good)
        self->left = queued;
    self->by_stats = self->by_stats || answer->code == TMQ_DENIED;
    if (answer->user == &self->left) {
        self->counting_left = false;
        self->left_at_ms = mono_ms () + LEFT_MS;
        return false;
    }
    self->counting = queued > 0 && !is_stats && list_left (self);
    if (good && queued == 0)
        return ++self->empty_seen == 2;
    self->empty_seen = 0;
    self->look_at_ms = mono_ms () + LOOK_MS;
    return false;
}

bool drain_is_answer (const tmq_completion_t *answer)
{
    return answer->op == TMQ_OP_COUNT || answer->op == TMQ_OP_STATS || answer->op == TMQ_OP_LIST;
}

bool drain_take (drain_t *self, const tmq_completion_t *answer, bool busy)
{
    return answer->op == TMQ_OP_LIST ? take_left (self, answer, busy) : take_count (self, answer);
}
