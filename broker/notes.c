/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ids.h"
#include "timestamp.h"

enum {
    ROOM_FOR_COUNT = 32,
    HEAD_MS = 3600 * 1000, /* as often as the log says it */
    HEAD_ROW_BYTES = 2 * 8 + CHAIN_HASH_BYTES
};
/* Of brokers in turn on the same data: that of one which never came back goes some day. */
#define HEAD_KEPT_MS (INT64_C (400) * 24 * 3600 * 1000)

static const uint8_t HEAD_KEY[] = {0};

void notes_init (notes_t *self, audit_t *audit, const char *path, const boot_t *boot,
                 const key_public_t *key)
{
    static const uint8_t none[BOOT_INSTANCE_BYTES] = {0};
    *self = (notes_t){.audit = audit,
                      .path = path,
                      .ends = POLICY_ENDS_INIT,
                      .generation = boot->generation,
                      .in_turn = memcmp (boot->instance, none, sizeof (none)) != 0};
    alike_init (&self->alike, boot, key);
    row_key_bytes (&self->key, HEAD_KEY, sizeof (HEAD_KEY));
    if (self->in_turn)
        row_key_bytes (&self->key, boot->instance, sizeof (boot->instance));
}

void notes_free (notes_t *self)
{
    policy_drop (self->policy);
    self->policy = NULL;
}

/* The access file. */

typedef struct text {
    char *out;
    size_t size;
    size_t length;
    size_t left; /* lines that did not fit */
} text_t;

static void add (text_t *text, const char *form, ...) __attribute__ ((format (printf, 2, 3)));
static void add (text_t *text, const char *form, ...)
{
    char line[AUDIT_TEXT_MAX];
    va_list values;
    va_start (values, form);
    int length = vsnprintf (line, sizeof (line), form, values);
    va_end (values);
    bool fits = length >= 0 && (size_t) length < sizeof (line) &&
                text->length + (size_t) length + ROOM_FOR_COUNT < text->size;
    if (!fits) {
        text->left++;
        return;
    }
    text->length += (size_t) snprintf (text->out + text->length, text->size - text->length, "%s%s",
                                       text->length > 0 ? "; " : "", line);
}

static const principal_t *find (const policy_t *policy, const char *name)
{
    return policy != NULL ? policy_by_name (policy, name) : NULL;
}

bool notes_difference (char *out, size_t size, const policy_t *before, const policy_t *after)
{
    text_t text = {.out = out, .size = size};
    out[0] = '\0';
    for (size_t i = 0; after != NULL && i < policy_count (after); i++) {
        const principal_t *line = policy_at (after, i);
        const principal_t *old = find (before, line->name);
        if (old == NULL)
            add (&text, "added %s", line->text);
        else if (strcmp (old->text, line->text) != 0)
            add (&text, "changed %s to %s", old->text, line->text);
    }
    for (size_t i = 0; before != NULL && i < policy_count (before); i++) {
        const principal_t *line = policy_at (before, i);
        if (find (after, line->name) == NULL)
            add (&text, "removed %s", line->text);
    }
    const char *limits = after != NULL ? policy_limits (after) : "";
    const char *old_limits = before != NULL ? policy_limits (before) : "";
    if (old_limits[0] == '\0' && limits[0] != '\0')
        add (&text, "added %s", limits);
    else if (old_limits[0] != '\0' && limits[0] == '\0')
        add (&text, "removed %s", old_limits);
    else if (strcmp (limits, old_limits) != 0)
        add (&text, "changed %s to %s", old_limits, limits);
    if (text.left > 0)
        snprintf (out + text.length, size - text.length, "%s%zu more lines",
                  text.length > 0 ? "; " : "", text.left);
    return text.length > 0 || text.left > 0;
}

/* Until when a broker before this one has told whose time had ended: until its last line. */
static int64_t looked_last (const notes_t *self, int64_t wall_ms)
{
    audit_stats_t stats;
    audit_stats (self->audit, &stats);
    return stats.last_ms > 0 && stats.last_ms < wall_ms ? stats.last_ms : wall_ms;
}

void notes_policy (notes_t *self, policy_t *policy, int64_t wall_ms)
{
    char detail[AUDIT_TEXT_MAX];
    bool differs = true;
    alike_policy (&self->alike, policy);
    if (policy == NULL)
        snprintf (detail, sizeof (detail),
                  "there is none: whoever reaches the broker is its operator");
    else if (!self->begun)
        snprintf (detail, sizeof (detail), "%zu principals at the start", policy_count (policy));
    else
        differs = notes_difference (detail, sizeof (detail), self->policy, policy) ||
                  self->policy == NULL;
    if (differs)
        audit_note (
            self->audit,
            &(audit_line_t){.kind = AUDIT_ACCESS_CHANGED, .object = self->path, .detail = detail});
    policy_t *before = self->policy;
    self->policy = policy_keep (policy);
    policy_drop (before);
    policy_ends_judged (&self->ends, policy, self->begun ? wall_ms : looked_last (self, wall_ms));
    self->begun = true;
}

void notes_ends (notes_t *self, int64_t wall_ms)
{
    if (!policy_ends_are_due (&self->ends, wall_ms))
        return;
    for (size_t i = 0; i < policy_count (self->policy); i++) {
        const principal_t *line = policy_at (self->policy, i);
        if (line->until_ms <= self->ends.judged_ms || line->until_ms > wall_ms)
            continue;
        audit_note (self->audit,
                    &(audit_line_t){.kind = AUDIT_KEY_ENDED,
                                    .object = line->name,
                                    .detail = line->is_invitation ? "an invitation" : NULL});
    }
    policy_ends_judged (&self->ends, self->policy, wall_ms);
}

/* Requests. */

void notes_deed (notes_t *self, const deed_t *deed, const char *address)
{
    static const audit_kind_t KINDS[] = {
        [DEED_DENIED] = AUDIT_DENIED,         [DEED_QUOTA] = AUDIT_QUOTA_HIT,
        [DEED_READ] = AUDIT_TASK_READ,        [DEED_CANCEL] = AUDIT_TASK_CANCELLED,
        [DEED_RETRY] = AUDIT_TASK_RETRIED,    [DEED_SET] = AUDIT_TASK_CHANGED,
        [DEED_ANSWER] = AUDIT_TASK_ANSWERED,  [DEED_PURGE] = AUDIT_TASK_PURGED,
        [DEED_ADOPT] = AUDIT_TASK_ADOPTED,    [DEED_QUEUE] = AUDIT_QUEUE_CHANGED,
        [DEED_WORKER] = AUDIT_WORKER_DRAINED, [DEED_IMPORT] = AUDIT_TASK_IMPORTED,
        [DEED_MORE] = AUDIT_TASKS_MORE};
    char task[ID_TEXT_SIZE];
    char detail[DEED_TEXT_SIZE + 64] = "";
    audit_line_t line = {.kind = KINDS[deed->kind],
                         .actor = deed->identity,
                         .from = address,
                         .object = deed->request,
                         .ns = deed->ns,
                         .detail = detail};
    if (deed->kind == DEED_DENIED || deed->kind == DEED_QUOTA)
        line.outcome = "refused";
    if (!id_is_zero (&deed->task)) {
        id_format (&deed->task, task);
        line.object = task;
        snprintf (detail, sizeof (detail), "%s %s %s", deed->request,
                  deed->kind == DEED_IMPORT ? "into the queue" : "of a task of", deed->text);
    } else if (deed->kind == DEED_QUEUE || deed->kind == DEED_WORKER) {
        line.object = deed->text;
        snprintf (detail, sizeof (detail), "%s", deed->request);
    } else {
        snprintf (detail, sizeof (detail), "%s", deed->text);
        if (deed->kind == DEED_MORE)
            line.outcome = "counted";
    }
    audit_note (self->audit, &line);
}

/* The head in the store. */

static uint64_t number_at (const uint8_t *bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    return number;
}

static void restore_head (notes_t *self, const row_t *row)
{
    const uint8_t *bytes = buf_bytes (row->body);
    bool own = buf_length (row->key) == self->key.length &&
               memcmp (buf_bytes (row->key), self->key.bytes, self->key.length) == 0;
    if (!own || buf_length (row->body) != HEAD_ROW_BYTES || number_at (bytes) != self->generation)
        return;
    self->kept.n = number_at (bytes + 8);
    memcpy (self->kept.hash, bytes + 16, CHAIN_HASH_BYTES);
}

bool notes_restore (notes_t *self, const row_t *row)
{
    if (row->kind == ROW_KIND_AUDIT_HEAD)
        restore_head (self, row);
    else if (row->kind == ROW_KIND_ALIKE)
        alike_restore (&self->alike, row);
    else
        return false;
    return true;
}

void notes_expect (notes_t *self)
{
    audit_expect (self->audit, &self->kept);
    alike_compare (&self->alike);
}

bool notes_head (notes_t *self, int64_t mono_ms, bool at_once, row_t *out)
{
    audit_stats_t stats;
    row_key_t body = ROW_KEY_INIT;
    if (self->audit == NULL)
        return false;
    audit_stats (self->audit, &stats);
    if (!at_once && mono_ms < self->keep_at && stats.turns == self->turns)
        return false;
    self->keep_at = mono_ms + HEAD_MS;
    self->turns = stats.turns;
    if (stats.head.n == self->kept.n &&
        memcmp (stats.head.hash, self->kept.hash, CHAIN_HASH_BYTES) == 0)
        return false;
    self->kept = stats.head;
    row_key_number (&body, self->generation);
    row_key_number (&body, self->kept.n);
    row_key_bytes (&body, self->kept.hash, CHAIN_HASH_BYTES);
    *out =
        row_make (ROW_KIND_AUDIT_HEAD, self->key.bytes, self->key.length, body.bytes, body.length);
    if (self->in_turn)
        out->expires_at = clock_ms (CLOCK_REALTIME) + HEAD_KEPT_MS;
    return true;
}
