/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/receipt.h"

#include <stdio.h>
#include <unistd.h>

#include "base/exit.h"
#include "screen/output.h"
#include "screen/show.h"

void write_receipt (json_writer_t *writer, const tmq_receipt_t *receipt, const char *queue)
{
    char id[37];
    const bool good = receipt->code == TMQ_OK;
    tmq_id_format (&receipt->id, id);
    json_write_object_begin (writer);
    json_write_key (writer, "task_id");
    json_write_text (writer, good ? id : NULL);
    json_write_key (writer, "queue");
    json_write_text (writer, queue);
    json_write_key (writer, "status");
    json_write_text (writer, good ? tmq_status_text (receipt->status) : NULL);
    json_write_key (writer, "existing");
    if (good)
        json_write_bool (writer, receipt->existing);
    else
        json_write_null (writer);
    json_write_key (writer, "error");
    if (good) {
        json_write_null (writer);
    } else {
        json_write_object_begin (writer);
        json_write_key (writer, "code");
        json_write_text (writer, tmq_code_name (receipt->code));
        json_write_key (writer, "message");
        json_write_text (writer, *receipt->text ? receipt->text : tmq_code_text (receipt->code));
        json_write_object_end (writer);
    }
    json_write_object_end (writer);
}

int put_result (app_t *app, const tmq_task_t *task, const char *path)
{
    char text[37];
    tmq_error_t error = {0};
    if (path) {
        const bool any = task->body_bytes > 0 || task->result_blob.bytes > 0 ||
                         task->status == TMQ_STATUS_COMPLETED;
        const int code = any ? save_body_as (app, task, true, path) : EXIT_OK;
        if (code)
            return code;
    } else if (task->result_blob.bytes == 0) {
        put_body (task);
    } else {
        fflush (stdout);
        error.code =
            tmq_result_save (app->client, &task->id, STDOUT_FILENO, app->timeout_ms, &error);
    }
    tmq_id_format (&task->id, text);
    if (error.code != TMQ_OK)
        return library_error (app, &error, text);
    return task->status == TMQ_STATUS_COMPLETED ? EXIT_OK : show_failure (app, task);
}
