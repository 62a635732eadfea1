/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What somebody asks for a key of its own: with an invitation, or with the key that it has. */
#include "access_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void answer_enrolled (access_work_t *work, const char *name, const principal_t *rights,
                             int64_t until_ms)
{
    Taskmq__Enrolled enrolled = TASKMQ__ENROLLED__INIT;
    access_words_t grants;
    access_work_split (&grants, rights);
    enrolled.name = (char *) (uintptr_t) name;
    enrolled.grants = grants.list;
    enrolled.n_grants = grants.count;
    enrolled.until = (uint64_t) until_ms;
    errand_reply (work->errand, TASKMQ__REPLY__BODY_ENROLLED, &enrolled.base);
    free (grants.copy);
}

/* The name of who joins: that of the invitation, with the host's in place of %h. */
static bool fill_name (access_work_t *work, const principal_t *invitation, char *out, size_t size)
{
    int length = principal_join_name (invitation, work->request->enroll->host, out, size);
    if (length == 0) {
        errand_refuse (work->errand, TMQ_INVALID, "host: the invitation's name %s needs one",
                       invitation->as);
        return false;
    }
    if ((size_t) length < size)
        return true;
    errand_refuse (work->errand, TMQ_INVALID, "host: %s with it is longer than %d characters",
                   invitation->as, TMQ_NAME_LENGTH_MAX);
    return false;
}

static void refuse_used (access_work_t *work, const principal_t *invitation)
{
    const char *at = invitation->used == NULL ? NULL : strchr (invitation->used, '@');
    if (at == NULL)
        errand_refuse (work->errand, TMQ_DENIED, "this invitation cannot be used any more");
    else
        errand_refuse (work->errand, TMQ_DENIED, "this invitation was used by %.*s at %s",
                       (int) (at - invitation->used), invitation->used, at + 1);
}

static void use_invitation (access_work_t *work, const principal_t *invitation)
{
    char used[128];
    char uses[16];
    char at[TIME_TEXT_SIZE];
    const char *address = work->errand->address;
    snprintf (uses, sizeof (uses), "%" PRIu32, invitation->uses - 1);
    snprintf (used, sizeof (used), "%s@%s", address[0] != '\0' ? address : "unknown",
              access_work_time (at, work->now_ms));
    const access_line_t line = {.name = invitation->name, .uses = uses, .used = used};
    access_work_change_line (work, invitation, &line);
}

static void enroll_invited (access_work_t *work, const policy_t *policy,
                            const principal_t *invitation)
{
    char name[TMQ_NAME_LENGTH_MAX + 1];
    char who[ACCESS_WHO_SIZE];
    const key_public_t key = access_work_key (&work->request->enroll->public_key);
    if (!fill_name (work, invitation, name, sizeof (name)))
        return;
    const principal_t *present = policy_by_key (policy, &key);
    if (present != NULL && !present->is_invitation && strcmp (present->name, name) == 0) {
        answer_enrolled (work, name, present, present->until_ms); /* a repeat */
        return;
    }
    if (present != NULL)
        errand_refuse (work->errand, TMQ_CONFLICT, "this key stands for somebody else already");
    else if (invitation->until_ms != 0 && invitation->until_ms <= work->now_ms)
        errand_refuse (work->errand, TMQ_DENIED, "this invitation has ended");
    else if (invitation->uses == 0)
        refuse_used (work, invitation);
    else if (policy_by_name (policy, name) != NULL)
        errand_refuse (work->errand, TMQ_CONFLICT,
                       "the name %s is taken: its key is to be revoked before another joins as it",
                       name);
    else if (work->errand->owns)
        errand_refuse (work->errand, TMQ_CONFLICT,
                       "%s owns tasks of an earlier time, which who joins would see: another name "
                       "is needed, or an operator trusts the key",
                       name);
    else {
        const access_line_t line = {
            .name = name, .who = access_work_who (who, "key", &key), .grants = invitation->may};
        access_work_put (work, name, access_line_make (NULL, &line));
        use_invitation (work, invitation);
        answer_enrolled (work, name, invitation, 0);
    }
}

/* The place of a principal, or one whose owner is allowed everything again; NULL: all are taken. */
static access_own_t *own_place (access_requests_t *self, const char *name, int64_t mono_ms)
{
    access_own_t *free_one = NULL;
    for (size_t i = 0; i < ACCESS_OWN_MAX; i++) {
        access_own_t *own = &self->own[i];
        bool full = bucket_is_full (&own->bucket, mono_ms);
        if (strcmp (own->name, name) == 0 && !full)
            return own;
        if (full)
            free_one = own;
    }
    if (free_one == NULL)
        return NULL;
    *free_one = (access_own_t){0};
    snprintf (free_one->name, sizeof (free_one->name), "%s", name);
    return free_one;
}

/* False, and refused: it changes its own keys too often. */
static bool may_change_own (access_work_t *work, const principal_t *principal)
{
    int64_t mono_ms = work->self->mono_ms ();
    access_own_t *own = own_place (work->self, principal->name, mono_ms);
    int64_t wait_ms = 1000 / ACCESS_OWN_PER_SECOND;
    if (own != NULL)
        wait_ms = bucket_take (&own->bucket, ACCESS_OWN_PER_SECOND, ACCESS_OWN_BURST, mono_ms);
    if (wait_ms == 0)
        return true;
    if (own == NULL)
        errand_refuse (work->errand, TMQ_OVERLOADED,
                       "more than %d clients change their keys at the same time", ACCESS_OWN_MAX);
    else
        errand_refuse (work->errand, TMQ_LIMIT,
                       "%s changes its keys too often: %d times at once, then %d in a second",
                       principal->name, ACCESS_OWN_BURST, ACCESS_OWN_PER_SECOND);
    work->errand->retry_after_ms = (uint32_t) wait_ms;
    return false;
}

/* A second key on a link of the first; then the first one ends. */
static void enroll_again (access_work_t *work, const policy_t *policy, const principal_t *principal)
{
    char who[ACCESS_WHO_SIZE];
    const Taskmq__Enroll *enroll = work->request->enroll;
    const key_public_t key = access_work_key (&enroll->public_key);
    const principal_t *present = policy_by_key (policy, &key);
    access_line_t line = {.name = principal->name};
    char *changed = NULL;
    access_work_who (who, "key", &key);
    if (present != NULL && present != principal)
        errand_refuse (work->errand, TMQ_CONFLICT, "this key stands for somebody else");
    else if (enroll->alone && present == NULL)
        errand_refuse (work->errand, TMQ_CONFLICT, "this key is none of %s", principal->name);
    else if (enroll->alone)
        changed = access_line_who_alone (principal->text, who);
    else if (present == NULL && principal->keys_count >= ACCESS_KEYS_MAX)
        errand_refuse (work->errand, TMQ_LIMIT, "%s has %zu keys, as many as there may be",
                       principal->name, principal->keys_count);
    else if (present == NULL)
        changed = access_line_who (principal->text, who, NULL);
    if (work->errand->code != TMQ_OK)
        return;
    bool same = changed == NULL || (enroll->alone && principal->keys_count == 1);
    if (!same && !may_change_own (work, principal)) {
        free (changed);
        return;
    }
    if (!same) {
        line.who = changed;
        access_work_change_line (work, principal, &line);
    }
    free (changed);
    answer_enrolled (work, principal->name, principal, principal->until_ms);
}

void access_do_enroll (access_work_t *work, const policy_t *policy)
{
    const char *identity = work->errand->identity;
    bool invited = strncmp (identity, "invite:", 7) == 0;
    const principal_t *principal =
        policy == NULL ? NULL : policy_by_name (policy, invited ? identity + 7 : identity);
    if (policy == NULL)
        errand_refuse (work->errand, TMQ_DENIED,
                       "the broker has no access file: nobody needs a "
                       "key");
    else if (principal == NULL || principal->is_invitation != invited)
        errand_refuse (work->errand, TMQ_DENIED, "%s has neither an invitation nor a key",
                       identity);
    else if (invited)
        enroll_invited (work, policy, principal);
    else if (principal->keys_count == 0)
        errand_refuse (work->errand, TMQ_DENIED, "%s comes without a key: an operator trusts one",
                       identity);
    else
        enroll_again (work, policy, principal);
}
