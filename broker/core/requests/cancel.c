/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* cancel: the end of a task by a client. */
#include "core/requests/cancel.h"

#include <assert.h>
#include <string.h>

#include "core/peers/outbox.h"
#include "core/requests/answer.h"
#include "core/requests/cancel.h"
#include "core/requests/deeds.h"
#include "core/requests/get.h"
#include "core/tasks/change.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"

void cancel_tell (requests_t *self, const worker_t *worker, const tmq_id_t *id, uint32_t attempt,
                  const char *message, int32_t code)
{
    if (worker->link == NULL)
        return;
    Taskmq__CancelNotice notice = TASKMQ__CANCEL_NOTICE__INIT;
    notice.worker_id = (ProtobufCBinaryData){sizeof (worker->id), (uint8_t *) worker->id};
    notice.task_id = (ProtobufCBinaryData){sizeof (*id), (uint8_t *) id->bytes};
    notice.attempt = attempt;
    notice.message = (char *) message;
    notice.code = code;
    bytes_clear (&self->peers->scratch);
    bytes_append_message (&self->peers->scratch, BROKER_CANCELS, &notice.base);
    outbox_add (self->peers, worker->link, ITEM_CANCEL, journal_batch (self->tasks),
                &self->peers->scratch, NULL);
}

/* It stays in the task, also when its worker has said more. */
static void keep_message (tasks_t *self, task_t *task, const char *message)
{
    enum { TAG_BYTES = 8 };
    if (message[0] == '\0')
        return;
    detail_set_text (&task_detail (&self->slab, task)->status_message, message);
    if (strlen (message) + TAG_BYTES > extras_room (task))
        return;
    extra_set_text (&extras_edit (task)->cancel_message, message);
    extras_changed (self, task);
}

void cancel_task (requests_t *self, task_t *task, const cause_t *cause)
{
    detail_t *detail = task_detail (&self->tasks->slab, task);
    keep_message (self->tasks, task, cause->message);
    if (task->leased && !task_is_withdrawn (task))
        journal_add_attempt (self->tasks, task, TMQ_EVENT_CANCELLED, 0, cause->message,
                             cause->request_id);
    self->tasks->open.inputs++;
    change_finish (self->tasks, task, INPUT_CANCEL, cause);
    if (task->leased) /* at once, and again with each renewal (S5) */
        cancel_tell (self, detail->holder, &task->id, task->attempt, cause->message, 0);
}

void on_cancel (call_t *call)
{
    found_t found;
    if (!get_find (call, &call->request->cancel->task_id, RIGHT_CANCEL, &found))
        return;
    tmq_status_t status = found_status (&found);
    if (status == TMQ_STATUS_COMPLETED || status == TMQ_STATUS_FAILED) {
        get_answer_wrong_status (call, "it cannot be cancelled", status);
        return;
    }
    if (status != TMQ_STATUS_CANCELLED) {
        deeds_task (call, DEED_CANCEL, &found);
        const Taskmq__Cancel *request = call->request->cancel;
        cause_t cause = {.actor = name_text (call->link->identity),
                         .message = request->message,
                         .request_id = call->request->request_id.data};
        assert (found.task != NULL); /* what is not over is in memory */
        cancel_task (call->requests, found.task, &cause);
    }
    get_answer (call, &found, NULL);
}
