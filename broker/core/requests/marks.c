/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/marks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "core/tasks/extras.h"

static ProtobufCBinaryData *mark_in (Taskmq__Extra *fields, mark_t mark)
{
    return mark == MARK_REVIVED   ? &fields->revived_by
           : mark == MARK_SET     ? &fields->set_by
           : mark == MARK_ADOPTED ? &fields->adopted_by
                                  : &fields->answered_by;
}

bool mark_is_repeat (const call_t *call, const found_t *found, mark_t mark)
{
    const ProtobufCBinaryData *id = &call->request->request_id;
    extra_t *stored = NULL;
    Taskmq__Extra *fields = NULL;
    if (found->task != NULL && found->task->extra != NULL)
        fields = found->task->extra->fields;
    else if (found->task == NULL && found->record->extra != NULL)
        fields = (stored = extra_new (found->record->extra))->fields;
    bool same = false;
    if (fields != NULL && id->len > 0) {
        const ProtobufCBinaryData *kept = mark_in (fields, mark);
        for (size_t at = 0; at + id->len <= kept->len && !same; at += id->len)
            same = memcmp (kept->data + at, id->data, id->len) == 0;
    }
    extra_free (stored);
    return same;
}

void mark_keep (call_t *call, task_t *task, mark_t mark)
{
    const ProtobufCBinaryData *id = &call->request->request_id;
    if (id->len == 0)
        return; /* a request that says no id is nobody's repeat */
    ProtobufCBinaryData *place = mark_in (extras_edit (task), mark);
    bool full = place->len >= MARKS_KEPT * id->len;
    size_t kept = full ? place->len - id->len : place->len;
    uint8_t *next = memory_alloc (kept + id->len);
    if (kept > 0)
        memcpy (next, place->data + (place->len - kept), kept);
    memcpy (next + kept, id->data, id->len);
    free (place->data);
    *place = (ProtobufCBinaryData){kept + id->len, next};
    extras_changed (call->requests->tasks, task);
}
