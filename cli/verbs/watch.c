/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl watch: events as they happen, until one of the ends that were asked for. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "link/events.h"
#include "link/ids.h"
#include "link/state.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/status.h"
#include "verbs/filter.h"
#include "verbs/verbs.h"

enum { BATCH = 64, CURSOR_SIZE = 48 };

/* A task that --until waits for. */
typedef struct target {
    tmq_id_t id;
    bool reached;
} target_t;

typedef struct watching {
    app_t *app;
    items_t items;
    link_state_t link;
    uint64_t seen;         /* events and notices */
    uint64_t seen_wall_ms; /* the newest of them */
    tmq_subscription_t *subscription;
    int signals;
    uint64_t deadline_ms; /* 0: none */
    uint64_t left;        /* events of --count; UINT64_MAX: no limit */
    tmq_subject_t subjects[TMQ_FILTER_VALUES_MAX];
    size_t subjects_count;
    bool by_subject;     /* the operands are no ids … */
    const char *prefix;  /* … but this */
    tmq_status_t until;  /* TMQ_STATUS_NONE: not asked for */
    uint64_t generation; /* of the history that is followed; 0: not known yet */
    target_t *targets;
    size_t targets_count;
    bool failed;  /* a target ended otherwise than --until says */
    bool gone;    /* a target is not there */
    bool elapsed; /* --for ended it */
    bool done;
    int code;
} watching_t;

/* The end by --until. */

static void reach (watching_t *self, target_t *target, tmq_status_t status)
{
    if (status != self->until && !tmq_status_terminal (status))
        return;
    target->reached = true;
    if (self->until != TMQ_STATUS_NONE)
        self->failed = self->failed || (status != self->until && status != TMQ_STATUS_COMPLETED);
}

static void judge_targets (watching_t *self)
{
    bool all = self->until != TMQ_STATUS_NONE;
    for (size_t i = 0; i < self->targets_count; i++)
        all = all && self->targets[i].reached;
    self->done = self->done || all;
}

static void take_status (watching_t *self, const tmq_id_t *id, tmq_status_t status, bool removed)
{
    for (size_t i = 0; i < self->targets_count; i++) {
        target_t *target = &self->targets[i];
        if (memcmp (&target->id, id, sizeof *id) != 0 || target->reached)
            continue;
        if (removed)
            target->reached = self->gone = true;
        else
            reach (self, target, status);
    }
    judge_targets (self);
}

static uint64_t present_seq (const watching_t *self)
{
    char cursor[CURSOR_SIZE] = "";
    tmq_subscription_cursor (cursor, self->subscription);
    const char *dash = strchr (cursor, '-');
    return dash ? strtoull (dash + 1, NULL, 10) : 0;
}

/* A target may have been there before the subscription began (or in a gap): look once. If its
 * newest event is still to come, that event decides, so that it is shown before the end. */
static void look_at_targets (watching_t *self)
{
    for (size_t i = 0; i < self->targets_count; i++) {
        tmq_task_t *task;
        tmq_error_t error = {0};
        char id[37];
        if (self->targets[i].reached)
            continue;
        error.code =
            tmq_get (&task, self->app->client, &self->targets[i].id, self->app->timeout_ms, &error);
        if (error.code == TMQ_OK) {
            if (task->seq <= present_seq (self))
                reach (self, &self->targets[i], task->status);
            tmq_task_free (task);
        } else if (exit_of_code (error.code) == EXIT_NOT_FOUND) {
            tmq_id_format (&self->targets[i].id, id);
            library_error (self->app, &error, id);
            self->targets[i].reached = self->gone = true;
        }
    }
    judge_targets (self);
}

/* Events. */

static void put_event (watching_t *self, const tmq_event_t *event)
{
    const app_t *app = self->app;
    char id[37];
    /* A gap that names no event is one between two histories, also when nothing was seen before. */
    const bool nameless = event->item == TMQ_ITEM_GAP && event->gap_to < event->gap_from;
    const bool other_history =
        nameless || (self->generation && event->generation != self->generation);
    self->generation = event->generation;
    self->seen++;
    self->seen_wall_ms = wall_ms ();
    status_hide (app);
    if (app->format == FORMAT_JSONL) {
        items_add_event (&self->items, event, other_history);
        return;
    }
    if (app->format == FORMAT_ID) {
        if (event->subject > TMQ_SUBJECT_TASK) {
            print_text (app, stdout, event->name);
            putchar ('\n');
        } else {
            tmq_id_format (event->task ? &event->task->id : &event->task_id, id);
            puts (id);
        }
    } else {
        show_event (app, event, other_history);
    }
    fflush (stdout);
}

static void take_event (watching_t *self, const tmq_event_t *event)
{
    switch (event->item) {
    case TMQ_ITEM_EVENT:
        put_event (self, event);
        if (event->subject == TMQ_SUBJECT_TASK)
            take_status (self, &event->task_id, event->status, event->status == TMQ_STATUS_NONE);
        self->left -= self->left != UINT64_MAX;
        self->done = self->done || self->left == 0;
        break;
    case TMQ_ITEM_SNAPSHOT:
        put_event (self, event);
        take_status (self, &event->task->id, event->task->status, false);
        break;
    case TMQ_ITEM_NOTICE: put_event (self, event); break;
    case TMQ_ITEM_GAP:
        put_event (self, event);
        look_at_targets (self);
        break;
    case TMQ_ITEM_LIVE: look_at_targets (self); break;
    case TMQ_ITEM_SNAPSHOT_END: break;
    }
}

static void drain_events (watching_t *self)
{
    tmq_event_t *event;
    while (!self->done &&
           (event = next_event (self->app, self->subscription, &self->code)) != NULL) {
        take_event (self, event);
        tmq_event_free (event);
    }
    self->done |= self->code != 0;
}

/* The loop. */

static void take_completions (watching_t *self)
{
    tmq_completion_t *answers[BATCH];
    size_t count = 0;
    if (tmq_client_poll (answers, BATCH, &count, self->app->client, 0) != TMQ_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        link_state_take (&self->link, answers[i]); /* the others only say that there are events */
        tmq_completion_free (answers[i]);
    }
}

static void show_status (const watching_t *self)
{
    char clock[CLOCK_TEXT_SIZE];
    char link[40];
    if (self->seen == 0)
        status_show (self->app, "%s  waiting since %s", link_state_text (link, &self->link),
                     clock_text (clock, self->seen_wall_ms));
    else
        status_show (self->app, "%s  %" PRIu64 " %s, the last at %s",
                     link_state_text (link, &self->link), self->seen,
                     self->seen == 1 ? "event" : "events", clock_text (clock, self->seen_wall_ms));
}

static void take_signal (watching_t *self)
{
    struct signalfd_siginfo info;
    if (read (self->signals, &info, sizeof info) != (ssize_t) sizeof info)
        return;
    self->code = info.ssi_signo == SIGINT ? EXIT_INTERRUPTED : EXIT_TERMINATED;
    self->done = true;
}

static int pause_ms (const watching_t *self)
{
    const uint64_t now_ms = mono_ms ();
    if (!self->deadline_ms)
        return -1;
    if (self->deadline_ms <= now_ms)
        return 0;
    const uint64_t left = self->deadline_ms - now_ms;
    return left < INT32_MAX ? (int) left : INT32_MAX;
}

/* From here on SIGINT and SIGTERM end the loop in order. */
static void catch_signals (watching_t *self)
{
    sigset_t signals;
    sigemptyset (&signals);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGTERM);
    sigprocmask (SIG_BLOCK, &signals, NULL);
    self->signals = signalfd (-1, &signals, SFD_CLOEXEC);
}

static void watch_loop (watching_t *self)
{
    struct pollfd fds[] = {{tmq_client_fd (self->app->client), POLLIN, 0},
                           {self->signals, POLLIN, 0},
                           {STDOUT_FILENO, 0, 0}};
    for (;;) {
        drain_events (self);
        if (self->done)
            return;
        show_status (self);
        if (poll (fds, 3, pause_ms (self)) < 0 && errno != EINTR) {
            self->code = code_error (self->app, TMQ_SYSTEM, NULL, "poll: %s", strerror (errno));
            return;
        }
        if (fds[2].revents & POLLERR)
            return; /* nobody reads any more: `watch | head` ends at once */
        if (fds[1].revents)
            take_signal (self);
        take_completions (self);
        if (self->deadline_ms && mono_ms () >= self->deadline_ms) {
            drain_events (self);
            self->elapsed = !self->done;
            return;
        }
    }
}

/* Beginning and end. */

/* A cursor, or a time. A bare number is a sequence, so a duration needs its unit here too. */
static int set_start (watching_t *self, tmq_subscription_options_t *options)
{
    const app_t *app = self->app;
    const char *since = args_text (&app->args, OPT_SINCE);
    if (!since)
        return 0;
    const size_t digits = strspn (since, "0123456789");
    const size_t more = since[digits] == '-' ? strspn (since + digits + 1, "0123456789") : 0;
    if ((digits && !since[digits]) || (digits && more && !since[digits + 1 + more])) {
        options->cursor = since;
        self->generation = since[digits] ? strtoull (since, NULL, 10) : 0;
        return 0;
    }
    if (value_time (&options->since_time, since))
        return 0;
    return usage_error (app, "0 is the beginning; an earlier watch names its cursor at its end",
                        "--since '%.60s' must be a cursor (12 or 1-12), a time, or how long ago, "
                        "such as 90m",
                        since);
}

static void set_targets (watching_t *self, const tmq_id_t *ids, size_t count)
{
    self->targets = must_alloc (count * sizeof *self->targets);
    self->targets_count = count;
    for (size_t i = 0; i < count; i++)
        self->targets[i].id = ids[i];
}

static int subscribe (watching_t *self, tmq_subscription_options_t *options)
{
    tmq_error_t error = {0};
    error.code = tmq_subscription_new (&self->subscription, self->app->client, options, &error);
    if (error.code == TMQ_OK)
        error.code = tmq_subscription_ready (self->subscription, self->app->timeout_ms, &error);
    return error.code == TMQ_OK ? 0 : library_error (self->app, &error, NULL);
}

/* The lines have times of day: where, is said once. */
static void tell_zone (const app_t *app)
{
    char text[LOCAL_TIME_SIZE];
    char zone[ZONE_SIZE];
    long zone_s;
    if ((app->format == FORMAT_TABLE || app->format == FORMAT_WIDE) &&
        local_time (text, zone, &zone_s, wall_ms ()))
        note (app, "times are in %s", zone);
}

static int watch (watching_t *self, const task_filter_t *filter)
{
    app_t *app = self->app;
    tmq_subscription_options_t options;
    tally_t tally = {0};
    tmq_id_t *ids;
    size_t count;
    char cursor[CURSOR_SIZE];
    status_line_t status;
    app->tells_link = true;
    tmq_subscription_options_init (&options);
    int code = set_start (self, &options);
    if (code || (code = app_connect (app)))
        return code;
    ids = NULL;
    count = 0;
    if (!self->by_subject)
        app_resolve_operands (app, &ids, &count, &tally);
    if ((code = tally_exit (&tally))) {
        free (ids);
        return code;
    }
    set_targets (self, ids, count);
    options.filter = filter->filter;
    options.filter.task_ids = ids;
    options.filter.task_ids_count = count;
    options.snapshot = args_has (&app->args, OPT_SNAPSHOT);
    options.subjects = self->subjects;
    options.subjects_count = self->subjects_count;
    options.name_prefix = self->prefix;
    options.notify = true;
    code = subscribe (self, &options);
    free (ids);
    if (code)
        return code;
    items_begin (&self->items, app, false);
    tell_zone (app);
    catch_signals (self);
    status_begin (&status, app);
    self->seen_wall_ms = wall_ms ();
    watch_loop (self);
    status_end (app);
    close (self->signals);
    items_end (&self->items, NULL);
    fflush (stdout);
    if (tmq_subscription_cursor (cursor, self->subscription) == TMQ_OK)
        note (self->app, "cursor: %s", cursor);
    return self->code;
}

static int take_subjects (watching_t *self, const app_t *app)
{
    for (size_t i = 0; i < app->args.values_count; i++) {
        const option_value_t *value = &app->args.values[i];
        if (value->spec->id != OPT_SUBJECT)
            continue;
        if (self->subjects_count == TMQ_FILTER_VALUES_MAX)
            return usage_error (app, NULL, "--subject is given more than %d times",
                                TMQ_FILTER_VALUES_MAX);
        self->subjects[self->subjects_count++] = (tmq_subject_t) value->number;
    }
    return 0;
}

static int deadline_error (const watching_t *self)
{
    size_t open = 0;
    for (size_t i = 0; i < self->targets_count; i++)
        open += !self->targets[i].reached;
    const char *status = tmq_status_text (self->until);
    const char *time = args_text (&self->app->args, OPT_FOR);
    if (self->targets_count == 1)
        code_error (self->app, TMQ_TIMEOUT, NULL, "the task has not become %s in %s", status, time);
    else
        code_error (self->app, TMQ_TIMEOUT, NULL, "%zu of %zu tasks have not become %s in %s", open,
                    self->targets_count, status, time);
    return EXIT_DEADLINE;
}

static int watch_exit (const watching_t *self)
{
    if (self->elapsed && self->until != TMQ_STATUS_NONE)
        return deadline_error (self);
    if (self->gone)
        return EXIT_NOT_FOUND;
    return self->failed ? EXIT_TASK : EXIT_OK;
}

static int check_options (const app_t *app)
{
    const args_t *args = &app->args;
    if (app->format == FORMAT_JSON)
        return usage_error (app, "-o jsonl prints one event a line",
                            "watch has no end, so it cannot print one JSON document");
    if (args_has (args, OPT_UNTIL) && args->operands_count == 0)
        return usage_error (app, NULL, "--until needs the ids of the tasks to wait for");
    if (args->operands_count > TMQ_FILTER_VALUES_MAX)
        return usage_error (app, NULL, "watch takes at most %d ids", TMQ_FILTER_VALUES_MAX);
    return 0;
}

static int run (app_t *app, watching_t *self)
{
    task_filter_t filter;
    const uint64_t for_ms = args_number (&app->args, OPT_FOR, UINT64_MAX);
    self->app = app;
    self->link = (link_state_t){.app = app, .meanwhile = "waiting for it"};
    self->signals = -1;
    self->deadline_ms = for_ms == UINT64_MAX ? 0 : mono_ms () + for_ms;
    self->left = args_number (&app->args, OPT_COUNT, UINT64_MAX);
    self->until = (tmq_status_t) args_number (&app->args, OPT_UNTIL, TMQ_STATUS_NONE);
    int code = check_options (app);
    if (code || (code = take_subjects (self, app)) ||
        (!self->by_subject && !app_operands_are_ids (app, &code)) ||
        (code = filter_from_args (&filter, app, false)))
        return code;
    code = watch (self, &filter);
    tmq_subscription_free (&self->subscription);
    if (!code)
        code = watch_exit (self);
    free (self->targets);
    return code;
}

int run_watch (app_t *app)
{
    watching_t self = {0};
    return run (app, &self);
}

int watch_subject (app_t *app, tmq_subject_t subject, const char *prefix)
{
    watching_t self = {
        .by_subject = true, .prefix = prefix, .subjects = {subject}, .subjects_count = 1};
    return run (app, &self);
}
