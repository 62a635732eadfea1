/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests about the broker, its queues, and what stands beside tasks. */
#include "checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "request_kinds.h"
#include "types.h"

/* Who may use the broker. */

static bool check_key (check_t *check, const ProtobufCBinaryData *key)
{
    return key->len == TMQ_KEY_BYTES ||
           check_refuse (check, TMQ_INVALID, "public_key: must be %d bytes, not %zu", TMQ_KEY_BYTES,
                         key->len);
}

/* They become words of a line in the access file, whose parser judges what they mean. */
static bool check_grants (check_t *check, char *const *grants, size_t count)
{
    if (!check_count (check, "grants", count, 1, TMQ_GRANTS_MAX))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!check_text (check, "grants", grants[i], TMQ_GRANT_BYTES_MAX))
            return false;
        size_t length = strlen (grants[i]);
        size_t good = 0;
        while (good < length && grants[i][good] > ' ' && grants[i][good] <= '~' &&
               grants[i][good] != '#' && grants[i][good] != '=')
            good++;
        if (length == 0 || good < length)
            return check_refuse (check, TMQ_INVALID, "grants: a word like worker(default/render)");
    }
    return true;
}

/* A name in which one %h may stand. */
static bool check_name_to_fill (check_t *check, const char *member, const char *name)
{
    char filled[TMQ_NAME_LENGTH_MAX + 2];
    const char *place = strstr (name, "%h");
    if (place == NULL)
        return check_name (check, member, name);
    int length = snprintf (filled, sizeof filled, "%.*sh%s", (int) (place - name), name, place + 2);
    return (length > 0 && (size_t) length < sizeof filled && name_is_valid (filled)) ||
           check_refuse (check, TMQ_INVALID,
                         "%s: must match [A-Za-z0-9._-]{1,%d}, with at most one %%h", member,
                         TMQ_NAME_LENGTH_MAX);
}

bool check_enroll (check_t *check, const Taskmq__Request *request)
{
    return check_key (check, &request->enroll->public_key) &&
           check_name_or_empty (check, "host", request->enroll->host);
}

bool check_key_trust (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__KeyTrust *trust = request->key_trust;
    return check_name (check, "name", trust->name) && check_key (check, &trust->public_key) &&
           check_grants (check, trust->grants, trust->n_grants) &&
           check_range (check, "until", trust->until, 0, INT64_MAX);
}

bool check_key_revoke (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__KeyRevoke *revoke = request->key_revoke;
    if ((*revoke->name == '\0') == (revoke->public_key.len == 0))
        return check_refuse (check, TMQ_INVALID, "name or public_key: one must be given");
    return *revoke->name != '\0' ? check_name (check, "name", revoke->name)
                                 : check_key (check, &revoke->public_key);
}

bool check_invite (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Invite *invite = request->invite;
    if (!check_key (check, &invite->public_key) ||
        !check_name_to_fill (check, "name", invite->name) ||
        !check_grants (check, invite->grants, invite->n_grants) ||
        !check_range (check, "uses", invite->uses, 0, TMQ_INVITE_USES_MAX))
        return false;
    return invite->lasts_ms == 0 ||
           check_range (check, "lasts_ms", invite->lasts_ms, TMQ_INVITE_MS_MIN, TMQ_INVITE_MS_MAX);
}

bool check_invite_revoke (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "invitation", request->invite_revoke->invitation);
}

bool check_rotate (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "in_ms", request->server_key_rotate->in_ms, 0, TMQ_ROTATE_MS_MAX);
}

bool check_audit (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Audit *audit = request->audit;
    if (audit->file != 0 && audit->since != 0)
        return check_refuse (check, TMQ_INVALID, "since: only without a file");
    return check_name_or_empty (check, "kind", audit->kind) &&
           check_text (check, "actor", audit->actor, TMQ_OWNER_BYTES_MAX) &&
           check_range (check, "since", audit->since, 0, INT64_MAX) &&
           check_range (check, "offset", audit->offset, 0, INT64_MAX) &&
           check_range (check, "limit", audit->limit, 0, TMQ_AUDIT_LINES_MAX);
}

/* Schedules. */

/* Calendar and zone are judged by the broker, which has the zones. */
bool check_schedule_put (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Schedule *schedule = request->schedule_put->schedule;
    if (schedule == NULL || schedule->task == NULL)
        return check_refuse (check, TMQ_INVALID, "schedule.task: is missing");
    const Taskmq__TaskSpec *task = schedule->task;
    if (task->task_id.len > 0)
        return check_refuse (check, TMQ_INVALID, "schedule.task.task_id: each instant has its own");
    if (task->dedup_key[0] != '\0')
        return check_refuse (check, TMQ_INVALID,
                             "schedule.task.dedup_key: each instant is another task");
    if (task->not_before != 0 ||
        (task->extra != NULL && (task->extra->n_after > 0 || task->extra->start_by != 0 ||
                                 task->extra->parent.len > 0 || task->extra->payload_blob != NULL)))
        return check_refuse (
            check, TMQ_INVALID,
            "schedule.task: a time, another task or a blob is of one instant only");
    return check_name (check, "schedule.name", schedule->name) &&
           check_text (check, "schedule.calendar", schedule->calendar, TMQ_CALENDAR_BYTES_MAX) &&
           check_text (check, "schedule.zone", schedule->zone, TMQ_ZONE_BYTES_MAX) &&
           check_range (check, "schedule.overlap", schedule->overlap, 0, 2) &&
           check_range (check, "schedule.missed", schedule->missed, 0, 2) &&
           check_range (check, "schedule.until", schedule->until, 0, INT64_MAX) &&
           check_range (check, "schedule.task.payload_bytes", task->payload_bytes, 0,
                        TMQ_SCHEDULE_PAYLOAD_BYTES_MAX) &&
           check_spec (check, task);
}

static bool check_schedule_name (check_t *check, const Taskmq__ScheduleName *name)
{
    return check_name (check, "name", name->name) &&
           check_range (check, "coming", name->coming, 0, TMQ_SCHEDULE_COMING_MAX);
}

#define CHECK_SCHEDULE(OP)                                                                         \
    bool check_schedule_##OP (check_t *check, const Taskmq__Request *request)                      \
    {                                                                                              \
        return check_schedule_name (check, request->schedule_##OP);                                \
    }
CHECK_SCHEDULE (show)
CHECK_SCHEDULE (pause)
CHECK_SCHEDULE (resume)
CHECK_SCHEDULE (remove)
#undef CHECK_SCHEDULE

bool check_schedule_list (check_t *check, const Taskmq__Request *request)
{
    return check_name_or_empty (check, "after", request->schedule_list->after) &&
           check_range (check, "limit", request->schedule_list->limit, 0, TMQ_LIST_LIMIT_MAX);
}

bool check_backup (check_t *check, const Taskmq__Request *request)
{
    return check_16_bytes (check, "id", &request->backup->id) &&
           check_range (check, "offset", request->backup->offset, 0, INT64_MAX);
}

/* Queues. */

bool check_queue_list (check_t *check, const Taskmq__Request *request)
{
    return check_range (check, "limit", request->queue_list->limit, 0, TMQ_QUEUE_LIST_MAX);
}

bool check_queue_show (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "queue", request->queue_show->queue);
}

bool check_queue_pause (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "queue", request->queue_pause->queue) &&
           check_text (check, "why", request->queue_pause->why, TMQ_QUEUE_WHY_BYTES_MAX);
}

bool check_queue_resume (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "queue", request->queue_resume->queue);
}

static bool check_or_none (check_t *check, const char *member, uint64_t value, uint64_t min,
                           uint64_t max)
{
    return value == 0 || check_range (check, member, value, min, max);
}

/* A rate is two numbers; faster than the clock of the broker counts is none. */
static bool check_rate (check_t *check, const Taskmq__QueueSettings *in)
{
    if (!check_or_none (check, "rate", in->rate, 1, TMQ_QUEUE_RUNNING_MAX) ||
        !check_or_none (check, "rate_ms", in->rate_ms, 1, TMQ_QUEUE_RATE_MS_MAX) ||
        !check_or_none (check, "burst", in->burst, 1, TMQ_QUEUE_RUNNING_MAX))
        return false;
    if (in->rate == 0 && in->rate_ms != 0)
        return check_refuse (check, TMQ_INVALID,
                             "rate: 0 would let nothing begin; pause the queue instead");
    if (in->rate != 0 && in->rate_ms == 0)
        return check_refuse (check, TMQ_INVALID, "rate_ms: must be given with rate");
    return in->rate / 1000 <= in->rate_ms ||
           check_refuse (check, TMQ_INVALID, "rate: at most 1000 in a millisecond");
}

static bool check_weight_of (check_t *check, uint32_t weight_of)
{
    switch (weight_of) {
#define X(number, NAME, text) case number:
        TMQ_WEIGHT_OF_MAP (X)
#undef X
        return true;
    default: return check_refuse (check, TMQ_INVALID, "weight_of: must be 0, 2 or 3");
    }
}

static bool check_retention (check_t *check, const Taskmq__QueueSettings *in)
{
    return check_or_none (check, "max_age_ms", in->max_age_ms, 1, TMQ_TTL_MS_MAX) &&
           check_or_none (check, "max_count", in->max_count, 1, TMQ_RETAIN_COUNT_MAX) &&
           check_or_none (check, "max_ended_bytes", in->max_ended_bytes, 1, TMQ_QUEUE_BYTES_MAX) &&
           check_or_none (check, "keep_failed_ms", in->keep_failed_ms, 1, TMQ_TTL_MS_MAX) &&
           check_or_none (check, "min_keep", in->min_keep, 1, TMQ_RETAIN_COUNT_MAX);
}

bool check_cleanup (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__Cleanup *cleanup = request->cleanup;
    if (!cleanup->dry_run && (cleanup->cursor.len > 0 || cleanup->limit > 0))
        return check_refuse (check, TMQ_INVALID, "cursor, limit: of a dry run only");
    if (cleanup->dry_run && cleanup->pass > 0)
        return check_refuse (check, TMQ_INVALID, "pass: not of a dry run");
    return check_range (check, "limit", cleanup->limit, 0, TMQ_LIST_LIMIT_MAX);
}

static bool check_settings (check_t *check, const Taskmq__QueueSettings *in)
{
    if (in->ttl_never && in->ttl_ms != 0)
        return check_refuse (check, TMQ_INVALID, "ttl_ms: must be 0 beside ttl_never");
    return check_or_none (check, "max_running", in->max_running, 1, TMQ_QUEUE_RUNNING_MAX) &&
           check_or_none (check, "max_per_key", in->max_per_key, 1, TMQ_QUEUE_RUNNING_MAX) &&
           check_weight_of (check, in->weight_of) && check_rate (check, in) &&
           check_range (check, "max_runtime_ms", in->max_runtime_ms, 0, TMQ_TTL_MS_MAX) &&
           check_or_none (check, "max_tasks", in->max_tasks, 1, TMQ_QUEUE_TASKS_MAX) &&
           check_or_none (check, "max_bytes", in->max_bytes, 1, TMQ_QUEUE_BYTES_MAX) &&
           check_retention (check, in) &&
           check_or_none (check, "ttl_ms", in->ttl_ms, 1, TMQ_TTL_MS_MAX) &&
           check_or_none (check, "lease_ms", in->lease_ms, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX) &&
           check_or_none (check, "backoff_ms", in->backoff_ms, 1, TMQ_BACKOFF_MS_MAX) &&
           check_or_none (check, "max_attempts", in->max_attempts, 1, TMQ_MAX_ATTEMPTS_MAX);
}

static bool is_queue_field (uint32_t field)
{
    switch (field) {
#define X(number, NAME, member) case number:
        TMQ_QUEUE_FIELD_MAP (X)
#undef X
        return true;
    default: return false;
    }
}

bool check_queue_set (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__QueueSet *set = request->queue_set;
    if (!check_name (check, "queue", set->queue) ||
        !check_count (check, "fields", set->n_fields, 1, TMQ_QUEUE_FIELDS_MAX))
        return false;
    if (set->settings == NULL)
        return check_refuse (check, TMQ_INVALID, "settings: is missing");
    for (size_t i = 0; i < set->n_fields; i++) {
        if (!is_queue_field (set->fields[i]))
            return check_refuse (check, TMQ_INVALID, "fields: %u is nothing that can be set",
                                 set->fields[i]);
    }
    return check_settings (check, set->settings);
}

/* Sessions. */

static bool is_session_field (uint32_t field)
{
    switch (field) {
#define X(number, NAME, member) case number:
        TMQ_SESSION_FIELD_MAP (X)
#undef X
        return true;
    default: return false;
    }
}

bool check_session_set (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__SessionSet *set = request->session_set;
    if (!check_name (check, "name", set->name) ||
        !check_count (check, "fields", set->n_fields, 0, TMQ_QUEUE_FIELDS_MAX) ||
        !check_count (check, "drop_labels", set->n_drop_labels, 0, TMQ_LABELS_MAX))
        return false;
    for (size_t i = 0; i < set->n_fields; i++) {
        if (!is_session_field (set->fields[i]))
            return check_refuse (check, TMQ_INVALID, "fields: %u is nothing that can be set",
                                 set->fields[i]);
        if (set->fields[i] == TMQ_SESSION_FIELD_SALIENCE &&
            !check_range (check, "salience", set->salience, 1, TMQ_SALIENCE_MAX))
            return false;
    }
    return check_text (check, "goal", set->goal, TMQ_SESSION_GOAL_BYTES_MAX) &&
           check_json (check, "context", set->context, TMQ_SESSION_CONTEXT_BYTES_MAX, false) &&
           check_labels (check, set->labels, set->n_labels) &&
           check_names (check, "drop_labels", set->drop_labels, set->n_drop_labels);
}

bool check_session_show (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "name", request->session_show->name);
}

bool check_session_list (check_t *check, const Taskmq__Request *request)
{
    return check_name_or_empty (check, "after", request->session_list->after) &&
           check_range (check, "limit", request->session_list->limit, 0, TMQ_LIST_LIMIT_MAX);
}

bool check_session_status (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__SessionStatus *status = request->session_status;
    return check_name (check, "name", status->name) &&
           check_range (check, "status", status->status, TMQ_SESSION_STATUS_ACTIVE,
                        TMQ_SESSION_STATUS_COMPLETE) &&
           check_text (check, "why", status->why, TMQ_SESSION_WHY_BYTES_MAX);
}

bool check_session_remove (check_t *check, const Taskmq__Request *request)
{
    return check_name (check, "name", request->session_remove->name);
}

/* What a session, or the namespace, shares. */

static bool check_session (check_t *check, const char *session)
{
    return session[0] == '\0' || check_name (check, "session", session);
}

static bool check_entry_key (check_t *check, const char *key)
{
    if (key[0] == '\0')
        return check_refuse (check, TMQ_INVALID, "key: must not be empty");
    return check_text (check, "key", key, TMQ_ENTRY_NAME_BYTES_MAX);
}

bool check_value_put (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ValuePut *put = request->value_put;
    if (put->body_bytes > TMQ_VALUE_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE, "body_bytes: %u, at most %d are allowed",
                             put->body_bytes, TMQ_VALUE_BYTES_MAX);
    return check_session (check, put->session) && check_entry_key (check, put->key);
}

bool check_value_get (check_t *check, const Taskmq__Request *request)
{
    return check_session (check, request->value_get->session) &&
           check_entry_key (check, request->value_get->key);
}

bool check_value_list (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ValueList *list = request->value_list;
    return check_session (check, list->session) &&
           check_text (check, "prefix", list->prefix, TMQ_ENTRY_NAME_BYTES_MAX) &&
           check_text (check, "after", list->after, TMQ_ENTRY_NAME_BYTES_MAX) &&
           check_range (check, "limit", list->limit, 0, TMQ_LIST_LIMIT_MAX);
}

bool check_item_put (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ItemPut *put = request->item_put;
    if (put->body_bytes > TMQ_ITEM_BYTES_MAX)
        return check_refuse (check, TMQ_TOO_LARGE, "body_bytes: %u, at most %d are allowed",
                             put->body_bytes, TMQ_ITEM_BYTES_MAX);
    return check_session (check, put->session) && check_name (check, "box", put->box) &&
           check_range (check, "intensity", put->intensity, 0, TMQ_INTENSITY_ONE) &&
           check_text (check, "source", put->source, TMQ_ENTRY_NAME_BYTES_MAX) &&
           check_text (check, "type", put->type, TMQ_ENTRY_NAME_BYTES_MAX);
}

bool check_item_read (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ItemRead *read = request->item_read;
    return check_session (check, read->session) && check_name (check, "box", read->box) &&
           check_range (check, "limit", read->limit, 0, TMQ_ITEM_NUMBERS_MAX);
}

bool check_item_ack (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ItemAck *ack = request->item_ack;
    return check_session (check, ack->session) && check_name (check, "box", ack->box) &&
           check_count (check, "numbers", ack->n_numbers, 1, TMQ_ITEM_NUMBERS_MAX);
}

bool check_value_remove (check_t *check, const Taskmq__Request *request)
{
    const Taskmq__ValueRemove *remove = request->value_remove;
    if (remove->if_version_plus_1 == 1)
        return check_refuse (check, TMQ_INVALID, "if_version_plus_1: must not be 1");
    return check_session (check, remove->session) && check_entry_key (check, remove->key);
}
