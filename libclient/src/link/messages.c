/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/messages.h"

enum {
    MESSAGE_TOKEN = 1,
    MESSAGE_REQUESTS = 2,
    REQUEST_ID = 1,
    REQUEST_DEADLINE_MS = 2,
    REQUEST_REQUEST_ID = 3,
    REQUEST_OWNER = 4,
    REQUEST_GOODBYE = 11,
    REQUEST_SUBMIT = 20
};

/* A reply may be a whole frame: only so many at once, so that what comes back does not exceed what
 * the broker may queue for a link (A49). */
static bool reads_have_room (const core_requests_t *requests)
{
    return requests->large_open < requests->config->reads_max;
}

bool core_messages_init (core_messages_t *self, core_requests_t *requests)
{
    self->requests = requests;
    return bytes_reserve (&self->envelope, TMQ_ENVELOPE_BYTES_MAX) != NULL &&
           bytes_reserve (&self->body, TMQ_FRAME_BYTES_MAX) != NULL;
}

void core_messages_free (core_messages_t *self)
{
    bytes_free (&self->envelope);
    bytes_free (&self->body);
}

bool core_messages_waiting (const core_messages_t *self)
{
    const core_requests_t *requests = self->requests;
    return requests->control.first != NULL || requests->small.first != NULL ||
           (requests->large.first != NULL && reads_have_room (requests));
}

/* A batch's fields are its items: the submit around them is written when it is sent, because items
 * may have been taken out. */
static bool needs_wrapping (const core_request_t *request)
{
    return request->op == TMQ_OP_SUBMIT_BATCH;
}

static bool message_fits (const core_messages_t *self, const core_request_t *request,
                          size_t requests)
{
    size_t head = CORE_RESERVE_BYTES + (request->owner != NULL ? CORE_OWNER_BYTES : 0);
    return requests < TMQ_REQUESTS_MAX &&
           self->envelope.length + request->fields.length + head <= TMQ_ENVELOPE_BYTES_MAX &&
           self->body.length + request->body.length <= TMQ_FRAME_BYTES_MAX;
}

static uint64_t wire_deadline (const core_messages_t *self, const core_request_t *request)
{
    if (request->deadline_ms == CORE_NEVER)
        return 0;
    int64_t left = request->deadline_ms - self->requests->link->now_ms;
    return left < 1 ? 1 : left > UINT32_MAX ? UINT32_MAX : (uint64_t) left;
}

static void message_add (core_messages_t *self, const core_request_t *request)
{
    bytes_t *out = &self->envelope;
    bytes_mark_t mark = bytes_open (out, MESSAGE_REQUESTS);
    bytes_append_uint (out, REQUEST_ID, request->number);
    bytes_append_uint (out, REQUEST_DEADLINE_MS, wire_deadline (self, request));
    if (request->changes)
        bytes_append_blob (out, REQUEST_REQUEST_ID, request->request_id, 16);
    if (request->owner != NULL)
        bytes_append_string (out, REQUEST_OWNER, request->owner);
    if (needs_wrapping (request))
        bytes_append_element (out, REQUEST_SUBMIT, request->fields.data, request->fields.length);
    else
        bytes_append (out, request->fields.data, request->fields.length);
    bytes_close (out, mark);
    if (request->body.length > 0)
        bytes_append (&self->body, request->body.data, request->body.length);
}

/* Moves what fits from a queue into the message; false when one did not fit. */
static bool message_fill (core_messages_t *self, core_queue_t *queue, size_t *requests)
{
    while (queue->first != NULL) {
        core_request_t *request = queue->first;
        if (request->large && !reads_have_room (self->requests))
            return true;
        if (!message_fits (self, request, *requests))
            return false;
        message_add (self, request);
        (*requests)++;
        if (request->quiet)
            core_request_end (self->requests, request, TMQ_OK, NULL, 0);
        else
            core_request_sent (self->requests, request);
    }
    return true;
}

static bool message_give (core_messages_t *self, core_message_t *out)
{
    self->requests->counters.messages_sent++;
    out->envelope = self->envelope.data;
    out->envelope_bytes = self->envelope.length;
    out->body = self->body.length > 0 ? self->body.data : NULL;
    out->body_bytes = self->body.length;
    return true;
}

static void message_begin (core_messages_t *self)
{
    bytes_clear (&self->envelope);
    bytes_clear (&self->body);
}

bool core_messages_hello (core_messages_t *self, core_message_t *out)
{
    core_link_t *link = self->requests->link;
    core_request_t *request = core_internal_new (self->requests, CORE_OP_HELLO);
    if (request == NULL)
        return false;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_uint (&request->fields, 1, TMQ_PROTOCOL_VERSION);
    bytes_append_uint (&request->fields, 2, TMQ_PROTOCOL_VERSION);
    bytes_append_string (&request->fields, 3, link->ns);
    bytes_append_string (&request->fields, 4, link->name);
    bytes_append_uint (&request->fields, 5, TMQ_FEATURE_UNAVAILABLE);
    bytes_close (&request->fields, mark);
    core_link_say_hello (link);
    if (core_internal_send (self->requests, request) == 0)
        return false;
    link->hello_due = false;
    message_begin (self);
    message_add (self, request);
    core_request_sent (self->requests, request);
    return message_give (self, out);
}

static void goodbye_add (core_messages_t *self)
{
    self->goodbye = core_number_make (self->requests);
    bytes_mark_t mark = bytes_open (&self->envelope, MESSAGE_REQUESTS);
    bytes_append_uint (&self->envelope, REQUEST_ID, self->goodbye);
    bytes_append_element (&self->envelope, REQUEST_GOODBYE, NULL, 0);
    bytes_close (&self->envelope, mark);
}

bool core_messages_next (core_messages_t *self, core_message_t *out)
{
    core_requests_t *requests = self->requests;
    const core_link_t *link = requests->link;
    size_t count = 0;
    message_begin (self);
    bytes_append_blob (&self->envelope, MESSAGE_TOKEN, link->token, sizeof link->token);
    bool all = message_fill (self, &requests->control, &count) &&
               message_fill (self, &requests->small, &count) &&
               message_fill (self, &requests->large, &count);
    if (link->stage == CORE_LINK_LEAVING && all && count < TMQ_REQUESTS_MAX) {
        goodbye_add (self);
        return message_give (self, out);
    }
    return count > 0 && message_give (self, out);
}

void core_messages_heartbeat (core_messages_t *self)
{
    core_request_t *request = core_internal_new (self->requests, CORE_OP_HEARTBEAT);
    if (request != NULL)
        bytes_close (&request->fields, core_request_begin (request));
    core_internal_send (self->requests, request);
}
