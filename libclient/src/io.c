/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The I/O: what the owner of the baton does with the sockets. One round of the I/O thread:
 * everything that has arrived goes into the core, deadlines are judged, everything that is to leave
 * leaves, and it sleeps until there is something to do. What piles up meanwhile leaves in as few
 * messages as fit. A thread of the application does the same in another order: it sends, waits and
 * receives, and looks whether its answer is there (see client.h). */
#include <string.h>
#include <time.h>

#include "client.h"

enum {
    RECEIVE_MAX = 64,      /* messages of one round, so that deadlines are judged under any flood */
    RECEIVE_LONG_MS = 100, /* … but only that often while the socket is not empty */
    GATHER_CALLS_MIN = 8,  /* fewer threads are not worth a pause */
    GATHER_NS = 200 * 1000, /* a fraction of a commit */
    IDLE_MS = 5 /* without a turn of the application's: the I/O thread takes over again */
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

/* When something is due, or the deadline if that comes first; CORE_NEVER for neither. */
static int64_t next_due (const tmq_client_t *client, int64_t deadline_ms)
{
    int64_t due_ms = core_next_due (client->core);
    if (client->leaving && client->leave_at_ms < due_ms)
        due_ms = client->leave_at_ms;
    return due_ms < deadline_ms ? due_ms : deadline_ms;
}

/* True if there is something to do before any wait. */
static bool is_busy (const tmq_client_t *client, int64_t due_ms, int64_t now_ms)
{
    return due_ms <= now_ms ||
           core_link_wanted (client->core).connection != client->transport.connection ||
           (client->leaving && core_goodbye_done (client->core));
}

static long wait_ms (int64_t due_ms, int64_t now_ms)
{
    if (due_ms == CORE_NEVER)
        return -1;
    return due_ms - now_ms > INT32_MAX ? INT32_MAX : (long) (due_ms - now_ms);
}

/* Sleeps with the baton until a message, another thread or the next deadline. */
static void rest (tmq_client_t *client, int64_t deadline_ms)
{
    pthread_mutex_lock (&client->lock);
    client_flush (client);
    int64_t now_ms = client_now_ms ();
    int64_t due_ms = next_due (client, deadline_ms);
    bool for_output = core_has_output (client->core);
    bool now = is_busy (client, due_ms, now_ms);
    client->sleeping = !now;
    client->wake_at_ms = due_ms;
    pthread_mutex_unlock (&client->lock);
    if (now)
        return;
    transport_wait (&client->transport, for_output, wait_ms (due_ms, now_ms));
    pthread_mutex_lock (&client->lock);
    client->sleeping = false;
    pthread_mutex_unlock (&client->lock);
}

/* Gives the baton back and sleeps without it. */
static void park (tmq_client_t *client, bool drained)
{
    struct pollfd descriptors[TRANSPORT_DESCRIPTORS];
    pthread_mutex_lock (&client->lock);
    client_flush (client);
    int64_t now_ms = client_now_ms ();
    int64_t due_ms = next_due (client, CORE_NEVER);
    size_t count =
        !drained || is_busy (client, due_ms, now_ms)
            ? 0
            : transport_park (&client->transport, core_has_output (client->core), descriptors);
    client->driven = false;
    client->unfinished = count == 0;
    client->parked = count > 0;
    client->parked_ms = due_ms;
    client->parked_turns = client->turns;
    client->parked_connection = client->transport.connection;
    pthread_mutex_unlock (&client->lock);
    if (count == 0)
        return;
    transport_parked_wait (descriptors, count, wait_ms (due_ms, now_ms));
    pthread_mutex_lock (&client->lock);
    bool kicked = !client->parked;
    client->parked = false;
    pthread_mutex_unlock (&client->lock);
    if (kicked)
        transport_clear_parked (&client->transport);
}

static bool is_over (tmq_client_t *client)
{
    pthread_mutex_lock (&client->lock);
    bool over = client->leaving &&
                (core_goodbye_done (client->core) || client_now_ms () >= client->leave_at_ms);
    pthread_mutex_unlock (&client->lock);
    return over;
}

static void tick (tmq_client_t *client, bool drained)
{
    int64_t now_ms = client_now_ms ();
    if (!drained && now_ms - client->ticked_ms < RECEIVE_LONG_MS)
        return;
    client->ticked_ms = now_ms;
    pthread_mutex_lock (&client->lock);
    core_tick (client->core, now_ms);
    pthread_mutex_unlock (&client->lock);
}

/* Everything that has arrived, and what is due. True when the socket is empty. */
static bool take_in (tmq_client_t *client)
{
    char text[256] = "";
    bool drained = receive (client);
    int ended = drained ? transport_watch (&client->transport, text, sizeof text) : 0;
    if (ended != 0)
        fail (client, ended, text);
    tick (client, drained);
    return drained;
}

static void send_out (tmq_client_t *client)
{
    follow (client);
    gather (client);
    while (send_one (client)) {
    }
}

void client_io_turn (tmq_client_t *client, int64_t deadline_ms)
{
    client->driven = true;
    pthread_mutex_unlock (&client->lock);
    send_out (client);
    rest (client, deadline_ms);
    bool drained = take_in (client);
    pthread_mutex_lock (&client->lock);
    client_flush (client);
    client->driven = false;
    client->unfinished = !drained;
    client->turns++;
}

/* Work that the thread that took turns has left behind, or never sees. */
static bool is_wanted (const tmq_client_t *client)
{
    return client->leaving || client->async || client->blocked > 0 || client->unfinished ||
           core_has_output (client->core) ||
           core_link_wanted (client->core).connection != client->transport.connection;
}

void client_io_kick (tmq_client_t *client)
{
    if (client->driven)
        return;
    if (!client->parked) {
        if (is_wanted (client))
            pthread_cond_signal (&client->baton);
    } else if (client->unfinished || core_has_output (client->core) ||
               core_next_due (client->core) < client->parked_ms ||
               core_link_wanted (client->core).connection != client->parked_connection ||
               client->transport.connection != client->parked_connection) {
        client->parked = false;
        transport_wake_parked (&client->transport);
    }
}

/* The I/O thread leaves the sockets to a thread that takes turns, until it has stopped or there is
 * work that it does not see. */
static void take_baton (tmq_client_t *client)
{
    uint64_t turns = client->parked_turns;
    while (client->driven || (turns != client->turns && !is_wanted (client))) {
        int64_t until_ms = client_now_ms () + IDLE_MS;
        struct timespec until = {.tv_sec = (time_t) (until_ms / 1000),
                                 .tv_nsec = (long) (until_ms % 1000) * 1000000};
        turns = client->driven ? client->turns - 1 : client->turns;
        pthread_cond_timedwait (&client->baton, &client->lock, &until);
    }
    client->driven = true;
}

void *client_io_main (void *argument)
{
    tmq_client_t *client = argument;
    char text[256] = "";
    while (!is_over (client)) {
        pthread_mutex_lock (&client->lock);
        take_baton (client);
        pthread_mutex_unlock (&client->lock);
        follow (client);
        bool drained = take_in (client);
        send_out (client);
        park (client, drained);
    }
    pthread_mutex_lock (&client->lock);
    core_close (client->core);
    client_flush (client);
    pthread_mutex_unlock (&client->lock);
    transport_connect (&client->transport, 0, NULL, 0, text, sizeof text);
    return NULL;
}
