/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Keys, invitations and the access file. */
#include <sodium.h>
#include <string.h>

#include "base/errors.h"
#include "client/client.h"
#include "codec/access.h"
#include "keys.h"

static int call (tmq_access_t **out, tmq_client_t *client, tmq_op_t op,
                 const ProtobufCMessage *message, uint32_t timeout_ms, tmq_error_t *error)
{
    return client_ask (out, CLIENT_MEMBER (completion.access), client, op, message, timeout_ms,
                       error);
}

static int parse_key (key_public_t *key, const char *text, tmq_error_t *error)
{
    char reason[KEY_ERROR_SIZE];
    if (text == NULL)
        return core_error (error, TMQ_INVALID, "the public key is NULL");
    if (!key_parse_public (key, text, reason))
        return core_error (error, TMQ_INVALID, "%s", reason);
    return TMQ_OK;
}

static ProtobufCBinaryData data_of (key_public_t *key)
{
    return (ProtobufCBinaryData){sizeof key->bytes, key->bytes};
}

int tmq_enroll (tmq_access_t **out, tmq_client_t *client, const char *public_key, const char *host,
                bool alone, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__Enroll message = TASKMQ__ENROLL__INIT;
    key_public_t key;
    int code = parse_key (&key, public_key, error);
    if (code != TMQ_OK)
        return code;
    message.public_key = data_of (&key);
    message.host = client_text (host);
    message.alone = alone;
    return call (out, client, TMQ_OP_ENROLL, &message.base, timeout_ms, error);
}

int tmq_key_list (tmq_access_t **out, tmq_client_t *client, uint32_t offset, uint32_t timeout_ms,
                  tmq_error_t *error)
{
    Taskmq__KeyList message = TASKMQ__KEY_LIST__INIT;
    message.offset = offset;
    return call (out, client, TMQ_OP_KEY_LIST, &message.base, timeout_ms, error);
}

static int check_trust (const tmq_trust_t *in, tmq_error_t *error)
{
    if (in == NULL || in->name == NULL || (in->grants == NULL && in->grants_count > 0))
        return core_error (error, TMQ_INVALID, "a name and grants are needed");
    return TMQ_OK;
}

int tmq_key_trust (tmq_access_t **out, tmq_client_t *client, const tmq_trust_t *in,
                   uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__KeyTrust message = TASKMQ__KEY_TRUST__INIT;
    key_public_t key;
    int code = check_trust (in, error);
    if (code == TMQ_OK)
        code = parse_key (&key, in->public_key, error);
    if (code != TMQ_OK)
        return code;
    message.name = client_text (in->name);
    message.public_key = data_of (&key);
    message.grants = (char **) (uintptr_t) in->grants;
    message.n_grants = in->grants_count;
    message.until = in->until;
    message.inherit = in->inherit;
    return call (out, client, TMQ_OP_KEY_TRUST, &message.base, timeout_ms, error);
}

int tmq_key_revoke (tmq_access_t **out, tmq_client_t *client, const char *name,
                    const char *public_key, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__KeyRevoke message = TASKMQ__KEY_REVOKE__INIT;
    key_public_t key;
    message.name = client_text (name);
    if (name == NULL) {
        int code = parse_key (&key, public_key, error);
        if (code != TMQ_OK)
            return code;
        message.public_key = data_of (&key);
    }
    return call (out, client, TMQ_OP_KEY_REVOKE, &message.base, timeout_ms, error);
}

/* The line for who joins. seed: the secret that was made here. */
static int make_line (tmq_access_t *report, const uint8_t seed[JOIN_SEED_BYTES],
                      const char *address, tmq_error_t *error)
{
    char text[JOIN_TEXT_SIZE], reason[KEY_ERROR_SIZE];
    join_t join;
    key_public_t server;
    core_access_t *self = (core_access_t *) (void *) report;
    const char *place = address != NULL ? address : report->path;
    if (report->server_key == NULL || !key_parse_public (&server, report->server_key, reason))
        return core_error (error, TMQ_PROTOCOL, NULL);
    if (place == NULL || place[0] == '\0')
        return core_error (error, TMQ_INVALID, "the broker cannot say its address: name one");
    if (!join_make (&join, &server, place, reason))
        return core_error (error, TMQ_INVALID, "%s", reason);
    memcpy (join.seed, seed, sizeof join.seed);
    join_text (text, &join);
    self->join = core_access_keep (self, text, strlen (text));
    report->join = self->join;
    report->path = NULL;
    sodium_memzero (&join, sizeof join);
    sodium_memzero (text, sizeof text);
    return report->join != NULL ? TMQ_OK : core_error (error, TMQ_NO_MEMORY, NULL);
}

int tmq_invite (tmq_access_t **out, tmq_client_t *client, const tmq_trust_t *in,
                uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__Invite message = TASKMQ__INVITE__INIT;
    join_t join = {0};
    key_public_t key;
    key_secret_t secret;
    tmq_access_t *report = NULL;
    int code = check_trust (in, error);
    if (code != TMQ_OK)
        return code;
    randombytes_buf (join.seed, sizeof join.seed);
    join_keys (&key, &secret, &join);
    sodium_memzero (&secret, sizeof secret);
    message.public_key = data_of (&key);
    message.name = client_text (in->name);
    message.grants = (char **) (uintptr_t) in->grants;
    message.n_grants = in->grants_count;
    message.uses = in->uses;
    message.lasts_ms = in->lasts_ms;
    code = call (&report, client, TMQ_OP_INVITE, &message.base, timeout_ms, error);
    if (code == TMQ_OK)
        code = make_line (report, join.seed, in->address, error);
    sodium_memzero (&join, sizeof join);
    if (code == TMQ_OK)
        *out = report;
    else
        tmq_access_free (report);
    return code;
}

int tmq_invite_list (tmq_access_t **out, tmq_client_t *client, uint32_t offset, uint32_t timeout_ms,
                     tmq_error_t *error)
{
    Taskmq__InviteList message = TASKMQ__INVITE_LIST__INIT;
    message.offset = offset;
    return call (out, client, TMQ_OP_INVITE_LIST, &message.base, timeout_ms, error);
}

int tmq_invite_revoke (tmq_access_t **out, tmq_client_t *client, const char *invitation,
                       uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__InviteRevoke message = TASKMQ__INVITE_REVOKE__INIT;
    message.invitation = client_text (invitation);
    return call (out, client, TMQ_OP_INVITE_REVOKE, &message.base, timeout_ms, error);
}

int tmq_server_key_rotate (tmq_access_t **out, tmq_client_t *client, uint64_t in_ms,
                           uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__ServerKeyRotate message = TASKMQ__SERVER_KEY_ROTATE__INIT;
    message.in_ms = in_ms;
    return call (out, client, TMQ_OP_SERVER_KEY_ROTATE, &message.base, timeout_ms, error);
}

int tmq_reload (tmq_access_t **out, tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__Reload message = TASKMQ__RELOAD__INIT;
    return call (out, client, TMQ_OP_RELOAD, &message.base, timeout_ms, error);
}

int tmq_access_read (tmq_access_t **out, tmq_client_t *client, uint32_t offset, uint32_t timeout_ms,
                     tmq_error_t *error)
{
    Taskmq__AccessRead message = TASKMQ__ACCESS_READ__INIT;
    message.offset = offset;
    return call (out, client, TMQ_OP_ACCESS_READ, &message.base, timeout_ms, error);
}
