/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Each change is one pass over the file under its lock: judged and made on what stands there then,
 * so two who come at once do not both win. What a client sent becomes names, keys and grants that
 * the parser has taken, never text of a line. */
#include "access_requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/access/access.h"
#include "timestamp.h"

static int64_t system_ms (void)
{
    return clock_ms (CLOCK_REALTIME);
}

static int64_t steady_ms (void)
{
    return clock_ms (CLOCK_MONOTONIC);
}

/* Invitations whose time is over go when the file is written anyway. */
static void drop_ended (access_work_t *work, const policy_t *policy)
{
    for (size_t i = 0; policy != NULL && i < policy_count (policy); i++) {
        const principal_t *line = policy_at (policy, i);
        if (line->is_invitation && line->until_ms != 0 && line->until_ms <= work->now_ms)
            access_work_put (work, line->name, NULL);
    }
}

/* Who came in by a key still has it: of a name with two, one may be revoked. */
static bool has_its_key (const errand_t *errand, const policy_t *policy)
{
    if (!errand->has_key || policy == NULL)
        return true;
    const char *identity = errand->identity;
    bool invited = strncmp (identity, "invite:", 7) == 0;
    const principal_t *principal = policy_by_key (policy, &errand->key);
    return principal != NULL && strcmp (principal->name, invited ? identity + 7 : identity) == 0;
}

/* What else enroll may is judged where it is done; all the others are for operators. */
static bool may_ask (const errand_t *errand, const policy_t *policy, int64_t now_ms)
{
    access_t access;
    const char *identity = errand->identity;
    const principal_t *user = NULL; /* who made the file came without a line, and has one now */
    if (!has_its_key (errand, policy))
        return false;
    if (errand->op == TASKMQ__REQUEST__OP_ENROLL)
        return true;
    if (policy != NULL && strncmp (identity, "uid:", 4) == 0) {
        uint32_t uid = (uint32_t) strtoul (identity + 4, NULL, 10);
        user = policy_is_own_uid (policy, uid) ? NULL : policy_by_uid (policy, uid);
    }
    bool may = access_link (&access, (policy_t *) (uintptr_t) policy,
                            user == NULL ? identity : user->name, "default", now_ms) &&
               access_may (&access, RIGHT_OPERATE);
    access_clear (&access);
    return may;
}

bool access_requests_may (void *context, const errand_t *errand)
{
    const access_requests_t *self = context;
    return may_ask (errand, access_file_policy (self->file), self->now_ms ());
}

static char *change (void *context, const policy_t *policy, const char *text, size_t bytes,
                     size_t *out_bytes)
{
    static void (*const CHANGES[]) (access_work_t *, const policy_t *) = {
        [TASKMQ__REQUEST__OP_ENROLL] = access_do_enroll,
        [TASKMQ__REQUEST__OP_KEY_TRUST] = access_do_trust,
        [TASKMQ__REQUEST__OP_KEY_REVOKE] = access_do_revoke,
        [TASKMQ__REQUEST__OP_INVITE] = access_do_invite,
        [TASKMQ__REQUEST__OP_INVITE_REVOKE] = access_do_invite_revoke,
    };
    access_work_t *work = context;
    /* The file may have been edited since the policy that counts was read from it. */
    if (!may_ask (work->errand, policy, work->now_ms)) {
        errand_refuse (work->errand, TMQ_DENIED,
                       has_its_key (work->errand, policy) ? "%s is no operator any more"
                                                          : "the key of %s was revoked",
                       work->errand->identity);
        return NULL;
    }
    work->before = text;
    work->before_bytes = bytes;
    if (policy != NULL)
        access_work_begin (work, text, bytes);
    CHANGES[work->request->op_case](work, policy);
    bool changed =
        work->errand->code == TMQ_OK && work->text != NULL &&
        (policy == NULL || work->bytes != bytes || memcmp (work->text, text, bytes) != 0);
    if (!changed) {
        free (work->text);
        return NULL;
    }
    drop_ended (work, policy);
    *out_bytes = work->bytes;
    return work->text;
}

static bool is_same_policy (const policy_t *a, const policy_t *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    bool same =
        policy_count (a) == policy_count (b) && strcmp (policy_limits (a), policy_limits (b)) == 0;
    for (size_t i = 0; same && i < policy_count (a); i++)
        same = strcmp (policy_at (a, i)->text, policy_at (b, i)->text) == 0;
    return same;
}

static void reload (access_work_t *work)
{
    char error[ACCESS_FILE_ERROR_SIZE];
    Taskmq__Reloaded out = TASKMQ__RELOADED__INIT;
    policy_t *before = policy_keep ((policy_t *) (uintptr_t) access_file_policy (work->self->file));
    bool good = access_file_load (work->self->file, error);
    const policy_t *after = access_file_policy (work->self->file);
    out.changed = !is_same_policy (before, after);
    policy_drop (before);
    if (!good) {
        errand_refuse (work->errand, TMQ_INVALID, "%.500s", error);
        return;
    }
    out.principals = after == NULL ? 0 : (uint32_t) policy_count (after);
    errand_reply (work->errand, TASKMQ__REPLY__BODY_RELOADED, &out.base);
}

static void do_work (access_work_t *work)
{
    switch (work->request->op_case) {
    case TASKMQ__REQUEST__OP_KEY_LIST:
        access_do_list (work, false, work->request->key_list->offset);
        break;
    case TASKMQ__REQUEST__OP_INVITE_LIST:
        access_do_list (work, true, work->request->invite_list->offset);
        break;
    case TASKMQ__REQUEST__OP_ACCESS_READ: access_do_read (work); break;
    case TASKMQ__REQUEST__OP_RELOAD: reload (work); break;
    default: access_file_change (work->self->file, change, work, work->errand);
    }
}

static void run (void *context, errand_t *errand)
{
    access_requests_t *self = context;
    access_work_t work = {.self = self, .errand = errand, .now_ms = self->now_ms ()};
    if (errand->request == NULL) { /* of the server: the file looks changed */
        char error[ACCESS_FILE_ERROR_SIZE];
        access_file_load (self->file, error);
        return;
    }
    Taskmq__Request *request =
        taskmq__request__unpack (NULL, buf_length (errand->request), buf_bytes (errand->request));
    if (request == NULL) {
        errand_refuse (errand, TMQ_INTERNAL, "the request cannot be read again");
        return;
    }
    work.request = request;
    do_work (&work);
    taskmq__request__free_unpacked (request, NULL);
}

void access_requests_runners (access_requests_t *self, errand_runner_t out[ACCESS_RUNNERS])
{
    static const uint32_t OPS[ACCESS_RUNNERS] = {
        TASKMQ__REQUEST__OP_ENROLL,        TASKMQ__REQUEST__OP_KEY_LIST,
        TASKMQ__REQUEST__OP_KEY_TRUST,     TASKMQ__REQUEST__OP_KEY_REVOKE,
        TASKMQ__REQUEST__OP_INVITE,        TASKMQ__REQUEST__OP_INVITE_LIST,
        TASKMQ__REQUEST__OP_INVITE_REVOKE, TASKMQ__REQUEST__OP_RELOAD,
        TASKMQ__REQUEST__OP_ACCESS_READ};
    for (size_t i = 0; i < ACCESS_RUNNERS; i++)
        out[i] = (errand_runner_t){OPS[i], run, self};
}

void access_requests_listen (access_requests_t *self, const key_public_t *key, const char *address)
{
    pthread_mutex_lock (&self->lock);
    self->has_key = true;
    self->key = *key;
    snprintf (self->address, sizeof (self->address), "%s", address);
    pthread_mutex_unlock (&self->lock);
}

void access_requests_change_key (access_requests_t *self, const key_public_t *key)
{
    pthread_mutex_lock (&self->lock);
    self->key = *key;
    pthread_mutex_unlock (&self->lock);
}

void access_requests_init (access_requests_t *self, access_file_t *file)
{
    *self = (access_requests_t){.file = file, .now_ms = system_ms, .mono_ms = steady_ms};
    pthread_mutex_init (&self->lock, NULL);
}

void access_requests_free (access_requests_t *self)
{
    pthread_mutex_destroy (&self->lock);
}
