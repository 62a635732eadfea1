/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/filter.h"

#include <string.h>

#include "ids.h"
#include "screen/output.h"

static int too_many (const app_t *app, const char *option)
{
    return usage_error (app, NULL, "--%s is given more than %d times", option,
                        TMQ_FILTER_VALUES_MAX);
}

static int add_label (task_filter_t *out, const app_t *app, const char *text)
{
    if (!labels_add (&out->labels, text))
        return usage_error (app, NULL, "--label is given more than %d times", TMQ_LABELS_MAX);
    out->filter.labels_count = out->labels.count;
    return 0;
}

static int add_parent (task_filter_t *out, const app_t *app, const char *text)
{
    const size_t i = out->filter.parents_count;
    if (i == TMQ_FILTER_VALUES_MAX)
        return too_many (app, "parent");
    if (tmq_id_parse (&out->parents[i], text) != TMQ_OK)
        return usage_error (app, "a full id, or its ending of at least 6 characters",
                            "--parent '%.40s' is not an id", text);
    out->filter.parents_count++;
    return 0;
}

/* What turns told. */
static int add_mark (const app_t *app, const option_value_t *value, const char **list,
                     size_t *count)
{
    if (*value->text == '\0')
        return usage_error (app, NULL, "--%s must not be empty", value->spec->name);
    if (*count == TMQ_LABELS_MAX)
        return usage_error (app, NULL, "--%s is given more than %d times", value->spec->name,
                            TMQ_LABELS_MAX);
    list[(*count)++] = value->text;
    return 0;
}

static int add_owner (task_filter_t *out, const app_t *app, const char *owner)
{
    if (*owner == '\0')
        return usage_error (app, NULL, "--owner must not be empty");
    if (out->filter.owners_count == TMQ_FILTER_VALUES_MAX)
        return too_many (app, "owner");
    out->owners[out->filter.owners_count++] = owner;
    return 0;
}

static int add_condition (task_filter_t *out, const app_t *app, const option_value_t *value)
{
    switch (value->spec->id) {
    case OPT_LABEL: return add_label (out, app, value->text);
    case OPT_PARENT: return add_parent (out, app, value->text);
    case OPT_OWNER: return add_owner (out, app, value->text);
    case OPT_AGENT: return add_mark (app, value, out->agents, &out->filter.agents_count);
    case OPT_TOUCHED: return add_mark (app, value, out->files, &out->filter.files_count);
    default: return 0;
    }
}

bool filter_is_given (const app_t *app)
{
    static const option_id_t conditions[] = {OPT_QUEUE,   OPT_STATUS, OPT_SESSION, OPT_LABEL,
                                             OPT_SINCE,   OPT_UNTIL,  OPT_PARENT,  OPT_AGENT,
                                             OPT_TOUCHED, OPT_OWNER,  OPT_SEARCH};
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        if (args_has (&app->args, conditions[i]))
            return true;
    }
    return false;
}

int filter_from_args (task_filter_t *out, const app_t *app, bool with_times)
{
    const args_t *args = &app->args;
    tmq_filter_t *filter = &out->filter;
    uint64_t statuses = 0;
    memset (out, 0, sizeof *out);
    filter->queues = out->queues;
    filter->statuses = out->statuses;
    filter->sessions = out->sessions;
    filter->labels = out->labels.list;
    filter->parents = out->parents;
    filter->agents = out->agents;
    filter->files = out->files;
    filter->owners = out->owners;
    const bool by_operand = args->command->operand == OPERAND_QUEUE;
    const size_t operands = by_operand ? args->operands_count : 0;
    if (args_count (args, OPT_QUEUE) + operands > TMQ_FILTER_VALUES_MAX)
        return too_many (app, "queue");
    if (args_count (args, OPT_SESSION) > TMQ_FILTER_VALUES_MAX)
        return too_many (app, "session");
    for (size_t i = 0; i < operands; i++) {
        if (!name_is_valid (args->operands[i]))
            return usage_error (app, NULL, "queue '%.80s' must be 1 to %d of A-Z a-z 0-9 . _ -",
                                args->operands[i], TMQ_NAME_LENGTH_MAX);
        out->queues[filter->queues_count++] = args->operands[i];
    }
    for (size_t i = 0; i < args->values_count; i++) {
        const option_value_t *value = &args->values[i];
        if (value->spec->id == OPT_QUEUE)
            out->queues[filter->queues_count++] = value->text;
        else if (value->spec->id == OPT_STATUS)
            statuses |= value->number;
        else if (value->spec->id == OPT_SESSION)
            out->sessions[filter->sessions_count++] = value->text;
        const int code = add_condition (out, app, value);
        if (code)
            return code;
    }
    for (unsigned i = TMQ_STATUS_QUEUED; i <= TMQ_STATUS_CANCELLED; i++) {
        if (statuses >> i & 1)
            out->statuses[filter->statuses_count++] = (tmq_status_t) i;
    }
    if (with_times) {
        filter->created_since = args_number (args, OPT_SINCE, 0);
        filter->created_until = args_number (args, OPT_UNTIL, 0);
    }
    return 0;
}
