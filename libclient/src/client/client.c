/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The client object: its life, its lock, and how answers come to those who wait for them. */
#include "client/client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/errors.h"
#include "client/options.h"

enum { LEAVE_MS = 500 };

static bool wait_or_drive (tmq_client_t *client, pthread_cond_t *cond, int64_t deadline_ms)
{
    bool in_time = true;
    if (!client_io_is_free (client)) {
        client_io_hand_over (client);
        in_time = client_cond_wait (client, cond, deadline_ms);
    } else if (deadline_ms != CORE_NEVER && client_now_ms () >= deadline_ms) {
        in_time = false;
    } else {
        client_io_drive (client, deadline_ms);
    }
    client->called_ms = client_now_ms ();
    return in_time;
}

bool client_wait (tmq_client_t *client, pthread_cond_t *cond, int64_t deadline_ms)
{
    client->waiting++;
    bool in_time = wait_or_drive (client, cond, deadline_ms);
    client->waiting--;
    return in_time;
}

/* Waiting and completions. */

int tmq_client_fd (tmq_client_t *client)
{
    client = client_base (client);
    if (client_enter (client, NULL) != TMQ_OK)
        return -1;
    client->attended = true;
    int fd = client->ready_fd;
    client_leave (client);
    return fd;
}

/* The completion of an answer, in an allocation that tmq_completion_free knows how to free. */
static tmq_completion_t *completion_of (core_answer_t *answer)
{
    if (!answer->embedded)
        return &answer->completion;
    core_answer_t *copy = calloc (1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    copy->completion = answer->completion;
    answer->completion.error = NULL; /* the copy's */
    return &copy->completion;
}

int tmq_client_poll (tmq_completion_t **out, size_t max, size_t *count, tmq_client_t *client,
                     uint32_t timeout_ms)
{
    *count = 0;
    client = client_base (client);
    if (max == 0)
        return TMQ_INVALID;
    int64_t deadline_ms = client_deadline (timeout_ms);
    int code = client_enter (client, NULL);
    if (code != TMQ_OK)
        return code;
    while (client->ready_first == NULL && timeout_ms != 0 && !client->leaving)
        if (!client_wait (client, &client->answered, deadline_ms))
            break;
    if (client->ready_first == NULL)
        code = client->leaving ? TMQ_CLOSED : TMQ_TIMEOUT;
    client->attended = client->attended || timeout_ms == 0;
    while (client->ready_first != NULL && *count < max) {
        core_answer_t *answer = client->ready_first;
        tmq_completion_t *completion = completion_of (answer);
        if (completion == NULL) {
            code = *count == 0 ? TMQ_NO_MEMORY : TMQ_OK;
            break;
        }
        client_ready_remove (client, answer);
        core_answer_taken (client->core, answer);
        out[(*count)++] = completion;
    }
    client_leave (client);
    return code;
}

/* Into the core and back. */

int client_enter (tmq_client_t *client, tmq_error_t *error)
{
    if (client == NULL)
        return core_error (error, TMQ_INVALID, "client is NULL");
    if (client->pid != getpid ())
        return core_error (error, TMQ_FORKED, NULL);
    pthread_mutex_lock (&client->lock);
    return TMQ_OK;
}

void client_leave (tmq_client_t *client)
{
    client_flush (client);
    client_io_hand_over (client);
    pthread_mutex_unlock (&client->lock);
}

int client_await (core_answer_t **answer, tmq_client_t *client, client_waiter_t *waiter,
                  tmq_error_t *error)
{
    client_flush (client);
    while (waiter->answer == NULL)
        wait_or_drive (client, &waiter->cond, CORE_NEVER);
    client_io_hand_over (client);
    pthread_mutex_unlock (&client->lock);
    pthread_cond_destroy (&waiter->cond);
    *answer = waiter->answer;
    int code = waiter->answer->completion.code;
    if (error != NULL && waiter->answer->completion.error != NULL)
        *error = *waiter->answer->completion.error;
    else
        core_error (error, code, NULL);
    return code;
}

int client_call (core_answer_t **answer, tmq_client_t *client, core_request_t *request,
                 uint32_t timeout_ms, tmq_error_t *error)
{
    *answer = NULL;
    int64_t deadline_ms = client_deadline (timeout_ms);
    client_waiter_t waiter = {.answer = NULL};
    const char *owner = client_owner (client);
    client = client_base (client);
    int code = client_enter (client, error);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    if (client_cond_init (&waiter.cond) != TMQ_OK) {
        client_leave (client);
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    code = core_start (client->core, request, (core_target_t){&waiter, NULL, owner}, deadline_ms,
                       client_now_ms (), error);
    client->started_calls++;
    if (code == TMQ_OK)
        return client_await (answer, client, &waiter, error);
    client_leave (client);
    pthread_cond_destroy (&waiter.cond);
    return code;
}

int client_take (void *out, client_member_t member, tmq_client_t *client, core_request_t *request,
                 uint32_t timeout_ms, tmq_error_t *error)
{
    core_answer_t *answer = NULL;
    int code = client_call (&answer, client, request, timeout_ms, error);
    if (answer != NULL && code == TMQ_OK && out != NULL) {
        char *taken = (char *) answer + member.offset;
        memcpy (out, taken, member.size);
        memset (taken, 0, member.size);
    }
    core_answer_free (answer);
    return code;
}

int client_ask (void *out, client_member_t member, tmq_client_t *client, tmq_op_t op,
                const ProtobufCMessage *message, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_message (&request, op, message, error);
    return code == TMQ_OK ? client_take (out, member, client, request, timeout_ms, error) : code;
}

int client_begin (tmq_client_t *client, core_request_t *request, uint32_t timeout_ms, void *user,
                  tmq_error_t *error)
{
    int64_t deadline_ms = client_deadline (timeout_ms);
    const char *owner = client_owner (client);
    client = client_base (client);
    int code = client_enter (client, error);
    if (code != TMQ_OK) {
        core_request_free (request);
        return code;
    }
    code = core_start (client->core, request, (core_target_t){NULL, user, owner}, deadline_ms,
                       client_now_ms (), error);
    client_leave (client);
    return code;
}

/* Objects of the client. */

void client_object_add (tmq_client_t *client, client_object_t *object)
{
    object->client = client;
    object->previous = NULL;
    object->next = client->objects;
    if (object->next != NULL)
        object->next->previous = object;
    client->objects = object;
}

void client_object_remove (client_object_t *object)
{
    if (object->previous != NULL)
        object->previous->next = object->next;
    else
        object->client->objects = object->next;
    if (object->next != NULL)
        object->next->previous = object->previous;
}

/* Life. */

static core_t *make_core (const tmq_client_options_t *options, const places_t *places)
{
    const char *uris[TMQ_ENDPOINTS_MAX] = {places->directory};
    bool found = places->directory != NULL;
    for (size_t i = 0; i < places->count; i++)
        uris[i] = places->list[i].uri;
    size_t endpoints = found ? 1 : places->count;
    core_config_t config = {.ns = options->ns,
                            .name = options->name != NULL ? options->name : "libtaskmq",
                            .endpoints = uris,
                            .endpoints_count = endpoints,
                            .requests_max = options->outbox_requests_max,
                            .request_bytes_max = options->outbox_bytes_max,
                            .completions_max = options->completions_max,
                            .reads_max = options->reads_max,
                            .reconnect_ms_min = options->reconnect_ms_min,
                            .reconnect_ms_max = options_reconnect_max (options, endpoints),
                            .log = options->log,
                            .link = options->link,
                            .fail_fast = options->fail_fast};
    if (getentropy (config.seed, sizeof config.seed) != 0)
        return NULL;
    return core_new (&config, client_now_ms ());
}

static void client_destroy (tmq_client_t *client)
{
    while (client->objects != NULL) {
        client_object_t *object = client->objects;
        client_object_remove (object);
        object->free (object);
    }
    while (client->ready_first != NULL) {
        core_answer_t *answer = client->ready_first;
        client_ready_remove (client, answer);
        core_answer_free (answer);
    }
    core_free (client->core);
    if (client->transport.context != NULL)
        zmq_ctx_term (client->transport.context);
    if (client->ready_fd >= 0)
        close (client->ready_fd);
    if (client->transport.wake_fd >= 0)
        close (client->transport.wake_fd);
    places_free (&client->places);
    keyring_close (&client->keys);
    pthread_cond_destroy (&client->link_changed);
    pthread_cond_destroy (&client->answered);
    pthread_cond_destroy (&client->settled);
    pthread_cond_destroy (&client->undriven);
    pthread_mutex_destroy (&client->lock);
    free (client);
}

/* The I/O thread gets no signals: they are the application's. */
static int start_thread (tmq_client_t *client)
{
    sigset_t all;
    sigset_t before;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    int failed = pthread_create (&client->thread, NULL, client_io_main, client);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    return failed;
}

/* As TASKMQ_ENDPOINT of another client takes them; false if there is no room for all. */
static bool list_endpoints (char *out, size_t size, const tmq_client_t *client)
{
    char uri[KEYRING_URI_SIZE];
    size_t length = 0;
    for (size_t i = 0; i < client->places.count; i++) {
        keyring_uri (&client->keys, &client->places.list[i], uri);
        if (length + strlen (uri) + 2 > size)
            return false;
        length += (size_t) sprintf (out + length, "%s%s", i > 0 ? " " : "", uri);
    }
    return true;
}

static int check_endpoints (const tmq_client_t *client, tmq_error_t *error)
{
    char text[sizeof ((tmq_whoami_t *) 0)->endpoints];
    if (list_endpoints (text, sizeof text, client))
        return TMQ_OK;
    return core_error (error, TMQ_INVALID,
                       "endpoint: all of them have at most %zu bytes together, with their keys",
                       sizeof text - 1);
}

/* Where the broker is, and with which keys. A profile may also name the namespace, kept in ns. */
static int find_broker (tmq_client_t *client, tmq_client_options_t *options,
                        char ns[TMQ_NAME_LENGTH_MAX + 1], tmq_error_t *error)
{
    int code = places_find (&client->places, options, error);
    if (code != TMQ_OK)
        return code;
    code = keyring_open (&client->keys, &client->places, options, error);
    if (code == TMQ_OK && (options->ns == NULL || options->ns[0] == '\0')) {
        snprintf (ns, TMQ_NAME_LENGTH_MAX + 1, "%s", client->keys.ns);
        options->ns = ns;
    }
    if (code == TMQ_OK && (code = check_endpoints (client, error)) != TMQ_OK)
        keyring_close (&client->keys);
    if (code != TMQ_OK)
        places_free (&client->places);
    return code;
}

int tmq_client_new (tmq_client_t **out, const tmq_client_options_t *in, tmq_error_t *error)
{
    tmq_client_options_t options;
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    tmq_client_t *client = calloc (1, sizeof *client);
    if (client == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    int code = options_client (&options, in, error);
    if (code == TMQ_OK)
        code = find_broker (client, &options, ns, error);
    if (code != TMQ_OK) {
        free (client);
        return code;
    }
    client->pid = getpid ();
    pthread_mutex_init (&client->lock, NULL);
    bool conds = client_cond_init (&client->link_changed) == TMQ_OK &&
                 client_cond_init (&client->answered) == TMQ_OK &&
                 client_cond_init (&client->settled) == TMQ_OK &&
                 client_cond_init (&client->undriven) == TMQ_OK;
    client->ready_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    client->transport.wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    client->transport.context = zmq_ctx_new ();
    client->core = make_core (&options, &client->places);
    if (!conds || client->core == NULL) {
        client_destroy (client);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    if (client->ready_fd < 0 || client->transport.wake_fd < 0 ||
        client->transport.context == NULL || start_thread (client) != 0) {
        client_destroy (client);
        return core_error (error, TMQ_SYSTEM, "no descriptors or threads are left");
    }
    *out = client;
    return TMQ_OK;
}

int tmq_client_open (tmq_client_t **out, const char *uri, tmq_error_t *error)
{
    tmq_client_options_t options;
    tmq_client_options_init (&options);
    options.endpoints = &uri;
    options.endpoints_count = uri != NULL ? 1 : 0;
    return tmq_client_new (out, &options, error);
}

int tmq_client_on_behalf (tmq_client_t **out, tmq_client_t *client, const char *owner,
                          tmq_error_t *error)
{
    int code = core_check_owner (owner, error);
    if (code != TMQ_OK)
        return code;
    if (client == NULL || client->base != NULL)
        return core_error (error, TMQ_INVALID, "client: %s",
                           client == NULL ? "it is NULL" : "it acts for somebody already");
    tmq_client_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    self->base = client;
    snprintf (self->owner, sizeof self->owner, "%s", owner);
    *out = self;
    return TMQ_OK;
}

void tmq_client_free (tmq_client_t **pointer)
{
    if (pointer == NULL || *pointer == NULL)
        return;
    tmq_client_t *client = *pointer;
    *pointer = NULL;
    if (client->base != NULL) {
        free (client);
        return;
    }
    if (client_enter (client, NULL) != TMQ_OK)
        return; /* of a forked child: its threads and sockets are the parent's */
    client->leaving = true;
    client->leave_at_ms = client_now_ms () + LEAVE_MS;
    core_goodbye (client->core);
    pthread_cond_broadcast (&client->answered);
    client->sleeping = false;
    client_signal (client->transport.wake_fd);
    pthread_cond_signal (&client->undriven);
    client_leave (client);
    pthread_join (client->thread, NULL);
    client_destroy (client);
}

int tmq_client_connect (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error)
{
    client = client_base (client);
    int64_t deadline_ms = client_deadline (timeout_ms);
    bool final = false;
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    core_link_needed (client->core, client_now_ms ());
    client_flush (client);
    while ((code = core_link_state (client->core, error, &final)) != TMQ_OK) {
        if (final || timeout_ms == 0 || !client_wait (client, &client->link_changed, deadline_ms))
            break;
    }
    client_leave (client);
    return code;
}

int tmq_client_flush (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error)
{
    client = client_base (client);
    int64_t deadline_ms = client_deadline (timeout_ms);
    tmq_error_t reason;
    bool final = false;
    size_t open;
    int code = client_enter (client, error);
    if (code != TMQ_OK)
        return code;
    client->flushing++;
    client_flush (client);
    while ((open = core_changes_open (client->core)) > 0 && timeout_ms != 0)
        if (!client_wait (client, &client->settled, deadline_ms))
            break;
    client->flushing--;
    code = core_link_state (client->core, &reason, &final);
    client_leave (client);
    if (open == 0)
        return core_error (error, TMQ_OK, NULL);
    return core_error (error, TMQ_TIMEOUT, "%zu changes are without an answer%s%s", open,
                       code != TMQ_OK ? ": " : "", code != TMQ_OK ? reason.text : "");
}

static bool is_forgotten (const core_answer_t *answer, const tmq_id_t *id, const void *user)
{
    const tmq_completion_t *completion = &answer->completion;
    bool reads = completion->op >= TMQ_OP_GET && completion->op <= TMQ_OP_PING &&
                 completion->op != TMQ_OP_CANCEL;
    return reads && completion->user == user &&
           (id == NULL || memcmp (id, &completion->task_id, sizeof *id) == 0);
}

int tmq_forget (size_t *count, tmq_client_t *client, const tmq_id_t *id, const void *user)
{
    client = client_base (client);
    int code = client_enter (client, NULL);
    if (code != TMQ_OK)
        return code;
    client_flush (client);
    size_t forgotten = core_forget (client->core, id, user);
    for (core_answer_t *answer = client->ready_first; answer != NULL;) {
        core_answer_t *next = answer->next;
        if (is_forgotten (answer, id, user)) {
            client_ready_remove (client, answer);
            core_answer_taken (client->core, answer);
            core_answer_free (answer);
            forgotten++;
        }
        answer = next;
    }
    client_leave (client);
    if (count != NULL)
        *count = forgotten;
    return TMQ_OK;
}

int tmq_client_info (tmq_broker_info_t *out, tmq_client_t *client)
{
    client = client_base (client);
    size_t endpoint = 0;
    int code = client_enter (client, NULL);
    if (code != TMQ_OK)
        return code;
    core_info (client->core, out, &endpoint);
    if (out->generation != 0)
        snprintf (out->endpoint, sizeof out->endpoint, "%s",
                  client->places.directory != NULL ? client->uri
                                                   : client->places.list[endpoint].uri);
    client_leave (client);
    return TMQ_OK;
}

static int64_t clock_ahead_ms (const core_rights_t *rights)
{
    struct timespec wall;
    if (rights->clock_ms == 0)
        return 0;
    clock_gettime (CLOCK_REALTIME, &wall);
    return rights->clock_ms + client_now_ms () - rights->clock_at -
           ((int64_t) wall.tv_sec * 1000 + wall.tv_nsec / 1000000);
}

/* All that are tried; list_endpoints has seen to the room. */
static void put_endpoints (tmq_whoami_t *out, const tmq_client_t *client)
{
    const places_t *places = &client->places;
    out->endpoints_count = places->directory != NULL ? 1 : (uint32_t) places->count;
    if (places->directory != NULL)
        snprintf (out->endpoints, sizeof out->endpoints, "%s", out->endpoint);
    else
        list_endpoints (out->endpoints, sizeof out->endpoints, client);
}

int tmq_client_whoami (tmq_whoami_t *out, tmq_client_t *client)
{
    client = client_base (client);
    tmq_whoami_t who = {.size = sizeof who};
    tmq_broker_info_t info;
    size_t endpoint;
    if (out == NULL || out->size < sizeof out->size)
        return TMQ_INVALID;
    const size_t size = out->size;
    int code = client_enter (client, NULL);
    if (code != TMQ_OK)
        return code;
    const core_rights_t *rights = core_rights (client->core);
    bool final;
    who.connected = core_link_state (client->core, NULL, &final) == TMQ_OK;
    core_info (client->core, &info, &endpoint);
    snprintf (who.identity, sizeof who.identity, "%s", info.identity);
    snprintf (who.principal, sizeof who.principal, "%s", rights->principal);
    snprintf (who.roles, sizeof who.roles, "%s", rights->roles);
    snprintf (who.redact, sizeof who.redact, "%s", rights->redact);
    who.key_until = rights->key_until;
    who.clock_ahead_ms = clock_ahead_ms (rights);
    who.blob_bytes_max = rights->blob_bytes_max;
    snprintf (who.ns, sizeof who.ns, "%s", core_namespace (client->core));
    snprintf (who.key, sizeof who.key, "%s", client->own_text);
    snprintf (who.endpoint, sizeof who.endpoint, "%s%s%s", client->uri,
              client->used_insecure    ? "?insecure"
              : client->server_text[0] ? "?server_key="
                                       : "",
              client->server_text);
    put_endpoints (&who, client);
    if (who.key[0] != '\0' && client->keys.file != NULL)
        snprintf (who.key_file, sizeof who.key_file, "%s", client->keys.file);
    if (rights->has_server)
        key_text_public (who.server_key, &rights->server);
    else
        snprintf (who.server_key, sizeof who.server_key, "%s", client->server_text);
    snprintf (who.told_by, sizeof who.told_by, "%s", client->places.told_by);
    client_leave (client);
    memcpy (out, &who, size < sizeof who ? size : sizeof who);
    out->size = size;
    return TMQ_OK;
}

void tmq_client_counters (tmq_client_counters_t *out, tmq_client_t *client)
{
    client = client_base (client);
    memset (out, 0, sizeof *out);
    if (client_enter (client, NULL) != TMQ_OK)
        return;
    core_counters (client->core, out);
    out->calls_driven = client->drives;
    client_leave (client);
}
