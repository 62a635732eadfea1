/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/imports.h"

#include "core/tasks/dependents.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"
#include "core/tasks/view.h"
#include "types.h"

task_t *import_task (tasks_t *self, const record_t *given)
{
    record_t record = *given;
    record.number = ++self->last_number;
    record.last_seq = 0;
    if (!status_is_terminal (record.status))
        session_begin (self, space_make (self, record.ns), record.session, record.owner);
    task_t *task = task_restore (self, &record);
    task->payload_stored = task->result_stored = false;
    task->by_wall = true;
    task->payload = given->payload == NULL ? NULL : buf_keep (given->payload);
    if (task->detail != NULL) {
        detail_t *detail = task->detail;
        detail->result = given->result == NULL ? NULL : buf_keep (given->result);
        secrets_take (&self->base->secrets, detail->secret, sizeof (detail->secret));
    }
    absent_accepted (&self->absent, &task->id);
    self->open.bytes +=
        buf_length (task->payload) + buf_length (given->result) + buf_length (given->extra);
    return task;
}

void import_attempt (tasks_t *self, const task_t *task, attempt_t *attempt)
{
    attempt->number = task->number;
    attempt->id = task->id;
    /* Nobody has it: who comes with an old lease of the task is told that it is stale. */
    secrets_take (&self->base->secrets, attempt->secret, sizeof (attempt->secret));
    journal_put_attempt (self, attempt);
}

void import_end (tasks_t *self, task_t *task, const cause_t *cause)
{
    static const task_input_t inputs[] = {[TMQ_STATUS_QUEUED] = INPUT_IMPORT,
                                          [TMQ_STATUS_INPUT_REQUIRED] = INPUT_IMPORT_ASKING,
                                          [TMQ_STATUS_COMPLETED] = INPUT_IMPORT_COMPLETED,
                                          [TMQ_STATUS_FAILED] = INPUT_IMPORT_FAILED,
                                          [TMQ_STATUS_CANCELLED] = INPUT_IMPORT_CANCELLED};
    if (task->extra != NULL)
        extras_changed (self, task);
    change_imported (self, task, inputs[task->status], cause);
    self->base->counts.imported++;
    if (task->status != TMQ_STATUS_QUEUED)
        return;
    change_place (self, task);
    dependents_judge (self, task);
}
