/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl retry, resume, set, purge: of ids, or of all that match conditions.
 *
 * Up to 256 tasks go in a request, one request at a time, so what was answered is printed before
 * the next is sent. Of tasks that conditions matched some may go before their turn: that is said,
 * and no failure. The command may be repeated. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "ids.h"
#include "line/labels.h"
#include "link/connect.h"
#include "link/ids.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/status.h"
#include "verbs/many.h"
#include "verbs/verbs.h"

typedef struct again again_t;

/* One of the commands. */
typedef struct deed {
    many_t many;
    int (*send) (again_t *self, tmq_changed_t *out, const tmq_id_t *ids, size_t count,
                 tmq_error_t *error);
} deed_t;

struct again {
    app_t *app;
    const deed_t *deed;
    tmq_set_t set;
    uint8_t request_id[16]; /* of all its requests */
    items_t items;
    tally_t tally;
    status_line_t status;
    tmq_id_t *ids;
    size_t count;
    size_t gone; /* before their turn, where a condition matched them */
    bool denied; /* one was, and it was said what would be needed */
    bool by_filter;
};

static void put_done (again_t *self, const tmq_changed_t *answer)
{
    char id[37];
    const char *status = answer->status ? tmq_status_text (answer->status) : self->deed->many.past;
    tmq_id_format (&answer->id, id);
    if (app_wants_json (self->app)) {
        json_writer_t *writer = items_open (&self->items);
        json_write_object_begin (writer);
        json_write_key (writer, "task_id");
        json_write_text (writer, id);
        json_write_key (writer, "status");
        if (answer->status)
            json_write_text (writer, status);
        else
            json_write_null (writer);
        json_write_object_end (writer);
        items_close (&self->items);
    } else if (self->app->format == FORMAT_ID) {
        puts (id);
    } else {
        printf ("%s  %s\n", id, status);
    }
}

static int put_answer (again_t *self, const tmq_changed_t *answer)
{
    char id[37];
    const int code = answer->code;
    if (code == TMQ_OK) {
        put_done (self, answer);
        return EXIT_OK;
    }
    tmq_error_t error = {.code = code};
    snprintf (error.text, sizeof error.text, "%s", answer->text);
    tmq_id_format (&answer->id, id);
    if (self->by_filter && exit_of_code (code) == EXIT_NOT_FOUND) {
        note (self->app, "taskctl: %s: %s", id, error.text);
        self->gone++;
        return EXIT_OK;
    }
    if (code == TMQ_DENIED && self->denied)
        return id_error (self->app, code, id, NULL, "%s: %s", id,
                         *error.text ? error.text : tmq_code_text (code));
    self->denied |= code == TMQ_DENIED;
    if (code == TMQ_UNKNOWN) {
        char hint[96];
        char hex[2 * sizeof self->request_id + 1];
        hex_encode (hex, self->request_id, sizeof self->request_id);
        snprintf (hint, sizeof hint, "run it again with --request-id %s", hex);
        return unknown_error (self->app, &error, id, hint, "%s: no answer in time: it may be %s",
                              id, self->deed->many.past);
    }
    return library_error (self->app, &error, id);
}

/* 0 or an exit code: of what concerns all, so that the rest need not be tried. */
static int send_some (again_t *self, size_t from, size_t count)
{
    tmq_changed_t answers[TMQ_CHANGE_IDS_MAX];
    tmq_error_t error = {0};
    const int code = self->deed->send (self, answers, self->ids + from, count, &error);
    status_hide (self->app);
    if (code != TMQ_OK && code != TMQ_UNKNOWN)
        return library_error (self->app, &error, NULL);
    for (size_t i = 0; i < count; i++)
        tally_add (&self->tally, put_answer (self, &answers[i]));
    if (from + count < self->count)
        status_show_bar (self->app, from + count, self->count, "%zu of %zu %s", from + count,
                         self->count, self->deed->many.past);
    return 0;
}

static int send_all (again_t *self)
{
    int code = 0;
    for (size_t from = 0; !code && from < self->count; from += TMQ_CHANGE_IDS_MAX) {
        const size_t left = self->count - from;
        code = send_some (self, from, left < TMQ_CHANGE_IDS_MAX ? left : TMQ_CHANGE_IDS_MAX);
    }
    return code;
}

static void say_how_many (const again_t *self)
{
    if (self->count == 0)
        note (self->app, "no tasks");
    else
        note (self->app, "%zu of %zu %s", self->tally.done - self->gone, self->count,
              self->deed->many.past);
}

static int run (again_t *self, const deed_t *deed)
{
    app_t *app = self->app;
    tmq_id_t made;
    bool go_on;
    int code;
    self->deed = deed;
    self->by_filter = app->args.operands_count == 0;
    const char *repeat = args_text (&app->args, OPT_REQUEST_ID);
    tmq_id_make (&made);
    memcpy (self->request_id, made.bytes, sizeof self->request_id);
    if (repeat)
        hex_decode (self->request_id, sizeof self->request_id, repeat);
    if (!app_operands_are_ids (app, &code) || (code = many_check (app)) ||
        (code = app_connect (app)))
        return code;
    code = many_find (app, &deed->many, &self->ids, &self->count, &self->tally, &go_on);
    if (!code && go_on) {
        status_begin (&self->status, app);
        items_begin (&self->items, app, false);
        code = send_all (self);
        status_end (app);
        items_end (&self->items, NULL);
        if (!code && self->by_filter)
            say_how_many (self);
        if (!code)
            code = tally_exit (&self->tally);
    }
    free (self->ids);
    return code;
}

/* The commands. */

static int send_retry (again_t *self, tmq_changed_t *out, const tmq_id_t *ids, size_t count,
                       tmq_error_t *error)
{
    return tmq_retry (out, self->app->client, ids, count, self->request_id, self->app->timeout_ms,
                      error);
}

static int send_resume (again_t *self, tmq_changed_t *out, const tmq_id_t *ids, size_t count,
                        tmq_error_t *error)
{
    const args_t *args = &self->app->args;
    if (args_has (args, OPT_FROM_TURN))
        return tmq_resume_from (out, self->app->client, ids,
                                (uint32_t) args_number (args, OPT_FROM_TURN, 0), self->request_id,
                                self->app->timeout_ms, error);
    return tmq_resume (out, self->app->client, ids, count, self->request_id, self->app->timeout_ms,
                       error);
}

static int send_purge (again_t *self, tmq_changed_t *out, const tmq_id_t *ids, size_t count,
                       tmq_error_t *error)
{
    return tmq_purge (out, self->app->client, ids, count, self->request_id, self->app->timeout_ms,
                      error);
}

static int send_set (again_t *self, tmq_changed_t *out, const tmq_id_t *ids, size_t count,
                     tmq_error_t *error)
{
    return tmq_set (out, self->app->client, ids, count, &self->set, self->request_id,
                    self->app->timeout_ms, error);
}

static const tmq_status_t ENDED[] = {TMQ_STATUS_FAILED, TMQ_STATUS_CANCELLED, TMQ_STATUS_COMPLETED};
static const tmq_status_t LIVE[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_WORKING,
                                    TMQ_STATUS_INPUT_REQUIRED};
static const deed_t RETRY = {{"retry", "retried", ENDED, 2, true}, send_retry};
static const deed_t RESUME = {{"resume", "resumed", ENDED, 2, true}, send_resume};
static const deed_t PURGE = {{"purge", "purged", ENDED, 3, true}, send_purge};
static const deed_t SET = {{"set", "set", LIVE, 3, false}, send_set};

int run_retry (app_t *app)
{
    again_t self = {.app = app};
    return run (&self, &RETRY);
}

int run_resume (app_t *app)
{
    again_t self = {.app = app};
    if (args_has (&app->args, OPT_FROM_TURN) && app->args.operands_count != 1)
        return usage_error (app, "taskctl get --turns ID shows its turns",
                            "--from-turn goes with one ID");
    return run (&self, &RESUME);
}

int run_purge (app_t *app)
{
    again_t self = {.app = app};
    return run (&self, &PURGE);
}

/* What set changes, with the arrays that it points into. */
typedef struct changes {
    labels_t labels;
    const char *drop[TMQ_LABELS_MAX];
} changes_t;

static int take_labels (app_t *app, tmq_set_t *set, changes_t *changes)
{
    const args_t *args = &app->args;
    set->drop_labels_count = args_count (args, OPT_DROP_LABEL);
    if (!labels_from_args (&changes->labels, args, OPT_SET_LABEL) ||
        set->drop_labels_count > TMQ_LABELS_MAX)
        return usage_error (app, NULL, "at most %d labels", TMQ_LABELS_MAX);
    for (size_t i = 0; i < set->drop_labels_count; i++)
        changes->drop[i] = args_nth (args, OPT_DROP_LABEL, i)->text;
    set->labels = changes->labels.list;
    set->labels_count = changes->labels.count;
    set->drop_labels = changes->drop;
    return 0;
}

static int take_changes (app_t *app, tmq_set_t *set, changes_t *changes)
{
    const args_t *args = &app->args;
    const int starts =
        args_has (args, OPT_AT) + args_has (args, OPT_DELAY) + args_has (args, OPT_NOW);
    tmq_set_init (set);
    if (starts > 1)
        return usage_error (app, NULL, "one of --at, --delay and --now");
    set->ttl = args_has (args, OPT_TTL);
    set->ttl_ms = args_number (args, OPT_TTL, 0);
    if (args_has (args, OPT_PRIORITY))
        set->priority = (int) args_number (args, OPT_PRIORITY, 0);
    set->max_attempts = (uint32_t) args_number (args, OPT_MAX_ATTEMPTS, 0);
    if (args_has (args, OPT_AT))
        set->not_before = (int64_t) args_number (args, OPT_AT, 0);
    else if (args_has (args, OPT_DELAY))
        set->not_before = (int64_t) (wall_ms () + args_number (args, OPT_DELAY, 0));
    else if (args_has (args, OPT_NOW))
        set->not_before = 0;
    const int code = take_labels (app, set, changes);
    if (!code && !set->ttl && set->priority < 0 && !set->max_attempts && set->not_before < 0 &&
        !set->labels_count && !set->drop_labels_count)
        return usage_error (app, "taskctl set --help lists what can be set",
                            "set needs something to change, such as --ttl or --priority");
    return code;
}

int run_set (app_t *app)
{
    again_t self = {.app = app};
    changes_t changes = {0};
    const int code = take_changes (app, &self.set, &changes);
    return code ? code : run (&self, &SET);
}
