/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A report and everything in it lie in one arena. Failure: a piece that found no memory makes the
 * whole report fail. */
#include "codec/access.h"

#include <string.h>

#include "keys.h"

enum { REPORT_BYTES_MAX = 1024 * 1024 }; /* an envelope has 64 KiB */

typedef struct maker {
    core_access_t *self;
    bool failed;
} maker_t;

char *core_access_keep (core_access_t *self, const char *text, size_t length)
{
    char *copy = arena_alloc (self->arena, length + 1);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy (copy, text, length);
    copy[length] = '\0';
    return copy;
}

static const char *keep (maker_t *maker, const char *text)
{
    const char *copy = core_access_keep (maker->self, text, strlen (text));
    maker->failed = maker->failed || copy == NULL;
    return copy;
}

static const char *keep_key (maker_t *maker, const ProtobufCBinaryData *data)
{
    char text[KEY_TEXT_SIZE];
    key_public_t key;
    if (data->len != sizeof key.bytes)
        return NULL;
    memcpy (key.bytes, data->data, sizeof key.bytes);
    key_text_public (text, &key);
    return keep (maker, text);
}

static const char *const *keep_texts (maker_t *maker, char *const *texts, size_t count)
{
    const char **out = arena_zalloc (maker->self->arena, count, sizeof *out);
    maker->failed = maker->failed || out == NULL;
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = keep (maker, texts[i]);
    return out;
}

static const char *const *keep_keys (maker_t *maker, const ProtobufCBinaryData *keys, size_t count)
{
    const char **out = arena_zalloc (maker->self->arena, count, sizeof *out);
    maker->failed = maker->failed || out == NULL;
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = keep_key (maker, &keys[i]);
    return out;
}

/* Room for so many lines in the report. */
static tmq_principal_t *principals (maker_t *maker, size_t count)
{
    tmq_principal_t *out = arena_zalloc (maker->self->arena, count, sizeof *out);
    maker->failed = maker->failed || out == NULL;
    maker->self->report.principals = out;
    maker->self->report.principals_count = out != NULL ? count : 0;
    return out;
}

static void take_enrolled (maker_t *maker, const Taskmq__Enrolled *in)
{
    tmq_principal_t *out = principals (maker, 1);
    if (out == NULL)
        return;
    out->name = keep (maker, in->name);
    out->grants = keep_texts (maker, in->grants, in->n_grants);
    out->grants_count = in->n_grants;
    out->until = in->until;
}

static void take_keys (maker_t *maker, const Taskmq__KeyPage *in)
{
    tmq_principal_t *out = principals (maker, in->n_principals);
    maker->self->report.next = in->next;
    for (size_t i = 0; out != NULL && i < in->n_principals; i++) {
        const Taskmq__Principal *line = in->principals[i];
        out[i].name = keep (maker, line->name);
        out[i].keys = keep_keys (maker, line->keys, line->n_keys);
        out[i].keys_count = line->n_keys;
        out[i].others = keep_texts (maker, line->others, line->n_others);
        out[i].others_count = line->n_others;
        out[i].grants = keep_texts (maker, line->grants, line->n_grants);
        out[i].grants_count = line->n_grants;
        out[i].until = line->until;
        out[i].line = line->line;
    }
}

static void take_invitations (maker_t *maker, const Taskmq__InvitePage *in)
{
    tmq_principal_t *out = principals (maker, in->n_invitations);
    maker->self->report.next = in->next;
    for (size_t i = 0; out != NULL && i < in->n_invitations; i++) {
        const Taskmq__Invitation *line = in->invitations[i];
        out[i].name = keep (maker, line->name);
        out[i].invitation = keep (maker, line->invitation);
        out[i].grants = keep_texts (maker, line->grants, line->n_grants);
        out[i].grants_count = line->n_grants;
        out[i].uses = line->uses;
        out[i].until = line->until;
        out[i].used_by = keep (maker, line->used_by);
        out[i].used_at = line->used_at;
    }
}

static void take_invited (maker_t *maker, const Taskmq__Invited *in)
{
    tmq_access_t *report = &maker->self->report;
    tmq_principal_t *out = principals (maker, 1);
    if (out == NULL)
        return;
    out->invitation = keep (maker, in->invitation);
    out->until = in->until;
    report->server_key = keep_key (maker, &in->server_key);
    report->path = keep (maker, in->address); /* tmq_invite puts it into the line */
    report->made = in->made;
    report->text = keep (maker, in->text);
    report->text_bytes = strlen (in->text);
}

static void take_revoked (maker_t *maker, const Taskmq__Revoked *in)
{
    tmq_principal_t *out = principals (maker, in->n_names);
    maker->self->report.count = in->keys;
    for (size_t i = 0; out != NULL && i < in->n_names; i++)
        out[i].name = keep (maker, in->names[i]);
}

static void take_text (maker_t *maker, const Taskmq__AccessText *in)
{
    tmq_access_t *report = &maker->self->report;
    report->text = core_access_keep (maker->self, (const char *) in->text.data, in->text.len);
    maker->failed = maker->failed || report->text == NULL;
    report->text_bytes = in->text.len;
    report->path = keep (maker, in->path);
    report->next = in->next;
}

static void take (maker_t *maker, const Taskmq__Reply *reply)
{
    tmq_access_t *report = &maker->self->report;
    switch (reply->body_case) {
    case TASKMQ__REPLY__BODY_ENROLLED: take_enrolled (maker, reply->enrolled); break;
    case TASKMQ__REPLY__BODY_KEY_PAGE: take_keys (maker, reply->key_page); break;
    case TASKMQ__REPLY__BODY_TRUSTED:
        report->made = reply->trusted->made;
        report->text = keep (maker, reply->trusted->text);
        report->text_bytes = strlen (reply->trusted->text);
        break;
    case TASKMQ__REPLY__BODY_REVOKED: take_revoked (maker, reply->revoked); break;
    case TASKMQ__REPLY__BODY_INVITED: take_invited (maker, reply->invited); break;
    case TASKMQ__REPLY__BODY_INVITE_PAGE: take_invitations (maker, reply->invite_page); break;
    case TASKMQ__REPLY__BODY_SERVER_KEY:
        report->server_key = keep_key (maker, &reply->server_key->public_key);
        report->next_server_key = keep_key (maker, &reply->server_key->next);
        report->at = reply->server_key->at;
        break;
    case TASKMQ__REPLY__BODY_RELOADED:
        report->changed = reply->reloaded->changed;
        report->count = reply->reloaded->principals;
        break;
    case TASKMQ__REPLY__BODY_ACCESS_TEXT: take_text (maker, reply->access_text); break;
    default: break;
    }
}

bool core_reply_is_about_access (const Taskmq__Reply *reply)
{
    return reply->body_case >= TASKMQ__REPLY__BODY_ENROLLED &&
           reply->body_case <= TASKMQ__REPLY__BODY_ACCESS_TEXT;
}

tmq_access_t *core_access_record (const Taskmq__Reply *reply)
{
    arena_t *arena = arena_new (REPORT_BYTES_MAX);
    core_access_t *self = arena == NULL ? NULL : arena_zalloc (arena, 1, sizeof *self);
    if (self == NULL) {
        arena_free (arena);
        return NULL;
    }
    self->arena = arena;
    maker_t maker = {self, false};
    take (&maker, reply);
    if (!maker.failed)
        return &self->report;
    arena_free (arena);
    return NULL;
}
