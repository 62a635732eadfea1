/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/naming.h"

#include <stdio.h>

#include "core/requests/answer.h"
#include "core/tasks/blobs.h"
#include "core/tasks/journal.h"

bool naming_refuses (const call_t *call, const char *owner, const Taskmq__Blob *blob,
                     const char *member, naming_refusal_t *out)
{
    requests_t *self = call->requests;
    const link_t *link = call->link;
    *out = (naming_refusal_t){.code = TMQ_OK};
    if (blob == NULL)
        return false;
    if (!blob_is_claimed (self->tasks, link->space->name, name_text (link->identity), blob) &&
        self->base->config.planted_bug != ENGINE_BUG_BLOB_UNCLAIMED) {
        out->code = TMQ_NO_BLOB;
        snprintf (out->text, sizeof (out->text), "%s: is to be uploaded first", member);
        return true;
    }
    quota_refusal_t over = {.refused = !blobs_have_room (self->tasks, owner, blob)};
    if (over.refused) {
        over.retry_after_ms = LIMIT_RETRY_MS;
        limit_text (over.text, "blobs", BLOBS_MAX);
    } else {
        over = quota_blob (self, link, owner, blob);
    }
    if (over.refused) {
        out->code = TMQ_LIMIT;
        out->retry_after_ms = over.retry_after_ms;
        snprintf (out->text, sizeof (out->text), "%s", over.text);
    }
    return over.refused;
}

void naming_answer (call_t *call, const naming_refusal_t *refusal)
{
    bytes_mark_t mark;
    reply_open (call->requests, call->request->id, refusal->code, refusal->text,
                refusal->retry_after_ms, false, &mark);
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}
