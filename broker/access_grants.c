/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What operators change: keys that are trusted, and invitations. */
#include "access_work.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "core/base/memory.h"

enum { INVITATION_TRIES = 20 };

/* To be freed. */
static char *join_grants (char *const *grants, size_t count)
{
    bytes_t out = BYTES_INIT;
    for (size_t i = 0; i < count; i++) {
        bytes_append_text (&out, i > 0 ? " " : "");
        bytes_append_text (&out, grants[i]);
    }
    char *text = memory_text (bytes_text (&out));
    bytes_free (&out);
    return text;
}

/* The first line of a new file: whoever makes it does not lock itself out. */
static void make_file (access_work_t *work, const key_public_t *key)
{
    uint32_t uid = (uint32_t) geteuid ();
    char line[TMQ_NAME_LENGTH_MAX];
    static const char head[] = "# Who may use the broker: taskmq-access(5).\n"
                               "# name  who  may  options\n";
    if (strncmp (work->errand->identity, "uid:", 4) == 0)
        uid = (uint32_t) strtoul (work->errand->identity + 4, NULL, 10);
    access_work_begin (work, head, sizeof (head) - 1);
    snprintf (line, sizeof (line), "me uid:%" PRIu32 " operator", uid);
    access_work_put (work, "me", memory_text (line));
    work->self->has_made = true;
    work->self->made_for = *key;
    work->self->made_uid = uid;
}

/* The request about this key made the file: true, and text says what that means. */
static bool has_made_file (const access_work_t *work, const key_public_t *key,
                           char text[ERRAND_TEXT_SIZE])
{
    const access_requests_t *self = work->self;
    if (!self->has_made || !key_public_equal (&self->made_for, key))
        return false;
    snprintf (text, ERRAND_TEXT_SIZE,
              "made %s: from now on only those in it come in, and on this machine uid %" PRIu32
              ", the broker's own user and root; other local users and connections to loopback "
              "without a key lose access",
              access_file_path (self->file), self->made_uid);
    return true;
}

static void answer_trusted (access_work_t *work, const key_public_t *key)
{
    char text[ERRAND_TEXT_SIZE] = "";
    Taskmq__Trusted trusted = TASKMQ__TRUSTED__INIT;
    bool made = has_made_file (work, key, text);
    trusted.made = made;
    trusted.text = text;
    errand_reply (work->errand, TASKMQ__REPLY__BODY_TRUSTED, &trusted.base);
}

void access_do_trust (access_work_t *work, const policy_t *policy)
{
    char who[ACCESS_WHO_SIZE];
    char until[TIME_TEXT_SIZE];
    const Taskmq__KeyTrust *trust = work->request->key_trust;
    const key_public_t key = access_work_key (&trust->public_key);
    const principal_t *present = policy == NULL ? NULL : policy_by_key (policy, &key);
    const principal_t *named = policy == NULL ? NULL : policy_by_name (policy, trust->name);
    if (present != NULL && present != named)
        errand_refuse (work->errand, TMQ_CONFLICT, "this key stands for %s already", present->name);
    else if (named != NULL && named->is_invitation)
        errand_refuse (work->errand, TMQ_CONFLICT, "%s is an invitation", trust->name);
    else if (named == NULL && work->errand->owns && !trust->inherit)
        errand_refuse (work->errand, TMQ_CONFLICT,
                       "%s owns tasks of an earlier time: who gets that name gets them too; if "
                       "that is meant, say --inherit",
                       trust->name);
    else if (present == NULL && named != NULL && named->keys_count >= ACCESS_KEYS_MAX)
        errand_refuse (work->errand, TMQ_LIMIT, "%s has %zu keys, as many as there may be",
                       trust->name, named->keys_count);
    if (work->errand->code != TMQ_OK)
        return;
    if (policy == NULL)
        make_file (work, &key);
    char *grants = join_grants (trust->grants, trust->n_grants);
    char *joined = named == NULL || present != NULL
                       ? NULL
                       : access_line_who (named->text, access_work_who (who, "key", &key), NULL);
    const access_line_t line = {.name = trust->name,
                                .who = named == NULL ? access_work_who (who, "key", &key) : joined,
                                .grants = grants,
                                .until = access_work_time (until, (int64_t) trust->until)};
    if (named == NULL)
        access_work_put (work, trust->name, access_line_make (NULL, &line));
    else
        access_work_change_line (work, named, &line);
    answer_trusted (work, &key);
    free (joined);
    free (grants);
}

void access_do_revoke (access_work_t *work, const policy_t *policy)
{
    char who[ACCESS_WHO_SIZE];
    const Taskmq__KeyRevoke *revoke = work->request->key_revoke;
    bool by_name = revoke->name[0] != '\0';
    const principal_t *found = NULL;
    key_public_t key;
    if (!by_name)
        key = access_work_key (&revoke->public_key);
    if (policy != NULL)
        found = by_name ? policy_by_name (policy, revoke->name) : policy_by_key (policy, &key);
    if (found == NULL) {
        errand_refuse (work->errand, TMQ_NOT_FOUND, "the access file knows no such %s",
                       by_name ? "name" : "key");
        return;
    }
    char *left = by_name ? memory_text ("")
                         : access_line_who (found->text, NULL, access_work_who (who, "key", &key));
    Taskmq__Revoked revoked = TASKMQ__REVOKED__INIT;
    char *name = (char *) (uintptr_t) found->name;
    bool gone = left[0] == '\0' || found->is_invitation;
    revoked.names = &name;
    revoked.n_names = gone;
    revoked.keys = gone ? (uint32_t) found->keys_count : 1;
    const access_line_t line = {.name = found->name, .who = left};
    errand_reply (work->errand, TASKMQ__REPLY__BODY_REVOKED, &revoked.base);
    if (gone)
        access_work_put (work, found->name, NULL);
    else
        access_work_change_line (work, found, &line);
    free (left);
}

static size_t count_invitations (const policy_t *policy, int64_t now_ms)
{
    size_t count = 0;
    for (size_t i = 0; policy != NULL && i < policy_count (policy); i++) {
        const principal_t *line = policy_at (policy, i);
        count += line->is_invitation && (line->until_ms == 0 || line->until_ms > now_ms);
    }
    return count;
}

/* Short, so that it can be typed. */
static void new_invitation (char *out, size_t size, const policy_t *policy)
{
    for (int i = 0; i < INVITATION_TRIES; i++) {
        snprintf (out, size, ACCESS_INVITATION_PREFIX "%04" PRIx32, randombytes_random () & 0xffff);
        if (policy == NULL || policy_by_name (policy, out) == NULL)
            return;
    }
    snprintf (out, size, ACCESS_INVITATION_PREFIX "%08" PRIx32, randombytes_random ());
}

static void answer_invited (access_work_t *work, const char *name, int64_t until_ms,
                            const key_public_t *public_key)
{
    char text[ERRAND_TEXT_SIZE] = "";
    char address[JOIN_PLACE_BYTES_MAX + 1];
    access_requests_t *self = work->self;
    Taskmq__Invited invited = TASKMQ__INVITED__INIT;
    pthread_mutex_lock (&self->lock);
    key_public_t key = self->key;
    memcpy (address, self->address, sizeof (address));
    pthread_mutex_unlock (&self->lock);
    bool made = has_made_file (work, public_key, text);
    invited.invitation = (char *) (uintptr_t) access_work_invitation (name);
    invited.server_key = (ProtobufCBinaryData){sizeof (key.bytes), key.bytes};
    invited.address = address;
    invited.until = (uint64_t) until_ms;
    invited.made = made;
    invited.text = text;
    errand_reply (work->errand, TASKMQ__REPLY__BODY_INVITED, &invited.base);
}

static bool may_invite (access_work_t *work, const policy_t *policy)
{
    const Taskmq__Invite *invite = work->request->invite;
    bool filled = strstr (invite->name, "%h") != NULL;
    pthread_mutex_lock (&work->self->lock);
    bool has_key = work->self->has_key;
    pthread_mutex_unlock (&work->self->lock);
    if (!has_key)
        errand_refuse (work->errand, TMQ_UNSUPPORTED,
                       "the broker listens on no address with keys, so nobody could join: start it "
                       "with --listen 'tcp://*:5560' (loopback has no keys)");
    else if (!filled && invite->uses > 1)
        errand_refuse (work->errand, TMQ_INVALID,
                       "name: several who join need %%h in it, as %s-%%h", invite->name);
    else if (!filled && policy != NULL && policy_by_name (policy, invite->name) != NULL)
        errand_refuse (work->errand, TMQ_CONFLICT, "the name %s is taken", invite->name);
    else if (!filled && work->errand->owns)
        errand_refuse (work->errand, TMQ_CONFLICT,
                       "%s owns tasks of an earlier time, which who joins would see: choose "
                       "another name",
                       invite->name);
    else if (count_invitations (policy, work->now_ms) >= ACCESS_INVITATIONS_MAX)
        errand_refuse (work->errand, TMQ_LIMIT, "%d invitations, as many as there may be",
                       ACCESS_INVITATIONS_MAX);
    return work->errand->code == TMQ_OK;
}

void access_do_invite (access_work_t *work, const policy_t *policy)
{
    char name[TMQ_NAME_LENGTH_MAX + 1];
    char who[ACCESS_WHO_SIZE];
    char until[TIME_TEXT_SIZE];
    char uses[16];
    const Taskmq__Invite *invite = work->request->invite;
    const key_public_t key = access_work_key (&invite->public_key);
    const principal_t *present = policy == NULL ? NULL : policy_by_key (policy, &key);
    if (present != NULL && present->is_invitation) {
        answer_invited (work, present->name, present->until_ms, &key); /* a repeat */
        return;
    }
    if (present != NULL)
        errand_refuse (work->errand, TMQ_CONFLICT, "this key stands for %s", present->name);
    else if (!may_invite (work, policy))
        return;
    if (work->errand->code != TMQ_OK)
        return;
    uint64_t lasts_ms = invite->lasts_ms == 0 ? TMQ_INVITE_MS_DEFAULT : invite->lasts_ms;
    int64_t until_ms = (work->now_ms + (int64_t) lasts_ms + 999) / 1000 * 1000;
    if (policy == NULL)
        make_file (work, &key);
    char *grants = join_grants (invite->grants, invite->n_grants);
    new_invitation (name, sizeof (name), policy);
    snprintf (uses, sizeof (uses), "%" PRIu32, invite->uses == 0 ? 1 : invite->uses);
    const access_line_t line = {.name = name,
                                .who = access_work_who (who, "invite", &key),
                                .grants = grants,
                                .until = access_work_time (until, until_ms),
                                .uses = uses,
                                .as = invite->name};
    access_work_put (work, name, access_line_make (NULL, &line));
    answer_invited (work, name, until_ms, &key);
    free (grants);
}

void access_do_invite_revoke (access_work_t *work, const policy_t *policy)
{
    char name[2 * TMQ_NAME_LENGTH_MAX];
    const char *id = work->request->invite_revoke->invitation;
    Taskmq__Revoked revoked = TASKMQ__REVOKED__INIT;
    snprintf (name, sizeof (name), ACCESS_INVITATION_PREFIX "%s", id);
    const principal_t *found = policy == NULL ? NULL : policy_by_name (policy, name);
    if (found == NULL && policy != NULL)
        found = policy_by_name (policy, id);
    if (found != NULL && !found->is_invitation) {
        errand_refuse (work->errand, TMQ_CONFLICT, "%s is no invitation", found->name);
        return;
    }
    char *gone = found == NULL ? NULL : (char *) (uintptr_t) found->name;
    revoked.names = &gone;
    revoked.n_names = found != NULL;
    revoked.keys = found != NULL;
    errand_reply (work->errand, TASKMQ__REPLY__BODY_REVOKED, &revoked.base);
    work->errand->idle = found == NULL;
    if (found != NULL)
        access_work_put (work, found->name, NULL);
}
