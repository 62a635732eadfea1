/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a message of many frames is read to its end, which may cost its sender the connection,
 * and what cannot be sent is reported; both are the caller's to answer. */
#include "net/router.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "core/base/memory.h"
#include "log/log.h"
#include "net/door.h"
#include "net/numbers.h"
#include "net/socket.h"

enum {
    FRAMES_MAX = 2,
    /* What a frozen peer may pin in its pipe, in messages (A49). */
    SEND_HIGH_WATER = 128,
    /* Received from one peer and not taken yet: 20 MiB of the largest. More waits in the system's
     * buffers, and in the peer. */
    RECEIVE_HIGH_WATER = 64,
    CURVE_OVERHEAD_BYTES = 33, /* counted by MAXMSGSIZE, not by us */
    UNBIND_MS_MAX = 1000,      /* the longest wait for one listener to close */
    FRAMES_CUT = 100, /* of a message: a mistake is told, more than this ends the connection */
    CROWDED_LOG_MS = 60 * 1000,
    EVENTS_MAX = 1000, /* of connections, taken at once */
    /* A socket looks for pipes that came to life only with every hundredth message. */
    TURN_SLACK = 256,
    /* Below it a copy is cheaper than libzmq's allocation and two counted references. */
    COPY_BYTES_MAX = 512,
    /* The same for an envelope, which would be copied anyway. What is copied is not counted; with
     * the high-water mark it is half a megabyte a peer. */
    COPY_ENVELOPE_MAX = 4096
};

typedef struct held {
    zmq_msg_t frames[FRAMES_MAX];
    int count;
    size_t frames_count; /* that came */
} held_t;

struct kept {
    held_t held;
};

typedef struct endpoint {
    char uri[ADDRESS_URI_SIZE];
    address_t address; /* with the real port */
    int lock;          /* beside an ipc path, else -1 */
    bool old;          /* to be opened anew */
    bool closed;       /* until it is */
} endpoint_t;

typedef struct unsure {
    peer_t peer;
    uint8_t id[NUMBERS_ID_BYTES];
} unsure_t;

struct router {
    void *socket;
    void *monitor;
    peers_t *peers;
    unread_t *unread;        /* of all peers */
    size_t unread_bytes_max; /* of one */
    door_t *door;
    numbers_t *numbers;
    unsure_t *unsure;       /* peers whose numbers are newer than what is known */
    int64_t crowded_log_at; /* no line before */
    size_t unsure_count;
    size_t unsure_asked; /* the first ones: the question under way decides on them */
    size_t unsure_capacity;
    bool newcomers; /* since the last question for the next number */
    const zap_t *zap;
    guard_t guard;
    bool (*is_linked) (void *context, peer_t peer); /* during router_maintain */
    void *is_linked_context;
    held_t *held; /* never moves: small messages live inside zmq_msg_t */
    size_t held_count;
    size_t held_max;
    endpoint_t *endpoints[ROUTER_ENDPOINTS_MAX];
    size_t endpoints_count;
    closing_t closing;
    router_stats_t stats;
};

/* Life. */

static void configure (void *socket, int linger_ms)
{
    socket_set (socket, ZMQ_ROUTER_MANDATORY, 1);
    socket_set (socket, ZMQ_ROUTER_HANDOVER, 0);
    socket_set (socket, ZMQ_SNDHWM, SEND_HIGH_WATER);
    socket_set (socket, ZMQ_RCVHWM, RECEIVE_HIGH_WATER);
    socket_set (socket, ZMQ_LINGER, linger_ms);
    socket_limit (socket, TMQ_FRAME_BYTES_MAX + CURVE_OVERHEAD_BYTES);
}

router_t *router_new (const router_options_t *options, char *error, size_t error_size)
{
    router_t *self = memory_zero (1, sizeof (*self));
    self->held_max = options->held_max;
    self->held = memory_zero (options->held_max, sizeof (held_t));
    self->peers = peers_new (options->peers_max, options->key);
    self->unread_bytes_max =
        options->unread_bytes_max > 0 ? options->unread_bytes_max : UNREAD_BYTES;
    self->unread = unread_new (
        NULL, options->unread_all_bytes_max > 0 ? options->unread_all_bytes_max : UNREAD_ALL_BYTES);
    door_options_t door = {.mute_ms = options->mute_ms, .mute_max = options->mute_max};
    self->door = door_new (&door);
    self->guard = options->guard;
    self->zap = options->zap;
    /* libzmq numbers peers from rand () on and never seeds it. A peer that knows the next number
     * may claim it as its routing id, and then an assertion of libzmq ends the process. */
    srandom (randombytes_random ());
    self->socket = zmq_socket (options->context, ZMQ_ROUTER);
    if (self->socket != NULL) {
        configure (self->socket, options->linger_ms);
        self->monitor = monitor_open (options->context, self->socket);
        self->numbers = numbers_new (options->context, self->socket);
    }
    if (self->monitor != NULL && self->numbers != NULL) {
        /* A pipe of libzmq wakes its reader only after the reader found it empty once. */
        (void) router_watch (self, 0);
        return self;
    }
    snprintf (error, error_size, "cannot make the socket: %s", zmq_strerror (zmq_errno ()));
    router_free (&self);
    return NULL;
}

/* libzmq closes a listener in its own time and leaves its path behind; only when it is closed may
 * another broker have the path. */
static void unbind (router_t *self)
{
    uint16_t event;
    uint32_t value;
    size_t open = 0;
    for (size_t i = 0; i < self->endpoints_count; i++)
        open += zmq_unbind (self->socket, self->endpoints[i]->uri) == 0;
    zmq_pollitem_t item = {self->monitor, 0, ZMQ_POLLIN, 0};
    while (open > 0 && zmq_poll (&item, 1, UNBIND_MS_MAX) > 0) {
        while (open > 0 && monitor_receive (self->monitor, &event, &value))
            open -= event == ZMQ_EVENT_CLOSED;
    }
}

void router_free (router_t **self_p)
{
    router_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    router_release (self);
    numbers_free (&self->numbers);
    free (self->unsure);
    if (self->monitor != NULL) {
        unbind (self);
        zmq_socket_monitor (self->socket, NULL, 0);
        zmq_close (self->monitor);
    }
    if (self->socket != NULL)
        zmq_close (self->socket);
    for (size_t i = 0; i < self->endpoints_count; i++) {
        if (self->endpoints[i]->lock >= 0) {
            unlink (self->endpoints[i]->uri + strlen ("ipc://"));
            close (self->endpoints[i]->lock);
        }
        free (self->endpoints[i]);
    }
    peers_free (&self->peers);
    unread_drop (&self->unread);
    door_free (&self->door);
    free (self->held);
    free (self);
}

const char *router_bind (router_t *self, const address_t *address, listen_error_t *error)
{
    int lock = -1;
    error->open = false;
    if (self->endpoints_count == ROUTER_ENDPOINTS_MAX) {
        snprintf (error->text, sizeof (error->text), "more than %d addresses",
                  ROUTER_ENDPOINTS_MAX);
        return NULL;
    }
    if (address->kind == ADDRESS_IPC) {
        lock =
            address_lock_ipc (address->uri + strlen ("ipc://"), error->text, sizeof (error->text));
        if (lock < 0)
            return NULL;
    }
    if (!listen_bind (self->socket, address, address_domain (address), &self->guard, error)) {
        if (lock >= 0)
            close (lock);
        return NULL;
    }
    endpoint_t *endpoint = memory_zero (1, sizeof (*endpoint));
    size_t size = sizeof (endpoint->uri);
    int rc = zmq_getsockopt (self->socket, ZMQ_LAST_ENDPOINT, endpoint->uri, &size);
    assert (rc == 0);
    endpoint->lock = lock;
    endpoint->address = *address;
    memcpy (endpoint->address.uri, endpoint->uri, sizeof (endpoint->uri));
    self->endpoints[self->endpoints_count++] = endpoint;
    return endpoint->uri;
}

/* In. */

/* Reads the frames behind the routing id; keeps the first two, of the others one at a time. Returns
 * how many there were; origin is taken from the last one, because only it carries
 * the descriptor. */
static size_t frames_receive (router_t *self, held_t *held, zmq_msg_t *scrap, origin_t *origin)
{
    zmq_msg_t *frame = NULL;
    size_t count = 0;
    do {
        frame = count < FRAMES_MAX ? &held->frames[count] : scrap;
        if (count < FRAMES_MAX) {
            zmq_msg_init (frame);
            held->count++;
        }
        /* The frames of a message arrive together. */
        bool received = socket_receive (self->socket, frame, 0);
        assert (received);
        count++;
    } while (zmq_msg_more (frame));
    /* The word of our handler of ZAP; what the peer itself claims to be does not come through. */
    origin->user = zmq_msg_gets (frame, "User-Id");
    origin->fd = zmq_msg_get (frame, ZMQ_SRCFD);
    return count;
}

static void held_drop (held_t *held)
{
    for (int frame = 0; frame < held->count; frame++)
        zmq_msg_close (&held->frames[frame]);
}

static void message_fill (incoming_t *out, held_t *held)
{
    if (held->count > 0) {
        out->envelope = zmq_msg_data (&held->frames[0]);
        out->envelope_bytes = zmq_msg_size (&held->frames[0]);
    }
    if (held->count > 1) {
        out->body = zmq_msg_data (&held->frames[1]);
        out->body_bytes = zmq_msg_size (&held->frames[1]);
    }
}

/* False for one whom nobody let in, for one that chose its routing id, and for one who sends no
 * messages but heaps of frames: its connection ends. */
static bool is_bearable (router_t *self, const origin_t *origin, size_t frames,
                         numbers_verdict_t number)
{
    bool unknown = origin->user == NULL || origin->user[0] == '\0';
    bool claimed = number == NUMBERS_CLAIMED;
    self->stats.cut_claimed += claimed;
    self->stats.cut_endless += frames > FRAMES_CUT;
    self->stats.unauthenticated += unknown;
    if (!unknown && !claimed && frames <= FRAMES_CUT)
        return true;
    door_cut (self->door, origin->fd);
    return false;
}

static zmq_msg_t *last_frame (held_t *held, size_t frames, zmq_msg_t *scrap)
{
    return frames > FRAMES_MAX || held->count == 0 ? scrap : &held->frames[held->count - 1];
}

/* The first message of a peer. False, and cut: the policy has changed since its handshake. */
static bool greet (router_t *self, peer_t peer, const char *identity, int fd, zmq_msg_t *last)
{
    const char *knock = zmq_msg_gets (last, ZAP_KNOCK);
    peers_set_knock (self->peers, peer, knock);
    if (self->zap == NULL || zap_is_current (self->zap, knock, identity))
        return true;
    self->stats.cut_revoked++;
    door_cut (self->door, fd);
    return false;
}

/* To be judged when the next number is known. */
static void doubt (router_t *self, peer_t peer, const origin_t *origin)
{
    self->unsure = memory_grow (self->unsure, &self->unsure_capacity, self->unsure_count,
                                sizeof (*self->unsure));
    unsure_t *unsure = &self->unsure[self->unsure_count++];
    unsure->peer = peer;
    memcpy (unsure->id, origin->routing_id, NUMBERS_ID_BYTES);
}

/* False when the message is nobody's. */
static bool find_peer (router_t *self, const origin_t *origin, zmq_msg_t *last, int64_t now_ms,
                       incoming_t *out)
{
    numbers_verdict_t number =
        numbers_judge (self->numbers, origin->routing_id, origin->routing_id_bytes);
    if (!is_bearable (self, origin, out->frames, number))
        return false;
    seen_t seen = peers_seen (self->peers, origin, now_ms);
    if (seen.is_new)
        door_heard (self->door, origin->fd);
    if (seen.is_new && number == NUMBERS_UNSURE)
        doubt (self, seen.peer, origin);
    if (seen.is_new && !greet (self, seen.peer, seen.identity, origin->fd, last))
        return false;
    out->peer = seen.peer;
    out->identity = seen.identity;
    out->refused = seen.refused;
    out->own = seen.own;
    self->stats.refused_peers += seen.refused;
    return true;
}

static bool is_answer (router_t *self, const origin_t *origin, held_t *held)
{
    return origin->user == NULL && origin->fd < 0 && held->count == 1 &&
           numbers_answered (self->numbers, origin->routing_id, origin->routing_id_bytes,
                             zmq_msg_data (&held->frames[0]), zmq_msg_size (&held->frames[0]));
}

static uint32_t messages_at (void *context, int fd)
{
    const router_t *self = context;
    uint32_t messages;
    peers_at (self->peers, fd, &messages);
    return messages;
}

static bool is_linked_at (void *context, int fd)
{
    const router_t *self = context;
    uint32_t messages;
    peer_t peer = peers_at (self->peers, fd, &messages);
    return peer != 0 && self->is_linked (self->is_linked_context, peer);
}

/* Somebody has a number that the next newcomers will get, which would end the process. Who has said
 * something is known by it; who has not, has to go with all who have said nothing. */
static void end_squatter (router_t *self, const uint8_t id[NUMBERS_ID_BYTES])
{
    door_view_t view = {self, messages_at, is_linked_at};
    int fd = peers_fd_of (self->peers, id, NUMBERS_ID_BYTES);
    size_t cut = 1;
    if (fd >= 0)
        door_cut (self->door, fd);
    else
        cut = door_cut_unheard (self->door, &view);
    self->stats.cut_claimed += cut;
    log_write (LOG_LEVEL_WARNING, "DOOR-SQUAT",
               "a connection has taken a number that newcomers will get: it was cut",
               LOG_FIELDS (LOG_NUMBER ("connections", cut)));
}

static void ask_for_number (router_t *self)
{
    if (numbers_ask (self->numbers))
        self->unsure_asked = self->unsure_count;
}

/* Our own question came back: all numbers are known that ZeroMQ had given when it was asked.
 * Whoever had another one by then chose it. */
static void judge_numbers (router_t *self)
{
    uint8_t id[NUMBERS_ID_BYTES];
    for (size_t i = 0; i < self->unsure_asked; i++) {
        const unsure_t *unsure = &self->unsure[i];
        if (numbers_is_given (self->numbers, unsure->id))
            continue;
        self->stats.cut_claimed++;
        door_cut (self->door, peers_fd (self->peers, unsure->peer));
    }
    self->unsure_count -= self->unsure_asked;
    if (self->unsure_count > 0) /* without any there may be no memory for them */
        memmove (self->unsure, self->unsure + self->unsure_asked,
                 self->unsure_count * sizeof (*self->unsure));
    self->unsure_asked = 0;
    if (numbers_squatted (self->numbers, id))
        end_squatter (self, id);
    if (numbers_suspects (self->numbers))
        ask_for_number (self);
}

/* One message; false when none waits. out->peer is 0 when there is nobody to answer. */
static bool message_receive (router_t *self, int64_t now_ms, incoming_t *out)
{
    zmq_msg_t routing_id;
    zmq_msg_t scrap;
    zmq_msg_init (&routing_id);
    if (!socket_receive (self->socket, &routing_id, ZMQ_DONTWAIT))
        return false;
    zmq_msg_init (&scrap);
    held_t *held = &self->held[self->held_count];
    held->count = 0;
    memset (out, 0, sizeof (*out));
    out->at = self->held_count++;
    origin_t origin = {zmq_msg_data (&routing_id), zmq_msg_size (&routing_id), -1, NULL};
    if (zmq_msg_more (&routing_id))
        out->frames = frames_receive (self, held, &scrap, &origin);
    held->frames_count = out->frames;
    if (is_answer (self, &origin, held)) {
        judge_numbers (self);
        held_drop (held);
        self->held_count--;
    } else if (find_peer (self, &origin, last_frame (held, out->frames, &scrap), now_ms, out)) {
        message_fill (out, held);
    } else {
        held_drop (held);
        self->held_count--;
    }
    zmq_msg_close (&scrap);
    zmq_msg_close (&routing_id);
    self->stats.received++;
    return true;
}

bool router_receive (router_t *self, int64_t now_ms, incoming_t *out)
{
    return self->held_count < self->held_max && message_receive (self, now_ms, out);
}

void router_release (router_t *self)
{
    for (size_t i = 0; i < self->held_count; i++)
        held_drop (&self->held[i]);
    self->held_count = 0;
    peers_release (self->peers);
}

kept_t *router_keep (router_t *self, size_t at)
{
    assert (at < self->held_count);
    held_t *held = &self->held[at];
    kept_t *kept = memory_alloc (sizeof (*kept));
    kept->held.count = held->count;
    kept->held.frames_count = held->frames_count;
    for (int frame = 0; frame < held->count; frame++) {
        zmq_msg_init (&kept->held.frames[frame]);
        zmq_msg_move (&kept->held.frames[frame], &held->frames[frame]);
        zmq_msg_close (&held->frames[frame]);
    }
    held->count = 0;
    return kept;
}

void router_kept (kept_t *kept, incoming_t *out)
{
    out->frames = kept->held.frames_count;
    message_fill (out, &kept->held);
}

void router_drop (kept_t *kept)
{
    held_drop (&kept->held);
    free (kept);
}

void router_address (const router_t *self, peer_t peer, char *out, size_t out_size)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof (address);
    int fd = peers_fd (self->peers, peer);
    out[0] = '\0';
    if (fd >= 0 && getpeername (fd, (struct sockaddr *) &address, &length) == 0 &&
        address.ss_family != AF_UNIX &&
        getnameinfo ((struct sockaddr *) &address, length, out, (socklen_t) out_size, NULL, 0,
                     NI_NUMERICHOST) != 0)
        out[0] = '\0';
}

bool router_key (router_t *self, peer_t peer, key_public_t *out)
{
    return zap_knock_key (peers_knock (self->peers, peer), out);
}

void **router_own (router_t *self, peer_t peer)
{
    return peers_own (self->peers, peer);
}

void router_refresh (router_t *self)
{
    int events;
    size_t size = sizeof (events);
    int rc = zmq_getsockopt (self->socket, ZMQ_EVENTS, &events, &size);
    assert (rc == 0 || zmq_errno () == EINTR);
}

size_t router_turn (const router_t *self)
{
    door_stats_t door;
    door_stats (self->door, &door);
    size_t peers = peers_count (self->peers);
    return 2 * (door.open > peers ? door.open : peers) + TURN_SLACK;
}

/* Out. */

/* A frame that is not copied into the message, and on whom it counts until it has left. */
typedef struct parcel {
    unread_t *unread;
    size_t length;
    buf_t *body; /* NULL: the bytes stand behind */
    uint8_t bytes[];
} parcel_t;

/* Called by libzmq's I/O thread when the bytes have left. */
static void parcel_sent (void *bytes, void *context)
{
    (void) bytes;
    parcel_t *parcel = context;
    unread_remove (parcel->unread, parcel->length);
    buf_drop (parcel->body);
    free (parcel);
}

static void frame_copy (zmq_msg_t *frame, const void *bytes, size_t length)
{
    if (zmq_msg_init_size (frame, length) != 0)
        abort (); /* out of memory, as everywhere in the broker */
    memcpy (zmq_msg_data (frame), bytes, length);
}

static void frame_parcel (zmq_msg_t *frame, parcel_t *parcel, void *bytes)
{
    unread_add (parcel->unread, parcel->length);
    if (zmq_msg_init_data (frame, bytes, parcel->length, parcel_sent, parcel) != 0)
        abort ();
}

static void frame_envelope (zmq_msg_t *frame, unread_t *unread, const output_t *output)
{
    size_t length = output->envelope_bytes;
    if (length <= COPY_ENVELOPE_MAX) {
        frame_copy (frame, output->envelope, length);
        return;
    }
    parcel_t *parcel = memory_alloc (sizeof (*parcel) + length);
    *parcel = (parcel_t){unread, length, NULL};
    memcpy (parcel->bytes, output->envelope, length);
    frame_parcel (frame, parcel, parcel->bytes);
}

static void frame_body (zmq_msg_t *frame, unread_t *unread, buf_t *body)
{
    size_t length = buf_length (body);
    if (length <= COPY_BYTES_MAX) {
        frame_copy (frame, buf_bytes (body), length);
        return;
    }
    /* libzmq only reads what it is given. */
    union {
        const uint8_t *constant;
        void *data;
    } bytes = {.constant = buf_bytes (body)};
    parcel_t *parcel = memory_alloc (sizeof (*parcel));
    *parcel = (parcel_t){unread, length, buf_keep (body)};
    frame_parcel (frame, parcel, bytes.data);
}

static bool frame_send (void *socket, zmq_msg_t *frame, int flags)
{
    int rc;
    do
        rc = zmq_msg_send (frame, socket, flags | ZMQ_DONTWAIT);
    while (rc < 0 && zmq_errno () == EINTR);
    if (rc < 0)
        zmq_msg_close (frame);
    return rc >= 0;
}

static bool is_large (const output_t *output)
{
    return output->envelope_bytes > COPY_ENVELOPE_MAX ||
           (output->body != NULL && buf_length (output->body) > COPY_BYTES_MAX);
}

/* The account of a peer that gets something large; false when it leaves too much unread. */
static bool account_of (router_t *self, peer_t peer, unread_t **account)
{
    unread_t **unread = peers_unread (self->peers, peer);
    if (*unread == NULL)
        *unread = unread_new (self->unread, self->unread_bytes_max);
    *account = *unread;
    if (unread_has_room (*account))
        return true;
    self->stats.unread_full++;
    return false;
}

bool router_send (router_t *self, const output_t *output)
{
    size_t length = 0;
    const void *routing_id = peers_route (self->peers, output->peer, &length);
    unread_t *unread = NULL;
    zmq_msg_t frame;
    bool sent =
        routing_id != NULL && (!is_large (output) || account_of (self, output->peer, &unread));
    if (sent) {
        frame_copy (&frame, routing_id, length);
        /* Only the first frame can be refused: then nothing of the message was taken. */
        sent = frame_send (self->socket, &frame, ZMQ_SNDMORE);
    }
    if (!sent) {
        self->stats.send_failed++;
        return false;
    }
    frame_envelope (&frame, unread, output);
    frame_send (self->socket, &frame, output->body != NULL ? ZMQ_SNDMORE : 0);
    if (output->body != NULL) {
        frame_body (&frame, unread, output->body);
        frame_send (self->socket, &frame, 0);
    }
    self->stats.sent++;
    return true;
}

/* Descriptors and ends. */

int router_fd (const router_t *self)
{
    return socket_fd (self->socket);
}

int router_watch_fd (const router_t *self)
{
    return socket_fd (self->monitor);
}

static void take_event (router_t *self, uint16_t event, int fd, int64_t now_ms)
{
    if (event == ZMQ_EVENT_ACCEPTED) {
        door_opened (self->door, fd, now_ms);
        self->newcomers = true;
    } else if (event == ZMQ_EVENT_DISCONNECTED) {
        door_closed (self->door, fd);
        peers_ended (self->peers, fd, now_ms);
    } else if (event == ZMQ_EVENT_ACCEPT_FAILED) {
        self->stats.accept_failed++;
    } else if (event == ZMQ_EVENT_CLOSED) {
        listen_closed (&self->closing);
    }
}

void router_outdate (router_t *self)
{
    for (size_t i = 0; i < self->endpoints_count; i++)
        self->endpoints[i]->old = self->endpoints[i]->address.curve;
}

/* All of them close before the first is bound again. */
static void close_old (router_t *self, int64_t now_ms)
{
    for (size_t i = 0; i < self->endpoints_count; i++) {
        endpoint_t *endpoint = self->endpoints[i];
        if (endpoint->old && !endpoint->closed)
            listen_close (self->socket, endpoint->uri, &self->closing, now_ms);
        endpoint->closed = endpoint->old;
    }
}

bool router_renew (router_t *self, int64_t now_ms, listen_error_t *error)
{
    bool good = true;
    close_old (self, now_ms);
    if (!listen_all_closed (&self->closing, now_ms))
        return true;
    for (size_t i = 0; i < self->endpoints_count; i++) {
        endpoint_t *endpoint = self->endpoints[i];
        const address_t *address = &endpoint->address;
        if (!endpoint->old)
            continue;
        endpoint->closed =
            !listen_bind (self->socket, address, address_domain (address), &self->guard, error);
        endpoint->old = endpoint->closed;
        good = good && !endpoint->closed;
    }
    return good;
}

bool router_is_closing (const router_t *self)
{
    return listen_is_closing (&self->closing);
}

static void cut_crowd (router_t *self, int64_t now_ms)
{
    size_t cut = door_cut_crowd (self->door, now_ms);
    if (cut == 0 || now_ms < self->crowded_log_at)
        return;
    self->crowded_log_at = now_ms + CROWDED_LOG_MS;
    log_write (LOG_LEVEL_WARNING, "DOOR-CROWDED",
               "too many connections have said nothing; the oldest of the most crowded address "
               "are cut",
               LOG_FIELDS (LOG_NUMBER ("connections", cut)));
}

bool router_watch (router_t *self, int64_t now_ms)
{
    uint16_t event;
    uint32_t value;
    int taken = 0;
    while (taken < EVENTS_MAX && monitor_receive (self->monitor, &event, &value)) {
        take_event (self, event, (int) value, now_ms);
        taken++;
    }
    cut_crowd (self, now_ms);
    return taken < EVENTS_MAX;
}

peer_t router_gone_next (router_t *self, int64_t heard_ms)
{
    return peers_gone_next (self->peers, heard_ms);
}

void router_watch_bytes (router_t *self, bool reading)
{
    door_view_t view = {self, messages_at, is_linked_at};
    door_cut_endless (self->door, reading, &view);
    /* Between two questions so many newcomers cannot come as numbers are tried ahead (A58). */
    if (self->newcomers || self->unsure_count > 0)
        ask_for_number (self);
    self->newcomers = false;
}

bool router_has_connections (const router_t *self)
{
    door_stats_t door;
    door_stats (self->door, &door);
    return door.open > 0;
}

void router_maintain (router_t *self, int64_t now_ms, int64_t heard_ms,
                      bool (*is_linked) (void *context, peer_t peer), void *context)
{
    self->is_linked = is_linked;
    self->is_linked_context = context;
    assert (self->held_count == 0);
    door_view_t view = {self, messages_at, is_linked_at};
    door_cut_mute (self->door, heard_ms, &view);
    peers_forget (self->peers, now_ms);
}

void router_recheck (router_t *self)
{
    uint32_t cursor = 0;
    peers_item_t item;
    while (self->zap != NULL && peers_each (self->peers, &cursor, &item)) {
        if (zap_is_current (self->zap, item.knock, item.identity))
            continue;
        self->stats.cut_revoked++;
        door_cut (self->door, item.fd);
    }
}

unsigned router_zeromq_version (void)
{
    int major, minor, patch;
    zmq_version (&major, &minor, &patch);
    return (unsigned) (major * 10000 + minor * 100 + patch);
}

void router_stats (const router_t *self, router_stats_t *out)
{
    door_stats_t door;
    door_stats (self->door, &door);
    *out = self->stats;
    out->peers = peers_count (self->peers);
    out->unread_bytes = unread_bytes (self->unread);
    out->connections = door.open;
    out->cut_mute = door.mute;
    out->cut_crowd = door.crowd;
    out->mute = door.unheard;
    out->cut_endless += door.endless;
}
