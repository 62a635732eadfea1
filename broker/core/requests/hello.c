/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* hello and welcome, heartbeats, goodbye. */
#include <stdio.h>
#include <string.h>

#include "core/peers/link.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/parting.h"
#include "core/requests/quota.h"
#include "core/requests/unavailable.h"
#include "core/tasks/space.h"

/* What the access file says; nothing without one. The broker's own user is not listed. */
static void welcome_rights (Taskmq__Welcome *out, const access_t *access)
{
    const principal_t *principal = access->principal;
    if (principal != NULL) {
        out->principal = (char *) principal->name;
        out->roles = (char *) principal->may;
        out->key_until = (uint64_t) principal->until_ms;
    } else if (access->policy != NULL) {
        out->roles = (char *) role_name (ROLE_OPERATOR);
    }
}

static void send_welcome (call_t *call)
{
    requests_t *self = call->requests;
    link_t *link = call->link;
    Taskmq__Welcome welcome = TASKMQ__WELCOME__INIT;
    welcome.version = TMQ_PROTOCOL_VERSION;
    welcome.token = (ProtobufCBinaryData){sizeof (link->token), link->token};
    welcome.namespace_ = link->space->name;
    welcome.identity = (char *) name_text (link->identity);
    welcome.broker = (char *) self->base->config.broker;
    welcome.generation = self->history->generation;
    welcome.epoch = self->history->epoch;
    welcome.seq = link->space->log.durable_seq;
    welcome.heartbeat_ms = self->base->config.heartbeat_ms;
    welcome.envelope_bytes_max = TMQ_ENVELOPE_BYTES_MAX;
    welcome.frame_bytes_max = TMQ_FRAME_BYTES_MAX;
    welcome.submit_items_max = TMQ_SUBMIT_ITEMS_MAX;
    welcome.wait_ids_max = TMQ_WAIT_IDS_MAX;
    welcome.blob_bytes_max = self->base->config.blob_bytes_max;
    welcome.now = (uint64_t) self->base->clocks.wall_ms;
    welcome_rights (&welcome, &link->access);
    const key_public_t *key = self->base->config.server_key;
    if (key != NULL)
        welcome.server_key = (ProtobufCBinaryData){KEY_BYTES, (uint8_t *) key->bytes};
    welcome.redact = self->base->config.redact == NULL ? "" : (char *) self->base->config.redact;
    if (self->base->has_next_key)
        welcome.next_server_key =
            (ProtobufCBinaryData){KEY_BYTES, (uint8_t *) self->base->next_key.bytes};
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_WELCOME, &welcome.base);
    reply_close (self, link, mark, 0, NULL); /* says nothing that is not durable */
}

/* One link more of the principal, unless this one takes the place of another. */
static quota_refusal_t quota_hello (requests_t *self, const call_t *call, const access_t *access)
{
    name_t *identity = names_keep (&self->base->names, call->identity);
    link_t newcomer = {
        .peer = call->link->peer, .access = *access, .account = account_of (self->tasks, identity)};
    quota_refusal_t refusal = {0};
    if (newcomer.account != NULL && !call->link->established) {
        quota_refresh (self, &newcomer);
        refusal = quota_ask (self, &newcomer, QUOTA_LINKS);
    }
    account_release (self->tasks, newcomer.account);
    names_drop (&self->base->names, identity);
    return refusal;
}

void on_hello (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Hello *hello = call->request->hello;
    if (hello->version_min > TMQ_PROTOCOL_VERSION || hello->version_max < TMQ_PROTOCOL_VERSION) {
        reply_code_at_once (call, TMQ_UNSUPPORTED, "this broker speaks protocol version 1", 0);
        return;
    }
    if (self->base->stopping) {
        reply_code_at_once (call, TMQ_STOPPING, NULL, 0);
        return;
    }
    if (self->base->shut) {
        refuse_hello (call);
        return;
    }
    if (!call->link->established && self->peers->established >= self->base->config.links_max) {
        char text[LIMIT_TEXT_SIZE];
        limit_text (text, "links of the broker", self->base->config.links_max);
        reply_code_at_once (call, TMQ_LIMIT, text, LIMIT_RETRY_MS);
        return;
    }
    const char *name = hello->namespace_[0] == '\0' ? "default" : hello->namespace_;
    access_t access;
    if (!access_link (&access, self->policy, call->identity, name, self->base->clocks.wall_ms)) {
        char text[TMQ_NAME_LENGTH_MAX + 64];
        snprintf (text, sizeof (text), "no access to namespace %s", name);
        access_clear (&access);
        deny (call);
        reply_code_at_once (call, TMQ_DENIED, text, 0);
        return;
    }
    if (quota_answered (call, quota_hello (self, call, &access))) {
        access_clear (&access);
        return;
    }
    if (call->link->established) {
        peer_t peer = call->link->peer;
        parting_close (self, call->link);
        call->link = link_make (self->peers, peer);
    }
    link_t *link = call->link;
    link->established = true;
    link->access = access;
    link->knows_unavailable = (hello->features & TMQ_FEATURE_UNAVAILABLE) != 0;
    self->peers->established++;
    link->space = space_make (self->tasks, name);
    link->space->links++;
    link->identity = names_keep (&self->base->names, call->identity);
    quota_enter (self, link);
    link->heard_ms = clocks_awake_ms (&self->base->clocks);
    link->serial = ++self->peers->hellos;
    secrets_take (&self->base->secrets, link->token, sizeof (link->token));
    wheel_arm (&self->base->fine, &link->alarm,
               self->base->clocks.mono_ms + link_silence_ms (self->peers));
    send_welcome (call);
}

void on_goodbye (call_t *call)
{
    requests_t *self = call->requests;
    link_t *link = call->link;
    parting_end (self, link, true); /* what waits to leave for it still does */
    reply_code (call, TMQ_OK, NULL);
}

void on_heartbeat (call_t *call)
{
    reply_code_at_once (call, TMQ_OK, NULL, 0);
}
