/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "json.h"
#include "work/guard.h"
#include "work/workplace.h"

/* Names that are set here, or that only an outer worker can have set. */
static const char *const own_names[] = {
    "TASKMQ_TASK_ID=",         "TASKMQ_ATTEMPT=",        "TASKMQ_QUEUE=",    "TASKMQ_SESSION=",
    "TASKMQ_TRACE=",           "TASKMQ_MAX_RUNTIME_MS=", "TASKMQ_METHOD=",   "TASKMQ_FD=",
    "TASKMQ_LABELS=",          "TASKMQ_META=",           "TASKMQ_ENDPOINT=", "TASKMQ_PAYLOAD_FILE=",
    "TASKMQ_NAMESPACE=",       "TASKMQ_AFTER=",          "TASKMQ_TURNS=",    "TASKMQ_WORKDIR=",
    "TASKMQ_CHECKPOINT_FILE=", "TASKMQ_META_FILE=",      "TRACEPARENT=",     "TRACESTATE=",
    "TASKMQ_ARTIFACTS="};
/* Secrets of the worker, which are none of the program's business. */
static const char *const secret_names[] = {"TASKMQ_KEY=", "TASKMQ_JOIN="};
static const char key_file_name[] = "TASKMQ_KEY_FILE";
static const char label_prefix[] = "TASKMQ_LABEL_";

typedef struct variables {
    char **all; /* NULL-terminated */
    size_t count;
} variables_t;

static void put (variables_t *self, const char *name, const char *value)
{
    char *text = must_alloc (strlen (name) + strlen (value) + 2);
    sprintf (text, "%s=%s", name, value);
    self->all = must_grow (self->all, self->count + 2, sizeof *self->all);
    self->all[self->count++] = text;
    self->all[self->count] = NULL;
}

static bool has (const variables_t *self, const char *name)
{
    const size_t length = strlen (name);
    for (size_t i = 0; i < self->count; i++) {
        if (strncmp (self->all[i], name, length) == 0 && self->all[i][length] == '=')
            return true;
    }
    return false;
}

/* For shells, whose names have no dots and dashes. Of two labels that get one name the first
 * counts; TASKMQ_LABELS has them all. */
static void put_label (variables_t *self, const tmq_label_t *label)
{
    char name[sizeof label_prefix + TMQ_NAME_LENGTH_MAX];
    snprintf (name, sizeof name, "%s%s", label_prefix, label->key);
    for (char *at = name; *at; at++)
        *at = *at == '.' || *at == '-' ? '_' : *at;
    if (!has (self, name))
        put (self, name, label->value);
}

static void put_labels (variables_t *self, const tmq_assignment_t *task)
{
    bytes_t bytes = BYTES_INIT;
    json_writer_t writer = {&bytes, false};
    json_write_object_begin (&writer);
    for (size_t i = 0; i < task->labels_count; i++) {
        json_write_foreign_key (&writer, task->labels[i].key);
        json_write_string (&writer, task->labels[i].value, strlen (task->labels[i].value));
        put_label (self, &task->labels[i]);
    }
    json_write_object_end (&writer);
    char *text = must_alloc (bytes.length + 1);
    memcpy (text, bytes.data, bytes.length);
    put (self, "TASKMQ_LABELS", text);
    free (text);
    bytes_free (&bytes);
}

/* "ID=completed ID=failed": what it waited for, with how that ended. */
static void put_after (variables_t *self, const tmq_assignment_t *task)
{
    enum { ONE_BYTES = 64 };
    char id[37];
    char *text = must_alloc (task->after_count * ONE_BYTES + 1);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < task->after_count; i++) {
        tmq_id_format (&task->after[i].id, id);
        used += (size_t) snprintf (text + used, ONE_BYTES, "%s%s=%s", i > 0 ? " " : "", id,
                                   tmq_status_text (task->after[i].status));
    }
    put (self, "TASKMQ_AFTER", text);
    free (text);
}

/* As programs that follow traces look for it: "TRACEPARENT TRACESTATE", or the first alone. One
 * that the worker itself was started with is no task's. */
static void put_trace (variables_t *self, const char *trace)
{
    const size_t parent = strcspn (trace, " ");
    if (parent == 0)
        return;
    char *text = must_copy (trace);
    text[parent] = '\0';
    put (self, "TRACEPARENT", text);
    if (trace[parent] != '\0')
        put (self, "TRACESTATE", trace + parent + 1);
    free (text);
}

static void put_task (variables_t *self, const tmq_assignment_t *task)
{
    char number[24];
    char id[37];
    tmq_id_format (&task->task_id, id);
    put (self, "TASKMQ_TASK_ID", id);
    snprintf (number, sizeof number, "%u", task->attempt);
    put (self, "TASKMQ_ATTEMPT", number);
    put (self, "TASKMQ_QUEUE", task->queue);
    put (self, "TASKMQ_SESSION", task->session);
    put (self, "TASKMQ_METHOD", task->method);
    put (self, "TASKMQ_META", task->meta);
    put (self, "TASKMQ_TRACE", task->trace);
    put_trace (self, task->trace);
    snprintf (number, sizeof number, "%" PRIu64, task->max_runtime_ms);
    put (self, "TASKMQ_MAX_RUNTIME_MS", task->max_runtime_ms ? number : "");
    snprintf (number, sizeof number, "%" PRIu32, task->turns);
    put (self, "TASKMQ_TURNS", number);
    put_labels (self, task);
    put_after (self, task);
}

static void put_place (variables_t *self, const work_job_t *job)
{
    static const struct {
        const char *name;
        const char *what;
    } paths[] = {{"TASKMQ_WORKDIR", WORKPLACE_WORK},
                 {"TASKMQ_ARTIFACTS", WORKPLACE_ARTIFACTS},
                 {"TASKMQ_CHECKPOINT_FILE", WORKPLACE_CHECKPOINT},
                 {"TASKMQ_META_FILE", WORKPLACE_META},
                 {"TASKMQ_PAYLOAD_FILE", WORKPLACE_PAYLOAD}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths - !job->plan->payload_file; i++) {
        char *path = workplace_path (job->place, paths[i].what);
        put (self, paths[i].name, path);
        free (path);
    }
}

static bool is_one_of (const char *variable, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp (variable, names[i], strlen (names[i])) == 0)
            return true;
    }
    return false;
}

static bool is_kept_back (const variables_t *self, const char *variable)
{
    const size_t length = sizeof key_file_name - 1;
    return is_one_of (variable, own_names, sizeof own_names / sizeof *own_names) ||
           is_one_of (variable, secret_names, sizeof secret_names / sizeof *secret_names) ||
           strncmp (variable, label_prefix, strlen (label_prefix)) == 0 ||
           (strncmp (variable, key_file_name, length) == 0 && variable[length] == '=' &&
            has (self, key_file_name));
}

char **environment_make (const job_plan_t *plan, const work_job_t *job)
{
    variables_t self = {0};
    char number[16];
    put_task (&self, job->assignment);
    snprintf (number, sizeof number, "%d", GUARD_TALK_FD);
    put (&self, "TASKMQ_FD", number);
    put (&self, "TASKMQ_ENDPOINT", plan->endpoint);
    put (&self, "TASKMQ_NAMESPACE", plan->ns);
    if (plan->key_file)
        put (&self, key_file_name, plan->key_file);
    put_place (&self, job);
    for (char **inherited = environ; *inherited; inherited++) {
        if (is_kept_back (&self, *inherited))
            continue;
        self.all = must_grow (self.all, self.count + 2, sizeof *self.all);
        self.all[self.count++] = must_copy (*inherited);
        self.all[self.count] = NULL;
    }
    return self.all;
}

void environment_free (char **environment)
{
    for (char **variable = environment; *variable; variable++)
        free (*variable);
    free (environment);
}
