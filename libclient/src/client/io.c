/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Driving the connection, by the I/O thread or by a caller that blocks anyway. One turn: everything
 * that is to leave leaves, it sleeps until there is something to do, everything that has arrived
 * goes into the core, and deadlines are judged. What piles up meanwhile leaves in as few messages
 * as fit.
 *
 * Only the I/O thread makes and ends connections; a caller drives an established one. When a
 * blocking call has ended and nothing else is open, the I/O thread stays aside for PAUSE_MS, so
 * that the next blocking call drives at once. What arrives without being asked for in that time
 * waits so long; an application that looks without blocking, or subscribes, has the I/O thread at
 * work always.
 *
 * Who drives, and how that changes (`driven`, `aside`, `relieve`):
 *
 *     I/O thread drives      driven, not aside. It rests in poll (`sleeping`) or works.
 *       -> a turn ends       it looks whether it may stay aside (take_over)
 *     nobody drives          aside, not driven. The I/O thread sleeps on `undriven` for PAUSE_MS.
 *       -> a caller blocks   it drives (client_io_drive)
 *       -> the pause ends, or something needs the connection: the I/O thread drives
 *     a caller drives        driven and aside. The I/O thread sleeps on `undriven`.
 *       -> it has its answer it leaves; nobody drives
 *       -> PAUSE_MS without a change of drivers: `relieve`, and the caller's leaving wakes the I/O
 *          thread at once instead of the pause
 *
 * Only who has set `driven` touches the transport, so it needs no lock. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"

enum {
    RECEIVE_MAX = 64,      /* messages of one round, so that deadlines are judged under any flood */
    RECEIVE_LONG_MS = 100, /* … but only that often while the socket is not empty */
    GATHER_CALLS_MIN = 8,  /* fewer threads are not worth a pause */
    GATHER_NS = 200 * 1000, /* a fraction of a commit */
    PAUSE_MS = 10
};

/* True when the socket is empty. */
static bool receive (tmq_client_t *client)
{
    transport_message_t message;
    for (int i = 0; i < RECEIVE_MAX; i++) {
        int got = transport_receive (&client->transport, &message);
        if (got == 0)
            return true;
        pthread_mutex_lock (&client->lock);
        int64_t now_ms = client_now_ms ();
        if (got < 0)
            core_link_failed (client->core, client->transport.connection, TMQ_PROTOCOL,
                              "a message has too many frames", now_ms);
        else
            core_receive (client->core, zmq_msg_data (&message.envelope),
                          zmq_msg_size (&message.envelope),
                          message.has_body ? zmq_msg_data (&message.body) : NULL,
                          message.has_body ? zmq_msg_size (&message.body) : 0, now_ms);
        client_flush (client);
        pthread_mutex_unlock (&client->lock);
        if (got > 0)
            transport_message_close (&message);
    }
    return false;
}

static void fail (tmq_client_t *client, int code, const char *text)
{
    pthread_mutex_lock (&client->lock);
    core_link_failed (client->core, client->transport.connection, code, text, client_now_ms ());
    pthread_mutex_unlock (&client->lock);
}

/* There is no connection. */
static void fail_absent (tmq_client_t *client, uint64_t connection, const absence_t *why)
{
    pthread_mutex_lock (&client->lock);
    if (why->certain)
        core_link_absent_at (client->core, connection, why->text, why->hint, client_now_ms ());
    else
        core_link_failed (client->core, connection, TMQ_UNREACHABLE, why->text, client_now_ms ());
    pthread_mutex_unlock (&client->lock);
}

/* Remembers what the new connection is made with. */
static void note_connection (tmq_client_t *client, const place_t *place, const curve_t *curve)
{
    char own[KEY_TEXT_SIZE] = "", server[KEY_TEXT_SIZE] = "";
    client->by_curve = curve != NULL;
    if (curve != NULL) {
        client->used_own = curve->own;
        client->used_server = curve->server;
        key_text_public (own, &curve->own);
        key_text_public (server, &curve->server);
    }
    pthread_mutex_lock (&client->lock);
    memcpy (client->uri, place->uri, sizeof client->uri);
    client->used_insecure = place->insecure;
    memcpy (client->own_text, own, sizeof own);
    memcpy (client->server_text, server, sizeof server);
    pthread_mutex_unlock (&client->lock);
}

static bool make_connection (tmq_client_t *client, core_wanted_t wanted, absence_t *why)
{
    curve_t curve;
    place_t place = {.uri = ""};
    bool by_curve = false;
    if (wanted.connection != 0 &&
        (!places_uri (&client->places, wanted.endpoint, client->tries++, &place, why) ||
         !keyring_use (&client->keys, &place, &curve, &by_curve, why)))
        return false;
    note_connection (client, &place, by_curve ? &curve : NULL);
    const bool made = transport_connect (&client->transport, wanted.connection, place.uri,
                                         by_curve ? &curve : NULL, why->text, sizeof why->text);
    if (by_curve)
        sodium_memzero (&curve, sizeof curve);
    return made;
}

/* Makes the connection the one that the core wants. */
static void follow (tmq_client_t *client)
{
    absence_t why = {.certain = false};
    pthread_mutex_lock (&client->lock);
    core_wanted_t wanted = core_link_wanted (client->core);
    pthread_mutex_unlock (&client->lock);
    if (wanted.connection != client->transport.connection &&
        !make_connection (client, wanted, &why))
        fail_absent (client, wanted.connection, &why);
}

/* Tells the keyring of a new welcome. */
static void follow_welcome (tmq_client_t *client)
{
    bool final;
    core_rights_t rights;
    pthread_mutex_lock (&client->lock);
    const uint64_t changes = core_link_changes (client->core);
    const bool is_new = changes != client->welcomed_changes;
    const bool is_up = is_new && core_link_state (client->core, NULL, &final) == TMQ_OK;
    if (is_up)
        rights = *core_rights (client->core);
    client->welcomed_changes = changes;
    pthread_mutex_unlock (&client->lock);
    if (is_up)
        client->tries = 0;
    if (is_up && client->by_curve)
        keyring_welcome (&client->keys, &client->used_server, &rights);
}

/* The broker refuses our key, for good: unless it is no longer ours. */
static void refused (tmq_client_t *client)
{
    char text[256], key[KEY_TEXT_SIZE];
    if (!client->by_curve) {
        fail (client, TMQ_NOT_AUTHENTICATED,
              "the broker does not let you in: its access file has no line for you");
        return;
    }
    if (keyring_changed (&client->keys, &client->used_own)) {
        fail (client, TMQ_UNREACHABLE, "the broker does not accept the key that was ours");
        return;
    }
    key_text_public (key, &client->used_own);
    snprintf (text, sizeof text,
              "the broker does not accept the key %s: an operator lets it in by taskctl key trust",
              key);
    fail (client, TMQ_NOT_AUTHENTICATED, text);
}

static void mismatch (tmq_client_t *client)
{
    absence_t why = {.certain = true};
    snprintf (why.text, sizeof why.text, "%s",
              client->by_curve ? "the broker speaks without keys" : "the broker wants a key");
    snprintf (why.hint, sizeof why.hint, "%s",
              client->by_curve ? "leave server_key out" : "taskctl join, or server_key");
    fail_absent (client, client->transport.connection, &why);
}

/* Of two sides with different mechanisms the one that notices first closes; when it was the broker,
 * all that is seen here is the end. So it is asked. */
static void silence (tmq_client_t *client)
{
    char mechanism[MECHANISM_BYTES + 1];
    absence_t why = {.certain = keyring_silence (&client->keys)};
    if (places_mechanism (client->uri, mechanism) &&
        strcmp (mechanism, client->by_curve ? "NULL" : "CURVE") == 0) {
        mismatch (client);
        return;
    }
    snprintf (why.text, sizeof why.text, "%s",
              !why.certain       ? "closed during the handshake"
              : client->by_curve ? "closed during the handshake: server_key is not this broker's, "
                                   "or it is turning newcomers away"
                                 : "closed during the handshake: it wants a key, or is turning "
                                   "newcomers away, or is no broker");
    snprintf (why.hint, sizeof why.hint, "%s",
              client->by_curve ? "its key, on its own machine: taskctl server-key show"
                               : "taskctl join, or server_key and key_file");
    fail_absent (client, client->transport.connection, &why);
}

/* The connection could not be made; it is looked why. */
static void nobody (tmq_client_t *client)
{
    absence_t why;
    if (client->transport.met) {
        fail (client, TMQ_UNREACHABLE, "no connection");
        return;
    }
    places_look (&client->places, client->uri, &why);
    fail_absent (client, client->transport.connection, &why);
}

static void ended (tmq_client_t *client, transport_end_t end)
{
    switch (end) {
    case TRANSPORT_GOES_ON: break;
    case TRANSPORT_NOBODY: nobody (client); break;
    case TRANSPORT_CLOSED: fail (client, TMQ_UNREACHABLE, "the connection ended"); break;
    case TRANSPORT_SILENCE: silence (client); break;
    case TRANSPORT_REFUSED: refused (client); break;
    case TRANSPORT_LATER: fail (client, TMQ_UNREACHABLE, "the broker takes nobody now"); break;
    case TRANSPORT_MECHANISM: mismatch (client); break;
    case TRANSPORT_NO_PROTOCOL: fail (client, TMQ_UNREACHABLE, "the handshake failed"); break;
    }
}

/* Looks at what became of the connection. */
static void watch (tmq_client_t *client)
{
    const bool was_reached = client->transport.reached;
    const bool was_ready = client->transport.ready;
    const uint64_t connection = client->transport.connection;
    const transport_end_t end = transport_watch (&client->transport);
    const bool reached = client->transport.reached && !was_reached;
    const bool ready = client->transport.ready && !was_ready;
    if (reached || ready)
        pthread_mutex_lock (&client->lock);
    if (reached)
        core_link_reached (client->core, connection, client_now_ms ());
    if (ready)
        core_link_greeted (client->core, connection, client_now_ms ());
    if (reached || ready)
        pthread_mutex_unlock (&client->lock);
    ended (client, end);
}

static bool copy_frame (zmq_msg_t *frame, const void *data, size_t size)
{
    if (zmq_msg_init_size (frame, size) != 0)
        return false;
    memcpy (zmq_msg_data (frame), data, size);
    return true;
}

static bool has_output (tmq_client_t *client)
{
    pthread_mutex_lock (&client->lock);
    bool has = core_has_output (client->core);
    pthread_mutex_unlock (&client->lock);
    return has;
}

/* Sends one message of the core; false when there is none, or no room for one. */
static bool send_one (tmq_client_t *client)
{
    if (!has_output (client) || !transport_writable (&client->transport))
        return false;
    zmq_msg_t envelope;
    zmq_msg_t body;
    core_message_t message;
    pthread_mutex_lock (&client->lock);
    bool given = core_output (client->core, &message, client_now_ms ());
    bool with_body = given && message.body != NULL;
    bool good = given && copy_frame (&envelope, message.envelope, message.envelope_bytes);
    if (good && with_body && !copy_frame (&body, message.body, message.body_bytes)) {
        zmq_msg_close (&envelope);
        good = false;
    }
    pthread_mutex_unlock (&client->lock);
    if (good)
        good = transport_send (&client->transport, &envelope, with_body ? &body : NULL);
    if (given && !good)
        fail (client, TMQ_UNREACHABLE, "a message could not be sent");
    return given && good;
}

/* When one message has answered many blocking calls, their threads are about to come with the next
 * ones: waiting a moment for them makes one message out of what would be dozens. */
static void gather (tmq_client_t *client)
{
    pthread_mutex_lock (&client->lock);
    bool worth_it = client->answered_calls >= GATHER_CALLS_MIN && core_has_output (client->core) &&
                    client->started_calls < client->answered_calls;
    client->gathering = worth_it;
    client->gather_goal = client->answered_calls;
    pthread_mutex_unlock (&client->lock);
    if (worth_it)
        transport_pause (&client->transport, GATHER_NS);
    pthread_mutex_lock (&client->lock);
    client->gathering = false;
    if (core_has_output (client->core))
        client->answered_calls = client->started_calls = 0;
    pthread_mutex_unlock (&client->lock);
}

/* The connection is the one that the core wants, and can be used. Locked. */
static bool is_steady (const tmq_client_t *client)
{
    return client->transport.ready && !client->leaving &&
           core_link_wanted (client->core).connection == client->transport.connection;
}

/* Sleeps until a message, another thread, the next deadline or the driving caller's. */
static void rest (tmq_client_t *client, int64_t deadline_ms)
{
    pthread_mutex_lock (&client->lock);
    client_flush (client);
    int64_t now_ms = client_now_ms ();
    int64_t due_ms = core_next_due (client->core);
    if (client->leaving && client->leave_at_ms < due_ms)
        due_ms = client->leave_at_ms;
    if (deadline_ms < due_ms)
        due_ms = deadline_ms;
    bool for_output = core_has_output (client->core);
    core_wanted_t wanted = core_link_wanted (client->core);
    bool now = due_ms <= now_ms || wanted.connection != client->transport.connection ||
               (client->leaving && core_goodbye_done (client->core));
    client->sleeping = !now;
    client->wake_at_ms = due_ms;
    pthread_mutex_unlock (&client->lock);
    if (now)
        return;
    int64_t wait_ms = due_ms - now_ms;
    transport_wait (&client->transport, for_output,
                    due_ms == CORE_NEVER  ? -1
                    : wait_ms > INT32_MAX ? INT32_MAX
                                          : (long) wait_ms);
    pthread_mutex_lock (&client->lock);
    client->sleeping = false;
    pthread_mutex_unlock (&client->lock);
}

static void tick (tmq_client_t *client)
{
    int64_t now_ms = client_now_ms ();
    if (!client->drained && now_ms - client->ticked_ms < RECEIVE_LONG_MS)
        return;
    client->ticked_ms = now_ms;
    pthread_mutex_lock (&client->lock);
    core_tick (client->core, now_ms);
    client_flush (client);
    pthread_mutex_unlock (&client->lock);
}

/* Only for the thread that drives; not locked. */
static void turn (tmq_client_t *client, int64_t deadline_ms)
{
    gather (client);
    while (send_one (client)) {
    }
    if (client->drained)
        rest (client, deadline_ms);
    client->drained = receive (client);
    if (client->drained)
        watch (client);
    tick (client);
}

/* Callers. */

bool client_io_is_free (tmq_client_t *client)
{
    return !client->driven && is_steady (client);
}

void client_io_drive (tmq_client_t *client, int64_t deadline_ms)
{
    client->driven = true;
    client->drives++;
    pthread_mutex_unlock (&client->lock);
    turn (client, deadline_ms);
    pthread_mutex_lock (&client->lock);
    client->driven = false;
}

/* Nothing needs the connection at once. Locked. */
static bool may_stay_aside (tmq_client_t *client)
{
    return is_steady (client) && !client->attended && client->subscriptions == 0 &&
           client->waiting == 0 && core_open (client->core) == 0 && !core_has_output (client->core);
}

void client_io_hand_over (tmq_client_t *client)
{
    if (!client->aside || client->driven)
        return;
    if (client->relieve || !may_stay_aside (client))
        pthread_cond_signal (&client->undriven);
}

/* The I/O thread. */

/* Waits for its turn to drive; false if the client ends. Locked. */
static bool take_over (tmq_client_t *client)
{
    client->aside = true;
    uint64_t drives = client->drives;
    for (;;) {
        int64_t now_ms = client_now_ms ();
        int64_t due_ms = client->called_ms + PAUSE_MS;
        bool pause = !client->driven && now_ms < due_ms && may_stay_aside (client);
        if (!client->driven && !pause)
            break;
        /* While one caller drives on and on its end wakes us, else the time. */
        client->relieve = client->driven && client->drives == drives;
        drives = client->drives;
        client_cond_wait (client, &client->undriven,
                          client->relieve ? CORE_NEVER : now_ms + PAUSE_MS);
        client->relieve = false;
    }
    client->aside = false;
    return !(client->leaving &&
             (core_goodbye_done (client->core) || client_now_ms () >= client->leave_at_ms));
}

void *client_io_main (void *argument)
{
    tmq_client_t *client = argument;
    char text[256] = "";
    pthread_mutex_lock (&client->lock);
    while (take_over (client)) {
        client->driven = true;
        pthread_mutex_unlock (&client->lock);
        follow_welcome (client);
        follow (client);
        turn (client, CORE_NEVER);
        pthread_mutex_lock (&client->lock);
        client->driven = false;
    }
    core_close (client->core);
    client_flush (client);
    pthread_mutex_unlock (&client->lock);
    transport_connect (&client->transport, 0, NULL, NULL, text, sizeof text);
    return NULL;
}
