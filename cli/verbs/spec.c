/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks to be submitted: from options, from JSON, and back to JSON for --dry-run.
 *
 * A line of a batch file has the options of `submit` as keys, with underscores, and their values
 * are checked by the same option list, so the two cannot drift apart. */
#include "verbs/spec.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ids.h"
#include "link/input.h"
#include "screen/fields.h"
#include "screen/foreign.h"
#include "screen/output.h"
#include "units.h"
#include "verbs/given.h"

void spec_init (spec_t *self, const option_spec_t *options)
{
    memset (self, 0, sizeof *self);
    self->options = options;
    self->file = -1;
    tmq_submit_init (&self->submit);
    self->submit.labels = self->labels;
    self->submit.needs = self->needs;
}

void spec_clear (spec_t *self)
{
    for (size_t i = 0; i < self->owned_count; i++)
        free (self->owned[i]);
    free (self->owned);
    free (self->after);
    if (self->file >= 0)
        close (self->file);
    memset (self, 0, sizeof *self);
}

/* The spec frees text. */
static char *keep (spec_t *self, char *text)
{
    self->owned = must_grow (self->owned, self->owned_count + 1, sizeof *self->owned);
    self->owned[self->owned_count++] = text;
    return text;
}

/* What is written NAME=VALUE: the labels of the task, or those that it requires. */
typedef struct pairs {
    tmq_label_t *list;
    size_t *count;
    size_t max;
    const char *name; /* "label" */
} pairs_t;

static pairs_t labels_of (spec_t *self)
{
    return (pairs_t){self->labels, &self->submit.labels_count, TMQ_LABELS_MAX, "label"};
}

static pairs_t needs_of (spec_t *self)
{
    return (pairs_t){self->needs, &self->submit.needs_count, TMQ_NEEDS_MAX, "required label"};
}

static bool add_pair (spec_t *self, pairs_t pairs, const char *text, char *why, size_t why_size)
{
    char *key = keep (self, must_copy (text));
    char *equals = strchr (key, '=');
    *equals = '\0';
    for (size_t i = 0; i < *pairs.count; i++) {
        if (strcmp (pairs.list[i].key, key) == 0) {
            snprintf (why, why_size, "%s '%s' is given twice", pairs.name, key);
            return false;
        }
    }
    if (*pairs.count == pairs.max) {
        snprintf (why, why_size, "more than %zu %ss", pairs.max, pairs.name);
        return false;
    }
    pairs.list[(*pairs.count)++] = (tmq_label_t){key, equals + 1};
    return true;
}

static const char *const policies[] = {
#define X(number, NAME, text) [number] = text,
    TMQ_AFTER_MAP (X)
#undef X
};

const char *after_name (tmq_after_t policy)
{
    return (size_t) policy < sizeof policies / sizeof *policies ? policies[policy] : "?";
}

bool after_find (tmq_after_t *out, const char *name)
{
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (strcmp (policies[i], name) == 0) {
            *out = (tmq_after_t) i;
            return true;
        }
    }
    return false;
}

/* "line:N" into the id of that line's task. */
static bool find_line (tmq_id_t *out, const spec_t *self, const char *option, const char *text,
                       char *why, size_t why_size)
{
    char *end;
    const unsigned long long line = strtoull (text, &end, 10);
    if (*text < '0' || *text > '9' || *end || line == 0) {
        snprintf (why, why_size, "%s: line:N needs the number of a line, from 1", option);
        return false;
    }
    if (line > self->earlier_count || id_is_zero (&self->earlier[line - 1])) {
        snprintf (why, why_size, "%s: line %llu is no earlier line with a task", option, line);
        return false;
    }
    *out = self->earlier[line - 1];
    return true;
}

/* "ID" or "line:N". */
static bool find_task (tmq_id_t *out, const spec_t *self, const char *option, const char *text,
                       char *why, size_t why_size)
{
    const bool is_line = strncmp (text, "line:", 5) == 0;
    if (is_line && self->earlier)
        return find_line (out, self, option, text + 5, why, why_size);
    snprintf (why, why_size, "%s: line:N is for the lines of a --batch", option);
    if (is_line)
        return false;
    snprintf (why, why_size, "%s: '%.64s' must be the id of a task%s", option, text,
              self->earlier ? ", a whole one, or line:N" : "");
    return tmq_id_parse (out, text) == TMQ_OK;
}

/* "ID", "ID:POLICY", "line:N" or "line:N:POLICY". */
static bool add_after (spec_t *self, const char *given, char *why, size_t why_size)
{
    tmq_submit_t *submit = &self->submit;
    tmq_dependency_t after = {.policy = TMQ_AFTER_FAIL};
    char text[80];
    snprintf (text, sizeof text, "%s", given);
    char *colon = strchr (strncmp (text, "line:", 5) == 0 ? text + 5 : text, ':');
    if (colon) {
        *colon = '\0';
        snprintf (why, why_size, "after: '%.20s' must be fail, ignore or continue", colon + 1);
        if (!after_find (&after.policy, colon + 1))
            return false;
    }
    if (!find_task (&after.id, self, "after", text, why, why_size))
        return false;
    snprintf (why, why_size, "after: '%.64s' is given twice", text);
    for (size_t i = 0; i < submit->after_count; i++)
        if (id_equal (&self->after[i].id, &after.id))
            return false;
    snprintf (why, why_size, "after: more than %d tasks", TMQ_AFTER_MAX);
    if (submit->after_count == TMQ_AFTER_MAX)
        return false;
    self->after = must_grow (self->after, submit->after_count + 1, sizeof *self->after);
    self->after[submit->after_count++] = after;
    submit->after = self->after;
    return true;
}

/* What one value alone does not tell. A task cannot wait for itself, and its id may stand behind
 * what it waits for. */
static bool is_consistent (const spec_t *self, char *why, size_t why_size)
{
    snprintf (why, why_size, "only one of delay and at");
    if (self->submit.delay_ms && self->submit.not_before)
        return false;
    const tmq_submit_t *submit = &self->submit;
    const uint64_t now_ms = wall_ms ();
    snprintf (why, why_size, "start_by: that time has passed");
    if (submit->start_by && submit->start_by <= now_ms)
        return false;
    snprintf (why, why_size, "start_by is before the task may start (%s)",
              submit->delay_ms ? "delay" : "at");
    if (submit->start_by &&
        (submit->start_by <= submit->not_before || submit->start_by - now_ms <= submit->delay_ms))
        return false;
    snprintf (why, why_size, "after: a task cannot depend on itself");
    for (size_t i = 0; i < self->submit.after_count; i++)
        if (id_equal (&self->after[i].id, &self->submit.id))
            return false;
    snprintf (why, why_size, "parent: a task cannot be a part of itself");
    return id_is_zero (&self->submit.id) || !id_equal (&self->submit.parent, &self->submit.id);
}

static bool is_object (const char *text, char *why, size_t why_size)
{
    json_error_t error;
    json_t *value = json_loads (text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    const bool good = json_is_object (value);
    snprintf (why, why_size, "meta must be a JSON object%s%.100s", value ? "" : ": ",
              value ? "" : error.text);
    json_decref (value);
    return good;
}

static bool is_trace (const char *text, char *why, size_t why_size)
{
    snprintf (why, why_size, "trace must be printable ASCII");
    for (const char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            return false;
    return true;
}

/* Puts one checked value where it belongs. text is borrowed. */
static bool put_option (spec_t *self, option_id_t id, const char *text, uint64_t number, char *why,
                        size_t why_size)
{
    tmq_submit_t *submit = &self->submit;
    switch (id) {
    case OPT_SESSION: submit->session = text; break;
    case OPT_DEDUP_KEY: submit->dedup_key = text; break;
    case OPT_METHOD: submit->method = text; break;
    case OPT_CONTENT_TYPE: submit->content_type = text; break;
    case OPT_PRIORITY: submit->priority = (int) number; break;
    case OPT_TTL:
        submit->ttl_ms = number;
        submit->ttl_never = number == 0;
        break;
    case OPT_MAX_ATTEMPTS: submit->max_attempts = (uint32_t) number; break;
    case OPT_BACKOFF: submit->backoff_ms = (uint32_t) number; break;
    case OPT_LEASE: submit->lease_ms = (uint32_t) number; break;
    case OPT_POLL_INTERVAL: submit->poll_interval_ms = (uint32_t) number; break;
    case OPT_DELAY: submit->delay_ms = number; break;
    case OPT_AT: submit->not_before = number; break;
    case OPT_START_BY: submit->start_by = number; break;
    case OPT_MAX_RUNTIME: submit->max_runtime_ms = number; break;
    case OPT_TRACE: submit->trace = text; return is_trace (text, why, why_size);
    case OPT_LABEL: return add_pair (self, labels_of (self), text, why, why_size);
    case OPT_REQUIRE: return add_pair (self, needs_of (self), text, why, why_size);
    case OPT_FAIR_KEY: submit->fair_key = text; break;
    case OPT_PARENT: return find_task (&submit->parent, self, "parent", text, why, why_size);
    case OPT_AFTER: return add_after (self, text, why, why_size);
    case OPT_ID:
        snprintf (why, why_size, "the id must be a UUIDv7");
        return tmq_id_parse (&submit->id, text) == TMQ_OK && id_is_v7 (&submit->id);
    case OPT_META: submit->meta = text; return is_object (text, why, why_size);
    default: break;
    }
    return true;
}

/* From the command line. */

static int read_payload (spec_t *self, app_t *app, size_t place)
{
    given_t given;
    const int code =
        self->takes_files
            ? given_read_large (&given, &self->file, app, place, TMQ_FRAME_BYTES_MAX, "the payload")
            : given_read (&given, app, place, TMQ_FRAME_BYTES_MAX, "the payload");
    if (given.owned)
        keep (self, given.owned);
    if (self->file >= 0)
        self->file_bytes = given.length;
    if (!code && given.given) {
        self->submit.payload = given.bytes;
        self->submit.payload_bytes = given.length;
    }
    return code;
}

int spec_from_args (spec_t *self, app_t *app, size_t queue)
{
    const args_t *args = &app->args;
    char why[160];
    if (args->operands_count <= queue)
        return usage_error (app, "taskctl help submit", "submit needs a queue, or --batch FILE");
    if (!name_is_valid (args->operands[queue]))
        return usage_error (app, NULL, "queue '%.80s' must be 1 to 64 of A-Z a-z 0-9 . _ -",
                            args->operands[queue]);
    self->submit.queue = args->operands[queue];
    for (size_t i = 0; i < args->values_count; i++) {
        const option_value_t *value = &args->values[i];
        if (!put_option (self, value->spec->id, value->text, value->number, why, sizeof why))
            return usage_error (app, NULL, "%s", why);
    }
    if (!is_consistent (self, why, sizeof why))
        return usage_error (app, NULL, "%s", why);
    return read_payload (self, app, queue + 1);
}

/* From a line of a batch file. */

static const option_spec_t *find_option (const spec_t *self, const char *key)
{
    for (const option_spec_t *option = self->options; option->id; option++) {
        size_t i = 0;
        while (key[i] && (key[i] == '_' ? '-' : key[i]) == option->name[i] && key[i] != '-')
            i++;
        if (!key[i] && !option->name[i])
            return option;
    }
    return NULL;
}

static bool is_batch_key (const option_spec_t *option)
{
    switch (option->id) {
    case OPT_DATA:
    case OPT_FILE:
    case OPT_BATCH:
    case OPT_LINES:
    case OPT_AFTER:
    case OPT_LABEL:
    case OPT_REQUIRE:
    case OPT_META:
    case OPT_WAIT:
    case OPT_FOR:
    case OPT_DRY_RUN: return false; /* they have a form of their own, or none */
    default: return true;
    }
}

static char *dump (const json_t *value)
{
    char *text = json_dumps (value, JSON_COMPACT | JSON_ENCODE_ANY);
    return text ? text : must_grow (NULL, SIZE_MAX, 2);
}

/* RFC 4648, padding included. NULL if text is not that. */
static char *decode_base64 (const char *text, size_t length, size_t *bytes)
{
    const size_t size = length / 4 * 3 + 1;
    char *out = must_alloc (size);
    if (sodium_base642bin ((unsigned char *) out, size, text, length, NULL, bytes, NULL,
                           sodium_base64_VARIANT_ORIGINAL) == 0)
        return out;
    free (out);
    return NULL;
}

/* A member's JSON as it stands in the line: numbers keep their digits. */
static char *json_of (spec_t *self, const bytes_t *line, const char *key, const json_t *value)
{
    char *text = fields_value (line, key);
    return keep (self, text ? text : dump (value)); /* a key with escapes is not found */
}

static bool put_data (spec_t *self, const bytes_t *line, const json_t *value, char *why,
                      size_t why_size)
{
    tmq_submit_t *submit = &self->submit;
    const char *json = json_of (self, line, "data", value);
    const json_t *base64 = json_object_get (value, "base64");
    if (json_is_string (base64) && json_object_size (value) == 1) {
        char *bytes = decode_base64 (json_string_value (base64), json_string_length (base64),
                                     &submit->payload_bytes);
        snprintf (why, why_size, "data: the base64 is not valid");
        if (!bytes)
            return false;
        submit->payload = keep (self, bytes);
    } else if (*json == '"') {
        const size_t length = json_string_length (value);
        char *bytes = keep (self, must_alloc (length));
        memcpy (bytes, json_string_value (value), length);
        submit->payload = bytes;
        submit->payload_bytes = length;
    } else {
        submit->payload = json;
        submit->payload_bytes = strlen (json);
    }
    const size_t limit = self->takes_files ? (size_t) TMQ_BLOB_BYTES_MAX : TMQ_FRAME_BYTES_MAX;
    snprintf (why, why_size, "data has %zu bytes, the limit is %zu", submit->payload_bytes, limit);
    return submit->payload_bytes <= limit;
}

static bool put_pairs (spec_t *self, pairs_t pairs, const char *name, const json_t *value,
                       char *why, size_t why_size)
{
    const option_spec_t *option = find_option (self, "label");
    const char *key;
    json_t *label;
    char problem[100] = "must be an object of strings";
    if (!json_is_object (value)) {
        snprintf (why, why_size, "%s %s", name, problem);
        return false;
    }
    json_object_foreach ((json_t *) value, key, label)
    {
        uint64_t ignored;
        const char *text = json_string_value (label);
        char *pair = keep (self, must_alloc (strlen (key) + (text ? strlen (text) : 0) + 2));
        sprintf (pair, "%s=%s", key, text ? text : "");
        if (!text || !value_parse (&ignored, option, pair, problem, sizeof problem)) {
            snprintf (why, why_size, "%s: '%.64s' %s", name, key, problem);
            return false;
        }
        if (!add_pair (self, pairs, pair, why, why_size))
            return false;
    }
    return true;
}

/* One string, or an array of them. */
static bool put_after (spec_t *self, const json_t *value, char *why, size_t why_size)
{
    const size_t count = json_is_array (value) ? json_array_size (value) : 1;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array (value) ? json_array_get (value, i) : value;
        snprintf (why, why_size, "after must be a string or an array of strings");
        if (!json_is_string (one) || !add_after (self, json_string_value (one), why, why_size))
            return false;
    }
    return true;
}

static bool put_key (spec_t *self, const char *key, const json_t *value, char *why, size_t why_size)
{
    const option_spec_t *option = find_option (self, key);
    char text[64];
    char problem[120];
    uint64_t number = 0;
    if (!option || !is_batch_key (option)) {
        snprintf (why, why_size, "unknown key '%.64s'", key);
        return false;
    }
    const char *given = json_string_value (value);
    if (json_is_integer (value)) {
        snprintf (text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value (value));
        given = text;
    } else if (!given || strlen (given) != json_string_length (value)) {
        snprintf (why, why_size, "%s must be a string or a whole number", key);
        return false;
    }
    if (json_is_integer (value) != (option->kind == KIND_NUMBER) &&
        !(option->kind == KIND_DURATION && strcmp (given, "0") == 0)) {
        snprintf (why, why_size, "%s must be a %s", key,
                  option->kind == KIND_NUMBER ? "whole number" : "string");
        return false;
    }
    if (!value_parse (&number, option, given, problem, sizeof problem)) {
        snprintf (why, why_size, "%s '%.64s' %s", key, given, problem);
        return false;
    }
    return put_option (self, option->id, keep (self, must_copy (given)), number, why, why_size);
}

static bool put_member (spec_t *self, const bytes_t *line, const char *key, const json_t *value,
                        char *why, size_t why_size)
{
    if (strcmp (key, "data") == 0)
        return put_data (self, line, value, why, why_size);
    if (strcmp (key, "after") == 0)
        return put_after (self, value, why, why_size);
    if (strcmp (key, "label") == 0) {
        snprintf (why, why_size, "label is written \"labels\":{\"NAME\":\"VALUE\"}");
        return false;
    }
    if (strcmp (key, "labels") == 0)
        return put_pairs (self, labels_of (self), key, value, why, why_size);
    if (strcmp (key, "require") == 0)
        return put_pairs (self, needs_of (self), key, value, why, why_size);
    if (strcmp (key, "meta") == 0) {
        snprintf (why, why_size, "meta must be an object of at most %d bytes", TMQ_META_BYTES_MAX);
        self->submit.meta = json_of (self, line, key, value);
        return json_is_object (value) && strlen (self->submit.meta) <= TMQ_META_BYTES_MAX;
    }
    if (strcmp (key, "queue") == 0) {
        snprintf (why, why_size, "queue must be 1 to 64 of A-Z a-z 0-9 . _ -");
        const char *queue = json_string_value (value);
        self->submit.queue = queue ? keep (self, must_copy (queue)) : NULL;
        return queue && name_is_valid (queue);
    }
    return put_key (self, key, value, why, why_size);
}

/* NULL: it is no object, and why says what it is. */
static json_t *read_object (bytes_t *out, const char *line, size_t length, char *why,
                            size_t why_size)
{
    const size_t flags = JSON_REJECT_DUPLICATES;
    json_writer_t writer = {out, false};
    json_error_t error;
    json_t *object = NULL;
    if (json_text_is_object (line, length)) {
        json_write_raw (&writer, line, length);
        object = foreign_read (out, flags);
    }
    if (object)
        return object;
    object = json_loadb (line, length, flags | JSON_ALLOW_NUL, &error);
    snprintf (why, why_size, "%s", object ? "it must be a JSON object" : error.text);
    json_decref (object);
    return NULL;
}

bool spec_from_line (spec_t *self, const char *line, size_t length, char *why, size_t why_size)
{
    const char *key;
    json_t *value;
    bool good = true;
    bytes_t text = BYTES_INIT;
    json_t *object = read_object (&text, line, length, why, why_size);
    json_object_foreach (object, key, value)
    {
        good = good && put_member (self, &text, key, value, why, why_size);
    }
    bytes_free (&text);
    if (!object)
        return false;
    good = good && is_consistent (self, why, why_size);
    if (good && !self->submit.queue) {
        snprintf (why, why_size, "queue is missing");
        good = false;
    }
    json_decref (object);
    return good;
}

/* Back to JSON. */

static void write_string (json_writer_t *writer, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    json_write_key (writer, key);
    json_write_text (writer, text);
}

static void write_duration (json_writer_t *writer, const char *key, uint64_t ms)
{
    char text[UNITS_TEXT_SIZE];
    if (ms)
        write_string (writer, key, duration_format (text, (int64_t) ms));
}

static void write_moment (json_writer_t *writer, const char *key, uint64_t ms)
{
    if (!ms)
        return;
    json_write_key (writer, key);
    json_write_time (writer, (int64_t) ms);
}

static void write_times (json_writer_t *writer, const tmq_submit_t *submit)
{
    write_duration (writer, "delay", submit->delay_ms);
    write_moment (writer, "at", submit->not_before);
    write_moment (writer, "start_by", submit->start_by);
    write_duration (writer, "max_runtime", submit->max_runtime_ms);
}

static void write_pairs (json_writer_t *writer, const char *key, const tmq_label_t *pairs,
                         size_t count)
{
    if (count == 0)
        return;
    json_write_key (writer, key);
    json_write_object_begin (writer);
    for (size_t i = 0; i < count; i++) {
        json_write_key (writer, pairs[i].key);
        json_write_string (writer, pairs[i].value, strlen (pairs[i].value));
    }
    json_write_object_end (writer);
}

static void write_after (json_writer_t *writer, const tmq_submit_t *submit)
{
    char text[64];
    char id[37];
    if (submit->after_count == 0)
        return;
    json_write_key (writer, "after");
    json_write_array_begin (writer);
    for (size_t i = 0; i < submit->after_count; i++) {
        tmq_id_format (&submit->after[i].id, id);
        snprintf (text, sizeof text, "%s:%s", id, policies[submit->after[i].policy]);
        json_write_text (writer, text);
    }
    json_write_array_end (writer);
}

void spec_write (json_writer_t *writer, const spec_t *self)
{
    const tmq_submit_t *submit = &self->submit;
    char id[37];
    json_write_object_begin (writer);
    write_string (writer, "queue", submit->queue);
    /* A key that no line of a batch has: as one it would submit another payload. */
    json_write_key (writer, self->file >= 0 ? "data_bytes" : "data");
    if (self->file >= 0)
        json_write_uint (writer, self->file_bytes);
    else
        json_write_body (writer, "text/plain", submit->payload_bytes ? submit->payload : "",
                         submit->payload_bytes);
    if (!id_is_zero (&submit->id)) {
        tmq_id_format (&submit->id, id);
        write_string (writer, "id", id);
    }
    write_string (writer, "session", submit->session);
    write_string (writer, "dedup_key", submit->dedup_key);
    write_string (writer, "method", submit->method);
    write_string (writer, "content_type", submit->content_type);
    if (submit->priority >= 0) {
        json_write_key (writer, "priority");
        json_write_int (writer, submit->priority);
    }
    if (submit->ttl_never)
        write_string (writer, "ttl", "0");
    write_duration (writer, "ttl", submit->ttl_ms);
    if (submit->max_attempts) {
        json_write_key (writer, "max_attempts");
        json_write_uint (writer, submit->max_attempts);
    }
    write_duration (writer, "backoff", submit->backoff_ms);
    write_duration (writer, "lease", submit->lease_ms);
    write_duration (writer, "poll_interval", submit->poll_interval_ms);
    write_times (writer, submit);
    write_string (writer, "trace", submit->trace);
    write_pairs (writer, "labels", submit->labels, submit->labels_count);
    write_string (writer, "fair_key", submit->fair_key);
    write_pairs (writer, "require", submit->needs, submit->needs_count);
    write_after (writer, submit);
    if (!id_is_zero (&submit->parent)) {
        tmq_id_format (&submit->parent, id);
        write_string (writer, "parent", id);
    }
    if (submit->meta) {
        json_write_key (writer, "meta");
        json_write_raw (writer, submit->meta, strlen (submit->meta));
    }
    json_write_object_end (writer);
}
