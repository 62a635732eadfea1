/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/after.h"

#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/reads/want.h"
#include "core/requests/again.h"
#include "core/tasks/change.h"
#include "core/tasks/edges.h"
#include "core/tasks/extras.h"
#include "ids.h"
#include "types.h"

void after_want (const requests_t *self, const link_t *link, const Taskmq__TaskSpec *spec,
                 key_list_t *keys)
{
    const Taskmq__Extra *extra = spec->extra;
    for (size_t i = 0; extra != NULL && i < extra->n_after; i++)
        want_id (self->reads, link->space, extra->after[i]->task_id.data, false, keys);
    if (extra != NULL && extra->parent.len > 0)
        want_id (self->reads, link->space, extra->parent.data, false, keys);
}

static after_refusal_t refusal (tmq_code_t code, const char *member, const uint8_t *bytes,
                                const char *what)
{
    tmq_id_t id;
    char id_text[ID_TEXT_SIZE];
    char text[160];
    memcpy (id.bytes, bytes, sizeof (id));
    id_format (&id, id_text);
    snprintf (text, sizeof (text), "%s: %s %s", member, what, id_text);
    return (after_refusal_t){code, memory_text (text)};
}

static const char DAMAGED[] = "what is stored is damaged of the task";
static const char ABSENT[] = "there is no task";

static after_refusal_t judge (call_t *call, Taskmq__Dependency *entry)
{
    found_t found = find_unjudged (call->requests->reads, call->link->space, entry->task_id.data);
    if (found.gone == TMQ_INTERNAL)
        return refusal (TMQ_INTERNAL, "after", entry->task_id.data, DAMAGED);
    if (found.gone == TMQ_NOT_FOUND || !found_is_seen (call->link, &found))
        return refusal (TMQ_NOT_FOUND, "after", entry->task_id.data, ABSENT);
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

/* Parts. */

/* What a parent-to-be knows of its place among tasks. */
typedef struct place {
    uint32_t depth; /* how many are above it */
    bool has_parts;
} place_t;

static place_t place_of (const found_t *found)
{
    const Taskmq__Extra *fields;
    if (found->task != NULL) {
        fields = extras_of (found->task);
        return (place_t){fields->depth, fields->has_parts};
    }
    if (found->record->extra == NULL)
        return (place_t){0};
    extra_t *stored = extra_new (found->record->extra);
    place_t place = {stored->fields->depth, stored->fields->has_parts};
    extra_free (stored);
    return place;
}

after_refusal_t parent_judge (call_t *call, const Taskmq__TaskSpec *spec)
{
    Taskmq__Extra *extra = spec->extra;
    if (extra == NULL || extra->parent.len == 0)
        return (after_refusal_t){.code = TMQ_OK};
    const uint8_t *id = extra->parent.data;
    found_t found = find_unjudged (call->requests->reads, call->link->space, id);
    if (found.gone == TMQ_INTERNAL)
        return refusal (TMQ_INTERNAL, "parent", id, DAMAGED);
    if ((found.task == NULL && found.record == NULL) || !found_is_seen (call->link, &found))
        return refusal (TMQ_NOT_FOUND, "parent", id, ABSENT);
    uint32_t depth = place_of (&found).depth + 1;
    if (depth > TMQ_TREE_DEPTH_MAX) {
        char text[64];
        snprintf (text, sizeof (text), "as many as %d tasks are above", TMQ_TREE_DEPTH_MAX);
        return refusal (TMQ_LIMIT, "parent", id, text);
    }
    extra->depth = depth;
    return (after_refusal_t){.code = TMQ_OK};
}

void parent_mark (requests_t *self, space_t *space, const Taskmq__TaskSpec *spec, const char *actor)
{
    if (spec->extra == NULL || spec->extra->parent.len == 0)
        return;
    found_t found = find_unjudged (self->reads, space, spec->extra->parent.data);
    if ((found.task == NULL && found.record == NULL) || place_of (&found).has_parts)
        return;
    if (found.task == NULL && self->base->config.planted_bug == ENGINE_BUG_PARTS_UNMARKED)
        return;
    task_t *parent = again_task (self, &found); /* one that has ended leaves memory again */
    extras_edit (parent)->has_parts = true;
    extras_changed (self->tasks, parent);
    const cause_t cause = {.actor = actor, .message = "has parts"};
    change_apply (self->tasks, parent, INPUT_SET, &cause);
}
