/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bytes of a task as they are: its payload, its result, its artifacts. */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "rest/download.h"
#include "rest/handlers.h"
#include "rest/query.h"
#include "rest/subject.h"

/* Foreign bytes on our own origin: a browser is to do nothing with them but to show or keep them.
 * It says itself what it wants them for; a script or a style of the page is none of that. */
static bool may_be_read (exchange_t *exchange)
{
    static const char *const reasons[] = {"empty", "document", "image", "audio", "video"};
    const char *wanted = http_request_field (exchange->request, "sec-fetch-dest");
    bool good = http_request_count (exchange->request, "sec-fetch-dest") == 0;
    for (size_t i = 0; wanted != NULL && i < sizeof reasons / sizeof *reasons; i++)
        good = good || strcmp (reasons[i], wanted) == 0;
    if (!good)
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_DENIED,
                                               .detail = "a browser may show these bytes or keep "
                                                         "them, and nothing else"});
    return good;
}

/* They came with the task, or they are a blob. */
static void answer_bytes (exchange_t *exchange, const tmq_task_t *task, download_part_t part,
                          const char *type, const tmq_blob_t *blob)
{
    const bool is_blob = blob->bytes > 0;
    download_answer (exchange,
                     &(download_what_t){.part = part,
                                        .id = task->id,
                                        .type = type,
                                        .bytes = is_blob              ? NULL
                                                 : task->body != NULL ? task->body
                                                                      : "",
                                        .length = is_blob ? blob->bytes : task->body_bytes,
                                        .hash = blob->hash});
}

static void answer_no_result (exchange_t *exchange, const tmq_task_t *task)
{
    char detail[400];
    char id[37];
    tmq_id_format (&task->id, id);
    snprintf (detail, sizeof detail, "the task is %s%s%.300s", tmq_status_text (task->status),
              task->error_message[0] != '\0' ? ": " : "", task->error_message);
    answer_problem (exchange,
                    &(problem_t){.kind = PROBLEM_NO_RESULT, .detail = detail, .task_id = id});
}

static void result_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    char id[37];
    if (completion->code == TMQ_WRONG_STATUS) {
        tmq_id_format (&subject_of (exchange)->id, id);
        answer_problem (exchange,
                        &(problem_t){.kind = PROBLEM_UNFINISHED,
                                     .code = TMQ_WRONG_STATUS,
                                     .detail = completion->error ? completion->error->text : NULL,
                                     .retry_after_ms = 1000,
                                     .task_id = id});
        return;
    }
    if (!subject_came (exchange, completion))
        return;
    const tmq_task_t *task = completion->task;
    if (task->result_blob.bytes == 0 &&
        (task->body == NULL || (task->body_bytes == 0 && task->status != TMQ_STATUS_COMPLETED)))
        answer_no_result (exchange, task);
    else
        answer_bytes (exchange, task, DOWNLOAD_RESULT, task->result_type, &task->result_blob);
}

static int get_result (exchange_t *exchange, tmq_error_t *error)
{
    return link_result (exchange->link, call_of (exchange, result_came), &subject_of (exchange)->id,
                        error);
}

/* However the wait ended, the result tells more. */
static void waited (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    if (completion->code != TMQ_OK && completion->code != TMQ_TIMEOUT) {
        came_well (exchange, completion, &subject_of (exchange)->id);
        return;
    }
    exchange->on_stop = NULL;
    subject_of (exchange)->start = get_result;
    subject_act (exchange);
}

/* What there is is the answer, when nothing more can be waited for. */
static void stop_waiting (exchange_t *exchange)
{
    exchange->on_stop = NULL;
    link_forget (exchange->link, &exchange->ticket);
    subject_of (exchange)->start = get_result;
    subject_act (exchange);
}

static int wait_for_end (exchange_t *exchange, tmq_error_t *error)
{
    exchange->on_stop = stop_waiting;
    return answer_wait (exchange, call_of (exchange, waited), &subject_of (exchange)->id, 1,
                        wait_wanted_ms (exchange), error);
}

void task_result (exchange_t *exchange)
{
    subject_t *subject = may_be_read (exchange) ? subject_begin (exchange) : NULL;
    if (subject == NULL)
        return;
    /* A result that is not there yet must not tell that a foreign task is. */
    subject->start = wait_wanted_ms (exchange) > 0 ? wait_for_end : get_result;
    subject_act_if_theirs (exchange);
}

static void payload_came (void *context, tmq_completion_t *completion)
{
    const tmq_task_t *task = completion->task;
    if (subject_came (context, completion))
        answer_bytes (context, task, DOWNLOAD_PAYLOAD, task->content_type, &task->payload_blob);
}

static int get_payload (exchange_t *exchange, tmq_error_t *error)
{
    return link_payload (exchange->link, call_of (exchange, payload_came),
                         &subject_of (exchange)->id, error);
}

void task_payload (exchange_t *exchange)
{
    subject_t *subject = may_be_read (exchange) ? subject_begin (exchange) : NULL;
    if (subject == NULL)
        return;
    subject->start = get_payload;
    subject_act (exchange);
}

/* Artifacts: a list, and the bytes of one. */

static void list_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    response_t response;
    if (!came_well (exchange, completion, &subject_of (exchange)->id))
        return;
    const tmq_artifact_list_t *list = completion->artifacts;
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "items");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < list->count; i++) {
        const tmq_artifact_info_t *artifact = &list->artifacts[i];
        json_write_artifact (&writer,
                             &(artifact_view_t){.name = artifact->name,
                                                .type = artifact->type,
                                                .bytes = artifact->bytes,
                                                .hash = artifact->has_hash ? artifact->hash : NULL,
                                                .attempt = artifact->attempt,
                                                .attached_at = (int64_t) artifact->attached_at});
    }
    json_write_array_end (&writer);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}

static int get_list (exchange_t *exchange, tmq_error_t *error)
{
    return link_artifacts (exchange->link, call_of (exchange, list_came),
                           &subject_of (exchange)->id, error);
}

void task_artifacts (exchange_t *exchange)
{
    subject_t *subject = subject_begin (exchange);
    if (subject == NULL)
        return;
    subject->start = get_list;
    subject_act_if_theirs (exchange);
}

static void answer_artifact (exchange_t *exchange, const tmq_artifact_info_t *artifact)
{
    if (!artifact->has_hash) {
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_DENIED,
                                               .detail = "the gateway may not read the bodies of "
                                                         "this task"});
        return;
    }
    download_answer (exchange, &(download_what_t){.part = DOWNLOAD_ARTIFACT,
                                                  .id = subject_of (exchange)->id,
                                                  .type = artifact->type,
                                                  .name = artifact->name,
                                                  .length = artifact->bytes,
                                                  .hash = artifact->hash});
}

static void named_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    const tmq_id_t *id = &subject_of (exchange)->id;
    const tmq_error_t error = {.code = TMQ_NOT_FOUND,
                               .text = "the task has no artifact of this name"};
    if (!came_well (exchange, completion, id))
        return;
    const tmq_artifact_list_t *list = completion->artifacts;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp (list->artifacts[i].name, exchange->parameters[1]) != 0)
            continue;
        answer_artifact (exchange, &list->artifacts[i]);
        return;
    }
    answer_code (exchange, TMQ_NOT_FOUND, &error, id);
}

static int get_named (exchange_t *exchange, tmq_error_t *error)
{
    return link_artifacts (exchange->link, call_of (exchange, named_came),
                           &subject_of (exchange)->id, error);
}

void task_artifact (exchange_t *exchange)
{
    subject_t *subject = may_be_read (exchange) ? subject_begin (exchange) : NULL;
    if (subject == NULL)
        return;
    subject->start = get_named;
    subject_act_if_theirs (exchange);
}
