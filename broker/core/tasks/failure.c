/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/failure.h"

#include <stdio.h>
#include <string.h>

#include "ids.h"

void failure_set (tasks_t *self, task_t *task, int32_t code, const char *message, const char *data)
{
    detail_t *detail = task_detail (&self->slab, task);
    size_t bytes = data == NULL ? 0 : strlen (data);
    self->texts_bytes -= detail->error_data_bytes;
    self->texts_bytes += bytes;
    if (task->in_batch) /* else its image is counted with the next change */
        self->open.bytes += bytes;
    detail->error_code = code;
    detail_set_text (&detail->error_message, message);
    detail_set_text (&detail->error_data, data);
    detail->error_data_bytes = (uint32_t) bytes;
}

void failure_drop (tasks_t *self, const task_t *task)
{
    if (task->detail != NULL)
        self->texts_bytes -= task->detail->error_data_bytes;
}

bool failure_fits (const tasks_t *self, const task_t *task, size_t data_bytes)
{
    size_t others = self->texts_bytes + self->order_bytes - task->detail->error_data_bytes;
    return data_bytes == 0 || others + data_bytes <= self->base->config.live_bytes_max;
}

void failure_note (char out[TMQ_ERROR_MESSAGE_BYTES_MAX + 1], const char *message,
                   size_t data_bytes)
{
    size_t length =
        utf8_whole (message, strlen (message), TMQ_ERROR_MESSAGE_BYTES_MAX - FAILURE_NOTE_BYTES);
    memcpy (out, message, length);
    snprintf (out + length, TMQ_ERROR_MESSAGE_BYTES_MAX + 1 - length,
              "%s[data of %zu bytes was left out: live tasks take up all their memory]",
              length > 0 ? " " : "", data_bytes);
}
