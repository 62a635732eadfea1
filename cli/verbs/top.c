/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl top: queues, workers, what runs and what failed, on a screen that one leaves open.
 *
 * Every interval the numbers are asked for, and drawn when they have come. While the broker is away
 * the screen keeps the last ones, and says since when. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "link/connect.h"
#include "screen/full.h"
#include "screen/output.h"
#include "screen/show.h"
#include "units.h"
#include "verbs/verbs.h"
#include "view.h"

enum {
    INTERVAL_MS = 2000,
    STATES_MS = 500, /* for the answer about workers, and about queues */
    ROWS_MAX = 100,  /* tasks of each kind that are asked for */
    STATE_SIZE = 64, /* "paused cap rate" */
    ANSWERS = 16
};

typedef enum sort { SORT_READY, SORT_WORKING, SORT_NAME, SORTS } sort_t;
static const char *const sort_names[SORTS] = {"ready", "working", "name"};

/* What the counters say between two looks, in a second. */
typedef struct rates {
    uint64_t at_ms; /* of the newest look, mono; 0: none yet */
    uint64_t submitted, completed, failed;
    double submitted_s, completed_s, failed_s;
    bool known; /* there were two looks */
} rates_t;

typedef struct top {
    app_t *app;
    uint64_t interval_ms;
    uint64_t due_ms; /* of the next look, mono */
    bool up;
    uint64_t lost_wall_ms;
    int code; /* the broker refused us, or a signal came: the end */
    tmq_error_t error;
    sort_t sort;
    bool help;
    unsigned open; /* requests without an answer */
    tmq_stats_t *stats;
    tmq_queue_depth_t *queues; /* of stats, sorted */
    tmq_worker_list_t *workers;
    tmq_queue_report_t *states; /* of queues; NULL: not told */
    tmq_task_list_t *running;
    tmq_task_list_t *failed;
    rates_t rates;
} top_t;

static volatile sig_atomic_t ended_by; /* a signal */

static void take_signal (int number)
{
    ended_by = number;
}

/* Numbers. */

static uint64_t counter_of (const tmq_stats_t *stats, const char *name)
{
    for (size_t i = 0; i < stats->counters_count; i++)
        if (strcmp (stats->counters[i].name, name) == 0)
            return stats->counters[i].value;
    return 0;
}

static double rate (uint64_t now, uint64_t before, uint64_t ms)
{
    return now < before || ms == 0 ? 0 : (double) (now - before) * 1000 / (double) ms;
}

/* A broker that started anew counts from 0: its first look gives no rate. */
static void take_rates (rates_t *self, const tmq_stats_t *stats)
{
    const uint64_t now_ms = mono_ms ();
    const uint64_t submitted = counter_of (stats, "submitted");
    const uint64_t completed = counter_of (stats, "completed");
    const uint64_t failed = counter_of (stats, "failed");
    self->known = self->at_ms != 0 && submitted >= self->submitted;
    if (self->known) {
        self->submitted_s = rate (submitted, self->submitted, now_ms - self->at_ms);
        self->completed_s = rate (completed, self->completed, now_ms - self->at_ms);
        self->failed_s = rate (failed, self->failed, now_ms - self->at_ms);
    }
    self->at_ms = now_ms;
    self->submitted = submitted;
    self->completed = completed;
    self->failed = failed;
}

static int by_name (const void *a, const void *b)
{
    const tmq_queue_depth_t *left = a, *right = b;
    return strcmp (left->queue, right->queue);
}

static int by_ready (const void *a, const void *b)
{
    const tmq_queue_depth_t *left = a, *right = b;
    return left->ready != right->ready ? (left->ready < right->ready ? 1 : -1) : by_name (a, b);
}

static int by_working (const void *a, const void *b)
{
    const tmq_queue_depth_t *left = a, *right = b;
    return left->working != right->working ? (left->working < right->working ? 1 : -1)
                                           : by_name (a, b);
}

static void sort_queues (top_t *self)
{
    static int (*const orders[SORTS]) (const void *, const void *) = {by_ready, by_working,
                                                                      by_name};
    if (self->stats && self->stats->queues_count > 0)
        qsort (self->queues, self->stats->queues_count, sizeof *self->queues, orders[self->sort]);
}

static void take_stats (top_t *self, tmq_stats_t *stats)
{
    free (self->queues);
    tmq_stats_free (self->stats);
    self->stats = stats;
    const size_t bytes = stats->queues_count * sizeof *self->queues;
    self->queues = bytes ? malloc (bytes) : NULL;
    if (self->queues)
        memcpy (self->queues, stats->queues, bytes);
    else
        stats->queues_count = 0;
    take_rates (&self->rates, stats);
    sort_queues (self);
}

/* Asking. */

static bool ask_tasks (top_t *self, tmq_status_t status, tmq_task_list_t **place)
{
    const tmq_list_query_t query = {.filter = {.statuses = &status, .statuses_count = 1},
                                    .limit = ROWS_MAX};
    return tmq_list_start (self->app->client, &query, (uint32_t) self->interval_ms, place, NULL) ==
           TMQ_OK;
}

static void look_at_states (top_t *self)
{
    tmq_worker_list_t *workers = NULL;
    tmq_queue_report_t *states = NULL;
    tmq_client_t *client = self->app->client;
    if (tmq_workers (&workers, client, 0, ROWS_MAX, false, STATES_MS, NULL) == TMQ_OK) {
        tmq_worker_list_free (self->workers);
        self->workers = workers;
    }
    if (tmq_queue_list (&states, client, "", TMQ_QUEUE_LIST_MAX, STATES_MS, NULL) == TMQ_OK) {
        tmq_queue_report_free (self->states);
        self->states = states;
    }
}

static void look (top_t *self)
{
    const uint64_t now_ms = mono_ms ();
    if (now_ms < self->due_ms || self->open > 0 || !self->up)
        return;
    self->due_ms = now_ms + self->interval_ms;
    self->open +=
        tmq_stats_start (self->app->client, (uint32_t) self->interval_ms, NULL, NULL) == TMQ_OK;
    self->open += ask_tasks (self, TMQ_STATUS_WORKING, &self->running);
    self->open += ask_tasks (self, TMQ_STATUS_FAILED, &self->failed);
    look_at_states (self);
}

static void take_link (top_t *self, const tmq_completion_t *answer)
{
    if (answer->link == TMQ_LINK_REFUSED) {
        self->code = answer->code;
        if (answer->error)
            self->error = *answer->error;
    } else if (answer->link == TMQ_LINK_LOST) {
        if (self->up)
            self->lost_wall_ms = wall_ms ();
        self->up = false;
    } else {
        self->up = true;
        self->due_ms = 0;
        self->rates.at_ms = 0;
    }
}

static void take_answer (top_t *self, tmq_completion_t *answer)
{
    if (answer->op == TMQ_OP_LINK) {
        take_link (self, answer);
        return;
    }
    if (answer->op != TMQ_OP_STATS && answer->op != TMQ_OP_LIST)
        return;
    self->open--;
    if (answer->code != TMQ_OK)
        return;
    if (answer->op == TMQ_OP_STATS) {
        take_stats (self, answer->stats);
        answer->stats = NULL;
        return;
    }
    tmq_task_list_t **place = answer->user;
    tmq_task_list_free (*place);
    *place = answer->list;
    answer->list = NULL;
}

/* Drawing: a bar, the sums, then the sections, each with its share of the lines. */

static void draw_bar (const top_t *self)
{
    char clock[CLOCK_TEXT_SIZE], since[CLOCK_TEXT_SIZE], state[40] = "connected";
    if (!self->up)
        snprintf (state, sizeof state, "no broker since %s",
                  clock_text (since, self->lost_wall_ms));
    full_put (self->app, 0, 0, full_columns (), FULL_BAR, " taskctl top  %s  %s  %s  %s",
              clock_text (clock, wall_ms ()), state, self->app->ns, self->app->endpoint);
}

static void draw_sums (const top_t *self)
{
    uint64_t ready = 0, scheduled = 0, blocked = 0, working = 0, input = 0;
    const rates_t *rates = &self->rates;
    const size_t workers = self->workers ? self->workers->count : 0;
    for (size_t i = 0; self->stats && i < self->stats->queues_count; i++) {
        ready += self->queues[i].ready;
        scheduled += self->queues[i].scheduled;
        blocked += self->queues[i].blocked;
        working += self->queues[i].working;
        input += self->queues[i].input_required;
    }
    full_put (self->app, 1, 0, full_columns (), FULL_PLAIN,
              " %" PRIu64 " ready  %" PRIu64 " scheduled  %" PRIu64 " blocked  %" PRIu64
              " working  %" PRIu64 " waiting for input  %zu worker%s",
              ready, scheduled, blocked, working, input, workers, workers == 1 ? "" : "s");
    if (rates->known)
        full_put (self->app, 2, 0, full_columns (), FULL_PLAIN,
                  " per second: %.1f submitted  %.1f completed  %.1f failed", rates->submitted_s,
                  rates->completed_s, rates->failed_s);
}

static size_t draw_head (const top_t *self, size_t line, const char *text)
{
    full_put (self->app, line, 0, full_columns (), FULL_HEAD, "%s", text);
    return line + 1;
}

static size_t draw_rest (const top_t *self, size_t line, size_t shown, size_t count)
{
    if (shown < count)
        full_put (self->app, line, 1, full_columns (), FULL_DIM, "and %zu more", count - shown);
    return line + (shown < count);
}

/* So many of count rows fit into room lines, when the last one may have to say what does not. */
static size_t fit (size_t count, size_t room)
{
    return count <= room ? count : room > 0 ? room - 1 : 0;
}

/* Beyond the first TMQ_QUEUE_LIST_MAX nothing is known. */
static const char *state_of (const top_t *self, const char *queue, char out[STATE_SIZE])
{
    for (size_t i = 0; self->states && i < self->states->count; i++)
        if (strcmp (self->states->queues[i].queue, queue) == 0)
            return view_queue_state (out, STATE_SIZE, &self->states->queues[i]);
    return "";
}

static size_t draw_queues (const top_t *self, size_t line, size_t room)
{
    const size_t count = self->stats ? self->stats->queues_count : 0;
    const size_t shown = fit (count, room);
    const int name = full_columns () >= 100 ? 40 : 24;
    char head[128];
    char text[STATE_SIZE];
    snprintf (head, sizeof head, "%-*s %9s %9s %9s %9s  %s", name, "QUEUE", "READY", "SCHEDULED",
              "WORKING", "INPUT", "STATE");
    line = draw_head (self, line, head);
    for (size_t i = 0; i < shown; i++, line++) {
        const tmq_queue_depth_t *queue = &self->queues[i];
        const char *state = state_of (self, queue->queue, text);
        full_put (self->app, line, 0, full_columns (), queue->working ? FULL_GOOD : FULL_PLAIN,
                  "%-*.*s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 "  %s", name, name,
                  queue->queue, queue->ready, queue->scheduled, queue->working,
                  queue->input_required, state);
    }
    return draw_rest (self, line, shown, count);
}

static size_t draw_workers (const top_t *self, size_t line, size_t room)
{
    const size_t count = self->workers ? self->workers->count : 0;
    const size_t shown = fit (count, room);
    char head[128];
    snprintf (head, sizeof head, "%-24s %-9s %7s %7s %7s  %s", "WORKER", "STATE", "RUNNING", "DONE",
              "FAILED", "QUEUE");
    line = draw_head (self, line, head);
    for (size_t i = 0; i < shown; i++, line++) {
        const tmq_worker_info_t *worker = &self->workers->workers[i];
        const char *state = !worker->connected   ? "away"
                            : worker->drained_at ? "draining"
                            : worker->running    ? "working"
                                                 : "idle";
        full_put (self->app, line, 0, full_columns (), worker->connected ? FULL_PLAIN : FULL_DIM,
                  "%-24.24s %-9s %7" PRIu32 " %7" PRIu64 " %7" PRIu64 "  %s%s", worker->name, state,
                  worker->running, worker->completed, worker->failed + worker->lost,
                  worker->queues_count ? worker->queues[0] : "",
                  worker->queues_count > 1 ? ", ..." : "");
    }
    return draw_rest (self, line, shown, count);
}

static size_t draw_tasks (const top_t *self, size_t line, size_t room, const char *title,
                          const tmq_task_list_t *list, full_look_t look)
{
    const size_t count = list ? list->count : 0;
    const size_t shown = fit (count, room);
    char head[128];
    snprintf (head, sizeof head, "%-12s %-20s %10s  %s", title, "QUEUE", "FOR", "WHAT");
    line = draw_head (self, line, head);
    for (size_t i = 0; i < shown; i++, line++) {
        char id[37], took[32], remark[256];
        const tmq_task_t *task = list->tasks[i];
        tmq_id_format (&task->id, id);
        full_put (self->app, line, 0, full_columns (), look, "%-12s %-20.20s %10s  %s", id + 24,
                  task->queue, task_took (took, task), task_remark (remark, sizeof remark, task));
    }
    return draw_rest (self, line, shown, count);
}

static void draw_help (const top_t *self)
{
    static const char *const lines[] = {
        "q, Ctrl-C   leave",
        "s           sort the queues: ready, working, name",
        "r, space    look now",
        "? or h      this help, and back",
        "",
        "A queue with tasks at work is green. FOR is how long a task runs or ran.",
        "Failed tasks: the newest are shown; taskctl get ID tells all about one."};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        full_put (self->app, 4 + i, 2, full_columns (), FULL_PLAIN, "%s", lines[i]);
}

static size_t count_of (const tmq_task_list_t *list)
{
    return list ? list->count : 0;
}

/* What a section needs of the lines that are left, when so many sections follow it. */
static size_t share (size_t wanted, size_t left, size_t followers)
{
    const size_t fair = left / (followers + 1);
    return wanted < fair ? wanted : fair;
}

static void draw_sections (const top_t *self)
{
    enum { TOP = 4, HEADS = 4, GAPS = 3 };
    const size_t lines = full_lines () - 1;
    size_t line = TOP;
    size_t left = lines > TOP + HEADS + GAPS ? lines - TOP - HEADS - GAPS : 0;
    const size_t wanted[] = {self->stats ? self->stats->queues_count : 0,
                             self->workers ? self->workers->count : 0, count_of (self->running),
                             count_of (self->failed)};
    for (size_t i = 0; i < HEADS && line < lines; i++) {
        /* What those behind do not need is for this one. */
        size_t later = 0;
        for (size_t k = i + 1; k < HEADS; k++)
            later += share (wanted[k], left, HEADS - 1 - i);
        const size_t room = wanted[i] < left - later ? wanted[i] : left - later;
        left -= room;
        switch (i) {
        case 0: line = draw_queues (self, line, room); break;
        case 1: line = draw_workers (self, line, room); break;
        case 2: line = draw_tasks (self, line, room, "RUNNING", self->running, FULL_PLAIN); break;
        default: line = draw_tasks (self, line, room, "FAILED", self->failed, FULL_BAD); break;
        }
        line++;
    }
}

static void draw (const top_t *self)
{
    full_clear ();
    draw_bar (self);
    if (full_lines () < FULL_LINES_MIN || full_columns () < FULL_COLUMNS_MIN) {
        full_put (self->app, 1, 0, full_columns (), FULL_PLAIN, "too small: %d by %d at least",
                  FULL_COLUMNS_MIN, FULL_LINES_MIN);
        full_show ();
        return;
    }
    draw_sums (self);
    if (self->help)
        draw_help (self);
    else
        draw_sections (self);
    full_put (self->app, full_lines () - 1, 0, full_columns (), FULL_DIM,
              " q leave   s sort: %s   r look now   ? help", sort_names[self->sort]);
    full_show ();
}

/* The loop. */

/* False: it is to end. */
static bool take_keys (top_t *self)
{
    for (int key = full_key (); key != 0; key = full_key ()) {
        switch (key) {
        case 'q':
        case 'Q': return false;
        case '?':
        case 'h': self->help = !self->help; break;
        case 's':
            self->sort = (sort_t) ((self->sort + 1) % SORTS);
            sort_queues (self);
            break;
        case 'r':
        case ' ': self->due_ms = 0; break;
        default: break;
        }
    }
    return true;
}

static void take_answers (top_t *self)
{
    tmq_completion_t *answers[ANSWERS];
    size_t count = 0;
    if (tmq_client_poll (answers, ANSWERS, &count, self->app->client, 0) != TMQ_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        take_answer (self, answers[i]);
        tmq_completion_free (answers[i]);
    }
}

/* At least once a second, for the clock. */
static int pause_ms (const top_t *self)
{
    const uint64_t now_ms = mono_ms ();
    const uint64_t until_ms = self->open > 0 || !self->up ? now_ms + 1000 : self->due_ms;
    return until_ms <= now_ms ? 0 : until_ms - now_ms > 1000 ? 1000 : (int) (until_ms - now_ms);
}

static void top_loop (top_t *self)
{
    while (ended_by == 0 && self->code == 0) {
        take_answers (self);
        if (!take_keys (self))
            return;
        look (self);
        draw (self);
        struct pollfd fds[] = {{tmq_client_fd (self->app->client), POLLIN, 0},
                               {STDIN_FILENO, POLLIN, 0}};
        if (poll (fds, 2, pause_ms (self)) < 0 && errno != EINTR)
            return;
        if ((fds[1].revents & (POLLHUP | POLLERR)) != 0) /* the terminal is gone */
            return;
    }
}

int run_top (app_t *app)
{
    top_t self = {
        .app = app, .interval_ms = args_number (&app->args, OPT_INTERVAL, INTERVAL_MS), .up = true};
    const struct sigaction action = {.sa_handler = take_signal};
    app->tells_link = true;
    int code = full_check (app);
    if (!code)
        code = app_connect (app);
    if (!code)
        code = full_begin (app);
    if (code)
        return code;
    sigaction (SIGINT, &action, NULL);
    sigaction (SIGTERM, &action, NULL);
    sigaction (SIGHUP, &action, NULL);
    top_loop (&self);
    full_end ();
    free (self.queues);
    tmq_stats_free (self.stats);
    tmq_worker_list_free (self.workers);
    tmq_queue_report_free (self.states);
    tmq_task_list_free (self.running);
    tmq_task_list_free (self.failed);
    if (self.code != 0)
        return library_error (app, &self.error, NULL);
    return ended_by == SIGTERM || ended_by == SIGHUP ? EXIT_TERMINATED : EXIT_OK;
}
