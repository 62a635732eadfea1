/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Submitting tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ids.h"
#include "rest/handlers.h"
#include "rest/spec.h"
#include "rest/subject.h"
#include "rest/trace.h"
#include "rest/upload.h"

static void write_text (json_writer_t *writer, const char *key, const char *text)
{
    json_write_key (writer, key);
    json_write_text (writer, text);
}

static void write_receipt (json_writer_t *writer, const tmq_receipt_t *receipt, const char *queue)
{
    char id[37];
    const bool good = receipt->code == TMQ_OK;
    tmq_id_format (&receipt->id, id);
    json_write_object_begin (writer);
    write_text (writer, "task_id", good || receipt->code == TMQ_UNKNOWN ? id : NULL);
    write_text (writer, "queue", queue);
    write_text (writer, "status", good ? tmq_status_text (receipt->status) : NULL);
    json_write_key (writer, "existing");
    json_write_bool (writer, good && receipt->existing);
    write_text (writer, "code", tmq_code_name (receipt->code));
    write_text (writer, "detail",
                good                       ? NULL
                : receipt->text[0] != '\0' ? receipt->text
                                           : tmq_code_text (receipt->code));
    json_write_object_end (writer);
}

/* One task. */

typedef struct submission {
    spec_t spec;
    tmq_receipt_t receipt;
} submission_t;

static void clear_submission (void *state)
{
    submission_t *submission = state;
    spec_clear (&submission->spec);
    free (submission);
}

/* Begins the answer to a task that was taken. */
static json_writer_t answer_taken (response_t *response, const tmq_receipt_t *receipt)
{
    char location[64] = "/v1/tasks/";
    json_writer_t writer = answer_json (response);
    response->status = receipt->existing ? 200 : 201;
    tmq_id_format (&receipt->id, location + strlen (location));
    response_field (response, "Location", location);
    if (receipt->existing)
        response_field (response, "Idempotent-Replayed", "true");
    return writer;
}

static void answer_receipt (exchange_t *exchange)
{
    const submission_t *submission = exchange->state;
    response_t response;
    json_writer_t writer = answer_taken (&response, &submission->receipt);
    write_receipt (&writer, &submission->receipt, submission->spec.submit.queue);
    json_write_newline (&writer);
    answer (exchange, &response);
}

/* The task was taken, whatever became of the look at it: then the receipt tells less. */
static void taken_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    const submission_t *submission = exchange->state;
    response_t response;
    if (completion->code != TMQ_OK) {
        answer_receipt (exchange);
        return;
    }
    json_writer_t writer = answer_taken (&response, &submission->receipt);
    subject_write (exchange, &response, &writer, completion->task);
    answer (exchange, &response);
}

static void answer_task (exchange_t *exchange)
{
    const submission_t *submission = exchange->state;
    const char *prefer = http_request_field (exchange->request, "prefer");
    const bool minimal = prefer != NULL && strstr (prefer, "return=minimal") != NULL;
    tmq_error_t error;
    if (minimal || link_get (exchange->link, call_of (exchange, taken_came),
                             &submission->receipt.id, &error) != TMQ_OK)
        answer_receipt (exchange);
}

static void payload_is_there (exchange_t *exchange, const tmq_blob_t *blob);

static void submitted (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    submission_t *submission = exchange->state;
    const tmq_receipt_t *receipt = completion->receipts;
    if (completion->code == TMQ_NO_BLOB && exchange->upload != NULL &&
        upload_send (exchange, payload_is_there))
        return;
    if (completion->code == TMQ_CONFLICT && submission->spec.submit.dedup_key != NULL) {
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_KEY_REUSED,
                                               .code = TMQ_CONFLICT,
                                               .detail = "the key belongs to a task with other "
                                                         "content"});
        return;
    }
    if (!came_well (exchange, completion,
                    completion->code == TMQ_UNKNOWN && receipt != NULL ? &receipt->id : NULL))
        return;
    if (receipt == NULL) {
        answer_code (exchange, TMQ_INTERNAL, NULL, NULL);
        return;
    }
    submission->receipt = *receipt;
    answer_task (exchange);
}

/* What is wrong with it is told: false. */
static bool judge_submission (exchange_t *exchange, bool good)
{
    submission_t *submission = exchange->state;
    spec_t *spec = &submission->spec;
    const char *key = http_request_field (exchange->request, "idempotency-key");
    if (key == NULL && http_request_count (exchange->request, "idempotency-key") > 0)
        key = "";
    if (key == NULL)
        key = spec->key;
    good = good && spec_finish (spec, exchange->principal, key);
    if (!good)
        answer_invalid (exchange, spec->pointer, "%s", spec->error);
    else
        spec->submit.trace = trace_of (exchange, spec->trace);
    return good;
}

static void start_submission (exchange_t *exchange)
{
    const submission_t *submission = exchange->state;
    tmq_error_t error;
    started (exchange,
             link_submit (exchange->link, call_of (exchange, submitted), &submission->spec.submit,
                          &error),
             &error);
}

void submit_json (exchange_t *exchange)
{
    submission_t *submission = keep_state (exchange, sizeof *submission, clear_submission);
    const slice_t text = {(const char *) exchange->body.data, exchange->body.length};
    if (submission != NULL &&
        judge_submission (exchange, spec_from_json (&submission->spec, text, NULL)))
        start_submission (exchange);
}

/* The length of a token of RFC 9110. */
static size_t token_length (const char *text)
{
    return strspn (text, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "abcdefghijklmnopqrstuvwxyz");
}

static bool is_media_type (const char *text)
{
    const size_t type = token_length (text);
    const size_t subtype = text[type] == '/' ? token_length (text + type + 1) : 0;
    const char *rest = text + type + 1 + subtype;
    return type > 0 && subtype > 0 && (*rest == '\0' || strchr ("; \t", *rest) != NULL);
}

/* NULL, or what is wrong with the type of the body; without one it has none. */
static const char *type_flaw (const http_request_t *request, const char *type)
{
    if (http_request_count (request, "content-type") > 1)
        return "it is given more than once";
    if (type == NULL || *type == '\0')
        return NULL;
    if (strlen (type) > TMQ_CONTENT_TYPE_BYTES_MAX)
        return "it is too long";
    if (!utf8_is_valid (type, strlen (type)))
        return "it is no UTF-8";
    return is_media_type (type) ? NULL : "it is no media type, as application/octet-stream is one";
}

/* The bytes are kept as they come: what they are not alone, or what nobody would compare, is not
 * taken in silence. False: answered. */
static bool takes_as_it_is (exchange_t *exchange)
{
    static const char *const sums[] = {"content-digest", "repr-digest", "digest", "content-md5"};
    const http_request_t *request = exchange->request;
    const char *coding = http_request_field (request, "content-encoding");
    if (http_request_count (request, "content-encoding") > 0 &&
        (coding == NULL || strcasecmp (coding, "identity") != 0)) {
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_MEDIA_TYPE,
                                               .detail = "a payload is taken as it is: leave out "
                                                         "Content-Encoding, and say what it is by "
                                                         "Content-Type, as application/gzip"});
        return false;
    }
    if (http_request_count (request, "content-range") > 0) {
        answer_invalid (exchange, "Content-Range", "a payload is sent whole");
        return false;
    }
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        if (http_request_count (request, sums[i]) == 0)
            continue;
        answer_invalid (exchange, sums[i],
                        "nobody compares it here: leave it out, and compare the ETag of the "
                        "payload, its BLAKE2b-256");
        return false;
    }
    return true;
}

bool submit_raw_begin (exchange_t *exchange)
{
    if (!takes_as_it_is (exchange))
        return false;
    submission_t *submission = keep_state (exchange, sizeof *submission, clear_submission);
    if (submission == NULL)
        return false;
    spec_t *spec = &submission->spec;
    const bool good = spec_from_query (spec, &exchange->target, exchange->parameters[0]);
    const char *type = http_request_field (exchange->request, "content-type");
    const char *flaw = type_flaw (exchange->request, type);
    if (flaw != NULL) {
        answer_invalid (exchange, "Content-Type", "%s", flaw);
        return false;
    }
    spec->submit.content_type = type;
    if (!judge_submission (exchange, good))
        return false;
    upload_expect (exchange);
    return true;
}

static void payload_is_there (exchange_t *exchange, const tmq_blob_t *blob)
{
    submission_t *submission = exchange->state;
    submission->spec.submit.payload_blob = *blob;
    start_submission (exchange);
}

void submit_raw (exchange_t *exchange)
{
    submission_t *submission = exchange->state;
    if (exchange->upload != NULL) {
        upload_send (exchange, payload_is_there);
        return;
    }
    submission->spec.submit.payload = exchange->body.data;
    submission->spec.submit.payload_bytes = exchange->body.length;
    start_submission (exchange);
}

/* Many. */

typedef struct batch {
    spec_t *specs;
    tmq_receipt_t *receipts; /* of those that were refused here */
    size_t *places;          /* of those that are sent */
    tmq_submit_t *submits;
    size_t count;
    size_t sent;
} batch_t;

static void clear_batch (void *state)
{
    batch_t *batch = state;
    for (size_t i = 0; batch->specs != NULL && i < batch->count; i++)
        spec_clear (&batch->specs[i]);
    free (batch->specs);
    free (batch->receipts);
    free (batch->places);
    free (batch->submits);
    free (batch);
}

static void answer_batch (exchange_t *exchange)
{
    const batch_t *batch = exchange->state;
    response_t response;
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "items");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < batch->count; i++)
        write_receipt (&writer, &batch->receipts[i], batch->specs[i].submit.queue);
    json_write_array_end (&writer);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

static void batch_submitted (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    batch_t *batch = exchange->state;
    if (completion->receipts == NULL || completion->receipts_count != batch->sent) {
        came_well (exchange, completion, NULL);
        return;
    }
    for (size_t i = 0; i < batch->sent; i++)
        batch->receipts[batch->places[i]] = completion->receipts[i];
    answer_batch (exchange);
}

/* A key of the whole stands for each item with its place. */
static bool finish_item (const exchange_t *exchange, spec_t *spec, size_t place)
{
    char key[SPEC_KEY_SIZE + 24];
    const char *all = http_request_field (exchange->request, "idempotency-key");
    if (all == NULL || spec->key != NULL)
        return spec_finish (spec, exchange->principal, spec->key);
    snprintf (key, sizeof key, "%.*s:%zu", SPEC_KEY_SIZE, all, place);
    return spec_finish (spec, exchange->principal, all[0] != '\0' ? key : all);
}

/* An item that is no good is told as such; the others go. */
static void read_item (exchange_t *exchange, batch_t *batch, slice_t item)
{
    const size_t place = batch->count++;
    spec_t *spec = &batch->specs[place];
    if (spec_from_json (spec, item, NULL) && finish_item (exchange, spec, place)) {
        spec->submit.trace = trace_of (exchange, spec->trace);
        batch->places[batch->sent] = place;
        batch->submits[batch->sent++] = spec->submit;
        return;
    }
    batch->receipts[place].code = TMQ_INVALID;
    snprintf (batch->receipts[place].text, sizeof batch->receipts[place].text, "%s", spec->error);
}

/* The array; length 0: answered. */
static slice_t find_items (exchange_t *exchange)
{
    char error[INPUT_ERROR_SIZE];
    const slice_t none = {"", 0};
    const slice_t text = {(const char *) exchange->body.data, exchange->body.length};
    json_t *object = input_object (text, error);
    const json_t *tasks = json_object_get (object, "tasks");
    const size_t count = json_array_size (tasks);
    const bool alone = json_object_size (object) == 1;
    json_decref (object);
    if (object == NULL)
        answer_invalid (exchange, "", "%s", error);
    else if (!alone || count == 0 || count > TMQ_SUBMIT_ITEMS_MAX)
        answer_invalid (exchange, "/tasks", "the body is {\"tasks\":[…]} with 1 to %d of them",
                        TMQ_SUBMIT_ITEMS_MAX);
    else
        return input_member (text, "tasks");
    return none;
}

void submit_batch (exchange_t *exchange)
{
    tmq_error_t error;
    slice_t item;
    slice_t items = find_items (exchange);
    if (items.length == 0)
        return;
    if (http_request_count (exchange->request, "idempotency-key") > 1) {
        answer_invalid (exchange, "Idempotency-Key", "there is more than one key");
        return;
    }
    batch_t *batch = keep_state (exchange, sizeof *batch, clear_batch);
    if (batch == NULL)
        return;
    batch->specs = calloc (TMQ_SUBMIT_ITEMS_MAX, sizeof *batch->specs);
    batch->receipts = calloc (TMQ_SUBMIT_ITEMS_MAX, sizeof *batch->receipts);
    batch->places = calloc (TMQ_SUBMIT_ITEMS_MAX, sizeof *batch->places);
    batch->submits = calloc (TMQ_SUBMIT_ITEMS_MAX, sizeof *batch->submits);
    if (batch->specs == NULL || batch->receipts == NULL || batch->places == NULL ||
        batch->submits == NULL) {
        answer_code (exchange, TMQ_NO_MEMORY, NULL, NULL);
        return;
    }
    while (input_next (&items, &item))
        read_item (exchange, batch, item);
    if (batch->sent == 0)
        answer_batch (exchange);
    else
        started (exchange,
                 link_submit_batch (exchange->link, call_of (exchange, batch_submitted),
                                    batch->submits, batch->sent, &error),
                 &error);
}
