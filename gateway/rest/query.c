/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rest/answer.h"
#include "rest/route.h"
#include "units.h"

bool number_parameter (exchange_t *exchange, uint64_t *out, const char *name, uint64_t most)
{
    const char *text = http_target_parameter (&exchange->target, name);
    char *end = NULL;
    if (text == NULL)
        return true;
    const unsigned long long value = strtoull (text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && value <= most) {
        *out = value;
        return true;
    }
    answer_invalid (exchange, name, "%s is a whole number up to %" PRIu64, name, most);
    return false;
}

/* Which one would count? */
static bool is_single (exchange_t *exchange, const char *name)
{
    const bool single = http_target_count (&exchange->target, name) <= 1;
    if (!single)
        answer_invalid (exchange, name, "%.64s is given more than once", name);
    return single;
}

bool known_parameters (exchange_t *exchange, const char *const *names, size_t count)
{
    for (size_t i = 0; i < exchange->target.parameters_count; i++) {
        const char *name = exchange->target.parameters[i].name;
        bool known = strcmp (name, "namespace") == 0; /* read at the door */
        for (size_t j = 0; j < count; j++)
            known = known || strcmp (names[j], name) == 0;
        if (!known) {
            answer_invalid (exchange, name, "there is no parameter '%.64s'", name);
            return false;
        }
        if (!is_single (exchange, name))
            return false;
    }
    return true;
}

bool flag_parameter (exchange_t *exchange, bool *out, const char *name)
{
    const char *text = http_target_parameter (&exchange->target, name);
    if (text == NULL)
        return true;
    *out = strcmp (text, "yes") == 0 || strcmp (text, "1") == 0 || strcmp (text, "true") == 0;
    if (*out || strcmp (text, "no") == 0 || strcmp (text, "0") == 0 || strcmp (text, "false") == 0)
        return true;
    answer_invalid (exchange, name, "%s is yes or no", name);
    return false;
}

/* Filters. */

static bool add_text (exchange_t *exchange, const char **list, size_t *count,
                      const http_parameter_t *parameter)
{
    if (*count == TMQ_FILTER_VALUES_MAX) {
        answer_invalid (exchange, parameter->name, "%s is given more than %d times",
                        parameter->name, TMQ_FILTER_VALUES_MAX);
        return false;
    }
    list[(*count)++] = parameter->value;
    return true;
}

static bool add_status (exchange_t *exchange, query_filter_t *self, const char *text)
{
    for (int status = TMQ_STATUS_QUEUED; status <= TMQ_STATUS_CANCELLED; status++) {
        if (strcmp (tmq_status_text ((tmq_status_t) status), text) != 0)
            continue;
        if (self->filter.statuses_count < QUERY_STATUSES_MAX)
            self->statuses[self->filter.statuses_count++] = (tmq_status_t) status;
        return true;
    }
    answer_invalid (exchange, "status", "there is no status '%.32s'", text);
    return false;
}

static bool add_label (exchange_t *exchange, query_filter_t *self, const char *text)
{
    const char *colon = strchr (text, ':');
    if (colon == NULL || strlen (text) >= QUERY_LABEL_SIZE ||
        self->filter.labels_count == QUERY_LABELS_MAX) {
        answer_invalid (exchange, "label", "label is NAME:VALUE, at most %d times",
                        QUERY_LABELS_MAX);
        return false;
    }
    char *room = self->texts[self->filter.labels_count];
    memcpy (room, text, strlen (text) + 1);
    room[colon - text] = '\0';
    self->labels[self->filter.labels_count++] = (tmq_label_t){room, room + (colon - text) + 1};
    return true;
}

static bool put_time (exchange_t *exchange, uint64_t *out, const http_parameter_t *parameter)
{
    char error[UNITS_ERROR_SIZE];
    int64_t ms;
    if (!time_parse (&ms, parameter->value, error)) {
        answer_invalid (exchange, parameter->name, "%s: %s", parameter->name, error);
        return false;
    }
    *out = (uint64_t) ms;
    return true;
}

static bool put_parameter (exchange_t *exchange, query_filter_t *self,
                           const http_parameter_t *parameter, const char *const *others)
{
    tmq_filter_t *filter = &self->filter;
    const char *name = parameter->name;
    if (strcmp (name, "queue") == 0)
        return add_text (exchange, self->queues, &filter->queues_count, parameter);
    if (strcmp (name, "session") == 0)
        return add_text (exchange, self->sessions, &filter->sessions_count, parameter);
    if (strcmp (name, "status") == 0)
        return add_status (exchange, self, parameter->value);
    if (strcmp (name, "label") == 0)
        return add_label (exchange, self, parameter->value);
    if (!is_single (exchange, name))
        return false;
    if (strcmp (name, "created_since") == 0)
        return put_time (exchange, &filter->created_since, parameter);
    if (strcmp (name, "created_until") == 0)
        return put_time (exchange, &filter->created_until, parameter);
    if (strcmp (name, "namespace") == 0)
        return true; /* read at the door */
    for (; others != NULL && *others != NULL; others++)
        if (strcmp (name, *others) == 0)
            return true;
    answer_invalid (exchange, name, "there is no parameter '%.64s'", name);
    return false;
}

bool query_filter (exchange_t *exchange, query_filter_t *out, const char *const *others)
{
    const http_target_t *target = &exchange->target;
    memset (out, 0, sizeof *out);
    out->filter.queues = out->queues;
    out->filter.sessions = out->sessions;
    out->filter.statuses = out->statuses;
    out->filter.labels = out->labels;
    for (size_t i = 0; i < target->parameters_count; i++)
        if (!put_parameter (exchange, out, &target->parameters[i], others))
            return false;
    if (policy_own_only (exchange->principal->roles, exchange->route->access))
        out->labels[out->filter.labels_count++] =
            (tmq_label_t){PRINCIPAL_LABEL, exchange->principal->name};
    return true;
}
