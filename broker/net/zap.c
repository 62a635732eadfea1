/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a request that is none is answered 500, which ends its connection only. */
#include "net/zap.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "core/base/memory.h"
#include "net/buckets.h"
#include "net/socket.h"

enum {
    FRAME_EMPTY,
    FRAME_VERSION,
    FRAME_ID,
    FRAME_DOMAIN,
    FRAME_ADDRESS,
    FRAME_ROUTING_ID,
    FRAME_MECHANISM,
    FRAMES_NULL,
    FRAME_KEY = FRAMES_NULL,
    FRAMES_CURVE
};
enum { IDENTITY_SIZE = ZAP_ADDRESS_MAX + 16, NETWORK_BYTES_V6 = 8 };

static_assert ((int) FRAMES_CURVE == (int) ZAP_FRAMES_MAX, "frames of a request");

typedef enum status { SILENT = 0, ACCEPTED = 200, LATER = 300, REFUSED = 400, ODD = 500 } status_t;

typedef struct verdict {
    status_t status;
    char identity[IDENTITY_SIZE]; /* when accepted */
} verdict_t;

struct zap {
    void *socket;
    buckets_t *refusals; /* by address */
    int64_t silent_ms;
    int64_t silent_until[ZAP_SILENT_MAX]; /* a ring of those that are kept waiting */
    size_t silent_first;
    size_t silent_count;
    bool stopping;
    zap_stats_t stats;
};

zap_t *zap_new (const zap_options_t *options, char *error, size_t error_size)
{
    zap_t *self = memory_zero (1, sizeof (*self));
    buckets_options_t refusals = {
        ZAP_ADDRESSES_MAX, ZAP_REFUSALS_BURST, ZAP_REFUSALS_PER_SECOND, {0}};
    memcpy (refusals.key, options->key, sizeof (refusals.key));
    self->refusals = buckets_new (&refusals);
    self->silent_ms = options->silent_ms;
    self->socket = zmq_socket (options->context, ZMQ_ROUTER);
    if (self->socket != NULL) {
        socket_set (self->socket, ZMQ_LINGER, 0);
        if (zmq_bind (self->socket, "inproc://zeromq.zap.01") == 0) {
            /* A socket wakes its reader only after the reader found it empty once. */
            (void) zap_answer (self, 0);
            return self;
        }
    }
    snprintf (error, error_size, "cannot be asked who may connect: %s",
              zmq_strerror (zmq_errno ()));
    zap_free (&self);
    return NULL;
}

void zap_free (zap_t **self_p)
{
    zap_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->socket != NULL)
        zmq_close (self->socket);
    buckets_free (&self->refusals);
    free (self);
}

int zap_fd (const zap_t *self)
{
    return socket_fd (self->socket);
}

void zap_stop (zap_t *self)
{
    self->stopping = true;
}

/* Requests. */

static bool is_text (const zap_frame_t *frame, const char *text)
{
    return frame->length == strlen (text) && memcmp (frame->bytes, text, frame->length) == 0;
}

/* Printable, so that it may stand in a log. */
static bool take_text (char *out, size_t most, const zap_frame_t *frame)
{
    if (frame->length > most)
        return false;
    for (size_t i = 0; i < frame->length; i++) {
        char byte = ((const char *) frame->bytes)[i];
        if (byte <= ' ' || byte > '~')
            return false;
        out[i] = byte;
    }
    out[frame->length] = '\0';
    return true;
}

/* "localhost:uid:gid:pid": what the kernel says of the other end of a local socket. */
static void take_uid (zap_request_t *out)
{
    unsigned uid, gid, pid;
    int end = 0;
    out->has_uid = sscanf (out->address, "localhost:%u:%u:%u%n", &uid, &gid, &pid, &end) == 3 &&
                   out->address[end] == '\0';
    out->uid = out->has_uid ? uid : 0;
}

bool zap_parse (const zap_frame_t *frames, size_t count, zap_request_t *out)
{
    memset (out, 0, sizeof (*out));
    if (count < FRAMES_NULL || frames[FRAME_EMPTY].length != 0 ||
        !is_text (&frames[FRAME_VERSION], "1.0") ||
        !take_text (out->domain, ZAP_DOMAIN_MAX, &frames[FRAME_DOMAIN]) ||
        !take_text (out->address, ZAP_ADDRESS_MAX, &frames[FRAME_ADDRESS]))
        return false;
    take_uid (out);
    if (is_text (&frames[FRAME_MECHANISM], "NULL") && count == FRAMES_NULL) {
        out->mechanism = ZAP_NULL;
        return true;
    }
    if (!is_text (&frames[FRAME_MECHANISM], "CURVE") || count != FRAMES_CURVE ||
        frames[FRAME_KEY].length != ZAP_KEY_BYTES)
        return false;
    out->mechanism = ZAP_CURVE;
    memcpy (out->key, frames[FRAME_KEY].bytes, ZAP_KEY_BYTES);
    return true;
}

/* Judgement. */

/* Whom the door lets in: everybody who may reach a local socket or a loopback address. */
static void judge (const zap_request_t *request, verdict_t *out)
{
    out->status = ACCEPTED;
    if (strcmp (request->domain, "ipc") == 0 && request->has_uid)
        snprintf (out->identity, sizeof (out->identity), "uid:%u", request->uid);
    else if (strcmp (request->domain, "loopback") == 0 && request->mechanism == ZAP_NULL)
        snprintf (out->identity, sizeof (out->identity), "local");
    else if (strncmp (request->domain, "feed/", strlen ("feed/")) == 0)
        snprintf (out->identity, sizeof (out->identity), "feed");
    else
        out->status = REFUSED;
}

/* One who tries keys: after a few refusals it waits as long as ZeroMQ lets it. */

static size_t network_of (const zap_request_t *request, uint8_t out[NETWORK_BYTES_V6])
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton (AF_INET, request->address, &v4) == 1) {
        memcpy (out, &v4, sizeof (v4));
        return sizeof (v4);
    }
    if (inet_pton (AF_INET6, request->address, &v6) == 1) {
        memcpy (out, &v6, NETWORK_BYTES_V6);
        return NETWORK_BYTES_V6;
    }
    memset (out, 0, NETWORK_BYTES_V6);
    memcpy (out, &request->uid, sizeof (request->uid));
    return NETWORK_BYTES_V6;
}

/* There is a place to wait in. */
static bool keep_waiting (zap_t *self, int64_t now_ms)
{
    while (self->silent_count > 0 && self->silent_until[self->silent_first] <= now_ms) {
        self->silent_first = (self->silent_first + 1) % ZAP_SILENT_MAX;
        self->silent_count--;
    }
    if (self->silent_count == ZAP_SILENT_MAX)
        return false;
    self->silent_until[(self->silent_first + self->silent_count++) % ZAP_SILENT_MAX] =
        now_ms + self->silent_ms;
    return true;
}

static void slow_down (zap_t *self, const zap_request_t *request, int64_t now_ms, verdict_t *out)
{
    uint8_t network[NETWORK_BYTES_V6];
    size_t bytes = network_of (request, network);
    if (!buckets_take (self->refusals, network, bytes, now_ms) && keep_waiting (self, now_ms))
        out->status = SILENT;
}

static void decide (zap_t *self, const zap_request_t *request, int64_t now_ms, verdict_t *out)
{
    memset (out, 0, sizeof (*out));
    judge (request, out);
    if (out->status == ACCEPTED && self->stopping)
        out->status = LATER;
    if (out->status == REFUSED)
        slow_down (self, request, now_ms, out);
    self->stats.accepted += out->status == ACCEPTED;
    self->stats.silent += out->status == SILENT;
    self->stats.refused += out->status == LATER || out->status == REFUSED;
}

/* The socket. */

static void send_text (zap_t *self, const char *text, bool more)
{
    /* What the asking connection does not wait for any more is dropped by ZeroMQ. */
    (void) zmq_send (self->socket, text, strlen (text), more ? ZMQ_SNDMORE : 0);
}

static void answer (zap_t *self, zmq_msg_t *routing_id, const zap_frame_t *id,
                    const verdict_t *verdict)
{
    static const char *const texts[] = {"later", "refused", "odd"};
    bool accepted = verdict->status == ACCEPTED;
    char status[8];
    snprintf (status, sizeof (status), "%d", (int) verdict->status);
    (void) zmq_msg_send (routing_id, self->socket, ZMQ_SNDMORE);
    send_text (self, "", true);
    send_text (self, "1.0", true);
    (void) zmq_send (self->socket, id->bytes, id->length, ZMQ_SNDMORE);
    send_text (self, status, true);
    send_text (self, accepted ? "OK" : texts[(int) verdict->status / 100 - 3], true);
    send_text (self, verdict->identity, true);
    send_text (self, "", false); /* no properties */
}

/* The frames behind the routing id; how many there were. Only the first ones are kept. */
static size_t receive_frames (zap_t *self, zmq_msg_t messages[ZAP_FRAMES_MAX])
{
    zmq_msg_t scrap;
    size_t count = 0;
    bool more = true;
    zmq_msg_init (&scrap);
    while (more) {
        zmq_msg_t *frame = count < ZAP_FRAMES_MAX ? &messages[count] : &scrap;
        count++;
        socket_receive (self->socket, frame, 0); /* the frames of a message arrive together */
        more = zmq_msg_more (frame);
    }
    zmq_msg_close (&scrap);
    return count;
}

static bool answer_one (zap_t *self, int64_t now_ms)
{
    zmq_msg_t routing_id;
    zmq_msg_t messages[ZAP_FRAMES_MAX];
    zmq_msg_init (&routing_id);
    if (!socket_receive (self->socket, &routing_id, ZMQ_DONTWAIT))
        return false;
    for (size_t i = 0; i < ZAP_FRAMES_MAX; i++)
        zmq_msg_init (&messages[i]);
    size_t count = zmq_msg_more (&routing_id) ? receive_frames (self, messages) : 0;
    zap_frame_t frames[ZAP_FRAMES_MAX];
    for (size_t i = 0; i < ZAP_FRAMES_MAX; i++)
        frames[i] = (zap_frame_t){zmq_msg_data (&messages[i]), zmq_msg_size (&messages[i])};
    zap_request_t request;
    verdict_t verdict = {ODD, ""};
    if (count <= ZAP_FRAMES_MAX && zap_parse (frames, count, &request))
        decide (self, &request, now_ms, &verdict);
    self->stats.refused += verdict.status == ODD;
    if (verdict.status != SILENT)
        answer (self, &routing_id, &frames[FRAME_ID], &verdict);
    for (size_t i = 0; i < ZAP_FRAMES_MAX; i++)
        zmq_msg_close (&messages[i]);
    zmq_msg_close (&routing_id);
    return true;
}

bool zap_answer (zap_t *self, int64_t now_ms)
{
    for (int i = 0; i < ZAP_REQUESTS_MAX; i++)
        if (!answer_one (self, now_ms))
            return true;
    return false;
}

void zap_stats (const zap_t *self, zap_stats_t *out)
{
    *out = self->stats;
}
