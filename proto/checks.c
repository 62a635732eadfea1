/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "request_kinds.h"
#include "types.h"

/* What checks are made of. */

/* Always false: for `return check_refuse (…)`. */
bool check_refuse (check_t *check, tmq_code_t code, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    const char *text = arena_vprintf (check->arena, format, arguments);
    va_end (arguments);
    check->verdict->code = code;
    check->verdict->text = text != NULL ? text : code_text ((int) code);
    return false;
}

bool check_name (check_t *check, const char *member, const char *name)
{
    return name_is_valid (name) ||
           check_refuse (check, TMQ_INVALID, "%s: must match [A-Za-z0-9._-]{1,%d}", member,
                         TMQ_NAME_LENGTH_MAX);
}

bool check_name_or_empty (check_t *check, const char *member, const char *name)
{
    return *name == '\0' || check_name (check, member, name);
}

bool check_text (check_t *check, const char *member, const char *text, size_t bytes_max)
{
    size_t length = strlen (text);
    return length <= bytes_max || check_refuse (check, TMQ_TOO_LARGE, "%s: %zu bytes, at most %zu",
                                                member, length, bytes_max);
}

bool check_16_bytes (check_t *check, const char *member, const ProtobufCBinaryData *data)
{
    return data->len == ID_BYTES ||
           check_refuse (check, TMQ_INVALID, "%s: must be 16 bytes, not %zu", member, data->len);
}

bool check_range (check_t *check, const char *member, uint64_t value, uint64_t min, uint64_t max)
{
    return (value >= min && value <= max) ||
           check_refuse (check, TMQ_INVALID, "%s: must be in %llu..%llu", member,
                         (unsigned long long) min, (unsigned long long) max);
}

bool check_amount (check_t *check, const char *member, double value)
{
    return (isfinite (value) && value >= 0) ||
           check_refuse (check, TMQ_INVALID, "%s: must be a finite number from 0 up", member);
}

bool check_count (check_t *check, const char *member, size_t count, size_t min, size_t max)
{
    if (count < min)
        return check_refuse (check, TMQ_INVALID, "%s: at least %zu", member, min);
    return count <= max ||
           check_refuse (check, TMQ_TOO_LARGE, "%s: %zu of them, at most %zu", member, count, max);
}

bool check_body (check_t *check, const char *member, uint32_t bytes)
{
    return bytes <= TMQ_FRAME_BYTES_MAX || check_refuse (check, TMQ_TOO_LARGE, "%s: %u, at most %d",
                                                         member, bytes, TMQ_FRAME_BYTES_MAX);
}

bool check_json (check_t *check, const char *member, const char *text, size_t bytes_max,
                 bool object)
{
    if (*text == '\0')
        return true;
    if (!check_text (check, member, text, bytes_max))
        return false;
    size_t length = strlen (text);
    if (object)
        return json_text_is_object (text, length) ||
               check_refuse (check, TMQ_INVALID, "%s: must be a JSON object", member);
    return json_text_is_valid (text, length) ||
           check_refuse (check, TMQ_INVALID, "%s: must be JSON", member);
}

bool check_names (check_t *check, const char *member, char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_name (check, member, names[i]))
            return false;
    }
    return true;
}

bool check_ids (check_t *check, const char *member, const ProtobufCBinaryData *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_16_bytes (check, member, &ids[i]))
            return false;
    }
    return true;
}

bool check_labels (check_t *check, Taskmq__Label *const *labels, size_t count)
{
    if (!check_count (check, "labels", count, 0, TMQ_LABELS_MAX))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!check_name (check, "labels.key", labels[i]->key) ||
            !check_text (check, "labels.value", labels[i]->value, TMQ_LABEL_BYTES_MAX))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (strcmp (labels[i]->key, labels[k]->key) == 0)
                return check_refuse (check, TMQ_INVALID, "labels.key: \"%s\" stands twice",
                                     labels[i]->key);
        }
    }
    return true;
}

bool check_needs (check_t *check, const Taskmq__Extra *extra)
{
    return check_count (check, "needs", extra->n_needs, 0, TMQ_NEEDS_MAX) &&
           check_labels (check, extra->needs, extra->n_needs);
}

bool check_lease (check_t *check, const Taskmq__Lease *lease)
{
    if (lease == NULL)
        return check_refuse (check, TMQ_INVALID, "lease: is missing");
    return check_16_bytes (check, "lease.task_id", &lease->task_id) &&
           check_range (check, "lease.attempt", lease->attempt, 1, UINT32_MAX) &&
           check_16_bytes (check, "lease.secret", &lease->secret);
}

bool check_leases (check_t *check, Taskmq__Lease *const *leases, size_t count, size_t min)
{
    if (!check_count (check, "leases", count, min, TMQ_CREDIT_MAX))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!check_lease (check, leases[i]))
            return false;
    }
    return true;
}
