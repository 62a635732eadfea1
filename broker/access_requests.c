/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Each change is one pass over the file under its lock: judged and made on what stands there then,
 * so two who come at once do not both win. What a client sent becomes names, keys and grants that
 * the parser has taken, never text of a line. */
#include "access_requests.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "access_line.h"
#include "bytes.h"
#include "core/access/access.h"
#include "core/base/memory.h"
#include "taskmq.pb-c.h"
#include "units.h"

enum { WHO_SIZE = KEY_TEXT_SIZE + 8, INVITATION_TRIES = 20 };

#define INVITATION_PREFIX "invite-"

/* One request under way. */
typedef struct work {
    access_requests_t *self;
    errand_t *errand;
    const Taskmq__Request *request;
    int64_t now_ms;
    const char *before; /* the file as it is */
    size_t before_bytes;
    char *text; /* … as it is to be; NULL: as it was */
    size_t bytes;
} work_t;

static int64_t system_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void answer (work_t *work, uint32_t member, const ProtobufCMessage *message)
{
    bytes_t packed = BYTES_INIT;
    bytes_append_packed (&packed, message);
    work->errand->code = TMQ_OK;
    work->errand->member = member;
    buf_drop (work->errand->fields);
    work->errand->fields = buf_new (packed.data, packed.length);
    bytes_free (&packed);
}

/* Texts of lines. */

static key_public_t key_of (const ProtobufCBinaryData *data)
{
    key_public_t key;
    memcpy (key.bytes, data->data, sizeof (key.bytes)); /* the validator knows its length */
    return key;
}

static const char *who_of (char out[WHO_SIZE], const char *kind, const key_public_t *key)
{
    char text[KEY_TEXT_SIZE];
    key_text_public (text, key);
    snprintf (out, WHO_SIZE, "%s:%s", kind, text);
    return out;
}

static const char *time_of (char out[TIME_TEXT_SIZE], int64_t ms)
{
    if (ms == 0 || !time_format (out, ms / 1000 * 1000))
        out[0] = '\0';
    return out;
}

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

/* The grants of a line, one by one. */
typedef struct words {
    char *copy;
    char *list[POLICY_GRANTS_MAX];
    size_t count;
} words_t;

static void split_grants (words_t *out, const principal_t *principal)
{
    char *rest = NULL;
    *out = (words_t){.copy = memory_text (principal->may)};
    for (char *word = strtok_r (out->copy, " ", &rest);
         word != NULL && out->count < POLICY_GRANTS_MAX; word = strtok_r (NULL, " ", &rest))
        if (strcmp (word, "-") != 0)
            out->list[out->count++] = word;
}

/* Changing the text. */

static void put (work_t *work, const char *name, char *line)
{
    char *before = work->text;
    work->text = policy_text_put (before, work->bytes, name, line, &work->bytes);
    free (before);
    free (line);
}

/* The line of a principal with these words changed; the file's text has not changed yet. */
static void change_line (work_t *work, const principal_t *principal, const access_line_t *wanted)
{
    char *old = access_line_find (work->before, work->before_bytes, principal->line);
    put (work, principal->name, access_line_make (old, wanted));
    free (old);
}

static void begin_text (work_t *work, const char *text, size_t bytes)
{
    work->text = memory_alloc (bytes + 1);
    memcpy (work->text, text, bytes);
    work->text[bytes] = '\0';
    work->bytes = bytes;
}

/* Invitations whose time is over go when the file is written anyway. */
static void drop_ended (work_t *work, const policy_t *policy)
{
    for (size_t i = 0; policy != NULL && i < policy_count (policy); i++) {
        const principal_t *line = policy_at (policy, i);
        if (line->is_invitation && line->until_ms != 0 && line->until_ms <= work->now_ms)
            put (work, line->name, NULL);
    }
}

/* The first line of a new file: whoever makes it does not lock itself out. */
static void make_file (work_t *work, const key_public_t *key)
{
    uint32_t uid = (uint32_t) geteuid ();
    char line[TMQ_NAME_LENGTH_MAX];
    static const char head[] = "# Who may use the broker: taskmq-access(5).\n"
                               "# name  who  may  options\n";
    if (strncmp (work->errand->identity, "uid:", 4) == 0)
        uid = (uint32_t) strtoul (work->errand->identity + 4, NULL, 10);
    begin_text (work, head, sizeof (head) - 1);
    snprintf (line, sizeof (line), "me uid:%" PRIu32 " operator", uid);
    put (work, "me", memory_text (line));
    work->self->has_made = true;
    work->self->made_for = *key;
    work->self->made_uid = uid;
}

/* The request about this key made the file: true, and text says what that means. */
static bool has_made_file (const work_t *work, const key_public_t *key, char text[ERRAND_TEXT_SIZE])
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

/* enroll. */

static void answer_enrolled (work_t *work, const char *name, const principal_t *rights,
                             int64_t until_ms)
{
    Taskmq__Enrolled enrolled = TASKMQ__ENROLLED__INIT;
    words_t grants;
    split_grants (&grants, rights);
    enrolled.name = (char *) (uintptr_t) name;
    enrolled.grants = grants.list;
    enrolled.n_grants = grants.count;
    enrolled.until = (uint64_t) until_ms;
    answer (work, TASKMQ__REPLY__BODY_ENROLLED, &enrolled.base);
    free (grants.copy);
}

/* The name of who joins: that of the invitation, with the host's in place of %h. */
static bool fill_name (work_t *work, const principal_t *invitation, char *out, size_t size)
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

static void refuse_used (work_t *work, const principal_t *invitation)
{
    const char *at = invitation->used == NULL ? NULL : strchr (invitation->used, '@');
    if (at == NULL)
        errand_refuse (work->errand, TMQ_DENIED, "this invitation cannot be used any more");
    else
        errand_refuse (work->errand, TMQ_DENIED, "this invitation was used by %.*s at %s",
                       (int) (at - invitation->used), invitation->used, at + 1);
}

static void use_invitation (work_t *work, const principal_t *invitation)
{
    char used[128];
    char uses[16];
    char at[TIME_TEXT_SIZE];
    const char *address = work->errand->address;
    snprintf (uses, sizeof (uses), "%" PRIu32, invitation->uses - 1);
    snprintf (used, sizeof (used), "%s@%s", address[0] != '\0' ? address : "unknown",
              time_of (at, work->now_ms));
    const access_line_t line = {.name = invitation->name, .uses = uses, .used = used};
    change_line (work, invitation, &line);
}

static void enroll_invited (work_t *work, const policy_t *policy, const principal_t *invitation)
{
    char name[TMQ_NAME_LENGTH_MAX + 1];
    char who[WHO_SIZE];
    const key_public_t key = key_of (&work->request->enroll->public_key);
    if (!fill_name (work, invitation, name, sizeof (name)))
        return;
    const principal_t *present = policy_by_key (policy, &key);
    if (present != NULL && !present->is_invitation && strcmp (present->name, name) == 0) {
        answer_enrolled (work, name, present, present->until_ms); /* a repeat */
        return;
    }
    if (present != NULL)
        errand_refuse (work->errand, TMQ_CONFLICT, "this key stands for %s already", present->name);
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
            .name = name, .who = who_of (who, "key", &key), .grants = invitation->may};
        put (work, name, access_line_make (NULL, &line));
        use_invitation (work, invitation);
        answer_enrolled (work, name, invitation, 0);
    }
}

/* False, and refused: clients change their own keys too often. */
static bool may_change_own (work_t *work)
{
    access_requests_t *self = work->self;
    const int64_t burst_ms = (int64_t) ACCESS_OWN_BURST * ACCESS_OWN_MS;
    if (self->own_due_ms < work->now_ms || self->own_due_ms > work->now_ms + 2 * burst_ms)
        self->own_due_ms = work->now_ms; /* all are allowed; or the clock went back */
    if (self->own_due_ms + ACCESS_OWN_MS > work->now_ms + burst_ms) {
        errand_refuse (work->errand, TMQ_LIMIT,
                       "clients change their keys too often: %d at once, then one in %d ms",
                       ACCESS_OWN_BURST, ACCESS_OWN_MS);
        work->errand->retry_after_ms = ACCESS_OWN_MS;
        return false;
    }
    self->own_due_ms += ACCESS_OWN_MS;
    return true;
}

/* A second key on a link of the first; then the first one ends. */
static void enroll_again (work_t *work, const policy_t *policy, const principal_t *principal)
{
    char who[WHO_SIZE];
    const Taskmq__Enroll *enroll = work->request->enroll;
    const key_public_t key = key_of (&enroll->public_key);
    const principal_t *present = policy_by_key (policy, &key);
    access_line_t line = {.name = principal->name};
    char *changed = NULL;
    who_of (who, "key", &key);
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
    if (!same && !may_change_own (work)) {
        free (changed);
        return;
    }
    if (!same) {
        line.who = changed;
        change_line (work, principal, &line);
    }
    free (changed);
    answer_enrolled (work, principal->name, principal, principal->until_ms);
}

static void do_enroll (work_t *work, const policy_t *policy)
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

/* key_trust, key_revoke. */

static void answer_trusted (work_t *work, const key_public_t *key)
{
    char text[ERRAND_TEXT_SIZE] = "";
    Taskmq__Trusted trusted = TASKMQ__TRUSTED__INIT;
    bool made = has_made_file (work, key, text);
    trusted.made = made;
    trusted.text = text;
    answer (work, TASKMQ__REPLY__BODY_TRUSTED, &trusted.base);
}

static void do_trust (work_t *work, const policy_t *policy)
{
    char who[WHO_SIZE];
    char until[TIME_TEXT_SIZE];
    const Taskmq__KeyTrust *trust = work->request->key_trust;
    const key_public_t key = key_of (&trust->public_key);
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
                       : access_line_who (named->text, who_of (who, "key", &key), NULL);
    const access_line_t line = {.name = trust->name,
                                .who = named == NULL ? who_of (who, "key", &key) : joined,
                                .grants = grants,
                                .until = time_of (until, (int64_t) trust->until)};
    if (named == NULL)
        put (work, trust->name, access_line_make (NULL, &line));
    else
        change_line (work, named, &line);
    answer_trusted (work, &key);
    free (joined);
    free (grants);
}

static void do_revoke (work_t *work, const policy_t *policy)
{
    char who[WHO_SIZE];
    const Taskmq__KeyRevoke *revoke = work->request->key_revoke;
    bool by_name = revoke->name[0] != '\0';
    const principal_t *found = NULL;
    key_public_t key;
    if (!by_name)
        key = key_of (&revoke->public_key);
    if (policy != NULL)
        found = by_name ? policy_by_name (policy, revoke->name) : policy_by_key (policy, &key);
    if (found == NULL) {
        errand_refuse (work->errand, TMQ_NOT_FOUND, "the access file knows no such %s",
                       by_name ? "name" : "key");
        return;
    }
    char *left =
        by_name ? memory_text ("") : access_line_who (found->text, NULL, who_of (who, "key", &key));
    Taskmq__Revoked revoked = TASKMQ__REVOKED__INIT;
    char *name = (char *) (uintptr_t) found->name;
    bool gone = left[0] == '\0' || found->is_invitation;
    revoked.names = &name;
    revoked.n_names = gone;
    revoked.keys = gone ? (uint32_t) found->keys_count : 1;
    const access_line_t line = {.name = found->name, .who = left};
    answer (work, TASKMQ__REPLY__BODY_REVOKED, &revoked.base);
    if (gone)
        put (work, found->name, NULL);
    else
        change_line (work, found, &line);
    free (left);
}

/* Invitations. */

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
        snprintf (out, size, INVITATION_PREFIX "%04" PRIx32, randombytes_random () & 0xffff);
        if (policy == NULL || policy_by_name (policy, out) == NULL)
            return;
    }
    snprintf (out, size, INVITATION_PREFIX "%08" PRIx32, randombytes_random ());
}

static const char *id_of (const char *name)
{
    size_t length = strlen (INVITATION_PREFIX);
    return strncmp (name, INVITATION_PREFIX, length) == 0 ? name + length : name;
}

static void answer_invited (work_t *work, const char *name, int64_t until_ms,
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
    invited.invitation = (char *) (uintptr_t) id_of (name);
    invited.server_key = (ProtobufCBinaryData){sizeof (key.bytes), key.bytes};
    invited.address = address;
    invited.until = (uint64_t) until_ms;
    invited.made = made;
    invited.text = text;
    answer (work, TASKMQ__REPLY__BODY_INVITED, &invited.base);
}

static bool may_invite (work_t *work, const policy_t *policy)
{
    const Taskmq__Invite *invite = work->request->invite;
    bool filled = strstr (invite->name, "%h") != NULL;
    pthread_mutex_lock (&work->self->lock);
    bool has_key = work->self->has_key;
    pthread_mutex_unlock (&work->self->lock);
    if (!has_key)
        errand_refuse (work->errand, TMQ_UNSUPPORTED,
                       "the broker listens on no address with keys, so nobody could join: start it "
                       "with --listen tcp://ADDRESS:PORT");
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

static void do_invite (work_t *work, const policy_t *policy)
{
    char name[TMQ_NAME_LENGTH_MAX + 1];
    char who[WHO_SIZE];
    char until[TIME_TEXT_SIZE];
    char uses[16];
    const Taskmq__Invite *invite = work->request->invite;
    const key_public_t key = key_of (&invite->public_key);
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
                                .who = who_of (who, "invite", &key),
                                .grants = grants,
                                .until = time_of (until, until_ms),
                                .uses = uses,
                                .as = invite->name};
    put (work, name, access_line_make (NULL, &line));
    answer_invited (work, name, until_ms, &key);
    free (grants);
}

static void do_invite_revoke (work_t *work, const policy_t *policy)
{
    char name[2 * TMQ_NAME_LENGTH_MAX];
    const char *id = work->request->invite_revoke->invitation;
    Taskmq__Revoked revoked = TASKMQ__REVOKED__INIT;
    snprintf (name, sizeof (name), INVITATION_PREFIX "%s", id);
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
    answer (work, TASKMQ__REPLY__BODY_REVOKED, &revoked.base);
    if (found != NULL)
        put (work, found->name, NULL);
}

/* The change that a request asks for. */

/* What enroll may is judged where it is done; all the others are for operators. */
static bool may_ask (const errand_t *errand, const policy_t *policy, int64_t now_ms)
{
    access_t access;
    const char *identity = errand->identity;
    const principal_t *user = NULL; /* who made the file came without a line, and has one now */
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
    static void (*const CHANGES[]) (work_t *, const policy_t *) = {
        [TASKMQ__REQUEST__OP_ENROLL] = do_enroll,
        [TASKMQ__REQUEST__OP_KEY_TRUST] = do_trust,
        [TASKMQ__REQUEST__OP_KEY_REVOKE] = do_revoke,
        [TASKMQ__REQUEST__OP_INVITE] = do_invite,
        [TASKMQ__REQUEST__OP_INVITE_REVOKE] = do_invite_revoke,
    };
    work_t *work = context;
    /* The file may have been edited since the policy that counts was read from it. */
    if (!may_ask (work->errand, policy, work->now_ms)) {
        errand_refuse (work->errand, TMQ_DENIED, "%s is no operator any more",
                       work->errand->identity);
        return NULL;
    }
    work->before = text;
    work->before_bytes = bytes;
    if (policy != NULL)
        begin_text (work, text, bytes);
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

/* What is only read. */

static char **key_texts_other (const principal_t *line, size_t *count)
{
    char **out = memory_zero (POLICY_WHO_MAX, sizeof (*out));
    char *copy = memory_text (line->text);
    char *rest = NULL;
    strtok_r (copy, " \t", &rest);
    char *who = strtok_r (NULL, " \t", &rest);
    *count = 0;
    for (char *word = who == NULL ? NULL : strtok_r (who, ",", &rest);
         word != NULL && *count < POLICY_WHO_MAX; word = strtok_r (NULL, ",", &rest))
        if (strncmp (word, "key:", 4) != 0)
            out[(*count)++] = memory_text (word);
    free (copy);
    return out;
}

/* Numbers of the fields of KeyPage and InvitePage in taskmq.proto. */
enum { PAGE_ITEMS = 1, PAGE_NEXT = 2 };

static void pack_principal (bytes_t *page, const principal_t *line)
{
    Taskmq__Principal out = TASKMQ__PRINCIPAL__INIT;
    ProtobufCBinaryData keys[POLICY_WHO_MAX];
    words_t grants;
    split_grants (&grants, line);
    for (size_t i = 0; i < line->keys_count && i < POLICY_WHO_MAX; i++)
        keys[i] = (ProtobufCBinaryData){sizeof (line->keys[i].bytes), line->keys[i].bytes};
    out.name = (char *) (uintptr_t) line->name;
    out.keys = keys;
    out.n_keys = line->keys_count;
    out.others = key_texts_other (line, &out.n_others);
    out.grants = grants.list;
    out.n_grants = grants.count;
    out.until = (uint64_t) line->until_ms;
    out.line = line->line;
    bytes_append_message (page, PAGE_ITEMS, &out.base);
    for (size_t i = 0; i < out.n_others; i++)
        free (out.others[i]);
    free (out.others);
    free (grants.copy);
}

static void pack_invitation (bytes_t *page, const principal_t *line)
{
    Taskmq__Invitation out = TASKMQ__INVITATION__INIT;
    words_t grants;
    char *used = memory_text (line->used);
    char *at = strchr (used, '@');
    int64_t used_at = 0;
    char why[UNITS_ERROR_SIZE];
    if (at != NULL) {
        *at++ = '\0';
        time_parse (&used_at, at, why); /* the file's parser has taken it */
    }
    split_grants (&grants, line);
    out.invitation = (char *) (uintptr_t) id_of (line->name);
    out.name = (char *) (uintptr_t) line->as;
    out.grants = grants.list;
    out.n_grants = grants.count;
    out.uses = line->uses;
    out.until = (uint64_t) line->until_ms;
    out.used_by = used;
    out.used_at = (uint64_t) used_at;
    bytes_append_message (page, PAGE_ITEMS, &out.base);
    free (used);
    free (grants.copy);
}

/* Principals, or invitations that have not ended, from number `offset` on. */
static void answer_page (work_t *work, bool invitations, uint32_t offset)
{
    bytes_t page = BYTES_INIT;
    const policy_t *policy = access_file_policy (work->self->file);
    uint32_t number = 0;
    uint32_t next = 0;
    for (size_t i = 0; policy != NULL && i < policy_count (policy) && next == 0; i++) {
        const principal_t *line = policy_at (policy, i);
        bool ended = line->until_ms != 0 && line->until_ms <= work->now_ms;
        if (line->is_invitation != invitations || (invitations && ended) || number++ < offset)
            continue;
        if (page.length >= ACCESS_PAGE_BYTES)
            next = number - 1;
        else if (invitations)
            pack_invitation (&page, line);
        else
            pack_principal (&page, line);
    }
    bytes_append_uint (&page, PAGE_NEXT, next);
    work->errand->member =
        invitations ? TASKMQ__REPLY__BODY_INVITE_PAGE : TASKMQ__REPLY__BODY_KEY_PAGE;
    work->errand->fields = buf_new (page.data, page.length);
    bytes_free (&page);
}

static void answer_text (work_t *work)
{
    char error[ACCESS_FILE_ERROR_SIZE];
    size_t bytes;
    size_t offset = work->request->access_read->offset;
    Taskmq__AccessText out = TASKMQ__ACCESS_TEXT__INIT;
    char *text = access_file_text (work->self->file, &bytes, error);
    if (text == NULL) {
        bool none = error[0] == '\0';
        errand_refuse (work->errand, none ? TMQ_NOT_FOUND : TMQ_INVALID, "%.500s",
                       none ? "there is no access file" : error);
        return;
    }
    if (offset > bytes)
        offset = bytes;
    size_t here = bytes - offset < ACCESS_PAGE_BYTES ? bytes - offset : ACCESS_PAGE_BYTES;
    out.text = (ProtobufCBinaryData){here, (uint8_t *) text + offset};
    out.next = offset + here < bytes ? (uint32_t) (offset + here) : 0;
    out.path = (char *) (uintptr_t) access_file_path (work->self->file);
    answer (work, TASKMQ__REPLY__BODY_ACCESS_TEXT, &out.base);
    free (text);
}

static bool is_same_policy (const policy_t *a, const policy_t *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    bool same = policy_count (a) == policy_count (b);
    for (size_t i = 0; same && i < policy_count (a); i++)
        same = strcmp (policy_at (a, i)->text, policy_at (b, i)->text) == 0;
    return same;
}

static void reload (work_t *work)
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
    answer (work, TASKMQ__REPLY__BODY_RELOADED, &out.base);
}

static void do_work (work_t *work)
{
    switch (work->request->op_case) {
    case TASKMQ__REQUEST__OP_KEY_LIST:
        answer_page (work, false, work->request->key_list->offset);
        break;
    case TASKMQ__REQUEST__OP_INVITE_LIST:
        answer_page (work, true, work->request->invite_list->offset);
        break;
    case TASKMQ__REQUEST__OP_ACCESS_READ: answer_text (work); break;
    case TASKMQ__REQUEST__OP_RELOAD: reload (work); break;
    default: access_file_change (work->self->file, change, work, work->errand);
    }
}

static void run (void *context, errand_t *errand)
{
    access_requests_t *self = context;
    work_t work = {.self = self, .errand = errand, .now_ms = self->now_ms ()};
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
    *self = (access_requests_t){.file = file, .now_ms = system_ms};
    pthread_mutex_init (&self->lock, NULL);
}

void access_requests_free (access_requests_t *self)
{
    pthread_mutex_destroy (&self->lock);
}
