/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* value_put, value_get, value_list, value_remove. */
#include "core/requests/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/reads/find.h"
#include "core/reads/loaded.h"
#include "core/reads/want.h"
#include "core/requests/answer.h"
#include "core/requests/pages.h"
#include "core/requests/shared.h"
#include "core/sessions/values.h"
#include "core/tasks/entries.h"
#include "core/tasks/journal.h"
#include "core/tasks/makers.h"
#include "core/wire/pack.h"

/* Numbers of fields in taskmq.proto. */
enum {
    VALUE_SESSION = 1,
    VALUE_KEY = 2,
    VALUE_VERSION = 3,
    VALUE_UPDATED_AT = 4,
    VALUE_ACTOR = 5,
    VALUE_OWNER = 6,
    VALUE_BYTES = 7,
    VALUE_BODY = 8
};
enum { PAGE_VALUES = 1, PAGE_NEXT = 2 };

enum { SEES = RIGHT_READ | RIGHT_OBSERVE };

void want_value (const requests_t *self, const link_t *link, const char *session, const char *key,
                 key_list_t *keys)
{
    row_key_t row_key;
    value_row_key (&row_key, link->space->name, session, key);
    want_row (self->reads, ROW_KIND_VALUE, row_key.bytes, row_key.length, keys);
}

/* What there is; a value of version 0 stands for none. False: the request was answered. */
static bool find (call_t *call, const value_name_t *name, value_t *out)
{
    const reads_t *reads = call->requests->reads;
    row_key_t key;
    bool found;
    *out = (value_t){0};
    value_row_key (&key, name->space->name, name->session, name->key);
    const buf_t *body = find_row (reads, ROW_KIND_VALUE, key.bytes, key.length, &found);
    const lookup_t *loaded = loaded_row (reads, ROW_KIND_VALUE, key.bytes, key.length);
    bool damaged = !found && loaded != NULL && loaded->damaged;
    if (damaged || (found && !value_unpack (out, body))) {
        reply_code (call, TMQ_INTERNAL, "the stored value is damaged");
        return false;
    }
    return true;
}

static void pack_value (bytes_t *out, uint32_t field, const char *session, const char *key,
                        size_t key_bytes, const value_t *value, size_t body_bytes)
{
    bytes_mark_t mark = bytes_open (out, field);
    bytes_append_string (out, VALUE_SESSION, session);
    bytes_append_blob (out, VALUE_KEY, key, key_bytes);
    bytes_append_uint (out, VALUE_VERSION, value->version);
    bytes_append_uint (out, VALUE_UPDATED_AT, (uint64_t) value->updated_at);
    bytes_append_string (out, VALUE_ACTOR, value->actor);
    bytes_append_string (out, VALUE_OWNER, value->owner);
    bytes_append_uint (out, VALUE_BYTES, value->length);
    bytes_append_uint (out, VALUE_BODY, body_bytes);
    bytes_close (out, mark);
}

/* body: NULL or the value's bytes, which the outbox takes. */
static void answer (call_t *call, const value_name_t *name, const value_t *value, buf_t *body)
{
    requests_t *self = call->requests;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    pack_value (out, TASKMQ__REPLY__BODY_VALUE, name->session, name->key, strlen (name->key), value,
                buf_length (body));
    reply_close (self, call->link, mark, journal_batch (self->tasks), body);
    buf_drop (body);
}

static void answer_none (call_t *call)
{
    reply_code (call, TMQ_NOT_FOUND, "no such value");
}

/* Whether it has the version that the change rests on; else the request was answered. */
static bool guard (call_t *call, const value_t *value, uint64_t if_version_plus_1)
{
    char text[96];
    if (if_version_plus_1 == 0 || if_version_plus_1 == value->version + 1 ||
        call->requests->base->config.planted_bug == ENGINE_BUG_VALUE_UNGUARDED)
        return true;
    if (value->version == 0)
        snprintf (text, sizeof (text), "there is no such value, so no version %" PRIu64,
                  if_version_plus_1 - 1);
    else if (if_version_plus_1 == 1)
        snprintf (text, sizeof (text), "the value exists, in version %" PRIu64, value->version);
    else
        snprintf (text, sizeof (text), "the value has version %" PRIu64 ", not %" PRIu64,
                  value->version, if_version_plus_1 - 1);
    reply_code (call, TMQ_CONFLICT, text);
    return false;
}

/* The link may change it, or make it; else the request was answered. */
static bool judge (call_t *call, const value_name_t *name, const value_t *value)
{
    if (value->version == 0 && !shared_may_make (call->requests, call->link, name->session))
        reply_code (call, TMQ_DENIED, "no right to make a value here");
    else if (value->version == 0 ||
             shared_may_change (call->requests, call->link, name->session, value->owner))
        return true;
    else if (shared_sees (call->requests, call->link, name->session, value->owner, SEES))
        reply_code (call, TMQ_DENIED, "the value belongs to somebody else");
    else
        reply_code (call, TMQ_CONFLICT, "the key is in use");
    return false;
}

static bool fits (call_t *call, const value_t *value, size_t length)
{
    const engine_config_t *config = &call->requests->base->config;
    const entries_t *entries = &call->link->space->entries;
    if (value->version == 0 && entries->values >= config->space_values_max)
        reply_limit (call, "values of the namespace", config->space_values_max);
    else if (length > value->length &&
             entries->bytes + length - value->length > config->space_bytes_max)
        reply_limit (call, "bytes of the namespace's values, items and checkpoints",
                     config->space_bytes_max);
    else
        return true;
    return false;
}

void on_value_put (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__ValuePut *put = call->request->value_put;
    const value_name_t name = {call->link->space, put->session, put->key};
    const uint8_t *request_id = call->request->request_id.data;
    value_t value;
    if (new_is_refused (call) || shared_is_leaving (call, name.session) ||
        !find (call, &name, &value))
        return;
    uint64_t version = puts_find (&value.puts, request_id);
    if (version != 0 && self->base->config.planted_bug != ENGINE_BUG_VALUE_PUT_TWICE) {
        value.version = version;
        answer (call, &name, &value, NULL);
        return;
    }
    if (!judge (call, &name, &value) || !guard (call, &value, put->if_version_plus_1) ||
        !fits (call, &value, put->body_bytes))
        return;
    makers_count (self->tasks, name.space, call->link->identity);
    journal_input (self->tasks);
    const value_change_t change = {name_text (call->link->identity), request_id, call->body,
                                   put->body_bytes};
    value_put (self->sessions, &name, &change, &value);
    answer (call, &name, &value, NULL);
}

void on_value_get (call_t *call)
{
    const Taskmq__ValueGet *get = call->request->value_get;
    const value_name_t name = {call->link->space, get->session, get->key};
    value_t value;
    if (!find (call, &name, &value))
        return;
    if (value.version == 0 ||
        !shared_sees (call->requests, call->link, name.session, value.owner, RIGHT_BODY))
        answer_none (call);
    else
        answer (call, &name, &value, buf_new (value.bytes, value.length));
}

void on_value_remove (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__ValueRemove *remove = call->request->value_remove;
    const value_name_t name = {call->link->space, remove->session, remove->key};
    const uint8_t *request_id = call->request->request_id.data;
    value_t value = {.version = entries_removed_by (name.space, request_id)};
    if (value.version != 0) {
        answer (call, &name, &value, NULL);
        return;
    }
    if (!find (call, &name, &value))
        return;
    bool seen = value.version != 0 &&
                (shared_sees (call->requests, call->link, name.session, value.owner, SEES) ||
                 shared_may_change (call->requests, call->link, name.session, value.owner));
    if (!seen) {
        answer_none (call);
        return;
    }
    if (!judge (call, &name, &value) || !guard (call, &value, remove->if_version_plus_1))
        return;
    journal_input (self->tasks);
    value_remove (self->sessions, &name, name_text (call->link->identity), &value);
    entries_note_removal (self->tasks, name.space, request_id, value.version);
    value = (value_t){.version = value.version}; /* all that a repeat is told */
    answer (call, &name, &value, NULL);
}

/* Lists. */

void on_value_list (call_t *call)
{
    const Taskmq__ValueList *list = call->request->value_list;
    const char *ns = call->link->space->name;
    row_key_t prefix;
    row_key_t after = ROW_KEY_INIT;
    value_row_key (&prefix, ns, list->session, list->prefix);
    if (list->after[0] != '\0')
        value_row_key (&after, ns, list->session, list->after);
    page_rows (call, ROW_KIND_VALUE, &prefix, &after,
               list->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : list->limit);
}

/* A row of a page. False: the link does not see it. */
static bool pack_row (const requests_t *self, bytes_t *out, const link_t *link, const row_t *row)
{
    const char *session = (const char *) buf_bytes (row->key);
    session += strlen (session) + 1; /* behind the namespace */
    size_t key_bytes;
    const char *key = value_key_of (row->key, &key_bytes);
    value_t value;
    if (key_bytes == 0 || !value_unpack (&value, row->body) ||
        !shared_sees (self, link, session, value.owner, SEES))
        return false;
    pack_value (out, PAGE_VALUES, session, key, key_bytes, &value, 0);
    return true;
}

/* A cursor is the key of a value, so it must be one that the link sees: a page without any is read
 * on from where it ended. */
bool values_go_on (requests_t *self, read_job_t *job)
{
    read_t *read = &job->read;
    bytes_t *scratch = &self->peers->scratch;
    bool wanted = job->link != NULL && !job->link->dead && read->error == 0;
    if (read->kind != READ_ROWS || read->row_kind != ROW_KIND_VALUE || !wanted || !read->more)
        return false;
    for (size_t i = 0; i < read->rows_count; i++) {
        bytes_clear (scratch);
        if (pack_row (self, scratch, job->link, &read->rows[i]))
            return false;
    }
    if (read->rows_count == 0)
        return false;
    buf_drop (job->after);
    job->after = buf_keep (read->rows[read->rows_count - 1].key);
    read->after = job->after;
    rows_free (read->rows, read->rows_count);
    read->rows = NULL;
    read->rows_count = 0;
    job_again (self->reads, job);
    return true;
}

void values_answer (requests_t *self, read_job_t *job)
{
    enum { TAIL_BYTES = TMQ_ENTRY_NAME_BYTES_MAX + 16 }; /* of the key to go on behind */
    const read_t *read = &job->read;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_VALUE_PAGE);
    const row_t *last = NULL; /* that was shown */
    size_t i = 0;
    for (; i < read->rows_count; i++) {
        size_t before = out->length;
        if (!pack_row (self, out, job->link, &read->rows[i]))
            continue;
        if (out->length > ENVELOPE_FILL_BYTES - TAIL_BYTES && last != NULL) {
            out->length = before;
            break;
        }
        last = &read->rows[i];
    }
    if (last != NULL && (i < read->rows_count || read->more)) {
        size_t length;
        const char *key = value_key_of (last->key, &length);
        bytes_append_blob (out, PAGE_NEXT, key, length);
    }
    bytes_close (out, page);
    reply_close (self, job->link, mark, 0, NULL);
}
