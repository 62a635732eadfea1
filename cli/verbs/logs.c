/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl logs: what the program of a task's worker writes, as it is kept, and on while it goes
 * on. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "link/events.h"
#include "link/ids.h"
#include "link/state.h"
#include "screen/items.h"
#include "screen/output.h"
#include "verbs/verbs.h"

enum {
    STREAMS = 2,
    BATCH = 64,
    TAIL_BYTES = 64 * 1024,            /* looked at for --tail at first, … */
    TAIL_BYTES_MAX = 16 * 1024 * 1024, /* … and at most */
    RETRY_MS = 1000                    /* after a read that found no broker */
};

static const char *const stream_names[STREAMS] = {"out", "err"};

typedef struct logs {
    app_t *app;
    items_t items;
    link_state_t link;
    tmq_subscription_t *subscription;
    tmq_id_t id;
    char text[37]; /* of the id */
    bool wanted[STREAMS];
    uint64_t offsets[STREAMS];
    uint32_t attempt; /* that is read; 0: the task has no log so far */
    bool fixed;       /* … and --attempt names it */
    uint32_t newest;  /* attempt that is known of */
    uint64_t tail;    /* lines; UINT64_MAX: all */
    bool terminal;    /* control bytes are not for it */
    bool ended;       /* nothing more is written */
    bool owed;        /* a read found no broker, and is to be repeated */
    int code;
} logs_t;

/* Output. */

static void put_escaped (const logs_t *self, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr (bytes + at, '\n', length - at);
        const size_t line = end ? (size_t) (end - bytes) - at : length - at;
        char *text = must_alloc (line + 1);
        memcpy (text, bytes + at, line);
        text[line] = '\0';
        print_text (self->app, stdout, text);
        free (text);
        if (end)
            fputc ('\n', stdout);
        at += line + (end != NULL);
    }
}

static void put_item (logs_t *self, size_t stream, const tmq_part_t *part, uint64_t lost)
{
    json_writer_t *writer = items_open (&self->items);
    json_write_object_begin (writer);
    json_write_key (writer, "task_id");
    json_write_text (writer, self->text);
    json_write_key (writer, "attempt");
    json_write_int (writer, part->file);
    json_write_key (writer, "stream");
    json_write_text (writer, stream_names[stream]);
    json_write_key (writer, "offset");
    json_write_int (writer, (int64_t) part->offset);
    json_write_key (writer, "lost");
    json_write_int (writer, (int64_t) lost);
    json_write_key (writer, "data");
    json_write_body (writer, "text/plain", part->bytes, part->length);
    json_write_object_end (writer);
    items_close (&self->items);
}

static void put_part (logs_t *self, size_t stream, const tmq_part_t *part, uint64_t lost)
{
    if (app_wants_json (self->app)) {
        put_item (self, stream, part, lost);
        return;
    }
    if (lost > 0) {
        fflush (stdout);
        note (self->app, "taskctl: %" PRIu64 " bytes of the %s log are not kept", lost,
              stream_names[stream]);
    }
    if (self->terminal)
        put_escaped (self, part->bytes, part->length);
    else
        fwrite (part->bytes, 1, part->length, stdout);
}

/* Reading. */

static tmq_log_stream_t number_of (size_t stream)
{
    return stream == 0 ? TMQ_LOG_OUT : TMQ_LOG_ERR;
}

/* NULL: there is nothing, or self->code, or self->owed says why. */
static tmq_part_t *read_part (logs_t *self, size_t stream, uint64_t offset, uint32_t limit)
{
    tmq_part_t *part = NULL;
    tmq_error_t error = {0};
    error.code = tmq_log_read (&part, self->app->client, &self->id, self->attempt,
                               number_of (stream), offset, limit, self->app->timeout_ms, &error);
    if (error.code == TMQ_OK)
        return part;
    const bool gone = exit_of_code (error.code) == EXIT_NOT_FOUND;
    const bool passes = error.code == TMQ_UNREACHABLE || error.code == TMQ_TIMEOUT ||
                        error.code == TMQ_UNKNOWN || error.code == TMQ_OVERLOADED ||
                        error.code == TMQ_UNAVAILABLE || error.code == TMQ_LIMIT;
    if (self->subscription && passes)
        self->owed = true;
    else if (self->subscription && gone)
        self->ended = true; /* removed while it was read */
    else
        self->code = library_error (self->app, &error, self->text);
    return NULL;
}

/* Where the last lines begin. */
static void skip_to_tail (logs_t *self, size_t stream)
{
    tmq_part_t *part = read_part (self, stream, 0, 1);
    const uint64_t end = part ? part->total : 0;
    tmq_part_free (part);
    for (uint64_t window = TAIL_BYTES;; window *= 4) {
        const uint64_t from = end > window ? end - window : 0;
        uint64_t *lines = must_alloc ((size_t) self->tail * sizeof *lines); /* a ring of starts */
        uint64_t count = 0;
        uint64_t at = from;
        bool begins = true;
        while (self->tail > 0 && (part = read_part (self, stream, at, 0)) && part->length > 0) {
            for (size_t i = 0; i < part->length; i++) {
                if (begins)
                    lines[count++ % self->tail] = part->offset + i;
                begins = part->bytes[i] == '\n';
            }
            at = part->offset + part->length;
            tmq_part_free (part);
        }
        if (self->tail > 0)
            tmq_part_free (part);
        self->offsets[stream] = self->tail == 0       ? end
                                : count >= self->tail ? lines[count % self->tail]
                                                      : from;
        const bool enough = count > self->tail || from == 0 || window >= TAIL_BYTES_MAX;
        free (lines);
        if (enough || self->code || self->owed)
            return;
    }
}

static void read_stream (logs_t *self, size_t stream)
{
    bool more = true;
    while (more && !self->code) {
        tmq_part_t *part = read_part (self, stream, self->offsets[stream], 0);
        if (!part)
            return;
        if (self->attempt == 0)
            self->attempt = part->file;
        const bool is_tail = self->tail != UINT64_MAX;
        if (part->length == 0 && part->total > self->offsets[stream])
            part->offset = part->total; /* the broker took it, and lost it */
        const uint64_t lost = part->offset > self->offsets[stream] && !is_tail
                                  ? part->offset - self->offsets[stream]
                                  : 0;
        if (part->length > 0 || lost > 0) {
            put_part (self, stream, part, lost);
            self->offsets[stream] = part->offset + part->length;
        }
        more = part->length > 0 && part->more;
        tmq_part_free (part);
    }
}

/* Everything that is there now; of each attempt, if they are followed. */
static void read_all (logs_t *self)
{
    self->owed = false;
    for (;;) {
        for (size_t i = 0; i < STREAMS; i++)
            if (self->wanted[i])
                read_stream (self, i);
        fflush (stdout);
        if (self->fixed || self->owed || self->code || self->attempt == 0 ||
            self->attempt >= self->newest)
            return;
        self->attempt++;
        self->offsets[0] = self->offsets[1] = 0;
        note (self->app, "taskctl: attempt %" PRIu32 " begins", self->attempt);
    }
}

/* Following. */

static void take_event (logs_t *self, const tmq_event_t *event)
{
    if (event->item == TMQ_ITEM_LIVE || event->item == TMQ_ITEM_GAP) {
        self->owed = true;
        return;
    }
    if (event->item != TMQ_ITEM_EVENT && !(event->item == TMQ_ITEM_NOTICE && event->has_log))
        return;
    if (event->attempt > self->newest)
        self->newest = event->attempt;
    if (event->item == TMQ_ITEM_EVENT)
        self->ended = event->status == TMQ_STATUS_NONE || tmq_status_terminal (event->status) ||
                      (self->fixed && event->attempt > self->attempt);
    self->owed = true;
}

static void drain_events (logs_t *self)
{
    tmq_event_t *event;
    while (!self->code &&
           (event = next_event (self->app, self->subscription, &self->code)) != NULL) {
        take_event (self, event);
        tmq_event_free (event);
    }
}

static void take_completions (logs_t *self)
{
    tmq_completion_t *answers[BATCH];
    size_t count = 0;
    if (tmq_client_poll (answers, BATCH, &count, self->app->client, 0) != TMQ_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        link_state_take (&self->link, answers[i]);
        tmq_completion_free (answers[i]);
    }
}

static void follow (logs_t *self)
{
    struct pollfd fds[] = {{tmq_client_fd (self->app->client), POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    while (!self->code) {
        drain_events (self);
        const bool last = self->ended;
        if (self->owed && !self->code)
            read_all (self);
        if (self->code || (last && !self->owed))
            return;
        if (poll (fds, 2, self->owed ? RETRY_MS : -1) < 0 && errno != EINTR) {
            self->code = code_error (self->app, TMQ_SYSTEM, NULL, "poll: %s", strerror (errno));
            return;
        }
        if ((fds[1].revents & POLLERR) || ferror (stdout))
            return; /* nobody reads any more */
        take_completions (self);
    }
}

/* The subscription begins before the look at the task, so that its end is not missed. */
static int begin_following (logs_t *self)
{
    tmq_subscription_options_t options;
    tmq_error_t error = {0};
    tmq_task_t *task = NULL;
    tmq_subscription_options_init (&options);
    options.filter.task_ids = &self->id;
    options.filter.task_ids_count = 1;
    options.logs = true;
    options.notify = true;
    error.code = tmq_subscription_new (&self->subscription, self->app->client, &options, &error);
    if (error.code == TMQ_OK)
        error.code = tmq_subscription_ready (self->subscription, self->app->timeout_ms, &error);
    if (error.code == TMQ_OK)
        error.code = tmq_get (&task, self->app->client, &self->id, self->app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return library_error (self->app, &error, self->text);
    self->newest = task->attempt;
    self->ended =
        tmq_status_terminal (task->status) || (self->fixed && task->attempt > self->attempt);
    self->owed = true;
    tmq_task_free (task);
    return 0;
}

/* Beginning and end. */

static int take_options (logs_t *self)
{
    const args_t *args = &self->app->args;
    const char *stream = args_text (args, OPT_STREAM);
    for (size_t i = 0; i < STREAMS; i++)
        self->wanted[i] = !stream || strcmp (stream, stream_names[i]) == 0;
    if (!self->wanted[0] && !self->wanted[1])
        return usage_error (self->app, NULL, "--stream '%.20s' must be out or err", stream);
    self->attempt = (uint32_t) args_number (args, OPT_ATTEMPT, 0);
    self->fixed = self->attempt != 0;
    self->tail = args_number (args, OPT_TAIL, UINT64_MAX);
    if (args_has (args, OPT_FOLLOW) && self->app->format == FORMAT_JSON)
        return usage_error (self->app, NULL, "logs -f has no end for -o json: use -o jsonl");
    return 0;
}

/* Logs are the broker's that took them; the tasks may have another owner since. */
static void tell_none (const logs_t *self)
{
    tmq_whoami_t who = {.size = sizeof who};
    const bool several =
        tmq_client_whoami (&who, self->app->client) == TMQ_OK && who.endpoints_count > 1;
    const char *elsewhere =
        several ? "; if another broker owned the tasks when it ran, its log is there" : "";
    if (self->attempt == 0)
        note (self->app, "the broker has no log of the task%s", elsewhere);
    else
        note (self->app, "the broker has no log of attempt %" PRIu32 "%s", self->attempt,
              elsewhere);
}

static void logs_one (logs_t *self)
{
    for (size_t i = 0; self->tail != UINT64_MAX && !self->code && i < STREAMS; i++)
        if (self->wanted[i])
            skip_to_tail (self, i);
    if (self->code)
        return;
    if (self->subscription)
        follow (self);
    else
        read_all (self);
    bool any = false;
    for (size_t i = 0; i < STREAMS; i++)
        any = any || self->offsets[i] > 0;
    if (!self->code && (self->attempt == 0 || (self->fixed && !any)))
        tell_none (self);
}

int run_logs (app_t *app)
{
    logs_t self = {.app = app, .link = {.app = app, .meanwhile = "following goes on"}};
    int code;
    const bool follows = args_has (&app->args, OPT_FOLLOW);
    app->tells_link = follows;
    if ((code = take_options (&self)) || !app_operands_are_ids (app, &code) ||
        (code = app_connect (app)) || (code = app_resolve (app, &self.id, app->args.operands[0])))
        return code;
    tmq_id_format (&self.id, self.text);
    self.terminal = isatty (STDOUT_FILENO);
    if (follows && (code = begin_following (&self)))
        return code;
    items_begin (&self.items, app, false);
    logs_one (&self);
    items_end (&self.items, NULL);
    fflush (stdout);
    tmq_subscription_free (&self.subscription);
    return self.code;
}
