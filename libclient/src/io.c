/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The I/O thread: it alone owns the socket. One round: everything that has arrived goes into the
 * core, deadlines are judged, everything that is to leave leaves, and it sleeps until there is
 * something to do. What piles up while it works leaves in as few messages as fit. */
#include <poll.h>
#include <string.h>
#include <time.h>

#include "client.h"

enum {
    RECEIVE_MAX = 64,      /* messages of one round, so that deadlines are judged under any flood */
    RECEIVE_LONG_MS = 100, /* … but only that often while the socket is not empty */
    GATHER_CALLS_MIN = 8,  /* fewer threads are not worth a pause */
    GATHER_NS = 200 * 1000 /* a fraction of a commit */
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

/* Makes the connection the one that the core wants. */
static void follow (tmq_client_t *client)
{
    char text[256] = "";
    pthread_mutex_lock (&client->lock);
    core_link_t wanted = core_link_wanted (client->core);
    pthread_mutex_unlock (&client->lock);
    if (wanted.connection == client->transport.connection)
        return;
    const char *endpoint = wanted.connection != 0 ? client->endpoints[wanted.endpoint] : NULL;
    if (transport_connect (&client->transport, wanted.connection, endpoint, 0, text, sizeof text))
        return;
    pthread_mutex_lock (&client->lock);
    core_link_failed (client->core, wanted.connection, TMQ_UNREACHABLE, text, client_now_ms ());
    pthread_mutex_unlock (&client->lock);
}

static bool copy_frame (zmq_msg_t *frame, const void *data, size_t size)
{
    if (zmq_msg_init_size (frame, size) != 0)
        return false;
    memcpy (zmq_msg_data (frame), data, size);
    return true;
}

/* Sends one message of the core; false when there is none, or no room for one. */
static bool send_one (tmq_client_t *client)
{
    if (!transport_writable (&client->transport))
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
    const struct timespec moment = {0, GATHER_NS};
    pthread_mutex_lock (&client->lock);
    bool worth_it = client->answered_calls >= GATHER_CALLS_MIN && core_has_output (client->core) &&
                    client->started_calls < client->answered_calls;
    client->gathering = worth_it;
    client->gather_goal = client->answered_calls;
    pthread_mutex_unlock (&client->lock);
    if (worth_it) {
        struct pollfd wake = {client->transport.wake_fd, POLLIN, 0};
        ppoll (&wake, 1, &moment, NULL);
    }
    pthread_mutex_lock (&client->lock);
    client->gathering = false;
    if (core_has_output (client->core))
        client->answered_calls = client->started_calls = 0;
    pthread_mutex_unlock (&client->lock);
}

/* Sleeps until a message, another thread or the next deadline. */
static void rest (tmq_client_t *client)
{
    pthread_mutex_lock (&client->lock);
    client_flush (client);
    int64_t now_ms = client_now_ms ();
    int64_t due_ms = core_next_due (client->core);
    if (client->leaving && client->leave_at_ms < due_ms)
        due_ms = client->leave_at_ms;
    bool for_output = core_has_output (client->core);
    core_link_t wanted = core_link_wanted (client->core);
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

static bool is_over (tmq_client_t *client)
{
    pthread_mutex_lock (&client->lock);
    bool over = client->leaving &&
                (core_goodbye_done (client->core) || client_now_ms () >= client->leave_at_ms);
    pthread_mutex_unlock (&client->lock);
    return over;
}

static void tick (tmq_client_t *client, bool drained, int64_t *ticked_ms)
{
    int64_t now_ms = client_now_ms ();
    if (!drained && now_ms - *ticked_ms < RECEIVE_LONG_MS)
        return;
    *ticked_ms = now_ms;
    pthread_mutex_lock (&client->lock);
    core_tick (client->core, now_ms);
    pthread_mutex_unlock (&client->lock);
}

void *client_io_main (void *argument)
{
    tmq_client_t *client = argument;
    char text[256] = "";
    int64_t ticked_ms = 0;
    while (!is_over (client)) {
        follow (client);
        bool drained = receive (client);
        int ended = drained ? transport_watch (&client->transport, text, sizeof text) : 0;
        if (ended != 0)
            fail (client, ended, text);
        tick (client, drained, &ticked_ms);
        follow (client);
        gather (client);
        while (send_one (client)) {
        }
        if (drained)
            rest (client);
    }
    pthread_mutex_lock (&client->lock);
    core_close (client->core);
    client_flush (client);
    pthread_mutex_unlock (&client->lock);
    transport_connect (&client->transport, 0, NULL, 0, text, sizeof text);
    return NULL;
}
