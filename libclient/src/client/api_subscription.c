/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscriptions as the application sees them: the core's, and a way to wait for it. */
#include <stdlib.h>

#include "base/errors.h"
#include "client/client.h"
#include "client/options.h"

struct tmq_subscription {
    client_object_t object; /* first */
    core_subscription_t *core;
};

/* Called locked; out of the client's list already. */
static void subscription_free (client_object_t *object)
{
    tmq_subscription_t *self = (tmq_subscription_t *) object;
    client_unready (object->client, core_subscription_answer (self->core));
    object->client->subscriptions--;
    core_subscription_free (self->core);
    pthread_cond_destroy (&object->changed);
    free (self);
}

int tmq_subscription_new (tmq_subscription_t **out, tmq_client_t *client,
                          const tmq_subscription_options_t *in, tmq_error_t *error)
{
    tmq_subscription_options_t options;
    options_subscription (&options, in);
    if (client_owner (client) != NULL)
        options.owner = client_owner (client);
    client = client_base (client);
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    tmq_subscription_t *self = calloc (1, sizeof *self);
    if (self == NULL || client_cond_init (&self->object.changed) != TMQ_OK) {
        free (self);
        client_leave (client);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    self->object.free = subscription_free;
    code = core_subscription_new (&self->core, client->core, &options, &self->object, error);
    if (code == TMQ_OK) {
        client_object_add (client, &self->object);
        client->subscriptions++;
        *out = self;
    } else {
        pthread_cond_destroy (&self->object.changed);
        free (self);
    }
    client_leave (client);
    return code;
}

void tmq_subscription_free (tmq_subscription_t **pointer)
{
    if (pointer == NULL || *pointer == NULL)
        return;
    tmq_subscription_t *self = *pointer;
    tmq_client_t *client = self->object.client;
    *pointer = NULL;
    if (client_enter (client, NULL) != TMQ_OK)
        return;
    client_object_remove (&self->object);
    subscription_free (&self->object);
    client_leave (client);
}

int tmq_subscription_ready (tmq_subscription_t *self, uint32_t timeout_ms, tmq_error_t *error)
{
    int64_t deadline_ms = client_deadline (timeout_ms);
    if (self == NULL)
        return core_error (error, TMQ_INVALID, "the subscription is NULL");
    tmq_client_t *client = self->object.client;
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    client_flush (client);
    while ((code = core_subscription_state (self->core, error)) == TMQ_TIMEOUT && timeout_ms != 0)
        if (!client_wait (client, &self->object.changed, deadline_ms))
            break;
    client_leave (client);
    return code;
}

int tmq_subscription_next (tmq_event_t **out, tmq_subscription_t *self, uint32_t timeout_ms,
                           tmq_error_t *error)
{
    int64_t deadline_ms = timeout_ms == 0 ? 0 : client_deadline (timeout_ms);
    if (self == NULL)
        return core_error (error, TMQ_INVALID, "the subscription is NULL");
    tmq_client_t *client = self->object.client;
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    while ((code = core_subscription_next (out, self->core, error)) == TMQ_TIMEOUT &&
           timeout_ms != 0) {
        client_flush (client);
        if (!client_wait (client, &self->object.changed, deadline_ms))
            break;
    }
    client_leave (client);
    return code;
}

int tmq_subscription_cursor (char out[48], tmq_subscription_t *self)
{
    if (self == NULL)
        return TMQ_INVALID;
    int code = client_enter (self->object.client, NULL);
    if (code != TMQ_OK)
        return code;
    code = core_subscription_cursor (out, self->core);
    client_leave (self->object.client);
    return code;
}
