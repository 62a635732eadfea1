/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/after.h"

#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/reads/want.h"
#include "core/tasks/edges.h"
#include "ids.h"
#include "types.h"

void after_want (const requests_t *self, const link_t *link, const Taskmq__TaskSpec *spec,
                 key_list_t *keys)
{
    const Taskmq__Extra *extra = spec->extra;
    for (size_t i = 0; extra != NULL && i < extra->n_after; i++)
        want_id (self->reads, link->space, extra->after[i]->task_id.data, false, keys);
}

static after_refusal_t refusal (tmq_code_t code, const uint8_t *bytes, const char *what)
{
    tmq_id_t id;
    char id_text[ID_TEXT_SIZE];
    char text[160];
    memcpy (id.bytes, bytes, sizeof (id));
    id_format (&id, id_text);
    snprintf (text, sizeof (text), "extra.after: %s %s", what, id_text);
    return (after_refusal_t){code, memory_text (text)};
}

static after_refusal_t judge (call_t *call, Taskmq__Dependency *entry)
{
    found_t found = find_unjudged (call->requests->reads, call->link->space, entry->task_id.data);
    if (found.gone == TMQ_INTERNAL)
        return refusal (TMQ_INTERNAL, entry->task_id.data, "what is stored is damaged of the task");
    if (found.gone == TMQ_NOT_FOUND || !found_is_seen (call->link, &found))
        return refusal (TMQ_NOT_FOUND, entry->task_id.data, "there is no task");
    tmq_status_t status = found_status (&found);
    if (found.gone != TMQ_OK) /* nobody can say how it ended: it counts as failed */
        entry->status = TMQ_STATUS_FAILED;
    else if (status_is_terminal (status))
        entry->status = status;
    return (after_refusal_t){.code = TMQ_OK};
}

after_refusal_t after_judge (call_t *call, const Taskmq__TaskSpec *spec)
{
    const Taskmq__Extra *extra = spec->extra;
    if (extra == NULL || extra->n_after == 0)
        return (after_refusal_t){.code = TMQ_OK};
    size_t max = call->requests->base->config.dependencies_max;
    if (!edges_fit (call->requests->tasks, extra->n_after)) {
        char text[96];
        snprintf (text, sizeof (text), "tasks wait for %zu others already, as many as they may",
                  max);
        return (after_refusal_t){TMQ_LIMIT, memory_text (text)};
    }
    for (size_t i = 0; i < extra->n_after; i++) {
        after_refusal_t refused = judge (call, extra->after[i]);
        if (refused.code != TMQ_OK)
            return refused;
    }
    return (after_refusal_t){.code = TMQ_OK};
}
