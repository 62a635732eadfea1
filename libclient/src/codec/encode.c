/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From the public structs to the fields of a request.
 *
 * What can be judged without the broker is refused here, at once and with the name of the field;
 * the broker judges everything again. Nothing here needs a core or a lock. Failure: the request is
 * not made, and the code and the text say why. */
#include "codec/encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/errors.h"
#include "base/sized.h"
#include "ids.h"

enum { ITEM_HEAD_BYTES = 8 }; /* tag and length of one task in a submit */

/* Field numbers of TaskSpec in taskmq.proto. */
enum {
    SPEC_TASK_ID = 1,
    SPEC_QUEUE = 2,
    SPEC_PAYLOAD_BYTES = 3,
    SPEC_METHOD = 4,
    SPEC_SESSION = 5,
    SPEC_CONTENT_TYPE = 6,
    SPEC_DEDUP_KEY = 7,
    SPEC_PRIORITY_PLUS_1 = 8,
    SPEC_TTL_MS = 9,
    SPEC_TTL_NEVER = 10,
    SPEC_POLL_INTERVAL_MS = 11,
    SPEC_MAX_ATTEMPTS = 12,
    SPEC_BACKOFF_MS = 13,
    SPEC_LEASE_MS = 14,
    SPEC_LABELS = 15,
    SPEC_META = 16,
    SPEC_EXTRA = 17,
    SPEC_DELAY_MS = 18,
    SPEC_NOT_BEFORE = 19
};

/* … and of Extra. */
enum {
    EXTRA_START_BY = 1,
    EXTRA_MAX_RUNTIME_MS = 2,
    EXTRA_TRACE = 3,
    EXTRA_FAIR_KEY = 10,
    EXTRA_NEEDS = 11,
    EXTRA_AFTER = 15,
    EXTRA_PARENT = 16,
    EXTRA_PAYLOAD_BLOB = 37
};

/* Checks. */

void (tmq_submit_init) (tmq_submit_t *submit, size_t size)
{
    static const tmq_submit_t defaults = {.priority = -1};
    core_sized_init (submit, size, &defaults, sizeof defaults);
}

int core_check_labels (const tmq_label_t *labels, size_t count, tmq_error_t *error)
{
    if (count > TMQ_LABELS_MAX)
        return core_error (error, TMQ_TOO_LARGE, "labels: %zu, at most %d are allowed", count,
                           TMQ_LABELS_MAX);
    int code = TMQ_OK;
    for (size_t i = 0; i < count && code == TMQ_OK; i++) {
        code = core_check_name (labels[i].key, "label key", true, error);
        if (code == TMQ_OK)
            code = core_check_text (labels[i].value, "label", TMQ_LABEL_BYTES_MAX, error);
    }
    return code;
}

void core_encode_blob (bytes_t *out, uint32_t member, const tmq_blob_t *blob)
{
    bytes_mark_t mark = bytes_open (out, member);
    bytes_append_blob (out, 1, blob->hash, sizeof blob->hash);
    bytes_append_uint (out, 2, blob->bytes);
    bytes_close (out, mark);
}

int core_submit_take (tmq_submit_t *out, const tmq_submit_t *in, tmq_error_t *error)
{
    tmq_submit_init (out);
    return core_sized_take (out, sizeof *out, in, sizeof in->size + sizeof in->id)
               ? TMQ_OK
               : core_error (error, TMQ_INVALID, "tmq_submit_init was not called");
}

static int check_submit (const tmq_submit_t *in, tmq_error_t *error)
{
    const struct {
        const char *text;
        const char *field;
        size_t bytes_max;
    } texts[] = {{in->method, "method", TMQ_METHOD_BYTES_MAX},
                 {in->content_type, "content_type", TMQ_CONTENT_TYPE_BYTES_MAX},
                 {in->dedup_key, "dedup_key", TMQ_DEDUP_KEY_BYTES_MAX},
                 {in->meta, "meta", TMQ_META_BYTES_MAX},
                 {in->trace, "trace", TMQ_TRACE_BYTES_MAX},
                 {in->fair_key, "fair_key", TMQ_FAIR_KEY_BYTES_MAX}};
    int code = core_check_name (in->queue, "queue", true, error);
    if (code == TMQ_OK)
        code = core_check_name (in->session, "session", false, error);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && code == TMQ_OK; i++)
        code = core_check_text (texts[i].text, texts[i].field, texts[i].bytes_max, error);
    if (code == TMQ_OK)
        code = core_check_labels (in->labels, in->labels_count, error);
    if (code != TMQ_OK)
        return code;
    if (in->payload_bytes > TMQ_FRAME_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "payload: %zu bytes, at most %d are allowed",
                           in->payload_bytes, TMQ_FRAME_BYTES_MAX);
    if (in->payload_bytes > 0 && in->payload_blob.bytes > 0)
        return core_error (error, TMQ_INVALID, "payload_blob: must not stand beside a payload");
    code = core_check_labels (in->needs, in->needs_count, error);
    if (code != TMQ_OK)
        return code;
    if (in->needs_count > TMQ_NEEDS_MAX)
        return core_error (error, TMQ_TOO_LARGE, "needs: %zu, at most %d are allowed",
                           in->needs_count, TMQ_NEEDS_MAX);
    if (in->after_count > TMQ_AFTER_MAX)
        return core_error (error, TMQ_TOO_LARGE, "after: %zu tasks, at most %d are allowed",
                           in->after_count, TMQ_AFTER_MAX);
    if (in->delay_ms != 0 && in->not_before != 0)
        return core_error (error, TMQ_INVALID, "not_before: must be 0 beside delay_ms");
    if (in->priority < -1 || in->priority > 255)
        return core_error (error, TMQ_INVALID, "priority: must be 0..255, or -1 for the default");
    return TMQ_OK;
}

static int check_strings (const char *const *names, size_t count, const char *field,
                          tmq_error_t *error)
{
    if (count > TMQ_FILTER_VALUES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "%s: %zu values, at most %d are allowed", field,
                           count, TMQ_FILTER_VALUES_MAX);
    int code = TMQ_OK;
    for (size_t i = 0; i < count && code == TMQ_OK; i++)
        code = core_check_name (names[i], field, true, error);
    return code;
}

static int check_marks (const char *const *texts, size_t count, const char *field, size_t most,
                        tmq_error_t *error)
{
    if (count > TMQ_LABELS_MAX)
        return core_error (error, TMQ_TOO_LARGE, "%s: %zu values, at most %d are allowed", field,
                           count, TMQ_LABELS_MAX);
    int code = TMQ_OK;
    for (size_t i = 0; code == TMQ_OK && i < count; i++) {
        if (texts[i] == NULL || texts[i][0] == '\0')
            return core_error (error, TMQ_INVALID, "%s: must not be empty", field);
        code = core_check_text (texts[i], field, most, error);
    }
    return code;
}

static int check_owners (const tmq_filter_t *filter, tmq_error_t *error)
{
    int code = TMQ_OK;
    if (filter->owners_count > TMQ_FILTER_VALUES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "owners: %zu, at most %d are allowed",
                           filter->owners_count, TMQ_FILTER_VALUES_MAX);
    for (size_t i = 0; code == TMQ_OK && i < filter->owners_count; i++) {
        if (filter->owners[i] == NULL || filter->owners[i][0] == '\0')
            return core_error (error, TMQ_INVALID, "owners: must not be empty");
        code = core_check_text (filter->owners[i], "owners", TMQ_OWNER_BYTES_MAX, error);
    }
    return code;
}

int core_check_filter (const tmq_filter_t *filter, bool subscription, tmq_error_t *error)
{
    int code = check_strings (filter->queues, filter->queues_count, "queue", error);
    if (code == TMQ_OK)
        code = check_strings (filter->sessions, filter->sessions_count, "session", error);
    if (code == TMQ_OK)
        code = core_check_labels (filter->labels, filter->labels_count, error);
    if (code != TMQ_OK)
        return code;
    if (filter->task_ids_count > TMQ_FILTER_VALUES_MAX ||
        filter->statuses_count > TMQ_FILTER_VALUES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "filter: at most %d values of a kind are allowed",
                           TMQ_FILTER_VALUES_MAX);
    if (subscription && (filter->created_since != 0 || filter->created_until != 0))
        return core_error (error, TMQ_INVALID,
                           "created_since, created_until: not for subscriptions");
    if (filter->parents_count > TMQ_FILTER_VALUES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "parents: %zu, at most %d are allowed",
                           filter->parents_count, TMQ_FILTER_VALUES_MAX);
    if (subscription && filter->parents_count != 0)
        return core_error (error, TMQ_INVALID, "parents: not for subscriptions");
    if (subscription && filter->agents_count + filter->files_count != 0)
        return core_error (error, TMQ_INVALID, "agents, files: not for subscriptions");
    if (subscription && filter->owners_count != 0)
        return core_error (error, TMQ_INVALID, "owners: not for subscriptions");
    code = check_owners (filter, error);
    if (code != TMQ_OK)
        return code;
    code = check_marks (filter->agents, filter->agents_count, "agents", TMQ_TURN_AGENT_BYTES_MAX,
                        error);
    if (code == TMQ_OK)
        code = check_marks (filter->files, filter->files_count, "files", TMQ_TURN_PATH_BYTES_MAX,
                            error);
    if (code != TMQ_OK)
        return code;
    if (!subscription && filter->task_ids_count != 0)
        return core_error (error, TMQ_INVALID, "task_ids: only for subscriptions");
    return TMQ_OK;
}

/* Parts. */

void core_encode_labels (bytes_t *out, uint32_t field, const tmq_label_t *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes_mark_t label = bytes_open (out, field);
        bytes_append_string (out, 1, labels[i].key);
        bytes_append_string (out, 2, labels[i].value);
        bytes_close (out, label);
    }
}

static void encode_names (bytes_t *out, uint32_t field, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes_append_element (out, field, names[i], strlen (names[i]));
}

static void encode_filter (bytes_t *out, const tmq_filter_t *filter)
{
    encode_names (out, 1, filter->queues, filter->queues_count);
    if (filter->statuses_count > 0) {
        bytes_mark_t statuses = bytes_open (out, 2); /* packed, as proto3 writes numbers */
        for (size_t i = 0; i < filter->statuses_count; i++)
            bytes_append_varint (out, (uint64_t) filter->statuses[i]);
        bytes_close (out, statuses);
    }
    encode_names (out, 3, filter->sessions, filter->sessions_count);
    for (size_t i = 0; i < filter->task_ids_count; i++)
        bytes_append_element (out, 4, filter->task_ids[i].bytes, ID_BYTES);
    core_encode_labels (out, 5, filter->labels, filter->labels_count);
    bytes_append_uint (out, 6, filter->created_since);
    bytes_append_uint (out, 7, filter->created_until);
    for (size_t i = 0; i < filter->parents_count; i++)
        bytes_append_element (out, 10, filter->parents[i].bytes, ID_BYTES);
    encode_names (out, 11, filter->agents, filter->agents_count);
    encode_names (out, 12, filter->files, filter->files_count);
    encode_names (out, 13, filter->owners, filter->owners_count);
}

static void core_encode_filter (bytes_t *out, uint32_t field, const tmq_filter_t *filter)
{
    bytes_mark_t mark = bytes_open (out, field);
    encode_filter (out, filter);
    bytes_close (out, mark);
}

void core_encode_subscription_filter (bytes_t *out, uint32_t field,
                                      const tmq_subscription_options_t *options)
{
    bytes_mark_t mark = bytes_open (out, field);
    encode_filter (out, &options->filter);
    if (options->subjects_count > 0) {
        bytes_mark_t subjects = bytes_open (out, 8);
        for (size_t i = 0; i < options->subjects_count; i++)
            bytes_append_varint (out, (uint64_t) options->subjects[i]);
        bytes_close (out, subjects);
    }
    if (options->name_prefix != NULL)
        bytes_append_string (out, 9, options->name_prefix);
    bytes_close (out, mark);
}

static void encode_after (bytes_t *out, const tmq_submit_t *in)
{
    for (size_t i = 0; i < in->after_count; i++) {
        bytes_mark_t mark = bytes_open (out, EXTRA_AFTER);
        bytes_append_blob (out, 1, in->after[i].id.bytes, ID_BYTES);
        bytes_append_uint (out, 2, (uint64_t) in->after[i].policy);
        bytes_close (out, mark);
    }
}

/* Of a task that has nothing of it no byte is sent. */
static void encode_extra (bytes_t *out, const tmq_submit_t *in)
{
    bytes_t extra = BYTES_INIT;
    bytes_append_uint (&extra, EXTRA_START_BY, in->start_by);
    bytes_append_uint (&extra, EXTRA_MAX_RUNTIME_MS, in->max_runtime_ms);
    bytes_append_string (&extra, EXTRA_TRACE, in->trace);
    bytes_append_string (&extra, EXTRA_FAIR_KEY, in->fair_key);
    core_encode_labels (&extra, EXTRA_NEEDS, in->needs, in->needs_count);
    encode_after (&extra, in);
    if (!id_is_zero (&in->parent))
        bytes_append_blob (&extra, EXTRA_PARENT, in->parent.bytes, ID_BYTES);
    if (in->payload_blob.bytes > 0)
        core_encode_blob (&extra, EXTRA_PAYLOAD_BLOB, &in->payload_blob);
    bytes_append_blob (out, SPEC_EXTRA, extra.data, extra.length);
    out->failed |= extra.failed;
    bytes_free (&extra);
}

static void encode_spec (bytes_t *out, const tmq_submit_t *in, const tmq_id_t *id)
{
    if (!id_is_zero (id))
        bytes_append_blob (out, SPEC_TASK_ID, id->bytes, ID_BYTES);
    bytes_append_string (out, SPEC_QUEUE, in->queue);
    bytes_append_uint (out, SPEC_PAYLOAD_BYTES, in->payload_bytes);
    bytes_append_string (out, SPEC_METHOD, in->method);
    bytes_append_string (out, SPEC_SESSION, in->session);
    bytes_append_string (out, SPEC_CONTENT_TYPE, in->content_type);
    bytes_append_string (out, SPEC_DEDUP_KEY, in->dedup_key);
    bytes_append_uint (out, SPEC_PRIORITY_PLUS_1, (uint64_t) in->priority + 1);
    bytes_append_uint (out, SPEC_TTL_MS, in->ttl_ms);
    bytes_append_uint (out, SPEC_TTL_NEVER, in->ttl_never);
    bytes_append_uint (out, SPEC_POLL_INTERVAL_MS, in->poll_interval_ms);
    bytes_append_uint (out, SPEC_MAX_ATTEMPTS, in->max_attempts);
    bytes_append_uint (out, SPEC_BACKOFF_MS, in->backoff_ms);
    bytes_append_uint (out, SPEC_LEASE_MS, in->lease_ms);
    core_encode_labels (out, SPEC_LABELS, in->labels, in->labels_count);
    bytes_append_string (out, SPEC_META, in->meta);
    encode_extra (out, in);
    bytes_append_uint (out, SPEC_DELAY_MS, in->delay_ms);
    bytes_append_uint (out, SPEC_NOT_BEFORE, in->not_before);
}

int core_encode_spec (bytes_t *out, const tmq_submit_t *given, tmq_error_t *error)
{
    static const tmq_id_t none;
    tmq_submit_t taken = {0};
    int code = core_submit_take (&taken, given, error);
    if (code == TMQ_OK)
        code = check_submit (&taken, error);
    if (code == TMQ_OK && !id_is_zero (&taken.id))
        code = core_error (error, TMQ_INVALID, "id: each instant has its own");
    if (code == TMQ_OK)
        encode_spec (out, &taken, &none);
    return code;
}

/* Requests. */

/* Gives the request away if its fields could be made. */
int core_request_finish (core_request_t **out, core_request_t *request, tmq_error_t *error)
{
    if (request == NULL || request->fields.failed || request->body.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    *out = request;
    return TMQ_OK;
}

static core_request_t *with_id (unsigned op, const tmq_id_t *id)
{
    core_request_t *request = core_request_new (op);
    if (request == NULL)
        return NULL;
    request->task_id = *id;
    request->answer.completion.task_id = *id;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_blob (&request->fields, 1, id->bytes, ID_BYTES);
    bytes_close (&request->fields, mark);
    return request;
}

static bool receipts_new (tmq_completion_t *completion, size_t count)
{
    completion->receipts = calloc (count, sizeof *completion->receipts);
    completion->receipts_count = count;
    return completion->receipts != NULL;
}

int core_request_submit (core_request_t **out, const tmq_submit_t *given, const tmq_id_t *made,
                         tmq_error_t *error)
{
    static const uint8_t none[16] = {0};
    tmq_submit_t taken = {0};
    const tmq_submit_t *in = &taken;
    int code = core_submit_take (&taken, given, error);
    if (code == TMQ_OK)
        code = check_submit (in, error);
    if (code != TMQ_OK)
        return code;
    if (id_is_zero (&taken.id))
        taken.id = *made;
    core_request_t *request = core_request_new (TMQ_OP_SUBMIT);
    if (request == NULL || !receipts_new (&request->answer.completion, 1)) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    request->task_id = in->id;
    request->answer.completion.receipts[0].id = in->id;
    if (memcmp (in->request_id, none, sizeof none) != 0)
        memcpy (request->request_id, in->request_id, sizeof none);
    bytes_reserve (&request->fields, 128);
    bytes_mark_t mark = core_request_begin (request);
    bytes_mark_t spec = bytes_open (&request->fields, 1);
    encode_spec (&request->fields, in, &in->id);
    bytes_close (&request->fields, spec);
    bytes_close (&request->fields, mark);
    bytes_append (&request->body, in->payload, in->payload_bytes);
    if (request->fields.length > CORE_FIELDS_BYTES_MAX) {
        core_request_free (request);
        return core_error (error, TMQ_TOO_LARGE,
                           "the task without its payload: more than an "
                           "envelope of %d bytes",
                           TMQ_ENVELOPE_BYTES_MAX);
    }
    return core_request_finish (out, request, error);
}

/* Begins a new member of the group; its items end up behind a SUBMIT tag when it is sealed. */
static core_request_t *member_new (core_group_t *group, core_request_t *last, size_t items_max)
{
    core_request_t *member = core_request_new (TMQ_OP_SUBMIT_BATCH);
    if (member == NULL)
        return NULL;
    member->group = group;
    member->items = calloc (items_max, sizeof *member->items);
    if (member->items == NULL) {
        member->group = NULL;
        core_request_free (member);
        return NULL;
    }
    if (last == NULL)
        group->first = member;
    else
        last->next = member;
    group->open++;
    return member;
}

static bool member_fits (const core_request_t *member, size_t fields_bytes, size_t body_bytes)
{
    return member->items_count < TMQ_SUBMIT_ITEMS_MAX &&
           member->fields.length + fields_bytes <= CORE_FIELDS_BYTES_MAX &&
           member->body.length + body_bytes <= TMQ_FRAME_BYTES_MAX;
}

static void member_add (core_request_t *member, const bytes_t *spec, const tmq_submit_t *in,
                        size_t receipt)
{
    size_t before = member->fields.length;
    bytes_append_element (&member->fields, 1, spec->data, spec->length);
    bytes_append (&member->body, in->payload, in->payload_bytes);
    member->items[member->items_count++] = (core_item_t){
        (uint32_t) (member->fields.length - before), (uint32_t) in->payload_bytes, receipt};
}

static int batch_fill (core_group_t *group, const tmq_submit_t *in, const tmq_id_t *ids,
                       size_t count, bytes_t *spec, tmq_error_t *error)
{
    core_request_t *member = NULL;
    const char *at =
        (const char *) in; /* the caller's structs may be shorter or longer than ours */
    for (size_t i = 0; i < count; i++, at += in->size) {
        tmq_submit_t one = {0};
        tmq_error_t refused;
        int code = core_submit_take (&one, (const tmq_submit_t *) (const void *) at, &refused);
        if (code == TMQ_OK)
            code = check_submit (&one, &refused);
        if (code != TMQ_OK)
            return core_error (error, code, "task %zu: %s", i, refused.text);
        const tmq_id_t *id = id_is_zero (&one.id) ? &ids[i] : &one.id;
        bytes_clear (spec);
        encode_spec (spec, &one, id);
        if (spec->length + ITEM_HEAD_BYTES > CORE_FIELDS_BYTES_MAX)
            return core_error (error, TMQ_TOO_LARGE, "task %zu: more than an envelope", i);
        if (member == NULL ||
            !member_fits (member, spec->length + ITEM_HEAD_BYTES, one.payload_bytes)) {
            size_t left = count - i;
            member = member_new (group, member,
                                 left < TMQ_SUBMIT_ITEMS_MAX ? left : TMQ_SUBMIT_ITEMS_MAX);
            if (member == NULL)
                return core_error (error, TMQ_NO_MEMORY, NULL);
        }
        group->answer.completion.receipts[i].id = *id;
        member_add (member, spec, &one, i);
        if (spec->failed || member->fields.failed || member->body.failed)
            return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    return TMQ_OK;
}

int core_request_submit_batch (core_request_t **out, const tmq_submit_t *in, const tmq_id_t *ids,
                               size_t count, tmq_error_t *error)
{
    if (count == 0)
        return core_error (error, TMQ_INVALID, "a batch needs at least one task");
    core_group_t *group = calloc (1, sizeof *group);
    if (group == NULL || !receipts_new (&group->answer.completion, count)) {
        free (group);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    group->answer.completion.op = TMQ_OP_SUBMIT_BATCH;
    bytes_t spec = BYTES_INIT;
    int code = batch_fill (group, in, ids, count, &spec, error);
    bytes_free (&spec);
    if (code == TMQ_OK && group->first != NULL) {
        *out = group->first;
        return TMQ_OK;
    }
    if (group->first != NULL)
        core_request_free (group->first);
    else
        core_answer_free (&group->answer);
    return code;
}

int core_request_get (core_request_t **out, tmq_op_t op, const tmq_id_t *id, tmq_error_t *error)
{
    return core_request_finish (out, with_id (op, id), error);
}

int core_request_get_record (core_request_t **out, const tmq_id_t *id, tmq_error_t *error)
{
    core_request_t *request = core_request_new (TMQ_OP_GET);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    request->task_id = *id;
    request->large = false;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_blob (&request->fields, 1, id->bytes, ID_BYTES);
    bytes_append_uint (&request->fields, 2, 1);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

int core_request_cancel (core_request_t **out, const tmq_id_t *id, const char *message,
                         tmq_error_t *error)
{
    int code = core_check_text (message, "message", TMQ_MESSAGE_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_CANCEL);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    request->task_id = *id;
    request->answer.completion.task_id = *id;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_blob (&request->fields, 1, id->bytes, ID_BYTES);
    bytes_append_string (&request->fields, 2, message);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

int core_request_resolve (core_request_t **out, const char *suffix, tmq_error_t *error)
{
    char canonical[ID_SUFFIX_SIZE];
    if (suffix == NULL || !id_suffix_parse (canonical, suffix))
        return core_error (error, TMQ_INVALID, "a short id has 6 to 32 hexadecimal digits");
    core_request_t *request = core_request_new (TMQ_OP_RESOLVE);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_string (&request->fields, 1, canonical);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

/* What a page of tasks is asked for by. */
static int take_page (const tmq_filter_t *filter, const char *cursor, uint32_t limit,
                      uint8_t bytes[TMQ_CURSOR_BYTES_MAX / 2], size_t *length, tmq_error_t *error)
{
    *length = cursor == NULL ? 0 : strlen (cursor);
    int code = core_check_filter (filter, false, error);
    if (code != TMQ_OK)
        return code;
    if (limit > TMQ_LIST_LIMIT_MAX)
        return core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_LIST_LIMIT_MAX);
    if (*length % 2 != 0 || *length / 2 > TMQ_CURSOR_BYTES_MAX / 2 ||
        (*length > 0 && !hex_decode (bytes, *length / 2, cursor)))
        return core_error (error, TMQ_BAD_CURSOR, "cursor: not one that a list gave");
    *length /= 2;
    return TMQ_OK;
}

int core_request_search (core_request_t **out, const tmq_search_t *in, tmq_error_t *error)
{
    uint8_t cursor[TMQ_CURSOR_BYTES_MAX / 2];
    size_t cursor_length;
    int code = take_page (&in->filter, in->cursor, in->limit, cursor, &cursor_length, error);
    if (code == TMQ_OK && (in->text == NULL || in->text[0] == '\0'))
        code = core_error (error, TMQ_INVALID, "search: a word to look for is missing");
    if (code == TMQ_OK)
        code = core_check_text (in->text, "search", TMQ_SEARCH_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_SEARCH);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_mark_t mark = core_request_begin (request);
    core_encode_filter (&request->fields, 1, &in->filter);
    bytes_append_string (&request->fields, 2, in->text);
    bytes_append_blob (&request->fields, 3, cursor, cursor_length);
    bytes_append_uint (&request->fields, 4, in->limit);
    bytes_append_uint (&request->fields, 5, in->ranked);
    bytes_append_uint (&request->fields, 6, in->count);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

int core_request_list (core_request_t **out, const tmq_list_query_t *in, tmq_error_t *error)
{
    uint8_t cursor[TMQ_CURSOR_BYTES_MAX / 2];
    size_t cursor_length;
    int code = take_page (&in->filter, in->cursor, in->limit, cursor, &cursor_length, error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_LIST);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_mark_t mark = core_request_begin (request);
    core_encode_filter (&request->fields, 1, &in->filter);
    bytes_append_blob (&request->fields, 2, cursor, cursor_length);
    bytes_append_uint (&request->fields, 3, in->limit);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

int core_request_count (core_request_t **out, const tmq_filter_t *in, tmq_error_t *error)
{
    static const tmq_filter_t everything = {0};
    const tmq_filter_t *filter = in != NULL ? in : &everything;
    int code = core_check_filter (filter, false, error);
    if (code != TMQ_OK)
        return code;
    core_request_t *request = core_request_new (TMQ_OP_COUNT);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_mark_t mark = core_request_begin (request);
    core_encode_filter (&request->fields, 1, filter);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

int core_request_events (core_request_t **out, const tmq_id_t *id, uint64_t before_seq,
                         uint32_t limit, tmq_error_t *error)
{
    if (limit > TMQ_LIST_LIMIT_MAX)
        return core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_LIST_LIMIT_MAX);
    core_request_t *request = core_request_new (TMQ_OP_EVENTS);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    request->task_id = *id;
    request->answer.completion.task_id = *id;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_blob (&request->fields, 1, id->bytes, ID_BYTES);
    bytes_append_uint (&request->fields, 2, before_seq);
    bytes_append_uint (&request->fields, 3, limit);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

int core_request_plain (core_request_t **out, tmq_op_t op, tmq_error_t *error)
{
    core_request_t *request = core_request_new (op);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_close (&request->fields, core_request_begin (request));
    return core_request_finish (out, request, error);
}

int core_request_message (core_request_t **out, tmq_op_t op, const ProtobufCMessage *message,
                          tmq_error_t *error)
{
    core_request_t *request = core_request_new (op);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_packed (&request->fields, message);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}
